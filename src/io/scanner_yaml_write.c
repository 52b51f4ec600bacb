/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanners as YAML that reads back identical: the ring form where there is one, else a list. */
#include "base/log.h"
#include "io/output.h"
#include "io/scanner_formats.h"
#include "model/scanner_ring.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Failures stay in the output until it is finished. */
static void put(struct lr_output *output, const char *format, ...) LR_PRINTF(2, 3);

static void put(struct lr_output *output, const char *format, ...)
{
    char text[512];
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (length > 0) {
        lr_output_write(output, text, (size_t)length);
    }
}

/* The shortest decimal that is read back as the same number; zero has no sign. */
static const char *number(char text[32], double value)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value == 0 ? 0.0 : value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    return text;
}

static void put_numbers(struct lr_output *output, const char *key, const double *values, int count)
{
    char text[32];
    put(output, "%s: [", key);
    for (int k = 0; k < count; k++) {
        put(output, "%s%s", k ? ", " : "", number(text, values[k]));
    }
    put(output, "]");
}

static void put_number(struct lr_output *output, const char *key, double value)
{
    char text[32];
    if (value != 0) {
        put(output, "%s: %s\n", key, number(text, value));
    }
}

/* A double-quoted YAML scalar. */
static void put_text(struct lr_output *output, const char *text, size_t length)
{
    put(output, "\"");
    for (size_t k = 0; k < length; k++) {
        const unsigned char c = (unsigned char)text[k];
        if (c == '"' || c == '\\') {
            put(output, "\\%c", c);
        } else if (c < 32 || c == 127) {
            put(output, "\\x%02x", c);
        } else {
            lr_output_write(output, &text[k], 1);
        }
    }
    put(output, "\"\n");
}

/* --- forms --- */

static void put_blocks(struct lr_output *output, const lr_ring *ring, int axis)
{
    put(output, ring->blocks[axis] > 1 ? "[" : "");
    for (int b = 0; b < ring->blocks[axis]; b++) {
        put(output, "%s%d", b ? ", " : "", ring->block_crystals[axis][b]);
    }
    put(output, ring->blocks[axis] > 1 ? "]" : "");
}

static void put_ring(struct lr_output *output, const lr_ring *ring)
{
    char text[32];
    put(output, "ring:\n  radius_mm: %s\n", number(text, ring->radius_mm));
    put(output, "  modules: %d\n", ring->modules);
    put(output, "  first_angle_deg: %s\n", number(text, ring->first_angle_deg));
    put(output, "  rings: %d\n", ring->rings);
    if (ring->rings > 1) {
        put(output, "  ring_pitch_mm: %s\n", number(text, ring->ring_pitch_mm));
    }
    put(output, "module:\n  crystals: [");
    put_blocks(output, ring, 0);
    put(output, ", ");
    put_blocks(output, ring, 1);
    put(output, "]\n");
    put_numbers(output, "  pitch_mm", ring->pitch_mm, 2);
    put_numbers(output, "\n  face_mm", ring->face_mm, 2);
    if (ring->blocks[0] * ring->blocks[1] > 1) {
        put_numbers(output, "\n  block_gap_mm", ring->block_gap_mm, 2);
    }
    put(output, "\n  depth_mm: %s\n", number(text, ring->depth_mm));
}

static void put_module(struct lr_output *output, const lr_module *module, bool in_ring)
{
    char text[32];
    put_numbers(output, "  - {center_mm", module->centre_mm, 3);
    put_numbers(output, ", u", module->u, 3);
    put_numbers(output, ", v", module->v, 3);
    put(output, ",\n     crystals: [%d, %d], ", module->crystals[0], module->crystals[1]);
    put_numbers(output, "pitch_mm", module->pitch_mm, 2);
    put_numbers(output, ", face_mm", module->face_mm, 2);
    put(output, ", depth_mm: %s", number(text, module->depth_mm));
    if (in_ring) {
        put(output, ",\n     position: %d, ring: %d, first_crystal_ring: %d", module->position,
            module->ring, module->first_crystal_ring);
    }
    put(output, "}\n");
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
    if (scanner->num_positions > 0) {
        put(output, "num_positions: %d\n", scanner->num_positions);
    }
    put(output, "modules:\n");
    for (int m = 0; m < scanner->num_modules; m++) {
        put_module(output, &scanner->modules[m], scanner->num_positions > 0);
    }
    return LR_OK;
}

/* --- the rest --- */

static void put_rules(struct lr_output *output, const lr_coincidence *rules)
{
    if (rules->field_of_view_mm == 0 && rules->min_module_difference == 0 &&
        !rules->limits_ring_difference) {
        return;
    }
    put(output, "coincidence:\n");
    put_number(output, "  field_of_view_mm", rules->field_of_view_mm);
    if (rules->min_module_difference > 0) {
        put(output, "  min_module_difference: %d\n", rules->min_module_difference);
    }
    if (rules->limits_ring_difference) {
        put(output, "  max_ring_difference: %d\n", rules->max_ring_difference);
    }
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
            put(output, "%s  - ", begun ? "" : marked ? "unverified:\n" : "source:\n");
            put_text(output, source + skipped, length - skipped);
            begun = true;
        }
        source = source[length] == '\0' ? NULL : source + length + 1;
    }
}

lr_status lr_scanner_yaml_write(const char *path, const lr_scanner *scanner, const lr_log *log)
{
    struct lr_output output;
    LR_TRY(lr_output_open(&output, path, log));
    put(&output, "# Written by LORaster %s. Right-handed frame, z along the scanner's axis.\n",
        lr_version());
    put(&output, "name: ");
    put_text(&output, scanner->name, strlen(scanner->name));
    if (put_modules(&output, scanner, log) != LR_OK) {
        lr_output_abandon(&output);
        return LR_FAILED;
    }
    put_rules(&output, &scanner->coincidence);
    put_number(&output, "detection_depth_mm", scanner->detection_depth_mm);
    put_number(&output, "crystal_mu_per_mm", scanner->crystal_mu_per_mm);
    if (scanner->tof_resolution_ps > 0) {
        put(&output, "tof:\n");
        put_number(&output, "  resolution_ps", scanner->tof_resolution_ps);
    }
    put_lines(&output, scanner->source, false);
    put_lines(&output, scanner->source, true);
    return lr_output_finish(&output);
}
