# SPDX-License-Identifier: Apache-2.0
"""Writes what the gallery's scripts open, besides presets: an activity with rods and a hot ball, and
water around it, as NIfTI on the same grid; three frames of it; the same on a coarse grid; a scanner file with a diameter for the radius."""
import array
import math
import struct
import sys
from pathlib import Path

SIZE, VOXEL_MM = (64, 64, 38), (1.1, 1.1, 1.2)
COARSE, COARSE_MM = (26, 26, 14), (2.6, 2.6, 2.8)


def header(size, voxel_mm):
    """Of a NIfTI file of float32 values whose grid is centred."""
    head = bytearray(352)
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into("<8h", head, 40, 3, *size, 1, 1, 1, 1)
    struct.pack_into("<2h", head, 70, 16, 32)
    struct.pack_into("<8f", head, 76, 1, *voxel_mm, 0, 0, 0, 0)
    struct.pack_into("<f", head, 108, 352)
    head[123] = 2  # mm
    struct.pack_into("<2h", head, 252, 0, 1)
    for axis in range(3):
        row = [0.0] * 4
        row[axis] = voxel_mm[axis]
        row[3] = -0.5 * (size[axis] - 1) * voxel_mm[axis]
        struct.pack_into("<4f", head, 280 + 16 * axis, *row)
    head[344:348] = b"n+1\0"
    return bytes(head)


def write(path, values, size=SIZE, voxel_mm=VOXEL_MM):
    Path(path).write_bytes(header(size, voxel_mm) + array.array("f", values).tobytes())


def centres(size, voxel_mm):
    return [[(k - 0.5 * (size[axis] - 1)) * voxel_mm[axis] for k in range(size[axis])]
            for axis in range(3)]


# Six rods, thicker from one to the next, as (x, y, radius) in mm.
RODS = [(17 * math.cos(k * math.pi / 3), 17 * math.sin(k * math.pi / 3), 1.8 + 0.55 * k)
        for k in range(6)]


def activity(x, y, z):
    if x * x + y * y + (z - 6) ** 2 < 36:
        return 4.0
    if abs(z) < 16 and any((x - a) ** 2 + (y - b) ** 2 < r * r for a, b, r in RODS):
        return 3.0
    return 0.4 if x * x + y * y < 27 ** 2 and abs(z) < 18 else 0.0


def water(x, y, z):
    return 0.0096 if x * x + y * y < 29 ** 2 and abs(z) < 20 else 0.0


def main(folder):
    places = centres(SIZE, VOXEL_MM)
    active, wet = ([field(x, y, z) for z in places[2] for y in places[1] for x in places[0]]
                   for field in (activity, water))
    write(Path(folder) / "activity.nii", active)
    write(Path(folder) / "water.nii", wet)
    for number, scale in ((1, 1.0), (2, 0.6), (3, 0.3)): # the hot ball stays, the rest decays
        write(Path(folder) / f"frame-{number}.nii",
              [value if value == 4.0 else scale * value for value in active])
    places = centres(COARSE, COARSE_MM)
    write(Path(folder) / "coarse.nii",
          [activity(x, y, z) for z in places[2] for y in places[1] for x in places[0]], COARSE,
          COARSE_MM)
    (Path(folder) / "diameter.yaml").write_text("""\
name: a diameter for the radius, and a module that was forgotten
ring: {radius_mm: 118, modules: 18, rings: 2, ring_pitch_mm: 27.4}
module: {crystals: [13, 13], pitch_mm: [1.55, 1.55], face_mm: [1.45, 1.45], depth_mm: 15}
coincidence: {field_of_view_mm: 68}
""")
    (Path(folder) / "overlap.yaml").write_text("""\
name: modules in each other's way
ring: {radius_mm: 52, modules: 18, rings: 2, ring_pitch_mm: 27.4}
module: {crystals: [13, 13], pitch_mm: [1.55, 1.55], face_mm: [1.45, 1.45], depth_mm: 15}
coincidence: {field_of_view_mm: 68}
""")
    (Path(folder) / "tof.yaml").write_text("""\
name: a small scanner with time of flight
ring: {radius_mm: 59, modules: 18, rings: 1}
module: {crystals: [7, 14], pitch_mm: [2.9, 2.9], face_mm: [2.8, 2.8], depth_mm: 15}
coincidence: {field_of_view_mm: 68}
tof: {resolution_ps: 100}
""")


if __name__ == "__main__":
    main(sys.argv[1])
