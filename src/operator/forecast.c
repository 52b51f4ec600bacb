/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The memory that work is going to take, and the elements of rows by a sample of them. The clock only says
 * how long the sample may go on: nobody is told a time. */
#include <lr/forecast.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/lors/selection.h"
#include "operator/project.h"
#include "operator/rows.h"
#include "operator/stored.h"

/* The sample goes on until it has taken this long and has been at enough places, and no longer than
 * that where it has been at some. */
#define ENOUGH_SECONDS 0.5
#define MOST_SECONDS 2.0
enum { ENOUGH_PLACES = 24, SOME_PLACES = 4, MOST_PLACES = 4096 };

/* Rows in a row are computed together; as many at a place as take about this long, and no more. */
#define PLACE_SECONDS 0.04
enum { MOST_ROWS = 1024, LEAST_STRETCHES = 64 };

/* Steps of this share of the rows, taken modulo one, spread evenly. */
#define GOLDEN_SHARE 0.6180339887498949

struct sample {
    struct lr_operator *op;
    const lr_rows_work *work;
    int64_t num_rows;       /* of the choice */
    int64_t elements;       /* at this place */
    int64_t kept;           /* the same, of at least the threshold */
    double mean, kept_mean; /* of a row, sums over places */
    int places;
    int64_t taken; /* rows */
};

static lr_status count(void *user, const lr_row *row)
{
    struct sample *sample = user;
    double largest = 0.0;
    for (int64_t k = 0; k < row->count; k++) largest = row->probability[k] > largest ? row->probability[k] : largest;
    const double least = sample->work->threshold * largest;
    for (int64_t k = 0; k < row->count; k++) sample->kept += row->probability[k] >= least;
    sample->elements += row->count;
    return LR_OK;
}

/* Rows from the place on that follow each other in the grid, at most `most`. */
static lr_status run_place(struct sample *sample, int64_t place, int64_t most, int64_t *num)
{
    const lr_row_choice *choice = &sample->work->choice;
    const lr_row_sink sink = {count, sample};
    const int64_t left = sample->num_rows - place;
    const int64_t begin = choice->voxels != NULL ? choice->voxels[place] : choice->begin + place;
    *num = 1;
    while (*num < most && *num < left && (choice->voxels == NULL || choice->voxels[place + *num] == begin + *num))
        (*num)++;
    const struct lr_rows rows = lr_rows_of_voxels(sample->op, begin, begin + *num);
    sample->elements = sample->kept = 0;
    LR_TRY(lr_progress_filter_say(&sample->op->progress_filter, "estimating the matrix", sample->places, MOST_PLACES));
    return lr_rows_run(sample->op, &rows, choice->part, &sink);
}

/* Small work is not looked at for longer than it takes. */
static bool is_enough(const struct sample *sample, double taken_s)
{
    return sample->places >= MOST_PLACES || sample->taken >= sample->num_rows ||
           (sample->places >= ENOUGH_PLACES && taken_s >= ENOUGH_SECONDS) ||
           (sample->places >= SOME_PLACES && taken_s >= MOST_SECONDS);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The first place is only to wake up: shaders are compiled, memory is allocated. */
static lr_status take_sample(struct sample *sample)
{
    int64_t num = 1, most = 1;
    const int64_t longest = smaller(MOST_ROWS, sample->num_rows / LEAST_STRETCHES + 1);
    LR_TRY(run_place(sample, sample->num_rows / 2, 1, &num));
    const double start_s = lr_clock_seconds();
    for (double now_s = start_s; !is_enough(sample, now_s - start_s);) {
        const double turns = ((double)sample->places + 0.5) * GOLDEN_SHARE;
        const double share = turns - (double)(int64_t)turns;
        const double begun_s = now_s;
        LR_TRY(run_place(sample, (int64_t)(share * (double)sample->num_rows), most, &num));
        now_s = lr_clock_seconds();
        sample->mean += (double)sample->elements / (double)num;
        sample->kept_mean += (double)sample->kept / (double)num;
        sample->places++;
        sample->taken += num;
        most = now_s - begun_s < 0.5 * PLACE_SECONDS ? smaller(2 * most, longest) : most;
    }
    return LR_OK;
}

lr_status lr_operator_forecast_rows(lr_operator *op, const lr_rows_work *work, lr_forecast *forecast)
{
    lr_rows_work whole = *work;
    *forecast = (lr_forecast){0};
    if (work->by_lor) {
        whole.choice = (lr_row_choice){.end = op->info.num_voxels, .part = work->choice.part};
        whole.threshold = 0.0;
    }
    LR_TRY(lr_rows_check_choice(op, &whole.choice));
    struct sample sample = {.op = op, .work = &whole};
    sample.num_rows = whole.choice.voxels != NULL ? whole.choice.num_voxels : whole.choice.end - whole.choice.begin;
    if (sample.num_rows == 0) return LR_OK;
    LR_TRY(take_sample(&sample));
    const double rows = (double)sample.num_rows;
    forecast->rows = rows;
    forecast->elements = rows * sample.mean / sample.places;
    forecast->kept_elements = rows * sample.kept_mean / sample.places;
    if (work->by_lor) { /* made of all voxels' rows, which are transposed in memory */
        const double lors = (double)lr_selection_count(op->params.lors, work->choice.part);
        forecast->rows = lors;
        forecast->kept_elements = forecast->elements;
        forecast->memory_bytes = lr_lor_rows_forecast(op, lors, forecast->elements).memory_bytes;
    }
    return LR_OK;
}

lr_status lr_operator_forecast_projections(lr_operator *op, double projections, lr_store store, lr_forecast *forecast)
{
    *forecast = (lr_forecast){0};
    if (op->info.lors->scanner == NULL)
        return lr_error(op->params.log, LR_USAGE, "projections of histo-images are not forecast");
    LR_TRY(lr_project_check_room(op));
    forecast->memory_bytes = lr_project_bytes(op);
    if (op->info.stored) {
        forecast->memory_bytes += (double)op->info.memory_bytes;
        return LR_OK;
    }

    /* The matrix, where one is going to be kept. */
    const double known = op->params.deterministic ? 0.0 : projections;
    const bool is_kept = store == LR_STORE_YES || (store == LR_STORE_AUTO && lr_stored_pays(&op->backend, known));
    if (!is_kept || op->params.lors->count >= LR_STORED_MOST_LORS) return LR_OK;
    const lr_rows_work all = {.choice = {.end = op->info.num_voxels}};
    lr_forecast rows;
    LR_TRY(lr_operator_forecast_rows(op, &all, &rows));
    const double bytes = LR_STORED_ELEMENT_BYTES * rows.elements;
    if (store == LR_STORE_YES || bytes <= (double)lr_stored_memory_limit(&op->params)) forecast->memory_bytes += bytes;
    return LR_OK;
}
