/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Tests of the camera, of what the mouse picks, and of the places of windows in a sheet. */
#include "cases.h"

#include "viewer/frame/camera.h"
#include "viewer/study/voxel.h"

enum { CASES = 300 };

static double between(uint64_t *seed, double low, double high)
{
    return low + (high - low) * test_random(seed);
}

/* A view of a random camera, and a random point that the camera may see. */
static struct camera_view some_view(uint64_t *seed, double aspect, double point[3])
{
    struct camera camera;
    struct camera_view view;
    camera_fit(&camera, 200.0, 1.3);
    camera_orbit(&camera, between(seed, -3.0, 3.0), between(seed, -0.8, 0.8));
    camera_pan(&camera, between(seed, -0.3, 0.3), between(seed, -0.3, 0.3));
    camera_zoom(&camera, between(seed, -5.0, 10.0));
    camera_view(&camera, aspect, &view);
    for (int k = 0; k < 3; k++) point[k] = between(seed, -150.0, 150.0);
    return view;
}

/* --- the camera --- */

/* A point is projected to a place; the line of sight through this place passes through the point. */
static void rays_meet_what_is_projected(void **state)
{
    uint64_t seed = test_seed();
    int seen = 0;
    for (int n = 0; n < CASES; n++) {
        double place[2], way[3], point[3], along = 0.0, length = 0.0;
        const struct camera_view view = some_view(&seed, between(&seed, 0.2, 4.0), point);
        if (!camera_project(&view, point, place)) continue;
        camera_ray(&view, place, way);
        for (int k = 0; k < 3; k++) {
            along += way[k] * (point[k] - (double)view.eye_mm[k]);
            length += way[k] * way[k];
        }
        for (int k = 0; k < 3; k++) {
            const double at = (double)view.eye_mm[k] + along / length * way[k];
            assert_true(fabs(at - point[k]) < 0.02); /* axes of the view are floats */
        }
        seen++;
    }
    assert_true(seen > CASES / 2);
}

/* The matrix for the shaders projects points to the same places as camera_project. */
static void matrix_agrees(void **state)
{
    uint64_t seed = test_seed();
    for (int n = 0; n < CASES; n++) {
        double place[2], point[3], clip[4];
        const struct camera_view view = some_view(&seed, 1.7, point);
        for (int r = 0; r < 4; r++) {
            clip[r] = (double)view.clip_of_world[12 + r];
            for (int k = 0; k < 3; k++) clip[r] += (double)view.clip_of_world[4 * k + r] * point[k];
        }
        if (!camera_project(&view, point, place) || clip[3] < 5.0) continue;
        assert_true(fabs(0.5 + 0.5 * clip[0] / clip[3] - place[0]) < 1e-4);
        assert_true(fabs(0.5 - 0.5 * clip[1] / clip[3] - place[1]) < 1e-4);
        assert_true(clip[2] <= clip[3]); /* not beyond the far plane */
    }
}

/* The view shows a whole sphere of this radius, which fills most of the shorter side. */
static void fit_shows_all(void **state)
{
    static const double aspects[] = {0.25, 0.77, 1.0, 1.6, 8.0};
    for (size_t n = 0; n < sizeof(aspects) / sizeof(aspects[0]); n++) {
        struct camera camera;
        struct camera_view view;
        camera_fit(&camera, 300.0, aspects[n]);
        camera_view(&camera, aspects[n], &view);
        const double angle = asin(300.0 / camera.distance_mm);
        const double half = fmin(aspects[n], 1.0) * view.tangent;
        assert_all(tan(angle) < half, tan(angle) > 0.85 * half);
    }
}

static void axes_are_looked_along(void **state)
{
    for (int axis = 0; axis < 3; axis++) {
        struct camera camera;
        struct camera_view view;
        camera_fit(&camera, 100.0, 1.0);
        camera_along(&camera, axis);
        camera_view(&camera, 1.0, &view);
        /* from the side, from the front, from above */
        assert_true((axis == 1 ? -1.0 : 1.0) * (double)view.forward[axis] < -0.99999);
    }
}

/* After extreme zooms, orbits and shifts the camera still has a valid view. */
static void extremes_are_held(void **state)
{
    struct camera camera;
    struct camera_view view;
    camera_fit(&camera, 100.0, 1.0);
    for (int n = 0; n < 50; n++) {
        camera_zoom(&camera, n % 2 ? 1e6 : -1e6);
        camera_orbit(&camera, 1e5, n % 3 ? 1e5 : -1e5);
        camera_pan(&camera, 1e4, -1e4);
        camera_view(&camera, 1e-3, &view);
        for (int k = 0; k < 16; k++) assert_true(isfinite(view.clip_of_world[k]));
        assert_true(fabs(camera.height_deg) < 90.0);
    }
}

/* --- what the mouse picks --- */

/* Two modules of 3 x 2 crystals stand one behind the other and face -x; a third faces +x. Rays come from -x. */
static void nearest_front_is_picked(void **state)
{
    static const double x_mm[3] = {50.0, 80.0, 20.0};
    lr_module modules[3];
    for (int m = 0; m < 3; m++) {
        modules[m] = filled(lr_module, .centre_mm = {x_mm[m], 0.0, 0.0}, .normal = {m == 2 ? 1.0 : -1.0, 0.0, 0.0},
                            .u = {0.0, 1.0, 0.0}, .v = {0.0, 0.0, 1.0}, .crystals = {3, 2}, .pitch_mm = {4.0, 5.0},
                            .face_mm = {3.0, 4.5});
    }
    const lr_scanner scanner = {.modules = modules, .num_modules = 3};
    const struct {
        double y, z;
        int module, p, q;
    } cases[] = {
        {0.0, 2.5, 0, 1, 1},  {-4.0, -2.5, 0, 0, 0},   {5.4, 4.7, 0, 2, 1},   {2.0, 2.5, 0, -1, 1},
        {0.0, 0.0, 0, 1, -1}, {5.99, 4.99, 0, -1, -1}, {6.01, 0.0, -1, 0, 0}, {0.0, -5.01, -1, 0, 0},
    };
    for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
        const struct pick_ray ray = {{-10.0, cases[n].y, cases[n].z}, {2.0, 0.0, 0.0}};
        const struct pick_hit hit = pick_module(&scanner, &ray);
        assert_int_equal(hit.module, cases[n].module);
        if (hit.module >= 0) {
            assert_ints(hit.crystal[0], cases[n].p, hit.crystal[1], cases[n].q);
            assert_close(hit.share, 30.0, 1e-12);
            assert_close(hit.point_mm[0], 50.0, 1e-12);
        }
    }
    /* a ray that starts between the two modules hits the second; a ray that points away hits none */
    const struct pick_ray behind = {{60.0, 0.0, 2.5}, {1.0, 0.0, 0.0}}, away = {{60.0, 0.0, 2.5}, {0.0, 0.0, 1.0}};
    assert_ints(pick_module(&scanner, &behind).module, 1, pick_module(&scanner, &away).module, -1);
    assert_int_equal(pick_module(NULL, &away).module, -1);
}

static void voxels_hold_their_points(void **state)
{
    const lr_grid grid = {{4, 3, 2}, {2.0, 3.0, 4.0}, {-3.0, -3.0, -2.0}};
    uint64_t seed = test_seed();
    int inside = 0;
    for (int n = 0; n < CASES; n++) {
        double point[3];
        int voxel[3];
        bool is_in = true;
        for (int k = 0; k < 3; k++) {
            point[k] = between(&seed, -8.0, 8.0);
            const double low = grid.origin_mm[k] - 0.5 * grid.voxel_mm[k];
            is_in = is_in && point[k] > low && point[k] < low + grid.size[k] * grid.voxel_mm[k];
        }
        assert_int_equal(pick_voxel(&grid, point, voxel), is_in);
        for (int k = 0; k < 3 && is_in; k++) {
            const double centre = grid.origin_mm[k] + voxel[k] * grid.voxel_mm[k];
            assert_true(fabs(point[k] - centre) <= 0.5 * grid.voxel_mm[k]);
        }
        inside += is_in;
    }
    assert_true(inside > 10);
    assert_false(pick_voxel(&grid, (double[3]){NAN, 0.0, 0.0}, (int[3]){0}));
}

static void slices_are_met(void **state)
{
    const lr_grid grid = {{4, 4, 4}, {2.0, 2.0, 2.0}, {-3.0, -3.0, -3.0}};
    const struct pick_ray ray = {{0.0, 0.0, 20.0}, {0.1, 0.0, -1.0}};
    double point[3];
    assert_true(pick_slice(&grid, &ray, 2, 1.0, point));
    assert_close(point[0], 1.9, 1e-12);
    assert_close(point[2], 1.0, 1e-12);
    assert_false(pick_slice(&grid, &ray, 2, 30.0, point)); /* behind the eye */
    assert_false(pick_slice(&grid, &ray, 1, 1.0, point));  /* along the slice */
    const struct pick_ray beside = {{30.0, 0.0, 20.0}, {0.0, 0.0, -1.0}};
    assert_false(pick_slice(&grid, &beside, 2, 1.0, point));
}

/* --- sheets --- */

/* The middle of each pixel of a window is traced back to this pixel; gaps and places outside belong to no pixel. */
static void sheets_lead_back(void **state)
{
    static const struct sheet sheets[] = {
        {.size = {12, 8}, .tile = {12, 8}, .columns = 1, .num_windows = 1},
        {.size = {3 * 6 - 1, 2 * 9 - 1}, .tile = {5, 8}, .columns = 3, .num_windows = 5},
    };
    for (size_t n = 0; n < sizeof(sheets) / sizeof(sheets[0]); n++) {
        const struct sheet *sheet = &sheets[n];
        int window, place[2];
        for (int w = 0; w < sheet->num_windows; w++) {
            for (int k = 0; k < sheet->tile[0] * sheet->tile[1]; k++) {
                const int x = k % sheet->tile[0], y = k / sheet->tile[0];
                double at[2];
                sheet_corners(sheet, w, (double[2]){x + 0.5, y + 0.5}, at);
                assert_true(sheet_pixel(sheet, at, &window, place));
                assert_ints(window, w, place[0], x, place[1], y);
            }
        }
        const double beyond[][2] = {{-0.01, 0.5}, {0.5, -0.01}, {1.01, 0.5}, {0.5, 1.01}};
        for (int k = 0; k < 4; k++) assert_false(sheet_pixel(sheet, beyond[k], &window, place));
    }
    int window, place[2];
    const double gap[2] = {5.5 / 17.0, 0.1}, missing[2] = {0.95, 0.95};
    assert_false(sheet_pixel(&sheets[1], gap, &window, place));
    assert_false(sheet_pixel(&sheets[1], missing, &window, place));
}

/* In a pane, the place of a point gives the point again, and agrees with the shaders' matrix. The patient's right is at
 * the left; in sagittal panes the front is at the left. */
static void panes_lead_back(void **state)
{
    uint64_t seed = test_seed();
    for (int n = 0; n < CASES; n++) {
        struct flat_view flat = {.axis = n % 3, .pixel_mm = between(&seed, 0.05, 3.0)};
        struct camera_view view;
        double point[3], back[3], place[2], beside[2];
        for (int c = 0; c < 2; c++) flat.size[c] = floor(between(&seed, 10.0, 900.0));
        for (int k = 0; k < 3; k++) {
            flat.middle_mm[k] = between(&seed, -50.0, 50.0);
            point[k] = between(&seed, -200.0, 200.0);
        }
        flat_place(&flat, point, place);
        flat_point(&flat, place, point[flat.axis], back);
        flat_camera(&flat, &view);
        for (int k = 0; k < 3; k++) assert_true(fabs(back[k] - point[k]) < 1e-9);
        for (int c = 0; c < 2; c++) {
            double clip = (double)view.clip_of_world[12 + c];
            for (int k = 0; k < 3; k++) clip += (double)view.clip_of_world[4 * k + c] * point[k];
            const double wanted = (c == 0 ? 1.0 : -1.0) * (2.0 * place[c] / flat.size[c] - 1.0);
            assert_true(fabs(clip - wanted) < 1e-3 * fmax(1.0, fabs(wanted)));
        }
        point[flat.axis == 0 ? 1 : 0] += 1.0; /* to the front, or to the right */
        flat_place(&flat, point, beside);
        assert_true(beside[0] < place[0] && beside[1] == place[1]);
    }
}

test_main("viewer_camera", cmocka_unit_test(rays_meet_what_is_projected), cmocka_unit_test(matrix_agrees),
          cmocka_unit_test(fit_shows_all), cmocka_unit_test(axes_are_looked_along), cmocka_unit_test(extremes_are_held),
          cmocka_unit_test(nearest_front_is_picked), cmocka_unit_test(voxels_hold_their_points),
          cmocka_unit_test(slices_are_met), cmocka_unit_test(sheets_lead_back), cmocka_unit_test(panes_lead_back))
