#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo from end to end: its files, its figures, and rods that stand apart in its image.

usage: test_demo.py PROGRAM [--full]     --full: full size, within 5 minutes of two processors and 6 GiB"""
import json, os, re, resource, subprocess, sys, tempfile, unittest
from pathlib import Path

from program import png_size, read_nifti

PROGRAM = str(Path(sys.argv[1]).resolve())
FULL = "--full" in sys.argv[2:]
# Smallest rods that must stand apart, mm, and number of voxels across.
LEAST_ROD_MM = 2.4 if FULL else 4.0
ACROSS = 100 if FULL else 48
FILES = (["panel.png", "correspondence.png", "image.nii.gz", "phantom.nii.gz", "figures.txt"] +
         [f"voxel_{k}_{what}.png" for k in (1, 2, 3) for what in ("colour", "weight", "weight_absorbed")])


class Slice:
    """Mean over z of an image."""

    def __init__(self, path):
        (self.nx, self.ny, nz), self.voxel_mm, _, values = read_nifti(path)
        area = self.nx * self.ny
        self.values = [sum(values[k + z * area] for z in range(nz)) / nz for k in range(area)]

    def at(self, x, y):
        return self.values[round(x) + self.nx * round(y)]

    def rods(self, least_mm):
        """Centres (in voxels) of the connected regions above half the maximum whose area is that of a rod of at least
        that diameter, less a tenth."""
        half = 0.5 * max(self.values)
        left = {k for k, value in enumerate(self.values) if value > half}
        least = 0.9 * 3.14159 / 4 * (least_mm / self.voxel_mm[0]) ** 2
        while left:
            region, front = [], [left.pop()]
            while front:
                k = front.pop()
                region.append(k)
                for n in (k - 1, k + 1, k - self.nx, k + self.nx):
                    if n in left:
                        left.remove(n)
                        front.append(n)
            if len(region) >= least:
                yield (sum(k % self.nx for k in region) / len(region), sum(k // self.nx for k in region) / len(region))


class Demo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory(prefix="loraster-demo-")
        cls.folder = Path(cls.holder.name) / "out"
        size = [] if FULL else ["--quick"]
        done = subprocess.run([PROGRAM, "demo", *size, "--json", "-o", str(cls.folder)], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        times = resource.getrusage(resource.RUSAGE_CHILDREN)
        cls.processor_s = times.ru_utime + times.ru_stime  # whatever else the machine does
        cls.log = done.stderr
        cls.found = json.loads(done.stdout)
        print(json.dumps(cls.found), file=sys.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def test_files(self):
        self.assertEqual(set(os.listdir(self.folder)), set(FILES))
        for name in FILES:
            if name.endswith(".png"):
                self.assertGreater(min(png_size(self.folder / name)), 100, name)

    def test_volume(self):
        size, _, _, values = read_nifti(self.folder / "image.nii.gz")
        self.assertEqual(size[:2], (ACROSS, ACROSS))
        self.assertGreaterEqual(min(values), 0)
        self.assertLess(abs(sum(values) / self.found["emissions"] - 1), 1e-5)

    def test_figures(self):
        line = (self.folder / "figures.txt").read_text()
        self.assertEqual(line.count("\n"), 1)
        backend = f"backend {self.found['operator']['backend']}"
        for words in ("counts, seed 1", "log-likelihood", "peak memory", backend):
            self.assertIn(words, line)
        self.assertEqual(line.startswith("quick"), not FULL)

    def test_keys_are_documented(self):
        docs = Path(__file__).parent / "../../docs"
        for key in self.found:
            self.assertIn(f"`{key}`", (docs / "formats/json.md").read_text())
        for name in FILES:
            self.assertIn(f"`{re.sub('_[123]_', '_K_', name)}`", (docs / "guide/simulate.md").read_text())

    def test_fallback_is_said(self):
        self.assertNotIn("drawn by backend cpu", self.log)
        self.assertEqual(self.found["operator"]["mode"], "exact")

    def test_rods_stand_apart(self):
        """Halfway between a rod and its nearest neighbours the image falls below half of the lower of the two."""
        phantom = Slice(self.folder / "phantom.nii.gz")
        image = Slice(self.folder / "image.nii.gz")
        rods = list(phantom.rods(LEAST_ROD_MM))
        self.assertGreaterEqual(len(rods), 6)
        for k, (x, y) in enumerate(rods):
            distance, other = min((((x - a) ** 2 + (y - b) ** 2) ** 0.5, n) for n, (a, b) in enumerate(rods) if n != k)
            a, b = rods[other]
            peak = min(image.at(x, y), image.at(a, b))
            valley = image.at((x + a) / 2, (y + b) / 2)
            self.assertLess(valley, 0.5 * peak, f"rods at ({x}, {y}) and ({a}, {b}), {distance} voxels apart")

    def test_limits(self):
        if not FULL:
            self.skipTest("limits are those of the full size")
        self.assertLess(self.processor_s, 2 * 300)
        self.assertLess(self.found["peak_memory_bytes"], 6 * 2**30)
        self.assertGreaterEqual(self.found["grid"]["size"][2], 8)
        self.assertTrue(self.found["operator"]["stored"])


class WithoutGl(unittest.TestCase):
    @unittest.skipUnless(FULL, "without OpenGL the demo takes as long as several tests: --full")
    def test_cpu_takes_over(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([PROGRAM, "demo", "--quick", "--json", "-o", folder],
                                  env=dict(os.environ, __EGL_VENDOR_LIBRARY_FILENAMES="/nonexistent"),
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("drawn by backend cpu", done.stderr)
            self.assertNotIn("error:", done.stderr)
            self.assertIn(json.loads(done.stdout)["operator"]["backend"], ("native", "cpu"))


unittest.main(argv=sys.argv[:1])
