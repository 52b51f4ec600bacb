/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The image formats of lr_image_read, lr_grid_read and lr_image_write. All formats share the layout, reading and
 * writing of voxels. */
#pragma once

#include "base/mem.h"
#include "io/files/keyed_text.h"
#include "io/files/number_type.h"
#include "io/files/output.h"

#include <lr/io.h>

/* The endings of images' names, for messages. */
#define LR_IMAGE_ENDINGS ".nii or .nii.gz (NIfTI), .hv (STIR), .hdr (CASToR), .mhd or .mha (MetaImage), or .npy"

/* The volume to be read from an image file. */
struct lr_image_request {
    const char *path;
    int frame;                   /* number of the volume, from 1; 0 = the file must have only one */
    const lr_progress *progress; /* called for each slice, and can stop the reading; NULL = none */
    const lr_log *log;
};

/* One format. Readers return voxels in the order and direction of LORaster's frame. Writers get images with a valid
 * grid and finite values. */
struct lr_image_format {
    /* Reads the grid and, if `image` is not NULL, the image. */
    lr_status (*read)(const struct lr_image_request *request, lr_grid *grid, lr_image **image);
    lr_status (*write)(const char *path, const lr_image *image, const lr_log *log);
    /* Returns the number of volumes, and their distance in seconds, 0 = not known. NULL = files of several volumes are
     * refused */
    int (*count_frames)(const char *path, double *step_s);
};

extern const struct lr_image_format lr_image_nifti;     /* .nii, .nii.gz */
extern const struct lr_image_format lr_image_interfile; /* .hv + .v of STIR, .hdr + .img of CASToR */
extern const struct lr_image_format lr_image_metaimage; /* .mhd + .raw, .mha */
extern const struct lr_image_format lr_image_npy;       /* .npy; reading it needs a given grid */

extern const struct lr_known_keys lr_interfile_image_keys, lr_metaimage_keys, lr_nifti_keys;

/* Writes .nii or .nii.gz, with a fourth axis if there are several images. Values are finite. */
lr_status lr_nifti_write(const char *path, const lr_image_frames *frames, const lr_log *log);

/* Prints STIR's header of an image on `grid`. data_name: the file with the voxels. */
void lr_interfile_print_stir(struct lr_text *text, const char *data_name, const lr_grid *grid);

/* Reads a NumPy array [nz][ny][nx] as an image on `grid`. errors: NULL, logged: LR_BAD_INPUT. */
lr_image *lr_npy_image_read(const char *path, const lr_grid *grid, const lr_log *log);

/* --- places of voxels --- */

/* Orientation of a file's voxels in LORaster's frame. Index f counts the file's axes, k the frame's axes. */
struct lr_image_layout {
    int size[3];     /* [f]: number of voxels */
    int axis[3];     /* [f]: the frame's axis along the file's axis f */
    bool flipped[3]; /* [f]: axis f of the file points against the frame's axis */
    lr_grid grid;    /* the grid in the frame's order and direction */
};

/* Position of the voxels according to the file, in mm. affine[k][f]: step of coordinate k between neighbouring voxels
 * along the file's axis f. affine[k][3]: coordinate k of the first voxel. */
struct lr_image_place {
    const char *path;
    const char *field; /* the header field that gives the position, for messages: "sform" */
    int size[3];
    double affine[3][4];
};

/* Finds the layout. errors: LR_BAD_INPUT for axes tilted by more than 1e-4 rad from x, y and z, for two axes along the
 * same direction, or for a grid that lr_grid_check refuses. */
lr_status lr_image_layout_find(const struct lr_image_place *place, struct lr_image_layout *layout, const lr_log *log);

/* A line of voxels along the file's first axis. at: index of the line along the file's axes 1 and 2; at[0] is not
 * used. */
struct lr_image_line {
    const char *path;
    const double *numbers; /* [layout->size[0]] */
    int at[3];
};

/* Puts a line into the image. errors: LR_BAD_INPUT for a value that is not finite. */
lr_status lr_image_layout_put(const struct lr_image_layout *layout, const struct lr_image_line *line, lr_image *image,
                              const lr_log *log);

/* --- raw voxels --- */

/* Uncompressed voxels in a file; value = number * slope + intercept. */
struct lr_voxels {
    const char *path;
    struct lr_number_type type;
    int64_t offset_bytes;
    double slope, intercept;
    const lr_progress *progress; /* as in struct lr_image_request */
};

/* Checks that `frame` is the number of one of a file's `frames` volumes, from 1 on. 0 means that none is named, which
 * is allowed if there is one volume. errors: LR_BAD_INPUT. */
lr_status lr_image_check_frame(const char *path, int frame, int frames, const lr_log *log);

/* Reads the image. Its memory is allocated only if the file is long enough. errors: NULL, logged: LR_BAD_INPUT. */
lr_image *lr_voxels_read(const struct lr_voxels *voxels, const struct lr_image_layout *layout, const lr_log *log);

/* Length of a file in bytes; -1 if it is no regular file. */
int64_t lr_file_length(const char *path);

/* --- writing --- */

/* Appends an image in float32, little endian. reversed: true for each axis along which voxels are written in reverse
   order. */
lr_status lr_voxels_write(struct lr_output *output, const lr_image *image, const bool reversed[3]);

/* A text header, and its voxels in a second file. */
struct lr_image_pair {
    const char *path;      /* path of the header */
    const char *data_path; /* path of the voxels */
    const char *header;
    bool reversed[3];
};

/* Writes the header and the voxels. Replaces both files, or neither. */
lr_status lr_image_pair_write(const struct lr_image_pair *pair, const lr_image *image, const lr_log *log);
