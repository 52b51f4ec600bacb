/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * PETSIRD files as events come: a time block for each millisecond that has any. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/events/events_writers.h"
#include "io/events/petsird_layout.h"
#include "io/files/keyed_text.h"
#include "io/files/yardl_write.h"
#include "io/scanners/scanner_formats.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WAITING = 1 << 18 };

/* An event of the block, as the file holds it. */
struct waiting {
    uint32_t key; /* (delayed, type a, type b): the list that it goes to */
    uint32_t bins[2], tof;
    uint32_t number; /* keeps the order within a list */
};

struct lr_petsird_writer {
    struct lr_output output;
    struct lr_petsird_layout layout;
    const char *path;
    const lr_log *log;
    struct waiting *waiting; /* owned [MOST_WAITING] */
    int count;
    uint32_t time_ms;
    int64_t beyond; /* times of flight outside all bins */
};

/* --- one event --- */

/* The bin that holds a place; the first or last one beyond them, which is counted. */
static uint32_t bin_of(struct lr_petsird_writer *writer, const struct lr_petsird_bins *bins, float tof_mm)
{
    int low = 0, high = bins->num_edges - 1;
    writer->beyond += tof_mm < bins->edges_mm[0] || tof_mm > bins->edges_mm[high];
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (tof_mm < bins->edges_mm[middle])
            high = middle;
        else
            low = middle;
    }
    return (uint32_t)low;
}

static uint32_t key_of(const struct lr_petsird_layout *layout, bool is_delayed, const int types[2])
{
    const uint32_t n = (uint32_t)layout->num_types;
    return ((is_delayed ? n : 0) + (uint32_t)types[0]) * n + (uint32_t)types[1];
}

static void name_crystals(const struct lr_petsird_layout *layout, const lr_event *event, int types[2],
                          struct waiting *out)
{
    const lr_scanner *scanner = layout->lors->scanner;
    for (int k = 0; k < 2; k++) {
        const int m = lr_scanner_module_of(scanner, event->crystals[k]);
        const int within = event->crystals[k] - scanner->first_crystal[m];
        const int64_t elements = scanner->first_crystal[m + 1] - scanner->first_crystal[m];
        types[k] = layout->type_of[m];
        out->bins[k] = (uint32_t)(layout->index_of[m] * elements + within);
    }
}

/* Bins of the source must be there for the event the other way round, too. */
static lr_status exchange(const struct lr_petsird_writer *writer, int types[2], struct waiting *out)
{
    const struct lr_petsird_layout *layout = &writer->layout;
    const uint32_t bin = out->bins[0];
    const int type = types[0];
    const struct lr_petsird_bins *bins = lr_petsird_layout_bins(layout, types[0], types[1]);
    if (bins->is_given && !bins->is_mirrored) {
        return lr_error(writer->log, LR_USAGE,
                        "%s: from version 0.10 on the crystal with the higher type and number comes first, "
                        "and the source's time-of-flight bins of that order are not those of this "
                        "one mirrored: write version 0.9, which keeps the order",
                        writer->path);
    }
    out->bins[0] = out->bins[1];
    out->bins[1] = bin;
    types[0] = types[1];
    types[1] = type;
    return LR_OK;
}

static lr_status convert(struct lr_petsird_writer *writer, const lr_event *event, struct waiting *out)
{
    const struct lr_petsird_layout *layout = &writer->layout;
    float tof_mm = event->tof_mm;
    int types[2];
    name_crystals(layout, event, types, out);
    const bool lower = types[0] < types[1] || (types[0] == types[1] && out->bins[0] < out->bins[1]);
    if (layout->minor >= 10 && lower) {
        LR_TRY(exchange(writer, types, out));
        tof_mm = -tof_mm;
    }
    const struct lr_petsird_bins *bins = lr_petsird_layout_bins(layout, types[0], types[1]);
    out->tof = bins->num_edges > 2 ? bin_of(writer, bins, tof_mm) : 0;
    out->key = key_of(layout, event->is_delayed, types);
    return LR_OK;
}

/* --- blocks --- */

static int compare(const void *a, const void *b)
{
    const struct waiting *left = a, *right = b;
    if (left->key != right->key) return left->key < right->key ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

/* The lists of prompts or of delayeds; *at moves on behind them. */
static void put_lists(struct lr_petsird_writer *writer, bool is_delayed, int *at)
{
    const struct lr_petsird_layout *layout = &writer->layout;
    struct lr_output *output = &writer->output;
    lr_yardl_put_unsigned(output, (uint64_t)layout->num_types);
    for (int a = 0; a < layout->num_types; a++) {
        const int columns = layout->minor < 10 ? layout->num_types : a + 1;
        lr_yardl_put_unsigned(output, (uint64_t)columns);
        for (int b = 0; b < columns; b++) {
            const uint32_t key = key_of(layout, is_delayed, (const int[2]){a, b});
            int end = *at;
            while (end < writer->count && writer->waiting[end].key == key) end++;
            lr_yardl_put_unsigned(output, (uint64_t)(end - *at));
            for (; *at < end; (*at)++) {
                const struct waiting *event = &writer->waiting[*at];
                lr_yardl_put_unsigned(output, event->bins[0]);
                lr_yardl_put_unsigned(output, event->bins[1]);
                lr_yardl_put_unsigned(output, event->tof);
            }
        }
    }
}

static lr_status put_block(struct lr_petsird_writer *writer)
{
    struct lr_output *output = &writer->output;
    int at = 0;
    if (writer->count == 0) return LR_OK;
    qsort(writer->waiting, (size_t)writer->count, sizeof(*writer->waiting), compare);
    lr_yardl_put_unsigned(output, 1); /* one item of the stream, */
    lr_yardl_put_unsigned(output, 0); /* an EventTimeBlock */
    lr_yardl_put_unsigned(output, writer->time_ms);
    lr_yardl_put_unsigned(output, (uint64_t)writer->time_ms + (writer->time_ms < UINT32_MAX));
    lr_yardl_put_unsigned(output, 0); /* singles */
    put_lists(writer, false, &at);
    put_lists(writer, true, &at);
    lr_yardl_put_unsigned(output, 0); /* triples */
    lr_yardl_put_unsigned(output, 0); /* quadruples */
    writer->count = 0;
    return output->error != 0 ? LR_FAILED : LR_OK;
}

static lr_status take_one(struct lr_petsird_writer *writer, const lr_event *event)
{
    int64_t repeats;
    LR_TRY(lr_event_repeats(event, writer->path, &repeats, writer->log));
    for (int64_t k = 0; k < repeats; k++) {
        if (writer->count == MOST_WAITING || event->time_ms != writer->time_ms) LR_TRY(put_block(writer));
        writer->time_ms = event->time_ms;
        struct waiting *waiting = &writer->waiting[writer->count];
        LR_TRY(convert(writer, event, waiting));
        waiting->number = (uint32_t)writer->count++;
    }
    return LR_OK;
}

lr_status lr_petsird_writer_take(void *user, const lr_event *events, int64_t count)
{
    for (int64_t k = 0; k < count; k++) LR_TRY(take_one(user, &events[k]));
    return LR_OK;
}

/* --- the file --- */

static void destroy(struct lr_petsird_writer *writer)
{
    lr_petsird_layout_finish(&writer->layout);
    free(writer->waiting);
    free(writer);
}

struct lr_petsird_writer *lr_petsird_writer_create(const lr_events_writer_params *params)
{
    const int minor = params->petsird_minor;
    if (minor != 0 && minor != 9 && minor != 10 && minor != 12) {
        lr_error(params->log, LR_USAGE,
                 "%s: PETSIRD is written by the schemas of versions 0.9.1, 0.10.0 and 0.12.0, not 0.%d", params->path,
                 params->petsird_minor);
        return NULL;
    }
    struct lr_petsird_writer *writer = lr_alloc(1, sizeof(*writer), "a writer", params->log);
    if (writer == NULL) return NULL;
    writer->path = params->path;
    writer->log = params->log;
    writer->waiting = lr_alloc(MOST_WAITING, sizeof(*writer->waiting), "events", params->log);
    if (writer->waiting == NULL || lr_petsird_layout_init(&writer->layout, params) != LR_OK ||
        lr_output_open(&writer->output, params->path, params->log) != LR_OK) {
        destroy(writer);
        return NULL;
    }
    lr_petsird_put_header(&writer->layout, &writer->output);
    return writer;
}

lr_status lr_petsird_writer_finish(struct lr_petsird_writer *writer)
{
    (void)put_block(writer);
    lr_yardl_put_unsigned(&writer->output, 0); /* the stream ends */
    if (writer->beyond > 0) {
        lr_warn(writer->log, "%s: %lld times of flight lie beyond the bins and went to the first or last one",
                writer->path, (long long)writer->beyond);
    }
    const lr_status status = lr_output_finish(&writer->output);
    destroy(writer);
    return status;
}

void lr_petsird_writer_abandon(struct lr_petsird_writer *writer)
{
    lr_output_abandon(&writer->output);
    destroy(writer);
}

/* --- a scanner alone --- */

lr_status lr_petsird_scanner_write(const char *path, const lr_scanner *scanner, const lr_log *log)
{
    lr_lors *lors = lr_lors_create(scanner, log);
    if (lors == NULL) return LR_FAILED;
    const lr_events_writer_params params = {.path = path, .lors = lors, .log = log};
    struct lr_petsird_writer *writer = lr_petsird_writer_create(&params);
    const lr_status status = writer != NULL ? lr_petsird_writer_finish(writer) : LR_FAILED;
    lr_lors_destroy(lors);
    return status;
}
