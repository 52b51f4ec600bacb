/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a column of sample points sees across the axis: modules are segments, and what a secondary
 * crystal column shows of a primary one is an interval of the primary's coordinate u, a strip. It is
 * the same for every point of the column and all cells along it. A secondary cell's edge b stands on
 * the primary at -b tau, both counted from the point, with tau = (way to the primary) / (way to the
 * secondary) linear in u. Lengths in mm. */
#ifndef LR_NATIVE_STRIP_H
#define LR_NATIVE_STRIP_H

#include "native/scene.h"

/* A module seen from a column. */
struct lr_native_side {
    const struct lr_native_module *module;
    double centre[2]; /* from the column */
    double foot;      /* coordinate of the module's centre, from the column's foot */
    double height;    /* of the column over the module; it sees the face where this is positive */
};

/* How lines through the column lead from primary to secondary, and back. */
struct lr_native_crossing {
    struct lr_native_side primary, secondary;
    bool i_is_primary;
    double tau[2];                /* at the coordinate 0 of the primary, and its slope */
    double on_second[2];          /* the secondary's coordinate is -(x + y u) / tau(u) - secondary.foot */
    double reach[2], on_first[2]; /* the primary's is -height (z + w w) / (x + y w) - primary.foot */
};

struct lr_native_strip {
    float tau;     /* at the middle */
    float dtau;    /* from one end to the other; 0 for modules that are parallel across */
    float squared; /* of the distance across from the column to the middle */
    float width;   /* sampled mode: a line's share of the face */
    float share;   /* height * width / 2 pi */
    float slant;   /* the middle's coordinate from the foot */
    double tau_exactly;
    int parts;  /* that a primary cell is cut into along the axis */
    int ci, cj; /* crystal columns of the pair's modules */
};

/* Pieces that a face is cut into at most, across and along. */
enum { LR_NATIVE_MAX_PARTS = 32 };

/* Whether the column sees both faces. point: across. */
bool lr_native_sees(const struct lr_native_scene *scene, int64_t pair, const double point[2],
                    struct lr_native_side sides[2]);

struct lr_native_crossing lr_native_cross(const struct lr_native_side sides[2], bool i_is_primary);

/* Columns of the pair's module i, begin <= ci < end, and of j; of these those that are `turn` modulo
 * `interleave` by their angle, whose number is that of columns 0 and 0, step[0] ci and step[1] cj added up
 * modulo `angles`. */
struct lr_native_range {
    int begin[2], end[2];
    int interleave, turn; /* interleave 0: all */
    int first, step[2], angles;
};

static inline bool lr_native_takes(const struct lr_native_range *range, int ci, int cj)
{
    return range->interleave == 0 ||
           (range->first + range->step[0] * ci + range->step[1] * cj) % range->angles % range->interleave ==
               range->turn;
}

/* Upper bound of the strips of one crossing. */
int64_t lr_native_max_strips(const struct lr_native_scene *scene);

/* The strips that belong to columns of the range, in order along the primary. Returns how many. */
int lr_native_find_strips(const struct lr_native_scene *scene, const struct lr_native_crossing *crossing,
                          const struct lr_native_range *range, struct lr_native_strip *strips);

#endif
