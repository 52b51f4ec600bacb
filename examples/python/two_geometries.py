# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""A ring and two panels with equal numbers of crystals: panels are nearer, but few angles blur the rods."""

import matplotlib.pyplot as plt
import numpy as np

import loraster as lr

ring = lr.Scanner.ring(radius_mm=42, modules=16, crystals=(8, 2), pitch_mm=2, depth_mm=12, field_of_view_mm=60)
x = 16.0 * (np.arange(8) - 3.5)
upper = np.stack([x, np.full(8, 25.0), np.zeros(8)], axis=1)
panels = lr.Scanner.from_arrays(
    np.concatenate([upper, upper * (1, -1, 1)]),
    [(0, -1, 0)] * 8 + [(0, 1, 0)] * 8,
    [(1, 0, 0)] * 8 + [(-1, 0, 0)] * 8,
    crystals=(8, 2),
    pitch=2,
    depth=12,
    name="panels",
    field_of_view_mm=60,
)
grid, voxel_mm = (60, 60, 1), (0.8, 0.8, 2.0)
activity = lr.phantom("derenzo", grid, voxel_mm)
extent = (-24, 24, -24, 24)

plt.rcParams["image.interpolation"] = "nearest"
figure, axes = plt.subplots(2, 3, figsize=(10.5, 6), layout="constrained")
for row, scanner in zip(axes, (ring, panels)):
    A = lr.Operator(scanner, grid, voxel_mm, backend="native", samples=1)
    counts = lr.poisson(1e5 * (A @ activity), seed=1)  # 100,000 decays in each voxel of the rods
    image = lr.recon.osem(A, counts, iterations=5, subsets=4)
    row[0].plot(*scanner.crystals[:, :2].T, ".", markersize=3)
    row[0].set(title=f"{scanner.name}, {scanner.num_crystals} crystals", xlim=(-70, 70), ylim=(-70, 70), aspect="equal")
    shown = row[1].imshow(100 * A.sensitivity()[0], extent=extent, origin="lower", cmap="magma", vmin=0)
    row[1].set(title="Sensitivity")
    figure.colorbar(shown, label="detected decays (%)")
    shown = row[2].imshow(image[0] / 1e5, extent=extent, origin="lower", cmap="gray_r", vmin=0, vmax=2)
    row[2].set(title=f"OSEM of {counts.sum() / 1e6:.1f} million counts")
    figure.colorbar(shown, label="image / activity of rods")
    for axis in row:
        axis.set(xlabel="x (mm)", ylabel="y (mm)")
        axis.invert_xaxis()  # +x at the left, as in medical viewers
figure.savefig("two_geometries.png", dpi=60)
