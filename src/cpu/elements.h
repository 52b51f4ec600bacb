/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix elements of one row while they are collected. */
#ifndef LR_CPU_ELEMENTS_H
#define LR_CPU_ELEMENTS_H

#include <lr/log.h>
#include <stddef.h>

struct lr_cpu_element {
    int64_t lor;
    double value;
};

/* A growing list; zero-initialised is empty. */
struct lr_cpu_elements {
    struct lr_cpu_element *list;
    struct lr_cpu_element *spare; /* for sorting */
    int64_t count, capacity, spare_capacity;
};

void lr_cpu_elements_finish(struct lr_cpu_elements *elements);

/* errors, of all below: LR_FAILED, out of memory, logged. */
lr_status lr_cpu_elements_add(struct lr_cpu_elements *elements, int64_t lor, double value,
                              const lr_log *log);

/* Sorts by LOR, 0 <= lor < num_lors, and adds up repeats in the order they were added. */
lr_status lr_cpu_elements_merge(struct lr_cpu_elements *elements, int64_t num_lors,
                                const lr_log *log);

/* Replaces the list by `scale` times another one, without its zeros. */
lr_status lr_cpu_elements_assign(struct lr_cpu_elements *elements,
                                 const struct lr_cpu_elements *from, double scale,
                                 const lr_log *log);

#endif
