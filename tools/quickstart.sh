#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian 12 to reconstructed images: installs what is missing, builds all that users need, runs
# the demo, then writes counts into a file and reconstructs an image from that.
# Options are handed to `loraster demo`, for instance: tools/quickstart.sh --quick -o /tmp/demo
set -euo pipefail
started_in=$PWD folder=demo-out
for ((k = 1; k < $#; k++)); do
    next=$((k + 1))
    [ "${!k}" != -o ] || folder=${!next}
done
cd "$(dirname "$0")/.."

./tools/install_packages.sh build run
echo "== building LORaster in build/release"
cmake -S . -B build/release -G Ninja -DCMAKE_BUILD_TYPE=Release
# All but the tests: `cmake --install build/release` has what it needs then, and `loraster bench` works.
cmake --build build/release --target loraster lr loraster-bench
program=$PWD/build/release/loraster
echo "== running: $program demo $*"
cd "$started_in"
"$program" demo "$@"
[ -d "$folder" ] || exit 0 # --help
echo "== counts in a file, and an image from it: $folder/counts.h5, $folder/counts-image.nii.gz"
on=(--scanner ge-explore-vista-dr --grid 20,20,4 --voxel-mm 1.9 --quiet)
"$program" simulate "${on[@]}" --phantom derenzo --counts 1000000 -o "$folder/counts.h5"
"$program" recon "${on[@]}" --data "$folder/counts.h5" --algorithm osem --subsets 4 --iterations 2 \
    -o "$folder/counts-image.nii.gz"
echo "== all of it works: the program is $program, and"
echo "   cmake --install build/release && ldconfig   (as root) installs it"
