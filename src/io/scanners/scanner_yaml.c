/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "io/files/output.h"
#include "io/files/yaml.h"
#include "io/scanners/castor_order.h"
#include "io/scanners/scanner_formats.h"
#include "model/scanner/scanner.h"

#include <ctype.h>
#include <lr/scanner.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of crystals of each block along u and v. */
struct lr_yaml_crystals {
    int *blocks[2]; /* [count], owned */
    int count[2];
};

/* The layers of a module. */
struct lr_yaml_layers {
    lr_layer items[LR_MAX_LAYERS];
    struct lr_yaml_crystals crystals[LR_MAX_LAYERS]; /* crystals of each layer that lists its own crystals */
    int count;
};

#define NUM_FIELDS(fields) ((int)(sizeof(fields) / sizeof((fields)[0])))

/* --- crystals --- */

/* Reads [along u, along v]. Each entry is the number of crystals or, for a panel of blocks, a list with one number per
 * block. Finish the result, even after errors. */
static lr_status lr_yaml_crystals_read(const struct lr_yaml *yaml, const struct lr_yaml_entry *entry,
                                       struct lr_yaml_crystals *crystals)
{
    if (entry->value == NULL || !fy_node_is_sequence(entry->value) || fy_node_sequence_item_count(entry->value) != 2) {
        return lr_yaml_error(yaml, entry->key,
                             "'crystals' must be [along u, along v], each a whole number or, for "
                             "a panel of blocks, a list of them");
    }
    for (int axis = 0; axis < 2; axis++) {
        struct fy_node *node = fy_node_sequence_get_by_index(entry->value, axis);
        const bool is_list = node != NULL && fy_node_is_sequence(node);
        const int count = is_list ? fy_node_sequence_item_count(node) : 1;
        if (count < 1 || count > LR_MAX_FILE_MODULES) {
            return lr_yaml_error(yaml, node, "an axis must have from 1 to %d blocks, found %d", LR_MAX_FILE_MODULES,
                                 count);
        }
        crystals->blocks[axis] = lr_alloc(count, sizeof(int), "blocks", yaml->log);
        if (crystals->blocks[axis] == NULL) return LR_FAILED;
        crystals->count[axis] = count;
        const char *key = axis ? "crystals along v" : "crystals along u";
        void *iterator = NULL;
        for (int k = 0; k < count; k++) {
            struct fy_node *item = is_list ? fy_node_sequence_iterate(node, &iterator) : node;
            const struct lr_yaml_field field = {key, NULL, LR_YAML_COUNT, true, &crystals->blocks[axis][k], NULL};
            LR_TRY(lr_yaml_read_value(yaml, &field, item, entry->key));
        }
    }
    return LR_OK;
}

static void lr_yaml_crystals_finish(struct lr_yaml_crystals *crystals)
{
    lr_free_all(crystals->blocks[0], crystals->blocks[1]);
    *crystals = (struct lr_yaml_crystals){0};
}

/* Reads the attenuation of crystals. An entry may have `crystal_mu_per_mm`, which is already in *mu_per_mm, or the name
 * of a `crystal_material`. Without either key, *mu_per_mm is unchanged. errors: LR_BAD_INPUT for both keys together, or
 * for an unknown material. */
static lr_status lr_yaml_material_read(const struct lr_yaml *yaml, const struct lr_yaml_entry *material,
                                       struct fy_node *mu_key, double *mu_per_mm)
{
    char *name = NULL;
    const struct lr_yaml_field field = {"crystal_material", NULL, LR_YAML_TEXT, true, &name, NULL};
    if (material->key == NULL) return LR_OK;
    if (mu_key != NULL) {
        return lr_yaml_error(yaml, material->key,
                             "'crystal_material' and 'crystal_mu_per_mm' (line %d) are given: keep one of the two",
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

/* Reads and checks the list `layers` of a module with the given depth and `blocks` blocks along u and v. If there is no
 * entry, the result is empty. Finish the result, even after errors. */
static lr_status lr_yaml_layers_read(const struct lr_yaml *yaml, const struct lr_yaml_entry *entry,
                                     const lr_module *module, const int blocks[2], struct lr_yaml_layers *layers)
{
    *layers = (struct lr_yaml_layers){0};
    if (entry->key == NULL) return LR_OK;
    struct fy_node *list = entry->value;
    const int count = list && fy_node_is_sequence(list) ? fy_node_sequence_item_count(list) : 0;
    if (count < 1 || count > LR_MAX_LAYERS) {
        return lr_yaml_error(yaml, entry->key,
                             "'layers' must be a list of 1 to %d layers, front to back, each with its 'depth_mm'",
                             LR_MAX_LAYERS);
    }

    for (int l = 0; l < count; l++) {
        struct fy_node *node = fy_node_sequence_get_by_index(list, l), *mu_key = NULL, *front_key = NULL;
        lr_layer *layer = &layers->items[l];
        struct lr_yaml_crystals *own = &layers->crystals[l];
        struct lr_yaml_entry crystals = {NULL, NULL}, material = {NULL, NULL};
        const struct lr_yaml_field fields[] = {
            {"depth_mm", NULL, LR_YAML_POSITIVE, true, &layer->depth_mm, NULL},
            {"front_mm", NULL, LR_YAML_NOT_NEGATIVE, false, &layer->front_mm, &front_key},
            {"crystals", NULL, LR_YAML_NODE, false, &crystals.value, &crystals.key},
            {"pitch_mm", NULL, LR_YAML_POSITIVE_PAIR, false, layer->pitch_mm, NULL},
            {"face_mm", NULL, LR_YAML_POSITIVE_PAIR, false, layer->face_mm, NULL},
            {"offset_mm", NULL, LR_YAML_NUMBER_PAIR, false, layer->offset_mm, NULL},
            {"crystal_mu_per_mm", NULL, LR_YAML_POSITIVE, false, &layer->mu_per_mm, &mu_key},
            {"crystal_material", NULL, LR_YAML_NODE, false, &material.value, &material.key},
        };
        const struct lr_yaml_mapping mapping = {node, node, "a layer"};
        layers->count++;
        LR_TRY(lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields)));
        LR_TRY(lr_yaml_material_read(yaml, &material, mu_key, &layer->mu_per_mm));
        if (l > 0 && front_key != NULL && layer->front_mm == 0) {
            return lr_yaml_error(yaml, front_key,
                                 "layer %d begins at the front of the module, where layer 0 is: list the layers from "
                                 "front to back, and leave 'front_mm' out to begin behind the layer before",
                                 l);
        }
        if (crystals.key == NULL) continue;
        LR_TRY(lr_yaml_crystals_read(yaml, &crystals, own));
        for (int k = 0; k < 2; k++) {
            if (own->count[k] != blocks[k]) {
                return lr_yaml_error(yaml, crystals.key,
                                     "a layer must have as many blocks as its module, %d along %s, found %d", blocks[k],
                                     k == 0 ? "u" : "v", own->count[k]);
            }
            layer->block_crystals[k] = own->blocks[k];
        }
    }

    const struct lr_layer_fault fault = lr_layers_find_fault(layers->items, layers->count, module->depth_mm);
    if (fault.layer < 0) return LR_OK;
    struct fy_node *at = fy_node_sequence_get_by_index(list, fault.layer);
    return fault.leaves ? lr_yaml_error(yaml, at,
                                        "layer %d ends %.4g mm behind the module's 'depth_mm' of %.6g: make "
                                        "its layers thinner or the module deeper",
                                        fault.layer, fault.excess_mm, module->depth_mm)
                        : lr_yaml_error(yaml, at,
                                        "layer %d begins %.4g mm before the end of the layer in front of it: "
                                        "raise its 'front_mm', or leave it out to begin there",
                                        fault.layer, fault.excess_mm);
}

static void lr_yaml_layers_finish(struct lr_yaml_layers *layers)
{
    for (int k = 0; k < layers->count; k++) lr_yaml_crystals_finish(&layers->crystals[k]);
    layers->count = 0;
}

/* Largest deviation of the axes from a right angle. v is corrected for smaller deviations. */
static const double max_tilt_rad = 1e-3;

/* A scanner being read. */
struct draft {
    struct lr_yaml *yaml;
    struct lr_yaml_entry ring, module, modules, coincidence, tof, source, unverified, castor;
    struct fy_node *module_difference, *ring_difference;
    char *name;
    struct lr_text text; /* text of scanner.source */
    lr_scanner_params params;
    lr_module *list;
    lr_ring description;
    double axial_length_mm;
    struct fy_node *positions;
    struct fy_node *numbered; /* a listed module that gives its layer as a number */
    int64_t max_list;
    struct lr_yaml_crystals panel;
    struct lr_yaml_layers layers; /* layers of the panel, or of one listed module */
};

/* --- texts --- */

/* Reads one text or a list of texts. Each becomes a line of scanner.source. */
static lr_status append_texts(struct draft *draft, const char *key, const struct lr_yaml_entry *entry)
{
    const bool is_list = entry->value != NULL && fy_node_is_sequence(entry->value);
    void *iterator = NULL;
    struct fy_node *item = is_list ? fy_node_sequence_iterate(entry->value, &iterator) : entry->value;
    const bool marked = strcmp(key, "unverified") == 0;
    while (entry->key != NULL) {
        char *text = NULL;
        const struct lr_yaml_field field = {key, NULL, LR_YAML_TEXT, true, &text, NULL};
        if (is_list && item == NULL) break;
        lr_status status = lr_yaml_read_value(draft->yaml, &field, item, entry->key);
        if (status == LR_OK) {
            status = lr_text_print(&draft->text, "%s%s%s", draft->text.chars ? "\n" : "", marked ? "unverified: " : "",
                                   text);
        }
        free(text);
        if (status != LR_OK || !is_list) return status;
        item = fy_node_sequence_iterate(entry->value, &iterator);
    }
    return LR_OK;
}

/* --- explicit modules --- */

static double angle_between(const double a[3], const double b[3])
{
    double cross[3];
    vec_cross(a, b, cross);
    return atan2(vec_length(cross), vec_dot(a, b));
}

/* Normalises the axis, after dividing the axis by its largest component to avoid overflow. */
static lr_status normalise(const struct draft *draft, struct fy_node *at, const char *key, double axis[3])
{
    const double largest = fmax(fabs(axis[0]), fmax(fabs(axis[1]), fabs(axis[2])));
    if (!(largest > 0)) {
        return lr_yaml_error(draft->yaml, at,
                             "the axis '%s' is zero: give the direction in which its crystals are counted", key);
    }
    for (int k = 0; k < 3; k++) axis[k] /= largest;
    (void)vec_normalise(axis);
    return LR_OK;
}

static lr_status count_crystals(const struct draft *draft, struct fy_node *at, int64_t panels, int64_t per_panel,
                                int64_t *total)
{
    /* Each factor fits in 31 bits, so the product cannot overflow. */
    *total += panels * per_panel;
    if (*total > LR_MAX_FILE_CRYSTALS) {
        return lr_yaml_error(draft->yaml, at, "more than %d crystals: reduce the number of modules or crystals",
                             LR_MAX_FILE_CRYSTALS);
    }
    return LR_OK;
}

static lr_status read_module(struct draft *draft, struct fy_node *node, lr_module *module, int64_t *total)
{
    struct fy_node *u_key = NULL, *v_key = NULL, *crystals_key = NULL;
    struct fy_node *normal_key = NULL, *position_key = NULL, *layer_key = NULL;
    struct lr_yaml_entry layers = {NULL, NULL}, material = {NULL, NULL};
    struct fy_node *mu_key = NULL;
    const bool in_ring = draft->positions != NULL;
    const struct lr_yaml_field fields[] = {
        {"center_mm", "centre_mm", LR_YAML_VECTOR, true, module->centre_mm, NULL},
        {"u", NULL, LR_YAML_VECTOR, true, module->u, &u_key},
        {"v", NULL, LR_YAML_VECTOR, true, module->v, &v_key},
        {"crystals", NULL, LR_YAML_COUNT_PAIR, true, module->crystals, &crystals_key},
        {"pitch_mm", NULL, LR_YAML_POSITIVE_PAIR, true, module->pitch_mm, NULL},
        {"face_mm", NULL, LR_YAML_POSITIVE_PAIR, true, module->face_mm, NULL},
        {"depth_mm", NULL, LR_YAML_POSITIVE, true, &module->depth_mm, NULL},
        {"normal", NULL, LR_YAML_VECTOR, false, module->normal, &normal_key},
        {"position", NULL, LR_YAML_INDEX, in_ring, &module->position, &position_key},
        {"ring", NULL, LR_YAML_INDEX, in_ring, &module->ring, NULL},
        {"first_crystal_ring", NULL, LR_YAML_INDEX, in_ring, &module->first_crystal_ring, NULL},
        {"crystal_mu_per_mm", NULL, LR_YAML_POSITIVE, false, &module->mu_per_mm, &mu_key},
        {"crystal_material", NULL, LR_YAML_NODE, false, &material.value, &material.key},
        {"layers", NULL, LR_YAML_NODE, false, &layers.value, &layers.key},
        {"layer", NULL, LR_YAML_INDEX, false, &module->layer, &layer_key},
        {"block", NULL, LR_YAML_INDEX, false, &module->block, NULL},
    };
    const struct lr_yaml_mapping mapping = {node, node, "a module"};
    LR_TRY(lr_yaml_read_fields(draft->yaml, &mapping, fields, NUM_FIELDS(fields)));
    LR_TRY(lr_yaml_material_read(draft->yaml, &material, mu_key, &module->mu_per_mm));
    draft->numbered = layer_key != NULL ? layer_key : draft->numbered;
    if (layers.key != NULL && draft->numbered != NULL) {
        return lr_yaml_error(draft->yaml, layers.key,
                             "'layers' of a module and modules that are a 'layer' each are given "
                             "(line %d): keep one of the two",
                             lr_yaml_line(draft->numbered));
    }
    if (position_key != NULL && !in_ring) {
        return lr_yaml_error(draft->yaml, position_key,
                             "a place around the ring needs 'num_positions', the number of places, beside 'modules'");
    }
    const double degrees = 57.29577951308232;
    LR_TRY(normalise(draft, u_key, "u", module->u));
    LR_TRY(normalise(draft, v_key, "v", module->v));
    const double angle = angle_between(module->u, module->v);
    if (!(fabs(angle - 90 / degrees) <= max_tilt_rad)) {
        return lr_yaml_error(draft->yaml, v_key, "the axes 'u' and 'v' are %.6g degrees apart: make it 90",
                             angle * degrees);
    }
    vec_add_scaled(module->v, -vec_dot(module->u, module->v), module->u, module->v);
    LR_TRY(normalise(draft, v_key, "v", module->v));

    if (normal_key != NULL) {
        LR_TRY(normalise(draft, normal_key, "normal", module->normal));
        double product[3];
        vec_cross(module->u, module->v, product);
        if (fabs(sin(angle_between(product, module->normal))) > max_tilt_rad) {
            return lr_yaml_error(draft->yaml, normal_key,
                                 "'normal' is not orthogonal to 'u' and 'v': leave it out, it follows from them");
        }
    }

    const struct lr_yaml_layers *list = &draft->layers;
    lr_yaml_layers_finish(&draft->layers);
    LR_TRY(lr_yaml_layers_read(draft->yaml, &layers, module, (const int[2]){1, 1}, &draft->layers));
    if (list->count == 0) return count_crystals(draft, crystals_key, module->crystals[0], module->crystals[1], total);
    for (int k = 0; k < list->count; k++) {
        const lr_module layer = lr_layer_module(module, list->items, k, (const int[2]){0, 0});
        LR_TRY(count_crystals(draft, crystals_key, layer.crystals[0], layer.crystals[1], total));
    }
    return LR_OK;
}

static lr_status read_modules(struct draft *draft)
{
    struct fy_node *node = draft->modules.value;
    const int count = node && fy_node_is_sequence(node) ? fy_node_sequence_item_count(node) : 0;
    if (count < 2)
        return lr_yaml_error(draft->yaml, draft->modules.key, "'modules' must be a list of at least 2 modules");
    if (count > LR_MAX_FILE_MODULES) {
        return lr_yaml_error(draft->yaml, draft->modules.key, "%d modules are too many: at most %d", count,
                             LR_MAX_FILE_MODULES);
    }
    struct fy_node *ring_rule = draft->module_difference ? draft->module_difference : draft->ring_difference;
    if (ring_rule != NULL && draft->positions == NULL) {
        return lr_yaml_error(draft->yaml, ring_rule,
                             "this rule counts modules around a ring, and 'modules' lists them freely: "
                             "use 'field_of_view_mm', or the 'ring' form, or give 'num_positions' and "
                             "each module's 'position'");
    }

    const struct lr_yaml_layers *layers = &draft->layers;
    const struct lr_items items = {sizeof(*draft->list), "modules", draft->yaml->log};
    int64_t num_crystals = 0;
    void *iterator = NULL;
    for (int k = 0; k < count; k++) {
        struct fy_node *item = fy_node_sequence_iterate(node, &iterator);
        lr_module module = {0};
        LR_TRY(read_module(draft, item, &module, &num_crystals));
        /* Makes a module, or one module for each of its layers. Modules without layers have block 0. */
        const int parts = layers->count > 0 ? layers->count : 1;
        LR_TRY(lr_grow(&draft->list, &draft->max_list, draft->params.num_modules + (int64_t)parts, &items));
        for (int l = 0; l < parts; l++) {
            lr_module *appended = &draft->list[draft->params.num_modules++];
            *appended = module;
            if (layers->count > 0) {
                *appended = lr_layer_module(&module, layers->items, l, (const int[2]){0, 0});
                appended->block = parts > 1 ? k + 1 : 0;
            }
        }
    }
    draft->params.modules = draft->list;
    return LR_OK;
}

/* --- the ring form --- */

static lr_status read_ring(struct draft *draft)
{
    const struct lr_yaml *yaml = draft->yaml;
    lr_ring *ring = &draft->description;
    struct fy_node *rings_key = NULL, *pitch_key = NULL;
    ring->rings = 1;
    const struct lr_yaml_field ring_fields[] = {
        {"radius_mm", NULL, LR_YAML_POSITIVE, true, &ring->radius_mm, NULL},
        {"modules", NULL, LR_YAML_COUNT, true, &ring->modules, NULL},
        {"first_angle_deg", NULL, LR_YAML_NUMBER, false, &ring->first_angle_deg, NULL},
        {"rings", NULL, LR_YAML_COUNT, false, &ring->rings, &rings_key},
        {"ring_pitch_mm", NULL, LR_YAML_POSITIVE, false, &ring->ring_pitch_mm, &pitch_key},
    };
    const struct lr_yaml_mapping ring_mapping = {draft->ring.value, draft->ring.key, "a ring"};
    LR_TRY(lr_yaml_read_fields(yaml, &ring_mapping, ring_fields, NUM_FIELDS(ring_fields)));
    if (ring->rings > 1 && pitch_key == NULL) {
        return lr_yaml_error(yaml, rings_key, "%d rings need 'ring_pitch_mm', the distance from ring to ring",
                             ring->rings);
    }

    struct lr_yaml_entry crystals = {NULL, NULL}, layer_list = {NULL, NULL};
    struct fy_node *gap_key = NULL;
    const struct lr_yaml_field panel_fields[] = {
        {"crystals", NULL, LR_YAML_NODE, true, &crystals.value, &crystals.key},
        {"pitch_mm", NULL, LR_YAML_POSITIVE_PAIR, true, ring->pitch_mm, NULL},
        {"face_mm", NULL, LR_YAML_POSITIVE_PAIR, true, ring->face_mm, NULL},
        {"depth_mm", NULL, LR_YAML_POSITIVE, true, &ring->depth_mm, NULL},
        {"block_gap_mm", NULL, LR_YAML_WIDTH_PAIR, false, ring->block_gap_mm, &gap_key},
        {"layers", NULL, LR_YAML_NODE, false, &layer_list.value, &layer_list.key},
    };
    const struct lr_yaml_mapping panel_mapping = {draft->module.value, draft->module.key, "a module"};
    LR_TRY(lr_yaml_read_fields(yaml, &panel_mapping, panel_fields, NUM_FIELDS(panel_fields)));
    LR_TRY(lr_yaml_crystals_read(yaml, &crystals, &draft->panel));
    for (int k = 0; k < 2; k++) {
        ring->block_crystals[k] = draft->panel.blocks[k];
        ring->blocks[k] = draft->panel.count[k];
    }
    if (ring->blocks[0] * (int64_t)ring->blocks[1] > 1 && gap_key == NULL) {
        return lr_yaml_error(yaml, crystals.key,
                             "a panel of blocks needs 'block_gap_mm', what is added to the pitch between its blocks");
    }
    const lr_module whole = {.depth_mm = ring->depth_mm};
    LR_TRY(lr_yaml_layers_read(yaml, &layer_list, &whole, ring->blocks, &draft->layers));
    ring->layers = draft->layers.items;
    ring->num_layers = draft->layers.count;

    const int layers = ring->num_layers > 0 ? ring->num_layers : 1;
    const double modules = (double)ring->modules * ring->rings * ring->blocks[0] * ring->blocks[1] * layers;
    if (modules < 2) return lr_yaml_error(yaml, draft->ring.key, "a scanner needs at least 2 modules");
    if (modules > LR_MAX_FILE_MODULES) {
        return lr_yaml_error(yaml, draft->ring.key, "%.10g modules (with blocks%s) are too many: at most %d", modules,
                             layers > 1 ? " and layers" : "", LR_MAX_FILE_MODULES);
    }
    int64_t total = 0;
    for (int l = 0; l < layers; l++) {
        const bool has_own = ring->num_layers > 0 && ring->layers[l].block_crystals[0] != NULL;
        const int *const *blocks = has_own ? ring->layers[l].block_crystals : ring->block_crystals;
        int64_t along[2] = {0, 0}, panel = 0;
        for (int axis = 0; axis < 2; axis++)
            for (int k = 0; k < ring->blocks[axis]; k++)
                LR_TRY(count_crystals(draft, crystals.key, 1, blocks[axis][k], &along[axis]));
        LR_TRY(count_crystals(draft, crystals.key, along[0], along[1], &panel));
        LR_TRY(count_crystals(draft, crystals.key, (int64_t)ring->modules * ring->rings, panel, &total));
    }
    return LR_OK;
}

/* --- the whole file --- */

static lr_status read_draft(struct draft *draft)
{
    struct lr_yaml_entry material = {NULL, NULL};
    struct fy_node *mu_key = NULL;
    const struct lr_yaml_field fields[] = {
        {"name", NULL, LR_YAML_TEXT, false, &draft->name, NULL},
        {"ring", NULL, LR_YAML_NODE, false, &draft->ring.value, &draft->ring.key},
        {"module", NULL, LR_YAML_NODE, false, &draft->module.value, &draft->module.key},
        {"modules", NULL, LR_YAML_NODE, false, &draft->modules.value, &draft->modules.key},
        {"coincidence", NULL, LR_YAML_NODE, false, &draft->coincidence.value, &draft->coincidence.key},
        {"detection_depth_mm", NULL, LR_YAML_NOT_NEGATIVE, false, &draft->params.detection_depth_mm, NULL},
        {"crystal_mu_per_mm", NULL, LR_YAML_POSITIVE, false, &draft->params.crystal_mu_per_mm, &mu_key},
        {"crystal_material", NULL, LR_YAML_NODE, false, &material.value, &material.key},
        {"axial_length_mm", NULL, LR_YAML_POSITIVE, false, &draft->axial_length_mm, NULL},
        {"num_positions", NULL, LR_YAML_COUNT, false, &draft->params.num_positions, &draft->positions},
        {"tof", NULL, LR_YAML_NODE, false, &draft->tof.value, &draft->tof.key},
        {"source", NULL, LR_YAML_NODE, false, &draft->source.value, &draft->source.key},
        {"unverified", NULL, LR_YAML_NODE, false, &draft->unverified.value, &draft->unverified.key},
        {"castor_order", NULL, LR_YAML_NODE, false, &draft->castor.value, &draft->castor.key},
    };
    draft->text.what = "a text";
    draft->text.log = draft->yaml->log;
    struct fy_node *root = fy_document_root(draft->yaml->document);
    static const char *const below[][2] = {{"radius_mm", "ring"},     {"rings", "ring"},
                                           {"ring_pitch_mm", "ring"}, {"first_angle_deg", "ring"},
                                           {"crystals", "module"},    {"pitch_mm", "module"},
                                           {"face_mm", "module"},     {"depth_mm", "module"},
                                           {"layers", "module"},      {"field_of_view_mm", "coincidence"},
                                           {"resolution_ps", "tof"},  {NULL, NULL}};
    draft->yaml->below = below;
    const struct lr_yaml_mapping mapping = {root, root, "a scanner"};
    LR_TRY(lr_yaml_read_fields(draft->yaml, &mapping, fields, NUM_FIELDS(fields)));
    LR_TRY(lr_yaml_material_read(draft->yaml, &material, mu_key, &draft->params.crystal_mu_per_mm));
    lr_coincidence *rules = &draft->params.coincidence;
    const struct lr_yaml_field rule_fields[] = {
        {"field_of_view_mm", NULL, LR_YAML_POSITIVE, false, &rules->field_of_view_mm, NULL},
        {"min_module_difference", NULL, LR_YAML_INDEX, false, &rules->min_module_difference, &draft->module_difference},
        {"max_ring_difference", NULL, LR_YAML_INDEX, false, &rules->max_ring_difference, &draft->ring_difference},
    };
    if (draft->coincidence.key != NULL) {
        const struct lr_yaml_mapping inner = {draft->coincidence.value, draft->coincidence.key, "a coincidence"};
        LR_TRY(lr_yaml_read_fields(draft->yaml, &inner, rule_fields, NUM_FIELDS(rule_fields)));
        rules->limits_ring_difference = draft->ring_difference != NULL;
    }
    const struct lr_yaml_field resolution = {
        "resolution_ps", NULL, LR_YAML_POSITIVE, true, &draft->params.tof_resolution_ps, NULL};
    if (draft->tof.key != NULL) {
        const struct lr_yaml_mapping inner = {draft->tof.value, draft->tof.key, "a tof"};
        LR_TRY(lr_yaml_read_fields(draft->yaml, &inner, &resolution, 1));
    }
    LR_TRY(append_texts(draft, "source", &draft->source));
    LR_TRY(append_texts(draft, "unverified", &draft->unverified));

    const struct lr_yaml *yaml = draft->yaml;
    struct fy_node *ring = draft->ring.key, *module = draft->module.key;
    struct fy_node *modules = draft->modules.key;
    if (ring != NULL && modules != NULL) {
        return lr_yaml_error(yaml, modules, "both 'ring' (line %d) and 'modules' are given: keep one",
                             lr_yaml_line(ring));
    }
    if (modules != NULL && module != NULL) {
        return lr_yaml_error(yaml, module,
                             "'module' describes the panels of a 'ring'; modules in the list "
                             "'modules' carry their own sizes: remove it");
    }
    if (modules != NULL) return read_modules(draft);
    if (draft->positions != NULL) {
        return lr_yaml_error(yaml, draft->positions,
                             "'num_positions' goes with 'modules'; a 'ring' has its own: remove it");
    }
    if (ring == NULL)
        return lr_yaml_error(yaml, fy_document_root(yaml->document),
                             "a scanner needs either 'ring' with 'module', or 'modules'");
    if (module == NULL) return lr_yaml_error(yaml, ring, "a 'ring' needs a 'module' that describes its panels");
    return read_ring(draft);
}

/* Returns the key that a sentence names first: ring_pitch_mm, or 'modules' in quotes, as all keys of one plain word are
 * written. If the sentence names no key, returns the listed module that it speaks of ("module 5"), or else the node
 * `otherwise`. */
static struct fy_node *find_spot(const struct draft *draft, const char *sentence, struct fy_node *otherwise)
{
    struct fy_node *at = otherwise, *item = NULL;
    int module = -1;
    for (const char *word = strstr(sentence, "module"); word != NULL && module < 0; word = strstr(word + 1, "module"))
        if (sscanf(word, "module%*[s ]%d", &module) != 1) module = -1;
    void *iterator = NULL;
    while (draft->modules.key != NULL && module >= 0 &&
           (item = fy_node_sequence_iterate(draft->modules.value, &iterator)) != NULL) {
        struct fy_node *layers = fy_node_mapping_lookup_value_by_simple_key(item, "layers", 6);
        module -= layers != NULL ? fy_node_sequence_item_count(layers) : 1; /* a module of the scanner for each layer */
    }
    if (item != NULL) at = item;

    struct fy_node *maps[] = {fy_document_root(draft->yaml->document),
                              draft->ring.value,
                              draft->module.value,
                              item,
                              draft->coincidence.value,
                              draft->tof.value};
    const char *first = NULL;
    for (size_t k = 0; k < sizeof(maps) / sizeof(maps[0]); k++) {
        struct fy_node_pair *pair, *layers = NULL;
        if (maps[k] != NULL) layers = fy_node_mapping_lookup_pair_by_simple_key(maps[k], "layers", 6);
        iterator = NULL;
        while (maps[k] != NULL && (pair = fy_node_mapping_iterate(maps[k], &iterator)) != NULL) {
            size_t length = 0;
            const char *text = fy_node_get_scalar(fy_node_pair_key(pair), &length);
            char name[32] = "";
            if (text == NULL || length + 2 >= sizeof(name)) continue;
            const char *quote = memchr(text, '_', length) != NULL ? "" : "'";
            snprintf(name, sizeof(name), "%s%.*s%s", quote, (int)length, text, quote);
            const char *found = strstr(sentence, name);
            while (found != NULL && found > sentence && (isalpha((unsigned char)found[-1]) || found[-1] == '_'))
                found = strstr(found + 1, name); /* pitch_mm in ring_pitch_mm */
            if (found == NULL || (first != NULL && found >= first)) continue;
            first = found;
            at = fy_node_pair_key(pair);
            /* Layers may have such a length of their own. */
            struct fy_node *list = layers != NULL ? fy_node_pair_value(layers) : NULL, *layer;
            void *along = NULL;
            while (list != NULL && (layer = fy_node_sequence_iterate(list, &along)) != NULL)
                if (fy_node_mapping_lookup_value_by_simple_key(layer, text, length) != NULL)
                    at = fy_node_pair_key(layers);
        }
    }
    return at;
}

/* Passes on a message about the geometry, with the place of what it speaks of. */
static void write_placed(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const struct draft *draft = user;
    struct fy_node *form = draft->ring.key != NULL ? draft->ring.key : draft->modules.key;
    lr_yaml_say(draft->yaml, find_spot(draft, sentence, form), level, status, sentence);
}

/* Reads runs of crystals, given by their first and last numbers. */
static lr_status read_castor_order(const struct draft *draft, lr_scanner *scanner)
{
    const struct lr_yaml *yaml = draft->yaml;
    struct fy_node *list = draft->castor.value, *item;
    void *iterator = NULL;
    int count = 0, ends[2], num_ends = 0;
    const struct lr_yaml_field field = {"castor_order", NULL, LR_YAML_INDEX, true, ends, NULL};
    const struct lr_yaml_field last = {"castor_order", NULL, LR_YAML_INDEX, true, ends + 1, NULL};
    if (list == NULL || !fy_node_is_sequence(list)) {
        return lr_yaml_error(yaml, draft->castor.key,
                             "'castor_order' must be a list of crystal numbers, the first and the last of each run");
    }
    int *order = lr_alloc(scanner->num_crystals, sizeof(*order), "crystal numbers", yaml->log);
    lr_status status = order != NULL ? LR_OK : LR_FAILED;
    while (status == LR_OK && (item = fy_node_sequence_iterate(list, &iterator)) != NULL) {
        status = lr_yaml_read_value(yaml, num_ends == 0 ? &field : &last, item, draft->castor.key);
        num_ends = (num_ends + 1) % 2;
        if (num_ends != 0 || status != LR_OK) continue;
        const int step = ends[1] < ends[0] ? -1 : 1;
        for (int c = ends[0]; c != ends[1] + step && count <= scanner->num_crystals; c += step) {
            if (count < scanner->num_crystals) order[count] = c;
            count++;
        }
    }
    if (status != LR_OK) {
        free(order);
        return status;
    }
    if (count != scanner->num_crystals || num_ends != 0) {
        free(order);
        status = LR_BAD_INPUT;
    } else {
        status = lr_castor_order_keep(scanner, order, yaml->log);
    }
    return status != LR_BAD_INPUT ? status
                                  : lr_yaml_error(yaml, draft->castor.key,
                                                  "'castor_order' must name each of the %d crystals once, by the "
                                                  "first and the last number of each run",
                                                  scanner->num_crystals);
}

static void finish(struct draft *draft, struct lr_yaml *yaml)
{
    lr_yaml_crystals_finish(&draft->panel);
    lr_yaml_layers_finish(&draft->layers);
    lr_free_all(draft->list, draft->name, draft->text.chars);
    lr_yaml_destroy(yaml);
}

lr_scanner *lr_scanner_parse(struct lr_yaml *yaml)
{
    struct draft draft = {.yaml = yaml};
    lr_scanner *scanner = NULL;
    if (yaml == NULL || read_draft(&draft) != LR_OK) goto done;
    const lr_log placed = {write_placed, &draft};
    draft.params.name = draft.name;
    draft.params.source = draft.text.chars;
    draft.params.log = &placed;

    /* The renderers need the same number of modules at each position. */
    const int places = draft.params.num_positions, count = draft.params.num_modules;
    if (draft.positions != NULL) {
        int *found = NULL;
        if (places <= count) {
            found = lr_alloc(places, sizeof(*found), "places", yaml->log);
            if (found == NULL) goto done;
        }
        bool even = found != NULL && count % places == 0;
        for (int m = 0; m < count && even; m++) {
            const int place = draft.list[m].position;
            even = place < places && ++found[place] <= count / places;
        }
        free(found);
        if (!even) {
            (void)lr_yaml_error(yaml, draft.positions,
                                "%d modules do not stand evenly at places 0 to %d: give as many at "
                                "each place, or leave 'num_positions' and 'position' out",
                                count, places - 1);
            goto done;
        }
    }

    scanner = draft.ring.key != NULL ? lr_scanner_create_ring(&draft.params, &draft.description)
                                     : lr_scanner_create(&draft.params);
    if (scanner != NULL && draft.castor.key != NULL && read_castor_order(&draft, scanner) != LR_OK) {
        lr_scanner_destroy(scanner);
        scanner = NULL;
    }
done:
    finish(&draft, yaml);
    return scanner;
}

lr_scanner_draft *lr_scanner_draft_parse(struct lr_yaml *yaml)
{
    struct draft draft = {.yaml = yaml};
    lr_scanner_draft *result = NULL;
    if (yaml == NULL || read_draft(&draft) != LR_OK) goto done;
    if (draft.ring.key != NULL) {
        const lr_log placed = {write_placed, &draft};
        draft.list = lr_ring_expand(draft.name ? draft.name : "unnamed scanner", &draft.description,
                                    &draft.params.num_modules, &placed);
        draft.params.num_positions = draft.description.modules;
    }
    if (draft.list != NULL) result = lr_alloc(1, sizeof(*result), "a scanner", yaml->log);
    if (result == NULL) goto done;
    result->params = draft.params;
    result->params.name = draft.name;
    result->params.source = draft.text.chars;
    result->params.modules = draft.list;
    result->axial_length_mm = draft.axial_length_mm;
    result->lists_modules = draft.ring.key == NULL;
    draft.name = draft.text.chars = NULL; /* now owned by the result */
    draft.list = NULL;
done:
    finish(&draft, yaml);
    return result;
}

lr_status lr_scanner_yaml_locate(struct lr_yaml *yaml, lr_diagnosis *diagnosis)
{
    struct draft draft = {.yaml = yaml};
    lr_status status = read_draft(&draft);
    for (int k = 0; k < diagnosis->num_suspects && status == LR_OK; k++) {
        lr_finding *finding = &diagnosis->findings[k];
        char words[2048], excerpt[LR_YAML_EXCERPT];
        int place[2];
        snprintf(words, sizeof(words), "%s: %s", finding->remedy, finding->sentence);
        /* A suspicion about coincidences that names no key is about the grid, which is not in the file. */
        struct fy_node *otherwise = finding->kind == LR_FINDING_COINCIDENCE ? NULL
                                    : draft.ring.key != NULL                ? draft.ring.key
                                                                            : draft.modules.key;
        lr_yaml_show(yaml, find_spot(&draft, words, otherwise), place, excerpt);
        finding->line = place[0];
        finding->column = place[1];
        free(finding->excerpt);
        finding->excerpt = lr_copy_string(excerpt, yaml->log);
        if (finding->excerpt == NULL) status = LR_FAILED;
    }
    finish(&draft, yaml);
    return status;
}

lr_scanner *lr_scanner_read_file(const char *path, const lr_log *log)
{
    return lr_scanner_parse(lr_yaml_read(path, log));
}

/* Writes scanners as YAML: as a ring if possible, else as a list of modules. Reading the YAML gives an identical
 * scanner. */

/* Writes a line with the number, unless it is zero. */
static void put_number(struct lr_output *output, const char *key, double value)
{
    char text[32];
    if (value != 0) lr_yaml_put(output, "%s: %s\n", key, lr_yaml_number(text, value));
}

/* --- forms --- */

static void put_crystals(struct lr_output *output, const lr_ring *ring, const int *const blocks[2])
{
    lr_yaml_put(output, "crystals: [");
    for (int axis = 0; axis < 2; axis++) {
        const int count = ring->blocks[axis];
        lr_yaml_put(output, "%s%s", axis ? ", " : "", count > 1 ? "[" : "");
        for (int b = 0; b < count; b++) lr_yaml_put(output, "%s%d", b ? ", " : "", blocks[axis][b]);
        lr_yaml_put(output, count > 1 ? "]" : "");
    }
    lr_yaml_put(output, "]");
}

static lr_status put_modules(struct lr_output *output, const lr_scanner *scanner, const lr_log *log)
{
    struct lr_ring_form form;
    bool found;
    char text[32];
    LR_TRY(lr_ring_form_find(scanner, &form, &found, log));
    if (!found) {
        if (scanner->num_positions > 0) lr_yaml_put(output, "num_positions: %d\n", scanner->num_positions);
        lr_yaml_put(output, "modules:\n");
        for (const lr_module *module = scanner->modules; module < scanner->modules + scanner->num_modules; module++) {
            lr_yaml_put_numbers(output, "  - {center_mm", module->centre_mm, 3);
            lr_yaml_put_numbers(output, ", u", module->u, 3);
            lr_yaml_put_numbers(output, ", v", module->v, 3);
            lr_yaml_put(output, ",\n     crystals: [%d, %d], ", module->crystals[0], module->crystals[1]);
            lr_yaml_put_numbers(output, "pitch_mm", module->pitch_mm, 2);
            lr_yaml_put_numbers(output, ", face_mm", module->face_mm, 2);
            lr_yaml_put(output, ", depth_mm: %s", lr_yaml_number(text, module->depth_mm));
            if (module->mu_per_mm > 0)
                lr_yaml_put(output, ", crystal_mu_per_mm: %s", lr_yaml_number(text, module->mu_per_mm));
            if (scanner->num_positions > 0) {
                lr_yaml_put(output, ",\n     position: %d, ring: %d, first_crystal_ring: %d", module->position,
                            module->ring, module->first_crystal_ring);
            }
            if (module->layer > 0 || module->block > 0)
                lr_yaml_put(output, ",\n     layer: %d, block: %d", module->layer, module->block);
            lr_yaml_put(output, "}\n");
        }
        return LR_OK;
    }

    const lr_ring *ring = &form.ring;
    lr_yaml_put(output, "ring:\n  radius_mm: %s\n", lr_yaml_number(text, ring->radius_mm));
    lr_yaml_put(output, "  modules: %d\n", ring->modules);
    lr_yaml_put(output, "  first_angle_deg: %s\n", lr_yaml_number(text, ring->first_angle_deg));
    lr_yaml_put(output, "  rings: %d\n", ring->rings);
    if (ring->rings > 1) lr_yaml_put(output, "  ring_pitch_mm: %s\n", lr_yaml_number(text, ring->ring_pitch_mm));
    lr_yaml_put(output, "module:\n  ");
    put_crystals(output, ring, ring->block_crystals);
    lr_yaml_put(output, "\n");
    lr_yaml_put_numbers(output, "  pitch_mm", ring->pitch_mm, 2);
    lr_yaml_put_numbers(output, "\n  face_mm", ring->face_mm, 2);
    if (ring->blocks[0] * ring->blocks[1] > 1) lr_yaml_put_numbers(output, "\n  block_gap_mm", ring->block_gap_mm, 2);
    lr_yaml_put(output, "\n  depth_mm: %s\n", lr_yaml_number(text, ring->depth_mm));

    lr_yaml_put(output, ring->num_layers > 0 ? "  layers:\n" : "");
    for (int k = 0; k < ring->num_layers; k++) {
        const lr_layer *layer = &ring->layers[k], *before = layer - 1;
        lr_yaml_put(output, "    - {depth_mm: %s", lr_yaml_number(text, layer->depth_mm));
        if (k > 0 && layer->front_mm != before->front_mm + before->depth_mm)
            lr_yaml_put(output, ", front_mm: %s", lr_yaml_number(text, layer->front_mm));
        /* A layer with the same blocks as its panel does not list them. */
        bool same = true;
        for (int axis = 0; axis < 2; axis++)
            for (int b = 0; b < ring->blocks[axis]; b++)
                same = same && layer->block_crystals[axis][b] == ring->block_crystals[axis][b];
        if (!same) {
            lr_yaml_put(output, ", ");
            put_crystals(output, ring, layer->block_crystals);
        }
        if (layer->pitch_mm[0] != ring->pitch_mm[0] || layer->pitch_mm[1] != ring->pitch_mm[1])
            lr_yaml_put_numbers(output, ", pitch_mm", layer->pitch_mm, 2);
        if (layer->face_mm[0] != ring->face_mm[0] || layer->face_mm[1] != ring->face_mm[1])
            lr_yaml_put_numbers(output, ", face_mm", layer->face_mm, 2);
        if (layer->offset_mm[0] != 0 || layer->offset_mm[1] != 0)
            lr_yaml_put_numbers(output, ", offset_mm", layer->offset_mm, 2);
        if (layer->mu_per_mm > 0)
            lr_yaml_put(output, ", crystal_mu_per_mm: %s", lr_yaml_number(text, layer->mu_per_mm));
        lr_yaml_put(output, "}\n");
    }
    lr_ring_form_finish(&form);
    return LR_OK;
}

/* --- the rest --- */

/* Writes the lines that begin with "unverified: " (marked), or all other lines. */
static void put_lines(struct lr_output *output, const char *source, bool marked)
{
    static const char mark[] = "unverified: ";
    bool begun = false;
    while (source != NULL) {
        const size_t length = strcspn(source, "\n");
        if ((strncmp(source, mark, sizeof(mark) - 1) == 0) == marked) {
            const size_t skipped = marked ? sizeof(mark) - 1 : 0;
            lr_yaml_put(output, "%s  - ", begun ? "" : marked ? "unverified:\n" : "source:\n");
            lr_yaml_put_text(output, source + skipped, length - skipped);
            begun = true;
        }
        source = source[length] == '\0' ? NULL : source + length + 1;
    }
}

lr_status lr_scanner_yaml_write(const char *path, const lr_scanner *scanner, const lr_log *log)
{
    struct lr_output output;
    LR_TRY(lr_output_open(&output, path, log));
    lr_yaml_put(&output, "# Written by LORaster %s. Right-handed frame, z along the scanner's axis.\n", lr_version());
    lr_yaml_put(&output, "name: ");
    lr_yaml_put_text(&output, scanner->name, strlen(scanner->name));
    if (put_modules(&output, scanner, log) != LR_OK) {
        lr_output_abandon(&output);
        return LR_FAILED;
    }
    const lr_coincidence *rules = &scanner->coincidence;
    if (rules->field_of_view_mm != 0 || rules->min_module_difference != 0 || rules->limits_ring_difference) {
        lr_yaml_put(&output, "coincidence:\n");
        put_number(&output, "  field_of_view_mm", rules->field_of_view_mm);
        if (rules->min_module_difference > 0)
            lr_yaml_put(&output, "  min_module_difference: %d\n", rules->min_module_difference);
        if (rules->limits_ring_difference)
            lr_yaml_put(&output, "  max_ring_difference: %d\n", rules->max_ring_difference);
    }
    put_number(&output, "detection_depth_mm", scanner->detection_depth_mm);
    put_number(&output, "crystal_mu_per_mm", scanner->crystal_mu_per_mm);
    if (scanner->tof_resolution_ps > 0) {
        lr_yaml_put(&output, "tof:\n");
        put_number(&output, "  resolution_ps", scanner->tof_resolution_ps);
    }
    put_lines(&output, scanner->source, false);
    put_lines(&output, scanner->source, true);
    /* Writes runs of ascending or descending crystal numbers, each by its first and last number. */
    const int *order = scanner->castor_order, count = scanner->num_crystals;
    int runs = 0;
    for (int first = 0, last; order != NULL && first < count; first = last + 1, runs++) {
        last = first;
        const int step = first + 1 < count && order[first + 1] < order[first] ? -1 : 1;
        while (last + 1 < count && order[last + 1] == order[last] + step) last++;
        lr_yaml_put(&output, "%s%d, %d",
                    runs == 0       ? "castor_order: ["
                    : runs % 8 == 0 ? ",\n  "
                                    : ", ",
                    order[first], order[last]);
    }
    lr_yaml_put(&output, runs > 0 ? "]\n" : "");

    return lr_output_finish(&output);
}
