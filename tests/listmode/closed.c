/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Elements of list mode against closed forms, for the backend that argv[1] names. Expected values are derived here
 * from end points and voxel centres, without using code of src/listmode. */
#include "listmode/cases.h"

#include "base/vec.h"

/* Standard deviation in mm per ps of FWHM: half the speed of light, divided by the FWHM of a Gaussian of standard
   deviation 1. */
#define SIGMA_MM_PER_PS (0.299792458 / 2 / (2 * sqrt(2 * log(2))))

static lr_lors lors;

static int set_up(void **state)
{
    lors = (lr_lors){.scanner = case_scanner()};
    return 0;
}

/* Tolerance of closed forms: the given one for the reference, which computes in double, and rounding in single
   precision for other backends. */
static double error_of(double of_reference)
{
    return test_backend_is("cpu") ? of_reference : 1e-6;
}

/* A single event and a grid. */
struct trial {
    lr_grid grid;
    enum case_model model;
    lr_event event;
    double resolution_ps; /* 0 = no time of flight */
    double bin_mm;        /* 0 = tof_mm is exact */
};

static const struct case_backend *open_trial(const struct trial *trial)
{
    const lr_events_info info = {
        .has_tof = trial->resolution_ps > 0, .tof_resolution_ps = trial->resolution_ps, .tof_bin_mm = trial->bin_mm};
    lr_listmode_params params = {
        .lors = &lors, .grid = &trial->grid, .events = &trial->event, .count = 1, .info = &info};
    case_kernel(&params, trial->model);
    return case_open(&params, test_backend);
}

/* Value of the event for an image; NULL: an image of ones. */
static double value_on(const struct trial *trial, const double *image)
{
    const int before = num_kept();
    double value = -7; /* old value, to be overwritten */
    case_forward(open_trial(trial), NULL,
                 image != NULL ? image : kept_equal_doubles(lr_grid_num_voxels(&trial->grid), 1), &value);
    destroy_kept_since(before);
    return value;
}

static double *elements_of(const struct trial *trial)
{
    double *image = kept_equal_doubles(lr_grid_num_voxels(&trial->grid), 1); /* old values, to be overwritten */
    const int before = num_kept();
    case_back(open_trial(trial), NULL, NULL, image);
    destroy_kept_since(before);
    return image;
}

static lr_event event_between(int32_t a, int32_t b, double tof_mm)
{
    return (lr_event){.crystals = {a, b}, .tof_mm = (float)tof_mm, .weight = 1};
}

/* An event along an axis between opposite panels; the ends may be at different crystals. */
static lr_event across(int axis, const int from_mm[2], const int to_mm[2], double tof_mm)
{
    return event_between(case_crystal(2 * axis, from_mm[0], from_mm[1]), case_crystal(2 * axis + 1, to_mm[0], to_mm[1]),
                         tof_mm);
}

/* An event parallel to an axis, at the same coordinates in both panels. */
static lr_event straight(int axis, int u_mm, int v_mm, double tof_mm)
{
    const int at_mm[2] = {u_mm, v_mm};
    return across(axis, at_mm, at_mm, tof_mm);
}

static double event_length(const lr_event *event)
{
    double a[3], b[3], along[3];
    case_point(event->crystals[0], a);
    case_point(event->crystals[1], b);
    vec_sub(b, a, along);
    return vec_length(along);
}

/* --- every element of random events --- */

/* The event seen from its first end; positions are fractions of the distance from the first end to the second. */
struct expected {
    const struct trial *trial;
    lr_listmode_tube tube;
    double a[3], along[3], length, sigma;
    int axis, across[2];
};

static struct expected expect(const struct trial *trial)
{
    struct expected expected = {.trial = trial};
    lr_listmode_params params = {0};
    double b[3];
    case_kernel(&params, trial->model);
    expected.tube = params.tube;
    if (trial->model == CASE_TUBE) { /* the defaults: the pitch is 10 mm, the longest voxel edge 6 mm */
        expected.tube.fwhm_mm = 6.0;
        expected.tube.width_mm = 2 * 6.0 * sqrt(log(100.0) / (4 * log(2.0)));
    }
    case_point(trial->event.crystals[0], expected.a);
    case_point(trial->event.crystals[1], b);
    vec_sub(b, expected.a, expected.along);
    expected.length = vec_length(expected.along);
    expected.sigma = SIGMA_MM_PER_PS * trial->resolution_ps;
    for (int k = 1; k < 3; k++)
        expected.axis = fabs(expected.along[k]) > fabs(expected.along[expected.axis]) ? k : expected.axis;
    expected.across[0] = (expected.axis + 1) % 3;
    expected.across[1] = (expected.axis + 2) % 3;
    return expected;
}

static double coordinate(const struct expected *expected, int axis, double index)
{
    return expected->trial->grid.origin_mm[axis] + index * expected->trial->grid.voxel_mm[axis];
}

static double way_to(const struct expected *expected, double index)
{
    const int axis = expected->axis;
    return (coordinate(expected, axis, index) - expected->a[axis]) / expected->along[axis];
}

/* shift_mm: shift of the position from the middle of its bin. */
static double shifted_factor(const struct expected *expected, int slice, double shift_mm)
{
    const double offset = expected->length * 0.5 + (double)expected->trial->event.tof_mm + shift_mm;
    const double sigma = expected->sigma;
    if (expected->tube.as_paper) {
        const double way = way_to(expected, slice), off = way * expected->length - offset;
        return way < 0 || way > 1      ? 0.0
               : sigma == 0            ? 1.0
               : fabs(off) > 3 * sigma ? 0.0
                                       : exp(-off * off / (2 * sigma * sigma));
    }
    const double ends[2] = {way_to(expected, slice - 0.5), way_to(expected, slice + 0.5)};
    double low = fmax(fmin(ends[0], ends[1]), 0.0) * expected->length;
    double high = fmin(fmax(ends[0], ends[1]), 1.0) * expected->length;
    if (sigma > 0) {
        low = fmax(low, offset - 3 * sigma);
        high = fmin(high, offset + 3 * sigma);
    }
    if (high <= low || sigma == 0) return fmax(high - low, 0.0);
    const double root = sigma * sqrt(2.0);
    return (erf((high - offset) / root) - erf((low - offset) / root)) / 2 / erf(3 / sqrt(2.0));
}

/* The mean over positions within the bin, by the midpoint rule with 200 steps per standard deviation, which is
 * accurate to 1e-6 where the function has bends. The paper's function jumps where it is cut off, so positions behind
 * the cut are left out first. */
static double expected_factor(const struct expected *expected, int slice)
{
    const double bin_mm = expected->trial->bin_mm;
    if (bin_mm == 0) return shifted_factor(expected, slice, 0);
    double low = -0.5 * bin_mm, high = 0.5 * bin_mm, sum = 0;
    if (expected->tube.as_paper) {
        const double offset = expected->length * 0.5 + (double)expected->trial->event.tof_mm;
        const double off = way_to(expected, slice) * expected->length - offset;
        low = fmin(fmax(low, off - 3 * expected->sigma), high);
        high = fmax(fmin(high, off + 3 * expected->sigma), low);
    }
    const int parts = 200 + (int)(200 * (high - low) / expected->sigma);
    for (int k = 0; k < parts; k++) sum += shifted_factor(expected, slice, low + (k + 0.5) / parts * (high - low));
    return sum / parts * (high - low) / bin_mm;
}

static double inner_function(const struct expected *expected, double distance, double half)
{
    if (expected->tube.table != NULL) {
        const double at = distance / half * 4; /* the table has five values */
        const int k = at < 4 ? (int)at : 3;
        return case_table[k] * (k + 1 - at) + case_table[k + 1] * (at - k);
    }
    return pow(2.0, -4 * distance * distance / expected->tube.fwhm_mm / expected->tube.fwhm_mm);
}

/* The profile as a function of the distance from the line, computed by a cross product. Beyond half the width it
 * falls to 0 while the square of the distance grows by a thousandth. */
static double tube_function(const struct expected *expected, const double voxel[3])
{
    double from[3], cross[3];
    vec_sub(voxel, expected->a, from);
    vec_cross(from, expected->along, cross);
    const double half = 0.5 * expected->tube.width_mm;
    const double found = vec_length(cross) / expected->length, distance = fmin(found, half);
    const double fall = fmin(1 - (found * found / (half * half) - 1) / 0.001, 1.0);
    return fall > 0 ? fall * inner_function(expected, distance, half) : 0.0;
}

static double expected_share(const struct expected *expected, const int at[3])
{
    double centre[3];
    for (int k = 0; k < 3; k++) centre[k] = coordinate(expected, k, at[k]);
    if (expected->trial->model != CASE_LINE) return tube_function(expected, centre);
    double share = 1;
    for (int k = 0; k < 2; k++) {
        const int axis = expected->across[k];
        const double crossing = expected->a[axis] + way_to(expected, at[expected->axis]) * expected->along[axis];
        const double off = fabs(crossing - centre[axis]) / expected->trial->grid.voxel_mm[axis];
        share *= fmax(1 - off, 0.0);
    }
    return share;
}

enum { AROUND = 8 };

/* Sum of the shares of all voxels of a slice, including voxels outside the image. */
static double expected_sum(const struct expected *expected, int slice)
{
    const int *size = expected->trial->grid.size;
    int at[3];
    double sum = 0;
    at[expected->axis] = slice;
    for (int u = -AROUND; u < size[expected->across[0]] + AROUND; u++) {
        for (int v = -AROUND; v < size[expected->across[1]] + AROUND; v++) {
            at[expected->across[0]] = u;
            at[expected->across[1]] = v;
            sum += expected_share(expected, at);
        }
    }
    return sum;
}

static double *expected_elements(const struct trial *trial)
{
    const struct expected expected = expect(trial);
    const int *size = trial->grid.size;
    double *elements = kept_doubles(lr_grid_num_voxels(&trial->grid));
    for (int slice = 0; slice < size[expected.axis]; slice++) {
        const double factor = expected_factor(&expected, slice);
        const bool sums = trial->model != CASE_LINE && !expected.tube.as_paper && factor > 0;
        const double sum = sums ? expected_sum(&expected, slice) : 1.0;
        for (int64_t row = 0; row < lr_grid_num_voxels(&trial->grid); row++) {
            const int at[3] = {(int)(row % size[0]), (int)(row / size[0] % size[1]), (int)(row / size[0] / size[1])};
            if (at[expected.axis] == slice && factor > 0 && sum > 0)
                elements[row] = factor * expected_share(&expected, at) / sum;
        }
    }
    return elements;
}

/* Largest error relative to the largest element. At the edge of a tube, shares change a thousand times as fast as
 * distances. Squares of distances are a little less accurate on devices: CUDA computes them without differences, and
 * NVIDIA's OpenGL compiler fuses products and sums. */
static double element_error(const struct trial *trial)
{
    if (trial->bin_mm > 0) return test_backend_is("cpu") ? 3e-6 : 6e-6;
    return test_backend_is("cpu") ? 1e-11 : test_backend_is("native") ? 2e-6 : 4e-6;
}

static void check_elements(const struct trial *trial)
{
    const int64_t count = lr_grid_num_voxels(&trial->grid);
    double *expected = expected_elements(trial), *found = elements_of(trial);
    const double most = largest_number(expected, count);
    for (int64_t k = 0; k < count; k++) {
        if (fabs(found[k] - expected[k]) > element_error(trial) * most) {
            fail_msg("kernel %d, %g ps, bin of %g mm, crystals %d and %d, voxel %d: %.12g instead of %.12g",
                     (int)trial->model, trial->resolution_ps, trial->bin_mm, trial->event.crystals[0],
                     trial->event.crystals[1], (int)k, found[k], expected[k]);
        }
    }
}

/* FWHM of 6 and 60 mm, and bins narrower and wider than these. */
static const double resolutions_ps[2] = {40.03, 400.3};
static const double bins_mm[5] = {12, 24, 60, 120, 240};

static void test_elements(void **state)
{
    enum { EVENTS = 12 };
    uint64_t seed = test_seed();
    lr_event *events = case_events(EVENTS, &seed);
    for (int k = 0; k < EVENTS; k++) {
        for (int model = 0; model < NUM_CASES; model++) {
            struct trial trial = {.grid = case_grid(), .model = (enum case_model)model, .event = events[k]};
            check_elements(&trial);
            trial.resolution_ps = 350;
            check_elements(&trial);
            trial.bin_mm = bins_mm[k % 5];
            trial.resolution_ps = resolutions_ps[k % 2];
            check_elements(&trial);
        }
    }
}

/* --- a box of ones: the value is the length of the line in it --- */

static const enum case_model normalised[3] = {CASE_LINE, CASE_TUBE, CASE_TABLE};

/* Lines that enter and leave the box through the faces across their main direction. */
static void test_chords(void **state)
{
    static const int ends[4][2][2] = {
        {{0, 0}, {0, 0}}, {{10, -20}, {-30, 10}}, {{-20, 20}, {20, 0}}, {{0, -30}, {30, 30}}};
    for (int k = 0; k < 3 * 3 * 4; k++) {
        const int axis = k % 3;
        struct trial trial = {.grid = case_grid(), .model = normalised[k / 3 % 3]};
        trial.event = across(axis, ends[k / 9][0], ends[k / 9][1], 0);
        const double box = trial.grid.size[axis] * trial.grid.voxel_mm[axis];
        const double chord = box * event_length(&trial.event) / (2 * PANEL_MM);
        assert_close(value_on(&trial, NULL), chord, error_of(1e-12));
    }
}

/* The grid is larger than the scanner: the line ends at the crystals. */
static void test_ends(void **state)
{
    for (int model = 0; model < 3; model++) {
        struct trial trial = {.grid = lr_grid_centred((const int[3]){43, 44, 45}, (const double[3]){7, 7, 7}),
                              .model = normalised[model],
                              .event = across(1, (const int[2]){40, -30}, (const int[2]){-50, 20}, 0)};
        assert_close(value_on(&trial, NULL), event_length(&trial.event), error_of(1e-12));
    }
}

/* --- time of flight --- */

/* A row of voxels of 2 mm through the middle, and an event along this row. */
static struct trial row_trial(int axis, int voxels, double resolution_ps, double bin_mm)
{
    int size[3] = {1, 1, 1};
    size[axis] = voxels;
    return filled(struct trial, .grid = lr_grid_centred(size, (const double[3]){2, 2, 2}), .model = CASE_LINE,
                  .resolution_ps = resolution_ps, .bin_mm = bin_mm, .event = straight(axis, 0, 0, 3));
}

static double normal(double z)
{
    return 0.5 * (1 + erf(z / sqrt(2.0)));
}

/* The value of a box of ones is the integral of the part of the Gaussian, cut at three standard deviations, that
 * lies in the box. */
static void test_area(void **state)
{
    const double sigma = SIGMA_MM_PER_PS * 300, held = normal(3) - normal(-3);
    for (int k = 0; k < 9; k++) {
        struct trial trial = {.grid = lr_grid_centred((const int[3]){36, 36, 36}, (const double[3]){5, 5, 5}),
                              .model = normalised[k / 3],
                              .resolution_ps = 300};
        const int axis = k % 3, from[2] = {10, -20}, to[2] = {-30, 0};
        for (double centre = -160; centre <= 160; centre += 16) {
            trial.event = across(axis, from, to, centre);
            const double half = 90 * event_length(&trial.event) / (2 * PANEL_MM);
            const double low = fmin(fmax((-half - centre) / sigma, -3), 3);
            const double high = fmin(fmax((half - centre) / sigma, -3), 3);
            const double area = (normal(high) - normal(low)) / held, value = value_on(&trial, NULL);
            assert_all(area > 0 || value == 0, fabs(value - area) < error_of(1e-12));
        }
    }
}

/* The mean coordinate weighted by the Gaussian is that of its centre, which moves towards b where tof_mm > 0. */
static void test_direction(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){50, 50, 50}, (const double[3]){4, 4, 4});
    const int64_t count = lr_grid_num_voxels(&grid);
    double *image = kept_doubles(count);
    for (int axis = 0; axis < 3; axis++) {
        for (int64_t k = 0; k < count; k++) {
            double centre[3];
            lr_grid_voxel_centre(&grid, k, centre);
            image[k] = centre[axis];
        }
        for (int model = 0; model < 3; model++) {
            struct trial trial = filled(struct trial, .grid = grid, .model = normalised[model], .resolution_ps = 200,
                                        .event = across(axis, (const int[2]){20, -30}, (const int[2]){-30, 10}, 33));
            const double expected = 33 * 2 * PANEL_MM / event_length(&trial.event);
            const double value = value_on(&trial, image);
            assert_true(fabs(value - expected) < 0.02);
            trial.event = event_between(trial.event.crystals[1], trial.event.crystals[0], -33);
            assert_close(value_on(&trial, image), value, error_of(1e-12));
            trial.event.tof_mm = 33;
            assert_true(fabs(value_on(&trial, image) + expected) < 0.02);
        }
    }
}

/* The variance along a line is the sum of three variances: those of the bin, of the Gaussian cut at three standard
 * deviations, and of a slice. */
static void test_width(void **state)
{
    const double cut = 6 * exp(-4.5) / sqrt(2 * acos(-1.0)) / (normal(3) - normal(-3));
    for (int k = 0; k < 10 * 3; k++) {
        const int axis = k % 3;
        const struct trial trial = row_trial(axis, 121, resolutions_ps[k / 3 % 2], bins_mm[k / 6]);
        const double sigma = SIGMA_MM_PER_PS * trial.resolution_ps;
        if (3 * sigma + 0.5 * trial.bin_mm + 3 > PANEL_MM) continue; /* the line's ends would cut the Gaussian */
        double *elements = elements_of(&trial), sums[3] = {0};
        for (int64_t v = 0; v < lr_grid_num_voxels(&trial.grid); v++) {
            double centre[3], power = elements[v];
            lr_grid_voxel_centre(&trial.grid, v, centre);
            for (int n = 0; n < 3; n++, power *= centre[axis]) sums[n] += power;
        }
        const double mean = sums[1] / sums[0], variance = sums[2] / sums[0] - mean * mean;
        const double expected = trial.bin_mm * trial.bin_mm / 12 + sigma * sigma * (1 - cut);
        assert_close(sums[0], 1, test_backend_is("cpu") ? 1e-9 : 3e-6);
        assert_true(fabs(mean - 3) < 1e-3);
        assert_close(variance, expected + 4.0 / 12, 1e-3); /* of a slice that is cut, 2 % of sigma^2 */
    }
}

/* Integral of the cumulative normal distribution. */
static double twice_normal(double x)
{
    return x * normal(x) + exp(-0.5 * x * x) / sqrt(2 * acos(-1.0));
}

/* Elements of a narrow bin are accurate relative to themselves, down to a hundredth of the largest element. A
 * difference of two integrals in float would not be. */
static void test_far_from_the_middle(void **state)
{
    for (int axis = 0; axis < 3; axis++) {
        const struct trial trial = row_trial(axis, 81, resolutions_ps[1], bins_mm[0]);
        const double sigma = SIGMA_MM_PER_PS * trial.resolution_ps;
        const double half = 1 / sigma, bin = 0.5 * trial.bin_mm / sigma;
        double *elements = elements_of(&trial);
        int compared = 0;
        for (int64_t v = 0; v < lr_grid_num_voxels(&trial.grid); v++) {
            double centre[3];
            lr_grid_voxel_centre(&trial.grid, v, centre);
            const double z = fabs(centre[axis] - 3) / sigma;
            if (z + half + bin > 3) continue;
            const double held = twice_normal(z + half + bin) - twice_normal(z + half - bin) -
                                twice_normal(z - half + bin) + twice_normal(z - half - bin);
            const double expected = held / (2 * bin) / (normal(3) - normal(-3));
            assert_close(elements[v] / expected, 1, 2e-6);
            compared++;
        }
        assert_true(compared > 60);
    }
}

/* The event at positions step_mm apart that cover its line: the values add up to the value without time of flight. */
static void check_positions(struct trial trial, double step_mm, int count, double tolerance)
{
    enum { MOST = 301 };
    uint64_t seed = 22;
    const double *image = kept_random_singles(lr_grid_num_voxels(&trial.grid), 0, 1, &seed);
    const lr_events_info info = {.has_tof = true, .tof_resolution_ps = trial.resolution_ps, .tof_bin_mm = trial.bin_mm};
    lr_event events[MOST];
    double values[MOST], sum = 0;
    assert_true(count <= MOST);
    for (int place = 0; place < count; place++) {
        events[place] = trial.event;
        events[place].tof_mm = (float)((place - count / 2) * step_mm);
    }
    lr_listmode_params params = {.lors = &lors, .grid = &trial.grid, .events = events, .count = count, .info = &info};
    const int before = num_kept();
    case_kernel(&params, trial.model);
    case_forward(case_open(&params, test_backend), NULL, image, values);
    destroy_kept_since(before);
    for (int place = 0; place < count; place++) sum += step_mm * values[place];
    trial.resolution_ps = trial.bin_mm = 0;
    const double whole = value_on(&trial, image);
    assert_true(whole > 10);
    assert_close(sum, whole, tolerance);
}

/* Adjacent bins that cover all positions, whatever their width. */
static void test_bins_add_up(void **state)
{
    for (int k = 0; k < 10; k++) {
        const struct trial trial = filled(struct trial, .grid = case_grid(), .model = normalised[k % 3],
                                          .event = across(k % 3, (const int[2]){20, -30}, (const int[2]){-30, 10}, 0),
                                          .resolution_ps = resolutions_ps[k / 5], .bin_mm = bins_mm[k % 5]);
        check_positions(trial, trial.bin_mm, 2 * (int)ceil(220 / trial.bin_mm) + 1,
                        test_backend_is("cpu") ? 1e-9 : 2e-6);
    }
}

/* Exact positions 1 mm apart. */
static void test_places_add_up(void **state)
{
    for (int k = 0; k < 6; k++) {
        const struct trial trial =
            filled(struct trial, .grid = case_grid(), .model = normalised[k % 3],
                   .event = across(k / 2, (const int[2]){20, -30}, (const int[2]){-30, 10}, 0), .resolution_ps = 300);
        check_positions(trial, 1, 301, 1e-4);
    }
}

/* --- lines that caused errors in other programs --- */

/* A line along the common edge of four voxels is shared equally, also where this edge is on the border of the image. */
static void test_faces(void **state)
{
    for (int k = 0; k < 3 * 4; k++) {
        const int axis = k % 3;
        struct trial trial = {.grid = lr_grid_centred((const int[3]){20, 20, 20}, (const double[3]){5, 5, 5}),
                              .model = (enum case_model)(k / 3),
                              .event = straight(axis, 10, 0, 0)};
        double *elements = elements_of(&trial);
        for (int slice = 0; slice < 20; slice++) {
            double shares[4];
            for (int n = 0; n < 4; n++) {
                int at[3];
                at[axis] = slice;
                at[axis == 0 ? 1 : 0] = 11 + n % 2; /* at 7.5 and 12.5 mm */
                at[axis == 2 ? 1 : 2] = 9 + n / 2;  /* at -2.5 and 2.5 mm */
                shares[n] = elements[at[0] + trial.grid.size[0] * (at[1] + (int64_t)trial.grid.size[1] * at[2])];
                assert_true(shares[n] > 0);
                assert_close(shares[n], shares[0], error_of(1e-13));
            }
            if (trial.model == CASE_LINE) assert_close(shares[0], 5.0 / 4, error_of(1e-13));
        }
        if (trial.model != CASE_PAPER) {
            trial.event = straight(axis, 50, 0, 0);
            assert_close(value_on(&trial, NULL), 50.0, error_of(1e-12));
        }
    }
}

/* A line along an axis through voxel centres has elements only in these voxels. */
static void test_centres(void **state)
{
    for (int axis = 0; axis < 3; axis++) {
        struct trial trial = {.grid = lr_grid_centred((const int[3]){21, 21, 21}, (const double[3]){5, 5, 5}),
                              .event = straight(axis, 10, 0, 0)};
        double *elements = elements_of(&trial);
        for (int64_t k = 0; k < lr_grid_num_voxels(&trial.grid); k++) {
            double centre[3];
            lr_grid_voxel_centre(&trial.grid, k, centre);
            const bool on_line = fabs(centre[axis == 0 ? 1 : 0] - 10) < 1 && fabs(centre[axis == 2 ? 1 : 2]) < 1;
            assert_true(fabs(elements[k] - (on_line ? 5.0 : 0.0)) < error_of(1e-13));
        }
    }
}

/* The line has equal lengths along two axes. Swapping its ends must not change the elements. */
static void test_diagonals(void **state)
{
    uint64_t seed = 22;
    const lr_grid grid = case_grid();
    double *image = kept_random_singles(lr_grid_num_voxels(&grid), 0, 1, &seed);
    for (int k = 0; k < 3 * NUM_CASES; k++) {
        const int one = k % 3, other = (k + 1) % 3;
        int from[2] = {0, 0}, to[2] = {0, 0};
        from[other == (one == 0 ? 1 : 0) ? 0 : 1] = -100;
        to[one == (other == 0 ? 1 : 0) ? 0 : 1] = 100;
        struct trial trial = filled(struct trial, .grid = grid, .model = (enum case_model)(k / 3), .resolution_ps = 500,
                                    .event = event_between(case_crystal(2 * one, from[0], from[1]),
                                                           case_crystal(2 * other + 1, to[0], to[1]), 7));
        double a[3], b[3];
        case_point(trial.event.crystals[0], a);
        case_point(trial.event.crystals[1], b);
        assert_true(b[one] - a[one] == 220 && b[other] - a[other] == 220);
        const double value = value_on(&trial, image);
        trial.event = event_between(trial.event.crystals[1], trial.event.crystals[0], -7);
        assert_true(value > 0);
        assert_close(value_on(&trial, image), value, error_of(1e-12));
        check_elements(&trial);
    }
}

/* Lines that miss the image, and time of flight outside of the image, have no elements. */
static void test_misses(void **state)
{
    struct trial trial = {.grid = case_grid()};
    for (int model = 0; model < NUM_CASES; model++) {
        trial.model = (enum case_model)model;
        trial.resolution_ps = 0;
        trial.event = across(0, (const int[2]){100, 100}, (const int[2]){100, 90}, 0);
        assert_true(value_on(&trial, NULL) == 0);
        /* past a corner of the image: through the panels' edges, 190 mm from the middle */
        trial.event = event_between(case_crystal(1, 100, 0), case_crystal(3, 100, 0), 0);
        assert_true(value_on(&trial, NULL) == 0);
        trial.event = straight(0, 0, 0, 0);
        assert_true(value_on(&trial, NULL) > 0);
        trial.resolution_ps = 200; /* three standard deviations are 38 mm */
        const float places[4] = {-116, 116, -4000, 3e30f};
        for (int k = 0; k < 4; k++) {
            trial.event.tof_mm = places[k];
            assert_true(value_on(&trial, NULL) == 0);
            double *elements = elements_of(&trial);
            for (int64_t v = 0; v < lr_grid_num_voxels(&trial.grid); v++) assert_true(elements[v] == 0);
        }
    }
}

case_main("cpu", set_up,
          CASES(test_elements, test_chords, test_ends, test_area, test_direction, test_width, test_far_from_the_middle,
                test_bins_add_up, test_places_add_up, test_faces, test_centres, test_diagonals, test_misses))
