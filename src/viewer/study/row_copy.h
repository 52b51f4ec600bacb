/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows that stay. */
#ifndef LR_VIEWER_ROW_COPY_H
#define LR_VIEWER_ROW_COPY_H

#include <lr/operator.h>

/* A copy of one row; zero is an empty one. */
struct row_copy {
    int64_t row, count;
    int64_t *lor;        /* owned [count] */
    double *probability; /* owned [count] */
    int64_t *order;      /* owned [count]: places by falling probability; of equals the first
                            comes first */
    double sum, largest;
};

/* A sink that takes one row into `copy`; set log, which may be NULL. */
struct row_copier {
    struct row_copy *copy;
    const lr_log *log;
};
lr_row_sink row_copier_sink(struct row_copier *copier);

void row_copy_finish(struct row_copy *copy); /* zero is allowed */

/* The same as the library hands it over. */
lr_row row_copy_as_row(const struct row_copy *copy);

#endif
