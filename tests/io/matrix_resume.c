/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows that have been written survive any later failure, and only a run for the same matrix continues with them. */
#include "base/log.h"
#include "io/matrices.h"

enum { NUM_ROWS = 8, MOST_PER_ROW = 1 << 18, STEPS = 8 };

static int64_t per_row, given_lors[MOST_PER_ROW];
static double probabilities[MOST_PER_ROW];

static int set_up(void **state)
{
    files_begin_with(state, small_ring(60.0, 0.0));
    const lr_lors *lors = files.lors;
    grid = (lr_grid){{2, 2, 2}, {1.5, 2.0, 2.5}, {-0.75, -1.0, -1.25}};
    per_row = lors->count < MOST_PER_ROW ? lors->count : MOST_PER_ROW;
    for (int64_t k = 0; k < per_row; k++) {
        given_lors[k] = k;
        probabilities[k] = 1e-6 * (double)(1 + k % 97);
    }
    return 0;
}

/* Writes rows begin .. end - 1; returns LR_OK, or the status of the first row that failed. */
static lr_status take(lr_matrix_writer *writer, int64_t begin, int64_t end)
{
    const lr_row_sink sink = lr_matrix_writer_sink(writer);
    for (int64_t n = begin; n < end; n++)
        LR_TRY(sink.take(sink.user, &(lr_row){n, per_row, given_lors, probabilities}));
    return LR_OK;
}

static void leave_rows(const lr_matrix_writer_params *params, int64_t num)
{
    lr_matrix_writer *writer = writer_of(params);
    assert_ints(take(writer, 0, num), LR_OK, lr_matrix_writer_leave(writer), LR_OK, count_files(), 2);
}

static void write_whole(lr_matrix_writer_params params)
{
    params.path = "whole";
    lr_matrix_writer *writer = writer_of(&params);
    assert_ok(take(writer, 0, lr_grid_num_voxels(&grid)), lr_matrix_writer_finish(writer));
}

/* Continues to the end; the file must equal that of a run that was not stopped. */
static void go_on(lr_matrix_writer_params params, int64_t num)
{
    params.resumes = true;
    lr_matrix_writer *writer = writer_of(&params);
    assert_int_equal(lr_matrix_writer_get_written(writer).rows, num);
    assert_ok(take(writer, num, lr_grid_num_voxels(&grid)), lr_matrix_writer_finish(writer));
    assert_same_bytes(PATH, "whole");
    assert_int_equal(count_files(), 2);
    remove(PATH);
}

/* The caller gives up, since the context is lost or there is no memory. If no rows have been saved, no file stays. */
static void test_given_up(void **state)
{
    lr_matrix_writer_params params = params_of(LR_MATRIX_HDF5);
    lr_matrix_writer *writer = writer_of(&params);
    assert_int_equal(take(writer, 0, 3), LR_OK);
    lr_matrix_writer_abandon(writer);
    assert_int_equal(count_files(), 0);
    leave_rows(&params, 3);
    params.resumes = true;
    writer = writer_of(&params);
    assert_int_equal(take(writer, 3, 5), LR_OK);
    lr_matrix_writer_abandon(writer);
    assert_non_null(strstr(files.log.warning, "5 of 8 rows are kept in"));
    assert_int_equal(count_files(), 2);
    write_whole(params_of(LR_MATRIX_HDF5));
    go_on(params, 5);
}

static void fill_disk(lr_matrix_format format)
{
    lr_matrix_writer_params params = params_of(format);
    write_whole(params);
    const size_t bytes = file_size("whole");
    int failures = 0;
    for (int k = 1; k <= STEPS; k++) {
        remove("whole");
        params.resumes = false;
        leave_rows(&params, 3);
        write_whole(params_of(format));
        params.resumes = true;
        lr_matrix_writer *writer = writer_of(&params);
        const struct rlimit before = disk_fill(bytes * (size_t)k / STEPS - 1);
        lr_status status = take(writer, 3, lr_grid_num_voxels(&grid));
        if (status == LR_OK)
            status = lr_matrix_writer_finish(writer);
        else
            lr_matrix_writer_abandon(writer);
        disk_empty(before);
        if (status == LR_OK) { /* text is longer than the rows that it is made of */
            assert_same_bytes(PATH, "whole");
            remove(PATH);
            continue;
        }
        failures++;
        assert_non_null(strstr(files.log.error, "largest file"));
        assert_null(strstr(files.log.error, "nothing was left behind"));
        assert_non_null(strstr(files.log.warning, "rows are kept in"));
        assert_ints(access(PATH, F_OK), -1, count_files(), 3);
        lr_matrix_writer *again = writer_of(&params);
        const int64_t rows = lr_matrix_writer_get_written(again).rows;
        assert_true(rows >= 3);
        assert_int_equal(lr_matrix_writer_leave(again), LR_OK);
        go_on(params, rows);
    }
    assert_true(failures >= STEPS / 2);
    remove("whole");
}

/* The disk becomes full at any point, while rows are written or while the file is made of them. */
static void test_full_disk(void **state)
{
    fill_disk(LR_MATRIX_HDF5);
    fill_disk(LR_MATRIX_NPZ);
    fill_disk(LR_MATRIX_MTX);
}

/* The same test where HDF5 uses the elements at their position in the file, and may already have written data behind
   them. */
static void test_full_disk_adopted(void **state)
{
    grid.size[0] = grid.size[1] = 64;
    assert_true(lr_grid_num_voxels(&grid) * per_row > 2 << 20);
    fill_disk(LR_MATRIX_HDF5);
}

static void refuse(lr_matrix_writer_params params, const char *words)
{
    params.resumes = true;
    assert_none(lr_matrix_writer_create(&params), LR_USAGE, &files.log, words);
    assert_int_equal(count_files(), 2);
}

/* If a single number of an input changes (attenuation map, efficiencies, scanner, list of voxels), the matrix is
   another one, and resuming is refused although all names are the same. */
static void test_contents(void **state)
{
    float values[1000], others[1000];
    for (int k = 0; k < 1000; k++) values[k] = others[k] = 0.001f * (float)k;
    others[999] += 1e-4f;
    lr_matrix_input inputs[2] = {{"efficiencies", values, sizeof(values)}, {"attenuation map", values, sizeof(values)}};
    lr_matrix_writer_params params = params_of(LR_MATRIX_HDF5);
    params.inputs = inputs;
    params.num_inputs = 2;
    leave_rows(&params, 3);
    spoilt(inputs[1].bytes = others, refuse(params, "other contents of: attenuation map"));
    inputs[1].bytes = values;
    spoilt(inputs[0].bytes = others, refuse(params, "other contents of: efficiencies"));
    inputs[0].bytes = values;
    spoilt(params.num_inputs = 1, refuse(params, "it was begun with attenuation map, and now it is rows of voxels"));
    params.num_inputs = 2;
    spoilt(params.threshold = 0.5, refuse(params, "threshold 0.5"));
    params.threshold = 0;
    lr_scanner *scanner = (lr_scanner *)files.lors->scanner;
    spoilt(scanner->crystal_mu_per_mm += 0.01, refuse(params, "other contents of: scanner"));
    scanner->crystal_mu_per_mm -= 0.01;
    spoilt(scanner->modules[2].depth_mm *= 1 + 1e-15, refuse(params, "other contents of: scanner"));
    scanner->modules[2].depth_mm = scanner->modules[1].depth_mm;
    const int64_t voxels[2][NUM_ROWS] = {{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 7, 8}};
    params.voxels = voxels[0];
    spoilt(params.num_voxels = NUM_ROWS, refuse(params, "other contents of: rows of voxels"));
}

/* Inputs are compared to their end: two texts that differ only after their first 100,000 characters count as
   different. */
static void test_long_texts(void **state)
{
    enum { LONG = 100000 };
    char *factors = kept(LONG + 1, 1);
    memset(factors, 'f', LONG);
    factors[LONG] = '\0';
    lr_matrix_writer_params params = params_of(LR_MATRIX_HDF5);
    params.factors = factors;
    leave_rows(&params, 3);
    factors[LONG - 1] = 'g';
    refuse(params, "other contents of: factors fff");
    factors[LONG - 1] = '\0';
    refuse(params, "other contents of: factors fff");
    spoilt(factors[0] = '\0', refuse(params, "it was begun with factors fff"));
    memset(factors, 'f', LONG);
    params.resumes = true;
    lr_matrix_writer *writer = writer_of(&params);
    assert_int_equal(lr_matrix_writer_get_written(writer).rows, 3);
    lr_matrix_writer_abandon(writer);
}

/* Files of these names that no earlier run has written are not overwritten; files of an earlier run are, with a
   warning. */
static void test_strangers(void **state)
{
    static char strange[8192] = "half of a download";
    const lr_matrix_writer_params params = params_of(LR_MATRIX_HDF5);
    const char *const names[2] = {PATH ".part", PATH ".part-rows"};
    for (int k = 0; k < 2; k++) {
        for (size_t bytes = 1; bytes <= sizeof(strange); bytes = bytes < 18 ? 18 : 8192 + (bytes == 8192)) {
            bytes_write(names[k], strange, bytes);
            assert_null(lr_matrix_writer_create(&params));
            assert_error(&files.log, LR_FAILED, "no run of this program has left it", names[k]);
            size_t count;
            unsigned char *found = bytes_read(names[k], &count);
            assert_int_equal(count, bytes);
            assert_memory_equal(found, strange, count);
            assert_int_equal(count_files(), 1);
        }
        remove(names[k]);
        assert_int_equal(symlink("nowhere", names[k]), 0);
        assert_none(lr_matrix_writer_create(&params), LR_FAILED, &files.log, "is a link");
        assert_int_equal(folder_visit(&files.folder, true), 1);
    }
    leave_rows(&params, 3);
    lr_matrix_writer *writer = writer_of(&params);
    assert_non_null(strstr(files.log.warning, "begun anew"));
    assert_none(lr_matrix_writer_create(&params), LR_FAILED, &files.log, "another program is just writing it");
    assert_ok(take(writer, 0, lr_grid_num_voxels(&grid)), lr_matrix_writer_finish(writer));
    assert_int_equal(count_files(), 1);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, files_end)

group_main("io matrix resume", NULL, NULL, TEST(test_given_up), TEST(test_full_disk), TEST(test_full_disk_adopted),
           TEST(test_contents), TEST(test_long_texts), TEST(test_strangers))
