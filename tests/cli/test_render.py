#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Black-box tests of the pictures of render."""
import os
import re
from pathlib import Path

from program import CPU, SMALL_RING, ProgramTest, main

class Render(ProgramTest):
    def read_npy(self, path):
        raw = Path(path).read_bytes()
        self.assertEqual(raw[:8], b"\x93NUMPY\x01\x00")
        length = int.from_bytes(raw[8:10], "little")
        header = raw[10:10 + length].decode()
        self.assertIn("'<f4'", header)
        shape = tuple(int(n) for n in re.search(r"\(([^)]*)\)", header).group(1).split(",") if n)
        values = memoryview(raw[10 + length:]).cast("f")
        return shape, values

    def test_pixels_sum_to_the_row(self):
        """Σ weights of all primary images = Σ of the matrix row."""
        found = self.json("render", *self.on_ring, "--rays", 4, "--at", "1,2,-1", "-o",
                          self.path("pictures"))
        row = self.json("matrix", *self.on_ring, "--rays", 4, "--at", "1,2,-1", "-o",
                        self.path("r.tsv"))
        total = 0.0
        arrays = sorted(Path(self.path("pictures")).glob("module_*.npy"))
        self.assertEqual(len(arrays), len(found["modules"]))
        for path in arrays:
            shape, values = self.read_npy(path)
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


if __name__ == "__main__":
    main({"render": Render})
