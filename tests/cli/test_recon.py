#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Black-box tests of simulated counts and of the verb recon: ML-EM, list mode, OSEM, RAMLA, randoms and factors.

The topic `head` reconstructs the real acquisition of a Biograph mMR with the command that the help of recon shows. It
takes minutes on two processors, so that CTest does not run it; tools/test.sh --full does."""
import itertools, math, os, random, re, resource, shutil, struct
from pathlib import Path

from program import CPU, GRID, NUM_VOXELS, ProgramTest, main, png_size, read_nifti, write_npy

PROMPT = 1 << 30
TAG = 1 << 31

# SMALL_RING of program.py as Siemens list mode counts it: one virtual crystal before the four real
# ones of each of 8 modules.
MODULES, ACROSS, RINGS, RADIUS_MM, PITCH_MM, DEPTH_MM = 8, 4, 4, 30, 4, 10
AROUND = MODULES * (ACROSS + 1)
VIEWS, BINS, LARGEST = AROUND // 2, AROUND - 1, 3
EVERY = list(itertools.product(range(MODULES), range(ACROSS), range(RINGS)))
HEADER = f"""!INTERFILE:=
name of data file := events.l
data format:=CoincidenceList
%LM event and tag words format (bits):=32
number of rings:={RINGS}
%number of projections:={BINS}
%number of views:={VIEWS}
%maximum ring difference:={LARGEST}
%axial compression:=1
"""


def sinogram_places():
    """(place of det1, place of det2) -> (view, bin), from the published numbering of bins."""
    return {((view + (t >> 1)) % AROUND, (view - ((t + 1) >> 1) + VIEWS) % AROUND): (view, t + BINS // 2) for
            view in range(VIEWS) for t in range(-(BINS // 2), BINS - BINS // 2)}


def sinogram_planes():
    """(ring of det1, ring of det2) -> plane: segments 0, -1, +1, -2, ..."""
    planes = {}
    for segment in [0] + [sign * k for k in range(1, LARGEST + 1) for sign in (-1, 1)]:
        for a in range(RINGS - abs(segment)):
            planes[a + max(0, -segment), a + max(0, segment)] = len(planes)
    return planes


class Crystals:
    """Words of Siemens list mode for pairs of crystals, and where the crystals are."""

    def __init__(self):
        self.places, self.planes = sinogram_places(), sinogram_planes()

    def word(self, one, two):
        """one, two: (module, p, ring), rings counted from +z downwards."""
        for a, b in ((one, two), (two, one)):
            ends = tuple(5 * module + 1 + p for module, p, _ in (a, b))
            if ends in self.places:
                view, number = self.places[ends]
                return (self.planes[a[2], b[2]] * VIEWS + view) * BINS + number
        raise AssertionError(f"no bin of {one}, {two}")

    @staticmethod
    def position_mm(crystal):
        module, p, ring = crystal
        angle = 2 * math.pi * module / MODULES
        out, aside = RADIUS_MM + DEPTH_MM / 2, (p - (ACROSS - 1) / 2) * PITCH_MM
        return (out * math.cos(angle) - aside * math.sin(angle), out * math.sin(angle) + aside * math.cos(angle),
                ((RINGS - 1) / 2 - ring) * PITCH_MM)

    def through(self, point_mm, reach_mm):
        """Words of all pairs of facing modules whose line passes that near to the point."""
        for one, two in itertools.combinations(EVERY, 2):
            if min((one[0] - two[0]) % 8, (two[0] - one[0]) % 8) >= 3:
                if line_distance(self.position_mm(one), self.position_mm(two), point_mm) < reach_mm:
                    yield self.word(one, two)


def line_distance(a, b, point):
    d = [b[k] - a[k] for k in range(3)]
    w = [point[k] - a[k] for k in range(3)]
    cross = (d[1] * w[2] - d[2] * w[1], d[2] * w[0] - d[0] * w[2], d[0] * w[1] - d[1] * w[0])
    return math.sqrt(sum(c * c for c in cross) / sum(c * c for c in d))


class ReconTest(ProgramTest):
    def events(self, words, name="events.l", header=HEADER):
        if header is not None:
            self.write("events.l.hdr", header)
        Path(name).write_bytes(struct.pack(f"<{len(words)}I", *words))
        return name

    def recon(self, *arguments):
        """Runs that are compared either keep a matrix or do not: no stopwatch decides."""
        store = () if "--store" in arguments else ("--store", "yes")
        return self.json(f"recon {self.on_ring} {GRID}", *store, "-o x.nii", *arguments)

    def values(self):
        return read_nifti("x.nii")[3]

    def assert_near(self, one, other, share):
        self.assertLess(max(abs(a - b) for a, b in zip(one, other)), share * max(other))

    def refuse_recon(self, code, sentence, *arguments):
        self.refuse(code, sentence, f"recon {self.on_ring} {GRID} -o x.nii", *arguments)

    def likelihoods(self, found):
        return [step["log_likelihood"] for step in found["iterations"]]


class Simulate(ProgramTest):
    def test_expected_counts(self):
        found = self.json(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 1e5 --expected -o e.h5",
                          "--truth t.nii")
        self.assertLess(abs(found["counts"] / 1e5 - 1), 1e-5)
        # The truth projects onto the expectation.
        self.assertLess(abs(self.json(f"project {self.on_ring} --image t.nii -o p.h5")["sum"] / 1e5 - 1), 1e-5)

    def test_poisson(self):
        simulate = f"simulate {self.on_ring} --phantom spheres {GRID} --counts 100000"
        sums = [self.json(f"{simulate} --seed {seed} -o {k}.h5")["counts"] for k, seed in enumerate([1, 1, 2])]
        self.assertEqual((sums[0], sums[0]), (sums[1], round(sums[0])))
        for total in sums:
            self.assertLess(abs(total - 1e5), 6 * math.sqrt(1e5))

    def test_image(self):
        image = self.image()
        found = self.json(f"simulate {self.on_ring} --image {image} --expected -o e.h5")
        sens = self.json(f"sensitivity {self.on_ring} {GRID} -o s.nii")
        self.assertLess(abs(found["counts"] / sens["sum"] - 1), 1e-5)

    def test_labels(self):
        labels = self.image("labels.nii", [float(k % 5) for k in range(NUM_VOXELS)])
        found = self.json(f"simulate {self.on_ring} --phantom colin27 --labels {labels} {GRID} --counts 1000",
                          "--expected -o e.h5")
        self.assertLess(abs(found["counts"] / 1000 - 1), 1e-5)


class Mlem(ProgramTest):
    def test_iterations(self):
        data = self.expected_counts()
        found = self.json(f"recon {self.on_ring} {GRID} --algorithm mlem --data {data} --iterations 6 --save-every 2",
                          "-o x.nii.gz")
        steps = found["iterations"]
        self.assertEqual([s["number"] for s in steps], [1, 2, 3, 4, 5, 6])
        for before, after in zip(steps, steps[1:]):
            self.assertGreater(after["log_likelihood"], before["log_likelihood"] - 1e-6 * abs(before["log_likelihood"]))
        for step in steps:
            self.assertLess(abs(step["sensitive_counts"] / step["measured_counts"] - 1), 1e-5)
        self.assertFalse(found["stopped"])
        for k in (2, 4, 6):
            self.assertTrue(os.path.exists(f"x.iter{k}.nii.gz"))
        self.assertFalse(os.path.exists("x.iter5.nii.gz"))
        last, saved = [read_nifti(n)[3] for n in ("x.nii.gz", "x.iter6.nii.gz")]
        self.assertEqual(last, saved)
        self.assertLess(abs(sum(last) / found["emissions"] - 1), 1e-5)

    def test_log_has_a_line_per_iteration(self):
        done = self.good(f"recon {self.on_ring} {GRID} --data {self.expected_counts()} --iterations 3 -o x.nii")
        self.assertEqual(len(re.findall(r"iteration \d+: log-likelihood", done.stderr)), 3)
        self.assertIn("x.nii", done.stdout)

    def test_additive(self):
        data = self.expected_counts()
        shutil.copy(data, "b.h5")  # the data itself is refused
        found = self.json(f"recon {self.on_ring} {GRID} --data {data} --additive b.h5 --iterations 2 -o x.nii")
        step = found["iterations"][0]
        self.assertGreater(step["estimated_counts"], step["measured_counts"])


class Osem(ReconTest):
    def test_defaults(self):
        found = self.recon(f"--data {self.expected_counts()} --algorithm osem")
        self.assertEqual((len(found["iterations"]), found["subsets"]), (3, 7))

    def test_usage(self):
        self.refuse_each("osem")

    def test_too_many_subsets(self):
        self.refuse_recon(2, "subsets", f"--data {self.expected_counts()} --algorithm osem --subsets 1000")

    def test_memory_and_time_are_told(self):
        found = self.recon(f"--data {self.expected_counts()} --iterations 1")
        self.assertGreater(found["peak_memory_bytes"], 1 << 20)
        self.assertGreater(found["seconds"], 0)
        done = self.good(f"recon {self.on_ring} {GRID} --data y.h5 --iterations 1 -o x.nii")
        self.assertRegex(done.stderr, r"done in .*, peak memory [0-9.]+ MiB")

    def test_picture(self):
        self.assertEqual(self.recon(f"--data {self.expected_counts()} --png x.png")["picture"], "x.png")
        width, height = png_size("x.png")
        self.assertGreater(width, 3 * height / 2)  # three slices in a row


class Ramla(ReconTest):
    RAMLA = "--algorithm ramla --subsets 4"

    def test_defaults_and_names(self):
        found = self.recon(f"--data {self.expected_counts()} --algorithm ramla")
        self.assertEqual([found[name] for name in ("algorithm", "subsets", "relaxation", "fall", "iterations_before")],
                         ["ramla", 7, 0.625, 0, 0])
        self.assertEqual(len(found["iterations"]), 3)
        self.assertGreaterEqual(min(self.values()), 0)
        for subsets, relaxation in ((1, 1), (11, 0.5)):
            found = self.recon(f"--data {self.expected_counts()} --algorithm ramla --subsets {subsets} --iterations 1")
            self.assertEqual(found["relaxation"], relaxation)

    def test_an_absorber_makes_own_steps_no_slower(self):
        """Three mean free paths across a body of 12 x 9 mm: by default RAMLA explains the counts, and its image is as
        near to ML-EM's as images of OSEM are; common steps do neither in as many passes."""
        body = [0.25 * (0 < k % 6 < 5 and 0 < k // 6 % 5 < 4) for k in range(NUM_VOXELS)]
        mu = ["--mu", self.image("mu.nii", body), "--mu-unit 1/mm"]
        data = self.expected_counts("y.h5", 100000, *mu)
        more = [f"--data {data}", *mu, "--mu-as lines"]
        self.recon(*more)
        wanted = self.values()
        off = {}
        for steps in ((), ("--steps", "common")):
            found = self.recon(*more, "--algorithm ramla", *steps)
            self.assertEqual(found["steps"], steps[1] if steps else "own")
            step = found["iterations"][-1]
            apart = math.dist(self.values(), wanted) / math.hypot(*wanted)
            off[found["steps"]] = apart, abs(step["estimated_counts"] / step["measured_counts"] - 1)
        print(off)
        self.assertLess(off["own"][0], 0.2)
        self.assertLess(off["own"][1], 0.05)
        self.assertGreater(off["common"][0], 2 * off["own"][0])

    def test_a_checkpoint_is_an_image_to_begin_with(self):
        """By either ending of HDF5, and a --fall of 0 is the default one."""
        more = f"--data {self.expected_counts()} {self.RAMLA} --iterations"
        self.recon(f"{more} 3")
        whole = self.values()
        for name in ("c.h5", "c.hdf5"):
            self.recon(f"{more} 2 --fall 0 --checkpoint {name}")
            found = self.recon(f"{more} 1 --initial {name}")
            self.assertEqual((found["iterations"][0]["number"], self.values()), (3, whole))

    def test_it_goes_on_where_it_was(self):
        """Four iterations are two, and two more of their image, with the same numbers."""
        more = [f"--data {self.expected_counts()} {self.RAMLA} --fall 1.5"]
        self.recon(*more, "--iterations 4 --save-every 2")
        whole = self.values()
        more += ["--iterations 2 --initial x.iter2.nii"]
        self.recon(*more)
        self.assertNotEqual(self.values(), whole)
        found = self.recon(*more, "--after 2 --save-every 3")
        self.assertEqual(([step["number"] for step in found["iterations"]], found["iterations_before"]), ([3, 4], 2))
        self.assertEqual(self.values(), whole)
        self.assertTrue(os.path.exists("x.iter3.nii"))

    def test_usage(self):
        self.refuse_each("ramla")
        done = self.good(f"recon {self.on_ring} {GRID} --data {self.expected_counts()} --algorithm ramla",
                         "--relaxation 2 --iterations 1 -o x.nii")
        self.assertIn("a relaxation of 2, more than 1", done.stderr)


class Psf(ReconTest):
    def image(self, *more):
        return self.recon("--data y.h5 --iterations 8", *more), self.values()

    def test_with_and_without(self):
        """EM keeps the counts where forward, back and sensitivity belong together."""
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 20000 -o y.h5")
        images = {}
        for width in ("none", "0", "6", "6,6,6"):
            found, images[width] = self.image(*([] if width == "none" else [f"--psf-mm {width}"]))
            self.assertEqual(found.get("psf_mm"), {"none": None, "0": [0, 0, 0]}.get(width, [6, 6, 6]))
            last = found["iterations"][-1]
            self.assertAlmostEqual(last["sensitive_counts"] / last["measured_counts"], 1, 5)
        self.assertEqual((images["6"], images["none"]), (images["6,6,6"], images["0"]))
        largest = max(images["none"])
        self.assertGreater(max(abs(a - b) for a, b in zip(images["6"], images["none"])), 0.1 * largest)

    def test_usage(self):
        self.refuse_each("psf")


class Bsrem(ReconTest):
    BSREM = "--algorithm bsrem --subsets 4 --iterations 8"
    RDP = ("--prior rdp --beta 0.02",)

    def objectives(self, found):
        return [step["log_likelihood"] - step.get("penalty", 0) for step in found["iterations"]]

    def roughness(self, values, nx):
        return sum(abs(a - b) for k, (a, b) in enumerate(zip(values, values[1:])) if k % nx < nx - 1)

    def test_a_prior_smooths(self):
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 20000 -o y.h5")
        data = f"--data y.h5 {self.BSREM}"
        nx, rough, images = 6, [], []
        for more in ([], self.RDP, ["--prior rdp --beta 0.2"]):
            found = self.recon(data, *more)
            images.append(self.values())
            rough.append(self.roughness(images[-1], nx))
            self.assertGreater(self.objectives(found)[-1], self.objectives(found)[0])
            self.assertGreaterEqual(min(images[-1]), 0)
        self.assertEqual(rough, sorted(rough, reverse=True))
        self.assertLess(rough[2], 0.8 * rough[0])
        self.assertEqual(found["prior"], {"name": "rdp", "beta": 0.2, "gamma": 2, "epsilon": 0, "kappa": None})
        self.assertEqual([found[name] for name in ("algorithm", "relaxation", "fall")], ["bsrem", 1, 0.1])
        # Weights of 2 are a strength four times as large.
        self.image("kappa.nii", [2.0] * NUM_VOXELS)
        self.recon(f"{data} --prior rdp --beta 0.05 --kappa kappa.nii")
        self.assert_near(self.values(), images[-1], 1e-4)

    def test_list_mode_has_it_too(self):
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 20000 -o y.petsird")
        found = self.json(f"recon {self.on_ring} {GRID} --operator listmode --events y.petsird {self.BSREM}",
                          "--prior rdp --beta 1 -o x.nii")
        self.assertGreater(self.objectives(found)[-1], self.objectives(found)[0])
        self.assertGreater(found["iterations"][-1]["penalty"], 0)
        self.assertGreaterEqual(min(self.values()), 0)

    def test_usage(self):
        self.refuse_each("bsrem")
        self.good("phantom spheres --grid 3,3,3 --voxel-mm 1 -o small.nii")
        self.refuse_recon(3, "its grid is not the one to reconstruct on",
                          f"--data {self.expected_counts()} --algorithm bsrem --prior rdp --beta 1 --kappa small.nii")


class Siemens(ReconTest):
    def test_a_point_is_found(self):
        """Lines through a point, spelled out here from the geometry, must meet there again."""
        crystals = Crystals()
        for point, voxel in [((4.5, 0, 0), (4, 2, 1)), ((1.5, -6, 4), (3, 0, 2)), ((-1.5, 3, -4), (2, 3, 0))]:
            words = [PROMPT | word for word in crystals.through(point, 1.5)]
            self.assertGreater(len(words), 20)
            found = self.recon("--events", self.events(words), "--iterations 20")
            self.assertEqual((found["events"]["prompts"], found["events"]["unknown_crystals"]), (len(words), 0))
            values = self.values()
            x, y, z = voxel
            self.assertEqual(values.index(max(values)), x + 6 * (y + 5 * z))

    def random_events(self, prompts, delayeds, seed=1):
        """A fifth of the prompts and all delayeds are anywhere, the others pass near the centre."""
        chance = random.Random(seed)
        near = list(Crystals().through((0, 0, 0), 5))
        every = list(Crystals().through((0, 0, 0), 14))
        return ([PROMPT | chance.choice(every if k % 5 == 0 else near) for k in range(prompts)] +
                [chance.choice(every) for _ in range(delayeds)] + [TAG | 5, TAG | 3 << 29])

    def test_randoms(self):
        more = ["--algorithm osem --subsets 2 --iterations 6 --events", self.events(self.random_events(3000, 600))]
        found = self.recon(*more)
        counts = found["events"]
        self.assertEqual([counts[key] for key in ("prompts", "delayeds", "time_marks", "other_words",
                                                  "unknown_crystals")], [3000, 600, 1, 1, 0])
        self.assertLess(abs(found["randoms"]["sum"] / 600 - 1), 1e-6)
        self.assertLess(abs(found["randoms"]["fraction_of_prompts"] / 0.2 - 1), 1e-6)
        plain = self.recon(*more, "--randoms none")
        self.assertNotIn("randoms", plain)
        # Without randoms activity explains every count that it can reach, with them a part less.
        last, all_counts = found["iterations"][-1], plain["iterations"][-1]
        self.assertLess(abs(all_counts["sensitive_counts"] / all_counts["measured_counts"] - 1), 0.02)
        share = last["sensitive_counts"] / all_counts["sensitive_counts"]
        self.assertTrue(0.7 < share < 0.95, share)
        self.assertEqual(last["left_out_counts"], 0)

    def test_log_tells_of_randoms(self):
        recon = f"recon {self.on_ring} {GRID} --iterations 1 -o x.nii --events {self.events(self.random_events(50, 10))}"
        told = self.good(recon).stderr
        self.assertRegex(told, r"randoms by fan sums .*: 10 in all, 20.00 % of the prompts")
        self.assertIn("loraster: corrected for randoms (from the delayeds); not for attenuation (--mu), efficiencies "
                      "(--efficiencies), scatter (--additive)\n", told)
        told = self.good(f"{recon} --randoms none").stderr
        self.assertIn("efficiencies (--efficiencies), randoms (--randoms auto or --additive), scatter (--additive)\n", told)

    def test_no_delayeds_no_randoms(self):
        found = self.recon("--events", self.events(self.random_events(200, 0)), "--iterations 1")
        self.assertNotIn("randoms", found)

    def test_headers(self):
        events = self.events(self.random_events(100, 0), header=None)
        self.refuse_recon(3, ["events.l", "header"], f"--events {events}")
        elsewhere = self.write("about", HEADER)
        found = self.recon(f"--events {events} --header {elsewhere} --iterations 1")
        self.assertEqual(found["events"]["prompts"], 100)
        wrong = self.write("wrong", HEADER.replace(f"rings:={RINGS}", "rings:=64"))
        self.refuse_recon(3, ["wrong", "64 rings"], f"--events {events} --header {wrong}")
        self.refuse_recon(3, ["gone.hdr", "header"], f"--events {events} --header gone.hdr")

    def test_formats_are_told_apart(self):
        self.events(self.random_events(100, 0), "events.dat")
        self.refuse_recon(3, ["events.dat", "no list mode", "SAFIR", "--header"], f"--events events.dat")
        found = self.recon("--events events.dat --header events.l.hdr --iterations 1")
        self.assertEqual(found["events"]["prompts"], 100)
        self.refuse_recon(3, "gone.l", f"--events gone.l")
        os.mkdir("folder.l")
        self.refuse_recon(3, ["folder.l", "is a folder"], f"--events folder.l --header events.l.hdr")

    def test_the_real_acquisition_goes_through(self):
        """On a grid that is far too coarse for a head; the topic head has the whole of it."""
        events = self.real_data("mmr/small_listmode_file.l")
        found = self.json(f"recon --scanner siemens-mmr --backend native --events {events} --grid 11,13,5",
                          "--voxel-mm 20,20,30 --mode sampled --rays 1 --samples 1 --algorithm osem --iterations 2",
                          "-o x.nii")
        counts = found["events"]
        self.assertEqual((counts["prompts"], counts["delayeds"], counts["not_in_coincidence"]), (218881, 35320, 0))
        self.assertLess(abs(found["randoms"]["sum"] / 35320 - 1), 1e-6)
        self.assertEqual(found["iterations"][-1]["left_out_counts"], 0)
        first, second = self.likelihoods(found)
        self.assertGreater(second, first)

    def test_safir_by_its_content(self):
        events = self.real_data("safir/coincidencesLM.clm.safir")
        crystal_map = self.real_data("safir/DualRingPrototype_crystal_map.txt")
        os.symlink(events, "events.dat")
        os.symlink(crystal_map, "a_crystal_map.txt")
        found = self.json(f"recon --scanner safir-dual-ring-prototype {CPU} --events events.dat --grid 5,5,3",
                          "--voxel-mm 8,8,10 --mode sampled --rays 1 --samples 1 --algorithm osem --subsets 3",
                          "--iterations 2 -o x.nii")
        self.assertEqual(found["events"]["prompts"], 1408)
        # The source is at the centre: (2, 2, 1) of 5 x 5 x 3 voxels.
        values = self.values()
        self.assertEqual(values.index(max(values)), 2 + 5 * (2 + 5 * 1))


    def test_a_crystal_map_is_a_scanner(self):
        """Single crystals on circles and list mode as STIR's example has them: another signature, bytes of the writer's
        own behind it, and no scanner but the map."""
        around, rings, source_mm = 180, 5, (5, 0)
        lines = ["#ring\tdet\tx\ty\tz"]
        for n in range(around * rings):
            angle = n % around * 2 * math.pi / around
            lines.append(f"{n // around}\t{n % around}\t{63.019 * math.cos(angle):.3f}\t"
                         f"{63.019 * math.sin(angle):.3f}\t{2.2 * (n // around - 2):.3f}")
        crystal_map = self.write("a_crystal_map.txt", "\n".join(lines) + "\n")
        records = []
        for n in range(around):  # the line through each crystal and the source meets another one
            a = [63.019 * math.cos(n * 2 * math.pi / around), 63.019 * math.sin(n * 2 * math.pi / around)]
            way = [source_mm[0] - a[0], source_mm[1] - a[1]]
            t = -2 * (a[0] * way[0] + a[1] * way[1]) / (way[0] ** 2 + way[1] ** 2)
            other = round(math.atan2(a[1] + t * way[1], a[0] + t * way[0]) / (2 * math.pi) * around) % around
            records.append(2 | 2 << 8 | n << 16 | other << 32)
        signature = b"MUPET CListModeData\0" + bytes(4) + b"\xa5" * 8
        Path("a.clm.safir").write_bytes(signature + struct.pack(f"<{around}Q", *records))
        events = "a.clm.safir"
        shown = self.json(f"events show {events} --crystal-map {crystal_map}")
        self.assertEqual((shown["prompts"], shown["unknown_crystals"]), (around, 0))
        found = self.json(f"recon {CPU} --events {events} --crystal-map {crystal_map} --grid 9,9,1",
                          "--voxel-mm 2.5,2.5,2.2 --mode sampled --rays 1 --samples 1 --iterations 5 -o x.nii")
        self.assertEqual(found["events"]["prompts"], around)
        values = self.values()
        self.assertEqual(values.index(max(values)), 6 + 9 * 4)  # x = 5, y = 0
        self.good(f"scanner convert {crystal_map} map.yaml")
        self.good(f"events convert {events} a.Cdh --crystal-map {crystal_map}")
        self.assertEqual(self.json(f"events show {events}"), shown)  # the map beside is the default
        os.remove(crystal_map)
        self.refuse(3, "no crystal map", f"recon {CPU} --events {events} --grid 9,9,1 --voxel-mm 2.5 -o y.nii")


class Factors(ReconTest):
    NUM_CRYSTALS = MODULES * ACROSS * RINGS

    def test_uniform_efficiencies_scale_the_image(self):
        """Half of the efficiency at both ends: four times the activity for the same counts."""
        data = self.expected_counts()
        plain = self.recon(f"--data {data} --iterations 3")
        write_npy("e.npy", [self.NUM_CRYSTALS], [0.5] * self.NUM_CRYSTALS)
        half = self.recon(f"--data {data} --iterations 3 --efficiencies e.npy")
        text = self.recon(f"--data {data} --iterations 3 --efficiencies",
                          self.write("e.txt", "# all alike\n" + "0.5\n" * self.NUM_CRYSTALS))
        self.assertLess(abs(half["emissions"] / plain["emissions"] / 4 - 1), 1e-4)
        self.assertEqual(half["emissions"], text["emissions"])

    def test_wrong_efficiencies(self):
        data = self.expected_counts()
        for name, words in [(self.write("few.txt", "1 1 1"), ["few.txt", "128 crystals"]),
                            (self.write("bad.txt", "1\nx\n"), ["bad.txt:2", "not a number"]),
                            ("gone.npy", ["gone.npy"])]:
            self.refuse(3, words, f"recon {self.on_ring} {GRID} --data {data} -o x.nii --efficiencies {name}")

    def test_attenuation_factors_agree_with_lines(self):
        """A water-filled grid, 18 x 15 x 12 mm. The factor of a LOR is that of the line between its crystals' centres;
        lines of the element leave the centre by up to 2 mm at either end, which changes chords of at most 27 mm by a
        few mm, and exp(-0.0096 mm) by a few per cent at single LORs; signs differ, so that the sum of the image is much
        nearer than that."""
        mu = self.image("mu.nii", [0.0096] * NUM_VOXELS)
        data = self.expected_counts()
        plain = self.recon(f"--data {data} --iterations 2")
        lines = self.recon(f"--data {data} --iterations 2 --mu {mu} --mu-as lines --mu-steps 64")
        factors = self.recon(f"--data {data} --iterations 2 --mu {mu}")
        self.assertGreater(lines["emissions"], 1.1 * plain["emissions"])
        self.assertLess(abs(factors["emissions"] / lines["emissions"] - 1), 0.01)
        self.assertEqual(factors["operator"]["mu_steps"], 0)
        self.assertGreater(lines["operator"]["mu_steps"], 0)


class Head(ReconTest):
    """The mMR acquisition: 0.6 s of an FDG study of a head, 218,881 prompts, 35,320 delayeds."""
    SIZE, VOXEL_MM = (90, 90, 32), (6.6, 6.6, 8.1)

    def setUp(self):
        super().setUp()
        self.source = self.real_data("mmr/small_listmode_file.l")

    def smooth(self, values):
        """Means over 3 x 3 x 3 voxels: there are 0.8 prompts for each voxel."""
        for stride, size in ((1, 90), (90, 90), (8100, 32)):
            values = [(values[k] + (values[k - stride] if k // stride % size > 0 else 0) +
                       (values[k + stride] if k // stride % size < size - 1 else 0)) / 3 for k in range(len(values))]
        return values

    def largest_region(self, values, threshold):
        """Rows of the largest set of neighbouring voxels above the threshold."""
        left = {k for k, value in enumerate(values) if value > threshold}
        largest = set()
        while left:
            region, front = set(), [left.pop()]
            while front:
                k = front.pop()
                region.add(k)
                for stride, size in ((1, 90), (90, 90), (8100, 32)):
                    place = k // stride % size
                    found = left & {k + step for step in (-stride, stride) if 0 <= place + step // stride < size}
                    left -= found
                    front += found
            largest = max(largest, region, key=len)
        return largest

    def extent_mm(self, region, axis):
        stride = (1, 90, 8100)[axis]
        places = {k // stride % self.SIZE[axis] for k in region}
        return (max(places) - min(places) + 1) * self.VOXEL_MM[axis]

    def filled(self, region, row):
        """Rays from a voxel along +-x and +-y all meet the region: the voxel is in it, or in a hollow of it such
        as a ventricle."""
        x, y, rest = row % 90, row // 90 % 90, row // 8100 * 8100
        rays = ([(a, y) for a in range(x)], [(a, y) for a in range(x + 1, 90)], [(x, b) for b in range(y)],
                [(x, b) for b in range(y + 1, 90)])
        return row in region or all(any(rest + 90 * b + a in region for a, b in ray) for ray in rays)

    def check_shape(self, values):
        values = self.smooth(values)
        region = self.largest_region(values, max(values) / 3)
        total = sum(values)
        centre = [sum(value * (k // stride % size) for k, value in enumerate(values)) / total for stride,
                  size in ((1, 90), (90, 90), (8100, 32))]
        x, y, z = (round(c) for c in centre)
        extents = [self.extent_mm(region, axis) for axis in range(3)]
        print(f"region of {len(region)} voxels of {extents} mm; centre of activity at voxel {centre}")
        self.assertTrue(self.filled(region, x + 90 * (y + 90 * z)))
        # A head on its back is longer from front to back than from side to side.
        across, along, axial = extents
        self.assertTrue(120 < across < along < 260 and axial > 60, extents)

    def test_head(self):
        events = "small_listmode_file.l"
        os.symlink(self.source, events)
        os.symlink(self.source.parent / "PET_ACQ_small.l.hdr.STIR", "PET_ACQ_small.l.hdr.STIR")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = self.json(f"recon --scanner siemens-mmr --events {events} --grid 90,90,32 --voxel-mm 6.6,6.6,8.1",
                          "--algorithm osem --subsets 7 --iterations 3 -o head.nii.gz --png head.png")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        peak = after.ru_maxrss * 1024
        print(f"{seconds:.1f} s of processors, peak memory {peak / 2**30:.2f} GiB")
        keep = os.environ.get("LORASTER_KEEP_HEAD")
        if keep:
            for name in ("head.nii.gz", "head.png"):
                Path(keep, name).write_bytes(Path(name).read_bytes())
        self.check_figures(found)
        size, voxel_mm, _, values = read_nifti("head.nii.gz")
        self.assertEqual((*size, *(round(edge, 5) for edge in voxel_mm)), self.SIZE + self.VOXEL_MM)
        self.assertLess(abs(sum(values) / found["emissions"] - 1), 1e-5)
        self.check_shape(values)
        self.assertLess(peak, 4 * 2**30)
        self.assertLess(seconds, 2 * 600)  # 10 minutes of two processors

    def check_figures(self, found):
        counts = found["events"]
        self.assertEqual([counts[key] for key in ("prompts", "delayeds", "time_marks", "other_words",
                                                  "unknown_crystals", "not_in_coincidence")],
                         [218881, 35320, 613, 2, 0, 0])
        self.assertEqual(found["operator"]["samples"], [2, 2, 2])
        self.assertLess(abs(found["randoms"]["sum"] / 35320 - 1), 1e-6)
        self.assertLess(abs(found["randoms"]["fraction_of_prompts"] / (35320 / 218881) - 1), 1e-6)
        steps = found["iterations"]
        self.assertEqual(len(steps), 3)
        for before, after in zip(steps, steps[1:]):
            self.assertGreater(after["log_likelihood"], before["log_likelihood"])
        # Activity explains the counts that randoms do not; OSEM keeps the total to some per cent.
        self.assertLess(abs(steps[-1]["sensitive_counts"] / (218881 - 35320) - 1), 0.1)
        # From the centre of a cylinder of 328 mm by 2 x 129 mm a share of 129 / 352 of all pairs
        # meets it, less from anywhere else; from the head's ends, 100 mm off, it is a quarter of
        # that. Gaps take up to a third.
        detected = steps[-1]["sensitive_counts"]
        self.assertTrue(detected * 352 / 129 < found["emissions"] < detected * 352 / 129 * 6, found["emissions"])


main({"simulate": Simulate, "recon": Mlem, "osem": Osem, "ramla": Ramla, "bsrem": Bsrem, "psf": Psf, "siemens": Siemens,
      "factors": Factors, "head": Head})
