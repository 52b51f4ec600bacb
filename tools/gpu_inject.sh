#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: lets calls of OpenGL and CUDA fail, one after the other, in small runs of
# every verb on every backend that makes them (tests/inject/test_faults.py).
#   tools/gpu_inject.sh BUILD_FOLDER OUT_FOLDER
# Prints a line per verb and backend, and writes gl.txt, cuda.txt and verdict.txt to OUT_FOLDER. More in
# the environment:
#   LIMIT   seconds for all of it; each case has an equal share, and what does not fit is told;
#           default 300
#   JOBS    runs at a time; default: as many as processors
#   KINDS   of calls; default "cuda gl"
#   CASES   regular expression of the cases, as NAME.BACKEND; default: all
# INJECT_DEPTH=5 in the environment tries one of the calls that come through the same five functions.
# The build folder is configured as for tools/gpu_check.sh; what is missing in it is built first. The
# exit code is 0 only when every fault was dealt with.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
build=${1:?usage: tools/gpu_inject.sh BUILD_FOLDER OUT_FOLDER}
out=${2:?usage: tools/gpu_inject.sh BUILD_FOLDER OUT_FOLDER}
read -ra kinds <<< "${KINDS:-cuda gl}"
limit=${LIMIT:-300}
failed=()

mkdir -p "$out"
cmake --build "$build" --target loraster loraster-bench loraster-hdf5-reader loraster_failing \
    fail_gl || exit 1
for kind in "${kinds[@]}"; do
    echo "== $kind, $((limit / ${#kinds[@]})) s"
    LORASTER_FULL=1 INJECT_JOBS=${JOBS:-$(nproc)} INJECT_CASES=${CASES:-.} \
        INJECT_SECONDS=$((limit / ${#kinds[@]})) python3 -B tests/inject/test_faults.py "$kind" \
        "$build/loraster" "$build/tests/inject/loraster_failing" \
        "$build/tests/inject/libfail_gl.so" 2>&1 | tee "$out/$kind.txt"
    [ "${PIPESTATUS[0]}" -eq 0 ] || failed+=("$kind")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "FAILED: ${failed[*]}" | tee "$out/verdict.txt"
    exit 1
fi
echo "all good" | tee "$out/verdict.txt"
