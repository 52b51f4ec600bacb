/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a backend is: the one header of this folder that backends include. */
#ifndef LR_OPERATOR_BACKEND_H
#define LR_OPERATOR_BACKEND_H

#include "model/rows.h"

#include <lr/operator.h>

/* Checked and complete: the facade has replaced every default. The pointers outlive the backend. */
struct lr_backend_params {
    const lr_scanner *scanner;
    const lr_lors *lors;
    const lr_grid *grid;
    lr_mode mode; /* sampled or exact */
    int rays;
    int samples[3];
    const lr_image *mu; /* 1/mm, or NULL */
    int mu_steps;
    int threads;
    int device;
    const lr_shared_context *shared; /* or NULL */
    bool deterministic, penetration;
    int64_t max_memory_bytes; /* 0 = what the device reports */
    const lr_log *log;
    const lr_progress *progress;
};

/* Images that stay with a backend: lr_operator_keep_image and its neighbours, checked. part: NULL for
 * all LORs, else not empty and not all. All of them, floats. */
struct lr_kept_fns {
    lr_status (*keep)(void *self, int slot, const float *image);
    lr_status (*read)(void *self, float *image);
    lr_status (*forward)(void *self, const lr_selection *part, float *values);
    lr_status (*update)(void *self, const lr_selection *part, const float *values, int slot);
    lr_status (*sum)(void *self, int slot, lr_kept_sums *sums);
    lr_status (*copy)(void *self, lr_texture_copy *copy);
};

/* The slots from `picture` on but `destroy` may be NULL: the facade then does without.
 * forward_part and back_part: as forward and back, for values of a selection that is checked, not
 * empty and not all. back_part with values NULL takes 1 for every value: the sensitivity.
 * Arrays are float, or double where computes_in_double; outputs are overwritten. Forward and back
 * report progress themselves, done / total being the share of the call's work. */
struct lr_backend_fns {
    const char *name;
    bool computes_in_double;
    bool goes_by_rows; /* a projection computes every row whole: a part takes as long as all */
    bool heeds_pairs;  /* `rows` leaves out the elements of other pairs than rows->pairs; else the
                          facade does */
    lr_status (*forward)(void *self, const void *image, void *data);
    lr_status (*back)(void *self, const void *data, void *image);
    lr_status (*rows)(void *self, const struct lr_rows *rows, const lr_row_sink *sink);
    lr_status (*picture)(void *self, const double point_mm[3], int module, lr_pixel *pixels);
    lr_status (*forward_part)(void *self, const lr_selection *part, const void *image,
                              void *values);
    lr_status (*back_part)(void *self, const lr_selection *part, const void *values, void *image);
    double (*device_seconds)(void *self); /* of the last projection */
    const struct lr_kept_fns *kept;
    void (*destroy)(void *self);
};

struct lr_backend {
    const struct lr_backend_fns *fns;
    void *self;
    char device[160];
    bool is_emulated; /* the device is a renderer in software */
};

/* Whether crystal penetration, where it is asked for, can be had: not in exact mode, and not without
 * the scanner's crystal_mu_per_mm. errors: LR_USAGE, logged. */
lr_status lr_backend_check_penetration(const struct lr_backend_params *params);

/* One constructor per backend. On failure the reason is logged and *backend untouched. */
lr_status lr_cpu_backend_create(const struct lr_backend_params *params, struct lr_backend *backend);
lr_status lr_compute_backend_create(const struct lr_backend_params *params,
                                    struct lr_backend *backend);
lr_status lr_raster_backend_create(const struct lr_backend_params *params,
                                   struct lr_backend *backend);
lr_status lr_native_backend_create(const struct lr_backend_params *params,
                                   struct lr_backend *backend);

#endif
