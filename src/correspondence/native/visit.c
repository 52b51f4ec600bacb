/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The elements of a pair of modules and a column of sample points (native.h). */
#include "correspondence/native/native.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "correspondence/native/kernels.h"
#include "model/lors/place.h"

#ifdef LR_NATIVE_AVX2
#include <cpuid.h>
#endif
#include <math.h>
#include <stdlib.h>

/* Two modules count as equally far if the relative difference of their squared distances is below this. */
#define TIE 1e-9

/* The alignment of vectors, bytes. */
enum { ALIGNMENT = 64 };

/* --- modules that are parallel across the axis. All strips of a column of points have the same tau, and therefore the
 * same overlaps along the axis. Overlaps that are not empty are listed once, and then weighted for each strip --- */

static void flat_finish(struct lr_native_flat *flat)
{
    lr_free_all(flat->y, flat->height, flat->offset, flat->begin);
    *flat = (struct lr_native_flat){.key.pair = -1};
}

/* Lists the overlaps for the key, unless `flat` already has them. axials: the cells for each piece of a face. */
static lr_status flat_fill(struct lr_native_flat *flat, const struct lr_native_flat_key *key,
                           const struct lr_native_axial *axials, const lr_log *log)
{
    if (flat->key.pair == key->pair && flat->key.i_is_primary == key->i_is_primary && flat->key.tau == key->tau &&
        flat->key.parts == key->parts && flat->key.along == key->along && flat->key.count == key->count)
        return LR_OK;

    const int64_t overlaps = 2 * ((int64_t)axials->num_a * key->parts + axials->num_b);
    const int64_t capacity = key->count * (overlaps + LR_NATIVE_LANES);
    if (capacity > flat->capacity || key->count > flat->num_points) {
        flat_finish(flat);
        flat->y = lr_alloc(capacity, sizeof(*flat->y), "overlaps", log);
        flat->height = lr_alloc(capacity, sizeof(*flat->height), "overlaps", log);
        flat->offset = lr_alloc(capacity, sizeof(*flat->offset), "overlaps", log);
        flat->begin = lr_alloc(key->count + 1, sizeof(*flat->begin), "overlaps", log);
        if (!flat->y || !flat->height || !flat->offset || !flat->begin) {
            flat_finish(flat);
            return LR_FAILED;
        }
        flat->capacity = capacity;
        flat->num_points = key->count;
    }
    flat->key = *key;
    int next = 0;
    const struct lr_native_strip strip = {.tau = (float)key->tau, .tau_exactly = key->tau};
    for (int k = 0; k < key->count; k++) {
        flat->begin[k] = next;
        const double z = key->along[k];
        const struct lr_native_starts starts =
            lr_native_start(&strip, (const double[2]){key->starts[0] - z, key->starts[1] - z});
        for (int item = 0; item < axials->num_a * key->parts; item++) {
            /* Finds the secondary cells whose shadows may overlap this piece of primary cell q. */
            const int q = item / key->parts;
            const struct lr_native_axial *axial = &axials[item % key->parts];
            const float middle = (float)q * axial->pitch_a + axial->middle_a;
            const float thin = LR_NATIVE_THIN * axial->half_a, shadow = axial->pitch_b * strip.tau;
            const float low = (starts.base - middle - axial->half_a) / shadow;
            const float high = (starts.base - middle + axial->half_a) / shadow;
            const float last = (float)(axial->num_b - 1);
            const int begin = (int)lr_native_clamp(low - 1e-3f, 0.0f, last);
            const int end = (int)lr_native_clamp(high + 1e-3f, 0.0f, last);
            for (int s = begin; s <= end; s++) {
                const float place[2] = {middle, (float)s * axial->pitch_b + axial->gap_b};
                const struct lr_native_overlap overlap = lr_native_straight_overlap(&strip, axial, &starts, place);
                if (overlap.height > thin) {
                    flat->y[next] = overlap.y;
                    flat->height[next] = overlap.height;
                    flat->offset[next++] = q * axial->stride_a + s * axial->stride_b;
                }
            }
        }
        while (next % LR_NATIVE_LANES != 0) {
            flat->y[next] = flat->height[next] = 0.0f;
            flat->offset[next++] = 0;
        }
    }
    flat->begin[key->count] = next;
    return LR_OK;
}

/* --- kernels and memory --- */

#ifdef LR_NATIVE_AVX2
/* The processor is asked directly, because __builtin_cpu_supports of some compilers does not know AVX2. */
bool lr_native_has_avx2(void)
{
    const unsigned avx_state = 6; /* mask for the registers of SSE and AVX, which the operating system must save */
    unsigned a, b, c, d, enabled, rest;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_OSXSAVE) == 0 || (c & bit_AVX) == 0) return false;
    __asm__("xgetbv" : "=a"(enabled), "=d"(rest) : "c"(0));
    return (enabled & avx_state) == avx_state && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2) != 0;
}
#endif

const struct lr_native_kernels *lr_native_kernels_at(int index)
{
#ifdef LR_NATIVE_AVX2
    if (lr_native_has_avx2())
        return index == 0 ? &lr_native_kernels_avx2 : index == 1 ? &lr_native_kernels_baseline : NULL;
#endif
    return index == 0 ? &lr_native_kernels_baseline : NULL;
}

lr_status lr_native_view_init(struct lr_native_view *view, const struct lr_native_scene *scene)
{
    const bool is_exact = scene->params.mode == LR_MODE_EXACT;
    int64_t cells = 0, columns = 0; /* largest numbers over all modules */
    for (int m = 0; m < scene->params.scanner->num_modules; m++) {
        cells = scene->modules[m].num_cells > cells ? scene->modules[m].num_cells : cells;
        columns = scene->modules[m].num_columns > columns ? scene->modules[m].num_columns : columns;
    }

    /* strips: largest number of strips of a crossing; slots: largest number of slots of one strip and one point */
    const int64_t strips = is_exact ? (4 * columns + 4) * LR_NATIVE_MAX_PARTS : columns * scene->params.rays;
    const int64_t bent = (cells + LR_NATIVE_LANES) * (is_exact ? cells : scene->params.rays);
    const int64_t flat = 2 * cells * (LR_NATIVE_MAX_PARTS + 1) + LR_NATIVE_LANES;
    const int64_t most = bent > flat ? bent : flat;
    const int64_t slots = (most + LR_NATIVE_LANES - 1) / LR_NATIVE_LANES * LR_NATIVE_LANES;

    *view = (struct lr_native_view){.scene = scene, .kernels = lr_native_kernels_at(0), .flat.key.pair = -1};
    view->strips = lr_alloc(strips, sizeof(*view->strips), "strips", scene->params.log);
    view->memory = lr_alloc(9 * slots + ALIGNMENT, sizeof(float), "elements", scene->params.log);
    if (view->strips == NULL || view->memory == NULL) {
        lr_native_view_finish(view);
        return LR_FAILED;
    }
    view->slots.capacity = slots;
    view->slots.weight =
        (float *)(void *)((char *)view->memory + (ALIGNMENT - (uintptr_t)view->memory % ALIGNMENT) % ALIGNMENT);
    view->slots.overlaps = view->slots.weight + slots;
    view->slots.offset = (int32_t *)(view->slots.overlaps + 4 * slots);
    view->slots.scratch = view->slots.offset + slots;
    return LR_OK;
}

void lr_native_view_finish(struct lr_native_view *view)
{
    lr_free_all(view->strips, view->memory);
    flat_finish(&view->flat);
    *view = (struct lr_native_view){.flat.key.pair = -1};
}

/* --- along the axis --- */

struct lr_native_axial lr_native_make_axial(const struct lr_native_scene *scene, int64_t pair, bool i_is_primary)
{
    const struct lr_native_pair *at = &scene->pairs[pair];
    const struct lr_native_module *i = &scene->modules[at->i], *j = &scene->modules[at->j];
    const struct lr_native_module *a = i_is_primary ? i : j, *b = i_is_primary ? j : i;
    struct lr_native_axial axial = {
        .pitch_a = (float)a->pitch_along,
        .pitch_b = (float)b->pitch_along,
        .face_b = (float)b->face_along,
        .gap_b = (float)(0.5 * (b->pitch_along - b->face_along)),
        .num_a = a->num_cells,
        .num_b = b->num_cells,
        .stride_a = i_is_primary ? j->num_cells : 1,
        .stride_b = i_is_primary ? 1 : j->num_cells,
        .exact_pitch_a = a->pitch_along,
        .exact_face_a = a->face_along,
        .exact_pitch_b = b->pitch_along,
        .exact_face_b = b->face_along,
        .rays = scene->params.rays,
    };
    lr_native_look_at(&axial, 0, 1);
    return axial;
}

/* A visit in progress. */
struct scan {
    struct lr_native_view *view;
    const struct lr_native_visit *visit;
    const struct lr_native_column *column;
    struct lr_native_axial axials[LR_NATIVE_MAX_PARTS]; /* cells along the axis, for each piece of a face */
    int num_axials;
    double starts[2]; /* start of the first cell of the primary and of the secondary */
    bool i_is_primary;
    int begin, end; /* points with this primary */
};

/* Divides a face of the primary into `parts` equal pieces, and makes the cells of each piece. */
static void cut_axials(struct scan *scan, int parts)
{
    for (int n = 0; n < parts && parts != scan->num_axials; n++) {
        scan->axials[n] = scan->axials[0];
        lr_native_look_at(&scan->axials[n], n, parts);
    }
    scan->num_axials = parts;
}

/* Visits points scan->begin .. scan->end - 1, which have the same primary. */
static lr_status visit_roles(struct scan *scan, const struct lr_native_side sides[2])
{
    struct lr_native_view *view = scan->view;
    const struct lr_native_scene *scene = view->scene;
    const struct lr_native_visit *visit = scan->visit;
    const struct lr_native_column *column = scan->column;
    const bool is_exact = scene->params.mode == LR_MODE_EXACT;
    const struct lr_native_crossing crossing = lr_native_cross(sides, scan->i_is_primary);
    const int num_strips = lr_native_find_strips(scene, &crossing, &visit->range, view->strips);
    if (num_strips == 0) return LR_OK;
    scan->axials[0] = lr_native_make_axial(scene, visit->pair, scan->i_is_primary);
    scan->num_axials = 1;
    scan->starts[0] = crossing.primary.module->start_along;
    scan->starts[1] = crossing.secondary.module->start_along;
    if (is_exact && crossing.tau[1] == 0.0) {
        const struct lr_native_strip *strip = &view->strips[0];
        cut_axials(scan, strip->parts);
        const struct lr_native_flat_key key = {.pair = visit->pair,
                                               .i_is_primary = scan->i_is_primary,
                                               .tau = strip->tau_exactly,
                                               .parts = strip->parts,
                                               .along = column->along,
                                               .count = column->count,
                                               .starts = {scan->starts[0], scan->starts[1]}};
        LR_TRY(flat_fill(&view->flat, &key, scan->axials, scene->params.log));
    }
    for (int k = 0; k < num_strips; k++) {
        const struct lr_native_strip *strip = &view->strips[k];
        if (!lr_native_columns_allowed(scene, visit->pair, strip->ci, strip->cj)) continue;
        struct lr_native_part part = {
            .block = (int64_t)strip->ci * scene->modules[scene->pairs[visit->pair].j].num_columns + strip->cj,
            .ci = strip->ci,
            .cj = strip->cj,
            .weight = view->slots.weight,
            .offset = view->slots.offset,
        };
        cut_axials(scan, strip->parts);
        for (part.k = scan->begin; part.k < scan->end; part.k++) {
            if (column->wanted != NULL && column->wanted[part.k] == 0.0f) continue;
            if (is_exact && strip->dtau == 0.0f) {
                const struct lr_native_flat *flat = &view->flat;
                const int begin = flat->begin[part.k];
                const float *overlaps[2] = {flat->y + begin, flat->height + begin};
                part.offset = flat->offset + begin;
                part.count = flat->begin[part.k + 1] - begin;
                view->kernels->straight(strip, overlaps, part.count, view->slots.weight);
                if (part.count > 0) LR_TRY(visit->take(visit->user, &part));
                continue;
            }
            const double z = column->along[part.k];
            const struct lr_native_starts starts =
                lr_native_start(strip, (const double[2]){scan->starts[0] - z, scan->starts[1] - z});
            for (int n = 0; n < strip->parts; n++) {
                const struct lr_native_axial *axial = &scan->axials[n];
                part.count = is_exact ? view->kernels->exact(strip, axial, &starts, &view->slots)
                                      : view->kernels->sampled(strip, axial, &starts, &view->slots);
                if (part.count > 0) LR_TRY(visit->take(visit->user, &part));
            }
        }
    }
    return LR_OK;
}

bool lr_native_farther_is_i(const struct lr_native_scene *scene, int64_t pair, const double point[2], double along)
{
    double squared[2] = {0.0, 0.0};
    for (int n = 0; n < 2; n++) {
        const struct lr_native_module *module = &scene->modules[n == 0 ? scene->pairs[pair].i : scene->pairs[pair].j];
        const double away[3] = {module->centre[0] - point[0], module->centre[1] - point[1],
                                module->start_along + 0.5 * module->num_cells * module->pitch_along - along};
        squared[n] = away[0] * away[0] + away[1] * away[1] + away[2] * away[2];
    }
    return squared[0] - squared[1] >= -TIE * fmax(squared[0], squared[1]);
}

lr_status lr_native_visit_column(struct lr_native_view *view, const struct lr_native_visit *visit,
                                 const struct lr_native_column *column)
{
    const struct lr_native_scene *scene = view->scene;
    struct lr_native_side sides[2];
    if (!lr_native_sees(scene, visit->pair, column->point, sides)) return LR_OK;
    struct scan scan = {.view = view, .visit = visit, .column = column, .end = column->count};
    if (scene->params.mode == LR_MODE_EXACT) {
        /* Either module can be the primary, because the solid angle is the same. The result is more accurate if the
         * primary is the module from which the column is farther away. */
        scan.i_is_primary = sides[0].height >= sides[1].height;
        return visit_roles(&scan, sides);
    }

    /* Consecutive points with the same primary are visited together. */
    for (; scan.begin < column->count; scan.begin = scan.end) {
        scan.i_is_primary = lr_native_farther_is_i(scene, visit->pair, column->point, column->along[scan.begin]);
        for (scan.end = scan.begin + 1; scan.end < column->count; scan.end++)
            if (lr_native_farther_is_i(scene, visit->pair, column->point, column->along[scan.end]) != scan.i_is_primary)
                break;
        LR_TRY(visit_roles(&scan, sides));
    }
    return LR_OK;
}

struct lr_native_range lr_native_whole_pair(const struct lr_native_scene *scene, int64_t pair, const lr_selection *part)
{
    const struct lr_native_pair *at = &scene->pairs[pair];
    const int modules[2] = {at->i, at->j};
    struct lr_native_range range = {.end = {scene->modules[at->i].num_columns, scene->modules[at->j].num_columns}};
    if (part == NULL || part->interleave <= 1) return range;
    range.lors = scene->params.lors;
    range.part = part;
    for (int n = 0; n < 2; n++) {
        const struct lr_native_module *module = &scene->modules[modules[n]];
        const struct lr_module_places *places = &scene->params.lors->angles->modules[modules[n]];
        const int *crystals = scene->params.scanner->modules[modules[n]].crystals;
        if ((module->step != 1) != places->is_v || crystals[places->is_v] != module->num_columns)
            range.part = NULL; /* a crystal column of this module runs around the axis, so it cannot be skipped */
        range.first += places->first;
        range.step[n] = places->step;
    }
    return range;
}

/* --- jobs on all threads --- */

/* The time between two progress reports, s. It is short enough for the user to stop soon, and long enough to cost
 * little. */
#define ASK_SECONDS 0.02

/* Jobs on several threads, their progress, and the status that stops them. */
struct lr_native_run_state {
    struct lr_native *native;
    const struct lr_native_work *work;
    int64_t num_jobs;
    atomic_llong num_begun, num_done;
    atomic_int status; /* first status that is not LR_OK */
    double next_s;     /* time of the next report, s; used only by the thread that started the work */
};

lr_status lr_native_ask(struct lr_native_view *view)
{
    struct lr_native_run_state *run = view->run;
    if (run == NULL) return LR_OK;
    if (view->reports && lr_clock_seconds() >= run->next_s) {
        /* Jobs that are running count as half done once the first job has ended. */
        const double num_done = (double)atomic_load(&run->num_done);
        const double num_begun = (double)atomic_load(&run->num_begun);
        const double part = num_done > 0.0 ? 0.5 * (num_done + num_begun) / (double)run->num_jobs : 0.0;
        const double done = run->work->share * part;
        const lr_status status =
            lr_progress_report(run->native->scene.params.progress, run->work->what, run->work->from + done, 1.0);
        lr_native_set_status(&run->status, status);
        run->next_s = lr_clock_seconds() + ASK_SECONDS;
    }
    return (lr_status)atomic_load_explicit(&run->status, memory_order_relaxed);
}

static void do_jobs(void *user, int64_t begin, int64_t end, int worker)
{
    struct lr_native_run_state *run = user;
    struct lr_native_view *view = &run->native->views[worker];
    view->run = run;
    view->reports = worker == 0;
    for (int64_t k = begin; k < end && lr_native_ask(view) == LR_OK; k++) {
        atomic_fetch_add(&run->num_begun, 1);
        lr_native_set_status(&run->status, run->work->job(run->work->user, k, view));
        atomic_fetch_add(&run->num_done, 1);
    }
}

lr_status lr_native_run(struct lr_native *native, const struct lr_native_work *work, int64_t num_jobs)
{
    struct lr_native_run_state run = {.native = native, .work = work, .num_jobs = num_jobs};
    lr_parallel_workers(native->num_views, num_jobs, 1, do_jobs, &run);
    for (int k = 0; k < native->num_views; k++) native->views[k].run = NULL;
    LR_TRY((lr_status)atomic_load(&run.status));
    return lr_progress_report(native->scene.params.progress, work->what, work->from + work->share, 1.0);
}

/* --- images --- */

/* Returns the index in the grid of a voxel, given its position in the order of columns. */
static int64_t grid_place(const struct lr_native_scene *scene, const int at[3])
{
    const int *size = scene->params.grid->size;
    const int64_t strides[3] = {1, size[0], (int64_t)size[0] * size[1]};
    return at[0] * strides[scene->across[0]] + at[1] * strides[scene->across[1]] + at[2] * strides[scene->axis];
}

void lr_native_to_columns(const struct lr_native_scene *scene, const float *image, float *columns)
{
    const int64_t stride = grid_place(scene, (const int[3]){0, 0, 1});
    for (int y = 0; y < scene->num_voxels[1]; y++) {
        for (int x = 0; x < scene->num_voxels[0]; x++) {
            const float *from = image + grid_place(scene, (const int[3]){x, y, 0});
            for (int z = 0; z < scene->num_voxels[2]; z++) *columns++ = from[z * stride];
        }
    }
}

void lr_native_from_columns(const struct lr_native_scene *scene, const double *columns, float *image)
{
    const int64_t stride = grid_place(scene, (const int[3]){0, 0, 1});
    const double scale = 1.0 / scene->num_all_samples;
    for (int y = 0; y < scene->num_voxels[1]; y++) {
        for (int x = 0; x < scene->num_voxels[0]; x++) {
            float *to = image + grid_place(scene, (const int[3]){x, y, 0});
            for (int z = 0; z < scene->num_voxels[2]; z++) to[z * stride] = (float)(*columns++ * scale);
        }
    }
}
