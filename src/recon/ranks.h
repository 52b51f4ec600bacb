/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The voxels that each of several ranks updates: a slab of the image, which is a range of voxels. If the update rule
 * depends on neighbouring voxels, each rank updates the whole image. docs/method/cluster.md. */
#ifndef LR_RECON_RANKS_H
#define LR_RECON_RANKS_H

#include <lr/comm.h>

struct lr_ranks {
    lr_comm *comm; /* NULL = one process */
    int size;
    int64_t *offsets;   /* [size + 1] voxels of each rank */
    int64_t begin, end; /* this rank's range */
    bool has_slabs;     /* each rank updates a slab; if false, the whole image */
};

/* Call the finish function in any case. errors: LR_FAILED if memory runs out. */
lr_status lr_ranks_init(struct lr_ranks *ranks, lr_comm *comm, int64_t num_voxels, const lr_log *log);
void lr_ranks_finish(struct lr_ranks *ranks);

/* Returns the slab: the voxels of an image that this rank updates. */
lr_vector lr_ranks_slab(const struct lr_ranks *ranks, const lr_vector *image);

/* Adds up the fits of all ranks, so that `fit` becomes the fit of all data. The same message also adds up the sums
 * of the ranks' slabs before and after an update, unless they are NULL. They become sums of the image. */
lr_status lr_ranks_add_update(const struct lr_ranks *ranks, lr_poisson_fit *fit, lr_vector_sums *before,
                              lr_vector_sums *after);

#endif
