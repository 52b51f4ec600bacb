#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The experiments of the list-mode paper (lr/listmode.h): hot rods and a mouse in GE's eXplore Vista DR, a body with
# times of flight and all corrections in Philips' Gemini TF, simulated, and reconstructed by a reference and by another
# backend, whose images the paper's figures 7 to 9 compare; its tables of times and its figures 3, 5 and 6.
# docs/reproduce/listmode.md says what the pictures mean. What is in the output folder already is not computed again.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

usage() {
    cat <<'END'
usage: tools/reproduce/listmode.sh [options]
  --out FOLDER       where everything goes; default build/reproduce-listmode
  --program FILE     default build/release/loraster
  --size NAME        small: about a hundredth of the paper's events, fewer subsets, rods of three slices (default)
                     paper: 25.3, 28.8 and 40.7 million events, for a graphics processor
                     tiny: a test of this script, seconds; its figures mean nothing
  --backend NAME     whose images are compared; default compute (paper: auto)
  --reference NAME   with whose; default native (tiny: cpu, in double precision)
  --times WHAT       lines of bench listmode: yes (with small a hundredth of the paper's lines, and not of images of 256^3
                     voxels), or no (default of tiny)
  --seed N           default 1
  --threads N        default: all processors
  --no-figures       numbers only: needs no python3-matplotlib
The exit code is 1 where images are farther apart than 0.1 %.
END
}

out=build/reproduce-listmode program=$root/build/release/loraster
size=small backend='' reference='' seed=1 threads='' times='' figures=yes
source "$root/tools/reproduce/common.sh"
read_options "$@"

# Events, subsets and grids of rods, mouse and body; LORs of the sensitivities. No grid is longer than the scanner: the
# paper's 51 and 26 slices of mouse and body would be more at either end, which hardly any LOR meets. The three
# slices of small hold all of the activity, so that its few events show rods.
subsets=(40 5 33)
points=() # sample points of a voxel: large voxels would have many
tables=(lines widths voxels both collisions)
rods=(--grid 103,103,36 --voxel-mm 0.65) mouse=(--grid 72,72,47 --voxel-mm 1) body=(--grid 75,75,18 --voxel-mm 8)
blobs=(--blobs) crystals=23,44 pitch=4 # of a module of the Gemini
case "$size" in
small)
    events=(400000 288000 250000) lines=500000 subsets=(4 2 4) bench=(--events 10000 --repeat 1 --seconds 0.3)
    tables=(lines widths collisions)
    rods=(--grid 103,103,3 --voxel-mm 0.65)
    : "${backend:=compute}" "${reference:=native}" "${times:=yes}"
    ;;
paper)
    events=(25300000 28800000 40700000) lines=33554432 bench=(--repeat 3 --seconds 1)
    : "${backend:=auto}" "${reference:=native}" "${times:=yes}"
    ;;
tiny)
    events=(4000 3000 5000) lines=5000 subsets=(2 2 2) points=(--samples 1) tables=(collisions)
    bench=(--events 100 --repeat 1 --seconds 0.1)
    rods=(--grid 26,26,9 --voxel-mm 2.6) mouse=(--grid 18,18,11 --voxel-mm 4) body=(--grid 25,25,7 --voxel-mm 24)
    blobs=(--blobs --blob-radius-mm 60) crystals=4,7 pitch=23
    : "${backend:=auto}" "${reference:=cpu}" "${times:=no}"
    ;;
*)
    echo "error: --size $size: there are small, paper and tiny" >&2
    exit 2
    ;;
esac
check_tools
script=$root/tools/reproduce/listmode.py
enter "size=$size backend=$backend reference=$reference seed=$seed"
processor=()
[ -n "$threads" ] && processor+=(--threads "$threads")

vista=(--scanner ge-explore-vista-dr) gemini=(--scanner gemini.yaml)
needed gemini.yaml "scanner of the body" &&
    sed -e "s/^\( *crystals:\).*/\1 [$crystals]/" -e "s/^\( *\(pitch\|face\)_mm:\).*/\1 [$pitch, $pitch]/" \
        "$root/assets/scanners/philips-gemini-tf.yaml" >gemini.yaml
needed rods.nii "hot rods" &&
    lr phantom derenzo "${rods[@]}" -o rods.nii
needed mu.nii "mouse, body and its attenuation" && "$python" -B "$script" phantoms

needed rods.petsird "events of the rods: ${events[0]}" &&
    lr simulate "${vista[@]}" --image rods.nii --counts "${events[0]}" --seed "$seed" "${points[@]}" \
        "${processor[@]}" -o rods.petsird
needed mouse.petsird "events of the mouse: ${events[1]}" &&
    lr simulate "${vista[@]}" --image mouse.nii --counts "${events[1]}" --seed "$seed" "${points[@]}" \
        "${processor[@]}" -o mouse.petsird
density=(--mu mu.nii --mu-unit 1/mm)
needed trues.Cdh "events of the body: ${events[2]}" &&
    lr simulate "${gemini[@]}" --image body.nii --counts "${events[2]}" --seed "$seed" --tof-ps 636 "${density[@]}" \
        "${processor[@]}" -o trues.Cdh
needed body.Cdh "crystals' efficiencies, randoms among the body's events" && "$python" -B "$script" detect "$crystals"
needed randoms.h5 "randoms that each LOR expects" &&
    lr factors "${gemini[@]}" --efficiencies singles.npy "${processor[@]}" -o randoms.h5

# both NAME EVENTS ARGUMENTS...: by the reference and by the other backend, an image of each iteration and the wall
# clock's seconds.
both() {
    local name=$1 list=$2 way number=0
    shift 2
    for way in "$reference" "$backend"; do
        number=$((number + 1))
        needed "$name-$number.npy" "$name by $way" &&
            lr recon --operator listmode --events "$list" --algorithm osem --save-every 1 --backend "$way" \
                --sensitivity-lines "$lines" "${processor[@]}" "$@" --json -o "$name-$number.npy" >"$name-$number.json"
    done
    true
}
both rods rods.petsird "${vista[@]}" "${rods[@]}" --iterations 2 --subsets "${subsets[0]}"
both mouse mouse.petsird "${vista[@]}" "${mouse[@]}" --iterations 3 --subsets "${subsets[1]}"
corrected=("${gemini[@]}" "${body[@]}" "${blobs[@]}" --iterations 3 --subsets "${subsets[2]}" "${density[@]}"
    --efficiencies efficiencies.npy --additive randoms.h5)
both body body.Cdh "${corrected[@]}" --tof-ps 636
both timeless body.Cdh "${corrected[@]}" --without-tof

# The normalisation maps, of the middle slice.
one_slice() { # NAME SCANNER... -- GRID
    local name=$1
    shift
    needed "$name-map.npy" "normalisation map, $name" &&
        lr sensitivity "$@" "${points[@]}" "${processor[@]}" --quiet -o "$name-map.npy"
    true
}
one_slice rods "${vista[@]}" --grid "${rods[1]%,*},1" --voxel-mm "${rods[3]}"
one_slice body "${gemini[@]}" --grid "${body[1]%,*},1" --voxel-mm "${body[3]}" "${density[@]}" --mu-as factors

# timed NAME ARGUMENTS...: lines of the bench, into NAME.json
timed() {
    local name=$1
    shift
    needed "$name.json" "bench listmode, $name" &&
        lr bench listmode "$@" "${bench[@]}" "${processor[@]}" -o "$name.json"
    true
}
if [ "$times" = yes ]; then
    processor=() # of the times each has its own
    rm -f tables.md
    timed one-thread --table first --kernel tube --backend native --threads 1
    timed first --table first --kernel tube --backend "$backend"
    for table in "${tables[@]}"; do
        timed "$table" --table "$table" --kernel tube --backend "$backend"
    done
    if lr info --json |
        "$python" -c 'import json, sys; sys.exit(not json.load(sys.stdin)["listmode"]["cuda"]["works"])'; then
        for table in ladder fastmath blocks; do
            timed "$table" --table "$table" --kernel tube --backend cuda
        done
    else
        echo "== table II and figures 5 and 6 are left out: they are steps of backend cuda, which does not work here"
    fi
    for table in first "${tables[@]}" ladder fastmath blocks; do
        [ ! -e "$table.json" ] || "$root/tools/bench_table.py" "$table.json" >>tables.md
    done
fi

echo "== figures and table, in $out"
arguments=()
[ "$figures" = no ] && arguments+=(--no-figures)
"$python" -B "$script" report "${arguments[@]}"
