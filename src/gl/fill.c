/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl/fill.h"

#include "base/log.h"
#include "gl/context_private.h"
#include "gl/pass.h"

enum {
    FEWEST_BYTES = 1 << 16,
    MOST_BYTES = 1 << 30, /* of a pass */
    WORDS_OF_GROUP = 1024,
    MOST_GROUPS = 65535
};

/* The block of shaders/common/fill.comp. */
struct block {
    uint32_t range[4], pair[4];
};

bool gl_fill_serves(const struct gl_context *ctx, int64_t bytes)
{
    return bytes >= FEWEST_BYTES && !ctx->limits.small_batches && !ctx->clears_by_driver;
}

static lr_status ensure_program(struct gl_context *ctx)
{
    if (ctx->fill == NULL)
        ctx->fill = gl_program_create(ctx, &(struct gl_program_params){.compute = "common/fill.comp", .label = "fill"});
    return ctx->fill != NULL ? LR_OK : LR_FAILED;
}

/* Bindings begin at multiples of an alignment, and the words where they have to. */
static lr_status fill_part(struct gl_context *ctx, const struct gl_buffer_range *part, const uint32_t words[2])
{
    const int64_t aligned = part->to_offset / ctx->limits.storage_alignment * ctx->limits.storage_alignment;
    const int64_t before = part->to_offset - aligned, count = part->bytes / 4;
    const int groups = gl_divide_up(count, WORDS_OF_GROUP);
    const struct block block = {.range = {(uint32_t)(before / 4), (uint32_t)count}, .pair = {words[0], words[1]}};
    const struct gl_pass pass = {.label = "fill",
                                 .program = ctx->fill,
                                 .buffers = {{part->to, aligned, before + part->bytes}},
                                 .uniforms = &block,
                                 .uniform_bytes = sizeof(block),
                                 .groups = {groups < MOST_GROUPS ? groups : MOST_GROUPS, 1, 1},
                                 .barriers = GL_ALL_BARRIER_BITS};
    return gl_pass_run(ctx, &pass);
}

/* Bytes of a pass: whole pairs of words, and what one binding may have. */
static int64_t part_bytes(const struct gl_context *ctx)
{
    const int64_t most = ctx->limits.max_storage_bytes - ctx->limits.storage_alignment;
    return (most < MOST_BYTES ? most : MOST_BYTES) / 8 * 8;
}

lr_status gl_fill(struct gl_context *ctx, const struct gl_buffer_range *range, const uint32_t words[2])
{
    const int64_t most = part_bytes(ctx);
    LR_TRY(ensure_program(ctx));
    glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);
    for (int64_t done = 0; done < range->bytes; done += most) {
        const int64_t rest = range->bytes - done;
        LR_TRY(fill_part(ctx,
                         &(struct gl_buffer_range){
                             .to = range->to, .to_offset = range->to_offset + done, .bytes = rest < most ? rest : most},
                         words));
    }
    return LR_OK;
}
