/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Which modules are near each other, without asking all pairs of them. */
#ifndef LR_MODEL_MODULE_INDEX_H
#define LR_MODEL_MODULE_INDEX_H

#include <lr/scanner.h>

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

/* Modules numbered above `module` whose upright boxes meet its own: all that may overlap with it.
 * Returns how many stand in index->met, ascending. */
int lr_module_index_meet(struct lr_module_index *index, int module);

#endif
