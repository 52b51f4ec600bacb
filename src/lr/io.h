/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_H
#define LR_IO_H

#include <lr/doctor.h>
#include <lr/events.h>
#include <lr/grid.h>
#include <lr/lors.h>
#include <lr/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Files. Every reader logs file, place and remedy on error; every writer writes beside its target
 * and renames at the end, so a file appears whole or not at all. Formats: docs/formats/README.md.
 *
 * ownership: what a reader returns is the caller's, for the destroy function of its type; paths
 *            and arrays are read during the call only.
 * errors:    readers LR_BAD_INPUT (a constructor NULL) for a missing or damaged file; writers
 *            LR_FAILED when the disk is full or the folder cannot be written to.
 * threads:   files other than HDF5 may be read and written by several threads at once; the HDF5
 *            library takes one thread at a time. */

/* --- what is read and written --- */

/* Names of the files that an operation will read and write; they may be devices, pipes or files that do not
 * exist. */
typedef struct lr_file_uses {
    const char *const *read; /* [num_read] */
    const char *const *written;
    int num_read, num_written;
    const lr_log *log;
} lr_file_uses;

/* Refuses what would lose something: an output, or what goes with it (.v with .hv, .Cdf with .Cdh), that is an
 * input or a file that an input names, by whatever path or link; the header of an input; a file without a
 * header where the output's second file would go; one file for two outputs. Nothing is changed.
 * errors: LR_USAGE. */
LR_API lr_status lr_files_check(const lr_file_uses *uses);

typedef enum lr_file_kind {
    LR_FILE_UNKNOWN = 0,
    LR_FILE_SCANNER, /* lr_scanner_read */
    LR_FILE_IMAGE,   /* lr_image_read: an activity or a mu-map */
    LR_FILE_DATA,    /* lr_lor_data_read, or another HDF5 file */
    LR_FILE_EVENTS,  /* lr_events_read */
    LR_FILE_PETSIRD, /* a scanner, and mostly events with it */
    LR_FILE_HISTO,   /* lr_histo_images_read */
    LR_FILE_SESSION  /* a session of the viewer */
} lr_file_kind;

/* Guesses what a file is from the ending of its name and its first bytes; from the ending alone if it cannot be read.
 * Readers find out if it is whole. */
LR_API lr_file_kind lr_file_kind_of(const char *path);

/* --- scanners --- */

/* A preset's name ("ge-explore-vista-dr") or the path of a file; its format is found from its name
 * and content: YAML, PETSIRD, CASToR (.geom, .hscan with its .lut), STIR (crystal map, scanner
 * block of a projection-data header). A name without a slash or a dot is a preset. LORASTER_ASSETS names a
 * folder whose scanners/ is searched before the built-in presets. */
LR_API lr_scanner *lr_scanner_read(const char *name_or_path, const lr_log *log);

/* The same for a scanner that may be wrong, to be examined (lr/doctor.h). Only YAML gives more
 * than lr_scanner_read; files of other formats are refused where that refuses them. */
LR_API lr_scanner_draft *lr_scanner_draft_read(const char *name_or_path, const lr_log *log);

/* Writes a scanner; the ending decides: .yaml (or .yml), .geom, .hscan (with .lut beside it),
 * .petsird (without events).
 * errors: LR_USAGE for other endings, LR_BAD_INPUT for a scanner that the format cannot hold. */
LR_API lr_status lr_scanner_write(const char *path, const lr_scanner *scanner, const lr_log *log);

/* Names of the built-in presets, NULL at the end. */
LR_API const char *const *lr_scanner_presets(void);

/* --- images: the format by the name's ending, else by how the file begins ---
 *
 *     .nii .nii.gz   NIfTI-1, our frame = RAS+ millimetres
 *     .hv  + .v      Interfile as STIR has it
 *     .hdr + .img    Interfile as CASToR has it
 *     .mhd + .raw, .mha   MetaImage (ITK): LPS
 *     .npy           NumPy [nz][ny][nx], without a grid: written, and read with lr_image_read_on
 *
 * float32 is written; readers take other number types and byte orders, bring axes into the order
 * and direction of our frame and refuse oblique grids, several volumes (but lr_image_read_frame) and non-finite values
 * (docs/formats/images.md). Readers take at most 4 bytes of memory for each byte of voxels in the
 * file, and some MiB; compressed NIfTI: for each byte that it expands to, or 64 for each of the
 * file. */

LR_API lr_image *lr_image_read(const char *path, const lr_log *log);

/* The same; an .npy array, which says nothing of where its voxels are, is taken to lie on `grid`,
 * which other formats do not use. NULL: there is none. */
LR_API lr_image *lr_image_read_on(const char *path, const lr_grid *grid, const lr_log *log);

/* Volumes of a file: along the fourth axis of a NIfTI file; 1 for other images, 0 for what is none. */
LR_API int lr_image_num_frames(const char *path);

/* One of them, frame 1 being the first. errors: NULL, logged; also for a frame that is not there. */
LR_API lr_image *lr_image_read_frame(const char *path, int frame, const lr_log *log);

/* Reads the grid only. */
LR_API lr_status lr_grid_read(const char *path, lr_grid *grid, const lr_log *log);

/* Writes an image; a header and its voxels appear together or not at all. Values must be finite; NIfTI has at most
 * 32,767 voxels along an axis. errors: LR_USAGE for another ending. */
LR_API lr_status lr_image_write(const char *path, const lr_image *image, const lr_log *log);

/* --- text --- */

/* Writes a text as a file. */
LR_API lr_status lr_text_write(const char *path, const char *text, const lr_log *log);

/* --- LOR data: HDF5, or STIR's projection data where the name ends in .hs --- */

/* HDF5: writes dense data dense and sparse data sparse, with /scanner and the numbering of LORs.
 * .hs: a header and float32 bins beside it (.s) of span 1 without mashing, for scanners of full
 * rings; LORs of two crystals in the same place of different rings have no bin, and what they hold
 * is left out with a warning. */
LR_API lr_status lr_lor_data_write(const char *path, const lr_lors *lors, const lr_lor_data *data, const lr_log *log);

/* HDF5: refuses a file whose scanner's pairs differ from `lors`. .hs: refuses other numbers of
 * crystals, arc correction and time of flight; a bin of several pairs of crystals (axial
 * compression, mashed views) is spread evenly over those in coincidence, with a warning; takes
 * 28 bytes for each LOR with counts, or 4 for each LOR of the scanner once a sixth have counts. */
LR_API lr_lor_data *lr_lor_data_read(const char *path, const lr_lors *lors, const lr_log *log);

/* Takes the numbers of a file in their order, some at a time: some->index is NULL in dense data; `first`
 * counts those before. They live during the call. Another status than LR_OK ends the reading with that
 * status. */
typedef struct lr_lor_data_sink {
    lr_status (*take)(void *user, const lr_lor_data *some, int64_t first);
    void *user;
} lr_lor_data_sink;

/* Reads the same file piece by piece: holds at most 2^18 numbers at a time, but of .hs all of them.
 * errors: as lr_lor_data_read; what the sink returns. */
LR_API lr_status lr_lor_data_scan(const char *path, const lr_lors *lors, const lr_lor_data_sink *sink,
                                  const lr_log *log);

/* --- numbers per crystal --- */

/* One number for each crystal of the scanner, in the order of its numbers: module by module,
 * q * nu + p within each. path: a NumPy array (.npy, float32 or float64 little endian, num_crystals
 * elements of any shape in C order) or text (numbers between blanks, commas or line ends, '#'
 * begins a comment), or a PETSIRD file with efficiencies of its detection bins, by the places of its
 * crystals. values: [num_crystals], overwritten; nothing is promised of it after an error.
 * errors: LR_BAD_INPUT for another number of them, and for negative or non-finite ones. */
LR_API lr_status lr_crystal_values_read(const char *path, const lr_scanner *scanner, float *values, const lr_log *log);

/* --- matrix rows --- */

typedef enum lr_matrix_format {
    LR_MATRIX_TSV = 0,
    LR_MATRIX_HDF5,
    LR_MATRIX_NPZ,
    LR_MATRIX_MTX,
    LR_MATRIX_STIR
} lr_matrix_format;

/* A file that takes rows as they come; never holds the matrix in memory.
 * tsv:  a header line, then `row x_mm y_mm z_mm module_i p q module_j r s probability`,
 *       9 significant digits, tab separated; row, x, y and z are those of the voxel or point.
 * hdf5: group /matrix in CSR as scipy and anndata write it.
 * npz:  what scipy.sparse.load_npz reads; at most 4 GiB.
 * mtx:  Matrix Market coordinates, counted from 1.
 * stir: NAME.hpm, NAME.pm and templates beside them, as STIR's projection matrix from file; rows of
 *       LORs only, scanners of full rings, at most 10,000 voxels a LOR; elements are probabilities
 *       in single precision.
 * hdf5, npz and mtx have elements in single precision, gather them in PATH.part and PATH.part-rows beside
 * the file, and can be gone on with by another run (`resumes`); docs/formats/matrix.md. */
typedef struct lr_matrix_writer lr_matrix_writer;

/* Values that elements depend on and the other parameters do not show: of maps, of factors. */
typedef struct lr_matrix_input {
    const char *name;  /* for sentences: "attenuation map" */
    const void *bytes; /* numbers without gaps between them */
    int64_t num_bytes;
} lr_matrix_input;

/* The rows of a file are one of several parts of a matrix that lr_matrix_join puts together. */
typedef struct lr_matrix_part {
    const struct lr_matrix_writer_params *whole; /* all rows; the parts must agree in everything that
                                                    its elements depend on. Read by the constructor */
    int64_t number, parts;                       /* the number-th of so many, counted from 1 */
    int64_t rows_before;                         /* rows of the parts before this one */
} lr_matrix_part;

/* Grid and points are copied; LORs, lists and texts must outlive the writer. */
typedef struct lr_matrix_writer_params {
    const char *path;
    lr_matrix_format format;
    const lr_lors *lors;
    const lr_grid *grid; /* rows are its voxels begin <= row < end; or NULL and points_mm */
    int64_t begin, end;
    const double (*points_mm)[3]; /* rows are these points */
    int64_t num_points;
    const char *description; /* mode, rays, samples: stored as an attribute */
    const int64_t *voxels;   /* rows are these voxels of the grid instead, ascending */
    int64_t num_voxels;
    bool by_lor;                   /* rows are the LORs of `part`, columns all voxels of the grid */
    const lr_selection *part;      /* LORs whose elements come; NULL = all. Recorded */
    double threshold;              /* elements below this share of their row's largest are dropped; 0 = none */
    int compress;                  /* hdf5: level of deflate, 1 .. 9; 0 = none, which is fast to write */
    bool resumes;                  /* go on with what another run left, made with the same params; hdf5, npz and mtx */
    const lr_operator_info *info;  /* recorded, NULL = not */
    double expected_elements;      /* roughly, 0 = not known: from 2^31 on they are kept as hdf5 is
                                     going to need them, and need not be copied in the end */
    const char *factors;           /* what rows were multiplied by, in words; NULL = nothing */
    const lr_matrix_input *inputs; /* [num_inputs]: a writer that resumes compares their digests;
                                      read by the constructor only */
    int num_inputs;
    const lr_matrix_part *share; /* hdf5 and npz; NULL = these are all rows */
    const lr_log *log;
} lr_matrix_writer_params;

/* Rough size of a file with a number of rows and elements: to a tenth for binary formats, to a fifth for text and
 * deflated HDF5. */
typedef struct lr_matrix_size {
    double file_bytes; /* in the end */
    double disk_bytes; /* at most at a time: most formats are made of what is gathered beside them */
} lr_matrix_size;

/* params: path, description and log may be NULL. */
LR_API lr_matrix_size lr_matrix_expect_size(const lr_matrix_writer_params *params, double rows, double elements);

/* Rows and elements that a writer has taken so far, in this run and those that it continues. */
typedef struct lr_matrix_written {
    int64_t rows, elements, empty_rows;
    double sum;               /* of the elements kept */
    int64_t dropped_elements; /* below the threshold */
    double dropped_sum;
} lr_matrix_written;

/* Opens the file; errors: NULL for a path or rows that make no sense, or a disk that is full. */
LR_API lr_matrix_writer *lr_matrix_writer_create(const lr_matrix_writer_params *params);

/* rows: those that need not come again, counted from the first; 0 unless resuming. */
LR_API lr_matrix_written lr_matrix_writer_get_written(const lr_matrix_writer *writer);

/* Give this to lr_operator_rows, lr_operator_rows_part, lr_operator_lor_rows or
 * lr_operator_point_rows. */
LR_API lr_row_sink lr_matrix_writer_sink(lr_matrix_writer *writer);

/* Completes the file and puts it in place; frees the writer in any case. After a failure rows that
 * have been written down are kept as by lr_matrix_writer_abandon. */
LR_API lr_status lr_matrix_writer_finish(lr_matrix_writer *writer);

/* Abandons the file after a failure: rows that have been written down, which happens every 15 seconds, are kept
 * beside the file for a writer that resumes, and a warning says so; where there are none, nothing is left behind.
 * NULL is allowed. */
LR_API void lr_matrix_writer_abandon(lr_matrix_writer *writer);

/* Stops for now: what has come is kept beside the file, for a writer that resumes. Frees the writer.
 * errors: LR_USAGE for tsv and stir, of which nothing is left; LR_FAILED where it cannot be written,
 * and what was written down before is kept as by lr_matrix_writer_abandon. */
LR_API lr_status lr_matrix_writer_leave(lr_matrix_writer *writer);

/* A matrix file open for reading: HDF5 as written here, or .npz as scipy.sparse.save_npz writes it
 * without compression. Elements are read in pieces: memory is that of the longest row, 16 bytes an
 * element, and of what the file lists about itself, at most its own bytes. One thread at a time. */
typedef struct lr_matrix_file lr_matrix_file;

/* Description of a matrix file by itself. Arrays and strings live as long as the file. Of npz only the numbers of
 * rows, columns and elements are known. */
typedef struct lr_matrix_file_info {
    int64_t num_rows, num_columns, num_elements;
    bool is_described;            /* the fields below are known */
    bool by_lor;                  /* rows are LORs and columns voxels, else the other way round */
    lr_grid grid;                 /* of voxels; size 0: rows are points */
    int64_t row_begin;            /* the first row is this voxel; or, where voxels is set, they are these */
    const int64_t *voxels;        /* [num_rows], or NULL */
    const double (*points_mm)[3]; /* [num_rows], or NULL */
    lr_selection part;            /* LORs whose elements are in it; zero: all */
    lr_mode mode;                 /* auto where it is not known */
    int rays, samples[3], mu_steps;
    double threshold, dropped_sum, sum; /* sum: of all elements, before they were rounded */
    int64_t dropped_elements;
    const char *backend, *description, *factors; /* "" where not known; factors "none" */
    const char *share; /* npz too: which part of which matrix the file is, in words; "" = a whole */
} lr_matrix_file_info;

/* errors: NULL, logged: LR_BAD_INPUT for a file that is missing, damaged or no matrix, and for arrays
 * whose sizes do not go together. */
LR_API lr_matrix_file *lr_matrix_file_open(const char *path, const lr_log *log);
LR_API const lr_matrix_file_info *lr_matrix_file_get_info(const lr_matrix_file *file);
LR_API void lr_matrix_file_close(lr_matrix_file *file); /* NULL is allowed */

/* Checks that the file is of this scanner, and that its rows and columns fit it; npz: that it has as many columns
 * as the scanner has LORs. errors: LR_BAD_INPUT with the first difference. */
LR_API lr_status lr_matrix_file_check_scanner(const lr_matrix_file *file, const lr_lors *lors);

/* Hands all rows to the sink, lr_row.row counted from 0, elements as they stand in the file.
 * errors: LR_BAD_INPUT, naming the row, for row starts that do not ascend to the number of elements,
 * columns that do not ascend or are out of range, and values that are negative or not finite; what
 * the sink returns; LR_CANCELLED. */
LR_API lr_status lr_matrix_file_rows(lr_matrix_file *file, const lr_row_sink *sink, const lr_progress *progress);

/* Parts of a matrix, each in a file of its own (lr_matrix_part), in any order. */
typedef struct lr_matrix_join_params {
    const char *const *parts; /* [num_parts] paths, HDF5 or npz */
    int64_t num_parts;
    const char *path;        /* of the whole */
    lr_matrix_format format; /* hdf5, npz or mtx; of parts in npz only npz */
    int compress;            /* as that of a writer */
    const lr_progress *progress;
    const lr_log *log;
} lr_matrix_join_params;

/* Writes the file that one run would have written of all rows: the same arrays, bit for bit; only
 * `sum` and `dropped_sum` are added up in another order. written: may be NULL.
 * errors: LR_USAGE for formats that do not go together; LR_BAD_INPUT for a file that is no part,
 * parts of matrices that differ, in words of what does, a part that is missing or comes twice, and
 * damaged files; LR_FAILED; LR_CANCELLED. Nothing is left behind then. */
LR_API lr_status lr_matrix_join(const lr_matrix_join_params *params, lr_matrix_written *written);

/* The scanner that is written in an HDF5 file (/scanner); memory of at most 32 times the file's bytes.
 * errors: NULL, logged. */
LR_API lr_scanner *lr_scanner_read_hdf5(const char *path, const lr_log *log);

/* --- pictures and arrays --- */

/* 8-bit RGB PNG; rgb: [height][width][3], first row on top. */
LR_API lr_status lr_png_write(const char *path, const uint8_t *rgb, const int size[2], const lr_log *log);

/* An array in C order: the last index runs fastest. */
typedef struct lr_array {
    const float *values;  /* [product of shape] */
    const int64_t *shape; /* [num_dims] */
    int num_dims;         /* 0 = one number */
} lr_array;

/* NumPy .npy, float32 little endian. */
LR_API lr_status lr_npy_write(const char *path, const lr_array *array, const lr_log *log);

/* --- checkpoints --- */

enum { LR_CHECKPOINT_KEY = 4096 };

/* A reconstruction amid its iterations: what it needs to go on from there. */
typedef struct lr_checkpoint {
    char key[LR_CHECKPOINT_KEY]; /* all that the result depends on, as one line: parts between "; ", of
                                    which ", contents " and a digest may end some. A run that goes on must
                                    have the same; files of matrix rows have such a line, too */
    lr_grid grid;
    int num_images;        /* 1; a guess of each rank; or an image and that of ML-EM beside it */
    int64_t num_values;    /* of each: voxels, or coefficients of blobs */
    float *images;         /* [num_images][num_values] finite, >= 0; owned by what was read */
    int iterations;        /* that made them */
    int ranks;             /* that made them */
    int frame;             /* of list mode, from 1; 0 = there are none */
    int guess_iterations;  /* of guesses, since they were composed last */
    int local_iterations;  /* of distributed ML-EM: those of the next exchange, */
    double log_likelihood; /* and what the image must not fall below */
} lr_checkpoint;

/* HDF5 (docs/formats/checkpoints.md), written whole or not at all: what was there stays until then.
 * errors: LR_USAGE for a device or a pipe; LR_FAILED for the disk. */
LR_API lr_status lr_checkpoint_write(const char *path, const lr_checkpoint *checkpoint, const lr_log *log);

/* key: of the run that goes on; NULL = any may. On LR_OK lr_checkpoint_finish frees it.
 * errors: LR_BAD_INPUT for a file that is none, or damaged; LR_USAGE for another key, in words of the
 * first part that differs. */
LR_API lr_status lr_checkpoint_read(const char *path, const char *key, lr_checkpoint *checkpoint, const lr_log *log);
LR_API void lr_checkpoint_finish(lr_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif

#endif
