/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A small ring with Poisson counts, factors and an additive term, and its matrix in double, for tests of update
 * rules. Each test includes it once. */
#ifndef LR_TESTS_RECON_RING_H
#define LR_TESTS_RECON_RING_H

#include "fixtures.h"

enum { NX = 9, NY = 9, NZ = 5, NUM_VOXELS = NX * NY * NZ, MOST_SUBSETS = 4 };

struct session {
    struct fixture fixture;
    struct test_log log;
    lr_operator *op;
    float *factors, *additive; /* [LORs] */
    lr_lor_data *data;         /* Poisson counts */
    lr_lor_data sparse;        /* those above 0 */
    lr_vector counts, few;     /* values of data, and of sparse */
    lr_vector terms;           /* values of additive */
    float image[NUM_VOXELS], other[NUM_VOXELS];
    lr_vector image_vector, other_vector;
    double plain[NUM_VOXELS];
};

static inline lr_status get_values(void *user, const lr_lor_span *span, float *values)
{
    const float *all = user;
    for (int64_t k = 0; k < span->count; k++)
        values[k] = all[span->numbers != NULL ? span->numbers[k] : span->first + k];
    return LR_OK;
}

static inline lr_operator *open_operator(struct session *s, const char *backend)
{
    const lr_lor_source factors = {get_values, s->factors};
    lr_operator_params params = fixture_params(&s->fixture, backend, &s->log.log);
    params.rays = 4;
    params.factors = &factors;
    return fixture_operator(&params);
}

static inline void draw_counts(struct session *s, double scale)
{
    float phantom[NUM_VOXELS];
    for (int64_t v = 0; v < NUM_VOXELS; v++) {
        double p[3];
        lr_grid_voxel_centre(&s->fixture.grid, v, p);
        const double spot = hypot(hypot(p[0] - 3.0, p[1] - 2.0), p[2] - 1.0);
        phantom[v] = (float)(scale * (spot < 4.5 ? 1000.0 : 50.0));
    }
    assert_ok(array_forward(s->op, phantom, s->data->values));
    for (int64_t l = 0; l < s->data->count; l++) s->data->values[l] += s->additive[l];
    assert_ok(lr_poisson(s->data->values, s->data->count, test_seed(), NULL));
    s->sparse.count = 0;
    for (int64_t l = 0; l < s->data->count; l++) {
        if (s->data->values[l] > 0.0f) {
            s->sparse.index[s->sparse.count] = l;
            s->sparse.values[s->sparse.count++] = s->data->values[l];
        }
    }
    s->few = lr_lor_data_vector(&s->sparse);
}

static inline void session_init(struct session *s, const char *backend)
{
    uint64_t random = 5;
    *s = (struct session){0};
    test_log_init(&s->log);
    fixture_init(&s->fixture, FIXTURE_RING);
    s->fixture.grid = lr_grid_centred((const int[3]){NX, NY, NZ}, (const double[3]){2.5, 2.5, 3.0});
    s->data = keep(lr_lor_data_create(s->fixture.lors, NULL));
    const size_t count = (size_t)s->data->count;
    s->factors = kept_floats(count);
    s->additive = kept_floats(count);
    s->sparse.index = kept(count, sizeof(int64_t));
    s->sparse.values = kept_floats(count);
    for (size_t l = 0; l < count; l++) {
        s->factors[l] = (float)(0.3 + 0.7 * test_random(&random));
        s->additive[l] = (float)(0.05 * test_random(&random));
    }
    s->counts = lr_lor_data_vector(s->data);
    s->terms = lr_vector_of_floats(s->additive, s->data->count);
    s->image_vector = lr_vector_of_floats(s->image, NUM_VOXELS);
    s->other_vector = lr_vector_of_floats(s->other, NUM_VOXELS);
    s->op = open_operator(s, backend);
    draw_counts(s, 5.0);
}

static inline void session_finish(struct session *s)
{
    lr_operator_destroy(s->op);
    lr_lor_data_destroy(s->data);
    fixture_finish(&s->fixture);
}

static inline lr_status reconstruct(const lr_recon_params *params, float *image)
{
    lr_vector x = lr_vector_of_floats(image, NUM_VOXELS);
    return lr_recon(params, &x);
}

/* Largest difference over the largest value. */
static inline double difference(const float *image, const double *expected)
{
    double largest = 0.0, worst = 0.0;
    for (int v = 0; v < NUM_VOXELS; v++) {
        largest = fmax(largest, fabs(expected[v]));
        worst = fmax(worst, fabs(image[v] - expected[v]));
    }
    return worst / largest;
}

static inline void widen(const float *image, double *wide)
{
    for (int v = 0; v < NUM_VOXELS; v++) wide[v] = image[v];
}

/* --- the matrix --- */

struct matrix {
    int64_t num_lors;
    double *elements; /* [NUM_VOXELS][num_lors] */
};

static inline lr_status take_row(void *user, const lr_row *row)
{
    const struct matrix *matrix = user;
    for (int64_t k = 0; k < row->count; k++)
        matrix->elements[row->row * matrix->num_lors + row->lor[k]] = row->probability[k];
    return LR_OK;
}

static inline struct matrix read_matrix(const struct session *s)
{
    struct matrix matrix = {.num_lors = s->data->count};
    matrix.elements = kept_doubles(NUM_VOXELS * matrix.num_lors);
    const lr_row_sink sink = {take_row, &matrix};
    assert_ok(lr_operator_rows(s->op, 0, NUM_VOXELS, &sink));
    return matrix;
}

#endif
