/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A machine without fonts: pictures have text all the same, in cairo's strokes, and one sentence
 * says what is missing. */
#define _XOPEN_SOURCE 700 /* realpath, setenv */
#include "test.h"

static int count_ink(const lr_picture *picture)
{
    int count = 0;
    for (int n = 0; n < picture->size[0] * picture->size[1]; n++) count += picture->rgb[3 * n] < 255;
    return count;
}

static void test_strokes(void **state)
{
    (void)state;
    const lr_text_style style = {.size_px = 0};
    const int width = lr_picture_text_width("emissions per voxel", &style);
    assert_true(width > 40 && width < 300);
    lr_picture *picture = lr_picture_create((int[2]){400, 40}, NULL);
    lr_picture_fill(picture, (int[2]){0, 0}, picture->size, (lr_colour){255, 255, 255});
    lr_picture_text(picture, (int[2]){5, 5}, "emissions per voxel", &style);
    const int ink = count_ink(picture);
    assert_true(ink > 100);
    lr_picture_text(picture, (int[2]){5, 5},
                    "a longer text that shall be shortened, for it has "
                    "no room to speak of here, none at all \xff\x01 µ",
                    &style);
    assert_true(count_ink(picture) > ink);
    lr_picture_destroy(picture);
}

/* The first picture with a log warns, the next ones do not. */
static void test_one_sentence(void **state)
{
    (void)state;
    struct test_log log;
    test_log_init(&log);
    lr_picture *tile = lr_picture_create((int[2]){30, 30}, NULL);
    const lr_tile list[1] = {{tile, "a caption"}};
    for (int n = 0; n < 3; n++) {
        lr_picture *page =
            lr_picture_mosaic(&(lr_mosaic_params){.tiles = list, .num_tiles = 1, .title = "all", .log = &log.log});
        assert_non_null(page);
        assert_true(count_ink(page) > 30 * 30 + 50);
        lr_picture_destroy(page);
        assert_int_equal(log.num_warnings, 1);
    }
    assert_non_null(strstr(log.warning, "fonts-dejavu-core"));
    assert_int_equal(log.status, LR_OK);
    lr_picture_destroy(tile);
}

int main(void)
{
    static const char file[] = "no-fonts.conf";
    FILE *stream = fopen(file, "w");
    if (stream == NULL || fputs("<?xml version=\"1.0\"?><fontconfig></fontconfig>\n", stream) < 0 ||
        fclose(stream) != 0 || setenv("FONTCONFIG_FILE", file, 1) != 0)
        return 1;
    char path[4096];
    if (realpath(file, path) == NULL || setenv("FONTCONFIG_FILE", path, 1) != 0) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_strokes), cmocka_unit_test(test_one_sentence)};
    return cmocka_run_group_tests_name("pictures without a font", tests, NULL, NULL);
}
