/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "recon/request.h"

#include "base/log.h"
#include "model/lors/lor_check.h"

#include <float.h>
#include <limits.h>
#include <math.h>

enum { MAX_ITERATIONS = 1000000 };

static const struct lr_update_rule *const rules[] = {
    [LR_ALGORITHM_OSEM] = &lr_rule_em,
    [LR_ALGORITHM_RAMLA] = &lr_rule_ramla,
    [LR_ALGORITHM_BSREM] = &lr_rule_bsrem,
};
enum { NUM_RULES = sizeof(rules) / sizeof(rules[0]) };

const struct lr_update_rule *lr_recon_rule(lr_recon_algorithm algorithm)
{
    return rules[algorithm];
}

static lr_status check_rule(const lr_recon_params *params)
{
    const int algorithm = (int)params->algorithm;
    if (algorithm < 0 || algorithm >= NUM_RULES)
        return lr_error(params->log, LR_USAGE, "algorithm %d does not exist: give 0 to %d", algorithm, NUM_RULES - 1);
    LR_TRY(rules[algorithm]->check(params));
    if (params->prior == NULL) return LR_OK;
    return rules[algorithm]->is_penalised
               ? lr_rdp_check(params->prior, lr_operator_get_info(params->op)->num_voxels, params->log)
               : lr_error(params->log, LR_USAGE, "a prior belongs to BSREM: %s maximises the likelihood alone",
                          rules[algorithm]->name);
}

static lr_status check_iterations(const lr_recon_params *params)
{
    const int before = params->iterations_before;
    if (params->iterations < 0 || params->iterations > MAX_ITERATIONS) {
        return lr_error(params->log, LR_USAGE, "%d iterations: give 1 to %d, or 0 for the default", params->iterations,
                        MAX_ITERATIONS);
    }
    if (before < 0 || before > INT_MAX - MAX_ITERATIONS) {
        return lr_error(params->log, LR_USAGE, "%d iterations before the first one: give 0 to %d", before,
                        INT_MAX - MAX_ITERATIONS);
    }
    return LR_OK;
}

static lr_status check_subsets(const lr_recon_params *params, const lr_lors *lors)
{
    const bool is_many = lr_comm_get_info(params->comm).size > 1;
    const bool of_events = lr_operator_get_info(params->op)->of_events;
    const int subsets = params->subsets, interleave = params->interleave;
    if (is_many && subsets > 1 && params->subset_of == NULL) {
        return lr_error(params->log, LR_USAGE,
                        "where several ranks reconstruct together, subset_of must say to which of "
                        "the %d subsets this rank's pairs belong",
                        subsets);
    }
    if (subsets < 0 || (!is_many && lors->scanner == NULL && subsets > lors->num_pairs)) {
        return lr_error(params->log, LR_USAGE,
                        "%d subsets: they are made of %s, of which there are %lld; give 1 to "
                        "that many",
                        subsets,
                        of_events               ? "ranges of events"
                        : lors->scanner == NULL ? "views"
                                                : "LORs of module pairs",
                        (long long)lors->num_pairs);
    }
    if (interleave < 0 || (interleave > 1 && lors->scanner == NULL) || (interleave > 0 && subsets % interleave != 0)) {
        return lr_error(params->log, LR_USAGE,
                        "%d subsets of LORs interleaved %d-fold: give a divisor of their number, and 1 "
                        "for histo-images",
                        subsets, interleave);
    }
    return LR_OK;
}

static lr_status check_additive(const lr_recon_params *params, const lr_lors *lors)
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
    return params->additive != NULL ? lr_lor_data_check(params->additive, lors, "additive term", params->log) : LR_OK;
}

lr_status lr_recon_check(const lr_recon_params *params, const lr_vector *image)
{
    const bool has_image = image != NULL && (image->values != NULL || image->storage != NULL);
    if (params->op == NULL || params->data == NULL || !has_image)
        return lr_error(params->log, LR_USAGE, "a reconstruction needs an operator, data and an image to go to");
    LR_TRY(check_iterations(params));
    const lr_operator_info *info = lr_operator_get_info(params->op);
    if (image->count != info->num_voxels) {
        return lr_error(params->log, LR_USAGE, "the image has %lld voxels where the operator has %lld",
                        (long long)image->count, (long long)info->num_voxels);
    }
    const lr_lors *lors = info->lors;
    LR_TRY(check_rule(params));
    LR_TRY(check_subsets(params, lors));
    LR_TRY(lr_lor_data_check(params->data, lors, "data", params->log));
    return check_additive(params, lors);
}

lr_status lr_recon_check_initial(const lr_recon_params *params, int64_t num_voxels)
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
