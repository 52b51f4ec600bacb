/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The verb recon's parts: verb_recon.c runs it, recon_inputs.c reads what was measured and what is
 * known of each LOR, recon_bootstrap.c draws it again, recon_direct.c and recon_listmode.c do so for the families
 * of that name, recon_prior.c knows the prior, recon_corrections.c
 * what is known of each event, recon_frames.c cuts list mode into
 * intervals, recon_ranks.c and recon_own_*.c
 * say what of it this rank of several has, recon_report.c says what came of it
 * and draws it. */
#ifndef LR_CLI_RECON_H
#define LR_CLI_RECON_H

#include "cluster.h"
#include "direct.h"
#include "json.h"
#include "recon_own.h"
#include "recon_sensitivity.h"
#include "run_bar.h"

#include <lr/listmode.h>

/* In the order of --operator. */
enum recon_family { RECON_CORRESPONDENCE, RECON_DIRECT, RECON_LISTMODE };

enum recon_algorithm { RECON_MLEM, RECON_OSEM, RECON_RAMLA, RECON_BSREM };
enum recon_combine { RECON_EXACT, RECON_PAPER, RECON_DISTRIBUTED };
/* As the command line and files name them, with NULL behind. */
extern const char *const recon_algorithms[], *const recon_schemes[];
enum recon_randoms { RECON_RANDOMS_AUTO, RECON_RANDOMS_NONE };

/* What to reconstruct, as the command line says it. */
struct recon_request {
    const char *data, *events, *crystal_map, *header;
    bool until_damage;
    const char *additive, *efficiencies, *corrections, *initial, *truth, *output, *picture;
    enum recon_family family;
    bool without_fit; /* of the family direct: images alone, by whole updates of the device */
    enum recon_algorithm algorithm;
    enum recon_randoms randoms;
    enum mu_way mu_as;
    int iterations, iterations_before, subsets, save_every;
    double relaxation, relaxation_fall; /* of RAMLA and BSREM; 0 = the default */
    bool own_steps;                     /* of RAMLA */
    bool has_prior;                     /* of BSREM */
    lr_rdp prior;
    const char *kappa;
    bool has_psf;
    double psf_mm[3];
    bool bootstraps;
    uint64_t bootstrap_seed;
    enum recon_combine combine;
    lr_exchange exchange;
    int local_iterations;
    const char *checkpoint;
    int checkpoint_every, first_after; /* iterations of --initial */
    bool resumes;
};

/* What was measured, and what is known of each LOR. Sources point into this: it must not move. */
struct recon_inputs {
    lr_lor_data *data, *delayeds, *additive; /* delayeds: NULL where the data have none */
    lr_image *initial, *kappa, *truth;
    lr_event_counts events;
    lr_events_format events_format;
    lr_event_list *list; /* of list mode: prompts alone, of this rank */
    lr_randoms *randoms;
    double counts;                     /* of all ranks, without delayeds */
    double additive_sum;               /* of list mode: over all LORs, where it is known */
    struct lr_background freeing;      /* of the list's events */
    lr_event_corrections *corrections; /* of list mode: of inputs.list's events */
    lr_lor_source sensitivity_factors; /* of them */
};

/* An interval of list mode, and what came of it. */
struct recon_frame {
    double begin_s, end_s;
    char *output;          /* owned */
    lr_iteration *history; /* owned [iterations] */
    int num_done;
    int64_t prompts;
    double image_sum;
};

/* List mode cut into frames. Zero is valid: there are none. */
struct recon_frames {
    int count;
    struct recon_frame *list; /* owned [count] */
    double from_s;
    lr_event_list *all;         /* of the file, as it was read */
    lr_listmode_params *params; /* owned; of each frame's operator */
    lr_blobs blobs;             /* what params points to where images are of blobs */
    bool has_tof;
    lr_operator *first; /* whose sensitivity all take; NULL before it is made */
    const char *output; /* as the command line has it */
    int64_t share[2];   /* of --part K/N; 0,0 = all frames */
    int64_t range[2];   /* which of the list this run reconstructs, the second not in it */
    int current;        /* that at hand */
};

/* What is known of an image beside the iteration that made it. */
struct recon_step {
    double elapsed_s;   /* since iterations began */
    double image_error; /* from the truth; -1 = not known */
    double *weights;    /* owned; of --combine paper: what composition points to. NULL = none */
    lr_composition composition;
};

/* What of the data this rank has. Zero: all. */
struct recon_share {
    int32_t *subset_of; /* owned [pairs, views or ranges of the rank] */
    int interleave;     /* subset_of says groups of so many subsets */
    int64_t *ranges;    /* owned [subsets + 1] of events */
};

/* One reconstruction under way. Zero is valid. Must not move. */
struct recon {
    struct setup setup;
    struct recon_request request;
    struct recon_inputs inputs;
    lr_image *image;
    lr_iteration *history; /* owned [iterations], without images; or the frame's */
    int num_done;          /* of this run */
    bool lacks_checkpoint; /* the last one that was due could not be written */
    double start_s;
    struct run_bar bar;
    lr_traffic traffic;              /* up to the last iteration */
    struct direct_setup direct;      /* of the family direct, without its operator */
    lr_histo_images *direct_factors; /* owned; NULL = none */
    struct recon_frames frames;
    struct early_sensitivity early; /* in list mode */
    struct cluster cluster;
    struct recon_share share;
    struct recon_own own;
    struct recon_step *steps; /* owned [iterations], beside history; NULL with frames */
    double iterating_s, noting_s;
    uint64_t digest;          /* of what was read, of all ranks; 0 = of nothing */
    uint64_t beside;          /* alike, of what is known of events beside them */
    lr_checkpoint checkpoint; /* that this run goes on from */
    const float *start;       /* in it: the operator's image to begin with; NULL = there is none */
    int saved;                /* iterations when a checkpoint was written last */
    const char *frame_name;   /* on the bar; NULL = there are no frames */
};

/* Reads the measurement, and all that goes with it, and hands factors to setup.params. */
lr_status recon_read_inputs(struct recon *recon);
void recon_finish_inputs(struct recon_inputs *inputs);

/* The image to start from and the prior's weights, where they are asked for. */
lr_status recon_read_images(struct recon *recon);

/* What is subtracted from the log-likelihood. */
extern const struct cli_option recon_prior_options[];
void recon_read_prior(struct cli_args *args, struct recon_request *request);
void recon_prior_json(const struct recon_request *request, struct json *json);

/* --bootstrap: draws what was measured again, counts (inputs.data and delayeds) or events. */
void recon_read_bootstrap(struct cli_args *args, struct recon_request *request);
lr_status recon_bootstrap_counts(struct recon *recon);
lr_status recon_bootstrap_events(struct recon *recon);
void recon_say_replicate(const struct recon *recon, double before, double after);

/* Complains about options of other families. */
void recon_check_family(struct cli_args *args, enum recon_family family);

/* The same for the family direct: reads histo-images and makes the operator. */
lr_status recon_open_direct(struct recon *recon, struct cli_args *args);
void recon_finish_direct(struct recon *recon); /* after the operator */

/* The same for list mode; the setup has its scanner and grid. */
extern const struct cli_option recon_listmode_options[];
lr_status recon_open_listmode(struct recon *recon, struct cli_args *args);

/* Reconstructs recon->image; where the operator's image is of blobs, through their coefficients. */
lr_status recon_run(struct recon *recon, const lr_recon_params *params);

/* Makes recon->image what an operator's image is. */
lr_status recon_take_image(const struct recon *recon, const lr_vector *image);

/* Whether images are emissions, and not of a scale of their own; once there is the operator. */
bool recon_counts_emissions(const struct recon *recon);

/* What a file tells of each event, in recon_corrections.c: complains about options that contradict it;
 * reads it, once there are events; moves an event with it; deals events that are not in the order of time
 * to subsets; makes it the additive term, which of LOR data is spread over window_mm. */
void recon_check_corrections(struct cli_args *args);
lr_status recon_read_corrections(struct recon *recon);
void recon_keep_event(struct recon_inputs *inputs, int64_t from, int64_t to);
lr_status recon_deal_events(struct recon *recon);
bool recon_deals_events(const struct recon *recon);
lr_status recon_read_event_terms(struct recon *recon, double window_mm);

/* Frames: what the command line says of them; they come one after the other, each with data and operator
 * of its own, which the next one ends; the end of them all. */
extern const struct cli_option recon_frame_options[];
void recon_read_frames(struct cli_args *args, struct recon *recon);
/* No image of a frame or an iteration, whose names follow from -o, loses what is read (outputs.h). */
lr_status recon_check_names(struct cli_args *args, const struct recon *recon);
bool recon_is_within(const struct recon_frame *frame, const lr_event *event);
lr_status recon_check_frames(struct recon *recon);
lr_status recon_open_frame(struct recon *recon, int k);
void recon_close_frame(struct recon *recon, int k);
void recon_finish_frames(struct recon *recon);
bool recon_has_frames(const struct recon *recon); /* whether any has iterations of this run */
void recon_frames_json(const struct recon *recon, bool stopped);

/* Several ranks: each keeps what is its own of the files. */
extern const struct cli_option recon_ranks_options[];
void recon_read_ranks(struct cli_args *args, struct recon_request *request);
void recon_finish_share(struct recon *recon);

/* Who has which pairs of modules, by what each costs; subset_of: [num_pairs] the group of subsets that each
 * belongs to, of share.interleave subsets. */
lr_status recon_deal_pairs(struct recon *recon, const double *costs, int32_t *subset_of, int32_t *rank_of);

/* Of LOR data, or of events that are counted, those of this rank's pairs; the setup has the LORs of these
 * from then on. Where inputs.data are there already, they are what is shared. */
lr_status recon_own_pairs(struct recon *recon);

/* recon->digest of the numbers at hand, of all ranks; part: the LORs that they have, of those of the setup. */
lr_status recon_digest_data(struct recon *recon, const lr_lors *part);

/* Views of histo-images: this rank's; all where there is one process. draws: of --bootstrap. */
lr_status recon_read_views(struct recon *recon, const char *path, bool draws, lr_histo_images **histo);

/* Hears errors alone. */
lr_log recon_quiet_log(struct recon *recon);
void recon_ranks_json(const struct recon *recon, struct json *json);

/* Checkpoints: what is in them, and going on from one, once the operator is there. */
extern const struct cli_option recon_checkpoint_options[];
void recon_read_checkpoint(struct cli_args *args, struct recon_request *request);
uint64_t recon_digest(uint64_t digest, const void *bytes, int64_t count); /* digest: so far, or 0 */
void recon_digest_event(uint64_t *digest, const lr_event *event);
lr_status recon_save_checkpoint(struct recon *recon, const lr_iteration *done);
lr_status recon_keep_guesses(void *user, const lr_guesses *guesses);
lr_status recon_keep_state(void *user, const lr_distributed_state *state);
lr_status recon_resume(struct recon *recon);
lr_status recon_find_frame(struct recon *recon); /* that to begin with, before its data are there */
void recon_forget_checkpoint(struct recon *recon);

/* The schemes by which ranks make one image; recon_call is one reconstruction of an operator's image. */
lr_status recon_combine(struct recon *recon, const lr_recon_params *params);
lr_status recon_call(const struct recon *recon, const lr_recon_params *params, lr_vector *image);
lr_status recon_note_step(struct recon *recon, const lr_vector *image);
void recon_step_json(struct json *json, const struct recon_step *step);
void recon_finish_steps(struct recon *recon);

/* Whether all ranks have read the same, and compute alike. */
lr_status recon_compare_ranks(const struct recon *recon, const char *what, uint64_t digest, int64_t count);
lr_status recon_compare_operators(const struct recon *recon);

/* The same before anything is computed: options; contents of one kind (0 = there are none); scanner, grid,
 * and what is known of each LOR; images that were read. */
lr_status recon_compare_options(const struct recon *recon, const struct cli_args *args);
lr_status recon_compare_contents(const struct recon *recon, const char *what, uint64_t digest);
lr_status recon_compare_factors(const struct recon *recon);
lr_status recon_compare_images(const struct recon *recon);

/* Data and operator of the list of events at hand (inputs.list), with delayeds in it. */
lr_status recon_open_events(struct recon *recon);

/* One iteration as an object of JSON. step: NULL = nothing more is known. */
void recon_iteration_json(struct json *json, const lr_iteration *done, const struct recon_step *step);

/* What JSON says of each reconstruction. */
void recon_head_json(const struct recon *recon, struct json *json);

/* Factors per LOR, handed to setup.params. */
lr_status recon_read_factors(struct recon *recon);

/* Tells what events a file held. */
void recon_say_events(const struct recon *recon);
void recon_say_binned(struct recon *recon, const lr_events_info *info);

/* Of LOR data: by fan sums of inputs.delayeds, or of their ends, where those are given; says what of the
 * prompts they are. */
lr_status recon_estimate_randoms(struct recon *recon, const double *ends, double prompts);

/* The list mode that the command line names. */
lr_events_source recon_events_source(const struct recon *recon);

/* Says what came of it: a line or a JSON object on standard output. */
void recon_report(const struct recon *recon, bool stopped);

/* One line about an iteration. */
void recon_say_iteration(struct recon *recon, const lr_iteration *done);

/* A PNG of three slices through the centre of the image's activity. */
lr_status recon_draw(const struct recon *recon);

#endif
