/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/live.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "viewer/study/live_direct.h"
#include "viewer/study/live_listmode.h"
#include "viewer/study/operators.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The reconstruction. Belongs to the job's thread from its start to its end. */
struct live_work {
    const lr_log *log;       /* the job's, while it runs */
    struct study_view study; /* held */
    struct live_request request;
    lr_image *reference;           /* owned, or NULL */
    lr_lor_data *simulated;        /* owned, or NULL */
    lr_randoms *randoms;           /* owned, or NULL */
    struct live_direct direct;     /* of that family */
    struct live_listmode listmode; /* likewise */
    lr_operator *op;               /* owned */
    bool is_on_device;             /* images can be shown where they are computed */
    lr_traffic traffic;            /* of the operator's place, after the last iteration */
    char why[LIVE_WHY];            /* the image is not on the device */
    lr_vector there;               /* the reference, where images are shown from; zero until then */
    float *image;                  /* owned: the reconstruction, when it is done */
    lr_status (*iteration)(void *user, const lr_iteration *done);
    void *user;
};

enum { MOST_ITERATIONS = 1000000 }; /* of lr_recon */

static void finish_work(struct live_work *work)
{
    lr_image_destroy(work->reference);
    lr_lor_data_destroy(work->simulated);
    lr_randoms_destroy(work->randoms);
    live_direct_finish(&work->direct);
    live_listmode_finish(&work->listmode);
    free(work->image);
    study_view_release(&work->study);
    *work = (struct live_work){0};
}

/* Iterations that a person watches before stopping. */
enum { USUAL = 20 };

static lr_status create_for(const struct live_work *work, lr_operator_params params,
                            lr_operator **op)
{
    const struct live_request *request = &work->request;
    const bool has_mu = work->study.mu != NULL && !request->without_mu;
    params.lors = work->study.lors;
    params.grid = &work->study.grid;
    params.backend = params.shared != NULL ? "compute" : request->backend;
    params.mode = request->mode;
    params.rays = request->mode == LR_MODE_SAMPLED ? request->rays : 0;
    params.mu = has_mu ? work->study.mu : NULL;
    params.mu_steps = has_mu ? request->mu_steps : 0;
    params.store = params.shared != NULL ? LR_STORE_NO : request->store;
    params.projections = 1.0 + 2.0 * (request->iterations > 0 ? request->iterations : USUAL);
    if (request->samples > 0) {
        lr_grid_split_samples(&work->study.grid, request->samples, params.samples);
    }
    return operator_create(&params, op);
}

static bool is_direct(const struct live_work *work)
{
    return work->request.family == LIVE_DIRECT;
}

static bool is_listmode(const struct live_work *work)
{
    return work->request.family == LIVE_LISTMODE;
}

static lr_status create_listmode(struct live_work *work, const lr_operator_params *params,
                                 lr_operator **op)
{
    LR_TRY(live_listmode_take(&work->listmode, &work->study, &work->request, params));
    return live_listmode_create(&work->listmode, &work->study, &work->request, params, op);
}

static lr_status create_of_family(struct live_work *work, lr_operator_params params,
                                  lr_operator **op)
{
    params.grid = &work->study.grid;
    return is_listmode(work) ? create_listmode(work, &params, op)
           : is_direct(work) ? live_direct_create(&work->direct, &params, op)
                             : create_for(work, params, op);
}

/* Why the image cannot stay on the device; NULL: it may. */
static const char *find_obstacle(const struct live_work *work)
{
    if (is_listmode(work)) {
        return "list mode computes beside the window, and";
    }
    if (!is_direct(work) && work->study.mu != NULL && !work->request.without_mu) {
        return "a mu-map is open, and with absorption along the lines";
    }
    return NULL;
}

/* On the device, where the projector has its place there. */
static lr_status try_device(struct live_work *work, lr_operator_params params)
{
    const char *obstacle = find_obstacle(work);
    if (obstacle == NULL) {
        params.shared = handover_context(work->request.handover);
        const lr_status status = create_of_family(work, params, &work->op);
        if (status == LR_CANCELLED) {
            return status;
        }
        obstacle = work->op == NULL  ? "the projector could not be made there, and so"
                   : is_direct(work) ? "backend cpu computes, and"
                                     : "for this scanner and mode";
        work->is_on_device = work->op != NULL && lr_operator_place(work->op) != NULL;
    }
    if (!work->is_on_device) {
        lr_operator_destroy(work->op);
        work->op = NULL;
        snprintf(work->why, sizeof(work->why), "%s the image passes through the host", obstacle);
    }
    return LR_OK;
}

static lr_status create_operator(struct live_work *work, lr_operator_params params)
{
    if (work->request.handover != NULL) {
        LR_TRY(try_device(work, params));
    }
    return work->op != NULL ? LR_OK : create_of_family(work, params, &work->op);
}

/* --- simulated data --- */

static void scale(float *values, int64_t count, double factor)
{
    for (int64_t k = 0; k < count; k++) {
        values[k] = (float)(factor * values[k]);
    }
}

/* The image that data are drawn from, also to compare with. */
static lr_status take_truth(struct live_work *work, lr_image **truth, const lr_log *log)
{
    const lr_image *image = work->study.image;
    *truth = lr_image_create(&image->grid, log);
    if (*truth == NULL) {
        return LR_FAILED;
    }
    memcpy((*truth)->values, image->values,
           (size_t)lr_grid_num_voxels(&image->grid) * sizeof(*image->values));
    return LR_OK;
}

/* Brings expectation and truth to the counts asked for, and draws. */
static lr_status draw_counts(const struct live_work *work, lr_image *truth, const lr_log *log)
{
    const struct live_request *request = &work->request;
    lr_lor_data *data = work->simulated;
    double sum = 0;
    for (int64_t k = 0; k < data->count; k++) {
        sum += data->values[k];
    }
    if (!(sum > 0)) {
        return lr_error(log, LR_BAD_INPUT, "the image reaches no LOR: nothing would be counted");
    }
    if (request->counts > 0) {
        scale(data->values, data->count, request->counts / sum);
        scale(truth->values, lr_grid_num_voxels(&truth->grid), request->counts / sum);
    }
    return request->without_noise ? LR_OK
                                  : lr_poisson(data->values, data->count, request->seed, log);
}

static lr_status simulate(struct live_work *work, lr_operator *op, const lr_log *log)
{
    lr_image *truth = NULL;
    work->simulated = lr_lor_data_create(lr_operator_get_info(op)->lors, log);
    if (work->simulated == NULL) {
        return LR_FAILED;
    }
    LR_TRY(take_truth(work, &truth, log));
    const lr_vector image = lr_image_vector(truth);
    lr_vector values = lr_lor_data_vector(work->simulated);
    lr_status status = lr_operator_forward(op, NULL, &image, &values);
    if (status == LR_OK) {
        status = draw_counts(work, truth, log);
    }
    if (status == LR_OK && work->reference == NULL) {
        work->reference = truth;
        truth = NULL;
    }
    lr_image_destroy(truth);
    return status;
}

/* --- the reconstruction --- */

/* Expected randoms, where there are delayed coincidences to estimate them from. */
static lr_status estimate_randoms(struct live_work *work, lr_recon_params *params,
                                  const lr_log *log)
{
    const lr_lor_data *delayeds = work->study.delayeds;
    if (work->request.family != LIVE_CORRESPONDENCE || work->simulated != NULL ||
        delayeds == NULL || delayeds->count == 0) {
        return LR_OK;
    }
    work->randoms = lr_randoms_estimate(work->study.lors, delayeds, log);
    if (work->randoms == NULL) {
        return LR_FAILED;
    }
    params->additive_source = lr_crystal_product_source(&work->randoms->product);
    params->additive_sum = work->randoms->delayeds;
    return LR_OK;
}

static lr_status reconstruct(struct live_work *work, lr_recon_params params)
{
    if (work->request.simulates && !is_listmode(work)) {
        LR_TRY(lr_progress_report(params.progress, "simulating the measurement", 0, 1));
        LR_TRY(simulate(work, params.op, params.log));
    }
    const lr_lor_data *measured = is_direct(work) ? work->direct.data : work->study.data;
    params.data = work->simulated != NULL ? work->simulated : measured;
    params.iterations = work->request.iterations > 0 ? work->request.iterations : MOST_ITERATIONS;
    params.subsets = work->request.subsets;
    params.algorithm = work->request.algorithm;
    if (params.algorithm == LR_ALGORITHM_RAMLA) {
        params.relaxation = work->request.relaxation;
        params.relaxation_fall = work->request.relaxation_fall;
    }
    params.iteration = work->iteration;
    params.user = work->user;
    LR_TRY(is_listmode(work) ? live_listmode_data(&work->listmode, &work->study, &params)
                             : estimate_randoms(work, &params, params.log));
    lr_vector image = lr_vector_of_floats(work->image, lr_grid_num_voxels(&work->study.grid));
    return lr_recon(&params, &image);
}

/* Makes the projector, takes or draws the data, and iterates. */
static lr_status run_work(struct live_work *work, const lr_log *log, const lr_progress *progress)
{
    const lr_operator_params params = {.log = log, .progress = progress};
    work->log = log;
    work->image =
        lr_alloc(lr_grid_num_voxels(&work->study.grid), sizeof(*work->image), "an image", log);
    if (work->image == NULL) {
        return LR_FAILED;
    }
    lr_status status = create_operator(work, params);
    if (status == LR_OK) {
        const lr_recon_params recon = {.op = work->op, .log = log, .progress = progress};
        status = reconstruct(work, recon);
    }
    if (work->there.storage != NULL) {
        lr_vector_destroy(&work->there);
    }
    lr_operator_destroy(work->op);
    work->op = NULL;
    return status;
}

/* --- after each iteration --- */

/* The reference where the image is. */
static lr_status bring_reference(struct live_work *work, const lr_vector *image)
{
    const lr_vector reference = lr_image_vector(work->reference);
    if (image->values != NULL) {
        work->there = reference;
        return LR_OK;
    }
    if (work->there.storage == NULL) {
        LR_TRY(lr_vector_create(&(lr_vector_params){.place = image->place,
                                                    .count = reference.count,
                                                    .name = "the image to compare with",
                                                    .log = work->log},
                                &work->there));
        LR_TRY(lr_vector_copy(&reference, &work->there));
    }
    return LR_OK;
}

static lr_status compare(struct live_work *work, const lr_vector *image, double *difference)
{
    lr_vector_sums own, other;
    *difference = NAN;
    if (work->reference == NULL) {
        return LR_OK;
    }
    LR_TRY(bring_reference(work, image));
    LR_TRY(lr_vector_add_up(&work->there, NULL, &own));
    LR_TRY(lr_vector_add_up(image, &work->there, &other));
    *difference = own.product > 0 ? sqrt(other.difference / own.product) : NAN;
    return LR_OK;
}

static lr_status hand_over(struct live_work *work, const lr_vector *image)
{
    lr_vector_sums sums;
    LR_TRY(lr_vector_add_up(image, NULL, &sums));
    return handover_write(work->request.handover, image, sums.largest);
}

/* After an iteration: the image goes to the handover, or, where that cannot be, to work->image.
 * *is_shown: it went to the handover. *difference: |image - reference| / |reference| over all voxels;
 * NaN without a reference, or one that is zero. */
static lr_status take_image(struct live_work *work, const lr_vector *image, bool *is_shown,
                            double *difference)
{
    *is_shown = work->is_on_device && image->values == NULL;
    LR_TRY(compare(work, image, difference));
    if (*is_shown) {
        return hand_over(work, image);
    }
    lr_vector host = lr_vector_of_floats(work->image, image->count);
    return lr_vector_copy(image, &host);
}

/* What has passed since the last call. */
static lr_traffic count_traffic(struct live_work *work)
{
    const lr_traffic before = work->traffic;
    const lr_place *place = lr_operator_place(work->op);
    work->traffic = lr_place_get_info(place).traffic;
    return (lr_traffic){work->traffic.to_device - before.to_device,
                        work->traffic.to_host - before.to_host};
}

/* --- live reconstruction --- */

struct live {
    struct job job;
    struct live_work work; /* the job's while it runs */
    lr_grid grid;

    pthread_mutex_t mutex;  /* of all that follows */
    pthread_cond_t changed; /* of the wishes, and of what is told */
    bool wants_pause, wants_stop;
    int steps;         /* iterations to be done although it is paused */
    bool is_waiting;   /* the thread stands still after an iteration */
    bool is_iterating; /* the first iteration has come */
    bool has_ended;
    bool is_on_device, has_image;
    char why[LIVE_WHY], backend[LIVE_BACKEND];
    float *image; /* [num_voxels] */
    int64_t serial;
    struct live_iteration *history;
    int num_iterations;
    int64_t capacity;
};

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
    if (live == NULL) {
        return;
    }
    live_stop(live);
    job_finish(&live->job);
    finish_work(&live->work);
    pthread_cond_destroy(&live->changed);
    pthread_mutex_destroy(&live->mutex);
    free(live->image);
    free(live->history);
    free(live);
}

/* --- on the job's thread --- */

/* The mutex is taken. image: NULL = it stays on the device. */
static void put_image(struct live *live, const float *image)
{
    if (image != NULL) {
        memcpy(live->image, image, (size_t)lr_grid_num_voxels(&live->grid) * sizeof(*image));
        live->serial++;
        live->has_image = true;
    }
}

/* The mutex is taken. */
static lr_status note_iteration(struct live *live, const struct live_iteration *iteration,
                                const float *image)
{
    LR_TRY(lr_grow(&live->history, &live->capacity, live->num_iterations + 1,
                   &(struct lr_items){sizeof(*live->history), "iterations", live->work.log}));
    live->history[live->num_iterations++] = *iteration;
    live->is_iterating = true;
    put_image(live, image);
    return LR_OK;
}

/* Holds the thread while it is paused; the mutex is taken. */
static void wait_for_wishes(struct live *live)
{
    while (live->wants_pause && live->steps == 0 && !live->wants_stop) {
        live->is_waiting = true;
        pthread_cond_broadcast(&live->changed);
        pthread_cond_wait(&live->changed, &live->mutex);
    }
    live->is_waiting = false;
    live->steps -= live->steps > 0;
}

static lr_status after_iteration(void *user, const lr_iteration *done)
{
    struct live *live = user;
    struct live_iteration iteration = {
        .number = done->number,
        .log_likelihood = done->log_likelihood,
        .measured_counts = done->measured_counts,
        .estimated_counts = done->estimated_counts,
        .seconds = done->seconds,
        .traffic = count_traffic(&live->work),
    };
    bool is_shown;
    LR_TRY(take_image(&live->work, done->image, &is_shown, &iteration.difference));
    const int wanted = live->work.request.iterations;
    pthread_mutex_lock(&live->mutex);
    live->is_on_device = is_shown;
    memcpy(live->why, live->work.why, sizeof(live->why));
    snprintf(live->backend, sizeof(live->backend), "%s",
             lr_operator_get_info(live->work.op)->backend);
    lr_status status = note_iteration(live, &iteration, is_shown ? NULL : live->work.image);
    if (status == LR_OK && (wanted == 0 || done->number < wanted)) {
        wait_for_wishes(live);
    }
    status = status == LR_OK && live->wants_stop ? LR_CANCELLED : status;
    pthread_mutex_unlock(&live->mutex);
    return status;
}

static lr_status run(void *user, const lr_log *log, const lr_progress *progress)
{
    struct live *live = user;
    const lr_status status = run_work(&live->work, log, progress);
    pthread_mutex_lock(&live->mutex);
    if (status == LR_OK && live->is_on_device) {
        put_image(live, live->work.image);
    }
    live->has_ended = true;
    pthread_cond_broadcast(&live->changed);
    pthread_mutex_unlock(&live->mutex);
    return status;
}

/* --- starting --- */

static bool same_grid(const lr_grid *a, const lr_grid *b)
{
    bool same = true;
    for (int k = 0; k < 3; k++) {
        const double slack_mm = 1e-3 * a->voxel_mm[k];
        same = same && a->size[k] == b->size[k] &&
               fabs(a->voxel_mm[k] - b->voxel_mm[k]) * a->size[k] < slack_mm &&
               fabs(a->origin_mm[k] - b->origin_mm[k]) < slack_mm;
    }
    return same;
}

bool live_is_measured(const struct study_view *study, const struct live_request *request)
{
    const bool has_counts = request->family == LIVE_DIRECT     ? request->histo != NULL
                            : request->family == LIVE_LISTMODE ? study->data_are_events
                                                               : study->data != NULL;
    return has_counts && !request->simulates;
}

lr_grid live_grid_for(const struct study_view *study, const struct live_request *request)
{
    if (request->family != LIVE_DIRECT) {
        return study->grid;
    }
    return live_is_measured(study, request) ? request->histo->grid
           : study->image != NULL           ? study->image->grid
                                            : study->grid;
}

static lr_status check_counts(const struct study_view *study, const struct live_request *request,
                              const lr_log *log)
{
    if (request->family == LIVE_DIRECT) {
        return request->histo != NULL || study->image != NULL
                   ? LR_OK
                   : lr_error(log, LR_USAGE,
                              "there are no histo-images, and no image to draw their counts from: "
                              "open one of them");
    }
    if (study->scanner == NULL) {
        return lr_error(log, LR_USAGE, "there is no scanner: open one first");
    }
    if (request->family == LIVE_LISTMODE && !study->data_are_events && study->image == NULL) {
        return lr_error(log, LR_USAGE,
                        "there is no list mode, and no image to draw events from: open one of "
                        "them");
    }
    if (study->data == NULL && study->image == NULL) {
        return lr_error(log, LR_USAGE,
                        "there are no data, and no image to simulate them from: open one of them");
    }
    return LR_OK;
}

static lr_status check(const struct study_view *study, const struct live_request *request,
                       const lr_log *log)
{
    const lr_grid grid = live_grid_for(study, request);
    LR_TRY(check_counts(study, request, log));
    if (request->simulates && study->image == NULL) {
        return lr_error(log, LR_USAGE, "there is no image to simulate from: open one first");
    }
    if (request->reference != NULL && !same_grid(&request->reference->grid, &grid)) {
        return lr_error(log, LR_USAGE,
                        "the reference image is on another grid than the reconstruction");
    }
    return LR_OK;
}

static lr_image *copy_image(const lr_image *image, const lr_log *log)
{
    lr_image *copy = lr_image_create(&image->grid, log);
    if (copy != NULL) {
        memcpy(copy->values, image->values,
               (size_t)lr_grid_num_voxels(&image->grid) * sizeof(*image->values));
    }
    return copy;
}

static lr_status prepare_work(struct live *live, const struct study_view *study,
                              const struct live_request *request, const lr_log *log)
{
    struct live_work *work = &live->work;
    finish_work(work);
    if (request->reference != NULL) {
        work->reference = copy_image(request->reference, log);
        if (work->reference == NULL) {
            return LR_FAILED;
        }
    }
    work->study = study_view_hold(study);
    work->study.grid = live_grid_for(study, request);
    work->request = *request;
    work->request.reference = NULL; /* both may be gone before the job ends */
    work->request.histo = NULL;
    work->request.backend = backend_name(request->backend, "auto");
    work->request.simulates = !live_is_measured(study, request);
    if (request->family == LIVE_DIRECT) {
        LR_TRY(live_direct_take(&work->direct, request, log));
    }
    work->iteration = after_iteration;
    work->user = live;
    return LR_OK;
}

/* Nothing runs, so there is no need of the mutex. */
static lr_status forget_last(struct live *live, const struct study_view *study,
                             const struct live_request *request, const lr_log *log)
{
    free(live->image);
    live->grid = live_grid_for(study, request);
    live->image = lr_alloc(lr_grid_num_voxels(&live->grid), sizeof(*live->image), "an image", log);
    live->num_iterations = 0;
    live->is_on_device = live->has_image = false;
    live->why[0] = live->backend[0] = '\0';
    live->wants_stop = live->is_waiting = live->is_iterating = live->has_ended = false;
    live->wants_pause = request->begins_paused;
    live->steps = 0;
    return live->image != NULL ? LR_OK : LR_FAILED;
}

lr_status live_start(struct live *live, const struct study_view *study,
                     const struct live_request *request, const lr_log *log)
{
    if (job_poll(&live->job) == JOB_RUNNING) {
        return lr_error(log, LR_USAGE, "a reconstruction is running: stop it first");
    }
    LR_TRY(check(study, request, log));
    LR_TRY(prepare_work(live, study, request, log));
    LR_TRY(forget_last(live, study, request, log));
    const struct job_params params = {run, live, "preparing the reconstruction"};
    return job_start(&live->job, &params);
}

/* --- wishes --- */

void live_pause(struct live *live)
{
    pthread_mutex_lock(&live->mutex);
    live->wants_pause = true;
    live->steps = 0;
    pthread_mutex_unlock(&live->mutex);
}

void live_resume(struct live *live)
{
    pthread_mutex_lock(&live->mutex);
    live->wants_pause = live->is_waiting = false;
    live->steps = 0;
    pthread_cond_broadcast(&live->changed);
    pthread_mutex_unlock(&live->mutex);
}

/* From a pause one iteration more; else the one at hand is the step. */
void live_step(struct live *live)
{
    pthread_mutex_lock(&live->mutex);
    live->steps += live->wants_pause;
    live->wants_pause = true;
    live->is_waiting = false; /* from here on it is seen to run */
    pthread_cond_broadcast(&live->changed);
    pthread_mutex_unlock(&live->mutex);
}

void live_stop(struct live *live)
{
    job_cancel(&live->job);
    pthread_mutex_lock(&live->mutex);
    live->wants_stop = true;
    live->is_waiting = false;
    pthread_cond_broadcast(&live->changed);
    pthread_mutex_unlock(&live->mutex);
}

/* --- looking --- */

static enum live_state find_state(struct live *live, enum job_state job)
{
    pthread_mutex_lock(&live->mutex);
    const enum live_state running = !live->is_iterating ? LIVE_PREPARING
                                    : live->is_waiting  ? LIVE_PAUSED
                                                        : LIVE_RUNNING;
    pthread_mutex_unlock(&live->mutex);
    switch (job) {
    case JOB_IDLE:
        return LIVE_IDLE;
    case JOB_RUNNING:
        return running;
    default:
        return job == JOB_FAILED ? LIVE_FAILED : LIVE_DONE;
    }
}

enum live_state live_poll(struct live *live, struct job_report *report)
{
    const enum job_state job = job_poll(&live->job);
    if (report != NULL) {
        job_get_report(&live->job, report);
    }
    return find_state(live, job);
}

enum live_state live_wait(struct live *live, struct job_report *report)
{
    if (job_poll(&live->job) == JOB_RUNNING) {
        pthread_mutex_lock(&live->mutex);
        while (!live->is_waiting && !live->has_ended) {
            pthread_cond_wait(&live->changed, &live->mutex);
        }
        const bool has_ended = live->has_ended;
        pthread_mutex_unlock(&live->mutex);
        if (has_ended) {
            (void)job_wait(&live->job);
        }
    }
    return live_poll(live, report);
}

lr_grid live_grid(const struct live *live)
{
    return live->grid;
}

bool live_is_on_device(struct live *live, char why[LIVE_WHY])
{
    pthread_mutex_lock(&live->mutex);
    const bool is_on_device = live->is_on_device;
    memcpy(why, live->why, sizeof(live->why));
    pthread_mutex_unlock(&live->mutex);
    return is_on_device;
}

void live_backend(struct live *live, char name[LIVE_BACKEND])
{
    pthread_mutex_lock(&live->mutex);
    snprintf(name, LIVE_BACKEND, "%s", live->backend[0] != '\0' ? live->backend : "none");
    pthread_mutex_unlock(&live->mutex);
}

bool live_copy_image(struct live *live, int64_t *serial, float *values)
{
    pthread_mutex_lock(&live->mutex);
    const bool is_newer = live->has_image && live->serial > *serial;
    if (is_newer) {
        memcpy(values, live->image, (size_t)lr_grid_num_voxels(&live->grid) * sizeof(*live->image));
        *serial = live->serial;
    }
    pthread_mutex_unlock(&live->mutex);
    return is_newer;
}

int live_copy_history(struct live *live, int first, struct live_iteration *iterations, int capacity)
{
    pthread_mutex_lock(&live->mutex);
    const int total = live->num_iterations;
    for (int n = first; n < total && n - first < capacity; n++) {
        iterations[n - first] = live->history[n];
    }
    pthread_mutex_unlock(&live->mutex);
    return total;
}
