/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * STIR's matrix files: six files appear or none; what the format cannot hold is refused. What they
 * mean is tested with the program (tests/cli/test_formats.py). */
#include "io/projdata_files.h"

enum { many = 10001 };

struct fixture {
    struct test_folder folder;
    char path[128];
    lr_lors *lors;
    lr_grid grid;
    struct test_log log;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.grid = {{25, 20, 21}, {1, 1, 1}, {0, 0, 0}}};
    folder_init(&fixture.folder);
    folder_file(&fixture.folder, fixture.path, "a.hpm");
    fixture.lors = lors_of(even_ring(16, 7));
    test_log_init(&fixture.log);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    lors_finish(fixture->lors);
    folder_finish(&fixture->folder);
    return 0;
}

static lr_matrix_writer_params params_of(struct fixture *fixture)
{
    lr_matrix_writer_params params = {.path = fixture->path, .format = LR_MATRIX_STIR, .by_lor = true};
    params.lors = fixture->lors;
    params.grid = &fixture->grid;
    params.log = &fixture->log.log;
    return params;
}

/* Writes one row with that many elements for each of three LORs. */
static lr_status write_rows(const lr_matrix_writer_params *params, int count)
{
    static int64_t voxels[many];
    static double values[many];
    lr_matrix_writer *writer = lr_matrix_writer_create(params);
    assert_non_null(writer);
    for (int k = 0; k < count; k++) {
        voxels[k] = k;
        values[k] = k + 1;
    }
    const lr_row_sink sink = lr_matrix_writer_sink(writer);
    for (int64_t lor = 100; lor < 103; lor++) {
        const lr_row row = {lor, count, voxels, values};
        const lr_status status = sink.take(sink.user, &row);
        if (status != LR_OK) {
            lr_matrix_writer_abandon(writer);
            return status;
        }
    }
    return lr_matrix_writer_finish(writer);
}

static void test_files(void **state)
{
    struct fixture *fixture = *state;
    const lr_matrix_writer_params params = params_of(fixture);
    assert_int_equal(write_rows(&params, many - 1), LR_OK);
    assert_int_equal(folder_visit(&fixture->folder, false), 6);
    assert_int_equal(file_size(file_in(&fixture->folder, "a.pm")), 3 * (20 + 10 * (many - 1)));
    assert_int_equal(file_size(file_in(&fixture->folder, "a_template.s")), 0);
    lr_image *image = lr_image_read(file_in(&fixture->folder, "a_template.hv"), &fixture->log.log);
    assert_non_null(image);
    assert_memory_equal(image->grid.size, fixture->grid.size, sizeof(image->grid.size));
    lr_image_destroy(image);
}

static void test_limits(void **state)
{
    struct fixture *fixture = *state;
    lr_matrix_writer_params params = params_of(fixture);
    assert_int_equal(write_rows(&params, many), LR_BAD_INPUT);
    assert_error(&fixture->log, LR_BAD_INPUT, "10001 voxels, and STIR reads at most 10000");
    params.by_lor = false;
    params.end = 5;
    assert_null(lr_matrix_writer_create(&params));
    assert_non_null(strstr(fixture->log.error, "rows of LORs"));
    params = params_of(fixture);
    params.path = "a.pm";
    assert_null(lr_matrix_writer_create(&params));
    assert_non_null(strstr(fixture->log.error, "must end in .hpm"));
    params = params_of(fixture);
    fixture->grid = (lr_grid){{40000, 1, 1}, {1, 1, 1}, {0, 0, 0}};
    assert_null(lr_matrix_writer_create(&params));
    assert_non_null(strstr(fixture->log.error, "40000 voxels along x"));
    params.resumes = true;
    assert_null(lr_matrix_writer_create(&params));
    assert_int_equal(fixture->log.status, LR_USAGE);
    assert_int_equal(folder_visit(&fixture->folder, false), 0);
}

/* The elements fit and the image does not, or the other way round: nothing appears. */
static void test_disk_full(void **state)
{
    struct fixture *fixture = *state;
    const lr_matrix_writer_params params = params_of(fixture);
    for (int n = 0; n < 2; n++) {
        const struct rlimit before = disk_fill(n == 0 ? 20000 : 100000);
        const lr_status status = write_rows(&params, n == 0 ? 10 : 5000);
        disk_empty(before);
        assert_int_equal(status, LR_FAILED);
        assert_int_equal(fixture->log.status, LR_FAILED);
        assert_int_equal(folder_visit(&fixture->folder, false), 0);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_files), TEST(test_limits), TEST(test_disk_full)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
