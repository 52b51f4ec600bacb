/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The image formats behind lr_image_read, lr_grid_read and lr_image_write, and what they share. */
#ifndef LR_IO_IMAGE_FORMATS_H
#define LR_IO_IMAGE_FORMATS_H

#include "io/files/keyed_text.h"
#include "io/files/number_type.h"
#include "io/files/output.h"

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
