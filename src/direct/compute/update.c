/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "direct/compute/direct.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "model/lors/selection.h"

#include <stdlib.h>
#include <string.h>

/* The views of a subset, by their numbers. */
struct block {
    int *views; /* owned [num_views] */
    int num_views;
    struct lr_direct_image sensitivity; /* for EM; made when first needed */
};

struct lr_direct_resident {
    struct lr_direct_view_data *views; /* [num_views] */
    struct block *blocks;              /* owned [num_blocks], one per subset; NULL = none */
    int num_blocks;
    bool is_ramla; /* true = RAMLA; false = EM, whose sensitivities are kept */
    struct lr_direct_image image, histo, back;
    struct lr_direct_image sum; /* back-projection of a block of several views */
    /* The members below are NULL if other functions replace the OpenGL passes. */
    struct gl_program *discrepancy[4]; /* index: bit 0 = has an additive term, bit 1 = has factors */
    struct gl_program *combine;
    struct gl_stopwatch *watch;
};

static void destroy_data(struct lr_direct_compute *compute)
{
    struct lr_direct_resident *resident = compute->resident;
    for (int k = 0; resident->blocks != NULL && k < resident->num_blocks; k++) {
        lr_direct_image_finish(&resident->blocks[k].sensitivity);
        free(resident->blocks[k].views);
    }
    free(resident->blocks);
    resident->blocks = NULL;
    for (int k = 0; resident->views != NULL && k < compute->params.num_views; k++) {
        lr_direct_image_finish(&resident->views[k].counts);
        lr_direct_image_finish(&resident->views[k].additive);
        lr_direct_image_finish(&resident->views[k].factors);
    }
    lr_direct_image_finish(&resident->sum);
}

void lr_direct_resident_destroy(struct lr_direct_compute *compute)
{
    struct lr_direct_resident *resident = compute->resident;
    if (resident == NULL) return;
    destroy_data(compute);
    for (int k = 0; k < 4; k++) gl_program_destroy(resident->discrepancy[k]);
    gl_program_destroy(resident->combine);
    lr_direct_image_finish(&resident->back);
    lr_direct_image_finish(&resident->histo);
    lr_direct_image_finish(&resident->image);
    gl_stopwatch_destroy(resident->watch);
    free(resident->views);
    free(resident);
    compute->resident = NULL;
}

static lr_status open_resident(struct lr_direct_compute *compute)
{
    const lr_log *log = compute->params.log;
    if (compute->resident != NULL) return LR_OK;
    struct lr_direct_resident *resident = compute->resident = lr_alloc(1, sizeof(*resident), "updates", log);
    if (resident == NULL) return LR_FAILED;
    resident->views = lr_alloc(compute->params.num_views, sizeof(*resident->views), "histo-images", log);
    lr_status status = resident->views != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) status = lr_direct_image_init(&resident->image, &compute->layout, "image", true);
    if (status == LR_OK) status = lr_direct_image_init(&resident->histo, &compute->layout, "estimate of a view", true);
    if (status == LR_OK) status = lr_direct_image_init(&resident->back, &compute->layout, "correction of a view", true);
    if (status == LR_OK && compute->functions == NULL)
        resident->watch = gl_stopwatch_create(compute->ctx, "DIRECT updates");
    if (status != LR_OK) lr_direct_resident_destroy(compute);
    return status;
}

/* --- data in and out --- */

static lr_status open_updates(void *self, const struct lr_update_plan *plan, bool *has_room)
{
    struct lr_direct_compute *compute = self;
    const int64_t reported = gl_context_limits(compute->ctx)->memory_bytes;
    const double room = 0.5 * (double)(reported > 0 ? reported : lr_physical_memory());
    double bytes[2];
    /* bytes[0] is an image with margins, bytes[1] one without. */
    bytes[0] = bytes[1] = 4 * sizeof(float);
    const int inner[3] = {compute->layout.quads, compute->layout.size[0], compute->layout.size[1]};
    for (int k = 0; k < 3; k++) {
        bytes[0] *= inner[k] + 2 * compute->layout.margin[k];
        bytes[1] *= inner[k];
    }

    const int data = 1 + plan->has_additive + plan->has_factors;
    const int kept = plan->algorithm == LR_ALGORITHM_RAMLA ? 0 : plan->num_subsets;
    *has_room = bytes[0] * kept + bytes[1] * data * compute->params.num_views <= room;

    if (!*has_room) return LR_OK;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = open_resident(compute);
    struct lr_direct_resident *resident = compute->resident;
    if (status == LR_OK) {
        destroy_data(compute);
        resident->is_ramla = plan->algorithm == LR_ALGORITHM_RAMLA;
        resident->num_blocks = plan->num_subsets;
        resident->blocks =
            lr_alloc(plan->num_subsets, sizeof(*resident->blocks), "subsets of views", compute->params.log);
    }
    gl_context_release(compute->ctx);
    if (status == LR_OK && resident->blocks == NULL) return LR_FAILED;
    return status;
}

static void close_updates(void *self)
{
    struct lr_direct_compute *compute = self;
    if (compute->resident != NULL && gl_context_make_current_to_free(compute->ctx)) {
        destroy_data(compute);
        gl_context_release(compute->ctx);
    }
}

static lr_status load(void *self, int subset, const struct lr_update_data *data)
{
    struct lr_direct_compute *compute = self;
    struct block *block = &compute->resident->blocks[subset];
    const bool is_all = lr_selection_is_all(data->part);
    const int count = is_all ? compute->params.num_views : (int)data->part->num_pairs;
    free(block->views);
    block->num_views = count;
    block->views = lr_alloc(count, sizeof(*block->views), "views", compute->params.log);
    if (block->views == NULL) return LR_FAILED;
    for (int k = 0; k < count; k++) block->views[k] = is_all ? k : data->part->pairs[k];
    LR_TRY(gl_context_make_current(compute->ctx));
    lr_direct_image_finish(&block->sensitivity);
    lr_status status = LR_OK;
    for (int k = 0; status == LR_OK && k < count; k++) {
        struct lr_direct_view_data *view = &compute->resident->views[block->views[k]];
        const struct {
            const char *label;
            const lr_vector *values; /* NULL = the data have none */
            struct lr_direct_image *image;
        } loads[] = {{"counts", data->measured, &view->counts},
                     {"additive term", data->additive, &view->additive},
                     {"factors", data->factors, &view->factors}};
        for (int n = 0; n < 3; n++) lr_direct_image_finish(loads[n].image);
        for (int n = 0; status == LR_OK && n < 3; n++) {
            if (loads[n].values == NULL) continue;
            const lr_vector histo =
                lr_vector_part(loads[n].values, k * compute->views.num_voxels, compute->views.num_voxels);
            status = lr_direct_image_init(loads[n].image, &compute->layout, loads[n].label, false);
            if (status == LR_OK) status = lr_direct_copy_vector(compute, loads[n].image, &histo, true);
        }
    }
    gl_context_release(compute->ctx);
    return status;
}

static lr_status set_image(void *self, const lr_vector *image)
{
    struct lr_direct_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    lr_status status = open_resident(compute);
    if (status == LR_OK && compute->functions == NULL) {
        /* Both programs are built at the same time. The wait is here, so that no clock measures it. */
        struct gl_program *forward = lr_direct_open_program(compute, true);
        struct gl_program *back = lr_direct_open_program(compute, false);
        status = forward != NULL && back != NULL ? gl_program_wait(forward) : LR_FAILED;
        if (status == LR_OK) status = gl_program_wait(back);
    }
    if (status == LR_OK) status = lr_direct_copy_vector(compute, &compute->resident->image, image, true);
    gl_context_release(compute->ctx);
    return status;
}

static lr_status get_image(void *self, lr_vector *image)
{
    struct lr_direct_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = lr_direct_copy_vector(compute, &compute->resident->image, image, false);
    gl_context_release(compute->ctx);
    return status;
}

/* --- updates --- */

/* Describes a pass over all texels of an image. */
static struct gl_pass texel_pass(const struct lr_direct_pass *uniforms, const struct lr_direct_image *target)
{
    struct gl_pass pass = {
        .uniforms = uniforms,
        .uniform_bytes = sizeof(*uniforms),
        .barriers = lr_direct_barriers(),
    };
    const int *grid = uniforms->grid;
    lr_direct_groups((int64_t)grid[0] * grid[1] * grid[3], pass.groups);
    lr_direct_bind_target(&pass, target);
    return pass;
}

/* Replaces the estimate of a view in resident->histo by the values that are back-projected. */
static lr_status find_discrepancy(struct lr_direct_compute *compute, int view, int what)
{
    struct lr_direct_resident *resident = compute->resident;
    const struct lr_direct_view_data *data = &resident->views[view];
    if (compute->functions != NULL) return compute->functions->discrepancy(compute->self, what, data, &resident->histo);
    struct lr_direct_pass uniforms = lr_direct_pass_of(compute);
    uniforms.counts[0] = what;
    struct gl_pass pass = texel_pass(&uniforms, &resident->histo);
    pass.label = "DIRECT discrepancy";
    const int which = (data->additive.texture ? 1 : 0) + (data->factors.texture ? 2 : 0);
    static const char *const defines[4][3] = {
        {NULL}, {"ADDITIVE", NULL}, {"FACTORS", NULL}, {"ADDITIVE", "FACTORS", NULL}};
    struct gl_program **program = &compute->resident->discrepancy[which];
    if (*program == NULL) *program = lr_direct_program(compute, "direct/discrepancy.comp", defines[which]);
    pass.program = *program;

    pass.textures[LR_UNIT_DIRECT_COUNTS] = data->counts.texture;
    pass.textures[LR_UNIT_DIRECT_ADDITIVE] = data->additive.texture;
    pass.textures[LR_UNIT_DIRECT_FACTORS] = data->factors.texture;
    return pass.program ? gl_pass_run(compute->ctx, &pass) : LR_FAILED;
}

static lr_status combine(struct lr_direct_compute *compute, const struct lr_direct_image *image,
                         const struct lr_direct_change *change)
{
    if (compute->functions != NULL) return compute->functions->change(compute->self, change, image);
    struct lr_direct_pass uniforms = lr_direct_pass_of(compute);
    uniforms.counts[0] = change->what;
    memcpy(&uniforms.counts[1], &change->lambda, sizeof(change->lambda));
    struct gl_pass pass = texel_pass(&uniforms, image);
    pass.label = "DIRECT update";
    if (compute->resident->combine == NULL)
        compute->resident->combine = lr_direct_program(compute, "direct/combine.comp", NULL);
    pass.program = compute->resident->combine;
    lr_direct_bind_source(&pass, change->by);
    if (change->sensitivity != NULL) {
        pass.textures[LR_UNIT_DIRECT_FACTORS] = change->sensitivity->texture;
        pass.buffers[LR_BIND_DIRECT_SENSITIVITY].buffer = change->sensitivity->buffer;
    }
    return pass.program != NULL ? gl_pass_run(compute->ctx, &pass) : LR_FAILED;
}

/* Makes an image for updates unless it exists. */
static lr_status open_image(struct lr_direct_compute *compute, const char *label, struct lr_direct_image *image)
{
    if (lr_direct_image_exists(image)) return LR_OK;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = lr_direct_image_init(image, &compute->layout, label, true);
    gl_context_release(compute->ctx);
    return status;
}

/* Computes sum = K^T histo for the first view of a block, and sum += K^T histo for the others. */
static lr_status add_back(struct lr_direct_compute *compute, bool is_first, int view, const struct lr_direct_image *sum)
{
    const struct lr_direct_image *histo = &compute->resident->histo;
    const struct lr_direct_image *back = &compute->resident->back;
    LR_TRY(lr_direct_run(compute, false, view, histo, is_first ? sum : back));
    return is_first ? LR_OK : combine(compute, sum, &(struct lr_direct_change){.what = LR_DIRECT_DO_ADD, .by = back});
}

static lr_status add_up_sensitivity(struct lr_direct_compute *compute, const struct block *block,
                                    struct lr_direct_image *sum)
{
    LR_TRY(open_image(compute, "sensitivity", sum));
    for (int k = 0; k < block->num_views; k++) {
        LR_TRY(find_discrepancy(compute, block->views[k], LR_DIRECT_DO_SENSITIVITY));
        LR_TRY(add_back(compute, k == 0, block->views[k], sum));
    }
    return LR_OK;
}

static lr_status update(struct lr_direct_compute *compute, const struct lr_update *update)
{
    struct lr_direct_resident *resident = compute->resident;
    struct block *block = &resident->blocks[update->subset];
    struct lr_direct_image *sum = block->num_views > 1 ? &resident->sum : &resident->back;
    const bool is_ramla = resident->is_ramla;
    const struct lr_direct_change change = {
        .what = is_ramla ? LR_DIRECT_DO_RAMLA : LR_DIRECT_DO_EM,
        .lambda = (float)update->lambda,
        .by = sum,
        .sensitivity = is_ramla ? NULL : &block->sensitivity,
    };
    if (!is_ramla && !lr_direct_image_exists(&block->sensitivity))
        LR_TRY(add_up_sensitivity(compute, block, &block->sensitivity));
    LR_TRY(open_image(compute, "corrections of a block", sum));
    for (int k = 0; k < block->num_views; k++) {
        const int view = block->views[k];
        LR_TRY(lr_direct_run(compute, true, view, &resident->image, &resident->histo));
        LR_TRY(find_discrepancy(compute, view, change.what));
        LR_TRY(add_back(compute, k == 0, view, sum));
    }
    return combine(compute, &resident->image, &change);
}

/* Functions that replace the passes of OpenGL make the context current themselves where they need it: doing so in every
 * update would take too long. */
static lr_status run_update(void *self, const struct lr_update *next)
{
    struct lr_direct_compute *compute = self;
    const struct lr_direct_functions *functions = compute->functions;
    if (functions != NULL) {
        functions->begin_lap(compute->self);
    } else {
        LR_TRY(gl_context_make_current(compute->ctx));
        gl_stopwatch_begin(compute->resident->watch);
    }
    const lr_status status = update(compute, next);
    if (functions != NULL) {
        functions->end_lap(compute->self);
    } else {
        gl_stopwatch_end(compute->resident->watch);
        gl_context_release(compute->ctx);
    }
    return status;
}

static lr_status find_sensitivity(void *self, int subset, lr_vector *image)
{
    struct lr_direct_compute *compute = self;
    struct lr_direct_resident *resident = compute->resident;
    struct block *block = &resident->blocks[subset];
    LR_TRY(gl_context_make_current(compute->ctx));
    struct lr_direct_image *sum = resident->is_ramla ? &resident->sum : &block->sensitivity;
    lr_status status = LR_OK;
    if (resident->is_ramla || !lr_direct_image_exists(sum)) status = add_up_sensitivity(compute, block, sum);
    if (status == LR_OK) status = lr_direct_copy_vector(compute, sum, image, false);
    gl_context_release(compute->ctx);
    return status;
}

static double read_seconds(void *self)
{
    struct lr_direct_compute *compute = self;
    double seconds = 0;
    if (compute->functions != NULL) return compute->functions->read_laps(compute->self);
    if (compute->resident != NULL && gl_context_make_current_to_free(compute->ctx)) {
        seconds = gl_stopwatch_seconds(compute->resident->watch);
        gl_stopwatch_reset(compute->resident->watch);
        gl_context_release(compute->ctx);
    }
    return seconds;
}

const struct lr_backend_updates lr_direct_compute_updates = {
    .open = open_updates,
    .load = load,
    .sensitivity = find_sensitivity,
    .set_image = set_image,
    .get_image = get_image,
    .run = run_update,
    .seconds = read_seconds,
    .close = close_updates,
};

/* --- timing --- */

lr_status lr_direct_compute_time(void *self, const lr_direct_task *task, double *device_seconds)
{
    struct lr_direct_compute *compute = self;
    struct lr_direct_resident *resident = compute->resident;
    lr_status status = LR_OK;
    LR_TRY(gl_context_make_current(compute->ctx));
    if (task->work == LR_DIRECT_WORK_READING) {
        float *values = lr_alloc(compute->views.num_voxels, sizeof(*values), "an image", compute->params.log);
        status = values != NULL ? lr_direct_fetch(compute, &resident->image, values) : LR_FAILED;
        free(values);
    } else if (task->work != LR_DIRECT_WORK_TABLES) {
        compute->is_unordered = true;
        status = lr_direct_run_task(compute, task, &resident->image, &resident->histo, device_seconds);
        compute->is_unordered = false;
    } else if (compute->functions != NULL) {
        status = compute->functions->tables(compute->self, task, device_seconds);
    } else {
        gl_stopwatch_reset(compute->watch);
        gl_stopwatch_begin(compute->watch);
        for (int k = 0; status == LR_OK && k < task->num_views; k++) {
            lr_direct_drop_tables(compute, task->views[k]);
            status = lr_direct_open_tables(compute, task->views[k]) ? LR_OK : LR_FAILED;
        }
        gl_stopwatch_end(compute->watch);
        *device_seconds = gl_stopwatch_seconds(compute->watch);
    }
    if (status == LR_OK && task->work != LR_DIRECT_WORK_READING) status = gl_context_check(compute->ctx, "timing");
    gl_context_release(compute->ctx);
    return status;
}
