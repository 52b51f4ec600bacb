#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often a reconstruction waits for the device, and takes it anew: by the calls of OpenGL of one more
iteration. On a graphics processor each takes as long as some passes."""
import os, sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from program import ProgramTest, main, preloadable, preloading

SUBSETS = 3
GRID = "--grid 6,5,4 --voxel-mm 3"


class Waits(ProgramTest):
    def an_iteration(self, recon):
        """The calls of three iterations that those of two have not."""
        found = []
        library = preloadable(os.environ["LORASTER_FAIL_GL"], self.addCleanup)
        for count in (3, 2):
            self.good(f"{recon} --iterations {count} -o x{count}.nii", env=preloading(
                library, LP_NUM_THREADS="1", INJECT_KIND="gl", INJECT_CALLS=self.path("calls.txt")))
            found.append(Counter(Path("calls.txt").read_text().split()))
        found[0].subtract(found[1])
        return found[0]

    def test_correspondence(self):
        """An update waits once, for all of its sums; nothing else comes back, and no memory is asked for."""
        self.good(f"simulate --scanner ring.yaml --phantom spheres {GRID} --counts 20000 -o y.h5")
        for mode in ("sampled", "exact"):
            calls = self.an_iteration(f"recon --scanner ring.yaml --data y.h5 {GRID} --mode {mode} --backend compute "
                                      f"--store no --algorithm osem --subsets {SUBSETS}")
            self.assertEqual((calls["glClientWaitSync"], calls["glGetNamedBufferSubData"]), (SUBSETS, 0))
            self.assertEqual(calls["glNamedBufferStorage"], 0)
            self.assertLessEqual(calls["eglMakeCurrent"], 4)

    def test_direct(self):
        """The same with the fit; without it an iteration waits for its end alone."""
        self.good("phantom spheres --grid 14,14,6 --voxel-mm 4 -o a.nii")
        self.good("direct deposit --activity a.nii --scanner penn-labr3 --count 3000 --tof-ps 400 --azimuths 4",
                  "--tilts 1 -o y.h5")
        for more, waits in (("--fit", 4), ("", 1)):
            calls = self.an_iteration("recon --operator direct --data y.h5 --tof-ps 100 --radial-mm 4 --axial-mm 4 "
                                      f"--support 4 --backend compute --algorithm ramla --subsets 4 {more}")
            self.assertEqual(calls["glClientWaitSync"], waits, more)
            self.assertEqual(calls["glGetNamedBufferSubData"] + calls["glNamedBufferStorage"], 0, more)
            self.assertLessEqual(calls["eglMakeCurrent"], 8, more)


main({"waits": Waits})
