/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Code that needs OpenGL, CUDA or MPI is in plugins, so that the library starts on machines without them. A
 * plugin hands out one table of functions. It is built together with its library and contains a copy of all that it
 * uses of it: the two share structures and the functions of the table, no others.
 *
 * Plugins are looked for in the folder that LORASTER_PLUGINS names; if that is not set, beside the library or program
 * that asks, in the folder loraster/ there, in that of the libraries that were installed with a program, and in the
 * folder of the installation (base/helper.h). */
#ifndef LR_PLUGIN_PLUGIN_H
#define LR_PLUGIN_PLUGIN_H

#include <lr/device.h>
#include <stddef.h>

struct lr_backend;
struct lr_backend_params;
struct lr_deposit_backend;
struct lr_deposit_backend_params;
struct lr_direct_backend;
struct lr_direct_backend_params;
struct lr_listmode_backend_params;
struct lr_listmode_events;
struct lr_place_fns;
struct lr_pool;

typedef lr_status lr_backend_create(const struct lr_backend_params *params, struct lr_backend *backend);
typedef lr_status lr_direct_backend_create(const struct lr_direct_backend_params *params,
                                           struct lr_direct_backend *backend);
typedef lr_status lr_listmode_backend_create(const struct lr_listmode_backend_params *params,
                                             struct lr_backend *backend);
typedef lr_status lr_deposit_backend_create(const struct lr_deposit_backend_params *params,
                                            struct lr_deposit_backend *backend);
typedef lr_status lr_listmode_events_arranger(struct lr_listmode_events *events,
                                              const struct lr_listmode_backend_params *params);

/* The version, and a digest of the build. */
extern const char lr_plugin_build[];

/* The first member of each table. */
struct lr_plugin {
    const char *build;                            /* a library takes no plugin of another build */
    void (*use_pool)(const struct lr_pool *pool); /* lr_pool_use() of the plugin's copy of base/parallel.h */
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
    /* Eigenvalues of a symmetric matrix [size][size], ascending; out, row k is the eigenvector of values[k].
     * NULL: built without LAPACKE. */
    lr_status (*eigen)(double *matrix, double *values, int size);
};

struct view_params;
struct lr_viewer_plugin {
    struct lr_plugin plugin;
    lr_status (*run)(const struct view_params *params); /* view_run() of viewer/view.h */
};

/* The plugin's table. The plugin is loaded by the first call and never unloaded, as drivers have threads of their own.
 * It then uses the caller's pool of threads. NULL, with an error of LR_NO_DEVICE: the plugin or a library that it
 * needs is missing, or it is of another build. Any thread may call. */
const struct lr_gl_plugin *lr_plugin_gl(const lr_log *log);
const struct lr_cuda_plugin *lr_plugin_cuda(const lr_log *log);
const struct lr_viewer_plugin *lr_plugin_viewer(const lr_log *log);
const struct lr_mpi_plugin *lr_plugin_mpi(const lr_log *log);

/* The symbols that the plugins export, each its own. */
extern const struct lr_gl_plugin lr_gl_plugin;
extern const struct lr_cuda_plugin lr_cuda_plugin;
extern const struct lr_viewer_plugin lr_viewer_plugin;
extern const struct lr_mpi_plugin lr_mpi_plugin;

/* A plugin's file, and the words of the error if it is missing. */
struct lr_plugin_name {
    const char *file, *symbol;
    const char *what;     /* "OpenGL" */
    const char *packages; /* that may be missing */
};

/* Finds, loads and checks a plugin, and gives it the pool; the functions above call it. */
const void *lr_plugin_load(const struct lr_plugin_name *name, const lr_log *log);

#endif
