/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Axes, colour bars and legends: they stay within the room that they ask for, do not change the picture that they
 * surround, and work around the smallest pictures. */
#include "pictures.h"

#include "picture/axes.h"

enum { room = 200 };

/* Pixels in [low, high) that are not white. */
static int count_ink(const lr_picture *picture, const int low[2], const int high[2])
{
    int count = 0;
    for (int y = low[1]; y < high[1]; y++)
        for (int x = low[0]; x < high[0]; x++) count += !is_colour(picture, x, y, white);
    return count;
}

static int count_all(const lr_picture *picture)
{
    return count_ink(picture, (int[2]){0, 0}, picture->size);
}

static lr_picture *make_page(const int size[2])
{
    return make_white(size[0] + 2 * room, size[1] + 2 * room);
}

/* --- axes --- */

/* There is text on all sides but the right one, none over the picture, and none beyond the margins. */
static void check_axes(const struct lr_axes *params)
{
    struct lr_axes axes = *params;
    const int *size = axes.size;
    lr_picture *page = make_page(size);
    axes.corner[0] = axes.corner[1] = room;
    const struct lr_margins margins = lr_axes_margins(&axes);
    const int low[2] = {room - margins.left, room - margins.top};
    const int high[2] = {room + size[0] + margins.right, room + size[1] + margins.bottom};
    lr_axes_draw(page, &axes);
    assert_int_equal(count_ink(page, low, high), count_all(page));
    const int right[2] = {room + size[0], room + size[1]};
    assert_int_equal(count_ink(page, (int[2]){room, room}, right), 0);
    const int left_ink = count_ink(page, (int[2]){low[0], low[1]}, (int[2]){room - 6, right[1]});
    const int below_ink = count_ink(page, (int[2]){low[0], right[1] + 6}, high);
    assert_true(left_ink > 15 && below_ink > 15);
    axes.across.name = axes.up.name = NULL;
    lr_picture *unnamed = make_page(size);
    lr_axes_draw(unnamed, &axes);
    assert_true(count_all(unnamed) < count_all(page));
    destroy_kept(NULL);
}

static void test_axes(void **state)
{
    uint64_t seed = test_seed();
    for (int n = 0; n < 200; n++) {
        const double low = 400.0 * (test_random(&seed) - 0.5), span = 300.0 * test_random(&seed);
        const double ends[2] = {low, low + span}; /* every other axis runs from right to left */
        check_axes(&filled(struct lr_axes,
                           .size = {1 + (int)(400.0 * test_random(&seed)), 1 + (int)(400.0 * test_random(&seed))},
                           .across = {ends[n / 2 % 2], ends[1 - n / 2 % 2], "x (mm)", n % 3 == 0},
                           .up = {-span, span, "z (mm)", n % 5 == 0}, .text_px = n & 1 ? 16 : 0));
    }
}

/* Values are at their positions: the ends of the range at the ends of the picture, larger values further right and
 * further up, or further left on an axis that runs backwards. */
static void test_places(void **state)
{
    struct lr_axes axes = {
        .corner = {10, 20}, .size = {100, 50}, .across = {-5, 5, NULL, false}, .up = {0, 1, NULL, false}};
    assert_ints(lr_axes_x(&axes, -5.0), 10, lr_axes_x(&axes, 0.0), 60, lr_axes_x(&axes, 5.0), 110);
    assert_ints(lr_axes_y(&axes, 0.0), 70, lr_axes_y(&axes, 1.0), 20);
    axes.across.low = 5;
    axes.across.high = -3;
    assert_ints(lr_axes_x(&axes, -3.0), 110, lr_axes_x(&axes, 3.0), 35, lr_axes_x(&axes, 5.0), 10);
}

/* --- bars --- */

static void test_bars(void **state)
{
    static const double ranges[][2] = {{0, 1}, {0, 3.7e-6}, {-20, 20}, {0, 123456}, {5, 5}, {0, 1e9}};
    for (size_t n = 0; n < sizeof(ranges) / sizeof(ranges[0]); n++) {
        for (int k = 0; k < 2; k++) {
            const lr_bar_params bar = filled(lr_bar_params, .size = {0, 160}, .low = ranges[n][0], .high = ranges[n][1],
                                             .colours = LR_COLOURS_PERCEPTUAL, .unit = k == 1 ? "emissions" : NULL);
            const int width = lr_picture_bar_width(&bar);
            lr_picture *page = make_page((int[2]){width, 160});
            lr_picture_bar(page, (int[2]){room, room}, &bar);
            const int low[2] = {room, room - 10}, high[2] = {room + width, room + 170};
            assert_int_equal(count_ink(page, low, high), count_all(page));
            const int beside = count_ink(page, (int[2]){room + 12, room - 10}, high);
            assert_true(beside > 30);
        }
    }
    const lr_bar_params plain = {.high = 1}, with_unit = {.high = 1, .unit = "%"};
    assert_true(lr_picture_bar_width(&with_unit) > lr_picture_bar_width(&plain) + 8);
}

/* --- labels around pictures --- */

/* Labels of an axis that runs backwards, from its left end: as many as on the same axis the other way, and on the same
 * ticks. */
static void test_backward_labels(void **state)
{
    struct lr_axes axes = {
        .corner = {60, 20}, .size = {300, 50}, .across = {-24, 24, NULL, false}, .up = {0, 1, NULL, false}};
    int ink[2];
    for (int n = 0; n < 2; n++) {
        lr_picture *page = make_white(420, 120);
        lr_axes_draw(page, &axes);
        ink[n] = count_ink(page, (int[2]){55, 76}, (int[2]){420, 120});
        axes.across.low = 24;
        axes.across.high = -24;
    }
    assert_int_equal(ink[0], ink[1]);
    assert_true(ink[0] > 100);
}

/* Finds a picture in a larger one by comparing all pixels; corner: where it is. */
static bool find(const lr_picture *inside, const lr_picture *whole, int corner[2])
{
    for (corner[1] = 0; corner[1] + inside->size[1] <= whole->size[1]; corner[1]++) {
        for (corner[0] = 0; corner[0] + inside->size[0] <= whole->size[0]; corner[0]++) {
            bool same = true;
            for (int y = 0; y < inside->size[1] && same; y++) {
                const uint8_t *row = whole->rgb + 3 * ((corner[1] + y) * whole->size[0] + corner[0]);
                same = memcmp(row, inside->rgb + 3 * y * inside->size[0], 3 * (size_t)inside->size[0]) == 0;
            }
            if (same) return true;
        }
    }
    return false;
}

/* There is text at the left, below, and at the right of the picture. */
static void check_labelled(const lr_picture *plain, const lr_picture *labelled)
{
    int corner[2] = {0, 0};
    assert_true(find(plain, labelled, corner));
    const int right = corner[0] + plain->size[0], bottom = corner[1] + plain->size[1], *size = labelled->size;
    assert_true(count_ink(labelled, (int[2]){0, 0}, (int[2]){corner[0] - 6, size[1]}) > 40);
    assert_true(count_ink(labelled, (int[2]){0, bottom + 6}, (int[2]){right, size[1]}) > 40);
    assert_true(count_ink(labelled, (int[2]){right + 8, 0}, size) > 100);
}

static lr_image *make_image(const int size[3])
{
    const lr_grid grid = lr_grid_centred(size, (double[3]){2, 2, 3});
    lr_image *image = keep(lr_image_create(&grid, NULL));
    for (int n = 0; n < size[0] * size[1] * size[2]; n++) image->values[n] = (float)(1 + (37 * n) % 101);
    return image;
}

/* A colour bar that is higher than its slice covers no label of the axes, not even the last one, at the slice's edge. */
static void test_slices(void **state)
{
    const int size[3] = {20, 20, 3};
    lr_image *image = make_image(size);
    for (int plane = 0; plane < 3; plane++) {
        lr_slice_params params = {.image = image, .plane = (lr_plane)plane};
        lr_picture *plain = keep_picture(lr_picture_slice(&params));
        params.axes = true;
        lr_picture *without_bar = keep_picture(lr_picture_slice(&params));
        params.colour_bar = true;
        params.unit = "emissions per voxel";
        lr_picture *labelled = keep_picture(lr_picture_slice(&params));
        check_labelled(plain, labelled);
        assert_true(find(without_bar, labelled, (int[2]){0, 0}));
    }
}

static void test_correspondences(void **state)
{
    const lr_scanner *scanner = keep(lr_scanner_read("two-opposed-modules", NULL));
    const int rays = 2, side = rays * 9;
    lr_pixel *pixels = kept(side * side, sizeof(*pixels));
    for (int n = 0; n < side * side; n++) {
        pixels[n] = (lr_pixel){
            .module = 1, .r = (float)(n % 9), .s = (float)(n / side / 2), .weight = 1e-5f * (float)(1 + n % 7)};
    }
    for (int view = 0; view < 2; view++) {
        lr_correspondence_params params =
            filled(lr_correspondence_params, .pixels = pixels, .scanner = scanner, .rays = rays,
                   .view = (lr_correspondence_view)view, .crystal_grid = true);
        lr_picture *plain = keep_picture(lr_picture_correspondence(&params));
        params.labelled = true;
        check_labelled(plain, keep_picture(lr_picture_correspondence(&params)));
    }
}

/* One voxel drawn as one pixel still has all its labels, and a long unit is not cut off. */
static void test_tiny(void **state)
{
    lr_image *image = make_image((int[3]){1, 1, 1});
    for (int plane = 0; plane < 3; plane++) {
        const lr_slice_params params =
            filled(lr_slice_params, .image = image, .plane = (lr_plane)plane, .pixels_per_mm = 0.5, .axes = true,
                   .scale_bar = true, .colour_bar = true, .unit = "counts per emission and nanosecond");
        lr_picture *picture = keep_picture(lr_picture_slice(&params));
        const lr_text_style style = {.size_px = 12};
        assert_all(picture->size[1] > lr_picture_text_width(params.unit, &style), count_all(picture) > 300);
    }
}

/* --- panels --- */

/* Names of any length and any bytes widen a panel only up to a limit. */
static void test_panel_of_long_names(void **state)
{
    char name[5000];
    for (int n = 0; n < 4999; n++) name[n] = n % 7 == 6 ? '\xc3' : n % 11 == 10 ? '\033' : 'W';
    name[4999] = '\0';
    lr_picture *tile = make(50, 50);
    const lr_tile list[2] = {{tile, name}, {tile, name}};
    const lr_mosaic_params params = {.tiles = list, .num_tiles = 2, .title = name, .subtitle = name};
    lr_picture *page = keep_picture(lr_picture_mosaic(&params));
    assert_true(page->size[0] > 2 * 420 && page->size[0] < 1100);
    /* There is no text in the border. */
    assert_int_equal(count_ink(page, (int[2]){page->size[0] - 6, 0}, page->size), 0);
}

test_main("labels", CASE(test_axes), CASE(test_places), CASE(test_backward_labels), CASE(test_bars), CASE(test_slices),
          CASE(test_tiny), CASE(test_correspondences), CASE(test_panel_of_long_names))
