/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images, programs and tables of views, the passes that project with them, and projections of vectors. Vectors at the
 * backend's place are copied to and from images with margins on the device. */
#include "direct/compute/direct.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "gl/context.h"
#include "model/lors/selection.h"

#include <math.h>
#include <stdlib.h>

enum { FLOATS = 4 };

/* Finds the number of texels along q, x and y, with or without margins. */
static void find_extent(const struct lr_direct_layout *layout, bool has_margins, int extent[3])
{
    const int inner[3] = {layout->quads, layout->size[0], layout->size[1]};
    for (int k = 0; k < 3; k++) extent[k] = inner[k] + (has_margins ? 2 * layout->margin[k] : 0);
}

lr_status lr_direct_image_init(struct lr_direct_image *image, const struct lr_direct_layout *layout, const char *label,
                               bool has_margins)
{
    int extent[3];
    find_extent(layout, has_margins, extent);
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

void lr_direct_image_finish(struct lr_direct_image *image)
{
    gl_texture_destroy(image->texture);
    gl_buffer_destroy(image->buffer);
    *image = (struct lr_direct_image){0};
}

bool lr_direct_image_exists(const struct lr_direct_image *image)
{
    return image->texture != NULL || image->buffer != NULL;
}

/* --- transfers --- */

/* Copies values between the grid's order and the order of texels. */
static void reorder(const struct lr_direct_layout *layout, float *values, bool has_margins, float *staging,
                    bool to_texels)
{
    const int *size = layout->size;
    const int64_t slice = (int64_t)size[0] * size[1];
    int extent[3], margin[3];
    find_extent(layout, has_margins, extent);
    for (int k = 0; k < 3; k++) margin[k] = has_margins ? layout->margin[k] : 0;
    for (int64_t column = 0; column < slice; column++) {
        const int x = (int)(column % size[0]), y = (int)(column / size[0]);
        const int64_t row = x + margin[1] + (int64_t)extent[1] * (y + margin[2]);
        float *texels = staging + FLOATS * (row * extent[0] + margin[0]);
        float *voxel = values + column;
        for (int z = 0; z < size[2]; z++, voxel += slice)
            if (to_texels)
                texels[z] = *voxel;
            else
                *voxel = texels[z];
    }
}

lr_status lr_direct_image_copy(const struct lr_direct_image *image, const struct lr_direct_layout *layout,
                               float *values, bool to_device)
{
    /* A buffer is copied with its margins, a texture without margins. */
    const bool has_margins = image->buffer != NULL && image->has_margins;
    int extent[3];
    find_extent(layout, has_margins, extent);
    const int64_t count = (int64_t)extent[0] * extent[1] * extent[2], bytes = count * FLOATS * (int64_t)sizeof(float);
    float *staging = lr_alloc(count, FLOATS * sizeof(float), "an image as texels", layout->log);
    if (staging == NULL) return LR_FAILED;
    *(to_device ? &layout->traffic->to_device : &layout->traffic->to_host) += bytes;
    if (to_device) reorder(layout, values, has_margins, staging, true);
    lr_status status;
    if (image->buffer != NULL) {
        status = to_device ? gl_buffer_upload(image->buffer, 0, bytes, staging)
                           : gl_buffer_read(image->buffer, 0, bytes, staging);
    } else {
        const int *all = image->texture->size;
        const struct gl_box box = {(all[0] - extent[0]) / 2,
                                   (all[1] - extent[1]) / 2,
                                   (all[2] - extent[2]) / 2,
                                   extent[0],
                                   extent[1],
                                   extent[2]};
        status = to_device ? gl_texture_upload_rect(image->texture, &box, staging)
                           : gl_texture_read(image->texture, &box, staging);
    }
    if (!to_device && status == LR_OK) reorder(layout, values, has_margins, staging, false);
    free(staging);
    return status;
}

/* --- passes --- */

void lr_direct_bind_source(struct gl_pass *pass, const struct lr_direct_image *image)
{
    pass->textures[LR_UNIT_DIRECT_SOURCE] = image->texture;
    pass->buffers[LR_BIND_DIRECT_SOURCE].buffer = image->buffer;
}

void lr_direct_bind_target(struct gl_pass *pass, const struct lr_direct_image *image)
{
    pass->images[LR_IMAGE_DIRECT_TARGET] = (struct gl_image){.texture = image->texture};
    pass->buffers[LR_BIND_DIRECT_TARGET].buffer = image->buffer;
}

GLbitfield lr_direct_barriers(void)
{
    return GL_TEXTURE_FETCH_BARRIER_BIT | GL_TEXTURE_UPDATE_BARRIER_BIT | GL_SHADER_IMAGE_ACCESS_BARRIER_BIT |
           GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT;
}

enum { MOST_GROUPS = 32768 };

/* --- tables --- */

const struct lr_direct_view_tables *lr_direct_open_tables(struct lr_direct_compute *compute, int view)
{
    struct lr_direct_view_tables *kept = &compute->tables[view];
    if (kept->map != NULL) return kept;
    if (compute->borrowed_view == view) return &compute->borrowed;
    const int64_t device_bytes = gl_context_limits(compute->ctx)->memory_bytes;
    const int64_t most_bytes = compute->params.max_memory_bytes > 0
                                   ? compute->params.max_memory_bytes
                                   : (device_bytes > 0 ? device_bytes : lr_physical_memory()) / 4;
    lr_direct_view_tables_finish(&compute->borrowed);
    compute->borrowed_view = -1;
    if (lr_direct_view_tables_init(kept, &compute->builder, view) != LR_OK) return NULL;
    if (compute->cached_bytes + kept->bytes <= most_bytes) {
        compute->cached_bytes += kept->bytes;
        return kept;
    }
    compute->borrowed = *kept;
    compute->borrowed_view = view;
    *kept = (struct lr_direct_view_tables){0};
    return &compute->borrowed;
}

void lr_direct_drop_tables(struct lr_direct_compute *compute, int view)
{
    compute->cached_bytes -= compute->tables[view].bytes;
    lr_direct_view_tables_finish(&compute->tables[view]);
    if (compute->borrowed_view == view) {
        lr_direct_view_tables_finish(&compute->borrowed);
        compute->borrowed_view = -1;
    }
}

/* --- projections --- */

struct lr_direct_pass lr_direct_pass_of(const struct lr_direct_compute *compute)
{
    const struct lr_direct_layout *layout = &compute->layout;
    const int *size = layout->size, *margin = layout->margin;
    return (struct lr_direct_pass){
        .grid = {size[0], size[1], size[2], layout->quads},
        .margin = {margin[0], margin[1], margin[2], 0},
        .extent = {layout->quads + 2 * margin[0], size[0] + 2 * margin[1], size[1] + 2 * margin[2], 0},
    };
}

void lr_direct_groups(int64_t threads, int groups[3])
{
    const int64_t count = (threads + LR_DIRECT_GROUP - 1) / LR_DIRECT_GROUP;
    groups[0] = (int)(count < MOST_GROUPS ? count : MOST_GROUPS);
    groups[1] = (int)((count + MOST_GROUPS - 1) / MOST_GROUPS);
    groups[2] = 1;
}

struct gl_program *lr_direct_program(const struct lr_direct_compute *compute, const char *name,
                                     const char *const *defines)
{
    struct gl_define all[4] = {{0}};
    int next = 0;
    for (int k = 0; defines != NULL && defines[k] != NULL; k++) all[next++].name = defines[k];
    all[next].name = compute->layout.buffers ? "BUFFERS" : NULL;
    return gl_program_start(compute->ctx, &(struct gl_program_params){.compute = name, .defines = all, .label = name});
}

struct gl_program *lr_direct_open_program(struct lr_direct_compute *compute, bool forward)
{
    struct gl_program **program = forward ? &compute->forward : &compute->back;
    if (*program == NULL)
        *program = lr_direct_program(compute, forward ? "direct/forward.comp" : "direct/back.comp", NULL);
    return *program;
}

lr_status lr_direct_run(struct lr_direct_compute *compute, bool forward, int view, const struct lr_direct_image *source,
                        const struct lr_direct_image *target)
{
    if (compute->functions != NULL) return compute->functions->run(compute->self, forward, view, source, target);
    struct gl_program *program = lr_direct_open_program(compute, forward);
    const struct lr_direct_view_tables *tables = program != NULL ? lr_direct_open_tables(compute, view) : NULL;
    if (tables == NULL) return LR_FAILED;
    if (gl_context_limits(compute->ctx)->software && tables->num_steps > GL_MOST_ROUNDS_SOFTWARE)
        return lr_error(compute->params.log, LR_USAGE,
                        "a kernel of %d voxels is too long for the software renderer, which ends a "
                        "shader's loops after 65,535 rounds: use backend cpu, a graphics processor, "
                        "larger voxels or a smaller support",
                        tables->num_offsets);

    /* A thread does all steps of a kernel for one block of outputs. */
    const int *size = compute->params.grid.size;
    const int64_t quads = (compute->layout.quads + LR_DIRECT_QUADS - 1) / LR_DIRECT_QUADS;
    const int64_t blocks = (size[tables->axis] + LR_DIRECT_OUTPUTS - 1) / LR_DIRECT_OUTPUTS;

    struct lr_direct_pass uniforms = lr_direct_pass_of(compute);
    uniforms.margin[3] = tables->axis;
    uniforms.counts[0] = tables->num_steps;
    uniforms.counts[1] = tables->num_offsets;
    uniforms.counts[2] = tables->num_rows;
    struct gl_pass pass = {
        .label = forward ? "DIRECT forward" : "DIRECT back",
        .program = program,
        .uniforms = &uniforms,
        .uniform_bytes = sizeof(uniforms),
        .barriers = compute->is_unordered ? 0 : lr_direct_barriers(),
    };
    lr_direct_groups(quads * blocks * size[1 - tables->axis], pass.groups);
    pass.buffers[LR_BIND_DIRECT_STEPS].buffer = tables->steps;
    pass.buffers[LR_BIND_DIRECT_VALUES].buffer = tables->values;
    lr_direct_bind_source(&pass, source);
    pass.textures[LR_UNIT_DIRECT_MAP] = tables->map;
    lr_direct_bind_target(&pass, target);
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
        status = lr_direct_run(compute, task->work == LR_DIRECT_WORK_FORWARD, task->views[k], source, target);
    gl_stopwatch_end(compute->watch);
    *device_seconds = gl_stopwatch_seconds(compute->watch);
    return status;
}

/* --- images in and out --- */

lr_status lr_direct_reclaim(struct lr_direct_compute *compute, const struct lr_direct_image *image)
{
    return compute->functions != NULL ? compute->functions->give_back(compute->self, image) : LR_OK;
}

lr_status lr_direct_put(struct lr_direct_compute *compute, const struct lr_direct_image *image, const float *values)
{
    LR_TRY(lr_direct_reclaim(compute, image));
    return lr_direct_image_copy(image, &compute->layout, (float *)(uintptr_t)values, true);
}

lr_status lr_direct_fetch(struct lr_direct_compute *compute, const struct lr_direct_image *image, float *values)
{
    LR_TRY(lr_direct_reclaim(compute, image));
    return lr_direct_image_copy(image, &compute->layout, values, false);
}

/* --- the clock of projections, which waits for the device only when it is read --- */

double lr_direct_read_laps(struct lr_direct_compute *compute)
{
    if (!compute->has_laps) return 0.0;
    compute->has_laps = false;
    if (compute->functions != NULL) return compute->functions->read_laps(compute->self);
    const double seconds = gl_stopwatch_seconds(compute->watch);
    gl_stopwatch_reset(compute->watch);
    return seconds;
}

lr_status lr_direct_run_view(struct lr_direct_compute *compute, bool forward, int view)
{
    const bool is_ready = compute->functions != NULL || (lr_direct_open_program(compute, forward) != NULL &&
                                                         lr_direct_open_tables(compute, view) != NULL);
    LR_TRY(is_ready ? LR_OK : LR_FAILED);
    if (compute->functions != NULL)
        compute->functions->begin_lap(compute->self);
    else
        gl_stopwatch_begin(compute->watch);
    compute->has_laps = true;

    const lr_status status = lr_direct_run(compute, forward, view, &compute->in, &compute->out);
    if (compute->functions != NULL)
        compute->functions->end_lap(compute->self);
    else
        gl_stopwatch_end(compute->watch);
    return status;
}

/* --- between an image and a vector at the place --- */

enum direction { TO_IMAGE = 0, TO_VECTOR, TO_SUM };

/* A copy between an image and a vector. The direction TO_SUM sets the vector to the image, or adds the image to it if
 * `adds`. */
struct copy {
    enum direction direction;
    bool adds;
    const struct lr_direct_image *image;
    const lr_vector *vector;
};

static lr_status run(struct lr_direct_compute *compute, const struct copy *copy)
{
    static const char *const defines[3] = {[TO_IMAGE] = "TO_IMAGE", [TO_VECTOR] = NULL, [TO_SUM] = "TO_SUM"};
    const bool is_buffer = copy->image->buffer != NULL;
    struct gl_program **program = &compute->exchange.programs[copy->direction][is_buffer];
    if (*program == NULL) {
        struct gl_define all[3] = {{0}};
        int next = 0;
        if (defines[copy->direction] != NULL) all[next++].name = defines[copy->direction];
        if (is_buffer) all[next].name = "BUFFERS";
        static const char *const name = "direct/exchange.comp";
        *program =
            gl_program_start(compute->ctx, &(struct gl_program_params){.compute = name, .defines = all, .label = name});
    }
    struct lr_direct_pass uniforms = lr_direct_pass_of(compute);
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
                           .barriers = lr_direct_barriers()};
    LR_TRY(pass.program != NULL ? lr_direct_reclaim(compute, copy->image) : LR_FAILED);
    const int *grid = uniforms.grid;
    lr_direct_groups((int64_t)grid[0] * grid[1] * grid[3], pass.groups);
    /* The bound range begins at a multiple of the driver's alignment, and the vector `*first` numbers later. */
    int32_t *first = &uniforms.counts[0];
    const struct lr_vector_range range = lr_vector_gl_range(copy->vector);
    const int64_t alignment = gl_context_limits(compute->ctx)->storage_alignment;
    const int64_t aligned = range.offset / alignment * alignment;
    *first = (int32_t)((range.offset - aligned) / lr_vector_size(copy->vector));
    pass.buffers[LR_BIND_DIRECT_VECTOR] =
        (struct gl_range){range.buffer, aligned, range.offset - aligned + range.bytes};

    uniforms.counts[1] = copy->adds;
    if (copy->direction == TO_IMAGE)
        lr_direct_bind_target(&pass, copy->image);
    else
        lr_direct_bind_source(&pass, copy->image);
    return gl_pass_run(compute->ctx, &pass);
}

lr_status lr_direct_copy_vector(struct lr_direct_compute *compute, const struct lr_direct_image *image,
                                const lr_vector *vector, bool to_image)
{
    if (!lr_vector_is_on_host(vector))
        return run(compute, &(struct copy){to_image ? TO_IMAGE : TO_VECTOR, false, image, vector});
    return to_image ? lr_direct_put(compute, image, vector->values) : lr_direct_fetch(compute, image, vector->values);
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

/* --- projections of whole views --- */

static lr_status forward(struct lr_direct_compute *compute, const lr_selection *part, const lr_vector *image,
                         lr_vector *values)
{
    const bool is_all = lr_selection_is_all(part);
    const int count = is_all ? compute->params.num_views : (int)part->num_pairs;
    LR_TRY(lr_direct_copy_vector(compute, &compute->in, image, true));
    for (int k = 0; k < count; k++) {
        const lr_vector histo = lr_vector_part(values, k * compute->views.num_voxels, compute->views.num_voxels);
        LR_TRY(lr_progress_report(compute->params.progress, "projecting", k, count));
        LR_TRY(lr_direct_run_view(compute, true, is_all ? k : part->pairs[k]));
        LR_TRY(lr_direct_copy_vector(compute, &compute->out, &histo, false));
    }
    return LR_OK;
}

/* Projects values back. values: NULL = ones. */
static lr_status back(struct lr_direct_compute *compute, const lr_selection *part, const lr_vector *values,
                      lr_vector *image)
{
    lr_vector *ones = &compute->exchange.ones, *sum = &compute->exchange.sum;
    const bool is_all = lr_selection_is_all(part);
    const int count = is_all ? compute->params.num_views : (int)part->num_pairs;
    for (int k = 0; k < count; k++) {
        LR_TRY(lr_progress_report(compute->params.progress, "projecting back", k, count));
        if (values != NULL) {
            const lr_vector histo = lr_vector_part(values, k * compute->views.num_voxels, compute->views.num_voxels);
            LR_TRY(lr_direct_copy_vector(compute, &compute->in, &histo, true));
        } else if (k == 0) {
            LR_TRY(open_vector(compute, "a histo-image of ones", LR_FLOAT32, ones));
            LR_TRY(lr_vector_fill(ones, 1.0));
            LR_TRY(lr_direct_copy_vector(compute, &compute->in, ones, true));
        }
        LR_TRY(lr_direct_run_view(compute, false, is_all ? k : part->pairs[k]));

        /* The image is the result of a single view, or the sum over several views, which is added up in double. */
        if (count == 1) return lr_direct_copy_vector(compute, &compute->out, image, false);
        LR_TRY(open_vector(compute, "a sum of back-projections", LR_FLOAT64, sum));
        LR_TRY(run(compute, &(struct copy){TO_SUM, k > 0, &compute->out, sum}));
    }
    return count > 0 ? lr_vector_copy(sum, image) : LR_OK;
}

/* Projects between arrays on the host, to and from which vectors at the place are copied. in: NULL = ones are projected
 * back. */
static lr_status project_on_host(struct lr_direct_compute *compute, bool is_forward, const lr_selection *part,
                                 const lr_vector *in, lr_vector *out)
{
    const bool copies_in = in != NULL && !lr_vector_is_on_host(in), copies_out = !lr_vector_is_on_host(out);
    lr_vector host_in = in != NULL ? *in : (lr_vector){0}, host_out = *out;
    lr_vector_params params = {.name = "values of single voxels", .log = compute->params.log};
    lr_status status = LR_OK;
    if (copies_out) {
        params.count = out->count;
        LR_TRY(lr_vector_create(&params, &host_out));
    }
    if (copies_in) {
        params.count = in->count;
        status = lr_vector_create(&params, &host_in);
        if (status == LR_OK) {
            status = lr_vector_copy(in, &host_in);
            if (status != LR_OK) lr_vector_destroy(&host_in);
        }
    }
    if (status == LR_OK) {
        const lr_vector *from = in != NULL ? &host_in : NULL;
        status = is_forward ? lr_direct_views_forward(&compute->views, part, from, &host_out)
                            : lr_direct_views_back(&compute->views, part, from, &host_out);
        if (status == LR_OK && copies_out) status = lr_vector_copy(&host_out, out);
        if (copies_in) lr_vector_destroy(&host_in);
    }
    if (copies_out) lr_vector_destroy(&host_out);
    return status;
}

lr_status lr_direct_project_vectors(struct lr_direct_compute *compute, bool is_forward, const lr_selection *part,
                                    const lr_vector *in, lr_vector *out)
{
    const bool is_listed = part != NULL && part->lors != NULL;
    const bool is_on_host = (in == NULL || lr_vector_is_on_host(in)) && lr_vector_is_on_host(out);
    LR_TRY(gl_context_make_current(compute->ctx));
    (void)lr_direct_read_laps(compute); /* discards the time of earlier projections */
    compute->device_seconds = 0;
    const lr_status status = is_listed || is_on_host ? project_on_host(compute, is_forward, part, in, out)
                             : is_forward            ? forward(compute, part, in, out)
                                                     : back(compute, part, in, out);
    return gl_context_leave(compute->ctx, status);
}
