/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/events/event_stream.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/files/regular_file.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>

lr_status lr_event_stream_flush(struct lr_event_stream *stream)
{
    const int count = stream->waiting;
    stream->waiting = 0;
    if (count == 0 || stream->sink == NULL || lr_event_stream_skips(stream)) return LR_OK;
    const lr_status status = stream->sink->take(stream->sink->user, stream->events, count);
    stream->is_refused = status != LR_OK;
    return status;
}

lr_status lr_event_stream_add(struct lr_event_stream *stream, const lr_event *event)
{
    stream->info->weight += event->weight;
    stream->num_added++;
    stream->events[stream->waiting++] = *event;
    return stream->waiting == LR_EVENTS_AT_ONCE ? lr_event_stream_flush(stream) : LR_OK;
}

lr_status lr_event_stream_add_many(struct lr_event_stream *stream, const lr_event *events, int64_t count)
{
    LR_TRY(lr_event_stream_flush(stream));
    if (count == 0 || stream->sink == NULL) return LR_OK;
    stream->info->weight += (double)count;
    stream->num_added += count;
    const lr_status status = stream->sink->take(stream->sink->user, events, count);
    stream->is_refused = status != LR_OK;
    return status;
}

lr_status lr_event_stream_report(struct lr_event_stream *stream, double done, double total)
{
    if (stream->total == total && done < stream->reported + 1e-3 * total) return LR_OK;
    stream->reported = done;
    stream->total = total;
    return lr_progress_report(stream->source->progress, "reading events", done, total);
}

lr_status lr_event_stream_report_place(struct lr_event_stream *stream, FILE *file)
{
    struct stat facts;
    const off_t place = ftello(file);
    if (fstat(fileno(file), &facts) != 0 || place < 0 || place > facts.st_size) return LR_OK;
    return lr_event_stream_report(stream, (double)place, (double)facts.st_size);
}

lr_status lr_events_need_scanner(const lr_events_source *source, const struct lr_event_format *format)
{
    FILE *file = source->scanner == NULL ? lr_file_open(source->path, "", source->log) : NULL;
    if (source->scanner == NULL && file == NULL) return LR_BAD_INPUT;
    if (file != NULL) fclose(file);
    return source->scanner != NULL
               ? LR_OK
               : lr_error(source->log, LR_USAGE, "%s: %s list mode names no places of crystals: name its scanner",
                          source->path, format->name);
}

lr_status lr_events_judge_unknown(const lr_events_source *source, const lr_event_counts *counts, const char *first)
{
    const int64_t events = counts->prompts + counts->delayeds;
    if (counts->unknown_crystals == 0) return LR_OK;
    const bool all = counts->unknown_crystals == events;
    lr_log_write(source->log, all ? LR_LOG_ERROR : LR_LOG_WARNING, all ? LR_BAD_INPUT : LR_OK,
                 "%s: %lld of %lld events name crystals that %s lacks, first %s: %s", source->path,
                 (long long)counts->unknown_crystals, (long long)events,
                 source->scanner != NULL ? source->scanner->name : "its own scanner", first,
                 all ? "the file belongs to another scanner" : "they are left out");
    return all ? LR_BAD_INPUT : LR_OK;
}

lr_status lr_event_repeats(const lr_event *event, const char *path, int64_t *repeats, const lr_log *log)
{
    const double weight = event->weight;
    *repeats = 0;
    if (!(weight >= 0 && weight <= 1e9) || weight != floor(weight)) {
        return lr_error(log, LR_USAGE,
                        "%s: list mode holds whole events, and one of weight %g was to be written: "
                        "write a CASToR histogram instead",
                        path, weight);
    }
    *repeats = (int64_t)weight;
    return LR_OK;
}

/* --- properties of events --- */

bool lr_events_info_has_tof(const lr_events_info *info, const int32_t crystals[2])
{
    const lr_event_kinds *kinds = &info->kinds;
    int kind[2];
    if (kinds->count == 0) return info->has_tof;
    for (int k = 0; k < 2; k++) {
        const bool known = crystals[k] >= 0 && crystals[k] < kinds->num_crystals;
        kind[k] = known ? kinds->kind_of[crystals[k]] : LR_EVENTS_NO_KIND;
        if (kind[k] >= kinds->count) return false;
    }
    return kinds->tof[kind[0] * kinds->count + kind[1]].num_bins > 1;
}

void lr_events_info_finish(lr_events_info *info)
{
    for (int k = 0; info->kinds.tof != NULL && k < info->kinds.count * info->kinds.count; k++)
        free(info->kinds.tof[k].edges_mm);
    lr_free_all(info->kinds.kind_of, info->kinds.tof, info->kinds.energy_kev, info->tof_edges_mm);
    *info = (lr_events_info){0};
}
