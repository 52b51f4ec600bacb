/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The part of a rank in the updates of several: it updates its slab of the image, a range of voxels, or all of the
 * image if the rule looks at neighbours. docs/method/cluster.md. */
#ifndef LR_RECON_RANKS_H
#define LR_RECON_RANKS_H

#include <lr/comm.h>

struct lr_ranks {
    lr_comm *comm; /* NULL = one process */
    int size;
    int64_t *offsets;   /* [size + 1] voxels of each rank */
    int64_t begin, end; /* this rank's range */
    bool has_slabs;     /* else each updates the whole image */
};

/* errors: LR_FAILED if memory runs out. Finish in any case. */
lr_status lr_ranks_init(struct lr_ranks *ranks, lr_comm *comm, int64_t num_voxels, const lr_log *log);
void lr_ranks_finish(struct lr_ranks *ranks);

/* The slab: voxels of an image that this rank updates. */
lr_vector lr_ranks_slab(const struct lr_ranks *ranks, const lr_vector *image);

/* Fits of the ranks' data become the fit of all data. In the same message, unless NULL, sums of the ranks' slabs
 * before and after an update become sums of the image. */
lr_status lr_ranks_add_update(const struct lr_ranks *ranks, lr_poisson_fit *fit, lr_vector_sums *before,
                              lr_vector_sums *after);

#endif
