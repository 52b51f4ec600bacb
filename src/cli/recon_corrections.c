/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon --operator listmode: what is known of each event beside it, and the order of events. */
#include "recon.h"

#include <stdlib.h>
#include <string.h>

void recon_check_corrections(struct cli_args *args)
{
    static const char *const others[] = {"--mu",     "--efficiencies", "--additive", "--randoms",
                                         "--frames", "--without-tof",  NULL};
    for (int k = 0; args_has(args, "--corrections") && others[k] != NULL; k++) {
        if (args_has(args, others[k])) {
            args_complain(args,
                          "%s and --corrections exclude each other: the file has attenuation, "
                          "efficiencies, and randoms and scatter per bin of time of flight, of the "
                          "whole list",
                          others[k]);
        }
    }
    if (args_has(args, "--additive") && args_has(args, "--frames"))
        args_complain(args, "--additive is of the whole acquisition, and --frames cut it up");
}

/* Entries of the file belong to events by their order alone. */
static lr_status check_order(const struct recon *recon)
{
    const lr_event_corrections *corrections = recon->inputs.corrections;
    const lr_events_format format = recon->inputs.events_format;
    const lr_event_counts *counts = &recon->inputs.events;
    const int64_t count = recon->inputs.list != NULL ? recon->inputs.list->count : recon->own.handed;
    if (format != LR_EVENTS_GE) {
        return report_error(recon->setup.report, LR_USAGE,
                            "%s: --corrections belongs to GE list mode (.BLF), and this is %s", recon->request.events,
                            lr_events_format_name(format));
    }
    const bool is_part = recon->request.until_damage && count < corrections->count;
    if (counts->unknown_crystals > 0 || (count != corrections->count && !is_part)) {
        return report_error(recon->setup.report, LR_BAD_INPUT,
                            "%s: has corrections of %lld events, and %s has %lld, of which the "
                            "scanner lacks the crystals of %lld: give the file that belongs to the "
                            "list, and the list's scanner",
                            recon->request.corrections, (long long)corrections->count, recon->request.events,
                            (long long)(count + counts->unknown_crystals), (long long)counts->unknown_crystals);
    }
    return LR_OK;
}

/* For checkpoints, before ranks take their own. */
static void digest_numbers(struct recon *recon, const float *numbers, int64_t count)
{
    if (recon->request.checkpoint != NULL)
        recon->beside = recon_digest(recon->beside, numbers, count * (int64_t)sizeof(*numbers));
}

static void digest_corrections(struct recon *recon)
{
    const lr_event_corrections *corrections = recon->inputs.corrections;
    digest_numbers(recon, corrections->factors, corrections->count);
    digest_numbers(recon, corrections->additive, corrections->count);
    digest_numbers(recon, corrections->lors->values, corrections->lors->count);
}

lr_status recon_read_corrections(struct recon *recon)
{
    struct recon_inputs *inputs = &recon->inputs;
    if (recon->request.corrections == NULL) return LR_OK;
    inputs->corrections =
        lr_event_corrections_read(recon->request.corrections, recon->setup.lors, &recon->setup.report->log);
    if (inputs->corrections == NULL) return report_reason(recon->setup.report);
    digest_corrections(recon);
    inputs->sensitivity_factors = lr_lor_data_source(inputs->corrections->lors);
    recon->setup.params.factors = &inputs->sensitivity_factors;
    return check_order(recon);
}

void recon_keep_event(struct recon_inputs *inputs, int64_t from, int64_t to)
{
    lr_event_corrections *corrections = inputs->corrections;
    inputs->list->events[to] = inputs->list->events[from];
    if (corrections != NULL) {
        corrections->factors[to] = corrections->factors[from];
        corrections->additive[to] = corrections->additive[from];
    }
}

/* An array of one thing for each event. */
struct of_events {
    void *items;
    size_t item_bytes;
};

/* Event k goes to the k mod subsets-th of as many runs. */
static bool deal(const struct of_events *of, int64_t count, int subsets)
{
    char *items = of->items, *dealt = malloc((size_t)count * of->item_bytes);
    int64_t to = 0;
    if (dealt == NULL) return false;
    for (int first = 0; first < subsets; first++)
        for (int64_t k = first; k < count; k += subsets)
            memcpy(dealt + (size_t)to++ * of->item_bytes, items + (size_t)k * of->item_bytes, of->item_bytes);
    memcpy(items, dealt, (size_t)count * of->item_bytes);
    free(dealt);
    return true;
}

bool recon_deals_events(const struct recon *recon)
{
    return recon->request.subsets > 1 && recon->inputs.events_format == LR_EVENTS_GE;
}

lr_status recon_deal_events(struct recon *recon)
{
    struct recon_inputs *inputs = &recon->inputs;
    lr_event_corrections *corrections = inputs->corrections;
    const int subsets = recon->request.subsets;
    const int64_t count = inputs->list->count;
    const struct of_events of[3] = {{inputs->list->events, sizeof(lr_event)},
                                    {corrections != NULL ? corrections->factors : NULL, sizeof(float)},
                                    {corrections != NULL ? corrections->additive : NULL, sizeof(float)}};
    if (!recon_deals_events(recon)) return LR_OK;
    for (int k = 0; k < 3; k++)
        if (of[k].items != NULL && !deal(&of[k], count, subsets))
            return report_error(recon->setup.report, LR_FAILED, "no memory to deal events");
    return LR_OK;
}

/* Of LOR data: spread evenly over the window, as randoms are. */
static lr_status spread_data(struct recon *recon, double window_mm)
{
    const lr_log *log = &recon->setup.report->log;
    const lr_lors *lors = recon->setup.lors;
    lr_lor_data *data = lr_lor_data_read(recon->request.additive, lors, log);
    lr_lor_data *all = data != NULL ? lr_lor_data_expand(data, lors, log) : NULL;
    lr_lor_data_destroy(data);
    if (all == NULL) return report_reason(recon->setup.report);
    recon->inputs.additive_sum = common_sum(all->values, all->count);
    digest_numbers(recon, all->values, all->count);
    for (int64_t k = 0; k < recon->inputs.list->count; k++) {
        const int32_t *crystals = recon->inputs.list->events[k].crystals;
        const int64_t lor = lr_lors_number(lors, crystals[0], crystals[1]);
        recon->inputs.additive->values[k] = (float)(all->values[lor] / window_mm);
    }
    lr_lor_data_destroy(all);
    return LR_OK;
}

lr_status recon_read_event_terms(struct recon *recon, double window_mm)
{
    struct recon_inputs *inputs = &recon->inputs;
    inputs->additive = lr_lor_data_create(lr_operator_get_info(recon->setup.op)->lors, &recon->setup.report->log);
    if (inputs->additive == NULL) return report_reason(recon->setup.report);
    if (inputs->corrections == NULL) return spread_data(recon, window_mm);
    memcpy(inputs->additive->values, inputs->corrections->additive, (size_t)inputs->list->count * sizeof(float));
    return LR_OK;
}
