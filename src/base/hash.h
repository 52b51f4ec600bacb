/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Hashes of 64 bits. Files hold some of them: their values must not change. */
#ifndef LR_BASE_HASH_H
#define LR_BASE_HASH_H

#include <stdint.h>

/* Begin of a hash by Fowler, Noll and Vo (FNV-1a). */
#define LR_HASH_BEGIN UINT64_C(0xcbf29ce484222325)

/* Goes on with a byte or, to hash lists of numbers faster, with a whole number. */
static inline uint64_t lr_hash_add(uint64_t hash, uint64_t number)
{
    return (hash ^ number) * UINT64_C(0x100000001b3);
}

/* Number k of the generator SplitMix64, k = 1, 2, ... (Steele, Lea and Flood 2014). */
static inline uint64_t lr_split_mix(uint64_t seed, uint64_t k)
{
    uint64_t x = seed + UINT64_C(0x9e3779b97f4a7c15) * k;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

#endif
