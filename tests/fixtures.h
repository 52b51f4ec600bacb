/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Small scanners with a grid each, for laws that must hold on every geometry. Link lr_fixtures. */
#ifndef LR_TEST_FIXTURES_H
#define LR_TEST_FIXTURES_H

#include "test.h"

enum fixture_kind {
    FIXTURE_OPPOSED = 0, /* two equal modules face to face */
    FIXTURE_OBLIQUE,     /* two modules 150 degrees apart around the axis */
    FIXTURE_TILTED,      /* face to face, one turned about two axes */
    FIXTURE_UNEQUAL,     /* other numbers, pitches and faces on each side */
    FIXTURE_GAPPED,      /* faces cover a third of the pitch rectangle */
    FIXTURE_RING,        /* eight modules around, with a field of view */
    FIXTURE_TWO_RINGS,   /* six modules in each of two rings, with a ring difference */
    FIXTURE_COUNT
};

struct fixture {
    const char *name;
    lr_scanner *scanner;
    lr_lors *lors;
    lr_grid grid; /* a few hundred voxels, off centre so that nothing is symmetric by chance */
};

/* Fails the test when it cannot be built. */
void fixture_init(struct fixture *fixture, enum fixture_kind kind);
void fixture_finish(struct fixture *fixture);

/* Parameters for an operator on the fixture: sampled, 2 rays, 1 sample per voxel, not stored, 2 threads. */
lr_operator_params fixture_params(const struct fixture *fixture, const char *backend, const lr_log *log);

/* The operator, or a failed test with the sentence. */
lr_operator *fixture_operator(const lr_operator_params *params);

/* Whether this backend runs on this machine; prints the reason when it does not. The main function
 * of a test with a backend argument returns 77 then. */
bool fixture_backend_is_usable(const char *backend);

/* Uniform random values in low .. high. */
void fixture_fill(double *values, int64_t count, const double range[2], uint64_t *state);

/* Allocates zeroed doubles, or fails the test. */
double *fixture_doubles(int64_t count);

/* Subset of each LOR, [lors->count], as reconstructions deal them; free() it. */
int32_t *fixture_deal(const lr_lors *lors, int subsets);

#endif
