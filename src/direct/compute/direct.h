/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `compute` backend of the family `direct`. Images are 3-D textures with margins (shaders/direct/direct.glsl).
 * Tables are built on the device and kept there. */
#ifndef LR_DIRECT_COMPUTE_DIRECT_H
#define LR_DIRECT_COMPUTE_DIRECT_H

#include "device/place.h"
#include "direct/backend.h"
#include "direct/tables.h"
#include "direct/views.h"
#include "gl/pass.h"
#include "gl/timer.h"

#include <lr/direct.h>

/* The layout of a projector's images on its device. */
struct lr_direct_layout {
    struct gl_context *ctx;
    const lr_log *log;
    int size[3];         /* size of the grid */
    int quads;           /* number of quads; a quad is four slices */
    int margin[3];       /* zeros on each side: quads, columns along x and along y */
    bool buffers;        /* images with margins are storage buffers, not textures */
    bool data_buffers;   /* images without margins are buffers, too, which OpenGL passes cannot read */
    lr_traffic *traffic; /* counts uploads and reads; outlives the images */
};

/* An image, as either a texture or a buffer. Both are NULL if there is no image. */
struct lr_direct_image {
    struct gl_texture *texture;
    struct gl_buffer *buffer;
    bool has_margins;
};

/* Makes an image of zeros. Images without margins cannot be projected. Here and below, the context is current. errors:
 * LR_FAILED. */
lr_status lr_direct_image_init(struct lr_direct_image *image, const struct lr_direct_layout *layout, const char *label,
                               bool has_margins);
void lr_direct_image_finish(struct lr_direct_image *image);
bool lr_direct_image_exists(const struct lr_direct_image *image);

/* Copies values to or from an image. values: [nz][ny][nx], read if to_device, otherwise written. */
lr_status lr_direct_image_copy(const struct lr_direct_image *image, const struct lr_direct_layout *layout,
                               float *values, bool to_device);

/* Bind an image to a pass: the source is read, the target is read and written. */
void lr_direct_bind_source(struct gl_pass *pass, const struct lr_direct_image *image);
void lr_direct_bind_target(struct gl_pass *pass, const struct lr_direct_image *image);

/* The barriers that passes need if they write images. */
GLbitfield lr_direct_barriers(void);

/* --- steps --- */

/* mSR is stored as a list of steps, which shaders/direct/gather.glsl follows. */

/* One step; the shader reads it as two ivec4. */
struct lr_direct_step {
    int32_t along, across, quads, mask;
    int32_t first[4]; /* one for each of LR_DIRECT_OUTPUTS outputs */
};
_Static_assert(sizeof(struct lr_direct_step) == 32, "the shader's layout");

/* --- tables --- */

/* The look-up tables of a view, LORmap and mSRval, are built on the device and stay there. */

/* State that the tables of all views share. */
struct lr_direct_builder {
    struct gl_context *ctx;
    const struct lr_direct_backend_params *params;
    int margin[3];                   /* margin of images: quads, columns along x and along y */
    struct gl_program *map, *values; /* NULL before the first tables */
};

/* The tables of one view; all members are zero if they are not built. Here and below, the context is current. */
struct lr_direct_view_tables {
    struct gl_texture *map;           /* R16UI [ny + 2 margin][nx + 2 margin] */
    struct gl_buffer *steps, *values; /* steps: struct lr_direct_step; values: float [offset][row] */
    struct gl_buffer *offsets;        /* offsets of mSR, ivec4 */
    int num_steps, num_offsets;
    int axis;     /* axis of a thread's outputs: 0 = x, 1 = y */
    int num_rows; /* rows of mSRval: 1 if all kernels are the same, else one per kernel */
    int64_t bytes;
};

lr_status lr_direct_view_tables_init(struct lr_direct_view_tables *tables, struct lr_direct_builder *builder, int view);
void lr_direct_view_tables_finish(struct lr_direct_view_tables *tables);
struct lr_direct_compute;

/* Measured data of a view (lr_update_data), as images without margins. */
struct lr_direct_view_data {
    struct lr_direct_image counts, additive, factors;
};

/* State of copies between images and vectors. Members are made when first used. */
struct lr_direct_exchange {
    struct gl_program *programs[3][2]; /* [direction][images in textures or buffers] */
    lr_vector sum;                     /* sum of back-projections, in double */
    lr_vector ones;                    /* a histo-image of ones, for sensitivities */
};

/* An operation that changes an image by other images (shaders/direct/combine.comp). */
struct lr_direct_change {
    int what; /* LR_DIRECT_DO_RAMLA, _EM or _ADD */
    float lambda;
    const struct lr_direct_image *by, *sensitivity; /* NULL = none */
};

/* Functions, such as CUDA's, that replace the OpenGL passes and build tables of their own. The functions own the images
 * on which they work until the images are given back or destroyed; OpenGL must not use the images meanwhile (gl_loan).
 * The functions make the context current themselves, but not in every update. */
struct lr_direct_functions {
    const char *name;
    /* Finds the margins that the kernels reach: quads, columns along x and y. */
    void (*margins)(const struct lr_direct_shape *shape, int margin[3]);
    /* Creates the state `self` of the functions. The context is current. errors: NULL, logged. */
    void *(*create)(struct lr_direct_compute *compute);
    /* Replaces lr_direct_run. */
    lr_status (*run)(void *self, bool forward, int view, const struct lr_direct_image *source,
                     const struct lr_direct_image *target);
    /* Replaces lr_direct_run_task. Images are prepared before the clock starts, and tables, too, if memory
     * allows. */
    lr_status (*time)(void *self, const lr_direct_task *task, const struct lr_direct_image *source,
                      const struct lr_direct_image *target, double *device_seconds);
    /* Drops the tables of a task's views and builds them again. Waits for the device. */
    lr_status (*tables)(void *self, const lr_direct_task *task, double *device_seconds);
    /* Replaces the estimate in `histo` by the values that are back-projected (shaders/direct/discrepancy.comp). what:
     * LR_DIRECT_DO_RAMLA, _EM or _SENSITIVITY. */
    lr_status (*discrepancy)(void *self, int what, const struct lr_direct_view_data *data,
                             const struct lr_direct_image *histo);
    lr_status (*change)(void *self, const struct lr_direct_change *change, const struct lr_direct_image *image);
    /* Gives an image back to OpenGL, which uses it next. */
    lr_status (*give_back)(void *self, const struct lr_direct_image *image);
    /* Start and stop the clock of an update. Timed intervals must not overlap. The functions do not wait for the
     * device. */
    void (*begin_lap)(void *self);
    void (*end_lap)(void *self);
    /* Implements lr_direct_device_attributes; NULL = not known. */
    lr_status (*attributes)(void *self, lr_direct_attributes *attributes);
    double (*read_laps)(void *self); /* waits; device time since the last call, s */
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
    struct lr_direct_builder builder;
    struct gl_program *forward, *back;
    struct lr_direct_layout layout;
    struct lr_direct_image in, out;        /* images of projections between vectors */
    struct lr_direct_view_tables *tables;  /* [num_views]; zero = not built or not kept; unused with `functions` */
    struct lr_direct_view_tables borrowed; /* tables of the current view if memory does not suffice to keep them */
    int borrowed_view;                     /* view of `borrowed`; -1 = none */
    int64_t cached_bytes;
    bool is_unordered; /* no barriers between projections, since their results are not used */
    struct gl_stopwatch *watch;
    double device_seconds;               /* device time of the last forward or back, s, without unread laps */
    bool has_laps;                       /* true if timed intervals (laps) are not yet read */
    struct lr_direct_resident *resident; /* data of updates and timings, or NULL */
};

/* The uniform block of shaders/direct/direct.glsl. */
struct lr_direct_pass {
    int32_t grid[4], margin[4], counts[4], extent[4];
};
_Static_assert(sizeof(struct lr_direct_pass) == 64, "the shader's layout");

/* Uniforms with grid, margin and extent; margin[3] and counts are 0. */
struct lr_direct_pass lr_direct_pass_of(const struct lr_direct_compute *compute);

/* Finds the number of workgroups for some threads, in two dimensions. */
void lr_direct_groups(int64_t threads, int groups[3]);

/* Starts a program of these passes. defines: up to two names, and a NULL at the end; may be NULL. Here and below, the
 * context is current. */
struct gl_program *lr_direct_program(const struct lr_direct_compute *compute, const char *name,
                                     const char *const *defines);

/* Returns the tables of a view, which are built if necessary. They are valid until the next call for another view.
 * errors: NULL, logged. */
const struct lr_direct_view_tables *lr_direct_open_tables(struct lr_direct_compute *compute, int view);

/* Drops the tables of a view. */
void lr_direct_drop_tables(struct lr_direct_compute *compute, int view);

/* Creates a backend that uses these functions, which must outlive it. functions: NULL = the OpenGL passes, as in
 * lr_direct_compute_create. */
lr_status lr_direct_compute_create_with(const struct lr_direct_backend_params *params,
                                        const struct lr_direct_functions *functions, struct lr_backend *backend);

/* Takes an image back from the functions if they have it. OpenGL uses it next. */
lr_status lr_direct_reclaim(struct lr_direct_compute *compute, const struct lr_direct_image *image);

/* Copy values to or from an image, which is first taken back from the functions. values: [nz][ny][nx]. */
lr_status lr_direct_put(struct lr_direct_compute *compute, const struct lr_direct_image *image, const float *values);
lr_status lr_direct_fetch(struct lr_direct_compute *compute, const struct lr_direct_image *image, float *values);

/* Returns the program of a projection. The first call starts it. errors: NULL, logged. */
struct gl_program *lr_direct_open_program(struct lr_direct_compute *compute, bool forward);

/* Computes target = K source, or target = K^T source. Source and target must differ. */
lr_status lr_direct_run(struct lr_direct_compute *compute, bool forward, int view, const struct lr_direct_image *source,
                        const struct lr_direct_image *target);

/* Runs a view's projection from compute->in to compute->out and measures its time. Does not wait for the device. */
lr_status lr_direct_run_view(struct lr_direct_compute *compute, bool forward, int view);

/* Returns the device time of all projections by lr_direct_run_view since the last call of this function, s. Waits for
 * the device. The context is current. */
double lr_direct_read_laps(struct lr_direct_compute *compute);

/* Runs all projections of a task into the same target. They run one after another, or in any order if is_unordered.
 * Waits for the device. device_seconds: by the device's clock, s. */
lr_status lr_direct_run_task(struct lr_direct_compute *compute, const lr_direct_task *task,
                             const struct lr_direct_image *source, const struct lr_direct_image *target,
                             double *device_seconds);

/* --- vectors --- */

/* These functions project vectors. Vectors at the backend's place are copied to images with margins, and back, on the
 * device (shaders/direct/exchange.comp). Vectors are in float32. Each is on the host or at the place. */

/* Copies between a vector and an image, which the functions may have at the moment. vector: [num_voxels]. The context
 * is current. errors: LR_FAILED, LR_NO_DEVICE. */
lr_status lr_direct_copy_vector(struct lr_direct_compute *compute, const struct lr_direct_image *image,
                                const lr_vector *vector, bool to_image);

/* Projects forward or back, as the functions of struct lr_backend_fns do. Makes the context current. Values of single
 * voxels are copied through the host. in: NULL = ones are projected back. */
lr_status lr_direct_project_vectors(struct lr_direct_compute *compute, bool is_forward, const lr_selection *part,
                                    const lr_vector *in, lr_vector *out);

/* --- updates --- */

/* Updates run on the device: data, image and intermediate results stay there. */

/* The functions make the context current themselves. */
extern const struct lr_backend_updates lr_direct_compute_updates;

/* Implements lr_backend_fns.time. */
lr_status lr_direct_compute_time(void *self, const lr_direct_task *task, double *device_seconds);

/* Frees compute->resident, which may be NULL. The context is current. */
void lr_direct_resident_destroy(struct lr_direct_compute *compute);

#endif
