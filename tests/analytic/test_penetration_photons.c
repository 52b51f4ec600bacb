/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystal penetration compared with photons: pairs are emitted from a point in random directions, and each photon is
 * stopped after an exponential path through the crystals, which are found by brute force. */
#include "crystals.h"

#include "model/scanner/scanner.h"

#include <Random123/philox.h>

/* Standard deviations. Some hundred sums are compared, so that one seed in 150 fails by chance. */
#define SIGMAS 4

enum { NUM_PAIRS = 2000000 };

/* Enough lines that the expectations are accurate to some 1e-3, better than the counts' own deviations. */
enum { RAYS = 128 };

struct photons {
    uint64_t seed;
    const lr_scanner *scanner;
    const lr_lors *lors;
    const struct crystal_box *boxes;
    struct chord *chords; /* [num_crystals] */
};

static double to_unit(uint32_t bits)
{
    return ((double)bits + 0.5) / 4294967296.0;
}

/* The crystal that stops a photon, or -1. */
static int stop_in(const struct photons *photons, const double origin[3], const double direction[3], double uniform)
{
    const int count = find_chords(photons->scanner, photons->boxes, origin, direction, photons->chords);
    double left_mm = -log(uniform) / photons->scanner->crystal_mu_per_mm;
    for (int k = 0; k < count; k++) {
        const double length = photons->chords[k].end - photons->chords[k].begin;
        if (left_mm < length) return photons->chords[k].crystal;
        left_mm -= length;
    }
    return -1;
}

/* Compares counted and expected events for one sum of LORs. */
static void check_sum(const char *name, int index, double counted, double expected)
{
    if (fabs(counted - expected) > SIGMAS * sqrt(expected) + 1e-9)
        fail_msg("%s %d: %g counted, %g expected", name, index, counted, expected);
}

/* Compares totals of each crystal and of each pair of modules. Modules behind each other are layers of one detector,
 * and their totals are the distribution of depths: their shares agree within three standard deviations. */
static void check_totals(const struct setup *setup, const double *counts, const double *expected)
{
    const lr_scanner *scanner = setup->scanner;
    const bool has_layers = lr_scanner_num_layers(scanner) > 1;
    double(*totals)[2] = kept(scanner->num_crystals, sizeof(*totals)), sums[2] = {0, 0};
    for (int64_t lor = 0; lor < setup->lors->count; lor++) {
        int32_t crystals[2];
        lr_lors_crystals(setup->lors, lor, crystals);
        for (int end = 0; end < 2; end++) {
            totals[crystals[end]][0] += counts[lor];
            totals[crystals[end]][1] += expected[lor];
        }
    }
    for (int crystal = 0; crystal < scanner->num_crystals; crystal++)
        check_sum("crystal", crystal, totals[crystal][0], totals[crystal][1]);
    for (int64_t k = 0; k < setup->lors->num_pairs; k++) {
        const int32_t *pair = setup->lors->pairs[k];
        const double counted = pair_sum(setup, counts, pair[0], pair[1]);
        const double wanted = pair_sum(setup, expected, pair[0], pair[1]);
        check_sum("module pair", (int)k, counted, wanted);
        if (has_layers)
            print_message("layer %d: %.0f counted, %.1f expected, z = %.2f\n", scanner->modules[pair[0]].layer, counted,
                          wanted, (counted - wanted) / sqrt(wanted));
        assert_true(!has_layers || fabs(counted - wanted) < 3 * sqrt(wanted));
        sums[0] += counted;
        sums[1] += wanted;
    }
    assert_true(!has_layers || fabs(sums[0] - sums[1]) < 3 * sqrt(sums[1]));
}

/* Takes over the scanner. */
static void compare(const char *name, lr_scanner *scanner, const double point[3], uint64_t seed)
{
    struct setup setup = setup_of(scanner, &(struct setup_options){.rays = RAYS, .penetration = true});
    double *expected = point_matrix(&setup, (const double(*)[3])point, 1);
    double *counts = kept_doubles(setup.lors->count);
    struct crystal_box *boxes = crystal_boxes(scanner);
    struct chord *chords = kept(scanner->num_crystals, sizeof(*chords));
    for (int64_t lor = 0; lor < setup.lors->count; lor++) expected[lor] *= NUM_PAIRS;
    const struct photons photons = {seed, scanner, setup.lors, boxes, chords};
    for (uint32_t n = 0; n < NUM_PAIRS; n++) {
        /* Emits one pair of photons, and counts it for its LOR. */
        const philox4x32_ctr_t counter = {{n, 0, 0, 0}};
        const philox4x32_key_t key = {{(uint32_t)photons.seed, (uint32_t)(photons.seed >> 32)}};
        const philox4x32_ctr_t bits = philox4x32(counter, key);
        const double z = 2 * to_unit(bits.v[0]) - 1, angle = 2 * TEST_PI * to_unit(bits.v[1]);
        const double across = sqrt(1 - z * z), there[3] = {across * cos(angle), across * sin(angle), z};
        const double back[3] = {-there[0], -there[1], -there[2]};
        const int a = stop_in(&photons, point, there, to_unit(bits.v[2]));
        if (a < 0) continue;
        const int b = stop_in(&photons, point, back, to_unit(bits.v[3]));
        const int64_t lor = b < 0 ? -1 : lr_lors_number(photons.lors, a, b);
        if (lor >= 0 && lr_lors_in_coincidence(photons.lors, lor)) counts[lor]++;
    }
    check_counts(name, counts, expected, setup.lors->count, 0, 21, SIGMAS);
    check_totals(&setup, counts, expected);
}

/* Two modules face to face, with gaps; the point is off centre. */
static void test_opposed(void **state)
{
    const lr_module modules[2] = {deep(level_module(0, 9, 0, (int[2]){4, 3}, 3, 2.6), 10),
                                  deep(level_module(1, -11, -0.5, (int[2]){3, 4}, 3.5, 3), 14)};
    compare("opposed", stopping_scanner(modules, 2, 0.087), (double[3]){1.3, 0.8, -0.7}, test_seed());
}

/* Two modules at an angle, one to the left and one to the right of the point: lines enter through their sides, too. A
 * third module lies behind the first and faces away from the point. */
static void test_angled(void **state)
{
    const lr_module modules[3] = {
        deep(make_module((double[3]){5, 5, 0.5}, (double[3]){-0.2, 1, 0}, (double[3]){0, 0, 1}, (int[2]){3, 3}, 3, 2.8),
             8),
        deep(make_module((double[3]){-6, -5, 0}, (double[3]){0.3, 1, 0.1}, (double[3]){0, -0.1, 1}, (int[2]){3, 3}, 3,
                         2.8),
             8),
        deep(make_module((double[3]){19, 11, 1}, (double[3]){-0.5, 1, 0.2}, (double[3]){0, -0.2, 1}, (int[2]){2, 3}, 4,
                         4),
             4)};
    compare("angled", stopping_scanner(modules, 3, 0.083), (double[3]){-0.4, 0.2, 0.6}, test_seed() + 1);
}

/* Lines from a point near the edge of a ring leave one module and enter its neighbour. */
static void test_ring(void **state)
{
    const int crystals[2] = {2, 2};
    lr_ring ring = plain_ring(7, 6, crystals, 3.6, 3.4, 9);
    ring.first_angle_deg = 10;
    ring.pitch_mm[1] = 4;
    ring.face_mm[1] = 3.8;
    compare("ring", stopping_ring(&ring, 0.096, 0), (double[3]){3.2, -1.1, 0.9}, test_seed() + 2);
    compare("ruled ring", stopping_ring(&ring, 0.096, 2), (double[3]){-1.0, 2.1, -0.9}, test_seed() + 3);
}

/* One detector in three layers of different crystals: the totals of layers give the depths. */
static void test_layers(void **state)
{
    lr_module modules[4] = {deep(level_module(0, 8, 0, (int[2]){3, 3}, 3.5, 3.3), 2),
                            deep(level_module(0, 10, 0, (int[2]){2, 2}, 5, 5), 5),
                            deep(level_module(0.4, 15.5, 0, (int[2]){3, 3}, 3.5, 3.5), 8),
                            deep(level_module(0, -9, 0, (int[2]){3, 3}, 3.5, 3.4), 10)};
    for (int k = 0; k < 3; k++) {
        modules[k].layer = k;
        modules[k].block = 1;
    }
    compare("layers", stopping_scanner(modules, 4, 0.07), (double[3]){0.9, 0.3, -1.2}, test_seed() + 4);
}

test_main("penetration photons", CASES(test_opposed, test_angled, test_ring, test_layers))
