# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
from collections.abc import Sequence
from typing import Any, Optional, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core, _grid, _progress
from ._arguments import check_resolution, check_type, number, reads, several, whole, whole_numbers
from ._arrays import check_output, output_like, result_like
from .listmode import ListMode
from .scanner import Scanner, png

Array = TypeVar("Array")


class _Product:
    """Products that are written by mistake."""

    __array_ufunc__ = None

    def _refuse(self, x: Any) -> Any:
        raise TypeError("an Operator projects an image by A @ x, and data back by A.T @ y: write @, and the array last")

    __mul__ = __rmul__ = __rmatmul__ = dot = _refuse


class Operator(_Product):
    """The system matrix A of a scanner and a grid of voxels: A @ x projects an image, A.T @ y projects back.

    A[l, v] is the probability that a photon pair emitted uniformly in voxel v is detected by LOR l.

    Images are arrays [nz][ny][nx] (A.image_shape), data are [num_lors] by the scanner's numbers of LORs
    (A.data_shape): float32 in C order, and with backend "cpu" float64, too. They may be of any library that has
    __dlpack__, on the host or, where the operator computes on it, on the GPU; results are of the same library, type
    and device. Nothing is converted: what does not fit is an error that says what to write. With out=, results are
    written there and returned.

    Calls give up the interpreter's lock; those of several threads come one after the other. Ctrl-C ends a call by
    KeyboardInterrupt, and the operator may be used again.
    """

    @reads
    def __init__(
        self,
        scanner: Scanner,
        grid: _grid.Size,
        voxel_mm: _grid.Millimetres,
        *,
        origin_mm: Optional[Sequence[float]] = None,
        backend: Optional[str] = None,
        device: int = 0,
        mode: str = "auto",
        rays: int = 0,
        samples: Union[int, Sequence[int]] = 0,
        attenuation: Any = None,
        efficiencies: Any = None,
        psf_mm: Union[float, Sequence[float]] = 0.0,
        store: Optional[bool] = None,
        projections: float = 8.0,
        part: tuple[int, int] = (0, 1),
        subsets: int = 1,
        deterministic: bool = False,
        penetration: bool = False,
        layers_alone: bool = False,
        max_memory_bytes: int = 0,
        threads: int = 0,
        progress: _progress.Progress = None,
    ) -> None:
        """The operator of a scanner and a grid. Defaults stand in the signature.

        scanner: kept alive. grid: (nx, ny, nz) voxels; voxel_mm: (dx, dy, dz) or one number; origin_mm: centre (x, y,
            z) of the first voxel; None = the grid is centred on the origin.
        backend: "cpu" (double precision, reference), "native", "compute" (OpenGL) or "raster"; None or "auto" = the
            first of compute on a GPU, native, compute, cpu that can do what is asked for. "native" cannot for tilted
            modules.
        device: number among the usable ones of loraster.devices().
        mode: "auto", "sampled" (rays x rays lines over each crystal's face) or "exact" (solid angles).
        samples: points per voxel along x, y and z; 0 = as many as the mean needs. Time grows with the points, and of
            sampled elements with the lines, too: a projection of a whole scanner then takes minutes on a processor.
            samples=1, rays=2 is a quick look; progress=True shows how far it is.
        attenuation: map in 1/mm, an array on the operator's grid or a loraster.Image on its own.
        efficiencies: [num_crystals], or [num_lors], float32.
        psf_mm: FWHM along x, y and z, or one, of a Gaussian blur of images before they are projected.
        store: None keeps the matrix where that usually is quicker for so many `projections` and it fits
            max_memory_bytes, as the program's --store auto: "native" keeps it from 3 projections on (it takes the time
            of one or two, and each is much quicker from then on), "cpu" from 2, a GPU never. Write projections=1 for a
            single one. True keeps it or fails, False computes it anew in every projection. A.info["stored"] says what
            has become of it.
        deterministic: the same bits in every run. penetration: photons stop along the crystals' depth, not on one plane
            in it; needs mode "sampled" or "auto", and a backend other than "raster".
        layers_alone: each layer of crystals detects as if it were the only one.
        max_memory_bytes, threads: 0 = half of the machine's memory, all processors.
        part: (rank, ranks) of processes that reconstruct together (loraster.recon, comm=) by so many `subsets`: the
            operator is that of the rank's LORs, whose numbers in the scanner are A.indices.
        progress: True for a bar by tqdm, or lines where it is not installed; or a function of (what, done, total). None
            warns once of work that takes longer than 10 s, False does not.
        """
        check_type(scanner, Scanner, "scanner", "lr.Scanner({})")
        where = _grid.grid(grid, voxel_mm, origin_mm)
        with _progress.listening(progress) as listener:
            core = _core.Operator.correspondence(
                scanner._core,
                where,
                dict(
                    backend=_backend(backend),
                    device=device,
                    mode=mode,
                    rays=rays,
                    samples=several(samples, 3, "samples", whole),
                    attenuation=None if attenuation is None else _grid.image(attenuation, where, "attenuation"),
                    efficiencies=efficiencies,
                    psf_mm=several(psf_mm, 3, "psf_mm"),
                    store=store,
                    projections=projections,
                    part=part,
                    subsets=subsets,
                    deterministic=deterministic,
                    penetration=penetration,
                    layers_alone=layers_alone,
                    max_memory_bytes=max_memory_bytes,
                    threads=threads,
                    progress=listener,
                ),
            )
        self._set(core)

    def _set(self, core: _core.Operator) -> None:
        self._core = core
        self.image_shape: tuple[int, int, int] = core.image_shape
        """(nz, ny, nx)"""
        self.data_shape: tuple[int, ...] = core.data_shape
        """(num_lors,), (num_events,) or, of the family direct, (num_views, nz, ny, nx)."""

    @classmethod
    def _of(cls, core: _core.Operator) -> Operator:
        op = cls.__new__(cls)
        op._set(core)
        return op

    @classmethod
    @reads
    def of_events(
        cls,
        events: ListMode,
        grid: _grid.Size,
        voxel_mm: _grid.Millimetres,
        *,
        origin_mm: Optional[Sequence[float]] = None,
        kernel: str = "tube",
        tube_fwhm_mm: float = 0.0,
        tube_width_mm: float = 0.0,
        samples: Union[int, Sequence[int]] = 0,
        ranges: int = 0,
        backend: Optional[str] = None,
        device: int = 0,
        attenuation: Any = None,
        efficiencies: Any = None,
        factors: Any = None,
        sensitivity_of: Optional[Operator] = None,
        psf_mm: Union[float, Sequence[float]] = 0.0,
        sensitivity_lines: int = 0,
        solid_angles: bool = True,
        seed: int = 0,
        part: tuple[int, int] = (0, 1),
        max_memory_bytes: int = 0,
        threads: int = 0,
        progress: _progress.Progress = None,
    ) -> Operator:
        """An operator of list mode: data are [num_events], one value for each event; the measured one is 1.

        Its sensitivity is that of all LORs in coincidence, times its share of the events in a subset.
        kernel: "tube" (a Gaussian of tube_fwhm_mm across the line, cut at tube_width_mm; 0 = by the crystals),
            "line" (Joseph), or "exact" (solid angles).
        ranges: as many as subsets are to be used; 0 = 1.
        sensitivity_lines: LORs that the sensitivity is estimated from; 0 = enough. seed: of their choice.
        sensitivity_of: an operator of the same scanner, grid, kernel and solid angles, whose sensitivity is taken.
        solid_angles: rows of tubes and lines are multiplied by the solid angle of the crystals, so that images count
            emissions. False: rows are lengths in mm, for factors that contain solid angles, such as a scanner's
            measured normalisation.
        factors: [num_events] float32 that multiply the events' rows, in place of efficiencies and attenuation, which
            then are the sensitivity's alone.
        part: (rank, ranks) of processes that reconstruct together, each from some of the events: its share of the
            sensitivity.
        Other arguments are those of Operator; backend: "cuda", "compute", "native" or "cpu"; None = the first that
            works.
        """
        check_type(events, ListMode, "events", "lr.ListMode(scanner, {})")
        if len(events) == 0:
            raise ValueError("events has no events, of which no data come: is it the right file or selection?")
        where = _grid.grid(grid, voxel_mm, origin_mm)
        with _progress.listening(progress) as listener:
            return cls._of(
                _core.Operator.of_events(
                    events._core,
                    where,
                    dict(
                        kernel=kernel,
                        tube_fwhm_mm=tube_fwhm_mm,
                        tube_width_mm=tube_width_mm,
                        samples=several(samples, 3, "samples", whole),
                        ranges=ranges,
                        backend=_backend(backend),
                        device=device,
                        attenuation=None if attenuation is None else _grid.image(attenuation, where, "attenuation"),
                        efficiencies=efficiencies,
                        psf_mm=several(psf_mm, 3, "psf_mm"),
                        sensitivity_lines=sensitivity_lines,
                        solid_angles=solid_angles,
                        seed=seed,
                        part=part,
                        factors=factors,
                        sensitivity_of=None if sensitivity_of is None else sensitivity_of._core,
                        max_memory_bytes=max_memory_bytes,
                        threads=threads,
                        progress=listener,
                    ),
                )
            )

    @classmethod
    @reads
    def of_lines(
        cls,
        start: Any,
        end: Any,
        grid: _grid.Size,
        voxel_mm: _grid.Millimetres,
        *,
        tof_mm: Any = None,
        tof_resolution_ps: Any = 0.0,
        tof_bin_mm: float = 0.0,
        origin_mm: Optional[Sequence[float]] = None,
        kernel: str = "line",
        tube_fwhm_mm: float = 0.0,
        tube_width_mm: float = 0.0,
        ranges: int = 0,
        factors: Any = None,
        sensitivity_of: Optional[Operator] = None,
        backend: Optional[str] = None,
        device: int = 0,
        psf_mm: Union[float, Sequence[float]] = 0.0,
        max_memory_bytes: int = 0,
        threads: int = 0,
        progress: _progress.Progress = None,
    ) -> Operator:
        """An operator of lines by their ends, of any geometry: data are [num_lines], line integrals in mm.

        start, end: [num_lines, 3] x, y, z in mm, float32 or float64; they are copied.
        tof_mm: [num_lines] place of the annihilation on the line from its middle, positive towards the end, with
            tof_resolution_ps (FWHM of the time difference; one number, or [num_lines]); elements are then densities
            per mm of tof_mm, means over bins of tof_bin_mm around it (0 = not binned). None = no time of flight.
        kernel: "line" (Joseph) or "tube" (a Gaussian of tube_fwhm_mm across the line, cut at tube_width_mm).
        factors: [num_lines] float32 that multiply the lines' rows.
        Its sensitivity is A^T 1 of these lines, or, for lines that are single events, that of the operator
        sensitivity_of. ranges: as many as subsets are to be used; subset k has the k-th part of the lines, so that
        lines are best ordered by angle within them, as sinogram[k::n].
        Other arguments are those of of_events.
        """
        where = _grid.grid(grid, voxel_mm, origin_mm)
        has_own = getattr(tof_resolution_ps, "ndim", 0) > 0
        if not has_own:
            check_resolution(tof_resolution_ps, "tof_resolution_ps")
        with _progress.listening(progress) as listener:
            return cls._of(
                _core.Operator.of_lines(
                    start,
                    end,
                    tof_mm,
                    where,
                    dict(
                        kernel=kernel,
                        tube_fwhm_mm=tube_fwhm_mm,
                        tube_width_mm=tube_width_mm,
                        tof_resolution_ps=0.0 if has_own else number(tof_resolution_ps, "tof_resolution_ps"),
                        tof_resolutions_ps=tof_resolution_ps if has_own else None,
                        tof_bin_mm=tof_bin_mm,
                        ranges=ranges,
                        factors=factors,
                        sensitivity_of=None if sensitivity_of is None else sensitivity_of._core,
                        backend=_backend(backend),
                        device=device,
                        psf_mm=several(psf_mm, 3, "psf_mm"),
                        max_memory_bytes=max_memory_bytes,
                        threads=threads,
                        progress=listener,
                    ),
                )
            )

    @classmethod
    @reads
    def direct(
        cls,
        grid: _grid.Size,
        voxel_mm: _grid.Millimetres,
        *,
        views: ArrayLike,
        tof_ps: float,
        origin_mm: Optional[Sequence[float]] = None,
        radial_mm: float = 0.0,
        radial_edge_mm: float = 0.0,
        edge_mm: float = 0.0,
        axial_mm: float = 0.0,
        factors: Any = None,
        backend: Optional[str] = None,
        device: int = 0,
        max_memory_bytes: int = 0,
        threads: int = 0,
        progress: _progress.Progress = None,
    ) -> Operator:
        """An operator of the family DIRECT: data are histo-images [num_views][nz][ny][nx].

        views: [num_views, 2] azimuth and tilt in degrees (loraster.direct.views). tof_ps: FWHM of the time difference.
        radial_mm, axial_mm: FWHM across the lines; 0 = 5.8. radial_edge_mm: that at edge_mm from the axis, linear from
            radial_mm at the axis; 0 = the same everywhere.
        factors: [num_views][nz][ny][nx] float32, multiplied with projections. backend: "cuda", "compute" or "cpu".
        """
        check_resolution(tof_ps, "tof_ps")
        with _progress.listening(progress) as listener:
            return cls._of(
                _core.direct(
                    _grid.grid(grid, voxel_mm, origin_mm),
                    np.ascontiguousarray(views, dtype=np.float64),
                    dict(
                        tof_ps=tof_ps,
                        radial_mm=radial_mm,
                        radial_edge_mm=radial_edge_mm,
                        edge_mm=edge_mm,
                        axial_mm=axial_mm,
                        factors=factors,
                        backend=_backend(backend),
                        device=device,
                        max_memory_bytes=max_memory_bytes,
                        threads=threads,
                        progress=listener,
                    ),
                )
            )

    @property
    def shape(self) -> tuple[int, int]:
        """(numbers of data, voxels)"""
        return _size(self.data_shape), _size(self.image_shape)

    @property
    def info(self) -> dict[str, Any]:
        """Facts: backend, device, mode, whether the matrix is stored, and others."""
        return self._core.info

    def forward(self, x: Array, out: Optional[Array] = None, *, progress: _progress.Progress = None) -> Array:
        """A x. x, out: image [nz][ny][nx] and data."""
        if out is not None:
            _progress.run(self._core.forward, progress, x, check_output(out))
            return out
        result = output_like(x, self.data_shape)
        _progress.run(self._core.forward, progress, x, result)
        return result_like(x, result)

    def adjoint(self, y: Array, out: Optional[Array] = None, *, progress: _progress.Progress = None) -> Array:
        """A^T y. y, out: data and image [nz][ny][nx]."""
        if out is not None:
            _progress.run(self._core.adjoint, progress, y, check_output(out))
            return out
        result = output_like(y, self.image_shape)
        _progress.run(self._core.adjoint, progress, y, result)
        return result_like(y, result)

    def sensitivity(self, out: Any = None, *, progress: _progress.Progress = None) -> Any:
        """A^T 1, an image [nz][ny][nx]: a NumPy array where out is None. Computed once for all data, and kept."""
        if out is None:
            out = np.empty(self.image_shape, np.float32)
        _progress.run(self._core.sensitivity, progress, check_output(out))
        return out

    def __matmul__(self, x: Array) -> Array:
        return self.forward(x)

    __call__ = forward

    @property
    def T(self) -> Adjoint:
        """A^T"""
        return Adjoint(self)

    @reads
    def subset(self, k: int, n: int) -> Operator:
        """Subset k of n, 0 <= k < n, which see the object evenly: an operator with its own sensitivity.

        Its data are those at A.subset(k, n).indices of all data. The subsets of list mode are ranges of events
        (of_events, ranges=n), those of the family direct are views.
        """
        return Operator._of(self._core.subset(k, n))

    @property
    def indices(self) -> NDArray[np.int64]:
        """Where the data of a subset stand along the first axis of all data: y[A.subset(k, n).indices]."""
        return self._core.indices()

    def to_csr(self, rows: Any = None, progress: _progress.Progress = None) -> Any:
        """The matrix as a scipy.sparse.csr_array of float32.

        rows: the numbers of its LORs, ascending, or a slice; None = all. The array has a row for each of them.
        """
        from scipy.sparse import csr_array

        num_rows, num_voxels = self.shape
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(num_rows))
        if rows is not None:
            rows = whole_numbers(rows, np.int64, "row {} names the LOR {}")
            num_rows = len(rows)
        with _progress.listening(progress) as listener:
            values, columns, starts = self._core.csr(rows, listener)
        return csr_array((values, columns, starts), shape=(num_rows, num_voxels))

    def row(self, lor: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The voxels, numbered ix + nx (iy + ny iz), and elements of one LOR: its tube of response."""
        values, columns, _ = self._core.csr(whole_numbers([lor], np.int64, "row {} names the LOR {}"), None)
        return columns, values

    def column(self, voxel: Union[int, Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The LORs and elements of one voxel: its number, or its index [iz, iy, ix] in an image."""
        if isinstance(voxel, (int, np.integer)):
            number = int(voxel)
        else:
            try:
                number = int(np.ravel_multi_index(tuple(voxel), self.image_shape))
            except ValueError:
                raise ValueError(
                    f"voxel {tuple(voxel)} is outside [nz][ny][nx] = {self.image_shape}: the order is iz, iy, ix"
                ) from None
        values, columns, _ = self._core.voxel_rows(number, number + 1)
        return columns, values

    @reads
    def correspondence(self, point_mm: Sequence[float], module: int) -> Correspondence:
        """What a point (x, y, z) sees through a module: the correspondence image. Sampled mode alone."""
        point = several(point_mm, 3, "point_mm")
        return Correspondence(_core.correspondence(self._core, point, module), self._core, module)

    def aslinearoperator(self) -> Any:
        """A scipy.sparse.linalg.LinearOperator of float32 on flat images and data."""
        from scipy.sparse.linalg import LinearOperator

        def matvec(x: NDArray[Any]) -> NDArray[Any]:
            return self.forward(np.ascontiguousarray(x, np.float32).reshape(self.image_shape)).reshape(-1)

        def rmatvec(y: NDArray[Any]) -> NDArray[Any]:
            return self.adjoint(np.ascontiguousarray(y, np.float32).reshape(self.data_shape)).reshape(-1)

        return LinearOperator(self.shape, matvec=matvec, rmatvec=rmatvec, dtype=np.float32)

    def __repr__(self) -> str:
        info = self.info
        kept = f", matrix of {info['memory_bytes'] / 1e6:.3g} MB kept" if info["stored"] else ""
        return f"<Operator {self.data_shape} x {self.image_shape}, {info['backend']} on {info['device']}{kept}>"

    def __reduce__(self) -> Any:
        raise TypeError("an Operator cannot be pickled: pickle the arguments that it is made of, and make it again")


class Adjoint(_Product):
    """A^T of an Operator."""

    def __init__(self, op: Operator) -> None:
        self.T = op

    @property
    def shape(self) -> tuple[int, int]:
        return self.T.shape[::-1]

    def __matmul__(self, y: Array) -> Array:
        return self.T.adjoint(y)

    def __repr__(self) -> str:
        return f"<transpose of {self.T!r}>"


class Correspondence:
    """The correspondence image of a point with one module, u to the right and v upwards.

    Each is [rays * nv][rays * nu], a pixel for each line through the point and the module:
    module: the module that the line meets on the other side; -1 = none.
    r, s: the crystal on it. weight: the probability that the line carries. path_mm: distance between the two hits.
    """

    def __init__(self, pixels: NDArray[np.float32], core: _core.Operator, primary: int) -> None:
        self._pixels, self._core, self.primary = pixels, core, primary
        self.module, self.r, self.s = (pixels[..., k].astype(np.int32) for k in range(3))
        self.weight, self.path_mm = pixels[..., 3], pixels[..., 4]

    def png(self, of_weights: bool = False) -> bytes:
        """A picture in the paper's false colours, red for r and green for s; or of the weights."""
        return png(lambda path: _core.correspondence_png(path, self._pixels, self._core, self.primary, of_weights))

    def _repr_png_(self) -> bytes:
        return self.png()


def devices() -> list[dict[str, Any]]:
    """Devices that OpenGL finds, and for each that is not usable the reason. Operators count the usable ones."""
    _load_triton()
    return _core.devices()


def _backend(name: Optional[str]) -> str:
    if name not in ("cpu", "cuda", "native"):
        _load_triton()
    return name or "auto"


@functools.cache
def _load_triton() -> None:
    """Loads PyTorch's Triton, where it is installed, before OpenGL.

    Mesa shares its LLVM with all that is loaded later, and a Triton that finds it in place of its own crashes.
    """
    found = importlib.util.find_spec("triton")
    if found is None or found.origin is None:
        return
    library = os.path.join(os.path.dirname(found.origin), "_C", "libtriton.so")
    with contextlib.suppress(OSError):
        ctypes.CDLL(library)


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size
