/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * direct recon: block RAMLA, OSEM and ML-EM of histo-images. */
#include "direct.h"
#include "run_bar.h"
#include "verbs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum algorithm { RAMLA, OSEM, MLEM };
static const char *const algorithms[] = {"ramla", "osem", "mlem", NULL};

struct inputs {
    lr_histo_images *counts, *additive, *factors;
    lr_image *initial;
};

/* What the report of an iteration needs. */
struct watch {
    struct report *report;
    const char *output;
    const lr_grid *grid;
    int save_every; /* 0 = never */
};

static lr_histo_images *read_one(struct cli_args *args, const char *name, lr_status *status)
{
    const char *path = args_text(args, name);
    lr_histo_images *histo =
        path != NULL && *status == LR_OK ? lr_histo_images_read(path, &args->report->log) : NULL;
    if (path != NULL && histo == NULL && *status == LR_OK) {
        *status = report_reason(args->report);
    }
    return histo;
}

static lr_status load(struct cli_args *args, struct direct_setup *setup,
                      const struct inputs *inputs)
{
    const lr_histo_images *all[3] = {inputs->counts, inputs->additive, inputs->factors};
    const int64_t count = lr_grid_num_voxels(&inputs->counts->grid);
    for (int k = 0; k < 3; k++) {
        if (all[k] != NULL) {
            CLI_TRY(lr_histo_images_check(all[k], setup->direct, &args->report->log));
        }
    }
    for (int view = 0; view < inputs->counts->num_views; view++) {
        const float *values[3] = {0};
        for (int k = 0; k < 3; k++) {
            values[k] = all[k] != NULL ? all[k]->values + view * count : NULL;
        }
        CLI_TRY(lr_direct_load(
            setup->direct, view,
            &(lr_direct_data){.counts = values[0], .additive = values[1], .factors = values[2]}));
    }
    return LR_OK;
}

/* The geometric order where the views are a set: every tilt has the same azimuths. */
static int *find_order(const lr_histo_images *histo)
{
    int azimuths = 1;
    while (azimuths < histo->num_views &&
           histo->views[azimuths].tilt_deg == histo->views[0].tilt_deg) {
        azimuths++;
    }
    int *order =
        histo->num_views % azimuths == 0 ? calloc((size_t)histo->num_views, sizeof(*order)) : NULL;
    if (order != NULL) {
        const lr_view_set set = {azimuths, histo->num_views / azimuths, 10};
        lr_view_set_order(&set, order);
    }
    return order;
}

static lr_status on_iteration(void *user, const lr_direct_iteration *done)
{
    const struct watch *watch = user;
    report_info(watch->report, "iteration %d: %.3g s, device %.3g s", done->number, done->seconds,
                done->device_seconds);
    if (watch->save_every == 0 || done->number % watch->save_every != 0) {
        return LR_OK;
    }
    return common_write_iteration(watch->report, &(struct common_iteration){.output = watch->output,
                                                                            .number = done->number,
                                                                            .grid = watch->grid,
                                                                            .values = done->image});
}

static void report_image(const struct cli_args *args, const struct direct_setup *setup,
                         const lr_direct_recon_params *params, const lr_image *image)
{
    const lr_direct_info *info = lr_direct_get_info(setup->direct);
    const double sum = common_sum(image->values, lr_grid_num_voxels(&image->grid));
    report_clear(args->report);
    if (!args->report->json) {
        printf("%s: sum %.9g\n", args_text(args, "-o"), sum);
        return;
    }
    struct json json = common_json_begin(args->syntax->verb);
    json_text(&json, "output", args_text(args, "-o"));
    common_json_grid(&json, "grid", &info->grid);
    json_text(&json, "backend", info->backend);
    json_text(&json, "device", info->device);
    json_int(&json, "views", info->num_views);
    json_int(&json, "views_per_block", params->views_per_block);
    json_int(&json, "iterations", params->iterations);
    json_number(&json, "sum", sum);
    common_json_end(&json);
}

static lr_status reconstruct(struct cli_args *args, struct direct_setup *setup,
                             const struct inputs *inputs, lr_direct_recon_params *params)
{
    static const int64_t at_least_one[2] = {1, INT_MAX};
    const char *output = args_text(args, "-o");
    const int save_every = (int)args_int(args, "--save-every", 0, at_least_one);
    CLI_TRY(args->status);
    lr_image *image = lr_image_create(&inputs->counts->grid, &args->report->log);
    int *order = find_order(inputs->counts);
    struct watch watch = {.report = args->report, .output = output, .grid = &inputs->counts->grid};
    watch.save_every = save_every;
    lr_status status = image != NULL ? load(args, setup, inputs) : report_reason(args->report);
    params->direct = setup->direct;
    params->order = order;
    params->user = &watch;
    params->initial = inputs->initial != NULL ? inputs->initial->values : NULL;
    struct run_bar bar;
    run_bar_init(&bar, args->report);
    bar.name = "direct recon";
    bar.iterations = params->iterations;
    bar.subsets = inputs->counts->num_views; /* as finely as it may report */
    params->progress = &bar.steps;
    if (status == LR_OK) {
        status = lr_direct_recon(params, image->values);
    }
    if (status == LR_OK) {
        status = common_check_result(
            args->report,
            &(struct common_result){.output = output,
                                    .values = image->values,
                                    .count = lr_grid_num_voxels(&image->grid),
                                    .causes = "the histo-images have no counts, or --initial or "
                                              "--factors is 0 where they have: are they the right "
                                              "files?"});
    }
    if (status == LR_OK) {
        status = lr_image_write(output, image, &args->report->log);
    }
    if (status == LR_OK) {
        report_image(args, setup, params, image);
    }
    free(order);
    lr_image_destroy(image);
    return status;
}

static lr_direct_recon_params read_params(struct cli_args *args)
{
    static const int64_t at_least_one[2] = {1, INT_MAX};
    const enum algorithm algorithm =
        (enum algorithm)args_word(args, "--algorithm", algorithms, RAMLA);
    if (algorithm == MLEM && args_has(args, "--views-per-block")) {
        args_complain(args, "ML-EM has all views in one block: leave out --views-per-block");
    }
    if (algorithm != RAMLA && (args_has(args, "--relaxation") || args_has(args, "--fall"))) {
        args_complain(args, "--relaxation and --fall belong to --algorithm ramla");
    }
    if (args_has(args, "--after") && !args_has(args, "--initial")) {
        args_complain(args, "--after says of how many iterations --initial is: give that image");
    }
    const int usual = algorithm == RAMLA ? 1 : algorithm == OSEM ? 10 : INT_MAX;
    return (lr_direct_recon_params){
        .rule = algorithm == RAMLA ? LR_DIRECT_RAMLA : LR_DIRECT_EM,
        .views_per_block = (int)args_int(args, "--views-per-block", usual, at_least_one),
        .relaxation = direct_number(args, "--relaxation", 0, true),
        .relaxation_fall = direct_number(args, "--fall", 0, true),
        .iterations = (int)args_int(args, "--iterations", 3, at_least_one),
        .iterations_before = (int)args_int(args, "--after", 0, at_least_one),
        .iteration = on_iteration,
        .log = &args->report->log,
    };
}

/* An image without a grid of its own (.npy) lies on that of the counts. */
static lr_status read_initial(struct cli_args *args, struct direct_setup *setup,
                              struct inputs *inputs)
{
    const char *path = args_text(args, "--initial");
    if (path == NULL) {
        return LR_OK;
    }
    inputs->initial = lr_image_read_on(path, &setup->grid.grid, &args->report->log);
    if (inputs->initial == NULL) {
        return report_reason(args->report);
    }
    if (!setup_same_grid(&inputs->initial->grid, &setup->grid.grid)) {
        return report_error(args->report, LR_BAD_INPUT,
                            "%s does not lie on the grid of the histo-images", path);
    }
    return LR_OK;
}

static lr_status run_with(struct cli_args *args, struct direct_setup *setup, struct inputs *inputs)
{
    const char *output = args_required(args, "-o");
    args_required(args, "--histo");
    lr_direct_recon_params params = read_params(args);
    setup->grid.report = args->report;
    CLI_TRY(direct_read_kernel(setup, args));
    CLI_TRY(common_check_output(args->report, output, common_image_endings));
    lr_status status = LR_OK;
    inputs->counts = read_one(args, "--histo", &status);
    inputs->additive = read_one(args, "--additive", &status);
    inputs->factors = read_one(args, "--factors", &status);
    CLI_TRY(status);
    const int num_views = inputs->counts->num_views;
    if (params.views_per_block > num_views) {
        params.views_per_block = num_views;
    }
    CLI_TRY(setup_grid(&setup->grid, args, &inputs->counts->grid));
    CLI_TRY(read_initial(args, setup, inputs));
    CLI_TRY(direct_open(setup, args, inputs->counts->views, num_views));
    return reconstruct(args, setup, inputs, &params);
}

static lr_status run(struct cli_args *args)
{
    struct direct_setup setup = {0};
    struct inputs inputs = {0};
    const lr_status status = run_with(args, &setup, &inputs);
    lr_image_destroy(inputs.initial);
    lr_histo_images_destroy(inputs.factors);
    lr_histo_images_destroy(inputs.additive);
    lr_histo_images_destroy(inputs.counts);
    direct_finish(&setup);
    return status;
}

static const struct cli_option options[] = {
    {"--histo", "FILE", "counts: histo-images (HDF5)", false},
    {"--additive", "FILE", "expected randoms and scatter: histo-images", false},
    {"--factors", "FILE", "attenuation, efficiencies, geometry: histo-images", false},
    {"-o", "IMAGE", "image to write (.nii, .nii.gz, .hv, .hdr, .mhd, .mha, .npy)", false},
    {"--save-every", "K", "also write every K-th iteration, as NAME.iterK before the ending",
     false},
    {0},
};

static const struct cli_option algorithm_options[] = {
    {"--algorithm", "NAME", "ramla, osem or mlem; default ramla", false},
    {"--iterations", "N", "passes over all views; default 3", false},
    {"--initial", "IMAGE", "image to start from; default: ones", false},
    {"--after", "N", "of how many iterations --initial is: --fall and numbers go on from there",
     false},
    {"--views-per-block", "N", "default 1 (ramla), 10 (osem)", false},
    {"--relaxation", "L", "ramla: of the first iteration, up to 1; default 1", false},
    {"--fall", "F", "ramla: iteration k = 0, 1, ... has L / (1 + F k); default 0", false},
    {0},
};

static const struct cli_syntax syntax = {
    .verb = "direct recon",
    .summary = "Reconstructs histo-images by RAMLA, OSEM or ML-EM.",
    .example = "loraster direct recon --histo y.h5 --tof-ps 400 --model variant1 -o x.nii.gz",
    .groups = {{"input and output", options},
               {"algorithm", algorithm_options},
               DIRECT_KERNEL_GROUP,
               COMMON_GRID_GROUP,
               DIRECT_DEVICE_GROUP,
               COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_direct_recon = {&syntax, run};
