/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/castor_order.h"

#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>

struct place {
    int crystal, ring, position;
    double across_mm;
};

static int compare(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    if (left->ring != right->ring) {
        return left->ring < right->ring ? -1 : 1;
    }
    if (left->position != right->position) {
        return left->position < right->position ? -1 : 1;
    }
    if (left->across_mm != right->across_mm) {
        return left->across_mm < right->across_mm ? -1 : 1;
    }
    return left->crystal < right->crystal ? -1 : left->crystal > right->crystal;
}

static void find_places(const lr_scanner *scanner, struct place *places)
{
    int crystal = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        for (int q = 0; q < module->crystals[1]; q++) {
            for (int p = 0; p < module->crystals[0]; p++, crystal++) {
                double centre_mm[3];
                lr_module_crystal_centre(module, p, q, centre_mm);
                places[crystal] = (struct place){crystal, module->first_crystal_ring + q,
                                                 module->position, vec_dot(module->u, centre_mm)};
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
    if (scanner->num_positions > 0) {
        qsort(places, (size_t)count, sizeof(*places), compare);
    }
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
