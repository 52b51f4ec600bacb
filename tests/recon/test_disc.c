/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The reconstruction of a disc without noise is flat after some 40 updates, for any number of subsets. If the
 * deviation were larger than with one subset, subsets would see the disc unevenly. */
#include "cases.h"

#include <lr/recon.h>

enum { SIDE = 25, UPDATES = 40, MOST_MODULES = 48 };
#define VOXEL_MM 3.0
#define DISC 1000.0f

struct deviation {
    double rms, worst; /* largest relative deviation from the disc */
};

struct made {
    const char *name;
    lr_module modules[MOST_MODULES];
    int num_modules;
    double disc_mm; /* radius */
    bool stores;    /* the matrix is kept */
    int number;     /* of this scanner among all */
};

/* Modules around the axis, rotated about their own u by lean_deg, alternately to either side. */
static void make_ring(struct made *made, const int size[2], double radius_mm, double lean_deg)
{
    const double lean = lean_deg / 57.29577951308232;
    made->num_modules = size[0];
    made->disc_mm = 30.0;
    for (int m = 0; m < size[0]; m++) {
        const double at = 2.0 * 3.14159265358979323846 * m / size[0], tilt = m % 2 ? -lean : lean;
        made->modules[m] =
            filled(lr_module, .centre_mm = {radius_mm * cos(at), radius_mm * sin(at), 0.0},
                   .u = {-sin(at), cos(at), 0.0}, .v = {sin(tilt) * cos(at), sin(tilt) * sin(at), cos(tilt)},
                   .crystals = {size[1], 2}, .pitch_mm = {4.0, 8.0}, .face_mm = {4.0, 8.0}, .depth_mm = 10.0);
    }
}

static double voxel_radius(int v)
{
    return VOXEL_MM * hypot(v % SIDE - SIDE / 2, v / SIDE - SIDE / 2);
}

static struct deviation reconstruct(const struct made *made, lr_operator *op, const lr_lor_data *data, int subsets)
{
    static float image[SIDE * SIDE];
    struct test_log log = TEST_LOG(log);
    const int iterations = (UPDATES + subsets / 2) / subsets;
    const lr_vector counts = lr_lor_data_vector(data);
    const lr_osem_params params =
        filled(lr_osem_params, .op = op, .data = &counts, .data_lors = data->index, .subsets = subsets,
               .iterations = iterations > 2 ? iterations : 2, .log = &log.log);
    struct deviation found = {0};
    int count = 0;
    assert_ok(array_osem(&params, image));
    assert_int_equal(log.num_warnings, 0);
    for (int v = 0; v < SIDE * SIDE; v++) {
        if (voxel_radius(v) < 0.8 * made->disc_mm) {
            const double away = fabs(image[v] / DISC - 1.0);
            found.rms += away * away;
            found.worst = fmax(found.worst, away);
            count++;
        }
    }
    found.rms = sqrt(found.rms / count);
    return found;
}

static void check(const struct made *made)
{
    static const int counts[] = {14, 4, 10, 13, 28};
    static float disc[SIDE * SIDE];
    lr_lors *lors = lors_from(lr_scanner_create(
        &(lr_scanner_params){.name = made->name, .modules = made->modules, .num_modules = made->num_modules}));
    const lr_grid grid = {.size = {SIDE, SIDE, 1},
                          .voxel_mm = {VOXEL_MM, VOXEL_MM, 8.0},
                          .origin_mm = {-VOXEL_MM * (SIDE / 2), -VOXEL_MM * (SIDE / 2), 0.0}};
    const lr_operator_params params =
        filled(lr_operator_params, .lors = lors, .grid = &grid, .backend = test_backend, .mode = LR_MODE_AUTO,
               .store = made->stores ? LR_STORE_YES : LR_STORE_NO, .threads = 1);
    lr_operator *op = keep(lr_operator_create(&params));
    lr_lor_data *data = keep(lr_lor_data_create(lors, NULL));
    for (int v = 0; v < SIDE * SIDE; v++) disc[v] = voxel_radius(v) < made->disc_mm ? DISC : 0.0f;
    assert_ok(array_forward(op, disc, data->values));
    const struct deviation one = reconstruct(made, op, data, 1);
    const int num_counts = !test_backend_is("native") ? 1 : made->stores ? 5 : test_is_full() ? 2 : 1;
    for (int k = 0; k < num_counts; k++) {
        /* All scanners have the first number of subsets and, except with LORASTER_FULL, one of the others. */
        if (k > 0 && k != 1 + made->number % 4 && !test_is_full()) continue;
        const struct deviation found = reconstruct(made, op, data, counts[k]);
        const double most = counts[k] <= 14 ? 1.5 : 3.0;
        print_message("%s, %d subsets: rms %.2f %%, worst %.2f %%; with one %.2f and %.2f\n", made->name, counts[k],
                      100 * found.rms, 100 * found.worst, 100 * one.rms, 100 * one.worst);
        if (!(found.rms <= most * one.rms && found.worst <= most * one.worst))
            fail_msg("%s: %d subsets see the disc unevenly", made->name, counts[k]);
    }
}

static void test_a_disc_is_flat(void **state)
{
    static const struct {
        const char *name;
        int size[2];
        double radius_mm;
    } rings[] = {{"4 modules", {4, 16}, 40.0},       {"6 modules", {6, 12}, 44.0},       {"8 modules", {8, 12}, 60.0},
                 {"12 modules", {12, 9}, 70.0},      {"16 modules", {16, 6}, 70.0},      {"24 modules", {24, 5}, 78.0},
                 {"32 modules of 3", {32, 3}, 64.0}, {"32 modules of 4", {32, 4}, 84.0}, {"48 modules", {48, 3}, 96.0}};
    struct made made = {.stores = true};
    const bool is_native = test_backend_is("native");
    for (int k = 0; (is_native || test_is_full()) && k < 9; k++) {
        made.name = rings[k].name;
        made.number = k;
        make_ring(&made, rings[k].size, rings[k].radius_mm, 0.0);
        check(&made);
    }
    if (!is_native) { /* native projects by columns along one axis */
        made.name = "12 modules that lean";
        make_ring(&made, rings[2].size, rings[2].radius_mm, 8.0);
        check(&made);
    }
    made.name = "two panels";
    made.num_modules = 2;
    made.disc_mm = 21.0;
    for (int m = 0; m < 2; m++) { /* u of the second module has the opposite direction around the axis */
        made.modules[m] =
            filled(lr_module, .centre_mm = {0.0, m ? -60.0 : 60.0, 0.0}, .u = {1.0, 0.0, 0.0}, .v = {0.0, 0.0, 1.0},
                   .crystals = {30, 2}, .pitch_mm = {4.0, 8.0}, .face_mm = {4.0, 8.0}, .depth_mm = 10.0);
    }
    check(&made);
}

/* Elements are computed again in each update; if the backend can separate the LORs of a pair, only some of them are
   used. */
static void test_so_it_is_without_a_matrix(void **state)
{
    if (test_backend_is("raster") && !test_is_full()) skip(); /* takes minutes in software */
    struct made made = {.name = "8 modules, no matrix"};
    make_ring(&made, (const int[2]){8, 12}, 60.0, 0.0);
    check(&made);
}

backend_main("native", CASE(test_a_disc_is_flat), CASE(test_so_it_is_without_a_matrix))
