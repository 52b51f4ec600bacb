/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Live reconstruction: started, paused, stepped and stopped from the window, computed beside it. */
#ifndef LR_VIEWER_LIVE_H
#define LR_VIEWER_LIVE_H

#include "viewer/frame/handover.h"
#include "viewer/frame/job.h"
#include "viewer/study/study.h"

enum live_family { LIVE_CORRESPONDENCE = 0, LIVE_DIRECT, LIVE_LISTMODE };

/* Zero fields are defaults. */
struct live_request {
    enum live_family family;
    lr_recon_algorithm algorithm;
    double relaxation;         /* of RAMLA, 0 = its default, as in lr_recon_params; OSEM has none, so that these */
    double relaxation_fall;    /* two are not read */
    int subsets;               /* 0 = 1, which with OSEM is ML-EM */
    int iterations;            /* 0 = until stopped */
    int guesses;               /* of family correspondence: number of guesses, composed as a cluster
                                  does (docs/method/cluster.md, "paper"); 0 and 1 = none are */
    int local_iterations;      /* of each guess before they are composed; 0 = 2 */
    bool begins_paused;        /* after the first iteration */
    bool simulates;            /* data are drawn from the study's image, also where it has data */
    double counts;             /* simulated counts; 0 = those of the image as it is */
    bool without_noise;        /* expectations instead of Poisson counts */
    uint64_t seed;             /* of the counts */
    const lr_image *reference; /* to compare with, copied; NULL = where data are simulated, what
                                  they were drawn from; else none */
    /* Fields of the family direct, as in lr_direct_params. */
    lr_direct_kernel kernel;      /* not of measured profiles */
    lr_view_set views;            /* of counts that are drawn */
    const lr_histo_images *histo; /* counts that were measured, copied: their grid and views are those
                              of the reconstruction; NULL = drawn from the study's image, on its grid */
    lr_listmode_kernel elements;  /* of the family listmode, whose events are those of the study's data
                                    where these are list mode, else drawn from its image */
    /* Fields of the projector of the family correspondence, as in lr_operator_params. */
    lr_mode mode;
    int rays, samples, mu_steps;
    bool without_mu;
    lr_store store;
    const char *backend;       /* of either; NULL = "auto" */
    struct handover *handover; /* outlives the job: the image stays on the device and goes there,
                                  where backend compute, or of direct cuda, can; NULL or else it
                                  goes to the host */
};

enum { LIVE_WHY = 160 };

enum live_state {
    LIVE_IDLE = 0,
    LIVE_PREPARING, /* projector, data, sensitivity */
    LIVE_RUNNING,
    LIVE_PAUSED, /* after an iteration */
    LIVE_DONE,   /* all iterations, or what has come by the stop */
    LIVE_FAILED
};

struct live_iteration {
    int number; /* from 1 */
    double log_likelihood;
    double measured_counts, estimated_counts;
    double difference; /* |image - reference| / |reference|; NaN without reference */
    double seconds;
    lr_traffic traffic; /* bytes between the operator's device and the host since the last iteration,
                           of the first one since the start; 0 where it computes on the host */
};

enum { LIVE_MOST_GUESSES = 16 };

/* A composition. It is an iteration, too; its number is how many iterations each guess has had. */
struct live_round {
    int iterations;                      /* of each guess so far */
    int count;                           /* of guesses */
    double weights[LIVE_MOST_GUESSES];   /* alpha, with sum 1 */
    double residuals[LIVE_MOST_GUESSES]; /* |y - b - A x|^2 of each guess alone, in counts^2 */
    double residual, clipped_residual;   /* of the composed image, as it comes and without negative voxels */
    double condition;                    /* of the system for the weights; infinite: singular */
    int64_t negative_voxels;
    double negative_sum; /* emissions */
};

struct live;

struct live *live_create(const lr_log *log); /* NULL: out of memory */

/* Stops, waits for the thread to notice, and frees. NULL is allowed. */
void live_destroy(struct live *live);

/* True if a reconstruction would be of counts that are open, false if counts would be drawn. */
bool live_is_measured(const struct study_view *study, const struct live_request *request);

/* The grid that it would have. */
lr_grid live_grid_for(const struct study_view *study, const struct live_request *request);

/* Begins a new reconstruction, and forgets the last one. Does not wait. errors: LR_USAGE, logged,
 * while one runs (stop it and poll until it has ended), without scanner (which the family
 * direct does not need), for a study that has neither data (histo-images) nor an image to draw them from,
 * or a reference on another grid. */
lr_status live_start(struct live *live, const struct study_view *study, const struct live_request *request,
                     const lr_log *log);

/* Does not wait. Pausing takes effect after the iteration that runs; a step is one iteration and
 * then a pause, from any state that runs. */
enum live_wish { LIVE_PAUSE, LIVE_RESUME, LIVE_STEP, LIVE_STOP };
void live_control(struct live *live, enum live_wish wish);

/* The state, once a frame. report: of the job; may be NULL. */
enum live_state live_poll(struct live *live, struct job_report *report);

/* Waits until it is paused, done or failed: for programs without a window. */
enum live_state live_wait(struct live *live, struct job_report *report);

/* The grid of the images; size 0 before the first start. */
lr_grid live_grid(const struct live *live);

/* True if the image changes on the device, and goes to the request's handover. False: it changes on the host, or
 * that is not known yet, and `why` says why; "" where the device was not asked for. */
bool live_is_on_device(struct live *live, char why[LIVE_WHY]);

/* The backend of its operator; "none" before the first iteration. */
enum { LIVE_BACKEND = 16 };
void live_backend(struct live *live, char name[LIVE_BACKEND]);

/* Copies the newest image that is on the host where it is newer than *serial, which is set; false: it is not. Serials
 * grow over all reconstructions; begin with 0. values: [num_voxels]. Of those that stay on the device
 * it is the last one alone, when all iterations are done. */
bool live_copy_image(struct live *live, int64_t *serial, float *values);

/* The same of a guess: after each of its iterations, and as it was composed. */
bool live_copy_guess(struct live *live, int guess, int64_t *serial, float *values);

/* The same of compositions: one for each iteration of the history, in its order. */
int live_copy_rounds(struct live *live, int first, struct live_round *rounds, int capacity);

/* Iterations of this reconstruction so far; copies those from number `first` (counted from 0) on,
 * at most `capacity`. */
int live_copy_history(struct live *live, int first, struct live_iteration *iterations, int capacity);

#endif
