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
    return LR_OK;
}

void matrix_factors_finish(struct matrix_factors *factors)
{
    lor_factors_finish(&factors->lor);
    factors->words[0] = '\0';
}
