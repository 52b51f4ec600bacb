# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Progress of long work: by tqdm where it is installed, else in lines."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Optional, Union

Listener = Callable[[str, float, float], object]
Progress = Union[bool, Listener, None]

PATIENCE_S = 10.0
"""Work that nobody listens to is told of after this time."""

_LINES_S = 5.0


@contextlib.contextmanager
def listening(progress: Progress) -> Iterator[Optional[Listener]]:
    """The function that is told how far work is: the caller's, a bar of tqdm or lines, or None."""
    if progress is None:
        yield None
    elif progress is False or (progress is True and sys.stderr is None):
        yield lambda what, done, total: None
    elif progress is not True:
        yield progress
    else:
        with _shown() as listener:
            yield listener


def run(call: Callable[..., object], progress: Progress, *arguments: Any) -> None:
    """A call whose last argument is its listener."""
    if progress is None:
        call(*arguments, None)
        return
    with listening(progress) as listener:
        call(*arguments, listener)


@contextlib.contextmanager
def _shown() -> Iterator[Listener]:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        due = time.monotonic() + _LINES_S

        def line(what: str, done: float, total: float) -> None:
            nonlocal due
            if time.monotonic() >= due:
                due = time.monotonic() + _LINES_S
                print(_words(what, done, total), file=sys.stderr)

        yield line
        return
    bar: Any = tqdm(total=1.0, bar_format="{desc}: {percentage:3.0f}% |{bar}| {elapsed} < {remaining}", leave=False)

    def tell(what: str, done: float, total: float) -> None:
        bar.set_description_str(what, refresh=False)
        bar.n = done / total if total > 0 else 0.0
        bar.refresh()

    try:
        yield tell
    finally:
        bar.close()


def _words(what: str, done: float, total: float) -> str:
    return f"{what}: {100 * done / total if total > 0 else 0:.0f} %"


def unheard(what: str, done: float, total: float, seconds: float) -> bool:
    """Warns of work that takes long. The compiled half asks until it is told that it has been said."""
    if seconds < PATIENCE_S:
        return False
    logging.getLogger("loraster").warning(
        "%s after %.0f s; progress=True shows how far it is, progress=False says nothing",
        _words(what, done, total),
        seconds,
    )
    return True
