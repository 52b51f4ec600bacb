# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""From crystals to LORaster's flat, even modules."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Mapping, Optional, Union

import numpy as np
import numpy.typing as npt

from .. import _core
from .crystals import LEVELS, Crystals, Floats, Ints, crystals_of, levels_of, system_of
from .macro import Macro, MacroError, read_macro

if TYPE_CHECKING:
    import loraster

TOLERANCE_MM = 1e-3
"""Crystals that lie on one lattice do so to this distance."""


def _cluster(values: Floats, tolerance: float = TOLERANCE_MM) -> Ints:
    """Labels of values that lie closer to each other than a tolerance."""
    order = np.argsort(values, kind="stable")
    labels = np.empty(len(values), dtype=np.int64)
    labels[order] = np.concatenate([[0], np.cumsum(np.diff(values[order]) > tolerance)])
    return labels


def _runs(key: Ints, place: Floats) -> tuple[Ints, Ints, Floats]:
    """Cuts things of one key, sorted by place, into runs of equal steps: run and position in it of each, and the step
    of each run (0 where it has one thing only)."""
    order = np.lexsort((place, key))
    step = np.diff(place[order])
    is_within = np.diff(key[order]) == 0
    pitch = np.zeros(len(key))
    starts = np.flatnonzero(np.concatenate([[True], ~is_within]))
    for start, end in zip(starts, np.append(starts[1:], len(key))):
        if end - start > 1:
            pitch[start:end] = np.sort(step[start : end - 1])[(end - start - 2) // 2]
    joined = is_within & (np.abs(step - pitch[1:]) < TOLERANCE_MM)
    heads = np.concatenate([[True], ~joined])
    number = np.cumsum(heads) - 1
    first = np.flatnonzero(heads)
    run, position = np.empty(len(key), dtype=np.int64), np.empty(len(key), dtype=np.int64)
    run[order], position[order] = number, np.arange(len(key)) - first[number]
    lengths = np.diff(np.append(first, len(key)))
    return run, position, np.where(lengths > 1, pitch[first], 0.0)


def _first_of(labels: Ints) -> Ints:
    """Index of the first thing of each label 0, 1, ..."""
    return np.unique(labels, return_index=True)[1]


def _keys(*columns: npt.ArrayLike) -> Ints:
    """One label for each combination of labels."""
    return np.unique(np.stack([np.asarray(c, dtype=np.int64) for c in columns], axis=1), axis=0, return_inverse=True)[
        1
    ].reshape(-1)


@dataclass
class Geometry:
    """A scanner as LORaster's flat modules, and GATE's numbers of its crystals.

    Frame: that of GATE's world, mm; z is the scanner's axis. Module m holds crystals[m] = (nu, nv) crystals, and its
    crystal (p, q) has the number first_crystal[m] + q nu + p.
    """

    name: str
    system: str
    """GATE's type of system"""
    centre_mm: Floats
    """[modules][3] middles of the front faces"""
    u: Floats
    """[modules][3] unit vector around the axis"""
    v: Floats
    """[modules][3] unit vector along the axis"""
    crystals: Ints
    """[modules][2]"""
    pitch_mm: Floats
    face_mm: Floats
    depth_mm: Floats
    layer: Ints
    """0 = in front"""
    block: Ints
    """number that the layers of a block share, from 1; 0 = without layers"""
    position: Ints
    """place around the ring, or -1"""
    num_positions: int
    material: list[str]
    """of the crystals of each module, if LORaster knows its attenuation; else empty"""
    detection_depth_mm: float
    """plane behind the front faces on which hits are read"""
    min_sector_difference: int
    """the macro's minSectorDifference, 0 = none"""
    tof_resolution_ps: float
    """FWHM of time differences, 0 = not in the macro"""
    number_of: Ints
    """[levels ...] LORaster's number of the crystal with these of GATE's, -1 = none"""
    box_centre_mm: Floats
    """[crystals][3] in LORaster's order"""
    box_axes: Floats
    """[crystals][3][3] unit vectors along u, v and inwards"""
    box_size_mm: Floats
    """[crystals][3] along these"""
    counts_scatter: bool
    """false if there are volumes beside the scanner, none of which is a phantom (attachPhantomSD): GATE counts the
    scatter in phantoms alone"""

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of GATE's levels, without the gantry."""
        return LEVELS[self.system]

    @property
    def num_crystals(self) -> int:
        return len(self.box_centre_mm)

    def __repr__(self) -> str:
        num = f"{len(self.crystals)} modules, {self.num_crystals} crystals"
        return f"<GATE geometry {self.name!r}: {self.system}, {num}>"

    def to_yaml(self) -> str:
        """The scanner in LORaster's format (docs/formats/scanners.md)."""
        lines = [f"name: {json.dumps(self.name)}"]
        if self.num_positions:
            lines.append(f"num_positions: {self.num_positions}")
        if self.num_positions and self.min_sector_difference > 1:
            lines.append(f"coincidence: {{min_module_difference: {self.min_sector_difference}}}")
        if self.tof_resolution_ps > 0:
            lines.append(f"tof: {{resolution_ps: {self.tof_resolution_ps!r}}}")
        lines.append(f"detection_depth_mm: {self.detection_depth_mm!r}")
        lines.append("modules:")
        rings = _rings(self)
        for m in range(len(self.centre_mm)):
            vectors = {
                "center_mm": self.centre_mm[m],
                "u": self.u[m],
                "v": self.v[m],
                "crystals": self.crystals[m],
                "pitch_mm": self.pitch_mm[m],
                "face_mm": self.face_mm[m],
            }
            text = ", ".join(f"{key}: {value.tolist()}" for key, value in vectors.items())
            text += f", depth_mm: {float(self.depth_mm[m])!r}"
            if self.block[m]:
                text += f", layer: {self.layer[m]}, block: {self.block[m]}"
            if self.num_positions:
                text += f", position: {self.position[m]}, ring: {rings[m][0]}, first_crystal_ring: {rings[m][1]}"
            if self.material[m]:
                text += f", crystal_material: {self.material[m]}"
            lines.append(f"  - {{{text}}}")
        return "\n".join(lines) + "\n"

    @cached_property
    def scanner(self) -> loraster.Scanner:
        """The scanner itself; LORaster checks the geometry and says what is wrong with it."""
        import loraster

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "gate.yaml"
            path.write_text(self.to_yaml(), encoding="utf-8")
            return loraster.Scanner(str(path))


def _rings(geometry: Geometry) -> list[tuple[int, int]]:
    """Ring of each module and crystal rings before it, counted along z at its place and layer."""
    rings = [(0, 0)] * len(geometry.centre_mm)
    z = geometry.centre_mm[:, 2]
    place = _keys(geometry.position, geometry.layer)
    for key in range(place.max() + 1):
        members = np.flatnonzero(place == key)
        levels = np.unique(_cluster(z[members]), return_inverse=True)[1]
        first = 0
        for ring in range(levels.max() + 1):
            for m in members[levels == ring]:
                rings[m] = (ring, first)
            first += int(geometry.crystals[members[levels == ring], 1].max())
    return rings


def _layers(crystals: Crystals, front: Floats) -> Ints:
    """Layer of each crystal: within a panel, planes of front faces that lie behind each other's crystals."""
    order = np.lexsort((-front, crystals.panel))
    is_new = np.diff(crystals.panel[order], prepend=-1) != 0
    is_plane = is_new | (np.diff(front[order], prepend=np.inf) < -TOLERANCE_MM)
    layer = np.zeros(len(front), dtype=np.int64)
    heads = np.flatnonzero(is_plane)
    back, number = 0.0, 0
    for head, end in zip(heads, np.append(heads[1:], len(front))):
        plane, depth = front[order[head]], crystals.size_mm[order[head], 2]
        is_behind = not is_new[head] and plane < back + TOLERANCE_MM
        number = 0 if is_new[head] else number + is_behind
        back = plane - depth if is_new[head] or is_behind else min(back, plane - depth)
        layer[order[head:end]] = number
    return layer


@dataclass
class Lattices:
    """Crystals joined into modules."""

    module: Ints
    """[n] module of each crystal; modules in the order of their first crystals"""
    place: Ints
    """[n][2] the crystal's p and q in it"""
    pitch_mm: Floats
    """[modules][2]; the face where there is one crystal only"""
    layer: Ints
    """[n]"""

    @property
    def first(self) -> Ints:
        return _first_of(self.module)

    @property
    def num(self) -> Ints:
        """[modules][2] crystals along u and v"""
        num = np.zeros((self.module.max() + 1, 2), dtype=np.int64)
        np.maximum.at(num, self.module, self.place + 1)
        return num

    def centres_mm(self, crystals: Crystals) -> Floats:
        """[modules][3] middles of the front faces"""
        first, axes = self.first, crystals.axes[self.first]
        away = ((self.num - 1) / 2 - self.place[first]) * self.pitch_mm
        centres: Floats = (
            crystals.centre_mm[first]
            + crystals.size_mm[first, 2:] / 2 * axes[:, 2]
            + away[:, :1] * axes[:, 0]
            + away[:, 1:] * axes[:, 1]
        )
        return centres


def lattices_of(crystals: Crystals) -> Lattices:
    """Joins crystals that look the same way and stand on one flat, even lattice."""
    u, v, inwards = (np.einsum("ni,ni->n", crystals.centre_mm, crystals.axes[:, k]) for k in range(3))
    front = inwards + crystals.size_mm[:, 2] / 2
    layer = _layers(crystals, front)
    alike = _keys(
        *(_cluster(column, 1e-7) for column in crystals.axes.reshape(len(u), 9).T),
        _cluster(front),
        *(_cluster(column) for column in crystals.size_mm.T),
        crystals.material,
        layer,
    )
    column, q, pitch_v = _runs(_keys(alike, _cluster(u)), v)
    first = _first_of(column)
    start = np.full(len(first), np.inf)
    np.minimum.at(start, column, v)
    row, p, pitch_u = _runs(_keys(alike[first], _cluster(start), np.bincount(column), _cluster(pitch_v)), u[first])

    module = row[column]
    order = np.argsort(_first_of(module))
    pitch = np.stack([pitch_u, pitch_v[_first_of(row)]], axis=1)[order]
    module = np.argsort(order)[module]
    face = crystals.size_mm[_first_of(module), :2]
    joined = Lattices(module, np.stack([p[column], q], axis=1), np.where(pitch > 0, pitch, face), layer)
    return _apart(crystals, joined)


def _apart(crystals: Crystals, joined: Lattices) -> Lattices:
    """Cuts modules whose outermost cells, which are wider than their crystals, would lie in another module: the
    outermost lines of crystals become modules of their own."""
    num, first, centres = joined.num, joined.first, joined.centres_mm(crystals)
    axes, depth = crystals.axes[first], crystals.size_mm[first, 2]
    cells = np.concatenate([num * joined.pitch_mm, depth[:, None]], axis=1) / 2
    faces = np.concatenate([(num - 1) * joined.pitch_mm + crystals.size_mm[first, :2], depth[:, None]], axis=1) / 2
    middles, reach = centres - depth[:, None] / 2 * axes[:, 2], np.linalg.norm(cells, axis=1)
    is_cut = np.zeros((len(num), 2), dtype=bool)
    for m in np.flatnonzero((cells - faces).max(axis=1) > 1e-6):
        near = np.flatnonzero(np.linalg.norm(middles - middles[m], axis=1) < reach + reach[m])
        near = near[near != m]
        # Two boxes are apart if one of these directions separates them.
        own = np.broadcast_to(axes[m], (len(near), 3, 3))
        across = np.cross(own[:, :, None], axes[near][:, None]).reshape(len(near), 9, 3)
        directions = np.concatenate([own, axes[near], across], axis=1)
        distance = np.abs(np.einsum("nki,ni->nk", directions, middles[near] - middles[m]))
        on_own = np.abs(np.einsum("nki,ji->nkj", directions, axes[m]))
        on_near = np.abs(np.einsum("nki,nji->nkj", directions, axes[near]))
        is_direction = np.linalg.norm(directions, axis=2) > 1e-9
        for cut in ([False, False], [True, False], [False, True], [True, True]):
            half = np.where(np.append(cut, False), faces, cells)
            gap = distance - np.einsum("nkj,j->nk", on_own, half[m]) - np.einsum("nkj,nj->nk", on_near, half[near])
            is_cut[m] = cut
            if ((gap > -5e-7) & is_direction).any(axis=1).all():
                break
    if not is_cut.any():
        return joined
    inner = (joined.place > 0).astype(np.int64) + (joined.place == num[joined.module] - 1)
    label = _keys(joined.module, *np.where(is_cut[joined.module], inner, 0).T)
    order = np.argsort(_first_of(label))
    module = np.argsort(order)[label]
    corner = np.full((len(order), 2), np.iinfo(np.int64).max)
    np.minimum.at(corner, module, joined.place)
    pieces = Lattices(
        module, joined.place - corner[module], joined.pitch_mm[joined.module[_first_of(module)]], joined.layer
    )
    pieces.pitch_mm = np.where(pieces.num > 1, pieces.pitch_mm, crystals.size_mm[pieces.first, :2])
    return pieces


def _blocks(centre_mm: Floats, u: Floats, v: Floats, extent: Floats, layer: Ints, panel: Ints) -> Ints:
    """Blocks: a module in front and those behind it, in panels that have several layers."""
    block = np.zeros(len(layer), dtype=np.int64)
    count = 0
    for number in np.unique(panel[layer > 0]):
        members = np.flatnonzero(panel == number)
        fronts = members[layer[members] == 0]
        block[fronts] = count + 1 + np.arange(len(fronts))
        for m in members[layer[members] > 0]:
            away = centre_mm[m] - centre_mm[fronts]
            outside = np.maximum(
                np.abs(np.einsum("ni,ni->n", away, u[fronts])) - extent[fronts, 0] / 2, 0
            ) + np.maximum(np.abs(np.einsum("ni,ni->n", away, v[fronts])) - extent[fronts, 1] / 2, 0)
            block[m] = block[fronts[outside.argmin()]]
        count += len(fronts)
    return block


def mean_depth_mm(length_mm: float, mu_per_mm: float) -> float:
    """Mean depth at which crystals of this length stop photons; half of it where mu is 0 = not known."""
    return 1 / mu_per_mm - length_mm / float(np.expm1(mu_per_mm * length_mm)) if mu_per_mm > 0 else length_mm / 2


def _tof_resolution_ps(macro: Macro) -> float:
    """FWHM of time differences: CTR, or that of singles times the root of two."""
    if "CTR" in macro.sorter:
        return macro.sorter["CTR"].numbers(1, "time")[0] * 1e12
    for name in ("fwhm", "setTimeResolution"):
        if name in macro.sorter:
            return float(np.sqrt(2)) * macro.sorter[name].numbers(1, "time")[0] * 1e12
    return 0.0


def read_geometry(
    path: Union[str, os.PathLike[str]],
    aliases: Optional[Mapping[str, object]] = None,
    *,
    detection_depth_mm: Optional[float] = None,
) -> Geometry:
    """Reads the scanner of a GATE macro and of those that it executes.

    Systems cylindricalPET, ecat, ecatAccel, OPET and scanner whose crystals are boxes that stand still.
    aliases: values of `{name}`, as Gate's option `-a` gives them.
    detection_depth_mm: plane behind the front faces on which hits are read; None = the mean depth at which the crystals
        stop photons of 511 keV, by their materials (LSO, LYSO, BGO, GSO, LaBr3), or else half of their length; the
        least one, where crystals differ.
    Raises MacroError with file and line, OSError if the file cannot be read.
    """
    macro = read_macro(path, aliases)
    crystals, system = crystals_of(macro)
    joined = lattices_of(crystals)
    module, first, num, centre = joined.module, joined.first, joined.num, joined.centres_mm(crystals)
    u, v = crystals.axes[first, 0], crystals.axes[first, 1]
    first_crystal = np.concatenate([[0], np.cumsum(num.prod(axis=1))])
    number = first_crystal[module] + joined.place[:, 1] * num[module, 0] + joined.place[:, 0]
    number_of = np.full(tuple(crystals.ids.max(axis=0) + 1), -1, dtype=np.int64)
    number_of[tuple(crystals.ids.T)] = number
    order = np.argsort(number)
    if (number_of >= 0).sum() != len(number):
        raise MacroError(
            f"{path}: several crystals have the same numbers in the ROOT file: attach each repeated volume "
            "to a level of its own"
        )

    # Places around the ring are sectors, if each module lies within one sector.
    volume, kind, _ = system_of(macro)
    main = next(
        (macro.volumes[name] for name, (level, _) in levels_of(macro, volume, kind).items() if level == 0), None
    )
    ring = next((r for r in main.repeaters if r.kind == "ring"), None) if main else None
    around = int(main.numbers(f"{ring.name}/setRepeatNumber", [1])[0]) if main and ring else 0
    position = crystals.ids[:, 0] % around if around >= 3 else np.full(len(number), -1)
    is_one = around >= 3 and bool((position == position[first][module]).all())
    layer = joined.layer[first]
    mu = [_core.crystal_material_mu_per_mm(material) for material in crystals.materials]
    depths = [
        mean_depth_mm(float(length), mu[k]) for length, k in zip(crystals.size_mm[first, 2], crystals.material[first])
    ]
    return Geometry(
        name=Path(path).stem,
        system=system,
        centre_mm=centre,
        u=u,
        v=v,
        crystals=num,
        pitch_mm=joined.pitch_mm,
        face_mm=crystals.size_mm[first, :2],
        depth_mm=crystals.size_mm[first, 2],
        layer=layer,
        block=_blocks(centre, u, v, num * joined.pitch_mm, layer, crystals.panel[first]),
        position=position[first] if is_one else np.full(len(first), -1),
        num_positions=around if is_one else 0,
        material=[crystals.materials[k] if mu[k] > 0 else "" for k in crystals.material[first]],
        detection_depth_mm=min(depths) if detection_depth_mm is None else detection_depth_mm,
        min_sector_difference=(
            int(macro.sorter["minSectorDifference"].numbers(1)[0]) if "minSectorDifference" in macro.sorter else 0
        ),
        tof_resolution_ps=_tof_resolution_ps(macro),
        number_of=number_of,
        box_centre_mm=crystals.centre_mm[order],
        box_axes=crystals.axes[order],
        box_size_mm=crystals.size_mm[order],
        counts_scatter=any(other.is_phantom for other in macro.volumes.values())
        or all(volume in other.ancestors() for other in macro.volumes.values() if other.mother),
    )
