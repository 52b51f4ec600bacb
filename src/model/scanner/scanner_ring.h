/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Rings as lists of modules, and back. */
#ifndef LR_MODEL_SCANNER_RING_H
#define LR_MODEL_SCANNER_RING_H

#include <lr/scanner.h>

/* The modules of a ring, in the order that lr/scanner.h gives, normals not set; to be freed.
 * errors: NULL for counts and lengths that make no ring, logged under `title`. */
lr_module *lr_ring_expand(const char *title, const lr_ring *ring, int *num_modules, const lr_log *log);

/* A ring that describes a scanner's modules; finish it. */
struct lr_ring_form {
    lr_ring ring;
    int *block_crystals[2]; /* owned; ring.block_crystals points there */
    lr_layer *layers;       /* owned; ring.layers points there */
    int *layer_crystals;    /* owned; theirs point there */
};

/* Finds the ring whose modules are the scanner's, in its order, to within 1e-6 mm. Numbers are
 * the shortest decimals that they may stand for after rounding (1e-13).
 * found: whether there is one; *form holds nothing otherwise.
 * errors: LR_FAILED when memory is short. */
lr_status lr_ring_form_find(const lr_scanner *scanner, struct lr_ring_form *form, bool *found, const lr_log *log);
void lr_ring_form_finish(struct lr_ring_form *form);

#endif
