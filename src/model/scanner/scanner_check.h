/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What makes a scanner acceptable. All sentences name the scanner and the module. */
#ifndef LR_MODEL_SCANNER_CHECK_H
#define LR_MODEL_SCANNER_CHECK_H

#include <lr/scanner.h>

/* Lengths that geometry may be off by, mm. */
#define LR_OVERLAP_TOLERANCE_MM 1e-6

/* Name to use in sentences. */
const char *lr_scanner_title(const lr_scanner_params *params);

/* Checks everything but overlaps: numbers, axes, sizes, crystal count, coincidence rules. */
lr_status lr_scanner_check_params(const lr_scanner_params *params);

/* Sets a module's normal, which points inwards, from its centre and axes. */
void lr_module_set_normal(lr_module *module);

/* LR_BAD_INPUT when the boxes that two modules' crystals fill (pitch rectangle x depth, behind the
 * front face) overlap by more than LR_OVERLAP_TOLERANCE_MM. The modules' normals are set. */
lr_status lr_scanner_check_overlaps(const char *title, const lr_module *modules, int num_modules, const lr_log *log);

/* By how much two modules' boxes overlap: the shortest way, in mm, by which one would have to move
 * to touch the other only; negative when they are apart (then not the distance). Oriented boxes
 * overlap when none of 15 axes separates them (Gottschalk, Lin, Manocha: OBBTree, 1996). */
double lr_module_overlap_mm(const lr_module *a, const lr_module *b);

#endif
