/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "correspondence/cpu/elements.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "base/vec.h"

#include <stdlib.h>

/* An overlap with a smaller area than this fraction of the face or module is taken as a rounding error along a common
 * edge. */
#define NOTHING 1e-13

/* The tolerance, in cells, of the search for faces that a box may touch. */
#define SLACK 1e-9

/* The eye (the sample point) and a pair of modules. Coordinates on the primary's plane are plane coordinates of
 * lr_cpu_module minus `foot`, so that the eye is above (0, 0). */
struct pair {
    const struct lr_cpu_view *view;
    const struct lr_cpu_exact *exact;
    int primary, secondary;
    const struct lr_cpu_module *far, *near;
    double foot[2];
    double height; /* height of the eye over the primary's plane */
};

/* Sums over the visible pieces of the overlap of two faces. */
struct overlap {
    double solid_angle, area, moment[2];
};

lr_status lr_cpu_exact_init(struct lr_cpu_exact *exact, const struct lr_cpu_scene *scene)
{
    int64_t most = 0;
    for (int m = 0; m < scene->num_modules; m++) {
        const int *size = scene->modules[m].crystals;
        const int64_t corners = 4 * (int64_t)size[0] * size[1];
        most = corners > most ? corners : most;
    }
    const lr_log *log = scene->params.log;
    *exact = (struct lr_cpu_exact){0};
    exact->corners = lr_alloc(most, sizeof(*exact->corners), "a module's corners", log);
    /* Modules on both sides of the point can hide parts of others. */
    exact->blockers = lr_alloc(2 * (int64_t)scene->num_modules, sizeof(*exact->blockers), "outlines", log);
    if (exact->corners == NULL || exact->blockers == NULL) {
        lr_cpu_exact_finish(exact);
        return LR_FAILED;
    }
    return LR_OK;
}

void lr_cpu_exact_finish(struct lr_cpu_exact *exact)
{
    lr_free_all(exact->corners, exact->blockers);
    *exact = (struct lr_cpu_exact){0};
}

/* Projects point (x, y) of a module's plane through the eye onto the primary's plane, on the other side of the eye. */
static struct lr_cpu_projected project(const struct pair *pair, int module, double x, double y)
{
    const struct lr_cpu_module *from = &pair->view->scene->modules[module];
    double ray[3];
    vec_add_scaled(pair->view->toward[module].offset, x, from->u, ray);
    vec_add_scaled(ray, y, from->v, ray);
    return (struct lr_cpu_projected){-pair->height * vec_dot(pair->far->u, ray),
                                     -pair->height * vec_dot(pair->far->v, ray), vec_dot(pair->far->normal, ray)};
}

/* Finds the coefficients of the function "normal . ray", which is linear on the primary's plane. The ray goes from the
 * eye to a point of this plane, and the normal is that of the module. */
static void approach_plane(const struct pair *pair, int module, double plane[3])
{
    const double *normal = pair->view->scene->modules[module].normal;
    plane[0] = vec_dot(normal, pair->far->u);
    plane[1] = vec_dot(normal, pair->far->v);
    plane[2] = -pair->height * vec_dot(normal, pair->far->normal);
}

/* Finds the outline of the part of the primary or secondary that a module hides. The outline is counter-clockwise on
 * the primary's plane. A module that hides the secondary is projected through the eye; a module that hides the primary
 * is projected along the rays from the eye. Points of the module that are farther from the eye than the hidden plane
 * are cut off. Returns false if the module hides no part. */
static bool find_blocker(const struct pair *pair, int module, bool hides_primary, struct lr_cpu_blocker *blocker)
{
    const struct lr_cpu_toward *toward = pair->view->toward;
    const double height = toward[module].height, *foot = pair->foot, *half = pair->far->half;
    const struct lr_cpu_rectangle whole = {{-foot[0] - half[0], -foot[1] - half[1]},
                                           {half[0] - foot[0], half[1] - foot[1]}};
    struct lr_cpu_projected corners[2][4]; /* corners of the blocker and of the secondary */
    for (int k = 0; k < 8; k++) {
        const int of = k < 4 ? module : pair->secondary, corner = k % 4;
        const double *size = pair->view->scene->modules[of].half;
        const double x = corner == 1 || corner == 2 ? size[0] : -size[0];
        corners[k / 4][corner] = project(pair, of, x, corner >= 2 ? size[1] : -size[1]);
    }

    double nearer[3]; /* half plane of the rays that hit the blocker first */
    approach_plane(pair, module, nearer);
    if (hides_primary) {
        /* A module on the primary's side is projected with the opposite sign. A ray hits the blocker at eye + s ray
         * with s = -height / (normal . ray), and 0 < s < 1. */
        for (int k = 0; k < 4; k++) {
            const struct lr_cpu_projected at = corners[0][k];
            corners[0][k] = (struct lr_cpu_projected){-at.x, -at.y, -at.w};
        }
        nearer[2] += height;
        for (int k = 0; k < 3; k++) nearer[k] = height < 0 ? nearer[k] : -nearer[k];
    } else {
        /* The ray hits the blocker (index b) and the secondary (index s) at eye - t ray, with t = height / d > 0 and d
         * = normal . ray. The blocker is hit first if t_b < t_s. Multiplied by d_b d_s, this inequality is linear in
         * the ray. The sign of d_s is positive, and the sign of d_b is that of the blocker's height. */
        const double sign = height < 0 ? -1 : 1;
        double behind[3];
        approach_plane(pair, pair->secondary, behind);
        for (int k = 0; k < 3; k++)
            nearer[k] = sign * (nearer[k] * toward[pair->secondary].height - behind[k] * height);
    }
    struct lr_cpu_polygon common, cut, *outline = &blocker->outline;
    lr_cpu_polygon_clip_projected(corners[0], 4, &whole, &cut);
    lr_cpu_polygon_clip(&cut, nearer, outline);
    if (lr_cpu_polygon_area(outline) < 0) lr_cpu_polygon_reverse(outline);
    blocker->box = lr_cpu_polygon_box(outline);

    /* The blocker hides nothing if its outline does not overlap the secondary's outline. */
    lr_cpu_polygon_clip_projected(corners[1], 4, &whole, &common);
    for (int edge = 0; edge < outline->count && common.count <= LR_CPU_POLYGON_MAX_CUT; edge++) {
        double plane[3];
        lr_cpu_polygon_edge(outline, edge, plane);
        lr_cpu_polygon_clip(&common, plane, &cut);
        common = cut;
    }
    return outline->count > 0 && fabs(lr_cpu_polygon_area(&common)) > NOTHING * half[0] * half[1];
}

static void find_blockers(const struct pair *pair, const struct lr_cpu_sighting *secondary, struct lr_cpu_exact *exact)
{
    const struct lr_cpu_view *view = pair->view;
    exact->num_blockers = 0;
    for (int k = 0; k < view->num_opposite + view->num_before; k++) {
        const bool is_opposite = k < view->num_opposite;
        const struct lr_cpu_sighting *other = is_opposite ? &view->opposite[k] : &view->before[k - view->num_opposite];
        /* All modules of `before` are in the primary's layer and may hide it. An opposite module may hide the secondary
           only if both are in the same layer. */
        const bool hides =
            !is_opposite || view->scene->modules[other->module].layer == view->scene->modules[secondary->module].layer;
        if (hides && other->module != secondary->module && other->low[0] <= secondary->high[0] &&
            secondary->low[0] <= other->high[0] && other->low[1] <= secondary->high[1] &&
            secondary->low[1] <= other->high[1] &&
            find_blocker(pair, other->module, !is_opposite, &exact->blockers[exact->num_blockers]))
            exact->num_blockers++;
    }
}

/* Adds the visible part of a piece. place[0]: the first blocker that is still to be tested. place[1]: number of this
 * blocker's edges, counted from the first, that are known to have the piece on their left. The outside of a convex
 * blocker is divided into one part for each edge: the part on the right of this edge and on the left of all earlier
 * edges. */
static void add_visible(const struct pair *pair, const struct lr_cpu_polygon *piece, const int place[2],
                        struct overlap *sum)
{
    struct lr_cpu_polygon part;
    if (piece->count < 3) return;
    const struct lr_cpu_exact *exact = pair->exact;
    const int edge = place[1];
    int next = place[0];
    if (edge == 0) {
        /* Finds the first blocker whose box overlaps the box of the piece. */
        const struct lr_cpu_rectangle box = lr_cpu_polygon_box(piece);
        while (next < exact->num_blockers) {
            const struct lr_cpu_rectangle *other = &exact->blockers[next].box;
            if (box.low[0] <= other->high[0] && other->low[0] <= box.high[0] && box.low[1] <= other->high[1] &&
                other->low[1] <= box.high[1])
                break;
            next++;
        }
    }
    if (piece->count > LR_CPU_POLYGON_MAX_CUT) {
        for (int half = 0; half < 2; half++) {
            lr_cpu_polygon_half(piece, half, &part);
            add_visible(pair, &part, (int[2]){next, edge}, sum);
        }
    } else if (next == exact->num_blockers) {
        const double area = fabs(lr_cpu_polygon_area(piece));
        if (area > 0) {
            double centroid[2];
            lr_cpu_polygon_centroid(piece, centroid);
            sum->solid_angle += lr_cpu_polygon_solid_angle(piece, pair->height);
            sum->area += area;
            sum->moment[0] += area * centroid[0];
            sum->moment[1] += area * centroid[1];
        }

    } else if (edge < exact->blockers[next].outline.count) {
        double left[3];
        lr_cpu_polygon_edge(&exact->blockers[next].outline, edge, left);
        lr_cpu_polygon_clip(piece, (double[3]){-left[0], -left[1], -left[2]}, &part);
        add_visible(pair, &part, (int[2]){next + 1, 0}, sum);
        lr_cpu_polygon_clip(piece, left, &part);
        add_visible(pair, &part, (int[2]){next, edge + 1}, sum);
    }
}

/* Returns the element of one pair of faces; 0 if no line through the eye joins them. corners: the corners of the
 * secondary's face. */
static double element(const struct pair *pair, const struct lr_cpu_rectangle *face,
                      const struct lr_cpu_projected corners[4])
{
    const struct lr_cpu_view *view = pair->view;
    const struct lr_backend_params *params = &view->scene->params;
    const double smallest = NOTHING * (face->high[0] - face->low[0]) * (face->high[1] - face->low[1]);
    struct lr_cpu_polygon polygon;
    lr_cpu_polygon_clip_projected(corners, 4, face, &polygon);
    if (polygon.count < 3 || fabs(lr_cpu_polygon_area(&polygon)) <= smallest) return 0;
    if (pair->exact->num_blockers == 0 && params->mu == NULL)
        return lr_cpu_polygon_solid_angle(&polygon, pair->height) / (2 * LR_PI);
    struct overlap sum = {0};
    add_visible(pair, &polygon, (int[2]){0, 0}, &sum);
    if (!(sum.area > smallest)) return 0;

    /* The line for absorption goes through the eye and the centroid of the overlap. */
    double ray[3], y1[3], y2[3];
    vec_add_scaled(view->toward[pair->primary].offset, sum.moment[0] / sum.area + pair->foot[0], pair->far->u, ray);
    vec_add_scaled(ray, sum.moment[1] / sum.area + pair->foot[1], pair->far->v, ray);
    const double t = view->toward[pair->secondary].height / vec_dot(pair->near->normal, ray);
    vec_add_scaled(view->point, 1, ray, y1);
    vec_add_scaled(view->point, -t, ray, y2);
    return lr_cpu_absorption(params->mu, params->mu_steps, y1, y2) * sum.solid_angle / (2 * LR_PI);
}

/* Finds the faces range[0] .. range[1] - 1 along an axis that may touch an interval of coordinates. */
static void find_faces(const struct lr_cpu_module *module, int axis, const double interval[2], int range[2])
{
    const int size = module->crystals[axis];
    const double low = floor(interval[0] / module->pitch[axis] + 0.5 * size - SLACK);
    const double high = floor(interval[1] / module->pitch[axis] + 0.5 * size + SLACK);
    range[0] = low > 0 ? (int)fmin(low, size) : 0;
    range[1] = high < size - 1 ? (int)fmax(high + 1, 0) : size;
}

static struct lr_cpu_rectangle face_rectangle(const struct pair *pair, const int at[2])
{
    struct lr_cpu_rectangle face;
    for (int axis = 0; axis < 2; axis++) {
        const double centre = lr_cpu_face_centre(pair->far, axis, at[axis]) - pair->foot[axis];
        face.low[axis] = centre - 0.5 * pair->far->face[axis];
        face.high[axis] = centre + 0.5 * pair->far->face[axis];
    }
    return face;
}

/* Adds all elements of one face of the primary. */
static lr_status face_elements(const struct pair *pair, const struct lr_cpu_crystal *from, struct lr_elements *elements)
{
    const struct lr_cpu_rectangle face = face_rectangle(pair, from->at);
    const struct lr_cpu_toward *toward = &pair->view->toward[pair->secondary];
    double x[2] = {INFINITY, -INFINITY}, y[2] = {INFINITY, -INFINITY};
    int columns[2], rows[2], num_behind = 0;

    /* Finds the box on the secondary's plane that is visible through the face. There is no box if the face is
     * completely behind this plane. If only a part of the face is behind, the box is the whole plane. */
    for (int corner = 0; corner < 4; corner++) {
        const double at_x = (corner & 1 ? face.high : face.low)[0] + pair->foot[0];
        const double at_y = (corner & 2 ? face.high : face.low)[1] + pair->foot[1];
        double ray[3];
        vec_add_scaled(pair->view->toward[pair->primary].offset, at_x, pair->far->u, ray);
        vec_add_scaled(ray, at_y, pair->far->v, ray);
        const double approach = vec_dot(pair->near->normal, ray);
        if (approach <= 0) {
            num_behind++;
            continue;
        }
        const double t = toward->height / approach;
        const double a = toward->foot[0] - t * vec_dot(pair->near->u, ray);
        const double b = toward->foot[1] - t * vec_dot(pair->near->v, ray);
        x[0] = fmin(x[0], a);
        x[1] = fmax(x[1], a);
        y[0] = fmin(y[0], b);
        y[1] = fmax(y[1], b);
    }
    if (num_behind == 4) return LR_OK;
    if (num_behind > 0) {
        x[0] = y[0] = -INFINITY;
        x[1] = y[1] = INFINITY;
    }
    find_faces(pair->near, 0, x, columns);
    find_faces(pair->near, 1, y, rows);
    for (int s = rows[0]; s < rows[1]; s++) {
        for (int r = columns[0]; r < columns[1]; r++) {
            const struct lr_cpu_crystal to = {pair->secondary, {r, s}};
            const int64_t lor = lr_cpu_scene_lor(pair->view->scene, from, &to);
            const int width = 2 * pair->near->crystals[0];
            const struct lr_cpu_projected *low = &pair->exact->corners[2 * s * width + 2 * r];
            const struct lr_cpu_projected corners[4] = {low[0], low[1], low[width + 1], low[width]};
            const double value = lor >= 0 ? element(pair, &face, corners) : 0;
            if (value > 0) LR_TRY(lr_elements_add(elements, lor, value, pair->view->scene->params.log));
        }
    }
    return LR_OK;
}

static struct pair make_pair(const struct lr_cpu_view *view, const struct lr_cpu_exact *exact, int primary,
                             int secondary)
{
    const struct lr_cpu_module *far = &view->scene->modules[primary];
    const struct lr_cpu_toward *toward = &view->toward[primary];
    return (struct pair){
        .view = view,
        .exact = exact,
        .primary = primary,
        .secondary = secondary,
        .far = far,
        .near = &view->scene->modules[secondary],
        .foot = {toward->foot[0], toward->foot[1]},
        .height = toward->height,
    };
}

lr_status lr_cpu_exact_elements(struct lr_cpu_view *view, struct lr_cpu_exact *exact, struct lr_elements *elements)
{
    const struct lr_cpu_scene *scene = view->scene;
    for (int primary = 0; primary < scene->num_modules; primary++) {
        lr_cpu_view_look(view, primary);
        for (int k = 0; k < view->num_opposite; k++) {
            const struct lr_cpu_sighting *secondary = &view->opposite[k];
            const int module = secondary->module;
            if (!secondary->detects || lr_lors_pair(scene->params.lors, primary, module) < 0) continue;
            const struct pair pair = make_pair(view, exact, primary, module);
            find_blockers(&pair, secondary, exact);
            /* The corners of all faces of the secondary, [2 nv][2 nu]. Face r is bounded by columns 2 r and 2 r + 1. */
            struct lr_cpu_projected *corners = exact->corners;
            const struct lr_cpu_module *near = pair.near;
            for (int row = 0; row < 2 * near->crystals[1]; row++) {
                const double side = row & 1 ? 0.5 : -0.5;
                const double y = lr_cpu_face_centre(near, 1, row / 2) + side * near->face[1];
                for (int column = 0; column < 2 * near->crystals[0]; column++) {
                    const double part = column & 1 ? 0.5 : -0.5;
                    const double x = lr_cpu_face_centre(near, 0, column / 2) + part * near->face[0];
                    *corners++ = project(&pair, pair.secondary, x, y);
                }
            }

            int columns[2], rows[2];
            find_faces(pair.far, 0, (double[2]){secondary->low[0], secondary->high[0]}, columns);
            find_faces(pair.far, 1, (double[2]){secondary->low[1], secondary->high[1]}, rows);
            for (int q = rows[0]; q < rows[1]; q++) {
                for (int p = columns[0]; p < columns[1]; p++) {
                    const struct lr_cpu_crystal from = {pair.primary, {p, q}};
                    LR_TRY(face_elements(&pair, &from, elements));
                }
            }
        }
    }
    return LR_OK;
}

double lr_cpu_exact_element(struct lr_cpu_view *view, struct lr_cpu_exact *exact,
                            const struct lr_cpu_crystal crystals[2])
{
    const int first = crystals[0].module, second = crystals[1].module;
    const int from = lr_cpu_view_is_primary(view, first, second) ? 0 : 1;
    if (!(view->toward[first].height > 0 && view->toward[second].height > 0)) return 0;
    const struct pair pair = make_pair(view, exact, crystals[from].module, crystals[1 - from].module);
    const struct lr_cpu_module *near = pair.near;
    exact->num_blockers = 0;
    if (view->scene->may_hide) {
        int k = 0;
        lr_cpu_view_look(view, pair.primary);
        while (k < view->num_opposite && view->opposite[k].module != pair.secondary) k++;
        if (k == view->num_opposite) return 0; /* the secondary is not visible from the primary */
        find_blockers(&pair, &view->opposite[k], exact);
    }

    /* The corners of the secondary's face, in order around the face. */
    const int *at = crystals[1 - from].at;
    struct lr_cpu_projected corners[4];
    for (int k = 0; k < 4; k++) {
        const double part_x = k == 1 || k == 2 ? 0.5 : -0.5, part_y = k >= 2 ? 0.5 : -0.5;
        corners[k] = project(&pair, pair.secondary, lr_cpu_face_centre(near, 0, at[0]) + part_x * near->face[0],
                             lr_cpu_face_centre(near, 1, at[1]) + part_y * near->face[1]);
    }
    const struct lr_cpu_rectangle face = face_rectangle(&pair, crystals[from].at);
    return element(&pair, &face, corners);
}
