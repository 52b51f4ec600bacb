/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/hdf5_file.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* HDF5's data of a file under this driver; `base` comes first, since HDF5 casts between the two. */
struct driven_file {
    H5FD_t base;
    struct lr_output *output;
    struct lr_hdf5_layout *layout; /* NULL = none */
    haddr_t end_allocated, end_written;
};

/* The driver's entry in a file access list, copied by HDF5. */
struct driver_info {
    struct lr_output *output;
    struct lr_hdf5_layout *layout;
};

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t max_address)
{
    (void)name;
    (void)flags;
    (void)max_address;
    const struct driver_info *info = H5Pget_driver_info(access);
    struct driven_file *file = info == NULL ? NULL : calloc(1, sizeof(*file));
    if (file == NULL) return NULL;
    file->output = info->output;
    file->layout = info->layout;
    return &file->base;
}

static herr_t driver_close(H5FD_t *base)
{
    free((struct driven_file *)base);
    return 0;
}

/* If there is a layout, HDF5 must ask for each piece of storage separately. */
static herr_t query(const H5FD_t *base, unsigned long *flags)
{
    const struct driven_file *file = (const struct driven_file *)base;
    *flags = H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE;
    if (file == NULL || file->layout == NULL) *flags |= H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t get_allocated(const H5FD_t *base, H5FD_mem_t type)
{
    (void)type;
    return ((const struct driven_file *)base)->end_allocated;
}

static herr_t set_allocated(H5FD_t *base, H5FD_mem_t type, haddr_t address)
{
    (void)type;
    ((struct driven_file *)base)->end_allocated = address;
    return 0;
}

static haddr_t allocate(H5FD_t *base, H5FD_mem_t type, hid_t transfer, hsize_t size)
{
    (void)transfer;
    struct driven_file *file = (struct driven_file *)base;
    struct lr_hdf5_layout *layout = file->layout;
    if (layout != NULL && layout->places && type == H5FD_MEM_DRAW && size == layout->chunk_bytes) {
        const haddr_t at = layout->next;
        layout->next += layout->stride;
        return at;
    }
    if (layout != NULL && file->end_allocated > 0 && file->end_allocated < layout->end)
        file->end_allocated = layout->end;
    const haddr_t at = file->end_allocated;
    file->end_allocated += size;
    return at;
}

static haddr_t get_end(const H5FD_t *base, H5FD_mem_t type)
{
    (void)type;
    return ((const struct driven_file *)base)->end_written;
}

/* Bytes never written read as zeros. */
static herr_t read_bytes(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size, void *buffer)
{
    (void)type;
    (void)transfer;
    struct driven_file *file = (struct driven_file *)base;
    unsigned char *bytes = buffer;
    while (size > 0) {
        const ssize_t got = pread(file->output->file, bytes, size, (off_t)address);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) (void)lr_output_fail(file->output, errno);
        if (got <= 0) {
            memset(bytes, 0, size);
            return 0;
        }
        bytes += got;
        address += (haddr_t)got;
        size -= (size_t)got;
    }
    return 0;
}

static herr_t write_bytes(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size,
                          const void *buffer)
{
    (void)type;
    (void)transfer;
    struct driven_file *file = (struct driven_file *)base;
    const unsigned char *bytes = buffer;
    if (address + size > file->end_written) file->end_written = address + size;
    while (size > 0 && file->output->error == 0) {
        const ssize_t done = pwrite(file->output->file, bytes, size, (off_t)address);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            (void)lr_output_fail(file->output, done < 0 ? errno : ENOSPC);
            break;
        }
        bytes += done;
        address += (haddr_t)done;
        size -= (size_t)done;
    }
    return 0;
}

static herr_t truncate_file(H5FD_t *base, hid_t transfer, hbool_t closing)
{
    (void)transfer;
    (void)closing;
    struct driven_file *file = (struct driven_file *)base;
    file->end_written = file->end_allocated;
    if (file->output->error == 0 && ftruncate(file->output->file, (off_t)file->end_allocated) != 0)
        (void)lr_output_fail(file->output, errno);
    return 0;
}

/* A virtual file driver that writes through an output. A write that fails is logged by the output; from then on all
 * writes are dropped and reported to HDF5 as done. */
static const H5FD_class_t driver_class = {
    .name = "loraster",
    .maxaddr = (haddr_t)INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(struct driver_info),
    .open = driver_open,
    .close = driver_close,
    .query = query,
    .get_eoa = get_allocated,
    .alloc = allocate,
    .set_eoa = set_allocated,
    .get_eof = get_end,
    .read = read_bytes,
    .write = write_bytes,
    .truncate = truncate_file,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

static herr_t take_first(unsigned number, const H5E_error2_t *error, void *user)
{
    if (number == 0 && error->desc != NULL) snprintf(user, 200, "%s", error->desc);
    return 0;
}

lr_status lr_hdf5_output_fail(struct lr_hdf5_output *out, const char *what)
{
    if (out->output.error == 0 && !out->broken) {
        char text[200];
        out->broken = true;
        /* The innermost reason on HDF5's error stack, as one line; "" when there is none. */
        text[0] = '\0';
        H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, text);
        for (char *c = text; *c != '\0'; c++)
            if (*c == '\n') *c = ' ';

        lr_log_write(out->output.log, LR_LOG_ERROR, LR_FAILED, "cannot write %s to %s: %s%s", what, out->output.path,
                     text[0] != '\0' ? "HDF5 says: " : "no memory", text);
    }
    return LR_FAILED;
}

lr_status lr_hdf5_output_open(struct lr_hdf5_output *out, const char *path, const char *content, const lr_log *log)
{
    *out = (struct lr_hdf5_output){.driver = -1, .file = -1};
    /* HDF5 crashes or ends the program if it runs out of memory for a file's bookkeeping, so this tries to allocate
     * 16 MiB first. */
    enum { ROOM_BYTES = 16 << 20 };
    void *room = lr_alloc(ROOM_BYTES, 1, "writing HDF5", log);
    free(room);
    LR_TRY(room != NULL ? LR_OK : LR_FAILED);

    LR_TRY(lr_output_open(&out->output, path, log));
    if (out->output.in_place) {
        lr_output_abandon(&out->output);
        return lr_error(log, LR_USAGE, "cannot write HDF5 to %s: it is a device or a pipe: give the name of a file",
                        path);
    }
    return lr_hdf5_output_begin(out, content, NULL);
}

lr_status lr_hdf5_output_begin(struct lr_hdf5_output *out, const char *content, struct lr_hdf5_layout *layout)
{
    out->driver = out->file = -1;
    out->broken = false;
    H5Eget_auto2(H5E_DEFAULT, &out->quiet.print, &out->quiet.user);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);

    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    const struct driver_info info = {&out->output, layout};
    out->driver = access < 0 ? -1 : H5FDregister(&driver_class);
    if (out->driver >= 0 && H5Pset_driver(access, out->driver, &info) < 0) {
        H5FDunregister(out->driver);
        out->driver = -1;
    }
    if (out->driver >= 0) out->file = H5Fcreate(out->output.target, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (access >= 0) H5Pclose(access);
    if (out->file < 0 ||
        !(lr_hdf5_put_string(out->file, "program", "LORaster") &&
          lr_hdf5_put_string(out->file, "version", lr_version()) && lr_hdf5_put_string(out->file, "content", content) &&
          lr_hdf5_put_string(out->file, "frame",
                             "right-handed, millimetres, z along the scanner's axis, origin at "
                             "the scanner's centre"))) {
        (void)lr_hdf5_output_fail(out, "the file");
        lr_hdf5_output_abandon(out);
        return LR_FAILED;
    }
    return LR_OK;
}

static void close_file(struct lr_hdf5_output *out)
{
    if (out->file >= 0 && H5Fclose(out->file) < 0) (void)lr_hdf5_output_fail(out, "the end of the file");
    if (out->driver >= 0) H5FDunregister(out->driver);
    out->file = out->driver = -1;
    H5Eset_auto2(H5E_DEFAULT, out->quiet.print, out->quiet.user);
}

lr_status lr_hdf5_output_finish(struct lr_hdf5_output *out)
{
    close_file(out);
    if (out->broken) {
        lr_output_abandon(&out->output);
        return LR_FAILED;
    }
    return lr_output_finish(&out->output);
}

void lr_hdf5_output_cancel(struct lr_hdf5_output *out)
{
    if (out->output.error == 0) out->output.error = ECANCELED;
}

void lr_hdf5_output_abandon(struct lr_hdf5_output *out)
{
    lr_hdf5_output_cancel(out); /* what HDF5 still holds need not reach the disk */
    close_file(out);
    lr_output_abandon(&out->output);
}

hid_t lr_hdf5_file_type(hid_t native)
{
    const hid_t type = H5Tcopy(native);
    if (type >= 0) H5Tset_order(type, H5T_ORDER_LE);
    return type;
}

bool lr_hdf5_put_string(hid_t object, const char *name, const char *text)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    const hid_t space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    const bool done = attribute >= 0 && H5Awrite(attribute, type, &text) >= 0;
    if (attribute >= 0) H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
    return done;
}

bool lr_hdf5_put_numbers(hid_t object, const char *name, hid_t native, int count, const void *numbers)
{
    const hsize_t extent = (hsize_t)count;
    const hid_t type = lr_hdf5_file_type(native);
    const hid_t space = count == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &extent, NULL);
    const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    const bool done = attribute >= 0 && H5Awrite(attribute, native, numbers) >= 0;
    if (attribute >= 0) H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
    return done;
}

/* Leaves out the time of writing, so that the same numbers give the same bytes. */
static hid_t plain_layout(void)
{
    const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(layout, false);
    return layout;
}

static bool put_dataset(hid_t group, const char *name, hid_t native, hid_t space, hid_t layout, const void *numbers)
{
    const hid_t type = lr_hdf5_file_type(native);
    const hid_t dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    bool done = dataset >= 0;
    if (done && H5Sget_simple_extent_npoints(space) > 0)
        done = H5Dwrite(dataset, native, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0;
    if (dataset >= 0) done = H5Dclose(dataset) >= 0 && done;
    H5Tclose(type);
    return done;
}

bool lr_hdf5_put_array(hid_t group, const char *name, hid_t native, const int64_t shape[2], const void *numbers)
{
    const hsize_t extent[2] = {(hsize_t)shape[0], (hsize_t)shape[1]};
    const hid_t space = H5Screate_simple(shape[1] == 0 ? 1 : 2, extent, NULL);
    const hid_t layout = plain_layout();
    const bool done = put_dataset(group, name, native, space, layout, numbers);
    H5Pclose(layout);
    H5Sclose(space);
    return done;
}

/* A layout of chunks of shuffled and compressed bytes; a chunk is no longer than the dataset. */
static hid_t compressed_layout(int64_t count, int level)
{
    const hsize_t chunk = count < lr_hdf5_chunk ? (hsize_t)count : (hsize_t)lr_hdf5_chunk;
    const hid_t layout = plain_layout();
    H5Pset_chunk(layout, 1, &chunk);
    H5Pset_shuffle(layout);
    H5Pset_deflate(layout, (unsigned)level);
    return layout;
}

bool lr_hdf5_put_values(hid_t group, const char *name, const float *values, int64_t count)
{
    /* Counts compress to a few percent within a second; the digits of expected values do not, and trying would take
     * most of the time of writing them. */
    bool are_counts = true;
    for (int64_t i = 0; i < count && are_counts; i++) are_counts = values[i] == floorf(values[i]);
    if (!are_counts || count <= lr_hdf5_chunk)
        return lr_hdf5_put_array(group, name, H5T_NATIVE_FLOAT, (int64_t[2]){count, 0}, values);
    const hsize_t extent = (hsize_t)count;
    const hid_t space = H5Screate_simple(1, &extent, NULL);
    const hid_t layout = compressed_layout(count, 1);
    const bool done = put_dataset(group, name, H5T_NATIVE_FLOAT, space, layout, values);
    H5Pclose(layout);
    H5Sclose(space);
    return done;
}

bool lr_hdf5_series_open(struct lr_hdf5_series *series, hid_t group, const char *name, hid_t native, int64_t count,
                         int level)
{
    const hsize_t extent = (hsize_t)count;
    const hid_t space = H5Screate_simple(1, &extent, NULL);
    const hid_t layout = level > 0 && count > 0 ? compressed_layout(count, level) : plain_layout();
    const hid_t type = lr_hdf5_file_type(native);
    *series = (struct lr_hdf5_series){.native = native};
    series->dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    H5Tclose(type);
    H5Pclose(layout);
    H5Sclose(space);
    return series->dataset >= 0;
}

bool lr_hdf5_series_append(struct lr_hdf5_series *series, const void *numbers, int64_t count)
{
    const hsize_t start = (hsize_t)series->written, extent = (hsize_t)count;
    if (count == 0) return true;
    const hid_t file_space = H5Dget_space(series->dataset);
    const hid_t memory_space = H5Screate_simple(1, &extent, NULL);
    const bool done = H5Sselect_hyperslab(file_space, H5S_SELECT_SET, &start, NULL, &extent, NULL) >= 0 &&
                      H5Dwrite(series->dataset, series->native, memory_space, file_space, H5P_DEFAULT, numbers) >= 0;
    H5Sclose(memory_space);
    H5Sclose(file_space);
    series->written += count;
    return done;
}

bool lr_hdf5_series_close(struct lr_hdf5_series *series)
{
    const bool done = series->dataset < 0 || H5Dclose(series->dataset) >= 0;
    series->dataset = -1;
    return done;
}
