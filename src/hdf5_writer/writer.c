/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The plugin lr_hdf5.so: HDF5's library, for files that io/ writes. */
#include "base/log.h"
#include "base/parallel.h"
#include "io/files/hdf5_file.h"
#include "plugin/plugin.h"

#include <errno.h>
#include <hdf5.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file of this driver. `base` must be the first member, since HDF5 casts between pointers to the two structs. */
struct driven_file {
    H5FD_t base;
    struct lr_hdf5_output *out; /* set through the file access list */
    haddr_t end_allocated, end_written;
};

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t max_address)
{
    (void)name;
    (void)flags;
    (void)max_address;
    struct lr_hdf5_output *const *out = H5Pget_driver_info(access);
    struct driven_file *file = out == NULL ? NULL : calloc(1, sizeof(*file));
    if (file == NULL) return NULL;
    file->out = *out;
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
    if (file == NULL || file->out->layout == NULL)
        *flags |= H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
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
    struct lr_hdf5_layout *layout = file->out->layout;
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

/* Bytes that were never written are read as zeros. */
static herr_t read_bytes(H5FD_t *base, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size, void *buffer)
{
    (void)type;
    (void)transfer;
    struct driven_file *file = (struct driven_file *)base;
    unsigned char *bytes = buffer;
    while (size > 0) {
        const ssize_t got = pread(file->out->output.file, bytes, size, (off_t)address);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) (void)file->out->fail(&file->out->output, errno);
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
    while (size > 0 && file->out->output.error == 0) {
        const ssize_t done = pwrite(file->out->output.file, bytes, size, (off_t)address);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            (void)file->out->fail(&file->out->output, done < 0 ? errno : ENOSPC);
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
    if (file->out->output.error == 0 && ftruncate(file->out->output.file, (off_t)file->end_allocated) != 0)
        (void)file->out->fail(&file->out->output, errno);
    return 0;
}

/* A virtual file driver that writes through an output. The output logs the first failure and drops all later writes.
 * Every write returns success to HDF5. */
static const H5FD_class_t driver_class = {
    .name = "loraster",
    .maxaddr = (haddr_t)INT64_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(struct lr_hdf5_output *),
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

static void explain(struct lr_hdf5_output *out)
{
    out->why[0] = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, out->why);
    for (char *c = out->why; *c != '\0'; c++)
        if (*c == '\n') *c = ' ';
}

static bool open_file(struct lr_hdf5_output *out)
{
    H5Eget_auto2(H5E_DEFAULT, &out->quiet.print, &out->quiet.user);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    out->driver = access < 0 ? -1 : H5FDregister(&driver_class);
    if (out->driver >= 0 && H5Pset_driver(access, out->driver, &out) < 0) {
        H5FDunregister(out->driver);
        out->driver = -1;
    }
    if (out->driver >= 0) out->file = H5Fcreate(out->output.target, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (access >= 0) H5Pclose(access);
    return out->file >= 0;
}

static bool close_file(struct lr_hdf5_output *out)
{
    const bool done = out->file < 0 || H5Fclose(out->file) >= 0;
    if (!done) explain(out); /* the next call of HDF5 clears the reason */
    if (out->driver >= 0) H5FDunregister(out->driver);
    out->file = out->driver = -1;
    H5Eset_auto2(H5E_DEFAULT, out->quiet.print, out->quiet.user);
    return done;
}

/* --- groups --- */

static lr_hdf5_id group_create(lr_hdf5_id parent, const char *name)
{
    return H5Gcreate2(parent, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
}

static bool group_close(lr_hdf5_id group)
{
    return H5Gclose(group) >= 0;
}

static bool link_object(lr_hdf5_id from, lr_hdf5_id to, const char *const names[2])
{
    return H5Lcreate_hard(from, names[0], to, names[1], H5P_DEFAULT, H5P_DEFAULT) >= 0;
}

/* --- numbers --- */

static hid_t native_of(enum lr_hdf5_number number)
{
    return number == LR_HDF5_INT32   ? H5T_NATIVE_INT32
           : number == LR_HDF5_INT64 ? H5T_NATIVE_INT64
           : number == LR_HDF5_FLOAT ? H5T_NATIVE_FLOAT
                                     : H5T_NATIVE_DOUBLE;
}

/* Returns a little-endian copy of a native number type. */
static hid_t file_type(hid_t native)
{
    const hid_t type = H5Tcopy(native);
    if (type >= 0) H5Tset_order(type, H5T_ORDER_LE);
    return type;
}

static bool put_string(lr_hdf5_id object, const char *name, const char *text)
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

static bool put_numbers(lr_hdf5_id object, const char *name, enum lr_hdf5_number number, int count, const void *numbers)
{
    const hsize_t extent = (hsize_t)count;
    const hid_t native = native_of(number), type = file_type(native);
    const hid_t space = count == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &extent, NULL);
    const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    const bool done = attribute >= 0 && H5Awrite(attribute, native, numbers) >= 0;
    if (attribute >= 0) H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
    return done;
}

/* Makes a layout without the time of writing, so that equal numbers give equal files. level: 0 = the numbers are
 * contiguous; otherwise the level of compression of the chunks, whose bytes are shuffled first. count: length of the
 * list of numbers. */
static hid_t make_layout(int64_t count, int level)
{
    const hsize_t chunk = count < lr_hdf5_chunk ? (hsize_t)count : (hsize_t)lr_hdf5_chunk;
    const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(layout, false);
    if (level == 0 || count == 0) return layout;
    H5Pset_chunk(layout, 1, &chunk);
    H5Pset_shuffle(layout);
    H5Pset_deflate(layout, (unsigned)level);
    return layout;
}

static bool put_dataset(hid_t group, const char *name, enum lr_hdf5_number number, const int64_t shape[2], int level,
                        const void *numbers)
{
    const hsize_t extent[2] = {(hsize_t)shape[0], (hsize_t)shape[1]};
    const hid_t space = H5Screate_simple(shape[1] == 0 ? 1 : 2, extent, NULL);
    const hid_t layout = make_layout(shape[0], level);
    const hid_t native = native_of(number), type = file_type(native);
    const hid_t dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    bool done = dataset >= 0;
    if (done && H5Sget_simple_extent_npoints(space) > 0)
        done = H5Dwrite(dataset, native, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0;
    if (dataset >= 0) done = H5Dclose(dataset) >= 0 && done;
    H5Tclose(type);
    H5Pclose(layout);
    H5Sclose(space);
    return done;
}

static bool put_array(lr_hdf5_id group, const char *name, enum lr_hdf5_number number, const int64_t shape[2],
                      const void *numbers)
{
    return put_dataset(group, name, number, shape, 0, numbers);
}

static bool put_values(lr_hdf5_id group, const char *name, const float *values, int64_t count)
{
    /* Counts compress to a few percent within a second. Expected values do not compress, and an attempt would take most
     * of the time for writing. */
    bool are_counts = count > lr_hdf5_chunk;
    for (int64_t i = 0; i < count && are_counts; i++) are_counts = values[i] == floorf(values[i]);
    return put_dataset(group, name, LR_HDF5_FLOAT, (int64_t[2]){count, 0}, are_counts ? 1 : 0, values);
}

static bool series_open(struct lr_hdf5_series *series, lr_hdf5_id group, const char *name, int64_t count, int level)
{
    const hsize_t extent = (hsize_t)count;
    const hid_t space = H5Screate_simple(1, &extent, NULL);
    const hid_t layout = make_layout(count, level);
    const hid_t type = file_type(native_of(series->number));
    series->written = 0;
    series->dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    H5Tclose(type);
    H5Pclose(layout);
    H5Sclose(space);
    return series->dataset >= 0;
}

static bool series_append(struct lr_hdf5_series *series, const void *numbers, int64_t count)
{
    const hsize_t start = (hsize_t)series->written, extent = (hsize_t)count;
    if (count == 0) return true;
    const hid_t file_space = H5Dget_space(series->dataset);
    const hid_t memory_space = H5Screate_simple(1, &extent, NULL);
    const bool done =
        H5Sselect_hyperslab(file_space, H5S_SELECT_SET, &start, NULL, &extent, NULL) >= 0 &&
        H5Dwrite(series->dataset, native_of(series->number), memory_space, file_space, H5P_DEFAULT, numbers) >= 0;
    H5Sclose(memory_space);
    H5Sclose(file_space);
    series->written += count;
    return done;
}

static bool series_close(struct lr_hdf5_series *series)
{
    const bool done = series->dataset < 0 || H5Dclose(series->dataset) >= 0;
    series->dataset = -1;
    return done;
}

/* Makes a dataset whose chunks get their storage at once, and writes no numbers. */
static bool put_placed(lr_hdf5_id group, const char *name, const struct lr_hdf5_placed *placed,
                       struct lr_hdf5_layout *layout)
{
    const hsize_t extent = (hsize_t)placed->count, chunk = (hsize_t)placed->chunk;
    const hid_t space = H5Screate_simple(1, &extent, NULL);
    const hid_t list = make_layout(0, 0);
    const hid_t type = file_type(native_of(placed->number));
    H5Pset_chunk(list, 1, &chunk);
    H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
    layout->places = true;
    const hid_t dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    layout->places = false;
    H5Tclose(type);
    H5Pclose(list);
    H5Sclose(space);
    return dataset >= 0 && H5Dclose(dataset) >= 0;
}

static const struct lr_hdf5_fns fns = {
    .open = open_file,
    .close = close_file,
    .explain = explain,
    .group_create = group_create,
    .group_close = group_close,
    .link = link_object,
    .put_string = put_string,
    .put_numbers = put_numbers,
    .put_array = put_array,
    .put_values = put_values,
    .put_placed = put_placed,
    .series_open = series_open,
    .series_append = series_append,
    .series_close = series_close,
};

const struct lr_hdf5_plugin lr_hdf5_plugin = {.plugin = {lr_plugin_build, lr_pool_use, lr_errors_use}, .fns = &fns};
