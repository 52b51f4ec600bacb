/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Binding points of buffers and textures, and other numbers that C and GLSL share. Both languages include this file,
 * so it has only #define. */
#ifndef LR_BINDINGS_H
#define LR_BINDINGS_H

/* uniform blocks */
#define LR_BIND_PASS 0

/* storage buffers */
#define LR_BIND_MODULES 0
#define LR_BIND_CRYSTAL_MODULE 1
#define LR_BIND_PAIRS 2
#define LR_BIND_MASK_ENTRIES 3
#define LR_BIND_MASK_WORDS 4
#define LR_BIND_IMAGES 5
#define LR_BIND_DRAWS 6
#define LR_BIND_ROWS 7
#define LR_BIND_BOXES 7 /* only in passes that include correspondence/visit.glsl; they use no buffer of rows */
#define LR_BIND_SUMS 8
#define LR_BIND_OUTPUT 9
#define LR_BIND_CUT_SHORT 10 /* only in passes of correspondence/visit.glsl */

/* Storage buffers of the column passes; masks have the bindings above. */
#define LR_BIND_COLUMN_MODULES 0
#define LR_BIND_COLUMN_PAIRS 1
#define LR_BIND_COLUMN_POINTS 2
#define LR_BIND_COLUMN_LIST 5
#define LR_BIND_COLUMN_STACKS 6
#define LR_BIND_COLUMN_IMAGE 7
#define LR_BIND_COLUMN_MIDDLES 10
#define LR_BIND_COLUMN_STATE 11

/* Storage buffers of the passes by pairs; masks have the bindings above. */
#define LR_BIND_PAIR_MODULES 0
#define LR_BIND_PAIR_LIST 1
#define LR_BIND_PAIR_IMAGE 7
#define LR_BIND_PAIR_STATE 8
#define LR_BIND_PAIR_POINTS 10

/* Storage buffers of passes that make rows from lists of elements (shaders/correspondence/rows). KEYS and VALUES are
 * the tables of LORs. A pass moves elements from FROM to TO. PLACES first has counts of elements. place.comp replaces
 * each count by the index in TO of the first of these elements. SUMS has the sum of each thread's counts. STARTS has
 * the index of each row's first element. */
#define LR_BIND_ROWS_LIST 0
#define LR_BIND_ROWS_KEYS 1
#define LR_BIND_ROWS_VALUES 2
#define LR_BIND_ROWS_FROM 3
#define LR_BIND_ROWS_TO 4
#define LR_BIND_ROWS_PLACES 5
#define LR_BIND_ROWS_SUMS 6
#define LR_BIND_ROWS_STARTS 7

/* Storage buffers of passes over vectors: Y is the vector that is changed or summed, IN is the first
 * of up to three other vectors, and SUMS has the sums of each group. */
#define LR_BIND_VECTOR_Y 0
#define LR_BIND_VECTOR_IN 1
#define LR_BIND_VECTOR_SUMS 4

/* Storage buffers of the pass that copies an image from one order to another. */
#define LR_BIND_ORDER_GRID 0
#define LR_BIND_ORDER_PROJECTOR 1

/* Storage buffers, texture units and image units of passes of the family direct. */
#define LR_BIND_DIRECT_STEPS 0
#define LR_BIND_DIRECT_VALUES 1
#define LR_BIND_DIRECT_OFFSETS 2
#define LR_BIND_DIRECT_KERNELS 3
#define LR_BIND_DIRECT_PROFILES 4
#define LR_BIND_DIRECT_SOURCE 5
#define LR_BIND_DIRECT_TARGET 6
#define LR_BIND_DIRECT_SENSITIVITY 7
#define LR_BIND_DIRECT_VECTOR 8
#define LR_UNIT_DIRECT_SOURCE 0
#define LR_UNIT_DIRECT_MAP 1
#define LR_UNIT_DIRECT_COUNTS 2
#define LR_UNIT_DIRECT_ADDITIVE 3
#define LR_UNIT_DIRECT_FACTORS 4
#define LR_IMAGE_DIRECT_TARGET 0

/* Storage buffers of depositions. TALLIES has the number of events with each outcome, LR_DEPOSIT_TALLY_DONE to
   LR_DEPOSIT_TALLY_OUTSIDE. */
#define LR_BIND_DEPOSIT_EVENTS 0
#define LR_BIND_DEPOSIT_CRYSTALS 1
#define LR_BIND_DEPOSIT_BORDERS 2
#define LR_BIND_DEPOSIT_TALLIES 3
#define LR_BIND_DEPOSIT_SUMS 4
#define LR_DEPOSIT_TALLY_DONE 0
#define LR_DEPOSIT_TALLY_TILTED 1
#define LR_DEPOSIT_TALLY_OUTSIDE 2

/* Storage buffers of the family listmode. The pass that computes lines reads the buffers EVENTS to PLACES and the
 * buffer VALUES, and writes LINES. SLICES and SUMS are images slice by slice. GRID is an image in the grid's order.
 * TABLE is the tube's table. SCALE is the scale of the sums. For each event, ELEMENTS has the number of its elements,
 * and then the elements. JOBS, LINE_VALUES and OTHERS are for kept lines (docs/method/listmode.md, "Backend compute").
 * LINE_VALUES has values in the order of lines. OTHERS lists the lines with values of unusual size. */
#define LR_BIND_LIST_EVENTS 0
#define LR_BIND_LIST_CRYSTALS 1
#define LR_BIND_LIST_SIGMAS 2
#define LR_BIND_LIST_KINDS 3
#define LR_BIND_LIST_PLACES 4
#define LR_BIND_LIST_LINES 5
#define LR_BIND_LIST_VALUES 6
#define LR_BIND_LIST_SLICES 0
#define LR_BIND_LIST_SUMS 1
#define LR_BIND_LIST_SCALE 8
#define LR_BIND_LIST_TABLE 3
#define LR_BIND_LIST_GRID 4
#define LR_BIND_LIST_ELEMENTS 7
#define LR_BIND_LIST_MODULES 7 /* only in the pass that computes lines for exact elements */
#define LR_BIND_LIST_JOBS 9
#define LR_BIND_LIST_LINE_VALUES 10
#define LR_BIND_LIST_OTHERS 11

/* Operations on a texel in updates of the family direct. */
#define LR_DIRECT_DO_RAMLA 0
#define LR_DIRECT_DO_EM 1
#define LR_DIRECT_DO_SENSITIVITY 2
#define LR_DIRECT_DO_ADD 3

/* texture units */
#define LR_UNIT_CORRESPONDENCE 0
#define LR_UNIT_LORS 1
#define LR_UNIT_SUMS 2
#define LR_UNIT_MU 3
#define LR_UNIT_VOXELS 4

/* LR_GROUP_SIZE, LR_VECTOR_GROUP: threads of a workgroup in most passes, and in passes over vectors;
 * LR_VECTOR_NUM_SUMS: number of sums of a vector; LR_MAX_TARGETS: largest number of modules that are seen through a
 * primary. */
#define LR_GROUP_SIZE 64
#define LR_VECTOR_GROUP 256
#define LR_VECTOR_NUM_SUMS 6
#define LR_VECTOR_LARGEST 4 /* from this index on, a vector's sums are maxima: of x, and of -x */
#define LR_MAX_TARGETS 96

/* Rows are sorted by groups of LR_SORT_GROUP threads, by digits of LR_SORT_BITS bits. Each thread has one count per
 * digit in shared memory. These counts fit into the shared memory of every device. */
#define LR_SORT_GROUP 32
#define LR_SORT_BITS 8

/* The number of threads that work on one LOR of a list. */
#define LR_LIST_SHARE 8

/* Family direct: number of threads of a group; numbers of neighbouring outputs and of quads of slices that one thread
 * computes. The code of shaders/direct/gather.glsl depends on these numbers. */
#define LR_DIRECT_GROUP 128
#define LR_DIRECT_OUTPUTS 4
#define LR_DIRECT_QUADS 2

/* Family listmode: numbers of threads of a group in most passes, in forward projections by slabs, and in passes of
 * exact elements. */
#define LR_EVENTS_GROUP 256
#define LR_EVENTS_SLAB_GROUP 512
#define LR_EVENTS_EXACT_GROUP 32
/* The number of threads that share one line with a value of unusual size. */
#define LR_EVENTS_SHARE 32
/* LR_EVENTS_EXACT_HALF is the limit for half of a face's edge divided by the face's distance from the points that see
 * it. A face beyond this limit is divided into pieces, up to LR_EVENTS_EXACT_PIECES along an axis. LR_EVENTS_EXPONENT
 * is added to exponents, because they can be negative. */
#define LR_EVENTS_EXACT_HALF 0.04
#define LR_EVENTS_EXACT_PIECES 64
#define LR_EVENTS_EXPONENT 1024
/* The usual size of a back-projection's values is a power of two that only about one value in 32 exceeds
 * (shaders/listmode/exponents.comp). Sums remain integers if no term exceeds 2^LR_EVENTS_SPREAD times the usual
 * size. */
#define LR_EVENTS_SPREAD 8
/* The largest term of the smallest value has at least this many bits: six bits for elements smaller than the
 * largest, LR_EVENTS_SPREAD bits for terms larger than the usual size, 15 bits for the sum's accuracy of 1e-5. */
#define LR_EVENTS_LEAST_BITS 29
/* The sums of a group have one word each. Values that are more than 2^LR_EVENTS_CELL_SPREAD times smaller than the
 * usual size are not added to these sums. */
#define LR_EVENTS_CELL_SPREAD 7
/* With exact elements, values up to 2^LR_EVENTS_EXACT_NEAR times the usual size are treated like values of the usual
 * size, because sums of exact elements have bits to spare. The largest terms are then needed for few events. Finding
 * them for many events would take as long as a projection. */
#define LR_EVENTS_EXACT_NEAR 4
/* The largest sum that a group keeps in one word, rounding errors included. */
#define LR_EVENTS_CELL_MOST 2.14e9

/* The mask of a gather's step. Bit 4 r + j is set if output j uses offset r. LR_DIRECT_FRESH marks the first step of a
 * column. */
#define LR_DIRECT_FRESH 0x10000

/* The number that stands for a pair of modules, or for a LOR, that does not exist. */
#define LR_NONE 0xffffffffu

/* Flags in a draw's secondary module. LR_ONLY_STOPS: the module stops photons, and has no LOR here.
 * LR_BEFORE_PRIMARY: the module is between the point and the primary. LR_HIDES: the module may hide another one. */
#define LR_ONLY_STOPS 0x80000000u
#define LR_BEFORE_PRIMARY 0x40000000u
#define LR_HIDES 0x20000000u
#define LR_DRAW_MODULE 0x1fffffffu

#endif
