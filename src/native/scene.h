/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanner as the native backend sees it: along the axis of the columns and across it
 * (docs/method/correspondence.md, "Columns in native"). Millimetres, double. */
#ifndef LR_NATIVE_SCENE_H
#define LR_NATIVE_SCENE_H

#include "model/scanner/coincidence.h"
#include "operator/backend.h"

/* A module: a segment of crystal columns across, a row of cells along. Cells are counted along the
 * columns whatever the module's own numbering. */
struct lr_native_module {
    double centre[2], tangent[2], normal[2]; /* across */
    double pitch, face;
    int num_columns;
    double start_along; /* edge of the first cell */
    double pitch_along, face_along;
    int num_cells;
    int step, step_along; /* of the crystal number, from column to column and cell to cell */
    int first_crystal;    /* number of column 0, cell 0 */
};

struct lr_native_pair {
    int i, j;           /* modules, i < j */
    const float *along; /* [cells of i][cells of j] 1 where a separable mask lets the cells count
                           and 0 elsewhere; NULL = every one counts */
};

/* Immutable once made. params' pointers are borrowed. */
struct lr_native_scene {
    struct lr_backend_params params;
    int axis;      /* of the grid, along the columns */
    int across[2]; /* the other two */
    struct lr_native_module *modules;
    struct lr_native_pair *pairs; /* the order of lr_lors.pairs */
    float **tables;               /* that pairs point to */
    int num_tables;
    int num_points[3], num_samples[3]; /* across (2), along: sample points, and those of a voxel */
    int num_voxels[3];                 /* likewise */
    double *points[3];                 /* [num_points] coordinates */
    double spacing[3];
    int num_all_samples; /* of a voxel */
};

/* errors: LR_USAGE when columns cannot project this, with a sentence; LR_FAILED. On failure nothing
 * needs to be finished. */
lr_status lr_native_scene_init(struct lr_native_scene *scene, const struct lr_backend_params *params);
void lr_native_scene_finish(struct lr_native_scene *scene);

/* Number of a crystal within its module. */
static inline int lr_native_crystal(const struct lr_native_module *module, int column, int cell)
{
    return module->first_crystal + column * module->step + cell * module->step_along;
}

/* Values of module i's column 0 with j's column 0 and so on: a block holds [cells of i][cells of j],
 * and block ci * (columns of j) + cj belongs to columns ci and cj. */
static inline int64_t lr_native_block_size(const struct lr_native_scene *scene, int64_t pair)
{
    const struct lr_native_pair *at = &scene->pairs[pair];
    return (int64_t)scene->modules[at->i].num_cells * scene->modules[at->j].num_cells;
}

/* Whether columns ci of i and cj of j have LORs in coincidence at all; true where only single LORs
 * can tell. */
bool lr_native_columns_allowed(const struct lr_native_scene *scene, int64_t pair, int ci, int cj);

/* Whether one LOR is in coincidence. cells: of i and j. */
bool lr_native_allowed(const struct lr_native_scene *scene, int64_t pair, const int columns[2], const int cells[2]);

/* Whether the mask of a pair has one bit per LOR. */
static inline bool lr_native_mask_is_full(const struct lr_native_scene *scene, int64_t pair)
{
    return scene->params.lors->masks->pairs[pair].kind == LR_MASK_FULL;
}

#endif
