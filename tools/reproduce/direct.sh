#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The experiment of the first DIRECT paper (lr/direct.h): a 35 cm cylinder with six 10 mm spheres in the LaBr3 scanner, simulated, put into histo-images
# and reconstructed by RAMLA with the invariant and the three variant resolution models; projections of point sources; the paper's figures 4 to 10,
# and figures 4 and 5 of the second DIRECT paper (its caches), which are named caches4 and caches5.
# docs/reproduce/direct.md says what the pictures mean. What is in the output folder already is not computed again.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

usage() {
    cat <<'END'
usage: tools/reproduce/direct.sh [options]
  --out FOLDER       where everything goes; default build/reproduce-direct
  --program FILE     default build/release/loraster
  --size NAME        small: 96 x 96 x 8 voxels of 4 mm and a cylinder as long, 7 minutes of processor time (default)
                     paper: 144 x 144 x 48 and a cylinder of 190 mm, for a graphics processor
                     tiny: a test of this script, seconds; its figures mean nothing
  --counts N         detected photon pairs; default 2000000 (tiny: 5000); the paper has 430000000
  --iterations N     of RAMLA; default 3
  --fft-iterations N of the comparison by FFT, on one core; default as many, paper: 4 (of 20 they would take 10 minutes)
  --relaxation L     of RAMLA; default 0.15
  --support K2       that RAMLA's kernels are cut to; default 9
  --contrast C       spheres over background; default 6
  --truth NAME       radial resolution that events are simulated with: invariant (5.8 mm; default), variant1, variant2, variant3
  --seed N           default 1
  --backend NAME     cpu or compute; default auto
  --threads N        default: all processors
  --times BACKEND    also time the second paper's case with loraster bench, by a backend or all, and figure 4 by --backend; or no; default auto
                     (paper: all; tiny: no)
  --no-figures       numbers only: needs no python3-matplotlib
The exit code is 1 where an ordering that the paper claims is contradicted at sufficient counts.
END
}

out=build/reproduce-direct program=$root/build/release/loraster
size=small counts='' iterations='' fft_iterations='' relaxation=0.15 support=9 contrast=6 truth=invariant seed=1
backend=auto threads='' times='' figures=yes
source "$root/tools/reproduce/common.sh"
read_options "$@"

# cylinder: its slices of 2 mm, a middle one at 0; origin: a slice of the image lies at 0 too. points5, points6: grids of the point sources.
case "$size" in
small)
    grid=96,96,8 voxel=4 origin=-190,-190,-16 cylinder=15 azimuths=40 tilts=3
    points5=144,144,12 points6=144,144,8 point_voxel=4 caches=144,144,62
    : "${times:=auto}"
    ;;
paper)
    grid=144,144,48 voxel=4 origin=-286,-286,-92 cylinder=95 azimuths=40 tilts=3
    points5=144,144,48 points6=144,144,48 point_voxel=4 caches=144,144,62
    : "${times:=all}"
    ;;
tiny)
    grid=24,24,3 voxel=16 origin=-184,-184,-16 cylinder=11 azimuths=4 tilts=1
    points5=36,36,5 points6=36,36,5 point_voxel=16 caches=36,36,16
    : "${times:=no}"
    ;;
*)
    echo "error: --size $size: there are small, paper and tiny" >&2
    exit 2
    ;;
esac
if [ "$size" = tiny ]; then
    : "${counts:=5000}" "${iterations:=2}"
fi
: "${counts:=2000000}" "${iterations:=3}"
if [ "$size" = paper ] && [ "$iterations" -gt 4 ]; then
    : "${fft_iterations:=4}"
fi
: "${fft_iterations:=$iterations}"
if ! [ "$fft_iterations" -ge 1 ] 2>/dev/null || [ "$fft_iterations" -gt "$iterations" ]; then
    echo "error: --fft-iterations $fft_iterations: from 1 to the $iterations iterations of RAMLA" >&2
    exit 2
fi
case "$truth" in
# The crystals' faces add 1.9 mm (two uniform distributions of 4 mm, halved): 5.8 mm in all.
invariant) blur=(--model invariant --radial-mm 5.47) ;;
variant1 | variant2 | variant3) blur=(--model "$truth") ;;
*)
    echo "error: --truth $truth: there are invariant, variant1, variant2 and variant3" >&2
    exit 2
    ;;
esac
check_tools
script=$root/tools/reproduce/direct.py
enter "size=$size counts=$counts iterations=$iterations relaxation=$relaxation support=$support contrast=$contrast truth=$truth seed=$seed fft=$fft_iterations"

device=(--backend "$backend")
[ -n "$threads" ] && device+=(--threads "$threads")

# Hits are read in the middle of the crystals' depth.
needed scanner.yaml "scanner" &&
    sed 's/^detection_depth_mm:.*/detection_depth_mm: 15/' "$root/assets/scanners/penn-labr3.yaml" >scanner.yaml
needed activity.nii.gz "phantom" &&
    lr phantom six-spheres --radius-mm 175 --contrast "$contrast" --grid "180,180,$cylinder" \
        --voxel-mm 2 -o activity.nii.gz
image_grid=(--grid "$grid" --voxel-mm "$voxel" --origin-mm "$origin")
views=(--azimuths "$azimuths" --tilts "$tilts")
if needed counts.json "events: $counts pairs, put into $((azimuths * tilts)) histo-images"; then
    lr direct deposit --scanner scanner.yaml --activity activity.nii.gz --count "$counts" \
        --tof-ps 400 "${blur[@]}" --axial-mm 5.47 --seed "$seed" "${views[@]}" \
        ${threads:+--threads "$threads"} "${image_grid[@]}" -o counts.h5 --json >counts.json.part
    mv counts.json.part counts.json
fi
needed initial.npy "first image" && "$python" -B "$script" initial

# On one core, while the device does the rest.
by_fft=''
if needed fft.npy "RAMLA, invariant, by FFT: $fft_iterations iterations, aside"; then
    "$python" -B "$script" fft &
    by_fft=$!
    trap 'kill "$by_fft" 2>/dev/null || true' EXIT
fi

for model in invariant variant1 variant2 variant3; do
    needed "$model.npy" "RAMLA, $model" &&
        lr recon --operator direct --data counts.h5 --algorithm ramla --views-per-block 1 --tof-ps 400 \
            --model "$model" --support "$support" --iterations "$iterations" --relaxation "$relaxation" --initial initial.npy --save-every 1 "${device[@]}" \
            -o "$model.npy"
done

# Kernels much wider than a scanner's, as in section 5.
one_view() { # NAME POINTS KERNEL...
    local name=$1 source=$2
    shift 2
    needed "$name.npy" "point sources, $name" &&
        lr direct project --image "$source.npy" --grid "${!source}" --voxel-mm "$point_voxel" \
            "${device[@]}" --axial-mm 10 "$@" -o "$name.npy"
    true
}
for name in points5 points6; do
    needed "$name.npy" "point sources" && "$python" -B "$script" points "$name.npy" "${!name}"
done
for cut in 9 20; do # 27 is longer than the grid
    one_view "figure5-k$cut" points5 --tof-ps 900 --radial-mm 50 --support "$cut" --azimuth-deg 0
done
wide=(--tof-ps 900 --model linear --radial-mm 10 --radial-edge-mm 100 --azimuth-deg 0)
one_view figure6-forward points6 "${wide[@]}"
one_view figure6-back points6 "${wide[@]}" --transpose
for width in invariant variant; do
    kernel=(--tof-ps 600 --azimuth-deg 30)
    if [ "$width" = variant ]; then
        kernel+=(--model linear --radial-mm 10 --radial-edge-mm 80)
    else
        kernel+=(--radial-mm 50)
    fi
    one_view "figure7-symmetric-$width-forward" points6 "${kernel[@]}"
    one_view "figure7-symmetric-$width-back" points6 "${kernel[@]}" --transpose
    one_view "figure7-asymmetric-$width-forward" points6 "${kernel[@]}" --asymmetric
    one_view "figure7-asymmetric-$width-back" points6 "${kernel[@]}" --asymmetric --transpose
done
for model in invariant variant1 variant2 variant3; do
    needed "tables-$model.png" "look-up tables, $model" &&
        lr direct lut --tof-ps 400 --model "$model" --support "$support" --azimuth-deg 30 "${image_grid[@]}" -o "tables-$model.png"
done

# Figure 8: widths, as far out as the paper's image reaches.
for model in invariant variant1 variant2 variant3; do
    if needed "widths-$model.json" "widths, $model"; then
        lr direct lut --tof-ps 400 --model "$model" --grid 144,144,3 --voxel-mm 4 -o "widths-$model.png" --json >"widths-$model.json.part"
        mv "widths-$model.json.part" "widths-$model.json"
    fi
done

# The case of the second paper: 45 mm along the line, 5 to 6 mm across, 5 mm along the axis. It does not say which sample it shows.
needed caches5.nii.gz "phantom of the second paper's case" &&
    lr phantom six-spheres --radius-mm 175 --contrast "$contrast" --grid "$caches" --voxel-mm "$point_voxel" -o caches5.nii.gz
case_of_caches=(--tof-ps 300 --model linear --radial-mm 5 --radial-edge-mm 6 --axial-mm 5 --azimuth-deg 30)
for way in forward back; do
    transposed=()
    [ "$way" = back ] && transposed=(--transpose)
    needed "caches5-$way.npy" "second paper's case, $way" &&
        lr direct project --image caches5.nii.gz "${device[@]}" "${case_of_caches[@]}" "${transposed[@]}" -o "caches5-$way.npy"
done
if [ -n "$by_fft" ]; then # before anything is timed
    echo "== waiting for RAMLA by FFT"
    wait "$by_fft"
    trap - EXIT
fi
if [ "$times" != no ]; then
    needed times.json "times of the second paper's case, $times" &&
        lr bench direct --workload caches --paper --seconds 3 --backend "$times" ${threads:+--threads "$threads"} -o times.json
    of_figure4=() # of small: four widths across the line; smaller voxels are for a graphics processor
    [ "$size" = small ] && of_figure4=(--case "300 ps" --repeat 1)
    needed figure4.json "times of figure 4" &&
        lr bench direct --workload figure4 --seconds 1 --backend "$backend" "${of_figure4[@]}" ${threads:+--threads "$threads"} -o figure4.json
fi

echo "== figures and table, in $out"
arguments=()
[ "$figures" = no ] && arguments+=(--no-figures)
"$python" -B "$script" report "${arguments[@]}"
