/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Correspondence pictures: red and green show the crystal's indices, scaled by the secondary module's own numbers of
 * crystals; grey where a line ends in no crystal; v points up. */
#include "pictures.h"

enum { rays = 2, nu = 3, nv = 2, columns = rays * nu, rows = rays * nv };

/* Two unequal modules: the primary of 3 x 2 crystals, the other of 5 x 10. */
static lr_scanner *make_scene(lr_pixel pixels[rows][columns])
{
    const lr_module modules[2] = {{.centre_mm = {0, 100, 0},
                                   .u = {1, 0, 0},
                                   .v = {0, 0, 1},
                                   .crystals = {nu, nv},
                                   .pitch_mm = {4, 4},
                                   .face_mm = {4, 4},
                                   .depth_mm = 10},
                                  {.centre_mm = {0, -100, 0},
                                   .u = {1, 0, 0},
                                   .v = {0, 0, 1},
                                   .crystals = {5, 10},
                                   .pitch_mm = {2, 2},
                                   .face_mm = {2, 2},
                                   .depth_mm = 10}};
    const lr_scanner_params params = {.name = "pair", .modules = modules, .num_modules = 2};
    for (int y = 0; y < rows; y++) {
        for (int x = 0; x < columns; x++) {
            pixels[y][x] = (lr_pixel){
                .module = 1, .r = (float)(x % 5), .s = (float)(y + 3), .weight = (float)(1 + x + columns * y)};
        }
    }
    pixels[0][0] = (lr_pixel){.module = -1, .r = -1, .s = -1};
    return keep(lr_scanner_create(&params));
}

static void test_crystals(void **state)
{
    lr_pixel pixels[rows][columns];
    const lr_scanner *scanner = make_scene(pixels);
    const lr_correspondence_params params = {.pixels = &pixels[0][0], .scanner = scanner, .rays = rays, .zoom = 2};
    lr_picture *picture = keep_picture(lr_picture_correspondence(&params));
    assert_ints(picture->size[0], 2 * columns, picture->size[1], 2 * rows);
    for (int y = 0; y < 2 * rows; y++) {
        for (int x = 0; x < 2 * columns; x++) {
            const lr_pixel *pixel = &pixels[rows - 1 - y / 2][x / 2];
            const uint8_t *rgb = picture->rgb + 3 * (y * 2 * columns + x);
            const bool ends = pixel->module >= 0;
            assert_int_equal(rgb[0], ends ? lround(255.0 * ((double)pixel->r + 1.0) / 5.0) : 203);
            assert_ints(rgb[1], ends ? lround(255.0 * ((double)pixel->s + 1.0) / 10.0) : 206, rgb[2], ends ? 0 : 210);
        }
    }
}

/* The pixel of the largest weight has the last colour of the map; the pixel without a line is grey. */
static void test_weights(void **state)
{
    lr_pixel pixels[rows][columns];
    const lr_scanner *scanner = make_scene(pixels);
    lr_picture *picture = keep_picture(lr_picture_correspondence(&(lr_correspondence_params){
        .pixels = &pixels[0][0], .scanner = scanner, .rays = rays, .zoom = 1, .view = LR_VIEW_WEIGHTS}));
    const uint8_t *top_right = picture->rgb + 3 * (columns - 1);
    const uint8_t *bottom_left = picture->rgb + 3 * (columns * (rows - 1));
    const lr_colour last = lr_colour_of(LR_COLOURS_PERCEPTUAL, 1.0);
    assert_true(top_right[0] == last.r && top_right[1] == last.g && top_right[2] == last.b);
    assert_true(bottom_left[0] == 203 && bottom_left[1] == 206 && bottom_left[2] == 210);
}

/* Grid lines are drawn only between crystals, and only if they do not hide them. */
static void test_grid(void **state)
{
    lr_pixel pixels[rows][columns];
    const lr_scanner *scanner = make_scene(pixels);
    for (int zoom = 1; zoom < 4; zoom++) {
        lr_correspondence_params params = {.pixels = &pixels[0][0], .scanner = scanner, .rays = rays, .zoom = zoom};
        lr_picture *plain = keep_picture(lr_picture_correspondence(&params));
        params.crystal_grid = true;
        lr_picture *lined = keep_picture(lr_picture_correspondence(&params));
        const int step = rays * zoom;
        for (int y = 0; y < plain->size[1]; y++) {
            for (int x = 0; x < plain->size[0]; x++) {
                const size_t offset = 3 * (size_t)(y * plain->size[0] + x);
                const bool on_line = (x > 0 && x % step == 0) || (y > 0 && y % step == 0);
                const bool differs = memcmp(plain->rgb + offset, lined->rgb + offset, 3) != 0;
                assert_true(differs == (on_line && step >= 4));
            }
        }
    }
}

static void test_refusals(void **state)
{
    lr_pixel pixels[rows][columns];
    const lr_scanner *scanner = make_scene(pixels);
    struct test_log log = TEST_LOG(log);
    lr_correspondence_params params = {.pixels = &pixels[0][0], .scanner = scanner, .rays = 0, .log = &log.log};
    assert_null(lr_picture_correspondence(&params));
    assert_int_equal(log.status, LR_USAGE);
    params.rays = rays;
    params.module = 2;
    assert_null(lr_picture_correspondence(&params));
}

test_main("picture_correspondence", CASE(test_crystals), CASE(test_weights), CASE(test_grid), CASE(test_refusals))
