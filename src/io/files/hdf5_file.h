/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Writing of HDF5 files, which appear whole or not at all. The plugin lr_hdf5.so (hdf5_writer/) links HDF5's library,
 * and is loaded when the first file is written. If HDF5 is built without thread safety, only one thread of a program
 * may write HDF5 files at a time. io/files/hdf5_input.h reads HDF5 files. */
#pragma once

#include "io/files/hdf5_input.h"
#include "io/files/output.h"

#include <stdbool.h>

/* A file, a group or a dataset of HDF5; negative = none. */
typedef int64_t lr_hdf5_id;

/* A range of bytes that the caller writes, before HDF5 opens the file. HDF5 writes only below `begin` and above `end`.
 * While `places` is set, new datasets have their chunks in this range, and HDF5 does not write these chunks. */
struct lr_hdf5_layout {
    uint64_t begin, end; /* range of the bytes; HDF5 needs 96 bytes below `begin` */
    bool places; /* true: the next chunk of exactly chunk_bytes bytes is at the offset `next`, and each further chunk is
                    `stride` bytes later */
    uint64_t next, stride, chunk_bytes;
};

/* HDF5's own printing of errors, disabled while a file is written. */
struct lr_hdf5_quiet {
    int (*print)(int64_t stack, void *user);
    void *user;
};

/* A file being written. HDF5 1.10 crashes if closing a file fails. A driver of the plugin therefore keeps the first
 * failure, and returns success to HDF5 for every write. The struct must not move while the file is open. */
struct lr_hdf5_output {
    struct lr_output output;
    lr_status (*fail)(struct lr_output *output, int error); /* lr_output_fail(), which the plugin does not contain */
    struct lr_hdf5_layout *layout;                          /* NULL = none */
    const struct lr_hdf5_fns *h5;
    struct lr_hdf5_quiet quiet;
    lr_hdf5_id driver, file;
    bool broken;   /* a step other than a write failed and was logged */
    char why[200]; /* HDF5's innermost reason for the failure, as one line; "" = none */
};

/* Opens the file and writes the root attributes program, version, frame and content. On failure nothing is open.
 * errors: as lr_output_open; LR_USAGE for a device or a pipe; LR_NO_DEVICE if the plugin or HDF5's library is
 * missing. */
lr_status lr_hdf5_output_open(struct lr_hdf5_output *out, const char *path, const char *content, const lr_log *log);

/* Does the same as lr_hdf5_output_open, for a file that is open in out->output. Bytes within the layout stay. layout:
 * NULL = no bytes stay. */
lr_status lr_hdf5_output_begin(struct lr_hdf5_output *out, const char *content, struct lr_hdf5_layout *layout);

/* Logs once per file that HDF5 refused a step. Returns LR_FAILED. */
lr_status lr_hdf5_output_fail(struct lr_hdf5_output *out, const char *what);

/* Each function closes every HDF5 object of the file, and then does the same as lr_output_finish or
 * lr_output_abandon. */
lr_status lr_hdf5_output_finish(struct lr_hdf5_output *out);
void lr_hdf5_output_abandon(struct lr_hdf5_output *out);

/* A one-dimensional dataset of known length that is written piece by piece. */
struct lr_hdf5_series {
    enum lr_hdf5_number number; /* set by the caller before the series is opened */
    lr_hdf5_id dataset;
    int64_t written;
};

/* A one-dimensional dataset of `count` numbers. Its chunks are already in the file, at the offsets that the layout
 * gives. */
struct lr_hdf5_placed {
    enum lr_hdf5_number number;
    int64_t count, chunk;
};

enum { lr_hdf5_chunk = 1 << 15 /* numbers in a compressed chunk */ };

/* Functions of the plugin. Each returns false, or a negative identifier, if HDF5 refuses. Numbers in files are
 * little-endian. */
struct lr_hdf5_fns {
    /* Opens and closes out->file, which a driver writes to out->output. If closing fails, out->why gets the reason. */
    bool (*open)(struct lr_hdf5_output *out);
    bool (*close)(struct lr_hdf5_output *out);
    /* Puts the reason for the last refusal into out->why. */
    void (*explain)(struct lr_hdf5_output *out);

    lr_hdf5_id (*group_create)(lr_hdf5_id parent, const char *name);
    bool (*group_close)(lr_hdf5_id group);
    /* Gives an object a second name. The object that is names[0] in group `from` also becomes names[1] in group
       `to`. */
    bool (*link)(lr_hdf5_id from, lr_hdf5_id to, const char *const names[2]);

    /* Functions that write attributes. A string becomes a variable-length UTF-8 scalar. count = 0 makes a scalar of one
     * number. */
    bool (*put_string)(lr_hdf5_id object, const char *name, const char *text);
    bool (*put_numbers)(lr_hdf5_id object, const char *name, enum lr_hdf5_number number, int count,
                        const void *numbers);

    /* Functions that write datasets. put_array writes a contiguous dataset. put_values also writes a contiguous
     * dataset, or a compressed one for a long list of whole numbers. put_placed uses chunks in the storage that the
     * layout gives. */
    bool (*put_array)(lr_hdf5_id group, const char *name, enum lr_hdf5_number number, const int64_t shape[2],
                      const void *numbers); /* shape[1] = 0: one dimension */
    bool (*put_values)(lr_hdf5_id group, const char *name, const float *values, int64_t count);
    bool (*put_placed)(lr_hdf5_id group, const char *name, const struct lr_hdf5_placed *placed,
                       struct lr_hdf5_layout *layout);

    /* Functions that open, write and close a series. level: compression, 1 .. 9; 0 = contiguous. A series that could
     * not be opened may be closed. */
    bool (*series_open)(struct lr_hdf5_series *series, lr_hdf5_id group, const char *name, int64_t count, int level);
    bool (*series_append)(struct lr_hdf5_series *series, const void *numbers, int64_t count);
    bool (*series_close)(struct lr_hdf5_series *series);
};
