/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The parts of `loraster bench listmode`: listmode.c reads the command line, draws lines and measures;
 * listmode_report.c prints the figures next to those of the paper and of others. The paper is that of
 * lr/listmode.h. */
#ifndef LR_BENCH_LISTMODE_H
#define LR_BENCH_LISTMODE_H

#include "bench.h"

#include <lr/listmode.h>

enum {
    LISTMODE_NUM_KERNELS = 3,
    LISTMODE_NUM_BACKENDS = 4,
    LISTMODE_NUM_TABLES = 11,
    LISTMODE_FIRST_DEFAULT = 1, /* of the tables: the paper's are the default */
    LISTMODE_LAST_DEFAULT = 4,
    LISTMODE_MOST_OUTCOMES = 512,
    LISTMODE_MOST_REPEATS = 101
};

/* One row of a table. */
struct listmode_case {
    const char *table; /* as --table knows it */
    int size[3];
    int width;          /* of the tube, in voxels */
    int millions;       /* lines */
    double paper_ms[2]; /* without and with time of flight, on a GTX 480; 0 = it has none */
    const char *preset; /* of the scanner; NULL = the ring for random lines */
    double voxel_mm;    /* 0 = the image is 576 mm across */
    int subsets;        /* of an iteration; 0 = 1 */
    int iterations;     /* of the reconstruction; 0 = none is meant */
    bool has_ladder;    /* by the paper's steps, too */
    bool has_fastmath;  /* by the steps before and after fast math */
    bool has_blocks;    /* by blocks of several sizes */
    bool has_collisions;
};

extern const char *const listmode_tables[LISTMODE_NUM_TABLES + 1];
extern const char *const listmode_kernels[LISTMODE_NUM_KERNELS + 1];
extern const char *const listmode_backends[LISTMODE_NUM_BACKENDS + 1];
extern const struct listmode_case listmode_cases[]; /* the last one has no table */

/* Settings of one line of figures. */
struct listmode_way {
    const struct listmode_case *what;
    lr_listmode_kernel kernel;
    bool has_tof;
    const char *backend; /* NULL = auto */
    lr_listmode_variant variant;
    int threads, blocks; /* of a block of cuda, and for each multiprocessor; 0 = the backend's own */
};

/* Wall clock, and the device's own (0 = it has none). */
struct listmode_seconds {
    double wall, device;
};

struct listmode_outcome {
    struct listmode_way way;
    char backend[32], device[160];
    int64_t lines;
    double prepare_s; /* from events to an operator: partitioned and sorted */
    double partition_s, sort_s;
    struct listmode_seconds forward, back, iteration; /* iteration: both, ratio and update */
    double visits;                                    /* voxels a line */
    double joules;                                    /* of an iteration; 0 = not known */
    char energy_source[8];
    struct listmode_collisions {
        double share; /* of writes to a voxel that another line of 32 has written */
        int most;     /* lines of 32 in one voxel; 0 = not counted */
    } collisions;
    float *image; /* owned by the bench: of an iteration, in cases of fast math; else NULL */
};

struct listmode_bench {
    struct report *report;
    bool tables[LISTMODE_NUM_TABLES], kernels[LISTMODE_NUM_KERNELS];
    bool is_exact_alone; /* the exact kernel is asked for by name */
    bool is_all;         /* backends, one after the other */
    const char *backend; /* else this one; NULL = auto */
    const char *path;    /* of the JSON; NULL = none */
    bool with_tof, without_tof;
    int64_t lines;     /* that stand for the paper's million */
    int64_t all_lines; /* of any case; 0 = by the case */
    int subsets;       /* of an iteration; 0 = by the case */
    lr_listmode_variant variant;
    double tof_ps;
    int64_t max_memory_bytes;
    int device, threads, repeat;
    double seconds;
    uint64_t seed;
    const char *preset; /* of the current scanner; NULL = the ring */
    lr_scanner *scanner;
    lr_lors *lors;
    struct listmode_outcome outcomes[LISTMODE_MOST_OUTCOMES];
    int num_outcomes;
};

/* Times of an iteration. */
int listmode_subsets(const struct listmode_bench *bench, const struct listmode_case *what);

/* Seconds that rates are computed from. */
double listmode_best(const struct listmode_seconds *seconds);

void listmode_print_heading(const struct listmode_bench *bench);
void listmode_print(const struct listmode_bench *bench, const struct listmode_outcome *outcome);

/* T = a N + b of the table of lines, next to the paper's, if it was measured. */
void listmode_print_fits(const struct listmode_bench *bench);
/* Tables and figures that need several outcomes. */
void listmode_print_paper(const struct listmode_bench *bench);

/* Other projectors next to the outcomes of their lines and image. */
void listmode_print_peers(const struct listmode_bench *bench);

void listmode_json(const struct listmode_bench *bench, struct json *json);

#endif
