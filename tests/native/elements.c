/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The native backend against the cpu backend, element by element: sampled lines, and exact overlaps
 * in float against the double oracle. */
#include "fixtures.h"

#include "native/turned.h"

/* Exact mode, of each point's row: relative L2, and the worst over the scanner's largest. */
static const double exact_l2 = 1e-5, exact_worst = 1e-4;

/* Sampled mode decides in double where lines go, so only the weights are rounded. */
static const double sampled_l2 = 1e-6;

enum { NUM_POINTS = 24 };

struct dense {
    double *values; /* [NUM_POINTS][num_lors] */
    int64_t num_lors;
};

static lr_status take(void *user, const lr_row *row)
{
    struct dense *dense = user;
    for (int64_t k = 0; k < row->count; k++)
        dense->values[row->row * dense->num_lors + row->lor[k]] = row->probability[k];
    return LR_OK;
}

struct question {
    const lr_lors *lors;
    const double (*points)[3];
    lr_mode mode;
    int rays;
};

/* False when the backend refuses the scanner, which it must say with LR_USAGE. */
static bool ask(const struct question *question, const char *backend, struct dense *dense)
{
    struct test_log log;
    test_log_init(&log);
    const lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){2, 2, 2});
    lr_operator *op = lr_operator_create(&(lr_operator_params){.lors = question->lors,
                                                               .grid = &grid,
                                                               .backend = backend,
                                                               .mode = question->mode,
                                                               .rays = question->rays,
                                                               .samples = {1, 1, 1},
                                                               .store = LR_STORE_NO,
                                                               .log = &log.log});
    if (op == NULL && log.status == LR_USAGE && strcmp(backend, "native") == 0) {
        assert_says(log.error, "use backend");
        return false;
    }
    if (op == NULL) fail_msg("%s", log.error);
    dense->num_lors = question->lors->count;
    dense->values = kept_doubles(NUM_POINTS * dense->num_lors);
    assert_ok(lr_operator_point_rows(op, question->points, NUM_POINTS, &(lr_row_sink){take, dense}));
    lr_operator_destroy(op);
    return true;
}

struct gap {
    double l2, worst; /* the largest of the rows' relative L2; the worst over the largest element */
    int num_rows;     /* that are not empty */
};

static struct gap measure(const struct dense *expected, const struct dense *found)
{
    struct gap gap = {0};
    double largest = 0;
    for (int n = 0; n < NUM_POINTS; n++) {
        double difference = 0, norm = 0;
        for (int64_t k = n * expected->num_lors; k < (n + 1) * expected->num_lors; k++) {
            const double error = fabs(expected->values[k] - found->values[k]);
            difference += error * error;
            norm += expected->values[k] * expected->values[k];
            largest = fmax(largest, expected->values[k]);
            gap.worst = fmax(gap.worst, error);
        }
        assert_true(norm > 0 || difference == 0);
        gap.num_rows += norm > 0;
        gap.l2 = norm > 0 ? fmax(gap.l2, sqrt(difference / norm)) : gap.l2;
    }
    gap.worst /= largest;
    return gap;
}

/* True if the backend takes the scanner. */
static bool compare(const char *name, const struct question *question)
{
    struct dense expected, found;
    if (!ask(question, "native", &found)) return false;
    assert_true(ask(question, "cpu", &expected));
    const struct gap gap = measure(&expected, &found);
    const bool is_exact = question->mode == LR_MODE_EXACT;
    print_message("%-14s %s R = %d: L2 %.1e, worst %.1e of the largest, %d rows\n", name,
                  is_exact ? "exact" : "sampled", question->rays, gap.l2, gap.worst, gap.num_rows);
    assert_true(gap.num_rows > 0);
    assert_true(gap.l2 <= (is_exact ? exact_l2 : sampled_l2));
    assert_true(gap.worst <= exact_worst);
    return true;
}

static void draw_points(const struct scanner_case *at, const lr_scanner *scanner, double (*points)[3], uint64_t *state)
{
    for (int n = 0; n < NUM_POINTS; n++) test_point(scanner, at->reach_mm, n, state, points[n]);
}

static bool check_scanner(const struct scanner_case *at, uint64_t *state)
{
    double points[NUM_POINTS][3];
    lr_scanner *scanner = at->create();
    lr_lors *lors = keep(lr_lors_create(scanner, NULL));
    draw_points(at, scanner, points, state);
    struct question question = {lors, (const double(*)[3])points, LR_MODE_EXACT, 0};
    const bool is_taken = compare(at->name, &question);
    question.mode = LR_MODE_SAMPLED;
    for (question.rays = 1; is_taken && question.rays <= 4; question.rays++) assert_true(compare(at->name, &question));
    lr_scanner_destroy(scanner);
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

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(test_every_kind_of_scanner)};
    return cmocka_run_group_tests_name("native_elements", tests, NULL, NULL);
}
