/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * NVIDIA's cuFFT: real transforms of all volumes at once, with one plan for each direction. All data are on the
 * device. */
#include "fft/fft.h"

#include "base/clock.h"
#include "base/log.h"
#include "fft/cufft_product.h"

#include <cuda_runtime_api.h>
#include <cufft.h>
#include <stdio.h>

enum { NO_PLAN = -1 };

struct transform {
    const struct fft_job *job;
    int64_t voxels, bins;       /* numbers for one volume */
    float *real;                /* [volumes][voxels]; on the device, like the other arrays */
    float2 *complex, *spectrum; /* [volumes][bins]; [bins] */
    cufftHandle there, back;
    cudaEvent_t begin, end;
};

static lr_status check(const struct transform *t, int error, const char *what)
{
    return error == (int)cudaSuccess
               ? LR_OK
               : lr_error(t->job->log, LR_FAILED, "%s: CUDA says %s", what, cudaGetErrorString((enum cudaError)error));
}

static lr_status check_result(const struct transform *t, cufftResult result, const char *what)
{
    if (result == CUFFT_SUCCESS) return LR_OK;
    const int *size = t->job->size;
    return lr_error(t->job->log, LR_FAILED, "cuFFT cannot %s %d x %d x %d voxels, %d at a time%s", what, size[0],
                    size[1], size[2], t->job->volumes, result == CUFFT_ALLOC_FAILED ? ": no memory on the device" : "");
}

/* --- plans and arrays --- */

static lr_status allocate(const struct transform *t, void *array, int64_t count, size_t size)
{
    return check(t, (int)cudaMalloc(array, (size_t)count * size), "no memory on the device for transforms");
}

/* A NULL embedding means arrays without gaps. */
static lr_status make_plan(struct transform *t, cufftType type, cufftHandle *plan)
{
    const int *size = t->job->size;
    int order[3] = {size[2], size[1], size[0]};
    cufftHandle made;
    LR_TRY(check_result(t, cufftPlanMany(&made, 3, order, NULL, 1, 0, NULL, 1, 0, type, t->job->volumes),
                        "plan transforms of"));
    *plan = made;
    return LR_OK;
}

static lr_status open_transform(struct transform *t)
{
    const int *size = t->job->size;
    t->voxels = (int64_t)size[0] * size[1] * size[2];
    t->bins = (int64_t)(size[0] / 2 + 1) * size[1] * size[2];
    LR_TRY(allocate(t, &t->real, t->job->volumes * t->voxels, sizeof(*t->real)));
    LR_TRY(allocate(t, &t->complex, t->job->volumes * t->bins, sizeof(*t->complex)));
    LR_TRY(allocate(t, &t->spectrum, t->bins, sizeof(*t->spectrum)));
    LR_TRY(check(t, (int)cudaEventCreate(&t->begin), "no clock"));
    LR_TRY(check(t, (int)cudaEventCreate(&t->end), "no clock"));
    LR_TRY(make_plan(t, CUFFT_R2C, &t->there));
    return make_plan(t, CUFFT_C2R, &t->back);
}

/* --- transforms --- */

static lr_status put_volume(const struct transform *t, int volume, const float *values)
{
    return check(t,
                 (int)cudaMemcpy(t->real + volume * t->voxels, values, (size_t)t->voxels * sizeof(*values),
                                 cudaMemcpyHostToDevice),
                 "an image does not go to the device");
}

static lr_status make_spectrum(const struct transform *t)
{
    for (int k = 0; k < t->job->volumes; k++) LR_TRY(put_volume(t, k, t->job->kernel));
    LR_TRY(check_result(t, cufftExecR2C(t->there, t->real, t->complex), "transform"));
    return check(
        t, (int)cudaMemcpy(t->spectrum, t->complex, (size_t)t->bins * sizeof(*t->complex), cudaMemcpyDeviceToDevice),
        "the kernel's spectrum");
}

static lr_status convolve_once(void *user, struct fft_timing *taken)
{
    const struct transform *t = user;
    float device_ms = 0;
    const double begin = lr_clock_seconds();
    const fft_product product = {t->complex, t->spectrum, t->bins, t->job->volumes, 1.0f / (float)t->voxels};
    LR_TRY(check(t, (int)cudaEventRecord(t->begin, NULL), "the clock"));
    LR_TRY(check_result(t, cufftExecR2C(t->there, t->real, t->complex), "transform"));
    LR_TRY(check(t, fft_launch_product(&product), "the product with the spectrum"));
    LR_TRY(check_result(t, cufftExecC2R(t->back, t->complex, t->real), "transform"));
    LR_TRY(check(t, (int)cudaEventRecord(t->end, NULL), "the clock"));

    LR_TRY(check(t, (int)cudaEventSynchronize(t->end), "a convolution"));
    taken->wall_s = lr_clock_seconds() - begin;
    LR_TRY(check(t, (int)cudaEventElapsedTime(&device_ms, t->begin, t->end), "the clock"));
    taken->device_s = 1e-3 * (double)device_ms;
    return LR_OK;
}

/* Each run except the first convolves the result of the run before. */
static lr_status run(struct transform *t, float *out, struct fft_timing *timing)
{
    const struct fft_job *job = t->job;
    LR_TRY(make_spectrum(t));
    for (int k = 0; k < job->volumes; k++) LR_TRY(put_volume(t, k, job->image));
    LR_TRY(check(t, (int)cudaDeviceSynchronize(), "images on the device"));
    LR_TRY(convolve_once(t, timing));
    LR_TRY(check(t,
                 (int)cudaMemcpy(out, t->real + (job->volumes - 1) * t->voxels, (size_t)t->voxels * sizeof(*out),
                                 cudaMemcpyDeviceToHost),
                 "an image does not come from the device"));
    return fft_measure(job, convolve_once, t, timing);
}

bool fft_cufft_has_device(void)
{
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    (void)cudaGetLastError(); /* clears the error, so that later calls do not report it */
    return error == cudaSuccess && count > 0;
}

lr_status fft_cufft_convolve(const struct fft_job *job, float *out, struct fft_timing *timing, char name[160])
{
    struct transform transform = {.job = job, .there = NO_PLAN, .back = NO_PLAN};
    if (!fft_cufft_has_device())
        return lr_error(job->log, LR_NO_DEVICE, "no CUDA device for cuFFT: there is none, or its driver is too old");
    struct cudaDeviceProp properties;
    int version = 0, device = 0;
    LR_TRY(check(&transform, (int)cudaGetDevice(&device), "no device"));
    LR_TRY(check(&transform, (int)cudaGetDeviceProperties(&properties, device), "no device"));
    LR_TRY(check_result(&transform, cufftGetVersion(&version), "transform"));
    snprintf(name, 160, "cuFFT %d.%d.%d, %.120s", version / 1000, version / 100 % 10, version % 100, properties.name);

    lr_status status = open_transform(&transform);
    if (status == LR_OK) status = run(&transform, out, timing);
    if (transform.back != NO_PLAN) cufftDestroy(transform.back);
    if (transform.there != NO_PLAN) cufftDestroy(transform.there);
    if (transform.end != NULL) cudaEventDestroy(transform.end);
    if (transform.begin != NULL) cudaEventDestroy(transform.begin);
    cudaFree(transform.spectrum);
    cudaFree(transform.complex);
    cudaFree(transform.real);

    return status;
}
