/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Updates, projections and all that OpenGL does with images, in turns: whoever holds the images at
 * the moment, the results are those of the reference. */
#ifndef LR_TEST_CUDA_TURNS_H
#define LR_TEST_CUDA_TURNS_H

#include "direct/cases.h"

enum { TURN_VIEWS = 5 };

/* What data there are, and how blocks are cut. */
struct turns {
    lr_direct_rule rule;
    bool additive, factors;
    int views_per_block;
};

static const struct turns all_turns[] = {
    {LR_DIRECT_RAMLA, false, false, 1}, {LR_DIRECT_RAMLA, true, false, 2},
    {LR_DIRECT_RAMLA, true, true, 1},   {LR_DIRECT_EM, false, false, 2},
    {LR_DIRECT_EM, false, true, 1},     {LR_DIRECT_EM, true, true, 5},
};
enum { NUM_TURNS = sizeof(all_turns) / sizeof(all_turns[0]) };

/* The same is done with both. */
struct pair {
    lr_direct *tested, *reference;
    int64_t count;
    float *found, *expected; /* owned [count] */
    float *source;           /* owned [count]; random */
    double worst;
};

static inline void pair_init(struct pair *pair, lr_direct *tested, lr_direct *reference)
{
    uint64_t seed = 21;
    *pair = (struct pair){
        .tested = tested, .reference = reference, .count = lr_direct_get_info(tested)->num_voxels};
    pair->found = calloc((size_t)pair->count, 4);
    pair->expected = calloc((size_t)pair->count, 4);
    pair->source = calloc((size_t)pair->count, 4);
    for (int64_t k = 0; k < pair->count; k++) {
        pair->source[k] = (float)test_random(&seed);
    }
}

static inline void pair_finish(struct pair *pair)
{
    free(pair->source);
    free(pair->expected);
    free(pair->found);
}

static inline void pair_compare(struct pair *pair)
{
    double square = 0, norm = 0;
    for (int64_t k = 0; k < pair->count; k++) {
        const double expected = (double)pair->expected[k];
        square += ((double)pair->found[k] - expected) * ((double)pair->found[k] - expected);
        norm += expected * expected;
    }
    assert_true(norm > 0);
    pair->worst = fmax(pair->worst, sqrt(square / norm));
}

static inline void pair_compare_images(struct pair *pair)
{
    assert_int_equal(lr_direct_get_image(pair->tested, pair->found), LR_OK);
    assert_int_equal(lr_direct_get_image(pair->reference, pair->expected), LR_OK);
    pair_compare(pair);
}

static inline void pair_compare_projections(struct pair *pair, int view)
{
    assert_int_equal(lr_direct_forward(pair->tested, view, pair->source, pair->found), LR_OK);
    assert_int_equal(lr_direct_forward(pair->reference, view, pair->source, pair->expected), LR_OK);
    pair_compare(pair);
    assert_int_equal(lr_direct_back(pair->tested, view, pair->source, pair->found), LR_OK);
    assert_int_equal(lr_direct_back(pair->reference, view, pair->source, pair->expected), LR_OK);
    pair_compare(pair);
}

/* Some counts are zero, and so are some factors. */
static inline void pair_load(struct pair *pair, const struct turns *turns, int view, uint64_t seed)
{
    float *values[3];
    for (int k = 0; k < 3; k++) {
        values[k] = calloc((size_t)pair->count, 4);
        for (int64_t v = 0; v < pair->count; v++) {
            const double value = test_random(&seed);
            values[k][v] = (float)(k == 1 || value > 0.1 ? (k + 1) * value : 0);
        }
    }
    const lr_direct_data data = {.counts = values[0],
                                 .additive = turns->additive ? values[1] : NULL,
                                 .factors = turns->factors ? values[2] : NULL};
    assert_int_equal(lr_direct_load(pair->tested, view, &data), LR_OK);
    assert_int_equal(lr_direct_load(pair->reference, view, &data), LR_OK);
    for (int k = 0; k < 3; k++) {
        free(values[k]);
    }
}

static inline void pair_set_image(struct pair *pair, const float *image)
{
    assert_int_equal(lr_direct_set_image(pair->tested, image), LR_OK);
    assert_int_equal(lr_direct_set_image(pair->reference, image), LR_OK);
}

static inline int turns_update(lr_direct *direct, const struct turns *turns, int number)
{
    static const int views[TURN_VIEWS] = {3, 0, 4, 1, 2};
    const int first = number * turns->views_per_block, rest = TURN_VIEWS - first;
    assert_int_equal(
        lr_direct_update(direct, &(lr_direct_block){.views = views + first,
                                                    .num_views = rest < turns->views_per_block
                                                                     ? rest
                                                                     : turns->views_per_block,
                                                    .rule = turns->rule,
                                                    .number = number}),
        LR_OK);
    return rest - turns->views_per_block; /* views that are left */
}

/* Two passes over all views; OpenGL has something to do between blocks, each time something else. */
static inline void turns_iterate(struct pair *pair, const struct turns *turns)
{
    static const int views[TURN_VIEWS] = {0, 1, 2, 3, 4};
    int turn = 0;
    for (int pass = 0; pass < 2; pass++) {
        int left = TURN_VIEWS;
        for (int number = 0; left > 0; number++, turn++) {
            left = turns_update(pair->tested, turns, number);
            turns_update(pair->reference, turns, number);
            if (turn % 5 == 1) {
                pair_compare_images(pair);
                pair_set_image(pair, pair->expected);
            } else if (turn % 5 == 2) {
                pair_compare_projections(pair, turn % TURN_VIEWS);
            } else if (turn % 5 == 3) {
                lr_direct_timing timing;
                const lr_direct_task back = {LR_DIRECT_WORK_BACK, views, TURN_VIEWS};
                const lr_direct_task forward = {LR_DIRECT_WORK_FORWARD, views, TURN_VIEWS};
                assert_int_equal(lr_direct_time(pair->tested, &back, &timing), LR_OK);
                assert_int_equal(lr_direct_time(pair->tested, &forward, &timing), LR_OK);
            } else if (turn % 5 == 4) {
                pair_load(pair, turns, 3, 77);
            }
        }
        pair_compare_images(pair);
    }
}

/* The worst relative difference of images and projections. reference: of backend cpu, as tested but
 * for that; case_views[0 .. TURN_VIEWS - 1]. */
static inline double take_turns(lr_direct *tested, lr_direct *reference, const struct turns *turns)
{
    struct pair pair;
    pair_init(&pair, tested, reference);
    for (int view = 0; view < TURN_VIEWS; view++) {
        pair_load(&pair, turns, view, (uint64_t)view);
    }
    for (int64_t k = 0; k < pair.count; k++) {
        pair.expected[k] = 1;
    }
    pair_set_image(&pair, pair.expected);
    lr_direct_update_seconds(tested);
    turns_iterate(&pair, turns);
    assert_true(lr_direct_update_seconds(tested) > 0);
    pair_finish(&pair);
    return pair.worst;
}

#endif
