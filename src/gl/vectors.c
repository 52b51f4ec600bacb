/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * OpenGL places, and vectors in buffers of their devices. */
#include "gl/vectors.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "device/kinds.h"
#include "device/vector.h"
#include "gl/pass.h"
#include "gl/resource.h"
#include "gl/transfer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MOST_GROUPS: largest number of workgroups of a pass. NUM_OPERANDS: largest number of vectors that a pass reads or
 * writes. NUM_APPLY: number of programs for operations, each with 0 to LR_VECTOR_INPUTS inputs. */
enum { MOST_GROUPS = 1024, NUM_OPERANDS = 1 + LR_VECTOR_INPUTS, NUM_APPLY = LR_NUM_VECTOR_OPS * NUM_OPERANDS };

/* The uniform block of shaders/vector/vector.glsl. */
struct vector_pass {
    uint32_t first[4];
    uint32_t count, unused;
    double scalar;
    double lowest, unused_too;
};
_Static_assert(sizeof(struct vector_pass) == 48, "the shaders' layout");

/* The uniforms of shaders/vector/differences.comp. */
struct differences_pass {
    double weights[8];
    double gamma, epsilon, scale;
    uint32_t layer, layers;
    uint32_t first[4], size[4];
};
_Static_assert(sizeof(struct differences_pass) == 128, "the shader's layout");

enum { NUM_DIFFERENCES = LR_DIFFERENCES_WEIGHTS + 1 };

/* A slot has the sums of one call (device/vector.h). A turn has a readback for the sums of its slots. Slots of 256
 * bytes satisfy the alignment that any driver requires for bindings. */
enum { SLOT_BYTES = 256, JOINED_BYTES = LR_VECTOR_NUM_SUMS * (int)sizeof(double) };

enum sums_program { SUMS = 0, DIVIDE, DIVIDE_ADDITIVE, NUM_SUMS_PROGRAMS };

struct lr_vector_programs {
    struct gl_program *apply[NUM_APPLY][2]; /* [operation * NUM_OPERANDS + number of inputs][precision of y] */
    struct gl_program *sums[NUM_SUMS_PROGRAMS][2];
    struct gl_program *convolve[2];
    struct gl_program *differences[NUM_DIFFERENCES][2][2]; /* [result][with kappa][precision] */
    struct gl_program *join;
    struct gl_buffer *parts;                  /* [MOST_GROUPS][LR_VECTOR_NUM_SUMS] double */
    struct gl_buffer *joined;                 /* [LR_VECTOR_NUM_SUMS] double for each slot, SLOT_BYTES apart */
    struct gl_readback arrived[LR_NUM_TURNS]; /* [turn]: sums of the turn's slots on the host */
    bool is_under_way[LR_NUM_SLOTS];          /* true while the sums of the slot are being copied to `arrived` */
};

/* The uniforms of shaders/vector/convolve.comp. */
struct convolve_pass {
    double weights[LR_CONVOLUTION_REACH];
    uint32_t first[4], size[4];
    int32_t along[4];
};
_Static_assert(sizeof(struct convolve_pass) == 1072, "the shader's layout");

/* --- programs --- */

static struct lr_vector_programs *programs_of(lr_place *place)
{
    if (place->programs == NULL)
        place->programs = lr_alloc(1, sizeof(*place->programs), "the programs of vectors", &place->log);
    return place->programs;
}

static const char *real_of(lr_precision precision)
{
    return precision == LR_FLOAT64 ? "double" : "float";
}

#define NAME(op) [op] = #op,
static const char *const op_names[LR_NUM_VECTOR_OPS] = {LR_EACH_VECTOR_OP(NAME)};

static const char *const sums_names[NUM_SUMS_PROGRAMS] = {"sums", "counts over estimates",
                                                          "counts over estimates and an additive term"};

/* --- functions that make the context current --- */

static lr_status enter(const lr_vector *vector)
{
    return gl_context_make_current(vector->place->ctx);
}

static lr_status leave(const lr_vector *vector, lr_status status)
{
    return gl_context_leave(vector->place->ctx, status);
}

/* --- passes over a vector, in pieces that fit into a storage block --- */

struct walk {
    lr_place *place;
    const lr_vector *operands[NUM_OPERANDS]; /* NULL = none */
    double scalar, lowest;
    struct gl_program *program;
    const struct gl_buffer *sums; /* NULL = none */
    int64_t count;
};

static int64_t longest_piece(const struct walk *walk)
{
    const struct gl_limits *limits = gl_context_limits(walk->place->ctx);
    const int64_t bytes = limits->max_storage_bytes - limits->storage_alignment;
    const int64_t most = bytes / (int64_t)sizeof(double);
    return most < INT32_MAX ? most : INT32_MAX;
}

/* Binds the elements of an operand from element `at` on. *first: receives the index of this element in the bound
 * range. */
static void bind_operand(const struct walk *walk, int which, int64_t at, struct gl_pass *pass, uint32_t *first)
{
    const lr_vector *vector = walk->operands[which];
    const int64_t size = lr_vector_size(vector), longest = longest_piece(walk), left = vector->count - at;
    const int64_t begin = vector->begin + at, end = begin + (left < longest ? left : longest);
    int64_t index;
    pass->buffers[LR_BIND_VECTOR_Y + which] =
        gl_range_of(vector->storage->buffer, (const int64_t[2]){begin * size, end * size}, size, &index);
    *first = (uint32_t)index;
}

static int groups_of(int64_t count)
{
    const int64_t groups = (count + LR_VECTOR_GROUP - 1) / LR_VECTOR_GROUP;
    return (int)(groups < MOST_GROUPS ? groups : MOST_GROUPS);
}

static lr_status run_piece(const struct walk *walk, int64_t at, int64_t count)
{
    struct vector_pass uniforms = {.count = (uint32_t)count, .scalar = walk->scalar, .lowest = walk->lowest};
    struct gl_pass pass =
        gl_pass_compute(walk->program, &uniforms, sizeof(uniforms), (const int[3]){groups_of(count), 1, 1});
    for (int k = 0; k < NUM_OPERANDS; k++)
        if (walk->operands[k] != NULL) bind_operand(walk, k, at, &pass, &uniforms.first[k]);
    pass.buffers[LR_BIND_VECTOR_SUMS].buffer = walk->sums;
    return gl_pass_run(walk->place->ctx, &pass);
}

static lr_status apply(const struct lr_vector_task *task)
{
    lr_place *place = task->y.place;
    struct lr_vector_programs *programs = programs_of(place);
    if (programs == NULL) return LR_FAILED;
    LR_TRY(enter(&task->y));
    int num_inputs = 0;
    while (num_inputs < LR_VECTOR_INPUTS && task->in[num_inputs] != NULL) num_inputs++;
    struct gl_program **program = &programs->apply[task->op * NUM_OPERANDS + num_inputs][task->y.precision];
    if (*program == NULL) {
        static const char *const counts[NUM_OPERANDS] = {"0", "1", "2", "3"};
        const char *op = op_names[task->op], *real = real_of(task->y.precision);
        const char *other = task->op == LR_VECTOR_CONVERT ? real_of(task->in[0]->precision) : real;
        const struct gl_define defines[] = {
            {"OP", op}, {"INPUTS", counts[num_inputs]}, {"REAL", real}, {"OTHER", other}, {0}};
        char label[64];
        snprintf(label, sizeof(label), "vectors: %s, %s", op, real);
        *program = gl_program_create(
            place->ctx,
            &(struct gl_program_params){.compute = "vector/apply.comp", .defines = defines, .label = label});
    }

    struct walk walk = {.place = place,
                        .operands = {&task->y, task->in[0], task->in[1], task->in[2]},
                        .scalar = task->scalar,
                        .lowest = task->floor,
                        .program = *program,
                        .count = task->y.count};
    const int64_t longest = longest_piece(&walk);
    lr_status status = *program != NULL ? LR_OK : LR_FAILED;
    for (int64_t at = 0; status == LR_OK && at < walk.count; at += longest) {
        const int64_t left = walk.count - at;
        status = run_piece(&walk, at, left < longest ? left : longest);
    }
    return leave(&task->y, status);
}

/* --- sums: the device adds up the sums of its workgroups and sends the result to the host --- */

static int64_t offset_in_turn(int slot)
{
    return (int64_t)(slot % LR_LATER_SLOTS) * SLOT_BYTES;
}

static lr_status sum_pieces(const struct walk *walk, int slot, bool has_largest)
{
    struct lr_vector_programs *programs = walk->place->programs;
    const int64_t longest = longest_piece(walk);
    for (int64_t at = 0; at < walk->count; at += longest) {
        const int64_t left = walk->count - at, count = left < longest ? left : longest;
        LR_TRY(run_piece(walk, at, count));
        struct vector_pass uniforms = {.first = {0, at > 0, has_largest}, .count = (uint32_t)groups_of(count)};
        struct gl_pass pass = gl_pass_compute(programs->join, &uniforms, sizeof(uniforms), (const int[3]){1, 1, 1});
        pass.buffers[LR_BIND_VECTOR_Y].buffer = programs->parts;
        pass.buffers[LR_BIND_VECTOR_SUMS] =
            (struct gl_range){programs->joined, (int64_t)slot * SLOT_BYTES, JOINED_BYTES};
        LR_TRY(gl_pass_run(walk->place->ctx, &pass));
    }
    const struct gl_buffer_range range = {.from = programs->joined,
                                          .from_offset = (int64_t)slot * SLOT_BYTES,
                                          .to_offset = offset_in_turn(slot),
                                          .bytes = JOINED_BYTES};
    LR_TRY(gl_readback_copy(&programs->arrived[slot / LR_LATER_SLOTS], &range));
    walk->place->traffic.to_host += JOINED_BYTES;
    programs->is_under_way[slot] = true;
    return LR_OK;
}

static lr_status open_sums(struct walk *walk, enum sums_program which)
{
    lr_place *place = walk->place;
    const lr_precision precision = walk->operands[0]->precision;
    struct lr_vector_programs *programs = programs_of(place);
    if (programs == NULL) return LR_FAILED;
    struct gl_program **program = &programs->sums[which][precision];
    if (*program == NULL) {
        char label[80];
        snprintf(label, sizeof(label), "vectors: %s, %s", sums_names[which], real_of(precision));
        const struct gl_define defines[] = {
            {"REAL", real_of(precision)}, {which == DIVIDE_ADDITIVE ? "HAS_ADDITIVE" : NULL, "1"}, {0}};
        *program = gl_program_create(
            place->ctx,
            &(struct gl_program_params){.compute = which == SUMS ? "vector/sums.comp" : "vector/divide_counts.comp",
                                        .defines = defines,
                                        .label = label});
    }
    if (*program != NULL && programs->join == NULL) {
        programs->join = gl_program_create(place->ctx, &(struct gl_program_params){.compute = "vector/join_sums.comp",
                                                                                   .label = "vectors: sums of groups"});
    }
    if (*program == NULL || programs->join == NULL) return LR_FAILED;
    for (int turn = 0; turn < LR_NUM_TURNS; turn++) {
        programs->arrived[turn].ctx = place->ctx;
        programs->arrived[turn].label = "sums of vectors";
        LR_TRY(gl_readback_reserve(&programs->arrived[turn], LR_LATER_SLOTS * SLOT_BYTES));
    }
    struct gl_buffer **const buffers[] = {&programs->joined, &programs->parts};
    const int64_t sizes[] = {LR_NUM_SLOTS * SLOT_BYTES, (int64_t)MOST_GROUPS * JOINED_BYTES};
    for (int k = 0; k < 2; k++) {
        const struct gl_buffer_params params = {.label = "sums of vectors", .size_bytes = sizes[k]};
        if (*buffers[k] == NULL) *buffers[k] = gl_buffer_create(place->ctx, &params);
        if (*buffers[k] == NULL) return LR_FAILED;
    }
    walk->program = *program;
    walk->sums = programs->parts;
    return LR_OK;
}

static lr_status begin_sums(const lr_vector *x, const lr_vector *y, int slot)
{
    struct walk walk = {.place = x->place, .operands = {x, y}, .count = x->count};
    LR_TRY(enter(x));
    lr_status status = open_sums(&walk, SUMS);
    if (status == LR_OK) status = sum_pieces(&walk, slot, true);
    return leave(x, status);
}

static lr_status begin_fit(const lr_poisson_ratio *ratio, int slot)
{
    struct walk walk = {.place = ratio->values->place,
                        .operands = {ratio->values, ratio->measured, ratio->additive},
                        .count = ratio->values->count};
    LR_TRY(enter(ratio->values));
    lr_status status = open_sums(&walk, ratio->additive != NULL ? DIVIDE_ADDITIVE : DIVIDE);
    if (status == LR_OK) status = sum_pieces(&walk, slot, false);
    return leave(ratio->values, status);
}

static lr_status send_later(lr_place *place, int turn)
{
    LR_TRY(gl_context_make_current(place->ctx));
    if (place->programs != NULL) gl_readback_send(&place->programs->arrived[turn]);
    return gl_context_leave(place->ctx, LR_OK);
}

static lr_status finish_later(lr_place *place, int slot, double *sums)
{
    struct lr_vector_programs *programs = place->programs;
    const int turn = slot / LR_LATER_SLOTS;
    struct gl_readback *arrived = &programs->arrived[turn];
    LR_TRY(gl_context_make_current(place->ctx));
    if (programs->is_under_way[slot]) { /* the wait includes all sums of the turn */
        if (arrived->fence == NULL) gl_readback_send(arrived);
        const lr_status status = gl_readback_wait(arrived);
        if (status != LR_OK) return gl_context_leave(place->ctx, status);
        for (int k = 0; k < LR_NUM_SLOTS; k++) programs->is_under_way[k] &= k / LR_LATER_SLOTS != turn;
    }
    memcpy(sums, arrived->mapped + offset_in_turn(slot), JOINED_BYTES);
    return gl_context_leave(place->ctx, LR_OK);
}

/* --- relative differences, in groups of layers that fit into a storage block --- */

/* Computes how many layers one pass can handle. The pass also reads `beside` more layers on each side. */
static lr_status fit_layers(const struct walk *walk, const int size[3], int beside, int *longest)
{
    const int64_t fit = longest_piece(walk) / ((int64_t)size[0] * size[1]) - 2 * (int64_t)beside;
    *longest = fit < size[2] ? (int)fit : size[2];
    return fit >= 1 ? LR_OK
                    : lr_error(&walk->place->log, LR_USAGE,
                               "%d layers of %d x %d voxels do not fit a storage block of this "
                               "device: take a smaller grid, or a backend on the host",
                               1 + 2 * beside, size[0], size[1]);
}

static lr_status relative_differences(const lr_relative_differences *differences)
{
    const int *size = differences->size;
    lr_place *place = differences->y->place;
    const bool has_kappa = differences->kappa != NULL;
    const lr_precision precision = differences->y->precision;
    struct lr_vector_programs *programs = programs_of(place);
    if (programs == NULL) return LR_FAILED;
    LR_TRY(enter(differences->y));
    struct gl_program **program = &programs->differences[differences->what][has_kappa][precision];
    if (*program == NULL) {
        char what[8], label[64];
        snprintf(what, sizeof(what), "%d", (int)differences->what);
        snprintf(label, sizeof(label), "vectors: relative differences %s, %s", what, real_of(precision));
        const struct gl_define defines[] = {
            {"REAL", real_of(precision)}, {"WHAT", what}, {has_kappa ? "HAS_KAPPA" : NULL, "1"}, {0}};
        *program = gl_program_create(
            place->ctx,
            &(struct gl_program_params){.compute = "vector/differences.comp", .defines = defines, .label = label});
    }

    /* Each pass also reads one more layer on each side. */
    const struct walk walk = {
        .place = place, .operands = {differences->y, differences->x, differences->kappa}, .program = *program};
    const int64_t plane = (int64_t)size[0] * size[1];
    int longest = 0;
    lr_status status = *program != NULL ? fit_layers(&walk, size, 1, &longest) : LR_FAILED;
    for (int layer = 0; status == LR_OK && layer < size[2]; layer += longest) {
        const int layers = size[2] - layer < longest ? size[2] - layer : longest;
        const int first = layer > 0 ? layer - 1 : 0;
        struct differences_pass uniforms = {
            .gamma = differences->gamma,
            .epsilon = differences->epsilon,
            .scale = differences->scale,
            .layer = (uint32_t)layer,
            .layers = (uint32_t)layers,
            .size = {(uint32_t)size[0], (uint32_t)size[1], (uint32_t)size[2], (uint32_t)first}};
        struct gl_pass pass =
            gl_pass_compute(walk.program, &uniforms, sizeof(uniforms), (const int[3]){groups_of(layers * plane), 1, 1});
        memcpy(uniforms.weights, differences->weights, sizeof(uniforms.weights));
        bind_operand(&walk, 0, layer * plane, &pass, &uniforms.first[0]);
        for (int k = 1; k < 3 && walk.operands[k] != NULL; k++)
            bind_operand(&walk, k, first * plane, &pass, &uniforms.first[k]);
        status = gl_pass_run(place->ctx, &pass);
    }
    return leave(differences->y, status);
}

/* --- convolutions --- */

static lr_status convolve(const lr_convolution *convolution)
{
    const int *size = convolution->size;
    lr_place *place = convolution->y->place;
    const lr_precision precision = convolution->y->precision;
    struct lr_vector_programs *programs = programs_of(place);
    if (programs == NULL) return LR_FAILED;
    LR_TRY(enter(convolution->y));
    struct gl_program **program = &programs->convolve[precision];
    if (*program == NULL) {
        const struct gl_define defines[] = {{"REAL", real_of(precision)}, {0}};
        *program = gl_program_create(place->ctx, &(struct gl_program_params){.compute = "vector/convolve.comp",
                                                                             .defines = defines,
                                                                             .label = "vectors: convolution"});
    }

    const struct walk walk = {.place = place, .operands = {convolution->y, convolution->x}, .program = *program};
    const int64_t plane = (int64_t)size[0] * size[1];
    const int beside = convolution->axis == 2 ? convolution->reach : 0;
    int longest = 0;
    lr_status status = *program != NULL ? fit_layers(&walk, size, beside, &longest) : LR_FAILED;
    for (int layer = 0; status == LR_OK && layer < size[2]; layer += longest) {
        const int layers = size[2] - layer < longest ? size[2] - layer : longest;
        const int first = layer > beside ? layer - beside : 0;
        struct convolve_pass uniforms = {
            .first = {0, 0, (uint32_t)layer, (uint32_t)layers},
            .size = {(uint32_t)size[0], (uint32_t)size[1], (uint32_t)size[2], (uint32_t)first},
            .along = {convolution->axis, convolution->reach}};
        struct gl_pass pass =
            gl_pass_compute(walk.program, &uniforms, sizeof(uniforms), (const int[3]){groups_of(layers * plane), 1, 1});
        memcpy(uniforms.weights, convolution->weights,
               (size_t)(convolution->reach + 1) * sizeof(*convolution->weights));
        bind_operand(&walk, 0, layer * plane, &pass, &uniforms.first[0]);
        bind_operand(&walk, 1, first * plane, &pass, &uniforms.first[1]);
        status = gl_pass_run(place->ctx, &pass);
    }
    return leave(convolution->y, status);
}

/* --- creation and copies --- */

static lr_status create(const lr_vector_params *params, int64_t bytes, lr_vector *vector)
{
    const struct gl_buffer_params buffer = {.label = params->name != NULL ? params->name : "a vector",
                                            .size_bytes = bytes};
    LR_TRY(gl_context_make_current(params->place->ctx));
    vector->storage = lr_alloc(1, sizeof(*vector->storage), "a vector", params->log);
    if (vector->storage != NULL) vector->storage->buffer = gl_buffer_create(params->place->ctx, &buffer);
    if (vector->storage != NULL && vector->storage->buffer == NULL) {
        free(vector->storage);
        vector->storage = NULL;
    }
    return leave(vector, vector->storage != NULL ? LR_OK : LR_FAILED);
}

static void destroy(lr_vector *vector)
{
    if (gl_context_make_current_to_free(vector->place->ctx)) {
        gl_buffer_destroy(vector->storage->buffer);
        gl_context_release(vector->place->ctx);
    }
    free(vector->storage);
}

static lr_status write(lr_vector *vector, const void *numbers)
{
    const struct lr_vector_range range = lr_vector_gl_range(vector);
    LR_TRY(enter(vector));
    vector->place->traffic.to_device += range.bytes;
    return leave(vector, gl_buffer_upload(range.buffer, range.offset, range.bytes, numbers));
}

static lr_status read(const lr_vector *vector, void *numbers)
{
    const struct lr_vector_range range = lr_vector_gl_range(vector);
    LR_TRY(enter(vector));
    vector->place->traffic.to_host += range.bytes;
    return leave(vector, gl_buffer_read(range.buffer, range.offset, range.bytes, numbers));
}

static lr_status fill(lr_vector *vector, double value)
{
    const struct lr_vector_range range = lr_vector_gl_range(vector);
    const float single = (float)value;
    const int64_t size = lr_vector_size(vector);
    uint32_t words[2] = {0};
    memcpy(words, size == sizeof(value) ? (const void *)&value : &single, (size_t)size);
    LR_TRY(enter(vector));
    return leave(vector,
                 gl_buffer_fill_range(
                     &(struct gl_buffer_range){.to = range.buffer, .to_offset = range.offset, .bytes = range.bytes},
                     words, (int)(size / (int64_t)sizeof(*words))));
}

static lr_status copy(const lr_vector *from, lr_vector *to)
{
    const struct lr_vector_range source = lr_vector_gl_range(from);
    const struct lr_vector_range target = lr_vector_gl_range(to);
    if (source.buffer == target.buffer && source.offset == target.offset) return LR_OK;
    LR_TRY(enter(to));
    gl_buffer_copy_range(&(struct gl_buffer_range){.from = source.buffer,
                                                   .to = target.buffer,
                                                   .from_offset = source.offset,
                                                   .to_offset = target.offset,
                                                   .bytes = source.bytes});
    return leave(to, gl_context_check(to->place->ctx, "a copy of a vector"));
}

/* --- pictures --- */

static lr_status show(const lr_vector *image, lr_vector_texture *copy)
{
    LR_TRY(enter(image));
    struct gl_texture *texture = gl_texture_borrow(image->place->ctx, copy->texture,
                                                   &(struct gl_texture_params){.label = "an image handed over",
                                                                               .target = GL_TEXTURE_3D,
                                                                               .format = GL_R32F,
                                                                               .width = copy->size[0],
                                                                               .height = copy->size[1],
                                                                               .depth = copy->size[2]});
    const struct lr_vector_range range = lr_vector_gl_range(image);
    lr_status status = texture != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK && copy->after != NULL) {
        glWaitSync(copy->after, 0, GL_TIMEOUT_IGNORED);
        glDeleteSync(copy->after);
        copy->after = NULL;
    }
    if (status == LR_OK) status = gl_texture_copy_buffer(texture, NULL, range.buffer, range.offset);
    if (status == LR_OK) {
        copy->done = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
        glFlush(); /* without this, the other context could wait forever for a fence that was not submitted */
        if (copy->done == NULL) status = gl_context_check(image->place->ctx, "handing over an image");
    }
    gl_texture_destroy(texture);
    return leave(image, status);
}

/* --- the caller's buffers --- */

static lr_status wrap(const lr_vector_params *params, void *memory, lr_vector *vector)
{
    lr_vector_gl_buffer *buffer = memory;
    const struct gl_buffer_params own = {.label = params->name != NULL ? params->name : "a vector",
                                         .size_bytes = vector->count * lr_vector_size(vector)};
    lr_status status = LR_FAILED;
    LR_TRY(enter(vector));
    vector->storage = lr_alloc(1, sizeof(*vector->storage), "a vector", params->log);
    if (vector->storage != NULL)
        status = gl_buffer_borrow(params->place->ctx, buffer->buffer, &own, &vector->storage->buffer);
    if (status == LR_OK && buffer->after != NULL) {
        glWaitSync(buffer->after, 0, GL_TIMEOUT_IGNORED);
        glDeleteSync(buffer->after);
        buffer->after = NULL;
    }
    if (status != LR_OK) {
        free(vector->storage);
        vector->storage = NULL;
    }
    return leave(vector, status);
}

static lr_status fence(lr_place *place, void **done)
{
    LR_TRY(gl_context_make_current(place->ctx));
    *done = glFenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    glFlush(); /* without this, the other context could wait forever for a fence that was not submitted */
    const lr_status status = *done != NULL ? LR_OK : gl_context_check(place->ctx, "a fence for another context");
    return gl_context_leave(place->ctx, *done == NULL && status == LR_OK ? LR_FAILED : status);
}

/* --- places --- */

static lr_status open_place(const lr_place_params *params, lr_place *place)
{
    LR_TRY(gl_context_open(
        &(struct gl_context_params){.device = params->device, .shared = params->shared, .log = &place->log},
        &place->ctx));
    gl_context_release(place->ctx);
    const struct gl_limits *limits = gl_context_limits(place->ctx);
    snprintf(place->device, sizeof(place->device), "%s", limits->renderer);
    place->memory_bytes = limits->memory_bytes;
    place->shares = params->shared != NULL;
    return LR_OK;
}

static void close_place(lr_place *place)
{
    if (place->programs != NULL && gl_context_make_current_to_free(place->ctx)) {
        struct lr_vector_programs *programs = place->programs;
        for (int precision = 0; precision < 2; precision++) {
            for (int k = 0; k < NUM_APPLY; k++) gl_program_destroy(programs->apply[k][precision]);
            for (int k = 0; k < NUM_SUMS_PROGRAMS; k++) gl_program_destroy(programs->sums[k][precision]);
            gl_program_destroy(programs->convolve[precision]);
            for (int k = 0; k < NUM_DIFFERENCES; k++) {
                gl_program_destroy(programs->differences[k][0][precision]);
                gl_program_destroy(programs->differences[k][1][precision]);
            }
        }
        gl_program_destroy(programs->join);
        gl_buffers_destroy(programs->parts, programs->joined);
        for (int turn = 0; turn < LR_NUM_TURNS; turn++) gl_readback_finish(&programs->arrived[turn]);
        free(programs);

        gl_context_release(place->ctx);
    }
    gl_context_destroy(place->ctx);
}

static lr_status hold(lr_place *place)
{
    return gl_context_make_current(place->ctx);
}

static void release(lr_place *place)
{
    gl_context_release(place->ctx);
}

const struct lr_place_fns lr_place_gl_fns = {
    .open = open_place,
    .close = close_place,
    .hold = hold,
    .release = release,
    .vectors = {.create = create,
                .destroy = destroy,
                .write = write,
                .read = read,
                .copy = copy,
                .fill = fill,
                .apply = apply,
                .begin_fit = begin_fit,
                .begin_sums = begin_sums,
                .send_later = send_later,
                .finish_later = finish_later,
                .relative_differences = relative_differences,
                .convolve = convolve},
    .wrap = wrap,
    .show = show,
    .fence = fence,
};

/* --- buffers and vectors --- */

static int64_t bytes_of(const lr_vector *values)
{
    return values->count * (int64_t)sizeof(float);
}

void lr_values_count_traffic(lr_place *place, const lr_vector *in, const lr_vector *out)
{
    if (in != NULL && in->values != NULL) place->traffic.to_device += bytes_of(in);
    if (out->values != NULL) place->traffic.to_host += bytes_of(out);
}

lr_status lr_values_put(const lr_vector *values, struct gl_buffer *buffer, int64_t offset)
{
    if (values->values != NULL) return gl_buffer_upload(buffer, offset, bytes_of(values), values->values);
    const struct lr_vector_range range = lr_vector_gl_range(values);
    gl_buffer_copy_range(&(struct gl_buffer_range){
        .from = range.buffer, .to = buffer, .from_offset = range.offset, .to_offset = offset, .bytes = range.bytes});
    return LR_OK;
}

lr_status lr_values_get(const struct gl_buffer *buffer, int64_t offset, lr_vector *values)
{
    if (values->values != NULL) return gl_buffer_read(buffer, offset, bytes_of(values), values->values);
    const struct lr_vector_range range = lr_vector_gl_range(values);
    gl_buffer_copy_range(&(struct gl_buffer_range){
        .from = buffer, .to = range.buffer, .from_offset = offset, .to_offset = range.offset, .bytes = range.bytes});
    return gl_context_check(buffer->ctx, "LOR values on the device");
}

struct gl_buffer *lr_values_buffer(struct gl_context *ctx, const char *label, int64_t count, const lr_vector *values)
{
    struct gl_buffer *buffer =
        gl_buffer_create(ctx, &(struct gl_buffer_params){.label = label,
                                                         .size_bytes = count * (int64_t)sizeof(float),
                                                         .data = values != NULL ? values->values : NULL,
                                                         .is_undefined = values != NULL && values->count == count});
    if (buffer != NULL && values != NULL && values->values == NULL && lr_values_put(values, buffer, 0) != LR_OK) {
        gl_buffer_destroy(buffer);
        return NULL;
    }
    return buffer;
}
