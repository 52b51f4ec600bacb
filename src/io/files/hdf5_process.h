/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The life of the process that reads an HDF5 file. It is a program of its own (hdf5_reader/), not a
 * fork: what other threads hold at that moment, a GPU's driver and gigabytes of images are none of
 * its business. Where the program is looked for: base/helper.h. */
#ifndef LR_IO_HDF5_PROCESS_H
#define LR_IO_HDF5_PROCESS_H

#include "io/files/hdf5_request.h"

#include <sys/types.h>

struct lr_hdf5_process {
    lr_log log; /* what lr_hdf5_input.log points to */
    const lr_log *callers_log;
    pid_t id;         /* 0 = it has died and been waited for */
    pid_t owner;      /* who started it: no child that the program forks ends it */
    int socket;       /* -1 = closed */
    bool was_silent;  /* it was ended because no answer came */
    lr_status status; /* once it has died: what that means for the caller */
    void *window;     /* LR_HDF5_WINDOW_BYTES that both see */
};

/* Starts the program on a file; `process` has its logs, socket -1, and zeros.
 * errors: LR_FAILED, logged, where there is no such program or the system has no more of what it
 * takes. */
lr_status lr_hdf5_process_start(struct lr_hdf5_process *process, const char *path);

/* Sends a request and waits for its answer; without a request, for the first one, which says
 * whether the file is open. False where the process has died, or was ended for its silence. */
bool lr_hdf5_process_ask(struct lr_hdf5_process *process, const struct lr_hdf5_request *request,
                         struct lr_hdf5_answer *answer);

/* Ends it. How it ended, as waitpid() says it; 0 where another part of the program waited for it. */
int lr_hdf5_process_end(struct lr_hdf5_process *process);

#endif
