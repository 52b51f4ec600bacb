/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystals of CASToR's scanner files, found in a scanner by their places. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/keyed_text.h"
#include "io/scanners/castor_order.h"
#include "io/scanners/crystal_map.h"
#include "io/scanners/scanner_formats.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Largest distance of a crystal list from the modules that it becomes. */
static const double reach_mm = 0.1;

enum { ROW_BYTES = 24, MAX_CRYSTALS = 10000000 };

/* Centres of crystals by CASToR's numbers, in our frame. */
struct listed {
    const char *path;
    const lr_scanner *scanner; /* the scanner in which they are looked for */
    const lr_log *log;
    double (*places_mm)[3]; /* owned [count] */
    int count;
};

static lr_status take_places(struct listed *listed, int count)
{
    listed->count = count;
    listed->places_mm = lr_alloc(count, sizeof(*listed->places_mm), "crystal places", listed->log);
    return listed->places_mm != NULL ? LR_OK : LR_FAILED;
}

static lr_status read_table(struct listed *listed)
{
    int64_t count = 0;
    char *bytes = lr_file_bytes(listed->path, (int64_t)MAX_CRYSTALS * ROW_BYTES, &count, listed->log);
    if (bytes == NULL) return LR_BAD_INPUT;
    lr_status status = LR_OK;
    if (count == 0 || count % ROW_BYTES != 0) {
        status = lr_error(listed->log, LR_BAD_INPUT,
                          "%s: has %lld bytes, and a crystal of a CASToR look-up table %d: it is "
                          "truncated, or no such table",
                          listed->path, (long long)count, ROW_BYTES);
    }
    status = status == LR_OK ? take_places(listed, (int)(count / ROW_BYTES)) : status;
    for (int n = 0; status == LR_OK && n < 3 * listed->count; n++) {
        const int c = n / 3, k = n % 3;
        const unsigned char *at = (const unsigned char *)bytes + (int64_t)c * ROW_BYTES + 4 * k;
        const uint32_t word = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        float value;
        memcpy(&value, &word, 4);
        listed->places_mm[c][k] = k == 0 ? -(double)value : (double)value;
    }
    free(bytes);
    return status;
}

static lr_status read_geometry(struct listed *listed)
{
    lr_scanner *scanner = lr_geom_read(listed->path, listed->log);
    int *order =
        scanner == NULL ? NULL : lr_alloc(scanner->num_crystals, sizeof(*order), "crystal numbers", listed->log);
    lr_status status = scanner == NULL ? LR_BAD_INPUT : order == NULL ? LR_FAILED : LR_OK;
    status = status == LR_OK ? take_places(listed, scanner->num_crystals) : status;
    status = status == LR_OK ? lr_castor_order(scanner, order, listed->log) : status;
    for (int c = 0; status == LR_OK && c < listed->count; c++)
        lr_scanner_crystal_centre(scanner, order[c], listed->places_mm[c]);
    free(order);
    lr_scanner_destroy(scanner);
    return status;
}

static lr_status judge(const struct listed *listed, const struct lr_centre_index *index, int first, int lost)
{
    if (lost == 0) return LR_OK;
    const double *place_mm = listed->places_mm[first];
    const bool all = lost == listed->count;
    lr_log_write(listed->log, all ? LR_LOG_ERROR : LR_LOG_WARNING, all ? LR_BAD_INPUT : LR_OK,
                 "%s: %d of its %d crystals are none of %s's, first the one at (%g, %g, %g) mm in "
                 "our frame, from which the nearest is %.4g mm away: %s",
                 listed->path, lost, listed->count, listed->scanner->name, place_mm[0], place_mm[1], place_mm[2],
                 lr_centre_index_distance(index, place_mm),
                 all ? "it is another scanner's" : "their events are left out");
    return all ? LR_BAD_INPUT : LR_OK;
}

static lr_status match(const struct listed *listed, const struct lr_centre_index *index, int *order)
{
    int lost = 0, first = -1;
    for (int k = 0; k < listed->count; k++) {
        const double *place_mm = listed->places_mm[k];
        const bool finite = isfinite(place_mm[0]) && isfinite(place_mm[1]) && isfinite(place_mm[2]);
        order[k] = finite ? lr_centre_index_find(index, place_mm, reach_mm) : -1;
        first = order[k] < 0 && lost == 0 ? k : first;
        lost += order[k] < 0;
    }
    return judge(listed, index, first, lost);
}

lr_status lr_castor_file_match(const char *path, const lr_scanner *scanner, int **order, int *count, const lr_log *log)
{
    struct listed listed = {.path = path, .scanner = scanner, .log = log};
    struct lr_centre_index index = {0};
    *order = NULL;
    lr_status status = lr_path_ends(path, ".geom") ? read_geometry(&listed) : read_table(&listed);
    if (status == LR_OK) {
        *order = lr_alloc(listed.count, sizeof(**order), "crystal numbers", log);
        status = *order != NULL ? lr_centre_index_init(&index, scanner, log) : LR_FAILED;
    }
    if (status == LR_OK) {
        status = match(&listed, &index, *order);
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
