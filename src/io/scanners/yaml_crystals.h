/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Of scanners in YAML: how many crystals a module has, and its layers. */
#ifndef LR_IO_YAML_CRYSTALS_H
#define LR_IO_YAML_CRYSTALS_H

#include "io/files/yaml.h"

#include <lr/scanner.h>

/* A value of the file with the key that carries it. */
struct lr_yaml_entry {
    struct fy_node *key, *value;
};

/* Crystals of each block along u and v. */
struct lr_yaml_crystals {
    int *blocks[2]; /* [count], owned */
    int count[2];
};

/* Reads [along u, along v], each a whole number or, for a panel of blocks, a list of them.
 * Finish it, also after errors. */
lr_status lr_yaml_crystals_read(const struct lr_yaml *yaml, const struct lr_yaml_entry *entry,
                                struct lr_yaml_crystals *crystals);
void lr_yaml_crystals_finish(struct lr_yaml_crystals *crystals);

/* Attenuation of crystals, by keys that exclude each other: `crystal_mu_per_mm`, which is in *mu_per_mm
 * already, or the name of a `crystal_material`. Entries without a key leave it as it is.
 * errors: LR_BAD_INPUT for both keys, or a material that is not known. */
lr_status lr_yaml_material_read(const struct lr_yaml *yaml, const struct lr_yaml_entry *material,
                                struct fy_node *mu_key, double *mu_per_mm);

/* The layers of a module. */
struct lr_yaml_layers {
    lr_layer items[LR_MAX_LAYERS];
    struct lr_yaml_crystals crystals[LR_MAX_LAYERS]; /* where a layer has its own */
    int count;
};

/* Reads and checks the list `layers` of a module of that depth, with `blocks` blocks along u and v.
 * Finish it, also after errors; one without an entry is empty. */
lr_status lr_yaml_layers_read(const struct lr_yaml *yaml, const struct lr_yaml_entry *entry, const lr_module *module,
                              const int blocks[2], struct lr_yaml_layers *layers);
void lr_yaml_layers_finish(struct lr_yaml_layers *layers);

#endif
