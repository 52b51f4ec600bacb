/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a comparison leaves: compare.png, arrays of its elements, a table. */
#include "album.h"
#include "compare.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- arrays --- */

/* The elements of all rows, side by side. */
struct table {
    const struct compare *compare;
    int64_t count, room;
    int64_t *lors;   /* owned [count], ascending */
    float *values;   /* owned [5 room]: one array at a time */
    double *exact;   /* owned [count] */
    double *sampled; /* owned [count], of one R at a time */
};

static int64_t next_lor(const struct held_row *row, int64_t after)
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
static void spread(const struct table *table, const struct held_row *row, double *values)
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

static void free_table(struct table *table)
{
    free(table->lors);
    free(table->values);
    free(table->exact);
    free(table->sampled);
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

/* Primary crystal, secondary module, secondary crystal. */
static lr_status write_lors(const struct table *table)
{
    for (int64_t n = 0; n < table->count; n++) {
        const lr_lor lor = lr_lors_describe(table->compare->setup.lors, table->lors[n]);
        const bool first = lor.module_i == table->compare->module;
        const int fields[5] = {first ? lor.p : lor.r, first ? lor.q : lor.s, first ? lor.module_j : lor.module_i,
                               first ? lor.r : lor.p, first ? lor.s : lor.q};
        for (int f = 0; f < 5; f++) table->values[5 * n + f] = (float)fields[f];
    }
    return write_values(table, "lors", 5);
}

static lr_status write_exact(const struct table *table)
{
    for (int64_t n = 0; n < table->count; n++) table->values[n] = (float)table->exact[n];
    return write_values(table, "exact", 1);
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
    CLI_TRY(write_lors(table));
    CLI_TRY(write_exact(table));
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

static void describe(const struct compare *compare, char *text, size_t size)
{
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
    snprintf(text, size,
             "%s; %s; primary module %d: %d x %d crystals; exact by backend %s, sampled by %s, "
             "pieces %s",
             setup->scanner->name, where, compare->module, crystals[0], crystals[1], info->backend, sampled_by,
             compare->note.text);
}

static lr_status write_picture(const struct compare *compare)
{
    lr_row sampled[COMPARE_MOST_RAYS];
    int rays[COMPARE_MOST_RAYS];
    char subtitle[3072], path[PATH_MAX];
    for (int k = 0; k < compare->num_sampled; k++) {
        sampled[k] = held_row_view(&compare->sampled[k].row);
        rays[k] = compare->sampled[k].rays;
    }
    const lr_row exact = held_row_view(&compare->exact);
    describe(compare, subtitle, sizeof(subtitle));
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

lr_status compare_write(struct compare *compare)
{
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
    free_table(&table);
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

static void write_sampled_json(const struct compare_sampled *sampled, struct json *json)
{
    const lr_row_error *error = &sampled->error;
    json_open(json, NULL, '{');
    json_int(json, "rays", sampled->rays);
    json_text(json, "backend", sampled->backend);
    json_number(json, "relative_l2", error->relative_l2);
    json_number(json, "law", 0.6 / sampled->rays);
    json_number(json, "sum_error", error->sum_error);
    json_number(json, "largest_error", error->largest_error);
    json_int(json, "missed_elements", error->num_missed);
    json_number(json, "missed_weight", error->missed_weight);
    json_int(json, "unexpected_elements", error->num_unexpected);
    json_number(json, "all_relative_l2", sampled->all.relative_l2);
    json_number(json, "all_sum_error", sampled->all.sum_error);
    json_close(json, '}');
}

void compare_report(const struct compare *compare)
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
    for (int k = 0; k < compare->num_sampled; k++) write_sampled_json(&compare->sampled[k], &json);
    json_close(&json, ']');
    common_json_end(&json);
}
