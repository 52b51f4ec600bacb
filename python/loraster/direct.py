# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""The family DIRECT: events are put down where time of flight says, in one histo-image for each view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import numpy as np
from numpy.typing import NDArray

from . import _core, _grid
from ._arguments import reads
from .listmode import ListMode

__all__ = ["deposit", "views"]


@reads
def views(azimuths: int = 40, tilts: int = 3, acceptance_deg: float = 10.0) -> NDArray[np.float64]:
    """[azimuths * tilts, 2] azimuth and tilt in degrees of views that share out half a turn and the tilts."""
    return _core.view_set(azimuths, tilts, acceptance_deg)


@reads
def deposit(
    events: ListMode,
    grid: _grid.Size,
    voxel_mm: _grid.Millimetres,
    *,
    azimuths: int = 40,
    tilts: int = 3,
    acceptance_deg: float = 10.0,
    trilinear: bool = False,
    origin_mm: Optional[Sequence[float]] = None,
) -> NDArray[np.float32]:
    """Histo-images [azimuths * tilts][nz][ny][nx] of prompts, in the order of views(azimuths, tilts, acceptance_deg).

    trilinear: events are shared among the eight voxels around them, else they go to the voxel that has them.
    """
    where = _grid.grid(grid, voxel_mm, origin_mm)
    return _core.deposit(events._core, where, (azimuths, tilts), acceptance_deg, trilinear)
