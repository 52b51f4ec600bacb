/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/deflate.h"

#include "base/log.h"

#define ZLIB_CONST /* next_in is only read */
#include <zlib.h>

enum { out_bytes = 1 << 15, in_bytes = 1 << 20, gzip_window = 15 + 16, level = 4 };

/* Compresses what next_in holds and writes what comes out. */
static lr_status pump(struct lr_output *output, z_stream *stream, int flush)
{
    unsigned char bytes[out_bytes];
    do {
        stream->next_out = bytes;
        stream->avail_out = out_bytes;
        (void)deflate(stream, flush); /* cannot fail on a stream that is set up and has room */
        LR_TRY(lr_output_write(output, bytes, out_bytes - stream->avail_out));
    } while (stream->avail_out == 0);
    return LR_OK;
}

static lr_status pump_piece(struct lr_output *output, z_stream *stream,
                            const struct lr_piece *piece)
{
    const unsigned char *bytes = piece->bytes;
    for (size_t start = 0; start < piece->count; start += in_bytes) {
        const size_t left = piece->count - start;
        stream->next_in = bytes + start;
        stream->avail_in = (uInt)(left < in_bytes ? left : in_bytes);
        LR_TRY(pump(output, stream, Z_NO_FLUSH));
    }
    return LR_OK;
}

lr_status lr_output_deflate(struct lr_output *output, const struct lr_piece *pieces, int num_pieces)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, level, Z_DEFLATED, gzip_window, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
        return lr_error(output->log, LR_FAILED, "no memory for compressing %s", output->path);
    }
    lr_status status = LR_OK;
    for (int n = 0; n < num_pieces && status == LR_OK; n++) {
        status = pump_piece(output, &stream, &pieces[n]);
    }
    if (status == LR_OK) {
        status = pump(output, &stream, Z_FINISH);
    }
    (void)deflateEnd(&stream);
    return status;
}
