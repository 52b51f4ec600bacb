/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sensitivity and LOR images against the library. */
#include "waits.h"

#include "viewer/study/maps.h"

static const lr_grid grid = {{9, 8, 5}, {3, 3, 3}, {-12, -10, -7}};

/* The expected sums are in double, from another backend. */
static void sensitivity_is_the_sum_of_all_rows(void **state)
{
    struct study_view view;
    struct study *study = study_opened(&view, &(struct study_wish){.scanner = "two-opposed-modules", .grid = &grid});
    struct task_runner runner;
    task_runner_init(&runner, &sensitivity_kind);
    const struct sensitivity_request request = {.backend = "native", .samples = 2};
    assert_ok(sensitivity_ask(&runner, &view, &request, NULL));
    if (task_runner_wait(&runner) != JOB_DONE) fail_msg("%s", runner.report.error);
    const struct sensitivity_result *result = runner.result;
    assert_ints(result->mode, LR_MODE_EXACT, result->request.samples, 2);
    lr_operator_params params = {.lors = view.lors, .grid = &grid, .backend = "cpu", .mode = LR_MODE_EXACT};
    lr_grid_split_samples(&grid, 2, params.samples);
    lr_operator *op = lr_operator_create(&params);
    float *image = kept(9 * 8 * 5, sizeof(*image));
    assert_ok(array_sensitivity(op, image));
    double sum = 0;
    assert_true(worst_apart(image, result->image->values, 9 * 8 * 5) <= 1e-5);
    for (int v = 0; v < 9 * 8 * 5; v++) sum += image[v];
    assert_close(result->mean, sum / (9 * 8 * 5), 1e-5);
    lr_operator_destroy(op);
    task_runner_finish(&runner);
    study_close(study, &view);
}

/* Each pixel is the value of the LOR of its two crystals; dense and sparse are the same. */
static void pair_images_are_the_data(void **state)
{
    uint64_t seed = test_seed();
    struct study_view view;
    struct study *study = study_opened(&view, &(struct study_wish){.scanner = "safir-dual-ring-prototype"});
    lr_lor_data *dense = lr_lor_data_create(view.lors, NULL);
    int64_t *events = kept(dense->count * 10, sizeof(*events)), count = 0;
    for (int64_t n = 0; n < dense->count; n++) {
        dense->values[n] = test_random(&seed) < 0.1 ? (float)(int)(1 + 9 * test_random(&seed)) : 0;
        for (int k = 0; k < (int)dense->values[n]; k++) events[count++] = n;
    }
    lr_lor_data *sparse = lr_lor_data_bin(events, count, NULL);
    for (int64_t pair = 0; pair < view.lors->num_pairs; pair += 97) {
        struct pair_image image, other;
        const int turned[2] = {view.lors->pairs[pair][1], view.lors->pairs[pair][0]};
        assert_ok(pair_image_make(&view, view.lors->pairs[pair], dense, NULL, &image, NULL));
        assert_ok(pair_image_make(&view, turned, sparse, NULL, &other, NULL));
        assert_memory_equal(image.modules, other.modules, sizeof(image.modules));
        assert_memory_equal(image.size, other.size, sizeof(image.size));
        assert_memory_equal(image.values, other.values, (size_t)image.size[0] * (size_t)image.size[1] * sizeof(float));
        assert_true(image.sum == other.sum && image.largest == other.largest);
        double sum = 0;
        for (int64_t n = view.lors->offsets[pair]; n < view.lors->offsets[pair + 1]; n++) sum += dense->values[n];
        assert_true(sum == image.sum);
        for (int row = 0; row < image.size[1]; row++) {
            for (int column = 0; column < image.size[0]; column++) {
                const int64_t lor = pair_image_lor(&view, &image, column, row);
                const lr_lor parts = lr_lors_describe(view.lors, lor);
                const lr_module *modules = view.scanner->modules;
                assert_int_equal(parts.q * modules[parts.module_i].crystals[0] + parts.p, row);
                assert_int_equal(parts.s * modules[parts.module_j].crystals[0] + parts.r, column);
                assert_true(image.values[(int64_t)row * image.size[0] + column] == dense->values[lor]);
            }
        }
        assert_int_equal(pair_image_lor(&view, &image, image.size[0], 0), -1);
        const lr_row row = {0, 1, &view.lors->offsets[pair], (const double[]){0.5}};
        pair_image_finish(&other);
        assert_ok(pair_image_make(&view, turned, NULL, &row, &other, NULL));
        assert_true(other.values[0] == 0.5f && other.sum == 0.5);
        pair_image_finish(&image);
        pair_image_finish(&other);
    }
    lr_lor_data_destroy(dense);
    lr_lor_data_destroy(sparse);
    study_close(study, &view);
}

static void the_highest_come_first(void **state)
{
    float values[] = {0, 3, -1, 7, 3, 7, 2, 5};
    int64_t index[] = {1, 2, 3, 5, 8, 13, 21, 34};
    const lr_lor_data dense = {8, NULL, values}, sparse = {8, index, values};
    struct lor_value highest[10];
    assert_int_equal(highest_of_data(&dense, highest, 4), 4);
    static const int64_t places[4] = {3, 5, 7, 1};
    for (int k = 0; k < 4; k++)
        assert_true(highest[k].lor == places[k] && highest[k].value == (double)values[places[k]]);
    assert_int_equal(highest_of_data(&sparse, highest, 10), 6);
    assert_true(highest[0].lor == 5 && highest[1].lor == 13 && highest[5].lor == 21);
    assert_int_equal(highest_of_data(&sparse, highest, 0), 0);
}

static void refusals(void **state)
{
    struct test_log log = TEST_LOG(log);
    struct pair_image image;
    const struct study_view nothing = {0};
    const lr_lor_data none = {0};
    struct study_view view;
    struct study *study = study_opened(&view, &(struct study_wish){.scanner = "siemens-mmr"});
    struct task_runner runner;
    task_runner_init(&runner, &sensitivity_kind);
    assert_int_equal(sensitivity_ask(&runner, &nothing, &(struct sensitivity_request){0}, NULL), LR_USAGE);
    assert_int_equal(pair_image_make(&nothing, (int[]){0, 1}, &none, NULL, &image, &log.log), LR_USAGE);
    assert_fails(pair_image_make(&view, (int[]){0, 56}, &none, NULL, &image, &log.log), LR_USAGE, &log, "0 to 55");
    assert_int_equal(pair_image_make(&view, (int[]){3, 3}, &none, NULL, &image, &log.log), LR_USAGE);
    assert_int_equal(pair_image_lor(&view, &image, 0, 0), -1);
    task_runner_finish(&runner);
    study_close(study, &view);
}

test_main("viewer_maps", cmocka_unit_test(sensitivity_is_the_sum_of_all_rows),
          cmocka_unit_test(pair_images_are_the_data), cmocka_unit_test(the_highest_come_first),
          cmocka_unit_test(refusals))
