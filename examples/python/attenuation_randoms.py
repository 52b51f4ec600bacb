# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Images of a water cylinder: attenuation and randoms are left out of the model, or included."""

import matplotlib.pyplot as plt
import numpy as np

import loraster as lr

scanner = lr.Scanner.ring(radius_mm=350, modules=56, crystals=(6, 1), pitch_mm=6.4, depth_mm=20, field_of_view_mm=420)
grid, voxel_mm = (80, 80, 1), (6.0, 6.0, 6.4)
y, x = np.mgrid[-237:238:6, -237:238:6]
water = (x**2 + y**2 < 120**2).astype(np.float32)[np.newaxis]
activity = water * np.where((x - 50) ** 2 + y**2 < 25**2, 4, 1)
activity = activity.astype(np.float32)
mu = 0.0096 * water  # water at 511 keV, 1/mm

A = lr.Operator(scanner, grid, voxel_mm, backend="native", samples=1)
with_water = lr.Operator(scanner, grid, voxel_mm, backend="native", samples=1, attenuation=mu)
expected = with_water @ activity
expected *= 1e6 / expected.sum()
randoms = np.full_like(expected, 0.5 * expected.mean())  # a third of all prompts, equal on all LORs
prompts = lr.poisson(expected + randoms, seed=1)

images = {
    "Neither is known": lr.recon.osem(A, prompts, iterations=4, subsets=8),
    "Attenuation is known": lr.recon.osem(with_water, prompts, iterations=4, subsets=8),
    "Randoms as well": lr.recon.osem(with_water, prompts, iterations=4, subsets=8, additive=randoms),
}
figure, axes = plt.subplots(1, 4, figsize=(13, 3), layout="constrained", width_ratios=(1, 1, 1.25, 1.3))
for axis, (title, image) in zip(axes, images.items()):
    relative = image[0] / image[0, water[0] > 0].mean()
    drawn = axis.imshow(relative, extent=(-240, 240, -240, 240), origin="lower", cmap="gray_r", vmin=0, vmax=4)
    # +x at the left, as in medical viewers
    axis.set(title=title, xlabel="x (mm)", ylabel="y (mm)", xlim=(160, -160), ylim=(-160, 160))
    axes[3].plot(x[0], relative[38:42].mean(axis=0), label=title)
figure.colorbar(drawn, ax=axes[2], shrink=0.9)
axes[3].plot(x[0], activity[0, 40] / activity[water > 0].mean(), "k--", linewidth=1, label="Truth")
axes[3].set(title="Profile at y = 0", xlabel="x (mm)", ylabel="activity / mean in water", ylim=(0, 6))
axes[3].set(xlim=(160, -160), xticks=(100, 0, -100))
axes[3].legend(fontsize="x-small")
figure.savefig("attenuation_randoms.png", dpi=80)
