/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Laws of operators for every family and backend, for vectors at any place and in either precision. Link laws.c. */
#pragma once

#include "test.h"

/* A place of vectors. */
struct law_place {
    const char *name;
    lr_place *place;        /* NULL = the host */
    struct gl_context *ctx; /* OpenGL: the caller's, sharing objects; NULL = nothing can be wrapped */
};

/* The operator under test. */
struct law_subject {
    const char *name;
    lr_operator *op;
    double rounding; /* of projections and elements, relative to the norm of a result */
};

/* Tests the laws, and fails with a message. The operator is adjoint and linear. Parts of pairs and of single
 * LORs add up to the whole, and so do their sensitivities, which are A^T 1 unless LORs stand for events. Wrapped
 * vectors give the same results as owned ones. Numbers that are not finite are refused. All results equal those
 * with doubles on the host. Vectors are parts of longer ones, at positions at which no driver aligns; nothing
 * outside the part is written. */
void laws_check(const struct law_subject *subject, const struct law_place *place, lr_precision precision);
