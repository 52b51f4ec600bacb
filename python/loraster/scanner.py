# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core, _grid
from ._arguments import number, reads, several, whole, whole_numbers


class Finding(NamedTuple):
    """What the geometry doctor says of a scanner: whether it is a suspicion, of which kind, and what to do."""

    is_suspect: bool
    kind: str
    sentence: str
    remedy: str


class Scanner:
    """A PET scanner: flat modules of crystals, and which of them are in coincidence.

    Frame: right-handed, millimetres, z along the axis, origin at the centre. LORs are numbered from 0 pair of modules
    by pair of modules; crystals over the whole scanner.

    source: a preset's name (Scanner.presets()) or the path of a file: YAML, PETSIRD, CASToR or STIR.
    """

    def __init__(self, source: Union[str, os.PathLike[str]]) -> None:
        self._core = _core.Scanner.read(os.fsdecode(source))

    @classmethod
    def _of(cls, core: _core.Scanner) -> Scanner:
        scanner = cls.__new__(cls)
        scanner._core = core
        return scanner

    @staticmethod
    def presets() -> list[str]:
        """Names of the scanners that LORaster knows."""
        return _core.presets()

    @classmethod
    @reads
    def ring(
        cls,
        *,
        radius_mm: float,
        modules: int,
        crystals: Sequence[int],
        pitch_mm: Union[float, Sequence[float]],
        depth_mm: float,
        face_mm: Union[float, Sequence[float], None] = None,
        rings: int = 1,
        ring_pitch_mm: float = 0.0,
        first_angle_deg: float = 0.0,
        layers_mm: Sequence[float] = (),
        name: str = "ring",
        **rules: float,
    ) -> Scanner:
        """A scanner of `rings` rings of `modules` flat modules.

        radius_mm: from the axis to the modules' front faces.
        crystals, pitch_mm, face_mm: of a module, along u (transaxial) and v (axial); face_mm None = the pitch.
        depth_mm: crystal length. layers_mm: depths of its layers, front to back; () = one layer.
        ring_pitch_mm: distance of the rings' centres.
        rules: field_of_view_mm, min_module_difference, max_ring_difference, detection_depth_mm, tof_resolution_ps
            (FWHM) and crystal_mu_per_mm.
        """
        numbers = dict(
            _read_rules(rules),
            radius_mm=radius_mm,
            modules=modules,
            first_angle_deg=first_angle_deg,
            rings=rings,
            ring_pitch_mm=ring_pitch_mm,
            depth_mm=depth_mm,
        )
        pitch = several(pitch_mm, 2, "pitch_mm")
        face = pitch if face_mm is None else several(face_mm, 2, "face_mm")
        layers = [number(depth, "layers_mm") for depth in layers_mm]
        counts = several(crystals, 2, "crystals", whole)
        return cls._of(_core.Scanner.ring(name, numbers, counts, pitch, face, layers))

    @classmethod
    def from_arrays(
        cls,
        centres: ArrayLike,
        normals: ArrayLike,
        u: ArrayLike,
        *,
        crystals: ArrayLike,
        pitch: ArrayLike,
        depth: ArrayLike,
        face: Optional[ArrayLike] = None,
        name: str = "modules",
        **rules: float,
    ) -> Scanner:
        """A scanner of flat modules anywhere.

        centres: [m, 3] centres of the front faces, mm.
        normals: [m, 3] unit vectors that point inwards; u: [m, 3] unit vectors of the transaxial axis. The axial one
            is v = u x normal.
        crystals: [m, 2] or [2] crystals along u and v; pitch, face: [m, 2], [2] or one number, mm; depth: [m] or one
            number, mm. face None = the pitch.
        rules: as those of Scanner.ring; of the rules of coincidence field_of_view_mm alone.
        """
        numbers = _read_rules(rules)
        centre = np.asarray(centres, np.float64).reshape(-1, 3)
        num = len(centre)
        normal = np.broadcast_to(np.asarray(normals, np.float64), (num, 3))
        along = np.broadcast_to(np.asarray(u, np.float64), (num, 3))
        for what, vectors in (("normals", normal), ("u", along)):
            lengths = np.linalg.norm(vectors, axis=1)
            if num > 0 and np.abs(lengths - 1).max() > 1e-6:
                raise ValueError(
                    f"{what} has vectors of length {lengths.min():.6g} to {lengths.max():.6g}: write "
                    f"{what} / numpy.linalg.norm({what}, axis=1, keepdims=True)"
                )

        def pairs(values: ArrayLike) -> NDArray[np.float64]:
            return np.broadcast_to(np.asarray(values, np.float64), (num, 2))

        rows = np.concatenate(
            [
                centre,
                along,
                np.cross(along, normal),
                normal,
                pairs(whole_numbers(crystals, np.int32, "module {} has {} crystals")),
                pairs(pitch),
                pairs(pitch if face is None else face),
                np.broadcast_to(np.asarray(depth, np.float64).reshape(-1, 1), (num, 1)),
            ],
            axis=1,
        )
        return cls._of(_core.Scanner.of_modules(name, numbers, np.ascontiguousarray(rows)))

    def check(
        self,
        grid: Optional[_grid.Size] = None,
        voxel_mm: _grid.Millimetres = 1.0,
        origin_mm: Optional[Sequence[float]] = None,
    ) -> list[Finding]:
        """What the geometry doctor finds, suspicions first; with a grid also whether it fits the scanner."""
        core = None if grid is None else _grid.grid(grid, voxel_mm, origin_mm)
        return [Finding(*finding) for finding in self._core.check(core)]

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def num_modules(self) -> int:
        return self._core.num_modules

    @property
    def num_crystals(self) -> int:
        return self._core.num_crystals

    @property
    def num_lors(self) -> int:
        """LORs of all pairs of modules in coincidence: the length of data."""
        return self._core.num_lors

    @property
    def tof_resolution_ps(self) -> float:
        """FWHM; 0 = no time of flight."""
        return self._core.tof_resolution_ps

    @property
    def crystals(self) -> NDArray[np.float64]:
        """[num_crystals, 3] centres of the crystals' volumes, mm."""
        return self._core.crystals()

    @property
    def hits(self) -> NDArray[np.float64]:
        """[num_crystals, 3] centres of the crystals on the detection plane, mm: where LORs end."""
        return self._core.hits()

    def lor_crystals(self, lors: Optional[ArrayLike] = None) -> NDArray[np.int32]:
        """[n, 2] the crystals of LORs, that of the lower module first. lors: [n] numbers; None = all."""
        return self._core.lor_crystals(None if lors is None else whole_numbers(lors, np.int64, "row {} names the LOR {}"))

    def lor_of(self, crystals: ArrayLike) -> NDArray[np.int64]:
        """[n] the LOR of each pair of crystals, in either order; -1 out of coincidence. crystals: [n, 2]."""
        return self._core.lor_of(whole_numbers(crystals, np.int32, "row {} names the crystal {}"))

    def _repr_png_(self) -> bytes:
        return png(lambda path: _core.scanner_png(path, self._core))

    def __repr__(self) -> str:
        return f"<Scanner {self.name!r}: {self.num_modules} modules, {self.num_crystals} crystals>"

    def __reduce__(self) -> Any:
        raise TypeError("a Scanner cannot be pickled: write it to a file by loraster.write(path, scanner), and read that")


_RULES = {
    "field_of_view_mm": number,
    "min_module_difference": whole,
    "max_ring_difference": whole,
    "detection_depth_mm": number,
    "tof_resolution_ps": number,
    "crystal_mu_per_mm": number,
}


def _read_rules(rules: dict[str, float]) -> dict[str, float]:
    for name in rules:
        if name not in _RULES:
            raise TypeError(f"a scanner has no {name}: there are {', '.join(sorted(_RULES))}")
    return {name: _RULES[name](value, name) for name, value in rules.items()}


def png(write: Any) -> bytes:
    """The bytes of a picture that is written to a path."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "picture.png")
        write(path)
        with open(path, "rb") as file:
            return file.read()
