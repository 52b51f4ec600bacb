/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The points method: its passes, projections and rows. */
#include "correspondence/compute/points/points.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"
#include "correspondence/plan.h"
#include "correspondence/scene.h"
#include "gl/vectors.h"

#include <stdlib.h>
#include <string.h>

/* The uniform block of shaders/correspondence/visit.glsl. */
struct visit_pass {
    uint32_t num_draws, num_lors, capacity;
    int32_t mu_steps;
    float mu_origin_mm[4];
    float mu_per_mm[4];
    float detection_depth_mm;
    int32_t last_rounds, unused[2];
};
_Static_assert(sizeof(struct visit_pass) == 64, "the shaders' layout");

/* Starts to build the program of a pass, unless this has been done. */
static lr_status points_start(struct lr_points *points, enum lr_points_pass which)
{
    static const char *const names[] = {"correspondence/points/forward.comp", "correspondence/points/back.comp",
                                        "correspondence/points/rows.comp", "correspondence/points/collect.comp"};
    const bool visits = which != LR_POINTS_COLLECT;
    struct lr_rays_define rays;
    int next = 1;
    if (points->programs[which] != NULL) return LR_OK;
    lr_rays_define_init(&rays, points->plan->rays);
    if (points->params.mode == LR_MODE_EXACT) rays.defines[next++].name = "EXACT";
    if (points->plan->hiding) rays.defines[next++].name = "HIDING";
    if (points->cut_short != NULL) rays.defines[next++].name = "LIMITED_LOOPS";
    if (points->params.penetration) rays.defines[next++].name = "PENETRATION";
    if (points->scene.mu != NULL) rays.defines[next++].name = "ABSORPTION";
    points->programs[which] =
        gl_program_start(points->ctx, &(struct gl_program_params){.compute = names[which],
                                                                  .defines = visits ? rays.defines : NULL,
                                                                  .label = visits ? names[which] : "collect voxels"});
    LR_TRY(which == LR_POINTS_BACK ? points_start(points, LR_POINTS_COLLECT) : LR_OK);
    return points->programs[which] != NULL ? LR_OK : LR_FAILED;
}

lr_status lr_points_upload(struct lr_points *points, const struct lr_batch *batch)
{
    if (batch->most_draws > LR_MAX_TARGETS) {
        return lr_error(points->params.log, LR_USAGE,
                        "a point sees %d modules through one, more than the %d that the compute "
                        "backend can hold: use backend raster or cpu",
                        batch->most_draws, LR_MAX_TARGETS);
    }
    LR_TRY(gl_buffer_upload(points->images, 0, batch->num_images * (int64_t)sizeof(*batch->images), batch->images));
    LR_TRY(gl_buffer_upload(points->draws, 0, batch->num_draws * (int64_t)sizeof(*batch->draws), batch->draws));
    return gl_buffer_upload(points->rows, 0, batch->num_rows * (int64_t)sizeof(*batch->rows), batch->rows);
}

lr_status lr_points_run(struct lr_points *points, enum lr_points_pass which, const struct lr_batch *batch,
                        const struct lr_points_output *output)
{
    LR_TRY(points_start(points, which));
    const struct lr_scene *scene = &points->scene;
    struct visit_pass uniforms = {
        .num_draws = (uint32_t)batch->num_draws,
        .num_lors = (uint32_t)(output->num_lors < UINT32_MAX ? output->num_lors : UINT32_MAX - 1),
        .capacity = (uint32_t)output->capacity,
        .mu_steps = scene->mu_steps,
        .detection_depth_mm = (float)scene->scanner->detection_depth_mm,
        .last_rounds = 8,
    };
    memcpy(uniforms.mu_origin_mm, scene->mu_origin_mm, sizeof(scene->mu_origin_mm));
    memcpy(uniforms.mu_per_mm, scene->mu_per_mm, sizeof(scene->mu_per_mm));

    struct gl_pass pass =
        gl_pass_compute(points->programs[which], &uniforms, sizeof(uniforms), (const int[3]){batch->num_images, 1, 1});
    lr_scene_bind(&points->scene, &pass);
    gl_pass_bind(&pass, {LR_BIND_IMAGES, points->images}, {LR_BIND_DRAWS, points->draws},
                 {LR_BIND_BOXES, points->boxes}, {LR_BIND_SUMS, points->sums}, {LR_BIND_OUTPUT, output->buffer},
                 {LR_BIND_CUT_SHORT, points->cut_short});
    LR_TRY(gl_pass_run(points->ctx, &pass));
    /* Software renderers end long loops too early, without an error. A shader that notices an early end sets the flag
       `cut_short`. */
    uint32_t cut_short = 0;
    if (points->cut_short == NULL) return LR_OK;
    LR_TRY(gl_buffer_read(points->cut_short, 0, sizeof(cut_short), &cut_short));
    if (cut_short == 0) return LR_OK;
    return lr_error(points->params.log, LR_USAGE,
                    "a crystal sees too many modules, cells or lines at once for the software renderer, which ends a "
                    "shader's loops after 65,535 rounds: use fewer rays, backend cpu, or a graphics processor");
}

lr_status lr_points_collect(struct lr_points *points, const struct lr_batch *batch, const struct gl_buffer *voxels)
{
    const uint32_t num_rows = (uint32_t)batch->num_rows;
    LR_TRY(points_start(points, LR_POINTS_COLLECT));
    struct gl_pass pass = gl_pass_compute(points->programs[LR_POINTS_COLLECT], &num_rows, sizeof(num_rows),
                                          (const int[3]){gl_divide_up(batch->num_rows, LR_GROUP_SIZE), 1, 1});
    gl_pass_bind(&pass, {LR_BIND_ROWS, points->rows}, {LR_BIND_SUMS, points->sums}, {LR_BIND_OUTPUT, voxels});
    return gl_pass_run(points->ctx, &pass);
}

/* --- projections --- */

/* The arguments of project_batch. */
struct projection {
    struct lr_points *points;
    struct lr_points_output output; /* LOR values: the output of a forward pass, the input of a back pass */
    const struct gl_buffer *voxels; /* the image of a back-projection; NULL for a forward projection */
};

static lr_status project_batch(void *user, const struct lr_batch *batch)
{
    const struct projection *at = user;
    const bool is_back = at->voxels != NULL;
    LR_TRY(lr_points_upload(at->points, batch));
    LR_TRY(lr_points_run(at->points, is_back ? LR_POINTS_BACK : LR_POINTS_FORWARD, batch, &at->output));
    return is_back ? lr_points_collect(at->points, batch, at->voxels) : LR_OK;
}

/* --- deterministic forward projections: the host adds up rows of the matrix in the order of the voxels --- */

struct ordered_sum {
    const float *image;
    float *data;
};

static lr_status add_row(void *user, const lr_row *row)
{
    const struct ordered_sum *sum = user;
    const double emission = (double)sum->image[row->row];
    for (int64_t k = 0; k < row->count; k++) sum->data[row->lor[k]] += (float)(emission * row->probability[k]);
    return LR_OK;
}

/* Projects all LORs; `part` is not used. Vectors are on the host. */
static lr_status project(void *self, bool is_forward, const lr_selection *part, lr_vector *image, lr_vector *values)
{
    struct lr_points *points = self;
    const struct lr_backend_params *params = &points->params;
    const int64_t num_voxels = lr_grid_num_voxels(params->grid), image_bytes = num_voxels * (int64_t)sizeof(float);
    const struct lr_rows rows = lr_rows_of_voxels(params, 0, num_voxels);
    float *data = values->values;
    (void)part;
    if (is_forward && params->deterministic) {
        struct ordered_sum sum = {image->values, data};
        memset(data, 0, (size_t)params->lors->count * sizeof(*data));
        return lr_points_read_rows(points, &rows, &(lr_row_sink){add_row, &sum});
    }
    struct lr_plan_work work = {.rows = &rows,
                                .window = lr_pair_window_begin(params->lors, NULL, 0),
                                .emission = is_forward ? image->values : NULL};
    struct gl_buffer *voxels = is_forward ? NULL : gl_data_buffer(points->ctx, "voxel sums", image_bytes, NULL);
    lr_status status = is_forward || voxels != NULL ? LR_OK : LR_FAILED;
    while (status == LR_OK && lr_pair_window_next(&work.window, points->max_window)) {
        const int64_t count = work.window.num_values, bytes = count * (int64_t)sizeof(float);
        float *own = data + work.window.first_value;
        status = lr_scene_set_window(&points->scene, &work.window);
        if (status != LR_OK) break;
        struct gl_buffer *lors = gl_data_buffer(points->ctx, "LOR values", bytes, is_forward ? NULL : own);
        struct projection at = {.points = points, .output = {.buffer = lors, .num_lors = count}, .voxels = voxels};
        const struct lr_sweep sweep = {.params = params,
                                       .plan = points->plan,
                                       .what = is_forward ? "projecting forward" : "projecting back",
                                       .batch = project_batch,
                                       .user = &at};
        status = lors != NULL ? lr_sweep_run(&sweep, &work) : LR_FAILED;
        if (status == LR_OK && is_forward) status = gl_buffer_read(lors, 0, bytes, own);
        gl_buffer_destroy(lors);
    }
    if (status == LR_OK && !is_forward) status = gl_buffer_read(voxels, 0, image_bytes, image->values);
    gl_buffer_destroy(voxels);
    return status;
}

/* --- matrix rows --- */

/* An entry of the list, as written by shaders/correspondence/points/rows.comp. */
struct entry {
    uint32_t image, lor;
    float weight;
    uint32_t thread; /* number of the thread in its group */
};
_Static_assert(sizeof(struct entry) == 16, "uvec4");

/* A list has a head of HEAD_BYTES with the number of elements, and room for ROOM elements per crystal of the primary.
 * This room is usually enough: a crystal has more elements only if the opposite crystals are much smaller. */
enum { HEAD_BYTES = 16, ROOM = 12, MOST_ENTRIES = 1 << 24 };

/* The room of the list with penetration, in elements per line. A line crosses a few crystals at each end, and has an
 * element for each pair of crystals that may stop the photons. */
enum { ROOM_PER_LINE = 12 };

/* State of a call of lr_points_read_rows. */
struct listing {
    struct lr_points *points;
    struct lr_plan *plan; /* its batches are so small that their elements probably fit into the list */
    double factor;        /* 1 / points per row */
    int num_images;
    struct gl_buffer *list;
    int64_t capacity;      /* room of the list, in entries */
    struct entry *entries; /* [capacity], in the order of the device's list */
    struct entry *sorted;  /* [capacity], sorted by image */
    uint32_t *image_begin; /* [max_images + 1] */
};

static lr_status fetch_batch(void *user, const struct lr_batch *batch)
{
    static const uint32_t zero[HEAD_BYTES / 4] = {0};
    struct listing *listing = user;
    const struct lr_points_output output = {
        .buffer = listing->list, .num_lors = listing->points->params.lors->count, .capacity = listing->capacity};
    listing->num_images = batch->num_images;
    LR_TRY(lr_points_upload(listing->points, batch));
    LR_TRY(gl_buffer_upload(listing->list, 0, HEAD_BYTES, zero));
    LR_TRY(lr_points_run(listing->points, LR_POINTS_ROWS, batch, &output));

    uint32_t count;
    LR_TRY(gl_buffer_read(listing->list, 0, sizeof(count), &count));
    if (count > listing->capacity) {
        return lr_error(listing->points->params.log, LR_FAILED,
                        "%u matrix elements do not fit the list of %lld: the crystals of one "
                        "module are far smaller than another's; use backend cpu",
                        count, (long long)listing->capacity);
    }
    LR_TRY(gl_buffer_read(listing->list, HEAD_BYTES, count * (int64_t)sizeof(struct entry), listing->entries));
    if (listing->points->params.penetration) {
        /* Several threads find the same LOR if there is penetration. Elements of a LOR are sorted by thread, so that
         * they are always added up in the same order. */
        uint32_t begin[LR_GROUP_SIZE + 1] = {0};
        for (uint32_t k = 0; k < count; k++) begin[listing->entries[k].thread + 1]++;
        for (int thread = 0; thread < LR_GROUP_SIZE; thread++) begin[thread + 1] += begin[thread];
        for (uint32_t k = 0; k < count; k++) listing->sorted[begin[listing->entries[k].thread]++] = listing->entries[k];
        struct entry *swapped = listing->entries;
        listing->entries = listing->sorted;
        listing->sorted = swapped;
    }

    /* Sorts elements by image, and keeps their order within each image. Without penetration, all elements of a LOR come
     * from one thread. Their order, and the bits of their sum, are therefore the same in every run. */
    uint32_t *first = listing->image_begin;
    memset(first, 0, ((size_t)listing->num_images + 1) * sizeof(*first));
    for (uint32_t k = 0; k < count; k++) first[listing->entries[k].image + 1]++;
    for (int image = 0; image < listing->num_images; image++) first[image + 1] += first[image];
    for (uint32_t k = 0; k < count; k++) listing->sorted[first[listing->entries[k].image]++] = listing->entries[k];
    for (int image = listing->num_images; image > 0; image--) first[image] = first[image - 1];
    first[0] = 0;
    return LR_OK;
}

static lr_status fill_row(void *user, const struct lr_plan_row *row, struct lr_elements *list)
{
    const struct listing *listing = user;
    for (uint32_t k = listing->image_begin[row->first_image]; k < listing->image_begin[row->end_image]; k++) {
        const struct entry *entry = &listing->sorted[k];
        LR_TRY(lr_elements_add(list, entry->lor, listing->factor * (double)entry->weight, listing->points->params.log));
    }
    return LR_OK;
}

lr_status lr_points_read_rows(void *self, const struct lr_rows *rows, const lr_row_sink *sink)
{
    struct lr_points *points = self;
    const struct lr_pair_window all = lr_pair_window_all(points->params.lors);
    LR_TRY(lr_scene_set_window(&points->scene, &all));
    struct listing listing = {.points = points, .factor = 1.0 / lr_rows_per_row(rows)};
    const lr_log *log = points->params.log;
    const struct lr_plan *plan = points->plan;
    const lr_scanner *scanner = points->params.scanner;

    /* Finds how much room the elements of one image need. */
    int64_t largest = 1; /* largest number of crystals of a module */
    for (int m = 0; m < scanner->num_modules; m++) {
        const int64_t crystals = (int64_t)scanner->modules[m].crystals[0] * scanner->modules[m].crystals[1];
        largest = crystals > largest ? crystals : largest;
    }
    const int64_t room = points->params.penetration
                             ? ROOM_PER_LINE * lr_penetration_most_lines(scanner, points->params.rays)
                             : ROOM * largest;

    /* A batch never has more images than the rows need. */
    const int64_t modules = scanner->num_modules;
    const int64_t asked = (rows->end - rows->begin) * lr_rows_per_row(rows);
    const int64_t images = asked < plan->max_images / modules ? (asked > 0 ? asked : 1) * modules : plan->max_images;
    const int64_t most =
        (gl_context_limits(points->ctx)->max_storage_bytes - HEAD_BYTES) / (int64_t)sizeof(struct entry);
    listing.capacity = most < MOST_ENTRIES ? most : MOST_ENTRIES;
    listing.capacity = room * images < listing.capacity ? room * images : listing.capacity;
    listing.list = gl_data_buffer(points->ctx, "matrix elements",
                                  HEAD_BYTES + listing.capacity * (int64_t)sizeof(struct entry), NULL);
    listing.entries = lr_alloc(listing.capacity, sizeof(*listing.entries), "matrix elements", log);
    listing.sorted = lr_alloc(listing.capacity, sizeof(*listing.sorted), "matrix elements", log);
    listing.image_begin = lr_alloc(plan->max_images + 1, sizeof(*listing.image_begin), "images", log);
    lr_status status = listing.list && listing.entries && listing.sorted && listing.image_begin ? LR_OK : LR_FAILED;
    if (status == LR_OK) {
        const int64_t fitting = listing.capacity / room;
        listing.plan = lr_plan_create(
            &(struct lr_plan_params){.lors = plan->lors,
                                     .rays = plan->rays,
                                     .max_images = (int)(fitting < plan->max_images ? fitting : plan->max_images),
                                     .penetration = plan->penetration,
                                     .image_crystals = plan->image_crystals,
                                     .log = log});
        status = listing.plan ? LR_OK : LR_FAILED;
    }
    if (status == LR_OK) {
        const struct lr_row_batches batches = {
            .plan = listing.plan, .fetch = fetch_batch, .fill = fill_row, .user = &listing, .params = &points->params};
        status = lr_row_batches_deliver(&batches, rows, sink);
    }
    lr_plan_destroy(listing.plan);
    gl_buffer_destroy(listing.list);
    lr_free_all(listing.image_begin, listing.sorted, listing.entries);
    return status;
}

/* --- creation --- */

/* The number of images of a batch. This many workgroups keep a device busy. */
enum { BATCH_IMAGES = 16384, BATCH_IMAGES_SOFTWARE = 2048 };

void *lr_points_create(const struct lr_method_params *given)
{
    struct lr_points *points = lr_alloc(1, sizeof(*points), "projections point by point", given->backend->log);
    if (points == NULL) return NULL;
    points->params = *given->backend;
    points->ctx = given->ctx;
    points->max_window = given->max_window;
    const struct lr_backend_params *params = &points->params;
    const struct gl_limits *limits = gl_context_limits(points->ctx);
    const struct lr_plan *plan = points->plan = lr_plan_create(&(struct lr_plan_params){
        .lors = params->lors,
        .rays = params->rays,
        .max_images = limits->small_batches ? BATCH_IMAGES_SOFTWARE : BATCH_IMAGES,
        .penetration = params->penetration,
        .image_crystals = limits->software ? LR_GROUP_SIZE : 0,
        .log = params->log,
    });
    const struct lr_scene_absorption absorption = {params->mu, params->mu_steps};
    if (plan == NULL || lr_scene_init(&points->scene, points->ctx, params->lors, &absorption) != LR_OK) goto failed;
    points->images = gl_data_buffer(points->ctx, "images of the batch",
                                    plan->max_images * (int64_t)sizeof(struct lr_plan_image), NULL);
    points->draws =
        gl_data_buffer(points->ctx, "draws of the batch", plan->max_draws * (int64_t)sizeof(struct lr_plan_draw), NULL);
    points->rows =
        gl_data_buffer(points->ctx, "rows of the batch", plan->max_images * (int64_t)sizeof(struct lr_plan_row), NULL);
    points->sums = gl_data_buffer(points->ctx, "sums of images", plan->max_images * (int64_t)sizeof(float), NULL);
    if (!points->images || !points->draws || !points->rows || !points->sums) goto failed;

    const bool may_cut_short = plan->hiding && limits->software;
    if (may_cut_short) points->cut_short = gl_data_buffer(points->ctx, "loops cut short", sizeof(uint32_t), NULL);
    if (params->penetration) points->boxes = lr_penetration_boxes(points->ctx, params->scanner, params->rays);
    if ((!may_cut_short || points->cut_short != NULL) && (!params->penetration || points->boxes != NULL)) return points;

failed:
    lr_points_destroy(points);
    return NULL;
}

void lr_points_destroy(void *self)
{
    struct lr_points *points = self;
    if (points == NULL) return;
    gl_buffers_destroy(points->boxes, points->cut_short, points->sums, points->rows, points->draws, points->images);
    for (int k = 0; k < LR_NUM_POINTS_PASSES; k++) gl_program_destroy(points->programs[k]);
    lr_scene_finish(&points->scene);
    lr_plan_destroy(points->plan);
    free(points);
}

/* --- the method --- */

/* In deterministic mode, forward projections are computed from rows. */
static lr_status prepare(void *self, bool lists)
{
    (void)lists;
    const struct lr_points *points = self;
    LR_TRY(points_start(self, LR_POINTS_BACK));
    return points->params.deterministic ? LR_OK : points_start(self, LR_POINTS_FORWARD);
}

const struct lr_method lr_points_method = {
    .create = lr_points_create,
    .destroy = lr_points_destroy,
    .prepare = prepare,
    .project = project,
    .rows = lr_points_read_rows,
};
