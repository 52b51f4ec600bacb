/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of vectors. Vectors at the backend's place are copied to and from images with margins on the device. */
#include "direct/compute/direct.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "model/lors/selection.h"

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
