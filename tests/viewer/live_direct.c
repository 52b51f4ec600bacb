/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Live reconstruction of histo-images by the family direct. The image equals that of lr_recon, on the host and on the
 * device; on the device, nothing is copied to it after the first iteration. */
#include "live.h"

enum { NX = 16, NY = 15, NZ = 9, NUM_CELLS = NX * NY * NZ, NUM_VIEWS = 6, ITERATIONS = 4 };

/* Tolerance relative to the largest voxel: a few updates with sums in another order. */
static const double rounding = 1e-5;

static struct gl_context *ctx; /* the window's, in place of one */
static lr_grid cells;
static float activity[NUM_CELLS];

static const lr_direct_kernel kernel = {
    .resolution = {.tof_ps = 150, .model = LR_RADIAL_VARIANT2, .edge_mm = 48, .axial_mm = 5}};

static lr_histo_images *make_histo(void)
{
    const lr_view_set set = {3, 2, 12};
    lr_view views[NUM_VIEWS];
    for (int k = 0; k < NUM_VIEWS; k++) views[k] = lr_view_set_at(&set, k);
    lr_histo_images *histo = lr_histo_images_create(&cells, views, NUM_VIEWS, NULL);
    lr_operator *op = lr_direct_create(&(lr_direct_params){
        .grid = &cells, .views = views, .num_views = NUM_VIEWS, .kernel = kernel, .backend = "cpu"});
    assert_non_null(op);
    assert_ok(array_forward(op, activity, histo->values));
    lr_operator_destroy(op);
    return histo;
}

/* The library's reconstruction of the same data. */
static void reconstruct(const lr_histo_images *histo, const char *backend, lr_recon_algorithm algorithm, float *image)
{
    lr_operator *op = keep(lr_direct_create(&(lr_direct_params){
        .grid = &cells, .views = histo->views, .num_views = histo->num_views, .kernel = kernel, .backend = backend}));
    const lr_vector data = lr_vector_of_floats(histo->values, (int64_t)NUM_VIEWS * NUM_CELLS);
    lr_vector to = lr_vector_of_floats(image, NUM_CELLS);
    const bool is_ramla = algorithm == LR_ALGORITHM_RAMLA;
    assert_non_null(op);
    assert_ok(lr_recon(&filled(lr_recon_params, .op = op, .data = &data, .algorithm = algorithm,
                               .relaxation = is_ramla ? 0.7 : 0, .subsets = 3, .iterations = ITERATIONS),
                       &to));
}

static struct live_request request_of(const lr_histo_images *histo, lr_recon_algorithm algorithm)
{
    return filled(struct live_request, .family = LIVE_DIRECT, .algorithm = algorithm, .relaxation = 0.7, .subsets = 3,
                  .iterations = ITERATIONS, .kernel = kernel, .histo = histo);
}

static void read_shown(struct handover *handover, float *texels)
{
    while (!handover_take(handover)) nap();
    assert_memory_equal(&handover->grid, &cells, sizeof(handover->grid));
    assert_ok(gl_texture_read(handover->textures[handover->shown], NULL, texels));
}

/* Compares the image on the host, and then the image in the texture for a window. */
static void the_image_is_the_librarys(void **state)
{
    static float wanted[NUM_CELLS], image[NUM_CELLS], texels[NUM_CELLS];
    lr_histo_images *histo = make_histo();
    struct live *live = live_create(NULL);
    struct bench bench = {.live = live};
    int64_t serial = 0;
    for (int algorithm = 0; algorithm < 2; algorithm++) {
        struct live_iteration history[ITERATIONS];
        struct live_request request = request_of(histo, (lr_recon_algorithm)algorithm);
        request.backend = "cpu";
        reconstruct(histo, "cpu", request.algorithm, wanted);
        run(&bench, &request);
        assert_string_equal(live_get_where(live).backend, "cpu");
        assert_true(live_copy_image(live, &serial, image));
        assert_near(image, wanted, NUM_CELLS, rounding);
        if (ctx == NULL) continue;
        request.backend = "compute";
        request.handover = handover_create(ctx, &cells);
        assert_non_null(request.handover);
        run(&bench, &request);
        assert_string_equal(live_get_where(live).backend, "compute");
        assert_true(live_get_where(live).is_on_device);
        read_shown(request.handover, texels);
        assert_near(texels, wanted, NUM_CELLS, rounding);
        assert_int_equal(live_copy_history(live, 0, history, ITERATIONS), ITERATIONS);
        assert_true(history[0].traffic.to_device > 0);
        for (int n = 1; n < ITERATIONS; n++) {
            assert_int_equal(history[n].traffic.to_device, 0);
            assert_in_range(history[n].traffic.to_host, 1, NUM_CELLS * (int64_t)sizeof(float) * 2);
        }
        assert_true(live_copy_image(live, &serial, image));
        handover_destroy(request.handover);
    }
    live_destroy(live);
    lr_histo_images_destroy(histo);
}

/* Counts are simulated from the image, for the views of a set, if there are no histo-images. */
static void counts_are_drawn_from_the_image(void **state)
{
    static float values[NUM_CELLS];
    lr_image image = {.grid = cells, .values = activity};
    struct live *live = live_create(NULL);
    struct bench bench = {.view = {.grid = cells, .image = &image}, .live = live};
    struct live_iteration history[ITERATIONS];
    struct live_request request = request_of(NULL, LR_ALGORITHM_OSEM);
    int64_t serial = 0;
    request.backend = "cpu";
    request.views = (lr_view_set){4, 1, 0};
    request.counts = 1e5;
    request.seed = 3;
    run(&bench, &request);
    assert_int_equal(live_copy_history(live, 0, history, ITERATIONS), ITERATIONS);
    assert_true(history[0].measured_counts > 0.9e5 && history[0].measured_counts < 1.1e5);
    assert_all(history[ITERATIONS - 1].difference < history[0].difference, live_copy_image(live, &serial, values));
    if (ctx != NULL) { /* the device is asked for, but the backend cpu has none */
        request.handover = handover_create(ctx, &cells);
        run(&bench, &request);
        assert_false(live_get_where(live).is_on_device);
        assert_says(live_get_where(live).why, "backend cpu");
        handover_destroy(request.handover);
    }
    live_destroy(live);
}

static void what_cannot_be_is_refused(void **state)
{
    const struct study_view nothing = {0};
    struct live *live = live_create(NULL);
    struct test_log log = TEST_LOG(log);
    struct live_request request = request_of(NULL, LR_ALGORITHM_OSEM);
    assert_fails(live_start(live, &nothing, &request, &log.log), LR_USAGE, &log, "no histo-images");
    lr_image image = {.grid = cells, .values = activity};
    const struct study_view study = {.grid = cells, .image = &image};
    request.views = (lr_view_set){.azimuths = -3};
    assert_int_equal(live_start(live, &study, &request, &log.log), LR_USAGE);
    live_destroy(live);
}

int main(void)
{
    struct CMUnitTest tests[] = {CASE(the_image_is_the_librarys), CASE(counts_are_drawn_from_the_image),
                                 CASE(what_cannot_be_is_refused)};
    cells = lr_grid_centred((const int[3]){NX, NY, NZ}, (const double[3]){4, 4, 4});
    for (int v = 0; v < NUM_CELLS; v++) activity[v] = v % NX > 4 && v % NX < 9 ? 20.0f : 2.0f;
    ctx = window_context();
    const int failed = test_run(NULL, "viewer_live_direct", tests, 3, NULL);
    if (ctx != NULL) gl_context_release(ctx);
    gl_context_destroy(ctx);
    return failed;
}
