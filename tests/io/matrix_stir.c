/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * STIR's matrix files: either all six files appear or none; matrices that the format cannot hold are refused.
 * tests/cli/test_formats.py tests the meaning of the files with the program. */
#include "io/projdata_files.h"

enum { many = 10001 };

static lr_grid grid;

static int set_up(void **state)
{
    grid = (lr_grid){{25, 20, 21}, {1, 1, 1}, {0, 0, 0}};
    return files_begin_with(state, even_ring(16, 7));
}

static lr_matrix_writer_params params_of(void)
{
    lr_matrix_writer_params params = {.path = "a.hpm", .format = LR_MATRIX_STIR, .by_lor = true, .grid = &grid};
    params.lors = files.lors;
    params.log = &files.log.log;
    return params;
}

/* Writes one row with this number of elements for each of three LORs. */
static lr_status write_rows(const lr_matrix_writer_params *params, int count)
{
    static int64_t voxels[many];
    static double values[many];
    lr_matrix_writer *writer = non_null(lr_matrix_writer_create(params));
    for (int k = 0; k < count; k++) {
        voxels[k] = k;
        values[k] = k + 1;
    }
    const lr_row_sink sink = lr_matrix_writer_sink(writer);
    for (int64_t lor = 100; lor < 103; lor++) {
        const lr_status status = sink.take(sink.user, &(lr_row){lor, count, voxels, values});
        if (status != LR_OK) {
            lr_matrix_writer_abandon(writer);
            return status;
        }
    }
    return lr_matrix_writer_finish(writer);
}

static void test_files(void **state)
{
    const lr_matrix_writer_params params = params_of();
    assert_int_equal(write_rows(&params, many - 1), LR_OK);
    assert_ints(count_files(), 6, file_size("a.pm"), 3 * (20 + 10 * (many - 1)), file_size("a_template.s"), 0);
    lr_image *image = keep(lr_image_read("a_template.hv", &files.log.log));
    assert_memory_equal(image->grid.size, grid.size, sizeof(image->grid.size));
}

static void test_limits(void **state)
{
    lr_matrix_writer_params params = params_of();
    assert_fails(write_rows(&params, many), LR_BAD_INPUT, &files.log, "10001 voxels, and STIR reads at most 10000");
    params.by_lor = false;
    params.end = 5;
    assert_none(lr_matrix_writer_create(&params), LR_USAGE, &files.log, "rows of LORs");
    params = params_of();
    params.path = "a.pm";
    assert_none(lr_matrix_writer_create(&params), LR_USAGE, &files.log, "must end in .hpm");
    params = params_of();
    grid = (lr_grid){{40000, 1, 1}, {1, 1, 1}, {0, 0, 0}};
    assert_none(lr_matrix_writer_create(&params), LR_BAD_INPUT, &files.log, "40000 voxels along x");
    params.resumes = true;
    assert_null(lr_matrix_writer_create(&params));
    assert_ints(files.log.status, LR_USAGE, count_files(), 0);
}

/* There is room for the elements but not for the image, or the reverse: no file appears. */
static void test_disk_full(void **state)
{
    const lr_matrix_writer_params params = params_of();
    for (int n = 0; n < 2; n++) {
        const struct rlimit before = disk_fill(n == 0 ? 20000 : 100000);
        const lr_status status = write_rows(&params, n == 0 ? 10 : 5000);
        disk_empty(before);
        assert_ints(status, LR_FAILED, files.log.status, LR_FAILED, count_files(), 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, files_end)
group_main("io matrix stir", NULL, NULL, TEST(test_files), TEST(test_limits), TEST(test_disk_full))
