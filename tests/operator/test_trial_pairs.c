/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The module pairs that a trial projects. */
#include "fixtures.h"

#include "operator/trial_pairs.h"

#include <math.h>

enum { MOST_MODULES = 24 };

/* Modules around the z axis. */
static lr_scanner *ring_of(int num_modules)
{
    static const double radius_mm = 100.0;
    lr_module modules[MOST_MODULES] = {0};
    for (int m = 0; m < num_modules; m++) {
        const double angle = 2.0 * 3.14159265358979323846 * m / num_modules;
        const double c = cos(angle), s = sin(angle);
        modules[m] = (lr_module){.centre_mm = {radius_mm * c, radius_mm * s, 0.0},
                                 .u = {-s, c, 0.0},
                                 .v = {0.0, 0.0, 1.0},
                                 .crystals = {2, 3},
                                 .pitch_mm = {4.0, 4.0},
                                 .face_mm = {4.0, 4.0},
                                 .depth_mm = 10.0};
    }
    lr_scanner *scanner = lr_scanner_create(
        &(lr_scanner_params){.name = "ring of a trial", .modules = modules, .num_modules = num_modules});
    assert_non_null(scanner);
    return scanner;
}

static bool has(const struct lr_trial_pairs *chosen, int64_t pair)
{
    for (int64_t k = 0; k < chosen->count; k++)
        if (chosen->pairs[k] == pair) return true;
    return false;
}

static lr_grid grid_at(double x_mm)
{
    static const int size[3] = {8, 8, 4};
    static const double voxel_mm[3] = {4.0, 4.0, 4.0};
    lr_grid grid = lr_grid_centred(size, voxel_mm);
    grid.origin_mm[0] += x_mm;
    return grid;
}

static struct lr_trial_pairs choose(const lr_lors *lors, double x_mm, int64_t most)
{
    struct lr_trial_pairs chosen;
    const lr_grid grid = grid_at(x_mm);
    int64_t num_lors = 0;
    assert_int_equal(lr_trial_pairs_choose(lors, &grid, most, &chosen, NULL), LR_OK);
    assert_true(chosen.count > 1 && chosen.count < lors->num_pairs);
    for (int64_t k = 0; k < chosen.count; k++) {
        const int32_t pair = chosen.pairs[k];
        assert_true(pair >= 0 && pair < lors->num_pairs);
        assert_true(k == 0 || pair > chosen.pairs[k - 1]);
        num_lors += lors->offsets[pair + 1] - lors->offsets[pair];
    }
    assert_int_equal(chosen.num_lors, num_lors);
    return chosen;
}

/* Of pairs, how many have the one half a turn on with them. */
static int64_t count_images(const lr_lors *lors, const struct lr_trial_pairs *chosen)
{
    const int num_modules = lors->scanner->num_modules;
    int64_t count = 0;
    for (int64_t k = 0; k < chosen->count; k++) {
        const int32_t *modules = lors->pairs[chosen->pairs[k]];
        count += has(chosen, lr_lors_pair(lors, (modules[0] + num_modules / 2) % num_modules,
                                          (modules[1] + num_modules / 2) % num_modules));
    }
    return count;
}

static void pairs_come_with_their_images(void **state)
{
    (void)state;
    lr_scanner *scanner = ring_of(24);
    lr_lors *lors = lr_lors_create(scanner, NULL);
    for (int64_t most = lors->count / 20; most < lors->count / 3; most *= 2) {
        struct lr_trial_pairs chosen = choose(lors, 0.0, most);
        assert_int_equal(count_images(lors, &chosen), chosen.count);
        assert_true(chosen.num_lors <= 2 * most);
        free(chosen.pairs);
    }
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

/* About the middle of another grid the modules have no images, nor has an odd number of them. */
static void pairs_without_images_are_every_nth(void **state)
{
    (void)state;
    for (int odd = 0; odd < 2; odd++) {
        lr_scanner *scanner = ring_of(odd ? 23 : 24);
        lr_lors *lors = lr_lors_create(scanner, NULL);
        const int64_t most = (lors->count + 4) / 5;
        struct lr_trial_pairs chosen = choose(lors, odd ? 0.0 : 10.0, most);
        for (int64_t k = 0; k < chosen.count; k++) assert_int_equal(chosen.pairs[k], 5 * k);
        free(chosen.pairs);
        lr_lors_destroy(lors);
        lr_scanner_destroy(scanner);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_come_with_their_images),
        cmocka_unit_test(pairs_without_images_are_every_nth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
