# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Mistakes in arguments, answered by what to write instead."""

from __future__ import annotations

import os
from typing import Any


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
