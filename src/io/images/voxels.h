/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Voxels in files, for image formats: where they are in our frame, and how they are read and written. */
#ifndef LR_IO_IMAGE_VOXELS_H
#define LR_IO_IMAGE_VOXELS_H

#include "io/files/number_type.h"
#include "io/files/output.h"

#include <lr/io.h>

/* --- where voxels are --- */

/* Orientation of a file's voxels in our frame. Index f counts the file's axes, k ours. */
struct lr_image_layout {
    int size[3];     /* along the file's axes */
    int axis[3];     /* ours, for each of the file's */
    bool flipped[3]; /* the file's axis runs against ours */
    lr_grid grid;    /* in our order and direction */
};

/* Position of the voxels according to the file, in mm: affine[k][f] is the step of our coordinate k from one voxel to
 * the next along the file's axis f, affine[k][3] the coordinate of the first voxel. */
struct lr_image_place {
    const char *path;
    const char *field; /* the header's field it comes from, for sentences: "sform" */
    int size[3];
    double affine[3][4];
};

/* errors: LR_BAD_INPUT for axes turned by more than 1e-4 rad against ours, for two along the same
 * direction, or a grid that lr_grid_check refuses. */
lr_status lr_image_layout_find(const struct lr_image_place *place, struct lr_image_layout *layout, const lr_log *log);

/* Puts one line along the file's first axis into the image; at: its place along the file's axes 1
 * and 2 (at[0] is not used). errors: LR_BAD_INPUT for a value that is not finite. */
struct lr_image_line {
    const char *path;
    const double *numbers; /* [layout->size[0]] */
    int at[3];
};

lr_status lr_image_layout_put(const struct lr_image_layout *layout, const struct lr_image_line *line, lr_image *image,
                              const lr_log *log);

/* --- raw voxels --- */

/* Uncompressed voxels in a file; value = number * slope + intercept. */
struct lr_voxels {
    const char *path;
    struct lr_number_type type;
    int64_t offset_bytes;
    double slope, intercept;
};

/* Reads the image; takes memory for it only after the file was found to be long enough.
 * errors: NULL, logged: LR_BAD_INPUT. */
lr_image *lr_voxels_read(const struct lr_voxels *voxels, const struct lr_image_layout *layout, const lr_log *log);

/* Length of an open file in bytes, or -1 for a folder and the like. */
int64_t lr_file_length(const char *path);

/* --- writing --- */

/* Appends an image as float32 little endian, its axes reversed where `reversed` says so. */
lr_status lr_voxels_write(struct lr_output *output, const lr_image *image, const bool reversed[3]);

/* A text header and its voxels in a second file. */
struct lr_image_pair {
    const char *path;      /* the header's */
    const char *data_path; /* the voxels' */
    const char *header;
    bool reversed[3];
};

/* Both files appear, or none that was not there before. */
lr_status lr_image_pair_write(const struct lr_image_pair *pair, const lr_image *image, const lr_log *log);

#endif
