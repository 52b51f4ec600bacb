/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Access to the plugins. CMakeLists.txt compiles this file once per plugin and kind of linking. LR_GL, LR_CUDA,
 * LR_HDF5, LR_VIEWER or LR_MPI selects the plugin. LR_LINKED is defined if the plugin is part of the program, as in tests. */
#include "plugin/plugin.h"

#if defined(LR_LINKED)
#define GET(table, ...) ((void)log, &table)
#else
#define GET(table, ...) lr_plugin_load(&(struct lr_plugin_name){.symbol = #table, __VA_ARGS__}, log)
#endif

#if defined(LR_GL)
const struct lr_gl_plugin *lr_plugin_gl(const lr_log *log)
{
    return GET(lr_gl_plugin, .file = "lr_gl.so", .what = "OpenGL", .packages = "libegl1 and libopengl0");
}
#endif

#if defined(LR_CUDA)
const struct lr_cuda_plugin *lr_plugin_cuda(const lr_log *log)
{
    return GET(lr_cuda_plugin, .file = "lr_cuda.so", .what = "CUDA",
               .packages = "libegl1 and libopengl0, through which CUDA works here, and NVIDIA's driver");
}
#endif

#if defined(LR_HDF5)
const struct lr_hdf5_plugin *lr_plugin_hdf5(const lr_log *log)
{
    return GET(lr_hdf5_plugin, .file = "lr_hdf5.so", .what = "HDF5", .packages = "libhdf5-103-1");
}
#endif

#if defined(LR_VIEWER)
const struct lr_viewer_plugin *lr_plugin_viewer(const lr_log *log)
{
    return GET(lr_viewer_plugin, .file = "lr_viewer.so", .what = "viewer",
               .packages = "libglfw3, libegl1 and libopengl0");
}
#endif

#if defined(LR_MPI)
const struct lr_mpi_plugin *lr_plugin_mpi(const lr_log *log)
{
    return GET(lr_mpi_plugin, .file = "lr_mpi.so", .what = "MPI",
               .packages = "libopenmpi-dev, openmpi-bin and liblapacke-dev");
}
#endif
