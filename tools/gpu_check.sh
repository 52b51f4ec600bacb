#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds on a machine with a GPU and runs every test there, then the demo, with times.
#   tools/gpu_check.sh [BUILD_FOLDER]      (default: build/gpu)
# Needs the packages of tools/packages.txt; writes demo and figures to $OUT when that is set.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/gpu}
out=${OUT:-$build/out}
mkdir -p "$out"

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release
cmake --build "$build"
"$build/loraster" info | tee "$out/info.txt"
ctest --test-dir "$build" --output-on-failure -j 4 2>&1 | tee "$out/ctest.txt" | tail -n 40
/usr/bin/env time -v "$build/loraster" demo -o "$build/demo-out" 2>&1 | tee "$out/demo.txt" || true
cp "$build"/demo-out/panel.png "$build"/demo-out/figures.txt "$out"/ 2>/dev/null || true
