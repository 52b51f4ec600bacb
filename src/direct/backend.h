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
    const lr_lors *lors; /* a pair of modules stands for a view, a LOR for a voxel of its histo-image */
    lr_direct_kernel kernel;
    int threads, device;
    const lr_shared_context *shared; /* NULL = none */
    lr_direct_storage storage;
    lr_direct_variant variant; /* LR_DIRECT_FASTEST = the backend chooses the variant */
    bool may_change_variant;   /* true if the caller named no variant */
    int64_t max_memory_bytes;  /* limit for stored tables; 0 = the backend chooses */
    const lr_log *log;
    const lr_progress *progress;
};

/* Whole updates treat estimates below this number as 0. */
#define LR_DIRECT_LEAST 1e-30

/* Constructors, one per backend. If one fails, it logs the reason and leaves *backend unchanged. */
lr_status lr_direct_cpu_create(const struct lr_direct_backend_params *params, struct lr_backend *backend);
lr_status lr_direct_compute_create(const struct lr_direct_backend_params *params, struct lr_backend *backend);
lr_status lr_direct_cuda_create(const struct lr_direct_backend_params *params, struct lr_backend *backend);

/* --- depositions --- */

/* Parameters of a backend that deposits events, checked and with all defaults replaced. The pointers outlive the
 * backend. */
struct lr_deposit_backend_params {
    const lr_scanner *scanner;
    lr_histo_images *images; /* images of the set's views; zero at first, filled by the backend */
    lr_view_set set;         /* complete */
    lr_deposit_rule rule;
    double bin_mm; /* width of the bins of tof_mm; an event is spread over a bin in `parts` points */
    int parts;     /* points per event, at least 1 */
    int device;
    const lr_log *log;
};

struct lr_deposit_backend_fns {
    const char *name;
    /* Deposits events, which are of the right kind and have existing crystals. */
    lr_status (*take)(void *self, const lr_event *events, int64_t count);
    /* Completes the images of all events so far. Sets all counts except other_kind. */
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

/* The angles at which the intervals of azimuth and of tilt begin, as lr_view_set_find uses them. azimuth: 0 .. azimuths
 * - 1. tilt: 0 .. tilts, where tilt number `tilts` is the end of the last interval. */
double lr_view_set_azimuth_border_deg(const lr_view_set *set, int azimuth);
double lr_view_set_tilt_border_deg(const lr_view_set *set, int tilt);

#endif
