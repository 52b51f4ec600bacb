# SPDX-License-Identifier: Apache-2.0
"""Where the scene's line of sight under a pixel meets the slices of an image: by the camera's angles
and the file alone, so that tests have something of their own to compare the viewer with."""
import math

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
