/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_CUDA_LISTMODE_VISIT_H
#define LR_CUDA_LISTMODE_VISIT_H

#include "cuda_interop/listmode/passes.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "listmode/rows.h"

/* Visits the elements of the one event of a chunk; what the pass names is on the host. size: the grid's. */
void lr_cuda_list_visit(const lr_cuda_list_pass *pass, const int32_t size[3], const lr_cuda_list_chunk *event,
                        const struct lr_listmode_visitor *visitor);

#ifdef __cplusplus
}
#endif

#endif
