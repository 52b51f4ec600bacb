/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Simulated photon pairs and their times of flight, compared with the exact matrix. */
#include "cases.h"

#include "base/vec.h"

enum { EVENTS = 60000 };

/* Counts for each LOR, and sums over the events' positions along the lines, relative to the true positions. */
struct tally {
    const struct fixture *fixture;
    const double *point_mm;
    double *counts; /* [lors] */
    double sum_mm, square_mm2;
    int64_t events;
    lr_event first[8];
};

static lr_status take(void *user, const lr_event *events, int64_t count)
{
    struct tally *tally = user;
    for (int64_t k = 0; k < count; k++) {
        double a[3], b[3], to_a[3], to_b[3];
        const lr_event *event = &events[k];
        end_of(tally->fixture->scanner, event->crystals[0], a);
        end_of(tally->fixture->scanner, event->crystals[1], b);
        vec_sub(a, tally->point_mm, to_a);
        vec_sub(b, tally->point_mm, to_b);
        /* half of the difference of the path lengths, which the arrival times give */
        const double off_mm = (double)event->tof_mm - 0.5 * (vec_length(to_a) - vec_length(to_b));
        tally->sum_mm += off_mm;
        tally->square_mm2 += off_mm * off_mm;
        tally->counts[lr_lors_number(tally->fixture->lors, event->crystals[0], event->crystals[1])]++;
        if (tally->events < 8) tally->first[tally->events] = *event;
        tally->events++;
    }
    return LR_OK;
}

static lr_status keep_row(void *user, const lr_row *row)
{
    double *probability = user;
    for (int64_t k = 0; k < row->count; k++) probability[row->lor[k]] = row->probability[k];
    return LR_OK;
}

/* Pairs from a point are distributed over the LORs with the exact probabilities (chi squared), out of as many
 * emissions as these ask for, and their times have a Gaussian error of the requested width. */
static void pairs_follow_the_matrix(void **state)
{
    static const enum fixture_kind kinds[3] = {FIXTURE_RING, FIXTURE_TILTED, FIXTURE_GAPPED};
    for (int n = 0; n < 3; n++) {
        struct fixture fixture = kept_fixture(kinds[n]);
        lr_image *activity = keep(lr_image_create(&fixture.grid, NULL));
        const double point_mm[1][3] = {{1.3, -2.1, 0.7}};
        lr_grid grid = lr_grid_centred((const int[3]){1, 1, 1}, (const double[3]){1e-3, 1e-3, 1e-3});
        memcpy(grid.origin_mm, point_mm[0], sizeof(grid.origin_mm));
        activity->grid = grid;
        activity->values[0] = 1;
        lr_operator_params params = fixture_params(&fixture, "cpu", NULL);
        params.mode = LR_MODE_EXACT;
        lr_operator *op = keep(fixture_operator(&params));
        double *expected = kept_doubles(fixture.lors->count);
        struct tally tally = {
            .fixture = &fixture, .point_mm = point_mm[0], .counts = kept_doubles(fixture.lors->count)};
        assert_ok(lr_operator_point_rows(op, point_mm, 1, &(lr_row_sink){keep_row, expected}));
        const lr_event_sink sink = {.take = take, .user = &tally};
        lr_events_info info;
        int64_t emissions = 0;
        assert_ok(lr_events_from_activity(&(lr_photon_params){.lors = fixture.lors,
                                                              .activity = activity,
                                                              .count = EVENTS,
                                                              .tof_resolution_ps = 200,
                                                              .seed = 9,
                                                              .emissions = &emissions},
                                          &sink, &info));
        assert_true(info.has_tof && info.tof_resolution_ps == 200);
        assert_int_equal(tally.events, EVENTS);
        double whole = 0, chi2 = 0;
        int64_t cells = 0;
        for (int64_t l = 0; l < fixture.lors->count; l++) whole += expected[l];
        for (int64_t l = 0; l < fixture.lors->count; l++) {
            const double mean = expected[l] / whole * EVENTS;
            assert_true(expected[l] > 0 || tally.counts[l] == 0);
            if (mean > 10) {
                chi2 += (tally.counts[l] - mean) * (tally.counts[l] - mean) / mean;
                cells++;
            }
        }
        assert_close(EVENTS / (double)emissions, whole, 4 / sqrt(EVENTS)); /* four standard errors */
        print_message("%s: chi squared %.1f of %d LORs\n", fixture.name, chi2, (int)cells);
        assert_true(cells > 3 && chi2 < (double)cells + 5 * sqrt(2.0 * (double)cells));
        const double sigma_mm = 200 * 0.299792458 / 2 / 2.3548200450309493, mean_mm = tally.sum_mm / EVENTS;
        /* lines to the middles of crystals miss the point by up to a crystal: half a millimetre here */
        assert_true(fabs(mean_mm) < 0.5);
        assert_close(sqrt(tally.square_mm2 / EVENTS - mean_mm * mean_mm), sigma_mm, 0.02);
    }
}

/* Event k is the same for any number of events. */
static void seeds_repeat(void **state)
{
    struct fixture fixture = kept_fixture(FIXTURE_RING);
    lr_image *activity = keep(lr_image_create(&fixture.grid, NULL));
    const double origin_mm[3] = {0};
    struct tally tallies[3];
    for (int64_t k = 0; k < lr_grid_num_voxels(&fixture.grid); k++) activity->values[k] = (float)(k % 5);
    for (int n = 0; n < 3; n++) {
        tallies[n] =
            (struct tally){.fixture = &fixture, .point_mm = origin_mm, .counts = kept_doubles(fixture.lors->count)};
        assert_ok(lr_events_from_activity(&filled(lr_photon_params, .lors = fixture.lors, .activity = activity,
                                                  .count = n == 1 ? 3000 : 2000, .tof_resolution_ps = 200,
                                                  .seed = n == 2 ? 2 : 1),
                                          &(lr_event_sink){.take = take, .user = &tallies[n]}, NULL));
    }
    int same = 0;
    for (int k = 0; k < 8; k++) {
        assert_true(tallies[0].first[k].tof_mm == tallies[1].first[k].tof_mm);
        assert_int_equal(tallies[0].first[k].crystals[0], tallies[1].first[k].crystals[0]);
        same += tallies[0].first[k].tof_mm == tallies[2].first[k].tof_mm;
    }
    assert_int_equal(same, 0);
}

/* Sums over lines that should pass through a point, and the number of calls of the blur. */
struct spread {
    const lr_scanner *scanner;
    double point_mm[3];
    double square_mm2[2], expected_mm2[2]; /* radial, axial */
    int64_t events;
    uint64_t hash; /* hash of crystals and positions in order */
};

static double wider_outwards(const void *user, double distance_mm)
{
    return 8 + 0.1 * distance_mm;
}

static lr_status add_spread(void *user, const lr_event *events, int64_t count)
{
    struct spread *spread = user;
    for (int64_t k = 0; k < count; k++) {
        double a[3], along[3], off[3];
        end_of(spread->scanner, events[k].crystals[0], a);
        end_of(spread->scanner, events[k].crystals[1], along);
        vec_sub(along, a, along);
        vec_sub(spread->point_mm, a, off);
        const double across = hypot(along[0], along[1]), length = vec_length(along);
        const double radial[3] = {-along[1] / across, along[0] / across, 0};
        const double axial[3] = {-along[2] * along[0] / across / length, -along[2] * along[1] / across / length,
                                 across / length};
        const double sigma_mm = wider_outwards(NULL, fabs(vec_dot(spread->point_mm, radial))) / 2.3548200450309493;
        const double axial_sigma_mm = 7 / 2.3548200450309493;
        /* faces of 4 mm, seen from halfway between them: the variance of the mean of two uniform numbers */
        const double crystals_mm2 = 4.0 * 4.0 / 12 / 2;
        spread->square_mm2[0] += pow(vec_dot(off, radial), 2);
        spread->square_mm2[1] += pow(vec_dot(off, axial), 2);
        spread->expected_mm2[0] += sigma_mm * sigma_mm + crystals_mm2;
        spread->expected_mm2[1] += axial_sigma_mm * axial_sigma_mm + crystals_mm2;
        spread->hash = 31 * spread->hash + (uint64_t)events[k].crystals[0] + 1000003 * (uint64_t)events[k].crystals[1] +
                       events[k].time_ms;
        spread->events++;
    }
    return LR_OK;
}

/* Lines miss their point by Gaussians with the requested widths and by the crystals' size; any number of threads gives
 * the same events. */
static void blurred_lines_have_their_widths(void **state)
{
    lr_lors *lors = lors_from(lr_scanner_read("penn-labr3", NULL));
    lr_grid grid = lr_grid_centred((const int[3]){1, 1, 1}, (const double[3]){1e-3, 1e-3, 1e-3});
    lr_image *activity = keep(lr_image_create(&grid, NULL));
    activity->grid.origin_mm[0] = 100;
    activity->values[0] = 1;
    uint64_t hashes[2];
    for (int n = 0; n < 2; n++) {
        struct spread spread = {.scanner = lors->scanner, .point_mm = {100, 0, 0}};
        const lr_event_sink sink = {.take = add_spread, .user = &spread};
        const lr_photon_params params =
            filled(lr_photon_params, .lors = lors, .activity = activity, .count = 20000, .seed = 4,
                   .blur = {.radial_mm = wider_outwards, .axial_mm = 7}, .threads = n == 0 ? 1 : 3);
        assert_ok(lr_events_from_activity(&params, &sink, NULL));
        assert_int_equal(spread.events, 20000);
        for (int k = 0; k < 2; k++) {
            const double ratio = spread.square_mm2[k] / spread.expected_mm2[k];
            print_message("%s variance over the expected one: %.4f\n", k ? "axial" : "radial", ratio);
            assert_true(fabs(ratio - 1) < 0.04); /* 4 standard deviations of a variance */
        }
        hashes[n] = spread.hash;
    }
    assert_true(hashes[0] == hashes[1]);
}

/* Events in order. */
struct events {
    lr_event *events; /* [EVENTS] */
    int64_t count;
};

static lr_status append(void *user, const lr_event *events, int64_t count)
{
    struct events *all = user;
    memcpy(all->events + all->count, events, (size_t)count * sizeof(*events));
    all->count += count;
    return LR_OK;
}

static struct events events_through(const lr_photon_params *params, const lr_image *mu)
{
    struct events all = {.events = kept(EVENTS, sizeof(*all.events))};
    const lr_event_sink sink = {.take = append, .user = &all};
    lr_photon_params with_mu = *params;
    with_mu.mu = mu;
    with_mu.count = EVENTS;
    assert_ok(lr_events_from_activity(&with_mu, &sink, NULL));
    assert_int_equal(all.count, EVENTS);
    return all;
}

static bool same_event(const lr_event *a, const lr_event *b)
{
    return a->crystals[0] == b->crystals[0] && a->crystals[1] == b->crystals[1] && a->tof_mm == b->tof_mm;
}

/* A map removes pairs and changes none: the number of surviving pairs of each LOR follows the binomial distribution
 * with its attenuation factor. A map of zeros removes none. */
static void pairs_survive_by_the_factors(void **state)
{
    struct fixture fixture = kept_fixture(FIXTURE_RING);
    lr_image *activity = kept_image(&fixture.grid, 1);
    const lr_grid grid = lr_grid_centred((const int[3]){4, 4, 4}, (const double[3]){7, 7, 7});
    lr_image *mu = keep(lr_image_create(&grid, NULL));
    const lr_photon_params params = {.lors = fixture.lors, .activity = activity, .tof_resolution_ps = 200, .seed = 17};
    const struct events all = events_through(&params, NULL), through_air = events_through(&params, mu);
    for (int k = 0; k < EVENTS; k++) assert_true(same_event(&all.events[k], &through_air.events[k]));
    for (int64_t k = 0; k < lr_grid_num_voxels(&grid); k++) mu->values[k] = 0.03f;
    const struct events survivors = events_through(&params, mu);

    float *factors = kept_floats(fixture.lors->count);
    lr_attenuation *attenuation = keep(lr_attenuation_create(&(lr_attenuation_params){.lors = fixture.lors, .mu = mu}));
    const lr_lor_source source = lr_attenuation_source(attenuation);
    assert_ok(source.get(source.user, &(lr_lor_span){.count = fixture.lors->count}, factors));

    double *pairs = kept_doubles(fixture.lors->count), *seen = kept_doubles(fixture.lors->count);
    int64_t next = 0; /* index of the next survivor */
    for (int k = 0; k < EVENTS; k++) {
        const int64_t lor = lr_lors_number(fixture.lors, all.events[k].crystals[0], all.events[k].crystals[1]);
        const bool survives = same_event(&all.events[k], &survivors.events[next]);
        pairs[lor]++;
        seen[lor] += survives;
        next += survives;
    }
    double mean = 0, variance = 0, chi2 = 0, least = 1, most = 0;
    int64_t cells = 0;
    for (int64_t l = 0; l < fixture.lors->count; l++) {
        const double factor = (double)factors[l], of_lor = pairs[l] * factor * (1 - factor);
        const double off = seen[l] - pairs[l] * factor;
        mean += pairs[l] * factor;
        variance += of_lor;
        if (of_lor <= 10) continue;
        chi2 += off * off / of_lor;
        cells++;
        least = fmin(least, factor);
        most = fmax(most, factor);
    }
    print_message("%d of %d survive, expected %.0f +- %.0f; chi squared %.1f of %d LORs with factors %.2f to %.2f\n",
                  (int)next, EVENTS, mean, sqrt(variance), chi2, (int)cells, least, most);
    assert_true(fabs((double)next - mean) < 5 * sqrt(variance));
    assert_all(cells > 30, most - least > 0.1, chi2 < (double)cells + 5 * sqrt(2.0 * (double)cells));

    struct test_log log = TEST_LOG(log);
    lr_photon_params negative = params;
    const lr_event_sink none = {.take = append, .user = NULL};
    mu->values[5] = -0.01f;
    negative.mu = mu;
    negative.count = 1;
    negative.log = &log.log;
    assert_fails(lr_events_from_activity(&negative, &none, NULL), LR_BAD_INPUT, &log, "of the mu-map is -0.01 per mm");
}

/* Randoms leave the pairs as they are. They are at random places of the list, uniform over the window, and a LOR has as
 * many as its product asks for. */
static void randoms_follow_their_product(void **state)
{
    enum { RANDOMS = EVENTS / 2, BINS = 16 };
    struct fixture fixture = kept_fixture(FIXTURE_RING);
    const lr_lors *lors = fixture.lors;
    float *values = kept_floats(lors->scanner->num_crystals);
    for (int c = 0; c < lors->scanner->num_crystals; c++) values[c] = (float)(c % 3);
    lr_crystal_product product = {.lors = lors, .values = values, .scale = 7};
    lr_photon_params params = {.lors = lors,
                               .activity = kept_image(&fixture.grid, 1),
                               .tof_resolution_ps = 200,
                               .seed = test_seed(),
                               .window_mm = 400};
    const struct events pairs = events_through(&params, NULL);
    params.count = EVENTS - RANDOMS;
    params.num_randoms = RANDOMS;
    params.randoms = &product;
    struct events all = {.events = kept(EVENTS, sizeof(*all.events))};
    lr_events_info info;
    assert_ok(lr_events_from_activity(&params, &(lr_event_sink){.take = append, .user = &all}, &info));
    assert_int_equal(all.count, EVENTS);
    assert_int_equal(info.counts.prompts, EVENTS);

    double *seen = kept_doubles(lors->count), bins[BINS] = {0}, in_half = 0;
    int64_t next = 0;
    for (int64_t k = 0; k < EVENTS; k++) {
        const lr_event *event = &all.events[k];
        assert_true(k == 0 || event->time_ms >= all.events[k - 1].time_ms);
        if (same_event(event, &pairs.events[next])) {
            next++;
            continue;
        }
        const double place = event->tof_mm / params.window_mm + 0.5;
        assert_true(place >= 0 && place <= 1 && !event->is_delayed && event->weight == 1.0f);
        bins[(int)fmin(BINS * place, BINS - 1)]++;
        seen[lr_lors_number(lors, event->crystals[0], event->crystals[1])]++;
        in_half += k < EVENTS / 2;
    }
    assert_int_equal(next, EVENTS - RANDOMS);
    /* half of the list is drawn without replacement */
    assert_true(fabs(in_half - 0.5 * RANDOMS) < 5 * sqrt(0.25 * RANDOMS * (1 - (double)RANDOMS / EVENTS)));
    double chi2 = 0, cells = 0;
    for (int n = 0; n < BINS; n++) chi2 += pow(bins[n] - (double)RANDOMS / BINS, 2) / ((double)RANDOMS / BINS);
    print_message("times of flight: chi2 %.1f of %d\n", chi2, BINS - 1);
    assert_true(chi2 < BINS - 1 + 5 * sqrt(2.0 * (BINS - 1)));

    product.scale = RANDOMS / lr_crystal_product_sum(&product, 1) * product.scale;
    float *due = kept_floats(lors->count);
    const lr_lor_source source = lr_crystal_product_source(&product);
    assert_ok(source.get(source.user, &(lr_lor_span){.count = lors->count}, due));
    chi2 = 0;
    for (int64_t lor = 0; lor < lors->count; lor++) {
        assert_true(due[lor] > 0 || seen[lor] == 0);
        if (due[lor] < 5) continue;
        chi2 += pow(seen[lor] - (double)due[lor], 2) / (double)due[lor];
        cells++;
    }
    print_message("LORs: chi2 %.1f of %.0f\n", chi2, cells);
    assert_true(cells > 100 && fabs(chi2 - cells) < 5 * sqrt(2 * cells));
    memset(values, 0, (size_t)lors->scanner->num_crystals * sizeof(*values));
    struct test_log log = TEST_LOG(log);
    params.log = &log.log;
    assert_fails(lr_events_from_activity(&params, &(lr_event_sink){.take = append, .user = &all}, NULL), LR_USAGE, &log,
                 "no two crystals that have singles are in coincidence");
}

static void impossible_activities_are_refused(void **state)
{
    struct test_log log = TEST_LOG(log);
    struct tally tally = {0};
    const lr_event_sink sink = {.take = take, .user = &tally};
    struct fixture fixture = kept_fixture(FIXTURE_OPPOSED);
    lr_image *activity = keep(lr_image_create(&fixture.grid, NULL));
    lr_photon_params params = {
        .lors = fixture.lors, .activity = activity, .count = 10, .tof_resolution_ps = 200, .log = &log.log};
    assert_fails(lr_events_from_activity(&params, &sink, NULL), LR_BAD_INPUT, &log, "no activity");
    activity->values[3] = -1;
    assert_int_equal(lr_events_from_activity(&params, &sink, NULL), LR_BAD_INPUT);
    activity->values[3] = 1;
    activity->grid.origin_mm[2] = 5000; /* far above the scanner */
    assert_int_equal(lr_events_from_activity(&params, &sink, NULL), LR_FAILED);
    params.blur.axial_mm = -1;
    assert_fails(lr_events_from_activity(&params, &sink, NULL), LR_USAGE, &log, "axial blur");
    params.blur.axial_mm = 0;
    params.tof_resolution_ps = -1;
    assert_int_equal(lr_events_from_activity(&params, &sink, NULL), LR_USAGE);
}

test_main("direct: photons",
          CASES(pairs_follow_the_matrix, seeds_repeat, blurred_lines_have_their_widths, pairs_survive_by_the_factors,
                randoms_follow_their_product, impossible_activities_are_refused))
