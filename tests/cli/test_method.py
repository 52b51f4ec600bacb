#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/method is enough to compute elements: what `matrix` writes, by either backend, against the outsider's ray tracer
of method.py."""
import json, math, random

import method
from program import ProgramTest, main, read_rows

SEED = 20261120
# Lines nearer to an edge than this, in pitches, may go either way: raster computes hits in float,
# cpu in double.
BORDERLINE = {"cpu": 1e-9, "raster": 1e-4}
# Relative tolerance of an element: nine digits are written; the raster backend is held to 1e-5.
TOLERANCE = {"cpu": 1e-8, "raster": 1e-5}


def turned(axis, angle, vector):
    """Rodrigues' rotation about a unit axis."""
    along = method.dot(axis, vector)
    side = method.cross(axis, vector)
    return [math.cos(angle) * v + math.sin(angle) * s + (1 - math.cos(angle)) * along * a for v, s,
            a in zip(vector, side, axis)]


def entry(centre, axes, crystals, cell, depth=8):
    """cell: pitch along u and v, face along u and v."""
    return {"center_mm": list(centre), "u": axes[0], "v": axes[1], "crystals": crystals, "pitch_mm": cell[:2],
            "face_mm": cell[2:], "depth_mm": depth}


def tilted():
    """Unequal, tilted, one in front of another, u x v inward here and outward there."""
    one = [turned((0.6, 0, 0.8), 0.31, v) for v in ([1, 0, 0], [0, 0, 1])]
    other = [turned((0, 0.8, -0.6), -0.27, v) for v in ([-1, 0, 0], [0, 0, 1])]
    third = [turned((0.6, 0, 0.8), 0.31, v) for v in ([0, 1, 0], [0, 0, 1])]
    return [entry((3, 60, 4), one, [5, 4], [4.1, 5.4, 3.6, 5.0]),
            entry((-5, -52, -3), other, [8, 6], [3.0, 2.6, 3.0, 2.1]),
            entry((-5, -20, -4), other, [4, 3], [2.0, 2.0, 1.7, 1.7]),
            entry((60, -5, 0), [[0, 1, 0], [0, 0, 1]], [4, 4], [6.0, 6.0, 5.8, 5.1]),
            entry((-60, 8, 2), third, [4, 6], [6.0, 4.0, 5.8, 3.4])]


RING = {"radius_mm": 60, "modules": 7, "first_angle_deg": 13, "rings": 2, "ring_pitch_mm": 21}
EVEN_RING = dict(RING, modules=8, first_angle_deg=22.5)
MODULE = {"crystals": [5, 4], "pitch_mm": [4.8, 5], "face_mm": [4.4, 4.7], "depth_mm": 12}
RULES = {"field_of_view_mm": 37.5, "min_module_difference": 3, "max_ring_difference": 4}


class Method(ProgramTest):
    def backends(self):
        works = {b["backend"]: b["works"] for b in self.json("info")["backends"]}
        return [name for name in ("cpu", "raster") if works[name]]

    def rows(self, scanner, points, *more):
        out = "rows.tsv"
        at = [f"--at={','.join(repr(float(x)) for x in point)}" for point in points]
        self.good("matrix --scanner s.yaml", *at, f"-o {out}", *more)
        rows = read_rows(out)
        return [rows.get(k, {}) for k in range(len(points))]

    def compare(self, want, doubtful, got, tolerance):
        """Elements of doubtful crystals are left out; returns how many were compared."""
        compared = 0
        for key in set(want) | set(got):
            if key[:3] in doubtful or key[3:] in doubtful:
                continue
            compared += 1
            a, b = want.get(key, 0.0), got.get(key, 0.0)
            self.assertLessEqual(abs(a - b), tolerance * max(a, b), f"{key}: {a} and {b}")
        return compared

    def check(self, scanner, text, points):
        self.write("s.yaml", json.dumps(dict(text, name="a scanner"))) # JSON is YAML
        for backend in self.backends():
            compared = total = 0
            for rays in (1, 2, 3):
                rows = self.rows(scanner, points, f"--backend {backend} --mode sampled --rays {rays}")
                for point, got in zip(points, rows):
                    want, doubtful = method.row(scanner, point, rays, BORDERLINE[backend])
                    compared += self.compare(want, doubtful, got, TOLERANCE[backend])
                    total += len(want)
            print(f"{backend}: {compared} of {total} elements compared, seed {SEED}")
            self.assertGreater(compared, 100)
            self.assertGreater(compared, 0.8 * total)

    def points(self, reach, *given):
        chance = random.Random(SEED)
        return [[chance.uniform(-reach, reach) for _ in range(3)] for _ in range(6)] + list(given)

    def test_tilted(self):
        modules = tilted()
        scanner = method.Scanner([method.Module(m) for m in modules], depth=1.5)
        self.check(scanner, {"modules": modules, "detection_depth_mm": 1.5},
                   self.points(25, (0, 0, 0), (0, 52, 0), (1, 25, 2), (0, 200, 0)))

    def test_rules(self):
        """Long crystals, and points whose lines run along the rim of the field of view: the place of the volume centres
        decides there."""
        module = dict(MODULE, depth_mm=40)
        scanner = method.ring_scanner(RING, module, RULES, 2.0)
        self.check(scanner, {"ring": RING, "module": module, "coincidence": RULES, "detection_depth_mm": 2.0},
                   self.points(15, (3, 9, 2), (-12, 14, 3), (14, -8, 4), (30, 0, 0)))

    def test_symmetric(self):
        """Sample points on symmetry planes, where module distances tie."""
        scanner = method.ring_scanner(EVEN_RING, MODULE, None, 0.0)
        self.check(scanner, {"ring": EVEN_RING, "module": MODULE},
                   self.points(15, (0, 0, 0), (0, 0, 3.1), (10, 0, 0), (7, 7, 0), (0, -20, 1.3)))

    def test_opposite_modules_only(self):
        rules = {"min_module_difference": 4}
        scanner = method.ring_scanner(EVEN_RING, MODULE, rules, 0.0)
        self.check(scanner, {"ring": EVEN_RING, "module": MODULE, "coincidence": rules}, self.points(25))


main({"method": Method})
