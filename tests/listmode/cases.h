/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A scanner of six panels, which has lines along every axis, and backends of the family `listmode` for it. */
#ifndef LR_TEST_LISTMODE_CASES_H
#define LR_TEST_LISTMODE_CASES_H

#include "test.h"

#include "numbers.h"

#include "listmode/backend.h"
#include "plugin/plugin.h"

#include <lr/vector.h>

/* Panels of 21 x 21 crystals, 10 mm apart, at 120 mm from the middle: the hits are at multiples of 10 mm.
 * Panel 2 k is at the negative end of axis k, panel 2 k + 1 at the positive one. */
enum { SIDE = 21, PANEL = SIDE * SIDE, PANELS = 6 };
#define PANEL_MM 120.0
#define PITCH_MM 10.0

static inline lr_scanner *case_scanner(void)
{
    lr_module modules[PANELS];
    for (int m = 0; m < PANELS; m++) {
        const int axis = m / 2;
        const double sign = m % 2 == 0 ? -1.0 : 1.0;
        lr_module *module = &modules[m];
        *module = (lr_module){
            .crystals = {SIDE, SIDE}, .pitch_mm = {PITCH_MM, PITCH_MM}, .face_mm = {PITCH_MM, PITCH_MM}, .depth_mm = 5};
        module->centre_mm[axis] = sign * PANEL_MM;
        module->u[axis == 0 ? 1 : 0] = 1.0;
        module->v[axis == 2 ? 1 : 2] = 1.0;
    }
    lr_scanner *scanner =
        lr_scanner_create(&(lr_scanner_params){.name = "six panels", .modules = modules, .num_modules = PANELS});
    assert_non_null(scanner);
    return scanner;
}

/* The crystal of a panel at these millimetres along its two axes, ascending. */
static inline int32_t case_crystal(int panel, int u_mm, int v_mm)
{
    const int p = u_mm / (int)PITCH_MM + SIDE / 2, q = v_mm / (int)PITCH_MM + SIDE / 2;
    return panel * PANEL + q * SIDE + p;
}

static inline void case_point(int32_t crystal, double point[3])
{
    const int panel = crystal / PANEL, axis = panel / 2, within = crystal % PANEL;
    point[axis] = panel % 2 == 0 ? -PANEL_MM : PANEL_MM;
    point[axis == 0 ? 1 : 0] = PITCH_MM * (within % SIDE - SIDE / 2);
    point[axis == 2 ? 1 : 2] = PITCH_MM * (within / SIDE - SIDE / 2);
}

/* Not cubic, more slices than kernels take at a time, and off centre so that nothing is symmetric by
 * chance. */
static inline lr_grid case_grid(void)
{
    lr_grid grid = lr_grid_centred((const int[3]){38, 27, 22}, (const double[3]){4, 5, 6});
    grid.origin_mm[0] += 1.3;
    grid.origin_mm[1] -= 2.1;
    grid.origin_mm[2] += 0.7;
    return grid;
}

enum case_model { CASE_LINE, CASE_TUBE, CASE_TABLE, CASE_PAPER, NUM_CASES };

static const double case_table[5] = {1, 0.9, 0.5, 0.2, 0.1};

static inline void case_kernel(lr_listmode_params *params, enum case_model model)
{
    params->kernel = model == CASE_LINE ? LR_LISTMODE_LINE : LR_LISTMODE_TUBE;
    params->tube = (lr_listmode_tube){0};
    if (model == CASE_TABLE)
        params->tube = (lr_listmode_tube){.width_mm = 13.1, .table = case_table, .table_count = 5};
    else if (model == CASE_PAPER)
        params->tube = (lr_listmode_tube){.width_mm = 15.3, .fwhm_mm = 6, .as_paper = true};
}

/* Random lines between different panels; with time of flight places within 150 mm of the middle. */
static inline lr_event *case_events(int64_t count, uint64_t *seed)
{
    lr_event *events = calloc((size_t)count, sizeof(*events));
    assert_non_null(events);
    for (int64_t k = 0; k < count; k++) {
        const int a = (int)(test_random(seed) * PANELS);
        const int b = (a + 1 + (int)(test_random(seed) * (PANELS - 1))) % PANELS;
        events[k] = (lr_event){
            .crystals = {a * PANEL + (int)(test_random(seed) * PANEL), b * PANEL + (int)(test_random(seed) * PANEL)},
            .tof_mm = (float)(300.0 * test_random(seed) - 150.0),
            .weight = 1};
    }
    return events;
}

/* Returns true, and prints the reason, if this machine has no device for the backend. */
static inline bool case_lacks_device(const char *name)
{
    struct test_log log;
    test_log_init(&log);
    if (strcmp(name, "cuda") != 0) return false;
    lr_place *place = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .log = &log.log});
    if (place == NULL) print_message("skipped: %s\n", log.error);
    lr_place_close(place);
    return place == NULL;
}

/* LR_TEST_MEMORY_BYTES where nothing else is asked for. */
static inline int64_t case_memory(const lr_listmode_params *params)
{
    const char *const bytes = getenv("LR_TEST_MEMORY_BYTES");
    return params->max_memory_bytes == 0 && bytes != NULL ? atoll(bytes) : params->max_memory_bytes;
}

/* A backend with all that it stands on. */
struct case_backend {
    struct lr_listmode_model model;
    struct lr_listmode_events events;
    struct lr_backend backend;
    struct lr_listmode_backend_params params;
};

static lr_place *case_shared_place;

static inline void case_close_place(void)
{
    lr_place_close(case_shared_place);
}

/* Returns a place that all backends of a test share, because opening a place takes longer than most tests. NULL: the
 * backend computes on the host. */
static inline lr_place *case_place(const char *name)
{
    const bool is_gl = strcmp(name, "compute") == 0;
    if (case_shared_place == NULL && (is_gl || strcmp(name, "cuda") == 0)) {
        case_shared_place = lr_place_open(&(lr_place_params){.kind = is_gl ? LR_PLACE_GL : LR_PLACE_CUDA});
        atexit(case_close_place);
    }
    return case_shared_place;
}

static inline lr_status case_create(const char *name, const struct lr_listmode_backend_params *params,
                                    struct lr_backend *backend)
{
    if (strcmp(name, "compute") == 0) {
        const struct lr_gl_plugin *gl = lr_plugin_gl(params->log);
        return gl != NULL ? gl->listmode(params, backend) : LR_NO_DEVICE;
    }
    if (strcmp(name, "cuda") == 0) {
        const struct lr_cuda_plugin *cuda = lr_plugin_cuda(params->log);
        return cuda != NULL ? cuda->listmode(params, backend) : LR_NO_DEVICE;
    }
    return (strcmp(name, "cpu") == 0 ? lr_listmode_cpu_create : lr_listmode_native_create)(params, backend);
}

/* Events as an operator has them: arranged where the backend computes, or by the host. */
static inline lr_status case_arrange(struct case_backend *open, const lr_listmode_params *params)
{
    const bool is_cuda = params->backend != NULL && strcmp(params->backend, "cuda") == 0;
    lr_status status = lr_listmode_events_open(&open->events, params, NULL);
    if (status == LR_OK && is_cuda) status = lr_plugin_cuda(params->log)->arrange(&open->events, &open->params);
    return status == LR_OK && open->events.held == NULL ? lr_listmode_events_arrange(&open->events, params) : status;
}

/* Makes the model and the events of a backend, but not the backend. */
static inline void case_models(struct case_backend *open, const lr_listmode_params *params, struct test_log *log)
{
    lr_listmode_params logged = *params;
    test_log_init(log);
    logged.log = &log->log;
    lr_status status = lr_listmode_model_init(&open->model, &logged);
    open->events = (struct lr_listmode_events){0};
    open->params = (struct lr_listmode_backend_params){.model = &open->model,
                                                       .events = &open->events,
                                                       .threads = params->threads > 0 ? params->threads : 2,
                                                       .max_memory_bytes = case_memory(params),
                                                       .variant = params->variant,
                                                       .place = case_place(params->backend),
                                                       .log = &log->log};
    status = status == LR_OK ? case_arrange(open, &logged) : status;
    if (status != LR_OK) fail_msg("%s", log->error);
}

static inline void case_close_models(struct case_backend *open)
{
    lr_listmode_events_finish(&open->events);
    lr_listmode_model_finish(&open->model);
}

static inline void case_open(struct case_backend *open, const lr_listmode_params *params, const char *name)
{
    static struct test_log log;
    lr_listmode_params named = *params;
    named.backend = name;
    case_models(open, &named, &log);
    if (case_create(name, &open->params, &open->backend) != LR_OK) fail_msg("%s", log.error);
}

static inline void case_close(struct case_backend *open)
{
    open->backend.fns->destroy(open->backend.self);
    case_close_models(open);
}

/* --- projections of doubles in whatever precision the backend has --- */

static inline lr_vector case_vector(const struct case_backend *open, int64_t count)
{
    lr_vector vector;
    const lr_vector_params params = {.count = count,
                                     .precision = open->backend.fns->computes_in_double ? LR_FLOAT64 : LR_FLOAT32};
    assert_int_equal(lr_vector_create(&params, &vector), LR_OK);
    return vector;
}

static inline void case_put(lr_vector *vector, const double *values)
{
    for (int64_t k = 0; k < vector->count; k++)
        if (vector->precision == LR_FLOAT64)
            ((double *)vector->values)[k] = values[k];
        else
            ((float *)vector->values)[k] = (float)values[k];
}

static inline void case_get(const lr_vector *vector, double *values)
{
    for (int64_t k = 0; k < vector->count; k++) {
        values[k] =
            vector->precision == LR_FLOAT64 ? ((double *)vector->values)[k] : (double)((float *)vector->values)[k];
    }
}

/* values: overwritten; what stood there before is handed to the backend, so that stale ones show. */
static inline void case_forward(const struct case_backend *open, const lr_selection *part, const double *image,
                                double *values)
{
    lr_vector from = case_vector(open, lr_grid_num_voxels(&open->model.grid));
    lr_vector to = case_vector(open, lr_selection_count(&open->events.layout, part));
    case_put(&from, image);
    case_put(&to, values);
    assert_int_equal(open->backend.fns->forward(open->backend.self, part, &from, &to), LR_OK);
    case_get(&to, values);
    lr_vector_destroy(&from);
    lr_vector_destroy(&to);
}

/* values NULL: 1. */
static inline void case_back(const struct case_backend *open, const lr_selection *part, const double *values,
                             double *image)
{
    lr_vector from = case_vector(open, lr_selection_count(&open->events.layout, part));
    lr_vector to = case_vector(open, lr_grid_num_voxels(&open->model.grid));
    if (values != NULL) case_put(&from, values);
    case_put(&to, image);
    assert_int_equal(open->backend.fns->back(open->backend.self, part, values != NULL ? &from : NULL, &to), LR_OK);
    case_get(&to, image);
    lr_vector_destroy(&from);
    lr_vector_destroy(&to);
}

#endif
