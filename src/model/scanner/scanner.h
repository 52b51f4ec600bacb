/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Functions of scanners for other code of the library: checks, neighbouring modules, attenuation in crystals, rings.
 * All messages name the scanner and the module. */
#pragma once

#include "base/vec.h"

#include <lr/lors.h>
#include <lr/operator.h>
#include <lr/scanner.h>

/* Tolerance of lengths in the geometry, mm. */
#define LR_OVERLAP_TOLERANCE_MM 1e-6

/* The scanner's name for messages. */
const char *lr_scanner_title(const lr_scanner_params *params);

/* Checks everything except overlaps: numbers, axes, sizes, crystal count, coincidence rules. */
lr_status lr_scanner_check_params(const lr_scanner_params *params);

/* The overlap of the boxes of two modules, mm: the shortest distance by which one box must be moved so that the boxes
 * only touch. The overlap is negative if the boxes do not touch; its size is then not the distance between the boxes.
 * Oriented boxes overlap if none of 15 axes separates them (Gottschalk, Lin, Manocha: OBBTree, 1996). */
double lr_module_overlap_mm(const lr_module *a, const lr_module *b);

/* Writes into `words` by how much two modules overlap. If their centres lie apart mainly along the axis, it is the
 * overlap along the axis, such as "1.5 mm along the axis", and the result is true. Otherwise it is
 * lr_module_overlap_mm. */
enum { LR_OVERLAP_WORDS = 128 };
bool lr_module_say_overlap(const lr_module *a, const lr_module *b, char words[LR_OVERLAP_WORDS]);

/* The number with the fewest decimals, fewer than `most`, that differs from `value` by at most `off`; `value` if there
 * is no such number. */
double lr_shortest_decimal(double value, int most, double off);

/* --- the pitch rectangle of a module, which its crystals fill --- */

/* Half of the rectangle's diagonal, mm. */
static inline double lr_module_radius_mm(const lr_module *module)
{
    return 0.5 * hypot(module->crystals[0] * module->pitch_mm[0], module->crystals[1] * module->pitch_mm[1]);
}

/* Half of the rectangle's extent along axis k of the frame, mm. */
static inline double lr_module_half_mm(const lr_module *module, int k)
{
    return 0.5 * (module->crystals[0] * module->pitch_mm[0] * fabs(module->u[k]) +
                  module->crystals[1] * module->pitch_mm[1] * fabs(module->v[k]));
}

/* Corner 0 to 3 of the rectangle around a point. Bits 0 and 1 of `corner` choose the far side along u and v. */
static inline void lr_module_corner(const lr_module *module, const double middle_mm[3], int corner, double corner_mm[3])
{
    const double half_u = 0.5 * module->crystals[0] * module->pitch_mm[0];
    const double half_v = 0.5 * module->crystals[1] * module->pitch_mm[1];
    vec_add_scaled(middle_mm, corner & 1 ? half_u : -half_u, module->u, corner_mm);
    vec_add_scaled(corner_mm, corner & 2 ? half_v : -half_v, module->v, corner_mm);
}

/* True if u x v points inwards. In rings, u x v points outwards. */
bool lr_module_is_mirrored(const lr_module *module);

/* --- modules near each other --- */

/* Modules sorted by the lower ends of their axis-aligned bounding boxes along one axis. Plain data. */
struct lr_module_index {
    int count;
    double (*bounds)[6]; /* [count] lowest and highest x, y, z of each module's crystals */
    int *order;          /* [count] modules by their lowest coordinate along `axis` */
    double *reach;       /* [count] reach[k]: highest coordinate of modules order[0 .. k] */
    int axis;
    int *met; /* [count] result of lr_module_index_meet */
};

/* Normals must be set. errors: LR_FAILED, out of memory. */
lr_status lr_module_index_init(struct lr_module_index *index, const lr_module *modules, int count, const lr_log *log);
void lr_module_index_finish(struct lr_module_index *index);

/* Finds the modules with numbers above `module` whose axis-aligned bounding boxes touch the module's own box. All
 * modules that may overlap with `module` are among them. Returns their number; index->met lists them, ascending. */
int lr_module_index_meet(struct lr_module_index *index, int module);

/* --- attenuation in crystals --- */

/* Attenuation of a module's crystals in 1/mm: the module's own value, or else the scanner's, or else the value of
 * LYSO. */
double lr_module_mu_per_mm(const lr_scanner *scanner, int module);

/* True if the scanner states the attenuation of all crystals. */
bool lr_scanner_knows_mu(const lr_scanner *scanner);

/* Checks that the mode is not exact, because exact mode has no crystal penetration. errors: LR_USAGE, logged. */
lr_status lr_penetration_check(const lr_scanner *scanner, lr_mode mode, const lr_log *log);

/* Warns if the scanner does not state the attenuation of its crystals. */
void lr_penetration_warn(const lr_scanner *scanner, const lr_log *log);

/* --- rings as lists of modules, and back --- */

/* The modules of a ring, in the order that lr/scanner.h defines, normals not set. The caller frees the result. errors:
 * NULL for numbers and lengths that make no ring, logged under `title`. */
lr_module *lr_ring_expand(const char *title, const lr_ring *ring, int *num_modules, const lr_log *log);

/* A ring that describes a scanner's modules. The caller calls lr_ring_form_finish. */
struct lr_ring_form {
    lr_ring ring;
    int *block_crystals[2]; /* owned; ring.block_crystals points to it */
    lr_layer *layers;       /* owned; ring.layers points to it */
    int *layer_crystals;    /* owned; the layers' pointers point to it */
};

/* Finds the ring whose modules are the scanner's modules, in the same order, to within 1e-6 mm. The ring's numbers are
 * decimals, as short as rounding of the modules' numbers (1e-13) allows. *found is true if there is such a ring;
 * otherwise *form holds nothing. errors: LR_FAILED, out of memory. */
lr_status lr_ring_form_find(const lr_scanner *scanner, struct lr_ring_form *form, bool *found, const lr_log *log);
void lr_ring_form_finish(struct lr_ring_form *form);

/* --- layers of crystals, from front to back (lr/scanner.h). A module with a description of layers is replaced by one
 * module per layer --- */

/* The fault of the first layer that does not fit into its module. */
struct lr_layer_fault {
    int layer;        /* -1 = no fault */
    double excess_mm; /* length by which the layer overlaps the layer before it, or leaves the module */
    bool leaves;      /* true if the layer leaves the module, false if it overlaps */
};

/* Checks the front faces and depths of layers in a module of this depth. */
struct lr_layer_fault lr_layers_find_fault(const lr_layer *layers, int num_layers, double depth_mm);

/* Distance from the module's front face to the layer's front face, mm. */
double lr_layer_front_mm(const lr_layer *layers, int layer);

/* The module of one layer of the module `whole`. block: the block's numbers along u and v within its panel. The normal
 * is copied from `whole`, even if it is not set. */
lr_module lr_layer_module(const lr_module *whole, const lr_layer *layers, int layer, const int block[2]);

/* Number of layers of a scanner; 1 if no layers are described. */
int lr_scanner_num_layers(const lr_scanner *scanner);

/* --- the arrangement of the modules, for backends that support simple arrangements only --- */

/* True if a module may hide another one from a point. If every module lies in front of the plane of every other module,
 * like in a ring, the modules lie on the surface of a convex body. A line with hits on both sides of a point then has
 * one hit on each side: docs/method/correspondence.md, "First hit". */
bool lr_modules_may_hide(const lr_scanner *scanner);

/* The axis of a module that is parallel to a grid axis: 0 = u, 1 = v, -1 = none. */
int lr_module_axial(const lr_module *module, int axis);

/* The last grid axis k that fits every pair of modules: both modules have u parallel to k, or both have v parallel to
 * k; -1 = none. */
int lr_lors_axial_axis(const lr_lors *lors);
