/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The parts of `loraster bench direct`: direct.c reads the command line and measures projections, Fourier
 * transforms and the paper's loop over the host; direct_paper.c prints the papers' tables next to our figures. */
#ifndef LR_BENCH_DIRECT_H
#define LR_BENCH_DIRECT_H

#include "bench.h"

#include "fft/fft.h"

enum {
    DIRECT_NUM_WORKS = 3,
    DIRECT_NUM_CASES = 16,
    DIRECT_NUM_VARIANTS = 16,
    DIRECT_MOST_PEERS = 4,
    DIRECT_MOST_REPEATS = 101
};

/* A case of the papers that lr/direct.h names. */
struct direct_case {
    const char *workload; /* as --workload knows it */
    const char *name;     /* NULL: the model's */
    int size[3];
    double voxel_mm;
    lr_resolution resolution;
    int azimuths, tilts;
    double paper_s[2];    /* forward, back, of one view; 0 = the papers have none */
    double paper_ramla_s; /* of one iteration */
};

/* One way to compute projections. */
struct direct_variant {
    const char *name;          /* "compute, textures" */
    const char *backend;       /* NULL: auto */
    lr_direct_storage storage; /* of compute and cuda */
    lr_direct_variant way;     /* of cuda */
};

/* One view, or all that there was time for. */
struct direct_measured {
    int views;
    double wall_s, device_s, offsets; /* a view */
};

/* Seconds a view of an iteration as table IV of paper 1 divides it: images go to the device and
 * back for every projection, discrepancy and update are computed on the host. */
struct direct_stages {
    int views;                                   /* measured; 0 = not done */
    double to_device[2], project[2], to_host[2]; /* forward, back */
    double discrepancy, update;
};

struct direct_outcome {
    const struct direct_case *what;
    const struct direct_variant *variant;
    char device[160];
    struct direct_measured single[DIRECT_NUM_WORKS], batch[DIRECT_NUM_WORKS];
    double ramla_s, ramla_device_s; /* 0 = not done */
    double load_s;                  /* of all views' data and their sensitivities, before iterations */
    struct direct_stages stages;
    struct fft_result peers[DIRECT_MOST_PEERS]; /* of the first variant of a case */
    int num_peers;
    lr_direct_attributes attributes[2]; /* forward, back; of backend cuda, with --paper */
    bool has_attributes;
};

struct direct_bench {
    struct report *report;
    const struct direct_variant *variants[DIRECT_NUM_VARIANTS]; /* chosen */
    int num_variants;
    bool chosen[5];   /* workloads */
    const char *name; /* part of the names of cases to measure; NULL = all */
    const char *path; /* of a file of JSON, or NULL */
    bool is_paper;    /* the papers' tables too */
    bool has_peers;   /* Fourier transforms too */
    int device, threads, repeat;
    double seconds;
    const struct direct_case *without_cuda; /* in which CUDA turned out to lack: its variants are skipped from then
                                               on, and are named with this case; NULL = not yet */
    struct direct_outcome outcomes[DIRECT_NUM_CASES * DIRECT_NUM_VARIANTS];
    int num_outcomes;
};

const char *direct_case_name(const struct direct_case *what);

/* By the device's clock, if it has one. */
double direct_seconds(const struct direct_measured *measured);

/* Tables of Fourier transforms and of the papers, as Markdown and as keys of the open object. */
void direct_print_peers(const struct direct_bench *bench);
void direct_json_peers(const struct direct_outcome *outcome, struct json *json);
void direct_print_paper(const struct direct_bench *bench);
void direct_json_paper(const struct direct_bench *bench, struct json *json);

#endif
