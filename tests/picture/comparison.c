/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Pictures that compare sampled with exact elements: each element colours the area that it has in the correspondence
 * image. */
#include "pictures.h"

enum { rays = 4, crystals = 3, side = rays * crystals, num_pixels = side * side };

/* Two modules of 3 x 3 crystals face to face, and a point between them. */
struct scene {
    lr_lors *lors;
    lr_pixel pixels[num_pixels];
    int64_t lor[2 * crystals * crystals]; /* two elements per crystal */
    double exact[2 * crystals * crystals];
    int count;
};

/* Primary crystal c sees crystal c through three of its four columns of rays, and the mirror image of crystal c
 * through one; the last crystal sees nothing. */
static int secondary_of(int crystal, bool last_column)
{
    return last_column ? crystals * crystals - 1 - crystal : crystal;
}

/* Lives until the end of the test. */
static struct scene *open_scene(void)
{
    struct scene *scene = kept(1, sizeof(*scene));
    lr_module modules[2] = {{.centre_mm = {0, 100, 0},
                             .u = {1, 0, 0},
                             .v = {0, 0, 1},
                             .crystals = {crystals, crystals},
                             .pitch_mm = {4, 4},
                             .face_mm = {4, 4},
                             .depth_mm = 10}};
    modules[1] = modules[0];
    modules[1].centre_mm[1] = -100;
    scene->lors = lors_from(lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = 2}));
    for (int n = 0; n < num_pixels; n++) {
        const int x = n % side, y = n / side, crystal = y / rays * crystals + x / rays;
        const int other = secondary_of(crystal, x % rays == rays - 1);
        const bool dark = crystal == crystals * crystals - 1;
        scene->pixels[n] =
            dark ? (lr_pixel){.module = -1, .r = -1, .s = -1}
                 : (lr_pixel){
                       .module = 1, .r = (float)(other % crystals), .s = (float)(other / crystals), .weight = 1.0f};
    }
    for (int64_t lor = 0; lor < scene->lors->count; lor++) {
        const int a = (int)(lor / (crystals * crystals)), b = (int)(lor % (crystals * crystals));
        if (a < crystals * crystals - 1 && (b == a || b == secondary_of(a, true))) {
            scene->lor[scene->count] = lor;
            scene->exact[scene->count++] = a == 0 && b == 0 ? 1.0 : b == a ? 0.5 : 0.25;
        }
    }
    return scene;
}

static lr_row row_of(const struct scene *scene, const double *values)
{
    return (lr_row){.count = scene->count, .lor = scene->lor, .probability = values};
}

static lr_comparison_params params_of(const struct scene *scene, const lr_row *exact, const lr_row *sampled,
                                      const int *list)
{
    return filled(lr_comparison_params, .pixels = scene->pixels, .pixel_rays = rays, .lors = scene->lors,
                  .exact = exact, .sampled = sampled, .rays = list, .num_sampled = 1);
}

/* Difference between the numbers of pixels of a colour in two pictures of the same size; parts in both, such as
 * colour bars, cancel. */
static int gained(const lr_picture *after, const lr_picture *before, lr_colour_map map, double t)
{
    const lr_colour colour = lr_colour_of(map, t);
    return count_pixels(after, colour) - count_pixels(before, colour);
}

/* Without the largest element, its 12 pixels change from the last colour to that of zero in one panel, and to -100 %
 * in the difference panel. */
static void test_missed_element(void **state)
{
    const struct scene *scene = open_scene();
    const int list[1] = {4};
    const lr_row exact = row_of(scene, scene->exact);
    double values[2 * crystals * crystals];
    memcpy(values, scene->exact, sizeof(values));
    values[0] = 0.0;
    const lr_row lacking = row_of(scene, values);
    /* An element of twice the exact value is as far off as a missing one: the difference panel has the same scale. */
    double doubled[2 * crystals * crystals];
    memcpy(doubled, scene->exact, sizeof(doubled));
    doubled[0] = 2.0;
    const lr_row twice = row_of(scene, doubled);
    const lr_comparison_params params[3] = {params_of(scene, &exact, &exact, list),
                                            params_of(scene, &exact, &lacking, list),
                                            params_of(scene, &exact, &twice, list)};
    lr_picture *same = keep_picture(lr_picture_comparison(&params[0])),
               *missed = keep_picture(lr_picture_comparison(&params[1])),
               *large = keep_picture(lr_picture_comparison(&params[2]));
    const int piece = rays * (rays - 1);
    assert_int_equal(gained(missed, same, LR_COLOURS_PERCEPTUAL, 1.0), -piece);
    assert_int_equal(gained(missed, same, LR_COLOURS_PERCEPTUAL, 0.0), piece);
    assert_int_equal(gained(missed, large, LR_COLOURS_DIVERGING, 0.0), piece);
    assert_int_equal(gained(large, missed, LR_COLOURS_DIVERGING, 1.0), piece);
}

/* A row that equals the exact row has no differences: all its pixels have the middle colour. The middle lies between
 * two of the 256 colours, of which the upper is used. The colour bar has that colour too, in fewer than three of its
 * rows of 18 pixels. */
static void test_no_difference(void **state)
{
    const struct scene *scene = open_scene();
    const int list[1] = {4};
    const lr_row exact = row_of(scene, scene->exact);
    const lr_comparison_params params = params_of(scene, &exact, &exact, list);
    lr_picture *picture = keep_picture(lr_picture_comparison(&params));
    const int seen = num_pixels - rays * rays;
    const int middle = count_pixels(picture, lr_colour_of(LR_COLOURS_DIVERGING, 0.5 + 0.5 / 255));
    const int rest = middle - seen;
    assert_true(rest >= 0 && rest < 3 * 18);
    const lr_colour grey = {203, 206, 210};
    assert_int_equal(count_pixels(picture, grey), 3 * rays * rays);
}

/* Every row takes the same height; a chart is added from the second row on. */
static void test_rows(void **state)
{
    const struct scene *scene = open_scene();
    const int list[3] = {1, 2, 4};
    const lr_row exact = row_of(scene, scene->exact), sampled[3] = {exact, exact, exact};
    lr_comparison_params params = params_of(scene, &exact, sampled, list);
    const lr_colour grey = {203, 206, 210};
    int height[4] = {0};
    for (int n = 1; n <= 3; n++) {
        params.num_sampled = n;
        params.title = n == 2 ? "a title that is wider than everything else on the whole page, surely" : "short";
        lr_picture *picture = keep_picture(lr_picture_comparison(&params));
        height[n] = picture->size[1];
        assert_int_equal(count_pixels(picture, grey), 3 * n * rays * rays);
    }
    assert_true(height[3] > height[2] && height[2] - height[1] > height[3] - height[2]);
}

static void test_refusals(void **state)
{
    const struct scene *scene = open_scene();
    const int list[2] = {4, 4};
    const lr_row exact = row_of(scene, scene->exact), sampled[2] = {exact, exact};
    const lr_comparison_params good = params_of(scene, &exact, sampled, list);
    lr_comparison_params bad[6] = {good, good, good, good, good, good};
    bad[0].module = 2;
    bad[1].num_sampled = 2; /* R is not ascending */
    bad[2].num_sampled = 0;
    bad[3].pixels = NULL;
    bad[4].pixel_rays = 0;
    bad[5].exact = NULL;
    for (int n = 0; n < 6; n++) {
        struct test_log log = TEST_LOG(log);
        bad[n].log = &log.log;
        assert_all(lr_picture_comparison(&bad[n]) == NULL, log.status == LR_USAGE && strlen(log.error) > 20);
    }
}

test_main("picture_comparison", EACH(CASE, test_missed_element, test_no_difference, test_rows, test_refusals))
