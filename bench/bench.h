/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The files of `loraster bench correspondence`. correspondence.c reads the command line and runs all combinations.
 * measure.c has the geometries, the exact rows of some voxels, and the clock. report.c serves all verbs of bench: it
 * has the highest rates that devices reach (their ceilings), and writes the JSON output. */
#ifndef LR_BENCH_BENCH_H
#define LR_BENCH_BENCH_H

#include "cli/common.h"

enum {
    BENCH_NUM_WORKLOADS = 6,
    BENCH_NUM_BACKENDS = 4,
    BENCH_NUM_MODES = 2,
    BENCH_MAX_REPEAT = 101,
    BENCH_MAX_CEILINGS = 3
};

/* `git describe` of the source this program was built from, or "unknown". */
extern const char bench_commit[];

/* --- workloads --- */

struct bench_workload {
    const char *name;
    const char *description;
    const char *preset; /* name of a scanner preset; NULL = two modules, the second one turned by turn_deg and
                           tilt_deg */
    double turn_deg;    /* turn about the axial direction, through the module's centre */
    double tilt_deg;    /* further turn about (1, 1, 1), which tilts the module out of the axial direction */
    int size[3];
    double voxel_mm[3];
    int small[3];     /* size of the central part used with --size small */
    int error_voxels; /* number of voxels whose rows are compared with exact rows */
};

/* The last entry has no name. */
extern const struct bench_workload bench_workloads[BENCH_NUM_WORKLOADS + 1];

/* Makes the workload's scanner, which the caller destroys. errors: NULL, logged. */
lr_scanner *bench_scanner(const struct bench_workload *workload, const lr_log *log);

/* --- exact rows of some voxels --- */

/* The exact row of one voxel, computed by backend cpu. */
struct bench_row {
    int64_t count;
    int64_t *lor;        /* owned [count] */
    double *probability; /* owned [count] */
};

/* Voxels drawn at random, without repeats, from a grid. A struct of zeros is an empty sample. */
struct bench_sample {
    lr_grid grid;
    int num_voxels;
    double (*points_mm)[3];     /* owned [num_voxels], centres of the voxels */
    double *counts;             /* owned [num_voxels], exact number of non-zeros of each voxel */
    double mean, mean_error;    /* mean of the counts and its standard error; the error is 0 if the sample has all
                                   voxels */
    double primaries_per_voxel; /* mean number of crystals that shoot lines */
    int num_rows;               /* the rows of the first num_rows voxels are kept */
    struct bench_row *rows;     /* owned [num_rows] */
};

/* The voxels to draw, and how to compute their rows. */
struct bench_draw {
    const lr_lors *lors;
    int num_rows; /* number of rows to keep */
    uint64_t seed;
    int threads;
};

/* Draws voxels of `grid` and fills in `sample`. Does nothing if `sample` already holds this sample. */
lr_status bench_sample_take(struct bench_sample *sample, const struct bench_draw *draw, const lr_grid *grid,
                            struct report *report);
void bench_sample_finish(struct bench_sample *sample);

/* Comparison of an operator with the kept rows. */
struct bench_accuracy {
    double error;  /* relative L2 error over all elements of the rows */
    double missed; /* fraction of the exact non-zeros that the operator lacks */
    double kept;   /* number of the operator's non-zeros per exact non-zero */
    int num_voxels;
};

/* --- one combination of workload, backend and mode --- */

enum bench_outcome { BENCH_MEASURED, BENCH_SKIPPED, BENCH_FAILED };

/* Figures of one direction, forward or back projection. */
struct bench_direction {
    int runs;                                     /* number of runs of which the medians are taken */
    double wall_s;                                /* median time of one projection */
    double device_s;                              /* the same time by the device's own clock; 0 = not measured */
    double wall_spread_s;                         /* longest time minus shortest time */
    bool first_run;                               /* there was time for only one run, which includes the compilation of
                                                     shaders */
    lr_device_pass passes[LR_MOST_DEVICE_PASSES]; /* passes of the last run, by the device's clock */
    int num_passes;                               /* 0 = the passes are not timed separately */
};

/* Median time of an update by one subset, including the sums that measure the fit. This is the time of an iteration
 * divided by the number of its updates. */
struct bench_updates {
    int subsets;             /* 0 = not measured */
    double wall_s, device_s; /* device_s: time of projections by the device's own clock; 0 = not measured */
};

struct bench_result {
    const struct bench_workload *workload;
    const char *backend; /* the backend requested */
    lr_mode mode;
    enum bench_outcome outcome;
    lr_status status;
    char reason[1024]; /* reason for missing figures */
    char device[192];
    int rays, threads;
    lr_grid grid;
    bool is_part;   /* only a part of the workload's grid was projected */
    bool is_oracle; /* the exact result of backend cpu, with which other results are compared */
    int64_t num_voxels, num_lors;
    struct bench_direction directions[2]; /* forward, back */
    struct bench_updates updates;
    double adjoint_error; /* |<A x, y> - <x, A^T y>| / <A x, y> */
    struct bench_accuracy accuracy;
    double elements, elements_error; /* mean number of exact non-zeros per voxel, and its standard error */
    int elements_voxels;             /* number of voxels whose elements were counted */
    double lines;                    /* number of lines per voxel; 0 in exact mode */
};

enum bench_size { BENCH_SIZE_AUTO, BENCH_SIZE_FULL, BENCH_SIZE_SMALL };

/* The command line. */
struct bench_wish {
    bool workloads[BENCH_NUM_WORKLOADS], backends[BENCH_NUM_BACKENDS], modes[BENCH_NUM_MODES];
    bool names_backends, names_modes; /* true: a missing backend or mode is an error; false: it is left out */
    enum bench_size size;
    int grid[3]; /* size of the central part; 0 = given by --size */
    int rays, repeat, threads, device;
    int subsets;    /* number of subsets of the timed updates; 0 = updates are not timed */
    double seconds; /* time for each direction */
    int64_t max_memory_bytes;
    uint64_t seed;
};

extern const char *const bench_backends[BENCH_NUM_BACKENDS + 1];
extern const char *const bench_modes[BENCH_NUM_MODES + 1];
const char *bench_mode_name(lr_mode mode);

/* Data that all combinations of one workload share. */
struct bench_subject {
    const struct bench_workload *workload;
    lr_scanner *scanner;
    lr_lors *lors;
    struct bench_sample whole; /* sample of the workload's grid; its rows serve for comparison */
    struct bench_sample part;  /* sample of the part of the grid that was timed last */
};

/* Fills in `result`, whose workload, backend and mode are set. errors: only LR_CANCELLED (Ctrl-C); any other error is
 * stored in the result. */
lr_status bench_measure(struct bench_subject *subject, const struct bench_wish *wish, struct report *report,
                        struct bench_result *result);

/* Timing of updates of OSEM. */
struct bench_updates_wish {
    lr_operator *op;
    int subsets, repeat; /* repeat: number of iterations of which the median is taken */
    const lr_log *log;
    const lr_progress *progress;
};

/* --- the highest possible rates --- */

/* A rate that a device can reach at most, and the fraction of it that a projection reached. */
struct bench_ceiling {
    const char *what;
    const char *unit;
    double ceiling, rate, fraction;
};

/* Voxels that lines visit per second, and bytes that must be read and written. */
struct bench_visits {
    double forward_per_s, back_per_s, bytes_per_s;
};

/* The ceilings of list mode. Entries and result are as in bench_model_ceilings. */
int bench_visit_ceilings(const char *device, const struct bench_visits *visits,
                         struct bench_ceiling ceilings[BENCH_MAX_CEILINGS]);

/* Floating-point operations per second. A fused multiply-add counts as two. 0 if the device's ceiling is not known. */
double bench_flop_ceiling(const char *device);

/* Seconds of a projection, for computing rates: by the device's clock if there is one, else wall time. */
double bench_seconds(const struct bench_direction *direction);

/* Ceilings of one direction, 0 = forward, 1 = back. Fills in at most BENCH_MAX_CEILINGS entries and returns their
 * number; 0 if the device's ceilings are not known. */
int bench_model_ceilings(const struct bench_result *result, int direction,
                         struct bench_ceiling ceilings[BENCH_MAX_CEILINGS]);

/* --- JSON: the format that all verbs of bench share --- */

/* Writes a verb's own keys into the open JSON object, including the array "results". */
typedef void bench_figures(const void *bench, struct json *json);

#define BENCH_OUTPUT_OPTION "-o", "FILE", "file for the figures (JSON), instead of standard output", NULL

/* Writes the verb's JSON object to the file of -o, or to standard output without -o or with --json. */
lr_status bench_write(const struct cli_args *args, bench_figures *figures, const void *bench);

/* Writes the keys "wall_seconds" and "device_seconds" of the open object. 0 = not known, written as null. */
void bench_json_seconds(struct json *json, double wall_s, double device_s);

/* Returns the value, or NaN for 0. NaN is written as null. */
double bench_unless_zero(double value);

void bench_json_ceilings(struct json *json, const struct bench_ceiling *ceilings, int count);

#endif
