/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Views, histo-images and look-up tables. Views are directions of lines of response (paper 1 of lr/direct.h, section
 * 6.1: 40 intervals in azimuth, 3 in co-polar angle). Histo-images have one image for each view. The look-up tables of
 * a view are LORmap, mSR and mSRval (section 4.1). */
#include "direct/tables.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "base/vec.h"
#include "direct/backend.h"

#include <lr/direct.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int usual_azimuths = 40, usual_tilts = 3;
static const double usual_acceptance_deg = 10.0;
static const int64_t most_views = 65536;

/* Sine and cosine of an angle in degrees. They are exact for multiples of 90, so that voxels on the border between two
 * identifiers stay on the border. */
static void sine_cosine(double angle_deg, double *sine, double *cosine)
{
    const double quarters = nearbyint(angle_deg / 90.0);
    const double rest = (angle_deg - 90.0 * quarters) * LR_DEGREE;
    const double s = sin(rest), c = cos(rest);
    const int quarter = (int)(quarters - 4.0 * floor(quarters / 4.0));
    *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
    *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}

void lr_view_axes(const lr_view *view, double axes[3][3])
{
    double sf, cf, st, ct;
    sine_cosine(view->azimuth_deg, &sf, &cf);
    sine_cosine(view->tilt_deg, &st, &ct);
    const double tof[3] = {ct * cf, ct * sf, st};
    const double radial[3] = {-sf, cf, 0};
    const double axial[3] = {-st * cf, -st * sf, ct};
    for (int k = 0; k < 3; k++) {
        axes[0][k] = tof[k];
        axes[1][k] = radial[k];
        axes[2][k] = axial[k];
    }
}

lr_status lr_view_set_complete(const lr_view_set *set, lr_view_set *complete, const lr_log *log)
{
    *complete = *set;
    complete->azimuths = set->azimuths == 0 ? usual_azimuths : set->azimuths;
    complete->tilts = set->tilts == 0 ? usual_tilts : set->tilts;
    complete->acceptance_deg = set->acceptance_deg == 0 ? usual_acceptance_deg : set->acceptance_deg;
    if (complete->azimuths < 1 || complete->tilts < 1 || (int64_t)complete->azimuths * complete->tilts > most_views) {
        return lr_error(log, LR_USAGE,
                        "%d x %d views: at least one azimuth and one tilt are needed, and at most %lld views",
                        complete->azimuths, complete->tilts, (long long)most_views);
    }
    if (!(complete->acceptance_deg > 0 && complete->acceptance_deg < 90)) {
        return lr_error(log, LR_USAGE, "an axial acceptance of %g degrees: it must be above 0 and below 90",
                        complete->acceptance_deg);
    }
    return LR_OK;
}

int lr_view_set_count(const lr_view_set *set)
{
    return set->azimuths * set->tilts;
}

lr_view lr_view_set_at(const lr_view_set *set, int index)
{
    const int azimuth = index % set->azimuths, tilt = index / set->azimuths;
    return (lr_view){180.0 * azimuth / set->azimuths, set->acceptance_deg * ((2.0 * tilt + 1.0) / set->tilts - 1.0)};
}

/* Finds the view of a line. A line on a border belongs to the interval above the border, in spite of rounding. Rings of
 * crystals have many such lines. */
int lr_view_set_find(const lr_view_set *set, const double direction[3])
{
    const double across = hypot(direction[0], direction[1]);
    double tilt_deg = atan2(direction[2], across) / LR_DEGREE;
    double turns = atan2(direction[1], direction[0]) / LR_DEGREE / 180.0 * set->azimuths;
    if (fabs(tilt_deg) > lr_view_set_border_deg(set, set->azimuths + set->tilts)) return -1;
    /* An interval's azimuth is the middle of the interval. If the azimuth is out of range, the line is taken in the
     * opposite direction. */
    int azimuth = (int)floor(turns + 0.5 + LR_DIRECT_TIE);
    while (azimuth < 0 || azimuth >= set->azimuths) {
        azimuth += azimuth < 0 ? set->azimuths : -set->azimuths;
        tilt_deg = -tilt_deg;
    }
    const double share = (tilt_deg / set->acceptance_deg + 1.0) / 2.0 * set->tilts;
    const int tilt = (int)fmin(fmax(floor(share + LR_DIRECT_TIE), 0), set->tilts - 1);
    return tilt * set->azimuths + azimuth;
}

double lr_view_set_border_deg(const lr_view_set *set, int border)
{
    const int tilt = border - set->azimuths;
    if (tilt < 0) return 180.0 * (border - 0.5 - LR_DIRECT_TIE) / set->azimuths;
    const double tie = tilt < set->tilts ? -LR_DIRECT_TIE : LR_DIRECT_TIE;
    return set->acceptance_deg * (2.0 * (tilt + tie) / set->tilts - 1.0);
}

void lr_view_set_order(const lr_view_set *set, int *order)
{
    int bits = 1; /* smallest power of two that is at least the number of azimuths */
    while (bits < set->azimuths) bits *= 2;
    for (int round = 0; round < set->tilts; round++) {
        /* Lists azimuths in the order of their bit-reversed numbers. */
        for (int counter = 0, k = 0; counter < bits; counter++) {
            int azimuth = 0;
            for (int bit = 1, mirror = bits / 2; mirror > 0; bit *= 2, mirror /= 2)
                azimuth += (counter & bit) ? mirror : 0;
            if (azimuth < set->azimuths) *order++ = (round + k++) % set->tilts * set->azimuths + azimuth;
        }
    }
}

/* --- histo-images --- */

lr_histo_images *lr_histo_images_create(const lr_grid *grid, const lr_view *views, int num_views, const lr_log *log)
{
    if (lr_grid_check(grid, log) != LR_OK) return NULL;
    lr_histo_images *histo = lr_alloc(1, sizeof(*histo), "histo-images", log);
    if (histo == NULL) return NULL;
    histo->grid = *grid;
    histo->num_views = num_views;
    histo->views = lr_alloc(num_views, sizeof(*histo->views), "histo-images", log);
    histo->values = lr_alloc(num_views * lr_grid_num_voxels(grid), sizeof(*histo->values), "histo-images", log);
    if (histo->views == NULL || histo->values == NULL) {
        lr_histo_images_destroy(histo);
        return NULL;
    }
    memcpy(histo->views, views, (size_t)num_views * sizeof(*views));
    return histo;
}

void lr_histo_images_destroy(lr_histo_images *histo)
{
    if (histo != NULL) lr_free_all(histo->values, histo->views, histo);
}

int lr_direct_count_rows(const struct lr_direct_shape *shape)
{
    const lr_resolution *resolution = &shape->resolution;
    const bool is_one = resolution->model == LR_RADIAL_INVARIANT && lr_resolution_is_symmetric(resolution);
    return is_one ? 1 : shape->info.num_kernels;
}

void lr_direct_describe_kernel(const struct lr_direct_shape *shape, int kernel, double described[2])
{
    described[0] =
        lr_sigma_of(lr_resolution_radial_mm(&shape->resolution, lr_direct_kernel_distance_mm(shape, kernel)));
    described[1] = lr_direct_kernel_is_mirrored(shape, kernel) ? -1 : 1;
}

int lr_direct_count_samples(const struct lr_direct_shape *shape)
{
    const lr_resolution *resolution = &shape->resolution;
    return resolution->model == LR_RADIAL_MEASURED ? resolution->measured->num_offsets : 0;
}

void lr_direct_list_samples(const struct lr_direct_shape *shape, float *samples)
{
    const lr_radial_profiles *measured = shape->resolution.measured;
    const int64_t count = lr_direct_count_samples(shape);
    for (int64_t k = 0; k < count * shape->info.num_kernels; k++) {
        samples[k] =
            (float)lr_radial_profiles_at(measured, lr_direct_kernel_distance_mm(shape, (int)(k / count)),
                                         measured->first_offset_mm + (double)(k % count) * measured->offset_step_mm);
    }
}

struct lr_direct_tables {
    struct lr_direct_shape shape;
    int32_t *map;   /* [ny][nx] */
    double *values; /* [num_kernels][num_offsets] */
};

static const int most_identifiers = 32767;
static const double usual_support = 9.0;

/* --- the shape --- */

static int identifier_of(double distance_mm, double epsilon_mm)
{
    return (int)floor(distance_mm / epsilon_mm + LR_DIRECT_TIE);
}

static bool is_within(const struct lr_direct_shape *shape, int x, int y, int z)
{
    const double *voxel_mm = shape->info.grid.voxel_mm;
    const double d[3] = {x * voxel_mm[0], y * voxel_mm[1], z * voxel_mm[2]};
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        const double part = vec_dot(d, shape->axes[i]) / shape->info.sigma_mm[i];
        sum += part * part;
    }
    return sum <= shape->info.support * (1 + LR_DIRECT_TIE);
}

/* Finds the integers t in -half .. half with a t^2 + 2 b t + c <= most; abc: {a, b, c}. Rounding may add one integer at
 * each end. range[0] > range[1] if there is no such integer. */
static void find_range(const double abc[3], double most, int half, int range[2])
{
    const double slack = 1e-4; /* larger than rounding errors */
    const double middle = -abc[1] / abc[0];
    const double square = (most - abc[2]) / abc[0] + middle * middle;
    const double width = sqrt(fmax(square, 0)) + slack;
    range[0] = square < -slack ? 1 : (int)fmax(ceil(middle - width), -half);
    range[1] = square < -slack ? 0 : (int)fmin(floor(middle + width), half);
}

/* Lists mSR: the offsets within the ellipsoid, sorted by y, then x, then z. */
static lr_status list_offsets(struct lr_direct_shape *shape, const lr_log *log)
{
    lr_direct_tables_info *info = &shape->info;
    const double *voxel_mm = info->grid.voxel_mm;
    const int *half = info->half;
    int64_t room = 0;

    /* form[i][j], i <= j: the ellipsoid's sum of squares as a quadratic form in integer offsets, up to rounding.
     * across: the minimum of this form over z, as coefficients xx, xy and yy of a form in x and y. */
    double form[3][3] = {{0}};
    for (int i = 0; i < 3; i++) {
        for (int j = i; j < 3; j++) {
            for (int k = 0; k < 3; k++) {
                const double *axis = shape->axes[k];
                const double sigma_mm = info->sigma_mm[k];
                form[i][j] += axis[i] * voxel_mm[i] / sigma_mm * (axis[j] * voxel_mm[j] / sigma_mm);
            }
        }
    }
    const double across[3] = {form[0][0] - form[0][2] * form[0][2] / form[2][2],
                              form[0][1] - form[0][2] * form[1][2] / form[2][2],
                              form[1][1] - form[1][2] * form[1][2] / form[2][2]};

    for (int y = -half[1]; y <= half[1]; y++) {
        int columns[2], slices[2];
        find_range((const double[3]){across[0], across[1] * y, across[2] * y * y}, info->support, half[0], columns);
        for (int x = columns[0]; x <= columns[1]; x++) {
            /* The offsets of a column are consecutive. */
            const double abc[3] = {form[2][2], form[0][2] * x + form[1][2] * y,
                                   form[0][0] * x * x + 2 * form[0][1] * x * y + form[1][1] * y * y};
            find_range(abc, info->support, half[2], slices);
            while (slices[0] <= slices[1] && !is_within(shape, x, y, slices[0])) slices[0]++;
            while (slices[0] <= slices[1] && !is_within(shape, x, y, slices[1])) slices[1]--;
            LR_TRY(lr_grow(&shape->offsets, &room, info->num_offsets + 2 * half[2] + 1,
                           &(struct lr_items){sizeof(*shape->offsets), "mSR", log}));
            for (int z = slices[0]; z <= slices[1]; z++) {
                int32_t *offset = shape->offsets[info->num_offsets++];
                offset[0] = x;
                offset[1] = y;
                offset[2] = z;
            }
        }
    }
    return LR_OK;
}

lr_status lr_direct_shape_init(struct lr_direct_shape *shape, const lr_direct_tables_params *params)
{
    *shape = (struct lr_direct_shape){.info = {.view = params->view}};
    LR_TRY(lr_grid_check(params->grid, params->log));
    shape->info.grid = *params->grid;
    if (!isfinite(params->view.azimuth_deg) || fabs(params->view.azimuth_deg) > 1e6)
        return lr_error(params->log, LR_USAGE, "a view's azimuth of %g degrees is out of range",
                        params->view.azimuth_deg);
    if (!(fabs(params->view.tilt_deg) < 90)) {
        return lr_error(params->log, LR_USAGE,
                        "a view's tilt of %g degrees is out of range: it lies between -90 and 90",
                        params->view.tilt_deg);
    }

    lr_view_axes(&params->view, shape->axes);
    const lr_direct_kernel *kernel = &params->kernel;
    const double *voxel_mm = params->grid->voxel_mm;
    lr_direct_tables_info *info = &shape->info;
    info->support = kernel->support == 0 ? usual_support : kernel->support;
    info->epsilon_mm = kernel->epsilon_mm == 0 ? 0.5 * fmin(voxel_mm[0], voxel_mm[1]) : kernel->epsilon_mm;
    if (!(info->support > 0 && isfinite(info->support)))
        return lr_error(params->log, LR_USAGE, "a support of k^2 = %g: it must be positive", info->support);
    if (!(info->epsilon_mm > 0 && isfinite(info->epsilon_mm)))
        return lr_error(params->log, LR_USAGE, "an epsilon of %g mm: it must be positive", info->epsilon_mm);
    LR_TRY(lr_resolution_complete(&kernel->resolution, &shape->resolution, params->log));

    /* In a slice, a corner has the largest distance from the axis. */
    const lr_grid *grid = params->grid;
    double most_mm = 0;
    for (int corner = 0; corner < 4; corner++) {
        const double x = grid->origin_mm[0] + (corner % 2) * (grid->size[0] - 1) * grid->voxel_mm[0];
        const double y = grid->origin_mm[1] + (corner / 2) * (grid->size[1] - 1) * grid->voxel_mm[1];
        most_mm = fmax(most_mm, fabs(x * shape->axes[1][0] + y * shape->axes[1][1]));
    }
    if (most_mm / info->epsilon_mm >= most_identifiers) {
        return lr_error(params->log, LR_USAGE,
                        "an epsilon of %g mm makes more than %d identifiers of the %g mm to the "
                        "grid's corner: give a larger one",
                        info->epsilon_mm, most_identifiers, most_mm);
    }
    info->num_identifiers = identifier_of(most_mm, info->epsilon_mm) + 1;
    info->num_kernels = (lr_resolution_is_symmetric(&shape->resolution) ? 1 : 2) * info->num_identifiers;
    info->sigma_mm[0] = lr_sigma_of(lr_tof_mm(shape->resolution.tof_ps));
    info->sigma_mm[1] = lr_resolution_widest_sigma(&shape->resolution, most_mm, sqrt(info->support));
    info->sigma_mm[2] = lr_sigma_of(shape->resolution.axial_mm);

    /* Along axis k of the grid, the ellipsoid extends sqrt(support sum over i of (sigma_mm[i] axes[i][k])^2) mm from
     * its centre. */
    for (int k = 0; k < 3; k++) {
        double square = 0;
        for (int i = 0; i < 3; i++) {
            const double part = info->sigma_mm[i] * shape->axes[i][k];
            square += part * part;
        }
        const double reach = sqrt(info->support * square) / voxel_mm[k];
        const int size = grid->size[k];
        if (2 * floor(reach + LR_DIRECT_TIE) + 1 > size) {
            return lr_error(params->log, LR_USAGE,
                            "the kernel is %.0f voxels long along %c and the grid has %d: take a "
                            "longer grid, a better resolution or a smaller support",
                            2 * floor(reach + LR_DIRECT_TIE) + 1, "xyz"[k], size);
        }
        info->half[k] = (int)floor(reach + LR_DIRECT_TIE);
    }
    const lr_status status = list_offsets(shape, params->log);
    if (status != LR_OK) lr_direct_shape_finish(shape);
    return status;
}

void lr_direct_shape_finish(struct lr_direct_shape *shape)
{
    free(shape->offsets);
    *shape = (struct lr_direct_shape){0};
}

double lr_direct_kernel_distance_mm(const struct lr_direct_shape *shape, int kernel)
{
    return (kernel % shape->info.num_identifiers + 0.5) * shape->info.epsilon_mm;
}

bool lr_direct_kernel_is_mirrored(const struct lr_direct_shape *shape, int kernel)
{
    return kernel >= shape->info.num_identifiers;
}

struct lr_direct_column *lr_direct_list_columns(const struct lr_direct_shape *shape, const lr_log *log)
{
    const lr_direct_tables_info *info = &shape->info;
    const int width = 2 * info->half[0] + 1;
    const int64_t count = (int64_t)width * (2 * info->half[1] + 1);
    struct lr_direct_column *columns = lr_alloc(count, sizeof(*columns), "columns of mSR", log);
    for (int64_t k = 0; columns != NULL && k < count; k++) columns[k] = (struct lr_direct_column){0, 1, 0};
    for (int64_t i = 0; columns != NULL && i < info->num_offsets; i++) {
        const int32_t *offset = shape->offsets[i];
        struct lr_direct_column *column =
            &columns[(int64_t)(offset[1] + info->half[1]) * width + offset[0] + info->half[0]];
        if (column->low > column->high) *column = (struct lr_direct_column){(int32_t)i, offset[2], offset[2]};
        column->high = offset[2];
    }
    return columns;
}

const struct lr_direct_column *lr_direct_column_at(const struct lr_direct_shape *shape,
                                                   const struct lr_direct_column *columns, int x, int y)
{
    static const struct lr_direct_column none = {0, 1, 0};
    const int *half = shape->info.half;
    if (abs(x) > half[0] || abs(y) > half[1]) return &none;
    return &columns[(int64_t)(y + half[1]) * (2 * half[0] + 1) + x + half[0]];
}

/* --- the tables --- */

lr_direct_tables *lr_direct_tables_create_sized(size_t given_bytes, const lr_direct_tables_params *given)
{
    LR_TAKE(lr_direct_tables_params, params, given, given_bytes);
    lr_direct_tables *tables = lr_alloc(1, sizeof(*tables), "look-up tables", params->log);
    if (tables == NULL) return NULL;
    const struct lr_direct_shape *shape = &tables->shape;
    const lr_direct_tables_info *info = &shape->info;
    if (lr_direct_shape_init(&tables->shape, params) != LR_OK) goto failed;
    const lr_grid *grid = &info->grid;
    tables->map = lr_alloc((int64_t)grid->size[0] * grid->size[1], sizeof(*tables->map), "LORmap", params->log);
    tables->values = lr_alloc(info->num_kernels * info->num_offsets, sizeof(*tables->values), "mSRval", params->log);
    if (tables->map == NULL || tables->values == NULL) goto failed;

    const bool has_sides = info->num_kernels > info->num_identifiers;
    for (int y = 0; y < grid->size[1]; y++) {
        for (int x = 0; x < grid->size[0]; x++) {
            const double radial_mm = (grid->origin_mm[0] + x * grid->voxel_mm[0]) * shape->axes[1][0] +
                                     (grid->origin_mm[1] + y * grid->voxel_mm[1]) * shape->axes[1][1];
            const bool is_negative = radial_mm < -LR_DIRECT_TIE * info->epsilon_mm;
            tables->map[(int64_t)y * grid->size[0] + x] = identifier_of(fabs(radial_mm), info->epsilon_mm) +
                                                          (has_sides && is_negative ? info->num_identifiers : 0);
        }
    }
    for (int kernel = 0; kernel < info->num_kernels; kernel++) {
        const double distance_mm = lr_direct_kernel_distance_mm(shape, kernel);
        const double side = lr_direct_kernel_is_mirrored(shape, kernel) ? -1 : 1;
        double *values = tables->values + kernel * info->num_offsets, sum = 0;
        for (int64_t i = 0; i < info->num_offsets; i++) {
            const int32_t *offset = shape->offsets[i];
            const double d[3] = {offset[0] * grid->voxel_mm[0], offset[1] * grid->voxel_mm[1],
                                 offset[2] * grid->voxel_mm[2]};
            const double t = vec_dot(d, shape->axes[0]) / info->sigma_mm[0];
            const double a = vec_dot(d, shape->axes[2]) / info->sigma_mm[2];
            values[i] = exp(-0.5 * (t * t + a * a)) *
                        lr_resolution_profile(&shape->resolution, distance_mm, side * vec_dot(d, shape->axes[1]));
            sum += values[i];
        }
        if (!(sum > 0)) {
            lr_error(params->log, LR_BAD_INPUT,
                     "the kernel at %g mm from the axis is zero on every voxel: the measured "
                     "profile is narrower than a voxel",
                     distance_mm);
            goto failed;
        }
        for (int64_t i = 0; i < info->num_offsets; i++) values[i] /= sum;
    }
    return tables;

failed:
    lr_direct_tables_destroy(tables);
    return NULL;
}

void lr_direct_tables_destroy(lr_direct_tables *tables)
{
    if (tables != NULL) {
        lr_free_all(tables->values, tables->map);
        lr_direct_shape_finish(&tables->shape);
        free(tables);
    }
}

const lr_direct_tables_info *lr_direct_tables_get_info(const lr_direct_tables *tables)
{
    return &tables->shape.info;
}

const int32_t *lr_direct_tables_map(const lr_direct_tables *tables)
{
    return tables->map;
}

const int32_t (*lr_direct_tables_offsets(const lr_direct_tables *tables))[3]
{
    return (const int32_t(*)[3])tables->shape.offsets;
}

const double *lr_direct_tables_values(const lr_direct_tables *tables, int kernel)
{
    return tables->values + kernel * tables->shape.info.num_offsets;
}
