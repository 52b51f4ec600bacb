/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_VECTOR_H
#define LR_VECTOR_H

#include <lr/device.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Vectors are arrays of numbers on the host or on a device. The memory in which a vector is stored is called its place.
 * Images, LOR values and histo-images are vectors. Reconstruction computes with vectors at their place, without copies
 * to the host. */

/* --- places --- */

typedef enum lr_place_kind {
    LR_PLACE_HOST = 0, /* arrays in the memory of the process */
    LR_PLACE_GL,       /* buffers of an OpenGL device */
    LR_PLACE_CUDA      /* memory of a CUDA device */
} lr_place_kind;

/* A place at which vectors are stored: the host's memory, or that of an OpenGL or CUDA device. A place has holders,
 * which are the callers, vectors and operators that use it. The place is freed when the last holder is gone
 * (lr_place_close).
 * Threads: one at a time at an OpenGL or CUDA place.
 *
 * A CUDA place queues all work on one stream, in the order of the calls. Some calls return only after the stream has
 * finished all queued work: copies from or to the host, sums, lr_vector_destroy of a vector that the library allocated,
 * and the last lr_place_close. All other calls return once their work is queued. Every call leaves the thread's current
 * CUDA device as it was. */
typedef struct lr_place lr_place;

/* Zero fields are defaults. */
typedef struct lr_place_params {
    lr_place_kind kind;
    int device;                      /* OpenGL: index among the usable devices of lr_device_list; CUDA: index of the
                                        device in CUDA; 0 = the first */
    const lr_shared_context *shared; /* OpenGL: context with which the place shares buffers; `device` is then ignored;
                                        NULL = none */
    int threads;                     /* host: 0 = all processors */
    const lr_log *log;               /* kept; must outlive the place */
    void *cuda_stream;               /* CUDA: a cudaStream_t of `device`, which must outlive the place; NULL = the place
                                        creates a stream, which does not wait for the default stream. For the default
                                        stream, pass cudaStreamLegacy */
} lr_place_params;

/* Bytes that were copied between a device and the host, since the place was opened. */
typedef struct lr_traffic {
    int64_t to_device, to_host;
} lr_traffic;

/* Facts about a place. Strings live as long as the place. */
typedef struct lr_place_info {
    lr_place_kind kind;
    const char *device;   /* "CPU, 2 threads"; "NVIDIA H200/PCIe/SSE2"; "NVIDIA H200" */
    int64_t memory_bytes; /* memory of an OpenGL or CUDA device; 0 = not reported, or the host */
    lr_traffic traffic;
    void *cuda_stream; /* CUDA: the cudaStream_t that the place works on; else NULL */
} lr_place_info;

/* Opens a place. The caller is its first holder. errors: NULL, logged: LR_NO_DEVICE if there is no OpenGL 4.5, no CUDA
 * device, or no CUDA in this build of the library; LR_USAGE for a device that does not exist, a negative number, or a
 * stream for a place that is not CUDA's; LR_FAILED if memory runs out. */
LR_SIZED(lr_place_params, lr_place *, lr_place_open, (const lr_place_params *params), (params));

/* Adds a holder, who must later call lr_place_close. Returns the place; NULL gives NULL. */
LR_API lr_place *lr_place_keep(lr_place *place);

/* Removes a holder. The place is freed with its last holder. NULL is allowed. */
LR_API void lr_place_close(lr_place *place);

/* Reserves the place's device for the calling thread until lr_place_release. Calls can be nested: each needs one
 * lr_place_release, and the last release frees the device. Both calls belong around a sequence of projections and
 * operations. Without them, each projection or operation acquires and releases an OpenGL context, which waits for the
 * device and takes about 50 us. Other threads cannot use the place while it is reserved. For the host and NULL, both
 * calls do nothing. errors: LR_NO_DEVICE if the context cannot be acquired, LR_FAILED. */
LR_API lr_status lr_place_hold(lr_place *place);
LR_API void lr_place_release(lr_place *place);

/* Facts about a place, and the bytes copied so far. NULL: the host with all processors. */
LR_API lr_place_info lr_place_get_info(const lr_place *place);

/* --- vectors --- */

/* The type of the numbers of a vector. */
typedef enum lr_precision { LR_FLOAT32 = 0, LR_FLOAT64 } lr_precision;

struct lr_storage;

/* An array of numbers, or part of one. Plain data: a copy refers to the same numbers. Callers only read the fields. */
typedef struct lr_vector {
    int64_t count;
    lr_precision precision;
    void *values;               /* host: [count] float or double; device: NULL */
    int64_t begin;              /* device: index of the vector's first number in the storage */
    lr_place *place;            /* NULL = the host, all processors */
    struct lr_storage *storage; /* memory that the library allocated, or the caller's device memory; NULL = the caller's
                                   array on the host */
    bool is_part;               /* true if this is a part of another vector (lr_vector_part), and valid only as long as
                                   that vector */
} lr_vector;

/* Zero fields are defaults. */
typedef struct lr_vector_params {
    lr_place *place; /* NULL = the host, all processors */
    int64_t count;
    lr_precision precision;
    const char *name; /* name for messages, such as "the image"; NULL = "a vector" */
    const lr_log *log;
} lr_vector_params;

/* Creates a vector of zeros, which the caller frees with lr_vector_destroy. On failure *vector is zero. errors:
 * LR_USAGE for a negative count; LR_FAILED if memory runs out; LR_NO_DEVICE when the device is lost. */
LR_SIZED(lr_vector_params, lr_status, lr_vector_create, (const lr_vector_params *params, lr_vector *vector),
         (params, vector));

/* Frees numbers that lr_vector_create allocated, and sets *vector to zero. Copies and parts of the vector become
 * invalid. The caller's device memory (lr_vector_wrap_cuda, lr_vector_wrap_gl) and the numbers of a part are not freed.
 * NULL and a zero struct are allowed. */
LR_API void lr_vector_destroy(lr_vector *vector);

/* A vector that refers to the caller's array on the host; it needs no lr_vector_destroy. Arrays for inputs may be
 * const, because functions do not write to their inputs. */
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

/* Makes a vector at a CUDA place (params->place) from the caller's memory on the same device: [params->count] numbers
 * from `memory` on, aligned to their size. The caller destroys the vector with lr_vector_destroy, which does not wait
 * for the device. The caller owns the memory, and frees it after lr_vector_destroy and after the place's stream has
 * finished using it. The caller synchronises other streams with the place's stream: use one stream for both
 * (lr_place_params.cuda_stream), or let one stream wait for an event of the other (lr_place_info.cuda_stream). On
 * failure *vector is zero. errors: LR_USAGE for memory that is not on the place's device, or a place that is not
 * CUDA's; LR_FAILED if memory runs out; LR_NO_DEVICE when the device is lost. */
LR_SIZED(lr_vector_params, lr_status, lr_vector_wrap_cuda,
         (const lr_vector_params *params, void *memory, lr_vector *vector), (params, memory, vector));

/* A buffer of the context with which an OpenGL place shares objects (lr_place_params.shared). */
typedef struct lr_vector_gl_buffer {
    unsigned buffer; /* name of the buffer, which must exist as long as the vector */
    void *after;     /* GLsync, flushed by the caller; NULL = none. The device waits for this GLsync before it uses the
                        vector. The library deletes the GLsync and sets the field to NULL */
} lr_vector_gl_buffer;

/* Makes a vector at an OpenGL place (params->place) from the first params->count numbers of the buffer. The caller owns
 * the buffer but must not use it from this call on. Before the caller uses the buffer again, it calls lr_place_fence
 * after the last use of the vector, and waits for this fence. To give the buffer back to the library, destroy the
 * vector and wrap the buffer again. The caller deletes the buffer after lr_vector_destroy. On failure *vector is zero
 * and the caller keeps buffer->after. errors: LR_USAGE for a name that is no buffer, a buffer that is too short, or a
 * place that shares no objects; LR_FAILED if memory runs out; LR_NO_DEVICE when the device is lost. */
LR_SIZED(lr_vector_params, lr_status, lr_vector_wrap_gl,
         (const lr_vector_params *params, lr_vector_gl_buffer *buffer, lr_vector *vector), (params, buffer, vector));

/* Sets *done to a flushed GLsync that is signalled when all work queued at an OpenGL place is done. The caller deletes
 * the GLsync in the context with which the place shares objects. The call does not wait. errors: *done is NULL;
 * LR_USAGE for a place that is not OpenGL's (for CUDA, record an event on lr_place_info.cuda_stream); LR_NO_DEVICE. */
LR_API lr_status lr_place_fence(lr_place *place, void **done);

/* Numbers begin .. begin + count - 1 of a vector, without a copy. The part is valid as long as the vector. A range that
 * is too long is cut. */
LR_API lr_vector lr_vector_part(const lr_vector *vector, int64_t begin, int64_t count);

/* Copies between any two places and precisions; double is rounded to float. A copy between the host and a device
 * returns when it is complete. A copy between OpenGL and CUDA places of one device, or between two CUDA places, stays
 * on devices. If the precision is the same, no thread waits for the copy: later work on both sides runs after the copy.
 * Other copies between devices pass through the host. errors, here and below: LR_USAGE for counts that differ, and,
 * except for copies, for vectors of different places or precisions; LR_FAILED; LR_NO_DEVICE when the device is lost. */
LR_API lr_status lr_vector_copy(const lr_vector *from, lr_vector *to);

/* Sets *to to a vector with the numbers of `from`, at params->place and in params->precision. If `from` has this place
 * and precision, *to shares its memory, else *to is a copy. params->count is not read. The caller destroys *to before
 * `from`. On failure *to is zero. errors: those of lr_vector_create and lr_vector_copy. */
LR_SIZED(lr_vector_params, lr_status, lr_vector_bring,
         (const lr_vector *from, const lr_vector_params *params, lr_vector *to), (from, params, to));

/* Sets all numbers of the vector to `value`. */
LR_API lr_status lr_vector_fill(lr_vector *vector, double value);

/* Works element by element in double and rounds once to the vectors' precision. */
LR_API lr_status lr_vector_multiply(lr_vector *y, const lr_vector *x); /* y = y x */

/* y = y / x if x > 0, else `otherwise`. */
LR_API lr_status lr_vector_divide(lr_vector *y, const lr_vector *x, double otherwise);

/* y = y + factor x */
LR_API lr_status lr_vector_add_scaled(lr_vector *y, double factor, const lr_vector *x);

/* The update of EM: next = x / sensitivity * correction if the sensitivity is positive, else x. next may be one of the
 * other vectors. */
typedef struct lr_em_update {
    const lr_vector *x, *correction, *sensitivity;
    lr_vector *next;
} lr_em_update;
/* Computes the update of EM. */
LR_API lr_status lr_vector_update_em(const lr_em_update *update);

/* The update of block RAMLA: next = x max(0, 1 + lambda (correction - sensitivity)) if the sensitivity is positive,
 * else x. next may be one of the other vectors. */
typedef struct lr_ramla_update {
    const lr_vector *x, *correction, *sensitivity;
    double lambda; /* >= 0; if it is at most 1 / (largest sensitivity), no factor is cut off at 0 */
    lr_vector *next;
} lr_ramla_update;
/* Computes the update of block RAMLA. */
LR_API lr_status lr_vector_update_ramla(const lr_ramla_update *update);

/* The update of BSREM: next = max(0, x + relaxation max(x, floor) gradient scale). next may be one of the other
 * vectors. */
typedef struct lr_bsrem_update {
    const lr_vector *x, *gradient;
    const lr_vector *scale;   /* >= 0; if it is 0, x is unchanged */
    double relaxation, floor; /* >= 0 */
    lr_vector *next;
} lr_bsrem_update;
/* Computes the update of BSREM. */
LR_API lr_status lr_vector_update_bsrem(const lr_bsrem_update *update);

/* --- neighbours --- */

/* Functions of each number j of a three-dimensional array and its up to 26 neighbours k. d = x_j - x_k, n = x_j + x_k +
 * gamma |d| + epsilon, v = weight kappa_j kappa_k. Terms with n = 0 are 0. */
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
    int size[3]; /* nx, ny, nz: x has nx ny nz numbers, the first axis fastest */
    /* >= 0; weight of a neighbour; the index is the sum of 1, 2, 4 for a step along x, y, z. weights[0] is not used */
    double weights[8];
    double gamma, epsilon;  /* >= 0 */
    double scale;           /* factor of the gradient */
    const lr_vector *x;     /* >= 0 */
    const lr_vector *kappa; /* >= 0; NULL = 1 */
    lr_vector *y;           /* must not be x or kappa */
} lr_relative_differences;

/* Computes in double and rounds once. errors: also LR_USAGE if the product of sizes differs from the vectors' count,
 * and, at OpenGL places, if three xy planes do not fit one storage block. */
LR_API lr_status lr_vector_relative_differences(const lr_relative_differences *differences);

enum { LR_CONVOLUTION_REACH = 128 };

/* Convolution along one axis: y_j = sum over k = -reach .. reach of weights[|k|] x at j + k along the axis, and 0
 * beyond the ends. */
typedef struct lr_convolution {
    int size[3]; /* nx, ny, nz: x has nx ny nz numbers, the first axis fastest */
    int axis;
    int reach;             /* below LR_CONVOLUTION_REACH */
    const double *weights; /* [reach + 1] */
    const lr_vector *x;
    lr_vector *y; /* must not be x */
} lr_convolution;

/* Computes in double and rounds once. errors: as for lr_vector_relative_differences. The planes that must fit one
   storage block are 2 reach + 1 for a convolution along z, and one otherwise. */
LR_API lr_status lr_vector_convolve(const lr_convolution *convolution);

/* Sums in double. The order of summation depends only on the count and the kind of place, so every run and any
 * number of threads give the same bits. */
typedef struct lr_vector_sums {
    double sum;         /* sum of x */
    double product;     /* sum of x y */
    double difference;  /* sum of (x - y)^2 */
    double largest;     /* largest x; -infinity for an empty vector */
    double smallest;    /* smallest x; infinity for an empty vector */
    int64_t not_finite; /* numbers of x that are not finite; they are left out of the fields above */
} lr_vector_sums;

/* Computes all sums in one pass over x and y. If y is NULL, product is the sum of x^2 and difference is 0. */
LR_API lr_status lr_vector_add_up(const lr_vector *x, const lr_vector *y, lr_vector_sums *sums);

/* Fit of estimated to measured counts: y are the measured, e = values + b the estimated counts. LORs with y > 0 and e =
 * 0 are left out of the first three fields. */
typedef struct lr_poisson_fit {
    double log_likelihood;   /* sum of y ln e - e over all LORs */
    double measured_counts;  /* sum of y over LORs with e > 0 */
    double estimated_counts; /* sum of e */
    int64_t left_out_lors;   /* number of LORs with y > 0 and e = 0 */
    double left_out_counts;
} lr_poisson_fit;

/* Adds the fit of a part of the data to the fit of other parts. */
static inline void lr_poisson_fit_add(lr_poisson_fit *sum, const lr_poisson_fit *part)
{
    sum->log_likelihood += part->log_likelihood;
    sum->measured_counts += part->measured_counts;
    sum->estimated_counts += part->estimated_counts;
    sum->left_out_lors += part->left_out_lors;
    sum->left_out_counts += part->left_out_counts;
}

/* Ratio of measured to estimated counts. values: in, the forward projection; out, y / e if y > 0 and e > 0, else 0.
 * Ratios too large for the sums of a back-projection in float are clipped. All vectors are at one place, in float32.
 * fit NULL: no fit is computed, and the call does not wait for the device. */
typedef struct lr_poisson_ratio {
    const lr_vector *measured; /* y >= 0 */
    const lr_vector *additive; /* b >= 0; NULL = no additive term */
    lr_vector *values;
} lr_poisson_ratio;
/* Divides counts by their expectation, and adds up the log-likelihood. fit: may be NULL. */
LR_API lr_status lr_vector_divide_counts(const lr_poisson_ratio *ratio, lr_poisson_fit *fit);

/* --- pictures on the same device --- */

/* A texture that receives a copy of an image on the device; texel (x, y, z) is voxel (x, y, z). */
typedef struct lr_vector_texture {
    unsigned texture; /* texture of the shared context: GL_TEXTURE_3D, GL_R32F, one level of immutable storage of the
                         size below */
    int size[3];
    void *after; /* GLsync that the device waits for before writing; the library then deletes the GLsync; NULL = none */
    void *done;  /* out: GLsync that is signalled when the texture has been written; the caller deletes it */
} lr_vector_texture;

/* Copies an image into a texture, without waiting. errors: LR_USAGE for a vector that is not float32 at an OpenGL
 * place, or whose count differs from the texture's size; LR_NO_DEVICE. */
LR_API lr_status lr_vector_show(const lr_vector *image, lr_vector_texture *texture);

#ifdef __cplusplus
}
#endif

#endif
