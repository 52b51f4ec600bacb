/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "lor_factors.h"

#include "common.h"

#include <stdlib.h>

enum mu_way lor_factors_mu_as(struct cli_args *args, enum mu_way usual)
{
    static const char *const ways[] = {[MU_LINES] = "lines", [MU_FACTORS] = "factors", NULL};
    const enum mu_way way = (enum mu_way)args_word(args, "--mu-as", ways, (int)usual);
    if (args_has(args, "--mu-as") && !args_has(args, "--mu")) args_complain(args, "--mu-as needs --mu IMAGE");
    if (args_has(args, "--mu-steps") && way != MU_LINES) args_complain(args, "--mu-steps belongs to --mu-as lines");
    return way;
}

static void add_source(struct lor_factors *factors, lr_lor_source source)
{
    factors->sources.sources[factors->sources.num_sources++] = source;
}

lr_status lor_factors_efficiencies(struct setup *setup, const char *path)
{
    const lr_scanner *scanner = setup->scanner;
    struct lor_factors *factors = &setup->factors;
    factors->efficiencies = common_floats(setup->report, scanner->num_crystals, "crystal efficiencies");
    if (factors->efficiencies == NULL) return LR_FAILED;
    CLI_TRY(lr_crystal_values_read(path, scanner, factors->efficiencies, &setup->report->log));
    factors->product = (lr_crystal_product){setup->lors, factors->efficiencies, 1, &setup->report->log};
    add_source(factors, lr_crystal_product_source(&factors->product));
    return LR_OK;
}

lr_status lor_factors_attenuate(struct setup *setup)
{
    const lr_attenuation_params params = {
        .lors = setup->lors,
        .mu = setup->mu,
        .threads = setup->params.threads,
        .log = &setup->report->log,
    };
    setup->params.mu = NULL;
    setup->factors.attenuation = lr_attenuation_create(&params);
    if (setup->factors.attenuation == NULL) return report_reason(setup->report);
    add_source(&setup->factors, lr_attenuation_source(setup->factors.attenuation));
    return LR_OK;
}

lr_status lor_factors_give(struct setup *setup, enum mu_way way)
{
    struct lor_factors *factors = &setup->factors;
    CLI_TRY(way == MU_FACTORS && setup->mu != NULL ? lor_factors_attenuate(setup) : LR_OK);
    if (factors->sources.num_sources > 0) {
        factors->sources.log = &setup->report->log;
        factors->source = lr_source_product_source(&factors->sources);
        setup->params.factors = &factors->source;
    }
    return LR_OK;
}

void lor_factors_finish(struct lor_factors *factors)
{
    lr_attenuation_destroy(factors->attenuation);
    free(factors->efficiencies);
    *factors = (struct lor_factors){.efficiencies = NULL};
}
