# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Bare roots made by debootstrap, for tools/fresh.sh and tools/wheel_roots.sh, which source this file and set
#   folder   keeps downloaded packages (packages/), the root (root/), and what debootstrap said
#   suite    of the distribution, as bookworm
#   mirror   URL of its packages, or nothing: what this machine's apt is configured to use for that suite
#   components, updates   with a mirror: other than main, and a second suite; they may be left unset
# Roots are made and entered within what `apart` starts.
# shellcheck disable=SC2154 # suite, folder and mirror are of whoever sources this file
root=""

fail() {
    echo "error: $1" >&2
    exit 1
}

# Prints the sources from which apt fetches a suite: "URI suite component" a line.
configured_sources() {
    command -v apt-get > /dev/null || return 0
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        grep -E " $1(-updates|-security)? main\$" | sort -u || true
}

# configured_mirror SUITE
configured_mirror() { configured_sources "$1" | sed -n "s/ $1 main\$//p" | head -1; }

# debootstrap asks the environment where apt asks its configuration.
export_proxy() {
    local proxy
    [ -z "${http_proxy:-}" ] || return 0
    proxy=$(apt-config dump Acquire::http::Proxy 2> /dev/null | sed -n 's/.*"\(.*\)";/\1/p')
    [ -z "$proxy" ] || [ "$proxy" = DIRECT ] || export http_proxy=$proxy
}

write_apt_configuration() {
    if [ -z "$mirror" ]; then
        configured_sources "$suite" | sed 's/^/deb /' > "$root/etc/apt/sources.list"
    else
        printf "deb $mirror %s ${components:-main}\\n" "$suite" ${updates:+"$updates"} > "$root/etc/apt/sources.list"
    fi
    # How the mirror is reached, and how old its lists may be.
    apt-config dump 2> /dev/null |
        grep -E '^Acquire::(https?::Proxy|Check-Valid-Until|Check-Date|Retries)[ :]' \
            > "$root/etc/apt/apt.conf.d/50mirror" || true
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

make_root() {
    root=$folder/root
    mkdir -p "$folder/packages"
    rm -rf --one-file-system "$root"
    export_proxy
    # All that a bare root holds is of main, and to search other components takes long.
    debootstrap --variant=minbase --cache-dir="$folder/packages" "$suite" "$root" \
        "${mirror:-$(configured_mirror "$suite")}" > "$folder/debootstrap.log" 2>&1 || {
        tail -5 "$folder/debootstrap.log" >&2
        fail "debootstrap failed; all that it said is in $folder/debootstrap.log"
    }
    write_apt_configuration
    mount_all
}

# enter PLACE USER COMMAND...: in a folder of the root, with the environment of somebody who has set nothing.
enter() {
    local name kept=()
    for name in http_proxy https_proxy no_proxy LORASTER_JOBS; do
        [ -z "${!name:-}" ] || kept+=("$name=${!name}")
    done
    # shellcheck disable=SC2016 # the root's shell expands them
    chroot --userspec="$2" "$root" env -i HOME=/root TERM=dumb "${kept[@]}" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        bash -c 'cd "$1" && shift && exec "$@"' enter "$1" "${@:3}" < /dev/null
}

require_root_and_tools() {
    local tool
    [ "$(id -u)" -eq 0 ] || fail "making a bare root needs root: sudo $0"
    for tool in debootstrap git unshare chroot; do
        command -v "$tool" > /dev/null || fail "no $tool: apt-get install debootstrap git util-linux"
    done
}

# apart COMMAND...: in namespaces of its own for mounts and processes, which end with it, whatever stops this script.
# Sets child, which end_child ends.
child=""
apart() {
    local code=0
    unshare --mount --pid --fork --kill-child "$@" &
    child=$!
    wait "$child" || code=$?
    child=""
    return "$code"
}

end_child() {
    [ -n "$child" ] || return 0 # it hears no other signal, and all that it began ends with it
    kill -KILL "$child" 2> /dev/null || true
    wait "$child" 2> /dev/null || true
}
