# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""LORaster: system matrices, projectors and reconstruction for positron emission tomography.

Lengths are millimetres in the scanner's frame (right-handed, z along the axis, origin at the centre). Sizes, voxels
and points are in the order x, y, z; images are arrays [nz][ny][nx]. Errors are ValueError and TypeError for what the
caller can change, NoDeviceError, and Error for the rest. Messages go to logging.getLogger("loraster").
"""

from typing import TYPE_CHECKING, Any

from . import direct, recon
from ._core import Error, NoDeviceError, phantoms
from ._core import version as _version
from ._grid import Image
from .files import phantom, poisson, program, read, view, write
from .listmode import ListMode
from .operator import Adjoint, Correspondence, Operator, devices
from .scanner import Finding, Scanner

__version__ = _version()
__all__ = [
    "Adjoint",
    "Correspondence",
    "Error",
    "Finding",
    "Image",
    "ListMode",
    "NoDeviceError",
    "Operator",
    "Scanner",
    "devices",
    "direct",
    "gate",
    "phantom",
    "phantoms",
    "poisson",
    "program",
    "read",
    "recon",
    "view",
    "write",
]

# Modules with further dependencies are imported when they are first used.
if TYPE_CHECKING:
    from . import gate
else:

    def __getattr__(name: str) -> Any:
        if name in ("gate", "torch"):
            from importlib import import_module

            return import_module("loraster." + name)
        raise AttributeError(f"module 'loraster' has no attribute {name!r}")
