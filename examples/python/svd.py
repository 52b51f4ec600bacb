# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""The matrix of a small scanner as a sparse array; singular values show which images cannot be distinguished."""

import matplotlib.pyplot as plt
import numpy as np

import loraster as lr

scanner = lr.Scanner.ring(radius_mm=40, modules=12, crystals=(8, 1), pitch_mm=2.4, depth_mm=10, field_of_view_mm=36)
grid, voxel_mm = (24, 24, 1), (1.4, 1.4, 2.4)
A = lr.Operator(scanner, grid, voxel_mm, backend="native")
matrix = A.to_csr()
print(f"{matrix.shape[0]} LORs, {matrix.shape[1]} voxels, {matrix.nnz} elements")
_, values, images = np.linalg.svd(matrix.toarray(), full_matrices=False)

figure, axes = plt.subplot_mosaic("vvabcd;vvefgh", figsize=(11, 3.6), layout="constrained")
axes["v"].semilogy(np.arange(1, len(values) + 1), values / values[0])
axes["v"].set(title="Singular values", xlabel="number", ylabel="value / largest value")
axes["v"].grid(alpha=0.3)
edge = grid[0] * voxel_mm[0] / 2
for place, number in zip("abcdefgh", (1, 2, 4, 10, 50, 150, 350, 576)):
    image = images[number - 1].reshape(grid[1], grid[0])
    largest = abs(image).max()
    axes[place].imshow(
        image, extent=(-edge, edge, -edge, edge), origin="lower", cmap="RdBu", vmin=-largest, vmax=largest
    )
    axes[place].invert_xaxis()  # +x at the left, as in medical viewers
    axes[place].set_title(f"image {number}", fontsize="small")
    axes[place].set(xlabel="x (mm)" if place in "efgh" else "", ylabel="y (mm)" if place in "ae" else "")
figure.savefig("svd.png", dpi=80)
