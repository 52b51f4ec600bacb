/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LOR data: the file formats of lr_lor_data_read and lr_lor_data_write, and sums of weights per LOR. */
#pragma once

#include <lr/io.h>
#include <lr/lors.h>

/* Name of the work in the progress reports of all readers of LOR data. */
#define LR_READING_LOR_DATA "reading LOR data"

/* STIR's projection data. The reader returns checked data; the writer gets checked data. */
lr_lor_data *lr_lor_projdata_read(const char *path, const lr_lors *lors, const lr_progress *progress,
                                  const lr_log *log);
lr_status lr_lor_projdata_write(const char *path, const lr_lors *lors, const lr_lor_data *data, const lr_log *log);

/* A LOR, and a weight that is to be added to it. */
struct lr_lor_weight {
    int64_t lor;
    float weight;
};

/* Sorts a list, and adds up the weights of each LOR. Returns sparse data, owned by the caller; NULL, logged, if memory
 * runs out. */
lr_lor_data *lr_lor_weights_add_up(struct lr_lor_weight *list, int64_t count, const lr_log *log);

/* Weights summed per LOR in the order of arrival. Memory: one entry for each LOR that occurred. Further entries wait to
 * be merged: about as many again, or 2^22 if that is more. A struct of zeros is an empty sum. Only one thread may use a
 * sum. */
struct lr_lor_sums {
    int64_t waiting, room;
    int64_t *lors;     /* owned [room] */
    float *weights;    /* owned [room]; NULL while all weights are 1 */
    lr_lor_data *sums; /* owned; NULL while there are no sums */
};

/* Adds a weight to a LOR. errors: LR_FAILED, logged, if memory runs out. */
lr_status lr_lor_sums_add(struct lr_lor_sums *sums, int64_t lor, float weight, const lr_log *log);

/* Returns the sparse sums, owned by the caller; NULL if memory runs out. Frees everything else in any case. */
lr_lor_data *lr_lor_sums_finish(struct lr_lor_sums *sums, const lr_log *log);

void lr_lor_sums_destroy(struct lr_lor_sums *sums);
