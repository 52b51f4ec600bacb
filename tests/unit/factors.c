/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Products of crystals' values, and products of sources, LOR by LOR. */
#define _DEFAULT_SOURCE /* for anonymous mmap */
#include "cases.h"

#include "model/lors/place.h"

#include <sys/mman.h>

/* The product, computed from the definition. */
static double expected_product(const lr_crystal_product *product, int64_t l)
{
    const lr_scanner *scanner = product->lors->scanner;
    const lr_lor lor = lr_lors_describe(product->lors, l);
    const int a = lor.q * scanner->modules[lor.module_i].crystals[0] + lor.p;
    const int b = lor.s * scanner->modules[lor.module_j].crystals[0] + lor.r;
    return lr_lors_in_coincidence(product->lors, l)
               ? product->scale * product->values[scanner->first_crystal[lor.module_i] + a] *
                     product->values[scanner->first_crystal[lor.module_j] + b]
               : 0.0;
}

static void products_are_products(void **unused)
{
    uint64_t state = test_seed();
    for (int kind = 0; kind < FIXTURE_COUNT; kind++) {
        struct fixture fixture = kept_fixture((enum fixture_kind)kind);
        const int64_t count = fixture.lors->count;
        float *values = kept_random_floats(fixture.scanner->num_crystals, 0.5, 1.5, &state);
        float *found = kept_floats(count);
        lr_crystal_product product = {fixture.lors, values, 1.75, NULL};
        const lr_lor_source source = lr_crystal_product_source(&product);
        const int64_t begin = count / 3;
        assert_ok(source.get(source.user, &(lr_lor_span){.first = begin, .count = count - begin}, found));
        double sum = 0.0;
        for (int64_t l = 0; l < count; l++) {
            const double expected = expected_product(&product, l);
            sum += expected;
            if (l >= begin) assert_true(found[l - begin] == (float)expected);
        }
        assert_close(lr_crystal_product_sum(&product, 1), sum, 1e-12);
        assert_close(lr_crystal_product_sum(&product, 2), sum, 1e-12);
        int64_t numbers[100];
        for (int k = 0; k < 100; k++) /* with jumps over modules, and without gaps */
            numbers[k] = k < 50 ? k * (count - 100) / 50 : count - 100 + k;
        assert_ok(source.get(source.user, &(lr_lor_span){.numbers = numbers, .count = 100}, found));
        for (int k = 0; k < 100; k++) assert_true(found[k] == (float)expected_product(&product, numbers[k]));
    }
}

/* The sum of values of 1 over the 3e8 LORs of a clinical scanner is the number of LORs in coincidence. */
static void sum_of_a_large_scanner(void **unused)
{
    lr_lors *lors = lors_from(lr_scanner_read("siemens-mmr", NULL));
    float *ones = kept_floats(lors->scanner->num_crystals);
    for (int c = 0; c < lors->scanner->num_crystals; c++) ones[c] = 1.0f;
    const lr_crystal_product product = {lors, ones, 1.0, NULL};
    /* 56 modules, each paired with those at least 9 places away; 4084 of 64 x 64 pairs of rings */
    assert_true(lr_crystal_product_sum(&product, 0) == 56.0 * 39 / 2 * 8 * 8 * 4084);
}

static void lors_of_another_scanner_are_refused(void **unused)
{
    struct fixture fixture = kept_fixture(FIXTURE_RING);
    float values[160] = {0}, found[2];
    const lr_lor_source source = lr_crystal_product_source(&(lr_crystal_product){fixture.lors, values, 1.0, NULL});
    const lr_lor_span behind = {.first = fixture.lors->count - 1, .count = 2}, before = {.first = -1, .count = 1};
    const lr_lor_span nothing = {.first = fixture.lors->count, .count = 0};
    assert_ints(source.get(source.user, &behind, found), LR_USAGE, source.get(source.user, &before, found), LR_USAGE);
    assert_ok(source.get(source.user, &nothing, found));
}

/* --- products of sources --- */

static lr_status get_number(void *user, const lr_lor_span *span, float *values)
{
    for (int64_t k = 0; k < span->count; k++) {
        const int64_t lor = span->numbers ? span->numbers[k] : span->first + k;
        values[k] = *(const float *)user + (float)(lor % 7);
    }
    return LR_OK;
}

static lr_status fail_to_get(void *user, const lr_lor_span *span, float *values)
{
    return LR_FAILED;
}

/* More LORs than are processed at a time. */
static void sources_are_multiplied(void **unused)
{
    enum { COUNT = 2500000, FIRST = 12345 };
    float offsets[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    lr_source_product product = {.num_sources = 4};
    for (int k = 0; k < 8; k++) product.sources[k] = (lr_lor_source){get_number, &offsets[k]};
    product.sources[2].get = NULL;
    const lr_lor_source source = lr_source_product_source(&product);
    float *values = kept_floats(COUNT);
    int64_t *numbers = kept(COUNT, sizeof(*numbers));
    for (int64_t k = 0; k < COUNT; k++) numbers[k] = FIRST + 3 * k;
    for (int listed = 0; listed < 2; listed++) {
        assert_ok(source.get(source.user, &(lr_lor_span){listed ? numbers : NULL, FIRST, COUNT}, values));
        for (int64_t k = 0; k < COUNT; k++) {
            const float n = (float)((FIRST + (listed ? 3 * k : k)) % 7);
            assert_true(values[k] == (1 + n) * (2 + n) * (4 + n)); /* integers, therefore exact */
        }
    }
    const lr_lor_span some = {NULL, 0, 3};
    product.num_sources = 0;
    assert_ok(source.get(source.user, &some, values));
    assert_true(values[0] == 1 && values[2] == 1);
    product.num_sources = 8;
    assert_ok(source.get(source.user, &some, values));
    assert_true(values[0] == 13440); /* 8! / 3 */
    product.num_sources = 9;
    assert_int_equal(source.get(source.user, &some, values), LR_USAGE);
    product.num_sources = 2;
    product.sources[1].get = fail_to_get;
    assert_int_equal(source.get(source.user, &some, values), LR_FAILED);
}

/* Sparse data, directly and expanded, from any LOR on, and for some LORs. */
static void data_are_a_source(void **unused)
{
    int64_t index[4] = {2, 5, 6, 11};
    float listed[4] = {7, 1, 4, 9}, all[12] = {0}, values[12];
    lr_lor_data sparse = {.count = 4, .index = index, .values = listed}, dense = {.count = 12, .values = all};
    const lr_lor_source sources[2] = {lr_lor_data_source(&sparse), lr_lor_data_source(&dense)};
    const int64_t some[5] = {0, 5, 7, 8, 11};
    for (int k = 0; k < 4; k++) all[index[k]] = listed[k];
    for (int which = 0; which < 2; which++) {
        for (int64_t first = 0; first < 12; first++) {
            const lr_lor_span span = {NULL, first, 12 - first};
            assert_ok(sources[which].get(sources[which].user, &span, values));
            assert_memory_equal(values, all + first, (size_t)span.count * sizeof(*values));
        }
        assert_ok(sources[which].get(sources[which].user, &(lr_lor_span){some, 0, 5}, values));
        for (int k = 0; k < 5; k++) assert_true(values[k] == all[some[k]]);
    }
    assert_int_equal(sources[1].get(sources[1].user, &(lr_lor_span){NULL, 10, 3}, values), LR_USAGE);
}

static lr_status drop_events(void *user, const lr_event *events, int64_t count)
{
    *(int64_t *)user += count;
    return LR_OK;
}

/* Arrays of the caller are read in place and never written: this memory is read-only. */
static void borrowed_arrays_are_only_read(void **unused)
{
    struct fixture fixture = kept_fixture(FIXTURE_RING);
    const int64_t num_lors = fixture.lors->count, num_voxels = lr_grid_num_voxels(&fixture.grid);
    const size_t bytes = (size_t)(num_lors > num_voxels ? num_lors : num_voxels) * sizeof(float);
    float *numbers = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(numbers != MAP_FAILED);
    for (size_t k = 0; k < bytes / sizeof(float); k++) numbers[k] = 1.0f;
    assert_int_equal(mprotect(numbers, bytes, PROT_READ), 0);
    const lr_lor_data data = {.count = num_lors, .values = numbers};
    const lr_image image = {.grid = fixture.grid, .values = numbers};
    float value = 0.0f, *found = kept_floats(num_lors);
    const lr_lor_span one = {.count = 1};
    int64_t count = 0;
    const lr_event_sink sink = {.take = drop_events, .user = &count};

    const lr_lor_source source = lr_lor_data_source(&data);
    assert_ok(source.get(source.user, &one, &value));
    assert_true(value == 1.0f);
    lr_lor_data_destroy(lr_lor_data_expand(&data, fixture.lors, NULL));
    keep(lr_randoms_estimate(fixture.lors, &data, NULL));
    keep(lr_attenuation_create(&(lr_attenuation_params){.lors = fixture.lors, .mu = &image}));
    assert_ok(lr_events_from_counts(&(lr_list_params){.lors = fixture.lors, .data = &data}, &sink));
    assert_int_equal(count, num_lors);
    const lr_photon_params photons = {.lors = fixture.lors, .activity = &image, .count = 10, .tof_resolution_ps = 400};
    assert_ok(lr_events_from_activity(&photons, &sink, NULL));

    lr_operator_params params = fixture_params(&fixture, "cpu", NULL);
    params.mu = &image;
    lr_operator *op = keep(fixture_operator(&params));
    const lr_vector x = lr_image_vector(&image), y = lr_lor_data_vector(&data);
    assert_ok(lr_operator_forward(op, NULL, &x, vector_of(found, num_lors)));
    assert_true(num_voxels <= num_lors);
    assert_ok(lr_operator_back(op, NULL, &y, vector_of(found, num_voxels)));
    munmap(numbers, bytes);
}

static void efficiencies_are_checked(void **unused)
{
    struct test_log log = TEST_LOG(log);
    float values[4] = {0, 10, 20, 9};
    assert_ok(lr_efficiencies_check(values, 4, "e.txt", &log.log));
    assert_int_equal(log.num_warnings, 0);
    values[3] = 11;
    assert_ok(lr_efficiencies_check(values, 4, "e.txt", &log.log));
    assert_says(log.warning, "e.txt: the efficiencies are 10.25 on average");
    assert_fails(lr_efficiencies_check(values, 1, "e.txt", &log.log), LR_BAD_INPUT, &log, "0 everywhere");
    for (int k = 0; k < 3; k++) {
        values[2] = (const float[]){-1, NAN, INFINITY}[k];
        assert_fails(lr_efficiencies_check(values, 4, "e.txt", &log.log), LR_BAD_INPUT, &log, "e.txt: number 2 is");
    }
}

test_main("unit: factors", CASE(efficiencies_are_checked), CASE(products_are_products), CASE(sum_of_a_large_scanner),
          CASE(lors_of_another_scanner_are_refused), CASE(sources_are_multiplied), CASE(data_are_a_source),
          CASE(borrowed_arrays_are_only_read))
