# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""A new scanner of flat modules on half a sphere around a head, and its sensitivity."""

import matplotlib.pyplot as plt
import numpy as np

import loraster as lr

# Rings of modules are 15 degrees apart. Each ring has as many modules as fit, facing the centre of the sphere.
radius_mm, inwards, transaxial = 150.0, [], []
for polar in np.radians([15, 30, 45, 60, 75, 90]):
    number = int(2 * np.pi * np.sin(polar) * radius_mm / 42)
    for azimuth in 2 * np.pi * np.arange(number) / number:
        sine, cosine = np.sin(azimuth), np.cos(azimuth)
        inwards.append([-np.sin(polar) * cosine, -np.sin(polar) * sine, -np.cos(polar)])
        transaxial.append([-sine, cosine, 0.0])
centres = -radius_mm * np.array(inwards)
scanner = lr.Scanner.from_arrays(
    centres, inwards, transaxial, crystals=(4, 4), pitch=8.25, depth=20, name="helmet", field_of_view_mm=200
)
for finding in scanner.check():
    print(finding.sentence)

# The slice at y = 0. The backend cpu accepts modules at any angle and needs no graphics.
A = lr.Operator(
    scanner, (41, 1, 31), 6.0, origin_mm=(-120, 0, -30), backend="cpu", mode="sampled", samples=(2, 1, 2), store=False
)
sensitivity = 100 * A.sensitivity()[:, 0, :]

figure = plt.figure(figsize=(9, 3.8))
left = figure.add_subplot(1, 2, 1, projection="3d")
x, y, z = scanner.crystals.T
left.scatter(x, y, z, c=z, s=2)
left.set(title=f"{scanner.num_modules} modules", xlabel="x (mm)", ylabel="y (mm)", zlabel="z (mm)", aspect="equal")
right = figure.add_subplot(1, 2, 2, facecolor="black")
shown = right.imshow(sensitivity, extent=(-123, 123, -33, 153), origin="lower", cmap="magma")
right.set(title="Sensitivity at y = 0", xlabel="x (mm)", ylabel="z (mm)")
right.invert_xaxis()  # +x at the left, as in medical viewers
figure.colorbar(shown, label="detected decays (%)")
figure.subplots_adjust(left=0.0, right=0.96, bottom=0.15, wspace=0.25)
figure.savefig("own_scanner.png", dpi=75)
