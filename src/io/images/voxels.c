/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The layout of voxels in LORaster's frame, and files of uncompressed voxels. Several image formats use these
 * functions. */
#define _FILE_OFFSET_BITS 64 /* lets fseeko go beyond 2 GiB on every machine */

#include "io/images/formats.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/files/regular_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Largest angle, in rad, between parallel axes of the voxels and of the frame. */
static const double max_tilt = 1e-4;

lr_status lr_image_layout_find(const struct lr_image_place *place, struct lr_image_layout *layout, const lr_log *log)
{
    *layout = (struct lr_image_layout){.size = {place->size[0], place->size[1], place->size[2]}};
    for (int f = 0; f < 3; f++) {
        double length2 = 0.0;
        int main_axis = 0;
        for (int k = 0; k < 3; k++) {
            length2 += place->affine[k][f] * place->affine[k][f];
            if (fabs(place->affine[k][f]) > fabs(place->affine[main_axis][f])) main_axis = k;
        }
        const double along = place->affine[main_axis][f];
        if (!isfinite(length2) || !(along * along > 1e-24)) {
            return lr_error(log, LR_BAD_INPUT, "%s has a voxel size of %g mm along its axis %d: repair its %s",
                            place->path, sqrt(length2), f + 1, place->field);
        }
        const double across2 = length2 - along * along;
        const double tilt = atan2(sqrt(across2 > 0.0 ? across2 : 0.0), fabs(along));
        if (tilt > max_tilt) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s is oblique or sheared: its axis %d is turned by %.3g degrees against "
                            "x, y and z: resample it onto a straight grid",
                            place->path, f + 1, tilt * 57.29577951308232);
        }
        layout->axis[f] = main_axis;
        layout->flipped[f] = along < 0.0;
        layout->grid.size[main_axis] = layout->size[f];
        layout->grid.voxel_mm[main_axis] = fabs(along);
    }

    const int *axis = layout->axis;
    if (axis[0] == axis[1] || axis[1] == axis[2] || axis[0] == axis[2]) {
        return lr_error(log, LR_BAD_INPUT, "%s has two axes along the same direction: repair its %s", place->path,
                        place->field);
    }
    for (int f = 0; f < 3; f++) {
        const int k = axis[f];
        const double back = layout->flipped[f] ? layout->size[f] - 1 : 0;
        layout->grid.origin_mm[k] = place->affine[k][3] - back * layout->grid.voxel_mm[k];
    }
    return lr_grid_check(&layout->grid, log);
}

lr_status lr_image_layout_put(const struct lr_image_layout *layout, const struct lr_image_line *line, lr_image *image,
                              const lr_log *log)
{
    const int64_t strides[3] = {1, layout->grid.size[0], (int64_t)layout->grid.size[0] * layout->grid.size[1]};
    int64_t start = 0, step = 0;
    for (int f = 0; f < 3; f++) {
        const int64_t stride = strides[layout->axis[f]];
        const int at = f == 0 ? 0 : line->at[f];
        start += stride * (layout->flipped[f] ? layout->size[f] - 1 - at : at);
        step = f == 0 ? (layout->flipped[f] ? -stride : stride) : step;
    }
    for (int n = 0; n < layout->size[0]; n++) {
        const float value = (float)line->numbers[n];
        if (!isfinite(value)) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s holds %g in its voxel (%d, %d, %d), counted from 0 as stored: "
                            "replace it with a finite number",
                            line->path, isnan(value) ? (double)NAN : line->numbers[n], n, line->at[1], line->at[2]);
        }
        image->values[start + n * step] = value;
    }
    return LR_OK;
}

int64_t lr_file_length(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) ? (int64_t)status.st_size : -1;
}

/* --- reading --- */

/* Returns true if each number of the file is 0 or between 1e-30 and 1e30 in size when read in the other byte order.
 * raw: has room for one line along the file's first axis, and is overwritten. */
static bool fits_other_order(const struct lr_voxels *voxels, const struct lr_image_layout *layout, FILE *file,
                             unsigned char *raw)
{
    const struct lr_number_type other = {voxels->type.kind, voxels->type.bytes, !voxels->type.big_endian};
    const size_t bytes = (size_t)layout->size[0] * (size_t)other.bytes;
    bool fits = other.kind == LR_KIND_FLOAT && fseeko(file, (off_t)voxels->offset_bytes, SEEK_SET) == 0;
    for (int64_t n = 0; fits && n < (int64_t)layout->size[1] * layout->size[2]; n++) {
        fits = fread(raw, 1, bytes, file) == bytes;
        for (int k = 0; fits && k < layout->size[0]; k++) {
            double number;
            lr_numbers_convert(&other, raw + k * other.bytes, 1, &number);
            fits = number == 0.0 || (fabs(number) > 1e-30 && fabs(number) < 1e30);
        }
    }
    return fits;
}

/* raw, numbers: each has room for one line along the file's first axis. */
static lr_status read_lines(const struct lr_voxels *voxels, const struct lr_image_layout *layout, FILE *file,
                            unsigned char *raw, double *numbers, lr_image *image, const lr_log *log)
{
    const size_t bytes = (size_t)layout->size[0] * (size_t)voxels->type.bytes;
    struct lr_byte_order order = {0, 0};
    const bool is_whole = voxels->type.kind != LR_KIND_FLOAT && voxels->type.bytes == 4;
    int64_t active = 0, huge = 0, absurd = 0; /* active: numbers other than 0; huge: beyond 2^29; absurd: beyond 1e30 */
    const int64_t total = (int64_t)layout->size[1] * layout->size[2];
    for (int64_t n = 0; n < total; n++) {
        if (n % layout->size[1] == 0)
            LR_TRY(lr_progress_report(voxels->progress, "reading an image", (double)n, (double)total));
        if (fread(raw, 1, bytes, file) != bytes)
            return lr_error(log, LR_BAD_INPUT, "%s: cannot be read to its end", voxels->path);
        lr_numbers_convert(&voxels->type, raw, layout->size[0], numbers);
        lr_byte_order_watch(&order, &voxels->type, raw, numbers, layout->size[0]);
        for (int k = 0; k < layout->size[0]; k++) {
            active += numbers[k] != 0.0;
            huge += fabs(numbers[k]) > 0x1p29;
            absurd += fabs(numbers[k]) > 1e30;
            if (!isfinite(numbers[k]) &&
                (lr_byte_order_is_wrong(&order) || fits_other_order(voxels, layout, file, raw)))
                return lr_error(log, LR_BAD_INPUT, "%s: " LR_OTHER_BYTE_ORDER, voxels->path);
            numbers[k] = numbers[k] * voxels->slope + voxels->intercept;
        }
        const struct lr_image_line put = {
            voxels->path, numbers, {0, (int)(n % layout->size[1]), (int)(n / layout->size[1])}};
        LR_TRY(lr_image_layout_put(layout, &put, image, log));
    }
    /* Read as a whole number, the bits of a float of usual size exceed 2^29. */
    if (is_whole && 2 * huge > active) {
        lr_warn(log, "%s: its whole numbers look like floats: does its header name the right type of numbers?",
                voxels->path);
    }
    if (lr_byte_order_is_wrong(&order) || (absurd > 0 && fits_other_order(voxels, layout, file, raw)))
        return lr_error(log, LR_BAD_INPUT, "%s: " LR_OTHER_BYTE_ORDER, voxels->path);
    return LR_OK;
}

lr_status lr_image_check_frame(const char *path, int frame, int frames, const lr_log *log)
{
    if (frame == 0 && frames > 1) {
        return lr_error(log, LR_BAD_INPUT, "%s holds %d frames: name one of them, %s:1 to %s:%d", path, frames, path,
                        path, frames);
    }
    return frame <= frames ? LR_OK : lr_error(log, LR_BAD_INPUT, "%s has no frame %d: it has %d", path, frame, frames);
}

lr_image *lr_voxels_read(const struct lr_voxels *voxels, const struct lr_image_layout *layout, const lr_log *log)
{
    const int64_t count = lr_grid_num_voxels(&layout->grid);
    const int64_t found = lr_file_length(voxels->path);
    char text[128];
    if (found < 0) {
        struct stat status;
        const bool there = stat(voxels->path, &status) == 0;
        lr_error(log, LR_BAD_INPUT, "cannot open the voxels %s: %s", voxels->path,
                 there ? "it is no plain file" : lr_error_text(errno, text));
        return NULL;
    }
    if (voxels->offset_bytes > found || (found - voxels->offset_bytes) / voxels->type.bytes < count) {
        lr_error(log, LR_BAD_INPUT,
                 "%s is truncated: %d x %d x %d voxels of %d bytes are %lld bytes, and "
                 "from byte %lld on it has fewer, %lld in all: get it again",
                 voxels->path, layout->size[0], layout->size[1], layout->size[2], voxels->type.bytes,
                 (long long)(count * voxels->type.bytes), (long long)voxels->offset_bytes, (long long)found);
        return NULL;
    }

    lr_image *image = lr_image_create(&layout->grid, log);
    if (image == NULL) return NULL;
    unsigned char *raw = NULL;
    double *numbers = NULL;
    lr_status status = LR_FAILED;
    FILE *file = fopen(voxels->path, "rb");
    if (file == NULL || fseeko(file, (off_t)voxels->offset_bytes, SEEK_SET) != 0) {
        lr_error(log, LR_BAD_INPUT, "cannot open the voxels %s: %s", voxels->path, lr_error_text(errno, text));
    } else {
        raw = lr_alloc(layout->size[0], (size_t)voxels->type.bytes, "a line of voxels", log);
        numbers = lr_alloc(layout->size[0], sizeof(*numbers), "a line of voxels", log);
        if (raw != NULL && numbers != NULL) status = read_lines(voxels, layout, file, raw, numbers, image, log);
    }
    if (file != NULL) fclose(file);
    lr_free_all(raw, numbers);
    if (status != LR_OK) {
        lr_image_destroy(image);
        image = NULL;
    }
    return image;
}

/* --- writing --- */

lr_status lr_voxels_write(struct lr_output *output, const lr_image *image, const bool reversed[3])
{
    enum { piece = 4096 };
    unsigned char bytes[4 * piece];
    const int *size = image->grid.size;
    const int64_t count = lr_grid_num_voxels(&image->grid);
    int used = 0;
    for (int64_t n = 0; n < count; n++) {
        const int x = (int)(n % size[0]), y = (int)(n / size[0] % size[1]);
        const int z = (int)(n / size[0] / size[1]);
        const int64_t row = (reversed[0] ? size[0] - 1 - x : x) +
                            (int64_t)size[0] * ((reversed[1] ? size[1] - 1 - y : y) +
                                                (int64_t)size[1] * (reversed[2] ? size[2] - 1 - z : z));
        lr_put_float(bytes + 4 * used++, image->values[row]);
        if (used == piece || n == count - 1) {
            LR_TRY(lr_output_write(output, bytes, 4 * (size_t)used));
            used = 0;
        }
    }
    return LR_OK;
}

lr_status lr_image_pair_write(const struct lr_image_pair *pair, const lr_image *image, const lr_log *log)
{
    struct lr_output header, data;
    LR_TRY(lr_output_open(&data, pair->data_path, log));
    if (lr_output_open(&header, pair->path, log) != LR_OK) {
        lr_output_abandon(&data);
        return LR_FAILED;
    }
    /* lr_voxels_write logs a failure and records it in the output. lr_output_finish_all then undoes both files. */
    (void)lr_voxels_write(&data, image, pair->reversed);
    (void)lr_output_write(&header, pair->header, strlen(pair->header));
    return lr_output_finish_all((struct lr_output *[]){&data, &header}, 2);
}
