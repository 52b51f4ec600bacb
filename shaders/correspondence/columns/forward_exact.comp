#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Forward projection in exact mode of the pairs of modules that columns.glsl describes: each LOR adds up its elements
// times their voxels. correspondence/columns/back_exact.comp explains stacks. MIRROR: stacks and points are symmetric
// along the columns. A thread works on a LOR and its mirror image, which have the same elements. HALF_TURN: the images
// of both after half a turn about the grid's middle also have these elements. The thread works on these images, too, if
// the window has them.
//
// reads: column modules, stacks and points, image [across 1][across 0][along], or with PACKED
//            the output of correspondence/columns/pack.comp
// writes: LOR values in stack order
// shape: groups (transaxial crystal pairs, stretches of axial crystal pairs, pairs of stacks)
// invariant: sums are added in a fixed order
// variants:  ; NEAR=1; MIRROR=1 ONE_POINT_ALONG=1; MIRROR=1 HALF_TURN=1; MIRROR=1 HALF_TURN=1 PACKED=1
#ifndef EXACT
#define EXACT 1
#endif
#include "correspondence/columns/columns.glsl"
#include "correspondence/columns/stacks.glsl"
#include "correspondence/columns/tube.glsl"

#ifdef PACKED
layout(std430, binding = LR_BIND_SUMS) readonly buffer Packed
{
    vec4 packed_voxels[]; // output of correspondence/columns/pack.comp
};
#else
layout(std430, binding = LR_BIND_COLUMN_IMAGE) readonly buffer Image
{
    float voxels[];
};
#endif
layout(std430, binding = LR_BIND_OUTPUT) writeonly buffer Lors
{
    float lors[];
};

STRIP_STORE(COLUMN_GROUP)
shared uint hits[(COLUMN_GROUP + 31) / 32]; // one bit for each candidate: 1 = it has a strip
shared vec2 shares[COLUMN_GROUP];
shared int rows[COLUMN_GROUP]; // first voxel of the column of each strip

// The axial cells of the thread's LOR.
struct Cells {
    vec2 middles; // middles of these cells, relative to the column's origin
    vec2 low;     // lower edges of the cells' faces, relative to the column's first point
    vec2 faces;
};

// The values of the image at point k of a column, at its mirror image, and at the images of both after half a turn.
vec4 values_at(int row, int k)
{
#ifndef ONE_POINT_ALONG
    k /= num_samples.z;
#endif
#ifdef PACKED
    return packed_voxels[row + k];
#else
    int along = num_points.z / num_samples.z;
    vec4 values = vec4(voxels[row + k], 0.0, 0.0, 0.0);
#ifdef MIRROR
    values.y = voxels[row + along - 1 - k];
#endif
#ifdef HALF_TURN
    int turned = (num_points.x / num_samples.x * (num_points.y / num_samples.y) - 1) * along - row;
    values.z = voxels[turned + k];
#ifdef MIRROR
    values.w = voxels[turned + along - 1 - k];
#endif
#endif
    return values;
#endif
}

// Sums over the points of column n in `range`: for the LOR, for its mirror image, and for the images of both after half
// a turn.
vec4 piece_sum(Strip strip, int row, ivec2 range, Cells cells)
{
    Axial a, b;
    a.face = cells.faces.x;
    b.face = cells.faces.y;
    vec4 sum = vec4(0.0);
    for (int k = range.x; k <= range.y; k++) {
        vec4 values = values_at(row, k);
        precise vec2 at = cells.middles - way_along(k);
        float weight = axial_weight(strip, a, b, ivec2(0), at);
        sum += weight * values;
    }
    return sum;
}

vec4 column_sum(int n, Cells cells)
{
    ivec2 range = ivec2(floor(points_between(shares[n], cells.low, cells.faces)));
    vec4 sum = vec4(0.0);
    int pieces = strip_pieces(n), k = 0;
    do {
        Strip strip = STRIP_GET(n);
        sum += piece_sum(strip_piece(strip, k), rows[n], range, cells);
    } while (++k < pieces);
    return sum;
}

// True if the window has the module pair at these places of two stacks. With MIRROR, also true if it has the pair's
// mirror image.
bool is_present(uint present, ivec2 place, ivec2 modules)
{
    uint bits = 1u << (place.x * modules.y + place.y & 31);
#ifdef MIRROR
    ivec2 mirrored = modules - 1 - place;
    bits |= 1u << (mirrored.x * modules.y + mirrored.y & 31);
#endif
    return (present & bits) != 0u;
}

// True if the window has any of the thread's LORs for cells Q, S of the stacks: the LOR itself, its mirror image, or
// the images of both after half a turn. The window can have the images' module pairs without the pair of the LOR
// itself.
bool is_wanted(StackPair stacks, ivec2 qs)
{
    ivec2 cells = ivec2(column_modules[stacks.a].counts.y, column_modules[stacks.b].counts.y);
    ivec2 modules = ivec2(stacks.count_a, stacks.count_b) / cells;
    ivec2 place = qs / cells;
    bool wanted = is_present(stacks.present, place, modules);
#ifdef HALF_TURN
    if (stacks.image != LR_NONE) {
        bool swapped = stacks.image_swapped != 0u;
        wanted = wanted || is_present(stack_pairs[stacks.image].present, swapped ? place.yx : place,
                                      swapped ? modules.yx : modules);
    }
#endif
    return wanted;
}

Cells make_cells(StackPair stacks, ivec2 qs)
{
    vec2 middles = vec2(stack_middles[stacks.first_a + qs.x], stack_middles[stacks.first_b + qs.y]);
    vec2 faces = vec2(column_modules[stacks.a].cells.w, column_modules[stacks.b].cells.w);
    return Cells(middles, middles - way_along(0) - 0.5 * faces, faces);
}

// Finds which candidates from `begin` on have a strip, and stores the strips for all threads.
void find_strips(Tube tube, int begin)
{
    int thread = int(gl_LocalInvocationIndex);
    barrier();
    if (thread < (COLUMN_GROUP + 31) / 32) hits[thread] = 0u;
    barrier();
    ivec2 column = begin + thread < tube.count ? tube_column(tube, begin + thread) : ivec2(-1);
    if (column.x >= 0) {
        Strip strip = tube_strip(tube, column);
        if (strip.width > 0.0) {
            STRIP_PUT(thread, strip)
            shares[thread] = strip_shares(strip);
            rows[thread] = first_voxel(column);
            atomicOr(hits[thread >> 5], 1u << (thread & 31));
        }
    }
    barrier();
}

vec4 tube_sum(Tube tube, Cells cells, bool wanted)
{
    vec4 sum = vec4(0.0);
    for (int begin = 0; begin < tube.count; begin += COLUMN_GROUP) {
        find_strips(tube, begin);
        // The number of candidates is hidden from compilers, so that they do not unroll the loop.
        int words = (min(COLUMN_GROUP, tube.count - begin) + 31) >> 5;
        for (int word = 0; wanted && word < words; word++)
            for (uint bits = hits[word]; bits != 0u; bits &= bits - 1u)
                sum += column_sum(32 * word + findLSB(bits), cells);
    }
    return sum;
}

// Writes the value of a LOR and the value of its mirror image in the block.
void write_both(uint block, int at, int num_axial, vec2 sum)
{
    lors[block + uint(at)] = sum.x;
#ifdef MIRROR
    if (at != num_axial - 1 - at) lors[block + uint(num_axial - 1 - at)] = sum.y;
#endif
}

void main()
{
    int pair = first.x + int(gl_WorkGroupID.z);
    StackPair stacks = stack_pairs[pair];
    ivec2 across = ivec2(column_modules[stacks.a].counts.x, column_modules[stacks.b].counts.x);
    int pr = int(gl_WorkGroupID.x), num_axial = stacks.count_a * stacks.count_b;
    int first_qs = int(gl_WorkGroupID.y) * COLUMN_GROUP;
#ifdef MIRROR
    int end = (num_axial + 1) / 2;
#else
    int end = num_axial;
#endif
    if (pr >= across.x * across.y || first_qs >= end ||
        (stacks.image != LR_NONE && int(stacks.image) < pair) || // the group of the pair's image computes this pair
        !has_taken(stacks, ivec2(pr / across.y, pr % across.y)))
        return;
    int at = first_qs + int(gl_LocalInvocationIndex);
    ivec2 qs = ivec2(min(at, end - 1) / stacks.count_b, min(at, end - 1) % stacks.count_b);
    bool wanted = at < end && is_wanted(stacks, qs);
    Tube tube = make_tube(stacks.a, stacks.b, ivec2(pr / across.y, pr % across.y));
    uint block = stacks.first + uint(pr * num_axial);
#ifdef HALF_TURN
    bool has_image = stacks.image != LR_NONE && int(stacks.image) != pair;
    uint turned = has_image ? image_block(stacks, tube.pr, across) : 0u;
    int turned_at = has_image ? image_place(stacks, qs) : 0;
#endif
    vec4 sum = tube_sum(tube, make_cells(stacks, qs), wanted);
    if (wanted) {
        sum /= float(num_samples.x * num_samples.y * num_samples.z);
        write_both(block, at, num_axial, sum.xy);
#ifdef HALF_TURN
        if (has_image) write_both(turned, turned_at, num_axial, sum.zw);
#endif
    }
    check_loops();
}
