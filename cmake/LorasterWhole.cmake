# SPDX-License-Identifier: Apache-2.0
# One object for a static library, of which programs see what lr/ declares and nothing else: the
# inside's names would meet those of the program and of other libraries.

# Sets `out` to an object file that holds all of `objects`.
function(lr_whole_object out objects)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/lr_whole.o)
    add_custom_command(
        OUTPUT ${file}
        COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${file} ${objects}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden --wildcard --keep-global-symbol=lr_* ${file}
        DEPENDS ${objects}
        COMMAND_EXPAND_LISTS
        COMMENT "Joining the library's objects"
        VERBATIM)
    set_source_files_properties(${file} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    set(${out} ${file} PARENT_SCOPE)
endfunction()
