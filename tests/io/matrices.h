/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Help for the tests of matrix files: a grid, and writers of a file of its rows. */
#pragma once

#include "io/matrix/writer.h"
#include "io/scanners.h"

#define PATH "tested.matrix"

static lr_grid grid;

/* A file of all rows of the grid. */
static inline lr_matrix_writer_params params_of(lr_matrix_format format)
{
    lr_matrix_writer_params params = {.path = PATH, .format = format, .lors = files.lors, .grid = &grid};
    params.end = lr_grid_num_voxels(&grid);
    params.description = "exact";
    params.log = &files.log.log;
    return params;
}

static inline lr_matrix_writer *writer_of(const lr_matrix_writer_params *params)
{
    lr_matrix_writer *writer = non_null(lr_matrix_writer_create(params));
    return writer;
}
