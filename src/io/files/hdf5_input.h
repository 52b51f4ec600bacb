/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * HDF5 files, read so that each failure is logged. With a damaged file, HDF5 1.10 may crash, never end, or ask for
 * terabytes of memory. A second process, the program of hdf5_reader/, therefore reads the files. If it crashes, nothing
 * else is harmed. The second process may take 512 MiB of memory plus four times the file's size, and ten seconds of
 * processor time per request. It is killed if no answer comes for a minute. */
#pragma once

#include <lr/log.h>
#include <stddef.h>
#include <stdint.h>

/* Types of numbers in memory, for reading and for writing files. HDF5 converts the numbers of a file to these types. */
enum lr_hdf5_number { LR_HDF5_INT32, LR_HDF5_INT64, LR_HDF5_FLOAT, LR_HDF5_DOUBLE };

static inline int64_t lr_hdf5_number_bytes(enum lr_hdf5_number number)
{
    return number == LR_HDF5_INT64 || number == LR_HDF5_DOUBLE ? 8 : 4;
}

/* An HDF5 file open for reading. Only one thread at a time may use it. */
struct lr_hdf5_input {
    const lr_log *log; /* passes messages to the caller's log, until the reading process has ended */
    const char *path;  /* owned by the caller */
    int64_t file_bytes;
    struct lr_hdf5_process *process;
};

/* Ends the reading process. Returns the status that waitpid() gives, or 0 if another part of the program has already
 * called waitpid() for the process. */
int lr_hdf5_process_end(struct lr_hdf5_process *process);

/* Opens an HDF5 file. errors: LR_BAD_INPUT, logged, for a file that is missing, not a regular file, not HDF5,
 * truncated, or that crashes HDF5; LR_FAILED if no process can be started. After an error there is nothing to close. */
lr_status lr_hdf5_input_open(struct lr_hdf5_input *in, const char *path, const lr_log *log);
void lr_hdf5_input_close(struct lr_hdf5_input *in);

/* Returns an error if the reading process has died. Functions that read optional attributes end with this call, because
 * attributes seem to be missing if the process has died. */
lr_status lr_hdf5_input_check(const struct lr_hdf5_input *in);

/* Returns and logs an error if the reading process has died. Functions that use an open file again begin with this
 * call. */
lr_status lr_hdf5_input_need(const struct lr_hdf5_input *in);

bool lr_hdf5_has(const struct lr_hdf5_input *in, const char *name);

/* Checks that `name` is a dataset of numbers with `rank` dimensions, and gives its shape. whole: the numbers must be
 * integers. errors: LR_BAD_INPUT, logged. */
lr_status lr_hdf5_shape(const struct lr_hdf5_input *in, const char *name, bool whole, int64_t shape[2], int rank);

/* Refuses a dataset that claims to have more numbers than its bytes in the file can contain with the best compression.
 * A damaged file then costs callers neither much memory nor much time. errors: LR_BAD_INPUT, logged. */
lr_status lr_hdf5_need_stored(const struct lr_hdf5_input *in, const char *name, const int64_t shape[2]);

/* Reads a whole dataset. shape: the result of lr_hdf5_shape. */
lr_status lr_hdf5_get(const struct lr_hdf5_input *in, const char *name, enum lr_hdf5_number number,
                      const int64_t shape[2], void *numbers);

/* Reads entries range[0] .. range[0] + range[1] - 1 of a dataset. width: numbers per entry (the second extent of a
 * two-dimensional dataset, else 1). */
lr_status lr_hdf5_get_part(const struct lr_hdf5_input *in, const char *name, enum lr_hdf5_number number,
                           const int64_t range[2], int64_t width, void *numbers);

/* Reads the number of a dataset that holds just one number. Returns false if there is no such dataset. */
bool lr_hdf5_get_number(const struct lr_hdf5_input *in, const char *name, double *number);

/* Reads a string attribute of the object `name`, cut to `bytes`. Returns false if the attribute is missing. */
bool lr_hdf5_get_string(const struct lr_hdf5_input *in, const char *name, const char *attribute, char *text,
                        size_t bytes);

/* Reads an attribute of exactly `count` numbers. Returns false if there is none. */
bool lr_hdf5_get_numbers(const struct lr_hdf5_input *in, const char *name, const char *attribute,
                         enum lr_hdf5_number number, int count, void *numbers);
