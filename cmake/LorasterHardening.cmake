# SPDX-License-Identifier: Apache-2.0
# What programs and libraries carry by themselves, as Debian's packages do (dpkg-buildflags,
# hardening=+all): position-independent programs, tables of the linker that cannot be written to
# once a program runs, guarded stacks, and checked string functions.

# Programs of the build tree look for libraries where those of an installation do. A folder of the
# build tree of its own would leave room for the other, which ends in an empty entry, and that is
# the folder that a program is started in.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
# Libraries need not be in the folders where programs look: cuFFT, or HDF5 in a folder of one's own.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

include(CheckPIESupported)
check_pie_supported(LANGUAGES C CXX)

function(lr_harden target)
    target_compile_options(${target} INTERFACE
        $<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong -Wformat -Wformat-security>)
    target_link_options(${target} INTERFACE LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
    # The checks need an optimizer, and sanitizers have better ones. A level that is set stays.
    set(flags "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS} $ENV{CPPFLAGS}")
    if(NOT LORASTER_SANITIZE AND NOT LORASTER_FUZZ
       AND NOT flags MATCHES "_FORTIFY_SOURCE|-fsanitize")
        set(optimized $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
        target_compile_options(${target} INTERFACE
            $<$<AND:${optimized},$<COMPILE_LANGUAGE:C,CXX>>:-U_FORTIFY_SOURCE
            -D_FORTIFY_SOURCE=2>)
    endif()
endfunction()
