#version 450 core
// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Back-projection in exact mode of the pairs of modules that columns.glsl describes: each voxel gathers its elements
// times the values of their LORs. Equal modules that follow each other along the column at an even spacing are one
// stack, and have the same strips. A thread has two points of a column. Points at the ends of a column see few cells,
// and points in its middle see many. The two points are therefore chosen so that all threads see about as many cells.
// If a column has few points, the group works on several columns side by side.
//
// MIRROR: stacks and points are symmetric along the column. The mirror images of the two points have the same elements,
// and the thread computes their sums, too. HALF_TURN: the scene is unchanged by half a turn about the grid's middle. A
// column and its image after half a turn then have the same elements, with LORs that are images of each other.
//
// reads: column modules, stacks and points, LOR values in stack order, 0 out of coincidence
// adds to: voxel sums [share][across 1][across 0][along]
// shape: groups (voxels across 0 / columns of a group, voxels across 1, shares of the stacks x
//            stretches along the column)
// invariant: sums are added in a fixed order
// variants:  EXACT=1; EXACT=1 NEAR=1; EXACT=1 MIRROR=1; EXACT=1 MIRROR=1 HALF_TURN=1
// NVIDIA's compiler would unroll loops whose length it does not know. This would double the compiler's time, and not
// make the program faster (docs/notes/first-runs.md). Other compilers ignore this pragma.
#pragma optionNV(unroll none)

#ifndef EXACT
#define EXACT 1
#endif
#include "correspondence/columns/columns.glsl"

#include "correspondence/columns/stacks.glsl"

layout(std430, binding = LR_BIND_COLUMN_IMAGE) buffer Sums
{
    float sums[];
};
layout(std430, binding = LR_BIND_OUTPUT) readonly buffer Lors
{
    float lors[];
};

STRIP_STORE(COLUMN_COLUMNS *COLUMN_STRIPS)
shared float middles[2 * COLUMN_CELLS]; // middles of the cells of the two stacks
#ifdef HALF_TURN
shared uint strip_images[COLUMN_COLUMNS * COLUMN_STRIPS]; // value index of each strip's image after half a turn
#endif
shared uint seen[COLUMN_GROUP / 32];
shared float partial[8 * COLUMN_GROUP]; // [images][columns][points of the stretch]

int thread;

// The work of one thread. Each thread has one slot: two points of one column.
struct Task {
    int begin, points; // points of the stretch
    int slots;
    int slot, column; // the thread's slot, and its column within the group
    ivec2 mine;       // points of the slot, counted from `begin`; -1 = none
    vec2 along;       // positions of these points, counted from the column's origin
};

Task make_task(int stretch, int columns)
{
    Task task;
#ifdef MIRROR
    task.begin = 0;
    task.points = num_points.z;
    int half_way = (num_points.z + 1) / 2;
#else
    int most = 2 * COLUMN_GROUP / num_samples.z * num_samples.z; // whole voxels
    task.begin = stretch * most;
    task.points = min(num_points.z - task.begin, most);
    int half_way = task.points;
#endif
    task.slots = (half_way + 1) / 2;
    task.slot = thread % task.slots;
    task.column = min(thread / task.slots, COLUMN_COLUMNS - 1);
    bool works = thread < columns * task.slots;
#ifdef MIRROR
    int other = half_way - 1 - task.slot;
    bool has_other = other > task.slot;
#else
    int other = task.slot + task.slots;
    bool has_other = other < half_way;
#endif
    task.mine = ivec2(works ? task.slot : -1, works && has_other ? other : -1);
    // A thread without a point gets a position from which it sees nothing.
    task.along = vec2(task.mine.x >= 0 ? way_along(task.begin + task.mine.x) : 1e6,
                      task.mine.y >= 0 ? way_along(task.begin + task.mine.y) : 1e6);
    return task;
}

// A stack of cells along the column. Positions are those of the cells' middles, from the column's origin. A dummy cell
// far beyond each end lets a walk read the neighbours of the first and the last cell.
struct Stack {
    int first, count;
    float half_face;
    float low, high; // middles of the first and of the last cell
};

Stack make_stack(int at, int count, uint module)
{
    return Stack(at, count, 0.5 * column_modules[module].cells.w, middles[at], middles[at + count - 1]);
}

// Copies the middles of a stack's cells, and of the cell that is added beyond each end.
void fill_middles(int to, int from, int count)
{
    for (int k = thread; k < count + 2; k += COLUMN_GROUP) middles[to + k] = stack_middles[from - 1 + k];
}

// The position of a walk over the pairs of cells that see each other. Cell q of stack a moves upwards. Cell s of stack
// b moves downwards, because lines cross.
struct Place {
    int q, s;
    float at_q, at_s; // middles of the two cells, relative to the point
    float stop;       // cells of stack a whose middle is at this position or beyond see nothing of stack b
};

// The middle of a cell, relative to the point. `place` is precise for the reason given at cell_place.
float from_point(Stack stack, int cell, float along)
{
    precise float place = middles[stack.first + cell] - along;
    return place;
}

// The last cell whose middle is at or before `place`; the first cell if there is no such cell.
int last_cell(Stack stack, float place)
{
    place = min(place, stack.high);
    float share = (place - stack.low) / max(stack.high - stack.low, 1e-6);
    int cell = int(clamp(share * float(stack.count), 0.0, float(stack.count - 1)));
    while (cell > 0 && middles[stack.first + cell] > place) cell--;
    while (cell < stack.count - 1 && middles[stack.first + cell + 1] <= place) cell++;
    return cell;
}

// Half a face, plus the distance by which two cells can miss each other and still be visited.
float generous(Stack stack)
{
    return (1.0 + 2.0 * SLACK) * stack.half_face;
}

Place begin_walk(Strip strip, Stack a, Stack b, float along)
{
    Place place;
    float start = lower_end(strip, b.high + b.half_face - along);
    place.q = last_cell(a, start + along + (1.0 - 2.0 * SLACK) * a.half_face);
    place.at_q = from_point(a, place.q, along);
    float low = place.at_q - a.half_face;
    float tau = strip.tau + (low > 0.0 ? 0.5 : -0.5) * abs(strip.dtau);
    place.s = last_cell(b, along - low / tau + generous(b));
    place.at_s = from_point(b, place.s, along);
    place.stop = upper_end(strip, b.low - b.half_face - along) + generous(a);
    return place;
}

void walk_on(inout Place place, Strip strip, Stack a, Stack b, float along)
{
    float below = from_point(b, place.s - 1, along);
    float above = from_point(b, place.s + 1, along);
    float next = from_point(a, place.q + 1, along);
    float reach = next - generous(a);
    bool down = lower_end(strip, below + b.half_face) < place.at_q + generous(a);
    bool up = !down && upper_end(strip, above - b.half_face) > reach;
    bool stay = !down && upper_end(strip, place.at_s - b.half_face) > reach;
    place.q += down ? 0 : 1;
    place.at_q = down ? place.at_q : next;
    place.s += up ? 1 : stay ? 0 : -1;
    place.at_s = up ? above : stay ? place.at_s : below;
}

// True if the walk goes on. The numbers of the cells are also checked, because nothing else would end a walk if the
// column touches a module's plane.
bool goes_on(Place place, Stack a)
{
    return place.at_q < place.stop && place.q < a.count && place.s >= 0;
}

// Sums of the thread's two points. own: x, y = the two points; z, w = their mirror images. image: the images of these
// four points after half a turn.
struct PointSums {
    vec4 own, image;
};

// The LOR values of cells q, s of strip n, of the cells' mirror images, and of the images of both after half a turn.
vec4 values_of(int n, StackPair pair, ivec2 qs)
{
    uint first = strip_places[n].x;
    int last = pair.count_a * pair.count_b - 1, at = qs.x * pair.count_b + qs.y;
    vec4 values = vec4(lors[first + uint(at)], 0.0, 0.0, 0.0);
#ifdef MIRROR
    values.y = lors[first + uint(last - at)];
#endif
#ifdef HALF_TURN
    int place = image_place(pair, qs);
    values.z = lors[strip_images[n] + uint(place)];
#ifdef MIRROR
    values.w = lors[strip_images[n] + uint(last - place)];
#endif
#endif
    return values;
}

// The sums of one piece of strip n, at the thread's two points.
PointSums piece_sums(int n, Strip strip, StackPair pair, Task task)
{
    Stack a = make_stack(1, pair.count_a, pair.a);
    Stack b = make_stack(COLUMN_CELLS + 1, pair.count_b, pair.b);
    Axial face_a, face_b;
    face_a.face = 2.0 * a.half_face;
    face_b.face = 2.0 * b.half_face;
    Place place = begin_walk(strip, a, b, task.along.x), other = begin_walk(strip, a, b, task.along.y);
    float here = task.along.x;
    bool second = !goes_on(place, a);
    if (second) {
        place = other;
        here = task.along.y;
    }
    PointSums result = PointSums(vec4(0.0), vec4(0.0));
    vec4 sum = vec4(0.0);
    while (goes_on(place, a)) {
        vec4 values = values_of(n, pair, ivec2(place.q, place.s));
        vec2 at = vec2(place.at_q, place.at_s);
        walk_on(place, strip, a, b, here);
        sum += axial_weight(strip, face_a, face_b, ivec2(0), at) * values;
        if (!second && !goes_on(place, a)) {
            place = other;
            here = task.along.y;
            second = true;
            result.own.xz = sum.xy;
            result.image.xz = sum.zw;
            sum = vec4(0.0);
        }
    }
    result.own.yw = sum.xy;
    result.image.yw = sum.zw;
    return result;
}

void add(inout PointSums to, PointSums more)
{
    to.own += more.own;
#ifdef HALF_TURN
    to.image += more.image;
#endif
}

// Adds the strips that the group holds, piece by piece. There is only a single loop, because NVIDIA's compiler takes
// twice as long with each further loop around the walks (docs/notes/first-runs.md).
void add_strips(inout PointSums result, ivec2 range, StackPair pair, Task task)
{
    for (int n = range.x, piece = 0; n < range.y;) {
        bool is_there = strip_shapes[n].x > 0.0;
        if (is_there) {
            Strip strip = STRIP_GET(n);
            add(result, piece_sums(n, strip_piece(strip, piece), pair, task));
        }
        piece++;
        if (!is_there || piece >= strip_pieces(n)) {
            n++;
            piece = 0;
        }
    }
}

// Stores the strips of two stacks. A strip's number depends on its crystal columns, and not on the thread that finds
// the strip.
void fill_strips(StackPair pair, Crossing crossing, Task task, int begin)
{
    int axial = pair.count_a * pair.count_b, store = task.column * COLUMN_STRIPS;
    bool back = runs_back(crossing);
    for (int p = task.slot; p < crossing.primary.count; p += task.slots) {
        float u = crystal_middle(crossing.primary, p);
        float half_face = 0.5 * crossing.primary.face;
        ivec2 range = columns_between(crossing, u - half_face, u + half_face);
        for (int r = range.x; r <= range.y; r++) {
            int place = p + (back ? crossing.secondary.count - 1 - r : r) - begin;
            if (place < 0 || place >= COLUMN_STRIPS || !has_taken(pair, ivec2(p, r))) continue;
            Strip strip = exact_strip(crossing, p, r);
            if (strip.width > 0.0) {
                strip.first = pair.first + uint((p * crossing.secondary.count + r) * axial);
                STRIP_PUT(store + place, strip)
#ifdef HALF_TURN
                strip_images[store + place] =
                    image_block(pair, ivec2(p, r), ivec2(crossing.primary.count, crossing.secondary.count));
#endif
            }
        }
    }
}

Crossing see_stacks(StackPair pair, vec4 across)
{
    return make_crossing(make_side(column_modules[pair.a], across.xy, across.zw),
                         make_side(column_modules[pair.b], across.xy, across.zw), true);
}

// Adds the strips of two stacks from `begin` on, as many as the group can hold. Returns the number of remaining strips.
int add_stacks(inout PointSums result, StackPair pair, vec4 across, Task task, int begin)
{
    Crossing crossing = see_stacks(pair, across);
    int left = crossing.primary.count + crossing.secondary.count - 1 - begin;
    barrier();
    fill_middles(0, pair.first_a, pair.count_a);
    fill_middles(COLUMN_CELLS, pair.first_b, pair.count_b);
    for (int n = thread; n < COLUMN_COLUMNS * COLUMN_STRIPS; n += COLUMN_GROUP) strip_shapes[n].x = 0.0;
    barrier();
    if (task.mine.x >= 0) fill_strips(pair, crossing, task, begin);
    barrier();
    int store = task.column * COLUMN_STRIPS;
    add_strips(result, store + ivec2(0, min(left, COLUMN_STRIPS)), pair, task);
    return left - COLUMN_STRIPS;
}

// Finds which of the `most` pairs of stacks from `begin` on are visible from any column of the group. The result has
// one bit per pair of stacks.
void find_seen(vec4 across, Task task, int begin, int most, int share)
{
    barrier();
    if (thread < COLUMN_GROUP / 32) seen[thread] = 0u;
    barrier();
    for (int k = task.slot; k < most; k += task.slots) {
        int candidate = (begin + k) * count.z + share;
        if (overlaps(see_stacks(stack_pairs[candidate], across))) atomicOr(seen[k >> 5], 1u << (k & 31));
    }
    barrier();
}

// Adds the pairs of stacks that the thread's column sees. In each round, the group first tests COLUMN_GROUP pairs of
// stacks, and then visits in order those that any column of the group sees. A single loop runs over words, bits and the
// strips of a stack, for the reason given at add_strips.
void add_column(inout PointSums result, vec4 across, Task task, int share)
{
    int mine = (count.x - share + count.z - 1) / count.z;
    for (int begin = 0; begin < mine; begin += COLUMN_GROUP) {
        int here = min(COLUMN_GROUP, mine - begin);
        find_seen(across, task, begin, here, share);
        uint bits = seen[0];
        for (int word = 0, strip = 0; 32 * word < here;) {
            if (bits != 0u) {
                int next = (begin + 32 * word + findLSB(bits)) * count.z + share;
                int left = add_stacks(result, stack_pairs[next], across, task, strip);
                strip = left > 0 ? strip + COLUMN_STRIPS : 0;
                bits = left > 0 ? bits : bits & (bits - 1u);
            } else {
                word++;
                bits = 32 * word < here ? seen[word] : 0u;
            }
        }
    }
}

// Stores the sums of the thread's points and of their mirror images for the other threads.
void keep(Task task, vec4 result, int row)
{
    for (int k = 0; k < 2; k++) {
        int point = task.mine[k];
        if (point >= 0) {
            partial[row + point] = result[k];
#ifdef MIRROR
            int image = task.points - 1 - point;
            if (image != point) partial[row + image] = result[2 + k];
#endif
        }
    }
}

// Adds stored sums to the voxels of a column. kept: index of the first of these sums.
void add_to_column(Task task, int kept, int column)
{
    ivec3 n = num_samples.xyz;
    for (int k = thread; k < task.points / n.z; k += COLUMN_GROUP) {
        float whole = 0.0;
        for (int m = 0; m < n.z; m++) whole += partial[kept + k * n.z + m];
        sums[column * (num_points.z / n.z) + task.begin / n.z + k] += whole / float(n.x * n.y * n.z);
    }
}

void add_to_voxels(Task task, int columns, ivec3 size, int share, ivec2 group)
{
    int all = size.x * size.y, first_column = group.y * size.x + group.x;
    for (int c = 0; c < columns; c++) {
        add_to_column(task, c * task.points, share * all + first_column + c);
#ifdef HALF_TURN
        if (2 * group.y + 1 != size.y) // the row in the middle is its own image
            add_to_column(task, (COLUMN_COLUMNS + c) * task.points, share * all + all - 1 - first_column - c);
#endif
    }
}

void main()
{
    thread = int(gl_LocalInvocationIndex);
    ivec3 n = num_samples.xyz, size = num_points.xyz / n;
    int share = int(gl_WorkGroupID.z) % count.z;
    ivec2 group = ivec2(gl_WorkGroupID.x * COLUMN_COLUMNS, first.y + int(gl_WorkGroupID.y));
    int columns = min(size.x - group.x, COLUMN_COLUMNS);
    Task task = make_task(int(gl_WorkGroupID.z) / count.z, columns);
    int column = group.x + min(task.column, columns - 1);
    PointSums result = PointSums(vec4(0.0), vec4(0.0));
    for (int c = first.z; c < count.y; c++) {
        ivec2 at = ivec2(column, group.y) * n.xy + ivec2(c % n.x, c / n.x);
        vec2 x = column_points[point_across(0, at.x)], y = column_points[point_across(1, at.y)];
        add_column(result, vec4(x.x, y.x, x.y, y.y), task, share);
    }
    keep(task, result.own, task.column * task.points);
#ifdef HALF_TURN
    keep(task, result.image, (COLUMN_COLUMNS + task.column) * task.points);
#endif
    barrier();
    add_to_voxels(task, columns, size, share, group);
    check_loops();
}
