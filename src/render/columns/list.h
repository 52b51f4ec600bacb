/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Column projections of single LORs: list mode, where nearly all LORs are empty. Sorted LORs are
 * much alike, and so is the work of neighbouring threads. */
#ifndef LR_RENDER_COLUMNS_LIST_H
#define LR_RENDER_COLUMNS_LIST_H

#include "render/columns/columns.h"

/* lors: [count] ascending, without repeats; values: [count], in back NULL for 1 each. Image as the
 * backend's. The same bits in every run. The context is current.
 * errors: LR_FAILED, LR_NO_DEVICE, LR_CANCELLED. */
struct lr_lor_list {
    const int64_t *lors;
    int64_t count;
};
lr_status lr_columns_list_forward(struct lr_columns *columns, const struct lr_lor_list *list,
                                  const float *image, float *values);
lr_status lr_columns_list_back(struct lr_columns *columns, const struct lr_lor_list *list,
                               const float *values, float *image);

#endif
