# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Arrays of a CUDA device: values, order among streams, and bytes that do not pass through the host."""

import numpy as np
import pytest

import loraster as lr
from conftest import GRID, VOXEL_MM

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("PyTorch finds no CUDA device", allow_module_level=True)


@pytest.fixture(scope="module")
def on_device(scanner):
    op = lr.Operator(scanner, GRID, VOXEL_MM, backend="compute")
    if not op.info["is_gpu"]:
        pytest.skip(f"compute runs on {op.info['device']}")
    return op


@pytest.fixture(scope="module")
def views():
    op = lr.Operator.direct((64, 64, 16), 4.0, views=lr.direct.views(8, 1), tof_ps=300, backend="cuda")
    if op.info["backend"] != "cuda":
        pytest.skip(f"direct runs on {op.info['backend']}")
    return op


def bytes_moved(op):
    return op.info["to_device_bytes"] + op.info["to_host_bytes"]


def test_results_are_those_of_the_host(on_device, rng):
    x = rng.random(on_device.image_shape, np.float32)
    y = rng.random(on_device.data_shape, np.float32)
    forward = on_device @ torch.from_numpy(x).cuda()
    assert forward.is_cuda and forward.dtype == torch.float32
    np.testing.assert_allclose(forward.cpu().numpy(), on_device @ x, rtol=5e-6, atol=1e-9)
    back = on_device.T @ torch.from_numpy(y).cuda()
    np.testing.assert_allclose(back.cpu().numpy(), on_device.T @ y, rtol=5e-6)


def test_numbers_stay_on_the_device(on_device, views):
    for op in (on_device, views):
        x = torch.ones(op.image_shape, device="cuda")
        y, back = op @ x, op.T @ (op @ x)
        before = bytes_moved(op)
        for _ in range(3):
            op.forward(x, out=y)
            op.adjoint(y, out=back)
        # Sums and sizes that a call reads or tells are below a kilobyte; images and data are above.
        assert bytes_moved(op) - before < 3 * 2 * 1024


@pytest.mark.parametrize("subsets", [1, 4])
def test_counts_stay_on_the_device(on_device, scanner, subsets):
    op = lr.Operator(scanner, GRID, VOXEL_MM, backend="compute")
    y = op @ torch.ones(op.image_shape, device="cuda")
    before = bytes_moved(op)
    image = lr.recon.osem(op, y, iterations=3, subsets=subsets)
    assert image.is_cuda and bool(torch.isfinite(image).all())
    # Only sums of vectors pass to the host, 48 bytes each, also for sensitivities.
    assert bytes_moved(op) - before < 128 * 48 < y.nbytes


def test_values_of_lines_stay_on_the_device(lines):
    y = lines @ torch.ones(lines.image_shape, device="cuda")
    before = bytes_moved(lines)
    image = lr.recon.osem(lines, y, iterations=3)
    assert image.is_cuda and bool(torch.isfinite(image).all())
    assert bytes_moved(lines) - before < 128 * 48 < y.nbytes


DELAY = 200_000_000  # cycles: about 0.1 s


@pytest.fixture
def lines(rng):
    start = rng.uniform(-40, 40, (5000, 3)).astype(np.float32)
    return lr.Operator.of_lines(start, -start[::-1].copy(), (64, 64, 16), 2.0, backend="cuda")


def projected_behind_a_delay(op):
    """Sums of a projection, read on a stream that before it fills the image, behind a long delay; and of ones."""
    filling, x = torch.cuda.Stream(), torch.zeros(op.image_shape, device="cuda")
    expected = op @ torch.ones_like(x)
    y = torch.full_like(expected, torch.nan)
    torch.cuda.synchronize()
    with torch.cuda.stream(filling):
        torch.cuda._sleep(DELAY)
        x.fill_(1.0)
        op.forward(x, out=y)
        seen = y.clone()
    torch.cuda.synchronize()
    return seen.cpu(), expected.cpu()


def test_work_waits_for_other_streams(views, lines):
    """An input that another stream fills behind a long delay, and a result that it reads at once."""
    for op in (views, lines):
        seen, expected = projected_behind_a_delay(op)
        assert torch.equal(seen, expected)


def test_without_order_that_is_seen(lines, monkeypatch):
    """The test above with arrays that are taken on a stream of their own, which waits for nobody, sees zeros. Operators
    that share OpenGL's objects wait for the whole device, and show nothing."""
    alone = torch.cuda.Stream()

    def unordered(x):
        return alone.cuda_stream, True, x.__dlpack__(stream=-1)

    monkeypatch.setattr(lr._arrays, "on_stream", unordered)
    seen, expected = projected_behind_a_delay(lines)
    assert not torch.equal(seen, expected)


def test_default_streams_wait_for_each_other(views):
    x = torch.zeros(views.image_shape, device="cuda")
    expected = (views @ torch.ones_like(x)).cpu()
    torch.cuda.synchronize()
    torch.cuda._sleep(DELAY)
    x.fill_(1.0)
    assert torch.equal((views @ x).cpu(), expected)


def test_reconstruction_is_that_of_the_host(views, rng):
    y = (views @ rng.random(views.image_shape, np.float32)).astype(np.float32)
    host = lr.recon.osem(views, y, iterations=2, subsets=2)
    device = lr.recon.osem(views, torch.from_numpy(y).cuda(), iterations=2, subsets=2)
    np.testing.assert_allclose(device.cpu().numpy(), host, rtol=1e-5, atol=1e-6)


def test_arrays_of_cupy(on_device, rng):
    x = rng.random(on_device.image_shape, np.float32)
    y = on_device @ x
    cupy = pytest.importorskip("cupy")
    result = on_device @ cupy.asarray(x)
    assert isinstance(result, cupy.ndarray)
    np.testing.assert_allclose(cupy.asnumpy(result), y, rtol=5e-6, atol=1e-9)


def test_results_of_jax_are_arrays_of_jax(on_device, rng):
    jax = pytest.importorskip("jax")
    x = rng.random(on_device.image_shape, np.float32)
    y = on_device @ x
    given = jax.device_put(x)
    if "cpu" in str(given.device).lower():
        pytest.skip("JAX finds no CUDA device")
    for _ in range(3):  # each array gets the memory of the array before it
        result = on_device @ (given + 0)
        assert isinstance(result, jax.Array) and result.device == given.device
        np.testing.assert_allclose(np.asarray(result + 0), y, rtol=5e-6, atol=1e-9)
    out = torch.empty(on_device.data_shape, device="cuda")
    on_device.forward(given, out=out)
    np.testing.assert_allclose(out.cpu().numpy(), y, rtol=5e-6, atol=1e-9)


class Bare:
    """What has __cuda_array_interface__ alone."""

    def __init__(self, tensor):
        self.tensor, self.__cuda_array_interface__ = tensor, tensor.__cuda_array_interface__


def test_the_cuda_array_interface_is_taken(on_device):
    x = torch.ones(on_device.image_shape, device="cuda")
    y, again = on_device @ x, torch.empty(on_device.data_shape, device="cuda")
    on_device.forward(Bare(x), out=Bare(again))
    torch.cuda.synchronize()
    torch.testing.assert_close(again, y, rtol=5e-6, atol=1e-9)


def test_operators_of_the_processor_refuse_them(native):
    with pytest.raises(ValueError, match=r"x is on a GPU, .* write x.cpu\(\)"):
        native @ torch.ones(native.image_shape, device="cuda")
