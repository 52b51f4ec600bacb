#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A wheel loads on any Linux with glibc 2.28 and libstdc++ of GCC 8: no binary in it asks for a younger symbol, nor for
# a library that a bare system lacks. Plugins alone need OpenGL, EGL and MPI; no file needs X11. No file looks for
# others where it was built. Notices of all that is linked in come along, its licences are in METADATA's expression, and
# the wheel is 16 MB at most.
#
# usage: tools/check_wheel.sh WHEEL
# Needs binutils and unzip.
set -euo pipefail
if [ $# -ne 1 ] || [ ! -f "$1" ]; then
    echo "usage: tools/check_wheel.sh WHEEL" >&2
    exit 2
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unzip -q "$1" -d "$folder"
failed=0

wrong() {
    echo "error: $1" >&2
    failed=1
}

# highest FILE SET: the youngest version of a set of symbols, such as GLIBC, that a file asks for.
highest() {
    objdump -T "$1" | grep -F '*UND*' | grep -oP "\b$2_\K[0-9.]+" | sort -V | tail -1 || true
}

# at_most FILE SET VERSION
at_most() {
    local version
    version=$(highest "$1" "$2")
    [ "$(printf '%s\n%s\n' "$version" "$3" | sort -V | tail -1)" = "$3" ] ||
        wrong "${1#"$folder"/} asks for $2_$version, younger than $3"
}

count=0
while read -r file; do
    [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || continue
    count=$((count + 1))
    at_most "$file" GLIBC 2.28
    at_most "$file" GLIBCXX 3.4.25
    at_most "$file" CXXABI 1.3.11
    ! grep -qaF /wheel/platlib/ "$file" || wrong "${file#"$folder"/} names the temporary folder that it was built in"
    allowed="libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 ld-linux-x86-64.so.2"
    case $file in
        */lr_gl.so) allowed+=" libEGL.so.1 libOpenGL.so.0" ;;
        */lr_cuda.so) allowed+=" lr_gl.so libstdc++.so.6" ;;
        */lr_viewer.so) allowed+=" lr_gl.so libOpenGL.so.0 libstdc++.so.6" ;;
        */lr_mpi.so) allowed+=" libmpi.so.40" ;;
        */_core.abi3.so) allowed+=" liblr.so.0 libstdc++.so.6" ;;
    esac
    for library in $(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
        [[ " $allowed " == *" $library "* ]] || wrong "${file#"$folder"/} needs $library, which bare systems lack"
    done
    case $file in
        */liblr.so.0)
            exported=$(nm -D --defined-only "$file" | awk '{ print $3 }' | grep -v '^lr_' | tr '\n' ' ' || true)
            [ -z "$exported" ] || wrong "${file#"$folder"/} exports ${exported% }, beside lr_*"
            ;;
    esac
done < <(find "$folder" -type f -size +0)
[ "$count" -ge 7 ] || wrong "$count binaries in the wheel; the module, the library, two programs and plugins are 7 at least"

licences=(zlib:Zlib libpng:libpng-2.0 HDF5:HDF5 HDF5:BSD-3-Clause-LBNL libfyaml:MIT libfyaml:BSD-2-Clause FreeType:FTL
    GLEW:BSD-3-Clause GLEW:MIT GLFW:Zlib ImGui:MIT cglm:MIT nanobind:BSD-3-Clause DejaVu:Bitstream-Vera
    Random123:BSD-3-Clause compiler-rt:MIT)
[ -z "$(find "$folder" -name lr_cuda.so)" ] || licences+=(CUDA:LicenseRef-NVIDIA-CUDA)
expression=$(sed -n 's/^License-Expression: //p' "$folder"/loraster-*.dist-info/METADATA)
for licence in "${licences[@]}"; do
    name=${licence%:*}
    [[ " $expression " == *" ${licence#*:} "* ]] || wrong "METADATA's License-Expression lacks ${licence#*:}, that of $name"
    [ -s "$(echo "$folder"/loraster-*.dist-info/licenses/third-party/"$name".txt)" ] ||
        wrong "the notice of $name is missing among the licences of the wheel"
    grep -qx "License-File: third-party/$name.txt" "$folder"/loraster-*.dist-info/METADATA ||
        wrong "METADATA does not name the notice of $name"
done
notices=$(find "$folder"/loraster-*.dist-info/licenses/third-party -type f | wc -l)

size=$(stat -c %s "$1")
[ "$size" -le 16000000 ] || wrong "the wheel has $size bytes; 16 MB is the most"
[ "$failed" -eq 0 ] || exit 1
echo "wheel: $count binaries for glibc 2.28 and later, $notices notices, $size bytes"
