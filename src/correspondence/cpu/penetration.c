/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "correspondence/cpu/elements.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "base/vec.h"
#include "model/scanner/scanner.h"

#include <stdlib.h>

/* A gap below this fraction of the pitch is a rounding error. */
#define NO_GAP 1e-9

/* The tolerance of the tests that exclude modules. */
#define SLACK 1e-9

/* Repeated LORs are merged when a row has this number of elements, and again each time the number has doubled. */
#define MANY_ELEMENTS (1 << 20)

/* The box of a module. Its coordinates are u, v, and depth behind the front face, with the origin at the centre of the
 * front face. The crystals are between `low` and `high`; the half gaps around the outer crystals are outside. */
struct lr_cpu_box {
    const struct lr_cpu_module *module;
    double mu_per_mm;
    double front[3]; /* the origin, in the scanner's frame */
    double low[3], high[3];
    double middle[3], radius; /* bounding sphere, in the scanner's frame */
    int gap_strata[2];        /* number of strata across a gap between two faces, along u and v */
    int depth_strata;
    double point[3];                 /* the view's point in the coordinates of the box */
    double towards[3], sine, cosine; /* cone around the bounding sphere as seen from the point */
};

/* A line: point + t ray, in the scanner's frame. */
struct line {
    double ray[3], length; /* the ray and its length */
    double weight;         /* solid angle / 2 pi, times the survival by absorption */
};

/* A line in the coordinates of a box. */
struct local {
    const double *at;
    double step[3];
};

lr_status lr_cpu_penetration_init(struct lr_cpu_penetration *work, const struct lr_cpu_scene *scene)
{
    const lr_log *log = scene->params.log;
    const int num_modules = scene->num_modules;
    *work = (struct lr_cpu_penetration){0};
    if (scene->params.penetration) LR_TRY(lr_penetration_check(scene->params.scanner, scene->params.mode, log));
    work->boxes = lr_alloc(num_modules, sizeof(*work->boxes), "the modules' boxes", log);
    work->before = lr_alloc(num_modules, sizeof(*work->before), "modules on a line", log);
    work->opposite = lr_alloc(num_modules, sizeof(*work->opposite), "modules on a line", log);
    work->met = lr_alloc(num_modules, sizeof(*work->met), "modules on a line", log);
    if (!work->boxes || !work->before || !work->opposite || !work->met) {
        lr_cpu_penetration_finish(work);
        return LR_FAILED;
    }
    for (int m = 0; m < num_modules; m++) {
        const struct lr_cpu_module *module = &scene->modules[m];
        const lr_module *given = &scene->params.scanner->modules[m];
        const int rays = scene->params.rays;
        struct lr_cpu_box *box = &work->boxes[m];
        box->module = module;
        box->mu_per_mm = lr_module_mu_per_mm(scene->params.scanner, m);
        double size2 = 0;
        for (int k = 0; k < 3; k++) {
            box->front[k] = given->centre_mm[k];
            box->high[k] = k < 2 ? module->half[k] - 0.5 * (module->pitch[k] - module->face[k]) : given->depth_mm;
            box->low[k] = k < 2 ? -box->high[k] : 0;
            size2 += pow(box->high[k] - box->low[k], 2);
        }
        vec_add_scaled(box->front, -0.5 * given->depth_mm, module->normal, box->middle);
        box->radius = 0.5 * sqrt(size2);
        for (int axis = 0; axis < 2; axis++) {
            const double gap = module->pitch[axis] - module->face[axis];
            const bool has_gap = gap > NO_GAP * module->pitch[axis];
            box->gap_strata[axis] = has_gap ? (int)ceil(rays * gap / module->face[axis] - SLACK) : 0;
        }
        box->depth_strata = (int)ceil(rays * given->depth_mm / fmax(module->pitch[0], module->pitch[1]) - SLACK);
        box->depth_strata = box->depth_strata > 1 ? box->depth_strata : 1;
    }
    return LR_OK;
}

void lr_cpu_penetration_finish(struct lr_cpu_penetration *work)
{
    lr_free_all(work->ends[0].list, work->ends[1].list, work->met, work->opposite, work->before, work->boxes);
    *work = (struct lr_cpu_penetration){0};
}

/* --- the point as seen from the boxes --- */

/* Returns true if a line through the point may cross the bounding spheres of both boxes. side: 1 if the boxes are on
 * the same side of the point, -1 if they are on opposite sides. */
static bool may_share_line(const struct lr_cpu_box *a, const struct lr_cpu_box *b, int side)
{
    return a->cosine == 0 || b->cosine == 0 ||
           side * vec_dot(a->towards, b->towards) >= a->cosine * b->cosine - a->sine * b->sine - SLACK;
}

/* --- one line through one box --- */

static struct local to_local(const struct lr_cpu_box *box, const double ray[3], double side)
{
    return (struct local){box->point,
                          {side * vec_dot(box->module->u, ray), side * vec_dot(box->module->v, ray),
                           -side * vec_dot(box->module->normal, ray)}};
}

/* Restricts `range` to the values of t for which a coordinate of the line is between slab[0] and slab[1]. */
static void clip_slab(const struct local *line, int axis, const double slab[2], double range[2])
{
    const double at = line->at[axis], step = line->step[axis];
    if (step == 0) {
        if (at < slab[0] || at > slab[1]) range[1] = -INFINITY;
        return;
    }
    const double a = (slab[0] - at) / step, b = (slab[1] - at) / step;
    range[0] = fmax(range[0], fmin(a, b));
    range[1] = fmin(range[1], fmax(a, b));
}

/* Finds the part of a line inside the box. range: on entry, range[1] is the largest t; on return, the values of t
 * inside the box, within 0 .. range[1]. Returns false if there is no such part. */
static bool clip_box(const struct lr_cpu_box *box, const struct local *line, double range[2])
{
    range[0] = 0;
    for (int axis = 0; axis < 3; axis++) clip_slab(line, axis, (double[2]){box->low[axis], box->high[axis]}, range);
    return range[1] > range[0];
}

/* Lists the crystals of a module that the photon crosses on its way from the point. The path is point + t side ray,
 * with 0 <= t <= end. */
static lr_status cross_module(const struct lr_cpu_view *view, const struct lr_cpu_penetration *work, int module,
                              const struct line *line, double side, double end, struct lr_cpu_crossings *out)
{
    const struct lr_cpu_box *box = &work->boxes[module];
    const struct lr_cpu_module *cells = box->module;
    const struct local local = to_local(box, line->ray, side);
    double range[2] = {0, end};
    if (!clip_box(box, &local, range)) return LR_OK;

    /* Finds the first cell. If the line enters exactly between two cells, either cell is right, because the line has
     * length 0 in the one that it does not cross. */
    int cell[2];
    for (int axis = 0; axis < 2; axis++) {
        const double at = local.at[axis] + range[0] * local.step[axis];
        const int index = (int)floor((at + cells->half[axis]) / cells->pitch[axis]);
        const int last = cells->crystals[axis] - 1;
        cell[axis] = index < 0 ? 0 : index > last ? last : index;
    }

    bool is_inside = true;
    while (is_inside) {
        double part[2] = {range[0], range[1]},
               leave[2]; /* part: t within the crystal; leave: t where the line leaves the cell along each axis */
        for (int axis = 0; axis < 2; axis++) {
            const double centre = lr_cpu_face_centre(cells, axis, cell[axis]), half = 0.5 * cells->face[axis];
            const double step = local.step[axis];
            const double boundary = (cell[axis] + (step > 0 ? 1 : 0)) * cells->pitch[axis] - cells->half[axis];
            clip_slab(&local, axis, (double[2]){centre - half, centre + half}, part);
            leave[axis] = step == 0 ? INFINITY : (boundary - local.at[axis]) / step;
        }
        const double length = fmax(0, part[1] - part[0]) * line->length;
        if (length > 0) {
            const struct lr_items items = {sizeof(*out->list), "crystals on a line", view->scene->params.log};
            LR_TRY(lr_grow(&out->list, &out->capacity, out->count + 1, &items));
            out->list[out->count++] =
                (struct lr_cpu_crossing){.crystal = {module, {cell[0], cell[1]}}, .depth = box->mu_per_mm * length};
        }

        const int axis = leave[1] < leave[0];
        cell[axis] += local.step[axis] > 0 ? 1 : -1;
        is_inside = leave[axis] < range[1] && cell[axis] >= 0 && cell[axis] < cells->crystals[axis];
    }
    return LR_OK;
}

/* --- one line --- */

/* Sets the probability that each crystal stops the photon. left: probability that the photon reaches the first crystal
 * at all. */
static void stop_photon(struct lr_cpu_crossings *crossings, double left)
{
    for (int k = 0; k < crossings->count; k++) {
        struct lr_cpu_crossing *crossing = &crossings->list[k];
        crossing->probability = left * -expm1(-crossing->depth);
        left *= exp(-crossing->depth);
    }
}

static int by_entry(const void *a, const void *b)
{
    const struct lr_cpu_candidate *one = a, *other = b;
    if (one->entry != other->entry) return one->entry < other->entry ? -1 : 1;
    return (one->module > other->module) - (one->module < other->module);
}

static lr_status trace_line(const struct lr_cpu_view *view, struct lr_cpu_penetration *work, int primary,
                            const struct line *line, struct lr_elements *elements)
{
    const struct lr_backend_params *params = &view->scene->params;
    struct lr_cpu_crossings *first = &work->ends[0], *second = &work->ends[1];

    /* Lists the modules that the line crosses on the other side of the point, nearest first. Since boxes do not
     * overlap, the line leaves a box before it enters the next one. */
    work->num_met = 0;
    for (int k = 0; k < work->num_opposite; k++) {
        const int module = work->opposite[k].module;
        const struct local local = to_local(&work->boxes[module], line->ray, -1);
        double range[2] = {0, INFINITY};
        if (clip_box(&work->boxes[module], &local, range))
            work->met[work->num_met++] = (struct lr_cpu_candidate){module, range[0]};
    }
    if (work->num_met > 1) qsort(work->met, (size_t)work->num_met, sizeof(*work->met), by_entry);
    if (work->num_met == 0) return LR_OK;

    /* The photon that goes to the primary first crosses the modules in front of the primary. */
    double depth = 0;
    first->count = 0;
    for (int k = 0; k < work->num_before; k++)
        LR_TRY(cross_module(view, work, work->before[k].module, line, 1, 1, first));
    for (int k = 0; k < first->count; k++) depth += first->list[k].depth;
    const double left = exp(-depth);
    first->count = 0;
    LR_TRY(cross_module(view, work, primary, line, 1, INFINITY, first));
    if (first->count == 0) return LR_OK;
    stop_photon(first, left);

    second->count = 0;
    for (int k = 0; k < work->num_met; k++)
        LR_TRY(cross_module(view, work, work->met[k].module, line, -1, INFINITY, second));
    stop_photon(second, 1);

    /* Absorption is computed between two points: where the line enters the primary, and where it enters the first
     * module on the other side. */
    double y1[3], y2[3];
    vec_add_scaled(view->point, 1, line->ray, y1);
    vec_add_scaled(view->point, -work->met[0].entry, line->ray, y2);
    const double weight = line->weight * lr_cpu_absorption(params->mu, params->mu_steps, y1, y2);
    for (int b = 0; b < second->count; b++) {
        const struct lr_cpu_crossing *near = &second->list[b];
        if (!lr_cpu_view_is_primary(view, primary, near->crystal.module)) continue;
        for (int a = 0; a < first->count; a++) {
            const struct lr_cpu_crossing *far = &first->list[a];
            const int64_t lor = lr_cpu_scene_lor(view->scene, &far->crystal, &near->crystal);
            const double value = weight * far->probability * near->probability;
            if (lor >= 0) LR_TRY(lr_elements_add(elements, lor, value, params->log));
        }
    }
    return LR_OK;
}

/* --- the lines of one primary --- */

/* A stratum is a piece of a box's edge. at: coordinate of the line in the stratum. */
struct stratum {
    double at, width;
};

/* Finds the position of a line in its stratum, as fractions of the widths along both edges. Positions are fractional
 * parts of sums of multiples of irrational numbers, which fill the unit square evenly (Roberts, The unreasonable
 * effectiveness of quasirandom sequences, 2018). Each module has its own sequence. If all lines were in the middle of
 * their strata instead, all would be equally far from gaps. */
static void place_in_stratum(int module, const int64_t index[2], double place[2])
{
    static const uint32_t golden = 2654435769, plastic[2] = {3242174889, 2447445414},
                          third[2] = {3518319155, 2882110345}, half = UINT32_C(1) << 31;
    for (int k = 0; k < 2; k++) {
        const uint32_t sum =
            half + plastic[k] * (uint32_t)index[k] + golden * (uint32_t)index[1 - k] + third[k] * (uint32_t)module;
        place[k] = (sum >> 8) / 16777216.0; /* as many bits as in single precision */
    }
}

/* Returns the number of strata along an axis of a box. Along u and v, each face has `rays` strata, and each gap has
 * strata of about the same width. Along the depth, there are depth_strata. */
static int count_strata(const struct lr_cpu_view *view, const struct lr_cpu_box *box, int axis)
{
    if (axis == 2) return box->depth_strata;
    const int gap = box->gap_strata[axis];
    return box->module->crystals[axis] * (view->scene->params.rays + gap) - gap;
}

static struct stratum find_stratum(const struct lr_cpu_view *view, const struct lr_cpu_box *box, int axis, int index,
                                   double place)
{
    const struct lr_cpu_module *module = box->module;
    if (axis == 2) {
        const double width = box->high[2] / box->depth_strata;
        return (struct stratum){(index + place) * width, width};
    }
    const int rays = view->scene->params.rays, gap = box->gap_strata[axis];
    const int cell = index / (rays + gap), part = index % (rays + gap);
    const double centre = lr_cpu_face_centre(module, axis, cell);
    if (part < rays) {
        const double width = module->face[axis] / rays;
        return (struct stratum){centre - 0.5 * module->face[axis] + (part + place) * width, width};
    }
    const double width = (module->pitch[axis] - module->face[axis]) / gap;
    return (struct stratum){centre + 0.5 * module->face[axis] + (part - rays + place) * width, width};
}

static int64_t next_merge(const struct lr_elements *elements)
{
    return 2 * elements->count > MANY_ELEMENTS ? 2 * elements->count : MANY_ELEMENTS;
}

/* Traces lines through one side of the primary's box, if the point sees this side from outside. */
static lr_status trace_face(const struct lr_cpu_view *view, struct lr_cpu_penetration *work, int primary,
                            const int face[2], struct lr_elements *elements)
{
    const struct lr_cpu_box *box = &work->boxes[primary];
    const int axis = face[0], a = axis == 0 ? 1 : 0, b = axis == 2 ? 1 : 2;
    const double at = face[1] > 0 ? box->high[axis] : box->low[axis];
    if (!(face[1] * (box->point[axis] - at) > 0)) return LR_OK;
    const int64_t num_a = count_strata(view, box, a), num_b = count_strata(view, box, b);
    for (int64_t k = 0; k < num_a * num_b; k++) {
        const int64_t index[2] = {k % num_a, k / num_a};
        double within[2], place[3], local[3];
        place_in_stratum(primary, index, within);
        const struct stratum in_a = find_stratum(view, box, a, (int)index[0], within[0]);
        const struct stratum in_b = find_stratum(view, box, b, (int)index[1], within[1]);
        place[axis] = at;
        place[a] = in_a.at;
        place[b] = in_b.at;

        /* The line goes through this point of the surface, whose outward normal is along `axis`. */
        struct line line = {.ray = {0, 0, 0}};
        vec_sub(place, box->point, local);
        vec_add_scaled(line.ray, local[0], box->module->u, line.ray);
        vec_add_scaled(line.ray, local[1], box->module->v, line.ray);
        vec_add_scaled(line.ray, -local[2], box->module->normal, line.ray);
        line.length = vec_length(local);
        line.weight = in_a.width * in_b.width * fabs(local[axis]) / pow(line.length, 3) / (2 * LR_PI);
        LR_TRY(trace_line(view, work, primary, &line, elements));
        if (elements->count >= work->many) {
            const struct lr_backend_params *params = &view->scene->params;
            LR_TRY(lr_elements_merge(elements, params->lors->count, params->log));
            work->many = next_merge(elements);
        }
    }
    return LR_OK;
}

lr_status lr_cpu_penetration_elements(struct lr_cpu_view *view, struct lr_cpu_penetration *work,
                                      struct lr_elements *elements)
{
    const struct lr_cpu_scene *scene = view->scene;
    work->many = next_merge(elements);
    for (int m = 0; m < scene->num_modules; m++) {
        struct lr_cpu_box *box = &work->boxes[m];
        double offset[3];
        vec_sub(view->point, box->front, offset);
        box->point[0] = vec_dot(box->module->u, offset);
        box->point[1] = vec_dot(box->module->v, offset);
        box->point[2] = -vec_dot(box->module->normal, offset);
        vec_sub(box->middle, view->point, offset);
        const double distance = vec_length(offset);
        const bool within = distance <= box->radius;
        for (int k = 0; k < 3; k++) box->towards[k] = within ? 0 : offset[k] / distance;
        /* A point within the sphere sees the module in all directions. A cone with a half angle of 90 degrees has this
         * effect in the tests. */
        box->sine = within ? 1 : box->radius / distance;
        box->cosine = within ? 0 : sqrt(1 - box->sine * box->sine);
    }

    for (int primary = 0; primary < scene->num_modules; primary++) {
        /* Finds the modules that lines of the primary may cross. */
        const struct lr_cpu_box *far = &work->boxes[primary];
        bool has_secondary = false;
        work->num_before = work->num_opposite = 0;
        for (int m = 0; m < scene->num_modules; m++) {
            if (m == primary) continue;
            if (may_share_line(far, &work->boxes[m], 1)) work->before[work->num_before++].module = m;
            if (!may_share_line(far, &work->boxes[m], -1)) continue;
            work->opposite[work->num_opposite++].module = m;
            has_secondary = has_secondary || (lr_lors_pair(scene->params.lors, primary, m) >= 0 &&
                                              lr_cpu_view_is_primary(view, primary, m));
        }
        for (int face = 0; has_secondary && face < 6; face++)
            LR_TRY(trace_face(view, work, primary, (int[2]){face / 2, face % 2 ? 1 : -1}, elements));
    }
    return LR_OK;
}
