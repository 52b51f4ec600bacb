/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The facade of depositions: checks events, then hands them on to a backend. */
#include "base/log.h"
#include "base/mem.h"
#include "operator/direct_facade.h"
#include "plugin/plugin.h"

#include <lr/device.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct lr_deposit {
    lr_deposit_params params; /* set is complete */
    lr_histo_images *images;
    lr_deposit_counts counts;
    int64_t other_kind;
    struct lr_deposit_backend backend;
};

/* --- events --- */

static lr_status check_crystals(const lr_deposit_params *params, const lr_event *event)
{
    for (int k = 0; k < 2; k++) {
        if (event->crystals[k] < 0 || event->crystals[k] >= params->scanner->num_crystals) {
            return lr_error(params->log, LR_BAD_INPUT, "an event names crystal %d, and the scanner has %d",
                            (int)event->crystals[k], params->scanner->num_crystals);
        }
    }
    return LR_OK;
}

/* Runs of events of the kind that is asked for go on as they are. */
static lr_status take(void *user, const lr_event *events, int64_t count)
{
    lr_deposit *deposit = user;
    const struct lr_deposit_backend *backend = &deposit->backend;
    for (int64_t k = 0; k < count;) {
        const int64_t begin = k;
        while (k < count && events[k].is_delayed == deposit->params.delayeds) {
            LR_TRY(check_crystals(&deposit->params, &events[k]));
            k++;
        }
        if (k > begin) LR_TRY(backend->fns->take(backend->self, events + begin, k - begin));
        for (; k < count && events[k].is_delayed != deposit->params.delayeds; k++) deposit->other_kind++;
    }
    return LR_OK;
}

lr_event_sink lr_deposit_sink(lr_deposit *deposit)
{
    return (lr_event_sink){.take = take, .user = deposit};
}

lr_status lr_deposit_finish(lr_deposit *deposit)
{
    const struct lr_deposit_backend *backend = &deposit->backend;
    LR_TRY(backend->fns->finish(backend->self, &deposit->counts));
    deposit->counts.other_kind = deposit->other_kind;
    return LR_OK;
}

/* --- creating --- */

/* One that EGL lists: of ways that stand for no device, nothing is expected. */
static bool is_refused_hardware(const lr_device *device)
{
    return !device->usable && !device->software && strncmp(device->way, "egl device ", 11) == 0;
}

bool lr_direct_on_hardware(int device, const lr_log *log)
{
    lr_device devices[16];
    int usable = 0;
    const lr_device *refused = NULL;
    const int count = lr_device_list(devices, 16, NULL);
    for (int k = 0; k < count && k < 16; k++) {
        if (devices[k].usable && usable++ == device && !devices[k].software) return true;
        refused = refused == NULL && is_refused_hardware(&devices[k]) ? &devices[k] : refused;
    }
    if (refused != NULL) lr_info(log, "no graphics processor is used: %s: %s", refused->way, refused->reason);
    return false;
}

static lr_status make_images(lr_deposit *deposit, const lr_grid *grid)
{
    const lr_view_set *set = &deposit->params.set;
    const int count = lr_view_set_count(set);
    lr_view *views = lr_alloc(count, sizeof(*views), "views", deposit->params.log);
    for (int k = 0; views != NULL && k < count; k++) views[k] = lr_view_set_at(set, k);
    deposit->images = views ? lr_histo_images_create(grid, views, count, deposit->params.log) : NULL;
    free(views);
    return deposit->images ? LR_OK : LR_FAILED;
}

/* Points on the shortest edge of a voxel in which an event is spread over its bin, and points at most. */
enum { POINTS_PER_EDGE = 2, MOST_POINTS = 1000 };

/* The first kind's, where kinds differ. Says what a bin adds to the Gaussian: where the event was measured and where
 * it is put are both anywhere in it. */
static double find_bin(const lr_deposit_params *params)
{
    const lr_events_info *info = params->info;
    const bool has_kinds = info->kinds.count > 0;
    const lr_tof_bins *first = info->kinds.tof;
    const double bin_mm = has_kinds ? lr_tof_bin_mm(first->edges_mm, first->num_bins) : lr_events_info_tof_bin_mm(info);
    const double own_ps = has_kinds ? first->resolution_ps : info->tof_resolution_ps;
    const double ps = own_ps > 0 ? own_ps : params->scanner->tof_resolution_ps;
    if (bin_mm > 0 && ps > 0) {
        const double added_ps = sqrt(8.0 * log(2.0) / 6.0) * bin_mm / lr_tof_mm(1.0);
        lr_info(params->log,
                "times of flight are in bins of %.4g mm, over which events are spread evenly: "
                "reconstruct with a time resolution of %.4g ps instead of %.4g",
                bin_mm, sqrt(ps * ps + added_ps * added_ps), ps);
    }
    return bin_mm;
}

static lr_status make_backend(lr_deposit *deposit, double bin_mm)
{
    const double *edge = deposit->images->grid.voxel_mm;
    const double shortest = fmin(edge[0], fmin(edge[1], edge[2]));
    const double points = fmin(ceil(POINTS_PER_EDGE * bin_mm / shortest), MOST_POINTS);
    const lr_deposit_params *params = &deposit->params;
    const bool is_auto = params->backend == NULL || strcmp(params->backend, "auto") == 0;
    const char *name = !is_auto                                             ? params->backend
                       : lr_direct_on_hardware(params->device, params->log) ? "compute"
                                                                            : "cpu";
    const struct lr_deposit_backend_params backend_params = {.scanner = params->scanner,
                                                             .images = deposit->images,
                                                             .set = params->set,
                                                             .rule = params->rule,
                                                             .bin_mm = bin_mm,
                                                             .parts = points > 1 ? (int)points : 1,
                                                             .device = params->device,
                                                             .log = params->log};
    if (strcmp(name, "cpu") == 0) return lr_deposit_cpu_create(&backend_params, &deposit->backend);
    if (strcmp(name, "compute") == 0) {
        const struct lr_gl_plugin *gl = lr_plugin_gl(params->log);
        return gl != NULL ? gl->deposit(&backend_params, &deposit->backend) : LR_NO_DEVICE;
    }
    return lr_error(params->log, LR_USAGE, "depositions have no backend %s: they have cpu and compute", name);
}

/* An event without time of flight would be put in the middle of its line. */
static lr_status check_kinds(const lr_deposit_params *params)
{
    const lr_event_kinds *kinds = &params->info->kinds;
    bool differs = false;
    for (int k = 0; k < kinds->count * kinds->count; k++) {
        if (kinds->tof[k].num_bins < 2) {
            return lr_error(params->log, LR_BAD_INPUT,
                            "events of the module types %d and %d are without time of flight, and "
                            "DIRECT needs to know where on its line each one happened",
                            k / kinds->count, k % kinds->count);
        }
        const lr_tof_bins *bins = &kinds->tof[k], *first = kinds->tof;
        differs = differs || bins->resolution_ps != first->resolution_ps ||
                  fabs(lr_tof_bin_mm(bins->edges_mm, bins->num_bins) -
                       lr_tof_bin_mm(first->edges_mm, first->num_bins)) > 1e-3;
    }
    if (differs) {
        lr_warn(params->log, "time resolution or bins of these events differ between types of modules, and "
                             "histo-images are reconstructed with one");
    }
    return LR_OK;
}

static lr_status check(const lr_deposit_params *params)
{
    if (!params->info->has_tof) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "these events are without time of flight: DIRECT needs to know where on "
                        "its line each one happened");
    }
    LR_TRY(check_kinds(params));
    return params->device >= 0 ? LR_OK
                               : lr_error(params->log, LR_USAGE, "device %d: it must not be negative", params->device);
}

lr_deposit *lr_deposit_create(const lr_deposit_params *params)
{
    if (check(params) != LR_OK) return NULL;
    lr_deposit *deposit = lr_alloc(1, sizeof(*deposit), "a deposition", params->log);
    if (deposit == NULL) return NULL;
    deposit->params = *params;
    deposit->params.info = NULL;
    deposit->params.grid = NULL;
    if (lr_view_set_complete(&params->set, &deposit->params.set, params->log) != LR_OK ||
        make_images(deposit, params->grid) != LR_OK || make_backend(deposit, find_bin(params)) != LR_OK) {
        lr_deposit_destroy(deposit);
        return NULL;
    }
    return deposit;
}

const lr_deposit_counts *lr_deposit_get_counts(const lr_deposit *deposit)
{
    return &deposit->counts;
}

const lr_histo_images *lr_deposit_get_images(const lr_deposit *deposit)
{
    return deposit->images;
}

const char *lr_deposit_get_backend(const lr_deposit *deposit)
{
    return deposit->backend.fns->name;
}

void lr_deposit_destroy(lr_deposit *deposit)
{
    if (deposit != NULL) {
        if (deposit->backend.fns != NULL) deposit->backend.fns->destroy(deposit->backend.self);
        lr_histo_images_destroy(deposit->images);
        free(deposit);
    }
}
