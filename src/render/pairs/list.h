/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections by pairs of single LORs: of all LORs of the module pairs that they belong to, whose
 * values are held, and of these only those of the list are taken. */
#ifndef LR_RENDER_PAIRS_LIST_H
#define LR_RENDER_PAIRS_LIST_H

#include "render/columns/list.h"
#include "render/pairs/pairs.h"

/* As lr_columns_list_forward and lr_columns_list_back; forward has the same bits in every run where
 * `deterministic` asks for it. */
lr_status lr_pairs_list_forward(struct lr_pairs *pairs, const struct lr_lor_list *list,
                                const float *image, float *values);
lr_status lr_pairs_list_back(struct lr_pairs *pairs, const struct lr_lor_list *list,
                             const float *values, float *image);

#endif
