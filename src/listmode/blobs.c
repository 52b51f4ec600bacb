/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include <lr/listmode.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>

#define MOST_ALPHA 50.0

/* ORDER: order of the blob's window function. ENTRIES: entries of the table from which images are evaluated. Linear
 * interpolation between so many entries is accurate to 1e-6 of a blob's peak. */
enum { ORDER = 2, ENTRIES = 4096 };

/* The first zero of J_(7/2), which is also the first zero of a blob's spectrum. */
#define FIRST_ZERO 6.9879320005005

/* The modified Bessel function of the first kind, as a series of positive terms. */
static double bessel_i(double order, double x)
{
    const double quarter = 0.25 * x * x;
    double term = pow(0.5 * x, order) / tgamma(order + 1.0), sum = 0;
    for (int k = 1; term > 1e-17 * sum; k++) {
        sum += term;
        term *= quarter / (k * (k + order));
    }
    return sum;
}

lr_status lr_blobs_complete(lr_blobs *blobs, const lr_log *log)
{
    blobs->radius_mm = blobs->radius_mm == 0 ? 10.0 : blobs->radius_mm;
    blobs->alpha = blobs->alpha == 0 ? 8.37 : blobs->alpha;
    const bool has_shape =
        blobs->radius_mm > 0 && isfinite(blobs->radius_mm) && blobs->alpha > 0 && blobs->alpha <= MOST_ALPHA;
    if (has_shape && blobs->spacing_mm == 0)
        blobs->spacing_mm = 2.0 * sqrt(2.0) * LR_PI * blobs->radius_mm / hypot(blobs->alpha, FIRST_ZERO);
    if (!has_shape || !(blobs->spacing_mm > 0) || !isfinite(blobs->spacing_mm)) {
        return lr_error(log, LR_USAGE,
                        "blobs cannot have a radius of %g mm, alpha %g and a spacing of %g mm: give "
                        "positive lengths, and an alpha of at most %g",
                        blobs->radius_mm, blobs->alpha, blobs->spacing_mm, MOST_ALPHA);
    }
    return LR_OK;
}

/* The scale at which blobs with coefficient 1 add up to 1. The two interleaved grids have two blobs in the cube between
 * neighbouring points of one grid. */
static double scale_of(const lr_blobs *blobs)
{
    const double radius = blobs->radius_mm, spacing = blobs->spacing_mm;
    const double volume = pow(2.0 * LR_PI / blobs->alpha, 1.5) * radius * radius * radius *
                          bessel_i(ORDER + 1.5, blobs->alpha) / bessel_i(ORDER, blobs->alpha);
    return 0.5 * spacing * spacing * spacing / volume;
}

/* Returns 1 - (r/a)^2 at distance r from the centre of a blob of radius a; 0 beyond the blob. */
static double square_within(const lr_blobs *blobs, double distance_mm)
{
    const double part = distance_mm / blobs->radius_mm;
    return fmax(1.0 - part * part, 0.0);
}

double lr_blobs_value(const lr_blobs *blobs, double distance_mm)
{
    const double square = square_within(blobs, distance_mm);
    return scale_of(blobs) * square * bessel_i(ORDER, blobs->alpha * sqrt(square)) / bessel_i(ORDER, blobs->alpha);
}

double lr_blobs_footprint(const lr_blobs *blobs, double distance_mm)
{
    const double alpha = blobs->alpha, within = sqrt(square_within(blobs, distance_mm));
    return scale_of(blobs) * blobs->radius_mm * sqrt(2.0 * LR_PI / alpha) * pow(within, ORDER + 0.5) *
           bessel_i(ORDER + 0.5, alpha * within) / bessel_i(ORDER, alpha);
}

void lr_blobs_grids(const lr_blobs *blobs, const lr_grid *voxels, lr_grid grids[2])
{
    for (int k = 0; k < 3; k++) {
        const double spacing = blobs->spacing_mm;
        const double half = 0.5 * (voxels->size[k] - 1) * voxels->voxel_mm[k];
        const double middle = voxels->origin_mm[k] + half;
        const double least = ceil(2.0 * (half + blobs->radius_mm) / spacing - 0.5);
        const int size = (int)fmin(fmax(least, 1.0), 1e9);
        for (int g = 0; g < 2; g++) {
            grids[g].size[k] = size;
            grids[g].voxel_mm[k] = spacing;
            grids[g].origin_mm[k] = middle + (0.5 * g - 0.25 - 0.5 * (size - 1)) * spacing;
        }
    }
}

/* --- evaluating --- */

struct evaluation {
    const double *table; /* [ENTRIES + 2] values of the blob against the distance from its centre */
    double radius, per_mm;
    const lr_grid *grid;
    const float *coefficients; /* coefficients on the grid */
};

static double evaluate_at(const struct evaluation *evaluation, const double point[3])
{
    const lr_grid *grid = evaluation->grid;
    const double *first = grid->origin_mm, *edge = grid->voxel_mm;
    int begin[3], end[3];
    double sum = 0;
    for (int k = 0; k < 3; k++) {
        const double middle = (point[k] - first[k]) / edge[k];
        const double reach = evaluation->radius / edge[k];
        begin[k] = (int)fmin(fmax(ceil(middle - reach), 0.0), grid->size[k]);
        end[k] = (int)fmin(fmax(floor(middle + reach) + 1.0, begin[k]), grid->size[k]);
    }
    for (int z = begin[2]; z < end[2]; z++) {
        const double off_z = first[2] + z * edge[2] - point[2];
        for (int y = begin[1]; y < end[1]; y++) {
            const double off_y = first[1] + y * edge[1] - point[1], square = off_y * off_y + off_z * off_z;
            const float *row = evaluation->coefficients + (int64_t)grid->size[0] * (y + (int64_t)grid->size[1] * z);
            double of_row = 0;
            for (int x = begin[0]; x < end[0]; x++) {
                const double off = first[0] + x * edge[0] - point[0];
                const double entry = sqrt(off * off + square) * evaluation->per_mm;
                if (entry < ENTRIES) {
                    const double *table = &evaluation->table[(int)entry];
                    of_row += (double)row[x] * (table[0] + (entry - (int)entry) * (table[1] - table[0]));
                }
            }
            sum += of_row;
        }
    }
    return sum;
}

lr_status lr_blobs_evaluate(const lr_blobs *blobs, const float *coefficients, lr_image *image, const lr_log *log)
{
    lr_grid grids[2];
    lr_blobs_grids(blobs, &image->grid, grids);
    double *table = lr_alloc(ENTRIES + 2, sizeof(*table), "the table of a blob", log);
    if (table == NULL) return LR_FAILED;
    for (int k = 0; k < ENTRIES; k++) table[k] = lr_blobs_value(blobs, blobs->radius_mm * k / ENTRIES);
    const int64_t each = lr_grid_num_voxels(&grids[0]);
    for (int64_t v = 0; v < lr_grid_num_voxels(&image->grid); v++) {
        double point[3], sum = 0;
        lr_grid_voxel_centre(&image->grid, v, point);
        for (int g = 0; g < 2; g++) {
            const struct evaluation evaluation = {table, blobs->radius_mm, ENTRIES / blobs->radius_mm, &grids[g],
                                                  coefficients + g * each};
            sum += evaluate_at(&evaluation, point);
        }
        image->values[v] = (float)sum;
    }
    free(table);
    return LR_OK;
}
