/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/layers.h"

#include "base/vec.h"
#include "model/scanner/scanner_check.h"

#include <stddef.h>

double lr_layer_front_mm(const lr_layer *layers, int layer)
{
    double front = 0;
    for (int k = 0; k <= layer; k++) {
        front = layers[k].front_mm > 0 ? layers[k].front_mm : front;
        front += k < layer ? layers[k].depth_mm : 0;
    }
    return front;
}

struct lr_layer_fault lr_layers_find_fault(const lr_layer *layers, int num_layers, double depth_mm)
{
    double end = 0;
    for (int k = 0; k < num_layers; k++) {
        const double front = lr_layer_front_mm(layers, k);
        if (front < end - LR_OVERLAP_TOLERANCE_MM) return (struct lr_layer_fault){k, end - front, false};
        end = front + layers[k].depth_mm;
        if (end > depth_mm + LR_OVERLAP_TOLERANCE_MM) return (struct lr_layer_fault){k, end - depth_mm, true};
    }
    return (struct lr_layer_fault){-1, 0, false};
}

lr_module lr_layer_module(const lr_module *whole, const lr_layer *layers, int layer, const int block[2])
{
    const lr_layer *own = &layers[layer];
    lr_module module = *whole;
    lr_module_set_normal(&module);
    vec_add_scaled(module.centre_mm, -lr_layer_front_mm(layers, layer), module.normal, module.centre_mm);
    vec_add_scaled(module.centre_mm, own->offset_mm[0], module.u, module.centre_mm);
    vec_add_scaled(module.centre_mm, own->offset_mm[1], module.v, module.centre_mm);
    for (int k = 0; k < 2; k++) {
        if (own->block_crystals[k] != NULL) module.crystals[k] = own->block_crystals[k][block[k]];
        module.pitch_mm[k] = own->pitch_mm[k] > 0 ? own->pitch_mm[k] : module.pitch_mm[k];
        module.face_mm[k] = own->face_mm[k] > 0 ? own->face_mm[k] : module.face_mm[k];
    }
    for (int k = 0; k < 3; k++) module.normal[k] = whole->normal[k];
    module.depth_mm = own->depth_mm;
    module.mu_per_mm = own->mu_per_mm > 0 ? own->mu_per_mm : module.mu_per_mm;
    module.layer = layer;
    return module;
}

int lr_scanner_num_layers(const lr_scanner *scanner)
{
    int most = 0;
    for (int m = 0; m < scanner->num_modules; m++)
        most = scanner->modules[m].layer > most ? scanner->modules[m].layer : most;
    return most + 1;
}
