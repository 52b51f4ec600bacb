/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "correspondence/values.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "base/vec.h"
#include "common/bindings.h"
#include "model/lors/pair_window.h"
#include "model/lors/place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- values of interleaved LORs --- */

void lr_blanks_finish(struct lr_blanks *blanks)
{
    gl_program_destroy(blanks->program);
    gl_buffer_destroy(blanks->modules);
    *blanks = (struct lr_blanks){0};
}

/* Sets the values of a window to 0, except the values of the part's LORs. */
static lr_status blank_window(const struct lr_blanks *blanks, const struct gl_buffer *kept,
                              const struct lr_pair_window *window, const lr_vector *values)
{
    struct gl_context *ctx = kept->ctx;
    const int64_t alignment = gl_context_limits(ctx)->storage_alignment, count = window->end - window->begin;
    const lr_vector part = lr_vector_part(values, window->first_value, window->num_values);
    const struct lr_vector_range range = lr_vector_gl_range(&part);
    const int64_t aligned = range.offset / alignment * alignment;
    uint32_t(*pairs)[4] = lr_alloc(count, sizeof(*pairs), "pairs of modules", gl_context_log(ctx));
    uint32_t first = (uint32_t)((range.offset - aligned) / (int64_t)sizeof(float));
    if (pairs == NULL) return LR_FAILED;
    for (int64_t k = 0; k < count; k++) {
        const int32_t *modules = window->lors->pairs[lr_pair_window_pair(window, window->begin + k)];
        const uint32_t entry[4] = {first, (uint32_t)modules[0], (uint32_t)modules[1]};
        memcpy(pairs[k], entry, sizeof(entry));
        first += (uint32_t)lr_pair_window_size(window, window->begin + k);
    }
    struct gl_buffer *list = gl_data_buffer(ctx, "pairs of modules", count * (int64_t)sizeof(*pairs), pairs);
    free(pairs);
    const uint32_t uniforms[4] = {(uint32_t)count};
    struct gl_pass pass = {.label = "interleaved LORs",
                           .program = blanks->program,
                           .uniforms = uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .groups = {gl_groups_in_turn(count, 1), 1, 1},
                           .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT};
    gl_pass_bind(&pass, {LR_BIND_MODULES, blanks->modules}, {LR_BIND_PAIRS, list}, {LR_BIND_ROWS, kept});
    pass.buffers[LR_BIND_OUTPUT] = (struct gl_range){range.buffer, aligned, range.offset - aligned + range.bytes};
    const lr_status status = list != NULL ? gl_pass_run(ctx, &pass) : LR_FAILED;
    gl_buffer_destroy(list);
    return status;
}

lr_status lr_blanks_run(struct lr_blanks *blanks, const lr_lors *lors, const lr_selection *part, lr_vector *values)
{
    struct gl_context *ctx = values->place->ctx;
    const struct gl_limits *limits = gl_context_limits(ctx);
    if (blanks->program == NULL) {
        const int num_modules = lors->scanner->num_modules;
        int32_t(*modules)[4] = lr_alloc(num_modules, sizeof(*modules), "places of crystals", gl_context_log(ctx));
        if (modules == NULL) return LR_FAILED;
        for (int m = 0; m < num_modules; m++) {
            const struct lr_module_places *places = &lors->angles->modules[m];
            const int *crystals = lors->scanner->modules[m].crystals;
            const int32_t entry[4] = {crystals[0], crystals[1], places->first,
                                      4 * places->rank + 2 * places->is_v + (places->step > 0)};
            memcpy(modules[m], entry, sizeof(entry));
        }
        blanks->modules = gl_data_buffer(ctx, "places of crystals", num_modules * (int64_t)sizeof(*modules), modules);
        free(modules);
        static const char *const name = "correspondence/blank.comp";
        blanks->program = gl_program_create(ctx, &(struct gl_program_params){.compute = name, .label = name});
        if (blanks->modules == NULL || blanks->program == NULL) return LR_FAILED;
    }

    /* sums[s] has one bit for each kind of rows (lr_turn). The bit is set if LORs whose positions around the axis add
     * up to s keep their values. */
    const int32_t num_sums = 2 * lors->angles->count;
    uint32_t *sums = lr_alloc(num_sums, sizeof(*sums), "angles of LORs", gl_context_log(ctx));
    if (sums == NULL) return LR_FAILED;
    for (int32_t sum = 0; sum < num_sums; sum++) {
        sums[sum] = 0;
        for (int kind = 0; kind < LR_ROW_KINDS; kind++)
            if (lr_turn(lors, part->interleave, sum, kind) == part->interleave_turn) sums[sum] |= 1u << kind;
    }
    struct gl_buffer *kept = gl_data_buffer(ctx, "angles of LORs", num_sums * (int64_t)sizeof(*sums), sums);
    free(sums);
    lr_status status = kept != NULL ? LR_OK : LR_FAILED;
    struct lr_pair_window window = lr_pair_window_begin(lors, part->pairs, part->num_pairs);
    const int64_t most = (limits->max_storage_bytes - limits->storage_alignment) / (int64_t)sizeof(float);
    while (status == LR_OK && lr_pair_window_next(&window, most)) status = blank_window(blanks, kept, &window, values);
    gl_buffer_destroy(kept);
    return status;
}

/* --- sums in fixed point --- */

/* The buffer begins with two words: the overflow flag and an unused word. */
enum { HEAD_BYTES = 8 };

/* The number 1 is stored as 2^BITS on the device. */
enum { BITS = 61 };

/* The estimate of the largest element is multiplied by this. If an element is even larger, a sum overflows, and the
 * overflow is reported. */
static const double guess_margin = 16.0;

/* The number of sums that one read copies. */
enum { PIECE = 1 << 16 };

lr_status lr_fixed_init(struct lr_fixed *fixed, struct gl_context *ctx, int64_t count, int exponent)
{
    *fixed = (struct lr_fixed){.count = count, .exponent = exponent, .unit = ldexp(1.0, exponent - BITS)};
    fixed->buffer = gl_data_buffer(ctx, "sums in fixed point", HEAD_BYTES + count * LR_FIXED_BYTES, NULL);
    return fixed->buffer != NULL ? LR_OK : LR_FAILED;
}

void lr_fixed_finish(struct lr_fixed *fixed)
{
    gl_buffer_destroy(fixed->buffer);
    fixed->buffer = NULL;
}

lr_status lr_fixed_overflowed(const struct lr_fixed *fixed, bool *overflowed)
{
    uint32_t flag = 0;
    LR_TRY(gl_buffer_read(fixed->buffer, 0, sizeof(flag), &flag));
    *overflowed = flag != 0;
    return LR_OK;
}

lr_status lr_fixed_read(const struct lr_fixed *fixed, float *values)
{
    uint32_t(*words)[2] = lr_alloc(PIECE, sizeof(*words), "sums in fixed point", gl_context_log(fixed->buffer->ctx));
    lr_status status = words != NULL ? LR_OK : LR_FAILED;
    for (int64_t begin = 0; status == LR_OK && begin < fixed->count; begin += PIECE) {
        const int64_t here = fixed->count - begin < PIECE ? fixed->count - begin : PIECE;
        status = gl_buffer_read(fixed->buffer, HEAD_BYTES + begin * LR_FIXED_BYTES, here * LR_FIXED_BYTES, words);
        for (int64_t k = 0; status == LR_OK && k < here; k++) {
            const double high = words[k][1] < 0x80000000u ? words[k][1] : words[k][1] - 0x1.0p32;
            values[begin + k] = (float)ldexp(high * 0x1.0p32 + words[k][0], fixed->exponent - BITS);
        }
    }
    free(words);
    return status;
}

int lr_fixed_exponent(const float *values, int64_t count)
{
    float largest = 0.0f;
    int exponent = 0;
    for (int64_t k = 0; k < count; k++) largest = fabsf(values[k]) > largest ? fabsf(values[k]) : largest;
    frexpf(largest, &exponent);
    return exponent;
}

int64_t lr_fixed_most(int64_t floats)
{
    const int64_t most = (floats * (int64_t)sizeof(float) - HEAD_BYTES) / LR_FIXED_BYTES;
    return most > 0 ? most : 1;
}

int lr_fixed_sum_exponent(const struct lr_backend_params *params, const float *image)
{
    const int64_t num_voxels = lr_grid_num_voxels(params->grid);
    const lr_scanner *scanner = params->scanner;
    const lr_lors *lors = params->lors;
    double face = 0.0, nearest = INFINITY; /* area of the largest face; smallest distance between two modules */
    for (int m = 0; m < scanner->num_modules; m++)
        face = fmax(face, scanner->modules[m].face_mm[0] * scanner->modules[m].face_mm[1]);
    for (int64_t k = 0; k < lors->num_pairs; k++) {
        double offset[3];
        vec_sub(lors->scanner->modules[lors->pairs[k][0]].centre_mm,
                lors->scanner->modules[lors->pairs[k][1]].centre_mm, offset);
        nearest = fmin(nearest, vec_length(offset));
    }
    const double half_way = 0.5 * nearest, part = face / ((2.0 * LR_PI) * half_way * half_way);

    double sum = 0.0;
    int exponent = 0;
    for (int64_t k = 0; k < num_voxels; k++) sum += fabs((double)image[k]);
    frexp(sum * fmin(1.0, guess_margin * part), &exponent);
    return exponent;
}
