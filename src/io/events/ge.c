/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * GE's list mode as HDF5, as the public NEMA acquisition of a Discovery MI has it (LIST0000.BLF;
 * Zenodo 8404015): the dataset MiceList/TofCoinc holds five whole numbers an event: ring and place of
 * crystal a, ring and place of crystal b, and the time of flight in steps of 13.02 ps, positive where a
 * was hit first. What the numbers mean is known from public readers of that file, parallelproj's first
 * (docs/formats/events.md). */
#include "io/events/ge.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/events/event_stream.h"
#include "io/files/hdf5_input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define EVENTS "MiceList/TofCoinc"

enum { COLUMNS = 5, ROWS_PER_READ = 1 << 16 };

struct reader {
    const lr_events_source *source;
    struct lr_event_stream *stream;
    struct lr_hdf5_input in;
    struct lr_ge_crystals crystals;
    lr_event_counts counts;
    int64_t num_events, next;
    int32_t first_unknown[COLUMNS];
};

bool lr_ge_recognises(const struct lr_file_head *head)
{
    static const char group[] = "MiceList";
    return lr_head_is_hdf5(head) && (lr_path_ends(head->path, ".BLF") || lr_head_holds(head, group, sizeof(group) - 1));
}

/* --- what stands before the events --- */

lr_status lr_ge_crystals_init(struct lr_ge_crystals *crystals, const lr_scanner *scanner, const char *name,
                              const lr_log *log)
{
    const struct lr_sinogram_gaps none = {0, 0};
    LR_TRY(lr_sinogram_rings_create(&crystals->rings, scanner, &none, name, log));
    const struct lr_sinogram_rings *rings = &crystals->rings;
    const double place_deg = 360.0 / rings->around, module_deg = 360.0 / rings->modules;
    crystals->per_module = rings->around / rings->modules;
    const double middle_deg = rings->first_angle_deg + 0.5 * (crystals->per_module - 1) * place_deg;
    const int modules = (int)ceil((90.0 - middle_deg) / module_deg - 0.5 - 1e-6);
    return lr_sinogram_rings_turn(&crystals->rings, modules * crystals->per_module, log);
}

void lr_ge_crystals_finish(struct lr_ge_crystals *crystals)
{
    lr_sinogram_rings_finish(&crystals->rings);
}

static lr_status fill_info(struct reader *reader)
{
    lr_events_info *info = reader->stream->info;
    info->has_tof = true;
    info->num_tof_bins = LR_GE_BINS;
    info->tof_edges_mm =
        lr_alloc(LR_GE_BINS + 1, sizeof(*info->tof_edges_mm), "bins of time of flight", reader->source->log);
    if (info->tof_edges_mm == NULL) return LR_FAILED;
    for (int k = 0; k <= LR_GE_BINS; k++)
        info->tof_edges_mm[k] = (float)((k - 0.5 * LR_GE_BINS) * LR_GE_JOINED * lr_ge_step_mm);
    return LR_OK;
}

static lr_status check_shape(struct reader *reader)
{
    int64_t shape[2];
    LR_TRY(lr_hdf5_shape(&reader->in, EVENTS, true, shape, 2));
    if (shape[1] != COLUMNS) {
        return lr_error(reader->source->log, LR_BAD_INPUT,
                        "%s: an event of %s has %lld numbers, and not the %d that rings, places and "
                        "a time of flight take",
                        reader->source->path, EVENTS, (long long)shape[1], COLUMNS);
    }
    reader->num_events = shape[0];
    return lr_hdf5_need_stored(&reader->in, EVENTS, shape);
}

/* --- events --- */

static lr_status check_time(const struct reader *reader, int32_t steps)
{
    if (steps % LR_GE_JOINED == 0 && abs(steps) <= LR_GE_JOINED * (LR_GE_BINS / 2)) return LR_OK;
    return lr_error(reader->source->log, LR_BAD_INPUT,
                    "%s: event %lld has the time of flight %d, and not one of the %d multiples of %d "
                    "around 0 that such lists have: it is damaged, or of another scanner",
                    reader->source->path, (long long)reader->next, (int)steps, LR_GE_BINS, LR_GE_JOINED);
}

static lr_status take_event(struct reader *reader, const int32_t *numbers)
{
    const lr_event event = {
        .crystals = {lr_ge_crystal(&reader->crystals, numbers[0], numbers[1]),
                     lr_ge_crystal(&reader->crystals, numbers[2], numbers[3])},
        .tof_mm = (float)(-numbers[4] * lr_ge_step_mm),
        .weight = 1,
    };
    LR_TRY(check_time(reader, numbers[4]));
    reader->next++;
    reader->counts.prompts++;
    if (event.crystals[0] < 0 || event.crystals[1] < 0) {
        for (int k = 0; k < COLUMNS && reader->counts.unknown_crystals == 0; k++) reader->first_unknown[k] = numbers[k];
        reader->counts.unknown_crystals++;
        return LR_OK;
    }
    return lr_event_stream_add(reader->stream, &event);
}

static lr_status read_rows(struct reader *reader, int32_t *numbers)
{
    while (reader->next < reader->num_events) {
        const int64_t left = reader->num_events - reader->next;
        const struct lr_hdf5_rows rows = {reader->next, left < ROWS_PER_READ ? left : ROWS_PER_READ, COLUMNS};
        LR_TRY(lr_hdf5_get_rows(&reader->in, EVENTS, &rows, numbers));
        for (int64_t k = 0; k < rows.count; k++) LR_TRY(take_event(reader, numbers + COLUMNS * k));
    }
    return LR_OK;
}

static lr_status judge(const struct reader *reader)
{
    char first[96];
    const int32_t *is = reader->first_unknown;
    snprintf(first, sizeof(first), "rings %d and %d, places %d and %d", (int)is[0], (int)is[2], (int)is[1], (int)is[3]);
    return lr_events_judge_unknown(reader->source, &reader->counts, first);
}

static lr_status read_events(struct reader *reader)
{
    int32_t *numbers = lr_alloc(COLUMNS * ROWS_PER_READ, sizeof(*numbers), "events", reader->source->log);
    if (numbers == NULL) return LR_FAILED;
    const lr_status status = read_rows(reader, numbers);
    free(numbers);
    LR_TRY(status);
    LR_TRY(lr_event_stream_flush(reader->stream));
    return judge(reader);
}

static lr_status read_open(struct reader *reader)
{
    LR_TRY(check_shape(reader));
    LR_TRY(lr_ge_crystals_init(&reader->crystals, reader->source->scanner, reader->source->path, reader->source->log));
    LR_TRY(fill_info(reader));
    return reader->stream->sink != NULL ? read_events(reader) : LR_OK;
}

lr_status lr_ge_events(const lr_events_source *source, struct lr_event_stream *stream)
{
    struct reader reader = {.source = source, .stream = stream};
    LR_TRY(lr_events_need_scanner(source));
    LR_TRY(lr_hdf5_input_open(&reader.in, source->path, source->log));
    const lr_status status = read_open(&reader);
    stream->info->counts = reader.counts;
    lr_ge_crystals_finish(&reader.crystals);
    lr_hdf5_input_close(&reader.in);
    return status;
}
