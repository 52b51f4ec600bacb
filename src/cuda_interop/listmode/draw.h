/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Lines of a sample (listmode/sample.h), drawn on the device. */
#ifndef LR_CUDA_LISTMODE_DRAW_H
#define LR_CUDA_LISTMODE_DRAW_H

#include "cuda_interop/listmode/tables.h"
#include "listmode/events.h"

/* Bytes of what it takes to know of the LORs. */
int64_t lr_cuda_list_drawing_bytes(const lr_lors *lors);

/* Brings that to the memory of the device, and waits. errors: LR_FAILED without memory. */
lr_status lr_cuda_list_drawing_open(const struct lr_listmode_sample *sample, struct lr_cuda_list_memory *memory,
                                    lr_cuda_list_drawing *drawing);

/* Puts crystals of the sample's lines begin .. end - 1 into arrays of the device, by work on the drawing's stream;
 * -1 for a LOR that is not in coincidence. Returns a cudaError_t. */
int lr_cuda_list_draw(const lr_cuda_list_drawing *drawing, int64_t begin, int64_t end, int32_t *const crystals[2]);

#endif
