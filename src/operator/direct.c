/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The facade of the family `direct`: checks once, then hands on to a backend. */
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "direct/tables.h"
#include "operator/direct_facade.h"
#include "plugin/plugin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct choice {
    const char *name;
    lr_status (*create)(const struct lr_direct_backend_params *params,
                        struct lr_direct_backend *backend);
};

static lr_status create_compute(const struct lr_direct_backend_params *params,
                                struct lr_direct_backend *backend)
{
    const struct lr_gl_plugin *gl = lr_plugin_gl(params->log);
    return gl != NULL ? gl->direct(params, backend) : LR_NO_DEVICE;
}

static lr_status create_cuda(const struct lr_direct_backend_params *params,
                             struct lr_direct_backend *backend)
{
    const struct lr_cuda_plugin *cuda = lr_plugin_cuda(params->log);
    return cuda != NULL ? cuda->direct(params, backend) : LR_NO_DEVICE;
}

static const struct choice choices[] = {
    {"cpu", lr_direct_cpu_create},
    {"compute", create_compute},
    {"cuda", create_cuda},
};

enum { NUM_CHOICES = sizeof(choices) / sizeof(choices[0]) };

static const struct choice *find_choice(const char *name, const lr_log *log)
{
    for (int k = 0; k < NUM_CHOICES; k++) {
        if (strcmp(choices[k].name, name) == 0) {
            return &choices[k];
        }
    }
    lr_error(log, LR_USAGE, "the family direct has no backend %s: it has cpu, compute and cuda",
             name);
    return NULL;
}

static bool is_auto(const lr_direct_params *params)
{
    return params->backend == NULL || strcmp(params->backend, "auto") == 0;
}

static const char *choose(const lr_direct_params *params)
{
    if (!is_auto(params)) {
        return params->backend;
    }
    return lr_direct_on_hardware(params->device) ? "cuda" : "cpu";
}

/* Everything that tables would complain about, before the first one is built. Only measured profiles
 * can make a kernel of zeros, which their values alone tell. */
static lr_status check_view(const lr_direct_params *params, int view)
{
    const lr_direct_tables_params tables_params = {.grid = params->grid,
                                                   .view = params->views[view],
                                                   .kernel = params->kernel,
                                                   .log = params->log};
    struct lr_direct_shape shape;
    lr_status status = lr_direct_shape_init(&shape, &tables_params);
    lr_direct_shape_finish(&shape);
    if (status == LR_OK && params->kernel.resolution.model == LR_RADIAL_MEASURED) {
        lr_direct_tables *tables = lr_direct_tables_create(&tables_params);
        status = tables != NULL ? LR_OK : LR_BAD_INPUT;
        lr_direct_tables_destroy(tables);
    }
    return status;
}

static lr_status check(const lr_direct_params *params)
{
    if (params->grid == NULL || params->views == NULL || params->num_views < 1) {
        return lr_error(params->log, LR_USAGE, "a projector needs a grid and at least one view");
    }
    if (params->threads < 0 || params->device < 0 || params->max_memory_bytes < 0) {
        return lr_error(params->log, LR_USAGE, "threads, device and memory must not be negative");
    }
    for (int k = 0; k < params->num_views; k++) {
        LR_TRY(check_view(params, k));
    }
    return LR_OK;
}

static void warn_instead(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct lr_direct_cuda_log *log = user;
    if (!log->is_made && level == LR_LOG_ERROR && status == LR_NO_DEVICE) {
        snprintf(log->reason, sizeof(log->reason), "%s", sentence);
        if (log->is_named) {
            lr_warn(log->to, "%s; backend compute does it instead", sentence);
        } else {
            lr_debug(log->to, "taking backend compute: %s", sentence);
        }
    } else if (log->to != NULL) {
        log->to->write(log->to->user, level, status, sentence);
    }
}

static lr_status create_backend(lr_direct *direct, const struct choice *choice,
                                const struct lr_direct_backend_params *params)
{
    if (choice->create != create_cuda) {
        return choice->create(params, &direct->backend);
    }
    struct lr_direct_cuda_log *log = &direct->cuda_log;
    struct lr_direct_backend_params heard = *params;
    *log = (struct lr_direct_cuda_log){
        .log = {warn_instead, log}, .to = params->log, .is_named = log->is_named};
    heard.log = &log->log;
    const lr_status status = choice->create(&heard, &direct->backend);
    log->is_made = status == LR_OK;
    if (status != LR_NO_DEVICE) {
        return status;
    }
    const lr_status instead = create_compute(params, &direct->backend);
    return instead == LR_NO_DEVICE ? lr_error(params->log, instead, "%s", log->reason) : instead;
}

static lr_status build(lr_direct *direct, const lr_direct_params *params)
{
    direct->log = params->log;
    direct->kernel = params->kernel;
    direct->views = lr_alloc(params->num_views, sizeof(*direct->views), "views", params->log);
    direct->max_factors =
        lr_alloc(params->num_views, sizeof(*direct->max_factors), "views", params->log);
    if (direct->views == NULL || direct->max_factors == NULL) {
        return LR_FAILED;
    }
    for (int k = 0; k < params->num_views; k++) {
        direct->max_factors[k] = -1;
    }
    memcpy(direct->views, params->views, (size_t)params->num_views * sizeof(*direct->views));
    const struct choice *choice = find_choice(choose(params), params->log);
    if (choice == NULL) {
        return LR_USAGE;
    }
    const struct lr_direct_backend_params backend_params = {
        .grid = *params->grid,
        .views = direct->views,
        .num_views = params->num_views,
        .kernel = params->kernel,
        .threads = params->threads > 0 ? params->threads : lr_num_processors(),
        .device = params->device,
        .storage = params->storage,
        .variant = params->variant,
        .max_memory_bytes = params->max_memory_bytes,
        .log = params->log,
    };
    direct->cuda_log.is_named = !is_auto(params);
    LR_TRY(create_backend(direct, choice, &backend_params));
    const char *reason = direct->cuda_log.reason;
    direct->info = (lr_direct_info){.backend = direct->backend.fns->name,
                                    .device = direct->backend.device,
                                    .passed_over = reason[0] != '\0' ? reason : NULL,
                                    .grid = *params->grid,
                                    .num_views = params->num_views,
                                    .num_voxels = lr_grid_num_voxels(params->grid),
                                    .threads = backend_params.threads};
    return LR_OK;
}

lr_direct *lr_direct_create(const lr_direct_params *params)
{
    if (check(params) != LR_OK) {
        return NULL;
    }
    lr_direct *direct = lr_alloc(1, sizeof(*direct), "a projector", params->log);
    if (direct != NULL && build(direct, params) != LR_OK) {
        lr_direct_destroy(direct);
        direct = NULL;
    }
    return direct;
}

void lr_direct_destroy(lr_direct *direct)
{
    if (direct != NULL) {
        if (direct->backend.fns != NULL) {
            direct->backend.fns->destroy(direct->backend.self);
        }
        lr_direct_host_finish(&direct->host, direct->info.num_views);
        free(direct->max_factors);
        free(direct->views);
        free(direct);
    }
}

const lr_direct_info *lr_direct_get_info(const lr_direct *direct)
{
    return &direct->info;
}

lr_view lr_direct_get_view(const lr_direct *direct, int view)
{
    return direct->views[view];
}

double lr_direct_device_seconds(const lr_direct *direct)
{
    const struct lr_direct_backend_fns *fns = direct->backend.fns;
    return fns->device_seconds != NULL ? fns->device_seconds(direct->backend.self) : 0;
}

lr_status lr_direct_device_attributes(const lr_direct *direct, lr_direct_attributes *attributes)
{
    const struct lr_direct_backend_fns *fns = direct->backend.fns;
    *attributes = (lr_direct_attributes){0};
    return fns->attributes != NULL
               ? fns->attributes(direct->backend.self, attributes)
               : lr_error(direct->log, LR_USAGE, "backend %s does not know what its kernels take",
                          fns->name);
}

/* --- projections --- */

/* An input of either precision. */
struct array {
    const float *f32;
    const double *f64;
};

static double value_of(const struct array *array, int64_t k)
{
    return array->f32 != NULL ? (double)array->f32[k] : array->f64[k];
}

static lr_status check_call(const lr_direct *direct, int view, const struct array *in)
{
    if (view < 0 || view >= direct->info.num_views) {
        return lr_error(direct->log, LR_USAGE, "view %d does not exist: there are %d, from 0 on",
                        view, direct->info.num_views);
    }
    for (int64_t k = 0; k < direct->info.num_voxels; k++) {
        if (!isfinite(value_of(in, k))) {
            return lr_error(direct->log, LR_BAD_INPUT, "voxel %lld has the value %g: not finite",
                            (long long)k, value_of(in, k));
        }
    }
    return LR_OK;
}

typedef lr_status project_fn(void *self, int view, const void *in, void *out);

/* Through arrays of the backend's own precision. */
static lr_status project_converted(lr_direct *direct, project_fn *project, int view,
                                   const struct array *in, float *out32, double *out64)
{
    const int64_t count = direct->info.num_voxels;
    const bool in_double = direct->backend.fns->computes_in_double;
    const size_t size = in_double ? sizeof(double) : sizeof(float);
    void *source = lr_alloc(count, size, "an image", direct->log);
    void *target = lr_alloc(count, size, "an image", direct->log);
    lr_status status = source && target ? LR_OK : LR_FAILED;
    for (int64_t k = 0; status == LR_OK && k < count; k++) {
        if (in_double) {
            ((double *)source)[k] = value_of(in, k);
        } else {
            ((float *)source)[k] = (float)value_of(in, k);
        }
    }
    if (status == LR_OK) {
        status = project(direct->backend.self, view, source, target);
    }
    for (int64_t k = 0; status == LR_OK && k < count; k++) {
        const double value = in_double ? ((double *)target)[k] : (double)((float *)target)[k];
        if (out32 != NULL) {
            out32[k] = (float)value;
        } else {
            out64[k] = value;
        }
    }
    free(target);
    free(source);
    return status;
}

static lr_status project32(lr_direct *direct, project_fn *project, int view, const float *in,
                           float *out)
{
    const struct array array = {.f32 = in};
    LR_TRY(check_call(direct, view, &array));
    return direct->backend.fns->computes_in_double
               ? project_converted(direct, project, view, &array, out, NULL)
               : project(direct->backend.self, view, in, out);
}

static lr_status project64(lr_direct *direct, project_fn *project, int view, const double *in,
                           double *out)
{
    const struct array array = {.f64 = in};
    LR_TRY(check_call(direct, view, &array));
    return direct->backend.fns->computes_in_double
               ? project(direct->backend.self, view, in, out)
               : project_converted(direct, project, view, &array, NULL, out);
}

lr_status lr_direct_forward(lr_direct *direct, int view, const float *image, float *histo)
{
    return project32(direct, direct->backend.fns->forward, view, image, histo);
}

lr_status lr_direct_back(lr_direct *direct, int view, const float *histo, float *image)
{
    return project32(direct, direct->backend.fns->back, view, histo, image);
}

lr_status lr_direct_forward_f64(lr_direct *direct, int view, const double *image, double *histo)
{
    return project64(direct, direct->backend.fns->forward, view, image, histo);
}

lr_status lr_direct_back_f64(lr_direct *direct, int view, const double *histo, double *image)
{
    return project64(direct, direct->backend.fns->back, view, histo, image);
}
