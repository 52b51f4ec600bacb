/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Replaces a function of an HDF5 library (H5I_register of 1.10.8) that gets no memory and then calls exit(-1).
 * Preloaded by test_hostile.py. */
#include <stdint.h>
#include <stdlib.h>

int64_t H5Fcreate(const char *name, unsigned flags, int64_t creation, int64_t access);

int64_t H5Fcreate(const char *name, unsigned flags, int64_t creation, int64_t access)
{
    (void)name;
    (void)flags;
    (void)creation;
    (void)access;
    exit(-1);
}
