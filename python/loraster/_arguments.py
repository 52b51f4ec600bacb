# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Mistakes in arguments, answered by what to write instead."""

from __future__ import annotations

import difflib
import functools
import inspect
import operator
import os
import reprlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core

Function = TypeVar("Function", bound=Callable[..., Any])


def number(value: Any, name: str) -> float:
    try:
        if not isinstance(value, (str, bytes)):
            return float(value)
    except TypeError:
        pass
    raise TypeError(f"{name} is {reprlib.repr(value)}: a number is wanted")


_LIMITS = {"seed": (0, 2**64), "max_memory_bytes": (-(2**63), 2**63), "sensitivity_lines": (-(2**63), 2**63)}


def whole(value: Any, name: str) -> int:
    """A whole number, which may be a float such as 2.0."""
    try:
        found = operator.index(value)
    except TypeError:
        real = number(value, name)
        if not real.is_integer():
            raise ValueError(f"{name} is {real:g}: a whole number is wanted") from None
        found = int(real)
    least, end = _LIMITS.get(name, (-(2**31), 2**31))
    if not least <= found < end:
        raise ValueError(f"{name} is {found}: whole numbers from {least} to {end - 1} are wanted")
    return found


def several(value: Any, count: int, name: str, read: Callable[[Any, str], Any] = number) -> Any:
    """A tuple of so many numbers; a single one is that of all."""
    numbers = (value,) * count if np.ndim(value) == 0 else tuple(value)
    if len(numbers) != count:
        order = "two" if count == 2 else "three in the order x, y, z"
        raise ValueError(f"{name} has {len(numbers)} numbers: give one, or {order}")
    return tuple(read(one, name) for one in numbers)


def _instance(kind: Any, words: str) -> Callable[[Any, str], Any]:
    def read(value: Any, name: str) -> Any:
        if not isinstance(value, kind):
            raise TypeError(f"{name} is {reprlib.repr(value)}: {words} is wanted")
        return value if kind == (str,) else kind[0](value)

    return read


_KINDS: dict[str, Callable[[Any, str], Any]] = {
    "bool": _instance((bool, np.bool_), "True or False"),
    "float": number,
    "int": whole,
    "str": _instance((str,), "a str"),
    "tuple[int, int]": lambda value, name: several(value, 2, name, whole),
}
_KINDS.update({f"Optional[{name}]": kind for name, kind in _KINDS.items()})
_MEANT = {"mu": "attenuation", "mu_map": "attenuation", "normalisation": "efficiencies"}


def reads(function: Function) -> Function:
    """A function whose arguments are read as the numbers, strings and truths of its annotations. A keyword that it does
    not have is answered by the one that is meant. Other ranks of comm= are informed of what is refused."""
    signature = inspect.signature(function)
    parameters = signature.parameters
    is_open = any(one.kind is one.VAR_KEYWORD for one in parameters.values())

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        try:
            for name in [] if is_open else named.keys() - parameters.keys():
                near = [_MEANT[name]] if name in _MEANT else difflib.get_close_matches(name, parameters, 1, 0.5)
                meant = f": did you mean {near[0]}?" if near and near[0] in parameters else ""
                raise TypeError(f"{function.__qualname__.removesuffix('.__init__')} has no argument {name}{meant}")
            try:
                given = signature.bind(*args, **named)
            except TypeError as wrong:
                raise TypeError(f"{function.__qualname__.removesuffix('.__init__')}: {wrong}") from None
            for name, value in given.arguments.items():
                kind = _KINDS.get(str(parameters[name].annotation))
                if kind and parameters[name].kind is not inspect.Parameter.VAR_KEYWORD and value is not None:
                    given.arguments[name] = kind(value, name)
        except (TypeError, ValueError):
            if address := address_of(named.get("comm")):
                _core.fail(address)
            raise
        return function(*given.args, **given.kwargs)

    return cast(Function, call)


def address_of(comm: Any) -> int:
    """The address of a communicator of mpi4py; 0 = there is none."""
    if comm is None:
        return 0
    from mpi4py import MPI

    return int(MPI._addressof(comm))


def plain(values: ArrayLike, name: str) -> NDArray[Any]:
    """The values as an array. NumPy would drop the mask of a masked one."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, and its mask would be ignored: fill it by .filled(0)")
    return np.asarray(values)


def check_type(given: Any, kind: type, name: str, remedy: str) -> None:
    """Refuses an argument that is no `kind`. remedy: the code to write, in which {} stands for the name of a file that
    was given."""
    if not isinstance(given, kind):
        path = repr(os.fspath(given)) if isinstance(given, (str, os.PathLike)) else "..."
        raise TypeError(f"{name} is a {type(given).__name__}: write {remedy.format(path)}")


def check_resolution(fwhm_ps: float, name: str) -> None:
    """Refuses a time resolution that no scanner has in ps, but many have in ns."""
    if 0 < number(fwhm_ps, name) < 2:
        raise ValueError(f"{name} is {fwhm_ps:g}: it looks like ns: give {1000 * fwhm_ps:g} (ps, FWHM)")


def whole_numbers(values: ArrayLike, kind: Any, words: str) -> NDArray[Any]:
    """The values as a contiguous array of a kind of whole numbers. A value that this kind cannot hold is refused by
    `words`, in which the first {} stands for its row and the second one for the value."""
    given = plain(values, "the array")
    with np.errstate(invalid="ignore"):
        whole = np.ascontiguousarray(given, dtype=kind)
    is_wrong = whole != given if given.dtype.kind in "fiu" else np.zeros(given.shape, bool)
    if np.any(is_wrong):
        first = int(np.flatnonzero(is_wrong)[0])
        value = given.flat[first]
        limits = "" if value % 1 else f" up to {np.iinfo(kind).max}"
        where = words.format(np.unravel_index(first, given.shape)[0] if given.ndim > 0 else "", value)
        raise ValueError(f"{where}: whole numbers{limits} are wanted; is it the right column?")
    return whole
