/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One correspondence image as a person looks at it, with the distance between the hits. */
#ifndef LR_RENDER_PICTURE_H
#define LR_RENDER_PICTURE_H

#include "render/raster/correspondence.h"

#include <lr/operator.h>

struct lr_picture_request {
    const double *point_mm; /* [3] */
    int module;             /* primary */
};

/* images: made by lr_correspondence_init_single. pixels: [rays * nv][rays * nu] of the module. The scene's window
 * holds all LORs. */
lr_status lr_picture_render(struct lr_correspondence *images, struct lr_plan *plan,
                            const struct lr_picture_request *request, lr_pixel *pixels);

#endif
