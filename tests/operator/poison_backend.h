/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The cpu backend behind a wall: it is given copies that end where the array ends and are freed
 * after the call, its outputs start as NaN, and rows are wiped once the sink has seen them. Whoever
 * counts on zeroed outputs, keeps a row or reads past an end fails the laws, or the sanitizer. */
#ifndef LR_TEST_POISON_BACKEND_H
#define LR_TEST_POISON_BACKEND_H

#include "operator/facade.h"

lr_status poison_create(const struct lr_backend_params *params, struct lr_backend *backend);

#endif
