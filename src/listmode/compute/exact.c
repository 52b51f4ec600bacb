/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Upper bounds of the elements of the exact kernel, and of their number. */
#include "base/mem.h"
#include "base/parallel.h"
#include "base/units.h"
#include "base/vec.h"
#include "common/bindings.h"
#include "listmode/compute/listmode.h"
#include "listmode/hull.h"
#include "listmode/tube.h"

#include <math.h>
#include <stdlib.h>

/* A thread takes this many events at a time. */
enum { GRAIN = 1 << 16 };

struct shortest {
    const struct lr_listmode_events *events;
    double *squares; /* squared length of each thread's shortest line */
};

static void find_shortest(void *user, int64_t begin, int64_t end, int worker)
{
    struct shortest *shortest = user;
    const struct lr_listmode_events *events = shortest->events;
    double least = shortest->squares[worker];
    for (int64_t k = begin; k < end; k++) {
        double along[3];
        vec_sub(events->hits[events->crystals[0][k]], events->hits[events->crystals[1][k]], along);
        const double square = vec_dot(along, along);
        least = square < least ? square : least;
    }
    shortest->squares[worker] = least;
}

/* Upper bound of the distance in mm, along axes[1], between a line whose predominant axis is axes[0] and the
 * positions that its two faces see. The distance that exact_prepare.comp finds is larger by a quarter at most. */
static double reach_mm(const lr_scanner *scanner, const int axes[2])
{
    double most = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double u = hypot(module->u[axes[0]], module->u[axes[1]]) * module->face_mm[0];
        const double v = hypot(module->v[axes[0]], module->v[axes[1]]) * module->face_mm[1];
        most = fmax(most, 1.25 * sqrt(0.5) * (u + v));
    }
    return most;
}

void lr_listmode_exact_init(struct lr_listmode_compute *compute)
{
    const struct lr_listmode_backend_params *params = &compute->params;
    const struct lr_listmode_events *events = params->events;
    const struct lr_listmode_model *model = params->model;
    struct lr_listmode_exact *exact = &compute->exact;
    const int *samples = model->samples;
    exact->is_leaning = lr_listmode_shared_axis(model->scanner) < 0;
    exact->point_bits = (int)log2((double)samples[0] * samples[1] * samples[2]);
    exact->plane_points = 0;
    for (int axis = 0; axis < 3; axis++) {
        int64_t points = 1;
        for (int k = 0; k < 3; k++) {
            const int axes[2] = {axis, k};
            const double spacing = model->grid.voxel_mm[k] / model->samples[k];
            const double all = (double)model->grid.size[k] * model->samples[k];
            const double width = 2.0 * reach_mm(model->scanner, axes) / spacing + 1.01;
            points *= k != axis ? (int64_t)fmin(width, all) : 1;
        }
        exact->plane_points = points > exact->plane_points ? points : exact->plane_points;
    }

    /* Finds the length of the shortest line. If memory runs out, the length is taken as 0; the bounds below are
     * valid for 0 too. */
    struct shortest shortest = {events, lr_alloc(params->threads, sizeof(double), "lengths of lines", params->log)};
    double least = shortest.squares != NULL ? INFINITY : 0;
    for (int k = 0; shortest.squares != NULL && k < params->threads; k++) shortest.squares[k] = INFINITY;
    if (shortest.squares != NULL)
        lr_parallel_for(params->threads, events->layout.count, GRAIN, find_shortest, &shortest);
    for (int k = 0; shortest.squares != NULL && k < params->threads; k++) least = fmin(least, shortest.squares[k]);
    free(shortest.squares);
    const double shortest_mm = sqrt(least);

    /* Finds the largest face, and the number of pieces that exact_prepare.comp makes of a face for the shortest
     * line. */
    double area = 0, edges = 0;
    exact->pieces = 1;
    for (int m = 0; m < model->scanner->num_modules; m++) {
        const double *face = model->scanner->modules[m].face_mm;
        int64_t pieces = 1;
        for (int k = 0; k < 2; k++) {
            const double part = 0.5 * face[k] / (0.5 * shortest_mm);
            pieces *= (int64_t)fmin(ceil(part / LR_EVENTS_EXACT_HALF + 1e-9), LR_EVENTS_EXACT_PIECES);
        }
        exact->pieces = pieces > exact->pieces ? pieces : exact->pieces;
        area = fmax(area, face[0] * face[1]);
        edges = fmax(edges, face[0] + face[1]);
    }

    /* Every point is away from one of the two faces by at least half of the line's length, less the width of the
     * faces. The solid angle is at most that of a half-space. */
    const double distance = fmax(0.5 * shortest_mm - edges, 0.0);
    const double angle = fmin(area / (2.0 * LR_PI * fmax(distance * distance, 1e-30)), 1.0);

    /* The largest density of time of flight, per mm; the factor is 1 for events without time of flight. */
    const double *edge = model->grid.voxel_mm;
    const double narrow = 1.0 / fmin(edge[0], fmin(edge[1], edge[2]));
    const double density = fmin(narrow / LR_LISTMODE_HELD, lr_listmode_largest_density(events));
    bool has_all_times = true;
    for (int k = 0; k < events->num_kinds * events->num_kinds; k++)
        has_all_times = has_all_times && events->sigma_mm[k] > 0;
    frexp(1.01 * angle * (has_all_times ? density : fmax(density, 1.0)), &exact->exponent);
}
