/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Exact rows of randomly drawn voxels: how many elements a voxel has, and how far another
 * operator's elements are from them. Every voxel is its centre here (N = 1), so that rows of
 * points are rows of voxels. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTED_VOXELS = 240 };

/* --- drawing voxels --- */

static bool is_among(const int64_t *rows, int count, int64_t row)
{
    for (int k = 0; k < count; k++)
        if (rows[k] == row) return true;
    return false;
}

/* num different rows below `total`, in random order. num is small or all there are. */
static void draw_rows(int64_t *rows, int num, int64_t total, uint64_t seed)
{
    int64_t drawn = 0;
    for (int k = 0; k < num; k++) do {
            rows[k] = (int64_t)(common_random(seed, drawn++) * (double)total);
        } while (is_among(rows, k, rows[k]));
}

static lr_status draw_points(struct bench_sample *sample, const struct bench_draw *draw, struct report *report)
{
    int64_t rows[COUNTED_VOXELS];
    const int64_t total = lr_grid_num_voxels(&sample->grid);
    const int num = total < COUNTED_VOXELS ? (int)total : COUNTED_VOXELS;
    sample->num_voxels = num;
    sample->num_rows = num < draw->num_rows ? num : draw->num_rows;
    sample->points_mm = calloc((size_t)num, sizeof(*sample->points_mm));
    sample->counts = calloc((size_t)num, sizeof(*sample->counts));
    sample->rows = calloc((size_t)sample->num_rows + 1, sizeof(*sample->rows));
    if (sample->points_mm == NULL || sample->counts == NULL || sample->rows == NULL)
        return report_error(report, LR_FAILED, "no memory for a sample of %d voxels", num);
    draw_rows(rows, num, total, draw->seed);
    for (int k = 0; k < num; k++) lr_grid_voxel_centre(&sample->grid, rows[k], sample->points_mm[k]);
    return LR_OK;
}

/* --- lines --- */

/* What modules look like from a point. */
struct view {
    const lr_lors *lors;
    double *distances; /* [num_modules] squared; -1 = does not face the point */
};

static void look(struct view *view, const double point_mm[3])
{
    const lr_scanner *scanner = view->lors->scanner;
    for (int m = 0; m < scanner->num_modules; m++) {
        double centre[3], height = 0, squared = 0;
        lr_scanner_detection_centre(scanner, m, centre);
        for (int k = 0; k < 3; k++) {
            const double offset = point_mm[k] - centre[k];
            height += offset * scanner->modules[m].normal[k];
            squared += offset * offset;
        }
        view->distances[m] = height > 0 ? squared : -1;
    }
}

static bool has_partner(const struct view *view, int i)
{
    const int num = view->lors->scanner->num_modules;
    for (int j = 0; j < num; j++)
        if (view->distances[j] >= 0 && view->distances[j] <= view->distances[i] && j != i &&
            lr_lors_pair(view->lors, i, j) >= 0)
            return true;
    return false;
}

/* Crystals whose face is sampled for this point: those of modules that face it and have a nearer
 * module in coincidence that faces it too. Each shoots R x R lines. */
static double count_primaries(struct view *view, const double point_mm[3])
{
    const lr_scanner *scanner = view->lors->scanner;
    double crystals = 0;
    look(view, point_mm);
    for (int i = 0; i < scanner->num_modules; i++) {
        const int *num = scanner->modules[i].crystals;
        if (view->distances[i] >= 0 && has_partner(view, i)) crystals += (double)num[0] * num[1];
    }
    return crystals;
}

static lr_status count_all_primaries(struct bench_sample *sample, const lr_lors *lors, struct report *report)
{
    struct view view = {lors, calloc((size_t)lors->scanner->num_modules, sizeof(double))};
    if (view.distances == NULL) return report_error(report, LR_FAILED, "no memory for the modules' distances");
    double sum = 0;
    for (int k = 0; k < sample->num_voxels; k++) sum += count_primaries(&view, sample->points_mm[k]);
    sample->primaries_per_voxel = sum / sample->num_voxels;
    free(view.distances);
    return LR_OK;
}

/* --- exact rows --- */

static lr_status keep_row(struct bench_row *kept, const lr_row *row)
{
    const size_t count = (size_t)row->count;
    kept->lor = malloc((count + 1) * sizeof(*kept->lor));
    kept->probability = malloc((count + 1) * sizeof(*kept->probability));
    if (kept->lor == NULL || kept->probability == NULL) return LR_FAILED;
    memcpy(kept->lor, row->lor, count * sizeof(*kept->lor));
    memcpy(kept->probability, row->probability, count * sizeof(*kept->probability));
    kept->count = row->count;
    return LR_OK;
}

struct taking {
    struct bench_sample *sample;
    struct report *report;
};

static lr_status take_exact(void *user, const lr_row *row)
{
    const struct taking *taking = user;
    struct bench_sample *sample = taking->sample;
    sample->counts[row->row] = (double)row->count;
    if (row->row < sample->num_rows && keep_row(&sample->rows[row->row], row) != LR_OK)
        return report_error(taking->report, LR_FAILED, "no memory for a row of %lld elements", (long long)row->count);
    return LR_OK;
}

static lr_status compute_rows(struct bench_sample *sample, const struct bench_draw *draw, struct report *report)
{
    const lr_operator_params params = {.lors = draw->lors,
                                       .grid = &sample->grid,
                                       .backend = "cpu",
                                       .mode = LR_MODE_EXACT,
                                       .samples = {1, 1, 1},
                                       .store = LR_STORE_NO,
                                       .threads = draw->threads,
                                       .log = &report->log,
                                       .progress = &report->progress};
    lr_operator *op = lr_operator_create(&params);
    if (op == NULL) return report_reason(report);
    struct taking taking = {sample, report};
    const lr_row_sink sink = {take_exact, &taking};
    const lr_status status =
        lr_operator_point_rows(op, (const double(*)[3])sample->points_mm, sample->num_voxels, &sink);
    lr_operator_destroy(op);
    return status;
}

/* Mean of the counts and its standard error, less what drawing without repeats takes off it. */
static void summarise(struct bench_sample *sample)
{
    const double num = sample->num_voxels;
    const double total = (double)lr_grid_num_voxels(&sample->grid);
    double sum = 0, squares = 0;
    for (int k = 0; k < sample->num_voxels; k++) sum += sample->counts[k];
    sample->mean = sum / num;
    for (int k = 0; k < sample->num_voxels; k++) {
        const double off = sample->counts[k] - sample->mean;
        squares += off * off;
    }
    const double variance = num > 1 ? squares / (num - 1) : 0;
    sample->mean_error = sqrt(variance / num * (1 - num / total));
}

lr_status bench_sample_take(struct bench_sample *sample, const struct bench_draw *draw, const lr_grid *grid,
                            struct report *report)
{
    if (sample->num_voxels > 0 && setup_same_grid(&sample->grid, grid)) return LR_OK;
    bench_sample_finish(sample);
    sample->grid = *grid;
    lr_status status = draw_points(sample, draw, report);
    if (status == LR_OK) status = count_all_primaries(sample, draw->lors, report);
    if (status == LR_OK) status = compute_rows(sample, draw, report);
    if (status != LR_OK) {
        bench_sample_finish(sample);
        return status;
    }
    summarise(sample);
    return LR_OK;
}

void bench_sample_finish(struct bench_sample *sample)
{
    for (int k = 0; sample->rows != NULL && k < sample->num_rows; k++) {
        free(sample->rows[k].lor);
        free(sample->rows[k].probability);
    }
    free(sample->rows);
    free(sample->counts);
    free(sample->points_mm);
    *sample = (struct bench_sample){0};
}

/* --- comparison --- */

struct comparison {
    const struct bench_sample *sample;
    double difference, reference; /* sums of squares */
    int64_t exact, own, missed;   /* non-zeros */
};

static double square(double value)
{
    return value * value;
}

/* Both lists ascend. */
static lr_status compare_row(void *user, const lr_row *row)
{
    struct comparison *sums = user;
    const struct bench_row *exact = &sums->sample->rows[row->row];
    int64_t own = 0;
    for (int64_t k = 0; k < exact->count; k++) {
        for (; own < row->count && row->lor[own] < exact->lor[k]; own++)
            sums->difference += square(row->probability[own]);
        const bool found = own < row->count && row->lor[own] == exact->lor[k];
        const double value = found ? row->probability[own++] : 0;
        sums->difference += square(value - exact->probability[k]);
        sums->reference += square(exact->probability[k]);
        sums->missed += !found;
    }
    for (; own < row->count; own++) sums->difference += square(row->probability[own]);
    sums->exact += exact->count;
    sums->own += row->count;
    return LR_OK;
}

lr_status bench_sample_compare(const struct bench_sample *sample, lr_operator *op, struct bench_accuracy *accuracy)
{
    struct comparison sums = {.sample = sample};
    const lr_row_sink sink = {compare_row, &sums};
    CLI_TRY(lr_operator_point_rows(op, (const double(*)[3])sample->points_mm, sample->num_rows, &sink));
    *accuracy = (struct bench_accuracy){
        .error = sqrt(sums.difference / sums.reference),
        .missed = (double)sums.missed / (double)sums.exact,
        .kept = (double)sums.own / (double)sums.exact,
        .num_voxels = sample->num_rows,
    };
    return LR_OK;
}
