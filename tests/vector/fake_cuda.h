/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A CUDA runtime whose devices are the machine's memory. Its streams do nothing before a caller waits for them, so that
 * data that are read, freed or handed to OpenGL too early give wrong results. Several threads may use it, each with its
 * own streams. Link fake_cuda.c and cuda_on_cpu.cpp in place of the runtime, of lend.c and of vectors.cu. */
#pragma once

#include "cuda_interop/vector_passes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* FAKE_CURRENT is the current device of the thread; it is not among the counted devices. */
enum { FAKE_DEVICES = 2, FAKE_CURRENT = 2 };

struct fake_cuda {
    int renders;    /* device on which OpenGL draws; -1: none */
    int held;       /* blocks, streams and events that are not given back */
    int fails_in;   /* number of calls until one fails, only once; 0: none fails */
    int calls;      /* so far */
    int lent;       /* buffers that were lent, so far */
    int launches;   /* of kernels, so far */
    int destroyed;  /* streams, so far */
    bool is_absent; /* there is no device */
};
extern struct fake_cuda fake_cuda;

/* Current device of the thread: FAKE_CURRENT before any call, and after it. */
extern __thread int fake_current;

/* Gives back all held objects. */
void fake_forget(void);

/* The error that this call must report; 0 = none. */
int fake_fault(void);

/* Sets fake_cuda.fails_in, for libraries that find this function by its name. */
void fake_fail_in(int calls);

/* Queues a pass on the stream; the pass is copied. */
int fake_launch(void (*run)(const void *pass), const void *pass, size_t bytes, void *stream);
int fake_call(void (*call)(void *user), void *user, void *stream);

#ifdef __cplusplus
}
#endif
