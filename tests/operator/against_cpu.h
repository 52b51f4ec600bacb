/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Compares a backend with the backend cpu, which computes in double: forward values of an image, forward values of
 * single LORs, and the sensitivity. Link lr_fixtures. */
#pragma once

#include "fixtures.h"

#include "projections.h"

/* Results of an operator for the fixture. */
struct results {
    float *values, *sensitivity, *some; /* NULL: refused */
    int64_t num_values, num_voxels, num_some;
};

/* Single LORs are every seventh one. */
enum { EACH = 7 };

/* True if the call worked. A software renderer refuses crystals for which it would end a shader's loops too early. */
static inline bool is_done(const lr_operator *op, lr_status status, const struct test_log *log)
{
    if (status == LR_OK) return true;
    const lr_operator_info *info = lr_operator_get_info(op);
    assert_int_equal(status, LR_USAGE);
    assert_string_equal(info->backend, "compute");
    assert_says(info->device, "llvmpipe");
    if (strstr(log->error, "65,535 rounds") == NULL) fail_msg("%s", log->error);
    print_message("refused: %s\n", log->error);
    return false;
}

static inline struct results results_of(const struct fixture *fixture, const lr_operator_params *params)
{
    struct test_log *log = kept_log();
    lr_operator_params logged = *params;
    logged.log = &log->log;
    lr_operator *op = keep(lr_operator_create(&logged));
    struct results results = {.num_values = fixture->lors->count,
                              .num_voxels = test_num_voxels(op),
                              .num_some = (fixture->lors->count + EACH - 1) / EACH};
    uint64_t state = 7;
    const float *image = kept_random_floats(results.num_voxels, 0.0, 1.0, &state);
    results.values = kept_floats(results.num_values);
    results.sensitivity = kept_floats(results.num_voxels);
    results.some = kept_floats(results.num_some);
    int64_t *numbers = kept(results.num_some, sizeof(*numbers));
    for (int64_t k = 0; k < results.num_some; k++) numbers[k] = EACH * k;
    const lr_selection part = {.lors = numbers, .num_lors = results.num_some};
    if (!is_done(op, array_forward(op, image, results.values), log)) results.values = NULL;
    if (!is_done(op, array_sensitivity(op, results.sensitivity), log)) results.sensitivity = NULL;
    if (!is_done(op, array_forward_part(op, &part, image, results.some), log)) results.some = NULL;
    return results;
}

/* Difference relative to the length of the second vector; 0 if the result was refused. */
static inline double distance(const float *a, const float *b, int64_t count)
{
    const double size = sqrt(dot_product(b, b, count));
    return a == NULL ? 0.0 : size > 0.0 ? l2_apart(a, b, count) : sqrt(dot_product(a, a, count));
}

/* Compares the results of the backend in the parameters with those of cpu. apart: relative differences of the values,
 * of the values of single LORs, and of the sensitivity. */
static inline void compare_with_cpu(const struct fixture *fixture, const lr_operator_params *params, double apart[3])
{
    lr_operator_params reference = *params;
    reference.backend = "cpu";
    const int mark = num_kept();
    struct results here = results_of(fixture, params), there = results_of(fixture, &reference);
    apart[0] = distance(here.values, there.values, here.num_values);
    /* A few single LORs may have small values compared with all. */
    const double share = sqrt((double)there.num_some / (double)there.num_values);
    const double some = sqrt(dot_product(there.some, there.some, there.num_some));
    const double usual = share * sqrt(dot_product(there.values, there.values, there.num_values));
    apart[1] = distance(here.some, there.some, here.num_some);
    apart[1] *= some > 0.0 ? some / fmax(some, usual) : 1.0;
    apart[2] = distance(here.sensitivity, there.sensitivity, here.num_voxels);
    destroy_kept_since(mark);
}
