/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The place to test, from the program's argument: host, gl or cuda; the second argument names the only test to run. */
#pragma once

#include "fixtures.h"

static lr_place_kind wanted = LR_PLACE_HOST;
static lr_place *place;
static struct test_log test = TEST_LOG(test);

/* Returns 77 if there is no CUDA device. */
static inline int place_run(int argc, char **argv, struct CMUnitTest *tests, size_t count)
{
    const char *name = argc > 1 ? argv[1] : "host";
    wanted = strcmp(name, "cuda") == 0 ? LR_PLACE_CUDA : strcmp(name, "gl") == 0 ? LR_PLACE_GL : LR_PLACE_HOST;
    place = lr_place_open(&(lr_place_params){.kind = wanted, .log = &test.log});
    if (place == NULL) print_message("no place: %s\n", test.error);
    if (place == NULL) return wanted == LR_PLACE_CUDA && test.status == LR_NO_DEVICE ? 77 : 1;
    const int failed = test_run(argc > 2 ? argv[2] : NULL, name, tests, count, NULL);
    lr_place_close(place);
    return failed;
}

#define place_main(...)                                                                                                \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        struct CMUnitTest tests[] = {__VA_ARGS__};                                                                     \
        return place_run(argc, argv, tests, length_of(tests));                                                         \
    }
