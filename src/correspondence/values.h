/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LOR values on the device: the values of other parts' LORs are set to 0, and sums are computed in fixed point. Vectors
 * are in float32. The context must be current. */
#pragma once

#include "gl/pass.h"
#include "gl/vectors.h"
#include "operator/backend.h"

/* --- values of LORs of other parts --- */

/* The program that sets values to 0, and its table of modules. The caller sets the struct to zero before the first
 * use. */
struct lr_blanks {
    struct gl_program *program;
    struct gl_buffer *modules;
};
void lr_blanks_finish(struct lr_blanks *blanks);

/* Sets the values of LORs of other parts to 0 on the device. lr_selection_blank does the same on the host. values: at
 * an OpenGL place, whose context is current. errors: LR_FAILED. */
lr_status lr_blanks_run(struct lr_blanks *blanks, const lr_lors *lors, const lr_selection *part, lr_vector *values);

/* --- sums in fixed point --- */

/* Sums in fixed point on the device: shaders/common/fixed.glsl. They do not depend on the order of their terms. The
 * error of a term is its rounding to float plus at most 2^(exponent - 62). Sums and terms with an absolute value of
 * 2^(exponent + 2) or more overflow. */

struct lr_fixed {
    struct gl_buffer *buffer;
    int64_t count;
    int exponent; /* the integer 2^61 on the device has the value 2^exponent */
    double unit;  /* the value of the integer 1 on the device */
    bool overflowed;
};

/* LR_FIXED_BYTES: bytes of one sum on the device. LR_FIXED_STEP: the number that is added to the exponent after an
 * overflow. */
enum { LR_FIXED_BYTES = 8, LR_FIXED_STEP = 8 };

/* Returns how many sums fit into the memory of `floats` floats, but at least 1. */
int64_t lr_fixed_most(int64_t floats);

/* Creates `count` sums, all of them zero. errors: LR_FAILED; *fixed is then empty. */
lr_status lr_fixed_init(struct lr_fixed *fixed, struct gl_context *ctx, int64_t count, int exponent);
void lr_fixed_finish(struct lr_fixed *fixed);

/* Sets *overflowed to true if a sum was too large. The caller then repeats all sums with a larger exponent. */
lr_status lr_fixed_overflowed(const struct lr_fixed *fixed, bool *overflowed);

/* Reads the sums as floats. values: [count]. */
lr_status lr_fixed_read(const struct lr_fixed *fixed, float *values);

/* Returns the smallest exponent whose power of two is larger than all finite absolute values. */
int lr_fixed_exponent(const float *values, int64_t count);

/* Finds an exponent for a forward projection of an image. The exponent is for the sum of the voxels' absolute values,
 * times a generous estimate of the largest element. The estimate is the element of a crystal seen from the midpoint
 * between the two nearest modules that have LORs. */
int lr_fixed_sum_exponent(const struct lr_backend_params *params, const float *image);
