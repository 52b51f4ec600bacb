#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Section V of the GPU-cluster paper (figure 6): LORs distributed to ranks, each with a guess of its own, and
# the guesses composed; beside it the schemes that give one process's image, and distributed ML-EM.
# docs/reproduce/cluster.md says what the table means. What is in the output folder already is not computed again.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

usage() {
    cat <<'END'
usage: tools/reproduce/cluster_ranks.sh [options]
  --out FOLDER       where everything goes; default build/reproduce-cluster-ranks
  --program FILE     default build/release/loraster
  --size NAME        small: a ring of 8 modules of 4 x 4 crystals, 12 x 12 x 6 voxels, seconds (default)
                     paper: cluster-paper-32, 128 x 128 x 128 voxels of 0.5 mm, for graphics processors
  --ranks N          default 3 (small) or 5
  --voxels N         N x N x N voxels of 64/N mm instead, of paper
  --iterations N     of ML-EM; default 10
  --counts N         detected photon pairs; default 50000 (small) or 20000000
  --backend NAME     default native (small) or compute
  --mode NAME        exact or sampled (R = 4, one point a voxel, as in the paper); default exact
  --no-figures       needs no python3-matplotlib
The exit code is 1 where `exact` is not the image of one process, or a composition is worse than a guess.
END
}

out=build/reproduce-cluster-ranks program=$root/build/release/loraster
size=small ranks='' voxels='' iterations=10 counts='' backend='' mode=exact figures=yes
source "$root/tools/reproduce/common.sh"
read_options "$@"
case "$size" in
small) : "${ranks:=3}" "${counts:=50000}" "${backend:=native}" ;;
paper) : "${ranks:=5}" "${counts:=20000000}" "${backend:=compute}" "${voxels:=128}" ;;
*)
    echo "error: --size $size: there are small and paper" >&2
    exit 2
    ;;
esac
if ! command -v mpirun >/dev/null; then
    echo "error: there is no mpirun: install openmpi-bin" >&2
    exit 2
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # who is not root needs neither
if [ ! -x "$program" ]; then
    echo "error: there is no program $program: build it, or give --program FILE" >&2
    exit 2
fi
program=$(realpath "$program")
python=${PYTHON:-/usr/bin/python3}
enter "size=$size ranks=$ranks voxels=$voxels iterations=$iterations counts=$counts backend=$backend mode=$mode"

if [ "$size" = small ]; then
    scanner=ring.yaml
    cat >ring.yaml <<'END'
name: small ring
ring: {radius_mm: 30, modules: 8, rings: 1}
module: {crystals: [4, 4], pitch_mm: [4, 4], face_mm: [3.8, 3.8], depth_mm: 10}
coincidence: {field_of_view_mm: 30}
END
    grid=(--grid 12,12,6 --voxel-mm 2)
else
    scanner=cluster-paper-32
    grid=(--grid "$voxels,$voxels,$voxels" --voxel-mm "$(echo "$voxels" | awk '{print 64 / $1}')")
fi
lines=(--backend "$backend" --mode "$mode")
[ "$mode" = sampled ] && lines+=(--rays 4 --samples 1)

needed counts.h5 "counts of a phantom of spheres" &&
    lr simulate --scanner "$scanner" "${grid[@]}" --phantom spheres --counts "$counts" --truth truth.nii -o counts.h5
recon=(recon --scanner "$scanner" "${grid[@]}" --data counts.h5 "${lines[@]}" --algorithm mlem
    --iterations "$iterations" --truth truth.nii --json)

# by_ranks NAME OPTIONS...: a reconstruction by the ranks, into NAME.nii and NAME.json.
by_ranks() {
    local name=$1
    shift
    needed "$name.json" "$name, by $ranks ranks" || return 0
    mpirun --oversubscribe -n "$ranks" "$program" "${recon[@]}" "$@" -o "$name.nii" >"$name.part"
    mv "$name.part" "$name.json"
}
if needed one.json "one process"; then
    lr "${recon[@]}" -o one.nii >one.part
    mv one.part one.json
fi
by_ranks exact --combine exact
by_ranks paper --combine paper
by_ranks paper-often --combine paper --local-iterations 2
by_ranks distributed --combine distributed --local-iterations 4

echo "== figure and table, in $out"
arguments=()
[ "$figures" = no ] && arguments+=(--no-figures)
"$python" -B "$root/tools/reproduce/cluster_ranks.py" "${arguments[@]}"
