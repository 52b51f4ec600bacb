/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "album.h"
#include "compare.h"
#include "shot.h"
#include "stop.h"
#include "verbs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One rendering under way. */
struct work {
    struct setup setup;
    double point_mm[3];
    int only_module; /* -1 = all */
    const char *folder;
    struct shot *shots; /* owned [num_shots]: the modules with an image */
    int num_shots;
    struct album album;
    struct shot_note note; /* on every picture */
};

/* --- taking --- */

static lr_status take_shots(struct work *work)
{
    const int num_modules = work->setup.scanner->num_modules;
    work->shots = calloc((size_t)num_modules, sizeof(*work->shots));
    if (work->shots == NULL)
        return report_error(work->setup.report, LR_FAILED, "no memory for %d pictures", num_modules);
    for (int m = 0; m < num_modules; m++) {
        if (work->only_module >= 0 && work->only_module != m) continue;
        struct shot shot;
        CLI_TRY(shot_take(&work->setup, work->point_mm, m, &shot));
        if (shot.num_hits > 0 || work->only_module == m)
            work->shots[work->num_shots++] = shot;
        else
            shot_finish(&shot);
        if (stop_is_asked()) return LR_CANCELLED;
    }
    return LR_OK;
}

static double highest_weight(const struct work *work)
{
    double highest = 0;
    for (int k = 0; k < work->num_shots; k++) highest = fmax(highest, work->shots[k].highest);
    return highest;
}

/* --- writing --- */

static lr_status write_numbers(const struct work *work, const struct shot *shot)
{
    char path[PATH_MAX];
    const int64_t shape[3] = {shot->size[1], shot->size[0], 5};
    const int64_t count = shape[0] * shape[1];
    float *values = common_floats(work->setup.report, 5 * count, "a picture");
    if (values == NULL) return LR_FAILED;
    for (int64_t k = 0; k < count; k++) {
        const lr_pixel *pixel = &shot->pixels[k];
        const float fields[5] = {pixel->module, pixel->r, pixel->s, pixel->weight, pixel->path_mm};
        for (int f = 0; f < 5; f++) values[5 * k + f] = fields[f];
    }
    snprintf(path, sizeof(path), "%s/module_%d.npy", work->folder, shot->module);
    const lr_array array = {values, shape, 3};
    const lr_status status = lr_npy_write(path, &array, &work->setup.report->log);
    free(values);
    return status;
}

static lr_status write_view(struct work *work, const struct shot *shot, lr_correspondence_view view, double high)
{
    static const char *const names[] = {"colour", "weight"};
    static const char *const captions[] = {"crystals met", "weight"};
    char path[PATH_MAX];
    CLI_TRY(album_add(&work->album, shot_draw(&work->setup, shot, view, high), "module %d: %s", shot->module,
                      captions[view]));
    snprintf(path, sizeof(path), "%s/module_%d_%s.png", work->folder, shot->module, names[view]);
    return album_write_last(&work->album, path);
}

/* About as many rows as columns, two pictures per module side by side. */
static int sheet_columns(int num_shots)
{
    int across = 1;
    while (2 * across * across < num_shots) across++;
    return 2 * across;
}

static lr_status write_sheet(const struct work *work)
{
    char path[PATH_MAX], title[160];
    snprintf(path, sizeof(path), "%s/contact_sheet.png", work->folder);
    snprintf(title, sizeof(title), "Correspondence images of the point (%g, %g, %g) mm", work->point_mm[0],
             work->point_mm[1], work->point_mm[2]);
    return album_write(&work->album, path, sheet_columns(work->num_shots), title);
}

/* --- the report --- */

static void put_images(const struct work *work, struct json *json)
{
    json_numbers(json, "point_mm", work->point_mm, 3);
    json_open(json, "modules", '[');
    for (int k = 0; k < work->num_shots; k++) json_int(json, NULL, work->shots[k].module);
    json_close(json, ']');
    json_open(json, "weights", '[');
    for (int k = 0; k < work->num_shots; k++) json_number(json, NULL, work->shots[k].weight);
    json_close(json, ']');
}

static void put_maker(const struct work *work, struct json *json)
{
    const lr_operator_info *info = lr_operator_get_info(work->setup.op);
    json_text(json, "scanner", work->setup.scanner->name);
    json_text(json, "backend", info->backend);
    json_text(json, "device", info->device);
    json_text(json, "passed_over", info->passed_over);
    json_int(json, "rays", info->rays);
    json_int(json, "mu_steps", info->mu_steps);
}

/* render.json beside the pictures: what they are of and what drew them, the same in every run. */
static lr_status write_record(const struct work *work)
{
    char path[PATH_MAX];
    struct common_text text;
    common_text_begin(&text);
    if (text.stream != NULL) {
        struct json json = {.stream = text.stream};
        common_json_open(&json, "render");
        put_maker(work, &json);
        put_images(work, &json);
        common_json_end(&json);
    }
    snprintf(path, sizeof(path), "%s/render.json", work->folder);
    return common_text_write(&text, work->setup.report, path);
}

static lr_status write_files(struct work *work)
{
    const double high = highest_weight(work);
    for (int k = 0; k < work->num_shots; k++) {
        const struct shot *shot = &work->shots[k];
        CLI_TRY(write_numbers(work, shot));
        CLI_TRY(write_view(work, shot, LR_VIEW_CRYSTALS, high));
        CLI_TRY(write_view(work, shot, LR_VIEW_WEIGHTS, high));
        CLI_TRY(stop_is_asked() ? LR_CANCELLED : LR_OK);
    }
    CLI_TRY(write_record(work));
    return write_sheet(work);
}

static lr_status write_all(struct work *work)
{
    struct common_folder folder;
    CLI_TRY(common_folder_begin(&folder, work->setup.report, work->folder));
    work->folder = folder.part;
    const lr_status status = write_files(work);
    work->folder = folder.path;
    return common_folder_end(&folder, work->setup.report, status);
}

static void report_result(const struct work *work)
{
    report_clear(work->setup.report);
    if (!work->setup.report->json) {
        printf("%s: %d modules with an image, by backend %s\n", work->folder, work->num_shots,
               lr_operator_get_info(work->setup.op)->backend);
        for (int k = 0; k < work->num_shots; k++) {
            const struct shot *shot = &work->shots[k];
            printf("  module %d: %d x %d pixels, %lld with a LOR, weight %.9g\n", shot->module, shot->size[0],
                   shot->size[1], (long long)shot->num_hits, shot->weight);
        }
        return;
    }
    struct json json = common_json_begin("render");
    setup_json(&work->setup, &json);
    json_text(&json, "output", work->folder);
    put_images(work, &json);
    common_json_end(&json);
}

/* --- the verb --- */

static lr_status check_request(struct cli_args *args, struct work *work)
{
    static const int64_t range[2] = {0, INT_MAX};
    work->folder = args_required(args, "-o");
    args_required(args, "--at");
    args_triple(args, "--at", false, work->point_mm);
    if (args_has(args, "--voxel-mm"))
        args_complain(args, "--voxel-mm needs --compare: correspondence images show one point");
    work->only_module = (int)args_int(args, "--module", -1, range);
    return args->status;
}

static lr_status check_lines(const struct setup *setup, const struct work *work)
{
    struct report *report = setup->report;
    if (setup->params.mode == LR_MODE_EXACT)
        return report_error(report, LR_USAGE, "correspondence images show lines: exact mode has none");
    if (setup->params.penetration) {
        return report_error(report, LR_USAGE,
                            "with --penetration a line ends in several crystals and has no pixel: "
                            "draw correspondence images without it");
    }
    if (work->only_module >= setup->scanner->num_modules) {
        return report_error(report, LR_USAGE, "--module %d: %s has modules 0 to %d", work->only_module,
                            setup->scanner->name, setup->scanner->num_modules - 1);
    }
    return LR_OK;
}

static lr_status create_operator(struct work *work)
{
    struct setup *setup = &work->setup;
    setup->params.mode = LR_MODE_SAMPLED;
    setup->params.layers_alone = true;
    if (strcmp(setup->params.backend, "auto") == 0) setup->params.backend = shot_backends;
    setup_point_grid(setup);
    setup->op = lr_operator_create(&setup->params);
    if (setup->op == NULL) return report_reason(setup->report);
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    shot_note_init(&work->note, info);
    shot_note_say(&work->note, info, setup->report);
    work->album = (struct album){.report = setup->report, .note = work->note.text};
    return LR_OK;
}

static lr_status render(struct cli_args *args, struct work *work)
{
    CLI_TRY(setup_scanner(&work->setup, args, LR_STORE_NO));
    CLI_TRY(check_lines(&work->setup, work));
    CLI_TRY(create_operator(work));
    CLI_TRY(take_shots(work));
    if (work->num_shots == 0) {
        return report_error(args->report, LR_BAD_INPUT,
                            "no line through (%g, %g, %g) mm joins two modules: there is nothing "
                            "to draw: --at is in mm from the scanner's centre",
                            work->point_mm[0], work->point_mm[1], work->point_mm[2]);
    }
    CLI_TRY(write_all(work));
    report_result(work);
    return LR_OK;
}

static lr_status run(struct cli_args *args)
{
    if (args_has(args, "--compare")) return compare_run(args);
    struct work work = {0};
    lr_status status = check_request(args, &work);
    if (status == LR_OK) status = render(args, &work);
    album_finish(&work.album);
    for (int k = 0; k < work.num_shots; k++) shot_finish(&work.shots[k]);
    free(work.shots);
    setup_finish(&work.setup);
    return status;
}

static const struct cli_option options[] = {
    {"--at", "X,Y,Z", "the point to look from, in mm", false},
    {"--module", "M", "only the image with this primary module", false},
    {"-o", "FOLDER", "made unless it is there: module_M.npy, PNGs, contact_sheet.png, render.json", false},
    {0},
};

static const struct cli_option compare_options[] = {
    {"--compare", "[R,R,...]", "draw sampled against exact elements of one primary module", false},
    {"--voxel-mm", "DX,DY,DZ", "of the voxel with these edges around the point", false},
    {0},
};

static const struct cli_syntax syntax = {
    .verb = "render",
    .summary = "Draws the correspondence images of a point: which crystals its lines meet; or how far "
               "sampled elements are from exact ones. The projector's shaders draw (raster); without "
               "OpenGL cpu does.",
    .example = "loraster render --scanner ge-explore-vista-dr --at 5,0,2 --rays 8 -o pictures",
    .groups = {{"point and output", options},
               {"sampled against exact (compare.png, .npy of the elements)", compare_options},
               COMMON_SCANNER_GROUP,
               COMMON_OPERATOR_GROUP,
               COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_render = {&syntax, run};
