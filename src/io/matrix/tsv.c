/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows as tab-separated text. */
#include "base/mem.h"
#include "io/files/c_locale.h"
#include "io/files/output.h"
#include "io/matrix/writer.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tsv {
    const lr_matrix_writer_params *params;
    struct lr_output output;
};

static const char header[] = "row\tx_mm\ty_mm\tz_mm\tmodule_i\tp\tq\tmodule_j\tr\ts\tprobability\n";

void *lr_matrix_tsv_create(const lr_matrix_writer_params *params)
{
    struct tsv *tsv = lr_alloc(1, sizeof(*tsv), "a matrix writer", params->log);
    if (tsv == NULL) return NULL;
    tsv->params = params;
    if (lr_output_open(&tsv->output, params->path, params->log) != LR_OK) {
        free(tsv);
        return NULL;
    }
    (void)lr_output_write(&tsv->output, header, strlen(header)); /* finish reports a failure */
    return tsv;
}

static void row_centre(const lr_matrix_writer_params *params, int64_t row, double centre_mm[3])
{
    if (params->grid != NULL) {
        lr_grid_voxel_centre(params->grid, row, centre_mm);
        return;
    }
    memcpy(centre_mm, params->points_mm[row], 3 * sizeof(double));
}

/* "row x y z" of a voxel or point. */
static void format_start(const struct tsv *tsv, int64_t row, char start[128])
{
    double centre[3];
    row_centre(tsv->params, row, centre);
    snprintf(start, 128, "%lld\t%.9g\t%.9g\t%.9g", (long long)row, centre[0], centre[1], centre[2]);
}

static lr_status write_element(struct tsv *tsv, const char *start, int64_t number, double value)
{
    char line[320];
    const lr_lor lor = lr_lors_describe(tsv->params->lors, number);
    const int length = snprintf(line, sizeof(line), "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.9g\n", start, lor.module_i, lor.p,
                                lor.q, lor.module_j, lor.r, lor.s, value);
    return lr_output_write(&tsv->output, line, (size_t)length);
}

static lr_status write_row(struct tsv *tsv, const lr_row *row)
{
    const bool by_lor = tsv->params->by_lor;
    char start[128];
    if (!by_lor) format_start(tsv, row->row, start);
    for (int64_t n = 0; n < row->count; n++) {
        if (by_lor) format_start(tsv, row->lor[n], start);
        LR_TRY(write_element(tsv, start, by_lor ? row->row : row->lor[n], row->probability[n]));
    }
    return LR_OK;
}

static lr_status take(void *self, const lr_row *row)
{
    struct tsv *tsv = self;
    const struct lr_c_locale locale = lr_c_locale_enter();
    const lr_status status = write_row(tsv, row);
    lr_c_locale_leave(locale);
    return status;
}

static lr_status finish(void *self)
{
    struct tsv *tsv = self;
    const lr_status status = lr_output_finish(&tsv->output);
    free(tsv);
    return status;
}

static void abandon(void *self)
{
    struct tsv *tsv = self;
    lr_output_abandon(&tsv->output);
    free(tsv);
}

const struct lr_matrix_fns lr_matrix_tsv_fns = {take, finish, abandon};
