/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/lors/angles.h"

#include "base/mem.h"
#include "base/vec.h"
#include "model/lors/place.h"

#include <stdlib.h>

/* Azimuths that differ by less are the same, radian. */
#define SAME_AZIMUTH 1e-6
#define TWO_PI 6.28318530717958647692

struct azimuth {
    int64_t angle; /* of the module's centre, in SAME_AZIMUTH */
    int module;
};

static int by_angle(const void *a, const void *b)
{
    const struct azimuth *one = a, *other = b;
    const int order = (one->angle > other->angle) - (one->angle < other->angle);
    return order != 0 ? order : one->module - other->module;
}

static int num_around(const lr_scanner *scanner, const struct lr_angles *angles, int module)
{
    return scanner->modules[module].crystals[angles->modules[module].is_v];
}

/* Which way a module's crystals follow each other around the axis. */
static struct lr_module_places find_step(const lr_module *module)
{
    const double around[3] = {module->normal[1], -module->normal[0], 0.0};
    const double u = vec_dot(module->u, around), v = vec_dot(module->v, around);
    const bool is_v = fabs(v) > fabs(u);
    return (struct lr_module_places){.is_v = is_v, .step = (is_v ? v : u) < 0.0 ? -1 : 1};
}

/* Modules of one azimuth share their places; those of the next one follow. */
static void number(const lr_scanner *scanner, const struct azimuth *sorted, struct lr_angles *angles)
{
    for (int begin = 0, end; begin < scanner->num_modules; begin = end) {
        int most = 0;
        for (end = begin; end < scanner->num_modules && sorted[end].angle == sorted[begin].angle; end++) {
            const int num = num_around(scanner, angles, sorted[end].module);
            most = num > most ? num : most;
        }
        for (int k = begin; k < end; k++) {
            const int num = num_around(scanner, angles, sorted[k].module);
            struct lr_module_places *places = &angles->modules[sorted[k].module];
            places->first = angles->count + (places->step < 0 ? num - 1 : 0);
        }
        angles->count += most;
    }
}

struct lr_angles *lr_angles_create(const lr_scanner *scanner, const lr_log *log)
{
    static const char *const what = "places around the axis";
    struct lr_angles *angles = lr_alloc(1, sizeof(*angles), what, log);
    struct azimuth *sorted = lr_alloc(scanner->num_modules, sizeof(*sorted), what, log);
    if (angles != NULL) angles->modules = lr_alloc(scanner->num_modules, sizeof(*angles->modules), what, log);
    if (angles == NULL || sorted == NULL || angles->modules == NULL) {
        free(sorted);
        lr_angles_destroy(angles);
        return NULL;
    }
    const int64_t turn = llround(TWO_PI / SAME_AZIMUTH);
    for (int m = 0; m < scanner->num_modules; m++) {
        const double *centre = scanner->modules[m].centre_mm;
        const double azimuth = fmod(atan2(centre[1], centre[0]) + TWO_PI, TWO_PI);
        sorted[m] = (struct azimuth){llround(azimuth / SAME_AZIMUTH) % turn, m};
        angles->modules[m] = find_step(&scanner->modules[m]);
    }
    qsort(sorted, (size_t)scanner->num_modules, sizeof(*sorted), by_angle);
    number(scanner, sorted, angles);
    free(sorted);
    return angles;
}

void lr_angles_destroy(struct lr_angles *angles)
{
    if (angles != NULL) {
        free(angles->modules);
        free(angles);
    }
}

int lr_lors_num_angles(const lr_lors *lors)
{
    return lors->angles != NULL ? lors->angles->count : 0;
}

int lr_lors_angle(const lr_lors *lors, int64_t lor)
{
    struct lr_place place = {.lors = lors};
    if (lors->angles == NULL || lor < 0 || lor >= lors->count) return -1;
    lr_place_seek(&place, lor);
    const int32_t *pair = lors->pairs[place.pair];
    const struct lr_module_places *modules = lors->angles->modules;
    return (lr_place_of_crystal(&modules[pair[0]], place.p, place.q) +
            lr_place_of_crystal(&modules[pair[1]], place.b % place.nu_j, place.b / place.nu_j)) %
           lors->angles->count;
}
