/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Single passes of src/correspondence against the elements that the tracer of src/correspondence/cpu has for the voxels of
 * a small grid and the LORs of some module pairs: the tests give a pass its input themselves and
 * read its output themselves, so that no other shader has a part in the answer. */
#ifndef LR_TESTS_RENDER_ALONE_H
#define LR_TESTS_RENDER_ALONE_H

#include "stage.h"

#include "correspondence/compute/columns/columns.h"
#include "gl/pass.h"
#include "model/scanner/arrangement.h"
#include "model/scanner/coincidence.h"

#include <lr/io.h>

/* Exact elements of one row: relative L2, and the worst over the row's largest; rows count as no
 * smaller than a share of the largest one (tests/render/columns.c). */
#define ALONE_L2 1e-5
#define ALONE_WORST 1e-4
#define ALONE_LEAST_ROW 0.1

/* A preset is a real scanner of assets/; `pairs` of its module pairs from one of opposed modules on
 * stand for all. */
struct alone_case {
    const char *scanner;
    const struct scanner_case *own; /* a scanner that is not among those of scanners.h, or NULL */
    lr_mode mode;
    int rays;
    int samples[3];
    bool is_preset, off_centre; /* grids on centre let columns find mirror images */
    bool near;                  /* the grid reaches up to modules */
    bool absorption, penetration, deterministic;
    int size[3]; /* of the grid; 0: 3 x 2 x 4 */
    int pairs;   /* 0: all */
};

struct alone {
    const struct alone_case *at;
    struct test_log log;
    struct gl_context *ctx;
    lr_scanner *scanner;
    lr_lors *lors;
    lr_grid grid;
    lr_image *mu;
    struct lr_backend_params params;
    struct lr_pair_window window; /* of the pairs that are looked at */
    int32_t *pairs;               /* [num_pairs], ascending and one after the other */
    struct lr_pair_list list;
    int64_t num_values, num_voxels; /* LORs of the pairs; their first one is value 0 */
    double *elements;               /* [num_voxels][num_values], of the tracer */
    double *edges;                  /* [num_voxels] what lines near edges carry; 0 in exact mode */
    double largest, largest_norm;   /* of an element and of a row */
    uint64_t state;
};

#define alone_check(alone, condition)                                                                                  \
    do {                                                                                                               \
        if (!(condition)) fail_msg("%s: %s: %s", (alone)->at->scanner, #condition, (alone)->log.error);                \
    } while (0)

/* --- what is asked --- */

static inline const struct scanner_case *alone_scanner_case(const struct alone *alone)
{
    return alone->at->own != NULL ? alone->at->own : scanner_case_named(alone->at->scanner);
}

static inline void alone_make_scanner(struct alone *alone)
{
    const struct alone_case *at = alone->at;
    alone->scanner =
        at->is_preset ? lr_scanner_read(at->scanner, &alone->log.log) : alone_scanner_case(alone)->create();
    alone_check(alone, alone->scanner != NULL);
    alone->lors = lr_lors_create(alone->scanner, &alone->log.log);
    alone_check(alone, alone->lors != NULL);
}

/* The pair of module 0 whose other module is farthest, so that the grid lies between them. */
static inline int64_t alone_opposed_pair(const struct alone *alone)
{
    double from[3], to[3], way[3], farthest = 0;
    int64_t found = 0;
    lr_scanner_detection_centre(alone->scanner, 0, from);
    for (int64_t k = 0; k < alone->lors->num_pairs && alone->lors->pairs[k][0] == 0; k++) {
        lr_scanner_detection_centre(alone->scanner, alone->lors->pairs[k][1], to);
        vec_sub(to, from, way);
        if (vec_dot(way, way) > farthest * (1 + 1e-9)) {
            farthest = vec_dot(way, way);
            found = k;
        }
    }
    return found;
}

static inline void alone_choose_pairs(struct alone *alone)
{
    const lr_lors *lors = alone->lors;
    const int64_t wanted = alone->at->pairs > 0 ? alone->at->pairs : lors->num_pairs;
    const int64_t first = alone->at->pairs > 0 ? alone_opposed_pair(alone) : 0;
    const int64_t end = first + wanted < lors->num_pairs ? first + wanted : lors->num_pairs;
    alone->pairs = test_alloc(end - first, sizeof(*alone->pairs));
    for (int64_t k = first; k < end; k++) alone->pairs[k - first] = (int32_t)k;
    alone->list = (struct lr_pair_list){.pairs = alone->pairs, .num_pairs = end - first};
    alone->num_values = lors->offsets[end] - lors->offsets[first];
    alone->window = lr_pair_window_begin(lors, NULL, 0);
    alone->window.begin = first;
    alone->window.end = end;
    alone->window.first_value = lors->offsets[first];
    alone->window.num_values = alone->num_values;
}

static inline double alone_reach(const struct alone *alone)
{
    return alone->at->is_preset ? 20 : alone_scanner_case(alone)->reach_mm;
}

/* `near`: as far as the nearest detection plane, less a millimetre. */
static inline void alone_make_grid(struct alone *alone)
{
    const int *wanted = alone->at->size;
    const int usual[3] = {3, 2, 4};
    const double reach = alone_reach(alone);
    double nearest = INFINITY;
    for (int m = 0; m < alone->scanner->num_modules; m++) {
        double centre[3];
        lr_scanner_detection_centre(alone->scanner, m, centre);
        nearest = fmin(nearest, -vec_dot(centre, alone->scanner->modules[m].normal));
    }
    const int *size = wanted[0] > 0 ? wanted : usual;
    double edges[3] = {1.5 * reach / size[0], 1.2 * reach / size[1], reach / size[2]};
    if (alone->at->near) edges[0] = 2 * (nearest - 1) / size[0];
    alone->grid = lr_grid_centred(size, edges);
    alone->num_voxels = lr_grid_num_voxels(&alone->grid);
    for (int k = 0; k < 3 && alone->at->off_centre; k++) alone->grid.origin_mm[k] += edges[k] * (0.31 - 0.24 * k);
}

/* Up to 0.02 / mm, about that of crystals. */
static inline void alone_make_mu(struct alone *alone)
{
    const double edge = alone_reach(alone) / 4;
    const lr_grid grid = lr_grid_centred((const int[3]){9, 8, 7}, (const double[3]){edge, edge, 5});
    alone->mu = lr_image_create(&grid, NULL);
    assert_non_null(alone->mu);
    for (int64_t v = 0; v < lr_grid_num_voxels(&grid); v++)
        alone->mu->values[v] = (float)random_between(&alone->state, 0, 0.02);
}

/* --- what the tracer says --- */

static inline lr_status alone_take(void *user, const lr_row *row)
{
    struct alone *alone = user;
    double *elements = alone->elements + row->row * alone->num_values;
    double squared = 0;
    for (int64_t k = 0; k < row->count; k++) {
        const int64_t value = row->lor[k] - alone->window.first_value;
        if (value >= 0 && value < alone->num_values) {
            elements[value] = row->probability[k];
            alone->largest = fmax(alone->largest, elements[value]);
            squared += elements[value] * elements[value];
        }
    }
    alone->largest_norm = fmax(alone->largest_norm, sqrt(squared));
    return LR_OK;
}

static inline struct lr_rows alone_rows(const struct alone *alone)
{
    const int *samples = alone->at->samples;
    return (struct lr_rows){
        .grid = &alone->grid, .samples = {samples[0], samples[1], samples[2]}, .end = alone->num_voxels};
}

static inline void alone_trace(struct alone *alone)
{
    struct lr_backend cpu;
    const struct lr_rows rows = alone_rows(alone);
    alone->elements = test_alloc(alone->num_voxels * alone->num_values, sizeof(double));
    alone_check(alone, lr_cpu_backend_create(&alone->params, &cpu) == LR_OK);
    alone_check(alone, cpu.fns->rows(cpu.self, &rows, &(lr_row_sink){alone_take, alone}) == LR_OK);
    cpu.fns->destroy(cpu.self);
    assert_true(alone->largest > 0);
}

/* As eye_borderline_weight, of lines through modules of the pairs. */
static inline double alone_edge_weight(const struct alone *alone, struct eye *eye, const double point_mm[3])
{
    double sum = 0;
    eye_place(eye, point_mm);
    for (int i = 0; i < alone->scanner->num_modules; i++) {
        bool listed = false;
        for (int64_t k = 0; k < alone->list.num_pairs; k++) {
            const int32_t *modules = alone->lors->pairs[alone->pairs[k]];
            listed = listed || modules[0] == i || modules[1] == i;
        }
        sum += listed ? eye_borderline_of_module(eye, i) : 0;
    }
    return sum;
}

static inline void alone_find_edges(struct alone *alone)
{
    const struct lr_rows rows = alone_rows(alone);
    const int points = lr_rows_per_row(&rows);
    alone->edges = test_alloc(alone->num_voxels, sizeof(double));
    if (alone->at->mode == LR_MODE_EXACT) return;
    struct eye *eye = eye_create(alone->scanner, alone->at->rays);
    for (int64_t k = 0; k < alone->num_voxels * points; k++) {
        double point_mm[3];
        lr_rows_point(&rows, k / points, (int)(k % points), point_mm);
        alone->edges[k / points] += alone_edge_weight(alone, eye, point_mm) / points;
    }
    eye_destroy(eye);
}

/* Printed once. */
static inline uint64_t alone_seed(void)
{
    static uint64_t seed;
    static bool known;
    seed = known ? seed : test_seed();
    known = true;
    return seed;
}

static inline void alone_open(struct alone *alone, struct gl_context *ctx, const struct alone_case *at)
{
    *alone = (struct alone){.at = at, .ctx = ctx, .state = alone_seed()};
    test_log_init(&alone->log);
    alone_make_scanner(alone);
    alone_choose_pairs(alone);
    alone_make_grid(alone);
    if (at->absorption) alone_make_mu(alone);
    if (at->penetration) alone->scanner->crystal_mu_per_mm = 0.08;
    alone->params = (struct lr_backend_params){.scanner = alone->scanner,
                                               .lors = alone->lors,
                                               .grid = &alone->grid,
                                               .mode = at->mode,
                                               .rays = at->rays > 0 ? at->rays : 4,
                                               .samples = {at->samples[0], at->samples[1], at->samples[2]},
                                               .mu = alone->mu,
                                               .mu_steps = 40,
                                               .threads = 2,
                                               .deterministic = at->deterministic,
                                               .penetration = at->penetration,
                                               .log = &alone->log.log};
    alone_trace(alone);
    alone_find_edges(alone);
}

static inline void alone_close(struct alone *alone)
{
    assert_false(gl_context_saw_error(alone->ctx));
    free(alone->edges);
    free(alone->elements);
    free(alone->pairs);
    lr_image_destroy(alone->mu);
    lr_lors_destroy(alone->lors);
    lr_scanner_destroy(alone->scanner);
}

/* --- what a pass says --- */

/* found: [num_voxels][num_values]. Every element of every row. */
static inline void alone_compare(const struct alone *alone, const char *what, const double *found)
{
    const int64_t count = alone->num_values;
    double most_l2 = 0, most_worst = 0;
    for (int64_t v = 0; v < alone->num_voxels; v++) {
        const double *want = alone->elements + v * count, *got = found + v * count;
        double squared = 0, worst = 0, norm = 0, largest = 0;
        for (int64_t k = 0; k < count; k++) {
            const double error = fabs(got[k] - want[k]);
            squared += error * error;
            worst = error > worst ? error : worst;
            norm += want[k] * want[k];
            largest = want[k] > largest ? want[k] : largest;
        }
        if (alone->at->mode != LR_MODE_EXACT && alone->edges[v] > 0) {
            squared = sure_distance(got, want, count, alone->edges[v]);
            worst = 0;
        }
        norm = fmax(sqrt(norm), ALONE_LEAST_ROW * alone->largest_norm);
        largest = fmax(largest, ALONE_LEAST_ROW * alone->largest);
        most_l2 = fmax(most_l2, sqrt(squared) / norm);
        most_worst = fmax(most_worst, worst / largest);
    }
    print_message("%s, %s: rows to L2 %.1e, elements to %.1e of the largest\n", alone->at->scanner, what, most_l2,
                  most_worst);
    if (!(most_l2 <= ALONE_L2 && most_worst <= ALONE_WORST)) {
        fail_msg("%s, %s: L2 %.2g of a row, an element %.2g of the largest", alone->at->scanner, what, most_l2,
                 most_worst);
    }
}

/* Values whose elements are looked at one by one: those with the largest element of some voxels,
 * others that are drawn, and some that no voxel has. */
struct alone_values {
    int64_t *value; /* [count] ascending */
    int count;
};

static inline int alone_compare_values(const void *a, const void *b)
{
    const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

static inline int64_t alone_next_element(const struct alone *alone, int64_t voxel, int64_t value)
{
    const double *row = alone->elements + voxel * alone->num_values;
    for (int64_t k = 0; k < alone->num_values; k++) {
        const int64_t at = (value + k) % alone->num_values;
        if (row[at] > 0) return at;
    }
    return value;
}

static inline struct alone_values alone_choose_values(struct alone *alone, int count)
{
    struct alone_values values = {.value = test_alloc(count, sizeof(int64_t))};
    for (int k = 0; k < count; k++) {
        const int64_t drawn = (int64_t)((double)alone->num_values * test_random(&alone->state));
        values.value[k] = k % 8 == 0 ? drawn : alone_next_element(alone, k % alone->num_voxels, drawn);
    }
    qsort(values.value, (size_t)count, sizeof(*values.value), alone_compare_values);
    for (int k = 0; k < count; k++)
        if (values.count == 0 || values.value[values.count - 1] != values.value[k])
            values.value[values.count++] = values.value[k];
    return values;
}

/* found: [num_voxels], the elements of one value. */
static inline void alone_compare_value(const struct alone *alone, const char *what, int64_t value, const double *found)
{
    for (int64_t v = 0; v < alone->num_voxels; v++) {
        const double want = alone->elements[v * alone->num_values + value];
        const double error = fabs(found[v] - want);
        const double close = alone->at->mode == LR_MODE_EXACT
                                 ? ALONE_WORST * fmax(want, ALONE_LEAST_ROW * alone->largest)
                                 : ELEMENT_TOLERANCE * fmax(want, ALONE_LEAST_ROW * alone->largest);
        if (!(error <= close || error <= alone->edges[v] * (1 + ELEMENT_TOLERANCE))) {
            fail_msg("%s, %s: value %lld of voxel %lld is %.9g, the tracer has %.9g", alone->at->scanner, what,
                     (long long)value, (long long)v, found[v], want);
        }
    }
}

/* found: [num_voxels], the elements times `values`, which are 0 to 2. Over the largest sum. */
static inline void alone_compare_sums(const struct alone *alone, const char *what, const float *values,
                                      const double *found)
{
    double *want = test_alloc(alone->num_voxels, sizeof(*want)), largest = 0, worst = 0;
    for (int64_t v = 0; v < alone->num_voxels; v++) {
        const double *row = alone->elements + v * alone->num_values;
        for (int64_t k = 0; k < alone->num_values; k++) want[v] += row[k] * (double)values[k];
        largest = fmax(largest, want[v]);
    }
    for (int64_t v = 0; v < alone->num_voxels; v++) {
        const double error = fmax(fabs(found[v] - want[v]) - 2 * 2 * alone->edges[v], 0);
        worst = fmax(worst, error / largest);
    }
    print_message("%s, %s: sums to %.1e of the largest\n", alone->at->scanner, what, worst);
    free(want);
    if (!(worst <= ALONE_L2)) fail_msg("%s, %s: a sum %.2g of the largest", alone->at->scanner, what, worst);
}

static inline float *alone_random_values(struct alone *alone)
{
    float *values = test_alloc(alone->num_values, sizeof(*values));
    for (int64_t k = 0; k < alone->num_values; k++) values[k] = (float)random_between(&alone->state, 0, 2);
    return values;
}

/* Back-projects values [num_values] by a device of the test's into image [num_voxels]. */
typedef void (*alone_back)(struct alone *alone, void *device, const float *values, double *image);

/* Values one by one, `count` of them, which are the elements of their LORs. */
static inline void alone_check_back_values(struct alone *alone, void *device, alone_back back, int count)
{
    double *image = test_alloc(alone->num_voxels, sizeof(*image));
    struct alone_values chosen = alone_choose_values(alone, count);
    for (int k = 0; k < chosen.count; k++) {
        float *values = test_alloc(alone->num_values, sizeof(*values));
        values[chosen.value[k]] = 1;
        back(alone, device, values, image);
        alone_compare_value(alone, "back", chosen.value[k], image);
        free(values);
    }
    free(chosen.value);
    free(image);
}

/* And all at once. */
static inline void alone_check_back(struct alone *alone, void *device, alone_back back, int count)
{
    double *image = test_alloc(alone->num_voxels, sizeof(*image));
    float *values = alone_random_values(alone);
    back(alone, device, values, image);
    alone_compare_sums(alone, "back", values, image);
    alone_check_back_values(alone, device, back, count);
    free(values);
    free(image);
}

/* Sums in fixed point, as shaders/common/fixed.glsl describes them: [count] behind a head. */
static inline void alone_read_fixed(struct alone *alone, const struct gl_buffer *buffer, int64_t count, double *sums)
{
    uint32_t(*words)[2] = test_alloc(count + 1, sizeof(*words));
    alone_check(alone, gl_buffer_read(buffer, 0, (count + 1) * 8, words) == LR_OK);
    assert_int_equal(words[0][0], 0); /* no overflow */
    for (int64_t k = 0; k < count; k++) {
        const int64_t whole = (int64_t)((uint64_t)words[k + 1][1] << 32 | (uint64_t)words[k + 1][0]);
        sums[k] = ldexp((double)whole, -61);
    }
    free(words);
}

/* main of tests that are given the context. */
#define alone_main(group, ...)                                                                                         \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        struct gl_context *ctx = stage_context();                                                                      \
        if (ctx == NULL) return 77;                                                                                    \
        stage_choose_tests(argc, argv);                                                                                \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                                               \
        struct CMUnitTest given[sizeof(tests) / sizeof(tests[0])];                                                     \
        for (size_t k = 0; k < sizeof(tests) / sizeof(tests[0]); k++) {                                                \
            given[k] = tests[k];                                                                                       \
            given[k].initial_state = ctx;                                                                              \
        }                                                                                                              \
        const int failed = cmocka_run_group_tests_name(group, given, NULL, NULL);                                      \
        stage_leave(ctx);                                                                                              \
        return failed;                                                                                                 \
    }

/* What a method of the `compute` backend is made of. */
static inline struct lr_method_params alone_method(const struct alone *alone)
{
    return (struct lr_method_params){.ctx = alone->ctx,
                                     .backend = &alone->params,
                                     .may_hide =
                                         !alone->params.penetration && lr_modules_may_hide(alone->params.scanner),
                                     .max_window = 1 << 24};
}

#endif
