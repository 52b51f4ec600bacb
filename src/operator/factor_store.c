/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/factor_store.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct lr_stored_factors {
    bool is_all;
    lr_selection selection; /* its lists are owned */
    lr_vector factors;
};

static const char *const what = "factors of LORs";

/* --- selections --- */

static bool is_same_list(const void *one, const void *other, int64_t count, size_t size)
{
    return (one == NULL) == (other == NULL) && (one == NULL || memcmp(one, other, (size_t)count * size) == 0);
}

static bool is_of(const struct lr_stored_factors *stored, const lr_selection *selection)
{
    if (selection == NULL || stored->is_all) return selection == NULL && stored->is_all;
    const lr_selection *own = &stored->selection;
    return own->num_lors == selection->num_lors && own->num_pairs == selection->num_pairs &&
           is_same_list(own->lors, selection->lors, own->num_lors, sizeof(*own->lors)) &&
           is_same_list(own->pairs, selection->pairs, own->num_pairs, sizeof(*own->pairs));
}

static void *copy_list(const void *list, int64_t count, size_t size, const lr_log *log)
{
    void *copy = lr_alloc(count, size, what, log);
    if (copy != NULL) memcpy(copy, list, (size_t)count * size);
    return copy;
}

static void free_lists(lr_selection *selection)
{
    free((void *)(uintptr_t)selection->lors);
    free((void *)(uintptr_t)selection->pairs);
}

static lr_status copy_selection(const lr_selection *from, lr_selection *to, const lr_log *log)
{
    *to = (lr_selection){.num_lors = from->num_lors, .num_pairs = from->num_pairs};
    to->lors = from->lors ? copy_list(from->lors, from->num_lors, sizeof(*from->lors), log) : NULL;
    to->pairs = from->pairs ? copy_list(from->pairs, from->num_pairs, sizeof(*from->pairs), log) : NULL;
    if ((from->lors != NULL) != (to->lors != NULL) || (from->pairs != NULL) != (to->pairs != NULL)) {
        free_lists(to);
        return LR_FAILED;
    }
    return LR_OK;
}

/* --- the store --- */

static double bytes_of(const lr_vector *vector)
{
    const size_t size = vector->precision == LR_FLOAT64 ? sizeof(double) : sizeof(float);
    return (double)vector->count * (double)size;
}

static bool is_there(const lr_vector *stored, const lr_vector *like)
{
    const bool on_host = stored->values != NULL && like->values != NULL;
    const bool on_device = stored->values == NULL && like->values == NULL && stored->place == like->place;
    return (on_host || on_device) && stored->precision == like->precision;
}

const lr_vector *lr_factor_store_find(const struct lr_factor_store *store, const lr_selection *selection,
                                      const lr_vector *like)
{
    for (int k = 0; k < store->count; k++)
        if (is_there(&store->list[k].factors, like) && is_of(&store->list[k], selection))
            return &store->list[k].factors;
    return NULL;
}

bool lr_factor_store_has_room(const struct lr_factor_store *store, const lr_vector *like, int64_t limit_bytes)
{
    const int64_t device = like->values == NULL ? lr_place_get_info(like->place).memory_bytes : 0;
    const double most = device > 0 ? (double)device / 8.0 : ((double)lr_available_memory() + store->bytes) / 4.0;
    const double limit = limit_bytes > 0 ? fmin(most, (double)limit_bytes) : most;
    return store->bytes + bytes_of(like) <= limit;
}

lr_status lr_factor_store_add(struct lr_factor_store *store, const lr_selection *selection, const lr_vector *factors,
                              const lr_log *log)
{
    struct lr_stored_factors added = {.is_all = selection == NULL, .factors = *factors};
    struct lr_stored_factors *list = lr_resize(store->list, store->count + 1, sizeof(*list), what, log);
    if (list == NULL) return LR_FAILED;
    store->list = list;
    if (selection != NULL) {
        const lr_status status = copy_selection(selection, &added.selection, log);
        if (status != LR_OK) return status;
    }
    list[store->count++] = added;
    store->bytes += bytes_of(factors) + (double)added.selection.num_lors * sizeof(int64_t);
    return LR_OK;
}

void lr_factor_store_finish(struct lr_factor_store *store)
{
    for (int k = 0; k < store->count; k++) {
        free_lists(&store->list[k].selection);
        lr_vector_destroy(&store->list[k].factors);
    }
    free(store->list);
    *store = (struct lr_factor_store){0};
}
