/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanners as YAML that reads back identical: the ring form where there is one, else a list. */
#include "base/log.h"
#include "io/files/output.h"
#include "io/files/yaml.h"
#include "io/scanners/scanner_formats.h"
#include "model/scanner/scanner_ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A line of its own, unless it is zero. */
static void put_number(struct lr_output *output, const char *key, double value)
{
    char text[32];
    if (value != 0) lr_yaml_put(output, "%s: %s\n", key, lr_yaml_number(text, value));
}

/* --- forms --- */

static void put_blocks(struct lr_output *output, const int *crystals, int count)
{
    lr_yaml_put(output, count > 1 ? "[" : "");
    for (int b = 0; b < count; b++) lr_yaml_put(output, "%s%d", b ? ", " : "", crystals[b]);
    lr_yaml_put(output, count > 1 ? "]" : "");
}

static void put_crystals(struct lr_output *output, const lr_ring *ring, const int *const blocks[2])
{
    lr_yaml_put(output, "crystals: [");
    put_blocks(output, blocks[0], ring->blocks[0]);
    lr_yaml_put(output, ", ");
    put_blocks(output, blocks[1], ring->blocks[1]);
    lr_yaml_put(output, "]");
}

/* Whether a layer has the blocks of its panel. */
static bool has_same_blocks(const lr_ring *ring, const lr_layer *layer)
{
    bool same = true;
    for (int axis = 0; axis < 2; axis++)
        for (int b = 0; b < ring->blocks[axis]; b++)
            same = same && layer->block_crystals[axis][b] == ring->block_crystals[axis][b];
    return same;
}

static void put_layer(struct lr_output *output, const lr_ring *ring, int index)
{
    char text[32];
    const lr_layer *layer = &ring->layers[index], *before = layer - 1;
    lr_yaml_put(output, "    - {depth_mm: %s", lr_yaml_number(text, layer->depth_mm));
    if (index > 0 && layer->front_mm != before->front_mm + before->depth_mm)
        lr_yaml_put(output, ", front_mm: %s", lr_yaml_number(text, layer->front_mm));
    if (!has_same_blocks(ring, layer)) {
        lr_yaml_put(output, ", ");
        put_crystals(output, ring, layer->block_crystals);
    }
    if (layer->pitch_mm[0] != ring->pitch_mm[0] || layer->pitch_mm[1] != ring->pitch_mm[1])
        lr_yaml_put_numbers(output, ", pitch_mm", layer->pitch_mm, 2);
    if (layer->face_mm[0] != ring->face_mm[0] || layer->face_mm[1] != ring->face_mm[1])
        lr_yaml_put_numbers(output, ", face_mm", layer->face_mm, 2);
    if (layer->offset_mm[0] != 0 || layer->offset_mm[1] != 0)
        lr_yaml_put_numbers(output, ", offset_mm", layer->offset_mm, 2);
    if (layer->mu_per_mm > 0) lr_yaml_put(output, ", crystal_mu_per_mm: %s", lr_yaml_number(text, layer->mu_per_mm));
    lr_yaml_put(output, "}\n");
}

static void put_ring(struct lr_output *output, const lr_ring *ring)
{
    char text[32];
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
    for (int k = 0; k < ring->num_layers; k++) put_layer(output, ring, k);
}

static void put_module(struct lr_output *output, const lr_module *module, bool in_ring)
{
    char text[32];
    lr_yaml_put_numbers(output, "  - {center_mm", module->centre_mm, 3);
    lr_yaml_put_numbers(output, ", u", module->u, 3);
    lr_yaml_put_numbers(output, ", v", module->v, 3);
    lr_yaml_put(output, ",\n     crystals: [%d, %d], ", module->crystals[0], module->crystals[1]);
    lr_yaml_put_numbers(output, "pitch_mm", module->pitch_mm, 2);
    lr_yaml_put_numbers(output, ", face_mm", module->face_mm, 2);
    lr_yaml_put(output, ", depth_mm: %s", lr_yaml_number(text, module->depth_mm));
    if (module->mu_per_mm > 0) lr_yaml_put(output, ", crystal_mu_per_mm: %s", lr_yaml_number(text, module->mu_per_mm));
    if (in_ring) {
        lr_yaml_put(output, ",\n     position: %d, ring: %d, first_crystal_ring: %d", module->position, module->ring,
                    module->first_crystal_ring);
    }
    if (module->layer > 0 || module->block > 0)
        lr_yaml_put(output, ",\n     layer: %d, block: %d", module->layer, module->block);
    lr_yaml_put(output, "}\n");
}

static lr_status put_modules(struct lr_output *output, const lr_scanner *scanner, const lr_log *log)
{
    struct lr_ring_form form;
    bool found;
    LR_TRY(lr_ring_form_find(scanner, &form, &found, log));
    if (found) {
        put_ring(output, &form.ring);
        lr_ring_form_finish(&form);
        return LR_OK;
    }
    if (scanner->num_positions > 0) lr_yaml_put(output, "num_positions: %d\n", scanner->num_positions);
    lr_yaml_put(output, "modules:\n");
    for (int m = 0; m < scanner->num_modules; m++) put_module(output, &scanner->modules[m], scanner->num_positions > 0);
    return LR_OK;
}

/* --- the rest --- */

static void put_rules(struct lr_output *output, const lr_coincidence *rules)
{
    if (rules->field_of_view_mm == 0 && rules->min_module_difference == 0 && !rules->limits_ring_difference) return;
    lr_yaml_put(output, "coincidence:\n");
    put_number(output, "  field_of_view_mm", rules->field_of_view_mm);
    if (rules->min_module_difference > 0)
        lr_yaml_put(output, "  min_module_difference: %d\n", rules->min_module_difference);
    if (rules->limits_ring_difference) lr_yaml_put(output, "  max_ring_difference: %d\n", rules->max_ring_difference);
}

/* Lines that begin with "unverified: ", or all others. */
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

/* Runs of crystals that follow each other, up or down: the first and the last of each. */
static void put_castor_order(struct lr_output *output, const lr_scanner *scanner)
{
    const int *order = scanner->castor_order, count = scanner->num_crystals;
    int runs = 0;
    for (int first = 0, last; order != NULL && first < count; first = last + 1, runs++) {
        last = first;
        const int step = first + 1 < count && order[first + 1] < order[first] ? -1 : 1;
        while (last + 1 < count && order[last + 1] == order[last] + step) last++;
        lr_yaml_put(output, "%s%d, %d",
                    runs == 0       ? "castor_order: ["
                    : runs % 8 == 0 ? ",\n  "
                                    : ", ",
                    order[first], order[last]);
    }
    lr_yaml_put(output, runs > 0 ? "]\n" : "");
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
    put_rules(&output, &scanner->coincidence);
    put_number(&output, "detection_depth_mm", scanner->detection_depth_mm);
    put_number(&output, "crystal_mu_per_mm", scanner->crystal_mu_per_mm);
    if (scanner->tof_resolution_ps > 0) {
        lr_yaml_put(&output, "tof:\n");
        put_number(&output, "  resolution_ps", scanner->tof_resolution_ps);
    }
    put_lines(&output, scanner->source, false);
    put_lines(&output, scanner->source, true);
    put_castor_order(&output, scanner);
    return lr_output_finish(&output);
}
