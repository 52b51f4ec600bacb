/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "lor_factors.h"

#include <stdlib.h>

static void add_source(struct lor_factors *factors, lr_lor_source source)
{
    factors->sources.sources[factors->sources.num_sources++] = source;
}

lr_status lor_factors_efficiencies(struct lor_factors *factors, const char *path,
                                   const struct setup *setup)
{
    const lr_scanner *scanner = setup->scanner;
    factors->efficiencies =
        common_floats(setup->report, scanner->num_crystals, "crystal efficiencies");
    if (factors->efficiencies == NULL) {
        return LR_FAILED;
    }
    CLI_TRY(lr_crystal_values_read(path, scanner, factors->efficiencies, &setup->report->log));
    factors->product =
        (lr_crystal_product){setup->lors, factors->efficiencies, 1, &setup->report->log};
    add_source(factors, lr_crystal_product_source(&factors->product));
    return LR_OK;
}

lr_status lor_factors_attenuate(struct lor_factors *factors, struct setup *setup)
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
    add_source(factors, lr_attenuation_source(factors->attenuation));
    return LR_OK;
}

void lor_factors_give(struct lor_factors *factors, struct setup *setup)
{
    if (factors->sources.num_sources > 0) {
        factors->sources.log = &setup->report->log;
        factors->source = lr_source_product_source(&factors->sources);
        setup->params.factors = &factors->source;
    }
}

void lor_factors_finish(struct lor_factors *factors)
{
    lr_attenuation_destroy(factors->attenuation);
    free(factors->efficiencies);
    *factors = (struct lor_factors){.efficiencies = NULL};
}
