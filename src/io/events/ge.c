/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * GE's list mode as HDF5, as the public NEMA acquisition of a Discovery MI has it (LIST0000.BLF;
 * Zenodo 8404015): the dataset MiceList/TofCoinc holds five whole numbers an event: ring and place of
 * crystal a, ring and place of crystal b, and the time of flight in steps of 13.02 ps, positive where a
 * was hit first. What the numbers mean is known from public readers of that file, parallelproj's first
 * (docs/formats/events.md). */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/events/event_stream.h"
#include "io/files/hdf5_input.h"
#include "io/lor_data/sinogram.h"

#include <stdio.h>
#include <stdlib.h>

#define EVENTS "MiceList/TofCoinc"

enum { COLUMNS = 5, ROWS_PER_READ = 1 << 16 };

/* Lists are written with 13 steps joined, 29 of these bins around the line's middle. */
enum { JOINED = 13, BINS = 29 };
static const double step_mm = 13.02 * 0.149896229;

struct reader {
    const lr_events_source *source;
    struct lr_event_stream *stream;
    struct lr_hdf5_input in;
    struct lr_sinogram_rings rings; /* without virtual places */
    int per_module;                 /* places */
    lr_event_counts counts;
    int64_t num_events, next;
    int32_t first_unknown[COLUMNS];
};

bool lr_ge_recognises(const struct lr_file_head *head)
{
    static const char group[] = "MiceList";
    return lr_head_is_hdf5(head) &&
           (lr_path_ends(head->path, ".BLF") || lr_head_holds(head, group, sizeof(group) - 1));
}

/* --- what stands before the events --- */

static lr_status number_crystals(struct reader *reader)
{
    const struct lr_sinogram_gaps none = {0, 0};
    LR_TRY(lr_sinogram_rings_create(&reader->rings, reader->source->scanner, &none,
                                    reader->source->path, reader->source->log));
    reader->per_module = reader->rings.around / reader->rings.modules;
    return LR_OK;
}

static lr_status fill_info(struct reader *reader)
{
    lr_events_info *info = reader->stream->info;
    info->has_tof = true;
    info->num_tof_bins = BINS;
    info->tof_edges_mm = lr_alloc(BINS + 1, sizeof(*info->tof_edges_mm), "bins of time of flight",
                                  reader->source->log);
    if (info->tof_edges_mm == NULL) {
        return LR_FAILED;
    }
    for (int k = 0; k <= BINS; k++) {
        info->tof_edges_mm[k] = (float)((k - 0.5 * BINS) * JOINED * step_mm);
    }
    return LR_OK;
}

static lr_status check_shape(struct reader *reader)
{
    int64_t shape[2];
    LR_TRY(lr_hdf5_shape(&reader->in, EVENTS, true, shape, 2));
    if (shape[1] != COLUMNS) {
        return lr_error(
            reader->source->log, LR_BAD_INPUT,
            "%s: an event of %s has %lld numbers, and not the %d that rings, places and "
            "a time of flight take",
            reader->source->path, EVENTS, (long long)shape[1], COLUMNS);
    }
    reader->num_events = shape[0];
    return LR_OK;
}

/* --- events --- */

/* GE's places begin with the module at the top and run clockwise, as seen against z; ours run the other
 * way round from the same module. */
static int32_t crystal_of(const struct reader *reader, int32_t ring, int32_t place)
{
    const struct lr_sinogram_rings *rings = &reader->rings;
    if (ring < 0 || ring >= rings->rings || place < 0 || place >= rings->around) {
        return -1;
    }
    const int ours = (reader->per_module - 1 - place + rings->around) % rings->around;
    return rings->crystals[(int64_t)(rings->rings - 1 - ring) * rings->around + ours];
}

static lr_status check_time(const struct reader *reader, int32_t steps)
{
    if (steps % JOINED == 0 && abs(steps) <= JOINED * (BINS / 2)) {
        return LR_OK;
    }
    return lr_error(
        reader->source->log, LR_BAD_INPUT,
        "%s: event %lld has the time of flight %d, and not one of the %d multiples of %d "
        "around 0 that such lists have: it is damaged, or of another scanner",
        reader->source->path, (long long)reader->next, (int)steps, BINS, JOINED);
}

static lr_status take_event(struct reader *reader, const int32_t *numbers)
{
    const lr_event event = {
        .crystals = {crystal_of(reader, numbers[0], numbers[1]),
                     crystal_of(reader, numbers[2], numbers[3])},
        .tof_mm = (float)(-numbers[4] * step_mm),
        .weight = 1,
    };
    LR_TRY(check_time(reader, numbers[4]));
    reader->next++;
    reader->counts.prompts++;
    if (event.crystals[0] < 0 || event.crystals[1] < 0) {
        for (int k = 0; k < COLUMNS && reader->counts.unknown_crystals == 0; k++) {
            reader->first_unknown[k] = numbers[k];
        }
        reader->counts.unknown_crystals++;
        return LR_OK;
    }
    return lr_event_stream_add(reader->stream, &event);
}

static lr_status read_rows(struct reader *reader, int32_t *numbers)
{
    while (reader->next < reader->num_events) {
        const int64_t left = reader->num_events - reader->next;
        const struct lr_hdf5_rows rows = {reader->next, left < ROWS_PER_READ ? left : ROWS_PER_READ,
                                          COLUMNS};
        LR_TRY(lr_hdf5_get_rows(&reader->in, EVENTS, &rows, numbers));
        for (int64_t k = 0; k < rows.count; k++) {
            LR_TRY(take_event(reader, numbers + COLUMNS * k));
        }
    }
    return LR_OK;
}

static lr_status judge(const struct reader *reader)
{
    char first[96];
    const int32_t *is = reader->first_unknown;
    snprintf(first, sizeof(first), "rings %d and %d, places %d and %d", (int)is[0], (int)is[2],
             (int)is[1], (int)is[3]);
    return lr_events_judge_unknown(reader->source, &reader->counts, first);
}

static lr_status read_events(struct reader *reader)
{
    int32_t *numbers =
        lr_alloc(COLUMNS * ROWS_PER_READ, sizeof(*numbers), "events", reader->source->log);
    if (numbers == NULL) {
        return LR_FAILED;
    }
    const lr_status status = read_rows(reader, numbers);
    free(numbers);
    LR_TRY(status);
    LR_TRY(lr_event_stream_flush(reader->stream));
    return judge(reader);
}

static lr_status read_open(struct reader *reader)
{
    LR_TRY(check_shape(reader));
    LR_TRY(number_crystals(reader));
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
    lr_sinogram_rings_finish(&reader.rings);
    lr_hdf5_input_close(&reader.in);
    return status;
}
