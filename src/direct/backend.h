/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The interface of a backend of the family `direct`. */
#ifndef LR_DIRECT_BACKEND_H
#define LR_DIRECT_BACKEND_H

#include "operator/backend.h"

#include <lr/direct.h>

/* Parameters of a backend, checked and with all defaults replaced. The pointers outlive the backend. */
struct lr_direct_backend_params {
    lr_grid grid;
    const lr_view *views; /* [num_views] */
    int num_views;
    const lr_lors *lors; /* each pair of modules is a view; each LOR is a voxel of its view's histo-image */
    lr_direct_kernel kernel;
    int threads, device;
    const lr_shared_context *shared; /* NULL = none */
    lr_direct_storage storage;
    lr_direct_variant variant; /* LR_DIRECT_FASTEST: the backend's choice */
    bool may_change_variant;   /* the caller named no variant */
    int64_t max_memory_bytes;  /* limit for stored tables; 0 = the backend's choice */
    const lr_log *log;
    const lr_progress *progress;
};

/* Estimates below this number are taken for 0 in whole updates. */
#define LR_DIRECT_LEAST 1e-30

/* One constructor per backend. If it fails, it logs the reason and leaves *backend untouched. */
lr_status lr_direct_cpu_create(const struct lr_direct_backend_params *params, struct lr_backend *backend);
lr_status lr_direct_compute_create(const struct lr_direct_backend_params *params, struct lr_backend *backend);
lr_status lr_direct_cuda_create(const struct lr_direct_backend_params *params, struct lr_backend *backend);

/* --- depositions --- */

/* Parameters of a backend of depositions, checked and with all defaults replaced. The pointers outlive the backend. */
struct lr_deposit_backend_params {
    const lr_scanner *scanner;
    lr_histo_images *images; /* images of the set's views; zero, to be filled */
    lr_view_set set;         /* complete */
    lr_deposit_rule rule;
    double bin_mm; /* width of the bins of tof_mm, over which an event is spread in `parts` points */
    int parts;     /* points per event, at least 1 */
    int device;
    const lr_log *log;
};

struct lr_deposit_backend_fns {
    const char *name;
    /* Takes events of the right kind whose crystals exist. */
    lr_status (*take)(void *self, const lr_event *events, int64_t count);
    /* Completes the images of all events so far. Sets all counts but other_kind. */
    lr_status (*finish)(void *self, lr_deposit_counts *counts);
    void (*destroy)(void *self);
};

struct lr_deposit_backend {
    const struct lr_deposit_backend_fns *fns;
    void *self;
    char device[160];
};

lr_status lr_deposit_cpu_create(const struct lr_deposit_backend_params *params, struct lr_deposit_backend *backend);
lr_status lr_deposit_compute_create(const struct lr_deposit_backend_params *params, struct lr_deposit_backend *backend);

/* The angles at which the intervals of lr_view_set_find begin: azimuths 0 .. azimuths - 1, tilts 0 .. tilts. The
 * last tilt is the end of the last interval. */
double lr_view_set_azimuth_border_deg(const lr_view_set *set, int azimuth);
double lr_view_set_tilt_border_deg(const lr_view_set *set, int tilt);

#endif
