/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Phantoms: the rods of Derenzo, spheres, a point, and activity from images of labels. */
#include <lr/phantom.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "model/simulate/derenzo.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- rods of the Derenzo phantom --- */

/* Distances in rod diameters: between rods, and from the axis to the first row. */
#define SPACING 2.0
#define FIRST_ROW 1.5

const double lr_derenzo_diameters_mm[LR_DERENZO_SECTORS] = {1.2, 1.6, 2.4, 3.2, 4.0, 4.8};

/* Returns the number of rods of one sector, and writes them if `rods` is not NULL. */
static int fill_sector(int sector, double radius_mm, struct lr_rod *rods)
{
    int count = 0;
    /* Rows whose middle is within the circle. */
    const double diameter = lr_derenzo_diameters_mm[sector], angle = (60.0 * sector + 30.0) * LR_PI / 180.0;
    const double room = radius_mm / diameter - 0.5 - FIRST_ROW;
    const int rows = room < 0.0 ? 0 : 1 + (int)(room / (SPACING * sqrt(0.75)));

    for (int row = 0; row < rows; row++) {
        for (int place = 0; place <= row; place++) {
            /* The wedge's own frame has x along its middle line. */
            const double along = diameter * (FIRST_ROW + SPACING * sqrt(0.75) * row);
            const double across = diameter * SPACING * (place - 0.5 * row);
            const struct lr_rod rod = {
                .centre_mm = {along * cos(angle) - across * sin(angle), along * sin(angle) + across * cos(angle)},
                .radius_mm = 0.5 * diameter,
                .sector = sector};
            if (hypot(rod.centre_mm[0], rod.centre_mm[1]) + rod.radius_mm > radius_mm + 1e-9) continue;
            if (rods != NULL) rods[count] = rod;
            count++;
        }
    }
    return count;
}

struct lr_rod *lr_derenzo_rods(double radius_mm, int *num_rods, const lr_log *log)
{
    int count = 0;
    for (int sector = 0; sector < LR_DERENZO_SECTORS; sector++) count += fill_sector(sector, radius_mm, NULL);
    struct lr_rod *rods = lr_alloc(count, sizeof(*rods), "the phantom's rods", log);
    if (rods == NULL) return NULL;
    *num_rods = 0;
    for (int sector = 0; sector < LR_DERENZO_SECTORS; sector++)
        *num_rods += fill_sector(sector, radius_mm, rods + *num_rods);
    return rods;
}

#define DEFAULT_RADIUS_SHARE 0.46
#define DEFAULT_SUBSAMPLES 4
#define MAX_SUBSAMPLES 64
#define MOST_DERENZO_MM 1000 /* a radius that has about a quarter of a million rods */

/* --- shapes --- */

/* The image and the settings of a drawing. */
struct canvas {
    lr_image *image;
    double centre_mm[3]; /* centre of the grid */
    double radius_mm;    /* radius of the phantom */
    double contrast;     /* 0 = the phantom's own contrast */
    int subsamples;
    int shape, num_shapes; /* index of the shape being drawn, and number of shapes */
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

/* Number of sub-points of one voxel column's cross-section whose squared distance is at most `square`. */
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

/* Adds a cylinder along z that is as long as the grid: `activity` times the fraction of each voxel inside it. The
 * fraction is computed from subsamples^2 points in the xy plane, because it does not depend on z. Coordinates are in
 * mm, in the scanner's frame. */
static lr_status draw_cylinder(const struct canvas *canvas, const double centre_mm[2], double radius_mm,
                               double activity)
{
    const lr_grid *grid = &canvas->image->grid;
    const int subsamples = canvas->subsamples;
    const int64_t slice = (int64_t)grid->size[0] * grid->size[1];
    int begin[2], end[2];
    for (int axis = 0; axis < 2; axis++) touched(grid, axis, centre_mm[axis], radius_mm, &begin[axis], &end[axis]);
    for (int iy = begin[1]; iy < end[1]; iy++) {
        const double done = (double)(iy - begin[1]) / (end[1] - begin[1]);
        LR_TRY(lr_progress_report(canvas->progress, "drawing", canvas->shape + done, canvas->num_shapes));
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

/* Adds a sphere as draw_cylinder adds a cylinder, but with subsamples^3 points. Parts beyond the grid are not drawn. */
static lr_status draw_sphere(const struct canvas *canvas, const double centre_mm[3], double radius_mm, double activity)
{
    const lr_grid *grid = &canvas->image->grid;
    const int subsamples = canvas->subsamples;
    const double points = (double)subsamples * subsamples * subsamples, square = radius_mm * radius_mm;
    int begin[3], end[3];
    for (int axis = 0; axis < 3; axis++) touched(grid, axis, centre_mm[axis], radius_mm, &begin[axis], &end[axis]);
    for (int iz = begin[2]; iz < end[2]; iz++) {
        const double done = (double)(iz - begin[2]) / (end[2] - begin[2]);
        LR_TRY(lr_progress_report(canvas->progress, "drawing", canvas->shape + done, canvas->num_shapes));
        for (int iy = begin[1]; iy < end[1]; iy++) {
            for (int ix = begin[0]; ix < end[0]; ix++) {
                int inside = 0;
                for (int part = 0; part < subsamples; part++) {
                    const double along_z = square_to(grid, 2, iz, part, subsamples, centre_mm[2]);
                    if (along_z <= square)
                        inside += count_in_disc(grid, (const int[2]){ix, iy}, centre_mm, square - along_z, subsamples);
                }
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
    /* The smallest radius for which every sector has a rod. */
    const double least_mm = lr_derenzo_diameters_mm[LR_DERENZO_SECTORS - 1] * (FIRST_ROW + 0.5);
    if (canvas->radius_mm < least_mm) {
        return lr_error(canvas->log, LR_USAGE,
                        "the derenzo phantom needs a radius of at least %.3g mm for its largest rods and has %.4g mm: "
                        "use a wider grid",
                        least_mm, canvas->radius_mm);
    }
    if (canvas->radius_mm > MOST_DERENZO_MM) {
        return lr_error(canvas->log, LR_USAGE,
                        "the derenzo phantom has rods of %g to %g mm, too many of which fill a radius of %.6g mm (at "
                        "most %d mm): are the voxels in mm?",
                        lr_derenzo_diameters_mm[0], lr_derenzo_diameters_mm[LR_DERENZO_SECTORS - 1], canvas->radius_mm,
                        MOST_DERENZO_MM);
    }
    int num_rods = 0;
    struct lr_rod *rods = lr_derenzo_rods(canvas->radius_mm, &num_rods, canvas->log);
    if (rods == NULL) return LR_FAILED;
    /* Rods are one diameter apart. Three voxels from a rod to the next are needed to see the gap. */
    char thin[64] = "";
    const double wide_mm = fmax(canvas->image->grid.voxel_mm[0], canvas->image->grid.voxel_mm[1]);
    const double needed_mm = 3.0 / SPACING * wide_mm;
    for (int k = 0; k < LR_DERENZO_SECTORS && lr_derenzo_diameters_mm[k] < needed_mm - 1e-9; k++) {
        const size_t used = strlen(thin);
        snprintf(thin + used, sizeof(thin) - used, "%s%g", k > 0 ? ", " : "", lr_derenzo_diameters_mm[k]);
    }
    if (thin[0] != '\0') {
        lr_info(canvas->log, "voxels of %g mm cannot show rods of %s mm apart: voxels of %.2g mm would show all rods",
                wide_mm, thin, SPACING / 3.0 * lr_derenzo_diameters_mm[0]);
    }
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

/* Says if shapes are so narrow that there may be no voxel that lies within one. */
static void note_small(const struct canvas *canvas, const char *shapes, double diameter_mm, double voxel_mm)
{
    if (diameter_mm >= 2 * voxel_mm) return;
    lr_info(canvas->log, "%s of %.3g mm %s small beside voxels of %g mm: no voxel may have %s whole activity", shapes,
            diameter_mm, shapes[0] == 'a' ? "is" : "are", voxel_mm, shapes[0] == 'a' ? "its" : "their");
}

/* A body and six spheres of activity 1 on a circle in the grid's middle plane. */
struct spheres {
    double body_radius_mm, circle_mm; /* radii of body and circle that belong to diameters_mm */
    double contrast;
    double diameters_mm[6];
};

static const struct spheres six_sizes = {114.4, 0.5 * 114.4, 4.0, {10.0, 13.0, 17.0, 22.0, 28.0, 37.0}};
static const struct spheres six_equal = {175.0, 75.0, 6.0, {10.0, 10.0, 10.0, 10.0, 10.0, 10.0}};

static lr_status draw_body(const struct canvas *canvas, const struct spheres *spheres)
{
    const double scale = canvas->radius_mm / spheres->body_radius_mm;
    const double background = 1.0 / (canvas->contrast != 0.0 ? canvas->contrast : spheres->contrast);
    const double *voxel_mm = canvas->image->grid.voxel_mm;
    note_small(canvas, "spheres", scale * spheres->diameters_mm[0], fmax(voxel_mm[0], fmax(voxel_mm[1], voxel_mm[2])));
    struct canvas with_shape = *canvas;
    with_shape.num_shapes = 7;
    LR_TRY(draw_cylinder(&with_shape, canvas->centre_mm, canvas->radius_mm, background));
    for (int k = 0; k < 6; k++) {
        const double angle = k * LR_PI / 3.0, circle_mm = scale * spheres->circle_mm;
        const double centre_mm[3] = {canvas->centre_mm[0] + circle_mm * cos(angle),
                                     canvas->centre_mm[1] + circle_mm * sin(angle), canvas->centre_mm[2]};
        with_shape.shape = 1 + k;
        LR_TRY(draw_sphere(&with_shape, centre_mm, 0.5 * scale * spheres->diameters_mm[k], 1.0 - background));
    }
    return LR_OK;
}

/* Voxel nearest to a coordinate; the lower voxel if two are equally near. The result is not in 0 .. size - 1 if the
 * coordinate is beyond the grid. */
static double nearest_voxel(const lr_grid *grid, int axis, double coordinate_mm)
{
    return ceil((coordinate_mm - grid->origin_mm[axis]) / grid->voxel_mm[axis] - 0.5 - 1e-9);
}

/* Draws a voxel, or the voxels along z above and below it. at_mm: position of the voxel; NULL = the scanner's
 * centre. */
static lr_status draw_point(const struct canvas *canvas, const double *at_mm, bool is_line)
{
    const lr_grid *grid = &canvas->image->grid;
    const double zero[3] = {0, 0, 0}, *wanted = at_mm != NULL ? at_mm : zero;
    const int64_t slice = (int64_t)grid->size[0] * grid->size[1];
    bool holds = true;
    for (int k = 0; k < (is_line ? 2 : 3); k++) {
        const double index = nearest_voxel(grid, k, wanted[k]);
        holds = holds && index >= 0.0 && index < grid->size[k];
    }
    if (!holds && at_mm != NULL) {
        double low_mm[3], high_mm[3];
        for (int k = 0; k < 3; k++) {
            low_mm[k] = grid->origin_mm[k] - 0.5 * grid->voxel_mm[k];
            high_mm[k] = low_mm[k] + grid->size[k] * grid->voxel_mm[k];
        }
        return lr_error(canvas->log, LR_USAGE,
                        "the point (%g, %g, %g) mm lies outside of the grid, which has x from %g to %g, y from %g to "
                        "%g and z from %g to %g mm",
                        at_mm[0], at_mm[1], at_mm[2], low_mm[0], high_mm[0], low_mm[1], high_mm[1], low_mm[2],
                        high_mm[2]);
    }
    int64_t voxel[3] = {0};
    for (int k = 0; k < (is_line ? 2 : 3); k++)
        voxel[k] = (int64_t)nearest_voxel(grid, k, holds ? wanted[k] : canvas->centre_mm[k]);
    float *column = canvas->image->values + voxel[0] + grid->size[0] * voxel[1];
    for (int64_t z = 0; z < grid->size[2]; z++)
        if (is_line || z == voxel[2]) column[z * slice] = 1.0f;
    return LR_OK;
}

enum { DERENZO, SPHERES, SIX_SPHERES, CYLINDER, LINE, POINT };
static const char *const names[] = {"derenzo", "spheres", "six-spheres", "cylinder", "line", "point", NULL};

const char *const *lr_phantom_names(void)
{
    return names;
}

lr_image *lr_phantom_create_sized(size_t given_bytes, const lr_phantom_params *given, const lr_grid *grid)
{
    LR_TAKE(lr_phantom_params, params, given, given_bytes);
    const char *name = params->name != NULL ? params->name : "";
    char known[256] = "";
    int kind = 0;
    for (; names[kind] != NULL && strcmp(name, names[kind]) != 0; kind++)
        strcat(strcat(known, kind > 0 ? ", " : ""), names[kind]);
    if (names[kind] == NULL) {
        lr_log_write(params->log, LR_LOG_ERROR, LR_USAGE, "there is no phantom \"%s\": use one of %s", name, known);
        return NULL;
    }
    if (lr_grid_check(grid, params->log) != LR_OK) return NULL;
    const double extent = fmin(grid->size[0] * grid->voxel_mm[0], grid->size[1] * grid->voxel_mm[1]);
    struct canvas canvas = {
        .radius_mm = params->radius_mm != 0.0 ? params->radius_mm : DEFAULT_RADIUS_SHARE * extent,
        .contrast = params->contrast,
        .subsamples = params->subsamples != 0 ? params->subsamples : DEFAULT_SUBSAMPLES,
        .num_shapes = 1,
        .log = params->log,
        .progress = params->progress,
    };
    for (int k = 0; k < 3; k++)
        canvas.centre_mm[k] = grid->origin_mm[k] + 0.5 * (grid->size[k] - 1) * grid->voxel_mm[k];
    if (canvas.subsamples < 1 || canvas.subsamples > MAX_SUBSAMPLES) {
        lr_log_write(params->log, LR_LOG_ERROR, LR_USAGE,
                     "the phantom's subsamples are %d: they must lie between 1 and %d", canvas.subsamples,
                     MAX_SUBSAMPLES);
        return NULL;
    }
    if (canvas.contrast != 0.0 && !(canvas.contrast > 1.0 && isfinite(canvas.contrast))) {
        lr_log_write(params->log, LR_LOG_ERROR, LR_USAGE,
                     "a contrast of %g: spheres are hotter than the cylinder, above 1", canvas.contrast);
        return NULL;
    }
    if (!(canvas.radius_mm > 0.0) || canvas.radius_mm > 0.5 * extent * (1.0 + 1e-9)) {
        lr_log_write(
            params->log, LR_LOG_ERROR, LR_USAGE,
            "a phantom with a radius of %.4g mm does not fit the grid: it must be positive and at most %.4g mm",
            canvas.radius_mm, 0.5 * extent);
        return NULL;
    }

    if (!(params->value >= 0.0 && params->value <= (double)FLT_MAX)) {
        lr_log_write(params->log, LR_LOG_ERROR, LR_USAGE, "a value of %g: it must be a number that is not negative",
                     params->value);
        return NULL;
    }

    canvas.image = lr_image_create(grid, params->log);
    if (canvas.image == NULL) return NULL;
    if (kind == CYLINDER)
        note_small(&canvas, "a cylinder", 2 * canvas.radius_mm, fmax(grid->voxel_mm[0], grid->voxel_mm[1]));
    const lr_status status = kind == DERENZO       ? draw_derenzo(&canvas)
                             : kind == SPHERES     ? draw_body(&canvas, &six_sizes)
                             : kind == SIX_SPHERES ? draw_body(&canvas, &six_equal)
                             : kind == CYLINDER    ? draw_cylinder(&canvas, canvas.centre_mm, canvas.radius_mm, 1.0)
                                                   : draw_point(&canvas, params->at_mm, kind == LINE);
    if (status != LR_OK) {
        lr_image_destroy(canvas.image);
        return NULL;
    }
    const int64_t count = lr_grid_num_voxels(grid);
    for (int64_t k = 0; params->value > 0 && k < count; k++)
        canvas.image->values[k] = (float)(params->value * canvas.image->values[k]);
    return canvas.image;
}

/* --- phantoms from labels --- */

#define NUM_LABELS 5

/* Activity of air, soft tissue, white matter, grey matter, cerebrospinal fluid. */
static const double label_activity[NUM_LABELS] = {0.0, 0.1, 0.25, 1.0, 0.05};

/* The range of label voxels that a grid voxel covers along an axis, and the fraction of the grid voxel that each label
 * voxel fills. */
struct cover {
    int begin, end;
    double first, inner, last; /* fractions filled by voxel `begin`, by each voxel between, and by voxel `end - 1` */
};

static double share(const struct cover *cover, int index)
{
    return index == cover->begin ? cover->first : index == cover->end - 1 ? cover->last : cover->inner;
}

static double overlap(double low_a, double high_a, double low_b, double high_b)
{
    return fmax(0.0, fmin(high_a, high_b) - fmax(low_a, low_b));
}

static double mean_activity(const lr_image *labels, const struct cover *x, const struct cover *y, const struct cover *z)
{
    const lr_grid *grid = &labels->grid;
    double sum = 0.0;
    for (int iz = z->begin; iz < z->end; iz++) {
        for (int iy = y->begin; iy < y->end; iy++) {
            const float *line = labels->values + (int64_t)grid->size[0] * (iy + (int64_t)grid->size[1] * iz);
            double along_x = 0.0;
            for (int ix = x->begin; ix < x->end; ix++) along_x += share(x, ix) * label_activity[(int)line[ix]];
            sum += share(z, iz) * share(y, iy) * along_x;
        }
    }
    return sum;
}

lr_image *lr_phantom_from_labels(const lr_image *labels, const lr_grid *grid, const lr_log *log)
{
    const lr_grid *from = &labels->grid;
    if (lr_grid_check(from, log) != LR_OK) return NULL;
    const int64_t count = lr_grid_num_voxels(from);
    for (int64_t k = 0; k < count; k++) {
        const float label = labels->values[k];
        if (!(label >= 0.0f && label < NUM_LABELS) || label != floorf(label)) {
            lr_log_write(log, LR_LOG_ERROR, LR_BAD_INPUT,
                         "the label image has the value %.6g in voxel %lld: labels are 0 air, 1 soft tissue, 2 white "
                         "matter, 3 grey matter, 4 CSF",
                         (double)label, (long long)k);
            return NULL;
        }
    }

    struct cover *covers[3] = {NULL, NULL, NULL};
    lr_image *image = lr_image_create(grid, log);
    for (int axis = 0; image != NULL && axis < 3; axis++) {
        covers[axis] = lr_alloc(grid->size[axis], sizeof(**covers), "resampling", log);
        if (covers[axis] == NULL) {
            lr_image_destroy(image);
            image = NULL;
        }
        for (int k = 0; image != NULL && k < grid->size[axis]; k++) {
            /* Positions are in label voxels, from the low edge of the label image. */
            const double voxel_mm = from->voxel_mm[axis], size = grid->voxel_mm[axis] / voxel_mm;
            const double at_mm = grid->origin_mm[axis] + k * grid->voxel_mm[axis];
            const double centre = at_mm / voxel_mm + 0.5 * from->size[axis];
            const double low = centre - 0.5 * size, high = centre + 0.5 * size;
            struct cover *cover = &covers[axis][k];
            cover->begin = (int)fmin(fmax(floor(low), 0.0), from->size[axis]);
            cover->end = (int)fmin(fmax(ceil(high), 0.0), from->size[axis]);
            cover->first = overlap(low, high, cover->begin, cover->begin + 1.0) / size;
            cover->inner = 1.0 / size;
            cover->last = overlap(low, high, cover->end - 1.0, cover->end) / size;
        }
    }
    if (image != NULL) {
        float *value = image->values;
        for (int iz = 0; iz < grid->size[2]; iz++) {
            for (int iy = 0; iy < grid->size[1]; iy++)
                for (int ix = 0; ix < grid->size[0]; ix++)
                    *value++ = (float)mean_activity(labels, &covers[0][ix], &covers[1][iy], &covers[2][iz]);
        }
    }
    for (int axis = 0; axis < 3; axis++) free(covers[axis]);
    return image;
}
