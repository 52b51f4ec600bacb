/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The events of a PETSIRD file: time blocks, in them lists of coincidences for each pair of module
 * types. detectionBin = energy + energies * (element + elements * module); the position of
 * tofIdx's bin is c/2 (t1 - t2) in mm, negative where the first crystal was hit first
 * (model/DetectorInformation.yml, model/ScannerInformation.yml, helpers/petsird_helpers.h). */
#include "base/log.h"
#include "base/mem.h"
#include "io/event_stream.h"
#include "io/light.h"
#include "io/petsird.h"

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
    bool is_delayed;
    int64_t bins[2], tof;
    char first_unknown[96];
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

/* The pair of types whose bins are given: [a][b], or [b][a], whose places are mirrored. */
static const struct lr_petsird_pair *tof_of(const struct reader *reader, double *sign)
{
    const int a = reader->types[0], b = reader->types[1], n = reader->petsird.num_types;
    const struct lr_petsird_pair *pair = &reader->petsird.pairs[a * n + b];
    *sign = pair->num_edges > 0 ? 1 : -1;
    return pair->num_edges > 0 ? pair : &reader->petsird.pairs[b * n + a];
}

/* One bin is none. */
static lr_status place_of_bin(struct reader *reader, float *tof_mm)
{
    double sign;
    const struct lr_petsird_pair *pair = tof_of(reader, &sign);
    *tof_mm = 0;
    if (pair->num_edges <= 2) {
        return LR_OK;
    }
    if (reader->tof < 0 || reader->tof >= pair->num_edges - 1) {
        return lr_yardl_error(reader->petsird.input,
                              "an event has time-of-flight bin %lld of %d: the file is damaged",
                              (long long)reader->tof, pair->num_edges - 1);
    }
    const float *edges = &pair->edges_mm[reader->tof];
    *tof_mm = (float)(sign * 0.5 * ((double)edges[0] + edges[1]));
    return LR_OK;
}

static lr_status take_event(struct reader *reader)
{
    lr_event event = {.weight = 1, .time_ms = reader->start_ms, .is_delayed = reader->is_delayed};
    *(reader->is_delayed ? &reader->counts->delayeds : &reader->counts->prompts) += 1;
    LR_TRY(place_of_bin(reader, &event.tof_mm));
    for (int k = 0; k < 2; k++) {
        event.crystals[k] = crystal_of_bin(reader, reader->types[k], reader->bins[k]);
        if (event.crystals[k] < 0) {
            count_unknown(reader, &reader->petsird.types[reader->types[k]], reader->bins[k]);
            return LR_OK;
        }
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
                             const struct lr_yardl_type *type)
{
    static const struct lr_yardl_field fields[] = {
        {"detectionBins", true, take_bins}, {"tofIdx", false, take_tof}, {0}};
    struct lr_yardl_list list;
    LR_TRY(lr_yardl_list(input, type, &list));
    reader->tof = 0;
    for (int64_t k = 0; k < list.count; k++) {
        LR_TRY(lr_yardl_record(input, list.item, fields, reader));
        LR_TRY(take_event(reader));
    }
    return LR_OK;
}

/* Lists [type1][type2]; rows beyond the types, which one writer repeats, are passed over. */
static lr_status take_lists(struct reader *reader, struct lr_yardl_input *input,
                            const struct lr_yardl_type *type)
{
    struct lr_yardl_list rows, columns;
    const int num_types = reader->petsird.num_types;
    LR_TRY(lr_yardl_list(input, type, &rows));
    for (int64_t i = 0; i < rows.count; i++) {
        LR_TRY(lr_yardl_list(input, rows.item, &columns));
        for (int64_t j = 0; j < columns.count; j++) {
            if (i >= num_types || j >= num_types) {
                LR_TRY(lr_yardl_skip(input, columns.item));
                continue;
            }
            reader->types[0] = (int)i;
            reader->types[1] = (int)j;
            LR_TRY(take_events(reader, input, columns.item));
        }
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
    const struct lr_petsird_pair *pair = &petsird->pairs[0];
    snprintf(info->version, sizeof(info->version), "%s", petsird->version);
    snprintf(info->scanner, sizeof(info->scanner), "%s", petsird->name);
    memcpy(info->energy_kev, petsird->types[0].energy_kev, sizeof(info->energy_kev));
    if (pair->num_edges <= 2) {
        return LR_OK;
    }
    info->tof_edges_mm =
        lr_alloc(pair->num_edges, sizeof(*info->tof_edges_mm), "edges", petsird->log);
    if (info->tof_edges_mm == NULL) {
        return LR_FAILED;
    }
    memcpy(info->tof_edges_mm, pair->edges_mm, (size_t)pair->num_edges * sizeof(*pair->edges_mm));
    info->has_tof = true;
    info->num_tof_bins = pair->num_edges - 1;
    info->tof_resolution_ps = pair->resolution_mm / LR_MM_PER_PS;
    return LR_OK;
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
    if (petsird->types[0].num_energies > 1) {
        lr_warn(petsird->log, "%s: has %lld energy bins: events of all are taken", petsird->path,
                (long long)petsird->types[0].num_energies);
    }
    if (petsird->has_gantry_alignment) {
        lr_warn(petsird->log,
                "%s: has an alignment of the gantry, which is passed over: images are in the "
                "scanner's coordinates",
                petsird->path);
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
    LR_TRY(fill_info(reader, reader->stream->info));
    if (reader->stream->sink == NULL) {
        return LR_OK;
    }
    warn_header(&reader->petsird);
    LR_TRY(number_crystals(reader));
    LR_TRY(take_blocks(reader));
    LR_TRY(lr_event_stream_flush(reader->stream));
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
