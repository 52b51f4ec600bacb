# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Arrays of NumPy, PyTorch, CuPy, JAX and others: where results are allocated, and on which stream."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

import numpy as np

Array = TypeVar("Array")


def _library(x: Any) -> str:
    return type(x).__module__.partition(".")[0]


def output_like(x: Any, shape: tuple[int, ...]) -> Any:
    """An array of x's library, type and device for a result: a NumPy array where the library's cannot be written to."""
    if type(x) is np.ndarray:
        return np.empty(shape, x.dtype)
    library = _library(x)
    if library == "torch":
        return sys.modules["torch"].empty(shape, dtype=x.dtype, device=x.device)
    if library == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(x.device.id):
            return cupy.empty(shape, x.dtype)
    if hasattr(x, "__dlpack_device__") and x.__dlpack_device__()[0] not in (1, 3):
        if library not in ("jax", "jaxlib"):
            raise ValueError(
                f"{library} has no arrays on its device that a result can be written to: give out=, an array of "
                "PyTorch or CuPy on that device"
            )
        # JAX's arrays are immutable. This array is written once, before the caller gets it.
        return sys.modules["jax"].numpy.empty(shape, x.dtype, device=x.device).block_until_ready()
    return np.empty(shape, np.float64 if str(getattr(x, "dtype", "")).endswith("float64") else np.float32)


def check_output(out: Any) -> Any:
    """A caller's array for a result: not one of JAX, which takes them to be as they were when they were made."""
    if _library(out) in ("jax", "jaxlib"):
        raise ValueError("out is an array of JAX, which does not change: leave out= away, and take what is returned")
    return out


def result_like(x: Array, out: Any) -> Array:
    """The result, in x's library."""
    if type(x) is np.ndarray or _library(out) != "numpy":
        return out  # type: ignore[no-any-return]
    if hasattr(x, "__array_namespace__"):
        return x.__array_namespace__().from_dlpack(out)  # type: ignore[no-any-return]
    return out  # type: ignore[no-any-return]


def on_stream(x: Any) -> tuple[int, bool, Any]:
    """For an array of a CUDA device: the cudaStream_t that work on it is queued on, whether x's library goes on there
    with its own, and DLPack's capsule, which is asked for after that stream waits for what x needs; None without it.

    1 is CUDA's legacy default stream.
    """
    library = _library(x)
    if library == "torch":
        stream = sys.modules["torch"].cuda.current_stream(x.device).cuda_stream
    elif library == "cupy":
        stream = sys.modules["cupy"].cuda.get_current_stream().ptr
    else:
        stream = getattr(x, "__cuda_array_interface__", {}).get("stream")
    is_ordered = library in ("torch", "cupy") or stream is not None
    stream = stream or 1
    return stream, is_ordered, x.__dlpack__(stream=stream) if hasattr(x, "__dlpack__") else None
