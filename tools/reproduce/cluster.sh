#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Figures 5, 7, 8 and 9 of the GPU-cluster paper, rasterised: the LOR image of two modules of 32 x 32
# crystals, a volume reconstructed by ML-EM in the haze of its density, three voxels' correspondence
# images, and lines' weights without and with absorption.
# docs/reproduce/cluster.md says what the pictures mean. What is in the output folder already is not computed again.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

usage() {
    cat <<'END'
usage: tools/reproduce/cluster.sh [options]
  --out FOLDER       where everything goes; default build/reproduce-cluster
  --program FILE     default build/release/loraster
  --size NAME        small: 16 x 16 x 16 voxels of 2 mm, 3 iterations, 2 minutes of processor time (default)
                     paper: 128 x 128 x 128 voxels of 0.5 mm, 10 iterations, for a graphics processor
  --voxels N         N x N x N voxels of 64/N mm instead, 2 mm at most
  --iterations N     of ML-EM; default 3 (small) or 10
  --counts N         detected photon pairs of figure 7; default 1000000 (small) or 20000000
  --seed N           default 1
  --mu-as HOW        absorption of figure 7: lines, as in the paper (default of paper), or factors, one per LOR
                     (default of small)
  --backend NAME     raster, or cpu to compare with; default raster
  --threads N        default: all processors
  --max-memory SIZE  for the matrix of figure 7, which backend cpu keeps where it fits; default: half
  --no-figures       of the pictures only what the program draws itself: needs no python3-matplotlib
The exit code is 1 where a figure contradicts the paper's formulas.
END
}

out=build/reproduce-cluster program=$root/build/release/loraster
size=small voxels='' iterations='' counts='' seed=1 mu_as='' backend=raster threads='' max_memory='' figures=yes
source "$root/tools/reproduce/common.sh"
read_options "$@"

case "$size" in
small) : "${voxels:=16}" "${iterations:=3}" "${counts:=1000000}" "${mu_as:=factors}" ;;
paper) : "${voxels:=128}" "${iterations:=10}" "${counts:=20000000}" "${mu_as:=lines}" ;;
*)
    echo "error: --size $size: there are small and paper" >&2
    exit 2
    ;;
esac
if [[ ! $voxels =~ ^[1-9][0-9]{0,2}$ ]] || [ "$voxels" -lt 8 ] || [ $((voxels % 2)) = 1 ]; then
    echo "error: --voxels $voxels: it has to be even, and 8 or more" >&2
    exit 2
fi
check_tools
script=$root/tools/reproduce/cluster.py
enter "size=$size voxels=$voxels iterations=$iterations counts=$counts seed=$seed mu_as=$mu_as backend=$backend"

processor=()
[ -n "$threads" ] && processor+=(--threads "$threads")
# The paper's lines: R = 4, and one point a voxel (0.13 ms each, 4.5 minutes for 128^3 voxels).
lines=(--backend "$backend" --mode sampled --samples 1 "${processor[@]}")

# timed FILE COMMAND...: its wall clock seconds go into FILE.
timed() {
    local file=$1 begin
    shift
    begin=$(date +%s.%N)
    "$@"
    echo "$begin $(date +%s.%N)" | awk '{print $2 - $1}' >"$file"
}

ring=cluster-paper-32
# Modules 0 and 3 of the ring; crystals of 2 mm, and of 32 mm for a LOR image that one can count.
pair() { # CRYSTALS PITCH
    local module="crystals: [$1, $1], pitch_mm: [$2, $2], face_mm: [$2, $2], depth_mm: 20"
    cat <<END
name: two opposite modules of $ring with $1 x $1 crystals
modules:
  - {center_mm: [60, 0, 0], u: [0, 1, 0], v: [0, 0, 1], $module}
  - {center_mm: [-60, 0, 0], u: [0, -1, 0], v: [0, 0, 1], $module}
END
}
needed pair32.yaml "two modules of 32 x 32" && pair 32 2 >pair32.yaml
needed pair2.yaml "two modules of 2 x 2" && pair 2 32 >pair2.yaml
needed activity.nii "activity and density" && "$python" -B "$script" inputs

# Figure 5.
project=(project --image activity.nii --rays 4 "${lines[@]}")
needed lors32.h5 "LOR image, modules of 32 x 32" &&
    timed lors32.seconds lr "${project[@]}" --scanner pair32.yaml -o lors32.h5
needed lors2.h5 "LOR image, modules of 2 x 2" &&
    lr "${project[@]}" --scanner pair2.yaml -o lors2.h5

# Figure 7. The data are of exact elements and line integrals: not of the matrix that reconstructs them.
needed expected.h5 "expected counts without absorption" &&
    lr project --scanner $ring --image activity.nii --backend native --mode exact "${processor[@]}" -o expected.h5
density=(--mu density.nii --mu-unit 1/mm)
needed factors.h5 "absorption along each LOR" &&
    lr factors --scanner $ring "${density[@]}" "${processor[@]}" -o factors.h5
needed counts.h5 "counts" && "$python" -B "$script" counts
if needed image.nii "ML-EM"; then
    recon=(recon --scanner $ring --data counts.h5 "${density[@]}" --mu-as "$mu_as" --rays 4 "${lines[@]}"
        --like activity.nii --algorithm mlem --iterations "$iterations" -o image.nii)
    [ -n "$max_memory" ] && recon+=(--max-memory "$max_memory")
    timed image.seconds lr "${recon[@]}" 2>&1 | tee recon.log
fi
if ! lr info --json | "$python" -c 'import json, sys; sys.exit(not json.load(sys.stdin)["viewer"]["works"])'; then
    echo "== figure 7 is left out: $program has no viewer (loraster info says why)"
elif needed figure7.png "figure 7, by the viewer"; then
    lr view --no-window --quiet --script "$root/tools/reproduce/cluster-volume.txt"
fi

# Figures 8 and 9: voxels of 0.5 mm that are farther from module 0 than from the opposite one.
places=(-0.25,0.25,0.25 -14.25,-18.25,10.25 -22.25,21.25,-17.25)
for k in 0 1 2; do
    look=(render --at "${places[k]}" --module 0 --rays 4 --backend "$backend" "${processor[@]}")
    needed "voxel$k-ring" "voxel $k in the ring" && lr "${look[@]}" --scanner $ring -o "voxel$k-ring"
    needed "voxel$k-pair" "voxel $k between two modules" &&
        lr "${look[@]}" --scanner pair32.yaml -o "voxel$k-pair"
    needed "voxel$k-sphere" "voxel $k between two modules, with absorption" &&
        lr "${look[@]}" --scanner pair32.yaml --mu sphere.nii --mu-unit 1/mm --mu-steps 256 -o "voxel$k-sphere"
done

echo "== figures and table, in $out"
arguments=()
[ "$figures" = no ] && arguments+=(--no-figures)
"$python" -B "$script" report "${arguments[@]}" "${places[@]/#/at=}"
