/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/scanners/castor_layers.h"

#include "base/log.h"

#include <math.h>
#include <stdio.h>

lr_status lr_castor_detection_depth(const struct lr_keyed_text *text, const double *depths_mm, int layers,
                                    double *detection_depth_mm)
{
    static const struct lr_keyed_number number = {"mean depth of interaction", -1e9, 1e4, false, false};
    double least = INFINITY, most_said = -1;
    for (int k = 0; k < layers; k++) {
        double said = -1;
        LR_TRY(lr_keyed_text_number(text, &number, k, &said));
        least = fmin(least, said >= 0 ? said : 0.5 * depths_mm[k]);
        most_said = fmax(most_said, said);
    }
    if (most_said > least + 1e-6) {
        lr_warn(text->log,
                "%s: hits are read %.6g mm behind the front faces of all layers, where the file "
                "has up to %.6g mm for some of them",
                text->path, least, most_said);
    }
    *detection_depth_mm = least;
    return LR_OK;
}

void lr_castor_put(struct lr_output *output, const struct lr_castor_line *line)
{
    char text[1024];
    int length = snprintf(text, sizeof(text), "%-*s:", line->width, line->key);
    for (int k = 0; k < line->count; k++)
        length += snprintf(text + length, sizeof(text) - (size_t)length, "%s%.9g", k > 0 ? "," : " ", line->values[k]);
    lr_output_write(output, text, (size_t)length);
    lr_output_write(output, "\n", 1);
}
