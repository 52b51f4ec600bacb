/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Factors of a scanner, compared with closed forms and with counts of simulated photon pairs. */
#include "direct/cases.h"

#include "base/vec.h"

#include <lr/factors.h>

static const double pi = 3.14159265358979323846;

/* A ring of panels that stand edge to edge, without gaps unless they are asked for. */
struct ring {
    double radius_mm, pitch_mm;
    int modules, rings, crystals_v;
    double ring_gap_mm, face_share; /* gap between module rings; face / pitch, 0 = 1 */
};

static lr_lors *make_ring(const struct ring *ring)
{
    const double side_mm = 2 * ring->radius_mm * tan(pi / ring->modules);
    const int crystals_u = (int)(side_mm / ring->pitch_mm + 0.5);
    const double pitch_mm[2] = {side_mm / crystals_u - 1e-9, ring->pitch_mm};
    const double face = ring->face_share > 0 ? ring->face_share : 1;
    return lors_from(
        scanner_from("ring: {radius_mm: %.17g, modules: %d, rings: %d, ring_pitch_mm: %.17g}\nmodule: "
                     "{crystals: [%d, %d], pitch_mm: [%.17g, %.17g], face_mm: [%.17g, %.17g], depth_mm: 10}",
                     ring->radius_mm, ring->modules, ring->rings, ring->crystals_v * pitch_mm[1] + ring->ring_gap_mm,
                     crystals_u, ring->crystals_v, pitch_mm[0], pitch_mm[1], face * pitch_mm[0], face * pitch_mm[1]));
}

static lr_histo_images *make(const lr_direct_factors_params *params)
{
    return keep(lr_direct_factors_create(params));
}

/* Sum of the factors of one voxel over all views: the probability that an emission in the voxel is detected. */
static double sum_of_views(const lr_histo_images *histo, int64_t voxel)
{
    const int64_t num_voxels = lr_grid_num_voxels(&histo->grid);
    double sum = 0;
    for (int view = 0; view < histo->num_views; view++) sum += histo->values[view * num_voxels + voxel];
    return sum;
}

/* --- closed forms --- */

/* A point on the axis at z sees a ring of radius R and half length H up to the tilt atan((H - |z|) / R). Of isotropic
 * directions, the sine of this tilt is the share that is detected. This gives the axial triangle, with a plateau at the
 * sine of the acceptance where all tilts within the acceptance are measured. Tilts of LORs lie on a
 * lattice of some 0.6 degrees, so the acceptance is wrong by up to half of this: 3 % of 10 degrees. */
static void axial_triangle(void **state)
{
    const struct ring ring = {.radius_mm = 100, .pitch_mm = 1, .modules = 32, .rings = 1, .crystals_v = 100};
    const double acceptance_deg[2] = {10, 40};
    lr_lors *lors = make_ring(&ring);
    const lr_grid grid = lr_grid_centred((const int[3]){1, 1, 61}, (const double[3]){2, 2, 2});
    for (int n = 0; n < 2; n++) {
        lr_histo_images *histo = make(&(lr_direct_factors_params){
            .lors = lors, .grid = &grid, .set = {4, 1, acceptance_deg[n]}, .directions = 96});
        const double most = sin(acceptance_deg[n] * pi / 180);
        double worst = 0;
        for (int z = 0; z < grid.size[2]; z++) {
            const double left_mm = 50 - fabs(2.0 * (z - 30));
            const double sine = left_mm > 0 ? left_mm / hypot(left_mm, 100) : 0;
            worst = fmax(worst, fabs(sum_of_views(histo, z) - fmin(sine, most)) / most);
        }
        print_message("acceptance %g degrees: at most %.4f from the triangle\n", acceptance_deg[n], worst);
        assert_true(worst < 0.03);
    }
}

/* A long scanner without gaps measures all lines of a view. The factors of all views of a tilt add up to the tilt's
 * share of isotropic directions. */
static void long_scanners_measure_all(void **state)
{
    const struct ring ring = {.radius_mm = 100, .pitch_mm = 1, .modules = 32, .rings = 1, .crystals_v = 160};
    lr_lors *lors = make_ring(&ring);
    const lr_grid grid = lr_grid_centred((const int[3]){7, 7, 5}, (const double[3]){4, 4, 4});
    const lr_view_set set = {5, 3, 24};
    lr_histo_images *histo = make(&(lr_direct_factors_params){.lors = lors, .grid = &grid, .set = set});
    const int64_t num_voxels = lr_grid_num_voxels(&grid);
    for (int tilt = 0; tilt < 3; tilt++) {
        const double low = sin((16.0 * tilt - 24) * pi / 180), high = sin((16.0 * tilt - 8) * pi / 180);
        const double expected = (high - low) / 2;
        for (int64_t v = 0; v < num_voxels; v++) {
            double sum = 0;
            for (int f = 0; f < 5; f++) sum += histo->values[(tilt * 5 + f) * num_voxels + v];
            assert_close(sum, expected, 0.03); /* the lattice of tilts, as above */
        }
    }
    assert_true(histo->are_probabilities);
    for (int64_t v = 0; v < num_voxels; v++) assert_close(sum_of_views(histo, v), sin(24 * pi / 180), 0.015);
}

/* Factors multiply: efficiencies; the share lost in gaps, on either side; and exp(-mu times chord) for a cube of mu. */
static void parts_multiply(void **state)
{
    struct ring ring = {.radius_mm = 100, .pitch_mm = 2, .modules = 24, .rings = 1, .crystals_v = 60};
    const lr_grid grid = lr_grid_centred((const int[3]){3, 3, 3}, (const double[3]){4, 4, 4});
    const double edge_mm[3] = {60, 60, 60}, mu_per_mm = 0.02;
    const lr_grid cube = lr_grid_centred((const int[3]){1, 1, 1}, edge_mm);
    float value = (float)mu_per_mm;
    const lr_image mu = {.grid = cube, .values = &value};
    double sums[4];
    for (int n = 0; n < 4; n++) {
        ring.face_share = n == 1 ? 0.8 : 1;
        lr_lors *lors = make_ring(&ring);
        float *efficiencies = kept_floats(lors->scanner->num_crystals);
        for (int c = 0; c < lors->scanner->num_crystals; c++) efficiencies[c] = 0.7f;
        lr_histo_images *histo =
            make(&filled(lr_direct_factors_params, .lors = lors, .grid = &grid, .set = {4, 1, 5}, .directions = 256,
                         .efficiencies = n == 2 ? efficiencies : NULL, .mu = n == 3 ? &mu : NULL));
        sums[n] = sum_of_views(histo, lr_grid_num_voxels(&grid) / 2);
    }
    print_message("gaps %.4f, efficiencies %.4f, attenuation %.4f\n", sums[1] / sums[0], sums[2] / sums[0],
                  sums[3] / sums[0]);
    assert_close(sums[1] / sums[0], pow(0.8, 4), 0.02);
    assert_close(sums[2] / sums[0], 0.7 * 0.7, 1e-5);
    /* chords through the middle of the square are its edge divided by the larger cosine, for all azimuths; tilts up to
     * 5 degrees lengthen them by 0.1 % on average */
    double survival = 0;
    for (int k = 0; k < 1000; k++) {
        const double azimuth = (k + 0.5) / 1000 * pi / 4;
        survival += exp(-mu_per_mm * edge_mm[0] / cos(azimuth) * 1.0013) / 1000;
    }
    assert_close(sums[3] / sums[0], survival, 0.005);
}

/* --- simulated pairs --- */

enum { PAIRS = 700000, BLOCKS = 3, BLOCK = 6, VIEWS = 18 };

/* Weights events by the efficiencies of their crystals, as if the others were not measured. */
struct thinning {
    const lr_event_sink *to;
    const float *efficiencies;
    double sum, squares; /* of weights */
    lr_event events[4096];
};

static lr_status thin(void *user, const lr_event *events, int64_t count)
{
    struct thinning *thinning = user;
    lr_status status = LR_OK;
    for (int64_t k = 0; k < count && status == LR_OK; k += 4096) {
        const int64_t held = count - k < 4096 ? count - k : 4096;
        for (int64_t n = 0; n < held; n++) {
            const int32_t *ends = events[k + n].crystals;
            const float weight = thinning->efficiencies[ends[0]] * thinning->efficiencies[ends[1]];
            thinning->events[n] = events[k + n];
            thinning->events[n].weight = weight;
            thinning->sum += weight;
            thinning->squares += weight * weight;
        }
        status = thinning->to->take(thinning->to->user, thinning->events, held);
    }
    return status;
}

/* Sums over regions with an edge of BLOCK voxels, for each view. */
static void sum_regions(const lr_histo_images *histo, double *sums)
{
    const int *size = histo->grid.size;
    const int64_t num_voxels = lr_grid_num_voxels(&histo->grid);
    for (int64_t at = 0; at < histo->num_views * num_voxels; at++) {
        const int64_t view = at / num_voxels, v = at % num_voxels;
        const int64_t x = v % size[0] / BLOCK, y = v / size[0] % size[1] / BLOCK;
        const int64_t z = v / size[0] / size[1] / BLOCK;
        sums[((view * BLOCKS + z) * BLOCKS + y) * BLOCKS + x] += histo->values[at];
    }
}

/* Two rings of modules with a gap between them, and efficiencies that differ by half: in each view and region, the
 * deposited simulated pairs are proportional to the factors. Regions have borders off the lattice of the LORs on which
 * events are deposited. */
static void pairs_follow_the_factors(void **state)
{
    lr_lors *lors = make_ring(&filled(struct ring, .radius_mm = 60, .pitch_mm = 1.3, .modules = 16, .rings = 2,
                                      .crystals_v = 14, .ring_gap_mm = 7.1, .face_share = 0.9));
    lr_grid grid = lr_grid_centred((const int[3]){BLOCKS * BLOCK, BLOCKS * BLOCK, BLOCKS * BLOCK},
                                   (const double[3]){2.2, 2.2, 2.2});
    grid.origin_mm[2] += 3.31; /* avoids any accidental symmetry */
    grid.origin_mm[0] -= 1.17;
    const lr_view_set set = {6, 3, 18};
    float *efficiencies = kept_floats(lors->scanner->num_crystals);
    for (int c = 0; c < lors->scanner->num_crystals; c++)
        efficiencies[c] = lr_scanner_module_of(lors->scanner, c) % 3 == 0 ? 0.5f : 1;
    /* A uniform image that extends a little beyond the histo-images' grid, so that events deposited beside their
     * voxel leave and enter a region equally often. */
    const int size[3] = {grid.size[0] + 4, grid.size[1] + 4, grid.size[2] + 4};
    lr_grid wider = lr_grid_centred(size, grid.voxel_mm);
    for (int k = 0; k < 3; k++) wider.origin_mm[k] = grid.origin_mm[k] - 2 * grid.voxel_mm[k];
    lr_image *activity = kept_image(&wider, 1);
    lr_histo_images *factors = make(&(lr_direct_factors_params){
        .lors = lors, .grid = &grid, .set = set, .efficiencies = efficiencies, .directions = 128});
    lr_deposit *deposit = keep(lr_deposit_create(&(lr_deposit_params){.scanner = lors->scanner,
                                                                      .grid = &grid,
                                                                      .set = set,
                                                                      .info = &(lr_events_info){.has_tof = true},
                                                                      .backend = "cpu"}));
    const lr_event_sink to = lr_deposit_sink(deposit);
    struct thinning *thinning = kept(1, sizeof(*thinning));
    *thinning = (struct thinning){.to = &to, .efficiencies = efficiencies};
    assert_ok(lr_events_from_activity(
        &(lr_photon_params){.lors = lors, .activity = activity, .count = PAIRS, .tof_resolution_ps = 1, .seed = 3},
        &(lr_event_sink){.take = thin, .user = thinning}, NULL));
    assert_ok(lr_deposit_finish(deposit));
    enum { CELLS = VIEWS * BLOCKS * BLOCKS * BLOCKS };
    double *found = kept_doubles(CELLS), *expected = kept_doubles(CELLS);
    sum_regions(lr_deposit_get_images(deposit), found);
    sum_regions(factors, expected);
    double ratio = 0, whole = 0, chi2 = 0, worst = 0;
    int cells = 0;
    for (int k = 0; k < CELLS; k++) {
        ratio += found[k];
        whole += expected[k];
    }
    ratio /= whole;
    for (int k = 0; k < CELLS; k++) {
        const double mean = expected[k] * ratio;
        if (mean < 25) continue;
        const double z = (found[k] - mean) / sqrt(mean * thinning->squares / thinning->sum);
        chi2 += z * z;
        worst = fmax(worst, fabs(z));
        cells++;
    }
    print_message("%d views and regions, %.0f counts each: chi squared %.1f, worst %.2f sigma\n", cells,
                  ratio * whole / cells, chi2, worst);
    assert_all(cells > CELLS / 2, chi2 < cells + 3 * sqrt(2.0 * cells), worst < 4);
}

/* --- the rest --- */

static void threads_do_not_matter(void **state)
{
    const struct ring ring = {.radius_mm = 60, .pitch_mm = 3, .modules = 16, .rings = 1, .crystals_v = 10};
    lr_lors *lors = make_ring(&ring);
    const lr_grid grid = lr_grid_centred((const int[3]){9, 8, 7}, (const double[3]){4, 3, 2});
    lr_histo_images *histo[2];
    for (int n = 0; n < 2; n++) {
        histo[n] =
            make(&(lr_direct_factors_params){.lors = lors, .grid = &grid, .set = {7, 2, 15}, .threads = 1 + 4 * n});
    }
    const size_t bytes = (size_t)(14 * lr_grid_num_voxels(&grid)) * sizeof(float);
    assert_int_equal(histo[0]->num_views, 14);
    assert_memory_equal(histo[0]->values, histo[1]->values, bytes);
}

static bool stop(void *user, const char *what, double done, double total)
{
    return false;
}

static void bad_input_is_refused(void **state)
{
    const struct ring ring = {.radius_mm = 60, .pitch_mm = 3, .modules = 16, .rings = 1, .crystals_v = 4};
    lr_lors *lors = make_ring(&ring);
    const lr_grid grid = lr_grid_centred((const int[3]){2, 2, 2}, (const double[3]){4, 4, 4});
    struct test_log log = TEST_LOG(log);
    float *efficiencies = kept_floats(lors->scanner->num_crystals);
    lr_direct_factors_params params = {.lors = lors, .grid = &grid, .log = &log.log};
    params.set.acceptance_deg = 90;
    assert_none(lr_direct_factors_create(&params), LR_USAGE, &log, "");
    params.set.acceptance_deg = 0;
    params.directions = -1;
    assert_none(lr_direct_factors_create(&params), LR_USAGE, &log, "");
    params.directions = 0;
    efficiencies[5] = -1;
    params.efficiencies = efficiencies;
    assert_none(lr_direct_factors_create(&params), LR_BAD_INPUT, &log, "crystal 5");
    params.efficiencies = NULL;
    float value = -1;
    const lr_image mu = {.grid = lr_grid_centred((const int[3]){1, 1, 1}, grid.voxel_mm), .values = &value};
    params.mu = &mu;
    assert_none(lr_direct_factors_create(&params), LR_BAD_INPUT, &log, "");
    params.mu = NULL;
    const lr_progress progress = {stop, NULL};
    params.progress = &progress;
    assert_null(lr_direct_factors_create(&params));
}

test_main("direct: factors", CASES(axial_triangle, long_scanners_measure_all, parts_multiply, pairs_follow_the_factors,
                                   threads_do_not_matter, bad_input_is_refused))
