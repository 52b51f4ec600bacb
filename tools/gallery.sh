#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the pictures of docs/guide/gallery.md with the viewer's own scripts, and what the tests compare with:
#   tools/gallery.sh build/release [NAME...]
# Needs no screen. Pictures are docs/pictures/view-*.png, each below 300 KB.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
if [ $# -lt 1 ] || [ ! -x "$1/loraster" ]; then
    echo "usage: tools/gallery.sh BUILD [NAME...], where BUILD/loraster is the program" >&2
    exit 2
fi
program=$(cd "$1" && pwd)/loraster
shift
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for script in "$root"/tools/gallery/view-*.txt; do
        names+=("$(basename "$script" .txt)")
    done
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -B "$root/tools/gallery/inputs.py" "$folder"
for name in "${names[@]}"; do
    echo "$name"
    (cd "$folder" && "$program" view --no-window --quiet --script "$root/tools/gallery/$name.txt")
    python3 -B "$root/tools/gallery/png.py" "$folder/$name.png"
    bytes=$(stat -c %s "$folder/$name.png")
    if [ "$bytes" -gt 300000 ]; then
        echo "$name.png has $bytes bytes: more than 300000" >&2
        exit 1
    fi
    mv "$folder/$name.png" "$root/docs/pictures/$name.png"
done
