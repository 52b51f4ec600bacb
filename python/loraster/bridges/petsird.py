# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Scanners and events of PETSIRD's Python objects: `pip install petsird`.

Files of PETSIRD are read without this, by Scanner("file.petsird") and ListMode(scanner, "file.petsird").
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from typing import Any

import petsird  # type: ignore[import-untyped, unused-ignore]

from ..listmode import ListMode
from ..scanner import Scanner

__all__ = ["scanner_and_events"]


def scanner_and_events(header: Any, time_blocks: Iterable[Any]) -> tuple[Scanner, ListMode]:
    """The scanner of a petsird.Header and the events of its time blocks, prompts and delayeds.

    time_blocks: as PETSIRD's readers give them; they are read once and go through a temporary file.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "objects.petsird")
        with petsird.BinaryPETSIRDWriter(path) as writer:
            writer.write_header(header)
            writer.write_time_blocks(time_blocks)
        scanner = Scanner(path)
        return scanner, ListMode(scanner, path)
