/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "recon/likelihood.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* LORs per partial sum: fixed, so that sums do not depend on who makes them. */
enum { BLOCK = 1 << 16 };

/* Probabilities of one voxel sum to at most 1, so ratios up to this add up to a finite float. */
#define LARGEST_RATIO (0.5 * FLT_MAX)

/* Reads dense or sparse data at ascending LORs. */
struct cursor {
    const lr_lor_data *data; /* NULL = zero everywhere */
    int64_t next;            /* sparse: the first entry not behind */
};

static struct cursor cursor_at(const lr_lor_data *data, int64_t lor)
{
    struct cursor cursor = {data, 0};
    if (data == NULL || data->index == NULL) {
        return cursor;
    }
    int64_t end = data->count;
    while (cursor.next < end) {
        const int64_t middle = cursor.next + (end - cursor.next) / 2;
        if (data->index[middle] < lor) {
            cursor.next = middle + 1;
        } else {
            end = middle;
        }
    }
    return cursor;
}

static inline double cursor_read(struct cursor *cursor, int64_t lor)
{
    const lr_lor_data *data = cursor->data;
    if (data == NULL) {
        return 0.0;
    }
    if (data->index == NULL) {
        return data->values[lor];
    }
    if (cursor->next < data->count && data->index[cursor->next] == lor) {
        return data->values[cursor->next++];
    }
    return 0.0;
}

/* One LOR: adds it to the fit and returns its ratio. */
static inline double add_lor(struct lr_fit *fit, double measured, double estimated)
{
    if (measured > 0.0 && !(estimated > 0.0)) {
        fit->left_out_lors++;
        fit->left_out_counts += measured;
        return 0.0;
    }
    fit->estimated_counts += estimated;
    fit->log_likelihood -= estimated;
    if (!(measured > 0.0)) {
        return 0.0;
    }
    fit->measured_counts += measured;
    fit->log_likelihood += measured * log(estimated);
    return fmin(measured / estimated, LARGEST_RATIO);
}

struct ratio_loop {
    const struct lr_fit_input *input;
    float *values;
    struct lr_fit *blocks;
};

static void ratio_blocks(void *user, int64_t begin, int64_t end, int worker)
{
    const struct ratio_loop *loop = user;
    (void)worker;
    for (int64_t block = begin; block < end; block++) {
        const int64_t first = block * BLOCK;
        const int64_t left = loop->input->num_lors - first;
        const int64_t last = first + (left < BLOCK ? left : BLOCK);
        struct cursor measured = cursor_at(loop->input->measured, first);
        struct cursor additive = cursor_at(loop->input->additive, first);
        struct lr_fit fit = {0};
        for (int64_t lor = first; lor < last; lor++) {
            const double estimated = loop->values[lor] + cursor_read(&additive, lor);
            loop->values[lor] = (float)add_lor(&fit, cursor_read(&measured, lor), estimated);
        }
        loop->blocks[block] = fit;
    }
}

static void add_fit(struct lr_fit *sum, const struct lr_fit *part)
{
    sum->log_likelihood += part->log_likelihood;
    sum->measured_counts += part->measured_counts;
    sum->estimated_counts += part->estimated_counts;
    sum->left_out_lors += part->left_out_lors;
    sum->left_out_counts += part->left_out_counts;
}

lr_status lr_fit_ratio(const struct lr_fit_input *input, float *values, struct lr_fit *fit)
{
    const int64_t num_blocks = (input->num_lors + BLOCK - 1) / BLOCK;
    struct ratio_loop loop = {input, values, NULL};
    loop.blocks = lr_alloc(num_blocks, sizeof(*loop.blocks), "sums over LORs", input->log);
    if (loop.blocks == NULL) {
        return LR_FAILED;
    }
    lr_parallel_for(input->threads, num_blocks, 1, ratio_blocks, &loop);
    *fit = (struct lr_fit){0};
    for (int64_t block = 0; block < num_blocks; block++) {
        add_fit(fit, &loop.blocks[block]);
    }
    free(loop.blocks);
    return LR_OK;
}
