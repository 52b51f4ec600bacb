/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A gzip stream (RFC 1952) of blocks that threads compress by themselves: each but the last ends with an empty
 * stored block, so that the next one begins at a whole byte, and begins with what the one before has as a
 * dictionary. */
#include "io/files/output.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"

#define ZLIB_CONST /* next_in is only read */
#include <stdlib.h>
#include <zlib.h>

enum {
    BLOCK_BYTES = 1 << 17,
    DICTIONARY_BYTES = 1 << 15, /* the most that deflate looks back */
    BLOCKS_AT_ONCE = 64,
    SPARE_BYTES = 64, /* of a block: an empty one behind it */
    LEVEL = 4,
    RAW_WINDOW = -15, /* neither head nor sum */
    MEMORY_LEVEL = 8  /* the usual one, of which compressBound speaks */
};

struct block {
    const unsigned char *bytes;
    size_t count, before; /* before: bytes of the same piece that stand in front of it */
    bool is_last;
    unsigned char *out; /* [room], of the caller */
    size_t room, out_count;
    uLong crc;
    bool is_done;
};

static void compress_block(struct block *block)
{
    z_stream stream = {0};
    const size_t back = block->before < DICTIONARY_BYTES ? block->before : DICTIONARY_BYTES;
    block->crc = crc32(crc32(0, NULL, 0), block->bytes, (uInt)block->count);
    block->is_done = false;
    if (deflateInit2(&stream, LEVEL, Z_DEFLATED, RAW_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) return;
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

static void compress_share(void *user, int64_t begin, int64_t end, int worker)
{
    struct block *blocks = user;
    (void)worker;
    for (int64_t k = begin; k < end; k++) compress_block(&blocks[k]);
}

/* --- the stream --- */

struct stream {
    struct lr_output *output;
    const struct lr_piece *pieces;
    int num_pieces;
    int piece; /* the next block's, and where that begins */
    size_t at;
    bool is_over;        /* its last block is taken */
    uLong crc, count;    /* of all so far; the count goes round at 2^32, as the format has it */
    unsigned char *room; /* owned [BLOCKS_AT_ONCE][each] */
    size_t each;
};

/* The next block: of a piece, or an empty one behind all of them. */
static void take_block(struct stream *stream, struct block *block)
{
    static const unsigned char nothing[1];
    *block = (struct block){.bytes = nothing, .is_last = true};
    while (stream->piece < stream->num_pieces && stream->at == stream->pieces[stream->piece].count) {
        stream->piece++;
        stream->at = 0;
    }
    if (stream->piece < stream->num_pieces) {
        const struct lr_piece *piece = &stream->pieces[stream->piece];
        const size_t left = piece->count - stream->at;
        block->bytes = (const unsigned char *)piece->bytes + stream->at;
        block->before = stream->at;
        block->count = left < BLOCK_BYTES ? left : BLOCK_BYTES;
        block->is_last = false;
        stream->at += block->count;
    }
    stream->is_over = block->is_last;
}

static lr_status write_some(struct stream *stream)
{
    struct block blocks[BLOCKS_AT_ONCE];
    int count = 0;
    while (count < BLOCKS_AT_ONCE && !stream->is_over) {
        take_block(stream, &blocks[count]);
        blocks[count].out = stream->room + (size_t)count * stream->each;
        blocks[count++].room = stream->each;
    }
    lr_parallel_for(lr_num_processors(), count, 1, compress_share, blocks);
    for (int k = 0; k < count; k++) {
        const struct block *block = &blocks[k];
        if (!block->is_done)
            return lr_error(stream->output->log, LR_FAILED, "no memory for compressing %s", stream->output->path);
        stream->crc = crc32_combine(stream->crc, block->crc, (z_off_t)block->count);
        stream->count += (uLong)block->count;
        LR_TRY(lr_output_write(stream->output, block->out, block->out_count));
    }

    return LR_OK;
}

/* Writes a gzip head without a name and a time. */
static lr_status write_head(struct stream *stream)
{
    static const unsigned char head[10] = {0x1f, 0x8b, Z_DEFLATED, 0, 0, 0, 0, 0, 0, 3};
    return lr_output_write(stream->output, head, sizeof(head));
}

static lr_status write_tail(struct stream *stream)
{
    unsigned char tail[8];
    for (int k = 0; k < 4; k++) {
        tail[k] = (unsigned char)(stream->crc >> 8 * k & 0xff);
        tail[4 + k] = (unsigned char)(stream->count >> 8 * k & 0xff);
    }
    return lr_output_write(stream->output, tail, sizeof(tail));
}

lr_status lr_output_deflate(struct lr_output *output, const struct lr_piece *pieces, int num_pieces)
{
    struct stream stream = {.output = output,
                            .pieces = pieces,
                            .num_pieces = num_pieces,
                            .crc = crc32(0, NULL, 0),
                            .each = compressBound(BLOCK_BYTES) + SPARE_BYTES};
    stream.room = lr_alloc(BLOCKS_AT_ONCE, stream.each, "compressing", output->log);
    lr_status status = stream.room != NULL ? write_head(&stream) : LR_FAILED;
    while (status == LR_OK && !stream.is_over) status = write_some(&stream);
    status = status == LR_OK ? write_tail(&stream) : status;
    free(stream.room);
    return status;
}
