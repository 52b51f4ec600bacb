/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "recon/seen.h"

#include "base/parallel.h"

enum { SHARES = 64 };

struct noting {
    const float *values;
    bool *voxels;
    int64_t grain; /* voxels of a share */
    double sums[SHARES];
};

static void note_share(void *user, int64_t begin, int64_t end, int worker)
{
    struct noting *noting = user;
    double sum = 0.0;
    (void)worker;
    for (int64_t v = begin; v < end; v++) {
        noting->voxels[v] |= noting->values[v] > 0.0f;
        sum += noting->values[v];
    }
    noting->sums[begin / noting->grain] = sum;
}

double lr_seen_note(const lr_vector *sensitivity, bool *voxels, int threads)
{
    struct noting noting = {
        .values = sensitivity->values, .voxels = voxels, .grain = (sensitivity->count + SHARES - 1) / SHARES};
    double sum = 0.0;
    if (sensitivity->count > 0) lr_parallel_for(threads, sensitivity->count, noting.grain, note_share, &noting);
    for (int share = 0; share < SHARES; share++) sum += noting.sums[share];
    return sum;
}
