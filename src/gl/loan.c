/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/loan.h"

#include "base/log.h"
#include "gl/context_private.h"

lr_status gl_loan_check(const struct gl_context *ctx, const struct gl_loan *loan, const char *label)
{
    if (loan == NULL || !loan->is_out) return LR_OK;
    return lr_error(ctx->log, LR_USAGE, "%s is out on a loan: OpenGL may use it when it is back", label);
}

void gl_loan_end(struct gl_loan *loan)
{
    if (loan != NULL) loan->end(loan);
}
