/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * HDF5 files, read so that each failure is logged. HDF5 1.10 crashes, runs in circles and asks for terabytes when
 * bytes of a file are wrong, so a program of its own reads (hdf5_reader/): when that
 * ends early the file is damaged, and nothing else happens. It may take 512 MiB and four times the file's size of
 * memory and ten seconds of the processor's time a request; it is ended when it is silent for a minute. */
#ifndef LR_IO_HDF5_INPUT_H
#define LR_IO_HDF5_INPUT_H

#include "io/files/hdf5_number.h"

#include <lr/log.h>
#include <stddef.h>

/* An HDF5 file open for reading. One thread at a time. */
struct lr_hdf5_input {
    const lr_log *log; /* owned by the caller; silent once the end of the reading process has been logged */
    const char *path;  /* the caller's */
    int64_t file_bytes;
    struct lr_hdf5_process *process;
};

/* Ends the reading process; returns how it ended, as waitpid() says it, or 0 if another part of the program waited for
 * it. */
int lr_hdf5_process_end(struct lr_hdf5_process *process);

/* errors: LR_BAD_INPUT, logged, for a file that is missing, not a regular file, not HDF5, truncated, or that crashes
 * HDF5; LR_FAILED if no process can be started. After an error there is nothing to close. */
lr_status lr_hdf5_input_open(struct lr_hdf5_input *in, const char *path, const lr_log *log);
void lr_hdf5_input_close(struct lr_hdf5_input *in);

/* Not LR_OK if the reading process has died, so that an attribute that could not be read does not count as
 * missing. For the end of functions that read attributes. */
lr_status lr_hdf5_input_check(const struct lr_hdf5_input *in);

/* lr_hdf5_input_check for callers that use an open file again: it logs an error if the reading process has died. */
lr_status lr_hdf5_input_need(const struct lr_hdf5_input *in);

bool lr_hdf5_has(const struct lr_hdf5_input *in, const char *name);

/* Checks that `name` is a dataset of numbers (whole ones when asked) with `rank` dimensions, and
 * gives its shape. errors: LR_BAD_INPUT, logged. */
lr_status lr_hdf5_shape(const struct lr_hdf5_input *in, const char *name, bool whole, int64_t shape[2], int rank);

/* Refuses a dataset that promises more numbers than its bytes in the file can hold, however well compressed, before
 * memory is taken for them or hours for reading them. errors: LR_BAD_INPUT, logged. */
lr_status lr_hdf5_need_stored(const struct lr_hdf5_input *in, const char *name, const int64_t shape[2]);

/* Reads all of a dataset whose shape was checked, as lr_hdf5_shape gave it. */
lr_status lr_hdf5_get(const struct lr_hdf5_input *in, const char *name, enum lr_hdf5_number number,
                      const int64_t shape[2], void *numbers);

/* Entries range[0] .. range[0] + range[1] - 1 of a dataset of one dimension. */
lr_status lr_hdf5_get_part(const struct lr_hdf5_input *in, const char *name, enum lr_hdf5_number number,
                           const int64_t range[2], void *numbers);

/* The number of a dataset that holds just one; false when there is no such dataset. */
bool lr_hdf5_get_number(const struct lr_hdf5_input *in, const char *name, double *number);

/* Some rows of a dataset of two dimensions, whose second extent is `width`. */
struct lr_hdf5_rows {
    int64_t begin, count, width;
};
lr_status lr_hdf5_get_rows(const struct lr_hdf5_input *in, const char *name, const struct lr_hdf5_rows *rows,
                           int32_t *numbers);
lr_status lr_hdf5_get_float_rows(const struct lr_hdf5_input *in, const char *name, const struct lr_hdf5_rows *rows,
                                 float *numbers);

/* A string attribute of the object `name`, cut to fit; false when it is not there. */
bool lr_hdf5_get_string(const struct lr_hdf5_input *in, const char *name, const char *attribute, char *text,
                        size_t bytes);

/* An attribute of exactly `count` numbers; false when it is not there. */
bool lr_hdf5_get_int(const struct lr_hdf5_input *in, const char *name, const char *attribute, int count, int *numbers);
bool lr_hdf5_get_int64(const struct lr_hdf5_input *in, const char *name, const char *attribute, int count,
                       int64_t *numbers);
bool lr_hdf5_get_double(const struct lr_hdf5_input *in, const char *name, const char *attribute, int count,
                        double *numbers);

#endif
