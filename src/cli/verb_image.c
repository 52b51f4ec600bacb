/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * smooth, sinogram: a smoother image, and a picture of counts. */
#include "common.h"
#include "pictures.h"
#include "verbs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- smooth --- */

static lr_status run_smooth(struct cli_args *args)
{
    struct setup setup = {.report = args->report};
    double fwhm_mm[3];
    args_required(args, "--fwhm-mm");
    args_triple(args, "--fwhm-mm", true, fwhm_mm);
    if (args->num_positional != 2) args_complain(args, "smooth needs %s", args->verb->positionals);
    if (args->status != LR_OK) return args->status;
    if (fwhm_mm[0] == 0 && fwhm_mm[1] == 0 && fwhm_mm[2] == 0)
        report_warn(args->report, "--fwhm-mm %s smooths nothing: give the width of the Gaussian, such as --fwhm-mm 5",
                    args_text(args, "--fwhm-mm"));
    const char *input = args->positional[0], *output = args->positional[1];
    const lr_log *log = &args->report->log, errors = report_errors_alone(args->report);
    lr_image_frames all = {.images = NULL};
    const int count = lr_image_num_frames(input, &all.step_s);
    lr_image **images = calloc((size_t)count + 1, sizeof(*images));
    lr_status status = images != NULL ? LR_OK : report_error(args->report, LR_FAILED, "no memory for %d images", count);
    double sum = 0, before = 0;
    for (int k = 0; status == LR_OK && k < (count > 1 ? count : 1); k++) {
        lr_image *image = count > 1 ? lr_image_read_frame(input, k + 1, log) : setup_read_image(&setup, args, input);
        images[all.count++] = image;
        if (image != NULL) before += common_sum(image->values, lr_grid_num_voxels(&image->grid));
        status = image != NULL ? lr_image_smooth(image, fwhm_mm, k == 0 ? log : &errors) : report_reason(args->report);
        if (status == LR_OK) sum += common_sum(image->values, lr_grid_num_voxels(&image->grid));
    }
    all.images = (const lr_image *const *)images;
    if (status == LR_OK)
        status = count > 1 ? lr_image_write_frames(output, &all, log) : lr_image_write(output, images[0], log);
    if (status == LR_OK) {
        if (args->report->json) {
            struct json json = common_json_begin(stdout, "smooth");
            json_text(&json, "output", output);
            json_numbers(&json, "fwhm_mm", fwhm_mm, 3);
            json_int(&json, "frames", all.count);
            json_number(&json, "sum", sum);
            json_number(&json, "sum_before", before);
            common_json_end(&json);
        } else {
            printf("%s: %g x %g x %g mm FWHM, sum %.9g", output, fwhm_mm[0], fwhm_mm[1], fwhm_mm[2], sum);
            if (fabs(sum - before) > 1e-3 * fabs(before)) printf(" of %.9g: the rest left the grid", before);
            putchar('\n');
        }
    }
    for (int k = 0; k < all.count; k++) lr_image_destroy(images[k]);
    free(images);
    return status;
}

static const struct cli_option smooth_options[] = {
    {"--fwhm-mm", "FWHM|X,Y,Z", "width of the Gaussian; 0 along an axis: none", NULL},
    {0},
};

const struct cli_verb verb_smooth = {
    .name = "smooth",
    .positionals = "IN OUT",
    .summary = "Smooths an image, or each frame of a NIfTI file, by a Gaussian; what leaves the grid is lost.",
    .example = "loraster smooth head.nii.gz smooth.nii.gz --fwhm-mm 5",
    .outputs = {{CLI_SECOND_WORD, common_image_endings}},
    .groups = {{"smoothing", smooth_options}, {"grid of an image without one (.npy)", common_grid_options}},
    .run = run_smooth,
};

/* --- sinogram --- */

static lr_status run_sinogram(struct cli_args *args)
{
    struct setup setup = {0};
    const lr_log *log = &args->report->log;
    const char *output = args_required(args, "-o");
    const double z_mm = args_number(args, "--z-mm", 0, false);
    const double thickness_mm = args_number(args, "--thickness-mm", args_has(args, "--z-mm") ? 10 : 0, true);
    struct picture_sheet sheet = {.report = args->report};
    if (args->num_positional != 1) args_complain(args, "sinogram needs one file with LOR data");
    lr_status status = args->status == LR_OK ? setup_scanner(&setup, args, LR_STORE_NO, NULL) : args->status;
    lr_lor_data *data = status == LR_OK
                            ? lr_lor_data_read_watched(args->positional[0], setup.lors, &args->report->progress, log)
                            : NULL;
    if (status == LR_OK && data == NULL) status = report_reason(args->report);
    if (status == LR_OK) {
        lr_picture *picture = lr_picture_sinogram(&(lr_sinogram_params){.lors = setup.lors,
                                                                        .data = data,
                                                                        .z_mm = z_mm,
                                                                        .thickness_mm = thickness_mm,
                                                                        .log = log,
                                                                        .progress = &args->report->progress});
        status = thickness_mm > 0 ? picture_sheet_add(&sheet, picture, "middles of LORs within %g mm of z = %g mm",
                                                      0.5 * thickness_mm, z_mm)
                                  : picture_sheet_add(&sheet, picture, "all LORs");
    }
    if (status == LR_OK) status = picture_sheet_write(&sheet, output, 0, 1, args->positional[0]);
    if (status == LR_OK) {
        const double counts = common_sum(data->values, data->count);
        report_clear(args->report);
        if (args->report->json) {
            struct json json = common_json_begin(stdout, "sinogram");
            json_text(&json, "output", output);
            json_text(&json, "scanner", setup.scanner->name);
            json_number(&json, "counts", counts);
            common_json_end(&json);
        } else {
            printf("%s: a sinogram of %s, %.9g counts in all\n", output, args->positional[0], counts);
        }
    }
    picture_sheet_finish(&sheet);
    lr_lor_data_destroy(data);
    setup_finish(&setup);
    return status;
}

static const struct cli_option sinogram_options[] = {
    {"-o", "FILE", "picture to write (.png)", NULL},
    {"--z-mm", "Z", "only LORs whose middle lies near z; default: all", NULL},
    {"--thickness-mm", "MM", "of the slice around z; default 10", NULL},
    {0},
};

const struct cli_verb verb_sinogram = {
    .name = "sinogram",
    .positionals = "DATA",
    .summary = "Draws LOR data (HDF5, STIR's .hs) by the distance and the angle of their lines.",
    .example = "loraster sinogram counts.h5 --scanner ge-explore-vista-dr -o counts.png",
    .outputs = {{"-o", common_picture_endings}},
    .groups = {{"picture", sinogram_options}, {COMMON_SCANNER_GROUP}},
    .run = run_sinogram,
};
