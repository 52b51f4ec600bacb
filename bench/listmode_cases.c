/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Tables I to V of the paper: milliseconds for forward and back projection and the update; its figures 3, 5
 * and 6; more lines than it has, and the image of a public data set. */
#include "listmode.h"

const char *const listmode_tables[LISTMODE_NUM_TABLES + 1] = {"first",    "lines",  "widths",     "voxels",
                                                              "both",     "linear", "ladder",     "public",
                                                              "fastmath", "blocks", "collisions", NULL};

#define WHOLE_BODY                                                                                                     \
    {                                                                                                                  \
        75, 75, 26                                                                                                     \
    }
#define CUBE(n)                                                                                                        \
    {                                                                                                                  \
        n, n, n                                                                                                        \
    }

const struct listmode_case listmode_cases[] = {
    {"first", WHOLE_BODY, 3, 1, .paper_ms = {95, 61}},
    /* table I, blocks of 1024 threads, 15 of them */
    {"lines", WHOLE_BODY, 3, 1, .paper_ms = {95, 61}},
    {"lines", WHOLE_BODY, 3, 2, .paper_ms = {190, 122}},
    {"lines", WHOLE_BODY, 3, 5, .paper_ms = {475, 301}},
    {"lines", WHOLE_BODY, 3, 10, .paper_ms = {949, 600}},
    /* table V */
    {"widths", WHOLE_BODY, 1, 1, .paper_ms = {44, 24}},
    {"widths", WHOLE_BODY, 3, 1, .paper_ms = {95, 61}},
    {"widths", WHOLE_BODY, 5, 1, .paper_ms = {215, 128}},
    {"widths", WHOLE_BODY, 7, 1, .paper_ms = {382, 226}},
    {"widths", WHOLE_BODY, 9, 1, .paper_ms = {614, 360}},
    {"widths", WHOLE_BODY, 11, 1, .paper_ms = {906, 529}},
    {"widths", WHOLE_BODY, 13, 1, .paper_ms = {1256, 731}},
    {"widths", WHOLE_BODY, 15, 1, .paper_ms = {1668, 968}},
    /* table IV */
    {"voxels", CUBE(32), 3, 1, .paper_ms = {53, 29}},
    {"voxels", CUBE(48), 3, 1, .paper_ms = {73, 42}},
    {"voxels", CUBE(64), 3, 1, .paper_ms = {95, 57}},
    {"voxels", CUBE(128), 3, 1, .paper_ms = {367, 232}},
    {"voxels", CUBE(256), 3, 1, .paper_ms = {2119, 1387}},
    /* table III */
    {"both", CUBE(32), 1, 1, .paper_ms = {21, 11}},
    {"both", CUBE(48), 2, 1, .paper_ms = {30, 17}},
    {"both", CUBE(64), 3, 1, .paper_ms = {95, 57}},
    {"both", CUBE(128), 6, 1, .paper_ms = {828, 509}},
    {"both", CUBE(192), 9, 1, .paper_ms = {5962, 3595}},
    {"both", CUBE(256), 12, 1, .paper_ms = {18994, 11317}},
    /* T = a N + b beyond the paper's lines */
    {"linear", WHOLE_BODY, 3, 1, .paper_ms = {0}},
    {"linear", WHOLE_BODY, 3, 10, .paper_ms = {0}},
    {"linear", WHOLE_BODY, 3, 100, .paper_ms = {0}},
    /* figure 5: each step with those before it */
    {"ladder", WHOLE_BODY, 3, 1, .paper_ms = {95, 61}, .has_ladder = true},
    /* the public NEMA data set's image, subsets and iterations (Zenodo 8404015) */
    {"public", {215, 215, 71}, 3, 10, .preset = "ge-discovery-mi", .voxel_mm = 2.78, .subsets = 34, .iterations = 2},
    /* table II: with time of flight, the step before fast math and the last one */
    {"fastmath", WHOLE_BODY, 3, 1, .paper_ms = {0, 61}, .has_fastmath = true},
    {"fastmath", WHOLE_BODY, 5, 1, .paper_ms = {0, 128}, .has_fastmath = true},
    {"fastmath", WHOLE_BODY, 7, 1, .paper_ms = {0, 226}, .has_fastmath = true},
    /* figure 6 */
    {"blocks", WHOLE_BODY, 3, 1, .paper_ms = {95, 61}, .has_blocks = true},
    /* figure 3 */
    {"collisions", WHOLE_BODY, 3, 1, .paper_ms = {95, 61}, .has_collisions = true},
    {0},
};
