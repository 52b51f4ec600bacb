/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon --operator listmode: single events, and the corrections of each event. */
#include "cli/recon/measurement.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds corrections or additive terms to the checkpoint's digest. Afterwards a rank keeps only its share of them. */
static void digest_numbers(struct measurement *measured, const float *numbers, int64_t count)
{
    if (measured->request->checkpoint != NULL)
        measured->beside = recon_digest(measured->beside, numbers, count * (int64_t)sizeof(*numbers));
}

static lr_status read_corrections(struct measurement *measured)
{
    const struct recon_request *request = measured->request;
    struct report *report = measured->setup.report;
    if (request->corrections == NULL) return LR_OK;
    measured->corrections = lr_event_corrections_read(request->corrections, measured->setup.lors, &report->log);
    if (measured->corrections == NULL) return report_reason(report);
    const lr_event_corrections *corrections = measured->corrections;
    digest_numbers(measured, corrections->factors, corrections->count);
    digest_numbers(measured, corrections->additive, corrections->count);
    digest_numbers(measured, corrections->lors->values, corrections->lors->count);
    measured->sensitivity_factors = lr_lor_data_source(corrections->lors);
    measured->setup.params.factors = &measured->sensitivity_factors;

    /* Entry number k of the file belongs to event number k, so the file must have one entry for each event. */
    const lr_event_counts *counts = &measured->events;
    const int64_t count = measured->list != NULL ? measured->list->count : measured->share.handed;
    const bool is_part = request->source.until_damage && count < corrections->count;
    if (measured->events_format != LR_EVENTS_GE) {
        return report_error(report, LR_USAGE, "%s: --corrections belongs to GE list mode (.BLF), and this is %s",
                            request->events, lr_events_format_name(measured->events_format));
    }
    if (counts->unknown_crystals > 0 || (count != corrections->count && !is_part)) {
        return report_error(report, LR_BAD_INPUT,
                            "%s: has corrections of %lld events, and %s has %lld, of which the scanner lacks the "
                            "crystals of %lld: give the file that belongs to the list, and the list's scanner",
                            request->corrections, (long long)corrections->count, request->events,
                            (long long)(count + counts->unknown_crystals), (long long)counts->unknown_crystals);
    }
    return LR_OK;
}

/* The number of events whose LORs one call finds. */
enum { LORS_AT_ONCE = 1 << 20 };

/* Removes delayeds, and prompts out of coincidence, because the sensitivity does not count them. Most files have no
 * such events. */
static lr_status keep_prompts(struct measurement *measured)
{
    lr_event_list *list = measured->list;
    lr_event_corrections *corrections = measured->corrections;
    const lr_event_span all = {list->events, list->count, measured->setup.params.threads};
    if (list->info.counts.delayeds == 0 &&
        (list->are_joined || lr_events_count_joined(measured->setup.lors, &all) == list->count))
        return LR_OK;

    int64_t *lors = malloc(LORS_AT_ONCE * sizeof(*lors));
    int64_t kept = 0;
    if (lors == NULL) return report_error(measured->setup.report, LR_FAILED, "no memory for LORs of events");
    for (int64_t first = 0; first < list->count; first += LORS_AT_ONCE) {
        const int64_t left = list->count - first;
        const lr_event_span span = {list->events + first, left < LORS_AT_ONCE ? left : LORS_AT_ONCE,
                                    measured->setup.params.threads};
        const int64_t joined = lr_events_lors(measured->setup.lors, &span, lors);
        if (kept == first && joined == span.count && list->info.counts.delayeds == 0) { /* no event has to be moved */
            kept += joined;
            continue;
        }
        for (int64_t k = 0; k < span.count; k++) {
            const bool counts = !span.events[k].is_delayed && lors[k] >= 0;
            list->info.counts.not_in_coincidence += !span.events[k].is_delayed && !counts;
            if (counts && kept < first + k) {
                list->events[kept] = list->events[first + k];
                if (corrections != NULL) {
                    corrections->factors[kept] = corrections->factors[first + k];
                    corrections->additive[kept] = corrections->additive[first + k];
                }
            }
            kept += counts;
        }
    }
    free(lors);
    list->count = kept;
    return LR_OK;
}

/* Moves delayeds to separate LOR data, keeps only prompts in coincidence, and orders them by subsets. */
static lr_status sort_events(struct measurement *measured)
{
    lr_event_list *list = measured->list;
    if (list->info.counts.delayeds > 0 && measured->request->additive == NULL) {
        const lr_log *log = &measured->setup.report->log;
        int64_t count = 0;
        int64_t *lors = malloc((size_t)(list->count > 0 ? list->count : 1) * sizeof(*lors));
        if (lors == NULL) return report_error(measured->setup.report, LR_FAILED, "no memory for the delayeds");
        for (int64_t n = 0; n < list->count; n++) {
            const lr_event *event = &list->events[n];
            if (event->is_delayed)
                lors[count++] = lr_lors_number(measured->setup.lors, event->crystals[0], event->crystals[1]);
        }
        measured->delayeds = lr_lor_data_bin(lors, count, log);
        free(lors);
        CLI_TRY(measured->delayeds != NULL ? LR_OK : report_reason(measured->setup.report));
    }

    CLI_TRY(keep_prompts(measured));
    measured->events = list->info.counts;
    if (measured->request->num_intervals == 0) measurement_say_events(measured);
    measured->digest = 0;
    for (int64_t k = 0; measured->request->checkpoint != NULL && k < list->count; k++)
        recon_digest_event(&measured->digest, &list->events[k]);
    if (list->count == 0) {
        return report_error(measured->setup.report, LR_BAD_INPUT,
                            "%s: holds no prompts in coincidence, of which no image comes", measured->request->events);
    }
    measurement_limit_subsets(measured, list->count);
    if (measured->subsets > list->count) {
        return report_error(measured->setup.report, LR_USAGE,
                            "%d subsets: they are made of ranges of events, of which there are "
                            "%lld; give 1 to that many, and far fewer for an image",
                            measured->subsets, (long long)list->count);
    }
    if (!measurement_interleaves_events(measured)) return LR_OK;

    /* Event k goes to subset k mod subsets, with its corrections. */
    lr_event_corrections *corrections = measured->corrections;
    void *const arrays[3] = {list->events, corrections != NULL ? corrections->factors : NULL,
                             corrections != NULL ? corrections->additive : NULL};
    for (int a = 0; a < 3; a++) {
        const size_t bytes = a == 0 ? sizeof(lr_event) : sizeof(float);
        char *items = arrays[a], *ordered = items != NULL ? malloc((size_t)list->count * bytes) : NULL, *to = ordered;
        if (items == NULL) continue;
        if (ordered == NULL) return report_error(measured->setup.report, LR_FAILED, "no memory to deal events");
        for (int first = 0; first < measured->subsets; first++)
            for (int64_t k = first; k < list->count; k += measured->subsets, to += bytes)
                memcpy(to, items + (size_t)k * bytes, bytes);
        memcpy(items, ordered, (size_t)list->count * bytes);
        free(ordered);
    }
    return LR_OK;
}

/* Sets the datum of each event to the weight of the event. The weight is 1, unless the event was measured several
   times. */
static void weigh_events(void *user)
{
    const struct measurement *measured = user;
    const lr_event_list *list = measured->list;
    lr_events_weights(&(lr_event_span){list->events, list->count, measured->setup.params.threads},
                      measured->data->values);
}

/* Finds the additive term of each event: expected randoms and scatter. */
static lr_status find_additive(struct measurement *measured)
{
    const struct recon_request *request = measured->request;
    struct report *report = measured->setup.report;
    const lr_lors *lors = measured->setup.lors;
    const lr_event_list *list = measured->list;
    /* The number of delayeds at each crystal, of all ranks. NULL = there are no delayeds, or a single process has their
     * list. */
    const struct event_share *share = &measured->share;
    const double *ends =
        share->frames != NULL ? share->frames[request->num_intervals > 0 ? measured->frame : 0].ends : NULL;
    const bool has_file = request->additive != NULL || measured->corrections != NULL;
    const bool is_measured = ends != NULL || (measured->delayeds != NULL && measured->delayeds->count > 0);
    if (!has_file && !(is_measured && request->randoms != RECON_RANDOMS_NONE)) return LR_OK;

    /* The length in mm along a LOR over which its randoms are spread evenly; 0 = not known. */
    const lr_events_info *info = &list->info;
    const double window = !measured->has_tof ? 1.0
                          : info->num_tof_bins > 0
                              ? (double)info->tof_edges_mm[info->num_tof_bins] - (double)info->tof_edges_mm[0]
                              : info->tof_range_mm;
    if (measured->corrections == NULL && !(window > 0)) {
        return report_error(report, LR_USAGE,
                            "%s: the width of its coincidence window is not known, over which "
                            "randoms are spread: --without-tof, or --randoms none",
                            request->events);
    }
    lr_lor_data *whole = NULL;
    if (!has_file) {
        measured->randoms = ends != NULL ? lr_randoms_of_ends(lors, ends, &report->log)
                                         : lr_randoms_estimate(lors, measured->delayeds, &report->log);
        if (measured->randoms == NULL) return report_reason(report);
        measured->additive_sum = measured->randoms->delayeds;
    }
    measured->additive = lr_lor_data_create(lr_operator_get_info(measured->setup.op)->lors, &report->log);
    if (measured->additive == NULL) return report_reason(report);
    if (measured->corrections != NULL) {
        memcpy(measured->additive->values, measured->corrections->additive, (size_t)list->count * sizeof(float));
        return LR_OK;
    }
    if (has_file) {
        lr_lor_data *data = lr_lor_data_read(request->additive, lors, &report->log);
        if (data != NULL) whole = lr_lor_data_expand(data, lors, &report->log);
        lr_lor_data_destroy(data);
        if (whole == NULL) return report_reason(report);
        measured->additive_sum = common_sum(whole->values, whole->count);
        digest_numbers(measured, whole->values, whole->count);
    }
    for (int64_t k = 0; k < list->count; k++) {
        const int32_t *crystals = list->events[k].crystals;
        if (whole != NULL) {
            const int64_t lor = lr_lors_number(lors, crystals[0], crystals[1]);
            measured->additive->values[k] = (float)(whole->values[lor] / window);
        } else {
            const lr_crystal_product *product = &measured->randoms->product;
            measured->additive->values[k] =
                (float)(product->scale * product->values[crystals[0]] * product->values[crystals[1]] / window);
        }
    }
    lr_lor_data_destroy(whole);
    return LR_OK;
}

/* Checks that all frames have prompts, and chooses the frames of this run. If --part is given, each part has about the
 * same number of prompts. */
static lr_status check_frames(struct measurement *measured)
{
    const struct recon_request *request = measured->request;
    struct report *report = measured->setup.report;
    const int count = request->num_intervals;
    measured->frame_prompts = calloc((size_t)count, sizeof(*measured->frame_prompts));
    double *costs = calloc((size_t)count, sizeof(*costs));
    lr_status status = LR_OK;
    if (measured->frame_prompts == NULL || costs == NULL) {
        status = report_error(report, LR_FAILED, "no memory for %d frames", count);
        goto done;
    }
    measurement_say_events(measured);

    /* The times of the first and the last event are needed, and the number of prompts in each frame. */
    const struct event_share *share = &measured->share;
    const lr_event_list *list = measured->list; /* NULL on ranks that have made only the first pass through the file */
    double times_s[2] = {INFINITY, 0};
    if (share->frames != NULL) { /* share->frames has counts of all ranks */
        times_s[0] = share->times_s[0];
        times_s[1] = share->times_s[1];
        for (int k = 0; k < count; k++) measured->frame_prompts[k] = share->frames[k].prompts;
    } else {
        for (int64_t n = 0; n < list->count; n++) {
            times_s[0] = fmin(times_s[0], list->events[n].time_ms * 1e-3);
            times_s[1] = fmax(times_s[1], list->events[n].time_ms * 1e-3);
        }
        for (int k = 0; k < count; k++)
            for (int64_t n = 0; n < list->count; n++)
                measured->frame_prompts[k] +=
                    !list->events[n].is_delayed && recon_interval_has(&request->intervals[k], &list->events[n]);
    }
    for (int k = 0; k < count; k++) {
        costs[k] = (double)measured->frame_prompts[k];
        if (measured->frame_prompts[k] == 0) {
            status = report_error(report, LR_BAD_INPUT,
                                  "%s: frame %d, from %g s to %g s, holds no prompts: events are from %g s "
                                  "to %g s; change --frames or --frames-from",
                                  request->events, k + 1, request->intervals[k].begin_s, request->intervals[k].end_s,
                                  times_s[0], times_s[1]);
            goto done;
        }
    }

    /* The measurement may be shorter than the frames. */
    const struct recon_interval *last = &request->intervals[count - 1];
    const double duration_s = list != NULL ? list->info.duration_s : measured->share.duration_s;
    const double end_s = fmax(times_s[1], duration_s), left_s = last->end_s - end_s;
    if (left_s > 0.02 * (last->end_s - last->begin_s)) {
        report_warn(report,
                    "frame %d is from %g s to %g s, and events end at %g s: it has no events of its last %.3g s", count,
                    last->begin_s, last->end_s, end_s, left_s);
    }
    double framed = 0;
    for (int k = 0; k < count; k++) framed += costs[k];
    if (framed < 0.5 * (double)measured->events.prompts && request->intervals[0].begin_s == 0) {
        report_warn(report,
                    "%.3g %% of the prompts lie in no frame: the frames are from %g s to %g s, and events from %g s to "
                    "%g s: are the lengths of --frames in seconds?",
                    100 - 100 * framed / (double)measured->events.prompts, request->intervals[0].begin_s, last->end_s,
                    times_s[0], times_s[1]);
    }
    measured->frame_range[0] = 0;
    measured->frame_range[1] = count;
    if (request->part[1] > 0) lr_share_range(costs, count, request->part, measured->frame_range);
done:
    free(costs);
    return status;
}

/* Frees the events after the operator has copied their data. This is done in the background, because freeing much
 * memory would delay the first iteration. */
static void drop_events(void *user)
{
    lr_event_list_drop(((struct measurement *)user)->list);
}

/* Opens the data and the operator for the list of events and its delayeds. */
static lr_status open_events(struct measurement *measured)
{
    static const char *const kernels[] = {"tubes of response", "thin lines", "exact elements"};
    struct setup *setup = &measured->setup;
    lr_listmode_params *params = &measured->listmode;
    CLI_TRY(measured->share.frames != NULL ? event_share_open(measured) : sort_events(measured));
    const lr_event_list *list = measured->list;
    const lr_lors events = {.count = list->count};
    measured->data = lr_lor_data_create(&events, &setup->report->log);
    if (measured->data == NULL) return report_reason(setup->report);
    struct lr_background weighing = {.body = NULL};
    lr_background_start(&weighing, weigh_events, measured);

    params->events = list->events;
    params->count = list->count;
    params->info = measured->has_tof ? &list->info : NULL;
    params->num_ranges = measured->subsets;
    params->ranges = measured->ranges;
    params->factors = setup->params.factors; /* factors from corrections are known only after the events */
    params->event_factors = measured->corrections != NULL ? measured->corrections->factors : NULL;
    params->progress = measured->progress;
    lr_status status = LR_OK;
    if (params->factors != NULL) /* no other thread may use the factors at the same time */
        status = early_sensitivity_wait(&measured->early, params->progress, params->log);
    if (status == LR_OK) {
        params->sensitivity_of = early_sensitivity_of(&measured->early);
        if (params->sensitivity_of == NULL) params->sensitivity_of = measured->first_op;
        setup->op = lr_listmode_create(params);
        if (setup->op == NULL) status = report_reason(setup->report);
    }
    lr_background_wait(&weighing);
    CLI_TRY(status);
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    const lr_listmode_info *listmode = lr_listmode_get_info(setup->op);
    report_info(setup->report, "%lld events, %s time of flight, %s; backend %s, %s", (long long)listmode->count,
                measured->has_tof ? "with" : "without",
                listmode->blobs.radius_mm > 0 ? "blobs" : kernels[listmode->kernel], info->backend, info->device);
    CLI_TRY(find_additive(measured));
    if (measured->request->num_intervals == 0) lr_background_start(&measured->freeing, drop_events, measured);
    return LR_OK;
}

static lr_status open(struct measurement *measured, struct cli_args *args)
{
    const bool has_frames = measured->request->num_intervals > 0, is_shared = measured->cluster.comm != NULL;
    CLI_TRY(measurement_open_scanner(measured, args));
    CLI_TRY(measurement_read_factors(measured));
    /* These parameters do not depend on the events. */
    const struct setup *setup = &measured->setup;
    lr_listmode_params *params = &measured->listmode;
    *params = measured->request->listmode;
    measured->blobs.radius_mm = measured->request->blob_radius_mm;
    params->blobs = measured->request->has_blobs ? &measured->blobs : NULL;
    params->no_solid_angles = measured->request->corrections != NULL; /* a normalisation contains solid angles */
    params->lors = setup->lors;
    params->grid = &setup->grid;
    params->sensitivity_part = measured->cluster.rank;
    params->sensitivity_parts = measured->cluster.size;
    memcpy(params->samples, setup->params.samples, sizeof(params->samples));
    params->factors = setup->params.factors;
    params->backend = setup->params.backend;
    params->threads = setup->params.threads;
    params->device = setup->params.device;
    params->max_memory_bytes = setup->params.max_memory_bytes;
    params->log = &setup->report->log;

    early_sensitivity_begin(&measured->early, &measured->listmode, measured->request->corrections != NULL);
    if (is_shared) {
        CLI_TRY(event_share_survey(measured));
    } else {
        const lr_events_source source = measurement_events_source(measured);
        measured->list = lr_event_list_read_joined(&source, setup->lors);
        if (measured->list == NULL) return report_reason(setup->report);
        if (measured->request->bootstraps) {
            const double before = measured->list->info.weight;
            CLI_TRY(lr_event_list_bootstrap(measured->list, measured->request->bootstrap_seed, params->log));
            measurement_say_replicate(measured, before, measured->list->info.weight);
        }
        measured->events = measured->list->info.counts;
        measured->events_format = measured->list->info.format;
    }
    CLI_TRY(read_corrections(measured));
    CLI_TRY(has_frames ? check_frames(measured) : LR_OK);
    CLI_TRY(is_shared ? event_share_take(measured) : LR_OK);
    /* A time resolution on the command line replaces that of the file. */
    lr_events_info *info = &measured->list->info;
    const double asked = measured->request->tof_ps;
    const double least_ps = 10, most_ps = 5000; /* the limits of `scanner check` */
    if (asked > 0 && !(asked >= least_ps && asked <= most_ps)) {
        report_warn(measured->setup.report,
                    "--tof-ps %g: time resolutions are between %g and %g ps: is it in picoseconds?", asked, least_ps,
                    most_ps);
    }
    const double stated = info->tof_resolution_ps > 0 ? info->tof_resolution_ps : setup->scanner->tof_resolution_ps;
    if (asked > 0 && stated > 0 && info->has_tof && (asked > 2 * stated || stated > 2 * asked)) {
        report_warn(measured->setup.report,
                    "--tof-ps %g: %s has a time resolution of %g ps: leave out --tof-ps, unless that is known to be "
                    "wrong",
                    asked, info->tof_resolution_ps > 0 ? measured->request->events : "the scanner", stated);
    }
    if (asked > 0) {
        info->tof_resolution_ps = asked;
        for (int k = 0; info->kinds.tof != NULL && k < info->kinds.count * info->kinds.count; k++)
            info->kinds.tof[k].resolution_ps = asked;
    }
    measured->beside = recon_digest(measured->beside, &info->tof_resolution_ps, sizeof(info->tof_resolution_ps));
    for (int k = 0; info->kinds.tof != NULL && k < info->kinds.count * info->kinds.count; k++) {
        const double resolution_ps = info->kinds.tof[k].resolution_ps;
        measured->beside = recon_digest(measured->beside, &resolution_ps, sizeof(resolution_ps));
    }
    if (asked > 0 && !info->has_tof) {
        report_warn(measured->setup.report, "--tof-ps %g has no effect: %s has no times of flight", asked,
                    measured->request->events);
    }
    measured->has_tof = info->has_tof && !measured->request->without_tof;

    /* The kernels assume lines between two crystals without other crystals in between. */
    const lr_scanner *scanner = measured->setup.scanner;
    bool has_layers = false;
    for (int m = 0; m < scanner->num_modules; m++) has_layers = has_layers || scanner->modules[m].layer > 0;
    if (has_layers) {
        report_warn(measured->setup.report,
                    "list mode counts each layer of crystals as if it were the only one: give what "
                    "share of photons each has by --efficiencies, or reconstruct counts per LOR, "
                    "where crystals stop photons along their depth");
    }
    CLI_TRY(measurement_compare_contents(measured, "file of what is known of events", measured->beside));
    CLI_TRY(measurement_read_images(measured));
    if (has_frames) {
        measured->all_events = measured->list;
        measured->list = NULL;
        return LR_OK;
    }
    return open_events(measured);
}

static lr_status open_frame(struct measurement *measured, int k)
{
    const lr_event_list *all = measured->all_events;
    const struct recon_interval *interval = &measured->request->intervals[k];
    const struct event_share_frame *own = measured->share.frames != NULL ? &measured->share.frames[k] : NULL;
    report_info(measured->setup.report, "frame %d of %d, from %g s to %g s: %lld prompts", k + 1,
                measured->request->num_intervals, interval->begin_s, interval->end_s,
                (long long)measured->frame_prompts[k]);
    measured->frame = k;

    /* Copies the events of this frame. If there are several ranks, the list has only this rank's events, and those of a
       frame are consecutive. */
    int64_t count = own != NULL ? own->ranges[measured->subsets] : 0;
    for (int64_t n = 0; own == NULL && n < all->count; n++) count += recon_interval_has(interval, &all->events[n]);
    lr_event_list *list = calloc(1, sizeof(*list));
    measured->list = list;
    if (list != NULL) list->events = malloc(((size_t)count + 1) * sizeof(*list->events));
    if (list == NULL || list->events == NULL)
        return report_error(measured->setup.report, LR_FAILED, "no memory for the events of a frame");
    list->info = all->info; /* including the counts of the whole file */
    list->count = own != NULL ? count : 0;
    if (own != NULL) memcpy(list->events, all->events + own->first, (size_t)count * sizeof(lr_event));
    for (int64_t n = 0; own == NULL && n < all->count; n++)
        if (recon_interval_has(interval, &all->events[n])) list->events[list->count++] = all->events[n];
    CLI_TRY(open_events(measured));
    measured->frame_prompts[k] = own != NULL ? own->kept : measured->list->count;
    return LR_OK;
}

static void close_frame(struct measurement *measured)
{
    if (measured->first_op == NULL)
        measured->first_op = measured->setup.op;
    else
        lr_operator_destroy(measured->setup.op);
    measured->setup.op = NULL;
    if (measured->list != NULL) {
        free(measured->list->events);
        free(measured->list);
        measured->list = NULL;
    }
    measurement_drop_data(measured);
}

static int describe(const struct measurement *measured, char *text, size_t size)
{
    const lr_listmode_info *info = lr_listmode_get_info(measured->setup.op);
    return snprintf(
        text, size, "; kernel %d%s%s %.9g %.9g; blobs of %.9g mm; times of flight %s; sensitivity of %lld lines",
        (int)info->kernel, info->tube.as_paper ? " as in the paper" : "",
        info->has_solid_angles ? "" : " without solid angles", info->tube.width_mm, info->tube.fwhm_mm,
        info->blobs.radius_mm, measured->has_tof ? "yes" : "no", (long long)measured->listmode.sensitivity_lines);
}

const struct measurement_kind events_kind = {
    .open = open, .open_frame = open_frame, .close_frame = close_frame, .describe = describe};
