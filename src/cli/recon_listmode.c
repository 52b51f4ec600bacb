/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon --operator listmode: events one by one instead of LOR data. */
#include "recon.h"

#include <lr/listmode.h>
#include <stdlib.h>
#include <string.h>

const struct cli_option recon_listmode_options[] = {
    {"--kernel", "NAME", "tube (of response) or line (a thin ray); default tube", false},
    {"--tube-mm", "MM", "diameter of the tube; default where its Gaussian has fallen to 1 %",
     false},
    {"--tube-fwhm-mm", "MM", "FWHM of the tube's Gaussian; default half of the crystals' pitch",
     false},
    {"--as-paper", NULL, "shares and times of flight as Cui et al. 2011 have them", false},
    {"--tof-ps", "PS", "time resolution, FWHM; default: of the events, or the scanner's", false},
    {"--without-tof", NULL, "leave times of flight out", false},
    {"--sensitivity-lines", "N", "LORs of the sensitivity, at most; default 33,554,432", false},
    {0},
};

/* --- events --- */

static lr_status bin_delayeds(struct recon *recon, const lr_event_list *list)
{
    const lr_log *log = &recon->setup.report->log;
    int64_t count = 0;
    int64_t *lors = malloc((size_t)(list->count > 0 ? list->count : 1) * sizeof(*lors));
    if (lors == NULL) {
        return report_error(recon->setup.report, LR_FAILED, "no memory for the delayeds");
    }
    for (int64_t k = 0; k < list->count; k++) {
        const lr_event *event = &list->events[k];
        if (event->is_delayed) {
            lors[count++] =
                lr_lors_number(recon->setup.lors, event->crystals[0], event->crystals[1]);
        }
    }
    recon->inputs.delayeds = lr_lor_data_bin(lors, count, log);
    free(lors);
    return recon->inputs.delayeds != NULL ? LR_OK : report_reason(recon->setup.report);
}

/* Delayeds, and prompts out of coincidence, which no sensitivity counts, go. */
static void keep_prompts(const lr_lors *lors, lr_event_list *list)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < list->count; k++) {
        const lr_event *event = &list->events[k];
        const int64_t lor = lr_lors_number(lors, event->crystals[0], event->crystals[1]);
        const bool counts = !event->is_delayed && lor >= 0 && lr_lors_in_coincidence(lors, lor);
        list->info.counts.not_in_coincidence += !event->is_delayed && !counts;
        if (counts) {
            list->events[kept++] = *event;
        }
    }
    list->count = kept;
}

static lr_status read_events(struct recon *recon)
{
    struct recon_inputs *inputs = &recon->inputs;
    const lr_events_source source = recon_events_source(recon);
    inputs->list = lr_event_list_read(&source);
    if (inputs->list == NULL) {
        return report_reason(recon->setup.report);
    }
    if (inputs->list->info.counts.delayeds > 0 && recon->request.additive == NULL) {
        CLI_TRY(bin_delayeds(recon, inputs->list));
    }
    keep_prompts(recon->setup.lors, inputs->list);
    inputs->events = inputs->list->info.counts;
    recon_say_events(recon);
    return inputs->list->count > 0
               ? LR_OK
               : report_error(recon->setup.report, LR_BAD_INPUT,
                              "%s: holds no prompts in coincidence, of which no image comes",
                              recon->request.events);
}

/* What measured means: each event once, or as often as its weight says. */
static lr_status weigh_events(struct recon *recon)
{
    const lr_lors *layout = lr_operator_get_info(recon->setup.op)->lors;
    recon->inputs.data = lr_lor_data_create(layout, &recon->setup.report->log);
    if (recon->inputs.data == NULL) {
        return report_reason(recon->setup.report);
    }
    for (int64_t k = 0; k < recon->inputs.list->count; k++) {
        recon->inputs.data->values[k] = recon->inputs.list->events[k].weight;
    }
    return LR_OK;
}

/* --- randoms --- */

/* Width over which randoms of a LOR are spread evenly, in mm of the place; 1 without time of flight. */
static double window_mm(const struct recon *recon, bool has_tof)
{
    const lr_events_info *info = &recon->inputs.list->info;
    return !has_tof || info->num_tof_bins < 1
               ? 1.0
               : (double)info->tof_edges_mm[info->num_tof_bins] - (double)info->tof_edges_mm[0];
}

static lr_status estimate_randoms(struct recon *recon, bool has_tof)
{
    struct recon_inputs *inputs = &recon->inputs;
    const lr_log *log = &recon->setup.report->log;
    const double window = window_mm(recon, has_tof);
    if (inputs->delayeds == NULL || inputs->delayeds->count == 0 ||
        recon->request.randoms == RECON_RANDOMS_NONE) {
        return LR_OK;
    }
    if (has_tof && inputs->list->info.num_tof_bins < 1) {
        return report_error(recon->setup.report, LR_USAGE,
                            "%s: the width of its coincidence window is not known, over which "
                            "randoms are spread: --without-tof, or --randoms none",
                            recon->request.events);
    }
    inputs->randoms = lr_randoms_estimate(recon->setup.lors, inputs->delayeds, log);
    inputs->additive = lr_lor_data_create(lr_operator_get_info(recon->setup.op)->lors, log);
    if (inputs->randoms == NULL || inputs->additive == NULL) {
        return report_reason(recon->setup.report);
    }
    const lr_crystal_product *product = &inputs->randoms->product;
    for (int64_t k = 0; k < inputs->list->count; k++) {
        const int32_t *crystals = inputs->list->events[k].crystals;
        inputs->additive->values[k] = (float)(product->scale * product->values[crystals[0]] *
                                              product->values[crystals[1]] / window);
    }
    return LR_OK;
}

/* --- the operator --- */

static lr_listmode_params read_params(struct cli_args *args)
{
    static const char *const kernels[] = {"tube", "line", NULL};
    static const int64_t lines[2] = {1, INT64_MAX};
    lr_listmode_params params = {
        .kernel = (lr_listmode_kernel)args_word(args, "--kernel", kernels, LR_LISTMODE_TUBE),
        .tube = {.width_mm = direct_number(args, "--tube-mm", 0, true),
                 .fwhm_mm = direct_number(args, "--tube-fwhm-mm", 0, true),
                 .as_paper = args_has(args, "--as-paper")},
        .sensitivity_lines = args_int(args, "--sensitivity-lines", 0, lines),
    };
    if (params.kernel == LR_LISTMODE_LINE &&
        (args_has(args, "--tube-mm") || args_has(args, "--tube-fwhm-mm"))) {
        args_complain(args, "--tube-mm and --tube-fwhm-mm belong to --kernel tube");
    }
    if (args_has(args, "--tof-ps") && args_has(args, "--without-tof")) {
        args_complain(args, "--tof-ps and --without-tof contradict each other");
    }
    return params;
}

/* What is said of the time resolution goes before what the file says. */
static bool settle_time(struct recon *recon, struct cli_args *args)
{
    lr_events_info *info = &recon->inputs.list->info;
    const double asked = direct_number(args, "--tof-ps", 0, true);
    if (asked > 0) {
        info->tof_resolution_ps = asked;
        for (int k = 0; info->kinds.tof != NULL && k < info->kinds.count * info->kinds.count; k++) {
            info->kinds.tof[k].resolution_ps = asked;
        }
    }
    return info->has_tof && !args_has(args, "--without-tof");
}

static lr_status make_operator(struct recon *recon, lr_listmode_params *params, bool has_tof)
{
    const struct setup *setup = &recon->setup;
    const lr_event_list *list = recon->inputs.list;
    params->lors = setup->lors;
    params->grid = &setup->grid;
    params->events = list->events;
    params->count = list->count;
    params->info = has_tof ? &list->info : NULL;
    params->num_ranges = recon->request.subsets;
    params->factors = setup->params.factors;
    params->backend = setup->params.backend;
    params->threads = setup->params.threads;
    params->device = setup->params.device;
    params->log = &setup->report->log;
    params->progress = &recon->bar.within;
    recon->setup.op = lr_listmode_create(params);
    return recon->setup.op != NULL ? LR_OK : report_reason(setup->report);
}

static void say_operator(const struct recon *recon, bool has_tof)
{
    const lr_operator_info *info = lr_operator_get_info(recon->setup.op);
    const lr_listmode_info *listmode = lr_listmode_get_info(recon->setup.op);
    report_info(recon->setup.report, "%lld events, %s time of flight, %s; backend %s, %s",
                (long long)listmode->count, has_tof ? "with" : "without",
                listmode->kernel == LR_LISTMODE_LINE ? "thin lines" : "tubes of response",
                info->backend, info->device);
}

lr_status recon_open_listmode(struct recon *recon, struct cli_args *args)
{
    lr_listmode_params params = read_params(args);
    CLI_TRY(args->status);
    if (recon->request.additive != NULL) {
        return report_error(recon->setup.report, LR_USAGE,
                            "--additive is of LOR data: list mode takes randoms from delayeds");
    }
    CLI_TRY(read_events(recon));
    CLI_TRY(recon_read_factors(recon));
    const bool has_tof = settle_time(recon, args);
    CLI_TRY(args->status);
    CLI_TRY(make_operator(recon, &params, has_tof));
    say_operator(recon, has_tof);
    CLI_TRY(weigh_events(recon));
    CLI_TRY(estimate_randoms(recon, has_tof));
    return recon_read_initial(recon);
}
