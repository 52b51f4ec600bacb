/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/castor_order.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

static const double ring_gap_mm = 0.01;
static const double pi = 3.14159265358979323846;

struct place {
    int crystal, ring;
    int64_t azimuth; /* in 1e-6 degrees, 0 .. 360e6 - 1 */
    int64_t radius;  /* in 0.01 mm */
    double z_mm;
};

static int compare_z(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    if (left->z_mm != right->z_mm) {
        return left->z_mm < right->z_mm ? -1 : 1;
    }
    return left->crystal < right->crystal ? -1 : left->crystal > right->crystal;
}

static int compare_places(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    if (left->ring != right->ring) {
        return left->ring < right->ring ? -1 : 1;
    }
    if (left->azimuth != right->azimuth) {
        return left->azimuth < right->azimuth ? -1 : 1;
    }
    if (left->radius != right->radius) {
        return left->radius < right->radius ? -1 : 1;
    }
    return left->crystal < right->crystal ? -1 : left->crystal > right->crystal;
}

static struct place place_of(int crystal, const double centre_mm[3])
{
    static const int64_t turn = 360000000;
    const double angle = atan2(centre_mm[1], centre_mm[0]) / (2 * pi);
    const int64_t steps = (int64_t)llround(angle * (double)turn);
    return (struct place){
        .crystal = crystal,
        .azimuth = (steps + turn) % turn,
        .z_mm = centre_mm[2],
        .radius = (int64_t)llround(hypot(centre_mm[0], centre_mm[1]) / ring_gap_mm),
    };
}

static void find_places(const lr_scanner *scanner, struct place *places)
{
    int crystal = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        for (int q = 0; q < module->crystals[1]; q++) {
            for (int p = 0; p < module->crystals[0]; p++) {
                double centre_mm[3];
                lr_module_crystal_centre(module, p, q, centre_mm);
                places[crystal] = place_of(crystal, centre_mm);
                crystal++;
            }
        }
    }
}

lr_status lr_castor_order(const lr_scanner *scanner, int *order, const lr_log *log)
{
    const int count = scanner->num_crystals;
    struct place *places = lr_alloc(count, sizeof(*places), "places of crystals", log);
    if (places == NULL) {
        return LR_FAILED;
    }
    find_places(scanner, places);
    qsort(places, (size_t)count, sizeof(*places), compare_z);
    for (int k = 1; k < count; k++) {
        places[k].ring =
            places[k - 1].ring + (places[k].z_mm - places[k - 1].z_mm > ring_gap_mm ? 1 : 0);
    }
    qsort(places, (size_t)count, sizeof(*places), compare_places);
    for (int k = 0; k < count; k++) {
        order[k] = places[k].crystal;
    }
    free(places);
    return LR_OK;
}

void lr_castor_place(const int *order, int num_crystals, int *place)
{
    for (int k = 0; k < num_crystals; k++) {
        place[order[k]] = k;
    }
}
