/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What verbs multiply the matrix's LORs by. */
#ifndef LR_CLI_LOR_FACTORS_H
#define LR_CLI_LOR_FACTORS_H

#include "common.h"

/* Efficiencies and attenuation per LOR. Zero is valid; sources point into it: it must not move. */
struct lor_factors {
    float *efficiencies; /* owned [num_crystals]; NULL = none */
    lr_crystal_product product;
    lr_attenuation *attenuation;
    lr_source_product sources;
    lr_lor_source source;
};

/* Reads one efficiency per crystal. The setup has its scanner. */
lr_status lor_factors_efficiencies(struct lor_factors *factors, const char *path,
                                   const struct setup *setup);

/* Takes the setup's map as factors per LOR instead of samples along each line. */
lr_status lor_factors_attenuate(struct lor_factors *factors, struct setup *setup);

/* Hands what there is to setup->params. */
void lor_factors_give(struct lor_factors *factors, struct setup *setup);

void lor_factors_finish(struct lor_factors *factors);

#endif
