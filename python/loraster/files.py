# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
from __future__ import annotations

import logging
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core, _grid
from ._arguments import check_type, plain, reads
from ._grid import Image
from ._program import program
from .listmode import ListMode
from .scanner import Scanner

Path = Union[str, os.PathLike[str]]


@reads
def phantom(
    name: str,
    grid: _grid.Size,
    voxel_mm: _grid.Millimetres,
    *,
    radius_mm: float = 0.0,
    contrast: float = 0.0,
    origin_mm: Optional[Sequence[float]] = None,
) -> NDArray[np.float32]:
    """The activity [nz][ny][nx] of a phantom along z through the grid's centre, at most 1; each voxel has the mean over
    its volume.

    name: "spheres": six spheres of 1, of six diameters, in the middle plane of a cylinder of 0.25 (1 / contrast);
        "six-spheres": six equal ones of 1 in a cylinder of 1/6 (1 / contrast);
        "derenzo": rods of 1 in 0, of 1.2 to 4.8 mm, from a radius of 9.6 mm on;
        "cylinder": 1 within the radius; "line": 1 in the voxels along the axis;
        "point": 1 in the voxel nearest the origin.
    radius_mm: of the cylinder; 0 = 0.46 of the grid's smaller transaxial extent. contrast: of the spheres to the
        cylinder; 0 = 4, or 6 of six-spheres.
    """
    return _core.phantom(name, _grid.grid(grid, voxel_mm, origin_mm), radius_mm, contrast)


@reads
def poisson(expected: ArrayLike, seed: int) -> NDArray[np.float32]:
    """Poisson counts of expectations, which depend on the seed and the place in the array alone."""
    counts = np.array(plain(expected, "expected"), dtype=np.float32, order="C")
    _core.poisson(counts, seed)
    return counts


def read(path: Path, scanner: Optional[Scanner] = None) -> Any:
    """What a file holds: a Scanner, an Image (with its voxels' size; where the file has several frames, its values are
    [nt][nz][ny][nx]; "NAME.nii:2" is its second alone), or, with a scanner, data [num_lors] or a ListMode."""
    name = os.fsdecode(path)
    kind = _core.file_kind(name)
    if kind == "image":
        return Image(*_core.read_image(name))
    if kind == "scanner" or (kind == "petsird" and scanner is None):
        return Scanner(name)
    if kind in ("events", "petsird", "data"):
        if scanner is None:
            raise ValueError(f"{name} holds numbers of a scanner's LORs: write read(path, scanner)")
        check_type(scanner, Scanner, "scanner", "lr.Scanner({})")
        return ListMode(scanner, name) if kind != "data" else _core.read_data(name, scanner._core)
    raise ValueError(f"{name}: neither a scanner, an image, data, nor events, or it cannot be read")


def write(
    path: Path,
    what: Any,
    *,
    voxel_mm: Optional[_grid.Millimetres] = None,
    origin_mm: Optional[Sequence[float]] = None,
    scanner: Optional[Scanner] = None,
) -> None:
    """Writes a Scanner (.yaml, .geom, .hscan, .petsird); a ListMode, by time (.petsird, .Cdh, .tsv); an Image, or an
    array [nz][ny][nx] with voxel_mm (.nii, .nii.gz, .hv, .hdr, .mhd, .mha); or data [num_lors] with scanner (.h5,
    .hs)."""
    name = os.fsdecode(path)
    if isinstance(what, Scanner):
        _core.write_scanner(name, what._core)
    elif isinstance(what, ListMode):
        _core.write_events(name, what._core)
    elif scanner is not None:
        check_type(scanner, Scanner, "scanner", "lr.Scanner({})")
        _core.write_data(name, what, scanner._core)
    else:
        if not isinstance(what, Image):
            if voxel_mm is None:
                raise TypeError("write(path, image, voxel_mm=...) for an image, write(path, y, scanner=...) for data")
            what = Image(what, voxel_mm, origin_mm)
        values, where = _grid.image(what, ((0, 0, 0), (0.0, 0.0, 0.0), None), "image")
        _core.write_image(name, values, where)


def view(scanner: Scanner, image: Any = None, voxel_mm: Optional[_grid.Millimetres] = None) -> subprocess.Popen[bytes]:
    """Opens the viewer with a scanner and an image (an Image, or an array with voxel_mm), and does not wait for it.

    Returns the viewer's process: wait() returns when its window is closed, terminate() closes it. The window stays open
    when Python ends, and Ctrl-C does not close it. What ends the viewer by an error goes to
    logging.getLogger("loraster"). NoDeviceError where there is no screen.
    """
    check_type(scanner, Scanner, "scanner", "lr.Scanner({})")
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        raise _core.NoDeviceError(
            "there is no screen to open the viewer on: log in on a desktop, or set DISPLAY (ssh -X does); "
            "loraster view --no-window --script FILE draws into files without a screen"
        )
    command = [program(), "view"]
    folder = tempfile.mkdtemp(prefix="loraster-view-")
    # The viewer alone keeps the writing end of a pipe, and at the end of the pipe a shell removes the folder: so it does
    # after a viewer that was killed, or that has outlived this process.
    read, write_end = os.pipe()
    # Nobody who waits for the end of this process's output waits for the viewer, too: what it says goes to a file.
    said = tempfile.TemporaryFile()
    nowhere = subprocess.DEVNULL
    try:
        remove = 'exec 3<&0; (cat <&3; rm -rf "$0") &'
        subprocess.run(
            ["sh", "-c", remove, folder], stdin=read, stdout=nowhere, stderr=nowhere, start_new_session=True, check=True
        )
        command += ["--scanner", os.path.join(folder, "scanner.yaml")]
        write(command[-1], scanner)
        if image is not None:
            command += ["--image", os.path.join(folder, "image.nii")]
            write(command[-1], image, voxel_mm=voxel_mm)
        viewer = subprocess.Popen(
            command, stdin=nowhere, stdout=nowhere, stderr=said, pass_fds=[write_end], start_new_session=True
        )
    except BaseException:
        said.close()
        raise
    finally:
        os.close(read)
        os.close(write_end)

    def watch() -> None:
        code = viewer.wait()
        with said:
            said.seek(0)
            text = said.read().decode(errors="replace").strip()
        if code not in (0, -signal.SIGTERM, -signal.SIGKILL) and not text.endswith("loraster: stopped"):
            logging.getLogger("loraster").error("%s", text or f"the viewer has ended with exit code {code}")

    threading.Thread(target=watch, name="loraster.view", daemon=True).start()
    return viewer
