/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The `compute` backend of the family `direct`: images, projection passes, projections of vectors, and updates. Vectors
 * at the backend's place are copied on the device to and from images with margins (shaders/direct/exchange.comp). */
#include "direct/compute/direct.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "gl/context.h"
#include "model/lors/selection.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOATS = 4, MOST_GROUPS = 32768 };

/* The uniform block of shaders/direct/direct.glsl. */
struct pass_uniforms {
    int32_t grid[4], margin[4], counts[4], extent[4];
};
_Static_assert(sizeof(struct pass_uniforms) == 64, "the shader's layout");

/* Makes an image of zeros. Images without margins cannot be projected. The context is current in this function and
 * those below, except in functions that make it current. errors: LR_FAILED. */
static lr_status image_init(struct lr_direct_image *image, const struct lr_direct_layout *layout, const char *label,
                            bool has_margins)
{
    int extent[3] = {layout->quads, layout->size[0], layout->size[1]}; /* texels along q, x and y */
    for (int k = 0; has_margins && k < 3; k++) extent[k] += 2 * layout->margin[k];
    *image = (struct lr_direct_image){.has_margins = has_margins};
    if (has_margins ? layout->buffers : layout->data_buffers) {
        const struct gl_limits *limits = gl_context_limits(layout->ctx);
        const int64_t bytes = (int64_t)extent[0] * extent[1] * extent[2] * FLOATS * (int64_t)sizeof(float);
        if (bytes > limits->max_storage_bytes) {
            return lr_error(layout->log, LR_FAILED,
                            "%s: %lld MiB are more than the %lld that a buffer of %s may have: keep "
                            "images in textures or take a smaller grid",
                            label, (long long)(bytes >> 20), (long long)(limits->max_storage_bytes >> 20),
                            limits->renderer);
        }
        image->buffer = gl_buffer_create(layout->ctx, &(struct gl_buffer_params){.label = label, .size_bytes = bytes});
        return image->buffer ? LR_OK : LR_FAILED;
    }

    image->texture = gl_texture_create(layout->ctx, &(struct gl_texture_params){.label = label,
                                                                                .target = GL_TEXTURE_3D,
                                                                                .format = GL_RGBA32F,
                                                                                .width = extent[0],
                                                                                .height = extent[1],
                                                                                .depth = extent[2]});
    return image->texture ? LR_OK : LR_FAILED;
}

static void image_finish(struct lr_direct_image *image)
{
    gl_texture_destroy(image->texture);
    gl_buffer_destroy(image->buffer);
    *image = (struct lr_direct_image){0};
}

bool lr_direct_image_exists(const struct lr_direct_image *image)
{
    return image->texture != NULL || image->buffer != NULL;
}

/* --- passes --- */

/* Bind an image to a pass. A source is read. A target is read and written. */
static void bind_source(struct gl_pass *pass, const struct lr_direct_image *image)
{
    pass->textures[LR_UNIT_DIRECT_SOURCE] = image->texture;
    pass->buffers[LR_BIND_DIRECT_SOURCE].buffer = image->buffer;
}

static void bind_target(struct gl_pass *pass, const struct lr_direct_image *image)
{
    pass->images[LR_IMAGE_DIRECT_TARGET] = (struct gl_image){.texture = image->texture};
    pass->buffers[LR_BIND_DIRECT_TARGET].buffer = image->buffer;
}

/* The barriers of passes that write images. */
static const GLbitfield image_barriers = GL_TEXTURE_FETCH_BARRIER_BIT | GL_TEXTURE_UPDATE_BARRIER_BIT |
                                         GL_SHADER_IMAGE_ACCESS_BARRIER_BIT | GL_SHADER_STORAGE_BARRIER_BIT |
                                         GL_BUFFER_UPDATE_BARRIER_BIT;

/* --- projections --- */

/* Sets grid, margin and extent of the uniforms; margin[3] and counts are 0. */
static struct pass_uniforms pass_of(const struct lr_direct_compute *compute)
{
    const struct lr_direct_layout *layout = &compute->layout;
    const int *size = layout->size, *margin = layout->margin;
    return (struct pass_uniforms){
        .grid = {size[0], size[1], size[2], layout->quads},
        .margin = {margin[0], margin[1], margin[2], 0},
        .extent = {layout->quads + 2 * margin[0], size[0] + 2 * margin[1], size[1] + 2 * margin[2], 0},
    };
}

/* Finds the number of workgroups in two dimensions for a number of threads. */
static void set_groups(int64_t threads, int groups[3])
{
    const int64_t count = (threads + LR_DIRECT_GROUP - 1) / LR_DIRECT_GROUP;
    groups[0] = (int)(count < MOST_GROUPS ? count : MOST_GROUPS);
    groups[1] = (int)((count + MOST_GROUPS - 1) / MOST_GROUPS);
    groups[2] = 1;
}

/* Starts a program of these passes. defines: at most two names, and a NULL after the last; NULL = no defines. */
static struct gl_program *start_program(const struct lr_direct_compute *compute, const char *name,
                                        const char *const *defines, bool has_buffers)
{
    struct gl_define all[4] = {{0}};
    int next = 0;
    for (int k = 0; defines != NULL && defines[k] != NULL; k++) all[next++].name = defines[k];
    all[next].name = has_buffers ? "BUFFERS" : NULL;
    return gl_program_start(compute->ctx, &(struct gl_program_params){.compute = name, .defines = all, .label = name});
}

/* Returns the program of a projection. The first call starts to build the program. errors: NULL, logged. */
static struct gl_program *open_program(struct lr_direct_compute *compute, bool forward)
{
    struct gl_program **program = forward ? &compute->forward : &compute->back;
    if (*program == NULL)
        *program =
            start_program(compute, forward ? "direct/forward.comp" : "direct/back.comp", NULL, compute->layout.buffers);
    return *program;
}

/* Computes target = K source, or target = K^T source. Source and target must differ. */
static lr_status run(struct lr_direct_compute *compute, bool forward, int view, const struct lr_direct_image *source,
                     const struct lr_direct_image *target)
{
    if (compute->functions != NULL) return compute->functions->run(compute->self, forward, view, source, target);
    struct gl_program *program = open_program(compute, forward);
    const struct lr_direct_view_tables *tables = program != NULL ? lr_direct_open_tables(compute, view) : NULL;
    if (tables == NULL) return LR_FAILED;
    if (gl_context_limits(compute->ctx)->software && tables->num_steps > GL_MOST_ROUNDS_SOFTWARE)
        return lr_error(compute->params.log, LR_USAGE,
                        "a kernel of %d voxels is too long for the software renderer, which ends a "
                        "shader's loops after 65,535 rounds: use backend cpu, a graphics processor, "
                        "larger voxels or a smaller support",
                        tables->num_offsets);

    /* A thread does all steps of the gather for one block of outputs. */
    const int *size = compute->params.grid.size;
    const int64_t quads = (compute->layout.quads + LR_DIRECT_QUADS - 1) / LR_DIRECT_QUADS;
    const int64_t blocks = (size[tables->axis] + LR_DIRECT_OUTPUTS - 1) / LR_DIRECT_OUTPUTS;

    struct pass_uniforms uniforms = pass_of(compute);
    uniforms.margin[3] = tables->axis;
    uniforms.counts[0] = tables->num_steps;
    uniforms.counts[1] = tables->num_offsets;
    uniforms.counts[2] = tables->num_rows;
    struct gl_pass pass = {
        .label = forward ? "DIRECT forward" : "DIRECT back",
        .program = program,
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .barriers = compute->is_unordered ? 0 : image_barriers,
    };
    set_groups(quads * blocks * size[1 - tables->axis], pass.groups);
    gl_pass_bind(&pass, {LR_BIND_DIRECT_STEPS, tables->steps}, {LR_BIND_DIRECT_VALUES, tables->values});
    bind_source(&pass, source);
    pass.textures[LR_UNIT_DIRECT_MAP] = tables->map;
    bind_target(&pass, target);
    return gl_pass_run(compute->ctx, &pass);
}

lr_status lr_direct_run_task(struct lr_direct_compute *compute, const lr_direct_task *task,
                             const struct lr_direct_image *source, const struct lr_direct_image *target,
                             double *device_seconds)
{
    if (compute->functions != NULL)
        return compute->functions->time(compute->self, task, source, target, device_seconds);
    gl_stopwatch_reset(compute->watch);
    gl_stopwatch_begin(compute->watch);
    lr_status status = LR_OK;
    for (int k = 0; status == LR_OK && k < task->num_views; k++)
        status = run(compute, task->work == LR_DIRECT_WORK_FORWARD, task->views[k], source, target);
    gl_stopwatch_end(compute->watch);
    *device_seconds = gl_stopwatch_seconds(compute->watch);
    return status;
}

/* --- the clock of projections, which waits for the device only when it is read --- */

/* Marks the beginning or the end of a timed interval. compute->functions measure the interval if they exist; otherwise
 * the stopwatch measures it. */
static void mark_lap(struct lr_direct_compute *compute, struct gl_stopwatch *watch, bool ends)
{
    if (compute->functions != NULL)
        compute->functions->mark_lap(compute->self, ends);
    else if (ends)
        gl_stopwatch_end(watch);
    else
        gl_stopwatch_begin(watch);
}

/* Returns the device time of all projections by run_view since the last call of read_laps, s. Waits for the device. */
static double read_laps(struct lr_direct_compute *compute)
{
    if (!compute->has_laps) return 0.0;
    compute->has_laps = false;
    if (compute->functions != NULL) return compute->functions->read_laps(compute->self);
    const double seconds = gl_stopwatch_seconds(compute->watch);
    gl_stopwatch_reset(compute->watch);
    return seconds;
}

/* Projects a view from compute->in to compute->out and measures the time. Does not wait for the device. */
static lr_status run_view(struct lr_direct_compute *compute, bool forward, int view)
{
    const bool is_ready = compute->functions != NULL ||
                          (open_program(compute, forward) != NULL && lr_direct_open_tables(compute, view) != NULL);
    LR_TRY(is_ready ? LR_OK : LR_FAILED);
    mark_lap(compute, compute->watch, false);
    compute->has_laps = true;

    const lr_status status = run(compute, forward, view, &compute->in, &compute->out);
    mark_lap(compute, compute->watch, true);
    return status;
}

/* --- between an image and a vector at the place --- */

enum direction { TO_IMAGE = 0, TO_VECTOR, TO_SUM };

/* A copy between an image and a vector. The direction TO_SUM adds the image to the vector if `adds` is set; otherwise
 * it sets the vector to the image. */
struct copy {
    enum direction direction;
    bool adds;
    const struct lr_direct_image *image;
    const lr_vector *vector;
};

static lr_status exchange(struct lr_direct_compute *compute, const struct copy *copy)
{
    static const char *const defines[3][2] = {[TO_IMAGE] = {"TO_IMAGE"}, [TO_SUM] = {"TO_SUM"}};
    const bool is_buffer = copy->image->buffer != NULL;
    struct gl_program **program = &compute->exchange.programs[copy->direction][is_buffer];
    if (*program == NULL)
        *program = start_program(compute, "direct/exchange.comp", defines[copy->direction], is_buffer);
    struct pass_uniforms uniforms = pass_of(compute);
    if (!copy->image->has_margins) {
        for (int k = 0; k < 3; k++) {
            uniforms.extent[k] -= 2 * uniforms.margin[k];
            uniforms.margin[k] = 0;
        }
    }
    struct gl_pass pass = {.label = "DIRECT exchange",
                           .program = *program,
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .barriers = image_barriers};
    LR_TRY(pass.program != NULL ? LR_OK : LR_FAILED);
    if (compute->functions != NULL) LR_TRY(compute->functions->give_back(compute->self, copy->image));
    const int *grid = uniforms.grid;
    set_groups((int64_t)grid[0] * grid[1] * grid[3], pass.groups);
    const struct lr_vector_range range = lr_vector_gl_range(copy->vector);
    int64_t first;
    pass.buffers[LR_BIND_DIRECT_VECTOR] =
        gl_range_of(range.buffer, (const int64_t[2]){range.offset, range.offset + range.bytes},
                    lr_vector_size(copy->vector), &first);
    uniforms.counts[0] = (int32_t)first;
    uniforms.counts[1] = copy->adds;
    if (copy->direction == TO_IMAGE)
        bind_target(&pass, copy->image);
    else
        bind_source(&pass, copy->image);
    return gl_pass_run(compute->ctx, &pass);
}

static lr_status open_vector(const struct lr_direct_compute *compute, const char *name, lr_precision precision,
                             lr_vector *vector)
{
    return vector->storage != NULL ? LR_OK
                                   : lr_vector_create(&(lr_vector_params){.place = compute->place,
                                                                          .count = compute->views.num_voxels,
                                                                          .precision = precision,
                                                                          .name = name,
                                                                          .log = compute->params.log},
                                                      vector);
}

lr_status lr_direct_copy(struct lr_direct_compute *compute, const struct lr_direct_image *image,
                         const lr_vector *vector, bool to_image)
{
    struct copy copy = {to_image ? TO_IMAGE : TO_VECTOR, false, image, vector};
    if (vector->values == NULL) return exchange(compute, &copy);
    /* The numbers of a vector on the host are copied through a vector at the place. */
    lr_vector *there = &compute->exchange.there;
    copy.vector = there;
    LR_TRY(open_vector(compute, "numbers of the host", LR_FLOAT32, there));
    LR_TRY(to_image ? lr_vector_copy(vector, there) : LR_OK);
    LR_TRY(exchange(compute, &copy));
    lr_vector target = *vector;
    return to_image ? LR_OK : lr_vector_copy(there, &target);
}

/* --- projections of whole views --- */

static lr_status forward_views(struct lr_direct_compute *compute, const lr_selection *part, const lr_vector *image,
                               lr_vector *values)
{
    const bool is_all = lr_selection_is_all(part);
    const int count = is_all ? compute->params.num_views : (int)part->num_pairs;
    LR_TRY(lr_direct_copy(compute, &compute->in, image, true));
    for (int k = 0; k < count; k++) {
        const lr_vector histo = lr_vector_part(values, k * compute->views.num_voxels, compute->views.num_voxels);
        LR_TRY(lr_progress_report(compute->params.progress, "projecting", k, count));
        LR_TRY(run_view(compute, true, is_all ? k : part->pairs[k]));
        LR_TRY(lr_direct_copy(compute, &compute->out, &histo, false));
    }
    return LR_OK;
}

/* Projects values back. values: NULL = ones. */
static lr_status back_views(struct lr_direct_compute *compute, const lr_selection *part, const lr_vector *values,
                            lr_vector *image)
{
    lr_vector *ones = &compute->exchange.ones, *sum = &compute->exchange.sum;
    const bool is_all = lr_selection_is_all(part);
    const int count = is_all ? compute->params.num_views : (int)part->num_pairs;
    for (int k = 0; k < count; k++) {
        LR_TRY(lr_progress_report(compute->params.progress, "projecting back", k, count));
        if (values != NULL) {
            const lr_vector histo = lr_vector_part(values, k * compute->views.num_voxels, compute->views.num_voxels);
            LR_TRY(lr_direct_copy(compute, &compute->in, &histo, true));
        } else if (k == 0) {
            LR_TRY(open_vector(compute, "a histo-image of ones", LR_FLOAT32, ones));
            LR_TRY(lr_vector_fill(ones, 1.0));
            LR_TRY(lr_direct_copy(compute, &compute->in, ones, true));
        }
        LR_TRY(run_view(compute, false, is_all ? k : part->pairs[k]));

        /* The image is the result of one view, or the sum over several views in double. */
        if (count == 1) return lr_direct_copy(compute, &compute->out, image, false);
        LR_TRY(open_vector(compute, "a sum of back-projections", LR_FLOAT64, sum));
        LR_TRY(exchange(compute, &(struct copy){TO_SUM, k > 0, &compute->out, sum}));
    }
    return count > 0 ? lr_vector_copy(sum, image) : LR_OK;
}

/* A projection to or from a list of single voxels of the histo-images. Image and values are vectors on the host. */
struct listed {
    struct lr_direct_compute *compute;
    bool is_forward;
    const lr_selection *part;
};

static lr_status project_listed(void *self, const lr_vector *in, lr_vector *out)
{
    const struct listed *listed = self;
    return lr_direct_views_project(&listed->compute->views, listed->is_forward, listed->part, in, out);
}

static lr_status project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in, lr_vector *out)
{
    struct lr_direct_compute *compute = self;
    struct listed listed = {compute, is_forward, part};
    const struct lr_vector_work on_host = {
        {.name = "values of single voxels", .log = compute->params.log}, project_listed, &listed};
    LR_TRY(gl_context_make_current(compute->ctx));
    (void)read_laps(compute); /* discards the time of earlier projections */
    compute->device_seconds = 0;
    const lr_status status = part != NULL && part->lors != NULL ? lr_vector_work_at(&on_host, in, out)
                             : is_forward                       ? forward_views(compute, part, in, out)
                                                                : back_views(compute, part, in, out);
    return gl_context_leave(compute->ctx, status);
}

/* --- updates run on the device: data, image and intermediate results stay there --- */

/* The numbers of the views of a subset. */
struct block {
    int *views; /* owned [num_views] */
    int num_views;
    struct lr_direct_image sensitivity; /* for EM; made at its first use */
};

struct lr_direct_resident {
    struct lr_direct_view_data *views; /* [num_views] */
    struct block *blocks;              /* owned [num_blocks], one per subset; NULL = no subsets */
    int num_blocks;
    bool is_ramla; /* true = RAMLA; false = EM, whose sensitivities are kept */
    struct lr_direct_image image, histo, back;
    struct lr_direct_image sum; /* back-projection of a block of several views */
    /* The members below are NULL if other functions replace the OpenGL passes. */
    struct gl_program *discrepancy[4]; /* index: bit 0 = has an additive term, bit 1 = has factors */
    struct gl_program *combine;
    struct gl_stopwatch *watch;
};

static void destroy_data(struct lr_direct_compute *compute)
{
    struct lr_direct_resident *resident = compute->resident;
    for (int k = 0; resident->blocks != NULL && k < resident->num_blocks; k++) {
        image_finish(&resident->blocks[k].sensitivity);
        free(resident->blocks[k].views);
    }
    free(resident->blocks);
    resident->blocks = NULL;
    for (int k = 0; resident->views != NULL && k < compute->params.num_views; k++) {
        image_finish(&resident->views[k].counts);
        image_finish(&resident->views[k].additive);
        image_finish(&resident->views[k].factors);
    }
    image_finish(&resident->sum);
}

static void resident_destroy(struct lr_direct_compute *compute)
{
    struct lr_direct_resident *resident = compute->resident;
    if (resident == NULL) return;
    destroy_data(compute);
    for (int k = 0; k < 4; k++) gl_program_destroy(resident->discrepancy[k]);
    gl_program_destroy(resident->combine);
    image_finish(&resident->back);
    image_finish(&resident->histo);
    image_finish(&resident->image);
    gl_stopwatch_destroy(resident->watch);
    lr_free_all(resident->views, resident);
    compute->resident = NULL;
}

static lr_status open_resident(struct lr_direct_compute *compute)
{
    const lr_log *log = compute->params.log;
    if (compute->resident != NULL) return LR_OK;
    struct lr_direct_resident *resident = compute->resident = lr_alloc(1, sizeof(*resident), "updates", log);
    if (resident == NULL) return LR_FAILED;
    resident->views = lr_alloc(compute->params.num_views, sizeof(*resident->views), "histo-images", log);
    lr_status status = resident->views != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) status = image_init(&resident->image, &compute->layout, "image", true);
    if (status == LR_OK) status = image_init(&resident->histo, &compute->layout, "estimate of a view", true);
    if (status == LR_OK) status = image_init(&resident->back, &compute->layout, "correction of a view", true);
    if (status == LR_OK && compute->functions == NULL)
        resident->watch = gl_stopwatch_create(compute->ctx, "DIRECT updates");
    if (status != LR_OK) resident_destroy(compute);
    return status;
}

/* --- data in and out --- */

static lr_status open_updates(void *self, const struct lr_update_plan *plan, bool *has_room)
{
    struct lr_direct_compute *compute = self;
    const double room = (double)lr_place_budget(compute->place, 0, 2);
    double bytes[2];
    /* bytes[0]: size of an image with margins; bytes[1]: size of an image without margins. */
    bytes[0] = bytes[1] = 4 * sizeof(float);
    const int inner[3] = {compute->layout.quads, compute->layout.size[0], compute->layout.size[1]};
    for (int k = 0; k < 3; k++) {
        bytes[0] *= inner[k] + 2 * compute->layout.margin[k];
        bytes[1] *= inner[k];
    }

    const int data = 1 + plan->has_additive + plan->has_factors;
    const int kept = plan->algorithm == LR_ALGORITHM_RAMLA ? 0 : plan->num_subsets;
    *has_room = bytes[0] * kept + bytes[1] * data * compute->params.num_views <= room;

    if (!*has_room) return LR_OK;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = open_resident(compute);
    struct lr_direct_resident *resident = compute->resident;
    if (status == LR_OK) {
        destroy_data(compute);
        resident->is_ramla = plan->algorithm == LR_ALGORITHM_RAMLA;
        resident->num_blocks = plan->num_subsets;
        resident->blocks =
            lr_alloc(plan->num_subsets, sizeof(*resident->blocks), "subsets of views", compute->params.log);
    }
    gl_context_release(compute->ctx);
    if (status == LR_OK && resident->blocks == NULL) return LR_FAILED;
    return status;
}

static void close_updates(void *self)
{
    struct lr_direct_compute *compute = self;
    if (compute->resident != NULL && gl_context_make_current_to_free(compute->ctx)) {
        destroy_data(compute);
        gl_context_release(compute->ctx);
    }
}

static lr_status load(void *self, int subset, const struct lr_update_data *data)
{
    struct lr_direct_compute *compute = self;
    struct block *block = &compute->resident->blocks[subset];
    const bool is_all = lr_selection_is_all(data->part);
    const int count = is_all ? compute->params.num_views : (int)data->part->num_pairs;
    free(block->views);
    block->num_views = count;
    block->views = lr_alloc(count, sizeof(*block->views), "views", compute->params.log);
    if (block->views == NULL) return LR_FAILED;
    for (int k = 0; k < count; k++) block->views[k] = is_all ? k : data->part->pairs[k];
    LR_TRY(gl_context_make_current(compute->ctx));
    image_finish(&block->sensitivity);
    lr_status status = LR_OK;
    for (int k = 0; status == LR_OK && k < count; k++) {
        struct lr_direct_view_data *view = &compute->resident->views[block->views[k]];
        const struct {
            const char *label;
            const lr_vector *values; /* NULL = the data have no such values */
            struct lr_direct_image *image;
        } loads[] = {{"counts", data->measured, &view->counts},
                     {"additive term", data->additive, &view->additive},
                     {"factors", data->factors, &view->factors}};
        for (int n = 0; n < 3; n++) image_finish(loads[n].image);
        for (int n = 0; status == LR_OK && n < 3; n++) {
            if (loads[n].values == NULL) continue;
            const lr_vector histo =
                lr_vector_part(loads[n].values, k * compute->views.num_voxels, compute->views.num_voxels);
            status = image_init(loads[n].image, &compute->layout, loads[n].label, false);
            if (status == LR_OK) status = lr_direct_copy(compute, loads[n].image, &histo, true);
        }
    }
    gl_context_release(compute->ctx);
    return status;
}

static lr_status set_image(void *self, const lr_vector *image)
{
    struct lr_direct_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    lr_status status = open_resident(compute);
    if (status == LR_OK && compute->functions == NULL) {
        /* The driver builds both programs in parallel. The function waits for both programs here, so that this wait is
         * not part of any measured time. */
        struct gl_program *forward = open_program(compute, true);
        struct gl_program *back = open_program(compute, false);
        status = forward != NULL && back != NULL ? gl_program_wait(forward) : LR_FAILED;
        if (status == LR_OK) status = gl_program_wait(back);
    }
    if (status == LR_OK) status = lr_direct_copy(compute, &compute->resident->image, image, true);
    gl_context_release(compute->ctx);
    return status;
}

static lr_status get_image(void *self, lr_vector *image)
{
    struct lr_direct_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = lr_direct_copy(compute, &compute->resident->image, image, false);
    gl_context_release(compute->ctx);
    return status;
}

/* --- updates --- */

/* Describes a pass over all texels of an image. */
static struct gl_pass texel_pass(const struct pass_uniforms *uniforms, const struct lr_direct_image *target)
{
    struct gl_pass pass = {
        .uniforms = uniforms,
        .uniform_bytes = sizeof(*uniforms),
        .barriers = image_barriers,
    };
    const int *grid = uniforms->grid;
    set_groups((int64_t)grid[0] * grid[1] * grid[3], pass.groups);
    bind_target(&pass, target);
    return pass;
}

/* Replaces the estimate of a view in resident->histo by the values to be back-projected. */
static lr_status find_discrepancy(struct lr_direct_compute *compute, int view, int what)
{
    struct lr_direct_resident *resident = compute->resident;
    const struct lr_direct_view_data *data = &resident->views[view];
    if (compute->functions != NULL) return compute->functions->discrepancy(compute->self, what, data, &resident->histo);
    struct pass_uniforms uniforms = pass_of(compute);
    uniforms.counts[0] = what;
    struct gl_pass pass = texel_pass(&uniforms, &resident->histo);
    pass.label = "DIRECT discrepancy";
    const int which = (data->additive.texture ? 1 : 0) + (data->factors.texture ? 2 : 0);
    static const char *const defines[4][3] = {
        {NULL}, {"ADDITIVE", NULL}, {"FACTORS", NULL}, {"ADDITIVE", "FACTORS", NULL}};
    struct gl_program **program = &compute->resident->discrepancy[which];
    if (*program == NULL)
        *program = start_program(compute, "direct/discrepancy.comp", defines[which], compute->layout.buffers);
    pass.program = *program;

    pass.textures[LR_UNIT_DIRECT_COUNTS] = data->counts.texture;
    pass.textures[LR_UNIT_DIRECT_ADDITIVE] = data->additive.texture;
    pass.textures[LR_UNIT_DIRECT_FACTORS] = data->factors.texture;
    return pass.program ? gl_pass_run(compute->ctx, &pass) : LR_FAILED;
}

static lr_status combine(struct lr_direct_compute *compute, const struct lr_direct_image *image,
                         const struct lr_direct_change *change)
{
    if (compute->functions != NULL) return compute->functions->change(compute->self, change, image);
    struct pass_uniforms uniforms = pass_of(compute);
    uniforms.counts[0] = change->what;
    memcpy(&uniforms.counts[1], &change->lambda, sizeof(change->lambda));
    struct gl_pass pass = texel_pass(&uniforms, image);
    pass.label = "DIRECT update";
    if (compute->resident->combine == NULL)
        compute->resident->combine = start_program(compute, "direct/combine.comp", NULL, compute->layout.buffers);
    pass.program = compute->resident->combine;
    bind_source(&pass, change->by);
    if (change->sensitivity != NULL) {
        pass.textures[LR_UNIT_DIRECT_FACTORS] = change->sensitivity->texture;
        pass.buffers[LR_BIND_DIRECT_SENSITIVITY].buffer = change->sensitivity->buffer;
    }
    return pass.program != NULL ? gl_pass_run(compute->ctx, &pass) : LR_FAILED;
}

/* Makes an image for updates if it does not exist yet. */
static lr_status open_image(struct lr_direct_compute *compute, const char *label, struct lr_direct_image *image)
{
    if (lr_direct_image_exists(image)) return LR_OK;
    LR_TRY(gl_context_make_current(compute->ctx));
    const lr_status status = image_init(image, &compute->layout, label, true);
    gl_context_release(compute->ctx);
    return status;
}

/* Computes sum = K^T histo for the first view of a block, and sum += K^T histo for the other views. */
static lr_status add_back(struct lr_direct_compute *compute, bool is_first, int view, const struct lr_direct_image *sum)
{
    const struct lr_direct_image *histo = &compute->resident->histo;
    const struct lr_direct_image *back = &compute->resident->back;
    LR_TRY(run(compute, false, view, histo, is_first ? sum : back));
    return is_first ? LR_OK : combine(compute, sum, &(struct lr_direct_change){.what = LR_DIRECT_DO_ADD, .by = back});
}

static lr_status add_up_sensitivity(struct lr_direct_compute *compute, const struct block *block,
                                    struct lr_direct_image *sum)
{
    LR_TRY(open_image(compute, "sensitivity", sum));
    for (int k = 0; k < block->num_views; k++) {
        LR_TRY(find_discrepancy(compute, block->views[k], LR_DIRECT_DO_SENSITIVITY));
        LR_TRY(add_back(compute, k == 0, block->views[k], sum));
    }
    return LR_OK;
}

static lr_status update(struct lr_direct_compute *compute, const struct lr_update *update)
{
    struct lr_direct_resident *resident = compute->resident;
    struct block *block = &resident->blocks[update->subset];
    struct lr_direct_image *sum = block->num_views > 1 ? &resident->sum : &resident->back;
    const bool is_ramla = resident->is_ramla;
    const struct lr_direct_change change = {
        .what = is_ramla ? LR_DIRECT_DO_RAMLA : LR_DIRECT_DO_EM,
        .lambda = (float)update->lambda,
        .by = sum,
        .sensitivity = is_ramla ? NULL : &block->sensitivity,
    };
    if (!is_ramla && !lr_direct_image_exists(&block->sensitivity))
        LR_TRY(add_up_sensitivity(compute, block, &block->sensitivity));
    LR_TRY(open_image(compute, "corrections of a block", sum));
    for (int k = 0; k < block->num_views; k++) {
        const int view = block->views[k];
        LR_TRY(run(compute, true, view, &resident->image, &resident->histo));
        LR_TRY(find_discrepancy(compute, view, change.what));
        LR_TRY(add_back(compute, k == 0, view, sum));
    }
    return combine(compute, &resident->image, &change);
}

/* Functions that replace the OpenGL passes make the context current themselves when they need it. Making it current in
 * every update would take too long. */
static lr_status run_update(void *self, const struct lr_update *next)
{
    struct lr_direct_compute *compute = self;
    struct gl_stopwatch *watch = compute->resident->watch;
    if (compute->functions == NULL) LR_TRY(gl_context_make_current(compute->ctx));
    mark_lap(compute, watch, false);
    const lr_status status = update(compute, next);
    mark_lap(compute, watch, true);
    if (compute->functions == NULL) gl_context_release(compute->ctx);
    return status;
}

static lr_status find_sensitivity(void *self, int subset, lr_vector *image)
{
    struct lr_direct_compute *compute = self;
    struct lr_direct_resident *resident = compute->resident;
    struct block *block = &resident->blocks[subset];
    LR_TRY(gl_context_make_current(compute->ctx));
    struct lr_direct_image *sum = resident->is_ramla ? &resident->sum : &block->sensitivity;
    lr_status status = LR_OK;
    if (resident->is_ramla || !lr_direct_image_exists(sum)) status = add_up_sensitivity(compute, block, sum);
    if (status == LR_OK) status = lr_direct_copy(compute, sum, image, false);
    gl_context_release(compute->ctx);
    return status;
}

static double read_seconds(void *self)
{
    struct lr_direct_compute *compute = self;
    double seconds = 0;
    if (compute->functions != NULL) return compute->functions->read_laps(compute->self);
    if (compute->resident != NULL && gl_context_make_current_to_free(compute->ctx)) {
        seconds = gl_stopwatch_seconds(compute->resident->watch);
        gl_stopwatch_reset(compute->resident->watch);
        gl_context_release(compute->ctx);
    }
    return seconds;
}

static const struct lr_backend_updates updates = {
    .open = open_updates,
    .load = load,
    .sensitivity = find_sensitivity,
    .set_image = set_image,
    .get_image = get_image,
    .run = run_update,
    .seconds = read_seconds,
    .close = close_updates,
};

/* --- timing --- */

static lr_status time_task(void *self, const lr_direct_task *task, double *device_seconds)
{
    struct lr_direct_compute *compute = self;
    struct lr_direct_resident *resident = compute->resident;
    lr_status status = LR_OK;
    LR_TRY(gl_context_make_current(compute->ctx));
    if (task->work == LR_DIRECT_WORK_READING) {
        lr_vector values;
        status = lr_vector_create(
            &(lr_vector_params){.count = compute->views.num_voxels, .name = "an image", .log = compute->params.log},
            &values);
        if (status == LR_OK) status = lr_direct_copy(compute, &resident->image, &values, false);
        lr_vector_destroy(&values);
    } else if (task->work != LR_DIRECT_WORK_TABLES) {
        compute->is_unordered = true;
        status = lr_direct_run_task(compute, task, &resident->image, &resident->histo, device_seconds);
        compute->is_unordered = false;
    } else if (compute->functions != NULL) {
        status = compute->functions->tables(compute->self, task, device_seconds);
    } else {
        gl_stopwatch_reset(compute->watch);
        gl_stopwatch_begin(compute->watch);
        for (int k = 0; status == LR_OK && k < task->num_views; k++) {
            lr_direct_drop_tables(compute, task->views[k]);
            status = lr_direct_open_tables(compute, task->views[k]) ? LR_OK : LR_FAILED;
        }
        gl_stopwatch_end(compute->watch);
        *device_seconds = gl_stopwatch_seconds(compute->watch);
    }
    if (status == LR_OK && task->work != LR_DIRECT_WORK_READING) status = gl_context_check(compute->ctx, "timing");
    gl_context_release(compute->ctx);
    return status;
}

/* --- the backend --- */

/* Projects one view between arrays on the host, for struct lr_direct_views. */
static lr_status direct_project(void *self, const struct lr_direct_projection *projection)
{
    struct lr_direct_compute *compute = self;
    LR_TRY(gl_context_make_current(compute->ctx));
    const int64_t voxels = compute->views.num_voxels;
    const lr_vector in = lr_vector_of_floats(projection->in, voxels);
    const lr_vector out = lr_vector_of_floats(projection->out, voxels);
    lr_status status = LR_OK;
    if (!projection->is_same) status = lr_direct_copy(compute, &compute->in, &in, true);
    if (status == LR_OK) status = run_view(compute, projection->is_forward, projection->view);
    if (status == LR_OK) status = lr_direct_copy(compute, &compute->out, &out, false);
    gl_context_release(compute->ctx);
    return status;
}

static lr_status rows(void *self, const struct lr_rows *request, const lr_row_sink *sink)
{
    return lr_direct_views_rows(&((struct lr_direct_compute *)self)->views, request, sink);
}

static double device_seconds(void *self)
{
    struct lr_direct_compute *compute = self;
    if (compute->has_laps && gl_context_make_current_to_free(compute->ctx)) {
        compute->device_seconds += read_laps(compute);
        gl_context_release(compute->ctx);
    }
    return compute->device_seconds;
}

static lr_status init(struct lr_direct_compute *compute)
{
    const struct lr_direct_backend_params *params = &compute->params;
    compute->borrowed_view = -1;
    compute->views = (struct lr_direct_views){.params = &compute->params, .project = direct_project, .self = compute};
    LR_TRY(lr_direct_views_init(&compute->views));

    struct lr_direct_layout *layout = &compute->layout;
    *layout = (struct lr_direct_layout){
        .ctx = compute->ctx,
        .log = params->log,
        .size = {params->grid.size[0], params->grid.size[1], params->grid.size[2]},
        .quads = (params->grid.size[2] + FLOATS - 1) / FLOATS,
        .buffers = params->storage == LR_DIRECT_BUFFERS,
    };
    layout->data_buffers = layout->buffers && compute->functions != NULL;

    /* A gather reads this far beyond the grid. The distance is rounded up to whole blocks of outputs and whole
     * quads. */
    for (int view = 0; view < params->num_views; view++) {
        struct lr_direct_shape shape;
        LR_TRY(lr_direct_shape_init(&shape, &(lr_direct_tables_params){.grid = &params->grid,
                                                                       .view = params->views[view],
                                                                       .kernel = params->kernel,
                                                                       .log = params->log}));
        const int *half = shape.info.half;
        int reach[3] = {half[2] / FLOATS + 1 + LR_DIRECT_QUADS, half[0] + LR_DIRECT_OUTPUTS - 1,
                        half[1] + LR_DIRECT_OUTPUTS - 1};
        if (compute->functions != NULL) compute->functions->margins(&shape, reach);
        for (int k = 0; k < 3; k++) layout->margin[k] = reach[k] > layout->margin[k] ? reach[k] : layout->margin[k];
        lr_direct_shape_finish(&shape);
    }

    LR_TRY(image_init(&compute->in, layout, "input of a projection", true));
    LR_TRY(image_init(&compute->out, layout, "output of a projection", true));
    compute->tables = lr_alloc(params->num_views, sizeof(*compute->tables), "look-up tables", params->log);
    compute->watch = gl_stopwatch_create(compute->ctx, "DIRECT");
    if (!compute->tables || !compute->watch) return LR_FAILED;
    compute->self = compute->functions != NULL ? compute->functions->create(compute) : NULL;
    return compute->functions == NULL || compute->self != NULL ? LR_OK : LR_NO_DEVICE;
}

static void destroy(void *self)
{
    struct lr_direct_compute *compute = self;
    if (compute->ctx != NULL && gl_context_make_current_to_free(compute->ctx)) {
        resident_destroy(compute);
        lr_vector_destroy(&compute->exchange.ones);
        lr_vector_destroy(&compute->exchange.sum);
        lr_vector_destroy(&compute->exchange.there);
        for (int k = 0; k < 6; k++) gl_program_destroy(compute->exchange.programs[k / 2][k % 2]);
        if (compute->self != NULL) compute->functions->destroy(compute->self);
        gl_stopwatch_destroy(compute->watch);
        lr_direct_close_tables(compute);
        image_finish(&compute->out);
        image_finish(&compute->in);
        gl_program_destroy(compute->back);
        gl_program_destroy(compute->forward);
        gl_context_release(compute->ctx);
    }
    lr_place_silence(compute->place); /* vectors may keep the place open after the log has ended */
    lr_place_close(compute->place);
    lr_direct_views_finish(&compute->views);
    free(compute);
}

static lr_status find_attributes(void *self, lr_direct_attributes *attributes)
{
    const struct lr_direct_compute *compute = self;
    return compute->functions->attributes(compute->self, attributes);
}

static const struct lr_backend_fns compute_fns = {
    .name = "compute",
    .has_parts = true,
    .project = project,
    .rows = rows,
    .device_seconds = device_seconds,
    .updates = &updates,
    .time = time_task,
    .destroy = destroy,
};

lr_status lr_direct_compute_create_with(const struct lr_direct_backend_params *params,
                                        const struct lr_direct_functions *functions, struct lr_backend *backend)
{
    struct lr_direct_compute *compute = lr_alloc(1, sizeof(*compute), "the compute backend", params->log);
    if (compute == NULL) return LR_FAILED;
    compute->params = *params;
    compute->functions = functions;
    compute->fns = compute_fns;
    if (functions != NULL) compute->fns.name = functions->name;
    if (functions != NULL && functions->attributes != NULL) compute->fns.attributes = find_attributes;
    lr_status status = lr_place_open_on(
        &(lr_place_params){.kind = LR_PLACE_GL, .device = params->device, .shared = params->shared, .log = params->log},
        &compute->place);
    if (status == LR_OK) {
        compute->ctx = compute->place->ctx;
        status = gl_context_make_current(compute->ctx);
    }
    if (status == LR_OK) {
        status = init(compute);
        status = gl_context_leave(compute->ctx, status);
    }
    if (status != LR_OK) {
        destroy(compute);
        return status;
    }
    *backend = (struct lr_backend){.fns = &compute->fns, .self = compute, .place = compute->place};
    snprintf(backend->device, sizeof(backend->device), "%s", gl_context_limits(compute->ctx)->renderer);
    return LR_OK;
}

lr_status lr_direct_compute_create(const struct lr_direct_backend_params *params, struct lr_backend *backend)
{
    return lr_direct_compute_create_with(params, NULL, backend);
}
