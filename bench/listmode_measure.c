/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode.h"

#include "energy.h"

#include <math.h>

#include <stdlib.h>
#include <string.h>

/* Of runs before those that are timed, at most, and as a share of what there is for a figure: a card that
 * has waited for the host's preparations takes some 0.1 s to reach its clock, and was seen five times as
 * slow before. */
static const double warm_s = 0.5, warm_share = 0.25;

/* Of runs of one look at the clock, about. */
static const double row_s = 0.1;

enum {
    COUNTED_LINES = 1000,     /* whose voxels are counted, at most, */
    COUNTED_LEAST = 30,       /* and at least: each of them is looked at for each 1,024 voxels */
    COUNTED_VOXELS = 1 << 20, /* in an image of so many; fewer lines in a larger one */
    COUNTED_EXACT_LINES = 50, /* of exact elements, which take longer */
    MOST_IN_A_ROW = 32,       /* runs that one look at the clock is of */
    ENERGY_SECONDS = 2        /* of iterations between two looks at a counter of energy, at least */
};

/* --- the operator --- */

int listmode_subsets(const struct listmode_bench *bench, const struct listmode_case *what)
{
    const int own = what->subsets > 0 ? what->subsets : 1;
    return bench->subsets > 0 ? bench->subsets : own;
}

static lr_operator *make_operator(const struct listmode_bench *bench, const struct listmode_way *way,
                                  const lr_event *events, int64_t count)
{
    const lr_grid grid = listmode_grid(way->what);
    const lr_events_info info = {.has_tof = true, .tof_resolution_ps = way->what->preset != NULL ? 0 : bench->tof_ps};
    return lr_listmode_create(&(lr_listmode_params){
        .lors = bench->lors,
        .grid = &grid,
        .events = events,
        .count = count,
        .info = way->has_tof ? &info : NULL,
        .kernel = way->kernel,
        .tube = {.width_mm = way->what->width * grid.voxel_mm[0], .fwhm_mm = 0.5 * way->what->width * grid.voxel_mm[0]},
        .backend = way->backend,
        .threads = bench->threads,
        .device = bench->device,
        .variant = way->variant,
        .num_ranges = listmode_subsets(bench, way->what),
        .max_memory_bytes = bench->max_memory_bytes,
        .log = &bench->report->log,
        .progress = &bench->report->progress});
}

lr_operator *listmode_make_native(const struct listmode_bench *bench, const struct listmode_way *way,
                                  const lr_event *events, int64_t count)
{
    struct listmode_way native = *way;
    native.backend = "native";
    native.variant = LR_LISTMODE_FASTEST;
    return make_operator(bench, &native, events, count);
}

/* --- voxels a line --- */

static lr_status add_elements(void *user, const lr_row *row)
{
    double *elements = user;
    *elements += (double)row->count;
    return LR_OK;
}

/* As backend native has the rows of the first lines. */
static lr_status count_visits(const struct listmode_bench *bench, const lr_event *events,
                              struct listmode_outcome *outcome)
{
    const lr_grid grid = listmode_grid(outcome->way.what);
    const int64_t fit = (int64_t)COUNTED_LINES * COUNTED_VOXELS / ((int64_t)grid.size[0] * grid.size[1] * grid.size[2]);
    const int64_t usual = outcome->way.kernel == LR_LISTMODE_EXACT ? COUNTED_EXACT_LINES : COUNTED_LINES;
    const int64_t most = fit > usual ? usual : fit < COUNTED_LEAST ? COUNTED_LEAST : fit;
    const int64_t count = outcome->lines < most ? outcome->lines : most;
    double elements = 0;
    lr_operator *op = listmode_make_native(bench, &outcome->way, events, count);
    const lr_row_sink sink = {.take = add_elements, .user = &elements};
    const lr_status status = op != NULL ? lr_operator_lor_rows(op, NULL, &sink) : report_reason(bench->report);
    lr_operator_destroy(op);
    outcome->visits = elements / (double)count;
    return status;
}

/* --- the clock --- */

struct running {
    lr_operator *op;
    int subsets;
    lr_vector image, correction, sensitivity; /* of voxels */
    lr_vector ones, values;                   /* of events */
};

typedef lr_status work_fn(struct running *running);

static lr_status project(struct running *running)
{
    return lr_operator_forward(running->op, NULL, &running->image, &running->values);
}

static lr_status back_project(struct running *running)
{
    return lr_operator_back(running->op, NULL, &running->ones, &running->correction);
}

/* As lr_recon has a subset, with the sensitivity of these events alone. */
static lr_status take_subset(struct running *running, int32_t subset)
{
    const lr_lors *layout = lr_operator_get_info(running->op)->lors;
    const int64_t begin = layout->offsets[subset], count = layout->offsets[subset + 1] - begin;
    const lr_selection one = {.pairs = &subset, .num_pairs = 1};
    const lr_selection *part = running->subsets > 1 ? &one : NULL;
    const lr_vector ones = lr_vector_part(&running->ones, begin, count);
    lr_vector values = lr_vector_part(&running->values, begin, count);
    CLI_TRY(lr_operator_forward(running->op, part, &running->image, &values));
    CLI_TRY(lr_vector_divide_counts(&(lr_poisson_ratio){.measured = &ones, .values = &values}, NULL));
    CLI_TRY(lr_operator_back(running->op, part, &values, &running->correction));
    return lr_vector_update_em(&(lr_em_update){.x = &running->image,
                                               .correction = &running->correction,
                                               .sensitivity = &running->sensitivity,
                                               .next = &running->image});
}

static lr_status iterate(struct running *running)
{
    for (int32_t subset = 0; subset < running->subsets; subset++) CLI_TRY(take_subset(running, subset));
    return LR_OK;
}

/* Waits for the device: what is read has been computed. */
static lr_status finish(struct running *running)
{
    lr_vector_sums sums;
    CLI_TRY(lr_vector_add_up(&running->image, NULL, &sums));
    return lr_vector_add_up(&running->values, NULL, &sums);
}

static lr_status time_once(struct running *running, work_fn *work, int times, struct listmode_seconds *seconds)
{
    CLI_TRY(finish(running));
    const double start = report_seconds();
    for (int k = 0; k < times; k++) CLI_TRY(work(running));
    seconds->device = work == iterate ? 0 : lr_operator_device_seconds(running->op);
    if (work == iterate) {
        lr_vector_sums sums;
        CLI_TRY(lr_vector_add_up(&running->image, NULL, &sums));
    }
    seconds->wall = (report_seconds() - start) / times;
    return LR_OK;
}

double listmode_best(const struct listmode_seconds *seconds)
{
    return seconds->device > 0 ? seconds->device : seconds->wall;
}

static int compare_seconds(const void *a, const void *b)
{
    const double l = listmode_best(a), r = listmode_best(b);
    return (l > r) - (l < r);
}

/* Runs until the device is as fast as it gets; last: of the last run. */
static lr_status warm_up(const struct listmode_bench *bench, struct running *running, work_fn *work,
                         struct listmode_seconds *last)
{
    const double start = report_seconds(), enough_s = fmin(warm_s, warm_share * bench->seconds);
    while (report_seconds() - start + last->wall < enough_s) CLI_TRY(time_once(running, work, 1, last));
    return LR_OK;
}

/* Runs of one look at the clock: several short ones, so that the device waits for no command of the host. */
static int runs_in_a_row(const struct listmode_bench *bench, double each_s)
{
    const double fit = fmin(bench->seconds / bench->repeat, row_s) / each_s;
    return fit < 1 ? 1 : fit < MOST_IN_A_ROW ? (int)fit : MOST_IN_A_ROW;
}

/* The median of as many looks at the clock as there is time for, after one run that counts only where it
 * took all; the device's clock tells the last run of each. */
static lr_status time_work(const struct listmode_bench *bench, struct running *running, work_fn *work,
                           struct listmode_seconds *median)
{
    struct listmode_seconds all[LISTMODE_MOST_REPEATS];
    int runs = 0;
    CLI_TRY(time_once(running, work, 1, median)); /* programs are built */
    CLI_TRY(warm_up(bench, running, work, median));
    const double each_s = median->wall > 0 ? median->wall : 1e-9, limit_s = bench->seconds;
    const int times = runs_in_a_row(bench, each_s);
    const double start = report_seconds();
    while (runs < bench->repeat && report_seconds() - start < limit_s - each_s)
        CLI_TRY(time_once(running, work, times, &all[runs++]));
    if (runs > 0) {
        qsort(all, (size_t)runs, sizeof(all[0]), compare_seconds);
        *median = all[runs / 2];
    }
    return LR_OK;
}

/* --- energy --- */

static double num_iterations(const struct listmode_outcome *outcome)
{
    return fmax(1.0, ceil(ENERGY_SECONDS / fmax(outcome->iteration.wall, 1e-6)));
}

static lr_status read_energy(struct running *running, struct energy_meter *meter, struct listmode_outcome *outcome)
{
    const double times = num_iterations(outcome);
    double before, after;
    CLI_TRY(finish(running));
    const bool is_told = energy_read(meter, &before);
    for (double k = 0; is_told && k < times; k++) CLI_TRY(iterate(running));
    CLI_TRY(finish(running));
    if (is_told && energy_read(meter, &after) && after > before) {
        outcome->joules = (after - before) / times;
        snprintf(outcome->energy_source, sizeof(outcome->energy_source), "%s", energy_source(meter));
    }
    return LR_OK;
}

/* Of whole cards or processors: what else they do meanwhile counts, too. */
static lr_status measure_energy(const struct listmode_bench *bench, struct running *running,
                                struct listmode_outcome *outcome)
{
    struct energy_meter *meter = energy_open(&(struct energy_params){
        .is_gpu = lr_operator_get_info(running->op)->is_gpu, .device = outcome->device, .number = bench->device});
    const lr_status status = meter != NULL ? read_energy(running, meter, outcome) : LR_OK;
    energy_close(meter);
    return status;
}

/* --- one line of a table --- */

/* The image of one iteration. */
static lr_status keep_image(const struct listmode_bench *bench, struct running *running,
                            struct listmode_outcome *outcome)
{
    const int64_t count = running->image.count;
    outcome->image = malloc((size_t)count * sizeof(*outcome->image));
    if (outcome->image == NULL) return report_error(bench->report, LR_FAILED, "no memory for an image");
    lr_vector host = lr_vector_of_floats(outcome->image, count);
    CLI_TRY(iterate(running));
    return lr_vector_copy(&running->image, &host);
}

static lr_status make_vectors(const struct listmode_bench *bench, struct running *running)
{
    const lr_operator_info *info = lr_operator_get_info(running->op);
    lr_vector *const vectors[] = {&running->image, &running->correction, &running->sensitivity, &running->ones,
                                  &running->values};
    for (int k = 0; k < 5; k++) {
        const lr_vector_params params = {.place = lr_operator_place(running->op),
                                         .count = k < 3 ? info->num_voxels : info->num_lors,
                                         .log = &bench->report->log};
        CLI_TRY(lr_vector_create(&params, vectors[k]));
    }
    CLI_TRY(lr_vector_fill(&running->image, 1));
    CLI_TRY(lr_vector_fill(&running->ones, 1));
    CLI_TRY(back_project(running));
    return lr_vector_copy(&running->correction, &running->sensitivity);
}

static lr_status measure_all(const struct listmode_bench *bench, struct running *running,
                             struct listmode_outcome *outcome)
{
    CLI_TRY(make_vectors(bench, running));
    CLI_TRY(outcome->way.what->has_fastmath ? keep_image(bench, running, outcome) : LR_OK);
    CLI_TRY(time_work(bench, running, project, &outcome->forward));
    CLI_TRY(time_work(bench, running, back_project, &outcome->back));
    CLI_TRY(time_work(bench, running, iterate, &outcome->iteration));
    return measure_energy(bench, running, outcome);
}

/* As a reconstruction does, which holds the place of its vectors. */
static lr_status measure_held(const struct listmode_bench *bench, struct running *running,
                              struct listmode_outcome *outcome)
{
    lr_place *place = lr_operator_place(running->op);
    CLI_TRY(lr_place_hold(place));
    const lr_status status = measure_all(bench, running, outcome);
    lr_place_release(place);
    return status;
}

static lr_status measure_events(const struct listmode_bench *bench, const lr_event *events,
                                struct listmode_outcome *outcome)
{
    const double start = report_seconds();
    struct running running = {.op = make_operator(bench, &outcome->way, events, outcome->lines),
                              .subsets = listmode_subsets(bench, outcome->way.what)};
    if (running.op == NULL) return report_reason(bench->report);
    const lr_operator_info *info = lr_operator_get_info(running.op);
    outcome->prepare_s = report_seconds() - start;
    outcome->partition_s = lr_listmode_get_info(running.op)->partition_seconds;
    outcome->sort_s = lr_listmode_get_info(running.op)->sort_seconds;
    snprintf(outcome->backend, sizeof(outcome->backend), "%s", info->backend);
    snprintf(outcome->device, sizeof(outcome->device), "%s", info->device);
    const lr_status status = measure_held(bench, &running, outcome);
    lr_vector_destroy(&running.image);
    lr_vector_destroy(&running.correction);
    lr_vector_destroy(&running.sensitivity);
    lr_vector_destroy(&running.ones);
    lr_vector_destroy(&running.values);
    lr_operator_destroy(running.op);
    CLI_TRY(status);
    CLI_TRY(outcome->way.what->has_collisions ? listmode_count_collisions(bench, events, outcome) : LR_OK);
    return count_visits(bench, events, outcome);
}

lr_status listmode_measure(const struct listmode_bench *bench, struct listmode_outcome *outcome)
{
    const lr_grid grid = listmode_grid(outcome->way.what);
    outcome->lines = bench->all_lines > 0 ? bench->all_lines : bench->lines * outcome->way.what->millions;
    lr_event *events = malloc((size_t)outcome->lines * sizeof(*events));
    if (events == NULL)
        return report_error(bench->report, LR_FAILED, "no memory for %lld events", (long long)outcome->lines);
    listmode_draw(bench, &grid, events, outcome->lines);
    const lr_status status = measure_events(bench, events, outcome);
    free(events);
    return status;
}
