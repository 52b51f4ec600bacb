/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/trial_pairs.h"

#include "base/mem.h"
#include "model/scanner/arrangement.h"

#include <math.h>
#include <stdlib.h>

/* Looking for images is quadratic. */
enum { MOST_MODULES = 4096 };

static const double tolerance_mm = 1e-3;

/* --- half a turn --- */

static bool is_image(const lr_module *one, const lr_module *other, const double middle_mm[3], int axis)
{
    for (int k = 0; k < 3; k++) {
        const double turned = k == axis ? one->centre_mm[k] : 2.0 * middle_mm[k] - one->centre_mm[k];
        if (fabs(other->centre_mm[k] - turned) > tolerance_mm) return false;
    }
    return true;
}

static int find_image(const lr_scanner *scanner, int module, const double middle_mm[3], int axis)
{
    for (int m = 0; m < scanner->num_modules; m++)
        if (is_image(&scanner->modules[module], &scanner->modules[m], middle_mm, axis)) return m;
    return -1;
}

static void find_middle(const lr_grid *grid, double middle_mm[3])
{
    for (int k = 0; k < 3; k++) middle_mm[k] = grid->origin_mm[k] + 0.5 * (grid->size[k] - 1) * grid->voxel_mm[k];
}

/* Fills in the image of every module; false where one has none, or none is looked for. */
static bool find_images(const lr_lors *lors, const lr_grid *grid, int *images)
{
    const lr_scanner *scanner = lors->scanner;
    const int axis = lr_lors_axial_axis(lors);
    double middle_mm[3];
    bool has_all = axis >= 0 && scanner->num_modules <= MOST_MODULES;
    find_middle(grid, middle_mm);
    for (int m = 0; m < scanner->num_modules && has_all; m++) {
        images[m] = find_image(scanner, m, middle_mm, axis);
        has_all = images[m] >= 0;
    }
    return has_all;
}

/* --- pairs --- */

static int compare(const void *one, const void *other)
{
    const int32_t a = *(const int32_t *)one, b = *(const int32_t *)other;
    return (a > b) - (a < b);
}

static void sort_out(struct lr_trial_pairs *chosen, const lr_lors *lors)
{
    int64_t kept = 0;
    qsort(chosen->pairs, (size_t)chosen->count, sizeof(*chosen->pairs), compare);
    chosen->num_lors = 0;
    for (int64_t k = 0; k < chosen->count; k++) {
        const int32_t pair = chosen->pairs[k];
        if (kept == 0 || chosen->pairs[kept - 1] != pair) {
            chosen->pairs[kept++] = pair;
            chosen->num_lors += lors->offsets[pair + 1] - lors->offsets[pair];
        }
    }
    chosen->count = kept;
}

/* images NULL: none. A pair without an image is by itself. */
static void take_pairs(struct lr_trial_pairs *chosen, const lr_lors *lors, int64_t step, const int *images)
{
    for (int64_t pair = 0; pair < lors->num_pairs; pair += step) {
        const int32_t *modules = lors->pairs[pair];
        const int64_t image = images != NULL ? lr_lors_pair(lors, images[modules[0]], images[modules[1]]) : -1;
        chosen->pairs[chosen->count++] = (int32_t)pair;
        if (image >= 0) chosen->pairs[chosen->count++] = (int32_t)image;
    }
    sort_out(chosen, lors);
}

lr_status lr_trial_pairs_choose(const lr_lors *lors, const lr_grid *grid, int64_t most_lors,
                                struct lr_trial_pairs *chosen, const lr_log *log)
{
    int *images = lr_alloc(lors->scanner->num_modules, sizeof(*images), "modules of a trial", log);
    *chosen = (struct lr_trial_pairs){0};
    if (images == NULL) return LR_FAILED;
    const bool has_images = find_images(lors, grid, images);
    const int64_t once = (lors->count + most_lors - 1) / most_lors;
    const int64_t step = has_images ? 2 * once : once;
    chosen->pairs = lr_alloc(2 * (lors->num_pairs / step + 1), sizeof(*chosen->pairs), "module pairs of a trial", log);
    if (chosen->pairs != NULL) take_pairs(chosen, lors, step, has_images ? images : NULL);
    free(images);
    return chosen->pairs != NULL ? LR_OK : LR_FAILED;
}
