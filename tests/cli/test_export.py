#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Matrix files in the programs that read them: numpy, scipy, h5py, anndata, torch, octave; against project, backproject
and recon; stopped and gone on with; verified."""
import json, os, shutil, signal, subprocess, sys, unittest
from pathlib import Path

from program import GRID, NUM_VOXELS, ProgramTest, main, read_nifti

try:
    import h5py
    import numpy as np
    import scipy.io
    import scipy.sparse as sparse
    MISSING = None
except ImportError as error:
    MISSING = f"numpy, scipy and h5py are needed: {error}"

# Two modules with 4 x 4 crystals each at odd places: no symmetry hides a swap of axes.
LOPSIDED = """\
name: lopsided
modules:
  - {center_mm: [40, 3, 1], u: [0, 1, 0], v: [0, 0, 1], crystals: [5, 3], pitch_mm: [4, 5],
     face_mm: [3.8, 4.6], depth_mm: 10}
  - {center_mm: [-45, -2, 2], u: [0, 1, 0], v: [0, 0, 1], crystals: [4, 4], pitch_mm: [4, 4],
     face_mm: [3.8, 3.8], depth_mm: 10}
  - {center_mm: [2, 50, -1], u: [1, 0, 0], v: [0, 0, 1], crystals: [3, 4], pitch_mm: [5, 4],
     face_mm: [4.6, 3.8], depth_mm: 10}
"""


@unittest.skipIf(MISSING, MISSING)
class ExportTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.lopsided = self.write("lopsided.yaml", LOPSIDED)
        self.on = f"--scanner {self.scanner} --backend native --mode exact {GRID}"
        self.on_lopsided = f"--scanner {self.lopsided} --backend native --mode exact {GRID}"

    def export(self, name, *more, on=None):
        self.good("matrix", on or self.on, f"-o {name}", *more)
        return name

    def load(self, path):
        """The /matrix of an HDF5 file as scipy has it."""
        with h5py.File(path) as file:
            group = file["matrix"]
            self.assertEqual(group["indptr"].dtype, group["indices"].dtype)
            return sparse.csr_matrix((group["data"][:], group["indices"][:], group["indptr"][:]),
                                     shape=tuple(group.attrs["shape"]))

    def values(self, path):
        return np.array(read_nifti(path)[3], dtype=np.float64)

    def same(self, a, b, tolerance=0.0):
        gap = abs(a - b)
        largest = gap.max() if gap.nnz else 0.0
        self.assertEqual(a.shape, b.shape)
        self.assertLessEqual(largest, tolerance * abs(b).max())


class Load(ExportTest):
    def test_formats_hold_the_same(self):
        a = self.load(self.export("m.h5"))
        self.assertEqual(a.shape[0], NUM_VOXELS)
        self.assertTrue(a.has_sorted_indices)
        self.assertGreater(a.nnz, 1000)
        self.same(sparse.load_npz(self.export("m.npz")), a)
        self.same(self.load(self.export("c.h5", "--compress 4")), a)
        self.same(sparse.csr_matrix(scipy.io.mmread(self.export("m.mtx")), dtype=np.float32), a)
        self.assertEqual(len(Path(self.export("m.tsv")).read_text().splitlines()), a.nnz + 1)

    def test_numpy_alone(self):
        with np.load(self.export("m.npz")) as file:
            self.assertEqual((file["format"].item(), file["data"].dtype), (b"csr", np.float32))
            self.assertEqual((file["indptr"][-1], len(file["indptr"])), (len(file["indices"]), file["shape"][0] + 1))

    def test_binsparse_links_are_the_same_arrays(self):
        with h5py.File(self.export("m.h5")) as file:
            head = json.loads(file["binsparse"].attrs["binsparse"])["binsparse"]
            for link, name in (("pointers_to_1", "indptr"), ("indices_1", "indices"), ("values", "data")):
                self.assertEqual(file["binsparse"][link], file["matrix"][name])
                self.assertEqual(head["data_types"][link], str(file["matrix"][name].dtype))
            self.assertEqual((head["format"], head["number_of_stored_values"]), ("CSR", len(file["matrix/data"])))
            self.assertEqual(head["shape"], list(file["matrix"].attrs["shape"]))

    def test_attributes(self):
        with h5py.File(self.export("m.h5", "--samples 2,1,1")) as file:
            said = file["matrix"].attrs
            self.assertEqual((said["mode"], said["backend"], said["rows"], said["factors"]),
                             ("exact", "native", "voxels", "none"))
            self.assertEqual((list(said["samples"]), list(said["grid_size"])), ([2, 1, 1], [6, 5, 3]))
            self.assertEqual(file.attrs["program"], "LORaster")
            self.assertIn("right-handed", file.attrs["frame"])
            self.assertEqual(file["lor/offsets"][-1], said["shape"][1])

    def elsewhere(self, module, script, path):
        """What a script prints as JSON, by an interpreter that has the module."""
        for program in (sys.executable, "/usr/bin/python3"):
            if not os.path.exists(program):
                continue
            if subprocess.run([program, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0:
                done = subprocess.run([program, "-c", script, path], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                return json.loads(done.stdout.splitlines()[-1])
        return self.skipTest(f"no interpreter here has {module}")

    def test_anndata(self):
        path = self.export("m.h5")
        a = self.load(path)
        found = self.elsewhere("anndata", """
import json, sys, h5py
try:
    from anndata.io import read_elem
except ImportError:
    from anndata.experimental import read_elem
a = read_elem(h5py.File(sys.argv[1])["matrix"])
print(json.dumps([type(a).__name__, list(a.shape), int(a.nnz), float(a.data.sum(dtype="f8"))]))
""", path)
        self.assertTrue(found[0].startswith("csr_"), found)
        self.assertEqual(found[1:3], [list(a.shape), a.nnz])
        self.assertAlmostEqual(found[3], a.data.sum(dtype="f8"), places=9)

    def test_torch(self):
        path = self.export("m.h5")
        found = self.elsewhere("torch", """
import json, sys, h5py, torch
m = h5py.File(sys.argv[1])["matrix"]
a = torch.sparse_csr_tensor(torch.from_numpy(m["indptr"][:]), torch.from_numpy(m["indices"][:]),
                            torch.from_numpy(m["data"][:]), tuple(int(n) for n in m.attrs["shape"]))
# The rows' sums by COO: products with CSR need MKL, which Debian's torch has not.
counts = a.crow_indices()[1:] - a.crow_indices()[:-1]
rows = torch.repeat_interleave(torch.arange(a.shape[0]), counts)
coo = torch.sparse_coo_tensor(torch.stack([rows, a.col_indices()]), a.values(), a.shape)
print(json.dumps([float(x) for x in torch.mv(coo, torch.ones(a.shape[1]))]))
""", path)
        expected = self.load(path) @ np.ones(self.load(path).shape[1])
        self.assertLess(np.abs(np.array(found) - expected).max(), 1e-5 * expected.max())

    def test_octave(self):
        octave = shutil.which("octave-cli") or shutil.which("octave")
        if octave is None:
            self.skipTest("octave is not installed")
        path = self.export("m.mtx")
        script = (f"f = fopen('{path}'); fgetl(f); fgetl(f); fgetl(f); t = fscanf(f, '%f', [3, Inf]); printf('%.9g', "
                  "sum(t(3, :)));")
        done = subprocess.run([octave, "--eval", script], capture_output=True, text=True, check=True)
        self.assertAlmostEqual(float(done.stdout), self.load(self.export("m.h5")).sum(), places=6)


class Agree(ExportTest):
    def check(self, on):
        image = np.random.default_rng(3).uniform(0.1, 1, NUM_VOXELS)
        x = self.image("x.nii", list(image))
        a = self.load(self.export("m.h5", on=on))
        self.same(self.load(self.export("l.h5", "--by lor", on=on)), sparse.csr_matrix(a.T), 0)
        self.good("project", on.replace(GRID, ""), f"--image {x} -o y.h5")
        with h5py.File("y.h5") as file:
            y = file["lor/values"][:].astype(np.float64)
        expected = a.T.astype(np.float64) @ np.float32(image)
        self.assertLess(np.abs(y - expected).max(), 1e-6 * expected.max())
        self.good(f"backproject {on} --data y.h5 -o b.nii")
        back = a.astype(np.float64) @ np.float32(y)
        self.assertLess(np.abs(self.values("b.nii") - back).max(), 1e-6 * back.max())

    def test_ring(self):
        self.check(self.on)

    def test_lopsided(self):
        self.check(self.on_lopsided)


class Choose(ExportTest):
    def setUp(self):
        super().setUp()
        self.whole = self.load(self.export("whole.h5"))

    def test_rows(self):
        self.same(self.load(self.export("r.h5", "--rows 7:31")), self.whole[7:31])
        self.refuse(2, "--rows", f"matrix {self.on} --rows 7:1000 -o x.h5")
        self.refuse(2, "--rows", f"matrix {self.on} --rows 9:9 -o x.h5")
        self.refuse(2, "exclude", f"matrix {self.on} --rows 1:2 --region sphere:0,0,0,1 -o x.h5")

    def test_regions(self):
        centres = np.array([[-7.5 + 3 * x, -6 + 3 * y, -4 + 4 * z] for z in range(3) for y in range(5) for
                            x in range(6)])
        for text, inside in (("sphere:1,0.5,0,5", ((centres - [1, 0.5, 0]) ** 2).sum(1) <= 25),
                             ("box:-5,-4,-1,2,7,5", ((centres >= [-5, -4, -1]) & (centres <= [2, 7, 5])).all(1))):
            path = self.export("r.h5", f"--region {text}")
            self.same(self.load(path), self.whole[np.flatnonzero(inside)])
            with h5py.File(path) as file:
                self.assertEqual(list(file["matrix/voxels"]), list(np.flatnonzero(inside)))
        mask = [1.0 if k % 7 == 2 else 0.0 for k in range(NUM_VOXELS)]
        image = self.image("mask.nii.gz", mask)
        path = "r.h5"
        self.good("matrix", self.on.replace(GRID, ""), f"--region {image} -o {path}")  # its grid, too
        self.same(self.load(path), self.whole[np.flatnonzero(mask)])
        self.refuse(2, "holds no voxel", f"matrix {self.on} --region sphere:900,0,0,1 -o x.h5")

    def pairs_of(self, path):
        with h5py.File(path) as file:
            return [tuple(p) for p in file["lor/pairs"]], file["lor/offsets"][:]

    def test_pairs(self):
        pairs, offsets = self.pairs_of("whole.h5")
        chosen = [1, 3, len(pairs) - 1]
        text = ",".join(f"{pairs[k][1]}-{pairs[k][0]}" for k in reversed(chosen))  # any order
        keep = np.zeros(self.whole.shape[1], bool)
        for k in chosen:
            keep[offsets[k]:offsets[k + 1]] = True
        expected = sparse.csr_matrix(self.whole @ sparse.diags(keep.astype(np.float32)))
        expected.eliminate_zeros()
        listed = self.write("pairs.txt", "# pairs\n" + "\n".join(f"{pairs[k][0]} {pairs[k][1]}" for k in chosen))
        for given in (text, listed):
            path = self.export("p.h5", f"--pairs {given}")
            self.same(self.load(path), expected)
            with h5py.File(path) as file:
                self.assertEqual(list(file["matrix/pairs"]), chosen)
        by_lor = self.load(self.export("l.h5", f"--by lor --pairs {text}"))
        self.same(by_lor, sparse.csr_matrix(self.whole.T)[np.flatnonzero(keep)])
        self.refuse(2, "not in coincidence", f"matrix {self.on} --pairs 0-1 -o x.h5")
        self.refuse(2, "does not exist", f"matrix {self.on} --pairs 0-99 -o x.h5")

    def test_lors(self):
        turned = sparse.csr_matrix(self.whole.T)
        path = self.export("l.h5", "--lors 7,100:140,3 --max-memory 64K")
        self.same(self.load(path), turned[[3, 7, *range(100, 140)]])
        self.refuse(2, "--lors", f"matrix {self.on} --lors 5:3 -o x.h5")

    def test_threshold(self):
        found = self.json(f"matrix {self.on} --threshold 0.2 -o t.h5")
        kept = self.load("t.h5")
        expected = self.whole.copy()
        for row in range(expected.shape[0]):
            part = expected.data[expected.indptr[row]:expected.indptr[row + 1]]
            part[part < np.float32(0.2) * part.max(initial=0)] = 0
        expected.eliminate_zeros()
        self.assertLessEqual(abs(kept - expected).count_nonzero(), 2)  # at the threshold itself
        self.assertEqual(found["dropped_elements"], self.whole.nnz - kept.nnz)
        self.assertAlmostEqual(found["dropped_sum"] + found["sum"], self.whole.sum(dtype="f8"), 6)
        with h5py.File("t.h5") as file:
            self.assertEqual(file["matrix"].attrs["threshold"], 0.2)
            self.assertAlmostEqual(file["matrix"].attrs["dropped_sum"], found["dropped_sum"], 12)

    def test_factors(self):
        values = np.random.default_rng(2).uniform(0.5, 1.5, 8 * 16).astype(np.float32)
        np.save("e.npy", values)
        path = self.export("e.h5", "--efficiencies e.npy")
        pairs, offsets = self.pairs_of(path)
        factor = np.zeros(self.whole.shape[1])
        for k, (i, j) in enumerate(pairs):
            factor[offsets[k]:offsets[k + 1]] = np.outer(values[16 * i:16 * i + 16], values[16 * j:16 * j + 16]).ravel()
        self.same(self.load(path), sparse.csr_matrix(self.whole @ sparse.diags(factor)), 1e-6)
        self.good(f"matrix verify {path} --efficiencies e.npy")
        self.assertIn("--efficiencies", self.good(f"matrix verify {path}").stderr)

    def test_npz_has_a_limit(self):
        self.refuse(2, "4 GiB", "matrix", self.on.replace(GRID, "--grid 1100,1000,1000 --voxel-mm 0.01"), "-o x.npz")

    def test_text_of_lors(self):
        """A line of text is the same element whichever side the rows are."""
        lines = [sorted(Path(self.export("m.tsv", *more)).read_text().splitlines()) for more in ([], ["--by lor"])]
        elements = [{tuple(line.split("\t")[:10]): float(line.split("\t")[10]) for line in text
                     if not line.startswith("row")} for text in lines]
        self.assertEqual((set(elements[0]), len(elements[0])), (set(elements[1]), self.whole.nnz))
        for key, value in elements[0].items():
            self.assertLess(abs(elements[1][key] / value - 1), 1e-7)

    def test_tube(self):
        self.good(f"matrix {self.on} --lor 0,1,2,4,3,0 -o t.nii.gz")
        pairs, offsets = self.pairs_of("whole.h5")
        tube = self.whole[:, [(offsets[pairs.index((0, 4))] + (2 * 4 + 1) * 16 + 3)]].toarray()[:, 0]
        self.assertGreater(tube.max(), 0)
        self.assertTrue((self.values("t.nii.gz") == tube).all())
        self.refuse(2, "crystal 9, 0", f"matrix {self.on} --lor 0,9,0,4,0,0 -o x.nii")
        self.refuse(2, "must end in .nii", f"matrix {self.on} --lor 0,1,0,4,0,0 -o x.h5")


class Resume(ExportTest):
    """A run that is stopped or killed leaves what another goes on with; the end is the same."""
    LARGE = ("--scanner ge-explore-vista-dr --grid 30,30,6 --voxel-mm 1.3,1.3,0.65 --backend native --mode exact "
             "--threads 1 --samples 1")

    def start_and_stop(self, number, name, *more):
        return self.stop_writing(number, name, f"matrix {self.LARGE}", *more)

    def test_stop_and_kill(self):
        self.good(f"matrix {self.LARGE} -o whole.h5")
        said = self.start_and_stop(signal.SIGINT, "m.h5")
        self.assertIn("--resume", said)
        self.assertIn("stopped after", said)
        self.start_and_stop(signal.SIGKILL, "m.h5", "--resume")
        self.ends(2, "threshold 0.5", f"matrix {self.LARGE} -o m.h5 --resume --threshold 0.5")
        self.good(f"matrix {self.LARGE} -o m.h5 --resume")
        self.assertEqual(sorted(p.name for p in self.folder.glob("m.h5*")), ["m.h5"])
        self.assertEqual(Path("m.h5").read_bytes(), Path("whole.h5").read_bytes())

    def test_rows_of_lors(self):
        more = "--by lor --pairs 0-9,1-10,18-27,19-28,2-11,20-29 --grid 40,40,40"
        self.LARGE = self.LARGE.replace("--grid 30,30,6", "")
        self.good(f"matrix {self.LARGE} {more} -o whole.npz")
        self.start_and_stop(signal.SIGINT, "m.npz", more)
        self.good(f"matrix {self.LARGE} {more} -o m.npz --resume")
        self.assertEqual(Path("m.npz").read_bytes(), Path("whole.npz").read_bytes())

    def test_nothing_to_resume(self):
        self.refuse(2, "nothing to go on with", f"matrix {self.on} -o m.h5 --resume")
        self.refuse(2, "--resume", f"matrix {self.on} -o m.tsv --resume")


class Verify(ExportTest):
    def good_file(self, *arguments, on=None):
        path = self.export("m.h5", *arguments, on=on)
        found = self.json(f"matrix verify {path}")
        self.assertTrue(found["good"])
        return found

    def test_good_files(self):
        found = self.good_file()
        self.assertTrue(0 < found["row_error"] < 1e-5, found["row_error"])
        self.good_file("--by lor")
        self.good_file("--rows 8:60 --pairs 0-4,1-5 --threshold 0.1")
        self.good_file("--region sphere:0,0,0,6 --samples 2,2,2")
        self.good_file("--by lor --pairs 0-4,2-6 --threshold 0.1")
        self.good_file("--compress 3", on=self.on_lopsided)
        self.good(f"matrix {self.on_ring} --mode sampled --rays 3 {GRID} -o s.h5")
        self.assertEqual(self.json("matrix verify s.h5")["mode"], "sampled")
        self.assertEqual(self.json("matrix verify s.h5")["seed"], 1)
        again = [self.json("matrix verify s.h5 --compare 2 --seed", str(seed))["row_error"] for
                 seed in (1, 2, 3, 4, 5, 1)]
        self.assertGreater(len(set(again)), 1)  # other voxels have other errors
        self.assertEqual(again[0], again[5])
        self.assertIn("drawn with --seed 7", self.good("matrix verify s.h5 --seed 7").stdout)
        self.good(f"matrix {self.on_ring} --at 0,0,0 --at 1,2,3 -o p.h5")
        self.assertEqual(self.json("matrix verify p.h5")["rows_are"], "points")

    def test_backends(self):
        for backend in ("cpu", "raster", "compute", "native"):
            for mode in ("sampled", "exact") if backend != "raster" else ("sampled",):
                path = f"{backend}.h5"
                done = self.run_program(f"matrix --scanner {self.scanner} --backend {backend} --mode {mode} {GRID}",
                                        f"-o {path}")
                if done.returncode == 4:
                    print(f"skipped: no device for {backend}")
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.json(f"matrix verify {path} --backend cpu")["mode"], mode)

    def test_large_modules(self):
        """Pairs of 2^20 LORs: native sorts their elements instead of adding them in place."""
        for more in ("--rows 3000:3200", "--rows 1000:1100 --samples 2,1,3"):
            path = self.export("m.h5", more, on="--scanner two-opposed-modules --backend native --mode exact "
                                                "--grid 32,32,32 --voxel-mm 0.45,1,0.45")
            self.assertLess(self.json(f"matrix verify {path}")["row_error"], 1e-5)

    def test_npz(self):
        path = self.export("m.npz", "--rows 5:50")
        self.good(f"matrix verify {path} {self.on} --rows 5:50")
        self.refuse(3, "rows", f"matrix verify {path} {self.on}")
        self.refuse(3, "differ", f"matrix verify {path} {self.on} --rows 6:51")
        self.good(f"matrix verify {path} {self.on} --rows 5:50 --by voxel")
        path = self.export("l.npz", "--by lor --lors 5,9,100:140")
        self.good(f"matrix verify {path} {self.on} --by lor --lors 5,9,100:140")
        np.savez_compressed("c.npz", indptr=[0])
        self.refuse(3, "compress", f"matrix verify c.npz {self.on}")

    def spoil(self, words, change):
        path = self.export("m.h5")
        with h5py.File(path, "r+") as file:
            change(file["matrix"])
        self.refuse(3, words, f"matrix verify {path}")

    def test_spoilt_files(self):
        def negative(m):
            m["data"][17] = -1e-6

        def not_finite(m):
            m["data"][17] = np.nan

        def unsorted(m):
            m["indices"][0:2] = m["indices"][0:2][::-1]

        def out_of_range(m):
            m["indices"][m["indptr"][1] - 1] = m.attrs["shape"][1]

        def falling(m):
            m["indptr"][4] = 0

        def scaled(m):
            m["data"][:] *= 1.0002

        def one_row_scaled(m):
            row = slice(m["indptr"][40], m["indptr"][41])
            m["data"][row] = m["data"][row] * 1.01

        def exchanged(m):  # all sums stay
            row = slice(m["indptr"][44], m["indptr"][45])
            m["data"][row] = m["data"][row][::-1]

        def too_short(m):
            data = m["data"][:-1]
            del m["data"]
            m["data"] = data

        for words, change in (("probability", negative), ("probability", not_finite), ("ascend", unsorted),
                              ("below", out_of_range), ("indptr", falling), ("sensitivity", scaled),
                              ("sensitivity", one_row_scaled), ("as many", too_short)):
            with self.subTest(change.__name__):
                self.spoil(words, change)
        path = self.export("x.h5")
        with h5py.File(path, "r+") as file:
            exchanged(file["matrix"])
        self.refuse(3, "backend cpu", f"matrix verify {path} --compare 90")

    def test_other_scanner(self):
        path = self.export("m.h5")
        self.refuse(3, "another scanner", f"matrix verify {path} --scanner {self.lopsided}")

    def test_files_that_are_none(self):
        """tests/io/damaged.c has what may be wrong with files that were good."""
        Path("t").write_bytes(os.urandom(5000))
        self.refuse(3, "t", f"matrix verify t {self.on}")
        self.refuse(3, "", "matrix verify", str(self.folder), self.on)
        self.refuse(2, "one file", "matrix verify")


main({"load": Load, "agree": Agree, "choose": Choose, "resume": Resume, "verify": Verify})
