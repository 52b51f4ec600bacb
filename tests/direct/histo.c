/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Files of histo-images. */
#include "direct/cases.h"

#include <unistd.h>

static lr_histo_images *make(uint64_t *seed)
{
    const lr_grid grid = case_grid();
    lr_histo_images *histo = keep(lr_histo_images_create(&grid, case_views, NUM_ANGLES, NULL));
    for (int64_t k = 0; k < NUM_ANGLES * lr_grid_num_voxels(&grid); k++) histo->values[k] = (float)test_random(seed);
    return histo;
}

static const char *path_of(char path[64])
{
    snprintf(path, 64, "histo-%d.h5", (int)getpid());
    return path;
}

/* Views are read one by one, and equal those that were written. */
struct scanned {
    const lr_histo_images *histo;
    int next;
};

static lr_status take_view(void *user, const lr_histo_images *head, int view, const float *values)
{
    struct scanned *scanned = user;
    const int64_t num_voxels = lr_grid_num_voxels(&scanned->histo->grid);
    assert_ints(view, scanned->next++, head->num_views, NUM_ANGLES);
    assert_true(head->views[view].azimuth_deg == case_views[view].azimuth_deg);
    assert_memory_equal(values, scanned->histo->values + view * num_voxels, (size_t)num_voxels * sizeof(float));
    return LR_OK;
}

static void files_read_back_the_same(void **state)
{
    char path[64];
    uint64_t seed = test_seed();
    lr_histo_images *histo = make(&seed);
    assert_ok(lr_histo_images_write(path_of(path), histo, NULL));
    lr_histo_images *again = keep(lr_histo_images_read(path, NULL));
    assert_all(again->tof_ps == 0, !again->are_probabilities);
    histo->tof_ps = 203.7;
    histo->are_probabilities = true;
    assert_ok(lr_histo_images_write(path, histo, NULL));
    again = keep(lr_histo_images_read(path, NULL));
    assert_all(again->tof_ps == 203.7, again->are_probabilities);
    const lr_grid *grid = &histo->grid;
    assert_int_equal(again->num_views, NUM_ANGLES);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(again->grid.size[k], grid->size[k]);
        assert_all(again->grid.voxel_mm[k] == grid->voxel_mm[k], again->grid.origin_mm[k] == grid->origin_mm[k]);
    }
    for (int v = 0; v < NUM_ANGLES; v++) {
        assert_true(again->views[v].azimuth_deg == case_views[v].azimuth_deg);
        assert_true(again->views[v].tilt_deg == case_views[v].tilt_deg);
    }
    assert_memory_equal(again->values, histo->values, NUM_ANGLES * (size_t)lr_grid_num_voxels(grid) * sizeof(float));
    struct scanned scanned = {.histo = histo};
    assert_ok(lr_histo_images_scan(path, &(lr_histo_sink){take_view, &scanned}, NULL));
    assert_int_equal(scanned.next, NUM_ANGLES);
    unlink(path);
}

/* A file that ends too early, at any length, is refused with a message. */
static void cut_files_are_refused(void **state)
{
    char path[64];
    uint64_t seed = 2;
    assert_ok(lr_histo_images_write(path_of(path), make(&seed), NULL));
    FILE *file = non_null(fopen(path, "rb"));
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    fclose(file);
    for (int n = 15; n >= 0; n--) {
        struct test_log log = TEST_LOG(log);
        assert_int_equal(truncate(path, size * n / 16), 0);
        assert_none(lr_histo_images_read(path, &log.log), LR_BAD_INPUT, &log, "");
    }
    unlink(path);
}

static void other_grids_and_views_are_refused(void **state)
{
    uint64_t seed = 2;
    struct test_log *log = kept_log();
    lr_histo_images *histo = make(&seed);
    lr_operator *direct = keep(
        lr_direct_create(&filled(lr_direct_params, .grid = &histo->grid, .views = case_views, .num_views = NUM_ANGLES,
                                 .kernel = {.resolution = {.tof_ps = 150}}, .backend = "cpu", .log = &log->log)));
    assert_ok(lr_histo_images_check(histo, direct, &log->log));
    histo->views[3].tilt_deg += 1;
    assert_fails(lr_histo_images_check(histo, direct, &log->log), LR_BAD_INPUT, log, "histo-image 3");
    histo->grid.origin_mm[1] += 1;
    assert_fails(lr_histo_images_check(histo, direct, &log->log), LR_BAD_INPUT, log, "along y");
}

test_main("direct: histo", CASES(files_read_back_the_same, cut_files_are_refused, other_grids_and_views_are_refused))
