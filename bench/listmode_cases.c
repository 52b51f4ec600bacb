/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Tables I and III to V of the paper: milliseconds for forward and back projection and the update. */
#include "listmode.h"

const char *const listmode_tables[LISTMODE_NUM_TABLES + 1] = {"first",  "lines", "widths",
                                                              "voxels", "both",  NULL};

#define WHOLE_BODY                                                                                 \
    {                                                                                              \
        75, 75, 26                                                                                 \
    }
#define CUBE(n)                                                                                    \
    {                                                                                              \
        n, n, n                                                                                    \
    }

const struct listmode_case listmode_cases[] = {
    {"first", WHOLE_BODY, 3, 1, {95, 61}},
    /* table I, blocks of 1024 threads, 15 of them */
    {"lines", WHOLE_BODY, 3, 1, {95, 61}},
    {"lines", WHOLE_BODY, 3, 2, {190, 122}},
    {"lines", WHOLE_BODY, 3, 5, {475, 301}},
    {"lines", WHOLE_BODY, 3, 10, {949, 600}},
    /* table V */
    {"widths", WHOLE_BODY, 1, 1, {44, 24}},
    {"widths", WHOLE_BODY, 3, 1, {95, 61}},
    {"widths", WHOLE_BODY, 5, 1, {215, 128}},
    {"widths", WHOLE_BODY, 7, 1, {382, 226}},
    {"widths", WHOLE_BODY, 9, 1, {614, 360}},
    {"widths", WHOLE_BODY, 11, 1, {906, 529}},
    {"widths", WHOLE_BODY, 13, 1, {1256, 731}},
    {"widths", WHOLE_BODY, 15, 1, {1668, 968}},
    /* table IV */
    {"voxels", CUBE(32), 3, 1, {53, 29}},
    {"voxels", CUBE(48), 3, 1, {73, 42}},
    {"voxels", CUBE(64), 3, 1, {95, 57}},
    {"voxels", CUBE(128), 3, 1, {367, 232}},
    {"voxels", CUBE(256), 3, 1, {2119, 1387}},
    /* table III */
    {"both", CUBE(32), 1, 1, {21, 11}},
    {"both", CUBE(48), 2, 1, {30, 17}},
    {"both", CUBE(64), 3, 1, {95, 57}},
    {"both", CUBE(128), 6, 1, {828, 509}},
    {"both", CUBE(192), 9, 1, {5962, 3595}},
    {"both", CUBE(256), 12, 1, {18994, 11317}},
    {0},
};
