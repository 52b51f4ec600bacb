/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Small scanners that the tests of files share, and comparisons of scanners. */
#pragma once

#include "io/files.h"
#include "io/files/yaml.h"
#include "io/scanners/scanner_formats.h"

static const double pi = 3.14159265358979323846;

#define scanner_of(...) keep(scanner_from(__VA_ARGS__))

static inline lr_scanner *small_ring(double radius_mm, double field_of_view_mm)
{
    lr_scanner *scanner = scanner_of(
        "name: small ring\nring: {radius_mm: %.17g, modules: 6}\nmodule: {crystals: [3, 2], pitch_mm: [4, 5], face_mm: "
        "[3.5, 4.5], depth_mm: 10}\ncoincidence: {min_module_difference: 2}\ncrystal_mu_per_mm: 0.083\n"
        "source: made up\n",
        radius_mm);
    scanner->coincidence.field_of_view_mm = field_of_view_mm;
    return scanner;
}

static inline lr_scanner *octagon(void)
{
    return scanner_of("name: octagon\nring: {radius_mm: 60, modules: 8}\nmodule: {crystals: [3, 4], pitch_mm: [4, 5], "
                      "face_mm: [4, 5], depth_mm: 10}\ncoincidence: {min_module_difference: 3}\n");
}

/* Two panels of 40 x 20 crystals, 200 mm apart: 640,000 LORs. */
static inline lr_scanner *two_panels(void)
{
    return scanner_of("name: panels\nring: {radius_mm: 100, modules: 2}\n"
                      "module: {crystals: [40, 20], pitch_mm: [4, 4], face_mm: [4, 4], depth_mm: 10}\n");
}

static inline lr_lors *lors_of(const lr_scanner *scanner)
{
    return keep(lr_lors_create(scanner, NULL));
}

/* files_begin, and then the LORs of a scanner. */
static inline int files_begin_with(void **state, lr_scanner *scanner)
{
    files_begin(state);
    files.lors = lors_of(scanner);
    return 0;
}

static inline double distance_mm(const double a[3], const double b[3])
{
    return hypot(hypot(a[0] - b[0], a[1] - b[1]), a[2] - b[2]);
}

/* Centres of a LOR's two crystals. */
static inline void find_ends(const lr_lors *lors, int64_t lor, double ends_mm[2][3])
{
    int32_t crystals[2];
    lr_lors_crystals(lors, lor, crystals);
    for (int e = 0; e < 2; e++) lr_scanner_crystal_centre(lors->scanner, crystals[e], ends_mm[e]);
}

/* The crystal nearest to a point, and its distance. */
static inline int nearest_crystal(const lr_scanner *scanner, const double point_mm[3], double *off_mm)
{
    int nearest = -1;
    *off_mm = INFINITY;
    for (int c = 0; c < scanner->num_crystals; c++) {
        double centre_mm[3];
        lr_scanner_crystal_centre(scanner, c, centre_mm);
        const double off = distance_mm(centre_mm, point_mm);
        nearest = off < *off_mm ? c : nearest;
        *off_mm = fmin(*off_mm, off);
    }
    return nearest;
}

/* Lengths and components of vectors agree to `most` (mm for lengths), and all else is equal. */
static inline void assert_same_modules(const lr_scanner *a, const lr_scanner *b, double most)
{
    assert_pairs(0, {a->num_modules, b->num_modules}, {a->num_positions, b->num_positions});
    for (int m = 0; m < a->num_modules; m++) {
        const lr_module *x = &a->modules[m], *y = &b->modules[m];
        if (!(distance_mm(x->centre_mm, y->centre_mm) <= most)) {
            fail_msg("module %d: (%g, %g, %g) against (%g, %g, %g)", m, x->centre_mm[0], x->centre_mm[1],
                     x->centre_mm[2], y->centre_mm[0], y->centre_mm[1], y->centre_mm[2]);
        }
        assert_true(distance_mm(x->u, y->u) <= most && distance_mm(x->v, y->v) <= most);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(x->crystals[k], y->crystals[k]);
            assert_all(fabs(x->pitch_mm[k] - y->pitch_mm[k]) <= most, fabs(x->face_mm[k] - y->face_mm[k]) <= most);
        }
        assert_true(fabs(x->depth_mm - y->depth_mm) <= most && fabs(x->mu_per_mm - y->mu_per_mm) <= most);
        const int is[5] = {x->position, x->ring, x->first_crystal_ring, x->layer, x->block};
        const int expected[5] = {y->position, y->ring, y->first_crystal_ring, y->layer, y->block};
        for (int k = 0; k < 5; k++) assert_int_equal(is[k], expected[k]);
    }
}

/* Writes a scanner and reads it again. `lost` names what the format cannot store, in the only warning; NULL = no
 * warning. The file contains `text`, unless it is NULL. */
static inline lr_scanner *there_and_back(const lr_scanner *scanner, const char *name, const char *lost,
                                         const char *text)
{
    struct test_log log = TEST_LOG(log);
    if (lr_scanner_write(name, scanner, &log.log) != LR_OK) fail_msg("%s", log.error);
    if (log.num_warnings != (lost != NULL)) fail_msg("%s: %d warnings, '%s'", name, log.num_warnings, log.warning);
    if (lost != NULL) assert_warning(&log, lost);
    char *written = (char *)bytes_read(name, NULL);
    if (text != NULL && strstr(written, text) == NULL) fail_msg("no '%s' in\n%s", text, written);
    lr_scanner *back = keep(lr_scanner_read(name, &log.log));
    if (log.num_warnings > (lost != NULL)) fail_msg("%s: %s", name, log.warning);
    return back;
}
