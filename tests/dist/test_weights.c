/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Weights of initial guesses: the least-squares solution with sum 1, tested by its properties and against
 * elimination, which takes the place of eigenvalues. */
#include "cases.h"

#include "dist/weights.h"

enum { LORS = 200, MOST = 6 };

static uint64_t state;

static double draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}

/* Projections of the guesses, and the data. */
struct problem {
    double guess[MOST][LORS], data[LORS];
    double gram[MOST * MOST], with[MOST];
    struct lr_gram sums;
};

static void fill_sums(struct problem *p, int count)
{
    p->sums = (struct lr_gram){.count = count, .gram = p->gram, .with = p->with};
    for (int k = 0; k < count; k++) {
        p->with[k] = 0;
        for (int g = 0; g < count; g++) {
            p->gram[k * count + g] = 0;
            for (int l = 0; l < LORS; l++) p->gram[k * count + g] += p->guess[k][l] * p->guess[g][l];
        }
        for (int l = 0; l < LORS; l++) p->with[k] += p->guess[k][l] * p->data[l];
    }
    for (int l = 0; l < LORS; l++) p->sums.square += p->data[l] * p->data[l];
}

static void make(struct problem *p, int count, uint64_t seed)
{
    state = seed;
    for (int l = 0; l < LORS; l++) {
        p->data[l] = 10 * draw();
        for (int g = 0; g < count; g++) p->guess[g][l] = p->data[l] + 3 * (draw() - 0.5);
    }
    fill_sums(p, count);
}

/* The same weights by eliminating the last one, which leaves least squares of differences, solved by Gauss's method. */
static void eliminate(const struct problem *p, int count, double *weights)
{
    double matrix[MOST][MOST + 1] = {{0}};
    const int size = count - 1;
    for (int k = 0; k < size; k++) {
        for (int l = 0; l < LORS; l++) {
            const double a = p->guess[k][l] - p->guess[size][l];
            for (int g = 0; g < size; g++) matrix[k][g] += a * (p->guess[g][l] - p->guess[size][l]);
            matrix[k][size] += a * (p->data[l] - p->guess[size][l]);
        }
    }
    for (int k = 0; k < size; k++) {
        for (int n = 0; n < size; n++) {
            const double factor = matrix[n][k] / matrix[k][k];
            for (int g = k; n != k && g <= size; g++) matrix[n][g] -= factor * matrix[k][g];
        }
    }
    weights[size] = 1;
    for (int k = 0; k < size; k++) {
        weights[k] = matrix[k][size] / matrix[k][k];
        weights[size] -= weights[k];
    }
}

static double sum_of(const double *weights, int count)
{
    double sum = 0;
    for (int k = 0; k < count; k++) sum += weights[k];
    return sum;
}

static void test_least_squares(void **unused)
{
    for (int count = 1; count <= MOST; count++) {
        static struct problem p;
        double weights[MOST], expected[MOST], alone[MOST], condition;
        make(&p, count, (uint64_t)count);
        assert_ok(lr_gram_weights(&p.sums, weights, &condition, NULL));
        eliminate(&p, count, expected);
        assert_true(isfinite(condition) && condition >= 1);
        assert_close(sum_of(weights, count), 1, 1e-14);
        for (int k = 0; k < count; k++) {
            /* Rounding errors times the condition number, some 1e3. */
            assert_true(fabs(weights[k] - expected[k]) < 1e-10);
            memset(alone, 0, sizeof(alone));
            alone[k] = 1;
            assert_true(lr_gram_residual(&p.sums, weights) <= lr_gram_residual(&p.sums, alone) * (1 + 1e-12));
        }
    }
}

/* Equal guesses get equal weights, whether all guesses or two of them are equal. */
static void test_identical(void **unused)
{
    static struct problem p;
    double weights[MOST], condition;
    make(&p, 5, 7);
    for (int g = 1; g < 5; g++) memcpy(p.guess[g], p.guess[0], sizeof(p.guess[0]));
    fill_sums(&p, 5);
    assert_ok(lr_gram_weights(&p.sums, weights, &condition, NULL));
    assert_true(isinf(condition));
    for (int g = 0; g < 5; g++) assert_close(weights[g], 0.2, 1e-12);
    make(&p, 3, 8);
    memcpy(p.guess[2], p.guess[1], sizeof(p.guess[1]));
    fill_sums(&p, 3);
    assert_ok(lr_gram_weights(&p.sums, weights, &condition, NULL));
    assert_all(isinf(condition), fabs(weights[1] - weights[2]) < 1e-10);
    double expected[MOST];
    eliminate(&p, 2, expected);
    assert_true(fabs(weights[0] - expected[0]) < 1e-10);
}

/* There is no guess, so nothing can be combined. */
static void test_dark(void **unused)
{
    const double gram[4] = {0}, with[2] = {0};
    double weights[2], condition;
    const struct lr_gram sums = {.count = 2, .gram = gram, .with = with};
    assert_int_equal(lr_gram_weights(&sums, weights, &condition, NULL), LR_BAD_INPUT);
}

test_main("weights", CASE(test_least_squares), CASE(test_identical), CASE(test_dark))
