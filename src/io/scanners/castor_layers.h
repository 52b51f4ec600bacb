/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Layers of crystals in CASToR's scanner files: comma lists, front to back. */
#ifndef LR_IO_CASTOR_LAYERS_H
#define LR_IO_CASTOR_LAYERS_H

#include "io/files/keyed_text.h"
#include "io/files/output.h"

#include <lr/scanner.h>

/* The depth behind the front faces at which hits are read: the key's, half of the crystals' depth where
 * it is negative or missing, and the least of all layers, with a warning where the file says others.
 * errors: LR_BAD_INPUT, logged. */
lr_status lr_castor_detection_depth(const struct lr_keyed_text *text, const double *depths_mm, int layers,
                                    double *detection_depth_mm);

/* A line "key : a,b,c" with the key in `width` columns. */
struct lr_castor_line {
    const char *key;
    int width;
    const double *values;
    int count;
};
void lr_castor_put(struct lr_output *output, const struct lr_castor_line *line);

#endif
