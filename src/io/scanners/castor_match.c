/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Finds crystals of CASToR's scanner files in a scanner, by their positions. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/keyed_text.h"
#include "io/files/number_type.h"
#include "io/scanners/castor_order.h"
#include "io/scanners/crystal_map.h"
#include "io/scanners/scanner_formats.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Largest distance between a crystal of a list and the same crystal in the modules made from the list. */
static const double reach_mm = 0.1;

enum { ROW_BYTES = 24, MAX_CRYSTALS = 10000000 };

/* Centres of crystals, by CASToR's numbers, in our frame. */
struct listed {
    const char *path;

    const lr_log *log;
    double (*places_mm)[3]; /* owned [count] */
    int count;
};

/* Reads the positions of crystals from a .geom file or a table. */
static lr_status read_places(struct listed *listed)
{
    const bool is_geometry = lr_path_ends(listed->path, ".geom");
    lr_scanner *scanner = is_geometry ? lr_geom_read(listed->path, listed->log) : NULL;
    int64_t num_bytes = 0;
    char *bytes =
        is_geometry ? NULL : lr_file_bytes(listed->path, (int64_t)MAX_CRYSTALS * ROW_BYTES, &num_bytes, listed->log);
    int *order = NULL;
    lr_status status = scanner != NULL || bytes != NULL ? LR_OK : LR_BAD_INPUT;
    if (status == LR_OK && !is_geometry && (num_bytes == 0 || num_bytes % ROW_BYTES != 0)) {
        status = lr_error(listed->log, LR_BAD_INPUT,
                          "%s: has %lld bytes, and a crystal of a CASToR look-up table %d: it is "
                          "truncated, or no such table",
                          listed->path, (long long)num_bytes, ROW_BYTES);
    }
    if (status == LR_OK && is_geometry) {
        order = lr_alloc(scanner->num_crystals, sizeof(*order), "crystal numbers", listed->log);
        status = order != NULL ? LR_OK : LR_FAILED;
    }
    if (status == LR_OK) {
        listed->count = is_geometry ? scanner->num_crystals : (int)(num_bytes / ROW_BYTES);
        listed->places_mm = lr_alloc(listed->count, sizeof(*listed->places_mm), "crystal places", listed->log);
        status = listed->places_mm != NULL ? LR_OK : LR_FAILED;
    }
    if (status == LR_OK && is_geometry) status = lr_castor_order(scanner, order, listed->log);

    for (int c = 0; status == LR_OK && c < listed->count; c++) {
        if (is_geometry) {
            lr_scanner_crystal_centre(scanner, order[c], listed->places_mm[c]);
            continue;
        }
        for (int k = 0; k < 3; k++) {
            const float value = lr_float_at((const unsigned char *)bytes + (int64_t)c * ROW_BYTES + 4 * k);
            listed->places_mm[c][k] = k == 0 ? -(double)value : (double)value;
        }
    }
    free(bytes);
    free(order);
    lr_scanner_destroy(scanner);
    return status;
}

lr_status lr_castor_file_match(const char *path, const lr_scanner *scanner, int **order, int *count, const lr_log *log)
{
    struct listed listed = {.path = path, .log = log};
    struct lr_centre_index index = {0};
    *order = NULL;
    lr_status status = read_places(&listed);
    if (status == LR_OK) {
        *order = lr_alloc(listed.count, sizeof(**order), "crystal numbers", log);
        status = *order != NULL ? lr_centre_index_init(&index, scanner, log) : LR_FAILED;
    }
    if (status == LR_OK) {
        int lost = 0, first = -1;
        for (int k = 0; k < listed.count; k++) {
            const double *place_mm = listed.places_mm[k];
            const bool finite = isfinite(place_mm[0]) && isfinite(place_mm[1]) && isfinite(place_mm[2]);
            (*order)[k] = finite ? lr_centre_index_find(&index, place_mm, reach_mm) : -1;
            first = (*order)[k] < 0 && lost == 0 ? k : first;
            lost += (*order)[k] < 0;
        }
        if (lost > 0) {
            const double *place_mm = listed.places_mm[first];
            const bool all = lost == listed.count;
            status = all ? LR_BAD_INPUT : LR_OK;
            lr_log_write(log, all ? LR_LOG_ERROR : LR_LOG_WARNING, status,
                         "%s: %d of its %d crystals are none of %s's, first the one at (%g, %g, %g) mm in "
                         "our frame, from which the nearest is %.4g mm away: %s",
                         path, lost, listed.count, scanner->name, place_mm[0], place_mm[1], place_mm[2],
                         lr_centre_index_distance(&index, place_mm),
                         all ? "it is another scanner's" : "their events are left out");
        }
        lr_centre_index_finish(&index);
    }
    if (status != LR_OK) {
        free(*order);
        *order = NULL;
    }
    *count = listed.count;
    free(listed.places_mm);
    return status;
}
