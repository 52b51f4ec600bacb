/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Input of the backends of the family `listmode`. A backend provides the table of functions of operator/backend.h.
 *
 * Instead of the scanner's lr_lors, the backend gets a layout of the same type. In this layout, a range of events takes
 * the place of a pair of modules, and an event takes the place of a LOR. Events are in the caller's order. Values,
 * parts and rows refer to this layout. Selections by `pairs` are sets of ranges, such as the subsets of a frame. */
#pragma once

#include "listmode/events.h"
#include "operator/backend.h"

/* The model of list-mode elements, checked, with defaults filled in. */
struct lr_listmode_model {
    lr_grid grid;
    lr_listmode_kernel kernel;
    lr_listmode_tube tube;     /* its table is owned */
    const lr_scanner *scanner; /* NULL = lines are given by their ends */
    int samples[3];            /* samples of the exact kernel; 1 for other kernels */
    double reach_mm; /* exact kernel: a slice can have elements up to this distance, along the line, beyond the cut of
                        the time of flight; 0 for other kernels */
};

/* Checks the parameters and fills in defaults. Call the finish function even after an error. errors: LR_USAGE for
 * invalid parameters, LR_BAD_INPUT for an invalid grid, logged; LR_FAILED if memory runs out. */
lr_status lr_listmode_model_init(struct lr_listmode_model *model, const lr_listmode_params *params);
void lr_listmode_model_finish(struct lr_listmode_model *model);

/* Parameters of a backend of list mode. The pointers outlive the backend. */
struct lr_listmode_backend_params {
    const struct lr_listmode_model *model;
    const struct lr_listmode_events *events; /* arranged for the model's grid */
    int threads, device;
    int64_t max_memory_bytes;
    lr_listmode_variant variant;    /* for the backend cuda */
    int block_threads, blocks_each; /* for the backend cuda; 0 = the backend chooses */
    bool shares_events;             /* read by lr_listmode_cuda_arrange: true if several backends use the same events */
    /* The device at which the backend computes. It must outlive the backend. NULL = the backend opens one. */
    lr_place *place;
    /* A backend of the same kind and model, whose compiled programs this backend uses. It must outlive this backend.
     * NULL = none. */
    const struct lr_backend *stands_for;
    const lr_log *log;
    const lr_progress *progress;
};

/* There is one constructor per backend. If a constructor fails, it logs the reason and leaves *backend unchanged. The
 * backends compute rows of voxels, and refuse rows of points between voxels. */
lr_status lr_listmode_cpu_create(const struct lr_listmode_backend_params *params, struct lr_backend *backend);
lr_status lr_listmode_native_create(const struct lr_listmode_backend_params *params, struct lr_backend *backend);
lr_status lr_listmode_compute_create(const struct lr_listmode_backend_params *params, struct lr_backend *backend);

/* The constructor of the backend cuda. params->place is of kind LR_PLACE_CUDA. errors: also LR_NO_DEVICE. */
lr_status lr_listmode_cuda_create(const struct lr_listmode_backend_params *params, struct lr_backend *backend);

/* Checks and arranges open events on the device of params->place. Does nothing if the device's memory cannot hold the
 * events. Arranged events remain on the device if its memory can also hold a backend with these params. errors:
 * LR_BAD_INPUT for an event, LR_FAILED. */
lr_status lr_listmode_cuda_arrange(struct lr_listmode_events *events, const struct lr_listmode_backend_params *params);
