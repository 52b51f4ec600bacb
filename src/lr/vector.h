/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_VECTOR_H
#define LR_VECTOR_H

#include <lr/device.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Vectors: numbers with the place where they are stored. Images, LOR values and histo-images are vectors, and what
 * reconstruction does with them between two projections is done where they are. */

/* --- places --- */

typedef enum lr_place_kind {
    LR_PLACE_HOST = 0, /* arrays in the memory of the process */
    LR_PLACE_GL,       /* buffers of an OpenGL device */
    LR_PLACE_CUDA      /* memory of a CUDA device */
} lr_place_kind;

/* A place where vectors live. Vectors and operators keep a place open as long as they need it. One
 * thread at a time works at an OpenGL or CUDA place.
 *
 * A CUDA place does everything on one stream, in the order of the calls. Calls that copy from or to
 * the host or add up, lr_vector_destroy of what the library allocated, and the last lr_place_close
 * return when the stream has done all queued work; the others return once their work is in the
 * stream. Every call leaves the thread's current CUDA device as it was. */
typedef struct lr_place lr_place;

/* Zero fields are defaults. */
typedef struct lr_place_params {
    lr_place_kind kind;
    int device;                      /* OpenGL: index among the usable ones of lr_device_list; CUDA:
                                        as CUDA counts its devices; 0 = the first */
    const lr_shared_context *shared; /* OpenGL: buffers are those of this context too, and `device`
                                        is ignored; NULL = none */
    int threads;                     /* host: 0 = all processors */
    const lr_log *log;               /* kept; outlives the place */
    void *cuda_stream;               /* CUDA: a cudaStream_t of `device`, which outlives the place;
                                        NULL = one of the place's own, which does not wait for the
                                        default stream. cudaStreamLegacy names that one */
} lr_place_params;

/* Bytes that were copied between a device and the host, since the place was opened. */
typedef struct lr_traffic {
    int64_t to_device, to_host;
} lr_traffic;

/* Facts about a place. Strings live as long as the place. */
typedef struct lr_place_info {
    lr_place_kind kind;
    const char *device;   /* "CPU, 2 threads"; "NVIDIA H200/PCIe/SSE2"; "NVIDIA H200" */
    int64_t memory_bytes; /* of an OpenGL or CUDA device; 0 = not reported, or the host */
    lr_traffic traffic;
    void *cuda_stream; /* CUDA: the cudaStream_t that the place works on; else NULL */
} lr_place_info;

/* errors: NULL, logged: LR_NO_DEVICE where there is no OpenGL 4.5, no CUDA device, or no CUDA in this
 * build of the library; LR_USAGE for a device that does not exist, a negative number, or a stream
 * for a place that has none; LR_FAILED if memory runs out. */
LR_API lr_place *lr_place_open(const lr_place_params *params);

/* Adds a holder; whoever keeps a place closes it. Returns it; NULL gives NULL. */
LR_API lr_place *lr_place_keep(lr_place *place);

/* Removes a holder; the last one ends the place. NULL is allowed. */
LR_API void lr_place_close(lr_place *place);

/* Holds the place's device for the calling thread, until it has released it as often. Useful around many
 * projections and operations in a row: without it each of them takes an OpenGL context and returns it, which waits
 * for the device and takes some 50 us. Other threads do not work at the place meanwhile. The host and NULL have
 * nothing to hold.
 * errors: LR_NO_DEVICE where the context cannot be had, LR_FAILED. */
LR_API lr_status lr_place_hold(lr_place *place);
LR_API void lr_place_release(lr_place *place);

/* Facts about a place, and the bytes copied so far. NULL: the host with all processors. */
LR_API lr_place_info lr_place_get_info(const lr_place *place);

/* --- vectors --- */

typedef enum lr_precision { LR_FLOAT32 = 0, LR_FLOAT64 } lr_precision;

struct lr_storage;

/* A row of numbers, or part of one. Plain data: a copy of it names the same numbers. Its fields are
 * for reading. */
typedef struct lr_vector {
    int64_t count;
    lr_precision precision;
    void *values;               /* on the host: [count] float or double; elsewhere NULL */
    int64_t begin;              /* elsewhere: its first number among those of the storage */
    lr_place *place;            /* NULL = the host, all processors */
    struct lr_storage *storage; /* what the library allocated, or wraps of a device; NULL = the
                                   caller's array on the host */
    bool is_part;               /* of another vector, which it lives with */
} lr_vector;

/* Zero fields are defaults. */
typedef struct lr_vector_params {
    lr_place *place; /* NULL = the host, all processors */
    int64_t count;
    lr_precision precision;
    const char *name; /* in sentences, such as "the image"; NULL = "a vector" */
    const lr_log *log;
} lr_vector_params;

/* Allocates zeros. On failure *vector is zero. errors: LR_USAGE for a negative count; LR_FAILED
 * if memory runs out; LR_NO_DEVICE when the device is lost. */
LR_API lr_status lr_vector_create(const lr_vector_params *params, lr_vector *vector);

/* Frees what lr_vector_create allocated, for all that name it, and leaves zero. Of wrapped memory and
 * of parts it frees nothing. NULL and zero are allowed. */
LR_API void lr_vector_destroy(lr_vector *vector);

/* The caller's array on the host as a vector, which needs no destroying. What is only read may be
 * const: nothing is written to the inputs of functions. */
static inline lr_vector lr_vector_of_floats(const float *values, int64_t count)
{
    lr_vector vector = {0, LR_FLOAT32, NULL, 0, NULL, NULL, false};
    vector.count = count;
    vector.values = (void *)(uintptr_t)values;
    return vector;
}

static inline lr_vector lr_vector_of_doubles(const double *values, int64_t count)
{
    lr_vector vector = {0, LR_FLOAT64, NULL, 0, NULL, NULL, false};
    vector.count = count;
    vector.values = (void *)(uintptr_t)values;
    return vector;
}

/* Memory of the caller's on a CUDA device as a vector at a CUDA place (params->place) of that device:
 * [params->count] numbers from `memory` on, which is aligned to their size. They stay the caller's,
 * who frees them after lr_vector_destroy and after the place's stream is done with them. What the
 * caller's other streams do with them before must be done before the place's stream goes on, and the
 * reverse: use one stream for both (lr_place_params.cuda_stream), or let one wait for an event of the
 * other (lr_place_info.cuda_stream). Destroy the vector; that waits for nothing. On failure *vector is
 * zero. errors: LR_USAGE for memory that is not of that device, or a place that is not CUDA's;
 * LR_FAILED if memory runs out; LR_NO_DEVICE when the device is lost. */
LR_API lr_status lr_vector_wrap_cuda(const lr_vector_params *params, void *memory, lr_vector *vector);

/* A buffer of the context that an OpenGL place shares objects with (lr_place_params.shared). */
typedef struct lr_vector_gl_buffer {
    unsigned buffer; /* its name; at least as long as the vector */
    void *after;     /* GLsync, flushed by the caller: the device waits for it before the vector is
                        used, and it is deleted and zeroed then; NULL = none */
} lr_vector_gl_buffer;

/* Such a buffer as a vector at that place (params->place): its first params->count numbers. It stays
 * the caller's, who leaves it alone from this call until the fence of an lr_place_fence is signalled
 * that was asked for after the last use of the vector; to hand it over again, destroy the vector and
 * wrap the buffer anew. The caller deletes it after lr_vector_destroy. On failure *vector is zero and
 * buffer->after still the caller's. errors: LR_USAGE for a name that is no buffer or one that is too
 * short, or a place that shares no objects; LR_FAILED if memory runs out; LR_NO_DEVICE when the device is
 * lost. */
LR_API lr_status lr_vector_wrap_gl(const lr_vector_params *params, lr_vector_gl_buffer *buffer, lr_vector *vector);

/* *done: a GLsync, flushed, that is signalled when all work queued at an OpenGL place is done; the
 * caller's to delete in the context that the place shares objects with. Waits for nothing. errors:
 * *done is NULL; LR_USAGE for a place that is not OpenGL's (for CUDA, record an event on
 * lr_place_info.cuda_stream); LR_NO_DEVICE. */
LR_API lr_status lr_place_fence(lr_place *place, void **done);

/* Numbers begin .. begin + count - 1 of a vector, without a copy; they live as long as it does. A
 * range that leaves the vector is cut. */
LR_API lr_vector lr_vector_part(const lr_vector *vector, int64_t begin, int64_t count);

/* Copies between any two places, and precisions: double becomes float by rounding. Between the host
 * and a device it returns when all has arrived. Between OpenGL and CUDA places of one device nothing
 * passes through the host, and where the precision stays no thread waits: each side goes on after the
 * copy. Between other devices, and between two CUDA places, the numbers go through the host.
 * errors, here and below: LR_USAGE for counts that differ, and, except for copies, for vectors of
 * different places or precisions; LR_FAILED; LR_NO_DEVICE when the device is lost. */
LR_API lr_status lr_vector_copy(const lr_vector *from, lr_vector *to);

LR_API lr_status lr_vector_fill(lr_vector *vector, double value);

/* Works element by element in double and rounds once to the vectors' precision. */
LR_API lr_status lr_vector_multiply(lr_vector *y, const lr_vector *x); /* y = y x */

/* y = y / x where x > 0, else `otherwise`. */
LR_API lr_status lr_vector_divide(lr_vector *y, const lr_vector *x, double otherwise);

/* y = y + factor x */
LR_API lr_status lr_vector_add_scaled(lr_vector *y, double factor, const lr_vector *x);

/* next = x / sensitivity * correction where the sensitivity is positive, else x: the update of EM.
 * next may be any of the others. */
typedef struct lr_em_update {
    const lr_vector *x, *correction, *sensitivity;
    lr_vector *next;
} lr_em_update;
LR_API lr_status lr_vector_update_em(const lr_em_update *update);

/* next = x max(0, 1 + lambda (correction - sensitivity)) where the sensitivity is positive, else x:
 * the update of block RAMLA. next may be any of the others. */
typedef struct lr_ramla_update {
    const lr_vector *x, *correction, *sensitivity;
    double lambda; /* >= 0; up to 1 / (largest sensitivity) no factor is cut off at 0 */
    lr_vector *next;
} lr_ramla_update;
LR_API lr_status lr_vector_update_ramla(const lr_ramla_update *update);

/* next = max(0, x + relaxation max(x, floor) gradient scale): the update of BSREM. next may be any of
 * the others. */
typedef struct lr_bsrem_update {
    const lr_vector *x, *gradient;
    const lr_vector *scale;   /* >= 0; where it is 0, x stays */
    double relaxation, floor; /* >= 0 */
    lr_vector *next;
} lr_bsrem_update;
LR_API lr_status lr_vector_update_bsrem(const lr_bsrem_update *update);

/* --- neighbours --- */

/* Functions of each number j of a three-dimensional row and its up to 26 neighbours k, with d = x_j - x_k, n = x_j
 * + x_k + gamma |d| + epsilon and v = weight kappa_j kappa_k. Terms with n = 0 are 0. */
typedef enum lr_differences {
    LR_DIFFERENCES_VALUE = 0, /* y_j = 1/2 sum_k v d^2 / n; R = sum_j y_j */
    LR_DIFFERENCES_GRADIENT,  /* y_j = y_j + scale sum_k v d (gamma |d| + x_j + 3 x_k + 2 epsilon)
                                 / n^2, which is scale dR / dx_j */
    LR_DIFFERENCES_WEIGHTS    /* y_j = sum_k v */
} lr_differences;

/* Relative differences of neighbours: Nuyts, Beque, Dupont and Mortelmans, A Concave Prior Penalizing
 * Relative Differences for Maximum-a-Posteriori Reconstruction in Emission Tomography, IEEE Trans.
 * Nucl. Sci. 49 (2002), equations 5 to 7, with epsilon, kappa and weights. */
typedef struct lr_relative_differences {
    lr_differences what;
    int size[3];            /* nx, ny, nz: x has nx ny nz numbers, the first axis fastest */
    double weights[8];      /* >= 0; of a neighbour that differs along x (1), y (2), z (4): their sum is
                               its place. The first is not used */
    double gamma, epsilon;  /* >= 0 */
    double scale;           /* of the gradient */
    const lr_vector *x;     /* >= 0 */
    const lr_vector *kappa; /* >= 0; NULL = 1 */
    lr_vector *y;           /* neither x nor kappa */
} lr_relative_differences;

/* Computes in double and rounds once. errors: also LR_USAGE for sizes that do not give the vectors' count, and at
 * OpenGL places for rows of which three layers do not fit one storage block. */
LR_API lr_status lr_vector_relative_differences(const lr_relative_differences *differences);

enum { LR_CONVOLUTION_REACH = 128 };

/* y_j = sum over k = -reach .. reach of weights[|k|] x at j + k along the axis, and 0 beyond the ends. */
typedef struct lr_convolution {
    int size[3]; /* nx, ny, nz: x has nx ny nz numbers, the first axis fastest */
    int axis;
    int reach;             /* below LR_CONVOLUTION_REACH */
    const double *weights; /* [reach + 1] */
    const lr_vector *x;
    lr_vector *y; /* not x */
} lr_convolution;

/* Computes in double and rounds once. errors: as for lr_vector_relative_differences. */
LR_API lr_status lr_vector_convolve(const lr_convolution *convolution);

/* Sums in double, in an order that depends on the count and the kind of place alone: the same bits in
 * every run and for any number of threads. */
typedef struct lr_vector_sums {
    double sum;         /* x */
    double product;     /* x y */
    double difference;  /* (x - y)^2 */
    double largest;     /* x; -infinity of an empty vector */
    int64_t not_finite; /* of x; they are left out of the above */
} lr_vector_sums;

/* One walk over x, and y; without y (NULL) product is the sum of x^2, and difference 0. */
LR_API lr_status lr_vector_add_up(const lr_vector *x, const lr_vector *y, lr_vector_sums *sums);

/* Measured against estimated counts; y measured, e = values + b estimated. Where y > 0 and e = 0,
 * counts are left out of the first three. */
typedef struct lr_poisson_fit {
    double log_likelihood;   /* sum of y ln e - e */
    double measured_counts;  /* y where e > 0 */
    double estimated_counts; /* e */
    int64_t left_out_lors;   /* y > 0 where e = 0 */
    double left_out_counts;
} lr_poisson_fit;

/* The fit of two parts of the data together. */
static inline void lr_poisson_fit_add(lr_poisson_fit *sum, const lr_poisson_fit *part)
{
    sum->log_likelihood += part->log_likelihood;
    sum->measured_counts += part->measured_counts;
    sum->estimated_counts += part->estimated_counts;
    sum->left_out_lors += part->left_out_lors;
    sum->left_out_counts += part->left_out_counts;
}

/* values: in, what is projected; out, y / e where y > 0 and e > 0, else 0; a ratio larger than what
 * a back-projection in float can sum is cut there. All are of one place, in float32. fit NULL: the fit is lost, and
 * nothing waits for the device. */
typedef struct lr_poisson_ratio {
    const lr_vector *measured; /* y >= 0 */
    const lr_vector *additive; /* b >= 0; NULL = 0 */
    lr_vector *values;
} lr_poisson_ratio;
LR_API lr_status lr_vector_divide_counts(const lr_poisson_ratio *ratio, lr_poisson_fit *fit);

/* --- pictures on the same device --- */

/* A texture that an image is copied to on the device: texel (x, y, z) is that voxel. */
typedef struct lr_vector_texture {
    unsigned texture; /* of the shared context: GL_TEXTURE_3D, GL_R32F, one level of immutable
                         storage of this size: */
    int size[3];
    void *after; /* GLsync that the device waits for before it writes, and that is deleted
                    then; NULL = none */
    void *done;  /* set: GLsync that is signalled when all is written. The caller's to delete */
} lr_vector_texture;

/* Copies without waiting. errors: LR_USAGE for a vector that is not float32 at an OpenGL place, or
 * not of that many voxels; LR_NO_DEVICE. */
LR_API lr_status lr_vector_show(const lr_vector *image, lr_vector_texture *texture);

#ifdef __cplusplus
}
#endif

#endif
