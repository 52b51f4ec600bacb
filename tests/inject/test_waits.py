#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often a reconstruction waits for the device, and takes it anew: by the calls of OpenGL of one more
iteration. On a graphics processor each takes as long as some passes.

usage: test_waits.py PROGRAM FAIL_GL"""
import atexit, os, subprocess, sys, tempfile, unittest
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from program import preloadable

FAIL_GL, PROGRAM = preloadable(sys.argv.pop(2), atexit.register), sys.argv.pop(1)
HANG_S = 600
SUBSETS = 3
RING = """\
name: small ring
ring: {radius_mm: 30, modules: 8, rings: 1}
module: {crystals: [4, 4], pitch_mm: [4, 4], face_mm: [3.8, 3.8], depth_mm: 10}
coincidence: {field_of_view_mm: 30}
"""
GRID = ["--grid", "6,5,4", "--voxel-mm", "3"]


class Waits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="loraster-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "ring.yaml").write_text(RING)

    def run_program(self, *arguments, **more):
        done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False,
                              cwd=self.folder, timeout=HANG_S,
                              env=dict(os.environ, LORASTER_CACHE="off", LP_NUM_THREADS="1", **more))
        self.assertEqual(done.returncode, 0, done.stderr)

    def count(self, iterations, recon):
        calls = self.folder / "calls.txt"
        self.run_program(*recon, "--iterations", iterations, "-o", f"x{iterations}.nii",
                         INJECT_KIND="gl", INJECT_CALLS=str(calls), LD_PRELOAD=FAIL_GL,
                         ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")
        return Counter(calls.read_text().split())

    def an_iteration(self, recon):
        third = self.count(3, recon)
        third.subtract(self.count(2, recon))
        return third

    def test_correspondence(self):
        """An update waits once, for all of its sums; nothing else comes back, and no memory is asked for."""
        self.run_program("simulate", "--scanner", "ring.yaml", "--phantom", "spheres", *GRID, "--counts",
                         "20000", "-o", "y.h5")
        for mode in ("sampled", "exact"):
            calls = self.an_iteration(["recon", "--scanner", "ring.yaml", "--data", "y.h5", *GRID, "--mode",
                                       mode, "--backend", "compute", "--store", "no", "--algorithm", "osem",
                                       "--subsets", SUBSETS])
            self.assertEqual((calls["glClientWaitSync"], calls["glGetNamedBufferSubData"]), (SUBSETS, 0))
            self.assertEqual(calls["glNamedBufferStorage"], 0)
            self.assertLessEqual(calls["eglMakeCurrent"], 4)

    def test_direct(self):
        """The same with the fit; without it an iteration waits for its end alone."""
        self.run_program("phantom", "spheres", "--grid", "14,14,6", "--voxel-mm", "4", "-o", "a.nii")
        self.run_program("direct", "deposit", "--activity", "a.nii", "--scanner", "penn-labr3", "--count",
                         "3000", "--tof-ps", "400", "--azimuths", "4", "--tilts", "1", "-o", "y.h5")
        recon = ["recon", "--operator", "direct", "--data", "y.h5", "--tof-ps", "100", "--radial-mm", "4", "--axial-mm",
                 "4", "--support", "4", "--backend", "compute", "--algorithm", "ramla", "--subsets", 4]
        for more, waits in ((["--fit"], 4), ([], 1)):
            calls = self.an_iteration([*recon, *more])
            self.assertEqual(calls["glClientWaitSync"], waits, more)
            self.assertEqual(calls["glGetNamedBufferSubData"] + calls["glNamedBufferStorage"], 0, more)
            self.assertLessEqual(calls["eglMakeCurrent"], 8, more)


if __name__ == "__main__":
    unittest.main(verbosity=2)
