/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Attenuation as a factor per LOR, compared with attenuation along the line of each element. The difference of each
 * LOR is within the bound of docs/method/common.md, "Bound on the factor", for a smooth map and for a box with sharp
 * edges. */
#include "cases.h"

enum { MU_STEPS = 60 };

struct ends {
    double a[3], b[3];   /* face centres */
    double half[3];      /* largest distance of a point of the face from its centre, along x, y, z */
    double length_slack; /* largest difference between the lengths of the lines */
};

static void face_of(const lr_scanner *scanner, int m, const int at[2], double centre[3], struct ends *ends)
{
    const lr_module *module = &scanner->modules[m];
    lr_scanner_detection_centre(scanner, m, centre);
    for (int k = 0; k < 3; k++) {
        centre[k] += (at[0] - 0.5 * (module->crystals[0] - 1)) * module->pitch_mm[0] * module->u[k] +
                     (at[1] - 0.5 * (module->crystals[1] - 1)) * module->pitch_mm[1] * module->v[k];
        const double half = 0.5 * (module->face_mm[0] * fabs(module->u[k]) + module->face_mm[1] * fabs(module->v[k]));
        ends->half[k] = fmax(ends->half[k], half);
    }
    ends->length_slack += 0.5 * hypot(module->face_mm[0], module->face_mm[1]);
}

/* Smallest and largest mu of the voxels whose centres are within a given distance of a point; 0 outside the map. */
static void look_around(const lr_image *mu, const double point[3], const double reach[3], double range[2])
{
    int low[3], high[3];
    range[0] = INFINITY;
    range[1] = 0.0;
    for (int k = 0; k < 3; k++) {
        const double at = (point[k] - mu->grid.origin_mm[k]) / mu->grid.voxel_mm[k];
        low[k] = (int)ceil(at - reach[k] / mu->grid.voxel_mm[k]);
        high[k] = (int)floor(at + reach[k] / mu->grid.voxel_mm[k]);
        if (low[k] < 0 || high[k] >= mu->grid.size[k]) range[0] = 0.0;
        low[k] = low[k] < 0 ? 0 : low[k];
        high[k] = high[k] < mu->grid.size[k] ? high[k] : mu->grid.size[k] - 1;
    }
    for (int z = low[2]; z <= high[2]; z++) {
        for (int y = low[1]; y <= high[1]; y++) {
            for (int x = low[0]; x <= high[0]; x++) {
                const int *size = mu->grid.size;
                const double value = mu->values[x + size[0] * (y + (int64_t)size[1] * z)];
                range[0] = fmin(range[0], value);
                range[1] = fmax(range[1], value);
            }
        }
    }
    range[0] = isfinite(range[0]) ? range[0] : 0.0;
}

/* The bound on the difference between the two integrals. */
static double bound_of(const lr_lors *lors, const lr_image *mu, int64_t l)
{
    const lr_lor lor = lr_lors_describe(lors, l);
    struct ends ends = {.length_slack = 0.0};
    face_of(lors->scanner, lor.module_i, (int[2]){lor.p, lor.q}, ends.a, &ends);
    face_of(lors->scanner, lor.module_j, (int[2]){lor.r, lor.s}, ends.b, &ends);
    double length2 = 0.0, reach[3], low = 0.0, high = 0.0;
    for (int k = 0; k < 3; k++) {
        const double along = ends.b[k] - ends.a[k];
        length2 += along * along;
        reach[k] = ends.half[k] + 0.5 * fabs(along) / MU_STEPS + mu->grid.voxel_mm[k];
    }
    for (int n = 0; n < MU_STEPS; n++) {
        double point[3], range[2];
        for (int k = 0; k < 3; k++) point[k] = ends.a[k] + (n + 0.5) / MU_STEPS * (ends.b[k] - ends.a[k]);
        look_around(mu, point, reach, range);
        low += range[0] / MU_STEPS;
        high += range[1] / MU_STEPS;
    }
    return sqrt(length2) * (high - low) + ends.length_slack * high;
}

/* Forward projection of a uniform activity. */
static float *project(const struct fixture *fixture, const lr_operator_params *params)
{
    lr_operator *op = keep(lr_operator_create(params));
    float *data = kept_floats(fixture->lors->count);
    assert_ok(array_forward(op, kept_equal_floats(lr_grid_num_voxels(&fixture->grid), 1.0f), data));
    return data;
}

/* Results of a comparison for a mode and a map. */
struct findings {
    double worst, of_bound; /* largest |ln ratio|, and largest relative to its bound */
    double difference2, size2;
    double bounds, difference;
    int count;
};

/* The bound must not be too loose: for each kind of map some LOR reaches a twentieth of its bound, and the mean
 * bound is below the total attenuation, about 15 mm of 0.02 per mm. */
static void check(bool is_smooth)
{
    const lr_grid grid = lr_grid_centred((const int[3]){28, 26, 20}, (const double[3]){1, 1, 1});
    lr_image *mu = keep(lr_image_create(&grid, NULL));
    for (int64_t v = 0; v < lr_grid_num_voxels(&grid); v++) {
        double p[3];
        lr_grid_voxel_centre(&grid, v, p);
        const double r2 = p[0] * p[0] + p[1] * p[1] + 2 * p[2] * p[2];
        const bool in_box = fabs(p[0]) < 8 && fabs(p[1] - 1) < 6 && fabs(p[2]) < 7;
        mu->values[v] = is_smooth ? (float)(0.02 * exp(-r2 / 50)) : in_box ? 0.02f : 0.0f;
    }
    for (int mode = LR_MODE_SAMPLED; mode <= LR_MODE_EXACT; mode++) {
        struct findings found = {0};
        for (int kind = FIXTURE_OPPOSED; kind < FIXTURE_COUNT; kind++) {
            const struct fixture fixture = kept_fixture((enum fixture_kind)kind);
            lr_attenuation *attenuation =
                keep(lr_attenuation_create(&(lr_attenuation_params){.lors = fixture.lors, .mu = mu}));
            const lr_lor_source factors = lr_attenuation_source(attenuation);
            lr_operator_params params = fixture_params(&fixture, "cpu", NULL);
            params.mode = (lr_mode)mode;
            params.rays = 3;
            lr_operator_params marching = params;
            params.factors = &factors;
            marching.mu = mu;
            marching.mu_steps = MU_STEPS;
            float *by_factor = project(&fixture, &params), *by_line = project(&fixture, &marching);
            for (int64_t l = 0; l < fixture.lors->count; l++) {
                assert_true((by_factor[l] > 0.0f) == (by_line[l] > 0.0f));
                if (by_factor[l] == 0.0f) continue;
                const double ratio = fabs(log((double)by_line[l] / by_factor[l])),
                             bound = bound_of(fixture.lors, mu, l);
                if (!(ratio <= bound + 1e-6)) /* 1e-6: rounding of floats */
                    fail_msg("%s, LOR %lld: ln of the ratio %.4g, bound %.4g", fixture.name, (long long)l, ratio,
                             bound);
                found.worst = fmax(found.worst, ratio);
                found.of_bound = fmax(found.of_bound, bound > 0.0 ? ratio / bound : 0.0);
                found.difference2 += pow((double)by_line[l] - by_factor[l], 2.0);
                found.size2 += pow(by_line[l], 2.0);
                found.bounds += bound;
                found.difference += ratio;
                found.count++;
            }
        }
        print_message("%s map, %s mode, %d LORs: ln of ratio %.4f in the mean and %.4f at most, bound %.4f in the "
                      "mean, %.2f of a bound reached; relative L2 %.2g\n",
                      is_smooth ? "smooth" : "sharp", mode == LR_MODE_EXACT ? "exact" : "sampled", found.count,
                      found.difference / found.count, found.worst, found.bounds / found.count, found.of_bound,
                      sqrt(found.difference2 / found.size2));
        assert_all(found.count > 1000, found.of_bound > 0.05, found.bounds / found.count < 0.3);
    }
}

static void maps_are_within_their_bounds(void **state)
{
    check(true);
    check(false);
}

test_main("attenuation", CASE(maps_are_within_their_bounds))
