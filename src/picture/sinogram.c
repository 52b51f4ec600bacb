/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Counts per LOR as a sinogram: the distance of a line from the axis, and its angle. */
#include <lr/picture.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "picture/axes.h"
#include "picture/font.h"

#include <math.h>
#include <stdlib.h>

enum { AT_ONCE = 1 << 18, LEAST_BINS = 16, MOST_BINS = 512, SIDE = 360, SPACE = 6, SWATCH = 16 };

/* Sums of values and numbers of LORs in each bin of angle and distance. */
struct bins {
    const lr_sinogram_params *params;
    int size[2];    /* distances, angles */
    double most_mm; /* distances go from -most_mm to most_mm */
    double *sums;
    int64_t *lors;
    int64_t num_lors;    /* number of LORs in the slice */
    double middle_mm[2]; /* the lowest and the highest middle of a LOR in coincidence */
};

static lr_status add_all(struct bins *bins)
{
    const lr_sinogram_params *params = bins->params;
    const lr_lors *lors = params->lors;
    const lr_lor_data *data = params->data;
    double(*ends_mm)[2][3] = lr_alloc(AT_ONCE, sizeof(*ends_mm), "ends of lines", params->log);
    lr_status status = ends_mm != NULL ? LR_OK : LR_FAILED;
    int64_t sparse = 0;
    for (int64_t first = 0; status == LR_OK && first < lors->count; first += AT_ONCE) {
        const int64_t left = lors->count - first, count = left < AT_ONCE ? left : AT_ONCE;
        status = lr_progress_report(params->progress, "drawing a sinogram", (double)first, (double)lors->count);
        if (status == LR_OK)
            status = lr_lor_span_ends(lors, &(lr_lor_span){.first = first, .count = count}, ends_mm, params->log);
        for (int64_t k = 0; status == LR_OK && k < count; k++) {
            const bool is_listed = data->index != NULL && sparse < data->count && data->index[sparse] == first + k;
            const double value = data->index == NULL ? data->values[first + k] : is_listed ? data->values[sparse] : 0.0;
            sparse += is_listed;
            if (!lr_lors_in_coincidence(lors, first + k)) continue;
            double(*const ends)[3] = ends_mm[k];
            const double dx = ends[1][0] - ends[0][0], dy = ends[1][1] - ends[0][1], length = hypot(dx, dy);
            const double middle_mm = 0.5 * (ends[0][2] + ends[1][2]), off_mm = fabs(middle_mm - params->z_mm);
            bins->middle_mm[0] = fmin(bins->middle_mm[0], middle_mm);
            bins->middle_mm[1] = fmax(bins->middle_mm[1], middle_mm);
            const bool is_in_slice = !(params->thickness_mm > 0.0) || off_mm <= 0.5 * params->thickness_mm;
            bins->num_lors += is_in_slice;
            if (!(length > 0.0) || !is_in_slice) continue;
            /* The normal points to angles from 0 to 180 degrees, and the distance is measured along the normal. */
            const double sign = dx > 0.0 || (dx == 0.0 && dy < 0.0) ? 1.0 : -1.0;
            const double normal[2] = {-sign * dy / length, sign * dx / length};
            const double distance_mm = normal[0] * ends[0][0] + normal[1] * ends[0][1];
            const int s = (int)floor((distance_mm / bins->most_mm + 1.0) * 0.5 * bins->size[0]);
            const int turn = (int)floor(atan2(normal[1], normal[0]) / LR_PI * bins->size[1]);
            const int angle = turn < 0 ? 0 : turn < bins->size[1] ? turn : bins->size[1] - 1;
            if (s < 0 || s >= bins->size[0]) continue;
            bins->sums[(int64_t)angle * bins->size[0] + s] += value;
            bins->lors[(int64_t)angle * bins->size[0] + s]++;
        }
    }
    free(ends_mm);
    if (status == LR_OK && bins->num_lors == 0 && params->thickness_mm > 0.0) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "no LOR's middle lies within %g mm of z = %g mm: they lie from %.4g to %.4g mm",
                        0.5 * params->thickness_mm, params->z_mm, bins->middle_mm[0], bins->middle_mm[1]);
    }
    return status;
}

static lr_picture *draw(const struct bins *bins, const float *means)
{
    static const lr_colour blue = {205, 222, 240}, black = {0, 0, 0}, white = {255, 255, 255};
    struct lr_axes axes = {.size = {SIDE, SIDE},
                           .across = {-bins->most_mm, bins->most_mm, "distance from the axis (mm)", false},
                           .up = {0.0, 180.0, "angle of the normal (degrees)", false},
                           .ink = black};
    const struct lr_margins margins = lr_axes_margins(&axes);
    double high = 0.0;
    bool has_gaps = false; /* some bins have no LOR */
    for (int64_t k = 0; k < (int64_t)bins->size[0] * bins->size[1]; k++) {
        high = means[k] > high ? means[k] : high;
        has_gaps = has_gaps || isnan(means[k]);
    }
    const lr_text_style style = {.colour = black, .size_px = lr_font_small};
    const int text_height = lr_picture_text_height(&style);
    const lr_bar_params bar = {.size = {0, SIDE},
                               .high = high > 0.0 ? high : 1.0,
                               .colours = LR_COLOURS_INVERSE_GREY,
                               .unit = "mean per LOR",
                               .text = black};
    axes.corner[0] = margins.left;
    axes.corner[1] = margins.top + lr_font_small;
    const int size[2] = {margins.left + SIDE + SPACE + lr_larger(lr_picture_bar_width(&bar), margins.right),
                         axes.corner[1] + SIDE + margins.bottom + (has_gaps ? SPACE + text_height : 0)};
    lr_picture *picture = lr_picture_create(size, bins->params->log);
    if (picture == NULL) return NULL;
    lr_picture_fill(picture, (int[2]){0, 0}, size, white);
    lr_picture_map(picture, axes.corner,
                   &(lr_map_params){.values = means,
                                    .size = {bins->size[0], bins->size[1]},
                                    .drawn_size = {SIDE, SIDE},
                                    .high = bar.high,
                                    .colours = bar.colours,
                                    .not_a_number = blue});
    lr_axes_draw(picture, &axes);
    lr_picture_bar(picture, (int[2]){margins.left + SIDE + SPACE, axes.corner[1]}, &bar);
    if (has_gaps) {
        const int legend[2] = {margins.left, size[1] - text_height};
        lr_picture_fill(picture, legend, (int[2]){SWATCH, text_height}, blue);
        lr_picture_text(picture, (int[2]){margins.left + SWATCH + SPACE, legend[1]}, "no LOR", &style);
    }
    lr_font_tell(bins->params->log);
    return picture;
}

lr_picture *lr_picture_sinogram_sized(size_t given_bytes, const lr_sinogram_params *given)
{
    LR_TAKE(lr_sinogram_params, params, given, given_bytes);
    if (params->lors == NULL || params->lors->scanner == NULL || params->data == NULL) {
        lr_error(params->log, LR_USAGE, "a sinogram needs the LORs of a scanner, and a value for each");
        return NULL;
    }
    /* A bin is as wide as the smallest crystal, and the bins reach across the ring, or across the field of view. There
     * are as many angles as such crystals on half of that circle. Both numbers have limits. */
    const lr_scanner *scanner = params->lors->scanner;
    struct bins bins = {.params = params, .middle_mm = {INFINITY, -INFINITY}};
    double pitch_mm = INFINITY;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        bins.most_mm = fmax(bins.most_mm, hypot(module->centre_mm[0], module->centre_mm[1]));
        pitch_mm = fmin(pitch_mm, module->pitch_mm[0]);
    }
    const double view_mm = scanner->coincidence.field_of_view_mm;
    if (view_mm > 0.0) bins.most_mm = fmin(bins.most_mm, 0.5 * view_mm + pitch_mm);
    for (int k = 0; k < 2; k++) {
        const double wanted = (k == 0 ? 2.0 : LR_PI) * bins.most_mm / pitch_mm;
        bins.size[k] = (int)fmin(fmax(wanted, LEAST_BINS), MOST_BINS);
    }
    const int64_t count = (int64_t)bins.size[0] * bins.size[1];
    bins.sums = lr_alloc(count, sizeof(*bins.sums), "a sinogram", params->log);
    bins.lors = lr_alloc(count, sizeof(*bins.lors), "a sinogram", params->log);
    float *means = lr_alloc(count, sizeof(*means), "a sinogram", params->log);
    lr_picture *picture = NULL;
    if (bins.sums != NULL && bins.lors != NULL && means != NULL && add_all(&bins) == LR_OK) {
        for (int64_t k = 0; k < count; k++)
            means[k] = bins.lors[k] > 0 ? (float)(bins.sums[k] / (double)bins.lors[k]) : NAN;
        picture = draw(&bins, means);
    }
    lr_free_all(bins.sums, bins.lors, means);
    return picture;
}
