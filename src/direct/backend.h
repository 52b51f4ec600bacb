/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a backend of the family `direct` is. */
#ifndef LR_DIRECT_BACKEND_H
#define LR_DIRECT_BACKEND_H

#include <lr/direct.h>

/* Checked and complete. The pointers outlive the backend. */
struct lr_direct_backend_params {
    lr_grid grid;
    const lr_view *views; /* [num_views] */
    int num_views;
    lr_direct_kernel kernel;
    int threads, device;
    lr_direct_storage storage;
    lr_direct_variant variant; /* LR_DIRECT_FASTEST: the backend's choice */
    bool may_change_variant;   /* it was the backend's choice */
    int64_t max_memory_bytes;  /* for tables that are kept; 0 = the backend's choice */
    const lr_log *log;
};

/* A block, checked and complete. */
struct lr_direct_step_params {
    const int *views;
    int num_views, number;
    lr_direct_rule rule;
    double lambda; /* RAMLA */
};

/* Estimates below this count as none. */
#define LR_DIRECT_LEAST 1e-30

/* Arrays are float, or double where computes_in_double; outputs are overwritten. */
struct lr_direct_backend_fns {
    const char *name;
    bool computes_in_double;
    lr_status (*forward)(void *self, int view, const void *image, void *histo);
    lr_status (*back)(void *self, int view, const void *histo, void *image);
    double (*device_seconds)(void *self); /* of the last projection; NULL = not measured */
    /* lr_direct_device_attributes; NULL = not known */
    lr_status (*attributes)(void *self, lr_direct_attributes *attributes);
    /* lr_direct_load, _set_image, _get_image, _update and _update_seconds, all or none: else the facade
       does it on the host. */
    lr_status (*load)(void *self, int view, const lr_direct_data *data);
    lr_status (*set_image)(void *self, const float *image);
    lr_status (*get_image)(void *self, float *image);
    lr_status (*update)(void *self, const struct lr_direct_step_params *step);
    double (*update_seconds)(void *self);
    /* Seconds by the device's clock; NULL: the facade goes by forward and back. */
    lr_status (*time)(void *self, const lr_direct_task *task, double *device_seconds);
    void (*destroy)(void *self);
};

struct lr_direct_backend {
    const struct lr_direct_backend_fns *fns;
    void *self;
    char device[160];
};

/* One constructor per backend. On failure the reason is logged and *backend untouched. */
lr_status lr_direct_cpu_create(const struct lr_direct_backend_params *params,
                               struct lr_direct_backend *backend);
lr_status lr_direct_compute_create(const struct lr_direct_backend_params *params,
                                   struct lr_direct_backend *backend);
lr_status lr_direct_cuda_create(const struct lr_direct_backend_params *params,
                                struct lr_direct_backend *backend);

/* --- depositions --- */

/* Checked and complete. The pointers outlive the backend. */
struct lr_deposit_backend_params {
    const lr_scanner *scanner;
    lr_histo_images *images; /* of the set's views; zero, to be filled */
    lr_view_set set;         /* complete */
    lr_deposit_rule rule;
    int device;
    const lr_log *log;
};

struct lr_deposit_backend_fns {
    const char *name;
    /* Events of the right kind, whose crystals exist. */
    lr_status (*take)(void *self, const lr_event *events, int64_t count);
    /* Makes the images those of all events so far, and counts all but other_kind. */
    lr_status (*finish)(void *self, lr_deposit_counts *counts);
    void (*destroy)(void *self);
};

struct lr_deposit_backend {
    const struct lr_deposit_backend_fns *fns;
    void *self;
    char device[160];
};

lr_status lr_deposit_cpu_create(const struct lr_deposit_backend_params *params,
                                struct lr_deposit_backend *backend);
lr_status lr_deposit_compute_create(const struct lr_deposit_backend_params *params,
                                    struct lr_deposit_backend *backend);

/* Where the intervals of lr_view_set_find begin: of azimuth 0 .. azimuths - 1; of tilt 0 .. tilts - 1,
 * and where the last one ends. */
double lr_view_set_azimuth_border_deg(const lr_view_set *set, int azimuth);
double lr_view_set_tilt_border_deg(const lr_view_set *set, int tilt);

#endif
