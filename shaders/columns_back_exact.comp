#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Back-projection in exact mode of the pairs of modules that columns.glsl describes: each voxel
// gathers its elements times the values of their LORs. Modules that stand behind each other along
// the column, alike and evenly spaced, are one stack: their strips are the same. A thread has two
// points, half a column apart, because the ends of a column see few cells and its middle many.
//
// reads:     column modules, stacks and points, LOR values in stack order, 0 out of coincidence
// adds to:   voxel sums [share][across 1][across 0][along]
// shape:     groups (voxels across 0, voxels across 1, shares of the stacks x stretches along the
//            column)
// invariant: sums are added in a fixed order
// variants:  EXACT=1; EXACT=1 NEAR=1 STEEP=1
#ifndef EXACT
#define EXACT 1
#endif
#include "common/columns.glsl"

#include "common/columns_stacks.glsl"

layout(std430, binding = LR_BIND_COLUMN_IMAGE) buffer Sums {
    float sums[];
};
layout(std430, binding = LR_BIND_OUTPUT) readonly buffer Lors {
    float lors[];
};

STRIP_STORE(COLUMN_STRIPS)
shared float edges[2 * COLUMN_EDGES]; // of the two stacks
shared uint seen[COLUMN_GROUP / 32];
shared float partial[2 * COLUMN_GROUP];

int thread;

// A stack along the column: where the edges of its cells' faces stand, from the first point. An edge
// far away beyond both ends lets a walk look at its neighbours there too.
struct Stack {
    int edges, count;
    float face;
    float low, high; // ends
};

Stack make_stack(int at, int count, uint module)
{
    float face = column_modules[module].cells.w;
    return Stack(at, count, face, edges[at], edges[at + count - 1] + face);
}

// Copies the edges of a stack, with the one beyond each end.
void fill_edges(int to, int from, int count)
{
    for (int k = thread; k < count + 2; k += COLUMN_GROUP) {
        edges[to + k] = stack_edges[from - 1 + k];
    }
}

// Where a walk over the pairs of cells that see each other stands: q of stack a goes upwards and,
// since lines cross, s of stack b downwards.
struct Place {
    int q, s;
    float q_low, s_low; // edges of their faces, from the point
    float stop;         // a cell of a from here on sees nothing of b
};

// The lower edge of a cell's face; see cell_low.
float from_point(Stack stack, int cell, float along)
{
    precise float low = edges[stack.edges + cell] - along;
    return low;
}

// The last cell whose face begins at or before `low`; the first one where there is none. guess: its
// number were all cells evenly spaced.
int last_cell(Stack stack, float low)
{
    low = min(low, stack.high);
    float share = (low - stack.low) / (stack.high - stack.low);
    int cell = int(clamp(share * float(stack.count), 0.0, float(stack.count - 1)));
    while (cell > 0 && edges[stack.edges + cell] > low) {
        cell--;
    }
    while (cell < stack.count - 1 && edges[stack.edges + cell + 1] <= low) {
        cell++;
    }
    return cell;
}

Place begin_walk(Strip strip, Stack a, Stack b, float along)
{
    Place place;
    place.q = last_cell(a, lower_end(strip, b.high - along) + along - SLACK * a.face);
    place.q_low = from_point(a, place.q, along);
    float tau = strip.tau + (place.q_low > 0.0 ? 0.5 : -0.5) * abs(strip.dtau);
    place.s = last_cell(b, along - place.q_low / tau + SLACK * b.face);
    place.s_low = from_point(b, place.s, along);
    place.stop = upper_end(strip, b.low - along) + SLACK * a.face;
    return place;
}

void walk_on(inout Place place, Strip strip, Stack a, Stack b, float along)
{
    float below = from_point(b, place.s - 1, along);
    bool down = place.s > 0 && lower_end(strip, below + b.face) < fma(1.0 + SLACK, a.face, place.q_low);
    place.q += down ? 0 : 1;
    place.q_low = from_point(a, place.q, along);
    float above = from_point(b, place.s + 1, along);
    bool up = !down && place.s < b.count - 1 && upper_end(strip, above) > fma(-SLACK, a.face, place.q_low);
    place.s += down ? -1 : up ? 1 : 0;
    place.s_low = down ? below : up ? above : place.s_low;
#ifdef STEEP
    while (up && !strip.gentle) { // where it is, one step is enough
        above = from_point(b, place.s + 1, along);
        up = place.s < b.count - 1 && upper_end(strip, above) > fma(-SLACK, a.face, place.q_low);
        place.s += up ? 1 : 0;
        place.s_low = up ? above : place.s_low;
    }
#endif
}

// What strip n gives to the two points at `along` from the column's first one.
vec2 strip_sums(int n, Stack a, Stack b, vec2 along)
{
    Strip strip = STRIP_GET(n);
    Axial face_a, face_b;
    face_a.face = a.face;
    face_b.face = b.face;
    Place place = begin_walk(strip, a, b, along.x), other = begin_walk(strip, a, b, along.y);
    float here = along.x;
    bool second = place.q_low >= place.stop;
    if (second) {
        place = other;
        here = along.y;
    }
    vec2 result = vec2(0.0);
    float sum = 0.0;
    while (place.q < a.count && place.q_low < place.stop) {
        float value = lors[strip.first + uint(place.q * b.count + place.s)];
        sum += value * axial_weight(strip, face_a, face_b, ivec2(0), vec2(place.q_low, place.s_low));
        walk_on(place, strip, a, b, here);
        if ((place.q >= a.count || place.q_low >= place.stop) && !second) {
            place = other;
            here = along.y;
            second = true;
            result.x = sum;
            sum = 0.0;
        }
    }
    result.y = sum;
    return result;
}

// Every strip has its place, whatever thread finds it: strips are met in order, one after the other
// along both modules.
void fill_strips(StackPair pair, Crossing crossing, int begin)
{
    int axial = pair.count_a * pair.count_b;
    bool back = runs_back(crossing);
    for (int p = thread; p < crossing.primary.count; p += COLUMN_GROUP) {
        float u = crystal_middle(crossing.primary, p);
        float half_face = 0.5 * crossing.primary.face;
        ivec2 range = columns_between(crossing, u - half_face, u + half_face);
        for (int r = range.x; r <= range.y; r++) {
            int place = p + (back ? crossing.secondary.count - 1 - r : r) - begin;
            Strip strip = exact_strip(crossing, p, r);
            if (strip.width > 0.0 && place >= 0 && place < COLUMN_STRIPS) {
                strip.first = pair.first + uint((p * crossing.secondary.count + r) * axial);
                STRIP_PUT(place, strip)
            }
        }
    }
}

Crossing see_stacks(StackPair pair, vec4 across)
{
    return make_crossing(make_side(column_modules[pair.a], across.xy, across.zw),
                         make_side(column_modules[pair.b], across.xy, across.zw), true);
}

vec2 stacks_sums(StackPair pair, vec4 across, ivec2 points)
{
    Crossing crossing = see_stacks(pair, across);
    barrier();
    fill_edges(0, pair.edges_a, pair.count_a);
    fill_edges(COLUMN_EDGES, pair.edges_b, pair.count_b);
    barrier();
    Stack a = make_stack(1, pair.count_a, pair.a);
    Stack b = make_stack(COLUMN_EDGES + 1, pair.count_b, pair.b);
    // Threads without a point look from far outside and see nothing.
    vec2 along = vec2(points.x < num_points.z ? way_along(points.x) : 1e6,
                      points.y < num_points.z ? way_along(points.y) : 1e6);
    vec2 result = vec2(0.0);
    int total = crossing.primary.count + crossing.secondary.count - 1;
    for (int begin = 0; begin < total; begin += COLUMN_STRIPS) {
        int here = min(total - begin, COLUMN_STRIPS);
        barrier();
        for (int n = thread; n < here; n += COLUMN_GROUP) {
            strip_shapes[n].x = 0.0;
        }
        barrier();
        fill_strips(pair, crossing, begin);
        barrier();
        for (int n = 0; n < here; n++) {
            if (strip_shapes[n].x > 0.0) {
                result += strip_sums(n, a, b, along);
            }
        }
    }
    return result;
}

// One column: stacks are looked at COLUMN_GROUP at a time, and those seen are visited in order.
vec2 column_sums(vec4 across, ivec2 points, int share)
{
    vec2 result = vec2(0.0);
    int shares = count.z;
    int mine = (count.x - share + shares - 1) / shares;
    for (int begin = 0; begin < mine; begin += COLUMN_GROUP) {
        barrier();
        if (thread < COLUMN_GROUP / 32) {
            seen[thread] = 0u;
        }
        barrier();
        int candidate = (begin + thread) * shares + share;
        if (candidate < count.x && overlaps(see_stacks(stack_pairs[candidate], across))) {
            atomicOr(seen[thread >> 5], 1u << (thread & 31));
        }
        barrier();
        for (int word = 0; word < COLUMN_GROUP / 32; word++) {
            for (uint bits = seen[word]; bits != 0u; bits &= bits - 1u) {
                int next = (begin + 32 * word + findLSB(bits)) * shares + share;
                result += stacks_sums(stack_pairs[next], across, points);
            }
        }
    }
    return result;
}

void main()
{
    thread = int(gl_LocalInvocationIndex);
    ivec3 n = num_samples.xyz;
    int most = 2 * COLUMN_GROUP / n.z * n.z; // points of a stretch, whole voxels
    int share = int(gl_WorkGroupID.z) % count.z;
    int begin = int(gl_WorkGroupID.z) / count.z * most;
    int here = min(num_points.z - begin, most);
    int half_way = (here + 1) / 2;
    ivec2 mine = ivec2(thread, thread + half_way);
    ivec2 points = ivec2(mine.x < half_way ? begin + mine.x : num_points.z,
                         mine.x < half_way && mine.y < here ? begin + mine.y : num_points.z);
    vec2 result = vec2(0.0);
    ivec2 group = ivec2(gl_WorkGroupID.x, first.y + int(gl_WorkGroupID.y));
    for (int c = first.z; c < count.y; c++) {
        ivec2 at = group * n.xy + ivec2(c % n.x, c / n.x);
        vec2 x = column_points[point_across(0, at.x)], y = column_points[point_across(1, at.y)];
        result += column_sums(vec4(x.x, y.x, x.y, y.y), points, share);
    }
    if (mine.x < half_way) {
        partial[mine.x] = result.x;
        partial[mine.y] = result.y;
    }
    barrier();
    ivec3 size = num_points.xyz / n;
    int row = ((share * size.y + group.y) * size.x + group.x) * size.z;
    for (int voxel = thread; voxel < here / n.z; voxel += COLUMN_GROUP) {
        float whole = 0.0;
        for (int m = 0; m < n.z; m++) {
            whole += partial[voxel * n.z + m];
        }
        sums[row + begin / n.z + voxel] += whole / float(n.x * n.y * n.z);
    }
}
