/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Several jobs with OpenGL contexts of their own at the same time. */
#include "waits.h"

#include "viewer/study/maps.h"
#include "viewer/study/tube.h"
#include "viewer/study/voxel.h"

enum { NUM_JOBS = 3 };

static void must_be_done(enum job_state state, const struct job_report *report)
{
    if (state != JOB_DONE) fail_msg("%s", report->error);
}

/* Both jobs draw the same lines, raster in single precision: elements agree to 1e-4 of the largest, and a line near a
 * crystal's edge may hit the crystal on either side. */
static void compare(const struct voxel_result *a, const struct voxel_result *b)
{
    const struct voxel_window *first = a->windows, *second = b->windows;
    int64_t other = 0;
    for (int w = 0; w < a->num_windows; w++) {
        const int64_t count = (int64_t)first[w].size[0] * first[w].size[1];
        for (int64_t n = 0; n < count; n++) {
            other += first[w].lors[n] != second[w].lors[n];
            assert_true(fabsf(first[w].weight[n] - second[w].weight[n]) <= 1e-4f * a->high_weight ||
                        first[w].lors[n] != second[w].lors[n]);
        }
        assert_true(other <= count / 50);
    }
    assert_close(a->point_sampled.sum, b->point_sampled.sum, 0.02);
}

static void contexts_do_not_get_in_each_others_way(void **state)
{
    struct study_view view;
    const lr_grid grid = {{6, 5, 4}, {3, 3, 3}, {-7, -6, -5}};
    struct study *study = study_opened(&view, &(struct study_wish){.scanner = "two-opposed-modules", .grid = &grid});
    struct voxel *reference = voxel_create(NULL), *voxels[NUM_JOBS];
    struct task_runner maps[NUM_JOBS];
    struct job_report report;
    struct voxel_request request = {.point_mm = {1.3, -2.1, 0.7}, .all_primaries = true};
    const struct sensitivity_request sum = {.backend = "compute", .samples = 1};
    assert_ok(voxel_ask(reference, &view, &request, NULL));
    request.backend = "raster";
    for (int k = 0; k < NUM_JOBS; k++) {
        voxels[k] = voxel_create(NULL);
        task_runner_init(&maps[k], &sensitivity_kind);
        assert_ok(voxel_ask(voxels[k], &view, &request, NULL), sensitivity_ask(&maps[k], &view, &sum, NULL));
    }
    must_be_done(voxel_wait(reference, &report), &report);
    for (int k = 0; k < NUM_JOBS; k++) {
        must_be_done(voxel_wait(voxels[k], &report), &report);
        must_be_done(task_runner_wait(&maps[k]), &maps[k].report);
        compare(voxel_result(reference, NULL), voxel_result(voxels[k], NULL));
        const struct sensitivity_result *own = maps[k].result, *first = maps[0].result;
        assert_close(own->mean, first->mean, 1e-5);
        assert_true(own->mean > 0);
    }
    for (int k = 0; k < NUM_JOBS; k++) {
        voxel_destroy(voxels[k]);
        task_runner_finish(&maps[k]);
    }
    voxel_destroy(reference);
    study_close(study, &view);
}

int main(int argc, char **argv)
{
    if (!test_backend_is_usable(argc, argv, "raster")) return 77;
    const struct CMUnitTest tests[] = {CASE(contexts_do_not_get_in_each_others_way)};
    return cmocka_run_group_tests_name(test_backend, tests, NULL, NULL);
}
