/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Backends for tests of the code around backends. */
#pragma once

#include "operator/facade.h"

/* Element of a matrix that is a hash of voxel and LOR: 0 for about three of four, otherwise from 0 to 1e-3. */
double fake_element(int64_t lor, int64_t row);

/* Backends with this matrix, in float and in double, without pictures. The row of a point is the voxel row with the
 * same index. */
lr_status fake_float_create(const struct lr_backend_params *params, struct lr_backend *backend);
lr_status fake_double_create(const struct lr_backend_params *params, struct lr_backend *backend);

/* The cpu backend with poisoned memory. The backend gets copies of the arrays, which end exactly where the array ends
 * and are freed after the call. Its outputs start as NaN, and rows are overwritten once the sink has seen them. Code
 * that relies on zeroed outputs, keeps a row or reads past an end fails the laws or the sanitizer. */
lr_status poison_create(const struct lr_backend_params *params, struct lr_backend *backend);
