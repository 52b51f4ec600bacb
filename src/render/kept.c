/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/kept.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "render/columns_image.h"

#include <stdlib.h>

enum { MOST_GROUPS = 1024, NUM_PASSES = 3 };

enum pass { PASS_UPDATE = 0, PASS_SUMS, PASS_COPY };

/* The block of shaders/common/kept.glsl. */
struct kept_pass {
    uint32_t extent[4], strides[4];
};
_Static_assert(sizeof(struct kept_pass) == 32, "the shaders' layout");

struct lr_kept {
    struct gl_buffer **slots; /* [num_slots]; NULL = empty */
    int num_slots;
    struct gl_buffer *next;  /* the image after its update, until it is known to be finite */
    struct gl_buffer *parts; /* sums of groups */
    struct gl_program *programs[NUM_PASSES];
    struct kept_pass uniforms;
    int groups;
};

void lr_kept_destroy(struct lr_kept *kept)
{
    if (kept == NULL) {
        return;
    }
    for (int k = 0; k < kept->num_slots; k++) {
        gl_buffer_destroy(kept->slots[k]);
    }
    for (int k = 0; k < NUM_PASSES; k++) {
        gl_program_destroy(kept->programs[k]);
    }
    gl_buffer_destroy(kept->next);
    gl_buffer_destroy(kept->parts);
    free(kept->slots);
    free(kept);
}

static struct gl_buffer *work_buffer(const struct lr_compute *compute)
{
    return compute->columns != NULL ? compute->columns->image : compute->pairs->image;
}

static int64_t image_bytes(const struct lr_compute *compute)
{
    return lr_grid_num_voxels(compute->params.grid) * (int64_t)sizeof(float);
}

static struct gl_buffer *make_buffer(const struct lr_compute *compute, const char *label,
                                     int64_t bytes)
{
    return gl_buffer_create(compute->ctx,
                            &(struct gl_buffer_params){.label = label, .size_bytes = bytes});
}

static struct kept_pass describe(const struct lr_compute *compute)
{
    const int *size = compute->params.grid->size;
    const int usual[3] = {0, 1, 2};
    int order[3] = {usual[0], usual[1], usual[2]}; /* of axes, fastest first */
    struct kept_pass uniforms = {0};
    if (compute->columns != NULL) {
        order[0] = compute->columns->axis;
        order[1] = compute->columns->across[0];
        order[2] = compute->columns->across[1];
    }
    uint32_t stride = 1;
    for (int k = 0; k < 3; k++) {
        uniforms.extent[k] = (uint32_t)size[k];
        uniforms.strides[order[k]] = stride;
        stride *= (uint32_t)size[order[k]];
    }
    uniforms.extent[3] = stride;
    return uniforms;
}

static lr_status init(struct lr_compute *compute, struct lr_kept *kept)
{
    static const char *const names[NUM_PASSES] = {"kept_update.comp", "kept_sums.comp",
                                                  "kept_copy.comp"};
    kept->uniforms = describe(compute);
    const int64_t groups = (kept->uniforms.extent[3] + LR_GROUP_SIZE - 1) / LR_GROUP_SIZE;
    kept->groups = (int)(groups < MOST_GROUPS ? groups : MOST_GROUPS);
    kept->next = make_buffer(compute, "the next image", image_bytes(compute));
    kept->parts = make_buffer(compute, "sums of groups", kept->groups * 4 * (int64_t)sizeof(float));
    if (kept->next == NULL || kept->parts == NULL) {
        return LR_FAILED;
    }
    for (int k = 0; k < NUM_PASSES; k++) {
        kept->programs[k] = gl_program_create(
            compute->ctx, &(struct gl_program_params){.compute = names[k], .label = names[k]});
        if (kept->programs[k] == NULL) {
            return LR_FAILED;
        }
    }
    return LR_OK;
}

static lr_status open_kept(struct lr_compute *compute)
{
    if (compute->kept != NULL) {
        return LR_OK;
    }
    compute->kept = lr_alloc(1, sizeof(*compute->kept), "kept images", compute->params.log);
    const lr_status status = compute->kept != NULL ? init(compute, compute->kept) : LR_FAILED;
    if (status != LR_OK) {
        lr_kept_destroy(compute->kept);
        compute->kept = NULL;
    }
    return status;
}

static lr_status open_slot(struct lr_compute *compute, int slot)
{
    struct lr_kept *kept = compute->kept;
    if (slot >= kept->num_slots) {
        struct gl_buffer **grown =
            lr_resize(kept->slots, slot + 1, sizeof(*grown), "kept images", compute->params.log);
        if (grown == NULL) {
            return LR_FAILED;
        }
        kept->slots = grown;
        for (; kept->num_slots <= slot; kept->num_slots++) {
            grown[kept->num_slots] = NULL;
        }
    }
    if (kept->slots[slot] == NULL) {
        kept->slots[slot] = make_buffer(compute, "a kept image", image_bytes(compute));
    }
    return kept->slots[slot] != NULL ? LR_OK : LR_FAILED;
}

static lr_status check_slot(const struct lr_compute *compute, int slot)
{
    const struct lr_kept *kept = compute->kept;
    if (kept != NULL && slot < kept->num_slots && kept->slots[slot] != NULL) {
        return LR_OK;
    }
    return lr_error(compute->params.log, LR_USAGE,
                    "slot %d keeps no image: give it one with lr_operator_keep_image first", slot);
}

/* --- images in and out --- */

static lr_status keep_image(struct lr_compute *compute, int slot, const float *image)
{
    LR_TRY(open_kept(compute));
    LR_TRY(open_slot(compute, slot));
    LR_TRY(compute->columns != NULL
               ? lr_columns_upload_image(compute->columns, image)
               : gl_buffer_upload(work_buffer(compute), 0, image_bytes(compute), image));
    gl_buffer_copy(work_buffer(compute), compute->kept->slots[slot], image_bytes(compute));
    return LR_OK;
}

static lr_status read_image(struct lr_compute *compute, float *image)
{
    LR_TRY(check_slot(compute, 0));
    gl_buffer_copy(compute->kept->slots[0], work_buffer(compute), image_bytes(compute));
    return compute->columns != NULL
               ? lr_columns_read_image(compute->columns, image)
               : gl_buffer_read(work_buffer(compute), 0, image_bytes(compute), image);
}

/* --- passes --- */

static struct gl_pass pass_of(const struct lr_compute *compute, enum pass which, int slot)
{
    const struct lr_kept *kept = compute->kept;
    struct gl_pass pass = {
        .label = gl_program_label(kept->programs[which]),
        .program = kept->programs[which],
        .uniforms = &kept->uniforms,
        .uniform_bytes = sizeof(kept->uniforms),
        .groups = {kept->groups, 1, 1},
        .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT |
                    GL_TEXTURE_FETCH_BARRIER_BIT,
    };
    pass.buffers[LR_BIND_KEPT_IMAGE].buffer = kept->slots[0];
    pass.buffers[LR_BIND_KEPT_OTHER].buffer = kept->slots[slot];
    return pass;
}

/* Sums of an image and a slot; *wrong: how many voxels of the image are not finite. */
static lr_status add_up(struct lr_compute *compute, const struct gl_buffer *image, int slot,
                        lr_kept_sums *sums, double *wrong)
{
    const struct lr_kept *kept = compute->kept;
    float parts[MOST_GROUPS][4];
    struct gl_pass pass = pass_of(compute, PASS_SUMS, slot);
    pass.buffers[LR_BIND_KEPT_IMAGE].buffer = image;
    pass.buffers[LR_BIND_KEPT_RESULT].buffer = kept->parts;
    LR_TRY(gl_pass_run(compute->ctx, &pass));
    LR_TRY(gl_buffer_read(kept->parts, 0, kept->groups * (int64_t)sizeof(*parts), parts));
    *sums = (lr_kept_sums){0};
    *wrong = 0.0;
    for (int k = 0; k < kept->groups; k++) {
        sums->products += parts[k][0];
        sums->differences += parts[k][1];
        sums->largest = sums->largest < parts[k][2] ? parts[k][2] : sums->largest;
        *wrong += parts[k][3];
    }
    return LR_OK;
}

static lr_status update_image(struct lr_compute *compute, const lr_selection *part,
                              const float *values, int slot)
{
    struct lr_kept *kept = compute->kept;
    lr_kept_sums sums;
    double wrong;
    LR_TRY(check_slot(compute, 0));
    LR_TRY(check_slot(compute, slot));
    LR_TRY(lr_compute_back_kept(compute, part, values));
    struct gl_pass pass = pass_of(compute, PASS_UPDATE, slot);
    pass.buffers[LR_BIND_KEPT_BACK].buffer = work_buffer(compute);
    pass.buffers[LR_BIND_KEPT_RESULT].buffer = kept->next;
    LR_TRY(gl_pass_run(compute->ctx, &pass));
    LR_TRY(add_up(compute, kept->next, slot, &sums, &wrong));
    if (wrong > 0.0) {
        return lr_error(compute->params.log, LR_FAILED,
                        "%.0f voxels grew beyond the largest number: leave out voxels that are "
                        "hardly seen, or take fewer subsets",
                        wrong);
    }
    struct gl_buffer *before = kept->slots[0];
    kept->slots[0] = kept->next;
    kept->next = before;
    return LR_OK;
}

static lr_status sum_image(struct lr_compute *compute, int slot, lr_kept_sums *sums)
{
    double wrong;
    LR_TRY(check_slot(compute, 0));
    LR_TRY(check_slot(compute, slot));
    return add_up(compute, compute->kept->slots[0], slot, sums, &wrong);
}

static lr_status write_texture(struct lr_compute *compute, const struct gl_texture *texture,
                               lr_texture_copy *copy)
{
    struct gl_pass pass = pass_of(compute, PASS_COPY, 0);
    pass.images[LR_IMAGE_KEPT_COPY] =
        (struct gl_image){.texture = texture, .access = GL_WRITE_ONLY};
    if (copy->after != NULL) {
        glWaitSync(copy->after, 0, GL_TIMEOUT_IGNORED);
        glDeleteSync(copy->after);
    }
    LR_TRY(gl_pass_run(compute->ctx, &pass));
    copy->done = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    glFlush(); /* or the other context would wait for ever */
    return copy->done != NULL ? LR_OK : gl_context_check(compute->ctx, "handing over an image");
}

static lr_status copy_image(struct lr_compute *compute, lr_texture_copy *copy)
{
    const int *size = compute->params.grid->size;
    LR_TRY(check_slot(compute, 0));
    struct gl_texture *texture = gl_texture_borrow(compute->ctx, copy->texture,
                                                   &(struct gl_texture_params){
                                                       .label = "an image handed over",
                                                       .target = GL_TEXTURE_3D,
                                                       .format = GL_R32F,
                                                       .width = size[0],
                                                       .height = size[1],
                                                       .depth = size[2],
                                                   });
    const lr_status status = texture != NULL ? write_texture(compute, texture, copy) : LR_FAILED;
    gl_texture_destroy(texture);
    return status;
}

/* --- slots --- */

static lr_status keep(void *self, int slot, const float *image)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = keep_image(compute, slot, image);
    gl_context_release(compute->ctx);
    return status;
}

static lr_status read(void *self, float *image)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = read_image(compute, image);
    gl_context_release(compute->ctx);
    return status;
}

static lr_status project(struct lr_compute *compute, const lr_selection *part, float *values)
{
    LR_TRY(check_slot(compute, 0));
    gl_buffer_copy(compute->kept->slots[0], work_buffer(compute), image_bytes(compute));
    return lr_compute_forward_kept(compute, part, values);
}

static lr_status forward(void *self, const lr_selection *part, float *values)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = project(compute, part, values);
    gl_context_release(compute->ctx);
    return status;
}

static lr_status update(void *self, const lr_selection *part, const float *values, int slot)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = update_image(compute, part, values, slot);
    gl_context_release(compute->ctx);
    return status;
}

static lr_status sum(void *self, int slot, lr_kept_sums *sums)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = sum_image(compute, slot, sums);
    gl_context_release(compute->ctx);
    return status;
}

static lr_status copy(void *self, lr_texture_copy *to)
{
    struct lr_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = copy_image(compute, to);
    gl_context_release(compute->ctx);
    return status;
}

const struct lr_kept_fns lr_compute_kept_fns = {
    .keep = keep,
    .read = read,
    .forward = forward,
    .update = update,
    .sum = sum,
    .copy = copy,
};
