/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "common.h"
#include "verbs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A positive number, 0 where the option is not given. */
static double read_number(struct cli_args *args, const char *name)
{
    const char *text = args_text(args, name);
    char *end = NULL;
    const double value = text != NULL ? strtod(text, &end) : 0;
    if (text != NULL && (end == text || *end != '\0' || !(isfinite(value) && value > 0))) {
        args_complain(args, "%s %s: a positive number is needed", name, text);
        return 0;
    }
    return value;
}

static void report_phantom(const struct cli_args *args, const lr_image *image, const char *name)
{
    const char *output = args_text(args, "-o");
    const double sum = common_sum(image->values, lr_grid_num_voxels(&image->grid));
    report_clear(args->report);
    if (!args->report->json) {
        printf("%s: %s, sum %.9g\n", output, name, sum);
        return;
    }
    struct json json = common_json_begin(args->syntax->verb);
    json_text(&json, "output", output);
    json_text(&json, "phantom", name);
    common_json_grid(&json, "grid", &image->grid);
    json_number(&json, "sum", sum);
    common_json_end(&json);
}

static lr_status draw(struct cli_args *args, struct setup *setup)
{
    const char *output = args_required(args, "-o");
    const char *name = args->num_positional == 1 ? args->positional[0] : NULL;
    const lr_phantom_params params = {.name = name,
                                      .radius_mm = read_number(args, "--radius-mm"),
                                      .contrast = read_number(args, "--contrast"),
                                      .log = &args->report->log,
                                      .progress = &args->report->progress};
    if (args->num_positional != 1) args_complain(args, "phantom needs the name of one, such as six-spheres");
    CLI_TRY(args->status);
    CLI_TRY(setup_grid(setup, args, NULL));
    lr_image *image = lr_phantom_create(&params, &setup->grid);
    if (image == NULL) return report_reason(args->report);
    const lr_status status = lr_image_write(output, image, &args->report->log);
    if (status == LR_OK) report_phantom(args, image, name);
    lr_image_destroy(image);
    return status;
}

static lr_status run(struct cli_args *args)
{
    struct setup setup = {.report = args->report};
    const lr_status status = draw(args, &setup);
    setup_finish(&setup);
    return status;
}

static const struct cli_option options[] = {
    {"--radius-mm", "MM", "of the cylinder; default 0.46 of the grid's width", false},
    {"--contrast", "C", "spheres over cylinder; default 4 of spheres, 6 of six-spheres", false},
    {"-o", "IMAGE", "activity to write (.nii, .nii.gz, .hv, .hdr, .mhd, .mha, .npy)", false},
    {0},
};

static const struct cli_syntax syntax = {
    .verb = "phantom",
    .positionals = "NAME",
    .summary = "Draws a phantom: derenzo, spheres, six-spheres or point.",
    .example = "loraster phantom six-spheres --radius-mm 175 --grid 180,180,95 --voxel-mm 2 "
               "-o activity.nii.gz",
    .outputs = {{"-o", common_image_endings}},
    .groups = {{"phantom and output", options}, COMMON_GRID_GROUP, COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_phantom = {&syntax, run};
