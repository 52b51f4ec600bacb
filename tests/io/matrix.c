/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix files: other programs find the rows that were written, in text and in HDF5; wrong rows and full disks leave
 * no file. */
#include "io/matrices.h"

#include <hdf5.h>
#include <locale.h>

enum { num_rows = 6, most = 400 };

/* Rows 2, 3, ... of the grid; one row is empty and one is missing. */
static struct {
    int64_t lor[num_rows][most];
    double probability[num_rows][most];
    lr_row rows[num_rows];
} given;

static int set_up(void **state)
{
    uint64_t seed = 7;
    files_begin_with(state, small_ring(60.0, 0.0));
    const lr_lors *lors = files.lors;
    grid = (lr_grid){{4, 2, 3}, {1.5, 2.0, 2.5}, {-2.25, -1.0, -2.5}};
    for (int n = 0; n < num_rows; n++) {
        int64_t count = 0;
        for (int64_t lor = 0; lor < lors->count && n != 3 && count < most; lor++) {
            if (test_random(&seed) >= (n == 1 ? 0.9 : 0.1)) continue;
            given.lor[n][count] = lor;
            given.probability[n][count++] = test_random(&seed) * 1e-4;
        }
        given.rows[n] = (lr_row){2 + n + (n > 4), count, given.lor[n], given.probability[n]};
    }
    return 0;
}

/* Parameters of a file of rows 2 to 8. */
static lr_matrix_writer_params some_rows(lr_matrix_format format)
{
    lr_matrix_writer_params params = params_of(format);
    params.begin = 2;
    params.end = 9;
    return params;
}

static lr_status write_rows(const lr_matrix_writer_params *params, int64_t limit)
{
    lr_matrix_writer *writer = lr_matrix_writer_create_within(params, limit);
    if (writer == NULL) return LR_FAILED;
    const lr_row_sink sink = lr_matrix_writer_sink(writer);
    for (int n = 0; n < num_rows; n++) {
        if (sink.take(sink.user, &given.rows[n]) == LR_OK) continue;
        lr_matrix_writer_abandon(writer);
        return LR_FAILED;
    }
    return lr_matrix_writer_finish(writer);
}

/* The lines of the text are the elements of the rows in their order, to 9 digits. */
static void test_tsv(void **state)
{
    const lr_matrix_writer_params params = some_rows(LR_MATRIX_TSV);
    setlocale(LC_NUMERIC, "de_DE.UTF-8"); /* a decimal comma, if the machine has that locale */
    const lr_status status = write_rows(&params, INT32_MAX);
    setlocale(LC_NUMERIC, "C");
    assert_int_equal(status, LR_OK);
    FILE *file = fopen(PATH, "r");
    char line[256];
    assert_non_null(fgets(line, sizeof(line), file));
    assert_string_equal(line, "row\tx_mm\ty_mm\tz_mm\tmodule_i\tp\tq\tmodule_j\tr\ts\tprobability\n");
    for (int n = 0; n < num_rows; n++) {
        for (int64_t k = 0; k < given.rows[n].count; k++) {
            long long row;
            double x, y, z, probability, centre[3];
            lr_lor lor;
            assert_non_null(fgets(line, sizeof(line), file));
            assert_int_equal(sscanf(line, "%lld\t%lf\t%lf\t%lf\t%d\t%d\t%d\t%d\t%d\t%d\t%lf\n", &row, &x, &y, &z,
                                    &lor.module_i, &lor.p, &lor.q, &lor.module_j, &lor.r, &lor.s, &probability),
                             11);
            const lr_lor expected = lr_lors_describe(files.lors, given.lor[n][k]);
            lr_grid_voxel_centre(&grid, given.rows[n].row, centre);
            assert_int_equal(row, given.rows[n].row);
            assert_true(x == centre[0] && y == centre[1] && z == centre[2]);
            assert_memory_equal(&lor, &expected, sizeof(lor));
            assert_close(probability, given.probability[n][k], 0.5e-8);
        }
    }
    assert_null(fgets(line, sizeof(line), file));
    fclose(file);
}

/* Reads a one-dimensional dataset and checks its type in the file. */
static int64_t read_array(hid_t file, const char *name, hid_t file_type, hid_t native, void *numbers, int64_t room)
{
    const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    assert_true(dataset >= 0);
    const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    const int64_t count = H5Sget_simple_extent_npoints(space);
    assert_all(H5Tequal(type, file_type) > 0, count <= room);
    assert_true(H5Dread(dataset, native, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(dataset);
    return count;
}

/* HDF5 finds these rows in the file, and empty rows in place of the missing ones. */
static void assert_csr(const lr_lors *lors, hid_t index_type)
{
    enum { room = num_rows * most };
    int64_t *indices = kept(room * sizeof(int64_t), 1), starts[16], shape[2];
    float *data = kept(room * sizeof(float), 1);
    const hid_t file = H5Fopen(PATH, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0);
    const hid_t attribute = H5Aopen_by_name(file, "/matrix", "shape", H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Aread(attribute, H5T_NATIVE_INT64, shape) >= 0);
    H5Aclose(attribute);
    assert_pairs(0, {shape[0], 7}, {shape[1], lors->count});
    assert_int_equal(read_array(file, "/matrix/indptr", index_type, H5T_NATIVE_INT64, starts, 16), 8);
    const int64_t total = read_array(file, "/matrix/indices", index_type, H5T_NATIVE_INT64, indices, room);
    assert_int_equal(read_array(file, "/matrix/data", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, data, room), total);
    assert_pairs(0, {starts[0], 0}, {starts[7], total});
    int n = 0;
    for (int place = 0; place < 7; place++) {
        const bool came = n < num_rows && given.rows[n].row == 2 + place;
        assert_int_equal(starts[place + 1] - starts[place], came ? given.rows[n].count : 0);
        for (int64_t k = starts[place]; k < starts[place + 1]; k++) {
            assert_int_equal(indices[k], given.lor[n][k - starts[place]]);
            assert_true(data[k] == (float)given.probability[n][k - starts[place]]);
        }
        n += came;
    }
    assert_int_equal(n, num_rows);
    H5Fclose(file);
}

static void test_hdf5(void **state)
{
    const lr_matrix_writer_params params = some_rows(LR_MATRIX_HDF5);
    assert_int_equal(write_rows(&params, INT32_MAX), LR_OK);
    assert_csr(files.lors, H5T_STD_I32LE);
    const hid_t file = H5Fopen(PATH, H5F_ACC_RDONLY, H5P_DEFAULT);
    const char *const names[] = {
        "encoding-type", "encoding-version", "description", "columns",       "scanner",       "units",
        "rows",          "row_begin",        "grid_size",   "grid_voxel_mm", "grid_origin_mm"};
    for (int n = 0; n < 11; n++) assert_true(H5Aexists_by_name(file, "/matrix", names[n], H5P_DEFAULT) > 0);
    assert_all(H5Lexists(file, "/lor/pairs", H5P_DEFAULT) > 0, H5Lexists(file, "/lor/offsets", H5P_DEFAULT) > 0);
    assert_true(H5Lexists(file, "/scanner/centre_mm", H5P_DEFAULT) > 0);
    H5Fclose(file);
    assert_int_equal(count_files(), 1);
}

/* indices and indptr become int64 together: from the start if there are too many columns, or later when the number
 * of elements becomes too large. */
static void test_wide_indices(void **state)
{
    const int64_t total_before_last =
        given.rows[0].count + given.rows[1].count + given.rows[2].count + given.rows[3].count;
    const int64_t limits[] = {files.lors->count - 1, files.lors->count, total_before_last - 1, total_before_last};
    for (int n = 0; n < 4; n++) {
        lr_matrix_writer_params params = some_rows(LR_MATRIX_HDF5);
        assert_int_equal(write_rows(&params, limits[n]), LR_OK);
        assert_csr(files.lors, H5T_STD_I64LE);
    }
    assert_int_equal(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

static lr_status take_last(void *user, const lr_row *row)
{
    *(int64_t *)user = row->lor[row->count - 1];
    return LR_OK;
}

/* Checks the file's last column. is_wide: 1 = HDF5 has both arrays as int64, 0 = as int32; -1 = not HDF5. */
static void assert_last_column(int64_t expected, int is_wide)
{
    int64_t last = -1;
    const lr_row_sink sink = {take_last, &last};
    lr_matrix_file *file = non_null(lr_matrix_file_open(PATH, NULL));
    assert_ints(lr_matrix_file_rows(file, &sink, NULL), LR_OK, last, expected);
    lr_matrix_file_close(file);
    if (is_wide < 0) return;
    int64_t numbers[2];
    const hid_t opened = H5Fopen(PATH, H5F_ACC_RDONLY, H5P_DEFAULT), type = is_wide ? H5T_STD_I64LE : H5T_STD_I32LE;
    assert_int_equal(read_array(opened, "/matrix/indptr", type, H5T_NATIVE_INT64, numbers, 2), 2);
    assert_int_equal(read_array(opened, "/matrix/indices", type, H5T_NATIVE_INT64, numbers, 2), 2);
    H5Fclose(opened);
}

/* The real limit, 2^31 - 1, tested without as many elements: int32 holds columns 0 .. 2^31 - 2 and row starts up to
 * 2^31 - 1. */
static void test_index_limit(void **state)
{
    static const int64_t limit = INT32_MAX, columns[6] = {0, 2147483647, 2147483648, 0, 4294967297, 1},
                         elements[6] = {0, 2147483647, 0, 2147483648, 1, 4294967297};
    for (int n = 0; n < 6; n++) assert_int_equal(lr_matrix_is_wide(columns[n], elements[n], limit), n > 1);
}

/* Two modules that face each other, with the given number of LORs. */
static lr_lors *opposed(const int crystals[4])
{
#define OPPOSED "u: [1, 0, 0], v: [0, 0, 1], crystals: [%d, %d], pitch_mm: [1, 1], face_mm: [1, 1], depth_mm: 10}\n"
    return lors_of(scanner_of("name: large\nmodules:\n- {center_mm: [0, 300, 0], " OPPOSED
                              "- {center_mm: [0, -300, 0], " OPPOSED,
                              crystals[0], crystals[1], crystals[2], crystals[3]));
}

/* A file for a scanner of 2^31 LORs is int64 and holds the last LOR; for 2^31 - 2^16 LORs it is int32. This test
 * does not lower the limit. */
static void test_many_columns(void **state)
{
    const int crystals[2][4] = {{256, 256, 256, 128}, {256, 256, 217, 151}};
    for (int n = 0; n < 2; n++) {
        lr_lors *lors = opposed(crystals[n]);
        assert_int_equal(lors->count, n == 0 ? INT64_C(2147483648) : INT64_C(2147418112));
        for (int format = LR_MATRIX_HDF5; format <= LR_MATRIX_NPZ; format++) {
            const lr_row row = {2, 2, (const int64_t[]){5, lors->count - 1}, (const double[]){0.25, 0.5}};
            lr_matrix_writer_params params = some_rows((lr_matrix_format)format);
            params.lors = lors;
            params.end = 3;
            lr_matrix_writer *writer = writer_of(&params);
            const lr_row_sink sink = lr_matrix_writer_sink(writer);
            assert_ok(sink.take(sink.user, &row), lr_matrix_writer_finish(writer));
            size_t count;
            unsigned char *bytes = bytes_read(PATH, &count);
            const char *type = n == 0 ? "<i8" : "<i4";
            bool found = format == LR_MATRIX_HDF5;
            for (size_t k = 0; k + 3 < count && !found; k++) found = memcmp(bytes + k, type, 3) == 0;
            assert_true(found);
            assert_last_column(lors->count - 1, format == LR_MATRIX_HDF5 ? n == 0 : -1);
        }
    }
}

/* Rows are longer than the pieces and chunks in which they are written. */
static void test_long_rows(void **state)
{
    lr_lors *lors = lors_of(two_panels());
    const double points[2][3] = {{0.0, 1.0, 2.0}, {3.0, 4.0, 5.0}};
    lr_matrix_writer_params params = {.path = PATH, .format = LR_MATRIX_HDF5, .lors = lors, .log = &files.log.log};
    params.points_mm = points;
    params.num_points = 2;
    const int64_t count = lors->count; /* 640,000 > 2^19 */
    int64_t *all = kept((size_t)count * sizeof(*all), 1), starts[3];
    double *ones = kept((size_t)count * sizeof(*ones), 1);
    float *data = kept(2 * (size_t)count * sizeof(*data), 1);
    int64_t *indices = kept(2 * (size_t)count * sizeof(*indices), 1);
    for (int64_t n = 0; n < count; n++) {
        all[n] = n;
        ones[n] = 1.0 / (double)(n + 1);
    }
    /* int32; int64 because of the number of elements, known late; int64 because of the columns */
    const int64_t limits[3] = {INT32_MAX, count, count - 1};
    for (int wide = 0; wide < 3; wide++) {
        lr_matrix_writer *writer = lr_matrix_writer_create_within(&params, limits[wide]);
        const lr_row_sink sink = lr_matrix_writer_sink(writer);
        for (int64_t row = 0; row < 2; row++)
            assert_int_equal(sink.take(sink.user, &(lr_row){row, count, all, ones}), LR_OK);
        assert_int_equal(lr_matrix_writer_finish(writer), LR_OK);
        const hid_t file = H5Fopen(PATH, H5F_ACC_RDONLY, H5P_DEFAULT);
        const hid_t type = wide ? H5T_STD_I64LE : H5T_STD_I32LE;
        assert_int_equal(read_array(file, "/matrix/indices", type, H5T_NATIVE_INT64, indices, 2 * count), 2 * count);
        read_array(file, "/matrix/indptr", type, H5T_NATIVE_INT64, starts, 3);
        read_array(file, "/matrix/data", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, data, 2 * count);
        assert_true(starts[1] == count && starts[2] == 2 * count);
        for (int64_t n = 0; n < 2 * count; n++)
            assert_true(indices[n] == n % count && data[n] == (float)ones[n % count]);
        assert_true(H5Lexists(file, "/matrix/points_mm", H5P_DEFAULT) > 0);
        H5Fclose(file);
    }
}

/* The row that the reader passes on is the next one that was written. */
static lr_status check_row(void *user, const lr_row *row)
{
    assert_int_equal(row->row, (*(int64_t *)user)++);
    int n = 0;
    while (n < num_rows && given.rows[n].row != row->row + 2) n++;
    assert_int_equal(row->count, n < num_rows ? given.rows[n].count : 0);
    for (int64_t k = 0; k < row->count; k++) {
        assert_int_equal(row->lor[k], given.lor[n][k]);
        assert_true(row->probability[k] == (double)(float)given.probability[n][k]);
    }
    return LR_OK;
}

/* Written matrices are read back from each format that LORaster can read. */
static void test_read(void **state)
{
    const lr_matrix_format formats[2] = {LR_MATRIX_HDF5, LR_MATRIX_NPZ};
    for (int k = 0; k < 2; k++) {
        const lr_matrix_writer_params params = some_rows(formats[k]);
        assert_int_equal(write_rows(&params, INT32_MAX), LR_OK);
        lr_matrix_file *file = non_null(lr_matrix_file_open(PATH, &files.log.log));
        const lr_matrix_file_info *info = lr_matrix_file_get_info(file);
        assert_pairs(0, {info->num_rows, 7}, {info->num_columns, files.lors->count},
                     {info->is_described, formats[k] == LR_MATRIX_HDF5});
        assert_int_equal(lr_matrix_file_check_scanner(file, files.lors), LR_OK);
        int64_t next = 0;
        assert_ints(lr_matrix_file_rows(file, &(lr_row_sink){check_row, &next}, NULL), LR_OK, next, 7);
        lr_matrix_file_close(file);
    }
    const lr_matrix_writer_params params = some_rows(LR_MATRIX_HDF5);
    assert_int_equal(write_rows(&params, INT32_MAX), LR_OK);
    assert_same_modules(keep(lr_scanner_read_hdf5(PATH, &files.log.log)), files.lors->scanner, 0);
}

/* Rows are written in three runs. After each of the first two, some bytes are cut off the end of the files. */
static void test_resume(void **state)
{
    lr_matrix_writer_params params = some_rows(LR_MATRIX_HDF5);
    params.path = "whole";
    assert_int_equal(write_rows(&params, INT32_MAX), LR_OK);
    params.path = PATH;
    for (int cut = 0; cut < 14; cut++) { /* each run adds 72 bytes */
        params.resumes = false;
        for (int run = 0; run < 3; run++) {
            lr_matrix_writer *writer = writer_of(&params);
            params.resumes = true;
            const lr_row_sink sink = lr_matrix_writer_sink(writer);
            const int64_t done = lr_matrix_writer_get_written(writer).rows;
            assert_true(cut > 0 || done == (run == 0 ? 0 : given.rows[2 * run - 1].row - 1));
            for (int n = 0; n < 2 * run + 2; n++)
                if (given.rows[n].row - 2 >= done) assert_int_equal(sink.take(sink.user, &given.rows[n]), LR_OK);
            if (run == 2) {
                assert_int_equal(lr_matrix_writer_finish(writer), LR_OK);
                continue;
            }
            assert_int_equal(lr_matrix_writer_leave(writer), LR_OK);
            assert_int_equal(truncate(PATH ".part-rows", (long)file_size(PATH ".part-rows") - 5 * cut), 0);
        }
        assert_same_bytes(PATH, "whole");
    }
    assert_int_equal(count_files(), 2);
    params.description = "sampled";
    params.resumes = false;
    assert_int_equal(lr_matrix_writer_leave(lr_matrix_writer_create(&params)), LR_OK);
    params.resumes = true;
    params.description = "exact";
    assert_none(lr_matrix_writer_create(&params), LR_USAGE, &files.log,
                "it was begun with sampled, and now it is exact");
}

static void test_threshold(void **state)
{
    int64_t kept[2];
    double dropped[2];
    for (int format = 0; format < 2; format++) {
        lr_matrix_writer_params params = some_rows((lr_matrix_format)format);
        params.threshold = 0.25;
        lr_matrix_writer *writer = lr_matrix_writer_create(&params);
        const lr_row_sink sink = lr_matrix_writer_sink(writer);
        double sum = 0;
        for (int n = 0; n < num_rows; n++) {
            assert_int_equal(sink.take(sink.user, &given.rows[n]), LR_OK);
            for (int64_t k = 0; k < given.rows[n].count; k++) sum += given.probability[n][k];
        }
        const lr_matrix_written written = lr_matrix_writer_get_written(writer);
        assert_true(written.dropped_elements > 0);
        assert_close(written.sum + written.dropped_sum, sum, 1e-12);
        kept[format] = written.elements;
        dropped[format] = written.dropped_sum;
        assert_int_equal(lr_matrix_writer_finish(writer), LR_OK);
    }
    assert_int_equal(kept[0], kept[1]);
    assert_close(dropped[0], dropped[1], 1e-14);
}

static void test_wrong_rows(void **state)
{
    const double probability[2] = {0.1, 0.2}, not_finite[2] = {0.1, NAN};
    const int64_t falling[2] = {4, 3}, beyond[2] = {4, files.lors->count}, good[2] = {3, 4};
    const lr_row wrong[] = {given.rows[0],
                            {1, 2, good, probability},
                            {9, 2, good, probability},
                            {2, 2, falling, probability},
                            {2, 2, beyond, probability},
                            {2, 2, good, not_finite}};
    for (int n = 0; n < 12; n++) {
        const lr_matrix_writer_params params = some_rows((lr_matrix_format)(n % 2));
        lr_matrix_writer *writer = lr_matrix_writer_create(&params);
        const lr_row_sink sink = lr_matrix_writer_sink(writer);
        if (n < 2) assert_int_equal(sink.take(sink.user, &given.rows[0]), LR_OK); /* twice the same */
        assert_fails(sink.take(sink.user, &wrong[n / 2]), LR_USAGE, &files.log, PATH);
        lr_matrix_writer_abandon(writer);
        assert_int_equal(count_files(), 0);
    }
    assert_int_equal(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

static void test_wrong_params(void **state)
{
    const double point[1][3] = {{0.0}};
    lr_matrix_writer_params params = some_rows(LR_MATRIX_TSV);
    params.end = 25;
    assert_none(lr_matrix_writer_create(&params), LR_USAGE, &files.log, "the grid has rows 0 to 23");
    params.end = 2;
    assert_null(lr_matrix_writer_create(&params));
    params = some_rows(LR_MATRIX_TSV);
    params.points_mm = point;
    params.num_points = 1;
    assert_null(lr_matrix_writer_create(&params)); /* a grid and points at once */
    assert_int_equal(files.log.status, LR_USAGE);
    params = some_rows(LR_MATRIX_HDF5);
    params.path = "no/such/folder/m.h5";
    assert_null(lr_matrix_writer_create(&params));
    assert_int_equal(files.log.status, LR_FAILED);
    lr_matrix_writer_abandon(NULL);
    assert_int_equal(count_files(), 0);
}

static void test_disk_full(void **state)
{
    for (int format = 0; format < 2; format++) {
        const lr_matrix_writer_params params = some_rows((lr_matrix_format)format);
        assert_int_equal(write_rows(&params, INT32_MAX), LR_OK);
        const size_t count = file_size(PATH);
        folder_visit(&files.folder, true);
        /* the head is cut in small steps, then the values, then the last bytes one by one */
        for (size_t limit = 0; limit<count; limit += limit + 40> count ? 1 : limit < 20000 ? 149 : 4999) {
            test_log_init(&files.log);
            assert_disk_full(limit, write_rows(&params, INT32_MAX), &files.log, PATH);
            assert_int_equal(count_files(), 0);
        }
    }
    assert_int_equal(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

/* The same rows always give the same file, whatever the time of day. */
static void test_same_bytes(void **state)
{
    lr_matrix_writer_params params = some_rows(LR_MATRIX_HDF5);
    assert_int_equal(write_rows(&params, INT32_MAX), LR_OK);
    wait_for_another_second();
    params.path = "again";
    assert_int_equal(write_rows(&params, INT32_MAX), LR_OK);
    assert_same_bytes(PATH, params.path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, files_end)
group_main("io matrix", NULL, NULL, TEST(test_tsv), TEST(test_hdf5), TEST(test_wide_indices), TEST(test_index_limit),
           TEST(test_many_columns), TEST(test_long_rows), TEST(test_wrong_rows), TEST(test_wrong_params),
           TEST(test_disk_full), TEST(test_same_bytes), TEST(test_read), TEST(test_resume), TEST(test_threshold))
