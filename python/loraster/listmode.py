# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
from __future__ import annotations

import logging
import os
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core, _progress
from ._arguments import check_resolution, check_type, plain, reads, whole_numbers
from .scanner import Scanner

_MM_PER_PS = 0.299792458 / 2
_FEW_TIMES = 4
_warn = logging.getLogger("loraster").warning


def _column(values: Optional[ArrayLike], dtype: Any, name: str) -> Optional[NDArray[Any]]:
    return None if values is None else np.ascontiguousarray(plain(values, name), dtype=dtype)


class ListMode:
    """Events of a scanner, one by one.

    source: the path of a file (PETSIRD, CASToR, Siemens .l, SAFIR, GE), or None with columns:
    crystals: [n, 2] int32, numbers of the crystals a and b over the whole scanner.
    tof_mm: [n] position of the annihilation on the line from a to b, from its middle, positive towards b; or
    tof_ps: [n] arrival time at a minus that at b. Give one of them, or none without time of flight.
    tof_resolution_ps: FWHM of the time difference; 0 = the scanner's. tof_bin_mm: width of bins; 0 = not binned.
    time_ms: [n]; weights: [n], 1 by default; delayed: [n] true for delayed coincidences.
    companion: the second file that some formats need. progress: of reading, as that of Operator.
    """

    @reads
    def __init__(
        self,
        scanner: Scanner,
        source: Union[str, os.PathLike[str], None] = None,
        *,
        crystals: Optional[ArrayLike] = None,
        tof_mm: Optional[ArrayLike] = None,
        tof_ps: Optional[ArrayLike] = None,
        tof_resolution_ps: float = 0.0,
        tof_bin_mm: float = 0.0,
        time_ms: Optional[ArrayLike] = None,
        weights: Optional[ArrayLike] = None,
        delayed: Optional[ArrayLike] = None,
        companion: Union[str, os.PathLike[str], None] = None,
        progress: _progress.Progress = None,
    ) -> None:
        check_type(scanner, Scanner, "scanner", "lr.Scanner({})")
        self._scanner = scanner
        if (source is None) == (crystals is None):
            raise TypeError("give either the path of a file of events or crystals=, an array [n, 2]")
        if source is not None:
            beside = None if companion is None else os.fsdecode(companion)
            with _progress.listening(progress) as listener:
                self._core = _core.ListMode.read(scanner._core, os.fsdecode(source), beside, listener)
        elif crystals is not None:
            check_resolution(tof_resolution_ps, "tof_resolution_ps")
            if tof_ps is not None:
                if tof_mm is not None:
                    raise TypeError("give either tof_mm or tof_ps")
                tof_mm = _MM_PER_PS * plain(tof_ps, "tof_ps").astype(np.float64)
            if tof_mm is not None:
                # Windows of coincidence let places far outside through, but none at a hundred radii.
                radius_mm = np.linalg.norm(scanner.hits, axis=1).max()
                distances_mm = np.abs(plain(tof_mm, "tof_mm"))
                far = np.flatnonzero(distances_mm > 100 * radius_mm)
                if len(far) > 0:
                    name, given, unit = ("tof_mm", tof_mm, "um") if tof_ps is None else ("tof_ps", tof_ps, "fs")
                    raise ValueError(
                        f"event {far[0]} has {name} {np.asarray(given)[far[0]]:g}, beyond the scanner's bore: "
                        f"is it in {unit}?"
                    )
            self._core = _core.ListMode.of_columns(
                scanner._core,
                whole_numbers(crystals, np.int32, "event {} names the crystal {}"),
                _column(tof_mm, np.float32, "tof_mm"),
                _column(time_ms, np.int64, "time_ms"),
                _column(weights, np.float32, "weights"),
                _column(delayed, np.int64, "delayed"),
                tof_resolution_ps,
                tof_bin_mm,
            )
            # Events of a single point spread by the resolution, and most of those of an object lie in the bore.
            if tof_ps is not None and np.count_nonzero(distances_mm) >= _FEW_TIMES:
                largest_ps = distances_mm.max() / _MM_PER_PS
                if largest_ps < 0.05 * self.tof_resolution_ps:
                    _warn("tof_ps is %.3g at most, and the resolution %g ps: are they in ns?", largest_ps,
                          self.tof_resolution_ps)  # fmt: skip
            elif tof_ps is None and tof_mm is not None and len(self) > 0 and np.median(distances_mm) > radius_mm:
                _warn("tof_mm is beyond the scanner's bore of radius %.4g for most events: are they in ps?", radius_mm)
        lost = len(self) - self._core.num_joined
        if lost > 0.1 * len(self):
            _warn(
                "%d of %d events join crystals that are not in coincidence: are they of this scanner, and are its "
                "rules (field_of_view_mm, min_module_difference, max_ring_difference) those of the measurement?",
                lost,
                len(self),
            )

    def __len__(self) -> int:
        return self._core.count

    @property
    def crystals(self) -> NDArray[np.int32]:
        """[n, 2] crystals a and b."""
        return self._core.crystals()

    @property
    def tof_mm(self) -> NDArray[np.float32]:
        """[n] position on the line from a to b, from its middle; 0 without time of flight."""
        return self._core.tof_mm()

    @property
    def has_tof(self) -> bool:
        return self._core.has_tof

    @property
    def tof_resolution_ps(self) -> float:
        return self._core.tof_resolution_ps

    @property
    def time_ms(self) -> NDArray[np.int64]:
        """[n] since the file's zero of time."""
        return self._core.time_ms()

    @property
    def weights(self) -> NDArray[np.float32]:
        """[n]"""
        return self._core.weights()

    @property
    def delayed(self) -> NDArray[np.bool_]:
        """[n] true for delayed coincidences."""
        return self._core.delayed().astype(np.bool_)

    @property
    def duration_s(self) -> float:
        """Seconds of the acquisition; 0 = not known."""
        return self._core.duration_s

    @property
    def lors(self) -> NDArray[np.int64]:
        """[n] the LOR of each event; -1 out of coincidence."""
        return self._core.lors()

    def histogram(self, delayed: bool = False) -> NDArray[np.float32]:
        """[num_lors] the weights of the prompts of each LOR added up, or those of the delayeds."""
        lors = self.lors
        chosen = (lors >= 0) & (self.delayed == delayed)
        return np.bincount(lors[chosen], self.weights[chosen], self._scanner.num_lors).astype(np.float32)

    def __repr__(self) -> str:
        return f"<ListMode: {len(self)} events{', time of flight' if self.has_tof else ''}>"

    def __reduce__(self) -> Any:
        raise TypeError("a ListMode cannot be pickled: pickle its columns, or the path of its file")
