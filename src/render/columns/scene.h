/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanner and the grid as shaders/columns/scene.glsl declares them. */
#ifndef LR_RENDER_COLUMNS_SCENE_H
#define LR_RENDER_COLUMNS_SCENE_H

#include "render/columns/columns.h"

/* Whether, seen from some point of the grid, faces of crystals may be so large that the expansion
 * of shaders/columns/exact.glsl is too coarse: where the grid comes near both modules of a
 * pair at once. An overlap is no larger than the farther face. */
bool lr_columns_may_be_near(const struct lr_columns *columns);

/* Uploads what does not depend on the pairs. */
lr_status lr_columns_upload_scene(struct lr_columns *columns);

/* Module pairs list[begin .. end-1]. first_values: [list], where their values begin; NULL: one after
 * the other. */
struct gl_buffer *lr_columns_upload_pairs(const struct lr_columns *columns, const struct lr_pair_list *list,
                                          int64_t begin, int64_t end, const int64_t *first_values);

/* Sample points of the grid along one of its axes. */
int lr_columns_num_points(const struct lr_columns *columns, int axis);

/* From the grid to the nearest module's plane; 0 where one reaches it. */
double lr_columns_nearest_mm(const struct lr_columns *columns);

/* How much more a thread that walks through voxels may have to do than with one point in each: a
 * dispatch has as many fewer threads, since a driver's watchdog gives it a few seconds. */
int lr_columns_work_of_thread(const struct lr_columns *columns);

/* Sample point k along an axis of the grid, mm. */
double lr_columns_coordinate(const struct lr_columns *columns, int axis, int k);

/* The middle of the grid's points along an axis, mm; places along the columns are counted from it. */
double lr_columns_middle(const struct lr_columns *columns, int axis);

/* Whether a voxel has one point along the column, also in the grid that programs are made for. */
bool lr_columns_has_one_point(const struct lr_columns *columns);

/* Crystals of a module: across the columns, and along them. */
void lr_columns_count_crystals(const struct lr_columns *columns, int module, int counts[2]);

/* Puts modules, the grid's points and masks into a pass. */
void lr_columns_bind_scene(const struct lr_columns *columns, struct gl_pass *pass);

/* The uniforms of every pass, without `first` and `count`. */
struct lr_columns_pass lr_columns_uniforms(const struct lr_columns *columns);

#endif
