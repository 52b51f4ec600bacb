/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Code that needs OpenGL, CUDA, HDF5 or MPI is in plugins, so that the library also starts on machines without them. A
 * plugin provides one table of functions. A plugin is built together with the library, and contains its own copy of the
 * library code that it uses. The library and a plugin share only structures, the functions of the table, the library's
 * pool of threads, and its record of each thread's errors.
 *
 * Plugins are searched for in the folder that LORASTER_PLUGINS names. If this variable is not set, these folders are
 * searched, in this order: the folder of the library or program that asks, its subfolder loraster/, the library folder
 * installed with a program, and the folder of the installation (base/path.h). */
#pragma once

#include "base/log.h"

#include <lr/device.h>
#include <stddef.h>

struct lr_backend;
struct lr_backend_params;
struct lr_deposit_backend;
struct lr_deposit_backend_params;
struct lr_direct_backend_params;
struct lr_listmode_backend_params;
struct lr_listmode_events;
struct lr_place_fns;
struct lr_pool;

typedef lr_status lr_backend_create(const struct lr_backend_params *params, struct lr_backend *backend);
typedef lr_status lr_direct_backend_create(const struct lr_direct_backend_params *params, struct lr_backend *backend);
typedef lr_status lr_listmode_backend_create(const struct lr_listmode_backend_params *params,
                                             struct lr_backend *backend);
typedef lr_status lr_deposit_backend_create(const struct lr_deposit_backend_params *params,
                                            struct lr_deposit_backend *backend);
typedef lr_status lr_listmode_events_arranger(struct lr_listmode_events *events,
                                              const struct lr_listmode_backend_params *params);

/* The version and a digest of the build. */
extern const char lr_plugin_build[];

/* The first member of each table. */
struct lr_plugin {
    const char *build;                             /* a library accepts only plugins of the same build */
    void (*use_pool)(const struct lr_pool *pool);  /* lr_pool_use() of the plugin's copy of base/parallel.h */
    void (*use_errors)(lr_thread_errors_fn *find); /* lr_errors_use() of the plugin's copy of base/log.h */
};

struct lr_gl_plugin {
    struct lr_plugin plugin;
    const struct lr_place_fns *places;
    lr_backend_create *raster, *compute;
    lr_direct_backend_create *direct;
    lr_deposit_backend_create *deposit;
    lr_listmode_backend_create *listmode;
    int (*list_devices)(lr_device *devices, int capacity, const lr_log *log);
};

struct lr_cuda_plugin {
    struct lr_plugin plugin;
    const struct lr_place_fns *places;
    lr_direct_backend_create *direct;
    lr_listmode_backend_create *listmode;
    lr_listmode_events_arranger *arrange;
};

struct lr_comm_fns;
struct lr_mpi_plugin {
    struct lr_plugin plugin;
    const struct lr_comm_fns *fns;
    /* Computes the eigenvalues of a symmetric matrix [size][size], ascending. Row k of the matrix then is the
     * eigenvector of values[k]. NULL = built without LAPACKE. */
    lr_status (*eigen)(double *matrix, double *values, int size);
};

struct lr_hdf5_fns;
struct lr_hdf5_plugin {
    struct lr_plugin plugin;
    const struct lr_hdf5_fns *fns; /* io/files/hdf5_file.h */
};

struct view_params;
struct lr_viewer_plugin {
    struct lr_plugin plugin;
    lr_status (*run)(const struct view_params *params); /* view_run() of viewer/view.h */
};

/* Each function returns the table of one plugin, and loads the plugin at its first call. A plugin is never unloaded,
 * because drivers have their own threads. A plugin uses the library's pool of threads and records of errors. Any thread
 * may call these functions. errors: NULL, logged as LR_NO_DEVICE, if the plugin or a library that it needs is missing,
 * or if the plugin is of another build. */
const struct lr_gl_plugin *lr_plugin_gl(const lr_log *log);
const struct lr_cuda_plugin *lr_plugin_cuda(const lr_log *log);
const struct lr_hdf5_plugin *lr_plugin_hdf5(const lr_log *log);
const struct lr_viewer_plugin *lr_plugin_viewer(const lr_log *log);
const struct lr_mpi_plugin *lr_plugin_mpi(const lr_log *log);

/* The symbols that plugins export, one per plugin. */
extern const struct lr_gl_plugin lr_gl_plugin;
extern const struct lr_cuda_plugin lr_cuda_plugin;
extern const struct lr_hdf5_plugin lr_hdf5_plugin;
extern const struct lr_viewer_plugin lr_viewer_plugin;
extern const struct lr_mpi_plugin lr_mpi_plugin;
