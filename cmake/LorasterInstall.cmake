# SPDX-License-Identifier: Apache-2.0
# Installs loraster.pc for pkg-config and loraster-config.cmake for find_package(loraster). A static liblr needs its
# dependencies on every link line; a shared one brings them along, and its users need not have them.
set(LR_NEEDED_MODULES "libpng zlib libfyaml freetype2")

# Full paths become -l where the linker looks anyway, and stay paths elsewhere.
function(lr_linker_words out)
    foreach(library IN LISTS ARGN)
        get_filename_component(folder "${library}" DIRECTORY)
        get_filename_component(name "${library}" NAME_WE)
        if(folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
            string(REGEX REPLACE "^lib" "-l" library ${name})
        elseif(NOT IS_ABSOLUTE "${library}" AND NOT library MATCHES "^-")
            string(PREPEND library "-l")
        endif()
        string(APPEND words " ${library}")
    endforeach()
    set(${out} "${words}" PARENT_SCOPE)
endfunction()

# Where a folder of the installation is, from the file's own place if it can move with it.
function(lr_installed_folder out folder)
    if(IS_ABSOLUTE "${folder}")
        set(${out} "${folder}" PARENT_SCOPE)
    else()
        set(${out} "\${prefix}/${folder}" PARENT_SCOPE)
    endif()
endfunction()

function(lr_install_pkg_config target)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
        lr_linker_words(pc_libs m ${CMAKE_DL_LIBS})
        string(APPEND pc_libs " -pthread")
        set(pc_requires "Requires: ${LR_NEEDED_MODULES}")
    endif()
    lr_installed_folder(pc_libdir "${CMAKE_INSTALL_LIBDIR}")
    lr_installed_folder(pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
    lr_installed_folder(pc_libexecdir "${CMAKE_INSTALL_LIBEXECDIR}")
    if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
        set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
    else()
        file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
        string(REGEX REPLACE "/$" "" up "${up}")
        set(pc_prefix "\${pcfiledir}/${up}")
    endif()
    configure_file(cmake/loraster.pc.in loraster.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/loraster.pc
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endfunction()

# The imported target is loraster::loraster.
function(lr_install_cmake_package target)
    include(CMakePackageConfigHelpers)
    set_target_properties(${target} PROPERTIES EXPORT_NAME loraster)
    get_target_property(type ${target} TYPE)
    set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/loraster)
    string(COMPARE EQUAL "${type}" "STATIC_LIBRARY" LR_IS_STATIC)
    configure_file(cmake/loraster-config.cmake.in loraster-config.cmake @ONLY)
    write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/loraster-config-version.cmake
                                     COMPATIBILITY SameMinorVersion)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/loraster-config.cmake
                  ${CMAKE_CURRENT_BINARY_DIR}/loraster-config-version.cmake
            DESTINATION ${folder} COMPONENT dev)
    install(EXPORT loraster NAMESPACE loraster:: FILE loraster-targets.cmake DESTINATION ${folder} COMPONENT dev)
endfunction()
