#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A wheel of tools/wheel.sh on machines that have nothing: bare roots of Debian 12 and 13 and Ubuntu 22.04 are made
# with debootstrap. In each, the wheel is installed for the distribution's own Python and for CPythons of this machine,
# and reconstructs by native; after Mesa also by raster and compute. The first CPython 3.11 does so beside torch, h5py
# and matplotlib. The viewer says what it lacks, and opens its window once X11 is there. A table is printed; the exit
# code is 0 only when nothing failed. What cannot be had is said.
#
# usage: tools/wheel_roots.sh [--pythons FOLDER] [--beside FOLDER] WHEEL [FOLDER]
#   --pythons FOLDER   of CPythons (FOLDER/3.12.1/bin/python3); roots see them read-only; default: ~/.pyenv/versions
#   --beside FOLDER    a virtual environment of one of them, with torch, h5py and matplotlib
#   FOLDER             keeps downloads for the next run, the last root, and logs; default: build/fresh
# Needs root, and debootstrap. LORASTER_ROOTS may name some of "bookworm jammy trixie", and bionic, whose glibc 2.27 and
# libstdc++ of GCC 8 need a CPython built for them in --pythons. LORASTER_IMPORT_LIMIT_S is how long importing may take
# the processor where that is not 0.15 s; NumPy is imported when it is first needed.
set -euo pipefail
self=$(realpath "$0")
# shellcheck source=tools/bare_root.sh
. "$(dirname "$self")/bare_root.sh"
ubuntu=http://archive.ubuntu.com/ubuntu
limit_s=${LORASTER_IMPORT_LIMIT_S:-0.15}

# The program of all checks: BACKEND... names those that must work, in this order.
write_try() {
    cat > "$root/srv/try.py" << 'END'
import sys

import loraster as lr
import numpy as np

try:
    lr.Scanner("nonsense")
    sys.exit("a scanner that does not exist was made")
except ValueError:
    pass
scanner = lr.Scanner.ring(
    radius_mm=50, modules=12, crystals=(6, 2), pitch_mm=4.0, face_mm=3.9, depth_mm=15,
    rings=1, ring_pitch_mm=18, field_of_view_mm=60)
grid, voxel_mm = (12, 12, 2), 4.0
truth = lr.phantom("spheres", grid, voxel_mm)
sums = {}
for backend in sys.argv[1:]:
    A = lr.Operator(scanner, grid, voxel_mm, backend=backend)
    y = np.asarray(A @ truth)
    # Expectation maximisation keeps counts: the sum of sensitivity times image is that of the data.
    image = np.asarray(lr.recon.osem(A, y, iterations=3))
    kept = float((A.sensitivity() * image).sum() / y.sum())
    assert abs(kept - 1) < 1e-4, f"{backend}: {kept} of the counts are kept"
    subsets = np.asarray(lr.recon.osem(A, y, iterations=3, subsets=2))
    assert abs(subsets.sum() / truth.sum() - 1) < 0.02, f"{backend}: {subsets.sum() / truth.sum()} of the activity"
    sums[backend] = float(y.sum())
    assert abs(sums[backend] / sums[sys.argv[1]] - 1) < 0.02, sums
END
}

# say PYTHON WHAT VERDICT: VERDICT is good, or begins with "skipped" or FAILED.
say() { printf '%s\t%s\t%s\t%s\t%s\n' "$suite" "$glibc" "$1" "$2" "$3" >> "$folder/roots.tsv"; }

# run NAME COMMAND...: in the root; says good or FAILED. What is said is kept in NAME.log.
run() {
    if enter /srv root "${@:2}" > "$folder/$suite-$1.log" 2>&1; then
        echo good
    else
        tail -3 "$folder/$suite-$1.log" >&2
        echo "FAILED, see $suite-$1.log"
    fi
}

# install VERSION PYTHON: makes /srv/VERSION in the root with the wheel, without the network.
install() {
    run "$1-install" sh -c "$2 -m venv --without-pip /srv/$1 && set -- /srv/wheels/pip-*.whl &&
        /srv/$1/bin/python \$1/pip install --no-index --find-links /srv/wheels/$1 /srv/wheels/loraster-*.whl"
}

# import_time VERSION: says the least of nine tries, in seconds, once its files have been read, and of up to fifty where
# that exceeds the limit. What may not exceed it is the processor's time, which on an idle machine is all of it, and on
# a busy one, whose processors share caches and clocks, the least still tells what importing costs.
import_time() {
    local code='import time as t; wall, own = t.perf_counter(), t.thread_time(); import loraster
print("%.3f %.3f" % (t.thread_time() - own, t.perf_counter() - wall), end=" "); loraster.Operator
print("%.3f" % (t.perf_counter() - wall))' times="" tries=0 least
    enter /srv root "/srv/$1/bin/python" -c "$code" > "$folder/$suite-$1-import.log"
    while [ $tries -lt 9 ] || { [ $tries -lt 50 ] && awk -v limit="$limit_s" '{ exit !($1 > limit) }' <<< "$least"; }; do
        times+=$(enter /srv root "/srv/$1/bin/python" -c "$code")$'\n' tries=$((tries + 1))
        least=$(sed '/^$/d' <<< "$times" | sort -n | head -1)
    done
    awk -v limit="$limit_s" \
        '{ print $2 " (" $1 " of the processor), with NumPy " $3 ($1 > limit ? ": FAILED, more than " limit : "") }' \
        <<< "$least"
}

# no_view VERSION WHAT SENTENCE: the viewer, which lacks WHAT, says so.
no_view() {
    local log=$suite-$1-no-view.log
    run "$1-no-view" env DISPLAY=:0 "/srv/$1/bin/loraster" view > /dev/null 2>&1
    if grep -q "$3" "$folder/$log"; then
        say "$1" "view without $2 says so" good
    else
        say "$1" "view without $2 says so" "FAILED, see $log"
    fi
}

# view VERSION: a virtual screen serves.
view() {
    local verdict steps="wait\npoint 5 3 2\nwait\nscreenshot view.png\n"
    verdict=$(run x11 apt-get -qq install -y --no-install-recommends \
        xvfb xauth libx11-6 libxcursor1 libxi6 libxinerama1 libxrandr2)
    [ "$verdict" != good ] || verdict=$(run "$1-view" sh -c "printf '$steps' > steps && test ! -e view.png &&
        xvfb-run -a -s '-screen 0 1280x800x24' /srv/$1/bin/loraster view --scanner ge-explore-vista-dr --script steps &&
        test -s view.png")
    say "$1" "view after X11" "$verdict"
}

# Modules with libraries of their own (OpenMP, HDF5, FreeType) in one process, loaded before and after.
try_beside() {
    local site=$beside/lib/python3.11/site-packages order
    for order in loraster,torch,h5py,matplotlib.pyplot torch,loraster,h5py,matplotlib.pyplot matplotlib.pyplot,h5py,torch,loraster; do
        say 3.11 "import ${order//,/, }" "$(run "beside-${order//,/-}" env MPLBACKEND=agg "PYTHONPATH=$site" \
            /srv/3.11/bin/python -c "
import importlib, sys
for name in '$order'.split(','):
    importlib.import_module(name)
import h5py, loraster, matplotlib.pyplot as plt, numpy as np, torch
sys.argv = ['try.py', 'native', 'raster', 'compute']
exec(open('/srv/try.py').read())
assert float(torch.linalg.norm(torch.from_numpy(image))) > 0
with h5py.File('/srv/try.h5', 'w') as file:
    file['image'] = image
    assert np.array_equal(file['image'][()], image)
plt.imshow(image[1])
plt.savefig('/srv/try.png')
")"
    done
}

# All that happens in the namespace.
inside() {
    folder=$1 suite=$2 mirror=$3 pythons=$4 beside=$5 components=main
    [ "$mirror" != $ubuntu ] || components="main universe" updates=$suite-updates # whose Mesa is the one in use
    local python version verdict versions=()
    echo "== wheel_roots: $suite"
    make_root
    mkdir -p "$root/srv/wheels"
    mount --bind -o ro "$folder/wheels" "$root/srv/wheels"
    for python in "$pythons" "$beside"; do
        [ -d "$python" ] || continue
        mkdir -p "$root$python"
        mount --bind -o ro "$python" "$root$python"
    done
    write_try
    glibc=$(enter / root ldd --version | sed -n '1s/.* //p')
    verdict=$(run packages sh -c "apt-get -qq update && apt-get -qq install -y --no-install-recommends python3")
    if [ "$verdict" != good ]; then
        say - "apt-get install python3" "$verdict"
        return
    fi
    for python in /usr "$pythons"/3.1[0-9]*; do
        [ -x "$root$python/bin/python3" ] || continue
        if ! version=$(enter / root "$python/bin/python3" -c 'import ctypes, sys, zlib; print("%d.%d" % sys.version_info[:2])' 2> /dev/null); then
            say "$(basename "$python")" "all" "skipped: this CPython does not start here"
            continue
        fi
        [ ! -e "$root/srv/$version" ] || continue
        if [ ! -d "$folder/wheels/$version" ]; then
            say "$version" all "skipped: no NumPy for it was downloaded, which needs this CPython in --pythons"
            continue
        fi
        verdict=$(install "$version" "$python/bin/python3")
        say "$version" "pip install" "$verdict"
        [ "$verdict" = good ] || continue
        versions+=("$version")
        say "$version" "import loraster, s" "$(import_time "$version")"
        say "$version" "loraster --version" "$(run "$version-program" "/srv/$version/bin/loraster" --version)"
        say "$version" native "$(run "$version-native" "/srv/$version/bin/python" try.py native)"
    done
    [ "${#versions[@]}" -eq 0 ] || no_view "${versions[0]}" OpenGL 'no viewer: lib.*: install libglfw3, libegl1'
    if [ "$suite" = bionic ]; then
        say - "raster, compute, view" "skipped: its Mesa has no OpenGL 4.5"
        return
    fi
    verdict=$(run mesa apt-get -qq install -y --no-install-recommends libegl1 libgl1-mesa-dri libopengl0)
    if [ "$verdict" != good ]; then
        say - "apt-get install Mesa" "$verdict"
        return
    fi
    for version in "${versions[@]}"; do
        say "$version" "native, raster, compute" "$(run "$version-mesa" "/srv/$version/bin/python" try.py native raster compute)"
    done
    if [ "${#versions[@]}" -gt 0 ]; then
        no_view "${versions[0]}" "a screen" 'no screen to open a window on (X11: Failed to'
        view "${versions[0]}"
    fi
    if [ ! -d "$beside" ]; then
        say 3.11 "beside torch, h5py, matplotlib" "skipped: no --beside"
    elif [[ " ${versions[*]} " == *" 3.11 "* ]]; then
        try_beside
    fi
}

# Wheels of what the module needs, for each Python, as pip chooses them here.
download() {
    local python version
    for python in "$pythons"/3.1[0-9]*/bin/python3; do
        [ -x "$python" ] || continue
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        [ -d "$folder/wheels/$version" ] ||
            "$python" -m pip --disable-pip-version-check download -q --only-binary=:all: -d "$folder/wheels/$version" 'numpy>=1.23' 'nanobind-backend>=1'
        ls "$folder"/wheels/pip-*.whl > /dev/null 2>&1 ||
            "$python" -m pip --disable-pip-version-check download -q --only-binary=:all: -d "$folder/wheels" pip
    done
}

if [ "${1:-}" = --inside ]; then
    inside "${@:2}"
    exit
fi
pythons=~/.pyenv/versions beside=""
while [[ ${1:-} == --* ]] && [ $# -ge 2 ]; do
    case $1 in
        --pythons) pythons=$(realpath "$2") ;;
        --beside) beside=$(realpath "$2") ;;
        *) break ;;
    esac
    shift 2
done
if [ $# -lt 1 ] || [ $# -gt 2 ] || [ ! -f "$1" ]; then
    echo "usage: tools/wheel_roots.sh [--pythons FOLDER] [--beside FOLDER] WHEEL [FOLDER]" >&2
    exit 2
fi
require_root_and_tools
trap end_child EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
folder=${2:-$(dirname "$(dirname "$self")")/build/fresh}
mkdir -p "$folder/wheels"
folder=$(realpath "$folder")
rm -f "$folder/roots.tsv" "$folder"/wheels/loraster-*.whl
cp "$1" "$folder/wheels/"
download
debian=$(configured_mirror bookworm)
for suite in ${LORASTER_ROOTS:-bookworm jammy trixie}; do
    mirror=$debian glibc=-
    [[ $suite != @(jammy|bionic) ]] || mirror=$ubuntu
    if ! apart "$self" --inside "$folder" "$suite" "${mirror:-http://deb.debian.org/debian}" "$pythons" "$beside"; then
        say - all "FAILED: $(tail -1 "$folder/debootstrap.log")"
    elif grep -q 'Cannot check Release signature' "$folder/debootstrap.log"; then
        say - "debootstrap" "good; packages unverified, as this machine has no key of this distribution"
    fi
done
echo
column -t -s $'\t' -N root,glibc,Python,what,result "$folder/roots.tsv"
if grep -q FAILED "$folder/roots.tsv"; then
    echo "wheel_roots: FAILED"
    exit 1
fi
echo "wheel_roots: nothing failed"
