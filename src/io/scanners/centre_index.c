/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/scanners/centre_index.h"

#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>

static double distance(const double a[3], const double b[3])
{
    double difference[3];
    vec_sub(a, b, difference);
    return vec_length(difference);
}

static void list_centres(struct lr_centre_index *index, const lr_scanner *scanner)
{
    int crystal = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        for (int q = 0; q < module->crystals[1]; q++) {
            for (int p = 0; p < module->crystals[0]; p++) {
                lr_module_crystal_centre(module, p, q, index->centres_mm[crystal]);
                crystal++;
            }
        }
    }
}

lr_status lr_centre_index_init(struct lr_centre_index *index, const lr_scanner *scanner, const lr_log *log)
{
    *index = (struct lr_centre_index){0};
    index->centres_mm = lr_alloc(scanner->num_crystals, sizeof(*index->centres_mm), "crystal centres", log);
    if (index->centres_mm == NULL) return LR_FAILED;
    list_centres(index, scanner);
    const struct lr_points points = {index->centres_mm[0], sizeof(index->centres_mm[0]), scanner->num_crystals};
    const lr_status status = lr_point_hash_init(&index->hash, &points, 1.0, log);
    if (status != LR_OK) lr_centre_index_finish(index);
    return status;
}

void lr_centre_index_finish(struct lr_centre_index *index)
{
    free(index->centres_mm);
    lr_point_hash_finish(&index->hash);
    *index = (struct lr_centre_index){0};
}

struct nearest {
    int crystal; /* -1 = none */
    double distance2;
};

static void consider(void *user, int crystal, double distance2)
{
    struct nearest *nearest = user;
    if (nearest->crystal < 0 || distance2 < nearest->distance2 ||
        (distance2 == nearest->distance2 && crystal < nearest->crystal))
        *nearest = (struct nearest){crystal, distance2};
}

int lr_centre_index_find(const struct lr_centre_index *index, const double position_mm[3], double reach_mm)
{
    struct nearest nearest = {-1, 0.0};
    lr_point_hash_visit(&index->hash, position_mm, reach_mm, &(struct lr_point_visit){consider, &nearest});
    return nearest.crystal;
}

double lr_centre_index_distance(const struct lr_centre_index *index, const double position_mm[3])
{
    double least = INFINITY;
    for (int k = 0; k < index->hash.points.count; k++) least = fmin(least, distance(index->centres_mm[k], position_mm));
    return least;
}
