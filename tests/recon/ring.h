/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A small ring with the data of a phantom, with Poisson counts, factors and an additive term where they are wanted, and
 * its matrix in double, for tests of update rules. Each test includes it once. */
#pragma once

#include "cases.h"

enum { NX = 9, NY = 9, NZ = 5, NUM_VOXELS = NX * NY * NZ, MOST_SUBSETS = 4 };

static struct session {
    struct fixture fixture;
    struct test_log log;
    lr_operator *op;
    float *factors, *additive; /* [LORs], or NULL */
    lr_lor_data *data;         /* expected counts of the phantom, or Poisson counts */
    const lr_lor_data *sparse; /* the LORs of data with counts above 0 */
    lr_vector counts, few;     /* values of data, and of sparse */
    lr_vector terms;           /* values of additive */
    float phantom[NUM_VOXELS], image[NUM_VOXELS], other[NUM_VOXELS];
    lr_vector image_vector, other_vector;
    double plain[NUM_VOXELS];
} s;

static int threads = 2; /* threads of operators; 0 = all processors */

static inline lr_operator *open_operator(const char *backend, lr_store store)
{
    const lr_lor_source factors = source_of_values(s.factors);
    lr_operator_params params = fixture_params(&s.fixture, backend, &s.log.log);
    params.rays = 4;
    params.factors = s.factors != NULL ? &factors : NULL;
    params.store = store;
    params.threads = threads;
    return keep(lr_operator_create(&params));
}

static inline void make_sparse(void)
{
    s.sparse = kept_sparse(s.data);
    s.few = lr_lor_data_vector(s.sparse);
}

static inline void draw_counts(double scale)
{
    float scaled[NUM_VOXELS];
    for (int v = 0; v < NUM_VOXELS; v++) scaled[v] = (float)(scale * s.phantom[v]);
    assert_ok(array_forward(s.op, scaled, s.data->values));
    for (int64_t l = 0; l < s.data->count && s.additive != NULL; l++) s.data->values[l] += s.additive[l];
    assert_ok(lr_poisson(s.data->values, s.data->count, test_seed(), NULL));
    make_sparse();
}

/* A phantom with a hot spot, without data. */
static inline void session_begin(struct fixture fixture)
{
    s = (struct session){.fixture = fixture};
    test_log_init(&s.log);
    s.fixture.grid = lr_grid_centred((const int[3]){NX, NY, NZ}, (const double[3]){2.5, 2.5, 3.0});
    s.data = keep(lr_lor_data_create(s.fixture.lors, NULL));
    s.counts = lr_lor_data_vector(s.data);
    s.image_vector = lr_vector_of_floats(s.image, NUM_VOXELS);
    s.other_vector = lr_vector_of_floats(s.other, NUM_VOXELS);
    for (int64_t v = 0; v < NUM_VOXELS; v++) {
        double p[3];
        lr_grid_voxel_centre(&s.fixture.grid, v, p);
        s.phantom[v] = hypot(hypot(p[0] - 3.0, p[1] - 2.0), p[2] - 1.0) < 4.5 ? 1000.0f : 50.0f;
    }
}

/* Sets the data to the expected counts of the phantom, without noise, factors and additive term. */
static inline void session_without_noise(struct fixture fixture, lr_store store)
{
    session_begin(fixture);
    s.op = open_operator(test_backend, store);
    assert_ok(array_forward(s.op, s.phantom, s.data->values));
}

static inline int set_up_stored(void **state)
{
    session_without_noise(kept_fixture(FIXTURE_RING), LR_STORE_YES);
    return 0;
}

static inline void session_init(const char *backend)
{
    uint64_t random = 5;
    session_begin(kept_fixture(FIXTURE_RING));
    s.factors = kept_floats(s.data->count);
    s.additive = kept_floats(s.data->count);
    for (int64_t l = 0; l < s.data->count; l++) {
        s.factors[l] = (float)(0.3 + 0.7 * test_random(&random));
        s.additive[l] = (float)(0.05 * test_random(&random));
    }
    s.terms = lr_vector_of_floats(s.additive, s.data->count);
    s.op = open_operator(backend, LR_STORE_NO);
    draw_counts(5.0);
}

static inline int set_up(void **state)
{
    session_init(test_backend);
    return 0;
}

/* Puts the data, dense or sparse, into a reconstruction's parameters. */
static inline void give_data(lr_recon_params *params, bool is_sparse)
{
    params->data = is_sparse ? &s.few : &s.counts;
    params->data_lors = is_sparse ? s.sparse->index : NULL;
}

static inline lr_status reconstruct(const lr_recon_params *params, float *image)
{
    return lr_recon(params, vector_of(image, NUM_VOXELS));
}

/* Largest difference of two images divided by the largest value of the second. */
#define difference(image, expected) worst_apart(image, expected, NUM_VOXELS)

static inline void widen(const float *image, double *wide)
{
    for (int v = 0; v < NUM_VOXELS; v++) wide[v] = image[v];
}

/* --- the matrix --- */

struct matrix {
    int64_t num_lors;
    const double *elements; /* [NUM_VOXELS][num_lors] */
};

static inline struct matrix read_matrix(void)
{
    return (struct matrix){s.data->count, kept_rows(s.op, 0, NUM_VOXELS)};
}
