/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/direct/update.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"

#include <stdlib.h>
#include <string.h>

struct lr_direct_resident {
    struct lr_direct_view_data *views;     /* [num_views] */
    struct lr_direct_image *sensitivities; /* [num_views], by the blocks' numbers */
    struct lr_direct_image image, histo, back;
    struct lr_direct_image sum; /* of blocks of several views */
    /* Of the passes, which other functions replace. */
    struct gl_program *discrepancy[4]; /* bit 0: additive, bit 1: factors */
    struct gl_program *combine;
    struct gl_stopwatch *watch;
};

static void destroy_view(struct lr_direct_view_data *data)
{
    lr_direct_image_finish(&data->counts);
    lr_direct_image_finish(&data->additive);
    lr_direct_image_finish(&data->factors);
}

static void forget_sensitivities(struct lr_direct_compute *compute)
{
    struct lr_direct_resident *resident = compute->resident;
    for (int k = 0; k < compute->params.num_views; k++) {
        lr_direct_image_finish(&resident->sensitivities[k]);
    }
}

void lr_direct_resident_destroy(struct lr_direct_compute *compute)
{
    struct lr_direct_resident *resident = compute->resident;
    if (resident == NULL) {
        return;
    }
    if (resident->sensitivities != NULL) {
        forget_sensitivities(compute);
    }
    for (int k = 0; resident->views != NULL && k < compute->params.num_views; k++) {
        destroy_view(&resident->views[k]);
    }
    for (int k = 0; k < 4; k++) {
        gl_program_destroy(resident->discrepancy[k]);
    }
    gl_program_destroy(resident->combine);
    lr_direct_image_finish(&resident->sum);
    lr_direct_image_finish(&resident->back);
    lr_direct_image_finish(&resident->histo);
    lr_direct_image_finish(&resident->image);
    gl_stopwatch_destroy(resident->watch);
    free(resident->sensitivities);
    free(resident->views);
    free(resident);
    compute->resident = NULL;
}

static lr_status init(struct lr_direct_compute *compute, struct lr_direct_resident *resident)
{
    const int num_views = compute->params.num_views;
    const lr_log *log = compute->params.log;
    resident->views = lr_alloc(num_views, sizeof(*resident->views), "histo-images", log);
    resident->sensitivities =
        lr_alloc(num_views, sizeof(*resident->sensitivities), "histo-images", log);
    LR_TRY(lr_direct_image_init(&resident->image, &compute->layout, "image", true));
    LR_TRY(lr_direct_image_init(&resident->histo, &compute->layout, "estimate of a view", true));
    LR_TRY(lr_direct_image_init(&resident->back, &compute->layout, "correction of a view", true));
    if (compute->functions == NULL) {
        resident->watch = gl_stopwatch_create(compute->ctx, "DIRECT updates");
    }
    return resident->views && resident->sensitivities ? LR_OK : LR_FAILED;
}

static lr_status open_resident(struct lr_direct_compute *compute)
{
    if (compute->resident != NULL) {
        return LR_OK;
    }
    compute->resident = lr_alloc(1, sizeof(*compute->resident), "updates", compute->params.log);
    const lr_status status = compute->resident ? init(compute, compute->resident) : LR_FAILED;
    if (status != LR_OK) {
        lr_direct_resident_destroy(compute);
    }
    return status;
}

/* --- data in and out --- */

static lr_status load_image(struct lr_direct_compute *compute, const char *label,
                            const float *values, struct lr_direct_image *image)
{
    if (values == NULL) {
        return LR_OK;
    }
    LR_TRY(lr_direct_image_init(image, &compute->layout, label, false));
    return lr_direct_put(compute, image, values);
}

static lr_status load(struct lr_direct_compute *compute, int view, const lr_direct_data *data)
{
    LR_TRY(open_resident(compute));
    struct lr_direct_view_data *kept = &compute->resident->views[view];
    destroy_view(kept);
    forget_sensitivities(compute);
    LR_TRY(load_image(compute, "counts", data->counts, &kept->counts));
    LR_TRY(load_image(compute, "additive term", data->additive, &kept->additive));
    return load_image(compute, "factors", data->factors, &kept->factors);
}

lr_status lr_direct_compute_load(void *self, int view, const lr_direct_data *data)
{
    struct lr_direct_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = load(compute, view, data);
    gl_context_release(compute->ctx);
    return status;
}

lr_status lr_direct_compute_set_image(void *self, const float *image)
{
    struct lr_direct_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    lr_status status = open_resident(compute);
    if (status == LR_OK) {
        status = lr_direct_open_programs(compute);
    }
    if (status == LR_OK) {
        status = lr_direct_put(compute, &compute->resident->image, image);
    }
    gl_context_release(compute->ctx);
    return status;
}

lr_status lr_direct_compute_get_image(void *self, float *image)
{
    struct lr_direct_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = lr_direct_fetch(compute, &compute->resident->image, image);
    gl_context_release(compute->ctx);
    return status;
}

/* --- updates --- */

static struct gl_program *open_discrepancy(struct lr_direct_compute *compute, int which)
{
    static const char *const defines[4][3] = {
        {NULL}, {"ADDITIVE", NULL}, {"FACTORS", NULL}, {"ADDITIVE", "FACTORS", NULL}};
    struct gl_program **program = &compute->resident->discrepancy[which];
    if (*program == NULL) {
        *program = lr_direct_program(compute, "direct/discrepancy.comp", defines[which]);
    }
    return *program;
}

/* A pass over every texel. */
static struct gl_pass texel_pass(const struct lr_direct_pass *uniforms,
                                 const struct lr_direct_image *target)
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

/* histo = what the view projects back. */
static lr_status find_discrepancy(struct lr_direct_compute *compute, int view, int what)
{
    struct lr_direct_resident *resident = compute->resident;
    const struct lr_direct_view_data *data = &resident->views[view];
    if (compute->functions != NULL) {
        return compute->functions->discrepancy(compute->self, what, data, &resident->histo);
    }
    struct lr_direct_pass uniforms = lr_direct_pass_of(compute);
    uniforms.counts[0] = what;
    struct gl_pass pass = texel_pass(&uniforms, &resident->histo);
    pass.label = "DIRECT discrepancy";
    pass.program = open_discrepancy(compute, (data->additive.texture ? 1 : 0) +
                                                 (data->factors.texture ? 2 : 0));
    pass.textures[LR_UNIT_DIRECT_COUNTS] = data->counts.texture;
    pass.textures[LR_UNIT_DIRECT_ADDITIVE] = data->additive.texture;
    pass.textures[LR_UNIT_DIRECT_FACTORS] = data->factors.texture;
    return pass.program ? gl_pass_run(compute->ctx, &pass) : LR_FAILED;
}

static lr_status combine(struct lr_direct_compute *compute, const struct lr_direct_image *image,
                         const struct lr_direct_change *change)
{
    if (compute->functions != NULL) {
        return compute->functions->change(compute->self, change, image);
    }
    struct lr_direct_pass uniforms = lr_direct_pass_of(compute);
    uniforms.counts[0] = change->what;
    memcpy(&uniforms.counts[1], &change->lambda, sizeof(change->lambda));
    struct gl_pass pass = texel_pass(&uniforms, image);
    pass.label = "DIRECT update";
    if (compute->resident->combine == NULL) {
        compute->resident->combine = lr_direct_program(compute, "direct/combine.comp", NULL);
    }
    pass.program = compute->resident->combine;
    lr_direct_bind_source(&pass, change->by);
    if (change->sensitivity != NULL) {
        lr_direct_bind_sensitivity(&pass, change->sensitivity);
    }
    return pass.program != NULL ? gl_pass_run(compute->ctx, &pass) : LR_FAILED;
}

/* An image of the updates, made when it is first needed. */
static lr_status open_image(struct lr_direct_compute *compute, const char *label,
                            struct lr_direct_image *image)
{
    if (lr_direct_image_exists(image)) {
        return LR_OK;
    }
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = lr_direct_image_init(image, &compute->layout, label, true);
    gl_context_release(compute->ctx);
    return status;
}

/* sum = K^T histo by the first view of a block, and += by the others. */
static lr_status add_back(struct lr_direct_compute *compute, bool is_first, int view,
                          const struct lr_direct_image *sum)
{
    const struct lr_direct_image *histo = &compute->resident->histo;
    const struct lr_direct_image *back = &compute->resident->back;
    LR_TRY(lr_direct_run(compute, false, view, histo, is_first ? sum : back));
    return is_first ? LR_OK
                    : combine(compute, sum,
                              &(struct lr_direct_change){.what = LR_DIRECT_DO_ADD, .by = back});
}

static lr_status make_sensitivity(struct lr_direct_compute *compute,
                                  const struct lr_direct_step_params *step)
{
    struct lr_direct_image *sum = &compute->resident->sensitivities[step->number];
    if (lr_direct_image_exists(sum)) {
        return LR_OK;
    }
    LR_TRY(open_image(compute, "sensitivity", sum));
    for (int k = 0; k < step->num_views; k++) {
        LR_TRY(find_discrepancy(compute, step->views[k], LR_DIRECT_DO_SENSITIVITY));
        LR_TRY(add_back(compute, k == 0, step->views[k], sum));
    }
    return LR_OK;
}

static lr_status project_block(struct lr_direct_compute *compute,
                               const struct lr_direct_step_params *step,
                               const struct lr_direct_image **correction)
{
    struct lr_direct_resident *resident = compute->resident;
    const int what = step->rule == LR_DIRECT_RAMLA ? LR_DIRECT_DO_RAMLA : LR_DIRECT_DO_EM;
    struct lr_direct_image *sum = step->num_views > 1 ? &resident->sum : &resident->back;
    LR_TRY(open_image(compute, "corrections of a block", sum));
    for (int k = 0; k < step->num_views; k++) {
        const int view = step->views[k];
        LR_TRY(lr_direct_run(compute, true, view, &resident->image, &resident->histo));
        LR_TRY(find_discrepancy(compute, view, what));
        LR_TRY(add_back(compute, k == 0, view, sum));
    }
    *correction = sum;
    return LR_OK;
}

static lr_status update(struct lr_direct_compute *compute, const struct lr_direct_step_params *step)
{
    struct lr_direct_resident *resident = compute->resident;
    const struct lr_direct_image *correction = NULL;
    if (step->rule == LR_DIRECT_EM) {
        LR_TRY(make_sensitivity(compute, step));
    }
    LR_TRY(project_block(compute, step, &correction));
    const struct lr_direct_change change = {
        .what = step->rule == LR_DIRECT_RAMLA ? LR_DIRECT_DO_RAMLA : LR_DIRECT_DO_EM,
        .lambda = (float)step->lambda,
        .by = correction,
        .sensitivity = step->rule == LR_DIRECT_EM ? &resident->sensitivities[step->number] : NULL,
    };
    return combine(compute, &resident->image, &change);
}

/* Making the context current takes long enough to count in every update. */
static lr_status update_by_functions(struct lr_direct_compute *compute,
                                     const struct lr_direct_step_params *step)
{
    compute->functions->begin_lap(compute->self);
    const lr_status status = update(compute, step);
    compute->functions->end_lap(compute->self);
    return status;
}

lr_status lr_direct_compute_update(void *self, const struct lr_direct_step_params *step)
{
    struct lr_direct_compute *compute = self;
    if (compute->functions != NULL) {
        return update_by_functions(compute, step);
    }
    LR_TRY(gl_context_make_current(compute->ctx));
    gl_stopwatch_begin(compute->resident->watch);
    const lr_status status = update(compute, step);
    gl_stopwatch_end(compute->resident->watch);
    gl_context_release(compute->ctx);
    return status;
}

double lr_direct_compute_update_seconds(void *self)
{
    struct lr_direct_compute *compute = self;
    double seconds = 0;
    if (compute->functions != NULL) {
        return compute->functions->read_laps(compute->self);
    }
    if (compute->resident != NULL && gl_context_make_current(compute->ctx) == LR_OK) {
        seconds = gl_stopwatch_seconds(compute->resident->watch);
        gl_stopwatch_reset(compute->resident->watch);
        gl_context_release(compute->ctx);
    }
    return seconds;
}

/* --- timing --- */

static lr_status time_tables(struct lr_direct_compute *compute, const lr_direct_task *task,
                             double *device_seconds)
{
    lr_status status = LR_OK;
    if (compute->functions != NULL) {
        return compute->functions->tables(compute->self, task, device_seconds);
    }
    gl_stopwatch_reset(compute->watch);
    gl_stopwatch_begin(compute->watch);
    for (int k = 0; status == LR_OK && k < task->num_views; k++) {
        lr_direct_drop_tables(compute, task->views[k]);
        status = lr_direct_open_tables(compute, task->views[k]) ? LR_OK : LR_FAILED;
    }
    gl_stopwatch_end(compute->watch);
    *device_seconds = gl_stopwatch_seconds(compute->watch);
    return status;
}

static lr_status time_task(struct lr_direct_compute *compute, const lr_direct_task *task,
                           double *device_seconds)
{
    struct lr_direct_resident *resident = compute->resident;
    if (task->work == LR_DIRECT_WORK_TABLES) {
        LR_TRY(time_tables(compute, task, device_seconds));
        return gl_context_check(compute->ctx, "timing");
    }
    compute->is_unordered = true;
    const lr_status status =
        lr_direct_run_task(compute, task, &resident->image, &resident->histo, device_seconds);
    compute->is_unordered = false;
    return status == LR_OK ? gl_context_check(compute->ctx, "timing") : status;
}

lr_status lr_direct_compute_time(void *self, const lr_direct_task *task, double *device_seconds)
{
    struct lr_direct_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = time_task(compute, task, device_seconds);
    gl_context_release(compute->ctx);
    return status;
}
