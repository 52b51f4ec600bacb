#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gallery's scripts still draw the pictures in docs/pictures. Blocks of 8 x 8 pixels are compared by lightness and
colour. If pictures have changed on purpose, tools/gallery.sh draws them again."""
import importlib.util
from pathlib import Path

from steps import ROOT, ViewTest, main, read_png

BLOCK = 8
# Largest differences, as a share of the full range. Drivers draw lines up to a pixel apart, and the pictures show the
# number of frames a second: such differences are below a third of these limits. A picture of another module exceeds
# the limits.
MEAN, WORST = 0.010, 0.15
# Drawn in every run; SLOW_NAMES, which take minutes together, with --full.
NAMES = ["view-start", "view-voxel", "view-lor", "view-doctor", "view-panes", "view-small"]
SLOW_NAMES = ["view-sheet", "view-weights", "view-exact", "view-volume", "view-direct", "view-event", "view-frames",
              "view-compare", "view-mmr", "view-recon", "view-sensitivity", "view-listmode", "view-compose"]


def blocks(path):
    """Lightness and two differences of colours of each block, 0 .. 1."""
    width, height, rows = read_png(path)
    found = []
    for y in range(0, height - BLOCK + 1, BLOCK):
        sums = [sum(column) for column in zip(*rows[y:y + BLOCK])]
        line = []
        for x in range(0, width - BLOCK + 1, BLOCK):
            red, green, blue = (sum(sums[3 * x + c:3 * (x + BLOCK):3]) / (255.0 * BLOCK * BLOCK) for c in range(3))
            line.append((0.3 * red + 0.59 * green + 0.11 * blue, 0.5 * (red - green),
                         0.5 * (blue - 0.5 * (red + green))))
        found.append(line)
    return found


def difference(one, two):
    """The mean over all blocks, and the largest mean of 5 x 5 neighbouring blocks."""
    each = [[sum(abs(a - b) for a, b in zip(p, q)) for p, q in zip(x, y)] for x, y in zip(one, two)]
    mean = sum(map(sum, each)) / (len(each) * len(each[0]))
    worst = max(sum(sum(row[x:x + 5]) for row in each[y:y + 5]) / 25.0
                for y in range(len(each) - 4) for x in range(len(each[0]) - 4))
    return mean, worst


class Gallery(ViewTest):
    def setUp(self):
        super().setUp()
        spec = importlib.util.spec_from_file_location("inputs", ROOT / "tools" / "gallery" / "inputs.py")
        inputs = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(inputs)
        inputs.main(self.folder)

    def draw(self, name, change=lambda text: text):
        text = change((ROOT / "tools" / "gallery" / f"{name}.txt").read_text())
        self.view(text.splitlines())
        return blocks(self.path(f"{name}.png"))

    def compare(self, names):
        for name in names:
            stored = ROOT / "docs" / "pictures" / f"{name}.png"
            self.assertLess(stored.stat().st_size, 300000, name)
            found = difference(self.draw(name), blocks(stored))
            print(f"{name}: mean {found[0]:.4f}, worst {found[1]:.4f}")
            self.assertLess(found[0], MEAN, name)
            self.assertLess(found[1], WORST, name)


class Quick(Gallery):
    def test_pictures(self):
        self.compare(NAMES)

    def test_another_picture_is_seen(self):
        """The bounds are worth something: these have something else in them."""
        stored = blocks(ROOT / "docs" / "pictures" / "view-voxel.png")
        for old, new in (("set module 9", "set module 3"), ("camera -60", "camera -40"),
                         ("open image activity.nii", "open image water.nii")):
            found = difference(self.draw("view-voxel", lambda text, a=old, b=new: text.replace(a, b)), stored)
            print(f"{new}: mean {found[0]:.4f}, worst {found[1]:.4f}")
            self.assertTrue(found[0] > MEAN or found[1] > WORST, new)


class Slow(Gallery):
    def test_pictures(self):
        if b"__asan_init" in Path(self.program).read_bytes():
            self.skipTest("minutes under sanitizers")
        self.compare(SLOW_NAMES)


main({"gallery": Quick, "gallery_slow": Slow})
