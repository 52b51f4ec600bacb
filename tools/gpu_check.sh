#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: builds, runs the tests that need a device, takes the figures of
# docs/performance.md and runs the demo.
#   tools/gpu_check.sh [BUILD_FOLDER]      (default: build/gpu)
# Needs the packages of tools/packages.txt. Writes info.txt, ctest.txt, bench.md (the tables),
# bench.json, demo.txt and the demo's panel to $OUT, or to BUILD_FOLDER/out. More in the environment:
#   STEPS     which of "test parts recon inject bench demo" to run; default all but inject
#   CRYSTALS  of "parts": crystals along a module's edge on every preset, 0 = all that it has; default 4
#   TESTS     regular expression of the tests; "." = all
#   BENCH     arguments of `loraster bench correspondence`; default: all six workloads
#   COMMIT    what the figures say they are of; needed where there is no repository
# Every step is run; the exit code is 0 only when all were good.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
build=${1:-build/gpu}
out=${OUT:-$build/out}
steps=" ${STEPS:-test parts recon bench demo} "
tests=${TESTS:-'^(gl|render|picture)_|\.(raster|compute)$|^vector\.(gl|cuda)$|^listmode_|^vector_wrapped$|^operator_(places|families\.cuda)$|^direct_places\.textures$|^cli\.(info|render|bench|no_gl|demo)$'}
bench=${BENCH:---workload pair,angled,tilted,vista,penn,mmr}
failed=()

# step NAME COMMAND...: runs it and remembers whether it failed. The builtin `time` needs no package.
step() {
    local name=$1
    shift
    echo
    echo "== $name"
    time "$@" || failed+=("$name")
}

run_tests() {
    ctest --test-dir "$build" -R "$tests" --no-tests=error --output-on-failure -j 4 2>&1 |
        tee "$out/ctest.txt" | tail -n 40
}
# Parts add up to the whole on every preset, in windows and batches of every size.
run_parts() {
    local backend code=0
    for backend in compute raster; do
        LORASTER_TEST_PRESETS=${PRESETS:-all} LORASTER_TEST_CRYSTALS=${CRYSTALS:-4} \
            "$build/tests/operator/test_operator_partitions" "$backend" 2>&1 |
            tee "$out/parts-$backend.txt" | grep -v '^seed' | tail -n 20
        [ "${PIPESTATUS[0]}" -eq 0 ] || code=1
    done
    return "$code"
}
# Whole reconstructions with subsets against backend native.
run_recon() {
    ./tools/compare_recon.py "$build/loraster" | tee "$out/recon.txt"
    return "${PIPESTATUS[0]}"
}
run_inject() { ./tools/gpu_inject.sh "$build" "$out/inject"; }
run_bench() {
    local code=0
    rm -f "$out/bench.json"
    # shellcheck disable=SC2086  # several arguments
    "$build/loraster" bench correspondence $bench -o "$out/bench.json" || code=$?
    [ ! -f "$out/bench.json" ] || ./tools/bench_table.py "$out/bench.json" | tee "$out/bench.md" || code=1
    return "$code"
}
run_demo() {
    "$build/loraster" demo -o "$build/demo-out" 2>&1 | tee "$out/demo.txt" &&
        cp "$build"/demo-out/panel.png "$build"/demo-out/figures.txt "$out"/
}

mkdir -p "$out"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLORASTER_COMMIT="${COMMIT:-}" &&
    cmake --build "$build" || exit 1
"$build/loraster" info | tee "$out/info.txt" || failed+=(info)
case $steps in *" test "*) step test run_tests ;; esac
case $steps in *" parts "*) step parts run_parts ;; esac
case $steps in *" recon "*) step recon run_recon ;; esac
case $steps in *" inject "*) step inject run_inject ;; esac
case $steps in *" bench "*) step bench run_bench ;; esac
case $steps in *" demo "*) step demo run_demo ;; esac

if [ ${#failed[@]} -gt 0 ]; then
    echo "FAILED: ${failed[*]}"
    exit 1
fi
echo "all good"
