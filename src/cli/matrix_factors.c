/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "matrix.h"

#include <stdio.h>
#include <string.h>

const struct cli_option matrix_factor_options[] = {
    {"--efficiencies", "FILE", "one number per crystal (.npy or text), multiplied in", false},
    LOR_FACTORS_MU_AS("lines"),
    {0},
};

/* Adds "efficiencies FILE" to the words. */
static void say(struct matrix_factors *factors, const char *what, const char *path)
{
    const size_t used = strlen(factors->words);
    snprintf(factors->words + used, sizeof(factors->words) - used, "%s%s %s", used > 0 ? ", " : "", what, path);
}

static void add_input(struct matrix_factors *factors, const char *name, const void *bytes, size_t num_bytes)
{
    factors->inputs[factors->num_inputs++] = (lr_matrix_input){name, bytes, (int64_t)num_bytes};
}

/* The values, since a file of the same name may hold others when the matrix is gone on with. */
static void list_inputs(struct matrix_factors *factors, const struct setup *setup)
{
    const float *efficiencies = setup->factors.efficiencies;
    if (efficiencies != NULL)
        add_input(factors, "efficiencies", efficiencies, (size_t)setup->scanner->num_crystals * sizeof(*efficiencies));
    if (setup->mu != NULL) {
        const lr_grid *grid = &setup->mu->grid;
        add_input(factors, "size of the attenuation map", grid->size, sizeof(grid->size));
        add_input(factors, "voxels of the attenuation map", grid->voxel_mm, sizeof(grid->voxel_mm));
        add_input(factors, "origin of the attenuation map", grid->origin_mm, sizeof(grid->origin_mm));
        add_input(factors, "values of the attenuation map", setup->mu->values,
                  (size_t)lr_grid_num_voxels(grid) * sizeof(*setup->mu->values));
    }
}

lr_status matrix_factors_read(struct matrix_factors *factors, struct cli_args *args, struct setup *setup)
{
    const char *efficiencies = args_text(args, "--efficiencies"), *mu = args_text(args, "--mu");
    const enum mu_way way = lor_factors_mu_as(args, MU_LINES);
    CLI_TRY(args->status);
    if (efficiencies != NULL) {
        CLI_TRY(lor_factors_efficiencies(setup, efficiencies));
        say(factors, "efficiencies", efficiencies);
    }
    if (mu != NULL) say(factors, way == MU_FACTORS ? "attenuation factors" : "attenuation along lines", mu);
    CLI_TRY(lor_factors_give(setup, way));
    if (factors->words[0] == '\0') strcpy(factors->words, "none");
    list_inputs(factors, setup);
    return LR_OK;
}
