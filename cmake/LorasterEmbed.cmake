# SPDX-License-Identifier: Apache-2.0
# Turns shaders, scanner presets, schemas and fonts into C files of the build tree.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# Flattens each shader's #include lines, validates it, and embeds it.
function(lr_embed_shaders out shaders heads)
    set(c_file ${CMAKE_CURRENT_BINARY_DIR}/embedded_shaders.c)
    add_custom_command(
        OUTPUT ${c_file}
        COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/embed_shaders.py
                --validator ${GLSLANG_VALIDATOR} --output ${c_file}
                --root ${PROJECT_SOURCE_DIR}/shaders ${shaders}
        DEPENDS ${shaders} ${heads} ${PROJECT_SOURCE_DIR}/tools/embed_shaders.py
        COMMENT "Validating and embedding shaders"
        VERBATIM)
    set(${out} ${c_file} PARENT_SCOPE)
endfunction()

function(lr_embed_presets out presets)
    set(c_file ${CMAKE_CURRENT_BINARY_DIR}/embedded_presets.c)
    add_custom_command(
        OUTPUT ${c_file}
        COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/embed_presets.py
                --output ${c_file} ${presets}
        DEPENDS ${presets} ${PROJECT_SOURCE_DIR}/tools/embed_presets.py
        COMMENT "Embedding scanner presets"
        VERBATIM)
    set(${out} ${c_file} PARENT_SCOPE)
endfunction()

# Schemas of PETSIRD, byte for byte.
function(lr_embed_petsird out schemas)
    set(c_file ${CMAKE_CURRENT_BINARY_DIR}/embedded_petsird.c)
    add_custom_command(
        OUTPUT ${c_file}
        COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/embed_presets.py
                --kind petsird --output ${c_file} ${schemas}
        DEPENDS ${schemas} ${PROJECT_SOURCE_DIR}/tools/embed_presets.py
        COMMENT "Embedding the schemas of PETSIRD"
        VERBATIM)
    set(${out} ${c_file} PARENT_SCOPE)
endfunction()

# The letters of pictures, from Debian's fonts-dejavu-core.
function(lr_embed_fonts out)
    set(c_file ${CMAKE_CURRENT_BINARY_DIR}/embedded_fonts.c)
    add_custom_command(
        OUTPUT ${c_file}
        COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/embed_fonts.py
                --output ${c_file} ${DEJAVU_SANS} ${DEJAVU_SANS_BOLD}
        DEPENDS ${DEJAVU_SANS} ${DEJAVU_SANS_BOLD} ${PROJECT_SOURCE_DIR}/tools/embed_fonts.py
        COMMENT "Embedding fonts"
        VERBATIM)
    set(${out} ${c_file} PARENT_SCOPE)
endfunction()
