/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Correspondence images of a batch, in one atlas: cluster paper, section II. */
#ifndef LR_RENDER_CORRESPONDENCE_H
#define LR_RENDER_CORRESPONDENCE_H

#include "render/scene.h"

struct lr_correspondence {
    struct lr_scene *scene;
    const struct lr_plan *plan;
    struct gl_program *program; /* NULL before the first batch, or before it is started */
    struct gl_target *atlas;    /* RG32UI: crystal of the secondary + 1 (0: none), bits of the weight;
                                depth where modules may hide others. With path length also R32F, in
                                mm */
    struct gl_buffer *images, *draws;
    bool path_length, single;
};

/* path_length: also keeps the distance between the hits, for pictures. */
lr_status lr_correspondence_init(struct lr_correspondence *images, struct lr_scene *scene, const struct lr_plan *plan,
                                 bool path_length);
/* The same for pictures of one module at a time, with path length, in an atlas of one tile. Takes
 * batches of one image. */
lr_status lr_correspondence_init_single(struct lr_correspondence *images, struct lr_scene *scene,
                                        const struct lr_plan *plan);
void lr_correspondence_finish(struct lr_correspondence *images);

/* Starts building the program, unless it was before: with others, side by side. */
lr_status lr_correspondence_start(struct lr_correspondence *images);

/* Renders a batch into the atlas. */
lr_status lr_correspondence_render(struct lr_correspondence *images, const struct lr_batch *batch);

#endif
