/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * .npy and .png files, and the outputs that all writers use: an output is whole or absent. */
#include "io/files.h"

#include "io/files/output.h"

#include <png.h>

static void test_npy(void **state)
{
    const char *path = "a.npy";
    float values[24];
    for (int n = 0; n < 24; n++) values[n] = (float)n - 0.1f;
    const int64_t shape[3] = {2, 3, 4};
    const char *const tuples[] = {"'shape': (), ", "'shape': (2,), ", "'shape': (2, 3), ", "'shape': (2, 3, 4), "};
    const size_t counts[] = {1, 2, 6, 24};
    for (int dims = 0; dims < 4; dims++) {
        size_t count;
        assert_int_equal(lr_npy_write(path, &(lr_array){values, shape, dims}, NULL), LR_OK);
        unsigned char *bytes = bytes_read(path, &count);
        assert_memory_equal(bytes, "\x93NUMPY\x01\x00", 8);
        const size_t start = 10 + bytes[8] + 256u * bytes[9];
        assert_pairs(0, {start % 64, 0}, {bytes[start - 1], '\n'}, {count, start + 4 * counts[dims]});
        assert_memory_equal(bytes + start, values, 4 * counts[dims]); /* little-endian machine */
        bytes[start - 1] = '\0';
        const char *text = (const char *)bytes + 10;
        assert_all(strstr(text, "'descr': '<f4'") != NULL, strstr(text, "'fortran_order': False") != NULL);
        assert_non_null(strstr(text, tuples[dims]));
    }
    const int64_t bad[2][2] = {{3, -1}, {INT64_MAX / 2, 3}};
    for (int k = 0; k < 2; k++)
        assert_int_equal(lr_npy_write(path, &(lr_array){values, bad[k], 2}, &files.log.log), LR_USAGE);
}

static void test_png(void **state)
{
    const char *path = "a.png";
    enum { width = 37, height = 11 };
    uint8_t rgb[height][width][3], back[height][width][3];
    uint64_t seed = test_seed();
    for (int n = 0; n < height * width * 3; n++) (&rgb[0][0][0])[n] = (uint8_t)(256.0 * test_random(&seed));
    const int size[2] = {width, height};
    assert_int_equal(lr_png_write(path, &rgb[0][0][0], size, NULL), LR_OK);
    png_image image = {.version = PNG_IMAGE_VERSION};
    assert_true(png_image_begin_read_from_file(&image, path));
    assert_pairs(0, {image.width, width}, {image.height, height}, {image.format, PNG_FORMAT_RGB});
    assert_true(png_image_finish_read(&image, NULL, back, 0, NULL));
    assert_memory_equal(rgb, back, sizeof(rgb));
    const int none[2] = {0, 3};
    assert_int_equal(lr_png_write(path, &rgb[0][0][0], none, NULL), LR_USAGE);
}

static lr_status write_small(const char *path, const lr_log *log)
{
    const float values[3] = {1.0f, 2.0f, 3.0f};
    const int64_t shape[1] = {3};
    const uint8_t rgb[12] = {0};
    if (strstr(path, ".npy") != NULL) return lr_npy_write(path, &(lr_array){values, shape, 1}, log);
    return lr_png_write(path, rgb, (const int[2]){2, 2}, log);
}

/* For every size limit, from 0 to one byte less than the file: an error with a sentence, and no file. */
static void test_disk_full(void **state)
{
    for (int kind = 0; kind < 2; kind++) {
        char path[128];
        folder_file(&files.folder, path, kind == 0 ? "a.npy" : "a.png");
        assert_int_equal(write_small(path, NULL), LR_OK);
        const size_t count = file_size(path);
        folder_visit(&files.folder, true);
        for (size_t limit = 0; limit < count; limit++) {
            test_log_init(&files.log);
            assert_disk_full(limit, write_small(path, &files.log.log), &files.log, path);
            assert_int_equal(count_files(), 0);
        }
    }
}

static void test_places(void **state)
{
    const lr_log *log = &files.log.log;
    const float value = 1.0f;
    const lr_array array = {&value, NULL, 0};
    assert_fails(lr_npy_write("no/such/folder/a.npy", &array, log), LR_FAILED, &files.log, "no folder no/such/folder/");
    assert_fails(lr_npy_write(files.folder.path, &array, log), LR_FAILED, &files.log, "it is a folder");
    assert_ints(lr_npy_write("", &array, log), LR_USAGE, lr_npy_write(NULL, &array, log), LR_USAGE);
}

/* An output appears only when it is finished; if it is given up, it never appears. Two outputs at once do not
   disturb each other. */
static void test_whole_or_not(void **state)
{
    struct lr_output first, second;
    const char *path = "a";
    assert_ok(lr_output_open(&first, path, NULL), lr_output_open(&second, path, NULL));
    assert_ok(lr_output_write(&first, "first", 5), lr_output_write(&second, "2nd", 3));
    assert_ints(access(path, F_OK), -1, lr_output_finish(&first), LR_OK);
    lr_output_abandon(&second);
    assert_int_equal(count_files(), 1);
    assert_holds(path, "first");
}

group_main("io arrays", NULL, NULL, FILES_CASE(test_npy), FILES_CASE(test_png), FILES_CASE(test_disk_full),
           FILES_CASE(test_places), FILES_CASE(test_whole_or_not))
