/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A CUDA runtime whose devices are the machine's memory, and streams that do nothing before somebody
 * waits for them: what is read, freed or handed to OpenGL too early shows. Threads may use it, each its
 * own streams. Link fake_cuda.c and
 * cuda_on_cpu.cpp in place of the runtime, of lend.c and of vectors.cu. */
#ifndef LR_TEST_FAKE_CUDA_DEVICE_H
#define LR_TEST_FAKE_CUDA_DEVICE_H

#include "cuda_interop/vector_passes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The one that the thread works on is counted by nobody. */
enum { FAKE_DEVICES = 2, FAKE_CURRENT = 2 };

struct fake_cuda {
    int renders;    /* device that OpenGL draws on; -1: none */
    int held;       /* blocks, streams and events that are not given back */
    int fails_in;   /* calls until one fails, and no other; 0: none does */
    int calls;      /* so far */
    int lent;       /* buffers that were lent, so far */
    int launches;   /* of kernels, so far */
    int destroyed;  /* streams, so far */
    bool is_absent; /* there is no device */
};
extern struct fake_cuda fake_cuda;

/* Device of the thread; FAKE_CURRENT before any call, and after it. */
extern __thread int fake_current;

/* Gives back all that is held. */
void fake_forget(void);

/* The fault that it is told to make, where it is this call's turn: 0 = none. */
int fake_fault(void);

/* Sets fake_cuda.fails_in, for libraries that know it by name alone. */
void fake_fail_in(int calls);

/* Queues a pass on the stream; the pass is copied. */
int fake_launch(void (*run)(const lr_cuda_vector_pass *pass), const lr_cuda_vector_pass *pass, void *stream);
int fake_launch_join(void (*join)(const lr_cuda_join_pass *pass), const lr_cuda_join_pass *pass, void *stream);
int fake_launch_convolve(void (*convolve)(const lr_cuda_convolve_pass *pass), const lr_cuda_convolve_pass *pass,
                         void *stream);
int fake_launch_terms(void (*add)(const lr_cuda_terms_pass *pass), const lr_cuda_terms_pass *pass, void *stream);
int fake_call(void (*call)(void *user), void *user, void *stream);
int fake_launch_differences(void (*find)(const lr_cuda_differences_pass *pass), const lr_cuda_differences_pass *pass,
                            void *stream);

#ifdef __cplusplus
}
#endif

#endif
