/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Pictures: pixels are set where they should be and nowhere else, colour maps keep the order of values, and tiles are
 * at the computed positions. */
#include "pictures.h"

static const lr_colour red = {255, 0, 0};

static bool same(lr_colour a, lr_colour b)
{
    return a.r == b.r && a.g == b.g && a.b == b.b;
}

static void test_create(void **state)
{
    struct test_log log = TEST_LOG(log);
    assert_null(lr_picture_create((int[2]){0, 5}, &log.log));
    assert_int_equal(log.status, LR_USAGE);
    assert_null(lr_picture_create((int[2]){5, 65537}, &log.log));
    assert_int_equal(count_pixels(make(3, 2), black), 6);
    lr_picture_destroy(NULL);
}

/* Rectangles are cut at the picture's border, wherever they begin and end. */
static void test_shapes_are_cut(void **state)
{
    for (int x = -4; x < 7; x++) {
        for (int y = -4; y < 7; y++) {
            lr_picture *picture = make(5, 4);
            lr_picture_fill(picture, (int[2]){x, y}, (int[2]){3, 2}, red);
            int expected = 0;
            for (int px = x; px < x + 3; px++)
                for (int py = y; py < y + 2; py++) expected += px >= 0 && px < 5 && py >= 0 && py < 4;
            assert_int_equal(count_pixels(picture, red), expected);
        }
    }
    lr_picture *picture = make(5, 4);
    const int all[2] = {INT32_MAX, INT32_MAX};
    lr_picture_fill(picture, (int[2]){3, 3}, all, red);
    assert_int_equal(count_pixels(picture, red), 2);
    lr_picture_frame(picture, (int[2]){0, 0}, (int[2]){5, 4}, white);
    assert_int_equal(count_pixels(picture, white), 14);
    lr_picture_fill(picture, (int[2]){0, 0}, (int[2]){-1, 3}, red);
    assert_int_equal(count_pixels(picture, white), 14);
}

/* A line has one pixel per step of its longer direction, and both its ends. */
static void test_line(void **state)
{
    for (int n = 0; n < 64; n++) {
        lr_picture *picture = make(8, 8);
        const int from[2] = {3, 4}, to[2] = {n % 8, n / 8};
        lr_picture_line(picture, from, to, red);
        const int steps = abs(to[0] - 3) > abs(to[1] - 4) ? abs(to[0] - 3) : abs(to[1] - 4);
        assert_int_equal(count_pixels(picture, red), steps + 1);
        assert_true(is_colour(picture, 3, 4, red) && is_colour(picture, to[0], to[1], red));
    }
    lr_picture *picture = make(8, 8);
    lr_picture_line(picture, (int[2]){-20, 5}, (int[2]){20, 5}, red);
    assert_int_equal(count_pixels(picture, red), 8);
}

/* Lightness as Oklab defines it (linear light to cone responses, their cube roots). */
static double lightness(lr_colour colour)
{
    const uint8_t channels[3] = {colour.r, colour.g, colour.b};
    double c[3];
    for (int k = 0; k < 3; k++) {
        const double v = channels[k] / 255.0;
        c[k] = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
    }
    return 0.2104542553 * cbrt(0.4122214708 * c[0] + 0.5363325363 * c[1] + 0.0514459929 * c[2]) +
           0.7936177850 * cbrt(0.2119034982 * c[0] + 0.6806995451 * c[1] + 0.1073969566 * c[2]) -
           0.0040720468 * cbrt(0.0883024619 * c[0] + 0.2817188376 * c[1] + 0.6299787005 * c[2]);
}

/* The perceptual map's lightness is linear in t: the error of a step is at most 0.006, the effect of rounding dark
 * colours to 8 bits. A colour clipped at the border of sRGB would have a larger error. */
static void test_perceptual_map(void **state)
{
    const double first = lightness(lr_colour_of(LR_COLOURS_PERCEPTUAL, 0.0));
    const double last = lightness(lr_colour_of(LR_COLOURS_PERCEPTUAL, 1.0));
    assert_true(first < 0.25 && last > 0.9);
    for (int n = 0; n <= 200; n++) {
        const double t = n / 200.0, line = first + t * (last - first);
        assert_true(fabs(lightness(lr_colour_of(LR_COLOURS_PERCEPTUAL, t)) - line) < 0.006);
    }
}

/* In the diverging map, lightness is equal at equal distances from the middle and falls linearly from there. No
 * colour is clipped at the border of sRGB, which would break the straight line. */
static void test_diverging_map(void **state)
{
    const double middle = lightness(lr_colour_of(LR_COLOURS_DIVERGING, 0.5));
    const double end = lightness(lr_colour_of(LR_COLOURS_DIVERGING, 0.0));
    assert_true(middle > 0.95 && end < 0.5);
    for (int n = 0; n <= 100; n++) {
        const double away = n / 100.0, line = middle + away * (end - middle);
        for (int sign = -1; sign <= 1; sign += 2) {
            const lr_colour colour = lr_colour_of(LR_COLOURS_DIVERGING, 0.5 + 0.5 * sign * away);
            assert_true(fabs(lightness(colour) - line) < 0.006);
            if (n >= 10) assert_true(sign < 0 ? colour.b > colour.r + 10 : colour.r > colour.b + 10);
        }
    }
}

static void test_colour_ends(void **state)
{
    assert_true(same(lr_colour_of(LR_COLOURS_GREY, -1.0), black));
    assert_true(same(lr_colour_of(LR_COLOURS_GREY, 0.5), (lr_colour){128, 128, 128}));
    assert_true(same(lr_colour_of(LR_COLOURS_GREY, 2.0), white));
    assert_true(same(lr_colour_of(LR_COLOURS_INVERSE_GREY, 0.0), white));
    assert_true(same(lr_colour_of(LR_COLOURS_INVERSE_GREY, 1.0), black));
    assert_true(same(lr_colour_of(LR_COLOURS_INVERSE_GREY, (double)NAN), black));
}

/* Values are drawn at the positions that stride, direction and zoom define, and the ends of the range get the first
   and last colours. */
static void test_map(void **state)
{
    const float values[2][3] = {{0.0f, 1.0f, 2.0f}, {3.0f, NAN, 5.0f}};
    const uint8_t grey[2][3] = {{0, 51, 102}, {153, 0, 255}};
    for (int n = 0; n < 4; n++) {
        const bool turned = n & 1, on_top = n & 2; /* columns of the array along x, or its rows */
        const int size[2] = {turned ? 2 : 3, turned ? 3 : 2};
        lr_map_params params =
            filled(lr_map_params, .values = &values[0][0], .size = {size[0], size[1]}, .first_row_on_top = on_top,
                   .drawn_size = {2 * size[0], 3 * size[1]}, .not_a_number = {255, 0, 0});
        if (turned) {
            params.stride[0] = 3;
            params.stride[1] = 1;
        }
        lr_picture *picture = make(2 * size[0] + 1, 3 * size[1] + 1);
        lr_picture_map(picture, (int[2]){1, 1}, &params);
        for (int y = 0; y < 3 * size[1]; y++) {
            for (int x = 0; x < 2 * size[0]; x++) {
                const int row = on_top ? y / 3 : size[1] - 1 - y / 3, column = x / 2;
                const int i = turned ? column : row, j = turned ? row : column;
                const lr_colour expected = i == 1 && j == 1 ? red : (lr_colour){grey[i][j], grey[i][j], grey[i][j]};
                assert_true(is_colour(picture, x + 1, y + 1, expected));
            }
        }
    }
}

/* Constant arrays, arrays without finite values, and values outside the range can be drawn, too. */
static void test_map_ranges(void **state)
{
    const float values[3] = {INFINITY, -INFINITY, NAN}, far[2] = {-100.0f, 100.0f};
    lr_picture *picture = make(3, 1);
    lr_picture_map(picture, (int[2]){0, 0}, &(lr_map_params){.values = values, .size = {3, 1}});
    assert_all(is_colour(picture, 0, 0, white), is_colour(picture, 1, 0, black));
    lr_picture_map(picture, (int[2]){0, 0}, &(lr_map_params){.values = far, .size = {2, 1}, .low = 1.0, .high = 2.0});
    assert_all(is_colour(picture, 0, 0, black), is_colour(picture, 1, 0, white));
}

/* A slice shows the plane of voxels nearest to a position. +x, or +y in a sagittal slice, is on the left; +y or +z is
 * above. */
static void test_slices(void **state)
{
    const lr_grid grid = {{3, 4, 5}, {2.0, 2.0, 2.0}, {-2.0, -3.0, -4.0}};
    lr_image *image = keep(lr_image_create(&grid, NULL));
    for (int n = 0; n < 60; n++) image->values[n] = (float)n;
    const int axes[3][3] = {{0, 1, 2}, {0, 2, 1}, {1, 2, 0}}, strides[3] = {1, 3, 12};
    for (int plane = 0; plane < 3; plane++) {
        const int across = axes[plane][0], up = axes[plane][1], normal = axes[plane][2];
        for (int slice = 0; slice < grid.size[normal]; slice++) {
            const lr_slice_params params = filled(lr_slice_params, .image = image, .plane = (lr_plane)plane,
                                                  .position_mm = grid.origin_mm[normal] + 2.0 * slice + 0.9,
                                                  .pixels_per_mm = 0.5, .low = -0.5, .high = 254.5);
            lr_picture *picture = keep_picture(lr_picture_slice(&params));
            assert_ints(picture->size[0], grid.size[across], picture->size[1], grid.size[up]);
            for (int b = 0; b < grid.size[up]; b++) {
                for (int a = 0; a < grid.size[across]; a++) {
                    const int row = a * strides[across] + b * strides[up] + slice * strides[normal];
                    const int shown = picture->rgb[3 * ((grid.size[up] - b) * grid.size[across] - 1 - a)];
                    assert_true(abs(shown - row - 1) <= 1); /* 255 grey levels for 255 values */
                }
            }
        }
    }
    lr_picture *usual = keep_picture(lr_picture_slice(&(lr_slice_params){.image = image}));
    assert_ints(usual->size[0], 3 * 64, usual->size[1], 4 * 64);
}

/* The scale bar's length in pixels corresponds to its label, which is 1, 2 or 5 times a power of ten. */
static void test_scale_bar(void **state)
{
    const double extents[] = {7.0, 43.2, 100.0, 576.0};
    const double expected[] = {2.0, 10.0, 20.0, 200.0}; /* at most 0.4 of the width */
    for (int n = 0; n < 4; n++) {
        const double voxel[3] = {extents[n] / 10.0, extents[n] / 10.0, 1.0};
        const lr_grid grid = lr_grid_centred((int[3]){10, 10, 1}, voxel);
        lr_image *image = keep(lr_image_create(&grid, NULL));
        const double scale = 200.0 / extents[n];
        const lr_slice_params params = {.image = image, .pixels_per_mm = scale, .scale_bar = true};
        lr_picture *picture = keep_picture(lr_picture_slice(&params));
        assert_int_equal(picture->size[0], 200);
        int length = 0;
        while (is_colour(picture, length, 210, black)) length++;
        assert_true(fabs(length - expected[n] * scale) <= 0.51);
    }
}

/* Tiles of different sizes are arranged in columns and rows without overlapping. */
static void test_mosaic(void **state)
{
    lr_picture *tiles[5];
    lr_tile list[5];
    int area = 0;
    for (int n = 0; n < 5; n++) {
        tiles[n] = make(10 + 7 * n, 20 - 3 * n);
        lr_picture_fill(tiles[n], (int[2]){0, 0}, tiles[n]->size, red);
        list[n] = (lr_tile){tiles[n], n == 2 ? NULL : "a rather long caption"};
        area += tiles[n]->size[0] * tiles[n]->size[1];
    }
    for (int columns = 0; columns < 7; columns++) {
        const lr_mosaic_params params = {.tiles = list, .num_tiles = 5, .columns = columns, .title = "all"};
        assert_int_equal(count_pixels(keep_picture(lr_picture_mosaic(&params)), red), area);
    }
    /* A subtitle is broken into lines: the page grows by their height, and in width by less than the text's width. */
    static const char words[] = "words that tell what made it, and why nothing else did, at such a length that two "
                                "lines or more are needed for them";
    lr_mosaic_params params = {.tiles = list, .num_tiles = 1, .title = "all"};
    lr_picture *plain = keep_picture(lr_picture_mosaic(&params));
    params.subtitle = words;
    lr_picture *noted = keep_picture(lr_picture_mosaic(&params));
    const lr_text_style small = {.size_px = 12};
    assert_true(noted->size[1] >= plain->size[1] + 2 * lr_picture_text_height(&small));
    assert_true(noted->size[0] < lr_picture_text_width(words, &small));
    int drawn = 0;
    for (int y = 34; y < 34 + noted->size[1] - plain->size[1]; y++)
        for (int x = 0; x < noted->size[0]; x++) drawn += !is_colour(noted, x, y, white);
    assert_true(drawn > 4 * (int)strlen(words)); /* a letter has more pixels than this, a blank has none */
    struct test_log log = TEST_LOG(log);
    assert_null(lr_picture_mosaic(&(lr_mosaic_params){.tiles = list, .log = &log.log}));
    assert_int_equal(log.status, LR_USAGE);
}

/* A chart shows a single point and values of 0; its axes have ticks, but for groups of bars. */
static void test_charts(void **state)
{
    const lr_colour first = {0, 90, 160};
    const double x[1] = {-3}, y[1] = {7}, none[1] = {NAN};
    lr_curve curve = {.name = "a", .x = x, .y = y, .count = 1};
    lr_chart_params params = {.curves = &curve, .num_curves = 1, .across = "x", .up = "y"};
    const int swatch = 4 * 16, point = 4 * 4;
    lr_picture *picture = keep_picture(lr_picture_chart(&params));
    assert_int_equal(count_pixels(picture, first), swatch + point);
    curve.y = none;
    assert_int_equal(count_pixels(keep_picture(lr_picture_chart(&params)), first), swatch);
    curve.count = 0; /* axes from 0 to 1 */
    assert_true(count_pixels(keep_picture(lr_picture_chart(&params)), black) > 2 * (300 + 240));

    static const char *const groups[] = {"one", "two"};
    const double bars[2] = {0, 1};
    params.groups = groups;
    params.num_groups = 2;
    params.across = NULL;
    curve = (lr_curve){.name = "a", .y = bars, .count = 2};
    lr_picture *both = keep_picture(lr_picture_chart(&params));
    const int high = (count_pixels(both, first) - swatch) / 119; /* a bar's width is 0.8 of a group's less 1 */
    assert_true(high == (int)(240 / 1.08 + 0.5));
    assert_true(both->size[1] < picture->size[1]); /* no name below the axis */
}

test_main("picture_drawing", CASE(test_create), CASE(test_shapes_are_cut), CASE(test_line), CASE(test_perceptual_map),
          CASE(test_diverging_map), CASE(test_colour_ends), CASE(test_map), CASE(test_map_ranges), CASE(test_slices),
          CASE(test_scale_bar), CASE(test_charts), CASE(test_mosaic))
