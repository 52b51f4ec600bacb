/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Reconstructions amid their iterations, as HDF5; layout: docs/formats/checkpoints.md. */
#include "base/log.h"
#include "base/mem.h"
#include "io/files/hdf5_file.h"
#include "io/files/hdf5_input.h"

#include <lr/io.h>
#include <math.h>
#include <string.h>

static const char *const group_name = "checkpoint";

/* --- writing --- */

static bool put(struct lr_hdf5_output *out, const lr_checkpoint *checkpoint)
{
    const lr_grid *grid = &checkpoint->image->grid;
    const hid_t group = H5Gcreate2(out->file, group_name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (group < 0) {
        return false;
    }
    const bool done =
        lr_hdf5_put_string(group, "settings", checkpoint->settings) &&
        lr_hdf5_put_string(group, "digest", checkpoint->digest) &&
        lr_hdf5_put_numbers(group, "iterations", H5T_NATIVE_INT, 0, &checkpoint->iterations) &&
        lr_hdf5_put_numbers(group, "ranks", H5T_NATIVE_INT, 0, &checkpoint->ranks) &&
        lr_hdf5_put_numbers(group, "grid_size", H5T_NATIVE_INT, 3, grid->size) &&
        lr_hdf5_put_numbers(group, "grid_voxel_mm", H5T_NATIVE_DOUBLE, 3, grid->voxel_mm) &&
        lr_hdf5_put_numbers(group, "grid_origin_mm", H5T_NATIVE_DOUBLE, 3, grid->origin_mm) &&
        lr_hdf5_put_values(group, "image", checkpoint->image->values, lr_grid_num_voxels(grid));
    return H5Gclose(group) >= 0 && done;
}

lr_status lr_checkpoint_write(const char *path, const lr_checkpoint *checkpoint, const lr_log *log)
{
    struct lr_hdf5_output out;
    LR_TRY(lr_hdf5_output_open(&out, path, "checkpoint", log));
    if (!put(&out, checkpoint)) {
        (void)lr_hdf5_output_fail(&out, "a checkpoint");
    }
    return lr_hdf5_output_finish(&out);
}

/* --- reading --- */

static bool get_head(const struct lr_hdf5_input *in, lr_checkpoint *checkpoint, lr_grid *grid)
{
    static const char *const group = "/checkpoint";
    return lr_hdf5_get_string(in, group, "settings", checkpoint->settings,
                              sizeof(checkpoint->settings)) &&
           lr_hdf5_get_string(in, group, "digest", checkpoint->digest,
                              sizeof(checkpoint->digest)) &&
           lr_hdf5_get_int(in, group, "iterations", 1, &checkpoint->iterations) &&
           lr_hdf5_get_int(in, group, "ranks", 1, &checkpoint->ranks) &&
           lr_hdf5_get_int(in, group, "grid_size", 3, grid->size) &&
           lr_hdf5_get_double(in, group, "grid_voxel_mm", 3, grid->voxel_mm) &&
           lr_hdf5_get_double(in, group, "grid_origin_mm", 3, grid->origin_mm);
}

static lr_status get_image(const struct lr_hdf5_input *in, const lr_grid *grid,
                           lr_checkpoint *checkpoint)
{
    int64_t shape[2] = {0};
    LR_TRY(lr_grid_check(grid, in->log));
    LR_TRY(lr_hdf5_shape(in, "/checkpoint/image", false, shape, 1));
    if (shape[0] != lr_grid_num_voxels(grid)) {
        return lr_error(in->log, LR_BAD_INPUT, "%s has %lld voxels where its grid has %lld",
                        in->path, (long long)shape[0], (long long)lr_grid_num_voxels(grid));
    }
    checkpoint->image = lr_image_create(grid, in->log);
    LR_TRY(checkpoint->image != NULL ? LR_OK : LR_FAILED);
    LR_TRY(lr_hdf5_get(in, "/checkpoint/image", LR_HDF5_FLOAT, shape, checkpoint->image->values));
    for (int64_t v = 0; v < shape[0]; v++) {
        if (!isfinite(checkpoint->image->values[v]) || checkpoint->image->values[v] < 0.0f) {
            return lr_error(in->log, LR_BAD_INPUT, "%s: voxel %lld is %g: it is damaged", in->path,
                            (long long)v, (double)checkpoint->image->values[v]);
        }
    }
    return LR_OK;
}

static lr_status read_from(const struct lr_hdf5_input *in, lr_checkpoint *checkpoint)
{
    lr_grid grid = {.size = {0}};
    if (!lr_hdf5_has(in, "/checkpoint")) {
        return lr_error(
            in->log, LR_BAD_INPUT,
            "%s is no checkpoint (no group /checkpoint): recon --checkpoint writes them", in->path);
    }
    if (!get_head(in, checkpoint, &grid) || checkpoint->iterations < 1 || checkpoint->ranks < 1) {
        LR_TRY(lr_hdf5_input_check(in));
        return lr_error(in->log, LR_BAD_INPUT, "%s: the checkpoint lacks attributes: it is damaged",
                        in->path);
    }
    return get_image(in, &grid, checkpoint);
}

lr_status lr_checkpoint_read(const char *path, lr_checkpoint *checkpoint, const lr_log *log)
{
    struct lr_hdf5_input in;
    *checkpoint = (lr_checkpoint){.image = NULL};
    LR_TRY(lr_hdf5_input_open(&in, path, log));
    const lr_status status = read_from(&in, checkpoint);
    lr_hdf5_input_close(&in);
    if (status != LR_OK) {
        lr_checkpoint_finish(checkpoint);
    }
    return status;
}

void lr_checkpoint_finish(lr_checkpoint *checkpoint)
{
    lr_image_destroy(checkpoint->image);
    *checkpoint = (lr_checkpoint){.image = NULL};
}
