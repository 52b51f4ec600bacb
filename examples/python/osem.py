# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""OSEM of a Derenzo phantom: two million counts, three iterations of eight subsets."""

import matplotlib.pyplot as plt

import loraster as lr

scanner = lr.Scanner.ring(radius_mm=50, modules=20, crystals=(9, 2), pitch_mm=1.7, depth_mm=10, field_of_view_mm=52)
grid, voxel_mm = (80, 80, 3), (0.6, 0.6, 1.2)
A = lr.Operator(scanner, grid, voxel_mm, backend="native", samples=1)
activity = lr.phantom("derenzo", grid, voxel_mm)
expected = A @ activity
decays = 2e6 / expected.sum()  # decays per unit of activity for two million counts
counts = lr.poisson(decays * expected, seed=1)
image = lr.recon.osem(A, counts, iterations=3, subsets=8)
print(f"{A!r}: {counts.sum():.0f} counts")

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="compressed", sharey=True)
for axis, shown, title in zip(axes, (decays * activity, image), ("Truth", "OSEM, 3 iterations of 8 subsets")):
    drawn = axis.imshow(shown[1], extent=(-24, 24, -24, 24), origin="lower", cmap="gray_r", vmin=0, vmax=2 * decays)
    axis.set(title=title, xlabel="x (mm)")
    axis.invert_xaxis()  # +x at the left, as in medical viewers
axes[0].set_ylabel("y (mm)")
figure.colorbar(drawn, ax=axes, label="decays per voxel")
figure.savefig("osem.png", dpi=90)
