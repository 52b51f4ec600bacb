/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The interface of a backend of the family `direct`, and functions that its backends share. */
#pragma once

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

/* Whole updates (operator/updates.h) treat estimates and sensitivities up to this number as 0. */
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
    /* Deposits events. All of them are of the right kind and have existing crystals. */
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

/* The angles at which the intervals of azimuth, and then those of tilt, begin, as lr_view_set_find uses them. border: 0
 * .. azimuths + tilts. The last border is the end of the last interval of tilt. */
double lr_view_set_border_deg(const lr_view_set *set, int border);

/* --- parts of the data by views, and rows from the look-up tables, for all backends --- */

/* A projection of one view; in and out are [num_voxels], float, or double if in_double. */
struct lr_direct_projection {
    bool is_forward;
    bool is_same; /* true if `in` has not changed since the last projection */
    int view;
    const void *in;
    void *out;
};

struct lr_direct_views {
    const struct lr_direct_backend_params *params;
    bool in_double;
    int64_t num_voxels;
    lr_status (*project)(void *self, const struct lr_direct_projection *projection);
    void *self;
    void *one;                 /* owned: a histo-image or image, in the backend's precision */
    double *sum;               /* owned: sum of back-projections */
    lr_direct_tables **tables; /* owned [num_views], for rows; NULL until the first rows */
};

/* Initialises members other than params, in_double, project and self, which the caller has set. The caller calls the
 * finish function even after an error. errors: LR_FAILED. */
lr_status lr_direct_views_init(struct lr_direct_views *views);
void lr_direct_views_finish(struct lr_direct_views *views);

/* Functions of struct lr_backend_fns, for vectors on the host. self: a struct lr_direct_views. */
lr_status lr_direct_views_project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in,
                                  lr_vector *out);
lr_status lr_direct_views_rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink);
