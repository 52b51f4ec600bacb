/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Small scanners with a grid each, for laws that hold for every geometry. Link lr_fixtures. */
#ifndef LR_TEST_FIXTURES_H
#define LR_TEST_FIXTURES_H

#include "test.h"

enum fixture_kind {
    FIXTURE_OPPOSED = 0, /* two equal modules face to face */
    FIXTURE_OBLIQUE,     /* two modules 150 degrees apart around the axis */
    FIXTURE_TILTED,      /* two modules face to face, one of them rotated about two axes */
    FIXTURE_UNEQUAL,     /* two modules with different numbers, pitches and faces of crystals */
    FIXTURE_GAPPED,      /* crystals' faces cover a third of the area of a pitch by a pitch */
    FIXTURE_RING,        /* a ring of eight modules, with a field of view */
    FIXTURE_TWO_RINGS,   /* six modules in each of two rings, with a ring difference */
    FIXTURE_COUNT
};

struct fixture {
    const char *name;
    lr_scanner *scanner;
    lr_lors *lors;
    lr_grid grid; /* a few hundred voxels, off centre so that nothing is symmetric by chance */
};

/* Makes a fixture, or fails the test. */
void fixture_init(struct fixture *fixture, enum fixture_kind kind);
void fixture_finish(struct fixture *fixture);

/* Parameters for an operator on the fixture: sampled, 2 rays, 1 sample per voxel, not stored, 2 threads. */
lr_operator_params fixture_params(const struct fixture *fixture, const char *backend, const lr_log *log);

/* Creates an operator, or fails the test with the error's message. */
lr_operator *fixture_operator(const lr_operator_params *params);

/* Returns true if this backend runs on this machine, and prints the reason if it does not. The main function of a test
 * with a backend as argument then returns 77. */
bool fixture_backend_is_usable(const char *backend);

/* Fills an array with uniform random values from range[0] to range[1]. */
void fixture_fill(double *values, int64_t count, const double range[2], uint64_t *state);

/* Allocates zeroed doubles, or fails the test. */
double *fixture_doubles(int64_t count);

/* Returns the subset of each LOR in a reconstruction, [lors->count]. The caller frees the array. */
int32_t *fixture_deal(const lr_lors *lors, int subsets);

#endif
