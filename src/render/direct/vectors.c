/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections of vectors, which go to images with margins and back on the device. */
#include "render/direct/direct.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "model/lors/selection.h"

/* --- between an image and a vector at the place --- */

enum way { TO_IMAGE = 0, TO_VECTOR, TO_SUM };

static struct gl_program *open_program(struct lr_direct_compute *compute, enum way way)
{
    static const char *const defines[3][2] = {[TO_IMAGE] = {"TO_IMAGE"}, [TO_VECTOR] = {NULL}, [TO_SUM] = {"TO_SUM"}};
    struct gl_program **program = &compute->exchange.programs[way];
    if (*program == NULL) *program = lr_direct_program(compute, "direct/exchange.comp", defines[way]);
    return *program;
}

/* A copy between an image and a vector; a sum begins with it, or has it added. */
struct copy {
    enum way way;
    bool adds;
    const struct lr_direct_image *image;
    const lr_vector *vector;
};

static lr_status run(struct lr_direct_compute *compute, const struct copy *copy)
{
    struct lr_direct_pass uniforms = lr_direct_pass_of(compute);
    struct gl_pass pass = {.label = "DIRECT exchange",
                           .program = open_program(compute, copy->way),
                           .uniforms = &uniforms,
                           .uniform_bytes = sizeof(uniforms),
                           .barriers = lr_direct_barriers()};
    LR_TRY(pass.program != NULL ? lr_direct_reclaim(compute, copy->image) : LR_FAILED);
    const int *grid = uniforms.grid;
    lr_direct_groups((int64_t)grid[0] * grid[1] * grid[3], pass.groups);
    /* A range begins at a multiple of the driver's alignment, and the vector `*first` numbers behind that. */
    int32_t *first = &uniforms.counts[0];
    const struct lr_vector_range range = lr_vector_gl_range(copy->vector);
    const int64_t alignment = gl_context_limits(compute->ctx)->storage_alignment;
    const int64_t aligned = range.offset / alignment * alignment;
    *first = (int32_t)((range.offset - aligned) / lr_vector_size(copy->vector));
    pass.buffers[LR_BIND_DIRECT_VECTOR] =
        (struct gl_range){range.buffer, aligned, range.offset - aligned + range.bytes};

    uniforms.counts[1] = copy->adds;
    if (copy->way == TO_IMAGE)
        lr_direct_bind_target(&pass, copy->image);
    else
        lr_direct_bind_source(&pass, copy->image);
    return gl_pass_run(compute->ctx, &pass);
}

static lr_status direct_put_vector(struct lr_direct_compute *compute, const struct lr_direct_image *image,
                                   const lr_vector *vector)
{
    return lr_vector_is_on_host(vector)
               ? lr_direct_put(compute, image, vector->values)
               : run(compute, &(struct copy){.way = TO_IMAGE, .image = image, .vector = vector});
}

lr_status lr_direct_get_vector(struct lr_direct_compute *compute, const struct lr_direct_image *image,
                               lr_vector *vector)
{
    return lr_vector_is_on_host(vector)
               ? lr_direct_fetch(compute, image, vector->values)
               : run(compute, &(struct copy){.way = TO_VECTOR, .image = image, .vector = vector});
}

/* --- what is kept --- */

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

void lr_direct_exchange_finish(struct lr_direct_exchange *exchange)
{
    lr_vector_destroy(&exchange->ones);
    lr_vector_destroy(&exchange->sum);
    for (int k = 0; k < 3; k++) gl_program_destroy(exchange->programs[k]);
    *exchange = (struct lr_direct_exchange){0};
}

/* --- projections of whole views --- */

/* The views of a part, which names no single voxels. */
static int count_views(const struct lr_direct_compute *compute, const lr_selection *part)
{
    return lr_selection_is_all(part) ? compute->params.num_views : (int)part->num_pairs;
}

static int view_at(const lr_selection *part, int k)
{
    return lr_selection_is_all(part) ? k : part->pairs[k];
}

static lr_status report(const struct lr_direct_compute *compute, const char *what, int k, int count)
{
    return lr_progress_report(compute->params.progress, what, k, count);
}

/* The k-th histo-image of some values. */
static lr_vector histo_at(const struct lr_direct_compute *compute, const lr_vector *values, int k)
{
    const int64_t count = compute->views.num_voxels;
    return lr_vector_part(values, k * count, count);
}

static lr_status forward(struct lr_direct_compute *compute, const lr_selection *part, const lr_vector *image,
                         lr_vector *values)
{
    const int count = count_views(compute, part);
    LR_TRY(direct_put_vector(compute, &compute->in, image));
    for (int k = 0; k < count; k++) {
        lr_vector histo = histo_at(compute, values, k);
        LR_TRY(report(compute, "projecting", k, count));
        LR_TRY(lr_direct_run_view(compute, true, view_at(part, k)));
        LR_TRY(lr_direct_get_vector(compute, &compute->out, &histo));
    }
    return LR_OK;
}

/* The source of the k-th view; values NULL: the same ones for all. */
static lr_status put_histo(struct lr_direct_compute *compute, const lr_vector *values, int k)
{
    lr_vector *ones = &compute->exchange.ones;
    if (values != NULL) {
        const lr_vector histo = histo_at(compute, values, k);
        return direct_put_vector(compute, &compute->in, &histo);
    }
    if (k > 0) return LR_OK;
    LR_TRY(open_vector(compute, "a histo-image of ones", LR_FLOAT32, ones));
    LR_TRY(lr_vector_fill(ones, 1.0));
    return direct_put_vector(compute, &compute->in, ones);
}

/* One view's result is the image; those of several are added up in double. */
static lr_status add(struct lr_direct_compute *compute, int k, int count, lr_vector *image)
{
    lr_vector *sum = &compute->exchange.sum;
    if (count == 1) return lr_direct_get_vector(compute, &compute->out, image);
    LR_TRY(open_vector(compute, "a sum of back-projections", LR_FLOAT64, sum));
    LR_TRY(run(compute, &(struct copy){TO_SUM, k > 0, &compute->out, sum}));
    return k + 1 == count ? lr_vector_copy(sum, image) : LR_OK;
}

static lr_status back(struct lr_direct_compute *compute, const lr_selection *part, const lr_vector *values,
                      lr_vector *image)
{
    const int count = count_views(compute, part);
    for (int k = 0; k < count; k++) {
        LR_TRY(report(compute, "projecting back", k, count));
        LR_TRY(put_histo(compute, values, k));
        LR_TRY(lr_direct_run_view(compute, false, view_at(part, k)));
        LR_TRY(add(compute, k, count, image));
    }
    return LR_OK;
}

/* --- projections of single voxels, which the host spells out --- */

/* The vector itself where it is on the host, or a new one. */
static lr_status make_host(const struct lr_direct_compute *compute, const lr_vector *vector, lr_vector *host)
{
    *host = *vector;
    return lr_vector_is_on_host(vector) ? LR_OK
                                        : lr_vector_create(&(lr_vector_params){.count = vector->count,
                                                                               .name = "values of single voxels",
                                                                               .log = compute->params.log},
                                                           host);
}

static lr_status bring(const lr_vector *from, lr_vector *to)
{
    return from->values == to->values && from->storage == to->storage ? LR_OK : lr_vector_copy(from, to);
}

static void drop_host(const lr_vector *vector, lr_vector *host)
{
    if (!lr_vector_is_on_host(vector)) lr_vector_destroy(host);
}

typedef lr_status projection(struct lr_direct_views *views, const lr_selection *part, const lr_vector *in,
                             lr_vector *out);

/* in may be NULL. */
static lr_status project_on_host(struct lr_direct_compute *compute, projection *project, const lr_selection *part,
                                 const lr_vector *in, lr_vector *out)
{
    lr_vector host_in = {0}, host_out;
    LR_TRY(make_host(compute, out, &host_out));
    lr_status status = in != NULL ? make_host(compute, in, &host_in) : LR_OK;
    if (status == LR_OK) {
        status = in != NULL ? bring(in, &host_in) : LR_OK;
        if (status == LR_OK) status = project(&compute->views, part, in != NULL ? &host_in : NULL, &host_out);
        status = status == LR_OK ? bring(&host_out, out) : status;
        if (in != NULL) drop_host(in, &host_in);
    }
    drop_host(out, &host_out);
    return status;
}

/* --- both --- */

/* Images of the host go as they always do; so do parts of views. */
static bool is_for_host(const lr_selection *part, const lr_vector *in, const lr_vector *out)
{
    const bool is_listed = part != NULL && part->lors != NULL;
    return is_listed || ((in == NULL || lr_vector_is_on_host(in)) && lr_vector_is_on_host(out));
}

lr_status lr_direct_vectors_forward(struct lr_direct_compute *compute, const lr_selection *part, const lr_vector *image,
                                    lr_vector *values)
{
    return is_for_host(part, image, values) ? project_on_host(compute, lr_direct_views_forward, part, image, values)
                                            : forward(compute, part, image, values);
}

lr_status lr_direct_vectors_back(struct lr_direct_compute *compute, const lr_selection *part, const lr_vector *values,
                                 lr_vector *image)
{
    return is_for_host(part, values, image) ? project_on_host(compute, lr_direct_views_back, part, values, image)
                                            : back(compute, part, values, image);
}
