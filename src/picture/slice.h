/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The orientation of slices in all pictures. LORaster's frame is that of a patient who lies on the back, head first: x
 * points to the patient's right side, y to the front and z to the head. Transaxial slices are seen from the feet, and
 * coronal slices from the front. Both have the patient's right side on the left of the picture. Sagittal slices have
 * the front on the left. */
#pragma once

#include <lr/picture.h>

/* Axes that grow to the left and upwards in a picture, for slices across x, y and z. */
extern const int lr_slice_axes[3][2];

/* A slice across an axis, for lr_picture_map. values: of the image; slice: the voxels' index along the axis. The colours
 * and the drawn size are left zero. */
lr_map_params lr_slice_map(const lr_grid *grid, const float *values, int axis, int slice);
