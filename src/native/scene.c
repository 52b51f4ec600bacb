/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "native/scene.h"

#include "base/log.h"
#include "base/mem.h"
#include "model/scanner/arrangement.h"

#include <stdlib.h>

/* --- what it refuses --- */

static lr_status refuse_axes(const struct lr_backend_params *params)
{
    return lr_error(params->log, LR_USAGE,
                    "backend native needs modules that share an axial direction along an axis of "
                    "the grid, and some modules of this scanner are tilted or turned: use backend "
                    "compute, or cpu");
}

static lr_status check(const struct lr_backend_params *params)
{
    if (params->mu != NULL) {
        return lr_error(params->log, LR_USAGE,
                        "backend native follows no lines through an attenuation image: give "
                        "attenuation as factors per LOR, or use backend compute, raster or cpu");
    }
    if (lr_lors_axial_axis(params->lors) < 0) return refuse_axes(params);
    if (lr_modules_may_hide(params->scanner)) {
        return lr_error(params->log, LR_USAGE,
                        "backend native needs a scanner none of whose modules can hide another, "
                        "and here one stands behind another's plane: use backend compute, or cpu");
    }
    return LR_OK;
}

/* --- modules --- */

static void describe_module(const struct lr_native_scene *scene, int index, struct lr_native_module *out)
{
    const lr_module *module = &scene->params.scanner->modules[index];
    const int along = lr_module_axial(module, scene->axis), over = 1 - along;
    const double *tangent = over == 0 ? module->u : module->v;
    const double *axial = along == 0 ? module->u : module->v;
    const bool is_reversed = axial[scene->axis] < 0.0;
    const int step_along = along == 0 ? 1 : module->crystals[0];
    double centre[3];
    lr_scanner_detection_centre(scene->params.scanner, index, centre);
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

static lr_status make_modules(struct lr_native_scene *scene)
{
    const lr_scanner *scanner = scene->params.scanner;
    scene->modules = lr_alloc(scanner->num_modules, sizeof(*scene->modules), "the modules", scene->params.log);
    if (scene->modules == NULL) return LR_FAILED;
    for (int m = 0; m < scanner->num_modules; m++)
        if (lr_module_axial(&scanner->modules[m], scene->axis) >= 0) describe_module(scene, m, &scene->modules[m]);
    return LR_OK;
}

/* --- masks --- */

static bool is_turned(const struct lr_native_scene *scene, const struct lr_native_pair *pair)
{
    return lr_module_axial(&scene->params.scanner->modules[pair->i], scene->axis) == 0;
}

static bool has_bit(const struct lr_native_scene *scene, uint32_t set, int64_t n)
{
    return (scene->params.lors->masks->words[set + n / 32] >> (n % 32) & 1u) != 0;
}

/* Of a module's crystals along the axis, as the scanner numbers them. */
static int scanner_cell(const struct lr_native_module *module, int cell)
{
    return module->step_along > 0 ? cell : module->num_cells - 1 - cell;
}

/* The set of a separable mask that speaks of cells along the axis. */
static uint32_t cells_set(const struct lr_native_scene *scene, int64_t index)
{
    const struct lr_pair_mask *mask = &scene->params.lors->masks->pairs[index];
    return is_turned(scene, &scene->pairs[index]) ? mask->offset_a : mask->offset_b;
}

static bool cells_allowed(const struct lr_native_scene *scene, int64_t index, int on_i, int on_j)
{
    const struct lr_native_pair *pair = &scene->pairs[index];
    const struct lr_native_module *i = &scene->modules[pair->i], *j = &scene->modules[pair->j];
    return has_bit(scene, cells_set(scene, index),
                   (int64_t)scanner_cell(i, on_i) * j->num_cells + scanner_cell(j, on_j));
}

bool lr_native_columns_allowed(const struct lr_native_scene *scene, int64_t index, int ci, int cj)
{
    const struct lr_native_pair *pair = &scene->pairs[index];
    const struct lr_pair_mask *mask = &scene->params.lors->masks->pairs[index];
    if (mask->kind != LR_MASK_SEPARABLE) return true;
    const uint32_t set = is_turned(scene, pair) ? mask->offset_b : mask->offset_a;
    return has_bit(scene, set, (int64_t)ci * scene->modules[pair->j].num_columns + cj);
}

bool lr_native_allowed(const struct lr_native_scene *scene, int64_t index, const int columns[2], const int cells[2])
{
    const struct lr_native_pair *pair = &scene->pairs[index];
    const int q = scanner_cell(&scene->modules[pair->i], cells[0]);
    const int s = scanner_cell(&scene->modules[pair->j], cells[1]);
    const lr_lors *lors = scene->params.lors;
    return is_turned(scene, pair) ? lr_coincidence_allows(lors, index, q, columns[0], s, columns[1])
                                  : lr_coincidence_allows(lors, index, columns[0], q, columns[1], s);
}

/* The pair's table of cells in coincidence; *full when that is all of them. */
static float *make_table(const struct lr_native_scene *scene, int64_t index, bool *full)
{
    const struct lr_native_pair *pair = &scene->pairs[index];
    const int num_i = scene->modules[pair->i].num_cells, num_j = scene->modules[pair->j].num_cells;
    float *table = lr_alloc((int64_t)num_i * num_j, sizeof(*table), "coincidence masks", scene->params.log);
    *full = true;
    for (int k = 0; table != NULL && k < num_i * num_j; k++) {
        table[k] = cells_allowed(scene, index, k / num_j, k % num_j) ? 1.0f : 0.0f;
        *full = *full && table[k] != 0.0f;
    }
    return table;
}

/* Whether the cells of two pairs are in coincidence alike. */
static bool same_cells(const struct lr_native_scene *scene, int64_t a, int64_t b)
{
    const struct lr_native_pair *one = &scene->pairs[a], *two = &scene->pairs[b];
    const struct lr_native_module *modules = scene->modules;
    return cells_set(scene, a) == cells_set(scene, b) && modules[one->i].num_cells == modules[two->i].num_cells &&
           modules[one->j].num_cells == modules[two->j].num_cells &&
           (modules[one->i].step_along > 0) == (modules[two->i].step_along > 0) &&
           (modules[one->j].step_along > 0) == (modules[two->j].step_along > 0);
}

/* Which pair was the first with each set of cells, so that equal ones share a table. */
struct sharing {
    int64_t *first; /* [num] pairs */
    int64_t num;
};

static lr_status find_table(struct lr_native_scene *scene, int64_t index, struct sharing *sharing)
{
    for (int64_t k = 0; k < sharing->num; k++) {
        if (same_cells(scene, index, sharing->first[k])) {
            scene->pairs[index].along = scene->pairs[sharing->first[k]].along;
            return LR_OK;
        }
    }
    bool full;
    float *table = make_table(scene, index, &full);
    if (table == NULL) return LR_FAILED;
    scene->tables[scene->num_tables++] = table;
    scene->pairs[index].along = full ? NULL : table;
    sharing->first[sharing->num++] = index;
    return LR_OK;
}

static lr_status make_tables(struct lr_native_scene *scene)
{
    const lr_lors *lors = scene->params.lors;
    struct sharing sharing = {0};
    lr_status status = LR_OK;
    scene->tables = lr_alloc(lors->num_pairs, sizeof(*scene->tables), "coincidence masks", scene->params.log);
    sharing.first = lr_alloc(lors->num_pairs, sizeof(*sharing.first), "coincidence masks", scene->params.log);
    if (scene->tables == NULL || sharing.first == NULL) status = LR_FAILED;
    for (int64_t k = 0; k < lors->num_pairs && status == LR_OK; k++)
        if (lors->masks->pairs[k].kind == LR_MASK_SEPARABLE) status = find_table(scene, k, &sharing);
    free(sharing.first);
    return status;
}

static lr_status make_pairs(struct lr_native_scene *scene)
{
    const lr_lors *lors = scene->params.lors;
    scene->pairs = lr_alloc(lors->num_pairs, sizeof(*scene->pairs), "pairs of modules", scene->params.log);
    if (scene->pairs == NULL) return LR_FAILED;
    for (int64_t k = 0; k < lors->num_pairs; k++) {
        scene->pairs[k].i = lors->pairs[k][0];
        scene->pairs[k].j = lors->pairs[k][1];
    }
    return make_tables(scene);
}

/* --- points --- */

static lr_status make_points(struct lr_native_scene *scene)
{
    const lr_grid *grid = scene->params.grid;
    const int axes[3] = {scene->across[0], scene->across[1], scene->axis};
    scene->num_all_samples = 1;
    for (int a = 0; a < 3; a++) {
        const int axis = axes[a], samples = scene->params.samples[axis];
        scene->num_samples[a] = samples;
        scene->num_voxels[a] = grid->size[axis];
        scene->num_points[a] = grid->size[axis] * samples;
        scene->spacing[a] = grid->voxel_mm[axis] / samples;
        scene->num_all_samples *= samples;
        scene->points[a] =
            lr_alloc(scene->num_points[a], sizeof(double), "the coordinates of sample points", scene->params.log);
        if (scene->points[a] == NULL) return LR_FAILED;
        for (int k = 0; k < scene->num_points[a]; k++) { /* see lr_grid_sample_point */
            const double offset = (k % samples + 0.5) / samples - 0.5;
            scene->points[a][k] = grid->origin_mm[axis] + (k / samples + offset) * grid->voxel_mm[axis];
        }
    }
    return LR_OK;
}

/* --- life --- */

lr_status lr_native_scene_init(struct lr_native_scene *scene, const struct lr_backend_params *params)
{
    LR_TRY(check(params));
    *scene = (struct lr_native_scene){.params = *params, .axis = lr_lors_axial_axis(params->lors)};
    scene->across[0] = scene->axis == 0 ? 1 : 0;
    scene->across[1] = scene->axis == 2 ? 1 : 2;
    lr_status status = make_modules(scene);
    status = status == LR_OK ? make_points(scene) : status;
    status = status == LR_OK ? make_pairs(scene) : status;
    if (status != LR_OK) lr_native_scene_finish(scene);
    return status;
}

void lr_native_scene_finish(struct lr_native_scene *scene)
{
    for (int k = 0; k < scene->num_tables; k++) free(scene->tables[k]);
    for (int k = 0; k < 3; k++) free(scene->points[k]);
    free(scene->tables);
    free(scene->pairs);
    free(scene->modules);
    *scene = (struct lr_native_scene){0};
}
