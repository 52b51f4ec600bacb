/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanners made in a test, rows of the cpu backend's matrix, and the closed form of a rectangle's solid angle. Expected
 * values are computed here and in the tests, independently of src/correspondence/cpu. */
#pragma once

#include "../cases.h"

#include "operator/backend.h"
#include "unit/scanners.h"

#define TEST_PI 3.14159265358979323846

/* A backend with the objects that it uses. */
struct setup {
    struct test_log *log;
    lr_scanner *scanner;
    lr_lors *lors;
    struct lr_backend backend;
};

struct setup_options {
    lr_mode mode;
    int rays, threads;
    const lr_image *mu;
    int mu_steps;
    const lr_progress *progress;
    const lr_grid *grid;
    int samples[3]; /* zeros = 1 */
    bool penetration;
};

/* A module of nu x nv crystals; u and v may have any length here. */
static inline lr_module make_module(const double centre[3], const double u[3], const double v[3], const int crystals[2],
                                    double pitch, double face)
{
    lr_module module = {
        .crystals = {crystals[0], crystals[1]}, .pitch_mm = {pitch, pitch}, .face_mm = {face, face}, .depth_mm = 0.5};
    const double lu = sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
    const double lv = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
    for (int k = 0; k < 3; k++) {
        module.centre_mm[k] = centre[k];
        module.u[k] = u[k] / lu;
        module.v[k] = v[k] / lv;
    }
    return module;
}

/* An upright module that faces the axis, with its centre at this angle and radius. */
static inline lr_module upright_module(double radius, double angle_deg, double z, const int crystals[2], double pitch,
                                       double face)
{
    const double a = angle_deg * TEST_PI / 180;
    return make_module((double[3]){radius * cos(a), radius * sin(a), z}, (double[3]){-sin(a), cos(a), 0},
                       (double[3]){0, 0, 1}, crystals, pitch, face);
}

static inline void end_backend(void *object)
{
    struct lr_backend *backend = object;
    backend->fns->destroy(backend->self);
    free(backend);
}

/* Takes over the scanner. All objects live until destroy_kept. */
static inline struct setup setup_of(lr_scanner *scanner, const struct setup_options *options)
{
    lr_grid *grid = kept(1, sizeof(*grid));
    struct lr_backend *backend = calloc(1, sizeof(*backend));
    *grid = options->grid ? *options->grid : lr_grid_centred((int[3]){1, 1, 1}, (double[3]){1, 1, 1});
    struct setup setup = {.log = kept_log(), .scanner = keep(scanner)};
    setup.lors = keep(lr_lors_create(scanner, &setup.log->log));
    struct lr_backend_params params = filled(
        struct lr_backend_params, .scanner = scanner, .lors = setup.lors, .grid = grid,
        .mode = options->mode == LR_MODE_AUTO ? LR_MODE_SAMPLED : options->mode,
        .rays = options->rays ? options->rays : 4, .mu = options->mu,
        .mu_steps = options->mu_steps ? options->mu_steps : 1, .threads = options->threads ? options->threads : 2,
        .log = &setup.log->log, .progress = options->progress, .penetration = options->penetration);
    for (int k = 0; k < 3; k++) params.samples[k] = options->samples[k] ? options->samples[k] : 1;
    assert_non_null(backend);
    assert_ok(lr_cpu_backend_create(&params, backend));
    setup.backend = *(struct lr_backend *)keep_object(backend, end_backend);
    assert_true(setup.backend.fns->computes_in_double);
    return setup;
}

static inline lr_scanner *scanner_of(const lr_module *modules, int num_modules)
{
    return lr_scanner_create(&(lr_scanner_params){.modules = modules, .num_modules = num_modules});
}

static inline struct setup exact_setup(const lr_module *modules, int num_modules)
{
    return setup_of(scanner_of(modules, num_modules), &(struct setup_options){.mode = LR_MODE_EXACT});
}

/* Compares counts with expectations by Pearson's statistic, which must be within `sigmas` standard deviations. LORs
 * with small expectations count together as one. `given`: number of values to which the expectations were fitted. */
static inline void check_counts(const char *name, const double *counts, const double *expected, int64_t num_lors,
                                int given, int least_degrees, double sigmas)
{
    enum { FEWEST = 25 };
    double chi2 = 0, rest[2] = {0, 0};
    int degrees = -given;
    for (int64_t lor = 0; lor < num_lors; lor++) {
        assert_true(expected[lor] > 0 || counts[lor] == 0);
        if (expected[lor] < FEWEST) {
            rest[0] += counts[lor];
            rest[1] += expected[lor];
        } else {
            chi2 += pow(counts[lor] - expected[lor], 2) / expected[lor];
            degrees++;
        }
    }
    print_message("%s: chi2 %.1f over %d LORs; others: %g counted, %.1f expected\n", name, chi2, degrees, rest[0],
                  rest[1]);
    assert_all(degrees >= least_degrees, fabs(chi2 - degrees) <= sigmas * sqrt(2.0 * degrees));
    assert_true(fabs(rest[0] - rest[1]) <= sigmas * sqrt(rest[1]));
}

/* Reads the rows of points into a dense matrix, into sums, or both. */
static inline void take_points(struct setup *setup, const double (*points)[3], int num_points, struct dense_rows *dense)
{
    const struct lr_rows rows = {.points_mm = points, .end = num_points};
    dense->num_lors = setup->lors->count;
    assert_ok(setup->backend.fns->rows(setup->backend.self, &rows, &(lr_row_sink){dense_rows_take, dense}));
    assert_int_equal(dense->next_row, num_points);
}

/* Rows of points as a dense matrix. */
static inline double *point_matrix(struct setup *setup, const double (*points)[3], int num_points)
{
    struct dense_rows dense = {.values = kept_doubles(setup->lors->count * num_points)};
    take_points(setup, points, num_points, &dense);
    return dense.values;
}

/* Sums of the rows of points. */
static inline void point_sums(struct setup *setup, const double (*points)[3], int num_points, double *sums)
{
    take_points(setup, points, num_points, &(struct dense_rows){.sums = sums});
}

static inline double point_sum(struct setup *setup, double x, double y, double z)
{
    double sum;
    const double points[1][3] = {{x, y, z}};
    point_sums(setup, points, 1, &sum);
    return sum;
}

/* Distance along `way` to the module's plane, for a module that faces the point; INFINITY if the line misses the
 * module. *on_face: true if the line hits a crystal face. */
static inline double meet_module(const lr_module *module, const double point[3], const double way[3], bool *on_face)
{
    double at[3];
    for (int k = 0; k < 3; k++) at[k] = point[k] - module->centre_mm[k];
    const double height = dot_product(module->normal, at, 3), speed = -dot_product(module->normal, way, 3);
    if (height <= 0 || speed <= 0) return INFINITY;
    for (int k = 0; k < 3; k++) at[k] += height / speed * way[k];
    *on_face = true;
    for (int k = 0; k < 2; k++) {
        const double place =
            dot_product(k == 0 ? module->u : module->v, at, 3) / module->pitch_mm[k] + 0.5 * module->crystals[k];
        if (place < 0 || place > module->crystals[k]) return INFINITY;
        *on_face = *on_face && fabs(place - floor(place) - 0.5) * module->pitch_mm[k] <= 0.5 * module->face_mm[k];
    }
    return height / speed;
}

/* A random direction, uniform over the sphere, and the opposite direction. */
static inline void random_ways(uint64_t *seed, double ways[2][3])
{
    const double z = 2 * test_random(seed) - 1, phi = 2 * TEST_PI * test_random(seed), across = sqrt(1 - z * z);
    const double way[3] = {across * cos(phi), across * sin(phi), z};
    for (int k = 0; k < 6; k++) ways[k / 3][k % 3] = k < 3 ? way[k] : -way[k - 3];
}

static inline double corner_term(double x, double y, double z)
{
    return atan(x * y / (z * sqrt(x * x + y * y + z * z)));
}

/* Solid angle of [x0, x1] x [z0, z1] in the plane at distance d, seen from the origin. */
static inline double rectangle_angle(double x0, double x1, double z0, double z1, double d)
{
    if (x0 >= x1 || z0 >= z1) return 0;
    return corner_term(x1, z1, d) - corner_term(x0, z1, d) - corner_term(x1, z0, d) + corner_term(x0, z0, d);
}

static inline lr_module level_module(double x, double y, double z, const int crystals[2], double pitch, double face)
{
    return make_module((double[3]){x, y, z}, (double[3]){1, 0, 0}, (double[3]){0, 0, 1}, crystals, pitch, face);
}

static inline double pair_sum(const struct setup *setup, const double *row, int i, int j)
{
    const int pair = (int)lr_lors_pair(setup->lors, i, j);
    assert_true(pair >= 0);
    double sum = 0;
    for (int64_t lor = setup->lors->offsets[pair]; lor < setup->lors->offsets[pair + 1]; lor++) sum += row[lor];
    return sum;
}

/* Relative L2 distance between sampled and exact rows of the same scanner. */
static inline double mode_distance(lr_scanner *(*make)(uint64_t *seed), uint64_t seed, const double (*points)[3],
                                   int num_points, int rays)
{
    static const lr_mode modes[] = {LR_MODE_SAMPLED, LR_MODE_EXACT};
    double *matrices[2];
    int64_t count = 0;
    for (int mode = 0; mode < 2; mode++) {
        uint64_t same = seed;
        struct setup setup = setup_of(make(&same), &(struct setup_options){.mode = modes[mode], .rays = rays});
        matrices[mode] = point_matrix(&setup, points, num_points);
        count = setup.lors->count * num_points;
    }
    return largest_number(matrices[1], count) > 0 ? l2_apart(matrices[0], matrices[1], count) : 0;
}
