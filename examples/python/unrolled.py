# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""A network of PyTorch: EM updates and small convolutions between them, trained for a few steps on random discs."""

import matplotlib.pyplot as plt
import numpy as np
import torch

import loraster as lr
from loraster.torch import Projector

torch.manual_seed(1)
torch.set_num_threads(1)  # arrays are small
scanner = lr.Scanner.ring(radius_mm=50, modules=16, crystals=(6, 1), pitch_mm=3.1, depth_mm=10, field_of_view_mm=60)
projector = Projector(lr.Operator(scanner, (32, 32, 1), (1.6, 1.6, 3.1), backend="native", samples=1))
sensitivity = projector.sensitivity().clamp(min=1e-6)


class Unrolled(torch.nn.Module):
    """Six EM updates. The same two convolutions correct the image after each of the last three."""

    def __init__(self) -> None:
        super().__init__()
        self.smooth = torch.nn.Sequential(
            torch.nn.Conv2d(1, 12, 5, padding=2), torch.nn.ReLU(), torch.nn.Conv2d(12, 1, 5, padding=2)
        )

    def forward(self, y: torch.Tensor, is_learned: bool = True) -> torch.Tensor:
        x = torch.ones(len(y), 1, 32, 32)
        for k in range(6):
            ratio = y / projector(x).clamp(min=1e-3)
            x = x * projector.adjoint(ratio) / sensitivity
            if is_learned and k >= 3:
                x = (x + 100 * self.smooth(x / 100)).clamp(min=1e-3)
        return x


def discs(count: int) -> torch.Tensor:
    """Images of random discs within a larger disc, in decays per voxel."""
    y, x = torch.meshgrid(torch.arange(-15.5, 16), torch.arange(-15.5, 16), indexing="ij")
    images = 100 * (x**2 + y**2 < 14**2).float().repeat(count, 1, 1)
    for image in images:
        for _ in range(4):
            cx, cy, radius = (20 * torch.rand(3) - 10).tolist()
            image[(x - cx) ** 2 + (y - cy) ** 2 < 9 + 2 * abs(radius)] = 100 + 300 * torch.rand(())
    return images[:, None]


network, losses = Unrolled(), []
optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
for step in range(150):
    truth = discs(4)
    loss = torch.nn.functional.mse_loss(network(torch.poisson(projector(truth))), truth)
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    losses.append(np.sqrt(loss.item()))

truth = discs(1)
with torch.no_grad():
    counts = torch.poisson(projector(truth))
    images = {"Truth": truth, "6 EM updates": network(counts, is_learned=False), "Unrolled network": network(counts)}
figure, axes = plt.subplots(1, 4, figsize=(12, 2.9), layout="constrained", width_ratios=(1, 1, 1.2, 1.2))
for axis, (title, image) in zip(axes, images.items()):
    shown = axis.imshow(image[0, 0], extent=(-25.6, 25.6, -25.6, 25.6), origin="lower", cmap="gray_r", vmin=0, vmax=400)
    error = (image - truth).square().mean().sqrt()
    axis.set(title=title, xlabel="x (mm)" if title == "Truth" else f"x (mm); error {error:.0f}", ylabel="y (mm)")
    axis.invert_xaxis()  # +x at the left, as in medical viewers
figure.colorbar(shown, label="decays per voxel", shrink=0.8)
axes[3].plot(losses)
axes[3].set(title="Training", xlabel="step", ylabel="root mean square error", ylim=(0, None))
figure.savefig("unrolled.png", dpi=80)
