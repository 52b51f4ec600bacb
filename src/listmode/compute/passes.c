/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Programs and passes of the events, and the slices and slabs of an image. */
#include "listmode/compute/listmode.h"

#include "base/units.h"
#include "common/bindings.h"
#include "gl/context.h"
#include "listmode/line.h"

#include <stdio.h>

/* A group uses at most MOST_SHARED_BYTES of shared memory. OTHER_SHARED_BYTES of them are not for slices. */
enum { MOST_SHARED_BYTES = 48 << 10, OTHER_SHARED_BYTES = 256 };

static const struct {
    const char *shader, *exact, *label; /* exact: the shader for exact elements; NULL = the same */
    bool slabs, to_grid, usual, cached, bound;
} descriptions[LR_LISTMODE_NUM_PROGRAMS] = {
    [LR_LISTMODE_PREPARE] = {"listmode/prepare.comp", "listmode/exact_prepare.comp", "lines of events"},
    [LR_LISTMODE_EXPONENTS] = {"listmode/exponents.comp", NULL, "sizes of values"},
    [LR_LISTMODE_USUAL] = {"listmode/exponents.comp", NULL, "usual size of values", .usual = true},
    [LR_LISTMODE_BOUND] = {"listmode/bound.comp", "listmode/exact_bound.comp", "terms of large values"},
    [LR_LISTMODE_TO_SLICES] = {"listmode/order.comp", NULL, "image to slices"},
    [LR_LISTMODE_TO_GRID] = {"listmode/order.comp", NULL, "sums to the image", .to_grid = true},
    [LR_LISTMODE_FORWARD] = {"listmode/forward.comp", "listmode/exact_forward.comp", "events forward"},
    [LR_LISTMODE_FORWARD_SLABS] = {"listmode/forward.comp", NULL, "events forward by slabs", .slabs = true},
    [LR_LISTMODE_BACK] = {"listmode/back.comp", "listmode/exact_back.comp", "events back"},
    [LR_LISTMODE_ELEMENTS] = {"listmode/elements.comp", "listmode/exact_elements.comp", "elements of events"},
    [LR_LISTMODE_CACHED_VALUES] = {"listmode/values.comp", NULL, "values of lines"},
    [LR_LISTMODE_CACHED_FORWARD] = {"listmode/forward.comp", NULL, "lines forward", .cached = true, .slabs = true},
    [LR_LISTMODE_CACHED_BACK] = {"listmode/back.comp", NULL, "lines back", .cached = true},
    [LR_LISTMODE_CACHED_BOUND] = {"listmode/listed.comp", NULL, "terms of lines with large values", .bound = true},
    [LR_LISTMODE_CACHED_OTHERS] = {"listmode/listed.comp", NULL, "lines with unusual values"},
};

int lr_listmode_cells(const struct lr_listmode_compute *compute)
{
    const int most = gl_context_limits(compute->ctx)->max_compute_shared_bytes;
    return ((most < MOST_SHARED_BYTES ? most : MOST_SHARED_BYTES) - OTHER_SHARED_BYTES) / 4;
}

struct gl_program *lr_listmode_program(struct lr_listmode_compute *compute, int number)
{
    const enum lr_listmode_program which = number / 2;
    const bool has_tof = number % 2 != 0, is_exact = lr_listmode_is_exact(compute) && descriptions[which].exact != NULL;
    const struct lr_listmode_model *model = compute->params.model;
    struct gl_program **program = &compute->programs[number];
    char cells[16], threads[16], label[80];
    struct gl_define defines[14] = {{"CELLS", cells}};
    int next = 1;
    if (*program != NULL) return *program;
    const struct {
        const char *name;
        bool is_defined;
    } all[] = {{"LINE", model->kernel == LR_LISTMODE_LINE},
               {"TABLE", model->kernel == LR_LISTMODE_TUBE && model->tube.table != NULL},
               {"AS_PAPER", model->tube.as_paper},
               {"LEANING", compute->exact.is_leaning},
               {"TOF", has_tof},
               {"BINS", lr_listmode_has_bins(compute)},
               {"SLABS", descriptions[which].slabs},
               {"TO_GRID", descriptions[which].to_grid},
               {"USUAL", descriptions[which].usual},
               {"KEPT", descriptions[which].cached},
               {"BOUND", descriptions[which].bound},
               {"ADD_ZEROS", lr_listmode_adds_zeros(compute)}};
    snprintf(cells, sizeof(cells), "%d", lr_listmode_cells(compute));
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
        if (all[k].is_defined) defines[next++].name = all[k].name;

    /* Groups of passes over jobs have a different number of threads. */
    if (which == LR_LISTMODE_CACHED_FORWARD || which == LR_LISTMODE_CACHED_BACK) {
        snprintf(threads, sizeof(threads), "%d", lr_listmode_job_threads(which == LR_LISTMODE_CACHED_FORWARD));
        defines[next] = (struct gl_define){"GROUP", threads};
    }
    snprintf(label, sizeof(label), "%s%s%s", is_exact ? "exact " : "", descriptions[which].label,
             has_tof ? ", with times" : "");
    *program =
        gl_program_start(compute->ctx, &(struct gl_program_params){.compute = is_exact ? descriptions[which].exact
                                                                                       : descriptions[which].shader,
                                                                   .defines = defines,
                                                                   .label = label});
    return *program;
}

/* --- the block --- */

struct lr_listmode_pass lr_listmode_pass_of(const struct lr_listmode_compute *compute, int axis)
{
    const struct lr_listmode_model *model = compute->params.model;
    const int *size = model->grid.size;
    const int axes[3] = {axis, axis == 0 ? 1 : 0, axis == 2 ? 1 : 2};
    const int32_t strides[3] = {1, size[0], size[0] * size[1]};
    struct lr_listmode_pass uniforms = {.window = {0, lr_listmode_all_slices(compute, axis), 0, 0}};
    for (int k = 0; k < 3; k++) {
        uniforms.size[k] = size[axes[k]];
        uniforms.strides[k] = strides[axes[k]];
        uniforms.voxel_mm[k] = (float)model->grid.voxel_mm[axes[k]];
    }
    uniforms.strides[3] = (int32_t)lr_grid_num_voxels(&model->grid);
    if (model->kernel == LR_LISTMODE_TUBE) {
        const lr_listmode_tube *tube = &compute->params.model->tube;
        const double rim = lr_listmode_rim(tube), half = 0.5 * tube->width_mm;
        const double of_gaussian = 4.0 / (tube->fwhm_mm * tube->fwhm_mm); /* the Gaussian is 2^-(of_gaussian d^2) */
        const double last = tube->table_count - 1, of_table = last * last / (half * half);
        const double scale = tube->table != NULL ? of_table : of_gaussian;
        uniforms.tube[0] = (float)sqrt(rim);
        uniforms.tube[1] = (float)((1.0 + LR_LISTMODE_RIM) / (LR_LISTMODE_RIM * rim * scale));
        uniforms.tube[2] = (float)(rim * scale);
        uniforms.tube[3] = (float)scale;
        uniforms.unit[2] = (float)(tube->table != NULL ? last : half * half * scale);
    } else if (model->kernel == LR_LISTMODE_EXACT) {
        const int *samples = model->samples;
        uniforms.tube[0] = (float)(0.5 / (LR_PI * samples[0] * samples[1] * samples[2]));
        for (int k = 0; k < 3; k++) {
            uniforms.slab[k] = samples[axes[k]];
            uniforms.tube[1 + k] = (float)(1.0 / samples[axes[k]]);
        }
    }
    return uniforms;
}

lr_status lr_listmode_run_program(struct lr_listmode_compute *compute, int number, const void *uniforms, int64_t bytes,
                                  struct gl_pass *pass)
{
    pass->program = lr_listmode_program(compute, number);
    if (pass->program == NULL) return LR_FAILED;
    pass->label = gl_program_label(pass->program);
    pass->uniforms = uniforms;
    pass->uniform_bytes = bytes;
    return gl_pass_run(compute->ctx, pass);
}

lr_status lr_listmode_run(struct lr_listmode_compute *compute, int number, const struct lr_listmode_pass *uniforms,
                          struct gl_pass *pass)
{
    pass->barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT;
    return lr_listmode_run_program(compute, number, uniforms, sizeof(*uniforms), pass);
}

/* --- how much a thread may do --- */

int64_t lr_listmode_most_shares(const struct lr_listmode_compute *compute)
{
    const struct lr_listmode_model *model = compute->params.model;
    if (model->kernel == LR_LISTMODE_EXACT) return compute->exact.plane_points;
    if (model->kernel == LR_LISTMODE_LINE) return 4;
    int64_t most = 0;
    const double reach_mm = sqrt(2.0 * lr_listmode_rim(&model->tube));
    for (int axis = 0; axis < 3; axis++) {
        int64_t shares = 1;
        for (int k = 0; k < 3; k++) {
            const double width = 2.0 * reach_mm / model->grid.voxel_mm[k];
            shares *= k != axis ? (int64_t)width + 2 : 1;
        }
        most = shares > most ? shares : most;
    }
    return most;
}

int lr_listmode_all_slices(const struct lr_listmode_compute *compute, int axis)
{
    const struct lr_listmode_model *model = compute->params.model;
    return model->grid.size[axis] * model->samples[axis];
}

int lr_listmode_slices_at_once(const struct lr_listmode_compute *compute, int axis)
{
    /* The rounds that loops take for a piece of a face. ROUNDS_OF_CUTS: for a polygon that is cut four times and
     * gets one more corner by each cut. ROUNDS_OF_STRIP: for a strip. */
    enum { ROUNDS_OF_CUTS = 1 + 4 + 4 + 5 + 6 + 7 + 6, ROUNDS_OF_STRIP = 2 };
    const struct lr_listmode_exact *exact = &compute->exact;
    const int size = lr_listmode_all_slices(compute, axis);
    if (!gl_context_limits(compute->ctx)->small_batches) return size;

    /* The loops of exact elements run over points, over rows of points, and over the pieces of a face. For other
     * elements, loops run twice over shares and over rows of shares, which may take half of the rounds. Loops over
     * slabs may take the other half. */
    const int64_t of_piece = exact->is_leaning ? ROUNDS_OF_CUTS : ROUNDS_OF_STRIP;
    const int64_t slices = lr_listmode_is_exact(compute)
                               ? GL_MOST_ROUNDS_SOFTWARE / (exact->plane_points * (1 + of_piece * exact->pieces) + 2)
                               : GL_MOST_ROUNDS_SOFTWARE / 2 / (4 * lr_listmode_most_shares(compute) + 4);
    return slices < size ? (int)slices : size;
}

void lr_listmode_cut_slabs(const struct lr_listmode_compute *compute, struct lr_listmode_pass *uniforms)
{
    const int cells = lr_listmode_cells(compute), plane = uniforms->size[1] * uniforms->size[2];
    const int rows = plane <= cells ? uniforms->size[2] : cells / uniforms->size[1];
    int lines = LR_LISTMODE_LINES_OF_THREAD, slices = plane <= cells ? cells / plane : 1;
    if (gl_context_limits(compute->ctx)->small_batches) {
        const int64_t rounds = 4 * lr_listmode_most_shares(compute) + 4;
        const int64_t most = GL_MOST_ROUNDS_SOFTWARE / 2 / rounds;
        slices = slices < most ? slices : (int)most;
        lines = most / slices < lines ? (int)(most / slices) : lines;
    }
    uniforms->slab[0] = slices;
    uniforms->slab[1] = rows;
    uniforms->slab[2] = (uniforms->size[2] + rows - 1) / rows;
    uniforms->slab[3] = lines * LR_EVENTS_GROUP;
}
