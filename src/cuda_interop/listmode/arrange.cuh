/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * By what events are arranged (docs/method/listmode.md, "Arranging events"), for one thread: the host's
 * operations in the host's order, so that both have the same bits. Nothing here may be fused. Written
 * for the processor, too. */
#ifndef LR_CUDA_LISTMODE_ARRANGE_CUH
#define LR_CUDA_LISTMODE_ARRANGE_CUH

#include "cuda_interop/listmode/passes.h"

#include <cmath>
#include <cstring>

/* The group of an event, or the last one where it has no crystals. */
__host__ __device__ inline uint32_t group_of_event(const lr_cuda_list_arranging &arranging, int k)
{
    const lr_cuda_list_events &events = arranging.events;
    if (events.crystals[0][k] < 0) return LR_CUDA_LIST_GROUPS - 1;
    const lr_cuda_list_hit &a = events.hits[events.crystals[0][k]];
    const lr_cuda_list_hit &b = events.hits[events.crystals[1][k]];
    const double run[3] = {fabs(b.mm[0] - a.mm[0]), fabs(b.mm[1] - a.mm[1]), fabs(b.mm[2] - a.mm[2])};
    int axis = run[1] > run[0] ? 1 : 0;
    axis = run[2] > run[axis] ? 2 : axis;
    const int of_a = arranging.has_kinds ? (int)a.kind : 0;
    const int of_b = arranging.has_kinds ? (int)b.kind : 0;
    const bool has_tof =
        of_a < events.num_kinds && of_b < events.num_kinds && events.sigma_mm[of_a * events.num_kinds + of_b] > 0;
    return (uint32_t)(2 * axis + (has_tof ? 1 : 0));
}

/* Numbers in the order of floats. */
__host__ __device__ inline uint32_t ascending_key(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

/* Of the coordinate of an event's centre along the axis. */
__host__ __device__ inline uint32_t centre_key(const lr_cuda_list_arranging &arranging, int k)
{
    const lr_cuda_list_events &events = arranging.events;
    const double *a = events.hits[events.crystals[0][k]].mm;
    const double *b = events.hits[events.crystals[1][k]].mm;
    const double along[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
    const double length = sqrt(along[0] * along[0] + along[1] * along[1] + along[2] * along[2]);
    const int axis = arranging.axis;
    return ascending_key((float)(0.5 * (a[axis] + b[axis]) + (double)events.tof_mm[k] * along[axis] / length));
}

#endif
