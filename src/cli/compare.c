/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "compare.h"

#include "stop.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static lr_status take_exact(struct compare *compare)
{
    struct setup *setup = &compare->setup;
    CLI_TRY(setup_operator(setup));
    CLI_TRY(held_row_take(setup, setup->op, &compare->whole));
    if (compare->module < 0) CLI_TRY(held_row_brightest(setup, &compare->whole, &compare->module));
    return held_row_restrict(setup, &compare->whole, compare->module, &compare->exact);
}

/* Sampled elements are what correspondence images show: where none is asked for, the same backends
 * compute them. */
static const char *sampled_backends(const struct compare *compare)
{
    const char *asked = compare->setup.params.backend;
    return strcmp(asked, "auto") == 0 ? shot_backends : asked;
}

static lr_status take_sampled(struct compare *compare, struct compare_sampled *sampled)
{
    const struct setup *setup = &compare->setup;
    lr_operator_params params = setup->params;
    params.backend = sampled_backends(compare);
    params.mode = LR_MODE_SAMPLED;
    params.rays = sampled->rays;
    lr_operator *op = lr_operator_create(&params);
    if (op == NULL) return report_reason(setup->report);
    struct held_row whole;
    snprintf(sampled->backend, sizeof(sampled->backend), "%s", lr_operator_get_info(op)->backend);
    lr_status status = held_row_take(setup, op, &whole);
    lr_operator_destroy(op);
    CLI_TRY(status);
    status = held_row_restrict(setup, &whole, compare->module, &sampled->row);
    if (status == LR_OK) {
        const lr_row views[4] = {held_row_view(&sampled->row), held_row_view(&compare->exact), held_row_view(&whole),
                                 held_row_view(&compare->whole)};
        sampled->error = lr_row_compare(&views[0], &views[1]);
        sampled->all = lr_row_compare(&views[2], &views[3]);
    }
    held_row_finish(&whole);
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
    params.backend = strcmp(params.backend, "cpu") == 0 ? "cpu" : shot_backends;
    params.mode = LR_MODE_SAMPLED;
    params.rays = compare->pixel_rays = rays;
    params.mu = NULL;
    compare->pixels = calloc(count, sizeof(*compare->pixels));
    if (compare->pixels == NULL)
        return report_error(setup->report, LR_FAILED, "no memory for a picture of %zu pixels", count);
    lr_operator *op = lr_operator_create(&params);
    if (op == NULL) return report_reason(setup->report);
    shot_note_init(&compare->note, lr_operator_get_info(op));
    shot_note_say(&compare->note, lr_operator_get_info(op), setup->report);
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
    CLI_TRY(take_exact(compare));
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
    return compare_write(compare);
}

static void finish(struct compare *compare)
{
    for (int k = 0; k < compare->num_sampled; k++) held_row_finish(&compare->sampled[k].row);
    held_row_finish(&compare->exact);
    held_row_finish(&compare->whole);
    free(compare->pixels);
    setup_finish(&compare->setup);
}

lr_status compare_run(struct cli_args *args)
{
    struct compare compare = {0};
    double point_mm[3] = {0}, voxel_mm[3] = {1, 1, 1};
    lr_status status = read_request(args, &compare, point_mm, voxel_mm);
    if (status == LR_OK) status = open_setup(args, &compare, point_mm, voxel_mm);
    if (status == LR_OK) status = compute(&compare);
    if (status == LR_OK) compare_report(&compare);
    finish(&compare);
    return status;
}
