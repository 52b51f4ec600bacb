/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The cpu backend of the family `listmode`. It computes element by element, in double (docs/method/listmode.md): lines
 * through slices, and the exact kernel. */
#include "listmode/backend.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "correspondence/cpu/elements.h"
#include "listmode/hull.h"
#include "listmode/line.h"
#include "listmode/rows.h"
#include "model/lors/selection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROOT_OF_TWO_PI 2.5066282746310002

/* The number of events between two progress reports. */
enum { CHUNK = 1 << 13 };

/* --- time of flight along a line, docs/method/listmode.md, "Factor of a slice" --- */

static double standard_normal(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752);
}

/* part_below(z): the integral of the cut Gaussian below z standard deviations. sum_of_parts_below(z): the integral of
 * part_below below z. */
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

/* Returns the fraction of an event with time of flight that lies between two points of its line. */
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

struct listmode_cpu {
    struct lr_listmode_backend_params params;
    struct lr_cpu_scene scene; /* used by the exact kernel; empty for other kernels */
    struct worker *workers;    /* [params.threads], used by the exact kernel */
};

/* An event to visit, by its index among the arranged events. axis: the axis of its group. worker: number of the worker
 * that visits the event, 0 .. threads - 1. planes: the planes along z whose elements are needed. */
struct event {
    int64_t k;
    int axis, worker, planes[2];
};

/* The hull and the crystals of an event, and its worker's memory. */
struct exact_visit {
    struct lr_listmode_hull hull;
    struct worker *worker;
    struct lr_cpu_crystal crystals[2];
};

/* Computes an element of a voxel: the mean time-of-flight factor T along the voxel (1 without time of flight), times
 * the mean of the solid angles seen from the voxel's sample points. The solid angles are those of the cluster paper. */
static double voxel_element(struct exact_visit *visit, const int voxel[3])
{
    const struct lr_listmode_model *model = visit->hull.model;
    const struct lr_listmode_line *line = &visit->hull.line;
    const int *num = model->samples, count = num[0] * num[1] * num[2], *size = model->grid.size;
    struct worker *worker = visit->worker;
    double weight = 1;
    if (line->sigma_mm != 0) {
        const double place = lr_listmode_voxel_place(&visit->hull, voxel), half = 0.5 * visit->hull.extent_mm;
        weight = held_between(line, place - half, place + half) / visit->hull.extent_mm;
        if (!(weight > 0)) return 0;
    }

    const int64_t row = voxel[0] + (int64_t)size[0] * (voxel[1] + (int64_t)size[1] * voxel[2]);
    const int modules[2] = {visit->crystals[0].module, visit->crystals[1].module};
    double sum = 0;
    for (int k = 0; k < count; k++) {
        const lr_sample sample = {row, {num[0], num[1], num[2]}, k};
        double point[3];
        lr_grid_sample_point(&model->grid, &sample, point);
        lr_cpu_view_place(&worker->view, point, worker->view.scene->may_hide ? NULL : modules);
        sum += lr_cpu_exact_element(&worker->view, &worker->exact, visit->crystals);
    }
    return weight * (sum / count);
}

static void visit_samples(const struct listmode_cpu *cpu, const struct event *event,
                          const struct lr_listmode_visitor *visitor)
{
    struct exact_visit visit = {.worker = &cpu->workers[event->worker]};
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
        /* Finds the voxels of the slice that overlap the hull of the faces, in the event's planes. */
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
                    const double value = voxel_element(&visit, (const int[3]){x, y, z});
                    if (value > 0) visitor->take(visitor->user, row, value);
                }
            }
        }
    }
}

/* --- lines and tubes --- */

/* A slice that a line crosses. Its factor is divided among its voxels. */
struct slice {
    const struct lr_listmode_model *model;
    const struct lr_listmode_line *line;
    const struct lr_listmode_walk *walk;
    int index;
    double at[2]; /* point where the line crosses the middle of the slice, in voxels */
    double factor;
};

/* Returns the time-of-flight factor T of lr/listmode.h, or the factor in the paper's equation if the model is
 * `as_paper`. */
static double slice_factor(const struct lr_listmode_model *model, const struct lr_listmode_line *line,
                           const struct lr_listmode_walk *walk, int index)
{
    const double middle = walk->place + index * walk->chord, sigma = line->sigma_mm;
    if (!model->tube.as_paper) {
        const double low = fmax(middle - 0.5 * walk->chord, walk->begin);
        const double high = fmin(middle + 0.5 * walk->chord, walk->end);
        if (!(high > low)) return 0.0;
        return sigma == 0 ? high - low : held_between(line, low, high);
    }
    if (middle < walk->begin || middle > walk->end) return 0.0;
    if (line->bin_mm > 0) {
        const double off = middle - line->tof_mm, half = 0.5 * line->bin_mm;
        const double density = (part_below((off + half) / sigma) - part_below((off - half) / sigma)) / line->bin_mm;
        return ROOT_OF_TWO_PI * LR_LISTMODE_HELD * sigma * density;
    }
    const double off = sigma > 0 ? (middle - line->tof_mm) / sigma : 0.0;
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

/* Returns a voxel's share, from the squared distance of its centre from the line. */
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
                                    .factor = slice_factor(model, &line, &walk, s)};
        if (!(slice.factor > 0)) continue;
        if (model->kernel == LR_LISTMODE_LINE) {
            /* A thin line has shares in the four voxels around the point, by bilinear interpolation. */
            const double low[2] = {floor(slice.at[0]), floor(slice.at[1])};
            for (int corner = 0; corner < 4; corner++) {
                const int at[2] = {(int)low[0] + corner % 2, (int)low[1] + corner / 2};
                const double share = (1.0 - fabs(slice.at[0] - at[0])) * (1.0 - fabs(slice.at[1] - at[1]));
                take_voxel(&slice, at, slice.factor * share, visitor);
            }
            continue;
        }

        /* Finds the voxels of a rectangle around the ellipse of the tube. */
        int low[2], high[2];
        double halves[2];
        lr_listmode_tube_halves(model, &line, &walk, halves);
        for (int n = 0; n < 2; n++) {
            low[n] = (int)ceil(slice.at[n] - halves[n]);
            high[n] = (int)floor(slice.at[n] + halves[n]);
        }
        double sum = model->tube.as_paper ? 1.0 : 0.0;
        for (int v = low[1]; !model->tube.as_paper && v <= high[1]; v++)
            for (int u = low[0]; u <= high[0]; u++) sum += tube_share(&slice, (const int[2]){u, v});
        for (int v = low[1]; v <= high[1]; v++) {
            for (int u = low[0]; u <= high[0]; u++) {
                const int at[2] = {u, v};
                const double share = tube_share(&slice, at);
                take_voxel(&slice, at, share > 0 ? slice.factor * share / sum : 0.0, visitor);
            }
        }
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

/* --- projections --- */

/* A projection, and the events that it works on now: arranged events begin .. end - 1 of one group. */
struct projection {
    const struct listmode_cpu *cpu;
    bool is_forward;
    const double *from; /* back-projection only; NULL = all values are 1 */
    double *to;
    struct lr_listmode_places places; /* index of each event's value */
    int axis;
    int64_t begin, end;
};

/* The sum of an event's elements, each multiplied by the value of its voxel. */
struct event_sum {
    const double *image;
    double value;
};

/* The value of an event, and the image to which its elements are added. A worker adds only to its own voxels begin ..
 * end - 1. */
struct event_share {
    double *image;
    double value;
    int64_t begin, end;
};

static void add_to_sum(void *user, int64_t voxel, double element)
{
    struct event_sum *sum = user;
    sum->value += element * sum->image[voxel];
}

static void add_to_image(void *user, int64_t voxel, double element)
{
    const struct event_share *share = user;
    if (voxel >= share->begin && voxel < share->end) share->image[voxel] += element * share->value;
}

static void project_events(void *user, int64_t begin, int64_t end, int worker)
{
    const struct projection *projection = user;
    const struct listmode_cpu *cpu = projection->cpu;
    for (int64_t k = projection->begin + begin; k < projection->begin + end; k++) {
        const int64_t place = lr_listmode_place(&projection->places, cpu->params.events->number[k]);
        if (place < 0) continue;
        struct event_sum sum = {projection->from, 0.0};
        const struct event event = {k, projection->axis, worker, {0, cpu->params.model->grid.size[2]}};
        visit_event(cpu, &event, &(struct lr_listmode_visitor){add_to_sum, &sum});
        projection->to[place] = sum.value;
    }
}

/* Each worker adds to some planes of voxels, and visits all events in order. */
static void project_back_to_planes(void *user, int64_t begin, int64_t end, int worker)
{
    const struct projection *projection = user;
    const struct listmode_cpu *cpu = projection->cpu;
    const int64_t plane = (int64_t)cpu->params.model->grid.size[0] * cpu->params.model->grid.size[1];
    for (int64_t k = projection->begin; k < projection->end; k++) {
        const int64_t place = lr_listmode_place(&projection->places, cpu->params.events->number[k]);
        if (place < 0) continue;
        const double value = projection->from != NULL ? projection->from[place] : 1.0;
        struct event_share share = {projection->to, value, begin * plane, end * plane};
        const struct event event = {k, projection->axis, worker, {(int)begin, (int)end}};
        visit_event(cpu, &event, &(struct lr_listmode_visitor){add_to_image, &share});
    }
}

static lr_status run(struct projection *projection, const lr_selection *part)
{
    const struct listmode_cpu *cpu = projection->cpu;
    const struct lr_listmode_events *events = cpu->params.events;
    const int threads = cpu->params.threads, planes = cpu->params.model->grid.size[2];
    const double total = (double)lr_selection_count(&events->layout, part);
    struct lr_listmode_places *places = &projection->places;
    double done = 0; /* number of selected events so far */
    lr_status status = LR_OK;
    for (int64_t r = 0; status == LR_OK && r < events->layout.num_pairs; r++) {
        const int64_t *groups = events->groups[r];
        status = lr_listmode_places_find(places, events, part, r, cpu->params.log);
        for (int g = 0; status == LR_OK && places->count > 0 && g < LR_LISTMODE_GROUPS; g++) {
            projection->axis = lr_listmode_group_axis(g);
            for (int64_t begin = groups[g]; status == LR_OK && begin < groups[g + 1]; begin += CHUNK) {
                const int64_t end = begin + CHUNK < groups[g + 1] ? begin + CHUNK : groups[g + 1];
                status = lr_progress_report(cpu->params.progress,
                                            projection->is_forward ? "projecting" : "back-projecting", done, total);
                if (status != LR_OK) break;
                projection->begin = begin;
                projection->end = end;
                if (projection->is_forward)
                    lr_parallel_workers(threads, end - begin, 64, project_events, projection);
                else
                    lr_parallel_workers(threads, planes, (planes + threads - 1) / threads, project_back_to_planes,
                                        projection);
                done += places->share * (double)(end - begin);
            }
        }
    }
    lr_listmode_places_finish(places);
    return status;
}

static lr_status project(void *self, bool is_forward, const lr_selection *part, const lr_vector *in, lr_vector *out)
{
    struct projection projection = {
        .cpu = self, .is_forward = is_forward, .from = in != NULL ? in->values : NULL, .to = out->values};
    if (!is_forward) memset(projection.to, 0, (size_t)out->count * sizeof(*projection.to));
    return run(&projection, part);
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
    for (int k = 0; cpu->workers != NULL && k < cpu->params.threads; k++) {
        lr_cpu_exact_finish(&cpu->workers[k].exact);
        lr_cpu_view_finish(&cpu->workers[k].view);
    }
    free(cpu->workers);
    lr_cpu_scene_finish(&cpu->scene);
    free(cpu);
}

lr_status lr_listmode_cpu_create(const struct lr_listmode_backend_params *params, struct lr_backend *backend)
{
    static const struct lr_backend_fns fns = {.name = "cpu",
                                              .computes_in_double = true,
                                              .has_parts = true,
                                              .voxel_bytes = 8,
                                              .project = project,
                                              .rows = rows,
                                              .destroy = destroy};
    struct listmode_cpu *cpu = lr_alloc(1, sizeof(*cpu), "the cpu backend", params->log);
    if (cpu == NULL) return LR_FAILED;
    cpu->params = *params;
    lr_status status = LR_OK;
    if (params->model->kernel == LR_LISTMODE_EXACT) {
        const struct lr_backend_params scene = {.scanner = params->model->scanner,
                                                .grid = &params->model->grid,
                                                .mode = LR_MODE_EXACT,
                                                .threads = params->threads,
                                                .log = params->log};
        status = lr_cpu_scene_init(&cpu->scene, &scene);
        if (status == LR_OK) cpu->workers = lr_alloc(params->threads, sizeof(*cpu->workers), "threads", params->log);
        status = cpu->workers != NULL ? status : LR_FAILED;
        for (int k = 0; status == LR_OK && k < params->threads; k++) {
            status = lr_cpu_view_init(&cpu->workers[k].view, &cpu->scene);
            if (status == LR_OK) status = lr_cpu_exact_init(&cpu->workers[k].exact, &cpu->scene);
        }
    }
    if (status != LR_OK) {
        destroy(cpu);
        return LR_FAILED;
    }
    lr_backend_on_host(backend, &fns, cpu, params->threads, NULL);
    return LR_OK;
}
