/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "direct/lattice.h"

#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { J = LR_LATTICE_OUTPUTS };

/* mSR by columns. */
struct columns {
    const struct lr_direct_shape *shape;
    struct lr_direct_column *list; /* owned */
};

/* --- steps --- */

/* Returns the class of a step: 8 shape + 2 shift, plus 1 if all outputs have an offset. Shapes 0, 1 and 2 have 1, 3 and
 * 4 taps. */
static int lattice_class(const struct lr_lattice_step *step)
{
    const int shape = step->taps == 1 ? 0 : step->taps - 2;
    return 8 * shape + 2 * step->shift + (step->mask == (1 << J) - 1);
}

/* Returns the column of mSR for output j of a step. place: source column, relative to the thread's first output. */
static const struct lr_direct_column *column_of(const struct columns *columns, const int next[2], const int place[2],
                                                int j)
{
    return lr_direct_column_at(columns->shape, columns->list, place[0] - j * next[0], place[1] - j * next[1]);
}

/* A step with two taps is stored as one with three taps, whose last tap is empty. */
static struct lr_lattice_step make_step(const struct columns *columns, const int next[2], const int place[2],
                                        const int slices[2])
{
    const int wanted = slices[1] - slices[0] + 1;
    struct lr_lattice_step step = {
        .column = {place[0], place[1]},
        .quad = lr_floor_div(slices[0], 4),
        .taps = wanted > 3   ? LR_LATTICE_TAPS
                : wanted > 1 ? 3
                             : 1,
    };
    step.shift = slices[0] - 4 * step.quad;
    for (int j = 0; j < J; j++) {
        const struct lr_direct_column *column = column_of(columns, next, place, j);
        for (int r = 0; r < LR_LATTICE_TAPS; r++) {
            const int slice = slices[0] + r;
            const bool is_there = r < step.taps && slice >= column->low && slice <= column->high;
            step.offsets[j][r] = is_there ? column->first + slice - column->low : -1;
            step.mask |= is_there ? 1 << j : 0;
        }
    }
    return step;
}

/* Bits of the taps r at a place: bit r is set if output j has an offset r slices above the given slice. */
static int find_taps(const struct columns *columns, const int next[2], const int place[2], int slice, int j)
{
    const struct lr_direct_column *column = column_of(columns, next, place, j);
    const int low = column->low > slice ? column->low - slice : 0;
    const int above = column->high - slice + 1 < LR_LATTICE_TAPS ? column->high - slice + 1 : LR_LATTICE_TAPS;
    return low < above ? (1 << above) - (1 << low) : 0;
}

/* The number and the cost of the steps of a walk. */
struct walked {
    int count;
    int64_t cost;
};

/* Counts the steps of a lattice whose rows run along `next`. If `steps` is not NULL, also writes them, in the order of
 * their places. */
static struct walked walk(const struct columns *columns, const int next[2], struct lr_lattice_step *steps)
{
    /* SLICES: approximate number of instructions of a thread for one tap of one output. Outputs are computed in pairs:
     * both outputs of a pair execute a tap if at least one of them needs it. BESIDES: instructions for the rest of a
     * step. */
    enum { SLICES = 24, BESIDES = 45 };
    static const int num_taps[1 << LR_LATTICE_TAPS] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
    const int *half = columns->shape->info.half;
    struct walked walked = {0, 0};
    int reach[2];
    for (int k = 0; k < 2; k++) reach[k] = half[k] + (J - 1) * abs(next[k]);
    for (int y = -reach[1]; y <= reach[1]; y++) {
        for (int x = -reach[0]; x <= reach[0]; x++) {
            const int place[2] = {x, y};
            int slices[2] = {INT32_MAX, INT32_MIN}; /* range of the slices of all output columns at this place */
            for (int j = 0; j < J; j++) {
                const struct lr_direct_column *column = column_of(columns, next, place, j);
                if (column->low <= column->high) {
                    slices[0] = column->low < slices[0] ? column->low : slices[0];
                    slices[1] = column->high > slices[1] ? column->high : slices[1];
                }
            }
            for (; slices[0] <= slices[1]; slices[0] += LR_LATTICE_TAPS) {
                int pairs = 0;
                for (int n = 0; n < J; n += 2)
                    pairs += num_taps[find_taps(columns, next, place, slices[0], n) |
                                      find_taps(columns, next, place, slices[0], n + 1)];
                if (pairs == 0) continue;
                if (steps != NULL) steps[walked.count] = make_step(columns, next, place, slices);
                walked.count++;
                walked.cost += 2 * SLICES * pairs + BESIDES;
            }
        }
    }
    return walked;
}

/* --- the lattice --- */

/* Directions of rows, each with the step to the next row. */
static const int directions[][2][2] = {
    {{1, 0}, {0, 1}}, {{0, 1}, {1, 0}}, {{1, 1}, {1, 0}},  {{-1, 1}, {1, 0}},
    {{2, 1}, {1, 0}}, {{1, 2}, {0, 1}}, {{-2, 1}, {1, 0}}, {{1, -2}, {0, 1}},
};
enum { NUM_DIRECTIONS = sizeof(directions) / sizeof(directions[0]) };
_Static_assert((int)NUM_DIRECTIONS <= (int)LR_LATTICE_CANDIDATES, "every direction may be a candidate");

static int compare_steps(const void *a, const void *b)
{
    const struct lr_lattice_step *one = a, *other = b;
    const int classes = lattice_class(one) - lattice_class(other);
    if (classes != 0) return classes;
    return one->column[1] != other->column[1]   ? one->column[1] - other->column[1]
           : one->column[0] != other->column[0] ? one->column[0] - other->column[0]
                                                : one->quad - other->quad;
}

int lr_lattice_candidates(const struct lr_direct_shape *shape, struct lr_lattice candidates[LR_LATTICE_CANDIDATES])
{
    /* The rows of the cheapest lattice are within 50 degrees of the line of response. */
    const double least_alignment = cos(50 * 3.14159265358979 / 180);
    const double *voxel_mm = shape->info.grid.voxel_mm, *tof = shape->axes[0];
    const double line[2] = {tof[0] / voxel_mm[0], tof[1] / voxel_mm[1]};
    int count = 0;
    for (int k = 0; k < NUM_DIRECTIONS; k++) {
        /* The cosine of the angle between the row and the line of response, in coordinates that count voxels along
         * each axis. */
        const int *next = directions[k][0];
        const double alignment =
            fabs(line[0] * next[0] + line[1] * next[1]) / (hypot(line[0], line[1]) * hypot(next[0], next[1]));
        if (alignment >= least_alignment) {
            struct lr_lattice *candidate = &candidates[count++];
            *candidate = (struct lr_lattice){0};
            memcpy(candidate->next, directions[k][0], sizeof(candidate->next));
            memcpy(candidate->across, directions[k][1], sizeof(candidate->across));
        }
    }
    return count;
}

lr_status lr_lattice_init(struct lr_lattice *lattice, const struct lr_direct_shape *shape, const lr_log *log)
{
    struct columns columns = {.shape = shape, .list = lr_direct_list_columns(shape, log)};
    struct lr_lattice candidates[LR_LATTICE_CANDIDATES];
    struct walked least = {0, INT64_MAX};
    lr_status status = LR_FAILED;
    *lattice = (struct lr_lattice){0};
    if (columns.list == NULL) return LR_FAILED;
    const int count = lr_lattice_candidates(shape, candidates);
    for (int k = 0; k < count; k++) {
        const struct walked walked = walk(&columns, candidates[k].next, NULL);
        if (walked.cost < least.cost) {
            least = walked;
            *lattice = candidates[k];
        }
    }
    lattice->count = least.count;
    lattice->steps = lr_alloc(least.count, sizeof(*lattice->steps), "steps of a view", log);
    if (lattice->steps == NULL) goto done;
    status = LR_OK;
    walk(&columns, lattice->next, lattice->steps);
    qsort(lattice->steps, (size_t)lattice->count, sizeof(*lattice->steps), compare_steps);
    int n = 0;
    for (int class = 0; class <= LR_LATTICE_CLASSES; class ++) {
        while (n < lattice->count && lattice_class(&lattice->steps[n]) < class) n++;
        lattice->first[class] = n;
    }

done:
    free(columns.list);
    return status;
}

void lr_lattice_finish(struct lr_lattice *lattice)
{
    free(lattice->steps);
    *lattice = (struct lr_lattice){0};
}

void lr_lattice_place_column(const struct lr_lattice *lattice, const int32_t column[2], int at[2])
{
    const int *e = lattice->next, *a = lattice->across;
    const int det = e[0] * a[1] - e[1] * a[0]; /* 1 or -1 */
    at[0] = (column[0] * a[1] - column[1] * a[0]) * det;
    at[1] = (e[0] * column[1] - e[1] * column[0]) * det;
}

void lr_lattice_extent(const struct lr_lattice *lattice, const int size[2], int least[2], int most[2])
{
    least[0] = least[1] = most[0] = most[1] = 0; /* coordinates of the first corner, column (0, 0) */
    for (int corner = 1; corner < 4; corner++) {
        const int32_t column[2] = {corner & 1 ? size[0] - 1 : 0, corner & 2 ? size[1] - 1 : 0};
        int at[2];
        lr_lattice_place_column(lattice, column, at);
        for (int k = 0; k < 2; k++) {
            least[k] = at[k] < least[k] ? at[k] : least[k];
            most[k] = at[k] > most[k] ? at[k] : most[k];
        }
    }
}

void lr_lattice_range(const struct lr_lattice *lattice, const int size[2], int least[2], int most[2])
{
    lr_lattice_extent(lattice, size, least, most);
    least[0] = lr_floor_div(least[0], J);
    most[0] = lr_floor_div(most[0], J);
}
