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

/* Files. On error, every reader logs the file, the position in it and the remedy. Every writer writes a temporary file
 * next to its target and renames it at the end, so that a file appears whole or not at all. Formats:
 * docs/formats/README.md.
 *
 * ownership: the caller owns the objects that readers return, and frees them with the destroy function of their type.
 * Paths and arrays are read during the call only.
 * errors: readers return LR_BAD_INPUT (constructors NULL) for a missing or damaged file. Writers return LR_FAILED if
 * the disk is full or the folder cannot be written to.
 * threads:   files other than HDF5 may be read and written by several threads at once; the HDF5 library allows one
 * thread at a time. */

/* --- what is read and written --- */

/* Names of the files that an operation will read and write; they may be devices, pipes or files that do not
 * exist. A path that is read may name a frame of an image ("pet.nii:3"). */
typedef struct lr_file_uses {
    const char *const *read; /* [num_read] */
    const char *const *written;
    int num_read, num_written;
    const lr_log *log;
} lr_file_uses;

/* Refuses outputs that would destroy a file. An output, or its second file (.v of .hv, .Cdf of .Cdh), must not be an
 * input, a file that an input refers to, or the header of an input. The second file of an output must not replace a
 * file that belongs to no header. Two outputs must not be one file. Files are recognised by any path or link to them.
 * The function writes nothing.
 * errors: LR_USAGE. */
LR_API lr_status lr_files_check(const lr_file_uses *uses);

/* The contents of a file, and the function that reads it. */
typedef enum lr_file_kind {
    LR_FILE_UNKNOWN = 0,
    LR_FILE_SCANNER, /* lr_scanner_read */
    LR_FILE_IMAGE,   /* lr_image_read: an activity or a mu-map */
    LR_FILE_DATA,    /* lr_lor_data_read, or another HDF5 file */
    LR_FILE_EVENTS,  /* lr_events_read */
    LR_FILE_PETSIRD, /* a scanner, usually with events */
    LR_FILE_HISTO,   /* lr_histo_images_read */
    LR_FILE_SESSION  /* a session of the viewer */
} lr_file_kind;

/* Guesses the kind of a file from the ending of its name and its first bytes, or from the ending alone if it cannot be
 * read. The readers check if the file is complete. */
LR_API lr_file_kind lr_file_kind_of(const char *path);

/* --- scanners --- */

/* Reads a scanner, given a preset's name ("ge-explore-vista-dr") or the path of a file. The format is recognised by
 * the file's name and content: YAML, PETSIRD, CASToR (.geom, .hscan with its .lut), STIR (crystal map, scanner block
 * of a projection-data header). A name without a slash or a dot is a preset. LORASTER_ASSETS names a folder whose
 * scanners/ is searched before the built-in presets. */
LR_API lr_scanner *lr_scanner_read(const char *name_or_path, const lr_log *log);

/* Reads a scanner that may contain errors, to be examined (lr/doctor.h). Only YAML files can give a faulty scanner;
 * files of other formats are refused if lr_scanner_read refuses them. */
LR_API lr_scanner_draft *lr_scanner_draft_read(const char *name_or_path, const lr_log *log);

/* Finds the places in a YAML file of the keys that suspicions speak of, and writes them to the diagnosis of this file's
 * draft. Files of other formats, and presets, have no such places. errors: LR_FAILED if memory runs out, or if the file
 * cannot be read any more. */
LR_API lr_status lr_scanner_locate(const char *name_or_path, lr_diagnosis *diagnosis, const lr_log *log);

/* Writes a scanner; the ending gives the format: .yaml (or .yml), .geom, .hscan (with .lut beside it), .petsird
 * (without events).
 * errors: LR_USAGE for other endings, LR_BAD_INPUT for a scanner that the format cannot hold. */
LR_API lr_status lr_scanner_write(const char *path, const lr_scanner *scanner, const lr_log *log);

/* Names of the built-in presets, NULL at the end. */
LR_API const char *const *lr_scanner_presets(void);

/* --- images: the format is given by the name's ending, else by the first bytes of the file ---
 *
 *     .nii .nii.gz   NIfTI-1, our frame = RAS+ millimetres
 *     .hv  + .v      Interfile as STIR has it
 *     .hdr + .img    Interfile as CASToR has it
 *     .mhd + .raw, .mha   MetaImage (ITK): LPS
 *     .npy           NumPy [nz][ny][nx], without a grid: written, and read with lr_image_read_on
 *
 * Writers write float32. Readers accept other number types and byte orders, and bring axes into the order and direction
 * of our frame. Readers refuse oblique grids and non-finite values (docs/formats/images.md). Every path of an image that
 * is read may end with the number of a frame: "pet.nii:3" is the third volume of pet.nii, as if it were a file of its
 * own, unless a file has this name. Without a number, files of several volumes are refused, except by
 * lr_image_read_frame. Readers need at most 4 bytes of memory per byte of voxels in the file, and some MiB. For
 * compressed NIfTI the limit is 4 bytes per expanded byte, or 64 bytes per byte of the file. */

/* Reads an image that has a grid. errors: NULL, logged. */
LR_API lr_image *lr_image_read(const char *path, const lr_log *log);

/* Reads an image like lr_image_read, but also accepts .npy arrays. An array has no grid, so its voxels are placed on
 * `grid`. Other formats ignore `grid`. grid NULL: .npy arrays are refused. */
LR_API lr_image *lr_image_read_on(const char *path, const lr_grid *grid, const lr_log *log);

/* Number of volumes in a file: the length of the fourth axis of a NIfTI file, or the time frames of an Interfile
 * header; 1 for other images; 0 if the file is no image. step_s: becomes the time from one volume to the next in
 * seconds, as in lr_image_frames; NULL is allowed. */
LR_API int lr_image_num_frames(const char *path, double *step_s);

/* Reads one volume of a file; frame 1 is the first. errors: NULL, logged; also for a frame that does not exist. */
LR_API lr_image *lr_image_read_frame(const char *path, int frame, const lr_log *log);
/* Reads a volume like lr_image_read_frame. `progress` can stop the reading; the result is then NULL, without a
 * message. */
LR_API lr_image *lr_image_read_watched(const char *path, int frame, const lr_progress *progress, const lr_log *log);

/* Reads the grid only. */
LR_API lr_status lr_grid_read(const char *path, lr_grid *grid, const lr_log *log);

/* Writes an image; a header and its voxels appear together or not at all. Values must be finite; NIfTI has at most
 * 32,767 voxels along an axis. errors: LR_USAGE for another ending. */
LR_API lr_status lr_image_write(const char *path, const lr_image *image, const lr_log *log);

/* Images on one grid, as frames of an acquisition. */
typedef struct lr_image_frames {
    const lr_image *const *images; /* [count] */
    int count;
    double step_s; /* seconds from the beginning of a frame to the beginning of the next; 0 = not known, or not always
                      the same */
} lr_image_frames;

/* Writes frames as the volumes of one NIfTI file (.nii, .nii.gz), which lr_image_read_frame reads. errors: as
 * lr_image_write; LR_USAGE for other endings, for no images, and for images on different grids. */
LR_API lr_status lr_image_write_frames(const char *path, const lr_image_frames *frames, const lr_log *log);

/* --- text --- */

/* Writes a text to a file. */
LR_API lr_status lr_text_write(const char *path, const char *text, const lr_log *log);

/* --- LOR data: HDF5, or STIR's projection data if the name ends in .hs --- */

/* Writes LOR data. HDF5 keeps data dense or sparse, with /scanner and the numbering of LORs. .hs is a header with a
 * second file (.s) of float32 bins, of span 1 without mashing, for scanners of full rings. LORs between crystals at
 * the same place of different rings have no bin; their values are left out with a warning. */
LR_API lr_status lr_lor_data_write(const char *path, const lr_lors *lors, const lr_lor_data *data, const lr_log *log);

/* Reads LOR data. HDF5: a file is refused if its module pairs differ from `lors`. .hs: other numbers of crystals,
 * arc correction and time of flight are refused. The counts of a bin with several crystal pairs (axial compression,
 * mashed views) are spread evenly over the pairs in coincidence, with a warning. Reading .hs needs 28 bytes per LOR
 * with counts, or 4 bytes per LOR of the scanner if at least a sixth have counts. */
LR_API lr_lor_data *lr_lor_data_read(const char *path, const lr_lors *lors, const lr_log *log);
/* Reads LOR data like lr_lor_data_read. `progress` can stop the reading; the result is then NULL, without a message. */
LR_API lr_lor_data *lr_lor_data_read_watched(const char *path, const lr_lors *lors, const lr_progress *progress,
                                             const lr_log *log);

/* Receives the values of a file in order, in pieces. some->index is NULL for dense data; `first` is the number of
 * values before this piece. The arrays exist only during the call. A status other than LR_OK ends the reading with that
 * status. */
typedef struct lr_lor_data_sink {
    lr_status (*take)(void *user, const lr_lor_data *some, int64_t first);
    void *user;
    const lr_progress *progress; /* progress of reading; can stop the reading; NULL = none */
} lr_lor_data_sink;

/* Reads LOR data piece by piece. HDF5: at most 2^18 values are in memory; .hs: all values. errors: as
 * lr_lor_data_read; the status that the sink returns; LR_CANCELLED. */
LR_API lr_status lr_lor_data_scan(const char *path, const lr_lors *lors, const lr_lor_data_sink *sink,
                                  const lr_log *log);

/* --- numbers per crystal --- */

/* Reads one number for each crystal of the scanner, ordered by crystal number: module by module, q * nu + p within a
 * module. path: a NumPy array (.npy, float32 or float64 little endian, num_crystals elements of any shape in C
 * order); text (numbers separated by blanks, commas or line ends, '#' begins a comment); or a PETSIRD file with
 * efficiencies of its detection bins, matched by the positions of the crystals. values: [num_crystals], overwritten;
 * undefined after an error. errors: LR_BAD_INPUT for a different number of values, and for negative or non-finite
 * values. */
LR_API lr_status lr_crystal_values_read(const char *path, const lr_scanner *scanner, float *values, const lr_log *log);

/* --- matrix rows --- */

/* Formats of matrix files. */
typedef enum lr_matrix_format {
    LR_MATRIX_TSV = 0,
    LR_MATRIX_HDF5,
    LR_MATRIX_NPZ,
    LR_MATRIX_MTX,
    LR_MATRIX_STIR
} lr_matrix_format;

/* Writes a file row by row, without the whole matrix in memory.
 * tsv: a header line, then `row x_mm y_mm z_mm module_i p q module_j r s probability`,
 *       9 significant digits, tab separated; row, x, y and z are those of the voxel or point.
 * hdf5: group /matrix in CSR as scipy and anndata write it.
 * npz: what scipy.sparse.load_npz reads; at most 4 GiB.
 * mtx: Matrix Market coordinates, counted from 1.
 * stir: NAME.hpm, NAME.pm and templates beside them, as STIR's projection matrix from file; rows of
 *       LORs only, scanners of full rings, at most 10,000 voxels a LOR; elements are probabilities
 *       in single precision.
 * hdf5, npz and mtx store elements in single precision. Their writers collect elements in PATH.part and PATH.part-rows,
 * and another run can continue these files (`resumes`); docs/formats/matrix.md. */
typedef struct lr_matrix_writer lr_matrix_writer;

/* An input array, such as a map or factors, that elements depend on and that is in no other parameter. */
typedef struct lr_matrix_input {
    const char *name;  /* name used in messages: "attenuation map" */
    const void *bytes; /* numbers without gaps between them */
    int64_t num_bytes;
} lr_matrix_input;

/* One part of a matrix. Each part has some of the rows, and lr_matrix_join combines all parts. */
typedef struct lr_matrix_part {
    /* params of the whole matrix; all parts must have equal values of everything that elements depend on. Read by the
     * constructor */
    const struct lr_matrix_writer_params *whole;
    int64_t number, parts; /* this part's number, from 1, and the number of parts */
    int64_t rows_before;   /* rows of the parts before this one */
} lr_matrix_part;

/* Grid and points are copied; LORs, lists and texts must outlive the writer. */
typedef struct lr_matrix_writer_params {
    const char *path;
    lr_matrix_format format;
    const lr_lors *lors;
    const lr_grid *grid; /* rows are the grid's voxels begin <= row < end; NULL = rows are points_mm */
    int64_t begin, end;
    const double (*points_mm)[3]; /* rows are these points, used if grid is NULL */
    int64_t num_points;
    const char *description; /* mode, rays and samples in words; stored as an attribute */
    const int64_t *voxels;   /* rows are these voxels of the grid, ascending, instead of begin .. end - 1 */
    int64_t num_voxels;
    bool by_lor;                  /* rows are the LORs of `part`, columns all voxels of the grid */
    const lr_selection *part;     /* only elements of these LORs are written; NULL = all. Recorded */
    double threshold;             /* elements below this share of the largest element of their row are dropped; 0 =
                                     none */
    int compress;                 /* hdf5: level of deflate, 1 .. 9; 0 = none, which is fast to write */
    bool resumes;                 /* continue the file that an earlier run with the same params left; hdf5, npz and
                                     mtx */
    const lr_operator_info *info; /* recorded in the file; NULL = not recorded */
    /* rough number of elements; 0 = not known. For 2^31 elements or more, the writer collects elements in the final
     * form of hdf5, so that they need not be copied at the end */
    double expected_elements;
    const char *factors; /* description of the factors that multiply the rows; NULL = none */
    const lr_matrix_input
        *inputs; /* [num_inputs] inputs. A writer that resumes compares their digests with those in the file. Read by
                    the constructor only */
    int num_inputs;
    const lr_matrix_part *share; /* the part that this file has, for hdf5 and npz only; NULL = the whole matrix */
    const lr_log *log;
} lr_matrix_writer_params;

/* Estimated size of a file with a number of rows and elements. The error is up to 10 % for binary formats, and 20 % for
 * text and deflated HDF5. */
typedef struct lr_matrix_size {
    double file_bytes; /* size of the finished file */
    /* largest size on disk while the file is written: most formats first collect elements in a second file */
    double disk_bytes;
} lr_matrix_size;

/* Estimates the size of the file that a writer with these params would write. params: path, description and log may be
   NULL. */
LR_SIZED(lr_matrix_writer_params, lr_matrix_size, lr_matrix_expect_size,
         (const lr_matrix_writer_params *params, double rows, double elements), (params, rows, elements));

/* Numbers of rows and elements that a writer has received so far, in this run and in the earlier runs that it
 * continues. */
typedef struct lr_matrix_written {
    int64_t rows, elements, empty_rows;
    double sum;               /* sum of the elements kept */
    int64_t dropped_elements; /* below the threshold */
    double dropped_sum;
} lr_matrix_written;

/* Opens the file. errors: NULL, logged: LR_USAGE for params that are out of range or do not fit the format, or if there
   is no file that `resumes` can continue; LR_NO_DEVICE without the plugin for HDF5; LR_FAILED if the file cannot be
   written. */
LR_SIZED(lr_matrix_writer_params, lr_matrix_writer *, lr_matrix_writer_create, (const lr_matrix_writer_params *params),
         (params));

/* Counts so far. Right after creation, `rows` is the number of leading rows that an earlier run has written; the caller
 * skips these rows. `rows` is 0 unless the writer resumes. */
LR_API lr_matrix_written lr_matrix_writer_get_written(const lr_matrix_writer *writer);

/* The sink that writes rows, for lr_operator_rows, lr_operator_rows_part, lr_operator_lor_rows and
 * lr_operator_point_rows. */
LR_API lr_row_sink lr_matrix_writer_sink(lr_matrix_writer *writer);

/* Completes the file and renames it to its path. Frees the writer, even after an error. After a failure, saved rows are
 * kept as in lr_matrix_writer_abandon. */
LR_API lr_status lr_matrix_writer_finish(lr_matrix_writer *writer);

/* Abandons the file after a failure. The writer saves rows every 15 seconds; saved rows are kept in PATH.part for a
 * writer that resumes, and a warning says so. If no rows were saved, no files remain. NULL is allowed. */
LR_API void lr_matrix_writer_abandon(lr_matrix_writer *writer);

/* Stops before the last row: all rows so far are kept in PATH.part for a writer that resumes. Frees the writer.
 * errors: LR_USAGE for tsv and stir, whose rows are lost; LR_FAILED if the rows cannot be written; rows saved
 * earlier are then kept as in lr_matrix_writer_abandon. */
LR_API lr_status lr_matrix_writer_leave(lr_matrix_writer *writer);

/* A matrix file open for reading: HDF5 as written here, or .npz as scipy.sparse.save_npz writes it
 * without compression. Elements are read in pieces. Memory: 16 bytes per element of the longest row, and the file's
 * description, which is at most as large as the file. One thread at a time. */
typedef struct lr_matrix_file lr_matrix_file;

/* Description stored in a matrix file. Arrays and strings live as long as the lr_matrix_file. For npz only the
 * numbers of rows, columns and elements are known. */
typedef struct lr_matrix_file_info {
    int64_t num_rows, num_columns, num_elements;
    bool is_described;     /* the fields below are known */
    bool by_lor;           /* true: rows are LORs, columns are voxels; false: rows are voxels or points, columns LORs */
    lr_grid grid;          /* grid of voxels; size 0: rows are points */
    int64_t row_begin;     /* voxel of the first row; unused if voxels is set */
    const int64_t *voxels; /* [num_rows], or NULL */
    const double (*points_mm)[3]; /* [num_rows], or NULL */
    lr_selection part;            /* LORs whose elements are in the file; all fields zero: all LORs */
    lr_mode mode;                 /* auto = not known */
    int rays, samples[3], mu_steps;
    double threshold, dropped_sum, sum; /* sum: of all elements, before they were rounded */
    int64_t dropped_elements;
    const char *backend, *description, *factors; /* "" = not known; factors: "none" = no factors */
    const char *share; /* name of the part and of its matrix, known for npz, too; "" = the file is a whole matrix */
} lr_matrix_file_info;

/* Opens a matrix file. The caller closes it with lr_matrix_file_close. errors: NULL, logged: LR_BAD_INPUT for a file
 * that is missing, damaged or no matrix, and for arrays of inconsistent sizes. */
LR_API lr_matrix_file *lr_matrix_file_open(const char *path, const lr_log *log);
LR_API const lr_matrix_file_info *lr_matrix_file_get_info(const lr_matrix_file *file);
LR_API void lr_matrix_file_close(lr_matrix_file *file); /* NULL is allowed */

/* Checks that the file belongs to this scanner and that its rows and columns fit the scanner. For npz only the
 * number of columns is compared, with the number of LORs. errors: LR_BAD_INPUT with the first difference. */
LR_API lr_status lr_matrix_file_check_scanner(const lr_matrix_file *file, const lr_lors *lors);

/* Passes all rows to the sink; lr_row.row counts from 0, and elements are unchanged. errors: LR_BAD_INPUT for row
 * starts that do not ascend or do not end at the number of elements, columns that do not ascend or are out of range,
 * and values that are negative or not finite; the message names the row. The status that the sink returns;
 * LR_CANCELLED. */
LR_API lr_status lr_matrix_file_rows(lr_matrix_file *file, const lr_row_sink *sink, const lr_progress *progress);

/* Parts of a matrix, each in a file of its own (lr_matrix_part), in any order. */
typedef struct lr_matrix_join_params {
    const char *const *parts; /* [num_parts] paths, HDF5 or npz */
    int64_t num_parts;
    const char *path;        /* path of the joined matrix */
    lr_matrix_format format; /* hdf5, npz or mtx; parts in npz can only be joined to npz */
    int compress;            /* compression level, as for a writer */
    const lr_progress *progress;
    const lr_log *log;
} lr_matrix_join_params;

/* Writes the file that a single run of all rows would have written, with the same bits in its arrays. Only `sum` and
 * `dropped_sum` may differ by rounding, because they are added up in another order. written: may be NULL. errors:
 * LR_USAGE for formats that cannot be combined; LR_BAD_INPUT for a file that is no part, parts of different matrices
 * (the message names the difference), a part that is missing or given twice, and damaged files; LR_FAILED;
 * LR_CANCELLED. No files remain after an error. */
LR_SIZED(lr_matrix_join_params, lr_status, lr_matrix_join,
         (const lr_matrix_join_params *params, lr_matrix_written *written), (params, written));

/* Reads the scanner stored in an HDF5 file (/scanner). Memory: at most 32 times the size of the file.
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

/* State of a reconstruction between two iterations. A run can continue from this state. */
typedef struct lr_checkpoint {
    /* one line of text with all settings and digests of inputs that the result depends on. Its parts are separated by
     * "; "; a part may end in ", contents " and a digest. A run that continues must have the same key. Files of matrix
     * rows also have a key */
    char key[LR_CHECKPOINT_KEY];
    lr_grid grid;
    int num_images;        /* 1 = an image; 2 = an image and its ML-EM image; or one guess per rank */
    int64_t num_values;    /* numbers in each image: voxels, or coefficients of blobs */
    float *images;         /* [num_images][num_values] finite, >= 0; owned if lr_checkpoint_read has made them */
    int iterations;        /* number of iterations that made the images */
    int ranks;             /* number of ranks that made the images */
    int frame;             /* list-mode frame, from 1; 0 = there are none */
    int guess_iterations;  /* iterations since lr_compose last combined the guesses */
    int local_iterations;  /* distributed ML-EM: largest number of iterations before the next exchange */
    double log_likelihood; /* distributed ML-EM: lowest log-likelihood that the image may have */
} lr_checkpoint;

/* Writes an HDF5 file (docs/formats/checkpoints.md), whole or not at all: an older file is replaced only when the
 * new one is complete. errors: LR_USAGE for a device or a pipe; LR_FAILED if the disk is full or not writable. */
LR_API lr_status lr_checkpoint_write(const char *path, const lr_checkpoint *checkpoint, const lr_log *log);

/* Reads a checkpoint. key: key of the run that continues; NULL = not compared. After LR_OK free it with
 * lr_checkpoint_finish. errors: LR_BAD_INPUT for a file that is damaged or no checkpoint; LR_USAGE for a different
 * key; the message names the first part that differs. */
LR_API lr_status lr_checkpoint_read(const char *path, const char *key, lr_checkpoint *checkpoint, const lr_log *log);
LR_API void lr_checkpoint_finish(lr_checkpoint *checkpoint);

#ifdef __cplusplus
}
#endif

#endif
