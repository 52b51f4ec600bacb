/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Values of yardl's compact binary encoding, appended to an output; failures are kept by the
 * output and told when it is finished. */
#ifndef LR_IO_YARDL_WRITE_H
#define LR_IO_YARDL_WRITE_H

#include "io/files/output.h"

#include <string.h>

static inline void lr_yardl_put_unsigned(struct lr_output *output, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value > 0);
    (void)lr_output_write(output, bytes, count);
}

static inline void lr_yardl_put_signed(struct lr_output *output, int64_t value)
{
    lr_yardl_put_unsigned(output, value < 0 ? ~((uint64_t)value << 1) : (uint64_t)value << 1);
}

static inline void lr_yardl_put_float(struct lr_output *output, double value)
{
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, 4);
    const unsigned char bytes[4] = {(unsigned char)bits, (unsigned char)(bits >> 8), (unsigned char)(bits >> 16),
                                    (unsigned char)(bits >> 24)};
    (void)lr_output_write(output, bytes, 4);
}

static inline void lr_yardl_put_text(struct lr_output *output, const char *text)
{
    lr_yardl_put_unsigned(output, strlen(text));
    (void)lr_output_write(output, text, strlen(text));
}

#endif
