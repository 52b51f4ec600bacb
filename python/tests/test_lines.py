# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Operators of lines given by their ends: what users of other line projectors rely on."""

import numpy as np
import pytest

import loraster as lr

GRID, VOXEL_MM = (8, 6, 5), (2.0, 3.0, 4.0)
SHAPE = GRID[::-1]
BACKENDS = ["cpu", "native"]


def lines(start, end, **options):
    options.setdefault("backend", "cpu")
    return lr.Operator.of_lines(np.atleast_2d(start), np.atleast_2d(end), GRID, VOXEL_MM, **options)


def centre(axis, index):
    return (index - (GRID[axis] - 1) / 2) * VOXEL_MM[axis]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_line_along_an_axis_sees_its_row_alone(axis, backend, rng):
    """The integral of the row of voxels, which is the sum of their values times the edge; in both directions."""
    x = rng.random(SHAPE, np.float32)
    place = [centre(a, (3, 2, 1)[a]) for a in range(3)]
    start, end = np.array(place), np.array(place)
    start[axis], end[axis] = -100, 100
    op = lines([start, end], [end, start], backend=backend)
    index = [1, 2, 3]  # z, y, x
    index[2 - axis] = slice(None)
    expected = x[tuple(index)].sum() * VOXEL_MM[axis]
    np.testing.assert_allclose(op @ x, [expected, expected], rtol=2e-6)


def test_a_line_between_rows_shares_them_evenly(rng):
    x = rng.random(SHAPE, np.float32)
    y = centre(1, 2) + VOXEL_MM[1] / 2
    op = lines([-100, y, centre(2, 1)], [100, y, centre(2, 1)])
    np.testing.assert_allclose(op @ x, [VOXEL_MM[0] * x[1, 2:4].sum() / 2], rtol=2e-6)


def test_lines_that_miss_the_image_are_zero():
    ones = np.ones(SHAPE, np.float32)
    op = lines([[-100.0, 50, 0], [50, -100, 0], [20, 20, 100]], [[100.0, 50, 0], [50, 100, 0], [40, 20, 100]])
    assert (op @ ones == 0).all()
    assert (op.T @ np.ones(3, np.float32) == 0).all()
    # Lines that end before the image do, too.
    assert (lines([20.0, 0, 0], [90.0, 0, 0]) @ ones == 0).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kernel", ["line", "tube"])
def test_the_adjoint_is_the_transpose(backend, kernel, rng):
    directions = rng.normal(size=(300, 3))
    middles = rng.uniform(-8, 8, (300, 3))
    half = 60 * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    for options in ({}, dict(tof_mm=rng.uniform(-5, 5, 300), tof_resolution_ps=80)):
        op = lines(middles - half, middles + half, backend=backend, kernel=kernel, **options)
        x, y = rng.random(op.image_shape, np.float32), rng.random(op.data_shape, np.float32)
        assert np.vdot((op @ x).astype(float), y) == pytest.approx(np.vdot(x.astype(float), op.T @ y), rel=5e-6)
        np.testing.assert_allclose(op.sensitivity(), op.T @ np.ones(300, np.float32), rtol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_bins_of_time_of_flight_add_up_to_the_line(backend, rng):
    """Each bin is a density per mm: times the bins' width, they add up to the value without time of flight."""
    x = rng.random(SHAPE, np.float32)
    start, end = np.array([-50.0, 3, 1]), np.array([50.0, -4, 2])
    bins = np.arange(-60, 61, 4.0)
    num = len(bins)
    tof = lines(np.tile(start, (num, 1)), np.tile(end, (num, 1)), backend=backend, tof_mm=bins,
                tof_resolution_ps=100, tof_bin_mm=4.0)  # fmt: skip
    plain = lines(start, end, backend=backend)
    assert 4.0 * (tof @ x).sum() == pytest.approx((plain @ x)[0], rel=1e-4)


def test_time_of_flight_points_towards_the_end():
    point = np.zeros(SHAPE, np.float32)
    point[2, 3, 7] = 1  # at +x
    ends = np.array([[-50.0, 1.5, 0], [50.0, 1.5, 0]])
    towards, away = lines(ends, ends[::-1].copy(), tof_mm=np.full(2, 7.0), tof_resolution_ps=50) @ point
    assert towards > 0 and away == 0


def test_subsets_are_ranges_of_lines(rng):
    directions = rng.normal(size=(60, 3))
    op = lines(-40 * directions, 40 * directions, ranges=3)
    x = rng.random(op.image_shape, np.float32)
    parts = [op.subset(k, 3) for k in range(3)]
    assert sorted(np.concatenate([part.indices for part in parts])) == list(range(60))
    for part in parts:
        np.testing.assert_allclose(part @ x, (op @ x)[part.indices], rtol=1e-6)


def test_factors_and_doubles(rng):
    directions = rng.normal(size=(60, 3))
    factors = rng.random(60, np.float32)
    plain = lines(-40 * directions, 40 * directions)
    scaled = lines(-40 * directions, 40 * directions, factors=factors)
    x = rng.random(SHAPE)
    assert (plain @ x).dtype == np.float64
    np.testing.assert_allclose(scaled @ x, factors * (plain @ x), rtol=1e-6)
    single = lines((-40 * directions).astype(np.float32), (40 * directions).astype(np.float32))
    np.testing.assert_allclose(single @ x, plain @ x, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "start, end, options, error, sentence",
    [
        ([[0.0, 0, 0]], [[0.0, 0, 0]], {}, ValueError, "two places"),
        ([[0.0, 0, 0]], [[np.nan, 0, 0]], {}, ValueError, "finite"),
        ([[0.0, 0]], [[1.0, 0]], {}, ValueError, r"start has the shape \(1, 2\), and \(n, 3\) is wanted"),
        ([[0.0, 0, 0]], [[1.0, 0, 0]] * 2, {}, ValueError, r"end has the shape \(2, 3\)"),
        ([[0, 0, 0]], [[1, 0, 0]], {}, TypeError, "start has numbers of type int64"),
        ([[0.0, 0, 0]], [[1.0, 0, 0]], dict(tof_mm=np.zeros(1)), ValueError, "resolution"),
        ([[0.0, 0, 0]], [[1.0, 0, 0]], dict(kernel="exact"), ValueError, "exact"),
    ],
)
def test_lines_that_make_no_sense_are_refused(start, end, options, error, sentence):
    with pytest.raises(error, match=sentence):
        lines(start, end, **options)
