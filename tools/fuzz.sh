#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target for some seconds, from files of its format to begin with.
#
# usage: tools/fuzz.sh PROGRAM FUZZ_BUILD SECONDS
#   PROGRAM     loraster, which writes the seeds
#   FUZZ_BUILD  build folder with -DLORASTER_FUZZ=ON (clang)
# LORASTER_DATA names a folder with files of other programs (default: ../shared/data); without it
# the targets begin with what LORaster writes itself.
set -uo pipefail
cd "$(dirname "$0")/.."
if [ $# -ne 3 ]; then
    echo "usage: tools/fuzz.sh PROGRAM FUZZ_BUILD SECONDS" >&2
    exit 2
fi
program=$(realpath "$1")
targets=$(realpath "$2")/tests/fuzz
seconds=$3
data=${LORASTER_DATA:-../shared/data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# seed TARGET FILE...: what there is of these becomes its seeds; at most 64 KiB each.
seed() {
    local target=$1 file
    shift
    mkdir -p "$work/$target"
    for file in "$@"; do
        [ -f "$file" ] && head -c 65536 "$file" > "$work/$target/$(basename "$file")"
    done
}

made=$work/made
mkdir -p "$made"
ring="--scanner two-opposed-modules"
grid="--grid 5,4,3 --voxel-mm 4,4,4"
quiet() { "$program" "$@" --quiet > /dev/null 2>&1 || echo "seeds: loraster $1 failed" >&2; }
for ending in hv hdr mha npy; do
    quiet sensitivity $ring $grid -o "$made/image.$ending"
done
quiet matrix $ring $grid --rows 0:4 -o "$made/matrix.npz"
quiet scanner convert siemens-mmr "$made/scanner.geom"
quiet scanner convert two-opposed-modules "$made/scanner.hscan"
quiet simulate $ring $grid --phantom point --counts 500 -o "$made/events.Cdh"
quiet simulate $ring $grid --phantom point --counts 500 -o "$made/events.petsird"

seed image_interfile "$made/image.hv"
seed image_castor "$made/image.hdr"
seed image_metaimage "$made/image.mha"
seed image_npy "$made/image.npy"
seed matrix_npz "$made/matrix.npz"
seed castor "$made/events.Cdh"
seed castor_geom "$made/scanner.geom"
seed castor_lut "$made"/*.lut
seed petsird "$made/events.petsird" "$data"/petsird/*.petsird
seed projdata "$data"/interfile/*.hs
seed stir_header "$data"/interfile/*.hs "$data"/safir/*.hs
seed stir_map "$data"/safir/*crystal_map.txt
seed siemens_header "$data"/mmr/*.hdr*
seed scanner_yaml assets/scanners/*.yaml

# libfyaml keeps what it had of a document with a syntax error.
leaks() { [ "$1" = scanner_yaml ] && echo 0 || echo 1; }

run() {
    local name=$1
    mkdir -p "$work/$name"
    if ASAN_OPTIONS=detect_leaks=$(leaks "$name") UBSAN_OPTIONS=halt_on_error=1 \
        "$targets/fuzz_$name" -max_total_time="$seconds" -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$work/" "$work/$name" > "$work/$name.log" 2>&1; then
        printf 'fuzz %-16s good, %s runs\n' "$name" \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log")"
    else
        printf 'fuzz %-16s FAILED\n' "$name"
        tail -40 "$work/$name.log"
        return 1
    fi
}
export -f run leaks
export work targets seconds

names=$(cd tests/fuzz && ls ./*.c | sed 's,^./,,; s/\.c$//')
echo "$names" | xargs -P "$(nproc)" -I{} bash -c 'run {}'
