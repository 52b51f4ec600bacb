/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * SHA-256: NIST FIPS 180-4, sections 4.1.2, 4.2.2, 5 and 6.2. No two inputs with equal digests are known. About 200 MB
 * are digested per second. */
#ifndef LR_BASE_SHA256_H
#define LR_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { lr_sha256_bytes = 32, lr_sha256_chars = 65 /* in hexadecimal, and the zero */ };

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

#endif
