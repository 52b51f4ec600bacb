/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Reconstructions saved between two iterations, in HDF5 files (docs/formats/checkpoints.md). */
#include "io/checkpoints/key.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/files/hdf5_file.h"
#include "io/files/hdf5_input.h"

#include <lr/io.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const char *const group_name = "checkpoint";

/* Integers in the head of the file. Each is an attribute. */
static const struct {
    const char *name;
    size_t offset;
    int least;
} numbers[] = {
    {"iterations", offsetof(lr_checkpoint, iterations), 1},
    {"ranks", offsetof(lr_checkpoint, ranks), 1},
    {"frame", offsetof(lr_checkpoint, frame), 0},
    {"guess_iterations", offsetof(lr_checkpoint, guess_iterations), 0},
    {"local_iterations", offsetof(lr_checkpoint, local_iterations), 0},
};
enum { NUM_NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

/* Returns the CRC-32 of all values of the file, in their order. */
static int64_t check_sum(const lr_checkpoint *checkpoint)
{
    const lr_grid *grid = &checkpoint->grid;
    const size_t count = (size_t)checkpoint->num_images * (size_t)checkpoint->num_values;
    uLong sum = crc32_z(0, (const Bytef *)checkpoint->key, strlen(checkpoint->key));
    for (int k = 0; k < NUM_NUMBERS; k++)
        sum = crc32_z(sum, (const Bytef *)checkpoint + numbers[k].offset, sizeof(int));
    sum = crc32_z(sum, (const Bytef *)&checkpoint->log_likelihood, sizeof(double));
    sum = crc32_z(sum, (const Bytef *)grid->size, sizeof(grid->size));
    sum = crc32_z(sum, (const Bytef *)grid->voxel_mm, sizeof(grid->voxel_mm));
    sum = crc32_z(sum, (const Bytef *)grid->origin_mm, sizeof(grid->origin_mm));
    sum = crc32_z(sum, (const Bytef *)&checkpoint->num_images, sizeof(int));
    sum = crc32_z(sum, (const Bytef *)&checkpoint->num_values, sizeof(int64_t));
    return (int64_t)crc32_z(sum, (const Bytef *)checkpoint->images, count * sizeof(float));
}

/* --- writing --- */

lr_status lr_checkpoint_write(const char *path, const lr_checkpoint *checkpoint, const lr_log *log)
{
    struct lr_hdf5_output out;
    const lr_grid *grid = &checkpoint->grid;
    const int64_t shape[2] = {checkpoint->num_images, checkpoint->num_values};
    LR_TRY(lr_hdf5_output_open(&out, path, "checkpoint", log));
    const struct lr_hdf5_fns *h5 = out.h5;
    const int64_t sum = check_sum(checkpoint);
    const lr_hdf5_id group = h5->group_create(out.file, group_name);
    bool done = group >= 0 && h5->put_string(group, "key", checkpoint->key);
    for (int k = 0; k < NUM_NUMBERS; k++) {
        const char *from = (const char *)checkpoint + numbers[k].offset;
        done = done && h5->put_numbers(group, numbers[k].name, LR_HDF5_INT32, 0, from);
    }
    done = done && h5->put_numbers(group, "log_likelihood", LR_HDF5_DOUBLE, 0, &checkpoint->log_likelihood) &&
           h5->put_numbers(group, "grid_size", LR_HDF5_INT32, 3, grid->size) &&
           h5->put_numbers(group, "grid_voxel_mm", LR_HDF5_DOUBLE, 3, grid->voxel_mm) &&
           h5->put_numbers(group, "grid_origin_mm", LR_HDF5_DOUBLE, 3, grid->origin_mm) &&
           h5->put_numbers(group, "crc32", LR_HDF5_INT64, 0, &sum) &&
           h5->put_array(group, "images", LR_HDF5_FLOAT, shape, checkpoint->images);
    const bool is_closed = group >= 0 && h5->group_close(group);
    if (!done || !is_closed) (void)lr_hdf5_output_fail(&out, "a checkpoint");
    return lr_hdf5_output_finish(&out);
}

/* --- reading --- */

static lr_status read_from(const struct lr_hdf5_input *in, const char *key, lr_checkpoint *checkpoint)
{
    if (!lr_hdf5_has(in, "/checkpoint")) {
        return lr_error(in->log, LR_BAD_INPUT, "%s is no checkpoint of a reconstruction (no group /checkpoint)",
                        in->path);
    }
    if (!lr_hdf5_get_string(in, "/checkpoint", "key", checkpoint->key, sizeof(checkpoint->key))) {
        LR_TRY(lr_hdf5_input_check(in));
        return lr_error(in->log, LR_BAD_INPUT,
                        "%s: the checkpoint has no key: another version wrote it, or it is "
                        "damaged: begin anew without resuming",
                        in->path);
    }
    LR_TRY(key != NULL ? lr_key_check(in->path, (const char *[2]){checkpoint->key, key}, in->log) : LR_OK);
    static const char *const group = "/checkpoint";
    lr_grid *grid = &checkpoint->grid;
    bool done = true;
    for (int k = 0; k < NUM_NUMBERS; k++) {
        int *to = (int *)(void *)((char *)checkpoint + numbers[k].offset);
        done = done && lr_hdf5_get_numbers(in, group, numbers[k].name, LR_HDF5_INT32, 1, to) && *to >= numbers[k].least;
    }

    if (!(done && lr_hdf5_get_numbers(in, group, "log_likelihood", LR_HDF5_DOUBLE, 1, &checkpoint->log_likelihood) &&
          lr_hdf5_get_numbers(in, group, "grid_size", LR_HDF5_INT32, 3, grid->size) &&
          lr_hdf5_get_numbers(in, group, "grid_voxel_mm", LR_HDF5_DOUBLE, 3, grid->voxel_mm) &&
          lr_hdf5_get_numbers(in, group, "grid_origin_mm", LR_HDF5_DOUBLE, 3, grid->origin_mm))) {
        LR_TRY(lr_hdf5_input_check(in));
        return lr_error(in->log, LR_BAD_INPUT, "%s: the checkpoint lacks attributes: it is damaged", in->path);
    }
    int64_t sum = -1;
    const bool has_sum = lr_hdf5_get_numbers(in, "/checkpoint", "crc32", LR_HDF5_INT64, 1, &sum);
    LR_TRY(has_sum ? LR_OK : lr_hdf5_input_check(in));
    int64_t shape[2] = {0};
    LR_TRY(lr_grid_check(grid, in->log));
    LR_TRY(lr_hdf5_shape(in, "/checkpoint/images", false, shape, 2));
    if (shape[0] < 1 || shape[0] > INT32_MAX || shape[1] < 1 ||
        shape[0] > in->file_bytes / (int64_t)sizeof(float) / shape[1]) {
        return lr_error(in->log, LR_BAD_INPUT,
                        "%s promises %lld images of %lld values and does not hold them: it is damaged", in->path,
                        (long long)shape[0], (long long)shape[1]);
    }
    checkpoint->num_images = (int)shape[0];
    checkpoint->num_values = shape[1];
    checkpoint->images = lr_alloc(shape[0] * shape[1], sizeof(float), "a checkpoint", in->log);
    LR_TRY(checkpoint->images != NULL ? LR_OK : LR_FAILED);
    LR_TRY(lr_hdf5_get(in, "/checkpoint/images", LR_HDF5_FLOAT, shape, checkpoint->images));
    for (int64_t v = 0; v < shape[0] * shape[1]; v++) {
        if (!isfinite(checkpoint->images[v]) || checkpoint->images[v] < 0.0f) {
            return lr_error(in->log, LR_BAD_INPUT, "%s: value %lld is %g: it is damaged", in->path, (long long)v,
                            (double)checkpoint->images[v]);
        }
    }

    return sum == check_sum(checkpoint)
               ? LR_OK
               : lr_error(in->log, LR_BAD_INPUT, "%s: %s: begin anew without resuming", in->path,
                          has_sum ? "its checksum is another than that of what it holds: it is damaged"
                                  : "the checkpoint has no checksum: another version wrote it, or it is damaged");
}

lr_status lr_checkpoint_read(const char *path, const char *key, lr_checkpoint *checkpoint, const lr_log *log)
{
    struct lr_hdf5_input in;
    *checkpoint = (lr_checkpoint){.images = NULL};
    LR_TRY(lr_hdf5_input_open(&in, path, log));
    const lr_status status = read_from(&in, key, checkpoint);
    lr_hdf5_input_close(&in);
    if (status != LR_OK) lr_checkpoint_finish(checkpoint);
    return status;
}

void lr_checkpoint_finish(lr_checkpoint *checkpoint)
{
    free(checkpoint->images);
    *checkpoint = (lr_checkpoint){.images = NULL};
}

/* --- keys --- */

enum { MOST_SHOWN = 300 };

void lr_key_compare(const char *const keys[2], struct lr_key_difference *difference)
{
    size_t k = 0;
    while (keys[0][k] != '\0' && keys[0][k] == keys[1][k]) k++;
    while (k > 0 && keys[0][k - 1] != ';') k--;
    for (int side = 0; side < 2; side++) {
        difference->part[side] = keys[side] + k + strspn(keys[side] + k, " ");
        /* Messages print the part without its digest. */
        const char *part = difference->part[side];
        const int length = (int)strcspn(part, ";");
        const char *digest = strstr(part, LR_KEY_CONTENTS);
        const int named = digest != NULL && digest - part < length ? (int)(digest - part) : length;
        difference->length[side] = named < MOST_SHOWN ? named : MOST_SHOWN;
    }
    difference->contents = difference->length[0] == difference->length[1] &&
                           strncmp(difference->part[0], difference->part[1], (size_t)difference->length[0]) == 0;
}

lr_status lr_key_check(const char *path, const char *const keys[2], const lr_log *log)
{
    struct lr_key_difference differs;
    if (strcmp(keys[0], keys[1]) == 0) return LR_OK;
    lr_key_compare(keys, &differs);
    if (differs.contents) {
        return lr_error(log, LR_USAGE,
                        "cannot go on with %s: it was begun with other contents of: %.*s: give the "
                        "same files and options, or begin anew without resuming",
                        path, differs.length[0], differs.part[0]);
    }
    return lr_error(log, LR_USAGE,
                    "cannot go on with %s: it was begun with %.*s, and now it is %.*s: give the "
                    "same options, or begin anew without resuming",
                    path, differs.length[0], differs.part[0], differs.length[1], differs.part[1]);
}
