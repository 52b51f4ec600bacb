/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "direct/factor_table.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/scanner/coincidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Directions closer than this to a view's border, in intervals, are left to lr_view_set_find, which knows
 * to which side ties go. */
static const double near_border = 1e-6;

static const double degree = 3.14159265358979323846 / 180.0;

/* --- views of LORs --- */

/* The inside of the intervals of a direction's own view, of which nearly all LORs are: borders in azimuth as
 * directions across the axis, those in tilt as slopes. */
struct inside {
    int view; /* -1: none */
    double azimuth[2][2], slope[2];
};

static struct inside find_inside(const lr_view_set *set, const struct lr_factor_direction *direction)
{
    struct inside inside = {.view = direction->view};
    if (inside.view < 0) return inside;
    const lr_view middle = lr_view_set_at(set, inside.view);
    for (int n = 0; n < 2; n++) {
        const double side = (n == 0 ? -1 : 1) * (1 - near_border);
        const double azimuth = (middle.azimuth_deg + side * 90.0 / set->azimuths) * degree;
        const double tilt = (middle.tilt_deg + side * set->acceptance_deg / set->tilts) * degree;
        inside.azimuth[n][0] = cos(azimuth);
        inside.azimuth[n][1] = sin(azimuth);
        inside.slope[n] = tan(tilt);
    }
    return inside;
}

static int view_of(const lr_view_set *set, const struct inside *inside, const double along[3])
{
    if (inside->view >= 0 && set->azimuths > 1) {
        const double(*border)[2] = inside->azimuth;
        const double across = hypot(along[0], along[1]);
        if (border[0][0] * along[1] - border[0][1] * along[0] > 0 &&
            along[0] * border[1][1] - along[1] * border[1][0] > 0 && along[2] > inside->slope[0] * across &&
            along[2] < inside->slope[1] * across)
            return inside->view;
    }
    return lr_view_set_find(set, along);
}

/* --- values of LORs --- */

/* What lines between two crystals are worth; view -1: they are not measured, or in no view. */
struct lor_value {
    int crystals[2];
    int view;
    float value;
};

static bool is_in_coincidence(const lr_lors *lors, int low, int high, const int modules[2])
{
    const lr_scanner *scanner = lors->scanner;
    const int64_t pair = modules[0] != modules[1] ? lr_lors_pair(lors, modules[0], modules[1]) : -1;
    if (pair < 0) return false;
    const int a = low - scanner->first_crystal[modules[0]];
    const int b = high - scanner->first_crystal[modules[1]];
    const int nu_a = scanner->modules[modules[0]].crystals[0];
    const int nu_b = scanner->modules[modules[1]].crystals[0];
    return lr_coincidence_allows(lors, pair, a % nu_a, a / nu_a, b % nu_b, b / nu_b);
}

static struct lor_value value_of(const struct lr_factor_scene *scene, const struct inside *inside, int a, int b)
{
    const struct lr_factor_crystal *ends[2] = {&scene->crystals[a], &scene->crystals[b]};
    struct lor_value found = {.crystals = {a, b}, .view = -1};
    const bool ascend = a < b;
    const int modules[2] = {ends[!ascend]->module, ends[ascend]->module};
    if (is_in_coincidence(scene->lors, ascend ? a : b, ascend ? b : a, modules)) {
        double along[3];
        vec_sub(ends[1]->hit_mm, ends[0]->hit_mm, along);
        found.view = view_of(&scene->set, inside, along);
        found.value = ends[0]->efficiency * ends[1]->efficiency;
    }
    return found;
}

/* --- filling --- */

/* A table at work. */
struct work {
    struct lr_factor_table *table;
    const struct lr_factor_scene *scene;
    const struct lr_factor_direction *direction;
    struct lr_factor_worker *worker;
    struct inside inside;
    int room;                      /* planes */
    struct lr_factor_plane *plane; /* the last one asked for */
};

/* Cells whose middles reach one cell beyond the voxels' centres. */
static void find_size(const struct work *work)
{
    const lr_grid *grid = &work->scene->grid;
    for (int n = 0; n < 2; n++) {
        const double *axis = work->direction->axes[1 + n];
        double low_mm = 0, high_mm = 0;
        for (int k = 0; k < 3; k++) {
            const double first_mm = axis[k] * grid->origin_mm[k];
            const double last_mm = first_mm + axis[k] * (grid->size[k] - 1) * grid->voxel_mm[k];
            low_mm += fmin(first_mm, last_mm);
            high_mm += fmax(first_mm, last_mm);
        }
        const double cell_mm = work->scene->cell_mm[n];
        work->table->first_mm[n] = low_mm - cell_mm;
        work->table->size[n] = (int)ceil((high_mm - low_mm) / cell_mm) + 3;
    }
}

static lr_status open_plane(struct work *work, int view)
{
    struct lr_factor_table *table = work->table;
    for (int k = 0; k < table->num_planes; k++) {
        if (table->planes[k].view == view) {
            work->plane = &table->planes[k];
            return LR_OK;
        }
    }
    if (table->num_planes == work->room) {
        const int room = 2 * work->room + 4;
        struct lr_factor_plane *planes = lr_resize(table->planes, room, sizeof(*planes), "tables of lines", NULL);
        if (planes == NULL) return LR_FAILED;
        table->planes = planes;
        work->room = room;
    }
    const int64_t cells = (int64_t)table->size[0] * table->size[1];
    work->plane = &table->planes[table->num_planes];
    *work->plane = (struct lr_factor_plane){
        .view = view,
        .low = {table->size[0], table->size[1]},
        .high = {-1, -1},
        .cells = lr_alloc(cells, sizeof(float), "a table of lines", NULL),
    };
    if (work->plane->cells == NULL) return LR_FAILED;
    table->num_planes++;
    return LR_OK;
}

static void follow(const struct work *work)
{
    const struct lr_factor_table *table = work->table;
    struct lr_bundle_lines lines = {.size = {0}};
    memcpy(lines.along, work->direction->axes[0], sizeof(lines.along));
    for (int n = 0; n < 2; n++) {
        const int per_cell = work->scene->lines_per_cell[n];
        memcpy(lines.across[n], work->direction->axes[1 + n], sizeof(lines.across[n]));
        lines.step_mm[n] = work->scene->cell_mm[n] / per_cell;
        lines.first_mm[n] =
            table->first_mm[n] - 0.5 * work->scene->cell_mm[n] + work->direction->shift[n] * lines.step_mm[n];
        lines.size[n] = table->size[n] * per_cell;
    }
    lr_bundle_follow(&work->worker->bundle, &lines);
}

/* Adds one row of lines, of one layer on either side, to the cells that hold them. */
static lr_status add_row(struct work *work, int k, const int32_t *backward, const int32_t *forward)
{
    const struct lr_factor_table *table = work->table;
    const int *per_cell = work->scene->lines_per_cell;
    const int64_t row = (int64_t)(k / per_cell[1]) * table->size[0];
    struct lor_value lor = {.crystals = {-1, -1}, .view = -1};
    for (int i = 0; i < table->size[0] * per_cell[0]; i++) {
        const int a = backward[i], b = forward[i];
        if (a < 0 || b < 0) continue;
        if (a != lor.crystals[0] || b != lor.crystals[1]) lor = value_of(work->scene, &work->inside, a, b);
        if (lor.view < 0) continue;
        if (work->plane == NULL || work->plane->view != lor.view) LR_TRY(open_plane(work, lor.view));
        work->plane->cells[row + i / per_cell[0]] += lor.value;
    }
    return LR_OK;
}

static lr_status add_lines(struct work *work)
{
    const struct lr_bundle *bundle = &work->worker->bundle;
    const int width = work->table->size[0] * work->scene->lines_per_cell[0];
    for (int k = 0; k < work->table->size[1] * work->scene->lines_per_cell[1]; k++) {
        const int64_t first = (int64_t)k * width;
        for (int a = 0; a < bundle->num_layers; a++) {
            for (int b = 0; b < bundle->num_layers; b++) {
                LR_TRY(add_row(work, k, lr_bundle_crystals(bundle, a, 0) + first,
                               lr_bundle_crystals(bundle, b, 1) + first));
            }
        }
    }
    return LR_OK;
}

/* --- attenuation --- */

static int64_t size_of_integrals(const struct lr_factor_scene *scene, const int size[2], int integrals[2])
{
    for (int n = 0; n < 2; n++) integrals[n] = (int)(size[n] * scene->cell_mm[n] / scene->mu_step_mm) + 2;
    return (int64_t)integrals[0] * integrals[1];
}

/* Of mu along the line at these places of the two axes across, as far as crystals may be. */
static double integrate(const struct work *work, const double place_mm[2])
{
    const double(*axes)[3] = work->direction->axes;
    const double slant = hypot(axes[0][0], axes[0][1]);
    const double outer_mm = work->scene->outer_mm;
    if (fabs(place_mm[0]) >= outer_mm) return 0;
    const double half_mm = sqrt(outer_mm * outer_mm - place_mm[0] * place_mm[0]) / slant;
    const double nearest_mm = place_mm[1] * axes[0][2] / slant;
    double ends[2][3];
    for (int n = 0; n < 2; n++) {
        double point_mm[3] = {0};
        vec_add_scaled(point_mm, place_mm[0], axes[1], point_mm);
        vec_add_scaled(point_mm, place_mm[1], axes[2], point_mm);
        vec_add_scaled(point_mm, nearest_mm + (n == 0 ? -half_mm : half_mm), axes[0], point_mm);
        lr_mu_lines_place(&work->scene->mu, point_mm, ends[n]);
    }
    return lr_mu_lines_integral(&work->scene->mu, ends[0], ends[1]);
}

/* Point (i, k) of the lattice of integrals, computed when it is first asked for. */
static double integral_at(const struct work *work, int width, int i, int k)
{
    double *known = &work->worker->integrals[(int64_t)k * width + i];
    if (isnan(*known)) {
        const double step_mm = work->scene->mu_step_mm;
        *known = integrate(
            work, (const double[2]){work->table->first_mm[0] + i * step_mm, work->table->first_mm[1] + k * step_mm});
    }
    return *known;
}

/* Survival at the middle of a cell, by the integrals around it. */
static double survival(const struct work *work, int width, int i, int k)
{
    const double x = i * work->scene->cell_mm[0] / work->scene->mu_step_mm;
    const double y = k * work->scene->cell_mm[1] / work->scene->mu_step_mm;
    const int x0 = (int)x, y0 = (int)y;
    double sum = 0;
    for (int n = 0; n < 4; n++) {
        const int dx = n % 2, dy = n / 2;
        const double weight = (dx ? x - x0 : 1 - (x - x0)) * (dy ? y - y0 : 1 - (y - y0));
        sum += weight > 0 ? weight * integral_at(work, width, x0 + dx, y0 + dy) : 0;
    }
    return exp(-sum);
}

/* Survival of all cells' lines is asked for, none of which is known yet. Returns how many integrals lie side by
 * side; 0 without a map. */
static int forget_integrals(const struct work *work)
{
    int integrals[2] = {0};
    if (work->scene->has_mu && work->table->num_planes > 0) {
        const int64_t count = size_of_integrals(work->scene, work->table->size, integrals);
        for (int64_t n = 0; n < count; n++) work->worker->integrals[n] = NAN;
    }
    return integrals[0];
}

/* Makes sums over the lines of cells means of what reaches the crystals, and finds where these are. */
static void scale_plane(const struct work *work, struct lr_factor_plane *plane, int integrals)
{
    const struct lr_factor_scene *scene = work->scene;
    const int *size = work->table->size;
    const int layers = work->worker->bundle.num_layers;
    const double norm = 1.0 / ((double)scene->lines_per_cell[0] * scene->lines_per_cell[1] * layers * layers);
    for (int64_t n = 0; n < (int64_t)size[0] * size[1]; n++) {
        const int at[2] = {(int)(n % size[0]), (int)(n / size[0])};
        if (plane->cells[n] == 0.0f) continue;
        const double reach = integrals > 0 ? survival(work, integrals, at[0], at[1]) : 1;
        plane->cells[n] = (float)(plane->cells[n] * norm * reach);
        for (int axis = 0; axis < 2; axis++) {
            plane->low[axis] = at[axis] < plane->low[axis] ? at[axis] : plane->low[axis];
            plane->high[axis] = at[axis] > plane->high[axis] ? at[axis] : plane->high[axis];
        }
    }
}

lr_status lr_factor_table_fill(struct lr_factor_table *table, const struct lr_factor_scene *scene,
                               const struct lr_factor_direction *direction, struct lr_factor_worker *worker)
{
    struct work work = {.table = table,
                        .scene = scene,
                        .direction = direction,
                        .worker = worker,
                        .inside = find_inside(&scene->set, direction)};
    *table = (struct lr_factor_table){.planes = NULL};
    find_size(&work);
    follow(&work);
    LR_TRY(add_lines(&work));
    const int integrals = forget_integrals(&work);
    for (int k = 0; k < table->num_planes; k++) scale_plane(&work, &table->planes[k], integrals);
    return LR_OK;
}

void lr_factor_table_finish(struct lr_factor_table *table)
{
    for (int k = 0; k < table->num_planes; k++) free(table->planes[k].cells);
    free(table->planes);
    *table = (struct lr_factor_table){.planes = NULL};
}

lr_status lr_factor_worker_init(struct lr_factor_worker *worker, const struct lr_factor_scene *scene, const lr_log *log)
{
    *worker = (struct lr_factor_worker){.integrals = NULL};
    const int64_t lines =
        (int64_t)scene->most_size[0] * scene->lines_per_cell[0] * scene->most_size[1] * scene->lines_per_cell[1];
    LR_TRY(lr_bundle_init(&worker->bundle, scene->lors->scanner, lines, log));
    if (scene->has_mu) {
        int integrals[2];
        const int64_t room = size_of_integrals(scene, scene->most_size, integrals);
        worker->integrals = lr_alloc(room, sizeof(*worker->integrals), "line integrals", log);
    }
    return scene->has_mu && worker->integrals == NULL ? LR_FAILED : LR_OK;
}

void lr_factor_worker_finish(struct lr_factor_worker *worker)
{
    lr_bundle_finish(&worker->bundle);
    free(worker->integrals);
    *worker = (struct lr_factor_worker){.integrals = NULL};
}
