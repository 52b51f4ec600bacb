/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Operators of the family `direct`: the choice of a backend, and all calls except projections. */
#include "operator/facade.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "direct/tables.h"
#include "plugin/plugin.h"

#include <lr/design.h>
#include <lr/device.h>
#include <lr/direct.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lr_status check(const lr_direct_params *params)
{
    if (params->grid == NULL || params->views == NULL || params->num_views < 1)
        return lr_error(params->log, LR_USAGE, "an operator of the family direct needs a grid and at least one view");
    if (params->threads < 0 || params->device < 0 || params->max_memory_bytes < 0)
        return lr_error(params->log, LR_USAGE, "threads, device and memory must not be negative");
    for (int k = 0; k < params->num_views; k++) {
        /* A backend builds the tables of views later. All views are checked now. Tables of measured profiles are built
         * now, because only this shows if a kernel is zero on every voxel. */
        const lr_direct_tables_params tables_params = {
            .grid = params->grid, .view = params->views[k], .kernel = params->kernel, .log = params->log};
        struct lr_direct_shape shape;
        lr_status status = lr_direct_shape_init(&shape, &tables_params);
        lr_direct_shape_finish(&shape);
        if (status == LR_OK && params->kernel.resolution.model == LR_RADIAL_MEASURED) {
            lr_direct_tables *tables = lr_direct_tables_create(&tables_params);
            status = tables != NULL ? LR_OK : LR_BAD_INPUT;
            lr_direct_tables_destroy(tables);
        }
        LR_TRY(status);
    }

    return LR_OK;
}

static lr_status open_choice(struct lr_operator *op, const void *user, const struct lr_backend_choice *choice,
                             struct lr_backend *backend)
{
    (void)op;
    return choice->create_direct(user, backend);
}

lr_operator *lr_direct_create_sized(size_t given_bytes, const lr_direct_params *given)
{
    LR_TAKE(lr_direct_params, params, given, given_bytes);
    if (check(params) != LR_OK) return NULL;
    const double begin = lr_clock_seconds();
    lr_operator *op = lr_operator_alloc(params->log, params->progress);
    if (op == NULL) return NULL;
    struct lr_direct_family *family = lr_alloc(1, sizeof(*family), "an operator", params->log);
    op->direct = family;
    if (family == NULL) goto failed;

    /* In the layout, a pair of modules stands for a view, and a LOR for a voxel of a histo-image. */
    const int64_t num_voxels = lr_grid_num_voxels(params->grid);
    const int count = params->num_views;
    family->views = lr_alloc(count, sizeof(*family->views), "views", params->log);
    family->offsets = lr_alloc(count + 1, sizeof(*family->offsets), "views", params->log);
    if (family->views == NULL || family->offsets == NULL) goto failed;
    memcpy(family->views, params->views, (size_t)count * sizeof(*family->views));
    for (int view = 0; view <= count; view++) family->offsets[view] = view * num_voxels;
    family->layout = (lr_lors){.num_pairs = count, .offsets = family->offsets, .count = count * num_voxels};
    family->kernel = params->kernel;
    family->info = (lr_direct_info){.grid = *params->grid, .num_views = count, .views = family->views};

    const struct lr_direct_backend_params backend_params = {
        .grid = *params->grid,
        .views = family->views,
        .num_views = count,
        .lors = &family->layout,
        .kernel = params->kernel,
        .threads = params->threads > 0 ? params->threads : lr_num_processors(),
        .device = params->device,
        .shared = params->shared,
        .storage = params->storage,
        .variant = params->variant,
        .max_memory_bytes = params->max_memory_bytes,
        .log = &op->log_filter.log,
        .progress = &op->progress_filter.progress,
    };
    struct lr_choices choices = lr_all_choices(LR_DIRECT);
    choices.open = open_choice;
    choices.user = &backend_params;
    choices.stops_at_errors = true;
    op->grid = *params->grid;
    op->params = (struct lr_backend_params){.lors = &family->layout,
                                            .grid = &op->grid,
                                            .samples = {1, 1, 1},
                                            .threads = backend_params.threads,
                                            .device = params->device,
                                            .log = backend_params.log,
                                            .progress = backend_params.progress};

    /* Images of a shared context stay in OpenGL, so only backends that can work there are tried. */
    const bool is_auto = params->backend == NULL || strcmp(params->backend, "auto") == 0;
    const char *name = params->backend;
    if (is_auto && params->shared != NULL) name = lr_gl_is_hardware(0, params->log) ? "cuda,compute" : "compute";
    if (lr_choose_backend(op, name, &choices) != LR_OK) goto failed;
    if (params->factors != NULL) op->factors = *params->factors;
    lr_operator_describe(op, begin);
    return op;

failed:
    lr_operator_destroy(op);
    return NULL;
}

const lr_direct_info *lr_direct_get_info(const lr_operator *op)
{
    return op->direct != NULL ? &op->direct->info : NULL;
}

/* --- calls other than projections --- */

lr_status lr_direct_device_attributes(const lr_operator *op, lr_direct_attributes *attributes)
{
    *attributes = (lr_direct_attributes){0};
    if (op->direct == NULL) return lr_error(op->params.log, LR_USAGE, "this operator is not of the family direct");
    const struct lr_backend_fns *fns = op->backend.fns;
    return fns->attributes != NULL
               ? fns->attributes(op->backend.self, attributes)
               : lr_error(op->params.log, LR_USAGE, "backend %s does not know what its kernels take", op->info.backend);
}

lr_status lr_direct_time(lr_operator *op, const lr_direct_task *task, lr_direct_timing *timing)
{
    *timing = (lr_direct_timing){0};
    if (op->direct == NULL) return lr_error(op->params.log, LR_USAGE, "this operator is not of the family direct");
    const struct lr_backend_fns *fns = op->backend.fns;
    const lr_direct_info *info = &op->direct->info;

    /* The image is converted to the backend's precision on the host. The backend then copies it to the place where it
     * times projections. */
    lr_vector *timed = &op->direct->timed;
    if (task->image == NULL) {
        if (timed->values == NULL) return lr_error(op->params.log, LR_USAGE, "no image has been given to be projected");
    } else {
        if (timed->values == NULL) LR_TRY(lr_make_numbers(op, "an image", op->info.num_voxels, timed));
        LR_TRY(lr_vector_copy(task->image, timed));
        if (fns->time != NULL) LR_TRY(op->backend.fns->updates->set_image(op->backend.self, timed));
    }

    for (int k = 0; k < task->num_views; k++) {
        struct lr_direct_shape shape;
        if (task->views[k] < 0 || task->views[k] >= info->num_views) {
            return lr_error(op->params.log, LR_USAGE, "view %d does not exist: there are %d, from 0 on", task->views[k],
                            info->num_views);
        }
        LR_TRY(lr_direct_shape_init(&shape, &(lr_direct_tables_params){.grid = &info->grid,
                                                                       .view = info->views[task->views[k]],
                                                                       .kernel = op->direct->kernel,
                                                                       .log = op->params.log}));
        timing->num_offsets += shape.info.num_offsets;
        lr_direct_shape_finish(&shape);
    }

    const double begin = lr_clock_seconds();
    lr_status status;
    if (fns->time != NULL) {
        status = fns->time(op->backend.self, task, &timing->device_s);
    } else {
        lr_vector out = {0};
        status = lr_make_numbers(op, "an image", op->info.num_voxels, &out);
        for (int k = 0; status == LR_OK && k < task->num_views; k++) {
            const int32_t view = task->views[k];
            const lr_selection part = {.pairs = &view, .num_pairs = 1};
            if (task->work == LR_DIRECT_WORK_FORWARD) {
                status = lr_operator_forward(op, &part, timed, &out);
            } else if (task->work == LR_DIRECT_WORK_BACK) {
                status = lr_operator_back(op, &part, timed, &out);
            } else if (task->work == LR_DIRECT_WORK_READING) {
                status = lr_vector_copy(timed, &out);
            } else {
                lr_direct_tables *tables =
                    lr_direct_tables_create(&(lr_direct_tables_params){.grid = &info->grid,
                                                                       .view = info->views[view],
                                                                       .kernel = op->direct->kernel,
                                                                       .log = op->params.log});
                status = tables != NULL ? LR_OK : LR_FAILED;
                lr_direct_tables_destroy(tables);
            }
        }
        lr_vector_destroy(&out);
    }
    timing->wall_s = lr_clock_seconds() - begin;
    return status;
}

/* --- histo-images --- */

lr_status lr_histo_images_check(const lr_histo_images *histo, const lr_operator *op, const lr_log *log)
{
    const lr_direct_info *info = lr_direct_get_info(op);
    if (info == NULL) return lr_error(log, LR_USAGE, "histo-images belong to an operator of the family direct");
    const lr_grid has = histo->grid, asked = info->grid;
    for (int n = 0; n < 3; n++) {
        const double slack_mm = 1e-3 * asked.voxel_mm[n];
        if (has.size[n] != asked.size[n] || fabs(has.voxel_mm[n] - asked.voxel_mm[n]) * has.size[n] > slack_mm ||
            fabs(has.origin_mm[n] - asked.origin_mm[n]) > slack_mm) {
            return lr_error(log, LR_BAD_INPUT,
                            "the histo-images have %d voxels of %g mm from %g mm along %c, and %d of %g mm from %g mm "
                            "are asked for: take the same grid for both",
                            has.size[n], has.voxel_mm[n], has.origin_mm[n], "xyz"[n], asked.size[n], asked.voxel_mm[n],
                            asked.origin_mm[n]);
        }
    }

    if (histo->num_views != info->num_views)
        return lr_error(log, LR_BAD_INPUT, "there are %d histo-images and %d views", histo->num_views, info->num_views);
    for (int k = 0; k < histo->num_views; k++) {
        const lr_view a = histo->views[k], b = info->views[k];
        if (fabs(a.azimuth_deg - b.azimuth_deg) > 1e-6 || fabs(a.tilt_deg - b.tilt_deg) > 1e-6) {
            return lr_error(log, LR_BAD_INPUT,
                            "histo-image %d is of azimuth %g and tilt %g degrees, and view %d of %g and %g", k,
                            a.azimuth_deg, a.tilt_deg, k, b.azimuth_deg, b.tilt_deg);
        }
    }
    return LR_OK;
}

/* --- depositions: events are checked and passed on to a backend --- */

struct lr_deposit {
    lr_deposit_params params; /* `set` has its defaults filled in */
    lr_histo_images *images;
    lr_deposit_counts counts;
    int64_t other_kind;
    struct lr_deposit_backend backend;
};

/* --- events --- */

/* Passes on the events of the requested kind, as runs of consecutive events. */
static lr_status take(void *user, const lr_event *events, int64_t count)
{
    lr_deposit *deposit = user;
    const struct lr_deposit_backend *backend = &deposit->backend;
    for (int64_t k = 0; k < count;) {
        const int64_t begin = k;
        while (k < count && events[k].is_delayed == deposit->params.delayeds) {
            const lr_event *event = &events[k];
            for (int n = 0; n < 2; n++) {
                if (event->crystals[n] < 0 || event->crystals[n] >= deposit->params.scanner->num_crystals) {
                    return lr_error(deposit->params.log, LR_BAD_INPUT,
                                    "an event names crystal %d, and the scanner has %d", (int)event->crystals[n],
                                    deposit->params.scanner->num_crystals);
                }
            }

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

/* An event is spread evenly over its TOF bin, as points. POINTS_PER_EDGE: smallest number of points per shortest voxel
 * edge. MOST_POINTS: largest number of points of an event. */
enum { POINTS_PER_EDGE = 2, MOST_POINTS = 1000 };

static lr_status deposit_check(const lr_deposit_params *params)
{
    const lr_event_kinds *kinds = &params->info->kinds;
    if (!params->info->has_tof) {
        return lr_error(
            params->log, LR_BAD_INPUT,
            "these events are without time of flight: DIRECT needs to know where on its line each one happened");
    }
    /* Events without TOF are errors. Otherwise they would be put in the middle of their lines. */
    bool differs = false;
    for (int k = 0; k < kinds->count * kinds->count; k++) {
        if (kinds->tof[k].num_bins < 2) {
            return lr_error(params->log, LR_BAD_INPUT,
                            "events of the module types %d and %d are without time of flight, and DIRECT needs to know "
                            "where on its line each one happened",
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
    return params->device >= 0 ? LR_OK
                               : lr_error(params->log, LR_USAGE, "device %d: it must not be negative", params->device);
}

lr_deposit *lr_deposit_create_sized(size_t given_bytes, const lr_deposit_params *given)
{
    LR_TAKE(lr_deposit_params, params, given, given_bytes);
    if (deposit_check(params) != LR_OK) return NULL;
    lr_deposit *deposit = lr_alloc(1, sizeof(*deposit), "a deposition", params->log);
    if (deposit == NULL) return NULL;
    deposit->params = *params;
    deposit->params.info = NULL;
    deposit->params.grid = NULL;
    if (lr_view_set_complete(&params->set, &deposit->params.set, params->log) != LR_OK) goto failed;
    const int count = lr_view_set_count(&deposit->params.set);
    lr_view *views = lr_alloc(count, sizeof(*views), "views", params->log);
    for (int k = 0; views != NULL && k < count; k++) views[k] = lr_view_set_at(&deposit->params.set, k);
    deposit->images = views ? lr_histo_images_create(params->grid, views, count, params->log) : NULL;
    free(views);
    if (deposit->images == NULL) goto failed;
    lr_grid_warn_slip(params->grid, params->scanner, params->log);

    /* Finds the width of TOF bins, of the first kind of events if there are several kinds. Bins widen the Gaussian in
     * two ways: the event may have been anywhere in its bin, and it is spread over the whole bin. */
    const lr_events_info *info = params->info;
    const bool has_kinds = info->kinds.count > 0;
    const lr_tof_bins *first = info->kinds.tof;
    const double bin_mm = has_kinds ? lr_tof_bin_mm(first->edges_mm, first->num_bins) : lr_events_info_tof_bin_mm(info);
    const double own_ps = has_kinds ? first->resolution_ps : info->tof_resolution_ps;
    const double ps = own_ps > 0 ? own_ps : params->scanner->tof_resolution_ps;
    const double added_ps = sqrt(8.0 * log(2.0) / 6.0) * fmax(bin_mm, 0) / lr_tof_mm(1.0);
    deposit->images->tof_ps = ps > 0 ? sqrt(ps * ps + added_ps * added_ps) : 0;
    if (bin_mm > 0 && ps > 0) {
        lr_info(params->log,
                "times of flight are in bins of %.4g mm, over which events are spread evenly: reconstruct with a time "
                "resolution of %.4g ps instead of %.4g",
                bin_mm, deposit->images->tof_ps, ps);
    }

    const double *edge = deposit->images->grid.voxel_mm;
    const double shortest = fmin(edge[0], fmin(edge[1], edge[2]));
    const double points = fmin(ceil(POINTS_PER_EDGE * bin_mm / shortest), MOST_POINTS);
    const bool is_auto = params->backend == NULL || strcmp(params->backend, "auto") == 0;
    const char *name = !is_auto ? params->backend : lr_gl_is_hardware(params->device, params->log) ? "compute" : "cpu";
    const struct lr_deposit_backend_params backend_params = {.scanner = params->scanner,
                                                             .images = deposit->images,
                                                             .set = deposit->params.set,
                                                             .rule = params->rule,
                                                             .bin_mm = bin_mm,
                                                             .parts = points > 1 ? (int)points : 1,
                                                             .device = params->device,
                                                             .log = params->log};
    lr_status status = LR_USAGE;
    if (strcmp(name, "cpu") == 0) {
        status = lr_deposit_cpu_create(&backend_params, &deposit->backend);
    } else if (strcmp(name, "compute") == 0) {
        const struct lr_gl_plugin *gl = lr_plugin_gl(params->log);
        status = gl != NULL ? gl->deposit(&backend_params, &deposit->backend) : LR_NO_DEVICE;
    } else {
        lr_error(params->log, status, "depositions have no backend %s: they have cpu and compute", name);
    }
    if (status != LR_OK) goto failed;
    return deposit;

failed:
    lr_deposit_destroy(deposit);
    return NULL;
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
