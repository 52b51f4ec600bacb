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

/* --- family direct --- */

static const char *direct_backend(const char *wished)
{
    static const char *const names[] = {"auto", "cpu", "compute", "cuda"};
    for (size_t k = 0; wished != NULL && k < sizeof(names) / sizeof(names[0]); k++)
        if (strcmp(names[k], wished) == 0) return names[k];
    return names[0];
}

static lr_status take_views(struct live_direct *direct, const lr_view *views, const lr_log *log)
{
    direct->views = lr_alloc(direct->num_views, sizeof(*direct->views), "views", log);
    if (direct->views == NULL) return LR_FAILED;
    if (views != NULL) memcpy(direct->views, views, (size_t)direct->num_views * sizeof(*direct->views));
    return LR_OK;
}

static lr_status take_histo(struct live_direct *direct, const lr_histo_images *histo, const lr_log *log)
{
    const int64_t count = histo->num_views * lr_grid_num_voxels(&histo->grid);
    direct->num_views = histo->num_views;
    LR_TRY(take_views(direct, histo->views, log));
    direct->data = lr_lor_data_create(&(lr_lors){.count = count}, log);
    if (direct->data == NULL) return LR_FAILED;
    memcpy(direct->data->values, histo->values, (size_t)count * sizeof(*histo->values));
    return LR_OK;
}

static lr_status make_views(struct live_direct *direct, const lr_view_set *wished, const lr_log *log)
{
    lr_view_set set;
    LR_TRY(lr_view_set_complete(wished, &set, log));
    direct->num_views = lr_view_set_count(&set);
    LR_TRY(take_views(direct, NULL, log));
    for (int k = 0; k < direct->num_views; k++) direct->views[k] = lr_view_set_at(&set, k);
    return LR_OK;
}

lr_status live_direct_take(struct live_direct *direct, const struct live_request *request, const lr_log *log)
{
    *direct = (struct live_direct){.kernel = request->kernel, .backend = direct_backend(request->backend)};
    return request->histo != NULL && !request->simulates ? take_histo(direct, request->histo, log)
                                                         : make_views(direct, &request->views, log);
}

static void live_direct_finish(struct live_direct *direct)
{
    lr_lor_data_destroy(direct->data);
    free(direct->views);
    *direct = (struct live_direct){0};
}

static lr_status live_direct_create(const struct live_direct *direct, const lr_operator_params *params,
                                    lr_operator **op)
{
    LR_TRY(lr_progress_report(params->progress, "preparing the projector", 0, 1));
    *op = lr_direct_create(&(lr_direct_params){.grid = params->grid,
                                               .views = direct->views,
                                               .num_views = direct->num_views,
                                               .kernel = direct->kernel,
                                               .backend = direct->backend,
                                               .shared = params->shared,
                                               .log = params->log,
                                               .progress = params->progress});
    return *op != NULL ? LR_OK : LR_FAILED;
}

/* --- family listmode --- */

static void live_listmode_finish(struct live_listmode *listmode)
{
    lr_event_list_destroy(listmode->list);
    lr_lor_data_destroy(listmode->weights);
    lr_lor_data_destroy(listmode->additive);
    *listmode = (struct live_listmode){0};
}

/* --- events --- */

/* Prompts in coincidence, as the sensitivity counts them. */
static void keep_prompts(const lr_lors *lors, lr_event_list *list)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < list->count; k++) {
        const lr_event *event = &list->events[k];
        const int64_t lor = lr_lors_number(lors, event->crystals[0], event->crystals[1]);
        if (!event->is_delayed && lor >= 0 && lr_lors_in_coincidence(lors, lor)) list->events[kept++] = *event;
    }
    list->count = kept;
}

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

static lr_status draw_pairs(struct live_listmode *listmode, const struct study_view *study,
                            const struct live_request *request, const lr_operator_params *params)
{
    struct drawing drawing = {.log = params->log};
    const lr_event_sink sink = {.take = append, .user = &drawing};
    const lr_photon_params photons = {.lors = study->lors,
                                      .activity = study->image,
                                      .count = request->counts > 0 ? (int64_t)request->counts : INT64_C(1000000),
                                      .seed = request->seed,
                                      .log = params->log,
                                      .progress = params->progress};
    drawing.list = lr_alloc(1, sizeof(*drawing.list), "events", params->log);
    listmode->list = drawing.list;
    return drawing.list != NULL ? lr_events_from_activity(&photons, &sink, &drawing.list->info) : LR_FAILED;
}

static lr_status read_events(struct live_listmode *listmode, const struct study_view *study, const lr_log *log)
{
    struct lr_watched_log reason;
    lr_log_watch(&reason, log);
    const lr_events_source source = {.path = study->data_path, .scanner = study->scanner, .log = &reason.log};
    listmode->list = lr_event_list_read(&source);
    return listmode->list != NULL ? LR_OK : reason.status;
}

static lr_status live_listmode_take(struct live_listmode *listmode, const struct study_view *study,
                                    const struct live_request *request, const lr_operator_params *params)
{
    live_listmode_finish(listmode);
    LR_TRY(lr_progress_report(params->progress, "reading the events", 0, 1));
    LR_TRY(request->simulates ? draw_pairs(listmode, study, request, params)
                              : read_events(listmode, study, params->log));
    keep_prompts(study->lors, listmode->list);
    listmode->has_tof = listmode->list->info.has_tof;
    return listmode->list->count > 0 ? LR_OK
                                     : lr_error(params->log, LR_BAD_INPUT, "there are no prompts in coincidence");
}

/* --- the operator --- */

static const char *listmode_backend(const char *wished)
{
    static const char *const names[] = {"auto", "cpu", "native", "compute", "cuda"};
    for (size_t k = 0; wished != NULL && k < sizeof(names) / sizeof(names[0]); k++)
        if (strcmp(names[k], wished) == 0) return names[k];
    return names[0];
}

static lr_status live_listmode_create(struct live_listmode *listmode, const struct study_view *study,
                                      const struct live_request *request, const lr_operator_params *params,
                                      lr_operator **op)
{
    lr_listmode_params own = {.lors = study->lors,
                              .grid = &study->grid,
                              .events = listmode->list->events,
                              .count = listmode->list->count,
                              .info = listmode->has_tof ? &listmode->list->info : NULL,
                              .num_ranges = request->subsets,
                              .kernel = request->elements,
                              .backend = listmode_backend(request->backend),
                              .threads = params->threads,
                              .log = params->log,
                              .progress = params->progress};
    if (request->elements == LR_LISTMODE_EXACT && request->samples > 0)
        lr_grid_split_samples(&study->grid, request->samples, own.samples);
    LR_TRY(lr_progress_report(params->progress, "preparing the projector", 0, 1));
    *op = lr_listmode_create(&own);
    return *op != NULL ? LR_OK : LR_FAILED;
}

/* --- data --- */

/* Randoms of each event's LOR, spread evenly over the window of time of flight. */
static lr_status spread_randoms(struct live_listmode *listmode, const struct study_view *study, const lr_lors *layout,
                                const lr_log *log)
{
    const lr_events_info *info = &listmode->list->info;
    const int bins = info->num_tof_bins;
    if (study->delayeds == NULL || study->delayeds->count == 0) return LR_OK;
    if (listmode->has_tof && bins < 1) {
        lr_warn(log, "the width of the coincidence window is not known: randoms are left out");
        return LR_OK;
    }
    const double window_mm = listmode->has_tof ? (double)info->tof_edges_mm[bins] - (double)info->tof_edges_mm[0] : 1.0;
    lr_randoms *randoms = lr_randoms_estimate(study->lors, study->delayeds, log);
    listmode->additive = lr_lor_data_create(layout, log);
    if (randoms == NULL || listmode->additive == NULL) {
        lr_randoms_destroy(randoms);
        return LR_FAILED;
    }
    const lr_crystal_product *product = &randoms->product;
    for (int64_t k = 0; k < listmode->list->count; k++) {
        const int32_t *crystals = listmode->list->events[k].crystals;
        listmode->additive->values[k] =
            (float)(product->scale * product->values[crystals[0]] * product->values[crystals[1]] / window_mm);
    }
    listmode->additive_sum = randoms->delayeds;
    lr_randoms_destroy(randoms);
    return LR_OK;
}

static lr_status live_listmode_data(struct live_listmode *listmode, const struct study_view *study,
                                    lr_recon_params *recon)
{
    const lr_lors *layout = lr_operator_get_info(recon->op)->lors;
    listmode->weights = lr_lor_data_create(layout, recon->log);
    if (listmode->weights == NULL) return LR_FAILED;
    for (int64_t k = 0; k < listmode->list->count; k++) listmode->weights->values[k] = listmode->list->events[k].weight;
    LR_TRY(spread_randoms(listmode, study, layout, recon->log));
    recon->data = listmode->weights;
    recon->additive = listmode->additive;
    recon->additive_sum = listmode->additive_sum;
    return LR_OK;
}

/* --- guesses that are composed: LORs, data and projector of each --- */

/* Lives until live_compose_finish. */
struct live_compose_setup {
    int count;
    const lr_lors *lors;         /* all */
    const lr_lor_data *data;     /* of all */
    const lr_randoms *randoms;   /* of all; NULL = none */
    lr_operator_params operator; /* of each guess, but for its LORs */
    lr_recon_params recon;       /* of each guess, but for operator, data and additive term */
    /* After an iteration of a guess by itself. */
    lr_status (*iteration)(void *user, int guess, const lr_iteration *done);
    void *user;
};

/* --- what a guess tells --- */

static bool report_guess(void *user, const char *what, double done, double total)
{
    const struct live_guess *guess = user;
    char text[256];
    snprintf(text, sizeof(text), "guess %d of %d: %s", guess->number + 1, guess->compose->count, what);
    return lr_progress_report(guess->compose->progress, text, done, total) == LR_OK;
}

static lr_status after_guess(void *user, const lr_iteration *done)
{
    const struct live_guess *guess = user;
    return guess->compose->iteration(guess->compose->user, guess->number, done);
}

/* --- its share of the LORs --- */

static lr_status check_count(const struct live_compose_setup *setup)
{
    return setup->count <= setup->lors->num_pairs
               ? LR_OK
               : lr_error(setup->operator.log, LR_USAGE,
                          "%d guesses: each has whole pairs of modules, of which %s has %lld in "
                          "coincidence; take at most so many",
                          setup->count, setup->lors->scanner->name, (long long)setup->lors->num_pairs);
}

/* guess_of: [num_pairs] */
static lr_status take_lors(struct live_guess *guess, const struct live_compose_setup *setup, const int32_t *guess_of)
{
    const lr_log *log = setup->operator.log;
    const int64_t num_pairs = setup->lors->num_pairs;
    int32_t *pairs = lr_alloc(num_pairs, sizeof(*pairs), "pairs of a guess", log);
    lr_selection own = {.pairs = pairs};
    for (int64_t pair = 0; pairs != NULL && pair < num_pairs; pair++)
        if (guess_of[pair] == guess->number) pairs[own.num_pairs++] = (int32_t)pair;
    guess->lors = pairs != NULL ? lr_lors_create_part(setup->lors, &own, log) : NULL;
    free(pairs);
    guess->data = guess->lors != NULL ? lr_lor_data_take(setup->data, setup->lors, guess->lors, log) : NULL;
    return guess->data != NULL ? LR_OK : LR_FAILED;
}

static lr_status open_guess(struct live_compose *compose, const struct live_compose_setup *setup,
                            const int32_t *guess_of, int k)
{
    struct live_guess *guess = &compose->guesses[k];
    lr_operator_params params = setup->operator;
    lr_recon_params *recon = &compose->params[k];
    *guess = (struct live_guess){.compose = compose, .number = k, .progress = {report_guess, guess}};
    LR_TRY(take_lors(guess, setup, guess_of));
    params.lors = guess->lors;
    params.progress = &guess->progress;
    params.backend = k > 0 ? lr_operator_get_info(compose->guesses[0].op)->backend : params.backend;
    LR_TRY(operator_create(&params, &guess->op));
    *recon = setup->recon;
    recon->op = guess->op;
    recon->data = guess->data;
    recon->progress = &guess->progress;
    recon->iteration = after_guess;
    recon->user = guess;
    if (setup->randoms != NULL) {
        guess->randoms = setup->randoms->product;
        guess->randoms.lors = guess->lors;
        recon->additive_source = lr_crystal_product_source(&guess->randoms);
    }
    return LR_OK;
}

static lr_status live_compose_open(struct live_compose *compose, const struct live_compose_setup *setup)
{
    const lr_log *log = setup->operator.log;
    *compose =
        (struct live_compose){.progress = setup->operator.progress, .iteration = setup->iteration, .user = setup->user};
    LR_TRY(check_count(setup));
    compose->guesses = lr_alloc(setup->count, sizeof(*compose->guesses), "guesses", log);
    compose->params = lr_alloc(setup->count, sizeof(*compose->params), "guesses", log);
    int32_t *guess_of = lr_alloc(setup->lors->num_pairs, sizeof(*guess_of), "pairs of guesses", log);
    lr_status status = compose->guesses != NULL && compose->params != NULL && guess_of != NULL
                           ? lr_osem_subsets(setup->lors, setup->count, guess_of, log)
                           : LR_FAILED;
    compose->count = status == LR_OK ? setup->count : 0;
    for (int k = 0; k < setup->count && status == LR_OK; k++) status = open_guess(compose, setup, guess_of, k);
    free(guess_of);
    return status;
}

static void live_compose_finish(struct live_compose *compose)
{
    for (int k = 0; k < compose->count; k++) {
        struct live_guess *guess = &compose->guesses[k];
        lr_operator_destroy(guess->op);
        lr_lor_data_destroy(guess->data);
        lr_lors_destroy(guess->lors);
    }
    free(compose->guesses);
    free(compose->params);
    *compose = (struct live_compose){0};
}

/* --- the reconstruction --- */

enum { MOST_ITERATIONS = 1000000 }; /* of lr_recon */

void live_work_finish(struct live_work *work)
{
    lr_image_destroy(work->reference);
    lr_lor_data_destroy(work->simulated);
    lr_randoms_destroy(work->randoms);
    live_direct_finish(&work->direct);
    live_listmode_finish(&work->listmode);
    live_compose_finish(&work->compose);
    free(work->image);
    study_view_release(&work->study);
    *work = (struct live_work){0};
}

/* Iterations that a person watches before stopping. */
enum { USUAL = 20 };

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
    params.projections = 1.0 + 2.0 * (request->iterations > 0 ? request->iterations : USUAL);
    if (request->samples > 0) lr_grid_split_samples(&work->study.grid, request->samples, params.samples);
    return params;
}

static lr_status create_for(const struct live_work *work, lr_operator_params params, lr_operator **op)
{
    params = settle_operator(work, params);
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

static lr_status create_listmode(struct live_work *work, const lr_operator_params *params, lr_operator **op)
{
    LR_TRY(live_listmode_take(&work->listmode, &work->study, &work->request, params));
    return live_listmode_create(&work->listmode, &work->study, &work->request, params, op);
}

static lr_status create_of_family(struct live_work *work, lr_operator_params params, lr_operator **op)
{
    params.grid = &work->study.grid;
    return is_listmode(work) ? create_listmode(work, &params, op)
           : is_direct(work) ? live_direct_create(&work->direct, &params, op)
                             : create_for(work, params, op);
}

/* Why the image cannot stay on the device; NULL: it may. */
static const char *find_obstacle(const struct live_work *work)
{
    if (is_listmode(work)) return "list mode computes beside the window, and";
    if (!is_direct(work) && work->study.mu != NULL && !work->request.without_mu)
        return "a mu-map is open, and with absorption along the lines";
    return NULL;
}

/* On the device, where the projector has its place there. */
static lr_status try_device(struct live_work *work, lr_operator_params params)
{
    const char *obstacle = find_obstacle(work);
    if (obstacle == NULL) {
        params.shared = handover_context(work->request.handover);
        const lr_status status = create_of_family(work, params, &work->op);
        if (status == LR_CANCELLED) return status;
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
    if (work->request.handover != NULL) LR_TRY(try_device(work, params));
    return work->op != NULL ? LR_OK : create_of_family(work, params, &work->op);
}

/* --- simulated data --- */

static void scale(float *values, int64_t count, double factor)
{
    for (int64_t k = 0; k < count; k++) values[k] = (float)(factor * values[k]);
}

/* The image that data are drawn from, also to compare with. */
static lr_status take_truth(struct live_work *work, lr_image **truth, const lr_log *log)
{
    const lr_image *image = work->study.image;
    *truth = lr_image_create(&image->grid, log);
    if (*truth == NULL) return LR_FAILED;
    memcpy((*truth)->values, image->values, (size_t)lr_grid_num_voxels(&image->grid) * sizeof(*image->values));
    return LR_OK;
}

/* Brings expectation and truth to the counts asked for, and draws. */
static lr_status draw_counts(const struct live_work *work, lr_image *truth, const lr_log *log)
{
    const struct live_request *request = &work->request;
    lr_lor_data *data = work->simulated;
    double sum = 0;
    for (int64_t k = 0; k < data->count; k++) sum += data->values[k];
    if (!(sum > 0)) return lr_error(log, LR_BAD_INPUT, "the image reaches no LOR: nothing would be counted");
    if (request->counts > 0) {
        scale(data->values, data->count, request->counts / sum);
        scale(truth->values, lr_grid_num_voxels(&truth->grid), request->counts / sum);
    }
    return request->without_noise ? LR_OK : lr_poisson(data->values, data->count, request->seed, log);
}

static lr_status simulate(struct live_work *work, lr_operator *op, const lr_log *log)
{
    lr_image *truth = NULL;
    work->simulated = lr_lor_data_create(lr_operator_get_info(op)->lors, log);
    if (work->simulated == NULL) return LR_FAILED;
    LR_TRY(take_truth(work, &truth, log));
    const lr_vector image = lr_image_vector(truth);
    lr_vector values = lr_lor_data_vector(work->simulated);
    lr_status status = lr_operator_forward(op, NULL, &image, &values);
    if (status == LR_OK) status = draw_counts(work, truth, log);
    if (status == LR_OK && work->reference == NULL) {
        work->reference = truth;
        truth = NULL;
    }
    lr_image_destroy(truth);
    return status;
}

/* --- the reconstruction --- */

/* Expected randoms, where there are delayed coincidences to estimate them from. */
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

static lr_status simulate_counts(struct live_work *work, const lr_recon_params *params)
{
    LR_TRY(lr_progress_report(params->progress, "simulating the measurement", 0, 1));
    return simulate(work, params->op, params->log);
}

static lr_recon_params settle_recon(const struct live_work *work, lr_recon_params params)
{
    params.iterations = work->request.iterations > 0 ? work->request.iterations : MOST_ITERATIONS;
    params.subsets = work->request.subsets;
    params.algorithm = work->request.algorithm;
    if (params.algorithm == LR_ALGORITHM_RAMLA) {
        params.relaxation = work->request.relaxation;
        params.relaxation_fall = work->request.relaxation_fall;
        params.own_steps = !is_direct(work);
    }
    return params;
}

static lr_status reconstruct(struct live_work *work, lr_recon_params params)
{
    if (work->request.simulates && !is_listmode(work)) LR_TRY(simulate_counts(work, &params));
    const lr_lor_data *measured = is_direct(work) ? work->direct.data : work->study.data;
    params = settle_recon(work, params);
    params.data = work->simulated != NULL ? work->simulated : measured;
    params.iteration = work->iteration;
    params.user = work->user;
    LR_TRY(is_listmode(work) ? live_listmode_data(&work->listmode, &work->study, &params)
                             : estimate_randoms(work, &params, params.log));
    lr_vector image = lr_vector_of_floats(work->image, lr_grid_num_voxels(&work->study.grid));
    return lr_recon(&params, &image);
}

/* --- guesses, composed --- */

static bool is_composed(const struct live_work *work)
{
    return work->request.guesses > 1;
}

/* All LORs have a projector for as long as their counts are drawn. */
static lr_status find_counts(struct live_work *work, const lr_operator_params *params)
{
    lr_recon_params recon = {.log = params->log, .progress = params->progress};
    if (work->request.simulates) {
        lr_operator_params whole = settle_operator(work, *params);
        whole.store = LR_STORE_NO;
        LR_TRY(operator_create(&whole, &work->op));
        recon.op = work->op;
        LR_TRY(simulate_counts(work, &recon));
        lr_operator_destroy(work->op);
        work->op = NULL;
    }
    return estimate_randoms(work, &recon, params->log);
}

static lr_status compose(struct live_work *work, const lr_operator_params *params)
{
    enum { USUAL_LOCAL = 2 };
    const int wanted = work->request.local_iterations;
    const lr_recon_params recon = {.log = params->log};
    LR_TRY(find_counts(work, params));
    const struct live_compose_setup setup = {.count = work->request.guesses,
                                             .lors = work->study.lors,
                                             .data = work->simulated != NULL ? work->simulated : work->study.data,
                                             .randoms = work->randoms,
                                             .operator= settle_operator(work, *params),
                                             .recon = settle_recon(work, recon),
                                             .iteration = work->guessed,
                                             .user = work->user};
    LR_TRY(live_compose_open(&work->compose, &setup));
    const lr_compose_params all = {.guesses = work->compose.params,
                                   .num_guesses = work->compose.count,
                                   .local_iterations = wanted > 0 ? wanted : USUAL_LOCAL,
                                   .composed = work->composed,
                                   .user = work->user};
    lr_vector image = lr_vector_of_floats(work->image, lr_grid_num_voxels(&work->study.grid));
    return lr_compose(&all, &image);
}

static lr_status run_composed(struct live_work *work, const lr_operator_params *params)
{
    snprintf(work->why, sizeof(work->why), "guesses are composed on the host, where the image is");
    const lr_status status = compose(work, params);
    live_compose_finish(&work->compose);
    return status;
}

lr_status live_work_run(struct live_work *work, const lr_log *log, const lr_progress *progress)
{
    const lr_operator_params params = {.log = log, .progress = progress};
    work->log = log;
    work->image = lr_alloc(lr_grid_num_voxels(&work->study.grid), sizeof(*work->image), "an image", log);
    if (work->image == NULL) return LR_FAILED;
    lr_status status = is_composed(work) ? run_composed(work, &params) : create_operator(work, params);
    if (status == LR_OK && !is_composed(work)) {
        const lr_recon_params recon = {.op = work->op, .log = log, .progress = progress};
        status = reconstruct(work, recon);
    }
    if (work->there.storage != NULL) lr_vector_destroy(&work->there);
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
        LR_TRY(lr_vector_create(
            &(lr_vector_params){
                .place = image->place, .count = reference.count, .name = "the image to compare with", .log = work->log},
            &work->there));
        LR_TRY(lr_vector_copy(&reference, &work->there));
    }
    return LR_OK;
}

static lr_status compare(struct live_work *work, const lr_vector *image, double *difference)
{
    lr_vector_sums own, other;
    *difference = NAN;
    if (work->reference == NULL) return LR_OK;
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

lr_status live_work_take_image(struct live_work *work, const lr_vector *image, bool *is_shown, double *difference)
{
    *is_shown = work->is_on_device && image->values == NULL;
    LR_TRY(compare(work, image, difference));
    if (*is_shown) return hand_over(work, image);
    lr_vector host = lr_vector_of_floats(work->image, image->count);
    return lr_vector_copy(image, &host);
}

lr_traffic live_work_traffic(struct live_work *work)
{
    const lr_traffic before = work->traffic;
    const lr_place *place = lr_operator_place(work->op);
    work->traffic = lr_place_get_info(place).traffic;
    return (lr_traffic){work->traffic.to_device - before.to_device, work->traffic.to_host - before.to_host};
}
