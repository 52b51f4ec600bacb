/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/hdf5_driver.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What HDF5 keeps of a file under this driver; it casts between the two, so `base` comes first. */
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

static H5FD_t *open_file(const char *name, unsigned flags, hid_t access, haddr_t max_address)
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

static herr_t close_file(H5FD_t *base)
{
    free((struct driven_file *)base);
    return 0;
}

/* With a layout every piece of storage is asked for on its own. */
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

hid_t lr_hdf5_driver_set(hid_t access, struct lr_output *output, struct lr_hdf5_layout *layout)
{
    static const H5FD_class_t class = {
        .name = "loraster",
        .maxaddr = (haddr_t)INT64_MAX,
        .fc_degree = H5F_CLOSE_STRONG,
        .fapl_size = sizeof(struct driver_info),
        .open = open_file,
        .close = close_file,
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
    const hid_t driver = H5FDregister(&class);
    const struct driver_info info = {output, layout};
    if (driver >= 0 && H5Pset_driver(access, driver, &info) < 0) {
        H5FDunregister(driver);
        return -1;
    }
    return driver;
}
