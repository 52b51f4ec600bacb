/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_IO_SCANNER_YAML_H
#define LR_IO_SCANNER_YAML_H

#include <lr/doctor.h>

struct lr_yaml;

/* Limits of what a file may describe. */
#define LR_MAX_FILE_MODULES 100000
#define LR_MAX_FILE_CRYSTALS 10000000

/* A scanner from a YAML file: either `modules`, a list, or `ring` with `module`. Millimetres,
 * degrees and picoseconds, as the keys say. The calling thread's locale must use a decimal point.
 * errors: NULL; each sentence begins with file, line and column and shows the line, also those of
 *         lr_scanner_create. */
lr_scanner *lr_scanner_read_file(const char *path, const lr_log *log);

/* Reads the same from a document (io/files/yaml.h), which it takes over; NULL gives NULL. */
lr_scanner *lr_scanner_parse(struct lr_yaml *yaml);

/* Reads a draft, which need not make a scanner, from a document and takes that over; NULL gives NULL. */
lr_scanner_draft *lr_scanner_draft_parse(struct lr_yaml *yaml);

#endif
