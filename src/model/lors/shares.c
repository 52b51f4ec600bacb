/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Division of the rows of a matrix into parts of about equal work. The cost of a voxel's row is the number of LORs
 * through the voxel, estimated from lines through points of the grid. The cost of a LOR's row is the length of its line
 * within the grid. */
#include <lr/forecast.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "base/vec.h"
#include "model/lors/selection.h"
#include "model/scanner/scanner.h"

#include <math.h>
#include <stdlib.h>

/* LINES: number of lines through a point. MOST_POINTS: largest number of points along z. MOST_CROSSINGS: largest total
 * number of tests of a line against a module. */
enum { LINES = 256, MOST_POINTS = 24, MOST_CROSSINGS = 60000000 };
/* Least cost of a row, divided by the mean cost of a row. */
static const double least_share = 0.02;

/* --- LORs through a point --- */

/* The first module on a line from a point, and the number of its crystals per steradian as seen from the point. */
struct hit {
    int module; /* -1 = none */
    double t_mm, crystals_per_sr;
};

static struct hit first_hit(const lr_scanner *scanner, const double from[3], const double along[3])
{
    struct hit hit = {-1, HUGE_VAL, 0.0};
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double *pitch = module->pitch_mm, slope = -vec_dot(along, module->normal);
        double to[3], at[3];
        if (slope <= 0.0) continue;
        vec_sub(module->centre_mm, from, to);
        const double t_mm = -vec_dot(to, module->normal) / slope;
        if (t_mm <= 0.0 || t_mm >= hit.t_mm) continue;
        vec_add_scaled(to, -t_mm, along, at);
        if (fabs(vec_dot(at, module->u)) > 0.5 * module->crystals[0] * pitch[0] ||
            fabs(vec_dot(at, module->v)) > 0.5 * module->crystals[1] * pitch[1])
            continue;
        hit = (struct hit){m, t_mm, t_mm * t_mm / (slope * pitch[0] * pitch[1])};
    }
    return hit;
}

/* --- voxels --- */

/* The grid, divided into boxes. cost: the cost of a voxel in each box. */
struct boxes {
    int num[3];
    double *cost; /* owned [num[2]][num[1]][num[0]] */
};

/* Finds the cost of each box of voxels. The cost is the number of LORs through the middle of the box. There are at most
 * 4 boxes along x and y, and MOST_POINTS along z. There are fewer boxes if there are many modules. */
static lr_status find_costs(const lr_lors *lors, const lr_grid *grid, struct boxes *boxes, const lr_log *log)
{
    static const int most[3] = {4, 4, MOST_POINTS};
    const int64_t crossings = 2 * (int64_t)LINES * lors->scanner->num_modules;
    int *num = boxes->num;
    for (int k = 0; k < 3; k++) num[k] = grid->size[k] < most[k] ? grid->size[k] : most[k];
    while (crossings * num[0] * num[1] * num[2] > MOST_CROSSINGS && num[0] + num[1] + num[2] > 3) {
        const int longest = num[0] > 1 ? 0 : num[1] > 1 ? 1 : 2;
        num[longest] = (num[longest] + 1) / 2;
    }

    /* Cosine of the angle between the axis and the steepest line through two modules. The angle follows from the
     * scanner's length and the least distance of a module from the axis. */
    double nearest = HUGE_VAL, ends[2] = {HUGE_VAL, -HUGE_VAL};
    for (int m = 0; m < lors->scanner->num_modules; m++) {
        const lr_module *module = &lors->scanner->modules[m];
        const double half = lr_module_radius_mm(module);
        const double from_axis = hypot(module->centre_mm[0], module->centre_mm[1]);
        nearest = fmin(nearest, from_axis);
        ends[0] = fmin(ends[0], module->centre_mm[2] - half);
        ends[1] = fmax(ends[1], module->centre_mm[2] + half);
    }
    const double length = ends[1] - ends[0];
    const double steepest = fmin(0.999, length / hypot(length, fmax(nearest, 1e-3 * length)));

    const int count = num[0] * num[1] * num[2];
    double sum = 0.0;
    boxes->cost = lr_alloc(count, sizeof(*boxes->cost), "costs of rows", log);
    if (boxes->cost == NULL) return LR_FAILED;
    for (int n = 0; n < count; n++) {
        const int place[3] = {n % num[0], n / num[0] % num[1], n / (num[0] * num[1])};
        double at[3];
        for (int k = 0; k < 3; k++)
            at[k] = grid->origin_mm[k] + grid->voxel_mm[k] * (grid->size[k] * (place[k] + 0.5) / num[k] - 0.5);
        /* Estimates the number of LORs through the point from LINES lines, spread over all directions in which two
         * modules can be hit. Seen from the point, the crystals at each end of a line divide the directions into a grid
         * of cells. The grids of the two ends have a and b cells per steradian. Together, the two grids have about
         * (sqrt a + sqrt b)^2 cells per steradian, each with one LOR. */
        double total = 0.0;
        for (int i = 0; i < LINES; i++) {
            const double z = steepest * ((2.0 * i + 1.0) / LINES - 1.0), across = sqrt(1.0 - z * z);
            const double angle = LR_PI * fmod(i * LR_GOLDEN_SHARE, 1.0);
            const double along[3] = {across * cos(angle), across * sin(angle), z};
            const struct hit a = first_hit(lors->scanner, at, along);
            if (a.module < 0) continue;
            const struct hit b = first_hit(lors->scanner, at, (const double[3]){-along[0], -along[1], -along[2]});
            if (b.module < 0 || lr_lors_pair(lors, a.module, b.module) < 0) continue;
            const double roots = sqrt(a.crystals_per_sr) + sqrt(b.crystals_per_sr);
            total += roots * roots;
        }
        sum += boxes->cost[n] = total;
    }
    const double least = sum > 0.0 ? least_share * sum / count : 1.0;
    for (int n = 0; n < count; n++) boxes->cost[n] += least;
    return LR_OK;
}

/* --- LORs --- */

/* Length of the line between two points that lies within the grid, mm. */
static double length_in_grid(const lr_grid *grid, const double from[3], const double to[3])
{
    double along[3], range[2] = {0.0, 1.0};
    vec_sub(to, from, along);
    for (int k = 0; k < 3; k++) {
        const double low = grid->origin_mm[k] - 0.5 * grid->voxel_mm[k];
        const double high = low + grid->size[k] * grid->voxel_mm[k];
        if (along[k] == 0.0 && (from[k] < low || from[k] > high)) return 0.0;
        const double a = along[k] != 0.0 ? (low - from[k]) / along[k] : 0.0;
        const double b = along[k] != 0.0 ? (high - from[k]) / along[k] : 1.0;
        range[0] = fmax(range[0], fmin(a, b));
        range[1] = fmin(range[1], fmax(a, b));
    }
    return range[1] > range[0] ? (range[1] - range[0]) * vec_length(along) : 0.0;
}

/* Finds the centre of rectangle n of the nine equal rectangles of a module's face. */
static void face_point(const lr_module *module, int n, double at[3])
{
    const double u = (n % 3 - 1) / 3.0 * module->crystals[0] * module->pitch_mm[0];
    const double v = (double)(n / 3 - 1) / 3.0 * module->crystals[1] * module->pitch_mm[1];
    vec_add_scaled(module->centre_mm, u, module->u, at);
    vec_add_scaled(at, v, module->v, at);
}

/* --- cutting --- */

struct cut {
    const lr_lors *lors;
    const lr_grid *grid;
    const lr_rows_share *share;
    struct boxes boxes;
};

static double cost_of(const void *of, int64_t entry)
{
    const struct cut *cut = of;
    const lr_lors *lors = cut->lors;
    const lr_grid *grid = cut->grid;
    const lr_rows_work *work = &cut->share->work;
    const lr_row_choice *choice = &work->choice;
    const lr_selection *part = choice->part;
    if (!work->by_lor) {
        const int64_t row = choice->voxels != NULL ? choice->voxels[entry] : choice->begin + entry;
        const int *size = grid->size, *num = cut->boxes.num;
        const int64_t line = row / size[0];
        const int64_t place[3] = {row % size[0], line % size[1], line / size[1]};
        int64_t box[3];
        for (int k = 0; k < 3; k++) box[k] = place[k] * num[k] / size[k];
        return cut->boxes.cost[(box[2] * num[1] + box[1]) * num[0] + box[0]];
    }

    /* The cost of a LOR is the number of voxels that it crosses, at least one. */
    const double voxel_mm = cbrt(grid->voxel_mm[0] * grid->voxel_mm[1] * grid->voxel_mm[2]);
    double a[3], b[3];
    if (part != NULL && part->lors != NULL) {
        int32_t crystals[2];
        lr_lors_crystals(lors, part->lors[entry], crystals);
        lr_scanner_hit_centre(lors->scanner, crystals[0], a);
        lr_scanner_hit_centre(lors->scanner, crystals[1], b);
        return 1.0 + length_in_grid(grid, a, b) / voxel_mm;
    }
    const int64_t pair = lr_selection_is_all(part) ? entry : part->pairs[entry];
    const lr_module *modules = lors->scanner->modules;
    double sum = 0.0;
    for (int n = 0; n < 81; n++) {
        face_point(&modules[lors->pairs[pair][0]], n % 9, a);
        face_point(&modules[lors->pairs[pair][1]], n / 9, b);
        sum += length_in_grid(grid, a, b);
    }
    return (double)(lors->offsets[pair + 1] - lors->offsets[pair]) * (1.0 + sum / 81.0 / voxel_mm);
}

/* Items, each with a cost. */
struct costs {
    double (*cost)(const void *of, int64_t k);
    const void *of;
    int64_t num;
};

/* Divides the items into asked[1] consecutive parts with about equal costs, each of at least one item. Finds the range
 * of part asked[0], counted from 1. Each cut is where the sum of all costs before the cut is nearest to the ideal
 * sum. */
static void find_range(const struct costs *costs, const int64_t asked[2], int64_t range[2])
{
    const int64_t number = asked[0], parts = asked[1], num = costs->num;
    double total = 0.0, before = 0.0;
    int64_t place = 0, part = 1; /* position of the last cut; number of the part that ends next */
    for (int64_t k = 0; k < num; k++) total += costs->cost(costs->of, k);
    range[0] = 0;
    range[1] = num;
    for (int64_t k = 0; k <= num && part < parts; k++) {
        const double cost = k < num ? costs->cost(costs->of, k) : 0.0;
        while (part < parts && before + 0.5 * cost >= total * (double)part / (double)parts) {
            const int64_t least = place + 1, most = num - parts + part;
            place = k < least ? least : k > most ? most : k;
            range[0] = part == number - 1 ? place : range[0];
            range[1] = part == number ? place : range[1];
            part++;
        }
        before += cost;
    }
}

static double listed_cost(const void *of, int64_t k)
{
    return ((const double *)of)[k];
}

void lr_share_range(const double *costs, int64_t num, const int64_t part[2], int64_t range[2])
{
    find_range(&(struct costs){listed_cost, costs, num}, part, range);
}

lr_status lr_rows_share_range(const lr_lors *lors, const lr_grid *grid, const lr_rows_share *share, int64_t range[2])
{
    const lr_row_choice *choice = &share->work.choice;
    const lr_selection *part = choice->part;
    struct cut cut = {.lors = lors, .grid = grid, .share = share};
    LR_TRY(lr_grid_check(grid, share->log));
    LR_TRY(lr_selection_check(lors, part, share->log));
    const char *what = "module pairs";
    int64_t num = lors->num_pairs;
    if (!share->work.by_lor) {
        what = "rows";
        num = choice->voxels != NULL ? choice->num_voxels : choice->end - choice->begin;
    } else if (part != NULL && part->lors != NULL) {
        what = "LORs";
        num = part->num_lors;
    } else if (!lr_selection_is_all(part)) {
        num = part->num_pairs;
    }
    if (share->parts < 1 || share->number < 1 || share->number > share->parts) {
        return lr_error(share->log, LR_USAGE, "part %lld of %lld makes no sense: parts count from 1",
                        (long long)share->number, (long long)share->parts);
    }
    if (share->parts > num) {
        return lr_error(share->log, LR_USAGE, "%lld %s cannot be cut into %lld parts: take %lld parts at most",
                        (long long)num, what, (long long)share->parts, (long long)num);
    }
    if (!share->work.by_lor) LR_TRY(find_costs(lors, grid, &cut.boxes, share->log));
    find_range(&(struct costs){cost_of, &cut, num}, (const int64_t[2]){share->number, share->parts}, range);
    free(cut.boxes.cost);
    return LR_OK;
}
