/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Which modules may stop lines on their way to others, seen from one point at a time: for the plans
 * of scanners whose modules may hide each other. Conservative: none that may is left out. */
#ifndef LR_RENDER_PLAN_HIDING_H
#define LR_RENDER_PLAN_HIDING_H

#include <lr/scanner.h>

struct lr_plan_hiding;

/* errors: NULL, logged. The scanner stays the caller's and outlives it. */
struct lr_plan_hiding *lr_plan_hiding_create(const lr_scanner *scanner, const lr_log *log);
void lr_plan_hiding_destroy(struct lr_plan_hiding *hiding);

/* Takes up a point, for the questions below. */
void lr_plan_hiding_look(struct lr_plan_hiding *hiding, const double point_mm[3]);

/* The modules of which some line from the point may meet one before it meets `module`, as bits:
 * module k is bit k % 64 of word k / 64. Valid until the next look. */
const uint64_t *lr_plan_hiders(const struct lr_plan_hiding *hiding, int module);

/* Words of such a list. */
int lr_plan_hiding_words(const struct lr_plan_hiding *hiding);

/* Whether some line through the point may meet a on one side of it and b on the other. */
bool lr_plan_opposite(const struct lr_plan_hiding *hiding, int a, int b);

#endif
