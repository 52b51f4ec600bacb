/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Layers of crystals with penetration: each has its share by path length, and together they stop
 * what a block that is not cut stops. Photons: tests/analytic/test_penetration_photons.c. Argument:
 * the backend. */
#include "fixtures.h"
#include "layered.h"

static const char *backend;

/* Relative: of double, and of single precision with tens of terms. */
static double tolerance(void)
{
    return strcmp(backend, "cpu") == 0 ? 1e-11 : 1e-5;
}

static lr_module level_module(double y_mm, const int crystals[2], double pitch_mm, double depth_mm)
{
    return (lr_module){.centre_mm = {0, y_mm, 0},
                       .u = {1, 0, 0},
                       .v = {0, 0, 1},
                       .crystals = {crystals[0], crystals[1]},
                       .pitch_mm = {pitch_mm, pitch_mm},
                       .face_mm = {0.95 * pitch_mm, 0.95 * pitch_mm},
                       .depth_mm = depth_mm};
}

/* Rows of points as a dense matrix. */
struct rows {
    lr_lors *lors;
    double *values; /* [num_points][lors->count] */
};

static lr_status take(void *user, const lr_row *row)
{
    struct rows *rows = user;
    for (int64_t k = 0; k < row->count; k++) {
        rows->values[row->row * rows->lors->count + row->lor[k]] = row->probability[k];
    }
    return LR_OK;
}

static struct rows rows_of(const lr_scanner *scanner, int rays, const double (*points_mm)[3],
                           int num_points)
{
    struct rows rows;
    struct test_log log;
    test_log_init(&log);
    rows.lors = lr_lors_create(scanner, &log.log);
    assert_non_null(rows.lors);
    const lr_grid grid = lr_grid_centred((const int[3]){1, 1, 1}, (const double[3]){1, 1, 1});
    lr_operator *op = fixture_operator(&(lr_operator_params){.lors = rows.lors,
                                                             .grid = &grid,
                                                             .backend = backend,
                                                             .mode = LR_MODE_SAMPLED,
                                                             .rays = rays,
                                                             .samples = {1, 1, 1},
                                                             .penetration = true,
                                                             .threads = 2,
                                                             .log = &log.log});
    rows.values = fixture_doubles(num_points * rows.lors->count);
    const lr_row_sink sink = {take, &rows};
    assert_int_equal(lr_operator_point_rows(op, points_mm, num_points, &sink), LR_OK);
    lr_operator_destroy(op);
    return rows;
}

static void free_rows(struct rows *rows)
{
    lr_lors_destroy(rows->lors);
    free(rows->values);
}

static lr_scanner *scanner_of(const lr_module *modules, int num)
{
    struct test_log log;
    test_log_init(&log);
    return layered_checked(
        lr_scanner_create(&(lr_scanner_params){.modules = modules,
                                               .num_modules = num,
                                               .crystal_mu_per_mm = LAYERED_MU_PER_MM,
                                               .log = &log.log}),
        &log);
}

/* One line: a primary of one crystal of 1 mm at 100 mm, seen from the origin, and three layers that
 * the line crosses under an angle. */
static void shares_of_one_line(void **state)
{
    (void)state;
    static const double depths_mm[3] = {4, 3, 6}, origin[1][3] = {{0, 0, 0}};
    const double mu = LAYERED_MU_PER_MM;
    for (int deg = 0; deg <= 30; deg += 15) {
        const double c = cos(deg * acos(-1.0) / 180), s = sin(deg * acos(-1.0) / 180);
        lr_module modules[4] = {level_module(100, (const int[2]){1, 1}, 1 / 0.95, 20)};
        double behind_mm = 0;
        for (int k = 0; k < 3; k++) {
            modules[k + 1] = level_module(0, (const int[2]){1, 1}, 40, depths_mm[k]);
            lr_module *module = &modules[k + 1];
            memcpy(module->u, (const double[3]){c, s, 0}, sizeof(module->u));
            /* Along the normal, with 1.5 mm of air between layers. */
            module->centre_mm[0] = behind_mm * s;
            module->centre_mm[1] = -50 - behind_mm * c;
            module->layer = k;
            module->block = 1;
            behind_mm += depths_mm[k] + 1.5;
        }
        lr_scanner *scanner = scanner_of(modules, 4);
        struct rows rows = rows_of(scanner, 1, origin, 1);
        assert_int_equal(rows.lors->count, 3);
        const double all = (1 - exp(-20 * mu)) / (100.0 * 100.0) / (2 * acos(-1.0));
        double left = 1, sum = 0;
        for (int k = 0; k < 3; k++) {
            const double passes = exp(-mu * depths_mm[k] / c);
            const double found = rows.values[lr_lors_number(rows.lors, 0, k + 1)];
            assert_close(found, all * left * (1 - passes), tolerance());
            left *= passes;
            sum += found;
        }
        assert_close(sum, all * (1 - exp(-mu * 13 / c)), tolerance());
        free_rows(&rows);
        lr_scanner_destroy(scanner);
    }
}

/* A block cut into layers of the same crystals, before a module that is always the farther one: line
 * by line both parts of a crystal stop what the whole one does. */
static void layers_add_up_to_the_block(void **state)
{
    (void)state;
    static const double points[3][3] = {{0.3, -1.7, 0.4}, {4.1, 2.2, -3.3}, {-6.3, 0.9, 2.1}};
    static const int near[2] = {4, 3}, far[2] = {5, 5};
    lr_module whole[2] = {level_module(60, far, 5, 15), level_module(-22, near, 4, 12)};
    lr_module cut[3] = {whole[0], whole[1], whole[1]};
    cut[1].depth_mm = 5;
    cut[2].depth_mm = 7;
    cut[2].centre_mm[1] -= 5;
    cut[2].layer = 1;
    cut[1].block = cut[2].block = 1;
    lr_scanner *scanners[2] = {scanner_of(whole, 2), scanner_of(cut, 3)};
    struct rows rows[2];
    for (int k = 0; k < 2; k++) {
        rows[k] = rows_of(scanners[k], 4, points, 3);
    }
    assert_int_equal(rows[1].lors->count, 2 * rows[0].lors->count);
    double shares[2] = {0, 0};
    for (int64_t n = 0; n < 3 * rows[0].lors->count; n++) {
        const int64_t row = n / rows[0].lors->count, lor = n % rows[0].lors->count;
        int32_t crystals[2];
        lr_lors_crystals(rows[0].lors, lor, crystals);
        double sum = 0;
        for (int layer = 0; layer < 2; layer++) {
            const int64_t part =
                lr_lors_number(rows[1].lors, crystals[0], crystals[1] + layer * near[0] * near[1]);
            const double share = rows[1].values[row * rows[1].lors->count + part];
            shares[layer] += share;
            sum += share;
        }
        if (rows[0].values[n] > 0 || sum > 0) {
            assert_close(sum, rows[0].values[n], 2 * tolerance());
        }
    }
    assert_true(shares[0] > 0.5 * shares[1] && shares[1] > 0.5 * shares[0]);
    for (int k = 0; k < 2; k++) {
        free_rows(&rows[k]);
        lr_scanner_destroy(scanners[k]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_of_one_line),
        cmocka_unit_test(layers_add_up_to_the_block),
    };
    backend = argc > 1 ? argv[1] : "cpu";
    if (!fixture_backend_is_usable(backend)) {
        return 77;
    }
    return cmocka_run_group_tests_name("layers with penetration", tests, NULL, NULL);
}
