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
 * and renames at the end, so a file appears whole or not at all. Formats: docs/formats.md.
 *
 * ownership: what a reader returns is the caller's, for the destroy function of its type; paths
 *            and arrays are read during the call only.
 * errors:    readers LR_BAD_INPUT (a constructor NULL) for a missing or damaged file; writers
 *            LR_FAILED when the disk is full or the folder cannot be written to.
 * threads:   files other than HDF5 may be read and written by several threads at once; the HDF5
 *            library takes one thread at a time. */

/* --- scanners --- */

/* A preset's name ("ge-explore-vista-dr") or the path of a file; its format is told from its name
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

/* --- images: NIfTI-1, .nii or .nii.gz, float32, our frame = RAS+ millimetres --- */

/* Any NIfTI number type; scaling applied; axes brought into the order and direction of our frame.
 * Refuses oblique grids, 4-D data and non-finite values. */
LR_API lr_image *lr_image_read(const char *path, const lr_log *log);

/* Reads the grid only. */
LR_API lr_status lr_grid_read(const char *path, lr_grid *grid, const lr_log *log);

/* path must end in .nii or .nii.gz. Values must be finite; at most 32,767 voxels along an axis. */
LR_API lr_status lr_image_write(const char *path, const lr_image *image, const lr_log *log);

/* --- LOR data: HDF5 --- */

/* Writes dense data dense and sparse data sparse, with /scanner and the numbering of LORs. */
LR_API lr_status lr_lor_data_write(const char *path, const lr_lors *lors, const lr_lor_data *data,
                                   const lr_log *log);

/* Refuses a file whose scanner's pairs differ from `lors`. */
LR_API lr_lor_data *lr_lor_data_read(const char *path, const lr_lors *lors, const lr_log *log);

/* --- numbers per crystal --- */

/* One number for each crystal of the scanner, in the order of its numbers: module by module,
 * q * nu + p within each. path: a NumPy array (.npy, float32 or float64 little endian, num_crystals
 * elements of any shape in C order) or text (numbers between blanks, commas or line ends, '#'
 * begins a comment), or a PETSIRD file with efficiencies of its detection bins, by the places of its
 * crystals. values: [num_crystals], overwritten; nothing is promised of it after an error.
 * errors: LR_BAD_INPUT for another number of them, and for negative or non-finite ones. */
LR_API lr_status lr_crystal_values_read(const char *path, const lr_scanner *scanner, float *values,
                                        const lr_log *log);

/* --- matrix rows --- */

typedef enum lr_matrix_format { LR_MATRIX_TSV = 0, LR_MATRIX_HDF5 } lr_matrix_format;

/* A file that takes rows as they come; never holds the matrix in memory.
 * tsv:  a header line, then `row x_mm y_mm z_mm module_i p q module_j r s probability`,
 *       9 significant digits, tab separated.
 * hdf5: group /matrix in CSR as scipy and anndata write it. */
typedef struct lr_matrix_writer lr_matrix_writer;

typedef struct lr_matrix_writer_params {
    const char *path;
    lr_matrix_format format;
    const lr_lors *lors;
    const lr_grid *grid; /* rows are its voxels begin <= row < end; or NULL and: */
    int64_t begin, end;
    const double (*points_mm)[3]; /* rows are these points */
    int64_t num_points;
    const char *description; /* mode, rays, samples: stored as an attribute */
    const lr_log *log;
} lr_matrix_writer_params;

/* Opens the file; errors: NULL for a path or rows that make no sense, or a disk that is full. */
LR_API lr_matrix_writer *lr_matrix_writer_create(const lr_matrix_writer_params *params);

/* Give this to lr_operator_rows or lr_operator_point_rows. */
LR_API lr_row_sink lr_matrix_writer_sink(lr_matrix_writer *writer);

/* Completes the file and puts it in place; frees the writer in any case. */
LR_API lr_status lr_matrix_writer_finish(lr_matrix_writer *writer);

/* Gives up: nothing is left behind. NULL is allowed. */
LR_API void lr_matrix_writer_abandon(lr_matrix_writer *writer);

/* --- pictures and arrays --- */

/* 8-bit RGB PNG; rgb: [height][width][3], first row on top. */
LR_API lr_status lr_png_write(const char *path, const uint8_t *rgb, const int size[2],
                              const lr_log *log);

/* An array in C order: the last index runs fastest. */
typedef struct lr_array {
    const float *values;  /* [product of shape] */
    const int64_t *shape; /* [num_dims] */
    int num_dims;         /* 0 = one number */
} lr_array;

/* NumPy .npy, float32 little endian. */
LR_API lr_status lr_npy_write(const char *path, const lr_array *array, const lr_log *log);

#ifdef __cplusplus
}
#endif

#endif
