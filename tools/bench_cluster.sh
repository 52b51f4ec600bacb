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
        mpirun --oversubscribe -n "$ranks" ${MPIRUN_OPTIONS:-} "$program" bench cluster "${options[@]}" >> "$part"
    done
done
{ echo "[" && paste -sd , "$part" && echo "]"; } > "$out.part" && mv "$out.part" "$out"
"$root/tools/bench_table.py" "$out"
