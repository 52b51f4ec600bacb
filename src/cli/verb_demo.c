/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Makes a reconstructed image from a phantom. The pictures are rendered with lines, as in the paper. All other steps
 * use exact elements from the fastest backend: eight points a voxel for the counts, one for the reconstruction, so
 * that the two models differ. */
#include "pictures.h"
#include "report.h"
#include "verbs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Size of the demo: full or quick. */
struct demo_scale {
    int grid[3];
    double voxel_mm;
    double counts;
    int iterations, subsets;
    int shown[3]; /* iterations that the panel shows besides the last one */
};

struct demo {
    struct setup setup; /* scanner, LORs, grid and operator of the reconstruction */
    const struct demo_scale *scale;
    bool quick;
    const char *folder;
    uint64_t seed;
    struct bitmap_note drawn; /* the backend of the correspondence images */
    char drawn_by[32];        /* name of the backend of the correspondence images */
    lr_image *truth;          /* phantom, in emissions per voxel */
    lr_image *sensitivity, *image;
    lr_lor_data *data;
    struct picture_sheet panel;
    struct run_bar bar;
    lr_iteration last; /* last iteration, without its image */
    double counts;     /* number of drawn counts */
    double simulate_seconds, matrix_seconds, pictures_seconds, recon_seconds, total_seconds;
    lr_operator_info info; /* about the reconstruction's operator, which owns the strings */
};

/* Path of a file in the demo's folder. */
static inline const char *demo_path(const struct demo *demo, const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", demo->folder, name);
    return path;
}

static const char scanner_name[] = "ge-explore-vista-dr";
static const char phantom_name[] = "derenzo";

static const struct demo_scale full_scale = {{100, 100, 8}, 0.44, 4e7, 10, 4, {1, 2, 5}};
static const struct demo_scale quick_scale = {{48, 48, 2}, 0.9, 4e6, 4, 2, {1, 2, 3}};

/* Writes the figures to figures.txt and to stdout, as text or JSON. */
static lr_status demo_report(const struct demo *demo)
{
    char line[1024], path[PATH_MAX];
    report_clear(demo->setup.report);

    const size_t size = sizeof(line);
    char memory[32];
    snprintf(line, size,
             "%s%.0f counts, seed %llu; %d iterations of OSEM, %d subsets, on backend %s (%s); log-likelihood %.9g; "
             "%.9g emissions; pictures %.1f s by backend %s, simulation %.1f s, matrix %.1f s (%lld elements), "
             "iterations %.1f s, in all %.1f s; peak memory %s",
             demo->quick ? "quick: " : "", demo->counts, (unsigned long long)demo->seed, demo->last.number,
             demo->scale->subsets, demo->info.backend, demo->info.device, demo->last.log_likelihood,
             common_sum(demo->image->values, lr_grid_num_voxels(&demo->image->grid)), demo->pictures_seconds,
             demo->drawn_by, demo->simulate_seconds, demo->matrix_seconds, (long long)demo->info.num_elements,
             demo->recon_seconds, demo->total_seconds, common_bytes(memory, common_peak_memory()));

    const size_t length = strlen(line);
    snprintf(line + length, sizeof(line) - length, "\n");
    CLI_TRY(lr_text_write(demo_path(demo, "figures.txt", path, sizeof(path)), line, &demo->setup.report->log));
    line[length] = '\0';
    if (demo->setup.report->json) {
        struct json json = common_json_begin(stdout, "demo");
        setup_json(&demo->setup, &json);
        json_text(&json, "output", demo->folder);
        json_bool(&json, "quick", demo->quick);
        json_int(&json, "seed", (int64_t)demo->seed);
        json_number(&json, "counts", demo->counts);
        json_int(&json, "iterations", demo->last.number);
        json_int(&json, "subsets", demo->scale->subsets);
        json_number(&json, "log_likelihood", demo->last.log_likelihood);
        json_number(&json, "emissions", common_sum(demo->image->values, lr_grid_num_voxels(&demo->image->grid)));
        json_text(&json, "pictures_by", demo->drawn_by);
        json_number(&json, "pictures_seconds", demo->pictures_seconds);
        json_number(&json, "simulate_seconds", demo->simulate_seconds);
        json_number(&json, "matrix_seconds", demo->matrix_seconds);
        json_number(&json, "recon_seconds", demo->recon_seconds);
        json_number(&json, "total_seconds", demo->total_seconds);
        json_int(&json, "peak_memory_bytes", common_peak_memory());
        common_json_end(&json);
    } else {
        printf("%s\n%s:\n"
               "  panel.png           phantom, sensitivity and iterations\n"
               "  correspondence.png  what three voxels see in one module: crystals, weights, weights with absorption\n"
               "  voxel_K_*.png       the pictures of correspondence.png, each by itself\n"
               "  phantom.nii.gz      true emissions per voxel\n"
               "  image.nii.gz        reconstructed emissions per voxel\n"
               "  figures.txt         the line above\n",
               line, demo->folder);
    }
    return LR_OK;
}

enum { NUM_VOXELS = 3, PICTURE_RAYS = 16 };

static const double water_per_mm = 0.0096;    /* attenuation at 511 keV */
static const double phantom_share = 0.46;     /* radius of the phantom divided by the width of the grid */
static const double pixels_per_mm = 4 / 0.45; /* whole pixels per voxel at both scales */

/* Makes a setup with an operator of its own, and with the demo's scanner and LORs. */
static lr_status open_setup(struct demo *demo, const lr_image *mu, struct setup *setup)
{
    *setup = (struct setup){.report = demo->setup.report,
                            .scanner = demo->setup.scanner,
                            .lors = demo->setup.lors,
                            .params = demo->setup.params};
    setup_point_grid(setup);
    setup->params.rays = PICTURE_RAYS;
    setup->params.store = LR_STORE_NO;
    setup->params.mu = mu;
    setup->params.backend = bitmap_backends;
    setup->op = lr_operator_create(&setup->params);
    return setup->op != NULL ? LR_OK : report_reason(setup->report);
}

/* Draws three pictures of three voxels: the crystals, the weights, and the weights with absorption by water. Writes all
 * pictures on one sheet. */
static lr_status draw_voxels(struct demo *demo, struct picture_sheet *sheet, struct setup setups[2],
                             const lr_image *water)
{
    char path[PATH_MAX], caption[96];
    CLI_TRY(open_setup(demo, NULL, &setups[0]));
    const lr_operator_info *info = lr_operator_get_info(setups[0].op);
    bitmap_note_make(&demo->drawn, info, demo->setup.report);
    snprintf(demo->drawn_by, sizeof(demo->drawn_by), "%s", info->backend);

    CLI_TRY(open_setup(demo, water, &setups[1]));
    CLI_TRY(common_make_folder(demo->setup.report, demo->folder)); /* all options have been checked */
    for (int which = 0; which < NUM_VOXELS; which++) {
        struct bitmap bitmaps[2] = {{0}, {0}};
        /* Positions of the points as fractions of the grid's size: in the middle of the grid, next to the axis, and
         * near the phantom's rim. */
        static const double places[NUM_VOXELS][3] = {{0.5, 0.5, 0.5}, {0.75, 0.5, 0.5}, {0.3, 0.85, 0.9}};
        const int *size = demo->setup.grid.size;
        int64_t index[3];
        double at[3];
        for (int k = 0; k < 3; k++) index[k] = (int64_t)(places[which][k] * size[k]);
        lr_grid_voxel_centre(&demo->setup.grid, index[0] + size[0] * (index[1] + size[1] * index[2]), at);
        lr_status status = bitmap_take_brightest(&setups[0], at, &bitmaps[0]);
        if (status == LR_OK) status = bitmap_take(&setups[1], at, bitmaps[0].module, &bitmaps[1]);
        const double high = bitmaps[0].highest; /* the top of the scale of both pictures of weights */
        for (int k = 0; status == LR_OK && k < 3; k++) {
            static const char *const names[] = {"colour", "weight", "weight_absorbed"};
            const struct bitmap *bitmap = &bitmaps[k / 2];
            if (k == 0) {
                snprintf(caption, sizeof(caption), "(%.1f, %.1f, %.1f) mm, module %d", at[0], at[1], at[2],
                         bitmap->module);
            } else {
                snprintf(caption, sizeof(caption), "%s, sum %.3g", k == 1 ? "weight" : "with absorption",
                         bitmap->weight);
            }
            lr_picture *picture = k == 0 ? bitmap_draw(&setups[0], bitmap, LR_VIEW_CRYSTALS, 0)
                                         : bitmap_draw(&setups[k / 2], bitmap, LR_VIEW_WEIGHTS, high);
            status = picture_sheet_add(sheet, picture, "%s", caption);
            snprintf(path, sizeof(path), "%s/voxel_%d_%s.png", demo->folder, which + 1, names[k]);
            if (status == LR_OK) status = picture_sheet_write(sheet, path, sheet->num_tiles - 1, 1, NULL);
        }
        bitmap_finish(&bitmaps[0]);
        bitmap_finish(&bitmaps[1]);
        CLI_TRY(status);
    }

    return picture_sheet_write(sheet, demo_path(demo, "correspondence.png", path, sizeof(path)), 0, 3,
                               "Correspondence images of three voxels");
}

/* Adds a slice to the panel. Activity (unit NULL) is shown up to 1.2 times the phantom's largest value. An image with a
 * unit is shown over its own range. */
static lr_status demo_add_slice(struct demo *demo, const lr_image *image, const char *unit, const char *caption)
{
    const bool activity = unit == NULL;
    const int64_t count = lr_grid_num_voxels(&demo->truth->grid);
    double highest = 0;
    for (int64_t k = 0; k < count; k++) highest = fmax(highest, (double)demo->truth->values[k]);
    const lr_slice_params params = {
        .image = image,
        .plane = LR_PLANE_TRANSAXIAL,
        .pixels_per_mm = pixels_per_mm,
        .high = activity ? 1.2 * highest : 0,
        .colours = activity ? LR_COLOURS_INVERSE_GREY : LR_COLOURS_PERCEPTUAL,
        .axes = true,
        .colour_bar = true,
        .unit = activity ? "emissions per voxel" : unit,
        .log = &demo->setup.report->log,
    };
    return picture_sheet_add(&demo->panel, lr_picture_slice(&params), "%s", caption);
}

static lr_status simulate(struct demo *demo)
{
    struct setup *setup = &demo->setup;
    const double start = report_seconds();
    char seconds[32];
    report_info(setup->report, "simulating %g counts, mode exact, 2 x 2 x 2 points a voxel", demo->scale->counts);
    lr_lor_data *data = demo->data = lr_lor_data_create(setup->lors, &setup->report->log);
    if (data == NULL) return report_reason(setup->report);
    lr_operator_params params = setup->params;
    params.backend = "auto";
    params.mode = LR_MODE_EXACT;
    params.store = LR_STORE_NO;
    for (int k = 0; k < 3; k++) params.samples[k] = 2;
    lr_operator *exact = lr_operator_create(&params);
    if (exact == NULL) return report_reason(setup->report);
    const lr_vector truth = lr_image_vector(demo->truth);
    lr_vector values = lr_lor_data_vector(data);
    lr_status status = lr_operator_forward(exact, NULL, &truth, &values);
    if (status == LR_OK) {
        const double factor = demo->scale->counts / common_sum(data->values, data->count);
        common_scale(data->values, data->count, factor);
        common_scale(demo->truth->values, lr_grid_num_voxels(&demo->truth->grid), factor);
        status = lr_poisson(data->values, data->count, demo->seed, &setup->report->log);
    }
    lr_operator_destroy(exact);
    CLI_TRY(status);
    demo->counts = common_sum(data->values, data->count);
    demo->simulate_seconds = report_seconds() - start;
    report_info(setup->report, "%.0f counts drawn with seed %llu, in %s", demo->counts, (unsigned long long)demo->seed,
                report_duration(seconds, demo->simulate_seconds));
    return LR_OK;
}

static lr_status on_iteration(void *user, const lr_iteration *done)
{
    struct demo *demo = user;
    char caption[64];
    demo->last = *done;
    demo->last.image = NULL;
    report_info(demo->setup.report, "iteration %d: log-likelihood %.9g, %.2f s", done->number, done->log_likelihood,
                done->seconds);
    const struct demo_scale *scale = demo->scale;
    bool shown = done->number == scale->iterations;
    for (int k = 0; k < 3; k++) shown = shown || done->number == scale->shown[k];
    if (!shown) return LR_OK;
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
        const lr_vector counts = lr_lor_data_vector(demo->data);
        status = lr_osem(&(lr_osem_params){.op = setup->op,
                                           .data = &counts,
                                           .data_lors = demo->data->index,
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

static lr_status run_demo(struct demo *demo)
{
    const double start = report_seconds();
    if (demo->quick) report_info(demo->setup.report, "--quick: coarse voxels, few counts and iterations");
    struct setup *setup = &demo->setup;
    const lr_log *log = &setup->report->log;
    setup->scanner = lr_scanner_read(scanner_name, log);
    if (setup->scanner != NULL) setup->lors = lr_lors_create_watched(setup->scanner, &setup->report->progress, log);
    setup->params.lors = setup->lors;
    if (setup->lors == NULL) return report_reason(setup->report);

    const struct demo_scale *scale = demo->scale;
    const double voxel_mm[3] = {scale->voxel_mm, scale->voxel_mm, scale->voxel_mm};
    setup->grid = lr_grid_centred(scale->grid, voxel_mm);
    setup->params.grid = &setup->grid;
    demo->truth = lr_phantom_create(
        &(lr_phantom_params){.name = phantom_name, .log = log, .progress = &setup->report->progress}, &setup->grid);
    if (demo->truth == NULL) return report_reason(setup->report);

    /* Three voxels are drawn in false colour, and their weights without and with absorption by a cylinder of water that
     * is as wide as the phantom and as long as the scanner. */
    static const int water_size[3] = {48, 48, 48};
    static const double water_voxel_mm[3] = {1, 1, 1};
    const lr_grid water_grid = lr_grid_centred(water_size, water_voxel_mm);
    const double radius_mm = phantom_share * scale->grid[0] * scale->voxel_mm;
    lr_image *water = lr_image_create(&water_grid, log);
    for (int64_t row = 0; water != NULL && row < lr_grid_num_voxels(&water_grid); row++) {
        double centre_mm[3];
        lr_grid_voxel_centre(&water_grid, row, centre_mm);
        water->values[row] = hypot(centre_mm[0], centre_mm[1]) < radius_mm ? (float)water_per_mm : 0;
    }
    struct setup setups[2] = {{0}, {0}};
    struct picture_sheet sheet = {.report = demo->setup.report, .note = demo->drawn.text};
    report_info(demo->setup.report, "drawing correspondence images of three voxels");
    const lr_status status =
        water != NULL ? draw_voxels(demo, &sheet, setups, water) : report_reason(demo->setup.report);
    picture_sheet_finish(&sheet);
    lr_operator_destroy(setups[0].op);
    lr_operator_destroy(setups[1].op);
    lr_image_destroy(water);
    CLI_TRY(status);

    demo->pictures_seconds = report_seconds() - start;
    CLI_TRY(simulate(demo));

    char bytes[32], seconds[32];
    const double begin = report_seconds();
    lr_operator_params params = setup->params;
    params.mode = LR_MODE_EXACT;
    params.projections = 1.0 + 2.0 * scale->iterations; /* the sensitivity, and each iteration forward and back */
    for (int k = 0; k < 3; k++) params.samples[k] = 1;
    setup->op = lr_operator_create(&params);
    if (setup->op == NULL) return report_reason(setup->report);
    demo->matrix_seconds = report_seconds() - begin;
    demo->info = *lr_operator_get_info(setup->op);
    if (demo->info.stored) {
        report_info(setup->report, "backend %s on %s: %lld elements, %s, in %s", demo->info.backend, demo->info.device,
                    (long long)demo->info.num_elements, common_bytes(bytes, demo->info.memory_bytes),
                    report_duration(seconds, demo->matrix_seconds));
    }

    CLI_TRY(demo_add_slice(demo, demo->truth, NULL, "phantom"));
    demo->sensitivity = lr_image_create(&setup->grid, log);
    if (demo->sensitivity == NULL) return report_reason(setup->report);
    lr_vector sensitivity = lr_image_vector(demo->sensitivity);
    CLI_TRY(lr_operator_sensitivity(setup->op, NULL, &sensitivity));
    CLI_TRY(demo_add_slice(demo, demo->sensitivity, "counts per emission", "sensitivity"));
    CLI_TRY(reconstruct(demo));
    char path[PATH_MAX], title[128];
    CLI_TRY(lr_image_write(demo_path(demo, "phantom.nii.gz", path, sizeof(path)), demo->truth, log));
    CLI_TRY(lr_image_write(demo_path(demo, "image.nii.gz", path, sizeof(path)), demo->image, log));
    snprintf(title, sizeof(title), "Derenzo phantom in the %s: %.3g million counts", demo->setup.scanner->name,
             1e-6 * demo->counts);
    CLI_TRY(picture_sheet_write(&demo->panel, demo_path(demo, "panel.png", path, sizeof(path)), 0, 3, title));

    demo->total_seconds = report_seconds() - start;
    return demo_report(demo);
}

static lr_status run(struct cli_args *args)
{
    struct demo demo = {0};
    const char *folder = args_text(args, "-o");
    demo.folder = folder != NULL ? folder : "demo-out";
    demo.quick = args_has(args, "--quick");
    demo.scale = demo.quick ? &quick_scale : &full_scale;
    demo.seed = (uint64_t)args_int(args, "--seed", 1, args_seeds);
    demo.panel.report = demo.setup.report = args->report;
    demo.setup.params = (lr_operator_params){
        .mode = LR_MODE_SAMPLED,
        .rays = 4,
        .store = LR_STORE_AUTO,
        .max_memory_bytes = args_bytes(args, "--max-memory", (int64_t)11 << 29),
        .threads = (int)args_int(args, "--threads", 0, args_from_0),
        .device = (int)args_int(args, "--device", 0, args_from_0),
        .log = &args->report->log,
        .progress = &demo.bar.within,
    };
    run_bar_init(&demo.bar, args->report);
    demo.bar.name = "demo";
    demo.bar.iterations = demo.scale->iterations;
    demo.bar.subsets = demo.scale->subsets;
    demo.bar.before = 1;
    demo.bar.each = 2;
    lr_status status = args->status;

    if (status == LR_OK) status = run_demo(&demo);
    picture_sheet_finish(&demo.panel);
    lr_lor_data_destroy(demo.data);
    lr_image_destroy(demo.image);
    lr_image_destroy(demo.sensitivity);
    lr_image_destroy(demo.truth);
    setup_finish(&demo.setup);
    return status;
}

static const struct cli_option options[] = {
    {"-o", "FOLDER", "default demo-out", NULL},
    {"--quick", NULL, "coarse voxels, few counts and iterations: seconds, for tests", NULL},
    {"--seed", "N", "of the Poisson counts; default 1", NULL},
    {COMMON_DEVICE_OPTION},
    {"--max-memory", "SIZE", "limit for the stored matrix; default 5632M", NULL},
    {"--threads", "N", "default 0: all processors", NULL},
    {0},
};

const struct cli_verb verb_demo = {
    .name = "demo",
    .summary = "Simulates a rod phantom in a small-animal scanner and reconstructs it.",
    .example = "loraster demo -o demo-out",
    .groups = {{"demo", options}},
    .run = run,
};
