/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The kernels of all instruction sets of this processor give the same bits. */
#include "fixtures.h"

#include "correspondence/native/kernels.h"

enum { NUM_STRIPS = 2000, CELLS = 21, MOST = 48 * 24 };

static double between(uint64_t *state, double low, double high)
{
    return low + (high - low) * test_random(state);
}

struct found {
    int count;
    float weight[MOST];
    int32_t offset[MOST], scratch[3 * MOST];
    float overlaps[4 * MOST];
};

static struct lr_native_slots slots_of(struct found *found)
{
    return (struct lr_native_slots){found->weight, found->offset, MOST, found->scratch, found->overlaps};
}

static struct lr_native_axial random_axial(uint64_t *state)
{
    const double pitch_a = between(state, 1, 5), pitch_b = between(state, 1, 5);
    const double face_a = pitch_a * between(state, 0.6, 1), face_b = pitch_b * between(state, 0.6, 1);
    struct lr_native_axial axial = filled(
        struct lr_native_axial, .pitch_a = (float)pitch_a, .pitch_b = (float)pitch_b, .face_b = (float)face_b,
        .gap_b = (float)(0.5 * (pitch_b - face_b)), .num_a = CELLS, .num_b = CELLS, .stride_a = CELLS, .stride_b = 1,
        .exact_pitch_a = pitch_a, .exact_face_a = face_a, .exact_pitch_b = pitch_b, .exact_face_b = face_b, .rays = 3);
    lr_native_look_at(&axial, 0, 1);
    return axial;
}

static struct lr_native_strip random_strip(uint64_t *state)
{
    const double tau = between(state, 0.5, 4), height = between(state, 10, 300);
    const double slant = between(state, -100, 100), width = between(state, 0.1, 4);
    return filled(struct lr_native_strip, .tau = (float)tau, .tau_exactly = tau,
                  .dtau = (float)(tau * between(state, -0.04, 0.04)),
                  .squared = (float)(height * height + slant * slant), .width = (float)width,
                  .share = (float)(height * width / 6.28), .slant = (float)slant, .parts = 1);
}

static void assert_same(const struct found *a, const struct found *b)
{
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->weight, b->weight, (size_t)a->count * sizeof(float));
    assert_memory_equal(a->offset, b->offset, (size_t)a->count * sizeof(int32_t));
}

/* Compares the elements of a strip by both kernels; returns the number of elements. */
static int compare(const struct lr_native_kernels *one, const struct lr_native_kernels *other, uint64_t *state)
{
    static struct found a, b;
    const struct lr_native_slots to_a = slots_of(&a), to_b = slots_of(&b);
    float block[CELLS * CELLS];
    const struct lr_native_axial axial = random_axial(state);
    const struct lr_native_strip strip = random_strip(state);
    const struct lr_native_starts starts =
        lr_native_start(&strip, (const double[2]){between(state, -60, 0), between(state, -60, 0)});
    for (int k = 0; k < CELLS * CELLS; k++) block[k] = (float)between(state, -1, 1);
    a.count = one->sampled(&strip, &axial, &starts, &to_a);
    b.count = other->sampled(&strip, &axial, &starts, &to_b);
    assert_same(&a, &b);
    a.count = one->exact(&strip, &axial, &starts, &to_a);
    b.count = other->exact(&strip, &axial, &starts, &to_b);
    assert_true(a.count <= MOST);
    assert_same(&a, &b);
    const float sums[4] = {one->sum(a.weight, a.count), other->sum(a.weight, a.count),
                           one->dot(a.weight, a.offset, a.count, block),
                           other->dot(a.weight, a.offset, a.count, block)};
    assert_memory_equal(&sums[0], &sums[1], sizeof(float));
    assert_memory_equal(&sums[2], &sums[3], sizeof(float));
    const float *overlaps[2] = {block, a.weight};
    a.count = b.count = 64;
    one->straight(&strip, overlaps, a.count, a.weight + MOST / 2);
    other->straight(&strip, overlaps, a.count, b.weight + MOST / 2);
    assert_memory_equal(a.weight + MOST / 2, b.weight + MOST / 2, 64 * sizeof(float));
    return sums[0] > 0;
}

static void test_instruction_sets_give_the_same_bits(void **unused)
{
    uint64_t state = test_seed();
    const struct lr_native_kernels *first = lr_native_kernels_at(0);
    int num_others = 0;
    for (int k = 1; lr_native_kernels_at(k) != NULL; k++, num_others++) {
        int num_seen = 0;
        print_message("%s against %s\n", first->name, lr_native_kernels_at(k)->name);
        for (int n = 0; n < NUM_STRIPS; n++) num_seen += compare(first, lr_native_kernels_at(k), &state);
        assert_true(num_seen > NUM_STRIPS / 2);
    }
    if (num_others == 0) {
        print_message("skipped: one instruction set here\n");
        skip();
    }
}

test_main("native_kernels", CASE(test_instruction_sets_give_the_same_bits))
