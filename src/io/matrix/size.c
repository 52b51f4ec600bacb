/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * How large matrix files get: what their writers put down for each element and row. */
#include "io/matrix/writer.h"

#include <math.h>

/* Characters of a value with 9 significant digits, on average, as text; of a place in mm; and of a
 * number of a module, of a row or of a column of crystals. */
#define VALUE_CHARS 13.5
#define PLACE_CHARS 3.5
#define CRYSTAL_CHARS 1.5

/* What deflate leaves of column numbers and values: 0.45 to 0.48 of matrices of presets. */
#define DEFLATED 0.5

/* Bytes in STIR's files: of an element, of a LOR and its bin. */
enum { STIR_ELEMENT_BYTES = 10, STIR_LOR_BYTES = 20, COUNT_BYTES = 8 };

/* Digits of the numbers below `end`, on average, but for those few that have fewer. */
static double digits(double end)
{
    return end > 1.0 ? ceil(log10(end)) : 1.0;
}

static double tsv_bytes(double rows, double elements)
{
    const double separators = 11.0;
    return elements * (digits(rows) + 3.0 * PLACE_CHARS + 6.0 * CRYSTAL_CHARS + VALUE_CHARS + separators);
}

static double mtx_bytes(double rows, double columns, double elements)
{
    const double separators = 3.0;
    return elements * (digits(rows) + digits(columns) + VALUE_CHARS + separators);
}

lr_matrix_size lr_matrix_expect_size(const lr_matrix_writer_params *params, double rows, double elements)
{
    const double columns =
        params->by_lor && params->grid != NULL ? (double)lr_grid_num_voxels(params->grid) : (double)params->lors->count;
    const bool is_wide = fmax(columns, elements) > (double)INT32_MAX;
    const double width = is_wide ? 8.0 : 4.0, value = sizeof(float);
    const double part = elements * (width + value) + rows * COUNT_BYTES;
    const double plain = elements * (width + value) + rows * width;
    switch (params->format) {
    case LR_MATRIX_TSV: {
        const double bytes = tsv_bytes(rows, elements);
        return (lr_matrix_size){bytes, bytes};
    }
    case LR_MATRIX_STIR: {
        const double bytes = elements * STIR_ELEMENT_BYTES + rows * STIR_LOR_BYTES;
        return (lr_matrix_size){bytes, bytes};
    }
    case LR_MATRIX_MTX: {
        const double bytes = mtx_bytes(rows, columns, elements);
        return (lr_matrix_size){bytes, bytes + part};
    }
    case LR_MATRIX_NPZ: return (lr_matrix_size){plain, plain + part};
    default:
        return params->compress > 0 ? (lr_matrix_size){DEFLATED * plain, DEFLATED * plain + part}
                                    : (lr_matrix_size){plain, part + rows * width};
    }
}
