# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""From GATE's volumes to crystals.

Where copies stand, how they are turned and numbered is as in GATE 9.3 (GateAngularRepeater, GateArrayRepeater,
GateVSystem::ComputeOutputVolumeID).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import numpy as np
import numpy.typing as npt

from .macro import UNITS, Macro, MacroError, Repeater, Volume

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CYLINDRICAL = ("rsector", "module", "submodule", "crystal", "layer")
LEVELS: dict[str, tuple[str, ...]] = {
    "cylindricalPET": CYLINDRICAL,
    "OPET": CYLINDRICAL,
    "ecat": ("block", "crystal"),
    "ecatAccel": ("block", "crystal"),
    "scanner": ("level1", "level2", "level3", "level4", "level5"),
    "PETscanner": ("level1", "level2", "level3", "level4", "level5"),
}
"""Levels of GATE's systems; the branch of a level in the ROOT file is its name with ID1 or ID2."""


# --- placements of copies ---


def rotation(axis: npt.ArrayLike, angle: float) -> Floats:
    """The matrix that turns by an angle in rad around an axis (Rodrigues)."""
    direction = np.asarray(axis, dtype=np.float64)
    length = float(np.linalg.norm(direction))
    if length == 0 or angle == 0:
        return np.eye(3)
    x, y, z = direction / length
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turned: Floats = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross)
    return turned


def _placement(volume: Volume) -> tuple[Floats, Floats]:
    """Rotation and translation of a volume in its mother, before it is repeated."""
    shift, axis, angle = np.zeros(3), [0.0, 0.0, 1.0], 0.0
    for name, command in volume.settings.items():
        if name == "placement/setTranslation":
            shift = np.array(command.numbers(3, "length"))
        elif name == "placement/setRotationAxis":
            axis = command.numbers(3)
        elif name == "placement/setRotationAngle":
            angle = command.numbers(1, "angle")[0]
        elif name.startswith("placement/alignTo"):
            axis, angle = {"X": ([0.0, 1.0, 0.0], np.pi / 2), "Y": ([1.0, 0.0, 0.0], -np.pi / 2)}.get(
                name[-1], (axis, 0.0)
            )
        elif name in ("placement/setPhiOfTranslation", "placement/setThetaOfTranslation"):
            r = float(np.linalg.norm(shift))
            theta, phi = np.arccos(shift[2] / r) if r > 0 else 0.0, np.arctan2(shift[1], shift[0])
            value = command.numbers(1, "angle")[0]
            theta, phi = (theta, value) if "Phi" in name else (value, phi)
            shift = r * np.array([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)])
        elif name == "placement/setMagOfTranslation":
            r = float(np.linalg.norm(shift))
            shift = shift * (command.numbers(1, "length")[0] / r) if r > 0 else shift
    return rotation(axis, angle), shift


def _array(volume: Volume, repeater: Repeater) -> Floats:
    """Shifts of the copies that the repeaters `linear` and `cubicArray` make."""
    name = repeater.name
    step = np.array(volume.numbers(f"{name}/setRepeatVector", [0, 0, 0], "length"))
    if repeater.kind == "linear":
        indices = np.arange(int(volume.numbers(f"{name}/setRepeatNumber", [1])[0]))[:, None] * np.ones(3)
    else:
        nx, ny, nz = (int(volume.numbers(f"{name}/setRepeatNumber{axis}", [1])[0]) for axis in "XYZ")
        z, y, x = np.meshgrid(np.arange(nz), np.arange(ny), np.arange(nx), indexing="ij")
        indices = np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1).astype(np.float64)
    if volume.flag(f"{name}/autoCenter", True) and len(indices):
        indices = indices - (indices[0] + indices[-1]) / 2
    shifts: Floats = indices * step
    return shifts


def _ring(volume: Volume, repeater: Repeater) -> tuple[Floats, Floats, Floats, Floats]:
    """Turns of a `ring`'s copies around it and of their own axes, their shifts before that, a point of the axis."""
    name = repeater.name
    count = int(volume.numbers(f"{name}/setRepeatNumber", [1])[0])
    first = volume.numbers(f"{name}/setFirstAngle", [0], "angle")[0]
    span = volume.numbers(f"{name}/setAngularSpan", [2 * np.pi], "angle")[0]
    step = span / max(count, 1) if abs(np.degrees(span) - 360) < 5e-4 else span / max(count - 1, 1)
    point = np.array(volume.numbers(f"{name}/setPoint1", [0, 0, 0]))
    axis = np.array(volume.numbers(f"{name}/setPoint2", [0, 0, 1])) - point
    modulo = int(volume.numbers(f"{name}/setModuloNumber", [1])[0])
    z = np.zeros((count, 3))
    for k in range(min(modulo, 8)):
        z[k::modulo, 2] = volume.numbers(f"{name}/setZShift{k + 1}", [0], "length")[0]
    turns = np.array([rotation(axis, first + k * step) for k in range(count)]).reshape(-1, 3, 3)
    own = turns if f"{name}/disableAutoRotation" not in volume.settings else np.tile(np.eye(3), (count, 1, 1))
    return turns, own, z, point


def _sphere(volume: Volume, repeater: Repeater) -> tuple[Floats, Floats]:
    """Turns of the axes and shifts of the copies of a `sphere`."""
    name = repeater.name
    radius = volume.numbers(f"{name}/setRadius", [10], "length")[0]
    theta = volume.numbers(f"{name}/setThetaAngle", [0], "angle")[0]
    phi = volume.numbers(f"{name}/setPhiAngle", [0], "angle")[0]
    turns = f"{name}/disableAutoRotation" not in volume.settings
    angles = [
        (j * theta, (k - 1) * phi)
        for k in range(int(volume.numbers(f"{name}/setRepeatNumberWithPhi", [1])[0]))
        for j in range(int(volume.numbers(f"{name}/setRepeatNumberWithTheta", [1])[0]))
    ]
    own = [rotation([0, 0, 1], -a) @ rotation([1, 0, 0], b) if turns else np.eye(3) for a, b in angles]
    shifts = [[np.sin(a) * np.cos(b), np.cos(a) * np.cos(b), np.sin(b)] for a, b in angles]
    return np.array(own).reshape(-1, 3, 3), radius * np.array(shifts).reshape(-1, 3)


def _listed(volume: Volume, repeater: Repeater, folder: Path) -> tuple[Optional[Floats], Floats]:
    """Turns of the axes (None = as placed) and shifts of the copies of a `genericRepeater`, from its file."""
    command = volume.settings.get(f"{repeater.name}/setPlacementsFilename")
    if command is None or not command.words:
        raise MacroError(f"{repeater.place}: {volume.name} has no file of placements (setPlacementsFilename)")
    paths = [base / command.words[0] for base in (folder, folder.parent, Path.cwd())]
    path = next((p for p in paths if p.is_file()), None)
    if path is None:
        raise MacroError(f"{command.place}: there is no file {command.words[0]}")
    words = [word for line in path.read_text().splitlines() for word in line.split("#")[0].split()]
    units: dict[str, str] = {}
    while len(words) >= 2 and words[0] in ("Time", "Rotation", "Translation"):
        units[words[0]] = words[1]
        words = words[2:]
    width = 1 + 4 * ("Rotation" in units) + 3 * ("Translation" in units)
    try:
        rows = np.array(words, dtype=np.float64).reshape(-1, width)
    except ValueError:
        rows = np.empty((0, width))
    known = units.get("Rotation", "deg") in UNITS["angle"] and units.get("Translation", "mm") in UNITS["length"]
    if "Time" not in units or len(rows) == 0 or not known:
        raise MacroError(
            f"{path}: rows should have what Time, Rotation and Translation above them say, each with its unit"
        )
    turns, shifts = None, np.zeros((len(rows), 3))
    if "Rotation" in units:
        # Geant4's matrix in the file rotates the mother's axes, so that the volume itself rotates the other way.
        unit = UNITS["angle"][units["Rotation"]]
        turns = np.array([rotation(row[2:5], -row[1] * unit) for row in rows])
    if "Translation" in units:
        shifts = rows[:, -3:] * UNITS["length"][units["Translation"]]
        if not volume.flag(f"{repeater.name}/useRelativeTranslation", True):
            shifts = shifts - _placement(volume)[1]
    return turns, shifts


def copies_of(volume: Volume, folder: Path) -> tuple[Floats, Floats]:
    """Rotations [n][3][3] and centres [n][3] in mm of a volume's copies in its mother, in GATE's order."""
    turn, shift = _placement(volume)
    turns, shifts = turn[None], shift[None]
    for repeater in volume.repeaters:
        moved: Floats
        if repeater.kind in ("linear", "cubicArray"):
            moved = shifts[:, None] + _array(volume, repeater)
            turned = np.repeat(turns, moved.shape[1], axis=0)
        elif repeater.kind == "ring":
            around, own, z, point = _ring(volume, repeater)
            moved = np.einsum("bij,abj->abi", around, shifts[:, None] + z - point) + point
            # By default, GATE rotates the axes of a rotated volume before it places the volume.
            first = volume.flag(f"{repeater.name}/combineWithRotationFirst", False)
            turned = np.einsum("bij,ajk->abik" if first else "bjk,aij->abik", own, turns)
        elif repeater.kind == "sphere":
            own, offsets = _sphere(volume, repeater)
            moved = shifts[:, None] + offsets
            turned = np.einsum("aij,bjk->abik", turns, own)
        elif repeater.kind == "genericRepeater":
            listed, offsets = _listed(volume, repeater, folder)
            moved = shifts[:, None] + offsets
            turned = np.repeat(turns, len(offsets), axis=0) if listed is None else np.tile(listed, (len(turns), 1, 1))
        else:
            raise MacroError(
                f"{repeater.place}: the repeater {repeater.kind} of {volume.name} is not one of linear, "
                "cubicArray, ring, sphere and genericRepeater"
            )
        if moved.shape[1] == 0:
            raise MacroError(f"{repeater.place}: {volume.name} is repeated 0 times")
        turns, shifts = turned.reshape(-1, 3, 3), moved.reshape(-1, 3)
    return turns, shifts


def _output_ids(volume: Volume, count: int) -> Ints:
    """Numbers of a main component's copies: GATE counts all around before it goes on along the axis, even where the
    ring is inserted before the linear repeater."""
    numbers = np.arange(count, dtype=np.int64)
    kinds = [repeater.kind for repeater in volume.repeaters]
    if not kinds or kinds[0] == "linear" or "linear" not in kinds:
        return numbers
    name = {repeater.kind: repeater.name for repeater in reversed(volume.repeaters)}
    linear = int(volume.numbers(f"{name['linear']}/setRepeatNumber", [1])[0])
    around = int(volume.numbers(f"{name['ring']}/setRepeatNumber", [1])[0]) if "ring" in kinds else 1
    return numbers % linear * around + numbers // linear


# --- crystals ---


@dataclass
class Crystals:
    """Crystals of a macro in GATE's order; rows belong together."""

    centre_mm: Floats
    axes: Floats
    """[n][3][3] unit vectors along u (around), v (along the axis) and inwards"""
    size_mm: Floats
    """[n][3] along these"""
    ids: Ints
    """[n][levels] numbers in the ROOT file, without the gantry"""
    panel: Ints
    """crystals that look the same way and belong together"""
    material: Ints
    materials: list[str]


def system_of(macro: Macro) -> tuple[Volume, str, list[Volume]]:
    """The system's volume, its type and its crystals' volumes."""
    crystals = [volume for volume in macro.volumes.values() if volume.is_crystal]
    lost = "; missing: " + "; ".join(macro.missing) if macro.missing else ""
    if not crystals:
        raise MacroError(f"{macro.path}: no volume is a crystal (attachCrystalSD){lost}")
    found: dict[str, tuple[Volume, str, list[Volume]]] = {}
    for crystal in crystals:
        for volume in crystal.ancestors():
            kind = volume.system or volume.name
            if kind in LEVELS:
                found.setdefault(volume.name, (volume, kind, []))[2].append(crystal)
    if not found:
        raise MacroError(
            f"{macro.path}: {crystals[0].name} ({crystals[0].place}) is in no system of {', '.join(LEVELS)}{lost}"
        )
    if len(found) > 1:
        raise MacroError(f"{macro.path}: crystals are in several systems ({', '.join(found)}): LORaster reads one")
    return next(iter(found.values()))


def levels_of(macro: Macro, system: Volume, kind: str) -> dict[str, tuple[int, int]]:
    """Level and number of the first copy of each volume that is attached to the system."""
    levels: dict[str, tuple[int, int]] = {}
    layers = 0
    for (owner, level), (name, place) in sorted(macro.attached.items()):
        if owner != system.name:
            continue
        base = "layer" if level.startswith("layer") and "layer" in LEVELS[kind] else level
        if base == "base":
            continue
        if base not in LEVELS[kind]:
            raise MacroError(f"{place}: {kind} has no level {level}, but {', '.join(LEVELS[kind])}")
        if name not in macro.volumes:
            raise MacroError(f"{place}: there is no volume {name}")
        levels[name] = (LEVELS[kind].index(base), layers if base == "layer" else 0)
        if base == "layer":
            layers += len(copies_of(macro.volumes[name], macro.path.parent)[0])
    return levels


def _chain(macro: Macro, system: Volume, kind: str, crystal: Volume) -> tuple[Floats, Floats, Ints, list[int]]:
    """Rotations, centres and numbers of all copies of a crystal's volume, and how many each volume above makes."""
    levels = levels_of(macro, system, kind)
    turns, centres = np.eye(3)[None], np.zeros((1, 3))
    ids = np.zeros((1, len(LEVELS[kind])), dtype=np.int64)
    counts = []
    for volume in crystal.ancestors():
        if volume.moves is not None:
            raise MacroError(
                f"{volume.moves.place}: {volume.name} moves: a scanner stands still; lines of a moving one "
                "are projected by Operator.of_lines"
            )
        own_turns, own_shifts = copies_of(volume, macro.path.parent)
        count = len(own_turns)
        if count > 1 and volume.name not in levels:
            raise MacroError(
                f"{volume.repeaters[-1].place}: {volume.name} has {count} copies and is attached to no level "
                f"of {kind}: events do not tell them apart (/gate/systems/{system.name}/LEVEL/attach "
                f"{volume.name})"
            )
        centres = (centres[:, None] + np.einsum("aij,bj->abi", turns, own_shifts)).reshape(-1, 3)
        turns = np.einsum("aij,bjk->abik", turns, own_turns).reshape(-1, 3, 3)
        ids = np.repeat(ids, count, axis=0)
        if volume.name in levels:
            level, first = levels[volume.name]
            numbers = _output_ids(volume, count) if level == 0 else np.arange(count)
            ids[:, level] = np.tile(numbers, len(ids) // count) + first
        counts.append(count)
    return turns, centres, ids, counts


def _panels(turns: Floats, radial: Floats, counts: list[int]) -> tuple[int, Ints]:
    """The outermost volume whose crystals all look one way and lie off the axis, and the copy of each crystal."""
    size, copies = len(turns), 1
    scale = float(np.abs(radial).max()) or 1.0
    for depth, count in enumerate(counts):
        copies *= count
        group = turns.reshape(copies, size // copies, 9)
        middle = radial.reshape(copies, size // copies, 3).mean(axis=1)
        if np.ptp(group, axis=1).max() < 1e-9 and np.linalg.norm(middle, axis=1).min() > 1e-3 * scale:
            break
    return depth, np.arange(size, dtype=np.int64) // (size // copies)


def crystals_of(macro: Macro) -> tuple[Crystals, str]:
    """All crystals of a macro, and the type of its system. Frame: GATE's world, mm."""
    system, kind, volumes = system_of(macro)
    parts: list[Crystals] = []
    panels: dict[str, int] = {}
    materials: list[str] = []
    chains = [_chain(macro, system, kind, volume) for volume in volumes]
    axis = np.concatenate([centres for _, centres, _, _ in chains])[:, :2].mean(axis=0)
    for volume, (turns, centres, ids, counts) in zip(volumes, chains):
        if volume.shape != "box":
            raise MacroError(f"{volume.place}: the crystal {volume.name} is a {volume.shape}: LORaster's are boxes")
        for direction in "XYZ":
            if f"geometry/set{direction}Length" not in volume.settings:
                raise MacroError(f"{volume.place}: the crystal {volume.name} has no set{direction}Length")
        size = np.array([volume.numbers(f"geometry/set{d}Length", [0], "length")[0] for d in "XYZ"])
        if size.min() <= 0:
            raise MacroError(f"{volume.place}: the crystal {volume.name} has a length of {size.min():g} mm")
        radial = np.concatenate([centres[:, :2] - axis, np.zeros((len(centres), 1))], axis=1)
        depth, copy = _panels(turns, radial, counts)
        key = volume.ancestors()[depth].name
        first_panel = panels.setdefault(key, len(panels)) * 10**9
        sums = np.zeros((copy[-1] + 1, 3))
        np.add.at(sums, copy, radial)
        outwards = sums[copy] / np.maximum(np.linalg.norm(sums[copy], axis=1, keepdims=True), 1e-12)

        # The box's axis closest to the radius, the axis closest to z, and the third axis.
        inwards = np.abs(np.einsum("nij,ni->nj", turns, outwards)).argmax(axis=1)
        along = np.abs(turns[:, 2, :])
        along[np.arange(len(along)), inwards] = -1
        axial = along.argmax(axis=1)
        order = np.stack([3 - inwards - axial, axial, inwards], axis=1)
        axes = np.take_along_axis(turns.transpose(0, 2, 1), order[:, :, None], axis=1)
        around = np.cross([0.0, 0.0, 1.0], outwards)
        signs = np.stack(
            [np.einsum("ni,ni->n", axes[:, 0], around), axes[:, 1, 2], -np.einsum("ni,ni->n", axes[:, 2], outwards)],
            axis=1,
        )
        axes = axes * np.where(signs < 0, -1.0, 1.0)[:, :, None]

        material = " ".join(volume.settings["setMaterial"].words) if "setMaterial" in volume.settings else ""
        if material not in materials:
            materials.append(material)
        parts.append(
            Crystals(
                centres,
                axes,
                size[order],
                ids,
                copy + first_panel,
                np.full(len(centres), materials.index(material)),
                materials,
            )
        )
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("centre_mm", "axes", "size_mm", "ids", "panel", "material")
    }
    columns["panel"] = np.unique(columns["panel"], return_inverse=True)[1]
    return Crystals(materials=materials, **columns), kind
