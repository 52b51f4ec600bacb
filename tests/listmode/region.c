/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Lines near a set of voxels and far from it, against the distance from points along the lines. */
#include "listmode/region.h"
#include "../cases.h"

enum { SETS = 20, LINES = 30, POINTS = 60, NX = 9, NY = 150, NZ = 7 };

static double uniform(uint64_t *seed, double low, double high)
{
    return low + (high - low) * test_random(seed);
}

/* Distance from a point to the nearest voxel of the set. */
static double distance_to(const lr_grid *grid, const unsigned char *labels, const double point[3])
{
    double least = 1e30;
    for (int64_t v = 0; v < lr_grid_num_voxels(grid); v++) {
        double centre[3], square = 0;
        if (labels[v] != 1) continue;
        lr_grid_voxel_centre(grid, v, centre);
        for (int k = 0; k < 3; k++) {
            const double away = fmax(0, fabs(point[k] - centre[k]) - 0.5 * grid->voxel_mm[k]);
            square += away * away;
        }
        least = fmin(least, square);
    }
    return sqrt(least);
}

/* No line that is within the reach is left out, and few that are not are taken: of those that are farther than a cell
 * beside the reach none. */
static void test_no_line_is_missed(void **state)
{
    const lr_grid grid = lr_grid_centred((const int[3]){NX, NY, NZ}, (const double[3]){3, 0.5, 2});
    static unsigned char labels[NX * NY * NZ];
    uint64_t seed = 7;
    int near = 0, far = 0;
    for (int set = 0; set < SETS; set++) {
        struct lr_listmode_region region;
        const struct lr_listmode_labelled voxels = {
            .grids = {grid}, .num_grids = 1, .labels = labels, .label = 1, .last = {NX, NY, NZ}};
        for (int64_t v = 0; v < lr_grid_num_voxels(&grid); v++) labels[v] = 0;
        for (int k = 0; k < 8; k++) labels[(int64_t)uniform(&seed, 0, NX * NY * NZ)] = 1;
        assert_int_equal(lr_listmode_region_init(&region, &voxels, 2, NULL), LR_OK);
        const double cell = hypot(hypot(region.cell_mm[0], region.cell_mm[1]), region.cell_mm[2]);
        for (int line = 0; line < LINES; line++) {
            double ends[2][3], least = 1e30;
            const double reach_mm = uniform(&seed, 0, 4);
            for (int k = 0; k < 3; k++) {
                ends[0][k] = uniform(&seed, -40, 40);
                ends[1][k] = line % 3 == k ? ends[0][k] : uniform(&seed, -40, 40);
            }
            for (int k = 0; k <= POINTS; k++) {
                double point[3];
                for (int axis = 0; axis < 3; axis++)
                    point[axis] = ends[0][axis] + (ends[1][axis] - ends[0][axis]) * k / ((double)POINTS);
                least = fmin(least, distance_to(&grid, labels, point));
            }
            const bool is_near = lr_listmode_region_is_near(&region, ends[0], ends[1], reach_mm);
            const double spacing = 80 * sqrt(3) / ((double)POINTS);
            assert_true(is_near || least > reach_mm);
            assert_true(!is_near || least < reach_mm + 2.1 * cell + 0.5 * spacing);
            near += is_near;
            far += !is_near;
        }
        lr_listmode_region_finish(&region);
    }
    print_message("%d near, %d far\n", near, far);
    assert_true(near > 30 && far > 30);
}

test_main("region", CASE(test_no_line_is_missed))
