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
// variants:  EXACT=1; EXACT=1 STACKED=1
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
shared uint seen[COLUMN_GROUP / 32];
shared float partial[2 * COLUMN_GROUP];

int thread;

// A stack along the column, seen from one of its points.
struct Stack {
    float start; // edge of the first cell's face
    float pitch, face, hop; // hop: from a module's last cell to the next one's first
    float spacing;
    int count, modules;
};

Stack make_stack(uint index, int modules, float spacing)
{
    ColumnModule module = column_modules[index];
    Axial axial = make_axial(module, 1);
    return Stack(axial.start + 0.5 * (axial.pitch - axial.face), axial.pitch, axial.face,
                 spacing - float(axial.count - 1) * axial.pitch, spacing, axial.count, modules);
}

// Where a walk over the pairs of cells that see each other stands: q of stack a goes upwards and,
// since lines cross, s of stack b downwards.
struct Place {
    float q_low, s_low; // edges of the cells' faces
    float stop;         // a cell of a from here on sees nothing of b
    int q, s;           // within their modules
    int above_q, above_s, below_s; // cells of the stacks there
    int at;             // of the value, within the strip's block
};

// Module and cell at a distance from the edge of the first cell's face.
ivec2 stack_cell(Stack stack, float place)
{
    int module = 0;
#ifdef STACKED
    module = clamp(int(floor(place / stack.spacing)), 0, stack.modules - 1);
#endif
    float within = place - float(module) * stack.spacing;
    return ivec2(module, clamp(int(floor(within / stack.pitch)), 0, stack.count - 1));
}

float face_edge(Stack stack, ivec2 cell)
{
    return stack.start + (float(cell.x) * stack.spacing + float(cell.y) * stack.pitch);
}

bool is_beyond(Place place)
{
    return place.above_q < 0 || place.stop <= place.q_low;
}

Place begin_walk(Strip strip, Stack a, Stack b, float along)
{
    float first_b = b.start - along;
    float end_b = first_b + float(b.modules - 1) * b.spacing + float(b.count) * b.pitch;
    float end_a = a.start - along + float(a.modules - 1) * a.spacing + float(a.count) * a.pitch;
    ivec2 cell_a = stack_cell(a, lower_end(strip, end_b) - (a.start - along));
    Place place;
    place.q_low = face_edge(a, cell_a) - along;
    float tau = strip.tau + (place.q_low > 0.0 ? 0.5 : -0.5) * abs(strip.dtau);
    ivec2 cell_b = stack_cell(b, -place.q_low / tau - first_b);
    place.s_low = face_edge(b, cell_b) - along;
    place.stop = lower_end(strip, end_b) < end_a ? upper_end(strip, first_b) : place.q_low;
    place.q = cell_a.y;
    place.s = cell_b.y;
    int num_b = b.modules * b.count, at_a = cell_a.x * a.count + cell_a.y;
    place.below_s = cell_b.x * b.count + cell_b.y;
    place.above_s = num_b - 1 - place.below_s;
    place.above_q = a.modules * a.count - 1 - at_a;
    place.at = at_a * num_b + place.below_s;
    return place;
}

float way_up(int cell, Stack stack)
{
#ifdef STACKED
    return cell == stack.count - 1 ? stack.hop : stack.pitch;
#else
    return stack.pitch;
#endif
}

float way_down(int cell, Stack stack)
{
#ifdef STACKED
    return cell == 0 ? stack.hop : stack.pitch;
#else
    return stack.pitch;
#endif
}

void step_s(inout Place place, Stack b, int way)
{
    place.s_low += way > 0 ? way_up(place.s, b) : -way_down(place.s, b);
    place.s += way;
#ifdef STACKED
    place.s = place.s < 0 ? b.count - 1 : place.s == b.count ? 0 : place.s;
#endif
    place.below_s += way;
    place.above_s -= way;
    place.at += way;
}

void walk_on(inout Place place, Strip strip, Stack a, Stack b)
{
    float next_top = place.s_low - way_down(place.s, b) + b.face;
    if (place.below_s > 0 && lower_end(strip, next_top) < place.q_low + a.face) {
        step_s(place, b, -1);
        return;
    }
    place.q_low += way_up(place.q, a);
    place.q++;
#ifdef STACKED
    place.q = place.q == a.count ? 0 : place.q;
#endif
    place.above_q--;
    place.at += b.modules * b.count;
    do {
        if (place.above_s == 0 ||
            upper_end(strip, place.s_low + way_up(place.s, b)) <= place.q_low) {
            break;
        }
        step_s(place, b, 1);
    } while (!strip.gentle); // where it is, one step is enough
}

// What strip n gives to the two points at `along` from the column's first one.
vec2 strip_sums(int n, Stack a, Stack b, vec2 along)
{
    Strip strip = STRIP_GET(n);
    Axial face_a, face_b;
    face_a.face = a.face;
    face_b.face = b.face;
    Place place = begin_walk(strip, a, b, along.x), other = begin_walk(strip, a, b, along.y);
    bool second = is_beyond(place);
    if (second) {
        place = other;
    }
    vec2 result = vec2(0.0);
    float sum = 0.0;
    while (!is_beyond(place)) {
        float value = lors[strip.first + uint(place.at)];
        sum += value * axial_weight(strip, face_a, face_b, ivec2(0), vec2(place.q_low, place.s_low));
        walk_on(place, strip, a, b);
        if (is_beyond(place) && !second) {
            place = other;
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
    int axial = pair.modules_a * column_modules[pair.a].counts.y * pair.modules_b *
                column_modules[pair.b].counts.y;
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
    Stack a = make_stack(pair.a, pair.modules_a, pair.spacing_a);
    Stack b = make_stack(pair.b, pair.modules_b, pair.spacing_b);
    // Far outside nothing is seen.
    vec2 along = vec2(points.x < num_points.z ? float(points.x) * spacing_mm.z : 1e9,
                      points.y < num_points.z ? float(points.y) * spacing_mm.z : 1e9);
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
