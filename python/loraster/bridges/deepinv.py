# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Operators as physics of deepinv: `pip install deepinv`.

physics = loraster.bridges.deepinv.Physics(operator, noise_model=deepinv.physics.PoissonNoise(gain=1.0))
y = physics(x)  # x [batch, 1, nz, ny, nx], y [batch, 1, num_lors]
"""

from __future__ import annotations

from typing import Any

import deepinv  # type: ignore[import-untyped, unused-ignore]
import torch

from ..operator import Operator
from ..torch import Projector

__all__ = ["Physics"]


class Physics(deepinv.physics.LinearPhysics):  # type: ignore[misc, unused-ignore]
    """The system matrix of an operator as a deepinv.physics.LinearPhysics, with its transpose as the adjoint.

    Images are [batch, 1, nz, ny, nx] and data [batch, 1, num_lors] (or the shape of the operator's data), float32, on
    the host or on the operator's device; gradients go through both. What a scanner really has may be in the operator:
    time of flight (Operator.of_events), attenuation, efficiencies, layers, exact elements.
    options: those of LinearPhysics, such as noise_model, max_iter, solver.
    """

    def __init__(self, operator: Operator, **options: Any) -> None:
        super().__init__(img_size=(1, *operator.image_shape), **options)
        self.projector = Projector(operator)

    def A(self, x: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        """The expected data of an image."""
        return self.projector(x)  # type: ignore[no-any-return]

    def A_adjoint(self, y: torch.Tensor, **kwargs: Any) -> torch.Tensor:
        """The back-projection of data."""
        return self.projector.adjoint(y)
