/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Whole updates and projections, alternating with everything that OpenGL does with images. The results must be those
 * of the formulas in double, whoever holds the images at the moment. */
#pragma once

#include "direct/cases.h"
#include "fixtures.h"

#include "direct/backend.h"
#include "operator/facade.h"

enum { TURN_VIEWS = 5, TURN_DATA = 3 };

/* The kind of data, and the sizes of blocks. */
struct turns {
    lr_recon_algorithm algorithm;
    bool additive, factors;
    int views_per_block;
};

static const struct turns all_turns[] = {{LR_ALGORITHM_RAMLA, false, false, 1}, {LR_ALGORITHM_RAMLA, true, false, 2},
                                         {LR_ALGORITHM_RAMLA, true, true, 1},   {LR_ALGORITHM_OSEM, false, false, 2},
                                         {LR_ALGORITHM_OSEM, false, true, 1},   {LR_ALGORITHM_OSEM, true, true, 5}};

/* Two operators that get the same calls. */
struct pair {
    lr_operator *tested, *reference; /* reference: of backend cpu */
    int64_t count;
    float *found, *expected; /* [count] */
    float *source;           /* [count]; random */
    float *data[TURN_DATA];  /* [TURN_VIEWS][count]: counts, additive term, factors */
    double *image;           /* [count] of the reference */
    double worst;
};

/* Operators and arrays that live until the end of the case. */
static inline struct pair *kept_pair(lr_operator *tested, lr_operator *reference)
{
    uint64_t seed = 21;
    struct pair *pair = kept(1, sizeof(*pair));
    const int64_t count = lr_operator_get_info(tested)->num_voxels;
    *pair = (struct pair){.tested = tested, .reference = reference, .count = count};
    pair->found = kept_floats(count);
    pair->expected = kept_floats(count);
    pair->source = kept_random_floats(count, 0, 1, &seed);
    pair->image = kept_doubles(count);
    for (int k = 0; k < TURN_DATA; k++) pair->data[k] = kept_floats(TURN_VIEWS * count);
    return pair;
}

static inline void pair_compare(struct pair *pair)
{
    assert_true(largest_number(pair->expected, pair->count) > 0);
    const double apart = l2_apart(pair->found, pair->expected, pair->count);
    assert_true(isfinite(apart));
    pair->worst = fmax(pair->worst, apart);
}

static inline void pair_compare_projections(struct pair *pair, int view)
{
    for (int back = 0; back < 2; back++) {
        assert_ok(view_floats(pair->tested, !back, view, pair->source, pair->found));
        assert_ok(view_floats(pair->reference, !back, view, pair->source, pair->expected));
        pair_compare(pair);
    }
}

/* --- blocks --- */

static inline const struct lr_backend_updates *updates_of(const lr_operator *op)
{
    return op->backend.fns->updates;
}

static inline int turns_blocks(const struct turns *turns)
{
    return (TURN_VIEWS - 1) / turns->views_per_block + 1;
}

/* The views of a block, ascending, as selections have them. */
static inline int turns_views(const struct turns *turns, int number, int32_t views[TURN_VIEWS])
{
    static const int order[TURN_VIEWS] = {3, 0, 4, 1, 2};
    int count = 0;
    for (int view = 0; view < TURN_VIEWS; view++) {
        for (int k = 0; k < TURN_VIEWS; k++)
            if (order[k] == view && k / turns->views_per_block == number) views[count++] = view;
    }
    return count;
}

static inline void pair_load_block(struct pair *pair, const struct turns *turns, int number)
{
    int32_t views[TURN_VIEWS];
    const int num_views = turns_views(turns, number, views);
    const lr_selection part = {.pairs = views, .num_pairs = num_views};
    lr_vector vectors[TURN_DATA];
    for (int k = 0; k < TURN_DATA; k++) {
        vectors[k] = kept_vector(NULL, num_views * pair->count, LR_FLOAT32);
        for (int n = 0; n < num_views; n++) {
            memcpy((float *)vectors[k].values + n * pair->count, pair->data[k] + views[n] * pair->count,
                   (size_t)pair->count * sizeof(float));
        }
    }
    const struct lr_update_data data = {.part = &part,
                                        .measured = &vectors[0],
                                        .additive = turns->additive ? &vectors[1] : NULL,
                                        .factors = turns->factors ? &vectors[2] : NULL};
    assert_ok(updates_of(pair->tested)->load(pair->tested->backend.self, number, &data));
}

/* Some counts are zero, and so are some factors. */
static inline void pair_fill(struct pair *pair, int view, uint64_t seed)
{
    for (int k = 0; k < TURN_DATA; k++) {
        for (int64_t v = 0; v < pair->count; v++) {
            const double value = test_random(&seed);
            pair->data[k][view * pair->count + v] = (float)(k == 1 || value > 0.1 ? (k + 1) * value : 0);
        }
    }
}

static inline void pair_open(struct pair *pair, const struct turns *turns)
{
    bool has_room = false;
    const struct lr_update_plan plan = {.num_subsets = turns_blocks(turns),
                                        .algorithm = turns->algorithm,
                                        .has_additive = turns->additive,
                                        .has_factors = turns->factors};
    assert_ok(updates_of(pair->tested)->open(pair->tested->backend.self, &plan, &has_room));
    assert_true(has_room);
    for (int view = 0; view < TURN_VIEWS; view++) pair_fill(pair, view, (uint64_t)view);
    for (int number = 0; number < plan.num_subsets; number++) pair_load_block(pair, turns, number);
}

static inline void pair_set_image(struct pair *pair, const float *image)
{
    assert_ok(updates_of(pair->tested)->set_image(pair->tested->backend.self, vector_of(image, pair->count)));
    for (int64_t k = 0; k < pair->count; k++) pair->image[k] = (double)image[k];
}

static inline void pair_get_image(struct pair *pair, float *image)
{
    assert_ok(updates_of(pair->tested)->get_image(pair->tested->backend.self, vector_of(image, pair->count)));
}

static inline void pair_compare_images(struct pair *pair)
{
    pair_get_image(pair, pair->found);
    for (int64_t k = 0; k < pair->count; k++) pair->expected[k] = (float)pair->image[k];
    pair_compare(pair);
}

/* --- updates --- */

static inline double factor_at(const struct pair *pair, const struct turns *turns, int view, int64_t voxel)
{
    return turns->factors ? (double)pair->data[2][view * pair->count + voxel] : 1;
}

/* Over the sum of the largest factors. */
static inline double turns_lambda(const struct pair *pair, const struct turns *turns, int number)
{
    int32_t views[TURN_VIEWS];
    double sum = 0;
    for (int n = turns_views(turns, number, views) - 1; n >= 0; n--) {
        double most = 0;
        for (int64_t k = 0; k < pair->count; k++) most = fmax(most, factor_at(pair, turns, views[n], k));
        sum += most;
    }
    return 1 / sum;
}

static inline void turns_update(struct pair *pair, const struct turns *turns, int number)
{
    const struct lr_update next = {.subset = number, .lambda = turns_lambda(pair, turns, number)};
    assert_ok(updates_of(pair->tested)->run(pair->tested->backend.self, &next));
}

/* sum += K^T histo */
static inline void add_back(const struct pair *pair, int view, const double *histo, double *sum)
{
    double *back = kept_doubles(pair->count);
    assert_ok(view_doubles(pair->reference, false, view, histo, back));
    for (int64_t k = 0; k < pair->count; k++) sum[k] += back[k];
}

static inline void reference_view(struct pair *pair, const struct turns *turns, int view, double *sums[2])
{
    const bool is_ramla = turns->algorithm == LR_ALGORITHM_RAMLA;
    double *histo = kept_doubles(pair->count);
    assert_ok(view_doubles(pair->reference, true, view, pair->image, histo));
    for (int64_t k = 0; k < pair->count; k++) {
        const int64_t at = view * pair->count + k;
        const double n = factor_at(pair, turns, view, k);
        const double e = n * histo[k] + (turns->additive ? (double)pair->data[1][at] : 0);
        const double ratio = (double)pair->data[0][at] / e;
        histo[k] = e > LR_DIRECT_LEAST ? n * (is_ramla ? ratio - 1 : ratio) : 0;
    }
    add_back(pair, view, histo, sums[0]);
    for (int64_t k = 0; k < pair->count; k++) histo[k] = factor_at(pair, turns, view, k);
    add_back(pair, view, histo, sums[1]);
}

/* --- turns --- */

static inline void time_both_ways(struct pair *pair)
{
    static const int views[TURN_VIEWS] = {0, 1, 2, 3, 4};
    const lr_direct_task back = {LR_DIRECT_WORK_BACK, views, TURN_VIEWS, NULL};
    lr_direct_task forward = {LR_DIRECT_WORK_FORWARD, views, TURN_VIEWS, vector_of(pair->source, pair->count)};
    lr_direct_timing timing;
    assert_ok(lr_direct_time(pair->tested, &forward, &timing), lr_direct_time(pair->tested, &back, &timing));
}

/* Called after each block. */
static inline void take_turn(struct pair *pair, const struct turns *turns, int turn)
{
    if (turn % 5 == 1) {
        pair_compare_images(pair);
        pair_set_image(pair, pair->expected);
    } else if (turn % 5 == 2) {
        pair_compare_projections(pair, turn % TURN_VIEWS);
        /* A^T n of a block, computed in the way in which lr_recon asks for it. */
        const int number = turn % turns_blocks(turns);
        int32_t views[TURN_VIEWS];
        const int num_views = turns_views(turns, number, views);
        double *sum = kept_doubles(pair->count), *histo = kept_doubles(pair->count);
        for (int n = 0; n < num_views; n++) {
            for (int64_t k = 0; k < pair->count; k++) histo[k] = factor_at(pair, turns, views[n], k);
            add_back(pair, views[n], histo, sum);
        }
        for (int64_t k = 0; k < pair->count; k++) pair->expected[k] = (float)sum[k];
        assert_ok(updates_of(pair->tested)
                      ->sensitivity(pair->tested->backend.self, number, vector_of(pair->found, pair->count)));
        pair_compare(pair);
    } else if (turn % 5 == 3) {
        pair_compare_images(pair);
        time_both_ways(pair);
        pair_set_image(pair, pair->expected);
    } else if (turn % 5 == 4) {
        pair_fill(pair, 3, 77);
        pair_load_block(pair, turns, 0); /* block 0 contains view 3 */
    }
}

/* Runs the updates with pair->tested, which stays open for updates, and compares with pair->reference, an equal
 * operator of backend cpu; the views are case_views[0 .. TURN_VIEWS - 1]. pair->worst becomes the worst relative
 * difference. */
static inline void take_turns(struct pair *pair, const struct turns *turns)
{
    const struct lr_backend *backend = &pair->tested->backend;
    pair_open(pair, turns);
    for (int64_t k = 0; k < pair->count; k++) pair->expected[k] = 1;
    pair_set_image(pair, pair->expected);
    backend->fns->updates->seconds(backend->self);
    /* Two passes over all views; after each block OpenGL has another task. */
    int turn = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int number = 0; number < turns_blocks(turns); number++, turn++) {
            turns_update(pair, turns, number);
            int32_t views[TURN_VIEWS];
            const int num_views = turns_views(turns, number, views);
            const double lambda = turns_lambda(pair, turns, number);
            double *sums[2] = {kept_doubles(pair->count), kept_doubles(pair->count)};
            for (int n = 0; n < num_views; n++) reference_view(pair, turns, views[n], sums);
            for (int64_t k = 0; k < pair->count; k++)
                if (turns->algorithm == LR_ALGORITHM_RAMLA)
                    pair->image[k] *= fmax(1 + lambda * sums[0][k], 0);
                else if (sums[1][k] > LR_DIRECT_LEAST)
                    pair->image[k] *= sums[0][k] / sums[1][k];
            take_turn(pair, turns, turn);
        }
        pair_compare_images(pair);
    }
    assert_true(backend->fns->updates->seconds(backend->self) > 0);
}
