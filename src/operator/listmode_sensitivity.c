/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The sensitivity of list mode: the back projection of all LORs in coincidence, or of a sample of them, with the kernel
 * that the events use. Samples are denser where fewer LORs cross the image (docs/method/listmode.md, "Sensitivity").
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "listmode/events.h"
#include "listmode/line.h"
#include "listmode/region.h"
#include "model/lors/place.h"
#include "model/lors/selection.h"
#include "operator/facade.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* LORs stored as events. numbers: LOR numbers, needed to look up factors; otherwise NULL. */
struct drawn_lines {
    lr_event *events;
    int64_t *numbers;
};

struct line_sum;

/* Lines of one group that are projected together. */
struct line_batch {
    struct line_sum *sum;
    int group;
    int64_t first, end; /* range in the group */
    struct lr_listmode_sample sample;
    bool is_drawn;             /* true if `packed` has the LORs; false if the device will draw them at random */
    struct drawn_lines packed; /* [at_once] the LORs, ascending */
    int64_t count;
    struct lr_listmode_events lines;
    lr_vector weights; /* [count] factors times solid angles; empty = all are 1 */
    lr_status status;  /* status of making `lines` */
};

/* A sample of LORs, which are called lines here. Lines are numbered, and consecutive lines are in different groups.
 * Each group is projected separately. The scatter of the groups' sums gives the error. */
struct line_sum {
    struct lr_operator *op;
    struct lr_listmode_family *family;
    const lr_lors *lors;                     /* LORs from which lines are drawn */
    const struct lr_listmode_region *region; /* only lines near this region are used; NULL = all lines */
    double reach_mm;                         /* a line is near the region if its distance is at most this */
    uint64_t seed;
    int64_t num_lines;
    double stride; /* number of LORs for each line that is drawn */
    /* Progress is counted in lines through the whole image. takes: number of such lines whose projection takes as long
     * as this sum; lines_before: the same for all earlier sums; all_lines: the same for all sums. */
    double lines_before, takes, all_lines;
    int num_groups;
    bool has_scatter;
    double *total;                /* [num_voxels] */
    double *group, *squares;      /* [num_voxels] group: sum of the current group; squares: sum of the squared sums of
                                     all groups; both NULL without scatter */
    int64_t at_once;              /* largest number of lines of a batch */
    struct drawn_lines drawn;     /* [at_once]: lines as threads have drawn them, with gaps between the threads'
                                     blocks */
    struct line_batch batches[2]; /* the current and the next batch, in turn */
    float *factors;               /* [at_once]: factors of the LORs; NULL = all are 1 */
    lr_vector image;              /* image in the backend's precision */
    bool by_device;               /* true if the device draws the lines; false once it has had too little memory */
};

/* The number of LORs of a batch. Each batch opens a backend. On a graphics processor, opening a backend takes as long
 * as projecting a million LORs. On processors, batches are smaller, so that the user can stop sooner. */
enum { LINES_AT_ONCE = 1 << 19, EXACT_AT_ONCE = 1 << 15, LINES_ON_DEVICE = 1 << 22 };

/* The numbers of lines and of voxels that a thread takes at a time. */
enum { LINES_OF_BLOCK = 1 << 14, VOXELS_OF_BLOCK = 1 << 16 };

/* The drawing of a batch's lines: threads take one block of lines after another. */
struct lines {
    struct line_sum *sum;
    const struct line_batch *batch;
    struct {
        /* count: number of the block's used lines; place: index of the first of these among the used lines of all
         * blocks */
        int64_t count, place;
    } blocks[LINES_ON_DEVICE / LINES_OF_BLOCK + 1];
};

static void draw_block(void *user, int64_t begin, int64_t end)
{
    struct lines *lines = user;
    struct line_sum *sum = lines->sum;
    const double(*hits)[3] = (const double(*)[3])sum->family->events.hits;
    struct lr_lor_place place = {.lors = sum->lors};
    int64_t at = begin;
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

static void pack_block(void *user, int64_t begin, int64_t end)
{
    const struct lines *lines = user;
    const struct drawn_lines *from = &lines->sum->drawn, *to = &lines->batch->packed;
    const size_t count = (size_t)lines->blocks[begin / LINES_OF_BLOCK].count;
    const int64_t place = lines->blocks[begin / LINES_OF_BLOCK].place;
    (void)end;
    memcpy(to->events + place, from->events + begin, count * sizeof(*to->events));
    if (to->numbers != NULL) memcpy(to->numbers + place, from->numbers + begin, count * sizeof(*to->numbers));
}

/* Draws those LORs of a batch that are in coincidence and near the region, and returns their number. */
static int64_t gather(struct line_batch *batch)
{
    struct lines lines = {.sum = batch->sum, .batch = batch};
    const int64_t count = batch->sample.count;
    lr_parallel_for(batch->sum->op->params.threads, count, LINES_OF_BLOCK, draw_block, &lines);
    batch->is_drawn = true;
    /* The used lines of all blocks are joined in one list. */
    int64_t sum = 0;
    for (int64_t begin = 0; begin < count; begin += LINES_OF_BLOCK) {
        lines.blocks[begin / LINES_OF_BLOCK].place = sum;
        sum += lines.blocks[begin / LINES_OF_BLOCK].count;
    }
    lr_parallel_for(lines.sum->op->params.threads, count, LINES_OF_BLOCK, pack_block, &lines);
    return sum;
}

static lr_listmode_params params_of(const struct line_batch *batch, const lr_log *log)
{
    const struct line_sum *sum = batch->sum;
    return (lr_listmode_params){.lors = sum->family->lors,
                                .grid = &sum->op->grid,
                                .events = batch->packed.events,
                                .count = batch->count,
                                .threads = sum->op->params.threads,
                                .log = log};
}

static lr_status open_lines(struct line_batch *batch, const lr_log *log)
{
    const lr_listmode_params params = params_of(batch, log);
    batch->status = lr_listmode_events_open(&batch->lines, &params, batch->is_drawn ? NULL : &batch->sample);
    if (batch->status != LR_OK) lr_listmode_events_finish(&batch->lines);
    return batch->status;
}

/* Makes the lines of a batch. A second thread may make this call, so there is no log. */
static void prepare(void *user)
{
    struct line_batch *batch = user;
    /* If the sensitivity is computed in several parts, each part takes every step-th line. */
    const struct line_sum *sum = batch->sum;
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

/* Sets the weights of lines on the host. */
static void weigh_lines(void *user, int64_t begin, int64_t end)
{
    const struct line_batch *batch = user;
    const struct lr_listmode_family *family = batch->sum->family;
    const double(*hits)[3] = (const double(*)[3])family->events.hits;
    for (int64_t k = begin; k < end; k++) {
        const int32_t *crystals = batch->packed.events[k].crystals;
        double weight = batch->sum->factors != NULL ? (double)batch->sum->factors[k] : 1.0;
        if (family->faces.areas_mm2 != NULL)
            weight *= lr_listmode_solid_angle(&family->faces, hits, crystals[0], crystals[1]);
        lr_number_put(&batch->weights, k, weight);
    }
}

static void add_voxels(void *user, int64_t begin, int64_t end)
{
    const struct line_sum *sum = user;
    for (int64_t v = begin; v < end; v++)
        (sum->group != NULL ? sum->group : sum->total)[v] += lr_number_get(&sum->image, v);
}

static void end_group(void *user, int64_t begin, int64_t end)
{
    const struct line_sum *sum = user;
    for (int64_t v = begin; v < end; v++) {
        sum->total[v] += sum->group[v];
        sum->squares[v] += sum->group[v] * sum->group[v];
        sum->group[v] = 0.0;
    }
}

/* Projects a prepared batch, adds it to the sums and frees its lines. After an error line_sum_close frees them. If the
 * device has enough memory, it draws and stores the lines, otherwise the host does. */
static lr_status add_batch(struct line_batch *batch)
{
    struct line_sum *sum = batch->sum;
    const struct lr_listmode_family *family = sum->family;
    const lr_log *log = sum->op->params.log;
    if (batch->count == 0) return LR_OK;
    /* Lines that could not be opened are opened once more with a log, so that the error is logged. */
    LR_TRY(batch->status == LR_OK ? LR_OK : open_lines(batch, log));
    const struct lr_listmode_backend_params params = {.model = &family->model,
                                                      .events = &batch->lines,
                                                      .threads = sum->op->params.threads,
                                                      .device = sum->op->params.device,
                                                      .max_memory_bytes = sum->op->params.max_memory_bytes,
                                                      .place = sum->op->backend.place,
                                                      .stands_for = &sum->op->backend,
                                                      .log = log};
    const bool is_weighted = sum->factors != NULL || family->faces.areas_mm2 != NULL;
    if (!batch->is_drawn) {
        /* If the device lacks memory for the weights or the lines, the host draws the lines. */
        if (is_weighted) {
            const lr_vector_params of_lines = {.place = sum->op->backend.place, .count = batch->count};
            (void)lr_vector_create(&of_lines, &batch->weights);
        }
        if (!is_weighted || batch->weights.storage != NULL) {
            if (is_weighted) {
                batch->sample.faces = &family->faces;
                batch->sample.weights = (float *)batch->weights.storage->block + batch->weights.begin;
            }
            LR_TRY(family->choice->arrange(&batch->lines, &params));
        }
        if (batch->lines.held == NULL) {
            lr_vector_destroy(&batch->weights);
            lr_listmode_events_finish(&batch->lines);
            batch->count = gather(batch);
            if (batch->count == 0) return LR_OK;
            LR_TRY(open_lines(batch, log));
        }
    }
    if (batch->lines.held == NULL) {
        const lr_lor_source *source = &family->factors;
        const lr_lor_span span = {.numbers = batch->packed.numbers, .count = batch->count};
        LR_TRY(sum->factors != NULL ? source->get(source->user, &span, sum->factors) : LR_OK);
        LR_TRY(is_weighted ? lr_make_numbers(sum->op, "weights of lines", batch->count, &batch->weights) : LR_OK);
        if (is_weighted) lr_parallel_for(sum->op->params.threads, batch->count, LINES_OF_BLOCK, weigh_lines, batch);
        const lr_listmode_params asked = params_of(batch, log);
        LR_TRY(lr_listmode_arrange(family, &batch->lines, &asked, &params));
    }

    struct lr_backend backend = {0};
    LR_TRY(lr_listmode_open(family, &params, &backend));
    const lr_status status =
        backend.fns->project(backend.self, false, NULL, is_weighted ? &batch->weights : NULL, &sum->image);
    backend.fns->destroy(backend.self);
    lr_vector_destroy(&batch->weights);
    lr_listmode_events_finish(&batch->lines);
    if (status == LR_OK) lr_parallel_for(sum->op->params.threads, sum->image.count, VOXELS_OF_BLOCK, add_voxels, sum);
    return status;
}

/* Sets up the batch after `before`, or the first batch if `before` is NULL. Returns false if no batch is left. */
static bool next_batch(struct line_batch *batch, const struct line_batch *before)
{
    const struct line_sum *sum = batch->sum;
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

/* Projects all lines back. sum->total becomes the sum over all groups, and sum->squares becomes the sum, over all
 * groups, of the square of a group's sum. errors: LR_CANCELLED; errors of backends. */
static lr_status line_sum_run(struct line_sum *sum)
{
    struct line_batch *batch = &sum->batches[0], *next = &sum->batches[1];
    lr_status status = LR_OK;
    bool is_there = next_batch(batch, NULL);
    if (is_there) prepare(batch);
    while (is_there && status == LR_OK) {
        const double share = (double)batch->group / sum->num_groups + (double)batch->first / (double)sum->num_lines;
        const double taken = fmin(sum->lines_before + sum->takes * share, sum->all_lines);
        const double parts = sum->family->sensitivity_parts;
        status = lr_progress_report(sum->op->params.progress, "sensitivity", taken / parts, sum->all_lines / parts);
        const bool goes_on = next_batch(next, batch);
        if (status == LR_OK) {
            if (!batch->is_drawn && !sum->by_device) { /* all batches draw into one array, so no second thread may
                                                          draw */
                lr_listmode_events_finish(&batch->lines);
                prepare(batch);
            }
            /* The processors prepare the next batch while a device projects this one, even if the device is a software
             * renderer, so that tests run this code. */
            struct lr_background preparing = {0};
            const bool is_beside = goes_on && lr_place_get_info(sum->op->backend.place).kind != LR_PLACE_HOST;
            if (is_beside) lr_background_start(&preparing, prepare, next);
            status = add_batch(batch);
            lr_background_wait(&preparing);
            /* If a device has had too little memory to draw a batch, the processors draw all later ones. */
            sum->by_device = sum->by_device && !batch->is_drawn;
            if (goes_on && !is_beside && status == LR_OK) prepare(next);
        }

        if (sum->group != NULL && (!goes_on || next->group != batch->group))
            lr_parallel_for(sum->op->params.threads, sum->image.count, VOXELS_OF_BLOCK, end_group, sum);
        struct line_batch *const done = batch;
        batch = next;
        next = done;
        is_there = goes_on;
    }
    return status;
}

/* The variance of a voxel's total, estimated from the scatter of the groups' sums. */
static double line_sum_variance(const struct line_sum *sum, int64_t v)
{
    const double groups = sum->num_groups;
    const double scatter = sum->squares[v] - sum->total[v] * sum->total[v] / groups;
    return scatter > 0.0 ? groups / (groups - 1.0) * scatter : 0.0;
}

static bool open_drawn(struct drawn_lines *drawn, const struct line_sum *sum)
{
    const lr_log *log = sum->op->params.log;
    const bool has_factors = sum->family->factors.get != NULL;
    drawn->events = lr_alloc(sum->at_once, sizeof(*drawn->events), "lines", log);
    drawn->numbers = has_factors ? lr_alloc(sum->at_once, sizeof(*drawn->numbers), "lines", log) : NULL;
    return drawn->events != NULL && (drawn->numbers != NULL) == has_factors;
}

/* Opens a sum. The caller sets op, family, lors, seed, num_lines, num_groups and has_scatter before, and closes the sum
 * even after an error. */
static lr_status line_sum_open(struct line_sum *sum)
{
    const int64_t num_voxels = sum->op->info.num_voxels;
    const lr_log *log = sum->op->params.log;
    const bool has_factors = sum->family->factors.get != NULL;
    sum->stride = (double)sum->lors->count / (double)sum->num_lines;
    sum->at_once = sum->op->backend.is_gpu                         ? LINES_ON_DEVICE
                   : sum->family->info.kernel == LR_LISTMODE_EXACT ? EXACT_AT_ONCE
                                                                   : LINES_AT_ONCE;
    /* The host draws lines if factors are looked up by their LOR numbers, and for blobs, because the backends of the
     * two grids cannot share events on a device. */
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

static void line_sum_close(struct line_sum *sum)
{
    lr_free_all(sum->group, sum->total, sum->squares, sum->drawn.events, sum->drawn.numbers);
    for (int k = 0; k < 2; k++) {
        lr_free_all(sum->batches[k].packed.events, sum->batches[k].packed.numbers);
        lr_listmode_events_finish(&sum->batches[k].lines);
        lr_vector_destroy(&sum->batches[k].weights);
    }
    free(sum->factors);
    lr_vector_destroy(&sum->image);
}

/* --- levels of voxels, and pieces of the image --- */

/* Levels of voxels. A first sample of lines, the guide, sets the level of each voxel. Level 0 needs only the lines that
 * are drawn for all voxels. Each further level has twice as many lines as the level before, drawn from the LORs near
 * the level's voxels. The last two levels use all LORs near their voxels. The very last level is for voxels that no
 * line of the guide crossed. */
enum { MOST_LEVELS = 48, LEFT_AT_0 = 255, LINES_PER_LEVEL = 2 };

/* GUIDE_LINES: largest number of lines of the guide. GUIDE_GROUPS: number of the guide's groups, whose scatter gives
 * the error. */
enum { GUIDE_LINES = 1 << 20, GUIDE_GROUPS = 8 };

/* TILE: edge of the squares in a slice over which the scatter of groups is averaged. AROUND: each voxel's sensitivity
 * is averaged over neighbours up to this distance, because few lines of the guide cross a voxel. STEEP: if a voxel's
 * own sensitivity is below mean / STEEP, the own sensitivity replaces the mean. This happens at the border of the field
 * of view. */
enum { TILE = 16, AROUND = 2, STEEP = 4 };

/* The number of LORs whose distance from a level's voxels can be tested while one LOR is projected. */
enum { LOOKS_PER_LINE = 96 };

/* most_error: largest relative standard error of a voxel. aim: lines are planned for this fraction of most_error,
 * because the guide gives only rough errors. usual_error and most_lines are defaults if the caller gives no number of
 * lines: the error of the mean voxel, and the largest number of lines. */
static const double most_error = 0.02, aim = 0.9, usual_error = 0.012;
static const int64_t most_lines = INT64_C(1) << 30;

/* The smallest stride of a level, in LORs per line. With a smaller stride, a level saves no time over a level with all
 * LORs. */
static const double worth_drawing = 1.5;

/* Limit for the number of lines in further levels: part_for_levels times the number of lines for all voxels, but at
 * least least_for_levels lines, which take little time. */
static const double part_for_levels = 0.6, least_for_levels = 1 << 22;

/* The voxels of one level in one half of the image, with the box of the grid around them. A level may have two pieces
 * in each half: slices with many voxels of the level (as at the ends of the scanner), and slices with few (as where
 * only corners of the image have this level). With blobs, a level is one piece. */
struct piece {
    int level;
    bool is_unmet;         /* true if no line of the guide crossed a voxel of the piece */
    int first[3], last[3]; /* ends of the range; last is one beyond the last voxel */
    int64_t count;         /* number of the level's voxels */
    double visits;         /* fraction of the whole sensitivity that is in the box; this is also the time for a LOR in
                              the box, relative to its time in the whole image */
};

/* PIECES: largest number of pieces of a level. MANY: a slice has many voxels of a level if at least 1 / MANY of its
 * voxels have this level. */
enum { PIECES = 4, MANY = 8 };

struct plan {
    struct lr_operator *op;
    int64_t num_lines;     /* number of lines that are drawn for all voxels */
    double all_lines;      /* number of lines whose projection takes as long as the whole sensitivity */
    unsigned char *levels; /* owned [num_voxels] */
    float *variance;       /* owned [num_voxels]: squared error / (stride - 1); infinite if no line crossed the voxel */
    double limit;          /* limit of the standard error */
    int num_levels;
    double strides[MOST_LEVELS];
    /* [num_pieces], sorted by cost per voxel, cheapest first; the pieces that no line of the guide crossed are at the
     * end */
    struct piece pieces[MOST_LEVELS * PIECES];
    int num_pieces;
};

/* The relative standard error of a voxel. The error is proportional to sqrt(stride - 1): stride 1 means all LORs, and
 * thus no error. */
static double error_at(const struct plan *plan, int64_t v, double stride)
{
    return stride > 1.0 ? sqrt((double)plan->variance[v] * (stride - 1.0)) : 0.0;
}

struct grading {
    const struct line_sum *sum;
    struct plan *plan;
    int tiles[2]; /* number of tiles of a slice along x and y */
};

/* Finds the relative variance of each voxel: the contribution of one line divided by the voxel's value. All voxels of a
 * tile are assumed to have the same contribution per line. */
static void grade_tiles(void *user, int64_t begin, int64_t end)
{
    const struct grading *grading = user;
    const struct line_sum *sum = grading->sum;
    const int *size = grading->plan->op->grid.size;
    for (int64_t tile = begin; tile < end; tile++) {
        const int first[2] = {(int)(tile % grading->tiles[0]) * TILE,
                              (int)(tile / grading->tiles[0] % grading->tiles[1]) * TILE};
        const int z = (int)(tile / grading->tiles[0] / grading->tiles[1]);
        const int last[2] = {first[0] + TILE < size[0] ? first[0] + TILE : size[0],
                             first[1] + TILE < size[1] ? first[1] + TILE : size[1]};
        double variance = 0.0, total = 0.0;
        for (int y = first[1]; y < last[1]; y++) {
            const int64_t row = ((int64_t)z * size[1] + y) * size[0];
            for (int64_t v = row + first[0]; v < row + last[0]; v++) {
                variance += line_sum_variance(sum, v);
                total += sum->total[v];
            }
        }
        const double of_line = total > 0.0 ? variance / total / (sum->stride - 1.0) : INFINITY;
        for (int y = first[1]; y < last[1]; y++) {
            for (int x = first[0]; x < last[0]; x++) {
                const int64_t v = ((int64_t)z * size[1] + y) * size[0] + x;
                double around = 0.0;
                int count = 0;
                for (int j = y > AROUND ? y - AROUND : 0; j <= y + AROUND && j < size[1]; j++)
                    for (int i = x > AROUND ? x - AROUND : 0; i <= x + AROUND && i < size[0]; i++, count++)
                        around += sum->total[((int64_t)z * size[1] + j) * size[0] + i];
                const double mean = around / count, own = sum->total[v];
                const double value = STEEP * own < mean ? own : mean;
                grading->plan->variance[v] = value > 0.0 ? (float)(of_line / value) : INFINITY;
            }
        }
    }
}

/* The largest distance between a LOR's line and its elements. */
static double reach_of(const struct lr_listmode_model *model)
{
    const double *edge = model->grid.voxel_mm;
    return model->kernel == LR_LISTMODE_EXACT  ? model->reach_mm
           : model->kernel == LR_LISTMODE_TUBE ? sqrt(lr_listmode_rim(&model->tube))
                                               : 0.5 * vec_length(edge);
}

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *first = a, *second = b;
    const double ahead = first->visits * (double)second->count, behind = second->visits * (double)first->count;
    return first->is_unmet != second->is_unmet ? first->is_unmet - second->is_unmet
           : ahead != behind                   ? (ahead > behind) - (ahead < behind)
                                               : first->level - second->level;
}

/* Lists the pieces. The cost of a piece is the fraction of the whole sensitivity in its box, after the box has been
 * widened by the reach of a LOR. */
static void find_pieces(struct plan *plan, const struct line_sum *sum)
{
    const int *size = plan->op->grid.size;
    const bool has_blobs = plan->op->listmode->info.blobs.radius_mm > 0;
    const int64_t slice = (int64_t)size[0] * size[1];
    double total = 0.0;
    int64_t in_slice[MOST_LEVELS];
    for (int64_t v = 0; v < sum->image.count; v++) {
        const int at[3] = {(int)(v % size[0]), (int)(v / size[0] % size[1]), (int)(v / slice)};
        const int level = plan->levels[v];
        if (v % slice == 0) {
            memset(in_slice, 0, sizeof(in_slice));
            for (int64_t k = v; k < v + slice; k++) in_slice[plan->levels[k]]++;
        }
        const int place = 2 * (2 * at[2] >= size[2]) + (in_slice[level] * MANY < slice);
        struct piece *piece = &plan->pieces[level * PIECES + (has_blobs ? 0 : place)];
        piece->level = level;
        piece->is_unmet = level == plan->num_levels - 1;
        for (int k = 0; k < 3; k++) {
            const int first = has_blobs ? 0 : at[k], last = has_blobs ? size[k] : at[k] + 1;
            piece->first[k] = piece->count == 0 || first < piece->first[k] ? first : piece->first[k];
            piece->last[k] = last > piece->last[k] ? last : piece->last[k];
        }
        piece->count++;
        total += sum->total[v];
    }
    const struct lr_listmode_model *model = &plan->op->listmode->model;
    for (int k = PIECES; k < PIECES * plan->num_levels; k++) {
        struct piece *piece = &plan->pieces[plan->num_pieces];
        int first[3], last[3];
        *piece = plan->pieces[k];
        for (int axis = 0; axis < 3; axis++) {
            const int reach = (int)(reach_of(model) / model->grid.voxel_mm[axis]);
            first[axis] = piece->first[axis] > reach ? piece->first[axis] - reach : 0;
            last[axis] = piece->last[axis] + reach < size[axis] ? piece->last[axis] + reach : size[axis];
        }
        for (int z = first[2]; z < last[2]; z++) {
            for (int y = first[1]; y < last[1]; y++) {
                const double *row = sum->total + ((int64_t)z * size[1] + y) * size[0];
                for (int x = first[0]; x < last[0]; x++) piece->visits += row[x] / total;
            }
        }
        plan->num_pieces += piece->count > 0;
    }
    qsort(plan->pieces, (size_t)plan->num_pieces, sizeof(*plan->pieces), compare_pieces);
}

static lr_status open_plan(struct plan *plan)
{
    struct lr_operator *op = plan->op;
    const struct lr_listmode_family *family = op->listmode;
    const lr_log *log = op->params.log;
    plan->levels = lr_alloc(op->info.num_voxels, 1, "levels of voxels", log);
    plan->num_levels = 1;
    plan->strides[0] = 1.0;
    if (plan->levels == NULL || plan->num_lines == family->lors->count) return plan->levels != NULL ? LR_OK : LR_FAILED;
    plan->variance = lr_alloc(op->info.num_voxels, sizeof(float), "errors of voxels", log);
    if (plan->variance == NULL) return LR_FAILED;

    /* An operator on the processor projects the guide, so that levels do not depend on the backend. The operator has
     * tubes instead of an exact kernel, because tubes are faster. */
    lr_event line = {.weight = 1}; /* an operator needs at least one event */
    lr_lors_crystals(family->lors, 0, line.crystals);
    const bool is_exact = family->info.kernel == LR_LISTMODE_EXACT;
    struct lr_operator *guide = lr_listmode_create(
        &(lr_listmode_params){.lors = family->lors,
                              .grid = &family->grid,
                              .events = &line,
                              .count = 1,
                              .kernel = is_exact ? LR_LISTMODE_TUBE : family->info.kernel,
                              .tube = is_exact ? (lr_listmode_tube){.width_mm = 0} : family->model.tube,
                              .blobs = family->info.blobs.radius_mm > 0 ? &family->info.blobs : NULL,
                              .factors = family->factors.get != NULL ? &family->factors : NULL,
                              .event_factors = &(float){1},
                              .no_solid_angles = !family->info.has_solid_angles,
                              .backend = "native",
                              .threads = op->params.threads,
                              .log = op->params.log,
                              .progress = op->params.progress});
    if (guide == NULL) return LR_FAILED;
    const int64_t share = plan->num_lines / 4 + 1;
    struct line_sum sum = {.op = guide,
                           .family = guide->listmode,
                           .lors = family->lors,
                           .seed = family->seed ^ UINT64_MAX,
                           .num_lines = share < GUIDE_LINES ? share : GUIDE_LINES,
                           .all_lines = (double)plan->num_lines, /* all progress is 0 until the plan is made */
                           .num_groups = GUIDE_GROUPS,
                           .has_scatter = true};
    lr_status status = line_sum_open(&sum);
    status = status == LR_OK ? line_sum_run(&sum) : status;
    if (status == LR_OK) {
        struct grading grading = {.sum = &sum, .plan = plan};
        for (int k = 0; k < 2; k++) grading.tiles[k] = (op->grid.size[k] + TILE - 1) / TILE;
        const int64_t tiles = (int64_t)grading.tiles[0] * grading.tiles[1] * op->grid.size[2];
        lr_parallel_for(op->params.threads, tiles, 1, grade_tiles, &grading);

        /* The standard error of the mean voxel, relative to the mean sensitivity, and divided by sqrt(stride - 1). */
        double variance = 0.0, total = 0.0;
        for (int64_t v = 0; v < sum.image.count; v++) {
            variance += line_sum_variance(&sum, v);
            total += sum.total[v];
        }
        const double mean_error =
            total > 0.0 ? sqrt(variance * (double)sum.image.count / (sum.stride - 1.0)) / total : 0.0;

        /* The number of lines for all voxels and the largest allowed error follow from mean_error. */
        const double all = (double)family->lors->count;
        if (family->lines_are_usual) {
            const double wanted = all / (1.0 + pow(usual_error / mean_error, 2.0));
            const double least = (double)plan->num_lines, most = fmin(all, (double)most_lines);
            plan->num_lines = (int64_t)fmax(least, fmin(wanted, most));
        }
        const double stride = all / (double)plan->num_lines;
        plan->limit = most_error;
        if (!family->lines_are_usual || plan->num_lines >= most_lines)
            plan->limit = fmax(most_error, 2.0 * mean_error * sqrt(stride - 1.0));

        plan->num_levels = 0;
        for (double at = stride; at > worth_drawing && plan->num_levels < MOST_LEVELS - 2; at /= LINES_PER_LEVEL)
            plan->strides[plan->num_levels++] = at;
        plan->num_levels += plan->num_levels == 0; /* with any stride, level 0 exists */
        plan->strides[0] = stride;
        plan->strides[plan->num_levels++] = 1.0;
        plan->strides[plan->num_levels++] = 1.0;
        for (int64_t v = 0; v < op->info.num_voxels; v++) {
            while (error_at(plan, v, plan->strides[plan->levels[v]]) > aim * plan->limit) plan->levels[v]++;
            plan->levels[v] += isinf(plan->variance[v]) != 0;
        }
        find_pieces(plan, &sum);
    }
    line_sum_close(&sum);
    lr_operator_destroy(guide);
    return status;
}

/* --- LORs near the voxels of a level --- */

/* A ball that contains the crystals of a module. */
struct ball {
    double centre[3], radius_mm;
};

/* Finds the pairs of modules whose lines may pass near the region. A line between crystals of two modules is never
 * farther from the line between the centres of the modules' balls than the larger radius of the balls. *lors: the
 * caller destroys it; NULL with LR_OK = there are no such pairs. */
static lr_status take_pairs(const struct line_sum *sum, lr_lors **lors)
{
    const lr_lors *all = sum->family->lors;
    const lr_log *log = sum->op->params.log;
    struct ball *balls = lr_alloc(all->scanner->num_modules, sizeof(*balls), "modules", log);
    int32_t *pairs = lr_alloc(all->num_pairs, sizeof(*pairs), "pairs of modules", log);
    lr_selection near = {.pairs = pairs};
    const bool has_both = balls != NULL && pairs != NULL;
    for (int m = 0; has_both && m < all->scanner->num_modules; m++) {
        const int begin = all->scanner->first_crystal[m], end = all->scanner->first_crystal[m + 1];
        const double(*hits)[3] = (const double(*)[3])sum->family->events.hits;
        struct ball *ball = &balls[m];
        for (int k = 0; k < 3; k++) {
            double low = hits[begin][k], high = low;
            for (int c = begin; c < end; c++) {
                low = fmin(low, hits[c][k]);
                high = fmax(high, hits[c][k]);
            }
            ball->centre[k] = 0.5 * (low + high);
        }
        ball->radius_mm = 0;
        for (int c = begin; c < end; c++) {
            double away[3];
            vec_sub(hits[c], ball->centre, away);
            ball->radius_mm = fmax(ball->radius_mm, vec_length(away));
        }
    }
    for (int64_t k = 0; has_both && k < all->num_pairs; k++) {
        const struct ball *a = &balls[all->pairs[k][0]], *b = &balls[all->pairs[k][1]];
        const double reach_mm = sum->reach_mm + fmax(a->radius_mm, b->radius_mm);
        if (lr_listmode_region_is_near(sum->region, a->centre, b->centre, reach_mm))
            pairs[near.num_pairs++] = (int32_t)k;
    }
    *lors = has_both && near.num_pairs > 0 ? lr_lors_create_part(all, &near, log) : NULL;
    lr_free_all(balls, pairs);
    return has_both && (near.num_pairs == 0 || *lors != NULL) ? LR_OK : LR_FAILED;
}

/* --- the sensitivity --- */

struct result {
    float *values; /* [num_voxels] */
    int64_t left;  /* number of voxels that became 0, because too few LORs cross them */
    double lines;  /* number of lines of further levels */
};

/* The largest number of lines of further levels. */
static double most_for_levels(const struct plan *plan)
{
    return fmax(part_for_levels * (double)plan->num_lines, least_for_levels);
}

/* The number of lines through the whole image that take as long as a piece. num_lines: lines that are drawn for it. */
static double lines_of(const struct plan *plan, const struct piece *piece, double num_lines)
{
    return piece->visits * (double)plan->op->listmode->lors->count / plan->strides[piece->level] +
           num_lines / LOOKS_PER_LINE;
}

/* Writes the voxels of a level into the result. sum: the sum over lines in a box of the image, which begins at voxel
 * `first`. */
static void put_level(const struct line_sum *sum, const struct plan *plan, int level, const int first[3],
                      struct result *result)
{
    const int *size = sum->op->grid.size, *whole = plan->op->grid.size;
    for (int64_t at = 0; at < sum->image.count; at++) {
        const int64_t x = at % size[0] + first[0], y = at / size[0] % size[1] + first[1],
                      z = at / size[0] / size[1] + first[2];
        const int64_t v = (z * whole[1] + y) * whole[0] + x;
        if (plan->levels[v] == level) result->values[v] = (float)(sum->stride * sum->total[at]);
    }
}

/* Projects the piece's box as an image of its own. The backends are of the same kind as the operator's. */
static lr_status run_piece(struct plan *plan, const struct piece *piece, struct result *result)
{
    const int level = piece->level;
    struct lr_operator op = *plan->op;
    struct lr_listmode_family family = *op.listmode;
    const struct lr_listmode_labelled voxels = {.grids = {family.model.grid, family.second.grid},
                                                .num_grids = family.info.blobs.radius_mm > 0 ? 2 : 1,
                                                .labels = plan->levels,
                                                .label = (unsigned char)level,
                                                .first = {piece->first[0], piece->first[1], piece->first[2]},
                                                .last = {piece->last[0], piece->last[1], piece->last[2]}};
    struct lr_listmode_region region;
    struct line_sum sum = {.op = &op,
                           .family = &family,
                           .region = &region,
                           .reach_mm = reach_of(&family.model),
                           .seed = family.seed ^ (uint64_t)level << 56,
                           .num_groups = 2};
    lr_lors *lors = NULL;
    lr_status status = lr_listmode_region_init(&region, &voxels, op.params.threads, op.params.log);
    status = status == LR_OK ? take_pairs(&sum, &lors) : status;
    sum.lors = lors;
    sum.num_lines = lors != NULL ? (int64_t)ceil((double)lors->count / plan->strides[level]) : 0;
    sum.takes = lines_of(plan, piece, (double)sum.num_lines);
    sum.lines_before = (double)plan->num_lines + result->lines;
    sum.all_lines = plan->all_lines;
    if (status == LR_OK && result->lines + sum.takes > most_for_levels(plan)) {
        /* The piece would take too long. In its box, the level's voxels become 0. */
        const int *size = plan->op->grid.size;
        result->left += piece->count;
        for (int z = piece->first[2]; z < piece->last[2]; z++) {
            for (int y = piece->first[1]; y < piece->last[1]; y++) {
                unsigned char *row = plan->levels + ((int64_t)z * size[1] + y) * size[0];
                for (int x = piece->first[0]; x < piece->last[0]; x++)
                    row[x] = row[x] == piece->level ? LEFT_AT_0 : row[x];
            }
        }

    } else if (status == LR_OK && lors != NULL) {
        result->lines += sum.takes;
        for (int k = 0; family.info.blobs.radius_mm == 0 && k < 3; k++) {
            op.grid.size[k] = piece->last[k] - piece->first[k];
            op.grid.origin_mm[k] += piece->first[k] * op.grid.voxel_mm[k];
            family.model.grid = op.grid;
        }
        op.listmode = &family;
        op.info.num_voxels = lr_grid_num_voxels(&op.grid);
        status = line_sum_open(&sum);
        sum.by_device = false;
        status = status == LR_OK ? line_sum_run(&sum) : status;
        if (status == LR_OK) put_level(&sum, plan, level, piece->first, result);
        line_sum_close(&sum);
    }
    lr_listmode_region_finish(&region);
    lr_lors_destroy(lors);
    return status;
}

lr_status lr_listmode_cover(const struct lr_operator *op, float *values, const lr_log *log)
{
    static const int filled[3] = {1 << 20, 1 << 20,
                                  1 << 20}; /* so many points that the outermost are on the voxel's edges */
    const struct lr_listmode_family *family = op->listmode;
    const bool is_exact = family->info.kernel == LR_LISTMODE_EXACT && family->info.blobs.radius_mm == 0;
    const int *samples = is_exact ? family->model.samples : filled;
    if (family->lors == NULL || family->lors->scanner == NULL) return LR_OK;
    return lr_coverage_check(&family->grid, samples, family->lors->scanner, values, log);
}

lr_status lr_listmode_sensitivity(struct lr_operator *op, float *values)
{
    struct lr_listmode_family *family = op->listmode;
    const int64_t all = family->lors->count;
    struct plan plan = {.op = op, .num_lines = all < family->wanted_lines ? all : family->wanted_lines};
    struct result result = {.values = values};
    lr_status status = open_plan(&plan);
    double lines = 0.0; /* lines of all pieces, if all LORs were near each piece */
    for (int k = 0; status == LR_OK && k < plan.num_pieces; k++) {
        const double more = lines_of(&plan, &plan.pieces[k], (double)all / plan.strides[plan.pieces[k].level]);
        lines += lines + more > most_for_levels(&plan) ? 0.0 : more;
    }
    plan.all_lines = (double)plan.num_lines + lines;
    if (status == LR_OK) {
        struct line_sum sum = {.op = op,
                               .family = family,
                               .lors = family->lors,
                               .seed = family->seed,
                               .num_lines = plan.num_lines,
                               .takes = (double)plan.num_lines,
                               .all_lines = plan.all_lines,
                               .num_groups = 2};
        status = line_sum_open(&sum);
        if (status == LR_OK) status = line_sum_run(&sum);
        if (status == LR_OK) put_level(&sum, &plan, 0, (const int[3]){0, 0, 0}, &result);
        line_sum_close(&sum);
    }
    for (int k = 0; status == LR_OK && k < plan.num_pieces; k++) status = run_piece(&plan, &plan.pieces[k], &result);

    if (status == LR_OK) status = lr_listmode_cover(op, NULL, op->params.log);
    if (status != LR_OK) goto done;

    lr_listmode_info *info = &family->info;
    info->sensitivity_lines = plan.num_lines;
    info->sensitivity_left = result.left;
    info->sensitivity_worst = 0.0;
    double known = 0.0, total = 0.0, squares = 0.0;
    for (int64_t v = 0; plan.variance != NULL && v < op->info.num_voxels; v++) {
        if (plan.levels[v] != LEFT_AT_0 && values[v] > 0.0f) {
            const double value = (double)values[v], error = error_at(&plan, v, plan.strides[plan.levels[v]]);
            info->sensitivity_worst = fmax(info->sensitivity_worst, error);
            known += 1.0;
            total += value;
            squares += value * error * value * error;
        }
    }
    info->sensitivity_error = total > 0.0 ? sqrt(squares * known) / total : 0.0;
    char left[160] = "";
    if (result.left > 0) {
        snprintf(left, sizeof(left), "; %lld voxels that few or no LORs see, and would not be known to %.2g %%, are 0",
                 (long long)result.left, 100.0 * plan.limit);
    }
    if (plan.num_lines < all) {
        lr_info(op->params.log,
                "the sensitivity is from %lld of %lld LORs, and more where few see a voxel: the mean voxel is known to "
                "%.2g %%, the worst one to %.2g %%%s",
                (long long)plan.num_lines, (long long)all, 100.0 * info->sensitivity_error,
                100.0 * info->sensitivity_worst, left);
    }

done:
    lr_free_all(plan.levels, plan.variance);
    return status;
}
