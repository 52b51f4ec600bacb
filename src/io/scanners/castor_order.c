/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/scanners/castor_order.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/vec.h"
#include "model/scanner/scanner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place {
    int crystal, layer, ring, position;
    double across_mm;
};

static int compare(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    const double one[] = {left->layer, left->ring, left->position, left->across_mm, left->crystal};
    const double other[] = {right->layer, right->ring, right->position, right->across_mm, right->crystal};
    return lr_order_lists(one, other, sizeof(one) / sizeof(one[0]));
}

/* Computes the order of the files that this program writes. */
static lr_status order_of_places(const lr_scanner *scanner, int *order, const lr_log *log)
{
    const int count = scanner->num_crystals;
    struct place *places = lr_alloc(count, sizeof(*places), "places of crystals", log);
    if (places == NULL) return LR_FAILED;
    /* Scanners without places keep their order within each layer. */
    const bool has_places = scanner->num_positions > 0;
    int crystal = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        for (int q = 0; q < module->crystals[1]; q++) {
            for (int p = 0; p < module->crystals[0]; p++, crystal++) {
                double centre_mm[3];
                lr_module_crystal_centre(module, p, q, centre_mm);
                places[crystal] = (struct place){.crystal = crystal, .layer = module->layer};
                if (has_places) {
                    places[crystal].ring = module->first_crystal_ring + q;
                    places[crystal].position = module->position;
                    places[crystal].across_mm = vec_dot(module->u, centre_mm);
                }
            }
        }
    }

    if (scanner->num_positions > 0 || lr_scanner_num_layers(scanner) > 1)
        qsort(places, (size_t)count, sizeof(*places), compare);
    for (int k = 0; k < count; k++) order[k] = places[k].crystal;
    free(places);
    return LR_OK;
}

lr_status lr_castor_order(const lr_scanner *scanner, int *order, const lr_log *log)
{
    if (scanner->castor_order == NULL) return order_of_places(scanner, order, log);
    memcpy(order, scanner->castor_order, (size_t)scanner->num_crystals * sizeof(*order));
    return LR_OK;
}

lr_status lr_castor_order_keep(lr_scanner *scanner, int *order, const lr_log *log)
{
    const int count = scanner->num_crystals;
    int *usual = order != NULL ? lr_alloc(count, sizeof(*usual), "crystal numbers", log) : NULL;
    lr_status status = order == NULL || usual != NULL ? LR_OK : LR_FAILED;
    if (usual != NULL) {
        memset(usual, 0, (size_t)count * sizeof(*usual));
        for (int k = 0; k < count && status == LR_OK; k++) {
            const int crystal = order[k];
            status = crystal >= 0 && crystal < count && usual[crystal]++ == 0 ? LR_OK : LR_BAD_INPUT;
        }
        status = status == LR_OK ? order_of_places(scanner, usual, log) : status;
    }
    if (status == LR_OK && order != NULL && memcmp(usual, order, (size_t)count * sizeof(*order)) != 0) {
        scanner->castor_order = order;
        order = NULL;
    }
    lr_free_all(usual, order);
    return status;
}

/* "; " separates the properties. There is no "and" before the last property, because this function does not know which
   property is the last. */
static void add_lost(char lost[512], const char *format, double value)
{
    const size_t used = strlen(lost);
    const size_t comma = used > 0 ? 2 : 0;
    snprintf(lost + used, 512 - used, "%s", used > 0 ? "; " : "");
    snprintf(lost + used + comma, 512 - used - comma, format, value);
}

void lr_castor_tell_lost(const char *path, const lr_scanner *scanner, bool keeps_places, const lr_log *log)
{
    const lr_coincidence *rules = &scanner->coincidence;
    char lost[512] = "";
    if (rules->min_module_difference > 0 && !keeps_places) {
        add_lost(lost, "min_module_difference %g, as its modules have no places around a ring",
                 rules->min_module_difference);
    }
    if (rules->field_of_view_mm > 0) {
        add_lost(lost, "field_of_view_mm %g as a rule of coincidence (it is that of images there)",
                 rules->field_of_view_mm);
    }
    if (rules->limits_ring_difference) add_lost(lost, "max_ring_difference %g", rules->max_ring_difference);
    if (scanner->tof_resolution_ps > 0) add_lost(lost, "tof_resolution_ps %g", scanner->tof_resolution_ps);
    if (scanner->crystal_mu_per_mm > 0) add_lost(lost, "crystal_mu_per_mm %g", scanner->crystal_mu_per_mm);
    if (lost[0] != '\0')
        lr_warn(log, "%s: CASToR's format has no place for %s: keep the scanner as YAML too", path, lost);
}

lr_status lr_castor_detection_depth(const struct lr_keyed_text *text, const double *depths_mm, int layers,
                                    double *detection_depth_mm)
{
    static const struct lr_keyed_number number = {"mean depth of interaction", -1e9, 1e4, false, false};
    double least = INFINITY, most_said = -1;
    for (int k = 0; k < layers; k++) {
        double said = -1;
        LR_TRY(lr_keyed_text_number(text, &number, k, &said));
        least = fmin(least, said >= 0 ? said : 0.5 * depths_mm[k]);
        most_said = fmax(most_said, said);
    }
    if (most_said > least + 1e-6) {
        lr_warn(text->log,
                "%s: hits are read %.6g mm behind the front faces of all layers, where the file "
                "has up to %.6g mm for some of them",
                text->path, least, most_said);
    }
    *detection_depth_mm = least;
    return LR_OK;
}

void lr_castor_put(const struct lr_castor_header *header, const char *key, const double *values, int count)
{
    char text[1024];
    int length = snprintf(text, sizeof(text), "%-*s:", header->width, key);
    for (int k = 0; k < count; k++)
        length += snprintf(text + length, sizeof(text) - (size_t)length, "%s%.9g", k > 0 ? "," : " ", values[k]);
    lr_output_write(header->output, text, (size_t)length);
    lr_output_write(header->output, "\n", 1);
}

void lr_castor_put_number(const struct lr_castor_header *header, const char *key, double value)
{
    lr_castor_put(header, key, &value, 1);
}

lr_status lr_castor_text_read(struct lr_keyed_text *text, const char *path, const char *what,
                              const struct lr_known_keys *keys, const lr_log *log)
{
    static const char last_key[] = "field of view axial";
    const struct lr_keyed_dialect dialect = {":", '#', what, false};
    LR_TRY(lr_keyed_text_read(text, path, &dialect, log));
    LR_TRY(lr_keyed_text_judge(text, keys));
    if (lr_keyed_text_find(text, last_key) == NULL)
        lr_warn(log, "%s: has no '%s', which such files end with: if it was cut off, copy it again", path, last_key);
    return LR_OK;
}
