/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The cpu backend of the family `listmode`, element by element, in double (docs/method/listmode.md): lines through
 * slices, and the exact kernel. */
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "cpu/elements.h"
#include "listmode/backend.h"
#include "listmode/hull.h"
#include "listmode/line.h"
#include "listmode/places.h"
#include "listmode/rows.h"
#include "listmode/tube.h"
#include "model/lors/selection.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT_OF_TWO_PI 2.5066282746310002

/* Events between two reports of progress. */
enum { CHUNK = 1 << 13 };

/* --- time of flight along a line, docs/method/listmode.md, "Factor of a slice" --- */

static double standard_normal(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752);
}

/* The part of the cut Gaussian below z standard deviations, and its integral over z from far below. */
static double part_below(double z)
{
    const double cut = LR_LISTMODE_CUT, out = standard_normal(-cut);
    return z <= -cut ? 0.0 : z >= cut ? 1.0 : (standard_normal(z) - out) / LR_LISTMODE_HELD;
}

static double sum_of_parts_below(double z)
{
    const double cut = LR_LISTMODE_CUT, most = fmin(z, cut);
    const double fall = exp(-0.5 * most * most) - exp(-0.5 * cut * cut);
    return z <= -cut
               ? 0.0
               : (most * (standard_normal(most) - standard_normal(-cut)) + fall / ROOT_OF_TWO_PI) / LR_LISTMODE_HELD +
                     fmax(z - cut, 0.0);
}

/* The density at a place of the line of an event with a bin, per mm. */
static double density(const struct lr_listmode_line *line, double place)
{
    const double off = place - line->tof_mm, half = 0.5 * line->bin_mm;
    return (part_below((off + half) / line->sigma_mm) - part_below((off - half) / line->sigma_mm)) / line->bin_mm;
}

/* The part of an event with time of flight that lies between two places of its line. */
static double held_between(const struct lr_listmode_line *line, double low, double high)
{
    const double sigma = line->sigma_mm, half = 0.5 * line->bin_mm;
    const double from = low - line->tof_mm, to = high - line->tof_mm;
    if (half == 0) return part_below(to / sigma) - part_below(from / sigma);
    return sigma / line->bin_mm *
           (sum_of_parts_below((to + half) / sigma) - sum_of_parts_below((from + half) / sigma) -
            sum_of_parts_below((to - half) / sigma) + sum_of_parts_below((from - half) / sigma));
}

/* --- the exact kernel: elements of single LORs in exact mode, docs/method/listmode.md, "Exact elements" --- */

/* Working memory of one thread. */
struct worker {
    struct lr_cpu_view view;
    struct lr_cpu_exact exact;
};

struct exact {
    struct lr_cpu_scene scene;
    struct worker *workers; /* [params.threads] */
};

static lr_status exact_init(struct exact *exact, const struct lr_listmode_backend_params *params)
{
    const struct lr_backend_params scene = {.scanner = params->model->scanner,
                                            .grid = &params->model->grid,
                                            .mode = LR_MODE_EXACT,
                                            .threads = params->threads,
                                            .log = params->log};
    LR_TRY(lr_cpu_scene_init(&exact->scene, &scene));
    exact->workers = lr_alloc(params->threads, sizeof(*exact->workers), "threads", params->log);
    lr_status status = exact->workers != NULL ? LR_OK : LR_FAILED;
    for (int k = 0; status == LR_OK && k < params->threads; k++) {
        status = lr_cpu_view_init(&exact->workers[k].view, &exact->scene);
        status = status == LR_OK ? lr_cpu_exact_init(&exact->workers[k].exact, &exact->scene) : status;
    }
    return status;
}

static void exact_finish(struct exact *exact, int threads)
{
    for (int k = 0; exact->workers != NULL && k < threads; k++) {
        lr_cpu_exact_finish(&exact->workers[k].exact);
        lr_cpu_view_finish(&exact->workers[k].view);
    }
    free(exact->workers);
    lr_cpu_scene_finish(&exact->scene);
}

struct listmode_cpu {
    struct lr_listmode_backend_params params;
    struct exact exact; /* of the exact kernel; else empty */
};

/* The event at place k of the arrays, in a group of this axis; the thread that asks, 0 .. threads - 1; and
 * the planes across z in which it wants elements, first and behind the last. */
struct event {
    int64_t k;
    int axis, worker, planes[2];
};

/* T over the voxel's extent, per mm of it; 1 without time of flight. */
static double time_weight(const struct lr_listmode_hull *hull, const int voxel[3])
{
    const struct lr_listmode_line *line = &hull->line;
    const double place = lr_listmode_voxel_place(hull, voxel);
    if (line->sigma_mm == 0) return 1;
    const double half = 0.5 * hull->extent_mm;
    return held_between(line, place - half, place + half) / hull->extent_mm;
}

/* One event and the thread that has it. */
struct exact_visit {
    struct lr_listmode_hull hull;
    struct worker *worker;
    struct lr_cpu_crystal crystals[2];
};

/* The mean over a voxel's sample points, as in the family correspondence. */
static double voxel_element(struct exact_visit *visit, int64_t row)
{
    const struct lr_listmode_model *model = visit->hull.model;
    const int *num = model->samples, count = num[0] * num[1] * num[2];
    struct worker *worker = visit->worker;
    double sum = 0;
    for (int k = 0; k < count; k++) {
        const lr_sample sample = {row, {num[0], num[1], num[2]}, k};
        double point[3];
        lr_grid_sample_point(&model->grid, &sample, point);
        if (worker->view.scene->may_hide) {
            lr_cpu_view_place(&worker->view, point);
        } else {
            const int modules[2] = {visit->crystals[0].module, visit->crystals[1].module};
            lr_cpu_view_place_two(&worker->view, point, modules);
        }
        sum += lr_cpu_exact_element(&worker->view, &worker->exact, visit->crystals);
    }
    return sum / count;
}

static void visit_samples(const struct listmode_cpu *cpu, const struct event *event,
                          const struct lr_listmode_visitor *visitor)
{
    struct exact_visit visit = {.worker = &cpu->exact.workers[event->worker]};
    const int64_t at[2] = {event->k, event->axis};
    int slices[2];
    lr_listmode_hull_of(&visit.hull, cpu->params.model, cpu->params.events, at);
    lr_listmode_hull_slices(&visit.hull, slices);
    for (int k = 0; k < 2; k++) {
        const struct lr_listmode_face *face = &visit.hull.faces[k];
        visit.crystals[k] = (struct lr_cpu_crystal){face->module, {face->at[0], face->at[1]}};
    }
    const int *num = cpu->params.model->samples, *size = cpu->params.model->grid.size, *planes = event->planes;
    for (int s = slices[0]; s < slices[1]; s++) {
        /* Voxels of the slice that the hull of the faces meets, in the event's planes. */
        int voxels[3][2];
        lr_listmode_hull_samples(&visit.hull, s, voxels);
        for (int k = 0; k < 3; k++) {
            voxels[k][1] = (voxels[k][1] + num[k] - 1) / num[k];
            voxels[k][0] = voxels[k][0] / num[k];
        }
        voxels[2][0] = voxels[2][0] > planes[0] ? voxels[2][0] : planes[0];
        voxels[2][1] = voxels[2][1] < planes[1] ? voxels[2][1] : planes[1];
        for (int z = voxels[2][0]; z < voxels[2][1]; z++) {
            for (int y = voxels[1][0]; y < voxels[1][1]; y++) {
                for (int x = voxels[0][0]; x < voxels[0][1]; x++) {
                    const int64_t row = x + (int64_t)size[0] * (y + (int64_t)size[1] * z);
                    const double weight = time_weight(&visit.hull, (const int[3]){x, y, z});
                    const double value = weight > 0 ? weight * voxel_element(&visit, row) : 0;
                    if (value > 0) visitor->take(visitor->user, row, value);
                }
            }
        }
    }
}

/* --- lines and tubes --- */

/* A slice, and the shares among whose voxels it divides its factor. */
struct slice {
    const struct lr_listmode_model *model;
    const struct lr_listmode_line *line;
    const struct lr_listmode_walk *walk;
    int index;
    double at[2]; /* where the line crosses its middle, in voxels */
    double factor;
};

/* T of lr/listmode.h. */
static double slice_factor(const struct lr_listmode_line *line, const struct lr_listmode_walk *walk, int index)
{
    const double middle = walk->place + index * walk->chord;
    const double low = fmax(middle - 0.5 * walk->chord, walk->begin);
    const double high = fmin(middle + 0.5 * walk->chord, walk->end);
    if (!(high > low)) return 0.0;
    if (line->sigma_mm == 0) return high - low;
    return held_between(line, low, high);
}

static double slice_factor_as_paper(const struct lr_listmode_line *line, const struct lr_listmode_walk *walk, int index)
{
    const double middle = walk->place + index * walk->chord;
    if (middle < walk->begin || middle > walk->end) return 0.0;
    if (line->bin_mm > 0) return ROOT_OF_TWO_PI * LR_LISTMODE_HELD * line->sigma_mm * density(line, middle);
    const double off = line->sigma_mm > 0 ? (middle - line->tof_mm) / line->sigma_mm : 0.0;
    return exp(-0.5 * off * off);
}

static void take_voxel(const struct slice *slice, const int at[2], double element,
                       const struct lr_listmode_visitor *visitor)
{
    const struct lr_listmode_walk *walk = slice->walk;
    const int *size = slice->model->grid.size;
    int voxel[3];
    voxel[slice->line->axis] = slice->index;
    for (int k = 0; k < 2; k++) {
        if (at[k] < 0 || at[k] >= size[walk->across[k]]) return;
        voxel[walk->across[k]] = at[k];
    }
    if (element > 0)
        visitor->take(visitor->user, voxel[0] + (int64_t)size[0] * (voxel[1] + (int64_t)size[1] * voxel[2]), element);
}

/* The four voxels around the crossing. */
static void share_by_line(const struct slice *slice, const struct lr_listmode_visitor *visitor)
{
    const double low[2] = {floor(slice->at[0]), floor(slice->at[1])};
    for (int k = 0; k < 4; k++) {
        const int at[2] = {(int)low[0] + k % 2, (int)low[1] + k / 2};
        const double share = (1.0 - fabs(slice->at[0] - at[0])) * (1.0 - fabs(slice->at[1] - at[1]));
        take_voxel(slice, at, slice->factor * share, visitor);
    }
}

/* Share of a voxel by the square of its centre's distance from the line. */
static double tube_share(const struct slice *slice, const int at[2])
{
    const lr_listmode_tube *tube = &slice->model->tube;
    double squared_off = 0, along = 0;
    for (int k = 0; k < 2; k++) {
        const int axis = slice->walk->across[k];
        const double off = (at[k] - slice->at[k]) * slice->model->grid.voxel_mm[axis];
        squared_off += off * off;
        along += off * slice->line->direction[axis];
    }
    const double square = squared_off - along * along, rim = lr_listmode_rim(tube); /* equation 3 */
    const double fall = (rim - square) / (rim - rim / (1.0 + LR_LISTMODE_RIM));
    return fall > 0 ? fmin(fall, 1.0) * lr_listmode_tube_value(tube, sqrt(fmax(square, 0.0))) : 0.0;
}

static void share_by_tube(const struct slice *slice, const struct lr_listmode_visitor *visitor)
{
    struct {
        int low[2], high[2];
    } box; /* voxels of the rectangle around the tube's ellipse */
    double halves[2];
    lr_listmode_tube_halves(slice->model, slice->line, slice->walk, halves);
    for (int k = 0; k < 2; k++) {
        box.low[k] = (int)ceil(slice->at[k] - halves[k]);
        box.high[k] = (int)floor(slice->at[k] + halves[k]);
    }
    double sum = slice->model->tube.as_paper ? 1.0 : 0.0;
    for (int v = box.low[1]; !slice->model->tube.as_paper && v <= box.high[1]; v++)
        for (int u = box.low[0]; u <= box.high[0]; u++) sum += tube_share(slice, (const int[2]){u, v});
    for (int v = box.low[1]; v <= box.high[1]; v++) {
        for (int u = box.low[0]; u <= box.high[0]; u++) {
            const int at[2] = {u, v};
            const double share = tube_share(slice, at);
            take_voxel(slice, at, share > 0 ? slice->factor * share / sum : 0.0, visitor);
        }
    }
}

static void visit_slices(const struct listmode_cpu *cpu, int64_t k, int axis, const struct lr_listmode_visitor *visitor)
{
    const struct lr_listmode_model *model = cpu->params.model;
    struct lr_listmode_line line;
    struct lr_listmode_walk walk;
    int slices[2];
    lr_listmode_line_of(cpu->params.events, k, axis, &line);
    lr_listmode_walk_of(&line, &model->grid, &walk);
    lr_listmode_slices(&walk, slices);
    for (int s = slices[0]; s < slices[1]; s++) {
        const struct slice slice = {.model = model,
                                    .line = &line,
                                    .walk = &walk,
                                    .index = s,
                                    .at = {walk.position[0] + s * walk.step[0], walk.position[1] + s * walk.step[1]},
                                    .factor =
                                        (model->tube.as_paper ? slice_factor_as_paper : slice_factor)(&line, &walk, s)};
        if (slice.factor > 0) (model->kernel == LR_LISTMODE_LINE ? share_by_line : share_by_tube)(&slice, visitor);
    }
}

static void visit_event(const struct listmode_cpu *cpu, const struct event *event,
                        const struct lr_listmode_visitor *visitor)
{
    if (cpu->params.model->kernel == LR_LISTMODE_EXACT)
        visit_samples(cpu, event, visitor);
    else
        visit_slices(cpu, event->k, event->axis, visitor);
}

/* --- some events at a time --- */

/* Arranged events begin .. end - 1 of one group, and where their values stand. */
struct chunk {
    const struct listmode_cpu *cpu;
    const struct lr_listmode_places *places;
    int axis;
    int64_t begin, end;
};

/* A pass over the selected events. */
struct work {
    const char *what;
    lr_status (*take)(void *user, const struct chunk *chunk);
    void *user;
    double done, total; /* selected events */
};

static lr_status work_range(const struct listmode_cpu *cpu, int64_t r, const struct lr_listmode_places *places,
                            struct work *work)
{
    const int64_t *groups = cpu->params.events->groups[r];
    for (int g = 0; g < LR_LISTMODE_GROUPS; g++) {
        for (int64_t begin = groups[g]; begin < groups[g + 1]; begin += CHUNK) {
            const int64_t end = begin + CHUNK < groups[g + 1] ? begin + CHUNK : groups[g + 1];
            const struct chunk chunk = {cpu, places, lr_listmode_group_axis(g), begin, end};
            LR_TRY(lr_progress_report(cpu->params.progress, work->what, work->done, work->total));
            LR_TRY(work->take(work->user, &chunk));
            work->done += places->share * (double)(end - begin);
        }
    }
    return LR_OK;
}

static lr_status work_part(const struct listmode_cpu *cpu, const lr_selection *part, struct work *work)
{
    const struct lr_listmode_events *events = cpu->params.events;
    struct lr_listmode_places places = {0};
    lr_status status = LR_OK;
    for (int64_t r = 0; status == LR_OK && r < events->layout.num_pairs; r++) {
        status = lr_listmode_places_find(&places, events, part, r, cpu->params.log);
        if (status == LR_OK && places.count > 0) status = work_range(cpu, r, &places, work);
    }
    lr_listmode_places_finish(&places);
    return status;
}

static double num_selected(const struct listmode_cpu *cpu, const lr_selection *part)
{
    return (double)lr_selection_count(&cpu->params.events->layout, part);
}

static int64_t place_of(const struct chunk *chunk, int64_t k)
{
    return lr_listmode_place(chunk->places, chunk->cpu->params.events->number[k]);
}

/* --- forward --- */

struct shoot {
    const double *image;
    double *values;
    const struct chunk *chunk;
};

struct sum {
    const double *image;
    double value;
};

static void add_to_sum(void *user, int64_t voxel, double element)
{
    struct sum *sum = user;
    sum->value += element * sum->image[voxel];
}

static void shoot_events(void *user, int64_t begin, int64_t end, int worker)
{
    const struct shoot *shoot = user;
    const struct chunk *chunk = shoot->chunk;
    const int planes = chunk->cpu->params.model->grid.size[2];
    for (int64_t k = chunk->begin + begin; k < chunk->begin + end; k++) {
        const int64_t place = place_of(chunk, k);
        struct sum sum = {shoot->image, 0.0};
        if (place >= 0) {
            const struct event event = {k, chunk->axis, worker, {0, planes}};
            visit_event(chunk->cpu, &event, &(struct lr_listmode_visitor){add_to_sum, &sum});
            shoot->values[place] = sum.value;
        }
    }
}

static lr_status shoot_chunk(void *user, const struct chunk *chunk)
{
    struct shoot *shoot = user;
    shoot->chunk = chunk;
    lr_parallel_for(chunk->cpu->params.threads, chunk->end - chunk->begin, 64, shoot_events, shoot);
    return LR_OK;
}

static lr_status forward(void *self, const lr_selection *part, const lr_vector *image, lr_vector *values)
{
    struct shoot shoot = {.image = image->values, .values = values->values};
    struct work work = {.what = "projecting", .take = shoot_chunk, .user = &shoot, .total = num_selected(self, part)};
    return work_part(self, part, &work);
}

/* --- back: a worker owns planes of voxels, and meets all events in order --- */

struct gather {
    const double *values; /* NULL: 1 */
    double *image;
    const struct chunk *chunk;
};

struct share {
    double *image;
    double value;
    int64_t begin, end; /* of the voxels that are the worker's */
};

static void add_to_image(void *user, int64_t voxel, double element)
{
    const struct share *share = user;
    if (voxel >= share->begin && voxel < share->end) share->image[voxel] += element * share->value;
}

static void gather_planes(void *user, int64_t begin, int64_t end, int worker)
{
    const struct gather *gather = user;
    const struct chunk *chunk = gather->chunk;
    const int *size = chunk->cpu->params.model->grid.size;
    const int64_t plane = (int64_t)size[0] * size[1];
    for (int64_t k = chunk->begin; k < chunk->end; k++) {
        const int64_t place = place_of(chunk, k);
        if (place >= 0) {
            struct share share = {gather->image, gather->values != NULL ? gather->values[place] : 1.0, begin * plane,
                                  end * plane};
            const struct event event = {k, chunk->axis, worker, {(int)begin, (int)end}};
            visit_event(chunk->cpu, &event, &(struct lr_listmode_visitor){add_to_image, &share});
        }
    }
}

static lr_status gather_chunk(void *user, const struct chunk *chunk)
{
    struct gather *gather = user;
    const int planes = chunk->cpu->params.model->grid.size[2], threads = chunk->cpu->params.threads;
    gather->chunk = chunk;
    lr_parallel_for(threads, planes, (planes + threads - 1) / threads, gather_planes, gather);
    return LR_OK;
}

static lr_status back(void *self, const lr_selection *part, const lr_vector *values, lr_vector *image)
{
    struct gather gather = {.values = values != NULL ? values->values : NULL, .image = image->values};
    struct work work = {
        .what = "back-projecting", .take = gather_chunk, .user = &gather, .total = num_selected(self, part)};
    memset(gather.image, 0, (size_t)image->count * sizeof(*gather.image));
    return work_part(self, part, &work);
}

static void visit(const void *self, int64_t k, int axis, const struct lr_listmode_visitor *visitor)
{
    const struct listmode_cpu *cpu = self;
    const struct event event = {k, axis, 0, {0, cpu->params.model->grid.size[2]}};
    visit_event(cpu, &event, visitor);
}

static lr_status rows(void *self, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    const struct listmode_cpu *cpu = self;
    const struct lr_listmode_row_source source = {.events = cpu->params.events,
                                                  .visit = visit,
                                                  .self = cpu,
                                                  .log = cpu->params.log,
                                                  .progress = cpu->params.progress};
    return lr_listmode_rows(&source, wanted, sink);
}

static void destroy(void *self)
{
    struct listmode_cpu *cpu = self;
    if (cpu->params.model->kernel == LR_LISTMODE_EXACT) exact_finish(&cpu->exact, cpu->params.threads);
    free(cpu);
}

lr_status lr_listmode_cpu_create(const struct lr_listmode_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {.name = "cpu",
                                              .computes_in_double = true,
                                              .has_parts = true,
                                              .voxel_bytes = 8,
                                              .forward = forward,
                                              .back = back,
                                              .rows = rows,
                                              .destroy = destroy};
    struct listmode_cpu *cpu = lr_alloc(1, sizeof(*cpu), "the cpu backend", params->log);
    if (cpu == NULL) return LR_FAILED;
    cpu->params = *params;
    if (params->model->kernel == LR_LISTMODE_EXACT && exact_init(&cpu->exact, params) != LR_OK) {
        destroy(cpu);
        return LR_FAILED;
    }
    backend->fns = &fns;
    backend->self = cpu;
    snprintf(backend->device, sizeof(backend->device), "CPU, %d thread%s", params->threads,
             params->threads == 1 ? "" : "s");
    return LR_OK;
}
