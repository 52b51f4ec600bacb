/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Operators of the family `listmode`: their events, factors and backend. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "operator/direct_facade.h"
#include "operator/listmode_facade.h"
#include "plugin/plugin.h"
#include "vector/place.h"

#include <stdlib.h>
#include <string.h>

/* LORs that a sensitivity has at most unless another number is asked for: a voxel of a whole-body
 * image is then known to about 2 %. */
static const int64_t usual_lines = INT64_C(1) << 25;

static lr_status create_cuda(const struct lr_listmode_backend_params *params,
                             struct lr_backend *backend)
{
    const struct lr_cuda_plugin *cuda = lr_plugin_cuda(params->log);
    return cuda != NULL ? cuda->listmode(params, backend) : LR_NO_DEVICE;
}

static lr_status create_compute(const struct lr_listmode_backend_params *params,
                                struct lr_backend *backend)
{
    const struct lr_gl_plugin *gl = lr_plugin_gl(params->log);
    return gl != NULL ? gl->listmode(params, backend) : LR_NO_DEVICE;
}

struct choice {
    const char *name;
    lr_listmode_create_fn *create;
    lr_place_kind place; /* where it computes */
};

/* "auto" is the first that finds its device; native before OpenGL in software. */
static const struct choice choices[] = {
    {"cuda", create_cuda, LR_PLACE_CUDA},
    {"compute", create_compute, LR_PLACE_GL},
    {"native", lr_listmode_native_create, LR_PLACE_HOST},
    {"cpu", lr_listmode_cpu_create, LR_PLACE_HOST},
};
enum { NUM_CHOICES = sizeof(choices) / sizeof(choices[0]) };

static bool is_auto(const lr_listmode_params *params)
{
    return params->backend == NULL || strcmp(params->backend, "auto") == 0;
}

static bool is_chosen(const struct choice *choice, const lr_listmode_params *params)
{
    return is_auto(params) ? choice->place != LR_PLACE_GL || lr_direct_on_hardware(params->device)
                           : strcmp(choice->name, params->backend) == 0;
}

static lr_status check(const lr_listmode_params *params)
{
    if (params->lors == NULL || params->grid == NULL || params->events == NULL) {
        return lr_error(params->log, LR_USAGE,
                        "an operator of the family listmode needs LORs, a grid and events");
    }
    if (params->threads < 0 || params->device < 0 || params->max_memory_bytes < 0 ||
        params->sensitivity_lines < 0) {
        return lr_error(
            params->log, LR_USAGE,
            "threads, device, memory and lines of the sensitivity must not be negative");
    }
    return LR_OK;
}

/* --- factors of events --- */

/* An event's LOR, and the event's number. */
struct numbered {
    int64_t lor, event;
};

static int compare_lors(const void *a, const void *b)
{
    const int64_t left = ((const struct numbered *)a)->lor,
                  right = ((const struct numbered *)b)->lor;
    return left < right ? -1 : left > right;
}

static lr_status number_lors(const lr_listmode_params *params, struct numbered *numbered)
{
    for (int64_t k = 0; k < params->count; k++) {
        const int32_t *crystals = params->events[k].crystals;
        numbered[k] = (struct numbered){lr_lors_number(params->lors, crystals[0], crystals[1]), k};
        if (numbered[k].lor < 0) {
            return lr_error(params->log, LR_BAD_INPUT,
                            "event %lld joins crystals %d and %d, whose modules are not in "
                            "coincidence, so that it has no factor: leave it out",
                            (long long)k, (int)crystals[0], (int)crystals[1]);
        }
    }
    qsort(numbered, (size_t)params->count, sizeof(*numbered), compare_lors);
    return LR_OK;
}

/* Sources answer for ascending LORs without repeats. */
static int64_t list_lors(const struct numbered *numbered, int64_t count, int64_t *lors)
{
    int64_t listed = 0;
    for (int64_t k = 0; k < count; k++) {
        if (listed == 0 || lors[listed - 1] != numbered[k].lor) {
            lors[listed++] = numbered[k].lor;
        }
    }
    return listed;
}

static lr_status spread(const lr_listmode_params *params, const struct numbered *numbered,
                        int64_t *lors, struct lr_listmode_family *family)
{
    const int64_t listed = list_lors(numbered, params->count, lors);
    float *of_lors = lr_alloc(listed, sizeof(*of_lors), "factors of events", params->log);
    if (of_lors == NULL) {
        return LR_FAILED;
    }
    const lr_lor_span span = {.numbers = lors, .count = listed};
    const lr_status status = params->factors->get(params->factors->user, &span, of_lors);
    for (int64_t k = 0, at = 0; status == LR_OK && k < params->count; k++) {
        at += lors[at] != numbered[k].lor;
        family->event_factors[numbered[k].event] = of_lors[at];
    }
    free(of_lors);
    return status;
}

static lr_status find_factors(const lr_listmode_params *params, struct lr_listmode_family *family)
{
    struct numbered *numbered =
        lr_alloc(params->count, sizeof(*numbered), "LORs of events", params->log);
    int64_t *lors = lr_alloc(params->count, sizeof(*lors), "LORs of events", params->log);
    family->event_factors =
        lr_alloc(params->count, sizeof(*family->event_factors), "factors of events", params->log);
    lr_status status =
        numbered != NULL && lors != NULL && family->event_factors != NULL ? LR_OK : LR_FAILED;
    status = status == LR_OK ? number_lors(params, numbered) : status;
    status = status == LR_OK ? spread(params, numbered, lors, family) : status;
    free(numbered);
    free(lors);
    return status;
}

/* As the operator asks for factors: of events, by their numbers. */
static lr_status get_factors(void *user, const lr_lor_span *span, float *values)
{
    const float *factors = user;
    for (int64_t k = 0; k < span->count; k++) {
        values[k] = factors[span->numbers != NULL ? span->numbers[k] : span->first + k];
    }
    return LR_OK;
}

/* --- life --- */

static lr_status fill_family(struct lr_operator *op, const lr_listmode_params *params)
{
    struct lr_listmode_family *family = op->listmode;
    family->lors = params->lors;
    family->wanted_lines = params->sensitivity_lines > 0 ? params->sensitivity_lines : usual_lines;
    family->seed = params->seed;
    LR_TRY(lr_listmode_model_init(&family->model, params));
    LR_TRY(lr_listmode_events_init(&family->events, params));
    if (params->factors != NULL && params->factors->get != NULL) {
        family->factors = *params->factors;
        LR_TRY(find_factors(params, family));
        op->factors = (lr_lor_source){get_factors, family->event_factors};
    }
    family->info = (lr_listmode_info){.kernel = params->kernel,
                                      .tube = family->model.tube,
                                      .count = params->count,
                                      .num_ranges = (int)family->events.layout.num_pairs};
    return LR_OK;
}

/* In place of the caller's log: "auto" goes on without a word where there is no device. */
static void hush(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const struct lr_listmode_trial *trial = user;
    if ((trial->is_made || status != LR_NO_DEVICE) && trial->to != NULL) {
        trial->to->write(trial->to->user, level, status, sentence);
    }
}

static lr_status create(struct lr_operator *op, const struct choice *choice,
                        struct lr_listmode_backend_params *params)
{
    struct lr_listmode_family *family = op->listmode;
    if (choice->place != LR_PLACE_HOST) {
        LR_TRY(lr_place_open_on(
            &(lr_place_params){.kind = choice->place, .device = params->device, .log = params->log},
            &family->place));
        params->place = family->place;
    }
    family->create = choice->create;
    const lr_status status = choice->create(params, &op->backend);
    if (status != LR_OK) { /* another choice may open its own */
        lr_place_close(family->place);
        family->place = NULL;
    }
    return status;
}

/* By the first choice that fits; LR_NO_DEVICE where "auto" has to take another one. */
static lr_status try_choices(struct lr_operator *op, const lr_listmode_params *params,
                             const struct lr_listmode_backend_params *backend_params)
{
    const lr_log *log = backend_params->log;
    struct lr_listmode_trial *trial = &op->listmode->trial;
    *trial = (struct lr_listmode_trial){.log = {hush, trial}, .to = log};
    for (int k = 0; k < NUM_CHOICES; k++) {
        struct lr_listmode_backend_params own = *backend_params;
        const bool is_trial = is_auto(params) && choices[k].place != LR_PLACE_HOST;
        own.log = is_trial ? &trial->log : log;
        if (!is_chosen(&choices[k], params)) {
            continue;
        }
        const lr_status status = create(op, &choices[k], &own);
        if (!(is_trial && status == LR_NO_DEVICE)) {
            trial->is_made = status == LR_OK;
            return status;
        }
    }
    return lr_error(log, LR_USAGE,
                    "the family listmode has no backend %s: it has cuda, compute, native and cpu",
                    params->backend);
}

static lr_status open_backend(struct lr_operator *op, const lr_listmode_params *params)
{
    struct lr_listmode_family *family = op->listmode;
    const struct lr_listmode_backend_params backend_params = {
        .model = &family->model,
        .events = &family->events,
        .threads = params->threads > 0 ? params->threads : lr_num_processors(),
        .device = params->device,
        .max_memory_bytes = params->max_memory_bytes,
        .log = &op->log_filter.log,
        .progress = &op->progress_filter.progress,
    };
    LR_TRY(try_choices(op, params, &backend_params));
    op->grid = *params->grid;
    op->params = (struct lr_backend_params){.lors = &family->events.layout,
                                            .grid = &op->grid,
                                            .samples = {1, 1, 1},
                                            .threads = backend_params.threads,
                                            .device = params->device,
                                            .max_memory_bytes = params->max_memory_bytes,
                                            .log = backend_params.log,
                                            .progress = backend_params.progress};
    return LR_OK;
}

static lr_status build(struct lr_operator *op, const lr_listmode_params *params)
{
    const double begin = lr_clock_seconds();
    op->listmode = lr_alloc(1, sizeof(*op->listmode), "an operator", params->log);
    if (op->listmode == NULL) {
        return LR_FAILED;
    }
    LR_TRY(fill_family(op, params));
    LR_TRY(open_backend(op, params));
    op->info = (lr_operator_info){.backend = op->backend.fns->name,
                                  .device = op->backend.device,
                                  .is_gpu = op->backend.is_gpu,
                                  .num_voxels = lr_grid_num_voxels(&op->grid),
                                  .num_lors = op->params.lors->count,
                                  .of_events = true,
                                  .samples = {1, 1, 1},
                                  .threads = op->params.threads,
                                  .max_memory_bytes = params->max_memory_bytes,
                                  .build_seconds = lr_clock_seconds() - begin,
                                  .lors = op->params.lors};
    return LR_OK;
}

lr_operator *lr_listmode_create(const lr_listmode_params *params)
{
    if (check(params) != LR_OK) {
        return NULL;
    }
    lr_operator *op = lr_alloc(1, sizeof(*op), "an operator", params->log);
    if (op == NULL) {
        return NULL;
    }
    lr_log_filter_init(&op->log_filter, params->log);
    lr_progress_filter_init(&op->progress_filter, params->progress);
    if (build(op, params) != LR_OK) {
        lr_operator_destroy(op);
        return NULL;
    }
    return op;
}

const lr_listmode_info *lr_listmode_get_info(const lr_operator *op)
{
    return op->listmode != NULL ? &op->listmode->info : NULL;
}
