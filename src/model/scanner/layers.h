/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Layers of crystals, from front to back (lr/scanner.h). A module with a description of layers is replaced by one
 * module per layer. */
#ifndef LR_MODEL_LAYERS_H
#define LR_MODEL_LAYERS_H

#include <lr/scanner.h>

/* The fault of the first layer of a module that does not fit. */
struct lr_layer_fault {
    int layer;        /* -1 = no fault */
    double excess_mm; /* length by which it overlaps the layer before it, or leaves the module */
    bool leaves;      /* true if it leaves the module, false if it overlaps */
};

/* Checks the front faces and depths of layers in a module of this depth. */
struct lr_layer_fault lr_layers_find_fault(const lr_layer *layers, int num_layers, double depth_mm);

/* Depth of a layer's front face behind the module's, mm. */
double lr_layer_front_mm(const lr_layer *layers, int layer);

/* The module of one layer of the module `whole`. block: the block's numbers along u and v within its panel. The normal
 * is copied from `whole`, set or not. */
lr_module lr_layer_module(const lr_module *whole, const lr_layer *layers, int layer, const int block[2]);

/* Number of layers of a scanner; 1 if no layers are described. */
int lr_scanner_num_layers(const lr_scanner *scanner);

#endif
