# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Progress of long work, by tqdm where it is installed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Optional, Union

Listener = Callable[[str, float, float], object]
Progress = Union[bool, Listener, None]


@contextlib.contextmanager
def listening(progress: Progress) -> Iterator[Optional[Listener]]:
    """The function that is told how far work is: the caller's, a bar of tqdm, or None."""
    if not progress:
        yield None
        return
    if progress is not True:
        yield progress
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield None
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
