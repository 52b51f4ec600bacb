/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Memory and objects that live until the end of a case, small scanners with a grid each, for laws that hold for
 * every geometry, matrices, and comparisons. lr_test() links it. */
#pragma once

#include "test.h"

/* --- objects that live until the end of their case --- */

/* A case of cmocka, after which everything that it has kept is destroyed, the latest first. */
#define CASE(function) cmocka_unit_test_teardown(function, destroy_kept)
#define CASE_AFTER(set_up, function) cmocka_unit_test_setup_teardown(function, set_up, destroy_kept)
int destroy_kept(void **state);

/* Several cases: CASES(test_a, test_b), or CASES_SET_UP(test_a, test_b) if the file's set_up() comes before each. */
#define CASES(...) EACH(CASE, __VA_ARGS__)
#define CASE_SET_UP(function) CASE_AFTER(set_up, function)
#define CASES_SET_UP(...) EACH(CASE_SET_UP, __VA_ARGS__)

/* A case with the name of `check`. cmocka calls run(state), which calls given_check(state), cast to the type of
 * `check` if that is not void check(void). */
#define CASE_OF(run, check)                                                                                            \
    {                                                                                                                  \
#check, run, NULL, destroy_kept, (void *)(uintptr_t)(check)                                                    \
    }
typedef void check_fn(void);
check_fn *given_check(void **state);

/* Runs tests and destroys what they keep. Each test gets this state unless it has its own. `only` (or NULL) names
 * the tests to run. */
int test_run(const char *only, const char *group, struct CMUnitTest *tests, size_t count, void *state);

/* main() for tests without a state. test_main runs all tests, or those that argv[1] names. usable_main returns 77
 * (skipped) unless `usable` is true, and runs all tests, or those that argv[2] names. backend_main tests the backend
 * that argv[1] names, or else the usual one. */
#define test_main(group, ...)                                                                                          \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        struct CMUnitTest tests[] = {__VA_ARGS__};                                                                     \
        return test_run(argc > 1 ? argv[1] : NULL, group, tests, sizeof(tests) / sizeof(tests[0]), NULL);              \
    }
#define usable_main(usable, ...)                                                                                       \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        struct CMUnitTest tests[] = {__VA_ARGS__};                                                                     \
        if (!(usable)) return 77;                                                                                      \
        return test_run(argc > 2 ? argv[2] : NULL, argv[0], tests, sizeof(tests) / sizeof(tests[0]), NULL);            \
    }
#define backend_main(usual, ...) usable_main(test_backend_is_usable(argc, argv, usual), __VA_ARGS__)

/* Destroys all objects that were kept after num_kept() had this value, for loops that would keep too many. */
int num_kept(void);
void destroy_kept_since(int number);

/* The kinds of objects that keep() takes: X(name, destroy) is lr_name and its lr_name_destroy. */
#define EACH_KEPT(X)                                                                                                   \
    X(scanner, lr_scanner_destroy)                                                                                     \
    X(lors, lr_lors_destroy)                                                                                           \
    X(operator, lr_operator_destroy)                                                                                   \
    X(image, lr_image_destroy)                                                                                         \
    X(lor_data, lr_lor_data_destroy)                                                                                   \
    X(event_list, lr_event_list_destroy)                                                                               \
    X(deposit, lr_deposit_destroy)                                                                                     \
    X(histo_images, lr_histo_images_destroy)                                                                           \
    X(randoms, lr_randoms_destroy)                                                                                     \
    X(attenuation, lr_attenuation_destroy)                                                                             \
    X(place, lr_place_close)
#define DECLARE_KEEP(name, destroy) lr_##name *keep_##name(lr_##name *object);
EACH_KEPT(DECLARE_KEEP)

/* Returns an object that is destroyed at the end of the case. NULL fails the test with the library's last error. */
#define keep(object) _Generic((object), EACH_KEPT(KEEPER_OF) struct nothing_kept * : keep_scanner)(object)
#define KEEPER_OF(name, destroy) lr_##name * : keep_##name,
void *keep_object(void *object, void (*destroy)(void *object));

/* Zeroed memory, kept until the end of the case; also for a count of 0. */
void *kept(int64_t count, size_t size);
float *kept_floats(int64_t count);
double *kept_doubles(int64_t count);

/* Uniform random numbers from low to high. */
float *kept_random_floats(int64_t count, double low, double high, uint64_t *state);
double *kept_random_doubles(int64_t count, double low, double high, uint64_t *state);

/* The same, rounded to numbers that floats represent exactly. */
double *kept_random_singles(int64_t count, double low, double high, uint64_t *state);

/* Equal numbers. */
float *kept_equal_floats(int64_t count, float value);
double *kept_equal_doubles(int64_t count, double value);

/* An image of equal voxels. */
lr_image *kept_image(const lr_grid *grid, float value);

struct test_log *kept_log(void);
lr_vector kept_vector(lr_place *place, int64_t count, lr_precision precision);

/* --- small scanners --- */

/* Returns the scanner of a YAML description (docs/formats/scanners.md), which is formatted as by printf, or fails the
 * test. The caller destroys it. */
lr_scanner *scanner_from(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A kept scanner of these modules. */
lr_scanner *scanner_of_modules(const lr_module *modules, int count);

/* A centred grid moved by shift_mm. */
lr_grid shifted_grid(const int size[3], const double voxel_mm[3], const double shift_mm[3]);

/* Makes the LORs of a scanner, and keeps both. */
lr_lors *lors_from(lr_scanner *scanner);

enum fixture_kind {
    FIXTURE_OPPOSED = 0, /* two equal modules face to face */
    FIXTURE_OBLIQUE,     /* two modules 150 degrees apart around the axis */
    FIXTURE_TILTED,      /* two modules face to face, one of them rotated about two axes */
    FIXTURE_UNEQUAL,     /* two modules with different numbers, pitches and faces of crystals */
    FIXTURE_GAPPED,      /* the faces of crystals cover a third of the area of a pitch cell */
    FIXTURE_RING,        /* a ring of eight modules, with a field of view */
    FIXTURE_TWO_RINGS,   /* six modules in each of two rings, with a ring difference */
    FIXTURE_COUNT
};

struct fixture {
    const char *name;
    lr_scanner *scanner;
    lr_lors *lors;
    lr_grid grid; /* a few hundred voxels, off centre so that nothing is symmetric by chance */
};

/* Makes a fixture, or fails the test. A kept one is destroyed at the end of the case. */
void fixture_init(struct fixture *fixture, enum fixture_kind kind);
void fixture_finish(struct fixture *fixture);
struct fixture kept_fixture(enum fixture_kind kind);

/* Parameters for an operator on the fixture: sampled, 2 rays, 1 sample per voxel, not stored, 2 threads. */
lr_operator_params fixture_params(const struct fixture *fixture, const char *backend, const lr_log *log);

/* Creates an operator, or fails the test with the error's message. */
lr_operator *fixture_operator(const lr_operator_params *params);

/* Returns true if this backend runs on this machine, and prints the reason if it does not. The main function of a test
 * with a backend as argument then returns 77. */
bool fixture_backend_is_usable(const char *backend);

/* The backend that a program tests: its first argument, or else the usual one. */
extern const char *test_backend;

/* Sets test_backend; returns whether it runs on this machine. */
bool test_backend_is_usable(int argc, char **argv, const char *usual);
bool test_backend_is(const char *name);

/* Returns the subset of each LOR in a reconstruction, [lors->count]. The caller frees the array. */
int32_t *fixture_deal(const lr_lors *lors, int subsets);

/* Returns a source that reads an array with a number for each LOR. */
lr_lor_source source_of_values(const float *values);

/* Factors of all LORs; one in five is 0. */
extern const lr_lor_source fixture_factors;

/* Copies the values above 0 of dense data. */
lr_lor_data *kept_sparse(const lr_lor_data *dense);

/* --- matrices --- */

/* Takes rows one after the other into a dense matrix or sums, and checks them: LORs ascend, elements are positive. */
struct dense_rows {
    int64_t num_lors, next_row, num_elements;
    double *values; /* [num_rows][num_lors]; NULL = not wanted */
    double *sums;   /* [num_rows]; NULL = not wanted */
};
lr_status dense_rows_take(void *user, const lr_row *row);

/* Returns rows of voxels, or of points, as a dense matrix, [num_rows][num_lors]. */
double *kept_rows(lr_operator *op, int64_t begin, int64_t end);
double *kept_point_rows(lr_operator *op, const double (*points_mm)[3], int num_points);

/* --- comparisons of arrays of floats or doubles --- */

#define numbers_of(values, count)                                                                                      \
    _Generic((values),                                                                                           \
        float *: lr_vector_of_floats,                                                                            \
        const float *: lr_vector_of_floats,                                                                      \
        double *: lr_vector_of_doubles,                                                                          \
        const double *: lr_vector_of_doubles)(values, count)

/* The address of a vector of these numbers, for an argument. */
#define vector_of(values, count) ((lr_vector[1]){numbers_of(values, count)})

/* Sum of a_k b_k. */
#define dot_product(a, b, count) find_dot_product(numbers_of(a, count), numbers_of(b, count))
double find_dot_product(lr_vector a, lr_vector b);

/* Norm of a - b over the norm of b. */
#define l2_apart(a, b, count) find_l2_apart(numbers_of(a, count), numbers_of(b, count))
double find_l2_apart(lr_vector a, lr_vector b);

/* Largest |a_k - b_k| over the largest |b_k|. */
#define worst_apart(a, b, count) find_worst_apart(numbers_of(a, count), numbers_of(b, count))
double find_worst_apart(lr_vector a, lr_vector b);

/* Each number of `found` must agree with `expected` to a share of the largest expected number, which is above 0. */
#define assert_all_near(what, found, expected, count, share)                                                           \
    assert_vectors_near(what, #found, (const lr_vector[2]){numbers_of(found, count), numbers_of(expected, count)},     \
                        share)
void assert_vectors_near(const char *what, const char *text, const lr_vector numbers[2], double share);

/* <ax, y> and <x, aty> must agree to a share of |ax| |y|, which is above 0. Counts: of y, and of x. */
#define assert_adjoint(what, ax, y, num_values, x, aty, num_voxels, share)                                             \
    assert_vectors_adjoint(what, (const lr_vector[2]){numbers_of(ax, num_values), numbers_of(y, num_values)},          \
                           (const lr_vector[2]){numbers_of(x, num_voxels), numbers_of(aty, num_voxels)}, share)
void assert_vectors_adjoint(const char *what, const lr_vector values[2], const lr_vector images[2], double share);

/* Largest |a_k|. */
#define largest_number(a, count) find_largest_number(numbers_of(a, count))
double find_largest_number(lr_vector a);
