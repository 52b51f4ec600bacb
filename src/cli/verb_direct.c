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

static lr_view read_view(struct cli_args *args)
{
    return (lr_view){args_number(args, "--azimuth-deg", 0, false), args_number(args, "--tilt-deg", 0, false)};
}

/* --- lut --- */

/* The widths that the model has at each identifier's distance; measured profiles have none. */
static lr_status json_widths(struct json *json, const lr_direct_tables_info *info, const lr_resolution *resolution)
{
    const int count = resolution->model == LR_RADIAL_MEASURED ? 0 : info->num_identifiers;
    double *widths_mm = calloc((size_t)count + 1, sizeof(*widths_mm));
    if (widths_mm == NULL) return LR_FAILED;
    for (int k = 0; k < count; k++) widths_mm[k] = lr_resolution_radial_mm(resolution, k * info->epsilon_mm);
    json_numbers(json, "radial_fwhm_mm", widths_mm, count);
    free(widths_mm);
    return LR_OK;
}

static lr_status report_tables(const struct cli_args *args, const lr_direct_tables *tables,
                               const struct direct_setup *setup, const char *output)
{
    const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
    report_clear(args->report);
    if (!args->report->json) {
        printf("%s: %d identifiers of %g mm, %d kernels of %lld offsets, within %d x %d x %d "
               "voxels\n",
               output, info->num_identifiers, info->epsilon_mm, info->num_kernels, (long long)info->num_offsets,
               2 * info->half[0] + 1, 2 * info->half[1] + 1, 2 * info->half[2] + 1);
        return LR_OK;
    }
    struct json json = common_json_begin(args->syntax->verb);
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
    const lr_status status = json_widths(&json, info, &setup->kernel.resolution);
    common_json_end(&json);
    return status == LR_OK ? LR_OK : report_error(args->report, status, "no memory for the widths");
}

static lr_status draw_tables(const struct cli_args *args, const lr_direct_tables *tables,
                             const struct direct_setup *setup, const char *output)
{
    lr_picture *picture = lr_picture_direct_tables(tables, &args->report->log);
    if (picture == NULL) return report_reason(args->report);
    const lr_status status = album_write_picture(args->report, output, picture);
    lr_picture_destroy(picture);
    CLI_TRY(status);
    return report_tables(args, tables, setup, output);
}

static lr_status make_tables(struct cli_args *args, struct direct_setup *setup)
{
    const char *output = args_required(args, "-o");
    const lr_view view = read_view(args);
    setup->grid.report = args->report;
    CLI_TRY(direct_read_kernel(setup, args));
    CLI_TRY(setup_grid(&setup->grid, args, NULL));
    lr_direct_tables *tables = lr_direct_tables_create(&(lr_direct_tables_params){
        .grid = &setup->grid.grid, .view = view, .kernel = setup->kernel, .log = &args->report->log});
    const lr_status status = tables != NULL ? draw_tables(args, tables, setup, output) : report_reason(args->report);
    lr_direct_tables_destroy(tables);
    return status;
}

static lr_status run_lut(struct cli_args *args)
{
    struct direct_setup setup = {0};
    const lr_status status = make_tables(args, &setup);
    direct_finish(&setup);
    return status;
}

/* --- project --- */

static void report_projection(const struct cli_args *args, const struct direct_setup *setup, const char *output,
                              double sum)
{
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    report_clear(args->report);
    if (!args->report->json) {
        printf("%s: sum %.9g\n", output, sum);
        return;
    }
    struct json json = common_json_begin(args->syntax->verb);
    json_text(&json, "output", output);
    common_json_grid(&json, "grid", &setup->grid.grid);
    json_text(&json, "backend", info->backend);
    json_text(&json, "device", info->device);
    json_int(&json, "views", lr_direct_get_info(setup->op)->num_views);
    json_number(&json, "sum", sum);
    common_json_end(&json);
}

static lr_status check_result(const struct cli_args *args, const float *values, int64_t count)
{
    return common_check_result(args->report, &(struct common_result){.output = args_text(args, "-o"),
                                                                     .values = values,
                                                                     .count = count,
                                                                     .causes = "the input is 0 everywhere: is it the "
                                                                               "right file?"});
}

static lr_status open_views(struct direct_setup *setup, struct cli_args *args, const lr_view *views, int num_views)
{
    return direct_open(
        setup, args,
        &(struct direct_work){.views = views, .num_views = num_views, .progress = &args->report->progress});
}

static lr_status forward_views(struct cli_args *args, struct direct_setup *setup, const lr_image *image,
                               lr_histo_images *histo)
{
    const lr_lor_data data = direct_data(histo);
    const lr_vector x = lr_image_vector(image);
    lr_vector y = lr_lor_data_vector(&data);
    CLI_TRY(lr_operator_forward(setup->op, NULL, &x, &y));
    const char *output = args_text(args, "-o");
    CLI_TRY(check_result(args, data.values, data.count));
    CLI_TRY(lr_histo_images_write(output, histo, &args->report->log));
    report_projection(args, setup, output, common_sum(data.values, data.count));
    return LR_OK;
}

static lr_status project_forward(struct cli_args *args, struct direct_setup *setup, const lr_image *image)
{
    CLI_TRY(common_check_output(args->report, args_text(args, "-o"), common_hdf5_endings));
    CLI_TRY(setup_grid(&setup->grid, args, &image->grid));
    const int num = lr_view_set_count(&setup->set);
    lr_view *views = calloc((size_t)num, sizeof(*views));
    for (int k = 0; views != NULL && k < num; k++) views[k] = lr_view_set_at(&setup->set, k);

    const int count = lr_view_set_count(&setup->set);
    lr_status status = views != NULL ? open_views(setup, args, views, count)
                                     : report_error(args->report, LR_FAILED, "no memory for %d views", count);
    lr_histo_images *histo =
        status == LR_OK ? lr_histo_images_create(&setup->grid.grid, views, count, &args->report->log) : NULL;
    free(views);
    if (status == LR_OK)
        status = histo != NULL ? forward_views(args, setup, image, histo) : report_reason(args->report);
    lr_histo_images_destroy(histo);
    return status;
}

static lr_status back_views(struct cli_args *args, struct direct_setup *setup, const lr_histo_images *histo,
                            lr_image *image)
{
    const int64_t count = lr_grid_num_voxels(&image->grid);
    const lr_lor_data data = direct_data(histo);
    const lr_vector y = lr_lor_data_vector(&data);
    lr_vector x = lr_image_vector(image);
    CLI_TRY(lr_operator_back(setup->op, NULL, &y, &x));
    const char *output = args_text(args, "-o");
    CLI_TRY(check_result(args, image->values, count));
    CLI_TRY(lr_image_write(output, image, &args->report->log));
    report_projection(args, setup, output, common_sum(image->values, count));
    return LR_OK;
}

static lr_status project_back(struct cli_args *args, struct direct_setup *setup, const lr_histo_images *histo)
{
    CLI_TRY(common_check_output(args->report, args_text(args, "-o"), common_image_endings));
    CLI_TRY(setup_grid(&setup->grid, args, &histo->grid));
    CLI_TRY(open_views(setup, args, histo->views, histo->num_views));
    lr_image *image = lr_image_create(&histo->grid, &args->report->log);
    const lr_status status = image != NULL ? back_views(args, setup, histo, image) : report_reason(args->report);
    lr_image_destroy(image);
    return status;
}

/* The histo-image of one view is an image like any other. */
static lr_status project_one_view(struct cli_args *args, struct direct_setup *setup, const lr_image *image)
{
    const char *output = args_text(args, "-o");
    const lr_view view = read_view(args);
    CLI_TRY(common_check_output(args->report, output, common_image_endings));
    CLI_TRY(setup_grid(&setup->grid, args, &image->grid));
    CLI_TRY(open_views(setup, args, &view, 1));
    lr_image *target = lr_image_create(&image->grid, &args->report->log);
    if (target == NULL) return report_reason(args->report);
    const lr_vector in = lr_image_vector(image);
    lr_vector out = lr_image_vector(target);
    lr_status status = args_has(args, "--transpose") ? lr_operator_back(setup->op, NULL, &in, &out)
                                                     : lr_operator_forward(setup->op, NULL, &in, &out);
    if (status == LR_OK) status = check_result(args, target->values, lr_grid_num_voxels(&target->grid));
    if (status == LR_OK) status = lr_image_write(output, target, &args->report->log);
    if (status == LR_OK)
        report_projection(args, setup, output, common_sum(target->values, lr_grid_num_voxels(&target->grid)));
    lr_image_destroy(target);
    return status;
}

static bool is_one_view(const struct cli_args *args)
{
    return args_has(args, "--azimuth-deg") || args_has(args, "--tilt-deg");
}

static lr_status project(struct cli_args *args, struct direct_setup *setup)
{
    const char *image_path = args_text(args, "--image"), *histo_path = args_text(args, "--histo");
    args_required(args, "-o");
    if ((image_path != NULL) == (histo_path != NULL)) {
        args_complain(args, "direct project needs either --image IMAGE, which goes forward, or "
                            "--histo FILE, which goes back");
    }
    const bool has_set =
        args_has(args, "--azimuths") || args_has(args, "--tilts") || args_has(args, "--acceptance-deg");
    if (is_one_view(args) && (has_set || args_has(args, "--histo"))) {
        args_complain(args, "--azimuth-deg and --tilt-deg are those of the one view that --image "
                            "belongs to: leave out sets of views and --histo");
    }
    if (args_has(args, "--transpose") && !is_one_view(args))
        args_complain(args, "--transpose needs the view: give --azimuth-deg");

    setup->grid.report = args->report;
    CLI_TRY(direct_read_views(setup, args));
    CLI_TRY(direct_read_kernel(setup, args));
    if (image_path != NULL) {
        lr_image *image = setup_read_image(&setup->grid, args, image_path);
        const lr_status status = image == NULL       ? report_reason(args->report)
                                 : is_one_view(args) ? project_one_view(args, setup, image)
                                                     : project_forward(args, setup, image);
        lr_image_destroy(image);
        return status;
    }
    lr_histo_images *histo = lr_histo_images_read(histo_path, &args->report->log);
    const lr_status status = histo != NULL ? project_back(args, setup, histo) : report_reason(args->report);
    lr_histo_images_destroy(histo);
    return status;
}

static lr_status run_project(struct cli_args *args)
{
    struct direct_setup setup = {0};
    const lr_status status = project(args, &setup);
    direct_finish(&setup);
    return status;
}

static const struct cli_option lut_options[] = {
    {"--azimuth-deg", "D", "of the view; default 0", false},
    {"--tilt-deg", "D", "of the view; default 0", false},
    {"-o", "FILE", "picture to write (.png): LORmap, mSR and three kernels of mSRval", false},
    {0},
};

static const struct cli_option project_options[] = {
    {"--image", "IMAGE", "project it forward into histo-images of the set of views", false},
    {"--histo", "FILE", "project these histo-images back (HDF5; they know their views)", false},
    {"--azimuth-deg", "D", "one view of this azimuth instead of a set: an image from an image", false},
    {"--tilt-deg", "D", "one view of this tilt", false},
    {"--transpose", NULL, "one view: --image is its histo-image, which goes back", false},
    {"-o", "FILE", "histo-images (HDF5), or the image (.nii, .nii.gz, .hv, .hdr, .mhd, .mha, .npy)", false},
    {0},
};

static const struct cli_syntax lut_syntax = {
    .verb = "direct lut",
    .summary = "Draws the look-up tables of a view of the family direct.",
    .example = "loraster direct lut --tof-ps 400 --model variant2 --azimuth-deg 30 "
               "--grid 144,144,48 --voxel-mm 4 -o tables.png",
    .outputs = {{"-o", common_picture_endings}},
    .groups = {{"view and output", lut_options}, DIRECT_KERNEL_GROUP, COMMON_GRID_GROUP, COMMON_GENERAL_GROUP},
};

static const struct cli_syntax project_syntax = {
    .verb = "direct project",
    .summary = "Projects an image into histo-images, or those back.",
    .example = "loraster direct project --image x.nii.gz --tof-ps 400 --model variant2 -o y.h5",
    .outputs = {{"-o", project_endings}},
    .groups = {{"input and output", project_options},
               DIRECT_VIEW_GROUP,
               DIRECT_KERNEL_GROUP,
               COMMON_GRID_GROUP,
               DIRECT_DEVICE_GROUP,
               COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_direct_lut = {&lut_syntax, run_lut};
const struct cli_verb verb_direct_project = {&project_syntax, run_project};

/* --- deposit: events with time of flight into histo-images --- */

static const struct cli_option photon_options[] = {
    {"--activity", "IMAGE", "instead of --events: photon pairs from this image", false},
    {"--count", "N", "pairs to be detected; default 100000", false},
    {"--tof-ps", "PS", "time resolution, FWHM; default the scanner's", false},
    {"--model", "NAME", "lines are off by this radial width, as that of recon; default: by crystals alone", false},
    {"--radial-mm", "MM", "FWHM of invariant, and of linear at the centre; default 5.8", false},
    {"--radial-edge-mm", "MM", "FWHM of linear at the edge", false},
    {"--edge-mm", "MM", "distance of the edge from the axis; default 288", false},
    {"--axial-mm", "MM", "FWHM along the axis, where lines are off; default 5.8", false},
    {"--seed", "N", "default 1", false},
    {"--threads", "N", "default: all processors; the events are the same", false},
    {0},
};

/* Source of events; zero is none. */
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

/* The file says before the events if they have time of flight. */
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
    /* Lines are blurred where a width is asked for. */
    const bool blurs = args_has(args, "--model") || args_has(args, "--radial-mm") || args_has(args, "--axial-mm");
    source->blur = direct_read_widths(args);
    if (!blurs && args_has(args, "--edge-mm")) args_complain(args, "--edge-mm needs --model");
    if (blurs) {
        /* Widths are largest in the middle or at the edge. */
        source->photons.blur =
            (lr_photon_blur){.radial_mm = blur_width,
                             .user = &source->blur,
                             .most_radial_mm = fmax(lr_resolution_radial_mm(&source->blur, 0),
                                                    lr_resolution_radial_mm(&source->blur, HUGE_VAL)),
                             .axial_mm = source->blur.axial_mm > 0 ? source->blur.axial_mm : 5.8};
    }

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

static lr_status deposit_run_with(struct cli_args *args, struct direct_setup *setup, struct source *source)
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

static lr_status deposit_run(struct cli_args *args)
{
    struct direct_setup setup = {0};
    struct source source = {.report = args->report};
    const lr_status status = deposit_run_with(args, &setup, &source);
    lr_events_info_finish(&source.info);
    lr_image_destroy(source.activity);
    lr_lors_destroy(source.lors);
    lr_scanner_destroy(source.scanner);

    direct_finish(&setup);
    return status;
}

static const struct cli_option deposit_options[] = {
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

static const struct cli_syntax deposit_syntax = {
    .verb = "direct deposit",
    .summary = "Puts events with time of flight into one histo-image per view.",
    .example = "loraster direct deposit --events scan.petsird --grid 144,144,48 --voxel-mm 4 "
               "-o y.h5",
    .outputs = {{"-o", common_hdf5_endings}},
    .groups = {{"events and output", deposit_options},
               {"simulation", photon_options},
               DIRECT_VIEW_GROUP,
               COMMON_SCANNER_GROUP,
               COMMON_GRID_GROUP,
               COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_direct_deposit = {&deposit_syntax, deposit_run};

/* --- factors: what a scanner measures of each view, as histo-images --- */

/* Zero is valid; nothing in it may move. */
struct work {
    struct cli_args *args;
    struct direct_setup setup;
    lr_histo_images *histo;
    int directions;
    double seconds;
};

static void report_result(const struct work *work)
{
    const struct cli_args *args = work->args;
    const lr_histo_images *histo = work->histo;
    const lr_lor_data data = direct_data(histo);
    const double mean = common_sum(data.values, data.count) / (double)data.count;
    double low = INFINITY, high = 0;
    for (int64_t k = 0; k < data.count; k++) {
        low = fmin(low, data.values[k]);
        high = fmax(high, data.values[k]);
    }
    report_clear(args->report);
    if (!args->report->json) {
        printf("%s: factors of %d views, %.6g to %.6g, mean %.6g\n", args_text(args, "-o"), histo->num_views, low, high,
               mean);
        return;
    }
    struct json json = common_json_begin(args->syntax->verb);
    json_text(&json, "output", args_text(args, "-o"));
    json_text(&json, "scanner", work->setup.grid.scanner->name);
    common_json_grid(&json, "grid", &histo->grid);
    json_int(&json, "views", histo->num_views);
    json_int(&json, "directions", work->directions);
    json_text(&json, "efficiencies", args_text(args, "--efficiencies"));
    json_text(&json, "mu", args_text(args, "--mu"));
    json_number(&json, "low", low);
    json_number(&json, "high", high);
    json_number(&json, "mean", mean);
    json_number(&json, "seconds", work->seconds);
    common_json_end(&json);
}

static lr_status compute(struct work *work)
{
    struct setup *setup = &work->setup.grid;
    struct report *report = setup->report;
    const double begin = report_seconds();
    work->histo = lr_direct_factors_create(&(lr_direct_factors_params){.lors = setup->lors,
                                                                       .grid = &setup->grid,
                                                                       .set = work->setup.set,
                                                                       .efficiencies = setup->factors.efficiencies,
                                                                       .mu = setup->mu,
                                                                       .directions = work->directions,
                                                                       .threads = setup->params.threads,
                                                                       .log = &report->log,
                                                                       .progress = &report->progress});
    if (work->histo == NULL) return report_reason(report);
    work->seconds = report_seconds() - begin;
    const lr_lor_data data = direct_data(work->histo);
    return common_check_result(report,
                               &(struct common_result){.output = args_text(work->args, "-o"),
                                                       .values = data.values,
                                                       .count = data.count,
                                                       .causes = "does the grid miss the scanner (--origin-mm), "
                                                                 "are the efficiencies all 0, or does the "
                                                                 "attenuation map stop everything (--mu-unit)?"});
}

static lr_status factors_run_with(struct work *work)
{
    static const int64_t directions[2] = {1, 1 << 20};
    struct cli_args *args = work->args;
    struct setup *setup = &work->setup.grid;
    const char *output = args_required(args, "-o");
    const char *efficiencies = args_text(args, "--efficiencies");
    work->directions = (int)args_int(args, "--directions", 32, directions);
    setup->report = args->report;
    CLI_TRY(direct_read_views(&work->setup, args));
    CLI_TRY(setup_scanner(setup, args, LR_STORE_NO));
    CLI_TRY(setup_grid(setup, args,
                       setup->mu != NULL && !args_has(args, "--grid") && !args_has(args, "--like") ? &setup->mu->grid
                                                                                                   : NULL));
    if (efficiencies != NULL) CLI_TRY(lor_factors_efficiencies(setup, efficiencies));
    CLI_TRY(compute(work));
    CLI_TRY(lr_histo_images_write(output, work->histo, &args->report->log));
    report_result(work);
    return LR_OK;
}

static lr_status factors_run(struct cli_args *args)
{
    struct work work = {.args = args};
    const lr_status status = factors_run_with(&work);
    lr_histo_images_destroy(work.histo);
    direct_finish(&work.setup);
    return status;
}

static const struct cli_option factors_options[] = {
    {"--efficiencies", "FILE", "one number per crystal (.npy, text or .petsird), multiplied in", false},
    {"--mu", "IMAGE", "attenuation map: the share of pairs that survive it, multiplied in", false},
    {"--mu-unit", "UNIT", "of the map: 1/mm, 1/cm or hu (CT); default: 1/mm or 1/cm by its largest value", false},
    {"--directions", "N", "lines through each voxel in each view; default 32", false},
    {"--threads", "N", "default: all processors; the factors are the same", false},
    {"-o", "FILE", "histo-images of factors to write (HDF5), for recon --factors", false},
    {0},
};

static const struct cli_syntax factors_syntax = {
    .verb = "direct factors",
    .summary = "Writes what a scanner measures of each view, for recon --factors.",
    .example = "loraster direct factors --scanner penn-labr3 --grid 144,144,48 --voxel-mm 4 "
               "-o n.h5",
    .outputs = {{"-o", common_hdf5_endings}},
    .groups = {{"factors and output", factors_options},
               DIRECT_VIEW_GROUP,
               COMMON_SCANNER_GROUP,
               COMMON_GRID_GROUP,
               COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_direct_factors = {&factors_syntax, factors_run};
