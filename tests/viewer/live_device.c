/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Live reconstruction whose image stays on the device: the texture in the window equals the image that the host would
 * compute, whatever the window does meanwhile. */
#include "live.h"

/* Tolerance relative to the largest voxel: ten updates with divisions in single precision. */
static const double rounding = 2e-5;

static struct gl_context *ctx; /* the window's, in place of one */

static struct live_request request_of(const struct bench *bench, int iterations)
{
    return filled(struct live_request, .counts = 1e5, .seed = 7, .backend = "compute", .samples = 1,
                  .mode = LR_MODE_EXACT, .store = LR_STORE_NO, .iterations = iterations, .handover = bench->handover);
}

/* Does what a window does in each frame, until the newest image has arrived. */
static void take(struct bench *bench)
{
    while (!handover_take(bench->handover)) nap();
}

static void read_shown(const struct bench *bench, float *texels, double *largest)
{
    const struct handover *handover = bench->handover;
    assert_true(handover->has_shown);
    assert_memory_equal(&handover->grid, &bench->view.grid, sizeof(handover->grid));
    assert_ok(gl_texture_read(handover->textures[handover->shown], NULL, texels));
    *largest = handover->largest[handover->shown];
}

static void the_window_shows_what_the_host_computes(void **state)
{
    static float texels[NUM_VOXELS], image[NUM_VOXELS], last[NUM_VOXELS];
    struct live_iteration history[2][6];
    int64_t serial = 0;
    double largest;
    struct bench *bench = bench_open("live_device_image.nii", ctx);
    struct live_request request = request_of(bench, 6);
    request.handover = NULL;
    run(bench, &request);
    assert_false(live_get_where(bench->live).is_on_device);
    assert_true(live_copy_image(bench->live, &serial, image));
    assert_int_equal(live_copy_history(bench->live, 0, history[0], 6), 6);
    request.handover = bench->handover;
    run(bench, &request);
    assert_true(live_get_where(bench->live).is_on_device);
    take(bench);
    read_shown(bench, texels, &largest);
    assert_near(texels, image, NUM_VOXELS, rounding);
    assert_true(live_copy_image(bench->live, &serial, last)); /* copied once, at the end */
    assert_memory_equal(texels, last, sizeof(last));
    assert_false(handover_take(bench->handover));
    assert_int_equal(live_copy_history(bench->live, 0, history[1], 6), 6);
    double most = 0.0;
    for (int v = 0; v < NUM_VOXELS; v++) most = fmax(most, (double)texels[v]);
    assert_true(most == largest);
    for (int n = 0; n < 6; n++) {
        assert_close(history[1][n].log_likelihood, history[0][n].log_likelihood, 1e-5);
        assert_close(history[1][n].difference, history[0][n].difference, 1e-4);
    }
}

/* While the job writes further images, the image shown does not change; each image shown is complete. */
static void what_is_shown_is_whole(void **state)
{
    static float texels[NUM_VOXELS], again[NUM_VOXELS], steps[8][NUM_VOXELS];
    double largest;
    struct bench *bench = bench_open("live_device_image.nii", ctx);
    struct live_request request = request_of(bench, 0);
    request.begins_paused = true;
    start(bench, &request);
    for (int n = 0; n < 8; n++) { /* in single steps each is the newest */
        expect_state(bench, LIVE_PAUSED);
        take(bench);
        read_shown(bench, steps[n], &largest);
        live_control(bench->live, LIVE_STEP);
    }
    expect_state(bench, LIVE_PAUSED);
    live_control(bench->live, LIVE_STOP);
    expect_state(bench, LIVE_DONE);
    (void)handover_take(bench->handover);
    request.begins_paused = false;
    request.iterations = 8;
    start(bench, &request);
    int seen = 0;
    while (live_poll(bench->live, NULL) == LIVE_PREPARING || live_poll(bench->live, NULL) == LIVE_RUNNING) {
        if (!handover_take(bench->handover)) continue;
        read_shown(bench, texels, &largest);
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL); /* the job writes further images meanwhile */
        read_shown(bench, again, &largest);
        assert_memory_equal(texels, again, sizeof(texels));
        int which = 0;
        while (which < 8 && memcmp(texels, steps[which], sizeof(texels)) != 0) which++;
        assert_true(which < 8); /* the same bits in every run */
        seen++;
    }
    expect_state(bench, LIVE_DONE);
    (void)handover_take(bench->handover);
    read_shown(bench, texels, &largest);
    assert_memory_equal(texels, steps[7], sizeof(texels));
    print_message("%d of 8 images were seen while it ran\n", seen);
}

/* Stops and closes the reconstruction at random moments, with and without taking the written images. */
static void it_ends_at_any_moment(void **state)
{
    uint64_t seed = test_seed();
    for (int n = 0; n < 6; n++) {
        struct bench *bench = bench_open("live_device_image.nii", ctx);
        const struct live_request request = request_of(bench, 0);
        start(bench, &request);
        const int naps = (int)(60 * test_random(&seed));
        for (int k = 0; k < naps; k++) {
            nap();
            if (k % 3 == n % 3) (void)handover_take(bench->handover);
        }
        if (n % 2 == 0) {
            live_control(bench->live, LIVE_STOP);
            expect_state(bench, LIVE_DONE);
        }
        destroy_kept(NULL);
    }
}

/* An image with attenuation along lines passes through the host, and the reason is reported. */
static void what_the_device_cannot_goes_by_the_host(void **state)
{
    static float image[NUM_VOXELS];
    int64_t serial = 0;
    struct bench *bench = bench_open("live_device_image.nii", ctx);
    lr_image *mu = keep(lr_image_create(&grid, NULL));
    for (int v = 0; v < NUM_VOXELS; v++) mu->values[v] = 0.009f;
    struct study_view with_mu = bench->view;
    with_mu.mu = mu;
    struct live_request request = request_of(bench, 2);
    request.backend = "cpu";
    request.mode = LR_MODE_SAMPLED;
    request.rays = 2;
    request.mu_steps = 2;
    assert_ok(live_start(bench->live, &with_mu, &request, NULL));
    expect_state(bench, LIVE_DONE);
    assert_false(live_get_where(bench->live).is_on_device);
    assert_says(live_get_where(bench->live).why, "mu-map");
    assert_says(live_get_where(bench->live).why, "through the host");
    assert_true(live_copy_image(bench->live, &serial, image));
    assert_false(handover_take(bench->handover));
    live_destroy(bench->live);
    bench->live = NULL;
}

int main(void)
{
    struct CMUnitTest tests[] = {CASE(the_window_shows_what_the_host_computes), CASE(what_is_shown_is_whole),
                                 CASE(it_ends_at_any_moment), CASE(what_the_device_cannot_goes_by_the_host)};
    ctx = window_context();
    if (ctx == NULL) return 77;
    const int failed = test_run(NULL, "viewer_live_device", tests, 4, NULL);
    gl_context_release(ctx);
    gl_context_destroy(ctx);
    return failed;
}
