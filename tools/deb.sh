#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes Debian's packages: tools/deb.sh [--with-python] [BUILD]. They come to lie in BUILD/packages; BUILD is build/deb
# by default. The Python module is among them, for the system's Python; nanobind comes from PyPI into BUILD/venv.
# Without PyPI the module is left out, which is an error with --with-python.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
demanded=no
if [ "${1:-}" = --with-python ]; then
    demanded=yes
    shift
fi
if [ $# -gt 1 ] || [[ ${1:-} = -* ]]; then
    echo "usage: tools/deb.sh [--with-python] [BUILD]" >&2
    exit 2
fi
build=${1:-build/deb}
tools/install_packages.sh build run package
mkdir -p "$build"
[ -x "$build/venv/bin/python" ] || /usr/bin/python3 -m venv --system-site-packages "$build/venv"
python=$(realpath -s "$build/venv/bin/python")
with_python=ON
if ! "$python" -m pip install -q 'nanobind>=3.1,<4'; then
    if [ "$demanded" = yes ]; then
        echo "error: no nanobind from PyPI: python3-loraster cannot be made" >&2
        exit 1
    fi
    with_python=OFF
    left_out="left out: python3-loraster, because nanobind did not come from PyPI (with --with-python an error)"
    echo "warning: $left_out" >&2
fi
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DLORASTER_TESTS=OFF \
    -DLORASTER_PYTHON=$with_python -DLORASTER_PYTHON_DEBIAN=$with_python -DPython_EXECUTABLE="$python" \
    -DPython3_EXECUTABLE=/usr/bin/python3
cmake --build "$build"
rm -rf "$build/packages"
# CPack warns of plugins, which nobody links and which have no soname.
cpack --config "$build/CPackConfig.cmake" -B "$build/packages" > "$build/cpack.log" 2>&1 || {
    tail -20 "$build/cpack.log" >&2
    exit 1
}
rm -rf "$build/packages/_CPack_Packages"
ls -l "$build/packages"
if [ "$with_python" = OFF ]; then
    echo "$left_out"
fi
