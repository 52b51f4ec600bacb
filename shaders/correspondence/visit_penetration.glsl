// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Crystal penetration for visit.glsl: lines through the sides of the primary's box, attenuated along all crystals that
// they cross (docs/method/correspondence.md, "Penetration"). Each thread works on one line after another.

// The line `at` + t `step` in a module's coordinates, and the cell that contains the current point of the line.
struct Way {
    vec3 at, step;
    vec4 cells;
    ivec2 size;
    float depth, mu;
    vec2 range; // range of t within the box
    ivec2 cell;
};

const float FAR = 1e30;

// 1 - exp(-x), without loss of digits for small x.
float stopped(float x)
{
    return x < 0.1 ? x * (1.0 - x * (1.0 / 2.0) * (1.0 - x * (1.0 / 3.0) * (1.0 - x * 0.25))) : 1.0 - exp(-x);
}

// Narrows a range of t so that the coordinate `at` + t `step` stays within the slab.
vec2 clip_slab(float at, float step, vec2 slab, vec2 range)
{
    if (step == 0.0) return at < slab.x || at > slab.y ? vec2(range.x, -FAR) : range;
    vec2 t = (slab - at) / step;
    return vec2(max(range.x, min(t.x, t.y)), min(range.y, max(t.x, t.y)));
}

vec2 box_half(Way way)
{
    return 0.5 * vec2(way.size - 1) * way.cells.xy + way.cells.zw;
}

// Finds the range of t, within 0 .. end, in which the line is inside the box. Returns false if there is no such range.
bool enter_box(inout Way way, float end)
{
    vec2 outer = box_half(way);
    way.range = clip_slab(way.at.x, way.step.x, vec2(-outer.x, outer.x), vec2(0.0, end));
    way.range = clip_slab(way.at.y, way.step.y, vec2(-outer.y, outer.y), way.range);
    way.range = clip_slab(way.at.z, way.step.z, vec2(0.0, way.depth), way.range);
    return way.range.y > way.range.x;
}

void first_cell(inout Way way)
{
    vec2 at = way.at.xy + way.range.x * way.step.xy;
    way.cell = clamp(ivec2(floor(at / way.cells.xy + 0.5 * vec2(way.size))), ivec2(0), way.size - 1);
}

// The length, in t, of the line within the crystal of its current cell.
float crystal_part(Way way)
{
    vec2 centre = (vec2(way.cell) - 0.5 * vec2(way.size - 1)) * way.cells.xy;
    vec2 low = centre - way.cells.zw, high = centre + way.cells.zw;
    vec2 range = clip_slab(way.at.x, way.step.x, vec2(low.x, high.x), way.range);
    range = clip_slab(way.at.y, way.step.y, vec2(low.y, high.y), range);
    return max(0.0, range.y - range.x);
}

float leave_cell(float at, float step, float pitch, int cell, int size)
{
    float boundary = (float(cell) - 0.5 * float(size) + (step > 0.0 ? 1.0 : 0.0)) * pitch;
    return step == 0.0 ? FAR : (boundary - at) / step;
}

// Moves to the next cell. Returns false if the line has left the box.
bool next_cell(inout Way way)
{
    float u = leave_cell(way.at.x, way.step.x, way.cells.x, way.cell.x, way.size.x);
    float v = leave_cell(way.at.y, way.step.y, way.cells.y, way.cell.y, way.size.y);
    if (v < u)
        way.cell.y += way.step.y > 0.0 ? 1 : -1;
    else
        way.cell.x += way.step.x > 0.0 ? 1 : -1;
    return min(u, v) < way.range.y && all(greaterThanEqual(way.cell, ivec2(0))) && all(lessThan(way.cell, way.size));
}

// A line through the primary, and its weight.
struct Line {
    vec3 ray;        // vector from the point to the primary's box, in the primary's coordinates
    float length_mm; // length of the ray
    float weight;    // solid angle / 2 pi, times the probability of no absorption
    float left;      // fraction of the photons that reach the primary
};

Way target_way(Target target, vec3 ray, float side)
{
    vec3 step = vec3(dot(target.along_u.xyz, ray), dot(target.along_v.xyz, ray), dot(target.along_depth.xyz, ray));
    return Way(vec3(target.along_u.w, target.along_v.w, target.along_depth.w), side * step, target.cells,
               target.module.xy, target.depth, target.mu, vec2(0.0), ivec2(0));
}

// The fraction of photons that pass all modules between the point and the primary.
float left_before(vec3 ray, float length_mm)
{
    float part = 0.0;
    for (int k = 0; k < num_targets; k++) {
        Way way = target_way(targets[k], ray, 1.0);
        if (enter_box(way, 1.0)) {
            first_cell(way);
            do {
                part += way.mu * crystal_part(way);
            } while (next_cell(way));
        }
    }
    return exp(-part * length_mm);
}

// Finds the next module beyond the point: the first module that the line enters at or after `entry`. If the line enters
// several modules at the same position, the result is the first of them whose number is above `last`. -1 = no module is
// left.
int next_target(vec3 ray, int last, inout float entry)
{
    int next = -1;
    float nearest = FAR;
    for (int k = 0; k < num_targets; k++) {
        Way way = target_way(targets[k], ray, -1.0);
        if (enter_box(way, FAR) && way.range.x < nearest &&
            (way.range.x > entry || (way.range.x == entry && k > last))) {
            next = k;
            nearest = way.range.x;
        }
    }
    entry = nearest;
    return next;
}

// Emits the LORs of crystal rs of target k and every crystal of the primary on the line. near: fraction of the photons
// that rs stops.
void emit_pairs(View view, Line line, Way primary, int k, ivec2 rs, float near)
{
    float left = line.left;
    do {
        float depth = primary.mu * crystal_part(primary) * line.length_mm;
        view.pq = primary.cell;
        if (depth > 0.0 && target_allows(targets[k], view, rs))
            emit(target_lor(targets[k], view, rs), line.weight * near * left * stopped(depth));
        left *= exp(-depth);
    } while (next_cell(primary));
}

float line_survival(View view, vec3 ray, float entry)
{
#ifdef ABSORPTION
    vec3 to_primary = ray.x * view.u + ray.y * view.v - ray.z * modules[view.module].normal.xyz;
    vec3 start = view.point - mu_origin_mm.xyz;
    return survival((start + to_primary) * mu_per_mm.xyz, (start - entry * to_primary) * mu_per_mm.xyz,
                    (1.0 + entry) * length(to_primary), mu_steps);
#else
    return 1.0;
#endif
}

void visit_line(View view, Line line, Way primary)
{
    if (!enter_box(primary, FAR)) return;
    first_cell(primary);
    float entry = -1.0, left = 1.0;
    bool met_none = true;
    int k = -1;
    while ((k = next_target(line.ray, k, entry)) >= 0) {
        if (met_none) {
            line.left = left_before(line.ray, line.length_mm);
            line.weight *= line_survival(view, line.ray, entry);
            met_none = false;
        }
        Way way = target_way(targets[k], line.ray, -1.0);
        enter_box(way, FAR);
        first_cell(way);
        do {
            float depth = way.mu * crystal_part(way) * line.length_mm;
            if (depth > 0.0 && targets[k].mask.x != LR_NONE)
                emit_pairs(view, line, primary, k, way.cell, left * stopped(depth));
            left *= exp(-depth);
        } while (next_cell(way));
    }
}

// The strata of the primary's box.
struct Strata {
    vec2 pitch, face;
    ivec2 size, gap;
    ivec3 count; // numbers of strata along u, v and the depth
    float depth;
};

Strata make_strata(Module primary, uint index)
{
    Strata strata;
    strata.pitch = vec2(primary.centre_pitch_u.w, primary.rest_pitch_v.w);
    strata.face = vec2(primary.u_face_u.w, primary.v_face_v.w);
    strata.size = primary.crystals.xy;
    strata.gap = ivec2(boxes[index].gap_u, boxes[index].gap_v);
    strata.count = ivec3(strata.size * (RAYS + strata.gap) - strata.gap, int(boxes[index].depth_strata));
    strata.depth = boxes[index].depth;
    return strata;
}

// The relative position of a line in its stratum, along the stratum's two edges. It is computed with integers, so that
// all backends get the same bits (docs/method/correspondence.md, "Penetration").
vec2 place_in_stratum(uint module, uvec2 index)
{
    uvec2 sum = 0x80000000u + uvec2(3242174889u, 2447445414u) * index + 2654435769u * index.yx +
                uvec2(3518319155u, 2882110345u) * module;
    return vec2(sum >> 8u) / 16777216.0;
}

// The coordinate of a line in a stratum, and the stratum's width.
vec2 stratum(Strata strata, int axis, int index, float place)
{
    if (axis == 2) {
        float width = strata.depth / float(strata.count.z);
        return vec2((float(index) + place) * width, width);
    }
    int per_cell = RAYS + strata.gap[axis];
    int cell = index / per_cell, part = index % per_cell;
    float face = strata.face[axis], pitch = strata.pitch[axis];
    float centre = (float(cell) - 0.5 * float(strata.size[axis] - 1)) * pitch;
    if (part < RAYS) {
        float width = face / float(RAYS);
        return vec2(centre - 0.5 * face + (float(part) + place) * width, width);
    }
    float width = (pitch - face) / float(strata.gap[axis]);
    return vec2(centre + 0.5 * face + (float(part - RAYS) + place) * width, width);
}

// Visits the lines through one side of the box. The side is at `level` along `axis`. The side's outward normal runs
// along `axis`, too.
void visit_side(View view, Way primary, Strata strata, int axis, float level)
{
    int a = axis == 0 ? 1 : 0, b = axis == 2 ? 1 : 2;
    int count = strata.count[a] * strata.count[b];
    for (int k = int(gl_LocalInvocationIndex); k < count; k += LR_GROUP_SIZE) {
        ivec2 index = ivec2(k % strata.count[a], k / strata.count[a]);
        vec2 within = place_in_stratum(uint(view.module), uvec2(index));
        vec2 in_a = stratum(strata, a, index.x, within.x);
        vec2 in_b = stratum(strata, b, index.y, within.y);
        vec3 place;
        place[axis] = level;
        place[a] = in_a.x;
        place[b] = in_b.x;
        Line line;
        line.ray = place - primary.at;
        line.length_mm = length(line.ray);
        line.weight = in_a.y * in_b.y * abs(line.ray[axis]) /
                      (6.283185307179586 * line.length_mm * line.length_mm * line.length_mm);
        primary.step = line.ray;
        visit_line(view, line, primary);
    }
}

// Visits all lines of the workgroup's image.
void visit_primary(View view, Image image, Module primary)
{
    Strata strata = make_strata(primary, uint(view.module));
    Way way;
    way.at = box_point(image, primary);
    way.cells = vec4(strata.pitch, 0.5 * strata.face);
    way.size = strata.size;
    way.depth = strata.depth;
    way.mu = boxes[view.module].mu;
    vec3 low = vec3(-box_half(way), 0.0), high = vec3(box_half(way), strata.depth);
    for (int axis = 0; axis < 3; axis++) {
        bool is_below = way.at[axis] < low[axis];
        if (is_below || way.at[axis] > high[axis])
            visit_side(view, way, strata, axis, is_below ? low[axis] : high[axis]);
    }
}
