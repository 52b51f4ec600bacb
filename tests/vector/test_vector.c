/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Vectors at a place (host, gl or cuda), compared with loops of this file in double. */
#include "device/kinds.h"
#include "device/vector.h"
#include "fixtures.h"
#include "test.h"

#include "base/mem.h"
#include "device/place.h"
#include "vector/place.h"

#include <float.h>

/* Lengths near those at which places divide their work, and one that exceeds a storage block of a software renderer
 * (128 MiB). */
static const int64_t lengths[] = {0, 1, 2, 63, 65, 255, 256, 257, 1000, 65535, 65536, 65537, 300001};
enum { NUM_LENGTHS = length_of(lengths), BEYOND_A_BLOCK = 34000001 };

/* --- numbers --- */

static lr_vector make(int64_t count, lr_precision precision)
{
    return kept_vector(place, count, precision);
}

static double *list_numbers(int64_t count, int which)
{
    double *numbers = kept_doubles(count);
    for (int64_t k = 0; k < count; k++) {
        const double x = sin(0.37 * (double)k + which);
        numbers[k] = which != 2 ? 3.0 * x : k % 7 == 0 ? 0.0 : fabs(x) + 0.1;
    }
    return numbers;
}

/* A vector of `which` numbers, rounded to its precision, at a position of its own in a longer vector. */
struct placed {
    lr_vector whole, part;
    int64_t begin;   /* of the part */
    double *numbers; /* [count], as rounded */
};

static struct placed place_numbers(int64_t count, lr_precision precision, int which)
{
    struct placed placed = {.whole = make(count + 8, precision), .begin = 3 + which};
    placed.part = lr_vector_part(&placed.whole, placed.begin, count);
    placed.numbers = list_numbers(count, which);
    const lr_vector from = lr_vector_of_doubles(placed.numbers, count);
    lr_vector back = from;
    assert_ok(lr_vector_copy(&from, &placed.part), lr_vector_copy(&placed.part, &back));
    return placed;
}

static double *read_numbers(const lr_vector *vector)
{
    double *numbers = kept_doubles(vector->count);
    assert_ok(lr_vector_copy(vector, vector_of(numbers, vector->count)));
    return numbers;
}

/* The numbers of the longer vector outside the part are still 0. */
static void check_outside(const struct placed *placed)
{
    double *all = read_numbers(&placed->whole);
    for (int64_t k = 0; k < placed->whole.count; k++)
        if (k < placed->begin || k >= placed->begin + placed->part.count) assert_true(all[k] == 0.0);
}

/* --- operations --- */

enum operation { FILL, MULTIPLY, DIVIDE, ADD, EM, RAMLA, BSREM, NUM_OPERATIONS };

/* Some factors are below 0, some results would be below 0, and some x are below the floor `lowest`. */
static const double lambda = 0.4, lowest = 0.5;

/* in_place: y is also the x of an update. */
static lr_status run(enum operation operation, bool in_place, lr_vector *y, const lr_vector in[3])
{
    const lr_vector *x = in_place ? y : &in[0];
    switch (operation) {
    case FILL: return lr_vector_fill(y, -2.5);
    case MULTIPLY: return lr_vector_multiply(y, &in[0]);
    case DIVIDE: return lr_vector_divide(y, &in[2], 7.0);
    case ADD: return lr_vector_add_scaled(y, -0.3, &in[1]);
    case EM: return lr_vector_update_em(&(lr_em_update){x, &in[1], &in[2], y});
    case RAMLA: return lr_vector_update_ramla(&(lr_ramla_update){x, &in[1], &in[2], lambda, y});
    default: return lr_vector_update_bsrem(&(lr_bsrem_update){x, &in[1], &in[2], lambda, lowest, y});
    }
}

static double expect(enum operation operation, double y, double x, const double in[3])
{
    switch (operation) {
    case FILL: return -2.5;
    case MULTIPLY: return y * in[0];
    case DIVIDE: return in[2] > 0 ? y / in[2] : 7.0;
    case ADD: return y - 0.3 * in[1];
    case EM: return in[2] > 0 ? x / in[2] * in[1] : x;
    case RAMLA: return in[2] > 0 ? x * fmax(0.0, 1.0 + lambda * (in[1] - in[2])) : x;
    default: return in[2] > 0 ? fmax(0.0, x + lambda * fmax(x, lowest) * (in[1] * in[2])) : x;
    }
}

static void check_operation(enum operation operation, bool in_place, int64_t count, lr_precision precision)
{
    const int mark = num_kept();
    struct placed y = place_numbers(count, precision, 3), in[3];
    lr_vector parts[3];
    for (int k = 0; k < 3; k++) {
        in[k] = place_numbers(count, precision, k);
        parts[k] = in[k].part;
    }
    assert_ok(run(operation, in_place, &y.part, parts));
    double *found = read_numbers(&y.part);
    for (int64_t k = 0; k < count; k++) {
        const double values[3] = {in[0].numbers[k], in[1].numbers[k], in[2].numbers[k]};
        const double expected = expect(operation, y.numbers[k], in_place ? y.numbers[k] : values[0], values);
        /* Tolerance: one epsilon of the expected result, and two epsilons of the old value for the roundings of the
         * steps before. */
        if (!(fabs(found[k] - expected) <= (precision == LR_FLOAT64 ? DBL_EPSILON : (double)FLT_EPSILON) *
                                               (fabs(expected) + 2.0 * fabs(y.numbers[k]))))
            fail_msg("operation %d%s: number %lld is %g and not %g", (int)operation, in_place ? " in place" : "",
                     (long long)k, found[k], expected);
    }
    check_outside(&y);
    destroy_kept_since(mark);
}

/* An update keeps NaN, and does not replace it by 0 as it does factors below 0. */
static void updates_keep_what_is_not_finite(void **state)
{
    const double numbers[2] = {NAN, INFINITY};
    for (int precision = 0; precision < 2; precision++) {
        lr_vector by = make(2, (lr_precision)precision), x = make(2, (lr_precision)precision);
        lr_vector_sums found;
        assert_ok(lr_vector_copy(vector_of(numbers, 2), &by), lr_vector_fill(&x, 1.0));
        assert_ok(lr_vector_update_ramla(&(lr_ramla_update){&x, &by, &x, 0.5, &by}));
        assert_ok(lr_vector_add_up(&by, NULL, &found));
        assert_int_equal(found.not_finite, 2);
    }
}

static void element_by_element(void **state)
{
    for (int operation = 0; operation < NUM_OPERATIONS; operation++)
        for (int in_place = 0; in_place < (operation < EM ? 1 : 2); in_place++)
            for (int k = 0; k < 2 * NUM_LENGTHS; k++)
                check_operation(operation, in_place, lengths[k / 2], (lr_precision)(k % 2));
}

/* The same steps, each rounded once, give the same bits. */
static void check_bits(enum operation operation, lr_precision precision)
{
    enum { COUNT = 1000 };
    struct placed y = place_numbers(COUNT, precision, 3), in[3];
    lr_vector parts[3], host[4];
    double bits[4][COUNT];
    for (int k = 0; k < 3; k++) {
        in[k] = place_numbers(COUNT, precision, k);
        parts[k] = in[k].part;
    }
    for (int k = 0; k < 4; k++) {
        host[k] = precision == LR_FLOAT64 ? lr_vector_of_doubles(bits[k], COUNT)
                                          : lr_vector_of_floats((const float *)bits[k], COUNT);
        assert_ok(lr_vector_copy(k < 3 ? &parts[k] : &y.part, &host[k]));
    }
    assert_ok(run(operation, false, &host[3], host), run(operation, false, &y.part, parts));
    assert_ok(lr_vector_copy(&y.part, &host[0]));
    assert_memory_equal(bits[0], bits[3], COUNT * (precision == LR_FLOAT64 ? 8 : 4));
}

static void the_same_bits_as_the_hosts(void **state)
{
    if (wanted != LR_PLACE_CUDA) return; /* compilers of shaders may fuse steps */
    for (int k = 0; k < 2 * NUM_OPERATIONS; k++) check_bits((enum operation)(k / 2), (lr_precision)(k % 2));
}

/* --- copies --- */

/* Copies between all places and precisions; numbers that need no rounding keep their bits. */
static void copies(void **state)
{
    for (int k = 0; k < 4 * NUM_LENGTHS; k++) {
        const lr_precision from = (lr_precision)(k % 4 / 2), to = (lr_precision)(k % 2);
        const int64_t count = lengths[k / 4];
        struct placed source = place_numbers(count, from, 0), target = place_numbers(count, to, 1);
        assert_ok(lr_vector_copy(&source.part, &target.part));
        double *found = read_numbers(&target.part);
        for (int64_t n = 0; n < count; n++)
            assert_true(found[n] == (to == LR_FLOAT64 ? source.numbers[n] : (double)(float)source.numbers[n]));
        check_outside(&target);
        destroy_kept(NULL);
    }
}

/* A copy between CUDA places does not pass through the host, and keeps the order of queued work on both sides. */
static void copies_between_places(void **state)
{
    lr_place *other = keep(lr_place_open(&(lr_place_params){.kind = wanted, .log = &test.log}));
    for (lr_precision precision = LR_FLOAT32; precision <= LR_FLOAT64; precision++) {
        struct placed source = place_numbers(300001, LR_FLOAT64, 0);
        lr_vector target = kept_vector(other, 300001, precision);
        const lr_traffic before[2] = {lr_place_get_info(place).traffic, lr_place_get_info(other).traffic};
        assert_ok(lr_vector_copy(&source.part, &target), lr_vector_fill(&source.part, -1.0));
        const lr_traffic after[2] = {lr_place_get_info(place).traffic, lr_place_get_info(other).traffic};
        for (int k = 0; k < 2 && wanted == LR_PLACE_CUDA; k++)
            assert_ints(after[k].to_device, before[k].to_device, after[k].to_host, before[k].to_host);
        double *found = read_numbers(&target);
        for (int64_t k = 0; k < target.count; k++)
            assert_true(found[k] == (precision == LR_FLOAT64 ? source.numbers[k] : (double)(float)source.numbers[k]));
    }
}

static void traffic_is_counted(void **state)
{
    const bool is_device = wanted != LR_PLACE_HOST;
    const lr_traffic before = lr_place_get_info(place).traffic;
    struct placed numbers = place_numbers(1000, LR_FLOAT32, 0);
    lr_vector other = make(1000, LR_FLOAT32);
    assert_ok(lr_vector_copy(&numbers.part, &other)); /* the numbers stay at their place */
    const lr_traffic after = lr_place_get_info(place).traffic;
    assert_int_equal(after.to_device - before.to_device, is_device ? 4000 : 0);
    assert_int_equal(after.to_host - before.to_host, is_device ? 4000 : 0);
}

/* A vector already at the place is borrowed. Other vectors are copied, and the copy outlives the original. */
static void brought_to_a_place(void **state)
{
    enum { COUNT = 1000 };
    struct placed numbers = place_numbers(COUNT, LR_FLOAT64, 0);
    lr_vector same, single, host;
    const lr_vector_params here = {.place = place, .precision = LR_FLOAT64, .log = &test.log};
    const lr_vector_params narrow = {.place = place, .name = "single", .log = &test.log};
    assert_ok(lr_vector_bring(&numbers.part, &here, &same), lr_vector_bring(&numbers.part, &narrow, &single));
    assert_ok(lr_vector_bring(&numbers.part, &(lr_vector_params){.precision = LR_FLOAT64}, &host));
    assert_true(same.is_part && same.storage == numbers.part.storage && same.begin == numbers.part.begin);
    assert_true(same.values == numbers.part.values && same.count == COUNT);
    lr_vector_destroy(&same);
    assert_ok(lr_vector_fill(&numbers.part, 3.0));
    const double *copied = host.values;
    assert_true(copied[7] == (wanted == LR_PLACE_HOST ? 3.0 : numbers.numbers[7]));
    float narrowed[COUNT];
    assert_ok(lr_vector_copy(&single, vector_of(narrowed, COUNT)));
    for (int k = 0; k < COUNT; k++) assert_true(narrowed[k] == (float)numbers.numbers[k]);
    lr_vector_destroy(&single);
    lr_vector_destroy(&host);
}

/* --- sums --- */

static void check_sums(int64_t count, lr_precision precision, bool has_other)
{
    struct placed x = place_numbers(count, precision, 0), y = place_numbers(count, precision, 1);
    lr_vector_sums found, again, expected = {.largest = -INFINITY, .smallest = INFINITY};
    double size[3] = {0};
    for (int64_t k = 0; k < count; k++) {
        const double a = x.numbers[k], b = has_other ? y.numbers[k] : a;
        expected.sum += a;
        expected.product += a * b;
        expected.difference += (a - b) * (a - b);
        expected.largest = fmax(expected.largest, a);
        expected.smallest = fmin(expected.smallest, a);
        size[0] += fabs(a);
        size[1] += fabs(a * b);
        size[2] += (a - b) * (a - b);
    }
    const lr_vector *other = has_other ? &y.part : NULL;
    assert_ok(lr_vector_add_up(&x.part, other, &found), lr_vector_add_up(&x.part, other, &again));
    assert_memory_equal(&found, &again, sizeof(found));
    /* sums in double in another order */
    assert_true(fabs(found.sum - expected.sum) <= 1e-12 * size[0]);
    assert_true(fabs(found.product - expected.product) <= 1e-12 * size[1]);
    assert_true(fabs(found.difference - expected.difference) <= 1e-12 * size[2]);
    assert_true(found.largest == expected.largest && found.smallest == expected.smallest);
    assert_int_equal(found.not_finite, 0);
}

static void sums(void **state)
{
    for (int k = 0; k < 4 * NUM_LENGTHS; k++) {
        check_sums(lengths[k / 4], (lr_precision)(k % 4 / 2), k % 2 == 0);
        destroy_kept(NULL);
    }
}

/* Numbers that are not finite: six alone, and others before and after them. */
static void numbers_that_are_not_finite(void **state)
{
    enum { MOST = 40 };
    const double six[6] = {1.0, NAN, INFINITY, -INFINITY, 5.0, -2.0};
    for (int before = 0; before <= MOST - 6; before++) {
        double numbers[MOST] = {0.0};
        memcpy(numbers + before, six, sizeof(six));
        const int count = before == 0 ? 6 : MOST;
        for (int precision = 0; precision < 2; precision++) {
            lr_vector x = make(count, (lr_precision)precision);
            lr_vector_sums found;
            assert_ok(lr_vector_copy(vector_of(numbers, count), &x), lr_vector_add_up(&x, NULL, &found));
            assert_int_equal(found.not_finite, 3);
            assert_all(found.sum == 4.0 && found.product == 30.0 && found.largest == 5.0, found.smallest == -2.0);
        }
    }
}

static void the_same_bits_for_any_number_of_threads(void **state)
{
    enum { COUNT = 1000003 };
    if (wanted != LR_PLACE_HOST) return;
    lr_vector x = lr_vector_of_doubles(list_numbers(COUNT, 0), COUNT);
    lr_vector_sums found[3];
    for (int k = 0; k < 3; k++) {
        x.place = non_null(lr_place_open(&(lr_place_params){.threads = 1 + 2 * k, .log = &test.log}));
        assert_ok(lr_vector_add_up(&x, NULL, &found[k]));
        assert_memory_equal(&found[k], &found[0], sizeof(found[k]));
        lr_place_close(x.place);
    }
}

/* --- counts --- */

static float measured_at(int64_t k)
{
    return (float)(k % 3 == 0 ? 0 : k % 11);
}

static float estimated_at(int64_t k)
{
    return k % 13 == 0 ? 0.0f : (float)(0.01 + 2.0 * fabs(sin(0.11 * (double)k))) * (k % 17 == 0 ? 1e-30f : 1.0f);
}

static float additive_at(int64_t k)
{
    return k % 26 == 0 ? 0.0f : (float)(0.05 * fabs(cos(0.2 * (double)k)));
}

struct counts {
    lr_vector measured, additive, values;
    float *numbers[3];
};

static void open_counts(struct counts *counts, int64_t count)
{
    float (*const at[3])(int64_t) = {measured_at, additive_at, estimated_at};
    lr_vector *vectors[3] = {&counts->measured, &counts->additive, &counts->values};
    for (int n = 0; n < 3; n++) {
        counts->numbers[n] = kept_floats(count);
        for (int64_t k = 0; k < count; k++) counts->numbers[n][k] = at[n](k);
        const lr_vector whole = make(count + 6, LR_FLOAT32);
        *vectors[n] = lr_vector_part(&whole, (const int64_t[3]){1, 6, 4}[n], count);
        assert_ok(lr_vector_copy(vector_of(counts->numbers[n], count), vectors[n]));
    }
}

/* Compared with the definition, LOR by LOR. */
static void check_counts(int64_t count, bool has_additive)
{
    struct counts counts;
    lr_poisson_fit fit, sum = {0};
    double size = 0.0;
    open_counts(&counts, count);
    const lr_poisson_ratio ratio = {&counts.measured, has_additive ? &counts.additive : NULL, &counts.values};
    assert_ok(lr_vector_divide_counts(&ratio, &fit));
    double *found = read_numbers(&counts.values);
    for (int64_t k = 0; k < count; k++) {
        const double y = counts.numbers[0][k], b = has_additive ? counts.numbers[1][k] : 0.0;
        const double e = counts.numbers[2][k] + b;
        double expected = 0.0;
        if (y > 0.0 && e == 0.0) {
            sum.left_out_lors++;
            sum.left_out_counts += y;
        } else {
            sum.estimated_counts += e;
            sum.measured_counts += y;
            sum.log_likelihood += (y > 0.0 ? y * log(e) : 0.0) - e;
            size += (y > 0.0 ? y * fabs(log(e)) : 0.0) + e;
            expected = y > 0.0 ? y / e : 0.0;
        }
        assert_true(fabs(found[k] - expected) <= FLT_EPSILON * expected);
    }
    assert_close(fit.measured_counts, sum.measured_counts, 1e-12);
    assert_close(fit.estimated_counts, sum.estimated_counts, 1e-12);
    assert_true(fabs(fit.log_likelihood - sum.log_likelihood) <= 1e-12 * size);
    assert_int_equal(fit.left_out_lors, sum.left_out_lors);
    assert_true(fit.left_out_counts == sum.left_out_counts);
}

static void divided_counts(void **state)
{
    for (int k = 0; k < 2 * NUM_LENGTHS; k++) check_counts(lengths[k / 2], k % 2);
}

/* A fit that is fetched later equals one fetched at once, even with sums in between. Only a few numbers go to the host,
 * for any number of groups. */
static void a_fit_may_come_later(void **state)
{
    enum { MANY = 300000 };
    struct counts counts;
    struct lr_later later = {.slot = 4};
    lr_poisson_fit now;
    lr_vector_sums sums;
    open_counts(&counts, MANY);
    lr_vector copy = make(MANY, LR_FLOAT32);
    assert_ok(lr_vector_copy(&counts.values, &copy));
    const lr_poisson_ratio first = {&counts.measured, &counts.additive, &counts.values};
    const lr_poisson_ratio second = {&counts.measured, &counts.additive, &copy};
    const int64_t before = lr_place_get_info(place).traffic.to_host;
    for (int between = 0; between < 2; between++) {
        assert_ok(lr_place_hold(place), lr_vector_divide_counts_later(between ? &second : &first, &later));
        assert_true((later.place != NULL) == (wanted != LR_PLACE_HOST));
        if (between) {
            assert_ok(lr_vector_add_up(&counts.measured, NULL, &sums));
            assert_true(sums.largest == 10.0);
        }
        assert_ok(lr_later_finish(&later));
        lr_place_release(place);
        assert_true(later.place == NULL);
    }
    assert_true(lr_place_get_info(place).traffic.to_host - before <= 3 * 6 * 8);
    open_counts(&counts, MANY);
    assert_ok(lr_vector_divide_counts(&first, &now));
    assert_memory_equal(&now, &later.fit, sizeof(now));
}

/* Two sums that are fetched later have the same bits as sums that are fetched at once. */
static void sums_may_come_later(void **state)
{
    for (int k = 1; k < NUM_LENGTHS; k++) { /* the sums of no numbers wait for nothing */
        struct placed x = place_numbers(lengths[k], LR_FLOAT32, 0), y = place_numbers(lengths[k], LR_FLOAT32, 1);
        struct lr_later later[2] = {{.slot = 0}, {.slot = 1}};
        lr_vector_sums now[2];
        assert_ok(lr_vector_add_up_later(&x.part, &y.part, &later[0]));
        assert_ok(lr_vector_add_up_later(&y.part, NULL, &later[1]));
        assert_true((later[0].place != NULL) == (wanted != LR_PLACE_HOST));
        assert_ok(lr_later_finish(&later[1]), lr_later_finish(&later[0]));
        assert_ok(lr_vector_add_up(&x.part, &y.part, &now[0]), lr_vector_add_up(&y.part, NULL, &now[1]));
        for (int n = 0; n < 2; n++) assert_memory_equal(&now[n], &later[n].sums, sizeof(now[n]));
    }
}

/* Two transfers overlap: each brings the sums that were queued for it, even if more sums have been queued for the other
 * since. A slot may be used again after its transfer was sent. */
static void turns_may_overlap(void **state)
{
    enum { TURNS = 9 };
    struct lr_later later[TURNS];
    lr_vector x = make(70001, LR_FLOAT32);
    for (int n = 0; n <= TURNS; n++) {
        if (n < TURNS) {
            later[n] = (struct lr_later){.slot = n % 2 * LR_LATER_SLOTS + n % LR_LATER_SLOTS};
            assert_ok(lr_vector_fill(&x, 1000.0), lr_vector_add_up_later(&x, NULL, &later[n]));
            assert_ok(lr_later_send(later[n].place, n % 2), lr_vector_fill(&x, n));
            assert_ok(lr_vector_add_up_later(&x, &x, &later[n]));
            assert_ok(n < 5 ? lr_later_send(later[n].place, n % 2) : LR_OK);
        }
        if (n > 0) {
            assert_ok(lr_later_finish(&later[n - 1]));
            assert_true(later[n - 1].sums.sum == 70001.0 * (n - 1));
            assert_true(later[n - 1].sums.product == 70001.0 * (n - 1) * (n - 1));
        }
    }
}

/* Terms of the ranks are added up in order, in double, and rounded once, at any place; numbers between the pieces are
 * not read. */
static void check_terms(int64_t count, lr_precision precision, int own)
{
    enum { NUM = 3 };
    const int64_t stride = count + 2;
    struct placed y = place_numbers(count, precision, 0), pieces = place_numbers(NUM * stride, precision, 1);
    const lr_status status = lr_vector_add_terms(&(struct lr_vector_terms){&y.part, &pieces.part, stride, own, NUM});
    assert_int_equal(status, wanted == LR_PLACE_GL ? LR_USAGE : LR_OK);
    double *found = read_numbers(&y.part);
    for (int64_t k = 0; status == LR_OK && k < count; k++) {
        double sum = 0.0;
        for (int r = 0; r < NUM; r++) sum += r == own ? y.numbers[k] : pieces.numbers[r * stride + k];
        assert_true(found[k] == (precision == LR_FLOAT64 ? sum : (double)(float)sum));
    }
    check_outside(&y);
}

static void terms_of_ranks(void **state)
{
    for (int k = 0; k < NUM_LENGTHS; k++) {
        check_terms(lengths[k], LR_FLOAT32, k % 3);
        check_terms(lengths[k], LR_FLOAT64, (k + 1) % 3);
    }
    struct placed y = place_numbers(5, LR_FLOAT32, 0), pieces = place_numbers(14, LR_FLOAT32, 1);
    test_log_init(&test);
    assert_fails(lr_vector_add_terms(&(struct lr_vector_terms){&y.part, &pieces.part, 5, 0, 3}), LR_USAGE, &test,
                 wanted == LR_PLACE_GL ? "OpenGL" : "3 pieces of 5 numbers");
}

static void a_ratio_stays_finite(void **state)
{
    const float numbers[2] = {1e10f, 1e-38f};
    lr_vector y = make(1, LR_FLOAT32), e = make(1, LR_FLOAT32), from = lr_vector_of_floats(numbers, 1);
    assert_ok(lr_vector_copy(&from, &y));
    from = lr_vector_of_floats(numbers + 1, 1);
    assert_ok(lr_vector_copy(&from, &e));
    lr_poisson_fit fit;
    assert_ok(lr_vector_divide_counts(&(lr_poisson_ratio){&y, NULL, &e}, &fit));
    double *found = read_numbers(&e);
    assert_close(found[0], 0.5 * FLT_MAX, 1e-6);
}

/* --- size --- */

static void longer_than_a_block(void **state)
{
    lr_vector y = make(BEYOND_A_BLOCK, LR_FLOAT32), x = make(BEYOND_A_BLOCK, LR_FLOAT32);
    lr_vector_sums found;
    assert_ok(lr_vector_fill(&x, 0.5), lr_vector_fill(&y, 2.0));
    lr_vector last = lr_vector_part(&y, BEYOND_A_BLOCK - 1, 1);
    assert_ok(lr_vector_fill(&last, 8.0), lr_vector_multiply(&y, &x), lr_vector_add_up(&y, &x, &found));
    assert_all(found.sum == BEYOND_A_BLOCK + 3.0, found.product == 0.5 * (BEYOND_A_BLOCK + 3.0));
    assert_true(found.largest == 4.0);
}

/* --- what is refused --- */

static void wrong_calls(void **state)
{
    lr_vector x = make(4, LR_FLOAT32), y = make(5, LR_FLOAT32), z = make(4, LR_FLOAT64), made;
    test_log_init(&test);
    assert_fails(lr_vector_multiply(&x, &y), LR_USAGE, &test, "4 and 5 numbers");
    assert_int_equal(lr_vector_copy(&x, &y), LR_USAGE);
    assert_fails(lr_vector_multiply(&x, &z), LR_USAGE, &test, "precisions");
    lr_poisson_fit fit;
    assert_int_equal(lr_vector_divide_counts(&(lr_poisson_ratio){&z, NULL, &z}, &fit), LR_USAGE);
    assert_int_equal(lr_vector_create(&(lr_vector_params){.place = place, .count = -1, .log = &test.log}, &made),
                     LR_USAGE);
    assert_null(made.storage);
    assert_int_equal(lr_vector_show(&x, &(lr_vector_texture){.size = {2, 1, 1}}), LR_USAGE);
}

static void a_place_that_is_closed_first(void **state)
{
    lr_place *own = lr_place_open(&(lr_place_params){.kind = wanted, .log = &test.log});
    lr_vector x;
    assert_non_null(own);
    assert_ok(lr_vector_create(&(lr_vector_params){.place = own, .count = 9, .log = &test.log}, &x));
    lr_place_close(own);
    assert_ok(lr_vector_fill(&x, 2.0));
    lr_vector_destroy(&x);
    lr_vector_destroy(&x); /* the failed call left nothing to destroy */
    lr_vector_destroy(NULL);
}

static void parts_and_nothing(void **state)
{
    lr_vector none = make(0, LR_FLOAT32), x = make(10, LR_FLOAT32);
    lr_vector_sums found;
    assert_ok(lr_vector_fill(&none, 1.0), lr_vector_add_up(&none, NULL, &found));
    assert_true(found.largest == -(double)INFINITY && found.smallest == (double)INFINITY && found.sum == 0.0);
    assert_ints(lr_vector_part(&x, 8, 5).count, 2, lr_vector_part(&x, 12, 5).count, 0);
    assert_int_equal(lr_vector_part(&x, -3, 2).count, 2);
}

place_main(CASES(element_by_element, the_same_bits_as_the_hosts, updates_keep_what_is_not_finite, copies,
                 copies_between_places, traffic_is_counted, brought_to_a_place, sums, numbers_that_are_not_finite,
                 the_same_bits_for_any_number_of_threads, divided_counts, a_fit_may_come_later, sums_may_come_later,
                 turns_may_overlap, terms_of_ranks, a_ratio_stays_finite),
           CASES(longer_than_a_block, wrong_calls, a_place_that_is_closed_first, parts_and_nothing))
