/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/start_list.h"

#include "base/vec.h"

#include <lr/io.h>
#include <math.h>
#include <stdio.h>

static void measure(const lr_scanner *scanner, struct start_row *row)
{
    double low = HUGE_VAL, high = -HUGE_VAL, nearest = HUGE_VAL;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double half = 0.5 * (module->crystals[0] * module->pitch_mm[0] * fabs(module->u[2]) +
                                   module->crystals[1] * module->pitch_mm[1] * fabs(module->v[2]));
        nearest = fmin(nearest, fabs(vec_dot(module->normal, module->centre_mm)));
        low = fmin(low, module->centre_mm[2] - half);
        high = fmax(high, module->centre_mm[2] + half);
    }
    row->diameter_mm = 2.0 * nearest;
    row->length_mm = high - low;
}

void start_list_read(struct start_list *list)
{
    const char *const *presets = lr_scanner_presets();
    list->is_read = true;
    list->count = 0;
    for (int k = 0; presets[k] != NULL && list->count < START_MOST; k++) {
        lr_scanner *scanner = lr_scanner_read(presets[k], NULL);
        if (scanner != NULL) {
            struct start_row *row = &list->rows[list->count++];
            *row = (struct start_row){.preset = presets[k],
                                      .num_modules = scanner->num_modules,
                                      .num_crystals = scanner->num_crystals,
                                      .tof_ps = scanner->tof_resolution_ps};
            snprintf(row->name, sizeof(row->name), "%s", scanner->name);
            measure(scanner, row);
        }
        lr_scanner_destroy(scanner);
    }
}
