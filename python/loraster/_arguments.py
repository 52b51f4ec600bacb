# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Mistakes in arguments, answered by what to write instead."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def check_type(given: Any, kind: type, name: str, remedy: str) -> None:
    """Refuses an argument that is no `kind`. remedy: the code to write, in which {} stands for the name of a file that
    was given."""
    if not isinstance(given, kind):
        path = repr(os.fspath(given)) if isinstance(given, (str, os.PathLike)) else "..."
        raise TypeError(f"{name} is a {type(given).__name__}: write {remedy.format(path)}")


def check_resolution(fwhm_ps: float, name: str) -> None:
    """Refuses a time resolution that no scanner has in ps, but many have in ns."""
    if 0 < fwhm_ps < 2:
        raise ValueError(f"{name} is {fwhm_ps:g}: it looks like ns: give {1000 * fwhm_ps:g} (ps, FWHM)")


def whole_numbers(values: ArrayLike, kind: Any, words: str) -> NDArray[Any]:
    """The values as a contiguous array of a kind of whole numbers. A value that this kind cannot hold is refused by
    `words`, in which the first {} stands for its row and the second one for the value."""
    given = np.asarray(values)
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
