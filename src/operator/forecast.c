/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What work is going to take: rows by a sample of them, projections by the speed of a trial. */
#include <lr/forecast.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/lors/selection.h"
#include "operator/measure.h"
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
    int64_t taken;                              /* rows */
    double paced_elements, paced_rows, paced_s; /* of the places whose rows were the most together */
    int64_t together;                           /* rows at a place */
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

/* Places where rows are told by how many are computed together are too few to tell the pace. */
static void note_pace(struct sample *sample, int64_t num, double taken_s)
{
    if (num > sample->together) {
        sample->together = num;
        sample->paced_elements = sample->paced_rows = sample->paced_s = 0.0;
    }
    if (num == sample->together) {
        sample->paced_elements += (double)sample->elements;
        sample->paced_rows += (double)num;
        sample->paced_s += taken_s;
    }
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
        note_pace(sample, num, now_s - begun_s);
        most = now_s - begun_s < 0.5 * PLACE_SECONDS ? smaller(2 * most, longest) : most;
    }
    return LR_OK;
}

static void conclude(const struct sample *sample, lr_forecast *forecast)
{
    const double rows = (double)sample->num_rows;
    forecast->rows = rows;
    forecast->elements = rows * sample->mean / sample->places;
    forecast->kept_elements = rows * sample->kept_mean / sample->places;
    forecast->seconds = sample->paced_elements > 0.0 ? sample->paced_s * forecast->elements / sample->paced_elements
                                                     : sample->paced_s * rows / sample->paced_rows;
}

/* Rows of LORs are made of all voxels' rows, turned over in memory as often as it takes. */
static void turn_over(struct lr_operator *op, const lr_rows_work *work, lr_forecast *forecast)
{
    const double lors = (double)lr_selection_count(op->params.lors, work->choice.part);
    const struct lr_lor_rows_plan plan = lr_lor_rows_forecast(op, lors, forecast->elements);
    forecast->rows = lors;
    forecast->kept_elements = forecast->elements;
    forecast->memory_bytes = plan.memory_bytes;
    forecast->seconds *= op->backend.fns->heeds_pairs ? 1.0 : plan.passes;
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
    conclude(&sample, forecast);
    if (work->by_lor) turn_over(op, work, forecast);
    return LR_OK;
}

/* Making the matrix first, where that is asked for or takes less time. */
static lr_status weigh_matrix(struct lr_operator *op, double projections, lr_store store, lr_forecast *forecast)
{
    const lr_rows_work all = {.choice = {.end = op->info.num_voxels}};
    const struct lr_stored_wish wish = {.projections = store == LR_STORE_AUTO ? projections : 0.0};
    lr_forecast rows;
    if (store == LR_STORE_NO || (store == LR_STORE_AUTO && op->backend.is_gpu) ||
        op->params.lors->count >= LR_STORED_MOST_LORS || !lr_stored_may_pay(&wish))
        return LR_OK;
    LR_TRY(lr_operator_forecast_rows(op, &all, &rows));
    const double bytes = LR_STORED_ELEMENT_BYTES * rows.elements;
    const double seconds = rows.seconds + projections * lr_stored_seconds((int64_t)bytes, op->info.threads);
    if (store == LR_STORE_YES || seconds < forecast->seconds) {
        forecast->seconds = seconds;
        forecast->memory_bytes += bytes;
        forecast->is_most = false;
    }
    return LR_OK;
}

lr_status lr_operator_forecast_projections(lr_operator *op, double projections, lr_store store, lr_forecast *forecast)
{
    *forecast = (lr_forecast){0};
    if (op->info.lors->scanner == NULL) {
        return lr_error(op->params.log, LR_USAGE,
                        "projections of histo-images are not forecast: the family direct has no "
                        "trial");
    }
    LR_TRY(lr_project_check_room(op));
    forecast->memory_bytes = lr_project_bytes(op);
    if (op->info.stored) {
        forecast->memory_bytes += (double)op->info.memory_bytes;
        forecast->seconds = projections * lr_stored_seconds(op->info.memory_bytes, op->info.threads);
        return LR_OK;
    }
    LR_TRY(lr_measure_speed(op));
    forecast->is_most = op->voxel_us_is_most;
    forecast->seconds = 0.5e-6 * op->voxel_us * (double)op->info.num_voxels * projections; /* half is one way */
    return weigh_matrix(op, projections, store, forecast);
}
