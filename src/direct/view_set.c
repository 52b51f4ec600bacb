/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Views: directions of lines of response (paper 1 of lr/direct.h, section 6.1: 40 intervals in
 * azimuth, 3 in co-polar angle); histo-images, which have an image for each view. */
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "direct/backend.h"
#include "direct/tables.h"

#include <lr/direct.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int usual_azimuths = 40, usual_tilts = 3;
static const double usual_acceptance_deg = 10.0;
static const int64_t most_views = 65536;

/* Sine and cosine of an angle in degrees, exact for multiples of 90, so that voxels on the border between two
 * identifiers stay on the border. */
static void sine_cosine(double angle_deg, double *sine, double *cosine)
{
    const double quarters = nearbyint(angle_deg / 90.0);
    const double rest = (angle_deg - 90.0 * quarters) * LR_DEGREE;
    const double s = sin(rest), c = cos(rest);
    const int quarter = (int)(quarters - 4.0 * floor(quarters / 4.0));
    *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
    *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}

void lr_view_axes(const lr_view *view, double axes[3][3])
{
    double sf, cf, st, ct;
    sine_cosine(view->azimuth_deg, &sf, &cf);
    sine_cosine(view->tilt_deg, &st, &ct);
    const double tof[3] = {ct * cf, ct * sf, st};
    const double radial[3] = {-sf, cf, 0};
    const double axial[3] = {-st * cf, -st * sf, ct};
    for (int k = 0; k < 3; k++) {
        axes[0][k] = tof[k];
        axes[1][k] = radial[k];
        axes[2][k] = axial[k];
    }
}

lr_status lr_view_set_complete(const lr_view_set *set, lr_view_set *complete, const lr_log *log)
{
    *complete = *set;
    complete->azimuths = set->azimuths == 0 ? usual_azimuths : set->azimuths;
    complete->tilts = set->tilts == 0 ? usual_tilts : set->tilts;
    complete->acceptance_deg = set->acceptance_deg == 0 ? usual_acceptance_deg : set->acceptance_deg;
    if (complete->azimuths < 1 || complete->tilts < 1 || (int64_t)complete->azimuths * complete->tilts > most_views) {
        return lr_error(log, LR_USAGE,
                        "%d x %d views: at least one azimuth and one tilt are needed, and at most "
                        "%lld views",
                        complete->azimuths, complete->tilts, (long long)most_views);
    }
    if (!(complete->acceptance_deg > 0 && complete->acceptance_deg < 90)) {
        return lr_error(log, LR_USAGE, "an axial acceptance of %g degrees: it must be above 0 and below 90",
                        complete->acceptance_deg);
    }
    return LR_OK;
}

int lr_view_set_count(const lr_view_set *set)
{
    return set->azimuths * set->tilts;
}

lr_view lr_view_set_at(const lr_view_set *set, int index)
{
    const int azimuth = index % set->azimuths, tilt = index / set->azimuths;
    return (lr_view){180.0 * azimuth / set->azimuths, set->acceptance_deg * ((2.0 * tilt + 1.0) / set->tilts - 1.0)};
}

/* Lines on a border belong to the interval above the border, whatever rounding does. Rings of crystals have many lines
 * on borders. */
int lr_view_set_find(const lr_view_set *set, const double direction[3])
{
    const double across = hypot(direction[0], direction[1]);
    double tilt_deg = atan2(direction[2], across) / LR_DEGREE;
    double turns = atan2(direction[1], direction[0]) / LR_DEGREE / 180.0 * set->azimuths;
    if (fabs(tilt_deg) > lr_view_set_tilt_border_deg(set, set->tilts)) return -1;
    /* An interval's azimuth is its middle. If the azimuth is out of range, the line is taken in the opposite
     * direction. */
    int azimuth = (int)floor(turns + 0.5 + LR_DIRECT_TIE);
    while (azimuth < 0 || azimuth >= set->azimuths) {
        azimuth += azimuth < 0 ? set->azimuths : -set->azimuths;
        tilt_deg = -tilt_deg;
    }
    const double share = (tilt_deg / set->acceptance_deg + 1.0) / 2.0 * set->tilts;
    const int tilt = (int)fmin(fmax(floor(share + LR_DIRECT_TIE), 0), set->tilts - 1);
    return tilt * set->azimuths + azimuth;
}

double lr_view_set_azimuth_border_deg(const lr_view_set *set, int azimuth)
{
    return 180.0 * (azimuth - 0.5 - LR_DIRECT_TIE) / set->azimuths;
}

double lr_view_set_tilt_border_deg(const lr_view_set *set, int tilt)
{
    const double tie = tilt < set->tilts ? -LR_DIRECT_TIE : LR_DIRECT_TIE;
    return set->acceptance_deg * (2.0 * (tilt + tie) / set->tilts - 1.0);
}

void lr_view_set_order(const lr_view_set *set, int *order)
{
    int bits = 1; /* least power of two that is not below the number of azimuths */
    while (bits < set->azimuths) bits *= 2;
    for (int round = 0; round < set->tilts; round++) {
        /* Azimuths in the order of their bit-reversed numbers. */
        for (int counter = 0, k = 0; counter < bits; counter++) {
            int azimuth = 0;
            for (int bit = 1, mirror = bits / 2; mirror > 0; bit *= 2, mirror /= 2)
                azimuth += (counter & bit) ? mirror : 0;
            if (azimuth < set->azimuths) *order++ = (round + k++) % set->tilts * set->azimuths + azimuth;
        }
    }
}

/* --- histo-images --- */

lr_histo_images *lr_histo_images_create(const lr_grid *grid, const lr_view *views, int num_views, const lr_log *log)
{
    if (lr_grid_check(grid, log) != LR_OK) return NULL;
    lr_histo_images *histo = lr_alloc(1, sizeof(*histo), "histo-images", log);
    if (histo == NULL) return NULL;
    histo->grid = *grid;
    histo->num_views = num_views;
    histo->views = lr_alloc(num_views, sizeof(*histo->views), "histo-images", log);
    histo->values = lr_alloc(num_views * lr_grid_num_voxels(grid), sizeof(*histo->values), "histo-images", log);
    if (histo->views == NULL || histo->values == NULL) {
        lr_histo_images_destroy(histo);
        return NULL;
    }
    memcpy(histo->views, views, (size_t)num_views * sizeof(*views));
    return histo;
}

void lr_histo_images_destroy(lr_histo_images *histo)
{
    if (histo != NULL) {
        free(histo->values);
        free(histo->views);
        free(histo);
    }
}
