/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanner presets and schemas that the build embeds (tools/embed_presets.py writes the
 * tables). */
#ifndef LR_IO_PRESETS_H
#define LR_IO_PRESETS_H

struct lr_preset {
    const char *name; /* file stem: "penn-labr3" */
    const char *text; /* the YAML file, zero terminated ASCII */
};

/* Sorted by name, both tables in the same order; the names end with NULL. */
extern const struct lr_preset lr_preset_table[];
extern const char *const lr_preset_names[];
extern const int lr_num_presets;

/* The schemas of PETSIRD (assets/petsird), by file stem: "schema_v0.9.1". */
extern const struct lr_preset lr_petsird_table[];
extern const char *const lr_petsird_names[];
extern const int lr_num_petsird;

#endif
