/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cli/recon/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stores the time when an image was ready, and the image's error |image - truth| / |truth|. If the image's values are
 * not emissions, the image is first multiplied by the factor that minimises the error. */
static lr_status note_step(struct recon_run *run, const lr_vector *image)
{
    const lr_image *truth = run->measured->truth;
    if (run->steps == NULL) return LR_OK;
    struct recon_step *step = &run->steps[run->num_done];
    step->elapsed_s = report_seconds() - run->iterating_s - run->noting_s;
    step->image_error = -1;
    if (truth == NULL || run->measured->cluster.rank != 0) return LR_OK;
    const double begin_s = report_seconds();
    CLI_TRY(measurement_take_image(run->measured, image, run->image));
    const int64_t count = lr_grid_num_voxels(&truth->grid);
    double apart = 0, all = 0, product = 0, square = 0;
    for (int64_t v = 0; v < count; v++) {
        product += (double)truth->values[v] * run->image->values[v];
        square += (double)run->image->values[v] * run->image->values[v];
    }
    const double scale = measurement_counts_emissions(run->measured) || !(square > 0) ? 1 : product / square;
    for (int64_t v = 0; v < count; v++) {
        const double t = truth->values[v], difference = scale * run->image->values[v] - t;
        apart += difference * difference;
        all += t * t;
    }
    step->image_error = all > 0 ? sqrt(apart / all) : -1;
    run->noting_s += report_seconds() - begin_s;
    return LR_OK;
}

static lr_status on_iteration(void *user, const lr_iteration *done)
{
    struct recon_run *run = user;
    const struct measurement *measured = run->measured;
    CLI_TRY(note_step(run, done->image));
    run->history[run->num_done] = *done;
    run->history[run->num_done].image = NULL;
    run->num_done++;
    struct report *report = measured->setup.report;
    if (done->has_fit) {
        char left_out[64] = "";
        if (done->left_out_counts > 0)
            snprintf(left_out, sizeof(left_out), " (and %.9g are left out)", done->left_out_counts);
        report_info(
            report,
            "iteration %d: log-likelihood %.9g, measured %.9g%s, estimated before the update %.9g counts, %.2f s",
            done->number, done->log_likelihood, done->measured_counts, left_out, done->estimated_counts, done->seconds);
        if (done->penalty > 0) report_info(report, "iteration %d: penalty %.9g", done->number, done->penalty);
    } else {
        /* Iterations that compute the likelihood say what is left out; others say it once. */
        if (run->num_done == 1 && measured->blind_voxels > 0) {
            report_info(report,
                        "%lld histo-image voxels with %.4g counts are left out: --factors is 0 there (no line of "
                        "the view is measured)",
                        (long long)measured->blind_voxels, measured->blind_counts);
        }
        report_info(report, "iteration %d: %.3g s, device %.3g s", done->number, done->seconds, done->device_seconds);
    }
    if (measured->truth != NULL && run->steps != NULL && run->steps[run->num_done - 1].image_error >= 0) {
        report_info(report, "iteration %d: differs from --truth by %.4g of it%s", done->number,
                    run->steps[run->num_done - 1].image_error,
                    measurement_counts_emissions(measured) ? "" : ", after fitting its scale");
    }
    const lr_place *place = lr_operator_place(measured->setup.op);
    const lr_traffic now = lr_place_get_info(place).traffic, before = run->traffic;
    run->traffic = now;
    if (place != NULL && report->verbose) {
        char there[32], back[32];
        report_info(report, "%s to the device and %s back since the last iteration",
                    common_bytes(there, now.to_device - before.to_device),
                    common_bytes(back, now.to_host - before.to_host));
    }
    if (measured->request->combine == RECON_EXACT) {
        lr_checkpoint file = {.iterations = done->number};
        CLI_TRY(checkpoint_save(&run->checkpoint, &file, &done->image, 1));
    }

    const int every = measured->request->save_every;
    if (every == 0 || done->number % every != 0 || measured->cluster.rank != 0) return LR_OK;
    CLI_TRY(measurement_take_image(measured, done->image, run->image));
    char path[PATH_MAX];
    common_numbered_path(path, run->output, ".iter", done->number);
    return lr_image_write(path, run->image, &report->log);
}

static lr_status on_composed(void *user, const lr_composition *done)
{
    struct recon_run *run = user;
    struct report *report = run->measured->setup.report;
    CLI_TRY(note_step(run, done->image));
    struct recon_step *step = &run->steps[run->num_done];
    const size_t bytes = (size_t)done->count * sizeof(double);
    step->weights = malloc(2 * bytes);
    if (step->weights == NULL) return report_error(run->measured->setup.report, LR_FAILED, "no memory for weights");
    memcpy(step->weights, done->weights, bytes);
    memcpy(step->weights + done->count, done->guess_residuals, bytes);
    step->composition = *done;
    step->composition.weights = step->weights;
    step->composition.guess_residuals = step->weights + done->count;
    step->composition.image = NULL;

    run->history[run->num_done++] = (lr_iteration){.number = run->iterations_before + done->iterations,
                                                   .has_fit = true,
                                                   .log_likelihood = done->fit.log_likelihood,
                                                   .measured_counts = done->fit.measured_counts,
                                                   .estimated_counts = done->fit.estimated_counts,
                                                   .left_out_lors = done->fit.left_out_lors,
                                                   .left_out_counts = done->fit.left_out_counts,
                                                   .seconds = done->seconds,
                                                   .exchange_seconds = done->compose_seconds,
                                                   .sent_bytes = done->sent_bytes};
    double best = HUGE_VAL;
    for (int g = 0; g < done->count; g++) best = fmin(best, done->guess_residuals[g]);
    report_info(report,
                "composed after %d iterations: weights %.4g to the last %.4g, condition %.3g, "
                "residual %.9g, of the best guess %.9g",
                done->iterations, done->weights[0], done->weights[done->count - 1], done->condition, done->residual,
                best);
    report_info(report, "%lld voxels below 0, %.4g in all, become 0: residual %.9g, log-likelihood %.9g",
                (long long)done->negative_voxels, done->negative_sum, done->clipped_residual, done->fit.log_likelihood);
    return LR_OK;
}

static lr_status on_guesses(void *user, const lr_guesses *guesses)
{
    lr_checkpoint file = {.num_images = guesses->count,
                          .num_values = guesses->num_voxels,
                          .images = (float *)guesses->values,
                          .iterations = guesses->iterations,
                          .guess_iterations = guesses->guess_iterations};
    return checkpoint_save(&((struct recon_run *)user)->checkpoint, &file, NULL, 0);
}

static lr_status on_state(void *user, const lr_distributed_state *state)
{
    lr_checkpoint file = {.iterations = state->iterations,
                          .local_iterations = state->local_iterations,
                          .log_likelihood = state->log_likelihood};
    const lr_vector *const images[2] = {state->image, state->of_em};
    return checkpoint_save(&((struct recon_run *)user)->checkpoint, &file, images, 2);
}

/* Reconstructs the image. If the image consists of blobs, reconstructs the blobs' coefficients and then evaluates the
 * blobs. */
static lr_status reconstruct(struct recon_run *run, const lr_recon_params *params)
{
    const struct recon_request *request = run->measured->request;
    const bool has_blobs = measurement_blobs(run->measured) != NULL;
    lr_vector image = lr_image_vector(run->image);
    if (has_blobs) {
        const lr_vector_params like = {
            .count = lr_operator_get_info(params->op)->num_voxels, .name = "coefficients of blobs", .log = params->log};
        image = (lr_vector){0};
        CLI_TRY(lr_vector_create(&like, &image));
    }
    lr_status status;
    if (request->combine == RECON_DISTRIBUTED) {
        const lr_checkpoint *read = &run->checkpoint.read;
        const bool goes_on = run->checkpoint.start != NULL;
        const int64_t count = read->num_values;
        const lr_vector before = lr_vector_of_floats(read->images, count);
        const lr_vector of_em = lr_vector_of_floats(goes_on ? read->images + count : NULL, count);
        const lr_distributed_state from = {.iterations = read->iterations,
                                           .local_iterations = read->local_iterations,
                                           .log_likelihood = read->log_likelihood,
                                           .image = &before,
                                           .of_em = &of_em};
        const lr_distributed_params all = {.recon = *params,
                                           .local_iterations = request->local_iterations,
                                           .from = goes_on ? &from : NULL,
                                           .keep = on_state};
        status = lr_recon_distributed(&all, &image);
    } else {
        status = lr_recon(params, &image);
    }
    if (has_blobs) {
        const lr_status taken = run->num_done > 0 ? measurement_take_image(run->measured, &image, run->image) : LR_OK;
        lr_vector_destroy(&image);
        status = status != LR_OK ? status : taken;
    }
    return status;
}

lr_status recon_iterate(struct recon_run *run)
{
    /* ML-EM is OSEM with one subset. */
    static const lr_recon_algorithm rules[] = {[RECON_MLEM] = LR_ALGORITHM_OSEM,
                                               [RECON_OSEM] = LR_ALGORITHM_OSEM,
                                               [RECON_RAMLA] = LR_ALGORITHM_RAMLA,
                                               [RECON_BSREM] = LR_ALGORITHM_BSREM};
    const struct measurement *measured = run->measured;
    const struct recon_request *request = measured->request;
    const bool has_steps = recon_has_steps(request->algorithm);
    const int64_t num_voxels = lr_operator_get_info(measured->setup.op)->num_voxels;
    const lr_vector start = lr_vector_of_floats(run->checkpoint.start, num_voxels);
    lr_lor_data *const terms = measured->additive;
    lr_vector data = lr_lor_data_vector(measured->data), additive = {0}, initial = {0}, kappa = {0};
    if (terms != NULL) additive = lr_lor_data_vector(terms);
    if (measured->initial != NULL) initial = lr_image_vector(measured->initial);
    if (measured->kappa != NULL) kappa = lr_image_vector(measured->kappa);
    lr_rdp prior = request->prior;
    prior.kappa = measured->kappa != NULL ? &kappa : NULL;
    lr_recon_params params = {
        .op = measured->setup.op,
        .data = &data,
        .data_lors = measured->data->index,
        .additive = terms != NULL && terms->index == NULL ? &additive : NULL,
        .initial = run->checkpoint.start != NULL ? &start
                   : measured->initial != NULL   ? &initial
                                                 : NULL,
        .iterations = run->iterations,
        .iterations_before = run->iterations_before,
        .subsets = measured->subsets,
        .without_fit = request->without_fit,
        .algorithm = rules[request->algorithm],
        .relaxation = has_steps ? recon_relaxation(request, measured->subsets) : 0,
        .relaxation_fall = has_steps ? request->relaxation_fall : 0,
        .own_steps = request->own_steps,
        .prior = request->has_prior ? &prior : NULL,
        .iteration = on_iteration,
        .user = run,
        .comm = measured->cluster.comm,
        .subset_of = measured->subset_of,
        .interleave = measured->interleave,
        .log = &measured->setup.report->log,
        .progress = run->progress,
    };
    if (request->family == RECON_LISTMODE) {
        params.additive_sum = measured->additive_sum;
    } else if (measured->randoms != NULL) {
        params.additive_source = lr_crystal_product_source(&measured->randoms->product);
        params.additive_sum = measured->randoms->delayeds;
    } else if (terms != NULL && terms->index != NULL) {
        params.additive_source = lr_lor_data_source(terms);
    }
    run->iterating_s = report_seconds();
    if (request->combine != RECON_PAPER) return reconstruct(run, &params);

    lr_vector image = lr_image_vector(run->image);
    lr_compose_params all = {.local = params,
                             .comm = params.comm,
                             .local_iterations = request->local_iterations,
                             .composed = on_composed,
                             .user = run};
    if (request->checkpoint != NULL) {
        all.keep_every = request->checkpoint_every;
        all.keep = on_guesses;
        all.guess_iterations = run->checkpoint.read.guess_iterations;
    }
    all.local.iteration = NULL;
    all.local.subset_of = NULL; /* subset_of is only for this rank's pairs */
    all.local.interleave = 0;
    return lr_compose(&all, &image);
}
