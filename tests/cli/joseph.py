# SPDX-License-Identifier: Apache-2.0
"""Integrals of an image along lines, independent of the program: by Joseph's method (P. M. Joseph, An improved
algorithm for reprojecting rays through pixel images, IEEE Trans. Med. Imaging 1 (1982) 192) and exactly, the image
being constant in each voxel. NumPy; all lengths in mm."""
import numpy as np


def joseph(image, lines):
    """Bilinear interpolation on the planes of voxel centres that the line crosses most steeply; 0 outside. image:
    Image; lines: two arrays [n][3] of ends, outside of the image."""
    starts, ends = (image.places(line) for line in lines)
    along = ends - starts
    lengths = np.linalg.norm(lines[1] - lines[0], axis=1)
    padded = np.pad(image.values, 2)
    sums = np.zeros(len(starts))
    steepest = np.argmax(np.abs(along), axis=1)
    for axis in range(3):
        of = np.nonzero(steepest == axis)[0]
        others = [k for k in range(3) if k != axis]
        for plane in range(image.values.shape[axis]):
            share = (plane - starts[of, axis]) / along[of, axis]
            at = starts[of][:, others] + share[:, None] * along[of][:, others]
            at = np.clip(at, -2, np.array(padded.shape)[others] - 4)
            low = np.floor(at).astype(int)
            part = at - low
            low += 2
            layer = np.take(padded, plane + 2, axis=axis)
            for n in range(2):
                for m in range(2):
                    weight = ((part[:, 0] if n else 1 - part[:, 0]) * (part[:, 1] if m else 1 - part[:, 1]))
                    found = weight * layer[low[:, 0] + n, low[:, 1] + m]
                    sums[of] += np.where((share >= 0) & (share <= 1), found, 0)
    return sums * lengths / np.abs(along[np.arange(len(along)), steepest])


def exact(image, lines):
    """The sum of chords through voxels times their values: the line is cut at all faces."""
    sums = np.zeros(len(lines[0]))
    starts, ends = (image.places(line) + 0.5 for line in lines)
    for k, (start, end) in enumerate(zip(starts, ends)):
        along = end - start
        cuts = [np.array([0.0, 1.0])]
        for axis in range(3):
            if along[axis] != 0:
                cuts.append((np.arange(image.values.shape[axis] + 1) - start[axis]) / along[axis])
        cuts = np.unique(np.clip(np.concatenate(cuts), 0, 1))
        voxels = np.floor(start + 0.5 * (cuts[1:] + cuts[:-1])[:, None] * along).astype(int)
        inside = np.all((voxels >= 0) & (voxels < image.values.shape), axis=1)
        chords = np.diff(cuts) * np.linalg.norm(lines[1][k] - lines[0][k])
        sums[k] = np.sum(chords[inside] * image.values[tuple(voxels[inside].T)])
    return sums


class Image:
    """values[x][y][z], centred on the origin."""

    def __init__(self, values, voxel_mm):
        self.values = np.asarray(values, float)
        self.voxel_mm = np.asarray(voxel_mm, float)
        self.origin_mm = -0.5 * (np.array(self.values.shape) - 1) * self.voxel_mm

    def places(self, points_mm):
        """In voxels; the centre of the first is 0."""
        return (points_mm - self.origin_mm) / self.voxel_mm

    def flat(self):
        """x fastest, as files have it."""
        return self.values.ravel(order="F").tolist()


class Lors:
    """LOR data of an HDF5 file, with the ends of their lines: crystal faces' centres, hits being read on the front
    face."""

    def __init__(self, file):
        self.offsets, self.pairs = file["lor/offsets"][:], file["lor/pairs"][:]
        self.values = file["lor/values"][:].astype(float)
        self.scanner = {key: file["scanner/" + key][:] for key in ("centre_mm", "u", "v", "normal", "pitch_mm",
                                                                   "crystals")}

    def hits(self, modules, p, q):
        scanner = self.scanner
        found = scanner["centre_mm"][modules]
        for axis, index, direction in ((0, p, "u"), (1, q, "v")):
            place = index - (scanner["crystals"][modules, axis] - 1) / 2
            found = found + (place * scanner["pitch_mm"][modules, axis])[:, None] * scanner[direction][modules]
        return found

    def names(self, numbers):
        """(module i, p, q, module j, r, s) of LORs: docs/method/common.md, "LORs and coincidence"."""
        pair = np.searchsorted(self.offsets, numbers, side="right") - 1
        i, j = self.pairs[pair].T
        a, b = np.divmod(numbers - self.offsets[pair], self.scanner["crystals"].prod(axis=1)[j])
        q, p = np.divmod(a, self.scanner["crystals"][i, 0])
        s, r = np.divmod(b, self.scanner["crystals"][j, 0])
        return i, p, q, j, r, s

    def lines(self, numbers):
        i, p, q, j, r, s = self.names(numbers)
        return self.hits(i, p, q), self.hits(j, r, s)
