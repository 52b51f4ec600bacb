# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""A small-animal scanner of two rings, and its sensitivity: the geometric probability that a decay is detected."""

import matplotlib.pyplot as plt

import loraster as lr

scanner = lr.Scanner("ge-explore-vista-dr")
grid, voxel_mm = (24, 1, 18), 2.6  # the slice at y = 0
A = lr.Operator(scanner, grid, voxel_mm, backend="native", mode="sampled", rays=2, samples=3, store=False)
sensitivity = 100 * A.sensitivity()[:, 0, :]  # [nz][nx], in per cent
print(f"{scanner!r}, {scanner.num_lors} LORs; at most {sensitivity.max():.1f} % of the decays are detected")

x_edge, z_edge = grid[0] * voxel_mm / 2, grid[2] * voxel_mm / 2
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
left.plot(scanner.crystals[:, 0], scanner.crystals[:, 2], ".", markersize=2)
left.plot([-x_edge, x_edge, x_edge, -x_edge, -x_edge], [-z_edge, -z_edge, z_edge, z_edge, -z_edge], "tab:red")
left.set(title="Crystals, grid in red", xlabel="x (mm)", ylabel="z (mm)", aspect="equal")
left.invert_xaxis()  # +x at the left, as in medical viewers

extent = (-x_edge, x_edge, -z_edge, z_edge)
shown = middle.imshow(sensitivity, extent=extent, origin="lower", cmap="magma", vmin=0)
middle.set(title="Sensitivity at y = 0", xlabel="x (mm)", ylabel="z (mm)")
middle.invert_xaxis()
figure.colorbar(shown, label="detected decays (%)", shrink=0.8)

z_mm = [(k - (grid[2] - 1) / 2) * voxel_mm for k in range(grid[2])]
right.plot(z_mm, sensitivity[:, 11:13].mean(axis=1), "o-", markersize=3)
right.set(title="Sensitivity near the axis", xlabel="z (mm)", ylabel="detected decays (%)", ylim=(0, None))
right.grid(alpha=0.3)
figure.savefig("sensitivity.png", dpi=90)
