/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of the native backend against each other and against its own rows: parts of the LORs,
 * sensitivities, threads, windows of memory, columns along each axis of the grid. */
#include "fixtures.h"

#include "model/scanner/coincidence.h"
#include "operator/backend.h"
#include "render/scanners.h"

enum { EXACT, SAMPLED, NUM_MODES };
static const lr_mode modes[NUM_MODES] = {LR_MODE_EXACT, LR_MODE_SAMPLED};

/* Sums of some hundred floats: tolerance relative to the largest value. */
static const double rounding = 2e-6;

static struct bench {
    lr_lors *lors;
    lr_grid grid;
    struct lr_backend_params params;
    struct lr_backend *backend;
    int64_t num_voxels, num_lors;
    float *image, *data; /* random, with some zeros */
} bench;

static float *make_floats(int64_t count)
{
    float *values = kept_floats(count);
    memset(values, -1, (size_t)count * sizeof(*values)); /* old values, to be overwritten */
    return values;
}

static float *random_floats(int64_t count, uint64_t *state)
{
    float *values = kept_random_floats(count, -0.5, 1.0, state);
    for (int64_t k = 0; k < count; k++) values[k] = values[k] > 0.0f ? values[k] : 0.0f;
    return values;
}

static void end_backend(void *object)
{
    struct lr_backend *backend = object;
    backend->fns->destroy(backend->self);
    free(backend);
}

static void bench_open(void)
{
    bench.backend = non_null(calloc(1, sizeof(*bench.backend)));
    assert_ok(lr_native_backend_create(&bench.params, bench.backend));
    keep_object(bench.backend, end_backend);
}

static void bench_init(lr_scanner *scanner, lr_mode mode)
{
    uint64_t state = test_seed();
    bench = (struct bench){.lors = lors_from(scanner)};
    bench.grid =
        shifted_grid((const int[3]){7, 6, 5}, (const double[3]){2.3, 2.9, 2.6}, (const double[3]){0.37, 0, -0.29});
    bench.params = filled(struct lr_backend_params, .scanner = scanner, .lors = bench.lors, .grid = &bench.grid,
                          .mode = mode, .rays = 3, .samples = {2, 1, 3}, .threads = 2);
    bench.num_voxels = lr_grid_num_voxels(&bench.grid);
    bench.num_lors = bench.lors->count;
    bench.image = random_floats(bench.num_voxels, &state);
    bench.data = random_floats(bench.num_lors, &state);
    bench_open();
}

/* part NULL: all LORs. */
static int64_t num_values(const lr_selection *part)
{
    return part != NULL ? lr_selection_count(bench.lors, part) : bench.num_lors;
}

static float *forward(const lr_selection *part)
{
    const int64_t count = num_values(part);
    float *values = make_floats(count);
    assert_ok(bench.backend->fns->project(bench.backend->self, true, part, vector_of(bench.image, bench.num_voxels),
                                          vector_of(values, count)));
    return values;
}

/* values NULL: 1. */
static float *back(const lr_selection *part, const float *values)
{
    float *image = make_floats(bench.num_voxels);
    assert_ok(bench.backend->fns->project(bench.backend->self, false, part,
                                          values != NULL ? vector_of(values, num_values(part)) : NULL,
                                          vector_of(image, bench.num_voxels)));
    return image;
}

static void assert_same_bits(const float *a, const float *b, int64_t count)
{
    assert_memory_equal(a, b, (size_t)count * sizeof(*a));
}

static lr_scanner *(*const kinds[])(void) = {create_opposed, create_flipped,    create_ring_of_8, create_two_rings,
                                             create_blocks,  create_ruled_ring, create_turned};

static void for_all(void **state)
{
    check_fn *const check = given_check(state);
    for (int k = 0; k < length_of(kinds) * NUM_MODES; k++) {
        bench_init(kinds[k / NUM_MODES](), modes[k % NUM_MODES]);
        check();
        destroy_kept(NULL);
    }
}

/* --- rows --- */

struct sums {
    double *data;  /* A x */
    double *image; /* A^T y */
    double *ones;  /* A^T 1 */
};

static lr_status take_row(void *user, const lr_row *row)
{
    struct sums *sums = user;
    for (int64_t k = 0; k < row->count; k++) {
        assert_true(row->probability[k] > 0 && (k == 0 || row->lor[k] > row->lor[k - 1]));
        sums->data[row->lor[k]] += row->probability[k] * (double)bench.image[row->row];
        sums->image[row->row] += row->probability[k] * (double)bench.data[row->lor[k]];
        sums->ones[row->row] += row->probability[k];
    }
    return LR_OK;
}

/* Every pair of modules, as a selection. */
static lr_selection all_pairs(void)
{
    int32_t *pairs = kept(bench.lors->num_pairs, sizeof(*pairs));
    for (int64_t k = 0; k < bench.lors->num_pairs; k++) pairs[k] = (int32_t)k;
    return (lr_selection){.pairs = pairs, .num_pairs = bench.lors->num_pairs};
}

static void projections_are_sums_of_rows(void)
{
    struct sums sums = {kept_doubles(bench.num_lors), kept_doubles(bench.num_voxels), kept_doubles(bench.num_voxels)};
    const struct lr_rows rows = {.grid = &bench.grid, .samples = {2, 1, 3}, .end = bench.num_voxels};
    assert_ok(bench.backend->fns->rows(bench.backend->self, &rows, &(lr_row_sink){take_row, &sums}));
    const lr_selection all = all_pairs();
    float *data = forward(NULL), *image = back(NULL, bench.data), *ones = back(&all, NULL);
    assert_all_near("forward", data, sums.data, bench.num_lors, rounding);
    assert_all_near("back", image, sums.image, bench.num_voxels, rounding);
    assert_all_near("sensitivity", ones, sums.ones, bench.num_voxels, rounding);
}

/* --- parts --- */

/* Every third pair, so that their values are not consecutive in the data. */
static void parts_by_pairs(void)
{
    lr_selection part = all_pairs();
    int32_t *pairs = (int32_t *)(uintptr_t)part.pairs;
    part.num_pairs = 0;
    for (int32_t k = 0; k < bench.lors->num_pairs; k += 3) pairs[part.num_pairs++] = k;
    float *all = forward(NULL), *some = forward(&part);
    float *picked = make_floats(bench.num_lors), *others = make_floats(bench.num_lors);
    int64_t next = 0;
    memset(others, 0, (size_t)bench.num_lors * sizeof(float));
    for (int64_t k = 0; k < part.num_pairs; k++) {
        for (int64_t l = bench.lors->offsets[pairs[k]]; l < bench.lors->offsets[pairs[k] + 1]; l++) {
            assert_true(some[next] == all[l]);
            picked[next++] = bench.data[l];
            others[l] = bench.data[l];
        }
    }
    assert_int_equal(next, num_values(&part));
    float *image = back(&part, picked), *expected = back(NULL, others);
    assert_same_bits(image, expected, bench.num_voxels);
}

/* A third of all LORs, picked one by one. */
static void parts_by_lors(void)
{
    uint64_t state = 5;
    int64_t *numbers = kept(bench.num_lors, sizeof(*numbers));
    lr_selection part = {.lors = numbers};
    float *all = forward(NULL), *picked = make_floats(bench.num_lors);
    float *ones = make_floats(bench.num_lors), *others = make_floats(bench.num_lors);
    memset(others, 0, (size_t)bench.num_lors * sizeof(float));
    for (int64_t l = 0; l < bench.num_lors; l++) {
        if (test_random(&state) < 0.33) {
            ones[part.num_lors] = 1.0f;
            picked[part.num_lors] = others[l] = bench.data[l];
            numbers[part.num_lors++] = l;
        }
    }
    float *some = forward(&part);
    for (int64_t k = 0; k < part.num_lors; k++)
        assert_true(some[k] == all[numbers[k]]); /* the same additions in the same order */
    float *image = back(&part, picked), *expected = back(NULL, others);
    assert_all_near("part of LORs", image, expected, bench.num_voxels, rounding);
    float *sensitivity = back(&part, NULL), *by_ones = back(&part, ones);
    assert_same_bits(sensitivity, by_ones, bench.num_voxels);
}

/* --- same bits --- */

static void same_bits(void)
{
    const int64_t first[] = {3, 17, 40, bench.num_lors / 2, bench.num_lors - 1};
    const lr_selection part = {.lors = first, .num_lors = 5};
    float *data = forward(NULL), *image = back(NULL, data), *some = forward(&part), *few = back(&part, some);
    for (int n = 0; n < 4; n++) {
        static const int threads[] = {1, 2, 3, 7};
        bench.params.threads = threads[n];
        bench.params.max_memory_bytes = n == 1 ? 1 : 0; /* a window for every pair */
        bench_open();
        float *data2 = forward(NULL), *image2 = back(NULL, data);
        float *some2 = forward(&part), *few2 = back(&part, some);
        assert_same_bits(data, data2, bench.num_lors);
        assert_same_bits(image, image2, bench.num_voxels);
        assert_same_bits(some, some2, 5);
        assert_same_bits(few, few2, bench.num_voxels);
    }
}

/* --- orientation --- */

/* Two facing modules give the same values along each axis of the grid. Normals point inwards in each orientation, so
 * that only the order of the grid changes. */
static void test_columns_along_each_axis(void **unused)
{
    const lr_module shape = {.crystals = {5, 4}, .pitch_mm = {2.2, 2.6}, .face_mm = {2.1, 2.4}, .depth_mm = 5};
    const lr_module modules[2] = {place_module(&shape, &(struct placement){0, 30, 1, 0, 0, 0}),
                                  place_module(&shape, &(struct placement){180, 30, -1, 0, 0, 0})};
    float *first = NULL;
    for (int times = 0; times < 3; times++) {
        /* The scanner after renaming x, y, z to y, z, x, as many times as `times` says. */
        lr_module turned[2] = {modules[0], modules[1]};
        for (int k = 0; k < 6; k++) {
            const int from = (k / 2 + times) % 3;
            turned[k % 2].centre_mm[k / 2] = modules[k % 2].centre_mm[from];
            turned[k % 2].u[k / 2] = modules[k % 2].u[from];
            turned[k % 2].v[k / 2] = modules[k % 2].v[from];
        }
        bench_init(scanner_of(turned, 2, 0), LR_MODE_EXACT);
        const lr_grid grid = bench.grid;
        float *image = make_floats(bench.num_voxels);
        memcpy(image, bench.image, (size_t)bench.num_voxels * sizeof(float));
        for (int k = 0; k < 3; k++) {
            bench.grid.size[k] = grid.size[(k + times) % 3];
            bench.grid.voxel_mm[k] = grid.voxel_mm[(k + times) % 3];
            bench.grid.origin_mm[k] = grid.origin_mm[(k + times) % 3];
            bench.params.samples[k] = (const int[3]){2, 1, 3}[(k + times) % 3];
        }
        for (int64_t v = 0; v < bench.num_voxels; v++) {
            const int at[3] = {(int)(v % grid.size[0]), (int)(v / grid.size[0] % grid.size[1]),
                               (int)(v / grid.size[0] / grid.size[1])};
            const int *size = bench.grid.size;
            bench.image[at[times % 3] + size[0] * (at[(1 + times) % 3] + (int64_t)size[1] * at[(2 + times) % 3])] =
                image[v];
        }
        bench_open();
        float *data = forward(NULL);
        if (first == NULL)
            first = data;
        else
            assert_all_near("another axis", data, first, bench.num_lors, rounding);
    }
}

/* --- coincidence --- */

static void check_coincidence(uint32_t kind)
{
    float *data = forward(NULL);
    int64_t num_out = 0, num_seen = 0, num_kind = 0;
    for (int64_t l = 0; l < bench.num_lors; l++) {
        const bool counts = lr_lors_in_coincidence(bench.lors, l);
        assert_true(counts || data[l] == 0);
        num_out += !counts;
        num_seen += data[l] > 0;
    }
    for (int64_t k = 0; k < bench.lors->num_pairs; k++) num_kind += bench.lors->masks->pairs[k].kind == kind;
    assert_true(num_out > 0 && num_seen > 0 && num_kind > 0);
}

static void test_nothing_out_of_coincidence(void **unused)
{
    for (int mode = 0; mode < NUM_MODES; mode++) {
        bench_init(create_ruled_ring(), modes[mode]);
        check_coincidence(LR_MASK_SEPARABLE);
        bench_init(create_turned(), modes[mode]);
        check_coincidence(LR_MASK_FULL);
    }
}

test_main("native_projections", CASE_OF(for_all, projections_are_sums_of_rows), CASE_OF(for_all, parts_by_pairs),
          CASE_OF(for_all, parts_by_lors), CASE_OF(for_all, same_bits), CASE(test_columns_along_each_axis),
          CASE(test_nothing_out_of_coincidence))
