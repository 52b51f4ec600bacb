/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * HDF5 files, made whole or not at all; io/files/hdf5_input.h reads them. HDF5 keeps global state; if its library is
 * built without thread safety, only one thread of a program may be in here. */
#ifndef LR_IO_HDF5_FILE_H
#define LR_IO_HDF5_FILE_H

#include "io/files/output.h"

#include <hdf5.h>
#include <stdbool.h>

/* Bytes that are in the file before HDF5 writes: HDF5 puts its own before and after them, and while `places` is set
 * it places the storage of chunks among them without writing it. */
struct lr_hdf5_layout {
    haddr_t begin, end; /* taken bytes; HDF5 has its first 96 below `begin` */
    bool places;        /* storage of just chunk_bytes is at `next`, the one after a stride on */
    haddr_t next, stride, chunk_bytes;
};

/* HDF5's own printing of errors, disabled while a file is written. */
struct lr_hdf5_quiet {
    H5E_auto2_t print;
    void *user;
};

/* An HDF5 file being written through an lr_output. HDF5 1.10 crashes when closing a file fails, so its bytes pass a
 * driver of our own that remembers the first failure and lets HDF5 finish as if nothing had failed. Must not move
 * while open. */
struct lr_hdf5_output {
    struct lr_output output;
    struct lr_hdf5_quiet quiet;
    hid_t driver, file;
    bool broken; /* a step other than a write failed and was logged */
};

/* Opens the file and writes the root attributes program, version, frame and content. On failure
 * there is nothing to give up. errors: as lr_output_open; LR_USAGE for a device or a pipe. */
lr_status lr_hdf5_output_open(struct lr_hdf5_output *out, const char *path, const char *content, const lr_log *log);

/* lr_hdf5_output_open on an open output. Its bytes within the layout stay; NULL = there are none. */
lr_status lr_hdf5_output_begin(struct lr_hdf5_output *out, const char *content, struct lr_hdf5_layout *layout);

/* Logs, once per file, that HDF5 refused a step; always LR_FAILED. */
lr_status lr_hdf5_output_fail(struct lr_hdf5_output *out, const char *what);

/* Drops all later writes. Call it before closing the datasets of a file that is given up. */
void lr_hdf5_output_cancel(struct lr_hdf5_output *out);

/* Do what lr_output_finish and lr_output_abandon do, and close every HDF5 object of the file. */
lr_status lr_hdf5_output_finish(struct lr_hdf5_output *out);
void lr_hdf5_output_abandon(struct lr_hdf5_output *out);

/* A little-endian copy of a native number type; close it with H5Tclose. */
hid_t lr_hdf5_file_type(hid_t native);

/* Each returns false when HDF5 refuses. Strings are variable-length UTF-8 scalars; count = 0 makes
 * a scalar attribute. Arrays are contiguous. */
bool lr_hdf5_put_string(hid_t object, const char *name, const char *text);
bool lr_hdf5_put_numbers(hid_t object, const char *name, hid_t native, int count, const void *numbers);
bool lr_hdf5_put_array(hid_t group, const char *name, hid_t native, const int64_t shape[2],
                       const void *numbers); /* shape[1] = 0: one dimension */
bool lr_hdf5_put_values(hid_t group, const char *name, const float *values, int64_t count);

/* A one-dimensional dataset of known length that is written in pieces, one after the other. */
struct lr_hdf5_series {
    hid_t dataset, native;
    int64_t written;
};

/* level: of compression, 1 .. 9, in chunks of shuffled bytes; 0 = contiguous. */
bool lr_hdf5_series_open(struct lr_hdf5_series *series, hid_t group, const char *name, hid_t native, int64_t count,
                         int level);
/* Appends numbers of the native type. */
bool lr_hdf5_series_append(struct lr_hdf5_series *series, const void *numbers, int64_t count);
/* A series that was never opened is allowed if its dataset is negative. */
bool lr_hdf5_series_close(struct lr_hdf5_series *series);

enum { lr_hdf5_chunk = 1 << 15 /* numbers of a chunk, if they are compressed */ };

#endif
