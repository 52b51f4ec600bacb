# SPDX-License-Identifier: Apache-2.0
# Each folder of src/ is an object library that names the folders whose functions it may call;
# tools/check_links.py compares that with the symbols of what was built.

define_property(TARGET PROPERTY LR_MAY_CALL BRIEF_DOCS "Folders, and functions, that may be called")
set_property(GLOBAL PROPERTY LR_FOLDERS "")

# lr_folder(NAME [CALLS folder...] [TABLES function...] [WITHOUT source...] [WITH source...]): the library
# of folder NAME, whose slashes are _ in the library's name: all sources of the folder, but for the files and folders
# WITHOUT, and with the files WITH.
# TABLES: functions of folders that it may not call otherwise: they hand out a table of functions.
function(lr_folder name)
    cmake_parse_arguments(F "" "" "CALLS;TABLES;WITHOUT;WITH" ${ARGN})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${name}/*.c)
    foreach(without IN LISTS F_WITHOUT)
        list(FILTER sources EXCLUDE REGEX "/src/${name}/${without}(/|$)")
    endforeach()
    string(REPLACE "/" "_" target lr_${name})
    add_library(${target} OBJECT ${sources} ${F_WITH})
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/shaders)
    target_link_libraries(${target} PUBLIC lr_flags lr_dependencies)
    set_target_properties(${target} PROPERTIES LR_MAY_CALL "${F_CALLS};${F_TABLES}")
    set_property(GLOBAL APPEND PROPERTY LR_FOLDERS ${name})
endfunction()

# Writes what check_links.py reads: a line "FOLDER: CALLS... TABLES..." for each folder.
function(lr_write_folders file)
    get_property(folders GLOBAL PROPERTY LR_FOLDERS)
    set(text "")
    foreach(folder IN LISTS folders)
        string(REPLACE "/" "_" target lr_${folder})
        get_target_property(calls ${target} LR_MAY_CALL)
        list(JOIN calls " " calls)
        string(APPEND text "${folder}: ${calls}\n")
    endforeach()
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
endfunction()

# Sets `out` to the objects of the libraries of folders.
function(lr_objects_of out)
    string(REPLACE "/" "_" objects "${ARGN}")
    list(TRANSFORM objects REPLACE "(.+)" "$<TARGET_OBJECTS:lr_\\1>")
    set(${out} ${objects} PARENT_SCOPE)
endfunction()

# lr_shows(TARGET symbol...): the shared library TARGET shows these symbols and no others.
function(lr_shows target)
    list(JOIN ARGN "; " symbols)
    set(map ${PROJECT_BINARY_DIR}/${target}.map)
    file(CONFIGURE OUTPUT ${map} CONTENT "{ global: ${symbols}; local: *; };\n" @ONLY)
    target_link_options(${target} PRIVATE LINKER:--version-script=${map})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
endfunction()

# lr_plugin(NAME object...): the target lr_NAME_so is the plugin lr_NAME.so, which calls its own functions, whatever
# else has their names. It lies beside the program, and in a folder of the installed libraries. lr_shows says what it
# shows.
set(LR_PLUGINS "" CACHE INTERNAL "")
function(lr_plugin name)
    add_library(lr_${name}_so SHARED ${ARGN})
    set_target_properties(lr_${name}_so PROPERTIES
        PREFIX "" OUTPUT_NAME lr_${name} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
        INSTALL_RPATH "$ORIGIN" LINKER_LANGUAGE CXX)
    target_link_options(lr_${name}_so PRIVATE LINKER:-Bsymbolic)
    set(component ${name})
    if(name STREQUAL hdf5)
        set(component lib) # files of counts are the library's
    endif()
    install(TARGETS lr_${name}_so DESTINATION ${CMAKE_INSTALL_LIBDIR}/loraster COMPONENT ${component})
    set(LR_PLUGINS ${LR_PLUGINS} lr_${name}_so CACHE INTERNAL "")
endfunction()
