/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "correspondence/native/kernels.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "correspondence/native/native.h"
#include "model/scanner/scanner.h"

#include <math.h>
#include <stdlib.h>

/* --- masks --- */

/* Returns true if the crystals' index along u runs along the axis. */
static bool is_along_u(const struct lr_native_scene *scene, const struct lr_native_pair *pair)
{
    return lr_module_axial(&scene->params.scanner->modules[pair->i], scene->axis) == 0;
}

/* Returns the number that the scanner gives to a cell along the axis. */
static int scanner_cell(const struct lr_native_module *module, int cell)
{
    return module->step_along > 0 ? cell : module->num_cells - 1 - cell;
}

/* Returns the bit set of a separable mask that selects cells along the axis. */
static uint32_t cells_set(const struct lr_native_scene *scene, int64_t index)
{
    const struct lr_pair_mask *mask = &scene->params.lors->masks->pairs[index];
    return is_along_u(scene, &scene->pairs[index]) ? mask->offset_a : mask->offset_b;
}

bool lr_native_columns_allowed(const struct lr_native_scene *scene, int64_t index, int ci, int cj)
{
    const struct lr_native_pair *pair = &scene->pairs[index];
    const struct lr_pair_mask *mask = &scene->params.lors->masks->pairs[index];
    if (mask->kind != LR_MASK_SEPARABLE) return true;
    const uint32_t set = is_along_u(scene, pair) ? mask->offset_b : mask->offset_a;
    return lr_mask_bit(scene->params.lors->masks->words + set, (int64_t)ci * scene->modules[pair->j].num_columns + cj);
}

bool lr_native_allowed(const struct lr_native_scene *scene, int64_t index, const int columns[2], const int cells[2])
{
    const struct lr_native_pair *pair = &scene->pairs[index];
    const int q = scanner_cell(&scene->modules[pair->i], cells[0]);
    const int s = scanner_cell(&scene->modules[pair->j], cells[1]);
    const lr_lors *lors = scene->params.lors;
    return is_along_u(scene, pair) ? lr_coincidence_allows(lors, index, q, columns[0], s, columns[1])
                                   : lr_coincidence_allows(lors, index, columns[0], q, columns[1], s);
}

/* The first pair with each table. Pairs with the same cells in coincidence, numbers of cells and directions share it. */
struct sharing {
    int64_t *first; /* [num] pairs */
    int64_t num;
};

/* Finds or makes a pair's table of cells in coincidence; NULL if all cells are in coincidence. */
static lr_status find_table(struct lr_native_scene *scene, int64_t index, struct sharing *sharing)
{
    const struct lr_native_module *modules = scene->modules;
    struct lr_native_pair *pair = &scene->pairs[index];
    const struct lr_native_module *i = &modules[pair->i], *j = &modules[pair->j];
    const uint32_t set = cells_set(scene, index), *bits = scene->params.lors->masks->words + set;
    for (int64_t k = 0; k < sharing->num; k++) {
        const struct lr_native_pair *other = &scene->pairs[sharing->first[k]];
        const struct lr_native_module *other_i = &modules[other->i], *other_j = &modules[other->j];
        if (set == cells_set(scene, sharing->first[k]) && i->num_cells == other_i->num_cells &&
            j->num_cells == other_j->num_cells && (i->step_along > 0) == (other_i->step_along > 0) &&
            (j->step_along > 0) == (other_j->step_along > 0)) {
            pair->along = other->along;
            return LR_OK;
        }
    }

    float *table =
        lr_alloc((int64_t)i->num_cells * j->num_cells, sizeof(*table), "coincidence masks", scene->params.log);
    if (table == NULL) return LR_FAILED;
    bool is_full = true;
    for (int q = 0; q < i->num_cells; q++) {
        for (int s = 0; s < j->num_cells; s++) {
            const bool is_allowed = lr_mask_bit(bits, (int64_t)scanner_cell(i, q) * j->num_cells + scanner_cell(j, s));
            table[q * j->num_cells + s] = is_allowed ? 1.0f : 0.0f;
            is_full = is_full && is_allowed;
        }
    }
    scene->tables[scene->num_tables++] = table;
    pair->along = is_full ? NULL : table;
    sharing->first[sharing->num++] = index;
    return LR_OK;
}

lr_status lr_native_scene_init(struct lr_native_scene *scene, const struct lr_backend_params *params)
{
    const lr_scanner *scanner = params->scanner;
    const lr_lors *lors = params->lors;
    struct sharing sharing = {0};
    lr_status status = LR_FAILED;
    if (params->mu != NULL) {
        return lr_error(params->log, LR_USAGE,
                        "backend native follows no lines through an attenuation image: give "
                        "attenuation as factors per LOR, or use backend compute, raster or cpu");
    }
    if (lr_lors_axial_axis(lors) < 0) {
        int odd = 0; /* first module whose axis along z (u or v) is not that of module 0 */
        const int usual = lr_module_axial(&scanner->modules[0], 2);
        while (usual >= 0 && odd < scanner->num_modules - 1 && lr_module_axial(&scanner->modules[odd], 2) == usual)
            odd++;
        return lr_error(params->log, LR_USAGE,
                        "backend native needs modules that share an axial direction along an axis of "
                        "the grid, and module %d of this scanner is tilted or turned: use backend cpu, or compute on a "
                        "graphics processor",
                        odd);
    }
    if (lr_modules_may_hide(scanner)) {
        return lr_error(
            params->log, LR_USAGE,
            "backend native needs a scanner none of whose modules can hide another, "
            "and here one stands behind another's plane: use backend cpu, or compute on a graphics processor");
    }
    *scene = (struct lr_native_scene){.params = *params, .axis = lr_lors_axial_axis(lors)};
    scene->across[0] = scene->axis == 0 ? 1 : 0;
    scene->across[1] = scene->axis == 2 ? 1 : 2;

    scene->modules = lr_alloc(scanner->num_modules, sizeof(*scene->modules), "the modules", params->log);
    if (scene->modules == NULL) goto finish;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const int along = lr_module_axial(module, scene->axis), over = 1 - along;
        if (along < 0) continue;
        const double *tangent = over == 0 ? module->u : module->v;
        const double *axial = along == 0 ? module->u : module->v;
        const bool is_reversed = axial[scene->axis] < 0.0;
        const int step_along = along == 0 ? 1 : module->crystals[0];
        double centre[3];
        lr_scanner_detection_centre(scanner, m, centre);
        struct lr_native_module *out = &scene->modules[m];
        *out = (struct lr_native_module){
            .pitch = module->pitch_mm[over],
            .face = module->face_mm[over],
            .num_columns = module->crystals[over],
            .start_along = centre[scene->axis] - 0.5 * module->crystals[along] * module->pitch_mm[along],
            .pitch_along = module->pitch_mm[along],
            .face_along = module->face_mm[along],
            .num_cells = module->crystals[along],
            .step = over == 0 ? 1 : module->crystals[0],
            .step_along = is_reversed ? -step_along : step_along,
            .first_crystal = is_reversed ? (module->crystals[along] - 1) * step_along : 0,
        };
        for (int k = 0; k < 2; k++) {
            out->centre[k] = centre[scene->across[k]];
            out->tangent[k] = tangent[scene->across[k]];
            out->normal[k] = module->normal[scene->across[k]];
        }
    }

    /* Coordinates of sample points are computed exactly as in lr_grid_sample_point. */
    const lr_grid *grid = params->grid;
    const int axes[3] = {scene->across[0], scene->across[1], scene->axis};
    scene->num_all_samples = 1;
    for (int a = 0; a < 3; a++) {
        const int axis = axes[a], samples = params->samples[axis];
        scene->num_samples[a] = samples;
        scene->num_voxels[a] = grid->size[axis];
        scene->num_points[a] = grid->size[axis] * samples;
        scene->spacing[a] = grid->voxel_mm[axis] / samples;
        scene->num_all_samples *= samples;
        scene->points[a] =
            lr_alloc(scene->num_points[a], sizeof(double), "the coordinates of sample points", params->log);
        if (scene->points[a] == NULL) goto finish;
        for (int k = 0; k < scene->num_points[a]; k++) {
            const double offset = (k % samples + 0.5) / samples - 0.5;
            scene->points[a][k] = grid->origin_mm[axis] + (k / samples + offset) * grid->voxel_mm[axis];
        }
    }

    scene->pairs = lr_alloc(lors->num_pairs, sizeof(*scene->pairs), "pairs of modules", params->log);
    if (scene->pairs == NULL) goto finish;
    for (int64_t k = 0; k < lors->num_pairs; k++) {
        scene->pairs[k].i = lors->pairs[k][0];
        scene->pairs[k].j = lors->pairs[k][1];
    }
    scene->tables = lr_alloc(lors->num_pairs, sizeof(*scene->tables), "coincidence masks", params->log);
    sharing.first = lr_alloc(lors->num_pairs, sizeof(*sharing.first), "coincidence masks", params->log);
    status = scene->tables != NULL && sharing.first != NULL ? LR_OK : LR_FAILED;
    for (int64_t k = 0; k < lors->num_pairs && status == LR_OK; k++)
        if (lors->masks->pairs[k].kind == LR_MASK_SEPARABLE) status = find_table(scene, k, &sharing);
finish:
    free(sharing.first);
    if (status != LR_OK) lr_native_scene_finish(scene);
    return status;
}

void lr_native_scene_finish(struct lr_native_scene *scene)
{
    for (int k = 0; k < scene->num_tables; k++) free(scene->tables[k]);
    for (int k = 0; k < 3; k++) free(scene->points[k]);
    lr_free_all(scene->tables, scene->pairs, scene->modules);
    *scene = (struct lr_native_scene){0};
}

/* Two modules count as parallel if the sine of the angle between them is below this. Rounding of axes causes such
 * angles. */
#define PARALLEL 1e-13

/* Limits for the pieces into which a face is cut. In a piece, the density is approximated to second order, and the
 * edges along the axis are straight lines. PIECE: largest length of a piece, divided by its distance from the point.
 * BEND: largest relative change of tau over a piece. Each approximation has an error of about 5e-6 of an element for
 * points in corners next to a module, and less elsewhere. */
#define PIECE 0.1
#define BEND 0.04

/* A strip is left out if its width is below this fraction of the face. */
#define SLIVER 1e-9

static double dot(const double a[2], const double b[2])
{
    return a[0] * b[0] + a[1] * b[1];
}

bool lr_native_sees(const struct lr_native_scene *scene, int64_t pair, const double point[2],
                    struct lr_native_side sides[2])
{
    const struct lr_native_pair *at = &scene->pairs[pair];
    for (int n = 0; n < 2; n++) {
        const struct lr_native_module *module = &scene->modules[n == 0 ? at->i : at->j];
        struct lr_native_side *side = &sides[n];
        side->module = module;
        for (int k = 0; k < 2; k++) side->centre[k] = module->centre[k] - point[k];
        side->foot = dot(module->tangent, side->centre);
        side->height = -dot(module->normal, side->centre);
    }
    return sides[0].height > 0.0 && sides[1].height > 0.0;
}

struct lr_native_crossing lr_native_cross(const struct lr_native_side sides[2], bool i_is_primary)
{
    const struct lr_native_side *a = &sides[i_is_primary ? 0 : 1];
    const struct lr_native_side *b = &sides[i_is_primary ? 1 : 0];
    const struct lr_native_module *on_a = a->module, *on_b = b->module;
    const double sine = dot(on_b->normal, on_a->tangent);
    return (struct lr_native_crossing){
        .primary = *a,
        .secondary = *b,
        .i_is_primary = i_is_primary,
        .tau = {dot(on_b->normal, a->centre) / b->height, fabs(sine) < PARALLEL ? 0.0 : sine / b->height},
        .on_second = {dot(on_b->tangent, a->centre), dot(on_b->tangent, on_a->tangent)},
        .reach = {dot(on_a->normal, b->centre), dot(on_a->normal, on_b->tangent)},
        .on_first = {dot(on_a->tangent, b->centre), dot(on_a->tangent, on_b->tangent)},
    };
}

static double tau_at(const struct lr_native_crossing *crossing, double u)
{
    return crossing->tau[0] + crossing->tau[1] * u;
}

/* Returns the coordinate where the line through coordinate w of the secondary hits the primary. If the line comes from
 * behind the primary, the result is far beyond one end of the primary: the end towards which the hits move as lines
 * from the front become parallel to the primary. */
static double on_primary(const struct lr_native_crossing *crossing, double w)
{
    const double *reach = crossing->reach, *on_first = crossing->on_first;
    const double height = crossing->primary.height, depth = reach[0] + reach[1] * w;
    if (depth > 1e-9 * height) return -height * (on_first[0] + on_first[1] * w) / depth - crossing->primary.foot;
    const double level = reach[1] != 0.0 ? -reach[0] / reach[1] : w; /* coordinate along the primary */
    return on_first[0] + on_first[1] * level > 0.0 ? -1e12 : 1e12;
}

/* Returns the coordinate where the line through coordinate u of the primary hits the secondary. tau must be positive at
 * u. */
static double on_secondary(const struct lr_native_crossing *crossing, double u)
{
    return -(crossing->on_second[0] + crossing->on_second[1] * u) / tau_at(crossing, u) - crossing->secondary.foot;
}

static double column_middle(const struct lr_native_module *module, int column)
{
    return (column - 0.5 * (module->num_columns - 1)) * module->pitch;
}

/* Finds the columns (begin, end) between two coordinates, with a margin for rounding. */
static void columns_between(const struct lr_native_module *module, double from, double to, int between[2])
{
    const double half = 0.5 * module->num_columns, num = module->num_columns;
    const double low = floor(fmin(from, to) / module->pitch + half - 1e-6);
    const double high = floor(fmax(from, to) / module->pitch + half + 1e-6);
    between[0] = (int)fmin(fmax(low, 0.0), num);
    between[1] = (int)fmin(fmax(high + 1.0, 0.0), num);
}

static void make_strip(const struct lr_native_crossing *crossing, double middle, double width,
                       struct lr_native_strip *strip)
{
    const double height = crossing->primary.height;
    const double x = crossing->primary.foot + middle;
    strip->tau_exactly = tau_at(crossing, middle);
    strip->tau = (float)strip->tau_exactly;
    strip->dtau = (float)(crossing->tau[1] * width);
    strip->squared = (float)(height * height + x * x);
    strip->width = (float)width;
    strip->share = (float)(height * width / (2 * LR_PI));
    strip->slant = (float)x;
}

/* Returns the number of pieces for an edge of this length at this distance. */
static int num_pieces(double edge, double distance)
{
    return (int)fmin(fmax(ceil(edge / (PIECE * distance)), 1.0), LR_NATIVE_MAX_PARTS);
}

/* Makes the strips for the part of primary column p that is visible through secondary column r. Near modules are cut
 * into more strips. Returns the number of strips. */
static int exact_strip(const struct lr_native_crossing *crossing, int p, int r, struct lr_native_strip *strips)
{
    const struct lr_native_module *a = crossing->primary.module, *b = crossing->secondary.module;
    const double u = column_middle(a, p), w = column_middle(b, r);
    const double from = on_primary(crossing, w - 0.5 * b->face);
    const double to = on_primary(crossing, w + 0.5 * b->face);
    const double u0 = fmax(u - 0.5 * a->face, fmin(from, to));
    const double u1 = fmin(u + 0.5 * a->face, fmax(from, to));
    if (u1 - u0 <= SLIVER * a->face) return 0;

    const double height = crossing->primary.height, foot = crossing->primary.foot;
    const double aside = fmax(fmax(foot + u0, -(foot + u1)), 0.0);
    const double distance = sqrt(height * height + aside * aside);
    const double bend = fabs(crossing->tau[1]) * (u1 - u0) / tau_at(crossing, 0.5 * (u0 + u1));
    const int num = num_pieces(fmax(u1 - u0, bend * PIECE / BEND * distance), distance);
    /* The strips of parallel modules share their overlaps, so they must have the same number of pieces. */
    const double nearest = crossing->tau[1] == 0.0 ? height : distance;
    for (int n = 0; n < num; n++) {
        const double width = (u1 - u0) / num;
        make_strip(crossing, u0 + (n + 0.5) * width, width, &strips[n]);
        strips[n].parts = num_pieces(a->face_along, nearest);
        strips[n].ci = crossing->i_is_primary ? p : r;
        strips[n].cj = crossing->i_is_primary ? r : p;
    }
    return num;
}

/* Makes the strip of line `ray` of primary column p, and finds the secondary column that this line hits. Returns false
 * if the line hits none. */
static bool sampled_strip(const struct lr_native_scene *scene, const struct lr_native_crossing *crossing,
                          const int at[2], struct lr_native_strip *strip)
{
    const int p = at[0], ray = at[1], rays = scene->params.rays;
    const struct lr_native_module *a = crossing->primary.module, *b = crossing->secondary.module;
    const double u = column_middle(a, p) + ((ray + 0.5) / rays - 0.5) * a->face;
    if (tau_at(crossing, u) <= 0.0) return false;
    const double w = on_secondary(crossing, u);
    const double place = w / b->pitch + 0.5 * b->num_columns;
    if (!(place >= 0.0 && place <= b->num_columns)) return false;
    const int met = place < b->num_columns ? (int)place : b->num_columns - 1;
    if (fabs(w - column_middle(b, met)) > 0.5 * b->face) return false;
    make_strip(crossing, u, a->face / rays, strip);
    strip->dtau = 0.0f;
    strip->parts = 1;
    strip->ci = crossing->i_is_primary ? p : met;
    strip->cj = crossing->i_is_primary ? met : p;
    return true;
}

int lr_native_find_strips(const struct lr_native_scene *scene, const struct lr_native_crossing *crossing,
                          const struct lr_native_range *range, struct lr_native_strip *strips)
{
    const int a = crossing->i_is_primary ? 0 : 1, b = 1 - a;
    const int wanted_b[2] = {range->begin[b], range->end[b]};
    int along_a[2];
    /* Finds the columns of the primary through which the secondary's columns begin .. end - 1 may be visible. */
    const struct lr_native_module *module = crossing->secondary.module;
    const double half = 0.5 * module->pitch;
    columns_between(crossing->primary.module, on_primary(crossing, column_middle(module, wanted_b[0]) - half),
                    on_primary(crossing, column_middle(module, wanted_b[1] - 1) + half), along_a);

    along_a[0] = along_a[0] > range->begin[a] ? along_a[0] : range->begin[a];
    along_a[1] = along_a[1] < range->end[a] ? along_a[1] : range->end[a];
    int num = 0, num_within = 0;
    if (scene->params.mode == LR_MODE_EXACT) {
        const struct lr_native_module *first = crossing->primary.module;
        const int most = 2 * (first->num_columns + module->num_columns);
        int pairs = 0;
        for (int p = along_a[0]; p < along_a[1]; p++) {
            /* Finds the columns of the secondary that may be visible through column p. */
            int between[2] = {0, module->num_columns};
            const double u = column_middle(first, p), u0 = u - 0.5 * first->face, u1 = u + 0.5 * first->face;
            if (tau_at(crossing, u0) > 1e-9 && tau_at(crossing, u1) > 1e-9)
                columns_between(module, on_secondary(crossing, u0), on_secondary(crossing, u1), between);
            const int begin = between[0] > range->begin[b] ? between[0] : range->begin[b];
            const int end = between[1] < range->end[b] ? between[1] : range->end[b];
            for (int r = begin; r < end && pairs < most; r++) {
                if (!lr_native_takes(range, b == 1 ? p : r, b == 1 ? r : p)) continue;
                const int found = exact_strip(crossing, p, r, &strips[num]);
                num += found;
                pairs += found > 0;
            }
        }
        return num;
    }
    for (int p = along_a[0]; p < along_a[1]; p++)
        for (int ray = 0; ray < scene->params.rays; ray++)
            num += sampled_strip(scene, crossing, (const int[2]){p, ray}, &strips[num]);

    /* Strips of columns outside the range are removed. */
    for (int k = 0; k < num; k++) {
        const struct lr_native_strip *strip = &strips[k];
        if (strip->ci >= range->begin[0] && strip->ci < range->end[0] && strip->cj >= range->begin[1] &&
            strip->cj < range->end[1] && lr_native_takes(range, strip->ci, strip->cj))
            strips[num_within++] = *strip;
    }
    return num_within;
}

/* The margin for rounding, in points of the grid. */
#define SLACK 1e-6

struct lr_native_hull lr_native_make_hull(const struct lr_native_scene *scene, int64_t pair,
                                          const struct lr_native_range *range)
{
    const struct lr_native_pair *at = &scene->pairs[pair];
    struct lr_native_hull hull;
    for (int n = 0; n < 2; n++) { /* both ends of the crystal columns begin .. end - 1 */
        const struct lr_native_module *module = &scene->modules[n == 0 ? at->i : at->j];
        const double from = (range->begin[n] - 0.5 * module->num_columns) * module->pitch;
        const double to = (range->end[n] - 0.5 * module->num_columns) * module->pitch;
        for (int k = 0; k < 2; k++) {
            hull.corner[2 * n][k] = module->centre[k] + from * module->tangent[k];
            hull.corner[2 * n + 1][k] = module->centre[k] + to * module->tangent[k];
        }
    }
    return hull;
}

/* Finds the points (begin, end) between two coordinates along an axis. */
static void points_between(const struct lr_native_scene *scene, int axis, const double between[2], int points[2])
{
    const double first = scene->points[axis][0], num = scene->num_points[axis];
    const double low = ceil((between[0] - first) / scene->spacing[axis] - SLACK);
    const double high = floor((between[1] - first) / scene->spacing[axis] + SLACK);
    points[0] = (int)fmin(fmax(low, 0.0), num);
    points[1] = (int)fmin(fmax(high + 1.0, 0.0), num);
}

void lr_native_hull_rows(const struct lr_native_scene *scene, const struct lr_native_hull *hull, int rows[2])
{
    double between[2] = {HUGE_VAL, -HUGE_VAL};
    for (int k = 0; k < 4; k++) {
        between[0] = fmin(between[0], hull->corner[k][1]);
        between[1] = fmax(between[1], hull->corner[k][1]);
    }
    points_between(scene, 1, between, rows);
}

void lr_native_hull_columns(const struct lr_native_scene *scene, const struct lr_native_hull *hull, int row,
                            int columns[2])
{
    double between[2] = {HUGE_VAL, -HUGE_VAL}, low = HUGE_VAL, high = -HUGE_VAL;
    for (int k = 0; k < 4; k++) {
        low = fmin(low, hull->corner[k][1]);
        high = fmax(high, hull->corner[k][1]);
    }
    const double y = fmin(fmax(scene->points[1][row], low), high);
    for (int k = 0; k < 4; k++) {
        for (int n = 0; n < k; n++) { /* the line at height y may cross the edge from a to b */
            const double *a = hull->corner[k], *b = hull->corner[n];
            const double rise = b[1] - a[1];
            if ((a[1] - y) * (b[1] - y) > 0.0) continue;
            const double share = rise != 0.0 ? (y - a[1]) / rise : 0.0;
            const double x = a[0] + share * (b[0] - a[0]), other = rise != 0.0 ? x : b[0];
            between[0] = fmin(between[0], fmin(x, other));
            between[1] = fmax(between[1], fmax(x, other));
        }
    }
    if (between[0] > between[1]) {
        columns[0] = columns[1] = 0;
        return;
    }
    points_between(scene, 0, between, columns);
}
