/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * CASToR's scanner files: the order of their crystals, and lists of layers. */
#ifndef LR_IO_SCANNERS_CASTOR_ORDER_H
#define LR_IO_SCANNERS_CASTOR_ORDER_H

#include "io/files/keyed_text.h"
#include "io/files/output.h"

#include <lr/scanner.h>

/* CASToR's numbering of a scanner's crystals: the one of the file that it comes from, if it has such an order
 * (lr_scanner.castor_order), else the one of the files that we write for it: layer by layer, ring by ring, azimuth by
 * azimuth. Rings are then those of lr_module.first_crystal_ring and ascend with z; around a ring, places ascend (in
 * our frame from +x towards +y, beginning with place 0), and crystals within a place ascend along its u axis. Scanners
 * without places keep their own numbers within each layer. order: [num_crystals], order[k] = our number of CASToR's
 * crystal k. errors: LR_FAILED if memory runs out, logged. */
lr_status lr_castor_order(const lr_scanner *scanner, int *order, const lr_log *log);

/* Gives a scanner that was just read the order of its file. The scanner owns `order` from now on, also after errors,
 * and drops it if it equals the default order. order: [num_crystals], or NULL, which changes nothing. errors:
 * LR_BAD_INPUT, not logged, for an order that does not name each crystal once; LR_FAILED. */
lr_status lr_castor_order_keep(lr_scanner *scanner, int *order, const lr_log *log);

/* The inverse: place[crystal] = CASToR's number of our crystal. */
void lr_castor_place(const int *order, int num_crystals, int *place);

/* Names, in one warning, the properties of a scanner that its CASToR file cannot hold. keeps_places: a reader of the
 * file finds the places around the ring again, which min_module_difference counts. */
void lr_castor_tell_lost(const char *path, const lr_scanner *scanner, bool keeps_places, const lr_log *log);

/* Reads a scanner file of CASToR's (the table .lut or .glut, or a .geom) and finds each of its crystals in
 * ours: order[k] = our number of crystal k, -1 if ours has none within 0.1 mm, with a warning.
 * The frame of such files is left-handed: its x is ours reversed. Memory: 1.2 times a table, 200 bytes
 * a crystal of a .geom.
 *
 * order: set to an array, to be freed; NULL on failure.
 * errors: LR_BAD_INPUT for a file that is none, and one of which no crystal is found. */
lr_status lr_castor_file_match(const char *path, const lr_scanner *scanner, int **order, int *count, const lr_log *log);

/* --- layers of crystals: comma lists, front to back --- */

/* Reads the depth of hits below the front faces: that of the key, or half of the crystals' depth if that is negative or
 * missing; the least of all layers, with a warning if they differ. errors: LR_BAD_INPUT, logged. */
lr_status lr_castor_detection_depth(const struct lr_keyed_text *text, const double *depths_mm, int layers,
                                    double *detection_depth_mm);

/* A line "key : a,b,c" with the key in `width` columns. */
struct lr_castor_line {
    const char *key;
    int width;
    const double *values;
    int count;
};
void lr_castor_put(struct lr_output *output, const struct lr_castor_line *line);

#endif
