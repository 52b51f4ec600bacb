/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Layers of crystals without penetration: each layer counts as if it were alone. The elements of a layer equal those of
 * a scanner with this layer only, in rows and in projections, in every mode. Argument: the backend. */
#include "fixtures.h"
#include "layered.h"

#include "model/scanner/scanner.h"

/* Relative tolerance. Both scanners have the same modules in the same passes; only the order of sums may differ. */
static const double same = 1e-6;

/* Software renderers are slow if modules hide each other. */
static lr_grid small_grid(const lr_scanner *scanner)
{
    const bool hides = lr_modules_may_hide(scanner);
    const int size[3] = {hides ? 2 : 4, hides ? 2 : 3, hides ? 2 : 3};
    if (scanner->modules[scanner->num_modules - 1].ring > 0)
        return lr_grid_centred((const int[3]){4, 4, 6}, (const double[3]){3.7, 3.7, 4});
    return shifted_grid(size, (const double[3]){3.7, 4.1, 3.9}, (const double[3]){0.4, -0.7, 0.3});
}

/* A scanner with its matrix and projections. */
struct bench {
    lr_lors *lors;
    lr_grid grid;
    lr_operator *op;
    struct test_log *log;
    int64_t num_voxels;
    const double *matrix; /* [num_voxels][lors->count] */
};

static void open_bench(struct bench *bench, const lr_scanner *scanner, const lr_operator_params *wanted)
{
    *bench = (struct bench){.grid = wanted->grid ? *wanted->grid : small_grid(scanner)};
    bench->log = kept_log();
    bench->lors = keep(lr_lors_create(scanner, &bench->log->log));
    lr_operator_params params = *wanted;
    params.lors = bench->lors;
    params.grid = &bench->grid;
    params.store = LR_STORE_NO;
    params.threads = 2;
    params.log = &bench->log->log;
    bench->op = keep(lr_operator_create(&params));
    bench->num_voxels = lr_grid_num_voxels(&bench->grid);
    bench->matrix = kept_rows(bench->op, 0, bench->num_voxels);
}

/* The LOR of the whole scanner for a LOR of a part. */
static int64_t whole_lor(const struct bench *whole, const struct bench *part, const struct layered_rest *rest,
                         int64_t lor)
{
    int32_t crystals[2];
    lr_lors_crystals(part->lors, lor, crystals);
    const int64_t found = lr_lors_number(whole->lors, rest->crystal_of[crystals[0]], rest->crystal_of[crystals[1]]);
    assert_true(found >= 0);
    assert_int_equal(lr_lors_in_coincidence(whole->lors, found), lr_lors_in_coincidence(part->lors, lor));
    return found;
}

static void assert_alike(double a, double b, double largest)
{
    if (!(fabs(a - b) <= same * fmax(fabs(b), 1e-3 * largest)))
        fail_msg("%.9g in layers, %.9g alone (the largest is %.3g)", a, b, largest);
}

static void compare_part(const struct bench *whole, struct layered_rest rest, const lr_operator_params *params)
{
    const int mark = num_kept();
    struct bench part;
    open_bench(&part, rest.scanner, params);
    const int64_t num_lors = part.lors->count, num_voxels = part.num_voxels;
    double largest = largest_number(part.matrix, num_voxels * num_lors);
    assert_true(largest > 0);
    int64_t *in_whole = kept(num_lors, sizeof(*in_whole));
    for (int64_t lor = 0; lor < num_lors; lor++) {
        in_whole[lor] = whole_lor(whole, &part, &rest, lor);
        for (int64_t v = 0; v < num_voxels; v++)
            assert_alike(whole->matrix[v * whole->lors->count + in_whole[lor]], part.matrix[v * num_lors + lor],
                         largest);
    }
    uint64_t seed = test_seed();
    double *image = kept_random_doubles(num_voxels, 0.5, 1.5, &seed);
    double *of_whole = kept_doubles(whole->lors->count), *of_part = kept_doubles(num_lors);
    assert_ok(array_forward_f64(whole->op, image, of_whole), array_forward_f64(part.op, image, of_part));
    largest = largest_number(of_part, num_lors);
    for (int64_t lor = 0; lor < num_lors; lor++) assert_alike(of_whole[in_whole[lor]], of_part[lor], largest);
    double *back_of_whole = kept_doubles(num_voxels), *back_of_part = kept_doubles(num_voxels);
    of_part = kept_random_doubles(num_lors, 0.5, 1.5, &seed);
    of_whole = kept_doubles(whole->lors->count);
    for (int64_t lor = 0; lor < num_lors; lor++) of_whole[in_whole[lor]] = of_part[lor];
    assert_ok(array_back_f64(whole->op, of_whole, back_of_whole), array_back_f64(part.op, of_part, back_of_part));
    largest = largest_number(back_of_part, num_voxels);
    for (int64_t v = 0; v < num_voxels; v++) assert_alike(back_of_whole[v], back_of_part[v], largest);
    destroy_kept_since(mark);
}

/* Sets the params of a mode. Returns false if the backend lacks the mode. */
static bool params_of(lr_mode mode, lr_operator_params *params)
{
    *params = (lr_operator_params){
        .backend = test_backend, .mode = mode, .rays = 3, .samples = {1, 1, 1}, .layers_alone = true};
    return mode == LR_MODE_SAMPLED || !test_backend_is("raster");
}

/* is_large: LORs between layers are compared in smaller scanners, or have no scanner of their own. alone: the only mode
 * to be tested without LORASTER_FULL; LR_MODE_AUTO = both modes. */
static void compare_layers(lr_scanner *scanner, bool is_large, lr_mode alone)
{
    for (int mode = LR_MODE_SAMPLED; mode <= LR_MODE_EXACT; mode++) {
        lr_operator_params params;
        struct bench whole;
        /* Programs are compiled for each scanner and mode. */
        const bool is_left_out = test_backend_is("compute") && alone != LR_MODE_AUTO && mode != (int)alone &&
                                 !test_takes_all("one of two modes of three scanners");
        if (!params_of(mode, &params) || is_left_out) continue;
        open_bench(&whole, scanner, &params);
        for (int layer = 0; layer < 2; layer++) compare_part(&whole, layered_alone(scanner, layer), &params);
        if (!is_large) {
            /* Some pairs of modules, as scanners of their own: one layer of one block and another layer of another. */
            int compared = 0;
            for (int64_t pair = 0; pair < whole.lors->num_pairs && compared < 4; pair++) {
                const int i = whole.lors->pairs[pair][0], j = whole.lors->pairs[pair][1];
                const bool mixed = scanner->modules[i].layer != scanner->modules[j].layer;
                assert_true(!mixed || scanner->modules[i].block != scanner->modules[j].block);
                double sum = 0; /* of the elements of the first voxel */
                for (int64_t lor = whole.lors->offsets[pair]; lor < whole.lors->offsets[pair + 1]; lor++)
                    sum += whole.matrix[lor];
                if (mixed && sum > 0) {
                    bool keep[256] = {false};
                    keep[i] = keep[j] = true;
                    compare_part(&whole, layered_keep(scanner, keep), &params);
                    compared++;
                }
            }
            assert_int_equal(compared, 4);
        }
    }
}

static void layers_are_alone(void **state)
{
    compare_layers(layered_ring(), false, LR_MODE_AUTO);
    destroy_kept(NULL);
    compare_layers(layered_rings(), true, LR_MODE_EXACT);
    destroy_kept(NULL);
    if (test_backend_is("native")) return;
    compare_layers(layered_tilted(), false, LR_MODE_SAMPLED);
    destroy_kept(NULL);
    compare_layers(layered_insert(), true, LR_MODE_EXACT);
}

/* --- pictures --- */

enum { MOST_PIXELS = 64 * 64 };

/* A module's image shows the modules of the same layer, as if it were the only one. */
static void check_pictures(lr_scanner *scanner)
{
    static const double point_mm[3] = {1.3, -2.1, 0.7};
    static lr_pixel pixels[2][MOST_PIXELS];
    lr_operator_params params;
    struct bench whole, part;
    int seen = 0;
    params_of(LR_MODE_SAMPLED, &params);
    open_bench(&whole, scanner, &params);
    for (int layer = 0; layer < 2; layer++) {
        struct layered_rest rest = layered_alone(scanner, layer);
        open_bench(&part, rest.scanner, &params);
        for (int m = 0; m < rest.scanner->num_modules; m++) {
            const int in_whole = lr_scanner_module_of(scanner, rest.crystal_of[rest.scanner->first_crystal[m]]);
            const int *crystals = rest.scanner->modules[m].crystals;
            const int count = crystals[0] * crystals[1] * params.rays * params.rays;
            assert_true(count <= MOST_PIXELS);
            assert_ok(lr_operator_picture(whole.op, point_mm, in_whole, pixels[0]));
            assert_ok(lr_operator_picture(part.op, point_mm, m, pixels[1]));
            for (int k = 0; k < count; k++) {
                const lr_pixel *a = &pixels[0][k], *b = &pixels[1][k];
                const int met = (int)b->module;
                const int wanted =
                    met < 0 ? -1 : lr_scanner_module_of(scanner, rest.crystal_of[rest.scanner->first_crystal[met]]);
                assert_int_equal((int)a->module, wanted);
                assert_true(a->r == b->r && a->s == b->s && a->weight == b->weight);
                seen += b->weight > 0;
            }
        }
    }
    assert_true(seen > 100);
}

static void pictures(void **state)
{
    if (test_backend_is("cpu") || test_backend_is("raster")) {
        check_pictures(layered_ring());
        check_pictures(layered_insert());
    }
}

/* Modules that are not layers hide each other as usual. This shows that the layers in the tests above stand in each
 * other's way. */
static void not_layers_hide(void **state)
{
    lr_operator_params params;
    struct bench layered, plain;
    bool keep[256];
    if (test_backend_is("native")) return;
    memset(keep, true, sizeof(keep));
    params_of(LR_MODE_SAMPLED, &params);
    lr_scanner *scanner = layered_ring();
    struct layered_rest rest = layered_keep(scanner, keep);
    open_bench(&layered, scanner, &params);
    params.grid = &layered.grid;
    open_bench(&plain, rest.scanner, &params);
    assert_true(!lr_modules_may_hide(scanner) && lr_modules_may_hide(rest.scanner));
    double sums[2] = {0, 0};
    for (int64_t lor = 0; lor < layered.lors->count; lor++) {
        const int64_t in_plain = whole_lor(&plain, &layered, &rest, lor);
        for (int64_t v = 0; v < plain.num_voxels; v++) {
            const double with = layered.matrix[v * layered.lors->count + lor];
            const double without = plain.matrix[v * plain.lors->count + in_plain];
            assert_true(without <= with * (1 + same));
            sums[0] += with;
            sums[1] += without;
        }
    }
    assert_true(sums[1] < 0.5 * sums[0]);
}

/* Sampled and exact modes, which share no code, agree, also for LORs between layers of blocks that hide each other.
 * Lines miss small parts of exact elements, about 0.6 / rays of them. */
static void modes_agree(void **state)
{
    if (test_backend_is("native") || test_backend_is("raster")) return;
    lr_scanner *scanner = layered_insert();
    struct bench sampled, exact;
    lr_operator_params params;
    params_of(LR_MODE_SAMPLED, &params);
    params.rays = 12;
    open_bench(&sampled, scanner, &params);
    params_of(LR_MODE_EXACT, &params);
    open_bench(&exact, scanner, &params);
    double off[2] = {0, 0}, size[2] = {0, 0};
    for (int64_t k = 0; k < exact.num_voxels * exact.lors->count; k++) {
        const lr_lor at = lr_lors_describe(exact.lors, k % exact.lors->count);
        const bool mixed = scanner->modules[at.module_i].layer != scanner->modules[at.module_j].layer;
        off[mixed] += pow(sampled.matrix[k] - exact.matrix[k], 2);
        size[mixed] += pow(exact.matrix[k], 2);
    }
    for (int mixed = 0; mixed < 2; mixed++) {
        print_message("%s: relative L2 %.3g\n", mixed ? "between layers" : "within layers",
                      sqrt(off[mixed] / size[mixed]));
        assert_true(off[mixed] < pow(1.2 / 12, 2) * size[mixed]);
    }
}

backend_main("cpu", CASES(layers_are_alone, not_layers_hide, modes_agree, pictures))
