/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Hashes. Some hashes are stored in files, so these functions must always return the same values. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Initial value of a hash by Fowler, Noll and Vo (FNV-1a). */
#define LR_HASH_BEGIN UINT64_C(0xcbf29ce484222325)

/* Adds a byte to a hash. A number of several bytes can be added in one step. This is faster than adding its bytes one
   by one, and gives another hash. */
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

/* A uniform random number, 0 <= x < 1, from number k of the generator. */
static inline double lr_split_uniform(uint64_t seed, uint64_t k)
{
    return (double)(lr_split_mix(seed, k) >> 11) * 0x1p-53;
}

/* --- SHA-256: NIST FIPS 180-4, sections 4.1.2, 4.2.2, 5 and 6.2. No two inputs with equal digests are known. About
 * 200 MB are digested per second --- */

enum { lr_sha256_bytes = 32, lr_sha256_chars = 65 /* hexadecimal digits, and the zero at the end */ };

/* A digest in progress. Only one thread at a time may use it. */
struct lr_sha256 {
    uint32_t state[8];
    uint64_t num_bytes;
    unsigned char block[64];
};

void lr_sha256_begin(struct lr_sha256 *sha);

/* bytes may be NULL if count is 0. */
void lr_sha256_add(struct lr_sha256 *sha, const void *bytes, size_t count);

/* Puts the digest of all added bytes into `text`, in hexadecimal, and returns `text`. */
const char *lr_sha256_end(struct lr_sha256 *sha, char text[lr_sha256_chars]);
