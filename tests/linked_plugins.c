/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Access to plugins in test programs, with which the plugins of OpenGL, CUDA and HDF5 are linked. */
#define LR_LINKED
#include "plugin/plugin.c"
