# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""The language of GATE's macros, as far as it describes volumes.

Commands are those of GATE 6 to 9 (OpenGATE's manual, "Defining a geometry") and Geant4's /control commands.
Everything that does not describe a volume, such as physics and sources, is passed over.
"""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator, Mapping, Optional, Sequence, Union

UNITS: dict[str, dict[str, float]] = {
    "length": {
        "mm": 1.0,
        "millimeter": 1.0,
        "cm": 10.0,
        "centimeter": 10.0,
        "m": 1000.0,
        "meter": 1000.0,
        "mum": 1e-3,
        "um": 1e-3,
        "micrometer": 1e-3,
        "nm": 1e-6,
        "nanometer": 1e-6,
    },
    "angle": {
        "rad": 1.0,
        "radian": 1.0,
        "mrad": 1e-3,
        "milliradian": 1e-3,
        "deg": 0.017453292519943295,
        "degree": 0.017453292519943295,
    },
    "time": {
        "s": 1.0,
        "second": 1.0,
        "ms": 1e-3,
        "mus": 1e-6,
        "us": 1e-6,
        "ns": 1e-9,
        "nanosecond": 1e-9,
        "ps": 1e-12,
        "picosecond": 1e-12,
    },
}
"""Factors from GATE's units to millimetres, radians and seconds."""

MAX_DEPTH = 32
"""Macros that execute each other, at most."""


class MacroError(ValueError):
    """A macro that cannot be understood; the message names file and line."""


@dataclass(frozen=True)
class Command:
    """One line of a macro: the words behind its name, and where it stands."""

    words: tuple[str, ...]
    place: str
    """`camera.mac, line 12`"""

    def numbers(self, count: int, kind: Optional[str] = None) -> list[float]:
        """The line's `count` numbers, in mm, rad or s if `kind` names a kind of unit."""
        if any("{" in word for word in self.words):
            raise MacroError(
                f"{self.place}: {' '.join(self.words)} has an alias without a value: give it, as Gate's "
                'option -a does, by aliases={"name": value}'
            )
        factor = 1.0
        if kind is not None:
            unit = self.words[count] if len(self.words) > count else ""
            if unit not in UNITS[kind]:
                raise MacroError(
                    f"{self.place}: \"{' '.join(self.words)}\" needs {count} number{'s' * (count > 1)} and a "
                    f"unit of {kind}, such as {'mm' if kind == 'length' else 'deg' if kind == 'angle' else 'ns'}"
                )
            factor = UNITS[kind][unit]
        try:
            values = [float(word) * factor for word in self.words[:count]]
        except ValueError:
            values = []
        if len(values) != count:
            raise MacroError(
                f"{self.place}: \"{' '.join(self.words)}\" should begin with {count} number{'s' * (count > 1)}"
            )
        return values

    def is_true(self) -> bool:
        """A flag: no word, `1`, `true`, `yes` and `T` are true, as in Geant4."""
        return not self.words or self.words[0].lower() in ("1", "true", "yes", "t", "y")


@dataclass
class Repeater:
    """Copies of a volume, as `/gate/NAME/repeaters/insert KIND` makes them."""

    kind: str
    name: str
    place: str


@dataclass
class Volume:
    """A volume of the tree."""

    name: str
    mother: Optional[Volume]
    shape: str
    place: str
    system: str = ""
    """type of system, where it is one"""
    repeaters: list[Repeater] = field(default_factory=list)
    moves: Optional[Command] = None
    is_crystal: bool = False
    is_phantom: bool = False
    settings: dict[str, Command] = field(default_factory=dict)
    """The last command of each name below /gate/NAME/, in the order of the macro."""

    def numbers(self, name: str, default: Sequence[float], kind: Optional[str] = None) -> list[float]:
        """The numbers of a setting, or the default."""
        command = self.settings.get(name)
        return command.numbers(len(default), kind) if command is not None else list(default)

    def flag(self, name: str, default: bool) -> bool:
        command = self.settings.get(name)
        return command.is_true() if command is not None else default

    def ancestors(self) -> list[Volume]:
        """From the daughter of the world down to the volume itself."""
        chain: list[Volume] = []
        volume: Optional[Volume] = self
        while volume is not None and volume.mother is not None:
            chain.append(volume)
            volume = volume.mother
        return chain[::-1]


@dataclass
class Macro:
    """Volumes and systems of a macro and of those that it executes."""

    path: Path
    volumes: dict[str, Volume]
    attached: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """(system, level) to the volume's name and the place of the command"""
    sorter: dict[str, Command] = field(default_factory=dict)
    """settings of the coincidence sorter and of the digitizer's time resolution"""
    missing: list[str] = field(default_factory=list)
    """executed files that were not found"""


_VOLUME = re.compile(r"/gate/([^/\s]+)/(\S+)$")
_ATTACH = re.compile(r"/?(?:gate/)?systems/([^/\s]+)/([^/\s]+)/attach$")
_ALIAS = re.compile(r"\{([^{}\s]+)\}")
_ARITHMETIC = {
    "/control/add": lambda a, b: a + b,
    "/control/subtract": lambda a, b: a - b,
    "/control/multiply": lambda a, b: a * b,
    "/control/divide": lambda a, b: a / b,
}


class _Reader:
    """Runs a macro's commands."""

    def __init__(self, path: Path, aliases: Mapping[str, object]):
        self.aliases = {name: str(value) for name, value in aliases.items()}
        world = Volume("world", None, "box", str(path))
        self.macro = Macro(path, {"world": world})
        self.new_names: dict[str, str] = {}
        self.new_systems: dict[str, str] = {}

    def lines(self, path: Path) -> Iterator[tuple[str, str]]:
        """Commands of a file without comments, continued lines joined, and their places."""
        text, start = "", 0
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                line = re.sub(r"(^|\s)#.*", "", line).strip()
                start = start if text else number
                if line.endswith(("\\", " _")) or line == "_":
                    text += line[:-1] + " "
                    continue
                text += line
                if text.strip():
                    yield text.strip(), f"{path.name}, line {start}"
                text = ""

    def run(self, path: Path, depth: int, place: str) -> None:
        if depth > MAX_DEPTH:
            raise MacroError(f"{place}: macros execute each other without an end")
        for text, here in self.lines(path):
            while True:
                filled = _ALIAS.sub(lambda match: self.aliases.get(match[1], match[0]), text)
                if filled == text:
                    break
                text = filled
            name, *words = text.split()
            if name.startswith("/control/"):
                self.control(name, words, path, depth, here)
            else:
                self.gate(name, Command(tuple(words), here))

    def control(self, name: str, words: list[str], path: Path, depth: int, place: str) -> None:
        """/control/ commands: aliases, arithmetic, files and loops."""
        if name == "/control/alias" and len(words) >= 2:
            self.aliases[words[0]] = " ".join(words[1:]).strip("\"'")
        elif name in _ARITHMETIC and len(words) == 3:
            a, b = Command(tuple(words[1:]), place).numbers(2)
            if name == "/control/divide" and b == 0:
                raise MacroError(f"{place}: division by zero")
            self.aliases[words[0]] = repr(_ARITHMETIC[name](a, b))
        elif name == "/control/execute" and words:
            self.execute(words[0], path, depth, place)
        elif name == "/control/loop" and len(words) >= 4:
            first, last, step = Command(tuple(words[2:] + ["1"])[:3], place).numbers(3)
            if step == 0:
                raise MacroError(f"{place}: the loop's step is zero")
            for turn in range(int((last - first) / step + 1e-9) + 1):
                self.aliases[words[1]] = f"{first + turn * step:g}"
                self.execute(words[0], path, depth, place)
        elif name == "/control/foreach" and len(words) >= 3:
            for value in " ".join(words[2:]).strip("\"'").split():
                self.aliases[words[1]] = value
                self.execute(words[0], path, depth, place)
        elif name in ("/control/if", "/control/doif", "/control/strif", "/control/strdoif"):
            warnings.warn(f"{place}: {name} is not followed; what it would do is missing", stacklevel=5)

    def execute(self, name: str, path: Path, depth: int, place: str) -> None:
        """Runs another macro. GATE looks for it from the folder it is started in, which is not known here: the
        folders of the macros, the one above and the current one are tried."""
        top = self.macro.path.resolve().parent
        for folder in (path.resolve().parent, top, top.parent, Path.cwd()):
            if (folder / name).is_file():
                self.run(folder / name, depth + 1, place)
                return
        self.macro.missing.append(f"{place}: {name}")

    def gate(self, name: str, command: Command) -> None:
        """Commands of volumes, systems and the digitizer."""
        macro = self.macro
        attach = _ATTACH.match(name)
        if attach and command.words:
            macro.attached[attach[1], attach[2]] = (command.words[0], command.place)
            return
        if name.startswith("/gate/digitizer"):
            last = name.rsplit("/", 1)[1]
            if "delay" not in name.lower() and last in ("minSectorDifference", "setTimeResolution", "fwhm", "CTR"):
                if last != "fwhm" or "timeResolution" in name:
                    macro.sorter[last] = command
            return
        match = _VOLUME.match(name)
        if match is None or match[1] not in macro.volumes:
            return
        volume, rest = macro.volumes[match[1]], match[2]
        first = command.words[0] if command.words else ""
        if rest == "daughters/name":
            self.new_names[volume.name] = first
        elif rest == "daughters/systemType":
            self.new_systems[volume.name] = first
        elif rest == "daughters/insert":
            self.insert(volume, first, command.place)
        elif rest == "repeaters/name":
            self.new_names[volume.name + "/repeaters"] = first
        elif rest == "repeaters/insert":
            base = self.new_names.pop(volume.name + "/repeaters", first)
            taken = {repeater.name for repeater in volume.repeaters}
            free = (new for new in [base] + [f"{base}{k}" for k in range(2, 100)] if new not in taken)
            volume.repeaters.append(Repeater(first, next(free), command.place))
        elif rest == "moves/insert":
            volume.moves = command
        elif rest == "attachCrystalSD":
            volume.is_crystal = True
        elif rest == "attachPhantomSD":
            volume.is_phantom = True
        else:
            volume.settings.pop(rest, None)
            volume.settings[rest] = command

    def insert(self, mother: Volume, shape: str, place: str) -> None:
        name = self.new_names.pop(mother.name, shape)
        if name in self.macro.volumes:
            raise MacroError(f"{place}: there is a volume {name} already ({self.macro.volumes[name].place})")
        self.macro.volumes[name] = Volume(name, mother, shape, place, self.new_systems.pop(mother.name, ""))


def read_macro(path: Union[str, os.PathLike[str]], aliases: Optional[Mapping[str, object]] = None) -> Macro:
    """Reads a macro and those that it executes.

    aliases: values of `{name}`, as Gate's option `-a` gives them.
    Raises MacroError with file and line, or OSError if the file cannot be read.
    """
    reader = _Reader(Path(path), aliases or {})
    reader.run(Path(path), 0, str(path))
    return reader.macro
