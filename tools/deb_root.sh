#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian's packages of tools/deb.sh on a machine that has nothing: a bare Debian 12 is made with debootstrap, where all
# packages are installed, used as README and guides say, and purged. The exit code is 0 only when all is good.
#
# usage: tools/deb_root.sh [--mirror URL] PACKAGES [FOLDER]
#   PACKAGES   folder of the .deb files
#   FOLDER     keeps downloads for the next run, the root, and the output of each step (*.log); default: build/deb-root
# Needs root, and debootstrap.
# shellcheck disable=SC2016,SC2154 # the root's shell expands scripts; make_root sets root
set -euo pipefail
self=$(realpath "$0")
suite=bookworm
# shellcheck source=tools/bare_root.sh
. "$(dirname "$self")/bare_root.sh"

# try NAME SCRIPT: by bash in the root, in a folder of its own.
try() {
    local start=$SECONDS verdict=good
    enter /srv/try root bash -euc "$2" > "$folder/$1.log" 2>&1 || {
        tail -5 "$folder/$1.log" >&2
        verdict="FAILED, see $folder/$1.log"
        failed=1
    }
    printf '%-14s %4d s  %s\n' "$1" $((SECONDS - start)) "$verdict"
}

inside() {
    folder=$1 mirror=$2 failed=0
    make_root
    mkdir -p "$root/srv/try" "$root/srv/packages"
    cp "$3"/*.deb "$root/srv/packages"
    try install 'apt-get update -qq; apt-get install -qq -y --no-install-recommends /srv/packages/*.deb libgl1-mesa-dri'
    try demo 'loraster demo --quick; test -s demo-out/panel.png'
    try backends 'loraster info | tee info; for b in native compute raster; do loraster sensitivity \
        --scanner two-opposed-modules --grid 5,4,3 --voxel-mm 4 --backend $b -o $b.nii; done'
    try view 'printf "wait\n" > steps; loraster view --scanner two-opposed-modules --no-window --script steps'
    try ranks 'apt-get install -qq -y --no-install-recommends openmpi-bin
        scanner="--scanner ge-explore-vista-dr --grid 20,20,4 --voxel-mm 1.9"
        loraster simulate $scanner --phantom derenzo --counts 200000 -o counts.h5
        mpirun --allow-run-as-root --oversubscribe --host localhost:1 -n 2 loraster recon $scanner --data counts.h5 \
            --iterations 1 -o ranks.nii'
    compgen -G "$3/python3-loraster*.deb" > /dev/null && try python 'python3 -c "
import loraster as lr
A = lr.Operator(lr.Scanner(\"two-opposed-modules\"), (5, 4, 3), 4.0)
x = lr.phantom(\"spheres\", (5, 4, 3), 4.0)
print(A.info[\"backend\"], lr.recon.osem(A, A @ (x + 1), iterations=2).sum())"'
    try manual 'apt-get install -qq -y --no-install-recommends man-db; man loraster-recon | grep -- --iterations'
    try completion 'apt-get install -qq -y --no-install-recommends bash-completion zsh fish
        . /usr/share/bash-completion/bash_completion; _completion_loader loraster || [ $? = 124 ]
        COMP_WORDS=(loraster reco) COMP_CWORD=1; _loraster loraster; test "${COMPREPLY[0]}" = recon
        fish -c "complete -C \"loraster reco\"" | grep ^recon
        zsh -c "autoload -U compinit; compinit -D; whence -v _loraster" | grep autoload'
    try library 'apt-get install -qq -y --no-install-recommends gcc g++ libc6-dev pkg-config cmake make
        cp /usr/share/doc/loraster/examples/first.c .; cc first.c $(pkg-config --cflags --libs loraster); ./a.out
        mv first.nii.gz pkg-config.nii.gz
        printf "%s\n" "cmake_minimum_required(VERSION 3.25)" "project(mine)" "find_package(loraster REQUIRED)" \
            "add_executable(first first.c)" "target_link_libraries(first loraster::loraster)" > CMakeLists.txt
        cmake -B b; cmake --build b; b/first; cmp first.nii.gz pkg-config.nii.gz'
    try purge 'apt-get purge -qq -y "*loraster*"; rm -r /srv/*; left=$(find / -xdev -iname "*loraster*" -o -xdev -name \
        "*liblr.so*" | grep -v ^/var/cache/man/ || true); echo "left: $left"; test -z "$left"
        ! dpkg-query -W -f "\${Package} \${db:Status-Status}\n" "*loraster*" | grep -v not-installed'
    exit "$failed"
}

if [ "${1:-}" = --inside ]; then
    inside "${@:2}"
fi
mirror=""
if [ "${1:-}" = --mirror ] && [ $# -ge 2 ]; then
    mirror=$2
    shift 2
fi
if [ $# -lt 1 ] || [ $# -gt 2 ] || ! ls "$1"/*.deb > /dev/null; then
    echo "usage: tools/deb_root.sh [--mirror URL] PACKAGES [FOLDER]" >&2
    exit 2
fi
require_root_and_tools
[ -n "$mirror$(configured_mirror $suite)" ] || fail "apt is configured for no mirror of Debian 12: name one with --mirror URL"
folder=${2:-$(dirname "$self")/../build/deb-root}
mkdir -p "$folder"
folder=$(realpath "$folder")
trap end_child EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
code=0
apart "$self" --inside "$folder" "$mirror" "$(realpath "$1")" || code=$?
exit "$code"
