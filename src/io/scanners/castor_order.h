/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * CASToR's scanner files: the order of their crystals, and lists of layers. */
#pragma once

#include "io/files/keyed_text.h"
#include "io/files/output.h"

#include <lr/scanner.h>

/* CASToR's numbering of a scanner's crystals. A scanner that was read from a file with such an order keeps the file's
 * order (lr_scanner.castor_order). All other scanners have the order of the files that this program writes: layer by
 * layer, ring by ring, azimuth by azimuth. These rings are those of lr_module.first_crystal_ring and ascend with z.
 * Around a ring, places ascend in LORaster's frame from +x towards +y, beginning with place 0. The crystals of a place
 * ascend along u. Scanners without places keep their own numbers within each layer. order: [num_crystals], order[k] =
 * LORaster's number of CASToR's crystal k. errors: LR_FAILED if memory runs out, logged. */
lr_status lr_castor_order(const lr_scanner *scanner, int *order, const lr_log *log);

/* Sets the crystal order of a scanner that was just read from a file. order: [num_crystals], or NULL, which changes
 * nothing. The scanner owns `order` from now on, even after errors, and frees it if it equals the default order.
 * errors: LR_BAD_INPUT, not logged, if the order does not name each crystal once; LR_FAILED. */
lr_status lr_castor_order_keep(lr_scanner *scanner, int *order, const lr_log *log);

/* Logs one warning that names the properties of a scanner that its CASToR file cannot store. keeps_places: true if a
 * reader of the file can find the places around the ring again; min_module_difference counts these places. */
void lr_castor_tell_lost(const char *path, const lr_scanner *scanner, bool keeps_places, const lr_log *log);

/* Reads a scanner file of CASToR (a table .lut or .glut, or a .geom) and finds each of its crystals in a scanner. The
 * frame of such files is left-handed: its x is LORaster's x reversed. Memory: 1.2 times the size of a table, or 200
 * bytes per crystal of a .geom.
 *
 * order: receives an array that the caller frees; order[k] = the scanner's number of the file's crystal k, or -1, with
 * a warning, if the scanner has no crystal within 0.1 mm; NULL on failure. errors: LR_BAD_INPUT if the file is no
 * scanner file of CASToR, or if none of its crystals is found. */
lr_status lr_castor_file_match(const char *path, const lr_scanner *scanner, int **order, int *count, const lr_log *log);

/* --- layers of crystals: comma lists, front to back --- */

/* Reads the depth of hits below the front faces. This is the key's value, or half of the crystals' depth if the value
 * is negative or missing. If the layers differ, the smallest depth is taken, with a warning. errors: LR_BAD_INPUT,
 * logged. */
lr_status lr_castor_detection_depth(const struct lr_keyed_text *text, const double *depths_mm, int layers,
                                    double *detection_depth_mm);

/* A header being written. Its keys are padded to `width` columns. */
struct lr_castor_header {
    struct lr_output *output;
    int width;
};

/* Writes a line "key : a,b,c". */
void lr_castor_put(const struct lr_castor_header *header, const char *key, const double *values, int count);
void lr_castor_put_number(const struct lr_castor_header *header, const char *key, double value);

/* Reads a scanner's header and judges its keys. Warns if the last key is missing, because the header may have been cut
 * off. what: as in lr_keyed_dialect. errors: as lr_keyed_text_read and lr_keyed_text_judge. The caller finishes the
 * text in any case. */
lr_status lr_castor_text_read(struct lr_keyed_text *text, const char *path, const char *what,
                              const struct lr_known_keys *keys, const lr_log *log);
