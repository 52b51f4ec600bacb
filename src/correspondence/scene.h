/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanner on the device: modules, crystals, pairs and coincidence masks, in the layout of
 * shaders/correspondence/{scene,lor,coincidence}.glsl. */
#pragma once

#include "correspondence/plan.h"
#include "gl/pass.h"
#include "gl/resource.h"

#include <lr/scanner.h>

/* The coincidence masks of all module pairs. A struct of zeros has none. */
struct lr_scene_masks {
    struct gl_buffer *entries, *words;
    bool any; /* true if some pair has LORs out of coincidence */
};

/* errors: LR_FAILED. The caller destroys the buffers that were made, even after an error. */
lr_status lr_scene_masks_init(struct lr_scene_masks *masks, struct gl_context *ctx, const lr_lors *lors);

struct lr_scene {
    struct gl_context *ctx;
    const lr_scanner *scanner;
    const lr_lors *lors;
    struct gl_buffer *modules, *crystal_module, *pairs;
    struct lr_scene_masks masks;
    struct lr_pair_window window; /* the window whose pairs are in `pairs`; empty at first */
    struct gl_texture *mu;        /* 3-D, 1/mm; NULL without absorption */
    float mu_origin_mm[3], mu_per_mm[3];
    int mu_steps;
};

/* An attenuation map; mu NULL = none. */
struct lr_scene_absorption {
    const lr_image *mu;
    int steps;
};

/* Uploads the scanner and the attenuation map. *scene is empty after an error. The context must be current. */
lr_status lr_scene_init(struct lr_scene *scene, struct gl_context *ctx, const lr_lors *lors,
                        const struct lr_scene_absorption *absorption);
void lr_scene_finish(struct lr_scene *scene);

/* Numbers LORs relative to the first LOR of the window, in the order of its pairs. Other pairs get no numbers. The call
 * does nothing if the window is set already and has no list of pairs. */
lr_status lr_scene_set_window(struct lr_scene *scene, const struct lr_pair_window *window);

/* Binds the scene's buffers and the attenuation map to a pass. */
void lr_scene_bind(const struct lr_scene *scene, struct gl_pass *pass);

/* The define RAYS of programs: the number of rays per crystal edge. */
struct lr_rays_define {
    char text[12];
    struct gl_define defines[8]; /* room for six more; the last entry has a NULL name */
};
void lr_rays_define_init(struct lr_rays_define *define, int rays);

/* --- boxes of crystals --- */

/* Modules as boxes of crystals, for the compute passes:
 * docs/method/correspondence.md, "Penetration". */

/* One module in the buffer `Boxes` of shaders/correspondence/target_penetration.glsl. */
struct lr_penetration_box {
    uint32_t gap_strata[2]; /* number of strata of the gap between two faces, along u and v */
    uint32_t depth_strata;
    float depth_mm, mu_per_mm;
};

/* Uploads the boxes of all modules. errors: NULL, logged. */
struct gl_buffer *lr_penetration_boxes(struct gl_context *ctx, const lr_scanner *scanner, int rays);

/* Returns the largest number of lines that an image needs. They pass through three sides of a module's box. */
int64_t lr_penetration_most_lines(const lr_scanner *scanner, int rays);
