/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cpu/part.h"

#include "base/parallel.h"
#include "model/lors/selection.h"

#include <string.h>

struct work {
    struct lr_cpu *cpu;
    const lr_selection *part;
    const double *from;
    double *to;
    int64_t first;
    int num_rows;
};

static struct lr_selection_finder finder_of(const struct work *work)
{
    return (struct lr_selection_finder){.lors = work->cpu->scene.params.lors, .selection = work->part};
}

static lr_status take(struct work *work, int64_t first, int num_rows, lr_parallel_body *body, int64_t count)
{
    const int workers = work->cpu->num_workers;
    work->first = first;
    work->num_rows = num_rows;
    lr_parallel_for(workers, count, count / workers + 1, body, work);
    return LR_OK;
}

/* Values begin <= position < end belong to one worker, which adds all rows in order. */
static void add_rows(void *user, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    const struct work *work = user;
    const lr_lors *lors = work->cpu->scene.params.lors;
    const int64_t first = lr_selection_lor(lors, work->part, begin);
    const int64_t last = lr_selection_lor(lors, work->part, end - 1);
    for (int k = 0; k < work->num_rows; k++) {
        const struct lr_elements *row = &work->cpu->block[k];
        const double value = work->from[work->first + k];
        struct lr_selection_finder finder = finder_of(work);
        for (int64_t n = lr_elements_find(row, first); n < row->count && row->list[n].lor <= last; n++) {
            const int64_t at = lr_selection_find(&finder, row->list[n].lor);
            if (at >= 0) work->to[at] += row->list[n].value * value;
        }
    }
}

static lr_status take_forward(void *user, struct lr_cpu *cpu, int64_t first, int num_rows)
{
    struct work *work = user;
    return take(work, first, num_rows, add_rows, lr_selection_count(cpu->scene.params.lors, work->part));
}

static void sum_rows(void *user, int64_t begin, int64_t end, int worker)
{
    (void)worker;
    const struct work *work = user;
    for (int64_t k = begin; k < end; k++) {
        const struct lr_elements *row = &work->cpu->block[k];
        struct lr_selection_finder finder = finder_of(work);
        double sum = 0;
        for (int64_t n = 0; n < row->count; n++) {
            const int64_t at = lr_selection_find(&finder, row->list[n].lor);
            if (at >= 0) sum += row->list[n].value * (work->from != NULL ? work->from[at] : 1.0);
        }
        work->to[work->first + k] = sum;
    }
}

static lr_status take_back(void *user, struct lr_cpu *cpu, int64_t first, int num_rows)
{
    (void)cpu;
    return take(user, first, num_rows, sum_rows, num_rows);
}

lr_status lr_cpu_forward_part(struct lr_cpu *cpu, const lr_selection *part, const double *image, double *values)
{
    struct work work = {.cpu = cpu, .part = part, .from = image, .to = values};
    const struct lr_rows rows = lr_cpu_grid_rows(cpu);
    const struct lr_cpu_walk walk = {"projecting", image, take_forward, &work};
    memset(values, 0, (size_t)lr_selection_count(cpu->scene.params.lors, part) * sizeof(*values));
    return lr_cpu_each_block(cpu, &rows, &walk);
}

lr_status lr_cpu_back_part(struct lr_cpu *cpu, const lr_selection *part, const double *values, double *image)
{
    struct work work = {.cpu = cpu, .part = part, .from = values, .to = image};
    const struct lr_rows rows = lr_cpu_grid_rows(cpu);
    const struct lr_cpu_walk walk = {.what = "back-projecting", .take = take_back, .user = &work};
    return lr_cpu_each_block(cpu, &rows, &walk);
}
