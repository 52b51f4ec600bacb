/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows that stay. */
#ifndef LR_VIEWER_ROW_COPY_H
#define LR_VIEWER_ROW_COPY_H

#include "model/lors/elements.h"

/* A copy of one row; zero is an empty one. */
struct row_copy {
    struct lr_owned_row row;
    int64_t *order; /* owned [row.count]: places by falling probability; of equals the first comes
                       first; NULL = not asked for */
    double sum;
};

/* A sink that takes one row into `copy`; log may be NULL. */
struct row_copier {
    struct row_copy *copy;
    const lr_log *log;
    bool has_order;
};
lr_row_sink row_copier_sink(struct row_copier *copier);

void row_copy_finish(struct row_copy *copy); /* zero is allowed */

#endif
