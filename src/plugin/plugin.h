/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What needs OpenGL, CUDA or MPI is in plugins, so that the library starts on machines without them. A
 * plugin hands out one table of functions. It is built with the library that it belongs to, of which it
 * has what it needs in itself: the two share structures, and no function but those of the table. */
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

typedef lr_status lr_backend_create(const struct lr_backend_params *params, struct lr_backend *backend);
typedef lr_status lr_direct_backend_create(const struct lr_direct_backend_params *params,
                                           struct lr_direct_backend *backend);
typedef lr_status lr_listmode_backend_create(const struct lr_listmode_backend_params *params,
                                             struct lr_backend *backend);
typedef lr_status lr_deposit_backend_create(const struct lr_deposit_backend_params *params,
                                            struct lr_deposit_backend *backend);
typedef lr_status lr_listmode_events_arranger(struct lr_listmode_events *events,
                                              const struct lr_listmode_backend_params *params);

/* The version, and what tells its builds apart: the first member of each table. A library takes no plugin
 * of another build. */
extern const char lr_plugin_build[];

struct lr_gl_plugin {
    const char *build;
    const struct lr_place_fns *places;
    lr_backend_create *raster, *compute;
    lr_direct_backend_create *direct;
    lr_deposit_backend_create *deposit;
    lr_listmode_backend_create *listmode;
    int (*list_devices)(lr_device *devices, int capacity, const lr_log *log);
};

struct lr_cuda_plugin {
    const char *build;
    const struct lr_place_fns *places;
    lr_direct_backend_create *direct;
    lr_listmode_backend_create *listmode;
    lr_listmode_events_arranger *arrange;
};

struct lr_comm_fns;
struct lr_mpi_plugin {
    const char *build;
    const struct lr_comm_fns *fns;
    /* Eigenvalues of a symmetric matrix [size][size], ascending; out, row k is the eigenvector of values[k].
     * NULL where there was no LAPACKE to build with. */
    lr_status (*eigen)(double *matrix, double *values, int size);
};

struct view_params;
struct lr_viewer_plugin {
    const char *build;
    lr_status (*run)(const struct view_params *params); /* view_run() of viewer/view.h */
};

/* The plugin, loaded when first asked for, and for good. NULL, with a sentence of LR_NO_DEVICE, where it
 * cannot be: it is not there, or a library that it needs is not. Any thread may ask. */
const struct lr_gl_plugin *lr_plugin_gl(const lr_log *log);
const struct lr_cuda_plugin *lr_plugin_cuda(const lr_log *log);
const struct lr_viewer_plugin *lr_plugin_viewer(const lr_log *log);
const struct lr_mpi_plugin *lr_plugin_mpi(const lr_log *log);

/* What plugins show, each its own. */
extern const struct lr_gl_plugin lr_gl_plugin;
extern const struct lr_cuda_plugin lr_cuda_plugin;
extern const struct lr_viewer_plugin lr_viewer_plugin;
extern const struct lr_mpi_plugin lr_mpi_plugin;

#endif
