# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Images from data: activity x that explains measured counts y by A x + additive.

help(loraster.recon.osem) describes the arguments, which the functions share.

comm: a communicator of mpi4py, whose ranks make the image together: each has an operator and data of its own, by
Operator(..., part=(rank, ranks), subsets=n) of its LORs, and each gets the whole image. Callbacks that end the work
have to on all ranks. Where the call fails on one rank, it fails on all, and the others' error names that rank. A rank
whose script ends before the call leaves the others waiting: "mpirun -n 4 python -m mpi4py script.py" then ends all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from . import _core, _progress
from ._arguments import address_of, check_type, number, reads
from ._arrays import output_like, result_like
from .operator import Operator

__all__ = ["Iteration", "RDP", "bsrem", "mlem", "osem", "ramla"]


@dataclass(frozen=True)
class Iteration:
    """What is known after an iteration; sums are over the data, before the updates of each subset.

    number: from 1. log_likelihood: sum of y ln(yhat) - yhat, yhat = A x + additive. penalty: beta R of the prior.
    measured_counts, estimated_counts: sums of y and yhat where yhat > 0. left_out_lors: those with y > 0 = yhat.
    """

    number: int
    has_fit: bool
    log_likelihood: float
    penalty: float
    measured_counts: float
    estimated_counts: float
    left_out_lors: int
    sensitive_counts: float
    seconds: float
    _core: _core.Iteration
    _shape: tuple[int, int, int]

    @property
    def image(self) -> Any:
        """The image after the last update, a NumPy array. To be asked for in the callback alone."""
        image = np.empty(self._shape, np.float32)
        self._core.copy_image(image)
        return image


@dataclass(frozen=True)
class RDP:
    """The relative difference prior (Nuyts et al. 2002), as in STIR and PETRIC.

    beta: strength, which is weighed against the sensitivity: 0.01 * A.sensitivity().mean() removes much of the noise, ten
        times as much flattens small spheres. It does not depend on the units of the image; more counts need less.
    gamma: how much less edges weigh than noise. epsilon: in units of the image; 0 = a hundredth of the uniform image
        that gives the counts. kappa: image of weights >= 0; None = 1.
    """

    beta: float
    gamma: float = 2.0
    epsilon: float = 0.0
    kappa: Any = None


Callback = Callable[[Iteration], object]


@reads
def mlem(
    A: Operator,
    y: Any,
    *,
    iterations: int = 10,
    additive: Any = None,
    initial: Any = None,
    callback: Optional[Callback] = None,
    progress: _progress.Progress = None,
    comm: Any = None,
) -> Any:
    """Maximum-likelihood expectation maximisation (Shepp and Vardi 1982)."""
    return osem(
        A,
        y,
        iterations=iterations,
        subsets=1,
        additive=additive,
        initial=initial,
        callback=callback,
        progress=progress,
        comm=comm,
    )


@reads
def osem(
    A: Operator,
    y: Any,
    *,
    iterations: int = 3,
    subsets: int = 1,
    additive: Any = None,
    initial: Any = None,
    callback: Optional[Callback] = None,
    progress: _progress.Progress = None,
    comm: Any = None,
) -> Any:
    """Ordered subsets (Hudson and Larkin 1994)."""
    return _reconstruct(A, y, callback, progress, algorithm=0, **_common(iterations, subsets, additive, initial, comm))


@reads
def ramla(
    A: Operator,
    y: Any,
    *,
    iterations: int = 3,
    subsets: int = 1,
    additive: Any = None,
    initial: Any = None,
    relaxation: float = 0.0,
    relaxation_fall: float = 0.0,
    own_steps: bool = True,
    callback: Optional[Callback] = None,
    progress: _progress.Progress = None,
    comm: Any = None,
) -> Any:
    """Block RAMLA (Browne and De Pierro 1996): iteration n = 0, 1, ... uses relaxation / (1 + relaxation_fall n).

    relaxation 0: 1 with one subset, else 10 / (9 + subsets). own_steps: each voxel's step goes by its own largest
    sensitivity, else by the largest of all voxels.
    """
    return _reconstruct(
        A,
        y,
        callback,
        progress,
        algorithm=1,
        relaxation=relaxation,
        relaxation_fall=relaxation_fall,
        own_steps=own_steps,
        **_common(iterations, subsets, additive, initial, comm),
    )


@reads
def bsrem(
    A: Operator,
    y: Any,
    *,
    iterations: int = 30,
    subsets: int = 1,
    additive: Any = None,
    initial: Any = None,
    prior: Optional[RDP] = None,
    relaxation: float = 0.0,
    relaxation_fall: float = 0.1,
    callback: Optional[Callback] = None,
    progress: _progress.Progress = None,
    comm: Any = None,
) -> Any:
    """Block sequential regularised EM (Ahn and Fessler 2003), which maximises the log-likelihood - beta R.

    prior: RDP(...). relaxation 0: 1. With several subsets the maximum is reached where relaxation_fall > 0 alone.
    """
    return _reconstruct(
        A,
        y,
        callback,
        progress,
        algorithm=2,
        prior=prior,
        relaxation=relaxation,
        relaxation_fall=relaxation_fall,
        **_common(iterations, subsets, additive, initial, comm),
    )


_ARGUMENTS = """

    Returns the image [nz][ny][nx] in y's library: in emissions per voxel, or by an unknown factor where A is of lines
    given by their ends, or of events with solid_angles=False.

    A: an Operator. y: counts, at least 0, in the shape A.data_shape ([num_lors]), float32; None in list mode: 1 for
        each event.
    iterations: passes over all data. subsets: updates in a pass, here 1 by default (the program's default is 7), and
        with operators of events and lines at most their `ranges`; mlem has none.
    additive: expected randoms and scatters, in counts, in the shape of y; None = none.
    initial: the first image, float32 in the shape A.image_shape; None = a uniform one.
    callback: called with an Iteration after each; where it raises StopIteration the image so far is returned.
    progress: True for a bar by tqdm, or lines where it is not installed; or a function of (what, done, total).
    comm: a communicator of mpi4py, whose ranks make the image together (help(loraster.recon)).
    """
for _function in (mlem, osem, ramla, bsrem):
    _function.__doc__ = f"{_function.__doc__}".rstrip() + _ARGUMENTS


def _common(iterations: int, subsets: int, additive: Any, initial: Any, comm: Any) -> dict[str, Any]:
    return dict(iterations=iterations, subsets=subsets, additive=additive, initial=initial, comm=comm)


def _reconstruct(
    A: Operator, y: Any, callback: Optional[Callback], progress: _progress.Progress, comm: Any, **options: Any
) -> Any:
    mpi_comm = address_of(comm)

    def call(done: _core.Iteration) -> None:
        assert callback is not None
        callback(Iteration(**done.facts(), _core=done, _shape=A.image_shape))

    with contextlib.ExitStack() as stack:
        try:
            if not isinstance(A, Operator):
                raise TypeError(f"A is a {type(A).__name__}: an Operator is needed")
            for name in ("iterations", "subsets"):
                if options[name] < 1:
                    raise ValueError(f"{name} is {options[name]}: at least 1 is needed")
            if options.get("prior") is not None:
                check_type(options["prior"], RDP, "prior", "prior=lr.recon.RDP(beta=...)")
                for name in ("beta", "gamma", "epsilon"):
                    number(getattr(options["prior"], name), name)
            if y is not None and options["additive"] is y:
                raise ValueError("additive is y itself: give the expected randoms and scatters alone, in counts")
            if y is None:
                if not A.info["of_events"]:
                    raise TypeError("y is None, which is 1 for each event of list mode: give the measured counts")
                y = np.ones(A.data_shape, np.float32)
            image = output_like(y, A.image_shape)
            # A caller with a callback per iteration gets no hint about progress.
            listening = _progress.listening(progress if callback is None or progress else False)
            listener = stack.enter_context(listening)
        except BaseException:
            # Other ranks wait for this one; what fails later, they learn from _core.reconstruct.
            if mpi_comm:
                _core.fail(mpi_comm)
            raise
        settings = dict(
            prior=None,
            relaxation=0.0,
            relaxation_fall=0.0,
            own_steps=False,
            callback=None if callback is None else call,
            progress=listener,
            mpi_comm=mpi_comm,
        )
        settings.update(options)
        try:
            _core.reconstruct(A._core, y, image, settings)
        except StopIteration:
            pass
    return result_like(y, image)
