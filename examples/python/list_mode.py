# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""List-mode OSEM of 100,000 events: time of flight with 250 ps makes spheres clearer, with less noise."""

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import loraster as lr

scanner = lr.Scanner.ring(radius_mm=350, modules=56, crystals=(6, 1), pitch_mm=6.4, depth_mm=20, field_of_view_mm=480)
grid, voxel_mm, resolution_ps = (64, 64, 1), (6.4, 6.4, 6.4), 250.0
A = lr.Operator(scanner, grid, voxel_mm, backend="native", samples=1)
y, x = 6.4 * (np.mgrid[:64, :64] - 31.5)
angles = np.radians(60 * np.arange(6))
hot = np.any([np.hypot(x - 100 * np.cos(a), y - 100 * np.sin(a)) < 13 for a in angles], axis=0)
water = np.hypot(x, y) < 180
activity = (water + 3.0 * hot).astype(np.float32)[np.newaxis]

# An event is a random element of the matrix (LOR, voxel of the decay), drawn in proportion to its expected counts.
matrix = A.to_csr()
rng = np.random.default_rng(seed=1)
share = np.cumsum(matrix.data * activity.ravel()[matrix.indices], dtype=np.float64)
element = np.searchsorted(share, share[-1] * rng.random(100_000))
crystals = scanner.lor_crystals(np.searchsorted(matrix.indptr, element, side="right") - 1)
voxel = matrix.indices[element]
start, end = scanner.hits[crystals[:, 0], :2], scanner.hits[crystals[:, 1], :2]
decay = np.stack([x.ravel()[voxel], y.ravel()[voxel]], axis=1)
tof_mm = np.sum((decay - (start + end) / 2) * (end - start), axis=1) / np.linalg.norm(end - start, axis=1)
tof_mm += rng.normal(0, 0.15 * resolution_ps / 2.355, len(tof_mm))  # a time difference of 1 ps is 0.15 mm on the line

figure, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained")
for axis, title, tof, iterations in (
    (axes[0], "Without TOF, 3 iterations", None, 3),
    (axes[1], f"TOF of {resolution_ps:.0f} ps, 1 iteration", tof_mm, 1),
):
    events = lr.ListMode(scanner, crystals=crystals, tof_mm=tof, tof_resolution_ps=resolution_ps)
    B = lr.Operator.of_events(events, grid, voxel_mm, ranges=6, backend="native")
    images: list[NDArray[np.float32]] = []
    lr.recon.osem(B, None, iterations=5, subsets=6, callback=lambda done: images.append(done.image[0]))
    relative = images[iterations - 1] / images[iterations - 1][water & ~hot].mean()
    drawn = axis.imshow(relative, extent=(-205, 205, -205, 205), origin="lower", cmap="gray_r", vmin=0, vmax=5)
    axis.set(title=title, xlabel="x (mm)", ylabel="y (mm)")
    axis.invert_xaxis()  # +x at the left, as in medical viewers
    background = [image[water & ~hot] for image in images]
    noise = [100 * values.std() / values.mean() for values in background]
    contrast = [image[hot].mean() / values.mean() for image, values in zip(images, background)]
    axes[2].plot(noise, contrast, "o-", label=title.split(",")[0])
figure.colorbar(drawn, ax=axes[1], label="activity / background", shrink=0.9)
axes[2].axhline(4, color="black", linestyle="--", linewidth=1, label="Truth")
axes[2].set(title="Iterations 1 to 5", xlabel="noise of the background (%)", ylabel="spheres / background")
axes[2].legend()
figure.savefig("list_mode.png", dpi=80)
