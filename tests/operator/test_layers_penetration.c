/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Layers of crystals with penetration. Each layer stops a share of the photons that depends on the path length, and all
 * layers together stop as many as an uncut block. tests/analytic/test_penetration_photons.c has simulated photons.
 * Argument: the backend. */
#include "fixtures.h"
#include "layered.h"

/* Relative tolerance: of double precision, and of single precision with tens of terms. */
static double tolerance(void)
{
    return test_backend_is("cpu") ? 1e-11 : 1e-5;
}

static lr_module level_module(double y_mm, const int crystals[2], double pitch_mm, double depth_mm)
{
    return filled(lr_module, .centre_mm = {0, y_mm, 0}, .u = {1, 0, 0}, .v = {0, 0, 1},
                  .crystals = {crystals[0], crystals[1]}, .pitch_mm = {pitch_mm, pitch_mm},
                  .face_mm = {0.95 * pitch_mm, 0.95 * pitch_mm}, .depth_mm = depth_mm);
}

/* Rows of points as a dense matrix. */
struct rows {
    lr_lors *lors;
    double *values; /* [num_points][lors->count] */
};

/* Scanners with layers use penetration by default. */
static struct rows rows_of(const lr_scanner *scanner, int rays, const double (*points_mm)[3], int num_points)
{
    const bool is_default = scanner->modules[scanner->num_modules - 1].layer > 0;
    struct rows rows;
    rows.lors = keep(lr_lors_create(scanner, NULL));
    const lr_grid grid = lr_grid_centred((const int[3]){1, 1, 1}, (const double[3]){1, 1, 1});
    lr_operator *op = keep(lr_operator_create(&filled(lr_operator_params, .lors = rows.lors, .grid = &grid,
                                                      .backend = test_backend, .mode = LR_MODE_SAMPLED, .rays = rays,
                                                      .samples = {1, 1, 1}, .penetration = !is_default, .threads = 2)));
    rows.values = kept_point_rows(op, points_mm, num_points);
    return rows;
}

static lr_scanner *scanner_of(const lr_module *modules, int num)
{
    return keep(lr_scanner_create(
        &(lr_scanner_params){.modules = modules, .num_modules = num, .crystal_mu_per_mm = LAYERED_MU_PER_MM}));
}

/* A line from a crystal of 1 mm, at a distance of 100 mm, through the origin. On the other side it crosses three layers
 * obliquely. */
static void shares_of_one_line(void **state)
{
    static const double depths_mm[3] = {4, 3, 6}, origin[1][3] = {{0, 0, 0}};
    const double mus[3] = {LAYERED_MU_PER_MM, 0.04, 0.11}; /* the first layer has the scanner's value */
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
            module->mu_per_mm = k > 0 ? mus[k] : 0;
            module->layer = k;
            module->block = 1;
            behind_mm += depths_mm[k] + 1.5;
        }
        struct rows rows = rows_of(scanner_of(modules, 4), 1, origin, 1);
        assert_int_equal(rows.lors->count, 3);
        const double all = (1 - exp(-20 * mus[0])) / (100.0 * 100.0) / (2 * acos(-1.0));
        double left = 1, sum = 0;
        for (int k = 0; k < 3; k++) {
            const double passes = exp(-mus[k] * depths_mm[k] / c);
            const double found = rows.values[lr_lors_number(rows.lors, 0, k + 1)];
            assert_close(found, all * left * (1 - passes), tolerance());
            left *= passes;
            sum += found;
        }
        assert_close(sum, all * (1 - left), tolerance());
    }
}

/* A block is cut into layers of the same crystals; the other module is always the farther one. For each line, both
 * parts of a crystal together stop as much as the whole crystal. */
static void layers_add_up_to_the_block(void **state)
{
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
    for (int k = 0; k < 2; k++) rows[k] = rows_of(scanners[k], 4, points, 3);
    assert_int_equal(rows[1].lors->count, 2 * rows[0].lors->count);
    double shares[2] = {0, 0};
    for (int64_t n = 0; n < 3 * rows[0].lors->count; n++) {
        const int64_t row = n / rows[0].lors->count, lor = n % rows[0].lors->count;
        int32_t crystals[2];
        lr_lors_crystals(rows[0].lors, lor, crystals);
        double sum = 0;
        for (int layer = 0; layer < 2; layer++) {
            const int64_t part = lr_lors_number(rows[1].lors, crystals[0], crystals[1] + layer * near[0] * near[1]);
            const double share = rows[1].values[row * rows[1].lors->count + part];
            shares[layer] += share;
            sum += share;
        }
        if (rows[0].values[n] > 0 || sum > 0) assert_close(sum, rows[0].values[n], 2 * tolerance());
    }
    assert_true(shares[0] > 0.5 * shares[1] && shares[1] > 0.5 * shares[0]);
}

/* Few lines give nearly the sums of many lines: within 0.3 % for voxels of eight points. With lines in the middle of
 * their strata the error was 2 to 6 %. */
static void few_lines_give_the_sum(void **state)
{
    double points[16][3];
    if (!test_backend_is("native")) return; /* the others have the same elements, and are slower */
    for (int n = 0; n < 16; n++) {
        const double at[3] = {n < 8 ? 1.5 : -11, n < 8 ? 0.9 : 6, n < 8 ? -2.2 : 4.1};
        for (int k = 0; k < 3; k++) points[n][k] = at[k] + ((n >> k & 1) != 0 ? 0.7 : -0.7);
    }
    lr_scanner *scanner = keep(scanner_from(
        "ring: {radius_mm: 40, modules: 8}\nmodule: {crystals: [8, 8], pitch_mm: [4, 4], face_mm: [3.7, 3.7], "
        "depth_mm: 14, layers: [{depth_mm: 6}, {depth_mm: 8, crystal_mu_per_mm: 0.07}]}\ncrystal_mu_per_mm: 0.08"));
    struct rows many = rows_of(scanner, 14, (const double(*)[3])points, 16);
    for (int rays = 2; rays <= 4; rays += 2) {
        struct rows few = rows_of(scanner, rays, (const double(*)[3])points, 16);
        for (int voxel = 0; voxel < 2; voxel++) {
            double sums[2] = {0, 0};
            for (int64_t n = 8 * voxel * few.lors->count; n < 8 * (voxel + 1) * few.lors->count; n++) {
                sums[0] += few.values[n];
                sums[1] += many.values[n];
            }
            const double ratio = sums[0] / sums[1];
            print_message("R = %d: %.3f %% off\n", rays, 100 * (ratio - 1));
            assert_close(ratio, 1, 3e-3);
        }
    }
}

/* Forward and back-projections by the backend and by cpu: for all LORs, for the LORs of some pairs, and for some
 * LORs. */
static void projections_agree(void **state)
{
    lr_scanner *scanners[2] = {layered_tilted(), layered_insert()};
    const lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){6, 5, 4});
    uint64_t seed = test_seed();
    for (int k = 0; k < 2 && !test_backend_is("cpu"); k++) {
        lr_lors *lors = keep(lr_lors_create(scanners[k], NULL));
        int32_t pairs[256];
        int64_t *some = kept(lors->count, sizeof(*some));
        lr_selection parts[3] = {{0}, {.pairs = pairs}, {.lors = some}};
        for (int64_t pair = 1; pair < lors->num_pairs && pair < 256; pair += 3)
            pairs[parts[1].num_pairs++] = (int32_t)pair;
        for (int64_t lor = 5; lor < lors->count; lor += 7) some[parts[2].num_lors++] = lor;
        lr_operator *ops[2];
        for (int n = 0; n < 2; n++) {
            ops[n] = keep(lr_operator_create(&filled(lr_operator_params, .lors = lors, .grid = &grid,
                                                     .backend = n == 0 ? "cpu" : test_backend, .rays = 2,
                                                     .samples = {1, 1, 1}, .store = LR_STORE_NO)));
        }
        for (int part = 0; part < 3; part++) {
            const lr_selection *selection = part > 0 ? &parts[part] : NULL;
            const int64_t count = part == 0 ? lors->count : lr_selection_count(lors, selection);
            double *image = kept_random_doubles(8, 0.5, 1.5, &seed), images[2][8];
            double *data = kept_random_doubles(count, 0.5, 1.5, &seed);
            double *found[2] = {kept_doubles(count), kept_doubles(count)};
            for (int n = 0; n < 2; n++) {
                const lr_vector in[2] = {lr_vector_of_doubles(image, 8), lr_vector_of_doubles(data, count)};
                lr_vector out[2] = {lr_vector_of_doubles(found[n], count), lr_vector_of_doubles(images[n], 8)};
                assert_ok(lr_operator_forward(ops[n], selection, &in[0], &out[0]));
                assert_ok(lr_operator_back(ops[n], selection, &in[1], &out[1]));
            }
            assert_all(l2_apart(found[1], found[0], count) <= 1e-5, l2_apart(images[1], images[0], 8) <= 1e-5);
        }
    }
}

/* A scanner without a crystal material gets LYSO. Layers alone, in exact mode, are used only on request, and count more
 * than both layers stop. */
static void defaults_are_told(void **state)
{
    struct test_log *log = kept_log();
    lr_module modules[3] = {level_module(30, (const int[2]){3, 3}, 4, 10),
                            level_module(-30, (const int[2]){3, 3}, 4, 4),
                            level_module(-34, (const int[2]){3, 3}, 4, 6)};
    modules[1].block = modules[2].block = modules[2].layer = 1;
    lr_lors *lors = lors_from(lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = 3}));
    const lr_grid grid = lr_grid_centred((const int[3]){1, 1, 1}, (const double[3]){2, 2, 2});
    lr_operator_params params = {.lors = lors, .grid = &grid, .backend = test_backend, .log = &log->log};
    float sums[2];
    for (int alone = 0; alone < 2; alone++) {
        params.layers_alone = alone;
        lr_operator *op = keep(lr_operator_create(&params));
        const lr_operator_info *info = lr_operator_get_info(op);
        assert_true(info->penetration == !alone);
        assert_int_equal(info->mode, alone ? LR_MODE_EXACT : LR_MODE_SAMPLED);
        assert_ok(array_sensitivity(op, &sums[alone]));
    }
    /* Both layers see the same directions; some lines leave through the sides of blocks that are this small. */
    const double passes = exp(-10 * lr_crystal_material_mu_per_mm("lyso"));
    assert_close(sums[0] / sums[1], (1 - passes) * (1 - passes) / 2, 0.2);
    params.layers_alone = false;
    params.mode = LR_MODE_EXACT;
    assert_null(lr_operator_create(&params));
    assert_says(log->error, "as if it were alone");
}

backend_main("cpu", CASES(shares_of_one_line, layers_add_up_to_the_block, few_lines_give_the_sum, projections_agree,
                          defaults_are_told))
