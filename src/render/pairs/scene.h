/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanner and the grid as shaders/pairs/scene.glsl declares them. */
#ifndef LR_RENDER_PAIRS_SCENE_H
#define LR_RENDER_PAIRS_SCENE_H

#include "render/pairs/pairs.h"

/* The block of shaders/pairs/scene.glsl. */
struct lr_pairs_pass {
    int32_t num_voxels[4], num_samples[4], range[4], list[4];
    double first_voxel[4], voxel[4];
    float scale[4];
};
_Static_assert(sizeof(struct lr_pairs_pass) == 144, "the shaders' layout");

/* Uploads what does not depend on the pairs of a window, and finds out what programs need. */
lr_status lr_pairs_upload_scene(struct lr_pairs *pairs);

/* Into how many parts along each axis a crystal is cut at most, as points of the grid see it. */
int lr_pairs_most_parts(const struct lr_pairs *pairs, int i, int j);

/* Module pairs list[begin .. end-1], their values counted from the first one's. */
struct gl_buffer *lr_pairs_upload_list(const struct lr_pairs *pairs, const struct lr_pair_list *list,
                                       const int64_t range[2]);

/* The uniforms of every pass, without what a pass does of it all. */
struct lr_pairs_pass lr_pairs_uniforms(const struct lr_pairs *pairs);

/* Puts modules and masks into a pass. */
void lr_pairs_bind_scene(const struct lr_pairs *pairs, struct gl_pass *pass);

#endif
