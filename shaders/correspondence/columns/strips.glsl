// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// A pair of modules seen from a column, and its strips in shared memory. Needs
// correspondence/columns/columns.glsl.

const int STRIPS = COLUMN_STRIPS;
STRIP_STORE(STRIPS)

int thread; // index of the thread in the group

// The strips of crystal columns that the group keeps at a time. A strip's number depends on its place on both modules,
// and not on the thread that finds the strip.
#ifdef EXACT
int num_strips(Crossing crossing)
{
    return crossing.primary.count + crossing.secondary.count - 1;
}

void fill_strips(ColumnPair pair, Crossing crossing, int begin)
{
    bool back = runs_back(crossing);
    for (int p = thread; p < crossing.primary.count; p += COLUMN_GROUP) {
        float u = crystal_middle(crossing.primary, p);
        float half_face = 0.5 * crossing.primary.face;
        ivec2 range = columns_between(crossing, u - half_face, u + half_face);
        for (int r = range.x; r <= range.y; r++) {
            int place = p + (back ? crossing.secondary.count - 1 - r : r) - begin;
            Strip strip = exact_strip(crossing, p, r);
            if (strip.width > 0.0 && place >= 0 && place < STRIPS) {
                strip.first = strip_block(pair, crossing, p, r);
                STRIP_PUT(place, strip)
            }
        }
    }
}
#else
int num_strips(Crossing crossing)
{
    return crossing.primary.count * RAYS;
}

void fill_strips(ColumnPair pair, Crossing crossing, int begin)
{
    int end = min(num_strips(crossing) - begin, STRIPS);
    for (int k = thread; k < end; k += COLUMN_GROUP) {
        int r;
        int p = (begin + k) / RAYS;
        Strip strip = sampled_strip(crossing, p, (begin + k) % RAYS, r);
        if (strip.width > 0.0 && is_taken(pair.i, pair.j, crossing.i_is_primary ? ivec2(p, r) : ivec2(r, p))) {
            strip.first = strip_block(pair, crossing, p, r);
            STRIP_PUT(k, strip)
        }
    }
}
#endif

// Computes strips begin .. begin + here - 1 of a pair, for all threads of the group.
void gather_strips(ColumnPair pair, Crossing crossing, int begin, int here)
{
    barrier();
    for (int n = thread; n < here; n += COLUMN_GROUP) strip_shapes[n].x = 0.0;
    barrier();
    fill_strips(pair, crossing, begin);
    barrier();
}

Crossing see_pair(ColumnPair pair, vec4 across, bool i_is_primary)
{
    return make_crossing(make_side(column_modules[pair.i], across.xy, across.zw),
                         make_side(column_modules[pair.j], across.xy, across.zw), i_is_primary);
}
