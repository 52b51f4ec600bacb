#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small things that a day's work needs: a whole measurement simulated, lists merged and counted, images smoothed,
counts seen, frames in one file."""
import gzip, math, os, re, struct
from pathlib import Path

from program import GRID, NUM_VOXELS, ProgramTest, main, read_nifti, read_png, write_nifti


class Measurement(ProgramTest):
    def test_the_truth_stays(self):
        """ML-EM with the model of the simulation leaves the image alone that the expectation comes from: attenuation,
        efficiencies and randoms are the same on both sides."""
        self.image("mu.nii", [0.0096 + 0.0001 * k for k in range(NUM_VOXELS)])
        self.write("eff.txt", "\n".join(str(0.5 + k % 7 / 8) for k in range(128)))
        found = self.json(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 1e5 --mu mu.nii",
                          "--efficiencies eff.txt --randoms 0.3 --expected -o y.h5 --additive r.h5 --truth t.nii")
        self.assertAlmostEqual(found["counts"], 1e5, delta=1)
        recon = (f"recon {self.on_ring} {GRID} --data y.h5 --initial t.nii --iterations 1 -o x.nii "
                 "--efficiencies eff.txt")
        done = self.json(f"{recon} --mu mu.nii --additive r.h5")["iterations"][0]
        truth, image = (read_nifti(name)[3] for name in ("t.nii", "x.nii"))
        for one, other in zip(truth, image):
            self.assertAlmostEqual(one, other, delta=1e-4 * max(truth))
        trues = self.json(f"simulate {self.on_ring} --image t.nii --mu mu.nii",
                          "--efficiencies eff.txt --expected -o z.h5")
        self.assertAlmostEqual(trues["counts"], 0.7e5, delta=1)
        self.assertAlmostEqual(done["measured_counts"], 1e5, delta=1)
        # Without the randoms that were added, the image is another.
        self.good(f"{recon} --mu mu.nii")
        self.assertGreater(sum(read_nifti("x.nii")[3]), 1.2 * sum(truth))

    def test_attenuation_by_lines_is_near(self):
        """Factors, which are quicker and the default, are what lines give, as far as a map's voxels let them."""
        self.image("mu.nii", [0.0096] * NUM_VOXELS)
        simulate = f"simulate {self.on_ring} --phantom spheres {GRID} --mu mu.nii --expected -o y.h5"
        default, factors, lines = (self.json(f"{simulate} {how}")["counts"]
                                   for how in ("", "--mu-as factors", "--mu-as lines"))
        self.assertEqual(default, factors)
        self.assertAlmostEqual(default / lines, 1, delta=0.01)

    def test_a_truth_in_another_unit_is_warned_of(self):
        """The truth that simulate writes is silent, and so is five times as much; a twentieth and twenty times are not,
        and the factor that the warning names makes the truth silent."""
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 1e5 -o y.h5 --truth t.nii")
        size, voxel_mm, _, truth = read_nifti("t.nii")
        for scale, is_odd in ((1, False), (5, False), (0.05, True), (20, True)):
            write_nifti("scaled.nii", size, voxel_mm, [scale * value for value in truth])
            recon = f"recon {self.on_ring} {GRID} --data y.h5 --iterations 2 --truth scaled.nii -o x.nii"
            told = self.good(recon).stderr
            self.assertEqual("scaled.nii adds up to" in told, is_odd, told)
            if is_odd:
                factor = float(re.search(r"multiply it by about (\S+)", told)[1])
                self.assertAlmostEqual(factor * scale, 1, delta=0.05)

    def test_causes_of_what_is_left_out_are_of_this_run(self):
        """A grid that is too small leaves out counts. Only causes are named that the run can have."""
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 20000 -o y.h5")
        self.good(f"simulate --scanner {self.scanner} --phantom spheres {GRID} --counts 5000 --tof-ps 200 -o t.petsird")
        self.write("eff.txt", "\n".join("0" if k % 9 == 0 else "1" for k in range(128)))
        causes = {"efficiency": "15 of 128 crystals have an efficiency of 0", "time": "times of flight that point beside",
                  "randoms": "--additive", "rays": "more --rays", "samples": "more --samples"}
        events = "--operator listmode --events t.petsird --backend cpu"
        for what, more, wanted in (("LORs", "--data y.h5 --mode exact", {"randoms"}),
                                   ("LORs", "--data y.h5 --mode sampled --rays 1", {"randoms", "rays"}),
                                   ("LORs", "--data y.h5 --mode exact --efficiencies eff.txt", {"randoms", "efficiency"}),
                                   ("events", events, {"randoms", "time"}),
                                   ("events", f"{events} --without-tof --efficiencies eff.txt", {"randoms", "efficiency"}),
                                   ("events", f"{events} --kernel exact --samples 1", {"randoms", "time", "samples"})):
            told = self.good(f"recon --scanner {self.scanner} --grid 2,2,3 --voxel-mm 3,3,4 --iterations 1 {more} -o x.nii")
            line, = re.findall(r"warning: (\d+ .* are left out, and .*)", told.stderr)
            self.assertRegex(line, rf"^\d+ {what} with")
            self.assertEqual({name for name, words in causes.items() if words in line}, wanted, line)
            self.assertLess(line.index("the image misses them"), line.index("Are they randoms or scatter"))
            self.assertLess(line.index("Are they randoms or scatter"), line.index("a larger grid"))

    def test_no_additive_without_counts(self):
        """One expected count is none in a third of the draws."""
        simulate = f"simulate {self.on_ring} --phantom spheres {GRID} --counts 1 --randoms 0.3 --additive r.h5 -o y.h5"
        seeds = 0
        for seed in range(20):
            for name in ("r.h5", "y.h5"):
                Path(name).unlink(missing_ok=True)
            done = self.run_program(f"{simulate} --seed {seed}")
            self.assertEqual(os.path.exists("r.h5"), done.returncode == 0)
            seeds += done.returncode != 0
        self.assertTrue(0 < seeds < 20)

    def test_usage(self):
        simulate = f"simulate {self.on_ring} --phantom spheres {GRID} --counts 1e3 -o y.h5"
        self.refuse(2, ["--randoms 30", "share", "0.3"], f"{simulate} --randoms 30")
        self.refuse(2, ["--additive", "--randoms"], f"{simulate} --additive r.h5")
        alone, both = (self.json(f"{simulate} --randoms 0.3 --dry-run {more}")["forecast"]["disk_bytes"]
                       for more in ("", "--additive r.h5"))
        self.assertEqual(both, 2 * alone)
        self.refuse(2, ["--tof-ps", "leave out --efficiencies"],
                    f"simulate --scanner {self.scanner} --phantom spheres {GRID} --counts 9 --tof-ps 300",
                    "--efficiencies e.txt -o y.petsird")
        for verb, words in (("recon", "of counts per LOR alone"), ("simulate", "not with --tof-ps")):
            text = " ".join(self.good(verb, "--help").stdout.split())
            self.assertRegex(text, rf"--dry-run only say what it would take: memory and disk; {words}")

    def test_randoms_have_no_place(self):
        """Pairs come from within 12 mm of the axis. Farther out along a line, beyond what 100 ps and the crystals blur, are
        randoms alone: as many everywhere as their share of all events asks for."""
        grid = "--grid 8,8,4 --voxel-mm 3,3,3"
        self.good(f"phantom cylinder --radius-mm 6 {grid} -o c.nii")
        simulate = f"simulate --scanner {self.scanner} --image c.nii --tof-ps 100"
        both = f"{simulate} --counts 20000 --randoms 0.4 --additive r.h5"
        self.good(f"{simulate} --counts 12000 -o trues.petsird")
        self.good(f"{both} -o both.petsird")
        self.good(f"{both} -o both.tsv")
        rows = [line.split("\t") for line in Path("both.tsv").read_text().splitlines()]
        places = [float(row[rows[0].index("tof_mm")]) for row in rows[1:]]
        times = [int(row[0]) for row in rows[1:]]
        self.assertEqual((len(places), times), (20000, sorted(times)))
        window = 2 * max(map(abs, places))
        far = [place for place in places if abs(place) > 30]
        due = 8000 * (1 - 60 / window)
        self.assertLess(abs(len(far) - due), 5 * math.sqrt(due))
        self.assertLess(abs(sum(place > 0 for place in far) - len(far) / 2), 2.5 * math.sqrt(len(far)))
        outer = sum(abs(place) > 0.25 * window + 15 for place in far)  # the outer half of either side
        self.assertLess(abs(outer - len(far) / 2), 2.5 * math.sqrt(len(far)))
        self.assertAlmostEqual(self.json(f"sinogram r.h5 --scanner {self.scanner} -o r.png")["counts"], 8000, delta=1)

        # What recon expects of the randoms is what is there: the image has the sum that it has without any.
        recon = f"recon --operator listmode --scanner {self.scanner} {grid} --iterations 20 -o x.nii"
        trues, expected, not_expected = (self.json(f"{recon} --events {more}")["emissions"] for more in (
            "trues.petsird", "both.petsird --additive r.h5", "both.petsird"))
        self.assertAlmostEqual(expected / trues, 1, delta=0.04)
        self.assertGreater(not_expected / trues, 1.2)


class Lists(ProgramTest):
    def setUp(self):
        super().setUp()
        for seed in (1, 2):
            self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 2000 --seed {seed} --duration 10 "
                      f"-o {seed}.petsird")

    def image_of(self, *data):
        self.good(f"recon {self.on_ring} {GRID} --iterations 2 -o x.nii", *data)
        return read_nifti("x.nii")[3]

    def test_counts_per_lor(self):
        wanted = self.image_of("--events 1.petsird")
        for name in ("y.h5", "y.hs"):
            found = self.json(f"events convert 1.petsird {name}")
            self.assertEqual(found["prompts"], self.json("events show 1.petsird")["prompts"])
            self.assertEqual(self.image_of(f"--data {name}"), wanted)

    def test_merged(self):
        """One after the other: all events, of which the second list's come after the first's ten seconds; two lists
        have the image of both, which is linear where a list is merged with itself."""
        lists = ("1.petsird", "2.petsird")
        found = self.json("events merge 1.petsird 2.petsird -o both.petsird")
        prompts = [self.json(f"events show {name}")["prompts"] for name in lists]
        self.assertEqual(found["prompts"], sum(prompts))
        self.assertAlmostEqual(found["duration_s"], 20, delta=0.5)
        times = []
        for name in ("both", "1", "2"):
            self.good(f"events convert {name}.petsird {name}.tsv")
            rows = [line.split("\t") for line in Path(f"{name}.tsv").read_text().splitlines() if line[:1].isdigit()]
            times.append([float(row[0]) for row in rows])
        both, first, second = times
        self.assertEqual((len(both), both[:prompts[0]]), (sum(prompts), first))
        self.assertEqual(len({round(late - early, 3) for late, early in zip(both[prompts[0]:], second)}), 1)
        self.assertGreaterEqual(both[prompts[0]], both[prompts[0] - 1])
        once = self.image_of("--events 1.petsird")
        self.good("events merge 1.petsird 1.petsird -o twice.petsird")
        for one, two in zip(once, self.image_of("--events twice.petsird")):
            self.assertAlmostEqual(two, 2 * one, delta=1e-4 * max(once))

    def test_durations_that_headers_state_are_summed(self):
        """Also where lists end before they do."""
        self.good("events convert 1.petsird 1.Cdh")
        header = Path("1.Cdh").read_text()
        Path("2.Cdh").write_text(re.sub("(?m)^Duration.*$", "Duration (s): 25", header))
        Path("1.Cdh").write_text(re.sub("(?m)^Duration.*$", "Duration (s): 30", header))
        found = self.json(f"events merge 1.Cdh 2.Cdh --scanner {self.scanner} -o both.Cdh")
        self.assertAlmostEqual(found["duration_s"], 55, delta=1e-6)
        shown = self.json(f"events show both.Cdh --scanner {self.scanner}")
        self.assertAlmostEqual(shown["duration_s"], 55, delta=1e-6)

    def test_lists_that_are_too_long_together(self):
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 99 --duration 4000000 -o long.petsird")
        self.refuse(3, ["long.petsird has", "days after", "49.7 days: merge fewer"],
                    "events merge long.petsird long.petsird -o b.petsird")
        self.assertFalse(os.path.exists("b.petsird"))

    def test_refusals(self):
        self.refuse(2, "two lists or more", "events merge 1.petsird -o both.petsird")
        self.good(f"simulate --scanner {self.scanner} --phantom spheres {GRID} --counts 99 --tof-ps 300 -o tof.petsird")
        self.refuse(3, ["different times of flight", "--without-tof"],
                    "events merge 1.petsird tof.petsird -o b.petsird")
        self.refuse(2, "1.petsird", "events merge 1.petsird 2.petsird -o 1.petsird")

    def test_frames_in_one_file(self):
        """Its volumes are the images of the files that frames have without it."""
        recon = f"recon --scanner {self.scanner} --operator listmode {GRID} --events 1.petsird --iterations 2"
        self.good(f"{recon} --frames 2x5 -o f.nii")
        self.good(f"{recon} --frames 2x5 --frames-in-one -o all.nii.gz")
        raw = gzip.decompress(Path("all.nii.gz").read_bytes())
        self.assertEqual(struct.unpack_from("<5h", raw, 40), (4, 6, 5, 3, 2))
        self.assertEqual((struct.unpack_from("<f", raw, 92)[0], raw[123]), (5.0, 2 | 8))
        self.assertEqual(raw[352:], Path("f-1.nii").read_bytes()[352:] + Path("f-2.nii").read_bytes()[352:])
        for image in ("f-2.nii", "all.nii.gz:2"):
            self.good(f"project --scanner {self.scanner} --image {image} -o y.h5")
            self.good(f"backproject --scanner {self.scanner} --like {image} --data y.h5 -o {image[0]}.nii")
            self.good(f"{recon} --initial {image} --after 2 -o {image[0]}-more.nii")
        self.assertEqual(Path("f.nii").read_bytes(), Path("a.nii").read_bytes())
        self.assertEqual(Path("f-more.nii").read_bytes(), Path("a-more.nii").read_bytes())
        self.refuse(3, "2 frames: name one of them, all.nii.gz:1 to all.nii.gz:2",
                    f"project --scanner {self.scanner} --image all.nii.gz -o y.h5")
        self.refuse(3, "no frame 3: it has 2", f"project --scanner {self.scanner} --image all.nii.gz:3 -o y.h5")
        self.refuse(2, "is the input too", "smooth all.nii.gz:2 all.nii.gz --fwhm-mm 3")
        self.refuse(2, [".nii", "--frames-in-one"], f"{recon} --frames 2x5 --frames-in-one -o all.mhd")
        self.refuse(2, "belong to --frames", f"{recon} --frames-in-one -o all.nii")
        self.refuse(2, "leave out --frames-in-one", f"{recon} --frames 2x5 --frames-in-one --save-every 1 -o all.nii")


class Seen(ProgramTest):
    def test_a_point_becomes_a_gaussian(self):
        """Each voxel has the Gaussian's integral over it."""
        size, voxel_mm, fwhm_mm = (15, 13, 11), (2, 2, 3), (5, 4, 6)
        values = [0.0] * (15 * 13 * 11)
        values[7 + 15 * (6 + 13 * 5)] = 8.0
        write_nifti("point.nii", size, voxel_mm, values)
        self.good("smooth point.nii wide.nii.gz --fwhm-mm 5,4,6")
        found = read_nifti("wide.nii.gz")[3]

        def share(k, axis):
            sigma = fwhm_mm[axis] / math.sqrt(8 * math.log(2)) / voxel_mm[axis] * math.sqrt(2)
            return 0.5 * (math.erf((k + 0.5) / sigma) - math.erf((k - 0.5) / sigma))
        for row, value in enumerate(found):
            k = (row % 15 - 7, row // 15 % 13 - 6, row // 15 // 13 - 5)
            self.assertAlmostEqual(value, 8 * share(k[0], 0) * share(k[1], 1) * share(k[2], 2), delta=2e-4)
        self.refuse(2, "--fwhm-mm", "smooth point.nii wide.nii")
        self.refuse(2, "wider than the image", "smooth point.nii other.nii --fwhm-mm 50")

    def test_frames_are_smoothed_one_by_one(self):
        """A file of two frames becomes what each becomes alone, and keeps the step of its frames, stored in ms."""
        values = [[float((k * step) % 11) for k in range(NUM_VOXELS)] for step in (3, 7)]
        for name, one in zip(("one", "two"), values):
            write_nifti(f"{name}.nii", (6, 5, 3), (3, 3, 4), one)
            self.good(f"smooth {name}.nii s{name}.nii --fwhm-mm 5")
        raw = bytearray(Path("one.nii").read_bytes() + Path("two.nii").read_bytes()[352:])
        struct.pack_into("<8h", raw, 40, 4, 6, 5, 3, 2, 1, 1, 1)
        struct.pack_into("<f", raw, 76 + 4 * 4, 2500)
        raw[123] = 2 + 16
        Path("both.nii").write_bytes(raw)
        found = self.json("smooth both.nii sboth.nii.gz --fwhm-mm 5")
        raw = gzip.decompress(Path("sboth.nii.gz").read_bytes())
        self.assertEqual((found["frames"], struct.unpack_from("<h", raw, 48)[0]), (2, 2))
        self.assertEqual((struct.unpack_from("<f", raw, 92)[0], raw[123]), (2.5, 2 + 8))
        alone = [read_nifti(f"s{name}.nii")[3] for name in ("one", "two")]
        self.assertEqual(raw[352:], b"".join(one.tobytes() for one in alone))
        self.assertAlmostEqual(found["sum"] / sum(sum(one) for one in alone), 1, delta=1e-6)
        self.refuse(2, ".nii", "smooth both.nii s.mha --fwhm-mm 5")

    def test_rods_that_voxels_cannot_show_are_named(self):
        for voxel_mm, words in ((2, "cannot show rods of 1.2, 1.6, 2.4 mm apart: voxels of 0.8 mm"),
                                (0.9, "cannot show rods of 1.2 mm apart"), (0.8, "")):
            told = self.good(f"phantom derenzo --grid 32,32,2 --voxel-mm {voxel_mm} -o d.nii").stderr
            self.assertIn(words, told)
            self.assertEqual("rods" in told, words != "")
        for radius_mm, words in ((1.9, "a cylinder of 3.8 mm is small beside voxels of 2 mm"), (2, "")):
            told = self.good(f"phantom cylinder --radius-mm {radius_mm} --grid 9,9,2 --voxel-mm 2 -o c.nii").stderr
            self.assertIn(words, told)
            self.assertEqual("small" in told, words != "")

    def test_a_point_is_a_wave(self):
        """A point at x is seen at the distance x cos(angle): at 0 degrees, the lowest row, on the right."""
        x_mm = 8.0
        self.good(f"phantom point --at {x_mm},0,0 --grid 21,21,3 --voxel-mm 1,1,4 -o p.nii")
        self.good(f"simulate {self.on_ring} --image p.nii --expected -o y.h5")
        self.good(f"sinogram y.h5 --scanner {self.scanner} -o y.png")
        width, height, rows = read_png("y.png")
        colours = [[tuple(row[3 * x:3 * x + 3]) for x in range(width)] for row in rows]
        is_dark = [[sum(colour) < 180 for colour in line] for line in colours]
        left = min(x for x in range(width) if sum(line[x] for line in is_dark) > 300) + 2
        top = min(y for y in range(height) if sum(is_dark[y]) > 300) + 2
        blue = [[colour == (205, 222, 240) for colour in line] for line in colours]
        self.assertGreater(sum(blue[top + 180]), 5)  # bins without a LOR, which the legend below the axis names
        self.assertEqual([x for x in range(width) if blue[height - 16][x]], list(range(left - 1, left + 15)))
        side, most_mm = 356, 15 + 4  # half of the field of view, and a crystal
        ink, off2 = 0, [0, 0]
        for y in range(side):
            for x in range(side):
                red, green, blue = colours[top + y][left + x]
                value = 255 - red if red == green == blue else 0
                ink += value
                wanted_mm = x_mm * math.cos(math.pi * (1 - y / side))
                for k, sign in enumerate((1, -1)):
                    off2[k] += value * ((2 * x / side - 1) * most_mm - sign * wanted_mm) ** 2
        self.assertLess(math.sqrt(off2[0] / ink), 2.4)  # a bin
        self.assertGreater(math.sqrt(off2[1] / ink), 8)
        found = self.json(f"sinogram y.h5 --scanner {self.scanner} --z-mm 0 --thickness-mm 3 -o y.png")
        self.assertGreater(found["counts"], 0)


main({"measurement": Measurement, "lists": Lists, "seen": Seen})
