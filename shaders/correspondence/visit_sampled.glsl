// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Sampled mode of visit.glsl: RAYS x RAYS lines over the primary face, the same lines as in the raster passes
// (docs/method/correspondence.md, "Sampled mode").

// The number of LORs in a Tally. A Tally has the LORs of the crystal's latest lines. Consecutive lines seldom have more
// than four different LORs.
const int SLOTS = 4;
struct Tally {
    uint lors[SLOTS];
    float sums[SLOTS];
    int next;
};

void tally_add(inout Tally tally, uint lor, float weight)
{
    for (int k = 0; k < SLOTS; k++) {
        if (tally.lors[k] == lor) {
            tally.sums[k] += weight;
            return;
        }
    }
    int k = tally.next;
    if (tally.lors[k] != LR_NONE) emit(tally.lors[k], tally.sums[k]);
    tally.lors[k] = lor;
    tally.sums[k] = weight;
    tally.next = (k + 1) % SLOTS;
}

void tally_flush(Tally tally)
{
    for (int k = 0; k < SLOTS; k++)
        if (tally.lors[k] != LR_NONE) emit(tally.lors[k], tally.sums[k]);
}

// The target of the first module that the line from position `at` hits; -1 = none.
int first_target(vec2 at, out float nearest, out vec2 cell)
{
    int first = -1;
    nearest = 0.0;
    for (int k = first_secondary; k < num_targets; k++) {
        float t = sight_distance(targets[k].sight, at);
        if (t < 0.0 || (first >= 0 && t >= nearest)) continue;
        vec2 cells = vec2(targets[k].module.xy);
        vec2 place = sight_hit(targets[k].sight, at, t) / targets[k].cells.xy + 0.5 * cells;
        if (all(greaterThanEqual(place, vec2(0.0))) && all(lessThanEqual(place, cells))) {
            first = k;
            nearest = t;
            cell = place;
        }
    }
    return first;
}

#ifdef HIDING
// True if a module between the point and position `at` on the primary stops the line.
bool stopped_before(vec2 at)
{
    for (int k = 0; k < first_secondary; k++) {
        Sight sight = targets[k].sight;
        float denominator = along(sight.denominator, at);
        if (denominator <= 0.0 || sight_before(sight, at) <= 0.0) continue;
        vec2 from_centre = abs(sight_hit(sight, at, sight.denominator.w / denominator));
        if (all(lessThanEqual(from_centre, 0.5 * vec2(targets[k].module.xy) * targets[k].cells.xy))) return true;
    }
    return false;
}
#endif

void visit_line(View view, vec2 at, inout Tally tally)
{
#ifdef HIDING
    if (stopped_before(at)) return;
#endif
    float t;
    vec2 cell;
    int k = first_target(at, t, cell);
    if (k < 0) return;
    ivec2 rs = min(ivec2(cell), targets[k].module.xy - 1);
    vec2 from_centre = abs(sight_hit(targets[k].sight, at, t) -
                           (vec2(rs) - 0.5 * vec2(targets[k].module.xy - 1)) * targets[k].cells.xy);
    if (any(greaterThan(from_centre, targets[k].cells.zw)) || !target_allows(targets[k], view, rs)) return;
    vec2 d = view.offset + at;
    float squared = dot(d, d) + view.height * view.height;
    float area = view.face.x * view.face.y / (RAYS * RAYS);
    float weight = area * view.height / 6.283185307179586 / (squared * sqrt(squared));
    tally_add(tally, target_lor(targets[k], view, rs), weight * view_survival(view, at, t));
}

void visit_crystal(View view)
{
    Tally tally;
    for (int k = 0; k < SLOTS; k++) tally.lors[k] = LR_NONE;
    tally.next = 0;
    for (int k = 0; k < RAYS * RAYS; k++) {
        vec2 within = vec2(k % RAYS, k / RAYS) - 0.5 * float(RAYS - 1);
        visit_line(view, view.crystal_mm + within * view.face / RAYS, tally);
    }
    tally_flush(tally);
}
