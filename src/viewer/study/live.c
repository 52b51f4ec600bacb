/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/live.h"

#include "base/log.h"
#include "base/mem.h"
#include "viewer/study/operators.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- family direct: views, and counts from the open histo-images --- */

/* The views and counts of the request are copied, because the request may be freed before the job ends. */
struct live_direct {
    lr_view *views; /* owned [num_views] */
    int num_views;
    lr_lor_data *data; /* owned; NULL = counts must be drawn */
};

/* --- family listmode: events, and the randoms expected for each event --- */

/* A struct of zeros is valid. */
struct live_listmode {
    lr_event_list *list;             /* owned: only prompts in coincidence */
    lr_lor_data *weights, *additive; /* owned [events]; additive: NULL = none */
};

/* --- guesses, which one process computes and composes in the same way as the ranks of a cluster:
 * docs/method/cluster.md, "paper" --- */

struct live;
struct live_work;

struct live_guess {
    struct live_work *work;
    int number; /* counted from 0 */
    lr_lors *lors;
    lr_lor_data *data;
    lr_vector counts; /* the values of `data` */
    lr_operator *op;
    lr_crystal_product randoms; /* expected randoms of the LORs of `lors` */
    lr_progress progress;       /* adds the guess's number to messages about progress */
};

/* --- the reconstruction --- */

/* The reconstruction. Only the job's thread uses it from start to end. */
struct live_work {
    struct live *live; /* the window's side, to which results go */
    const lr_log *log; /* the job's log, while it runs */
    const lr_progress *progress;
    struct study_view study; /* a reference is held */
    struct live_request request;
    lr_image *reference;           /* owned, or NULL */
    lr_lor_data *simulated;        /* owned, or NULL */
    lr_randoms *randoms;           /* owned, or NULL */
    struct live_direct direct;     /* family direct */
    struct live_listmode listmode; /* family listmode */
    int num_guesses;               /* number of guesses to compose; 0 = none */
    struct live_guess *guesses;    /* owned [num_guesses]; must not move while they are open */
    lr_recon_params *guess_params; /* owned [num_guesses] */
    lr_operator *op;               /* owned */
    bool is_on_device;             /* images can be shown from the operator's device */
    lr_traffic traffic;            /* traffic of the operator's place, after the last iteration */
    char why[LIVE_WHY];            /* reason if the image is not on the device */
    lr_vector there;               /* copy of the reference at the images' place; zero before it is made */
    float *image;                  /* owned: the finished reconstruction */
};

enum { MOST_ITERATIONS = 1000000 }; /* limit of lr_recon */
enum { USUAL_ITERATIONS = 20 };     /* iterations that a person usually watches before stopping */
enum { USUAL_LOCAL = 2 };           /* default iterations of a guess before composition */

/* --- requests from the window, and results for it --- */

struct live {
    struct job job;
    struct live_work work; /* used only by the job while it runs */

    pthread_mutex_t mutex;  /* protects all members below */
    pthread_cond_t changed; /* signals changes of the requests */
    bool wants_pause, wants_stop;
    int steps;         /* iterations to do while paused */
    bool is_waiting;   /* the thread has paused after an iteration */
    bool is_iterating; /* true after the first iteration */
    bool has_image;
    struct live_where where;
    float *image; /* [num_voxels] */
    int64_t serial;
    struct live_iteration *history;
    struct live_round *rounds; /* [num_iterations] if guesses are composed */
    int num_iterations;
    int64_t capacity, rounds_capacity;
    float *guesses; /* [work.request.guesses][num_voxels] images of the guesses; NULL if the guesses have none */
    int64_t guess_serials[LIVE_MOST_GUESSES];
};

/* --- on the job's thread --- */

/* Stores the values of a guess for the window. The caller holds the mutex. */
static void put_guess(struct live *live, int guess, const float *values)
{
    const int64_t count = lr_grid_num_voxels(&live->where.grid);
    memcpy(live->guesses + guess * count, values, (size_t)count * sizeof(*values));
    live->guess_serials[guess]++;
}

/* Called after each iteration of a guess. The image is the one that a single rank of a cluster would have; it is stored
 * for display. */
static lr_status after_guess(void *user, const lr_iteration *done)
{
    const struct live_guess *guess = user;
    struct live *live = guess->work->live;
    lr_vector host = lr_vector_of_floats(live->work.image, done->image->count);
    LR_TRY(lr_vector_copy(done->image, &host));
    pthread_mutex_lock(&live->mutex);
    put_guess(live, guess->number, live->work.image);
    const bool stops = live->wants_stop;
    pthread_mutex_unlock(&live->mutex);
    return stops ? LR_CANCELLED : LR_OK;
}

/* Stores the result of an iteration for display, then pauses or stops if the window has requested it. composed: NULL =
 * guesses are not composed. */
static lr_status end_iteration(struct live *live, struct live_iteration *iteration, const lr_vector *image,
                               const lr_operator *op, const lr_composition *composed)
{
    struct live_work *work = &live->work;
    const int64_t num_voxels = lr_grid_num_voxels(&live->where.grid);
    const int num = live->num_iterations;
    lr_status status = LR_OK;
    lr_vector_sums own, other, sums;

    /* The relative difference from the reference image is computed where the image is stored. NaN: there is no
     * reference image, or it is zero everywhere. */
    iteration->difference = NAN;
    const bool is_shown = work->is_on_device && image->values == NULL;
    if (work->reference != NULL) {
        const lr_vector reference = lr_image_vector(work->reference);
        if (image->values != NULL) {
            work->there = reference;
        } else if (work->there.storage == NULL) {
            const lr_vector_params params = {
                .place = image->place, .count = reference.count, .name = "the image to compare with", .log = work->log};
            LR_TRY(lr_vector_create(&params, &work->there));
            LR_TRY(lr_vector_copy(&reference, &work->there));
        }
        LR_TRY(lr_vector_add_up(&work->there, NULL, &own));
        LR_TRY(lr_vector_add_up(image, &work->there, &other));
        iteration->difference = own.product > 0 ? sqrt(other.difference / own.product) : NAN;
    }

    /* The image is copied to the window's texture if it is on the device, otherwise to the host. */
    if (is_shown) {
        LR_TRY(lr_vector_add_up(image, NULL, &sums));
        LR_TRY(handover_write(work->request.handover, image, sums.largest));
    } else {
        lr_vector host = lr_vector_of_floats(work->image, image->count);
        LR_TRY(lr_vector_copy(image, &host));
    }
    pthread_mutex_lock(&live->mutex);
    live->where.is_on_device = is_shown;
    memcpy(live->where.why, work->why, sizeof(work->why));
    snprintf(live->where.backend, sizeof(live->where.backend), "%s", lr_operator_get_info(op)->backend);

    if (composed != NULL) {
        status = lr_grow(&live->rounds, &live->rounds_capacity, num + 1,
                         &(struct lr_items){sizeof(*live->rounds), "compositions", work->log});
        if (status == LR_OK) {
            struct live_round *round = &live->rounds[num];
            *round = (struct live_round){.iterations = composed->iterations,
                                         .count = composed->count,
                                         .residual = composed->residual,
                                         .clipped_residual = composed->clipped_residual,
                                         .condition = composed->condition,
                                         .negative_voxels = composed->negative_voxels,
                                         .negative_sum = composed->negative_sum};
            memcpy(round->weights, composed->weights, (size_t)composed->count * sizeof(*composed->weights));
            memcpy(round->residuals, composed->guess_residuals,
                   (size_t)composed->count * sizeof(*composed->guess_residuals));
            for (int k = 0; k < composed->count; k++) put_guess(live, k, composed->guesses + k * num_voxels);
        }
    }
    if (status == LR_OK) {
        status = lr_grow(&live->history, &live->capacity, num + 1,
                         &(struct lr_items){sizeof(*live->history), "iterations", work->log});
    }
    if (status == LR_OK) {
        live->history[live->num_iterations++] = *iteration;
        live->is_iterating = true;
        if (!is_shown) {
            memcpy(live->image, work->image, (size_t)num_voxels * sizeof(*live->image));
            live->serial++;
            live->has_image = true;
        }
    }

    /* If a pause is requested, it begins now, except after the last iteration. */
    const int wanted = work->request.iterations;
    if (status == LR_OK && (wanted == 0 || iteration->number < wanted)) {
        while (live->wants_pause && live->steps == 0 && !live->wants_stop) {
            live->is_waiting = true;
            pthread_cond_wait(&live->changed, &live->mutex);
        }
        live->is_waiting = false;
        live->steps -= live->steps > 0;
    }
    status = status == LR_OK && live->wants_stop ? LR_CANCELLED : status;
    pthread_mutex_unlock(&live->mutex);
    return status;
}

static lr_status after_composition(void *user, const lr_composition *done)
{
    struct live *live = user;
    struct live_iteration iteration = {.number = done->iterations,
                                       .log_likelihood = done->fit.log_likelihood,
                                       .measured_counts = done->fit.measured_counts,
                                       .estimated_counts = done->fit.estimated_counts,
                                       .seconds = done->seconds};
    return end_iteration(live, &iteration, done->image, live->work.guesses[0].op, done);
}

static lr_status after_iteration(void *user, const lr_iteration *done)
{
    struct live *live = user;
    struct live_work *work = &live->work;
    const lr_traffic before = work->traffic;
    work->traffic = lr_place_get_info(lr_operator_place(work->op)).traffic;
    struct live_iteration iteration = {
        .number = done->number,
        .log_likelihood = done->log_likelihood,
        .measured_counts = done->measured_counts,
        .estimated_counts = done->estimated_counts,
        .seconds = done->seconds,
        .traffic = {work->traffic.to_device - before.to_device, work->traffic.to_host - before.to_host},
    };
    return end_iteration(live, &iteration, done->image, work->op, NULL);
}

static void finish_listmode(struct live_listmode *listmode)
{
    lr_event_list_destroy(listmode->list);
    lr_lor_data_destroy(listmode->weights);
    lr_lor_data_destroy(listmode->additive);
    *listmode = (struct live_listmode){0};
}

static void finish_guesses(struct live_work *work)
{
    for (int k = 0; k < work->num_guesses; k++) {
        lr_operator_destroy(work->guesses[k].op);
        lr_lor_data_destroy(work->guesses[k].data);
        lr_lors_destroy(work->guesses[k].lors);
    }
    lr_free_all(work->guesses, work->guess_params);
    work->guesses = NULL;
    work->guess_params = NULL;
    work->num_guesses = 0;
}

static void live_work_finish(struct live_work *work)
{
    lr_image_destroy(work->reference);
    lr_lor_data_destroy(work->simulated);
    lr_randoms_destroy(work->randoms);
    lr_lor_data_destroy(work->direct.data);
    free(work->direct.views);
    finish_listmode(&work->listmode);
    finish_guesses(work);
    free(work->image);
    study_view_release(&work->study);
    *work = (struct live_work){0};
}

/* --- family listmode --- */

struct drawing {
    lr_event_list *list;
    int64_t room;
    const lr_log *log;
};

static lr_status append(void *user, const lr_event *events, int64_t count)
{
    struct drawing *drawing = user;
    lr_event_list *list = drawing->list;
    LR_TRY(lr_grow(&list->events, &drawing->room, list->count + count,
                   &(struct lr_items){sizeof(*list->events), "events", drawing->log}));
    memcpy(list->events + list->count, events, (size_t)count * sizeof(*events));
    list->count += count;
    return LR_OK;
}

/* --- the operator --- */

static lr_operator_params settle_operator(const struct live_work *work, lr_operator_params params)
{
    const struct live_request *request = &work->request;
    params.lors = work->study.lors;
    params.grid = &work->study.grid;
    params.backend = params.shared != NULL ? "compute" : request->backend;
    params.mode = request->mode;
    params.rays = request->mode == LR_MODE_SAMPLED ? request->rays : 0;
    params.mu = work->study.mu;
    params.mu_steps = params.mu != NULL ? request->mu_steps : 0;
    params.store = params.shared != NULL ? LR_STORE_NO : request->store;
    params.projections = 1.0 + 2.0 * (request->iterations > 0 ? request->iterations : USUAL_ITERATIONS);
    if (request->samples > 0) lr_grid_split_samples(&work->study.grid, request->samples, params.samples);
    return params;
}

/* Makes the operator of the family. errors: LR_CANCELLED; those of the operator's constructor, logged. */
static lr_status create_of_family(struct live_work *work, lr_operator_params params, lr_operator **op)
{
    const struct live_request *request = &work->request;
    struct live_listmode *listmode = &work->listmode;
    const struct live_direct *direct = &work->direct;
    if (request->family == LIVE_CORRESPONDENCE) {
        params = settle_operator(work, params);
        return operator_create(&params, op);
    }

    /* The events are read from the study's data, or drawn as photon pairs from the study's image. Only prompts in
     * coincidence are kept, because the sensitivity covers only LORs in coincidence. */
    if (request->family == LIVE_LISTMODE) {
        const struct study_view *study = &work->study;
        finish_listmode(listmode);
        LR_TRY(lr_progress_report(params.progress, "reading the events", 0, 1));
        if (request->simulates) {
            struct drawing drawing = {.log = params.log};
            const lr_event_sink sink = {.take = append, .user = &drawing};
            const lr_photon_params photons = {.lors = study->lors,
                                              .activity = study->image,
                                              .count =
                                                  request->counts > 0 ? (int64_t)request->counts : INT64_C(1000000),
                                              .seed = request->seed,
                                              .log = params.log,
                                              .progress = params.progress};
            listmode->list = drawing.list = lr_alloc(1, sizeof(*drawing.list), "events", params.log);
            if (drawing.list == NULL) return LR_FAILED;
            LR_TRY(lr_events_from_activity(&photons, &sink, &drawing.list->info));
        } else {
            struct lr_watched_log reason;
            lr_log_watch(&reason, params.log);
            const lr_events_source source = {.path = study->data_path, .scanner = study->scanner, .log = &reason.log};
            listmode->list = lr_event_list_read(&source);
            if (listmode->list == NULL) return reason.status;
        }

        lr_event_list *list = listmode->list;
        int64_t kept = 0;
        for (int64_t k = 0; k < list->count; k++) {
            const lr_event *event = &list->events[k];
            const int64_t lor = lr_lors_number(study->lors, event->crystals[0], event->crystals[1]);
            if (!event->is_delayed && lor >= 0 && lr_lors_in_coincidence(study->lors, lor))
                list->events[kept++] = *event;
        }
        list->count = kept;
        if (kept == 0) return lr_error(params.log, LR_BAD_INPUT, "there are no prompts in coincidence");
    }

    LR_TRY(lr_progress_report(params.progress, "preparing the projector", 0, 1));
    if (request->family == LIVE_DIRECT) {
        *op = lr_direct_create(&(lr_direct_params){.grid = &work->study.grid,
                                                   .views = direct->views,
                                                   .num_views = direct->num_views,
                                                   .kernel = request->kernel,
                                                   .backend = request->backend,
                                                   .shared = params.shared,
                                                   .log = params.log,
                                                   .progress = params.progress});
    } else { /* each subset has a range of events */
        lr_listmode_params own = {.lors = work->study.lors,
                                  .grid = &work->study.grid,
                                  .events = listmode->list->events,
                                  .count = listmode->list->count,
                                  .info = listmode->list->info.has_tof ? &listmode->list->info : NULL,
                                  .num_ranges = request->subsets,
                                  .kernel = request->elements,
                                  .backend = request->backend,
                                  .log = params.log,
                                  .progress = params.progress};
        if (request->elements == LR_LISTMODE_EXACT && request->samples > 0)
            lr_grid_split_samples(&work->study.grid, request->samples, own.samples);
        *op = lr_listmode_create(&own);
    }
    return *op != NULL ? LR_OK : LR_FAILED;
}

/* --- data --- */

/* Draws the data from the study's image. This image, scaled to the counts, is also the reference if there is no
 * other reference. */
static lr_status simulate(struct live_work *work, const lr_recon_params *params)
{
    const struct live_request *request = &work->request;
    const lr_image *image = work->study.image;
    const int64_t num_voxels = lr_grid_num_voxels(&image->grid);
    LR_TRY(lr_progress_report(params->progress, "simulating the measurement", 0, 1));
    lr_lor_data *data = work->simulated = lr_lor_data_create(lr_operator_get_info(params->op)->lors, params->log);
    lr_image *truth = data != NULL ? lr_image_create(&image->grid, params->log) : NULL;
    if (truth == NULL) return LR_FAILED;
    memcpy(truth->values, image->values, (size_t)num_voxels * sizeof(*image->values));
    const lr_vector from = lr_image_vector(truth);
    lr_vector values = lr_lor_data_vector(data);
    lr_status status = lr_operator_forward(params->op, NULL, &from, &values);

    double sum = 0;
    for (int64_t k = 0; k < data->count; k++) sum += data->values[k];
    if (status == LR_OK && !(sum > 0))
        status = lr_error(params->log, LR_BAD_INPUT, "the image reaches no LOR: nothing would be counted");
    if (status == LR_OK && request->counts > 0) {
        const double factor = request->counts / sum;
        for (int64_t k = 0; k < data->count; k++) data->values[k] = (float)(factor * data->values[k]);
        for (int64_t v = 0; v < num_voxels; v++) truth->values[v] = (float)(factor * truth->values[v]);
    }
    if (status == LR_OK && !request->without_noise)
        status = lr_poisson(data->values, data->count, request->seed, params->log);

    if (status == LR_OK && work->reference == NULL)
        work->reference = truth;
    else
        lr_image_destroy(truth);
    return status;
}

/* Estimates the expected randoms if there are delayed coincidences. */
static lr_status estimate_randoms(struct live_work *work, lr_recon_params *params, const lr_log *log)
{
    const lr_lor_data *delayeds = work->study.delayeds;
    if (work->request.family != LIVE_CORRESPONDENCE || work->simulated != NULL || delayeds == NULL ||
        delayeds->count == 0)
        return LR_OK;
    work->randoms = lr_randoms_estimate(work->study.lors, delayeds, log);
    if (work->randoms == NULL) return LR_FAILED;
    params->additive_source = lr_crystal_product_source(&work->randoms->product);
    params->additive_sum = work->randoms->delayeds;
    return LR_OK;
}

/* --- the reconstruction --- */

static lr_recon_params settle_recon(const struct live_work *work, lr_recon_params params)
{
    params.iterations = work->request.iterations > 0 ? work->request.iterations : MOST_ITERATIONS;
    params.subsets = work->request.subsets;
    params.algorithm = work->request.algorithm;
    if (params.algorithm == LR_ALGORITHM_RAMLA) {
        params.relaxation = work->request.relaxation;
        params.relaxation_fall = work->request.relaxation_fall;
        params.own_steps = work->request.family != LIVE_DIRECT;
    }
    return params;
}

static lr_status reconstruct(struct live_work *work, lr_recon_params params)
{
    const enum live_family family = work->request.family;
    struct live_listmode *listmode = &work->listmode;
    const lr_lor_data *delayeds = work->study.delayeds;
    if (work->request.simulates && family != LIVE_LISTMODE) LR_TRY(simulate(work, &params));
    const lr_lor_data *measured = family == LIVE_DIRECT ? work->direct.data : work->study.data;
    lr_vector additive = {0};
    params = settle_recon(work, params);
    measured = work->simulated != NULL ? work->simulated : measured;
    params.iteration = after_iteration;
    params.user = work->live;
    if (family == LIVE_LISTMODE) {
        const lr_lors *layout = lr_operator_get_info(params.op)->lors;
        const lr_event_list *list = listmode->list;
        const bool has_tof = list->info.has_tof;
        const int bins = list->info.num_tof_bins;
        listmode->weights = lr_lor_data_create(layout, params.log);
        if (listmode->weights == NULL) return LR_FAILED;
        for (int64_t k = 0; k < list->count; k++) listmode->weights->values[k] = list->events[k].weight;

        /* The randoms of each event's LOR are spread evenly over the time-of-flight window. */
        if (delayeds != NULL && delayeds->count > 0 && has_tof && bins < 1) {
            lr_warn(params.log, "the width of the coincidence window is not known: randoms are left out");
        } else if (delayeds != NULL && delayeds->count > 0) {
            const float *edges_mm = list->info.tof_edges_mm;
            const double window_mm = has_tof ? (double)edges_mm[bins] - (double)edges_mm[0] : 1.0;
            lr_randoms *randoms = lr_randoms_estimate(work->study.lors, delayeds, params.log);
            listmode->additive = lr_lor_data_create(layout, params.log);
            for (int64_t k = 0; k < list->count && randoms != NULL && listmode->additive != NULL; k++) {
                const lr_crystal_product *product = &randoms->product;
                const int32_t *crystals = list->events[k].crystals;
                listmode->additive->values[k] =
                    (float)(product->scale * product->values[crystals[0]] * product->values[crystals[1]] / window_mm);
            }
            params.additive_sum = randoms != NULL ? randoms->delayeds : 0.0;
            const bool is_made = randoms != NULL && listmode->additive != NULL;
            lr_randoms_destroy(randoms);
            if (!is_made) return LR_FAILED;
        }
        measured = listmode->weights;
        if (listmode->additive != NULL) {
            additive = lr_lor_data_vector(listmode->additive);
            params.additive = &additive;
        }
    } else {
        LR_TRY(estimate_randoms(work, &params, params.log));
    }
    const lr_vector counts = lr_lor_data_vector(measured);
    params.data = &counts;
    params.data_lors = measured->index;
    lr_vector image = lr_vector_of_floats(work->image, lr_grid_num_voxels(&work->study.grid));
    return lr_recon(&params, &image);
}

/* --- guesses that are composed --- */

static bool report_guess(void *user, const char *what, double done, double total)
{
    const struct live_guess *guess = user;
    char text[256];
    snprintf(text, sizeof(text), "guess %d of %d: %s", guess->number + 1, guess->work->num_guesses, what);
    return lr_progress_report(guess->work->progress, text, done, total) == LR_OK;
}

/* Takes the LORs and data of a guess, and makes a projector for them. All guesses use the backend of the first
 * guess. guess_of: [num_pairs] */
static lr_status open_guess(struct live_work *work, lr_operator_params params, const int32_t *guess_of, int k)
{
    struct live_guess *guess = &work->guesses[k];
    lr_recon_params *recon = &work->guess_params[k];
    const lr_log *log = params.log;
    const lr_lors *all = work->study.lors;
    const lr_lor_data *data = work->simulated != NULL ? work->simulated : work->study.data;
    *guess = (struct live_guess){.work = work, .number = k, .progress = {report_guess, guess}};
    int32_t *pairs = lr_alloc(all->num_pairs, sizeof(*pairs), "pairs of a guess", log);
    lr_selection own = {.pairs = pairs};
    for (int64_t pair = 0; pairs != NULL && pair < all->num_pairs; pair++)
        if (guess_of[pair] == k) pairs[own.num_pairs++] = (int32_t)pair;
    guess->lors = pairs != NULL ? lr_lors_create_part(all, &own, log) : NULL;
    free(pairs);
    guess->data = guess->lors != NULL ? lr_lor_data_take(data, all, guess->lors, log) : NULL;
    if (guess->data == NULL) return LR_FAILED;

    params = settle_operator(work, params);
    params.lors = guess->lors;
    params.progress = &guess->progress;
    params.backend = k > 0 ? lr_operator_get_info(work->guesses[0].op)->backend : params.backend;
    LR_TRY(operator_create(&params, &guess->op));
    *recon = settle_recon(work, (lr_recon_params){.log = log});
    recon->op = guess->op;
    guess->counts = lr_lor_data_vector(guess->data);
    recon->data = &guess->counts;
    recon->data_lors = guess->data->index;
    recon->progress = &guess->progress;
    recon->iteration = after_guess;
    recon->user = guess;
    if (work->randoms != NULL) {
        guess->randoms = work->randoms->product;
        guess->randoms.lors = guess->lors;
        recon->additive_source = lr_crystal_product_source(&guess->randoms);
    }
    return LR_OK;
}

/* Divides the pairs of modules among the guesses in the same way as the cluster (lr_osem_subsets), and composes the
 * guesses. */
static lr_status compose(struct live_work *work, const lr_operator_params *params)
{
    const struct live_request *request = &work->request;
    const lr_lors *lors = work->study.lors;
    const lr_log *log = params->log;
    snprintf(work->why, sizeof(work->why), "guesses are composed on the host, where the image is");
    lr_recon_params recon = {.log = log, .progress = params->progress};
    if (request->simulates) { /* the projector of all LORs is only needed to draw their counts */
        lr_operator_params whole = settle_operator(work, *params);
        whole.store = LR_STORE_NO;
        LR_TRY(operator_create(&whole, &work->op));
        recon.op = work->op;
        LR_TRY(simulate(work, &recon));
        lr_operator_destroy(work->op);
        work->op = NULL;
    }
    LR_TRY(estimate_randoms(work, &recon, log));

    if (request->guesses > lors->num_pairs) {
        return lr_error(log, LR_USAGE,
                        "%d guesses: each has whole pairs of modules, of which %s has %lld in "
                        "coincidence; take at most so many",
                        request->guesses, lors->scanner->name, (long long)lors->num_pairs);
    }
    work->guesses = lr_alloc(request->guesses, sizeof(*work->guesses), "guesses", log);
    work->guess_params = lr_alloc(request->guesses, sizeof(*work->guess_params), "guesses", log);
    int32_t *guess_of = lr_alloc(lors->num_pairs, sizeof(*guess_of), "pairs of guesses", log);
    lr_status status = work->guesses != NULL && work->guess_params != NULL && guess_of != NULL
                           ? lr_osem_subsets(lors, request->guesses, guess_of, log)
                           : LR_FAILED;
    work->num_guesses = status == LR_OK ? request->guesses : 0;
    for (int k = 0; k < work->num_guesses && status == LR_OK; k++) status = open_guess(work, *params, guess_of, k);
    free(guess_of);
    LR_TRY(status);

    const int local = request->local_iterations;
    const lr_compose_params all = {.guesses = work->guess_params,
                                   .num_guesses = work->num_guesses,
                                   .local_iterations = local > 0 ? local : USUAL_LOCAL,
                                   .composed = after_composition,
                                   .user = work->live};
    lr_vector image = lr_vector_of_floats(work->image, lr_grid_num_voxels(&work->study.grid));
    return lr_compose(&all, &image);
}

/* --- preparing and running --- */

/* Makes the projector, takes or draws the data, and iterates. errors: LR_CANCELLED; those of lr_recon. */
static lr_status run(void *user, const lr_log *log, const lr_progress *progress)
{
    struct live *live = user;
    struct live_work *work = &live->work;
    const struct live_request *request = &work->request;
    const lr_operator_params params = {.log = log, .progress = progress};
    lr_status status = LR_OK;
    work->log = log;
    work->progress = progress;
    work->image = lr_alloc(lr_grid_num_voxels(&work->study.grid), sizeof(*work->image), "an image", log);
    if (work->image == NULL) return LR_FAILED;
    if (request->guesses > 1) {
        status = compose(work, &params);
        finish_guesses(work);
    } else {
        /* The operator works on the window's device if it can, otherwise on the host. */
        const bool is_direct = request->family == LIVE_DIRECT;
        const char *obstacle = NULL;
        if (request->family == LIVE_LISTMODE)
            obstacle = "list mode computes beside the window, and";
        else if (!is_direct && work->study.mu != NULL)
            obstacle = "a mu-map is open, and with absorption along the lines";
        if (request->handover != NULL && obstacle == NULL) {
            lr_operator_params on_device = params;
            on_device.shared = &request->handover->context;
            status = create_of_family(work, on_device, &work->op);
            obstacle = work->op == NULL ? "the projector could not be made there, and so"
                       : is_direct      ? "backend cpu computes, and"
                                        : "for this scanner and mode";
            work->is_on_device = work->op != NULL && lr_operator_place(work->op) != NULL;
            status = status == LR_CANCELLED ? status : LR_OK;
        }
        if (request->handover != NULL && !work->is_on_device) {
            lr_operator_destroy(work->op);
            work->op = NULL;
            snprintf(work->why, sizeof(work->why), "%s the image passes through the host", obstacle);
        }
        if (status == LR_OK && work->op == NULL) status = create_of_family(work, params, &work->op);
        if (status == LR_OK)
            status = reconstruct(work, (lr_recon_params){.op = work->op, .log = log, .progress = progress});
    }
    if (work->there.storage != NULL) lr_vector_destroy(&work->there);
    lr_operator_destroy(work->op);
    work->op = NULL;

    /* An image that has stayed on the device is now on the host, too. */
    pthread_mutex_lock(&live->mutex);
    if (status == LR_OK && live->where.is_on_device) {
        memcpy(live->image, work->image, (size_t)lr_grid_num_voxels(&live->where.grid) * sizeof(*live->image));
        live->serial++;
        live->has_image = true;
    }
    pthread_mutex_unlock(&live->mutex);
    return status;
}

/* --- life --- */

struct live *live_create(const lr_log *log)
{
    struct live *live = lr_alloc(1, sizeof(*live), "live reconstruction", log);
    if (live != NULL) {
        job_init(&live->job);
        pthread_mutex_init(&live->mutex, NULL);
        pthread_cond_init(&live->changed, NULL);
    }
    return live;
}

void live_destroy(struct live *live)
{
    if (live == NULL) return;
    live_control(live, LIVE_STOP);
    job_finish(&live->job);
    live_work_finish(&live->work);
    pthread_cond_destroy(&live->changed);
    pthread_mutex_destroy(&live->mutex);
    lr_free_all(live->image, live->history, live->rounds, live->guesses, live);
}

/* --- starting --- */

bool live_is_measured(const struct study_view *study, const struct live_request *request)
{
    const bool has_counts = request->family == LIVE_DIRECT     ? request->histo != NULL
                            : request->family == LIVE_LISTMODE ? study->data_are_events
                                                               : study->data != NULL;
    return has_counts && !request->simulates;
}

lr_grid live_grid_for(const struct study_view *study, const struct live_request *request)
{
    if (request->family != LIVE_DIRECT) return study->grid;
    return live_is_measured(study, request) ? request->histo->grid
           : study->image != NULL           ? study->image->grid
                                            : study->grid;
}

lr_status live_start(struct live *live, const struct study_view *study, const struct live_request *request,
                     const lr_log *log)
{
    struct live_work *work = &live->work;
    if (job_poll(&live->job) == JOB_RUNNING)
        return lr_error(log, LR_USAGE, "a reconstruction is running: stop it first");
    if (request->guesses < 0 || request->guesses > LIVE_MOST_GUESSES || request->local_iterations < 0) {
        return lr_error(log, LR_USAGE,
                        "%d guesses of %d iterations: take 2 to %d guesses, 0 for none, of 1 iteration or more",
                        request->guesses, request->local_iterations, LIVE_MOST_GUESSES);
    }
    if (request->guesses > 1 && request->family != LIVE_CORRESPONDENCE)
        return lr_error(log, LR_USAGE, "guesses are composed of the family correspondence: choose it, or no guesses");

    const bool is_direct = request->family == LIVE_DIRECT;
    if (is_direct && request->histo == NULL && study->image == NULL) {
        return lr_error(log, LR_USAGE,
                        "there are no histo-images, and no image to draw their counts from: open one of them");
    }
    if (!is_direct && study->scanner == NULL) return lr_error(log, LR_USAGE, "there is no scanner: open one first");
    if (request->family == LIVE_LISTMODE && !study->data_are_events && study->image == NULL)
        return lr_error(log, LR_USAGE, "there is no list mode, and no image to draw events from: open one of them");
    if (!is_direct && study->data == NULL && study->image == NULL)
        return lr_error(log, LR_USAGE, "there are no data, and no image to simulate them from: open one of them");
    if (request->simulates && study->image == NULL)
        return lr_error(log, LR_USAGE, "there is no image to simulate from: open one first");

    const lr_grid grid = live_grid_for(study, request);
    if (request->reference != NULL && !lr_grid_same(&request->reference->grid, &grid))
        return lr_error(log, LR_USAGE, "the reference image is on another grid than the reconstruction");

    live_work_finish(work);
    if (request->reference != NULL) {
        const lr_image *image = request->reference;
        work->reference = lr_image_create(&image->grid, log);
        if (work->reference == NULL) return LR_FAILED;
        const size_t bytes = (size_t)lr_grid_num_voxels(&image->grid) * sizeof(*image->values);
        memcpy(work->reference->values, image->values, bytes);
    }
    work->study = study_view_hold(study);
    work->study.grid = grid;
    work->request = *request;
    work->request.reference = NULL; /* `reference` and `histo` may be freed before the job ends */
    work->request.histo = NULL;
    work->request.backend = backend_name(request->backend, "auto");
    work->request.simulates = !live_is_measured(study, request);
    work->live = live;

    /* The family direct uses the views and the counts of the histo-images. Without histo-images, it uses the views of
     * the requested set, and the counts are drawn later. */
    const lr_histo_images *histo = is_direct && !work->request.simulates ? request->histo : NULL;
    if (is_direct) {
        struct live_direct *direct = &work->direct;
        lr_view_set set;
        if (histo == NULL) LR_TRY(lr_view_set_complete(&request->views, &set, log));
        direct->num_views = histo != NULL ? histo->num_views : lr_view_set_count(&set);
        direct->views = lr_alloc(direct->num_views, sizeof(*direct->views), "views", log);
        if (direct->views == NULL) return LR_FAILED;
        for (int k = 0; k < direct->num_views; k++)
            direct->views[k] = histo != NULL ? histo->views[k] : lr_view_set_at(&set, k);
    }
    if (histo != NULL) {
        const int64_t count = histo->num_views * lr_grid_num_voxels(&histo->grid);
        work->direct.data = lr_lor_data_create(&(lr_lors){.count = count}, log);
        if (work->direct.data == NULL) return LR_FAILED;
        memcpy(work->direct.data->values, histo->values, (size_t)count * sizeof(*histo->values));
    }

    /* Frees the last reconstruction. The mutex is not needed, because no job is running. */
    lr_free_all(live->image, live->guesses);
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    const int guesses = request->guesses > 1 ? request->guesses : 0;
    live->image = lr_alloc(num_voxels, sizeof(*live->image), "an image", log);
    live->guesses = guesses > 0 ? lr_alloc(guesses * num_voxels, sizeof(*live->guesses), "guesses", log) : NULL;
    memset(live->guess_serials, 0, sizeof(live->guess_serials));
    live->num_iterations = 0;
    live->where = (struct live_where){.grid = work->study.grid};
    live->has_image = false;
    live->wants_stop = live->is_waiting = live->is_iterating = false;
    live->wants_pause = request->begins_paused;
    live->steps = 0;
    if (live->image == NULL || (guesses > 0 && live->guesses == NULL)) return LR_FAILED;
    const struct job_params params = {run, live, "preparing the reconstruction"};
    return job_start(&live->job, &params);
}

/* --- pause, step and stop --- */

void live_control(struct live *live, enum live_wish wish)
{
    if (wish == LIVE_STOP) job_cancel(&live->job);
    pthread_mutex_lock(&live->mutex);
    switch (wish) {
    case LIVE_PAUSE:
    case LIVE_RESUME:
        live->wants_pause = wish == LIVE_PAUSE;
        live->steps = 0;
        break;
    case LIVE_STEP: /* paused: runs one more iteration; running: pauses after the current one */
        live->steps += live->wants_pause;
        live->wants_pause = true;
        break;
    case LIVE_STOP: live->wants_stop = true; break;
    }
    if (wish != LIVE_PAUSE) {
        live->is_waiting = false; /* live_poll returns "running" from here on */
        pthread_cond_broadcast(&live->changed);
    }
    pthread_mutex_unlock(&live->mutex);
}

/* --- results for the window --- */

enum live_state live_poll(struct live *live, struct job_report *report)
{
    const enum job_state job = job_poll(&live->job);
    if (report != NULL) job_get_report(&live->job, report);
    pthread_mutex_lock(&live->mutex);
    const enum live_state running = !live->is_iterating ? LIVE_PREPARING
                                    : live->is_waiting  ? LIVE_PAUSED
                                                        : LIVE_RUNNING;
    pthread_mutex_unlock(&live->mutex);
    switch (job) {
    case JOB_IDLE: return LIVE_IDLE;
    case JOB_RUNNING: return running;
    default: return job == JOB_FAILED ? LIVE_FAILED : LIVE_DONE;
    }
}

struct live_where live_get_where(struct live *live)
{
    pthread_mutex_lock(&live->mutex);
    struct live_where where = live->where;
    pthread_mutex_unlock(&live->mutex);
    if (where.backend[0] == '\0') snprintf(where.backend, sizeof(where.backend), "none");
    return where;
}

bool live_copy_image(struct live *live, int64_t *serial, float *values)
{
    pthread_mutex_lock(&live->mutex);
    const bool is_newer = live->has_image && live->serial > *serial;
    if (is_newer) {
        memcpy(values, live->image, (size_t)lr_grid_num_voxels(&live->where.grid) * sizeof(*live->image));
        *serial = live->serial;
    }
    pthread_mutex_unlock(&live->mutex);
    return is_newer;
}

bool live_copy_guess(struct live *live, int guess, int64_t *serial, float *values)
{
    const int64_t count = lr_grid_num_voxels(&live->where.grid);
    pthread_mutex_lock(&live->mutex);
    const int most = live->guesses != NULL ? live->work.request.guesses : 0;
    const bool is_newer = guess >= 0 && guess < most && live->guess_serials[guess] > *serial;
    if (is_newer) {
        memcpy(values, live->guesses + guess * count, (size_t)count * sizeof(*values));
        *serial = live->guess_serials[guess];
    }
    pthread_mutex_unlock(&live->mutex);
    return is_newer;
}

bool live_copy_round(struct live *live, int number, struct live_round *round)
{
    pthread_mutex_lock(&live->mutex);
    const bool is_there = live->guesses != NULL && number < live->num_iterations;
    if (is_there) *round = live->rounds[number];
    pthread_mutex_unlock(&live->mutex);
    return is_there;
}

int live_copy_history(struct live *live, int first, struct live_iteration *iterations, int capacity)
{
    pthread_mutex_lock(&live->mutex);
    const int total = live->num_iterations;
    for (int n = first; n < total && n - first < capacity; n++) iterations[n - first] = live->history[n];
    pthread_mutex_unlock(&live->mutex);
    return total;
}
