# SPDX-License-Identifier: Apache-2.0
# Installs loraster.pc. A static liblr needs its dependencies on every link line, a shared one
# brings them along, and then they are private.

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
    # A shared libhdf5 names what it needs itself; the list is for static ones.
    set(hdf5 ${HDF5_C_LIBRARIES})
    if(HDF5_C_LIBRARIES MATCHES "libhdf5[^;]*\\.so")
        list(FILTER hdf5 INCLUDE REGEX "libhdf5")
    endif()
    # glew.pc would add libGLU and X11, which nothing here uses.
    lr_linker_words(libs ${hdf5} ${NIFTI_LIBRARY} ${ZNZ_LIBRARY} GLEW m)
    string(APPEND libs " -pthread")
    set(requires " egl opengl libpng zlib libfyaml")
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
        set(pc_libs "${libs}")
        set(pc_requires "${requires}")
    else()
        set(pc_libs_private "${libs}")
        set(pc_requires_private "${requires}")
    endif()
    lr_installed_folder(pc_libdir "${CMAKE_INSTALL_LIBDIR}")
    lr_installed_folder(pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
    if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
        set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
    else()
        file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
        string(REGEX REPLACE "/$" "" up "${up}")
        set(pc_prefix "\${pcfiledir}/${up}")
    endif()
    configure_file(cmake/loraster.pc.in loraster.pc @ONLY)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/loraster.pc
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
