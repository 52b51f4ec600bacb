/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Layers in lists of crystals: each is turned into modules by itself, and those that stand behind each
 * other become blocks. */
#ifndef LR_MODEL_CRYSTAL_LAYERS_H
#define LR_MODEL_CRYSTAL_LAYERS_H

#include <lr/crystals.h>

/* As lr_scanner_from_crystals, of crystals that all are in one layer, whatever the list says. */
lr_scanner *lr_scanner_from_one_layer(const lr_crystal_list *list, int *crystal_of, double *residual_mm);

#endif
