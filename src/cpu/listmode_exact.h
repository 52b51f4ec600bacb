/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The exact kernel of list mode: the elements of single LORs in exact mode, with time of flight
 * (docs/method/listmode.md, "Exact elements"), and how that is spread along lines for all kernels. */
#ifndef LR_CPU_LISTMODE_EXACT_H
#define LR_CPU_LISTMODE_EXACT_H

#include "listmode/backend.h"
#include "listmode/line.h"
#include "listmode/rows.h"

struct lr_cpu_listmode_exact;

/* The event at place k of the arrays, in a group of this axis; which thread asks, 0 .. threads - 1; and
 * the planes across z in which it wants elements, first and behind the last. */
struct lr_cpu_listmode_event {
    int64_t k;
    int axis, worker, planes[2];
};

/* NULL without memory, logged. What params point to outlives it. */
struct lr_cpu_listmode_exact *lr_cpu_listmode_exact_create(const struct lr_listmode_backend_params *params);
/* NULL is allowed. */
void lr_cpu_listmode_exact_destroy(struct lr_cpu_listmode_exact *exact);

void lr_cpu_listmode_exact_visit(struct lr_cpu_listmode_exact *exact, const struct lr_cpu_listmode_event *event,
                                 const struct lr_listmode_visitor *visitor);

/* The part of an event with time of flight that lies between two places of its line, and the density at one
 * of an event with a bin, per mm: docs/method/listmode.md, "Factor of a slice". */
double lr_cpu_listmode_held(const struct lr_listmode_line *line, double low, double high);
double lr_cpu_listmode_density(const struct lr_listmode_line *line, double place);

#endif
