/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * From look-up tables to a transform's kernel and back to the grid. */
#include "base/log.h"
#include "base/mem.h"
#include "fft/cufft.h"
#include "fft/fftw.h"

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

/* The kernel that all voxels have, or -1. */
static int find_kernel(const lr_direct_tables *tables)
{
    const lr_direct_tables_info *info = lr_direct_tables_get_info(tables);
    const double *first = lr_direct_tables_values(tables, 0);
    for (int k = 1; k < info->num_kernels; k++) {
        const double *other = lr_direct_tables_values(tables, k);
        if (memcmp(first, other, (size_t)info->num_offsets * sizeof(*first)) != 0) return -1;
    }
    return 0;
}

/* The next even number that has no prime factor above 7. */
static int round_up(int count)
{
    for (count += count % 2;; count += 2) {
        int rest = count;
        for (int prime = 2; prime <= 7; prime++)
            while (rest % prime == 0) rest /= prime;
        if (rest == 1) return count;
    }
}

static void find_size(const lr_direct_tables_info *info, struct fft_result *result)
{
    for (int k = 0; k < 3; k++) {
        const int count = info->grid.size[k];
        result->size[k] = result->is_padded ? round_up(count + info->half[k]) : count;
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

static void fill_kernel(const lr_direct_tables *tables, const int size[3], float *kernel)
{
    const int32_t(*offsets)[3] = lr_direct_tables_offsets(tables);
    const double *values = lr_direct_tables_values(tables, 0);
    for (int64_t i = 0; i < lr_direct_tables_get_info(tables)->num_offsets; i++) {
        int64_t place = 0;
        for (int k = 2; k >= 0; k--) place = place * size[k] + (offsets[i][k] + size[k]) % size[k];
        kernel[place] += (float)values[i];
    }
}

struct arrays {
    float *kernel, *image, *out; /* of a transform */
    float *cut;                  /* of the grid */
};

static lr_status run(const struct fft_case *what, const struct arrays *arrays, struct fft_result *result)
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
    fill_kernel(what->tables, result->size, arrays->kernel);
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
    if (find_kernel(what->tables) < 0) {
        return lr_error(what->log, LR_USAGE,
                        "kernels that differ from place to place are no convolution: Fourier "
                        "transforms cannot do them");
    }
    find_size(info, result);
    const int64_t count = voxels_of(result->size);
    struct arrays arrays = {
        .kernel = lr_alloc(count, sizeof(float), "a kernel", what->log),
        .image = lr_alloc(count, sizeof(float), "an image", what->log),
        .out = lr_alloc(count, sizeof(float), "an image", what->log),
        .cut = lr_alloc(voxels_of(info->grid.size), sizeof(float), "an image", what->log),
    };
    const lr_status status =
        arrays.kernel && arrays.image && arrays.out && arrays.cut ? run(what, &arrays, result) : LR_FAILED;
    free(arrays.cut);
    free(arrays.out);
    free(arrays.image);
    free(arrays.kernel);
    return status;
}
