/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The two crystals of each LOR in a sequence of LORs; angles of LORs; sums over the LORs in coincidence;
 * checks of values per LOR. */
#pragma once

#include "model/scanner/coincidence.h"

#include <stddef.h>

/* A LOR and its crystals. Initialise with {.lors = lors}. Crystal numbers a and b count within their modules. */
struct lr_lor_place {
    const lr_lors *lors;
    int64_t pair;         /* index in lors->pairs */
    int64_t row;          /* number of the row's first LOR, which joins crystal a to crystal 0 of the higher module */
    int crystals_j;       /* number of LORs of this row, one per crystal of the higher module; 0 = no row found yet */
    int nu_j;             /* crystals along u of the higher module */
    int first_i, first_j; /* first_crystal of the two modules */
    int a, b;
    int p, q; /* column and row of crystal a */
};

/* The LOR of two crystals; -1 = not in coincidence. */
int64_t lr_place_joined(const lr_lors *lors, const int32_t crystals[2]);

/* Moves to the row of a LOR. */
void lr_place_seek_row(struct lr_lor_place *place, int64_t lor);

/* Moves to a LOR, 0 <= lor < count. Moves within the current row take almost no time. */
static inline void lr_place_seek(struct lr_lor_place *place, int64_t lor)
{
    if (lor < place->row || lor >= place->row + place->crystals_j) lr_place_seek_row(place, lor);
    place->b = (int)(lor - place->row);
}

static inline bool lr_place_in_coincidence(const struct lr_lor_place *place)
{
    const struct lr_coincidence_masks *masks = place->lors->masks;
    return masks->pairs[place->pair].kind == LR_MASK_ALL ||
           lr_coincidence_allows(place->lors, place->pair, place->p, place->q, place->b % place->nu_j,
                                 place->b / place->nu_j);
}

/* The LOR at index k of a span. */
static inline int64_t lr_span_lor(const lr_lor_span *span, int64_t k)
{
    return span->numbers != NULL ? span->numbers[k] : span->first + k;
}

/* True if all numbers of the span are LORs of this list. */
bool lr_span_fits(const lr_lors *lors, const lr_lor_span *span);

/* Places of a module's crystals. A place is the index of a position around the axis. Places run along u, or along v if
 * v runs around the axis. */
struct lr_module_places {
    int32_t first; /* place of the crystals with p = 0, or with q = 0 if is_v */
    int32_t rank;  /* number of modules at the same azimuth that come before this module */
    int8_t step;   /* step of the place from one crystal to the next, +1 or -1 */
    bool is_v;     /* true if places depend on q, false if they depend on p */
};

struct lr_angles {
    int32_t count; /* number of places around the axis */
    struct lr_module_places *modules;
};

static inline int32_t lr_place_of_crystal(const struct lr_module_places *places, int p, int q)
{
    return places->first + places->step * (places->is_v ? q : p);
}

/* The number of a crystal's row for lr_row_kind: the row within the module, plus the module's rank. */
static inline int32_t lr_row_of_crystal(const struct lr_module_places *places, int p, int q)
{
    return places->rank + (places->is_v ? p : q);
}

/* LR_ROW_KINDS: number of kinds of row pairs. LR_FEW_ANGLES: if a part has fewer angles than this, its angles differ
 * from one kind of row pair to the next. */
enum { LR_ROW_KINDS = 4, LR_FEW_ANGLES = 12 };

static inline int32_t lr_row_kind(int32_t row_i, int32_t row_j)
{
    return (row_i + 2 * row_j) % LR_ROW_KINDS;
}

/* Returns by how much the part of an angle changes from one kind of row pair to the next. */
static inline int32_t lr_turn_shift(const lr_lors *lors, int interleave)
{
    return lors->angles->count < 2 * LR_FEW_ANGLES * (int64_t)interleave ? interleave / LR_ROW_KINDS : 0;
}

/* The number of the part to which a LOR belongs. sum: the sum of the places of the LOR's two crystals. kind: the LOR's
 * kind of row pair. Two adjacent sums are one angle, because the LORs of an odd sum lie in the middle between the LORs
 * of an even sum. */
static inline int32_t lr_turn(const lr_lors *lors, int interleave, int32_t sum, int32_t kind)
{
    const int32_t count = lors->angles->count, angle = (sum < count ? sum : sum - count) / 2;
    return (angle + kind * lr_turn_shift(lors, interleave)) % interleave;
}

/* True if the part contains LORs with this sum of two places, for any kind of row pair. */
static inline bool lr_has_angle(const lr_lors *lors, const lr_selection *part, int32_t sum)
{
    if (part->interleave <= 1) return true;
    bool has = lr_turn(lors, part->interleave, sum, 0) == part->interleave_turn;
    for (int kind = 1; !has && kind < LR_ROW_KINDS && lr_turn_shift(lors, part->interleave) > 0; kind++)
        has = lr_turn(lors, part->interleave, sum, kind) == part->interleave_turn;
    return has;
}

/* --- sums over the LORs in coincidence --- */

/* Number of LORs of a module pair that are in coincidence. */
int64_t lr_pair_num_coincidences(const lr_lors *lors, int64_t pair);

/* fans[c] = sum of values[d] over the crystals d in coincidence with c; both [num_crystals]. The result has the same
 * bits for any number of threads. errors: LR_FAILED, out of memory, logged. */
lr_status lr_crystal_fans(const lr_lors *lors, const double *values, double *fans, int threads, const lr_log *log);

/* --- checks of values per LOR, with error messages --- */

/* Checks the LOR numbers of sparse data: they must be ascending, from 0 to lors->count - 1. errors: LR_BAD_INPUT. */
lr_status lr_lor_index_check(const int64_t *index, int64_t count, const lr_lors *lors, const char *name,
                             const lr_log *log);

/* Name of a LOR or voxel, for messages: "LOR 17 (crystal 1, 2 of module 3 with crystal 4, 5 of module 6)", "voxel 17 of
 * view 3". */
const char *lr_lor_name(const lr_lors *lors, int64_t lor, char text[160]);

/* Reports a value that is negative or not finite. */
lr_status lr_lor_report_value(const lr_lors *lors, int64_t lor, double value, const char *name, const lr_log *log);
