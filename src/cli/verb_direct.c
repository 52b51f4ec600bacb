/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * direct lut, direct project, direct deposit, direct factors. */
#include "direct.h"
#include "pictures.h"
#include "verbs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const project_endings[] = {".h5",  ".hdf5", ".nii", ".nii.gz", ".hv",
                                              ".hdr", ".mhd",  ".mha", ".npy",    NULL};

/* --- lut --- */

static lr_status run_lut(struct cli_args *args)
{
    struct direct_setup setup = {.grid.report = args->report};
    lr_direct_tables *tables = NULL;
    lr_picture *picture = NULL;
    const char *output = args_required(args, "-o");
    const lr_view view = {args_number(args, "--azimuth-deg", 0, false), args_number(args, "--tilt-deg", 0, false)};
    lr_status status = direct_read_kernel(&setup, args);
    if (status == LR_OK) status = direct_take_tof(&setup, args, 0);
    if (status == LR_OK) status = setup_grid(&setup.grid, args, NULL);
    if (status != LR_OK) goto finish;
    tables = lr_direct_tables_create(&(lr_direct_tables_params){
        .grid = &setup.grid.grid, .view = view, .kernel = setup.kernel, .log = &args->report->log});
    if (tables != NULL) picture = lr_picture_direct_tables(tables, &args->report->log);
    status = picture != NULL ? lr_png_write(output, picture->rgb, picture->size, &args->report->log)
                             : report_reason(args->report);
    if (status != LR_OK) goto finish;

    const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
    report_clear(args->report);
    if (!args->report->json) {
        printf("%s: %d identifiers of %g mm, %d kernels of %lld offsets, within %d x %d x %d voxels\n", output,
               info->num_identifiers, info->epsilon_mm, info->num_kernels, (long long)info->num_offsets,
               2 * info->half[0] + 1, 2 * info->half[1] + 1, 2 * info->half[2] + 1);
        goto finish;
    }
    struct json json = common_json_begin(stdout, args->verb->name);
    json_text(&json, "output", output);
    common_json_grid(&json, "grid", &info->grid);
    json_number(&json, "azimuth_deg", info->view.azimuth_deg);
    json_number(&json, "tilt_deg", info->view.tilt_deg);
    json_int(&json, "identifiers", info->num_identifiers);
    json_int(&json, "kernels", info->num_kernels);
    json_int(&json, "offsets", info->num_offsets);
    json_ints(&json, "half", info->half, 3);
    json_number(&json, "epsilon_mm", info->epsilon_mm);
    json_number(&json, "support", info->support);
    json_numbers(&json, "sigma_mm", info->sigma_mm, 3);

    /* The radial FWHM of the resolution model for each identifier, at the smallest distance from the axis for which the
     * identifier stands. Measured profiles have no widths. */
    const lr_resolution *resolution = &setup.kernel.resolution;
    const int count = resolution->model == LR_RADIAL_MEASURED ? 0 : info->num_identifiers;
    double *widths_mm = calloc((size_t)count + 1, sizeof(*widths_mm));
    if (widths_mm != NULL) {
        for (int k = 0; k < count; k++) widths_mm[k] = lr_resolution_radial_mm(resolution, k * info->epsilon_mm);
        json_numbers(&json, "radial_fwhm_mm", widths_mm, count);
    }
    common_json_end(&json);
    if (widths_mm == NULL) status = report_error(args->report, LR_FAILED, "no memory for the widths");
    free(widths_mm);

finish:
    lr_picture_destroy(picture);
    lr_direct_tables_destroy(tables);
    direct_finish(&setup);
    return status;
}

/* --- project --- */

/* Projects an image into histo-images of the set of views, or histo-images back. A single view (--azimuth-deg,
 * --tilt-deg) is read and written as an image. */
static lr_status project(struct cli_args *args, struct direct_setup *setup, const lr_image *image,
                         const lr_histo_images *histo, double *sum)
{
    const lr_log *log = &args->report->log;
    const char *output = args_text(args, "-o");
    const bool is_one_view = args_has(args, "--azimuth-deg") || args_has(args, "--tilt-deg");
    const bool makes_views = image != NULL && !is_one_view, goes_back = histo != NULL || args_has(args, "--transpose");
    const lr_view view = {args_number(args, "--azimuth-deg", 0, false), args_number(args, "--tilt-deg", 0, false)};
    const lr_grid *grid = image != NULL ? &image->grid : &histo->grid;
    const int64_t num_voxels = lr_grid_num_voxels(grid);
    const int num_views = makes_views ? lr_view_set_count(&setup->set) : histo != NULL ? histo->num_views : 1;
    CLI_TRY(common_check_output(args->report, output, makes_views ? common_hdf5_endings : common_image_endings));
    CLI_TRY(direct_take_tof(setup, args, histo != NULL ? histo->tof_ps : 0));
    CLI_TRY(setup_grid(&setup->grid, args, grid));
    lr_view *views = calloc((size_t)num_views, sizeof(*views));
    if (views == NULL) return report_error(args->report, LR_FAILED, "no memory for %d views", num_views);
    for (int k = 0; k < num_views; k++)
        views[k] = makes_views ? lr_view_set_at(&setup->set, k) : histo != NULL ? histo->views[k] : view;
    lr_status status =
        direct_open(setup, args,
                    &(struct direct_work){.views = views, .num_views = num_views, .progress = &args->report->progress});
    lr_histo_images *images = NULL;
    lr_image *target = NULL;
    if (status == LR_OK && makes_views)
        images = lr_histo_images_create(&setup->grid.grid, views, num_views, log);
    else if (status == LR_OK)
        target = lr_image_create(grid, log);
    free(views);
    if (images == NULL && target == NULL) return status != LR_OK ? status : report_reason(args->report);
    if (images != NULL) images->tof_ps = setup->kernel.resolution.tof_ps;

    const lr_vector from =
        image != NULL ? lr_image_vector(image) : lr_vector_of_floats(histo->values, num_views * num_voxels);
    const struct common_result result = {.output = output,
                                         .values = images != NULL ? images->values : target->values,
                                         .count = (images != NULL ? num_views : 1) * num_voxels,
                                         .causes = "the input is 0 everywhere: is it the right file?"};
    lr_vector to = lr_vector_of_floats(result.values, result.count);
    status =
        goes_back ? lr_operator_back(setup->op, NULL, &from, &to) : lr_operator_forward(setup->op, NULL, &from, &to);
    if (status == LR_OK) status = common_check_result(args->report, &result);
    if (status == LR_OK)
        status = images != NULL ? lr_histo_images_write(output, images, log) : lr_image_write(output, target, log);
    *sum = common_sum(result.values, result.count);
    lr_histo_images_destroy(images);
    lr_image_destroy(target);
    return status;
}

static lr_status run_project(struct cli_args *args)
{
    const char *image_path = args_text(args, "--image"), *histo_path = args_text(args, "--histo");
    const char *output = args_required(args, "-o");
    const bool is_one_view = args_has(args, "--azimuth-deg") || args_has(args, "--tilt-deg");
    const bool has_set =
        args_has(args, "--azimuths") || args_has(args, "--tilts") || args_has(args, "--acceptance-deg");
    if ((image_path != NULL) == (histo_path != NULL)) {
        args_complain(args, "direct project needs either --image IMAGE, which goes forward, or "
                            "--histo FILE, which goes back");
    }
    if (is_one_view && (has_set || args_has(args, "--histo"))) {
        args_complain(args, "--azimuth-deg and --tilt-deg are those of the one view that --image "
                            "belongs to: leave out sets of views and --histo");
    }
    if (args_has(args, "--transpose") && !is_one_view)
        args_complain(args, "--transpose needs the view: give --azimuth-deg");

    struct direct_setup setup = {.grid.report = args->report};
    lr_image *image = NULL;
    lr_histo_images *histo = NULL;
    double sum = 0;
    lr_status status = direct_read_views(&setup, args);
    if (status == LR_OK) status = direct_read_kernel(&setup, args);
    if (status != LR_OK) goto finish;
    if (image_path != NULL)
        image = setup_read_image(&setup.grid, args, image_path);
    else
        histo = lr_histo_images_read(histo_path, &args->report->log);
    status = image == NULL && histo == NULL ? report_reason(args->report) : project(args, &setup, image, histo, &sum);
    if (status != LR_OK) goto finish;

    report_clear(args->report);
    if (args->report->json) {
        const lr_operator_info *info = lr_operator_get_info(setup.op);
        struct json json = common_json_begin(stdout, args->verb->name);
        json_text(&json, "output", output);
        common_json_grid(&json, "grid", &setup.grid.grid);
        json_text(&json, "backend", info->backend);
        json_text(&json, "device", info->device);
        json_int(&json, "views", lr_direct_get_info(setup.op)->num_views);
        json_number(&json, "sum", sum);
        common_json_end(&json);
    } else {
        printf("%s: sum %.9g\n", output, sum);
    }

finish:
    lr_histo_images_destroy(histo);
    lr_image_destroy(image);
    direct_finish(&setup);
    return status;
}

static const struct cli_option lut_options[] = {
    {"--azimuth-deg", "D", "of the view; default 0", NULL},
    {"--tilt-deg", "D", "of the view; default 0", NULL},
    {"-o", "FILE", "picture to write (.png): LORmap, mSR and three kernels of mSRval", NULL},
    {0},
};

static const struct cli_option project_options[] = {
    {"--image", "IMAGE", "project it forward into histo-images of the set of views", NULL},
    {"--histo", "FILE", "project these histo-images back (HDF5; they know their views)", NULL},
    {"--azimuth-deg", "D", "one view of this azimuth instead of a set: an image from an image", NULL},
    {"--tilt-deg", "D", "one view of this tilt", NULL},
    {"--transpose", NULL, "one view: --image is its histo-image, which goes back", NULL},
    {"-o", "FILE", "histo-images (HDF5), or the image (.nii, .nii.gz, .hv, .hdr, .mhd, .mha, .npy)", NULL},
    {0},
};

const struct cli_verb verb_direct_lut = {
    .name = "direct lut",
    .summary = "Draws the look-up tables of a view of the family direct.",
    .example = "loraster direct lut --tof-ps 400 --model variant2 --azimuth-deg 30 "
               "--grid 144,144,48 --voxel-mm 4 -o tables.png",
    .outputs = {{"-o", common_picture_endings}},
    .groups = {{"view and output", lut_options}, {DIRECT_KERNEL_GROUP}, {COMMON_GRID_GROUP}},
    .run = run_lut,
};

const struct cli_verb verb_direct_project = {
    .name = "direct project",
    .summary = "Projects an image into histo-images, or those back.",
    .example = "loraster direct project --image x.nii.gz --tof-ps 400 --model variant2 -o y.h5",
    .outputs = {{"-o", project_endings}},
    .groups = {{"input and output", project_options},
               {DIRECT_VIEW_GROUP},
               {DIRECT_KERNEL_GROUP},
               {COMMON_GRID_GROUP},
               {DIRECT_DEVICE_GROUP}},
    .run = run_project,
};

/* --- deposit: events with time of flight into histo-images --- */

static const struct cli_option photon_options[] = {
    {"--activity", "IMAGE", "instead of --events: photon pairs from this image", NULL},
    {"--count", "N", "pairs to be detected; default 100000", NULL},
    {"--tof-ps", "PS", "time resolution, FWHM; default the scanner's", NULL},
    {"--model", "NAME", "lines are off by this radial width, as that of recon; default: by crystals alone",
     CLI_WORDS_OF(direct_models)},
    {DIRECT_RADIAL_OPTIONS},
    {"--axial-mm", "MM", "FWHM along the axis, where lines are off; default 5.8", NULL},
    {"--seed", "N", "default 1", NULL},
    {"--threads", "N", "default 0: all processors; the events are the same", NULL},
    {0},
};

/* A source of events: a file, or an activity that emits photon pairs. A struct of zeros has no source. */
struct source {
    lr_scanner *scanner;
    lr_lors *lors;
    lr_image *activity;
    lr_events_source events;
    lr_events_info info;
    lr_photon_params photons;
    int64_t emissions;  /* pairs emitted; must not move, because `photons` may point to it */
    lr_resolution blur; /* must not move, because `photons` may point to it */
};

static double blur_width(const void *user, double distance_mm)
{
    return lr_resolution_radial_mm(user, distance_mm);
}

static lr_status open_source(struct source *source, struct cli_args *args, struct setup *grid)
{
    const lr_log *log = &args->report->log;
    const char *name = args_text(args, "--scanner"), *path = source->events.path;
    if (path != NULL) source->events.companion = args_text(args, "--crystal-map");
    if (name == NULL) name = common_events_scanner(path, source->events.companion);
    if (name == NULL) name = args_required(args, "--scanner");
    CLI_TRY(args->status);
    source->scanner = lr_scanner_read(name, log);
    if (source->scanner == NULL) return report_reason(args->report);
    CLI_TRY(common_warn_of_slip(args->report, source->scanner, name));
    if (path != NULL) { /* the beginning of the file states if its events have time of flight */
        source->events.scanner = source->scanner;
        return lr_events_read(&source->events, NULL, &source->info);
    }

    source->lors = lr_lors_create_watched(source->scanner, &args->report->progress, log);
    source->activity = setup_read_image(grid, args, args_text(args, "--activity"));
    if (source->lors == NULL || source->activity == NULL) return report_reason(args->report);
    source->photons.lors = source->lors;
    source->photons.activity = source->activity;
    source->info.has_tof = true;
    source->info.tof_resolution_ps = source->photons.tof_resolution_ps;
    return LR_OK;
}

/* Deposits all events and writes the histo-images. */
static lr_status fill(lr_deposit *deposit, const struct source *source, const struct cli_args *args)
{
    const char *output = args_text(args, "-o");
    const double begin = report_seconds();
    const lr_event_sink sink = lr_deposit_sink(deposit);
    CLI_TRY(source->activity != NULL ? lr_events_from_activity(&source->photons, &sink, NULL)
                                     : lr_events_read(&source->events, &sink, NULL));
    CLI_TRY(lr_deposit_finish(deposit));
    const double seconds = report_seconds() - begin;
    const lr_deposit_counts *counts = lr_deposit_get_counts(deposit);
    const lr_histo_images *images = lr_deposit_get_images(deposit);
    if (counts->deposited <= 0) {
        return report_error(args->report, LR_BAD_INPUT,
                            "%s would hold no event: %lld were tilted too much (--acceptance-deg), %lld outside of the "
                            "grid (--grid, --origin-mm), %lld of the other kind (--delayeds)",
                            output, (long long)counts->too_tilted, (long long)counts->outside_grid,
                            (long long)counts->other_kind);
    }
    CLI_TRY(lr_histo_images_write(output, images, &args->report->log));

    const lr_image *activity = source->activity;
    const double emissions = (double)source->emissions,
                 scale = activity != NULL
                             ? emissions / common_sum(activity->values, lr_grid_num_voxels(&activity->grid))
                             : 0;
    report_clear(args->report);
    if (!args->report->json) {
        /* An event whose bin of time of flight crosses the border of the grid is deposited in part. */
        char within[96] = "";
        if (fabs(counts->weight - (double)counts->deposited) > 1e-6 * counts->weight)
            snprintf(within, sizeof(within), ", %.9g counts of them within the grid, whose border others cross",
                     counts->weight);
        printf("%s: %lld events in %d views%s; left out: %lld tilted too much, %lld outside of the "
               "grid, %lld of the other kind\n",
               output, (long long)counts->deposited, images->num_views, within, (long long)counts->too_tilted,
               (long long)counts->outside_grid, (long long)counts->other_kind);
        if (activity != NULL)
            printf("%lld pairs were detected, of %.9g emissions: the activity times %.6g\n",
                   (long long)source->photons.count, emissions, scale);
        return LR_OK;
    }
    struct json json = common_json_begin(stdout, args->verb->name);
    json_text(&json, "output", output);
    common_json_grid(&json, "grid", &images->grid);
    json_int(&json, "views", images->num_views);
    json_int(&json, "deposited", counts->deposited);
    json_int(&json, "too_tilted", counts->too_tilted);
    json_int(&json, "outside_grid", counts->outside_grid);
    json_int(&json, "other_kind", counts->other_kind);
    json_number(&json, "weight", counts->weight);
    if (images->tof_ps > 0) json_number(&json, "tof_ps", images->tof_ps);
    if (activity != NULL) {
        json_number(&json, "emissions", emissions);
        json_number(&json, "scale", scale);
    }
    json_text(&json, "backend", lr_deposit_get_backend(deposit));
    json_number(&json, "seconds", seconds);
    common_json_end(&json);
    return LR_OK;
}

static lr_status deposit_run(struct cli_args *args)
{
    struct direct_setup setup = {.grid.report = args->report};
    struct source source = {0};
    lr_deposit *deposit = NULL;
    args_required(args, "-o");
    lr_status status = direct_read_views(&setup, args);
    if (status != LR_OK) goto finish;
    const char *activity = args_text(args, "--activity");
    source.events = (lr_events_source){.path = args_text(args, "--events"),
                                       .until_damage = args_has(args, COMMON_UNTIL_DAMAGE),
                                       .log = &args->report->log};
    source.photons = (lr_photon_params){
        .count = args_int(args, "--count", 100000, (const int64_t[]){1, INT64_C(1) << 40}),
        .seed = (uint64_t)args_int(args, "--seed", 1, args_seeds),
        .tof_resolution_ps = args_tof_ps(args),
        .threads = (int)args_int(args, "--threads", 0, args_from_0),
        .log = &args->report->log,
        .progress = &args->report->progress,
        .emissions = &source.emissions,
    };
    if ((source.events.path != NULL) == (activity != NULL))
        args_complain(args, "direct deposit needs either --events FILE or --activity IMAGE");
    /* Lines are blurred if an option gives a width. */
    const bool blurs = args_has(args, "--model") || args_has(args, "--radial-mm") || args_has(args, "--axial-mm");
    source.blur = direct_read_widths(args);
    if (!blurs && args_has(args, "--edge-mm")) args_complain(args, "--edge-mm needs --model");
    if (blurs) {
        /* The width is largest either in the middle or at the edge. */
        source.photons.blur = (lr_photon_blur){.radial_mm = blur_width,
                                               .user = &source.blur,
                                               .most_radial_mm = fmax(lr_resolution_radial_mm(&source.blur, 0),
                                                                      lr_resolution_radial_mm(&source.blur, HUGE_VAL)),
                                               .axial_mm = source.blur.axial_mm > 0 ? source.blur.axial_mm : 5.8};
    }
    for (const struct cli_option *option = photon_options; option->name != NULL; option++)
        if (activity == NULL && args_has(args, option->name))
            args_complain(args, "%s belongs to --activity", option->name);

    status = args->status == LR_OK ? open_source(&source, args, &setup.grid) : args->status;
    const bool names_grid = args_has(args, "--grid") || args_has(args, "--like");
    if (status == LR_OK)
        status = setup_grid(&setup.grid, args, source.activity != NULL && !names_grid ? &source.activity->grid : NULL);
    if (status != LR_OK) goto finish;

    const lr_deposit_params params = {
        .scanner = source.scanner,
        .grid = &setup.grid.grid,
        .set = setup.set,
        .rule = (lr_deposit_rule)args_word(args, "--rule", NULL, LR_DEPOSIT_NEAREST),
        .delayeds = args_has(args, "--delayeds"),
        .info = &source.info,
        .backend = args_chosen(args, "--backend"),
        .device = (int)args_int(args, "--device", 0, args_from_0),
        .log = &args->report->log,
    };
    status = args->status;
    if (status == LR_OK) deposit = lr_deposit_create(&params);
    if (status == LR_OK) status = deposit != NULL ? fill(deposit, &source, args) : report_reason(args->report);

finish:
    lr_deposit_destroy(deposit);
    lr_events_info_finish(&source.info);
    lr_image_destroy(source.activity);
    lr_lors_destroy(source.lors);
    lr_scanner_destroy(source.scanner);
    direct_finish(&setup);
    return status;
}

static const struct cli_option deposit_options[] = {
    {"--events", "FILE", "list mode with time of flight (PETSIRD, CASToR)", NULL},
    {"--crystal-map", "FILE", "CASToR: its scanner's .lut or .geom; default: beside the events", NULL},
    {COMMON_UNTIL_DAMAGE_OPTION},
    {"--delayeds", NULL, "delayed coincidences instead of prompts", NULL},
    {"--rule", "NAME", "nearest or trilinear; default nearest", CLI_WORDS("nearest", "trilinear")},
    {"--backend", "NAME", "cpu or compute; default auto: compute on a graphics processor",
     CLI_WORDS("auto", "cpu", "compute")},
    {COMMON_DEVICE_OPTION},
    {"-o", "FILE", "histo-images to write (HDF5)", NULL},
    {0},
};

const struct cli_verb verb_direct_deposit = {
    .name = "direct deposit",
    .summary = "Puts events with time of flight into one histo-image per view.",
    .example = "loraster direct deposit --events scan.petsird --grid 144,144,48 --voxel-mm 4 -o y.h5",
    .outputs = {{"-o", common_hdf5_endings}},
    .groups = {{"events and output", deposit_options},
               {"simulation", photon_options},
               {DIRECT_VIEW_GROUP},
               {COMMON_SCANNER_GROUP},
               {COMMON_GRID_GROUP}},
    .run = deposit_run,
};

/* --- factors: the share of each view that a scanner measures, as histo-images --- */

static lr_status factors_run(struct cli_args *args)
{
    struct direct_setup setup = {.grid.report = args->report};
    lr_histo_images *histo = NULL;
    const char *output = args_required(args, "-o");
    const char *efficiencies = args_text(args, "--efficiencies");
    const int num_directions = (int)args_int(args, "--directions", 32, (const int64_t[]){1, 1 << 20});
    const bool names_grid = args_has(args, "--grid") || args_has(args, "--like");
    lr_status status = direct_read_views(&setup, args);
    if (status == LR_OK) status = setup_scanner(&setup.grid, args, LR_STORE_NO, NULL);
    if (status == LR_OK)
        status = setup_grid(&setup.grid, args, setup.grid.mu != NULL && !names_grid ? &setup.grid.mu->grid : NULL);
    if (status == LR_OK && efficiencies != NULL) status = lor_factors_efficiencies(&setup.grid, efficiencies);
    if (status != LR_OK) goto finish;

    const double begin = report_seconds();
    histo = lr_direct_factors_create(&(lr_direct_factors_params){.lors = setup.grid.lors,
                                                                 .grid = &setup.grid.grid,
                                                                 .set = setup.set,
                                                                 .efficiencies = setup.grid.factors.efficiencies,
                                                                 .mu = setup.grid.mu,
                                                                 .directions = num_directions,
                                                                 .threads = setup.grid.params.threads,
                                                                 .log = &args->report->log,
                                                                 .progress = &args->report->progress});
    status = histo != NULL ? LR_OK : report_reason(args->report);
    if (status != LR_OK) goto finish;
    const double seconds = report_seconds() - begin;
    const int64_t count = histo->num_views * lr_grid_num_voxels(&histo->grid);
    status = common_check_result(args->report,
                                 &(struct common_result){.output = output,
                                                         .values = histo->values,
                                                         .count = count,
                                                         .causes = "does the grid miss the scanner (--origin-mm), "
                                                                   "are the efficiencies all 0, or does the "
                                                                   "attenuation map stop everything (--mu-unit)?"});
    if (status == LR_OK) status = lr_histo_images_write(output, histo, &args->report->log);
    if (status != LR_OK) goto finish;

    const double mean = common_sum(histo->values, count) / (double)count;
    double low = INFINITY, high = 0;
    for (int64_t k = 0; k < count; k++) {
        low = fmin(low, histo->values[k]);
        high = fmax(high, histo->values[k]);
    }
    report_clear(args->report);
    if (args->report->json) {
        struct json json = common_json_begin(stdout, args->verb->name);
        json_text(&json, "output", output);
        json_text(&json, "scanner", setup.grid.scanner->name);
        common_json_grid(&json, "grid", &histo->grid);
        json_int(&json, "views", histo->num_views);
        json_int(&json, "directions", num_directions);
        json_text(&json, "efficiencies", efficiencies);
        json_text(&json, "mu", args_text(args, "--mu"));
        json_number(&json, "low", low);
        json_number(&json, "high", high);
        json_number(&json, "mean", mean);
        json_number(&json, "seconds", seconds);
        common_json_end(&json);
    } else {
        printf("%s: factors of %d views, %.6g to %.6g detections per emission, mean %.6g\n", output, histo->num_views,
               low, high, mean);
    }

finish:
    lr_histo_images_destroy(histo);
    direct_finish(&setup);
    return status;
}

static const struct cli_option factors_options[] = {
    {"--efficiencies", "FILE", "one number per crystal (.npy, text or .petsird), multiplied in", NULL},
    {"--mu", "IMAGE", "attenuation map: the share of pairs that survive it, multiplied in", NULL},
    {COMMON_MU_UNIT_OPTION},
    {"--directions", "N", "lines through each voxel in each view; default 32", NULL},
    {"--threads", "N", "default 0: all processors; the factors are the same", NULL},
    {"-o", "FILE", "histo-images of factors to write (HDF5), for recon --factors", NULL},
    {0},
};

const struct cli_verb verb_direct_factors = {
    .name = "direct factors",
    .summary = "Writes what a scanner measures of each view, for recon --factors.",
    .example = "loraster direct factors --scanner penn-labr3 --grid 144,144,48 --voxel-mm 4 -o n.h5",
    .outputs = {{"-o", common_hdf5_endings}},
    .groups = {{"factors and output", factors_options},
               {DIRECT_VIEW_GROUP},
               {COMMON_SCANNER_GROUP},
               {COMMON_GRID_GROUP}},
    .run = factors_run,
};
