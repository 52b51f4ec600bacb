/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The ratio and the sums of a fit, against a plain loop, dense and sparse. */
#include "fixtures.h"

#include "recon/likelihood.h"

enum { NUM_LORS = 200001 }; /* some blocks, and one LOR */

struct inputs {
    float *measured, *additive, *estimated; /* dense [NUM_LORS] */
};

static void inputs_init(struct inputs *inputs, uint64_t *state)
{
    inputs->measured = calloc(NUM_LORS, sizeof(float));
    inputs->additive = calloc(NUM_LORS, sizeof(float));
    inputs->estimated = calloc(NUM_LORS, sizeof(float));
    assert_true(inputs->measured && inputs->additive && inputs->estimated);
    for (int l = 0; l < NUM_LORS; l++) {
        inputs->measured[l] = test_random(state) < 0.7 ? 0.0f : (float)(4.0 * test_random(state));
        inputs->additive[l] = test_random(state) < 0.5 ? 0.0f : (float)test_random(state);
        inputs->estimated[l] = test_random(state) < 0.3 ? 0.0f : (float)(2.0 * test_random(state));
    }
}

static void inputs_finish(struct inputs *inputs)
{
    free(inputs->measured);
    free(inputs->additive);
    free(inputs->estimated);
}

static struct lr_fit plain_fit(const struct inputs *inputs, float *ratio)
{
    struct lr_fit fit = {0};
    for (int l = 0; l < NUM_LORS; l++) {
        const double y = inputs->measured[l];
        const double e = (double)inputs->estimated[l] + inputs->additive[l];
        ratio[l] = y > 0.0 && e > 0.0 ? (float)(y / e) : 0.0f;
        if (e == 0.0) {
            fit.left_out_lors += y > 0.0;
            fit.left_out_counts += y;
            continue;
        }
        fit.log_likelihood += (y > 0.0 ? y * log(e) : 0.0) - e;
        fit.measured_counts += y;
        fit.estimated_counts += e;
    }
    return fit;
}

/* Only the values that are not zero. The caller frees index and values. */
static lr_lor_data sparse(const float *dense)
{
    lr_lor_data data = {.index = calloc(NUM_LORS, sizeof(int64_t)),
                        .values = calloc(NUM_LORS, sizeof(float))};
    assert_true(data.index != NULL && data.values != NULL);
    for (int l = 0; l < NUM_LORS; l++) {
        if (dense[l] != 0.0f) {
            data.index[data.count] = l;
            data.values[data.count++] = dense[l];
        }
    }
    return data;
}

static void test_fit_is_the_plain_sum(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    struct inputs inputs;
    inputs_init(&inputs, &state);
    float *expected = calloc(NUM_LORS, sizeof(float)), *values = calloc(NUM_LORS, sizeof(float));
    assert_true(expected != NULL && values != NULL);
    const struct lr_fit plain = plain_fit(&inputs, expected);
    assert_true(plain.left_out_lors > 1000);
    lr_lor_data measured[2] = {{.count = NUM_LORS, .values = inputs.measured},
                               sparse(inputs.measured)};
    lr_lor_data additive[2] = {{.count = NUM_LORS, .values = inputs.additive},
                               sparse(inputs.additive)};
    for (int k = 0; k < 4; k++) {
        const struct lr_fit_input input = {.measured = &measured[k % 2],
                                           .additive = &additive[k / 2],
                                           .num_lors = NUM_LORS,
                                           .threads = 1 + k};
        struct lr_fit fit;
        memcpy(values, inputs.estimated, NUM_LORS * sizeof(float));
        assert_int_equal(lr_fit_ratio(&input, values, &fit), LR_OK);
        assert_memory_equal(values, expected, NUM_LORS * sizeof(float));
        assert_close(fit.log_likelihood, plain.log_likelihood, 1e-11);
        assert_close(fit.measured_counts, plain.measured_counts, 1e-12);
        assert_close(fit.estimated_counts, plain.estimated_counts, 1e-12);
        assert_int_equal(fit.left_out_lors, plain.left_out_lors);
        assert_close(fit.left_out_counts, plain.left_out_counts, 1e-12);
    }
    free(measured[1].index);
    free(measured[1].values);
    free(additive[1].index);
    free(additive[1].values);
    free(expected);
    free(values);
    inputs_finish(&inputs);
}

/* Some LORs only, whose values and additive values stand in another place than their numbers, give
 * what they give among all. */
static void test_runs_pick_their_lors(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    struct inputs inputs;
    inputs_init(&inputs, &state);
    float *expected = calloc(NUM_LORS, sizeof(float));
    assert_non_null(expected);
    (void)plain_fit(&inputs, expected);
    const struct lr_lor_run runs[3] = {{17, 0, 5}, {1000, 5, 30000}, {150000, 30005, 1}};
    enum { NUM_VALUES = 30006 };
    float *values = calloc(NUM_VALUES, sizeof(float)),
          *additive = calloc(NUM_VALUES, sizeof(float));
    assert_true(values != NULL && additive != NULL);
    lr_lor_data measured[2] = {{.count = NUM_LORS, .values = inputs.measured},
                               sparse(inputs.measured)};
    for (int k = 0; k < 4; k++) {
        double counts = 0.0;
        for (int n = 0; n < 3; n++) {
            for (int64_t l = 0; l < runs[n].count; l++) {
                const int64_t lor = runs[n].first + l;
                values[runs[n].begin + l] = inputs.estimated[lor];
                additive[runs[n].begin + l] = inputs.additive[lor];
                const bool counts_it = inputs.estimated[lor] > 0.0f || inputs.additive[lor] > 0.0f;
                counts += counts_it ? inputs.measured[lor] : 0.0;
            }
        }
        const lr_lor_data all_additive = {.count = NUM_LORS, .values = inputs.additive};
        const struct lr_fit_input input = {.measured = &measured[k % 2],
                                           .additive = k / 2 ? &all_additive : NULL,
                                           .additive_values = k / 2 ? NULL : additive,
                                           .runs = runs,
                                           .num_runs = 3,
                                           .threads = 2};
        struct lr_fit fit;
        assert_int_equal(lr_fit_ratio(&input, values, &fit), LR_OK);
        assert_close(fit.measured_counts, counts, 1e-12);
        for (int n = 0; n < 3; n++) {
            assert_memory_equal(values + runs[n].begin, expected + runs[n].first,
                                (size_t)runs[n].count * sizeof(float));
        }
    }
    free(measured[1].index);
    free(measured[1].values);
    free(values);
    free(additive);
    free(expected);
    inputs_finish(&inputs);
}

static void test_same_bits_for_any_threads(void **unused)
{
    (void)unused;
    uint64_t state = test_seed();
    struct inputs inputs;
    inputs_init(&inputs, &state);
    const lr_lor_data measured = {.count = NUM_LORS, .values = inputs.measured};
    float *values = calloc(NUM_LORS, sizeof(float));
    assert_non_null(values);
    struct lr_fit first = {0};
    for (int threads = 1; threads <= 4; threads++) {
        const struct lr_fit_input input = {
            .measured = &measured, .num_lors = NUM_LORS, .threads = threads};
        struct lr_fit fit;
        memcpy(values, inputs.estimated, NUM_LORS * sizeof(float));
        assert_int_equal(lr_fit_ratio(&input, values, &fit), LR_OK);
        first = threads == 1 ? fit : first;
        assert_true(fit.log_likelihood == first.log_likelihood);
        assert_true(fit.estimated_counts == first.estimated_counts);
    }
    free(values);
    inputs_finish(&inputs);
}

/* Estimates next to nothing must not turn the back-projection into infinity. */
static void test_ratio_stays_finite(void **state)
{
    (void)state;
    float measured[2] = {1.0f, 1e30f}, values[2] = {1e-44f, 1e-20f};
    const lr_lor_data data = {.count = 2, .values = measured};
    const struct lr_fit_input input = {.measured = &data, .num_lors = 2, .threads = 1};
    struct lr_fit fit;
    assert_int_equal(lr_fit_ratio(&input, values, &fit), LR_OK);
    assert_true(isfinite(values[0]) && isfinite(values[1]) && values[0] > 1e37f);
    assert_int_equal(fit.left_out_lors, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fit_is_the_plain_sum),
        cmocka_unit_test(test_runs_pick_their_lors),
        cmocka_unit_test(test_same_bits_for_any_threads),
        cmocka_unit_test(test_ratio_stays_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
