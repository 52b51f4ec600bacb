/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * direct deposit: events with time of flight into histo-images. */
#include "direct.h"
#include "verbs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct cli_option photon_options[] = {
    {"--activity", "IMAGE", "instead of --events: photon pairs from this image", false},
    {"--count", "N", "pairs to be detected; default 100000", false},
    {"--tof-ps", "PS", "time resolution, FWHM; default the scanner's", false},
    {"--model", "NAME", "lines are off by this radial width, as that of recon; default: by crystals alone",
     false},
    {"--radial-mm", "MM", "FWHM of invariant, and of linear at the centre; default 5.8", false},
    {"--radial-edge-mm", "MM", "FWHM of linear at the edge", false},
    {"--edge-mm", "MM", "distance of the edge from the axis; default 288", false},
    {"--axial-mm", "MM", "FWHM along the axis, where lines are off; default 5.8", false},
    {"--seed", "N", "default 1", false},
    {"--threads", "N", "default: all processors; the events are the same", false},
    {0},
};

/* Where events come from; zero is none. */
struct source {
    struct report *report;
    lr_scanner *scanner;
    lr_lors *lors;
    lr_image *activity;
    lr_events_source events;
    lr_events_info info;
    lr_photon_params photons;
    lr_resolution blur; /* photons may point here: it must not move */
};

static void close_source(struct source *source)
{
    lr_events_info_finish(&source->info);
    lr_image_destroy(source->activity);
    lr_lors_destroy(source->lors);
    lr_scanner_destroy(source->scanner);
}

static lr_status open_scanner(struct source *source, struct cli_args *args)
{
    const char *name = args_text(args, "--scanner"), *path = source->events.path;
    if (name == NULL && path != NULL && lr_events_recognise(path) == LR_EVENTS_PETSIRD) name = path;
    if (name == NULL) {
        name = args_required(args, "--scanner");
        CLI_TRY(args->status);
    }
    source->scanner = lr_scanner_read(name, &args->report->log);
    return source->scanner != NULL ? LR_OK : report_reason(args->report);
}

/* What stands before the events: whether they have time of flight. */
static lr_status open_events(struct source *source, struct cli_args *args)
{
    source->events.companion = args_text(args, "--crystal-map");
    CLI_TRY(open_scanner(source, args));
    source->events.scanner = source->scanner;
    return lr_events_read(&source->events, NULL, &source->info);
}

static lr_status open_activity(struct source *source, struct cli_args *args, struct setup *grid)
{
    CLI_TRY(open_scanner(source, args));
    source->lors = lr_lors_create_watched(source->scanner, &args->report->progress, &args->report->log);
    source->activity = setup_read_image(grid, args, args_text(args, "--activity"));
    if (source->lors == NULL || source->activity == NULL) return report_reason(args->report);
    source->photons.lors = source->lors;
    source->photons.activity = source->activity;
    source->info.has_tof = true;
    return LR_OK;
}

static double blur_width(const void *user, double distance_mm)
{
    return lr_resolution_radial_mm(user, distance_mm);
}

/* Widths are largest in the middle or at the edge. */
static double widest_radial_mm(const lr_resolution *widths)
{
    return fmax(lr_resolution_radial_mm(widths, 0), lr_resolution_radial_mm(widths, HUGE_VAL));
}

/* Lines are blurred where a width is asked for. */
static void read_blur(struct source *source, struct cli_args *args)
{
    const bool blurs = args_has(args, "--model") || args_has(args, "--radial-mm") || args_has(args, "--axial-mm");
    source->blur = direct_read_widths(args);
    if (!blurs && args_has(args, "--edge-mm")) args_complain(args, "--edge-mm needs --model");
    if (blurs) {
        source->photons.blur = (lr_photon_blur){.radial_mm = blur_width,
                                                .user = &source->blur,
                                                .most_radial_mm = widest_radial_mm(&source->blur),
                                                .axial_mm = source->blur.axial_mm > 0 ? source->blur.axial_mm : 5.8};
    }
}

static lr_status open_source(struct source *source, struct cli_args *args, struct setup *grid)
{
    static const int64_t counts[2] = {1, INT64_C(1) << 40}, seeds[2] = {0, INT64_MAX};
    static const int64_t threads[2] = {1, INT_MAX};
    const char *activity = args_text(args, "--activity");
    source->events = (lr_events_source){.path = args_text(args, "--events"),
                                        .until_damage = args_has(args, COMMON_UNTIL_DAMAGE),
                                        .log = &args->report->log};
    source->photons = (lr_photon_params){
        .count = args_int(args, "--count", 100000, counts),
        .seed = (uint64_t)args_int(args, "--seed", 1, seeds),
        .tof_resolution_ps = args_number(args, "--tof-ps", 0, true),
        .threads = (int)args_int(args, "--threads", 0, threads),
        .log = &args->report->log,
        .progress = &args->report->progress,
    };
    if ((source->events.path != NULL) == (activity != NULL))
        args_complain(args, "direct deposit needs either --events FILE or --activity IMAGE");
    read_blur(source, args);
    for (const struct cli_option *option = photon_options; option->name != NULL; option++)
        if (activity == NULL && args_has(args, option->name))
            args_complain(args, "%s belongs to --activity", option->name);
    CLI_TRY(args->status);
    return activity != NULL ? open_activity(source, args, grid) : open_events(source, args);
}

static void report_counts(const struct cli_args *args, const lr_deposit *deposit, const char *output, double seconds)
{
    const lr_deposit_counts *counts = lr_deposit_get_counts(deposit);
    const lr_histo_images *images = lr_deposit_get_images(deposit);
    report_clear(args->report);
    if (!args->report->json) {
        printf("%s: %lld events in %d views; left out: %lld tilted too much, %lld outside of the "
               "grid, %lld of the other kind\n",
               output, (long long)counts->deposited, images->num_views, (long long)counts->too_tilted,
               (long long)counts->outside_grid, (long long)counts->other_kind);
        return;
    }
    struct json json = common_json_begin(args->syntax->verb);
    json_text(&json, "output", output);
    common_json_grid(&json, "grid", &images->grid);
    json_int(&json, "views", images->num_views);
    json_int(&json, "deposited", counts->deposited);
    json_int(&json, "too_tilted", counts->too_tilted);
    json_int(&json, "outside_grid", counts->outside_grid);
    json_int(&json, "other_kind", counts->other_kind);
    json_number(&json, "weight", counts->weight);
    json_text(&json, "backend", lr_deposit_get_backend(deposit));
    json_number(&json, "seconds", seconds);
    common_json_end(&json);
}

static lr_status fill(const struct source *source, lr_deposit *deposit)
{
    const lr_event_sink sink = lr_deposit_sink(deposit);
    CLI_TRY(source->activity != NULL ? lr_events_from_activity(&source->photons, &sink, NULL)
                                     : lr_events_read(&source->events, &sink, NULL));
    return lr_deposit_finish(deposit);
}

static lr_status check_deposited(struct report *report, const char *output, const lr_deposit_counts *counts)
{
    if (counts->deposited > 0) return LR_OK;
    return report_error(report, LR_BAD_INPUT,
                        "%s would hold no event: %lld were tilted too much (--acceptance-deg), "
                        "%lld outside of the grid (--grid, --origin-mm), %lld of the other kind "
                        "(--delayeds)",
                        output, (long long)counts->too_tilted, (long long)counts->outside_grid,
                        (long long)counts->other_kind);
}

static lr_status deposit_events(struct cli_args *args, struct direct_setup *setup, const struct source *source)
{
    static const char *const rules[] = {"nearest", "trilinear", NULL};
    static const char *const backends[] = {"auto", "cpu", "compute", NULL};
    static const int64_t at_least_zero[2] = {0, INT_MAX};
    const char *output = args_text(args, "-o");
    const lr_deposit_params params = {
        .scanner = source->scanner,
        .grid = &setup->grid.grid,
        .set = setup->set,
        .rule = (lr_deposit_rule)args_word(args, "--rule", rules, LR_DEPOSIT_NEAREST),
        .delayeds = args_has(args, "--delayeds"),
        .info = &source->info,
        .backend = backends[args_word(args, "--backend", backends, 0)],
        .device = (int)args_int(args, "--device", 0, at_least_zero),
        .log = &args->report->log,
    };
    CLI_TRY(args->status);
    lr_deposit *deposit = lr_deposit_create(&params);
    if (deposit == NULL) return report_reason(args->report);
    const double begin = report_seconds();
    lr_status status = fill(source, deposit);
    const double seconds = report_seconds() - begin;
    if (status == LR_OK) status = check_deposited(args->report, output, lr_deposit_get_counts(deposit));
    if (status == LR_OK) status = lr_histo_images_write(output, lr_deposit_get_images(deposit), &args->report->log);
    if (status == LR_OK) report_counts(args, deposit, output, seconds);
    lr_deposit_destroy(deposit);
    return status;
}

static lr_status run_with(struct cli_args *args, struct direct_setup *setup, struct source *source)
{
    args_required(args, "-o");
    setup->grid.report = args->report;
    CLI_TRY(direct_read_views(setup, args));
    CLI_TRY(open_source(source, args, &setup->grid));
    CLI_TRY(setup_grid(&setup->grid, args,
                       source->activity != NULL && !args_has(args, "--grid") && !args_has(args, "--like")
                           ? &source->activity->grid
                           : NULL));
    return deposit_events(args, setup, source);
}

static lr_status run(struct cli_args *args)
{
    struct direct_setup setup = {0};
    struct source source = {.report = args->report};
    const lr_status status = run_with(args, &setup, &source);
    close_source(&source);
    direct_finish(&setup);
    return status;
}

static const struct cli_option options[] = {
    {"--events", "FILE", "list mode with time of flight (PETSIRD, CASToR)", false},
    {"--crystal-map", "FILE", "CASToR: its scanner's .lut or .geom; default: beside the events", false},
    COMMON_UNTIL_DAMAGE_OPTION,
    {"--delayeds", NULL, "delayed coincidences instead of prompts", false},
    {"--rule", "NAME", "nearest or trilinear; default nearest", false},
    {"--backend", "NAME", "cpu or compute; default auto: compute on a graphics processor", false},
    {"--device", "N", "which usable device of loraster info; default 0", false},
    {"-o", "FILE", "histo-images to write (HDF5)", false},
    {0},
};

static const struct cli_syntax syntax = {
    .verb = "direct deposit",
    .summary = "Puts events with time of flight into one histo-image per view.",
    .example = "loraster direct deposit --events scan.petsird --grid 144,144,48 --voxel-mm 4 "
               "-o y.h5",
    .outputs = {{"-o", common_hdf5_endings}},
    .groups = {{"events and output", options},
               {"simulation", photon_options},
               DIRECT_VIEW_GROUP,
               COMMON_SCANNER_GROUP,
               COMMON_GRID_GROUP,
               COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_direct_deposit = {&syntax, run};
