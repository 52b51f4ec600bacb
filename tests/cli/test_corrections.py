#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Correction terms of events: GE's corrections.h5 against the same reconstruction written here from the formulas, and
an additive term in list mode against that of counts."""
import math, sys
from pathlib import Path

from program import ProgramTest, main, read_nifti

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "dist"))
from ranks import MPIRUN, mpirun

try:
    import h5py
    import numpy
except ImportError:
    h5py = None

# Seven modules: no line runs as far along x as along y, which rounding would decide.
MODULES, PER_MODULE, RINGS, RADIUS_MM, PITCH_MM = 7, 4, 3, 60.0, 8.0
AROUND = MODULES * PER_MODULE
SCANNER = f"""\
name: full ring
ring: {{radius_mm: {RADIUS_MM}, modules: {MODULES}, rings: 1, first_angle_deg: 90}}
module: {{crystals: [{PER_MODULE}, {RINGS}], pitch_mm: [{PITCH_MM}, {PITCH_MM}], face_mm: [7, 7], depth_mm: 10}}
coincidence: {{min_module_difference: 2}}
detection_depth_mm: 0
tof: {{resolution_ps: 400}}
"""
SIZE, VOXEL_MM = (7, 6, 3), (9.0, 8.0, 8.0)
GRID = f"--grid {SIZE[0]},{SIZE[1]},{SIZE[2]} --voxel-mm {VOXEL_MM[0]},{VOXEL_MM[1]},{VOXEL_MM[2]}"
STEP_MM = 13.02 * 0.149896229
BIN_MM = 13 * STEP_MM
SIGMA_MM = 400 * 0.149896229 / (2 * math.sqrt(2 * math.log(2)))


def place_mm(ring, place):
    """GE's numbers: modules clockwise from the top, as seen against z."""
    phi = 2 * math.pi * (place // PER_MODULE) / MODULES
    along = (place % PER_MODULE - 0.5 * (PER_MODULE - 1)) * PITCH_MM
    return numpy.array([math.sin(phi) * RADIUS_MM + math.cos(phi) * along, math.cos(phi) * RADIUS_MM - math.sin(phi) *
                        along, (ring - 0.5 * (RINGS - 1)) * PITCH_MM])


def pairs():
    """[n][4] place and ring of either crystal, of all LORs in coincidence."""
    ends = [(place, ring) for place in range(AROUND) for ring in range(RINGS)]
    found = []
    for k, a in enumerate(ends):
        for b in ends[k + 1:]:
            apart = abs(a[0] // PER_MODULE - b[0] // PER_MODULE)
            if min(apart, MODULES - apart) >= 2:
                found.append((*a, *b))
    return numpy.array(found, numpy.int16)


def normal(z):
    return 0.5 * math.erfc(-z / math.sqrt(2))


def row(a, b, tof_mm=None):
    """Joseph's thin line, with the Gaussian of time of flight, cut at three standard deviations, and its bin: the mean
    over places in the bin. [z][y][x]."""
    out = numpy.zeros(SIZE[::-1])
    axis = int(numpy.argmax(numpy.abs(b - a)))
    middle, length = (a + b) / 2, float(numpy.linalg.norm(b - a))
    d = (b - a) / length * (1 if b[axis] > a[axis] else -1)
    across = [k for k in range(3) if k != axis]
    for s in range(SIZE[axis]):
        centre = (s - 0.5 * (SIZE[axis] - 1)) * VOXEL_MM[axis]
        t, half = (centre - middle[axis]) / d[axis], 0.5 * VOXEL_MM[axis] / d[axis]
        low, high = max(t - half, -length / 2), min(t + half, length / 2)
        if low >= high:
            continue
        factor = high - low
        if tof_mm is not None:
            at = tof_mm if b[axis] > a[axis] else -tof_mm
            places = at + BIN_MM * ((numpy.arange(400) + 0.5) / 400 - 0.5)
            ends = [numpy.clip((end - places) / SIGMA_MM, -3, 3) for end in (low, high)]
            factor = sum(normal(y) - normal(x) for x, y in zip(*ends)) / 400 / (normal(3) - normal(-3))
        where = [(middle[k] + t * d[k]) / VOXEL_MM[k] + 0.5 * (SIZE[k] - 1) for k in across]
        for shift in ((0, 0), (0, 1), (1, 0), (1, 1)):
            corner = [math.floor(where[k]) + shift[k] for k in (0, 1)]
            if all(0 <= corner[k] < SIZE[across[k]] for k in (0, 1)):
                index = [0, 0, 0]
                index[axis], index[across[0]], index[across[1]] = s, *corner
                share = math.prod(1 - abs(where[k] - corner[k]) for k in (0, 1))
                out[index[2], index[1], index[0]] += factor * share
    return out.ravel()


class Ge(ProgramTest):
    def setUp(self):
        super().setUp()
        if h5py is None:
            self.skipTest("h5py and numpy, which make the files, are not here")
        random = numpy.random.default_rng(7)
        with open("ring.yaml", "w") as file:
            file.write(SCANNER)
        self.pairs = pairs()
        self.sens = random.uniform(0.5, 1, len(self.pairs)).astype(numpy.float32)
        self.atten = random.uniform(0.2, 0.9, len(self.pairs)).astype(numpy.float32)
        self.chosen = random.choice(len(self.pairs), 60, replace=False)
        bins = random.integers(-1, 2, 60)
        self.events = numpy.column_stack([self.pairs[self.chosen][:, [1, 0, 3, 2]], 13 * bins]).astype(numpy.int16)
        self.contam = random.uniform(0.0002, 0.002, 60).astype(numpy.float32)
        with h5py.File("list.BLF", "w") as file:
            file["MiceList/TofCoinc"] = self.events
        self.put("corrections.h5")
        self.recon = (f"recon --operator listmode --scanner ring.yaml --events list.BLF {GRID} --kernel line "
                      "--algorithm osem --subsets 2 --iterations 2 -o x.nii")

    def put(self, path, **changes):
        """The layout of the public file: one number an event in correction_lists, one a LOR in all_xtals."""
        sets = {"correction_lists/sens": self.sens[self.chosen], "correction_lists/atten": self.atten[self.chosen],
                "correction_lists/contam": self.contam, "all_xtals/xtal_ids": self.pairs, "all_xtals/sens": self.sens,
                "all_xtals/atten": self.atten}
        sets.update({name.replace("__", "/"): values for name, values in changes.items()})
        with h5py.File(path, "w") as file:
            for name, values in sets.items():
                if values is not None:
                    file[name] = values

    def expected(self, factors, contam):
        """Two iterations of two subsets, to which events are dealt in turn, from as many counts as there are."""
        places = [(place_mm(ids[1], ids[0]), place_mm(ids[3], ids[2])) for ids in self.pairs]
        seen = sum(row(*places[k]) * float(self.sens[k] * self.atten[k]) for k in range(len(self.pairs)))
        rows = [row(*places[k], float(-steps * STEP_MM)) for k, steps in zip(self.chosen, self.events[:, 4])]
        x = numpy.where(seen > 0, len(rows) / seen.sum(), 0.0)
        for subset in 2 * (0, 1):
            sum_back = numpy.zeros_like(x)
            for k in range(subset, len(rows), 2):
                line = rows[k] * factors[k]
                estimated = line @ x + contam[k] / (13 * STEP_MM)
                sum_back += line / estimated if estimated > 0 else 0
            x *= numpy.divide(sum_back, 0.5 * seen, out=numpy.zeros_like(x), where=seen > 0)
        return x

    def check(self, backend, path, factors, contam):
        told = self.good(f"{self.recon} --backend {backend} --corrections {path}").stderr
        self.assertIn("loraster: corrected for attenuation, efficiencies, randoms and scatter (--corrections)\n", told)
        found = numpy.array(read_nifti("x.nii")[3])
        expected = self.expected(factors, contam)
        self.assertLess(numpy.abs(found - expected).max(), 1e-4 * expected.max())
        return found

    def test_ranks_have_what_is_said_of_their_events(self):
        """Events are dealt to subsets in turn, and each rank has a slice of each."""
        if MPIRUN is None or not (Path(self.program).parent / "lr_mpi.so").exists():
            self.skipTest("no mpirun")
        expected = self.expected((self.sens * self.atten)[self.chosen].astype(float), self.contam)
        mpirun(self.program, 3, self.program, *f"{self.recon} --backend native --corrections corrections.h5".split())
        self.assertLess(numpy.abs(numpy.array(read_nifti("x.nii")[3]) - expected).max(), 1e-4 * expected.max())

    def test_the_image_is_that_of_the_formulas(self):
        """One command; factors of events are those of the lists, also where they are not those of their LORs."""
        factors = (self.sens * self.atten)[self.chosen].astype(float)
        images = {}
        for backend in ("cpu", "native", "compute"):
            with self.subTest(backend):
                images[backend] = self.check(backend, "corrections.h5", factors, self.contam)
        doubled = numpy.where(numpy.arange(60) % 3 == 0, 2, 1)
        self.put("other.h5", correction_lists__sens=self.sens[self.chosen] * doubled)
        other = self.check("native", "other.h5", factors * doubled, self.contam)
        self.assertGreater(numpy.abs(other - images["native"]).max(), 1e-2 * other.max())
        self.put("clean.h5", correction_lists__contam=0 * self.contam)
        clean = self.check("native", "clean.h5", factors, 0 * self.contam)
        self.assertGreater(numpy.abs(clean - images["native"]).max(), 1e-2 * clean.max())

    def test_files_that_do_not_fit_are_refused(self):
        short = {"correction_lists__" + name: numpy.ones(59, numpy.float32) for name in ("sens", "atten", "contam")}
        worse = self.contam.copy()
        worse[17] = numpy.nan
        cases = [(short, "has corrections of 59 events, and"), ({"correction_lists__contam": worse}, "entry 17 of"),
                 ({"correction_lists__atten": self.atten[:7]}, "they must be as many"),
                 ({"correction_lists__sens": None}, "correction_lists/sens"), ({"all_xtals__xtal_ids": self.pairs[:9]},
                                                                               "places and rings of two crystals"),
                 ({"all_xtals__xtal_ids": self.pairs + AROUND}, "is it of another scanner?")]
        for changes, sentence in cases:
            with self.subTest(sentence):
                self.put("bad.h5", **changes)
                self.refuse(3, sentence, f"{self.recon} --corrections bad.h5")
        self.refuse(3, "has no correction_lists", f"{self.recon} --corrections list.BLF")
        for option in ("--without-tof", "--frames 10", "--randoms none", "--additive y.h5"):
            with self.subTest(option):
                self.refuse(2, f"{option.split()[0]} and --corrections exclude each other",
                            f"{self.recon} --corrections corrections.h5 {option}")
        self.refuse(2, "--corrections belongs to --operator listmode",
                    f"recon --scanner ring.yaml --data y.h5 {GRID} --corrections c.h5 -o x.nii")


class Additive(ProgramTest):
    def test_an_additive_term_does_what_it_does_to_counts(self):
        """Exact elements, without time of flight: the image of events is that of counts."""
        small = f"--scanner {self.scanner} --grid 12,12,4 --voxel-mm 3,3,4 --samples 2,2,2"
        self.good(f"simulate {small} --phantom point --counts 2e3 -o ev.petsird")
        self.good(f"simulate {small} --phantom spheres --counts 4e4 -o b.h5")
        images = []
        for family, kernel in (("listmode", ["--kernel exact"]), ("correspondence", [])):
            report = self.json(f"recon {small} --events ev.petsird --iterations 3 --operator {family} --backend native",
                               *kernel, "--additive b.h5 -o x.nii")
            images.append((read_nifti("x.nii")[3], report["iterations"][-1]))
        without = self.json(f"recon {small} --events ev.petsird --iterations 3 --backend native -o x.nii")
        plain, peak = read_nifti("x.nii")[3], max(images[1][0])
        self.assertGreater(peak, 0)
        self.assertGreater(max(abs(a - b) for a, b in zip(plain, images[1][0])), 0.01 * peak)
        for listed, counted in zip(images[0][0], images[1][0]):
            self.assertAlmostEqual(listed / peak, counted / peak, 4)
        self.assertNotAlmostEqual(without["iterations"][-1]["estimated_counts"], images[1][1]["estimated_counts"], 0)

    def test_frames_have_no_additive_term(self):
        self.refuse(2, "--additive is of the whole acquisition", f"recon --scanner {self.scanner} --grid 6,6,3",
                    "--voxel-mm 3 --operator listmode --events e.petsird --frames 10 --additive y.h5 -o x.nii")


main({"corrections": Ge, "additive_events": Additive})
