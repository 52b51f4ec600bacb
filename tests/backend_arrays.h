/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of all LORs by a backend alone, without an operator. */
#pragma once

#include "operator/backend.h"

static inline lr_status backend_forward(const struct lr_backend *backend, lr_vector image, lr_vector values)
{
    return backend->fns->project(backend->self, true, NULL, &image, &values);
}

static inline lr_status backend_back(const struct lr_backend *backend, lr_vector values, lr_vector image)
{
    return backend->fns->project(backend->self, false, NULL, &values, &image);
}
