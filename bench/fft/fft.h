/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of the family `direct` by Fourier transforms, as a peer to measure ours against: an
 * invariant symmetric kernel makes them convolutions (paper 1 of lr/direct.h, section 5.1). One
 * function a transform library, each in a file of its own; the program takes them in, liblr does
 * not. */
#ifndef LR_FFT_FFT_H
#define LR_FFT_FFT_H

#include <lr/direct.h>

/* Arguments of a library. Arrays are [z][y][x]. */
struct fft_job {
    int size[3];         /* of the transforms: x, y, z */
    int volumes;         /* transformed together */
    const float *kernel; /* offset 0 in the first voxel, negative ones from the other ends */
    const float *image;  /* what every volume holds */
    int threads;
    int repeat;     /* most runs of a median */
    double seconds; /* time for them; there is at least one */
    const lr_log *log;
};

/* Medians; of one volume: transform, product with the kernel's spectrum (made before), and back. */
struct fft_timing {
    double wall_s, device_s; /* device: 0 = not measured */
};

/* out: [z][y][x], the last volume's convolution, which is cyclic. name: receives the library's
 * version and what it runs on. errors: LR_NO_DEVICE; LR_FAILED. */
typedef lr_status fft_convolve(const struct fft_job *job, float *out, struct fft_timing *timing, char name[160]);

fft_convolve fft_fftw_convolve;  /* FFTW 3, single precision, with threads */
fft_convolve fft_cufft_convolve; /* single precision, on the current CUDA device */
bool fft_cufft_has_device(void);

/* Convolves all volumes once. taken: of all of them. */
typedef lr_status fft_run(void *user, struct fft_timing *taken);

/* Medians of runs. timing: the first run's, which counts only if there is no time for others; becomes medians, of
 * one volume. */
lr_status fft_measure(const struct fft_job *job, fft_run *run, void *user, struct fft_timing *timing);

struct fft_library {
    const char *name;
    fft_convolve *convolve;   /* NULL: not built in, */
    const char *missing;      /* and this says why */
    bool (*has_device)(void); /* NULL: it needs none */
};

/* All there could be; the last one has no name. */
extern const struct fft_library fft_libraries[];

/* Why a library cannot be used here, or NULL. */
const char *fft_missing(const struct fft_library *library);

/* A projection with an invariant symmetric kernel, and what it gave. */
struct fft_case {
    const lr_direct_tables *tables; /* of its view */
    const float *image;             /* [nz][ny][nx] */
    const float *projected;         /* [nz][ny][nx] the projector's result */
    int volumes;                    /* most of a batch */
    int threads, repeat;
    double seconds;
    const lr_log *log;
};

struct fft_result {
    const struct fft_library *library;
    char name[160];
    bool is_padded; /* with as many zeros as keep the ends from meeting; else as paper 1 does it */
    int size[3], volumes;
    struct fft_timing single, batch;
    double error; /* relative L2, against the projector's result */
};

/* errors: LR_USAGE for kernels that are not the same everywhere, or a library that is not built in;
 * LR_NO_DEVICE; LR_FAILED. */
lr_status fft_compare(const struct fft_library *library, const struct fft_case *what, bool is_padded,
                      struct fft_result *result);

#endif
