/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Convolutions along an axis on the host (lr_convolution in lr/vector.h). */
#include "base/parallel.h"
#include "vector/place.h"

/* Numbers of a row that are worked on at once; rows that a thread takes at a time. */
enum { BLOCK = 256, GRAIN = 16 };

/* Adds weight times `count` numbers from `begin` on. */
static void add_numbers(const lr_vector *x, int64_t begin, int count, double weight, double *sums)
{
    if (x->precision == LR_FLOAT64) {
        const double *numbers = (const double *)x->values + begin;
        for (int k = 0; k < count; k++) sums[k] += weight * numbers[k];
        return;
    }
    const float *numbers = (const float *)x->values + begin;
    for (int k = 0; k < count; k++) sums[k] += weight * (double)numbers[k];
}

static void store(const lr_vector *y, int64_t begin, int count, const double *sums)
{
    for (int k = 0; k < count; k++)
        if (y->precision == LR_FLOAT64)
            ((double *)y->values)[begin + k] = sums[k];
        else
            ((float *)y->values)[begin + k] = (float)sums[k];
}

/* Numbers first .. first + count of a row along x, each with its neighbours along it. */
static void convolve_along(const lr_convolution *convolution, int64_t row, const int range[2], double *sums)
{
    const int length = convolution->size[0], end = range[0] + range[1];
    for (int k = -convolution->reach; k <= convolution->reach; k++) {
        const int from = range[0] + k < 0 ? -k : range[0];
        const int to = end + k > length ? length - k : end;
        if (from < to) {
            add_numbers(convolution->x, row * length + from + k, to - from, convolution->weights[k < 0 ? -k : k],
                        sums + from - range[0]);
        }
    }
}

/* The same where the neighbours are in other rows. */
static void convolve_across(const lr_convolution *convolution, int64_t row, const int range[2], double *sums)
{
    const int *size = convolution->size;
    const int64_t step = convolution->axis == 1 ? 1 : size[1];
    const int place = (int)(convolution->axis == 1 ? row % size[1] : row / size[1]);
    for (int k = -convolution->reach; k <= convolution->reach; k++) {
        if (place + k >= 0 && place + k < size[convolution->axis]) {
            add_numbers(convolution->x, (row + k * step) * size[0] + range[0], range[1],
                        convolution->weights[k < 0 ? -k : k], sums);
        }
    }
}

static void do_rows(void *user, int64_t begin, int64_t end, int worker)
{
    const lr_convolution *convolution = user;
    const int length = convolution->size[0];
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        for (int first = 0; first < length; first += BLOCK) {
            const int range[2] = {first, length - first < BLOCK ? length - first : BLOCK};
            double sums[BLOCK] = {0};
            if (convolution->axis == 0)
                convolve_along(convolution, row, range, sums);
            else
                convolve_across(convolution, row, range, sums);
            store(convolution->y, row * length + first, range[1], sums);
        }
    }
}

lr_status lr_vector_host_convolve(const lr_convolution *convolution)
{
    const int64_t rows = (int64_t)convolution->size[1] * convolution->size[2];
    lr_parallel_for(rows > GRAIN ? lr_place_threads(convolution->y->place) : 1, rows, GRAIN, do_rows,
                    (void *)(uintptr_t)convolution);
    return LR_OK;
}
