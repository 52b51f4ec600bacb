/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Several ranks: which views of histo-images are this rank's, and these alone. */
#include "recon.h"

#include <stdlib.h>
#include <string.h>

/* Views on their way from a file. */
struct own_views {
    struct recon *recon;
    bool draws;     /* of --bootstrap */
    int count;      /* of this rank, */
    int taken;      /* and those that have come */
    int32_t *views; /* owned [views of the file] numbers of this rank's */
    uint64_t digest;
    double sums[2];         /* of --bootstrap: of the file, and of what this rank has drawn */
    int64_t values;         /* of the file so far */
    lr_histo_images *histo; /* owned: this rank's; NULL before the first view */
};

static lr_status refuse_memory(const struct recon *recon)
{
    return report_error(recon->setup.report, LR_FAILED, "no memory for the views of a rank");
}

/* Views go to ranks in turn, subset by subset. */
static int list_views(const struct recon *recon, int num_views, int32_t *views, int32_t *subset_of)
{
    const int subsets = recon->request.combine == RECON_EXACT ? recon->request.subsets : 1;
    int count = 0, dealt = 0;
    for (int k = 0; k < num_views; k++) views[k] = -1;
    for (int s = 0; s < subsets; s++)
        for (int k = s; k < num_views; k += subsets, dealt++)
            views[k] = dealt % recon->cluster.size == recon->cluster.rank ? s : -1;
    for (int k = 0; k < num_views; k++) {
        if (views[k] >= 0) {
            subset_of[count] = views[k];
            views[count++] = k;
        }
    }
    return count;
}

static lr_status check_views(const struct recon *recon, int num_views)
{
    if (num_views < recon->cluster.size) {
        return report_error(recon->setup.report, LR_USAGE, "%d ranks for %d views: start fewer ranks",
                            recon->cluster.size, num_views);
    }
    if (recon->request.subsets > num_views) {
        return report_error(recon->setup.report, LR_USAGE,
                            "%d subsets: they are made of views, of which there are %d; give 1 to "
                            "that many",
                            recon->request.subsets, num_views);
    }
    return LR_OK;
}

/* Room for this rank's views, once it is known how many there are. */
static lr_status make_room(struct own_views *own, const lr_histo_images *all)
{
    struct recon *recon = own->recon;
    const size_t num_views = (size_t)all->num_views;
    CLI_TRY(check_views(recon, all->num_views));
    free(recon->share.subset_of);
    recon->share.subset_of = calloc(num_views, sizeof(*recon->share.subset_of));
    own->views = calloc(num_views, sizeof(*own->views));
    lr_view *views = calloc(num_views, sizeof(*views));
    if (recon->share.subset_of == NULL || own->views == NULL || views == NULL) {
        free(views);
        return refuse_memory(recon);
    }
    own->count = list_views(recon, all->num_views, own->views, recon->share.subset_of);
    for (int k = 0; k < own->count; k++) views[k] = all->views[own->views[k]];
    own->histo = lr_histo_images_create(&all->grid, views, own->count, &recon->setup.report->log);
    free(views);
    return own->histo != NULL ? LR_OK : report_reason(recon->setup.report);
}

static lr_status take_view(void *user, const lr_histo_images *all, int view, const float *values)
{
    struct own_views *own = user;
    const struct recon *recon = own->recon;
    const int64_t num_voxels = lr_grid_num_voxels(&all->grid);
    const size_t bytes = (size_t)num_voxels * sizeof(*values);
    const lr_poisson_stream stream = {
        .seed = recon->request.bootstrap_seed, .purpose = LR_RANDOM_REPLICATE, .first = view * num_voxels};
    CLI_TRY(own->histo == NULL ? make_room(own, all) : LR_OK);
    own->values += num_voxels;
    own->sums[0] += common_sum(values, num_voxels);
    own->digest = recon_digest(own->digest, values, (int64_t)bytes);
    if (own->taken == own->count || own->views[own->taken] != view) return LR_OK;
    float *to = own->histo->values + (size_t)own->taken++ * (size_t)num_voxels;
    memcpy(to, values, bytes);
    if (own->draws) {
        CLI_TRY(lr_poisson_part(to, num_voxels, &stream, &recon->setup.report->log));
        own->sums[1] += common_sum(to, num_voxels);
    }
    return LR_OK;
}

static lr_status say_drawn(struct own_views *own)
{
    CLI_TRY(lr_comm_sum_numbers(own->recon->cluster.comm, &own->sums[1], 1));
    recon_say_replicate(own->recon, own->sums[0], own->sums[1]);
    return LR_OK;
}

static lr_status scan(struct own_views *own, const char *path)
{
    struct recon *recon = own->recon;
    const lr_histo_sink sink = {take_view, own};
    CLI_TRY(lr_histo_images_scan(path, &sink, &recon->setup.report->log));
    CLI_TRY(recon_compare_ranks(recon, "file of histo-images", own->digest, own->values));
    CLI_TRY(own->draws ? say_drawn(own) : LR_OK);
    recon->digest = recon_digest(recon->digest, &own->digest, sizeof(own->digest));
    recon->share.interleave = 1;
    return LR_OK;
}

static lr_status read_whole(struct recon *recon, const char *path, lr_histo_images **histo)
{
    *histo = lr_histo_images_read(path, &recon->setup.report->log);
    if (*histo == NULL) return report_reason(recon->setup.report);
    if (recon->request.checkpoint != NULL) {
        const int64_t count = (*histo)->num_views * lr_grid_num_voxels(&(*histo)->grid);
        const uint64_t digest = recon_digest(0, (*histo)->values, count * (int64_t)sizeof(*(*histo)->values));
        recon->digest = recon_digest(recon->digest, &digest, sizeof(digest));
    }
    return LR_OK;
}

lr_status recon_read_views(struct recon *recon, const char *path, bool draws, lr_histo_images **histo)
{
    struct own_views own = {.recon = recon, .draws = draws && recon->request.bootstraps};
    *histo = NULL;
    if (recon->cluster.comm == NULL) return read_whole(recon, path, histo);
    const lr_status status = scan(&own, path);
    free(own.views);
    if (status == LR_OK)
        *histo = own.histo;
    else
        lr_histo_images_destroy(own.histo);
    return status;
}
