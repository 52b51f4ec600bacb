/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/updates.h"

#include "base/log.h"
#include "cuda_interop/direct/launch.h"
#include "cuda_interop/direct/plans.h"
#include "cuda_interop/lend.h"

enum { MOST_IMAGES = 4 };

/* An image that is out. */
static lr_status describe(const struct lr_direct_compute *compute, const struct lr_direct_image *from,
                          lr_cuda_image *image)
{
    const struct lr_direct_layout *layout = &compute->layout;
    const struct lr_cuda_object object = {from->texture, from->buffer};
    const lr_log *log = compute->params.log;
    *image = (lr_cuda_image){.extent = {layout->quads, layout->size[0]}};
    for (int k = 0; from->has_margins && k < 3; k++) image->margin[k] = layout->margin[k];
    for (int k = 0; k < 2; k++) image->extent[k] += 2 * image->margin[k];
    if (from->buffer != NULL)
        image->texels = lr_cuda_address(&object, log);
    else
        image->surface = lr_cuda_surface(&object, log);
    return image->texels != NULL || image->surface != 0 ? LR_OK : LR_FAILED;
}

/* Takes and describes some images; those that are NULL or not there become zero. */
static lr_status open_images(const struct lr_direct_compute *compute,
                             const struct lr_direct_image *const from[MOST_IMAGES], lr_cuda_image images[MOST_IMAGES])
{
    struct lr_cuda_object objects[MOST_IMAGES];
    int count = 0;
    for (int k = 0; k < MOST_IMAGES; k++)
        if (from[k] != NULL && lr_direct_image_exists(from[k]))
            objects[count++] = (struct lr_cuda_object){from[k]->texture, from[k]->buffer};
    LR_TRY(lr_cuda_take(objects, count, compute->ctx));
    for (int k = 0; k < MOST_IMAGES; k++) {
        images[k] = (lr_cuda_image){0};
        if (from[k] != NULL && lr_direct_image_exists(from[k])) LR_TRY(describe(compute, from[k], &images[k]));
    }
    return LR_OK;
}

lr_status lr_cuda_find_discrepancy(const struct lr_direct_compute *compute, int what,
                                   const struct lr_direct_view_data *data, const struct lr_direct_image *histo)
{
    const struct lr_direct_image *const from[MOST_IMAGES] = {histo, &data->counts, &data->additive, &data->factors};
    lr_cuda_image images[MOST_IMAGES];
    LR_TRY(open_images(compute, from, images));
    const lr_cuda_discrepancy pass = {.layout = lr_cuda_layout_of(compute),
                                      .what = what,
                                      .histo = images[0],
                                      .counts = images[1],
                                      .additive = images[2],
                                      .factors = images[3]};
    return lr_cuda_check(lr_cuda_launch_discrepancy(&pass), "a discrepancy", compute->params.log);
}

lr_status lr_cuda_change_image(const struct lr_direct_compute *compute, const struct lr_direct_change *change,
                               const struct lr_direct_image *image)
{
    const struct lr_direct_image *const from[MOST_IMAGES] = {image, change->by, change->sensitivity};
    lr_cuda_image images[MOST_IMAGES];
    LR_TRY(open_images(compute, from, images));
    const lr_cuda_change pass = {.layout = lr_cuda_layout_of(compute),
                                 .what = change->what,
                                 .lambda = change->lambda,
                                 .image = images[0],
                                 .by = images[1],
                                 .sensitivity = images[2]};
    return lr_cuda_check(lr_cuda_launch_change(&pass), "an update", compute->params.log);
}
