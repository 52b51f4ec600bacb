/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cpu/listmode_exact.h"

#include "base/log.h"
#include "base/mem.h"
#include "cpu/exact.h"
#include "listmode/hull.h"

#include <math.h>
#include <stdlib.h>

#define ROOT_OF_TWO_PI 2.5066282746310002

struct worker {
    struct lr_cpu_view view;
    struct lr_cpu_exact exact;
};

struct lr_cpu_listmode_exact {
    struct lr_listmode_backend_params params;
    struct lr_cpu_scene scene;
    struct worker *workers; /* [params.threads] */
};

/* --- life --- */

static lr_status init(struct lr_cpu_listmode_exact *exact)
{
    const struct lr_listmode_backend_params *params = &exact->params;
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

struct lr_cpu_listmode_exact *lr_cpu_listmode_exact_create(const struct lr_listmode_backend_params *params)
{
    struct lr_cpu_listmode_exact *exact = lr_alloc(1, sizeof(*exact), "the exact kernel", params->log);
    if (exact == NULL) return NULL;
    exact->params = *params;
    if (init(exact) != LR_OK) {
        lr_cpu_listmode_exact_destroy(exact);
        return NULL;
    }
    return exact;
}

void lr_cpu_listmode_exact_destroy(struct lr_cpu_listmode_exact *exact)
{
    if (exact == NULL) return;
    for (int k = 0; exact->workers != NULL && k < exact->params.threads; k++) {
        lr_cpu_exact_finish(&exact->workers[k].exact);
        lr_cpu_view_finish(&exact->workers[k].view);
    }
    free(exact->workers);
    lr_cpu_scene_finish(&exact->scene);
    free(exact);
}

/* --- time of flight --- */

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

double lr_cpu_listmode_density(const struct lr_listmode_line *line, double place)
{
    const double off = place - line->tof_mm, half = 0.5 * line->bin_mm;
    return (part_below((off + half) / line->sigma_mm) - part_below((off - half) / line->sigma_mm)) / line->bin_mm;
}

double lr_cpu_listmode_held(const struct lr_listmode_line *line, double low, double high)
{
    const double sigma = line->sigma_mm, half = 0.5 * line->bin_mm;
    const double from = low - line->tof_mm, to = high - line->tof_mm;
    if (half == 0) return part_below(to / sigma) - part_below(from / sigma);
    return sigma / line->bin_mm *
           (sum_of_parts_below((to + half) / sigma) - sum_of_parts_below((from + half) / sigma) -
            sum_of_parts_below((to - half) / sigma) + sum_of_parts_below((from - half) / sigma));
}

/* T over the voxel's extent, per mm of it; 1 without time of flight. */
static double time_weight(const struct lr_listmode_hull *hull, const int voxel[3])
{
    const struct lr_listmode_line *line = &hull->line;
    const double place = lr_listmode_voxel_place(hull, voxel);
    if (line->sigma_mm == 0) return 1;
    const double half = 0.5 * hull->extent_mm;
    return lr_cpu_listmode_held(line, place - half, place + half) / hull->extent_mm;
}

/* --- elements --- */

/* One event and the thread that has it. */
struct visit {
    struct lr_listmode_hull hull;
    struct worker *worker;
    struct lr_cpu_crystal crystals[2];
};

static double point_element(struct visit *visit, const double point[3])
{
    struct worker *worker = visit->worker;
    if (worker->view.scene->may_hide) {
        lr_cpu_view_place(&worker->view, point);
    } else {
        const int modules[2] = {visit->crystals[0].module, visit->crystals[1].module};
        lr_cpu_view_place_two(&worker->view, point, modules);
    }
    return lr_cpu_exact_element(&worker->view, &worker->exact, visit->crystals);
}

/* The mean over a voxel's sample points, as in the family correspondence. */
static double voxel_element(struct visit *visit, int64_t row)
{
    const struct lr_listmode_model *model = visit->hull.model;
    const int *num = model->samples, count = num[0] * num[1] * num[2];
    double sum = 0;
    for (int k = 0; k < count; k++) {
        const lr_sample sample = {row, {num[0], num[1], num[2]}, k};
        double point[3];
        lr_grid_sample_point(&model->grid, &sample, point);
        sum += point_element(visit, point);
    }
    return sum / count;
}

static void visit_voxel(struct visit *visit, const int voxel[3], const struct lr_listmode_visitor *visitor)
{
    const int *size = visit->hull.model->grid.size;
    const int64_t row = voxel[0] + (int64_t)size[0] * (voxel[1] + (int64_t)size[1] * voxel[2]);
    const double weight = time_weight(&visit->hull, voxel);
    const double value = weight > 0 ? weight * voxel_element(visit, row) : 0;
    if (value > 0) visitor->take(visitor->user, row, value);
}

/* Voxels of a slice that the hull of the faces meets, of some planes. */
static void find_voxels(const struct visit *visit, int slice, const int planes[2], int voxels[3][2])
{
    const int *num = visit->hull.model->samples;
    lr_listmode_hull_samples(&visit->hull, slice, voxels);
    for (int k = 0; k < 3; k++) {
        voxels[k][1] = (voxels[k][1] + num[k] - 1) / num[k];
        voxels[k][0] = voxels[k][0] / num[k];
    }
    voxels[2][0] = voxels[2][0] > planes[0] ? voxels[2][0] : planes[0];
    voxels[2][1] = voxels[2][1] < planes[1] ? voxels[2][1] : planes[1];
}

void lr_cpu_listmode_exact_visit(struct lr_cpu_listmode_exact *exact, const struct lr_cpu_listmode_event *event,
                                 const struct lr_listmode_visitor *visitor)
{
    struct visit visit = {.worker = &exact->workers[event->worker]};
    const int64_t at[2] = {event->k, event->axis};
    int slices[2];
    lr_listmode_hull_of(&visit.hull, exact->params.model, exact->params.events, at);
    lr_listmode_hull_slices(&visit.hull, slices);
    for (int k = 0; k < 2; k++) {
        const struct lr_listmode_face *face = &visit.hull.faces[k];
        visit.crystals[k] = (struct lr_cpu_crystal){face->module, {face->at[0], face->at[1]}};
    }
    for (int s = slices[0]; s < slices[1]; s++) {
        int voxels[3][2];
        find_voxels(&visit, s, event->planes, voxels);
        for (int z = voxels[2][0]; z < voxels[2][1]; z++) {
            for (int y = voxels[1][0]; y < voxels[1][1]; y++)
                for (int x = voxels[0][0]; x < voxels[0][1]; x++) visit_voxel(&visit, (const int[3]){x, y, z}, visitor);
        }
    }
}
