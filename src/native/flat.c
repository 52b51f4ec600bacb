/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Modules that are parallel across: tau is the same for every strip of a column, and so are the
 * overlaps along the axis. They are listed once, without the empty ones, and weighted strip by
 * strip. */
#include "base/log.h"
#include "base/mem.h"
#include "native/element.h"
#include "native/visit.h"

#include <stdlib.h>

void lr_native_flat_finish(struct lr_native_flat *flat)
{
    free(flat->y);
    free(flat->height);
    free(flat->offset);
    free(flat->begin);
    *flat = (struct lr_native_flat){.key.pair = -1};
}

static lr_status reserve(struct lr_native_flat *flat, const struct lr_native_flat_key *key,
                         const struct lr_native_axial *axial, const lr_log *log)
{
    const int64_t overlaps = 2 * ((int64_t)axial->num_a * key->parts + axial->num_b);
    const int64_t capacity = key->count * (overlaps + LR_NATIVE_LANES);
    if (capacity <= flat->capacity && key->count <= flat->num_points) return LR_OK;
    lr_native_flat_finish(flat);
    flat->y = lr_alloc(capacity, sizeof(*flat->y), "overlaps", log);
    flat->height = lr_alloc(capacity, sizeof(*flat->height), "overlaps", log);
    flat->offset = lr_alloc(capacity, sizeof(*flat->offset), "overlaps", log);
    flat->begin = lr_alloc(key->count + 1, sizeof(*flat->begin), "overlaps", log);
    if (!flat->y || !flat->height || !flat->offset || !flat->begin) {
        lr_native_flat_finish(flat);
        return LR_FAILED;
    }
    flat->capacity = capacity;
    flat->num_points = key->count;
    return LR_OK;
}

/* Lists the overlaps of primary cell q from place `next` on. Returns the place behind them. */
static int add_cell(struct lr_native_flat *flat, const struct lr_native_axial *axial,
                    const struct lr_native_starts *starts, const int at[2])
{
    const struct lr_native_strip strip = {.tau = (float)flat->key.tau};
    const int q = at[1];
    const float middle = (float)q * axial->pitch_a + axial->middle_a;
    const float thin = LR_NATIVE_THIN * axial->half_a, shadow = axial->pitch_b * strip.tau;
    const float low = (starts->base - middle - axial->half_a) / shadow;
    const float high = (starts->base - middle + axial->half_a) / shadow;
    const float last = (float)(axial->num_b - 1);
    const int begin = (int)lr_native_clamp(low - 1e-3f, 0.0f, last);
    const int end = (int)lr_native_clamp(high + 1e-3f, 0.0f, last);
    int next = at[0];
    for (int s = begin; s <= end; s++) {
        const float place[2] = {middle, (float)s * axial->pitch_b + axial->gap_b};
        const struct lr_native_overlap overlap = lr_native_straight_overlap(&strip, axial, starts, place);
        if (overlap.height > thin) {
            flat->y[next] = overlap.y;
            flat->height[next] = overlap.height;
            flat->offset[next++] = q * axial->stride_a + s * axial->stride_b;
        }
    }
    return next;
}

static int add_point(struct lr_native_flat *flat, const struct lr_native_axial *axials, int k, int next)
{
    const struct lr_native_flat_key *key = &flat->key;
    const struct lr_native_strip strip = {.tau_exactly = key->tau};
    const double z = key->along[k];
    const struct lr_native_starts starts =
        lr_native_start(&strip, (const double[2]){key->starts[0] - z, key->starts[1] - z});
    for (int q = 0; q < axials->num_a; q++)
        for (int n = 0; n < key->parts; n++) next = add_cell(flat, &axials[n], &starts, (const int[2]){next, q});
    while (next % LR_NATIVE_LANES != 0) {
        flat->y[next] = flat->height[next] = 0.0f;
        flat->offset[next++] = 0;
    }
    return next;
}

static bool same_key(const struct lr_native_flat_key *a, const struct lr_native_flat_key *b)
{
    return a->pair == b->pair && a->i_is_primary == b->i_is_primary && a->tau == b->tau && a->parts == b->parts &&
           a->along == b->along && a->count == b->count;
}

lr_status lr_native_flat_fill(struct lr_native_flat *flat, const struct lr_native_flat_key *key,
                              const struct lr_native_axial *axials, const lr_log *log)
{
    if (same_key(&flat->key, key)) return LR_OK;
    LR_TRY(reserve(flat, key, axials, log));
    flat->key = *key;
    int next = 0;
    for (int k = 0; k < key->count; k++) {
        flat->begin[k] = next;
        next = add_point(flat, axials, k, next);
    }
    flat->begin[key->count] = next;
    return LR_OK;
}

int lr_native_flat_weigh(const struct lr_native_view *view, const struct lr_native_strip *strip, int k,
                         const int32_t **offset)
{
    const struct lr_native_flat *flat = &view->flat;
    const int begin = flat->begin[k], count = flat->begin[k + 1] - begin;
    const float *overlaps[2] = {flat->y + begin, flat->height + begin};
    *offset = flat->offset + begin;
    view->kernels->straight(strip, overlaps, count, view->slots.weight);
    return count;
}
