/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The paper's table II and figures 3 and 6, of which table I has rows, too. */
#include "listmode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lines that a warp takes at once, and how many of them are looked at. */
enum { WARP = 32, COUNTED_WARPS = 64 };

/* --- table II: fast math --- */

double listmode_deviation(const float *image, const float *other, int64_t count)
{
    double square = 0, least = INFINITY, most = -INFINITY;
    for (int64_t k = 0; k < count; k++) {
        const double difference = (double)image[k] - (double)other[k];
        square += difference * difference;
        least = fmin(least, image[k]);
        most = fmax(most, image[k]);
    }
    return most > least ? sqrt(square / (double)count) / (most - least) : 0.0;
}

/* The outcome of the step before fast math, for that of fast math; NULL: there is none. */
static const struct listmode_outcome *find_plain(const struct listmode_bench *bench, int number)
{
    const struct listmode_outcome *fast = &bench->outcomes[number];
    for (int k = 0; k < number; k++) {
        const struct listmode_outcome *outcome = &bench->outcomes[k];
        if (fast->way.variant == LR_LISTMODE_FASTMATH && fast->image != NULL && outcome->image != NULL &&
            outcome->way.what == fast->way.what && outcome->way.variant == LR_LISTMODE_SORTED)
            return outcome;
    }
    return NULL;
}

static void print_fastmath(const struct listmode_bench *bench, int number)
{
    /* By the tube's width of 3, 5 and 7 voxels. */
    static const double paper[3][3] = {{27, 30.7, 1.7e-6}, {56, 30.4, 1.3e-6}, {106, 31.9, 0.7e-6}};
    const struct listmode_outcome *fast = &bench->outcomes[number];
    const struct listmode_outcome *plain = find_plain(bench, number);
    if (plain == NULL) return;
    const struct listmode_case *what = fast->way.what;
    const double *known = paper[(what->width - 3) / 2];
    const int64_t count = (int64_t)what->size[0] * what->size[1] * what->size[2];
    const double saved = plain->iteration.wall - fast->iteration.wall;
    printf("\nFast math (table II), tube of %d voxels: %.3g ms of an iteration saved, %.1f %%; images "
           "%.2g apart (the paper: %.0f ms, %.1f %%, %.2g).\n",
           what->width, 1e3 * saved, 100 * saved / plain->iteration.wall,
           listmode_deviation(plain->image, fast->image, count), known[0], known[1], known[2]);
}

/* --- figure 6: blocks --- */

static void print_peak(const struct listmode_bench *bench, int has_tof)
{
    /* Millions of lines a second of a GTX 480, with 15 blocks of 1024 threads. */
    static const double paper[2] = {10.5, 16.5};
    const struct listmode_outcome *best = NULL;
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct listmode_outcome *outcome = &bench->outcomes[k];
        const bool is_meant = outcome->way.threads > 0 && outcome->way.has_tof == (has_tof != 0);
        if (is_meant && (best == NULL || outcome->iteration.wall < best->iteration.wall)) best = outcome;
    }
    if (best != NULL) {
        printf("\nBlocks (figure 6), %s TOF: the most are %.4g million lines a second, with blocks of "
               "%d threads, about %d for each multiprocessor (the paper: %.1f).\n",
               has_tof ? "with" : "without", 1e-6 * (double)best->lines / best->iteration.wall, best->way.threads,
               best->way.blocks, paper[has_tof]);
    }
}

/* --- figure 3: collisions --- */

struct counting {
    int *lines;      /* [voxels] of the warp at hand */
    int64_t *voxels; /* [room] that have some */
    int64_t num_voxels;
    int64_t rows;
    double writes, collisions;
    int most;
};

static void end_warp(struct counting *counting)
{
    for (int64_t k = 0; k < counting->num_voxels; k++) {
        int *lines = &counting->lines[counting->voxels[k]];
        counting->writes += *lines;
        counting->collisions += *lines - 1;
        counting->most = *lines > counting->most ? *lines : counting->most;
        *lines = 0;
    }
    counting->num_voxels = 0;
}

static lr_status take_line(void *user, const lr_row *row)
{
    struct counting *counting = user;
    for (int64_t k = 0; k < row->count; k++) {
        const int64_t voxel = row->lor[k];
        if (counting->lines[voxel]++ == 0) counting->voxels[counting->num_voxels++] = voxel;
    }
    counting->rows++;
    if (counting->rows % WARP == 0) end_warp(counting);
    return LR_OK;
}

static lr_status count_rows(lr_operator *op, struct counting *counting)
{
    const lr_row_sink sink = {.take = take_line, .user = counting};
    CLI_TRY(lr_operator_lor_rows(op, NULL, &sink));
    end_warp(counting);
    return LR_OK;
}

lr_status listmode_count_collisions(const struct listmode_bench *bench, const lr_event *events,
                                    struct listmode_outcome *outcome)
{
    const int *size = outcome->way.what->size;
    const int64_t voxels = (int64_t)size[0] * size[1] * size[2], most = WARP * COUNTED_WARPS;
    const int64_t count = outcome->lines < most ? outcome->lines : most;
    struct counting counting = {.lines = calloc((size_t)voxels, sizeof(*counting.lines)),
                                .voxels = calloc((size_t)voxels, sizeof(*counting.voxels))};
    lr_operator *op = listmode_make_native(bench, &outcome->way, events, count);
    lr_status status = op != NULL ? LR_OK : report_reason(bench->report);
    if (status == LR_OK && (counting.lines == NULL || counting.voxels == NULL))
        status = report_error(bench->report, LR_FAILED, "no memory for counts of voxels");
    status = status == LR_OK ? count_rows(op, &counting) : status;
    outcome->collisions.share = counting.writes > 0 ? counting.collisions / counting.writes : 0.0;
    outcome->collisions.most = counting.most;
    lr_operator_destroy(op);
    free(counting.lines);
    free(counting.voxels);
    return status;
}

static void print_collisions(const struct listmode_outcome *outcome)
{
    if (outcome->collisions.most > 0) {
        printf("\nCollisions (figure 3), %s, %s TOF: of 32 lines drawn one after the other %.2g %% of "
               "the writes are to a voxel that another one of them writes to, at most %d of them to "
               "one (the paper: 0.2 %% at the same time, at most 3); back takes %.3g times as long as "
               "forward (the paper: atomic writes cost less than 10 %%).\n",
               outcome->backend, outcome->way.has_tof ? "with" : "without", 100 * outcome->collisions.share,
               outcome->collisions.most, listmode_best(&outcome->back) / listmode_best(&outcome->forward));
    }
}

void listmode_print_paper(const struct listmode_bench *bench)
{
    for (int k = 0; k < bench->num_outcomes; k++) {
        print_fastmath(bench, k);
        print_collisions(&bench->outcomes[k]);
    }
    print_peak(bench, 0);
    print_peak(bench, 1);
}
