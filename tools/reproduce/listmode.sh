#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The experiments of the list-mode paper (lr/listmode.h): hot rods and a mouse in GE's eXplore Vista DR, a body with
# times of flight in Philips' Gemini TF, simulated, and reconstructed by a reference and by another backend, whose
# images the paper's figures 7 to 9 compare.
# docs/reproduce/listmode.md says what the pictures mean. What is in the output folder already is not computed again.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

usage() {
    cat <<'END'
usage: tools/reproduce/listmode.sh [options]
  --out FOLDER       where everything goes; default build/reproduce-listmode
  --program FILE     default build/release/loraster
  --size NAME        small: a hundredth of the paper's events, and fewer subsets (default)
                     paper: 25.3, 28.8 and 40.7 million events, for a graphics processor
                     tiny: a test of this script, seconds; its figures mean nothing
  --backend NAME     whose images are compared; default auto
  --reference NAME   with whose; default cpu, in double precision (paper: native)
  --seed N           default 1
  --threads N        default: all processors
  --no-figures       numbers only: needs no python3-matplotlib
The exit code is 1 where images are farther apart than 0.1 %.
END
}

out=build/reproduce-listmode program=$root/build/release/loraster
size=small backend=auto reference='' seed=1 threads='' figures=yes
while [ $# -gt 0 ]; do
    case "$1" in
    --help)
        usage
        exit 0
        ;;
    --no-figures)
        figures=no
        shift
        continue
        ;;
    --out | --program | --size | --backend | --reference | --seed | --threads)
        if [ $# -lt 2 ]; then
            echo "error: $1 needs a value" >&2
            exit 2
        fi
        declare "${1#--}=$2"
        shift 2
        ;;
    *)
        echo "error: there is no option $1: see --help" >&2
        exit 2
        ;;
    esac
done

# Events, subsets and grids of rods, mouse and body; LORs of the sensitivities. No grid is longer than the scanner: the
# paper's 51 and 26 slices of mouse and body would be two more at either end, which hardly any LOR meets.
subsets=(40 5 33)
points=() # sample points of a voxel: large voxels would have many
rods=(--grid 103,103,36 --voxel-mm 0.65) mouse=(--grid 72,72,47 --voxel-mm 1) body=(--grid 75,75,22 --voxel-mm 8)
case "$size" in
small) events=(253000 288000 407000) lines=1000000 subsets=(4 2 4) ;;
paper) events=(25300000 28800000 40700000) lines=33554432 ;;
tiny)
    events=(4000 3000 5000) lines=20000 subsets=(2 2 2) points=(--samples 1)
    rods=(--grid 26,26,9 --voxel-mm 2.6) mouse=(--grid 18,18,11 --voxel-mm 4) body=(--grid 25,25,7 --voxel-mm 24)
    ;;
*)
    echo "error: --size $size: there are small, paper and tiny" >&2
    exit 2
    ;;
esac
if [ -z "$reference" ]; then
    reference=cpu
    [ "$size" = paper ] && reference=native
fi
source "$root/tools/reproduce/common.sh"
check_tools
script=$root/tools/reproduce/listmode.py
enter "size=$size backend=$backend reference=$reference seed=$seed"
processor=()
[ -n "$threads" ] && processor+=(--threads "$threads")

vista=(--scanner ge-explore-vista-dr) gemini=(--scanner philips-gemini-tf)
needed rods.nii "hot rods" &&
    lr phantom derenzo "${rods[@]}" -o rods.nii
needed mouse.nii "mouse and body" && "$python" -B "$script" phantoms

needed rods.petsird "events of the rods: ${events[0]}" &&
    lr simulate "${vista[@]}" --image rods.nii --counts "${events[0]}" --seed "$seed" "${points[@]}" "${processor[@]}" -o rods.petsird
needed mouse.petsird "events of the mouse: ${events[1]}" &&
    lr simulate "${vista[@]}" --image mouse.nii --counts "${events[1]}" --seed "$seed" "${points[@]}" "${processor[@]}" -o mouse.petsird
needed body.petsird "events of the body: ${events[2]}" &&
    lr simulate "${gemini[@]}" --image body.nii --counts "${events[2]}" --seed "$seed" --tof-ps 636 "${processor[@]}" \
        -o body.petsird

# both NAME ARGUMENTS...: by the reference and by the other backend, an image of each iteration and the wall clock's
# seconds.
both() {
    local name=$1 way number=0
    shift
    for way in "$reference" "$backend"; do
        number=$((number + 1))
        needed "$name-$number.npy" "$name by $way" &&
            lr recon --operator listmode --events "$name.petsird" --algorithm osem --save-every 1 --backend "$way" \
                --sensitivity-lines "$lines" "${processor[@]}" "$@" --json -o "$name-$number.npy" >"$name-$number.json"
    done
    true
}
both rods "${vista[@]}" "${rods[@]}" --iterations 2 --subsets "${subsets[0]}"
both mouse "${vista[@]}" "${mouse[@]}" --iterations 3 --subsets "${subsets[1]}"
both body "${gemini[@]}" "${body[@]}" --iterations 3 --subsets "${subsets[2]}" --tof-ps 636
needed body-timeless.npy "body without times of flight, by $backend" &&
    lr recon --operator listmode --events body.petsird --algorithm osem --backend "$backend" --sensitivity-lines "$lines" \
        "${processor[@]}" "${gemini[@]}" "${body[@]}" --iterations 3 --subsets "${subsets[2]}" --without-tof \
        -o body-timeless.npy

echo "== figures and table, in $out"
arguments=()
[ "$figures" = no ] && arguments+=(--no-figures)
"$python" -B "$script" report "${arguments[@]}"
