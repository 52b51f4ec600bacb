/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Requests to the program that reads HDF5 files (hdf5_reader/), and its answers. Each request has one answer. Numbers
 * and texts are passed in shared memory. */
#pragma once

#include "io/files/hdf5_input.h"

enum {
    LR_HDF5_WINDOW_BYTES = 4 << 20, /* size of the shared memory */
    LR_HDF5_MOST_SECONDS = 10,      /* processor time for one request */
    LR_HDF5_MOST_SILENT_SECONDS = 60,
    LR_HDF5_OTHER_VERSION = 64, /* exit code of a reader of another version of LORaster */
    LR_HDF5_NO_MEMORY = 65,     /* exit code of a reader that lacks memory */
    LR_HDF5_NO_LIBRARY = 127    /* exit code of the system if the reader lacks a library */
};

enum lr_hdf5_request_kind {
    LR_HDF5_HAS,    /* is there an object `name`? */
    LR_HDF5_SHAPE,  /* class, rank, extent and stored bytes of the dataset `name` */
    LR_HDF5_READ,   /* entries begin .. begin + count - 1, and of each entry the numbers
                       column .. column + columns - 1; a dataset without axes has one number */
    LR_HDF5_STRING, /* the text of an attribute */
    LR_HDF5_NUMBERS /* an attribute of exactly `count` numbers */
};

struct lr_hdf5_request {
    enum lr_hdf5_request_kind kind;
    enum lr_hdf5_number number; /* type to which numbers are converted */
    int64_t begin, count, column, columns;
    char name[64], attribute[64];
};

enum lr_hdf5_class { LR_HDF5_OTHER, LR_HDF5_WHOLE, LR_HDF5_REAL };

struct lr_hdf5_answer {
    bool found;    /* the requested item exists and has been read */
    bool is_hdf5;  /* only in the first answer: the file begins like an HDF5 file */
    char why[200]; /* message of HDF5 if `found` is false; "" if the item does not exist */
    int error;     /* errno if the system refused to read the file, else 0 */
    enum lr_hdf5_class class;
    int rank;
    int64_t extent[2]; /* extent of the first two axes */
    int64_t stored_bytes;
};
