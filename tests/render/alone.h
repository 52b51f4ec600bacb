/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Single passes of src/correspondence, compared with the elements that the tracer of src/correspondence/cpu computes
 * for the voxels of a small grid and the LORs of some module pairs. The tests make each pass's input and read its
 * output themselves, so that no other shader affects the result. */
#pragma once

#include "subject.h"

#include "correspondence/compute/columns/columns.h"
#include "gl/context_private.h"
#include "gl/pass.h"
#include "model/scanner/coincidence.h"
#include "model/scanner/scanner.h"

/* A scanner of scanners.h, of this file, or a preset. Only `pairs` module pairs are compared, the first of which is a
 * pair of opposed modules. */
struct alone_case {
    const char *scanner;
    int rays;        /* 0: exact */
    int samples[3];  /* 0: one */
    bool off_centre; /* columns find mirror images in grids on centre */
    bool near;       /* the grid reaches up to modules */
    bool absorption, penetration, deterministic;
    int size[3]; /* of the grid; 0: 3 x 2 x 4 */
    int pairs;   /* 0: all */
};

struct alone {
    const struct alone_case *at;
    struct test_log log;
    struct gl_context *ctx;
    bool exact;
    lr_scanner *scanner;
    lr_lors *lors;
    lr_grid grid;
    lr_image *mu;
    struct lr_backend_params params;
    struct lr_rows rows;            /* the grid's */
    int per_row;                    /* sample points */
    struct lr_pair_window window;   /* of the compared pairs */
    lr_selection list;              /* ascending and one after the other */
    int64_t num_values, num_voxels; /* LORs of the pairs; the first one is value 0 */
    double *elements;               /* [num_voxels][num_values] by the tracer */
    double *edges;                  /* [num_voxels] sums of lines near edges; 0 in exact mode */
    double largest, largest_norm;   /* largest element, and largest norm of a row */
    uint64_t state;
};

#define alone_check(alone, condition)                                                                                  \
    do {                                                                                                               \
        if (!(condition)) fail_msg("%s: %s: %s", (alone)->at->scanner, #condition, (alone)->log.error);                \
    } while (0)

/* --- scanners --- */

/* Two rings that half a turn maps onto themselves, with no crystal near. Voxels see pairs of modules that are not
 * opposite; half a turn maps such a pair to a pair in the same order. */
static inline lr_scanner *create_wide_rings(void)
{
    return scanner_from(
        "ring: {radius_mm: 45, modules: 12, rings: 2, ring_pitch_mm: 8}\nmodule: {crystals: [5, 2], pitch_mm: [2.2, "
        "2.2], face_mm: [2, 2.1], depth_mm: 10}\ncoincidence: {min_module_difference: 5}\ndetection_depth_mm: 1.5");
}

/* Modules whose crystals are numbered along the column first, upwards and downwards. */
static inline lr_scanner *create_lying(void)
{
    const lr_module shape = {.crystals = {6, 4}, .pitch_mm = {2.2, 2.6}, .face_mm = {2.0, 2.3}, .depth_mm = 10};
    return placed(
        &shape, (const struct placement[]){{0, 42, 1, 0, 0, 90}, {170, 45, 0, 0, 0, 270}, {230, 40, -1, 0, 0, 90}}, 3);
}

/* Modules whose crystals are numbered along it last, some of them downwards. */
static inline lr_scanner *create_upside_down(void)
{
    const lr_module shape = shape_of(5, 6, 2.3, 2.1);
    return placed(&shape,
                  (const struct placement[]){{0, 42, 1, 0, 0, 180}, {170, 45, 0, 0, 0, 0}, {230, 40, 2, 0, 0, 180}}, 3);
}

/* Modules so far away that none is near, and that face each other. */
static inline lr_scanner *create_far_apart(void)
{
    const lr_module shape = shape_of(9, 8, 2.0, 1.9);
    return placed(&shape, (const struct placement[]){{90, 200, 0, 0, 0, 0}, {270, 200, 0, 6, 16, 4}}, 2);
}

static const struct scanner_case alone_scanners[] = {{"wide rings", create_wide_rings, 14},
                                                     {"lying", create_lying, 8},
                                                     {"upside down", create_upside_down, 8},
                                                     {"far apart", create_far_apart, 8}};

/* Makes the scanner; returns the distance from the centre up to which voxels lie. */
static inline double alone_make_scanner(struct alone *alone)
{
    for (int k = 0; k < 4 + length_of(scanner_cases); k++) {
        const struct scanner_case *at = k < 4 ? &alone_scanners[k] : &scanner_cases[k - 4];
        if (strcmp(at->name, alone->at->scanner) == 0) {
            alone->scanner = at->create();
            return at->reach_mm;
        }
    }
    alone->scanner = preset_scanner(alone->at->scanner);
    return 20;
}

/* --- what is asked --- */

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

/* `near`: the grid reaches up to one millimetre before the nearest detection plane. */
static inline void alone_make_grid(struct alone *alone, double reach)
{
    const int *wanted = alone->at->size, usual[3] = {3, 2, 4};
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

/* --- what the tracer says --- */

static inline lr_status alone_take(void *user, const lr_row *row)
{
    struct alone *alone = user;
    double *elements = alone->elements + row->row * alone->num_values, squared = 0;
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

/* The same as eye_borderline_weight, for lines through modules of the pairs. */
static inline double alone_edge_weight(const struct alone *alone, struct eye *eye, const double point_mm[3])
{
    double sum = 0;
    eye_place(eye, point_mm);
    for (int i = 0; i < alone->scanner->num_modules; i++) {
        bool listed = false;
        for (int64_t k = 0; k < alone->list.num_pairs; k++) {
            const int32_t *modules = alone->lors->pairs[alone->list.pairs[k]];
            listed = listed || modules[0] == i || modules[1] == i;
        }
        sum += listed ? eye_borderline_of_module(eye, i) : 0;
    }
    return sum;
}

/* The seed of the test, printed once. */
static inline uint64_t alone_seed(void)
{
    static uint64_t seed;
    static bool known;
    seed = known ? seed : test_seed();
    known = true;
    return seed;
}

static inline void end_alone(void *object)
{
    struct alone *alone = object;
    const bool saw_error = alone->ctx->saw_error;
    lr_image_destroy(alone->mu);
    free(alone);
    assert_false(saw_error);
}

/* The result lives until destroy_kept. */
static inline struct alone *alone_open(const struct alone_case *at)
{
    struct lr_backend cpu;
    struct alone *alone = keep_object(calloc(1, sizeof(*alone)), end_alone);
    *alone = (struct alone){.at = at, .ctx = stage_ctx, .exact = at->rays == 0, .state = alone_seed()};
    test_log_init(&alone->log);
    const double reach_mm = alone_make_scanner(alone);
    alone->lors = keep(lr_lors_create(keep(alone->scanner), &alone->log.log));
    const lr_lors *lors = alone->lors;
    const int64_t wanted = alone->at->pairs > 0 ? alone->at->pairs : lors->num_pairs;
    const int64_t first = alone->at->pairs > 0 ? alone_opposed_pair(alone) : 0;
    const int64_t end = first + wanted < lors->num_pairs ? first + wanted : lors->num_pairs;
    int32_t *pairs = kept(end - first, sizeof(*pairs));
    for (int64_t k = first; k < end; k++) pairs[k - first] = (int32_t)k;
    alone->list = (lr_selection){.pairs = pairs, .num_pairs = end - first};
    alone->num_values = lors->offsets[end] - lors->offsets[first];
    alone->window = lr_pair_window_begin(lors, NULL, 0);
    alone->window.begin = first;
    alone->window.end = end;
    alone->window.first_value = lors->offsets[first];
    alone->window.num_values = alone->num_values;
    alone_make_grid(alone, reach_mm);
    const lr_grid mu_grid = lr_grid_centred((const int[3]){9, 8, 7}, (const double[3]){reach_mm / 4, reach_mm / 4, 5});
    if (at->absorption) alone->mu = random_mu(&mu_grid, 0.02, &alone->state);
    if (at->penetration) alone->scanner->crystal_mu_per_mm = 0.08;
    alone->params = filled(struct lr_backend_params, .scanner = alone->scanner, .lors = alone->lors,
                           .grid = &alone->grid, .mode = alone->exact ? LR_MODE_EXACT : LR_MODE_SAMPLED,
                           .rays = alone->exact ? 4 : at->rays, .mu = alone->mu, .mu_steps = 40, .threads = 2,
                           .deterministic = at->deterministic, .penetration = at->penetration, .log = &alone->log.log);
    alone->rows = (struct lr_rows){.grid = &alone->grid, .end = alone->num_voxels};
    for (int k = 0; k < 3; k++)
        alone->params.samples[k] = alone->rows.samples[k] = at->samples[k] > 0 ? at->samples[k] : 1;
    alone->per_row = lr_rows_per_row(&alone->rows);
    alone->elements = kept(alone->num_voxels * alone->num_values, sizeof(double));
    alone_check(alone, lr_cpu_backend_create(&alone->params, &cpu) == LR_OK);
    alone_check(alone, cpu.fns->rows(cpu.self, &alone->rows, &(lr_row_sink){alone_take, alone}) == LR_OK);
    cpu.fns->destroy(cpu.self);
    assert_true(alone->largest > 0);
    alone->edges = kept(alone->num_voxels, sizeof(double));
    struct eye *eye = eye_create(alone->scanner, at->rays);
    for (int64_t k = 0; !alone->exact && k < alone->num_voxels * alone->per_row; k++) {
        double point_mm[3];
        lr_rows_point(&alone->rows, k / alone->per_row, (int)(k % alone->per_row), point_mm);
        alone->edges[k / alone->per_row] += alone_edge_weight(alone, eye, point_mm) / alone->per_row;
    }
    return alone;
}

/* --- what a pass is given --- */

/* Params of a method of the `compute` backend. */
static inline struct lr_method_params alone_method(const struct alone *alone)
{
    return filled(struct lr_method_params, .ctx = alone->ctx, .backend = &alone->params,
                  .may_hide = !alone->params.penetration && lr_modules_may_hide(alone->params.scanner),
                  .max_window = 1 << 24);
}

static inline struct gl_pass alone_pass(struct alone *alone, struct gl_program *program, const void *uniforms,
                                        size_t uniform_bytes, const int groups[3])
{
    alone_check(alone, program != NULL);
    return filled(struct gl_pass, .label = "a pass alone", .program = program, .uniforms = uniforms,
                  .uniform_bytes = uniform_bytes, .groups = {groups[0], groups[1], groups[2]},
                  .barriers = GL_SHADER_STORAGE_BARRIER_BIT | GL_BUFFER_UPDATE_BARRIER_BIT);
}

/* An image of one voxel. */
static inline float *alone_one_voxel(const struct alone *alone, int64_t voxel)
{
    float *image = kept(alone->num_voxels, sizeof(*image));
    image[voxel] = 1;
    return image;
}

/* --- what a pass says --- */

static inline double *alone_found(const struct alone *alone)
{
    return kept(alone->num_voxels * alone->num_values, sizeof(double));
}

/* Compares every element of every row. found: [num_voxels][num_values]. */
static inline void alone_compare(const struct alone *alone, const char *what, const double *found)
{
    const int64_t count = alone->num_values;
    double most_l2 = 0, most_worst = 0;
    for (int64_t v = 0; v < alone->num_voxels; v++) {
        struct gap gap = {0};
        for (int64_t k = 0; k < count; k++) gap_add(&gap, found[v * count + k], alone->elements[v * count + k]);
        const double squared = gap_sure(alone->at->scanner, v, &gap, alone->edges[v]);
        const double worst = alone->edges[v] > 0 ? 0 : gap.worst;
        most_l2 = fmax(most_l2, sqrt(squared) / fmax(sqrt(gap.norm), LEAST_ROW * alone->largest_norm));
        most_worst = fmax(most_worst, worst / fmax(gap.largest, LEAST_ROW * alone->largest));
    }
    print_message("%s, %s: rows to L2 %.1e, elements to %.1e of the largest\n", alone->at->scanner, what, most_l2,
                  most_worst);
    if (!(most_l2 <= ROW_L2 && most_worst <= ROW_WORST))
        fail_msg("%s, %s: L2 %.2g of a row, an element %.2g of the largest", alone->at->scanner, what, most_l2,
                 most_worst);
}

/* Projects an image of one voxel with a device that the test made. Writes found [num_values]. */
typedef void (*alone_forward)(struct alone *alone, void *device, int64_t voxel, double *found);

static inline void alone_check_forward(struct alone *alone, void *device, alone_forward forward)
{
    double *found = alone_found(alone);
    for (int64_t voxel = 0; voxel < alone->num_voxels; voxel++)
        forward(alone, device, voxel, found + voxel * alone->num_values);
    alone_compare(alone, alone->at->deterministic ? "forward in fixed point" : "forward", found);
}

/* Values that are compared one by one: values with the largest element of some voxels, some random values, and some for
 * which every voxel's element is 0. */
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
    struct alone_values values = {.value = kept(count, sizeof(int64_t))};
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

/* Compares the elements of one value. found: [num_voxels]. */
static inline void alone_compare_value(const struct alone *alone, const char *what, int64_t value, const double *found)
{
    for (int64_t v = 0; v < alone->num_voxels; v++) {
        const double want = alone->elements[v * alone->num_values + value], error = fabs(found[v] - want);
        const double close = (alone->exact ? ROW_WORST : ELEMENT_TOLERANCE) * fmax(want, LEAST_ROW * alone->largest);
        if (!(error <= close || error <= alone->edges[v] * (1 + ELEMENT_TOLERANCE))) {
            fail_msg("%s, %s: value %lld of voxel %lld is %.9g, the tracer has %.9g", alone->at->scanner, what,
                     (long long)value, (long long)v, found[v], want);
        }
    }
}

/* Compares sums of elements times `values`, which are from 0 to 2, relative to the largest sum. found: [num_voxels]. */
static inline void alone_compare_sums(const struct alone *alone, const char *what, const float *values,
                                      const double *found)
{
    double largest = 0, worst = 0;
    for (int64_t v = 0; v < alone->num_voxels; v++) {
        const double *row = alone->elements + v * alone->num_values;
        double want = 0;
        for (int64_t k = 0; k < alone->num_values; k++) want += row[k] * (double)values[k];
        largest = fmax(largest, want);
        worst = fmax(worst, fabs(found[v] - want) - 2 * 2 * alone->edges[v]);
    }
    print_message("%s, %s: sums to %.1e of the largest\n", alone->at->scanner, what, worst / largest);
    if (!(worst <= ROW_L2 * largest))
        fail_msg("%s, %s: a sum %.2g of the largest", alone->at->scanner, what, worst / largest);
}

/* Back-projects values [num_values] with a device that the test made, into image [num_voxels]. */
typedef void (*alone_back)(struct alone *alone, void *device, const float *values, double *image);

/* Back-projects `count` values one by one; each gives the elements of its LOR. */
static inline void alone_check_back_values(struct alone *alone, void *device, alone_back back, int count)
{
    double *image = kept(alone->num_voxels, sizeof(*image));
    struct alone_values chosen = alone_choose_values(alone, count);
    for (int k = 0; k < chosen.count; k++) {
        float *values = kept(alone->num_values, sizeof(*values));
        values[chosen.value[k]] = 1;
        back(alone, device, values, image);
        alone_compare_value(alone, "back", chosen.value[k], image);
    }
}

/* Back-projects all values at once, too. */
static inline void alone_check_back(struct alone *alone, void *device, alone_back back, int count)
{
    double *image = kept(alone->num_voxels, sizeof(*image));
    const float *values = kept_random_floats(alone->num_values, 0, 2, &alone->state);
    back(alone, device, values, image);
    alone_compare_sums(alone, "back", values, image);
    alone_check_back_values(alone, device, back, count);
}

/* Reads sums in fixed point, as shaders/common/fixed.glsl describes them: [count] after a header. */
static inline void alone_read_fixed(struct alone *alone, const struct gl_buffer *buffer, int64_t count, double *sums)
{
    uint32_t(*words)[2] = kept(count + 1, sizeof(*words));
    alone_check(alone, gl_buffer_read(buffer, 0, (count + 1) * 8, words) == LR_OK);
    assert_int_equal(words[0][0], 0); /* no overflow */
    for (int64_t k = 0; k < count; k++) {
        const int64_t whole = (int64_t)((uint64_t)words[k + 1][1] << 32 | (uint64_t)words[k + 1][0]);
        sums[k] = ldexp((double)whole, -61);
    }
}

/* --- lists of elements --- */

/* A list of elements as passes write it: a header whose first word is the number of elements, then four words for each
 * element: point or image, LOR, bits of the weight, and a word that is not used here. */
struct alone_elements {
    struct gl_buffer *buffer;
    int64_t capacity;
    int num_points; /* sample points of all voxels; the points of a voxel follow each other */
};

static inline struct alone_elements alone_elements_open(struct alone *alone)
{
    const int64_t capacity = 1 << 20;
    return (struct alone_elements){device_buffer(16 + 16 * capacity, NULL), capacity,
                                   (int)alone->num_voxels * alone->per_row};
}

/* Adds each element to the row of its voxel. `voxel_of` gives the voxel of each point or image; NULL: the points of the
 * first voxel come first, then those of the second, and so on. */
static inline void alone_elements_compare(struct alone *alone, const char *what, struct alone_elements *elements,
                                          const int64_t *voxel_of)
{
    double *found = alone_found(alone);
    uint32_t count;
    alone_check(alone, gl_buffer_read(elements->buffer, 0, 4, &count) == LR_OK);
    assert_true(count <= elements->capacity);
    uint32_t(*list)[4] = kept(count, sizeof(*list));
    alone_check(alone, count == 0 || gl_buffer_read(elements->buffer, 16, count * 16LL, list) == LR_OK);
    for (uint32_t k = 0; k < count; k++) {
        const int64_t voxel = voxel_of != NULL ? voxel_of[list[k][0]] : list[k][0] / alone->per_row;
        float weight;
        memcpy(&weight, &list[k][2], sizeof(weight));
        assert_true(voxel < alone->num_voxels && list[k][1] < alone->num_values);
        found[voxel * alone->num_values + list[k][1]] += (double)weight / alone->per_row;
    }
    alone_compare(alone, what, found);
}
