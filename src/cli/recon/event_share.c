/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The choice of this rank's events. Each rank reads the file twice, piece by piece. */
#include "cli/recon/measurement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Consecutive events of one frame, with their LORs (-1 = out of coincidence). */
struct events {
    const lr_event *events;
    const int64_t *lors;
    int64_t count;
};

/* The state of one pass through a file of events. */
struct walk {
    struct measurement *measured;
    lr_status (*body)(struct walk *walk, struct event_share_frame *frame, const struct events *some);
    bool (*skips)(void *walk);
    int64_t handed;      /* number of events before the current ones */
    int64_t num_batches; /* number of batches that were taken or skipped */
    int frame;           /* frame of the previous event */
    int64_t *lors;       /* owned [room] LORs of the current events, -1 = out of coincidence */
    float *times;        /* owned [room] how often --bootstrap has drawn each event; NULL without --bootstrap */
    int64_t room;
    double prompts, delayeds;          /* number of prompts and of delayeds; with --bootstrap, how often they were
                                          drawn */
    lr_event_corrections *corrections; /* corrections of this rank's events; owned by the reader */
};

/* Returns where part k begins if `count` events are divided into parts whose sizes differ by at most 1. */
static int64_t cut_evenly(int64_t count, int64_t parts, int64_t k)
{
    return count / parts * k + (count % parts < k ? count % parts : k);
}

static lr_status refuse_memory(const struct measurement *measured)
{
    return report_error(measured->setup.report, LR_FAILED, "no memory for the events of a rank");
}

static lr_status take_some(void *user, const lr_event *events, int64_t count)
{
    struct walk *walk = user;
    const struct setup *setup = &walk->measured->setup;
    const struct recon_request *request = walk->measured->request;
    struct event_share *own = &walk->measured->share;
    const lr_event_span span = {events, count, setup->params.threads};
    if (count > walk->room) {
        free(walk->times);
        free(walk->lors);
        walk->lors = malloc((size_t)count * sizeof(*walk->lors));
        walk->times = request->bootstraps ? malloc((size_t)count * sizeof(*walk->times)) : NULL;
        const bool has_all = walk->lors != NULL && (walk->times != NULL || !request->bootstraps);
        walk->room = has_all ? count : 0;
        if (!has_all) return refuse_memory(walk->measured);
    }
    lr_events_lors(setup->lors, &span, walk->lors);
    if (walk->times != NULL) {
        const lr_poisson_stream stream = {
            .seed = request->bootstrap_seed, .purpose = LR_RANDOM_REPLICATE, .first = walk->handed};
        lr_events_weights(&span, walk->times);
        CLI_TRY(lr_poisson_part(walk->times, count, &stream, &setup->report->log));
    }
    /* The times of the first and the last event are found. In a bootstrap replicate, only drawn events count. */
    uint32_t first_ms = UINT32_MAX, last_ms = 0;
    bool any = false;
    for (int64_t k = 0; k < count; k++) {
        if (walk->times == NULL || walk->times[k] > 0) {
            first_ms = events[k].time_ms < first_ms ? events[k].time_ms : first_ms;
            last_ms = events[k].time_ms > last_ms ? events[k].time_ms : last_ms;
            any = true;
        }
    }
    if (any) {
        own->times_s[0] = fmin(own->times_s[0], first_ms * 1e-3);
        own->times_s[1] = fmax(own->times_s[1], last_ms * 1e-3);
    }
    if (request->num_intervals == 0 && walk->times == NULL) {
        CLI_TRY(walk->body(walk, &own->frames[0], &(struct events){events, walk->lors, count}));
        walk->handed += count;
        return LR_OK;
    }
    for (int64_t k = 0; k < count; k++, walk->handed++) {
        /* Events are usually ordered by time, so the frame of the previous event is tried first. */
        const lr_event *event = &events[k];
        struct event_share_frame *frame = request->num_intervals == 0 ? &own->frames[0] : NULL;
        for (int n = 0; frame == NULL && n < own->num_frames; n++) {
            const int number = (walk->frame + n) % own->num_frames;
            if (recon_interval_has(&request->intervals[number], event)) frame = &own->frames[number];
        }
        if (frame != NULL) walk->frame = (int)(frame - own->frames);

        /* In a bootstrap replicate, a delayed is repeated as often as it was drawn. A prompt occurs once, with the
         * number of draws as its weight. */
        const float times = walk->times != NULL ? walk->times[k] : 1.0f;
        lr_event drawn = *event;
        int64_t copies = 1;
        if (request->bootstraps) {
            drawn.weight = event->is_delayed ? 1.0f : times;
            copies = event->is_delayed ? (int64_t)times : times > 0;
            *(event->is_delayed ? &walk->delayeds : &walk->prompts) += times;
        }
        for (int64_t n = 0; frame != NULL && n < copies; n++)
            CLI_TRY(walk->body(walk, frame, &(struct events){&drawn, &walk->lors[k], 1}));
    }
    return LR_OK;
}

static lr_status read_file(struct walk *walk, const lr_log *log, lr_events_info *info)
{
    const lr_event_sink sink = {.take = take_some, .user = walk};
    lr_events_source source = measurement_events_source(walk->measured);
    source.log = log;
    source.skips = walk->skips;
    source.user = walk;
    const lr_status status = lr_events_read(&source, &sink, info);
    free(walk->times);
    free(walk->lors);
    return status;
}

static lr_status survey(struct walk *walk, struct event_share_frame *frame, const struct events *some)
{
    struct measurement *measured = walk->measured;
    const int64_t kept = frame->kept;
    uint64_t digest = frame->digest;
    for (int64_t k = 0; k < some->count; k++) {
        const bool is_kept = some->lors[k] >= 0;
        const lr_event *event = &some->events[k];
        if (event->is_delayed && is_kept) {
            if (frame->ends == NULL) {
                const size_t num = (size_t)measured->setup.scanner->num_crystals;
                frame->ends = calloc(num, sizeof(*frame->ends));
            }
            if (frame->ends == NULL) return refuse_memory(measured);
            frame->ends[event->crystals[0]] += 1;
            frame->ends[event->crystals[1]] += 1;
        }
        if (event->is_delayed) continue;
        frame->prompts++;
        frame->kept += is_kept;
        if (is_kept) recon_digest_event(&digest, event);
    }
    frame->left_out = frame->prompts - frame->kept;
    frame->digest = digest;
    if (walk->num_batches > 0 && measured->share.batches != NULL) {
        struct event_share_batch *last = &measured->share.batches[walk->num_batches - 1];
        last->handed += some->count;
        last->kept += frame->kept - kept;
    }
    return LR_OK;
}

/* Begins a new batch, which is a piece of events from the reader. */
static bool note_batch(void *user)
{
    struct walk *walk = user;
    struct event_share *own = &walk->measured->share;
    if (walk->num_batches == own->room_for_batches) {
        const int64_t room = 2 * own->room_for_batches + 64;
        struct event_share_batch *batches = realloc(own->batches, (size_t)room * sizeof(*batches));
        if (batches == NULL) free(own->batches); /* without batches, the second pass reads all events */
        own->batches = batches;
        own->room_for_batches = batches != NULL ? room : 0;
    }
    if (own->batches != NULL) {
        own->batches[walk->num_batches++] = (struct event_share_batch){0};
        own->num_batches = walk->num_batches;
    }
    return false;
}

lr_status event_share_survey(struct measurement *measured)
{
    struct event_share *own = &measured->share;
    struct walk walk = {.measured = measured, .body = survey, .skips = note_batch};
    lr_events_info info = {0};
    own->times_s[0] = HUGE_VAL;
    own->num_frames = measured->request->num_intervals > 0 ? measured->request->num_intervals : 1;
    own->frames = calloc((size_t)own->num_frames, sizeof(*own->frames));
    if (own->frames == NULL) return refuse_memory(measured);
    lr_status status = read_file(&walk, &measured->setup.report->log, &info);
    if (status == LR_OK) { /* store the counts and times of the whole list */
        own->handed = walk.handed;
        own->duration_s = info.duration_s;
        measured->events_format = info.format;
        measured->events = info.counts;
        if (measured->request->bootstraps) {
            measured->events.prompts = (int64_t)walk.prompts;
            measured->events.delayeds = (int64_t)walk.delayeds;
            measurement_say_replicate(measured, info.weight, walk.prompts + walk.delayeds);
        }
        uint64_t digest = 0;
        int64_t kept = 0;
        for (int k = 0; k < own->num_frames; k++) {
            digest = recon_digest(digest, &own->frames[k].digest, sizeof(own->frames[k].digest));
            kept += own->frames[k].kept;
        }
        status = measurement_compare_numbers(measured, "list of events", digest, kept);
    }
    lr_events_info_finish(&info);
    return status;
}

static lr_status keep(struct walk *walk, struct event_share_frame *frame, const struct events *some)
{
    const struct measurement *measured = walk->measured;
    const lr_event_corrections *from = measured->corrections;
    const int num_ranges = measured->subsets;
    for (int64_t k = 0; k < some->count && frame->ranges != NULL; k++) {
        const int64_t number = walk->handed + k; /* index of the event in the file */
        const bool is_more = number >= measured->share.handed || frame->seen >= frame->kept;
        if (is_more || some->events[k].is_delayed || some->lors[k] < 0)
            continue; /* event_share_take reports events that the survey did not count */

        /* If a list is not ordered by time, consecutive events belong to different ranges. */
        int64_t place = frame->seen++;
        if (measurement_interleaves_events(measured)) {
            frame->subset = (int)(place % num_ranges);
            place = frame->begins[frame->subset] + place / num_ranges;
        } else {
            while (place >= frame->begins[frame->subset + 1]) frame->subset++;
        }
        const int64_t *ranges = frame->ranges + frame->subset;
        const int64_t within = place - frame->from[frame->subset];
        if (within < 0 || within >= ranges[1] - ranges[0]) continue; /* this event belongs to another rank */
        place = frame->first + ranges[0] + within;
        measured->list->events[place] = some->events[k];
        if (from != NULL) {
            walk->corrections->factors[place] = from->factors[number];
            walk->corrections->additive[place] = from->additive[number];
        }
    }
    return LR_OK;
}

/* Returns true, and skips a batch, if all its events belong to other ranks. */
static bool pass_over(void *user)
{
    struct walk *walk = user;
    const struct measurement *measured = walk->measured;
    const struct event_share *own = &measured->share;
    struct event_share_frame *frame = &own->frames[0];
    const int64_t k = walk->num_batches++;
    if (measured->request->num_intervals > 0 || measured->request->bootstraps ||
        measurement_interleaves_events(measured) || own->batches == NULL || k >= own->num_batches)
        return false;
    for (int r = 0; r < measured->subsets; r++) {
        const int64_t begin = frame->from[r];
        const int64_t end = begin + frame->ranges[r + 1] - frame->ranges[r];
        if (frame->seen < end && frame->seen + own->batches[k].kept > begin) return false; /* some are this rank's */
    }
    walk->handed += own->batches[k].handed;
    frame->seen += own->batches[k].kept;
    return true;
}

lr_status event_share_take(struct measurement *measured)
{
    /* The corrections of this rank's events will replace those of all events. */
    lr_event_corrections own = {0}, *all = measured->corrections;
    struct walk walk = {.measured = measured, .body = keep, .skips = pass_over, .corrections = &own};
    int64_t count = 0;
    const struct cluster *cluster = &measured->cluster;
    const size_t num_ranges = (size_t)measured->subsets;
    const bool has_frames = measured->request->num_intervals > 0;
    const int first_frame = has_frames ? (int)measured->frame_range[0] : 0;
    const int end_frame = has_frames ? (int)measured->frame_range[1] : 1;
    for (int k = first_frame; k < end_frame; k++) {
        struct event_share_frame *frame = &measured->share.frames[k];
        if (frame->kept == 0) {
            return report_error(measured->setup.report, LR_BAD_INPUT,
                                "%s: holds no prompts in coincidence, of which no image comes",
                                measured->request->events);
        }
        if (frame->kept / measured->subsets < cluster->size) {
            return report_error(measured->setup.report, LR_USAGE,
                                "%d ranks for %lld events in %d subsets: some would have none: start fewer ranks, or "
                                "take fewer subsets",
                                cluster->size, (long long)frame->kept, measured->subsets);
        }
        /* The events of a subset are cut into slices, one for each rank. */
        frame->ranges = calloc(num_ranges + 1, sizeof(*frame->ranges));
        frame->begins = calloc(num_ranges + 1, sizeof(*frame->begins));
        frame->from = calloc(num_ranges, sizeof(*frame->from));
        if (frame->ranges == NULL || frame->begins == NULL || frame->from == NULL) return refuse_memory(measured);
        for (size_t r = 0; r < num_ranges; r++) {
            const int64_t begin = frame->begins[r];
            const int64_t end = cut_evenly(frame->kept, (int64_t)num_ranges, (int64_t)r + 1);
            const int64_t to = begin + cut_evenly(end - begin, cluster->size, cluster->rank + 1);
            frame->begins[r + 1] = end;
            frame->from[r] = begin + cut_evenly(end - begin, cluster->size, cluster->rank);
            frame->ranges[r + 1] = frame->ranges[r] + to - frame->from[r];
        }
        frame->first = count;
        count += frame->ranges[num_ranges];
    }
    const size_t room = (size_t)count + 1;
    lr_event_list *list = measured->list = calloc(1, sizeof(*list));
    if (list != NULL) list->events = malloc(room * sizeof(*list->events));
    if (list == NULL || list->events == NULL) return refuse_memory(measured);
    list->count = count;
    lr_status status = LR_OK;
    if (all != NULL) {
        own.factors = malloc(room * sizeof(*own.factors));
        own.additive = malloc(room * sizeof(*own.additive));
        if (own.factors == NULL || own.additive == NULL) status = refuse_memory(measured);
    }
    if (status == LR_OK) {
        const lr_log log = report_errors_alone(measured->setup.report);
        status = read_file(&walk, &log, &list->info);
        list->info.counts = measured->events;
    }
    if (status == LR_OK && walk.handed != measured->share.handed) {
        status = report_error(measured->setup.report, LR_BAD_INPUT,
                              "%s: has changed while it was read: it had %lld events, and now %lld",
                              measured->request->events, (long long)measured->share.handed, (long long)walk.handed);
    }
    if (status == LR_OK && all != NULL) {
        free(all->factors);
        free(all->additive);
        all->factors = own.factors;
        all->additive = own.additive;
        all->count = count;
        return LR_OK;
    }
    free(own.factors);
    free(own.additive);
    return status;
}

lr_status event_share_open(struct measurement *measured)
{
    const bool has_frames = measured->request->num_intervals > 0;
    const struct event_share_frame *frame = &measured->share.frames[has_frames ? measured->frame : 0];
    const size_t num_ranges = (size_t)measured->subsets;
    measured->events.not_in_coincidence = frame->left_out;
    measured->digest = frame->digest;
    if (!has_frames) measurement_say_events(measured);
    free(measured->subset_of);
    free(measured->ranges);
    measured->subset_of = calloc(num_ranges, sizeof(*measured->subset_of));
    measured->ranges = calloc(num_ranges + 1, sizeof(*measured->ranges));
    if (measured->subset_of == NULL || measured->ranges == NULL) return refuse_memory(measured);
    memcpy(measured->ranges, frame->ranges, (num_ranges + 1) * sizeof(*frame->ranges));
    for (size_t r = 0; r < num_ranges; r++) measured->subset_of[r] = (int32_t)r;
    measured->interleave = 1;
    return LR_OK;
}
