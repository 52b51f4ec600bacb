/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "listmode.h"

#include <math.h>
#include <stdatomic.h>
#include <threads.h>
#include <unistd.h>

static const double across_mm = 576;

/* Crystals of 6 mm, 28 modules of 16 of them around, 100 of them along the axis. */
static lr_scanner *make_ring(double tof_ps, const lr_log *log)
{
    static const int around[1] = {16}, along[1] = {100};
    const lr_ring ring = {
        .radius_mm = 450,
        .modules = 28,
        .block_crystals = {around, along},
        .pitch_mm = {6, 6},
        .face_mm = {6, 6},
        .depth_mm = 20,
    };
    return lr_scanner_create_ring(&(lr_scanner_params){.name = "ring for random lines",
                                                       .coincidence = {.min_module_difference = 5},
                                                       .tof_resolution_ps = tof_ps,
                                                       .log = log},
                                  &ring);
}

lr_scanner *listmode_scanner(const char *preset, double tof_ps, const lr_log *log)
{
    return preset != NULL ? lr_scanner_read(preset, log) : make_ring(tof_ps, log);
}

lr_grid listmode_grid(const struct listmode_case *what)
{
    lr_grid grid = {0};
    for (int k = 0; k < 3; k++) {
        grid.size[k] = what->size[k];
        grid.voxel_mm[k] = what->voxel_mm > 0 ? what->voxel_mm : across_mm / what->size[0];
        grid.origin_mm[k] = -0.5 * grid.voxel_mm[k] * (what->size[k] - 1);
    }
    return grid;
}

/* --- events --- */

/* From begin to end a line is begin + t (end - begin), 0 <= t <= 1. */
struct chord {
    double begin_mm[3], end_mm[3];
    double from, to; /* t within the image's box; from >= to: it is not met */
};

static void clip(struct chord *chord, const lr_grid *grid)
{
    chord->from = 0;
    chord->to = 1;
    for (int k = 0; k < 3; k++) {
        const double half_mm = 0.5 * grid->voxel_mm[k] * grid->size[k];
        const double way_mm = chord->end_mm[k] - chord->begin_mm[k];
        const double one = (-half_mm - chord->begin_mm[k]) / way_mm;
        const double other = (half_mm - chord->begin_mm[k]) / way_mm;
        if (way_mm != 0) {
            chord->from = fmax(chord->from, fmin(one, other));
            chord->to = fmin(chord->to, fmax(one, other));
        } else if (fabs(chord->begin_mm[k]) > half_mm) {
            chord->to = chord->from;
        }
    }
}

static double length_mm(const struct chord *chord)
{
    double square = 0;
    for (int k = 0; k < 3; k++) {
        const double way_mm = chord->end_mm[k] - chord->begin_mm[k];
        square += way_mm * way_mm;
    }
    return sqrt(square);
}

/* false: that LOR does not count, or misses the image. */
static bool draw_event(const struct listmode_bench *bench, const lr_grid *grid, int64_t draw, lr_event *event)
{
    const int64_t number = (int64_t)(common_random(bench->seed, 2 * draw) * (double)bench->lors->count);
    struct chord chord;
    *event = (lr_event){.weight = 1};
    lr_lors_crystals(bench->lors, number, event->crystals);
    lr_scanner_hit_centre(bench->scanner, event->crystals[0], chord.begin_mm);
    lr_scanner_hit_centre(bench->scanner, event->crystals[1], chord.end_mm);
    clip(&chord, grid);
    const double t = chord.from + common_random(bench->seed, 2 * draw + 1) * (chord.to - chord.from);
    event->tof_mm = (float)((t - 0.5) * length_mm(&chord));
    return chord.from < chord.to && lr_lors_in_coincidence(bench->lors, number);
}

/* Lines are drawn in parts, each from numbers of its own, so that threads change nothing. */
enum { PART_LINES = 1 << 20, MOST_THREADS = 64 };
#define PART_DRAWS (INT64_C(1) << 32)

struct drawing {
    const struct listmode_bench *bench;
    const lr_grid *grid;
    lr_event *events;
    int64_t count;
    atomic_llong next; /* part */
};

static void draw_part(const struct drawing *drawing, int64_t part)
{
    const int64_t begin = part * PART_LINES, left = drawing->count - begin;
    const int64_t end = begin + (left < PART_LINES ? left : PART_LINES);
    int64_t at = begin;
    for (int64_t draw = part * PART_DRAWS; at < end; draw++)
        at += draw_event(drawing->bench, drawing->grid, draw, &drawing->events[at]);
}

static int draw_parts(void *user)
{
    struct drawing *drawing = user;
    for (int64_t part = atomic_fetch_add(&drawing->next, 1); part * PART_LINES < drawing->count;
         part = atomic_fetch_add(&drawing->next, 1))
        draw_part(drawing, part);
    return 0;
}

void listmode_draw(const struct listmode_bench *bench, const lr_grid *grid, lr_event *events, int64_t count)
{
    struct drawing drawing = {.bench = bench, .grid = grid, .events = events, .count = count};
    const long processors = bench->threads > 0 ? bench->threads : sysconf(_SC_NPROCESSORS_ONLN);
    thrd_t threads[MOST_THREADS];
    int started = 0;
    while (started + 1 < processors && started < MOST_THREADS && (started + 1) * (int64_t)PART_LINES < count &&
           thrd_create(&threads[started], draw_parts, &drawing) == thrd_success)
        started++;
    (void)draw_parts(&drawing);
    for (int k = 0; k < started; k++) thrd_join(threads[k], NULL);
}
