/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * direct recon: block RAMLA, OSEM and ML-EM of histo-images. */
#include "direct.h"
#include "outputs.h"
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
    lr_image *initial, *image; /* image: the result */
};

/* What the command line says; the rest of params comes with the inputs. */
struct request {
    lr_recon_params params;
    int views_per_block, save_every;
};

/* What the report of an iteration needs. */
struct watch {
    struct report *report;
    const char *output;
    lr_image *image; /* that iterations are saved from */
    int save_every;  /* 0 = never */
};

static lr_histo_images *read_one(struct cli_args *args, const char *name, lr_status *status)
{
    const char *path = args_text(args, name);
    lr_histo_images *histo = path != NULL && *status == LR_OK ? lr_histo_images_read(path, &args->report->log) : NULL;
    if (path != NULL && histo == NULL && *status == LR_OK) *status = report_reason(args->report);
    return histo;
}

/* The geometric order where the views are a set: every tilt has the same azimuths. */
static int *find_order(const lr_histo_images *histo)
{
    const int count = histo->num_views;
    int azimuths = 1, *order = calloc((size_t)count, sizeof(*order));
    while (azimuths < count && histo->views[azimuths].tilt_deg == histo->views[0].tilt_deg) azimuths++;
    for (int k = 0; order != NULL && k < count; k++) order[k] = k;
    if (order != NULL && count % azimuths == 0) {
        const lr_view_set set = {azimuths, count / azimuths, 10};
        lr_view_set_order(&set, order);
    }
    return order;
}

/* Blocks are runs of the order: the subset of each view. */
static int32_t *find_subsets(const lr_histo_images *histo, int views_per_block)
{
    int *order = find_order(histo);
    int32_t *subset_of = calloc((size_t)histo->num_views, sizeof(*subset_of));
    for (int k = 0; order != NULL && subset_of != NULL && k < histo->num_views; k++)
        subset_of[order[k]] = k / views_per_block;
    const bool is_whole = order != NULL;
    free(order);
    if (!is_whole) {
        free(subset_of);
        subset_of = NULL;
    }
    return subset_of;
}

static lr_status on_iteration(void *user, const lr_iteration *done)
{
    const struct watch *watch = user;
    report_info(watch->report, "iteration %d: %.3g s, device %.3g s", done->number, done->seconds,
                done->device_seconds);
    if (watch->save_every == 0 || done->number % watch->save_every != 0) return LR_OK;
    lr_vector image = lr_image_vector(watch->image);
    CLI_TRY(lr_vector_copy(done->image, &image));
    return common_write_iteration(watch->report, &(struct common_iteration){.output = watch->output,
                                                                            .number = done->number,
                                                                            .grid = &watch->image->grid,
                                                                            .values = watch->image->values});
}

static void report_image(const struct cli_args *args, const struct direct_setup *setup, const struct request *request,
                         const lr_image *image)
{
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    const double sum = common_sum(image->values, lr_grid_num_voxels(&image->grid));
    report_clear(args->report);
    if (!args->report->json) {
        printf("%s: sum %.9g\n", args_text(args, "-o"), sum);
        return;
    }
    struct json json = common_json_begin(args->syntax->verb);
    json_text(&json, "output", args_text(args, "-o"));
    common_json_grid(&json, "grid", &image->grid);
    json_text(&json, "backend", info->backend);
    json_text(&json, "device", info->device);
    json_int(&json, "views", lr_direct_get_info(setup->op)->num_views);
    json_int(&json, "views_per_block", request->views_per_block);
    json_int(&json, "iterations", request->params.iterations);
    json_number(&json, "sum", sum);
    common_json_end(&json);
}

static lr_status check_grids(struct cli_args *args, const struct direct_setup *setup, const struct inputs *inputs)
{
    CLI_TRY(lr_histo_images_check(inputs->counts, setup->op, &args->report->log));
    return inputs->additive != NULL ? lr_histo_images_check(inputs->additive, setup->op, &args->report->log) : LR_OK;
}

static lr_status iterate(struct cli_args *args, struct direct_setup *setup, const struct inputs *inputs,
                         struct request *request)
{
    const lr_lor_data data = direct_data(inputs->counts);
    const lr_lor_data additive = inputs->additive != NULL ? direct_data(inputs->additive) : (lr_lor_data){0};
    struct watch watch = {.report = args->report,
                          .output = args_text(args, "-o"),
                          .image = inputs->image,
                          .save_every = request->save_every};
    int32_t *subset_of = find_subsets(inputs->counts, request->views_per_block);
    if (subset_of == NULL)
        return report_error(args->report, LR_FAILED, "no memory for %d views", inputs->counts->num_views);
    struct run_bar bar;
    run_bar_init(&bar, args->report);
    bar.name = "direct recon";
    bar.before = 1;
    bar.each = 2;
    bar.iterations = request->params.iterations;
    bar.subsets = request->params.subsets;
    request->params.op = setup->op;
    request->params.data = &data;
    request->params.additive = inputs->additive != NULL ? &additive : NULL;
    request->params.subset_of = subset_of;
    request->params.initial = inputs->initial != NULL ? inputs->initial->values : NULL;
    request->params.user = &watch;
    request->params.progress = &bar.steps;
    lr_vector image = lr_image_vector(inputs->image);
    const lr_status status = lr_recon(&request->params, &image);
    free(subset_of);
    return status;
}

static lr_status reconstruct(struct cli_args *args, struct direct_setup *setup, struct inputs *inputs,
                             struct request *request)
{
    const char *output = args_text(args, "-o");
    inputs->image = lr_image_create(&inputs->counts->grid, &args->report->log);
    if (inputs->image == NULL) return report_reason(args->report);
    CLI_TRY(check_grids(args, setup, inputs));
    CLI_TRY(iterate(args, setup, inputs, request));
    CLI_TRY(common_check_result(args->report,
                                &(struct common_result){.output = output,
                                                        .values = inputs->image->values,
                                                        .count = lr_grid_num_voxels(&inputs->image->grid),
                                                        .causes = "the histo-images have no counts, or --initial or "
                                                                  "--factors is 0 where they have: are they the right "
                                                                  "files?"}));
    CLI_TRY(lr_image_write(output, inputs->image, &args->report->log));
    report_image(args, setup, request, inputs->image);
    return LR_OK;
}

static struct request read_request(struct cli_args *args)
{
    static const int64_t at_least_one[2] = {1, INT_MAX};
    const enum algorithm algorithm = (enum algorithm)args_word(args, "--algorithm", algorithms, RAMLA);
    if (algorithm == MLEM && args_has(args, "--views-per-block"))
        args_complain(args, "ML-EM has all views in one block: leave out --views-per-block");
    if (algorithm != RAMLA && (args_has(args, "--relaxation") || args_has(args, "--fall")))
        args_complain(args, "--relaxation and --fall belong to --algorithm ramla");
    if (args_has(args, "--after") && !args_has(args, "--initial"))
        args_complain(args, "--after says of how many iterations --initial is: give that image");
    const int usual = algorithm == RAMLA ? 1 : algorithm == OSEM ? 10 : INT_MAX;
    return (struct request){
        .params = {.algorithm = algorithm == RAMLA ? LR_ALGORITHM_RAMLA : LR_ALGORITHM_OSEM,
                   .relaxation = args_number(args, "--relaxation", 0, true),
                   .relaxation_fall = args_number(args, "--fall", 0, false),
                   .iterations = (int)args_int(args, "--iterations", 3, at_least_one),
                   .iterations_before = (int)args_int(args, "--after", 0, at_least_one),
                   .without_fit = true,
                   .iteration = on_iteration,
                   .log = &args->report->log},
        .views_per_block = (int)args_int(args, "--views-per-block", usual, at_least_one),
        .save_every = (int)args_int(args, "--save-every", 0, at_least_one),
    };
}

/* An image without a grid of its own (.npy) lies on that of the counts. */
static lr_status read_initial(struct cli_args *args, struct direct_setup *setup, struct inputs *inputs)
{
    const char *path = args_text(args, "--initial");
    if (path == NULL) return LR_OK;
    inputs->initial = lr_image_read_on(path, &setup->grid.grid, &args->report->log);
    if (inputs->initial == NULL) return report_reason(args->report);
    if (!setup_same_grid(&inputs->initial->grid, &setup->grid.grid))
        return report_error(args->report, LR_BAD_INPUT, "%s does not lie on the grid of the histo-images", path);
    return LR_OK;
}

static lr_status run_with(struct cli_args *args, struct direct_setup *setup, struct inputs *inputs)
{
    const char *output = args_required(args, "-o");
    args_required(args, "--histo");
    struct request request = read_request(args);
    const int iterations[2] = {request.params.iterations_before,
                               request.params.iterations_before + request.params.iterations};
    setup->grid.report = args->report;
    CLI_TRY(direct_read_kernel(setup, args));
    CLI_TRY(outputs_check_iterations(args, output, request.save_every, iterations));
    lr_status status = LR_OK;
    inputs->counts = read_one(args, "--histo", &status);
    inputs->additive = read_one(args, "--additive", &status);
    inputs->factors = read_one(args, "--factors", &status);
    CLI_TRY(status);
    const int num_views = inputs->counts->num_views;
    if (request.views_per_block > num_views) request.views_per_block = num_views;
    request.params.subsets = (num_views - 1) / request.views_per_block + 1;
    CLI_TRY(setup_grid(&setup->grid, args, &inputs->counts->grid));
    CLI_TRY(read_initial(args, setup, inputs));
    CLI_TRY(direct_open(
        setup, args,
        &(struct direct_work){.views = inputs->counts->views, .num_views = num_views, .factors = inputs->factors}));
    direct_tell_of_factors(args->report, inputs->factors);
    return reconstruct(args, setup, inputs, &request);
}

static lr_status run(struct cli_args *args)
{
    struct direct_setup setup = {0};
    struct inputs inputs = {0};
    const lr_status status = run_with(args, &setup, &inputs);
    direct_finish(&setup); /* whose operator asks for the factors */
    lr_image_destroy(inputs.image);
    lr_image_destroy(inputs.initial);
    lr_histo_images_destroy(inputs.factors);
    lr_histo_images_destroy(inputs.additive);
    lr_histo_images_destroy(inputs.counts);
    return status;
}

static const struct cli_option options[] = {
    {"--histo", "FILE", "counts: histo-images (HDF5)", false},
    {"--additive", "FILE", "expected randoms and scatter: histo-images", false},
    {"--factors", "FILE", "attenuation, efficiencies, geometry: histo-images", false},
    {"-o", "IMAGE", "image to write (.nii, .nii.gz, .hv, .hdr, .mhd, .mha, .npy)", false},
    {"--save-every", "K", "also write every K-th iteration, as NAME.iterK before the ending", false},
    {0},
};

static const struct cli_option algorithm_options[] = {
    {"--algorithm", "NAME", "ramla, osem or mlem; default ramla", false},
    {"--iterations", "N", "passes over all views; default 3", false},
    {"--initial", "IMAGE", "image to start from; default: uniform", false},
    {"--after", "N", "of how many iterations --initial is: --fall and numbers go on from there", false},
    {"--views-per-block", "N", "default 1 (ramla), 10 (osem)", false},
    {"--relaxation", "L", "ramla: of the first iteration; above 1 voxels may become 0; default 10 / (9 + blocks)",
     false},
    {"--fall", "F", "ramla: iteration k = 0, 1, ... has L / (1 + F k); default 0", false},
    {0},
};

static const struct cli_syntax syntax = {
    .verb = "direct recon",
    .summary = "Reconstructs histo-images by RAMLA, OSEM or ML-EM.",
    .example = "loraster direct recon --histo y.h5 --tof-ps 400 --model variant1 -o x.nii.gz",
    .outputs = {{"-o", common_image_endings}},
    .groups = {{"input and output", options},
               {"algorithm", algorithm_options},
               DIRECT_KERNEL_GROUP,
               COMMON_GRID_GROUP,
               DIRECT_DEVICE_GROUP,
               COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_direct_recon = {&syntax, run};
