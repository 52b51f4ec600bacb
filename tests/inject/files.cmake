# SPDX-License-Identifier: Apache-2.0
# Calls on files that fail in turn: a spread of them, or all where LORASTER_FULL is set.
add_library(fail_files MODULE fail_files.c)
set_target_properties(fail_files PROPERTIES C_VISIBILITY_PRESET default)
target_compile_definitions(fail_files PRIVATE _GNU_SOURCE) # fopencookie, O_TMPFILE
# It defines what fortified headers replace by functions of their own.
target_compile_options(fail_files PRIVATE -U_FORTIFY_SOURCE)

foreach(topic reading writing matrices helper)
    add_test(NAME inject.files_${topic}
             COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/test_files.py
                     $<TARGET_FILE:loraster> ${PROJECT_SOURCE_DIR} ${topic})
    set_tests_properties(inject.files_${topic} PROPERTIES TIMEOUT ${LR_HANG_S}
                         ENVIRONMENT LORASTER_FAIL_FILES=$<TARGET_FILE:fail_files>)
endforeach()
