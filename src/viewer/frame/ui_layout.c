/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/ui.h"

#include <math.h>
#include <stdio.h>

enum { RIGHT = 0, LEFT, BELOW, ABOVE, NUM_SIDES };

static const double gap = 8.0;

bool place_beside(const struct place_box *part, const double size[2], const double screen[2], double at[2])
{
    /* The first side on which the box fits. If it fits on no side, the side with the most space. */
    int chosen = RIGHT;
    double most = -HUGE_VAL;
    bool fits = false;
    for (int side = 0; side < NUM_SIDES && !fits; side++) {
        const int along = side / 2;
        const double free_px = side % 2 == 0 ? screen[along] - part->to[along] : part->from[along];
        const double spare = free_px - gap - size[along];
        fits = spare >= 0.0 && size[1 - along] <= screen[1 - along];
        chosen = fits || spare > most ? side : chosen;
        most = fmax(most, spare);
    }

    const int axis = chosen / 2, other = 1 - axis;
    at[axis] = chosen % 2 == 0 ? part->to[axis] + gap : part->from[axis] - gap - size[axis];
    const double middle = 0.5 * (part->from[other] + part->to[other]) - 0.5 * size[other];
    at[other] = fmax(fmin(middle, screen[other] - size[other]), 0.0);
    return fits;
}

/* --- ticks --- */

/* The smallest number of the form 1, 2 or 5 times a power of ten that is at least `step`. */
static double round_up(double step)
{
    const double ten = pow(10.0, floor(log10(step)));
    const double share = step / ten;
    return ten * (share <= 1.0 + 1e-9 ? 1.0 : share <= 2.0 + 1e-9 ? 2.0 : share <= 5.0 ? 5.0 : 10.0);
}

static int count_steps(const double range[2], double step)
{
    return (int)(floor(range[1] / step + 1e-6) - ceil(range[0] / step - 1e-6)) + 1;
}

struct ticks ticks_make(const double range[2], int most, bool are_whole)
{
    struct ticks ticks = {0};
    const double width = range[1] - range[0];
    const double largest = fmax(fabs(range[0]), fabs(range[1]));
    if (!isfinite(width) || !(width > 1e-13 * largest) || !(width > 1e-290)) return ticks;
    most = most < 3 ? 3 : most > TICKS_MOST ? TICKS_MOST : most;
    double step = round_up(are_whole ? fmax(width / most, 1.0) : width / most);
    while (count_steps(range, step) > most) step = round_up(1.5 * step);
    const double first = ceil(range[0] / step - 1e-6);
    ticks.count = count_steps(range, step);
    const double before_point = floor(log10(largest) + 1e-9) + 1.0;
    double digits = before_point - floor(log10(step) + 1e-9);
    if (before_point > 0.0 && before_point < 9.0) /* write "20000" instead of "2e+04" */
        digits = fmax(digits, before_point);
    ticks.digits = (int)fmin(fmax(digits, 1.0), 15.0);

    for (int k = 0; k < ticks.count; k++) ticks.values[k] = (first + k) * step;
    return ticks;
}

void ticks_write(const struct ticks *ticks, int k, char text[TICKS_TEXT])
{
    const double value = ticks->values[k] == 0.0 ? 0.0 : ticks->values[k]; /* avoids -0 */
    snprintf(text, TICKS_TEXT, "%.*g", ticks->digits, value);
}
