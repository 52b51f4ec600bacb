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

fail() {
    echo "error: $1" >&2
    exit 1
}

# What apt is configured to fetch for Debian 12: "URI suite component" a line.
configured_sources() {
    command -v apt-get > /dev/null || return 0
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        grep -E " $suite(-updates|-security)? main\$" | sort -u || true
}

write_apt_configuration() {
    if [ "$is_configured" = yes ]; then
        configured_sources | sed 's/^/deb /' > "$root/etc/apt/sources.list"
        # How the mirror is reached, and how old its lists may be.
        apt-config dump |
            grep -E '^Acquire::(https?::Proxy|Check-Valid-Until|Check-Date|Retries)[ :]' \
                > "$root/etc/apt/apt.conf.d/50mirror" || true
    else
        echo "deb $mirror $suite main" > "$root/etc/apt/sources.list"
    fi
    local file
    for file in resolv.conf hosts; do
        [ ! -e "/etc/$file" ] || cp -L "/etc/$file" "$root/etc/$file"
    done
}

# A /dev of its own: whatever removes the root does not reach the machine's.
mount_all() {
    local node
    mount -t proc proc "$root/proc"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    for node in null zero full random urandom tty; do
        touch "$root/dev/$node"
        mount --bind "/dev/$node" "$root/dev/$node"
    done
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    ln -s fd/0 "$root/dev/stdin"
    ln -s fd/1 "$root/dev/stdout"
    ln -s fd/2 "$root/dev/stderr"
    mount --bind "$folder/packages" "$root/var/cache/apt/archives"
}

# debootstrap asks the environment where apt asks its configuration.
export_proxy() {
    local proxy
    [ -z "${http_proxy:-}" ] || return 0
    proxy=$(apt-config dump Acquire::http::Proxy 2> /dev/null | sed -n 's/.*"\(.*\)";/\1/p')
    [ -z "$proxy" ] || [ "$proxy" = DIRECT ] || export http_proxy=$proxy
}

make_root() {
    echo "== fresh: debootstrap $suite"
    export_proxy
    debootstrap --variant=minbase --cache-dir="$folder/packages" "$suite" "$root" "$mirror" \
        > "$folder/debootstrap.log" 2>&1 || {
        tail -5 "$folder/debootstrap.log" >&2
        fail "debootstrap failed; all that it said is in $folder/debootstrap.log"
    }
    write_apt_configuration
    mount_all
    mkdir -p "$root$(dirname "$clone")"
    git -c advice.detachedHead=false clone -q "$folder/head.bundle" "$root$clone"
}

# enter USER COMMAND...: in the clone, with the environment of somebody who has set nothing.
enter() {
    local name kept=()
    for name in http_proxy https_proxy no_proxy LORASTER_JOBS; do
        [ -z "${!name:-}" ] || kept+=("$name=${!name}")
    done
    # shellcheck disable=SC2016 # the root's shell expands them
    chroot --userspec="$1" "$root" env -i HOME=/root TERM=dumb "${kept[@]}" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        bash -c 'cd "$1" && shift && exec "$@"' enter "$clone" "${@:2}" < /dev/null
}

# say WHAT VERDICT [SECONDS]
say() {
    summary+=("$(printf '%-34s %-7s %s' "$1" "$2" "${3:-}")")
    [ "$2" = good ] || failed=1
}

# Somebody who may install nothing is told so.
refuse_without_root() {
    local said verdict=FAILED
    said=$(enter nobody ./tools/quickstart.sh 2>&1) ||
        [[ $said != "error: run this as root, or install sudo"* ]] || verdict=good
    echo "quickstart.sh as nobody: $said" | cut -c1-120
    say "nobody is told to be root" "$verdict"
}

# run NAME COMMAND...: in the root; its output is kept in NAME.log.
run() {
    local start=$SECONDS verdict=good words="${*:2}"
    enter root "${@:2}" 2>&1 | tee "$folder/$1.log" || verdict=FAILED
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
    folder=$1 mirror=$2 is_configured=$3 root=$1/root summary=() failed=0
    make_root
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
self=$(realpath "$0") mirror="" is_configured=no
if [ "${1:-}" = --mirror ] && [ $# -ge 2 ]; then
    mirror=$2
    shift 2
fi
if [ $# -gt 1 ] || [[ ${1:-} == -* ]]; then
    echo "usage: tools/fresh.sh [--mirror URL] [FOLDER]" >&2
    exit 2
fi
[ "$(id -u)" -eq 0 ] || fail "making a bare Debian root needs root: sudo tools/fresh.sh"
for tool in debootstrap git unshare chroot; do
    command -v "$tool" > /dev/null || fail "no $tool: apt-get install debootstrap git util-linux"
done
if [ -z "$mirror" ]; then
    mirror=$(configured_sources | sed -n "s/ $suite main\$//p" | head -1)
    is_configured=yes
fi
[ -n "$mirror" ] || fail "apt is configured for no mirror of Debian 12: name one with --mirror URL"

folder=${1:-} child=""
finish() {
    if [ -n "$child" ]; then # it hears no other signal, and all that it began ends with it
        kill -KILL "$child" 2> /dev/null || true
        wait "$child" 2> /dev/null || true
    fi
    rm -f "$folder/head.bundle"
    [ "$is_kept" = yes ] || rm -rf --one-file-system "$folder"
}
is_kept=yes
if [ -z "$folder" ]; then
    folder=$(mktemp -d) is_kept=no
fi
mkdir -p "$folder/packages"
folder=$(realpath "$folder")
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
source=$(dirname "$(dirname "$self")")
git -c safe.directory="$source" -C "$source" bundle create -q "$folder/head.bundle" HEAD
rm -rf --one-file-system "$folder/root"
unshare --mount --pid --fork --kill-child "$self" --inside "$folder" "$mirror" "$is_configured" &
child=$! code=0
wait "$child" || code=$?
child=""
exit "$code"
