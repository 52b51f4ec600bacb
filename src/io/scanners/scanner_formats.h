/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Files that describe scanners, one row per format. A new format adds its reader and writer below
 * and its row to the table in scanner_formats.c. */
#ifndef LR_IO_SCANNERS_SCANNER_FORMATS_H
#define LR_IO_SCANNERS_SCANNER_FORMATS_H

#include "io/files/keyed_text.h"
#include "io/files/regular_file.h"

#include <lr/crystals.h>
#include <lr/doctor.h>
#include <stddef.h>

struct lr_scanner_format {
    const char *name;           /* in messages: "CASToR .geom" */
    const char *const *endings; /* endings of files to write, NULL at the end; NULL = cannot be written */
    bool (*recognises)(const struct lr_file_head *head);
    lr_scanner *(*read)(const char *path, const lr_log *log);
    lr_status (*write)(const char *path, const lr_scanner *scanner, const lr_log *log);
};

/* The readers and writers. Coordinate frames are converted here and nowhere else; docs/formats/scanners.md gives the
 * frame of each format. */

/* CASToR's generated geometry. The file is read line by line: memory depends on the number of crystals, at most
 * LR_MAX_FILE_CRYSTALS of 64 bytes, not on the file's size. */
bool lr_geom_recognises(const struct lr_file_head *head);
lr_scanner *lr_geom_read(const char *path, const lr_log *log);
lr_status lr_geom_write(const char *path, const lr_scanner *scanner, const lr_log *log);

/* CASToR's header of a look-up table, which is in the same folder (.hscan with .lut, .ghscan with
 * .glut). Memory: at most 24 times the table's size. */
bool lr_hscan_recognises(const struct lr_file_head *head);
lr_scanner *lr_hscan_read(const char *path, const lr_log *log);
lr_status lr_hscan_write(const char *path, const lr_scanner *scanner, const lr_log *log);

/* STIR's crystal map, "ring det [layer] x y z". Memory: at most 24 times the file's size. */
bool lr_stir_map_recognises(const struct lr_file_head *head);
lr_scanner *lr_stir_map_read(const char *path, const lr_log *log);

/* A scanner from a crystal map, with what else is known of it in `given`: name, sizes (the map's
 * comments go before them), rules. Its crystals are ignored. */
lr_scanner *lr_stir_map_build(const char *path, const lr_crystal_list *given);

/* The scanner block of STIR's projection-data headers. Memory: that of the crystals described. */
/* Keys of CASToR's .geom and .hscan files that say how images look. */
#define LR_CASTOR_IDLE_KEYS                                                                                            \
    "description|voxels number transaxial|voxels number axial|field of view transaxial|"                               \
    "field of view axial|multiple bed displacement|layers material|number of rings in scanner"

/* Keys of scanners' files. The reader of projection data checks the other keys of such a header. */
extern const struct lr_known_keys lr_geom_keys, lr_hscan_keys, lr_stir_scanner_keys, lr_stir_data_keys;

bool lr_stir_header_recognises(const struct lr_file_head *head);
lr_scanner *lr_stir_header_read(const char *path, const lr_log *log);

/* Finds the places around a ring and the rings of a scanner that STIR knows by this name, preferring one of wanted[1]
 * rings; false, and wanted stays, if it knows none. */
bool lr_stir_scanner_known(const char *name, int64_t wanted[2]);

/* A bucket of STIR's "BlocksOnCylindrical": flat, its middle on its normal. */
struct lr_stir_bucket {
    double count;                /* around the ring */
    double blocks, crystals;     /* blocks of a bucket, and crystals of a block, transaxially */
    double block_mm, crystal_mm; /* distance from one to the next */
    double radius_mm;            /* radius at which crystals detect */
};

/* Angle in radians from the ring's beginning to the first bucket's normal, and to its first crystal. */
double lr_stir_bucket_turn(const struct lr_stir_bucket *bucket, double *first);

/* PETSIRD: io/events/petsird.h has the reader. Written by the newest schema, without events. */
lr_status lr_petsird_scanner_write(const char *path, const lr_scanner *scanner, const lr_log *log);

/* --- YAML --- */

struct lr_yaml;

/* Limits of what a file may describe. */
#define LR_MAX_FILE_MODULES 100000
#define LR_MAX_FILE_CRYSTALS 10000000

/* A scanner from a YAML file: either `modules`, a list, or `ring` with `module`. Millimetres,
 * degrees and picoseconds, as the keys say. The calling thread's locale must use a decimal point.
 * errors: NULL; each message begins with file, line and column and shows the line, also those of
 *         lr_scanner_create. */
lr_scanner *lr_scanner_read_file(const char *path, const lr_log *log);

/* Reads the same from a document (io/files/yaml.h), which it takes over; NULL gives NULL. */
lr_scanner *lr_scanner_parse(struct lr_yaml *yaml);

/* Reads a draft, which need not make a scanner, from a document and takes that over; NULL gives NULL. */
lr_scanner_draft *lr_scanner_draft_parse(struct lr_yaml *yaml);

lr_status lr_scanner_yaml_write(const char *path, const lr_scanner *scanner, const lr_log *log);

/* --- lists of crystals, shared by readers --- */

/* More crystals than this are refused in files that spell out or describe them; the largest scanner
 * there is has 564,480. */
#define LR_MAX_LISTED_CRYSTALS 2000000

/* A growing list. Zero is valid. */
struct lr_listed_crystals {
    lr_crystal *items; /* owned */
    int count;
    int64_t room;
};

/* errors: LR_FAILED if memory runs out, LR_BAD_INPUT beyond LR_MAX_LISTED_CRYSTALS; logged with
 *         `path`. */
lr_status lr_listed_crystals_add(struct lr_listed_crystals *list, const lr_crystal *crystal, const char *path,
                                 const lr_log *log);

/* Refuses a count that a header claims. */
lr_status lr_listed_crystals_check(double count, const char *path, const lr_log *log);

/* lr_scanner_from_crystals, but a failure is not logged: for a list that may be read in
 * another way. Warnings go to the list's log. */
lr_scanner *lr_listed_crystals_try(const lr_crystal_list *list, int *crystal_of);

#endif
