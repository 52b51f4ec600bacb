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


def _flat(values: Any) -> Any:
    """One number, or numbers [n] of the library that has them, on its device."""
    if isinstance(values, (list, tuple)):
        values = np.asarray(values, np.float64)
    if getattr(values, "ndim", 0) == 0:
        return float(values)
    flat = values.reshape(-1)
    return float(flat[0]) if flat.shape[0] == 1 else flat


def _beside(array: Any, numbers: Any) -> Any:
    """NumPy's numbers in the library of an array, on its device."""
    if isinstance(array, np.ndarray):
        return numbers
    if hasattr(array, "new_tensor"):
        return array.new_tensor(numbers)
    return array.__array_namespace__().asarray(numbers)


def _repeated(values: Any, times: int) -> Any:
    """Each row of values [n, ...], that many times."""
    return values[:, None][:, [0] * times].reshape(-1, *values.shape[1:])


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
    return lines(
        xstart,
        xend,
        img_shape,
        img_origin,
        voxsize,
        tof_mm=tof_mm.reshape(-1),
        tof_resolution_ps=sigma_tof * (_FWHM_PER_SIGMA * _PS_PER_MM),
        tof_bin_mm=float(tofbin_width),
        **options,
    )


def _event_lines(
    xstart: Any,
    xend: Any,
    img_shape: Sequence[int],
    img_origin: Any,
    voxsize: Any,
    tofbin_width: float,
    sigma_tof: Any,
    tofcenter_offset: Any,
    tofbin: Any,
    **options: Any,
) -> Operator:
    bins = np.asarray(tofbin) if isinstance(tofbin, (list, tuple)) else tofbin
    tof_mm = bins.reshape(-1) * float(tofbin_width) + _flat(tofcenter_offset)
    return _tof_lines(xstart, xend, img_shape, img_origin, voxsize, tofbin_width, _flat(sigma_tof), tof_mm, **options)


def _sinogram_lines(
    xstart: Any,
    xend: Any,
    img_shape: Sequence[int],
    img_origin: Any,
    voxsize: Any,
    tofbin_width: float,
    sigma_tof: Any,
    tofcenter_offset: Any,
    ntofbins: int,
    **options: Any,
) -> Operator:
    """An operator of all bins of each line, bin after bin."""
    start, end = (_repeated(points.reshape(-1, 3), ntofbins) for points in (xstart, xend))
    sigma, offset = _flat(sigma_tof), _flat(tofcenter_offset)
    num_lines = start.shape[0] // ntofbins
    middles = (np.arange(ntofbins) - (ntofbins - 1) / 2) * float(tofbin_width)
    tof_mm = _beside(start, np.tile(middles, num_lines)) + (
        offset if isinstance(offset, float) else _repeated(offset, ntofbins)
    )
    if not isinstance(sigma, float):
        sigma = _repeated(sigma, ntofbins)
    return _tof_lines(start, end, img_shape, img_origin, voxsize, tofbin_width, sigma, tof_mm, **options)


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

    tofbin_width, sigma_tof and tofcenter_offset (one number, or [n]): mm along the line. nsigmas is not used: the
    Gaussian ends where LORaster's does (docs/method/listmode.md).
    """
    operator = _event_lines(
        xstart, xend, img.shape, img_origin, voxsize, tofbin_width, sigma_tof, tofcenter_offset, tofbin, **options
    )
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
    operator = _event_lines(
        xstart, xend, img_shape, img_origin, voxsize, tofbin_width, sigma_tof, tofcenter_offset, tofbin, **options
    )
    return operator.adjoint(img_fwd.reshape(-1)) * float(tofbin_width)


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
    operator = _sinogram_lines(
        xstart, xend, img.shape, img_origin, voxsize, tofbin_width, sigma_tof, tofcenter_offset, ntofbins, **options
    )
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
    operator = _sinogram_lines(
        xstart, xend, img_shape, img_origin, voxsize, tofbin_width, sigma_tof, tofcenter_offset, ntofbins, **options
    )
    return operator.adjoint(img_fwd.reshape(-1)) * float(tofbin_width)
