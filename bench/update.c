/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Times updates of OSEM by the library's own loop: a projection forward, counts over estimates, a
 * projection back and the new image, with all of them where the operator computes. */
#include "bench.h"

#include "cli/stop.h"

#include <stdlib.h>

/* Of which the first one fills caches. */
enum { MOST_ITERATIONS = 1 + BENCH_MAX_REPEAT };

struct iterations {
    double wall_s[MOST_ITERATIONS], device_s[MOST_ITERATIONS];
    int count;
};

static lr_status keep_seconds(void *user, const lr_iteration *done)
{
    struct iterations *kept = user;
    kept->wall_s[kept->count] = done->seconds;
    kept->device_s[kept->count++] = done->device_seconds;
    return stop_is_asked() ? LR_CANCELLED : LR_OK;
}

static int ascending(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Of all but the first; sorts them. */
static double median(double *values, int count)
{
    qsort(values + 1, (size_t)count - 1, sizeof(*values), ascending);
    return values[1 + (count - 1) / 2];
}

static lr_status run(const struct bench_updates_wish *wish, const lr_lor_data *data, lr_vector *image,
                     struct iterations *kept)
{
    return lr_recon(&(lr_recon_params){.op = wish->op,
                                       .data = data,
                                       .iterations = 1 + wish->repeat,
                                       .subsets = wish->subsets,
                                       .iteration = keep_seconds,
                                       .user = kept,
                                       .log = wish->log,
                                       .progress = wish->progress},
                    image);
}

lr_status bench_time_updates(const struct bench_updates_wish *wish, const lr_vector *values,
                             struct bench_updates *found)
{
    lr_lor_data data = {.count = values->count};
    struct iterations kept = {.count = 0};
    lr_vector host, image = {0};
    lr_vector_params params = {.count = values->count, .name = "counts", .log = wish->log};
    CLI_TRY(lr_vector_create(&params, &host));
    params.count = lr_operator_get_info(wish->op)->num_voxels;
    params.name = "the image";
    lr_status status = lr_vector_create(&params, &image);
    status = status == LR_OK ? lr_vector_copy(values, &host) : status;
    data.values = host.values;
    status = status == LR_OK ? run(wish, &data, &image, &kept) : status;
    lr_vector_destroy(&image);
    lr_vector_destroy(&host);
    if (status == LR_OK) {
        const double updates = wish->subsets;
        *found = (struct bench_updates){.subsets = wish->subsets,
                                        .wall_s = median(kept.wall_s, kept.count) / updates,
                                        .device_s = median(kept.device_s, kept.count) / updates};
    }
    return status;
}
