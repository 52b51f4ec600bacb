/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Random numbers that depend only on their position in a stream. The numbers are therefore the same for any number of
 * threads and any order. Source: Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011).
 * Streams of one seed differ by their purpose (lr_random_stream of lr/phantom.h). */
#pragma once

#include <Random123/philox.h>
#include <lr/phantom.h>

/* A position in a stream. */
struct lr_random {
    uint64_t seed, element;
    uint32_t draw; /* how many draws of this element came before */
    lr_random_stream stream;
};

/* Two numbers, uniform in (0, 1). */
static inline void lr_random_pair(const struct lr_random *at, double uniform[2])
{
    const philox4x32_ctr_t counter = {
        {(uint32_t)at->element, (uint32_t)(at->element >> 32), at->draw, (uint32_t)at->stream}};
    const philox4x32_key_t key = {{(uint32_t)at->seed, (uint32_t)(at->seed >> 32)}};
    const philox4x32_ctr_t bits = philox4x32(counter, key);
    for (int k = 0; k < 2; k++) {
        const uint64_t both = (uint64_t)bits.v[2 * k] << 32 | bits.v[2 * k + 1];
        uniform[k] = ((double)(both >> 11) + 0.5) * 0x1.0p-53;
    }
}
