/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Binding points of buffers and textures. C and GLSL include this file, so it has only #define. */
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
#define LR_BIND_BOXES 7 /* visiting passes, which have no rows */
#define LR_BIND_SUMS 8
#define LR_BIND_OUTPUT 9
#define LR_BIND_CUT_SHORT 10 /* visiting passes */

/* storage buffers of the column passes; masks as above */
#define LR_BIND_COLUMN_MODULES 0
#define LR_BIND_COLUMN_PAIRS 1
#define LR_BIND_COLUMN_POINTS 2
#define LR_BIND_COLUMN_LIST 5
#define LR_BIND_COLUMN_STACKS 6
#define LR_BIND_COLUMN_IMAGE 7
#define LR_BIND_COLUMN_MIDDLES 10
#define LR_BIND_COLUMN_STATE 11

/* storage buffers of the passes by pairs; masks as above */
#define LR_BIND_PAIR_MODULES 0
#define LR_BIND_PAIR_LIST 1
#define LR_BIND_PAIR_IMAGE 7
#define LR_BIND_PAIR_STATE 8
#define LR_BIND_PAIR_POINTS 10

/* passes that make rows from lists of elements: the list; tables of LORs and their values; LORs and
 * values, in one order and in another; places in these, and their sums for each share; starts of
 * the rows */
#define LR_BIND_ROWS_LIST 0
#define LR_BIND_ROWS_KEYS 1
#define LR_BIND_ROWS_VALUES 2
#define LR_BIND_ROWS_FROM 3
#define LR_BIND_ROWS_TO 4
#define LR_BIND_ROWS_PLACES 5
#define LR_BIND_ROWS_SUMS 6
#define LR_BIND_ROWS_STARTS 7

/* passes over vectors: the vector that is changed or summed; up to three other vectors; sums of
 * groups */
#define LR_BIND_VECTOR_Y 0
#define LR_BIND_VECTOR_IN 1
#define LR_BIND_VECTOR_SUMS 4

/* pass that converts between the orders of images */
#define LR_BIND_ORDER_GRID 0
#define LR_BIND_ORDER_PROJECTOR 1

/* passes of the family direct: storage buffers, texture units, image units */
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

/* storage buffers of depositions; outcomes of events */
#define LR_BIND_DEPOSIT_EVENTS 0
#define LR_BIND_DEPOSIT_CRYSTALS 1
#define LR_BIND_DEPOSIT_BORDERS 2
#define LR_BIND_DEPOSIT_TALLIES 3
#define LR_BIND_DEPOSIT_SUMS 4
#define LR_DEPOSIT_TALLY_DONE 0
#define LR_DEPOSIT_TALLY_TILTED 1
#define LR_DEPOSIT_TALLY_OUTSIDE 2

/* passes of the family listmode. The buffers of events, crystals, resolutions by kind, kinds of
 * crystals and places of a part belong to the pass that computes lines; it also reads the values.
 * Further buffers: images, slice by slice or in the grid's order; the tube's table; elements of
 * single events with their number for each event; the scale of the sums. Buffers for kept lines:
 * jobs of groups; values in the order of lines; lines whose values are not of the usual size */
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
#define LR_BIND_LIST_MODULES 7 /* pass that computes lines for exact elements */
#define LR_BIND_LIST_JOBS 9
#define LR_BIND_LIST_LINE_VALUES 10
#define LR_BIND_LIST_OTHERS 11

/* operations of updates of the family direct on a texel */
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

/* threads of a compute workgroup; largest number of modules visible through a primary */
#define LR_GROUP_SIZE 64
#define LR_VECTOR_GROUP 256
#define LR_VECTOR_NUM_SUMS 6
#define LR_VECTOR_LARGEST 4 /* from this index on, a vector's sums are maxima: of x, and of -x */
#define LR_MAX_TARGETS 96

/* threads of a group that sorts rows, and bits of a digit. Every device has enough shared memory
 * for one count of each digit for each thread */
#define LR_SORT_GROUP 32
#define LR_SORT_BITS 8

/* threads that work on one LOR of a list */
#define LR_LIST_SHARE 8

/* family direct: threads of a group; neighbouring outputs, and quads of slices, of a thread. The
 * shaders are written out for these numbers */
#define LR_DIRECT_GROUP 128
#define LR_DIRECT_OUTPUTS 4
#define LR_DIRECT_QUADS 2

/* family listmode: threads of a group in most passes, in forward projection by slabs, and in passes
 * of exact elements; offset that is added to exponents, which may be negative */
#define LR_EVENTS_GROUP 256
#define LR_EVENTS_SLAB_GROUP 512
#define LR_EVENTS_EXACT_GROUP 32
/* threads that share a line whose value is not of the usual size */
#define LR_EVENTS_SHARE 32
/* half of a face's edge divided by the distance of a point that is nearer to the other face. Faces
 * that exceed this ratio are divided into pieces, up to this many along an axis */
#define LR_EVENTS_EXACT_HALF 0.04
#define LR_EVENTS_EXACT_PIECES 64
#define LR_EVENTS_EXPONENT 1024
/* sums remain integers if all terms are at most 2^LR_EVENTS_SPREAD times the usual size */
#define LR_EVENTS_SPREAD 8
/* bits of the largest term of the smallest value in integers: six for elements smaller than the
 * largest, LR_EVENTS_SPREAD for terms larger than usual, 15 for the sum's accuracy of 1e-5 */
#define LR_EVENTS_LEAST_BITS 29
/* a group adds values in one word each if they are at most 2^LR_EVENTS_CELL_SPREAD times smaller
 * than usual */
#define LR_EVENTS_CELL_SPREAD 7
/* values of events with exact elements count as usual if they are at most 2^LR_EVENTS_EXACT_NEAR
 * times larger than usual. Their sums have bits to spare, and the largest terms of many events
 * would take as long to find as a projection */
#define LR_EVENTS_EXACT_NEAR 4
/* largest size of these sums, with rounding errors included */
#define LR_EVENTS_CELL_MOST 2.14e9

/* steps of a gather: bit 4 r + j selects offset r for output j. This bit marks the first step of a
 * column */
#define LR_DIRECT_FRESH 0x10000

/* largest number of strips of a pair of modules that a column pass holds at once */
#define LR_MAX_STRIPS 256

/* a pair of modules or a LOR that does not exist */
#define LR_NONE 0xffffffffu

/* flags in a draw's secondary module: it stops photons and has no LOR with the primary here; it
 * stops lines between the point and the primary; it may hide another module that the image lists */
#define LR_ONLY_STOPS 0x80000000u
#define LR_BEFORE_PRIMARY 0x40000000u
#define LR_HIDES 0x20000000u
#define LR_DRAW_MODULE 0x1fffffffu

#endif
