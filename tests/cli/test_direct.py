#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The verbs of the family direct: tables, projections, deposition, factors, reconstruction, bad input."""
import json, os, random, re, struct

import h5py, numpy

from program import SMALL_RING, ProgramTest, main, png_size, read_nifti, ring_of

SIZE, EDGE = (20, 18, 6), (2, 2, 2)
GRID = "--grid 20,18,6 --voxel-mm 2"
KERNEL = "--tof-ps 60 --radial-mm 3 --axial-mm 2.5"
RECON = "recon --operator direct"
RAMLA = f"{RECON} --algorithm ramla --views-per-block 1"
VIEWS = "--azimuths 6 --tilts 2 --acceptance-deg 16"
CPU = "--backend cpu --threads 1"


class Direct(ProgramTest):
    def activity(self, name="x.nii.gz"):
        """A box in the middle, twice as active in one corner."""
        values = []
        for k in range(SIZE[0] * SIZE[1] * SIZE[2]):
            x, y = k % SIZE[0], k // SIZE[0] % SIZE[1]
            values.append((2.0 if x < 8 and y < 8 else 1.0) if (5 <= x < 15 and 4 <= y < 14) else 0.0)
        return self.image(name, values, SIZE, EDGE)

    def counts(self, name="y.h5", *more):
        self.good(f"direct deposit --activity {self.activity()} --scanner {self.scanner} --tof-ps 60 {VIEWS} -o {name}",
                  *more)
        return name

    def random_image(self, seed):
        generator = random.Random(seed)
        x = numpy.array([generator.random() for _ in range(numpy.prod(SIZE))])
        return x, self.image("x.nii.gz", list(x), SIZE, EDGE)

    @staticmethod
    def histo(name="y.h5"):
        """Values, [view][voxel]."""
        with h5py.File(name) as file:
            return file["histo/values"][()]

    @staticmethod
    def values(name="r.nii.gz"):
        return numpy.array(read_nifti(name)[3])

    def other_histo(self, counts, name, values):
        with h5py.File(counts) as file, h5py.File(name, "w") as other:
            file.copy("histo", other)
            other["histo/values"][...] = values

    def near(self, a, b, most=1e-5):
        self.assertLess(numpy.linalg.norm(a - b) / numpy.linalg.norm(a), most)

    def on_device(self, *arguments):
        """The finished process; where there is no device for it the test is skipped."""
        done = self.run_program(*arguments)
        if done.returncode == 4:
            self.skipTest("no OpenGL: " + done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        return done


class Tables(Direct):
    def test_a_picture_and_its_figures(self):
        found = self.json(f"direct lut {KERNEL} {GRID} --azimuth-deg 90 -o t.png")
        self.assertEqual(found["identifiers"], 20)  # voxels to 19 mm, 1 mm each, borders above
        self.assertEqual((found["kernels"], found["epsilon_mm"]), (20, 1))
        self.assertEqual(found["half"], [1, 5, 1])  # 3 sigma: 3.8, 11.5, 3.2 mm
        self.assertGreater(min(png_size("t.png")), 300)

    def test_models(self):
        for model in (["--model variant1 --edge-mm 90"], ["--model variant2"],
                      ["--model linear --radial-edge-mm 5 --edge-mm 20"]):
            self.good("direct lut --tof-ps 60 --axial-mm 2", *model, f"{GRID} -o t.png")
        both = self.json(f"direct lut {KERNEL} {GRID} --asymmetric -o t.png")
        self.assertEqual(both["kernels"], 2 * both["identifiers"])
        wide = self.json(f"direct lut {KERNEL} {GRID} --support 12 -o t.png")
        self.assertGreater(wide["offsets"], self.json(f"direct lut {KERNEL} {GRID} -o t.png")["offsets"])

    def test_measured_kernels(self):
        path = self.write("k.yaml", "distance_mm: [0, 20]\nfirst_offset_mm: -4\noffset_step_mm: 2\n"
                                    "profiles: [[0, 1, 2, 1, 0], [1, 1, 1, 2, 0]]\n")
        found = self.json(f"direct lut --tof-ps 60 --axial-mm 2.5 --measured {path} {GRID} -o t.png")
        self.assertEqual((found["kernels"], found["half"][1]), (2 * found["identifiers"], 2))


class Projections(Direct):
    def test_back_is_the_transpose(self):
        x, image = self.random_image(3)
        self.good(f"direct project --image {image} {KERNEL}", f"{VIEWS} {CPU} -o y.h5")
        with h5py.File("y.h5") as file:
            y = file["histo/values"][()].astype(float)
            self.assertEqual((y.shape, list(file["histo/grid_size"])), ((12, len(x)), list(SIZE)))
            self.assertTrue(numpy.allclose(file["histo/views_deg"][7], [30, 8]))
        self.good(f"direct project --histo y.h5 {KERNEL} {CPU} -o b.nii.gz")
        back = self.values("b.nii.gz")
        left, right = (y * y).sum(), (x.astype("float32") * back.astype(float)).sum()
        self.assertLess(abs(left - right) / left, 1e-6)

    def test_one_view_is_one_of_the_set(self):
        x, image = self.random_image(4)
        one = f"--azimuth-deg 30 --tilt-deg 8 {KERNEL} {CPU}"
        self.good(f"direct project --image {image} {KERNEL}", f"{VIEWS} {CPU} -o y.h5")
        self.good(f"direct project --image {image} {one} -o f.npy")
        self.good(f"direct project --image {image} {one} --transpose -o b.npy")
        forward, back = numpy.load("f.npy"), numpy.load("b.npy")
        self.assertTrue((self.histo()[7] == forward.ravel()).all())
        x = x.astype("float32").reshape(SIZE[::-1])
        left, right = (forward * x).sum(dtype=float), (x * back).sum(dtype=float)
        self.assertLess(abs(left / right - 1), 1e-6)
        project = f"direct project --image {image} {KERNEL} -o f.npy"
        self.refuse(2, "leave out sets", f"{project} --azimuth-deg 30 --tilts 2")
        self.refuse(2, "--azimuth-deg", f"{project} --transpose")


class Depositions(Direct):
    def castor(self):
        """600 events on the small ring, in bins of 12 ps, which PETSIRD keeps."""
        lines = [(k, (5 * k) % 64, (64 + 17 * k) % 128, 12.0 * (k % 27 - 13)) for k in range(600)]
        data = b"".join(struct.pack("<IfII", time, ps, a, b) for time, a, b, ps in lines)
        self.write("e.Cdh", "Data filename: e.Cdf\nNumber of events: 600\nData mode: list-mode\nData type: PET\n"
                            "Scanner name: ring\nTOF information flag: 1\nTOF resolution (ps): 60\n"
                            "List TOF quantization bin size (ps): 12\n")
        with open("e.Cdf", "wb") as file:
            file.write(data)
        return "e.Cdh"

    def deposit(self, backend, *source):
        done = self.on_device("direct deposit", *source, f"--azimuths 6 --tilts 2 --acceptance-deg 40 {GRID}",
                              f"--scanner {self.scanner} --rule trilinear --backend {backend} --json -o y.h5")
        report = json.loads(done.stdout)
        self.assertEqual(report["backend"], backend)
        return report, self.histo().astype(float)

    def test_every_source_on_every_backend(self):
        self.good(f"events convert {self.castor()} e.petsird --scanner {self.scanner}")
        sources = {"pairs": [f"--activity {self.activity()} --tof-ps 60 --count 3000"], "CASToR": ["--events e.Cdh"],
                   "PETSIRD": ["--events e.petsird"]}
        reports = {}
        for name, source in sources.items():
            report, values = self.deposit("cpu", *source)
            other, found = self.deposit("compute", *source)
            for key in ("deposited", "too_tilted", "outside_grid"):
                self.assertEqual(report[key], other[key])
            self.assertGreater(report["deposited"], 60)
            self.assertAlmostEqual(values.sum(), report["weight"], delta=1e-4 * values.sum())
            self.near(values, found)
            # A bin of 12 ps widens the resolution by a variance of 12^2/6, in units of FWHM.
            bin_ps = 0 if name == "pairs" else 12
            self.assertAlmostEqual(report["tof_ps"], (60 ** 2 + 8 * numpy.log(2) / 6 * bin_ps ** 2) ** 0.5, delta=1e-3)
            reports[name] = report, values
        # Bins that cross the border of the grid are deposited in part, which is said.
        weight, deposited = (reports["CASToR"][0][key] for key in ("weight", "deposited"))
        self.assertLess(weight, deposited - 0.1)
        said = self.good(f"direct deposit --events e.Cdh --azimuths 6 --tilts 2 --acceptance-deg 40 {GRID}",
                         f"--scanner {self.scanner} {CPU.split(' --threads')[0]} -o y.h5").stdout
        self.assertRegex(said, rf"{deposited} events in 12 views, [0-9.]+ counts of them within the grid, whose border")
        # The same events, where bins are told to single precision
        self.near(reports["CASToR"][1], reports["PETSIRD"][1], 1e-4)


GAP_RING = ring_of("two rings with a gap", "radius_mm: 60, modules: 16, rings: 2, ring_pitch_mm: 26",
                   "crystals: [15, 12], pitch_mm: [1.55, 1.5], face_mm: [1.55, 1.5], depth_mm: 12",
                   "tof: {resolution_ps: 60}")


class Factors(Direct):
    SIZE = (16, 16, 21)
    WIDE = "--grid 16,16,21 --voxel-mm 2.3"
    SET = "--azimuths 8 --tilts 3 --acceptance-deg 18"

    def factors(self, *more):
        """As the file has them, with the report: [views][z][y][x]."""
        report = self.json(f"direct factors {self.SET} -o n.h5", *more)
        return report, self.histo("n.h5").reshape(24, *self.SIZE[::-1])

    def test_profiles_become_flat(self):
        """A uniform cylinder in a scanner with a gap amid it: its profile along the axis is uneven without factors, and
        even with them."""
        scanner = self.write("gap.yaml", GAP_RING)
        inside = [(x - 7.5) ** 2 + (y - 7.5) ** 2 < 30 for y in range(16) for x in range(16)]
        activity = self.image("c.nii.gz", [float(k) for k in inside] * 21, self.SIZE, (2.3,) * 3)
        self.good(f"direct deposit --activity {activity} --scanner {scanner} {self.SET} --count 400000",
                  f"--rule trilinear {CPU} -o y.h5")
        report, values = self.factors(f"{self.WIDE} --scanner {scanner}")
        self.assertEqual((report["views"], report["directions"]), (24, 32))
        self.assertEqual((report["efficiencies"], report["mu"]), (None, None))
        self.assertAlmostEqual(report["mean"], values.astype(float).mean(), 9)
        self.assertAlmostEqual(report["low"], float(values.min()), 9)
        self.assertAlmostEqual(report["high"], float(values.max()), 9)
        kernel = "--tof-ps 60 --radial-mm 1.5 --axial-mm 1.5"
        spreads = []
        for more in ([], ["--factors n.h5"]):
            done = self.good(f"{RECON} --data y.h5 {kernel} {CPU} --algorithm osem --views-per-block 6 --iterations 2",
                             "-o r.nii.gz", *more)
            self.assertIn("corrected for what --factors has of attenuation, efficiencies and geometry; not for randoms "
                          "and scatter (--additive)" if more else
                          "not corrected for attenuation, efficiencies and geometry (--factors, of loraster direct "
                          "factors), randoms and scatter (--additive)", done.stderr)
            profile = self.values().reshape(self.SIZE[::-1])[3:-3, 6:10, 6:10].mean(axis=(1, 2))
            spreads.append(profile.std() / profile.mean())
        print(f"spread of the axial profile: {spreads[0]:.3f}, with factors {spreads[1]:.3f}")
        self.assertGreater(spreads[0], 0.15)
        self.assertLess(spreads[1], 0.05)

    def test_images_are_in_emissions(self):
        """List mode of an attenuating cylinder, whose emissions the exact elements of the family correspondence tell.

        The image moves some activity along the axis, where a voxel of 2.5 mm changes the sensitivity by a tenth, and
        60,000 counts have a standard deviation of 0.4 %: hence 5 %. Without the attenuation, or with the scale of
        another number of views, the sum is wrong by 45 % and more."""
        size, grid = (16, 16, 14), "--like a.nii.gz"
        at = [((k % 16 - 7.5) ** 2 + (k // 16 % 16 - 7.5) ** 2, k // 256) for k in range(16 * 16 * 14)]
        activity = [1.0 + (k % 16 < 7) if r2 < 30 and 4 <= z < 10 else 0.0 for k, (r2, z) in enumerate(at)]
        self.image("a.nii.gz", activity, size, (2.5,) * 3)
        self.image("mu.nii.gz", [0.02 * (r2 < 45) for r2, _ in at], size, (2.5,) * 3)
        scanner = self.write("tof.yaml", ring_of(
            "ring", "radius_mm: 60, modules: 16, rings: 1", "crystals: [8, 12], pitch_mm: [2.98, 3], "
            "face_mm: [2.98, 3], depth_mm: 12", "tof: {resolution_ps: 60}"))
        simulate = f"simulate --scanner {scanner} --image a.nii.gz --mu mu.nii.gz --threads 1"
        expected = self.json(f"{simulate} --expected --backend native -o e.h5")["counts"]
        self.good(f"{simulate} --counts 60000 --tof-ps 60 -o y.petsird")
        emissions = 60000 * sum(activity) / expected
        self.image("truth.nii.gz", [x * emissions / sum(activity) for x in activity], size, (2.5,) * 3)
        recon = f"{RECON} --data y.h5 --radial-mm 3 --axial-mm 3 {CPU} --algorithm osem --subsets 4 --truth"
        for views in ("--azimuths 12 --tilts 3 --acceptance-deg 10", "--azimuths 8 --tilts 1 --acceptance-deg 14"):
            self.good(f"direct deposit --events y.petsird {views} {grid} -o y.h5")
            self.good(f"direct factors --scanner {scanner} {views} --mu mu.nii.gz {grid} -o n.h5")
            found = self.json(f"{recon} truth.nii.gz --factors n.h5 -o r.nii.gz")
            print(f"{views}: {found['emissions'] / emissions:.4f} of the emissions")
            self.assertAlmostEqual(found["emissions"] / emissions, 1, delta=0.05)
            self.assertAlmostEqual(self.values().sum() / emissions, 1, delta=0.05)
            self.assertLess(found["iterations"][-1]["image_error"], 0.5)

        # Without factors, or with factors of unknown origin, the scale is fitted before the image is compared.
        self.other_histo("y.h5", "ones.h5", numpy.ones(self.histo().shape))
        for factors, why in (("", "there are no --factors"), ("--factors ones.h5", "ones.h5 does not say")):
            done = self.good(f"{recon} a.nii.gz {factors} -o r.nii.gz")
            self.assertIn("in all (relative; emissions only with --factors of direct factors)", done.stdout)
            self.assertIn(f"the image has a scale of its own, and is not in emissions: {why}", done.stderr)
            self.assertIn("after fitting its scale", done.stderr)
            self.assertNotIn("multiply", done.stderr)
            self.assertIn("image_sum", self.json(f"{recon} a.nii.gz {factors} -o r.nii.gz"))

    def test_counts_without_a_factor_are_named(self):
        """Counts where the factors are 0 are left out, and one line says how many, with the fit and without."""
        counts = self.counts("y.h5", "--count 20000")
        y = self.histo()
        factors = numpy.ones(y.shape)
        blind = numpy.flatnonzero(y[5])[:40]
        factors[5, blind] = 0
        self.other_histo(counts, "n.h5", factors)
        recon = f"{RECON} --data {counts} --radial-mm 3 --axial-mm 2.5 --factors n.h5 -o r.nii.gz"
        lines = [self.good(recon, CPU).stderr, self.on_device(recon, "--backend compute").stderr]
        for told in lines:
            line, = re.findall(r".*histo-image voxels with \S+ counts .*are left out.*", told)
            self.assertIn(f"40 histo-image voxels with {y[5, blind].sum():.4g} counts", line)

    def test_parts_are_multiplied(self):
        """Efficiencies of a half are a quarter; a map of water takes some of each line; the set, the grid and the
        number of threads are those asked for."""
        scanner = ["--scanner", self.write("gap.yaml", GAP_RING), "--directions 4"]
        _, plain = self.factors(self.WIDE, *scanner)
        halves = self.write("e.txt", "0.5\n" * (16 * 2 * 15 * 12))
        water = self.image("mu.nii.gz", [0.0096] * (16 * 16 * 21), self.SIZE, (2.3,) * 3)
        report, less = self.factors(self.WIDE, *scanner, f"--efficiencies {halves} --threads 1")
        self.assertTrue(numpy.allclose(less, plain / 4, rtol=1e-5))
        self.assertEqual(report["efficiencies"], halves)
        report, wet = self.factors(*scanner, f"--mu {water}")  # on the map's grid
        self.assertEqual(report["grid"]["size"], list(self.SIZE))
        seen = plain[:, 10, 8, 8] > 0.1 * plain.max()
        share = wet[:, 10, 8, 8][seen] / plain[:, 10, 8, 8][seen]
        # chords of a square 36.8 mm wide, through nearly its middle
        self.assertTrue((numpy.exp(-0.0096 * 36.8 * 1.5) < share).all())
        self.assertTrue((share < numpy.exp(-0.0096 * 36.8 * 0.95)).all())

    def test_bad_input(self):
        factors = "direct factors -o n.h5"
        on = f"{factors} --scanner {self.scanner}"
        self.refuse(2, "--scanner", f"{factors} {GRID}")
        self.refuse(2, "grid", on)
        self.refuse(2, "-o", f"direct factors --scanner {self.scanner} {GRID}")
        self.refuse(2, "--directions", f"{on} {GRID} --directions 0")
        self.refuse(2, "acceptance of 95", f"{on} {GRID} --acceptance-deg 95")
        self.refuse(3, "e.txt", f"{on} {GRID} --efficiencies", self.write("e.txt", "1\n2\n"))
        self.refuse(2, "--mu-unit", f"{on} {GRID} --mu-unit hu")
        self.refuse(3, "0 everywhere", f"{on} {GRID} --origin-mm 0,0,900")

    def test_slips_are_warned_of(self):
        """A grid in cm, and a scanner's radius that is its diameter."""
        wide = self.write("wide.yaml", SMALL_RING.replace("radius_mm: 30", "radius_mm: 60"))
        tiny = "--grid 20,18,6 --voxel-mm 0.2 --azimuths 2 --tilts 1"
        for verb in (f"direct deposit --activity {self.activity()} --tof-ps 60 --count 2000 -o y.h5",
                     "direct factors -o n.h5"):
            self.assertRegex(self.good(f"{verb} --scanner {self.scanner} {tiny}").stderr,
                             "warning: voxels of 0.2 x .*edges given in cm")
            self.assertIn("the radius looks like the diameter", self.good(f"{verb} --scanner {wide} {GRID}").stderr)


class Reconstructions(Direct):
    def test_the_time_resolution_is_that_of_the_file(self):
        """Histo-images keep their time resolution; --tof-ps goes before it."""
        counts = self.counts()
        with h5py.File(counts) as file:
            self.assertEqual(file["histo"].attrs["tof_ps"], 60)
        recon = f"{RECON} --data {counts} --radial-mm 3 --axial-mm 2.5 {CPU} -o r.nii.gz"
        self.assertIn("time resolution 60 ps, of the histo-images", self.good(recon).stderr)
        own = self.values()
        self.assertNotIn("differs", self.good(f"{recon} --tof-ps 60").stderr)
        self.assertTrue((self.values() == own).all())
        self.assertNotIn("differs", self.good(f"{recon} --tof-ps 65").stderr)
        self.assertIn("--tof-ps 70 differs from the time resolution of the histo-images, 60 ps",
                      self.good(f"{recon} --tof-ps 70").stderr)
        self.assertFalse((self.values() == own).all())
        with h5py.File(counts, "a") as file:
            file["histo"].attrs["tof_ps"] = -1.0
        self.refuse(3, "tof_ps", recon)
        with h5py.File(counts, "a") as file:
            del file["histo"].attrs["tof_ps"]
        self.refuse(2, "--tof-ps", recon)

    def test_from_events_to_an_image(self):
        """RAMLA brings out the corner that is twice as active; all events are accounted for."""
        report = self.json(f"direct deposit --activity {self.activity()} --scanner {self.scanner} --tof-ps 60 {VIEWS}",
                           "--count 60000 --rule trilinear -o y.h5")
        self.assertEqual(report["deposited"] + report["too_tilted"] + report["outside_grid"], 60000)
        simulate = f"simulate --scanner {self.scanner} --image x.nii.gz --counts 60000 --expected -o e.h5"
        scale = self.json(simulate)["scale"]
        self.assertAlmostEqual(report["scale"] / scale, 1, delta=4 / 60000 ** 0.5)  # four standard errors
        self.assertLess(abs(self.histo().astype(float).sum() / report["deposited"] - 1), 1e-4)
        for algorithm in (["--algorithm ramla --views-per-block 1 --fall 0.3"],
                          ["--algorithm osem --views-per-block 3"], ["--algorithm mlem --iterations 6"]):
            self.good(f"{RECON} --data y.h5", f"{KERNEL} {CPU}", *algorithm, "-o r.nii.gz")
            values = self.values().reshape(SIZE[::-1])
            hot = values[2:4, 5:7, 6:7].mean()
            warm = values[2:4, 10:13, 10:14].mean()
            cold = values[2:4, 0:2, 0:3].mean()
            self.assertGreater(hot, 1.4 * warm)
            self.assertLess(cold, 0.2 * warm)

    def test_relaxation_falls_on(self):
        """Four iterations are two, and two more of their image, with the same numbers."""
        recon = [f"{RAMLA} --data {self.counts()}", f"{KERNEL} {CPU} --fall 1.5"]
        self.good(*recon, "--iterations 4 -o whole.npy")
        self.good(*recon, "--iterations 2 -o half.npy")
        rest = [*recon, "--iterations 2 --initial half.npy"]
        self.assertIn("iteration 4", self.good(*rest, "--after 2 --save-every 1 -o rest.npy").stderr)
        self.assertTrue(os.path.exists("rest.iter3.npy"))
        self.good(*rest, "-o anew.npy")
        whole, rest, anew = (numpy.load(f"{name}.npy") for name in ("whole", "rest", "anew"))
        # The image between is kept in single precision.
        self.assertTrue(numpy.allclose(rest, whole, rtol=1e-5, atol=1e-6 * whole.max()))
        self.assertFalse(numpy.allclose(anew, whole, rtol=1e-2))
        self.refuse(2, "--initial", *recon, "--after 2 -o x.npy")

    def test_one_block_of_all_views_is_mlem(self):
        """OSEM of one block is ML-EM, with factors and an additive term; and OSEM of subsets."""
        counts = self.counts("y.h5", "--count 20000")
        for name, least in (("n.h5", 0.5), ("b.h5", 0.1)):
            self.other_histo(counts, name, least + numpy.random.default_rng(1).random(self.histo(counts).shape))
        more = f"--additive b.h5 --factors n.h5 {KERNEL} {CPU} --iterations 4"
        found = self.json(f"{RECON} --data {counts}", f"{more} --algorithm osem --views-per-block 100 -o a.nii.gz")
        self.assertEqual((found["subsets"], found["views_per_block"]), (1, 100))
        found = self.json(f"{RECON} --data {counts}", f"{more} --algorithm mlem -o b.nii.gz --png b.png")
        self.assertEqual((found["operator"]["family"], found["scanner"]), ("direct", None))
        likelihoods = [one["log_likelihood"] for one in found["iterations"]]
        self.assertEqual(likelihoods, sorted(likelihoods))
        self.near(self.values("a.nii.gz"), self.values("b.nii.gz"))
        found = self.json(f"recon --operator direct --data {counts} {KERNEL} {CPU} --algorithm osem --subsets 4",
                          "-o c.nii.gz")
        self.assertEqual(found["subsets"], 4)
        last = found["iterations"][-1]
        self.assertAlmostEqual(last["sensitive_counts"] / last["measured_counts"], 1, 4)

    def test_the_common_loop_has_bsrem(self):
        counts = self.counts("y.h5", "--count 20000")
        found = self.json(f"recon --operator direct --data {counts} {KERNEL} {CPU} --algorithm bsrem --prior rdp",
                          "--beta 0.1 --subsets 2 --iterations 4 -o b.nii.gz")
        objectives = [step["log_likelihood"] - step.get("penalty", 0) for step in found["iterations"]]
        self.assertEqual(objectives, sorted(objectives))
        self.assertGreaterEqual(min(read_nifti("b.nii.gz")[3]), 0)

    def test_whole_updates_give_the_same_image(self):
        """On a device, which tells the fit only when it is asked to."""
        counts = self.counts("y.h5", "--count 20000")
        images = []
        for fit in ([], ["--fit"]):
            done = self.on_device(f"recon --operator direct --data {counts} {KERNEL} --backend compute",
                                  "--algorithm ramla --subsets 4", *fit, "--json -o a.nii.gz")
            last = json.loads(done.stdout)["iterations"][-1]
            self.assertEqual("log_likelihood" in last, bool(fit))
            self.assertGreater(last["device_seconds"], 0)
            images.append(self.values("a.nii.gz"))
        self.near(*images)
        self.refuse(2, "belongs to --operator direct", f"recon --data {counts} --fit -o a.nii.gz")

    def test_the_same_seed_gives_the_same_events(self):
        self.counts("a.h5", "--count 500")
        self.counts("b.h5", "--count 500")
        self.counts("c.h5", "--count 500 --seed 2")
        a, b, c = (self.histo(name + ".h5") for name in "abc")
        self.assertTrue((a == b).all())
        self.assertFalse((a == c).all())


class BadInput(Direct):
    def test_kernels(self):
        lut = f"direct lut {GRID} -o t.png"
        self.refuse(2, "--tof-ps", lut)
        self.refuse(2, ["--tof-ps 0", "positive"], f"{lut} --tof-ps 0")
        self.refuse(2, ["--radial-mm 0", "positive"], f"{lut} --tof-ps 60 --radial-mm 0")
        self.refuse(2, "number", f"{lut} --tof-ps fast")
        self.refuse(2, ["voxels long along x", "20"], f"{lut} --tof-ps 600")
        self.refuse(2, ["along z", "6"], f"{lut} --tof-ps 60 --axial-mm 30")
        self.refuse(2, "tilt of 90", lut, f"{KERNEL} --tilt-deg 90")
        self.refuse(2, "--radial-edge-mm", lut, f"{KERNEL} --model linear")
        self.refuse(3, "no-such.yaml", f"{lut} --tof-ps 60 --measured no-such.yaml")

    def test_views(self):
        deposit = f"direct deposit --activity {self.activity()} --scanner {self.scanner} --tof-ps 60 -o y.h5"
        self.refuse(2, "--azimuths", f"{deposit} --azimuths 0")
        self.refuse(2, "acceptance of 95", f"{deposit} --acceptance-deg 95")
        self.refuse(2, "either", f"direct deposit --scanner {self.scanner} -o y.h5")
        self.refuse(2, "belongs to --activity", f"direct deposit --events e.petsird --model variant1 {GRID} -o y.h5")

    def test_events_without_time_of_flight(self):
        self.good(f"simulate --scanner {self.scanner} --backend cpu --phantom spheres --grid 6,5,3 --voxel-mm 3,3,4",
                  "--counts 200 -o e.petsird")
        self.refuse(3, "without time of flight", f"direct deposit --events e.petsird {GRID} -o y.h5")

    def test_histo_images_of_another_grid(self):
        counts = self.counts()
        self.good("direct project --image", self.image("z.nii.gz", None, (20, 18, 6), (3, 2, 2)), KERNEL,
                  f"{VIEWS} {CPU} -o other.h5")
        recon = [RAMLA, f"{KERNEL} {CPU} -o r.nii.gz"]
        self.refuse(3, ["along x", "same grid"], *recon, f"--data {counts} --additive other.h5")
        self.refuse(2, "grid", *recon, f"--data {counts} --grid 20,18,6 --voxel-mm 3")
        with h5py.File("other.h5", "w") as file:
            file["x"] = 1
        self.refuse(3, "/histo", *recon, "--data other.h5")
        os.truncate(counts, 1000)
        self.refuse(3, "y.h5", *recon, f"--data {counts}")

    def test_families(self):
        direct = f"{RECON} -o r.nii.gz"
        blocks = "--views-per-block 2"
        self.refuse(2, "all views in one block", f"{direct} --data y.h5 {KERNEL} {blocks}")
        self.refuse(2, ["--subsets", "exclude"], f"{direct} --data y.h5 {KERNEL} --algorithm osem --subsets 2", blocks)
        for more in (blocks, "--storage textures"):
            self.refuse(2, [more.split()[0], "direct"], f"recon --data y.h5 --scanner {self.scanner}",
                        f"-o r.nii.gz {more}")
        self.refuse(2, "--data", direct, KERNEL)
        for option in ("--mu m.nii", "--efficiencies e.txt"):
            self.refuse(2, ["direct factors", option.split()[0], "--factors"], f"{direct} --data y.h5 {option}")
        self.write("l.h5", "")
        with h5py.File("l.h5", "w") as file:
            file["lor_data/values"] = [1.0]
        self.refuse(3, ["l.h5", "direct deposit", "without --operator direct"], f"{direct} --data l.h5")
        self.refuse(2, ["--scanner", "correspondence"], f"{direct} --data y.h5", f"{KERNEL} --scanner {self.scanner}")
        self.refuse(2, ["--tof-ps", "direct"], f"recon --data y.h5 --scanner {self.scanner} -o r.nii.gz {KERNEL}")
        self.refuse(2, "views, of which there are 12", f"{direct} --data {self.counts()}",
                    f"{KERNEL} {CPU} --algorithm osem --subsets 13")

    def test_lone_words(self):
        self.refuse(2, ["lut", "deposit", "factors", "project"], "direct")


class Bench(ProgramTest):
    def test_one_case_and_a_file(self):
        out = self.path("bench.json")
        self.good("bench", "direct", "--case", "axial 5 mm", "--backend", "cpu", "--repeat",
                  "1", "--seconds", "1", "--no-fourier", "-o", out)
        with open(out, encoding="utf-8") as file:
            case, = json.load(file)["results"]
        self.assertEqual((case["workload"], case["variant"], case["fft"]), ("caches", "cpu", []))
        self.assertIn(f"| caches, {case['case']}; cpu | {case['offsets']:.0f} | forward | ", self.table(out))

    def variants(self, *arguments, **options):
        """Of one case: what was measured, and what was skipped for it has no device."""
        done = self.good("bench", "direct", "--case", "axial 5 mm", "--no-fourier", "--repeat", "1",
                         "--seconds", "1", "--json", *arguments, **options)
        measured = [case["variant"] for case in json.loads(done.stdout)["results"]]
        return measured, re.findall(r"^loraster: (.*) is skipped: no (?:CUDA )?device$", done.stderr, re.M)

    def test_storages_of_compute(self):
        without_gl = dict(os.environ, __EGL_VENDOR_LIBRARY_FILENAMES="/nonexistent")
        self.assertEqual(self.variants("--backend", "compute", "--storage", "both", env=without_gl),
                         ([], ["compute, buffers", "compute, textures"]))
        one = ["--backend", "compute", "--storage", "textures"]
        self.assertEqual(self.variants(*one), (["compute, textures"], []))

    def test_variants_of_cuda_that_a_storage_has(self):
        columns = [f"cuda, {way}, buffers" for way in ("bands", "columns")]
        gathers = [f"cuda, {way}" for way in ("threads", "instructions", "shared memory", "texture cache")]
        both = [f"{way}, {storage}" for way in gathers for storage in ("buffers", "textures")]
        on_buffers = columns + [f"{way}, buffers" for way in gathers]
        for storage, names in [([], on_buffers), (["--storage", "buffers"], on_buffers),
                               (["--storage", "textures"], [f"{way}, textures" for way in gathers]),
                               (["--storage", "both"], columns + both)]:
            measured, left_out = self.variants("--backend", "cuda", *storage)
            self.assertEqual(measured or left_out, names)
        for way, names in [("columns", columns[-1:]), ("threads", both[:2])]:
            measured, left_out = self.variants("--backend", "cuda", "--storage", "both", "--variant", way)
            self.assertEqual(measured or left_out, names)

    def test_cases_that_are_not_there(self):
        bench = ["bench", "direct", "--backend", "cpu"]
        self.refuse(2, "--case", *bench, "--case", "variant 7")
        self.refuse(2, ["--paper", "--case"], *bench, "--case", "variant 2", "--paper")
        self.refuse(2, "--variant", *bench, "--variant", "columns")
        self.refuse(2, ["--storage", "cpu"], *bench, "--storage", "textures")
        self.refuse(2, ["--variant columns", "buffers", "threads"], "bench", "direct", "--backend", "cuda", "--variant",
                    "columns", "--storage", "textures")
        self.refuse(1, "no/such", *bench, "--case", "variant 2", "-o", "no/such/folder.json")

    def test_a_case_of_the_paper(self):
        found = self.json("bench direct --workload caches --backend cpu --repeat 1 --seconds 1 --paper")
        case, = found["results"]
        self.assertEqual(case["workload"], "caches")
        # 29 x 5 x 3 at most, and the ellipsoid's share of it in most views
        self.assertTrue(100 < case["offsets"] < 29 * 5 * 3)
        for key in ("forward", "back", "tables", "forward_batch"):
            self.assertGreater(case[key]["wall_seconds"], 0)
        self.assertIs(found["paper"], True)
        shown = self.table(self.write("found.json", json.dumps(found)))
        self.assertIn("Table 2 of paper 2", shown)
        self.assertIn("| paper 2, texture cache (GTX 480) | 0.10932 | 0.07612 | 0.00003 | 24 |", shown)
        self.assertIn("Fourier transforms 40 s", shown)
        self.assertEqual(len(re.findall(r"(?m)^\| cpu \|", shown)), 1)
        section = (self.source_root / "docs/formats/json.md").read_text().split("## bench\n")[1]
        for key in [*found, *case, *(key for peer in case["fft"] for key in peer)]:
            self.assertTrue(key in ("verb", "version") or f"`{key}`" in section, key)
        for peer in case["fft"]:
            self.assertIn(f"| {peer['name']} | {' x '.join(map(str, peer['size']))}", shown)
        if not case["fft"]:
            self.skipTest("the program was built without FFTW, and there is no CUDA device")
        for cyclic, padded in zip(case["fft"][::2], case["fft"][1::2]):
            self.assertEqual((cyclic["library"], cyclic["size"]), (padded["library"], [144, 144, 62]))
            self.assertTrue(padded["size"][0] > 144 and padded["single"]["wall_seconds"] > 0)
            # ends that meet are seen; without them what is left is the transform's single precision
            self.assertGreater(cyclic["error"], 1e-3)
            self.assertLess(padded["error"], 1e-6)


main({"tables": Tables, "projections": Projections, "deposit": Depositions, "factors": Factors, "recon":
      Reconstructions, "bad_input": BadInput, "bench": Bench})
