/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The cpu backend with poisoned memory. The backend gets copies of the arrays, which end exactly where the array ends
 * and are freed after the call. Its outputs start as NaN, and rows are overwritten once the sink has seen them. Code
 * that relies on zeroed outputs, keeps a row or reads past an end fails the laws or the sanitizer. */
#pragma once

#include "operator/facade.h"

lr_status poison_create(const struct lr_backend_params *params, struct lr_backend *backend);
