/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/live_listmode.h"

#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void live_listmode_finish(struct live_listmode *listmode)
{
    lr_event_list_destroy(listmode->list);
    lr_lor_data_destroy(listmode->weights);
    lr_lor_data_destroy(listmode->additive);
    *listmode = (struct live_listmode){0};
}

/* --- events --- */

/* Prompts in coincidence, as the sensitivity counts them. */
static void keep_prompts(const lr_lors *lors, lr_event_list *list)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < list->count; k++) {
        const lr_event *event = &list->events[k];
        const int64_t lor = lr_lors_number(lors, event->crystals[0], event->crystals[1]);
        if (!event->is_delayed && lor >= 0 && lr_lors_in_coincidence(lors, lor)) list->events[kept++] = *event;
    }
    list->count = kept;
}

struct drawing {
    lr_event_list *list;
    int64_t room;
    const lr_log *log;
};

static lr_status append(void *user, const lr_event *events, int64_t count)
{
    struct drawing *drawing = user;
    lr_event_list *list = drawing->list;
    LR_TRY(lr_grow(&list->events, &drawing->room, list->count + count,
                   &(struct lr_items){sizeof(*list->events), "events", drawing->log}));
    memcpy(list->events + list->count, events, (size_t)count * sizeof(*events));
    list->count += count;
    return LR_OK;
}

static lr_status draw_pairs(struct live_listmode *listmode, const struct study_view *study,
                            const struct live_request *request, const lr_operator_params *params)
{
    struct drawing drawing = {.log = params->log};
    const lr_event_sink sink = {.take = append, .user = &drawing};
    const lr_photon_params photons = {.lors = study->lors,
                                      .activity = study->image,
                                      .count = request->counts > 0 ? (int64_t)request->counts : INT64_C(1000000),
                                      .seed = request->seed,
                                      .log = params->log,
                                      .progress = params->progress};
    drawing.list = lr_alloc(1, sizeof(*drawing.list), "events", params->log);
    listmode->list = drawing.list;
    return drawing.list != NULL ? lr_events_from_activity(&photons, &sink, &drawing.list->info) : LR_FAILED;
}

static lr_status read_events(struct live_listmode *listmode, const struct study_view *study, const lr_log *log)
{
    struct lr_watched_log reason;
    lr_log_watch(&reason, log);
    const lr_events_source source = {.path = study->data_path, .scanner = study->scanner, .log = &reason.log};
    listmode->list = lr_event_list_read(&source);
    return listmode->list != NULL ? LR_OK : reason.status;
}

lr_status live_listmode_take(struct live_listmode *listmode, const struct study_view *study,
                             const struct live_request *request, const lr_operator_params *params)
{
    live_listmode_finish(listmode);
    LR_TRY(lr_progress_report(params->progress, "reading the events", 0, 1));
    LR_TRY(request->simulates ? draw_pairs(listmode, study, request, params)
                              : read_events(listmode, study, params->log));
    keep_prompts(study->lors, listmode->list);
    listmode->has_tof = listmode->list->info.has_tof;
    return listmode->list->count > 0 ? LR_OK
                                     : lr_error(params->log, LR_BAD_INPUT, "there are no prompts in coincidence");
}

/* --- the operator --- */

static const char *name_backend(const char *wished)
{
    static const char *const names[] = {"auto", "cpu", "native", "compute", "cuda"};
    for (size_t k = 0; wished != NULL && k < sizeof(names) / sizeof(names[0]); k++)
        if (strcmp(names[k], wished) == 0) return names[k];
    return names[0];
}

lr_status live_listmode_create(struct live_listmode *listmode, const struct study_view *study,
                               const struct live_request *request, const lr_operator_params *params, lr_operator **op)
{
    lr_listmode_params own = {.lors = study->lors,
                              .grid = &study->grid,
                              .events = listmode->list->events,
                              .count = listmode->list->count,
                              .info = listmode->has_tof ? &listmode->list->info : NULL,
                              .num_ranges = request->subsets,
                              .kernel = request->elements,
                              .backend = name_backend(request->backend),
                              .threads = params->threads,
                              .log = params->log,
                              .progress = params->progress};
    if (request->elements == LR_LISTMODE_EXACT && request->samples > 0)
        lr_grid_split_samples(&study->grid, request->samples, own.samples);
    LR_TRY(lr_progress_report(params->progress, "preparing the projector", 0, 1));
    *op = lr_listmode_create(&own);
    return *op != NULL ? LR_OK : LR_FAILED;
}

/* --- data --- */

/* Randoms of each event's LOR, spread evenly over the window of time of flight. */
static lr_status spread_randoms(struct live_listmode *listmode, const struct study_view *study, const lr_lors *layout,
                                const lr_log *log)
{
    const lr_events_info *info = &listmode->list->info;
    const int bins = info->num_tof_bins;
    if (study->delayeds == NULL || study->delayeds->count == 0) return LR_OK;
    if (listmode->has_tof && bins < 1) {
        lr_warn(log, "the width of the coincidence window is not known: randoms are left out");
        return LR_OK;
    }
    const double window_mm = listmode->has_tof ? (double)info->tof_edges_mm[bins] - (double)info->tof_edges_mm[0] : 1.0;
    lr_randoms *randoms = lr_randoms_estimate(study->lors, study->delayeds, log);
    listmode->additive = lr_lor_data_create(layout, log);
    if (randoms == NULL || listmode->additive == NULL) {
        lr_randoms_destroy(randoms);
        return LR_FAILED;
    }
    const lr_crystal_product *product = &randoms->product;
    for (int64_t k = 0; k < listmode->list->count; k++) {
        const int32_t *crystals = listmode->list->events[k].crystals;
        listmode->additive->values[k] =
            (float)(product->scale * product->values[crystals[0]] * product->values[crystals[1]] / window_mm);
    }
    listmode->additive_sum = randoms->delayeds;
    lr_randoms_destroy(randoms);
    return LR_OK;
}

lr_status live_listmode_data(struct live_listmode *listmode, const struct study_view *study, lr_recon_params *recon)
{
    const lr_lors *layout = lr_operator_get_info(recon->op)->lors;
    listmode->weights = lr_lor_data_create(layout, recon->log);
    if (listmode->weights == NULL) return LR_FAILED;
    for (int64_t k = 0; k < listmode->list->count; k++) listmode->weights->values[k] = listmode->list->events[k].weight;
    LR_TRY(spread_randoms(listmode, study, layout, recon->log));
    recon->data = listmode->weights;
    recon->additive = listmode->additive;
    recon->additive_sum = listmode->additive_sum;
    return LR_OK;
}
