/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * From a phantom to a reconstructed image. The pictures are rendered with lines, as in the paper;
 * all else uses exact elements from the fastest backend: counts with eight points a voxel, the
 * reconstruction with one, so that its model is not that of the data. */
#include "demo.h"
#include "verbs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char scanner_name[] = "ge-explore-vista-dr";
static const char phantom_name[] = "derenzo";

static const struct demo_scale full_scale = {{100, 100, 8}, 0.44, 4e7, 10, 4, {1, 2, 5}};
static const struct demo_scale quick_scale = {{48, 48, 2}, 0.9, 4e6, 4, 2, {1, 2, 3}};

/* --- counts --- */

static lr_status draw_phantom(struct demo *demo)
{
    const struct demo_scale *scale = demo->scale;
    const double voxel_mm[3] = {scale->voxel_mm, scale->voxel_mm, scale->voxel_mm};
    demo->setup.grid = lr_grid_centred(scale->grid, voxel_mm);
    demo->setup.params.grid = &demo->setup.grid;
    demo->truth = lr_phantom_create(&(lr_phantom_params){.name = phantom_name,
                                                         .log = &demo->setup.report->log,
                                                         .progress = &demo->setup.report->progress},
                                    &demo->setup.grid);
    return demo->truth != NULL ? LR_OK : report_reason(demo->setup.report);
}

static void scale_values(float *values, int64_t count, double factor)
{
    for (int64_t k = 0; k < count; k++) values[k] = (float)(factor * values[k]);
}

static lr_status draw_counts(struct demo *demo, lr_operator *exact)
{
    lr_lor_data *data = demo->data;
    const lr_vector truth = lr_image_vector(demo->truth);
    lr_vector values = lr_lor_data_vector(data);
    CLI_TRY(lr_operator_forward(exact, NULL, &truth, &values));
    const double factor = demo->scale->counts / common_sum(data->values, data->count);
    scale_values(data->values, data->count, factor);
    scale_values(demo->truth->values, lr_grid_num_voxels(&demo->truth->grid), factor);
    CLI_TRY(lr_poisson(data->values, data->count, demo->seed, &demo->setup.report->log));
    demo->counts = common_sum(data->values, data->count);
    return LR_OK;
}

static lr_status simulate(struct demo *demo)
{
    struct setup *setup = &demo->setup;
    const double start = report_seconds();
    char seconds[32];
    report_info(setup->report, "simulating %g counts, mode exact, 2 x 2 x 2 points a voxel", demo->scale->counts);
    demo->data = lr_lor_data_create(setup->lors, &setup->report->log);
    if (demo->data == NULL) return report_reason(setup->report);
    lr_operator_params params = setup->params;
    params.backend = "auto";
    params.mode = LR_MODE_EXACT;
    params.store = LR_STORE_NO;
    for (int k = 0; k < 3; k++) params.samples[k] = 2;
    lr_operator *exact = lr_operator_create(&params);
    const lr_status status = exact != NULL ? draw_counts(demo, exact) : report_reason(setup->report);
    lr_operator_destroy(exact);
    demo->simulate_seconds = report_seconds() - start;
    if (status == LR_OK) {
        report_info(setup->report, "%.0f counts drawn with seed %llu, in %s", demo->counts,
                    (unsigned long long)demo->seed, report_duration(seconds, demo->simulate_seconds));
    }
    return status;
}

/* --- reconstruction --- */

static lr_status make_matrix(struct demo *demo)
{
    struct setup *setup = &demo->setup;
    char bytes[32], seconds[32];
    const double start = report_seconds();
    lr_operator_params params = setup->params;
    params.mode = LR_MODE_EXACT;
    params.projections = 1.0 + 2.0 * demo->scale->iterations; /* the sensitivity, and both ways */
    for (int k = 0; k < 3; k++) params.samples[k] = 1;
    setup->op = lr_operator_create(&params);
    if (setup->op == NULL) return report_reason(setup->report);
    demo->matrix_seconds = report_seconds() - start;
    demo->info = *lr_operator_get_info(setup->op);
    if (demo->info.stored) {
        report_info(setup->report, "backend %s on %s: %lld elements, %s, in %s", demo->info.backend, demo->info.device,
                    (long long)demo->info.num_elements, common_bytes(bytes, demo->info.memory_bytes),
                    report_duration(seconds, demo->matrix_seconds));
    }
    return LR_OK;
}

static lr_status add_sensitivity(struct demo *demo)
{
    demo->sensitivity = lr_image_create(&demo->setup.grid, &demo->setup.report->log);
    if (demo->sensitivity == NULL) return report_reason(demo->setup.report);
    lr_vector sensitivity = lr_image_vector(demo->sensitivity);
    CLI_TRY(lr_operator_sensitivity(demo->setup.op, NULL, &sensitivity));
    return demo_add_slice(demo, demo->sensitivity, "counts per emission", "sensitivity");
}

static bool is_shown(const struct demo *demo, int number)
{
    const struct demo_scale *scale = demo->scale;
    bool shown = number == scale->iterations;
    for (int k = 0; k < 3; k++) shown = shown || number == scale->shown[k];
    return shown;
}

static lr_status on_iteration(void *user, const lr_iteration *done)
{
    struct demo *demo = user;
    char caption[64];
    demo->last = *done;
    demo->last.image = NULL;
    report_info(demo->setup.report, "iteration %d: log-likelihood %.9g, %.2f s", done->number, done->log_likelihood,
                done->seconds);
    if (!is_shown(demo, done->number)) return LR_OK;
    lr_vector image = lr_image_vector(demo->image);
    CLI_TRY(lr_vector_copy(done->image, &image));
    snprintf(caption, sizeof(caption), "iteration %d", done->number);
    return demo_add_slice(demo, demo->image, NULL, caption);
}

static lr_status reconstruct(struct demo *demo)
{
    const struct setup *setup = &demo->setup;
    const double start = report_seconds();
    demo->image = lr_image_create(&setup->grid, &setup->report->log);
    lr_image *result = lr_image_create(&setup->grid, &setup->report->log);
    lr_status status = report_reason(setup->report);
    if (demo->image != NULL && result != NULL) {
        lr_vector image = lr_image_vector(result);
        status = lr_osem(&(lr_osem_params){.op = setup->op,
                                           .data = demo->data,
                                           .iterations = demo->scale->iterations,
                                           .subsets = demo->scale->subsets,
                                           .iteration = on_iteration,
                                           .user = demo,
                                           .log = &setup->report->log,
                                           .progress = &demo->bar.steps},
                         &image);
    }
    lr_image_destroy(demo->image);
    demo->image = result;
    demo->recon_seconds = report_seconds() - start;
    return status;
}

/* --- the verb --- */

static lr_status read_request(struct cli_args *args, struct demo *demo)
{
    static const int64_t seeds[2] = {0, INT64_MAX};
    static const int64_t threads[2] = {1, INT_MAX};
    static const int64_t devices[2] = {0, INT_MAX};
    const char *folder = args_text(args, "-o");
    demo->folder = folder != NULL ? folder : "demo-out";
    demo->quick = args_has(args, "--quick");
    demo->scale = demo->quick ? &quick_scale : &full_scale;
    demo->seed = (uint64_t)args_int(args, "--seed", 1, seeds);
    demo->panel.report = demo->setup.report = args->report;
    demo->setup.params = (lr_operator_params){
        .mode = LR_MODE_SAMPLED,
        .rays = 4,
        .store = LR_STORE_AUTO,
        .max_memory_bytes = args_bytes(args, "--max-memory", (int64_t)11 << 29),
        .threads = (int)args_int(args, "--threads", 0, threads),
        .device = (int)args_int(args, "--device", 0, devices),
        .log = &args->report->log,
        .progress = &demo->bar.within,
    };
    run_bar_init(&demo->bar, args->report);
    demo->bar.name = "demo";
    demo->bar.iterations = demo->scale->iterations;
    demo->bar.subsets = demo->scale->subsets;
    demo->bar.before = 1;
    demo->bar.each = 2;
    return args->status;
}

static lr_status open_scanner(struct demo *demo)
{
    struct setup *setup = &demo->setup;
    setup->scanner = lr_scanner_read(scanner_name, &setup->report->log);
    if (setup->scanner != NULL)
        setup->lors = lr_lors_create_watched(setup->scanner, &setup->report->progress, &setup->report->log);
    setup->params.lors = setup->lors;
    return setup->lors != NULL ? LR_OK : report_reason(setup->report);
}

static lr_status write_volumes(struct demo *demo)
{
    char path[PATH_MAX];
    const lr_log *log = &demo->setup.report->log;
    CLI_TRY(lr_image_write(demo_path(demo, "phantom.nii.gz", path, sizeof(path)), demo->truth, log));
    return lr_image_write(demo_path(demo, "image.nii.gz", path, sizeof(path)), demo->image, log);
}

static lr_status run_demo(struct demo *demo)
{
    const double start = report_seconds();
    if (demo->quick) report_info(demo->setup.report, "--quick: coarse voxels, few counts and iterations");
    CLI_TRY(open_scanner(demo));
    CLI_TRY(draw_phantom(demo));
    CLI_TRY(demo_correspondence(demo));
    demo->pictures_seconds = report_seconds() - start;
    CLI_TRY(simulate(demo));
    CLI_TRY(make_matrix(demo));
    CLI_TRY(demo_add_slice(demo, demo->truth, NULL, "phantom"));
    CLI_TRY(add_sensitivity(demo));
    CLI_TRY(reconstruct(demo));
    CLI_TRY(write_volumes(demo));
    CLI_TRY(demo_write_panel(demo));
    demo->total_seconds = report_seconds() - start;
    return demo_report(demo);
}

static lr_status run(struct cli_args *args)
{
    struct demo demo = {0};
    lr_status status = read_request(args, &demo);
    if (status == LR_OK) status = run_demo(&demo);
    album_finish(&demo.panel);
    lr_lor_data_destroy(demo.data);
    lr_image_destroy(demo.image);
    lr_image_destroy(demo.sensitivity);
    lr_image_destroy(demo.truth);
    setup_finish(&demo.setup);
    return status;
}

static const struct cli_option options[] = {
    {"-o", "FOLDER", "default demo-out", false},
    {"--quick", NULL, "coarse voxels, few counts and iterations: seconds, for tests", false},
    {"--seed", "N", "of the Poisson counts; default 1", false},
    {"--device", "N", "which usable device of loraster info; default 0", false},
    {"--max-memory", "SIZE", "limit for the stored matrix; default 5632M", false},
    {"--threads", "N", "default: all processors", false},
    {0},
};

static const struct cli_syntax syntax = {
    .verb = "demo",
    .summary = "Simulates a rod phantom in a small-animal scanner and reconstructs it.",
    .example = "loraster demo -o demo-out",
    .groups = {{"demo", options}, COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_demo = {&syntax, run};
