/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images as NumPy arrays [nz][ny][nx] in LORaster's frame. The files hold values, but no grid. */
#include "io/files/npy.h"
#include "base/log.h"
#include "io/files/regular_file.h"
#include "io/images/formats.h"

#include <errno.h>
#include <stdio.h>

static lr_status read_image(const struct lr_image_request *request, lr_grid *grid, lr_image **image)
{
    (void)grid;
    (void)image;
    return lr_error(request->log, LR_BAD_INPUT,
                    "%s: a NumPy array does not say where its voxels are: save it as .nii, .hv "
                    "or .mhd, or give the grid where one can be named",
                    request->path);
}

static lr_status write_image(const char *path, const lr_image *image, const lr_log *log)
{
    const int *size = image->grid.size;
    const lr_array array = {image->values, (int64_t[3]){size[2], size[1], size[0]}, 3};
    return lr_npy_write(path, &array, log);
}

const struct lr_image_format lr_image_npy = {read_image, write_image, NULL};

lr_image *lr_npy_image_read(const char *path, const lr_grid *grid, const lr_log *log)
{
    struct lr_npy_header header;
    FILE *file = lr_file_open(path, "the image ", log);
    if (file == NULL) return NULL;
    const lr_status status = lr_npy_header_read(file, path, &header, log);
    fclose(file);
    if (status != LR_OK) return NULL;
    const int64_t *shape = header.shape;
    const int *size = grid->size;
    if (!lr_number_type_is_valid(&header.type)) {
        lr_error(log, LR_BAD_INPUT,
                 "%s: its numbers are neither floats of 4 or 8 bytes nor integers: save it with astype('<f4')", path);
        return NULL;
    }
    if (header.fortran_order) {
        lr_error(log, LR_BAD_INPUT, "%s: is in Fortran order: save it with numpy.ascontiguousarray", path);
        return NULL;
    }
    const bool is_cube = size[0] == size[2];
    if (header.num_dims == 3 && shape[0] == size[0] && shape[1] == size[1] && shape[2] == size[2] && !is_cube) {
        lr_error(log, LR_BAD_INPUT,
                 "%s: has [%lld][%lld][%lld] elements where the grid needs [nz][ny][nx] = [%d][%d][%d]: if its axes "
                 "are z, y, x, the grid is %lld,%lld,%lld; if they are x, y, z, save its transpose",
                 path, (long long)shape[0], (long long)shape[1], (long long)shape[2], size[2], size[1], size[0],
                 (long long)shape[2], (long long)shape[1], (long long)shape[0]);
        return NULL;
    }
    if (header.num_dims != 3) {
        lr_error(log, LR_BAD_INPUT, "%s: has %d dimensions and an image has 3, [nz][ny][nx]: %s", path, header.num_dims,
                 header.num_dims > 3 ? "save one of its images" : "save it with reshape(nz, ny, nx)");
        return NULL;
    }
    if (shape[0] != size[2] || shape[1] != size[1] || shape[2] != size[0]) {
        lr_error(
            log, LR_BAD_INPUT,
            "%s: has [%lld][%lld][%lld] elements where the grid needs [nz][ny][nx] = [%d][%d][%d]: give the array's "
            "own grid, %lld,%lld,%lld",
            path, (long long)shape[0], (long long)shape[1], (long long)shape[2], size[2], size[1], size[0],
            (long long)shape[2], (long long)shape[1], (long long)shape[0]);
        return NULL;
    }
    const struct lr_image_layout layout = {{size[0], size[1], size[2]}, {0, 1, 2}, {false, false, false}, *grid};
    const struct lr_voxels voxels = {path, header.type, header.offset_bytes, 1.0, 0.0, NULL};
    return lr_voxels_read(&voxels, &layout, log);
}
