/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"

#include <lr/direct.h>
#include <stdlib.h>
#include <string.h>

lr_histo_images *lr_histo_images_create(const lr_grid *grid, const lr_view *views, int num_views, const lr_log *log)
{
    if (lr_grid_check(grid, log) != LR_OK) return NULL;
    lr_histo_images *histo = lr_alloc(1, sizeof(*histo), "histo-images", log);
    if (histo == NULL) return NULL;
    histo->grid = *grid;
    histo->num_views = num_views;
    histo->views = lr_alloc(num_views, sizeof(*histo->views), "histo-images", log);
    histo->values = lr_alloc(num_views * lr_grid_num_voxels(grid), sizeof(*histo->values), "histo-images", log);
    if (histo->views == NULL || histo->values == NULL) {
        lr_histo_images_destroy(histo);
        return NULL;
    }
    memcpy(histo->views, views, (size_t)num_views * sizeof(*views));
    return histo;
}

void lr_histo_images_destroy(lr_histo_images *histo)
{
    if (histo != NULL) {
        free(histo->values);
        free(histo->views);
        free(histo);
    }
}
