# SPDX-License-Identifier: Apache-2.0
"""What the viewer's tests share: running scripts of steps, pictures, the matrix to compare with."""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tools" / "gallery")]

from png import read as read_png  # noqa: E402,F401
from program import (HANG_S, SMALL_RING, ProgramTest, main, preloadable,  # noqa: E402,F401
                     read_nifti, write_nifti)

# Where the voxel panel's picture lies in a window of 1280 x 800, in pixels.
SHEET = (888, 220, 1188, 520)


class ViewTest(ProgramTest):
    def arguments(self, steps, *more):
        script = self.write("steps.txt", "\n".join(steps) + "\n")
        return ["view", "--no-window", "--script", script, *more]

    def view(self, steps, *more, code=0, **options):
        """What the steps print, as pairs of name and text, and what is said."""
        done = self.run_program(*self.arguments(steps, *more), **options)
        self.assertEqual(done.returncode, code, f"{steps}\n{done.stdout}{done.stderr}")
        return [tuple(line.split(" ", 1)) for line in done.stdout.splitlines()], done.stderr

    def values(self, steps, *more, **options):
        """The same as a dictionary; each value is printed once."""
        pairs, _ = self.view(steps, *more, **options)
        self.assertEqual(len(dict(pairs)), len(pairs), pairs)
        return dict(pairs)

    def rows(self, *arguments):
        """Elements of one row, {(module, p, q, module, r, s): probability}."""
        out = self.path("rows.tsv")
        self.good("matrix", "--scanner", self.scanner, "--backend", "cpu", *arguments, "-o", out)
        lines = [line.split("\t") for line in Path(out).read_text().splitlines()[1:]]
        return {tuple(map(int, line[-7:-1])): float(line[-1]) for line in lines}


def crystals(touched):
    """"module,p,q,other,r,s" with the lower module first, as rows have it."""
    words = tuple(map(int, touched.split(",")))
    return words if words[0] < words[3] else words[3:] + words[:3]
