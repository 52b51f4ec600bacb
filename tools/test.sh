#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds and runs all tests:
#   1. gcc, release, warnings are errors: build, ctest (with the layer check)
#   2. clang, warnings are errors, reads every file; fuzz targets: build without CUDA, 1 second each
#   3. clang-format
#   4. address and undefined-behaviour sanitizers: build, ctest
# A long test runs in one of the two builds, and a few in none: lr_runs beside it says where. Some take fewer of
# their cases than with LORASTER_FULL, which --full sets for the release build.
#   --full runs all tests in both builds and the fuzz targets for a minute each, lets every call fail in
#   its turn (tests/inject), and adds the viewer under the thread sanitizer, the demo at full size, with
#   its limits of 5 minutes of two processors and 6 GiB, the acquisition of a Biograph mMR with its limits
#   of 10 minutes of two processors and 4 GiB, and, as root, both commands of README.md in a bare Debian
#   root (tools/fresh.sh, which keeps it in build/fresh).
# Ends with a summary and what failed tests said; the exit code is 0 only when every step is good.
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
fuzz_seconds=1
every_fault=""
if [ "$full" = yes ]; then
    fuzz_seconds=60
    every_fault=1 # and every case of tests that usually take some
fi
mkdir -p build
# Files, since a step is a process of its own.
summary=build/summary.txt
failures=build/failures.txt
step_log=build/step.log
: > "$summary"
: > "$failures"

# step NAME COMMAND...: runs it, times it, remembers how it ended.
step() {
    local name=$1 start=$SECONDS verdict=good
    shift
    echo
    echo "== $name"
    "$@" 2>&1 | tee "$step_log" || verdict=FAILED
    printf '%-34s %-7s %4d s\n' "$name" "$verdict" $((SECONDS - start)) >> "$summary"
    [ "$verdict" = good ] && return
    what_failed | tail -n 40 >> "$failures"
    echo "FAILED: $name: $(failed_tests)" >> "$failures"
    return 1
}

# CTest's line of each test that failed, and what the test said; of other steps all that they said.
what_failed() {
    awk '/\*\*\*/ && !/\*\*\*Skipped/ { told = found = 1 } /^ +Start / { told = 0 } told { print }
        END { exit !found }' "$step_log" || cat "$step_log"
}
failed_tests() {
    sed -nE '/[*]{3}Skipped/d; s/.* Test +#[0-9]+: ([^ ]+) .*[*]{3}.*/\1/p' "$step_log" | paste -sd ' '
}

# run_ctest BUILD PRESET PRESET_OF_ALL
run_ctest() {
    local log=$PWD/build/ctest-$1.log code preset=$2
    [ "$full" = no ] || preset=$3
    # One more than there are processors: some tests wait for a window or for a signal's answer.
    ctest --preset "$preset" -j "$((jobs + 1))" --no-tests=error --output-log "$log"
    code=$?
    {
        grep -E 'tests passed' "$log"
        # CTest says nothing of cases that a test program or pytest skips; their reasons are in its own log.
        grep -hE '^(skipped: |SKIPPED )' "build/$1/Testing/Temporary/LastTest.log" | sort -u
        [ "$full" = yes ] || echo "with --full there are more: $(ctest --preset "$3" -N | tail -1)"
    } | sed 's/^/    /' >> "$summary"
    return "$code"
}

# Without a device nothing runs the device's own code: assembling it, half of the compiler's time, is left to
# machines that have one, and to --full.
cuda='-DCMAKE_CUDA_ARCHITECTURES=80-virtual;90'
[ "$full" = yes ] || nvidia-smi -L > /dev/null 2>&1 || cuda=-DCMAKE_CUDA_ARCHITECTURES=90-virtual
# What a compiler has made before, in this checkout or in another, is not made again.
export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
# Debian's Python has the packages that this script installs; another one found first may not.
python=-DPython3_EXECUTABLE=/usr/bin/python3
# build PRESET LEFT_OUT [OPTION...]: LEFT_OUT are labels of tests, as tests/CMakeLists.txt has them.
build() {
    local preset=$1 left_out=$2
    [ "$full" = no ] || left_out=""
    shift 2
    cmake --preset "$preset" "$python" -DLORASTER_LEFT_OUT="$left_out" "$@" &&
        cmake --build --preset "$preset" -j "$jobs"
}
# Without CUDA: the library of those who have no nvcc. For one second of each reader, clang's optimizer takes longer
# than it saves: with sanitizers four fifths of the compiler's time.
build_fuzz() {
    local level=-O0
    [ "$full" = no ] || level=-O1
    CC=clang CXX=clang++ cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_C_FLAGS_RELEASE="$level -g1" -DLORASTER_FUZZ=ON -DLORASTER_CUDA=OFF &&
        cmake --build build/fuzz -j "$jobs" --target fuzz_targets
}
fuzz() { ./tools/fuzz.sh build/release/loraster build/fuzz "$fuzz_seconds"; }
ctest_asan() {
    # Mesa and LLVM keep what they allocate for the life of the process; our own leaks still count. The search for
    # leaks crashes in the dynamic thread-local memory of Mesa's threads, where that is followed.
    ASAN_OPTIONS=intercept_tls_get_addr=0 \
    LSAN_OPTIONS="suppressions='$PWD/tools/lsan.supp':print_suppressions=0" \
    UBSAN_OPTIONS=print_stacktrace=1 run_ctest asan asan asan-full
}
# The viewer alone: what it does beside its window, and whatever hands do to it.
view_in_threads() {
    cmake --preset tsan && cmake --build --preset tsan -j "$jobs" --target loraster || return 1
    local topic code=0
    for topic in threads random; do
        TSAN_OPTIONS="suppressions='$PWD/tools/tsan.supp' exitcode=66" \
            python3 -B tests/viewer/test_random.py build/tsan/loraster . "$topic" || code=1
    done
    return "$code"
}
demo_in_limits() { python3 -B tests/cli/test_demo.py build/release/loraster --full; }
head_in_limits() {
    python3 -B tests/cli/test_recon.py build/release/loraster . head
    local code=$?
    [ "$code" -eq 77 ] && echo "    skipped: the head, its acquisition is not there" >> "$summary"
    [ "$code" -eq 0 ] || [ "$code" -eq 77 ]
}

fresh_machine() { ./tools/install_packages.sh fresh && ./tools/fresh.sh build/fresh; }

step "packages" ./tools/install_packages.sh build run test
# PETSIRD's own package reads what is written for its version.
petsird() {
    [ -d build/petsird/0.12.0/petsird ] ||
        /usr/bin/python3 -m pip install --quiet --no-deps --target build/petsird/0.12.0 petsird==0.12.0
}
if petsird; then
    export LORASTER_PETSIRD=$PWD/build/petsird LORASTER_PETSIRD_PYTHON=/usr/bin/python3
else
    echo "    skipped: PETSIRD's own package, which PyPI did not give" >> "$summary"
fi
# The Python module, against what PyPI has of its peers; PyTorch, CuPy and JAX are left to those who have them.
module=()
python_module() {
    [ -x build/venv/bin/pytest ] && return
    /usr/bin/python3 -m venv --system-site-packages build/venv &&
        build/venv/bin/python -m pip install --quiet 'nanobind>=3.1,<4' 'nanobind-backend>=1' pytest tqdm mypy uproot \
            array-api-strict
}
# It loads the system's MPI, as lr_mpi.so does.
mpi4py() {
    build/venv/bin/python -c 'import mpi4py.MPI' 2> /dev/null ||
        build/venv/bin/python -m pip install --quiet mpi4py
}
if python_module; then
    module=(-DLORASTER_PYTHON=ON -DPython_EXECUTABLE="$PWD/build/venv/bin/python")
    mpi4py || echo "    skipped: the Python module with several ranks, whose mpi4py PyPI did not give" >> "$summary"
else
    echo "    skipped: the Python module, whose tools PyPI did not give" >> "$summary"
fi
step "gcc release build" build release "asan;full" "$cuda" "${module[@]}" &&
    LORASTER_FULL=$every_fault step "gcc release tests" run_ctest release quick full
step "clang" ./tools/check_clang.py build/release "$jobs"
step "fuzz build" build_fuzz && step "fuzzing" fuzz
step "clang-format" ./tools/check_format.sh
[ "$full" = yes ] || module=() # long under the sanitizers
step "sanitizer build" build asan "plain;full" "${module[@]}" && step "sanitizer tests" ctest_asan
[ "$full" = yes ] && step "viewer, thread sanitizer" view_in_threads
[ "$full" = yes ] && step "demo within its limits" demo_in_limits
[ "$full" = yes ] && step "head within its limits" head_in_limits
if [ "$full" = yes ] && [ "$(id -u)" -eq 0 ]; then
    step "fresh machine" fresh_machine
elif [ "$full" = yes ]; then
    echo "    skipped: tools/fresh.sh, which needs root" >> "$summary"
fi

echo
echo "== summary"
cat "$summary"
if [ -s "$failures" ]; then
    cat "$failures"
    echo
    grep '^FAILED: ' "$failures" # again, where whoever sees only the end looks
    exit 1
fi
echo "all good"
