/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanner and the image as the programs of the method pairs see them. */
#include "correspondence/compute/pairs/pairs.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "common/bindings.h"
#include "gl/vectors.h"
#include "model/scanner/coincidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *shader, *label;
} descriptions[LR_NUM_PAIRS_PROGRAMS] = {
    [LR_PAIRS_FORWARD] = {"correspondence/pairs/forward.comp", "forward by pairs"},
    [LR_PAIRS_BACK] = {"correspondence/pairs/back.comp", "back by pairs"},
    [LR_PAIRS_ROWS] = {"correspondence/pairs/rows.comp", "matrix elements by pairs"},
    [LR_PAIRS_POINT_ROWS] = {"correspondence/pairs/rows.comp", "matrix elements of points by pairs"},
};

struct gl_program *lr_pairs_program(struct lr_pairs *pairs, enum lr_pairs_program which)
{
    const bool anywhere = which == LR_PAIRS_POINT_ROWS;
    struct gl_define defines[6] = {{0}};
    int next = 0;
    if (pairs->programs[which] != NULL) return pairs->programs[which];
    if (pairs->may_be_near || anywhere) defines[next++].name = "NEAR";
    if (pairs->meets_horizon || anywhere) defines[next++].name = "HORIZON";
    if (pairs->has_masks) defines[next++].name = "MASKS";
    if (gl_context_limits(pairs->ctx)->software) defines[next++].name = "LIMITED_LOOPS";
    if (which == LR_PAIRS_FORWARD && pairs->params.deterministic) defines[next].name = "FIXED";
    pairs->programs[which] = gl_program_start(
        pairs->ctx, &(struct gl_program_params){
                        .compute = descriptions[which].shader, .defines = defines, .label = descriptions[which].label});
    return pairs->programs[which];
}

/* `struct PairModule`. */
struct pair_module {
    double centre[4], u[4], v[4], normal[4], cells[4];
    int32_t crystals[4], unused[4];
};
_Static_assert(sizeof(struct pair_module) == 192, "the shaders' layout");

/* `struct ModulePair`. */
struct module_pair {
    uint32_t i, j, first, mask;
};

struct pair_mask {
    uint32_t kind, offset_a, offset_b, unused;
};

/* shaders/correspondence/pairs/pairs.glsl cuts crystals into parts if their angular size, in radian, exceeds this. */
static const double largest_part = 0.03;

/* The program without HORIZON needs all parts of a module to be this far beyond the point, along the other's normal. */
static const double least_rise_mm = 1e-3;

/* Finds the lowest and the highest place of the grid's box over a module's plane, mm. */
static void grid_heights(const struct lr_pairs *pairs, int module, double heights[2])
{
    const lr_grid *grid = pairs->params.grid;
    const double *normal = pairs->params.scanner->modules[module].normal;
    double centre[3];
    lr_scanner_detection_centre(pairs->params.scanner, module, centre);
    heights[0] = heights[1] = 0.0;
    for (int k = 0; k < 3; k++) {
        const double low = grid->origin_mm[k] - 0.5 * grid->voxel_mm[k] - centre[k];
        const double high = low + grid->size[k] * grid->voxel_mm[k];
        heights[0] += normal[k] * (normal[k] > 0.0 ? low : high);
        heights[1] += normal[k] * (normal[k] > 0.0 ? high : low);
    }
}

static bool meets_horizon(const struct lr_pairs *pairs, int module, int other)
{
    double heights[2];
    grid_heights(pairs, module, heights);

    /* The lowest place of the other module over the plane of `module`, compared with the grid's highest place. */
    const lr_scanner *scanner = pairs->params.scanner;
    const double *normal = scanner->modules[module].normal;
    const lr_module *box = &scanner->modules[other];
    double from[3], centre[3], offset[3];
    lr_scanner_detection_centre(scanner, module, from);
    lr_scanner_detection_centre(scanner, other, centre);
    vec_sub(centre, from, offset);
    return (vec_dot(normal, offset) - fabs(vec_dot(normal, box->u)) * 0.5 * box->crystals[0] * box->pitch_mm[0] -
            fabs(vec_dot(normal, box->v)) * 0.5 * box->crystals[1] * box->pitch_mm[1]) -
               heights[1] <
           least_rise_mm;
}

lr_status lr_pairs_upload_scene(struct lr_pairs *pairs)
{
    const lr_scanner *scanner = pairs->params.scanner;
    const lr_lors *lors = pairs->params.lors;
    const lr_log *log = pairs->params.log;
    for (int64_t k = 0; k < lors->num_pairs; k++) {
        const int i = lors->pairs[k][0], j = lors->pairs[k][1];
        if (!pairs->may_be_near) {
            /* Crystals of the farther module matter, so the larger of the two heights counts. */
            const double *face_i = scanner->modules[i].face_mm, *face_j = scanner->modules[j].face_mm;
            double on_i[2], on_j[2];
            grid_heights(pairs, i, on_i);
            grid_heights(pairs, j, on_j);
            const double nearest = fmax(fmax(on_i[0], on_j[0]), 0.0);
            const double largest = fmax(fmax(face_i[0], face_i[1]), fmax(face_j[0], face_j[1]));
            pairs->may_be_near = largest > largest_part * nearest;
        }
        pairs->meets_horizon = pairs->meets_horizon || meets_horizon(pairs, i, j) || meets_horizon(pairs, j, i);
    }

    const int count = scanner->num_modules;
    struct pair_module *modules = lr_alloc(count, sizeof(*modules), "the scanner's modules", log);
    if (modules == NULL) return LR_FAILED;
    for (int m = 0; m < count; m++) {
        const lr_module *module = &scanner->modules[m];
        modules[m] = (struct pair_module){
            .cells = {module->pitch_mm[0], module->pitch_mm[1], module->face_mm[0], module->face_mm[1]},
            .crystals = {module->crystals[0], module->crystals[1], module->crystals[0] * module->crystals[1], 0},
        };
        lr_scanner_detection_centre(scanner, m, modules[m].centre);
        memcpy(modules[m].u, module->u, sizeof(module->u));
        memcpy(modules[m].v, module->v, sizeof(module->v));
        memcpy(modules[m].normal, module->normal, sizeof(module->normal));
    }
    pairs->modules = lr_data_buffer(pairs->ctx, "modules of pairs", count * (int64_t)sizeof(*modules), modules);
    free(modules);
    if (pairs->modules == NULL) return LR_FAILED;

    const struct lr_coincidence_masks *masks = lors->masks;
    struct pair_mask *entries = lr_alloc(masks->num_pairs, sizeof(*entries), "coincidence masks", log);
    if (entries == NULL) return LR_FAILED;
    for (int64_t k = 0; k < masks->num_pairs; k++) {
        const struct lr_pair_mask *mask = &masks->pairs[k];
        entries[k] = (struct pair_mask){mask->kind, mask->offset_a, mask->offset_b, 0};
        pairs->has_masks = pairs->has_masks || mask->kind != LR_MASK_ALL;
    }
    pairs->mask_entries =
        lr_data_buffer(pairs->ctx, "coincidence masks", masks->num_pairs * (int64_t)sizeof(*entries), entries);
    free(entries);
    pairs->mask_words = lr_data_buffer(pairs->ctx, "coincidence mask words",
                                       masks->num_words * (int64_t)sizeof(*masks->words), masks->words);
    return pairs->mask_entries && pairs->mask_words ? LR_OK : LR_FAILED;
}

struct gl_buffer *lr_pairs_upload_list(const struct lr_pairs *pairs, const struct lr_pair_list *list,
                                       const int64_t range[2])
{
    const lr_lors *lors = pairs->params.lors;
    const int64_t count = range[1] - range[0];
    struct module_pair *out = lr_alloc(count, sizeof(*out), "pairs of modules", pairs->params.log);
    if (out == NULL) return NULL;
    int64_t first = 0;
    for (int64_t k = 0; k < count; k++) {
        const int64_t pair = list->pairs != NULL ? list->pairs[range[0] + k] : range[0] + k;
        const bool is_masked = lors->masks->pairs[pair].kind != LR_MASK_ALL;
        out[k] = (struct module_pair){.i = (uint32_t)lors->pairs[pair][0],
                                      .j = (uint32_t)lors->pairs[pair][1],
                                      .first = (uint32_t)first,
                                      .mask = is_masked ? (uint32_t)pair : LR_NONE};
        first += lors->offsets[pair + 1] - lors->offsets[pair];
    }
    struct gl_buffer *buffer = lr_data_buffer(pairs->ctx, "pairs of modules", count * (int64_t)sizeof(*out), out);
    free(out);
    return buffer;
}

enum { CHECK_ROUNDS = 8 };

struct lr_pairs_pass lr_pairs_uniforms(const struct lr_pairs *pairs)
{
    const lr_grid *grid = pairs->params.grid;
    const int *samples = pairs->params.samples;
    struct lr_pairs_pass pass = {.scale = {(float)(1.0 / ((double)samples[0] * samples[1] * samples[2]))}};
    pass.list[3] = CHECK_ROUNDS;
    for (int k = 0; k < 3; k++) {
        pass.num_voxels[k] = grid->size[k];
        pass.num_samples[k] = samples[k];
        pass.first_voxel[k] = grid->origin_mm[k];
        pass.voxel[k] = grid->voxel_mm[k];
    }
    return pass;
}

void lr_pairs_bind_scene(const struct lr_pairs *pairs, struct gl_pass *pass)
{
    pass->buffers[LR_BIND_PAIR_MODULES].buffer = pairs->modules;
    pass->buffers[LR_BIND_MASK_ENTRIES].buffer = pairs->mask_entries;
    pass->buffers[LR_BIND_MASK_WORDS].buffer = pairs->mask_words;
    pass->buffers[LR_BIND_PAIR_STATE].buffer = pairs->state;
}
