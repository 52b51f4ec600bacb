/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/live_work.h"

#include "base/log.h"
#include "base/mem.h"
#include "viewer/study/operators.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
