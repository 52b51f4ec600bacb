/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A sample of LORs that is spread evenly over all of them: a line stands for the LORs of one stride, and is one of
 * them, drawn at random. */
#ifndef LR_LISTMODE_SAMPLE_H
#define LR_LISTMODE_SAMPLE_H

#include <lr/lors.h>

/* Lines first + step * k of all, 0 <= k < count. Plain data; lors outlives it. */
struct lr_listmode_sample {
    const lr_lors *lors;
    double stride; /* LORs for each line; 1: line n is LOR n */
    uint64_t seed;
    int64_t first, step, count;
};

/* The LOR that is line k of these, which may be one that is not in coincidence. It depends on seed and line alone. */
int64_t lr_listmode_sample_lor(const struct lr_listmode_sample *sample, int64_t k);

#endif
