/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The width of the image of a small source. */
#include <lr/design.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "model/lors/rows.h"

#include <lr/listmode.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDE = 33,
    NUM_VOXELS = SIDE * SIDE * SIDE,
    POINTS = 64,
    FEW_POINTS = 8,
    USUAL_ITERATIONS = 8,
    MOST_DOUBLINGS = 5
};

/* The LORs that see the source, and the probability of each. */
struct measured {
    const lr_lors *lors;
    const lr_log *log;
    struct lr_owned_row row; /* the rows of all points, one after the other */
    int64_t ends_of_rows[POINTS];
    double (*starts_mm)[3], (*ends_mm)[3]; /* ends of the LORs' lines, after they were moved back */
};

static lr_status take_row(void *user, const lr_row *row)
{
    struct measured *measured = user;
    LR_TRY(lr_owned_row_reserve(&measured->row, measured->row.count + row->count, measured->log));
    for (int64_t k = 0; k < row->count; k++) lr_owned_row_put(&measured->row, row->lor[k], row->probability[k]);
    measured->ends_of_rows[row->row] = measured->row.count;
    return LR_OK;
}

/* Spreads points evenly over the width of a crystal, so that the image does not depend on the position of the source
 * between two crystals. moved_mm: the displacement of each point, by which its lines are moved back later. If the
 * source has a width, each point also gets a Gaussian displacement, which is not moved back.
 *
 * The sequence of Roberts (The unreasonable effectiveness of quasirandom sequences, 2018) fills a cube of seven
 * dimensions evenly. The transform of Box and Muller makes normal numbers. */
static void spread_source(const lr_point_image_params *params, double pitch_mm, int count, double points_mm[POINTS][3],
                          double moved_mm[POINTS][3])
{
    static const double root = 1.0969815577985598; /* solves x^8 = x + 1; Roberts' number for seven dimensions */
    double normal[POINTS][3], mean[3] = {0}, square[3] = {0};
    for (int n = 0; n < count; n++) {
        double even[7];
        for (int k = 0; k < 7; k++) even[k] = fmod(0.5 + (n + 1) / pow(root, k + 1), 1.0);
        for (int k = 0; k < 3; k++) {
            const double radius = sqrt(-2.0 * log(1.0 - even[k / 2 + 3])), angle = 2.0 * LR_PI * even[k / 2 + 5];
            moved_mm[n][k] = (even[k] - 0.5) * pitch_mm;
            normal[n][k] = radius * (k % 2 == 0 ? cos(angle) : sin(angle));
            mean[k] += normal[n][k] / count;
            square[k] += normal[n][k] * normal[n][k] / count;
        }
    }
    /* The normal numbers are shifted and scaled, so that the points have exactly the source's centre and width. */
    for (int n = 0; n < count; n++) {
        for (int k = 0; k < 3; k++) {
            const double sigma = params->source_fwhm_mm / LR_FWHM_PER_SIGMA / sqrt(square[k] - mean[k] * mean[k]);
            points_mm[n][k] = params->at_mm[k] + moved_mm[n][k] + sigma * (normal[n][k] - mean[k]);
        }
    }
}

static lr_status make_lines(struct measured *measured, const double (*moved_mm)[3])
{
    const lr_lor_span span = {.numbers = measured->row.lor, .count = measured->row.count};
    double(*pairs)[2][3] = lr_alloc(measured->row.count, sizeof(*pairs), "lines of a source", measured->log);
    measured->starts_mm =
        lr_alloc(measured->row.count, sizeof(*measured->starts_mm), "lines of a source", measured->log);
    measured->ends_mm = lr_alloc(measured->row.count, sizeof(*measured->ends_mm), "lines of a source", measured->log);
    const bool has_room = pairs != NULL && measured->starts_mm != NULL && measured->ends_mm != NULL;
    const lr_status status = has_room ? lr_lor_span_ends(measured->lors, &span, pairs, measured->log) : LR_FAILED;
    for (int64_t k = 0, point = 0; k < measured->row.count && status == LR_OK; k++) {
        while (k >= measured->ends_of_rows[point]) point++;
        for (int axis = 0; axis < 3; axis++) {
            measured->starts_mm[k][axis] = pairs[k][0][axis] - moved_mm[point][axis];
            measured->ends_mm[k][axis] = pairs[k][1][axis] - moved_mm[point][axis];
        }
    }
    free(pairs);
    return status;
}

/* Iterates ML-EM with a uniform sensitivity. The value of the sensitivity does not matter, because only the shape of
 * the image is used. image: [NUM_VOXELS]. */
static lr_status iterate(const struct measured *measured, lr_operator *op, int iterations, float *image)
{
    float *estimated = lr_alloc(measured->row.count, sizeof(*estimated), "lines of a source", measured->log);
    float *correction = lr_alloc(NUM_VOXELS, sizeof(*correction), "the image of a source", measured->log);
    const lr_vector x = lr_vector_of_floats(image, NUM_VOXELS);
    lr_vector y = lr_vector_of_floats(estimated, measured->row.count), c = lr_vector_of_floats(correction, NUM_VOXELS);
    lr_status status = estimated != NULL && correction != NULL ? LR_OK : LR_FAILED;
    for (int64_t v = 0; v < NUM_VOXELS; v++) image[v] = 1.0f;
    for (int n = 0; n < iterations && status == LR_OK; n++) {
        status = lr_operator_forward(op, NULL, &x, &y);
        for (int64_t e = 0; e < measured->row.count && status == LR_OK; e++)
            estimated[e] = estimated[e] > 0.0f ? (float)measured->row.probability[e] / estimated[e] : 0.0f;
        if (status == LR_OK) status = lr_operator_back(op, NULL, &y, &c);
        double sum = 0.0;
        for (int64_t v = 0; v < NUM_VOXELS && status == LR_OK; v++) sum += image[v] *= correction[v];
        const float scale = sum > 0.0 ? (float)(NUM_VOXELS / sum) : 0.0f;
        for (int64_t v = 0; v < NUM_VOXELS && status == LR_OK; v++) image[v] *= scale;
    }
    lr_free_all(estimated, correction);
    return status;
}

/* FWHM in voxels of a profile's peak; NaN if half of its maximum is not reached on both sides. */
static double profile_fwhm(const double profile[SIDE], double *peak)
{
    int top = 0;
    for (int k = 1; k < SIDE; k++) top = profile[k] > profile[top] ? k : top;
    *peak = top;
    if (top == 0 || top == SIDE - 1) return NAN;
    const double a = profile[top - 1], b = profile[top], c = profile[top + 1], bend = a - 2.0 * b + c;
    const double shift = bend < 0.0 ? 0.5 * (a - c) / bend : 0.0;
    const double half = 0.5 * (b - 0.25 * (a - c) * shift);
    double width = 0.0;
    for (int side = -1; side <= 1; side += 2) {
        int k = top;
        while (k + side >= 0 && k + side < SIDE && profile[k + side] > half) k += side;
        if (k + side < 0 || k + side >= SIDE) return NAN;
        width += side * (k - top) + (profile[k] - half) / (profile[k] - profile[k + side]);
    }
    *peak = top + shift;
    return width;
}

/* Finds the FWHMs in voxels. The profile along an axis is summed over all lines of voxels that lie within a FWHM of the
 * peak along the other two axes. */
static void image_fwhm(const float *image, double fwhm[3])
{
    double peak[3] = {SIDE / 2, SIDE / 2, SIDE / 2}, reach[3] = {SIDE, SIDE, SIDE};
    for (int pass = 0; pass < 3; pass++) {
        double profiles[3][SIDE] = {{0}};
        for (int v = 0; v < NUM_VOXELS; v++) {
            const int at[3] = {v % SIDE, v / SIDE % SIDE, v / (SIDE * SIDE)};
            bool near[3];
            for (int k = 0; k < 3; k++) near[k] = fabs(at[k] - peak[k]) <= fmax(reach[k], 0.5);
            for (int k = 0; k < 3; k++)
                if (near[(k + 1) % 3] && near[(k + 2) % 3]) profiles[k][at[k]] += image[v];
        }
        for (int k = 0; k < 3; k++) {
            fwhm[k] = profile_fwhm(profiles[k], &peak[k]);
            reach[k] = isfinite(fwhm[k]) ? fwhm[k] : SIDE;
        }
    }
}

lr_status lr_point_image_fwhm_sized(size_t given_bytes, const lr_point_image_params *given, double fwhm_mm[3])
{
    LR_TAKE(lr_point_image_params, params, given, given_bytes);
    const lr_lors *lors = lr_operator_get_info(params->op)->lors;
    if (lors == NULL) {
        return lr_error(params->log, LR_USAGE,
                        "the image of a source needs an operator of family correspondence: this one has no scanner");
    }
    struct measured measured = {.lors = lors, .log = params->log};
    const lr_row_sink sink = {take_row, &measured};
    const int num_points = params->source_fwhm_mm > 0.0 ? POINTS : FEW_POINTS;
    double points_mm[POINTS][3], moved_mm[POINTS][3], pitch_mm = INFINITY;
    float *image = NULL;
    for (int m = 0; m < lors->scanner->num_modules; m++)
        for (int k = 0; k < 2; k++) pitch_mm = fmin(pitch_mm, lors->scanner->modules[m].pitch_mm[k]);
    spread_source(params, pitch_mm, num_points, points_mm, moved_mm);
    lr_status status = lr_operator_point_rows(params->op, (const double(*)[3])points_mm, num_points, &sink);
    for (int k = 0; k < 3; k++) fwhm_mm[k] = NAN;
    if (status == LR_OK && measured.row.count > 0) status = make_lines(&measured, (const double(*)[3])moved_mm);
    if (status != LR_OK || measured.row.count == 0) goto finish;

    image = lr_alloc(NUM_VOXELS, sizeof(*image), "the image of a source", params->log);
    if (image == NULL) status = LR_FAILED;
    double voxel_mm[3] = {0.25 * pitch_mm, 0.25 * pitch_mm, 0.25 * pitch_mm};
    bool again = true;
    for (int n = 0; n <= MOST_DOUBLINGS && again && status == LR_OK; n++) {
        lr_grid grid = lr_grid_centred((const int[3]){SIDE, SIDE, SIDE}, voxel_mm);
        for (int k = 0; k < 3; k++) grid.origin_mm[k] += params->at_mm[k];
        const lr_vector start = lr_vector_of_doubles(measured.starts_mm[0], 3 * measured.row.count);
        const lr_vector end = lr_vector_of_doubles(measured.ends_mm[0], 3 * measured.row.count);
        lr_operator *op =
            lr_listmode_create(&(lr_listmode_params){.grid = &grid,
                                                     .lines = &(lr_lines){.start_mm = &start, .end_mm = &end},
                                                     .kernel = LR_LISTMODE_LINE,
                                                     .backend = "native",
                                                     .threads = params->threads,
                                                     .log = params->log,
                                                     .progress = params->progress});
        status = op != NULL
                     ? iterate(&measured, op, params->iterations > 0 ? params->iterations : USUAL_ITERATIONS, image)
                     : lr_progress_report(params->progress, "the image of a source", 0.0, 1.0);
        if (op == NULL && status == LR_OK) status = LR_FAILED; /* the caller has not stopped the work */
        lr_operator_destroy(op);
        if (status != LR_OK) break;
        image_fwhm(image, fwhm_mm);
        again = false;
        for (int k = 0; k < 3; k++) {
            const bool is_wide = !isfinite(fwhm_mm[k]) || fwhm_mm[k] > 0.4 * SIDE;
            fwhm_mm[k] = is_wide ? NAN : fwhm_mm[k] * voxel_mm[k];
            if (is_wide) voxel_mm[k] *= 2.0;
            again = again || is_wide;
        }
    }
finish:
    free(image);
    lr_owned_row_finish(&measured.row);
    lr_free_all(measured.starts_mm, measured.ends_mm);
    return status;
}
