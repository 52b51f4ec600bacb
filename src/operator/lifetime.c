/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The end of operators and of what their families hold, and vectors at an operator's place. */
#include "operator/facade.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "listmode/line.h"
#include "model/lors/pair_window.h"
#include "operator/families.h"
#include "operator/updates.h"
#include "plugin/plugin.h"
#include "vector/place.h"

#include <lr/direct.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Call it after the backend is destroyed; NULL is allowed. */
static void direct_family_destroy(struct lr_direct_family *family)
{
    if (family != NULL) {
        lr_vector_destroy(&family->timed);
        free(family->offsets);
        free(family->views);
        free(family);
    }
}

/* Call it after the backend is destroyed; NULL is allowed. */
static void listmode_family_destroy(struct lr_listmode_family *family)
{
    if (family != NULL) {
        lr_listmode_events_finish(&family->events);
        lr_listmode_model_finish(&family->model);
        lr_listmode_model_finish(&family->second);
        free(family->event_factors);
        lr_place_silence(family->place);
        lr_place_close(family->place);
        free(family);
    }
}

void lr_operator_destroy(lr_operator *op)
{
    if (op == NULL) return;
    lr_psf_finish(&op->psf);
    lr_factor_store_finish(&op->factor_store); /* at the backend's place, which goes next */
    if (op->backend.fns != NULL) op->backend.fns->destroy(op->backend.self);
    direct_family_destroy(op->direct);
    listmode_family_destroy(op->listmode);
    pthread_mutex_destroy(&op->log_filter.mutex);

    free(op->sensitivity);
    free(op);
}

lr_status lr_make_numbers(const struct lr_operator *op, const char *name, int64_t count, lr_vector *vector)
{
    return lr_vector_create(
        &(lr_vector_params){.count = count, .precision = lr_precision_of(op), .name = name, .log = op->params.log},
        vector);
}
