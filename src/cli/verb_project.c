/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One product with the matrix or its transpose: project, backproject, sensitivity. */
#include "forecast.h"
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>

static void report_result(const struct cli_args *args, const struct setup *setup, const char *output, double sum)
{
    report_clear(args->report);
    if (args->report->json) {
        struct json json = common_json_begin(args->syntax->verb);
        setup_json(setup, &json);
        json_text(&json, "output", output);
        json_number(&json, "sum", sum);
        common_json_end(&json);
    } else {
        printf("%s: sum %.9g\n", output, sum);
    }
}

/* One projection forward or back, and a file of so many values. *goes_on: not with --dry-run. */
static lr_status forecast(struct setup *setup, const char *output, int64_t num_values, bool *goes_on)
{
    const double values = (double)num_values, voxels = (double)lr_grid_num_voxels(&setup->grid);
    const double bytes = sizeof(float);
    const bool is_deflated = common_ends_with(output, ".gz");
    return forecast_projections(setup,
                                &(struct forecast_projections){.projections = 1,
                                                               .array_bytes = bytes * (values + voxels),
                                                               .output = output,
                                                               .output_bytes = is_deflated ? 0 : bytes * values},
                                goes_on);
}

/* --- project --- */

static lr_status project_image(struct cli_args *args, struct setup *setup, const lr_image *image, const char *output)
{
    CLI_TRY(setup_grid(setup, args, &image->grid));
    bool goes_on;
    CLI_TRY(setup_operator(setup));
    CLI_TRY(forecast(setup, output, setup->lors->count, &goes_on));
    if (!goes_on) return LR_OK;
    lr_lor_data *data = lr_lor_data_create(setup->lors, &setup->report->log);
    if (data == NULL) return report_reason(setup->report);
    const lr_vector x = lr_image_vector(image);
    lr_vector y = lr_lor_data_vector(data);
    lr_status status = lr_operator_forward(setup->op, NULL, &x, &y);
    if (status == LR_OK) {
        status = common_check_result(setup->report,
                                     &(struct common_result){.output = output,
                                                             .values = data->values,
                                                             .count = data->count,
                                                             .causes = "the image is 0 wherever a LOR passes: "
                                                                       "is it the right image, and does its "
                                                                       "origin put it into the scanner?"});
    }
    if (status == LR_OK) status = lr_lor_data_write(output, setup->lors, data, &setup->report->log);
    if (status == LR_OK) report_result(args, setup, output, common_sum(data->values, data->count));
    lr_lor_data_destroy(data);
    return status;
}

static lr_status run_project(struct cli_args *args)
{
    struct setup setup = {0};
    const char *path = args_required(args, "--image");
    const char *output = args_required(args, "-o");
    const enum mu_way way = lor_factors_mu_as(args, MU_LINES);
    lr_image *image = NULL;
    lr_status status = setup_scanner(&setup, args, LR_STORE_NO);
    status = status == LR_OK ? lor_factors_give(&setup, way) : status;
    if (status == LR_OK) {
        image = setup_read_image(&setup, args, path);
        status = image != NULL ? project_image(args, &setup, image, output) : report_reason(args->report);
    }
    lr_image_destroy(image);
    setup_finish(&setup);
    return status;
}

/* --- backproject, sensitivity --- */

/* Dense LOR data from a file, or NULL. */
static lr_lor_data *read_dense(struct setup *setup, const char *path)
{
    lr_lor_data *data = lr_lor_data_read(path, setup->lors, &setup->report->log);
    if (data == NULL || data->index == NULL) return data;
    lr_lor_data *dense = lr_lor_data_expand(data, setup->lors, &setup->report->log);
    lr_lor_data_destroy(data);
    return dense;
}

/* A^T data, or A^T 1 without data. */
static lr_status back_project(struct setup *setup, const lr_lor_data *data, lr_image *image)
{
    lr_vector x = lr_image_vector(image);
    if (data == NULL) return lr_operator_sensitivity(setup->op, NULL, &x);
    const lr_vector y = lr_lor_data_vector(data);
    return lr_operator_back(setup->op, NULL, &y, &x);
}

static lr_status make_image(struct cli_args *args, struct setup *setup, const lr_lor_data *data)
{
    const char *output = args_text(args, "-o");
    bool goes_on;
    CLI_TRY(setup_operator(setup));
    CLI_TRY(forecast(setup, output, lr_grid_num_voxels(&setup->grid), &goes_on));
    if (!goes_on) return LR_OK;
    lr_image *image = lr_image_create(&setup->grid, &setup->report->log);
    if (image == NULL) return report_reason(setup->report);
    lr_status status = back_project(setup, data, image);
    if (status == LR_OK) {
        const char *causes = data != NULL ? "the data have no counts in LORs that pass the grid: are they the right "
                                            "ones, and does the grid lie where they come from?"
                                          : "no LOR in coincidence passes the grid, or the attenuation map stops "
                                            "everything: check --origin-mm, the scanner's rules and --mu-unit";
        status = common_check_result(setup->report, &(struct common_result){.output = output,
                                                                            .values = image->values,
                                                                            .count = lr_grid_num_voxels(&image->grid),
                                                                            .causes = causes});
    }
    if (status == LR_OK) status = lr_image_write(output, image, &setup->report->log);
    if (status == LR_OK)
        report_result(args, setup, output, common_sum(image->values, lr_grid_num_voxels(&image->grid)));
    lr_image_destroy(image);
    return status;
}

static lr_status prepare(struct cli_args *args, struct setup *setup)
{
    args_required(args, "-o");
    const enum mu_way way = lor_factors_mu_as(args, MU_LINES);
    CLI_TRY(setup_scanner(setup, args, LR_STORE_NO));
    CLI_TRY(lor_factors_give(setup, way));
    return setup_grid(setup, args, NULL);
}

static lr_status run_backproject(struct cli_args *args)
{
    struct setup setup = {0};
    const char *path = args_required(args, "--data");
    lr_lor_data *data = NULL;
    lr_status status = prepare(args, &setup);
    if (status == LR_OK) {
        data = read_dense(&setup, path);
        status = data != NULL ? make_image(args, &setup, data) : report_reason(args->report);
    }
    lr_lor_data_destroy(data);
    setup_finish(&setup);
    return status;
}

static lr_status run_sensitivity(struct cli_args *args)
{
    struct setup setup = {0};
    lr_status status = prepare(args, &setup);
    if (status == LR_OK) status = make_image(args, &setup, NULL);
    setup_finish(&setup);
    return status;
}

static const struct cli_option project_options[] = {
    {"--image", "IMAGE", "its grid is used, or that of --grid where it has none (.npy)", false},
    {"-o", "FILE", "LOR data to write (HDF5, or STIR's .hs)", false},
    LOR_FACTORS_MU_AS("lines"),
    FORECAST_DRY_RUN,
    {0},
};

static const struct cli_option backproject_options[] = {
    {"--data", "FILE", "LOR data (HDF5, or STIR's .hs)", false},
    {"-o", "IMAGE", "image to write (.nii, .nii.gz, .hv, .hdr, .mhd, .mha, .npy)", false},
    LOR_FACTORS_MU_AS("lines"),
    FORECAST_DRY_RUN,
    {0},
};

static const struct cli_option sensitivity_options[] = {
    {"-o", "IMAGE", "image to write (.nii, .nii.gz, .hv, .hdr, .mhd, .mha, .npy)", false},
    LOR_FACTORS_MU_AS("lines"),
    FORECAST_DRY_RUN,
    {0},
};

static const struct cli_syntax project_syntax = {
    .verb = "project",
    .summary = "Projects an image: the expected value of every LOR, A x.",
    .example = "loraster project --scanner ge-explore-vista-dr --image x.nii.gz -o y.h5",
    .outputs = {{"-o", common_data_endings}},
    .groups = {{"input and output", project_options},
               COMMON_SCANNER_GROUP,
               COMMON_GRID_GROUP,
               COMMON_OPERATOR_GROUP,
               COMMON_GENERAL_GROUP},
};

static const struct cli_syntax backproject_syntax = {
    .verb = "backproject",
    .summary = "Projects LOR data back into an image, A^T y.",
    .example = "loraster backproject --scanner ge-explore-vista-dr --data y.h5 "
               "--grid 96,96,8 --voxel-mm 0.45 -o back.nii.gz",
    .outputs = {{"-o", common_image_endings}},
    .groups = {{"input and output", backproject_options},
               COMMON_SCANNER_GROUP,
               COMMON_GRID_GROUP,
               COMMON_OPERATOR_GROUP,
               COMMON_GENERAL_GROUP},
};

static const struct cli_syntax sensitivity_syntax = {
    .verb = "sensitivity",
    .summary = "Writes each voxel's probability of being detected at all, A^T 1.",
    .example = "loraster sensitivity --scanner ge-explore-vista-dr --grid 96,96,8 "
               "--voxel-mm 0.45 -o sensitivity.nii.gz",
    .outputs = {{"-o", common_image_endings}},
    .groups = {{"input and output", sensitivity_options},
               COMMON_SCANNER_GROUP,
               COMMON_GRID_GROUP,
               COMMON_OPERATOR_GROUP,
               COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_project = {&project_syntax, run_project};
const struct cli_verb verb_backproject = {&backproject_syntax, run_backproject};
const struct cli_verb verb_sensitivity = {&sensitivity_syntax, run_sensitivity};
