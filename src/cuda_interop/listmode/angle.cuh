/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The solid angle in which a point near a LOR's line sees one face (the far face) through the other face (the near
 * face), for one thread. The code also compiles for the processor. A position (x, y) in the far face's plane is seen
 * through the near face if
 *     |across| <= half of the near face times height   and   |along| <= half of the near face times height.
 * height is the height of the position over the near plane. across and along are the near face's coordinates of the
 * ray from the point to the position, multiplied by this height. All three are linear functions of x and y. They are
 * expressed by the point's offset from the line, so that no large numbers are subtracted. */
#ifndef LR_CUDA_LISTMODE_ANGLE_CUH
#define LR_CUDA_LISTMODE_ANGLE_CUH

#include "cuda_interop/listmode/lanes.cuh"

/* A crystal's face. Offsets of points from the line are along u and v; face coordinates are in mm. */
struct angle_face {
    float across[2], along[2], normal[2]; /* components along u and v: each is multiplied by the offset */
    float lean[3]; /* cosines of the angles between the line and the face's axes; the normal's is negated */
    float half_mm[2];
    int pieces[2];     /* pieces that the face is divided into, along its axes */
    float piece_mm[2]; /* half edges of a piece */
};

/* A point relative to a face: its sideways distances, and its height above the face's plane. */
struct angle_place {
    float across, along, height;
};

__host__ __device__ inline angle_place place_over(const angle_face &face, const float off[2], float way_mm)
{
    return {face.across[0] * off[0] + face.across[1] * off[1], face.along[0] * off[0] + face.along[1] * off[1],
            face.normal[0] * off[0] + face.normal[1] * off[1] + way_mm * face.lean[2]};
}

template <class Number> __host__ __device__ void swap_numbers(Number &a, Number &b)
{
    const Number held = a;
    a = b;
    b = held;
}

/* per_root is 1 / sqrt(number), per_number is 1 / number. Both are accurate to a unit in the last place. On the
 * device, a subnormal argument counts as 0. */
__host__ __device__ inline float per_root(float x)
{
#ifdef __CUDA_ARCH__
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
#else
    return 1.0f / sqrtf(x);
#endif
}

__host__ __device__ inline float per_number(float x)
{
#ifdef __CUDA_ARCH__
    float number;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(number) : "f"(x));
    return number;
#else
    return 1.0f / x;
#endif
}

/* --- faces with a common axis: x lies between two numbers, y between two lines --- */

/* Sets the range to all x with a[0] + b[0] x >= 0 and a[1] + b[1] x >= 0. b is 0 for planes that are parallel to the
 * ray. A tiny number is added to b, so that the range is then either everything or empty. There are no branches, so
 * that the code before and after can run at the same time. */
__host__ __device__ inline void cut_range(const float a[2], const float b[2], float range[2])
{
    float low[2], high[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const float per_x = b[k] + 1e-30f, at = -a[k] * per_number(per_x);
        low[k] = per_x > 0.0f ? at : -1e30f;
        high[k] = per_x > 0.0f ? 1e30f : at;
    }
    range[0] = fmaxf(low[0], low[1]);
    range[1] = fminf(high[0], high[1]);
}

/* Statistics of a line over a strip whose positions range from -1/2 to 1/2. The line's values are clamped to the
 * interval from -half to half. first is 12 times the first moment. second is 12 times the difference between the
 * second moment and a twelfth of the mean. variance is 12 times the variance. Arguments, here and below: middle is
 * the line's value at position 0; half_rise is its rise from there to the end of the strip. */
struct clamped_line {
    float mean, first, second, variance;
};

/* Clamps a line that crosses at most one of the two limits. |half_rise| <= half ensures this. within: the fraction
 * of the strip where the line is not clamped. */
__host__ __device__ inline clamped_line clamp_flat(float middle, float half_rise, float half)
{
    const float rise = 2.0f * half_rise, steep = fabsf(rise), inner = half + 0.5f * steep - fabsf(middle);
    const float within = between_0_and_1(inner * per_number(fmaxf(steep, 1e-20f)));
    const float mean = half - within * (inner - 0.5f * steep * within);
    const float part = rise * within * within, out = within * (1.0f - within);
    return {copysignf(mean, middle), part * (3.0f - 2.0f * within), copysignf(steep * out * out, -middle),
            part * rise * within * (4.0f - 3.0f * within)};
}

/* Statistics of a line that is nearly level: its mean, and 3 times its first moment. */
struct level_line {
    float mean, first;
};

/* `within` is 0 or 1 for an exactly level line, or 0 in place of NaN. */
__host__ __device__ inline level_line clamp_level(float middle, float half_rise, float half)
{
    const float steep = fabsf(half_rise), inner = half + steep - fabsf(middle);
    const float within = between_0_and_1(inner * per_number(steep) * 0.5f);
    const float mean = half - within * (inner - steep * within);
    return {copysignf(mean, middle), half_rise * within * within * (1.5f - within)};
}

/* Clamps any line. */
__host__ __device__ inline clamped_line clamp_steep(float middle, float half_rise, float half)
{
    const float rise = 2.0f * half_rise, steep = fabsf(rise), part = per_number(fmaxf(steep, 1e-20f));
    const float over = between_0_and_1((middle + 0.5f * steep - half) * part);
    const float under = between_0_and_1((0.5f * steep - middle - half) * part);
    const float within = 1.0f - over - under;
    const float inner = 0.5f * (fmaxf(middle - 0.5f * steep, -half) + fminf(middle + 0.5f * steep, half));
    const float a = over * (1.0f - over), b = under * (1.0f - under);
    const float square = half * half * (over + under) + within * inner * inner;
    const float mean = half * (over - under) + within * inner;
    return {mean, rise * (1.0f - over * over * (3.0f - 2.0f * over) - under * under * (3.0f - 2.0f * under)),
            steep * (b * b - a * a), 12.0f * (square - mean * mean) + within * within * within * steep * steep};
}

/* A strip of a face's plane, from x - width / 2 to x + width / 2, without limits along y. Lines are measured from y,
 * the middle of the piece. The origin is the foot of the perpendicular from the point to the plane; height is the
 * length of this perpendicular. */
struct angle_strip {
    float x, y, width, height;

    /* Returns the solid angle of the area between two lines: the area, times the density height / distance^3 at the
     * area's middle, with all terms of second order. squares: x^2 + height^2. This version is for nearly level
     * lines. */
    __host__ __device__ float angle_from(const level_line &upper, const level_line &lower, float squares) const
    {
        const float tall = upper.mean - lower.mean, at = y + 0.5f * (upper.mean + lower.mean);
        const float at_at = at * at, root = per_root(squares + at_at), inverse = root * root;
        const float xx = width * width, yy = tall * tall;
        const float xy = 4.0f * width * (upper.first + lower.first);
        const float first = x * width * (upper.first - lower.first);
        const float square = x * (x * xx + at * xy) + at_at * yy;
        const float bend = tall * (0.625f * inverse * square - 0.125f * (xx + yy)) - first;
        return height * width * inverse * root * fmaxf(tall + inverse * bend, 0.0f);
    }

    /* Returns the solid angle between any two lines. */
    __host__ __device__ float angle_from(const clamped_line &upper, const clamped_line &lower, float squares) const
    {
        const float tall = upper.mean - lower.mean, at = y + 0.5f * (upper.mean + lower.mean);
        const float root = per_root(squares + at * at), inverse = root * root;
        const float xx = width * width * (tall + upper.second - lower.second);
        const float yy = tall * (tall * tall + 0.5f * (upper.variance + lower.variance));
        const float xy = tall * width * (upper.first + lower.first);
        const float first = x * width * (upper.first - lower.first) + 0.5f * at * (upper.variance - lower.variance);
        const float square = x * (x * xx + at * xy) + at * at * yy;
        const float bend = 0.625f * inverse * square - 0.125f * (xx + yy) - 0.25f * first;
        return height * inverse * root * width * fmaxf(tall + inverse * bend, 0.0f);
    }
};

/* The seen part of the far face's plane: x is within `range`, and y is between line - apart and line + apart. Both
 * line and apart are linear in x. */
struct angle_strips {
    float range[2], line, line_per_x, apart, apart_per_x;
    float foot[2], height; /* from the foot of the point to the face's middle */

    /* Seen solid angle of a piece around `middle`. */
    __host__ __device__ float angle(const float middle[2], const float half[2]) const
    {
        const float from = fmaxf(range[0], middle[0] - half[0]);
        const float to = fminf(range[1], middle[0] + half[0]);
        const float x = 0.5f * (from + to), width = to - from;
        if (!(width > 0.0f)) return 0.0f;
        const float centre = line + x * line_per_x - middle[1], wide = apart + x * apart_per_x;
        const float steep = line_per_x * (0.5f * width), more = apart_per_x * (0.5f * width);
        clamped_line upper, lower;
        if (fabsf(steep) + fabsf(more) <= half[1]) {
            upper = clamp_flat(centre + wide, steep + more, half[1]);
            lower = clamp_flat(centre - wide, steep - more, half[1]);
        } else {
            upper = clamp_steep(centre + wide, steep + more, half[1]);
            lower = clamp_steep(centre - wide, steep - more, half[1]);
        }
        const angle_strip strip = {foot[0] + x, foot[1] + middle[1], width, height};
        const float squares = strip.x * strip.x + strip.height * strip.height;
        return upper.mean > lower.mean ? strip.angle_from(upper, lower, squares) : 0.0f;
    }
};

/* The seen part of one piece, for points that differ only along the faces' common axis. All these points have the
 * same two limits of x. The two lines in y depend linearly on a point's offset from the line along this axis. */
struct angle_column {
    float width, x, height, squares; /* width <= 0: nothing is seen; squares: (x from the foot)^2 + height^2 */
    float wide, more;                /* half the distance between the lines in the middle; its increase to the end */
    float centre, centre_per;        /* middle of the two lines for an offset of 0; its increase per mm of offset */
    float rise, rise_per; /* rise of this middle to the end of the strip, for an offset of 0; increase per mm */
    float foot;           /* y of the foot for an offset of 0 */

    /* Finds the solid angles of points with these offsets along the axis, for one kind of lines. All angles are
     * computed together, because a thread would otherwise wait for each result. */
    template <class Line, int Count>
    __host__ __device__ void find_between(const float (&along)[Count], float half,
                                          Line (*clamp)(float middle, float half_rise, float half),
                                          float (&angles)[Count]) const
    {
        Line upper[Count], lower[Count];
#pragma unroll
        for (int j = 0; j < Count; j++) {
            const float middle = centre + along[j] * centre_per;
            const float steep = rise + along[j] * rise_per;
            upper[j] = clamp(middle + wide, steep + more, half);
            lower[j] = clamp(middle - wide, steep - more, half);
        }
#pragma unroll
        for (int j = 0; j < Count; j++) {
            const angle_strip strip = {x, foot - along[j], width, height};
            angles[j] = strip.angle_from(upper[j], lower[j], squares);
        }
    }

    /* AreSmall: the faces are small (angle_view). */
    template <bool AreSmall, int Count>
    __host__ __device__ void find_angles(const float (&along)[Count], float half, float (&angles)[Count]) const
    {
        if constexpr (AreSmall) {
            find_between(along, half, clamp_level, angles);
        } else {
            bool is_steep = false;
#pragma unroll
            for (int j = 0; j < Count; j++)
                is_steep = is_steep || fabsf(rise + along[j] * rise_per) + fabsf(more) > half;
            if (is_steep)
                find_between(along, half, clamp_steep, angles);
            else
                find_between(along, half, clamp_flat, angles);
        }
    }
};

/* Limit of the ratio of a face's edge to a point's distance. Below it, the face counts as small. If w is this limit,
 * lines rise by at most w of a face, and the omitted terms are below w^3 / 8. */
constexpr float angle_small = 0.035f;

/* --- faces that lean: the far one is cut by four lines (Sutherland and Hodgman 1974) --- */

struct angle_polygon {
    int count;
    float x[8], y[8]; /* four corners, and one more for each cut */

    __host__ __device__ angle_polygon(const float half[2])
        : count(4), x{-half[0], half[0], half[0], -half[0]}, y{-half[1], -half[1], half[1], half[1]}
    {
    }

    __host__ __device__ void add(float to_x, float to_y)
    {
        if (count < 8) {
            x[count] = to_x;
            y[count++] = to_y;
        }
    }

    /* Keeps the part where line[0] + line[1] x + line[2] y >= 0. The corners' coordinates start at `middle`, the middle
     * of the piece. half: half edges of the piece. */
    __host__ __device__ void cut(const float middle[2], const float half[2], const float line[3])
    {
        const float moved[3] = {line[0] + line[1] * middle[0] + line[2] * middle[1], line[1], line[2]};
        const float reach = fabsf(line[1]) * half[0] + fabsf(line[2]) * half[1];
        if (moved[0] <= -reach) {
            count = 0;
        } else if (moved[0] < reach && count > 0) {
            const angle_polygon in = *this;
            int before = in.count - 1;
            float side_before = moved[0] + moved[1] * in.x[before] + moved[2] * in.y[before];
            count = 0;
            for (int k = 0; k < in.count; k++) {
                const float side = moved[0] + moved[1] * in.x[k] + moved[2] * in.y[k];
                if ((side < 0.0f) != (side_before < 0.0f)) {
                    const float t = quotient_of(side_before, side_before - side);
                    add(in.x[before] + t * (in.x[k] - in.x[before]), in.y[before] + t * (in.y[k] - in.y[before]));
                }
                if (side >= 0.0f) add(in.x[k], in.y[k]);
                before = k;
                side_before = side;
            }
        }
    }

    /* Area times the density height / distance^3 at the centroid, with the terms of second order. foot: vector from
     * the point's foot to the origin of corners. */
    __host__ __device__ float angle(const float foot[2], float height) const
    {
        float area = 0, first[2] = {0, 0}, second[3] = {0, 0, 0};
        for (int k = 1; k + 1 < count; k++) {
            const float px = x[k] - x[0], py = y[k] - y[0];
            const float qx = x[k + 1] - x[0], qy = y[k + 1] - y[0], twice = px * qy - py * qx;
            area += 0.5f * twice;
            first[0] += twice * (px + qx) * (1.0f / 6.0f);
            first[1] += twice * (py + qy) * (1.0f / 6.0f);
            second[0] += twice * (px * px + px * qx + qx * qx) * (1.0f / 12.0f);
            second[1] += twice * (py * py + py * qy + qy * qy) * (1.0f / 12.0f);
            second[2] += twice * (2.0f * (px * py + qx * qy) + px * qy + qx * py) * (1.0f / 24.0f);
        }
        if (!(area > 0.0f)) return 0.0f;
        const float mean[2] = {quotient_of(first[0], area), quotient_of(first[1], area)};
        const float at_x = foot[0] + x[0] + mean[0], at_y = foot[1] + y[0] + mean[1];
        const float xx = second[0] - mean[0] * first[0], yy = second[1] - mean[1] * first[1];
        const float xy = second[2] - mean[0] * first[1];
        const float root = per_root(at_x * at_x + at_y * at_y + height * height);
        const float inverse = root * root;
        const float bend =
            7.5f * inverse * (at_x * at_x * xx + 2.0f * at_x * at_y * xy + at_y * at_y * yy) - 1.5f * (xx + yy);
        return height * inverse * root * fmaxf(area + inverse * bend, 0.0f);
    }
};

/* --- the two faces --- */

/* The two faces as a point sees them. The far face is the one whose distance along the line from the plane of points
 * is larger. The height of a point over the far face's plane is usually, but not always, the larger one too. Cosines
 * are between an axis of the near face and one of the far face. */
template <bool Leaning> struct angle_view {
    angle_face near_face, far_face;
    float across_across, normal_across, across_normal;
    float along_along, across_along, along_across, normal_along, along_normal; /* Leaning */
    float length_mm;

    __host__ __device__ void turn_round()
    {
        swap_numbers(near_face, far_face);
        swap_numbers(normal_across, across_normal);
        if constexpr (Leaning) {
            swap_numbers(across_along, along_across);
            swap_numbers(normal_along, along_normal);
        }
    }

    /* off: offset of the point from the line. ways: distances along the line to the near face, and to the far face. */
    __host__ __device__ float angle(const float off[2], const float ways[2]) const
    {
        const angle_place below = place_over(near_face, off, ways[0]);
        const angle_place above = place_over(far_face, off, ways[1]);
        if (!(below.height > 0.0f && above.height > 0.0f)) return 0.0f;
        if constexpr (Leaning)
            return angle_through(below, above, ways);
        else
            return angle_of_strips(below, above, ways);
    }

    __host__ __device__ float angle_of_strips(const angle_place &below, const angle_place &above,
                                              const float ways[2]) const
    {
        const float *lean = near_face.lean, *half = near_face.half_mm, rise = normal_across;
        const float normal = below.height - ways[0] * lean[2], through = ways[1] * lean[2] - normal;
        const float u = length_mm * (lean[0] * normal + lean[2] * below.across);
        const float v = length_mm * (lean[1] * normal + lean[2] * below.along);
        const float u_per_x = rise * (below.across - ways[0] * lean[0]) - below.height * across_across;
        const float v_per_x = rise * (below.along - ways[0] * lean[1]);
        const float at_edge[2] = {half[0] * through - u, half[0] * through + u};
        const float per_x[2] = {half[0] * rise - u_per_x, half[0] * rise + u_per_x};
        const float per_height = per_number(below.height);
        angle_strips strips;
        cut_range(at_edge, per_x, strips.range);
        strips.line = v * per_height;
        strips.line_per_x = v_per_x * per_height;
        strips.apart = half[1] * through * per_height;
        strips.apart_per_x = half[1] * rise * per_height;
        strips.foot[0] = ways[1] * far_face.lean[0] - above.across;
        strips.foot[1] = -ways[1] * lean[1] - below.along;
        strips.height = above.height;

        const int across = far_face.pieces[0], along = far_face.pieces[1];
        const float *edges = far_face.piece_mm; /* half edges of a piece */
        if ((across | along) == 1) {
            const float middle[2] = {0.0f, 0.0f};
            return strips.angle(middle, edges);
        }
        float sum = 0.0f;
        for (int k = 0; k < across * along; k++) {
            const float middle[2] = {(float)(2 * (k % across) + 1 - across) * edges[0],
                                     (float)(2 * (k / across) + 1 - along) * edges[1]};
            sum += strips.angle(middle, edges);
        }
        return sum;
    }

    /* True if points along v differ only along the faces' axis `along`, and see the faces in one piece. */
    __host__ __device__ bool has_columns() const
    {
        const bool is_upright = near_face.across[1] == 0.0f && near_face.normal[1] == 0.0f &&
                                far_face.across[1] == 0.0f && far_face.normal[1] == 0.0f;
        const int pieces = near_face.pieces[0] | near_face.pieces[1] | far_face.pieces[0] | far_face.pieces[1];
        return is_upright && near_face.along[0] == 0.0f && pieces == 1;
    }

    /* True if both faces look small from every point whose distance to the farther face is at least half of the
     * line's length. */
    __host__ __device__ bool are_small() const
    {
        const float edge =
            fmaxf(fmaxf(near_face.half_mm[0], near_face.half_mm[1]), fmaxf(far_face.half_mm[0], far_face.half_mm[1]));
        return 4.0f * edge <= angle_small * length_mm;
    }

    /* Finds the values that are the same for all points with offset `off` along u, if has_columns. The formulas are
     * those of angle_of_strips, except for the offset along the axis. */
    __host__ __device__ angle_column column(float off, const float ways[2]) const
    {
        const float *lean = near_face.lean, *half = near_face.half_mm, rise = normal_across;
        const float normal = near_face.normal[0] * off, across = near_face.across[0] * off;
        const float below = normal + ways[0] * lean[2];
        const float above = far_face.normal[0] * off + ways[1] * far_face.lean[2];
        const float through = ways[1] * lean[2] - normal;
        const float u = length_mm * (lean[0] * normal + lean[2] * across);
        const float u_per_x = rise * (across - ways[0] * lean[0]) - below * across_across;
        const float at_edge[2] = {half[0] * through - u, half[0] * through + u};
        const float per_x[2] = {half[0] * rise - u_per_x, half[0] * rise + u_per_x};
        float range[2];
        cut_range(at_edge, per_x, range);
        const float from = fmaxf(range[0], -far_face.half_mm[0]);
        const float to = fminf(range[1], far_face.half_mm[0]);
        const float x = 0.5f * (from + to), per_height = per_number(below);
        const float edge = half[1] * per_height, sweep = rise * per_height;
        angle_column column;
        column.wide = edge * (through + x * rise);
        column.width = below > 0.0f && above > 0.0f && column.wide > 0.0f ? to - from : 0.0f;
        column.x = ways[1] * far_face.lean[0] - far_face.across[0] * off + x;
        column.height = above;
        column.squares = column.x * column.x + above * above;
        column.more = edge * rise * (0.5f * column.width);
        column.centre_per = length_mm * lean[2] * per_height + x * sweep;
        column.centre = lean[1] * (length_mm * normal * per_height - x * sweep * ways[0]);
        column.rise_per = sweep * (0.5f * column.width);
        column.rise = -column.rise_per * ways[0] * lean[1];
        column.foot = -ways[1] * lean[1];
        return column;
    }

    __host__ __device__ float angle_through(const angle_place &below, const angle_place &above,
                                            const float ways[2]) const
    {
        const float *lean = near_face.lean, normal = below.height - ways[0] * lean[2];
        const float through[3] = {ways[1] * lean[2] - normal, normal_across, normal_along};
        const float a = below.across - ways[0] * lean[0], b = below.along - ways[0] * lean[1];
        const float across[3] = {length_mm * (lean[0] * normal + lean[2] * below.across),
                                 through[1] * a - below.height * across_across,
                                 through[2] * a - below.height * across_along};
        const float along[3] = {length_mm * (lean[1] * normal + lean[2] * below.along),
                                through[1] * b - below.height * along_across,
                                through[2] * b - below.height * along_along};
        const float foot[2] = {ways[1] * far_face.lean[0] - above.across, ways[1] * far_face.lean[1] - above.along};
        const int *pieces = far_face.pieces;
        const float *half = far_face.piece_mm;
        float sum = 0.0f;
        for (int k = 0; k < pieces[0] * pieces[1]; k++) {
            const float middle[2] = {(float)(2 * (k % pieces[0]) + 1 - pieces[0]) * half[0],
                                     (float)(2 * (k / pieces[0]) + 1 - pieces[1]) * half[1]};
            const float from[2] = {foot[0] + middle[0], foot[1] + middle[1]};
            angle_polygon polygon(half);
            for (int side = 0; side < 4; side++) {
                const float sign = side % 2 == 0 ? -1.0f : 1.0f;
                const float edge = near_face.half_mm[side / 2];
                const float *ray = side < 2 ? across : along;
                const float line[3] = {edge * through[0] + sign * ray[0], edge * through[1] + sign * ray[1],
                                       edge * through[2] + sign * ray[2]};
                polygon.cut(middle, half, line);
            }
            sum += polygon.count >= 3 ? polygon.angle(from, above.height) : 0.0f;
        }
        return sum;
    }
};

#endif
