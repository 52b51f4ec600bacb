/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One product with the matrix or its transpose: project, backproject, sensitivity. */
#include "base/path.h"
#include "common.h"
#include "pictures.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs project (y = A x), backproject (x = A^T y) or sensitivity (x = A^T 1). */
static lr_status run(struct cli_args *args)
{
    const bool is_forward = strcmp(args->verb->name, "project") == 0;
    const bool has_data = strcmp(args->verb->name, "backproject") == 0;
    const lr_log *log = &args->report->log;
    struct setup setup = {0};
    lr_image *image = NULL;
    lr_lor_data *data = NULL;
    bool goes_on = false;
    const char *path = is_forward ? args_required(args, "--image") : has_data ? args_required(args, "--data") : NULL;
    const char *output = args_required(args, "-o");
    const enum mu_way way = lor_factors_mu_as(args);
    lr_status status = setup_scanner(&setup, args, LR_STORE_NO, NULL);
    if (status == LR_OK) status = lor_factors_give(&setup, way);
    if (status != LR_OK) goto finish;
    if (is_forward) image = setup_read_image(&setup, args, path);
    status = is_forward && image == NULL ? report_reason(args->report)
                                         : setup_grid(&setup, args, is_forward ? &image->grid : NULL);
    if (status == LR_OK && is_forward) setup_warn_of_air(&setup, image, 0.1, "");
    if (status == LR_OK && has_data) {
        data = lr_lor_data_read(path, setup.lors, log);
        if (data != NULL && data->index != NULL) {
            lr_lor_data *dense = lr_lor_data_expand(data, setup.lors, log);
            lr_lor_data_destroy(data);
            data = dense;
        }
        if (data == NULL) status = report_reason(args->report);
    }
    if (status == LR_OK) status = setup_operator(&setup);
    if (status != LR_OK) goto finish;

    const int64_t num_voxels = lr_grid_num_voxels(&setup.grid);
    const int64_t count = is_forward ? setup.lors->count : num_voxels;
    const double bytes = sizeof(float);
    const bool is_deflated = lr_path_ends(output, ".gz");
    status =
        forecast_projections(&setup,
                             &(struct forecast_projections){.projections = 1,
                                                            .array_bytes = bytes * ((double)count + (double)num_voxels),
                                                            .output = output,
                                                            .output_bytes = is_deflated ? 0 : bytes * (double)count},
                             &goes_on);
    if (status != LR_OK || !goes_on) goto finish;
    if (is_forward)
        data = lr_lor_data_create(setup.lors, log);
    else
        image = lr_image_create(&setup.grid, log);
    status = image != NULL && (data != NULL || !is_forward) ? LR_OK : report_reason(args->report);
    if (status != LR_OK) goto finish;
    lr_vector x = lr_image_vector(image), y = {0};
    if (data != NULL) y = lr_lor_data_vector(data);
    status = is_forward ? lr_operator_forward(setup.op, NULL, &x, &y)
             : has_data ? lr_operator_back(setup.op, NULL, &y, &x)
                        : lr_operator_sensitivity(setup.op, NULL, &x);
    const struct common_result result = {
        .output = output,
        .values = is_forward ? data->values : image->values,
        .count = count,
        .causes = is_forward ? "the image is 0 wherever a LOR passes: is it the right image, and does its origin put "
                               "it into the scanner?"
                  : has_data ? "the data have no counts in LORs that pass the grid: are they the right ones, and does "
                               "the grid lie where they come from?"
                             : "no LOR in coincidence passes the grid, or the attenuation map stops everything: check "
                               "--origin-mm, the scanner's rules and --mu-unit"};
    if (status == LR_OK) status = common_check_result(args->report, &result);
    if (status == LR_OK)
        status = is_forward ? lr_lor_data_write(output, setup.lors, data, log) : lr_image_write(output, image, log);
    const char *png = args_text(args, "--png");
    if (status == LR_OK && png != NULL) {
        status = picture_write_slices(args->report, png,
                                      &(struct picture_slices){.image = image,
                                                               .unit = "share of emissions",
                                                               .title = setup.scanner->name,
                                                               .note = "Sensitivity",
                                                               .colours = LR_COLOURS_PERCEPTUAL});
    }
    if (status != LR_OK) goto finish;

    const double sum = common_sum(result.values, count);
    report_clear(args->report);
    if (args->report->json) {
        struct json json = common_json_begin(stdout, args->verb->name);
        setup_json(&setup, &json);
        json_text(&json, "output", output);
        if (!is_forward && !has_data) json_text(&json, "picture", png);
        json_number(&json, "sum", sum);
        common_json_end(&json);
    } else {
        printf("%s: sum %.9g\n", output, sum);
    }

finish:
    lr_lor_data_destroy(data);
    lr_image_destroy(image);
    setup_finish(&setup);
    return status;
}

static const struct cli_option project_options[] = {
    {"--image", "IMAGE", "its grid is used, or that of --grid where it has none (.npy)", NULL},
    {"-o", "FILE", "LOR data to write (HDF5, or STIR's .hs)", NULL},
    {LOR_FACTORS_MU_AS},
    {FORECAST_DRY_RUN},
    {0},
};

static const struct cli_option backproject_options[] = {
    {"--data", "FILE", "LOR data (HDF5, or STIR's .hs)", NULL},
    {"-o", "IMAGE", "image to write (.nii, .nii.gz, .hv, .hdr, .mhd, .mha, .npy)", NULL},
    {LOR_FACTORS_MU_AS},
    {FORECAST_DRY_RUN},
    {0},
};

static const struct cli_option sensitivity_options[] = {
    {"-o", "IMAGE", "image to write (.nii, .nii.gz, .hv, .hdr, .mhd, .mha, .npy)", NULL},
    {"--png", "FILE", "also draw three slices of it", NULL},
    {LOR_FACTORS_MU_AS},
    {FORECAST_DRY_RUN},
    {0},
};

const struct cli_verb verb_project = {
    .name = "project",
    .summary = "Projects an image: the expected value of every LOR, A x.",
    .example = "loraster project --scanner ge-explore-vista-dr --image x.nii.gz -o y.h5",
    .outputs = {{"-o", common_data_endings}},
    .groups = {{"input and output", project_options},
               {COMMON_SCANNER_GROUP},
               {COMMON_GRID_GROUP},
               {COMMON_OPERATOR_GROUP}},
    .run = run,
};

const struct cli_verb verb_backproject = {
    .name = "backproject",
    .summary = "Projects LOR data back into an image, A^T y.",
    .example = "loraster backproject --scanner ge-explore-vista-dr --data y.h5 "
               "--grid 96,96,8 --voxel-mm 0.45 -o back.nii.gz",
    .outputs = {{"-o", common_image_endings}},
    .groups = {{"input and output", backproject_options},
               {COMMON_SCANNER_GROUP},
               {COMMON_GRID_GROUP},
               {COMMON_OPERATOR_GROUP}},
    .run = run,
};

const struct cli_verb verb_sensitivity = {
    .name = "sensitivity",
    .summary = "Writes the probability that both photons of an emission in a voxel meet crystals, A^T 1.",
    .example = "loraster sensitivity --scanner ge-explore-vista-dr --grid 96,96,8 "
               "--voxel-mm 0.45 -o sensitivity.nii.gz",
    .outputs = {{"-o", common_image_endings}, {"--png", common_picture_endings}},
    .groups = {{"input and output", sensitivity_options},
               {COMMON_SCANNER_GROUP},
               {COMMON_GRID_GROUP},
               {COMMON_OPERATOR_GROUP}},
    .run = run,
};
