/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "matrix.h"

#include <stdio.h>
#include <stdlib.h>
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

static lr_status read_efficiencies(struct matrix_factors *factors, const char *path,
                                   struct setup *setup)
{
    const lr_scanner *scanner = setup->scanner;
    factors->efficiencies =
        common_floats(setup->report, scanner->num_crystals, "crystal efficiencies");
    if (factors->efficiencies == NULL) {
        return LR_FAILED;
    }
    CLI_TRY(lr_crystal_values_read(path, scanner, factors->efficiencies, &setup->report->log));
    factors->product = (lr_crystal_product){setup->lors, factors->efficiencies, 1};
    factors->sources.sources[factors->sources.num_sources++] =
        lr_crystal_product_source(&factors->product);
    say(factors, "efficiencies", path);
    return LR_OK;
}

static lr_status attenuate(struct matrix_factors *factors, const char *path, struct setup *setup)
{
    const lr_attenuation_params params = {
        .lors = setup->lors,
        .mu = setup->mu,
        .threads = setup->params.threads,
        .log = &setup->report->log,
    };
    setup->params.mu = NULL;
    factors->attenuation = lr_attenuation_create(&params);
    if (factors->attenuation == NULL) {
        return report_reason(setup->report);
    }
    factors->sources.sources[factors->sources.num_sources++] =
        lr_attenuation_source(factors->attenuation);
    say(factors, "attenuation factors", path);
    return LR_OK;
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
        CLI_TRY(read_efficiencies(factors, efficiencies, setup));
    }
    if (mu != NULL && as_factors) {
        CLI_TRY(attenuate(factors, mu, setup));
    } else if (mu != NULL) {
        say(factors, "attenuation along lines", mu);
    }
    if (factors->sources.num_sources > 0) {
        factors->source = lr_source_product_source(&factors->sources);
        setup->params.factors = &factors->source;
    }
    if (factors->words[0] == '\0') {
        strcpy(factors->words, "none");
    }
    return LR_OK;
}

void matrix_factors_finish(struct matrix_factors *factors)
{
    lr_attenuation_destroy(factors->attenuation);
    free(factors->efficiencies);
    *factors = (struct matrix_factors){.efficiencies = NULL};
}
