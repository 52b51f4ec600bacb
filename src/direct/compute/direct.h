/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `compute` backend of the family `direct`. Images are 3-D textures with margins (shaders/direct/direct.glsl).
 * Tables are built on the device and kept there. */
#pragma once

#include "device/place.h"
#include "direct/backend.h"
#include "direct/tables.h"
#include "gl/pass.h"
#include "gl/timer.h"

#include <lr/direct.h>

/* The layout of a projector's images on the device. */
struct lr_direct_layout {
    struct gl_context *ctx;
    const lr_log *log;
    int size[3];       /* size of the grid */
    int quads;         /* number of quads; a quad is four slices */
    int margin[3];     /* zeros on each side: quads, columns along x and along y */
    bool buffers;      /* images with margins are storage buffers, not textures */
    bool data_buffers; /* images without margins are buffers, too; OpenGL passes cannot read them */
};

/* An image, in a texture or in a buffer. `texture` and `buffer` are NULL if there is no image. */
struct lr_direct_image {
    struct gl_texture *texture;
    struct gl_buffer *buffer;
    bool has_margins;
};

bool lr_direct_image_exists(const struct lr_direct_image *image);

/* --- tables --- */

/* The look-up tables LORmap and mSRval of one view, on the device. All members are zero if the tables are not built. */
struct lr_direct_view_tables {
    struct gl_texture *map;           /* R16UI [ny + 2 margin][nx + 2 margin] */
    struct gl_buffer *steps, *values; /* steps: of a gather; values: float [offset][row] */
    struct gl_buffer *offsets;        /* offsets of mSR, ivec4 */
    int num_steps, num_offsets;
    int axis;     /* axis of a thread's outputs: 0 = x, 1 = y */
    int num_rows; /* rows of mSRval: 1 if all kernels are the same, else one per kernel */
    int64_t bytes;
};

struct lr_direct_compute;

/* The measured data of a view (lr_update_data), in images without margins. */
struct lr_direct_view_data {
    struct lr_direct_image counts, additive, factors;
};

/* The state of copies between images and vectors. Each member is made at its first use. */
struct lr_direct_exchange {
    struct gl_program *programs[3][2]; /* [direction][images in textures or buffers] */
    lr_vector sum;                     /* sum of back-projections, in double */
    lr_vector ones;                    /* a histo-image of ones, for sensitivities */
    lr_vector there;                   /* numbers on their way from or to the host */
};

/* An operation that changes an image by means of other images (shaders/direct/combine.comp). */
struct lr_direct_change {
    int what; /* LR_DIRECT_DO_RAMLA, _EM or _ADD */
    float lambda;
    const struct lr_direct_image *by, *sensitivity; /* NULL = none */
};

/* Functions that replace the OpenGL passes and build their own tables, for example with CUDA. The functions own an
 * image from their first work on it until it is given back or destroyed. OpenGL must not use the image meanwhile
 * (gl_loan). The functions make the context current themselves when they need it. Not every update needs it. */
struct lr_direct_functions {
    const char *name;
    /* Finds the margins that the reach of the kernels requires. margin[0] is in quads; margin[1] and margin[2] are in
     * columns, along x and y. */
    void (*margins)(const struct lr_direct_shape *shape, int margin[3]);
    /* Creates the state `self` of the functions. The context is current. errors: NULL, logged. */
    void *(*create)(struct lr_direct_compute *compute);
    /* Computes target = K source, or target = K^T source. */
    lr_status (*run)(void *self, bool forward, int view, const struct lr_direct_image *source,
                     const struct lr_direct_image *target);
    /* Replaces lr_direct_run_task. Images are prepared before the clock starts. If memory allows, tables are also
     * prepared before the clock starts. */
    lr_status (*time)(void *self, const lr_direct_task *task, const struct lr_direct_image *source,
                      const struct lr_direct_image *target, double *device_seconds);
    /* Drops the tables of a task's views and builds them again. Waits for the device. */
    lr_status (*tables)(void *self, const lr_direct_task *task, double *device_seconds);
    /* Replaces the estimate in `histo` by the values to be back-projected (shaders/direct/discrepancy.comp). what:
     * LR_DIRECT_DO_RAMLA, _EM or _SENSITIVITY. */
    lr_status (*discrepancy)(void *self, int what, const struct lr_direct_view_data *data,
                             const struct lr_direct_image *histo);
    lr_status (*change)(void *self, const struct lr_direct_change *change, const struct lr_direct_image *image);
    /* Gives an image back to OpenGL, which is going to use it. */
    lr_status (*give_back)(void *self, const struct lr_direct_image *image);
    /* Starts or stops the clock, without waiting for the device. Timed intervals must not overlap. */
    void (*mark_lap)(void *self, bool ends);
    /* Implements lr_direct_device_attributes; NULL = not known. */
    lr_status (*attributes)(void *self, lr_direct_attributes *attributes);
    double (*read_laps)(void *self); /* device time of the intervals since the last call, s; waits for the device */
    void (*destroy)(void *self);
};

struct lr_direct_compute {
    struct lr_backend_fns fns;
    struct lr_direct_views views;
    const struct lr_direct_functions *functions; /* NULL = the OpenGL passes */
    void *self;                                  /* the state of the functions */
    struct lr_direct_backend_params params;
    lr_place *place;        /* owned */
    struct gl_context *ctx; /* the place's context */
    struct lr_direct_exchange exchange;
    struct gl_program *forward, *back;
    struct gl_program *map_program, *values_program; /* programs that build tables; NULL before the first tables */
    struct lr_direct_layout layout;
    struct lr_direct_image in, out;        /* images of projections between vectors */
    struct lr_direct_view_tables *tables;  /* [num_views]; zero = not built or not kept; unused with `functions` */
    struct lr_direct_view_tables borrowed; /* tables of the current view, if memory is too small to keep the tables
                                            * of all views */
    int borrowed_view;                     /* view of `borrowed`; -1 = none */
    int64_t cached_bytes;
    bool is_unordered; /* true if results of projections are not used, so that no barriers are set between them */
    struct gl_stopwatch *watch;
    double device_seconds;               /* device time of the last projection, s, without unread intervals */
    bool has_laps;                       /* true if timed intervals (laps) have not been read */
    struct lr_direct_resident *resident; /* data of updates and timings, or NULL */
};

/* The context is current in all functions below, except lr_direct_compute_create_with. */

/* Returns the tables of a view, and builds them if necessary. They are valid until the next call for another view.
 * errors: NULL, logged. */
const struct lr_direct_view_tables *lr_direct_open_tables(struct lr_direct_compute *compute, int view);

/* Drops the tables of a view. */
void lr_direct_drop_tables(struct lr_direct_compute *compute, int view);

/* Frees the tables of all views, and their programs. */
void lr_direct_close_tables(struct lr_direct_compute *compute);

/* Creates a backend that uses `functions`, which must outlive the backend. functions: NULL = the OpenGL passes, as in
 * lr_direct_compute_create. */
lr_status lr_direct_compute_create_with(const struct lr_direct_backend_params *params,
                                        const struct lr_direct_functions *functions, struct lr_backend *backend);

/* Copies between an image and a vector on the host or at the place. If compute->functions own the image, they give it
 * back to OpenGL first. vector: [num_voxels], in float32. errors: LR_FAILED, LR_NO_DEVICE. */
lr_status lr_direct_copy(struct lr_direct_compute *compute, const struct lr_direct_image *image,
                         const lr_vector *vector, bool to_image);

/* Runs all projections of a task into the same target, one after another, or in any order if compute->is_unordered is
 * set. Waits for the device. device_seconds: receives the time by the device's clock, s. */
lr_status lr_direct_run_task(struct lr_direct_compute *compute, const lr_direct_task *task,
                             const struct lr_direct_image *source, const struct lr_direct_image *target,
                             double *device_seconds);
