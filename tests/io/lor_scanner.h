/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The small ring whose LORs the tests of HDF5 files store. */
#ifndef LR_TEST_IO_LOR_SCANNER_H
#define LR_TEST_IO_LOR_SCANNER_H

#include "test.h"

/* Six modules of 3 x 2 crystals around; neighbours are not in coincidence. */
static inline lr_scanner *small_ring(double radius_mm, double field_of_view_mm)
{
    const int crystals[2] = {3, 2};
    const lr_ring ring = {.radius_mm = radius_mm,
                          .modules = 6,
                          .block_crystals = {&crystals[0], &crystals[1]},
                          .pitch_mm = {4.0, 5.0},
                          .face_mm = {3.5, 4.5},
                          .depth_mm = 10.0};
    const lr_scanner_params params = {.name = "small ring",
                                      .coincidence = {.min_module_difference = 2, .field_of_view_mm = field_of_view_mm},
                                      .crystal_mu_per_mm = 0.083,
                                      .source = "made up"};
    lr_scanner *scanner = lr_scanner_create_ring(&params, &ring);
    assert_non_null(scanner);
    return scanner;
}

#endif
