/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_GL_LOAN_H
#define LR_GL_LOAN_H

#include "gl/context.h"

/* What another interface, such as CUDA, holds of a texture or buffer. While it is out, passes and
 * transfers refuse the object with LR_USAGE; destroying the object ends it. */
struct gl_loan {
    bool is_out;
    void (*end)(struct gl_loan *loan);
};

/* Whether an object is not out on a loan (NULL = it never was); errors: LR_USAGE, logged. */
lr_status gl_loan_check(const struct gl_context *ctx, const struct gl_loan *loan, const char *label);

/* NULL is allowed. */
void gl_loan_end(struct gl_loan *loan);

#endif
