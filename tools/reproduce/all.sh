#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Computes all results of docs/reproduce/README.md that commands compute.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

usage() {
    cat <<'END'
usage: tools/reproduce/all.sh [options]
  --size NAME        small: 30 minutes on two idle cores (default); paper: for a graphics processor
  --out FOLDER       where everything goes; default build/reproduce-SIZE
  --program FILE     default build/release/loraster
  --no-figures       makes no figures, and so needs no python3-matplotlib
Computes all results of docs/reproduce/README.md that commands compute: runs the other scripts of this folder and
loraster bench one after the other. Each has a folder or a file of results in FOLDER, and a log. A line is printed for
each, with its time. If any of them fails, the others still run, and the exit code is 1.
END
}

out='' program=$root/build/release/loraster size=small figures=yes
source "$root/tools/reproduce/common.sh"
read_options "$@"
case "$size" in
small)
    direct=() ranks=(--backend raster --mode sampled)
    passes=(--workload pair --backend raster --mode sampled --grid 16,16,16 --repeat 1)
    tables=(--workload clinical --case invariant --backend cpu --no-fourier)
    ;;
paper)
    direct=(--counts 430000000 --iterations 20 --relaxation 0.05) ranks=(--ranks 5)
    passes=(--workload pair --backend raster,compute --mode sampled --size full --repeat 1)
    tables=(--paper --backend cuda)
    ;;
*)
    echo "error: --size $size: there are small and paper" >&2
    exit 2
    ;;
esac
: "${out:=$root/build/reproduce-$size}"
check_tools
export PYTHON=$python
plain=()
[ "$figures" = no ] && plain=(--no-figures)
mkdir -p "$out"
out=$(realpath "$out") failed=0

# row NAME WHAT COMMAND...: its output goes to NAME.log
row() {
    local name=$1 what=$2 start=$SECONDS code=0
    shift 2
    "$@" >"$out/$name.log" 2>&1 || code=$?
    [ "$code" -eq 0 ] || failed=1
    printf '%-52s %6d s  %s\n' "$what" $((SECONDS - start)) \
        "$([ "$code" -eq 0 ] && echo "done" || echo "exit code $code: $out/$name.log")"
}

# bench NAME WHAT ARGUMENT...: its figures as JSON, and as tables in NAME.log
bench() {
    local name=$1 what=$2
    shift 2
    # shellcheck disable=SC2016 # the inner shell's arguments
    row "$name" "$what" bash -c '"$1" bench "${@:4}" -o "$3" && "$2" "$3"' bash "$program" "$root/tools/bench_table.py" \
        "$out/$name.json" "$@"
}

script() { # NAME WHAT ARGUMENT...
    local name=$1 what=$2
    shift 2
    row "$name" "$what" "$root/tools/reproduce/$name.sh" --size "$size" "${plain[@]}" --program "$program" --out "$out/$name" "$@"
}

script cluster "cluster paper: figures 5, 7, 8, 9"
script cluster_ranks "cluster paper: figure 6, section V" "${ranks[@]}"
bench passes "cluster paper: times by pass" correspondence "${passes[@]}" --seconds 4
script direct "DIRECT: figures 4 to 10; caches: figures 4 and 5" "${direct[@]}"
bench direct_tables "DIRECT: tables II, III, IV; caches: table 2" direct "${tables[@]}" --seconds 0.2 --repeat 1
script listmode "list mode: figures 3, 5 to 9, tables I to V"
exit "$failed"
