/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A backend whose matrix elements are a hash of voxel and LOR, for tests of the code around backends. */
#pragma once

#include "operator/facade.h"

/* Element of the matrix: 0 for about three of four, otherwise from 0 to 1e-3. */
double fake_element(int64_t lor, int64_t row);

/* Backends with this matrix, in float and in double, without pictures. The row of a point is the voxel row with the
 * same index. */
lr_status fake_float_create(const struct lr_backend_params *params, struct lr_backend *backend);
lr_status fake_double_create(const struct lr_backend_params *params, struct lr_backend *backend);
