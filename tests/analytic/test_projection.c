/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Forward projections, back-projections and rows of the cpu backend belong to one matrix, for any number of threads;
 * pictures show the lines of the rows. */
#include "analytic.h"
#include "backend_arrays.h"

static const int grid_size[3] = {5, 4, 3};
enum { NUM_VOXELS = 5 * 4 * 3 };

/* A ring of eight modules of blocks, with rules that exclude some LORs. */
static lr_scanner *ring(void)
{
    return scanner_from(
        "ring: {radius_mm: 40, modules: 8, rings: 2, ring_pitch_mm: 20}\nmodule: {crystals: [[4, 3], 4], block_gap_mm: "
        "[0.8, 0], pitch_mm: [3, 4], face_mm: [2.8, 3.7], depth_mm: 6}\ncoincidence: {field_of_view_mm: 44, "
        "min_module_difference: 2, max_ring_difference: 5}\ndetection_depth_mm: 1.5");
}

static lr_image *make_mu(uint64_t *seed)
{
    const lr_grid grid = lr_grid_centred((int[3]){6, 6, 4}, (double[3]){9, 9, 9});
    lr_image *mu = keep(lr_image_create(&grid, NULL));
    for (int64_t n = 0; n < lr_grid_num_voxels(&grid); n++) mu->values[n] = (float)(0.01 * test_random(seed));
    return mu;
}

/* Voxels of 9 mm; those at the corners are outside the core of the field of view. */
static struct setup_options make_options(int mode, int threads, const lr_grid *grid, const lr_image *mu)
{
    return filled(struct setup_options, .mode = (lr_mode)mode, .rays = 3, .threads = threads, .mu = mu, .mu_steps = 11,
                  .grid = grid, .samples = {2, 1, 3});
}

/* All results of one backend: A x, A^T y and A. */
struct results {
    int64_t num_lors;
    double *forward, *back, *matrix;
};

static struct results compute(int mode, int threads, const lr_image *mu, uint64_t seed)
{
    const lr_grid grid = lr_grid_centred(grid_size, (double[3]){9, 9, 9});
    const struct setup_options options = make_options(mode, threads, &grid, mu);
    struct setup setup = setup_of(ring(), &options);
    struct results results = {.num_lors = setup.lors->count};
    double *x = kept_random_doubles(NUM_VOXELS, -1.0, 1.0, &seed),
           *y = kept_random_doubles(results.num_lors, -1.0, 1.0, &seed);
    results.forward = kept_random_doubles(results.num_lors, -1.0, 1.0, &seed);
    results.back = kept_random_doubles(NUM_VOXELS, -1.0, 1.0, &seed);
    const lr_vector image = lr_vector_of_doubles(x, NUM_VOXELS);
    const lr_vector values = lr_vector_of_doubles(y, results.num_lors);
    assert_ok(backend_forward(&setup.backend, image, lr_vector_of_doubles(results.forward, results.num_lors)));
    assert_ok(backend_back(&setup.backend, values, lr_vector_of_doubles(results.back, NUM_VOXELS)));
    const double left = dot_product(results.forward, y, results.num_lors);
    const double right = dot_product(x, results.back, NUM_VOXELS);
    const double scale = sqrt(dot_product(results.forward, results.forward, results.num_lors)) *
                         sqrt(dot_product(y, y, results.num_lors));
    assert_all(scale > 0, fabs(left - right) <= 1e-12 * scale);

    struct dense_rows dense = {.num_lors = results.num_lors};
    dense.values = kept_doubles(NUM_VOXELS * results.num_lors);
    const struct lr_rows rows = {.grid = &grid, .samples = {2, 1, 3}, .end = NUM_VOXELS};
    assert_ok(setup.backend.fns->rows(setup.backend.self, &rows, &(lr_row_sink){dense_rows_take, &dense}));
    results.matrix = dense.values;
    for (int64_t lor = 0; lor < results.num_lors; lor++) {
        double sum = 0;
        for (int64_t v = 0; v < NUM_VOXELS; v++) {
            const double value = dense.values[v * results.num_lors + lor];
            assert_true(value == 0 || lr_lors_in_coincidence(setup.lors, lor));
            sum += value * x[v];
        }
        assert_true(sum == results.forward[lor]);
    }
    return results;
}

static void test_same_bits_for_any_threads(void **state)
{
    uint64_t seed = test_seed();
    lr_image *mu = make_mu(&seed);
    for (int mode = LR_MODE_SAMPLED; mode <= LR_MODE_EXACT; mode++) {
        struct results one = compute(mode, 1, mode == LR_MODE_SAMPLED ? mu : NULL, seed);
        for (int threads = 2; threads <= 3; threads++) {
            struct results more = compute(mode, threads, mode == LR_MODE_SAMPLED ? mu : NULL, seed);
            const size_t num_lors = (size_t)one.num_lors;
            assert_memory_equal(one.forward, more.forward, num_lors * sizeof(double));
            assert_memory_equal(one.back, more.back, NUM_VOXELS * sizeof(double));
            assert_memory_equal(one.matrix, more.matrix, NUM_VOXELS * num_lors * sizeof(double));
        }
    }
}

/* A voxel's row is the mean of the rows of its sample points. */
static void test_rows_are_means_of_points(void **state)
{
    const int samples[3] = {2, 1, 3};
    const int64_t voxel = 23;
    for (int mode = LR_MODE_SAMPLED; mode <= LR_MODE_EXACT; mode++) {
        const lr_grid grid = lr_grid_centred(grid_size, (double[3]){9, 9, 9});
        const struct setup_options options = make_options(mode, 2, &grid, NULL);
        struct results all = compute(mode, 2, NULL, 1);
        struct setup setup = setup_of(ring(), &options);
        double points[6][3];
        for (int k = 0; k < 6; k++)
            lr_grid_sample_point(&grid, &(lr_sample){voxel, {samples[0], samples[1], samples[2]}, k}, points[k]);
        double *rows = point_matrix(&setup, (const double(*)[3])points, 6);
        for (int64_t lor = 0; lor < all.num_lors; lor++) {
            double mean = 0;
            for (int k = 0; k < 6; k++) mean += rows[k * all.num_lors + lor] / 6;
            assert_close(all.matrix[voxel * all.num_lors + lor], mean, 1e-14);
        }
    }
}

/* The weights in all pictures of a point, added up by LOR, are the point's row. Pixels are floats, so each weight is
 * accurate to 2^-24. Pixels out of coincidence name their crystal and have weight 0. */
static void test_pictures_hold_the_row(void **state)
{
    enum { RAYS = 3 };
    const double point[1][3] = {{4, -7, 3}};
    uint64_t seed = test_seed();
    struct setup_options options = make_options(LR_MODE_SAMPLED, 2, NULL, make_mu(&seed));
    struct setup setup = setup_of(ring(), &options);
    double *row = point_matrix(&setup, point, 1), *sums = kept_doubles(setup.lors->count);
    int num_excluded = 0, num_gaps = 0;
    for (int m = 0; m < setup.scanner->num_modules; m++) {
        const int nu = setup.scanner->modules[m].crystals[0], nv = setup.scanner->modules[m].crystals[1];
        lr_pixel pixels[4 * RAYS * 4 * RAYS];
        assert_true(nu <= 4 && nv <= 4);
        assert_ok(setup.backend.fns->picture(setup.backend.self, point[0], m, pixels));
        for (int k = 0; k < nu * RAYS * nv * RAYS; k++) {
            const lr_pixel *pixel = &pixels[k];
            if (pixel->module < 0) {
                assert_true(pixel->r == -1 && pixel->s == -1 && pixel->weight == 0);
                num_gaps++;
                continue;
            }
            const int x = k % (nu * RAYS), y = k / (nu * RAYS), other = (int)pixel->module;
            const int a = setup.scanner->first_crystal[m] + y / RAYS * nu + x / RAYS;
            const int b = setup.scanner->first_crystal[other] +
                          (int)pixel->s * setup.scanner->modules[other].crystals[0] + (int)pixel->r;
            const int64_t lor = lr_lors_number(setup.lors, a, b);
            assert_true(pixel->path_mm > 10 && pixel->path_mm < 120);
            if (lor >= 0 && lr_lors_in_coincidence(setup.lors, lor)) {
                assert_true(pixel->weight > 0);
                sums[lor] += (double)pixel->weight;
            } else {
                assert_true(pixel->weight == 0);
                num_excluded++;
            }
        }
    }
    for (int64_t lor = 0; lor < setup.lors->count; lor++) assert_close(sums[lor], row[lor], 6e-8);
    assert_true(num_excluded > 0 && num_gaps > 0);
}

static bool stop_at_half(void *user, const char *what, double done, double total)
{
    int *num_calls = user;
    assert_all(what != NULL, done >= 0 && done <= total);
    ++*num_calls;
    return done < total / 2;
}

static lr_status refuse(void *user, const lr_row *row)
{
    ++*(int *)user;
    return row->row == 2 ? LR_BAD_INPUT : LR_OK;
}

static void test_stopping(void **state)
{
    enum { NUM_POINTS = 100 };
    int num_calls = 0, num_rows = 0;
    const lr_progress progress = {stop_at_half, &num_calls};
    struct setup setup = setup_of(ring(), &(struct setup_options){.threads = 1, .progress = &progress});
    double points[NUM_POINTS][3] = {{0}};
    const struct lr_rows rows = {.points_mm = (const double(*)[3])points, .end = NUM_POINTS};
    struct dense_rows dense = {.num_lors = setup.lors->count};
    assert_int_equal(setup.backend.fns->rows(setup.backend.self, &rows, &(lr_row_sink){dense_rows_take, &dense}),
                     LR_CANCELLED);
    assert_true(num_calls > 1 && dense.next_row < NUM_POINTS);
    assert_int_equal(setup.backend.fns->rows(setup.backend.self, &rows, &(lr_row_sink){refuse, &num_rows}),
                     LR_BAD_INPUT);
    assert_int_equal(num_rows, 3);
}

static void test_exact_mode_has_no_picture(void **state)
{
    lr_pixel pixels[4 * 4 * 16];
    struct setup setup = setup_of(ring(), &(struct setup_options){.mode = LR_MODE_EXACT});
    assert_fails(setup.backend.fns->picture(setup.backend.self, (double[3]){0, 0, 0}, 0, pixels), LR_USAGE, setup.log,
                 "sampled mode");
}

test_main("projection", CASES(test_same_bits_for_any_threads, test_rows_are_means_of_points, test_pictures_hold_the_row,
                              test_stopping, test_exact_mode_has_no_picture))
