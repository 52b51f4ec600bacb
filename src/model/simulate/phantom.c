/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "model/simulate/derenzo.h"

#include <lr/phantom.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_RADIUS_SHARE 0.46
#define DEFAULT_SUBSAMPLES 4
#define MAX_SUBSAMPLES 64
/* The sphere phantom at its own size: the body's radius, twice that of the circle of spheres, and
 * the spheres' diameters, mm. */
#define SPHERE_BODY_RADIUS_MM 114.4
#define SPHERE_CONTRAST 4.0
static const double sphere_diameters_mm[6] = {10.0, 13.0, 17.0, 22.0, 28.0, 37.0};
/* The phantom of six equal spheres at its own size. */
#define SIX_BODY_RADIUS_MM 175.0
#define SIX_CIRCLE_MM 75.0
#define SIX_DIAMETER_MM 10.0
#define SIX_CONTRAST 6.0

static const double pi = 3.14159265358979323846;

/* --- shapes --- */

/* Where and how to draw. */
struct canvas {
    lr_image *image;
    double centre_mm[3]; /* of the grid */
    double radius_mm;    /* of the phantom */
    double contrast;     /* 0 = the phantom's own */
    int subsamples;
    int shape, num_shapes; /* the one that is drawn, and of how many */
    const lr_log *log;
    const lr_progress *progress;
};

/* Voxels along one axis that an interval centre - radius .. centre + radius touches. */
static void touched(const lr_grid *grid, int axis, double centre_mm, double radius_mm, int *begin, int *end)
{
    const double origin = grid->origin_mm[axis], size = grid->voxel_mm[axis];
    const double low = floor((centre_mm - radius_mm - origin) / size);
    const double high = ceil((centre_mm + radius_mm - origin) / size) + 1.0;
    *begin = (int)fmin(fmax(low, 0.0), grid->size[axis]);
    *end = (int)fmin(fmax(high, 0.0), grid->size[axis]);
}

/* Squared distance, along one axis, of a voxel's sub-point from a coordinate. */
static double square_to(const lr_grid *grid, int axis, int voxel, int part, int subsamples, double coordinate_mm)
{
    const double place = voxel + (part + 0.5) / subsamples - 0.5;
    const double away = grid->origin_mm[axis] + place * grid->voxel_mm[axis] - coordinate_mm;
    return away * away;
}

/* Sub-points of one voxel column's cross-section whose squared distance is at most `square`. */
static int count_in_disc(const lr_grid *grid, const int voxel[2], const double centre_mm[2], double square,
                         int subsamples)
{
    int inside = 0;
    for (int b = 0; b < subsamples; b++) {
        const double along_y = square_to(grid, 1, voxel[1], b, subsamples, centre_mm[1]);
        for (int a = 0; a < subsamples; a++)
            inside += square_to(grid, 0, voxel[0], a, subsamples, centre_mm[0]) + along_y <= square;
    }
    return inside;
}

static int count_in_sphere(const lr_grid *grid, const int voxel[3], const double centre_mm[3], double square,
                           int subsamples)
{
    int inside = 0;
    for (int c = 0; c < subsamples; c++) {
        const double along_z = square_to(grid, 2, voxel[2], c, subsamples, centre_mm[2]);
        inside += along_z <= square ? count_in_disc(grid, voxel, centre_mm, square - along_z, subsamples) : 0;
    }
    return inside;
}

static lr_status report_drawing(const struct canvas *canvas, int done, int total)
{
    return lr_progress_report(canvas->progress, "drawing", canvas->shape + (double)done / total, canvas->num_shapes);
}

/* Adds `activity` times the share of each voxel that lies in a disc in the xy plane, in all slices:
 * a cylinder along z as long as the grid. The share is counted over subsamples^2 points, which for
 * a shape without a z dependence is the same as subsamples^3. Millimetres, the scanner's frame. */
static lr_status draw_cylinder(const struct canvas *canvas, const double centre_mm[2], double radius_mm,
                               double activity)
{
    const lr_grid *grid = &canvas->image->grid;
    const int subsamples = canvas->subsamples;
    const int64_t slice = (int64_t)grid->size[0] * grid->size[1];
    int begin[2], end[2];
    for (int axis = 0; axis < 2; axis++) touched(grid, axis, centre_mm[axis], radius_mm, &begin[axis], &end[axis]);
    for (int iy = begin[1]; iy < end[1]; iy++) {
        LR_TRY(report_drawing(canvas, iy - begin[1], end[1] - begin[1]));
        for (int ix = begin[0]; ix < end[0]; ix++) {
            const int inside =
                count_in_disc(grid, (const int[2]){ix, iy}, centre_mm, radius_mm * radius_mm, subsamples);
            const double value = activity * inside / ((double)subsamples * subsamples);
            float *column = canvas->image->values + ix + (int64_t)grid->size[0] * iy;
            for (int iz = 0; inside > 0 && iz < grid->size[2]; iz++)
                column[iz * slice] = (float)(column[iz * slice] + value);
        }
    }
    return LR_OK;
}

/* As above for a sphere, over subsamples^3 points. Parts beyond the grid are not drawn. */
static lr_status draw_sphere(const struct canvas *canvas, const double centre_mm[3], double radius_mm, double activity)
{
    const lr_grid *grid = &canvas->image->grid;
    const int subsamples = canvas->subsamples;
    const double points = (double)subsamples * subsamples * subsamples;
    int begin[3], end[3];
    for (int axis = 0; axis < 3; axis++) touched(grid, axis, centre_mm[axis], radius_mm, &begin[axis], &end[axis]);
    for (int iz = begin[2]; iz < end[2]; iz++) {
        LR_TRY(report_drawing(canvas, iz - begin[2], end[2] - begin[2]));
        for (int iy = begin[1]; iy < end[1]; iy++) {
            for (int ix = begin[0]; ix < end[0]; ix++) {
                const int inside =
                    count_in_sphere(grid, (const int[3]){ix, iy, iz}, centre_mm, radius_mm * radius_mm, subsamples);
                float *value = canvas->image->values + ix + (int64_t)grid->size[0] * (iy + (int64_t)grid->size[1] * iz);
                *value = (float)(*value + activity * inside / points);
            }
        }
    }
    return LR_OK;
}

/* --- phantoms --- */

static lr_status draw_derenzo(const struct canvas *canvas)
{
    if (canvas->radius_mm < lr_derenzo_least_radius_mm()) {
        return lr_error(canvas->log, LR_USAGE,
                        "the derenzo phantom needs a radius of at least %.3g mm for its largest "
                        "rods and has %.4g mm: use a wider grid",
                        lr_derenzo_least_radius_mm(), canvas->radius_mm);
    }
    int num_rods = 0;
    struct lr_rod *rods = lr_derenzo_rods(canvas->radius_mm, &num_rods, canvas->log);
    if (rods == NULL) return LR_FAILED;
    struct canvas with_rod = *canvas;
    with_rod.num_shapes = num_rods;
    lr_status status = LR_OK;
    for (int k = 0; k < num_rods && status == LR_OK; k++) {
        with_rod.shape = k;
        const double centre_mm[2] = {canvas->centre_mm[0] + rods[k].centre_mm[0],
                                     canvas->centre_mm[1] + rods[k].centre_mm[1]};
        status = draw_cylinder(&with_rod, centre_mm, rods[k].radius_mm, 1.0);
    }
    free(rods);
    return status;
}

/* A body and six spheres of activity 1 on a circle in the grid's middle plane. */
struct spheres {
    double body_radius_mm, circle_mm; /* the phantom's own size, to which the diameters belong */
    double contrast;
    double diameters_mm[6];
};

static lr_status draw_body(const struct canvas *canvas, const struct spheres *spheres)
{
    const double scale = canvas->radius_mm / spheres->body_radius_mm;
    const double background = 1.0 / (canvas->contrast != 0.0 ? canvas->contrast : spheres->contrast);
    struct canvas with_shape = *canvas;
    with_shape.num_shapes = 7;
    LR_TRY(draw_cylinder(&with_shape, canvas->centre_mm, canvas->radius_mm, background));
    for (int k = 0; k < 6; k++) {
        const double angle = k * pi / 3.0, circle_mm = scale * spheres->circle_mm;
        const double centre_mm[3] = {canvas->centre_mm[0] + circle_mm * cos(angle),
                                     canvas->centre_mm[1] + circle_mm * sin(angle), canvas->centre_mm[2]};
        with_shape.shape = 1 + k;
        LR_TRY(draw_sphere(&with_shape, centre_mm, 0.5 * scale * spheres->diameters_mm[k], 1.0 - background));
    }
    return LR_OK;
}

static lr_status draw_spheres(const struct canvas *canvas)
{
    struct spheres spheres = {
        .body_radius_mm = SPHERE_BODY_RADIUS_MM, .circle_mm = 0.5 * SPHERE_BODY_RADIUS_MM, .contrast = SPHERE_CONTRAST};
    memcpy(spheres.diameters_mm, sphere_diameters_mm, sizeof(spheres.diameters_mm));
    return draw_body(canvas, &spheres);
}

static lr_status draw_six_spheres(const struct canvas *canvas)
{
    struct spheres spheres = {
        .body_radius_mm = SIX_BODY_RADIUS_MM, .circle_mm = SIX_CIRCLE_MM, .contrast = SIX_CONTRAST};
    for (int k = 0; k < 6; k++) spheres.diameters_mm[k] = SIX_DIAMETER_MM;
    return draw_body(canvas, &spheres);
}

/* Voxel nearest a coordinate, the lower one on a tie; not in 0 .. size - 1 when beyond it. */
static double nearest_voxel(const lr_grid *grid, int axis, double coordinate_mm)
{
    return ceil((coordinate_mm - grid->origin_mm[axis]) / grid->voxel_mm[axis] - 0.5 - 1e-9);
}

static lr_status draw_point(const struct canvas *canvas)
{
    const lr_grid *grid = &canvas->image->grid;
    bool holds = true;
    for (int k = 0; k < 3; k++) {
        const double index = nearest_voxel(grid, k, 0.0);
        holds = holds && index >= 0.0 && index < grid->size[k];
    }
    int64_t row = 0;
    for (int k = 2; k >= 0; k--) {
        const double at_mm = holds ? 0.0 : canvas->centre_mm[k];
        row = row * grid->size[k] + (int64_t)nearest_voxel(grid, k, at_mm);
    }
    canvas->image->values[row] = 1.0f;
    return LR_OK;
}

static const char *const names[] = {"derenzo", "spheres", "six-spheres", "point", NULL};

static lr_status (*const drawings[])(const struct canvas *canvas) = {draw_derenzo, draw_spheres, draw_six_spheres,
                                                                     draw_point};

const char *const *lr_phantom_names(void)
{
    return names;
}

/* Index among names, or -1, logged. */
static int find_name(const char *name, const lr_log *log)
{
    char known[256] = "";
    for (int k = 0; names[k] != NULL; k++) {
        if (name != NULL && strcmp(name, names[k]) == 0) return k;
        strcat(strcat(known, k > 0 ? ", " : ""), names[k]);
    }
    lr_log_write(log, LR_LOG_ERROR, LR_USAGE, "there is no phantom \"%s\": use one of %s", name ? name : "", known);
    return -1;
}

/* Fills in defaults and checks that the phantom fits the grid. */
static lr_status prepare(struct canvas *canvas, const lr_phantom_params *params, const lr_grid *grid)
{
    LR_TRY(lr_grid_check(grid, params->log));
    for (int k = 0; k < 3; k++)
        canvas->centre_mm[k] = grid->origin_mm[k] + 0.5 * (grid->size[k] - 1) * grid->voxel_mm[k];
    const double extent = fmin(grid->size[0] * grid->voxel_mm[0], grid->size[1] * grid->voxel_mm[1]);
    canvas->log = params->log;
    canvas->progress = params->progress;
    canvas->contrast = params->contrast;
    canvas->subsamples = params->subsamples != 0 ? params->subsamples : DEFAULT_SUBSAMPLES;
    canvas->radius_mm = params->radius_mm != 0.0 ? params->radius_mm : DEFAULT_RADIUS_SHARE * extent;
    if (canvas->subsamples < 1 || canvas->subsamples > MAX_SUBSAMPLES) {
        return lr_error(params->log, LR_USAGE, "the phantom's subsamples are %d: they must lie between 1 and %d",
                        canvas->subsamples, MAX_SUBSAMPLES);
    }
    if (canvas->contrast != 0.0 && !(canvas->contrast > 1.0 && isfinite(canvas->contrast))) {
        return lr_error(params->log, LR_USAGE, "a contrast of %g: spheres are hotter than the cylinder, above 1",
                        canvas->contrast);
    }
    if (!(canvas->radius_mm > 0.0) || canvas->radius_mm > 0.5 * extent * (1.0 + 1e-9)) {
        return lr_error(params->log, LR_USAGE,
                        "a phantom with a radius of %.4g mm does not fit the grid: it must be "
                        "positive and at most %.4g mm",
                        canvas->radius_mm, 0.5 * extent);
    }
    return LR_OK;
}

lr_image *lr_phantom_create(const lr_phantom_params *params, const lr_grid *grid)
{
    struct canvas canvas = {0};
    const int index = find_name(params->name, params->log);
    if (index < 0 || prepare(&canvas, params, grid) != LR_OK) return NULL;
    canvas.image = lr_image_create(grid, params->log);
    if (canvas.image != NULL && drawings[index](&canvas) != LR_OK) {
        lr_image_destroy(canvas.image);
        return NULL;
    }
    return canvas.image;
}
