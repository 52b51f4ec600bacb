/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a backend is: the one header of this folder that backends include. */
#ifndef LR_OPERATOR_BACKEND_H
#define LR_OPERATOR_BACKEND_H

#include "model/lors/rows.h"

#include <lr/recon.h>

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
    int64_t max_memory_bytes; /* 0 = as the device reports it */
    const lr_log *log;
    const lr_progress *progress;
};

/* --- whole updates --- */

/* Needs of a reconstruction by whole updates. */
struct lr_update_plan {
    int num_subsets;
    lr_recon_algorithm algorithm;
    bool has_additive, has_factors;
};

/* The measured data of a subset, on the host in single precision, in the order of its part. */
struct lr_update_data {
    const lr_selection *part; /* of pairs; NULL = all LORs */
    const lr_vector *measured;
    const lr_vector *additive, *factors; /* NULL = 0, and 1 */
};

/* x becomes what lr/recon.h says of the plan's algorithm. */
struct lr_update {
    int subset;    /* of the data that is loaded */
    double lambda; /* RAMLA */
};

/* A backend that updates an image in one go, without a wait within an iteration: image and data are its
 * own, in whatever layout it works on. What is given and taken is on the host, in single precision, except
 * for the image that is taken, which may go to the backend's place; images are [num_voxels]. */
struct lr_backend_updates {
    /* Drops all data that was loaded. *has_room false, with LR_OK: the device cannot hold them. */
    lr_status (*open)(void *self, const struct lr_update_plan *plan, bool *has_room);
    lr_status (*load)(void *self, int subset, const struct lr_update_data *data);
    lr_status (*sensitivity)(void *self, int subset, lr_vector *image); /* A^T n of loaded data */
    lr_status (*set_image)(void *self, const lr_vector *image);
    lr_status (*get_image)(void *self, lr_vector *image); /* waits */
    lr_status (*run)(void *self, const struct lr_update *update);
    double (*seconds)(void *self); /* waits; of the device, since the last call; 0 = not measured */
    void (*close)(void *self);     /* frees the data */
};

/* --- the table --- */

/* `picture`, `device_seconds`, `device_clock`, `prepare` and `updates` may be NULL: the facade then does without.
 * forward and back: part NULL for all LORs; else, with has_parts, a selection that is checked, not
 * empty and not all, and values in its order. back with values NULL, with has_parts and a part alone,
 * takes 1 for every value: the sensitivity; the part is interleaved with ones_by_angle alone. Vectors are in float32,
 * or in float64 where computes_in_double, and each is on the host or at the backend's place; outputs are overwritten.
 * Both report progress themselves, done / total being the share of the call's work. */
struct lr_backend_fns {
    const char *name;
    bool computes_in_double;
    bool has_parts;
    bool is_never_kept;    /* LR_STORE_AUTO keeps no matrix */
    bool lists_by_all;     /* with has_parts: but not single LORs, which the facade takes from all */
    int voxel_bytes;       /* that a projection works with at most per voxel of the grid, a copy of the
                        image in the backend's precision included */
    bool projects_by_rows; /* a projection computes every row whole: a part takes as long as all */
    bool ones_by_angle;    /* back with values NULL leaves out LORs that are interleaved with the part's */
    bool heeds_pairs;      /* `rows` leaves out the elements of other pairs than rows->pairs; else the
                          facade does */
    lr_status (*forward)(void *self, const lr_selection *part, const lr_vector *image, lr_vector *values);
    lr_status (*back)(void *self, const lr_selection *part, const lr_vector *values, lr_vector *image);
    lr_status (*rows)(void *self, const struct lr_rows *rows, const lr_row_sink *sink);
    lr_status (*picture)(void *self, const double point_mm[3], int module, lr_pixel *pixels);
    double (*device_seconds)(void *self); /* time of the last projection; may wait for it */
    double (*device_clock)(void *self);   /* time of all projections so far; may wait for the last; NULL = not known */
    /* lr_operator_device_passes; NULL = not distinguished */
    int (*device_passes)(void *self, lr_device_pass *passes);
    /* Starts building what `forward` and `back` and a sensitivity run, which come next, so that it is
     * built side by side. lists: parts are going to be single LORs, and sensitivities of all LORs. */
    lr_status (*prepare)(void *self, bool lists);
    /* Builds what `picture` runs, so that a driver that cannot is found out before the first one. */
    lr_status (*prepare_picture)(void *self);
    const struct lr_backend_updates *updates;
    void (*destroy)(void *self);
};

struct lr_backend {
    const struct lr_backend_fns *fns;
    void *self;
    lr_place *place; /* the backend's own place, where it takes vectors as it does on the host; NULL = none */
    char device[160];
    bool is_gpu;      /* the device is a graphics processor */
    bool is_emulated; /* it is a renderer in software in place of one */
};

/* One constructor per backend. On failure the reason is logged, and of *backend at most is_gpu set: a
 * graphics processor is there, and cannot do this. */
lr_status lr_cpu_backend_create(const struct lr_backend_params *params, struct lr_backend *backend);
lr_status lr_compute_backend_create(const struct lr_backend_params *params, struct lr_backend *backend);
lr_status lr_raster_backend_create(const struct lr_backend_params *params, struct lr_backend *backend);
lr_status lr_native_backend_create(const struct lr_backend_params *params, struct lr_backend *backend);

#endif
