/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Expected randoms from delayeds, which are drawn here from known singles rates. */
#include "cases.h"

/* Two rings of six modules with 5 x 4 crystals each. Module and ring differences are limited, so that crystals at the
 * ends have smaller fans. */
enum { NUM_CRYSTALS = 240, NUM_MODULES = 12, NU = 5, NV = 4 };

struct session {
    struct fixture fixture;
    double singles[NUM_CRYSTALS];
    lr_lor_data *delayeds; /* dense */
};

/* Quantities on which a singles rate depends. */
enum pattern { BY_CRYSTAL, BY_PLACE, BY_COLUMN, UNIFORM };

static double single(enum pattern pattern, int m, int n, uint64_t *state)
{
    static const double columns[NU] = {1.3, 1.0, 0.8, 1.1, 1.5};
    const double ring = (m / 6) * NV + n / NU;
    switch (pattern) {
    case BY_CRYSTAL: return 0.5 + test_random(state);
    case BY_PLACE: return columns[n % NU] * (1.0 + 0.1 * ring);
    case BY_COLUMN: return columns[n % NU];
    default: return 1.0;
    }
}

static double truth(const struct session *s, int64_t l)
{
    const lr_lor lor = lr_lors_describe(s->fixture.lors, l);
    return lr_lors_in_coincidence(s->fixture.lors, l)
               ? s->singles[lor.module_i * 20 + lor.q * NU + lor.p] * s->singles[lor.module_j * 20 + lor.s * NU + lor.r]
               : 0.0;
}

static double sum_of(const lr_lor_data *data)
{
    double sum = 0.0;
    for (int64_t k = 0; k < data->count; k++) sum += data->values[k];
    return sum;
}

/* Expected numbers of delayeds, `total` in all. */
static void session_init(struct session *s, enum pattern pattern, double total)
{
    uint64_t state = 7;
    *s = (struct session){.fixture = kept_fixture(FIXTURE_TWO_RINGS)};
    assert_int_equal(s->fixture.scanner->num_crystals, NUM_CRYSTALS);
    for (int c = 0; c < NUM_CRYSTALS; c++) s->singles[c] = single(pattern, c / 20, c % 20, &state);
    s->delayeds = keep(lr_lor_data_create(s->fixture.lors, NULL));
    double sum = 0.0;
    for (int64_t l = 0; l < s->delayeds->count; l++) sum += truth(s, l);
    for (int c = 0; c < NUM_CRYSTALS; c++) s->singles[c] *= sqrt(total / sum);
    for (int64_t l = 0; l < s->delayeds->count; l++) s->delayeds->values[l] = (float)truth(s, l);
}

static lr_randoms *estimate(const struct session *s)
{
    return keep(lr_randoms_estimate(s->fixture.lors, s->delayeds, NULL));
}

/* Value r of every LOR. */
static float *values_of(lr_randoms *randoms, const lr_lors *lors)
{
    float *values = kept_floats(lors->count);
    const lr_lor_source source = lr_crystal_product_source(&randoms->product);
    assert_ok(source.get(source.user, &(lr_lor_span){.count = lors->count}, values));
    return values;
}

/* --- laws --- */

/* Sums over the LORs of each crystal. */
static void sum_fans(const lr_lors *lors, const float *values, double *fans)
{
    for (int64_t l = 0; l < lors->count; l++) {
        const lr_lor lor = lr_lors_describe(lors, l);
        fans[lor.module_i * 20 + lor.q * NU + lor.p] += values[l];
        fans[lor.module_j * 20 + lor.s * NU + lor.r] += values[l];
    }
}

/* The estimate returns the singles rates, for fans of any size. Tolerance 1e-5: fan sums are accurate to 1e-7, and
 * measured values are floats. Sums of floats over LORs are accurate to 1e-6. */
static void expected_delayeds_give_their_rates(void **unused)
{
    static const double totals[4] = {20000, 4000, 500, 60};
    static const int pooled[4] = {1, 6, 48, 240};
    for (int pattern = BY_CRYSTAL; pattern <= UNIFORM; pattern++) {
        struct session s;
        session_init(&s, (enum pattern)pattern, totals[pattern]);
        lr_randoms *randoms = estimate(&s);
        assert_int_equal(randoms->pooled, pooled[pattern]);
        float *values = values_of(randoms, s.fixture.lors);
        double sum = 0.0;
        for (int64_t l = 0; l < s.delayeds->count; l++) {
            assert_close(values[l], s.delayeds->values[l], 1e-5);
            sum += values[l];
        }
        assert_close(sum, sum_of(s.delayeds), 1e-6);
        assert_close(randoms->delayeds, sum_of(s.delayeds), 1e-12);
    }
}

/* Without pooling, r has exactly the measured fan sums, including their noise. */
static void fan_sums_are_kept(void **unused)
{
    struct session s;
    session_init(&s, BY_CRYSTAL, 20000);
    assert_ok(lr_poisson(s.delayeds->values, s.delayeds->count, test_seed(), NULL));
    lr_randoms *randoms = estimate(&s);
    assert_int_equal(randoms->pooled, 1);
    float *values = values_of(randoms, s.fixture.lors);
    double measured[NUM_CRYSTALS] = {0}, estimated[NUM_CRYSTALS] = {0};
    sum_fans(s.fixture.lors, s.delayeds->values, measured);
    sum_fans(s.fixture.lors, values, estimated);
    for (int c = 0; c < NUM_CRYSTALS; c++) assert_close(measured[c], estimated[c], 1e-5);
}

/* --- statistics --- */

/* Sum over groups of (estimated / true rate - 1)^2 times the number of ends counted in the group; this is about 1 for
 * each group, since the accuracy of a rate is that of its counts. */
static double chi_square(const struct session *s, const lr_randoms *randoms)
{
    double ends[NUM_CRYSTALS] = {0}, chi2 = 0.0;
    float *expected = kept_floats(s->delayeds->count);
    for (int64_t l = 0; l < s->delayeds->count; l++) expected[l] = (float)truth(s, l);
    sum_fans(s->fixture.lors, expected, ends);
    for (int c = 0; c < NUM_CRYSTALS; c++) {
        const double rate = sqrt(randoms->product.scale) * randoms->values[c];
        chi2 += pow(rate / s->singles[c] - 1.0, 2.0) * ends[c];
    }
    return chi2;
}

/* The chi-square of n rates is n with a standard deviation of sqrt(2 n); five of these are allowed. */
static void drawn_delayeds_give_the_rates_within_statistics(void **unused)
{
    static const double totals[3] = {20000, 4000, 500};
    static const int pooled[3] = {1, 6, 48};
    const uint64_t seed = test_seed();
    for (int pattern = BY_CRYSTAL; pattern <= BY_COLUMN; pattern++) {
        enum { DRAWS = 20 };
        double chi2 = 0.0;
        for (uint64_t draw = 0; draw < DRAWS; draw++) {
            struct session s;
            session_init(&s, (enum pattern)pattern, totals[pattern]);
            assert_ok(lr_poisson(s.delayeds->values, s.delayeds->count, seed + 100 * draw, NULL));
            lr_randoms *randoms = estimate(&s);
            assert_int_equal(randoms->pooled, pooled[pattern]);
            chi2 += chi_square(&s, randoms);
        }
        const double groups = (double)DRAWS * NUM_CRYSTALS / pooled[pattern];
        print_message("pooled %d: chi-square %.1f of %.0f rates\n", pooled[pattern], chi2, groups);
        assert_true(fabs(chi2 - groups) < 5.0 * sqrt(2.0 * groups));
    }
}

/* The delayeds themselves deviate from r as Poisson numbers do. For a Poisson number, (n - r)^2 / r has the variance 2
 * + 1 / r. */
static void drawn_delayeds_fit_the_estimate(void **unused)
{
    struct session s;
    session_init(&s, BY_CRYSTAL, 20000);
    assert_ok(lr_poisson(s.delayeds->values, s.delayeds->count, test_seed(), NULL));
    float *values = values_of(estimate(&s), s.fixture.lors);
    double chi2 = 0.0, variance = 0.0, freedom = -NUM_CRYSTALS;
    for (int64_t l = 0; l < s.delayeds->count; l++) {
        if (values[l] > 0.0f) {
            chi2 += pow(s.delayeds->values[l] - values[l], 2.0) / values[l];
            variance += 2.0 + 1.0 / values[l];
            freedom += 1.0;
        }
    }
    print_message("chi-square %.0f of %.0f\n", chi2, freedom);
    assert_true(fabs(chi2 - freedom) < 5.0 * sqrt(variance));
}

/* --- pooling --- */

/* Crystals are pooled in larger groups until the mean group has 50 ends; the limit is exact. */
static void counts_decide_on_pooling(void **unused)
{
    static const double totals[6] = {6010, 5990, 1010, 990, 130, 120};
    static const int pooled[6] = {1, 6, 6, 48, 48, 240};
    for (int k = 0; k < 6; k++) {
        struct session s;
        session_init(&s, UNIFORM, totals[k]);
        lr_randoms *randoms = estimate(&s);
        assert_int_equal(randoms->pooled, pooled[k]);
    }
}

static lr_lor_data *draw_events(const lr_lors *lors, int64_t num_events)
{
    uint64_t state = test_seed();
    int64_t *events = kept(num_events, sizeof(*events));
    for (int64_t k = 0; k < num_events; k++) do {
            events[k] = (int64_t)(test_random(&state) * (double)lors->count);
        } while (!lr_lors_in_coincidence(lors, events[k]));
    return keep(lr_lor_data_bin(events, num_events, NULL));
}

/* The number of delayeds is that of a measurement of one second: 2.5 for each crystal. Blocks of one panel with
 * different widths or places are not pooled with each other. */
static void clinical_scanner(void **unused)
{
    static const char *const names[2] = {"siemens-mmr", "safir-dual-ring-prototype"};
    static const int num_delayeds[2] = {35320, 9000}, pooled[2] = {56, 12};
    for (int k = 0; k < 2; k++) {
        lr_lors *lors = lors_from(lr_scanner_read(names[k], NULL));
        lr_lor_data *delayeds = draw_events(lors, num_delayeds[k]);
        lr_randoms *randoms = keep(lr_randoms_estimate(lors, delayeds, NULL));
        assert_int_equal(randoms->pooled, pooled[k]);
        assert_true(randoms->delayeds == num_delayeds[k]);
        assert_close(lr_crystal_product_sum(&randoms->product, 0), num_delayeds[k], 1e-12);
        const int first = lors->scanner->first_crystal[lors->scanner->num_modules / 2];
        for (int c = 0; c < 64 && k == 0; c++) /* the same place in another module */
            assert_true(randoms->values[c] == randoms->values[first + c]);
    }
}

/* --- bad input --- */

static void bad_delayeds_are_refused(void **unused)
{
    struct test_log log = TEST_LOG(log);
    struct session s;
    session_init(&s, UNIFORM, 1000);
    s.delayeds->values[5] = -1.0f;
    assert_null(lr_randoms_estimate(s.fixture.lors, s.delayeds, &log.log));
    assert_error(&log, LR_BAD_INPUT, "the delayeds of LOR 5 ");
    memset(s.delayeds->values, 0, (size_t)s.delayeds->count * sizeof(float));
    assert_null(lr_randoms_estimate(s.fixture.lors, s.delayeds, &log.log));
    assert_says(log.error, "no delayed coincidences");
    int64_t outside = 0; /* out of coincidence */
    while (lr_lors_in_coincidence(s.fixture.lors, outside)) outside++;
    s.delayeds->values[outside] = 3.0f;
    assert_null(lr_randoms_estimate(s.fixture.lors, s.delayeds, &log.log));
    assert_says(log.warning, "3 delayeds lie in LORs out of coincidence");
    lr_randoms_destroy(NULL);
}

/* The randoms estimated from the ends of delayeds equal those estimated from the delayeds. */
static void ends_are_enough(void **state)
{
    struct session s;
    double ends[NUM_CRYSTALS] = {0};
    session_init(&s, BY_CRYSTAL, 90000.0);
    for (int64_t l = 0; l < s.delayeds->count; l++) {
        int32_t crystals[2];
        lr_lors_crystals(s.fixture.lors, l, crystals);
        for (int k = 0; k < 2 && lr_lors_in_coincidence(s.fixture.lors, l); k++)
            ends[crystals[k]] += s.delayeds->values[l];
    }
    lr_randoms *of_counts = estimate(&s), *of_ends = keep(lr_randoms_of_ends(s.fixture.lors, ends, NULL));
    assert_int_equal(of_ends->pooled, of_counts->pooled);
    assert_true(fabs(of_ends->delayeds / of_counts->delayeds - 1.0) < 1e-12);
    for (int c = 0; c < NUM_CRYSTALS; c++) assert_true(fabs(of_ends->values[c] - of_counts->values[c]) < 1e-5);
    ends[3] = -1.0;
    assert_null(lr_randoms_of_ends(s.fixture.lors, ends, NULL));
}

test_main("unit: randoms", CASE(expected_delayeds_give_their_rates), CASE(fan_sums_are_kept),
          CASE(drawn_delayeds_give_the_rates_within_statistics), CASE(drawn_delayeds_fit_the_estimate),
          CASE(counts_decide_on_pooling), CASE(clinical_scanner), CASE(bad_delayeds_are_refused), CASE(ends_are_enough))
