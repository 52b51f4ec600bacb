/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What shaders are told of the exact kernel: modules, and bounds of elements and of their number. */
#include "base/mem.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "common/bindings.h"
#include "listmode/hull.h"
#include "listmode/tube.h"
#include "render/listmode/listmode.h"
#include "render/method.h"

#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846

/* Events that a thread looks at in one go. */
enum { GRAIN = 1 << 16 };

/* Turns of the loops for each piece of a face: of a polygon that is cut four times, each of which gives it
 * one corner more, and of triangles that it is made of. */
enum { TURNS_OF_CUTS = 1 + 4 + 4 + 5 + 6 + 7 + 6, TURNS_OF_STRIP = 2 };

/* --- modules --- */

struct gl_buffer *lr_listmode_exact_modules(const struct lr_listmode_compute *compute)
{
    const lr_scanner *scanner = compute->params.model->scanner;
    struct lr_listmode_module *modules = lr_listmode_modules(scanner, compute->params.log);
    struct gl_buffer *buffer =
        modules != NULL
            ? gl_buffer_create(compute->ctx, &(struct gl_buffer_params){.label = "modules",
                                                                        .size_bytes = scanner->num_modules *
                                                                                      (int64_t)sizeof(*modules),
                                                                        .data = modules})
            : NULL;
    free(modules);
    return buffer;
}

/* --- bounds --- */

struct shortest {
    const struct lr_listmode_events *events;
    double *squares; /* of each thread's shortest line */
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

/* 0 if memory runs out: what is found from it is a bound all the same. */
static double shortest_line(const struct lr_listmode_backend_params *params)
{
    struct shortest shortest = {params->events,
                                lr_alloc(params->threads, sizeof(double), "lengths of lines", params->log)};
    double least = INFINITY;
    for (int k = 0; shortest.squares != NULL && k < params->threads; k++) shortest.squares[k] = INFINITY;
    if (shortest.squares == NULL) return 0;
    lr_parallel_for(params->threads, params->events->layout.count, GRAIN, find_shortest, &shortest);
    for (int k = 0; k < params->threads; k++) least = fmin(least, shortest.squares[k]);
    free(shortest.squares);
    return sqrt(least);
}

/* A point sees one of the faces from half of the line's length or more, but for what the faces themselves
 * are wide, and not more than half of a sphere. */
static double largest_angle(const struct lr_listmode_backend_params *params, double shortest_mm)
{
    double area, edges;
    double *area_mm2 = &area;
    double *edges_mm = &edges;
    *area_mm2 = *edges_mm = 0;
    for (int m = 0; m < params->model->scanner->num_modules; m++) {
        const double *face = params->model->scanner->modules[m].face_mm;
        *area_mm2 = fmax(*area_mm2, face[0] * face[1]);
        *edges_mm = fmax(*edges_mm, face[0] + face[1]);
    }

    const double way = fmax(0.5 * shortest_mm - edges, 0.0);
    return fmin(area / (2.0 * PI * fmax(way * way, 1e-30)), 1.0);
}

/* Largest density of time of flight, per mm; 1 without it. */
static double largest_density(const struct lr_listmode_backend_params *params)
{
    const struct lr_listmode_events *events = params->events;
    const double *edge = params->model->grid.voxel_mm;
    const double narrow = 1.0 / fmin(edge[0], fmin(edge[1], edge[2]));
    const double most = fmin(narrow / LR_LISTMODE_HELD, lr_listmode_largest_density(events));
    for (int k = 0; k < events->num_kinds * events->num_kinds; k++)
        if (!(events->sigma_mm[k] > 0)) return fmax(most, 1.0);
    return most;
}

/* Distance that faces reach beside a line along axes[0], whose steps across are at most its steps along,
 * along axes[1]: exact_prepare.comp has no more than a quarter more. */
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

static int64_t plane_points(const struct lr_listmode_model *model)
{
    int64_t most = 0;
    for (int axis = 0; axis < 3; axis++) {
        int64_t points = 1;
        for (int k = 0; k < 3; k++) {
            const int axes[2] = {axis, k};
            const double spacing = model->grid.voxel_mm[k] / model->samples[k];
            const double all = (double)model->grid.size[k] * model->samples[k];
            const double width = 2.0 * reach_mm(model->scanner, axes) / spacing + 1.01;
            points *= k != axis ? (int64_t)fmin(width, all) : 1;
        }
        most = points > most ? points : most;
    }
    return most;
}

/* The pieces that exact_prepare.comp finds for the shortest line. */
static int64_t most_pieces(const struct lr_listmode_model *model, double shortest_mm)
{
    const lr_scanner *scanner = model->scanner;
    int64_t most = 1;
    for (int m = 0; m < scanner->num_modules; m++) {
        int64_t pieces = 1;
        for (int k = 0; k < 2; k++) {
            const double part = 0.5 * scanner->modules[m].face_mm[k] / (0.5 * shortest_mm);
            pieces *= (int64_t)fmin(ceil(part / LR_EVENTS_EXACT_HALF + 1e-9), LR_EVENTS_EXACT_PIECES);
        }
        most = pieces > most ? pieces : most;
    }
    return most;
}

void lr_listmode_exact_init(struct lr_listmode_compute *compute)
{
    const struct lr_listmode_backend_params *params = &compute->params;
    struct lr_listmode_exact *exact = &compute->exact;
    const int *samples = params->model->samples;
    const double shortest_mm = shortest_line(params);
    exact->is_leaning = lr_listmode_is_leaning(params->model->scanner);
    exact->point_bits = (int)log2((double)samples[0] * samples[1] * samples[2]);
    exact->plane_points = plane_points(params->model);
    exact->pieces = most_pieces(params->model, shortest_mm);
    frexp(1.01 * largest_angle(params, shortest_mm) * largest_density(params), &exact->exponent);
}

/* Rounds are those over points, rows of points, and the pieces in which a point sees the farther face. */
int lr_listmode_planes_at_once(const struct lr_listmode_compute *compute, int axis)
{
    const struct lr_listmode_model *model = compute->params.model;
    const int planes = model->grid.size[axis] * model->samples[axis];
    if (!gl_context_limits(compute->ctx)->small_batches) return planes;
    const int64_t of_piece = compute->exact.is_leaning ? TURNS_OF_CUTS : TURNS_OF_STRIP;
    const int64_t rounds = compute->exact.plane_points * (1 + of_piece * compute->exact.pieces) + 2;
    const int64_t most = LR_MOST_ROUNDS_SOFTWARE / rounds;
    return most < planes ? (int)most : planes;
}
