/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Ranges of values as passes see them, and the scale of their sums. */
#include "listmode/compute/listmode.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "gl/context.h"
#include "gl/vectors.h"
#include "model/lors/selection.h"

#include <math.h>

/* A sum has 64 bits: one is its sign, and one is a reserve. The largest term has TERM_BITS. It has fewer bits if
 * there are so many terms that their sum would not fit. */
enum { SUM_BITS = 62, TERM_BITS = 44 };

/* EXPONENT_OF_1: the exponent of 1 in a float. LARGE_SHARE: one of this many values may be larger than usual. */
enum { EXPONENT_OF_1 = 127, LARGE_SHARE = 32 };

/* --- images and values --- */

struct gl_range lr_listmode_align(const struct lr_listmode_projection *p, const struct lr_listmode_values *values,
                                  const int64_t floats[2], int64_t *first)
{
    const int64_t size = (int64_t)sizeof(float), alignment = gl_context_limits(p->compute->ctx)->storage_alignment;
    const int64_t begin = values->offset + floats[0] * size;
    const int64_t aligned = begin / alignment * alignment;
    *first = (begin - aligned) / size;
    return (struct gl_range){values->buffer, aligned, begin - aligned + (floats[1] - floats[0]) * size};
}

/* The largest number of values that one pass can bind. */
static int64_t most_values(const struct lr_listmode_projection *p)
{
    const struct gl_limits *limits = gl_context_limits(p->compute->ctx);
    const int64_t bytes = limits->max_storage_bytes - limits->storage_alignment;
    const int64_t most = bytes / (int64_t)sizeof(float);
    return most < INT32_MAX / 2 ? most : INT32_MAX / 2;
}

struct lr_listmode_values lr_listmode_image(const struct lr_listmode_projection *p, const lr_vector *image)
{
    if (image->values != NULL) return (struct lr_listmode_values){p->compute->image, 0, false};
    const struct lr_vector_range range = lr_vector_gl_range(image);
    return (struct lr_listmode_values){range.buffer, range.offset, false};
}

/* --- ranges --- */

lr_status lr_listmode_take_range(struct lr_listmode_projection *p, int64_t r, lr_listmode_range_fn *take)
{
    const struct gl_limits *limits = gl_context_limits(p->compute->ctx);
    const int64_t *offsets = p->compute->params.events->offsets;
    const int64_t bytes = (offsets[r + 1] - offsets[r]) * (int64_t)sizeof(int32_t);
    gl_buffer_destroy(p->map);
    p->map = NULL;
    if (p->places.map != NULL && bytes > limits->max_storage_bytes) {
        return lr_error(p->compute->params.log, LR_FAILED,
                        "range %lld has %lld events, of which %s cannot pick single ones: make "
                        "more ranges, or take backend native",
                        (long long)r, (long long)(offsets[r + 1] - offsets[r]), limits->renderer);
    }
    if (p->places.map != NULL) {
        p->map = lr_data_buffer(p->compute->ctx, "places of a part", bytes, p->places.map);
        if (p->map == NULL) return LR_FAILED;
    }
    for (int64_t begin = 0; begin < p->places.count; begin += most_values(p)) {
        const int64_t most = most_values(p), left = p->places.count - begin;
        const int64_t end = begin + (left < most ? left : most);
        const int64_t floats[2] = {p->places.position + begin, p->places.position + end};
        p->selected = (struct lr_listmode_selected){
            .places = &p->places, .map = p->map, .window = {begin, end}, .only_large = p->only_large};
        if (p->values.buffer != NULL)
            p->selected.values = lr_listmode_align(p, &p->values, floats, &p->selected.values_first);
        LR_TRY(take(p, r));
    }
    return LR_OK;
}

lr_status lr_listmode_each_range(struct lr_listmode_projection *p, lr_listmode_range_fn *take)
{
    const struct lr_listmode_backend_params *params = &p->compute->params;
    lr_status status = LR_OK;
    for (int64_t r = 0; status == LR_OK && r < params->events->layout.num_pairs; r++) {
        status = lr_listmode_places_find(&p->places, params->events, p->part, r, params->log);
        status = status == LR_OK && p->places.count > 0 ? lr_listmode_take_range(p, r, take) : status;
    }
    return status;
}

/* --- scale of sums --- */

/* Finds the unit of sums. Every event may add a term to a sum. The element's exponent is such that 2^exponent
 * exceeds the largest element by a quarter or more. */
void lr_listmode_find_unit(const struct lr_listmode_projection *p, struct lr_listmode_pass *uniforms)
{
    int events_exponent, element_exponent = p->compute->exact.exponent;
    frexp(p->total, &events_exponent);
    if (!lr_listmode_is_exact(p->compute)) {
        double largest = 0;
        for (int g = 0; g < LR_LISTMODE_GROUPS; g++) largest = fmax(largest, p->compute->largest_elements[g]);
        frexp(1.25 * largest, &element_exponent);
    }
    const int most = SUM_BITS - events_exponent;
    const int near_bits = lr_listmode_is_exact(p->compute) ? LR_EVENTS_EXACT_NEAR : 0;
    const int usual = TERM_BITS + p->compute->exact.point_bits + near_bits;
    uniforms->unit[0] = (float)(most < usual ? most : usual);
    uniforms->unit[1] = (float)element_exponent;
}

lr_status lr_listmode_find_usual(struct lr_listmode_projection *p, const lr_vector *values)
{
    const uint32_t ones[3] = {0, EXPONENT_OF_1, EXPONENT_OF_1};
    gl_buffer_clear(p->compute->scale, 0);
    if (values == NULL) return gl_buffer_upload(p->compute->scale, 0, sizeof(ones), ones);

    /* Counts the values by exponent. */
    const int64_t most = most_values(p), count = values->count;
    for (int64_t at = 0; at < count; at += most) {
        const int64_t floats[2] = {at, at + most < count ? at + most : count};
        const int groups = gl_divide_up(floats[1] - floats[0], LR_EVENTS_GROUP);
        struct lr_listmode_pass sizes = {.size = {0, 0, 0, (int32_t)(floats[1] - floats[0])}};
        struct gl_pass counting = {
            .groups = {groups < LR_LISTMODE_MOST_GROUPS ? groups : LR_LISTMODE_MOST_GROUPS, 1, 1}};
        int64_t first;
        counting.buffers[LR_BIND_LIST_VALUES] = lr_listmode_align(p, &p->values, floats, &first);
        counting.buffers[LR_BIND_LIST_SCALE].buffer = p->compute->scale;
        sizes.window[3] = (int32_t)first;
        LR_TRY(lr_listmode_run(p->compute, LR_LISTMODE_EXPONENTS, &sizes, &counting));
    }

    const struct lr_listmode_pass uniforms = {.size = {0, 0, 0, (int32_t)(1 + values->count / LARGE_SHARE)},
                                              .window = {lr_listmode_is_exact(p->compute) ? LR_EVENTS_EXACT_NEAR : 0}};
    struct gl_pass pass = {.groups = {1, 1, 1}};
    pass.buffers[LR_BIND_LIST_SCALE].buffer = p->compute->scale;
    return lr_listmode_run(p->compute, LR_LISTMODE_USUAL, &uniforms, &pass);
}
