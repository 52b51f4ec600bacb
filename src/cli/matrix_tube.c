/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One LOR's tube of response: an element for each voxel. */
#include "matrix.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Six whole numbers between commas. */
static bool read_six(const char *text, int numbers[6])
{
    for (int k = 0; k < 6; k++) {
        char *end = NULL;
        const long number = strtol(text, &end, 10);
        if (end == text || number < 0 || number > INT_MAX || *end != (k < 5 ? ',' : '\0')) return false;
        numbers[k] = (int)number;
        text = end + 1;
    }
    return true;
}

/* Number over the whole scanner, or -1, reported. */
static int find_crystal(const struct setup *setup, const int at[3])
{
    const lr_scanner *scanner = setup->scanner;
    if (at[0] >= scanner->num_modules) {
        report_error(setup->report, LR_USAGE, "--lor: module %d does not exist: the scanner has modules 0 to %d", at[0],
                     scanner->num_modules - 1);
        return -1;
    }
    const int *crystals = scanner->modules[at[0]].crystals;
    if (at[1] >= crystals[0] || at[2] >= crystals[1]) {
        report_error(setup->report, LR_USAGE,
                     "--lor: crystal %d, %d does not exist: module %d has %d x %d, counted from 0", at[1], at[2], at[0],
                     crystals[0], crystals[1]);
        return -1;
    }
    return scanner->first_crystal[at[0]] + at[2] * crystals[0] + at[1];
}

int64_t matrix_find_lor(const struct setup *setup, const char *text)
{
    int numbers[6];
    if (!read_six(text, numbers)) {
        report_error(setup->report, LR_USAGE,
                     "--lor %s: six numbers are needed, module,p,q,module,r,s, such as "
                     "0,6,6,18,6,6",
                     text);
        return -1;
    }
    const int a = find_crystal(setup, numbers), b = a < 0 ? -1 : find_crystal(setup, numbers + 3);
    if (a < 0 || b < 0) return -1;
    const int64_t lor = lr_lors_number(setup->lors, a, b);
    if (lor < 0) {
        report_error(setup->report, LR_USAGE, "--lor %s: modules %d and %d are not in coincidence", text, numbers[0],
                     numbers[3]);
    }
    return lor;
}

/* Where the row goes. */
struct tube {
    lr_image *image;
    int64_t elements;
    double sum;
};

static lr_status take(void *user, const lr_row *row)
{
    struct tube *tube = user;
    for (int64_t k = 0; k < row->count; k++) {
        tube->image->values[row->lor[k]] = (float)row->probability[k];
        tube->sum += row->probability[k];
    }
    tube->elements += row->count;
    return LR_OK;
}

static void report_tube(const struct setup *setup, const struct tube *tube, int64_t lor, const char *path)
{
    report_clear(setup->report);
    if (setup->report->json) {
        struct json json = common_json_begin("matrix");
        setup_json(setup, &json);
        json_text(&json, "output", path);
        json_text(&json, "format", "image");
        json_text(&json, "rows_are", "LORs");
        json_int(&json, "lor", lor);
        json_int(&json, "rows", 1);
        json_int(&json, "elements", tube->elements);
        json_number(&json, "sum", tube->sum);
        common_json_end(&json);
        return;
    }
    printf("%s: LOR %lld, %lld voxels, sum %.9g\n", path, (long long)lor, (long long)tube->elements, tube->sum);
}

lr_status matrix_write_tube(const struct setup *setup, const char *text, const char *path)
{
    const int64_t lor = matrix_find_lor(setup, text);
    if (lor < 0) return LR_USAGE;
    if (!lr_lors_in_coincidence(setup->lors, lor))
        report_warn(setup->report, "the coincidence rules exclude this LOR: its elements are 0");
    struct tube tube = {.image = lr_image_create(&setup->grid, &setup->report->log)};
    if (tube.image == NULL) return report_reason(setup->report);
    const lr_selection part = {.lors = &lor, .num_lors = 1};
    const lr_row_sink sink = {take, &tube};
    lr_status status = lr_operator_lor_rows(setup->op, &part, &sink);
    if (status == LR_OK) status = lr_image_write(path, tube.image, &setup->report->log);
    if (status == LR_OK) report_tube(setup, &tube, lor, path);
    lr_image_destroy(tube.image);
    return status;
}
