/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Live reconstructions of a study whose image has a spot. */
#ifndef LR_TESTS_VIEWER_LIVE_H
#define LR_TESTS_VIEWER_LIVE_H

#include "waits.h"

#include "viewer/study/live.h"

#include <unistd.h>

enum { NUM_VOXELS = 10 * 9 * 6 };
static const lr_grid grid = {{10, 9, 6}, {3, 3, 3}, {-13, -11, -8}};

struct bench {
    struct study *study;
    struct study_view view;
    struct live *live;
    struct handover *handover; /* or NULL */
};

static inline void bench_finish(void *self)
{
    struct bench *bench = self;
    live_destroy(bench->live);
    const bool has_window = bench->handover != NULL;
    if (has_window) handover_destroy(bench->handover);
    study_close(bench->study, &bench->view);
    if (has_window) assert_int_equal(glGetError(), GL_NO_ERROR);
}

/* path: the image's file, which exists only while it is opened; ctx: the window's context, or NULL. */
static inline struct bench *bench_open(const char *path, struct gl_context *ctx)
{
    struct bench *bench = kept(1, sizeof(*bench));
    lr_image *image = lr_image_create(&grid, NULL);
    for (int v = 0; v < NUM_VOXELS; v++) image->values[v] = v / 90 == 3 && v % 10 > 2 && v % 10 < 7 ? 2 : 0.1f;
    assert_int_equal(lr_image_write(path, image, NULL), LR_OK);
    lr_image_destroy(image);
    bench->study = study_opened(&bench->view, &(struct study_wish){.scanner = "two-opposed-modules", .image = path});
    bench->live = live_create(NULL);
    bench->handover = ctx != NULL ? handover_create(ctx, &bench->view.grid) : NULL;
    assert_true(ctx == NULL || bench->handover != NULL);
    unlink(path);
    return keep_object(bench, bench_finish);
}

static inline void start(struct bench *bench, const struct live_request *request)
{
    struct test_log log;
    test_log_init(&log);
    if (live_start(bench->live, &bench->view, request, &log.log) != LR_OK) fail_msg("%s", log.error);
}

/* Waits until the reconstruction is paused, done or failed. */
static inline enum live_state live_wait(struct live *live, struct job_report *report)
{
    enum live_state state = live_poll(live, report);
    for (; state == LIVE_PREPARING || state == LIVE_RUNNING; state = live_poll(live, report)) nap();
    return state;
}

static inline void expect_state(struct bench *bench, enum live_state wanted)
{
    struct job_report report;
    const enum live_state state = live_wait(bench->live, &report);
    if (state == LIVE_FAILED) fail_msg("%s", report.error);
    assert_int_equal(state, wanted);
}

static inline void run(struct bench *bench, const struct live_request *request)
{
    start(bench, request);
    expect_state(bench, LIVE_DONE);
}

/* A context that stands for that of a window. NULL, with the reason printed, if there is none. The caller releases and
 * destroys it. */
static inline struct gl_context *window_context(void)
{
    static struct test_log log; /* outlives the context */
    test_log_init(&log);
    struct gl_context *ctx = gl_context_create(&(struct gl_context_params){.log = &log.log});
    if (ctx != NULL && gl_context_make_current(ctx) == LR_OK) return ctx;
    print_message("skipped: images on the device: %s\n", log.error);
    gl_context_destroy(ctx);
    return NULL;
}

/* Compares two images; tolerances are relative to the largest value. */
static inline void assert_near(const float *got, const float *wanted, int count, double rounding)
{
    const double off = worst_apart(got, wanted, count);
    if (!(off <= rounding)) fail_msg("off by %g of the largest", off);
}

#endif
