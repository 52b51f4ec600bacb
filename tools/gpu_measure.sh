#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: the figures that docs/performance.md tells, by the commands that it names.
#   tools/gpu_measure.sh BUILD_FOLDER OUT_FOLDER STEP...
# Steps, each with the seconds that it takes at most:
#   projections  whole eXplore Vista, updates of OSEM by the wall and by the device         120
#   rows         rows of Vista's matrix to memory                                            60
#   listmode     a million random lines on cuda and compute, every kernel                   240
#   peers        the list-mode paper's tables and figures                                   500
#   script       tools/reproduce/listmode.sh, small, cuda and compute against native        200
#   tables       the list-mode paper's tables I, III, IV and V, and one thread of the processor  300
#   body         the experiment at the paper's size, cuda against compute; draws what peers and tables left  400
#   whole        list mode of 50 million events, the whole command, phase by phase          300
#   ranks        list mode of 50 million events by one GPU and by all (LORASTER_NCCL)       360
#   direct       the DIRECT papers' experiment at its size                                  420
#   gathers      the DIRECT papers' benchmark at their sizes, cuda and compute              450
#   gathers_cpu  the same by the reference on the processor                                 500
#   cluster      the cluster paper's figures at its size                                    600
#   passes       the cluster paper's passes a voxel, 128^3 voxels, raster and compute       200
#   guesses      the cluster paper's ranks and their guesses at its size                    200
#   raster_ranks the same by raster, 32^3 voxels, four iterations                           300
#   scanners     five scanners: OSEM of counts by 14 subsets, and of list mode with water, against native  300
#   pairs        five ranks, each with one of five opposite pairs of the paper, composed    120
# The output of each goes to OUT_FOLDER/STEP.txt, too. A command that fails is reported, and the exit code
# is then 1. A command that exceeds its step's time is ended, and fails.
# shellcheck disable=SC2317 # steps are called by their names
set -uo pipefail
[ $# -ge 3 ] || {
    sed -n '4,25s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
build=$(realpath "$1") program=$(realpath "$1")/loraster out=$(realpath -m "$2")
root=$(realpath "$(dirname "$0")/..")
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
failed=0
export PYTHON=${PYTHON:-python3}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # who is not root needs neither
pairs_grid=${PAIRS_GRID:-128,128,128}
figures=()
"$PYTHON" -c "import matplotlib" 2> /dev/null || figures=(--no-figures)

# limited SECONDS COMMAND...
limited() {
    local seconds=$1 start=$SECONDS code
    shift
    echo "-- $*"
    timeout --signal=INT --kill-after=10 "$seconds" "$@" 2>&1
    code=$?
    echo "-- $((SECONDS - start)) s, exit code $code"
    [ "$code" -eq 0 ] || failed=1
}

# bench SECONDS ARGUMENT...: its tables, and its figures at the end of bench.json
bench() {
    local seconds=$1
    shift
    rm -f "$work/bench.json"
    limited "$seconds" "$program" bench "$@" -o "$work/bench.json"
    [ -f "$work/bench.json" ] || return
    "$root/tools/bench_table.py" "$work/bench.json"
    cat "$work/bench.json" >> "$out/bench.json"
}

measure_projections() {
    local subsets
    for subsets in 1 4 7; do
        bench 40 correspondence --workload vista --backend compute --mode exact \
            --size full --repeat 11 --updates "$subsets"
    done
}

measure_rows() {
    local backend
    for backend in compute native; do
        limited 30 "$program" matrix --scanner ge-explore-vista-dr --grid 64,64,16 --voxel-mm \
            0.8,0.8,0.65 --backend "$backend" --mode exact --verbose -o /dev/shm/rows.h5
        stat -c '%s bytes' /dev/shm/rows.h5
        rm -f /dev/shm/rows.h5
    done
}

measure_listmode() {
    local backend kernel
    for backend in cuda compute; do
        for kernel in tube line exact; do
            bench 40 listmode --table first --kernel "$kernel" --backend "$backend" --seconds 2
        done
    done
}

measure_peers() {
    local table seconds
    for table in linear ladder fastmath blocks collisions public; do
        case $table in
        linear | ladder | blocks) seconds=130 ;; # many rows, of whose energy each takes 2 s
        *) seconds=35 ;;
        esac
        bench "$seconds" listmode --table "$table" --backend cuda --seconds 1 --repeat 3
        keep_for_body "$table"
    done
}

# keep_for_body NAME: what bench has written, where tools/reproduce/listmode.py draws figures of it
keep_for_body() {
    mkdir -p "$out/body"
    [ ! -f "$work/bench.json" ] || cp "$work/bench.json" "$out/body/$1.json"
}

measure_tables() {
    local table
    bench 60 listmode --table first --kernel tube --backend native --threads 1 --seconds 1 --repeat 1
    keep_for_body one-thread
    for table in first lines widths voxels both; do
        bench 60 listmode --table "$table" --kernel tube --backend cuda --seconds 0.2 --repeat 3
        keep_for_body "$table"
    done
}

measure_script() {
    local backend
    for backend in cuda compute; do
        limited 100 "$root/tools/reproduce/listmode.sh" --backend "$backend" --reference native \
            "${figures[@]}" --program "$program" --out "$work/listmode-$backend"
    done
}

measure_body() {
    limited 400 "$root/tools/reproduce/listmode.sh" --size paper --backend cuda --reference compute --times no \
        "${figures[@]}" --program "$program" --out "$out/body"
}

# Seconds of an iteration, from the second one on, and what crosses to the host in it.
tell_iterations() {
    "$PYTHON" - "$1" << 'PY'
import json, statistics, sys
told = json.load(open(sys.argv[1]))
later = told["iterations"][1:]
keys = ("seconds", "device_seconds", "exchange_seconds", "waiting_seconds", "to_host_bytes")
print({key: statistics.median(k[key] for k in later) for key in keys if key in later[0]})
print(told.get("ranks", "one process"))
PY
}

# simulate_list FILE EVENTS
simulate_list() {
    limited 120 "$program" simulate --scanner penn-labr3 --phantom spheres --grid 144,144,48 \
        --voxel-mm 4 --counts "$2" --tof-ps 375 -o "$1"
}

# Compares images of one iteration with the processor's, for a tenth of the events.
compare_backends() {
    local backend list="$work/tenth.petsird"
    simulate_list "$list" 5e6
    for backend in auto native; do
        limited 90 "$program" recon --operator listmode --scanner penn-labr3 --events "$list" --tof-ps 375 \
            --grid 144,144,48 --voxel-mm 4 --backend "$backend" --algorithm osem --subsets 10 \
            --iterations 1 --sensitivity-lines 4000000 -o "$work/whole-$backend.npy"
    done
    rm -f "$list"
    "$PYTHON" - "$work" << 'PY' || failed=1
import pathlib, sys
import numpy as np
one, other = (np.load(pathlib.Path(sys.argv[1]) / f"whole-{name}.npy").astype(float) for name in ("auto", "native"))
apart = np.linalg.norm(one - other) / np.linalg.norm(other)
print("auto from native:", apart)
sys.exit(not apart < 1e-4)
PY
}

# A line that --verbose says has the seconds since the start before it.
measure_whole() {
    local list="$work/whole.petsird" turn kernel
    simulate_list "$list" 5e7
    stat -c '%s bytes' "$list"
    for kernel in tube exact; do
        for turn in 1 2; do
            limited 60 bash -c 'time "$@"' bash "$program" recon --operator listmode --scanner \
                penn-labr3 --events "$list" --tof-ps 375 --grid 144,144,48 --voxel-mm 4 --kernel \
                "$kernel" --algorithm osem --subsets 10 --iterations 10 --verbose -o \
                "$work/whole-$turn.npy"
        done
    done
    compare_backends
    rm -f "$list"
}

measure_ranks() {
    local list="$work/l.petsird" size way
    # shellcheck disable=SC2054 # sizes have commas
    local options=(--operator listmode --scanner penn-labr3 --events "$list" --tof-ps 375 --grid
        144,144,48 --voxel-mm 4 --backend cuda --algorithm osem --subsets 10 --iterations 10 --json)
    size=$(nvidia-smi -L | grep -c '^GPU')
    simulate_list "$list" 5e7
    limited 60 sh -c '"$@" > one.json' sh "$program" recon "${options[@]}" -o "$work/one.npy"
    [ ! -e "$work/one.npy" ] || tell_iterations one.json || failed=1
    local ways=(nccl host)
    "$program" info --json | grep -q '"cuda_aware": true' && ways+=(mpi)
    for way in "${ways[@]}"; do
        limited 60 sh -c '"$@" > ranks.json' sh mpirun --bind-to none -n "$size" "$program" recon \
            "${options[@]}" --exchange "$way" -o "$work/$way.npy"
        [ ! -e "$work/$way.npy" ] || tell_iterations ranks.json || failed=1
    done
    "$PYTHON" - "$work" << 'PY' || failed=1
import pathlib, sys
import numpy as np
one = np.load(pathlib.Path(sys.argv[1]) / "one.npy").astype(float)
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.npy")):
    print(path.stem, "from one:", np.linalg.norm(np.load(path) - one) / np.linalg.norm(one))
PY
}

measure_direct() {
    limited 420 "$root/tools/reproduce/direct.sh" --size paper --counts 430000000 --iterations 20 \
        --relaxation 0.05 "${figures[@]}" --program "$program" --out "$out/direct"
}

measure_gathers() {
    bench 350 direct --paper --backend cuda --seconds 1
    bench 100 direct --paper --backend compute --seconds 1
}

measure_gathers_cpu() {
    bench 500 direct --paper --backend cpu --seconds 0.1
}

measure_cluster() {
    limited 600 "$root/tools/reproduce/cluster.sh" --size paper --iterations 4 --mu-as factors \
        "${figures[@]}" --program "$program" --out "$out/cluster"
}

measure_guesses() {
    limited 200 "$root/tools/reproduce/cluster_ranks.sh" --size paper "${figures[@]}" \
        --program "$program" --out "$out/guesses"
}

measure_passes() {
    bench 200 correspondence --workload pair --backend raster,compute --mode sampled --size full --repeat 1 --seconds 4
}

measure_raster_ranks() {
    limited 300 "$root/tools/reproduce/cluster_ranks.sh" --size paper --backend raster --mode sampled \
        --voxels 32 --iterations 4 "${figures[@]}" --program "$program" --out "$out/raster_ranks"
}

# The whole command's seconds are those of `time`; the second run finds its shaders compiled.
measure_pairs() {
    local data="$work/pairs.h5" turn
    # shellcheck disable=SC2054 # sizes have commas
    local on=(--scanner "$work/pairs.yaml" --backend compute --mode exact)
    cat > "$work/pairs.yaml" << 'YAML'
name: five opposite pairs of the cluster paper
ring: {radius_mm: 100, modules: 10, rings: 1}
module: {crystals: [32, 32], pitch_mm: [2, 2], face_mm: [2, 2], depth_mm: 20}
coincidence: {min_module_difference: 5}
YAML
    limited 60 "$program" simulate "${on[@]}" --phantom spheres --grid "$pairs_grid" --voxel-mm 0.5 \
        --counts 2e7 -o "$data"
    for turn in 1 2; do
        limited 60 bash -c 'time "$@" > pairs.json' bash mpirun --bind-to none --oversubscribe -n 5 \
            "$program" recon "${on[@]}" --grid "$pairs_grid" --voxel-mm 0.5 --data "$data" \
            --algorithm mlem --combine paper --iterations 10 --verbose --json -o "$work/pairs-$turn.npy"
    done
    "$PYTHON" - pairs.json << 'PY' || failed=1
import json, sys
told = json.load(open(sys.argv[1]))
print("ten iterations and the composition:", told["iterations"][-1])
PY
}

# Whole commands: what --backend computes, beside native, as seconds and as a distance.
measure_scanners() {
    local scanner edge counts backend tof grid
    while read -r scanner edge counts tof; do
        grid=(--grid 48,48,12 --voxel-mm "$edge")
        limited 60 "$program" simulate --scanner "$scanner" --phantom six-spheres "${grid[@]}" --counts "$counts" \
            --quiet -o "$work/y.h5"
        limited 60 "$program" simulate --scanner "$scanner" --phantom six-spheres "${grid[@]}" --counts 2e5 \
            ${tof:+--tof-ps "$tof"} --quiet -o "$work/e.petsird"
        limited 20 "$program" phantom spheres "${grid[@]}" --quiet -o "$work/mu.npy"
        "$PYTHON" - "$work/mu.npy" << 'PY' || failed=1
import sys
import numpy as np
mu = np.load(sys.argv[1])
np.save(sys.argv[1], (mu * (0.096 / mu.max())).astype("f4"))  # water's at 511 keV, per cm
PY
        for backend in compute native; do
            limited 120 bash -c 'time "$@"' bash "$program" recon --scanner "$scanner" --data "$work/y.h5" "${grid[@]}" \
                --algorithm osem --subsets 14 --iterations 1 --backend "$backend" -o "$work/counts-$backend.npy"
        done
        for backend in cuda compute native; do
            limited 60 bash -c 'time "$@"' bash "$program" recon --operator listmode --kernel line --scanner "$scanner" \
                --events "$work/e.petsird" "${grid[@]}" --mu "$work/mu.npy" --mu-unit 1/cm --algorithm osem \
                --subsets 2 --iterations 2 --sensitivity-lines 300000 --backend "$backend" -o "$work/list-$backend.npy"
        done
        "$PYTHON" - "$work" "$scanner" << 'PY' || failed=1
import pathlib, sys
import numpy as np
worst = 0.0
for path in sorted(pathlib.Path(sys.argv[1]).glob("*-*.npy")):
    kind, name = path.stem.split("-", 1)
    one, other = (np.load(path.with_name(f"{kind}-{who}.npy")).astype(float) for who in (name, "native"))
    apart = np.linalg.norm(one - other) / np.linalg.norm(other)
    worst = max(worst, apart)
    print(sys.argv[2], kind, name, "from native: %.2e" % apart)
sys.exit(not worst < 1e-4)
PY
        rm -f "$work"/*-*.npy "$work/e.petsird" "$work/y.h5"
    done << 'LIST'
ge-explore-vista-dr 1.6,1.6,3.5 1e6
safir-dual-ring-prototype 1.6,1.6,2.5 1e6
ge-discovery-mi 8 5e6 375
siemens-mmr 8 5e6
penn-labr3 8 5e6 375
LIST
}

for step in "$@"; do
    if [ "$(type -t "measure_$step")" != function ]; then
        echo "error: there is no step $step" >&2
        exit 2
    fi
done
cd "$work" || exit 1
echo "$(nvidia-smi -L | head -1), driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader |
    head -1), build $build"
for step in "$@"; do
    echo "== $step"
    # shellcheck disable=SC2094 # a process of its own would keep `failed` to itself
    "measure_$step" > >(tee "$out/$step.txt")
    wait $!
done
exit "$failed"
