/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Live reconstruction: the window starts, pauses, steps and stops it, and a job computes it in the background. */
#pragma once

#include "viewer/frame/handover.h"
#include "viewer/frame/job.h"
#include "viewer/study/study.h"

enum live_family { LIVE_CORRESPONDENCE = 0, LIVE_DIRECT, LIVE_LISTMODE };

/* A member that is 0 stands for its default. */
struct live_request {
    enum live_family family;
    lr_recon_algorithm algorithm;
    double relaxation;         /* RAMLA only; 0 = the default, as in lr_recon_params */
    double relaxation_fall;    /* RAMLA only */
    int subsets;               /* 0 means 1; OSEM with one subset is ML-EM */
    int iterations;            /* 0 = until stopped */
    int guesses;               /* family correspondence: number of guesses, which are composed as in a cluster
                                  (docs/method/cluster.md, "paper"); 0 and 1 = no guesses */
    int local_iterations;      /* number of iterations of each guess before composing; 0 = 2 */
    bool begins_paused;        /* pauses after the first iteration */
    bool simulates;            /* draws data from the study's image, even if the study has data */
    double counts;             /* number of simulated counts; 0 = as many as the unscaled image gives */
    bool without_noise;        /* uses expectations instead of Poisson counts */
    uint64_t seed;             /* seed of the counts */
    const lr_image *reference; /* image to compare with; copied; NULL = the image from which data are simulated, if
                                  any */
    /* Fields of the family direct, as in lr_direct_params. */
    lr_direct_kernel kernel;      /* measured profiles are not allowed */
    lr_view_set views;            /* views of simulated counts */
    const lr_histo_images *histo; /* measured counts, copied; they define grid and views. NULL = counts are drawn
                                     from the study's image, on its grid */
    lr_listmode_kernel elements;  /* family listmode: kernel of the elements. Events come from the study's list-mode
                                     data or, without such data, from the study's image */
    /* Fields of the projector of the family correspondence, as in lr_operator_params. */
    lr_mode mode;
    int rays, samples, mu_steps;
    lr_store store;
    const char *backend;       /* a backend of the family; NULL = auto */
    struct handover *handover; /* must outlive the job; NULL = the image goes to the host. The handover gets the image
                                  only if the image stays on the device (live_where.is_on_device). For that, the family
                                  correspondence needs backend compute and no mu-map, and the family direct needs
                                  backend compute or cuda */
};

enum live_state {
    LIVE_IDLE = 0,
    LIVE_PREPARING, /* projector, data and sensitivity are being made */
    LIVE_RUNNING,
    LIVE_PAUSED, /* paused after an iteration */
    LIVE_DONE,   /* all iterations are done, or the reconstruction was stopped */
    LIVE_FAILED
};

struct live_iteration {
    int number; /* counted from 1 */
    double log_likelihood;
    double measured_counts, estimated_counts;
    double difference; /* |image - reference| / |reference|; NaN without a reference */
    double seconds;
    lr_traffic traffic; /* bytes between the operator's device and the host since the previous iteration, or since
                           the start for the first one; 0 if the operator computes on the host */
};

enum { LIVE_MOST_GUESSES = 16 };

/* Results of one composition of guesses. A composition is one entry in the list of iterations. The number of this entry
 * is the number of iterations that each guess has made so far. */
struct live_round {
    int iterations;                      /* number of iterations of each guess so far */
    int count;                           /* number of guesses */
    double weights[LIVE_MOST_GUESSES];   /* alpha; the sum is 1 */
    double residuals[LIVE_MOST_GUESSES]; /* |y - b - A x|^2 of each single guess, in counts^2 */
    double residual, clipped_residual;   /* residual of the composed image, with and without its negative voxels */
    double condition;                    /* condition of the equations for the weights; infinite: singular */
    int64_t negative_voxels;
    double negative_sum; /* sum of negative voxels, in emissions */
};

struct live;

struct live *live_create(const lr_log *log); /* NULL: out of memory */

/* Stops the reconstruction, waits for its thread, and frees. NULL is allowed. */
void live_destroy(struct live *live);

/* True if the reconstruction would use the open counts, false if counts would be drawn. */
bool live_is_measured(const struct study_view *study, const struct live_request *request);

/* The grid that the reconstruction would have. */
lr_grid live_grid_for(const struct study_view *study, const struct live_request *request);

/* Begins a new reconstruction and discards the last one. Does not wait. errors, logged: LR_USAGE if a reconstruction
 * is running (stop it and poll until it has ended); if there is no scanner, except in the family direct; if the
 * study has neither data (histo-images) nor an image to draw them from; if the reference has a different grid. */
lr_status live_start(struct live *live, const struct study_view *study, const struct live_request *request,
                     const lr_log *log);

/* Sends a request and does not wait. Pausing takes effect after the current iteration. A step is one iteration
 * followed by a pause; it is allowed in any running state. */
enum live_wish { LIVE_PAUSE, LIVE_RESUME, LIVE_STEP, LIVE_STOP };
void live_control(struct live *live, enum live_wish wish);

/* The state, to be polled once a frame. report: the job's report; may be NULL. */
enum live_state live_poll(struct live *live, struct job_report *report);

/* The place where the reconstruction computes, as far as it is known. */
enum { LIVE_WHY = 160, LIVE_BACKEND = 16 };
struct live_where {
    lr_grid grid;               /* grid of the images; its size is 0 before the first start */
    char backend[LIVE_BACKEND]; /* backend of the operator; "none" before the first iteration */
    bool is_on_device;          /* the image is updated on the device and goes to the request's handover */
    char why[LIVE_WHY];         /* the reason if the image is updated on the host; "" if the device was not requested */
};
struct live_where live_get_where(struct live *live);

/* Copies the newest image on the host if it is newer than *serial, and updates *serial. Returns false if there is no
 * newer image. Serial numbers grow over all reconstructions; begin with 0. values: [num_voxels]. If images stay on
 * the device, only the last one is copied, after all iterations. */
bool live_copy_image(struct live *live, int64_t *serial, float *values);

/* Copies a guess as live_copy_image copies the image. A guess is new after each of its iterations and after each
 * composition. */
bool live_copy_guess(struct live *live, int guess, int64_t *serial, float *values);

/* Copies the composition of an iteration, which is counted from 0. Returns false if there is none yet. */
bool live_copy_round(struct live *live, int number, struct live_round *round);

/* Returns the number of iterations so far. Copies at most `capacity` of them, from index `first` on (counted from
 * 0). */
int live_copy_history(struct live *live, int first, struct live_iteration *iterations, int capacity);
