/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * scanner compare: figures of several designs side by side. */
#include "common.h"
#include "pictures.h"
#include "verbs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The meaning of the FWHMs, for the table, the picture and JSON. */
static const char fwhm_meaning[] =
    "a noise-free source reconstructed by ML-EM with the model that made it: for comparing designs, not a scanner's "
    "resolution";

enum {
    MOST_DESIGNS = 16,
    NUM_RADII = 3,
    USUAL_SIDE = 24 /* an even number, so that no point lies on the axis, where gaps face each other */,
    MAP_PIXELS = 240
};

/* One design. All shares are fractions of 1. */
struct design {
    const char *path;
    lr_scanner *scanner;
    lr_lors *lors;
    lr_scanner_figures figures;
    double coverage, centre, mean; /* coverage: solid angle at the centre; centre, mean: sensitivity at the centre, and
                                      its mean */
    double fwhm_mm[NUM_RADII][3];
    bool has_depth; /* the FWHMs include the depth of interaction */
    lr_image *map;  /* sensitivity on the common grid */
    double *axial, *radial;
};

/* All data of the verb; a struct of zeros is valid. */
struct comparison {
    struct report *report;
    lr_log errors; /* logs only errors, because an operator's warnings concern one grid or one design */
    lr_operator_params params;
    lr_grid grid;
    double radii_mm[NUM_RADII], source_mm;
    struct design designs[MOST_DESIGNS];
    int count;
    int num_radial; /* length of radial profiles */
};

static double length_of(const struct design *design)
{
    return design->figures.high_mm[2] - design->figures.low_mm[2];
}

/* Chooses the common grid if none is given. Its width is the smallest field of view of all designs, and its length is
 * that of the longest design. */
static void choose_grid(struct comparison *all)
{
    double across_mm = INFINITY, axial_mm = 0;
    for (int k = 0; k < all->count; k++) {
        const double view_mm = all->designs[k].scanner->coincidence.field_of_view_mm;
        across_mm = fmin(across_mm, view_mm > 0 ? fmin(view_mm, 2 * all->designs[k].figures.inner_radius_mm)
                                                : 1.6 * all->designs[k].figures.inner_radius_mm);
        axial_mm = fmax(axial_mm, length_of(&all->designs[k]));
    }
    const int size[3] = {USUAL_SIDE, USUAL_SIDE, USUAL_SIDE};
    const double voxel_mm[3] = {across_mm / USUAL_SIDE, across_mm / USUAL_SIDE, axial_mm / USUAL_SIDE};
    all->grid = lr_grid_centred(size, voxel_mm);
}

/* Computes the sensitivity on the common grid, and its profiles. Elements are exact or, if any design has layers,
 * sampled with penetration for all designs. */
static lr_status measure_sensitivity(struct comparison *all, struct design *design)
{
    const lr_log *log = &all->report->log;
    design->map = lr_image_create(&all->grid, log);
    design->axial = calloc((size_t)all->grid.size[2], sizeof(*design->axial));
    design->radial = calloc((size_t)all->num_radial, sizeof(*design->radial));
    if (design->map == NULL || design->axial == NULL || design->radial == NULL)
        return report_error(all->report, LR_FAILED, "no memory for maps of sensitivity");
    lr_operator_params params = all->params;
    params.lors = design->lors;
    params.grid = &all->grid;
    lr_operator *op = lr_operator_create(&params);
    lr_vector sensitivity = lr_image_vector(design->map);
    const lr_status status = op != NULL ? lr_operator_sensitivity(op, NULL, &sensitivity) : report_reason(all->report);
    lr_operator_destroy(op);
    CLI_TRY(status);
    lr_image_axial_profile(design->map, design->axial);
    lr_image_radial_profile(design->map, design->radial, all->num_radial);
    const double voxels = (double)lr_grid_num_voxels(&all->grid);
    design->mean = common_sum(design->map->values, (int64_t)voxels) / voxels;
    design->centre = design->radial[0];
    return LR_OK;
}

/* Measures the FWHMs of small sources on the x axis. Crystals stop photons along their depth if their attenuation is
 * known. */
static lr_status measure_resolution(struct comparison *all, struct design *design)
{
    lr_operator_params params = all->params;
    params.lors = design->lors;
    params.grid = &all->grid;
    params.rays = 2; /* few lines, because the source is put at several points */
    params.penetration = design->has_depth = all->params.penetration || isfinite(design->figures.stopped);
    lr_operator *op = lr_operator_create(&params);
    lr_status status = op != NULL ? LR_OK : report_reason(all->report);
    for (int n = 0; n < NUM_RADII && status == LR_OK; n++) {
        status = lr_point_image_fwhm(&(lr_point_image_params){.op = op,
                                                              .at_mm = {all->radii_mm[n], 0, 0},
                                                              .source_fwhm_mm = all->source_mm,
                                                              .threads = params.threads,
                                                              .log = params.log,
                                                              .progress = params.progress},
                                     design->fwhm_mm[n]);
    }
    lr_operator_destroy(op);
    return status;
}

/* --- results --- */

static void print_row(const struct comparison *all, const char *name, const double *values, const char *format)
{
    printf("%-34s", name);
    for (int k = 0; k < all->count; k++) {
        char text[32] = "-";
        if (isfinite(values[k])) snprintf(text, sizeof(text), format, values[k]);
        printf(" %20s", text);
    }
    putchar('\n');
}

static void print_table(const struct comparison *all)
{
    static const char *const directions[] = {"radial", "tangential", "axial"};
    double rows[11][MOST_DESIGNS];
    printf("%-34s", "");
    for (int k = 0; k < all->count; k++) printf(" %20.20s", all->designs[k].scanner->name);
    putchar('\n');
    for (int k = 0; k < all->count; k++) {
        const struct design *design = &all->designs[k];
        const double values[] = {design->scanner->num_modules,
                                 design->scanner->num_crystals,
                                 (double)design->lors->count,
                                 1e-3 * design->figures.crystal_volume_mm3,
                                 design->figures.inner_radius_mm,
                                 length_of(design),
                                 100 * design->figures.stopped,
                                 100 * design->coverage,
                                 100 * design->centre,
                                 100 * design->mean,
                                 1e3 * 100 * design->centre / (1e-3 * design->figures.crystal_volume_mm3)};
        for (int row = 0; row < 11; row++) rows[row][k] = values[row];
    }
    static const char *const names[] = {"modules",
                                        "crystals",
                                        "LORs",
                                        "crystal volume (cm3)",
                                        "inner radius (mm)",
                                        "axial length (mm)",
                                        "photons stopped (%)",
                                        "solid angle at the centre (%)",
                                        "sensitivity at the centre (%)",
                                        "mean sensitivity (%)",
                                        "centre per litre of crystal (%)"};
    for (int row = 0; row < 11; row++) print_row(all, names[row], rows[row], row < 3 ? "%.0f" : "%.4g");
    for (int n = 0; n < NUM_RADII; n++) {
        for (int axis = 0; axis < 3; axis++) {
            char name[64];
            double values[MOST_DESIGNS];
            snprintf(name, sizeof(name), "FWHM at %.4g mm, %s (mm)", all->radii_mm[n], directions[axis]);
            for (int k = 0; k < all->count; k++) values[k] = all->designs[k].fwhm_mm[n][axis];
            print_row(all, name, values, "%.2f");
        }
    }
    printf("FWHM: of %s.\n", fwhm_meaning);
    for (int k = 0; k < all->count; k++) {
        if (!all->designs[k].has_depth)
            printf("%s: the FWHM is without depth of interaction, since the crystals' material is not known.\n",
                   all->designs[k].scanner->name);
    }
}

static void print_json(const struct comparison *all, const char *output)
{
    struct json json = common_json_begin(stdout, "scanner compare");
    common_json_grid(&json, "grid", &all->grid);
    json_text(&json, "picture", output);
    json_bool(&json, "penetration", all->params.penetration);
    json_numbers(&json, "radii_mm", all->radii_mm, NUM_RADII);
    json_text(&json, "fwhm_of", fwhm_meaning);
    json_open(&json, "designs", '[');
    for (int k = 0; k < all->count; k++) {
        const struct design *design = &all->designs[k];
        json_open(&json, NULL, '{');
        json_text(&json, "scanner", design->scanner->name);
        json_int(&json, "num_modules", design->scanner->num_modules);
        json_int(&json, "num_crystals", design->scanner->num_crystals);
        json_int(&json, "num_lors", design->lors->count);
        json_number(&json, "crystal_volume_mm3", design->figures.crystal_volume_mm3);
        json_number(&json, "inner_radius_mm", design->figures.inner_radius_mm);
        json_number(&json, "axial_mm", length_of(design));
        json_number(&json, "stopped", design->figures.stopped);
        json_number(&json, "coverage", design->coverage);
        json_number(&json, "centre_sensitivity", design->centre);
        json_number(&json, "mean_sensitivity", design->mean);
        json_numbers(&json, "axial_profile", design->axial, all->grid.size[2]);
        json_numbers(&json, "radial_profile", design->radial, all->num_radial);
        json_bool(&json, "fwhm_has_depth", design->has_depth);
        json_open(&json, "fwhm_mm", '[');
        for (int n = 0; n < NUM_RADII; n++) json_numbers(&json, NULL, design->fwhm_mm[n], 3);
        json_close(&json, ']');
        json_close(&json, '}');
    }
    json_close(&json, ']');
    common_json_end(&json);
}

/* --- the picture --- */

/* Adds a chart that shows each design as one curve, or as one bar in each group. curves: [all->count] */
static lr_status add_chart(const struct comparison *all, struct picture_sheet *sheet, lr_chart_params chart,
                           const lr_curve *curves, const char *caption)
{
    chart.curves = curves;
    chart.num_curves = all->count;
    chart.log = &all->report->log;
    return picture_sheet_add(sheet, lr_picture_chart(&chart), "%s", caption);
}

static lr_status add_charts(const struct comparison *all, struct picture_sheet *sheet)
{
    static const char *const one_group[] = {"at the centre"}, *const directions[] = {"rad.", "tan.", "axial"};
    const char *names[NUM_RADII * 3];
    char title[96];
    const int length = all->grid.size[2], most = length > all->num_radial ? length : all->num_radial;
    const lr_grid *grid = &all->grid;
    lr_curve curves[4][MOST_DESIGNS];
    double *room = calloc((size_t)(2 + 2 * all->count) * (size_t)most + MOST_DESIGNS, sizeof(*room));
    if (room == NULL) return report_error(all->report, LR_FAILED, "no memory for charts");
    double *z_mm = room, *r_mm = room + most, *rest = room + 2 * most;
    for (int n = 0; n < length; n++) z_mm[n] = grid->origin_mm[2] + n * grid->voxel_mm[2];
    for (int n = 0; n < all->num_radial; n++) r_mm[n] = (n + 0.5) * grid->voxel_mm[0];
    for (int n = 0; n < NUM_RADII * 3; n++) names[n] = directions[n % 3];
    snprintf(title, sizeof(title), "FWHM of a source at x = %.3g, %.3g, %.3g mm", all->radii_mm[0], all->radii_mm[1],
             all->radii_mm[2]);
    for (int k = 0; k < all->count; k++) {
        const struct design *design = &all->designs[k];
        const char *name = design->scanner->name;
        for (int n = 0; n < length; n++) rest[n] = 100 * design->axial[n];
        curves[0][k] = (lr_curve){name, z_mm, rest, length};
        rest += most;
        for (int n = 0; n < all->num_radial; n++) rest[n] = 100 * design->radial[n];
        curves[1][k] = (lr_curve){name, r_mm, rest, all->num_radial};
        rest += most;
        *rest = 100 * design->coverage;
        curves[2][k] = (lr_curve){name, NULL, rest++, 1};
        curves[3][k] = (lr_curve){name, NULL, design->fwhm_mm[0], NUM_RADII * 3};
    }
    lr_status status = add_chart(all, sheet, (lr_chart_params){.across = "z (mm)", .up = "sensitivity (%)"}, curves[0],
                                 "Sensitivity along the axis");
    if (status == LR_OK)
        status = add_chart(all, sheet, (lr_chart_params){.across = "distance (mm)", .up = "sensitivity (%)"}, curves[1],
                           "Sensitivity across, z = 0");
    if (status == LR_OK)
        status = add_chart(all, sheet, (lr_chart_params){.up = "of 4 pi (%)", .groups = one_group, .num_groups = 1},
                           curves[2], "Solid angle of crystals");
    if (status == LR_OK)
        status = add_chart(all, sheet,
                           (lr_chart_params){.across = "radial, tangential, axial: at each x in turn",
                                             .up = "FWHM (mm)",
                                             .groups = names,
                                             .num_groups = NUM_RADII * 3},
                           curves[3], title);
    free(room);
    return status;
}

static lr_status draw(const struct comparison *all, const char *output)
{
    char note[400];
    struct picture_sheet sheet = {.report = all->report, .note = note};
    const lr_grid *grid = &all->grid;
    snprintf(note, sizeof(note),
             "Sensitivity is the share of emissions whose photons %s; voxels of %.3g x %.3g x %.3g mm. FWHM: of %s",
             all->params.penetration ? "crystals both stop" : "both meet crystals", grid->voxel_mm[0],
             grid->voxel_mm[1], grid->voxel_mm[2], fwhm_meaning);
    double high = 0, longest_mm = 0;
    for (int k = 0; k < 3; k++) longest_mm = fmax(longest_mm, grid->size[k] * grid->voxel_mm[k]);
    for (int k = 0; k < all->count; k++) {
        lr_image *map = all->designs[k].map;
        common_scale(map->values, lr_grid_num_voxels(grid), 100);
        for (int64_t row = 0; row < lr_grid_num_voxels(grid); row++) high = fmax(high, map->values[row]);
    }
    lr_status status = add_charts(all, &sheet);
    for (int n = 0; n < 2 * all->count && status == LR_OK; n++) {
        const struct design *design = &all->designs[n / 2];
        status = picture_sheet_add(
            &sheet,
            lr_picture_slice(&(lr_slice_params){.image = design->map,
                                                .plane = n % 2 == 0 ? LR_PLANE_TRANSAXIAL : LR_PLANE_CORONAL,
                                                .pixels_per_mm = MAP_PIXELS / longest_mm,
                                                .high = high > 0 ? high : 1,
                                                .colours = LR_COLOURS_PERCEPTUAL,
                                                .axes = true,
                                                .colour_bar = true,
                                                .unit = "%",
                                                .log = &all->report->log}),
            "%s, %s", design->scanner->name, n % 2 == 0 ? "z = 0" : "y = 0");
    }
    if (status == LR_OK) status = picture_sheet_write(&sheet, output, 0, 4, "Designs compared");
    picture_sheet_finish(&sheet);
    return status;
}

static lr_status run(struct cli_args *args)
{
    struct comparison *all = calloc(1, sizeof(*all));
    struct setup setup = {.report = args->report}; /* only for the grid */
    const lr_log *log = &args->report->log;
    const char *output = args_text(args, "-o");
    const bool has_grid = args_has(args, "--grid") || args_has(args, "--like") || args_has(args, "--voxel-mm") ||
                          args_has(args, "--origin-mm");
    if (all == NULL) return report_error(args->report, LR_FAILED, "no memory for designs");
    all->report = args->report;
    all->count = args->num_positional;
    if (all->count < 1 || all->count > MOST_DESIGNS)
        args_complain(args, "%s needs 1 to %d designs: %s", args->verb->name, (int)MOST_DESIGNS,
                      args->verb->positionals);
    all->source_mm = args_number(args, "--source-mm", 0, true);
    all->errors = report_errors_alone(args->report);
    all->params = (lr_operator_params){
        .backend = args_chosen(args, "--backend"),
        .samples = {1, 1, 1},
        .store = LR_STORE_NO,
        .threads = (int)args_int(args, "--threads", 0, args_from_0),
        .log = &all->errors,
        .progress = &args->report->progress,
    };
    const bool has_radii = args_triple(args, "--radii-mm", false, all->radii_mm);
    lr_status status = args->status;
    if (status == LR_OK && has_grid) status = setup_grid(&setup, args, NULL);
    for (int k = 0; k < all->count && status == LR_OK; k++) {
        struct design *design = &all->designs[k];
        design->path = args->positional[k];
        design->scanner = lr_scanner_read(design->path, log);
        if (design->scanner != NULL)
            design->lors = lr_lors_create_watched(design->scanner, &args->report->progress, log);
        if (design->lors != NULL) {
            design->figures = lr_scanner_measure(design->scanner);
            design->coverage = lr_scanner_coverage(design->scanner, (const double[3]){0, 0, 0});
            all->params.penetration = all->params.penetration || design->figures.num_layers > 1;
        } else {
            status = report_reason(args->report);
        }
    }
    if (status != LR_OK) goto finish;
    if (all->params.penetration) {
        report_info(args->report, "a design has layers: sensitivities of all are of photons that crystals stop (LYSO, "
                                  "where the material is not known)");
    }
    if (has_grid)
        all->grid = setup.grid;
    else
        choose_grid(all);
    const double reach_mm = 0.5 * all->grid.size[0] * all->grid.voxel_mm[0];
    for (int n = 0; n < NUM_RADII && !has_radii; n++) all->radii_mm[n] = (0.1 + 0.3 * n) * reach_mm;
    all->num_radial = (all->grid.size[0] + 1) / 2;
    for (int k = 0; k < all->count && status == LR_OK; k++) {
        report_info(args->report, "design %d of %d, %s", k + 1, all->count, all->designs[k].scanner->name);
        status = measure_sensitivity(all, &all->designs[k]);
        if (status == LR_OK) status = measure_resolution(all, &all->designs[k]);
    }
    if (status != LR_OK) goto finish;
    report_clear(args->report);
    if (output != NULL) status = draw(all, output);
    if (status == LR_OK) args->report->json ? print_json(all, output) : print_table(all);

finish:
    for (int k = 0; k < all->count && k < MOST_DESIGNS; k++) {
        struct design *design = &all->designs[k];
        lr_image_destroy(design->map);
        free(design->axial);
        free(design->radial);
        lr_lors_destroy(design->lors);
        lr_scanner_destroy(design->scanner);
    }
    free(all);
    setup_finish(&setup);
    return status;
}

static const struct cli_option options[] = {
    {"-o", "FILE", "also draw all designs side by side (.png)", NULL},
    {"--radii-mm", "A,B,C", "places of sources on the x axis; default 0.1, 0.4 and 0.7 of the grid's half", NULL},
    {"--source-mm", "MM", "FWHM of the sources, with the range of positrons; default: points", NULL},
    {"--backend", "NAME", "cpu, compute or native; default auto: the fastest",
     CLI_WORDS("auto", "cpu", "compute", "native")},
    {"--threads", "N", "default 0: all processors", NULL},
    {0},
};

const struct cli_verb verb_scanner_compare = {
    .name = "scanner compare",
    .positionals = "NAME|FILE...",
    .most_positionals = CLI_MAX_POSITIONAL,
    .summary = "Compares designs: size, coverage, sensitivity and resolution, as a table and a picture.",
    .example = "loraster scanner compare ge-explore-vista-dr mine.yaml -o compare.png",
    .outputs = {{"-o", common_picture_endings}},
    .groups = {{"comparison", options}, {"grid of all; default: the smallest field of view", common_grid_options}},
    .run = run,
};
