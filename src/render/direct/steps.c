/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "render/direct/steps.h"

#include "base/log.h"
#include "base/mem.h"
#include "common/bindings.h"

#include <math.h>
#include <stdlib.h>

/* The offsets of one column of mSR: first .. first + high - low, for slices low .. high. */
struct column {
    int32_t first;
    int16_t low, high; /* low > high: none */
};

struct columns {
    const struct lr_direct_shape *shape;
    struct column *columns; /* [2 half y + 1][2 half x + 1] */
    int axis;
};

static struct column *column_at(const struct columns *columns, int x, int y)
{
    const int *half = columns->shape->info.half;
    return &columns->columns[(int64_t)(y + half[1]) * (2 * half[0] + 1) + x + half[0]];
}

/* Offsets of a column follow each other, and an ellipsoid has no holes. */
static void find_columns(const struct columns *columns)
{
    const struct lr_direct_shape *shape = columns->shape;
    const int *half = shape->info.half;
    for (int64_t k = 0; k < (int64_t)(2 * half[0] + 1) * (2 * half[1] + 1); k++)
        columns->columns[k] = (struct column){.low = 1, .high = 0};
    for (int64_t i = 0; i < shape->info.num_offsets; i++) {
        const int32_t *offset = shape->offsets[i];
        struct column *column = column_at(columns, offset[0], offset[1]);
        if (column->low > column->high) {
            column->first = (int32_t)i;
            column->low = (int16_t)offset[2];
        }
        column->high = (int16_t)offset[2];
    }
}

/* The column that output j finds at a place relative to the first output; NULL beyond mSR. */
static const struct column *column_of(const struct columns *columns, int along, int across, int j)
{
    const int place = along - j;
    if (abs(place) > columns->shape->info.half[columns->axis]) return NULL;
    const struct column *column =
        columns->axis == 0 ? column_at(columns, place, across) : column_at(columns, across, place);
    return column->low <= column->high ? column : NULL;
}

static int floor_quad(int slice)
{
    return slice >= 0 ? slice / 4 : -((3 - slice) / 4);
}

/* The offsets within a quad of slices; mask 0: there are none. */
static struct lr_direct_step make_step(const struct columns *columns, int along, int across, int quad)
{
    struct lr_direct_step step = {.along = along, .across = across, .quads = quad};
    for (int j = 0; j < LR_DIRECT_OUTPUTS; j++) {
        const struct column *column = column_of(columns, along, across, j);
        if (column == NULL) continue;
        step.first[j] = column->first + 4 * quad - column->low;
        for (int r = 0; r < 4; r++) {
            const int slice = 4 * quad + r;
            if (slice >= column->low && slice <= column->high) step.mask |= 1 << (4 * r + j);
        }
    }
    return step;
}

/* Counts the steps, and writes them where `steps` is not NULL. */
static int walk(const struct columns *columns, struct lr_direct_step *steps)
{
    const lr_direct_tables_info *info = &columns->shape->info;
    const int along_half = info->half[columns->axis], across_half = info->half[1 - columns->axis];
    const int quads[2] = {floor_quad(-info->half[2]), floor_quad(info->half[2])};
    int count = 0;
    for (int across = -across_half; across <= across_half; across++) {
        for (int along = -along_half; along <= along_half + LR_DIRECT_OUTPUTS - 1; along++) {
            bool fresh = true;
            for (int quad = quads[0]; quad <= quads[1]; quad++) {
                struct lr_direct_step step = make_step(columns, along, across, quad);
                if (step.mask == 0) {
                    fresh = true;
                    continue;
                }
                step.mask |= fresh ? LR_DIRECT_FRESH : 0;
                fresh = false;
                if (steps != NULL) steps[count] = step;
                count++;
            }
        }
    }
    return count;
}

lr_status lr_direct_steps_init(struct lr_direct_steps *steps, const struct lr_direct_shape *shape, const lr_log *log)
{
    const int *half = shape->info.half;
    *steps = (struct lr_direct_steps){0};
    struct columns columns = {
        .shape = shape,
        .columns =
            lr_alloc((int64_t)(2 * half[0] + 1) * (2 * half[1] + 1), sizeof(*columns.columns), "columns of mSR", log),
        /* Rows of mSR are longest along the line, and long rows waste least at their ends. */
        .axis = fabs(shape->axes[0][0]) >= fabs(shape->axes[0][1]) ? 0 : 1,
    };
    if (columns.columns == NULL) return LR_FAILED;
    find_columns(&columns);
    steps->axis = columns.axis;
    steps->count = walk(&columns, NULL);
    steps->steps = lr_alloc(steps->count, sizeof(*steps->steps), "steps of a view", log);
    if (steps->steps != NULL) walk(&columns, steps->steps);
    free(columns.columns);
    return steps->steps != NULL ? LR_OK : LR_FAILED;
}

void lr_direct_steps_finish(struct lr_direct_steps *steps)
{
    free(steps->steps);
    *steps = (struct lr_direct_steps){0};
}
