#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole reconstructions of one simulated scan by several backends, compared.

    tools/compare_recon.py PROGRAM [--scanners A,B] [--subsets 1,4,7] [--backends compute]
                           [--against native] [--grid NX,NY,NZ] [--fov SHARE] [--iterations N]
                           [--counts N] [--samples N]

For each scanner, counts are simulated once; each backend then reconstructs them with each number of
subsets, nothing stored (`recon --algorithm osem --store no`). A backend is good when its image is
within 1e-4 (relative L2) of that of the one it is compared against and at most 1e-3 of the counts are
left out. Prints a line for each; the exit code is 0 only when all are good. Needs numpy."""
import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SCANNERS = "ge-explore-vista-dr,safir-dual-ring-prototype,siemens-mct,ge-discovery-mi,ge-signa-petmr"
MOST_GAP, MOST_LEFT_OUT = 1e-4, 1e-3


def run(program, *arguments):
    """The JSON that the program prints, and the seconds that it took."""
    start = time.monotonic()
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{program} {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout), time.monotonic() - start


def geometry(program, scanner, grid, share):
    """Grid options: `share` of the free space between the modules, in voxels that need not be cubes."""
    shown, _ = run(program, "scanner", "show", scanner)
    radius = shown["radius_mm"][0]
    length = shown["axial_mm"][1] - shown["axial_mm"][0]
    count = [int(n) for n in grid.split(",")]
    edge = 2.0 * share * radius / max(count[0], count[1])
    along = min(edge, 0.8 * length / count[2])
    return ["--scanner", scanner, "--grid", grid, "--voxel-mm", f"{edge:.4g},{edge:.4g},{along:.4g}"]


def reconstruct(program, options, data, backend, subsets, folder):
    output = str(folder / f"{backend}-{subsets}.npy")
    report, seconds = run(program, "recon", *options, "--data", data, "--algorithm", "osem",
                          "--subsets", str(subsets), "--backend", backend, "--store", "no",
                          "-o", output)
    last = report["iterations"][-1]
    counts = last["left_out_counts"] + last["measured_counts"]
    return np.load(output).astype(float), last["left_out_counts"] / counts, seconds


def compare(args, scanner, folder):
    options = geometry(args.program, scanner, args.grid, args.fov)
    data = str(folder / "counts.h5")
    run(args.program, "simulate", *options, "--phantom", "spheres", "--backend", args.against, "--samples", str(args.samples),
        "--counts", str(args.counts), "-o", data)
    options += ["--iterations", str(args.iterations), "--samples", str(args.samples)]
    good = True
    for subsets in args.subsets.split(","):
        wanted, _, slow = reconstruct(args.program, options, data, args.against, subsets, folder)
        for backend in args.backends.split(","):
            image, left_out, seconds = reconstruct(args.program, options, data, backend, subsets,
                                                   folder)
            gap = np.linalg.norm(image - wanted) / np.linalg.norm(wanted)
            is_good = gap <= MOST_GAP and left_out <= MOST_LEFT_OUT
            good = good and is_good
            print(f"{scanner:28s} {subsets:>3s} subsets  {backend} from {args.against}: {gap:8.1e}  "
                  f"left out {left_out:7.1e}  {seconds:6.1f} s ({args.against} {slow:.1f} s)  "
                  f"{'good' if is_good else 'FAILED'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--scanners", default=SCANNERS)
    parser.add_argument("--subsets", default="1,4,7")
    parser.add_argument("--backends", default="compute")
    parser.add_argument("--against", default="native")
    parser.add_argument("--grid", default="32,32,12")
    parser.add_argument("--fov", type=float, default=0.45)
    parser.add_argument("--iterations", type=int, default=2)
    parser.add_argument("--counts", type=float, default=3e6)
    parser.add_argument("--samples", type=int, default=1)
    args = parser.parse_args()
    good = True
    for scanner in args.scanners.split(","):
        with tempfile.TemporaryDirectory(prefix="loraster-compare-") as folder:
            good = compare(args, scanner, Path(folder)) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
