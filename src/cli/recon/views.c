/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon --operator direct: histo-images. If there are several ranks, each rank has some of the views. */
#include "cli/recon/measurement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- subsets --- */

/* Finds the number of subsets and the subset of each view. subset_of: [count]. */
static lr_status find_subsets(struct measurement *measured, const lr_view *views, int count, int32_t *subset_of)
{
    const int per_block = measured->request->views_per_block;
    if (per_block > 0) {
        measured->subsets = (count - 1) / per_block + 1;
        /* If every tilt has the same azimuths, the views of a block follow each other in the geometric order
           (lr_view_set_order). Otherwise they follow each other in the file. */
        int azimuths = 1, *order = calloc((size_t)count, sizeof(*order));
        if (order == NULL) return report_error(measured->setup.report, LR_FAILED, "no memory for %d views", count);
        while (azimuths < count && views[azimuths].tilt_deg == views[0].tilt_deg) azimuths++;
        for (int v = 0; v < count; v++) order[v] = v;
        if (count % azimuths == 0) {
            const lr_view_set set = {azimuths, count / azimuths, 10};
            lr_view_set_order(&set, order);
        }
        for (int v = 0; v < count; v++) subset_of[order[v]] = v / per_block;
        free(order);
        return LR_OK;
    }
    for (int k = 0; k < count; k++) subset_of[k] = k % measured->subsets;
    return LR_OK;
}

/* --- several ranks --- */

/* Views that are read from a file one by one. */
struct view_share {
    struct measurement *measured;
    bool draws;     /* true with --bootstrap */
    int count;      /* number of views of this rank */
    int taken;      /* number of this rank's views that have been read */
    int32_t *views; /* owned [views of the file] indices of this rank's views */
    uint64_t digest;
    double sums[2];         /* --bootstrap: sums of counts; [0]: of the file, [1]: drawn for this rank's views */
    int64_t values;         /* number of values of the file that have been read */
    lr_histo_images *histo; /* owned: this rank's views; NULL until the first one is read */
};

/* Deals the views of each subset out to the ranks one after the other, and allocates memory for this rank's views. */
static lr_status assign_views(struct view_share *own, const lr_histo_images *all)
{
    struct measurement *measured = own->measured;
    const struct report *report = measured->setup.report;
    const int count = all->num_views, ranks = measured->cluster.size;
    if (count < ranks)
        return report_error(measured->setup.report, LR_USAGE, "%d ranks for %d views: start fewer ranks", ranks, count);
    measurement_limit_subsets(measured, count);
    if (measured->request->views_per_block == 0 && measured->subsets > count) {
        return report_error(measured->setup.report, LR_USAGE,
                            "%d subsets: they are made of views, of which there are %d; give 1 to that many",
                            measured->subsets, count);
    }
    free(measured->subset_of);
    measured->subset_of = calloc((size_t)count, sizeof(*measured->subset_of));
    own->views = calloc((size_t)count, sizeof(*own->views));
    lr_view *views = calloc((size_t)count, sizeof(*views));
    lr_status status = LR_OK;
    if (measured->subset_of == NULL || own->views == NULL || views == NULL) {
        status = report_error(measured->setup.report, LR_FAILED, "no memory for the views of a rank");
        goto done;
    }

    /* No subsets are made for --combine paper. The ranks then get the views in turn, in the order of the file. */
    if (measured->request->combine == RECON_EXACT)
        status = find_subsets(measured, all->views, count, measured->subset_of);
    if (status != LR_OK) goto done;
    for (int s = 0, given = 0; s < measured->subsets; s++)
        for (int k = 0; k < count; k++)
            if (measured->subset_of[k] == s) own->views[k] = given++ % ranks == measured->cluster.rank;
    for (int k = 0; k < count; k++) {
        if (own->views[k]) {
            measured->subset_of[own->count] = measured->subset_of[k];
            views[own->count] = all->views[k];
            own->views[own->count++] = k;
        }
    }
    own->histo = lr_histo_images_create(&all->grid, views, own->count, &report->log);
    status = own->histo != NULL ? LR_OK : report_reason(measured->setup.report);
    if (status != LR_OK) goto done;
    own->histo->tof_ps = all->tof_ps;
    own->histo->are_probabilities = all->are_probabilities;
done:
    free(views);
    return status;
}

static lr_status take_view(void *user, const lr_histo_images *all, int view, const float *values)
{
    struct view_share *own = user;
    const struct measurement *measured = own->measured;
    const int64_t num_voxels = lr_grid_num_voxels(&all->grid);
    const size_t bytes = (size_t)num_voxels * sizeof(*values);
    const lr_poisson_stream stream = {
        .seed = measured->request->bootstrap_seed, .purpose = LR_RANDOM_REPLICATE, .first = view * num_voxels};
    CLI_TRY(own->histo == NULL ? assign_views(own, all) : LR_OK);
    own->values += num_voxels;
    own->sums[0] += common_sum(values, num_voxels);
    own->digest = recon_digest(own->digest, values, (int64_t)bytes);
    if (own->taken == own->count || own->views[own->taken] != view) return LR_OK;
    float *to = own->histo->values + (size_t)own->taken++ * (size_t)num_voxels;
    memcpy(to, values, bytes);
    if (own->draws) {
        CLI_TRY(lr_poisson_part(to, num_voxels, &stream, &measured->setup.report->log));
        own->sums[1] += common_sum(to, num_voxels);
    }
    return LR_OK;
}

/* Reads this rank's views, or all views if there is one process. draws: true if --bootstrap applies to this file. Ranks
 * then draw counts while they read; a single process draws them later. */
static lr_status read_views(struct measurement *measured, const char *path, bool draws, lr_histo_images **histo)
{
    struct view_share own = {.measured = measured, .draws = draws && measured->request->bootstraps};
    const lr_log *log = &measured->setup.report->log;
    *histo = NULL;
    if (measured->cluster.comm != NULL) {
        const lr_histo_sink sink = {take_view, &own};
        lr_status status = lr_histo_images_scan(path, &sink, log);
        if (status == LR_OK)
            status = measurement_compare_numbers(measured, "file of histo-images", own.digest, own.values);
        if (status == LR_OK && own.draws) status = lr_comm_sum_numbers(measured->cluster.comm, &own.sums[1], 1);
        if (status == LR_OK && own.draws) measurement_say_replicate(measured, own.sums[0], own.sums[1]);
        free(own.views);
        if (status != LR_OK) {
            lr_histo_images_destroy(own.histo);
            return status;
        }
        measured->digest = recon_digest(measured->digest, &own.digest, sizeof(own.digest));
        measured->interleave = measured->request->views_per_block == 0; /* blocks of views keep their order */
        *histo = own.histo;
        return LR_OK;
    }
    *histo = lr_histo_images_read(path, log);
    if (*histo == NULL) return report_reason(measured->setup.report);
    if (measured->request->checkpoint != NULL) {
        const int64_t count = (*histo)->num_views * lr_grid_num_voxels(&(*histo)->grid);
        const uint64_t digest = recon_digest(0, (*histo)->values, count * (int64_t)sizeof(*(*histo)->values));
        measured->digest = recon_digest(measured->digest, &digest, sizeof(digest));
    }
    return LR_OK;
}

/* Copies histo-images into LOR data of the operator. */
static lr_lor_data *copy_data(const struct measurement *measured, const lr_histo_images *histo)
{
    const lr_lors *layout = lr_operator_get_info(measured->setup.op)->lors;
    lr_lor_data *data = lr_lor_data_create(layout, &measured->setup.report->log);
    if (data != NULL) memcpy(data->values, histo->values, (size_t)data->count * sizeof(*data->values));
    return data;
}

/* Reports the counts of all ranks, and finds those that no image can explain because their factor is 0. */
static lr_status say_counts(struct measurement *measured)
{
    const lr_histo_images *factors = measured->direct_factors;
    const lr_lor_data *data = measured->data;
    double sums[3] = {0}; /* counts; counts and voxels with a factor of 0 */
    for (int64_t k = 0; k < data->count; k++) {
        sums[0] += data->values[k];
        if (factors == NULL || factors->values[k] != 0.0f || data->values[k] == 0.0f) continue;
        sums[1] += data->values[k];
        sums[2] += 1;
    }
    CLI_TRY(lr_comm_sum_numbers(measured->cluster.comm, sums, 3));
    measured->blind_counts = sums[1];
    measured->blind_voxels = (int64_t)sums[2];
    report_info(measured->setup.report, "%s: %.9g counts", measured->request->data, sums[0]);
    return LR_OK;
}

static lr_status open(struct measurement *measured, struct cli_args *args)
{
    const struct recon_request *request = measured->request;
    struct report *report = measured->setup.report = args->report;
    struct direct_setup *direct = &measured->direct;
    lr_histo_images *counts = NULL, *additive = NULL;
    direct->grid.report = report;
    CLI_TRY(direct_read_kernel(direct, args));
    lr_status status = read_views(measured, request->data, true, &counts);
    if (status == LR_OK) status = direct_take_tof(direct, args, counts->tof_ps);
    if (status == LR_OK && measured->cluster.comm == NULL) measurement_limit_subsets(measured, counts->num_views);
    if (status == LR_OK && measured->cluster.comm == NULL && request->views_per_block > 0) {
        measured->subset_of = calloc((size_t)counts->num_views, sizeof(*measured->subset_of));
        status = measured->subset_of != NULL
                     ? find_subsets(measured, counts->views, counts->num_views, measured->subset_of)
                     : report_error(report, LR_FAILED, "no memory for %d views", counts->num_views);
    }
    if (status == LR_OK) status = setup_grid(&direct->grid, args, &counts->grid);
    if (status != LR_OK) goto finish;
    measured->setup.grid = direct->grid.grid;
    if (request->factors != NULL) status = read_views(measured, request->factors, false, &measured->direct_factors);
    if (status == LR_OK) {
        status = direct_open(direct, args,
                             &(struct direct_work){.views = counts->views,
                                                   .num_views = counts->num_views,
                                                   .factors = measured->direct_factors,
                                                   .progress = measured->progress,
                                                   .cluster = &measured->cluster});
    }
    if (status != LR_OK) goto finish;
    measured->setup.op = direct->op;
    direct->op = NULL;

    measured->data = copy_data(measured, counts);
    if (measured->data == NULL) status = report_reason(report);
    if (status == LR_OK && measured->cluster.comm == NULL) /* ranks have drawn counts while reading */
        status = measurement_bootstrap(measured);
    if (status == LR_OK) status = say_counts(measured);
    if (status == LR_OK && request->additive != NULL) {
        status = read_views(measured, request->additive, false, &additive);
        if (status != LR_OK) goto finish;
        if (lr_histo_images_check(additive, measured->setup.op, &report->log) == LR_OK)
            measured->additive = copy_data(measured, additive);
        if (measured->additive == NULL) status = report_reason(report);
    }

finish:
    lr_histo_images_destroy(additive);
    lr_histo_images_destroy(counts);
    return status == LR_OK ? measurement_read_images(measured) : status;
}

static int describe(const struct measurement *measured, char *text, size_t size)
{
    const lr_resolution *resolution = &measured->direct.kernel.resolution;
    return snprintf(text, size, "; kernel %.9g ps %d %.9g %.9g mm; factors %s", resolution->tof_ps,
                    (int)resolution->model, resolution->radial_mm, resolution->axial_mm,
                    measured->direct_factors != NULL ? "yes" : "none");
}

const struct measurement_kind views_kind = {.open = open, .describe = describe};
