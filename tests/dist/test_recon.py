#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""recon by several ranks: the images of one process, guesses composed, and what goes wrong.

usage: test_recon.py LORASTER RANKS TOPIC
"""
import array
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ranks import FULL, HANG_S, environment, mpirun, need_mpirun, run_topics

program = sys.argv[1]
need_mpirun(program)
folder = tempfile.TemporaryDirectory()
ENVIRONMENT = dict(environment(program), LORASTER_LIBEXEC=str(Path(program).parent))
os.environ["LORASTER_LIBEXEC"] = str(Path(program).parent)

RING = """\
name: small ring
ring: {radius_mm: 30, modules: 8, rings: 1}
module: {crystals: [4, 4], pitch_mm: [4, 4], face_mm: [3.8, 3.8], depth_mm: 10}
coincidence: {field_of_view_mm: 30}
tof: {resolution_ps: 400}
"""
GRID = ["--grid", "12,11,5", "--voxel-mm", "2"]
# Sums of floats over all LORs, taken in parts, differ by some 1e-7 in each of ten iterations.
CLOSE = 1e-5


def path(name):
    return str(Path(folder.name) / name)


def run(*words, code=0):
    done = subprocess.run([program, *map(str, words)], env=ENVIRONMENT, capture_output=True,
                          text=True, timeout=HANG_S)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stderr}"
    return done


def ranks(count, *words, code=0):
    return mpirun(program, count, program, *words, code=code)


def image(name):
    raw = Path(path(name)).read_bytes()
    return array.array("f", raw[352:])


def apart(a, b):
    a, b = image(a), image(b)
    return max(abs(x - y) for x, y in zip(a, b)) / max(a)


def ring():
    Path(path("ring.yaml")).write_text(RING)
    return ["--scanner", path("ring.yaml")]


def counts():
    """The arguments of a reconstruction from LOR data."""
    words = ring()
    run("simulate", *words, *GRID, "--phantom", "spheres", "--counts", 20000, "--backend", "native",
        "--truth", path("truth.nii"), "-o", path("d.h5"))
    return ["recon", *words, *GRID, "--data", path("d.h5"), "--backend", "native"]


def events():
    words = ring()
    run("simulate", *words, *GRID, "--phantom", "spheres", "--counts", 3000, "--tof-ps", 400, "-o",
        path("e.petsird"))
    return ["recon", "--operator", "listmode", *words, *GRID, "--events", path("e.petsird"),
            "--backend", "native"]


def histo():
    events()
    run("direct", "deposit", "--events", path("e.petsird"), "--grid", "20,20,5", "--voxel-mm", 2,
        "--azimuths", 6, "--tilts", 1, "--backend", "cpu", "-o", path("h.h5"))
    return ["recon", "--operator", "direct", "--data", path("h.h5"), "--backend", "cpu", "--fit",
            "--tof-ps", 50, "--radial-mm", 4, "--axial-mm", 4]


def compare(words, sizes, *more):
    """Ten iterations of one process and of several ranks."""
    words = [*words, "--iterations", 10, *more]
    run(*words, "-o", path("one.nii"))
    for size in sizes:
        ranks(size, *words, "-o", path("x.nii"))
        assert apart("one.nii", "x.nii") < CLOSE, f"{size} ranks: {apart('one.nii', 'x.nii')}"


def exact():
    words = [*counts(), "--deterministic"]
    compare(words, (2, 5), "--algorithm", "osem", "--subsets", 4)
    compare(words, (3,), "--psf-mm", 3)
    compare(words, (2,), "--algorithm", "bsrem", "--subsets", 3, "--prior", "rdp", "--beta", 1e-3)
    ranks(2, *words, "--iterations", 10, "-o", path("a.nii"))
    ranks(2, *words, "--iterations", 10, "-o", path("b.nii"))
    assert image("a.nii") == image("b.nii"), "two runs of two ranks differ"
    found = json.loads(ranks(3, *words, "--iterations", 2, "--json", "-o", path("a.nii")).stdout)
    alone = json.loads(run(*words, "--iterations", 2, "--json", "-o", path("a.nii")).stdout)
    assert found["ranks"]["count"] == 3 and found["iterations"][1]["sent_bytes"] > 0
    for key in ("log_likelihood", "measured_counts", "estimated_counts", "sensitive_counts"):
        a, b = found["iterations"][1][key], alone["iterations"][1][key]
        assert abs(a - b) <= 1e-6 * abs(b), f"{key}: {a} and {b}"


def families():
    listmode, direct = events(), histo()
    compare(listmode, (3,), "--algorithm", "osem", "--subsets", 3)
    compare(direct, (2,), "--algorithm", "osem", "--subsets", 3)
    if not FULL:
        return
    for words in (listmode, direct, [*counts(), "--deterministic"]):
        for algorithm in (["mlem"], ["osem", "--subsets", 2], ["ramla", "--subsets", 4],
                          ["bsrem", "--subsets", 2]):
            compare(words, (2, 3, 5), "--algorithm", *algorithm)
    compare(counts()[:-2] + ["--backend", "cpu"], (2, 3, 5))
    compare(counts()[:-2] + ["--backend", "compute"], (2, 3, 5), "--algorithm", "osem")
    compare(listmode, (2,), "--kernel", "exact")
    compare(listmode, (2,), "--blobs")
    frames = [*listmode, "--frames", "20,20,20", "--iterations", 5]
    run(*frames, "-o", path("f.nii"))
    ranks(3, *frames, "-o", path("g.nii"))
    for k in (1, 2, 3):
        assert apart(f"f-{k}.nii", f"g-{k}.nii") < CLOSE


def compute():
    """On the software renderer, which the ranks share."""
    words = [*counts()[:-2], "--backend", "compute", "--iterations", 2]
    run(*words, "-o", path("one.nii"))
    ranks(2, *words, "-o", path("x.nii"))
    assert apart("one.nii", "x.nii") < CLOSE


topics = {"exact": exact, "families": families, "compute": compute}
if __name__ == "__main__":
    run_topics(topics)
