/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * render: pictures of what one point or voxel sees; with --compare its sampled elements beside the exact ones. */
#include "pictures.h"
#include "retained_row.h"
#include "stop.h"
#include "verbs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPARE_MOST_RAYS = 16 };

/* One R. */
struct compare_sampled {
    int rays;
    char backend[32];
    struct retained_row row; /* of the module */
    lr_row_error error;      /* of the module's elements */
    lr_row_error all;        /* of the elements of all primaries */
};

/* A comparison in progress; zero is valid, compare_finish frees it. */
struct compare {
    struct setup setup; /* its operator is the exact one, its grid the voxel or point */
    bool voxel;         /* whether the grid's voxel is meant, or only its centre */
    int module;         /* -1 = not chosen yet */
    const char *folder;
    struct retained_row whole, exact; /* of all primaries, of the module */
    struct compare_sampled sampled[COMPARE_MOST_RAYS];
    int num_sampled;
    lr_pixel *pixels; /* owned [pixel_rays nv][pixel_rays nu]: where the elements lie */
    int pixel_rays;
    struct bitmap_note note; /* what drew the pixels */
};

/* --- what a comparison leaves: arrays, a picture, a table --- */

/* The elements of all rows, side by side. */
struct table {
    const struct compare *compare;
    int64_t count, room;
    int64_t *lors;   /* owned [count], ascending */
    float *values;   /* owned [5 room]: one array at a time */
    double *exact;   /* owned [count] */
    double *sampled; /* owned [count], of one R at a time */
};

static int64_t next_lor(const struct retained_row *row, int64_t after)
{
    int64_t low = 0, high = row->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (row->lor[middle] <= after)
            low = middle + 1;
        else
            high = middle;
    }
    return low < row->count ? row->lor[low] : INT64_MAX;
}

/* All LORs that occur in any row. */
static void merge(struct table *table)
{
    const struct compare *compare = table->compare;
    int64_t lor = -1;
    while (true) {
        int64_t next = next_lor(&compare->exact, lor);
        for (int k = 0; k < compare->num_sampled; k++) {
            const int64_t other = next_lor(&compare->sampled[k].row, lor);
            next = other < next ? other : next;
        }
        if (next == INT64_MAX) return;
        table->lors[table->count++] = lor = next;
    }
}

/* A row's values in the table's order; zero where it has none. */
static void spread(const struct table *table, const struct retained_row *row, double *values)
{
    int64_t k = 0;
    for (int64_t n = 0; n < table->count; n++) {
        const bool there = k < row->count && row->lor[k] == table->lors[n];
        values[n] = there ? row->probability[k] : 0;
        k += there;
    }
}

static lr_status make_table(const struct compare *compare, struct table *table)
{
    int64_t room = compare->exact.count;
    for (int k = 0; k < compare->num_sampled; k++) room += compare->sampled[k].row.count;
    *table = (struct table){.compare = compare, .room = room};
    table->lors = calloc((size_t)room, sizeof(*table->lors));
    table->values = common_floats(compare->setup.report, 5 * room, "elements");
    table->exact = calloc((size_t)room, sizeof(double));
    table->sampled = calloc((size_t)room, sizeof(double));
    if (table->values == NULL) return LR_FAILED;
    if (table->lors == NULL || table->exact == NULL || table->sampled == NULL)
        return report_error(compare->setup.report, LR_FAILED, "no memory for %lld elements", (long long)room);
    merge(table);
    spread(table, &compare->exact, table->exact);
    return LR_OK;
}

/* table->values as [count] or [count][columns]. */
static lr_status write_values(const struct table *table, const char *name, int64_t columns)
{
    char path[PATH_MAX];
    const int64_t shape[2] = {table->count, columns};
    const lr_array array = {table->values, shape, columns > 1 ? 2 : 1};
    snprintf(path, sizeof(path), "%s/%s.npy", table->compare->folder, name);
    return lr_npy_write(path, &array, &table->compare->setup.report->log);
}

static lr_status write_sampled(const struct table *table, const struct compare_sampled *sampled)
{
    char name[64];
    spread(table, &sampled->row, table->sampled);
    for (int64_t n = 0; n < table->count; n++) table->values[n] = (float)table->sampled[n];
    snprintf(name, sizeof(name), "sampled_R%d", sampled->rays);
    CLI_TRY(write_values(table, name, 1));
    for (int64_t n = 0; n < table->count; n++) table->values[n] = (float)(table->sampled[n] - table->exact[n]);
    snprintf(name, sizeof(name), "difference_R%d", sampled->rays);
    return write_values(table, name, 1);
}

static lr_status write_arrays(const struct table *table)
{
    /* Primary crystal, secondary module, secondary crystal. */
    for (int64_t n = 0; n < table->count; n++) {
        const lr_lor lor = lr_lors_describe(table->compare->setup.lors, table->lors[n]);
        const bool first = lor.module_i == table->compare->module;
        const int fields[5] = {first ? lor.p : lor.r, first ? lor.q : lor.s, first ? lor.module_j : lor.module_i,
                               first ? lor.r : lor.p, first ? lor.s : lor.q};
        for (int f = 0; f < 5; f++) table->values[5 * n + f] = (float)fields[f];
    }
    CLI_TRY(write_values(table, "lors", 5));

    for (int64_t e = 0; e < table->count; e++) table->values[e] = (float)table->exact[e];
    CLI_TRY(write_values(table, "exact", 1));

    for (int k = 0; k < table->compare->num_sampled; k++) CLI_TRY(write_sampled(table, &table->compare->sampled[k]));
    return LR_OK;
}

/* --- the picture --- */

/* "raster", or "raster, cpu" where the larger R do not fit the first. */
static void name_backends(const struct compare *compare, char *text, size_t size)
{
    const char *before = "";
    text[0] = '\0';
    for (int k = 0; k < compare->num_sampled; k++) {
        const char *name = compare->sampled[k].backend;
        const size_t used = strlen(text);
        if (strcmp(name, before) != 0) snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", name);
        before = name;
    }
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
    char where[160], sampled_by[64];
    name_backends(compare, sampled_by, sizeof(sampled_by));
    if (compare->voxel) {
        snprintf(where, sizeof(where), "voxel of %g x %g x %g mm at (%g, %g, %g) mm, N = %d", edge[0], edge[1], edge[2],
                 at[0], at[1], at[2], info->samples[0] * info->samples[1] * info->samples[2]);
    } else {
        snprintf(where, sizeof(where), "point (%g, %g, %g) mm", at[0], at[1], at[2]);
    }
    snprintf(subtitle, size,
             "%s; %s; primary module %d: %d x %d crystals; exact by backend %s, sampled by %s, "
             "pieces %s",
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
    const lr_status status = album_write_picture(compare->setup.report, path, picture);
    lr_picture_destroy(picture);
    return status;
}

/* --- the table --- */

static void print_table(const struct compare *compare)
{
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
               (long long)error->num_missed, 100 * error->missed_weight, 100 * all->relative_l2, 100 * all->sum_error);
    }
}

/* The table, or its JSON. */
static void compare_report(const struct compare *compare)
{
    report_clear(compare->setup.report);
    if (!compare->setup.report->json) {
        print_table(compare);
        return;
    }
    struct json json = common_json_begin("render");
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

/* --- comparing --- */

/* Screen pixels of a panel's longer side, and the bounds of one crystal's. */
enum { PANEL_SIDE = 320, LEAST_PIXELS = 12, MOST_PIXELS = 64 };

/* --- what is asked for --- */

static int read_rays(struct cli_args *args, int rays[COMPARE_MOST_RAYS])
{
    static const int64_t at_least_one[2] = {1, INT_MAX};
    if (args_text(args, "--compare") == NULL) {
        rays[0] = (int)args_int(args, "--rays", 4, at_least_one);
        return 1;
    }
    if (args_has(args, "--rays")) args_complain(args, "--compare R,R,... and --rays exclude each other");
    const int count = args_ints(args, "--compare", rays, COMPARE_MOST_RAYS);
    for (int k = 1; k < count; k++) {
        if (rays[k] <= rays[k - 1]) {
            args_complain(args, "--compare %s: the numbers must ascend", args_text(args, "--compare"));
            break;
        }
    }
    return count;
}

static lr_status read_request(struct cli_args *args, struct compare *compare, double point_mm[3], double voxel_mm[3])
{
    static const int64_t range[2] = {0, INT_MAX};
    int rays[COMPARE_MOST_RAYS] = {0};
    compare->folder = args_required(args, "-o");
    args_required(args, "--at");
    args_triple(args, "--at", false, point_mm);
    compare->module = (int)args_int(args, "--module", -1, range);
    compare->voxel = args_triple(args, "--voxel-mm", true, voxel_mm);
    for (int k = 0; k < 3 && compare->voxel; k++)
        if (!(voxel_mm[k] > 0))
            args_complain(args, "--voxel-mm %s: edges must be positive", args_text(args, "--voxel-mm"));
    compare->num_sampled = read_rays(args, rays);
    for (int k = 0; k < compare->num_sampled; k++) compare->sampled[k].rays = rays[k];
    if (args_has(args, "--mode")) args_complain(args, "--compare computes both modes: leave out --mode");
    if (args_has(args, "--penetration")) {
        args_complain(args, "--compare needs exact elements, and with crystal penetration there "
                            "are none: leave out --penetration");
    }
    return args->status;
}

/* --- the rows --- */

static lr_status take_sampled(struct compare *compare, struct compare_sampled *sampled)
{
    const struct setup *setup = &compare->setup;
    lr_operator_params params = setup->params;
    /* Sampled elements are what correspondence images show: where none is asked for, the same backends
     * compute them. */
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

/* The correspondence image that cuts the crystals into pieces. */
static lr_status take_pixels(struct compare *compare)
{
    const struct setup *setup = &compare->setup;
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
    bitmap_note_init(&compare->note, lr_operator_get_info(op));
    bitmap_note_say(&compare->note, lr_operator_get_info(op), setup->report);
    const lr_status status = lr_operator_picture(op, setup->grid.origin_mm, compare->module, compare->pixels);
    lr_operator_destroy(op);
    return status;
}

/* --- the verb --- */

static lr_status open_setup(struct cli_args *args, struct compare *compare, const double point_mm[3],
                            const double voxel_mm[3])
{
    struct setup *setup = &compare->setup;
    CLI_TRY(setup_scanner(setup, args, LR_STORE_NO));
    if (compare->module >= setup->scanner->num_modules) {
        return report_error(args->report, LR_USAGE, "--module %d: %s has modules 0 to %d", compare->module,
                            setup->scanner->name, setup->scanner->num_modules - 1);
    }
    setup->params.mode = LR_MODE_EXACT;
    setup->params.rays = 0;
    setup_voxel_grid(setup, point_mm, voxel_mm);
    if (!compare->voxel)
        for (int k = 0; k < 3; k++) setup->params.samples[k] = 1;
    return LR_OK;
}

static lr_status compute(struct compare *compare)
{
    const double *point_mm = compare->setup.grid.origin_mm;
    struct setup *setup = &compare->setup;
    CLI_TRY(setup_operator(setup));
    CLI_TRY(retained_row_take(setup, setup->op, &compare->whole));
    if (compare->module < 0) CLI_TRY(retained_row_brightest(setup, &compare->whole, &compare->module));
    CLI_TRY(retained_row_restrict(setup, &compare->whole, compare->module, &compare->exact));

    for (int k = 0; k < compare->num_sampled; k++) {
        CLI_TRY(take_sampled(compare, &compare->sampled[k]));
        if (stop_is_asked()) return LR_CANCELLED;
    }
    if (compare->exact.count == 0) {
        report_warn(compare->setup.report,
                    "no LOR with primary module %d sees (%g, %g, %g) mm: there is nothing to draw", compare->module,
                    point_mm[0], point_mm[1], point_mm[2]);
        return LR_OK;
    }
    CLI_TRY(take_pixels(compare));

    /* The picture and the arrays go into a folder. */
    struct table table;
    struct common_folder folder;
    lr_status status = make_table(compare, &table);
    if (status == LR_OK) status = common_folder_begin(&folder, compare->setup.report, compare->folder);
    if (status == LR_OK) {
        compare->folder = folder.part;
        status = write_arrays(&table);
        status = status == LR_OK ? write_picture(compare) : status;
        compare->folder = folder.path;
        status = common_folder_end(&folder, compare->setup.report, status);
    }
    free(table.lors);
    free(table.values);
    free(table.exact);
    free(table.sampled);

    return status;
}

/* The verb, from its arguments on. */
static lr_status compare_run(struct cli_args *args)
{
    struct compare compare = {0};
    double point_mm[3] = {0}, voxel_mm[3] = {1, 1, 1};
    lr_status status = read_request(args, &compare, point_mm, voxel_mm);
    if (status == LR_OK) status = open_setup(args, &compare, point_mm, voxel_mm);
    if (status == LR_OK) status = compute(&compare);
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
    int only_module; /* -1 = all */
    const char *folder;
    struct bitmap *bitmaps; /* owned [num_bitmaps]: the modules with an image */
    int num_bitmaps;
    struct album album;
    struct bitmap_note note; /* on every picture */
};

/* --- writing --- */

static lr_status write_numbers(const struct work *work, const struct bitmap *bitmap)
{
    char path[PATH_MAX];
    const int64_t shape[3] = {bitmap->size[1], bitmap->size[0], 5};
    const int64_t count = shape[0] * shape[1];
    float *values = common_floats(work->setup.report, 5 * count, "a picture");
    if (values == NULL) return LR_FAILED;
    for (int64_t k = 0; k < count; k++) {
        const lr_pixel *pixel = &bitmap->pixels[k];
        const float fields[5] = {pixel->module, pixel->r, pixel->s, pixel->weight, pixel->path_mm};
        for (int f = 0; f < 5; f++) values[5 * k + f] = fields[f];
    }
    snprintf(path, sizeof(path), "%s/module_%d.npy", work->folder, bitmap->module);
    const lr_array array = {values, shape, 3};
    const lr_status status = lr_npy_write(path, &array, &work->setup.report->log);
    free(values);
    return status;
}

static lr_status write_view(struct work *work, const struct bitmap *bitmap, lr_correspondence_view view, double high)
{
    static const char *const names[] = {"colour", "weight"};
    static const char *const captions[] = {"crystals met", "weight"};
    char path[PATH_MAX];
    CLI_TRY(album_add(&work->album, bitmap_draw(&work->setup, bitmap, view, high), "module %d: %s", bitmap->module,
                      captions[view]));
    snprintf(path, sizeof(path), "%s/module_%d_%s.png", work->folder, bitmap->module, names[view]);
    return album_write_last(&work->album, path);
}

/* About as many rows as columns, two pictures per module side by side. */
static int sheet_columns(int num_bitmaps)
{
    int across = 1;
    while (2 * across * across < num_bitmaps) across++;
    return 2 * across;
}

/* --- the report --- */

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

/* render.json beside the pictures: what they are of and what drew them, the same in every run. */
static lr_status write_record(const struct work *work)
{
    char path[PATH_MAX];
    struct common_text text;
    common_text_begin(&text);
    if (text.stream != NULL) {
        struct json json = {.stream = text.stream};
        common_json_open(&json, "render");
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
    return common_text_write(&text, work->setup.report, path);
}

static lr_status write_files(struct work *work)
{
    double high = 0;
    for (int n = 0; n < work->num_bitmaps; n++) high = fmax(high, work->bitmaps[n].highest);

    for (int k = 0; k < work->num_bitmaps; k++) {
        const struct bitmap *bitmap = &work->bitmaps[k];
        CLI_TRY(write_numbers(work, bitmap));
        CLI_TRY(write_view(work, bitmap, LR_VIEW_CRYSTALS, high));
        CLI_TRY(write_view(work, bitmap, LR_VIEW_WEIGHTS, high));
        CLI_TRY(stop_is_asked() ? LR_CANCELLED : LR_OK);
    }
    CLI_TRY(write_record(work));
    char path[PATH_MAX], title[160];
    snprintf(path, sizeof(path), "%s/contact_sheet.png", work->folder);
    snprintf(title, sizeof(title), "Correspondence images of the point (%g, %g, %g) mm", work->point_mm[0],
             work->point_mm[1], work->point_mm[2]);
    return album_write(&work->album, path, sheet_columns(work->num_bitmaps), title);
}

static void report_result(const struct work *work)
{
    report_clear(work->setup.report);
    if (!work->setup.report->json) {
        printf("%s: %d modules with an image, by backend %s\n", work->folder, work->num_bitmaps,
               lr_operator_get_info(work->setup.op)->backend);
        for (int k = 0; k < work->num_bitmaps; k++) {
            const struct bitmap *bitmap = &work->bitmaps[k];
            printf("  module %d: %d x %d pixels, %lld with a LOR, weight %.9g\n", bitmap->module, bitmap->size[0],
                   bitmap->size[1], (long long)bitmap->num_hits, bitmap->weight);
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

static lr_status create_operator(struct work *work)
{
    struct setup *setup = &work->setup;
    setup->params.mode = LR_MODE_SAMPLED;
    setup->params.layers_alone = true;
    if (strcmp(setup->params.backend, "auto") == 0) setup->params.backend = bitmap_backends;
    setup_point_grid(setup);
    setup->op = lr_operator_create(&setup->params);
    if (setup->op == NULL) return report_reason(setup->report);
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    bitmap_note_init(&work->note, info);
    bitmap_note_say(&work->note, info, setup->report);
    work->album = (struct album){.report = setup->report, .note = work->note.text};
    return LR_OK;
}

static lr_status render(struct cli_args *args, struct work *work)
{
    CLI_TRY(setup_scanner(&work->setup, args, LR_STORE_NO));
    struct report *report = work->setup.report;
    if (work->setup.params.mode == LR_MODE_EXACT)
        return report_error(report, LR_USAGE, "correspondence images show lines: exact mode has none");
    if (work->setup.params.penetration) {
        return report_error(report, LR_USAGE,
                            "with --penetration a line ends in several crystals and has no pixel: "
                            "draw correspondence images without it");
    }
    if (work->only_module >= work->setup.scanner->num_modules) {
        return report_error(report, LR_USAGE, "--module %d: %s has modules 0 to %d", work->only_module,
                            work->setup.scanner->name, work->setup.scanner->num_modules - 1);
    }

    CLI_TRY(create_operator(work));
    const int num_modules = work->setup.scanner->num_modules;
    work->bitmaps = calloc((size_t)num_modules, sizeof(*work->bitmaps));
    if (work->bitmaps == NULL)
        return report_error(work->setup.report, LR_FAILED, "no memory for %d pictures", num_modules);
    for (int m = 0; m < num_modules; m++) {
        if (work->only_module >= 0 && work->only_module != m) continue;
        struct bitmap bitmap;
        CLI_TRY(bitmap_take(&work->setup, work->point_mm, m, &bitmap));
        if (bitmap.num_hits > 0 || work->only_module == m)
            work->bitmaps[work->num_bitmaps++] = bitmap;
        else
            bitmap_finish(&bitmap);
        if (stop_is_asked()) return LR_CANCELLED;
    }

    if (work->num_bitmaps == 0) {
        return report_error(args->report, LR_BAD_INPUT,
                            "no line through (%g, %g, %g) mm joins two modules: there is nothing "
                            "to draw: --at is in mm from the scanner's centre",
                            work->point_mm[0], work->point_mm[1], work->point_mm[2]);
    }
    struct common_folder folder;
    CLI_TRY(common_folder_begin(&folder, work->setup.report, work->folder));
    work->folder = folder.part;
    const lr_status status = write_files(work);
    work->folder = folder.path;
    CLI_TRY(common_folder_end(&folder, work->setup.report, status));

    report_result(work);
    return LR_OK;
}

static lr_status run(struct cli_args *args)
{
    if (args_has(args, "--compare")) return compare_run(args);
    struct work work = {0};
    static const int64_t range[2] = {0, INT_MAX};
    work.folder = args_required(args, "-o");
    args_required(args, "--at");
    args_triple(args, "--at", false, work.point_mm);
    if (args_has(args, "--voxel-mm"))
        args_complain(args, "--voxel-mm needs --compare: correspondence images show one point");
    work.only_module = (int)args_int(args, "--module", -1, range);
    lr_status status = args->status;

    if (status == LR_OK) status = render(args, &work);
    album_finish(&work.album);
    for (int k = 0; k < work.num_bitmaps; k++) bitmap_finish(&work.bitmaps[k]);
    free(work.bitmaps);
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
