/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The events of a PETSIRD file: time blocks, in them lists of coincidences for each pair of module
 * types. detectionBin = energy + energies * (element + elements * module); the position of
 * tofIdx's bin is c/2 (t1 - t2) in mm, negative where the first crystal was hit first
 * (model/DetectorInformation.yml, model/ScannerInformation.yml, helpers/petsird_helpers.h). */
#include "base/log.h"
#include "base/mem.h"
#include "io/events/event_stream.h"
#include "io/events/petsird.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct lr_petsird petsird;
    const lr_events_source *source;
    struct lr_event_stream *stream;
    int32_t *crystal_of; /* owned [num_crystals] the scanner's number, -1 = it has none */
    lr_event_counts *counts;
    struct lr_event_times times;
    int64_t other_blocks, moves, singles;
    uint32_t start_ms;
    int types[2];
    bool is_delayed, has_mask;
    bool is_repeat;  /* the lists being read stand in the file twice */
    uint64_t digest; /* of the row of lists being read */
    int64_t bins[2], tof;
    char first_unknown[96], first_excluded[96];
};

/* --- crystals --- */

/* Without a scanner crystals keep the file's numbers. */
static lr_status number_crystals(struct reader *reader)
{
    const int64_t count = reader->petsird.num_crystals;
    reader->crystal_of =
        lr_alloc(count, sizeof(*reader->crystal_of), "numbers of crystals", reader->petsird.log);
    if (reader->crystal_of == NULL) {
        return LR_FAILED;
    }
    if (reader->source->scanner == NULL) {
        for (int64_t k = 0; k < count; k++) {
            reader->crystal_of[k] = (int32_t)k;
        }
        return LR_OK;
    }
    return lr_petsird_match(&reader->petsird, reader->source->scanner, reader->crystal_of);
}

/* --- one event --- */

static void count_unknown(struct reader *reader, const struct lr_petsird_type *type, int64_t bin)
{
    if (reader->counts->unknown_crystals++ == 0) {
        snprintf(reader->first_unknown, sizeof(reader->first_unknown),
                 "detection bin %lld of module type %d at %u ms", (long long)bin,
                 (int)(type - reader->petsird.types), (unsigned)reader->start_ms);
    }
}

/* Crystal of a detection bin; -1 = unknown, not counted yet. */
static int32_t crystal_of_bin(const struct reader *reader, int type, int64_t bin)
{
    const struct lr_petsird_type *found = &reader->petsird.types[type];
    const int64_t number = bin / found->num_energies;
    const bool known = bin >= 0 && number < found->num_elements * found->num_modules;
    return known ? reader->crystal_of[found->first_crystal + number] : -1;
}

/* At most one bin is none, and none has other bins than the first. */
static lr_status place_of_bin(struct reader *reader, float *tof_mm)
{
    double sign;
    const struct lr_petsird_pair *pair = lr_petsird_tof(&reader->petsird, reader->types, &sign);
    const int bins = pair->num_edges > 1 ? pair->num_edges - 1 : 1;
    *tof_mm = 0;
    if (reader->tof < 0 || reader->tof >= bins) {
        return lr_yardl_error(reader->petsird.input,
                              "an event of module types %d and %d has time-of-flight bin %lld of "
                              "%d: the file is damaged",
                              reader->types[0], reader->types[1], (long long)reader->tof, bins);
    }
    if (bins > 1) {
        const float *edges = &pair->edges_mm[reader->tof];
        *tof_mm = (float)(sign * 0.5 * ((double)edges[0] + edges[1]));
    }
    return LR_OK;
}

/* Whether the file's own table puts the event's modules out of coincidence. */
static void check_mask(struct reader *reader)
{
    int64_t modules[2];
    for (int k = 0; k < 2; k++) {
        const struct lr_petsird_type *type = &reader->petsird.types[reader->types[k]];
        modules[k] = reader->bins[k] / type->num_energies / type->num_elements;
    }
    if (!lr_petsird_allows(&reader->petsird, reader->types, modules) &&
        reader->counts->excluded_pairs++ == 0) {
        snprintf(reader->first_excluded, sizeof(reader->first_excluded),
                 "module %lld of type %d with module %lld of type %d", (long long)modules[0],
                 reader->types[0], (long long)modules[1], reader->types[1]);
    }
}

static void digest(struct reader *reader, int64_t number)
{
    reader->digest = (reader->digest ^ (uint64_t)number) * UINT64_C(0x100000001b3);
    reader->digest ^= reader->digest >> 29;
}

static lr_status take_event(struct reader *reader)
{
    lr_event event = {.weight = 1, .time_ms = reader->start_ms, .is_delayed = reader->is_delayed};
    digest(reader, reader->bins[0]);
    digest(reader, reader->bins[1]);
    digest(reader, reader->tof);
    if (reader->is_repeat) {
        reader->counts->repeated++;
        return LR_OK;
    }
    *(reader->is_delayed ? &reader->counts->delayeds : &reader->counts->prompts) += 1;
    LR_TRY(place_of_bin(reader, &event.tof_mm));
    for (int k = 0; k < 2; k++) {
        event.crystals[k] = crystal_of_bin(reader, reader->types[k], reader->bins[k]);
        if (event.crystals[k] < 0) {
            count_unknown(reader, &reader->petsird.types[reader->types[k]], reader->bins[k]);
            return LR_OK;
        }
    }
    if (reader->has_mask) {
        check_mask(reader);
    }
    return lr_event_stream_add(reader->stream, &event);
}

static lr_status take_bins(void *user, struct lr_yardl_input *input,
                           const struct lr_yardl_type *type)
{
    struct reader *reader = user;
    struct lr_yardl_list list;
    LR_TRY(lr_yardl_list(input, type, &list));
    if (list.count != 2) {
        return lr_yardl_error(input, "a coincidence has %lld ends", (long long)list.count);
    }
    LR_TRY(lr_yardl_integer(input, list.item, &reader->bins[0]));
    return lr_yardl_integer(input, list.item, &reader->bins[1]);
}

static lr_status take_tof(void *user, struct lr_yardl_input *input,
                          const struct lr_yardl_type *type)
{
    return lr_yardl_integer(input, type, &((struct reader *)user)->tof);
}

/* --- time blocks --- */

static lr_status take_events(struct reader *reader, struct lr_yardl_input *input,
                             const struct lr_yardl_list *list)
{
    static const struct lr_yardl_field fields[] = {
        {"detectionBins", true, take_bins}, {"tofIdx", false, take_tof}, {0}};
    reader->tof = 0;
    for (int64_t k = 0; k < list->count; k++) {
        LR_TRY(lr_yardl_record(input, list->item, fields, reader));
        LR_TRY(take_event(reader));
    }
    return LR_OK;
}

/* The module type of a row of lists. Where there are more rows than types, each stands there as often
 * as it has entries, or the last one again: PETSIRD's Python generator adds a row with every entry
 * that it fills. */
static int type_of_row(int64_t row, int64_t rows, int num_types)
{
    const int64_t n = num_types;
    if (rows == n * n) {
        return (int)(row / n);
    }
    if (rows == n * (n + 1) / 2) {
        int64_t type = 0;
        while ((type + 1) * (type + 2) / 2 <= row) {
            type++;
        }
        return (int)type;
    }
    return (int)(row < n ? row : n - 1);
}

static lr_status take_row(struct reader *reader, struct lr_yardl_input *input,
                          const struct lr_yardl_type *type, int row)
{
    struct lr_yardl_list columns, list;
    const int num_types = reader->petsird.num_types;
    LR_TRY(lr_yardl_list(input, type, &columns));
    digest(reader, columns.count);
    for (int64_t j = 0; j < columns.count; j++) {
        LR_TRY(lr_yardl_list(input, columns.item, &list));
        digest(reader, list.count);
        if (j >= num_types && list.count > 0) {
            return lr_yardl_error(input,
                                  "%lld events of module types %d and %lld, and there are %d types",
                                  (long long)list.count, row, (long long)j, num_types);
        }
        reader->types[0] = row;
        reader->types[1] = (int)j;
        LR_TRY(take_events(reader, input, &list));
    }
    return LR_OK;
}

/* Lists [type1][type2]. */
static lr_status take_lists(struct reader *reader, struct lr_yardl_input *input,
                            const struct lr_yardl_type *type)
{
    struct lr_yardl_list rows;
    uint64_t before = 0;
    int row = -1;
    LR_TRY(lr_yardl_list(input, type, &rows));
    for (int64_t i = 0; i < rows.count; i++) {
        const int of = rows.count > reader->petsird.num_types
                           ? type_of_row(i, rows.count, reader->petsird.num_types)
                           : (int)i;
        reader->is_repeat = of == row;
        reader->digest = 0;
        LR_TRY(take_row(reader, input, rows.item, of));
        if (reader->is_repeat && reader->digest != before) {
            return lr_yardl_error(input,
                                  "%lld rows of event lists for %d types of modules, of which row "
                                  "%lld repeats none: which types it is of is not known",
                                  (long long)rows.count, reader->petsird.num_types, (long long)i);
        }
        before = reader->digest;
        row = of;
    }
    return LR_OK;
}

static lr_status take_prompts(void *user, struct lr_yardl_input *input,
                              const struct lr_yardl_type *type)
{
    struct reader *reader = user;
    reader->is_delayed = false;
    return take_lists(reader, input, type);
}

static lr_status take_delayeds(void *user, struct lr_yardl_input *input,
                               const struct lr_yardl_type *type)
{
    struct reader *reader = user;
    reader->is_delayed = true;
    return take_lists(reader, input, type);
}

static lr_status take_start(void *user, struct lr_yardl_input *input,
                            const struct lr_yardl_type *type)
{
    struct reader *reader = user;
    int64_t value;
    LR_TRY(lr_yardl_integer(input, type, &value));
    reader->start_ms = value > UINT32_MAX ? UINT32_MAX : value < 0 ? 0 : (uint32_t)value;
    lr_event_times_add(&reader->times, reader->start_ms);
    return LR_OK;
}

static lr_status take_stop(void *user, struct lr_yardl_input *input,
                           const struct lr_yardl_type *type)
{
    struct reader *reader = user;
    int64_t value;
    LR_TRY(lr_yardl_integer(input, type, &value));
    lr_event_times_add(&reader->times, value > UINT32_MAX ? UINT32_MAX : (uint64_t)value);
    return LR_OK;
}

static lr_status take_interval(void *user, struct lr_yardl_input *input,
                               const struct lr_yardl_type *type)
{
    static const struct lr_yardl_field fields[] = {
        {"start", true, take_start}, {"stop", false, take_stop}, {0}};
    return lr_yardl_record(input, type, fields, user);
}

static lr_status count_singles(void *user, struct lr_yardl_input *input,
                               const struct lr_yardl_type *type)
{
    struct reader *reader = user;
    struct lr_yardl_list list, singles;
    LR_TRY(lr_yardl_list(input, type, &list));
    for (int64_t k = 0; k < list.count; k++) {
        LR_TRY(lr_yardl_list(input, list.item, &singles));
        reader->singles += singles.count;
        for (int64_t m = 0; m < singles.count; m++) {
            LR_TRY(lr_yardl_skip(input, singles.item));
        }
    }
    return LR_OK;
}

static lr_status take_block(struct reader *reader, const struct lr_yardl_type *type)
{
    static const struct lr_yardl_field fields[] = {{"timeInterval", true, take_interval},
                                                   {"singleEvents", false, count_singles},
                                                   {"promptEvents", true, take_prompts},
                                                   {"delayedEvents", false, take_delayeds},
                                                   {0}};
    struct lr_yardl_part part;
    LR_TRY(lr_yardl_case(reader->petsird.input, type, &part));
    if (part.type == NULL) {
        return LR_OK;
    }
    if (strcmp(part.name, "EventTimeBlock") == 0 || part.name[0] == '\0') {
        reader->counts->time_marks++;
        return lr_yardl_record(reader->petsird.input, part.type, fields, reader);
    }
    reader->other_blocks++;
    reader->moves += strstr(part.name, "Movement") != NULL;
    return lr_yardl_skip(reader->petsird.input, part.type);
}

static lr_status take_blocks(struct reader *reader)
{
    struct lr_yardl_input *input = reader->petsird.input;
    struct lr_yardl_list list;
    do {
        LR_TRY(lr_yardl_list(input, reader->petsird.blocks, &list));
        for (int64_t k = 0; k < list.count; k++) {
            LR_TRY(take_block(reader, list.item));
        }
    } while (list.count > 0);
    return lr_yardl_left(input) == 0
               ? LR_OK
               : lr_yardl_error(input,
                                "%lld bytes follow after the last time block: the file is "
                                "damaged",
                                (long long)lr_yardl_left(input));
}

/* --- what is known --- */

static lr_status fill_info(const struct reader *reader, lr_events_info *info)
{
    const struct lr_petsird *petsird = &reader->petsird;
    const lr_scanner *scanner = reader->source->scanner;
    snprintf(info->version, sizeof(info->version), "%s", petsird->version);
    snprintf(info->scanner, sizeof(info->scanner), "%s", petsird->name);
    LR_TRY(lr_petsird_fill_info(petsird, info));
    return lr_petsird_has_kinds(petsird)
               ? lr_petsird_fill_kinds(
                     petsird, reader->crystal_of,
                     scanner != NULL ? scanner->num_crystals : (int)petsird->num_crystals, info)
               : LR_OK;
}

static bool is_one(const struct lr_petsird_range *range)
{
    return range->count == 0 || (range->low == 1 && range->high == 1);
}

/* Before the events: what of the header has no place in the model. */
static void warn_header(const struct lr_petsird *petsird)
{
    const struct lr_petsird_range *bins = &petsird->bin_efficiencies;
    const struct lr_petsird_range *pairs = &petsird->pair_efficiencies;
    if (!is_one(bins)) {
        lr_warn(petsird->log,
                "%s: efficiencies of detection bins (%lld numbers, %g to %g) are passed over: give "
                "them with --efficiencies",
                petsird->path, (long long)bins->count, bins->low, bins->high);
    }
    if (!is_one(pairs)) {
        lr_warn(petsird->log,
                "%s: efficiencies of crystal pairs (%lld numbers, %g to %g) are passed over",
                petsird->path, (long long)pairs->count, pairs->low, pairs->high);
    }
    for (int t = 0; t < petsird->num_types; t++) {
        if (petsird->types[t].num_energies > 1) {
            lr_warn(petsird->log,
                    "%s: module type %d has %lld energy bins: events of all are taken",
                    petsird->path, t, (long long)petsird->types[t].num_energies);
        }
    }
    if (petsird->odd_resolutions) {
        lr_warn(petsird->log,
                "%s: its table of time resolutions has more entries than pairs of module types, so "
                "that they are not known",
                petsird->path);
    }
    if (petsird->has_gantry_alignment) {
        lr_warn(petsird->log,
                "%s: has an alignment of the gantry, which is passed over: images are in the "
                "scanner's coordinates",
                petsird->path);
    }
}

static void warn_events(const struct reader *reader)
{
    const struct lr_petsird *petsird = &reader->petsird;
    const lr_event_counts *counts = reader->counts;
    if (counts->repeated > 0) {
        lr_warn(petsird->log,
                "%s: rows of its event lists stand there more than once: %lld repeated events are "
                "left out",
                petsird->path, (long long)counts->repeated);
    }
    if (counts->excluded_pairs > 0) {
        lr_warn(petsird->log,
                "%s: %lld of its %lld events are of pairs of modules that its own table puts out "
                "of coincidence, first %s",
                petsird->path, (long long)counts->excluded_pairs,
                (long long)(counts->prompts + counts->delayeds), reader->first_excluded);
    }
}

static void warn_blocks(const struct reader *reader)
{
    const struct lr_petsird *petsird = &reader->petsird;
    if (reader->moves > 0) {
        lr_warn(petsird->log,
                "%s: tells %lld times of movements of bed or gantry, which are "
                "passed over",
                petsird->path, (long long)reader->moves);
    }
    if (reader->other_blocks > reader->moves) {
        lr_info(petsird->log, "%s: %lld time blocks without events passed over", petsird->path,
                (long long)(reader->other_blocks - reader->moves));
    }
    if (reader->singles > 0) {
        lr_info(petsird->log, "%s: %lld single events passed over", petsird->path,
                (long long)reader->singles);
    }
}

static lr_status read_all(struct reader *reader)
{
    LR_TRY(lr_petsird_open(&reader->petsird, reader->source->path, reader->source->log));
    const bool is_asked = reader->stream->sink != NULL;
    if (is_asked || lr_petsird_has_kinds(&reader->petsird)) {
        LR_TRY(number_crystals(reader));
    }
    LR_TRY(fill_info(reader, reader->stream->info));
    if (!is_asked) {
        return LR_OK;
    }
    warn_header(&reader->petsird);
    reader->has_mask = lr_petsird_has_mask(&reader->petsird);
    LR_TRY(take_blocks(reader));
    LR_TRY(lr_event_stream_flush(reader->stream));
    warn_events(reader);
    warn_blocks(reader);
    return lr_events_judge_unknown(reader->source, reader->counts, reader->first_unknown);
}

lr_status lr_petsird_events(const lr_events_source *source, struct lr_event_stream *stream)
{
    struct reader reader = {.source = source, .stream = stream, .counts = &stream->info->counts};
    const lr_status status = read_all(&reader);
    stream->info->duration_s = 1e-3 * (double)(reader.times.last_ms - reader.times.first_ms);
    free(reader.crystal_of);
    lr_petsird_close(&reader.petsird);
    return status;
}
