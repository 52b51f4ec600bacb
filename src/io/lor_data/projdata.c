/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/lor_data/projdata.h"

#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

/* An angle brought to -180 .. 180. */
static double wrapped(double angle_deg)
{
    return angle_deg - 360.0 * floor((angle_deg + 180.0) / 360.0);
}

/* Lets the module whose first place is nearest to 90 degrees, STIR's top, begin the ring. */
static lr_status turn_to_top(struct lr_projdata *projdata, const lr_log *log)
{
    struct lr_sinogram_rings *rings = &projdata->rings;
    const double module_deg = 360.0 / rings->modules;
    const int modules = (int)lround(wrapped(90.0 - rings->first_angle_deg) / module_deg);
    LR_TRY(lr_sinogram_rings_turn(rings, modules * (rings->around / rings->modules), log));
    projdata->view_offset_deg = wrapped(rings->first_angle_deg - 90.0);
    if (fabs(projdata->view_offset_deg) < 1e-9) {
        projdata->view_offset_deg = 0.0;
    }
    return LR_OK;
}

/* The largest abs(t) of a LOR in coincidence; all rings are alike. */
static int largest_t(const struct lr_projdata *projdata, const lr_lors *lors)
{
    const struct lr_sinogram_rings *rings = &projdata->rings;
    int largest = 0;
    for (int a = 0; a < rings->around; a++) {
        for (int b = 0; b < a; b++) {
            const int32_t first = rings->crystals[a], second = rings->crystals[b];
            const int64_t lor =
                first >= 0 && second >= 0 ? lr_lors_number(lors, first, second) : -1;
            if (lor >= 0 && lr_lors_in_coincidence(lors, lor)) {
                struct lr_sinogram_bin bin;
                (void)lr_sinogram_bin_of(rings->around, (int[2]){a, b}, &bin);
                largest = abs(bin.t) > largest ? abs(bin.t) : largest;
            }
        }
    }
    return largest;
}

/* Crystal ring of the scanner in each ring, -1 for virtual ones. */
static int own_ring(const struct lr_sinogram_rings *rings, const lr_scanner *scanner, int ring)
{
    for (int place = 0; place < rings->around; place++) {
        const int32_t crystal = rings->crystals[(int64_t)ring * rings->around + place];
        if (crystal >= 0) {
            const int m = lr_scanner_module_of(scanner, crystal);
            const lr_module *module = &scanner->modules[m];
            return module->first_crystal_ring +
                   (crystal - scanner->first_crystal[m]) / module->crystals[0];
        }
    }
    return -1;
}

static int largest_difference(const struct lr_projdata *projdata, const lr_scanner *scanner)
{
    const struct lr_sinogram_rings *rings = &projdata->rings;
    if (!scanner->coincidence.limits_ring_difference) {
        return rings->rings - 1;
    }
    int largest = 0;
    for (int a = 0; a < rings->rings; a++) {
        const int own = own_ring(rings, scanner, a);
        for (int b = a + 1; b < rings->rings && own >= 0; b++) {
            const int other = own_ring(rings, scanner, b);
            if (other >= 0 && abs(own - other) <= scanner->coincidence.max_ring_difference) {
                largest = b - a > largest ? b - a : largest;
            }
        }
    }
    return largest;
}

void lr_projdata_reach(const struct lr_projdata *projdata, const lr_lors *lors, int reach[2])
{
    reach[0] = largest_t(projdata, lors);
    reach[1] = largest_difference(projdata, lors->scanner);
}

static lr_status make_bins(struct lr_projdata *projdata, const lr_lors *lors, const lr_log *log)
{
    LR_TRY(turn_to_top(projdata, log));
    int reach[2];
    lr_projdata_reach(projdata, lors, reach);
    const int largest = reach[0], difference = reach[1];
    projdata->views = projdata->rings.around / 2;
    projdata->mashing = 1;
    projdata->first_t = -largest;
    projdata->num_t = 2 * largest + 1;
    projdata->num_segments = 2 * difference + 1;
    projdata->segments =
        lr_alloc(projdata->num_segments, sizeof(*projdata->segments), "segments", log);
    if (projdata->segments == NULL) {
        return LR_FAILED;
    }
    for (int k = 0; k < projdata->num_segments; k++) {
        const int number = k - difference;
        projdata->segments[k] = (struct lr_projdata_segment){
            number, number, projdata->rings.rings - abs(number), number};
    }
    return LR_OK;
}

lr_status lr_projdata_create(struct lr_projdata *projdata, const lr_lors *lors, const lr_log *log)
{
    const lr_scanner *scanner = lors->scanner;
    *projdata = (struct lr_projdata){0};
    struct lr_sinogram_gaps gaps;
    LR_TRY(lr_sinogram_gaps_of(scanner, &gaps, log));
    LR_TRY(lr_sinogram_rings_create(&projdata->rings, scanner, &gaps, scanner->name, log));
    const lr_status status = make_bins(projdata, lors, log);
    if (status != LR_OK) {
        lr_projdata_finish(projdata);
    }
    return status;
}

void lr_projdata_finish(struct lr_projdata *projdata)
{
    lr_sinogram_rings_finish(&projdata->rings);
    free(projdata->segments);
    *projdata = (struct lr_projdata){0};
}

int64_t lr_projdata_num_bins(const struct lr_projdata *projdata)
{
    int64_t planes = 0;
    for (int k = 0; k < projdata->num_segments; k++) {
        planes += projdata->segments[k].num_axial;
    }
    return planes * projdata->views * projdata->num_t;
}

/* STIR's ProjDataInfoCylindrical: axial positions are half a ring apart where ring differences are
 * combined and a whole one else, and lie about the middle of the scanner. */
int lr_projdata_ring_pairs(const struct lr_projdata *projdata,
                           const struct lr_projdata_segment *segment, int axial, int (*pairs)[2])
{
    const int rings = projdata->rings.rings;
    const int step = segment->least == segment->most ? 2 : 1;
    const int sum = rings - 1 + (step * (2 * axial - (segment->num_axial - 1))) / 2;
    int count = 0;
    for (int difference = segment->least; difference <= segment->most; difference++) {
        const int first = (sum - difference) / 2, second = sum - first;
        if ((sum - difference) % 2 == 0 && first >= 0 && first < rings && second >= 0 &&
            second < rings && count < rings) {
            pairs[count][0] = first;
            pairs[count++][1] = second;
        }
    }
    return count;
}

int32_t (*lr_projdata_places(const struct lr_projdata *projdata, const lr_scanner *scanner,
                             const lr_log *log))[2]
{
    const struct lr_sinogram_rings *rings = &projdata->rings;
    int32_t(*places)[2] = lr_alloc(scanner->num_crystals, sizeof(*places), "crystal places", log);
    for (int64_t k = 0; places != NULL && k < (int64_t)rings->rings * rings->around; k++) {
        if (rings->crystals[k] >= 0) {
            places[rings->crystals[k]][0] = (int32_t)(k % rings->around);
            places[rings->crystals[k]][1] = (int32_t)(k / rings->around);
        }
    }
    return places;
}

bool lr_projdata_bin_of(const struct lr_projdata *projdata, const int32_t (*places)[2],
                        const int32_t crystals[2], struct lr_projdata_bin *bin)
{
    const int32_t *a = places[crystals[0]], *b = places[crystals[1]];
    struct lr_sinogram_bin found;
    if (a[0] == b[0]) {
        return false;
    }
    const bool swapped = lr_sinogram_bin_of(projdata->rings.around, (int[2]){a[0], b[0]}, &found);
    const int first = swapped ? b[1] : a[1], second = swapped ? a[1] : b[1];
    *bin = (struct lr_projdata_bin){second - first, first < second ? first : second, found.view,
                                    found.t};
    return abs(bin->segment) <= projdata->num_segments / 2 && found.t >= projdata->first_t &&
           found.t < projdata->first_t + projdata->num_t;
}
