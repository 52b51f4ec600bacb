/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/events.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "listmode/line.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* mm of tof_mm for each ps of a time difference: half the speed of light. */
static const double tof_mm_per_ps = 0.149896229;
static const double fwhm_per_sigma = 2.3548200450309493;

/* --- ranges --- */

static lr_status check_ranges(const lr_listmode_params *params, int num_ranges)
{
    for (int r = 0; params->ranges != NULL && r < num_ranges; r++) {
        if (params->ranges[r + 1] < params->ranges[r]) {
            return lr_error(params->log, LR_USAGE, "range %d of the events ends at %lld, before it begins at %lld", r,
                            (long long)params->ranges[r + 1], (long long)params->ranges[r]);
        }
    }
    if (params->ranges != NULL && (params->ranges[0] != 0 || params->ranges[num_ranges] != params->count)) {
        return lr_error(params->log, LR_USAGE, "ranges go from event 0 to the last one, %lld, not from %lld to %lld",
                        (long long)params->count, (long long)params->ranges[0], (long long)params->ranges[num_ranges]);
    }
    return LR_OK;
}

/* Where range r begins if they are as equal as can be. */
static int64_t even_range(const lr_listmode_params *params, int num_ranges, int r)
{
    const int64_t each = params->count / num_ranges, more = params->count % num_ranges;
    return each * r + (r < more ? r : more);
}

static lr_status init_ranges(struct lr_listmode_events *events, const lr_listmode_params *params)
{
    const int num_ranges = params->num_ranges > 0 ? params->num_ranges : 1;
    if (params->num_ranges < 0 || (params->ranges != NULL && params->num_ranges == 0))
        return lr_error(params->log, LR_USAGE, "events cannot have %d ranges", params->num_ranges);
    LR_TRY(check_ranges(params, num_ranges));
    events->offsets = lr_alloc(num_ranges + 1, sizeof(*events->offsets), "ranges", params->log);
    events->groups = lr_alloc(num_ranges, sizeof(*events->groups), "ranges", params->log);
    if (events->offsets == NULL || events->groups == NULL) return LR_FAILED;
    for (int r = 0; r <= num_ranges; r++) {
        events->offsets[r] = params->ranges != NULL ? params->ranges[r] : even_range(params, num_ranges, r);
        if (r > 0 && events->offsets[r] - events->offsets[r - 1] > INT32_MAX) {
            return lr_error(params->log, LR_USAGE, "range %d has %lld events: make ranges of fewer than 2^31", r - 1,
                            (long long)(events->offsets[r] - events->offsets[r - 1]));
        }
    }
    events->layout = (lr_lors){.num_pairs = num_ranges, .offsets = events->offsets, .count = params->count};
    return LR_OK;
}

/* --- what crystals have --- */

struct hits {
    const lr_scanner *scanner;
    double (*mm)[3];
};

enum { CRYSTALS_AT_ONCE = 1 << 11 };

static void find_hits(void *user, int64_t begin, int64_t end, int worker)
{
    const struct hits *hits = user;
    (void)worker;
    for (int64_t c = begin; c < end; c++) lr_scanner_hit_centre(hits->scanner, (int)c, hits->mm[c]);
}

static lr_status init_hits(struct lr_listmode_events *events, const lr_listmode_params *params, int threads)
{
    const lr_scanner *scanner = params->lors->scanner;
    events->num_crystals = scanner->num_crystals;
    events->hits = lr_alloc(scanner->num_crystals, sizeof(*events->hits), "crystals", params->log);
    if (events->hits == NULL) return LR_FAILED;
    lr_parallel_for(threads, scanner->num_crystals, CRYSTALS_AT_ONCE, find_hits, &(struct hits){scanner, events->hits});
    return LR_OK;
}

/* The standard deviation that a resolution stands for, in mm of tof_mm; the scanner's where it is not
 * known; 0 where that is not, either. */
static double sigma_of(double resolution_ps, const lr_listmode_params *params)
{
    const double known = resolution_ps > 0 ? resolution_ps : params->lors->scanner->tof_resolution_ps;
    return known > 0 ? known * tof_mm_per_ps / fwhm_per_sigma : 0.0;
}

/* Bins narrower than this part of a standard deviation change nothing by 1e-5, and count as none. */
static const double narrowest_bin = 0.01;

/* All bins are as wide as the mean; where they are not, a warning tells. */
static void check_bins(const float *edges_mm, int num_bins, const lr_log *log)
{
    const double mean = lr_tof_bin_mm(edges_mm, num_bins);
    double least = mean, most = mean;
    for (int k = 0; mean > 0 && k < num_bins; k++) {
        least = fmin(least, (double)edges_mm[k + 1] - (double)edges_mm[k]);
        most = fmax(most, (double)edges_mm[k + 1] - (double)edges_mm[k]);
    }
    if (most - least > 0.01 * mean) {
        lr_warn(log,
                "bins of time of flight are from %.4g to %.4g mm wide: all events are taken to lie "
                "in bins of %.4g mm, the mean",
                least, most, mean);
    }
}

static lr_status put_tof(struct lr_listmode_events *events, int at, double resolution_ps, double bin_mm,
                         const lr_listmode_params *params)
{
    const double sigma = sigma_of(resolution_ps, params);
    const int64_t kinds = (int64_t)events->num_kinds * events->num_kinds;
    if (!(sigma > 0) || !isfinite(sigma)) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "events have time of flight, but neither they nor the scanner tell its "
                        "resolution: give it in ps");
    }
    events->sigma_mm[at] = sigma;
    const double width = bin_mm > narrowest_bin * sigma ? bin_mm : 0.0;
    events->reach_mm = fmax(events->reach_mm, LR_LISTMODE_CUT * sigma + 0.5 * width);
    if (width > 0) {
        events->bin_mm = events->bin_mm != NULL
                             ? events->bin_mm
                             : lr_alloc(kinds, sizeof(*events->bin_mm), "bins of time of flight", params->log);
        LR_TRY(events->bin_mm != NULL ? LR_OK : LR_FAILED);
        events->bin_mm[at] = width;
    }
    return LR_OK;
}

static lr_status init_kinds(struct lr_listmode_events *events, const lr_listmode_params *params)
{
    const lr_event_kinds *kinds = &params->info->kinds;
    const int num_crystals = params->lors->scanner->num_crystals;
    events->num_kinds = kinds->count;
    events->kind_of = lr_alloc(num_crystals, 1, "kinds of crystals", params->log);
    events->sigma_mm =
        lr_alloc((int64_t)kinds->count * kinds->count, sizeof(*events->sigma_mm), "kinds of crystals", params->log);
    if (events->kind_of == NULL || events->sigma_mm == NULL) return LR_FAILED;
    for (int c = 0; c < num_crystals; c++)
        events->kind_of[c] = c < kinds->num_crystals ? kinds->kind_of[c] : (unsigned char)LR_EVENTS_NO_KIND;
    for (int k = 0; k < kinds->count * kinds->count; k++) {
        const lr_tof_bins *bins = &kinds->tof[k];
        if (bins->num_bins > 1) {
            check_bins(bins->edges_mm, bins->num_bins, params->log);
            LR_TRY(put_tof(events, k, bins->resolution_ps, lr_tof_bin_mm(bins->edges_mm, bins->num_bins), params));
        }
    }
    return LR_OK;
}

static lr_status init_tof(struct lr_listmode_events *events, const lr_listmode_params *params)
{
    if (params->info != NULL && params->info->kinds.count > 0) return init_kinds(events, params);
    events->num_kinds = 1;
    events->sigma_mm = lr_alloc(1, sizeof(*events->sigma_mm), "time of flight", params->log);
    if (events->sigma_mm == NULL) return LR_FAILED;
    const lr_events_info *info = params->info;
    if (info == NULL || !info->has_tof) return LR_OK;
    check_bins(info->tof_edges_mm, info->num_tof_bins, params->log);
    return put_tof(events, 0, info->tof_resolution_ps, lr_events_info_tof_bin_mm(info), params);
}

/* --- checking --- */

/* log NULL: only whether. */
static lr_status check_event(const struct lr_listmode_events *events, int64_t number, const lr_log *log)
{
    const lr_event *event = &events->from[number];
    const int last = events->num_crystals - 1;
    for (int k = 0; k < 2; k++) {
        if (event->crystals[k] < 0 || event->crystals[k] > last) {
            return lr_error(log, LR_BAD_INPUT, "event %lld names crystal %d: the scanner has crystals 0 to %d",
                            (long long)number, event->crystals[k], last);
        }
    }
    const double *one = events->hits[event->crystals[0]], *other = events->hits[event->crystals[1]];
    if (one[0] == other[0] && one[1] == other[1] && one[2] == other[2]) {
        return lr_error(log, LR_BAD_INPUT,
                        "event %lld joins crystals %d and %d, which are at the same place: a line "
                        "of response needs two places",
                        (long long)number, event->crystals[0], event->crystals[1]);
    }
    if (lr_listmode_sigma(events, event->crystals) > 0 && !isfinite(event->tof_mm)) {
        return lr_error(log, LR_BAD_INPUT, "event %lld has a time of flight of %g mm, which is not a finite number",
                        (long long)number, (double)event->tof_mm);
    }
    return LR_OK;
}

enum { TAKEN_AT_ONCE = 1 << 14 };

/* Events on their way into arrays; the first one that is refused, or one behind the last. */
struct taking {
    const struct lr_listmode_events *events;
    int64_t begin;
    int32_t *crystals[2]; /* NULL = they are only checked */
    float *tof_mm;
    atomic_llong refused;
};

static void take_share(void *user, int64_t begin, int64_t end, int worker)
{
    struct taking *taking = user;
    (void)worker;
    for (int64_t k = begin; k < end; k++) {
        const int64_t number = taking->begin + k;
        if (check_event(taking->events, number, NULL) != LR_OK) {
            lr_lower(&taking->refused, number);
            return;
        }
        if (taking->tof_mm != NULL) {
            const lr_event *event = &taking->events->from[number];
            taking->crystals[0][k] = event->crystals[0];
            taking->crystals[1][k] = event->crystals[1];
            taking->tof_mm[k] = event->tof_mm;
        }
    }
}

static lr_status take(struct taking *taking, int64_t end, int threads, const lr_log *log)
{
    atomic_init(&taking->refused, end);
    lr_parallel_for(threads, end - taking->begin, TAKEN_AT_ONCE, take_share, taking);
    const int64_t refused = atomic_load(&taking->refused);
    return refused < end ? check_event(taking->events, refused, log) : LR_OK;
}

lr_status lr_listmode_events_check(struct lr_listmode_events *events, int threads, const lr_log *log)
{
    struct taking taking = {.events = events};
    const lr_status status = events->are_checked ? LR_OK : take(&taking, events->layout.count, threads, log);
    events->are_checked = status == LR_OK;
    return status;
}

lr_status lr_listmode_events_take(const struct lr_listmode_events *events, const struct lr_listmode_piece *piece,
                                  const lr_log *log)
{
    struct taking taking = {.events = events,
                            .begin = piece->begin,
                            .crystals = {piece->crystals[0], piece->crystals[1]},
                            .tof_mm = piece->tof_mm};
    return take(&taking, piece->end, piece->threads, log);
}

/* --- the whole --- */

lr_status lr_listmode_events_make_arrays(struct lr_listmode_events *events, const lr_log *log)
{
    const int64_t count = events->layout.count;
    if (events->number != NULL) return LR_OK;
    for (int k = 0; k < 2; k++) {
        free(events->crystals[k]);
        events->crystals[k] = lr_alloc(count, sizeof(int32_t), "events", log);
    }
    free(events->tof_mm);
    events->tof_mm = lr_alloc(count, sizeof(float), "events", log);
    const bool has_three = events->crystals[0] && events->crystals[1] && events->tof_mm;
    events->number = has_three ? lr_alloc(count, sizeof(int32_t), "events", log) : NULL;
    return events->number != NULL ? LR_OK : LR_FAILED;
}

static lr_status open_all(struct lr_listmode_events *events, const lr_listmode_params *params)
{
    const int threads = params->threads > 0 ? params->threads : lr_num_processors();
    if ((events->from == NULL && events->sample == NULL) || params->count <= 0)
        return lr_error(params->log, LR_USAGE, "list mode needs events: there are %lld", (long long)params->count);
    LR_TRY(init_ranges(events, params));
    LR_TRY(init_hits(events, params, threads));
    return init_tof(events, params);
}

lr_status lr_listmode_events_open(struct lr_listmode_events *events, const lr_listmode_params *params)
{
    *events = (struct lr_listmode_events){.from = params->events};
    return open_all(events, params);
}

lr_status lr_listmode_events_open_sample(struct lr_listmode_events *events, const lr_listmode_params *params,
                                         const struct lr_listmode_sample *sample)
{
    *events = (struct lr_listmode_events){.sample = sample};
    return open_all(events, params);
}

int64_t lr_listmode_longest_group(const struct lr_listmode_events *events)
{
    int64_t longest = 0;
    for (int64_t r = 0; r < events->layout.num_pairs; r++) {
        for (int g = 0; g < LR_LISTMODE_GROUPS; g++) {
            const int64_t count = events->groups[r][g + 1] - events->groups[r][g];
            longest = count > longest ? count : longest;
        }
    }
    return longest;
}

void lr_listmode_events_release(struct lr_listmode_events *events)
{
    if (events->held != NULL) {
        events->held->destroy(events->held);
        events->held = NULL;
    }
}

void lr_listmode_events_finish(struct lr_listmode_events *events)
{
    lr_listmode_events_release(events);
    free(events->offsets);
    free(events->groups);
    free(events->crystals[0]);
    free(events->crystals[1]);
    free(events->tof_mm);
    free(events->number);
    free(events->hits);
    free(events->kind_of);
    free(events->sigma_mm);
    free(events->bin_mm);
    *events = (struct lr_listmode_events){0};
}
