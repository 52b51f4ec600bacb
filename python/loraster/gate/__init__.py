# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Scanners and coincidences of GATE simulations.

    acquisition = loraster.gate.read("coincidences*.root", geometry="camera.mac")
    trues = acquisition.list_mode(acquisition.events.is_true)

The scanner comes from the macro that describes the volumes, the events from the coincidence trees of GATE 6 to 9. The
ROOT files are read by uproot: `pip install loraster[gate]`. docs/guide/gate.md tells more.
"""

from __future__ import annotations

import glob
import os
import re
import warnings
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Union

import numpy as np
import numpy.typing as npt

from .geometry import Geometry, read_geometry
from .macro import MacroError

if TYPE_CHECKING:
    import loraster

__all__ = ["Acquisition", "Events", "Geometry", "MacroError", "read", "read_geometry"]

Paths = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]

HALF_LIGHT_MM_PER_S = 2.99792458e11 / 2

TRUE, SCATTER, RANDOM, UNKNOWN = 0, 1, 2, 3
"""Kinds of coincidences: one decay without and with scatter in a phantom, two decays, and not told by the file."""

CHECKED = 10000
"""Events of each tree whose positions are compared with the macro's crystals."""


@dataclass(frozen=True)
class Events:
    """Coincidences as columns, in the files' order."""

    crystals: npt.NDArray[np.int32]
    """[n][2] LORaster's numbers of both crystals, GATE's first single first"""
    times_s: npt.NDArray[np.float64]
    """[n] time of the first single since the simulation's zero"""
    tof_mm: npt.NDArray[np.float32]
    """[n] c/2 (t_1 - t_2): place of the annihilation on the line from its middle, positive towards the second
    crystal"""
    energies_kev: npt.NDArray[np.float32]
    """[n][2]"""
    kind: npt.NDArray[np.uint8]
    """[n] TRUE, SCATTER, RANDOM or UNKNOWN"""
    is_delayed: npt.NDArray[np.bool_]
    """[n] true for coincidences of a delayed window"""
    sources: npt.NDArray[np.int32]
    """[n][2] GATE's sourceID, -1 = not in the file"""

    def __len__(self) -> int:
        return len(self.times_s)

    @property
    def is_true(self) -> npt.NDArray[np.bool_]:
        """Prompts of one decay without scatter in a phantom."""
        return self._told(TRUE)

    @property
    def is_scatter(self) -> npt.NDArray[np.bool_]:
        """Prompts of one decay with scatter (Compton or Rayleigh) in a phantom."""
        return self._told(SCATTER)

    @property
    def is_random(self) -> npt.NDArray[np.bool_]:
        """Prompts of two decays."""
        return self._told(RANDOM)

    def _told(self, kind: int) -> npt.NDArray[np.bool_]:
        if bool((self.kind[~self.is_delayed] == UNKNOWN).any()):
            raise ValueError(
                "The ROOT file lacks eventID1, eventID2, comptonPhantom1 or comptonPhantom2: trues, scatters "
                "and randoms cannot be told apart"
            )
        told: npt.NDArray[np.bool_] = (self.kind == kind) & ~self.is_delayed
        return told

    def select(self, which: npt.NDArray[Any]) -> Events:
        """The events of a mask or of an array of indices."""
        return Events(**{field.name: getattr(self, field.name)[which] for field in fields(self)})


@dataclass(frozen=True)
class Acquisition:
    """A simulated scanner and its coincidences."""

    geometry: Geometry
    events: Events

    @property
    def scanner(self) -> loraster.Scanner:
        """The scanner of the macro; its crystals have the numbers that the events use."""
        return self.geometry.scanner

    def list_mode(self, which: Optional[npt.NDArray[Any]] = None) -> loraster.ListMode:
        """Events for Operator.of_events and the reconstructions. which: a mask or indices; None = all."""
        import loraster

        events = self.events if which is None else self.events.select(which)
        return loraster.ListMode(
            self.scanner,
            crystals=events.crystals,
            tof_mm=events.tof_mm if self.geometry.tof_resolution_ps > 0 else None,
            tof_resolution_ps=self.geometry.tof_resolution_ps,
            time_ms=1000 * events.times_s,
            delayed=events.is_delayed,
        )

    def __repr__(self) -> str:
        delayed = int(self.events.is_delayed.sum())
        return (
            f"<GATE acquisition of {self.geometry.name}: {self.geometry.num_crystals} crystals, "
            f"{len(self.events) - delayed} prompts, {delayed} delayeds>"
        )


def _files(paths: Paths) -> list[str]:
    """The files of names and patterns; those of a pattern sorted, numbers in their names by value."""
    found: list[str] = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        name = os.fspath(path)
        matches = [name] if os.path.exists(name) else glob.glob(name)
        if not matches:
            raise FileNotFoundError(f"There is no file {name}")
        found += sorted(
            matches,
            key=lambda match: [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", match)],
        )
    return found


def _numbers(
    geometry: Geometry, macro: str, columns: Mapping[str, npt.NDArray[Any]], side: str, where: str
) -> npt.NDArray[np.int32]:
    """LORaster's crystal of each event on one side, from GATE's numbers of its volumes."""
    index: list[npt.NDArray[np.int64]] = []
    for level, size in zip(geometry.levels, geometry.number_of.shape):
        name = f"{level}ID{side}"
        if name not in columns:
            if size > 1:
                raise ValueError(
                    f"{where} has no branch {name}, but {macro} has {size} of them: is it the macro of this "
                    "simulation?"
                )
            index.append(np.zeros(len(columns[f"time{side}"]), dtype=np.int64))
            continue
        number = np.maximum(columns[name].astype(np.int64), 0)  # GATE writes -1 for levels that are not attached
        if len(number) and number.max() >= size:
            raise ValueError(
                f"{where} has {name} {number.max()}, but in {macro} these numbers end at {size - 1}: is it the "
                "macro of this simulation?"
            )
        index.append(number)
    crystals: npt.NDArray[np.int64] = geometry.number_of[tuple(index)]
    if len(crystals) and crystals.min() < 0:
        bad = int(crystals.argmin())
        names = ", ".join(f"{level}ID{side} {number[bad]}" for level, number in zip(geometry.levels, index))
        raise ValueError(
            f"{where} has an event in {names}, where {macro} has no crystal: is it the macro of this " "simulation?"
        )
    return crystals.astype(np.int32)


def _check_positions(
    geometry: Geometry, macro: str, crystals: npt.NDArray[np.int32], positions: npt.NDArray[np.float64], where: str
) -> None:
    """Warns if positions lie outside the crystals that the events name."""
    away = positions - geometry.box_centre_mm[crystals]
    local = np.abs(np.einsum("nij,nj->ni", geometry.box_axes[crystals], away))
    outside = np.linalg.norm(np.maximum(local - geometry.box_size_mm[crystals] / 2, 0.0), axis=1)
    share = float((outside > 0.01).mean()) if len(outside) else 0.0
    if share > 0.01:
        typical = float(np.median(outside[outside > 0.01]))
        warnings.warn(
            f"{where}: {100 * share:.0f} % of the positions lie outside the crystals of {macro}, typically by "
            f"{typical:.2g} mm. Spatial blurring in the digitizer moves them by some mm; otherwise this is not "
            "the macro of the simulation, or the scanner moved",
            stacklevel=4,
        )


_WANTED = [
    "runID",
    "time",
    "energy",
    "eventID",
    "sourceID",
    "comptonPhantom",
    "RayleighPhantom",
    "globalPosX",
    "globalPosY",
    "globalPosZ",
]


def _tree_events(tree: Any, geometry: Geometry, macro: str, where: str, is_delayed: bool) -> list[Events]:
    """The events of one tree, in pieces."""
    sides = [f"{name}{side}" for name in _WANTED for side in "12"] + [
        f"{level}ID{side}" for level in geometry.levels for side in "12"
    ]
    branches = set(tree.keys())
    for needed in ("time1", "time2"):
        if needed not in branches:
            raise ValueError(
                f"{where} has no branch {needed}: it is no tree of coincidences as GATE 6 to 9 write them; it has "
                f"{', '.join(sorted(branches)[:12])}"
            )
    pieces, is_first = [], True
    for columns in tree.iterate([name for name in sides if name in branches], library="np", step_size="100 MB"):
        crystals = np.stack([_numbers(geometry, macro, columns, side, where) for side in "12"], axis=1)
        if is_first and all(f"globalPos{axis}{side}" in columns for axis in "XYZ" for side in "12"):
            for k, side in enumerate("12"):
                positions = np.stack([columns[f"globalPos{axis}{side}"][:CHECKED] for axis in "XYZ"], axis=1)
                _check_positions(geometry, macro, crystals[:CHECKED, k], positions.astype(np.float64), where)
        is_first = False

        size = len(crystals)
        kind = np.full(size, UNKNOWN, dtype=np.uint8)
        if {"eventID1", "eventID2", "comptonPhantom1", "comptonPhantom2"} <= set(columns):
            is_scattered = np.zeros(size, dtype=bool)
            for name in ("comptonPhantom1", "comptonPhantom2", "RayleighPhantom1", "RayleighPhantom2"):
                is_scattered |= columns[name] > 0 if name in columns else False
            kind = np.where(
                columns["eventID1"] != columns["eventID2"], RANDOM, np.where(is_scattered, SCATTER, TRUE)
            ).astype(np.uint8)
        missing = np.full(size, -1, dtype=np.int32)
        energies = [1000 * columns.get(f"energy{side}", np.full(size, np.nan)) for side in "12"]
        pieces.append(
            Events(
                crystals=crystals,
                times_s=columns["time1"].astype(np.float64),
                tof_mm=(HALF_LIGHT_MM_PER_S * (columns["time1"] - columns["time2"])).astype(np.float32),
                energies_kev=np.stack(energies, axis=1).astype(np.float32),
                kind=kind,
                is_delayed=np.full(size, is_delayed),
                sources=np.stack([columns.get(f"sourceID{side}", missing) for side in "12"], axis=1).astype(np.int32),
            )
        )
    return pieces


def read(
    files: Paths,
    geometry: Union[str, os.PathLike[str], Geometry],
    *,
    tree: str = "Coincidences",
    delayed: Optional[str] = None,
    aliases: Optional[Mapping[str, object]] = None,
) -> Acquisition:
    """Reads a simulation's coincidences and its scanner.

    files: a name, a pattern such as "run*.root", or several of them
    geometry: the macro that describes the scanner (it may be the main macro), or what `read_geometry` made of it
    tree: name of the tree of prompts
    delayed: name of a tree of delayed coincidences in the same files, whose events follow the prompts; None = none
    aliases: values of `{name}` in the macro, as Gate's option -a gives them

    Raises ValueError with what does not fit, MacroError with file and line of the macro, ImportError without uproot.
    Warns where positions in the file do not lie in the crystals that the events name, and where a macro of phantoms
    lets GATE count no scatter.
    """
    try:
        import uproot  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ImportError("Reading GATE's ROOT files needs uproot: pip install loraster[gate]") from error
    if not isinstance(geometry, Geometry):
        geometry = read_geometry(geometry, aliases)
    macro = geometry.name + ".mac"
    pieces: list[Events] = []
    for path in _files(files):
        with uproot.open({path: None}) as file:
            names = {key.split(";")[0] for key in file.keys(recursive=False)}
            for name in [tree] if delayed is None else [tree, delayed]:
                if name not in names:
                    raise ValueError(f"{path} has no tree {name}, but {', '.join(sorted(names)) or 'none at all'}")
                pieces += _tree_events(
                    file[name], geometry, macro, f"{os.path.basename(path)}, tree {name}", name == delayed
                )
    if not pieces:
        raise ValueError(f"{', '.join(_files(files))}: there are no coincidences")
    events = Events(
        **{field.name: np.concatenate([getattr(piece, field.name) for piece in pieces]) for field in fields(Events)}
    )
    if not geometry.counts_scatter and not bool((events.kind == SCATTER).any()):
        warnings.warn(
            f"No volume of {macro} is a phantom (attachPhantomSD): GATE counted no scatter, and scattered events "
            "are among the trues",
            stacklevel=2,
        )
    return Acquisition(geometry, events)
