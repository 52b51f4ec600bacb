/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The exact kernel (docs/method/listmode.md, "Exact elements"): the solid angle in which a point sees one face through
 * the opposite face. The angle is computed in double, LOR by LOR and point by point. Polygons are clipped by the
 * algorithm of Sutherland and Hodgman (CACM 17:32, 1974). The formula for the solid angle of a triangle is from van
 * Oosterom and Strackee (IEEE Trans. Biomed. Eng. 30:125, 1983). */
#include "base/units.h"
#include "base/vec.h"
#include "listmode/hull.h"
#include "listmode/native/kernels.h"

/* Overlaps below this fraction of a face count as rounding errors. */
#define NOTHING 1e-13

/* A face is approximated by a density, to second order, if (diagonal of the face / distance)^2 is below this. The error
 * is below 1e-7. */
#define FLAT 1e-3

/* The largest number of corners of a rectangle after four cuts. */
enum { MOST_CORNERS = 8 };

/* --- a pair of faces --- */

/* Axes of the two faces, and their relative position. */
struct pair {
    struct lr_listmode_hull hull;
    double cosine[3][3]; /* [axis of face 0][axis of face 1]: cosine of the angle between these axes */
    double apart[2][3]; /* [f]: vector from the centre of face f to the centre of the other face, along the axes of face
                           f */
    double diagonal[2]; /* [f]: squared diagonal of face f */
};

/* --- convex polygons in the plane of a face, relative to the foot of the perpendicular from the point --- */

struct polygon {
    int count;
    double x[MOST_CORNERS + 1], y[MOST_CORNERS + 1];
};

/* Cuts off the part of the polygon in which a + b x + c y < 0. */
static void cut(struct polygon *polygon, double a, double b, double c)
{
    double signs[MOST_CORNERS + 1];
    int inside = 0;
    for (int k = 0; k < polygon->count; k++) {
        signs[k] = a + b * polygon->x[k] + c * polygon->y[k];
        inside += signs[k] >= 0;
    }
    if (inside == polygon->count) return;
    const struct polygon in = *polygon;
    int count = 0;
    for (int k = 0; inside > 0 && k < in.count; k++) {
        const int next = k + 1 < in.count ? k + 1 : 0;
        if (signs[k] >= 0 && count < MOST_CORNERS) {
            polygon->x[count] = in.x[k];
            polygon->y[count++] = in.y[k];
        }
        if ((signs[k] > 0 && signs[next] < 0) || (signs[k] < 0 && signs[next] > 0)) {
            const double t = signs[k] / (signs[k] - signs[next]);
            if (count < MOST_CORNERS) {
                polygon->x[count] = in.x[k] + t * (in.x[next] - in.x[k]);
                polygon->y[count++] = in.y[k] + t * (in.y[next] - in.y[k]);
            }
        }
    }
    polygon->count = count >= 3 ? count : 0;
}

/* Area, and moments relative to the first corner. */
struct moments {
    double area, x, y, xx, xy, yy;
};

static struct moments find_moments(const struct polygon *polygon)
{
    struct moments sum = {0};
    for (int k = 1; k + 1 < polygon->count; k++) {
        const double ax = polygon->x[k] - polygon->x[0], ay = polygon->y[k] - polygon->y[0];
        const double bx = polygon->x[k + 1] - polygon->x[0], by = polygon->y[k + 1] - polygon->y[0];
        const double twice = ax * by - ay * bx;
        sum.area += 0.5 * twice;
        sum.x += twice * (ax + bx) / 6.0;
        sum.y += twice * (ay + by) / 6.0;
        sum.xx += twice * (ax * ax + ax * bx + bx * bx) / 12.0;
        sum.yy += twice * (ay * ay + ay * by + by * by) / 12.0;
        sum.xy += twice * (2.0 * (ax * ay + bx * by) + ax * by + bx * ay) / 24.0;
    }
    return sum;
}

/* Returns the solid angle of a small polygon: the integral of the density height / distance^3, to second order around
 * the centroid. */
static double flat_angle(const struct polygon *polygon, const struct moments *moments, double height)
{
    const double area = moments->area;
    const double mean_x = moments->x / area, mean_y = moments->y / area;
    const double xx = moments->xx - mean_x * moments->x, yy = moments->yy - mean_y * moments->y;
    const double xy = moments->xy - mean_x * moments->y;
    const double x = polygon->x[0] + mean_x, y = polygon->y[0] + mean_y;
    const double inverse = 1.0 / (height * height + x * x + y * y);
    const double bend = (7.5 * inverse * (x * x * xx + 2.0 * x * y * xy + y * y * yy) - 1.5 * (xx + yy)) * inverse;
    return height * inverse * sqrt(inverse) * (area + bend);
}

/* Returns the solid angle of a polygon in closed form: the sum over the triangles of corners 0, k and k + 1. */
static double closed_angle(const struct polygon *polygon, double height)
{
    const double square = height * height, a[2] = {polygon->x[0], polygon->y[0]};
    double sum = 0;
    for (int k = 1; k + 1 < polygon->count; k++) {
        const double b[2] = {polygon->x[k], polygon->y[k]}, c[2] = {polygon->x[k + 1], polygon->y[k + 1]};
        const double twice = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
        const double p = sqrt(a[0] * a[0] + a[1] * a[1] + square);
        const double q = sqrt(b[0] * b[0] + b[1] * b[1] + square);
        const double r = sqrt(c[0] * c[0] + c[1] * c[1] + square);
        const double ab = a[0] * b[0] + a[1] * b[1] + square;
        const double bc = b[0] * c[0] + b[1] * c[1] + square;
        const double ca = c[0] * a[0] + c[1] * a[1] + square;
        sum += 2.0 * atan2(height * twice, p * q * r + ab * r + bc * p + ca * q);
    }
    return sum;
}

/* --- an element --- */

/* Finds the part of the face `far` that is seen through the face `near`, relative to the foot of the point on the plane
 * of `far`. The ray from the point to (x, y) of this plane crosses the plane of `near` at -t ray, with t = height /
 * (normal . ray). The ray hits the face `near` if the crossing is within its four edges. After multiplication by the
 * denominator, these four conditions are linear in the ray. place: position of the point relative to the centre of each
 * face, along the face's u, v and normal. */
static void find_overlap(const struct pair *pair, const double place[2][3], int far, struct polygon *overlap)
{
    const int near = 1 - far;
    const double *half = pair->hull.faces[far].half_mm, *behind = pair->hull.faces[near].half_mm;
    const double *foot = place[far], *eye = place[near];
    const double low[2] = {-half[0] - foot[0], -half[1] - foot[1]};
    const double high[2] = {half[0] - foot[0], half[1] - foot[1]};
    double ray[3][3]; /* the component of the ray along axis j of `near` is [j][0] + x [j][1] + y [j][2] */
    for (int j = 0; j < 3; j++) {
        ray[j][1] = far == 0 ? pair->cosine[0][j] : pair->cosine[j][0];
        ray[j][2] = far == 0 ? pair->cosine[1][j] : pair->cosine[j][1];
        ray[j][0] = pair->apart[near][j] - eye[j] + foot[0] * ray[j][1] + foot[1] * ray[j][2];
    }
    *overlap = (struct polygon){4, {low[0], high[0], high[0], low[0]}, {low[1], low[1], high[1], high[1]}};
    for (int j = 0; j < 4 && overlap->count > 0; j++) {
        const double sign = j < 2 ? -1.0 : 1.0, *side = ray[j % 2];
        const double off = behind[j % 2] - sign * eye[j % 2], scale = sign * eye[2];
        const double a = off * ray[2][0] + scale * side[0], b = off * ray[2][1] + scale * side[1];
        const double c = off * ray[2][2] + scale * side[2];
        const double middle = a - b * foot[0] - c * foot[1];
        const double reach = fabs(b) * half[0] + fabs(c) * half[1];
        if (middle < -reach)
            overlap->count = 0;
        else if (middle < reach)
            cut(overlap, a, b, c);
    }
}

/* Returns the element of a point: the solid angle of the overlap, divided by 2 pi, on the face that is farther from the
 * point. */
static double element(const struct pair *pair, const double point[3])
{
    double place[2][3]; /* position of the point relative to the centre of each face, along its u, v and normal */
    struct polygon overlap;
    for (int f = 0; f < 2; f++) {
        const struct lr_listmode_face *face = &pair->hull.faces[f];
        double from[3];
        vec_sub(point, face->centre, from);
        for (int j = 0; j < 3; j++) place[f][j] = vec_dot(face->axis[j], from);
    }

    if (!(place[0][2] > 0 && place[1][2] > 0)) return 0.0;
    const int far = place[0][2] >= place[1][2] ? 0 : 1;
    const double *half = pair->hull.faces[far].half_mm, *foot = place[far];
    find_overlap(pair, (const double(*)[3])place, far, &overlap);
    const struct moments moments = find_moments(&overlap);
    if (!(moments.area > NOTHING * 4.0 * half[0] * half[1])) return 0.0;
    const double square = foot[2] * foot[2];
    return (pair->diagonal[far] < FLAT * square ? flat_angle(&overlap, &moments, foot[2])
                                                : closed_angle(&overlap, foot[2])) /
           (2.0 * LR_PI);
}

/* --- voxels --- */

/* Returns the mean of the time-of-flight factor over a voxel's extent along the line; 1 without time of flight. */
static double time_weight(const struct lr_listmode_hull *hull, const int voxel[3])
{
    const struct lr_listmode_line *line = &hull->line;
    if (line->sigma_mm == 0) return 1.0;
    const double off = lr_listmode_voxel_place(hull, voxel) - line->tof_mm;
    const double low = (off - 0.5 * hull->extent_mm) / line->sigma_mm;
    const double high = (off + 0.5 * hull->extent_mm) / line->sigma_mm;
    const double half = 0.5 * line->bin_mm / line->sigma_mm;
    const double held = half > 0 ? (lr_native_normal_sum(high + half) - lr_native_normal_sum(low + half) -
                                    lr_native_normal_sum(high - half) + lr_native_normal_sum(low - half)) /
                                       (2.0 * half)
                                 : lr_native_normal(high) - lr_native_normal(low);
    return held > 0 ? held / (LR_LISTMODE_HELD * hull->extent_mm) : 0.0;
}

/* In a slice with at most this many planes of sample points, each plane has its own bounds. In a slice with more
 * planes, all planes use the bounds of the slice. */
enum { MOST_PLANES = 32 };

/* Returns the sum over the voxel's sample points that are within `samples`. */
static double sum_samples(const struct pair *pair, const int samples[3][2], const int voxel[3])
{
    const struct lr_listmode_model *model = pair->hull.model;
    int begin[3], end[3];
    for (int k = 0; k < 3; k++) {
        const int num = model->samples[k], first = voxel[k] * num;
        begin[k] = samples[k][0] > first ? samples[k][0] : first;
        end[k] = samples[k][1] < first + num ? samples[k][1] : first + num;
    }
    double sum = 0;
    for (int c = begin[2]; c < end[2]; c++) {
        for (int b = begin[1]; b < end[1]; b++) {
            for (int a = begin[0]; a < end[0]; a++) {
                const double point[3] = {lr_listmode_sample(model, 0, a), lr_listmode_sample(model, 1, b),
                                         lr_listmode_sample(model, 2, c)};
                sum += element(pair, point);
            }
        }
    }
    return sum;
}

/* A receiver of an event's elements. at: number of the slice, and numbers of the voxel across the axis. */
struct taker {
    void (*take)(struct taker *taker, const int at[3], double element);
    const struct lr_native_listmode_job *job;
    double value, sum;
    const struct lr_listmode_visitor *visitor;
};

/* Passes on the elements of an event in slices slab[0] .. slab[1] - 1. */
static void take_event(struct taker *taker, int64_t event, const int slab[2])
{
    struct pair pair;
    int slices[2];
    const int64_t at[2] = {event, taker->job->frame->axis};
    lr_listmode_hull_of(&pair.hull, taker->job->model, taker->job->events, at);
    lr_listmode_hull_slices(&pair.hull, slices);
    const int begin = slices[0] > slab[0] ? slices[0] : slab[0];
    const int end = slices[1] < slab[1] ? slices[1] : slab[1];
    if (begin >= end) return;

    const struct lr_listmode_face *faces = pair.hull.faces;
    double between[3];
    vec_sub(faces[1].centre, faces[0].centre, between);
    for (int j = 0; j < 3; j++) {
        pair.apart[0][j] = vec_dot(faces[0].axis[j], between);
        pair.apart[1][j] = -vec_dot(faces[1].axis[j], between);
        for (int k = 0; k < 3; k++) pair.cosine[j][k] = vec_dot(faces[0].axis[j], faces[1].axis[k]);
    }
    for (int f = 0; f < 2; f++) {
        const double *half = faces[f].half_mm;
        pair.diagonal[f] = 4.0 * (half[0] * half[0] + half[1] * half[1]);
    }
    const struct lr_native_frame *frame = taker->job->frame;
    const int *num = pair.hull.model->samples;
    const double num_all = (double)num[0] * num[1] * num[2];
    const int u_axis = frame->across[0], v_axis = frame->across[1];
    const int num_planes = num[frame->axis] <= MOST_PLANES ? num[frame->axis] : 0;
    for (int s = begin; s < end; s++) {
        /* The ranges of sample points that may have elements, in the whole slice and in each plane. */
        int samples[3][2], planes[MOST_PLANES][3][2], voxel[3];
        lr_listmode_hull_samples(&pair.hull, s, samples);
        for (int k = 0; k < num_planes; k++) lr_listmode_hull_plane(&pair.hull, s * num[frame->axis] + k, planes[k]);

        voxel[frame->axis] = s;
        for (int v = samples[v_axis][0] / num[v_axis]; v * num[v_axis] < samples[v_axis][1]; v++) {
            for (int u = samples[u_axis][0] / num[u_axis]; u * num[u_axis] < samples[u_axis][1]; u++) {
                voxel[u_axis] = u;
                voxel[v_axis] = v;
                const double weight = time_weight(&pair.hull, voxel);
                if (!(weight > 0)) continue;
                double sum = 0;
                for (int k = 0; k < num_planes; k++) sum += sum_samples(&pair, (const int(*)[2])planes[k], voxel);
                if (num_planes == 0) sum = sum_samples(&pair, (const int(*)[2])samples, voxel);
                const double share = sum / num_all;
                if (share > 0) taker->take(taker, (const int[3]){s, u, v}, weight * share);
            }
        }
    }
}

static int64_t number_in_frame(const struct lr_native_frame *frame, const int at[3])
{
    return at[0] * frame->plane + (at[2] + frame->border[1]) * frame->row + at[1] + frame->border[0];
}

/* --- the table --- */

static void take_forward(struct taker *taker, const int at[3], double element)
{
    taker->sum += element * (double)taker->job->image[number_in_frame(taker->job->frame, at)];
}

static void forward(const struct lr_native_listmode_job *job, const int64_t range[2], float *memory)
{
    (void)memory;
    const int all[2] = {0, job->frame->slices};
    for (int64_t k = range[0]; k < range[1]; k++) {
        const int64_t place = lr_listmode_place(job->places, job->events->number[k]);
        if (place >= 0) {
            struct taker taker = {.take = take_forward, .job = job};
            take_event(&taker, k, all);
            job->to[place] = (float)taker.sum;
        }
    }
}

static void take_back(struct taker *taker, const int at[3], double element)
{
    taker->job->sums[number_in_frame(taker->job->frame, at)] += element * taker->value;
}

static void back(const struct lr_native_listmode_job *job, const int64_t range[2], const int slab[2], float *memory)
{
    (void)memory;
    for (int64_t k = range[0]; k < range[1]; k++) {
        const int64_t place = lr_listmode_place(job->places, job->events->number[k]);
        const float value = place < 0 ? 0.0f : job->from != NULL ? job->from[place] : 1.0f;
        if (value != 0.0f) {
            struct taker taker = {.take = take_back, .job = job, .value = (double)value};
            take_event(&taker, k, slab);
        }
    }
}

static void take_listed(struct taker *taker, const int at[3], double element)
{
    const struct lr_native_frame *frame = taker->job->frame;
    const int *size = taker->job->model->grid.size;
    int voxel[3];
    voxel[frame->axis] = at[0];
    voxel[frame->across[0]] = at[1];
    voxel[frame->across[1]] = at[2];
    taker->visitor->take(taker->visitor->user, voxel[0] + size[0] * (voxel[1] + (int64_t)size[1] * voxel[2]), element);
}

static void list(const struct lr_native_listmode_job *job, int64_t k, const struct lr_listmode_visitor *visitor,
                 float *memory)
{
    (void)memory;
    struct taker taker = {.take = take_listed, .job = job, .visitor = visitor};
    take_event(&taker, k, (const int[2]){0, job->frame->slices});
}

const struct lr_native_listmode_kernels lr_native_listmode_exact = {"double precision", forward, back, list};
