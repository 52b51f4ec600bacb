/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Vectors in the memory of the process. */
#include "device/vector.h"

#include "base/mem.h"
#include "base/parallel.h"
#include "device/kinds.h"
#include "device/place.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* BLOCK: count of numbers that are converted to double together. GRAIN: count of blocks in a share. A thread takes one
 * share at a time. */
enum { BLOCK = 512, GRAIN = 128, SHARE = BLOCK * GRAIN };

/* The largest number of shares whose sums are in memory at the same time. */
enum { MOST_SHARES = 256 };

/* --- creation and copies --- */

static lr_status create(const lr_vector_params *params, int64_t bytes, lr_vector *vector)
{
    const char *name = params->name != NULL ? params->name : "a vector";
    vector->storage = lr_alloc(1, sizeof(*vector->storage), "a vector", params->log);
    if (vector->storage == NULL) return LR_FAILED;
    vector->storage->block = vector->values = lr_alloc(bytes, 1, name, params->log);
    if (vector->values == NULL) {
        free(vector->storage);
        return LR_FAILED;
    }
    return LR_OK;
}

static void destroy(lr_vector *vector)
{
    lr_free_all(vector->storage->block, vector->storage);
}

static lr_status copy(const lr_vector *from, lr_vector *to)
{
    memmove(to->values, from->values, (size_t)(from->count * lr_vector_size(from)));
    return LR_OK;
}

/* --- blocks --- */

static void load(const lr_vector *vector, int64_t begin, int count, double *to)
{
    if (vector->precision == LR_FLOAT64) {
        memcpy(to, (const double *)vector->values + begin, (size_t)count * sizeof(*to));
        return;
    }
    const float *from = (const float *)vector->values + begin;
    for (int k = 0; k < count; k++) to[k] = from[k];
}

static void store(const lr_vector *vector, int64_t begin, int count, const double *from)
{
    if (vector->precision == LR_FLOAT64) {
        memcpy((double *)vector->values + begin, from, (size_t)count * sizeof(*from));
        return;
    }
    float *to = (float *)vector->values + begin;
    for (int k = 0; k < count; k++) to[k] = (float)from[k];
}

/* --- element by element --- */

/* One loop for each operation, so that the compiler can vectorise it. */
#define EACH(op)                                                                                                       \
    case op:                                                                                                           \
        for (int k = 0; k < count; k++)                                                                                \
            y[k] = vector_result(op, y[k], in[0][k], in[1][k], in[2][k], task->scalar, task->floor);                   \
        break;

static void apply_blocks(void *user, int64_t first, int64_t end)
{
    const struct lr_vector_task *task = user;
    double y[BLOCK] = {0}, in[LR_VECTOR_INPUTS][BLOCK] = {{0}};
    for (int64_t block = first; block < end; block++) {
        const int64_t begin = block * BLOCK;
        const int count = (int)(task->y.count - begin < BLOCK ? task->y.count - begin : BLOCK);
        if (vector_reads(task->op)) load(&task->y, begin, count, y);
        for (int k = 0; k < LR_VECTOR_INPUTS && task->in[k] != NULL; k++) load(task->in[k], begin, count, in[k]);
        switch (task->op) {
            LR_EACH_VECTOR_OP(EACH)
        default: break;
        }
        store(&task->y, begin, count, y);
    }
}

/* --- fill --- */

struct filling {
    lr_vector vector;
    double value;
};

static void fill_blocks(void *user, int64_t first, int64_t end)
{
    const struct filling *filling = user;
    const int64_t begin = first * BLOCK;
    const int64_t most = filling->vector.count, stop = end * BLOCK < most ? end * BLOCK : most;
    if (filling->vector.precision == LR_FLOAT64) {
        double *values = filling->vector.values;
        for (int64_t k = begin; k < stop; k++) values[k] = filling->value;
        return;
    }
    float *values = filling->vector.values;
    for (int64_t k = begin; k < stop; k++) values[k] = (float)filling->value;
}

static int threads_for(const lr_vector *vector)
{
    return vector->count > SHARE ? lr_place_threads(vector->place) : 1;
}

static lr_status fill(lr_vector *vector, double value)
{
    struct filling filling = {*vector, value};
    lr_parallel_for(threads_for(vector), (vector->count + BLOCK - 1) / BLOCK, GRAIN, fill_blocks, &filling);
    return LR_OK;
}

static lr_status apply(const struct lr_vector_task *task)
{
    lr_parallel_for(threads_for(&task->y), (task->y.count + BLOCK - 1) / BLOCK, GRAIN, apply_blocks,
                    (void *)(uintptr_t)task);
    return LR_OK;
}

/* --- sums: the boundaries of shares, and therefore the sums, do not depend on the number of threads --- */

struct summing {
    const lr_vector *x, *y;
    int64_t first; /* number of the share whose sums are in shares[0] */
    lr_vector_sums shares[MOST_SHARES];
};

/* Number k is added to sum k % LANES, so that the processor can make LANES additions at the same time. With a single
 * sum, each addition would wait for the one before. */
enum { LANES = 8 };

struct lanes {
    double sum[LANES], product[LANES], difference[LANES], largest[LANES], smallest[LANES];
    int64_t not_finite[LANES];
};

static inline void add_number(struct lanes *lanes, int k, double x, double y)
{
    const bool is_number = isfinite(x);
    const double a = is_number ? x : 0.0, b = is_number ? y : 0.0;
    const double high = is_number ? x : -INFINITY, low = is_number ? x : INFINITY;
    lanes->sum[k] += a;
    lanes->product[k] += a * b;
    lanes->difference[k] += (a - b) * (a - b);
    lanes->largest[k] = high > lanes->largest[k] ? high : lanes->largest[k];
    lanes->smallest[k] = low < lanes->smallest[k] ? low : lanes->smallest[k];
    lanes->not_finite[k] += !is_number;
}

static void add_shares(void *user, int64_t first, int64_t last)
{
    struct summing *at = user;
    for (int64_t n = first; n < last; n++) {
        double x[BLOCK], y[BLOCK];
        struct lanes lanes = {0};
        const int64_t share = at->first + n;
        const int64_t end = (share + 1) * SHARE < at->x->count ? (share + 1) * SHARE : at->x->count;
        for (int k = 0; k < LANES; k++) {
            lanes.largest[k] = -INFINITY;
            lanes.smallest[k] = INFINITY;
        }
        for (int64_t begin = share * SHARE; begin < end; begin += BLOCK) {
            const int count = (int)(end - begin < BLOCK ? end - begin : BLOCK);
            int k = 0;
            load(at->x, begin, count, x);
            load(at->y, begin, count, y);
            for (; k + LANES <= count; k += LANES)
                for (int lane = 0; lane < LANES; lane++) add_number(&lanes, lane, x[k + lane], y[k + lane]);
            for (int lane = 0; k < count; k++, lane++) add_number(&lanes, lane, x[k], y[k]);
        }
        lr_vector_sums joined = {.largest = -INFINITY, .smallest = INFINITY};
        for (int lane = 0; lane < LANES; lane++) {
            joined.sum += lanes.sum[lane];
            joined.product += lanes.product[lane];
            joined.difference += lanes.difference[lane];
            joined.largest = fmax(joined.largest, lanes.largest[lane]);
            joined.smallest = fmin(joined.smallest, lanes.smallest[lane]);
            joined.not_finite += lanes.not_finite[lane];
        }
        at->shares[n] = joined;
    }
}

static lr_status add_up(const lr_vector *x, const lr_vector *y, lr_vector_sums *sums)
{
    const int64_t shares = (x->count + SHARE - 1) / SHARE;
    struct summing at; /* not cleared, because it is large */
    at.x = x;
    at.y = y;
    for (at.first = 0; at.first < shares; at.first += MOST_SHARES) {
        const int64_t left = shares - at.first, held = left < MOST_SHARES ? left : MOST_SHARES;
        lr_parallel_for(threads_for(x), held, 1, add_shares, &at);
        for (int64_t k = 0; k < held; k++) {
            const lr_vector_sums *share = &at.shares[k];
            sums->sum += share->sum;
            sums->product += share->product;
            sums->difference += share->difference;
            sums->largest = share->largest > sums->largest ? share->largest : sums->largest;
            sums->smallest = share->smallest < sums->smallest ? share->smallest : sums->smallest;
            sums->not_finite += share->not_finite;
        }
    }
    return LR_OK;
}

/* --- counts --- */

struct dividing {
    const float *measured, *additive; /* additive may be NULL */
    float *values;
    int64_t count;
    int64_t first; /* number of the share whose fit is in shares[0] */
    lr_poisson_fit shares[MOST_SHARES];
};

static void divide_shares(void *user, int64_t first, int64_t last)
{
    struct dividing *at = user;
    for (int64_t n = first; n < last; n++) {
        const int64_t share = at->first + n;
        const int64_t end = (share + 1) * SHARE < at->count ? (share + 1) * SHARE : at->count;
        lr_poisson_fit fit = {0};
        for (int64_t k = share * SHARE; k < end; k++) {
            const double b = at->additive != NULL ? (double)at->additive[k] : 0.0;
            const double measured = at->measured[k], estimated = at->values[k] + b;
            if (is_left_out(measured, estimated)) {
                fit.left_out_lors++;
                fit.left_out_counts += measured;
            } else {
                fit.estimated_counts += estimated;
                fit.log_likelihood -= estimated;
                fit.measured_counts += measured > 0.0 ? measured : 0.0;
                fit.log_likelihood += measured > 0.0 ? measured * log(estimated) : 0.0;
            }
            at->values[k] = (float)poisson_ratio(measured, estimated);
        }
        at->shares[n] = fit;
    }
}

static lr_status divide_counts(const lr_poisson_ratio *ratio, lr_poisson_fit *fit)
{
    const int64_t shares = (ratio->values->count + SHARE - 1) / SHARE;
    struct dividing at = {.measured = ratio->measured->values,
                          .additive = ratio->additive != NULL ? ratio->additive->values : NULL,
                          .values = ratio->values->values,
                          .count = ratio->values->count};
    for (; at.first < shares; at.first += MOST_SHARES) {
        const int64_t left = shares - at.first, held = left < MOST_SHARES ? left : MOST_SHARES;
        lr_parallel_for(threads_for(ratio->values), held, 1, divide_shares, &at);
        for (int64_t k = 0; k < held; k++) lr_poisson_fit_add(fit, &at.shares[k]);
    }
    return LR_OK;
}

/* --- sums over ranks --- */

#define ADD_TERMS(type)                                                                                                \
    do {                                                                                                               \
        type *sums = (type *)y->values;                                                                                \
        const type *pieces = (const type *)terms->pieces->values;                                                      \
        for (int64_t k = 0; k < y->count; k++) {                                                                       \
            double sum = 0.0;                                                                                          \
            for (int r = 0; r < terms->num; r++) sum += r == terms->own ? sums[k] : pieces[r * terms->stride + k];     \
            sums[k] = (type)sum;                                                                                       \
        }                                                                                                              \
    } while (0)

static lr_status add_terms(const struct lr_vector_terms *terms)
{
    const lr_vector *y = terms->y;
    if (y->precision == LR_FLOAT64)
        ADD_TERMS(double);
    else
        ADD_TERMS(float);
    return LR_OK;
}

/* --- relative differences of neighbours: equations in lr/vector.h --- */

/* PIECE: largest count of numbers of a row that are added up together. ROWS: count of rows that a thread takes at a
   time. */
enum { PIECE = 256, ROWS = 16 };

/* A piece of a row, with one more number at each end. kappa is 0 beyond the ends of the row. */
struct row_piece {
    double x[PIECE + 2], kappa[PIECE + 2];
};

/* Loads count + 2 numbers of a row, from number first - 1 on. range: {first, count}. */
static void load_piece(const lr_relative_differences *differences, int64_t row, const int range[2],
                       struct row_piece *piece)
{
    const int first = range[0], count = range[1], length = differences->size[0];
    for (int k = 0; k < count + 2; k++) {
        const int at = first - 1 + k;
        const bool is_inside = at >= 0 && at < length;
        const int64_t number = row * length + at;
        piece->x[k] = is_inside ? lr_number_get(differences->x, number) : 0.0;
        piece->kappa[k] = !is_inside                   ? 0.0
                          : differences->kappa == NULL ? 1.0
                                                       : lr_number_get(differences->kappa, number);
    }
}

/* Adds the terms of a row's numbers with their neighbours in another row. count_which: {count of numbers, index of the
 * weights for the other row (lr/vector.h)}. */
static void add_row(const lr_relative_differences *differences, const struct row_piece pieces[2],
                    const int count_which[2], double *sums)
{
    const struct row_piece *own = &pieces[0], *other = &pieces[1];
    for (int dx = -1; dx <= 1; dx++) {
        const int place = count_which[1] + (dx != 0);
        const double weight = place > 0 ? differences->weights[place] : 0.0;
        if (!(weight > 0.0)) continue;
        for (int k = 1; k <= count_which[0]; k++) {
            const double v = weight * own->kappa[k] * other->kappa[k + dx];
            sums[k - 1] += v > 0.0 ? v * difference_term((int)differences->what, own->x[k], other->x[k + dx],
                                                         differences->gamma, differences->epsilon)
                                   : 0.0;
        }
    }
}

static void difference_rows(void *user, int64_t begin, int64_t end)
{
    const lr_relative_differences *differences = user;
    const lr_vector *target = differences->y;
    const int length = differences->size[0], ny = differences->size[1], nz = differences->size[2];
    const bool adds = differences->what == LR_DIFFERENCES_GRADIENT;
    for (int64_t row = begin; row < end; row++) {
        const int y = (int)(row % ny), z = (int)(row / ny);
        for (int first = 0; first < length; first += PIECE) {
            const int range[2] = {first, length - first < PIECE ? length - first : PIECE};
            double sums[PIECE] = {0};
            struct row_piece pieces[2];
            load_piece(differences, row, range, &pieces[0]);
            for (int n = 0; n < 9; n++) {
                const int dy = n % 3 - 1, dz = n / 3 - 1;
                const int which = 2 * (dy != 0) + 4 * (dz != 0); /* index of the weights, as in lr/vector.h */
                if (y + dy < 0 || y + dy >= ny || z + dz < 0 || z + dz >= nz) continue;
                load_piece(differences, row + dy + (int64_t)dz * ny, range, &pieces[1]);
                add_row(differences, pieces, (int[2]){range[1], which}, sums);
            }
            for (int k = 0; k < range[1] && adds; k++) {
                const double before = lr_number_get(target, row * length + first + k);
                sums[k] = before + differences->scale * sums[k];
            }
            store(target, row * length + first, range[1], sums);
        }
    }
}

static lr_status relative_differences(const lr_relative_differences *differences)
{
    const int64_t rows = (int64_t)differences->size[1] * differences->size[2];
    lr_parallel_for(rows > ROWS ? lr_place_threads(differences->y->place) : 1, rows, ROWS, difference_rows,
                    (void *)(uintptr_t)differences);
    return LR_OK;
}

/* --- convolutions along an axis --- */

/* Adds weight times the numbers begin .. begin + count - 1 to the sums. */
static void add_numbers(const lr_vector *x, int64_t begin, int count, double weight, double *sums)
{
    if (x->precision == LR_FLOAT64) {
        const double *numbers = (const double *)x->values + begin;
        for (int k = 0; k < count; k++) sums[k] += weight * numbers[k];
        return;
    }
    const float *numbers = (const float *)x->values + begin;
    for (int k = 0; k < count; k++) sums[k] += weight * (double)numbers[k];
}

static void convolve_rows(void *user, int64_t begin, int64_t end)
{
    const lr_convolution *convolution = user;
    const int length = convolution->size[0];
    for (int64_t row = begin; row < end; row++) {
        for (int first = 0; first < length; first += PIECE) {
            const int range[2] = {first, length - first < PIECE ? length - first : PIECE};
            double sums[PIECE] = {0};
            if (convolution->axis == 0) {
                /* Neighbours along x are in the same row. Numbers beyond the ends of the row count as 0. */
                const int last = range[0] + range[1];
                for (int k = -convolution->reach; k <= convolution->reach; k++) {
                    const int from = range[0] + k < 0 ? -k : range[0];
                    const int to = last + k > length ? length - k : last;
                    if (from < to) {
                        add_numbers(convolution->x, row * length + from + k, to - from,
                                    convolution->weights[k < 0 ? -k : k], sums + from - range[0]);
                    }
                }
            } else {
                /* Neighbours along y or z have the same position in another row. */
                const int *size = convolution->size;
                const int64_t step = convolution->axis == 1 ? 1 : size[1];
                const int place = (int)(convolution->axis == 1 ? row % size[1] : row / size[1]);
                for (int k = -convolution->reach; k <= convolution->reach; k++) {
                    if (place + k >= 0 && place + k < size[convolution->axis]) {
                        add_numbers(convolution->x, (row + k * step) * size[0] + range[0], range[1],
                                    convolution->weights[k < 0 ? -k : k], sums);
                    }
                }
            }
            store(convolution->y, row * length + first, range[1], sums);
        }
    }
}

static lr_status convolve(const lr_convolution *convolution)
{
    const int64_t rows = (int64_t)convolution->size[1] * convolution->size[2];
    lr_parallel_for(rows > ROWS ? lr_place_threads(convolution->y->place) : 1, rows, ROWS, convolve_rows,
                    (void *)(uintptr_t)convolution);
    return LR_OK;
}

/* --- the table --- */

const struct lr_vector_fns lr_vector_host_fns = {
    .create = create,
    .destroy = destroy,
    .copy = copy,
    .fill = fill,
    .apply = apply,
    .add_up = add_up,
    .divide_counts = divide_counts,
    .relative_differences = relative_differences,
    .convolve = convolve,
    .add_terms = add_terms,
};
