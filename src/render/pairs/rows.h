/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows by the arithmetic of the projections by pairs: docs/method/correspondence.md, "Tilted
 * pairs". */
#ifndef LR_RENDER_PAIRS_ROWS_H
#define LR_RENDER_PAIRS_ROWS_H

#include "render/pairs/pairs.h"

/* Every element of the rows, in order, to the sink; the context is current. */
lr_status lr_pairs_read_rows(struct lr_pairs *pairs, const struct lr_rows *rows,
                             const lr_row_sink *sink);

#endif
