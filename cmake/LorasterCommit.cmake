# SPDX-License-Identifier: Apache-2.0
# Writes the commit that is being built into a C file, at every build; the file changes only when
# the commit does. -DLORASTER_COMMIT=... names it where there is no repository, as in a copy of the
# source. Run by the build as a script, and included by CMakeLists.txt for the function below.
if(CMAKE_SCRIPT_MODE_FILE)
    set(commit "${COMMIT}")
    if(NOT commit)
        execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=10
                        OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
    if(NOT commit MATCHES "^[A-Za-z0-9._+/-]+$")
        set(commit "unknown")
    endif()
    file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
         "extern const char bench_commit[];\nconst char bench_commit[] = \"${commit}\";\n")
    return()
endif()

set(LORASTER_COMMIT "" CACHE STRING "Commit of the source; empty = asked of git")

# Sets `out` to a C file that defines bench_commit.
function(lr_commit_source out)
    set(c_file ${CMAKE_CURRENT_BINARY_DIR}/commit.c)
    add_custom_target(lr_commit
        COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D OUTPUT=${c_file}
                -D COMMIT=${LORASTER_COMMIT}
                -P ${PROJECT_SOURCE_DIR}/cmake/LorasterCommit.cmake
        BYPRODUCTS ${c_file}
        COMMENT "Asking which commit this is"
        VERBATIM)
    set(${out} ${c_file} PARENT_SCOPE)
endfunction()
