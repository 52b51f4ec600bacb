/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Factors by which verbs multiply the matrix's LORs. */
#ifndef LR_CLI_LOR_FACTORS_H
#define LR_CLI_LOR_FACTORS_H

#include "args.h"

#include <lr/lr.h>

struct setup;

/* Efficiencies and attenuation per LOR, of a setup. Zero is valid; sources point into it: it must not move. */
struct lor_factors {
    float *efficiencies; /* owned [num_crystals]; NULL = none */
    lr_crystal_product product;
    lr_attenuation *attenuation;
    lr_source_product sources;
    lr_lor_source source;
};

/* Attenuation along the lines of each element, or by one factor per LOR. */
enum mu_way { MU_LINES, MU_FACTORS };

#define LOR_FACTORS_MU_AS(usual)                                                                                       \
    {                                                                                                                  \
        "--mu-as", "HOW", "--mu along lines, or as factors (one per LOR); default " usual, false                       \
    }

/* --mu-as, `usual` where it is not given; complains where --mu is not, and of --mu-steps that factors have not. */
enum mu_way lor_factors_mu_as(struct cli_args *args, enum mu_way usual);

/* Reads one efficiency per crystal. The setup has its scanner. */
lr_status lor_factors_efficiencies(struct setup *setup, const char *path);

/* Takes the setup's map as factors per LOR instead of samples along each line. */
lr_status lor_factors_attenuate(struct setup *setup);

/* Takes the setup's map, where it has one, in this way, and hands what there is to setup->params. */
lr_status lor_factors_give(struct setup *setup, enum mu_way way);

/* Call it when no operator asks for them any more. */
void lor_factors_finish(struct lor_factors *factors);

#endif
