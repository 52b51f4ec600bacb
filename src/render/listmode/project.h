/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A projection under way, for the files that have parts of it. */
#ifndef LR_RENDER_LISTMODE_PROJECT_H
#define LR_RENDER_LISTMODE_PROJECT_H

#include "render/listmode/listmode.h"

/* Groups of passes whose threads take their turns. */
enum { LR_LISTMODE_TURN_GROUPS = 1024 };

/* Values of a call on the device; buffer NULL: 1 each. */
struct lr_listmode_values {
    struct gl_buffer *buffer;
    int64_t offset; /* bytes */
    bool is_ours;
};

struct lr_listmode_projection {
    struct lr_listmode_compute *compute;
    const lr_selection *part;
    const char *what;
    bool forward, only_large; /* only_large: looks for the terms of large values */
    struct lr_listmode_values values;
    int axis;                         /* at hand */
    struct lr_listmode_pass uniforms; /* of it */
    struct lr_listmode_places places; /* of the range at hand */
    struct gl_buffer *map;            /* of these, or NULL */
    struct lr_listmode_selected selected;
    double done, total; /* selected events */
};

/* A part of a buffer that begins where it may, and how many floats before the first one meant. */
struct gl_range lr_listmode_align(const struct lr_listmode_projection *p, const struct lr_listmode_values *values,
                                  const int64_t floats[2], int64_t *first);

/* An image in the grid's order, at the place or in compute->image. */
struct lr_listmode_values lr_listmode_image(const struct lr_listmode_projection *p, const lr_vector *image);

/* Bits and exponent of the sums of a projection, in uniforms->unit. */
void lr_listmode_find_unit(const struct lr_listmode_projection *p, struct lr_listmode_pass *uniforms);

/* What most values are below: fills compute->scale, but for the terms of the others. NULL: all are 1. */
lr_status lr_listmode_find_usual(struct lr_listmode_projection *p, const lr_vector *values);

/* Goes through the ranges that are selected, each under windows of its values. errors: also those of take. */
typedef lr_status lr_listmode_range_fn(struct lr_listmode_projection *p, int64_t r);
lr_status lr_listmode_each_range(struct lr_listmode_projection *p, lr_listmode_range_fn *take);

/* One of them, whose places are found. */
lr_status lr_listmode_take_range(struct lr_listmode_projection *p, int64_t r, lr_listmode_range_fn *take);

/* Of lines that are kept. */
lr_status lr_listmode_kept_forward(struct lr_listmode_projection *p, const lr_vector *image);
lr_status lr_listmode_kept_back(struct lr_listmode_projection *p, const lr_vector *values, const lr_vector *image);

#endif
