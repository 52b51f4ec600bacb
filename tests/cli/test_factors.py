#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`factors`: attenuation, efficiencies and randoms per LOR, against line integrals taken here, and by how much exact
ones differ from Joseph's on a map with edges."""
import gzip, math, random, struct, sys

import yardl
from program import GRID, NUM_VOXELS, ProgramTest, main, read_nifti, read_rows, ring_of, write_nifti

try:
    import h5py
    import numpy as np

    import joseph
except ImportError:
    print("skipped: no numpy or h5py")
    sys.exit(77)

# One ring of the Biograph mMR's blocks, whose 448 crystals of 8 rings make 4.5 million LORs.
BLOCKS = ring_of("one ring of blocks", "radius_mm: 328, modules: 56, first_angle_deg: 93.2142857142857",
                 "crystals: [8, 8], pitch_mm: [4.09, 4.0625], face_mm: [4, 4], depth_mm: 20",
                 "coincidence: {field_of_view_mm: 300}")


class FactorsTest(ProgramTest):
    def read_lors(self, name):
        with h5py.File(name) as file:
            return joseph.Lors(file)

    def map_of(self, name, image):
        write_nifti(name, image.values.shape, image.voxel_mm, image.flat())
        return name


class Factors(FactorsTest):
    NUM_CRYSTALS = 128

    def blob(self):
        return joseph.Image(0.01 * np.random.default_rng(5).random((6, 5, 3)), (3.1, 2.9, 4.2))

    def test_attenuation_is_the_exact_integral(self):
        image = self.blob()
        mu = self.map_of("mu.nii", image)
        found = self.json(f"factors --scanner {self.scanner} --mu {mu} --mu-unit 1/mm -o f.h5")
        lors = self.read_lors("f.h5")
        self.assertEqual((len(lors.values), found["num_lors"]), (found["num_lors"],) * 2)
        inside = np.nonzero(lors.values)[0]
        self.assertEqual(len(inside), found["in_coincidence"])
        self.assertLess(len(inside), len(lors.values))  # the rule of the field of view has a say
        expected = np.exp(-joseph.exact(image, lors.lines(inside)))
        self.assertLess(expected.min(), 0.9)
        self.assertLess(np.abs(lors.values[inside] / expected - 1).max(), 3e-6)
        self.assertAlmostEqual(found["sum"] / lors.values.sum(), 1, 9)
        self.assertAlmostEqual(found["low"], lors.values[inside].min(), 9)

    def test_efficiencies_and_products(self):
        chance = random.Random(3)
        numbers = [chance.uniform(0.2, 1.5) for _ in range(self.NUM_CRYSTALS)]
        self.write("e.txt", "\n".join(map(repr, numbers)))
        mu = self.map_of("mu.nii", self.blob())
        per_mm = f"--mu {mu} --mu-unit 1/mm"
        scanner = f"factors --scanner {self.scanner}"
        self.good(f"{scanner} --efficiencies e.txt -o e.h5")
        self.good(f"{scanner} {per_mm} -o a.h5")
        self.good(f"{scanner} {per_mm} --efficiencies e.txt -o b.h5")
        e, a, b = (self.read_lors(f"{k}.h5") for k in "eab")
        inside = np.nonzero(e.values)[0]
        i, p, q, j, r, s = e.names(inside)
        per_module = 16
        product = np.array(numbers)[per_module * i + 4 * q + p] * np.array(numbers)[per_module * j + 4 * s + r]
        self.assertLess(np.abs(e.values[inside] / product - 1).max(), 1e-6)
        self.assertLess(np.abs(b.values - a.values * e.values).max(), 1e-6)

    def test_what_recon_multiplies_by(self):
        """`matrix --mu` has the elements of the plain matrix times these numbers."""
        mu = self.map_of("mu.nii", self.blob())
        with_mu = f"--mu {mu} --mu-unit 1/mm"
        self.good(f"factors --scanner {self.scanner} {with_mu} -o f.h5")
        lors = self.read_lors("f.h5")
        factors = dict(zip(zip(*(k.tolist() for k in lors.names(np.arange(len(lors.values))))), lors.values))
        rows = []
        for more in ([], [with_mu]):
            self.good(f"matrix {self.on_ring} --at 1,2,3 -o r.tsv", *more)
            rows.append(read_rows("r.tsv")[0])
        self.assertGreater(len(rows[0]), 50)
        for name, value in rows[0].items():
            self.assertAlmostEqual(rows[1][name] / (value * factors[name]), 1, delta=1e-5)

    def test_what_project_and_simulate_multiply_by(self):
        """With factors a value is exp(-integral) times the one without a map, to its last digit of a float; by lines
        the sum is within what `recon` has between the two (1 %, test_recon.py)."""
        on = f"--scanner {self.scanner} --backend cpu --mode sampled"
        x = self.image("x.nii", [0.1 * (k % 7) for k in range(NUM_VOXELS)])
        mu = ["--mu", self.image("mu.nii", [0.0096] * NUM_VOXELS)]
        self.good(f"factors --scanner {self.scanner}", *mu, "-o f.h5")
        factors = self.read_lors("f.h5").values.astype(float)
        self.assertLess(factors[factors > 0].min(), 0.9)
        for verb, more in (("project", []), ("simulate", ["--expected"])):
            values = {}
            for name, way in (("plain", []), ("usual", mu), ("lines", [*mu, "--mu-as lines"]),
                              ("factors", [*mu, "--mu-as factors"])):
                self.good(verb, f"{on} --image {x}", *more, *way, f"-o {name}.h5")
                values[name] = self.read_lors(f"{name}.h5").values.astype(float)
            exact = values["plain"] * factors
            self.assertGreater(np.count_nonzero(exact), 100)
            inside = exact > 0
            self.assertTrue(np.array_equal(values["factors"] > 0, inside))
            self.assertLess(np.abs(values["factors"][inside] / exact[inside] - 1).max(), 2e-7)
            self.assertTrue(np.array_equal(values["usual"], values["factors"]))
            ratio = values["factors"].sum() / values["lines"].sum()
            self.assertLess(abs(ratio - 1), 0.01)
            self.assertNotEqual(ratio, 1)

    def test_what_is_projected_back(self):
        """`sensitivity` by factors is what these numbers project back to, and `backproject` by factors of y what y
        times them does without."""
        on = f"--scanner {self.scanner} --backend cpu --mode sampled {GRID}"
        mu = ["--mu", self.image("mu.nii", [0.0096] * NUM_VOXELS)]
        self.good(f"factors --scanner {self.scanner}", *mu, "-o f.h5")
        self.good(f"backproject {on} --data f.h5 -o once.nii")
        self.good(f"sensitivity {on}", *mu, "-o s.nii")
        self.good(f"factors --scanner {self.scanner}", *mu, "-o twice.h5")
        with h5py.File("twice.h5", "r+") as file:
            file["lor/values"][...] = file["lor/values"][...] ** 2
        self.good(f"backproject {on} --data twice.h5 -o twice.nii")
        self.good(f"backproject {on} --data f.h5", *mu, "-o b.nii")
        for one, other in (("once.nii", "s.nii"), ("twice.nii", "b.nii")):
            one, other = (np.array(read_nifti(name)[3]) for name in (one, other))
            self.assertGreater(one.min(), 0)
            self.assertLess(np.abs(other / one - 1).max(), 1e-6)

    def test_mistakes_of_mu_as(self):
        self.image("mu.nii")
        for words, more in (("--mu-as needs --mu", "--mu-as lines"),
                            ("belongs to --mu-as lines", "--mu mu.nii --mu-as factors --mu-steps 9"),
                            ("belongs to --mu-as lines", "--mu mu.nii --mu-steps 9")):
            for verb, given in (("project", "--image x.nii -o p.h5"), ("simulate", "--image x.nii -o p.h5"),
                                ("sensitivity", f"{GRID} -o p.nii"), ("matrix", f"{GRID} -o m.h5"),
                                ("backproject", f"--data y.h5 {GRID} -o p.nii")):
                self.refuse(2, words, f"{verb} {self.on_ring} {given} {more}")

    def test_projection_data(self):
        """STIR's form holds the same numbers: back-projected they give the same image."""
        mu = self.map_of("mu.nii", self.blob())
        sums = []
        for name in ("f.h5", "f.hs"):
            self.good(f"factors --scanner {self.scanner} --mu {mu} --mu-unit 1/mm -o {name}")
            sums.append(self.json(f"backproject {self.on_ring} {GRID} --data {name} -o b.nii")["sum"])
        self.assertAlmostEqual(sums[0] / sums[1], 1, delta=1e-5)

    def test_randoms(self):
        """As many as there are delayeds, v_a v_b per LOR, from list mode and from their counts."""
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 20000 --seed 4 -o d.h5")
        found = self.json(f"factors --scanner {self.scanner} --delayeds d.h5 -o r.h5")
        self.assertAlmostEqual(found["sum"] / self.read_lors("d.h5").values.sum(), 1, delta=1e-5)
        lors = self.read_lors("r.h5")
        inside = np.nonzero(lors.values)[0]
        i, p, q, j, r, s = lors.names(inside)
        logs = np.zeros((len(inside), self.NUM_CRYSTALS))
        rows = np.arange(len(inside))
        logs[rows, 16 * i + 4 * q + p] = 1
        logs[rows, 16 * j + 4 * s + r] = 1
        solution = np.linalg.lstsq(logs, np.log(lors.values[inside]), rcond=None)[0]
        self.assertLess(np.abs(logs @ solution - np.log(lors.values[inside])).max(), 1e-4)

    def test_randoms_of_events(self):
        counts = f"simulate {self.on_ring} --phantom spheres {GRID} --counts 20000 --seed 4 -o"
        self.good(f"{counts} d.h5")
        self.good(f"{counts} d.petsird")
        text, header, blocks = yardl.read_file("d.petsird")
        for _, block in blocks:
            block["promptEvents"], block["delayedEvents"] = block["delayedEvents"], block["promptEvents"]
        yardl.write_file("d.petsird", text, header, blocks)
        self.good(f"factors --scanner {self.scanner} --delayeds d.h5 -o one.h5")
        self.good(f"factors --scanner {self.scanner} --events d.petsird -o two.h5")
        one, two = (self.read_lors(name).values for name in ("one.h5", "two.h5"))
        self.assertTrue(np.array_equal(one, two))

    def test_refusals(self):
        self.image("mu.nii", [0.0096] * NUM_VOXELS)
        self.write("e.txt", "1")
        self.refuse_each("factors", factors=f"factors --scanner {self.scanner}")


class Joseph(FactorsTest):
    """The figures of docs/method/common.md, "Against Joseph's method"."""
    POINTS = ("0,0,0", "40,20,10", "-30,-60,5", "10,70,-8", "-55,0,3", "25,-35,-11")
    NUM_LORS = 40000

    def labels(self):
        raw = gzip.open(self.real_data("phantom/colin27_labels_2mm.nii.gz")).read()
        size = struct.unpack_from("<3h", raw, 42)
        return np.frombuffer(raw, np.uint8, math.prod(size), 352).reshape(size, order="F").astype(float)

    def setUp(self):
        super().setUp()
        self.write("blocks.yaml", BLOCKS)

    def factors_off(self, image):
        """rms of factor / Joseph's - 1 over LORs of which at least a tenth is absorbed, and how far they are off exact
        integrals."""
        self.good("factors --scanner blocks.yaml --mu", self.map_of("mu.nii", image), "--mu-unit 1/mm -o f.h5")
        lors = self.read_lors("f.h5")
        inside = np.nonzero(lors.values)[0]
        drawn = np.random.default_rng(1).choice(inside, self.NUM_LORS, replace=False)
        lines = lors.lines(drawn)
        wanted = joseph.joseph(image, lines)
        absorbed = np.nonzero(wanted > 0.1)[0]
        few = absorbed[:500]
        own = joseph.exact(image, tuple(end[few] for end in lines))
        self.assertLess(np.abs(lors.values[drawn[few]] / np.exp(-own) - 1).max(), 1e-5)
        return self.rms((lors.values[drawn] / np.exp(-wanted) - 1)[absorbed]), len(absorbed)

    @staticmethod
    def rms(values):
        return math.sqrt(np.mean(values ** 2))

    def rows(self, *more):
        """{(point, LOR): probability}: one line to an element."""
        self.good("matrix --scanner blocks.yaml --backend cpu --mode sampled --rays 1 -o r.tsv",
                  *(f"--at={p}" for p in self.POINTS), *more)
        return {(point, *lor): value for point, row in read_rows("r.tsv").items() for lor, value in row.items()}

    def marched_lines(self, keys):
        """From the primary's crystal, that of the module farther away, through the point to the secondary's front
        face."""
        lors = self.read_lors("f.h5")
        scanner = lors.scanner
        point, i, p, q, j, r, s = np.array(keys).T
        through = np.array([[float(x) for x in at.split(",")] for at in self.POINTS])[point]
        away = [np.linalg.norm(scanner["centre_mm"][m] - through, axis=1) for m in (i, j)]
        first = away[0] >= away[1] - 1e-9
        start = np.where(first[:, None], lors.hits(i, p, q), lors.hits(j, r, s))
        other = np.where(first, j, i)
        along = through - start
        normal = scanner["normal"][other]
        share = ((scanner["centre_mm"][other] - start) * normal).sum(1) / (along * normal).sum(1)
        return start, start + share[:, None] * along

    def lines_off(self, image):
        mu = ["--mu", self.map_of("mu.nii", image), "--mu-unit 1/mm --mu-as lines"]
        plain, with_mu = self.rows(), self.rows(*mu)
        keys = list(plain)
        wanted = joseph.joseph(image, self.marched_lines(keys))
        ratio = np.array([with_mu[key] / plain[key] for key in keys]) / np.exp(-wanted) - 1
        absorbed = wanted > 0.1
        return self.rms(ratio[absorbed]), int(absorbed.sum())

    def test_maps(self):
        labels = self.labels()
        x, y, z = np.meshgrid(*(np.arange(n) - (n - 1) / 2 for n in labels.shape), indexing="ij")
        smooth = 0.0096 * np.exp(-(x ** 2 + y ** 2 + z ** 2) / (2 * 15 ** 2))
        found = {}
        for name, values in (("labels times 0.0096/mm", 0.0096 * labels),
                             ("water where there is a label", 0.0096 * (labels > 0)),
                             ("a Gaussian of 30 mm", smooth)):
            image = joseph.Image(values, (2, 2, 2))
            factors, lines = self.factors_off(image), self.lines_off(image)
            found[name] = (factors[0], lines[0])
            print(f"{name}: factors {100 * factors[0]:.2f} % rms off Joseph's ({factors[1]} LORs), marched lines "
                  f"{100 * lines[0]:.2f} % ({lines[1]} elements)")
        # Interpolation smears the edges of a map. In a map without edges, the steps of a constant voxel are left.
        sharp = found["labels times 0.0096/mm"]
        self.assertTrue(0.02 < sharp[0] < 0.06, sharp[0])
        self.assertLess(sharp[1], 0.01)
        self.assertLess(found["water where there is a label"][0], 0.01)
        self.assertLess(found["a Gaussian of 30 mm"][0], 3e-3)
        self.assertLess(found["a Gaussian of 30 mm"][1], 5e-4)


main({"factors": Factors, "joseph": Joseph})
