/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A machine without any OpenGL driver: before its first use, the dispatch library gets an empty list of vendors. This
 * affects the whole process, so the test is a program of its own. */
#include "gl_test.h"

static void no_driver_is_one_sentence_with_a_remedy(void **state)
{
    struct test_log log = TEST_LOG(log);
    assert_null(gl_context_create(&(struct gl_context_params){.log = &log.log}));
    print_message("%s\n", log.error);
    assert_error(&log, LR_NO_DEVICE, "no OpenGL 4.5 device", "libegl1 libgl1-mesa-dri", "libegl-nvidia0",
                 "egl surfaceless: ", "egl pbuffer: ");
    assert_int_equal(log.num_warnings, 0);
}

static void the_list_has_refusals_only(void **state)
{
    lr_device devices[8];
    struct test_log log = TEST_LOG(log);
    const int count = lr_device_list(devices, 8, &log.log);
    assert_int_equal(log.num_warnings, 0); /* there is no warning, since no usable device was skipped */
    assert_int_equal(count, 3);
    assert_string_equal(devices[0].way, "egl devices");
    assert_says(devices[0].reason, "EGL does not list them: ");
    for (int k = 0; k < count; k++) assert_all(!devices[k].usable, devices[k].reason[0] != '\0');
}

int main(void)
{
    setenv("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent/vendor.json", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_driver_is_one_sentence_with_a_remedy),
                                       cmocka_unit_test(the_list_has_refusals_only)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
