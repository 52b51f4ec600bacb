/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode/sample.h"

/* A number in [0, 1) that depends on seed and line alone (SplitMix64's mixing, Steele, Lea and Flood
 * 2014). */
static double draw(uint64_t seed, int64_t line)
{
    uint64_t x = seed + 0x9e3779b97f4a7c15u * ((uint64_t)line + 1);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

int64_t lr_listmode_sample_lor(const struct lr_listmode_sample *sample, int64_t k)
{
    const int64_t line = sample->first + sample->step * k, last = sample->lors->count - 1;
    const double within = sample->stride > 1.0 ? draw(sample->seed, line) : 0.0;
    const int64_t lor = (int64_t)(((double)line + within) * sample->stride);
    return lor < last ? lor : last;
}
