/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The parts of `loraster bench correspondence`: correspondence.c reads the command line and goes through the
 * combinations, measure.c has the geometries, the exact rows of some voxels and the clock. report.c serves all verbs of
 * bench: it has what a device could do at most, and writes their JSON. */
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
    const char *preset; /* of a scanner; NULL = two modules, the second turned as follows */
    double turn_deg;    /* about the axial direction, through the module's centre */
    double tilt_deg;    /* then about (1, 1, 1), which takes it out of that direction */
    int size[3];
    double voxel_mm[3];
    int small[3];     /* central part of --size small */
    int error_voxels; /* whose rows are compared with the exact ones */
};

/* The last one has no name. */
extern const struct bench_workload bench_workloads[BENCH_NUM_WORKLOADS + 1];

/* errors: NULL, logged. */
lr_scanner *bench_scanner(const struct bench_workload *workload, const lr_log *log);

/* --- exact rows of some voxels --- */

/* The exact row of one voxel, as backend cpu has it. */
struct bench_row {
    int64_t count;
    int64_t *lor;        /* owned [count] */
    double *probability; /* owned [count] */
};

/* Voxels drawn at random, without repeats, from a grid. Zero is an empty sample. */
struct bench_sample {
    lr_grid grid;
    int num_voxels;
    double (*points_mm)[3];     /* owned [num_voxels]: their centres */
    double *counts;             /* owned [num_voxels]: exact non-zeros */
    double mean, mean_error;    /* of the counts; 0 error when all voxels are in the sample */
    double primaries_per_voxel; /* crystals that shoot lines */
    int num_rows;               /* of the first voxels, the rows are kept */
    struct bench_row *rows;     /* owned [num_rows] */
};

/* Voxels whose rows are drawn, and how. */
struct bench_draw {
    const lr_lors *lors;
    int num_rows; /* to keep */
    uint64_t seed;
    int threads;
};

/* Draws and computes a sample of `grid`. Does nothing when that is what it holds already. */
lr_status bench_sample_take(struct bench_sample *sample, const struct bench_draw *draw, const lr_grid *grid,
                            struct report *report);
void bench_sample_finish(struct bench_sample *sample);

/* Outcome of a comparison with the kept rows. */
struct bench_accuracy {
    double error;  /* relative L2 over all elements of the rows */
    double missed; /* share of the exact non-zeros that the operator lacks */
    double kept;   /* the operator's non-zeros per exact non-zero */
    int num_voxels;
};

/* --- one combination of workload, backend and mode --- */

enum bench_outcome { BENCH_MEASURED, BENCH_SKIPPED, BENCH_FAILED };

/* Forward or back. */
struct bench_direction {
    int runs;                                     /* that the medians are of */
    double wall_s;                                /* of one projection, median */
    double device_s;                              /* the same by the device's own clock; 0 = not measured */
    double wall_spread_s;                         /* longest less shortest */
    bool first_run;                               /* the one run there was time for, compiling shaders included */
    lr_device_pass passes[LR_MOST_DEVICE_PASSES]; /* of the last run, by the device's clock */
    int num_passes;                               /* 0 = not distinguished */
};

/* An update by a subset, with the sums of its fit: seconds of an iteration over its updates, median. */
struct bench_updates {
    int subsets;             /* 0 = not measured */
    double wall_s, device_s; /* device: of projections, by its own clock; 0 = not measured */
};

struct bench_result {
    const struct bench_workload *workload;
    const char *backend; /* as asked for */
    lr_mode mode;
    enum bench_outcome outcome;
    lr_status status;
    char reason[1024]; /* why there are no figures */
    char device[192];
    int rays, threads;
    lr_grid grid;
    bool is_part;   /* of the workload's grid */
    bool is_oracle; /* cpu, exact: what the others are compared with */
    int64_t num_voxels, num_lors;
    struct bench_direction directions[2]; /* forward, back */
    struct bench_updates updates;
    double adjoint_error; /* |<A x, y> - <x, A^T y>| / <A x, y> */
    struct bench_accuracy accuracy;
    double elements, elements_error; /* exact non-zeros a voxel, and the mean's standard error */
    int elements_voxels;             /* counted */
    double lines;                    /* a voxel; 0 in exact mode */
};

enum bench_size { BENCH_SIZE_AUTO, BENCH_SIZE_FULL, BENCH_SIZE_SMALL };

/* The command line. */
struct bench_wish {
    bool workloads[BENCH_NUM_WORKLOADS], backends[BENCH_NUM_BACKENDS], modes[BENCH_NUM_MODES];
    bool names_backends, names_modes; /* else a backend or mode that is not there is passed over */
    enum bench_size size;
    int grid[3]; /* central part; 0 = by size */
    int rays, repeat, threads, device;
    int subsets;    /* of updates; 0 = they are not timed */
    double seconds; /* per direction */
    int64_t max_memory_bytes;
    uint64_t seed;
};

extern const char *const bench_backends[BENCH_NUM_BACKENDS + 1];
extern const char *const bench_modes[BENCH_NUM_MODES + 1];
const char *bench_mode_name(lr_mode mode);

/* Things that all combinations of one workload share. */
struct bench_subject {
    const struct bench_workload *workload;
    lr_scanner *scanner;
    lr_lors *lors;
    struct bench_sample whole; /* of the workload's grid; has the rows to compare with */
    struct bench_sample part;  /* of the part timed last */
};

/* Fills in `result`, whose workload, backend and mode are set.
 * errors: only LR_CANCELLED by Ctrl-C; all else is in the result. */
lr_status bench_measure(struct bench_subject *subject, const struct bench_wish *wish, struct report *report,
                        struct bench_result *result);

/* Timing of updates of OSEM. */
struct bench_updates_wish {
    lr_operator *op;
    int subsets, repeat; /* repeat: iterations that the median is of */
    const lr_log *log;
    const lr_progress *progress;
};

/* --- what it could be at most --- */

/* Rates of one device that a program may reach, and which share of one a projection took. */
struct bench_ceiling {
    const char *what;
    const char *unit;
    double ceiling, rate, fraction;
};

/* Voxels of lines a second, and bytes that must be read and written. */
struct bench_visits {
    double forward_per_s, back_per_s, bytes_per_s;
};

/* The same for list mode. */
int bench_visit_ceilings(const char *device, const struct bench_visits *visits,
                         struct bench_ceiling ceilings[BENCH_MAX_CEILINGS]);

/* Multiplications fused with additions count as two; 0 on a device whose ceiling is not known. */
double bench_flop_ceiling(const char *device);

/* Seconds of a projection that rates are computed from: the device's if it has a clock. */
double bench_seconds(const struct bench_direction *direction);

/* Ceilings of one direction, forward (0) or back (1): fills at most BENCH_MAX_CEILINGS entries and returns how many; 0 on a
 * device whose ceilings are not known. */
int bench_model_ceilings(const struct bench_result *result, int direction,
                         struct bench_ceiling ceilings[BENCH_MAX_CEILINGS]);

/* --- JSON: the format that all verbs of bench share --- */

/* Writes a verb's own keys into its open object, among them the array "results". */
typedef void bench_figures(const void *bench, struct json *json);

#define BENCH_OUTPUT_OPTION "-o", "FILE", "file for the figures (JSON), instead of standard output", NULL

/* Writes the verb's object to the file of -o or, without that or with --json, to standard output. */
lr_status bench_write(const struct cli_args *args, bench_figures *figures, const void *bench);

/* Keys "wall_seconds" and "device_seconds" of the open object; 0 = not known, null. */
void bench_json_seconds(struct json *json, double wall_s, double device_s);

/* The value, or if it is 0 NaN, which is written as null. */
double bench_unless_zero(double value);

void bench_json_ceilings(struct json *json, const struct bench_ceiling *ceilings, int count);

#endif
