/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanner presets and schemas that are part of the library. tools/embed_presets.py writes the tables at build time. */
#ifndef LR_IO_PRESETS_H
#define LR_IO_PRESETS_H

struct lr_preset {
    const char *name; /* file stem: "penn-labr3" */
    const char *text; /* the YAML file, zero terminated ASCII */
};

/* Presets, sorted by name, and a list of their names, which NULL ends. */
extern const struct lr_preset lr_preset_table[];
extern const char *const lr_preset_names[];
extern const int lr_num_presets;

/* The schemas of PETSIRD (assets/petsird), by file stem: "schema_v0.9.1". */
extern const struct lr_preset lr_petsird_table[];
extern const char *const lr_petsird_names[];
extern const int lr_num_petsird;

#endif
