/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What projections of the family `direct` are measured against: the same by Fourier transforms, and
 * the first paper's loop, which takes images to the device and back for every projection. */
#include "direct.h"

#include <stdlib.h>

/* Transforms of a batch hold at most so much. */
#define BATCH_BYTES ((int64_t)128 << 20)

/* --- Fourier transforms --- */

/* An oblique one. */
static int choose_view(const struct direct_case *what)
{
    return what->azimuths * what->tilts > 7 ? 7 : 0;
}

/* The same everywhere, as at the centre. */
static lr_resolution flatten(const lr_resolution *resolution)
{
    lr_resolution flat = *resolution;
    flat.radial_mm = lr_resolution_radial_mm(resolution, 0);
    flat.model = LR_RADIAL_INVARIANT;
    return flat;
}

static lr_status compare_all(const struct direct_bench *bench, const struct fft_case *what,
                             struct direct_outcome *outcome)
{
    for (const struct fft_library *library = fft_libraries; library->name != NULL; library++) {
        const char *missing = fft_missing(library);
        for (int padded = 0; missing == NULL && padded < 2; padded++) {
            CLI_TRY(fft_compare(library, what, padded != 0, &outcome->peers[outcome->num_peers]));
            outcome->num_peers++;
        }
        if (missing != NULL && bench->num_outcomes == 0)
            report_info(bench->report, "%s is left out: %s", library->name, missing);
    }
    return LR_OK;
}

static lr_status compare_with(const struct direct_bench *bench, lr_operator *op, const float *image,
                              struct direct_outcome *outcome)
{
    const lr_operator_info *info = lr_operator_get_info(op);
    const lr_direct_info *family = lr_direct_get_info(op);
    const lr_log *log = &bench->report->log;
    const lr_direct_kernel kernel = {.resolution = flatten(&outcome->what->resolution)};
    lr_direct_tables *tables = lr_direct_tables_create(
        &(lr_direct_tables_params){.grid = &family->grid, .view = family->views[0], .kernel = kernel, .log = log});
    float *projected = common_floats(bench->report, info->num_voxels, "a projection");
    const lr_vector x = lr_vector_of_floats(image, info->num_voxels);
    lr_vector y = lr_vector_of_floats(projected, info->num_voxels);
    lr_status status = tables != NULL && projected != NULL ? lr_operator_forward(op, NULL, &x, &y) : LR_FAILED;
    const int views = outcome->what->azimuths * outcome->what->tilts;
    const int64_t fit = BATCH_BYTES / (info->num_voxels * 2 * (int64_t)sizeof(float));
    if (status == LR_OK) {
        status = compare_all(bench,
                             &(struct fft_case){.tables = tables,
                                                .image = image,
                                                .projected = projected,
                                                .volumes = fit < views ? (int)fit : views,
                                                .threads = info->threads,
                                                .repeat = bench->repeat,
                                                .seconds = 0.25 * bench->seconds,
                                                .log = log},
                             outcome);
    }
    free(projected);
    lr_direct_tables_destroy(tables);
    return status;
}

lr_status direct_measure_peers(const struct direct_bench *bench, const float *image, struct direct_outcome *outcome)
{
    const lr_resolution flat = flatten(&outcome->what->resolution);
    lr_operator *op = direct_open_case(bench, outcome, &flat, choose_view(outcome->what));
    const lr_status status = op != NULL ? compare_with(bench, op, image, outcome) : report_reason(bench->report);
    lr_operator_destroy(op);
    return status;
}

/* --- the paper's loop --- */

/* One projection with its way to the device and back. */
struct trip {
    lr_operator *op;
    int32_t view;
    bool is_back;
    double to_host_s; /* what an image takes */
};

static lr_status go(const struct trip *trip, const float *in, float *out, struct direct_stages *stages)
{
    const int64_t count = lr_operator_get_info(trip->op)->num_voxels;
    const lr_selection part = {.pairs = &trip->view, .num_pairs = 1};
    const lr_vector x = lr_vector_of_floats(in, count);
    lr_vector y = lr_vector_of_floats(out, count);
    const double begin = report_seconds();
    CLI_TRY((trip->is_back ? lr_operator_back : lr_operator_forward)(trip->op, &part, &x, &y));
    const double device = lr_operator_device_seconds(trip->op);
    const double whole = report_seconds() - begin;
    const double moved = device > 0 && device < whole ? whole - device : 0;
    const double to_host = moved < trip->to_host_s ? moved : trip->to_host_s;
    stages->project[trip->is_back] += whole - moved;
    stages->to_host[trip->is_back] += to_host;
    stages->to_device[trip->is_back] += moved - to_host;
    return LR_OK;
}

/* histo = n (y / (n histo) - 1), y = 1 and n = 1: what the host takes for it. */
static double find_discrepancy(float *histo, int64_t count)
{
    const double begin = report_seconds();
    for (int64_t k = 0; k < count; k++) histo[k] = histo[k] > 1e-30f ? 1.0f / histo[k] - 1.0f : 0.0f;
    return report_seconds() - begin;
}

static double update(float *image, const float *correction, int64_t count)
{
    const double begin = report_seconds();
    for (int64_t k = 0; k < count; k++) {
        const float factor = 1.0f + 0.5f * correction[k];
        image[k] *= factor > 0.0f ? factor : 0.0f;
    }
    return report_seconds() - begin;
}

static lr_status visit(const struct trip *trip, float *image, float *work[2], struct direct_stages *stages)
{
    const int64_t count = lr_operator_get_info(trip->op)->num_voxels;
    struct trip back = *trip;
    back.is_back = true;
    CLI_TRY(go(trip, image, work[0], stages));
    stages->discrepancy += find_discrepancy(work[0], count);
    CLI_TRY(go(&back, work[0], work[1], stages));
    stages->update += update(image, work[1], count);
    return LR_OK;
}

/* Reading an image that is done. */
static lr_status time_reading(lr_operator *op, const float *image, double *seconds)
{
    const lr_vector x = lr_vector_of_floats(image, lr_operator_get_info(op)->num_voxels);
    const lr_direct_task task = {.work = LR_DIRECT_WORK_READING, .image = &x};
    for (int k = 0; k < 3; k++) {
        lr_direct_timing timing;
        CLI_TRY(lr_direct_time(op, &task, &timing));
        *seconds = k == 0 || timing.wall_s < *seconds ? timing.wall_s : *seconds;
    }
    return LR_OK;
}

static void divide(struct direct_stages *stages)
{
    double *const sums[] = {&stages->to_device[0], &stages->to_device[1], &stages->project[0],  &stages->project[1],
                            &stages->to_host[0],   &stages->to_host[1],   &stages->discrepancy, &stages->update};
    for (size_t k = 0; k < sizeof(sums) / sizeof(sums[0]); k++) *sums[k] /= stages->views;
}

static lr_status visit_views(const struct direct_bench *bench, lr_operator *op, float *image, float *work[2],
                             struct direct_stages *stages)
{
    const int num_views = lr_direct_get_info(op)->num_views;
    struct trip trip = {.op = op};
    struct direct_stages warm = {0};
    CLI_TRY(time_reading(op, image, &trip.to_host_s));
    CLI_TRY(visit(&trip, image, work, &warm));
    const double begin = report_seconds();
    while (stages->views < 20 * num_views && (stages->views == 0 || report_seconds() - begin < bench->seconds)) {
        trip.view = stages->views % num_views;
        CLI_TRY(visit(&trip, image, work, stages));
        stages->views++;
    }
    divide(stages);
    return LR_OK;
}

lr_status direct_measure_stages(const struct direct_bench *bench, lr_operator *op, float *image,
                                struct direct_outcome *outcome)
{
    const int64_t count = lr_operator_get_info(op)->num_voxels;
    float *work[2] = {common_floats(bench->report, count, "a projection"),
                      common_floats(bench->report, count, "a projection")};
    const lr_status status =
        work[0] != NULL && work[1] != NULL ? visit_views(bench, op, image, work, &outcome->stages) : LR_FAILED;
    free(work[1]);
    free(work[0]);
    return status;
}
