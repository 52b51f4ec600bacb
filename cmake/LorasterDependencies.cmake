# SPDX-License-Identifier: Apache-2.0
# Everything LORaster links, found once and gathered in lr_dependencies. Debian packages all.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenGL REQUIRED COMPONENTS OpenGL EGL)
set(GLEW_USE_STATIC_LIBS ON) # the shared one brings libGL and X11
find_package(GLEW REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(FYAML REQUIRED IMPORTED_TARGET libfyaml)
find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)
find_package(Freetype REQUIRED)
set(font_folders fonts fonts/truetype/dejavu fonts/dejavu fonts/dejavu-sans-fonts fonts/TTF)
find_file(DEJAVU_SANS DejaVuSans.ttf PATH_SUFFIXES ${font_folders} PATHS /usr/share REQUIRED)
find_file(DEJAVU_SANS_BOLD DejaVuSans-Bold.ttf PATH_SUFFIXES ${font_folders} PATHS /usr/share REQUIRED)
# The viewer is left out where these are missing.
pkg_check_modules(GLFW IMPORTED_TARGET glfw3)
pkg_check_modules(IMGUI IMPORTED_TARGET imgui)
find_path(CGLM_INCLUDE_DIR cglm/cglm.h)
# MPI and the composition of several guesses are left out where these are missing. MPI's C++ is not used.
set(MPI_CXX_SKIP_MPICXX TRUE)
find_package(MPI COMPONENTS C)
find_path(LAPACKE_INCLUDE_DIR lapacke.h)
find_library(LAPACKE_LIBRARY lapacke)
if(NOT MPI_C_FOUND OR NOT LAPACKE_LIBRARY)
    message(STATUS "many processes: need MPI and LAPACKE "
                   "(apt-get install libopenmpi-dev openmpi-bin liblapacke-dev)")
endif()
find_program(GLSLANG_VALIDATOR glslangValidator REQUIRED)

add_library(lr_dependencies INTERFACE)
target_include_directories(lr_dependencies SYSTEM INTERFACE ${RANDOM123_INCLUDE_DIR})
target_link_libraries(lr_dependencies INTERFACE
    Threads::Threads PNG::PNG ZLIB::ZLIB Freetype::Freetype PkgConfig::FYAML m ${CMAKE_DL_LIBS})
# The plugin of OpenGL links these.
add_library(lr_gl_dependencies INTERFACE)
target_link_libraries(lr_gl_dependencies INTERFACE GLEW::GLEW OpenGL::EGL OpenGL::OpenGL)
