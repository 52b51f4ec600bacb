// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The keys by which CUDA orders lines: order.cu.
#include "../cuda_interop/stand_ins.h"

#include "cuda_interop/listmode/order.cu"

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <random>
#include <tuple>

extern "C" {
#include <cmocka.h>
}

namespace
{

const int32_t slice_counts[] = {1, 2, 3, 15, 16, 75, 127, 128, 1000, 32766, 32767, 100000};
const uint32_t most_steps = (1u << list_keys::most_step_bits) - 1;

list_extent draw(std::mt19937 &generator, int32_t slices)
{
    const auto below = [&](uint32_t end) { return (int32_t)(generator() % end); };
    const int32_t ends[2] = {below((uint32_t)slices + 1), below((uint32_t)slices + 1)};
    const bool few = generator() % 2 == 0;
    return {{std::min(ends[0], ends[1]), std::max(ends[0], ends[1])},
            (uint32_t)below(3),
            (uint32_t)(few ? generator() % 100 : generator())};
}

void parts_fit_into_a_key(void **)
{
    for (const int32_t slices : slice_counts) {
        const list_keys keys(slices);
        assert_true(keys.step_bits() >= 0 && keys.step_bits() <= list_keys::most_step_bits);
        assert_true(list_keys::wide_bits + 2 * keys.slice_bits + keys.step_bits() <= 32);
        // A line that begins or ends behind all slices must have another key than one that ends in the last slice.
        assert_true(keys.last() >= (uint32_t)slices || keys.slice_bits == list_keys::most_slice_bits);
    }
}

void parts_are_found_again(void **)
{
    std::mt19937 generator(7);
    for (const int32_t slices : slice_counts) {
        const list_keys keys(slices);
        const int32_t last = (int32_t)keys.last();
        const uint32_t most = (1u << keys.step_bits()) - 1;
        for (int k = 0; k < 2000; k++) {
            const list_extent extent = draw(generator, slices);
            const uint32_t key = keys.key_of(extent);
            assert_int_equal(keys.slice_of(key, 0), std::min(extent.slices[0], last));
            assert_int_equal(keys.slice_of(key, 1), std::min(extent.slices[1], last));
            assert_int_equal(keys.steps_of(key), std::min(extent.steps, most));
        }
    }
}

// Keys are ordered by window, then by first slice, last slice and number of steps.
void keys_are_in_order(void **)
{
    std::mt19937 generator(8);
    for (const int32_t slices : slice_counts) {
        const list_keys keys(slices);
        const auto order = [&](const list_extent &extent) {
            const auto slice = [&](int which) { return std::min((uint32_t)extent.slices[which], keys.last()); };
            return std::make_tuple(extent.wide, slice(0), slice(1),
                                   std::min(extent.steps, (1u << keys.step_bits()) - 1));
        };
        for (int k = 0; k < 2000; k++) {
            const list_extent a = draw(generator, slices), b = draw(generator, slices);
            assert_int_equal(keys.key_of(a) < keys.key_of(b), order(a) < order(b));
        }
    }
}

// Even if every line of a piece has the largest number of steps, the sum stays below 2^31.
void steps_of_a_piece_add_up(void **)
{
    assert_true((int64_t)most_steps * LR_CUDA_LIST_PIECE <= INT32_MAX);
}

} // namespace

int main()
{
    const CMUnitTest tests[] = {cmocka_unit_test(parts_fit_into_a_key), cmocka_unit_test(parts_are_found_again),
                                cmocka_unit_test(keys_are_in_order), cmocka_unit_test(steps_of_a_piece_add_up)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
