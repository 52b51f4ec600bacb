# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""BSREM with the relative difference prior converges, while the noise of OSEM grows with each iteration."""

import matplotlib.pyplot as plt
import numpy as np

import loraster as lr

scanner = lr.Scanner.ring(radius_mm=50, modules=20, crystals=(8, 1), pitch_mm=1.9, depth_mm=10, field_of_view_mm=50)
grid, voxel_mm = (60, 60, 1), (0.8, 0.8, 1.9)
A = lr.Operator(scanner, grid, voxel_mm, backend="native", samples=1)
activity = lr.phantom("spheres", grid, voxel_mm)
expected = A @ activity
decays = 2e5 / expected.sum()
counts = lr.poisson(decays * expected, seed=1)

plt.rcParams["image.interpolation"] = "nearest"
figure, axes = plt.subplots(1, 4, figsize=(13, 3), layout="constrained", width_ratios=(1, 1, 1.25, 1.3))
for axis, title, iterations, beta in (
    (axes[0], "OSEM, 4 iterations", 4, None),
    (axes[1], "OSEM, 20 iterations", 20, None),
    (axes[2], "BSREM, 20 iterations", 20, 0.001),
):
    errors: list[float] = []

    def note(done: lr.recon.Iteration) -> None:
        errors.append(float(np.sqrt(np.mean((done.image / decays - activity) ** 2) / np.mean(activity**2))))

    if beta is None:
        image = lr.recon.osem(A, counts, iterations=iterations, subsets=6, callback=note)
    else:
        prior = lr.recon.RDP(beta=beta)
        image = lr.recon.bsrem(A, counts, iterations=iterations, subsets=6, prior=prior, callback=note)
    shown = axis.imshow(image[0] / decays, extent=(-24, 24, -24, 24), origin="lower", cmap="gray_r", vmin=0, vmax=1.2)
    axis.set(title=title, xlabel="x (mm)", ylabel="y (mm)")
    axis.invert_xaxis()  # +x at the left, as in medical viewers
    if iterations == 20:
        axes[3].plot(range(1, 21), [100 * error for error in errors], label=title.split(",")[0])
figure.colorbar(shown, label="image / activity", shrink=0.9)
axes[3].set(title="Distance to the truth", xlabel="iteration", ylabel="root mean square error (%)", ylim=(0, None))
axes[3].legend()
figure.savefig("bsrem.png", dpi=80)
