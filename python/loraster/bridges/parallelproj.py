# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""parallelproj's functions, by LORaster's operators of lines: docs/guide/from-parallelproj.md.

Arguments have parallelproj's names, order and meaning: images are [n0, n1, n2], coordinates in the order of these axes,
img_origin is the centre of voxel [0, 0, 0], and lengths are in mm. Values are line integrals by Joseph's method, those
with time of flight integrals over each bin, so that the bins of a line add up to its value without.

Each function arranges the lines anew. Who projects the same lines again keeps `lines(...)`, the Operator behind them.
Further keywords are those of Operator.of_lines: backend, device, threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..operator import Operator

__all__ = [
    "joseph3d_back",
    "joseph3d_back_tof_lm",
    "joseph3d_back_tof_sino",
    "joseph3d_fwd",
    "joseph3d_fwd_tof_lm",
    "joseph3d_fwd_tof_sino",
    "lines",
]

_PS_PER_MM = 2 / 0.299792458
_FWHM_PER_SIGMA = 2 * np.sqrt(2 * np.log(2))


def _turned(points: Any) -> Any:
    """Points [..., 3] in the order x, y, z, where parallelproj's axes 0, 1, 2 are z, y, x of an image [nz][ny][nx]."""
    turned = points.reshape(-1, 3)[:, [2, 1, 0]]
    if hasattr(turned, "contiguous"):
        return turned.contiguous()
    return turned.copy("C") if hasattr(turned, "flags") else turned


def _triple(values: Any) -> tuple[float, float, float]:
    a, b, c = (float(value) for value in values)
    return c, b, a


def lines(
    xstart: Any,
    xend: Any,
    img_shape: Sequence[int],
    img_origin: Any,
    voxsize: Any,
    **options: Any,
) -> Operator:
    """An operator of lines between images of parallelproj's order and data [num_lines].

    xstart, xend: [..., 3] ends in mm. options: those of Operator.of_lines.
    """
    grid = tuple(int(n) for n in img_shape)[::-1]
    return Operator.of_lines(
        _turned(xstart), _turned(xend), grid, _triple(voxsize), origin_mm=_triple(img_origin), **options
    )


def _tof_lines(
    xstart: Any,
    xend: Any,
    img_shape: Sequence[int],
    img_origin: Any,
    voxsize: Any,
    tofbin_width: float,
    sigma_tof: Any,
    tof_mm: Any,
    **options: Any,
) -> Operator:
    sigma = np.unique(np.asarray(sigma_tof, np.float64))
    if sigma.size != 1:
        raise ValueError("sigma_tof differs between lines: give one number, or project lines of each resolution alone")
    return lines(
        xstart,
        xend,
        img_shape,
        img_origin,
        voxsize,
        tof_mm=np.ascontiguousarray(tof_mm, np.float32).reshape(-1),
        tof_resolution_ps=float(sigma[0] * _FWHM_PER_SIGMA * _PS_PER_MM),
        tof_bin_mm=float(tofbin_width),
        **options,
    )


def joseph3d_fwd(xstart: Any, xend: Any, img: Any, img_origin: Any, voxsize: Any, **options: Any) -> Any:
    """Line integrals [...] of an image along lines with ends [..., 3]."""
    operator = lines(xstart, xend, img.shape, img_origin, voxsize, **options)
    return operator.forward(img).reshape(xstart.shape[:-1])


def joseph3d_back(
    xstart: Any, xend: Any, img_shape: Sequence[int], img_origin: Any, voxsize: Any, img_fwd: Any, **options: Any
) -> Any:
    """The transpose: an image [n0, n1, n2] of values [...] of lines."""
    return lines(xstart, xend, img_shape, img_origin, voxsize, **options).adjoint(img_fwd.reshape(-1))


def joseph3d_fwd_tof_lm(
    xstart: Any,
    xend: Any,
    img: Any,
    img_origin: Any,
    voxsize: Any,
    tofbin_width: float,
    sigma_tof: Any,
    tofcenter_offset: Any,
    nsigmas: float,
    tofbin: Any,
    **options: Any,
) -> Any:
    """Integrals [n] of an image over the bin of each event; bin 0 is the middle one, positive ones lie towards xend.

    tofbin_width, sigma_tof (one number), tofcenter_offset (one, or [n]): mm along the line. nsigmas is not used: the
    Gaussian ends where LORaster's does (docs/method/listmode.md).
    """
    tof_mm = np.asarray(tofbin, np.float64) * tofbin_width + np.asarray(tofcenter_offset, np.float64)
    operator = _tof_lines(xstart, xend, img.shape, img_origin, voxsize, tofbin_width, sigma_tof, tof_mm, **options)
    return operator.forward(img) * float(tofbin_width)


def joseph3d_back_tof_lm(
    xstart: Any,
    xend: Any,
    img_shape: Sequence[int],
    img_origin: Any,
    voxsize: Any,
    img_fwd: Any,
    tofbin_width: float,
    sigma_tof: Any,
    tofcenter_offset: Any,
    nsigmas: float,
    tofbin: Any,
    **options: Any,
) -> Any:
    """The transpose of joseph3d_fwd_tof_lm."""
    tof_mm = np.asarray(tofbin, np.float64) * tofbin_width + np.asarray(tofcenter_offset, np.float64)
    operator = _tof_lines(xstart, xend, img_shape, img_origin, voxsize, tofbin_width, sigma_tof, tof_mm, **options)
    return operator.adjoint(img_fwd.reshape(-1)) * float(tofbin_width)


def _sinogram(points: Any, tofcenter_offset: Any, tofbin_width: float, ntofbins: int) -> tuple[Any, Any]:
    """Ends [num_lines * bins, 3] and centres in mm of the bins of each line, bin after bin."""
    repeated = points.reshape(-1, 1, 3)[:, [0] * ntofbins].reshape(-1, 3)
    bins = np.arange(ntofbins) - (ntofbins - 1) / 2
    offset = np.broadcast_to(np.asarray(tofcenter_offset, np.float64).reshape(-1, 1), (len(repeated) // ntofbins, 1))
    return repeated, offset + bins * tofbin_width


def joseph3d_fwd_tof_sino(
    xstart: Any,
    xend: Any,
    img: Any,
    img_origin: Any,
    voxsize: Any,
    tofbin_width: float,
    sigma_tof: Any,
    tofcenter_offset: Any,
    nsigmas: float,
    ntofbins: int,
    **options: Any,
) -> Any:
    """Integrals [..., ntofbins] of an image over all bins of each line; the middle bin is at its centre."""
    start, tof_mm = _sinogram(xstart, tofcenter_offset, tofbin_width, ntofbins)
    end, _ = _sinogram(xend, tofcenter_offset, tofbin_width, ntofbins)
    operator = _tof_lines(start, end, img.shape, img_origin, voxsize, tofbin_width, sigma_tof, tof_mm, **options)
    return (operator.forward(img) * float(tofbin_width)).reshape(*xstart.shape[:-1], ntofbins)


def joseph3d_back_tof_sino(
    xstart: Any,
    xend: Any,
    img_shape: Sequence[int],
    img_origin: Any,
    voxsize: Any,
    img_fwd: Any,
    tofbin_width: float,
    sigma_tof: Any,
    tofcenter_offset: Any,
    nsigmas: float,
    ntofbins: int,
    **options: Any,
) -> Any:
    """The transpose of joseph3d_fwd_tof_sino."""
    start, tof_mm = _sinogram(xstart, tofcenter_offset, tofbin_width, ntofbins)
    end, _ = _sinogram(xend, tofcenter_offset, tofbin_width, ntofbins)
    operator = _tof_lines(start, end, img_shape, img_origin, voxsize, tofbin_width, sigma_tof, tof_mm, **options)
    return operator.adjoint(img_fwd.reshape(-1)) * float(tofbin_width)
