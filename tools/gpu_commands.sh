#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: whole commands as a user starts them, by the wall clock.
#   tools/gpu_commands.sh BUILD_FOLDER OUT_FOLDER
# Prints a line per command (seconds, peak memory, exit code) and writes commands.txt and what each
# command printed to OUT_FOLDER. On a machine that nothing has run on, the first of each is a first run:
# the driver's and our own caches are empty. More in the environment:
#   STEPS   which of "info vista native mmr demo matrix view raster direct" to run; default all; native
#           compares vista's image with that of backend native, which takes minutes
# The data are made here (--backend native) and in $LORASTER_DATA.
set -uo pipefail
program=$(realpath "${1:?usage: tools/gpu_commands.sh BUILD_FOLDER OUT_FOLDER}/loraster")
out=$(realpath -m "${2:?usage: tools/gpu_commands.sh BUILD_FOLDER OUT_FOLDER}")
steps=" ${STEPS:-info vista native mmr demo matrix view raster direct} "
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
failed=0

# timed NAME ARGUMENTS...: runs the program; what it prints goes to OUT/NAME.txt.
timed() {
    local name=$1 code
    shift
    /usr/bin/env python3 - "$name" "$out/$name.txt" "$program" "$@" <<'PY' | tee -a "$out/commands.txt"
import resource, subprocess, sys, time
name, log, *command = sys.argv[1:]
start = time.monotonic()
with open(log, "w") as to:
    code = subprocess.run(command, stdout=to, stderr=subprocess.STDOUT, check=False).returncode
wall = time.monotonic() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{name:22s} {wall:7.2f} s wall {used.ru_utime + used.ru_stime:7.2f} s processor "
      f"{used.ru_maxrss / 1024:7.0f} MiB  exit {code}", flush=True)
sys.exit(code != 0)
PY
    code=${PIPESTATUS[0]}
    [ "$code" -eq 0 ] || failed=1
}

cd "$work" || exit 1
: > "$out/commands.txt"
vista=(--scanner ge-explore-vista-dr --grid 64,64,64 --voxel-mm 0.8,0.8,0.65)
case $steps in *" info "*)
    timed info-first info
    timed info-second info
    ;;
esac
case $steps in *" vista "*)
    timed vista-counts simulate "${vista[@]}" --phantom derenzo --counts 4e7 --backend native -o counts.h5
    for run in first second third; do
        timed "vista-osem-$run" recon "${vista[@]}" --data counts.h5 --algorithm osem --subsets 4 \
            --iterations 8 --verbose -o "vista-$run.npy"
    done
    ;;
esac
case $steps in *" native "*)
    timed vista-osem-native recon "${vista[@]}" --data counts.h5 --algorithm osem --subsets 4 \
        --iterations 8 --backend native --store no -o vista-native.npy
    python3 - <<'PY' | tee -a "$out/commands.txt"
import numpy as np
a, b = (np.load(f"vista-{n}.npy").astype(float) for n in ("second", "native"))
print(f"vista-osem: default from native, relative L2 {np.linalg.norm(a - b) / np.linalg.norm(b):.1e}")
PY
    ;;
esac
case $steps in *" mmr "*)
    list=$(find "${LORASTER_DATA:?}" -name 'small_listmode_file.l' | head -n 1)
    for run in first second third; do
        timed "mmr-list-$run" recon --scanner siemens-mmr --events "$list" --grid 90,90,32 \
            --voxel-mm 6.6,6.6,8.1 --algorithm osem --subsets 7 --iterations 3 --verbose -o "head-$run.nii.gz"
    done
    ;;
esac
case $steps in *" demo "*)
    for run in first second; do timed "demo-$run" demo -o "demo-$run"; done
    ;;
esac
case $steps in *" matrix "*)
    for backend in compute native; do
        timed "matrix-$backend" matrix "${vista[@]}" --backend "$backend" -o "$backend.h5" --verbose
        ls -l "$backend.h5" | tee -a "$out/commands.txt"
        rm -f "$backend.h5"
    done
    ;;
esac
case $steps in *" view "*)
    for scanner in ge-explore-vista-dr siemens-mmr; do
        timed "view-$scanner" view --no-window --scanner "$scanner" --bench-frames 300
    done
    ;;
esac
case $steps in *" raster "*)
    timed bench-raster bench correspondence --workload pair --backend raster,compute --mode sampled \
        --size full --seconds 6 -o "$out/bench-raster.json"
    ;;
esac
case $steps in *" direct "*)
    timed direct-storages bench direct --backend cuda --storage both --workload clinical \
        --no-fourier --seconds 1 -o "$out/direct-storages.json"
    ;;
esac
exit $failed
