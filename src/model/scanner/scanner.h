/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanners for other code of the library: checks, near modules, attenuation in crystals, rings. All messages name the
 * scanner and the module. */
#ifndef LR_MODEL_SCANNER_H
#define LR_MODEL_SCANNER_H

#include <lr/operator.h>
#include <lr/scanner.h>

/* Tolerance of lengths in the geometry, mm. */
#define LR_OVERLAP_TOLERANCE_MM 1e-6

/* Name for messages. */
const char *lr_scanner_title(const lr_scanner_params *params);

/* Checks everything but overlaps: numbers, axes, sizes, crystal count, coincidence rules. */
lr_status lr_scanner_check_params(const lr_scanner_params *params);

/* The overlap of two modules' boxes: the shortest way, in mm, by which one would have to move to touch the other
 * only; negative when they are apart (then not the distance). Oriented boxes overlap when none of 15 axes separates
 * them (Gottschalk, Lin, Manocha: OBBTree, 1996). */
double lr_module_overlap_mm(const lr_module *a, const lr_module *b);

/* The shortest decimal within `off` of a value. */
double lr_shortest_decimal(double value, double off);

/* Order of two doubles, for qsort. */
int lr_compare_doubles(const void *a, const void *b);

/* --- modules near each other --- */

/* Modules sorted by where the upright boxes around them begin along one axis. Plain data. */
struct lr_module_index {
    int count;
    double (*bounds)[6]; /* [count] lowest and highest x, y, z of each module's crystals */
    int *order;          /* [count] modules by their lowest coordinate along `axis` */
    double *reach;       /* [count] highest coordinate of order[0 .. k] */
    int axis;
    int *met; /* [count] what lr_module_index_meet gives */
};

/* Normals are set. errors: LR_FAILED when memory is short. */
lr_status lr_module_index_init(struct lr_module_index *index, const lr_module *modules, int count, const lr_log *log);
void lr_module_index_finish(struct lr_module_index *index);

/* Finds the modules numbered above `module` whose upright boxes touch the module's own box: all that may overlap
 * with it. Returns their number; index->met lists them, ascending. */
int lr_module_index_meet(struct lr_module_index *index, int module);

/* --- attenuation in crystals --- */

/* Attenuation of a module's crystals in 1/mm: its own, else the scanner's, else LYSO's. */
double lr_module_mu_per_mm(const lr_scanner *scanner, int module);

/* Checks that crystal penetration is possible, which it is not in exact mode. errors: LR_USAGE, logged. */
lr_status lr_penetration_check(const lr_scanner *scanner, lr_mode mode, const lr_log *log);

/* Warns if the scanner does not say what its crystals attenuate. */
void lr_penetration_warn(const lr_scanner *scanner, const lr_log *log);

/* --- rings as lists of modules, and back --- */

/* The modules of a ring, in the order that lr/scanner.h gives, normals not set; to be freed.
 * errors: NULL for counts and lengths that make no ring, logged under `title`. */
lr_module *lr_ring_expand(const char *title, const lr_ring *ring, int *num_modules, const lr_log *log);

/* A ring that describes a scanner's modules; finish it. */
struct lr_ring_form {
    lr_ring ring;
    int *block_crystals[2]; /* owned; ring.block_crystals points there */
    lr_layer *layers;       /* owned; ring.layers points there */
    int *layer_crystals;    /* owned; theirs point there */
};

/* Finds the ring whose modules are the scanner's, in its order, to within 1e-6 mm. Numbers are
 * the shortest decimals that they may come from by rounding (1e-13).
 * found: whether there is one; *form holds nothing otherwise.
 * errors: LR_FAILED when memory is short. */
lr_status lr_ring_form_find(const lr_scanner *scanner, struct lr_ring_form *form, bool *found, const lr_log *log);
void lr_ring_form_finish(struct lr_ring_form *form);

#endif
