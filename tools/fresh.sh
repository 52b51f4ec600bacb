#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Both commands of README.md on a machine that has nothing: a bare Debian 12 root is made with
# debootstrap, HEAD is cloned into a folder of it whose name has a space, and there
# tools/quickstart.sh and tools/test.sh run, with no locale, no git, no ccache and no test data.
# Between the two, what the first has built is installed into an empty prefix, which is moved; from there
# the commands of README and guides run, examples/first.c against its library, and two ranks.
#
# usage: tools/fresh.sh [--mirror URL] [FOLDER]
#   --mirror URL   of Debian 12; default: what this machine's apt is configured to use
#   FOLDER         keeps downloaded packages for the next run, the root (root/), and the output of
#                  each step (*.log); default: a temporary folder that is removed at the end
# Needs root, and debootstrap. Mounts are in a namespace of their own, which ends with the last
# process in it, whatever stops this script. The exit code is 0 only when all is good.
set -euo pipefail
suite=bookworm
clone="/srv/a folder/loraster" # in the bare root
prefix=/srv/moved/loraster
# shellcheck source=tools/bare_root.sh
. "$(dirname "$(realpath "$0")")/bare_root.sh"

# In the clone.
enter_clone() { enter "$clone" "$@"; }

# say WHAT VERDICT [SECONDS]
say() {
    summary+=("$(printf '%-34s %-7s %s' "$1" "$2" "${3:-}")")
    [ "$2" = good ] || failed=1
}

# Somebody who may install nothing is told so.
refuse_without_root() {
    local said verdict=FAILED
    said=$(enter_clone nobody ./tools/quickstart.sh 2>&1) ||
        [[ $said != "error: run this as root, or install sudo"* ]] || verdict=good
    echo "quickstart.sh as nobody: $said" | cut -c1-120
    say "nobody is told to be root" "$verdict"
}

# run NAME COMMAND...: in the root; its output is kept in NAME.log.
run() {
    local start=$SECONDS verdict=good words="${*:2}"
    enter_clone root "${@:2}" 2>&1 | tee "$folder/$1.log" || verdict=FAILED
    [[ $words == ./tools/* ]] || words=$1
    say "$words" "$verdict" "$((SECONDS - start)) s"
}

# Commands of somebody after README's first command; no build, and nothing more installed.
use_it() {
    run install bash -ec "cmake --install build/release --prefix /opt/loraster
        mkdir -p ${prefix%/*} && mv /opt/loraster $prefix && test -f $prefix/share/doc/loraster/LICENSE"
    run library bash -ec "export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
        cc examples/first.c -o /tmp/first \$(pkg-config --cflags --libs loraster)
        cd /tmp && ./first && test -s first.nii.gz"
    run guides env LORASTER_EXAMPLE=/tmp/first LD_LIBRARY_PATH="$prefix/lib" \
        python3 -B tests/cli/test_documents.py "$prefix/bin/loraster" . documents
    # On one slot, as containers have: the flags are those of docs/guide/cluster.md.
    run ranks mpirun --allow-run-as-root --oversubscribe --host localhost:1 -n 2 "$prefix/bin/loraster" recon \
        --scanner ge-explore-vista-dr --grid 20,20,4 --voxel-mm 1.9 --data demo-out/counts.h5 --iterations 2 \
        -o /tmp/ranks.nii
}

# All that happens in the namespace.
inside() {
    folder=$1 mirror=$2 summary=() failed=0
    echo "== fresh: debootstrap $suite"
    make_root
    mkdir -p "$root$(dirname "$clone")"
    git -c advice.detachedHead=false clone -q "$folder/head.bundle" "$root$clone"
    refuse_without_root
    run quickstart ./tools/quickstart.sh
    use_it
    run test ./tools/test.sh
    echo
    echo "== fresh: summary of $(git -C "$root$clone" log -1 --format='%h %s')"
    printf '%s\n' "${summary[@]}"
    if [ "$failed" -ne 0 ]; then echo "fresh: FAILED"; else echo "fresh: all good"; fi
    exit "$failed"
}

if [ "${1:-}" = --inside ]; then
    inside "${@:2}"
fi
self=$(realpath "$0") mirror=""
if [ "${1:-}" = --mirror ] && [ $# -ge 2 ]; then
    mirror=$2
    shift 2
fi
if [ $# -gt 1 ] || [[ ${1:-} == -* ]]; then
    echo "usage: tools/fresh.sh [--mirror URL] [FOLDER]" >&2
    exit 2
fi
require_root_and_tools
[ -n "$mirror$(configured_mirror $suite)" ] || fail "apt is configured for no mirror of Debian 12: name one with --mirror URL"

folder=${1:-}
finish() {
    end_child
    rm -f "$folder/head.bundle"
    [ "$is_kept" = yes ] || rm -rf --one-file-system "$folder"
}
is_kept=yes
if [ -z "$folder" ]; then
    folder=$(mktemp -d) is_kept=no
fi
mkdir -p "$folder"
folder=$(realpath "$folder")
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
source=$(dirname "$(dirname "$self")")
git -c safe.directory="$source" -C "$source" bundle create -q "$folder/head.bundle" HEAD
code=0
apart "$self" --inside "$folder" "$mirror" || code=$?
exit "$code"
