/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The list mode kernels of all instruction sets that this processor has give the same bits. */
#include "listmode/cases.h"

#include "listmode/native/kernels.h"

enum { COUNT = 2000 };

static void check(const lr_listmode_params *params, const lr_grid *grid)
{
    struct case_backend open[2];
    const int64_t num_voxels = lr_grid_num_voxels(grid);
    uint64_t seed = 4;
    double *x = case_random(num_voxels, &seed), *y = case_random(COUNT, &seed);
    double *values[2] = {case_doubles(COUNT), case_doubles(COUNT)};
    double *images[2] = {case_doubles(num_voxels), case_doubles(num_voxels)};
    for (int k = 0; k < 2; k++) {
        case_open(&open[k], params, "native");
        struct lr_native_listmode *native = open[k].backend.self;
        native->kernels = lr_native_listmode_kernels_at(k);
        case_forward(&open[k], NULL, x, values[k]);
        case_back(&open[k], NULL, y, images[k]);
        case_close(&open[k]);
    }
    assert_true(case_dot(values[0], values[0], COUNT) > 0);
    assert_memory_equal(values[0], values[1], COUNT * sizeof(double));
    assert_memory_equal(images[0], images[1], (size_t)num_voxels * sizeof(double));
    for (int k = 0; k < 2; k++) {
        free(values[k]);
        free(images[k]);
    }
    free(x);
    free(y);
}

static void test_same_bits(void **state)
{
    if (lr_native_listmode_kernels_at(1) == NULL) {
        print_message("one instruction set only\n");
        skip();
    }
    uint64_t seed = test_seed();
    lr_scanner *scanner = case_scanner();
    const lr_lors lors = {.scanner = scanner};
    const lr_grid grid = case_grid();
    const lr_events_info info = {.has_tof = true, .tof_resolution_ps = 300};
    lr_event *events = case_events(COUNT, &seed);
    for (int model = 0; model < 2 * NUM_CASES; model++) {
        lr_listmode_params params = {.lors = &lors, .grid = &grid, .events = events, .count = COUNT};
        params.info = model >= NUM_CASES ? &info : NULL;
        case_kernel(&params, (enum case_model)(model % NUM_CASES));
        check(&params, &grid);
    }
    free(events);
    lr_scanner_destroy(scanner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
