#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Black-box tests of the pictures of render."""
import math
import os
import random
import re
from pathlib import Path

from program import CPU, SMALL_RING, ProgramTest, main

# Nine by nine crystals of the Penn scanner, face to face and at 150 degrees.
OPPOSED = """\
name: opposed
modules:
  - {center_mm: [0, 465, 0], u: [1, 0, 0], v: [0, 0, 1], crystals: [9, 9], pitch_mm: [4.3, 4.3],
     face_mm: [FACE, FACE], depth_mm: 30}
  - {center_mm: [CX, CY, 0], u: [UX, UY, 0], v: [0, 0, 1], crystals: [9, 9], pitch_mm: [4.3, 4.3],
     face_mm: [FACE, FACE], depth_mm: 30}
"""


def two_modules(face, degrees):
    """The second module stands `degrees` further around the axis than the first."""
    angle = math.radians(90 + degrees)
    text = OPPOSED.replace("FACE", str(face))
    for name, value in [("CX", 465 * math.cos(angle)), ("CY", 465 * math.sin(angle)),
                        ("UX", -math.sin(angle)), ("UY", math.cos(angle))]:
        text = text.replace(name, repr(value))
    return text


def read_npy(path):
    """(shape, values) of a float32 array."""
    raw = Path(path).read_bytes()
    assert raw[:8] == b"\x93NUMPY\x01\x00"
    length = int.from_bytes(raw[8:10], "little")
    header = raw[10:10 + length].decode()
    assert "'<f4'" in header, header
    shape = tuple(int(n) for n in re.search(r"\(([^)]*)\)", header).group(1).split(",") if n)
    return shape, memoryview(raw[10 + length:]).cast("f")

class Render(ProgramTest):
    def test_pixels_sum_to_the_row(self):
        """Σ weights of all primary images = Σ of the matrix row."""
        found = self.json("render", *self.on_ring, "--rays", 4, "--at", "1,2,-1", "-o",
                          self.path("pictures"))
        row = self.json("matrix", *self.on_ring, "--mode", "sampled", "--rays", 4, "--at",
                        "1,2,-1", "-o", self.path("r.tsv"))
        total = 0.0
        arrays = sorted(Path(self.path("pictures")).glob("module_*.npy"))
        self.assertEqual(len(arrays), len(found["modules"]))
        for path in arrays:
            shape, values = read_npy(path)
            self.assertEqual(shape, (16, 16, 5))
            weights = values[3::5]
            self.assertGreater(max(values[0::5]), -1)
            total += sum(weights)
            for pixel in range(256):
                module, r, s, weight, path_mm = values[5 * pixel:5 * pixel + 5]
                if module < 0:
                    self.assertEqual((r, s, weight), (-1, -1, 0))
                else:
                    self.assertIn(module, range(8))
                    self.assertIn(r, range(4))
                    self.assertIn(s, range(4))
                    self.assertGreater(path_mm, 20)
        self.assertLess(abs(total / row["sum"] - 1), 1e-5)

    def test_pictures(self):
        found = self.json("render", *self.on_ring, "--at", "0,0,0", "-o", self.path("p"))
        names = set(os.listdir(self.path("p")))
        for module in found["modules"]:
            for name in (f"module_{module}.npy", f"module_{module}_colour.png",
                         f"module_{module}_weight.png"):
                self.assertIn(name, names)
        self.assertIn("contact_sheet.png", names)
        for name in names:
            if name.endswith(".png"):
                self.assertEqual((self.folder / "p" / name).read_bytes()[:4], b"\x89PNG")

    def test_captions_of_narrow_pictures(self):
        """Columns of the contact sheet are as wide as their captions."""
        narrow = self.write("narrow.yaml", SMALL_RING.replace("modules: 8", "modules: 32").replace(
            "crystals: [4, 4], pitch_mm: [4, 4], face_mm: [3.8, 3.8]",
            "crystals: [1, 16], pitch_mm: [2, 1], face_mm: [1.9, 0.9]"))
        found = self.json("render", "--scanner", narrow, *CPU, "--at", "0,0,0", "-o",
                          self.path("p"))
        self.assertEqual(len(found["modules"]), 16)
        header = (self.folder / "p" / "contact_sheet.png").read_bytes()[:24]
        captions = 6 * len("module 1: crystals met" + "module 1: weight") - 2
        self.assertGreater(int.from_bytes(header[16:20], "big"), 3 * captions)

    def test_one_module(self):
        found = self.json("render", *self.on_ring, "--at", "3,0,0", "--module", 4, "-o",
                          self.path("p"))
        self.assertEqual(found["modules"], [4])

    def test_refusals(self):
        self.refuse(2, "--at", "render", *self.on_ring, "-o", "p")
        self.refuse(2, "--module", "render", *self.on_ring, "--at", "0,0,0", "--module", "8",
                    "-o", "p")
        self.refuse(2, "exact", "render", *self.on_ring, "--mode", "exact", "--at", "0,0,0",
                    "-o", "p")
        self.refuse(1, "ring.yaml", "render", *self.on_ring, "--at", "0,0,0", "-o", "ring.yaml")


class Compare(ProgramTest):
    """Sampled against exact."""

    def compare(self, rays, at, *more, scanner=None):
        where = ["--scanner", scanner, *CPU, "--threads", "1"] if scanner else self.on_ring
        return self.json("render", *where, f"--at={at}", "--compare", rays, "-o",
                         self.path("c"), *more)

    def array(self, name):
        return list(read_npy(self.folder / "c" / f"{name}.npy")[1])

    def test_figures_are_those_of_the_arrays(self):
        found = self.compare("2,5", "1,2,-1")
        exact = self.array("exact")
        shape, _ = read_npy(self.folder / "c" / "lors.npy")
        self.assertEqual(shape, (len(exact), 5))
        self.assertEqual(found["elements"], sum(value > 0 for value in exact))
        self.assertAlmostEqual(found["sum"] / sum(exact), 1, places=6)
        self.assertEqual([s["rays"] for s in found["sampled"]], [2, 5])
        for step in found["sampled"]:
            sampled = self.array(f"sampled_R{step['rays']}")
            difference = self.array(f"difference_R{step['rays']}")
            for a, b, d in zip(sampled, exact, difference):
                self.assertLess(abs(a - b - d), 2e-7 * max(a, b))
            norm = math.hypot(*difference) / math.hypot(*exact)
            missed = [b for a, b in zip(sampled, exact) if a == 0]
            self.assertAlmostEqual(step["relative_l2"] / norm, 1, places=5)
            self.assertAlmostEqual(step["sum_error"], sum(sampled) / sum(exact) - 1, places=6)
            self.assertEqual(step["missed_elements"], len(missed))
            self.assertAlmostEqual(step["missed_weight"], sum(missed) / sum(exact), places=6)
            self.assertAlmostEqual(step["largest_error"],
                                   max(map(abs, difference)) / max(exact), places=6)
            self.assertAlmostEqual(step["law"], 0.6 / step["rays"], places=12)

    def elements(self, mode, *more):
        """{(module, p, q, module, r, s): probability} as matrix writes them."""
        self.good("matrix", *self.on_ring, "--mode", mode, *more, "-o", self.path("m.tsv"))
        lines = Path(self.path("m.tsv")).read_text().splitlines()[1:]
        rows = [line.split("\t") for line in lines]
        return {tuple(map(int, row[4:10])): float(row[10]) for row in rows}

    def check_elements(self, found, elements, name):
        """The picture's module has the elements that matrix writes, and the crystals are right."""
        module = found["module"]
        _, lors = read_npy(self.folder / "c" / "lors.npy")
        for n, value in enumerate(self.array(name)):
            p, q, other, r, s = map(int, lors[5 * n:5 * n + 5])
            key = (module, p, q, other, r, s)
            key = key if module < other else key[3:] + key[:3]
            self.assertLessEqual(abs(value - elements.get(key, 0)), 1e-6 * value)

    def test_elements_are_those_of_the_matrix(self):
        at = "--at=1,2,-1"
        found = self.compare("3", "1,2,-1")
        exact, sampled = self.elements("exact", at), self.elements("sampled", at, "--rays", 3)
        self.check_elements(found, exact, "exact")
        self.check_elements(found, sampled, "sampled_R3")
        everything = sum(exact.values())
        self.assertAlmostEqual(found["sampled"][0]["all_sum_error"],
                               sum(sampled.values()) / everything - 1, places=6)
        # The modules share the elements out.
        parts = [self.compare("1", "1,2,-1", "--module", m)["sum"] for m in range(8)]
        self.assertAlmostEqual(sum(parts) / everything, 1, places=6)
        self.assertEqual(max(parts), found["sum"])

    def test_voxel(self):
        voxel = ["--voxel-mm", "3,3,4", "--samples", "2,1,2"]
        found = self.compare("2", "1.5,3,-4", *voxel)
        grid = ["--grid", "1,1,1", "--origin-mm=1.5,3,-4", *voxel]
        self.check_elements(found, self.elements("exact", *grid), "exact")
        self.check_elements(found, self.elements("sampled", "--rays", 2, *grid), "sampled_R2")
        self.assertEqual(found["grid"]["voxel_mm"], [3, 3, 4])
        self.assertEqual(found["operator"]["samples"], [2, 1, 2])

    def errors(self, scanner, degrees):
        """Means over points between the modules of L2, |error of the sum|, share and weight missed, of each R."""
        rays = (2, 4, 8, 16)
        rng = random.Random(1)
        points = []
        for _ in range(24):
            angle, t = math.radians(90 + degrees), rng.uniform(0.35, 0.65)
            x = t * 465 * math.cos(angle) + rng.uniform(-4, 4)
            y = (1 - t) * 465 + t * 465 * math.sin(angle) + rng.uniform(-4, 4)
            z = rng.uniform(-8, 8)
            found = self.compare(",".join(map(str, rays)), f"{x:.4f},{y:.4f},{z:.4f}",
                                 scanner=scanner)
            points.append([(s["relative_l2"], abs(s["sum_error"]),
                            s["missed_elements"] / found["elements"], s["missed_weight"])
                           for s in found["sampled"]])
        return rays, [[sum(column) / len(points) for column in zip(*steps)]
                      for steps in zip(*points)]

    def test_law(self):
        """L2 of an element falls as 0.6 / R: at most 0.8 / R, halved (by 1.6 to 2.6) from R to 2 R.
        The error of the sum is at most 0.3 / R in the mean. At R = 4 the misses are 15 to 24 % of
        the elements and 1.5 to 2.7 % of their weight, over modules like these."""
        for face, degrees in ((4.0, 180), (4.3, 180), (4.0, 150)):
            name = self.write("two.yaml", two_modules(face, degrees))
            rays, steps = self.errors(name, degrees)
            for R, (l2, sum_error, _, _) in zip(rays, steps):
                self.assertLess(l2, 0.8 / R)
                self.assertLess(sum_error, 0.3 / R)
            self.assertTrue(0.15 < steps[1][2] < 0.24 and 0.015 < steps[1][3] < 0.027, steps[1])
            for before, after in zip(steps, steps[1:]):
                self.assertGreater(before[0] / after[0], 1.6)
                self.assertLess(before[0] / after[0], 2.6)

    def test_files(self):
        found = self.compare("1,4", "0.5,0,0")
        self.assertEqual(set(os.listdir(self.path("c"))), {
            "compare.png", "lors.npy", "exact.npy", "sampled_R1.npy", "difference_R1.npy",
            "sampled_R4.npy", "difference_R4.npy"})
        self.assertEqual((self.folder / "c" / "compare.png").read_bytes()[:4], b"\x89PNG")
        self.assertEqual(found["operator"]["mode"], "exact")
        self.assertEqual(found["output"], self.path("c"))

    def test_table(self):
        """A line for each R; the list may be left out."""
        for words, rays in ((["--compare", "1,2,8"], [1, 2, 8]), (["--compare"], [4]),
                            (["--compare", "--rays", "3"], [3])):
            done = self.good("render", *self.on_ring, "--at", "0.5,0,0", *words, "-o",
                             self.path("t"))
            lines = done.stdout.splitlines()[2:]
            self.assertEqual([int(line.split()[0]) for line in lines], rays)

    def test_compute_agrees(self):
        """compute in float and cpu in double, on the same figures; the point is off every edge that
        could fall either way."""
        usable = [d for d in self.json("info")["devices"] if d["usable"]]
        if not usable:
            self.skipTest("no OpenGL device")
        found = [self.json("render", "--scanner", self.scanner, "--backend", name, "--at",
                           "1.03,2.11,-1.37", "--compare", "4", "-o", self.path(name))
                 for name in ("cpu", "compute")]
        self.assertEqual(found[1]["operator"]["backend"], "compute")
        self.assertEqual(found[0]["module"], found[1]["module"])
        self.assertLess(abs(found[1]["sum"] / found[0]["sum"] - 1), 1e-5)
        a, b = [f["sampled"][0] for f in found]
        for key in ("relative_l2", "sum_error", "largest_error", "missed_weight"):
            self.assertLess(abs(a[key] - b[key]), 1e-4, key)

    def test_nothing_to_see(self):
        """A module that is never the farther one of a pair with a LOR there."""
        done = self.good("render", *self.on_ring, "--at", "12,0,0", "--module", "0", "--compare",
                         "2", "-o", self.path("c"))
        self.assertIn("no LOR with primary module 0", done.stderr)
        self.assertFalse(os.path.exists(self.path("c")))

    def test_refusals(self):
        here = ["render", *self.on_ring, "--at", "0,0,0", "-o", "p"]
        for text in ("0", "4,", "2,x", "-3", "1.5", ",", "1 2", "99999999999"):
            self.refuse(2, "--compare", *here, f"--compare={text}")
        self.refuse(2, "ascend", *here, "--compare", "4,2")
        self.refuse(2, "too many", *here, "--compare", ",".join(map(str, range(1, 18))))
        self.refuse(2, "--mode", *here, "--compare", "2", "--mode", "exact")
        self.refuse(2, ["--rays", "--compare"], *here, "--compare", "2", "--rays", "2")
        self.refuse(2, "--compare", *here, "--voxel-mm", "2")
        self.refuse(2, "positive", *here, "--compare", "--voxel-mm", "2,0,2")
        self.refuse(2, "modules 0 to 7", *here, "--compare", "--module", "8")
        self.refuse(2, "-o", "render", *self.on_ring, "--at", "0,0,0", "--compare")
        self.refuse(2, "--at", "render", *self.on_ring, "--compare", "-o", "p")
        self.refuse(1, "ring.yaml", "render", *self.on_ring, "--at", "0,0,0", "--compare", "-o",
                    "ring.yaml")


if __name__ == "__main__":
    main({"render": Render, "compare": Compare})
