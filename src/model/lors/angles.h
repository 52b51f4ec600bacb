/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystals' places around the axis, whose sums tell the angles of LORs (lr_lors_angle): a sinogram's views,
 * for modules that stand anywhere. */
#ifndef LR_MODEL_ANGLES_H
#define LR_MODEL_ANGLES_H

#include <lr/lors.h>

/* The crystals of a module that differ in their place: along u, or along v where that runs around the axis. */
struct lr_module_places {
    int32_t first; /* the place of number 0 */
    int8_t step;   /* +1 or -1 from one number to the next */
    bool is_v;     /* numbers are q, else p */
};

struct lr_angles {
    int32_t count; /* places around the axis, and so angles */
    struct lr_module_places *modules;
};

struct lr_angles *lr_angles_create(const lr_scanner *scanner, const lr_log *log);
void lr_angles_destroy(struct lr_angles *angles);

static inline int32_t lr_place_of_crystal(const struct lr_module_places *places, int p, int q)
{
    return places->first + places->step * (places->is_v ? q : p);
}

/* True where a part's LORs have this sum of two places. */
static inline bool lr_angle_is_in(const lr_lors *lors, const lr_selection *part, int32_t sum)
{
    const int32_t count = lors->angles->count, angle = sum < count ? sum : sum - count;
    return part->interleave <= 1 || angle % part->interleave == part->interleave_turn;
}

#endif
