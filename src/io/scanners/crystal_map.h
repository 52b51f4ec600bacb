/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Finds crystals by the numbers of another program (STIR's crystal maps) or by their centres. */
#pragma once

#include "model/scanner/point_hash.h"

#include <lr/scanner.h>

/* Map from another program's (ring, detector, layer) to the crystals of a scanner. */
struct lr_crystal_map {
    int64_t count;
    uint32_t *keys; /* [count], ascending keys of lr_crystal_key */
    int *crystals;  /* [count], crystal numbers in the whole scanner */
};

/* Packs ring, detector and layer as list-mode records store them: in 8, 16 and 4 bits. */
static inline uint32_t lr_crystal_key(unsigned ring, unsigned detector, unsigned layer)
{
    return (uint32_t)ring << 20 | (uint32_t)detector << 4 | (uint32_t)layer;
}

/* Reads STIR's text map. Each crystal has a line "ring det [layer] x y z" in millimetres, with blanks or commas between
 * the numbers; '#' begins a comment. Each position must lie within 0.01 mm of the centre of one of the scanner's
 * crystals (half its depth below the face). Two positions must not belong to the same crystal. Numbers are read in the
 * thread's locale. errors: LR_BAD_INPUT, with file and line, for malformed lines, crystals named twice, and positions
 * without a crystal; LR_FAILED if memory runs out. On failure *map holds nothing. */
lr_status lr_crystal_map_read(const char *path, const lr_scanner *scanner, struct lr_crystal_map *map,
                              const lr_log *log);
void lr_crystal_map_finish(struct lr_crystal_map *map);

/* Returns the crystal of a key, or -1. */
int lr_crystal_map_find(const struct lr_crystal_map *map, uint32_t key);

/* A crystal of STIR's map: a line "ring det [layer] x y z" in mm. */
struct lr_crystal_map_line {
    int line;
    const char *text, *comment; /* text before and after '#'; comment = NULL: no comment */
    int columns;                /* number of numbers: 5 or 6; 0 = blank line; -1 = anything else */
    double numbers[6];          /* [columns] */
};

/* `take` receives the lines, with `user`. A status other than LR_OK ends the reading. */
struct lr_crystal_map_sink {
    lr_status (*take)(void *user, const struct lr_crystal_map_line *line);
    void *user;
};

/* Reads all lines of a file of at most `most` bytes, including blank lines. errors: LR_BAD_INPUT, logged, if the file
 * cannot be read or a line is too long for a map. */
lr_status lr_crystal_map_lines(const char *path, int64_t most, const struct lr_crystal_map_sink *sink,
                               const lr_log *log);

/* Reads the numbers of a line, which are separated by blanks, tabs or commas. Returns 5 or 6, the number of numbers; 0
 * for a blank line; else -1. */
int lr_crystal_map_numbers(const char *text, double numbers[6]);

/* The centres of a scanner's crystals, for finding the crystal at a position. */
struct lr_centre_index {
    double (*centres_mm)[3]; /* owned [num_crystals] */
    struct lr_point_hash hash;
};

/* errors: LR_FAILED if memory runs out, logged; *index then holds nothing. */
lr_status lr_centre_index_init(struct lr_centre_index *index, const lr_scanner *scanner, const lr_log *log);
void lr_centre_index_finish(struct lr_centre_index *index);

/* Returns the crystal whose centre is nearest to a position, or -1 if none is within `reach_mm` (at most 1). Constant
 * time. */
int lr_centre_index_find(const struct lr_centre_index *index, const double position_mm[3], double reach_mm);

/* Returns the distance to the nearest of all centres. Linear time; for messages only. */
double lr_centre_index_distance(const struct lr_centre_index *index, const double position_mm[3]);
