/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Maximum-likelihood expectation maximisation: Shepp and Vardi, Maximum Likelihood Reconstruction
 * for Emission Tomography (1982). Ordered subsets of which there is one. */
#include <lr/recon.h>

enum { DEFAULT_ITERATIONS = 10 };

lr_status lr_mlem(const lr_mlem_params *params, lr_vector *image)
{
    const lr_osem_params all = {.op = params->op,
                                .data = params->data,
                                .additive = params->additive,
                                .initial = params->initial,
                                .iterations = params->iterations != 0 ? params->iterations : DEFAULT_ITERATIONS,
                                .subsets = 1,
                                .iteration = params->iteration,
                                .user = params->user,
                                .log = params->log,
                                .progress = params->progress};
    return lr_osem(&all, image);
}
