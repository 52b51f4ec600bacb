/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Likelihood maximised by ranks that exchange images rarely, in the spirit of Cui, Pratx, Meng and Levin, Distributed
 * MLEM, IEEE Trans. Med. Imag. 32 (2013). Their equations were not available to us. Our own equations are derived in
 * docs/method/cluster.md. Each rank computes this update with its own LORs:
 *
 *     z <- z (R + c (r(z) - r(x))) / s, R = sum over ranks of r(x), c = all counts / counts of this rank
 *
 * where r(x) = A^T (y / (A x + b)). z starts at x, the image that all ranks share. At z = x the update is ML-EM with
 * the data of all ranks. If x is the maximum, R = s and z does not change. The next x is the mean of the ranks' z,
 * weighted by their counts. If the likelihood of the mean is lower, the next x is the image of ML-EM. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "recon/subsets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEFAULT_ITERATIONS = 10, DEFAULT_LOCAL = 4 };

/* Fraction of ML-EM's image that is mixed into each rank's z, so that no voxel becomes 0 permanently. */
static const double share_of_em = 0.01;

/* A relative fall of the likelihood that rounding can cause. */
static const double rounding = 1e-8;

/* Indices of images. */
enum {
    IMAGE = 0,   /* x, equal on all ranks */
    BEFORE,      /* the previous x; the next x must not have a lower likelihood */
    OF_EM,       /* the image that ML-EM makes of BEFORE */
    LOCAL,       /* z */
    OWN_RATIOS,  /* r(x) */
    RATIOS,      /* R */
    FACTORS,     /* factors by which z is multiplied */
    SENSITIVITY, /* s */
    SEEN,        /* 1 for a positive s, else 0 */
    NUM_IMAGES
};

struct distributed {
    const lr_recon_params *params;
    struct lr_ranks ranks;
    struct lr_subsets subsets;
    struct lr_compared compared;
    lr_place *place;
    lr_vector images[NUM_IMAGES];
    lr_vector values;
    double own_counts; /* this rank's counts */
    double best;       /* log-likelihood of BEFORE */
    int local, most;   /* number of iterations between two exchanges: now, and at most */
    int done, wanted;  /* numbers of iterations: made so far, and wanted */
    bool has_before, has_image;
    int num_rounds, num_refused;
    double project_s, device_s;
    const lr_distributed_state *from;
    lr_status (*keep)(void *user, const lr_distributed_state *state);
};

/* --- projections of this rank --- */

static lr_status forward(struct distributed *d, const lr_vector *image, lr_poisson_fit *fit)
{
    struct lr_compared_values with;
    const double begin = lr_clock_seconds();
    LR_TRY(lr_compared_get(&d->compared, 0, &with));
    LR_TRY(lr_operator_forward(d->params->op, &d->subsets.list[0].projected, image, &d->values));
    d->device_s += lr_operator_device_seconds(d->params->op);
    d->project_s += lr_clock_seconds() - begin;
    const lr_vector *additive = d->compared.has_additive ? &with.additive : NULL;
    return lr_vector_divide_counts(&(lr_poisson_ratio){&with.measured, additive, &d->values}, fit);
}

/* Back-projects the ratios that forward() has computed. */
static lr_status back(struct distributed *d, lr_vector *ratios)
{
    const double begin = lr_clock_seconds();
    LR_TRY(lr_operator_back(d->params->op, &d->subsets.list[0].projected, &d->values, ratios));
    d->device_s += lr_operator_device_seconds(d->params->op);
    d->project_s += lr_clock_seconds() - begin;
    return LR_OK;
}

/* Finds the fit of IMAGE to the data of all ranks. With sparse data and events, only LORs with counts are projected.
 * The sum of all estimates is then computed as the product of sensitivity and image. */
static lr_status find_fit(struct distributed *d, lr_poisson_fit *fit)
{
    lr_vector_sums sums;
    LR_TRY(forward(d, &d->images[IMAGE], fit));
    LR_TRY(lr_ranks_add_update(&d->ranks, fit, NULL, NULL));
    if (d->subsets.is_sparse || lr_operator_get_info(d->params->op)->of_events) {
        LR_TRY(lr_vector_add_up(&d->images[IMAGE], &d->images[SENSITIVITY], &sums));
        fit->log_likelihood += fit->estimated_counts - sums.product;
        fit->estimated_counts = sums.product;
    }
    fit->log_likelihood -= d->subsets.additive_counts;
    fit->estimated_counts += d->subsets.additive_counts;
    return LR_OK;
}

/* --- one round --- */

/* Finds the fit of IMAGE, which is the mean of the ranks' images. If the likelihood fell, IMAGE becomes ML-EM's image,
 * because ML-EM never lowers the likelihood. */
static lr_status settle_image(struct distributed *d, lr_poisson_fit *fit)
{
    LR_TRY(find_fit(d, fit));
    if (!d->has_before || fit->log_likelihood >= d->best - rounding * fabs(d->best)) {
        d->local += d->has_before && d->local < d->most;
        return LR_OK;
    }
    d->local = d->local > 2 ? d->local / 2 : 1;
    d->num_refused++;
    lr_debug(d->params->log,
             "the ranks' images together explain less than the one before: that of ML-EM is taken, "
             "and %d local iteration%s next",
             d->local, d->local == 1 ? "" : "s");
    LR_TRY(lr_vector_copy(&d->images[OF_EM], &d->images[IMAGE]));
    return find_fit(d, fit);
}

static lr_status iterate_locally(struct distributed *d)
{
    lr_vector *images = d->images, *factors = &images[FACTORS];
    const double scale = d->own_counts > 0.0 ? d->subsets.counts / d->own_counts : 0.0;
    lr_poisson_fit fit;
    LR_TRY(forward(d, &images[LOCAL], &fit));
    LR_TRY(back(d, factors));
    LR_TRY(lr_vector_add_scaled(factors, -1.0, &images[OWN_RATIOS]));
    LR_TRY(lr_vector_copy(&images[RATIOS], &images[IMAGE])); /* IMAGE may be overwritten, because BEFORE has a copy */
    LR_TRY(lr_vector_add_scaled(&images[IMAGE], scale, factors));
    LR_TRY(lr_vector_divide(&images[IMAGE], &images[SENSITIVITY], 1.0));
    /* LOCAL <- LOCAL max(0, IMAGE) */
    return lr_vector_update_ramla(&(lr_ramla_update){.x = &images[LOCAL],
                                                     .correction = &images[IMAGE],
                                                     .sensitivity = &images[SEEN],
                                                     .lambda = 1.0,
                                                     .next = &images[LOCAL]});
}

static lr_status report(const struct distributed *d, int more)
{
    char what[64];
    snprintf(what, sizeof(what), "iteration %d of %d", d->done + more + 1, d->wanted);
    return lr_progress_report(d->params->progress, what, d->done + more, d->wanted);
}

static lr_status run_round(struct distributed *d)
{
    const double begin = lr_clock_seconds();
    const lr_comm_info before = lr_comm_get_info(d->ranks.comm);
    lr_poisson_fit fit;
    lr_vector_sums sums;
    d->project_s = d->device_s = 0.0;
    LR_TRY(report(d, 0));
    LR_TRY(settle_image(d, &fit));
    d->best = fit.log_likelihood;
    const int left = d->wanted - d->done, count = d->local < left ? d->local : left;
    /* Computes R and the image of ML-EM from the ratios of forward(). */
    lr_vector *images = d->images;
    LR_TRY(back(d, &images[OWN_RATIOS]));
    LR_TRY(lr_vector_copy(&images[OWN_RATIOS], &images[RATIOS]));
    LR_TRY(lr_comm_sum(d->ranks.comm, &images[RATIOS]));
    LR_TRY(lr_vector_copy(&images[IMAGE], &images[BEFORE]));
    LR_TRY(lr_vector_update_em(&(lr_em_update){&images[IMAGE], &images[RATIOS], &images[SENSITIVITY], &images[OF_EM]}));

    LR_TRY(lr_vector_copy(&d->images[OF_EM], &d->images[LOCAL]));
    for (int k = 1; k < count; k++) {
        LR_TRY(report(d, k));
        LR_TRY(iterate_locally(d));
    }
    if (count > 1) { /* the mean of the ranks' images, weighted by counts */
        const double share = d->subsets.counts > 0.0 ? d->own_counts / d->subsets.counts : 1.0 / d->ranks.size;
        LR_TRY(lr_vector_fill(&images[IMAGE], 0.0));
        LR_TRY(lr_vector_add_scaled(&images[IMAGE], (1.0 - share_of_em) * share, &images[LOCAL]));
        LR_TRY(lr_vector_add_scaled(&images[IMAGE], share_of_em * share, &images[OF_EM]));
        LR_TRY(lr_comm_sum(d->ranks.comm, &images[IMAGE]));
    } else {
        LR_TRY(lr_vector_copy(&images[OF_EM], &images[IMAGE]));
    }

    LR_TRY(lr_vector_add_up(&d->images[IMAGE], &d->images[SENSITIVITY], &sums));
    if (sums.not_finite > 0) {
        return lr_error(d->params->log, LR_FAILED,
                        "%lld voxels grew beyond the largest number: leave out voxels that are hardly seen",
                        (long long)sums.not_finite);
    }
    LR_TRY(fit.measured_counts > 0.0 || fit.left_out_lors == 0
               ? LR_OK
               : lr_error(d->params->log, LR_BAD_INPUT,
                          "none of the %g counts lies in a LOR that an active voxel reaches: check "
                          "that grid and data belong together",
                          fit.left_out_counts));

    d->has_before = true;
    d->num_rounds++;
    d->done += count;
    const lr_comm_info now = lr_comm_get_info(d->ranks.comm);
    lr_iteration done = {.number = d->params->iterations_before + d->done,
                         .has_fit = true,
                         .log_likelihood = fit.log_likelihood,
                         .measured_counts = fit.measured_counts,
                         .estimated_counts = fit.estimated_counts,
                         .left_out_lors = fit.left_out_lors,
                         .left_out_counts = fit.left_out_counts,
                         .sensitive_counts = sums.product,
                         .seconds = lr_clock_seconds() - begin,
                         .project_seconds = d->project_s,
                         .exchange_seconds = now.moving_s - before.moving_s,
                         .waiting_seconds = now.waiting_s - before.waiting_s,
                         .sent_bytes = now.sent_bytes - before.sent_bytes,
                         .device_seconds = d->device_s,
                         .image = &d->images[IMAGE]};
    const lr_recon_params *params = d->params;
    const lr_distributed_state state = {.iterations = done.number,
                                        .local_iterations = d->local,
                                        .log_likelihood = d->best,
                                        .image = &d->images[IMAGE],
                                        .of_em = &d->images[OF_EM]};
    LR_TRY(d->keep != NULL ? d->keep(d->params->user, &state) : LR_OK);

    return params->iteration != NULL ? params->iteration(params->user, &done) : LR_OK;
}

/* --- start --- */

static lr_status run(struct distributed *d)
{
    const int64_t num_voxels = lr_operator_get_info(d->params->op)->num_voxels;
    LR_TRY(lr_ranks_init(&d->ranks, d->params->comm, num_voxels, d->params->log));
    LR_TRY(lr_subsets_init(&d->subsets, d->params));
    lr_place *of_values = d->subsets.is_sparse ? NULL : d->place;
    lr_vector_params made = {.place = d->place, .count = num_voxels, .name = "images of a rank", .log = d->params->log};
    for (int k = 0; k < NUM_IMAGES; k++) LR_TRY(lr_vector_create(&made, &d->images[k]));
    made.place = of_values;
    made.count = d->subsets.most_values;
    LR_TRY(lr_vector_create(&made, &d->values));
    LR_TRY(lr_compared_init(&d->compared, &d->subsets, of_values, true));
    d->own_counts = d->subsets.own_counts;

    LR_TRY(lr_operator_prepare(d->params->op, d->subsets.is_sparse));
    /* The sensitivity of all ranks' LORs is found, then the start image. */
    lr_vector *sensitivity = &d->images[SENSITIVITY], *seen = &d->images[SEEN], *image = &d->images[IMAGE];
    const lr_distributed_state *from = d->from;
    const lr_vector *initial = from == NULL ? d->params->initial : NULL;
    lr_vector_sums sums;
    double level;
    LR_TRY(lr_operator_sensitivity(d->params->op, NULL, sensitivity));
    LR_TRY(lr_comm_sum(d->ranks.comm, sensitivity));
    LR_TRY(lr_vector_add_up(sensitivity, NULL, &sums));
    LR_TRY(lr_find_level(&d->compared, sums.sum, &level));
    LR_TRY(lr_vector_copy(sensitivity, seen));
    LR_TRY(lr_start_seen(seen, image, 1.0));
    LR_TRY(lr_vector_fill(image, initial == NULL ? level : 1.0));
    LR_TRY(lr_vector_multiply(image, seen));
    LR_TRY(initial != NULL ? lr_start_from(initial, image, d->params->log) : LR_OK);
    LR_TRY(lr_vector_add_up(image, NULL, &sums));
    if (!(sums.largest > 0.0)) {
        return lr_error(d->params->log, LR_BAD_INPUT,
                        "no voxel that a LOR in coincidence sees is above 0: check the grid, the "
                        "scanner's coincidence rules, and the image to start from");
    }
    d->has_image = true;
    if (from != NULL) {
        LR_TRY(lr_vector_copy(from->image, image));
        LR_TRY(lr_vector_copy(from->image, &d->images[BEFORE]));
        LR_TRY(lr_vector_copy(from->of_em, &d->images[OF_EM]));
        d->best = from->log_likelihood;
        d->local = from->local_iterations;
        d->has_before = true;
    }

    while (d->done < d->wanted) LR_TRY(run_round(d));
    lr_info(d->params->log, "%d iterations with %d exchanges; %d of them gave up the ranks' images for that of ML-EM",
            d->done, d->num_rounds, d->num_refused);
    return LR_OK;
}

static lr_status check_params(const lr_distributed_params *params, const lr_vector *image)
{
    const lr_recon_params *recon = &params->recon;
    if (recon->op == NULL || recon->data == NULL || image == NULL || params->local_iterations < 0 ||
        recon->iterations < 0) {
        return lr_error(recon->log, LR_USAGE,
                        "distributed ML-EM needs an operator, data, an image to go to, and "
                        "iterations that are not negative");
    }
    const lr_distributed_state *from = params->from;
    const int64_t num_voxels = lr_operator_get_info(recon->op)->num_voxels;
    if (from != NULL &&
        (from->image->count != num_voxels || from->of_em->count != num_voxels || from->local_iterations < 1)) {
        return lr_error(recon->log, LR_USAGE,
                        "distributed ML-EM goes on from two images of the operator's voxels, and "
                        "at least one local iteration");
    }
    const bool is_mlem = recon->algorithm == LR_ALGORITHM_OSEM && recon->subsets <= 1 && recon->prior == NULL;
    return is_mlem ? lr_recon_check_vectors(recon)
                   : lr_error(recon->log, LR_USAGE, "distributed ML-EM has neither subsets, nor steps, nor a prior");
}

lr_status lr_recon_distributed_sized(size_t given_bytes, const lr_distributed_params *given, lr_vector *image)
{
    LR_TAKE(lr_distributed_params, params, given, given_bytes);
    lr_recon_params recon = params->recon;
    LR_TRY(lr_comm_fail(recon.comm, check_params(params, image)));
    recon.subset_of = NULL;
    recon.interleave = 0;
    struct distributed d = {.params = &recon,
                            .place = lr_operator_place(recon.op),
                            .from = params->from,
                            .keep = params->keep,
                            .local = 1, /* grows by one in each round until the likelihood falls */
                            .most = params->local_iterations > 0 ? params->local_iterations : DEFAULT_LOCAL,
                            .wanted = recon.iterations > 0 ? recon.iterations : DEFAULT_ITERATIONS};
    lr_status status = run(&d);
    if (d.has_image && (status == LR_OK || status == LR_CANCELLED)) {
        const lr_status got = lr_vector_copy(&d.images[status == LR_OK ? IMAGE : BEFORE], image);
        status = got != LR_OK ? got : status;
    }
    for (int k = 0; k < NUM_IMAGES; k++) lr_vector_destroy(&d.images[k]);
    lr_vector_destroy(&d.values);
    lr_compared_finish(&d.compared);
    lr_subsets_finish(&d.subsets);
    free(d.ranks.offsets);

    return lr_comm_fail(params->recon.comm, status);
}
