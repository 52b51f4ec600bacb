# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Grids of voxels, as arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from ._arguments import several, whole

Size = Sequence[int]
Millimetres = Union[float, Sequence[float]]
Core = tuple[tuple[int, int, int], tuple[float, float, float], Optional[tuple[float, float, float]]]


class Image(NamedTuple):
    """An image and where it is.

    values: float32 [nz][ny][nx].
    voxel_mm: edges (dx, dy, dz) of a voxel.
    origin_mm: centre (x, y, z) of voxel [0, 0, 0] in the scanner's frame; None = the grid is centred on the origin.
    """

    values: Any
    voxel_mm: Millimetres
    origin_mm: Optional[Sequence[float]] = None


def grid(size: Size, voxel_mm: Millimetres, origin_mm: Optional[Sequence[float]]) -> Core:
    if np.ndim(size) == 0:
        raise TypeError(f"grid is {size}: give nx, ny, nz")
    numbers = tuple(size)
    if len(numbers) != 3:
        raise ValueError(f"grid has {len(numbers)} numbers: give (nx, ny, nz), the voxels along x, y and z")
    return (
        several(numbers, 3, "grid", whole),
        several(voxel_mm, 3, "voxel_mm"),
        None if origin_mm is None else several(origin_mm, 3, "origin_mm"),
    )


def image(given: Any, default: Core, name: str) -> tuple[Any, Core]:
    """An image with its grid: an Image has its own, an array the default's."""
    if not isinstance(given, Image):
        return given, default
    num_dims = np.ndim(given.values)
    if num_dims != 3:
        remedy = "take one of its frames" if num_dims == 4 else "data go with scanner= to .h5 or .hs"
        plural = "s" if num_dims != 1 else ""
        raise ValueError(f"{name} has {num_dims} dimension{plural}, and 3 are needed, [nz][ny][nx]: {remedy}")
    nz, ny, nx = given.values.shape
    return given.values, grid((nx, ny, nz), given.voxel_mm, given.origin_mm)
