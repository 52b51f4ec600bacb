/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Ticks are round numbers within their range, and their labels show their values. */
#include "cases.h"

#include "picture/axes.h"

/* Returns true if a step is 1, 2 or 5 times a power of ten. */
static bool is_round(double step)
{
    const double digit = step / pow(10.0, floor(log10(step) + 1e-9));
    return fabs(digit - 1.0) < 1e-6 || fabs(digit - 2.0) < 1e-6 || fabs(digit - 5.0) < 1e-6;
}

/* Number of ticks that the next larger round step would give. */
static int count_larger(const struct lr_ticks *ticks, double low, double high)
{
    const double digit = ticks->step / pow(10.0, floor(log10(ticks->step) + 1e-9));
    const double step = ticks->step * (fabs(digit - 2.0) < 1e-6 ? 2.5 : 2.0);
    return (int)(floor(high / step + 1e-9) - ceil(low / step - 1e-9)) + 1;
}

static void check(double low, double high, int most)
{
    const struct lr_ticks ticks = lr_ticks_choose(low, high, most);
    assert_all(ticks.count >= 2, ticks.count <= most || count_larger(&ticks, low, high) < 2, is_round(ticks.step));
    const double slack = 1e-6 * ticks.step;
    for (int n = 0; n < ticks.count; n++) {
        const double value = lr_tick_value(&ticks, n);
        assert_true(value >= low - slack && value <= high + slack);
        assert_true(fabs(value / ticks.step - round(value / ticks.step)) < 1e-5);
        const struct lr_tick_label label = lr_tick_label(&ticks, n);
        char *end;
        const double said = strtod(label.text, &end) * pow(10.0, ticks.power);
        assert_true(*end == '\0' && fabs(said - value) < 1e-3 * ticks.step);
        assert_true(strlen(label.text) < 14 && strncmp(label.text, "-0", 3) != 0);
    }
    const struct lr_ticks plain = lr_ticks_unscaled(&ticks);
    if (ticks.step > 1e-11 && fmax(fabs(low), fabs(high)) < 1e9) {
        const double said = strtod(lr_tick_label(&plain, 1).text, NULL);
        assert_true(fabs(said - lr_tick_value(&ticks, 1)) < 1e-3 * ticks.step);
    }
    assert_true(lr_tick_value(&ticks, 0) - ticks.step < low + slack);
    assert_true(lr_tick_value(&ticks, ticks.count - 1) + ticks.step > high - slack);
}

static void test_any_range(void **state)
{
    uint64_t seed = test_seed();
    for (int n = 0; n < 20000; n++) {
        const double size = pow(10.0, 24.0 * test_random(&seed) - 12.0);
        const double low = (n % 3 == 0 ? 0.0 : 2.0 * test_random(&seed) - 1.0) * size;
        const double span = (0.001 + test_random(&seed)) * size;
        check(low, low + span, 2 + (int)(10.0 * test_random(&seed)));
    }
}

static void test_known(void **state)
{
    const struct lr_ticks plain = lr_ticks_choose(0.0, 1.0, 6);
    assert_int_equal(plain.count, 6);
    assert_string_equal(lr_tick_label(&plain, 1).text, "0.2");
    const struct lr_ticks small = lr_ticks_choose(0.0, 8e-5, 5);
    assert_int_equal(small.power, -5);
    assert_string_equal(lr_tick_label(&small, small.count - 1).text, "8");
    assert_string_equal(lr_tick_unit(&small, "per pair").text, "10⁻⁵ per pair");
    const struct lr_ticks large = lr_ticks_choose(0.0, 3.2e12, 4);
    assert_string_equal(lr_tick_unit(&large, NULL).text, "10¹²");
    assert_string_equal(lr_tick_unit(&plain, "mm").text, "mm");
    assert_string_equal(lr_tick_unit(&plain, NULL).text, "");
    const struct lr_ticks both = lr_ticks_choose(-20.0, 20.0, 5);
    assert_string_equal(lr_tick_label(&both, 0).text, "-20");
    assert_string_equal(lr_tick_label(&both, 2).text, "0");
}

/* Ranges of length zero, and ranges whose ends are no numbers, have one tick with a label. */
static void test_no_range(void **state)
{
    const double ends[][2] = {{0.0, 0.0},
                              {5.0, 5.0},
                              {1.0, -1.0},
                              {(double)NAN, 1.0},
                              {0.0, (double)INFINITY},
                              {-(double)INFINITY, (double)INFINITY},
                              {1e300, 1e300},
                              {1e15, 1e15 + 1e-3},
                              {-1e308, 1e308}};
    for (size_t n = 0; n < sizeof(ends) / sizeof(ends[0]); n++) {
        const struct lr_ticks ticks = lr_ticks_choose(ends[n][0], ends[n][1], 5);
        assert_int_equal(ticks.count, 1);
        assert_all(strlen(lr_tick_label(&ticks, 0).text) > 0, strlen(lr_tick_label(&ticks, 0).text) < 20);
    }
    const struct lr_ticks five = lr_ticks_choose(5.0, 5.0, 5);
    assert_close(strtod(lr_tick_label(&five, 0).text, NULL), 5.0, 1e-12);
}

test_main("ticks", CASE(test_any_range), CASE(test_known), CASE(test_no_range))
