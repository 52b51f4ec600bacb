# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""A ray-driven projector, whose lines make patterns in the sensitivity, and exact elements, which make none."""

import matplotlib.pyplot as plt
import numpy as np

import loraster as lr

scanner = lr.Scanner.ring(radius_mm=40, modules=16, crystals=(6, 1), pitch_mm=2.4, depth_mm=10, field_of_view_mm=48)
grid, voxel_mm = (60, 60, 1), (0.8, 0.8, 2.4)
exact = lr.Operator(scanner, grid, voxel_mm, backend="native", mode="exact", samples=1)
crystals = scanner.lor_crystals()
start, end = scanner.hits[crystals[:, 0]], scanner.hits[crystals[:, 1]]
lines = lr.Operator.of_lines(start, end, grid, voxel_mm, kernel="line", backend="native")

# The pictures show one LOR in the middle, and the sensitivity, each divided by its mean.
lor = int(exact.column((0, 30, 30))[0][40])
edge = grid[0] * voxel_mm[0] / 2
plt.rcParams["image.interpolation"] = "nearest"
figure, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained")
for row, title, A in ((axes[0], "exact elements", exact), (axes[1], "lines (Joseph)", lines)):
    one = np.zeros(A.data_shape, np.float32)
    one[lor] = 1
    tube, sensitivity = A.T @ one, A.sensitivity()[0]
    near = sensitivity[10:50, 10:50].mean()
    for axis, image, name, largest in (
        (row[0], tube[0] / tube.max(), f"One LOR, {title}", 1),
        (row[1], sensitivity / near, f"Sensitivity, {title}", 1.6),
    ):
        shown = axis.imshow(
            image, extent=(-edge, edge, -edge, edge), origin="lower", cmap="magma", vmin=0, vmax=largest
        )
        axis.set(title=name, xlabel="x (mm)", ylabel="y (mm)")
        figure.colorbar(shown, label="element / largest" if axis is row[0] else "sensitivity / mean")
    row[2].plot(voxel_mm[0] * (np.arange(60) - 29.5), sensitivity[30] / near)
    row[2].set(title="Profile of the sensitivity", xlabel="x (mm)", ylabel="sensitivity / mean", ylim=(0, 2))
    row[2].grid(alpha=0.3)
    for axis in row:
        axis.invert_xaxis()  # +x at the left, as in medical viewers
figure.savefig("ray_driven.png", dpi=65)
