/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanner in the native backend's coordinates: along the axis of the columns of sample points, and across this axis
 * (docs/method/correspondence.md, "Columns in native"). Millimetres, double. */
#ifndef LR_CORRESPONDENCE_NATIVE_SCENE_H
#define LR_CORRESPONDENCE_NATIVE_SCENE_H

#include "model/lors/place.h"
#include "model/scanner/coincidence.h"
#include "operator/backend.h"

/* A module: a segment of crystal columns across the axis, and a row of cells along the axis. Cells are counted in
 * ascending order of the coordinate, whatever the module's numbering. */
struct lr_native_module {
    double centre[2], tangent[2], normal[2]; /* across */
    double pitch, face;
    int num_columns;
    double start_along; /* edge of the first cell */
    double pitch_along, face_along;
    int num_cells;
    int step, step_along; /* steps of the crystal number, from column to column and from cell to cell */
    int first_crystal;    /* crystal number of column 0, cell 0 */
};

struct lr_native_pair {
    int i, j;           /* modules, i < j */
    const float *along; /* [cells of i][cells of j] 1 for cells in coincidence, else 0; NULL = all 1 */
};

/* The scanner and the grid. Immutable once made. Pointers in params are borrowed. */
struct lr_native_scene {
    struct lr_backend_params params;
    int axis;      /* grid axis along the columns */
    int across[2]; /* the other two grid axes */
    struct lr_native_module *modules;
    struct lr_native_pair *pairs; /* the order of lr_lors.pairs */
    float **tables;               /* owned tables, to which pairs point */
    int num_tables;
    int num_points[3], num_samples[3]; /* across (2), along: sample points, and those of a voxel */
    int num_voxels[3];                 /* across (2), along */
    double *points[3];                 /* [num_points] coordinates */
    double spacing[3];
    int num_all_samples; /* number of sample points of a voxel */
};

/* errors: LR_USAGE, logged, if the backend cannot project this scanner; LR_FAILED. Finish is not needed after an
 * error. */
lr_status lr_native_scene_init(struct lr_native_scene *scene, const struct lr_backend_params *params);
void lr_native_scene_finish(struct lr_native_scene *scene);

/* Number of a crystal within its module. */
static inline int lr_native_crystal(const struct lr_native_module *module, int column, int cell)
{
    return module->first_crystal + column * module->step + cell * module->step_along;
}

/* Number of values of a block. A block holds the values [cells of i][cells of j] of column ci of module i and column cj
 * of module j, and has the number ci * (columns of j) + cj. */
static inline int64_t lr_native_block_size(const struct lr_native_scene *scene, int64_t pair)
{
    const struct lr_native_pair *at = &scene->pairs[pair];
    return (int64_t)scene->modules[at->i].num_cells * scene->modules[at->j].num_cells;
}

/* True if columns ci of i and cj of j may have LORs in coincidence. */
bool lr_native_columns_allowed(const struct lr_native_scene *scene, int64_t pair, int ci, int cj);

/* True if one LOR is in coincidence. cells: cells of i and j. */
bool lr_native_allowed(const struct lr_native_scene *scene, int64_t pair, const int columns[2], const int cells[2]);

/* True if the mask of a pair has one bit per LOR. */
static inline bool lr_native_mask_is_full(const struct lr_native_scene *scene, int64_t pair)
{
    return scene->params.lors->masks->pairs[pair].kind == LR_MASK_FULL;
}

/* --- the view from a column of sample points, across the axis. Modules are segments. The part of a primary crystal
 * column that is seen through a secondary one is a strip: an interval of the primary's coordinate u. Every point of the
 * column and every cell have the same strips. Along the axis, the edge of a secondary cell at b, seen from the point,
 * is projected to -b tau on the primary. tau is the ratio of the distances from the point to the primary and to the
 * secondary, and is linear in u. Lengths in mm. --- */

/* A module seen from a column. */
struct lr_native_side {
    const struct lr_native_module *module;
    double centre[2]; /* the module's centre, relative to the column */
    double foot;      /* coordinate of the module's centre, relative to the column's foot */
    double height;    /* height of the column over the module; the column sees the face if it is positive */
};

/* Lines through the column, from primary to secondary and back. */
struct lr_native_crossing {
    struct lr_native_side primary, secondary;
    bool i_is_primary;
    double tau[2]; /* tau at coordinate 0 of the primary, and its slope */
    /* Coordinate u of the primary is seen at -(on_second[0] + on_second[1] u) / tau(u) - secondary.foot of the
     * secondary. */
    double on_second[2];
    /* Coordinate w of the secondary is seen at -primary.height (on_first[0] + on_first[1] w) / (reach[0] + reach[1] w)
     * - primary.foot of the primary. */
    double reach[2], on_first[2];
};

struct lr_native_strip {
    float tau;     /* tau at the middle of the strip */
    float dtau;    /* change of tau from one end to the other; 0 for modules that are parallel across */
    float squared; /* squared distance across from the column to the middle */
    float width;   /* sampled mode: a line's share of the face */
    float share;   /* height * width / 2 pi */
    float slant;   /* coordinate of the middle relative to the foot */
    double tau_exactly;
    int parts;  /* number of parts of a primary cell along the axis */
    int ci, cj; /* crystal columns of the pair's modules */
};

/* Largest number of pieces of a face, across and along. */
enum { LR_NATIVE_MAX_PARTS = 32 };

/* True if the column sees both faces. point: coordinates across. */
bool lr_native_sees(const struct lr_native_scene *scene, int64_t pair, const double point[2],
                    struct lr_native_side sides[2]);

struct lr_native_crossing lr_native_cross(const struct lr_native_side sides[2], bool i_is_primary);

/* Columns begin[0] <= ci < end[0] of the pair's module i, and begin[1] <= cj < end[1] of module j. If there is a part,
 * only columns that have LORs of the part are taken. The sum of their places around the axis decides:
 * first + step[0] ci + step[1] cj. */
struct lr_native_range {
    int begin[2], end[2];
    const lr_lors *lors;
    const lr_selection *part; /* NULL = all columns */
    int first, step[2];
};

static inline bool lr_native_takes(const struct lr_native_range *range, int ci, int cj)
{
    return range->part == NULL ||
           lr_has_angle(range->lors, range->part, range->first + range->step[0] * ci + range->step[1] * cj);
}

/* Finds the strips of all columns of the range, in order along the primary. Returns the number of strips. */
int lr_native_find_strips(const struct lr_native_scene *scene, const struct lr_native_crossing *crossing,
                          const struct lr_native_range *range, struct lr_native_strip *strips);

#endif
