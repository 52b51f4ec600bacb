/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon by several ranks: the schemes by which their work becomes one image; and how far images are from
 * the truth, where that is known. */
#include "recon.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the truth --- */

/* |image - truth| / |truth|; -1 where no truth is given. */
static double find_error(const struct recon *recon, const float *values)
{
    const lr_image *truth = recon->inputs.truth;
    double apart = 0, all = 0;
    if (truth == NULL) return -1;
    const int64_t count = lr_grid_num_voxels(&truth->grid);
    for (int64_t v = 0; v < count; v++) {
        const double t = truth->values[v], difference = values[v] - t;
        apart += difference * difference;
        all += t * t;
    }
    return all > 0 ? sqrt(apart / all) : -1;
}

/* Notes when an image was ready, and its error. */
lr_status recon_note_step(struct recon *recon, const lr_vector *image)
{
    if (recon->steps == NULL) return LR_OK;
    struct recon_step *step = &recon->steps[recon->num_done];
    step->elapsed_s = report_seconds() - recon->iterating_s - recon->noting_s;
    step->image_error = -1;
    if (recon->inputs.truth == NULL || recon->cluster.rank != 0) return LR_OK;
    const double begin_s = report_seconds();
    CLI_TRY(recon_take_image(recon, image));
    step->image_error = find_error(recon, recon->image->values);
    recon->noting_s += report_seconds() - begin_s;
    return LR_OK;
}

/* --- compositions --- */

static lr_status keep_weights(struct recon *recon, struct recon_step *step, const lr_composition *done)
{
    const size_t bytes = (size_t)done->count * sizeof(double);
    step->weights = malloc(2 * bytes);
    if (step->weights == NULL) return report_error(recon->setup.report, LR_FAILED, "no memory for weights");
    memcpy(step->weights, done->weights, bytes);
    memcpy(step->weights + done->count, done->guess_residuals, bytes);
    step->composition = *done;
    step->composition.weights = step->weights;
    step->composition.guess_residuals = step->weights + done->count;
    step->composition.image = NULL;
    return LR_OK;
}

static void say(const struct recon *recon, const lr_composition *done)
{
    double best = HUGE_VAL;
    for (int g = 0; g < done->count; g++) best = fmin(best, done->guess_residuals[g]);
    report_info(recon->setup.report,
                "composed after %d iterations: weights %.4g to the last %.4g, condition %.3g, "
                "residual %.9g, of the best guess %.9g",
                done->iterations, done->weights[0], done->weights[done->count - 1], done->condition, done->residual,
                best);
    report_info(recon->setup.report, "%lld voxels below 0, %.4g in all, become 0: residual %.9g, log-likelihood %.9g",
                (long long)done->negative_voxels, done->negative_sum, done->clipped_residual, done->fit.log_likelihood);
}

static lr_status on_composed(void *user, const lr_composition *done)
{
    struct recon *recon = user;
    CLI_TRY(recon_note_step(recon, done->image));
    CLI_TRY(keep_weights(recon, &recon->steps[recon->num_done], done));
    recon->history[recon->num_done++] = (lr_iteration){.number = recon->request.iterations_before + done->iterations,
                                                       .has_fit = true,
                                                       .log_likelihood = done->fit.log_likelihood,
                                                       .measured_counts = done->fit.measured_counts,
                                                       .estimated_counts = done->fit.estimated_counts,
                                                       .left_out_lors = done->fit.left_out_lors,
                                                       .left_out_counts = done->fit.left_out_counts,
                                                       .seconds = done->seconds,
                                                       .exchange_seconds = done->compose_seconds,
                                                       .sent_bytes = done->sent_bytes};
    say(recon, done);
    return LR_OK;
}

static lr_status compose(struct recon *recon, const lr_recon_params *params)
{
    lr_vector image = lr_image_vector(recon->image);
    lr_compose_params all = {.local = *params,
                             .comm = recon->cluster.comm,
                             .local_iterations = recon->request.local_iterations,
                             .composed = on_composed,
                             .user = recon};
    if (recon->request.checkpoint != NULL) {
        all.keep_every = recon->request.checkpoint_every;
        all.keep = recon_keep_guesses;
        all.guess_iterations = recon->checkpoint.guess_iterations;
    }
    all.local.iteration = NULL;
    all.local.subset_of = NULL; /* of the rank's pairs, as they are dealt */
    all.local.interleave = 0;
    return lr_compose(&all, &image);
}

/* --- all schemes --- */

lr_status recon_combine(struct recon *recon, const lr_recon_params *params)
{
    recon->iterating_s = report_seconds();
    if (recon->request.combine == RECON_PAPER) return compose(recon, params);
    return recon_run(recon, params);
}

lr_status recon_call(const struct recon *recon, const lr_recon_params *params, lr_vector *image)
{
    if (recon->request.combine != RECON_DISTRIBUTED) return lr_recon(params, image);
    const lr_checkpoint *kept = &recon->checkpoint;
    const int64_t count = kept->num_values;
    const lr_vector before = lr_vector_of_floats(kept->images, count);
    const lr_vector of_em = lr_vector_of_floats(recon->start != NULL ? kept->images + count : NULL, count);
    const lr_distributed_state from = {.iterations = kept->iterations,
                                       .local_iterations = kept->local_iterations,
                                       .log_likelihood = kept->log_likelihood,
                                       .image = &before,
                                       .of_em = &of_em};
    const lr_distributed_params all = {.recon = *params,
                                       .local_iterations = recon->request.local_iterations,
                                       .from = recon->start != NULL ? &from : NULL,
                                       .keep = recon_keep_state};
    return lr_recon_distributed(&all, image);
}

void recon_finish_steps(struct recon *recon)
{
    for (int k = 0; recon->steps != NULL && k < recon->request.iterations; k++) free(recon->steps[k].weights);
    free(recon->steps);
    recon->steps = NULL;
}

/* --- JSON --- */

static void composition_json(struct json *json, const lr_composition *done)
{
    json_open(json, "composition", '{');
    json_numbers(json, "weights", done->weights, done->count);
    json_numbers(json, "guess_residuals", done->guess_residuals, done->count);
    if (isfinite(done->condition)) json_number(json, "condition", done->condition);
    json_bool(json, "singular", !isfinite(done->condition));
    json_number(json, "residual", done->residual);
    json_number(json, "clipped_residual", done->clipped_residual);
    json_int(json, "negative_voxels", done->negative_voxels);
    json_number(json, "negative_sum", done->negative_sum);
    json_number(json, "seconds", done->compose_seconds);
    json_close(json, '}');
}

void recon_step_json(struct json *json, const struct recon_step *step)
{
    json_number(json, "elapsed_seconds", step->elapsed_s);
    if (step->image_error >= 0) json_number(json, "image_error", step->image_error);
    if (step->weights != NULL) composition_json(json, &step->composition);
}
