/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "picture/ticks.h"

#include "picture/font.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { most_decimals = 12 };

static const double tolerance = 1e-9; /* of a step: what rounding makes of a round end */

/* --- steps --- */

/* The least 1, 2 or 5 times a power of ten that is not below. */
static double round_step(double value)
{
    const double power = pow(10.0, floor(log10(value)));
    const double digit = value / power * (1.0 - tolerance);
    return power * (digit <= 1.0 ? 1.0 : digit <= 2.0 ? 2.0 : digit <= 5.0 ? 5.0 : 10.0);
}

static double smaller_step(double step)
{
    return round_step(0.4 * step);
}

static double count_ticks(double low, double high, double step)
{
    return floor(high / step + tolerance) - ceil(low / step - tolerance) + 1.0;
}

/* --- labels --- */

/* Numbers of five digits before the point, or of three zeros behind it, share a power of ten. */
static int common_power(double low, double high)
{
    const double largest = fmax(fabs(low), fabs(high));
    const bool is_short = !(largest > 0.0) || (largest >= 0.00999 && largest < 99999.5);
    return is_short || !isfinite(largest) ? 0 : (int)floor(log10(largest) + tolerance);
}

static int digits_behind_point(double step)
{
    const double digits = -floor(log10(step) + tolerance);
    return digits < 0.0 ? 0 : digits > most_decimals ? most_decimals : (int)digits;
}

/* As many as tell ticks apart, or as give a single one two digits and more. */
static int decimals_of(const struct lr_ticks *ticks)
{
    const double finest = ticks->step > 0.0 ? ticks->step : fabs(ticks->first) / 100.0;
    const double scaled = finest / pow(10.0, ticks->power);
    return scaled > 0.0 && isfinite(scaled) ? digits_behind_point(scaled) : 0;
}

static struct lr_ticks single_tick(double value)
{
    struct lr_ticks ticks = {.first = value, .count = 1, .power = common_power(value, value)};
    ticks.decimals = decimals_of(&ticks);
    return ticks;
}

struct lr_ticks lr_ticks_choose(double low, double high, int most)
{
    const double span = high - low;
    if (!(span > 0.0) || !isfinite(span) || !(span > 1e-12 * fmax(fabs(low), fabs(high)))) return single_tick(low);
    double step = round_step(span / (most > 1 ? most : 1));
    while (count_ticks(low, high, step) > fmax(most, 2)) step = round_step(2.0 * step);
    while (count_ticks(low, high, step) < 2.0) step = smaller_step(step);
    struct lr_ticks ticks = {
        .first = step * ceil(low / step - tolerance), .step = step, .count = (int)count_ticks(low, high, step)};
    ticks.power = common_power(ticks.first, lr_tick_value(&ticks, ticks.count - 1));
    ticks.decimals = decimals_of(&ticks);
    return ticks;
}

struct lr_ticks lr_ticks_unscaled(const struct lr_ticks *ticks)
{
    struct lr_ticks plain = *ticks;
    plain.power = 0;
    plain.decimals = decimals_of(&plain);
    return plain;
}

double lr_tick_value(const struct lr_ticks *ticks, int n)
{
    const double value = ticks->first + n * ticks->step;
    return fabs(value) < 1e-6 * ticks->step ? 0.0 : value;
}

struct lr_tick_label lr_tick_label(const struct lr_ticks *ticks, int n)
{
    struct lr_tick_label label;
    const double value = lr_tick_value(ticks, n) / pow(10.0, ticks->power);
    if (fabs(value) < 1e9)
        snprintf(label.text, sizeof(label.text), "%.*f", ticks->decimals, value);
    else
        snprintf(label.text, sizeof(label.text), "%.9g", value);
    return label;
}

/* --- units --- */

static void add(struct lr_tick_unit *unit, const char *text)
{
    const size_t used = strlen(unit->text);
    snprintf(unit->text + used, sizeof(unit->text) - used, "%s", text);
}

/* As a power of ten, or as computers write it where the font has no raised digits. */
static void add_power(struct lr_tick_unit *unit, int power)
{
    static const char *const raised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    char digits[16];
    if (!lr_font_shows("⁻⁰¹²³⁴⁵⁶⁷⁸⁹")) {
        snprintf(unit->text, sizeof(unit->text), "1e%d", power);
        return;
    }
    snprintf(digits, sizeof(digits), "%d", power < 0 ? -power : power);
    add(unit, power < 0 ? "10⁻" : "10");
    for (const char *digit = digits; *digit != '\0'; digit++) add(unit, raised[*digit - '0']);
}

struct lr_tick_unit lr_tick_unit(const struct lr_ticks *ticks, const char *unit)
{
    struct lr_tick_unit all = {""};
    if (ticks->power != 0) add_power(&all, ticks->power);
    if (unit != NULL && unit[0] != '\0') {
        add(&all, all.text[0] != '\0' ? " " : "");
        add(&all, unit);
    }
    return all;
}
