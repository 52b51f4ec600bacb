#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs those packages of packages.txt that are missing: install_packages.sh PURPOSE...
# where a purpose is build, run, test or reproduce; default: build run. Says what it does; does nothing when nothing is missing.
set -euo pipefail
[ $# -gt 0 ] || set -- build run
list="$(dirname "$0")/packages.txt"

missing=()
while read -r package purpose _; do
    case " $* " in
    *" $purpose "*) ;;
    *) continue ;;
    esac
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing+=("$package")
done < <(sed 's/#.*//; /^[[:space:]]*$/d' "$list")

if [ ${#missing[@]} -eq 0 ]; then
    echo "== packages: nothing is missing"
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "error: this is not Debian: install what corresponds to: ${missing[*]}" >&2
    exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "error: run this as root, or install sudo; missing packages: ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
install() {
    # env: sudo would drop the variable.
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "${missing[@]}"
}
echo "== packages: installing ${missing[*]}"
# Package lists that are there are used as they are; they are renewed when that does not do.
if ! { apt-cache show "${missing[@]}" >/dev/null 2>&1 && install; }; then
    echo "== packages: renewing the package lists"
    "${as_root[@]}" apt-get update
    install
fi
