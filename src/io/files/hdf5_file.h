/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * HDF5 files, made whole or not at all; io/files/hdf5_input.h reads them. HDF5's library is linked by the plugin
 * lr_hdf5.so (hdf5_writer/), which is loaded when the first file is written. HDF5 keeps global state; if its library is
 * built without thread safety, only one thread of a program may be in here. */
#ifndef LR_IO_HDF5_FILE_H
#define LR_IO_HDF5_FILE_H

#include "io/files/hdf5_number.h"
#include "io/files/output.h"

#include <stdbool.h>

/* An object of HDF5: a file, a group or a dataset; negative = none. */
typedef int64_t lr_hdf5_id;

/* Bytes that are in the file before HDF5 writes: HDF5 puts its own before and after them, and while `places` is set
 * it places the storage of chunks among them without writing it. */
struct lr_hdf5_layout {
    uint64_t begin, end; /* taken bytes; HDF5 has its first 96 below `begin` */
    bool places;         /* storage of just chunk_bytes is at `next`, the one after a stride on */
    uint64_t next, stride, chunk_bytes;
};

/* HDF5's own printing of errors, disabled while a file is written. */
struct lr_hdf5_quiet {
    int (*print)(int64_t stack, void *user);
    void *user;
};

/* A file being written. HDF5 1.10 crashes when closing a file fails, so its bytes pass a driver of our own that
 * remembers the first failure and lets HDF5 finish as if nothing had failed. Must not move while open. */
struct lr_hdf5_output {
    struct lr_output output;
    lr_status (*fail)(struct lr_output *output, int error); /* lr_output_fail() */
    struct lr_hdf5_layout *layout;                          /* NULL = none */
    const struct lr_hdf5_fns *h5;
    struct lr_hdf5_quiet quiet;
    lr_hdf5_id driver, file;
    bool broken;   /* a step other than a write failed and was logged */
    char why[200]; /* the innermost reason for that, as one line; "" when there is none */
};

/* Opens the file and writes the root attributes program, version, frame and content. On failure
 * there is nothing to give up. errors: as lr_output_open; LR_USAGE for a device or a pipe; LR_NO_DEVICE if the plugin,
 * or HDF5's library, is missing. */
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

/* A one-dimensional dataset of known length that is written in pieces, one after the other. */
struct lr_hdf5_series {
    enum lr_hdf5_number number; /* the caller's choice, before it is opened */
    lr_hdf5_id dataset;
    int64_t written;
};

/* A one-dimensional dataset of `count` numbers in chunks that are in the file already, as the layout places them. */
struct lr_hdf5_placed {
    enum lr_hdf5_number number;
    int64_t count, chunk;
};

enum { lr_hdf5_chunk = 1 << 15 /* numbers of a chunk, if they are compressed */ };

/* Functions of the plugin. They return false, or a negative object, when HDF5 refuses. Numbers in files are
 * little-endian. */
struct lr_hdf5_fns {
    /* Opens and closes out->file, by a driver that writes to out->output. Closing explains its failure. */
    bool (*open)(struct lr_hdf5_output *out);
    bool (*close)(struct lr_hdf5_output *out);
    /* Fills in out->why, right after a refusal. */
    void (*explain)(struct lr_hdf5_output *out);

    lr_hdf5_id (*group_create)(lr_hdf5_id parent, const char *name);
    bool (*group_close)(lr_hdf5_id group);
    /* Gives the object names[0] in `from` the name names[1] in `to`, too. */
    bool (*link)(lr_hdf5_id from, lr_hdf5_id to, const char *const names[2]);

    /* Attributes: strings are variable-length UTF-8 scalars; count = 0 makes a scalar. */
    bool (*put_string)(lr_hdf5_id object, const char *name, const char *text);
    bool (*put_numbers)(lr_hdf5_id object, const char *name, enum lr_hdf5_number number, int count,
                        const void *numbers);

    /* Datasets, contiguous; counts are compressed where there are many. */
    bool (*put_array)(lr_hdf5_id group, const char *name, enum lr_hdf5_number number, const int64_t shape[2],
                      const void *numbers); /* shape[1] = 0: one dimension */
    bool (*put_values)(lr_hdf5_id group, const char *name, const float *values, int64_t count);
    bool (*put_placed)(lr_hdf5_id group, const char *name, const struct lr_hdf5_placed *placed,
                       struct lr_hdf5_layout *layout);

    /* level: of compression, 1 .. 9, in chunks of shuffled bytes; 0 = contiguous. A series that was never opened may be
     * closed if its dataset is negative. */
    bool (*series_open)(struct lr_hdf5_series *series, lr_hdf5_id group, const char *name, int64_t count, int level);
    bool (*series_append)(struct lr_hdf5_series *series, const void *numbers, int64_t count);
    bool (*series_close)(struct lr_hdf5_series *series);
};

#endif
