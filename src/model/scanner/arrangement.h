/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The arrangement of the modules of a scanner, for backends that support simple arrangements only. */
#ifndef LR_MODEL_ARRANGEMENT_H
#define LR_MODEL_ARRANGEMENT_H

#include <lr/lors.h>

/* True if a module may hide another one from a point. If every module lies in front of the plane of every other module,
 * like in a ring, the modules lie on the surface of a convex body. A line with hits on both sides of a point then has
 * one hit on each side: docs/method/correspondence.md, "First hit". */
bool lr_modules_may_hide(const lr_scanner *scanner);

/* The axis of a module that is parallel to a grid axis: 0 = u, 1 = v, -1 = none. */
int lr_module_axial(const lr_module *module, int axis);

/* The last grid axis to which the same axis (u or v) of both modules is parallel, for every pair; -1 = none. */
int lr_lors_axial_axis(const lr_lors *lors);

#endif
