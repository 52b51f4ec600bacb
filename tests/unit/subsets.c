/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Subsets of module pairs, and sums over fans. */
#include "cases.h"

#include "model/lors/place.h"

enum { NUM_WAVES = 3, NUM_DISTANCES = 3 };

/* --- fans --- */

static int crystal_of(const lr_scanner *scanner, int module, int p, int q)
{
    return scanner->first_crystal[module] + q * scanner->modules[module].crystals[0] + p;
}

/* Checked for every fixture, LOR by LOR. */
static void fans_are_sums_over_lors(void **unused)
{
    uint64_t state = test_seed();
    for (int kind = 0; kind < FIXTURE_COUNT; kind++) {
        struct fixture fixture = kept_fixture((enum fixture_kind)kind);
        const lr_lors *lors = fixture.lors;
        const int64_t num = fixture.scanner->num_crystals;
        double *values = kept_doubles(num), *expected = kept_doubles(num);
        double *fans = kept_doubles(num), *again = kept_doubles(num);
        for (int64_t k = 0; k < num; k++) values[k] = random_between(&state, 0.5, 2.0);
        for (int64_t pair = 0; pair < lors->num_pairs; pair++) {
            int64_t in_coincidence = 0;
            for (int64_t l = lors->offsets[pair]; l < lors->offsets[pair + 1]; l++) {
                if (!lr_lors_in_coincidence(lors, l)) continue;
                const lr_lor lor = lr_lors_describe(lors, l);
                const int c = crystal_of(fixture.scanner, lor.module_i, lor.p, lor.q);
                const int d = crystal_of(fixture.scanner, lor.module_j, lor.r, lor.s);
                expected[c] += values[d];
                expected[d] += values[c];
                in_coincidence++;
            }
            assert_int_equal(lr_pair_num_coincidences(lors, pair), in_coincidence);
        }
        assert_ok(lr_crystal_fans(lors, values, fans, 1, NULL), lr_crystal_fans(lors, values, again, 3, NULL));
        assert_memory_equal(fans, again, (size_t)num * sizeof(double));
        for (int64_t c = 0; c < num; c++) assert_close(fans[c], expected[c], 1e-12);
    }
}

/* Tilted modules in a field of view: their masks are not separable into columns and rings. */
static void fans_of_masks_that_do_not_part(void **unused)
{
    struct fixture fixture = kept_fixture(FIXTURE_TILTED);
    lr_lors *lors = lors_from(lr_scanner_create(&(lr_scanner_params){
        .modules = fixture.scanner->modules, .num_modules = 2, .coincidence = {.field_of_view_mm = 6}}));
    assert_int_equal(lors->masks->pairs[0].kind, LR_MASK_FULL);
    double ones[40], fans[40], expected[40] = {0};
    assert_int_equal(lors->scanner->num_crystals, 40);
    for (int c = 0; c < 40; c++) ones[c] = 1.0;
    for (int a = 0; a < 20; a++) {
        for (int b = 0; b < 20; b++) {
            const bool counts = lr_lors_in_coincidence(lors, a * 20 + b);
            expected[a] += counts;
            expected[20 + b] += counts;
        }
    }
    assert_ok(lr_crystal_fans(lors, ones, fans, 2, NULL));
    assert_memory_equal(fans, expected, sizeof(fans));
}

/* --- subsets --- */

/* Sums over the LORs of each subset: their number, their numbers by distance from the axis, and sums of exp(2 i m
 * direction) for m = 1, 2, 3. The last sum of a bundle of parallel lines has the number of its LORs as its absolute
 * value. */
struct shares {
    double all, distances[NUM_DISTANCES], waves[NUM_WAVES][2];
};

static void add_pair(const lr_lors *lors, int64_t pair, double radius, struct shares *shares)
{
    const double *a = lors->scanner->modules[lors->pairs[pair][0]].centre_mm;
    const double *b = lors->scanner->modules[lors->pairs[pair][1]].centre_mm;
    const double count = (double)lr_pair_num_coincidences(lors, pair), dx = b[0] - a[0], dy = b[1] - a[1];
    shares->all += count;
    if (hypot(dx, dy) < 1.0) return; /* along the axis: the direction is not defined */
    for (int m = 1; m <= NUM_WAVES; m++) {
        shares->waves[m - 1][0] += count * cos(2 * m * atan2(dy, dx));
        shares->waves[m - 1][1] += count * sin(2 * m * atan2(dy, dx));
    }
    const double distance = fabs(a[0] * dy - a[1] * dx) / hypot(dx, dy);
    const int far = (int)(NUM_DISTANCES * distance / radius);
    shares->distances[far < NUM_DISTANCES ? far : NUM_DISTANCES - 1] += count;
}

/* Largest relative difference of a subset's share from the mean. */
static double spread(const struct shares *shares, int subsets, size_t offset)
{
    double mean = 0.0, worst = 0.0;
    for (int k = 0; k < subsets; k++) mean += *(const double *)((const char *)&shares[k] + offset) / subsets;
    for (int k = 0; k < subsets && mean > 0.0; k++) {
        const double share = *(const double *)((const char *)&shares[k] + offset);
        worst = fmax(worst, fabs(share / mean - 1.0));
    }
    return worst;
}

/* Largest sum of exp(2 i m direction) of a subset, divided by its number of LORs. For symmetric scanners the
 * mean is 0. */
static double largest_wave(const struct shares *shares, int subsets)
{
    double worst = 0.0;
    for (int k = 0; k < subsets; k++) {
        for (int m = 0; m < NUM_WAVES; m++) {
            const double *wave = shares[k].waves[m];
            worst = fmax(worst, hypot(wave[0], wave[1]) / shares[k].all);
        }
    }
    return worst;
}

struct balance {
    double all, waves, distances;
};

static struct balance weigh(const lr_lors *lors, int subsets)
{
    int32_t *subset_of = kept(lors->num_pairs, sizeof(*subset_of));
    struct shares *shares = kept(subsets, sizeof(*shares));
    assert_ok(lr_osem_subsets(lors, subsets, subset_of, NULL));
    const double *centre = lors->scanner->modules[0].centre_mm;
    for (int64_t pair = 0; pair < lors->num_pairs; pair++) {
        assert_true(subset_of[pair] >= 0 && subset_of[pair] < subsets);
        add_pair(lors, pair, hypot(centre[0], centre[1]), &shares[subset_of[pair]]);
    }
    struct balance balance = {spread(shares, subsets, offsetof(struct shares, all)), largest_wave(shares, subsets),
                              0.0};
    for (int k = 0; k < NUM_DISTANCES; k++) {
        const size_t offset = offsetof(struct shares, distances) + (size_t)k * sizeof(double);
        balance.distances = fmax(balance.distances, spread(shares, subsets, offset));
    }
    return balance;
}

/* Number of lines that are divided among subsets. lines[0]: lines of the scanner, seen along the axis; lines[1]: the
 * same with lines counted once that half a turn maps to each other. There must be 20 for each subset; otherwise pairs
 * are divided one by one. */
static int64_t count_dealt(const lr_lors *lors, const int lines[2], int subsets)
{
    return lines[1] >= 20 * subsets ? lines[1] : lines[0] >= 20 * subsets ? lines[0] : lors->num_pairs;
}

/* The numbers of lines in subsets differ by at most one. Shares of directions and distances agree to 5 % and four
 * lines, since at least as many lines of a scanner share each direction and distance. */
static void subsets_are_balanced(void **unused)
{
    static const char *const names[] = {"ge-explore-vista-dr", "siemens-mmr", "safir-dual-ring-prototype",
                                        "penn-labr3"};
    static const int lines[][2] = {
        {153 + 18, 9 + 72 + 9}, /* of 18 places in two rings: across, on the axis and along it */
        {1092, 28 + 532},
        {276 + 24, 12 + 132 + 12},
        {132, 12 + 60}};
    static const int counts[] = {2, 3, 4, 6, 7, 8, 9, 14, 21};
    for (int n = 0; n < 4; n++) {
        struct test_log log = TEST_LOG(log);
        lr_lors *lors = lors_from(lr_scanner_read(names[n], &log.log));
        for (int k = 0; k < 9; k++) {
            const double pair = (double)counts[k] / (double)count_dealt(lors, lines[n], counts[k]);
            const struct balance balance = weigh(lors, counts[k]);
            print_message("%s, %d subsets of %lld pairs: LORs to %.1f %%, directions %.1f %%, distances %.1f %%\n",
                          names[n], counts[k], (long long)lors->num_pairs, 100 * balance.all, 100 * balance.waves,
                          100 * balance.distances);
            assert_all(balance.all <= 0.01 + pair, balance.waves <= 0.05 + 4.0 * pair);
            assert_true(balance.distances <= 0.05 + 4.0 * NUM_DISTANCES * pair);
        }
    }
}

static void too_many_subsets_are_refused(void **unused)
{
    struct fixture fixture = kept_fixture(FIXTURE_TWO_RINGS);
    const int num_pairs = (int)fixture.lors->num_pairs;
    int32_t *subset_of = kept(num_pairs, sizeof(*subset_of));
    int *sizes = kept(num_pairs, sizeof(*sizes));
    assert_int_equal(lr_osem_subsets(fixture.lors, 0, subset_of, NULL), LR_USAGE);
    assert_int_equal(lr_osem_subsets(fixture.lors, num_pairs + 1, subset_of, NULL), LR_USAGE);
    assert_ok(lr_osem_subsets(fixture.lors, num_pairs, subset_of, NULL));
    for (int pair = 0; pair < num_pairs; pair++) assert_true(sizes[subset_of[pair]]++ == 0); /* one each */
    assert_ok(lr_osem_subsets(fixture.lors, 1, subset_of, NULL));
    for (int pair = 0; pair < num_pairs; pair++) assert_int_equal(subset_of[pair], 0);
}

test_main("unit: subsets", CASE(fans_are_sums_over_lors), CASE(fans_of_masks_that_do_not_part),
          CASE(subsets_are_balanced), CASE(too_many_subsets_are_refused))
