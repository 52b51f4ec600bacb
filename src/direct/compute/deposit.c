/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Deposits events on the device. Events are uploaded in blocks, and sums stay on the device until the end. Sums are
 * 64-bit integers (shaders/common/fixed.glsl), so that they are the same in every run. If one buffer cannot hold all
 * views, the views are divided among several buffers. */
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "common/bindings.h"
#include "direct/backend.h"
#include "gl/pass.h"
#include "gl/vectors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BLOCK_EVENTS = 1 << 17,
    HEAD_WORDS = 2, /* a buffer of sums begins with an overflow flag and an unused word */
    WORDS = 2,      /* words of a sum */
    NUM_TALLIES = 4,
    TALLIED_BLOCKS = 1 << 14, /* the tallies are read after this many blocks, so that 32 bits suffice */
    READ_WORDS = 1 << 22
};

/* Sums in fixed point are multiples of 2^-37 up to 2^26. */
#define SCALE (1.0 / (1 << 24))
#define STEP (1.0 / ((double)(1 << 24) * (double)(1 << 13)))

/* The layout of events and of the uniform block in shaders/direct/deposit.comp. */
struct device_event {
    int32_t a, b;
    float tof_mm, weight;
};
struct deposit_pass {
    double origin_mm[4], voxel_mm[4];
    int32_t size[4], views[4];
    float scale;
    int32_t is_first, parts, unused;
};
_Static_assert(sizeof(struct deposit_pass) == 112, "the shader's layout");

struct compute_deposit {
    struct lr_deposit_backend_params params;
    struct gl_context *ctx;
    struct gl_program *program;
    struct gl_buffer *crystals, *borders, *events, *tallies;
    struct gl_buffer **sums; /* [num_slabs] */
    int num_slabs, views_per_slab;
    struct device_event *block; /* [BLOCK_EVENTS] */
    int64_t filled;             /* number of events in the block */
    int blocks;                 /* number of blocks counted in the tallies */
    lr_deposit_counts counts;
};

/* --- creating --- */

static lr_status init(struct compute_deposit *deposit)
{
    const struct gl_define trilinear[] = {{.name = "TRILINEAR"}, {0}};
    const lr_scanner *scanner = deposit->params.scanner;
    const lr_view_set *set = &deposit->params.set;
    const lr_log *log = deposit->params.log;
    deposit->program = gl_program_start(
        deposit->ctx,
        &(struct gl_program_params){.compute = "direct/deposit.comp",
                                    .defines = deposit->params.rule == LR_DEPOSIT_TRILINEAR ? trilinear : NULL,
                                    .label = "DIRECT deposition"});
    deposit->block = lr_alloc(BLOCK_EVENTS, sizeof(*deposit->block), "a block of events", log);

    const int64_t num_crystals = scanner->num_crystals;
    double(*centres)[4] = lr_alloc(num_crystals, sizeof(*centres), "crystals", log);
    for (int k = 0; centres != NULL && k < num_crystals; k++) lr_scanner_hit_centre(scanner, k, centres[k]);
    if (centres != NULL)
        deposit->crystals = gl_data_buffer(deposit->ctx, "crystals", num_crystals * (int64_t)sizeof(*centres), centres);
    free(centres);

    /* Lists the cosine and the sine of each border: lower borders of azimuths, lower borders of tilts, upper border of
     * the last tilt. */
    const int64_t num_borders = set->azimuths + set->tilts + 1;
    double(*borders)[2] = lr_alloc(num_borders, sizeof(*borders), "borders", log);
    for (int k = 0; borders != NULL && k < num_borders; k++) {
        const double angle_deg = lr_view_set_border_deg(set, k);
        borders[k][0] = cos(angle_deg * LR_DEGREE);
        borders[k][1] = sin(angle_deg * LR_DEGREE);
    }
    if (borders != NULL)
        deposit->borders =
            gl_data_buffer(deposit->ctx, "borders of views", num_borders * (int64_t)sizeof(*borders), borders);
    free(borders);

    deposit->events = gl_data_buffer(deposit->ctx, "events", BLOCK_EVENTS * (int64_t)sizeof(struct device_event), NULL);
    deposit->tallies = gl_data_buffer(deposit->ctx, "counts of events", NUM_TALLIES * 4, NULL);

    /* The sums of all views are divided among as many buffers as they need. */
    const struct gl_limits *limits = gl_context_limits(deposit->ctx);
    const lr_histo_images *images = deposit->params.images;
    const int64_t view_bytes = lr_grid_num_voxels(&images->grid) * WORDS * 4;
    const int64_t room = (limits->max_storage_bytes - HEAD_WORDS * 4) / view_bytes;
    if (room < 1) {
        return lr_error(log, LR_FAILED,
                        "the sums of one view take %lld MiB, and %s has buffers of %lld: take a "
                        "smaller grid, or backend cpu",
                        (long long)(view_bytes >> 20), limits->renderer, (long long)(limits->max_storage_bytes >> 20));
    }
    deposit->views_per_slab = room < images->num_views ? (int)room : images->num_views;
    deposit->num_slabs = (images->num_views + deposit->views_per_slab - 1) / deposit->views_per_slab;
    deposit->sums = lr_alloc(deposit->num_slabs, sizeof(*deposit->sums), "sums", log);
    if (deposit->sums == NULL) return LR_FAILED;
    for (int k = 0; k < deposit->num_slabs; k++) {
        const int left = images->num_views - k * deposit->views_per_slab;
        const int views = left < deposit->views_per_slab ? left : deposit->views_per_slab;
        deposit->sums[k] = gl_data_buffer(deposit->ctx, "sums of views", HEAD_WORDS * 4 + views * view_bytes, NULL);
        if (deposit->sums[k] == NULL) return LR_FAILED;
    }
    return deposit->program && deposit->block && deposit->crystals && deposit->borders && deposit->events &&
                   deposit->tallies
               ? LR_OK
               : LR_FAILED;
}

static void destroy(void *self)
{
    struct compute_deposit *deposit = self;
    if (deposit->ctx != NULL && gl_context_make_current_to_free(deposit->ctx)) {
        for (int k = 0; deposit->sums != NULL && k < deposit->num_slabs; k++) gl_buffer_destroy(deposit->sums[k]);
        gl_buffers_destroy(deposit->tallies, deposit->events, deposit->borders, deposit->crystals);
        gl_program_destroy(deposit->program);
        gl_context_release(deposit->ctx);
    }
    gl_context_destroy(deposit->ctx);
    lr_free_all(deposit->sums, deposit->block, deposit);
}

/* --- events --- */

static lr_status read_tallies(struct compute_deposit *deposit)
{
    uint32_t tallies[NUM_TALLIES];
    LR_TRY(gl_buffer_read(deposit->tallies, 0, sizeof(tallies), tallies));
    gl_buffer_clear(deposit->tallies, 0);
    deposit->blocks = 0;
    deposit->counts.deposited += tallies[LR_DEPOSIT_TALLY_DONE];
    deposit->counts.too_tilted += tallies[LR_DEPOSIT_TALLY_TILTED];
    deposit->counts.outside_grid += tallies[LR_DEPOSIT_TALLY_OUTSIDE];
    return LR_OK;
}

/* Deposits the events of the block, which may be partly filled. */
static lr_status send(struct compute_deposit *deposit)
{
    const lr_histo_images *images = deposit->params.images;
    struct deposit_pass uniforms = {
        .views = {deposit->params.set.azimuths, deposit->params.set.tilts, 0, deposit->views_per_slab},
        .scale = (float)SCALE,
        .parts = deposit->params.parts,
    };
    for (int k = 0; k < 3; k++) {
        uniforms.origin_mm[k] = images->grid.origin_mm[k];
        uniforms.voxel_mm[k] = images->grid.voxel_mm[k];
        uniforms.size[k] = images->grid.size[k];
    }
    uniforms.origin_mm[3] = deposit->params.bin_mm;
    uniforms.size[3] = (int32_t)deposit->filled;
    if (deposit->filled == 0) return LR_OK;
    LR_TRY(gl_buffer_upload(deposit->events, 0, deposit->filled * (int64_t)sizeof(*deposit->block), deposit->block));
    for (int slab = 0; slab < deposit->num_slabs; slab++) {
        uniforms.views[2] = slab * deposit->views_per_slab;
        uniforms.is_first = slab == 0;
        struct gl_pass pass = gl_pass_compute(deposit->program, &uniforms, sizeof(uniforms),
                                              (const int[3]){gl_divide_up(deposit->filled, LR_DIRECT_GROUP), 1, 1});
        gl_pass_bind(&pass, {LR_BIND_DEPOSIT_EVENTS, deposit->events}, {LR_BIND_DEPOSIT_CRYSTALS, deposit->crystals},
                     {LR_BIND_DEPOSIT_BORDERS, deposit->borders}, {LR_BIND_DEPOSIT_TALLIES, deposit->tallies},
                     {LR_BIND_DEPOSIT_SUMS, deposit->sums[slab]});
        LR_TRY(gl_pass_run(deposit->ctx, &pass));
    }

    deposit->filled = 0;
    return ++deposit->blocks == TALLIED_BLOCKS ? read_tallies(deposit) : LR_OK;
}

static lr_status take(void *self, const lr_event *events, int64_t count)
{
    struct compute_deposit *deposit = self;
    for (int64_t k = 0; k < count; k++) {
        const lr_event *event = &events[k];
        deposit->block[deposit->filled++] =
            (struct device_event){event->crystals[0], event->crystals[1], event->tof_mm, event->weight};
        if (deposit->filled == BLOCK_EVENTS) {
            LR_TRY(gl_context_make_current(deposit->ctx));
            const lr_status status = send(deposit);
            gl_context_release(deposit->ctx);
            LR_TRY(status);
        }
    }
    return LR_OK;
}

/* --- results --- */

static lr_status read_slab(struct compute_deposit *deposit, int slab, uint32_t *words)
{
    const lr_histo_images *images = deposit->params.images;
    const int64_t voxels = lr_grid_num_voxels(&images->grid);
    const int64_t total = deposit->sums[slab]->size_bytes / 4 - HEAD_WORDS;
    float *values = images->values + slab * deposit->views_per_slab * voxels;
    LR_TRY(gl_buffer_read(deposit->sums[slab], 0, 4, words));
    if (words[0] != 0) {
        return lr_error(deposit->params.log, LR_FAILED,
                        "a voxel has more than %g counts, which the device cannot sum: take backend cpu", 4 / SCALE);
    }
    for (int64_t at = 0; at < total; at += READ_WORDS) {
        const int64_t left = total - at, count = left < READ_WORDS ? left : READ_WORDS;
        LR_TRY(gl_buffer_read(deposit->sums[slab], (HEAD_WORDS + at) * 4, count * 4, words));
        for (int64_t k = 0; k < count; k += WORDS) {
            const uint64_t bits = words[k] | (uint64_t)words[k + 1] << 32;
            const bool is_negative = bits >> 63 != 0;
            const double size = (double)(is_negative ? ~bits + 1 : bits) * STEP;
            const double sum = is_negative ? -size : size;
            deposit->counts.weight += sum;
            values[(at + k) / WORDS] = (float)sum;
        }
    }
    return LR_OK;
}

static lr_status finish(void *self, lr_deposit_counts *counts)
{
    struct compute_deposit *deposit = self;
    uint32_t *words = NULL;
    LR_TRY(gl_context_make_current(deposit->ctx));
    lr_status status = send(deposit);
    if (status == LR_OK) status = read_tallies(deposit);
    if (status == LR_OK) {
        words = lr_alloc(READ_WORDS, sizeof(*words), "sums of views", deposit->params.log);
        status = words != NULL ? LR_OK : LR_FAILED;
        deposit->counts.weight = 0;
    }
    for (int slab = 0; status == LR_OK && slab < deposit->num_slabs; slab++) status = read_slab(deposit, slab, words);
    free(words);
    gl_context_release(deposit->ctx);
    *counts = deposit->counts;
    return status;
}

lr_status lr_deposit_compute_create(const struct lr_deposit_backend_params *params, struct lr_deposit_backend *backend)
{
    static const struct lr_deposit_backend_fns fns = {
        .name = "compute", .take = take, .finish = finish, .destroy = destroy};
    struct compute_deposit *deposit = lr_alloc(1, sizeof(*deposit), "a deposition", params->log);
    if (deposit == NULL) return LR_FAILED;
    deposit->params = *params;
    lr_status status =
        gl_context_open(&(struct gl_context_params){.device = params->device, .log = params->log}, &deposit->ctx);
    if (status == LR_OK) {
        status = init(deposit);
        gl_context_release(deposit->ctx);
    }
    if (status != LR_OK) {
        destroy(deposit);
        return status;
    }
    backend->fns = &fns;
    backend->self = deposit;
    snprintf(backend->device, sizeof(backend->device), "%s", gl_context_limits(deposit->ctx)->renderer);
    return LR_OK;
}
