/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Line integrals through voxels: docs/method/common.md, "As a factor per LOR". The line is cut at
 * the voxel faces across its steepest axis. Between two of them it meets at most one face of each
 * other axis, so that every slab stands for itself: three pieces, no search and no sum of steps
 * (the chords are those of Siddon, Fast calculation of the exact radiological path, Med. Phys. 12
 * (1985)). */
#include "model/lors/mu_lines.h"

#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

/* Within this of a voxel face all along, a line counts as lying in the face; voxels. */
#define IN_FACE 1e-9

/* A line from `from` at t = 0 to from + along at t = 1, in box coordinates. */
struct line {
    double from[3], along[3];
};

/* --- one line --- */

static inline int clamp(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

/* Along one of the two flatter axes. */
struct flat_axis {
    double from, along, inverse; /* inverse of along, 0 where along is */
    int64_t stride;
};

static struct flat_axis flat_axis(const struct lr_mu_lines *self, const struct line *line, int axis)
{
    const double along = line->along[axis];
    return (struct flat_axis){line->from[axis], along, along != 0.0 ? 1.0 / along : 0.0, self->stride[axis]};
}

/* Where the line passes from cell `from` to its neighbour `to`, within t[0] .. t[1]; t[1] when they
 * are the same. */
static inline double crossing(const struct flat_axis *axis, int from, int to, const double t[2])
{
    const int face = from > to ? from : to;
    const double at = (face - 1 - axis->from) * axis->inverse;
    const double within = at < t[0] ? t[0] : at > t[1] ? t[1] : at;
    return from == to ? t[1] : within;
}

/* Sum of mu dt over t[0] .. t[1] inside the box, along an axis that rises and is the steepest.
 * Cells count from 1 in the box, 0 and size + 1 being its border, so that rounding at the box's
 * faces meets zeros. */
static double sum_slabs(const struct lr_mu_lines *self, const struct line *line, int steepest, const double range[2])
{
    const struct flat_axis y = flat_axis(self, line, (steepest + 1) % 3);
    const struct flat_axis z = flat_axis(self, line, (steepest + 2) % 3);
    const double from = line->from[steepest], inverse = 1.0 / line->along[steepest];
    const int last = (int)self->size[steepest];
    const int64_t first = clamp((int)(from + range[0] / inverse) + 1, 1, last);
    double t[2] = {range[0], range[0]}, sum = 0.0;
    int y0 = (int)(y.from + t[0] * y.along + 1.0), z0 = (int)(z.from + t[0] * z.along + 1.0);
    for (int64_t cell = first; cell <= last && t[0] < range[1]; cell++) {
        const double end = cell < last ? ((double)cell - from) * inverse : range[1];
        t[1] = end < range[1] ? end : range[1];
        const int y_end = (int)(y.from + t[1] * y.along + 1.0);
        const int z_end = (int)(z.from + t[1] * z.along + 1.0);
        const float *slab = self->values + cell * self->stride[steepest];
        if (y_end == y0 && z_end == z0) {
            sum += slab[y0 * y.stride + z0 * z.stride] * (t[1] - t[0]);
            t[0] = t[1];
            continue;
        }
        /* One face at most: two are met at both ends of the slab by rounding only. */
        const int y1 = clamp(y_end, y0 - 1, y0 + 1), z1 = clamp(z_end, z0 - 1, z0 + 1);
        const double ty = crossing(&y, y0, y1, t), tz = crossing(&z, z0, z1, t);
        const bool y_first = ty < tz;
        const double t1 = y_first ? ty : tz, t2 = y_first ? tz : ty;
        const int64_t middle = y_first ? y1 * y.stride + z0 * z.stride : y0 * y.stride + z1 * z.stride;
        sum += slab[y0 * y.stride + z0 * z.stride] * (t1 - t[0]) + slab[middle] * (t2 - t1) +
               slab[y1 * y.stride + z1 * z.stride] * (t[1] - t2);
        t[0] = t[1];
        y0 = y_end;
        z0 = z_end;
    }
    return sum;
}

/* The part of 0 <= t <= 1 inside the box; false when there is none. */
static bool clip(const struct lr_mu_lines *self, const struct line *line, double range[2])
{
    range[0] = 0.0;
    range[1] = 1.0;
    for (int k = 0; k < 3; k++) {
        if (line->along[k] == 0.0) {
            if (line->from[k] < 0.0 || line->from[k] >= self->size[k]) return false;
            continue;
        }
        const double a = -line->from[k] / line->along[k];
        const double b = (self->size[k] - line->from[k]) / line->along[k];
        range[0] = fmax(range[0], fmin(a, b));
        range[1] = fmin(range[1], fmax(a, b));
    }
    return range[0] < range[1];
}

/* Sum of mu dt along a line that lies in no face. */
static double sum_clear(const struct lr_mu_lines *self, const struct line *line)
{
    double range[2];
    if (!clip(self, line, range)) return 0.0;
    int steepest = 0;
    for (int k = 1; k < 3; k++) steepest = fabs(line->along[k]) > fabs(line->along[steepest]) ? k : steepest;
    if (line->along[steepest] > 0.0) return sum_slabs(self, line, steepest, range);
    struct line reversed;
    const double reversed_range[2] = {1.0 - range[1], 1.0 - range[0]};
    for (int k = 0; k < 3; k++) {
        reversed.from[k] = line->from[k] + line->along[k];
        reversed.along[k] = -line->along[k];
    }
    return line->along[steepest] < 0.0 ? sum_slabs(self, &reversed, steepest, reversed_range) : 0.0;
}

static bool lies_in_face(const struct line *line, int axis)
{
    return fabs(line->along[axis]) <= IN_FACE && fabs(line->from[axis] - nearbyint(line->from[axis])) <= IN_FACE;
}

/* A line in the face between two voxels takes the mean of both. */
static double sum_line(const struct lr_mu_lines *self, const struct line *line)
{
    struct line lines[4] = {*line};
    int count = 1;
    for (int k = 0; k < 3; k++) {
        if (!lies_in_face(line, k) || count > 2) continue;
        for (int n = 0; n < count; n++) {
            const double face = nearbyint(line->from[k]);
            lines[count + n] = lines[n];
            lines[n].from[k] = face - 0.5;
            lines[count + n].from[k] = face + 0.5;
            lines[n].along[k] = lines[count + n].along[k] = 0.0;
        }
        count *= 2;
    }
    double sum = 0.0;
    for (int n = 0; n < count; n++) sum += sum_clear(self, &lines[n]);
    return sum / count;
}

double lr_mu_lines_integral(const struct lr_mu_lines *self, const double from[3], const double to[3])
{
    struct line line;
    double length2 = 0.0;
    for (int k = 0; k < 3; k++) {
        line.from[k] = from[k];
        line.along[k] = to[k] - from[k];
        length2 += pow(line.along[k] * self->voxel_mm[k], 2.0);
    }
    return sqrt(length2) * sum_line(self, &line);
}

/* --- making --- */

static lr_status check_mu(const lr_image *mu, const lr_log *log)
{
    LR_TRY(lr_grid_check(&mu->grid, log));
    const int *size = mu->grid.size;
    for (int64_t v = 0; v < lr_grid_num_voxels(&mu->grid); v++) {
        const float value = mu->values[v];
        if (!isfinite(value) || value < 0.0f) {
            return lr_error(log, LR_BAD_INPUT,
                            "voxel (%lld, %lld, %lld) of the mu-map is %g per mm: values must be "
                            "finite and at least 0",
                            (long long)(v % size[0]), (long long)(v / size[0] % size[1]),
                            (long long)(v / size[0] / size[1]), (double)value);
        }
    }
    return LR_OK;
}

/* Voxels low .. high - 1 along each axis hold all that is not zero; an empty map has one voxel. */
static void find_box(const lr_image *mu, int64_t low[3], int64_t high[3])
{
    const int *size = mu->grid.size;
    for (int k = 0; k < 3; k++) {
        low[k] = size[k];
        high[k] = 0;
    }
    for (int64_t v = 0; v < lr_grid_num_voxels(&mu->grid); v++) {
        const int64_t at[3] = {v % size[0], v / size[0] % size[1], v / size[0] / size[1]};
        for (int k = 0; k < 3 && mu->values[v] != 0.0f; k++) {
            low[k] = at[k] < low[k] ? at[k] : low[k];
            high[k] = at[k] >= high[k] ? at[k] + 1 : high[k];
        }
    }
    for (int k = 0; k < 3 && high[k] == 0; k++) {
        low[k] = 0;
        high[k] = 1;
    }
}

static lr_status copy_box(struct lr_mu_lines *self, const lr_image *mu, const int64_t low[3], const int64_t high[3],
                          const lr_log *log)
{
    int64_t count = 1;
    for (int k = 0; k < 3; k++) {
        self->stride[k] = count;
        self->size[k] = (double)(high[k] - low[k]);
        self->voxel_mm[k] = mu->grid.voxel_mm[k];
        self->origin_mm[k] = mu->grid.origin_mm[k];
        self->corner[k] = (double)low[k];
        count *= high[k] - low[k] + 2;
    }
    self->values = lr_alloc(count, sizeof(*self->values), "the mu-map", log);
    if (self->values == NULL) return LR_FAILED;
    const int *size = mu->grid.size;
    for (int64_t z = low[2]; z < high[2]; z++) {
        for (int64_t y = low[1]; y < high[1]; y++) {
            float *row = self->values + (y - low[1] + 1) * self->stride[1] + (z - low[2] + 1) * self->stride[2] + 1;
            const float *from = mu->values + low[0] + size[0] * (y + size[1] * z);
            for (int64_t x = 0; x < high[0] - low[0]; x++) row[x] = from[x];
        }
    }
    return LR_OK;
}

lr_status lr_mu_lines_init(struct lr_mu_lines *self, const lr_image *mu, const lr_log *log)
{
    int64_t low[3], high[3];
    *self = (struct lr_mu_lines){.values = NULL};
    LR_TRY(check_mu(mu, log));
    find_box(mu, low, high);
    return copy_box(self, mu, low, high, log);
}

void lr_mu_lines_finish(struct lr_mu_lines *self)
{
    free(self->values);
    *self = (struct lr_mu_lines){.values = NULL};
}

void lr_mu_lines_place(const struct lr_mu_lines *self, const double point_mm[3], double place[3])
{
    for (int k = 0; k < 3; k++)
        place[k] = (point_mm[k] - self->origin_mm[k]) / self->voxel_mm[k] + 0.5 - self->corner[k];
}
