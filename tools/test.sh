#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds and runs all tests:
#   1. gcc, release, warnings are errors: build, ctest (with the layer check)
#   2. clang, warnings are errors: build; fuzz targets: build, 5 seconds each
#   3. clang-format
#   4. address and undefined-behaviour sanitizers: build, ctest
#   --full runs the fuzz targets for a minute each and adds the demo at full size, with its limits of 5 minutes and 6 GiB, and the acquisition
#   of a Biograph mMR with its limits of 10 minutes and 4 GiB.
# Ends with a summary; the exit code is 0 only when every step is good.
set -uo pipefail
cd "$(dirname "$0")/.."

full=no
case "${1:-}" in
"") ;;
--full) full=yes ;;
*)
    echo "usage: tools/test.sh [--full]" >&2
    exit 2
    ;;
esac
jobs=${LORASTER_JOBS:-$(nproc)}
fuzz_seconds=5
[ "$full" = yes ] && fuzz_seconds=60
mkdir -p build
summary=()
failed=0

# step NAME COMMAND...: runs it, times it, remembers how it ended.
step() {
    local name=$1 start=$SECONDS verdict=good
    shift
    echo
    echo "== $name"
    "$@" || {
        verdict=FAILED
        failed=1
    }
    summary+=("$(printf '%-34s %-7s %4d s' "$name" "$verdict" $((SECONDS - start)))")
    [ "$verdict" = good ]
}

run_ctest() {
    local folder=$1 log=build/ctest-$(basename "$1").log code skipped
    ctest --test-dir "$folder" -j "$jobs" --output-on-failure --no-tests=error 2>&1 | tee "$log"
    code=${PIPESTATUS[0]}
    summary+=("$(grep -E 'tests passed' "$log" | sed 's/^/    /')")
    # CTest says nothing of cases that a test program skips; their reasons are in its own log.
    mapfile -t skipped < <(grep -h '^skipped: ' "$folder/Testing/Temporary/LastTest.log" | sort -u)
    summary+=("${skipped[@]/#/    }")
    return "$code"
}

build_release() { cmake --preset release && cmake --build --preset release -j "$jobs"; }
build_asan() { cmake --preset asan && cmake --build --preset asan -j "$jobs"; }
build_clang() {
    CC=clang CXX=clang++ cmake -S . -B build/clang -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DLORASTER_WERROR=ON && cmake --build build/clang -j "$jobs"
}
build_fuzz() {
    CC=clang CXX=clang++ cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_C_FLAGS_RELEASE="-O1 -g1" -DLORASTER_FUZZ=ON &&
        cmake --build build/fuzz -j "$jobs" --target fuzz_targets
}
fuzz() { ./tools/fuzz.sh build/release/loraster build/fuzz "$fuzz_seconds"; }
ctest_asan() {
    # Mesa and LLVM keep what they allocate for the life of the process; our own leaks still count.
    LSAN_OPTIONS="suppressions=$PWD/tools/lsan.supp:print_suppressions=0" \
    UBSAN_OPTIONS=print_stacktrace=1 run_ctest build/asan
}
demo_in_limits() { python3 -B tests/cli/test_demo.py build/release/loraster --full; }
head_in_limits() {
    python3 -B tests/cli/test_recon.py build/release/loraster . head
    local code=$?
    [ "$code" -eq 77 ] && summary+=("    skipped: the head, its acquisition is not there")
    [ "$code" -eq 0 ] || [ "$code" -eq 77 ]
}

step "packages" ./tools/install_packages.sh build run test
step "gcc release build" build_release && step "gcc release tests" run_ctest build/release
step "clang build" build_clang
step "fuzz build" build_fuzz && step "fuzzing" fuzz
step "clang-format" ./tools/check_format.sh
step "sanitizer build" build_asan && step "sanitizer tests" ctest_asan
[ "$full" = yes ] && step "demo within its limits" demo_in_limits
[ "$full" = yes ] && step "head within its limits" head_in_limits

echo
echo "== summary"
printf '%s\n' "${summary[@]}"
if [ "$failed" -ne 0 ]; then
    echo "FAILED"
else
    echo "all good"
fi
exit "$failed"
