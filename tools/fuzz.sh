#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target for some seconds, from files of its format to begin with.
#
# usage: tools/fuzz.sh PROGRAM FUZZ_BUILD SECONDS
#   PROGRAM     loraster, which writes the seeds
#   FUZZ_BUILD  build folder with -DLORASTER_FUZZ=ON (clang)
# LORASTER_DATA names a folder with files of other programs (default: ../shared/data); without it
# the targets begin with what LORaster writes itself, and with tests/fuzz/corpora.tar.gz: a folder for each
# target, of inputs that earlier runs found, reduced to those that reach code that no other reaches.
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
for ending in nii nii.gz hv hdr mha npy; do
    quiet sensitivity $ring $grid -o "$made/image.$ending"
done
quiet matrix $ring $grid --rows 0:4 -o "$made/matrix.npz"
quiet matrix $ring $grid --rows 0:2 -o "$made/matrix.h5"
quiet matrix $ring $grid --rows 0:2 --compress 6 -o "$made/packed.h5"
quiet simulate $ring $grid --phantom point --counts 50 -o "$made/counts.h5"
seq 162 > "$made/values.txt"
cat > "$made/ring.yaml" << 'EOT'
ring: {radius_mm: 30, modules: 8}
module: {crystals: [4, 4], pitch_mm: [4, 4], face_mm: [3.8, 3.8], depth_mm: 10}
EOT
cat > "$made/block.hs" << 'EOT'
!INTERFILE :=
Scanner parameters :=
Number of rings := 4
Number of detectors per ring := 64
Inner ring diameter (cm) := 16.3
Average depth of interaction (cm) := 0.5
Distance between rings (cm) := 0.5
Maximum number of non-arc-corrected bins := 41
Number of crystals per block in axial direction := 4
Number of crystals per block in transaxial direction := 4
end scanner parameters :=
!END OF INTERFILE :=
EOT
quiet direct deposit $ring --activity "$made/image.nii" --count 100 --azimuths 2 --tilts 1 \
    --tof-ps 300 --acceptance-deg 40 -o "$made/histo.h5"
quiet scanner convert "$made/ring.yaml" "$made/scanner.geom"
quiet scanner convert two-opposed-modules "$made/scanner.hscan"
quiet scanner convert two-opposed-modules "$made/scanner.petsird"
quiet simulate $ring $grid --phantom point --counts 500 -o "$made/events.Cdh"
quiet simulate $ring $grid --phantom point --counts 500 -o "$made/events.petsird"

printf 'distance_mm: [0, 9]\nfirst_offset_mm: -4\noffset_step_mm: 2\nprofiles: [[0, 1, 2, 1, 0], [1, 1, 1, 2, 0]]\n' \
    > "$made/profiles.yaml"

seed image_interfile "$made/image.hv"
seed image_castor "$made/image.hdr"
seed image_metaimage "$made/image.mha"
seed image_npy "$made/image.npy"
seed image_nifti "$made"/image.nii*
seed lor_hdf5 "$made/counts.h5"
seed histo_images "$made/histo.h5"
seed scanner_hdf5 "$made/counts.h5"
seed matrix_hdf5 "$made/matrix.h5" "$made/packed.h5"
seed crystal_values "$made/values.txt" "$made/image.npy" "$made/scanner.petsird"
seed safir "$data"/safir/*.safir "$data"/safir/*crystal_map.txt
seed siemens "$data"/mmr/*.l
seed matrix_npz "$made/matrix.npz"
seed castor "$made/events.Cdh"
seed castor_geom "$made/scanner.geom"
seed castor_lut "$made"/*.lut
seed petsird "$made/events.petsird" "$data"/petsird/*.petsird
seed projdata "$data"/interfile/*.hs
seed stir_header "$made/block.hs" # those of real scanners take a second each
seed stir_map "$data"/safir/*crystal_map.txt
seed siemens_header "$data"/mmr/*.hdr*
seed radial_profiles "$made/profiles.yaml"
seed scanner_yaml assets/scanners/*.yaml
cat > "$made/session.yaml" << 'END'
view_session: 1
scanner: "two-opposed-modules"
grid:
  size: [5, 4, 3]
  voxel_mm: [4, 4, 4]
  origin_mm: [-8, -6, -4]
camera:
  eye_mm: [1, 2.5, -3e2]
  target_mm: [0, 0, 0]
  up: [0, 0, 1]
  view_angle_deg: 30
mode: voxel
voxel: {point_mm: [1, 2, 3], primary: 1, matrix: exact, rays: 4, absorption: without}
lor: {first: [0, 1, 2], second: [1, 3, 4]}
ranges:
  - {name: "image", low: 0, high: 1}
window: [1280, 800]
END
seed view_session "$made/session.yaml"

# libfyaml keeps what it had of a document with a syntax error.
leaks() { case $1 in scanner_yaml | view_session | radial_profiles) echo 0 ;; *) echo 1 ;; esac; }

run() {
    local name=$1
    mkdir -p "$work/$name"
    if ASAN_OPTIONS=detect_leaks=$(leaks "$name") UBSAN_OPTIONS=halt_on_error=1 \
        "$targets/fuzz_$name" -max_total_time="$seconds" -timeout="$hang_s" -rss_limit_mb=2048 -print_final_stats=1 \
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
# Time limit for one input. Slow ones take a second, or a minute on a busy machine.
hang_s=600
export work targets seconds hang_s LORASTER_LIBEXEC=${targets%/tests/fuzz}

tar -xzf tests/fuzz/corpora.tar.gz -C "$work"

names=$(sed -n 's/^    {"\([a-z_0-9]*\)", .*/\1/p' tests/fuzz/readers.c)
echo "$names" | xargs -P "$(nproc)" -I{} bash -c 'run {}'
