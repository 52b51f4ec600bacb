/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#pragma once

#include "render/scanners.h"

/* A ring of modules with u along the axis and v across, whose masks have one bit per
 * LOR. */
static inline lr_scanner *create_turned(void)
{
    const lr_module shape = {.crystals = {5, 7}, .pitch_mm = {2.4, 2.1}, .face_mm = {2.2, 2.1}, .depth_mm = 8};
    lr_module modules[6];
    for (int m = 0; m < 6; m++) {
        modules[m] = place_module(&shape, &(struct placement){60 * m + 8, 30, m % 2, 0, 0, m % 3 ? 90 : 270});
        for (int k = 0; k < 3; k++) /* rounding errors of the rotations */
            modules[m].u[k] = k == 2 ? (modules[m].u[k] > 0 ? 1 : -1) : 0;
        modules[m].v[2] = 0;
    }
    return scanner_of(modules, 6, 9);
}
