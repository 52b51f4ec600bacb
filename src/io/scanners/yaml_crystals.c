/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/scanners/yaml_crystals.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/scanners/scanner_yaml.h"
#include "model/scanner/layers.h"

#include <stdlib.h>

/* --- crystals --- */

/* Crystals along one axis: a number, or a list with one number per block. */
static lr_status read_blocks(const struct lr_yaml *yaml, const struct lr_yaml_entry *entry, int axis,
                             struct lr_yaml_crystals *crystals)
{
    struct fy_node *node = fy_node_sequence_get_by_index(entry->value, axis);
    const bool is_list = node != NULL && fy_node_is_sequence(node);
    const int count = is_list ? fy_node_sequence_item_count(node) : 1;
    if (count < 1 || count > LR_MAX_FILE_MODULES)
        return lr_yaml_error(yaml, node, "an axis must have from 1 to %d blocks, found %d", LR_MAX_FILE_MODULES, count);
    crystals->blocks[axis] = lr_alloc(count, sizeof(int), "blocks", lr_yaml_log(yaml));
    if (crystals->blocks[axis] == NULL) return LR_FAILED;
    crystals->count[axis] = count;
    void *iterator = NULL;
    for (int k = 0; k < count; k++) {
        struct fy_node *item = is_list ? fy_node_sequence_iterate(node, &iterator) : node;
        const struct lr_yaml_field field = {axis ? "crystals along v" : "crystals along u",
                                            NULL,
                                            LR_YAML_COUNT,
                                            true,
                                            &crystals->blocks[axis][k],
                                            NULL};
        LR_TRY(lr_yaml_read_value(yaml, &field, item, entry->key));
    }
    return LR_OK;
}

lr_status lr_yaml_crystals_read(const struct lr_yaml *yaml, const struct lr_yaml_entry *entry,
                                struct lr_yaml_crystals *crystals)
{
    struct fy_node *node = entry->value;
    if (node == NULL || !fy_node_is_sequence(node) || fy_node_sequence_item_count(node) != 2) {
        return lr_yaml_error(yaml, entry->key,
                             "'crystals' must be [along u, along v], each a whole number or, for "
                             "a panel of blocks, a list of them");
    }
    LR_TRY(read_blocks(yaml, entry, 0, crystals));
    return read_blocks(yaml, entry, 1, crystals);
}

void lr_yaml_crystals_finish(struct lr_yaml_crystals *crystals)
{
    free(crystals->blocks[0]);
    free(crystals->blocks[1]);
    *crystals = (struct lr_yaml_crystals){0};
}

lr_status lr_yaml_material_read(const struct lr_yaml *yaml, const struct lr_yaml_entry *material,
                                struct fy_node *mu_key, double *mu_per_mm)
{
    char *name = NULL;
    const struct lr_yaml_field field = {"crystal_material", NULL, LR_YAML_TEXT, true, &name, NULL};
    if (material->key == NULL) return LR_OK;
    if (mu_key != NULL) {
        return lr_yaml_error(yaml, material->key,
                             "'crystal_material' and 'crystal_mu_per_mm' (line %d) are given: keep "
                             "one of the two",
                             lr_yaml_line(mu_key));
    }
    LR_TRY(lr_yaml_read_value(yaml, &field, material->value, material->key));
    *mu_per_mm = lr_crystal_material_mu_per_mm(name);
    const lr_status status = *mu_per_mm > 0 ? LR_OK
                                            : lr_yaml_error(yaml, material->key,
                                                            "'%s' is not one of the crystals that are known (%s): give "
                                                            "'crystal_mu_per_mm' in its place",
                                                            name, lr_crystal_materials());
    free(name);
    return status;
}

/* --- layers --- */

static lr_status read_layer(const struct lr_yaml *yaml, struct fy_node *node, const int blocks[2],
                            struct lr_yaml_layers *layers)
{
    lr_layer *layer = &layers->items[layers->count];
    struct lr_yaml_crystals *crystals = &layers->crystals[layers->count];
    struct lr_yaml_entry entry = {NULL, NULL}, material = {NULL, NULL};
    struct fy_node *mu_key = NULL;
    const struct lr_yaml_field fields[] = {
        {"depth_mm", NULL, LR_YAML_POSITIVE, true, &layer->depth_mm, NULL},
        {"front_mm", NULL, LR_YAML_NOT_NEGATIVE, false, &layer->front_mm, NULL},
        {"crystals", NULL, LR_YAML_NODE, false, &entry.value, &entry.key},
        {"pitch_mm", NULL, LR_YAML_POSITIVE_PAIR, false, layer->pitch_mm, NULL},
        {"face_mm", NULL, LR_YAML_POSITIVE_PAIR, false, layer->face_mm, NULL},
        {"offset_mm", NULL, LR_YAML_NUMBER_PAIR, false, layer->offset_mm, NULL},
        {"crystal_mu_per_mm", NULL, LR_YAML_POSITIVE, false, &layer->mu_per_mm, &mu_key},
        {"crystal_material", NULL, LR_YAML_NODE, false, &material.value, &material.key},
    };
    const struct lr_yaml_mapping mapping = {node, node, "a layer"};
    layers->count++;
    LR_TRY(lr_yaml_read_fields(yaml, &mapping, fields, (int)(sizeof(fields) / sizeof(fields[0]))));
    LR_TRY(lr_yaml_material_read(yaml, &material, mu_key, &layer->mu_per_mm));
    if (entry.key == NULL) return LR_OK;
    LR_TRY(lr_yaml_crystals_read(yaml, &entry, crystals));
    for (int k = 0; k < 2; k++) {
        if (crystals->count[k] != blocks[k]) {
            return lr_yaml_error(yaml, entry.key,
                                 "a layer must have as many blocks as its module, %d along %s, "
                                 "found %d",
                                 blocks[k], k == 0 ? "u" : "v", crystals->count[k]);
        }
        layer->block_crystals[k] = crystals->blocks[k];
    }
    return LR_OK;
}

static lr_status refuse(const struct lr_yaml *yaml, struct fy_node *node, const lr_module *module,
                        const struct lr_layer_fault *fault)
{
    if (fault->leaves) {
        return lr_yaml_error(yaml, node,
                             "layer %d ends %.4g mm behind the module's 'depth_mm' of %.6g: make "
                             "its layers thinner or the module deeper",
                             fault->layer, fault->excess_mm, module->depth_mm);
    }
    return lr_yaml_error(yaml, node,
                         "layer %d begins %.4g mm before the end of the layer in front of it: "
                         "raise its 'front_mm', or leave it out to begin there",
                         fault->layer, fault->excess_mm);
}

lr_status lr_yaml_layers_read(const struct lr_yaml *yaml, const struct lr_yaml_entry *entry, const lr_module *module,
                              const int blocks[2], struct lr_yaml_layers *layers)
{
    struct fy_node *node = entry->value;
    *layers = (struct lr_yaml_layers){0};
    if (entry->key == NULL) return LR_OK;
    const int count = node && fy_node_is_sequence(node) ? fy_node_sequence_item_count(node) : 0;
    if (count < 1 || count > LR_MAX_LAYERS) {
        return lr_yaml_error(yaml, entry->key,
                             "'layers' must be a list of 1 to %d layers, front to back, each with "
                             "its 'depth_mm'",
                             LR_MAX_LAYERS);
    }
    for (int k = 0; k < count; k++) LR_TRY(read_layer(yaml, fy_node_sequence_get_by_index(node, k), blocks, layers));
    const struct lr_layer_fault fault = lr_layers_find_fault(layers->items, layers->count, module->depth_mm);
    return fault.layer < 0 ? LR_OK : refuse(yaml, fy_node_sequence_get_by_index(node, fault.layer), module, &fault);
}

void lr_yaml_layers_finish(struct lr_yaml_layers *layers)
{
    for (int k = 0; k < layers->count; k++) lr_yaml_crystals_finish(&layers->crystals[k]);
    layers->count = 0;
}
