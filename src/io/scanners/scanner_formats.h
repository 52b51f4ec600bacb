/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Files that describe scanners. Each format has one row in the table of scanner_formats.c. A new format adds its reader
 * and writer below, and its row to the table. */
#pragma once

#include "io/files/hdf5_file.h"
#include "io/files/keyed_text.h"
#include "io/files/regular_file.h"

#include <lr/crystals.h>
#include <lr/doctor.h>
#include <lr/lors.h>
#include <stddef.h>

struct lr_scanner_format {
    const char *name;           /* name for messages: "CASToR .geom" */
    const char *const *endings; /* endings of files to write, NULL at the end; NULL = cannot be written */
    bool (*recognises)(const struct lr_file_head *head);
    lr_scanner *(*read)(const char *path, const lr_log *log);
    lr_status (*write)(const char *path, const lr_scanner *scanner, const lr_log *log);
};

/* The readers and writers. Only these functions convert coordinate frames. docs/formats/scanners.md gives the frame of
 * each format. */

/* CASToR's generated geometry. The file is read line by line, so memory depends on the number of crystals (at most
 * LR_MAX_FILE_CRYSTALS, 64 bytes each), not on the file's size. */
bool lr_geom_recognises(const struct lr_file_head *head);
lr_scanner *lr_geom_read(const char *path, const lr_log *log);
lr_status lr_geom_write(const char *path, const lr_scanner *scanner, const lr_log *log);

/* CASToR's header of a look-up table. The table is in the same folder: .lut for .hscan, .glut for .ghscan. Memory: at
 * most 24 times the table's size. */
bool lr_hscan_recognises(const struct lr_file_head *head);
lr_scanner *lr_hscan_read(const char *path, const lr_log *log);
lr_status lr_hscan_write(const char *path, const lr_scanner *scanner, const lr_log *log);

/* STIR's crystal map, "ring det [layer] x y z". Memory: at most 24 times the file's size. */
bool lr_stir_map_recognises(const struct lr_file_head *head);
lr_scanner *lr_stir_map_read(const char *path, const lr_log *log);

/* SAFIR list mode: the scanner of the crystal map that lies beside it. */
bool lr_safir_recognises(const struct lr_file_head *head);
lr_scanner *lr_safir_scanner_read(const char *path, const lr_log *log);

/* Makes a scanner from a crystal map. given: other facts about the scanner, namely its name, sizes and rules; comments
 * of the map override the sizes; the crystals of `given` are ignored. */
lr_scanner *lr_stir_map_build(const char *path, const lr_crystal_list *given);

/* Keys of CASToR's .geom and .hscan files that only concern the display of images. */
#define LR_CASTOR_IDLE_KEYS                                                                                            \
    "description|voxels number transaxial|voxels number axial|field of view transaxial|"                               \
    "field of view axial|multiple bed displacement|layers material|number of rings in scanner"

/* Keys of scanner files. Other keys of a projection-data header are checked by the reader of projection data. */
extern const struct lr_known_keys lr_geom_keys, lr_hscan_keys, lr_stir_scanner_keys, lr_stir_data_keys;

/* The scanner block of STIR's projection-data headers. Memory: for the crystals that the block describes. */
bool lr_stir_header_recognises(const struct lr_file_head *head);
lr_scanner *lr_stir_header_read(const char *path, const lr_log *log);

/* True for Siemens' own headers of sinograms, which are not read. */
bool lr_siemens_sinogram_recognises(const struct lr_file_head *head);

/* Looks up a scanner by its name in STIR. wanted: receives the number of places around a ring and the number of rings.
 * If several scanners have the name, a scanner with wanted[1] rings is preferred. `wanted` is unchanged if STIR knows no
 * such scanner. */
void lr_stir_scanner_known(const char *name, int64_t wanted[2]);

/* A bucket of STIR's "BlocksOnCylindrical". A bucket is flat, and its normal passes through its middle. */
struct lr_stir_bucket {
    double count;                /* number of buckets around the ring */
    double blocks, crystals;     /* transaxially: blocks in a bucket, and crystals in a block */
    double block_mm, crystal_mm; /* distance between neighbouring blocks, and between neighbouring crystals */
    double radius_mm;            /* radius at which crystals detect photons */
};

/* Returns the angle in radians from the beginning of the ring to the first bucket's normal. *first: angle to the first
 * crystal. */
double lr_stir_bucket_turn(const struct lr_stir_bucket *bucket, double *first);

/* PETSIRD; io/events/petsird.h has the reader. Files are written by the newest schema, without events. */
lr_status lr_petsird_scanner_write(const char *path, const lr_scanner *scanner, const lr_log *log);

/* --- YAML --- */

struct lr_yaml;

/* Limits of the scanner that a file may describe. */
#define LR_MAX_FILE_MODULES 100000
#define LR_MAX_FILE_CRYSTALS 10000000

/* Reads a scanner from a YAML file, which has either the list `modules`, or `ring` with `module`. Keys state their
 * units: mm, degrees or ps. The calling thread's locale must use a decimal point. errors: NULL; each message, including
 * those of lr_scanner_create, begins with file, line and column and shows the line. */
lr_scanner *lr_scanner_read_file(const char *path, const lr_log *log);

/* Reads a scanner from a document (io/files/yaml.h), and destroys the document. NULL gives NULL. */
lr_scanner *lr_scanner_parse(struct lr_yaml *yaml);

/* Reads a draft from a document, and destroys the document. A draft need not be a complete scanner. NULL gives NULL. */
lr_scanner_draft *lr_scanner_draft_parse(struct lr_yaml *yaml);

/* Gives suspicions about the document's draft their places (lr_scanner_locate), and destroys the document. */
lr_status lr_scanner_yaml_locate(struct lr_yaml *yaml, lr_diagnosis *diagnosis);

lr_status lr_scanner_yaml_write(const char *path, const lr_scanner *scanner, const lr_log *log);

/* --- the scanner inside an HDF5 file: group /scanner, and /lor/pairs and /lor/offsets (docs/formats/hdf5.md) --- */

/* Writes the group /scanner. Returns false if HDF5 refuses. */
bool lr_hdf5_put_scanner(const struct lr_hdf5_output *out, const lr_scanner *scanner);

/* Writes /lor with pairs, offsets and the attribute order. Returns the open group; negative if HDF5 refuses. */
lr_hdf5_id lr_hdf5_put_lors(const struct lr_hdf5_output *out, const lr_lors *lors);

/* Compares a file's /scanner (if there is one), /lor/pairs and /lor/offsets with `lors`. errors: LR_BAD_INPUT, with the
 * first difference. Differing coincidence rules are only a warning. */
lr_status lr_hdf5_check_scanner(const struct lr_hdf5_input *in, const lr_lors *lors);

/* --- presets and schemas that are part of the library; tools/embed_presets.py writes the tables at build time --- */

struct lr_preset {
    const char *name; /* file stem: "penn-labr3" */
    const char *text; /* the YAML file, zero terminated ASCII */
};

/* Presets, sorted by name, and a list of their names. NULL ends this list. */
extern const struct lr_preset lr_preset_table[];
extern const char *const lr_preset_names[];
extern const int lr_num_presets;

/* The schemas of PETSIRD (assets/petsird), by file stem: "schema_v0.9.1". */
extern const struct lr_preset lr_petsird_table[];
extern const char *const lr_petsird_names[];
extern const int lr_num_petsird;

/* --- lists of crystals, shared by readers --- */

/* Largest number of crystals in files that list or describe them. The largest existing scanner has 564,480 crystals. */
#define LR_MAX_LISTED_CRYSTALS 2000000

/* A growing list. A struct of zeros is an empty list. */
struct lr_listed_crystals {
    lr_crystal *items; /* owned */
    int count;
    int64_t room;
};

/* errors, logged with `path`: LR_FAILED if memory runs out; LR_BAD_INPUT beyond LR_MAX_LISTED_CRYSTALS. */
lr_status lr_listed_crystals_add(struct lr_listed_crystals *list, const lr_crystal *crystal, const char *path,
                                 const lr_log *log);

/* Refuses a header's count of crystals that is too large. */
lr_status lr_listed_crystals_check(double count, const char *path, const lr_log *log);

/* Like lr_scanner_from_crystals, but without logging a failure, for a list that may be read in another way. Warnings go
 * to the list's log. */
lr_scanner *lr_listed_crystals_try(const lr_crystal_list *list, int *crystal_of);
