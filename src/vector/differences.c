/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Relative differences of neighbours on the host (lr_relative_differences in lr/vector.h, which has
 * the equations and their source). */
#include "base/parallel.h"
#include "vector/place.h"

#include <math.h>

/* Numbers of a row that are worked on at once; rows that a thread takes at a time. */
enum { BLOCK = 256, GRAIN = 16 };

/* A piece of a row, with the number before and the one behind it; beyond the ends kappa is 0. */
struct row_piece {
    double x[BLOCK + 2], kappa[BLOCK + 2];
};

static double read_number(const lr_vector *vector, int64_t k)
{
    return vector->precision == LR_FLOAT64 ? ((const double *)vector->values)[k]
                                           : (double)((const float *)vector->values)[k];
}

static void write_number(const lr_vector *vector, int64_t k, double value)
{
    if (vector->precision == LR_FLOAT64)
        ((double *)vector->values)[k] = value;
    else
        ((float *)vector->values)[k] = (float)value;
}

/* Numbers first - 1 .. first + count of the row. */
static void load_piece(const lr_relative_differences *differences, int64_t row, const int range[2],
                       struct row_piece *piece)
{
    const int first = range[0], count = range[1], length = differences->size[0];
    for (int k = 0; k < count + 2; k++) {
        const int at = first - 1 + k;
        const bool is_inside = at >= 0 && at < length;
        const int64_t number = row * length + at;
        piece->x[k] = is_inside ? read_number(differences->x, number) : 0.0;
        piece->kappa[k] = !is_inside ? 0.0 : differences->kappa == NULL ? 1.0 : read_number(differences->kappa, number);
    }
}

/* A number and a neighbour, without weight and kappa. */
static inline double find_term(const lr_relative_differences *differences, double x, double other)
{
    const double gamma = differences->gamma, epsilon = differences->epsilon;
    const double d = x - other, size = fabs(d), n = x + other + gamma * size + epsilon;
    if (differences->what == LR_DIFFERENCES_WEIGHTS) return 1.0;
    if (!(n > 0.0)) return n == 0.0 ? 0.0 : n; /* what is not a number is noticed later */
    return differences->what == LR_DIFFERENCES_VALUE ? 0.5 * d * d / n
                                                     : d * (gamma * size + x + 3.0 * other + 2.0 * epsilon) / (n * n);
}

/* Adds what a neighbouring row gives; `which` has its differences along y and z (lr/vector.h). */
static void add_row(const lr_relative_differences *differences, const struct row_piece pieces[2],
                    const int range_which[2], double *sums)
{
    const struct row_piece *own = &pieces[0], *other = &pieces[1];
    const int count = range_which[0], which = range_which[1];
    for (int dx = -1; dx <= 1; dx++) {
        const int place = which + (dx != 0);
        const double weight = place > 0 ? differences->weights[place] : 0.0;
        if (!(weight > 0.0)) continue;
        for (int k = 1; k <= count; k++) {
            const double v = weight * own->kappa[k] * other->kappa[k + dx];
            sums[k - 1] += v > 0.0 ? v * find_term(differences, own->x[k], other->x[k + dx]) : 0.0;
        }
    }
}

static void add_neighbours(const lr_relative_differences *differences, int64_t row, const int range[2], double *sums)
{
    const int ny = differences->size[1], nz = differences->size[2];
    const int y = (int)(row % ny), z = (int)(row / ny);
    struct row_piece pieces[2];
    load_piece(differences, row, range, &pieces[0]);
    for (int dz = -1; dz <= 1; dz++) {
        for (int dy = -1; dy <= 1; dy++) {
            if (y + dy < 0 || y + dy >= ny || z + dz < 0 || z + dz >= nz) continue;
            const int which = 2 * (dy != 0) + 4 * (dz != 0);
            load_piece(differences, row + dy + (int64_t)dz * ny, range, &pieces[1]);
            add_row(differences, pieces, (const int[2]){range[1], which}, sums);
        }
    }
}

static void do_row(const lr_relative_differences *differences, int64_t row)
{
    const int length = differences->size[0];
    const bool adds = differences->what == LR_DIFFERENCES_GRADIENT;
    for (int first = 0; first < length; first += BLOCK) {
        const int count = length - first < BLOCK ? length - first : BLOCK;
        double sums[BLOCK] = {0};
        add_neighbours(differences, row, (const int[2]){first, count}, sums);
        for (int k = 0; k < count; k++) {
            const int64_t number = row * length + first + k;
            const double before = adds ? read_number(differences->y, number) : 0.0;
            write_number(differences->y, number, adds ? before + differences->scale * sums[k] : sums[k]);
        }
    }
}

static void do_rows(void *user, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    for (int64_t row = begin; row < end; row++) do_row(user, row);
}

lr_status lr_vector_host_differences(const lr_relative_differences *differences)
{
    const int64_t rows = (int64_t)differences->size[1] * differences->size[2];
    lr_parallel_for(rows > GRAIN ? lr_place_threads(differences->y->place) : 1, rows, GRAIN, do_rows,
                    (void *)(uintptr_t)differences);
    return LR_OK;
}
