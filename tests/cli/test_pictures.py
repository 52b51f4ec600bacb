#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures as the program writes them: names of any kind, the same bytes in every run, and machines without fonts."""
import os

from pictures import count_ink, read_png
from program import CPU, GRID, SMALL_RING, ProgramTest, main

LONG = "a scanner whose name goes on and on, beyond what any picture has room for " * 20
NAMES = {"letters": "Łódź, κατασκευή, 東京, µPET ±0.5°", "long": LONG, "one word": "W" * 2000,
         "terminal": "\\e]0;owned\\x07\\e[31mred\\x85", "turned": "\\u202Ereversed\\u2066",
         "lines": "one\\ntwo\\r\\tthree"}


class Pictures(ProgramTest):
    def named(self, name):
        return self.write("named.yaml", SMALL_RING.replace("name: small ring", f'name: "{name}"'))

    def check(self, scanner, **options):
        self.good(f"scanner check {scanner} --png c.png", **options)
        return read_png("c.png")

    def test_names(self):
        """Every name has ink in the title, keeps to the page, and leaves what is below it alone."""
        width, height, plain = self.check(self.scanner)
        for kind, name in NAMES.items():
            found = self.check(self.named(name))
            self.assertEqual(found[:2], (width, height), kind)
            self.assertGreater(count_ink(found[2], 0, 34), 300, kind)
            self.assertEqual(found[2][36:], plain[36:], kind)
            self.assertEqual(sum(row[3 * (width - 20):] != b"\xff" * 60 for row in found[2][:34]), 0, kind)

    def test_panels(self):
        """Names of scanners head the slices of a reconstruction, and make the panel no wider than the slices do."""
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 3000 -o y.h5")
        sizes = {}
        for kind, name in {"short": "ring", **NAMES}.items():
            scanner = self.named(name)
            self.good(f"recon --scanner {scanner} {CPU} --threads 1 {GRID} --data y.h5 --iterations 1 -o x.nii --png "
                      "x.png")
            width, height, rows = read_png("x.png")
            sizes[kind] = (width, height)
            self.assertGreater(count_ink(rows, 0, 34), 150, kind)
            self.assertLess(width, 2000)
        self.assertEqual(len(set(sizes.values())), 1, sizes)

    def test_same_bytes(self):
        for k in (0, 1):
            self.good(f"render {self.on_ring} --at 1,2,0 --compare 1,2 -o c{k}")
            self.good(f"render {self.on_ring} --at 1,2,0 -o r{k}")
        names = [name for name in os.listdir(self.folder / "r0") if name.endswith(".png")]
        self.assertGreater(len(names), 4)
        for name in names:
            self.assertEqual(*((self.folder / f"r{k}" / name).read_bytes() for k in (0, 1)), name)
        self.assertEqual(*((self.folder / f"c{k}" / "compare.png").read_bytes() for k in (0, 1)))


main({"pictures": Pictures})
