/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/tube.h"
#include "base/mem.h"
#include "native/listmode/frame.h"

/* Entries for a Gaussian: linear in between they are good to 1e-6 of its peak for cylinders of up to 9
 * FWHM. */
enum { GAUSSIAN_ENTRIES = 4096 };

/* Shares of a slice at most, whichever two axes are across. */
static int64_t most_shares(const struct lr_listmode_model *model)
{
    int64_t most = 0;
    for (int axis = 0; axis < 3; axis++) {
        int64_t shares = 1;
        for (int k = 0; k < 3; k++) shares *= k != axis ? (int64_t)(2.0 * lr_native_listmode_reach(model, k)) + 1 : 1;
        most = shares > most ? shares : most;
    }
    return most + LR_NATIVE_LISTMODE_LANES;
}

lr_status lr_native_tube_init(struct lr_native_tube *tube, const struct lr_listmode_model *model, const lr_log *log)
{
    *tube = (struct lr_native_tube){0};
    if (model->kernel != LR_LISTMODE_TUBE) return LR_OK;
    const double half = 0.5 * model->tube.width_mm;
    tube->last = (model->tube.table != NULL ? model->tube.table_count : GAUSSIAN_ENTRIES) - 1;
    tube->rim = (float)lr_listmode_rim(&model->tube);
    tube->fall = (float)((1.0 + LR_LISTMODE_RIM) / (LR_LISTMODE_RIM * lr_listmode_rim(&model->tube)));
    tube->scale = (float)(tube->last / half);
    tube->capacity = most_shares(model);
    tube->table = lr_alloc((int64_t)tube->last + 2, sizeof(*tube->table), "the tube's table", log);
    if (tube->table == NULL) return LR_FAILED;
    for (int k = 0; k <= tube->last + 1; k++)
        tube->table[k] = (float)lr_listmode_tube_value(&model->tube, half * k / tube->last);
    return LR_OK;
}
