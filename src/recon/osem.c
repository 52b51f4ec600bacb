/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Ordered subsets expectation maximisation: Hudson and Larkin, Accelerated image reconstruction
 * using ordered subsets of projection data, IEEE Trans. Med. Imag. 13 (1994); with the additive
 * term as in Politte and Snyder (1991). docs/method.md, section 6. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/lor_check.h"
#include "recon/subsets.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { DEFAULT_ITERATIONS = 3, MAX_ITERATIONS = 1000000 };

struct osem {
    const lr_osem_params *params;
    const lr_operator_info *info;
    int iterations;
    float *image; /* the caller's; changed only when a subset's update is complete */
    bool is_kept; /* the image changes on the device (slot 0; subset k's sensitivity in slot k + 1),
                     and is copied to the caller's at the end */
    struct lr_subsets subsets;
    float *correction; /* [num_voxels] A^T ratio */
    float *values;     /* [most_values] yhat, then the ratio in its place */
    float *additive;   /* [most_values] dense data with an additive source, else NULL */
    bool has_warned, has_warned_of_passing;
};

/* --- checks --- */

static lr_status check_subsets(const lr_osem_params *params, const lr_lors *lors)
{
    const bool is_wrong = params->subsets < 0 || params->subsets > lors->num_pairs;
    if (is_wrong && lors->scanner == NULL) {
        return lr_error(params->log, LR_USAGE,
                        "%d subsets: they are made of views, of which there are %lld; give 1 to "
                        "that many",
                        params->subsets, (long long)lors->num_pairs);
    }
    if (is_wrong) {
        return lr_error(params->log, LR_USAGE,
                        "%d subsets: they are made of whole module pairs, of which %s has %lld in "
                        "coincidence; give 1 to that many",
                        params->subsets, lors->scanner->name, (long long)lors->num_pairs);
    }
    return LR_OK;
}

static lr_status check_additive(const lr_osem_params *params, const lr_lors *lors)
{
    if (params->additive != NULL && params->additive_source.get != NULL) {
        return lr_error(params->log, LR_USAGE,
                        "the additive term is given as data and as a source: give one of the two");
    }
    if (!(params->additive_sum >= 0.0 && params->additive_sum <= DBL_MAX)) {
        return lr_error(params->log, LR_USAGE,
                        "the sum of the additive source is %g: give a finite sum of at least 0, "
                        "or 0 for having it summed",
                        params->additive_sum);
    }
    return params->additive != NULL
               ? lr_lor_data_check(params->additive, lors, "additive term", params->log)
               : LR_OK;
}

static lr_status check_params(const lr_osem_params *params, const float *image)
{
    if (params->op == NULL || params->data == NULL || image == NULL) {
        return lr_error(params->log, LR_USAGE,
                        "a reconstruction needs an operator, data and an image to go to");
    }
    if (params->iterations < 0 || params->iterations > MAX_ITERATIONS) {
        return lr_error(params->log, LR_USAGE, "%d iterations: give 1 to %d, or 0 for the default",
                        params->iterations, MAX_ITERATIONS);
    }
    const lr_lors *lors = lr_operator_get_info(params->op)->lors;
    LR_TRY(check_subsets(params, lors));
    LR_TRY(lr_lor_data_check(params->data, lors, "data", params->log));
    return check_additive(params, lors);
}

static lr_status check_initial(const lr_osem_params *params, int64_t num_voxels)
{
    for (int64_t v = 0; params->initial != NULL && v < num_voxels; v++) {
        if (!isfinite(params->initial[v]) || params->initial[v] < 0.0f) {
            return lr_error(params->log, LR_BAD_INPUT,
                            "voxel %lld of the initial image is %g: values must be finite and at "
                            "least 0",
                            (long long)v, (double)params->initial[v]);
        }
    }
    return LR_OK;
}

/* --- start --- */

static lr_status allocate(struct osem *osem)
{
    const lr_log *log = osem->params->log;
    const int64_t most = osem->subsets.most_values;
    const bool has_source = osem->params->additive_source.get != NULL;
    osem->correction = lr_alloc(osem->info->num_voxels, sizeof(float), "the correction image", log);
    osem->values = lr_alloc(most, sizeof(float), "the estimated data", log);
    if (osem->correction == NULL || osem->values == NULL) {
        return LR_FAILED;
    }
    if (!osem->subsets.is_sparse && has_source) {
        osem->additive = lr_alloc(most, sizeof(float), "the additive term", log);
        return osem->additive != NULL ? LR_OK : LR_FAILED;
    }
    return LR_OK;
}

static void finish(struct osem *osem)
{
    lr_subsets_finish(&osem->subsets);
    free(osem->correction);
    free(osem->values);
    free(osem->additive);
}

static lr_status find_sensitivities(struct osem *osem)
{
    lr_operator *op = osem->params->op;
    const int count = osem->subsets.count;
    if (count == 1) {
        return lr_operator_sensitivity(op, osem->subsets.list[0].sensitivity);
    }
    for (int k = 0; k < count; k++) {
        struct lr_subset *subset = &osem->subsets.list[k];
        LR_TRY(lr_progress_report(osem->params->progress, "summing up the subsets' sensitivities",
                                  k, count));
        LR_TRY(lr_operator_sensitivity_part(op, &subset->pairs, subset->sensitivity));
    }
    return lr_progress_report(osem->params->progress, "summing up the subsets' sensitivities",
                              count, count);
}

static bool is_seen(const struct osem *osem, int64_t v)
{
    for (int k = 0; k < osem->subsets.count; k++) {
        if (osem->subsets.list[k].sensitivity[v] > 0.0f) {
            return true;
        }
    }
    return false;
}

/* Voxels that no LOR sees start at 0 and stay there. */
static lr_status start_image(struct osem *osem)
{
    const float *initial = osem->params->initial;
    bool has_sensitive = false, has_activity = false;
    for (int64_t v = 0; v < osem->info->num_voxels; v++) {
        const bool is_sensitive = is_seen(osem, v);
        const float start = initial != NULL ? initial[v] : 1.0f;
        osem->image[v] = is_sensitive ? start : 0.0f;
        has_sensitive |= is_sensitive;
        has_activity |= osem->image[v] > 0.0f;
    }
    if (!has_sensitive) {
        return lr_error(osem->params->log, LR_BAD_INPUT,
                        "no voxel of the grid is seen by a LOR in coincidence: check the grid and "
                        "the scanner's coincidence rules");
    }
    if (!has_activity) {
        return lr_error(osem->params->log, LR_BAD_INPUT,
                        "the initial image is 0 wherever the scanner sees, and the updates leave "
                        "zeros as they are: give an image with positive values");
    }
    return LR_OK;
}

/* Updates by no LOR at all are left to the host. */
static lr_status keep_images(struct osem *osem)
{
    lr_operator *op = osem->params->op;
    if (!osem->params->keeps_image || !lr_operator_keeps_images(op) ||
        !(osem->subsets.counts > 0.0)) {
        return LR_OK;
    }
    for (int k = 0; k < osem->subsets.count; k++) {
        const struct lr_subset *subset = &osem->subsets.list[k];
        LR_TRY(lr_operator_keep_image(op, k + 1, subset->sensitivity));
    }
    LR_TRY(lr_operator_keep_image(op, 0, osem->image));
    osem->is_kept = true;
    return LR_OK;
}

/* --- one subset --- */

static int slot_of(const struct osem *osem, const struct lr_subset *subset)
{
    return (int)(subset - osem->subsets.list) + 1;
}

static lr_status sensitive_counts(const struct osem *osem, const struct lr_subset *subset,
                                  double *sum)
{
    *sum = 0.0;
    if (osem->is_kept) {
        lr_kept_sums sums;
        LR_TRY(lr_operator_sum_kept(osem->params->op, slot_of(osem, subset), &sums));
        *sum = sums.products;
        return LR_OK;
    }
    for (int64_t v = 0; v < osem->info->num_voxels; v++) {
        *sum += (double)subset->sensitivity[v] * osem->image[v];
    }
    return LR_OK;
}

/* Estimates are known where counts are; those of all LORs add up to the sensitivity times the
 * image. */
static lr_status fit_sparse(struct osem *osem, const struct lr_subset *subset, struct lr_fit *fit)
{
    const struct lr_fit_input input = {.measured = &subset->measured,
                                       .additive_values = subset->additive,
                                       .num_lors = subset->num_values,
                                       .threads = osem->info->threads,
                                       .log = osem->params->log};
    LR_TRY(lr_fit_ratio(&input, osem->values, fit));
    double all;
    LR_TRY(sensitive_counts(osem, subset, &all));
    fit->log_likelihood += fit->estimated_counts - all;
    fit->estimated_counts = all;
    return LR_OK;
}

/* The source's values of a subset's LORs. Negative ones would turn into missing LORs. */
static lr_status read_source(const struct osem *osem, const struct lr_subset *subset)
{
    const lr_lor_source *source = &osem->params->additive_source;
    const struct lr_lor_run all = {0, 0, osem->info->num_lors};
    const struct lr_lor_run *runs = subset->runs != NULL ? subset->runs : &all;
    const int64_t num_runs = subset->runs != NULL ? subset->num_runs : 1;
    for (int64_t n = 0; n < num_runs; n++) {
        const lr_lor_span span = {.first = runs[n].first, .count = runs[n].count};
        float *values = osem->additive + runs[n].begin;
        LR_TRY(source->get(source->user, &span, values));
        for (int64_t k = 0; k < span.count; k++) {
            if (!(values[k] >= 0.0f && values[k] <= FLT_MAX)) {
                return lr_lor_report_value(osem->info->lors, span.first + k, values[k],
                                           "additive term", osem->params->log);
            }
        }
    }
    return LR_OK;
}

static lr_status fit_dense(struct osem *osem, const struct lr_subset *subset, struct lr_fit *fit)
{
    if (osem->additive != NULL) {
        LR_TRY(read_source(osem, subset));
    }
    const struct lr_fit_input input = {.measured = osem->params->data,
                                       .additive = osem->params->additive,
                                       .additive_values = osem->additive,
                                       .runs = subset->runs,
                                       .num_runs = subset->num_runs,
                                       .num_lors = osem->info->num_lors,
                                       .threads = osem->info->threads,
                                       .log = osem->params->log};
    return lr_fit_ratio(&input, osem->values, fit);
}

static double updated(const struct osem *osem, const struct lr_subset *subset, int64_t v)
{
    const double sensitivity = subset->sensitivity[v];
    return sensitivity > 0.0 ? osem->image[v] / sensitivity * osem->correction[v] : osem->image[v];
}

/* First looks whether all of it is finite, so that the image holds whole updates only. */
static lr_status update_image(struct osem *osem, const struct lr_subset *subset)
{
    for (int64_t v = 0; v < osem->info->num_voxels; v++) {
        if (!isfinite((float)updated(osem, subset, v))) {
            return lr_error(osem->params->log, LR_FAILED,
                            "voxel %lld grew beyond the largest number (its sensitivity is %g): "
                            "leave out voxels that are hardly seen, or take fewer subsets",
                            (long long)v, (double)subset->sensitivity[v]);
        }
    }
    for (int64_t v = 0; v < osem->info->num_voxels; v++) {
        osem->image[v] = (float)updated(osem, subset, v);
    }
    return LR_OK;
}

/* A subset that explains nothing would turn the image into zeros, for good: it is passed over,
 * unless there is nothing to explain in any. */
static bool is_passed_over(struct osem *osem, const struct lr_fit *fit)
{
    if (fit->measured_counts > 0.0 || !(osem->subsets.counts > 0.0)) {
        return false;
    }
    if (osem->subsets.count > 1 && !osem->has_warned_of_passing) {
        osem->has_warned_of_passing = true;
        lr_warn(osem->params->log,
                "a subset of %d has no counts that the image reaches and is passed over: take "
                "fewer subsets",
                osem->subsets.count);
    }
    return true;
}

static lr_status forward(const struct osem *osem, const struct lr_subset *subset)
{
    lr_operator *op = osem->params->op;
    return osem->is_kept
               ? lr_operator_forward_kept(op, &subset->projected, osem->values)
               : lr_operator_forward_part(op, &subset->projected, osem->image, osem->values);
}

static lr_status update(struct osem *osem, const struct lr_subset *subset)
{
    lr_operator *op = osem->params->op;
    if (osem->is_kept) {
        return lr_operator_update_kept(op, &subset->projected, osem->values, slot_of(osem, subset));
    }
    LR_TRY(lr_operator_back_part(op, &subset->projected, osem->values, osem->correction));
    return update_image(osem, subset);
}

static lr_status visit(struct osem *osem, const struct lr_subset *subset, struct lr_fit *sum,
                       double *sensitive)
{
    struct lr_fit fit;
    double counts;
    LR_TRY(forward(osem, subset));
    LR_TRY(osem->subsets.is_sparse ? fit_sparse(osem, subset, &fit)
                                   : fit_dense(osem, subset, &fit));
    lr_fit_add(sum, &fit);
    if (!is_passed_over(osem, &fit)) {
        LR_TRY(update(osem, subset));
    }
    LR_TRY(sensitive_counts(osem, subset, &counts));
    *sensitive += counts;
    return LR_OK;
}

/* --- iterations --- */

/* A share of the counts above which leaving them out changes the image. */
static const double harmless_share = 1e-3;

static void warn_left_out(struct osem *osem, const struct lr_fit *fit)
{
    if (fit->left_out_lors == 0 || osem->has_warned) {
        return;
    }
    osem->has_warned = true;
    const double share = fit->left_out_counts / (fit->left_out_counts + fit->measured_counts);
    if (share <= harmless_share) {
        lr_info(osem->params->log,
                "%lld LORs with %g counts (%.2g %%) are left out: no active voxel reaches them",
                (long long)fit->left_out_lors, fit->left_out_counts, 100.0 * share);
        return;
    }
    lr_warn(
        osem->params->log,
        "%lld LORs with %g counts (%.3g %% of all) are left out, and the image is wrong by about "
        "as much: no active voxel of the grid reaches these LORs. Likely causes: activity "
        "outside of the grid (take a larger one), a grid or scanner that is not that of the data "
        "(loraster scanner check), scatter and randoms without --additive or --randoms, sampled "
        "lines that miss LORs (--mode exact, more --rays or --samples), voxels that start at 0; "
        "where none of these holds, compare with --backend cpu",
        (long long)fit->left_out_lors, fit->left_out_counts, 100.0 * share);
}

static lr_status check_reached(const struct osem *osem, const struct lr_fit *fit)
{
    if (fit->left_out_lors == 0 || fit->measured_counts > 0.0) {
        return LR_OK;
    }
    return lr_error(osem->params->log, LR_BAD_INPUT,
                    "none of the %g counts lies in a LOR that an active voxel reaches: check that "
                    "grid and data belong together",
                    fit->left_out_counts);
}

static lr_status hand_over(const struct osem *osem, const lr_iteration *done)
{
    const lr_osem_params *params = osem->params;
    return params->iteration != NULL ? params->iteration(params->user, done) : LR_OK;
}

static lr_status report(const struct osem *osem, int64_t visits)
{
    return lr_progress_report(osem->params->progress, "reconstructing",
                              (double)visits / osem->subsets.count, osem->iterations);
}

static lr_status iterate(struct osem *osem, int number)
{
    const double start = lr_clock_seconds();
    const int count = osem->subsets.count;
    lr_iteration done = {.number = number, .image = osem->is_kept ? NULL : osem->image};
    struct lr_fit fit = {0};
    for (int k = 0; k < count; k++) {
        LR_TRY(report(osem, (int64_t)(number - 1) * count + k));
        LR_TRY(
            visit(osem, &osem->subsets.list[osem->subsets.order[k]], &fit, &done.sensitive_counts));
    }
    LR_TRY(check_reached(osem, &fit));
    warn_left_out(osem, &fit);
    done.log_likelihood = fit.log_likelihood - osem->subsets.additive_counts;
    done.measured_counts = fit.measured_counts;
    done.estimated_counts = fit.estimated_counts + osem->subsets.additive_counts;
    done.left_out_lors = fit.left_out_lors;
    done.left_out_counts = fit.left_out_counts;
    done.seconds = lr_clock_seconds() - start;
    return hand_over(osem, &done);
}

static lr_status run(struct osem *osem)
{
    LR_TRY(lr_subsets_init(&osem->subsets, osem->params));
    LR_TRY(allocate(osem));
    LR_TRY(find_sensitivities(osem));
    LR_TRY(start_image(osem));
    LR_TRY(keep_images(osem));
    for (int number = 1; number <= osem->iterations; number++) {
        LR_TRY(iterate(osem, number));
    }
    /* Too late to be stopped. */
    (void)report(osem, (int64_t)osem->iterations * osem->subsets.count);
    return LR_OK;
}

lr_status lr_osem(const lr_osem_params *params, float *image)
{
    LR_TRY(check_params(params, image));
    struct osem osem = {.params = params,
                        .info = lr_operator_get_info(params->op),
                        .iterations =
                            params->iterations > 0 ? params->iterations : DEFAULT_ITERATIONS,
                        .image = image};
    LR_TRY(check_initial(params, osem.info->num_voxels));
    lr_status status = run(&osem);
    if (osem.is_kept && (status == LR_OK || status == LR_CANCELLED)) {
        const lr_status got = lr_operator_read_kept(params->op, image);
        status = got != LR_OK ? got : status;
    }
    finish(&osem);
    return status;
}
