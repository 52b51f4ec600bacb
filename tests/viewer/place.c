/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Places of text boxes, and numbers along axes. */
#include "cases.h"

#include "viewer/frame/ui.h"

#include <stdio.h>
#include <stdlib.h>

enum { CASES = 2000 };

static double between(uint64_t *seed, double low, double high)
{
    return low + (high - low) * test_random(seed);
}

/* --- boxes --- */

/* A box of any size never covers the object that it describes; a box reported as whole lies on the screen. */
static void boxes_cover_nothing(void **state)
{
    uint64_t seed = test_seed();
    int whole = 0;
    for (int n = 0; n < CASES; n++) {
        const double screen[2] = {between(&seed, 1.0, 2000.0), between(&seed, 1.0, 1200.0)};
        const double size[2] = {between(&seed, 1.0, 600.0), between(&seed, 1.0, 300.0)};
        struct place_box kept;
        double at[2];
        for (int k = 0; k < 2; k++) {
            kept.from[k] = between(&seed, 0.0, screen[k]);
            kept.to[k] = between(&seed, kept.from[k], screen[k]);
        }
        const bool is_whole = place_beside(&kept, size, screen, at);
        bool overlaps = true, fits = true;
        for (int k = 0; k < 2; k++) {
            overlaps = overlaps && at[k] < kept.to[k] && at[k] + size[k] > kept.from[k];
            fits = fits && at[k] >= -1e-9 && at[k] + size[k] <= screen[k] + 1e-9;
        }
        assert_false(overlaps);
        assert_true(!is_whole || fits);
        whole += is_whole;
    }
    assert_true(whole > CASES / 4 && whole < CASES);
}

/* A box that has room on one side only is placed there. */
static void boxes_find_their_side(void **state)
{
    static const double screen[2] = {1000.0, 800.0}, size[2] = {100.0, 60.0};
    static const struct {
        struct place_box kept;
        double at[2];
    } cases[] = {{{{400.0, 300.0}, {420.0, 320.0}}, {428.0, 280.0}},
                 {{{400.0, 300.0}, {990.0, 320.0}}, {292.0, 280.0}},
                 {{{0.0, 0.0}, {1000.0, 300.0}}, {450.0, 308.0}},
                 {{{0.0, 400.0}, {1000.0, 800.0}}, {450.0, 332.0}}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        double at[2];
        assert_true(place_beside(&cases[k].kept, size, screen, at));
        assert_true(at[0] == cases[k].at[0] && at[1] == cases[k].at[1]);
    }
}

/* --- numbers --- */

/* The numbers lie in the range; their texts differ from each other, and each text gives the number's value. */
static void check_ticks(const double range[2], int most)
{
    const struct ticks ticks = ticks_make(range, most, false);
    const double width = range[1] - range[0];
    char before[TICKS_TEXT] = "", text[TICKS_TEXT];
    assert_true(ticks.count >= 1 && ticks.count <= most);
    for (int k = 0; k < ticks.count; k++) {
        ticks_write(&ticks, k, text);
        assert_true(ticks.values[k] >= range[0] - 1e-5 * width && ticks.values[k] <= range[1] + 1e-5 * width);
        assert_true(fabs(atof(text) - ticks.values[k]) <= 1e-5 * width);
        assert_string_not_equal(text, before);
        snprintf(before, sizeof(before), "%s", text);
    }
    /* at least as many as needed: the next finer step is smaller by a factor of at most 2.5 */
    assert_true(ticks.count >= most / 3);
}

static void ticks_are_round_and_told_apart(void **state)
{
    uint64_t seed = test_seed();
    for (int n = 0; n < CASES; n++) {
        const double size = pow(10.0, between(&seed, -9.0, 9.0));
        const double low = between(&seed, -size, size);
        const double range[2] = {low, low + between(&seed, 0.001, 3.0) * size};
        check_ticks(range, 3 + n % (TICKS_MOST - 2));
    }
}

static void ticks_of_examples(void **state)
{
    static const struct {
        double range[2];
        int most;
        bool are_whole;
        const char *texts[6];
    } cases[] = {{{0.0, 4.0}, 5, false, {"0", "1", "2", "3", "4"}},
                 {{0.0, 9.2e-5}, 5, false, {"0", "2e-05", "4e-05", "6e-05", "8e-05"}},
                 {{0.0, 40000.0}, 5, false, {"0", "10000", "20000", "30000", "40000"}},
                 {{-2447345.0, -2447310.0}, 4, false, {"-2447340", "-2447330", "-2447320", "-2447310"}},
                 {{-0.3, 0.3}, 3, false, {"-0.2", "0", "0.2"}},
                 {{1.0, 3.0}, 7, true, {"1", "2", "3"}}};
    for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
        const struct ticks ticks = ticks_make(cases[n].range, cases[n].most, cases[n].are_whole);
        for (int k = 0; cases[n].texts[k] != NULL; k++) {
            char text[TICKS_TEXT];
            assert_true(k < ticks.count);
            ticks_write(&ticks, k, text);
            assert_string_equal(text, cases[n].texts[k]);
        }
    }
}

static void no_ticks_without_a_range(void **state)
{
    static const double ranges[][2] = {{1.0, 1.0}, {2.0, 1.0}, {0.0, INFINITY}, {-HUGE_VAL, 0.0},
                                       {NAN, 1.0}, {0.0, NAN}, {0.0, 0.0},      {1e300, 1.00000000000000001e300}};
    for (size_t n = 0; n < sizeof(ranges) / sizeof(ranges[0]); n++)
        assert_int_equal(ticks_make(ranges[n], 5, false).count, 0);
}

test_main("viewer_place", cmocka_unit_test(boxes_cover_nothing), cmocka_unit_test(boxes_find_their_side),
          cmocka_unit_test(ticks_are_round_and_told_apart), cmocka_unit_test(ticks_of_examples),
          cmocka_unit_test(no_ticks_without_a_range))
