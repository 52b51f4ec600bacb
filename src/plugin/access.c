/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Access to the plugins. A plugin that is linked to the calling program or plugin is found by its weak symbol. All
 * other plugins are loaded. Tests that link the plugins define LR_LINKED. */
#include "plugin/plugin.h"

#if !defined(LR_LINKED)
#pragma weak lr_gl_plugin
#pragma weak lr_cuda_plugin
#pragma weak lr_hdf5_plugin
#endif
#pragma weak lr_viewer_plugin
#pragma weak lr_mpi_plugin

#define GET(table, ...)                                                                                                \
    (&(table) != NULL ? &(table) : lr_plugin_load(&(struct lr_plugin_name){.symbol = #table, __VA_ARGS__}, log))

const struct lr_gl_plugin *lr_plugin_gl(const lr_log *log)
{
    return GET(lr_gl_plugin, .file = "lr_gl.so", .what = "OpenGL", .packages = "libegl1 and libopengl0");
}

const struct lr_cuda_plugin *lr_plugin_cuda(const lr_log *log)
{
    return GET(lr_cuda_plugin, .file = "lr_cuda.so", .what = "CUDA",
               .packages = "libegl1 and libopengl0, through which CUDA works here, and NVIDIA's driver");
}

const struct lr_hdf5_plugin *lr_plugin_hdf5(const lr_log *log)
{
    return GET(lr_hdf5_plugin, .file = "lr_hdf5.so", .what = "HDF5", .packages = "libhdf5-103-1");
}

const struct lr_viewer_plugin *lr_plugin_viewer(const lr_log *log)
{
    return GET(lr_viewer_plugin, .file = "lr_viewer.so", .what = "viewer",
               .packages = "libglfw3, libegl1 and libopengl0");
}

const struct lr_mpi_plugin *lr_plugin_mpi(const lr_log *log)
{
    return GET(lr_mpi_plugin, .file = "lr_mpi.so", .what = "MPI",
               .packages = "libopenmpi-dev, openmpi-bin and liblapacke-dev");
}
