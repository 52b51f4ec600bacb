#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images, projection data and matrices in the formats of STIR, CASToR, ITK and NumPy, written by the program and
decoded here from docs/formats alone."""
import importlib.util, sys
from pathlib import Path

from program import CPU, ProgramTest, main, read_nifti, ring_of

try:
    import numpy as np
except ImportError:
    print("skipped: no numpy")
    sys.exit(77)

ENDINGS = (".hv", ".hdr", ".mhd", ".mha", ".npy")
# Odd and even sizes, no two alike, and off centre along each axis.
ODD_GRID = "--grid 6,5,4 --voxel-mm 3,2,4 --origin-mm -6.5,-3.25,-4.75"


def header_of(path):
    """The keys of a header of "key := value" or "key = value" lines, lower case."""
    keys = {}
    for line in Path(path).read_bytes().split(b"ElementDataFile", 1)[0].decode().splitlines():
        sign = ":=" if ":=" in line else "="
        if sign in line:
            key, value = line.split(sign, 1)
            keys[key.strip().lstrip("!").lower()] = value.strip()
    return keys


def by_index(keys, key):
    return [float(keys[f"{key} [{i}]"]) for i in (1, 2, 3)]


def coordinates(size, first, step):
    """x, y, z of each voxel of an array [z][y][x], as arrays along the axes."""
    return [first[k] + step[k] * np.arange(size[k]) for k in range(3)]


def read_interfile(path):
    """(values [z][y][x], x, y, z in our frame)."""
    keys = header_of(path)
    size = [int(n) for n in by_index(keys, "matrix size")]
    step = by_index(keys, "scaling factor (mm/pixel)")
    offset = by_index(keys, "first pixel offset (mm)")
    raw = Path(path).parent / keys["name of data file"]
    assert raw.stat().st_size == 4 * np.prod(size)
    values = np.fromfile(raw, "<f4").reshape(size[::-1])
    if path.endswith(".hdr"):  # the middle is at the offset; x runs against ours
        first = [offset[k] - (size[k] - 1) / 2 * step[k] for k in range(3)]
        x, y, z = coordinates(size, first, step)
        return values, -x, y, z
    first = [offset[0], offset[1], offset[2] - (size[2] - 1) / 2 * step[2]]
    x, y, z = coordinates(size, first, step)
    return values, -x, -y, -z


class Images(ProgramTest):
    def reference(self):
        """The sensitivity of the ring as NIfTI: an image without any symmetry."""
        path = "reference.nii"
        self.good(f"sensitivity {self.on_ring} {ODD_GRID} -o {path}")
        size, voxel, first, values = read_nifti(path)
        return path, np.array(values, "f4").reshape(size[::-1]), size, voxel, first

    def test_images_are_read(self):
        """project gives the same data whatever the format of the image, the map and the grid."""
        reference, *_ = self.reference()
        image = f"--image {reference}"
        self.good(f"project {self.on_ring} {image} -o expected.h5")
        expected = Path("expected.h5").read_bytes()
        mu = f"--mu {reference} --mu-unit 1/mm"
        self.good(f"project {self.on_ring} {image} {mu} -o attenuated.h5")
        self.assertNotEqual(expected, Path("attenuated.h5").read_bytes())
        for ending in ENDINGS:
            path = "x" + ending
            self.good(f"sensitivity {self.on_ring} {ODD_GRID} -o {path}")
            grid = ODD_GRID if ending == ".npy" else ""
            sums = [self.json(f"{verb} -o data.h5")[key] for verb, key in (
                (f"project {self.on_ring} {image}", "sum"),
                (f"project {self.on_ring} --image {path} {grid}", "sum"),
                (f"simulate {self.on_ring} --image {path} {grid} --expected", "counts"))]
            self.assertAlmostEqual(sums[1] / sums[0], 1, delta=1e-6, msg=ending)
            self.assertAlmostEqual(sums[2] / sums[0], 1, delta=1e-6, msg=ending)
            sums = [self.json(f"project {self.on_ring} {image} --mu {m} {grid} --mu-unit 1/mm -o data.h5")["sum"] for
                    m in (reference, path)]
            self.assertAlmostEqual(sums[1] / sums[0], 1, delta=1e-6, msg=ending)
            if ending != ".npy":
                like = self.json(f"backproject {self.on_ring} --data data.h5 --like {path} -o", "back" + ending)["grid"]
                self.assertEqual(like["size"], [6, 5, 4])
                for k, first in enumerate((-6.5, -3.25, -4.75)):
                    self.assertAlmostEqual(like["origin_mm"][k], first, places=9)

    def test_other_programs(self):
        """SimpleITK finds each voxel where we say it is."""
        if importlib.util.find_spec("SimpleITK") is None:
            self.skipTest("no SimpleITK")
        import SimpleITK
        _, expected, size, voxel, first = self.reference()
        for ending in (".mhd", ".mha"):
            path = "s" + ending
            self.good(f"sensitivity {self.on_ring} {ODD_GRID} -o {path}")
            image = SimpleITK.ReadImage(path)
            for at in np.ndindex(*size):
                right, front, head = (first[k] + voxel[k] * at[k] for k in range(3))
                index = image.TransformPhysicalPointToIndex((-right, -front, head))
                self.assertEqual(image[index], expected[at[::-1]])


# 32 x 4 crystals around, 2 x 8 rings; begun where no crystal stands at 90 degrees.
FINE_RING = ring_of("fine ring", "radius_mm: 82, modules: 32, first_angle_deg: 11, rings: 2, ring_pitch_mm: 32.2",
                    "crystals: [4, 8], pitch_mm: [4, 4], face_mm: [3.9, 3.9], depth_mm: 10",
                    "coincidence: {min_module_difference: 6}")


class ProjectionData:
    """A .hs file taken apart with numpy: bins[segment] is [axial][view][t]."""

    def __init__(self, path):
        keys = header_of(path)
        assert keys["matrix axis label [4]"] == "segment"
        assert keys["matrix axis label [3]"] == "axial coordinate"
        assert keys["matrix axis label [2]"] == "view"
        assert keys["matrix axis label [1]"] == "tangential coordinate"
        assert keys["applied corrections"] == "{None}" and keys["number format"] == "float"
        lists = [[int(n) for n in keys[key].strip("{}").split(",")] for
                 key in ("matrix size [3]", "minimum ring difference per segment", "maximum ring difference per "
                                                                                   "segment")]
        self.axial, self.differences = lists[0], lists[1]
        assert lists[1] == lists[2] == sorted(lists[1])  # span 1, ascending
        self.views, self.num_t = int(keys["matrix size [2]"]), int(keys["matrix size [1]"])
        self.around = int(keys["number of detectors per ring"])
        self.radius_mm = (5 * float(keys["inner ring diameter (cm)"]) + 10 *
                          float(keys["average depth of interaction (cm)"]))
        self.pitch_mm = 10 * float(keys["distance between rings (cm)"])
        self.offset = np.deg2rad(float(keys["view offset (degrees)"]))
        raw = np.fromfile(Path(path).parent / keys["name of data file"], "<f4")
        assert raw.size == sum(self.axial) * self.views * self.num_t
        ends = np.cumsum([0] + self.axial) * self.views * self.num_t
        self.bins = [raw[ends[k]:ends[k + 1]].reshape(n, self.views, self.num_t) for k, n in enumerate(self.axial)]
        self.t = np.arange(self.num_t) - self.num_t // 2


class Projections(ProgramTest):
    def setUp(self):
        super().setUp()
        self.scanner = self.write("fine.yaml", FINE_RING)
        self.on_ring = f"--scanner {self.scanner} {CPU} --threads 1"

    def check_place(self, data, x, y, z):
        """Counts of a point at x, y, z of STIR's axes lie where its formulas put the lines: in each view the tangential
        positions are about s, in each segment the axial ones about m, where z = m - a tan(theta)."""
        phi = np.arange(data.views) * np.pi / data.views + data.offset
        s = x * np.cos(phi) + y * np.sin(phi)
        along = x * np.sin(phi) - y * np.cos(phi)
        total = sum(b.sum(axis=0) for b in data.bins)  # [view][t]
        self.assertGreater(total.sum(), 0)
        mean_t = (total * data.t).sum(axis=1) / total.sum(axis=1)
        expected_t = np.arcsin(s / data.radius_mm) * data.around / np.pi
        # A wrong sign is many bins off, and numbering shifted by a crystal a whole bin in the mean
        # over views; gaps between modules and flat panels move counts by parts of a bin.
        self.assertLess(np.abs(mean_t - expected_t).max(), 0.75)
        self.assertLess(np.abs((mean_t - expected_t).mean()), 0.25)
        checked = 0
        for k, difference in enumerate(data.differences):
            by_axial = data.bins[k].sum(axis=2)  # [axial][view]
            tan_theta = difference * data.pitch_mm / (2 * np.sqrt(data.radius_mm ** 2 - s ** 2))
            expected = (z + along * tan_theta) / data.pitch_mm + (data.axial[k] - 1) / 2
            inside = (by_axial.sum(axis=0) > 0) & (expected > 0.7) & (expected < data.axial[k] - 1.7)
            if inside.any():
                mean = (np.arange(data.axial[k])[:, None] * by_axial).sum(axis=0)[inside]
                mean = mean / by_axial.sum(axis=0)[inside]
                self.assertLess(np.abs(mean - expected[inside]).max(), 0.75, difference)
                checked += inside.sum()
        self.assertGreater(checked, 100)

    def test_image_and_projection_agree(self):
        """What STIR would see: the voxel of a .hv file and the bins of a .hs file, by its rules."""
        for index, origin in (((1, 2, 4), "-33,17,4"), ((2, 0, 1), "12,-26,-14"), ((3, 1, 5), "4,17,-20")):
            image = np.zeros((4, 3, 6), "<f4")
            image[index] = 1e6
            np.save("x.npy", image)
            self.good(f"simulate {self.on_ring} --image x.npy --grid 6,3,4 --voxel-mm 5,4,3 --origin-mm {origin}",
                      "--samples 1 --expected --truth x.hv -o y.hs")
            keys = header_of("x.hv")
            size = [int(n) for n in by_index(keys, "matrix size")]
            step, first = (by_index(keys, key) for key in ("scaling factor (mm/pixel)", "first pixel offset (mm)"))
            (at,) = np.argwhere(np.fromfile("x.v", "<f4").reshape(size[::-1]))
            x, y = (first[k] + step[k] * at[2 - k] for k in (0, 1))
            z = first[2] + step[2] * (at[0] - (size[2] - 1) / 2)
            self.check_place(ProjectionData("y.hs"), x, y, z)


class StirMatrix(ProgramTest):
    """NAME.hpm and NAME.pm, decoded here from docs/formats/matrix.md alone."""

    def setUp(self):
        super().setUp()
        self.scanner = self.write("fine.yaml", FINE_RING.replace("[4, 8]", "[4, 3]").replace("32.2", "12.2"))
        self.on_ring = f"--scanner {self.scanner} {CPU} --threads 1"

    def read_matrix(self, name):
        """{(segment, view, axial, t): (indices [n][3] of z, y, x, values)} and the header."""
        lines = Path(name).read_text().splitlines()
        self.assertEqual(lines[0], "Projection Matrix By Bin From File Parameters :=")
        self.assertEqual(lines[-1], "End Projection Matrix By Bin From File Parameters :=")
        keys = header_of(name)
        self.assertEqual((keys["version"], keys["symmetries type"]), ("1.0", "none"))
        raw = Path(keys["data_filename"]).read_bytes()
        rows, at = {}, 0
        element = np.dtype([("index", "<i2", 3), ("value", "<f4")])
        while at < len(raw):
            *bin_, count = np.frombuffer(raw, "<i4", 5, at)
            self.assertTrue(0 < count <= 10000)
            elements = np.frombuffer(raw, element, count, at + 20)
            at += 20 + 10 * count
            key = tuple(int(n) for n in bin_)
            self.assertNotIn(key, rows)
            rows[key] = (elements["index"], elements["value"])
        self.assertEqual(at, len(raw))
        return rows, keys

    def project(self, rows, data, values):
        """The bins of `data` anew: rows times the image's values [z][y][x] as STIR indexes them."""
        expected = [np.zeros_like(b, "f8") for b in data.bins]
        middle = [0, values.shape[1] // 2, values.shape[2] // 2]
        for (segment, view, axial, t), (index, elements) in rows.items():
            at = index + np.array(middle)
            self.assertTrue((at >= 0).all() and (at < values.shape).all())
            k = data.differences.index(segment)
            expected[k][axial, view, t + data.num_t // 2] = (elements * values[tuple(at.T)].astype("f8")).sum()
        return expected

    def test_against_project(self):
        """The rows give what `project` gives, bin by bin, for an image without any symmetry."""
        grid = "--grid 6,5,4 --voxel-mm 7,6,5 --origin-mm -15.5,-13.25,-6.75"
        self.good(f"matrix {self.on_ring} {grid} --format stir -o m.hpm")
        found = {p.name for p in self.folder.iterdir()}
        self.assertEqual(found - {"ring.yaml", "fine.yaml"}, {"m.hpm", "m.pm", "m_template.hs", "m_template.s",
                                                              "m_template.hv", "m_template.v"})
        np.save("x.npy", np.random.default_rng(3).random((4, 5, 6)).astype("<f4"))
        self.good(f"simulate {self.on_ring} --image x.npy {grid} --expected --truth x.hv -o y.hs")
        rows, keys = self.read_matrix("m.hpm")
        values, x, y, z = read_interfile("x.hv")
        data = ProjectionData("y.hs")
        expected = self.project(rows, data, values)
        largest = max(b.max() for b in data.bins)
        self.assertGreater(largest, 0)
        for k, bins in enumerate(data.bins):
            self.assertLess(np.abs(bins - expected[k]).max(), 1e-6 * largest, data.differences[k])
        # templates: the same bins and the same voxels as the files of the program itself
        template = header_of(keys["template proj data filename"])
        own = header_of("y.hs")
        del template["name of data file"], own["name of data file"]
        self.assertEqual(template, own)
        ones, *places = read_interfile(keys["template density filename"])
        self.assertTrue((ones == 1).all() and ones.shape == (4, 5, 6))
        for a, b in zip(places, (x, y, z)):
            self.assertTrue(np.allclose(a, b, atol=1e-9))

    def test_parts_and_limits(self):
        grid = "--grid 6,5,4 --voxel-mm 7,6,5 --samples 1"
        one = self.json(f"matrix {self.on_ring} {grid} -o a.hpm")
        self.assertEqual((one["format"], one["rows_are"]), ("stir", "LORs"))
        rows, _ = self.read_matrix("a.hpm")
        self.assertEqual(sum(len(v) for _, v in rows.values()), one["elements"])
        self.assertAlmostEqual(sum(float(v.sum(dtype="f8")) for _, v in rows.values()) / one["sum"], 1, delta=1e-6)
        some = self.json(f"matrix {self.on_ring} {grid} --pairs 0-16 --threshold 0.5 -o b.hpm")
        part, _ = self.read_matrix("b.hpm")
        self.assertEqual(sum(len(v) for _, v in part.values()), some["elements"])
        self.assertTrue(0 < len(part) < len(rows) and set(part) <= set(rows))
        for bin_, (_, values) in part.items():
            self.assertTrue(np.isin(values, rows[bin_][1]).all())
        self.refuse(2, "leave out --by voxel", f"matrix {self.on_ring} {grid} --by voxel -o c.hpm")
        self.refuse(2, "--at", f"matrix {self.on_ring} --at 0,0,0 -o c.hpm")
        self.refuse(2, ".hpm", f"matrix {self.on_ring} {grid} --format stir -o c.pm")
        self.refuse(2, "--resume", f"matrix {self.on_ring} {grid} --resume -o c.hpm")
        self.refuse(3, "full rings", f"matrix --scanner two-opposed-modules {CPU} {grid} -o c.hpm")
        # 12,800 small voxels within the 4 mm that one pair of crystals sees amid the ring
        self.refuse(3, ["voxels", "at most 10000 a bin"], f"matrix {self.on_ring} --pairs 0-16 --grid 40,40,8",
                    "--voxel-mm 0.3,0.03,0.1 --origin-mm -6,1.45,-6.5 --samples 1 -o c.hpm")


main({"images": Images, "projection_data": Projections, "stir_matrix": StirMatrix})
