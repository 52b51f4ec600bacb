#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs everything of the family `direct` that wants a GPU, step by step, with a log of each.
#
#   tools/gpu_direct.sh BUILD OUT [STEP...]
#
# BUILD: a build folder in which everything is built, tests too (tools/gpu_check.sh makes one).
# OUT: a folder for the logs STEP.txt and the figures *.json; it is made, and what it has of a step is
# replaced; summary.txt grows.
# Steps, all of them and in this order where none is named:
#   tests      ctest of cuda, direct and what else shares images with a device
#   memcheck   the test of the CUDA backend under compute-sanitizer --tool memcheck
#   racecheck  the same, the variants with shared memory alone, under --tool racecheck: test by test,
#              all at a time
#   speed      what the figures of docs/performance.md are made of, without Fourier transforms: one
#              view, 120 views in a batch, tables and a RAMLA iteration, of the clinical case, of
#              paper 2's and of the large kernel, by bands and by the others
#   paper      the papers' tables, a workload at a time, by every backend and beside FFTW and cuFFT
#   profile    Nsight Compute of the bands kernel: an early launch and one of a batch, as a table of
#              figures (raw) and instruction by instruction (source)
# Missing tools (a device, compute-sanitizer, ncu) are reported and skipped. A step that fails does not
# stop the others; the summary says which did, and then the exit code is 1. More in the environment:
#   LIMIT          seconds for one command of a step; default 240, for racecheck 400
#   TEST_LIMIT     seconds for a test that names no limit of its own; default 120
#   JOBS           tests at a time; default 4
#   SECONDS_EACH   time for one figure of `paper` and `speed`; default 2
# shellcheck disable=SC2317  # steps are called by their names
set -uo pipefail

usage() {
    sed -n '3,/^# shellcheck/{/^# shellcheck/d;s/^# \{0,1\}//;p}' "$0"
}

case "${1:-}" in
-h | --help)
    usage
    exit 0
    ;;
esac
if [ $# -lt 2 ]; then
    usage >&2
    exit 2
fi
build=$1 out=$2
shift 2
limit=${LIMIT:-240}
test_limit=${TEST_LIMIT:-120}
seconds=${SECONDS_EACH:-2}
program=$build/loraster
device_test=$build/tests/cuda_interop/test_cuda_device
steps=("$@")
[ ${#steps[@]} -gt 0 ] || steps=(tests memcheck racecheck speed paper profile)
if [ ! -x "$program" ]; then
    echo "$program is not there: build first" >&2
    exit 2
fi
for name in "${steps[@]}"; do
    case $name in
    tests | memcheck | racecheck | speed | paper | profile) ;;
    *)
        echo "$name is no step: tests, memcheck, racecheck, speed, paper, profile" >&2
        exit 2
        ;;
    esac
done
mkdir -p "$out" || exit 1
export LORASTER_CACHE=off # every figure is of this run
summary=()
failed=0
skipped=""

# limited COMMAND...: within the limit; a command that ignores its end is killed.
limited() {
    timeout --kill-after=10 "$limit" "$@"
    local code=$?
    case $code in 124 | 137) echo "stopped after $limit s: $*" ;; esac
    return "$code"
}

skip() {
    skipped=$1
    echo "skipped: $1"
}

# "yes" or "no": CUDA has a device that the program can use. This is asked once. The steps show all other
# failures of the device.
has_cuda=""
need_cuda() {
    if [ -z "$has_cuda" ]; then
        has_cuda=yes
        limited "$program" bench direct --workload caches --backend cuda --variant bands \
            --no-fourier --repeat 1 --seconds 1 > "$out/device.txt" 2>&1
        ! grep -q 'left out: no device' "$out/device.txt" || has_cuda=no
    fi
    [ "$has_cuda" = yes ] || skip "no CUDA device, see device.txt"
    [ "$has_cuda" = yes ]
}

need_tool() {
    command -v "$1" > /dev/null || skip "no $1"
    [ -z "$skipped" ]
}

# step NAME: runs run_NAME with its log, and remembers how it ended.
step() {
    local name=$1 start=$SECONDS verdict=good
    skipped=""
    echo
    echo "== $name"
    # No pipe: what a step finds out must stay here.
    "run_$name" > "$out/$name.txt" 2>&1 || verdict=FAILED
    tail -n 25 "$out/$name.txt"
    if [ "$verdict" = FAILED ]; then
        failed=1
    elif [ -n "$skipped" ]; then
        verdict=skipped
    fi
    summary+=("$(printf '%-10s %-8s %4d s  %s' "$name" "$verdict" $((SECONDS - start)) "$skipped")")
}

run_tests() {
    local code
    limited ctest --test-dir "$build" -R "cuda|direct|gl_resource|operator_kept|viewer_live_device" \
        --timeout "$test_limit" --no-tests=error --output-on-failure -j "${JOBS:-4}"
    code=$?
    # CTest says nothing of cases that a test program skips; their reasons are in its own log.
    echo
    grep -hs '^skipped: ' "$build/Testing/Temporary/LastTest.log" | sort | uniq -c
    return "$code"
}

# sanitize TOOL [VARIANT]
sanitize() {
    local tool=$1
    shift
    need_tool compute-sanitizer && need_cuda || return 0
    limited compute-sanitizer --tool "$tool" --error-exitcode 99 "$device_test" "$@"
    local code=$?
    [ "$code" -ne 77 ] || skip "no OpenGL that computes"
    [ -n "$skipped" ] || return "$code"
}
run_memcheck() { sanitize memcheck; }

# The log of each is of its own, racecheck_VARIANT_TEST.txt.
run_racecheck() {
    local way test code=0 number jobs=() names=() limit=${LIMIT:-400}
    need_tool compute-sanitizer && need_cuda || return 0
    for way in bands "shared memory"; do
        for test in every images batches opengl tables; do
            names+=("racecheck_${way/ /_}_$test")
            limited compute-sanitizer --tool racecheck --error-exitcode 99 "$device_test" "$way" \
                "$test*" > "$out/${names[-1]}.txt" 2>&1 &
            jobs+=($!)
        done
    done
    for number in "${!jobs[@]}"; do
        wait "${jobs[number]}" || code=1
        printf '%-36s %s\n' "${names[number]}" "$(tail -n 1 "$out/${names[number]}.txt")"
    done
    return "$code"
}

# bench NAME ARGUMENT...: its tables into the log, its figures into NAME.json. The program leaves out
# what it has no device for; one variant that cannot do a kernel, it refuses (code 2).
measured=0
bench() {
    local name=$1 json=$out/$1.json
    shift
    rm -f "$json"
    echo
    echo "-- $name: $*"
    limited "$program" bench direct "$@" -o "$json"
    local code=$?
    if [ "$code" -eq 2 ]; then
        echo "left out: $name"
        return 0
    elif [ "$code" -ne 0 ] || ! grep -q '"variant"' "$json"; then
        echo "FAILED: $name, code $code"
        return 1
    fi
    "$(dirname "$0")/bench_table.py" "$json"
    measured=$((measured + 1))
}

run_speed() {
    local code=0 way workload storage
    need_cuda || return 0
    for way in bands columns texture-cache shared-memory instructions threads; do
        case $way in
        bands | columns) storage=buffers ;;
        *) storage=textures ;; # as their papers have it
        esac
        for workload in clinical caches large; do
            bench "speed_${workload}_$way" --workload "$workload" --backend cuda --variant "$way" \
                --storage "$storage" --seconds "$seconds" --no-fourier || code=1
        done
    done
    for way in buffers textures; do
        bench "speed_compute_$way" --backend compute --storage "$way" --seconds "$seconds" \
            --no-fourier || code=1
    done
    [ "$measured" -gt 0 ] && return "$code"
}

run_paper() {
    local code=0 workload
    need_cuda || return 0
    for workload in clinical caches large figure4; do
        bench "paper_$workload" --paper --backend all --workload "$workload" \
            --seconds "$seconds" --repeat 5 || code=1
    done
    return "$code"
}

# profile NAME LAUNCHES_BEFORE: what Nsight Compute says of a launch. The clocks stay as they are; the
# program is ended with it, so only the report tells how it went.
profile() {
    local report=$out/profile_$1
    rm -f "$report.ncu-rep"
    limited ncu --set full --clock-control none -k 'regex:^bands' --launch-skip "$2" -c 1 --kill yes \
        -o "$report" "$program" bench direct --workload clinical --case invariant --backend cuda \
        --variant bands --no-fourier --repeat 1 --seconds 1
    [ -f "$report.ncu-rep" ] || return 1
    ncu -i "$report.ncu-rep"
    ncu -i "$report.ncu-rep" --page raw --csv > "$report.raw.csv"
    ncu -i "$report.ncu-rep" --page source --csv > "$report.source.csv"
    rm "$report.ncu-rep"
}
run_profile() {
    local code=0
    need_tool ncu && need_cuda || return 0
    profile one_view 6 || code=1
    profile batch 60 || code=1
    return "$code"
}

for name in "${steps[@]}"; do
    step "$name"
done

echo
echo "== summary"
printf '%s\n' "${summary[@]}" | tee -a "$out/summary.txt"
if [ "$failed" -ne 0 ]; then
    echo "FAILED" | tee -a "$out/summary.txt"
fi
exit "$failed"
