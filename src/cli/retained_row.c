/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "retained_row.h"

#include <stdlib.h>

lr_status retained_row_add(struct report *report, struct retained_row *row, int64_t lor, double probability)
{
    int64_t room = row->room;
    if (!common_grow(&row->lor, &room, row->count + 1, sizeof(*row->lor)) ||
        !common_grow(&row->probability, &row->room, row->count + 1, sizeof(*row->probability)))
        return report_error(report, LR_FAILED, "no memory for a row of %lld elements", (long long)row->count + 1);
    row->lor[row->count] = lor;
    row->probability[row->count++] = probability;
    return LR_OK;
}

/* Destination of a row. */
struct delivery {
    struct report *report;
    struct retained_row *row;
};

static lr_status take(void *user, const lr_row *delivered)
{
    const struct delivery *delivery = user;
    retained_row_finish(delivery->row);
    for (int64_t k = 0; k < delivered->count; k++)
        CLI_TRY(retained_row_add(delivery->report, delivery->row, delivered->lor[k], delivered->probability[k]));
    return LR_OK;
}

lr_status retained_row_take(const struct setup *setup, lr_operator *op, struct retained_row *row)
{
    *row = (struct retained_row){0};
    struct delivery delivery = {setup->report, row};
    const lr_status status = lr_operator_rows(op, 0, 1, &(lr_row_sink){take, &delivery});
    if (status != LR_OK) retained_row_finish(row);
    return status;
}

lr_status retained_row_restrict(const struct setup *setup, const struct retained_row *whole, int module,
                                struct retained_row *row)
{
    lr_status status = LR_OK;
    *row = (struct retained_row){0};
    for (int64_t k = 0; status == LR_OK && k < whole->count; k++)
        if (lr_lors_primary(setup->lors, whole->lor[k], setup->grid.origin_mm) == module)
            status = retained_row_add(setup->report, row, whole->lor[k], whole->probability[k]);
    if (status != LR_OK) retained_row_finish(row);
    return status;
}

lr_status retained_row_brightest(const struct setup *setup, const struct retained_row *row, int *module)
{
    double *weights = calloc((size_t)setup->scanner->num_modules, sizeof(*weights));
    if (weights == NULL)
        return report_error(setup->report, LR_FAILED, "no memory for %d modules", setup->scanner->num_modules);
    *module = 0;
    for (int64_t k = 0; k < row->count; k++)
        weights[lr_lors_primary(setup->lors, row->lor[k], setup->grid.origin_mm)] += row->probability[k];
    for (int m = 1; m < setup->scanner->num_modules; m++) *module = weights[m] > weights[*module] ? m : *module;
    free(weights);
    return LR_OK;
}

lr_row retained_row_view(const struct retained_row *row)
{
    return (lr_row){.count = row->count, .lor = row->lor, .probability = row->probability};
}

void retained_row_finish(struct retained_row *row)
{
    free(row->lor);
    free(row->probability);
    *row = (struct retained_row){0};
}
