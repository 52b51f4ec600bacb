/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Lines of a sample (listmode/sample.h), drawn on the device. */
#ifndef LR_CUDA_LISTMODE_DRAW_H
#define LR_CUDA_LISTMODE_DRAW_H

#include "cuda_interop/listmode/tables.h"
#include "listmode/sample.h"

/* Puts crystals of the sample's lines begin .. end - 1 into arrays of the device, -1 for a LOR that is not in
 * coincidence, by its work on memory->stream. What it needs to know of the LORs goes to the memory.
 * errors: LR_FAILED. */
lr_status lr_cuda_list_draw(const struct lr_listmode_sample *sample, int64_t begin, int64_t end,
                            int32_t *const crystals[2], struct lr_cuda_list_memory *memory);

#endif
