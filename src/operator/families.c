/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The end of what operators of single families have beside others. */
#include "operator/direct_facade.h"
#include "operator/listmode_facade.h"

#include "vector/place.h"

#include <lr/vector.h>
#include <stdlib.h>

void lr_direct_family_destroy(struct lr_direct_family *family)
{
    if (family != NULL) {
        lr_vector_destroy(&family->timed);
        free(family->offsets);
        free(family->views);
        free(family);
    }
}

void lr_listmode_family_destroy(struct lr_listmode_family *family)
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
