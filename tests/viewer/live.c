/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Live reconstruction gives the same results as the library, and can be paused, stepped, stopped and destroyed at any
 * moment. */
#include "live.h"

static const struct live_request usual = {
    .counts = 1e5, .seed = 7, .backend = "cpu", .samples = 1, .mode = LR_MODE_EXACT, .store = LR_STORE_YES};

/* The library's results for the same data. */
struct library {
    lr_operator *op;
    lr_lor_data *data;
    float image[NUM_VOXELS];
    double log_likelihood[8], truth[NUM_VOXELS];
};

static lr_status note(void *user, const lr_iteration *done)
{
    struct library *library = user;
    library->log_likelihood[done->number - 1] = done->log_likelihood;
    return LR_OK;
}

/* request: gives iterations, subsets and algorithm. */
static void library_run(const struct bench *bench, const struct live_request *request, struct library *library)
{
    double sum = 0;
    library->op = lr_operator_create(&filled(lr_operator_params, .lors = bench->view.lors, .grid = &bench->view.grid,
                                             .backend = "cpu", .mode = LR_MODE_EXACT, .samples = {1, 1, 1},
                                             .store = LR_STORE_YES));
    library->data = lr_lor_data_create(bench->view.lors, NULL);
    assert_ok(array_forward(library->op, bench->view.image->values, library->data->values));
    for (int64_t n = 0; n < library->data->count; n++) sum += library->data->values[n];
    for (int64_t n = 0; n < library->data->count; n++)
        library->data->values[n] = (float)(1e5 / sum * library->data->values[n]);
    for (int v = 0; v < NUM_VOXELS; v++) library->truth[v] = 1e5 / sum * bench->view.image->values[v];
    assert_ok(lr_poisson(library->data->values, library->data->count, 7, NULL));
    const lr_vector counts = lr_lor_data_vector(library->data);
    const lr_recon_params params =
        filled(lr_recon_params, .op = library->op, .data = &counts, .iterations = request->iterations,
               .subsets = request->subsets, .algorithm = request->algorithm, .relaxation = request->relaxation,
               .relaxation_fall = request->relaxation_fall, .own_steps = true, .iteration = note, .user = library);
    lr_vector image = lr_vector_of_floats(library->image, NUM_VOXELS);
    assert_ok(lr_recon(&params, &image));
}

static void library_finish(struct library *library)
{
    lr_lor_data_destroy(library->data);
    lr_operator_destroy(library->op);
}

/* Images are the same bits, because the cpu backend repeats its results exactly. */
static void it_is_the_librarys_reconstruction(void **state)
{
    struct library library;
    struct live_iteration history[8];
    float image[NUM_VOXELS];
    int64_t serial = 0;
    struct bench *bench = bench_open("live_image.nii", NULL);
    struct live_request request = usual;
    request.iterations = 5;
    library_run(bench, &request, &library);
    run(bench, &request);
    assert_true(live_copy_image(bench->live, &serial, image));
    assert_false(live_copy_image(bench->live, &serial, image)); /* nothing newer */
    assert_int_equal(serial, 5);
    assert_memory_equal(image, library.image, sizeof(image));
    assert_int_equal(live_copy_history(bench->live, 0, history, 8), 5);
    for (int n = 0; n < 5; n++) {
        assert_int_equal(history[n].number, n + 1);
        assert_true(history[n].log_likelihood == library.log_likelihood[n]);
        assert_true(n == 0 || history[n].log_likelihood > history[n - 1].log_likelihood);
    }
    double off = 0, norm = 0;
    for (int v = 0; v < NUM_VOXELS; v++) {
        off += pow(library.image[v] - library.truth[v], 2);
        norm += pow(library.truth[v], 2);
    }
    assert_close(history[4].difference, sqrt(off / norm), 1e-6); /* truth in float */
    assert_ints(live_copy_history(bench->live, 3, history, 1), 5, history[0].number, 4);
    library_finish(&library);
}

/* Block RAMLA with a falling relaxation gives the same bits as lr_recon, and each setting has an effect. OSEM ignores
 * the settings of RAMLA. */
static void ramla_is_the_librarys(void **state)
{
    struct library library;
    float images[4][NUM_VOXELS];
    struct bench *bench = bench_open("live_image.nii", NULL);
    for (int n = 0; n < 4; n++) {
        struct live_request request = usual;
        int64_t serial = 0;
        request.iterations = 3;
        request.algorithm = n < 3 ? LR_ALGORITHM_RAMLA : LR_ALGORITHM_OSEM;
        request.relaxation = n == 0 ? 1.0 : 0.6;
        request.relaxation_fall = n == 2 ? 0.5 : 0;
        run(bench, &request);
        assert_true(live_copy_image(bench->live, &serial, images[n]));
        request.relaxation = n < 3 ? request.relaxation : 0;
        library_run(bench, &request, &library);
        assert_memory_equal(images[n], library.image, sizeof(images[n]));
        library_finish(&library);
        for (int m = 0; m < n; m++) assert_memory_not_equal(images[n], images[m], sizeof(images[n]));
    }
}

static void steps_are_single_iterations(void **state)
{
    struct live_request request = usual;
    request.begins_paused = true;
    struct bench *bench = bench_open("live_image.nii", NULL);
    assert_int_equal(live_poll(bench->live, NULL), LIVE_IDLE);
    start(bench, &request);
    for (int n = 1; n <= 6; n++) {
        expect_state(bench, LIVE_PAUSED);
        nap(); /* time in which nothing may happen */
        assert_int_equal(live_copy_history(bench->live, 0, NULL, 0), n);
        live_control(bench->live, LIVE_STEP);
    }
    expect_state(bench, LIVE_PAUSED);
    live_control(bench->live, LIVE_STEP);
    live_control(bench->live, LIVE_PAUSE); /* may come before or after the step */
    expect_state(bench, LIVE_PAUSED);
    const int before = live_copy_history(bench->live, 0, NULL, 0);
    assert_true(before == 7 || before == 8);
    live_control(bench->live, LIVE_RESUME);
    while (live_copy_history(bench->live, 0, NULL, 0) < before + 3) nap();
    live_control(bench->live, LIVE_PAUSE);
    expect_state(bench, LIVE_PAUSED);
    assert_int_equal(live_start(bench->live, &bench->view, &request, NULL), LR_USAGE);
    live_control(bench->live, LIVE_STOP);
    expect_state(bench, LIVE_DONE);
    /* The history stays readable after a stop; a new start clears it. */
    assert_true(live_copy_history(bench->live, 0, NULL, 0) >= before + 3);
    request.iterations = 2;
    request.begins_paused = false;
    run(bench, &request);
    assert_int_equal(live_copy_history(bench->live, 0, NULL, 0), 2);
}

/* Stops or destroys the reconstruction at random moments. A hang exceeds the test's time limit. */
static void it_ends_at_any_moment(void **state)
{
    uint64_t seed = test_seed();
    struct bench *bench = bench_open("live_image.nii", NULL);
    for (int n = 0; n < 60; n++) {
        struct live_request request = usual;
        request.begins_paused = n % 3 == 0;
        request.subsets = 1;
        start(bench, &request);
        const int naps = (int)(4 * test_random(&seed));
        for (int k = 0; k < naps; k++) {
            nap();
            if (n % 4 == 1) live_control(bench->live, LIVE_STEP);
        }
        if (n % 5 == 0) {
            live_destroy(bench->live);
            bench->live = live_create(NULL);
            continue;
        }
        live_control(bench->live, LIVE_STOP);
        expect_state(bench, LIVE_DONE);
    }
}

/* Measured data are used unchanged, and compared with an image if there is one. */
static void measured_data_come_first(void **state)
{
    struct library library;
    struct live_iteration history[8];
    float image[NUM_VOXELS];
    int64_t serial = 0;
    struct bench *bench = bench_open("live_image.nii", NULL);
    struct live_request request = usual;
    request.iterations = 3;
    library_run(bench, &request, &library);
    assert_ok(lr_lor_data_write("live_data.h5", bench->view.lors, library.data, NULL));
    study_reopen(bench->study, &bench->view, &(struct study_wish){.data = "live_data.h5"});
    for (int with = 0; with < 2; with++) {
        request.reference = with ? bench->view.image : NULL;
        run(bench, &request);
        assert_true(live_copy_image(bench->live, &serial, image));
        assert_memory_equal(image, library.image, sizeof(image));
        (void)live_copy_history(bench->live, 0, history, 8);
        assert_int_equal(isnan(history[2].difference), !with);
    }
    unlink("live_data.h5");
    library_finish(&library);
}

/* Without noise, ML-EM approaches the true image. */
static void expectations_lead_to_the_truth(void **state)
{
    struct live_iteration history[30];
    struct live_request request = usual;
    request.without_noise = true;
    request.iterations = 30;
    struct bench *bench = bench_open("live_image.nii", NULL);
    run(bench, &request);
    assert_int_equal(live_copy_history(bench->live, 0, history, 30), 30);
    for (int n = 1; n < 30; n++) assert_true(history[n].difference < history[n - 1].difference);
    assert_close(history[29].measured_counts, 1e5, 1e-5);
}

static void refusals(void **state)
{
    struct test_log log = TEST_LOG(log);
    struct job_report report;
    const struct study_view nothing = {0};
    struct bench *bench = bench_open("live_image.nii", NULL);
    assert_int_equal(live_start(bench->live, &nothing, &usual, &log.log), LR_USAGE);
    struct study_view bare = bench->view;
    bare.image = NULL;
    assert_fails(live_start(bench->live, &bare, &usual, &log.log), LR_USAGE, &log, "no data");
    struct live_request request = usual;
    const lr_image other = {.grid = {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}}};
    request.reference = &other;
    assert_fails(live_start(bench->live, &bench->view, &request, &log.log), LR_USAGE, &log, "grid");
    assert_int_equal(live_poll(bench->live, NULL), LIVE_IDLE);
    /* There are more subsets than module pairs: the library reports this error while the job runs. */
    request = usual;
    request.subsets = 1000;
    start(bench, &request);
    assert_int_equal(live_wait(bench->live, &report), LIVE_FAILED);
    assert_true(strstr(report.error, "subsets") != NULL);
}

test_main("viewer_live", cmocka_unit_test(it_is_the_librarys_reconstruction), cmocka_unit_test(ramla_is_the_librarys),
          cmocka_unit_test(steps_are_single_iterations), cmocka_unit_test(it_ends_at_any_moment),
          cmocka_unit_test(measured_data_come_first), cmocka_unit_test(expectations_lead_to_the_truth),
          cmocka_unit_test(refusals))
