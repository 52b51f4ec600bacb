# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""A page of Python that mypy --strict reads, beside the module."""

import numpy as np
from numpy.typing import NDArray

import loraster as lr

scanner = lr.Scanner.ring(radius_mm=50, modules=12, crystals=(6, 4), pitch_mm=4, depth_mm=15, field_of_view_mm=60)
A = lr.Operator(scanner, grid=(10, 8, 5), voxel_mm=(4.0, 4.0, 3.0), backend="native")
activity: NDArray[np.float32] = lr.phantom("spheres", (10, 8, 5), (4.0, 4.0, 3.0))
expected: NDArray[np.float32] = A @ activity
counts = lr.poisson(1e4 * expected, seed=1)
back: NDArray[np.float32] = A.T @ counts
parts: list[lr.Operator] = [A.subset(k, 2) for k in range(2)]


def tell(done: lr.recon.Iteration) -> None:
    print(done.number, done.log_likelihood)


image = lr.recon.osem(A, counts, iterations=2, subsets=2, callback=tell)
events = lr.ListMode(scanner, crystals=scanner.lor_crystals([0, 5, 9]))
B = lr.Operator.of_events(events, (10, 8, 5), 4.0, kernel="exact")
lr.write("image.nii.gz", image, voxel_mm=(4.0, 4.0, 3.0))
