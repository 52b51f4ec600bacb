/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_BASE_CGROUP_H
#define LR_BASE_CGROUP_H

#include <stdbool.h>

/* Calls visit with the folder of each Linux control group that bounds this process: its own group
 * and all above it, in the unified hierarchy (v2) and in the one of that controller ("memory",
 * "cpu"; v1). Calls nothing where there are no control groups. A folder may not exist. */
void lr_cgroup_visit(const char *controller, void (*visit)(void *user, const char *folder), void *user);

/* The first `num_values` numbers in folder/file; false when there are fewer ("max", or no file). */
bool lr_cgroup_read(const char *folder, const char *file, int num_values, double *values);

#endif
