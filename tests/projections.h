/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections and reconstructions of plain arrays. */
#pragma once

#include <lr/lr.h>

static inline int64_t test_num_voxels(const lr_operator *op)
{
    return lr_operator_get_info(op)->num_voxels;
}

/* Returns the number of values of a part (NULL: all LORs), even of a part that an operator would refuse. */
static inline int64_t test_num_values(const lr_operator *op, const lr_selection *part)
{
    const lr_lors *lors = lr_operator_get_info(op)->lors;
    return part != NULL ? lr_selection_count(lors, part) : lors->count;
}

static inline lr_status array_forward_part(lr_operator *op, const lr_selection *part, const float *image, float *values)
{
    const lr_vector x = lr_vector_of_floats(image, test_num_voxels(op));
    lr_vector y = lr_vector_of_floats(values, test_num_values(op, part));
    return lr_operator_forward(op, part, &x, &y);
}

static inline lr_status array_back_part(lr_operator *op, const lr_selection *part, const float *values, float *image)
{
    const lr_vector y = lr_vector_of_floats(values, test_num_values(op, part));
    lr_vector x = lr_vector_of_floats(image, test_num_voxels(op));
    return lr_operator_back(op, part, &y, &x);
}

static inline lr_status array_forward(lr_operator *op, const float *image, float *data)
{
    return array_forward_part(op, NULL, image, data);
}

static inline lr_status array_back(lr_operator *op, const float *data, float *image)
{
    return array_back_part(op, NULL, data, image);
}

static inline lr_status array_forward_f64(lr_operator *op, const double *image, double *data)
{
    const lr_vector x = lr_vector_of_doubles(image, test_num_voxels(op));
    lr_vector y = lr_vector_of_doubles(data, test_num_values(op, NULL));
    return lr_operator_forward(op, NULL, &x, &y);
}

static inline lr_status array_back_f64(lr_operator *op, const double *data, double *image)
{
    const lr_vector y = lr_vector_of_doubles(data, test_num_values(op, NULL));
    lr_vector x = lr_vector_of_doubles(image, test_num_voxels(op));
    return lr_operator_back(op, NULL, &y, &x);
}

static inline lr_status array_sensitivity_part(lr_operator *op, const lr_selection *part, float *image)
{
    lr_vector x = lr_vector_of_floats(image, test_num_voxels(op));
    return lr_operator_sensitivity(op, part, &x);
}

static inline lr_status array_sensitivity(lr_operator *op, float *image)
{
    return array_sensitivity_part(op, NULL, image);
}

static inline lr_status array_osem(const lr_osem_params *params, float *image)
{
    lr_vector x = lr_vector_of_floats(image, params->op != NULL ? test_num_voxels(params->op) : 0);
    return lr_osem(params, &x);
}

static inline lr_status array_mlem(const lr_mlem_params *params, float *image)
{
    lr_vector x = lr_vector_of_floats(image, params->op != NULL ? test_num_voxels(params->op) : 0);
    return lr_mlem(params, &x);
}
