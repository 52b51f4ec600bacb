/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * render: pictures of the LORs seen from one point. The option --compare draws the sampled elements of a point or voxel
 * next to the exact elements. */
#include "matrix.h"
#include "pictures.h"
#include "stop.h"
#include "verbs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPARE_MOST_RAYS = 16 };

/* The sampled result for one R. */
struct compare_sampled {
    int rays;
    char backend[32];
    struct retained_row row; /* the row's elements with compare.module as their primary module */
    lr_row_error error;      /* error of the module's elements */
    lr_row_error all;        /* error of the elements of all primary modules */
};

/* A comparison in progress; a struct of zeros is valid. */
struct compare {
    struct setup setup; /* its operator is exact; its grid is the voxel or point */
    bool voxel;         /* true: the grid's voxel; false: only its centre */
    int module;         /* -1 = not chosen yet */
    const char *folder;
    struct retained_row whole, exact; /* whole: row of all primary modules; exact: its elements with the primary module
                                         `module` */
    struct compare_sampled sampled[COMPARE_MOST_RAYS];
    int num_sampled;
    lr_pixel *pixels; /* owned [pixel_rays nv][pixel_rays nu]: the correspondence image of the module */
    int pixel_rays;
    struct bitmap_note note; /* the backend that drew the pixels */
};

/* Writes an array [shape[0]][shape[1]], or [shape[0]] if shape[1] is 1, as NAME.npy. */
static lr_status write_values(const struct compare *compare, const char *name, const float *values,
                              const int64_t shape[2])
{
    char path[PATH_MAX];
    const lr_array array = {values, shape, shape[1] > 1 ? 2 : 1};
    snprintf(path, sizeof(path), "%s/%s.npy", compare->folder, name);
    return lr_npy_write(path, &array, &compare->setup.report->log);
}

/* Writes arrays with an entry for each LOR of any row: the LORs, the exact elements, and for each R the sampled
 * elements and their differences from the exact ones. */
static lr_status write_arrays(const struct compare *compare)
{
    int64_t room = compare->exact.count, count = 0;
    for (int k = 0; k < compare->num_sampled; k++) room += compare->sampled[k].row.count;
    int64_t *lors = calloc((size_t)room, sizeof(*lors));
    float *values = common_floats(compare->setup.report, 5 * room, "elements");
    lr_status status = LR_FAILED;
    if (values == NULL) goto finish;
    if (lors == NULL) {
        status = report_error(compare->setup.report, LR_FAILED, "no memory for %lld elements", (long long)room);
        goto finish;
    }

    for (int k = -1; k < compare->num_sampled; k++) {
        const struct retained_row *row = k < 0 ? &compare->exact : &compare->sampled[k].row;
        for (int64_t n = 0; n < row->count; n++) lors[count++] = row->lor[n];
    }
    count = matrix_sort_numbers(lors, count);
    const int64_t shape[2] = {count, 1};

    /* A LOR is described by its primary crystal, secondary module and secondary crystal. */
    for (int64_t n = 0; n < count; n++) {
        const lr_lor lor = lr_lors_describe(compare->setup.lors, lors[n]);
        const bool first = lor.module_i == compare->module;
        const int fields[5] = {first ? lor.p : lor.r, first ? lor.q : lor.s, first ? lor.module_j : lor.module_i,
                               first ? lor.r : lor.p, first ? lor.s : lor.q};
        for (int f = 0; f < 5; f++) values[5 * n + f] = (float)fields[f];
    }
    status = write_values(compare, "lors", values, (const int64_t[2]){count, 5});

    const struct retained_row *exact = &compare->exact;
    float *differences = values + count;
    for (int k = -1; status == LR_OK && k < compare->num_sampled; k++) {
        const struct retained_row *row = k < 0 ? exact : &compare->sampled[k].row;
        char name[64] = "exact";
        for (int64_t n = 0, e = 0, r = 0; n < count; n++) {
            const double due = e < exact->count && exact->lor[e] == lors[n] ? exact->probability[e++] : 0;
            const double found = r < row->count && row->lor[r] == lors[n] ? row->probability[r++] : 0;
            values[n] = (float)found;
            differences[n] = (float)(found - due);
        }
        if (k >= 0) snprintf(name, sizeof(name), "sampled_R%d", compare->sampled[k].rays);
        status = write_values(compare, name, values, shape);
        if (k < 0 || status != LR_OK) continue;
        snprintf(name, sizeof(name), "difference_R%d", compare->sampled[k].rays);
        status = write_values(compare, name, differences, shape);
    }

finish:
    free(lors);
    free(values);
    return status;
}

static lr_status write_picture(const struct compare *compare)
{
    lr_row sampled[COMPARE_MOST_RAYS];
    int rays[COMPARE_MOST_RAYS];
    char subtitle[3072], path[PATH_MAX];
    for (int k = 0; k < compare->num_sampled; k++) {
        sampled[k] = retained_row_view(&compare->sampled[k].row);
        rays[k] = compare->sampled[k].rays;
    }
    const lr_row exact = retained_row_view(&compare->exact);
    const size_t size = sizeof(subtitle);
    const struct setup *setup = &compare->setup;
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    const double *at = setup->grid.origin_mm, *edge = setup->grid.voxel_mm;
    const int *crystals = setup->scanner->modules[compare->module].crystals;
    char where[160], sampled_by[64] = "";
    for (int k = 0; k < compare->num_sampled; k++) { /* "raster", or "raster, cpu" if raster cannot draw the larger R */
        const char *name = compare->sampled[k].backend, *before = k > 0 ? compare->sampled[k - 1].backend : "";
        const size_t used = strlen(sampled_by);
        if (strcmp(name, before) != 0)
            snprintf(sampled_by + used, sizeof(sampled_by) - used, "%s%s", used > 0 ? ", " : "", name);
    }
    if (compare->voxel) {
        snprintf(where, sizeof(where), "voxel of %g x %g x %g mm at (%g, %g, %g) mm, N = %d", edge[0], edge[1], edge[2],
                 at[0], at[1], at[2], info->samples[0] * info->samples[1] * info->samples[2]);
    } else {
        snprintf(where, sizeof(where), "point (%g, %g, %g) mm", at[0], at[1], at[2]);
    }
    snprintf(subtitle, size,
             "%s; %s; primary module %d: %d x %d crystals; exact by backend %s, sampled by %s, pieces %s",
             setup->scanner->name, where, compare->module, crystals[0], crystals[1], info->backend, sampled_by,
             compare->note.text);

    const lr_comparison_params params = {
        .pixels = compare->pixels,
        .pixel_rays = compare->pixel_rays,
        .lors = compare->setup.lors,
        .module = compare->module,
        .exact = &exact,
        .sampled = sampled,
        .rays = rays,
        .num_sampled = compare->num_sampled,
        .title = "Matrix elements: sampled against exact",
        .subtitle = subtitle,
        .log = &compare->setup.report->log,
    };
    lr_picture *picture = lr_picture_comparison(&params);
    if (picture == NULL) return report_reason(compare->setup.report);
    snprintf(path, sizeof(path), "%s/compare.png", compare->folder);
    const lr_status status = lr_png_write(path, picture->rgb, picture->size, &compare->setup.report->log);
    lr_picture_destroy(picture);
    return status;
}

static void compare_report(const struct compare *compare)
{
    report_clear(compare->setup.report);
    if (!compare->setup.report->json) {
        const lr_row_error *exact = &compare->sampled[0].error;
        printf("%s: primary module %d, %lld exact elements, sum %.6g\n", compare->folder, compare->module,
               (long long)exact->num_elements, exact->sum);
        printf("     R  relative L2  0.6 / R  error of sum  largest error  missed  their weight"
               "  all modules: L2  error of sum\n");
        for (int k = 0; k < compare->num_sampled; k++) {
            const struct compare_sampled *sampled = &compare->sampled[k];
            const lr_row_error *error = &sampled->error, *all = &sampled->all;
            printf("%6d %10.3f %% %6.2f %% %11.3f %% %12.2f %% %7lld %11.3f %% %14.3f %% %11.3f %%\n", sampled->rays,
                   100 * error->relative_l2, 60.0 / sampled->rays, 100 * error->sum_error, 100 * error->largest_error,
                   (long long)error->num_missed, 100 * error->missed_weight, 100 * all->relative_l2,
                   100 * all->sum_error);
        }
        printf("compare.png shows the elements; lors.npy, exact.npy, sampled_R*.npy and difference_R*.npy have them\n");
        return;
    }
    struct json json = common_json_begin(stdout, "render");
    setup_json(&compare->setup, &json);
    json_numbers(&json, "point_mm", compare->setup.grid.origin_mm, 3);
    json_text(&json, "output", compare->folder);
    json_int(&json, "module", compare->module);
    json_int(&json, "elements", compare->sampled[0].error.num_elements);
    json_number(&json, "sum", compare->sampled[0].error.sum);
    json_open(&json, "sampled", '[');
    for (int k = 0; k < compare->num_sampled; k++) {
        const struct compare_sampled *sampled = &compare->sampled[k];
        const lr_row_error *error = &sampled->error;
        json_open(&json, NULL, '{');
        json_int(&json, "rays", sampled->rays);
        json_text(&json, "backend", sampled->backend);
        json_number(&json, "relative_l2", error->relative_l2);
        json_number(&json, "law", 0.6 / sampled->rays);
        json_number(&json, "sum_error", error->sum_error);
        json_number(&json, "largest_error", error->largest_error);
        json_int(&json, "missed_elements", error->num_missed);
        json_number(&json, "missed_weight", error->missed_weight);
        json_int(&json, "unexpected_elements", error->num_unexpected);
        json_number(&json, "all_relative_l2", sampled->all.relative_l2);
        json_number(&json, "all_sum_error", sampled->all.sum_error);
        json_close(&json, '}');
    }

    json_close(&json, ']');
    common_json_end(&json);
}

/* Sizes in pixels of the screen: the longer side of a panel, and the smallest and largest edge of a crystal. */
enum { PANEL_SIDE = 320, LEAST_PIXELS = 12, MOST_PIXELS = 64 };

static lr_status take_sampled(struct compare *compare, struct compare_sampled *sampled)
{
    const struct setup *setup = &compare->setup;
    lr_operator_params params = setup->params;
    /* The backend that draws the correspondence image also computes the sampled elements, unless an option names
     * another backend for them. */
    const char *asked = compare->setup.params.backend;
    params.backend = strcmp(asked, "auto") == 0 ? bitmap_backends : asked;

    params.mode = LR_MODE_SAMPLED;
    params.rays = sampled->rays;
    lr_operator *op = lr_operator_create(&params);
    if (op == NULL) return report_reason(setup->report);
    struct retained_row whole;
    snprintf(sampled->backend, sizeof(sampled->backend), "%s", lr_operator_get_info(op)->backend);
    lr_status status = retained_row_take(setup, op, &whole);
    lr_operator_destroy(op);
    CLI_TRY(status);
    status = retained_row_restrict(setup, &whole, compare->module, &sampled->row);
    if (status == LR_OK) {
        const lr_row views[4] = {retained_row_view(&sampled->row), retained_row_view(&compare->exact),
                                 retained_row_view(&whole), retained_row_view(&compare->whole)};
        sampled->error = lr_row_compare(&views[0], &views[1]);
        sampled->all = lr_row_compare(&views[2], &views[3]);
    }
    retained_row_finish(&whole);
    return status;
}

/* Computes exact and sampled rows, and draws them. */
static lr_status compute(struct cli_args *args, struct compare *compare, const double point_mm[3],
                         const double voxel_mm[3])
{
    struct setup *setup = &compare->setup;
    CLI_TRY(setup_scanner(setup, args, LR_STORE_NO, NULL));
    if (compare->module >= setup->scanner->num_modules) {
        return report_error(args->report, LR_USAGE, "--module %d: %s has modules 0 to %d", compare->module,
                            setup->scanner->name, setup->scanner->num_modules - 1);
    }
    setup->params.mode = LR_MODE_EXACT;
    setup->params.rays = 0;
    setup_voxel_grid(setup, point_mm, voxel_mm);
    for (int k = 0; !compare->voxel && k < 3; k++) setup->params.samples[k] = 1;
    CLI_TRY(setup_operator(setup));
    CLI_TRY(retained_row_take(setup, setup->op, &compare->whole));
    if (compare->module < 0) { /* the primary module with the largest share of the row's sum */
        const int num_modules = setup->scanner->num_modules;
        double *weights = calloc((size_t)num_modules, sizeof(*weights));
        if (weights == NULL) return report_error(setup->report, LR_FAILED, "no memory for %d modules", num_modules);
        compare->module = 0;
        for (int64_t k = 0; k < compare->whole.count; k++)
            weights[lr_lors_primary(setup->lors, compare->whole.lor[k], setup->grid.origin_mm)] +=
                compare->whole.probability[k];
        for (int m = 1; m < num_modules; m++)
            compare->module = weights[m] > weights[compare->module] ? m : compare->module;
        free(weights);
    }
    CLI_TRY(retained_row_restrict(setup, &compare->whole, compare->module, &compare->exact));
    for (int k = 0; k < compare->num_sampled; k++) {
        CLI_TRY(take_sampled(compare, &compare->sampled[k]));
        if (stop_is_asked()) return LR_CANCELLED;
    }
    if (compare->exact.count == 0) {
        report_warn(args->report, "no LOR with primary module %d sees (%g, %g, %g) mm: there is nothing to draw",
                    compare->module, point_mm[0], point_mm[1], point_mm[2]);
        return LR_OK;
    }

    /* The correspondence image has rays x rays pixels per crystal. The pixels of a crystal can belong to different
       LORs. */
    const int *crystals = setup->scanner->modules[compare->module].crystals;
    const int longer = crystals[0] > crystals[1] ? crystals[0] : crystals[1];
    int rays = PANEL_SIDE / longer;
    rays = rays < LEAST_PIXELS ? LEAST_PIXELS : rays > MOST_PIXELS ? MOST_PIXELS : rays;
    const size_t count = (size_t)rays * (size_t)crystals[0] * (size_t)rays * (size_t)crystals[1];
    lr_operator_params params = setup->params;
    params.backend = strcmp(params.backend, "cpu") == 0 ? "cpu" : bitmap_backends;
    params.mode = LR_MODE_SAMPLED;
    params.rays = compare->pixel_rays = rays;
    params.mu = NULL;
    compare->pixels = calloc(count, sizeof(*compare->pixels));
    if (compare->pixels == NULL)
        return report_error(setup->report, LR_FAILED, "no memory for a picture of %zu pixels", count);
    lr_operator *op = lr_operator_create(&params);
    if (op == NULL) return report_reason(setup->report);
    bitmap_note_make(&compare->note, lr_operator_get_info(op), setup->report);
    lr_status status = lr_operator_picture(op, setup->grid.origin_mm, compare->module, compare->pixels);
    lr_operator_destroy(op);
    CLI_TRY(status);

    struct common_folder folder;
    CLI_TRY(common_folder_begin(&folder, args->report, compare->folder));
    compare->folder = folder.part;
    status = write_arrays(compare);
    if (status == LR_OK) status = write_picture(compare);
    compare->folder = folder.path;
    return common_folder_end(&folder, args->report, status);
}

static lr_status compare_run(struct cli_args *args)
{
    struct compare compare = {0};
    double point_mm[3] = {0}, voxel_mm[3] = {1, 1, 1};
    const char *list = args_text(args, "--compare");
    int rays[COMPARE_MOST_RAYS] = {0};
    compare.folder = args_required(args, "-o");
    args_required(args, "--at");
    args_triple(args, "--at", false, point_mm);
    compare.module = (int)args_int(args, "--module", -1, args_from_0);
    compare.voxel = args_triple(args, "--voxel-mm", true, voxel_mm);
    for (int k = 0; k < 3 && compare.voxel; k++)
        if (!(voxel_mm[k] > 0))
            args_complain(args, "--voxel-mm %s: edges must be positive", args_text(args, "--voxel-mm"));
    if (list == NULL) {
        rays[0] = (int)args_int(args, "--rays", 4, args_from_1);
        compare.num_sampled = 1;
    } else {
        if (args_has(args, "--rays")) args_complain(args, "--compare R,R,... and --rays exclude each other");
        compare.num_sampled = args_ints(args, "--compare", rays, COMPARE_MOST_RAYS);
        for (int k = 1; k < compare.num_sampled; k++)
            if (rays[k] <= rays[k - 1]) args_complain(args, "--compare %s: the numbers must ascend", list);
    }
    for (int k = 0; k < compare.num_sampled; k++) compare.sampled[k].rays = rays[k];
    if (args_has(args, "--mode")) args_complain(args, "--compare computes both modes: leave out --mode");
    if (args_has(args, "--penetration")) {
        args_complain(args, "--compare needs exact elements, and with crystal penetration there "
                            "are none: leave out --penetration");
    }
    lr_status status = args->status == LR_OK ? compute(args, &compare, point_mm, voxel_mm) : args->status;
    if (status == LR_OK) compare_report(&compare);
    for (int k = 0; k < compare.num_sampled; k++) retained_row_finish(&compare.sampled[k].row);
    retained_row_finish(&compare.exact);
    retained_row_finish(&compare.whole);
    free(compare.pixels);
    setup_finish(&compare.setup);
    return status;
}

/* --- rendering --- */

/* One rendering in progress. */
struct work {
    struct setup setup;
    double point_mm[3];
    int only_module; /* -1 = all modules */
    const char *folder;
    struct bitmap *bitmaps; /* owned [num_bitmaps]: one for each module with an image */
    int num_bitmaps;
    struct picture_sheet sheet;
    struct bitmap_note note; /* the note on every picture */
};

static void put_images(const struct work *work, struct json *json)
{
    json_numbers(json, "point_mm", work->point_mm, 3);
    json_open(json, "modules", '[');
    for (int k = 0; k < work->num_bitmaps; k++) json_int(json, NULL, work->bitmaps[k].module);
    json_close(json, ']');
    json_open(json, "weights", '[');
    for (int k = 0; k < work->num_bitmaps; k++) json_number(json, NULL, work->bitmaps[k].weight);
    json_close(json, ']');
}

/* Names the modules that the bitmap's lines meet, those with the most lines first, such as " of modules 22, 23". */
static lr_status name_met(const struct work *work, const struct bitmap *bitmap, char text[64])
{
    enum { MOST_NAMED = 4 };
    const int num_modules = work->setup.scanner->num_modules;
    int *lines = calloc((size_t)num_modules, sizeof(*lines)), num_met = 0;
    if (lines == NULL) return report_error(work->setup.report, LR_FAILED, "no memory for %d modules", num_modules);
    for (int n = 0; n < bitmap->size[0] * bitmap->size[1]; n++) {
        const int met = (int)bitmap->pixels[n].module;
        if (met >= 0) num_met += lines[met]++ == 0;
    }
    text[0] = '\0';
    for (int k = 0; k < num_met && k < MOST_NAMED; k++) {
        int most = 0;
        for (int m = 1; m < num_modules; m++) most = lines[m] > lines[most] ? m : most;
        lines[most] = 0;
        const size_t used = strlen(text);
        snprintf(text + used, 64 - used, "%s%d", k > 0 ? ", " : num_met > 1 ? " of modules " : " of module ", most);
    }
    const size_t used = strlen(text);
    if (num_met > MOST_NAMED) snprintf(text + used, 64 - used, " and %d more", num_met - MOST_NAMED);
    free(lines);
    return LR_OK;
}

/* Writes each bitmap as numbers and as two pictures. Then writes render.json, and then all pictures on one sheet.
 * render.json describes the pictures and the backend, and is the same in every run. */
static lr_status write_files(struct work *work)
{
    static const char *const names[] = {"colour", "weight"};
    static const char *const captions[] = {"crystals met", "weight"};
    const lr_log *log = &work->setup.report->log;
    char path[PATH_MAX], title[160];
    double high = 0;
    for (int n = 0; n < work->num_bitmaps; n++) high = fmax(high, work->bitmaps[n].highest);

    for (int k = 0; k < work->num_bitmaps; k++) {
        const struct bitmap *bitmap = &work->bitmaps[k];
        const int64_t shape[3] = {bitmap->size[1], bitmap->size[0], 5};
        const int64_t count = shape[0] * shape[1];
        float *values = common_floats(work->setup.report, 5 * count, "a picture");
        if (values == NULL) return LR_FAILED;
        for (int64_t n = 0; n < count; n++) {
            const lr_pixel *pixel = &bitmap->pixels[n];
            const float fields[5] = {pixel->module, pixel->r, pixel->s, pixel->weight, pixel->path_mm};
            for (int f = 0; f < 5; f++) values[5 * n + f] = fields[f];
        }
        snprintf(path, sizeof(path), "%s/module_%d.npy", work->folder, bitmap->module);
        const lr_array array = {values, shape, 3};
        const lr_status status = lr_npy_write(path, &array, log);
        free(values);
        CLI_TRY(status);
        char met[64];
        CLI_TRY(name_met(work, bitmap, met));
        for (lr_correspondence_view view = LR_VIEW_CRYSTALS; view <= LR_VIEW_WEIGHTS; view++) {
            CLI_TRY(picture_sheet_add(&work->sheet, bitmap_draw(&work->setup, bitmap, view, high), "module %d: %s%s",
                                      bitmap->module, captions[view], view == LR_VIEW_CRYSTALS ? met : ""));
            snprintf(path, sizeof(path), "%s/module_%d_%s.png", work->folder, bitmap->module, names[view]);
            CLI_TRY(picture_sheet_write(&work->sheet, path, work->sheet.num_tiles - 1, 1, NULL));
        }
        if (stop_is_asked()) return LR_CANCELLED;
    }

    struct common_text text;
    common_text_begin(&text);
    if (text.stream != NULL) {
        struct json json = common_json_begin(text.stream, "render");
        const lr_operator_info *info = lr_operator_get_info(work->setup.op);
        json_text(&json, "scanner", work->setup.scanner->name);
        json_text(&json, "backend", info->backend);
        json_text(&json, "device", info->device);
        json_text(&json, "passed_over", info->passed_over);
        json_int(&json, "rays", info->rays);
        json_int(&json, "mu_steps", info->mu_steps);
        put_images(work, &json);
        common_json_end(&json);
    }
    snprintf(path, sizeof(path), "%s/render.json", work->folder);
    CLI_TRY(common_text_write(&text, work->setup.report, path));

    /* The sheet has about as many rows as columns, and each module's two pictures are side by side. */
    int across = 1;
    while (2 * across * across < work->num_bitmaps) across++;
    snprintf(path, sizeof(path), "%s/contact_sheet.png", work->folder);
    snprintf(title, sizeof(title), "Correspondence images of the point (%g, %g, %g) mm", work->point_mm[0],
             work->point_mm[1], work->point_mm[2]);
    return picture_sheet_write(&work->sheet, path, 0, 2 * across, title);
}

/* Takes the bitmaps of all requested modules that have an image. */
static lr_status take_bitmaps(struct cli_args *args, struct work *work)
{
    struct setup *setup = &work->setup;
    CLI_TRY(setup_scanner(setup, args, LR_STORE_NO, NULL));
    const int num_modules = setup->scanner->num_modules;
    if (setup->params.mode == LR_MODE_EXACT)
        return report_error(args->report, LR_USAGE, "correspondence images show lines: exact mode has none");
    if (setup->params.penetration) {
        return report_error(args->report, LR_USAGE,
                            "with --penetration a line ends in several crystals and has no pixel: "
                            "draw correspondence images without it");
    }
    if (work->only_module >= num_modules) {
        return report_error(args->report, LR_USAGE, "--module %d: %s has modules 0 to %d", work->only_module,
                            setup->scanner->name, num_modules - 1);
    }
    setup->params.mode = LR_MODE_SAMPLED;
    setup->params.layers_alone = true;
    if (strcmp(setup->params.backend, "auto") == 0) setup->params.backend = bitmap_backends;
    setup_point_grid(setup);
    setup->op = lr_operator_create(&setup->params);
    if (setup->op == NULL) return report_reason(args->report);
    bitmap_note_make(&work->note, lr_operator_get_info(setup->op), args->report);
    work->sheet = (struct picture_sheet){.report = args->report, .note = work->note.text};

    work->bitmaps = calloc((size_t)num_modules, sizeof(*work->bitmaps));
    if (work->bitmaps == NULL) return report_error(args->report, LR_FAILED, "no memory for %d pictures", num_modules);
    for (int m = 0; m < num_modules; m++) {
        if (work->only_module >= 0 && work->only_module != m) continue;
        struct bitmap bitmap;
        CLI_TRY(bitmap_take(setup, work->point_mm, m, &bitmap));
        if (bitmap.num_hits > 0 || work->only_module == m)
            work->bitmaps[work->num_bitmaps++] = bitmap;
        else
            bitmap_finish(&bitmap);
        if (stop_is_asked()) return LR_CANCELLED;
    }
    if (work->num_bitmaps == 0) {
        char span[160];
        return report_error(args->report, LR_BAD_INPUT,
                            "no line through (%g, %g, %g) mm joins two modules: there is nothing "
                            "to draw: --at is in mm from the scanner's centre, and %s",
                            work->point_mm[0], work->point_mm[1], work->point_mm[2],
                            setup_say_span(&work->setup, span));
    }
    return LR_OK;
}

static lr_status run(struct cli_args *args)
{
    if (args_has(args, "--compare")) return compare_run(args);
    struct work work = {0};
    struct common_folder folder;
    work.folder = args_required(args, "-o");
    args_required(args, "--at");
    args_triple(args, "--at", false, work.point_mm);
    if (args_has(args, "--voxel-mm"))
        args_complain(args, "--voxel-mm needs --compare: correspondence images show one point");
    work.only_module = (int)args_int(args, "--module", -1, args_from_0);
    lr_status status = args->status == LR_OK ? take_bitmaps(args, &work) : args->status;
    if (status == LR_OK) status = common_folder_begin(&folder, args->report, work.folder);
    if (status != LR_OK) goto finish;
    work.folder = folder.part;
    status = write_files(&work);
    work.folder = folder.path;
    status = common_folder_end(&folder, args->report, status);
    if (status != LR_OK) goto finish;

    report_clear(args->report);
    if (args->report->json) {
        struct json json = common_json_begin(stdout, "render");
        setup_json(&work.setup, &json);
        json_text(&json, "output", work.folder);
        put_images(&work, &json);
        common_json_end(&json);
    } else {
        printf("%s: %d modules with an image, by backend %s\n", work.folder, work.num_bitmaps,
               lr_operator_get_info(work.setup.op)->backend);
        for (int k = 0; k < work.num_bitmaps; k++) {
            const struct bitmap *bitmap = &work.bitmaps[k];
            printf("  module %d: %d x %d pixels, %lld with a LOR, weight %.9g\n", bitmap->module, bitmap->size[0],
                   bitmap->size[1], (long long)bitmap->num_hits, bitmap->weight);
        }
        printf("  contact_sheet.png    all pictures\n"
               "  module_M_colour.png  the crystal that each line from module M meets\n"
               "  module_M_weight.png  the probability of each line\n"
               "  module_M.npy         the numbers of these pictures\n"
               "  render.json          scanner, point, modules and backend\n");
    }

finish:
    picture_sheet_finish(&work.sheet);
    for (int k = 0; k < work.num_bitmaps; k++) bitmap_finish(&work.bitmaps[k]);
    free(work.bitmaps);
    setup_finish(&work.setup);
    return status;
}

static const struct cli_option options[] = {
    {"--at", "X,Y,Z", "the point to look from, in mm", NULL},
    {"--module", "M", "only the image with this primary module", NULL},
    {"-o", "FOLDER",
     "made unless it is there: PNGs of each module and contact_sheet.png of all, module_M.npy, render.json", NULL},
    {0},
};

static const struct cli_option compare_options[] = {
    {"--compare", "[R,R,...]", "draw sampled against exact elements of one primary module", NULL},
    {"--voxel-mm", "DX,DY,DZ", "of the voxel with these edges around the point", NULL},
    {0},
};

const struct cli_verb verb_render = {
    .name = "render",
    .summary = "Draws the correspondence images of a point: which crystals its lines meet; or how far sampled elements "
               "are from exact ones. The projector's shaders draw (raster); without OpenGL cpu does.",
    .example = "loraster render --scanner ge-explore-vista-dr --at 5,0,2 --rays 8 -o pictures",
    .groups = {{"point and output", options},
               {"sampled against exact (compare.png, .npy of the elements)", compare_options},
               {COMMON_SCANNER_GROUP},
               {COMMON_OPERATOR_GROUP}},
    .run = run,
};
