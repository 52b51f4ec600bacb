/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "direct/kernels.h"

#include "direct/resolution.h"

int lr_direct_count_rows(const struct lr_direct_shape *shape)
{
    const lr_resolution *resolution = &shape->resolution;
    const bool is_one = resolution->model == LR_RADIAL_INVARIANT && lr_resolution_is_symmetric(resolution);
    return is_one ? 1 : shape->info.num_kernels;
}

void lr_direct_describe_kernel(const struct lr_direct_shape *shape, int kernel, double described[2])
{
    described[0] =
        lr_sigma_of(lr_resolution_radial_mm(&shape->resolution, lr_direct_kernel_distance_mm(shape, kernel)));
    described[1] = lr_direct_kernel_is_mirrored(shape, kernel) ? -1 : 1;
}

int lr_direct_count_samples(const struct lr_direct_shape *shape)
{
    const lr_resolution *resolution = &shape->resolution;
    return resolution->model == LR_RADIAL_MEASURED ? resolution->measured->num_offsets : 0;
}

void lr_direct_list_samples(const struct lr_direct_shape *shape, float *samples)
{
    const lr_radial_profiles *measured = shape->resolution.measured;
    const int64_t count = lr_direct_count_samples(shape);
    for (int64_t k = 0; k < count * shape->info.num_kernels; k++) {
        samples[k] =
            (float)lr_radial_profiles_at(measured, lr_direct_kernel_distance_mm(shape, (int)(k / count)),
                                         measured->first_offset_mm + (double)(k % count) * measured->offset_step_mm);
    }
}
