/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections in list mode, by operators of the public interface and by backends alone; a scanner of six panels,
 * which has lines along every axis; and a ring. */
#pragma once

#include "../cases.h"

#include "common/bindings.h"
#include "listmode/backend.h"
#include "plugin/plugin.h"

#include <lr/listmode.h>
#include <lr/recon.h>
#include <lr/vector.h>

/* Opens the events of params and arranges them on the host. */
static inline lr_status events_init(struct lr_listmode_events *events, const lr_listmode_params *params)
{
    LR_TRY(lr_listmode_events_open(events, params, NULL));
    return lr_listmode_events_arrange(events, params);
}

/* Projections of random numbers or of given values. */
struct both {
    int64_t num_voxels, count;
    double *x, *y, *values, *image;
};

/* Outputs are filled with 1 first, so that values that a projection does not overwrite are noticed. */
static inline struct both case_inputs(int64_t num_voxels, int64_t count, const double *y)
{
    uint64_t seed = 30 + test_seed();
    struct both both = {.num_voxels = num_voxels, .count = count};
    both.x = kept_random_singles(num_voxels, 0, 1, &seed);
    both.y = kept_random_singles(count, 0, 1, &seed);
    for (int64_t k = 0; y != NULL && k < count; k++) both.y[k] = y[k];
    both.values = kept_equal_doubles(count, 1);
    both.image = kept_equal_doubles(num_voxels, 1);
    return both;
}

static inline void expect_adjoint(const struct both *both, double tolerance)
{
    assert_true(dot_product(both->values, both->values, both->count) > 0);
    assert_close(dot_product(both->values, both->y, both->count), dot_product(both->x, both->image, both->num_voxels),
                 tolerance);
}

static inline void expect_both(const struct both *found, const struct both *expected, double of_values, double of_image)
{
    assert_true(l2_apart(found->values, expected->values, expected->count) < of_values);
    assert_true(l2_apart(found->image, expected->image, expected->num_voxels) < of_image);
}

/* Sums of x over the rows, for each event. */
struct rows_seen {
    const double *x;
    double *sums;
    int64_t next, elements;
};

static inline lr_status see_row(void *user, const lr_row *row)
{
    struct rows_seen *seen = user;
    assert_int_equal(row->row, seen->next++);
    for (int64_t k = 0; k < row->count; k++) {
        assert_all(k == 0 || row->lor[k] > row->lor[k - 1], row->probability[k] > 0);
        seen->sums[row->lor[k]] += seen->x[row->row] * row->probability[k];
    }
    seen->elements += row->count;
    return LR_OK;
}

/* A factor for each LOR, from range[0] to less than range[1]. */
static inline double case_factor(const double range[2], int64_t lor)
{
    return range[0] + range[1] * (double)(lor * 7919 % 1000) * 1e-3;
}

static inline lr_status get_factors(void *user, const lr_lor_span *span, float *values)
{
    for (int64_t k = 0; k < span->count; k++) {
        if (span->numbers != NULL && k > 0) assert_true(span->numbers[k] > span->numbers[k - 1]);
        values[k] = (float)case_factor(user, span->numbers != NULL ? span->numbers[k] : span->first + k);
    }
    return LR_OK;
}

static double usual_range[2] = {0.5, 1};
static const lr_lor_source factors = {get_factors, usual_range};

static inline lr_events_info tof_info(double resolution_ps)
{
    return (lr_events_info){.has_tof = true, .tof_resolution_ps = resolution_ps};
}

/* --- operators --- */

static struct test_log test_log;

/* Ten modules of 4 x 3 crystals. */
static inline lr_scanner *decagon(const lr_coincidence *rules)
{
    lr_scanner *scanner = scanner_from("ring: {radius_mm: 60, modules: 10}\nmodule: {crystals: [4, 3], pitch_mm: [5, "
                                       "5], face_mm: [5, 5], depth_mm: 10}");
    scanner->coincidence = *rules;
    return scanner;
}

static const lr_coincidence usual_rules = {.min_module_difference = 3};

/* params->log: test_log */
static inline lr_operator *open_operator(const lr_listmode_params *params)
{
    test_log_init(&test_log);
    lr_operator *op = lr_listmode_create(params);
    if (op == NULL) fail_msg("%s", test_log.error);
    return op;
}

static inline lr_operator *kept_operator(const lr_listmode_params *params)
{
    return keep(open_operator(params));
}

/* Projects all events, or a part of them. */
static inline void forward(lr_operator *op, const lr_selection *part, const double *image, double *values)
{
    if (lr_operator_forward(op, part, vector_of(image, test_num_voxels(op)),
                            vector_of(values, test_num_values(op, part))) != LR_OK)
        fail_msg("%s", test_log.error);
}

static inline void back(lr_operator *op, const double *values, double *image)
{
    if (lr_operator_back(op, NULL, vector_of(values, test_num_values(op, NULL)),
                         vector_of(image, test_num_voxels(op))) != LR_OK)
        fail_msg("%s", test_log.error);
}

static inline double *sensitivity_of(lr_operator *op, const lr_selection *part)
{
    double *values = kept_doubles(test_num_voxels(op));
    assert_ok(lr_operator_sensitivity(op, part, vector_of(values, test_num_voxels(op))));
    return values;
}

static inline struct both both_of(lr_operator *op, const double *y)
{
    struct both both = case_inputs(test_num_voxels(op), test_num_values(op, NULL), y);
    forward(op, NULL, both.x, both.values);
    back(op, both.y, both.image);
    return both;
}

/* Projects with an operator that is destroyed afterwards. y: values to project back; NULL = random ones. */
static inline struct both both_by(const lr_listmode_params *params, const double *y)
{
    lr_operator *op = open_operator(params);
    const struct both both = both_of(op, y);
    lr_operator_destroy(op);
    return both;
}

/* image: NULL = an image of ones. */
static inline double *values_by(const lr_listmode_params *params, const double *image)
{
    lr_operator *op = open_operator(params);
    double *values = kept_doubles(test_num_values(op, NULL));
    forward(op, NULL, image != NULL ? image : kept_equal_doubles(test_num_voxels(op), 1), values);
    lr_operator_destroy(op);
    return values;
}

static inline double *image_by(const lr_listmode_params *params, const double *values)
{
    lr_operator *op = open_operator(params);
    double *image = kept_doubles(test_num_voxels(op));
    back(op, values != NULL ? values : kept_equal_doubles(test_num_values(op, NULL), 1), image);
    lr_operator_destroy(op);
    return image;
}

static inline double *sensitivity_by(const lr_listmode_params *params, lr_listmode_info *info)
{
    lr_operator *op = open_operator(params);
    double *image = sensitivity_of(op, NULL);
    if (info != NULL) *info = *lr_listmode_get_info(op);
    lr_operator_destroy(op);
    return image;
}

/* Reconstructs with data and image in the memory in which the operator computes. No image, data or sensitivities may
 * be copied; only sums come to the host. The sensitivity of a scanner's events has been computed before. */
static inline void reconstruct_in_place(lr_operator *op, const lr_recon_params *given, double *image)
{
    enum { MOST_SUMS = 128 };
    const int64_t sums_bytes = LR_VECTOR_NUM_SUMS * (int64_t)sizeof(double);
    lr_place *place = lr_operator_place(op);
    lr_vector data = kept_vector(place, given->data->count, LR_FLOAT32);
    lr_vector there = kept_vector(place, test_num_voxels(op), LR_FLOAT32);
    assert_ok(lr_vector_copy(given->data, &data));
    lr_recon_params params = *given;
    params.op = op;
    params.data = &data;
    params.log = &test_log.log;
    const lr_traffic before = lr_place_get_info(place).traffic;
    if (lr_recon(&params, &there) != LR_OK) fail_msg("%s", test_log.error);
    const lr_traffic after = lr_place_get_info(place).traffic;
    assert_ints(after.to_device - before.to_device, 0, (after.to_host - before.to_host) % sums_bytes, 0);
    assert_true(after.to_host - before.to_host <= MOST_SUMS * sums_bytes);
    assert_ok(lr_vector_copy(&there, vector_of(image, there.count)));
}

/* An event on a LOR; `turned` swaps its crystals. */
static inline lr_event event_of(const lr_lors *lors, int64_t number, bool turned)
{
    int32_t crystals[2];
    lr_lors_crystals(lors, number, crystals);
    return (lr_event){.crystals = {crystals[turned], crystals[!turned]}, .weight = 1};
}

/* LR_TEST_MEMORY_BYTES, the memory limit of a device; 0 = no limit. */
static inline int64_t most_bytes(void)
{
    const char *const bytes = getenv("LR_TEST_MEMORY_BYTES");
    return bytes != NULL ? atoll(bytes) : 0;
}

static inline bool is_on_device(void)
{
    return test_backend_is("cuda") || test_backend_is("compute");
}

/* Events for the backend of the test, with the limit LR_TEST_MEMORY_BYTES. */
static inline lr_listmode_params case_params(const lr_lors *lors, const lr_grid *grid, const lr_event *events,
                                             int64_t count)
{
    return filled(lr_listmode_params, .lors = lors, .grid = grid, .events = events, .count = count,
                  .backend = test_backend, .max_memory_bytes = most_bytes(), .threads = 2, .log = &test_log.log);
}

/* main() for the backend that argv[1] names; argv[2]: the only test to run. set_up is called before every test. */
static inline int case_run(int argc, char **argv, const char *usual, CMFixtureFunction set_up, struct CMUnitTest *tests,
                           size_t count)
{
    test_backend = argc > 1 ? argv[1] : usual;
    test_log_init(&test_log);
    if (test_backend_is("cuda")) {
        lr_place *place = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .log = &test_log.log});
        if (place == NULL) {
            print_message("skipped: %s\n", test_log.error);
            return 77;
        }
        lr_place_close(place);
    }
    for (size_t k = 0; k < count; k++) tests[k].setup_func = set_up;
    return test_run(argc > 2 ? argv[2] : NULL, "listmode", tests, count, NULL);
}

#define case_main(usual, set_up, ...)                                                                                  \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        struct CMUnitTest tests[] = {__VA_ARGS__};                                                                     \
        return case_run(argc, argv, usual, set_up, tests, length_of(tests));                                           \
    }

/* --- six panels --- */

/* Panels of 21 x 21 crystals, 10 mm apart, at 120 mm from the middle, so that hits are at multiples of 10 mm. Panel
 * 2 k is at the negative end of axis k, panel 2 k + 1 at the positive one. */
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
    return scanner_of_modules(modules, PANELS);
}

/* The crystal of a panel at these coordinates in mm along its two axes, which are in ascending order. */
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

/* Voxels are not cubic, a kernel cannot take all slices at once, and the grid is off centre so that nothing is
 * symmetric by chance. */
static inline lr_grid case_grid(void)
{
    return shifted_grid((const int[3]){38, 27, 22}, (const double[3]){4, 5, 6}, (const double[3]){1.3, -2.1, 0.7});
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

/* Random lines between different panels; with time of flight, positions are within 150 mm of the middle. */
static inline lr_event *case_events(int64_t count, uint64_t *seed)
{
    lr_event *events = kept(count, sizeof(*events));
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

static inline void expect_same_events(const struct lr_listmode_events *a, const struct lr_listmode_events *b)
{
    const size_t bytes = (size_t)b->layout.count * sizeof(int32_t);
    assert_memory_equal(a->groups, b->groups, (size_t)b->layout.num_pairs * sizeof(*b->groups));
    assert_memory_equal(a->crystals[0], b->crystals[0], bytes);
    assert_memory_equal(a->crystals[1], b->crystals[1], bytes);
    assert_memory_equal(a->tof_mm, b->tof_mm, bytes);
    assert_memory_equal(a->number, b->number, bytes);
}

/* --- backends --- */

/* A backend and all objects that it needs. */
struct case_backend {
    struct lr_listmode_model model;
    struct lr_listmode_events events;
    struct lr_backend backend;
    struct lr_listmode_backend_params params;
    struct test_log log;
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

/* Events as an operator prepares them: arranged by the device of the backend, or by the host. */
static inline lr_status case_arrange(struct case_backend *open, const lr_listmode_params *params)
{
    const bool is_cuda = params->backend != NULL && strcmp(params->backend, "cuda") == 0;
    lr_status status = lr_listmode_events_open(&open->events, params, NULL);
    if (status == LR_OK && is_cuda) status = lr_plugin_cuda(params->log)->arrange(&open->events, &open->params);
    return status == LR_OK && open->events.held == NULL ? lr_listmode_events_arrange(&open->events, params) : status;
}

static inline void end_backend(void *object)
{
    struct case_backend *open = object;
    if (open->backend.fns != NULL) open->backend.fns->destroy(open->backend.self);
    lr_listmode_events_finish(&open->events);
    lr_listmode_model_finish(&open->model);
    free(open);
}

/* Makes the model and the events of a backend, but not the backend; they live until the end of the case. */
static inline struct case_backend *case_models(const lr_listmode_params *params, const char *name)
{
    struct case_backend *open = calloc(1, sizeof(*open));
    lr_listmode_params logged = *params;
    assert_non_null(open);
    test_log_init(&open->log);
    logged.log = &open->log.log;
    logged.backend = name;
    lr_status status = lr_listmode_model_init(&open->model, &logged);
    open->params = filled(struct lr_listmode_backend_params, .model = &open->model, .events = &open->events,
                          .threads = params->threads > 0 ? params->threads : 2,
                          .max_memory_bytes = params->max_memory_bytes != 0 ? params->max_memory_bytes : most_bytes(),
                          .variant = params->variant, .place = case_place(name), .log = &open->log.log);
    status = status == LR_OK ? case_arrange(open, &logged) : status;
    if (status != LR_OK) fail_msg("%s", open->log.error);
    return keep_object(open, end_backend);
}

static inline struct case_backend *case_open(const lr_listmode_params *params, const char *name)
{
    struct case_backend *open = case_models(params, name);
    if (case_create(name, &open->params, &open->backend) != LR_OK) fail_msg("%s", open->log.error);
    return open;
}

/* --- projections of doubles, in the precision of the backend --- */

/* values: NULL = the vector is not filled. */
static inline lr_vector case_vector(const struct case_backend *open, int64_t count, const double *values)
{
    lr_vector vector = kept_vector(NULL, count, open->backend.fns->computes_in_double ? LR_FLOAT64 : LR_FLOAT32);
    if (values != NULL) assert_ok(lr_vector_copy(vector_of(values, count), &vector));
    return vector;
}

/* values: overwritten. Their old contents are copied to the output vector first, so that values left over are
   noticed. */
static inline void case_forward(const struct case_backend *open, const lr_selection *part, const double *image,
                                double *values)
{
    const int before = num_kept();
    const lr_vector from = case_vector(open, lr_grid_num_voxels(&open->model.grid), image);
    lr_vector to = case_vector(open, lr_selection_count(&open->events.layout, part), values);
    assert_ok(open->backend.fns->project(open->backend.self, true, part, &from, &to));
    assert_ok(lr_vector_copy(&to, vector_of(values, to.count)));
    destroy_kept_since(before);
}

/* values NULL: all values are 1. */
static inline void case_back(const struct case_backend *open, const lr_selection *part, const double *values,
                             double *image)
{
    const int before = num_kept();
    const lr_vector from = case_vector(open, lr_selection_count(&open->events.layout, part), values);
    lr_vector to = case_vector(open, lr_grid_num_voxels(&open->model.grid), image);
    assert_ok(open->backend.fns->project(open->backend.self, false, part, values != NULL ? &from : NULL, &to));
    assert_ok(lr_vector_copy(&to, vector_of(image, to.count)));
    destroy_kept_since(before);
}

static inline void case_project(const struct case_backend *open, const lr_selection *part, const struct both *both)
{
    case_forward(open, part, both->x, both->values);
    case_back(open, part, both->y, both->image);
}

static inline struct both case_both_of(const struct case_backend *open, const lr_selection *part)
{
    const int64_t count = lr_selection_count(&open->events.layout, part);
    const struct both both = case_inputs(lr_grid_num_voxels(&open->model.grid), count, NULL);
    case_project(open, part, &both);
    return both;
}

/* The same with a backend that is destroyed afterwards. */
static inline struct both case_both(const lr_listmode_params *params, const char *name, const double *y)
{
    const struct both both = case_inputs(lr_grid_num_voxels(params->grid), params->count, y);
    const int before = num_kept();
    case_project(case_open(params, name), NULL, &both);
    destroy_kept_since(before);
    return both;
}
