/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Relative differences of neighbours at a place (host, gl or cuda), compared with sums over all pairs of numbers in
 * double, as in the equation; the gradient, compared with finite differences of the value; and convolutions along an
 * axis, compared with sums. */
#include "vector/place.h"

#include <lr/vector.h>

enum { MOST = 2000 };

/* Numbers on a small grid, in double on the host. */
struct numbers {
    lr_relative_differences differences; /* all fields except the vectors */
    int count;
    bool has_kappa;
    double x[MOST], kappa[MOST], y[MOST];
};

static void draw(struct numbers *n, const int size[3], bool has_kappa)
{
    uint64_t random = 3;
    *n = (struct numbers){.count = size[0] * size[1] * size[2], .has_kappa = has_kappa};
    assert_true(n->count <= MOST);
    memcpy(n->differences.size, size, sizeof(n->differences.size));
    n->differences.gamma = 2.0;
    n->differences.epsilon = 0.03;
    n->differences.scale = -0.7;
    for (int k = 1; k < 8; k++) n->differences.weights[k] = 1.0 / (k + 1.0); /* all different */
    for (int k = 0; k < n->count; k++) {
        n->x[k] = k % 11 == 0 ? 0.0 : 5.0 * test_random(&random);
        n->kappa[k] = has_kappa ? (k % 13 == 0 ? 0.0 : test_random(&random)) : 1.0;
    }
}

static lr_vector put(const double *numbers, int count, lr_precision precision)
{
    lr_vector vector = kept_vector(place, count, precision);
    assert_ok(lr_vector_copy(vector_of(numbers, count), &vector));
    return vector;
}

/* Results of the place, including the old y; numbers are rounded to the precision. */
static void find(struct numbers *n, lr_differences what, lr_precision precision, double *found)
{
    const int mark = num_kept();
    lr_vector x = put(n->x, n->count, precision), kappa = put(n->kappa, n->count, precision);
    lr_vector y = put(n->y, n->count, precision);
    lr_relative_differences differences = n->differences;
    differences.what = what;
    differences.x = &x;
    differences.kappa = n->has_kappa ? &kappa : NULL;
    differences.y = &y;
    assert_ok(lr_vector_relative_differences(&differences), lr_vector_copy(&y, vector_of(found, n->count)));
    destroy_kept_since(mark);
}

/* --- the equations --- */

/* Weight of the pair of numbers j and k times their kappas; 0 if they are not neighbours. */
static double pair_weight(const struct numbers *n, int j, int k)
{
    const int *size = n->differences.size, dx = abs(j % size[0] - k % size[0]);
    const int dy = abs(j / size[0] % size[1] - k / size[0] % size[1]);
    const int dz = abs(j / size[0] / size[1] - k / size[0] / size[1]);
    const bool are_neighbours = j != k && dx <= 1 && dy <= 1 && dz <= 1;
    return are_neighbours ? n->differences.weights[dx + 2 * dy + 4 * dz] * n->kappa[j] * n->kappa[k] : 0.0;
}

static double expect(const struct numbers *n, lr_differences what, int j)
{
    const double gamma = n->differences.gamma, epsilon = n->differences.epsilon;
    double sum = 0.0;
    for (int k = 0; k < n->count; k++) {
        const double weight = pair_weight(n, j, k), a = n->x[j], b = n->x[k];
        const double below = a + b + gamma * fabs(a - b) + epsilon;
        if (weight == 0.0 || (below == 0.0 && what != LR_DIFFERENCES_WEIGHTS)) continue;
        sum += what == LR_DIFFERENCES_WEIGHTS ? weight
               : what == LR_DIFFERENCES_VALUE
                   ? weight * (a - b) * (a - b) / below / 2.0
                   : weight * (a - b) * (gamma * fabs(a - b) + a + 3.0 * b + 2.0 * epsilon) / (below * below);
    }
    return what == LR_DIFFERENCES_GRADIENT ? n->y[j] + n->differences.scale * sum : sum;
}

/* Single precision rounds x and kappa as well, each with a relative error of 6e-8; differences of neighbouring numbers
 * are not much smaller than the numbers. */
static void check(struct numbers *n, lr_differences what, lr_precision precision)
{
    double found[MOST], largest = 0.0;
    find(n, what, precision, found);
    for (int j = 0; j < n->count; j++) largest = fmax(largest, fabs(expect(n, what, j)));
    assert_true(largest > 0.0);
    for (int j = 0; j < n->count; j++) {
        const double allowed = (precision == LR_FLOAT64 ? 1e-13 : 2e-6) * largest;
        assert_true(fabs(found[j] - expect(n, what, j)) <= allowed);
    }
}

/* Grids with one number along an axis, and a row longer than the part that the host processes at once. */
static const int sizes[][3] = {{6, 5, 4}, {7, 1, 3}, {1, 1, 9}, {600, 1, 2}, {3, 9, 1}};

static void as_the_equations_have_them(void **state)
{
    static struct numbers n;
    for (int k = 0; k < length_of(sizes) * 12; k++) {
        draw(&n, sizes[k / 12], k % 2 != 0);
        for (int j = 0; j < n.count; j++) n.y[j] = sin(j);
        check(&n, (lr_differences)(k / 2 % 3), (lr_precision)(k / 6 % 2));
    }
}

/* Central differences with step 1e-5 have an error of 1e-10 and a rounding error of 1e-10, because third derivatives
 * are below 10 for numbers above 0.3. */
static void the_gradient_is_that_of_the_value(void **state)
{
    static struct numbers n;
    double gradient[MOST];
    draw(&n, (const int[3]){5, 4, 3}, true);
    n.differences.scale = 1.0;
    for (int j = 0; j < n.count; j++) n.x[j] += 0.3;
    find(&n, LR_DIFFERENCES_GRADIENT, LR_FLOAT64, gradient);
    for (int j = 0; j < n.count; j++) {
        const double x = n.x[j], step = 1e-5;
        double shares[MOST], expected = 0.0;
        for (int sign = 1; sign >= -1; sign -= 2) {
            n.x[j] = x + sign * step;
            find(&n, LR_DIFFERENCES_VALUE, LR_FLOAT64, shares);
            for (int k = 0; k < n.count; k++) expected += sign * shares[k] / (2.0 * step);
        }
        n.x[j] = x;
        assert_true(fabs(gradient[j] - expected) <= 1e-6 * fmax(fabs(expected), 1e-2));
    }
}

/* Both numbers of a pair and epsilon are 0. */
static void zeros_have_no_difference(void **state)
{
    static struct numbers n;
    double found[MOST];
    draw(&n, (const int[3]){4, 4, 4}, false);
    n.differences.epsilon = 0.0;
    memset(n.x, 0, sizeof(n.x));
    for (int what = 0; what < 2; what++) {
        find(&n, (lr_differences)what, LR_FLOAT32, found);
        for (int j = 0; j < n.count; j++) assert_true(found[j] == 0.0);
    }
    n.x[21] = NAN; /* NaN appears in its own result and in those of its neighbours */
    find(&n, LR_DIFFERENCES_VALUE, LR_FLOAT32, found);
    assert_true(isnan(found[21]) && isnan(found[22]) && found[0] != found[21]);
}

/* --- convolutions --- */

static double convolved(const struct numbers *n, const lr_convolution *convolution, int j)
{
    const int *size = n->differences.size, axis = convolution->axis;
    const int step = axis == 0 ? 1 : axis == 1 ? size[0] : size[0] * size[1];
    double sum = 0.0;
    for (int k = 0; k < size[axis]; k++) {
        const int off = abs(k - j / step % size[axis]);
        sum +=
            off <= convolution->reach ? convolution->weights[off] * n->x[j + (k - j / step % size[axis]) * step] : 0.0;
    }
    return sum;
}

static void convolutions(void **state)
{
    static struct numbers n;
    static const double weights[4] = {0.4, 0.2, 0.07, 0.03};
    for (int k = 0; k < length_of(sizes) * 6; k++) {
        draw(&n, sizes[k / 6], false);
        lr_convolution convolution = {.axis = k % 3, .reach = k / 6 % 4, .weights = weights};
        memcpy(convolution.size, n.differences.size, sizeof(convolution.size));
        const lr_precision precision = (lr_precision)(k / 3 % 2);
        double found[MOST];
        lr_vector x = put(n.x, n.count, precision), y = put(n.x, n.count, precision);
        convolution.x = &x;
        convolution.y = &y;
        assert_ok(lr_vector_convolve(&convolution), lr_vector_copy(&y, vector_of(found, n.count)));
        for (int j = 0; j < n.count; j++) {
            const double allowed = precision == LR_FLOAT64 ? 1e-14 : 3e-7;
            assert_true(fabs(found[j] - convolved(&n, &convolution, j)) <= allowed * 5.0);
        }
        convolution.reach = LR_CONVOLUTION_REACH;
        assert_int_equal(lr_vector_convolve(&convolution), LR_USAGE);
    }
}

static void sizes_that_do_not_fit(void **state)
{
    const double zeros[12] = {0};
    lr_vector x = put(zeros, 12, LR_FLOAT32), y = put(zeros, 12, LR_FLOAT32), z = put(zeros, 12, LR_FLOAT64);
    lr_relative_differences differences = {.size = {2, 2, 2}, .x = &x, .y = &y};
    assert_int_equal(lr_vector_relative_differences(&differences), LR_USAGE);
    differences.size[2] = 3;
    assert_ok(lr_vector_relative_differences(&differences));
    differences.kappa = &z;
    assert_int_equal(lr_vector_relative_differences(&differences), LR_USAGE);
}

place_main(CASES(as_the_equations_have_them, the_gradient_is_that_of_the_value, zeros_have_no_difference, convolutions,
                 sizes_that_do_not_fit))
