/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The interface of backends: the only header of this folder that backends include. */
#pragma once

#include "model/lors/rows.h"

#include <lr/direct.h>
#include <lr/recon.h>
#include <stdio.h>

/* Parameters of a backend, checked by the facade, with all defaults filled in. All pointers outlive the backend. */
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
    int64_t max_memory_bytes; /* 0 = memory that the device reports */
    const lr_log *log;
    const lr_progress *progress;
};

/* Returns the rows of voxels begin .. end - 1, with the operator's sample points. */
static inline struct lr_rows lr_rows_of_voxels(const struct lr_backend_params *params, int64_t begin, int64_t end)
{
    return (struct lr_rows){.grid = params->grid,
                            .samples = {params->samples[0], params->samples[1], params->samples[2]},
                            .begin = begin,
                            .end = end};
}

/* --- whole updates --- */

/* Requirements of a reconstruction that consists of whole updates. */
struct lr_update_plan {
    int num_subsets;
    lr_recon_algorithm algorithm;
    bool has_additive, has_factors;
};

/* The measured data of one subset, in single precision and in the order of the part's LORs. Each vector is on the host
 * or at the backend's place. */
struct lr_update_data {
    const lr_selection *part; /* selection of module pairs; NULL = all LORs */
    const lr_vector *measured;
    const lr_vector *additive, *factors; /* additive: NULL = 0; factors: NULL = 1 */
};

/* One update of the image by the plan's algorithm (lr/recon.h). */
struct lr_update {
    int subset;    /* index of the loaded subset */
    double lambda; /* step length, for RAMLA only */
};

/* Functions of a backend that computes whole updates of an image. Within an iteration, the functions do not wait for
 * the device. The image and the data belong to the backend, which may store them in any layout. Vectors passed to the
 * functions are on the host or at the backend's place, in single precision. Images are [num_voxels]. */
struct lr_backend_updates {
    /* Begins updates by this plan and drops all earlier data. If the device has no room for the data, *has_room is
     * false and the result is LR_OK. */
    lr_status (*open)(void *self, const struct lr_update_plan *plan, bool *has_room);
    lr_status (*load)(void *self, int subset, const struct lr_update_data *data);
    lr_status (*sensitivity)(void *self, int subset, lr_vector *image); /* A^T n of the loaded data */
    lr_status (*set_image)(void *self, const lr_vector *image);
    lr_status (*get_image)(void *self, lr_vector *image); /* waits for the device */
    lr_status (*run)(void *self, const struct lr_update *update);
    double (*seconds)(void *self); /* device time since the last call, s; waits for the device; 0 = not measured */
    void (*close)(void *self);     /* frees the data */
};

/* --- the table --- */

/* `picture`, `device_seconds`, `device_clock`, `prepare` and `updates` may be NULL; the facade then works without them.
 *
 * project: forward from an image to values of LORs, or back. part NULL = all LORs. Only a backend with has_parts also
 * takes a selection as the part. The facade has checked this selection, which has at least one LOR, but not all LORs.
 * Values are in the selection's order. The selection may be interleaved only if ones_by_angle is set.
 *
 * A back-projection with `in` NULL computes the sensitivity, as if every value were 1. The facade passes `in` NULL only
 * to a backend with has_parts, and only with a part.
 *
 * Vectors are float64 if computes_in_double, else float32. Each vector is on the host or at the backend's place.
 * Outputs are overwritten. `project` reports progress itself: done / total is the fraction of the call's work. */
struct lr_backend_fns {
    const char *name;
    bool computes_in_double;
    bool has_parts;
    bool is_never_kept;    /* LR_STORE_AUTO never stores this backend's matrix */
    bool lists_by_all;     /* with has_parts: true if a list of single LORs cannot be a part; the facade then projects
                              all LORs, and picks the values of the list */
    int voxel_bytes;       /* largest number of bytes per voxel that a projection needs, including the backend's copy of
                            * the image */
    bool projects_by_rows; /* every projection computes whole rows, so that a part takes as long as all LORs */
    bool ones_by_angle;    /* a back-projection with `in` NULL also takes interleaved parts for which lr_turn_shift is
                              0, and skips LORs outside the part */
    bool heeds_pairs; /* `rows` leaves out elements of pairs that are not in rows->pairs; false = the facade removes
                       * these elements */
    lr_status (*project)(void *self, bool is_forward, const lr_selection *part, const lr_vector *in, lr_vector *out);
    /* Sets the values of LORs that are interleaved with the part's LORs, but not in the part, to 0. values: in single
     * precision, at the backend's place. NULL = the backend has no place, or its LORs cannot be interleaved. */
    lr_status (*blank)(void *self, const lr_selection *part, lr_vector *values);
    lr_status (*rows)(void *self, const struct lr_rows *rows, const lr_row_sink *sink);
    lr_status (*picture)(void *self, const double point_mm[3], int module, lr_pixel *pixels);
    double (*device_seconds)(void *self); /* time of the last projection, s; may wait for its end */
    double (*device_clock)(void *self);   /* total time of projections, s; may wait for the last one; NULL = not
                                           * known */
    /* lr_operator_device_passes. NULL = the backend does not distinguish passes. */
    int (*device_passes)(void *self, lr_device_pass *passes);
    /* Starts to build the programs that projections and the sensitivity need, in parallel and before their first use.
     * lists: true if the parts are lists of single LORs, while the sensitivity is computed for all LORs. */
    lr_status (*prepare)(void *self, bool lists);
    /* Builds the programs of `picture`. If a driver cannot build the programs, the error comes before the first
     * picture. */
    lr_status (*prepare_picture)(void *self);
    const struct lr_backend_updates *updates;
    /* lr_direct_device_attributes; NULL = not known */
    lr_status (*attributes)(void *self, lr_direct_attributes *attributes);
    /* Implements lr_direct_time, for an image on the host in single precision. The seconds are by the device's clock.
     * NULL = the facade calls `project` instead. */
    lr_status (*time)(void *self, const lr_direct_task *task, double *device_seconds);
    void (*destroy)(void *self);
};

struct lr_backend {
    const struct lr_backend_fns *fns;
    void *self;
    lr_place *place; /* place at which the backend takes vectors, too; NULL = it takes vectors on the host only */
    char device[160];
    bool is_gpu;      /* the device is a graphics processor */
    bool is_emulated; /* the device is a renderer in software */
};

/* Sets up a backend that computes on the processor. kernels: name of the instruction set in use, or NULL. */
static inline void lr_backend_on_host(struct lr_backend *backend, const struct lr_backend_fns *fns, void *self,
                                      int threads, const char *kernels)
{
    backend->fns = fns;
    backend->self = self;
    snprintf(backend->device, sizeof(backend->device), "CPU, %d thread%s%s%s", threads, threads == 1 ? "" : "s",
             kernels != NULL ? ", " : "", kernels != NULL ? kernels : "");
}

/* The constructors of backends. A constructor that fails logs the reason, and leaves *backend as it was, except for
 * is_gpu: it becomes true if a graphics processor was found but cannot do this work. */
lr_status lr_cpu_backend_create(const struct lr_backend_params *params, struct lr_backend *backend);
lr_status lr_compute_backend_create(const struct lr_backend_params *params, struct lr_backend *backend);
lr_status lr_raster_backend_create(const struct lr_backend_params *params, struct lr_backend *backend);
lr_status lr_native_backend_create(const struct lr_backend_params *params, struct lr_backend *backend);
