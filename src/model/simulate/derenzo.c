/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/simulate/derenzo.h"

#include "base/log.h"
#include "base/mem.h"

#include <math.h>

/* In rod diameters. */
#define SPACING 2.0
#define FIRST_ROW 1.5

const double lr_derenzo_diameters_mm[LR_DERENZO_SECTORS] = {1.2, 1.6, 2.4, 3.2, 4.0, 4.8};

static const double pi = 3.14159265358979323846;

/* Rod `place` (0 .. row) of a row, in its wedge's own frame: x along the wedge's middle. */
static struct lr_rod place_rod(int sector, int row, int place)
{
    const double diameter = lr_derenzo_diameters_mm[sector];
    const double along = diameter * (FIRST_ROW + SPACING * sqrt(0.75) * row);
    const double across = diameter * SPACING * (place - 0.5 * row);
    const double angle = (60.0 * sector + 30.0) * pi / 180.0;
    return (struct lr_rod){
        .centre_mm = {along * cos(angle) - across * sin(angle), along * sin(angle) + across * cos(angle)},
        .radius_mm = 0.5 * diameter,
        .sector = sector};
}

/* Rows whose middle is within the circle. */
static int count_rows(int sector, double radius_mm)
{
    const double diameter = lr_derenzo_diameters_mm[sector];
    const double room = radius_mm / diameter - 0.5 - FIRST_ROW;
    return room < 0.0 ? 0 : 1 + (int)(room / (SPACING * sqrt(0.75)));
}

/* Writes the rods of one sector when `rods` is given; returns how many there are. */
static int fill_sector(int sector, double radius_mm, struct lr_rod *rods)
{
    int count = 0;
    const int rows = count_rows(sector, radius_mm);
    for (int row = 0; row < rows; row++) {
        for (int place = 0; place <= row; place++) {
            const struct lr_rod rod = place_rod(sector, row, place);
            if (hypot(rod.centre_mm[0], rod.centre_mm[1]) + rod.radius_mm > radius_mm + 1e-9) continue;
            if (rods != NULL) rods[count] = rod;
            count++;
        }
    }
    return count;
}

struct lr_rod *lr_derenzo_rods(double radius_mm, int *num_rods, const lr_log *log)
{
    int count = 0;
    for (int sector = 0; sector < LR_DERENZO_SECTORS; sector++) count += fill_sector(sector, radius_mm, NULL);
    struct lr_rod *rods = lr_alloc(count, sizeof(*rods), "the phantom's rods", log);
    if (rods == NULL) return NULL;
    *num_rods = 0;
    for (int sector = 0; sector < LR_DERENZO_SECTORS; sector++)
        *num_rods += fill_sector(sector, radius_mm, rods + *num_rods);
    return rods;
}

double lr_derenzo_least_radius_mm(void)
{
    return lr_derenzo_diameters_mm[LR_DERENZO_SECTORS - 1] * (FIRST_ROW + 0.5);
}
