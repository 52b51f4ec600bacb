# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Arrays of JAX, on the processor and on a CUDA device: values, places, order, and bytes that do not pass through the
host."""

import os

import numpy as np
import pytest

import loraster as lr
from conftest import GRID, VOXEL_MM

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the device's memory is for the operators, too
jax = pytest.importorskip("jax")
jnp = jax.numpy


def devices(platform):
    try:
        return jax.devices(platform)
    except RuntimeError:
        return []


@pytest.fixture(scope="module", params=["cpu", "cuda", "lines on cuda"])
def placed(request, scanner, native):
    """An operator, and the device of JAX on which it takes arrays."""
    if request.param == "cpu":
        return native, devices("cpu")[0]
    if not devices("cuda"):
        pytest.skip("JAX finds no CUDA device: pip install 'jax[cuda12]'")
    if request.param == "cuda":
        op = lr.Operator(scanner, GRID, VOXEL_MM, backend="compute")
        if not op.info["is_gpu"]:
            pytest.skip(f"compute runs on {op.info['device']}")
    else:
        start = np.random.default_rng(5).uniform(-40, 40, (200000, 3)).astype(np.float32)
        op = lr.Operator.of_lines(start, -start[::-1].copy(), (64, 64, 16), 2.0, backend="cuda")
    return op, devices("cuda")[0]


def on(device, values):
    return jax.device_put(values, device)


def is_there(array, device):
    return isinstance(array, jax.Array) and array.dtype == jnp.float32 and array.devices() == {device}


def test_results_are_those_of_numpy(placed, rng):
    op, device = placed
    x, y = rng.random(op.image_shape, np.float32), rng.random(op.data_shape, np.float32)
    forward, back = op @ x, op.T @ y
    for _ in range(3):  # an array gets the memory of one before it
        one, other = op @ (on(device, x) + 0), op.T @ (on(device, y) + 0)
        assert is_there(one, device) and is_there(other, device)
        np.testing.assert_allclose(np.asarray(one + 0), forward, rtol=5e-6, atol=1e-9 * forward.max())
        np.testing.assert_allclose(np.asarray(other + 0), back, rtol=5e-6, atol=1e-6 * back.max())


def test_the_adjoint_is_the_transpose(placed, rng):
    op, device = placed
    x = on(device, rng.random(op.image_shape, np.float32))
    y = on(device, rng.random(op.data_shape, np.float32))
    left = np.vdot(np.asarray(op @ x, np.float64), np.asarray(y))
    right = np.vdot(np.asarray(x, np.float64), np.asarray(op.T @ y))
    assert left == pytest.approx(right, rel=5e-6) and left > 0


def test_work_waits_for_jax_and_jax_for_it(placed, rng):
    """JAX returns before its kernels have ended: the input is filled behind long ones, the result is read at once."""
    op, device = placed
    size = 300 if device.platform == "cpu" else 3000
    large = on(device, rng.random((size, size), np.float32) / size)

    @jax.jit
    def delayed(large, x):
        for _ in range(20):
            large = large @ large
        return x + 0 * large[0, 0]

    x = on(device, rng.random(op.image_shape, np.float32))
    expected = np.asarray(op @ x)
    delayed(large, x).block_until_ready()  # compiled
    for _ in range(3):
        seen = 2 * (op @ delayed(large, x))
        np.testing.assert_allclose(np.asarray(seen), 2 * expected, rtol=5e-6, atol=1e-9 * expected.max())
    back = np.asarray(op.T @ on(device, expected))
    seen = 2 * (op.T @ (op @ delayed(large, x)))
    np.testing.assert_allclose(np.asarray(seen), 2 * back, rtol=2e-5, atol=1e-6 * back.max())


def test_numbers_stay_on_the_device(placed):
    op, device = placed
    if device.platform == "cpu":
        pytest.skip("the processor's memory is the host's")

    def bytes_moved():
        return op.info["to_device_bytes"] + op.info["to_host_bytes"]

    x = jnp.ones(op.image_shape, device=device)
    op.T @ (op @ x)
    before = bytes_moved()
    for _ in range(3):
        op.T @ (op @ x)
    # Sums and sizes that a call reads or tells are below a kilobyte; images and data are above.
    assert bytes_moved() - before < 3 * 2 * 1024


def test_reconstructions_are_of_jax(placed, rng):
    op, device = placed
    y = np.asarray(op @ rng.random(op.image_shape, np.float32))
    host = lr.recon.osem(op, y, iterations=2)
    image = lr.recon.osem(op, on(device, y), iterations=2)
    assert is_there(image, device)
    np.testing.assert_allclose(np.asarray(image), host, rtol=1e-4, atol=1e-5 * host.max())


def test_what_does_not_fit_is_refused(placed):
    op, device = placed
    x = jnp.ones(op.image_shape, device=device)
    with pytest.raises(TypeError, match="int32"):
        op @ x.astype(jnp.int32)
    with pytest.raises(ValueError, match="x has the shape"):
        op @ x[1:]
    for call, out in (
        (op.forward, jnp.zeros(op.data_shape, device=device)),
        (lambda x, out: op.sensitivity(out=out), jnp.zeros(op.image_shape, device=device)),
    ):
        with pytest.raises(ValueError, match="out is an array of JAX, which does not change"):
            call(x, out=out)
        assert not np.asarray(out).any()


def test_operators_of_the_processor_refuse_those_of_a_device(native):
    if not devices("cuda"):
        pytest.skip("JAX finds no CUDA device: pip install 'jax[cuda12]'")
    with pytest.raises(ValueError, match="x is on a GPU"):
        native @ jnp.ones(native.image_shape, device=devices("cuda")[0])
