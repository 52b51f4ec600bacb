# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""A small scanner, its operators by each backend, and data of it."""

import os

import numpy as np
import pytest

import loraster as lr

GRID, VOXEL_MM = (10, 8, 5), (4.0, 4.0, 3.0)
# The address sanitizer (CONTRIBUTING.md) makes the library and the interpreter slower by this factor.
SLOWER = 20 if "libasan" in os.environ.get("LD_PRELOAD", "") else 1
BACKENDS = ["cpu", "native", "raster", "compute"]


def make_scanner(**more):
    rules = dict(field_of_view_mm=60)
    rules.update(more)
    return lr.Scanner.ring(
        radius_mm=50, modules=12, crystals=(6, 4), pitch_mm=4, depth_mm=15, rings=2, ring_pitch_mm=18, **rules
    )


def make_operator(scanner, backend, **options):
    """An operator; the test is skipped where the backend finds no device."""
    if backend == "raster":  # which software draws slowly, a picture for each sample point
        options = dict(mode="sampled", samples=1) | options
    try:
        return lr.Operator(scanner, GRID, VOXEL_MM, backend=backend, **options)
    except lr.NoDeviceError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def scanner():
    return make_scanner()


@pytest.fixture(scope="session", params=BACKENDS)
def each(request, scanner):
    return make_operator(scanner, request.param)


@pytest.fixture(scope="session")
def native(scanner):
    return make_operator(scanner, "native", store=False)


@pytest.fixture(scope="session")
def activity():
    return lr.phantom("spheres", GRID, VOXEL_MM)


@pytest.fixture
def rng():
    return np.random.default_rng(20260)
