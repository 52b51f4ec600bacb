/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Laws that operators of every family obey, for every backend, for vectors at any place and in either precision. Link
 * laws.c. */
#ifndef LR_TEST_OPERATOR_LAWS_H
#define LR_TEST_OPERATOR_LAWS_H

#include "test.h"

/* A place of vectors. */
struct law_place {
    const char *name;
    lr_place *place;        /* NULL = the host */
    struct gl_context *ctx; /* OpenGL: the caller's, which the place shares objects with; NULL = with
                               none, so that nothing can be wrapped */
};

/* An operator that is asked. */
struct law_subject {
    const char *name;
    lr_operator *op;
    double rounding; /* of its projections, relative to the norm of a result: of its arithmetic, and of
                        elements that do not repeat to the bit */
};

/* Fails with a sentence: adjoint; linear; parts of pairs and of single LORs add up to the whole, and so do
 * their sensitivities, which are A^T 1 but where LORs stand for events; wrapped vectors give what owned ones
 * do; numbers that are not finite are refused; and all numbers are those of doubles on the host. Nothing
 * is written around a part of a longer vector, which begins where no driver aligns. */
void laws_check(const struct law_subject *subject, const struct law_place *place, lr_precision precision);

#endif
