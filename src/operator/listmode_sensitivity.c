/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The sensitivity of list mode: every LOR in coincidence, or a sample of them, as events without time of
 * flight are projected back by the same kernel (docs/method/listmode.md, "Sensitivity"). */
#include "base/background.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "listmode/sample.h"
#include "model/lors/place.h"
#include "model/lors/selection.h"
#include "operator/listmode_facade.h"
#include "operator/numbers.h"
#include "operator/project.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* LORs that are events at a time: each time a backend is opened for them, which on a graphics processor takes
 * as long as projecting a million. Processors hear more often whether they are to stop. */
enum { LINES_AT_ONCE = 1 << 20, LINES_ON_DEVICE = 1 << 23 };

/* Lines and voxels that a thread takes at a time. */
enum { LINES_OF_BLOCK = 1 << 14, VOXELS_OF_BLOCK = 1 << 16 };

/* Of a sample, lines go to two halves in turn, by whose difference its error is known. */
enum { HALVES = 2 };

/* LORs that are events; numbers: NULL where nothing is asked by them. */
struct drawn {
    lr_event *events;
    int64_t *numbers;
};

struct sum;

/* Lines first <= line < end of one half that are projected together. */
struct batch {
    struct sum *sum;
    int half;
    int64_t first, end;
    struct lr_listmode_sample sample;
    bool is_drawn;       /* packed has the LORs; else the device is to draw them */
    struct drawn packed; /* [at_once] the LORs, ascending */
    int64_t count;
    struct lr_listmode_events lines;
    lr_status status; /* of making `lines` */
};

struct sum {
    struct lr_operator *op;
    struct lr_listmode_family *family;
    double *half[HALVES];    /* [num_voxels] */
    int64_t at_once;         /* of each half */
    struct drawn drawn;      /* [at_once] as threads draw them, with gaps */
    struct batch batches[2]; /* the one at hand and the next one, in turn */
    float *factors;          /* [at_once], or NULL: all are 1 */
    lr_vector image;         /* in the backend's precision */
    int64_t num_lines;
    double stride;  /* LORs for each line */
    bool by_device; /* it draws LORs, if it has the memory */
};

/* Lines from which the events of a batch come. */
struct lines {
    struct sum *sum;
    const struct batch *batch;
    struct {
        int64_t kept, place; /* from where the block begins; where they are to begin */
    } blocks[LINES_ON_DEVICE / HALVES / LINES_OF_BLOCK + 1];
};

static void draw_block(void *user, int64_t begin, int64_t end, int worker)
{
    struct lines *lines = user;
    struct sum *sum = lines->sum;
    struct lr_place place = {.lors = sum->family->lors};
    int64_t at = begin;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        const int64_t lor = lr_listmode_sample_lor(&lines->batch->sample, k);
        lr_place_seek(&place, lor);
        if (!lr_place_in_coincidence(&place)) {
            continue;
        }
        if (sum->drawn.numbers != NULL) {
            sum->drawn.numbers[at] = lor;
        }
        sum->drawn.events[at++] =
            (lr_event){.crystals = {place.first_i + place.a, place.first_j + place.b}, .weight = 1};
    }
    lines->blocks[begin / LINES_OF_BLOCK].kept = at - begin;
}

static void pack_block(void *user, int64_t begin, int64_t end, int worker)
{
    const struct lines *lines = user;
    const struct drawn *from = &lines->sum->drawn, *to = &lines->batch->packed;
    const size_t kept = (size_t)lines->blocks[begin / LINES_OF_BLOCK].kept;
    const int64_t place = lines->blocks[begin / LINES_OF_BLOCK].place;
    (void)end;
    (void)worker;
    memcpy(to->events + place, from->events + begin, kept * sizeof(*to->events));
    if (to->numbers != NULL) {
        memcpy(to->numbers + place, from->numbers + begin, kept * sizeof(*to->numbers));
    }
}

/* Puts what blocks have kept one behind the other. */
static int64_t close_gaps(struct lines *lines, int64_t count)
{
    int64_t sum = 0;
    for (int64_t begin = 0; begin < count; begin += LINES_OF_BLOCK) {
        lines->blocks[begin / LINES_OF_BLOCK].place = sum;
        sum += lines->blocks[begin / LINES_OF_BLOCK].kept;
    }
    lr_parallel_for(lines->sum->op->params.threads, count, LINES_OF_BLOCK, pack_block, lines);
    return sum;
}

/* The lines of a batch: of its half those up to `end`, of which this part has each step-th. */
static struct lr_listmode_sample find_sample(const struct batch *batch)
{
    const struct sum *sum = batch->sum;
    const struct lr_listmode_family *family = sum->family;
    const int64_t step = family->sensitivity_parts, part = family->sensitivity_part;
    const int64_t begin = batch->first / HALVES,
                  end = (batch->end - batch->half + HALVES - 1) / HALVES;
    const int64_t first = part + (begin - part + step - 1) / step * step;
    return (struct lr_listmode_sample){.lors = family->lors,
                                       .stride = sum->stride,
                                       .seed = family->seed,
                                       .first = HALVES * first + batch->half,
                                       .step = HALVES * step,
                                       .count = end > first ? (end - first + step - 1) / step : 0};
}

/* The LORs of a batch that are in coincidence; returns how many. */
static int64_t gather(struct batch *batch)
{
    struct lines lines = {.sum = batch->sum, .batch = batch};
    const int64_t count = batch->sample.count;
    lr_parallel_for(batch->sum->op->params.threads, count, LINES_OF_BLOCK, draw_block, &lines);
    batch->is_drawn = true;
    return close_gaps(&lines, count);
}

static lr_listmode_params params_of(const struct batch *batch, const lr_log *log)
{
    const struct sum *sum = batch->sum;
    return (lr_listmode_params){.lors = sum->family->lors,
                                .grid = &sum->op->grid,
                                .events = batch->packed.events,
                                .count = batch->count,
                                .threads = sum->op->params.threads,
                                .log = log};
}

static lr_status open_lines(struct batch *batch, const lr_log *log)
{
    const lr_listmode_params params = params_of(batch, log);
    batch->status = batch->is_drawn
                        ? lr_listmode_events_open(&batch->lines, &params)
                        : lr_listmode_events_open_sample(&batch->lines, &params, &batch->sample);
    if (batch->status != LR_OK) {
        lr_listmode_events_finish(&batch->lines);
    }
    return batch->status;
}

/* May run in a thread of its own, so it logs nothing. */
static void prepare(void *user)
{
    struct batch *batch = user;
    batch->sample = find_sample(batch);
    batch->is_drawn = false;
    batch->count = batch->sum->by_device ? batch->sample.count : gather(batch);
    if (batch->count > 0) {
        (void)open_lines(batch, NULL);
    }
}

static lr_status find_factors(struct batch *batch)
{
    struct sum *sum = batch->sum;
    const lr_lor_source *source = &sum->family->factors;
    const lr_lor_span span = {.numbers = batch->packed.numbers, .count = batch->count};
    return sum->factors != NULL ? source->get(source->user, &span, sum->factors) : LR_OK;
}

/* values: filled in and for the caller to destroy, or not touched where all are 1. */
static lr_status put_factors(const struct sum *sum, int64_t count, lr_vector *values)
{
    if (sum->factors == NULL) {
        return LR_OK;
    }
    LR_TRY(lr_make_numbers(sum->op, "factors of lines", count, values));
    for (int64_t k = 0; k < count; k++) {
        lr_number_put(values, k, sum->factors[k]);
    }
    return LR_OK;
}

/* Where the device has no memory to draw and hold them, the host does. */
static lr_status arrange(struct batch *batch, const struct lr_listmode_backend_params *params)
{
    const struct lr_listmode_family *family = batch->sum->family;
    if (!batch->is_drawn) {
        LR_TRY(family->arrange(&batch->lines, params));
        if (batch->lines.held != NULL) {
            return LR_OK;
        }
        lr_listmode_events_finish(&batch->lines);
        batch->count = gather(batch);
        LR_TRY(batch->count > 0 ? open_lines(batch, params->log) : LR_OK);
    }
    if (batch->count == 0) {
        return LR_OK;
    }
    const lr_listmode_params asked = params_of(batch, params->log);
    return lr_listmode_arrange(family, &batch->lines, &asked, params);
}

static lr_status project(struct batch *batch)
{
    struct sum *sum = batch->sum;
    const struct lr_listmode_backend_params params = {.model = &sum->family->model,
                                                      .events = &batch->lines,
                                                      .threads = sum->op->params.threads,
                                                      .device = sum->op->params.device,
                                                      .max_memory_bytes =
                                                          sum->op->params.max_memory_bytes,
                                                      .place = sum->op->backend.place,
                                                      .stands_for = &sum->op->backend,
                                                      .log = sum->op->params.log};
    struct lr_backend backend = {0};
    lr_vector values = {0};
    LR_TRY(arrange(batch, &params));
    if (batch->count == 0) {
        return LR_OK;
    }
    LR_TRY(lr_listmode_open(sum->family, &params, &backend));
    lr_status status = put_factors(sum, batch->lines.layout.count, &values);
    status = status == LR_OK ? backend.fns->back(backend.self, NULL,
                                                 sum->factors != NULL ? &values : NULL, &sum->image)
                             : status;
    lr_vector_destroy(&values);
    backend.fns->destroy(backend.self);
    return status;
}

struct adding {
    const lr_vector *image;
    double *half;
};

static void add_voxels(void *user, int64_t begin, int64_t end, int worker)
{
    const struct adding *adding = user;
    (void)worker;
    for (int64_t v = begin; v < end; v++) {
        adding->half[v] += lr_number_get(adding->image, v);
    }
}

/* Adds a batch that is prepared, whose lines are then gone. */
static lr_status add_batch(struct batch *batch)
{
    struct sum *sum = batch->sum;
    const lr_log *log = sum->op->params.log;
    if (batch->count == 0) {
        return LR_OK;
    }
    LR_TRY(batch->status == LR_OK
               ? LR_OK
               : open_lines(batch, log)); /* again, with a log: it tells why, or succeeds now */
    lr_status status = find_factors(batch);
    status = status == LR_OK ? project(batch) : status;
    lr_listmode_events_finish(&batch->lines);
    if (status == LR_OK && batch->count > 0) {
        lr_parallel_for(sum->op->params.threads, sum->image.count, VOXELS_OF_BLOCK, add_voxels,
                        &(struct adding){&sum->image, sum->half[batch->half]});
    }
    return status;
}

/* Sets up the batch after `before`, or the first one; false: there is none. */
static bool next_batch(struct batch *batch, const struct batch *before)
{
    const struct sum *sum = batch->sum;
    const int64_t most = HALVES * sum->at_once * sum->family->sensitivity_parts;
    const bool goes_on = before != NULL && before->half + 1 < HALVES;
    batch->half = goes_on ? before->half + 1 : 0;
    batch->first = before == NULL ? 0 : goes_on ? before->first : before->end;
    batch->end = batch->first + most < sum->num_lines ? batch->first + most : sum->num_lines;
    return batch->first < sum->num_lines;
}

/* Where the device had no memory to draw a batch, processors draw all that follow, beside it. */
static void note_who_draws(struct batch *batch)
{
    batch->sum->by_device = batch->sum->by_device && !batch->is_drawn;
}

/* While a device projects a batch, processors prepare the next one; also a device in software, so that tests
 * meet it. */
static lr_status add_and_prepare(struct batch *batch, struct batch *next)
{
    struct lr_background preparing = {0};
    const struct lr_backend *backend = &batch->sum->op->backend;
    if (!batch->is_drawn && !batch->sum->by_device) { /* only one thread may draw at a time */
        lr_listmode_events_finish(&batch->lines);
        prepare(batch);
    }
    const bool beside = next != NULL && lr_place_get_info(backend->place).kind != LR_PLACE_HOST;
    if (beside) {
        lr_background_start(&preparing, prepare, next);
    }
    const lr_status status = add_batch(batch);
    lr_background_wait(&preparing);
    note_who_draws(batch);
    if (next != NULL && !beside && status == LR_OK) {
        prepare(next);
    }
    return status;
}

static lr_status add_all(struct sum *sum)
{
    struct batch *batch = &sum->batches[0], *next = &sum->batches[1];
    lr_status status = LR_OK;
    bool is_there = next_batch(batch, NULL);
    if (is_there) {
        prepare(batch);
    }
    while (is_there && status == LR_OK) {
        status = lr_progress_report(sum->op->params.progress, "sensitivity", (double)batch->first,
                                    (double)sum->num_lines);
        const bool goes_on = next_batch(next, batch);
        status = status == LR_OK ? add_and_prepare(batch, goes_on ? next : NULL) : status;
        struct batch *const done = batch;
        batch = next;
        next = done;
        is_there = goes_on;
    }
    return status;
}

/* Root mean square over the voxels of the difference of the halves, which is as large as the error of
 * their sum, as a part of the mean sensitivity. */
static double find_error(const struct sum *sum, int64_t num_voxels)
{
    double squares = 0.0, total = 0.0;
    for (int64_t v = 0; v < num_voxels; v++) {
        const double apart = sum->half[0][v] - sum->half[1][v];
        squares += apart * apart;
        total += sum->half[0][v] + sum->half[1][v];
    }
    return sum->stride > 1.0 && total > 0.0
               ? sqrt(squares * (double)num_voxels / sum->family->sensitivity_parts) / total
               : 0.0;
}

static bool open_drawn(struct drawn *drawn, const struct sum *sum)
{
    const lr_log *log = sum->op->params.log;
    const bool has_factors = sum->family->factors.get != NULL;
    drawn->events = lr_alloc(sum->at_once, sizeof(*drawn->events), "lines", log);
    drawn->numbers =
        has_factors ? lr_alloc(sum->at_once, sizeof(*drawn->numbers), "lines", log) : NULL;
    return drawn->events != NULL && (drawn->numbers != NULL) == has_factors;
}

static lr_status open_sum(struct sum *sum)
{
    const int64_t num_voxels = sum->op->info.num_voxels;
    const lr_log *log = sum->op->params.log;
    bool has_all = true;
    for (int half = 0; half < HALVES; half++) {
        sum->half[half] = lr_alloc(num_voxels, sizeof(double), "the sensitivity", log);
        has_all = has_all && sum->half[half] != NULL;
    }
    const bool has_factors = sum->family->factors.get != NULL;
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

static void close_drawn(struct drawn *drawn)
{
    free(drawn->events);
    free(drawn->numbers);
}

static void close_sum(struct sum *sum)
{
    for (int half = 0; half < HALVES; half++) {
        free(sum->half[half]);
    }
    close_drawn(&sum->drawn);
    for (int k = 0; k < 2; k++) {
        close_drawn(&sum->batches[k].packed);
        lr_listmode_events_finish(&sum->batches[k].lines);
    }
    free(sum->factors);
    lr_vector_destroy(&sum->image);
}

static void tell(const struct sum *sum)
{
    const lr_listmode_info *info = &sum->family->info;
    if (info->sensitivity_error > 0.0) {
        lr_info(
            sum->op->params.log,
            "the sensitivity is from %lld of %lld LORs: a voxel is known to %.2g %% of the mean",
            (long long)info->sensitivity_lines, (long long)sum->family->lors->count,
            100.0 * info->sensitivity_error);
    }
}

static lr_status compute(struct lr_operator *op, float *values)
{
    struct lr_listmode_family *family = op->listmode;
    const int64_t all = family->lors->count;
    struct sum sum = {.op = op,
                      .family = family,
                      .num_lines = all < family->wanted_lines ? all : family->wanted_lines};
    sum.stride = (double)all / (double)sum.num_lines;
    sum.at_once = (op->backend.is_gpu ? LINES_ON_DEVICE : LINES_AT_ONCE) / HALVES;
    /* Factors are asked for by the LORs' numbers; grids of blobs do not share what a device holds. */
    sum.by_device = family->arrange != NULL && family->factors.get == NULL &&
                    !(family->info.blobs.radius_mm > 0);
    lr_status status = open_sum(&sum);
    status = status == LR_OK ? add_all(&sum) : status;
    for (int64_t v = 0; status == LR_OK && v < op->info.num_voxels; v++) {
        values[v] = (float)(sum.stride * (sum.half[0][v] + sum.half[1][v]));
    }
    if (status == LR_OK) {
        family->info.sensitivity_lines = sum.num_lines;
        family->info.sensitivity_error = find_error(&sum, op->info.num_voxels);
        tell(&sum);
    }
    close_sum(&sum);
    return status;
}

static lr_status keep(struct lr_operator *op);

/* Of another operator, which has the same. */
static lr_status take(struct lr_operator *op, float *values)
{
    struct lr_operator *from = op->listmode->sensitivity_of;
    const lr_status status = from->sensitivity == NULL ? keep(from) : LR_OK;
    if (status != LR_OK) { /* its device may be lost, where this one's is not */
        return status == LR_CANCELLED ? status : compute(op, values);
    }
    memcpy(values, from->sensitivity, (size_t)op->info.num_voxels * sizeof(*values));
    op->listmode->info.sensitivity_lines = from->listmode->info.sensitivity_lines;
    op->listmode->info.sensitivity_error = from->listmode->info.sensitivity_error;
    return LR_OK;
}

static lr_status keep(struct lr_operator *op)
{
    const bool takes = op->listmode->sensitivity_of != NULL;
    float *values =
        lr_alloc(op->info.num_voxels, sizeof(*values), "the sensitivity", op->params.log);
    const lr_status status = values == NULL ? LR_FAILED
                             : takes        ? take(op, values)
                                            : compute(op, values);
    if (status == LR_OK) {
        op->sensitivity = values;
    } else {
        free(values);
    }
    return status;
}

struct scaling {
    const float *from;
    double share;
    const lr_vector *to;
};

static void scale_share(void *user, int64_t begin, int64_t end, int worker)
{
    const struct scaling *scaling = user;
    (void)worker;
    for (int64_t v = begin; v < end; v++) {
        lr_number_put(scaling->to, v, scaling->share * (double)scaling->from[v]);
    }
}

static void put_scaled(const struct lr_operator *op, double share, lr_vector *numbers)
{
    lr_parallel_for(op->params.threads, numbers->count, VOXELS_OF_BLOCK, scale_share,
                    &(struct scaling){op->sensitivity, share, numbers});
}

lr_status lr_listmode_sensitivity(struct lr_operator *op, const lr_selection *part,
                                  lr_vector *image)
{
    const double events = (double)lr_selection_count(op->params.lors, part);
    const double share = events / (double)op->info.num_lors;
    lr_vector scaled;
    if (op->sensitivity == NULL) {
        LR_TRY(keep(op));
    }
    if (image->values != NULL) {
        put_scaled(op, share, image);
        return LR_OK;
    }
    LR_TRY(lr_make_numbers(op, "the sensitivity", op->info.num_voxels, &scaled));
    put_scaled(op, share, &scaled);
    const lr_status status = lr_vector_copy(&scaled, image);
    lr_vector_destroy(&scaled);
    return status;
}
