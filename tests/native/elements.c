/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The native backend against the cpu backend, element by element: sampled lines, and exact overlaps in float against
 * the reference in double. Its kernels against each other. */
#include "fixtures.h"

#include "correspondence/native/kernels.h"

#include "render/scanners.h"

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
    for (int k = 0; k < length_of(scanner_cases); k++) {
        if (!check_scanner(&scanner_cases[k], &state)) {
            assert_string_equal(scanner_cases[k].name, refused[num_refused]);
            num_refused++;
        }
    }
    assert_int_equal(num_refused, 4);
    assert_true(check_scanner(&turned, &state));
}

/* --- the kernels of all instruction sets of this processor give the same bits --- */

enum { NUM_STRIPS = 2000, CELLS = 21, MOST = 48 * 24 };

struct found {
    int count;
    float weight[MOST];
    int32_t offset[MOST], scratch[3 * MOST];
    float overlaps[4 * MOST];
};

static struct lr_native_slots slots_of(struct found *found)
{
    return (struct lr_native_slots){found->weight, found->offset, MOST, found->scratch, found->overlaps};
}

static void assert_same_elements(const struct found *a, const struct found *b)
{
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->weight, b->weight, (size_t)a->count * sizeof(float));
    assert_memory_equal(a->offset, b->offset, (size_t)a->count * sizeof(int32_t));
}

/* Compares the elements of a strip by both kernels; returns the number of elements. */
static int compare_kernels(const struct lr_native_kernels *one, const struct lr_native_kernels *other, uint64_t *state)
{
    static struct found a, b;
    const struct lr_native_slots to_a = slots_of(&a), to_b = slots_of(&b);
    float block[CELLS * CELLS];
    const double pitch_a = random_between(state, 1, 5), pitch_b = random_between(state, 1, 5);
    const double face_a = pitch_a * random_between(state, 0.6, 1), face_b = pitch_b * random_between(state, 0.6, 1);
    struct lr_native_axial axial = filled(
        struct lr_native_axial, .pitch_a = (float)pitch_a, .pitch_b = (float)pitch_b, .face_b = (float)face_b,
        .gap_b = (float)(0.5 * (pitch_b - face_b)), .num_a = CELLS, .num_b = CELLS, .stride_a = CELLS, .stride_b = 1,
        .exact_pitch_a = pitch_a, .exact_face_a = face_a, .exact_pitch_b = pitch_b, .exact_face_b = face_b, .rays = 3);
    lr_native_look_at(&axial, 0, 1);
    const double tau = random_between(state, 0.5, 4), height = random_between(state, 10, 300);
    const double slant = random_between(state, -100, 100), width = random_between(state, 0.1, 4);
    const struct lr_native_strip strip = filled(
        struct lr_native_strip, .tau = (float)tau, .tau_exactly = tau,
        .dtau = (float)(tau * random_between(state, -0.04, 0.04)), .squared = (float)(height * height + slant * slant),
        .width = (float)width, .share = (float)(height * width / 6.28), .slant = (float)slant, .parts = 1);
    const struct lr_native_starts starts =
        lr_native_start(&strip, (const double[2]){random_between(state, -60, 0), random_between(state, -60, 0)});
    for (int k = 0; k < CELLS * CELLS; k++) block[k] = (float)random_between(state, -1, 1);
    a.count = one->sampled(&strip, &axial, &starts, &to_a);
    b.count = other->sampled(&strip, &axial, &starts, &to_b);
    assert_same_elements(&a, &b);
    a.count = one->exact(&strip, &axial, &starts, &to_a);
    b.count = other->exact(&strip, &axial, &starts, &to_b);
    assert_true(a.count <= MOST);
    assert_same_elements(&a, &b);
    const float sums[4] = {one->sum(a.weight, a.count), other->sum(a.weight, a.count),
                           one->dot(a.weight, a.offset, a.count, block),
                           other->dot(a.weight, a.offset, a.count, block)};
    assert_memory_equal(&sums[0], &sums[1], sizeof(float));
    assert_memory_equal(&sums[2], &sums[3], sizeof(float));
    const float *overlaps[2] = {block, a.weight};
    a.count = b.count = 64;
    one->straight(&strip, overlaps, a.count, a.weight + MOST / 2);
    other->straight(&strip, overlaps, a.count, b.weight + MOST / 2);
    assert_memory_equal(a.weight + MOST / 2, b.weight + MOST / 2, 64 * sizeof(float));
    return sums[0] > 0;
}

static void test_instruction_sets_give_the_same_bits(void **unused)
{
    uint64_t state = test_seed();
    const struct lr_native_kernels *first = lr_native_kernels_at(0);
    int num_others = 0;
    for (int k = 1; lr_native_kernels_at(k) != NULL; k++, num_others++) {
        int num_seen = 0;
        print_message("%s against %s\n", first->name, lr_native_kernels_at(k)->name);
        for (int n = 0; n < NUM_STRIPS; n++) num_seen += compare_kernels(first, lr_native_kernels_at(k), &state);
        assert_true(num_seen > NUM_STRIPS / 2);
    }
    if (num_others == 0) {
        print_message("skipped: one instruction set here\n");
        skip();
    }
}

test_main("native_elements", CASE(test_every_kind_of_scanner), CASE(test_instruction_sets_give_the_same_bits))
