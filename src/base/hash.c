/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/hash.h"

#include <string.h>

/* Constants of FIPS 180-4, section 4.2.2: the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t word, int bits)
{
    return word >> bits | word << (32 - bits);
}

/* FIPS 180-4, section 6.2.2. s[0] to s[7] are the standard's variables a to h. */
static void take_block(struct lr_sha256 *sha, const unsigned char *block)
{
    uint32_t words[64], s[8];
    for (int t = 0; t < 16; t++) {
        const unsigned char *b = block + 4 * t;
        words[t] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    }
    for (int t = 16; t < 64; t++) {
        const uint32_t early = words[t - 15], late = words[t - 2];
        words[t] = (rotate(late, 17) ^ rotate(late, 19) ^ late >> 10) + words[t - 7] +
                   (rotate(early, 7) ^ rotate(early, 18) ^ early >> 3) + words[t - 16];
    }
    memcpy(s, sha->state, sizeof(s));
    for (int t = 0; t < 64; t++) {
        const uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        const uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        const uint32_t one =
            s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + choice + constants[t] + words[t];
        const uint32_t two = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) + majority;
        memmove(s + 1, s, 7 * sizeof(*s));
        s[4] += one;
        s[0] = one + two;
    }
    for (int k = 0; k < 8; k++) sha->state[k] += s[k];
}

void lr_sha256_begin(struct lr_sha256 *sha)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(sha->state, first, sizeof(first));
    sha->num_bytes = 0;
}

void lr_sha256_add(struct lr_sha256 *sha, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    while (count > 0) {
        const size_t used = sha->num_bytes % sizeof(sha->block), room = sizeof(sha->block) - used;
        const size_t taken = count < room ? count : room;
        if (taken == sizeof(sha->block)) {
            take_block(sha, at);
        } else {
            memcpy(sha->block + used, at, taken);
            if (taken == room) take_block(sha, sha->block);
        }
        sha->num_bytes += taken;
        at += taken;
        count -= taken;
    }
}

const char *lr_sha256_end(struct lr_sha256 *sha, char text[lr_sha256_chars])
{
    static const unsigned char padding[64] = {0x80};
    static const char digits[] = "0123456789abcdef";
    const uint64_t num_bits = 8 * sha->num_bytes;
    const size_t used = sha->num_bytes % 64;
    unsigned char length[8];
    for (int k = 0; k < 8; k++) length[k] = (unsigned char)(num_bits >> (56 - 8 * k));
    lr_sha256_add(sha, padding, used < 56 ? 56 - used : 120 - used);
    lr_sha256_add(sha, length, sizeof(length));
    for (int k = 0; k < 64; k++) text[k] = digits[sha->state[k / 8] >> (28 - 4 * (k % 8)) & 15];
    text[64] = '\0';
    return text;
}
