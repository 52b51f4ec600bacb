/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LOR data in HDF5: data written are read back; files of another scanner, of wrong types or with senseless values are
 * refused; a full disk leaves no file; and sums per LOR of more events than are held in memory at once. */
#include "io/scanners.h"

#include "io/lor_data/lor_data.h"

#include <hdf5.h>

#define PATH "data.h5"

static lr_lor_data *dense, sparse; /* sparse has three LORs */
static int64_t lors_of_sparse[3];
static float values_of_sparse[3];

static int set_up(void **state)
{
    files_begin_with(state, small_ring(60.0, 0.0));
    const lr_lors *lors = files.lors;
    dense = keep(lr_lor_data_create(lors, NULL));
    for (int64_t n = 0; n < lors->count; n++) dense->values[n] = (float)n * 0.7f - 3.0f;
    for (int n = 0; n < 3; n++) values_of_sparse[n] = (float)n + 1.0f;
    lors_of_sparse[1] = 17;
    lors_of_sparse[2] = lors->count - 1;
    sparse = (lr_lor_data){3, lors_of_sparse, values_of_sparse};
    return 0;
}

/* Pieces read one after the other equal what was written. */
struct pieces {
    const lr_lor_data *data;
    int64_t next, most;
    lr_status status;
};

static lr_status take_piece(void *user, const lr_lor_data *some, int64_t first)
{
    struct pieces *pieces = user;
    const lr_lor_data *data = pieces->data;
    assert_int_equal(first, pieces->next);
    assert_true((some->index == NULL) == (data->index == NULL));
    assert_memory_equal(some->values, data->values + first, (size_t)some->count * sizeof(float));
    if (some->index != NULL)
        assert_memory_equal(some->index, data->index + first, (size_t)some->count * sizeof(int64_t));
    pieces->next += some->count;
    pieces->most = some->count > pieces->most ? some->count : pieces->most;
    return pieces->status;
}

static void assert_comes_back(const lr_lors *lors, const lr_lor_data *data)
{
    struct test_log log = TEST_LOG(log);
    assert_int_equal(lr_lor_data_write(PATH, lors, data, &log.log), LR_OK);
    lr_lor_data *back = keep(lr_lor_data_read(PATH, lors, &log.log));
    assert_int_equal(back->count, data->count);
    assert_memory_equal(back->values, data->values, (size_t)data->count * sizeof(float));
    assert_true((back->index == NULL) == (data->index == NULL));
    if (data->index != NULL) assert_memory_equal(back->index, data->index, (size_t)data->count * sizeof(int64_t));
    assert_int_equal(log.num_warnings, 0);
    struct pieces pieces = {.data = data};
    const lr_lor_data_sink sink = {.take = take_piece, .user = &pieces};
    assert_ints(lr_lor_data_scan(PATH, lors, &sink, NULL), LR_OK, pieces.next, data->count);
    assert_true(pieces.most <= 1 << 18);
    pieces = (struct pieces){.data = data, .status = LR_CANCELLED};
    assert_int_equal(lr_lor_data_scan(PATH, lors, &sink, NULL), data->count > 0 ? LR_CANCELLED : LR_OK);
}

static void test_round_trip(void **state)
{
    assert_comes_back(files.lors, dense);
    assert_comes_back(files.lors, &sparse);
    assert_comes_back(files.lors, &(lr_lor_data){0, (int64_t *)lors_of_sparse, (float *)values_of_sparse});
    assert_int_equal(count_files(), 1);
}

/* Integers are stored in compressed chunks, other numbers uncompressed: both are read back. */
static void test_large(void **state)
{
    lr_lors *large = lors_of(scanner_of("name: large\nring: {radius_mm: 100, modules: 4}\nmodule: {crystals: [32, 16], "
                                        "pitch_mm: [4, 4], face_mm: [4, 4], depth_mm: 10}\n"));
    lr_lor_data *data = keep(lr_lor_data_create(large, NULL));
    assert_true(data->count > 1 << 18); /* larger than a piece */
    for (int64_t n = 0; n < data->count; n += 7) data->values[n] = (float)(n % 5);
    assert_comes_back(large, data);
    const size_t bytes = file_size(PATH);
    data->values[3] = 0.5f;
    assert_comes_back(large, data);
    assert_true(bytes * 4 < file_size(PATH));
}

/* The same data always give the same file, whatever the time of day. */
static void test_same_bytes(void **state)
{
    const lr_lor_data *const kinds[] = {dense, &sparse};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(lr_lor_data_write(PATH, files.lors, kinds[k], NULL), LR_OK);
        wait_for_another_second();
        assert_int_equal(lr_lor_data_write("again.h5", files.lors, kinds[k], NULL), LR_OK);
        assert_same_bytes(PATH, "again.h5");
    }
}

/* The layout that docs/formats/lor-data.md promises, checked by HDF5 functions only. */
static void test_layout(void **state)
{
    assert_int_equal(lr_lor_data_write(PATH, files.lors, &sparse, NULL), LR_OK);
    const hid_t file = H5Fopen(PATH, H5F_ACC_RDONLY, H5P_DEFAULT);
    const char *const names[] = {"/lor/pairs", "/lor/offsets", "/lor/values", "/lor/index"};
    const hid_t types[] = {H5T_STD_I32LE, H5T_STD_I64LE, H5T_IEEE_F32LE, H5T_STD_I64LE};
    const hsize_t extents[] = {(hsize_t)files.lors->num_pairs, (hsize_t)files.lors->num_pairs + 1, 3, 3};
    for (int n = 0; n < 4; n++) {
        hsize_t extent[2] = {0, 0};
        const hid_t dataset = H5Dopen2(file, names[n], H5P_DEFAULT);
        const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
        assert_true(H5Tequal(type, types[n]) > 0);
        assert_int_equal(H5Sget_simple_extent_dims(space, extent, NULL), n == 0 ? 2 : 1);
        assert_pairs(0, {extent[0], extents[n]}, {extent[1], n == 0 ? 2 : 0});
        H5Sclose(space);
        H5Tclose(type);
        H5Dclose(dataset);
    }
    const char *const root[] = {"program", "version", "frame", "content"};
    for (int n = 0; n < 4; n++) assert_true(H5Aexists(file, root[n]) > 0);
    assert_true(H5Aexists_by_name(file, "/lor", "units", H5P_DEFAULT) > 0);
    assert_true(H5Aexists_by_name(file, "/scanner", "name", H5P_DEFAULT) > 0);
    H5Fclose(file);
}

/* Reads a file that must be refused with these words. */
static void assert_refused(const lr_lors *lors, const char *words)
{
    struct test_log log = TEST_LOG(log);
    lr_lor_data *data = lr_lor_data_read(PATH, lors, &log.log);
    if (data != NULL || strstr(log.error, words) == NULL || strstr(log.error, PATH) == NULL)
        fail_msg("expected \"%s\", got \"%s\"", words, log.error);
    assert_int_equal(log.status, LR_BAD_INPUT);
}

/* Reads the file for a scanner. It must be refused or raise a warning with these words; NULL = neither. */
static void check_scanner(lr_scanner *scanner, const char *refused, const char *warned)
{
    struct test_log log = TEST_LOG(log);
    lr_lors *lors = lors_of(scanner);
    if (refused != NULL) {
        assert_refused(lors, refused);
    } else {
        keep(lr_lor_data_read(PATH, lors, &log.log));
        assert_int_equal(log.num_warnings, warned != NULL);
        if (warned != NULL) assert_warning(&log, warned);
    }
}

static void test_other_scanner(void **state)
{
    assert_int_equal(lr_lor_data_write(PATH, files.lors, dense, NULL), LR_OK);
    check_scanner(small_ring(60.5, 0.0), "its module 0 has centre_mm[0] = 60, that of small ring has 60.5", NULL);
    /* the same modules, of which only opposite ones are in coincidence */
    check_scanner(small_ring(60.0, 10.0), "/lor/pairs has 9 x 2 numbers, small ring has 3 x 2", NULL);
    /* the pairs are the same: the order of the LORs is right, so another rule only causes a warning */
    check_scanner(small_ring(60.0, 100.0), NULL, "field_of_view_mm = 0, the scanner here has 100");
    /* another crystal material causes a warning, an unknown one does not */
    lr_scanner *same = small_ring(60.0, 0.0);
    same->crystal_mu_per_mm = 0.07;
    check_scanner(same, NULL, "crystal_mu_per_mm = 0.083, the scanner here");
    same = small_ring(60.0, 0.0);
    same->crystal_mu_per_mm = 0.0;
    check_scanner(same, NULL, NULL);
    /* another plane of hits causes a warning, too */
    same = small_ring(60.0, 0.0);
    same->detection_depth_mm += 1.5;
    check_scanner(same, NULL, "was made with detection_depth_mm");
}

/* Replaces a dataset; if numbers is NULL, the dataset is only removed. */
static void replace(const char *name, hid_t type, hsize_t count, const void *numbers)
{
    const hid_t file = H5Fopen(PATH, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_all(file >= 0, H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    if (numbers != NULL) {
        const hid_t space = H5Screate_simple(1, &count, NULL);
        const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
        H5Dclose(dataset);
        H5Sclose(space);
    }
    H5Fclose(file);
}

static void test_wrong_content(void **state)
{
    const double doubles[3] = {1.0, 2.0, 3.0};
    const float not_finite[3] = {1.0f, NAN, 3.0f};
    const int64_t falling[3] = {5, 4, 6}, twice[3] = {5, 5, 6};
    const int64_t beyond[3] = {1, 2, files.lors->count}, negative[3] = {-1, 2, 3};
    int64_t lower[10], higher[10];
    memcpy(lower, files.lors->offsets, sizeof(lower));
    memcpy(higher, files.lors->offsets, sizeof(higher));
    lower[4] = 0;
    higher[4]++;
    const struct {
        const char *name;
        hid_t type;
        hsize_t count;
        const void *numbers;
        const char *words;
    } cases[] = {{"/lor/values", 0, 0, NULL, "has no dataset /lor/values"},
                 {"/lor/values", H5T_C_S1, 3, "abc", "must hold numbers"},
                 {"/lor/values", H5T_NATIVE_DOUBLE, 2, doubles, "3 LOR numbers for 2 values"},
                 {"/lor/values", H5T_NATIVE_FLOAT, 3, not_finite, "nan for LOR 17"},
                 {"/lor/index", H5T_NATIVE_DOUBLE, 3, doubles, "must hold whole numbers"},
                 {"/lor/index", H5T_NATIVE_INT64, 3, falling, "4 after 5"},
                 {"/lor/index", H5T_NATIVE_INT64, 3, twice, "5 after 5"},
                 {"/lor/index", H5T_NATIVE_INT64, 3, beyond, "run from 0 to"},
                 {"/lor/index", H5T_NATIVE_INT64, 3, negative, "names LOR -1"},
                 {"/lor/pairs", H5T_NATIVE_INT64, 3, falling, "must have 2 dimensions, not 1"},
                 {"/lor/offsets", H5T_NATIVE_INT64, 3, twice, "has 3 numbers: it must have one more than the 9 pairs"},
                 {"/lor/offsets", H5T_NATIVE_INT64, 10, lower, "falls at 4"},
                 {"/lor/offsets", H5T_NATIVE_INT64, 10, higher, "begin at"},
                 {"/lor", 0, 0, NULL, "no group /lor"}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        assert_int_equal(lr_lor_data_write(PATH, files.lors, &sparse, NULL), LR_OK);
        replace(cases[k].name, cases[k].type, cases[k].count, cases[k].numbers);
        assert_refused(files.lors, cases[k].words);
    }
    unlink(PATH);
    assert_refused(files.lors, "No such file");
    bytes_write(PATH, "hello", 5);
    assert_refused(files.lors, "is not an HDF5 file");
}

/* A file without /scanner is read by its pairs only, because other programs need not write it. */
static void test_no_scanner(void **state)
{
    assert_int_equal(lr_lor_data_write(PATH, files.lors, &sparse, NULL), LR_OK);
    replace("/scanner", 0, 0, NULL);
    keep(lr_lor_data_read(PATH, files.lors, NULL));
}

static void test_refused_data(void **state)
{
    struct test_log log = TEST_LOG(log);
    dense->values[5] = INFINITY;
    assert_fails(lr_lor_data_write(PATH, files.lors, dense, &log.log), LR_BAD_INPUT, &log, "inf for LOR 5");
    dense->values[5] = 0.0f;
    lors_of_sparse[1] = lors_of_sparse[0];
    assert_int_equal(lr_lor_data_write(PATH, files.lors, &sparse, &log.log), LR_BAD_INPUT);
    lors_of_sparse[1] = 17;
    assert_int_equal(folder_visit(&files.folder, true), 0);
    assert_int_equal(lr_lor_data_write("/dev/null", files.lors, dense, &log.log), LR_USAGE);
}

/* HDF5's own printing of errors is left as it was, also after failures. */
static void test_printing_restored(void **state)
{
    H5E_auto2_t before, after;
    void *user;
    H5Eget_auto2(H5E_DEFAULT, &before, &user);
    assert_null(lr_lor_data_read("no/such.h5", files.lors, NULL));
    assert_int_equal(lr_lor_data_write(PATH, files.lors, dense, NULL), LR_OK);
    keep(lr_lor_data_read(PATH, files.lors, NULL));
    H5Eget_auto2(H5E_DEFAULT, &after, &user);
    assert_true(before == after && before != NULL);
    assert_int_equal(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

static void test_disk_full(void **state)
{
    assert_int_equal(lr_lor_data_write(PATH, files.lors, dense, NULL), LR_OK);
    const size_t count = file_size(PATH);
    folder_visit(&files.folder, true);
    for (size_t limit = 0; limit < count; limit += limit + 40 < count ? 37 : 1) {
        struct test_log log = TEST_LOG(log);
        assert_disk_full(limit, lr_lor_data_write(PATH, files.lors, dense, &log.log), &log, PATH,
                         "largest file allowed");
        assert_int_equal(count_files(), 0);
    }
    assert_int_equal(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

/* There are more events than the buffer of unsorted events holds: on few LORs, so that sums repeat, and on so many
 * that the sums are larger than the buffer. */
static void expect_sums(int64_t num_lors, int64_t num_events, bool whole)
{
    struct lr_lor_sums sums = {0};
    uint64_t seed = test_seed();
    float *wanted = kept_floats(num_lors);
    for (int64_t k = 0; k < num_events; k++) {
        const int64_t lor = (int64_t)(test_random(&seed) * (double)num_lors);
        const float weight = whole || k < 100 ? 1 : (float)(int)(8 * test_random(&seed)) * 0.25f;
        wanted[lor] += weight;
        assert_int_equal(lr_lor_sums_add(&sums, lor, weight, NULL), LR_OK);
    }
    lr_lor_data *data = keep(lr_lor_sums_finish(&sums, NULL));
    int64_t at = 0;
    for (int64_t lor = 0; lor < num_lors; lor++) {
        const bool listed = at < data->count && data->index[at] == lor;
        assert_true((listed ? data->values[at] : 0) == wanted[lor]);
        at += listed;
    }
    assert_int_equal(at, data->count);
}

static void sums_are_those_of_all_events(void **state)
{
    expect_sums(1000, 0, true);
    expect_sums(1000, 100000, true);
    expect_sums(1000, 100000, false);
    expect_sums(5000, 11000000, true);
    expect_sums(6000000, 10000000, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, files_end)
group_main("io lor data", NULL, NULL, TEST(test_round_trip), TEST(test_large), TEST(test_layout),
           TEST(test_other_scanner), TEST(test_wrong_content), TEST(test_no_scanner), TEST(test_refused_data),
           TEST(test_printing_restored), TEST(test_disk_full), TEST(test_same_bytes),
           CASE(sums_are_those_of_all_events))
