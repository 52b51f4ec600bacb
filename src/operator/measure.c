/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/measure.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/files/notes.h"
#include "operator/trial_pairs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a projection or a series of rows is watched; a projection on processors, which need not wake up,
 * for less. */
#define WATCH_SECONDS 0.12
#define WATCH_PROCESSORS_SECONDS 0.04

/* More points are tried until they take so much longer than one; not where one takes so long. */
#define ENOUGH_SECONDS 0.05
#define SLOW_SECONDS 0.2

/* Part of a trial that may go by waiting for a processor which other programs hold: more, and the
 * trial says more of them than of the backend. */
#define MOST_WAITED 0.2

/* LORs that a trial projection may touch where the backend cannot take a part of them: rows are
 * timed instead. */
#define WHOLE_LORS ((int64_t)1 << 25)

/* As in operator/stored.c: steps that spread evenly whatever the grid. */
#define GOLDEN_SHARE 0.6180339887498949

/* Rows that each thread gets at a time where they are quick: enough that starting it costs little. */
enum { MOST_ROW_RUNS = 64, ROWS_PER_THREAD = 16 };

/* Sample points that stand for the grid's and LORs that a projection may touch, where the backend
 * can take a part of them. One point first: software renderers can take 0.1 s for it and cannot be
 * stopped within a batch. The last ones are for devices that fewer leave idle for the most part. */
struct size {
    int points[3];
    int64_t lors;
};

static const struct size sizes[] = {
    {{1, 1, 1}, 1 << 20},   {{2, 2, 1}, 1 << 20},    {{4, 4, 2}, 1 << 20},
    {{8, 8, 4}, 1 << 20},   {{16, 16, 8}, 1 << 20},  {{32, 32, 8}, 1 << 20},
    {{32, 32, 8}, 1 << 22}, {{64, 64, 16}, 1 << 24}, {{128, 128, 32}, 1 << 26},
};
enum { NUM_SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* Rows, which can be asked for few at a time. */
enum { SIZE_OF_ROWS = 5 };

/* A progress that stops work which has been going on for long enough. */
struct watch {
    lr_progress progress;
    const lr_progress *user;
    double until;  /* on lr_clock_seconds */
    double share;  /* of the work that is done, as last told */
    bool is_late;  /* stopped, because of `until` */
    bool is_ended; /* stopped, because the user wants it */
};

struct trial {
    const struct lr_backend_choice *choice;
    struct lr_backend backend;
    struct lr_backend_params params;
    lr_grid grid;
    struct watch watch;
    struct lr_trial_pairs pairs;
    lr_selection part; /* these pairs, or all */
    int64_t num_lors, num_points;
    int64_t job_points; /* of what the trial is for: it takes a quarter of them at most */
    bool is_rough;      /* more points would have said more */
    bool is_most;       /* one point took so long that no more were tried */
    lr_vector image, data;
};

static bool watch_report(void *user, const char *what, double done, double total)
{
    struct watch *watch = user;
    (void)what;
    watch->share = total > 0.0 ? done / total : 0.0;
    watch->is_ended = watch->is_ended || lr_progress_report(watch->user, "trying backends", 0.0, 1.0) != LR_OK;
    watch->is_late = watch->share > 0.0 && lr_clock_seconds() >= watch->until;
    return !watch->is_late && !watch->is_ended;
}

/* A grid of voxels with one sample point each, over the extent of the operator's. */
static lr_grid spread_grid(const lr_grid *grid, int size)
{
    lr_grid spread = *grid;
    for (int k = 0; k < 3; k++) {
        spread.size[k] = sizes[size].points[k];
        spread.voxel_mm[k] = grid->voxel_mm[k] * grid->size[k] / spread.size[k];
        spread.origin_mm[k] += 0.5 * (spread.voxel_mm[k] - grid->voxel_mm[k]);
    }
    return spread;
}

static int64_t count_points(const struct lr_operator *op)
{
    const int *samples = op->params.samples;
    return lr_grid_num_voxels(&op->grid) * samples[0] * samples[1] * samples[2];
}

static void close_trial(struct trial *trial)
{
    lr_vector_destroy(&trial->image);
    lr_vector_destroy(&trial->data);
    if (trial->backend.fns != NULL) trial->backend.fns->destroy(trial->backend.self);
    free(trial->pairs.pairs);
    *trial = (struct trial){.choice = trial->choice, .job_points = trial->job_points};
}

/* Creates the backend, in place of one for another size. */
static lr_status open_trial(struct trial *trial, const struct lr_operator *op, int size)
{
    close_trial(trial);
    trial->grid = spread_grid(&op->grid, size);
    trial->num_points = lr_grid_num_voxels(&trial->grid);
    trial->params = op->params;
    trial->params.grid = &trial->grid;
    for (int k = 0; k < 3; k++) trial->params.samples[k] = 1;
    trial->params.progress = &trial->watch.progress;
    trial->params.stands_for = &op->params;
    trial->watch = (struct watch){.progress = {watch_report, &trial->watch}, .user = op->progress_filter.to};
    return trial->choice->create(&trial->params, &trial->backend);
}

/* --- rows --- */

static lr_status drop_row(void *user, const lr_row *row)
{
    (void)user;
    (void)row;
    return LR_OK;
}

static lr_status run_rows(const struct trial *trial, int64_t *next, int64_t count)
{
    const lr_row_sink sink = {drop_row, NULL};
    const double turns = ((double)(*next)++ + 0.5) * GOLDEN_SHARE;
    const int64_t places = trial->num_points - count + 1;
    struct lr_rows rows = {
        .grid = &trial->grid, .samples = {1, 1, 1}, .begin = (int64_t)((turns - floor(turns)) * (double)places)};
    rows.end = rows.begin + count;
    return trial->backend.fns->rows(trial->backend.self, &rows, &sink);
}

/* Rows to ask for at a time, after one took `seconds`. */
static int64_t choose_run(const struct trial *trial, double seconds)
{
    const double threads = trial->params.threads;
    const double in_time = floor(0.5 * WATCH_SECONDS * threads / (seconds + 1e-9));
    const double wanted = fmin(ROWS_PER_THREAD * threads, fmax(threads, in_time));
    return (int64_t)fmin(wanted, (double)trial->num_points);
}

/* A projection takes at least what all its rows take, so twice that is both. */
static lr_status time_rows(struct trial *trial, double *point_us)
{
    int64_t next = 0, runs = 0;
    trial->watch.until = HUGE_VAL;
    double start = lr_clock_seconds(), seconds = 0.0;
    LR_TRY(run_rows(trial, &next, 1));
    const int64_t count = choose_run(trial, lr_clock_seconds() - start);
    start = lr_clock_seconds();
    while (runs < MOST_ROW_RUNS && seconds < WATCH_SECONDS) {
        LR_TRY(run_rows(trial, &next, count));
        runs++;
        seconds = lr_clock_seconds() - start;
    }
    *point_us = 2.0 * 1e6 * seconds / (double)(runs * count);
    return LR_OK;
}

/* --- projections --- */

/* Some module pairs with about so many LORs; all when all fit. */
static lr_status choose_part(struct trial *trial, int64_t most)
{
    const lr_lors *lors = trial->params.lors;
    trial->num_lors = lors->count;
    if (!trial->backend.fns->has_parts || lors->count <= most) return LR_OK;
    LR_TRY(lr_trial_pairs_choose(lors, &trial->grid, most, &trial->pairs, trial->params.log));
    trial->num_lors = trial->pairs.num_lors;
    trial->part.pairs = trial->pairs.pairs;
    trial->part.num_pairs = trial->pairs.count;
    return LR_OK;
}

static lr_status fill_image(const struct trial *trial, int64_t begin, int64_t end)
{
    lr_vector voxels = lr_vector_part(&trial->image, begin, end - begin);
    return lr_vector_fill(&voxels, 1.0);
}

static lr_status make_vectors(struct trial *trial)
{
    lr_vector_params params = {.place = trial->backend.place,
                               .count = trial->num_points,
                               .precision = trial->backend.fns->computes_in_double ? LR_FLOAT64 : LR_FLOAT32,
                               .name = "the image of a trial",
                               .log = trial->params.log};
    LR_TRY(lr_vector_create(&params, &trial->image));
    params.count = trial->num_lors;
    params.name = "the LOR data of a trial";
    return lr_vector_create(&params, &trial->data);
}

static lr_status run_projection(struct trial *trial, bool forward)
{
    const struct lr_backend_fns *fns = trial->backend.fns;
    void *self = trial->backend.self;
    const lr_selection *part = trial->part.pairs != NULL ? &trial->part : NULL;
    return forward ? fns->forward(self, part, &trial->image, &trial->data)
                   : fns->back(self, part, &trial->data, &trial->image);
}

/* Runs once until `seconds` have passed and something is done, and says how long the whole takes. */
static lr_status watch_once(struct trial *trial, bool forward, double seconds, double *whole)
{
    const double start = lr_clock_seconds();
    trial->watch.until = start + seconds;
    trial->watch.is_late = false;
    const lr_status status = run_projection(trial, forward);
    const double taken = lr_clock_seconds() - start;
    if (status == LR_CANCELLED && trial->watch.is_late) {
        *whole = taken / trial->watch.share;
        return LR_OK;
    }
    *whole = taken;
    return status;
}

/* The least of as many runs as there is time for: a device that has just woken up, or waited for a
 * compiler, runs at a fraction of its clock. */
static lr_status watch_projection(struct trial *trial, bool forward, double seconds, double *least)
{
    const double start = lr_clock_seconds();
    LR_TRY(watch_once(trial, forward, seconds, least));
    for (double now = lr_clock_seconds(); now - start + *least < seconds; now = lr_clock_seconds()) {
        double again;
        LR_TRY(watch_once(trial, forward, seconds, &again));
        *least = fmin(*least, again);
    }
    return LR_OK;
}

static double watch_seconds(const struct trial *trial)
{
    return trial->backend.is_gpu ? WATCH_SECONDS : WATCH_PROCESSORS_SECONDS;
}

/* Each direction once to wake up (one voxel forward, one step back), and once to be timed. */
static lr_status time_both(struct trial *trial, double *seconds)
{
    const double watched = watch_seconds(trial);
    double forward, back, ignored;
    LR_TRY(make_vectors(trial));
    LR_TRY(fill_image(trial, trial->num_points / 2, trial->num_points / 2 + 1));
    LR_TRY(watch_once(trial, true, HUGE_VAL, &ignored));
    LR_TRY(fill_image(trial, 0, trial->num_points));
    LR_TRY(watch_projection(trial, true, watched, &forward));
    LR_TRY(watch_once(trial, false, 0.0, &ignored));
    LR_TRY(watch_projection(trial, false, watched, &back));
    *seconds = forward + back;
    lr_debug(trial->params.log, "trial of %s: %lld points, %lld LORs: forward %.3g s, back %.3g s", trial->choice->name,
             (long long)trial->num_points, (long long)trial->num_lors, forward, back);
    return LR_OK;
}

static int64_t points_of(int size)
{
    const int *points = sizes[size].points;
    return (int64_t)points[0] * points[1] * points[2];
}

static double work_of(const struct trial *trial, int size)
{
    const double lors = (double)trial->params.lors->count;
    return (double)points_of(size) * fmin((double)sizes[size].lors, lors);
}

/* LOR values are there three times: in files' order, in the projector's, and the trial's own. */
static bool has_room(const struct trial *trial, int size)
{
    const double memory = (double)lr_place_get_info(trial->backend.place).memory_bytes;
    const double lors = fmin((double)sizes[size].lors, (double)trial->params.lors->count);
    return memory <= 0.0 || 3.0 * sizeof(float) * lors <= memory / 4.0;
}

static bool is_worth(const struct trial *trial, int size)
{
    return points_of(size) <= trial->job_points / 4;
}

/* The size whose projections should take about as long as they may, and at least one more. */
static int next_size(const struct trial *trial, int size, double seconds)
{
    const double wanted = work_of(trial, size) * 2.0 * watch_seconds(trial) / (seconds + 1e-9);
    int next = size + 1;
    while (next < NUM_SIZES - 1 && work_of(trial, next) < wanted && has_room(trial, next + 1) &&
           is_worth(trial, next + 1))
        next++;
    return next;
}

/* Whether more points would tell more, first: seconds of one. */
static bool asks_for_more(const struct trial *trial, int size, double first, double seconds)
{
    return size < NUM_SIZES - 1 && first < SLOW_SECONDS && seconds - first < ENOUGH_SECONDS &&
           has_room(trial, size + 1);
}

/* What a point adds where that is clear; of a rough trial what its job takes, shared out among its points. */
static double seconds_of_point(const struct trial *trial, int size, double first, double seconds)
{
    const double more = (double)(trial->num_points - 1), all = (double)trial->job_points;
    const double added = more > 0.0 ? fmax(seconds - first, 0.0) / more : 0.0;
    if (trial->is_rough) return (first + added * (all - 1.0)) / all;
    const bool is_clear = seconds - first >= ENOUGH_SECONDS && sizes[size].lors == sizes[0].lors;
    return is_clear ? added : seconds / (double)trial->num_points;
}

/* One point, then more and more, and more LORs, until they take clearly longer: the difference is
 * free of what a projection costs whatever the number of points. */
static lr_status time_projections(struct trial *trial, const struct lr_operator *op, double *point_us)
{
    double first = 0.0, seconds = 0.0;
    int size = 0;
    LR_TRY(time_both(trial, &first));
    seconds = first;
    while (asks_for_more(trial, size, first, seconds) && is_worth(trial, size + 1)) {
        size = next_size(trial, size, seconds);
        LR_TRY(open_trial(trial, op, size));
        LR_TRY(choose_part(trial, sizes[size].lors));
        LR_TRY(time_both(trial, &seconds));
    }
    trial->is_rough = asks_for_more(trial, size, first, seconds);
    trial->is_most = size == 0 && first >= SLOW_SECONDS && trial->job_points > 1;
    const double scale = (double)trial->params.lors->count / (double)trial->num_lors;
    *point_us = 1e6 * scale * seconds_of_point(trial, size, first, seconds);
    return LR_OK;
}

/* Whether it is rows that are timed. */
static bool projects_by_rows(const struct trial *trial)
{
    const struct lr_backend_fns *fns = trial->backend.fns;
    const bool has_parts = fns->has_parts;
    return fns->projects_by_rows || (!has_parts && trial->params.lors->count > WHOLE_LORS);
}

static lr_status time_trial(struct trial *trial, const struct lr_operator *op, double *point_us)
{
    LR_TRY(choose_part(trial, sizes[0].lors));
    if (projects_by_rows(trial)) {
        LR_TRY(open_trial(trial, op, SIZE_OF_ROWS));
        return time_rows(trial, point_us);
    }
    return time_projections(trial, op, point_us);
}

/* --- what is known from before --- */

enum { KEY_CHARS = 600 };

/* Everything that the time for a point depends on but the grid; see docs/formats/sessions.md. */
static void write_key(const struct trial *trial, char key[KEY_CHARS])
{
    const struct lr_backend_params *params = &trial->params;
    const lr_scanner *scanner = params->scanner;
    char mode[32] = "exact";
    if (params->mode == LR_MODE_SAMPLED) snprintf(mode, sizeof(mode), "sampled, %d rays", params->rays);
    snprintf(key, KEY_CHARS, "loraster %s; %s on %s; %s: %d modules, %d crystals, %lld LORs; %s; %d mu steps%s",
             lr_version(), trial->backend.fns->name, trial->backend.device, scanner->name, scanner->num_modules,
             scanner->num_crystals, (long long)params->lors->count, mode, params->mu_steps,
             params->penetration ? "; penetration" : "");
}

/* What the file knows, else what a trial says. */
static lr_status find_speed(struct trial *trial, struct lr_operator *op, double *point_us)
{
    char key[KEY_CHARS];
    struct lr_note note = {.key = key};
    const lr_log *log = &op->log_filter.to; /* for debugging, while the backend's remarks are dropped */
    const double start = lr_clock_seconds(), waited = lr_clock_waited_seconds();
    LR_TRY(open_trial(trial, op, 0));
    write_key(trial, key);
    lr_notes_find(&note, 1, log);
    if (!note.is_known) {
        LR_TRY(time_trial(trial, op, &note.value));
        note.is_known = true;
        const double taken = lr_clock_seconds() - start;
        if (!trial->is_rough && !trial->is_most && lr_clock_waited_seconds() - waited <= MOST_WAITED * taken)
            lr_notes_keep(&note, 1, log);
    }
    *point_us = note.value;
    return LR_OK;
}

/* What the backend says on the way is not the caller's. */
lr_status lr_measure_speed(struct lr_operator *op)
{
    const int *samples = op->params.samples;
    struct trial trial = {.choice = op->choice, .job_points = count_points(op)};
    double point_us = 0.0;
    if (op->voxel_us > 0.0) return LR_OK;
    op->log_filter.drops_remarks = true;
    const lr_status status = find_speed(&trial, op, &point_us);
    op->log_filter.drops_remarks = false;
    op->voxel_us_is_most = trial.is_most;
    close_trial(&trial);
    op->voxel_us = samples[0] * samples[1] * samples[2] * point_us;
    return status;
}
