/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of the family `direct` by Fourier transforms, for comparison with LORaster's own projections. An
 * invariant symmetric kernel makes a projection a convolution (paper 1 of lr/direct.h, section 5.1). Each transform
 * library has one function in its own file. These files are part of this program, not of liblr. */
#ifndef LR_FFT_FFT_H
#define LR_FFT_FFT_H

#include <lr/direct.h>

/* Arguments of a transform library. Arrays are [z][y][x]. */
struct fft_job {
    int size[3];         /* x, y, z size of the transforms */
    int volumes;         /* number of volumes that are transformed together */
    const float *kernel; /* offset 0 is the first voxel; negative offsets count back from the end of each axis */
    const float *image;  /* the contents of each volume */
    int threads;
    int repeat;     /* largest number of runs for a median */
    double seconds; /* time for the runs; at least one run is made */
    const lr_log *log;
};

/* Median times for one volume: its transform, the product with the kernel's spectrum (computed before), and the inverse
 * transform. */
struct fft_timing {
    double wall_s, device_s; /* by the wall clock, and by the device's clock; 0 = not measured */
};

/* out: [z][y][x], cyclic convolution of the last volume. name: receives the library's version and its device. errors:
 * LR_NO_DEVICE; LR_FAILED. */
typedef lr_status fft_convolve(const struct fft_job *job, float *out, struct fft_timing *timing, char name[160]);

fft_convolve fft_fftw_convolve;  /* FFTW 3, single precision, several threads */
fft_convolve fft_cufft_convolve; /* single precision, on the current CUDA device */
bool fft_cufft_has_device(void);

/* Convolves all volumes once. taken: time for all volumes. */
typedef lr_status fft_run(void *user, struct fft_timing *taken);

/* Measures medians of several runs. timing: on entry, times of the first run, which count only if there is no time for
 * other runs; on return, medians for one volume. */
lr_status fft_measure(const struct fft_job *job, fft_run *run, void *user, struct fft_timing *timing);

struct fft_library {
    const char *name;
    fft_convolve *convolve;   /* NULL: the library is not built in */
    const char *missing;      /* reason why the library is not built in */
    bool (*has_device)(void); /* NULL: the library needs no device */
};

/* All libraries that the program can be built with. The last entry has no name. */
extern const struct fft_library fft_libraries[];

/* The reason why a library cannot be used here, or NULL. */
const char *fft_missing(const struct fft_library *library);

/* A projection with an invariant symmetric kernel, and its result. */
struct fft_case {
    const lr_direct_tables *tables; /* the tables of the projected view */
    const float *image;             /* [nz][ny][nx] */
    const float *projected;         /* [nz][ny][nx] the projector's result */
    int volumes;                    /* largest number of volumes in a batch */
    int threads, repeat;
    double seconds;
    const lr_log *log;
};

struct fft_result {
    const struct fft_library *library;
    char name[160];
    bool is_padded; /* true: zeros are added so that opposite ends do not overlap; false: no zeros, as in paper 1 */
    int size[3], volumes;
    struct fft_timing single, batch;
    double error; /* relative L2 difference from the projector's result */
};

/* errors: LR_USAGE for kernels that vary with position, or a library that is not built in; LR_NO_DEVICE; LR_FAILED. */
lr_status fft_compare(const struct fft_library *library, const struct fft_case *what, bool is_padded,
                      struct fft_result *result);

#endif
