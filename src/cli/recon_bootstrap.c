/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon --bootstrap: what was measured, drawn again from itself. */
#include "recon.h"

void recon_read_bootstrap(struct cli_args *args, struct recon_request *request)
{
    static const int64_t seeds[2] = {0, INT64_MAX};
    request->bootstraps = args_has(args, "--bootstrap");
    request->bootstrap_seed = (uint64_t)args_int(args, "--bootstrap", 0, seeds);
}

void recon_say_replicate(const struct recon *recon, double before, double after)
{
    report_info(recon->setup.report, "bootstrap replicate of seed %llu: %.9g counts, drawn from %.9g",
                (unsigned long long)recon->request.bootstrap_seed, after, before);
}

lr_status recon_bootstrap_counts(struct recon *recon)
{
    const struct recon_inputs *inputs = &recon->inputs;
    lr_poisson_stream stream = {.seed = recon->request.bootstrap_seed, .purpose = LR_RANDOM_REPLICATE};
    const lr_log *log = &recon->setup.report->log;
    if (!recon->request.bootstraps) return LR_OK;
    const double before = common_sum(inputs->data->values, inputs->data->count);
    CLI_TRY(lr_poisson_part(inputs->data->values, inputs->data->count, &stream, log));
    if (inputs->delayeds != NULL) {
        stream.purpose = LR_RANDOM_DELAYEDS;
        CLI_TRY(lr_poisson_part(inputs->delayeds->values, inputs->delayeds->count, &stream, log));
    }
    recon_say_replicate(recon, before, common_sum(inputs->data->values, inputs->data->count));
    return LR_OK;
}

lr_status recon_bootstrap_events(struct recon *recon)
{
    lr_event_list *list = recon->inputs.list;
    if (!recon->request.bootstraps) return LR_OK;
    const double before = list->info.weight;
    CLI_TRY(lr_event_list_bootstrap(list, recon->request.bootstrap_seed, &recon->setup.report->log));
    recon_say_replicate(recon, before, list->info.weight);
    return LR_OK;
}
