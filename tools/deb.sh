#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes Debian's packages: tools/deb.sh [BUILD]. They come to lie in BUILD/packages; BUILD is build/deb by default.
# The Python module is among them, for the system's Python; nanobind comes from PyPI into BUILD/venv.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")/.."
build=${1:-build/deb}
tools/install_packages.sh build run package
mkdir -p "$build"
if [ ! -x "$build/venv/bin/python" ]; then
    /usr/bin/python3 -m venv --system-site-packages "$build/venv"
    "$build/venv/bin/python" -m pip install -q 'nanobind>=3.1,<4'
fi
python=$(realpath -s "$build/venv/bin/python")
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DLORASTER_TESTS=OFF \
    -DLORASTER_PYTHON=ON -DLORASTER_PYTHON_DEBIAN=ON -DPython_EXECUTABLE="$python" -DPython3_EXECUTABLE=/usr/bin/python3
cmake --build "$build"
rm -rf "$build/packages"
# CPack warns of plugins, which nobody links and which have no soname.
cpack --config "$build/CPackConfig.cmake" -B "$build/packages" > "$build/cpack.log" 2>&1 || {
    tail -20 "$build/cpack.log" >&2
    exit 1
}
rm -rf "$build/packages/_CPack_Packages"
ls -l "$build/packages"
