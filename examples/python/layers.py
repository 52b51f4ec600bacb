# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Two layers of crystals show how deep a photon stops, so that points far from the axis are sharper."""

import matplotlib.pyplot as plt
import numpy as np

import loraster as lr

# The points are 8 mm apart along x and y, from the axis outwards.
grid, voxel_mm, origin_mm = (44, 24, 1), (1.0, 1.0, 2.0), (-8.0, -11.5, 0.0)
activity = np.zeros((1, 24, 44), np.float32)
activity[0, 4::8, 8::8] = 1
extent = (-8.5, 35.5, -12, 12)
layers = {"One layer of 20 mm": (), "Two layers of 10 mm": (10.0, 10.0)}

figure, axes = plt.subplots(2, 2, figsize=(10, 4.6))
figure.subplots_adjust(left=0.08, right=0.97, bottom=0.12, top=0.93, hspace=0.65)
for row, (title, layers_mm) in zip(axes, layers.items()):
    scanner = lr.Scanner.ring(
        radius_mm=45,
        modules=18,
        crystals=(7, 1),
        pitch_mm=2.1,
        depth_mm=20,
        layers_mm=layers_mm,
        field_of_view_mm=76,
        crystal_mu_per_mm=0.087,  # LSO at 511 keV
    )
    A = lr.Operator(
        scanner,
        grid,
        voxel_mm,
        origin_mm=origin_mm,
        backend="native",
        mode="sampled",  # depth is integrated along lines
        rays=3,
        samples=(2, 2, 1),
        penetration=True,
    )
    counts = lr.poisson(2e6 * (A @ activity), seed=1)
    image = lr.recon.osem(A, counts, iterations=8, subsets=6)

    # The tube of response of one LOR, whose crystals are those nearest to two points, in the front layer.
    ends = [np.linalg.norm(scanner.crystals - (20, y, 0), axis=1).argmin() for y in (-44, 44)]
    tube = np.zeros(activity.size)
    voxels, values = A.row(int(scanner.lor_of([ends])[0]))
    tube[voxels] = 100 * values
    shown = row[0].imshow(tube.reshape(24, 44), extent=extent, origin="lower", cmap="magma")
    row[0].set_title(f"{title}: a tube of response")
    figure.colorbar(shown, label="detected decays (%)")
    shown = row[1].imshow(image[0] / 2e6, extent=extent, origin="lower", cmap="gray_r", vmin=0, vmax=1)
    row[1].set_title(f"OSEM of {counts.sum() / 1e6:.1f} million counts")
    figure.colorbar(shown, label="image / activity")
    for axis in row:
        axis.set(xlabel="x (mm)", ylabel="y (mm)", xticks=(0, 10, 20, 30), yticks=(-10, 0, 10))
        axis.invert_xaxis()  # +x at the left, as in medical viewers
figure.savefig("layers.png", dpi=75)
