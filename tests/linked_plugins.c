/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Access to the plugins of test programs: those of OpenGL, CUDA and HDF5 are linked. */
#define LR_LINKED
#include "plugin/access.c"
