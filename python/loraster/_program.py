# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""The program loraster, which needs no NumPy."""

import os


def program() -> str:
    """The path of the program loraster that belongs to this module."""
    folder = os.path.dirname(os.path.abspath(__file__))
    for path in (os.path.join(folder, "bin", "loraster"), os.path.join(folder, "..", "..", "loraster")):
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return os.path.normpath(path)
    raise FileNotFoundError(f"there is no program loraster in {folder}: install the package again")
