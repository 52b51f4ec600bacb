/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The native backend against the cpu backend, element by element: sampled lines, and exact overlaps in float against
 * the reference in double. */
#include "fixtures.h"

#include "native/turned.h"

/* Exact mode, for the row of each point: relative L2 difference, and largest difference relative to the scanner's
   largest element. */
static const double exact_l2 = 1e-5, exact_worst = 1e-4;

/* Sampled mode computes in double where lines hit, so that only the weights are rounded. */
static const double sampled_l2 = 1e-6;

enum { NUM_POINTS = 12 };

/* Dense rows, or NULL if the backend refuses the scanner, which must give LR_USAGE. */
static const double *ask(const lr_operator_params *params, const char *backend, const double (*points)[3])
{
    struct test_log *log = kept_log();
    lr_operator_params asked = *params;
    asked.backend = backend;
    asked.log = &log->log;
    lr_operator *op = lr_operator_create(&asked);
    if (op == NULL && log->status == LR_USAGE && strcmp(backend, "native") == 0) {
        assert_says(log->error, "use backend");
        return NULL;
    }
    return kept_point_rows(keep(op), points, NUM_POINTS);
}

/* Returns true if the backend supports the scanner. */
static bool compare(const char *name, const lr_operator_params *params, const double (*points)[3])
{
    const bool is_exact = params->mode == LR_MODE_EXACT;
    const double *found = ask(params, "native", points);
    if (found == NULL) return false;
    const double *expected = ask(params, "cpu", points);
    const int64_t num_lors = params->lors->count;
    const double worst = worst_apart(found, expected, NUM_POINTS * num_lors);
    double l2 = 0; /* the largest of the rows */
    int num_rows = 0;
    for (int n = 0; n < NUM_POINTS; n++) {
        const double *there = expected + n * num_lors, *here = found + n * num_lors;
        const bool is_empty = largest_number(there, num_lors) == 0;
        assert_true(!is_empty || largest_number(here, num_lors) == 0);
        l2 = is_empty ? l2 : fmax(l2, l2_apart(here, there, num_lors));
        num_rows += !is_empty;
    }
    print_message("%-14s %s R = %d: L2 %.1e, worst %.1e of the largest, %d rows\n", name,
                  is_exact ? "exact" : "sampled", params->rays, l2, worst, num_rows);
    assert_all(num_rows > 0, l2 <= (is_exact ? exact_l2 : sampled_l2), worst <= exact_worst);
    return true;
}

static bool check_scanner(const struct scanner_case *at, uint64_t *state)
{
    double points[NUM_POINTS][3];
    const lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){2, 2, 2});
    lr_scanner *scanner = keep(at->create());
    for (int n = 0; n < NUM_POINTS; n++) test_point(scanner, at->reach_mm, n, state, points[n]);
    lr_operator_params params = filled(lr_operator_params, .lors = keep(lr_lors_create(scanner, NULL)), .grid = &grid,
                                       .mode = LR_MODE_EXACT, .samples = {1, 1, 1}, .store = LR_STORE_NO);
    const bool is_taken = compare(at->name, &params, (const double(*)[3])points);
    params.mode = LR_MODE_SAMPLED;
    for (params.rays = 1; is_taken && params.rays <= 4; params.rays++)
        assert_true(compare(at->name, &params, (const double(*)[3])points));
    destroy_kept(NULL);
    return is_taken;
}

static void test_every_kind_of_scanner(void **unused)
{
    static const char *const refused[] = {"tilted", "unequal", "stacked", "ruled tilted"};
    static const struct scanner_case turned = {"turned", create_turned, 10};
    uint64_t state = test_seed();
    int num_refused = 0;
    for (int k = 0; k < NUM_SCANNER_CASES; k++) {
        if (!check_scanner(&scanner_cases[k], &state)) {
            assert_string_equal(scanner_cases[k].name, refused[num_refused]);
            num_refused++;
        }
    }
    assert_int_equal(num_refused, 4);
    assert_true(check_scanner(&turned, &state));
}

test_main("native_elements", CASE(test_every_kind_of_scanner))
