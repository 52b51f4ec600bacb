# SPDX-License-Identifier: Apache-2.0
"""A base class for the viewer's tests. It runs scripts of steps, and computes rows of the matrix to compare with."""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tools" / "gallery")]

from png import read as read_png  # noqa: E402,F401
from program import (HANG_S, SMALL_RING, ProgramTest, main, preloadable,  # noqa: E402,F401
                     read_nifti, write_nifti)

# The voxel panel's picture in a window of 1280 x 800: left, top, right and bottom in pixels.
SHEET = (888, 220, 1188, 520)


class ViewTest(ProgramTest):
    def arguments(self, steps, *more):
        return ["view", "--no-window", "--script", self.write("steps.txt", "\n".join(steps) + "\n"), *more]

    def view(self, steps, *more, code=0, **options):
        """Runs the steps. Returns the printed values as pairs of name and text, and the text on stderr."""
        done = self.run_program(*self.arguments(steps, *more), **options)
        self.assertEqual(done.returncode, code, f"{steps}\n{done.stdout}{done.stderr}")
        return [tuple(line.split(" ", 1)) for line in done.stdout.splitlines()], done.stderr

    def values(self, steps, *more, **options):
        """Runs the steps. Returns the printed values as a dictionary; the steps print each value once."""
        pairs, _ = self.view(steps, *more, **options)
        self.assertEqual(len(dict(pairs)), len(pairs), pairs)
        return dict(pairs)

    def rows(self, *arguments):
        """The elements of one row of the matrix, {(module, p, q, module, r, s): probability}."""
        out = self.path("rows.tsv")
        self.good("matrix", "--scanner", self.scanner, "--backend", "cpu", *arguments, "-o", out)
        lines = [line.split("\t") for line in Path(out).read_text().splitlines()[1:]]
        return {tuple(map(int, line[-7:-1])): float(line[-1]) for line in lines}


def crystals(touched):
    """"module,p,q,other,r,s" with the lower module first, as rows have it."""
    words = tuple(map(int, touched.split(",")))
    return words if words[0] < words[3] else words[3:] + words[:3]
