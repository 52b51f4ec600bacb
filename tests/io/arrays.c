/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * .npy and .png files, and the outputs beneath every writer: whole or not at all. */
#include "io/files.h"

#include "io/files/output.h"

#include <errno.h>
#include <fcntl.h>
#include <png.h>

static void test_npy(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    folder_file(&folder, path, "a.npy");
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
        assert_int_equal(start % 64, 0);
        assert_int_equal(bytes[start - 1], '\n');
        assert_int_equal(count, start + 4 * counts[dims]);
        assert_memory_equal(bytes + start, values, 4 * counts[dims]); /* little-endian machine */
        bytes[start - 1] = '\0';
        const char *text = (const char *)bytes + 10;
        assert_non_null(strstr(text, "'descr': '<f4'"));
        assert_non_null(strstr(text, "'fortran_order': False"));
        assert_non_null(strstr(text, tuples[dims]));
        free(bytes);
    }
    struct test_log log;
    test_log_init(&log);
    const int64_t bad[2] = {3, -1};
    assert_int_equal(lr_npy_write(path, &(lr_array){values, bad, 2}, &log.log), LR_USAGE);
    const int64_t huge[2] = {INT64_MAX / 2, 3};
    assert_int_equal(lr_npy_write(path, &(lr_array){values, huge, 2}, &log.log), LR_USAGE);
    folder_finish(&folder);
}

static void test_png(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    folder_file(&folder, path, "a.png");
    enum { width = 37, height = 11 };
    uint8_t rgb[height][width][3], back[height][width][3];
    uint64_t seed = test_seed();
    for (int n = 0; n < height * width * 3; n++) (&rgb[0][0][0])[n] = (uint8_t)(256.0 * test_random(&seed));
    const int size[2] = {width, height};
    assert_int_equal(lr_png_write(path, &rgb[0][0][0], size, NULL), LR_OK);
    png_image image = {.version = PNG_IMAGE_VERSION};
    assert_true(png_image_begin_read_from_file(&image, path));
    assert_int_equal(image.width, width);
    assert_int_equal(image.height, height);
    assert_int_equal(image.format, PNG_FORMAT_RGB);
    assert_true(png_image_finish_read(&image, NULL, back, 0, NULL));
    assert_memory_equal(rgb, back, sizeof(rgb));
    const int none[2] = {0, 3};
    assert_int_equal(lr_png_write(path, &rgb[0][0][0], none, NULL), LR_USAGE);
    folder_finish(&folder);
}

/* Each limit, from nothing to one byte less than the file: a failure with a sentence, no file. */
static void test_disk_full(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    size_t count;
    folder_init(&folder);
    const float values[3] = {1.0f, 2.0f, 3.0f};
    const int64_t shape[1] = {3};
    const uint8_t rgb[12] = {0};
    const int size[2] = {2, 2};
    for (int kind = 0; kind < 2; kind++) {
        folder_file(&folder, path, kind == 0 ? "a.npy" : "a.png");
        assert_int_equal(kind == 0 ? lr_npy_write(path, &(lr_array){values, shape, 1}, NULL)
                                   : lr_png_write(path, rgb, size, NULL),
                         LR_OK);
        free(bytes_read(path, &count));
        folder_visit(&folder, true);
        for (size_t limit = 0; limit < count; limit++) {
            struct test_log log;
            test_log_init(&log);
            const struct rlimit before = disk_fill(limit);
            const lr_status status = kind == 0 ? lr_npy_write(path, &(lr_array){values, shape, 1}, &log.log)
                                               : lr_png_write(path, rgb, size, &log.log);
            disk_empty(before);
            assert_int_equal(status, LR_FAILED);
            assert_non_null(strstr(log.error, path));
            assert_int_equal(folder_visit(&folder, false), 0);
        }
    }
    folder_finish(&folder);
}

/* The device that is always full, where there is one: written in place, and still a device. */
static void test_full_device(void **state)
{
    (void)state;
    struct stat info;
    const float value = 1.0f;
    if (stat("/dev/full", &info) != 0 || !S_ISCHR(info.st_mode)) {
        print_message("skipped: there is no /dev/full\n");
        skip();
    }
    struct test_log log;
    test_log_init(&log);
    assert_int_equal(lr_npy_write("/dev/full", &(lr_array){&value, NULL, 0}, &log.log), LR_FAILED);
    assert_non_null(strstr(log.error, "the disk is full"));
    assert_int_equal(stat("/dev/full", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

static void test_places(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    struct test_log log;
    const float value = 1.0f;
    folder_init(&folder);
    test_log_init(&log);
    assert_int_equal(lr_npy_write("no/such/folder/a.npy", &(lr_array){&value, NULL, 0}, &log.log), LR_FAILED);
    assert_non_null(strstr(log.error, "no folder no/such/folder/"));
    assert_int_equal(lr_npy_write(folder.path, &(lr_array){&value, NULL, 0}, &log.log), LR_FAILED);
    assert_non_null(strstr(log.error, "it is a folder"));
    assert_int_equal(lr_npy_write("", &(lr_array){&value, NULL, 0}, &log.log), LR_USAGE);
    assert_int_equal(lr_npy_write(NULL, &(lr_array){&value, NULL, 0}, &log.log), LR_USAGE);
    /* a link stays one, and what it points to is replaced */
    char target[128];
    folder_file(&folder, target, "target.npy");
    folder_file(&folder, path, "link.npy");
    bytes_write(target, "x", 1);
    assert_int_equal(symlink("target.npy", path), 0);
    assert_int_equal(lr_npy_write(path, &(lr_array){&value, NULL, 0}, &log.log), LR_OK);
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(target, &info), 0);
    assert_true(info.st_size > 64);
    assert_int_equal(folder_visit(&folder, false), 2);
    folder_finish(&folder);
}

/* Until it is finished an output is not there; given up, it never was. Two at once do not meet. */
static void test_whole_or_not(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    struct lr_output first, second;
    folder_init(&folder);
    folder_file(&folder, path, "a");
    assert_int_equal(lr_output_open(&first, path, NULL), LR_OK);
    assert_int_equal(lr_output_open(&second, path, NULL), LR_OK);
    assert_int_equal(lr_output_write(&first, "first", 5), LR_OK);
    assert_int_equal(lr_output_write(&second, "2nd", 3), LR_OK);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(lr_output_finish(&first), LR_OK);
    lr_output_abandon(&second);
    assert_int_equal(folder_visit(&folder, false), 1);
    size_t count;
    unsigned char *bytes = bytes_read(path, &count);
    assert_int_equal(count, 5);
    free(bytes);
    struct stat info;
    const mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
    folder_finish(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npy),         cmocka_unit_test(test_png),    cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_full_device), cmocka_unit_test(test_places), cmocka_unit_test(test_whole_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
