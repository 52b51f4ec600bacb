# SPDX-License-Identifier: Apache-2.0
"""Where voxels are in the viewer's panes, by what it prints of its panes and arithmetic of our own."""
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
