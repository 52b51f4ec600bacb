/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A small ring with Poisson counts, factors and an additive term, and its matrix in double, for tests of update
 * rules. Each test includes it once. */
#ifndef LR_TESTS_RECON_RING_H
#define LR_TESTS_RECON_RING_H

#include "fixtures.h"

enum { NX = 9, NY = 9, NZ = 5, NUM_VOXELS = NX * NY * NZ, MOST_SUBSETS = 4 };

static struct session {
    struct fixture fixture;
    struct test_log log;
    lr_operator *op;
    float *factors, *additive; /* [LORs] */
    lr_lor_data *data;         /* Poisson counts */
    const lr_lor_data *sparse; /* those above 0 */
    lr_vector counts, few;     /* values of data, and of sparse */
    lr_vector terms;           /* values of additive */
    float image[NUM_VOXELS], other[NUM_VOXELS];
    lr_vector image_vector, other_vector;
    double plain[NUM_VOXELS];
} s;

static inline lr_operator *open_operator(const char *backend, lr_store store)
{
    const lr_lor_source factors = source_of_values(s.factors);
    lr_operator_params params = fixture_params(&s.fixture, backend, &s.log.log);
    params.rays = 4;
    params.factors = &factors;
    params.store = store;
    return keep(lr_operator_create(&params));
}

static inline void draw_counts(double scale)
{
    float phantom[NUM_VOXELS];
    for (int64_t v = 0; v < NUM_VOXELS; v++) {
        double p[3];
        lr_grid_voxel_centre(&s.fixture.grid, v, p);
        const double spot = hypot(hypot(p[0] - 3.0, p[1] - 2.0), p[2] - 1.0);
        phantom[v] = (float)(scale * (spot < 4.5 ? 1000.0 : 50.0));
    }
    assert_ok(array_forward(s.op, phantom, s.data->values));
    for (int64_t l = 0; l < s.data->count; l++) s.data->values[l] += s.additive[l];
    assert_ok(lr_poisson(s.data->values, s.data->count, test_seed(), NULL));
    s.sparse = kept_sparse(s.data);
    s.few = lr_lor_data_vector(s.sparse);
}

static inline void session_init(const char *backend)
{
    uint64_t random = 5;
    s = (struct session){.fixture = kept_fixture(FIXTURE_RING)};
    test_log_init(&s.log);
    s.fixture.grid = lr_grid_centred((const int[3]){NX, NY, NZ}, (const double[3]){2.5, 2.5, 3.0});
    s.data = keep(lr_lor_data_create(s.fixture.lors, NULL));
    s.factors = kept_floats(s.data->count);
    s.additive = kept_floats(s.data->count);
    for (int64_t l = 0; l < s.data->count; l++) {
        s.factors[l] = (float)(0.3 + 0.7 * test_random(&random));
        s.additive[l] = (float)(0.05 * test_random(&random));
    }
    s.counts = lr_lor_data_vector(s.data);
    s.terms = lr_vector_of_floats(s.additive, s.data->count);
    s.image_vector = lr_vector_of_floats(s.image, NUM_VOXELS);
    s.other_vector = lr_vector_of_floats(s.other, NUM_VOXELS);
    s.op = open_operator(backend, LR_STORE_NO);
    draw_counts(5.0);
}

static inline int set_up(void **state)
{
    session_init(test_backend);
    return 0;
}

/* Data, dense or sparse, in a reconstruction's parameters. */
static inline void give_data(lr_recon_params *params, bool is_sparse)
{
    params->data = is_sparse ? &s.few : &s.counts;
    params->data_lors = is_sparse ? s.sparse->index : NULL;
}

static inline lr_status reconstruct(const lr_recon_params *params, float *image)
{
    lr_vector x = lr_vector_of_floats(image, NUM_VOXELS);
    return lr_recon(params, &x);
}

/* Largest difference over the largest value. */
static inline double difference(const float *image, const double *expected)
{
    return worst_apart(image, expected, NUM_VOXELS);
}

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

#endif
