/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The stored matrix by itself, with random rows. */
#include "fixtures.h"

#include "operator/matrix.h"

struct plain { /* the same matrix as triplets by row */
    int64_t num_rows, num_lors;
    int64_t *begin; /* [num_rows + 1] */
    int64_t *lor;
    double *value;
};

/* Makes rows of 0 to 2 * mean elements at random LORs. */
static void plain_init(struct plain *plain, const int64_t size[2], int64_t mean, uint64_t *state)
{
    *plain = (struct plain){.num_rows = size[0], .num_lors = size[1]};
    plain->begin = kept(size[0] + 1, sizeof(*plain->begin));
    plain->lor = kept(size[0] * 2 * mean, sizeof(*plain->lor));
    plain->value = kept(size[0] * 2 * mean, sizeof(*plain->value));
    int64_t end = 0;
    for (int64_t row = 0; row < size[0]; row++) {
        const double step = (double)size[1] / (1.0 + (double)mean * 2.0 * test_random(state));
        for (double at = step * test_random(state); at < (double)size[1] && row % 7 != 3;
             at += 1.0 + step * 2.0 * test_random(state)) {
            if (end - plain->begin[row] == 2 * mean) break;
            plain->lor[end] = (int64_t)at;
            plain->value[end++] = 1e-4 * (0.1 + test_random(state));
        }
        plain->begin[row + 1] = end;
    }
}

/* Appends all rows, in blocks of `rows` rows. */
static void append_blocks(const struct plain *plain, struct lr_matrix *matrix, int64_t rows)
{
    const int64_t total = plain->begin[plain->num_rows];
    struct lr_packed_element *elements = kept(total, sizeof(*elements));
    struct lr_row_extent *extents = kept(rows, sizeof(*extents));
    for (int64_t k = 0; k < total; k++)
        elements[k] = (struct lr_packed_element){(uint32_t)plain->lor[k], (float)plain->value[k]};
    for (int64_t row = 0; row < plain->num_rows; row += rows) {
        const int64_t left = plain->num_rows - row;
        struct lr_row_block block = filled(struct lr_row_block, .rows = extents, .num_rows = left < rows ? left : rows,
                                           .elements = elements + plain->begin[row], .threads = 2);
        for (int64_t k = 0; k < block.num_rows; k++) {
            const int64_t count = plain->begin[row + k + 1] - plain->begin[row + k];
            extents[k] = (struct lr_row_extent){row + k, count};
            block.num_elements += count;
        }
        assert_ok(lr_matrix_append_block(matrix, &block));
    }
}

/* by_blocks: number of rows in a block; 0: row by row. */
static void build(const struct plain *plain, int64_t by_blocks, struct lr_matrix *matrix)
{
    struct lr_matrix_sample sample = {0};
    sample.lor = kept(plain->begin[plain->num_rows], sizeof(*sample.lor));
    for (int64_t row = 0; row < plain->num_rows; row += 1 + plain->num_rows / 40) {
        for (int64_t k = plain->begin[row]; k < plain->begin[row + 1]; k++)
            sample.lor[sample.num_elements++] = (uint32_t)plain->lor[k];
        sample.num_rows++;
    }
    assert_ok(lr_matrix_init(matrix, plain->num_lors, &sample, NULL));
    matrix->threads = 2;
    if (by_blocks > 0) append_blocks(plain, matrix, by_blocks);
    for (int64_t row = 0; by_blocks == 0 && row < plain->num_rows; row++) {
        const int64_t begin = plain->begin[row];
        const lr_row one = {row, plain->begin[row + 1] - begin, plain->lor + begin, plain->value + begin};
        assert_ok(lr_matrix_append(matrix, &one));
    }
    assert_ok(lr_matrix_complete(matrix));
}

static void compare(const double *a, const double *b, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        if (a[k] != 0.0 || b[k] != 0.0)
            assert_close(a[k], b[k], 1e-13); /* sums of some hundred terms in another order */
}

static void assert_same_matrix(const struct lr_matrix *a, const struct lr_matrix *b)
{
    assert_ints(a->num_rows, b->num_rows, a->num_elements, b->num_elements, a->memory_bytes, b->memory_bytes);
    assert_int_equal(a->num_chunks, b->num_chunks);
    for (int64_t k = 0; k < a->num_chunks; k++) {
        const struct lr_matrix_chunk *one = &a->chunks[k], *other = &b->chunks[k];
        const size_t splits = (size_t)(a->num_ranges * one->num_rows + 1);
        assert_ints(one->first_row, other->first_row, one->num_rows, other->num_rows);
        assert_memory_equal(one->split, other->split, splits * sizeof(*one->split));
        const size_t count = one->split[splits - 1];
        assert_memory_equal(one->lor, other->lor, count * sizeof(*one->lor));
        assert_memory_equal(one->value, other->value, count * sizeof(*one->value));
    }
}

static void check_size(const int64_t size[2], int64_t mean)
{
    uint64_t state = test_seed();
    struct plain plain;
    struct lr_matrix matrix, by_blocks;
    struct lr_owned_row copy = {0};
    const int64_t rows[] = {1, 37, size[0]};
    plain_init(&plain, size, mean, &state);
    build(&plain, 0, &matrix);
    for (int k = 0; k < 3; k++) { /* blocks of rows, whatever they hold, make the same matrix */
        build(&plain, rows[k], &by_blocks);
        assert_same_matrix(&matrix, &by_blocks);
        lr_matrix_finish(&by_blocks);
    }
    assert_ints(matrix.num_elements, plain.begin[plain.num_rows], matrix.range_begin[0], 0);
    assert_int_equal(matrix.range_begin[matrix.num_ranges], size[1]);
    for (int64_t row = 0; row < plain.num_rows; row++) {
        const int64_t begin = plain.begin[row], count = plain.begin[row + 1] - begin;
        assert_ok(lr_matrix_row(&matrix, row, &copy));
        assert_int_equal(copy.count, count);
        for (int64_t k = 0; k < count; k++) {
            assert_int_equal(copy.lor[k], plain.lor[begin + k]);
            assert_true(copy.probability[k] == (float)plain.value[begin + k]);
        }
    }
    lr_owned_row_finish(&copy);
    const int64_t num_rows = plain.num_rows, num_lors = plain.num_lors;
    double *x = kept_random_doubles(num_rows, 0.0, 1.0, &state), *y = kept_random_doubles(num_lors, 0.0, 1.0, &state);
    double *y_plain = kept_doubles(num_lors), *x_plain = kept_doubles(num_rows), *y_kept = NULL, *x_kept = NULL;
    for (int64_t row = 0; row < num_rows; row++) x[row] = x[row] < 0.1 ? 0.0 : x[row];
    for (int64_t lor = 0; lor < num_lors; lor++) y[lor] = y[lor] < 0.1 ? 0.0 : y[lor];
    for (int64_t row = 0; row < num_rows; row++) {
        for (int64_t k = plain.begin[row]; k < plain.begin[row + 1]; k++) {
            y_plain[plain.lor[k]] += (float)plain.value[k] * x[row];
            x_plain[row] += (float)plain.value[k] * y[plain.lor[k]];
        }
    }
    for (int threads = 1; threads <= 3; threads++) {
        struct lr_matrix threaded = matrix;
        threaded.threads = threads;
        double *y_now = kept_random_doubles(num_lors, 0.0, 1.0, &state);
        double *x_now = kept_random_doubles(num_rows, 0.0, 1.0, &state);
        assert_ok(lr_matrix_forward(&threaded, NULL, vector_of(x, num_rows), vector_of(y_now, num_lors)));
        assert_ok(lr_matrix_back(&threaded, NULL, vector_of(y, num_lors), vector_of(x_now, num_rows)));
        compare(y_now, y_plain, num_lors);
        compare(x_now, x_plain, num_rows);
        if (y_kept != NULL) { /* the bits do not depend on the threads */
            assert_memory_equal(y_now, y_kept, (size_t)num_lors * sizeof(*y));
            assert_memory_equal(x_now, x_kept, (size_t)num_rows * sizeof(*x));
        }
        y_kept = y_now;
        x_kept = x_now;
    }
    lr_matrix_finish(&matrix);
}

/* Many ranges; more rows than a chunk holds; a single LOR. */
static void test_sizes(void **state)
{
    check_size((const int64_t[2]){300, 60000}, 3000);
    check_size((const int64_t[2]){40000, 900}, 12);
    check_size((const int64_t[2]){5, 1}, 1);
}

static void test_ranges_balance(void **unused)
{
    uint64_t state = test_seed();
    struct plain plain;
    struct lr_matrix matrix;
    plain_init(&plain, (const int64_t[2]){400, 50000}, 2500, &state);
    build(&plain, 0, &matrix);
    assert_true(matrix.num_ranges >= 64);
    const int64_t mean = matrix.num_elements / matrix.num_ranges;
    for (int g = 0; g < matrix.num_ranges; g++) {
        int64_t count = 0;
        for (int64_t c = 0; c < matrix.num_chunks; c++) {
            const struct lr_matrix_chunk *chunk = &matrix.chunks[c];
            count += chunk->split[(g + 1) * chunk->num_rows] - chunk->split[g * chunk->num_rows];
        }
        assert_true(count < 2 * mean); /* from 40 rows, each share is known to about 10 % */
    }
    lr_matrix_finish(&matrix);
}

/* A row longer than the staging memory, and elements too small for a float. */
static void test_long_row_and_tiny_values(void **state)
{
    const int64_t count = 5000000;
    int64_t *lor = kept(count, sizeof(*lor));
    double *value = kept_doubles(count);
    for (int64_t k = 0; k < count; k++) {
        lor[k] = k;
        value[k] = k % 2 == 0 ? 1e-60 : 0.5;
    }
    struct lr_matrix matrix;
    struct lr_matrix_sample sample = {.num_rows = 1};
    assert_ok(lr_matrix_init(&matrix, count, &sample, NULL));
    assert_ok(lr_matrix_append(&matrix, &(lr_row){0, count, lor, value}), lr_matrix_complete(&matrix));
    struct lr_owned_row copy = {0};
    assert_ok(lr_matrix_row(&matrix, 0, &copy));
    assert_ints(copy.count, count / 2, copy.lor[count / 2 - 1], count - 1);
    struct lr_matrix by_block;
    struct plain plain = {1, count, (int64_t[2]){0, count}, lor, value};
    assert_ok(lr_matrix_init(&by_block, count, &sample, NULL));
    append_blocks(&plain, &by_block, 1);
    assert_ok(lr_matrix_complete(&by_block));
    assert_same_matrix(&matrix, &by_block);
    lr_matrix_finish(&by_block);
    lr_owned_row_finish(&copy);
    lr_matrix_finish(&matrix);
}

test_main("operator_test_matrix", CASES(test_sizes, test_ranges_balance, test_long_row_and_tiny_values))
