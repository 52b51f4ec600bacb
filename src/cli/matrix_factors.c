/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "matrix.h"

#include <stdio.h>
#include <string.h>

const struct cli_option matrix_factor_options[] = {
    {"--efficiencies", "FILE", "one number per crystal (.npy or text), multiplied in", false},
    {"--mu-as", "HOW", "--mu along lines, or as factors (one per LOR); default lines", false},
    {0},
};

/* Adds "efficiencies FILE" to the words. */
static void say(struct matrix_factors *factors, const char *what, const char *path)
{
    const size_t used = strlen(factors->words);
    snprintf(factors->words + used, sizeof(factors->words) - used, "%s%s %s", used > 0 ? ", " : "",
             what, path);
}

static void add_input(struct matrix_factors *factors, const char *name, const void *bytes,
                      size_t num_bytes)
{
    factors->inputs[factors->num_inputs++] = (lr_matrix_input){name, bytes, (int64_t)num_bytes};
}

/* The values, since a file of the same name may hold others when the matrix is gone on with. */
static void list_inputs(struct matrix_factors *factors, const struct setup *setup)
{
    if (factors->lor.efficiencies != NULL) {
        add_input(factors, "efficiencies", factors->lor.efficiencies,
                  (size_t)setup->scanner->num_crystals * sizeof(*factors->lor.efficiencies));
    }
    if (setup->mu != NULL) {
        const lr_grid *grid = &setup->mu->grid;
        add_input(factors, "size of the attenuation map", grid->size, sizeof(grid->size));
        add_input(factors, "voxels of the attenuation map", grid->voxel_mm, sizeof(grid->voxel_mm));
        add_input(factors, "origin of the attenuation map", grid->origin_mm,
                  sizeof(grid->origin_mm));
        add_input(factors, "values of the attenuation map", setup->mu->values,
                  (size_t)lr_grid_num_voxels(grid) * sizeof(*setup->mu->values));
    }
}

lr_status matrix_factors_read(struct matrix_factors *factors, struct cli_args *args,
                              struct setup *setup)
{
    static const char *const ways[] = {"lines", "factors", NULL};
    const char *efficiencies = args_text(args, "--efficiencies"), *mu = args_text(args, "--mu");
    const bool as_factors = args_word(args, "--mu-as", ways, 0) == 1;
    if (args_has(args, "--mu-as") && mu == NULL) {
        args_complain(args, "--mu-as needs --mu IMAGE");
    }
    CLI_TRY(args->status);
    if (efficiencies != NULL) {
        CLI_TRY(lor_factors_efficiencies(&factors->lor, efficiencies, setup));
        say(factors, "efficiencies", efficiencies);
    }
    if (mu != NULL && as_factors) {
        CLI_TRY(lor_factors_attenuate(&factors->lor, setup));
        say(factors, "attenuation factors", mu);
    } else if (mu != NULL) {
        say(factors, "attenuation along lines", mu);
    }
    lor_factors_give(&factors->lor, setup);
    if (factors->words[0] == '\0') {
        strcpy(factors->words, "none");
    }
    list_inputs(factors, setup);
    return LR_OK;
}

void matrix_factors_finish(struct matrix_factors *factors)
{
    lor_factors_finish(&factors->lor);
    factors->words[0] = '\0';
    factors->num_inputs = 0;
}
