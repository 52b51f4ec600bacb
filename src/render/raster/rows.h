/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows read off correspondence images: cluster paper, section II.C. */
#ifndef LR_RENDER_ROWS_H
#define LR_RENDER_ROWS_H

#include "render/raster/correspondence.h"

#include <lr/operator.h>

/* What reading rows works with. */
struct lr_row_reader {
    struct lr_correspondence *images;
    struct lr_plan *plan;
    int threads;
    const lr_log *log;
    const lr_progress *progress;
};

/* Renders the rows batch by batch, reads the atlas back, and hands every row to the sink in order,
 * empty ones too. */
lr_status lr_rows_read(const struct lr_row_reader *reader, const struct lr_rows *rows, const lr_row_sink *sink);

#endif
