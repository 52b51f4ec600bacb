# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""LORaster: system matrices, projectors and reconstruction for positron emission tomography.

Lengths are millimetres in the scanner's frame (right-handed, z along the axis, origin at the centre). Sizes, voxels
and points are in the order x, y, z; images are arrays [nz][ny][nx]. Errors are ValueError and TypeError for what the
caller can change, NoDeviceError, and Error for the rest. Messages go to logging.getLogger("loraster").
"""

from ._core import Error, NoDeviceError, phantoms
from ._core import version as _version

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

# Modules are imported when they are first used: NumPy takes longer to load than all of LORaster, and the program, which
# a wheel starts through this package, needs none of it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import direct, gate, recon
    from ._grid import Image
    from ._program import program
    from .files import phantom, poisson, read, view, write
    from .listmode import ListMode
    from .operator import Adjoint, Correspondence, Operator, devices
    from .scanner import Finding, Scanner
else:
    _HOMES = {
        "_grid": ("Image",),
        "_program": ("program",),
        "files": ("phantom", "poisson", "read", "view", "write"),
        "listmode": ("ListMode",),
        "operator": ("Adjoint", "Correspondence", "Operator", "devices"),
        "scanner": ("Finding", "Scanner"),
    }

    def __getattr__(name):
        from importlib import import_module

        if name in ("direct", "gate", "recon", "torch"):
            return import_module("loraster." + name)
        for home, names in _HOMES.items():
            if name in names:
                value = globals()[name] = getattr(import_module("loraster." + home), name)
                return value
        raise AttributeError(f"module 'loraster' has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})
