/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Iterations over subsets of the LORs, for every update rule: Hudson and Larkin, Accelerated image reconstruction
 * using ordered subsets of projection data, IEEE Trans. Med. Imag. 13 (1994). The additive term is used as in
 * Politte and Snyder (1991). docs/method/common.md, "Reconstruction". */
#include "base/clock.h"

#include "base/log.h"
#include "base/mem.h"
#include "device/vector.h"
#include "operator/updates.h"
#include "recon/rule.h"
#include "recon/subsets.h"

#include <float.h>
#include <limits.h>
#include <lr/direct.h>
#include <lr/listmode.h>
#include <lr/recon.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_ITERATIONS = 1000000 };

static const struct lr_update_rule *const rules[] = {
    [LR_ALGORITHM_OSEM] = &lr_rule_em,
    [LR_ALGORITHM_RAMLA] = &lr_rule_ramla,
    [LR_ALGORITHM_BSREM] = &lr_rule_bsrem,
};
enum { NUM_RULES = sizeof(rules) / sizeof(rules[0]) };

/* Checks the caller's arguments. errors: LR_USAGE for invalid params or an invalid image; LR_BAD_INPUT for invalid
 * data. */
static lr_status check_request(const lr_recon_params *params, const lr_vector *image)
{
    const bool has_image = image != NULL && (image->values != NULL || image->storage != NULL);
    if (params->op == NULL || params->data == NULL || !has_image)
        return lr_error(params->log, LR_USAGE, "a reconstruction needs an operator, data and an image to go to");
    const int before = params->iterations_before;
    if (params->iterations < 0 || params->iterations > MAX_ITERATIONS) {
        return lr_error(params->log, LR_USAGE, "%d iterations: give 1 to %d, or 0 for the default", params->iterations,
                        MAX_ITERATIONS);
    }
    if (before < 0 || before > INT_MAX - MAX_ITERATIONS) {
        return lr_error(params->log, LR_USAGE, "%d iterations before the first one: give 0 to %d", before,
                        INT_MAX - MAX_ITERATIONS);
    }

    const lr_operator_info *info = lr_operator_get_info(params->op);
    if (image->count != info->num_voxels) {
        return lr_error(params->log, LR_USAGE, "the image has %lld voxels where the operator has %lld",
                        (long long)image->count, (long long)info->num_voxels);
    }
    const lr_lors *lors = info->lors;
    const int algorithm = (int)params->algorithm;
    if (algorithm < 0 || algorithm >= NUM_RULES)
        return lr_error(params->log, LR_USAGE, "algorithm %d does not exist: give 0 to %d", algorithm, NUM_RULES - 1);
    LR_TRY(rules[algorithm]->check(params));
    if (params->prior != NULL && !rules[algorithm]->is_penalised) {
        return lr_error(params->log, LR_USAGE, "a prior belongs to BSREM: %s maximises the likelihood alone",
                        rules[algorithm]->name);
    }
    if (params->prior != NULL) LR_TRY(lr_rdp_check(params->prior, info->num_voxels, params->log));

    const bool is_many = lr_comm_get_info(params->comm).size > 1;
    const int subsets = params->subsets, interleave = params->interleave;
    if (is_many && subsets > 1 && params->subset_of == NULL) {
        return lr_error(params->log, LR_USAGE,
                        "where several ranks reconstruct together, subset_of must say to which of "
                        "the %d subsets this rank's pairs belong",
                        subsets);
    }
    if (subsets < 0 || (!is_many && lors->scanner == NULL && subsets > lors->num_pairs)) {
        return lr_error(params->log, LR_USAGE,
                        "%d subsets: they are made of %s, of which there are %lld; give 1 to that many%s", subsets,
                        info->of_events         ? "ranges of events"
                        : lors->scanner == NULL ? "views"
                                                : "LORs of module pairs",
                        (long long)lors->num_pairs,
                        info->of_events ? ", or make the operator with as many ranges as subsets" : "");
    }
    if (interleave < 0 || (interleave > 1 && lors->scanner == NULL) || (interleave > 0 && subsets % interleave != 0)) {
        return lr_error(params->log, LR_USAGE,
                        "%d subsets of LORs interleaved %d-fold: give a divisor of their number, and 1 "
                        "for histo-images",
                        subsets, interleave);
    }
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
    return lr_recon_check_vectors(params);
}

/* --- level of the uniform image --- */

lr_status lr_find_level(struct lr_compared *compared, double seen_counts, double *level)
{
    const struct lr_subsets *subsets = compared->subsets;
    const lr_recon_params *params = subsets->params;
    const double counts = subsets->counts, least = 0.01;
    double additive = 0.0;
    if (compared->has_additive) {
        /* Events are only some of the LORs, so the sum of the additive term over all LORs comes from the caller, or is
         * 0. */
        const bool of_events = lr_operator_get_info(params->op)->of_events;
        additive = of_events ? params->additive_sum : subsets->additive_counts;
        if (!subsets->is_sparse && subsets->interleave <= 1 && !of_events) {
            for (int k = 0; k < subsets->count; k++) {
                struct lr_compared_values with;
                lr_vector_sums sums;
                LR_TRY(lr_compared_get(compared, k, &with));
                LR_TRY(lr_vector_add_up(&with.additive, NULL, &sums));
                additive += sums.sum;
            }
            LR_TRY(lr_comm_sum_numbers(params->comm, &additive, 1));
        }
        if (additive > counts + 5.0 * sqrt(counts)) {
            lr_warn(params->log,
                    "the additive term adds up to %g counts, more than the %g that were measured, so "
                    "that next to nothing is left for the image: is it of this acquisition, in counts?",
                    additive, counts);
        }
    }
    *level = counts > 0.0 && seen_counts > 0.0 ? fmax(counts - additive, least * counts) / seen_counts : 1.0;
    return LR_OK;
}

/* --- state --- */

enum { DEFAULT_ITERATIONS = 3 };

/* The sums of an update. A device computes them in its queue, and the host reads them later. */
struct outcome {
    struct lr_later fit; /* fit of this rank's data, later of the data of all ranks */
    /* Sums over this rank's slab, later over all ranks: the image, and the image times the sensitivity. `before` has
     * the sums before the update, and is used only if estimates need these sums. */
    struct lr_later before, after;
};

struct recon {
    const lr_recon_params *params;
    const struct lr_update_rule *rule;
    const lr_operator_info *info;
    bool has_own_steps; /* voxels have different steps */
    /* True if the sum of all estimates is computed as the product of sensitivity and image. This is needed if some LORs
     * are not projected (sparse data, list mode), or if LORs of other interleaved subsets are projected, too. */
    bool estimates_by_sensitivity;
    int iterations;
    double project_s; /* total time of projections */
    int iteration;    /* current iteration, from 0, including earlier runs */
    struct lr_ranks ranks;
    lr_place *host;        /* host place with the operator's number of threads; owned */
    lr_place *place;       /* the place of images */
    lr_place *value_place; /* the place of LOR values */
    struct lr_subsets subsets;
    struct lr_compared compared;
    struct lr_penalty penalty; /* the penalty, for rules that have one */
    lr_vector *sensitivity;    /* [subsets] sensitivity in the rank's slab */
    lr_vector all_sensitivity; /* sensitivity of all events; freed when iterations begin */
    /* `largest` has each voxel's largest sensitivity in any subset, `host_sensitivity` the sensitivity of the current
     * subset. Both are needed if voxels have different steps. Both vectors are on the host, equal on all ranks, and
     * freed when iterations begin. */
    lr_vector largest, host_sensitivity;
    lr_vector own_scale;  /* 1 / `largest` of each voxel of the rank's slab; 0 if `largest` is 0 */
    double *scale;        /* [subsets] scale of the step length, found by the rule */
    lr_vector image;      /* the current image; changed only after an update has been queued */
    lr_vector correction; /* A^T ratio, then the image after the update */
    /* The image before the last queued update. It is kept if a device may queue an update before the result of the
     * previous update is known. Otherwise it is empty between updates. */
    lr_vector former;
    bool runs_ahead;
    struct outcome outcomes[LR_LATER_TURNS];
    int current;                    /* index in `outcomes` for the next update */
    int under_way;                  /* subset of the queued update whose result is not known yet; -1 = none */
    lr_vector values;               /* [most_values] yhat, later overwritten by the ratio */
    const struct lr_backend *whole; /* backend that does whole updates and has the image; NULL = none */
    double most;                    /* the largest sum of the image that the rule allows */
    double seen_counts;             /* counts that an image of ones would give, by the sensitivities */
    double level;                   /* value of all voxels of the uniform start image */
    bool has_image;                 /* true once `image` holds an image */
    bool has_clock;                 /* the backend knows the device time of all projections */
    bool has_warned, has_warned_of_passing;
};

/* --- start --- */

/* Returns the bytes of all images, and also of the LOR values if with_values is true. */
static double bytes_held(const struct recon *recon, bool with_values)
{
    const struct lr_subsets *subsets = &recon->subsets;
    const int more = recon->rule->is_penalised ? LR_PENALTY_VECTORS : recon->has_own_steps;
    double numbers = (double)recon->info->num_voxels * (subsets->count + 3 + more);
    if (with_values)
        numbers += (double)subsets->most_values + lr_compared_count(subsets, lr_operator_place(recon->params->op));
    return numbers * sizeof(float);
}

/* Chooses the places of images and of LOR values: the place of the operator if there is room, otherwise the host.
 * Values of listed LORs are always on the host. If the backend does whole updates, values stay at the caller's place,
 * because they are copied to the backend only once. */
static lr_status choose_places(struct recon *recon)
{
    recon->host = lr_place_open(
        &(lr_place_params){.kind = LR_PLACE_HOST, .threads = recon->info->threads, .log = recon->params->log});
    if (recon->host == NULL) return LR_FAILED;
    recon->place = recon->host;
    recon->value_place = recon->host;
    lr_place *place = lr_operator_place(recon->params->op);
    if (place == NULL) return LR_OK;
    /* Vectors may fill half of the memory, or less if the operator's limit is lower. */
    const int64_t reported = lr_place_get_info(place).memory_bytes;
    const double half = 0.5 * (double)(reported > 0 ? reported : lr_physical_memory());
    const double wanted = (double)recon->info->max_memory_bytes;
    const double room = wanted > 0 && wanted < half ? wanted : half;

    if (bytes_held(recon, false) <= room) {
        const bool is_data_there = lr_place_get_info(recon->params->data->place).kind != LR_PLACE_HOST;
        const bool may_hold_values = !recon->subsets.is_sparse && bytes_held(recon, true) <= room;
        recon->place = place;
        recon->value_place = (recon->whole != NULL ? is_data_there : may_hold_values) ? place : recon->host;
        const double image = (double)recon->info->num_voxels * sizeof(float);
        recon->runs_ahead = recon->whole == NULL && recon->value_place == place && recon->subsets.count > 1 &&
                            recon->ranks.size == 1 && bytes_held(recon, true) + image <= room;
    }
    return LR_OK;
}

static lr_status make_vector(const struct recon *recon, const char *name, int64_t count, lr_vector *vector)
{
    return lr_vector_create(
        &(lr_vector_params){.place = recon->place, .count = count, .name = name, .log = recon->params->log}, vector);
}

/* Adds up the sensitivities of all ranks. Each rank has a part of the LORs. */
static lr_status sum_sensitivity(struct recon *recon, int k, lr_vector *sensitivity)
{
    lr_operator *op = recon->params->op;
    const struct lr_subsets *subsets = &recon->subsets;
    const lr_selection *pairs = subsets->count > 1 ? &subsets->list[k].pairs : NULL;
    if (recon->info->of_events && !recon->info->of_lines && recon->ranks.size > 1) {
        /* In list mode, the sensitivities of subsets differ only by a factor. Ranks add up one sensitivity, only
         * once. */
        lr_vector *all = &recon->all_sensitivity;
        if (all->count == 0) {
            LR_TRY(make_vector(recon, "the sensitivity", sensitivity->count, all));
            LR_TRY(lr_updates_sensitivity(recon->params->op, NULL, all));
            LR_TRY(lr_comm_sum(recon->ranks.comm, all));
        }
        LR_TRY(lr_vector_fill(sensitivity, recon->subsets.list[k].share));
        return lr_vector_multiply(sensitivity, all);
    }

    LR_TRY(lr_updates_sensitivity(op, pairs, sensitivity));
    return lr_comm_sum(recon->ranks.comm, sensitivity);
}

/* Makes the sensitivities of all subsets, then the start image. Sensitivities stay at the place of the images. */
static lr_status start_with(struct recon *recon)
{
    LR_TRY(lr_operator_prepare(recon->params->op, recon->subsets.is_sparse));
    const int count = recon->subsets.count;
    lr_vector *sensitivity = &recon->correction; /* sensitivity of subset k, in the whole image */
    for (int k = 0; k < count; k++) {
        char what[64] = "sensitivity";
        if (count > 1) snprintf(what, sizeof(what), "sensitivity of subset %d of %d", k + 1, count);
        LR_TRY(lr_progress_report(recon->params->progress, what, k, count));
        const struct lr_backend *whole = recon->whole;
        LR_TRY(whole != NULL ? whole->fns->updates->sensitivity(whole->self, k, sensitivity)
                             : sum_sensitivity(recon, k, sensitivity));
        lr_vector_sums sums;
        LR_TRY(lr_vector_add_up(sensitivity, NULL, &sums));
        recon->seen_counts += sums.sum;
        LR_TRY(lr_vector_add_scaled(&recon->image, 1.0, sensitivity));
        if (whole == NULL) {
            const lr_vector slab = lr_ranks_slab(&recon->ranks, sensitivity);
            LR_TRY(lr_vector_copy(&slab, &recon->sensitivity[k]));
        }
        if (recon->has_own_steps) {
            lr_vector *host = &recon->host_sensitivity;
            LR_TRY(lr_vector_copy(sensitivity, host));
            const float *values = host->values;
            float *largest = recon->largest.values;
            for (int64_t v = 0; v < host->count; v++) largest[v] = fmaxf(largest[v], values[v]);
        }
        LR_TRY(recon->rule->start != NULL ? recon->rule->start(sensitivity, &recon->scale[k]) : LR_OK);
    }
    if (recon->has_own_steps) {
        /* A step of at most 1 / (the voxel's largest sensitivity in a subset) makes the voxel never negative. The
         * largest such step of all voxels is the scale of all subsets. */
        float *scale = recon->largest.values;
        double largest = 0.0;
        for (int64_t v = 0; v < recon->largest.count; v++) {
            scale[v] = scale[v] > 0.0f ? 1.0f / scale[v] : 0.0f;
            scale[v] = isfinite(scale[v]) ? scale[v] : 0.0f;
            largest = fmax(largest, (double)scale[v]);
        }
        for (int k = 0; k < count; k++) recon->scale[k] = largest;
        const lr_vector slab = lr_ranks_slab(&recon->ranks, &recon->largest);
        LR_TRY(lr_vector_copy(&slab, &recon->own_scale));
    }

    LR_TRY(lr_find_level(&recon->compared, recon->seen_counts, &recon->level));
    if (recon->rule->is_penalised) {
        const struct lr_penalty_base base = {&recon->image, &recon->correction, recon->subsets.count, recon->level,
                                             recon->params->log};
        LR_TRY(lr_penalty_start(&recon->penalty, &base));
    }

    /* Until here `image` was the sum of all sensitivities. Now `image` becomes the start image, which is 0 in voxels
     * that no LOR sees. Such voxels stay 0. */
    const lr_vector *initial = recon->params->initial;
    lr_vector *image = &recon->image;
    lr_vector_sums sensitive, sums;
    LR_TRY(lr_vector_add_up(image, image, &sensitive));
    LR_TRY(lr_start_seen(image, &recon->correction, initial != NULL ? 1.0 : recon->level));
    LR_TRY(initial != NULL ? lr_start_from(initial, image, recon->params->log) : LR_OK);
    LR_TRY(lr_vector_add_up(image, NULL, &sums));
    recon->most = sums.sum;
    if (!(sensitive.largest > 0.0)) {
        const lr_grid *grid = recon->info->grid;
        double first[3], last[3];
        lr_grid_voxel_centre(grid, 0, first);
        lr_grid_voxel_centre(grid, lr_grid_num_voxels(grid) - 1, last);
        return lr_error(recon->params->log, LR_BAD_INPUT,
                        "no voxel of the grid is seen by a LOR in coincidence: its voxel centres span x %g to %g, y %g "
                        "to %g, z %g to %g mm: change the grid's origin or leave it out to centre the grid, and check "
                        "the scanner's coincidence rules",
                        first[0], last[0], first[1], last[1], first[2], last[2]);
    }
    const lr_listmode_info *list = lr_listmode_get_info(recon->params->op);
    const bool are_probabilities = list != NULL ? list->has_solid_angles && list->blobs.radius_mm == 0.0
                                                : lr_direct_get_info(recon->params->op) == NULL;
    const double mean = sensitive.product / sensitive.sum;
    if (are_probabilities && mean > 1.0) {
        lr_warn(recon->params->log,
                "%.4g of 100 emissions would be detected, more than there are: elements times factors exceed 1: are "
                "efficiencies or factors in percent, or their inverses (normalisation)?",
                100.0 * mean);
    }
    if (!(sums.largest > 0.0)) {
        return lr_error(recon->params->log, LR_BAD_INPUT,
                        "the initial image is 0 wherever the scanner sees, and the updates leave "
                        "zeros as they are: give an image with positive values");
    }
    const struct lr_backend *whole = recon->whole;
    return whole != NULL ? whole->fns->updates->set_image(whole->self, &recon->image) : LR_OK;
}

static lr_status start(struct recon *recon)
{
    const lr_vector_params on_host = {
        .count = recon->info->num_voxels, .name = "the steps of the voxels", .log = recon->params->log};
    lr_status status = LR_OK;
    if (recon->has_own_steps) {
        status = lr_vector_create(&on_host, &recon->largest);
        status = status == LR_OK ? lr_vector_create(&on_host, &recon->host_sensitivity) : status;
    }
    status = status == LR_OK ? start_with(recon) : status;
    recon->has_image = status == LR_OK;
    lr_vector_destroy(&recon->largest);
    lr_vector_destroy(&recon->host_sensitivity);
    lr_vector_destroy(&recon->all_sensitivity);
    if (recon->whole != NULL) lr_vector_destroy(&recon->correction); /* the backend has its own correction */
    return status;
}

/* --- whole updates by a backend --- */

static lr_status report_growth(const struct recon *recon, int64_t voxels)
{
    return lr_error(recon->params->log, LR_FAILED, "%lld voxels grew beyond the largest number in an update of %s: %s",
                    (long long)voxels, recon->rule->name, recon->rule->remedy);
}

/* Rounding may bring a sum slightly above the rule's bound. */
static const double rounding_factor = 1.01;

/* Checks the sum of an image. An image can grow without limit while all its voxels are still finite. Its projections on
 * a device are then wrong, because single precision loses small numbers that are added to very large ones. */
static lr_status check_sum(struct recon *recon, double sum)
{
    if (recon->rule->most == NULL || sum <= rounding_factor * recon->most) {
        recon->most = sum;
        return LR_OK;
    }
    return lr_error(recon->params->log, LR_FAILED,
                    "the image explodes in iteration %d: its sum is %.3g, and %g counts explain "
                    "%.3g at most with a step of %s: %s",
                    recon->iteration + 1, sum, recon->subsets.counts, recon->most, recon->rule->name,
                    recon->rule->remedy);
}

static lr_status check_not_empty(const struct recon *recon, double sum)
{
    if (sum > 0.0 || !(recon->subsets.counts > 0.0)) return LR_OK;
    return lr_error(recon->params->log, LR_BAD_INPUT,
                    "the image has become 0 everywhere, so that none of the %g counts is explained: check that grid "
                    "and data belong together; else %s",
                    recon->subsets.counts, recon->rule->remedy);
}

static lr_status fetch_image(struct recon *recon)
{
    lr_vector_sums sums;
    LR_TRY(recon->whole->fns->updates->get_image(recon->whole->self, &recon->image));
    LR_TRY(lr_vector_add_up(&recon->image, NULL, &sums));
    if (sums.not_finite > 0) return report_growth(recon, sums.not_finite);
    LR_TRY(check_sum(recon, sums.sum));
    return check_not_empty(recon, sums.sum);
}

/* --- one subset --- */

static lr_status find_out(const struct recon *recon, struct outcome *outcome)
{
    lr_poisson_fit *fit = &outcome->fit.fit;
    LR_TRY(lr_later_finish(&outcome->before));
    LR_TRY(lr_later_finish(&outcome->after));
    LR_TRY(lr_later_finish(&outcome->fit));
    LR_TRY(lr_ranks_add_update(&recon->ranks, fit, &outcome->before.sums, &outcome->after.sums));
    if (recon->estimates_by_sensitivity) {
        fit->log_likelihood += fit->estimated_counts - outcome->before.sums.product;
        fit->estimated_counts = outcome->before.sums.product;
    }
    return LR_OK;
}

static struct lr_update_step describe_step(const struct recon *recon, int k)
{
    return (struct lr_update_step){.params = recon->params,
                                   .iteration = recon->iteration,
                                   .scale = recon->scale[k],
                                   .num_subsets = recon->subsets.count};
}

/* Returns true if the subset must be skipped because it has no counts. The update of such a subset would set voxels to
 * 0 for all further iterations: with EM, all voxels that the subset sees; with RAMLA and a relaxation of 1, the voxels
 * with the largest sensitivity. If no subset has counts, no subset is skipped. */
static bool is_passed_over(struct recon *recon, const lr_poisson_fit *found)
{
    if (found->measured_counts > 0.0 || !(recon->subsets.counts > 0.0)) return false;
    if (recon->subsets.count > 1 && !recon->has_warned_of_passing) {
        recon->has_warned_of_passing = true;
        lr_warn(recon->params->log,
                "a subset of %d has no counts that the image reaches and is passed over: take fewer subsets",
                recon->subsets.count);
    }
    return true;
}

/* Sums over the subsets of an iteration. */
struct found {
    lr_poisson_fit fit;
    double sensitive, device_seconds;
};

static lr_status pass_over(const struct recon *recon, int k, struct found *sum)
{
    lr_vector_sums sums;
    const lr_vector slab = lr_ranks_slab(&recon->ranks, &recon->image);
    LR_TRY(lr_vector_add_up(&slab, &recon->sensitivity[k], &sums));
    if (recon->ranks.has_slabs) LR_TRY(lr_comm_sum_numbers(recon->ranks.comm, &sums.product, 1));
    sum->sensitive += sums.product;
    return LR_OK;
}

static void swap(lr_vector *one, lr_vector *other)
{
    const lr_vector former = *one;
    *one = *other;
    *other = former;
}

/* Queues the whole update on the device without waiting for it. */
static lr_status queue_update(struct recon *recon, int k, struct found *sum, bool *has_failed)
{
    lr_vector values = lr_vector_part(&recon->values, 0, recon->subsets.list[k].num_values);
    struct outcome *outcome = &recon->outcomes[recon->current];
    const int slot = recon->current * LR_LATER_SLOTS;
    *outcome = (struct outcome){.fit.slot = slot, .before.slot = slot + 1, .after.slot = slot + 2};
    const struct lr_projection projection = {recon->params->op, &recon->subsets.list[k].projected, true};
    double begin = lr_clock_seconds();
    LR_TRY(lr_project_forward(&projection, &recon->image, &values));
    recon->project_s += lr_clock_seconds() - begin;

    /* A backend without a clock for all projections knows only the time of its last projection. */
    if (!recon->has_clock) sum->device_seconds += lr_operator_device_seconds(recon->params->op);
    struct lr_compared_values with;
    LR_TRY(lr_compared_get(&recon->compared, k, &with));
    const lr_vector *additive = recon->compared.has_additive ? &with.additive : NULL;
    if (recon->estimates_by_sensitivity) {
        const lr_vector slab = lr_ranks_slab(&recon->ranks, &recon->image);
        LR_TRY(lr_vector_add_up_later(&slab, &recon->sensitivity[k], &outcome->before));
    }
    LR_TRY(lr_vector_divide_counts_later(&(lr_poisson_ratio){&with.measured, additive, &values}, &outcome->fit));
    /* If LOR values are on the host, a single process knows the fit before it updates the image. */
    *has_failed = recon->ranks.size == 1 && outcome->fit.place == NULL && is_passed_over(recon, &outcome->fit.fit);
    if (!*has_failed) {
        /* The updated image overwrites the correction. Each rank updates its slab. */
        const struct lr_ranks *ranks = &recon->ranks;
        struct lr_update_step step = describe_step(recon, k);
        const lr_vector image = lr_ranks_slab(ranks, &recon->image);
        lr_vector next = lr_ranks_slab(ranks, &recon->correction);
        begin = lr_clock_seconds();
        LR_TRY(lr_project_back(&projection, &values, &recon->correction));
        recon->project_s += lr_clock_seconds() - begin;
        LR_TRY(ranks->has_slabs ? lr_comm_sum_shares(ranks->comm, ranks->offsets, &recon->correction)
                                : lr_comm_sum(ranks->comm, &recon->correction));
        step.penalty = &recon->penalty;
        step.image = &image;
        step.ratios = &next;
        step.sensitivity = &recon->sensitivity[k];
        step.own_scale = recon->has_own_steps ? &recon->own_scale : NULL;
        step.next = &next;
        LR_TRY(recon->rule->update(&step));
        LR_TRY(lr_vector_add_up_later(&next, &recon->sensitivity[k], &outcome->after));
        if (ranks->has_slabs) LR_TRY(lr_comm_gather(ranks->comm, ranks->offsets, &recon->correction));
        if (!recon->has_clock) sum->device_seconds += lr_operator_device_seconds(recon->params->op);
    }
    return lr_later_send(outcome->after.place, recon->current);
}

/* Waits for the sums of the last queued update and checks them. After an error, or if the subset must be skipped, the
 * image before this update is restored. */
static lr_status settle(struct recon *recon, struct found *sum, bool *is_left_out)
{
    const int k = recon->under_way;
    struct outcome *outcome = &recon->outcomes[1 - recon->current];
    const lr_vector_sums *after = &outcome->after.sums;
    *is_left_out = false;
    if (k < 0) return LR_OK;
    recon->under_way = -1;
    lr_status status = find_out(recon, outcome);
    if (status == LR_OK) {
        lr_poisson_fit_add(&sum->fit, &outcome->fit.fit);
        *is_left_out = is_passed_over(recon, &outcome->fit.fit);
    }
    if (status == LR_OK && !*is_left_out) {
        const struct lr_update_rule *rule = recon->rule;
        const struct lr_update_step step = describe_step(recon, k);
        sum->sensitive += after->product;
        if (after->not_finite > 0) {
            status = report_growth(recon, after->not_finite);
        } else {
            if (rule->most != NULL) recon->most = rule->most(&step, recon->most, recon->subsets.list[k].counts);
            status = check_sum(recon, after->sum);
        }
    }
    if (status != LR_OK || *is_left_out) swap(&recon->image, &recon->former);
    if (!recon->runs_ahead) swap(&recon->correction, &recon->former);
    return status == LR_OK && *is_left_out ? pass_over(recon, k, sum) : status;
}

/* Queues this update first, then waits for the result of the previous one, so that the device always has work. If the
 * previous update is then undone, because its subset had no counts, this update is queued again. */
static lr_status visit(struct recon *recon, int k, struct found *sum)
{
    bool has_failed, is_left_out;
    if (recon->whole != NULL) {
        const lr_poisson_fit measured = {.measured_counts = recon->subsets.list[k].counts};
        const struct lr_update_rule *rule = recon->rule;
        const struct lr_update_step step = describe_step(recon, k);
        const struct lr_update next = {.subset = k, .lambda = rule->lambda != NULL ? rule->lambda(&step) : 0.0};
        if (is_passed_over(recon, &measured)) return LR_OK;
        if (rule->most != NULL) recon->most = rule->most(&step, recon->most, measured.measured_counts);
        return recon->whole->fns->updates->run(recon->whole->self, &next);
    }

    LR_TRY(queue_update(recon, k, sum, &has_failed));
    LR_TRY(settle(recon, sum, &is_left_out));
    LR_TRY(is_left_out ? queue_update(recon, k, sum, &has_failed) : LR_OK);
    if (has_failed) {
        LR_TRY(find_out(recon, &recon->outcomes[recon->current]));
        lr_poisson_fit_add(&sum->fit, &recon->outcomes[recon->current].fit.fit);
        return pass_over(recon, k, sum);
    }
    /* The updated image becomes the current image. settle() may undo this later. */
    swap(&recon->former, &recon->image);
    swap(&recon->image, &recon->correction);
    recon->under_way = k;
    recon->current = 1 - recon->current;

    return recon->runs_ahead ? LR_OK : settle(recon, sum, &is_left_out);
}

/* --- iterations --- */

/* Share of skipped counts up to which the image hardly changes. */
static const double harmless_share = 1e-3;

/* Reports progress. k: number of finished subsets of this iteration. number: the iteration, from 1. */
static lr_status report(const struct recon *recon, int number, int k)
{
    char what[96];
    const int count = recon->subsets.count, shown = k < count ? k + 1 : count;
    const int length = snprintf(what, sizeof(what), "iteration %d of %d", number, recon->iterations);
    if (count > 1) snprintf(what + length, sizeof(what) - (size_t)length, ", subset %d of %d", shown, count);
    return lr_progress_report(recon->params->progress, what, number - 1 + (double)k / count, recon->iterations);
}

/* Visits all subsets. The device is held during all visits, because acquiring it for each update can take longer than
 * the update. */
static lr_status visit_all(struct recon *recon, int number, struct found *found)
{
    lr_operator *op = recon->params->op;
    lr_place *place = lr_operator_place(op);
    double begin, end;
    LR_TRY(lr_place_hold(place));
    recon->has_clock = lr_updates_device_clock(op, &begin);
    bool is_left_out;
    lr_status status = LR_OK;
    for (int k = 0; k < recon->subsets.count && status == LR_OK; k++) {
        status = report(recon, number, k);
        status = status == LR_OK ? visit(recon, recon->subsets.order[k], found) : status;
    }
    if (status == LR_OK || status == LR_CANCELLED) { /* a cancelled run also returns its image */
        const lr_status settled = settle(recon, found, &is_left_out);
        status = settled != LR_OK ? settled : status;
    }

    (void)lr_updates_device_clock(op, &end);
    found->device_seconds += end - begin;
    lr_place_release(place);
    return status;
}

static lr_status iterate(struct recon *recon, int number)
{
    const double begin = lr_clock_seconds();
    const int before = recon->params->iterations_before;
    const struct lr_backend *whole = recon->whole;
    const double projected_s = recon->project_s;
    const lr_comm_info comm = lr_comm_get_info(recon->ranks.comm);
    const lr_traffic crossed = lr_place_get_info(lr_operator_place(recon->params->op)).traffic;
    lr_iteration done = {.number = before + number, .image = &recon->image};
    struct found found = {0};
    recon->iteration = before + number - 1;
    LR_TRY(recon->rule->is_penalised
               ? lr_penalty_value(&recon->penalty, &recon->image, &recon->correction, &done.penalty)
               : LR_OK);
    LR_TRY(visit_all(recon, number, &found));
    if (whole == NULL) {
        /* BSREM can make voxels of 0 positive again. `most` is the sum of the last image. */
        const bool is_final = !recon->rule->is_penalised || number == recon->iterations;
        LR_TRY(is_final ? check_not_empty(recon, recon->most) : LR_OK);
        if (found.fit.left_out_lors > 0 && !(found.fit.measured_counts > 0.0)) {
            return lr_error(recon->params->log, LR_BAD_INPUT,
                            "none of the %g counts lies in a LOR that an active voxel reaches: check that "
                            "grid and data belong together",
                            found.fit.left_out_counts);
        }
        if (found.fit.left_out_lors > 0 && !recon->has_warned) {
            const lr_listmode_info *list = lr_listmode_get_info(recon->params->op);
            const long long lors = (long long)found.fit.left_out_lors;
            const bool one = lors == 1;
            const char *what = recon->info->of_lines                           ? "line"
                               : recon->info->of_events                        ? "event"
                               : lr_direct_get_info(recon->params->op) != NULL ? "histo-image voxel"
                                                                               : "LOR";
            const char *more = one ? "" : "s", *are = one ? "is" : "are", *them = one ? "it" : "them";
            const double counts = found.fit.left_out_counts, share = counts / (counts + found.fit.measured_counts);
            const char *several = counts == 1.0 ? "" : "s";
            recon->has_warned = true;
            if (share <= harmless_share) {
                lr_info(recon->params->log,
                        "%lld %s%s with %g count%s (%.2g %%) %s left out: no active voxel reaches %s", lors, what, more,
                        counts, several, 100.0 * share, are, them);
            } else {
                lr_warn(recon->params->log,
                        "%lld %s%s with %g count%s (%.3g %% of all) %s left out, and the image misses %s: no active "
                        "voxel reaches %s%s. %s a larger grid, or check its origin and the scanner",
                        lors, what, more, counts, several, 100.0 * share, are, them, them,
                        list != NULL && list->has_tof ? ", as with times of flight that point beside the grid" : "",
                        recon->compared.has_additive ? "Take"
                                                     : "Are they randoms or scatter, without an additive term? If "
                                                       "not, take");
            }
        }
        const double additive = recon->subsets.additive_counts;
        done.has_fit = true;
        done.log_likelihood = found.fit.log_likelihood - additive;
        done.measured_counts = found.fit.measured_counts;
        done.estimated_counts = found.fit.estimated_counts + additive;
        done.left_out_lors = found.fit.left_out_lors;
        done.left_out_counts = found.fit.left_out_counts;
        done.sensitive_counts = found.sensitive;
    }
    done.device_seconds = whole != NULL ? whole->fns->updates->seconds(whole->self) : found.device_seconds;
    done.seconds = lr_clock_seconds() - begin;
    const lr_comm_info now = lr_comm_get_info(recon->ranks.comm);
    done.exchange_seconds = now.moving_s - comm.moving_s;
    done.waiting_seconds = now.waiting_s - comm.waiting_s;
    done.sent_bytes = now.sent_bytes - comm.sent_bytes;

    const lr_traffic traffic = lr_place_get_info(lr_operator_place(recon->params->op)).traffic;
    done.traffic.to_device = traffic.to_device - crossed.to_device;
    done.traffic.to_host = traffic.to_host - crossed.to_host;
    /* The host only queues projections on a device, so the device's clock gives their time. */
    done.project_seconds = fmax(recon->project_s - projected_s, found.device_seconds);
    LR_TRY(whole != NULL && recon->params->iteration != NULL ? fetch_image(recon) : LR_OK);
    const lr_recon_params *params = recon->params;
    return params->iteration != NULL ? params->iteration(params->user, &done) : LR_OK;
}

static lr_status run(struct recon *recon)
{
    const int64_t num_voxels = recon->info->num_voxels;
    LR_TRY(lr_ranks_init(&recon->ranks, recon->params->comm, num_voxels, recon->params->log));
    LR_TRY(lr_subsets_init(&recon->subsets, recon->params));
    recon->estimates_by_sensitivity =
        recon->subsets.is_sparse || recon->info->of_events || recon->subsets.interleave > 1;
    if (recon->rule->is_penalised) { /* the prior of a voxel needs its neighbours, so every rank has all voxels */
        recon->ranks.has_slabs = false;
        recon->ranks.begin = 0;
        recon->ranks.end = num_voxels;
    }
    /* A backend that does whole updates accepts data of whole views, but not of single LORs. */
    const lr_recon_params *params = recon->params;
    const struct lr_update_plan plan = {.num_subsets = recon->subsets.count,
                                        .algorithm = params->algorithm,
                                        .has_additive =
                                            params->additive != NULL || params->additive_source.get != NULL};
    const bool is_whole = params->without_fit && !recon->subsets.is_sparse && recon->ranks.size == 1;
    LR_TRY(is_whole && !recon->rule->is_penalised && !recon->has_own_steps
               ? lr_updates_open(params->op, &plan, &recon->whole)
               : LR_OK);

    LR_TRY(choose_places(recon));
    lr_place *device = recon->value_place != recon->host ? recon->value_place : NULL;
    LR_TRY(lr_compared_init(&recon->compared, &recon->subsets, device, recon->whole == NULL));
    for (int k = 0; recon->whole != NULL && k < recon->subsets.count; k++) {
        struct lr_compared_values with;
        LR_TRY(lr_compared_get(&recon->compared, k, &with));
        LR_TRY(lr_updates_load(
            recon->params->op, k,
            &(struct lr_update_data){.part = &recon->subsets.list[k].projected,
                                     .measured = &with.measured,
                                     .additive = recon->compared.has_additive ? &with.additive : NULL}));
    }

    recon->scale =
        lr_alloc(recon->subsets.count, sizeof(*recon->scale), "the steps of the subsets", recon->params->log);
    if (recon->scale == NULL) return LR_FAILED;
    LR_TRY(make_vector(recon, "the image", recon->info->num_voxels, &recon->image));
    LR_TRY(make_vector(recon, "the correction image", recon->info->num_voxels, &recon->correction));
    if (recon->whole == NULL) { /* the loop over subsets needs these vectors */
        const lr_log *log = params->log;
        const int64_t slab = recon->ranks.end - recon->ranks.begin;
        const lr_vector_params values = {
            .place = recon->value_place, .count = recon->subsets.most_values, .name = "the estimated data", .log = log};
        recon->sensitivity = lr_alloc(recon->subsets.count, sizeof(lr_vector), "the sensitivities of the subsets", log);
        if (recon->sensitivity == NULL) return LR_FAILED;
        for (int k = 0; k < recon->subsets.count; k++)
            LR_TRY(make_vector(recon, "the sensitivities of the subsets", slab, &recon->sensitivity[k]));
        if (recon->has_own_steps) LR_TRY(make_vector(recon, "the steps of the voxels", slab, &recon->own_scale));
        if (recon->runs_ahead) LR_TRY(make_vector(recon, "the image before", num_voxels, &recon->former));
        LR_TRY(lr_vector_create(&values, &recon->values));
    }
    LR_TRY(recon->rule->is_penalised ? lr_penalty_init(&recon->penalty, recon->params, recon->place) : LR_OK);

    LR_TRY(start(recon));
    if (recon->whole != NULL)
        (void)recon->whole->fns->updates->seconds(recon->whole->self); /* this call restarts the device's clock */
    for (int number = 1; number <= recon->iterations; number++) LR_TRY(iterate(recon, number));
    /* The run is finished, so a request to stop no longer matters. */
    (void)report(recon, recon->iterations, recon->subsets.count);
    return LR_OK;
}

lr_status lr_recon_sized(size_t given_bytes, const lr_recon_params *given, lr_vector *image)
{
    LR_TAKE(lr_recon_params, params, given, given_bytes);
    LR_TRY(lr_comm_fail(params->comm, check_request(params, image)));
    /* Ranks with different settings would wait for each other forever, so the settings are compared. */
    char text[256];
    const lr_rdp *prior = params->prior;
    snprintf(text, sizeof(text),
             "%s, %d iterations after %d, %d subsets, %lld voxels, relaxation %g, fall %g, %s steps, %s initial image, "
             "beta %g, gamma %g, epsilon %g",
             rules[params->algorithm]->name, params->iterations, params->iterations_before, params->subsets,
             (long long)image->count, params->relaxation, params->relaxation_fall, params->own_steps ? "own" : "equal",
             params->initial != NULL ? "an" : "no", prior != NULL ? prior->beta : 0.0,
             prior != NULL ? prior->gamma : 0.0, prior != NULL ? prior->epsilon : 0.0);
    LR_TRY(lr_comm_same(params->comm, "reconstruction", text));
    struct recon recon = {.params = params,
                          .rule = rules[params->algorithm],
                          .info = lr_operator_get_info(params->op),
                          .has_own_steps = params->own_steps && params->algorithm == LR_ALGORITHM_RAMLA,
                          .under_way = -1,
                          .iterations = params->iterations > 0 ? params->iterations : DEFAULT_ITERATIONS};
    lr_status status = run(&recon);
    if (recon.has_image && (status == LR_OK || status == LR_CANCELLED)) {
        lr_status got = recon.whole != NULL ? fetch_image(&recon) : LR_OK;
        got = got == LR_OK ? lr_vector_copy(&recon.image, image) : got;
        status = got != LR_OK ? got : status;
    }
    for (int k = 0; recon.sensitivity != NULL && k < recon.subsets.count; k++) lr_vector_destroy(&recon.sensitivity[k]);
    if (recon.whole != NULL) recon.whole->fns->updates->close(recon.whole->self);
    lr_free_all(recon.sensitivity, recon.scale);
    lr_vector_destroy(&recon.own_scale);
    lr_vector_destroy(&recon.image);
    lr_vector_destroy(&recon.correction);
    lr_vector_destroy(&recon.former);
    lr_vector_destroy(&recon.values);
    lr_compared_finish(&recon.compared);
    lr_penalty_finish(&recon.penalty);
    lr_place_close(recon.host);
    lr_subsets_finish(&recon.subsets);
    free(recon.ranks.offsets);

    return lr_comm_fail(params->comm, status);
}

/* Ordered subsets expectation maximisation is lr_recon with the algorithm OSEM. Its update is in rule.c, or in the
 * backend if that can make whole updates. */

lr_status lr_osem_sized(size_t given_bytes, const lr_osem_params *given, lr_vector *image)
{
    LR_TAKE(lr_osem_params, params, given, given_bytes);
    if (params->algorithm != LR_ALGORITHM_OSEM) {
        return lr_comm_fail(params->comm,
                            lr_error(params->log, LR_USAGE, "OSEM is asked for algorithm %d: lr_recon has the others",
                                     (int)params->algorithm));
    }
    return lr_recon(params, image);
}

/* Maximum-likelihood expectation maximisation is OSEM with one subset: Shepp and Vardi, Maximum Likelihood
 * Reconstruction for Emission Tomography (1982). */

enum { MLEM_ITERATIONS = 10 };

lr_status lr_mlem_sized(size_t given_bytes, const lr_mlem_params *given, lr_vector *image)
{
    LR_TAKE(lr_mlem_params, params, given, given_bytes);
    const lr_osem_params all = {.op = params->op,
                                .data = params->data,
                                .data_lors = params->data_lors,
                                .additive = params->additive,
                                .initial = params->initial,
                                .iterations = params->iterations != 0 ? params->iterations : MLEM_ITERATIONS,
                                .subsets = 1,
                                .iteration = params->iteration,
                                .user = params->user,
                                .log = params->log,
                                .progress = params->progress};
    return lr_osem(&all, image);
}
