# SPDX-License-Identifier: Apache-2.0
# What tells builds apart whose plugins do not fit each other: the version and a digest of all headers,
# which declare whatever a library and its plugins share.
if(CMAKE_SCRIPT_MODE_FILE)
    set(digests "")
    file(GLOB_RECURSE headers RELATIVE ${SOURCE} ${SOURCE}/src/*.h)
    foreach(header IN LISTS headers)
        file(SHA256 ${SOURCE}/${header} digest)
        string(APPEND digests "${header} ${digest}\n")
    endforeach()
    string(SHA256 digest "${digests}")
    string(SUBSTRING ${digest} 0 12 digest)
    file(WRITE ${OUTPUT} "#include \"plugin/plugin.h\"\n"
         "const char lr_plugin_build[] = \"${VERSION}, build ${digest}\";\n")
    return()
endif()

file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.h)
set(build_source ${CMAKE_CURRENT_BINARY_DIR}/build.c)
add_custom_command(OUTPUT ${build_source}
    COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D OUTPUT=${build_source}
            -D VERSION=${PROJECT_VERSION} -P ${CMAKE_CURRENT_LIST_FILE}
    DEPENDS ${headers} ${CMAKE_CURRENT_LIST_FILE}
    VERBATIM)
