/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/path.h"
#include "common.h"
#include "verbs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A list-mode file that the command line names, and its scanner. */
struct opened {
    struct report *report;
    lr_events_source source;
    lr_scanner *scanner;
    const char *scanner_path; /* the preset or file that `scanner` was read from */
    lr_lors *lors;
    lr_events_info info;
};

static void close_opened(struct opened *opened)
{
    lr_events_info_finish(&opened->info);
    lr_lors_destroy(opened->lors);
    lr_scanner_destroy(opened->scanner);
}

/* Opens the named scanner. If no name is given, opens the scanner that a PETSIRD file or a crystal map describes, or
 * leaves it NULL. */
static lr_status open_scanner(struct opened *opened, const char *name)
{
    const lr_events_source *source = &opened->source;
    const bool is_map = source->format != LR_EVENTS_SIEMENS; /* the companion of Siemens list mode is a header */
    const char *path = name != NULL ? name : common_events_scanner(source->path, is_map ? source->companion : NULL);
    if (path == NULL) return LR_OK;
    opened->scanner_path = path;
    opened->scanner = lr_scanner_read(path, &opened->report->log);
    opened->source.scanner = opened->scanner;
    return opened->scanner != NULL ? LR_OK : report_reason(opened->report);
}

static lr_events_source source_of(struct cli_args *args, const char *path)
{
    lr_events_source source = common_events_source(args, path);
    if (source.format == LR_EVENTS_UNKNOWN) source.format = lr_events_recognise(path);
    return source;
}

/* Opens the scanner and numbers its LORs. It is an error if there is no scanner, because events do not give the
   positions of crystals. */
static lr_status open_lors(struct opened *opened, struct cli_args *args)
{
    const lr_events_source *source = &opened->source;
    if (source->format == LR_EVENTS_UNKNOWN) {
        (void)lr_events_read(source, NULL, NULL); /* reports the reason */
        return report_reason(opened->report);
    }
    CLI_TRY(open_scanner(opened, args_text(args, "--scanner")));
    if (opened->scanner == NULL) {
        return report_error(opened->report, LR_USAGE, "%s names no places of crystals: give its --scanner",
                            source->path);
    }
    opened->lors = lr_lors_create_watched(opened->scanner, &opened->report->progress, &opened->report->log);
    return opened->lors != NULL ? LR_OK : report_reason(opened->report);
}

static struct opened read_command(struct cli_args *args, int positionals)
{
    struct opened opened = {.report = args->report};
    if (args->num_positional != positionals) {
        args_complain(args, "%s needs %s", args->verb->name, args->verb->positionals);
        return opened;
    }
    opened.source = source_of(args, args->positional[0]);
    return opened;
}

/* --- show --- */

/* Sums over all events. The library's reader does not report these sums. */
struct tally {
    double tof_low_mm, tof_high_mm;
    int64_t events;
    double weight[2]; /* sums of weights; [0]: of prompts, [1]: of delayeds */
};

static lr_status tally_events(void *user, const lr_event *events, int64_t count)
{
    struct tally *tally = user;
    for (int64_t k = 0; k < count; k++) {
        tally->tof_low_mm = fmin(tally->tof_low_mm, events[k].tof_mm);
        tally->tof_high_mm = fmax(tally->tof_high_mm, events[k].tof_mm);
        tally->weight[events[k].is_delayed ? 1 : 0] += events[k].weight;
    }
    tally->events += count;
    return LR_OK;
}

static void print_tof(const lr_events_info *info, const struct tally *tally)
{
    const lr_event_kinds *kinds = &info->kinds;
    if (!info->has_tof) {
        puts("time of flight none");
        return;
    }
    printf("time of flight ");
    if (kinds->count > 0) printf("by module types; ");
    if (info->num_tof_bins > 0) {
        printf("%d bins of %.6g mm from %g to %g mm; ", info->num_tof_bins, lr_events_info_tof_bin_mm(info),
               info->tof_edges_mm[0], info->tof_edges_mm[info->num_tof_bins]);
    } else if (info->tof_bin_mm > 0) {
        printf("bins of %.6g mm; ", info->tof_bin_mm);
    }
    if (info->tof_resolution_ps > 0) printf("%.6g ps FWHM; ", info->tof_resolution_ps);
    if (tally->tof_low_mm <= tally->tof_high_mm)
        printf("events %g to %g mm from the middle\n", tally->tof_low_mm, tally->tof_high_mm);
    else
        printf("no events\n");
    for (int k = 0; k < kinds->count * kinds->count; k++) {
        const lr_tof_bins *bins = &kinds->tof[k];
        printf("  types %d, %d   ", k / kinds->count, k % kinds->count);
        if (bins->num_bins < 2) {
            puts("none");
            continue;
        }
        printf("%d bins of %.6g mm from %g to %g mm; ", bins->num_bins, lr_tof_bin_mm(bins->edges_mm, bins->num_bins),
               bins->edges_mm[0], bins->edges_mm[bins->num_bins]);
        if (bins->resolution_ps > 0)
            printf("%.6g ps FWHM\n", bins->resolution_ps);
        else
            puts("resolution not known");
    }
}

static lr_status run_show(struct cli_args *args)
{
    struct opened opened = read_command(args, 1);
    struct tally tally = {.tof_low_mm = INFINITY, .tof_high_mm = -INFINITY};
    const lr_event_sink sink = {.take = tally_events, .user = &tally};
    lr_status status = args->status;
    if (status == LR_OK) {
        const char *scanner = args_text(args, "--scanner");
        const bool needs_one = scanner != NULL || opened.source.format == LR_EVENTS_SAFIR;
        status = needs_one ? open_scanner(&opened, scanner) : LR_OK;
    }
    if (status == LR_OK) status = lr_events_read(&opened.source, &sink, &opened.info);
    if (status == LR_OK && args->report->json) {
        const lr_events_info *info = &opened.info;
        const lr_event_counts *counts = &info->counts;
        struct json json = common_json_begin(stdout, "events show");
        json_text(&json, "format", lr_events_format_name(info->format));
        json_text(&json, "format_version", info->version[0] != '\0' ? info->version : NULL);
        json_text(&json, "scanner", info->scanner[0] != '\0' ? info->scanner : NULL);
        json_int(&json, "prompts", counts->prompts);
        json_int(&json, "delayeds", counts->delayeds);
        json_number(&json, "counts", tally.weight[0] + tally.weight[1]);
        json_int(&json, "unknown_crystals", counts->unknown_crystals);
        json_int(&json, "excluded_pairs", counts->excluded_pairs);
        json_int(&json, "repeated", counts->repeated);
        json_int(&json, "time_marks", counts->time_marks);
        json_int(&json, "other_words", counts->other_words);
        json_number(&json, "duration_s", info->duration_s);
        json_bool(&json, "has_tof", info->has_tof);
        json_int(&json, "num_tof_bins", info->num_tof_bins);
        json_number(&json, "tof_bin_mm", lr_events_info_tof_bin_mm(info));
        json_number(&json, "tof_resolution_ps", info->tof_resolution_ps > 0 ? info->tof_resolution_ps : NAN);
        if (info->energy_kev[1] > 0)
            json_numbers(&json, "energy_kev", info->energy_kev, 2);
        else
            json_number(&json, "energy_kev", NAN);
        json_open(&json, "module_types", '[');
        for (int k = 0; k < info->kinds.count; k++) {
            json_open(&json, NULL, '{');
            json_numbers(&json, "energy_kev", info->kinds.energy_kev[k], 2);
            json_open(&json, "tof", '[');
            for (int l = 0; l < info->kinds.count; l++) {
                const lr_tof_bins *bins = &info->kinds.tof[k * info->kinds.count + l];
                json_open(&json, NULL, '{');
                json_int(&json, "num_bins", bins->num_bins);
                json_number(&json, "bin_mm", lr_tof_bin_mm(bins->edges_mm, bins->num_bins));
                json_number(&json, "low_mm", bins->num_bins > 0 ? bins->edges_mm[0] : NAN);
                json_number(&json, "high_mm", bins->num_bins > 0 ? bins->edges_mm[bins->num_bins] : NAN);
                json_number(&json, "resolution_ps", bins->resolution_ps > 0 ? bins->resolution_ps : NAN);
                json_close(&json, '}');
            }
            json_close(&json, ']');
            json_close(&json, '}');
        }
        json_close(&json, ']');
        common_json_end(&json);
    } else if (status == LR_OK) {
        const lr_event_counts *counts = &opened.info.counts;
        printf("format         %s%s%s\n", lr_events_format_name(opened.info.format),
               opened.info.version[0] != '\0' ? ", " : "", opened.info.version);
        printf("scanner        %s\n", opened.info.scanner[0] != '\0' ? opened.info.scanner : "not named");
        printf("prompts        %lld\n", (long long)counts->prompts);
        printf("delayeds       %lld\n", (long long)counts->delayeds);
        if (tally.weight[0] + tally.weight[1] != (double)tally.events)
            printf("counts         %.9g\n", tally.weight[0] + tally.weight[1]);
        printf("left out       %lld of unknown crystals\n", (long long)counts->unknown_crystals);
        if (counts->excluded_pairs > 0) {
            printf("pairs          %lld of modules that the file puts out of coincidence\n",
                   (long long)counts->excluded_pairs);
        }
        if (counts->repeated > 0)
            printf("repeated       %lld in lists that stand there twice, left out\n", (long long)counts->repeated);
        printf("time marks     %lld\n", (long long)counts->time_marks);
        printf("duration       %.6g s\n", opened.info.duration_s);
        print_tof(&opened.info, &tally);
        const lr_event_kinds *kinds = &opened.info.kinds;
        if (opened.info.energy_kev[1] > 0)
            printf("energies       %g to %g keV\n", opened.info.energy_kev[0], opened.info.energy_kev[1]);
        for (int k = 0; opened.info.energy_kev[1] <= 0 && k < kinds->count; k++)
            printf("energies       %g to %g keV of module type %d\n", kinds->energy_kev[k][0], kinds->energy_kev[k][1],
                   k);
    }
    close_opened(&opened);
    return status;
}

/* --- convert --- */

static lr_status run_convert(struct cli_args *args)
{
    static const int minors[] = {12, 10, 9};
    const lr_log *log = &args->report->log;
    struct opened opened = read_command(args, 2);
    const lr_event_counts *counts = &opened.info.counts;
    const char *output = args->num_positional == 2 ? args->positional[1] : NULL;
    const int version = args_word(args, "--petsird-version", NULL, 0);
    const bool histogram = args_has(args, "--histogram");
    const bool counts_lors = histogram || (output != NULL && lr_path_ends_in(output, common_data_endings));
    lr_events_info before = {0};
    if (histogram && output != NULL && !lr_path_ends(output, ".Cdh"))
        args_complain(args, "--histogram belongs to CASToR, whose headers end in .Cdh");
    if (args_has(args, "--petsird-version") && output != NULL && !lr_path_ends(output, ".petsird"))
        args_complain(args, "--petsird-version belongs to a PETSIRD file (.petsird)");
    lr_status status = args->status;
    if (status == LR_OK) status = open_lors(&opened, args);
    if (status != LR_OK) goto finish;

    if (counts_lors) {
        lr_prompts_delayeds data;
        status = lr_events_bin(&opened.source, opened.lors, &data, &opened.info);
        if (status != LR_OK) goto finish;
        status = histogram ? lr_castor_histogram_write(
                                 output, opened.lors, &(lr_castor_histogram){data.prompts, opened.info.duration_s}, log)
                           : lr_lor_data_write(output, opened.lors, data.prompts, log);
        if (status == LR_OK && counts->delayeds > 0) {
            report_info(args->report, "%s has the prompts: loraster factors --events %s makes randoms of the delayeds",
                        output, opened.source.path);
        }
        lr_lor_data_destroy(data.prompts);
        lr_lor_data_destroy(data.delayeds);
    } else {
        status = lr_events_read(&opened.source, NULL, &before);
        if (args_has(args, "--without-tof")) {
            before.has_tof = false;
            before.num_tof_bins = 0;
            before.tof_bin_mm = 0;
            for (int k = 0; k < before.kinds.count * before.kinds.count; k++) {
                before.kinds.tof[k].num_bins = 0;
                before.kinds.tof[k].resolution_ps = 0;
            }
        }
        if (status != LR_OK) goto finish;
        lr_events_writer *writer = lr_events_writer_create(&(lr_events_writer_params){
            .path = output, .lors = opened.lors, .info = &before, .petsird_minor = minors[version], .log = log});
        status = writer != NULL ? LR_OK : report_reason(args->report);
        if (status != LR_OK) goto finish;
        const lr_event_sink sink = lr_events_writer_sink(writer);
        status = lr_events_read(&opened.source, &sink, &opened.info);
        if (status == LR_OK)
            status = lr_events_writer_finish(writer);
        else
            lr_events_writer_abandon(writer);
    }
    if (status != LR_OK) goto finish;

    report_clear(args->report);
    if (args->report->json) {
        struct json json = common_json_begin(stdout, "events convert");
        json_text(&json, "output", output);
        json_int(&json, "prompts", counts->prompts);
        json_int(&json, "delayeds", counts->delayeds);
        json_int(&json, "unknown_crystals", counts->unknown_crystals);
        json_int(&json, "not_in_coincidence", counts->not_in_coincidence);
        common_json_end(&json);
    } else {
        printf("%s: %lld prompts and %lld delayeds of %s", output, (long long)counts->prompts,
               (long long)counts->delayeds, opened.source.path);
        if (counts->unknown_crystals > 0)
            printf(", without %lld of unknown crystals", (long long)counts->unknown_crystals);
        printf("; crystals are numbered as in %s\n", opened.scanner_path);
    }

finish:
    lr_events_info_finish(&before);
    close_opened(&opened);
    return status;
}

/* --- merge --- */

/* Lists that are written one after the other. */
struct merge {
    struct report *report;
    lr_event_sink to;
    const char *path;          /* the list that is read now */
    uint64_t from_ms, last_ms; /* from_ms: end of the previous lists; last_ms: latest time so far */
};

static lr_status take_later(void *user, const lr_event *events, int64_t count)
{
    enum { AT_ONCE = 4096 };
    struct merge *merge = user;
    lr_event later[AT_ONCE];
    lr_status status = LR_OK;
    for (int64_t first = 0; status == LR_OK && first < count; first += AT_ONCE) {
        const int64_t some = count - first < AT_ONCE ? count - first : AT_ONCE;
        memcpy(later, events + first, (size_t)some * sizeof(*later));
        for (int64_t k = 0; k < some; k++) {
            const uint64_t time_ms = merge->from_ms + later[k].time_ms;
            if (time_ms > UINT32_MAX) {
                return report_error(merge->report, LR_BAD_INPUT,
                                    "%s has an event that would come %.1f days after the start of the first list, and "
                                    "lists hold times up to 49.7 days: merge fewer lists into one file",
                                    merge->path, (double)time_ms / 86400e3);
            }
            merge->last_ms = time_ms > merge->last_ms ? time_ms : merge->last_ms;
            later[k].time_ms = (uint32_t)time_ms;
        }
        status = merge->to.take(merge->to.user, later, some);
    }
    return status;
}

static bool same_bins(const lr_tof_bins *a, const lr_tof_bins *b)
{
    bool same = a->num_bins == b->num_bins && a->resolution_ps == b->resolution_ps &&
                (a->edges_mm == NULL) == (b->edges_mm == NULL);
    for (int k = 0; same && a->edges_mm != NULL && k <= a->num_bins; k++)
        same = fabsf(a->edges_mm[k] - b->edges_mm[k]) < 1e-3f;
    return same;
}

/* Refuses lists whose times of flight or energies are so different that one file cannot contain both. */
static lr_status compare_lists(struct report *report, const char *const paths[2], const lr_events_info *first,
                               const lr_events_info *info)
{
    const lr_event_kinds *a = &first->kinds, *b = &info->kinds;
    bool same = first->has_tof == info->has_tof && first->tof_bin_mm == info->tof_bin_mm &&
                same_bins(&(lr_tof_bins){first->tof_edges_mm, first->num_tof_bins, first->tof_resolution_ps},
                          &(lr_tof_bins){info->tof_edges_mm, info->num_tof_bins, info->tof_resolution_ps}) &&
                a->count == b->count;
    for (int k = 0; same && k < a->count * a->count; k++) same = same_bins(&a->tof[k], &b->tof[k]);
    if (!same) {
        return report_error(
            report, LR_BAD_INPUT,
            "%s and %s have different times of flight: merge them without (events convert --without-tof)", paths[0],
            paths[1]);
    }
    same = memcmp(first->energy_kev, info->energy_kev, sizeof(info->energy_kev)) == 0 &&
           (a->count == 0 || memcmp(a->energy_kev, b->energy_kev, (size_t)a->count * sizeof(*a->energy_kev)) == 0);
    if (same) return LR_OK;
    return report_error(report, LR_BAD_INPUT,
                        "%s and %s have different energy windows: merge lists of equal windows only", paths[0],
                        paths[1]);
}

static lr_status run_merge(struct cli_args *args)
{
    const lr_log *log = &args->report->log;
    const char *output = args_required(args, "-o"), *const *paths = args->positional;
    const int count = args->num_positional;
    lr_events_info info = {0};
    lr_events_writer *writer = NULL;
    struct merge merge = {.report = args->report};
    int64_t prompts = 0, delayeds = 0;
    double stated_s = 0, duration_s = 0; /* stated_s: sum of durations in headers; duration_s: sum of durations of whole
                                            lists; NaN = one is unknown */
    if (count < 2) args_complain(args, "events merge needs two lists or more");
    for (int k = 1; k < count; k++)
        for (int j = 0; j < k; j++)
            if (common_is_same_file(paths[j], paths[k]))
                report_warn(args->report, "%s is merged twice, and all of its events count twice", paths[k]);
    struct opened opened = {.report = args->report};
    if (args->status == LR_OK) opened.source = source_of(args, paths[0]);
    if (args->status != LR_OK) return args->status;
    lr_status status = open_lors(&opened, args);

    /* The headers of all lists are read before any event, because their descriptions of time of flight must be the
     * same. */
    for (int k = 0; status == LR_OK && k < count; k++) {
        lr_events_info own;
        opened.source = source_of(args, paths[k]);
        opened.source.scanner = opened.scanner;
        status = lr_events_read(&opened.source, NULL, k == 0 ? &info : &own);
        const double own_s = k == 0 ? info.duration_s : own.duration_s;
        stated_s += own_s > 0 ? own_s : NAN;
        if (k == 0) continue;
        if (status == LR_OK)
            status = compare_lists(args->report, (const char *const[]){paths[0], paths[k]}, &info, &own);
        lr_events_info_finish(&own);
    }
    info.duration_s = isnan(stated_s) ? 0 : stated_s;
    if (status == LR_OK) {
        writer = lr_events_writer_create(
            &(lr_events_writer_params){.path = output, .lors = opened.lors, .info = &info, .log = log});
        status = writer != NULL ? LR_OK : report_reason(args->report);
    }
    if (writer != NULL) merge.to = lr_events_writer_sink(writer);
    for (int k = 0; status == LR_OK && k < count; k++) {
        const lr_event_sink sink = {.take = take_later, .user = &merge};
        lr_events_info own;
        merge.path = paths[k];
        opened.source = source_of(args, paths[k]);
        opened.source.scanner = opened.scanner;
        status = lr_events_read(&opened.source, &sink, &own);
        prompts += own.counts.prompts;
        delayeds += own.counts.delayeds;
        duration_s += own.duration_s > 0 ? own.duration_s : NAN;
        merge.from_ms += (uint64_t)llround(1e3 * fmax(own.duration_s, 0));
        if (merge.last_ms >= merge.from_ms) merge.from_ms = merge.last_ms + 1;
        lr_events_info_finish(&own);
    }
    if (status == LR_OK)
        status = lr_events_writer_finish(writer);
    else
        lr_events_writer_abandon(writer);
    lr_events_info_finish(&info);
    close_opened(&opened);
    if (status != LR_OK) return status;
    if (isnan(duration_s)) duration_s = 1e-3 * (double)merge.from_ms;

    report_clear(args->report);
    if (args->report->json) {
        struct json json = common_json_begin(stdout, "events merge");
        json_text(&json, "output", output);
        json_int(&json, "prompts", prompts);
        json_int(&json, "delayeds", delayeds);
        json_number(&json, "duration_s", duration_s);
        common_json_end(&json);
    } else {
        printf("%s: %d lists, %lld prompts and %lld delayeds in %.6g s\n", output, count, (long long)prompts,
               (long long)delayeds, duration_s);
    }
    return LR_OK;
}

/* --- the command line --- */

#define SOURCE_OPTIONS                                                                                                 \
    {COMMON_UNTIL_DAMAGE_OPTION},                                                                                      \
        {"--scanner", "NAME|FILE", "whose events they are; a PETSIRD file brings its own", NULL},                      \
        {"--crystal-map", "FILE",                                                                                      \
         "of SAFIR (*crystal_map.txt) or CASToR (.lut, .geom); default: the one beside; without "                      \
         "--scanner it is the scanner, too",                                                                           \
         NULL},                                                                                                        \
    {                                                                                                                  \
        "--header", "FILE", "of Siemens events; default: the *.hdr* beside that names them", NULL                      \
    }

static const struct cli_option show_options[] = {SOURCE_OPTIONS, {0}};

static const struct cli_option convert_options[] = {
    SOURCE_OPTIONS,
    {"--petsird-version", "V", "schema of a PETSIRD file: 0.12 (default), 0.10 or 0.9 (v0.9.1)",
     CLI_WORDS("0.12", "0.10", "0.9")},
    {"--histogram", NULL, "sum events per LOR and write a CASToR histogram", NULL},
    {"--without-tof", NULL, "leave the times of flight out", NULL},
    {0}};

const struct cli_verb verb_events_show = {
    .name = "events show",
    .positionals = "FILE",
    .summary = "Counts what is in a list-mode file.",
    .example = "loraster events show small.petsird",
    .groups = {{"input", show_options}},
    .run = run_show,
};

static const char *const converted_endings[] = {LR_EVENTS_WRITTEN, ".h5", ".hdf5", ".hs", NULL};

const struct cli_verb verb_events_convert = {
    .name = "events convert",
    .positionals = "IN OUT",
    .summary = "Writes list mode as PETSIRD (.petsird), CASToR (.Cdh with .Cdf), or text (.tsv): a line "
               "for each event, with the place that its time of flight gives; or sums its prompts per LOR "
               "(HDF5, STIR's .hs).",
    .example = "loraster events convert small_listmode_file.l head.petsird --scanner siemens-mmr",
    .outputs = {{CLI_SECOND_WORD, converted_endings}},
    .groups = {{"input and output", convert_options}},
    .run = run_convert,
};

static const struct cli_option merge_options[] = {
    {"-o", "FILE", "list mode to write (.petsird, .Cdh, .tsv)", NULL}, SOURCE_OPTIONS, {0}};

const struct cli_verb verb_events_merge = {
    .name = "events merge",
    .positionals = "FILE...",
    .most_positionals = CLI_MAX_POSITIONAL,
    .summary = "Writes lists of one scanner one after the other into one list, whose times go on.",
    .example = "loraster events merge first.petsird second.petsird -o both.petsird",
    .outputs = {{"-o", common_event_endings}},
    .groups = {{"input and output", merge_options}},
    .run = run_merge,
};
