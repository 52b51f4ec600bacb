/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `compute` backend of the family `direct`: images are 3-D textures with margins
 * (shaders/direct/direct.glsl), tables are built on the device and kept. */
#ifndef LR_RENDER_DIRECT_DIRECT_H
#define LR_RENDER_DIRECT_DIRECT_H

#include "direct/backend.h"
#include "direct/tables.h"
#include "direct/views.h"
#include "gl/pass.h"
#include "gl/timer.h"
#include "vector/place.h"

#include <lr/direct.h>

/* The layout of a projector's images on its device. */
struct lr_direct_layout {
    struct gl_context *ctx;
    const lr_log *log;
    int size[3];         /* size of the grid */
    int quads;           /* quads of slices */
    int margin[3];       /* zeros on either side: quads, columns along x and along y */
    bool buffers;        /* images with margins are storage buffers, not textures */
    bool data_buffers;   /* images without margins are, too; passes cannot read them then */
    lr_traffic *traffic; /* counts uploads and reads; outlives the images */
};

/* Zero is none; one of the two is there. */
struct lr_direct_image {
    struct gl_texture *texture;
    struct gl_buffer *buffer;
    bool has_margins;
};

/* An image of zeros. Images without margins cannot be projected. The context is current, here and below.
 * errors: LR_FAILED. */
lr_status lr_direct_image_init(struct lr_direct_image *image, const struct lr_direct_layout *layout, const char *label,
                               bool has_margins);
void lr_direct_image_finish(struct lr_direct_image *image);
bool lr_direct_image_exists(const struct lr_direct_image *image);

/* values: [nz][ny][nx], read if to_device, else written. */
lr_status lr_direct_image_copy(const struct lr_direct_image *image, const struct lr_direct_layout *layout,
                               float *values, bool to_device);

/* Binds an image that a pass reads as its source, or reads and writes as its target. */
void lr_direct_bind_source(struct gl_pass *pass, const struct lr_direct_image *image);

void lr_direct_bind_target(struct gl_pass *pass, const struct lr_direct_image *image);

/* Barriers for passes that write images. */
GLbitfield lr_direct_barriers(void);

/* --- steps --- */

/* mSR as the steps that shaders/direct/gather.glsl takes. */

/* One step: two ivec4 of the shader. */
struct lr_direct_step {
    int32_t along, across, quads, mask;
    int32_t first[4]; /* LR_DIRECT_OUTPUTS */
};
_Static_assert(sizeof(struct lr_direct_step) == 32, "the shader's layout");

/* --- tables --- */

/* Look-up tables of one view on the device, built there: LORmap and mSRval. */

/* State that the tables of all views share. */
struct lr_direct_builder {
    struct gl_context *ctx;
    const struct lr_direct_backend_params *params;
    int margin[3];                   /* margin of images: quads of slices, columns along x and along y */
    struct gl_program *map, *values; /* NULL before the first tables */
};

/* Zero is none. The context is current, here and below. */
struct lr_direct_view_tables {
    struct gl_texture *map;           /* R16UI [ny + 2 margin][nx + 2 margin] */
    struct gl_buffer *steps, *values; /* struct lr_direct_step; float [offset][row] */
    struct gl_buffer *offsets;        /* offsets of mSR, ivec4 */
    int num_steps, num_offsets;
    int axis;     /* axis of a thread's outputs: 0 = x, 1 = y */
    int num_rows; /* of mSRval: 1 if all kernels are the same, else one a kernel */
    int64_t bytes;
};

lr_status lr_direct_view_tables_init(struct lr_direct_view_tables *tables, struct lr_direct_builder *builder, int view);
void lr_direct_view_tables_finish(struct lr_direct_view_tables *tables);
struct lr_direct_compute;

/* Measured data of a view (lr_update_data), without margins. */
struct lr_direct_view_data {
    struct lr_direct_image counts, additive, factors;
};

/* Copies between images and vectors; made when first used. */
struct lr_direct_exchange {
    struct gl_program *programs[3];
    lr_vector sum;  /* sum of back-projections, in double */
    lr_vector ones; /* a histo-image, of sensitivities */
};

/* The operation by which an image changes another (shaders/direct/combine.comp). */
struct lr_direct_change {
    int what; /* LR_DIRECT_DO_RAMLA, _EM or _ADD */
    float lambda;
    const struct lr_direct_image *by, *sensitivity; /* NULL = none */
};

/* Functions that replace these passes and have tables of their own: those of CUDA. They own the images that they work
 * on until the images are given back or destroyed; OpenGL is refused meanwhile (gl_loan). They make the context
 * current themselves, but not in every update. */
struct lr_direct_functions {
    const char *name;
    /* Margins that the kernels reach: quads, columns along x and y. */
    void (*margins)(const struct lr_direct_shape *shape, int margin[3]);
    /* The context is current. errors: NULL, logged. */
    void *(*create)(struct lr_direct_compute *compute);
    /* lr_direct_run */
    lr_status (*run)(void *self, bool forward, int view, const struct lr_direct_image *source,
                     const struct lr_direct_image *target);
    /* lr_direct_run_task; images, and tables as far as memory allows, are prepared before the clock starts. */
    lr_status (*time)(void *self, const lr_direct_task *task, const struct lr_direct_image *source,
                      const struct lr_direct_image *target, double *device_seconds);
    /* Drops the tables of a task's views and builds them again; waits. */
    lr_status (*tables)(void *self, const lr_direct_task *task, double *device_seconds);
    /* Turns histo from an estimate to the values that the view projects back; what: LR_DIRECT_DO_RAMLA, _EM or
     * _SENSITIVITY (shaders/direct/discrepancy.comp). */
    lr_status (*discrepancy)(void *self, int what, const struct lr_direct_view_data *data,
                             const struct lr_direct_image *histo);
    lr_status (*change)(void *self, const struct lr_direct_change *change, const struct lr_direct_image *image);
    /* OpenGL uses the image next. */
    lr_status (*give_back)(void *self, const struct lr_direct_image *image);
    /* The clock of updates: laps follow each other; neither end waits. */
    void (*begin_lap)(void *self);
    void (*end_lap)(void *self);
    /* lr_direct_device_attributes; NULL = not known */
    lr_status (*attributes)(void *self, lr_direct_attributes *attributes);
    double (*read_laps)(void *self); /* waits; all seconds of the device since the last read */
    void (*destroy)(void *self);
};

struct lr_direct_compute {
    struct lr_backend_fns fns;
    struct lr_direct_views views;
    const struct lr_direct_functions *functions; /* NULL = the passes */
    void *self;                                  /* the state of the functions */
    struct lr_direct_backend_params params;
    lr_place *place;        /* owned */
    struct gl_context *ctx; /* the place's context */
    struct lr_direct_exchange exchange;
    struct lr_direct_builder builder;
    struct gl_program *forward, *back;
    struct lr_direct_layout layout;
    struct lr_direct_image in, out;        /* images of projections between vectors */
    struct lr_direct_view_tables *tables;  /* [num_views]; zero = not built, or not kept, since functions
                                              have their own */
    struct lr_direct_view_tables borrowed; /* of the current view, if memory does not suffice to keep its tables */
    int borrowed_view;                     /* -1: none */
    int64_t cached_bytes;
    bool is_unordered; /* projections do not wait for each other, since their results are not used */
    struct gl_stopwatch *watch;
    double device_seconds;               /* time of the last call of forward or back, without laps */
    bool has_laps;                       /* true if laps are yet to be read */
    struct lr_direct_resident *resident; /* data of updates and timings, or NULL */
};

/* The block of shaders/direct/direct.glsl. */
struct lr_direct_pass {
    int32_t grid[4], margin[4], counts[4], extent[4];
};
_Static_assert(sizeof(struct lr_direct_pass) == 64, "the shader's layout");

/* grid and margin; margin[3] and counts are 0. */
struct lr_direct_pass lr_direct_pass_of(const struct lr_direct_compute *compute);

/* Groups for a number of threads, in two dimensions. */
void lr_direct_groups(int64_t threads, int groups[3]);

/* A program of these passes, with up to two defines of its own (NULL at the end; may be NULL). The
 * context is current, here and below. */
struct gl_program *lr_direct_program(const struct lr_direct_compute *compute, const char *name,
                                     const char *const *defines);

/* Tables of a view, built if necessary; they are valid until the next call for another view. */
const struct lr_direct_view_tables *lr_direct_open_tables(struct lr_direct_compute *compute, int view);

/* Drops the tables of a view. */
void lr_direct_drop_tables(struct lr_direct_compute *compute, int view);

/* The backend of these functions, which outlive it. NULL = the passes, as lr_direct_compute_create. */
lr_status lr_direct_compute_create_with(const struct lr_direct_backend_params *params,
                                        const struct lr_direct_functions *functions, struct lr_direct_backend *backend);

/* Takes an image back from the functions, if they have it; OpenGL uses it next. */
lr_status lr_direct_reclaim(struct lr_direct_compute *compute, const struct lr_direct_image *image);

/* values: [nz][ny][nx], to or from an image, which is taken back from the functions. */
lr_status lr_direct_put(struct lr_direct_compute *compute, const struct lr_direct_image *image, const float *values);
lr_status lr_direct_fetch(struct lr_direct_compute *compute, const struct lr_direct_image *image, float *values);

/* The program of a projection, which is started at the first call. errors: NULL, logged. */
struct gl_program *lr_direct_open_program(struct lr_direct_compute *compute, bool forward);

/* target = K source, or K^T source. The two must differ. */
lr_status lr_direct_run(struct lr_direct_compute *compute, bool forward, int view, const struct lr_direct_image *source,
                        const struct lr_direct_image *target);

/* A view's projection from compute->in to compute->out, which the clock measures as a lap; does not wait. */
lr_status lr_direct_run_view(struct lr_direct_compute *compute, bool forward, int view);

/* Seconds of the device for all such laps since the last call of this; waits. The context is current. */
double lr_direct_read_laps(struct lr_direct_compute *compute);

/* The projections of a task, one after the other into the same target, or in any order if is_unordered; waits.
 * device_seconds: by the device's clock. */
lr_status lr_direct_run_task(struct lr_direct_compute *compute, const lr_direct_task *task,
                             const struct lr_direct_image *source, const struct lr_direct_image *target,
                             double *device_seconds);

/* --- vectors --- */

/* Projections of the family `direct` of vectors at the backend's place: vectors are copied to images with margins,
 * and back, on the device (shaders/direct/exchange.comp). Vectors are in float32, each on the host or at the place.
 * */

/* vector: [num_voxels]; the functions may have the image. The context is current.
 * errors: LR_FAILED; LR_NO_DEVICE. */
lr_status lr_direct_copy_vector(struct lr_direct_compute *compute, const struct lr_direct_image *image,
                                const lr_vector *vector, bool to_image);

/* Projects forward or back as struct lr_backend_fns; makes the context current. Values of single voxels pass through
 * the host. in NULL: ones are projected back. */
lr_status lr_direct_project_vectors(struct lr_direct_compute *compute, bool is_forward, const lr_selection *part,
                                    const lr_vector *in, lr_vector *out);

/* --- updates --- */

/* Updates of the family `direct` on the device: data, image and intermediate results stay there. */

/* The functions make the context current themselves. */
extern const struct lr_backend_updates lr_direct_compute_updates;

/* lr_direct_backend.time */
lr_status lr_direct_compute_time(void *self, const lr_direct_task *task, double *device_seconds);

/* Frees compute->resident, which may be NULL. The context is current. */
void lr_direct_resident_destroy(struct lr_direct_compute *compute);

#endif
