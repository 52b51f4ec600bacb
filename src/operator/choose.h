/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Which backend is taken, and in which mode. */
#ifndef LR_OPERATOR_CHOOSE_H
#define LR_OPERATOR_CHOOSE_H

#include "operator/facade.h"

struct lr_choices {
    const struct lr_backend_choice *list;
    int count;
};

/* Creates op->backend from op->params and settles op->params.mode.
 *
 * name: a backend's, which is taken or refused with the names of those that could; or some, parted
 * by commas, of which the first that can be created is taken, and op->passed_over says why those
 * before it cannot; or NULL or "auto": of those that have what is asked for and find a device, the
 * first in the order of the list of those on graphics processors or on the processor's vector units;
 * then of those on a renderer in software; then the reference. Exact mode comes before sampled, unless
 * that is asked for. Nothing is timed: a graphics processor was 10 to 100 times as fast as
 * `native` on every scanner tried (docs/performance.md), and `native` faster than a renderer in
 * software.
 * Where "auto" takes the processor though a graphics processor was found, which
 * cannot do this, a warning and op->passed_over say why.
 * errors: LR_USAGE for a name or a wish that no backend has; LR_NO_DEVICE; what the backend says. */
lr_status lr_choose_backend(struct lr_operator *op, const char *name, const struct lr_choices *choices);

#endif
