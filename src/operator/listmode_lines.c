/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/listmode_lines.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "model/lors/place.h"

#include <stdlib.h>
#include <string.h>

/* LORs of a batch. A backend is opened for each batch, which on a graphics processor takes as long as projecting a
 * million LORs. Smaller batches on processors can be stopped sooner. */
enum { LINES_AT_ONCE = 1 << 19, LINES_ON_DEVICE = 1 << 22 };

/* Numbers of lines and of voxels that a thread takes at once. */
enum { LINES_OF_BLOCK = 1 << 14, VOXELS_OF_BLOCK = 1 << 16 };

/* A batch whose lines are drawn by several threads, block by block. */
struct lines {
    struct lr_line_sum *sum;
    const struct lr_line_batch *batch;
    struct {
        /* number of lines of the block that are used; index of the first among all used lines */
        int64_t count, place;
    } blocks[LINES_ON_DEVICE / LINES_OF_BLOCK + 1];
};

static void draw_block(void *user, int64_t begin, int64_t end, int worker)
{
    struct lines *lines = user;
    struct lr_line_sum *sum = lines->sum;
    const double(*hits)[3] = (const double(*)[3])sum->family->events.hits;
    struct lr_lor_place place = {.lors = sum->lors};
    int64_t at = begin;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        lr_place_seek(&place, lr_listmode_sample_lor(&lines->batch->sample, k));
        const int a = place.first_i + place.a, b = place.first_j + place.b;
        if (!lr_place_in_coincidence(&place) ||
            (sum->region != NULL && !lr_listmode_region_is_near(sum->region, hits[a], hits[b], sum->reach_mm)))
            continue;
        if (sum->drawn.numbers != NULL) sum->drawn.numbers[at] = lr_lors_number(sum->family->lors, a, b);
        sum->drawn.events[at++] = (lr_event){.crystals = {a, b}, .weight = 1};
    }
    lines->blocks[begin / LINES_OF_BLOCK].count = at - begin;
}

static void pack_block(void *user, int64_t begin, int64_t end, int worker)
{
    const struct lines *lines = user;
    const struct lr_drawn_lines *from = &lines->sum->drawn, *to = &lines->batch->packed;
    const size_t count = (size_t)lines->blocks[begin / LINES_OF_BLOCK].count;
    const int64_t place = lines->blocks[begin / LINES_OF_BLOCK].place;
    (void)end;
    (void)worker;
    memcpy(to->events + place, from->events + begin, count * sizeof(*to->events));
    if (to->numbers != NULL) memcpy(to->numbers + place, from->numbers + begin, count * sizeof(*to->numbers));
}

/* Draws the LORs of a batch that are in coincidence and near the region. Returns their number. */
static int64_t gather(struct lr_line_batch *batch)
{
    struct lines lines = {.sum = batch->sum, .batch = batch};
    const int64_t count = batch->sample.count;
    lr_parallel_for(batch->sum->op->params.threads, count, LINES_OF_BLOCK, draw_block, &lines);
    batch->is_drawn = true;
    /* The used lines of all blocks become one list. */
    int64_t sum = 0;
    for (int64_t begin = 0; begin < count; begin += LINES_OF_BLOCK) {
        lines.blocks[begin / LINES_OF_BLOCK].place = sum;
        sum += lines.blocks[begin / LINES_OF_BLOCK].count;
    }
    lr_parallel_for(lines.sum->op->params.threads, count, LINES_OF_BLOCK, pack_block, &lines);
    return sum;
}

static lr_listmode_params params_of(const struct lr_line_batch *batch, const lr_log *log)
{
    const struct lr_line_sum *sum = batch->sum;
    return (lr_listmode_params){.lors = sum->family->lors,
                                .grid = &sum->op->grid,
                                .events = batch->packed.events,
                                .count = batch->count,
                                .threads = sum->op->params.threads,
                                .log = log};
}

static lr_status open_lines(struct lr_line_batch *batch, const lr_log *log)
{
    const lr_listmode_params params = params_of(batch, log);
    batch->status = lr_listmode_events_open(&batch->lines, &params, batch->is_drawn ? NULL : &batch->sample);
    if (batch->status != LR_OK) lr_listmode_events_finish(&batch->lines);
    return batch->status;
}

/* Makes the lines of a batch. It may run in a separate thread, so it logs nothing. */
static void prepare(void *user)
{
    struct lr_line_batch *batch = user;
    /* If the sensitivity is computed in parts, this part takes every step-th line. */
    const struct lr_line_sum *sum = batch->sum;
    const int64_t step = sum->family->sensitivity_parts, part = sum->family->sensitivity_part;
    const int64_t first = part + (batch->first - part + step - 1) / step * step;
    batch->sample =
        (struct lr_listmode_sample){.lors = sum->lors,
                                    .stride = sum->stride,
                                    .seed = sum->seed,
                                    .first = sum->num_groups * first + batch->group,
                                    .step = sum->num_groups * step,
                                    .count = batch->end > first ? (batch->end - first + step - 1) / step : 0};

    batch->is_drawn = false;
    batch->count = batch->sum->by_device ? batch->sample.count : gather(batch);
    if (batch->count > 0) (void)open_lines(batch, NULL);
}

/* Projects a batch. The device draws and holds the batch's lines if it has the memory, else the host does. */
static lr_status project(struct lr_line_batch *batch)
{
    struct lr_line_sum *sum = batch->sum;
    const struct lr_listmode_family *family = sum->family;
    const lr_log *log = sum->op->params.log;
    const struct lr_listmode_backend_params params = {.model = &family->model,
                                                      .events = &batch->lines,
                                                      .threads = sum->op->params.threads,
                                                      .device = sum->op->params.device,
                                                      .max_memory_bytes = sum->op->params.max_memory_bytes,
                                                      .place = sum->op->backend.place,
                                                      .stands_for = &sum->op->backend,
                                                      .log = log};
    if (!batch->is_drawn) {
        LR_TRY(family->choice->arrange(&batch->lines, &params));
        if (batch->lines.held == NULL) {
            lr_listmode_events_finish(&batch->lines);
            batch->count = gather(batch);
            LR_TRY(batch->count > 0 ? open_lines(batch, log) : LR_OK);
        }
    }
    if (batch->count == 0) return LR_OK;
    if (batch->lines.held == NULL) {
        const lr_listmode_params asked = params_of(batch, log);
        LR_TRY(lr_listmode_arrange(family, &batch->lines, &asked, &params));
    }

    struct lr_backend backend = {0};
    lr_vector values = {0};
    const int64_t count = batch->lines.layout.count;
    LR_TRY(lr_listmode_open(family, &params, &backend));
    lr_status status = sum->factors != NULL ? lr_make_numbers(sum->op, "factors of lines", count, &values) : LR_OK;
    for (int64_t k = 0; status == LR_OK && sum->factors != NULL && k < count; k++)
        lr_number_put(&values, k, sum->factors[k]);
    if (status == LR_OK)
        status = backend.fns->back(backend.self, NULL, sum->factors != NULL ? &values : NULL, &sum->image);
    lr_vector_destroy(&values);
    backend.fns->destroy(backend.self);
    return status;
}

static void add_voxels(void *user, int64_t begin, int64_t end, int worker)
{
    const struct lr_line_sum *sum = user;
    (void)worker;
    for (int64_t v = begin; v < end; v++)
        (sum->group != NULL ? sum->group : sum->total)[v] += lr_number_get(&sum->image, v);
}

static void end_group(void *user, int64_t begin, int64_t end, int worker)
{
    const struct lr_line_sum *sum = user;
    (void)worker;
    for (int64_t v = begin; v < end; v++) {
        sum->total[v] += sum->group[v];
        sum->squares[v] += sum->group[v] * sum->group[v];
        sum->group[v] = 0.0;
    }
}

/* Adds a prepared batch and frees its lines. */
static lr_status add_batch(struct lr_line_batch *batch)
{
    struct lr_line_sum *sum = batch->sum;
    const lr_log *log = sum->op->params.log;
    if (batch->count == 0) return LR_OK;
    /* If the lines could not be opened before, they are opened again with a log, which then names the error. */
    LR_TRY(batch->status == LR_OK ? LR_OK : open_lines(batch, log));
    const lr_lor_source *source = &sum->family->factors;
    const lr_lor_span span = {.numbers = batch->packed.numbers, .count = batch->count};
    lr_status status = sum->factors != NULL ? source->get(source->user, &span, sum->factors) : LR_OK;

    status = status == LR_OK ? project(batch) : status;
    lr_listmode_events_finish(&batch->lines);
    if (status == LR_OK && batch->count > 0)
        lr_parallel_for(sum->op->params.threads, sum->image.count, VOXELS_OF_BLOCK, add_voxels, sum);
    return status;
}

/* Sets up the batch after `before`, or the first one if NULL. false: there are no more batches. */
static bool next_batch(struct lr_line_batch *batch, const struct lr_line_batch *before)
{
    const struct lr_line_sum *sum = batch->sum;
    const int groups = sum->num_groups;
    const int64_t most = sum->at_once * sum->family->sensitivity_parts;
    batch->group = before != NULL ? before->group : 0;
    batch->first = before != NULL ? before->end : 0;
    int64_t lines = (sum->num_lines - batch->group + groups - 1) / groups;
    if (batch->first >= lines) {
        batch->group++;
        batch->first = 0;
        lines = (sum->num_lines - batch->group + groups - 1) / groups;
    }
    batch->end = batch->first + most < lines ? batch->first + most : lines;
    return batch->group < groups && batch->first < lines;
}

lr_status lr_line_sum_run(struct lr_line_sum *sum)
{
    struct lr_line_batch *batch = &sum->batches[0], *next = &sum->batches[1];
    lr_status status = LR_OK;
    bool is_there = next_batch(batch, NULL);
    if (is_there) prepare(batch);
    while (is_there && status == LR_OK) {
        status =
            lr_progress_report(sum->op->params.progress, "sensitivity",
                               (double)batch->group * (double)sum->num_lines / sum->num_groups + (double)batch->first,
                               (double)sum->num_lines);
        const bool goes_on = next_batch(next, batch);
        if (status == LR_OK) {
            if (!batch->is_drawn && !sum->by_device) { /* batches share an array, so no second thread draws */
                lr_listmode_events_finish(&batch->lines);
                prepare(batch);
            }
            /* While a device projects a batch, the processors prepare the next one. This also holds for devices in
             * software, so that tests cover it. */
            struct lr_background preparing = {0};
            const bool is_beside = goes_on && lr_place_get_info(sum->op->backend.place).kind != LR_PLACE_HOST;
            if (is_beside) lr_background_start(&preparing, prepare, next);
            status = add_batch(batch);
            lr_background_wait(&preparing);
            /* If the device had no memory to draw a batch, processors draw all later ones. */
            sum->by_device = sum->by_device && !batch->is_drawn;
            if (goes_on && !is_beside && status == LR_OK) prepare(next);
        }

        if (sum->group != NULL && (!goes_on || next->group != batch->group))
            lr_parallel_for(sum->op->params.threads, sum->image.count, VOXELS_OF_BLOCK, end_group, sum);
        struct lr_line_batch *const done = batch;
        batch = next;
        next = done;
        is_there = goes_on;
    }
    return status;
}

double lr_line_sum_variance(const struct lr_line_sum *sum, int64_t v)
{
    const double groups = sum->num_groups;
    const double scatter = sum->squares[v] - sum->total[v] * sum->total[v] / groups;
    return scatter > 0.0 ? groups / (groups - 1.0) * scatter : 0.0;
}

static bool open_drawn(struct lr_drawn_lines *drawn, const struct lr_line_sum *sum)
{
    const lr_log *log = sum->op->params.log;
    const bool has_factors = sum->family->factors.get != NULL;
    drawn->events = lr_alloc(sum->at_once, sizeof(*drawn->events), "lines", log);
    drawn->numbers = has_factors ? lr_alloc(sum->at_once, sizeof(*drawn->numbers), "lines", log) : NULL;
    return drawn->events != NULL && (drawn->numbers != NULL) == has_factors;
}

lr_status lr_line_sum_open(struct lr_line_sum *sum)
{
    const int64_t num_voxels = sum->op->info.num_voxels;
    const lr_log *log = sum->op->params.log;
    const bool has_factors = sum->family->factors.get != NULL;
    sum->stride = (double)sum->lors->count / (double)sum->num_lines;
    sum->at_once = sum->op->backend.is_gpu ? LINES_ON_DEVICE : LINES_AT_ONCE;
    /* The host draws if there are factors, because they are looked up by the numbers of LORs. It also draws for
     * blobs, because their two grids do not share the events of a device. */
    sum->by_device = sum->family->choice->arrange != NULL && !has_factors && !(sum->family->info.blobs.radius_mm > 0);
    sum->total = lr_alloc(num_voxels, sizeof(double), "the sensitivity", log);
    bool has_all = sum->total != NULL;
    if (sum->has_scatter) {
        sum->group = lr_alloc(num_voxels, sizeof(double), "the sensitivity", log);
        sum->squares = lr_alloc(num_voxels, sizeof(double), "the sensitivity", log);
        has_all = has_all && sum->group != NULL && sum->squares != NULL;
    }
    has_all = open_drawn(&sum->drawn, sum) && has_all;
    for (int k = 0; k < 2; k++) {
        sum->batches[k].sum = sum;
        has_all = open_drawn(&sum->batches[k].packed, sum) && has_all;
    }
    sum->factors = has_factors ? lr_alloc(sum->at_once, sizeof(*sum->factors), "lines", log) : NULL;
    has_all = has_all && (sum->factors != NULL) == has_factors;
    LR_TRY(has_all ? LR_OK : LR_FAILED);
    return lr_make_numbers(sum->op, "an image in the backend's precision", num_voxels, &sum->image);
}

void lr_line_sum_close(struct lr_line_sum *sum)
{
    free(sum->group);
    free(sum->total);
    free(sum->squares);
    free(sum->drawn.events);
    free(sum->drawn.numbers);
    for (int k = 0; k < 2; k++) {
        free(sum->batches[k].packed.events);
        free(sum->batches[k].packed.numbers);
        lr_listmode_events_finish(&sum->batches[k].lines);
    }
    free(sum->factors);
    lr_vector_destroy(&sum->image);
}
