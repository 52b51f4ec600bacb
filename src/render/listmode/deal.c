/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Jobs of groups that go through lines which are kept: of about as much work as each other, and the longest
 * first, so that none is left alone at the end. */
#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "render/listmode/listmode.h"

#include <stdlib.h>

enum {
    PIECE = 256,          /* lines that go to a job together */
    LEAST_WORK = 1 << 12, /* of a job, in slices that its lines meet: its sums take time, too */
    MOST_JOBS = 2048,     /* of a range and a side, about */
    LINE_WORK = 1         /* of a line in a slab, in slices */
};

struct dealing {
    const struct lr_listmode_compute *compute;
    struct lr_listmode_job *list; /* owned */
    int64_t count, room;
    int64_t job_work; /* of the range and side at hand */
};

/* Lines of one group, from `begin` on. */
struct portion {
    int64_t begin, end;
    int axis;
    int32_t slices[2]; /* that they meet */
};

static lr_status add_job(struct dealing *dealing, const struct lr_listmode_job *job)
{
    const struct lr_items items = {sizeof(*dealing->list), "jobs", dealing->compute->params.log};
    LR_TRY(lr_grow(&dealing->list, &dealing->room, dealing->count + 1, &items));
    dealing->list[dealing->count++] = *job;
    return LR_OK;
}

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t most_of(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* What lines of a portion have to do within these slices. */
static int64_t work_within(const struct dealing *dealing, const struct portion *portion, const int32_t slices[2])
{
    int64_t work = 0;
    for (int64_t k = portion->begin; k < portion->end; k++) {
        int32_t own[2];
        lr_listmode_key_slices(dealing->compute->events.keys[k], own);
        const int32_t low = most_of(own[0], slices[0]), high = least(own[1], slices[1]);
        work += high > low ? high - low + LINE_WORK : 0;
    }
    return work;
}

static struct portion widen(const struct dealing *dealing, const struct portion *portion, int64_t end)
{
    struct portion wider = *portion;
    wider.end = end - portion->end < PIECE ? end : portion->end + PIECE;
    for (int64_t k = portion->end; k < wider.end; k++) {
        int32_t own[2];
        lr_listmode_key_slices(dealing->compute->events.keys[k], own);
        if (own[0] < own[1]) {
            wider.slices[0] = least(wider.slices[0], own[0]);
            wider.slices[1] = most_of(wider.slices[1], own[1]);
        }
    }
    return wider;
}

static int32_t slabs_of(const struct portion *portion, int32_t most)
{
    const int32_t length = portion->slices[1] - portion->slices[0];
    return length > 0 ? (length + most - 1) / most : 0;
}

/* --- back-projections --- */

/* Slabs of a portion, alike, as jobs. */
static lr_status add_slabs(struct dealing *dealing, const struct portion *portion, int32_t slabs)
{
    const int64_t first = portion->slices[0], length = portion->slices[1] - first;
    for (int32_t k = 0; k < slabs; k++) {
        struct lr_listmode_job job = {
            .lines = {(int32_t)portion->begin, (int32_t)(portion->end - portion->begin), portion->axis},
            .slices = {(int32_t)(first + length * k / slabs), (int32_t)(first + length * (k + 1) / slabs)}};
        const int64_t work = work_within(dealing, portion, job.slices);
        job.lines[3] = (int32_t)work; /* shaders do not read it */
        LR_TRY(work > 0 ? add_job(dealing, &job) : LR_OK);
    }
    return LR_OK;
}

/* The next lines of a group, so many that each of their slabs is as much work as all jobs are, and not many
 * more slabs than these need. */
static struct portion next_portion(const struct dealing *dealing, const struct portion *empty, int64_t end,
                                   const int most[2])
{
    const int32_t all[2] = {0, LR_LISTMODE_KEY_SLICES};
    struct portion portion = widen(dealing, empty, end);
    int64_t work = work_within(dealing, &portion, all);
    while (portion.end < end && portion.end - portion.begin + PIECE <= most[1]) {
        const struct portion wider = widen(dealing, &portion, end);
        const struct portion added = {.begin = portion.end, .end = wider.end};
        const int32_t slabs = slabs_of(&portion, most[0]), more = slabs_of(&wider, most[0]);
        const int64_t enough = dealing->job_work * slabs;
        if (slabs > 0 && (work >= enough || (more > slabs && 2 * work >= enough))) break;
        portion = wider;
        work += work_within(dealing, &added, all);
    }
    return portion;
}

static lr_status deal_group(struct dealing *dealing, const int64_t ends[2], int axis)
{
    int most[2];
    lr_listmode_most_of_group(dealing->compute, axis, most);
    for (int64_t first = ends[0]; first < ends[1];) {
        const struct portion empty = {first, first, axis, {LR_LISTMODE_KEY_SLICES, 0}};
        const struct portion portion = next_portion(dealing, &empty, ends[1], most);
        LR_TRY(add_slabs(dealing, &portion, slabs_of(&portion, most[0])));
        first = portion.end;
    }
    return LR_OK;
}

static int compare_jobs(const void *a, const void *b)
{
    const struct lr_listmode_job *left = a, *right = b;
    for (int k = 3; k >= 0; k -= 3) /* by work, then by the first line */
        if (left->lines[k] != right->lines[k]) return (left->lines[k] < right->lines[k] ? -1 : 1) * (k == 3 ? -1 : 1);
    return left->slices[0] - right->slices[0];
}

static void sort_jobs(struct dealing *dealing, int64_t begin)
{
    if (dealing->count > begin)
        qsort(dealing->list + begin, (size_t)(dealing->count - begin), sizeof(*dealing->list), compare_jobs);
}

/* Of the axes' groups of a range on this side. */
static void find_job_work(struct dealing *dealing, const int64_t *groups, int side)
{
    const int32_t all[2] = {0, LR_LISTMODE_KEY_SLICES};
    int64_t work = 0;
    for (int g = side; g < LR_LISTMODE_GROUPS; g += 2)
        work += work_within(dealing, &(struct portion){.begin = groups[g], .end = groups[g + 1]}, all);
    const int64_t each = work / lr_listmode_most_jobs(MOST_JOBS) + 1;
    dealing->job_work = each > LEAST_WORK ? each : LEAST_WORK;
}

static lr_status deal_side_back(struct dealing *dealing, const int64_t *groups, int side)
{
    const int64_t begin = dealing->count;
    find_job_work(dealing, groups, side);
    for (int axis = 0; axis < 3; axis++) LR_TRY(deal_group(dealing, &groups[2 * axis + side], axis));
    sort_jobs(dealing, begin);
    return LR_OK;
}

/* --- groups of lines --- */

static lr_status deal_lines(struct dealing *dealing, const int64_t *groups, int side, int lines)
{
    for (int axis = 0; axis < 3; axis++) {
        const int64_t *ends = &groups[2 * axis + side];
        for (int64_t first = ends[0]; first < ends[1]; first += lines) {
            struct portion portion = {first, first, axis, {LR_LISTMODE_KEY_SLICES, 0}};
            while (portion.end < ends[1] && portion.end < first + lines) {
                const int64_t end = first + lines < ends[1] ? first + lines : ends[1];
                portion = widen(dealing, &portion, end);
            }
            const struct lr_listmode_job job = {
                .lines = {(int32_t)first, (int32_t)(portion.end - first), axis},
                .slices = {least(portion.slices[0], portion.slices[1]), portion.slices[1]}};
            LR_TRY(add_job(dealing, &job));
        }
    }
    return LR_OK;
}

/* --- both --- */

static lr_status put_jobs(struct dealing *dealing, struct lr_listmode_jobs *jobs)
{
    const int64_t bytes = dealing->count * (int64_t)sizeof(*dealing->list);
    jobs->buffer = gl_buffer_create(
        dealing->compute->ctx, &(struct gl_buffer_params){.label = "jobs", .size_bytes = bytes, .data = dealing->list});
    return jobs->buffer != NULL ? LR_OK : LR_FAILED;
}

/* lines: of a group; 0: of a back-projection. */
static lr_status deal_sides(struct dealing *dealing, struct lr_listmode_jobs *jobs, int lines)
{
    const struct lr_listmode_events *events = dealing->compute->params.events;
    const int64_t sides = 2 * events->layout.num_pairs;
    jobs->first = lr_alloc(sides + 1, sizeof(*jobs->first), "jobs", dealing->compute->params.log);
    LR_TRY(jobs->first != NULL ? LR_OK : LR_FAILED);
    for (int64_t k = 0; k < sides; k++) {
        const int64_t *groups = events->groups[k / 2];
        jobs->first[k] = dealing->count;
        LR_TRY(lines > 0 ? deal_lines(dealing, groups, (int)(k % 2), lines)
                         : deal_side_back(dealing, groups, (int)(k % 2)));
    }
    jobs->first[sides] = dealing->count;
    return put_jobs(dealing, jobs);
}

lr_status lr_listmode_deal_back(const struct lr_listmode_compute *compute, struct lr_listmode_jobs *jobs)
{
    struct dealing dealing = {.compute = compute};
    const lr_status status = deal_sides(&dealing, jobs, 0);
    free(dealing.list);
    return status;
}

lr_status lr_listmode_deal_forward(const struct lr_listmode_compute *compute, int lines, struct lr_listmode_jobs *jobs)
{
    struct dealing dealing = {.compute = compute};
    const lr_status status = deal_sides(&dealing, jobs, lines);
    free(dealing.list);
    return status;
}
