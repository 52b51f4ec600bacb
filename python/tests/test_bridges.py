# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Bridges: the same numbers under the names of other packages."""

import re
from pathlib import Path

import numpy as np
import pytest

# Mesa and Triton (loaded by deepinv) have an LLVM each. A process can load both only in this order.
try:
    import deepinv
except ImportError:
    deepinv = None

import loraster as lr
from loraster.bridges import parallelproj as pp

SHAPE, VOXEL, ORIGIN = (6, 9, 7), np.array([2.0, 3.0, 2.5], np.float32), np.array([-4.0, -10.0, -8.0], np.float32)


def joseph(start, end, img):
    """Joseph's method, written from the paper (IEEE Trans. Med. Imaging 1 (1982) 192): planes through voxel centres
    across the axis along which the line is longest, and bilinear interpolation in each."""
    first, last = ((np.asarray(p, np.float64) - ORIGIN) / VOXEL for p in (start, end))
    way = last - first
    axis = int(np.argmax(np.abs(way * VOXEL)))
    total = 0.0
    for plane in range(img.shape[axis]):
        t = (plane - first[axis]) / way[axis]
        if not 0 <= t <= 1:
            continue
        point = first + t * way
        low = np.floor(point).astype(int)
        low[axis] = plane
        others = [k for k in range(3) if k != axis]
        for step in np.ndindex(2, 2):
            index, weight = low.copy(), 1.0
            for k, up in zip(others, step):
                index[k] += up
                weight *= point[k] - low[k] if up else 1 - (point[k] - low[k])
            if all(0 <= i < n for i, n in zip(index, img.shape)):
                total += weight * img[tuple(index)]
    return total * (np.linalg.norm(way * VOXEL) / abs(way[axis]))


def random_lines(rng, *shape):
    """Lines from one side of a ball around the image to the other, through its inside."""
    through = (ORIGIN + VOXEL * (np.array(SHAPE) - 1) / 2) + rng.uniform(-6, 6, (*shape, 3))
    way = rng.normal(size=(*shape, 3))
    way *= 40 / np.linalg.norm(way, axis=-1, keepdims=True)
    return (through - way).astype(np.float32), (through + way).astype(np.float32)


def test_lines_along_the_axes_add_voxels(rng):
    img = rng.random(SHAPE, np.float32)
    for axis in range(3):
        at = np.array([2, 4, 3])
        start, end = (ORIGIN + VOXEL * at for _ in range(2))
        start[axis], end[axis] = -100, 100
        index = tuple(slice(None) if k == axis else at[k] for k in range(3))
        lines = [np.array([a, b], np.float32) for a, b in ((start, end), (end, start))]
        values = pp.joseph3d_fwd(*lines, img, ORIGIN, VOXEL)
        np.testing.assert_allclose(values, [img[index].sum() * VOXEL[axis]] * 2, rtol=1e-5)


def test_lines_that_miss_are_zero(rng):
    img = rng.random(SHAPE, np.float32)
    start = np.array([[-100, 50, 0], [-100, 0, 90]], np.float32)
    np.testing.assert_array_equal(pp.joseph3d_fwd(start, start + np.float32([200, 0, 0]), img, ORIGIN, VOXEL), 0)


@pytest.mark.parametrize("backend", ["cpu", "native"])
def test_joseph(rng, backend):
    img = rng.random(SHAPE, np.float32)
    start, end = random_lines(rng, 5, 8)
    values = pp.joseph3d_fwd(start, end, img, ORIGIN, VOXEL, backend=backend)
    assert values.shape == (5, 8)
    expected = [joseph(a, b, img) for a, b in zip(start.reshape(-1, 3), end.reshape(-1, 3))]
    np.testing.assert_allclose(values.ravel(), expected, rtol=2e-4, atol=1e-3)

    back = rng.random((5, 8)).astype(np.float32)
    image = pp.joseph3d_back(start, end, SHAPE, ORIGIN, VOXEL, back, backend=backend)
    assert image.shape == SHAPE
    assert np.vdot(values.astype(np.float64), back) == pytest.approx(np.vdot(img.astype(np.float64), image), rel=1e-5)


def test_time_of_flight(rng):
    img = rng.random(SHAPE, np.float32)
    start, end = random_lines(rng, 20)
    width, sigma, bins = 4.0, 5.0, 31
    plain = pp.joseph3d_fwd(start, end, img, ORIGIN, VOXEL)
    sino = pp.joseph3d_fwd_tof_sino(start, end, img, ORIGIN, VOXEL, width, sigma, 0.0, 3, bins)
    assert sino.shape == (20, bins)
    # The Gaussian is cut off, which loses less than one part in 300.
    np.testing.assert_allclose(sino.sum(axis=-1), plain, rtol=4e-3)
    # Lines with exchanged ends have their bins in reverse order.
    np.testing.assert_allclose(pp.joseph3d_fwd_tof_sino(end, start, img, ORIGIN, VOXEL, width, sigma, 0.0, 3, bins),
                               sino[:, ::-1], rtol=1e-4, atol=1e-4)
    # Events have one bin of each line. A shift of the offset by one bin selects the next bin.
    which = rng.integers(-6, 7, 20)
    picked = sino[np.arange(20), which + bins // 2]
    events = pp.joseph3d_fwd_tof_lm(start, end, img, ORIGIN, VOXEL, width, sigma, 0.0, 3, which)
    np.testing.assert_allclose(events, picked, rtol=1e-5, atol=1e-6)
    moved = pp.joseph3d_fwd_tof_lm(start, end, img, ORIGIN, VOXEL, width, sigma, np.full(20, width), 3, which - 1)
    np.testing.assert_allclose(moved, picked, rtol=1e-5, atol=1e-6)

    for values, make in (
        (events, lambda y: pp.joseph3d_back_tof_lm(start, end, SHAPE, ORIGIN, VOXEL, y, width, sigma, 0.0, 3, which)),
        (sino, lambda y: pp.joseph3d_back_tof_sino(start, end, SHAPE, ORIGIN, VOXEL, y, width, sigma, 0.0, 3, bins)),
    ):
        y = rng.random(values.shape).astype(np.float32)
        assert np.vdot(values.astype(np.float64), y) == pytest.approx(
            np.vdot(img.astype(np.float64), make(y)), rel=1e-5
        )
    # Each line has its own resolution and offset.
    sigmas, offsets = np.where(np.arange(20) < 10, 4.0, sigma), np.arange(20) * 0.5
    first = pp.joseph3d_fwd_tof_sino(start, end, img, ORIGIN, VOXEL, width, 4.0, offsets, 3, bins)
    second = pp.joseph3d_fwd_tof_sino(start, end, img, ORIGIN, VOXEL, width, sigma, offsets, 3, bins)
    each = pp.joseph3d_fwd_tof_sino(start, end, img, ORIGIN, VOXEL, width, sigmas, offsets, 3, bins)
    np.testing.assert_allclose(each, np.concatenate([first[:10], second[10:]]), rtol=1e-4, atol=1e-5)
    events = pp.joseph3d_fwd_tof_lm(start, end, img, ORIGIN, VOXEL, width, sigmas, offsets, 3, which)
    np.testing.assert_allclose(events, each[np.arange(20), which + bins // 2], rtol=1e-5, atol=1e-6)


def test_a_point_on_a_line_has_a_gaussian_of_bins():
    """The bins of a line through a point hold the integral of the Gaussian between their edges."""
    from math import erf, sqrt

    img = np.zeros(SHAPE, np.float32)
    img[2, 4, 3] = 1
    at = ORIGIN + VOXEL * np.array([2, 4, 3])
    start, end = (at + np.array([[sign * 30, 0, 0]], np.float32) for sign in (-1, 1))
    start[:, 0] -= 7  # the point lies 3.5 mm from the middle, towards the end
    width, sigma = 5.0, 6.0
    bins = pp.joseph3d_fwd_tof_sino(start, end, img, ORIGIN, VOXEL, width, sigma, 0.0, 3, 9)[0]
    cumulative = np.array([0.5 * erf(edge / sigma / sqrt(2)) for edge in ((np.arange(10) - 4.5) * width - 3.5)])
    np.testing.assert_allclose(bins, VOXEL[0] * np.diff(cumulative), atol=3e-3 * VOXEL[0])


def test_torch_tensors(rng):
    torch = pytest.importorskip("torch")
    img = rng.random(SHAPE, np.float32)
    start, end = random_lines(rng, 10)
    values = pp.joseph3d_fwd(torch.from_numpy(start), torch.from_numpy(end), torch.from_numpy(img), ORIGIN, VOXEL)
    assert isinstance(values, torch.Tensor)
    np.testing.assert_array_equal(values.numpy(), pp.joseph3d_fwd(start, end, img, ORIGIN, VOXEL))
    which, sigmas = rng.integers(-3, 4, 10), np.linspace(4, 5, 10)
    for project, bins in ((pp.joseph3d_fwd_tof_lm, which), (pp.joseph3d_fwd_tof_sino, 7)):
        arrays = (start, end, img, sigmas, 0.5 * which)
        on_host = [ORIGIN, VOXEL, 4.0]
        expected = project(*arrays[:3], *on_host, *arrays[3:], 3, bins)
        given = [torch.from_numpy(array) for array in arrays]
        values = project(*given[:3], *on_host, *given[3:], 3, torch.from_numpy(bins) if bins is which else bins)
        assert isinstance(values, torch.Tensor)
        np.testing.assert_allclose(values.numpy(), expected, rtol=1e-4, atol=1e-5)


# --- the guide ---


def test_the_guide_runs(rng):
    torch = pytest.importorskip("torch")
    if deepinv is None:
        pytest.skip("deepinv is not installed")
    text = (Path(__file__).resolve().parents[2] / "docs/guide/from-parallelproj.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) == 4
    xstart, xend = random_lines(rng, 200)
    img = rng.random(SHAPE, np.float32)
    names = dict(xstart=xstart, xend=xend, img=img, img_origin=ORIGIN, voxsize=VOXEL, tofbin_width=4.0, sigma_tof=5.0)
    names.update(tofcenter_offset=0.0, nsigmas=3, tofbin=np.zeros(200, int))
    exec(blocks[0], names)
    names.update(x=np.ones(SHAPE, np.float32), y=pp.joseph3d_fwd(xstart, xend, img, ORIGIN, VOXEL), iterations=3)
    exec(blocks[1], names)
    assert np.linalg.norm(names["A"] @ names["x"] - names["y"]) < 0.2 * np.linalg.norm(names["y"])
    names.update(network=torch.nn.Conv3d(1, 1, 3, padding=1), counts=torch.from_numpy(names["y"])[None, None])
    exec(blocks[2], names)
    assert float(names["network"].weight.grad.abs().max()) > 0
    names.update(x=torch.from_numpy(img)[None, None])
    exec(blocks[3], names)
    assert names["x"].shape == (1, 1, *SHAPE)


# --- deepinv ---


def test_deepinv(native, activity, rng):
    torch = pytest.importorskip("torch")
    if deepinv is None:
        pytest.skip("deepinv is not installed")
    from loraster.bridges.deepinv import Physics

    physics = Physics(native, noise_model=deepinv.physics.PoissonNoise(gain=1.0))
    x = torch.from_numpy(np.asarray(activity, np.float32))[None, None] * 1000
    y = physics.A(x)
    np.testing.assert_array_equal(y[0, 0].numpy(), native @ x[0, 0].numpy())
    assert physics(x).shape == (1, 1, native.shape[0])
    u = torch.rand((1, 1, *native.image_shape), generator=torch.Generator().manual_seed(1))
    size = float((physics.A(u) ** 2).sum())
    assert abs(float(physics.adjointness_test(u))) < 1e-4 * max(size, 1e-6) + 1e-5 * float(physics.A(u).abs().sum())

    # Power iterations find the largest singular value that SciPy finds.
    sparse = pytest.importorskip("scipy.sparse.linalg")
    largest = sparse.svds(native.aslinearoperator(), k=1, return_singular_vectors=False)[0]
    norm = float(physics.compute_sqnorm(u, max_iter=100, tol=1e-7, verbose=False))
    assert norm == pytest.approx(largest**2, rel=1e-2)

    # The value of the data fidelity must fall during deepinv's unrolled gradient steps.
    fidelity, step = deepinv.optim.data_fidelity.L2(), 1 / norm
    image, values = physics.A_adjoint(y) / norm, []
    for _ in range(5):
        values.append(float(fidelity(image, y, physics)))
        image = image - step * fidelity.grad(image, y, physics)
    assert all(later < earlier for earlier, later in zip(values, values[1:]))


# --- PETSIRD ---


def test_petsird(tmp_path):
    """Events that are made of PETSIRD's objects are those of the crystals of these numbers."""
    petsird = pytest.importorskip("petsird")
    from loraster.bridges.petsird import scanner_and_events

    path = tmp_path / "scanner.petsird"
    ring = lr.Scanner.ring(radius_mm=60, modules=8, crystals=(4, 3), pitch_mm=4, depth_mm=10)
    lr.write(path, ring)
    with petsird.BinaryPETSIRDReader(str(path)) as reader:
        header = reader.read_header()
        list(reader.read_time_blocks())
    pairs = [[[0, 50], [80, 13]], [[2, 61]]]
    blocks = [
        petsird.TimeBlock.EventTimeBlock(
            petsird.EventTimeBlock(
                time_interval=petsird.TimeInterval(start=10 * k, stop=10 * k + 10),
                prompt_events=[[[petsird.CoincidenceEvent(detection_bins=pair, tof_idx=0) for pair in block]]],
                delayed_events=[[[]]],
            )
        )
        for k, block in enumerate(pairs)
    ]
    scanner, events = scanner_and_events(header, iter(blocks))
    assert scanner.num_crystals == ring.num_crystals
    np.testing.assert_array_equal(np.sort(events.crystals, axis=1), np.sort([[0, 50], [80, 13], [2, 61]], axis=1))
    assert not events.delayed.any() and (np.diff(events.time_ms) >= 0).all() and events.time_ms[2] >= 10
