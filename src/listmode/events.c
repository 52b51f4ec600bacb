/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/events.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/units.h"
#include "base/vec.h"
#include "listmode/line.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* --- radix sort of event numbers by their keys --- */

/* An entry has a key, by which it is sorted, and an event's number. Each thread works on a contiguous part of the
 * entries. The new index of an entry follows from how often each digit occurs in each part. */

enum {
    DIGIT_BITS = 11,
    NUM_DIGITS = 1 << DIGIT_BITS,
    NUM_PASSES = 3,
    MOST_PARTS = 16,
    LEAST_PART = 1 << 14 /* least number of entries in a part; a thread for fewer entries would save no time */
};

struct pass {
    const struct lr_listmode_ticket *from;
    struct lr_listmode_ticket *to;
    int64_t count, part; /* part: number of entries of a part, except the last, which can have fewer */
    int shift, threads, num_parts;
    int64_t places[MOST_PARTS][NUM_DIGITS]; /* for each part and digit: first the number of the part's entries with this
                                               digit, later the index for the next such entry */
};

static void count_part(void *user, int64_t begin, int64_t end)
{
    struct pass *pass = user;
    int64_t *places = pass->places[begin / pass->part];
    memset(places, 0, sizeof(pass->places[0]));
    for (int64_t k = begin; k < end; k++) places[pass->from[k].key >> pass->shift & (NUM_DIGITS - 1)]++;
}

static void move_part(void *user, int64_t begin, int64_t end)
{
    struct pass *pass = user;
    int64_t *places = pass->places[begin / pass->part];
    for (int64_t k = begin; k < end; k++)
        pass->to[places[pass->from[k].key >> pass->shift & (NUM_DIGITS - 1)]++] = pass->from[k];
}

void lr_listmode_sort_tickets(struct lr_listmode_ticket *tickets, struct lr_listmode_ticket *spare, int64_t count,
                              int threads)
{
    const int64_t most = count / LEAST_PART < MOST_PARTS ? count / LEAST_PART : MOST_PARTS;
    const int64_t parts = threads < most ? threads : most;
    struct lr_listmode_ticket *from = tickets, *to = spare;
    struct pass pass; /* not cleared as a whole, because it is large */
    pass.count = count;
    pass.num_parts = parts > 1 ? (int)parts : 1;
    pass.part = (count + pass.num_parts - 1) / pass.num_parts;
    pass.threads = pass.num_parts;
    for (int k = 0; count > 1 && k < NUM_PASSES; k++) {
        pass.from = from;
        pass.to = to;
        pass.shift = k * DIGIT_BITS;
        lr_parallel_for(pass.threads, count, pass.part, count_part, &pass);
        int64_t sum = 0;
        bool is_sorted = false; /* true if all entries have the same digit */
        for (int digit = 0; digit < NUM_DIGITS && !is_sorted; digit++) {
            const int64_t before = sum;
            for (int part = 0; part < pass.num_parts; part++) {
                const int64_t here = pass.places[part][digit];
                pass.places[part][digit] = sum;
                sum += here;
            }
            is_sorted = sum - before == count;
        }
        if (is_sorted) continue;
        lr_parallel_for(pass.threads, count, pass.part, move_part, &pass);
        to = from;
        from = to == tickets ? spare : tickets;
    }
    if (from != tickets) memcpy(tickets, from, (size_t)count * sizeof(*tickets));
}

/* --- sample --- */

int64_t lr_listmode_sample_lor(const struct lr_listmode_sample *sample, int64_t k)
{
    const int64_t line = sample->first + sample->step * k, last = sample->lors->count - 1;
    double within = 0.0;
    if (sample->stride > 1.0) within = lr_split_uniform(sample->seed, (uint64_t)line + 1);
    const int64_t lor = (int64_t)(((double)line + within) * sample->stride);
    return lor < last ? lor : last;
}

/* --- ranges --- */

static lr_status init_ranges(struct lr_listmode_events *events, const lr_listmode_params *params)
{
    const int num_ranges = params->num_ranges > 0 ? params->num_ranges : 1;
    if (params->num_ranges < 0 || (params->ranges != NULL && params->num_ranges == 0))
        return lr_error(params->log, LR_USAGE, "events cannot have %d ranges", params->num_ranges);
    for (int n = 0; params->ranges != NULL && n < num_ranges; n++) {
        if (params->ranges[n + 1] < params->ranges[n]) {
            return lr_error(params->log, LR_USAGE, "range %d of the events ends at %lld, before it begins at %lld", n,
                            (long long)params->ranges[n + 1], (long long)params->ranges[n]);
        }
    }
    if (params->ranges != NULL && (params->ranges[0] != 0 || params->ranges[num_ranges] != params->count)) {
        return lr_error(params->log, LR_USAGE, "ranges go from event 0 to the last one, %lld, not from %lld to %lld",
                        (long long)params->count, (long long)params->ranges[0], (long long)params->ranges[num_ranges]);
    }

    events->offsets = lr_alloc(num_ranges + 1, sizeof(*events->offsets), "ranges", params->log);
    events->groups = lr_alloc(num_ranges, sizeof(*events->groups), "ranges", params->log);
    if (events->offsets == NULL || events->groups == NULL) return LR_FAILED;
    const int64_t each = params->count / num_ranges, more = params->count % num_ranges; /* the ranges have nearly equal
                                                                                           numbers of events */
    for (int r = 0; r <= num_ranges; r++) {
        events->offsets[r] = params->ranges != NULL ? params->ranges[r] : each * r + (r < more ? r : more);
        if (r > 0 && events->offsets[r] - events->offsets[r - 1] > INT32_MAX) {
            return lr_error(params->log, LR_USAGE, "range %d has %lld events: make ranges of fewer than 2^31", r - 1,
                            (long long)(events->offsets[r] - events->offsets[r - 1]));
        }
    }
    events->layout = (lr_lors){.num_pairs = num_ranges, .offsets = events->offsets, .count = params->count};
    return LR_OK;
}

/* --- properties of crystals --- */

struct hits {
    const lr_scanner *scanner;
    double (*mm)[3];
};

enum { CRYSTALS_AT_ONCE = 1 << 11, LINES_AT_ONCE = 1 << 14 };

static void find_hits(void *user, int64_t begin, int64_t end)
{
    const struct hits *hits = user;
    for (int64_t c = begin; c < end; c++) lr_scanner_hit_centre(hits->scanner, (int)c, hits->mm[c]);
}

struct ends {
    const lr_vector *of[2];
    double (*mm)[3];
};

static void read_ends(void *user, int64_t begin, int64_t end)
{
    const struct ends *ends = user;
    for (int64_t n = begin; n < end; n++) {
        for (int k = 0; k < 6; k++) {
            const lr_vector *of = ends->of[k / 3];
            const int64_t at = 3 * n + k % 3;
            ends->mm[2 * n + k / 3][k % 3] = of->precision == LR_FLOAT64 ? ((const double *)of->values)[at]
                                                                         : (double)((const float *)of->values)[at];
        }
    }
}

/* Narrower bins, as a fraction of a standard deviation, change results by less than 1e-5 and are therefore ignored. */
static const double narrowest_bin = 0.01;

/* Warns if bins have different widths, because every bin then counts as a bin of the mean width. */
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
    /* The standard deviation of tof_mm is found from the events' time resolution, or from the scanner's if the events
     * have none. If neither resolution is known, the standard deviation is 0. */
    const double of_scanner = events->are_lines ? 0.0 : params->lors->scanner->tof_resolution_ps;
    const double known = resolution_ps > 0 ? resolution_ps : of_scanner;
    const double sigma = known > 0 ? known * LR_MM_PER_PS / LR_FWHM_PER_SIGMA : 0.0;

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

/* Gives each line its own resolution of time of flight. Resolutions are stored as kinds of the lines' ends, because all
 * backends support kinds. Each resolution is rounded to a term of a geometric series, which runs from the smallest to
 * the largest resolution. The kinds of a line's two ends form the number of this term. */
static lr_status put_resolutions(struct lr_listmode_events *events, const lr_listmode_params *params)
{
    enum { KINDS = LR_EVENTS_NO_KIND - 1, STEPS = KINDS * KINDS - 1 };
    const float *resolutions_ps = params->lines->tof_resolutions_ps->values;
    double least = INFINITY, largest = 0.0;
    for (int64_t n = 0; n < params->count; n++) {
        const double own = (double)resolutions_ps[n];
        if (!(own > 0) || !isfinite(own)) {
            return lr_error(params->log, LR_BAD_INPUT,
                            "line %lld has a time of flight with a resolution of %g ps: give the FWHM, above 0",
                            (long long)n, own);
        }
        least = fmin(least, own);
        largest = fmax(largest, own);
    }
    const double range = log(largest / least), step = range > 0 ? range / STEPS : 1.0;
    events->num_kinds = KINDS;
    events->kind_of = lr_alloc(events->num_crystals, 1, "kinds of lines", params->log);
    events->sigma_mm = lr_alloc(STEPS + 1, sizeof(*events->sigma_mm), "resolutions of lines", params->log);
    if (events->kind_of == NULL || events->sigma_mm == NULL) return LR_FAILED;
    for (int64_t n = 0; n < params->count; n++) {
        const int at = (int)lround(log((double)resolutions_ps[n] / least) / step);
        events->kind_of[2 * n] = (unsigned char)(at / KINDS);
        events->kind_of[2 * n + 1] = (unsigned char)(at % KINDS);
    }
    for (int at = 0; at <= STEPS; at++)
        LR_TRY(put_tof(events, at, least * exp(step * (range > 0 ? at : 0)), params->info->tof_bin_mm, params));
    return LR_OK;
}

/* --- checking --- */

/* Checks an event of the caller. log: NULL = no error is logged. */
static lr_status check_event(const struct lr_listmode_events *events, int64_t number, const lr_log *log)
{
    const char *const name = events->are_lines ? "line" : "event";
    const int last = events->num_crystals - 1;
    int32_t crystals[2];
    lr_listmode_input_crystals(&events->from, number, crystals);
    for (int k = 0; k < 2; k++) {
        if (crystals[k] < 0 || crystals[k] > last) {
            return lr_error(log, LR_BAD_INPUT, "event %lld names crystal %d: the scanner has crystals 0 to %d",
                            (long long)number, crystals[k], last);
        }
    }
    const double *one = events->hits[crystals[0]], *other = events->hits[crystals[1]];
    if (events->are_lines) {
        double along[3];
        vec_sub(other, one, along);
        const double length = vec_length(along);
        if (!(length > 0) || !isfinite(length)) {
            return lr_error(log, LR_BAD_INPUT,
                            "line %lld goes from (%g, %g, %g) to (%g, %g, %g) mm: a line of response needs two places "
                            "a finite distance apart",
                            (long long)number, one[0], one[1], one[2], other[0], other[1], other[2]);
        }
    } else if (one[0] == other[0] && one[1] == other[1] && one[2] == other[2]) {
        return lr_error(log, LR_BAD_INPUT,
                        "event %lld joins crystals %d and %d, which are at the same place: a line "
                        "of response needs two places",
                        (long long)number, crystals[0], crystals[1]);
    }
    const double tof_mm = (double)lr_listmode_input_tof(&events->from, number);
    if (lr_listmode_sigma(events, crystals) > 0 && !isfinite(tof_mm)) {
        return lr_error(log, LR_BAD_INPUT, "%s %lld has a time of flight of %g mm, which is not a finite number", name,
                        (long long)number, tof_mm);
    }
    return LR_OK;
}

enum { TAKEN_AT_ONCE = 1 << 14 };

/* Events that are checked and copied into arrays. refused: index of the first event that fails the check; one past the
 * last event if none fails. */
struct taking {
    const struct lr_listmode_events *events;
    int64_t begin;
    int32_t *crystals[2]; /* NULL = events are only checked */
    float *tof_mm;
    atomic_llong refused;
};

static void take_share(void *user, int64_t begin, int64_t end)
{
    struct taking *taking = user;
    for (int64_t k = begin; k < end; k++) {
        const int64_t number = taking->begin + k;
        if (check_event(taking->events, number, NULL) != LR_OK) {
            lr_lower(&taking->refused, number);
            return;
        }
        if (taking->tof_mm != NULL) {
            int32_t crystals[2];
            lr_listmode_input_crystals(&taking->events->from, number, crystals);
            taking->crystals[0][k] = crystals[0];
            taking->crystals[1][k] = crystals[1];
            taking->tof_mm[k] = lr_listmode_input_tof(&taking->events->from, number);
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

/* --- opening --- */

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

lr_status lr_listmode_events_open(struct lr_listmode_events *events, const lr_listmode_params *params,
                                  const struct lr_listmode_sample *sample)
{
    const lr_event *given = params->events;
    const lr_event_columns *columns = params->columns;
    const lr_lines *lines = params->lines;
    *events = (struct lr_listmode_events){.sample = sample};
    if ((sample == NULL && given == NULL && columns == NULL && lines == NULL) || params->count <= 0)
        return lr_error(params->log, LR_USAGE, "list mode needs events: there are %lld", (long long)params->count);
    if (sample == NULL && given != NULL) {
        events->from = (struct lr_listmode_input){(const char *)given->crystals, (const char *)&given->tof_mm,
                                                  sizeof(*given), sizeof(*given)};
    } else if (sample == NULL) {
        const lr_vector *tof = lines != NULL ? lines->tof_mm : NULL;
        events->from = (struct lr_listmode_input){.crystals = columns != NULL ? (const char *)columns->crystals : NULL,
                                                  .tof_mm = columns != NULL ? (const char *)columns->tof_mm
                                                            : tof != NULL   ? (const char *)tof->values
                                                                            : NULL,
                                                  .crystals_step = sizeof(*columns->crystals),
                                                  .tof_step = sizeof(float)};
    }
    LR_TRY(init_ranges(events, params));

    /* Makes the table of the scanner's crystals, or of the lines' ends. */
    const int threads = params->threads > 0 ? params->threads : lr_num_processors();
    if (lines != NULL && params->count >= INT64_C(1) << 30) {
        return lr_error(params->log, LR_USAGE, "an operator has fewer than 2^30 lines, not %lld: make several",
                        (long long)params->count);
    }
    events->are_lines = lines != NULL;
    events->num_crystals = lines != NULL ? (int)(2 * params->count) : params->lors->scanner->num_crystals;
    events->hits = lr_alloc(events->num_crystals, sizeof(*events->hits), "ends of lines", params->log);
    if (events->hits == NULL) return LR_FAILED;
    if (lines != NULL) {
        struct ends ends = {{lines->start_mm, lines->end_mm}, events->hits};
        lr_parallel_for(threads, params->count, LINES_AT_ONCE, read_ends, &ends);
    } else {
        struct hits hits = {params->lors->scanner, events->hits};
        lr_parallel_for(threads, events->num_crystals, CRYSTALS_AT_ONCE, find_hits, &hits);
    }

    const lr_events_info *info = params->info;
    if (lines != NULL && lines->tof_resolutions_ps != NULL) return put_resolutions(events, params);
    if (info == NULL || info->kinds.count == 0) {
        events->num_kinds = 1;
        events->sigma_mm = lr_alloc(1, sizeof(*events->sigma_mm), "time of flight", params->log);
        if (events->sigma_mm == NULL) return LR_FAILED;
        if (info == NULL || !info->has_tof) return LR_OK;
        check_bins(info->tof_edges_mm, info->num_tof_bins, params->log);
        return put_tof(events, 0, info->tof_resolution_ps, lr_events_info_tof_bin_mm(info), params);
    }

    const lr_event_kinds *kinds = &info->kinds;
    const int num_pairs = kinds->count * kinds->count;
    events->num_kinds = kinds->count;
    events->kind_of = lr_alloc(events->num_crystals, 1, "kinds of crystals", params->log);
    events->sigma_mm = lr_alloc(num_pairs, sizeof(*events->sigma_mm), "kinds of crystals", params->log);
    if (events->kind_of == NULL || events->sigma_mm == NULL) return LR_FAILED;
    for (int c = 0; c < events->num_crystals; c++)
        events->kind_of[c] = c < kinds->num_crystals ? kinds->kind_of[c] : (unsigned char)LR_EVENTS_NO_KIND;
    for (int k = 0; k < num_pairs; k++) {
        const lr_tof_bins *bins = &kinds->tof[k];
        if (bins->num_bins > 1) {
            check_bins(bins->edges_mm, bins->num_bins, params->log);
            LR_TRY(put_tof(events, k, bins->resolution_ps, lr_tof_bin_mm(bins->edges_mm, bins->num_bins), params));
        }
    }
    return LR_OK;
}

bool lr_listmode_has_group(const struct lr_listmode_events *events, int group)
{
    for (int64_t r = 0; r < events->layout.num_pairs; r++)
        if (events->groups[r][group] < events->groups[r][group + 1]) return true;
    return false;
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
    lr_free_all(events->offsets, events->groups, events->crystals[0], events->crystals[1], events->tof_mm,
                events->number, events->hits, events->kind_of, events->sigma_mm, events->bin_mm);
    *events = (struct lr_listmode_events){0};
}

/* --- arranging: events of a range are grouped and sorted --- */

/* Each thread works on a contiguous part of a range. The order of the events does not depend on the number of
 * threads. */

enum {
    ARRANGED_MOST_PARTS = 64,
    ARRANGED_LEAST_PART = 1 << 14, /* least number of events in a part; a thread for fewer events would save no time */
    COPIED_AT_ONCE = 1 << 16
};

/* A range that is arranged. */
struct arranging {
    struct lr_listmode_events *events;
    int64_t first, part; /* part: number of events of a part, except the last, which can have fewer */
    struct lr_listmode_ticket *tickets[2];
    int64_t places[ARRANGED_MOST_PARTS][LR_LISTMODE_GROUPS]; /* for each part and group: first the number of the part's
                                                                events in this group, later the index for the next such
                                                                event */
};

/* --- partition --- */

/* Replaces each event's number by its group, and counts the events of each group. */
static void find_groups(void *user, int64_t begin, int64_t end)
{
    struct arranging *arranging = user;
    int64_t *places = arranging->places[begin / arranging->part];
    memset(places, 0, sizeof(arranging->places[0]));
    for (int64_t k = begin; k < end; k++) {
        const struct lr_listmode_events *events = arranging->events;
        int32_t crystals[2];
        lr_listmode_input_crystals(&events->from, arranging->first + k, crystals);
        const double *a = events->hits[crystals[0]], *b = events->hits[crystals[1]];
        const int axis = lr_listmode_axis(a, b);
        const int group = 2 * axis + (lr_listmode_sigma(events, crystals) > 0 ? 1 : 0);
        float centre = 0.0f; /* centre of the event along the axis */
        if (lr_listmode_group_has_tof(group)) {
            double along[3];
            vec_sub(b, a, along);
            const double tof_mm = (double)lr_listmode_input_tof(&events->from, arranging->first + k);
            centre = (float)(0.5 * (a[axis] + b[axis]) + tof_mm * along[axis] / vec_length(along));
        }
        /* The key is an integer that sorts like the centre. The bits of positive floats sort like the floats; the bits
         * of negative floats sort in reverse order. */
        uint32_t bits;
        memcpy(&bits, &centre, sizeof(bits));
        const uint32_t key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        arranging->tickets[1][k] = (struct lr_listmode_ticket){group, key};
        places[group]++;
    }
}

static void move_to_groups(void *user, int64_t begin, int64_t end)
{
    struct arranging *arranging = user;
    int64_t *places = arranging->places[begin / arranging->part];
    for (int64_t k = begin; k < end; k++) {
        const struct lr_listmode_ticket found = arranging->tickets[1][k];
        arranging->tickets[0][places[found.number]++] = (struct lr_listmode_ticket){(int32_t)k, found.key};
    }
}

/* --- arranged arrays --- */

static void copy_events(void *user, int64_t begin, int64_t end)
{
    const struct arranging *arranging = user;
    struct lr_listmode_events *events = arranging->events;
    for (int64_t k = begin; k < end; k++) {
        const int32_t number = arranging->tickets[0][k].number;
        const int64_t at = arranging->first + k;
        int32_t crystals[2];
        lr_listmode_input_crystals(&events->from, arranging->first + number, crystals);
        events->crystals[0][at] = crystals[0];
        events->crystals[1][at] = crystals[1];
        events->tof_mm[at] = lr_listmode_input_tof(&events->from, arranging->first + number);
        events->number[at] = number;
    }
}

/* --- all ranges --- */

lr_status lr_listmode_events_arrange(struct lr_listmode_events *events, const lr_listmode_params *params)
{
    if (events->is_arranged) return LR_OK;
    const int threads = params->threads > 0 ? params->threads : lr_num_processors();
    const int64_t *offsets = events->offsets;
    int64_t longest = 0;
    for (int64_t r = 0; r < events->layout.num_pairs; r++)
        longest = offsets[r + 1] - offsets[r] > longest ? offsets[r + 1] - offsets[r] : longest;

    LR_TRY(lr_listmode_events_check(events, threads, params->log));
    LR_TRY(lr_listmode_events_make_arrays(events, params->log));
    struct arranging arranging; /* not cleared as a whole, because it is large */
    struct lr_listmode_ticket **tickets = arranging.tickets;
    arranging.events = events;
    for (int k = 0; k < 2; k++) tickets[k] = lr_alloc(longest, sizeof(*tickets[k]), "sorting events", params->log);
    events->is_arranged = tickets[0] != NULL && tickets[1] != NULL;
    for (int64_t r = 0; events->is_arranged && r < events->layout.num_pairs; r++) {
        const int64_t first = offsets[r], count = offsets[r + 1] - first;
        const int64_t parts = count / ARRANGED_LEAST_PART;
        const int64_t most = parts < ARRANGED_MOST_PARTS ? (parts > 1 ? parts : 1) : ARRANGED_MOST_PARTS;
        arranging.first = first;
        arranging.part = count > 0 ? (count + most - 1) / most : 1;

        const double start = lr_clock_seconds();
        lr_parallel_for(threads, count, arranging.part, find_groups, &arranging);
        int64_t *groups = events->groups[r], sum = 0;
        for (int g = 0; g < LR_LISTMODE_GROUPS; g++) {
            groups[g] = first + sum;
            for (int64_t part = 0; part * arranging.part < count; part++) {
                const int64_t here = arranging.places[part][g];
                arranging.places[part][g] = sum;
                sum += here;
            }
        }
        groups[LR_LISTMODE_GROUPS] = first + sum;
        lr_parallel_for(threads, count, arranging.part, move_to_groups, &arranging);
        const double partitioned = lr_clock_seconds();
        events->partition_seconds += partitioned - start;

        for (int g = 0; g < LR_LISTMODE_GROUPS; g++) {
            if (lr_listmode_group_has_tof(g))
                lr_listmode_sort_tickets(tickets[0] + (groups[g] - first), tickets[1], groups[g + 1] - groups[g],
                                         threads);
        }
        events->sort_seconds += lr_clock_seconds() - partitioned;
        lr_parallel_for(threads, count, COPIED_AT_ONCE, copy_events, &arranging);
    }
    lr_free_all(tickets[0], tickets[1]);
    return events->is_arranged ? LR_OK : LR_FAILED;
}
