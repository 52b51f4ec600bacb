/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Layers of crystals, one behind the other (lr/scanner.h): a module with a description of layers becomes a module per
 * layer. */
#ifndef LR_MODEL_LAYERS_H
#define LR_MODEL_LAYERS_H

#include <lr/scanner.h>

/* The fault of the first layer of a module that does not fit. */
struct lr_layer_fault {
    int layer;        /* -1: nothing */
    double excess_mm; /* by how much it overlaps with the one before, or leaves the module */
    bool leaves;      /* the module; else it overlaps */
};

/* Front faces and depths of layers, in a module of a depth. */
struct lr_layer_fault lr_layers_find_fault(const lr_layer *layers, int num_layers, double depth_mm);

/* Depth of a layer's front face behind the module's, mm. */
double lr_layer_front_mm(const lr_layer *layers, int layer);

/* The module of one layer of the module `whole`, which is block `block` of its panel: numbers along
 * u and v. Its normal is that of `whole`, set or not. */
lr_module lr_layer_module(const lr_module *whole, const lr_layer *layers, int layer, const int block[2]);

/* Number of layers of a scanner; 1 without any. */
int lr_scanner_num_layers(const lr_scanner *scanner);

#endif
