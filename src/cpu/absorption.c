/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cpu/absorption.h"

#include "base/vec.h"

/* Trilinear between voxel centres; `at` counts voxels from the first one's centre. */
static double interpolate(const lr_image *mu, const double at[3])
{
    const int *size = mu->grid.size;
    int low[3];
    double part[3];
    for (int k = 0; k < 3; k++) {
        if (!(at[k] > -1 && at[k] < size[k])) return 0;
        const double floored = floor(at[k]);
        low[k] = (int)floored;
        part[k] = at[k] - floored;
    }
    double sum = 0;
    for (int corner = 0; corner < 8; corner++) {
        int64_t index[3];
        double weight = 1;
        bool inside = true;
        for (int k = 0; k < 3; k++) {
            const int step = (corner >> k) & 1;
            index[k] = (int64_t)low[k] + step;
            weight *= step ? part[k] : 1 - part[k];
            inside = inside && index[k] >= 0 && index[k] < size[k];
        }
        if (inside) sum += weight * (double)mu->values[index[0] + size[0] * (index[1] + size[1] * index[2])];
    }
    return sum;
}

/* Narrows [begin, end) to the steps that can meet the image, with one step to spare. */
static void clip_steps(const lr_image *mu, const double start[3], const double step[3], int64_t range[2])
{
    double low = 0, high = (double)range[1];
    for (int k = 0; k < 3; k++) {
        if (step[k] == 0) continue;
        const double a = (-1 - start[k]) / step[k], b = (mu->grid.size[k] - start[k]) / step[k];
        low = fmax(low, fmin(a, b) - 1);
        high = fmin(high, fmax(a, b) + 2);
    }
    range[0] = low < high ? (int64_t)low : 0;
    range[1] = low < high ? (int64_t)high : 0;
}

double lr_cpu_absorption(const lr_image *mu, int num_steps, const double y1[3], const double y2[3])
{
    if (mu == NULL) return 1;
    double along[3], start[3], step[3];
    vec_sub(y2, y1, along);
    for (int k = 0; k < 3; k++) {
        step[k] = along[k] / (num_steps * mu->grid.voxel_mm[k]);
        start[k] = (y1[k] - mu->grid.origin_mm[k]) / mu->grid.voxel_mm[k] + 0.5 * step[k];
    }
    int64_t range[2] = {0, num_steps};
    clip_steps(mu, start, step, range);
    double sum = 0;
    for (int64_t n = range[0]; n < range[1]; n++) {
        double at[3];
        vec_add_scaled(start, (double)n, step, at);
        sum += interpolate(mu, at);
    }
    return exp(-vec_length(along) / num_steps * sum);
}
