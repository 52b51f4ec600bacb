/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Conversion from look-up tables to a transform's kernel, and from the transform's result back to the grid. */
#include "base/log.h"
#include "base/mem.h"
#include "fft/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct fft_library fft_libraries[] = {
#ifdef LORASTER_FFTW
    {.name = "FFTW", .convolve = fft_fftw_convolve},
#else
    {.name = "FFTW", .missing = "this program was built without FFTW (libfftw3-dev)"},
#endif
#ifdef LORASTER_CUFFT
    {.name = "cuFFT", .convolve = fft_cufft_convolve, .has_device = fft_cufft_has_device},
#else
    {.name = "cuFFT", .missing = "this program was built without CUDA and its cuFFT"},
#endif
    {0},
};

const char *fft_missing(const struct fft_library *library)
{
    if (library->convolve == NULL) return library->missing;
    return library->has_device != NULL && !library->has_device() ? "no CUDA device" : NULL;
}

/* Returns the next even number without prime factors above 7. */
static int round_up(int count)
{
    for (count += count % 2;; count += 2) {
        int rest = count;
        for (int prime = 2; prime <= 7; prime++)
            while (rest % prime == 0) rest /= prime;
        if (rest == 1) return count;
    }
}

static int64_t voxels_of(const int size[3])
{
    return (int64_t)size[0] * size[1] * size[2];
}

/* Copies rows between the grid and the corner of a transform's volume. */
static void copy_rows(const int grid[3], const int size[3], const float *from, float *to, bool to_grid)
{
    for (int64_t row = 0; row < (int64_t)grid[1] * grid[2]; row++) {
        const int64_t wide = size[0] * (row % grid[1] + size[1] * (row / grid[1]));
        const int64_t narrow = row * grid[0];
        memcpy(to + (to_grid ? narrow : wide), from + (to_grid ? wide : narrow), (size_t)grid[0] * sizeof(float));
    }
}

struct arrays {
    float *kernel, *image, *out; /* arrays of a transform */
    float *cut;                  /* array on the grid */
};

static lr_status measure(const struct fft_case *what, const struct arrays *arrays, struct fft_result *result)
{
    const int *grid = lr_direct_tables_get_info(what->tables)->grid.size;
    struct fft_job job = {
        .volumes = 1,
        .kernel = arrays->kernel,
        .image = arrays->image,
        .threads = what->threads,
        .repeat = what->repeat,
        .seconds = what->seconds,
        .log = what->log,
    };
    memcpy(job.size, result->size, sizeof(job.size));
    const int32_t(*offsets)[3] = lr_direct_tables_offsets(what->tables);
    const double *values = lr_direct_tables_values(what->tables, 0);
    for (int64_t i = 0; i < lr_direct_tables_get_info(what->tables)->num_offsets; i++) {
        int64_t place = 0;
        for (int k = 2; k >= 0; k--)
            place = place * result->size[k] + (offsets[i][k] + result->size[k]) % result->size[k];
        arrays->kernel[place] += (float)values[i];
    }
    copy_rows(grid, result->size, what->image, arrays->image, false);
    LR_TRY(result->library->convolve(&job, arrays->out, &result->single, result->name));
    copy_rows(grid, result->size, arrays->out, arrays->cut, true);
    const float *expected = what->projected;
    const int64_t count = voxels_of(grid);
    double square = 0, norm = 0;
    for (int64_t k = 0; k < count; k++) {
        const double off = (double)arrays->cut[k] - (double)expected[k];
        square += off * off;
        norm += (double)expected[k] * (double)expected[k];
    }
    result->error = norm > 0 ? sqrt(square / norm) : 0;

    job.volumes = result->volumes = what->volumes > 1 ? what->volumes : 1;
    result->batch = result->single;
    return job.volumes > 1 ? result->library->convolve(&job, arrays->out, &result->batch, result->name) : LR_OK;
}

lr_status fft_compare(const struct fft_library *library, const struct fft_case *what, bool is_padded,
                      struct fft_result *result)
{
    const lr_direct_tables_info *info = lr_direct_tables_get_info(what->tables);
    *result = (struct fft_result){.library = library, .is_padded = is_padded};
    if (fft_missing(library) != NULL) {
        return lr_error(what->log, library->convolve == NULL ? LR_USAGE : LR_NO_DEVICE, "%s: %s", library->name,
                        fft_missing(library));
    }
    bool is_invariant = true; /* true: all voxels have the same kernel */
    for (int k = 1; k < info->num_kernels; k++) {
        is_invariant =
            is_invariant && memcmp(lr_direct_tables_values(what->tables, 0), lr_direct_tables_values(what->tables, k),
                                   (size_t)info->num_offsets * sizeof(double)) == 0;
    }
    if (!is_invariant) {
        return lr_error(what->log, LR_USAGE,
                        "kernels that differ from place to place are no convolution: Fourier "
                        "transforms cannot do them");
    }
    for (int k = 0; k < 3; k++) {
        const int own = info->grid.size[k];
        result->size[k] = is_padded ? round_up(own + info->half[k]) : own;
    }
    const int64_t count = voxels_of(result->size);
    struct arrays arrays = {
        .kernel = lr_alloc(count, sizeof(float), "a kernel", what->log),
        .image = lr_alloc(count, sizeof(float), "an image", what->log),
        .out = lr_alloc(count, sizeof(float), "an image", what->log),
        .cut = lr_alloc(voxels_of(info->grid.size), sizeof(float), "an image", what->log),
    };
    const lr_status status =
        arrays.kernel && arrays.image && arrays.out && arrays.cut ? measure(what, &arrays, result) : LR_FAILED;
    free(arrays.cut);
    free(arrays.out);
    free(arrays.image);
    free(arrays.kernel);
    return status;
}

enum { MOST_RUNS = 101 };

static int compare_numbers(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double find_median(double *runs, int count)
{
    qsort(runs, (size_t)count, sizeof(*runs), compare_numbers);
    return runs[count / 2];
}

lr_status fft_measure(const struct fft_job *job, fft_run *run, void *user, struct fft_timing *timing)
{
    double wall_s[MOST_RUNS] = {timing->wall_s}, device_s[MOST_RUNS] = {timing->device_s};
    double spent_s = timing->wall_s;
    int count = 0;
    while (count < job->repeat && count < MOST_RUNS && spent_s < job->seconds) {
        struct fft_timing taken = {0};
        LR_TRY(run(user, &taken));
        spent_s += taken.wall_s;
        wall_s[count] = taken.wall_s;
        device_s[count++] = taken.device_s;
    }
    count = count > 0 ? count : 1;
    timing->wall_s = find_median(wall_s, count) / job->volumes;
    timing->device_s = find_median(device_s, count) / job->volumes;
    return LR_OK;
}
