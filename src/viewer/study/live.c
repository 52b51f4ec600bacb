/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/live.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "viewer/study/live_work.h"
#include "viewer/study/operators.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct live {
    struct job job;
    struct live_work work; /* used only by the job while it runs */
    lr_grid grid;

    pthread_mutex_t mutex;  /* protects all members below */
    pthread_cond_t changed; /* signals changes of the requests and of the state */
    bool wants_pause, wants_stop;
    int steps;         /* iterations to do while paused */
    bool is_waiting;   /* the thread is paused after an iteration */
    bool is_iterating; /* true after the first iteration */
    bool has_ended;
    bool is_on_device, has_image;
    char why[LIVE_WHY], backend[LIVE_BACKEND];
    float *image; /* [num_voxels] */
    int64_t serial;
    struct live_iteration *history;
    struct live_round *rounds; /* [num_iterations] if guesses are composed */
    int num_iterations;
    int64_t capacity, rounds_capacity;
    float *guesses; /* [work.request.guesses][num_voxels] for guesses whose images exist; else NULL */
    int64_t guess_serials[LIVE_MOST_GUESSES];
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
    if (live == NULL) return;
    live_control(live, LIVE_STOP);
    job_finish(&live->job);
    live_work_finish(&live->work);
    pthread_cond_destroy(&live->changed);
    pthread_mutex_destroy(&live->mutex);
    free(live->image);
    free(live->history);
    free(live->rounds);
    free(live->guesses);
    free(live);
}

/* --- on the job's thread --- */

/* Stores the values of a guess for the window. The caller holds the mutex. */
static void put_guess(struct live *live, int guess, const float *values)
{
    const int64_t count = lr_grid_num_voxels(&live->grid);
    memcpy(live->guesses + guess * count, values, (size_t)count * sizeof(*values));
    live->guess_serials[guess]++;
}

/* Called after each iteration of a guess, which is the image of one rank alone. Stores the image for display. */
static lr_status after_guess(void *user, int guess, const lr_iteration *done)
{
    struct live *live = user;
    lr_vector host = lr_vector_of_floats(live->work.image, done->image->count);
    LR_TRY(lr_vector_copy(done->image, &host));
    pthread_mutex_lock(&live->mutex);
    put_guess(live, guess, live->work.image);
    const bool stops = live->wants_stop;
    pthread_mutex_unlock(&live->mutex);
    return stops ? LR_CANCELLED : LR_OK;
}

/* Shows the result of an iteration, then pauses or stops if requested. composed: NULL = guesses are not composed. */
static lr_status end_iteration(struct live *live, struct live_iteration *iteration, const lr_vector *image,
                               const lr_operator *op, const lr_composition *composed)
{
    struct live_work *work = &live->work;
    const int64_t num_voxels = lr_grid_num_voxels(&live->grid);
    const int num = live->num_iterations;
    lr_status status = LR_OK;
    lr_vector_sums own, other, sums;

    /* The distance to the reference is computed at the image's place. NaN: no reference, or it is zero. */
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

    /* The image goes to the window's texture, or else to the host. */
    if (is_shown) {
        LR_TRY(lr_vector_add_up(image, NULL, &sums));
        LR_TRY(handover_write(work->request.handover, image, sums.largest));
    } else {
        lr_vector host = lr_vector_of_floats(work->image, image->count);
        LR_TRY(lr_vector_copy(image, &host));
    }
    pthread_mutex_lock(&live->mutex);
    live->is_on_device = is_shown;
    memcpy(live->why, work->why, sizeof(live->why));
    snprintf(live->backend, sizeof(live->backend), "%s", lr_operator_get_info(op)->backend);

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

    /* A pause follows the iteration, unless it is the last one. */
    const int wanted = work->request.iterations;
    if (status == LR_OK && (wanted == 0 || iteration->number < wanted)) {
        while (live->wants_pause && live->steps == 0 && !live->wants_stop) {
            live->is_waiting = true;
            pthread_cond_broadcast(&live->changed);
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

static lr_status run(void *user, const lr_log *log, const lr_progress *progress)
{
    struct live *live = user;
    const lr_status status = live_work_run(&live->work, log, progress);
    pthread_mutex_lock(&live->mutex);
    if (status == LR_OK && live->is_on_device) {
        memcpy(live->image, live->work.image, (size_t)lr_grid_num_voxels(&live->grid) * sizeof(*live->image));
        live->serial++;
        live->has_image = true;
    }
    live->has_ended = true;
    pthread_cond_broadcast(&live->changed);
    pthread_mutex_unlock(&live->mutex);
    return status;
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
                        "%d guesses of %d iterations: take 2 to %d guesses, 0 for none, of 1 "
                        "iteration or more",
                        request->guesses, request->local_iterations, LIVE_MOST_GUESSES);
    }
    if (request->guesses > 1 && request->family != LIVE_CORRESPONDENCE) {
        return lr_error(log, LR_USAGE,
                        "guesses are composed of the family correspondence: choose it, or no "
                        "guesses");
    }

    const bool is_direct = request->family == LIVE_DIRECT;
    if (is_direct && request->histo == NULL && study->image == NULL) {
        return lr_error(log, LR_USAGE,
                        "there are no histo-images, and no image to draw their counts from: "
                        "open one of them");
    }
    if (!is_direct && study->scanner == NULL) return lr_error(log, LR_USAGE, "there is no scanner: open one first");
    if (request->family == LIVE_LISTMODE && !study->data_are_events && study->image == NULL) {
        return lr_error(log, LR_USAGE,
                        "there is no list mode, and no image to draw events from: open one of "
                        "them");
    }
    if (!is_direct && study->data == NULL && study->image == NULL)
        return lr_error(log, LR_USAGE, "there are no data, and no image to simulate them from: open one of them");
    if (request->simulates && study->image == NULL)
        return lr_error(log, LR_USAGE, "there is no image to simulate from: open one first");

    const lr_grid grid = live_grid_for(study, request);
    for (int k = 0; k < 3 && request->reference != NULL; k++) {
        const lr_grid *other = &request->reference->grid;
        const double slack_mm = 1e-3 * other->voxel_mm[k];
        const bool is_same = other->size[k] == grid.size[k] &&
                             fabs(other->voxel_mm[k] - grid.voxel_mm[k]) * other->size[k] < slack_mm &&
                             fabs(other->origin_mm[k] - grid.origin_mm[k]) < slack_mm;
        if (!is_same) return lr_error(log, LR_USAGE, "the reference image is on another grid than the reconstruction");
    }

    live_work_finish(work);
    if (request->reference != NULL) {
        const lr_image *image = request->reference;
        work->reference = lr_image_create(&image->grid, log);
        if (work->reference == NULL) return LR_FAILED;
        const size_t bytes = (size_t)lr_grid_num_voxels(&image->grid) * sizeof(*image->values);
        memcpy(work->reference->values, image->values, bytes);
    }
    work->study = study_view_hold(study);
    work->study.grid = live_grid_for(study, request);
    work->request = *request;
    work->request.reference = NULL; /* both may be freed before the job ends */
    work->request.histo = NULL;
    work->request.backend = backend_name(request->backend, "auto");
    work->request.simulates = !live_is_measured(study, request);
    if (request->family == LIVE_DIRECT) LR_TRY(live_direct_take(&work->direct, request, log));
    work->iteration = after_iteration;
    work->guessed = after_guess;
    work->composed = after_composition;
    work->user = live;

    /* Frees the last reconstruction. The mutex is not needed, because no job is running. */
    free(live->image);
    free(live->guesses);
    live->grid = work->study.grid;
    const int64_t num_voxels = lr_grid_num_voxels(&live->grid);
    const int guesses = request->guesses > 1 ? request->guesses : 0;
    live->image = lr_alloc(num_voxels, sizeof(*live->image), "an image", log);
    live->guesses = guesses > 0 ? lr_alloc(guesses * num_voxels, sizeof(*live->guesses), "guesses", log) : NULL;
    memset(live->guess_serials, 0, sizeof(live->guess_serials));
    live->num_iterations = 0;
    live->is_on_device = live->has_image = false;
    live->why[0] = live->backend[0] = '\0';
    live->wants_stop = live->is_waiting = live->is_iterating = live->has_ended = false;
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
    case LIVE_STEP: /* if paused, runs one more iteration; if running, pauses after the current one */
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

enum live_state live_wait(struct live *live, struct job_report *report)
{
    if (job_poll(&live->job) == JOB_RUNNING) {
        pthread_mutex_lock(&live->mutex);
        while (!live->is_waiting && !live->has_ended) pthread_cond_wait(&live->changed, &live->mutex);
        const bool has_ended = live->has_ended;
        pthread_mutex_unlock(&live->mutex);
        if (has_ended) (void)job_wait(&live->job);
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

bool live_copy_guess(struct live *live, int guess, int64_t *serial, float *values)
{
    const int64_t count = lr_grid_num_voxels(&live->grid);
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

int live_copy_rounds(struct live *live, int first, struct live_round *rounds, int capacity)
{
    pthread_mutex_lock(&live->mutex);
    const int total = live->guesses != NULL ? live->num_iterations : 0;
    for (int n = first; n < total && n - first < capacity; n++) rounds[n - first] = live->rounds[n];
    pthread_mutex_unlock(&live->mutex);
    return total;
}

int live_copy_history(struct live *live, int first, struct live_iteration *iterations, int capacity)
{
    pthread_mutex_lock(&live->mutex);
    const int total = live->num_iterations;
    for (int n = first; n < total && n - first < capacity; n++) iterations[n - first] = live->history[n];
    pthread_mutex_unlock(&live->mutex);
    return total;
}
