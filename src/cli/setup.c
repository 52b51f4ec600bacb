/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * From the shared options to an operator. */
#include "common.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <strings.h>

const struct cli_option common_scanner_options[] = {
    {"--scanner", "NAME|FILE", "a preset (loraster scanner list) or a file: YAML, PETSIRD, CASToR, STIR", false},
    {0},
};

const struct cli_option common_grid_options[] = {
    {"--grid", "NX,NY,NZ", "number of voxels", false},
    {"--voxel-mm", "DX,DY,DZ", "edges of a voxel in mm; one number for a cube", false},
    {"--origin-mm", "X,Y,Z", "centre of the first voxel; default: grid centred", false},
    {"--like", "IMAGE", "the grid of this image instead", false},
    {0},
};

const struct cli_option common_operator_options[] = {
    {"--backend", "NAME", "cpu, raster, compute, native, or cuda of list mode; default auto: the fastest", false},
    {"--device", "N", "which usable device of loraster info; default 0", false},
    {"--mode", "NAME", "sampled (lines), exact (solid angles); default auto: exact if it can", false},
    {"--rays", "R", "sampled: R x R lines over each crystal face; default 4", false},
    {"--samples", "N|NX,NY,NZ", "points per voxel; default: as its mean needs", false},
    {"--mu", "IMAGE", "attenuation map", false},
    {"--mu-unit", "UNIT", "of the map: 1/mm, 1/cm or hu (CT); default: 1/mm or 1/cm by its largest value", false},
    {"--mu-steps", "K", "samples of the map along a line; default: one per voxel", false},
    {"--penetration", NULL, "crystals stop photons along their depth; always in layers, unless", false},
    {"--layers-alone", NULL, "each layer of crystals counts as if it were the only one", false},
    {"--deterministic", NULL, "the same bits in every run, where that is slower", false},
    {"--store", "WHEN", "keep the matrix in memory: auto, yes or no", false},
    {"--max-memory", "SIZE", "limit for it, and on a device, such as 512M or 4G; default: half", false},
    {"--threads", "N", "default: all processors", false},
    {0},
};

static const int64_t at_least_one[2] = {1, INT_MAX};
static const int64_t at_least_zero[2] = {0, INT_MAX};

static const char *read_backend(struct cli_args *args)
{
    static const char *const names[] = {"auto", "cpu", "raster", "compute", "native", "cuda", NULL};
    const char *text = args_text(args, "--backend"), *family = args_text(args, "--operator");
    const bool has_cuda = family != NULL && strcasecmp(family, "listmode") == 0;
    if (text != NULL && strcasecmp(text, "cuda") == 0 && !has_cuda) {
        args_complain(args,
                      "--backend %s: only the families direct and listmode have it (loraster "
                      "direct project, recon --operator): take compute, which uses the "
                      "graphics processor by OpenGL",
                      text);
    }
    if (text != NULL && (strcasecmp(text, "gpu") == 0 || strcasecmp(text, "opengl") == 0)) {
        args_complain(args,
                      "--backend %s: the graphics processor is used by compute, and by raster "
                      "for pictures: give one of these, or leave it to auto",
                      text);
    }
    return names[args_word(args, "--backend", names, 0)];
}

/* A single number is split over the axes once the grid is known; it stays in samples[0] then. */
static void read_samples(struct cli_args *args, lr_operator_params *params)
{
    if (args_sizes(args, "--samples", params->samples) == 1) params->samples[1] = params->samples[2] = 0;
}

static void read_params(struct setup *setup, struct cli_args *args, lr_store store)
{
    static const char *const modes[] = {"auto", "sampled", "exact", NULL};
    static const char *const stores[] = {"auto", "yes", "no", NULL};
    setup->params = (lr_operator_params){
        .backend = read_backend(args),
        .mode = (lr_mode)args_word(args, "--mode", modes, LR_MODE_AUTO),
        .rays = (int)args_int(args, "--rays", 0, at_least_one),
        .mu_steps = (int)args_int(args, "--mu-steps", 0, at_least_one),
        .deterministic = args_has(args, "--deterministic"),
        .penetration = args_has(args, "--penetration"),
        .layers_alone = args_has(args, "--layers-alone"),
        .max_memory_bytes = args_bytes(args, "--max-memory", 0),
        .threads = (int)args_int(args, "--threads", 0, at_least_one),
        .device = (int)args_int(args, "--device", 0, at_least_zero),
        .log = &setup->report->log,
        .progress = &setup->report->progress,
    };
    if (setup->params.penetration && setup->params.layers_alone) {
        args_complain(args, "--penetration goes through all layers, and with --layers-alone each "
                            "counts as if it were the only one: give one of the two");
    }
    setup->verb = args->syntax->verb;
    setup->dry_run = args_has(args, "--dry-run");
    setup->store = (lr_store)args_word(args, "--store", stores, (int)store);
    setup->params.store = setup->dry_run ? LR_STORE_NO : setup->store;
    read_samples(args, &setup->params);
    if (setup->params.mode == LR_MODE_EXACT && args_has(args, "--rays")) {
        report_warn(setup->report,
                    "--rays %s has no effect: --mode exact has no lines, and --mode "
                    "sampled has them",
                    args_text(args, "--rays"));
    }
    if (args_text(args, "--mu") == NULL && (args_has(args, "--mu-unit") || args_has(args, "--mu-steps")))
        args_complain(args, "--mu-unit and --mu-steps need --mu IMAGE");
}

/* --grid, --voxel-mm, --origin-mm. Returns whether they were given. */
static bool read_explicit_grid(struct cli_args *args, lr_grid *grid)
{
    int size[3] = {0};
    double voxel_mm[3] = {0}, origin_mm[3];
    const int count = args_sizes(args, "--grid", size);
    const bool has_voxel = args_triple(args, "--voxel-mm", true, voxel_mm);
    const bool has_origin = args_triple(args, "--origin-mm", false, origin_mm);
    if (!args_has(args, "--grid")) {
        if (has_voxel || has_origin) args_complain(args, "--voxel-mm and --origin-mm need --grid NX,NY,NZ");
        return false;
    }
    if (count == 1)
        args_complain(args, "--grid %s: three numbers are needed, such as --grid 96,96,8", args_text(args, "--grid"));
    if (!has_voxel) args_complain(args, "--grid needs --voxel-mm DX,DY,DZ");
    for (int k = 0; k < 3 && has_voxel; k++)
        if (!(voxel_mm[k] > 0))
            args_complain(args, "--voxel-mm %s: edges must be positive", args_text(args, "--voxel-mm"));
    *grid = lr_grid_centred(size, voxel_mm);
    if (has_origin) memcpy(grid->origin_mm, origin_mm, sizeof(origin_mm));
    return true;
}

lr_image *setup_read_image(struct setup *setup, struct cli_args *args, const char *path)
{
    const lr_log *log = &setup->report->log;
    const char *like = args_text(args, "--like");
    lr_grid grid = {0};
    if (!common_ends_with(path, ".npy")) return lr_image_read(path, log);
    if (like != NULL) return lr_grid_read(like, &grid, log) == LR_OK ? lr_image_read_on(path, &grid, log) : NULL;
    const bool given = read_explicit_grid(args, &grid);
    return args->status == LR_OK ? lr_image_read_on(path, given ? &grid : NULL, log) : NULL;
}

/* The map in 1/mm, as the library wants it. */
static lr_status read_mu(struct setup *setup, struct cli_args *args, lr_mu_unit unit)
{
    const char *path = args_text(args, "--mu");
    setup->mu = setup_read_image(setup, args, path);
    if (setup->mu == NULL) return report_reason(setup->report);
    CLI_TRY(lr_mu_map_settle(
        setup->mu,
        &(lr_mu_map_params){.unit = unit, .name = path, .scanner = setup->scanner, .log = &setup->report->log}));
    setup->params.mu = setup->mu;
    return LR_OK;
}

lr_status setup_scanner(struct setup *setup, struct cli_args *args, lr_store store)
{
    return setup_scanner_or(setup, args, store, NULL);
}

lr_status setup_scanner_or(struct setup *setup, struct cli_args *args, lr_store store, lr_scanner *fallback)
{
    static const char *const units[] = {"auto", "1/mm", "1/cm", "hu", NULL};
    setup->report = args->report;
    const bool is_named = fallback == NULL || args_has(args, "--scanner");
    setup->scanner = fallback;
    const char *name = is_named ? args_required(args, "--scanner") : NULL;
    read_params(setup, args, store);
    const lr_mu_unit unit = (lr_mu_unit)args_word(args, "--mu-unit", units, LR_MU_BY_VALUE);
    CLI_TRY(args->status);
    if (is_named) {
        lr_scanner_destroy(setup->scanner);
        setup->scanner = lr_scanner_read(name, &setup->report->log);
    }
    if (setup->scanner == NULL) return report_reason(setup->report);
    setup->lors = lr_lors_create_watched(setup->scanner, &setup->report->progress, &setup->report->log);
    if (setup->lors == NULL) return report_reason(setup->report);
    setup->params.lors = setup->lors;
    return args_has(args, "--mu") ? read_mu(setup, args, unit) : LR_OK;
}

bool setup_same_grid(const lr_grid *a, const lr_grid *b)
{
    bool same = true;
    for (int k = 0; k < 3; k++) {
        const double slack = 1e-3 * a->voxel_mm[k];
        same = same && a->size[k] == b->size[k] && fabs(a->voxel_mm[k] - b->voxel_mm[k]) * a->size[k] < slack &&
               fabs(a->origin_mm[k] - b->origin_mm[k]) < slack;
    }
    return same;
}

static void split_samples(struct setup *setup)
{
    int *samples = setup->params.samples;
    if (samples[0] > 0 && samples[1] == 0) lr_grid_split_samples(&setup->grid, samples[0], samples);
}

lr_status setup_grid(struct setup *setup, struct cli_args *args, const lr_grid *image)
{
    const char *like = args_text(args, "--like");
    const bool given = read_explicit_grid(args, &setup->grid);
    if (given && like != NULL) args_complain(args, "--grid and --like exclude each other");
    if (!given && like == NULL && image == NULL) {
        args_complain(args, "%s needs a grid: --grid NX,NY,NZ --voxel-mm DX,DY,DZ, or --like IMAGE",
                      args->syntax->verb);
    }
    CLI_TRY(args->status);
    if (like != NULL) CLI_TRY(lr_grid_read(like, &setup->grid, &setup->report->log));
    if (!given && like == NULL) {
        setup->grid = *image;
    } else if (image != NULL && !setup_same_grid(&setup->grid, image)) {
        return report_error(setup->report, LR_USAGE,
                            "the image's grid is not the one asked for: leave out --grid and "
                            "--like to use the image's");
    }
    split_samples(setup);
    setup->params.grid = &setup->grid;
    return lr_grid_check(&setup->grid, &setup->report->log);
}

void setup_voxel_grid(struct setup *setup, const double centre_mm[3], const double voxel_mm[3])
{
    static const int one[3] = {1, 1, 1};
    setup->grid = lr_grid_centred(one, voxel_mm);
    memcpy(setup->grid.origin_mm, centre_mm, sizeof(setup->grid.origin_mm));
    split_samples(setup);
    setup->params.grid = &setup->grid;
}

void setup_point_grid(struct setup *setup)
{
    static const double cube_mm[3] = {1, 1, 1};
    double centre_mm[3] = {0};
    for (int m = 0; m < setup->scanner->num_modules; m++)
        for (int k = 0; k < 3; k++)
            centre_mm[k] += setup->scanner->modules[m].centre_mm[k] / setup->scanner->num_modules;
    setup_voxel_grid(setup, centre_mm, cube_mm);
}

lr_status setup_operator(struct setup *setup)
{
    char bytes[32], seconds[32];
    setup->op = lr_operator_create(&setup->params);
    if (setup->op == NULL) return report_reason(setup->report);
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    report_info(setup->report, "backend %s on %s, mode %s%s", info->backend, info->device,
                info->mode == LR_MODE_EXACT ? "exact" : "sampled", info->penetration ? ", penetration" : "");
    if (info->stored) {
        report_info(setup->report, "matrix kept in memory: %lld elements, %s, made in %s",
                    (long long)info->num_elements, common_bytes(bytes, info->memory_bytes),
                    report_duration(seconds, info->build_seconds));
    }
    if (info->passed_over != NULL && info->num_lors >= (int64_t)UINT32_MAX) {
        report_info(setup->report, "a graphics processor takes so many LORs event by event: loraster recon "
                                   "--operator listmode --kernel exact --events FILE");
    }
    return LR_OK;
}

void setup_finish(struct setup *setup)
{
    lr_operator_destroy(setup->op); /* which asks for the factors */
    lor_factors_finish(&setup->factors);
    lr_image_destroy(setup->mu);
    lr_lors_destroy(setup->lors);
    lr_scanner_destroy(setup->scanner);
    *setup = (struct setup){0};
}

void setup_json(const struct setup *setup, struct json *json)
{
    json_text(json, "scanner", setup->scanner != NULL ? setup->scanner->name : NULL);
    common_json_grid(json, "grid", &setup->grid);
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    const bool is_direct = info->lors->scanner == NULL; /* or of events */
    json_open(json, "operator", '{');
    json_text(json, "family", info->of_events ? "listmode" : is_direct ? "direct" : "correspondence");
    json_text(json, "backend", info->backend);
    json_text(json, "device", info->device);
    json_text(json, "passed_over", info->passed_over);
    json_text(json, "mode", is_direct ? NULL : info->mode == LR_MODE_EXACT ? "exact" : "sampled");
    json_int(json, "rays", info->rays);
    json_ints(json, "samples", info->samples, 3);
    json_int(json, "mu_steps", info->mu_steps);
    json_bool(json, "stored", info->stored);
    json_int(json, "num_voxels", info->num_voxels);
    json_int(json, "num_lors", info->num_lors);
    json_int(json, "num_elements", info->num_elements);
    json_int(json, "memory_bytes", info->memory_bytes);
    json_number(json, "build_seconds", info->build_seconds);
    json_close(json, '}');
}
