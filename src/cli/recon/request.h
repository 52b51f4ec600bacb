/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The options of the verb recon, as plain data. */
#pragma once

#include "cli/common.h"

#include <lr/comm.h>
#include <lr/listmode.h>

/* The families, in the order of the words of --operator. */
enum recon_family { RECON_CORRESPONDENCE, RECON_DIRECT, RECON_LISTMODE };
enum recon_algorithm { RECON_MLEM, RECON_OSEM, RECON_RAMLA, RECON_BSREM };
enum recon_combine { RECON_EXACT, RECON_PAPER, RECON_DISTRIBUTED };
enum recon_randoms { RECON_RANDOMS_AUTO, RECON_RANDOMS_NONE };

/* Names on the command line and in files; NULL at the end. */
extern const char *const recon_families[], *const recon_algorithms[], *const recon_schemes[];

/* A frame has the events with begin_s <= t < end_s. t is the time of an event in the list. */
struct recon_interval {
    double begin_s, end_s;
};
static inline bool recon_interval_has(const struct recon_interval *interval, const lr_event *event)
{
    const double time_s = event->time_ms * 1e-3;
    return time_s >= interval->begin_s && time_s < interval->end_s;
}

/* The options of recon. The caller frees the intervals. Strings belong to the command line. */
struct recon_request {
    enum recon_family family;

    /* Measurement. */
    const char *data, *events, *crystal_map;
    lr_events_source source; /* settings for reading `events` */
    const char *additive, *efficiencies, *corrections;
    enum recon_randoms randoms;
    bool asks_for_randoms; /* --randoms auto is given, and not only the default */
    enum mu_way mu_as;
    bool bootstraps;
    uint64_t bootstrap_seed;

    /* Images. */
    const char *initial, *truth, *kappa, *output, *picture;
    int save_every;

    /* Algorithm. */
    enum recon_algorithm algorithm;
    int iterations, iterations_before;  /* iterations_before: value of --after */
    bool has_subsets;                   /* --subsets is given */
    int subsets;                        /* used unless views_per_block is given */
    double relaxation, relaxation_fall; /* RAMLA and BSREM; relaxation 0 = the default */
    bool own_steps;                     /* RAMLA only */
    bool has_prior;                     /* BSREM only */
    lr_rdp prior;                       /* kappa is not set here */
    bool has_psf;
    double psf_mm[3];

    /* Family direct. */
    bool without_fit;    /* no log-likelihood is needed, so the device can do whole updates */
    int views_per_block; /* number of consecutive views (in geometric order) that form a subset; 0 = subsets have
                            interleaved views */
    const char *factors;

    /* Family listmode. */
    lr_listmode_params listmode; /* kernel, tube, variant and lines of the sensitivity; all other fields are zero */
    bool has_blobs, without_tof;
    double blob_radius_mm; /* 0 = the default */
    double tof_ps;         /* 0 = the resolution of the events or the scanner */

    /* Frames of list mode. */
    struct recon_interval *intervals; /* owned [num_intervals] */
    int num_intervals;                /* 0 = no frames */
    bool frames_in_one;               /* --frames-in-one */
    int64_t part[2];                  /* --part K/N; 0,0 = all frames */

    /* Several ranks. */
    enum recon_combine combine;
    lr_exchange exchange;
    int local_iterations;

    /* Checkpoints. */
    const char *checkpoint;
    int checkpoint_every;
    bool resumes;
};

extern const struct cli_option recon_input_options[], recon_algorithm_options[], recon_prior_options[],
    recon_direct_options[], recon_listmode_options[], recon_frame_options[], recon_checkpoint_options[],
    recon_ranks_options[];

/* Reads all options, and reports those that contradict each other. Options of the family listmode are read later, after
 * the names of outputs have been checked. */
void recon_request_read(struct recon_request *request, struct cli_args *args);
lr_status recon_request_read_listmode(struct recon_request *request, struct cli_args *args);

/* Returns true if updates of this algorithm have a step length. */
bool recon_has_steps(enum recon_algorithm algorithm);

/* Returns the step length of the first iteration. */
double recon_relaxation(const struct recon_request *request, int subsets);
