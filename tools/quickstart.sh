#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian 12 to a reconstructed image: installs what is missing, builds, runs the demo.
# Options are handed to `loraster demo`, for instance: tools/quickstart.sh --quick -o /tmp/demo
set -euo pipefail
started_in=$PWD
cd "$(dirname "$0")/.."

./tools/install_packages.sh build run
echo "== building LORaster in build/release"
cmake -S . -B build/release -G Ninja -DCMAKE_BUILD_TYPE=Release
cmake --build build/release --target loraster
program=$PWD/build/release/loraster
echo "== running: $program demo $*"
cd "$started_in"
exec "$program" demo "$@"
