/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * direct lut, direct project. */
#include "album.h"
#include "direct.h"
#include "verbs.h"

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

static lr_view *list_views(const struct direct_setup *setup)
{
    const int count = lr_view_set_count(&setup->set);
    lr_view *views = calloc((size_t)count, sizeof(*views));
    for (int k = 0; views != NULL && k < count; k++) views[k] = lr_view_set_at(&setup->set, k);
    return views;
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
    lr_view *views = list_views(setup);
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

static void check_views(struct cli_args *args)
{
    const bool has_set =
        args_has(args, "--azimuths") || args_has(args, "--tilts") || args_has(args, "--acceptance-deg");
    if (is_one_view(args) && (has_set || args_has(args, "--histo"))) {
        args_complain(args, "--azimuth-deg and --tilt-deg are those of the one view that --image "
                            "belongs to: leave out sets of views and --histo");
    }
    if (args_has(args, "--transpose") && !is_one_view(args))
        args_complain(args, "--transpose needs the view: give --azimuth-deg");
}

static lr_status project(struct cli_args *args, struct direct_setup *setup)
{
    const char *image_path = args_text(args, "--image"), *histo_path = args_text(args, "--histo");
    args_required(args, "-o");
    if ((image_path != NULL) == (histo_path != NULL)) {
        args_complain(args, "direct project needs either --image IMAGE, which goes forward, or "
                            "--histo FILE, which goes back");
    }
    check_views(args);
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
