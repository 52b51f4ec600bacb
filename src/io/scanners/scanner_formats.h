/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Files that describe scanners, one row per format. A new format adds its reader and writer below
 * and its row to the table in scanner_formats.c. */
#ifndef LR_IO_SCANNER_FORMATS_H
#define LR_IO_SCANNER_FORMATS_H

#include "io/files/file_head.h"

#include <lr/crystals.h>
#include <lr/doctor.h>

struct lr_scanner_format {
    const char *name;           /* in sentences: "CASToR .geom" */
    const char *const *endings; /* of files to write, NULL at the end; NULL = cannot be written */
    bool (*recognises)(const struct lr_file_head *head);
    lr_scanner *(*read)(const char *path, const lr_log *log);
    lr_status (*write)(const char *path, const lr_scanner *scanner, const lr_log *log);
};

/* Reads a file of any format (the thread's locale has a decimal point); YAML where no other one
 * recognises it. */
lr_scanner *lr_scanner_file_read(const char *path, const lr_log *log);
lr_scanner_draft *lr_scanner_draft_file_read(const char *path, const lr_log *log);

/* The readers and writers. Frames are converted here, once: docs/formats/scanners.md says from
 * what. */

/* CASToR's generated geometry. The file is read line by line: memory goes with the number of
 * crystals, at most LR_MAX_FILE_CRYSTALS of 64 bytes, whatever the file's size. */
bool lr_geom_recognises(const struct lr_file_head *head);
lr_scanner *lr_geom_read(const char *path, const lr_log *log);
lr_status lr_geom_write(const char *path, const lr_scanner *scanner, const lr_log *log);

/* CASToR's header of a look-up table, beside which the table stands (.hscan with .lut, .ghscan with
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
bool lr_stir_header_recognises(const struct lr_file_head *head);
lr_scanner *lr_stir_header_read(const char *path, const lr_log *log);

/* PETSIRD: io/events/petsird.h has the reader. Written by the newest schema, without events. */
lr_status lr_petsird_scanner_write(const char *path, const lr_scanner *scanner, const lr_log *log);

/* YAML. */
lr_status lr_scanner_yaml_write(const char *path, const lr_scanner *scanner, const lr_log *log);

#endif
