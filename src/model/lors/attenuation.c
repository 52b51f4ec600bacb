/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Attenuation: maps converted to 1/mm and checked, integrals along lines through their voxels, and factors per LOR
 * (docs/method/common.md, "As a factor per LOR").
 *
 * A line is cut into slabs by the voxel faces orthogonal to its steepest axis. Within a slab, the line crosses at most
 * one face of each of the other two axes, so that it has at most three pieces. A slab is computed without a search, and
 * without the results of other slabs. The chords are the same as in Siddon, Fast calculation of the exact radiological
 * path, Med. Phys. 12 (1985). */
#include "model/lors/attenuation.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "model/lors/place.h"
#include "model/scanner/scanner.h"

#include <lr/factors.h>
#include <math.h>
#include <stdlib.h>

/* A line that is this close to a voxel face, in voxels, counts as lying in the face. */
#define IN_FACE 1e-9

/* A line from `from` at t = 0 to from + along at t = 1, in box coordinates. */
struct line {
    double from[3], along[3];
};

/* --- one line --- */

static inline int clamp(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

/* Start and direction of a line along an axis other than the line's steepest axis. */
struct flat_axis {
    double from, along, inverse; /* 1 / along, or 0 if along is 0 */
    int64_t stride;
};

static struct flat_axis flat_axis(const struct lr_mu_lines *self, const struct line *line, int axis)
{
    const double along = line->along[axis];
    return (struct flat_axis){line->from[axis], along, along != 0.0 ? 1.0 / along : 0.0, self->stride[axis]};
}

/* Returns the t in t[0] .. t[1] at which the line passes from cell `from` to its neighbour `to`, or t[1] if `from` and
 * `to` are one cell. */
static inline double crossing(const struct flat_axis *axis, int from, int to, const double t[2])
{
    const int face = from > to ? from : to;
    const double at = (face - 1 - axis->from) * axis->inverse;
    const double within = at < t[0] ? t[0] : at > t[1] ? t[1] : at;
    return from == to ? t[1] : within;
}

/* Integral of mu dt over a range of t inside the box, for a line that rises along its steepest axis. Cells are counted
 * from 1. Cells 0 and size + 1 are the border of zeros, which is read if rounding moves a point out of the box. */
static double sum_slabs(const struct lr_mu_lines *self, const struct line *line, int steepest, const double range[2])
{
    const struct flat_axis y = flat_axis(self, line, (steepest + 1) % 3);
    const struct flat_axis z = flat_axis(self, line, (steepest + 2) % 3);
    const double from = line->from[steepest], inverse = 1.0 / line->along[steepest];
    const int last = (int)self->size[steepest];
    const int64_t first = clamp((int)(from + range[0] / inverse) + 1, 1, last);
    double t[2] = {range[0], range[0]}, sum = 0.0;
    int y0 = (int)(y.from + t[0] * y.along + 1.0), z0 = (int)(z.from + t[0] * z.along + 1.0);
    for (int64_t cell = first; cell <= last && t[0] < range[1]; cell++) {
        const double end = cell < last ? ((double)cell - from) * inverse : range[1];
        t[1] = end < range[1] ? end : range[1];
        const int y_end = (int)(y.from + t[1] * y.along + 1.0);
        const int z_end = (int)(z.from + t[1] * z.along + 1.0);
        const float *slab = self->values + cell * self->stride[steepest];
        if (y_end == y0 && z_end == z0) {
            sum += slab[y0 * y.stride + z0 * z.stride] * (t[1] - t[0]);
            t[0] = t[1];
            continue;
        }
        /* The line crosses at most one face. Only rounding can give two faces, one at each end of the slab. */
        const int y1 = clamp(y_end, y0 - 1, y0 + 1), z1 = clamp(z_end, z0 - 1, z0 + 1);
        const double ty = crossing(&y, y0, y1, t), tz = crossing(&z, z0, z1, t);
        const bool y_first = ty < tz;
        const double t1 = y_first ? ty : tz, t2 = y_first ? tz : ty;
        const int64_t middle = y_first ? y1 * y.stride + z0 * z.stride : y0 * y.stride + z1 * z.stride;
        sum += slab[y0 * y.stride + z0 * z.stride] * (t1 - t[0]) + slab[middle] * (t2 - t1) +
               slab[y1 * y.stride + z1 * z.stride] * (t[1] - t2);
        t[0] = t[1];
        y0 = y_end;
        z0 = z_end;
    }
    return sum;
}

/* Integral of mu dt along a line that lies in no face. */
static double sum_clear(const struct lr_mu_lines *self, const struct line *line)
{
    /* The part of 0 <= t <= 1 inside the box. */
    double range[2] = {0.0, 1.0};
    for (int k = 0; k < 3; k++) {
        if (line->along[k] == 0.0) {
            if (line->from[k] < 0.0 || line->from[k] >= self->size[k]) return 0.0;
            continue;
        }
        const double a = -line->from[k] / line->along[k];
        const double b = (self->size[k] - line->from[k]) / line->along[k];
        range[0] = fmax(range[0], fmin(a, b));
        range[1] = fmin(range[1], fmax(a, b));
    }
    if (!(range[0] < range[1])) return 0.0;

    int steepest = 0;
    for (int k = 1; k < 3; k++) steepest = fabs(line->along[k]) > fabs(line->along[steepest]) ? k : steepest;
    if (line->along[steepest] > 0.0) return sum_slabs(self, line, steepest, range);
    struct line reversed;
    const double reversed_range[2] = {1.0 - range[1], 1.0 - range[0]};
    for (int k = 0; k < 3; k++) {
        reversed.from[k] = line->from[k] + line->along[k];
        reversed.along[k] = -line->along[k];
    }
    return line->along[steepest] < 0.0 ? sum_slabs(self, &reversed, steepest, reversed_range) : 0.0;
}

double lr_mu_lines_integral(const struct lr_mu_lines *self, const double from[3], const double to[3])
{
    struct line lines[4];
    double length2 = 0.0;
    for (int k = 0; k < 3; k++) {
        lines[0].from[k] = from[k];
        lines[0].along[k] = to[k] - from[k];
        length2 += pow(lines[0].along[k] * self->voxel_mm[k], 2.0);
    }

    /* A line in the face between two voxels takes the mean of both. */
    const struct line line = lines[0];
    int count = 1;
    for (int k = 0; k < 3; k++) {
        const double face = nearbyint(line.from[k]);
        const bool lies_in_face = fabs(line.along[k]) <= IN_FACE && fabs(line.from[k] - face) <= IN_FACE;
        if (!lies_in_face || count > 2) continue;
        for (int n = 0; n < count; n++) {
            lines[count + n] = lines[n];
            lines[n].from[k] = face - 0.5;
            lines[count + n].from[k] = face + 0.5;
            lines[n].along[k] = lines[count + n].along[k] = 0.0;
        }
        count *= 2;
    }
    double sum = 0.0;
    for (int n = 0; n < count; n++) sum += sum_clear(self, &lines[n]);
    return sqrt(length2) * (sum / count);
}

/* --- making --- */

lr_status lr_mu_lines_init(struct lr_mu_lines *self, const lr_image *mu, const lr_log *log)
{
    int64_t low[3], high[3];
    *self = (struct lr_mu_lines){.values = NULL};
    LR_TRY(lr_grid_check(&mu->grid, log));
    const int *size = mu->grid.size;
    for (int64_t v = 0; v < lr_grid_num_voxels(&mu->grid); v++) {
        const float value = mu->values[v];
        if (!isfinite(value) || value < 0.0f) {
            return lr_error(log, LR_BAD_INPUT,
                            "voxel (%lld, %lld, %lld) of the mu-map is %g per mm: values must be finite and at least 0",
                            (long long)(v % size[0]), (long long)(v / size[0] % size[1]),
                            (long long)(v / size[0] / size[1]), (double)value);
        }
    }

    /* Voxels low .. high - 1 along each axis contain all values that are not zero. An empty map gets one voxel. */
    for (int k = 0; k < 3; k++) {
        low[k] = size[k];
        high[k] = 0;
    }
    for (int64_t v = 0; v < lr_grid_num_voxels(&mu->grid); v++) {
        const int64_t at[3] = {v % size[0], v / size[0] % size[1], v / size[0] / size[1]};
        for (int k = 0; k < 3 && mu->values[v] != 0.0f; k++) {
            low[k] = at[k] < low[k] ? at[k] : low[k];
            high[k] = at[k] >= high[k] ? at[k] + 1 : high[k];
        }
    }
    for (int k = 0; k < 3 && high[k] == 0; k++) {
        low[k] = 0;
        high[k] = 1;
    }

    int64_t count = 1;
    for (int k = 0; k < 3; k++) {
        self->stride[k] = count;
        self->size[k] = (double)(high[k] - low[k]);
        self->voxel_mm[k] = mu->grid.voxel_mm[k];
        self->origin_mm[k] = mu->grid.origin_mm[k];
        self->corner[k] = (double)low[k];
        count *= high[k] - low[k] + 2;
    }
    self->values = lr_alloc(count, sizeof(*self->values), "the mu-map", log);
    if (self->values == NULL) return LR_FAILED;
    for (int64_t z = low[2]; z < high[2]; z++) {
        for (int64_t y = low[1]; y < high[1]; y++) {
            float *row = self->values + (y - low[1] + 1) * self->stride[1] + (z - low[2] + 1) * self->stride[2] + 1;
            const float *from = mu->values + low[0] + size[0] * (y + size[1] * z);
            for (int64_t x = 0; x < high[0] - low[0]; x++) row[x] = from[x];
        }
    }
    return LR_OK;
}

void lr_mu_lines_finish(struct lr_mu_lines *self)
{
    free(self->values);
    *self = (struct lr_mu_lines){.values = NULL};
}

void lr_mu_lines_place(const struct lr_mu_lines *self, const double point_mm[3], double place[3])
{
    for (int k = 0; k < 3; k++)
        place[k] = (point_mm[k] - self->origin_mm[k]) / self->voxel_mm[k] + 0.5 - self->corner[k];
}

/* --- factors per LOR --- */

/* Number of LORs that a worker takes at a time. */
enum { SHARE = 2048 };

struct lr_attenuation {
    const lr_lors *lors;
    int threads;
    struct lr_mu_lines mu;
    double (*faces)[3]; /* [num_crystals] face centres on the detection plane, box coordinates */
};

/* --- LORs --- */

struct loop {
    const lr_attenuation *self;
    const lr_lor_span *span;
    float *values;
};

static void fill_factors(void *user, int64_t begin, int64_t end)
{
    const struct loop *loop = user;
    const lr_attenuation *self = loop->self;
    struct lr_lor_place place = {.lors = self->lors};
    for (int64_t k = begin; k < end; k++) {
        lr_place_seek(&place, lr_span_lor(loop->span, k));
        loop->values[k] = 0.0f;
        if (lr_place_in_coincidence(&place)) {
            loop->values[k] = (float)exp(-lr_mu_lines_integral(&self->mu, self->faces[place.first_i + place.a],
                                                               self->faces[place.first_j + place.b]));
        }
    }
}

static lr_status get_factors(void *user, const lr_lor_span *span, float *values)
{
    const lr_attenuation *self = user;
    if (!lr_span_fits(self->lors, span)) return LR_USAGE;
    struct loop loop = {self, span, values};
    lr_parallel_for(self->threads, span->count, SHARE, fill_factors, &loop);
    return LR_OK;
}

lr_lor_source lr_attenuation_source(lr_attenuation *attenuation)
{
    return (lr_lor_source){get_factors, attenuation};
}

/* --- making --- */

lr_attenuation *lr_attenuation_create_sized(size_t given_bytes, const lr_attenuation_params *given)
{
    LR_TAKE(lr_attenuation_params, params, given, given_bytes);
    if (params->lors == NULL || params->mu == NULL || params->threads < 0) {
        lr_log_write(params->log, LR_LOG_ERROR, LR_USAGE,
                     "attenuation factors need LORs, a mu-map and a number of threads that is not negative");
        return NULL;
    }
    lr_attenuation *self = lr_alloc(1, sizeof(*self), "attenuation factors", params->log);
    if (self == NULL) return NULL;
    self->lors = params->lors;
    self->threads = params->threads > 0 ? params->threads : lr_num_processors();
    const lr_scanner *scanner = params->lors->scanner;
    if (lr_mu_lines_init(&self->mu, params->mu, params->log) == LR_OK)
        self->faces = lr_alloc(scanner->num_crystals, sizeof(*self->faces), "the crystals' faces", params->log);
    if (self->faces == NULL) {
        lr_attenuation_destroy(self);
        return NULL;
    }
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        double plane[3];
        lr_scanner_detection_centre(scanner, m, plane);
        for (int c = 0; c < scanner->first_crystal[m + 1] - scanner->first_crystal[m]; c++) {
            const int p = c % module->crystals[0], q = c / module->crystals[0];
            const double along_u = (p - 0.5 * (module->crystals[0] - 1)) * module->pitch_mm[0];
            const double along_v = (q - 0.5 * (module->crystals[1] - 1)) * module->pitch_mm[1];
            double face_mm[3];
            vec_add_scaled(plane, along_u, module->u, face_mm);
            vec_add_scaled(face_mm, along_v, module->v, face_mm);
            lr_mu_lines_place(&self->mu, face_mm, self->faces[scanner->first_crystal[m] + c]);
        }
    }
    return self;
}

void lr_attenuation_destroy(lr_attenuation *attenuation)
{
    if (attenuation != NULL) {
        lr_mu_lines_finish(&attenuation->mu);
        lr_free_all(attenuation->faces, attenuation);
    }
}

/* --- units and places of maps --- */

/* Attenuation in 1/mm that no scanned object reaches (titanium has 0.04). If the values are in 1/cm, water (0.096)
 * exceeds this limit. */
static const double usual_per_mm = 0.05;
/* Attenuation that no material reaches at 511 keV. Lead has 0.18/mm, and tungsten has 0.25/mm. */
static const double most_per_mm = 0.3;
/* Attenuation above that of steel (0.066/mm). Scanned objects hardly reach it. */
static const double dense_per_mm = 0.07;
/* Half of the attenuation of water. Every person or phantom exceeds this value somewhere. */
static const double least_per_mm = 0.0048;
/* Smallest difference, in Hounsfield units, between air and any other material; the same as an attenuation. */
static const double least_contrast = 50, least_seen_per_mm = 0.0005;

/* --- place --- */

static lr_status check_place(const lr_image *mu, const lr_mu_map_params *params)
{
    double low[3], high[3];
    /* The box around the modules. */
    for (int k = 0; k < 3; k++) {
        low[k] = INFINITY;
        high[k] = -INFINITY;
        for (int m = 0; m < params->scanner->num_modules; m++) {
            const lr_module *module = &params->scanner->modules[m];
            const double half = lr_module_half_mm(module, k);
            low[k] = fmin(low[k], module->centre_mm[k] - half);
            high[k] = fmax(high[k], module->centre_mm[k] + half);
        }
    }

    const lr_grid *grid = &mu->grid;
    double sum = 0, inside = 0; /* sums over the map, and over the part of the map between the modules */
    double middle[3] = {0};     /* centre of the map, weighted by its values, mm */
    const int64_t count = lr_grid_num_voxels(grid);
    for (int64_t row = 0; row < count; row++) {
        const double value = (double)mu->values[row];
        const int64_t line = row / grid->size[0];
        const int64_t index[3] = {row % grid->size[0], line % grid->size[1], line / grid->size[1]};
        bool within = true;
        for (int k = 0; k < 3 && value > 0; k++) {
            const double at_mm = grid->origin_mm[k] + (double)index[k] * grid->voxel_mm[k];
            const double half = 0.5 * grid->voxel_mm[k];
            within = within && at_mm + half > low[k] && at_mm - half < high[k];
            middle[k] += value * at_mm;
        }
        sum += value > 0 ? value : 0;
        inside += value > 0 && within ? value : 0;
    }
    for (int k = 0; k < 3 && sum > 0; k++) middle[k] /= sum;

    if (sum > 0 && !(inside > 0)) {
        return lr_error(params->log, LR_BAD_INPUT,
                        "%s: the map misses the scanner: its middle is at (%.4g, %.4g, %.4g) mm, the scanner's at "
                        "(%.4g, %.4g, %.4g) mm: set the origin in its file",
                        params->name, middle[0], middle[1], middle[2], 0.5 * (low[0] + high[0]),
                        0.5 * (low[1] + high[1]), 0.5 * (low[2] + high[2]));
    }
    const double off_mm = hypot(middle[0] - 0.5 * (low[0] + high[0]), middle[1] - 0.5 * (low[1] + high[1]));
    if (sum > 0 && off_mm > 0.25 * fmax(high[0] - low[0], high[1] - low[1])) {
        lr_warn(params->log,
                "%s: the middle of the map, (%.4g, %.4g, %.4g) mm, lies %.4g mm beside the scanner's axis: is the "
                "origin in its file right?",
                params->name, middle[0], middle[1], middle[2], off_mm);
    }
    return LR_OK;
}

/* Returns the map's value in the voxel that contains a point; 0 beyond the map. */
static double value_at(const lr_image *mu, const double at_mm[3])
{
    const lr_grid *grid = &mu->grid;
    int64_t row = 0, stride = 1;
    for (int k = 0; k < 3; k++) {
        const double place = round((at_mm[k] - grid->origin_mm[k]) / grid->voxel_mm[k]);
        if (!(place >= 0 && place < grid->size[k])) return 0;
        row += (int64_t)place * stride;
        stride *= grid->size[k];
    }
    return (double)mu->values[row];
}

/* Warns about a map in 1/mm that attenuates at the front faces of crystals. */
static void check_crystals(const lr_image *mu, const lr_mu_map_params *params)
{
    const lr_scanner *scanner = params->scanner;
    int num_reached = 0;
    double highest = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        for (int c = 0; c < module->crystals[0] * module->crystals[1]; c++) {
            double at_mm[3];
            lr_module_crystal_centre(module, c % module->crystals[0], c / module->crystals[0], at_mm);
            vec_add_scaled(at_mm, 0.5 * module->depth_mm, module->normal, at_mm);
            const double value = value_at(mu, at_mm);
            num_reached += value > least_seen_per_mm;
            highest = fmax(highest, value);
        }
    }
    if (num_reached > scanner->num_crystals / 100) { /* fewer may be the noise of a map */
        lr_warn(params->log,
                "%s: attenuates by up to %.3g/cm at the front faces of %d of %d crystals, where there should be air: "
                "are its voxels too large, or is its origin wrong? If not, set it to 0 outside of what is scanned",
                params->name, 10 * highest, num_reached, scanner->num_crystals);
    }
}

double lr_mu_map_share_in_air(const lr_image *mu, const lr_image *image)
{
    static const double air_per_mm = 0.00096;
    double sum = 0, in_air = 0, at_mm[3];
    const int64_t count = lr_grid_num_voxels(&image->grid);
    for (int64_t row = 0; row < count; row++) {
        const double value = (double)image->values[row];
        lr_grid_voxel_centre(&image->grid, row, at_mm);
        sum += value;
        if (value != 0 && value_at(mu, at_mm) < air_per_mm) in_air += value;
    }
    return sum > 0 ? in_air / sum : NAN;
}

/* --- unit and position of a map --- */

/* Hounsfield units are converted after Carney et al. 2006, for 120 kVp. */
static double to_per_mm(lr_mu_unit unit, double value)
{
    const double above_air = value + 1000;
    const double per_cm = value <= 47 ? 9.6e-5 * above_air : 5.10e-5 * above_air + 4.71e-2;
    if (unit == LR_MU_HU) return fmax(0.1 * per_cm, 0);
    return unit == LR_MU_PER_CM ? 0.1 * value : value;
}

lr_status lr_mu_map_settle_sized(size_t given_bytes, lr_image *mu, const lr_mu_map_params *given)
{
    LR_TAKE(lr_mu_map_params, asked, given, given_bytes);
    lr_mu_map_params params = *asked;
    params.name = asked->name != NULL ? asked->name : "the mu-map";
    const int64_t count = lr_grid_num_voxels(&mu->grid);
    double low = INFINITY, high = -INFINITY;
    for (int64_t k = 0; k < count; k++) {
        low = fmin(low, (double)mu->values[k]);
        high = fmax(high, (double)mu->values[k]);
    }

    const bool by_value = given->unit == LR_MU_BY_VALUE;
    const lr_mu_unit unit = !by_value ? given->unit : high > usual_per_mm ? LR_MU_PER_CM : LR_MU_PER_MM;
    const double high_per_mm = to_per_mm(unit, high);
    if (unit == LR_MU_HU && high - low < least_contrast) {
        return lr_error(params.log, LR_BAD_INPUT,
                        "%s: values from %g to %g are no Hounsfield units, of which air has -1000 and water 0: is the "
                        "map in 1/cm or 1/mm?",
                        params.name, low, high);
    }
    if (unit == LR_MU_HU && low >= 0) {
        lr_warn(params.log,
                "%s: no value lies below 0 HU, while air has -1000: if the file holds CT numbers with an offset, "
                "subtract it first (often 1000 or 1024)",
                params.name);
    }
    if (unit != LR_MU_HU && (high_per_mm > most_per_mm || low < -100)) {
        return lr_error(params.log, LR_BAD_INPUT,
                        "%s: values from %g to %g are no attenuation at 511 keV, of which water has 0.0096/mm and lead "
                        "0.18/mm: are they Hounsfield units? %s%s",
                        params.name, low, high,
                        given->unit == LR_MU_PER_MM ? "An H up to 47 becomes 1/mm by 9.6e-6 (H + 1000), a higher one "
                                                      "by 5.10e-6 (H + 1000) + 0.00471"
                                                    : "Then they need that unit",
                        low < 0 ? "" : "; or are they CT numbers with an offset, or an activity?");
    }
    if (params.scanner != NULL && unit != LR_MU_HU) LR_TRY(check_place(mu, &params));
    static const char *const names[] = {"", "1/mm", "1/cm", "Hounsfield units"};
    static const char *const waters[] = {"", "0.0096", "0.096", "0"};
    lr_info(params.log, "%s: attenuation taken as %s, at most %g (water has %s)%s", params.name, names[unit], high,
            waters[unit], by_value ? "; the unit may be given instead" : "");
    if (unit != LR_MU_HU && high <= 0 && low >= 0) {
        lr_warn(params.log, "%s: the map is 0 everywhere: nothing is attenuated", params.name);
    } else if (high_per_mm < least_per_mm && unit == LR_MU_PER_CM) {
        lr_warn(params.log,
                "%s: reaches %g/cm, while water has 0.096/cm: it looks like 1/mm; if so, leave out the unit",
                params.name, high);
    } else if (high > usual_per_mm && unit == LR_MU_PER_MM) {
        lr_warn(params.log,
                "%s: reaches %g/mm, while water has 0.0096/mm: it looks like 1/cm; if so, divide it by 10: values "
                "are 1/mm; or is it an activity image?",
                params.name, high);
    } else if (high_per_mm > dense_per_mm) {
        lr_warn(params.log,
                "%s: reaches %.3g/cm, denser than steel (0.66/cm): is it an activity image, or has it another unit?",
                params.name, 10 * high_per_mm);
    }

    for (int64_t k = 0; k < count && unit != LR_MU_PER_MM; k++)
        mu->values[k] = (float)to_per_mm(unit, (double)mu->values[k]);

    if (params.scanner == NULL) return LR_OK;
    check_crystals(mu, &params);
    return unit == LR_MU_HU ? check_place(mu, &params) : LR_OK;
}
