/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/crystal_panels.h"

#include <math.h>

double lr_shortest_decimal(double value, double off)
{
    double power = 1;
    for (int decimals = 0; decimals < 12; decimals++, power *= 10) {
        const double rounded = round(value * power) / power;
        if (fabs(rounded - value) <= off) return rounded;
    }
    return value;
}
