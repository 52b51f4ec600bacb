/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * FFTW 3: real transforms, planned by trial (FFTW_MEASURE). source: Frigo and Johnson, The Design and Implementation of
 * FFTW3 (2005) */
#include "fft/fft.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/parallel.h"

#include <fftw3.h>
#include <stdio.h>
#include <string.h>

#define PLANNING_SHARE 0.2 /* the planning of each transform may take this fraction of the time for runs */

struct transform {
    const struct fft_job *job;
    int64_t voxels, bins;              /* numbers for one volume */
    float *real;                       /* [volumes][voxels] */
    fftwf_complex *complex, *spectrum; /* [volumes][bins]; [bins], divided by the number of voxels */
    fftwf_plan there, back;
};

static lr_status open_transform(struct transform *t, const struct fft_job *job)
{
    const int *size = job->size, volumes = job->volumes;
    const int order[3] = {size[2], size[1], size[0]};
    t->job = job;
    t->voxels = (int64_t)size[0] * size[1] * size[2];
    t->bins = (int64_t)(size[0] / 2 + 1) * size[1] * size[2];
    t->real = fftwf_alloc_real((size_t)(volumes * t->voxels));
    t->complex = fftwf_alloc_complex((size_t)(volumes * t->bins));
    t->spectrum = fftwf_alloc_complex((size_t)t->bins);
    if (t->real == NULL || t->complex == NULL || t->spectrum == NULL)
        return lr_error(job->log, LR_FAILED, "no memory for transforms of %d volumes", volumes);
    fftwf_plan_with_nthreads(job->threads);
    t->there = fftwf_plan_many_dft_r2c(3, order, volumes, t->real, NULL, 1, (int)t->voxels, t->complex, NULL, 1,
                                       (int)t->bins, FFTW_MEASURE);
    t->back = fftwf_plan_many_dft_c2r(3, order, volumes, t->complex, NULL, 1, (int)t->bins, t->real, NULL, 1,
                                      (int)t->voxels, FFTW_MEASURE);
    return t->there && t->back
               ? LR_OK
               : lr_error(job->log, LR_FAILED, "FFTW has no plan for %d x %d x %d voxels", size[0], size[1], size[2]);
}

static void multiply(void *user, int64_t begin, int64_t end)
{
    const struct transform *t = user;
    for (int64_t k = begin; k < end; k++) {
        float *value = t->complex[k];
        const float *factor = t->spectrum[k % t->bins];
        const float real = value[0] * factor[0] - value[1] * factor[1];
        value[1] = value[0] * factor[1] + value[1] * factor[0];
        value[0] = real;
    }
}

static lr_status convolve_once(void *user, struct fft_timing *taken)
{
    struct transform *t = user;
    const double begin = lr_clock_seconds();
    fftwf_execute(t->there);
    lr_parallel_for(t->job->threads, t->job->volumes * t->bins, 1 << 14, multiply, t);
    fftwf_execute(t->back);
    *taken = (struct fft_timing){.wall_s = lr_clock_seconds() - begin};
    return LR_OK;
}

/* Each run except the first convolves the result of the run before. */
static lr_status run(struct transform *t, float *out, struct fft_timing *timing)
{
    const struct fft_job *job = t->job;
    const size_t bytes = (size_t)t->voxels * sizeof(float);
    for (int k = 0; k < job->volumes; k++) memcpy(t->real + k * t->voxels, job->image, bytes);
    LR_TRY(convolve_once(t, timing));
    memcpy(out, t->real + (job->volumes - 1) * t->voxels, bytes);
    return fft_measure(job, convolve_once, t, timing);
}

lr_status fft_fftw_convolve(const struct fft_job *job, float *out, struct fft_timing *timing, char name[160])
{
    static bool has_threads;
    struct transform transform = {0};
    if (!has_threads && fftwf_init_threads() == 0) return lr_error(job->log, LR_FAILED, "FFTW cannot use threads");
    has_threads = true;
    fftwf_set_timelimit(PLANNING_SHARE * job->seconds);
    snprintf(name, 160, "%s, %d threads", fftwf_version, job->threads);
    lr_status status = open_transform(&transform, job);
    if (status == LR_OK) {
        const float scale = 1.0f / (float)transform.voxels;
        memset(transform.real, 0, (size_t)(transform.job->volumes * transform.voxels) * sizeof(float));
        memcpy(transform.real, transform.job->kernel, (size_t)transform.voxels * sizeof(float));
        fftwf_execute(transform.there);
        for (int64_t k = 0; k < transform.bins; k++) {
            transform.spectrum[k][0] = scale * transform.complex[k][0];
            transform.spectrum[k][1] = scale * transform.complex[k][1];
        }

        status = run(&transform, out, timing);
    }
    if (transform.back != NULL) fftwf_destroy_plan(transform.back);
    if (transform.there != NULL) fftwf_destroy_plan(transform.there);
    fftwf_free(transform.spectrum);
    fftwf_free(transform.complex);
    fftwf_free(transform.real);

    return status;
}
