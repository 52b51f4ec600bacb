/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The arrangement of the modules of a scanner, for backends that need a simple one. */
#ifndef LR_MODEL_ARRANGEMENT_H
#define LR_MODEL_ARRANGEMENT_H

#include <lr/lors.h>

/* True if a module may hide another one from a point. If every module lies in front of every other one's plane, as
 * in a ring, they lie on the surface of a convex body, and a line with hits on both sides of a point has one on
 * either: docs/method/correspondence.md, "First hit". */
bool lr_modules_may_hide(const lr_scanner *scanner);

/* The axis of a module that lies along a grid axis: 0 = u, 1 = v, -1 = none. */
int lr_module_axial(const lr_module *module, int axis);

/* The last grid axis along which both modules of every pair have the same one of their axes; -1: there is none. */
int lr_lors_axial_axis(const lr_lors *lors);

#endif
