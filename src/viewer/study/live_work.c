/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/live_work.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "viewer/study/operators.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ITERATIONS = 1000000 }; /* limit of lr_recon */
enum { USUAL_ITERATIONS = 20 };     /* iterations that a person usually watches before stopping */
enum { USUAL_LOCAL = 2 };           /* default iterations of a guess before composition */

static const char *find_backend(const char *wished, const char *const *names)
{
    for (int k = 0; wished != NULL && names[k] != NULL; k++)
        if (strcmp(names[k], wished) == 0) return names[k];
    return names[0];
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
    free(work->guesses);
    free(work->guess_params);
    work->guesses = NULL;
    work->guess_params = NULL;
    work->num_guesses = 0;
}

void live_work_finish(struct live_work *work)
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

/* --- family direct --- */

lr_status live_direct_take(struct live_direct *direct, const struct live_request *request, const lr_log *log)
{
    static const char *const names[] = {"auto", "cpu", "compute", "cuda", NULL};
    const lr_histo_images *histo = request->simulates ? NULL : request->histo;
    lr_view_set set;
    *direct = (struct live_direct){.kernel = request->kernel, .backend = find_backend(request->backend, names)};
    if (histo == NULL) LR_TRY(lr_view_set_complete(&request->views, &set, log));
    direct->num_views = histo != NULL ? histo->num_views : lr_view_set_count(&set);
    direct->views = lr_alloc(direct->num_views, sizeof(*direct->views), "views", log);
    if (direct->views == NULL) return LR_FAILED;
    for (int k = 0; k < direct->num_views; k++)
        direct->views[k] = histo != NULL ? histo->views[k] : lr_view_set_at(&set, k);
    if (histo == NULL) return LR_OK;

    const int64_t count = histo->num_views * lr_grid_num_voxels(&histo->grid);
    direct->data = lr_lor_data_create(&(lr_lors){.count = count}, log);
    if (direct->data == NULL) return LR_FAILED;
    memcpy(direct->data->values, histo->values, (size_t)count * sizeof(*histo->values));
    return LR_OK;
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
    const bool has_mu = work->study.mu != NULL && !request->without_mu;
    params.lors = work->study.lors;
    params.grid = &work->study.grid;
    params.backend = params.shared != NULL ? "compute" : request->backend;
    params.mode = request->mode;
    params.rays = request->mode == LR_MODE_SAMPLED ? request->rays : 0;
    params.mu = has_mu ? work->study.mu : NULL;
    params.mu_steps = has_mu ? request->mu_steps : 0;
    params.store = params.shared != NULL ? LR_STORE_NO : request->store;
    params.projections = 1.0 + 2.0 * (request->iterations > 0 ? request->iterations : USUAL_ITERATIONS);
    if (request->samples > 0) lr_grid_split_samples(&work->study.grid, request->samples, params.samples);
    return params;
}

/* Makes the operator of the family. errors: LR_CANCELLED; those of its constructor, logged. */
static lr_status create_of_family(struct live_work *work, lr_operator_params params, lr_operator **op)
{
    static const char *const listmode_names[] = {"auto", "cpu", "native", "compute", "cuda", NULL};
    const struct live_request *request = &work->request;
    struct live_listmode *listmode = &work->listmode;
    const struct live_direct *direct = &work->direct;
    if (request->family == LIVE_CORRESPONDENCE) {
        params = settle_operator(work, params);
        return operator_create(&params, op);
    }

    /* The events are read from the study's data, or drawn as photon pairs from its image. Only prompts in coincidence
     * are kept, because the sensitivity counts no others. */
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
        listmode->has_tof = list->info.has_tof;
        if (kept == 0) return lr_error(params.log, LR_BAD_INPUT, "there are no prompts in coincidence");
    }

    LR_TRY(lr_progress_report(params.progress, "preparing the projector", 0, 1));
    if (request->family == LIVE_DIRECT) {
        *op = lr_direct_create(&(lr_direct_params){.grid = &work->study.grid,
                                                   .views = direct->views,
                                                   .num_views = direct->num_views,
                                                   .kernel = direct->kernel,
                                                   .backend = direct->backend,
                                                   .shared = params.shared,
                                                   .log = params.log,
                                                   .progress = params.progress});
    } else { /* each subset has a range of events */
        lr_listmode_params own = {.lors = work->study.lors,
                                  .grid = &work->study.grid,
                                  .events = listmode->list->events,
                                  .count = listmode->list->count,
                                  .info = listmode->has_tof ? &listmode->list->info : NULL,
                                  .num_ranges = request->subsets,
                                  .kernel = request->elements,
                                  .backend = find_backend(request->backend, listmode_names),
                                  .threads = params.threads,
                                  .log = params.log,
                                  .progress = params.progress};
        if (request->elements == LR_LISTMODE_EXACT && request->samples > 0)
            lr_grid_split_samples(&work->study.grid, request->samples, own.samples);
        *op = lr_listmode_create(&own);
    }
    return *op != NULL ? LR_OK : LR_FAILED;
}

/* --- data --- */

/* Draws the data from the study's image. If there is no other reference, that image, scaled to the counts, is the
 * reference. */
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
    params.iteration = work->iteration;
    params.user = work->user;
    if (family == LIVE_LISTMODE) {
        const lr_lors *layout = lr_operator_get_info(params.op)->lors;
        const lr_event_list *list = listmode->list;
        const int bins = list->info.num_tof_bins;
        listmode->weights = lr_lor_data_create(layout, params.log);
        if (listmode->weights == NULL) return LR_FAILED;
        for (int64_t k = 0; k < list->count; k++) listmode->weights->values[k] = list->events[k].weight;

        /* The randoms of each event's LOR are spread evenly over the time-of-flight window. */
        if (delayeds != NULL && delayeds->count > 0 && listmode->has_tof && bins < 1) {
            lr_warn(params.log, "the width of the coincidence window is not known: randoms are left out");
        } else if (delayeds != NULL && delayeds->count > 0) {
            const float *edges_mm = list->info.tof_edges_mm;
            const double window_mm = listmode->has_tof ? (double)edges_mm[bins] - (double)edges_mm[0] : 1.0;
            lr_randoms *randoms = lr_randoms_estimate(work->study.lors, delayeds, params.log);
            listmode->additive = lr_lor_data_create(layout, params.log);
            for (int64_t k = 0; k < list->count && randoms != NULL && listmode->additive != NULL; k++) {
                const lr_crystal_product *product = &randoms->product;
                const int32_t *crystals = list->events[k].crystals;
                listmode->additive->values[k] =
                    (float)(product->scale * product->values[crystals[0]] * product->values[crystals[1]] / window_mm);
            }
            listmode->additive_sum = randoms != NULL ? randoms->delayeds : 0.0;
            const bool is_made = randoms != NULL && listmode->additive != NULL;
            lr_randoms_destroy(randoms);
            if (!is_made) return LR_FAILED;
        }
        measured = listmode->weights;
        if (listmode->additive != NULL) {
            additive = lr_lor_data_vector(listmode->additive);
            params.additive = &additive;
        }
        params.additive_sum = listmode->additive_sum;
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

static lr_status after_guess(void *user, const lr_iteration *done)
{
    const struct live_guess *guess = user;
    return guess->work->guessed(guess->work->user, guess->number, done);
}

/* Takes the guess's share of the LORs and their data, and makes a projector for it. All guesses use the backend of
 * the first. guess_of: [num_pairs] */
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
    if (request->simulates) { /* a projector of all LORs exists only while their counts are drawn */
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
                                   .composed = work->composed,
                                   .user = work->user};
    lr_vector image = lr_vector_of_floats(work->image, lr_grid_num_voxels(&work->study.grid));
    return lr_compose(&all, &image);
}

/* --- preparing and running --- */

lr_status live_work_run(struct live_work *work, const lr_log *log, const lr_progress *progress)
{
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
        /* The operator is made on the device if the projector has a place on it, else on the host. */
        const bool is_direct = request->family == LIVE_DIRECT;
        const char *obstacle = NULL;
        if (request->family == LIVE_LISTMODE)
            obstacle = "list mode computes beside the window, and";
        else if (!is_direct && work->study.mu != NULL && !request->without_mu)
            obstacle = "a mu-map is open, and with absorption along the lines";
        if (request->handover != NULL && obstacle == NULL) {
            lr_operator_params on_device = params;
            on_device.shared = handover_context(request->handover);
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
    return status;
}
