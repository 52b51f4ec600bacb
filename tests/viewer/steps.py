# SPDX-License-Identifier: Apache-2.0
"""A base class for the viewer's tests. It runs scripts of steps, and computes rows of the matrix to compare with; and
where voxels are in the scene and the panes, by the camera's angles, the file and what the viewer prints of its panes,
with arithmetic of our own."""
import math, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))

from program import (HANG_S, SMALL_RING, ProgramTest, main, preloadable,  # noqa: E402,F401
                     preloading, read_nifti, read_png, write_nifti, write_npy)

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


LEFT, RIGHT, BAR = 290, 400, 30  # what panels take of the window, in pixels
TANGENT = math.tan(math.radians(15.0))
AXES = "xyz"


def _cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _unit(a):
    length = math.sqrt(sum(x * x for x in a))
    return [x / length for x in a]


class Eye:
    """Looks at the origin, as after the step `camera TURN HEIGHT DISTANCE`."""
    def __init__(self, turn_deg, height_deg, distance_mm, window=(1280, 800)):
        turn, height = math.radians(turn_deg), math.radians(height_deg)
        way = [math.cos(height) * math.cos(turn), math.cos(height) * math.sin(turn), math.sin(height)]
        self.at = [distance_mm * x for x in way]
        self.forward = [-x for x in way]
        self.right = _unit(_cross(self.forward, [0.0, 0.0, 1.0]))
        self.up = _cross(self.right, self.forward)
        self.size = (window[0] - LEFT - RIGHT, window[1] - BAR)

    def way(self, x, y):
        """Of the line of sight through the middle of a pixel."""
        across = (2.0 * (x + 0.5 - LEFT) / self.size[0] - 1.0) * TANGENT * self.size[0] / self.size[1]
        upwards = (1.0 - 2.0 * (y + 0.5) / self.size[1]) * TANGENT
        return [f + across * r + upwards * u for f, r, u in zip(self.forward, self.right, self.up)]

    def meet(self, x, y, image, slices):
        """(axis, voxel, mm) of the nearest slice under a pixel; None where there is none, or where
        it is a matter of rounding. slices: {"x": mm, ...}."""
        size, voxel_mm, origin = image[:3]
        way, found = self.way(x, y), []
        for axis, at in slices.items():
            k = AXES.index(axis)
            share = (at - self.at[k]) / way[k]
            mm = [a + share * w for a, w in zip(self.at, way)]
            places = [(p - o) / v + 0.5 for p, o, v in zip(mm, origin, voxel_mm)]
            edge = min(abs(p - round(p)) for n, p in enumerate(places) if n != k)
            inside = all(0.0 <= p < n for p, n in zip(places, size))
            if share > 0.0 and (inside or edge < 0.05):
                found.append((share, edge, axis, [math.floor(p) for p in places], mm))
        found.sort()
        if not found or found[0][1] < 0.05 or (len(found) > 1 and found[1][0] - found[0][0] < 1e-3 * found[0][0]):
            return None
        return found[0][2:]


def value_at(image, voxel):
    """Of an image as read_nifti gives it."""
    size, values = image[0], image[3]
    return values[voxel[0] + size[0] * (voxel[1] + size[1] * voxel[2])]


ACROSS, UPWARDS = {"x": 1, "y": 0, "z": 0}, {"x": 2, "y": 2, "z": 1}  # axes of the panes across x, y, z
PANES = {"x": "sagittal", "y": "coronal", "z": "transaxial"}


class Panes:
    """Places of voxels in the panes, from the values that the viewer prints of them."""
    ASKED = [*(f"panes.{name}" for name in PANES.values()), "panes.pixel_mm", "panes.middle_mm"]

    def __init__(self, values, image):
        self.boxes = {axis: list(map(float, values[f"panes.{name}"].split(","))) for axis, name in PANES.items()}
        self.pixel_mm = float(values["panes.pixel_mm"])
        self.middle = list(map(float, values["panes.middle_mm"].split(",")))
        self.voxel_mm, self.origin = image[1:3]

    def pixel(self, axis, voxel):
        """The pixel in the middle of a voxel: the patient's right, or front, is at the left."""
        left, top, width, height = self.boxes[axis]
        mm = [o + v * n for o, v, n in zip(self.origin, self.voxel_mm, voxel)]
        right = left + width / 2 - (mm[ACROSS[axis]] - self.middle[ACROSS[axis]]) / self.pixel_mm
        down = top + height / 2 - (mm[UPWARDS[axis]] - self.middle[UPWARDS[axis]]) / self.pixel_mm
        return int(right), int(down)
