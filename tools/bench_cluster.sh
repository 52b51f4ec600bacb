#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Strong and weak scaling of `loraster bench cluster`: by 1, 2, 3 and 5 ranks, into a table and one JSON file.
# usage: tools/bench_cluster.sh OUT.json [RANKS...] [-- OPTIONS OF bench cluster...]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
program=${LORASTER:-$root/build/release/loraster}
if [ $# -lt 1 ]; then
    sed -n '3,4s/^# //p' "$0" >&2
    exit 2
fi
out=$1
shift
counts=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    counts+=("$1")
    shift
done
[ "${1:-}" = -- ] && shift
[ ${#counts[@]} -gt 0 ] || counts=(1 2 3 5)
command -v mpirun >/dev/null || {
    echo "error: there is no mpirun: install openmpi-bin" >&2
    exit 2
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # who is not root needs neither
part=$(mktemp "$out.XXXXXX")
trap 'rm -f "$part"' EXIT
for scaling in strong weak; do
    for ranks in "${counts[@]}"; do
        options=("$@")
        [ "$scaling" = weak ] && options+=(--weak)
        echo "== $scaling, $ranks ranks" >&2
        mpirun --oversubscribe -n "$ranks" ${MPIRUN_OPTIONS:-} "$program" bench cluster --json "${options[@]}" | tee -a "$part" >/dev/null
    done
done
python3 - "$part" "$out" <<'END'
import json
import os
import sys

runs = [json.loads(line) for line in open(sys.argv[1]) if line.strip()]
alone = {run["scaling"]: run["schemes"][0]["seconds"] for run in runs if run["rank_count"] == 1}
print("| scaling | ranks | scheme | seconds | project | exchange | wait | compose | over one |")
print("|---|---|---|---|---|---|---|---|---|")
for run in runs:
    for found in run["schemes"]:
        first = alone.get(run["scaling"])
        over = f"{first / found['seconds']:.2f}" if first else ""
        print(f"| {run['scaling']} | {run['rank_count']} | {found['scheme']} "
              f"| {found['seconds']:.3f} | {found['project_seconds']:.3f} "
              f"| {found['exchange_seconds']:.3f} | {found['waiting_seconds']:.3f} "
              f"| {found['compose_seconds']:.3f} | {over} |")
with open(sys.argv[2] + ".part", "w") as file:
    json.dump(runs, file, indent=1)
os.rename(sys.argv[2] + ".part", sys.argv[2])
END
