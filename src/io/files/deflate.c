/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A gzip stream (RFC 1952) of blocks that threads compress one by one. Each block except for the last one ends with an
 * empty stored block, so that the next block begins at a whole byte. The dictionary of a block is the end of the block
 * before. */
#include "io/files/number_type.h"
#include "io/files/output.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"

#define ZLIB_CONST /* declares next_in as a pointer to const */
#include <stdlib.h>
#include <zlib.h>

enum {
    BLOCK_BYTES = 1 << 17,
    DICTIONARY_BYTES = 1 << 15, /* largest distance to an earlier copy of the same bytes */
    BLOCKS_AT_ONCE = 64,
    SPARE_BYTES = 64, /* room for the empty block at the end of each block */
    LEVEL = 4,
    RAW_WINDOW = -15, /* deflate writes no head and no checksum */
    MEMORY_LEVEL = 8  /* zlib's default, for which compressBound holds */
};

struct block {
    const unsigned char *bytes;
    size_t count, before; /* before: bytes of the piece that precede the block */
    bool is_last;
    unsigned char *out; /* [room]; owned by the caller */
    size_t room, out_count;
    uLong crc;
    bool is_done;
};

static void compress_blocks(void *user, int64_t begin, int64_t end)
{
    for (struct block *block = (struct block *)user + begin; block < (struct block *)user + end; block++) {
        z_stream stream = {0};
        const size_t back = block->before < DICTIONARY_BYTES ? block->before : DICTIONARY_BYTES;
        block->crc = crc32(crc32(0, NULL, 0), block->bytes, (uInt)block->count);
        block->is_done = false;
        if (deflateInit2(&stream, LEVEL, Z_DEFLATED, RAW_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) continue;
        if (back > 0) (void)deflateSetDictionary(&stream, block->bytes - back, (uInt)back);
        stream.next_in = block->bytes;
        stream.avail_in = (uInt)block->count;
        stream.next_out = block->out;
        stream.avail_out = (uInt)block->room;
        const int result = deflate(&stream, block->is_last ? Z_FINISH : Z_SYNC_FLUSH);
        block->is_done = result == (block->is_last ? Z_STREAM_END : Z_OK) && stream.avail_out > 0;
        block->out_count = block->room - stream.avail_out;
        (void)deflateEnd(&stream);
    }
}

lr_status lr_output_deflate(struct lr_output *output, const struct lr_piece *pieces, int num_pieces)
{
    /* A gzip head without name and time. */
    static const unsigned char head[10] = {0x1f, 0x8b, Z_DEFLATED, 0, 0, 0, 0, 0, 0, 3}, nothing[1];
    const size_t each = compressBound(BLOCK_BYTES) + SPARE_BYTES;
    unsigned char *room = lr_alloc(BLOCKS_AT_ONCE, each, "compressing", output->log);
    lr_status status = room != NULL ? lr_output_write(output, head, sizeof(head)) : LR_FAILED;
    uLong crc = crc32(0, NULL, 0), total = 0; /* checksum and count of all bytes so far; the file stores the count
                                                 modulo 2^32 */
    int piece = 0;                            /* piece of the next block */
    size_t at = 0;                            /* offset of the next block in the piece */
    for (bool is_over = false; status == LR_OK && !is_over;) {
        struct block blocks[BLOCKS_AT_ONCE];
        int count = 0;
        for (; count < BLOCKS_AT_ONCE && !is_over; count++) {
            while (piece < num_pieces && at == pieces[piece].count) {
                piece++;
                at = 0;
            }
            /* An empty block ends the stream. */
            is_over = piece == num_pieces;
            struct block *block = &blocks[count];
            *block =
                (struct block){.bytes = nothing, .is_last = is_over, .out = room + (size_t)count * each, .room = each};
            if (!is_over) {
                const size_t left = pieces[piece].count - at;
                block->bytes = (const unsigned char *)pieces[piece].bytes + at;
                block->before = at;
                block->count = left < BLOCK_BYTES ? left : BLOCK_BYTES;
                at += block->count;
            }
        }
        lr_parallel_for(lr_num_processors(), count, 1, compress_blocks, blocks);
        for (int k = 0; k < count && status == LR_OK; k++) {
            const struct block *block = &blocks[k];
            crc = crc32_combine(crc, block->crc, (z_off_t)block->count);
            total += (uLong)block->count;
            status = block->is_done ? lr_output_write(output, block->out, block->out_count)
                                    : lr_error(output->log, LR_FAILED, "no memory for compressing %s", output->path);
        }
    }

    unsigned char tail[8];
    (void)lr_put_whole(lr_put_whole(tail, crc, 4), total, 4);
    if (status == LR_OK) status = lr_output_write(output, tail, sizeof(tail));
    free(room);
    return status;
}
