/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images that stay on the device: checked here, done by the backend. */
#include "base/log.h"
#include "base/mem.h"
#include "model/selection.h"
#include "operator/project.h"
#include "operator/scaling.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SLOTS = 65536 };

bool lr_operator_keeps_images(const lr_operator *op)
{
    return op->backend.fns->kept != NULL;
}

static lr_status check_kept(const struct lr_operator *op, int slot)
{
    if (op->backend.fns->kept == NULL) {
        return lr_error(op->params.log, LR_USAGE,
                        "this operator of backend %s keeps no image on the device: ask "
                        "lr_operator_keeps_images first",
                        op->info.backend);
    }
    if (slot < 0 || slot >= MOST_SLOTS) {
        return lr_error(op->params.log, LR_USAGE, "slot %d: there are %d, from 0 on", slot,
                        MOST_SLOTS);
    }
    return LR_OK;
}

lr_status lr_operator_keep_image(lr_operator *op, int slot, const float *image)
{
    LR_TRY(check_kept(op, slot));
    const struct lr_side side = lr_image_side(op, image, false);
    if (lr_side_find_not_finite(&side) >= 0) {
        return lr_error(op->params.log, LR_BAD_INPUT,
                        "voxel %lld of an image to keep is not a finite number",
                        (long long)lr_side_find_not_finite(&side));
    }
    return op->backend.fns->kept->keep(op->backend.self, slot, image);
}

lr_status lr_operator_read_kept(lr_operator *op, float *image)
{
    LR_TRY(check_kept(op, 0));
    return op->backend.fns->kept->read(op->backend.self, image);
}

/* What the backend is asked for; *count: how many values that has. */
static lr_status settle_part(const struct lr_operator *op, const lr_selection *part,
                             const lr_selection **wanted, int64_t *count)
{
    LR_TRY(lr_selection_check(op->params.lors, part, op->params.log));
    *wanted = lr_selection_is_all(part) ? NULL : part;
    *count = lr_selection_count(op->params.lors, part);
    return LR_OK;
}

lr_status lr_operator_forward_kept(lr_operator *op, const lr_selection *part, float *values)
{
    const lr_selection *wanted;
    int64_t count;
    LR_TRY(check_kept(op, 0));
    LR_TRY(settle_part(op, part, &wanted, &count));
    if (count == 0) {
        return LR_OK;
    }
    LR_TRY(op->backend.fns->kept->forward(op->backend.self, wanted, values));
    struct lr_side side = lr_data_side(op, values, false);
    side.count = count;
    return lr_scaling_apply(op, wanted, &side);
}

/* With factors, of values that are ours. */
static lr_status update(const struct lr_operator *op, const lr_selection *part,
                        const struct lr_side *values, int slot)
{
    const struct lr_backend *backend = &op->backend;
    if (!lr_has_factors(op)) {
        return backend->fns->kept->update(backend->self, part, values->values, slot);
    }
    struct lr_side scaled = *values;
    LR_TRY(lr_side_alloc(&scaled, op->params.log));
    lr_side_copy(values, &scaled);
    lr_status status = lr_scaling_apply(op, part, &scaled);
    if (status == LR_OK) {
        status = backend->fns->kept->update(backend->self, part, scaled.values, slot);
    }
    free(scaled.values);
    return status;
}

lr_status lr_operator_update_kept(lr_operator *op, const lr_selection *part, const float *values,
                                  int slot)
{
    const lr_selection *wanted;
    struct lr_side side = lr_data_side(op, values, false);
    LR_TRY(check_kept(op, slot));
    LR_TRY(settle_part(op, part, &wanted, &side.count));
    if (side.count == 0) {
        return lr_error(op->params.log, LR_USAGE, "an update by no LOR at all: select some");
    }
    if (lr_side_find_not_finite(&side) >= 0) {
        return lr_error(op->params.log, LR_BAD_INPUT,
                        "value %lld of an update is not a finite number",
                        (long long)lr_side_find_not_finite(&side));
    }
    return update(op, wanted, &side, slot);
}

lr_status lr_operator_sum_kept(lr_operator *op, int slot, lr_kept_sums *sums)
{
    LR_TRY(check_kept(op, slot));
    return op->backend.fns->kept->sum(op->backend.self, slot, sums);
}

lr_status lr_operator_copy_kept(lr_operator *op, lr_texture_copy *copy)
{
    LR_TRY(check_kept(op, 0));
    copy->done = NULL;
    if (op->params.shared == NULL) {
        return lr_error(op->params.log, LR_USAGE,
                        "the operator shares objects with no context: give one in `shared`");
    }
    return op->backend.fns->kept->copy(op->backend.self, copy);
}
