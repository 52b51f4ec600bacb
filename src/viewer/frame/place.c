/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/place.h"

#include <math.h>

enum { RIGHT = 0, LEFT, BELOW, ABOVE, NUM_SIDES };

static const double gap = 8.0;

/* Free pixels between what is kept and the screen's edge. */
static double room_at(const struct place_box *kept, const double screen[2], int side)
{
    const int axis = side / 2;
    return (side % 2 == 0 ? screen[axis] - kept->to[axis] : kept->from[axis]) - gap;
}

static void stand(const struct place_box *kept, const double size[2], const double screen[2], int side, double at[2])
{
    const int axis = side / 2, other = 1 - axis;
    at[axis] = side % 2 == 0 ? kept->to[axis] + gap : kept->from[axis] - gap - size[axis];
    const double middle = 0.5 * (kept->from[other] + kept->to[other]) - 0.5 * size[other];
    at[other] = fmax(fmin(middle, screen[other] - size[other]), 0.0);
}

bool place_beside(const struct place_box *kept, const double size[2], const double screen[2], double at[2])
{
    int widest = RIGHT;
    double most = -HUGE_VAL;
    for (int side = 0; side < NUM_SIDES; side++) {
        const int axis = side / 2;
        const double spare = room_at(kept, screen, side) - size[axis];
        if (spare >= 0.0 && size[1 - axis] <= screen[1 - axis]) {
            stand(kept, size, screen, side, at);
            return true;
        }
        widest = spare > most ? side : widest;
        most = fmax(most, spare);
    }
    stand(kept, size, screen, widest, at);
    return false;
}
