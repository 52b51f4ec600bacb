/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What recon --json told of a run comes back as curves, by iterations and by seconds. */
#include "test.h"

#include "io/files/file_kind.h"
#include "io/sessions/run_record.h"

#include <math.h>
#include <unistd.h>

static lr_status parse(const char *text, struct lr_run_record *record, struct test_log *log)
{
    test_log_init(log);
    return lr_run_record_parse("run.json", text, (int64_t)strlen(text), record, &log->log);
}

/* Three iterations, ready after 1, 2 and 4 s. */
static const char three[] = "{\"verb\": \"recon\", \"version\": \"0.1.0\", \"operator\": {\"iterations\": [1]}, "
                            "\"algorithm\": \"osem\", \"subsets\": 7, \"iterations\": ["
                            "{\"number\": 5, \"seconds\": 1, \"log_likelihood\": -1e3, \"elapsed_seconds\": 1}, "
                            "{\"number\": 6, \"seconds\": 1, \"log_likelihood\": -8e2, \"elapsed_seconds\": 2, "
                            "\"image_error\": 0.5}, "
                            "{\"number\": 7, \"seconds\": 2, \"log_likelihood\": -6e2, \"elapsed_seconds\": 4, "
                            "\"image_error\": 0.25}]}\n";

static void test_curves(void **state)
{
    (void)state;
    struct test_log log;
    struct lr_run_record record;
    float timed[7];
    assert_int_equal(parse(three, &record, &log), LR_OK);
    assert_string_equal(record.name, "osem, 7 subsets");
    assert_int_equal(record.num_images, 1);
    assert_false(record.has_frames);
    const struct lr_run_image *image = &record.images[0];
    assert_int_equal(image->count, 3);
    assert_int_equal(image->first, 5);
    assert_true(image->has[LR_RUN_LIKELIHOOD] && image->has[LR_RUN_ERROR]);
    assert_true(isnan(image->values[LR_RUN_ERROR][0]));
    assert_true(image->values[LR_RUN_ERROR][2] == 0.25f);
    /* Of 7 places half a second each: 1, 1.5, 2, 2.5, 3, 3.5, 4. */
    static const float wanted[7] = {-1000, -900, -800, -750, -700, -650, -600};
    lr_run_image_by_seconds(image, LR_RUN_LIKELIHOOD, 7, timed);
    for (int n = 0; n < 7; n++) assert_true(fabsf(timed[n] - wanted[n]) < 1e-3f);
    lr_run_image_by_seconds(image, LR_RUN_ERROR, 7, timed);
    assert_true(isnan(timed[0]) && isnan(timed[1])); /* not told, and nothing is made up */
    assert_true(timed[2] == 0.5f && timed[6] == 0.25f);
    lr_run_record_finish(&record);
}

/* Frames tell the seconds of each iteration alone; one has no iterations. */
static void test_frames(void **state)
{
    (void)state;
    struct test_log log;
    struct lr_run_record record;
    static const char text[] = "{\"verb\": \"recon\", \"frames\": [{\"iterations\": ["
                               "{\"number\": 1, \"seconds\": 2, \"log_likelihood\": -3}, "
                               "{\"number\": 2, \"seconds\": 3, \"log_likelihood\": -2}]}, {\"iterations\": []}, "
                               "{\"iterations\": [{\"number\": 1, \"seconds\": 4, \"image_error\": 0.5}]}]}";
    assert_int_equal(parse(text, &record, &log), LR_OK);
    assert_true(record.has_frames);
    assert_int_equal(record.num_images, 3);
    const struct lr_run_image *images = record.images;
    assert_int_equal(images[0].count, 2);
    assert_true(images[0].seconds[0] == 2.0f && images[0].seconds[1] == 5.0f);
    assert_true(images[0].has[LR_RUN_LIKELIHOOD] && !images[0].has[LR_RUN_ERROR]);
    assert_int_equal(images[1].count, 0);
    assert_int_equal(images[2].count, 1);
    assert_true(images[2].seconds[0] == 4.0f && images[2].values[LR_RUN_ERROR][0] == 0.5f);
    assert_false(images[2].has[LR_RUN_LIKELIHOOD]);
    lr_run_record_finish(&record);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"verb\": \"recon\", \"iterations\": []}", "it has no iterations"},
        {"{\"verb\": \"recon\"}", "it has no iterations"},
        {"{\"verb\": \"recon\", \"frames\": [{\"iterations\": []}, 7]}", "it has no iterations"},
        {"{\"verb\": \"recon\", \"frames\": [{\"iterations\": [{\"image_error\": 1}]}, "
         "{\"iterations\": [{\"seconds\": \"long\"}]}]}",
         "seconds"},
        {"[1, 2]", "it has no iterations"},
        {"{\"verb\": \"recon\", \"iterations\": [{\"number\": 1}]}",
         "tell neither a log-likelihood nor an image error"},
        {"{\"verb\": \"recon\", \"iterations\": [{\"log_likelihood\": \"low\"}]}", "log_likelihood"},
        {"{\"verb\": \"recon\", \"subsets\": \"7,\", \"iterations\": [{\"log_likelihood\": -1}]}", "subsets"},
        {"{\"verb\": \"recon\", \"iterations\": [{\"log_likelihood\": -1", "not valid YAML"},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct test_log log;
        struct lr_run_record record;
        assert_int_equal(parse(cases[k].text, &record, &log), LR_BAD_INPUT);
        assert_true(record.num_images == 0 && record.images == NULL);
        if (strstr(log.error, cases[k].words) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", log.error, cases[k].words);
    }
}

static void test_files_are_known_by_how_they_begin(void **state)
{
    (void)state;
    static const char name[] = "viewer_record_test.txt";
    static const struct {
        const char *text;
        enum lr_file_kind kind;
    } cases[] = {{three, LR_FILE_RUN},
                 {"\n{ \"verb\" :\n\"recon\", ", LR_FILE_RUN},
                 {"{\"verb\": \"direct recon\", ", LR_FILE_UNKNOWN},
                 {"{\"verb\": \"reconvert\"", LR_FILE_UNKNOWN},
                 {"{\"verb\": \"info\"", LR_FILE_UNKNOWN},
                 {"{\"verb\"", LR_FILE_UNKNOWN}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        FILE *file = fopen(name, "w");
        assert_non_null(file);
        assert_true(fputs(cases[k].text, file) >= 0);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(lr_file_kind_of(name), cases[k].kind);
    }
    assert_int_equal(unlink(name), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_curves),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_files_are_known_by_how_they_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
