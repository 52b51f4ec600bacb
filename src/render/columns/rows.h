/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows of exact mode by the arithmetic of the column projections:
 * docs/method/correspondence.md, "Columns". */
#ifndef LR_RENDER_COLUMNS_ROWS_H
#define LR_RENDER_COLUMNS_ROWS_H

#include "render/columns/columns.h"

/* Every element of the rows, in order, to the sink. Exact mode only; the context is current. */
lr_status lr_columns_read_rows(struct lr_columns *columns, const struct lr_rows *rows,
                               const lr_row_sink *sink);

#endif
