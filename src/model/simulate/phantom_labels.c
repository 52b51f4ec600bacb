/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"

#include <lr/phantom.h>
#include <math.h>
#include <stdlib.h>

#define NUM_LABELS 5

/* Activity of air, soft tissue, white matter, grey matter, cerebrospinal fluid. */
static const double label_activity[NUM_LABELS] = {0.0, 0.1, 0.25, 1.0, 0.05};

/* Which label voxels one grid voxel covers along an axis, and how much of it each of them fills. */
struct cover {
    int begin, end;
    double first, inner, last; /* shares of voxel begin, of those between, of voxel end - 1 */
};

static double share(const struct cover *cover, int index)
{
    return index == cover->begin ? cover->first : index == cover->end - 1 ? cover->last : cover->inner;
}

static double overlap(double low_a, double high_a, double low_b, double high_b)
{
    return fmax(0.0, fmin(high_a, high_b) - fmax(low_a, low_b));
}

/* Positions are in label voxels, counted from the label image's low edge. */
static struct cover cover_voxel(const lr_grid *labels, const lr_grid *grid, int axis, int index)
{
    const double size = grid->voxel_mm[axis] / labels->voxel_mm[axis];
    const double centre =
        (grid->origin_mm[axis] + index * grid->voxel_mm[axis]) / labels->voxel_mm[axis] + 0.5 * labels->size[axis];
    const double low = centre - 0.5 * size, high = centre + 0.5 * size;
    struct cover cover = {
        .begin = (int)fmin(fmax(floor(low), 0.0), labels->size[axis]),
        .end = (int)fmin(fmax(ceil(high), 0.0), labels->size[axis]),
        .inner = 1.0 / size,
    };
    cover.first = overlap(low, high, cover.begin, cover.begin + 1.0) / size;
    cover.last = overlap(low, high, cover.end - 1.0, cover.end) / size;
    return cover;
}

static lr_status check_labels(const lr_image *labels, const lr_log *log)
{
    LR_TRY(lr_grid_check(&labels->grid, log));
    const int64_t count = lr_grid_num_voxels(&labels->grid);
    for (int64_t k = 0; k < count; k++) {
        const float label = labels->values[k];
        if (!(label >= 0.0f && label < NUM_LABELS) || label != floorf(label)) {
            return lr_error(log, LR_BAD_INPUT,
                            "the label image has the value %.6g in voxel %lld: labels are 0 air, "
                            "1 soft tissue, 2 white matter, 3 grey matter, 4 CSF",
                            (double)label, (long long)k);
        }
    }
    return LR_OK;
}

static double mean_activity(const lr_image *labels, const struct cover *x, const struct cover *y, const struct cover *z)
{
    const lr_grid *grid = &labels->grid;
    double sum = 0.0;
    for (int iz = z->begin; iz < z->end; iz++) {
        for (int iy = y->begin; iy < y->end; iy++) {
            const float *line = labels->values + (int64_t)grid->size[0] * (iy + (int64_t)grid->size[1] * iz);
            double along_x = 0.0;
            for (int ix = x->begin; ix < x->end; ix++) along_x += share(x, ix) * label_activity[(int)line[ix]];
            sum += share(z, iz) * share(y, iy) * along_x;
        }
    }
    return sum;
}

static void resample(const lr_image *labels, struct cover *const covers[3], lr_image *image)
{
    const lr_grid *grid = &image->grid;
    float *value = image->values;
    for (int iz = 0; iz < grid->size[2]; iz++) {
        for (int iy = 0; iy < grid->size[1]; iy++)
            for (int ix = 0; ix < grid->size[0]; ix++)
                *value++ = (float)mean_activity(labels, &covers[0][ix], &covers[1][iy], &covers[2][iz]);
    }
}

lr_image *lr_phantom_from_labels(const lr_image *labels, const lr_grid *grid, const lr_log *log)
{
    struct cover *covers[3] = {NULL, NULL, NULL};
    lr_image *image = check_labels(labels, log) == LR_OK ? lr_image_create(grid, log) : NULL;
    for (int axis = 0; image != NULL && axis < 3; axis++) {
        covers[axis] = lr_alloc(grid->size[axis], sizeof(**covers), "resampling", log);
        if (covers[axis] == NULL) {
            lr_image_destroy(image);
            image = NULL;
        }
        for (int k = 0; image != NULL && k < grid->size[axis]; k++)
            covers[axis][k] = cover_voxel(&labels->grid, grid, axis, k);
    }
    if (image != NULL) resample(labels, covers, image);
    for (int axis = 0; axis < 3; axis++) free(covers[axis]);
    return image;
}
