/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The image formats behind lr_image_read, lr_grid_read and lr_image_write. */
#ifndef LR_IO_IMAGE_FORMATS_H
#define LR_IO_IMAGE_FORMATS_H

#include "io/files/keyed_text.h"

#include <lr/io.h>

/* One format. Readers bring voxels into the order and direction of our frame. Writers get images
 * whose grid is good and whose values are finite. */
struct lr_image_format {
    lr_image *(*read)(const char *path, const lr_log *log);
    lr_status (*read_grid)(const char *path, lr_grid *grid, const lr_log *log);
    lr_status (*write)(const char *path, const lr_image *image, const lr_log *log);
    /* Reads one volume of several; NULL: such files are refused. */
    lr_image *(*read_frame)(const char *path, int frame, const lr_log *log);
    int (*count_frames)(const char *path);
};

extern const struct lr_image_format lr_image_nifti;     /* .nii, .nii.gz */
extern const struct lr_image_format lr_image_interfile; /* .hv + .v of STIR, .hdr + .img of CASToR */
extern const struct lr_image_format lr_image_metaimage; /* .mhd + .raw, .mha */
extern const struct lr_image_format lr_image_npy;       /* .npy; without a grid only written */

extern const struct lr_known_keys lr_interfile_image_keys, lr_metaimage_keys;

/* A header as STIR writes it for an image on `grid` whose voxels are in the file data_name. room:
 * 8 KiB and the name's length suffice. */
void lr_interfile_print_stir(char *text, size_t room, const char *data_name, const lr_grid *grid);

/* A NumPy array [nz][ny][nx] as an image on `grid`. NULL, logged: LR_BAD_INPUT. */
lr_image *lr_npy_image_read(const char *path, const lr_grid *grid, const lr_log *log);

#endif
