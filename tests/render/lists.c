/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Lists of LORs on the compute backend: projections of a few LORs agree with projections of all LORs, and sums that are
 * added in any order have the same bits in every run. */
#include "subject.h"

#include "correspondence/values.h"

/* Tolerance relative to the largest value: the same elements are summed in two orders. */
static const double forward_rounding = 1e-6;

static struct subject *open_scanner(const char *name, lr_mode mode, int rays, const int samples[3])
{
    const struct scanner_case *at = scanner_case_named(name);
    const double step = at->reach_mm / 4;
    struct subject *subject = subject_open(name, at->create());
    subject->grid =
        shifted_grid((const int[3]){5, 4, 6}, (const double[3]){step, step, 3}, (const double[3]){0.31, -0.17, 0.23});
    subject->params.mode = mode;
    subject->params.rays = rays;
    memcpy(subject->params.samples, samples, sizeof(subject->params.samples));
    return subject;
}

static int64_t num_voxels_of(const struct subject *subject)
{
    return lr_grid_num_voxels(&subject->grid);
}

static float *draw(uint64_t *state, int64_t count)
{
    return kept_random_floats(count, -0.5, 1.5, state);
}

/* Selects about this share of all LORs, always including the first and the last. */
static lr_selection choose(const struct subject *subject, double share, uint64_t *state)
{
    const int64_t count = subject->lors->count;
    int64_t *lors = kept(count, sizeof(*lors));
    lr_selection part = {.lors = lors};
    for (int64_t lor = 0; lor < count; lor++)
        if (lor == 0 || lor == count - 1 || test_random(state) < share) lors[part.num_lors++] = lor;
    return part;
}

/* The device projects: values are not picked from all. */
static void check_list(struct subject *subject, const lr_selection *part, uint64_t *state)
{
    check_part(subject, part, forward_rounding, true, state);
    assert_true(lr_operator_device_seconds(subject->ops[0]) > 0.0);
}

static void check_share(struct subject *subject, double share, uint64_t *state)
{
    const lr_selection part = choose(subject, share, state);
    check_list(subject, &part, state);
}

static void test_lists_are_picks(void **unused)
{
    static const char *const scanners[] = {"opposed", "oblique", "gapped", "flipped", "blocks", "ruled ring"};
    enum { NUM_MODES = 4 };
    static const struct {
        lr_mode mode;
        int rays, samples[3];
    } modes[NUM_MODES] = {{LR_MODE_EXACT, 0, {1, 1, 1}},
                          {LR_MODE_EXACT, 0, {2, 1, 3}},
                          {LR_MODE_SAMPLED, 2, {2, 1, 3}},
                          {LR_MODE_SAMPLED, 3, {1, 1, 1}}};
    /* each scanner and mode has programs that take seconds to compile: one mode for each scanner */
    const bool is_full = test_takes_all("three of four modes of each scanner");
    uint64_t state = test_seed();
    for (int s = 0; s < length_of(scanners); s++) {
        for (size_t m = is_full ? 0 : s % NUM_MODES; m < NUM_MODES; m += is_full ? 1 : NUM_MODES) {
            struct subject *subject = open_scanner(scanners[s], modes[m].mode, modes[m].rays, modes[m].samples);
            subject_operator(subject, "compute");
            check_share(subject, 500.0 / (double)subject->lors->count, &state);
            destroy_kept(NULL);
        }
    }
}

static void test_lists_go_by_windows(void **unused)
{
    uint64_t state = test_seed();
    /* a window holds 1023 of 6561 LORs */
    struct subject *subject = open_scanner("opposed", LR_MODE_EXACT, 0, (const int[3]){1, 1, 1});
    subject->params.max_memory_bytes = 16384;
    subject_operator(subject, "compute");
    check_share(subject, 0.7, &state);
}

/* Modules whose u lies along the axis; tubes have more columns than one dispatch covers on llvmpipe. */
static void test_long_tubes(void **unused)
{
    uint64_t state = test_seed();
    const lr_module shape = shape_of(3, 2, 4.3, 4.0);
    const lr_module modules[2] = {place_module(&shape, &(struct placement){5, 70, 0, 0, 0, 90}),
                                  place_module(&shape, &(struct placement){180, 70, 2, 0, 0, 90})};
    struct subject *subject = subject_open("long tubes", scanner_of(modules, 2, 0));
    subject->grid = lr_grid_centred((const int[3]){60, 8, 20}, (const double[3]){2, 1.1, 0.7});
    subject->params.rays = 4;
    for (int k = 0; k < 3; k++) subject->params.samples[k] = 2;
    subject_operator(subject, "compute");
    check_share(subject, 0.3, &state);
}

/* --- LORs out of coincidence --- */

static void test_out_of_coincidence_is_zero(void **unused)
{
    uint64_t state = test_seed();
    struct subject *subject = open_scanner("ruled ring", LR_MODE_EXACT, 0, (const int[3]){1, 1, 1});
    lr_operator *op = subject_operator(subject, "compute");
    const lr_selection chosen = choose(subject, 0.05, &state);
    int64_t *lors = kept(chosen.num_lors, sizeof(*lors)), kept = 0;
    for (int64_t k = 0; k < chosen.num_lors; k++)
        if (!lr_lors_in_coincidence(subject->lors, chosen.lors[k])) lors[kept++] = chosen.lors[k];
    const lr_selection part = {.lors = lors, .num_lors = kept};
    assert_true(kept > 10);
    float *image = draw(&state, num_voxels_of(subject)), *values = draw(&state, kept);
    assert_ok(array_forward_part(op, &part, image, values));
    assert_true(largest_number(values, kept) == 0.0);
    assert_ok(array_sensitivity_part(op, &part, image));
    assert_true(largest_number(image, num_voxels_of(subject)) == 0.0);
}

static void test_one_and_none(void **unused)
{
    uint64_t state = test_seed();
    struct subject *subject = open_scanner("opposed", LR_MODE_EXACT, 0, (const int[3]){1, 1, 1});
    lr_operator *op = subject_operator(subject, "compute");
    int64_t lor = subject->lors->count / 2; /* of the two middle crystals */
    const lr_selection one = {.lors = &lor, .num_lors = 1}, none = {.lors = &lor};
    const float value = -3.0f;
    check_list(subject, &one, &state);
    float *image = draw(&state, num_voxels_of(subject));
    assert_ok(array_forward_part(op, &none, image, NULL), array_back_part(op, &none, &value, image));
    assert_true(largest_number(image, num_voxels_of(subject)) == 0.0);
}

/* --- fixed point --- */

/* Largest error of rounding a term to fixed point. Values are at most 1 here (src/correspondence/values.h). */
static const double FIXED_STEP = 0x1p-61;

/* Values range over six decades, and some voxels are seen by small values only. Every voxel is accurate to the rounding
 * of its elements, its terms and its sum in float, relative to the voxel itself. */
static void test_fixed_point_keeps_small_voxels(void **unused)
{
    uint64_t state = test_seed();
    struct subject *subject = open_scanner("opposed", LR_MODE_EXACT, 0, (const int[3]){1, 1, 1});
    lr_operator *op = subject_operator(subject, "compute");
    const int64_t num_voxels = num_voxels_of(subject);
    const lr_selection part = choose(subject, 100.0 / (double)subject->lors->count, &state);
    float *values = kept(part.num_lors, sizeof(*values));
    float *image = kept(num_voxels, sizeof(*image)), *of_one = kept(num_voxels, sizeof(*image));
    double *sums = kept(num_voxels, sizeof(*sums)); /* sums of the images of single LORs */
    for (int64_t k = 0; k < part.num_lors; k++) {
        const lr_selection one = {.lors = part.lors + k, .num_lors = 1};
        values[k] = (float)pow(10.0, random_between(&state, -6, 0));
        assert_ok(array_sensitivity_part(op, &one, of_one));
        for (int64_t v = 0; v < num_voxels; v++) sums[v] += (double)values[k] * (double)of_one[v];
    }
    assert_ok(array_back_part(op, &part, values, image));
    int seen = 0;
    for (int64_t v = 0; v < num_voxels; v++) {
        seen += sums[v] > 0.0;
        assert_true(fabs((double)image[v] - sums[v]) <= 3e-7 * sums[v] + (double)part.num_lors * FIXED_STEP);
    }
    assert_true(seen > 10);
}

/* One line through the middle of a large crystal, from half a millimetre above the crystal, has more weight than the
 * whole sphere: sums overflow, and are computed again with a larger exponent. */
static void test_overflow_is_worked_out_anew(void **unused)
{
    uint64_t state = test_seed();
    const lr_module wide = shape_of(9, 1, 10.0, 10.0), small = shape_of(3, 3, 10.0, 10.0);
    lr_module modules[2] = {place_module(&wide, &(struct placement){0, 10, 0, 0, 0, 0}),
                            place_module(&small, &(struct placement){180, 10, 0, 0, 0, 0})};
    modules[1].centre_mm[1] = 40;
    struct subject *subject = subject_open("near a face", scanner_of(modules, 2, 0));
    subject->grid = shifted_grid((const int[3]){1, 1, 1}, (const double[3]){1, 1, 1}, (const double[3]){9.5, 40, 0});
    subject->params.rays = 1;
    float sensitivity;
    assert_ok(array_sensitivity(subject_operator(subject, "compute"), &sensitivity));
    assert_true(sensitivity > 4.0f);
    check_share(subject, 0.5, &state);
    check_share(subject, 1.0, &state);
}

/* Scanners that the column passes cannot handle: tilted modules, and modules in front of others. */
static void test_deterministic_has_the_same_bits(void **unused)
{
    uint64_t state = test_seed();
    for (int k = 0; k < 4; k++) {
        struct subject *subject = open_scanner(k / 2 ? "stacked" : "tilted", k % 2 ? LR_MODE_EXACT : LR_MODE_SAMPLED,
                                               k % 2 ? 0 : 2, (const int[3]){1, 1, 1});
        subject->params.max_memory_bytes = 65536;
        check_deterministic(subject, draw(&state, num_voxels_of(subject)), 0, 2e-6);
        destroy_kept(NULL);
    }
}

static void test_exponents(void **unused)
{
    assert_int_equal(lr_fixed_exponent((const float[]){0.0f, -0.0f}, 2), 0);
    assert_int_equal(lr_fixed_exponent((const float[]){0.75f, -1.0f}, 2), 1);
    assert_int_equal(lr_fixed_exponent((const float[]){-0.75f, 0.2f}, 2), 0);
    assert_int_equal(lr_fixed_exponent((const float[]){0x1p-149f}, 1), -148);
    assert_int_equal(lr_fixed_exponent((const float[]){0x1.fffffep127f}, 1), 128);
}

stage_main("lists", CASES(test_lists_are_picks, test_lists_go_by_windows, test_long_tubes,
                          test_out_of_coincidence_is_zero, test_one_and_none, test_fixed_point_keeps_small_voxels,
                          test_overflow_is_worked_out_anew, test_deterministic_has_the_same_bits, test_exponents))
