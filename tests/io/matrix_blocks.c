/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rows written in blocks make the same file, byte for byte, as rows written one by one. */
#include "base/log.h"
#include "io/matrices.h"
#include "model/lors/rows.h"

/* All rows together are larger than two blocks of the file. */
enum { NUM_ROWS = 60, MOST_PER_ROW = 43000, ELEMENTS = NUM_ROWS * MOST_PER_ROW };

static struct lr_row_extent extents[NUM_ROWS]; /* rows of different lengths, some without elements */
static struct lr_packed_element elements[ELEMENTS];
static int64_t first[NUM_ROWS + 1];

static int set_up(void **state)
{
    uint64_t seed = 5;
    grid = (lr_grid){{4, 3, 5}, {1.5, 2.0, 2.5}, {-2.25, -2.0, -5.0}};
    for (int64_t row = 0; row < NUM_ROWS; row++) {
        const int64_t count = row % 7 == 3 ? 0 : MOST_PER_ROW - (int64_t)(99.0 * test_random(&seed));
        extents[row] = (struct lr_row_extent){row, count};
        first[row + 1] = first[row] + count;
        for (int64_t k = 0; k < count; k++) {
            const float value = (float)(1e-4 * (0.01 + test_random(&seed)));
            elements[first[row] + k] = (struct lr_packed_element){(uint32_t)(k + (k > 5)), value};
        }
    }
    return files_begin_with(state, two_panels());
}

static struct lr_row_block block_of(int64_t begin, int64_t end)
{
    return filled(struct lr_row_block, .rows = extents + begin, .num_rows = end - begin,
                  .num_elements = first[end] - first[begin], .elements = elements + first[begin], .threads = 3);
}

static lr_status take_rows(lr_matrix_writer *writer, int64_t begin, int64_t end)
{
    const struct lr_row_block block = block_of(begin, end);
    const lr_row_sink sink = lr_matrix_writer_sink(writer);
    return lr_row_block_unpack(&block, &sink, NULL);
}

/* Writes rows in blocks of `rows` rows. */
static lr_status take_blocks(lr_matrix_writer *writer, const int64_t range[2], int64_t rows)
{
    const lr_row_sink sink = lr_matrix_writer_sink(writer);
    const struct lr_row_block_sink *blocks = non_null(lr_row_entry_of(&sink));
    for (int64_t row = range[0]; row < range[1]; row += rows) {
        const struct lr_row_block block = block_of(row, row + rows < range[1] ? row + rows : range[1]);
        LR_TRY(blocks->take(blocks->user, &block));
    }
    return LR_OK;
}

static void write_by_rows(const lr_matrix_writer_params *params, int64_t limit)
{
    lr_matrix_writer_params other = *params;
    other.path = "rows";
    lr_matrix_writer *writer = non_null(lr_matrix_writer_create_within(&other, limit));
    assert_ok(take_rows(writer, 0, NUM_ROWS), lr_matrix_writer_finish(writer));
}

/* rows: number of rows per block. */
static void check_same(const lr_matrix_writer_params *params, int64_t limit, int64_t rows)
{
    const int64_t all[2] = {0, NUM_ROWS};
    write_by_rows(params, limit);
    lr_matrix_writer *writer = non_null(lr_matrix_writer_create_within(params, limit));
    assert_int_equal(take_blocks(writer, all, rows), LR_OK);
    const lr_matrix_written written = lr_matrix_writer_get_written(writer);
    assert_pairs(0, {written.rows, NUM_ROWS}, {written.empty_rows, 9});
    assert_int_equal(lr_matrix_writer_finish(writer), LR_OK);
    assert_same_bytes("rows", params->path);
}

/* Blocks of the file end within rows and within blocks of rows; indices are 32 or 64 bits wide. */
static void test_same_file(void **state)
{
    const lr_matrix_writer_params hdf5 = params_of(LR_MATRIX_HDF5), npz = params_of(LR_MATRIX_NPZ);
    assert_true(first[NUM_ROWS] > 2 * lr_store_block_elements);
    check_same(&hdf5, INT32_MAX, 1);
    check_same(&hdf5, INT32_MAX, 7);
    check_same(&hdf5, INT32_MAX, NUM_ROWS);
    check_same(&hdf5, files.lors->count - 1, 11);
    check_same(&npz, INT32_MAX, 17);
}

/* Cases that blocks do not support are written row by row: thresholds, and the rows of some voxels only. */
static void test_other_ways(void **state)
{
    int64_t voxels[NUM_ROWS];
    lr_matrix_writer_params params = params_of(LR_MATRIX_HDF5);
    for (int64_t k = 0; k < NUM_ROWS; k++) voxels[k] = k;
    params.threshold = 0.5;
    check_same(&params, INT32_MAX, 13);
    params.threshold = 0.0;
    params.voxels = voxels;
    params.num_voxels = NUM_ROWS;
    check_same(&params, INT32_MAX, 13);
}

/* A run that was stopped after some blocks is continued with single rows, and the reverse. */
static void test_resume(void **state)
{
    lr_matrix_writer_params params = params_of(LR_MATRIX_HDF5);
    write_by_rows(&params, INT32_MAX);
    for (int order = 0; order < 2; order++) {
        const int64_t begin[2] = {0, 31}, end[2] = {31, NUM_ROWS};
        params.resumes = false;
        lr_matrix_writer *writer = lr_matrix_writer_create(&params);
        assert_int_equal(order == 0 ? take_blocks(writer, begin, 6) : take_rows(writer, 0, 31), LR_OK);
        assert_int_equal(lr_matrix_writer_leave(writer), LR_OK);
        params.resumes = true;
        writer = lr_matrix_writer_create(&params);
        assert_int_equal(lr_matrix_writer_get_written(writer).rows, 31);
        assert_int_equal(order == 0 ? take_rows(writer, 31, NUM_ROWS) : take_blocks(writer, end, 6), LR_OK);
        assert_int_equal(lr_matrix_writer_finish(writer), LR_OK);
        assert_same_bytes("rows", PATH);
    }
}

/* Errors in elements are reported as for single rows, and no element of the wrong block is written. */
static void test_wrong_elements(void **state)
{
    const lr_matrix_writer_params params = params_of(LR_MATRIX_HDF5);
    const int64_t all[2] = {0, NUM_ROWS};
    for (int wrong = 0; wrong < 3; wrong++) {
        struct lr_packed_element *element = &elements[first[20] + 1000], before = *element;
        if (wrong == 0) {
            element->value = NAN;
        } else if (wrong == 1) {
            element->lor = element[-1].lor;
        } else {
            element = &elements[first[21] - 1];
            before = *element;
            element->lor = (uint32_t)files.lors->count;
        }
        lr_matrix_writer *writer = lr_matrix_writer_create(&params);
        test_log_init(&files.log);
        assert_fails(take_blocks(writer, all, 5), LR_USAGE, &files.log, "row 20 for ");
        assert_int_equal(lr_matrix_writer_get_written(writer).rows, 20);
        assert_int_equal(lr_matrix_writer_get_written(writer).elements, first[20]);
        lr_matrix_writer_abandon(writer);
        assert_int_equal(count_files(), 0);
        *element = before;
    }
}

/* A sink that is no matrix file takes no blocks. */
static lr_status refuse(void *user, const lr_row *row)
{
    return LR_CANCELLED;
}

static void test_entry(void **state)
{
    const lr_row_sink plain = {refuse, NULL};
    const struct lr_row_block block = block_of(0, 3);
    assert_null(lr_row_entry_of(&plain));
    assert_int_equal(lr_row_block_unpack(&block, &plain, NULL), LR_CANCELLED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, files_end)
group_main("io matrix blocks", NULL, NULL, TEST(test_same_file), TEST(test_other_ways), TEST(test_resume),
           TEST(test_wrong_elements), TEST(test_entry))
