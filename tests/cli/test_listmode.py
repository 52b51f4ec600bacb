#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`recon --operator listmode`: an image of simulated events against what they came from, and where time of flight puts
a line's events, in both orders of its crystals."""
import json, math, re, struct
from pathlib import Path

import yardl
from program import ProgramTest, main, read_nifti

GRID = "--grid 12,12,4 --voxel-mm 3,3,4"
VISTA = "--scanner ge-explore-vista-dr --grid 24,24,6 --voxel-mm 2"
# Counts of the scanner from one point a voxel, eight times as fast as from the usual points.
SIMULATED = f"{VISTA} --phantom derenzo --samples 1"
# A line of a Discovery MI from the top, where a is, to the bottom, in GE's numbers: ring, place. Its
# lists have 29 bins of 13 steps of 13.02 ps, positive where a was hit first.
TOP, BOTTOM = (18, 8), (18, 280)
STEP_MM = 13.02 * 0.149896229
TALL = "--grid 9,41,3 --voxel-mm 8"


def correlation(a, b):
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    cross = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b))
    return cross / math.sqrt(sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b))


class Listmode(ProgramTest):
    def image(self, *arguments):
        return self.json("recon", *arguments, "-o x.nii"), read_nifti("x.nii")[3]

    def test_the_image_is_what_was_simulated(self):
        self.good(f"simulate {SIMULATED} --counts 3e5 --truth truth.nii -o ev.petsird")
        truth = read_nifti("truth.nii")[3]
        for kernel in ("tube", "line"):
            report, listed = self.image(f"{VISTA} --events ev.petsird --algorithm osem --subsets 4",
                                        f"--operator listmode --kernel {kernel} --sensitivity-lines 1000000",
                                        "--truth truth.nii")
            with self.subTest(kernel):
                self.assertGreater(correlation(listed, truth), 0.9)
                self.assertEqual(report["operator"]["family"], "listmode")
                self.assertAlmostEqual(report["emissions"] / sum(listed), 1, 5)
                last = report["iterations"][-1]
                self.assertEqual(last["measured_counts"], report["events"]["prompts"])
                self.assertAlmostEqual(sum(listed) / sum(truth), 1, 1)
                self.assertAlmostEqual(last["image_error"], math.dist(listed, truth) / math.hypot(*truth), 4)
                # Each subset explains its own events.
                self.assertAlmostEqual(last["sensitive_counts"] / last["measured_counts"], 1, 3)
                # So does the image to begin with, whatever the kernel's scale.
                first = report["iterations"][0]
                self.assertAlmostEqual(first["estimated_counts"] / first["measured_counts"], 1, 1)
                self.assertLess(abs(first["log_likelihood"] - last["log_likelihood"]), 20 * first["measured_counts"])

    def test_nothing_lies_beyond_the_detectors(self):
        """Tubes are wider than their lines: slices that no line meets stay 0 and change no other."""
        self.good(f"simulate --scanner {self.scanner} {GRID} --phantom spheres --counts 2e3 -o ev.petsird")
        common = f"--operator listmode --scanner {self.scanner} --events ev.petsird --iterations 3"
        short, longer = (self.image(common, grid)[1] for grid in (GRID, GRID.replace("12,4", "12,6")))
        self.assertFalse(any(longer[:144] + longer[-144:]))
        for one, other in zip(short, longer[144:-144]):
            self.assertAlmostEqual(one, other, delta=1e-4 * max(short))

    def test_blobs_give_an_image_of_voxels(self):
        """The source of a point is where the image of blobs is brightest."""
        common = f"--scanner {self.scanner} --grid 16,16,4 --voxel-mm 2,2,3"
        self.good(f"simulate {common} --phantom point --counts 2e3 --truth truth.nii -o ev.petsird")
        truth = read_nifti("truth.nii")[3]
        report, image = self.image(f"{common} --events ev.petsird --iterations 10 --operator listmode --blobs",
                                   "--blob-radius-mm 5 --save-every 10")
        self.assertEqual(len(image), len(truth))
        self.assertAlmostEqual(report["emissions"] / sum(image), 1, 5)
        source, found = truth.index(max(truth)), image.index(max(image))
        for step, size in ((1, 16), (16, 16), (256, 4)):
            self.assertLessEqual(abs(source // step % size - found // step % size), 1)
        self.assertGreater(max(image), 20 * sum(image) / len(image))

    def cut(self, name, begin_s, end_s):
        """A file of the events of an interval alone, in CASToR's records of time and two crystals."""
        raw = Path("ev.Cdf").read_bytes()
        records = [raw[k:k + 12] for k in range(0, len(raw), 12)]
        kept = [one for one in records if begin_s <= struct.unpack_from("<I", one)[0] * 1e-3 < end_s]
        Path(name + ".Cdf").write_bytes(b"".join(kept))
        header = Path("ev.Cdh").read_text().replace("ev.Cdf", name + ".Cdf")
        Path(name + ".Cdh").write_text(header.replace(f"Number of events: {len(records)}",
                                                      f"Number of events: {len(kept)}"))
        return len(kept)

    def test_frames_are_reconstructions_of_their_intervals(self):
        """To the bit where sums have an order, which those of a graphics processor have not; the sensitivity is
        computed once."""
        self.good(f"simulate {SIMULATED} --counts 2e4 -o ev.petsird")
        self.good("events convert ev.petsird ev.Cdh --scanner ge-explore-vista-dr")
        more = f"{VISTA} --operator listmode --algorithm osem --subsets 2 --iterations 2 --sensitivity-lines 200000"
        frames = "--events ev.Cdh --frames 2x10,20.5 --frames-from 5"
        found = self.json(f"recon {more}", f"{frames} --backend native --save-every 1 -o f.nii")
        self.json(f"recon {more}", f"{frames} -o by-default.nii")
        self.assertNotIn("iterations", found)
        times = [(frame["begin_s"], frame["end_s"]) for frame in found["frames"]]
        self.assertEqual(times, [(5, 15), (15, 25), (25, 45.5)])
        for k, (begin, end) in enumerate(times):
            events = self.cut("part", begin, end)
            report, values = self.image(f"{more} --backend native --events part.Cdh")
            frame = found["frames"][k]
            self.assertEqual(read_nifti(f"f-{k + 1}.nii")[3], values)
            by_default = read_nifti(f"by-default-{k + 1}.nii")[3]
            self.assertLess(math.dist(by_default, values), 1e-5 * math.hypot(*values))
            self.assertEqual((frame["output"], frame["prompts"]), (f"f-{k + 1}.nii", events))
            self.assertEqual(frame["image_sum"], report["emissions"])
            self.assertEqual([step["log_likelihood"] for step in frame["iterations"]],
                             [step["log_likelihood"] for step in report["iterations"]])
            self.assertTrue(Path(f"f-{k + 1}.iter1.nii").exists())
        done = self.good(f"recon {more} --events ev.Cdh --frames 30,29 -o g.nii")
        self.assertIn("frame 2 of 2, from 30 s to 59 s", done.stderr)
        self.assertEqual((done.stderr.count("the sensitivity is from"), len(done.stdout.splitlines())), (1, 2))

    def test_delayeds_make_no_image(self):
        """To the bit what a list without them makes."""
        self.good(f"simulate {SIMULATED} --counts 5e3 -o ev.petsird")
        text, header, blocks = yardl.read_file("ev.petsird")
        every_other = [block for _, block in blocks[1::2]]
        for block in every_other:
            block["promptEvents"], block["delayedEvents"] = block["delayedEvents"], block["promptEvents"]
        yardl.write_file("both.petsird", text, header, blocks)
        for block in every_other:
            block["delayedEvents"] = block["promptEvents"]
        yardl.write_file("prompts.petsird", text, header, blocks)
        images = []
        for name in ("both", "prompts"):
            report, values = self.image(f"{VISTA} --events", name + ".petsird", "--operator listmode --backend native",
                                        "--randoms none --iterations 2 --sensitivity-lines 100000")
            self.assertEqual(report["iterations"][-1]["measured_counts"], report["events"]["prompts"])
            images.append((report["events"]["delayeds"] > 1000, values))
        self.assertEqual(([has_delayeds for has_delayeds, _ in images], images[0][1]), ([True, False], images[1][1]))

    def test_frames_that_make_no_sense(self):
        self.good(f"simulate {SIMULATED} --counts 2e3 -o ev.petsird")
        self.refuse_each("frames", recon=f"recon {VISTA} --events ev.petsird -o x.nii")
        self.assertFalse(Path("x-1.nii").exists())

    def test_randoms_are_spread_over_castors_window(self):
        scanner = f"--scanner {self.scanner} {GRID}"
        self.good(f"phantom spheres {GRID} -o a.nii")
        self.good(f"simulate --scanner {self.scanner} --image a.nii --counts 3e3 --tof-ps 100 -o ev.petsird")
        self.good(f"simulate --scanner {self.scanner} --image a.nii --counts 1e3 --expected -o b.h5")
        self.good(f"events convert ev.petsird ev.Cdh --scanner {self.scanner}")
        options = f"--operator listmode {scanner} --additive b.h5 --iterations 4"
        images = [self.image(f"{options} --events {name}")[1] for name in ("ev.petsird", "ev.Cdh")]
        peak = max(images[0])
        self.assertLess(max(abs(a - b) for a, b in zip(*images)), 5e-3 * peak)
        header = Path("ev.Cdh")
        header.write_text(re.sub("List TOF measurement.*\n", "", header.read_text()))
        self.refuse(2, "the width of its coincidence window is not known", f"recon {options} --events ev.Cdh -o x.nii")

    def test_what_does_not_fit_the_events_is_told(self):
        self.good(f"simulate {SIMULATED} --counts 2e3 -o ev.petsird")
        few = ["--operator listmode --grid 24,24,6 --voxel-mm 2 --events ev.petsird --iterations 1",
               "--sensitivity-lines 2000 -o x.nii"]
        self.refuse(2, "they are made of ranges of events", "recon", *few, "--algorithm osem --subsets 2500")
        # The scanner is that of the PETSIRD file.
        said = self.good("recon", *few, "--frames 30,100").stderr
        self.assertIn("frame 2 is from 30 s to 130 s, and events end at", said)
        self.assertNotIn("events end at", self.good("recon", *few, "--frames 30,30").stderr)
        with_tof = f"--scanner {self.scanner} --grid 12,12,4 --voxel-mm 3,3,4"
        self.good(f"simulate {with_tof} --phantom point --counts 500 --tof-ps 100 -o tof.petsird")
        few[0] = few[0].replace("ev.petsird", "tof.petsird")
        self.assertIn("is it in picoseconds?", self.run_program("recon", *few, "--tof-ps 6").stderr)
        odd = "tof.petsird has a time resolution of 100 ps"
        for asked, is_odd in ((201, True), (49, True), (199, False), (51, False)):
            self.assertEqual(f"warning: --tof-ps {asked}: {odd}" in self.good("recon", *few, f"--tof-ps {asked}").stderr,
                             is_odd)

    def test_what_is_corrected_is_told(self):
        """Without corrections all are named as missing; each one that is given goes to the other list."""
        self.good(f"simulate {self.on_ring} {GRID} --phantom point --counts 2e3 --randoms 0.2 --additive r.h5 -o e.petsird")
        self.good(f"phantom cylinder --value 0.0096 {GRID} -o mu.nii")
        self.write("eff.txt", "1\n" * 128)
        recon = f"recon {self.on_ring} {GRID} --events e.petsird --iterations 1 -o x.nii"
        given = "attenuation (--mu), efficiencies (--efficiencies)"
        open_ended = "randoms and scatter (--additive)"
        for family in ("--operator listmode --sensitivity-lines 2000", ""):
            for more, told in (("", f"not corrected for {given}, {open_ended}"),
                               ("--mu mu.nii", "corrected for attenuation (--mu); not for efficiencies (--efficiencies), "
                                               f"{open_ended}"),
                               ("--mu mu.nii --efficiencies eff.txt --additive r.h5",
                                f"corrected for {given}, what --additive has of randoms and scatter")):
                lines = [line for line in self.good(f"{recon} {family} {more}").stderr.split("\n") if "corrected for" in line]
                self.assertEqual(lines, [f"loraster: {told}"])
            self.assertNotIn("corrected for", self.good(f"{recon} {family} --quiet").stderr)

    def peak_mm(self, ends, steps, *arguments):
        """y of the brightest slice across y."""
        try:
            import h5py
            import numpy
        except ImportError:
            self.skipTest("h5py and numpy, which make the file, are not here")
        path = "list.BLF"
        row = [*ends[0], *ends[1], steps]
        with h5py.File(path, "w") as file:
            file["MiceList/TofCoinc"] = numpy.array([row] * 200, numpy.int16)
        _, values = self.image(f"--operator listmode --scanner ge-discovery-mi --events {path} {TALL} --iterations 5",
                               "--sensitivity-lines 200000", *arguments)
        sums = [0.0] * 41
        for k, value in enumerate(values):
            sums[k // 9 % 41] += value
        return 8 * (sums.index(max(sums)) - 20), max(sums) / sum(sums)

    def test_time_of_flight_has_a_direction(self):
        from_top, share = self.peak_mm((TOP, BOTTOM), -52)
        self.assertAlmostEqual(from_top, -52 * STEP_MM, delta=8)
        self.assertGreater(share, 0.1)
        from_bottom, _ = self.peak_mm((BOTTOM, TOP), 52)
        self.assertEqual(from_bottom, from_top)
        above, _ = self.peak_mm((TOP, BOTTOM), 52)
        self.assertAlmostEqual(above, 52 * STEP_MM, delta=8)
        _, flat = self.peak_mm((TOP, BOTTOM), 52, "--without-tof")
        self.assertLess(flat, 0.5 * share)

    def test_mistakes_are_told(self):
        recon = f"recon --scanner {self.scanner} {GRID} -o x.nii"
        self.refuse_each("list mode", recon=recon, listmode=f"{recon} --operator listmode --events e.petsird")


class Bench(ProgramTest):
    def figures(self, *arguments):
        out = self.path("bench.json")
        self.good("bench listmode --backend native --repeat 3 --seconds 0.1 -o", out, *arguments)
        return self.table(out), json.loads(Path(out).read_text())

    def test_table_of_lines(self):
        shown, found = self.figures("--table", "lines", "--events", "200", "--kernel", "line")
        cases = found["results"]
        self.assertEqual([case["lines"] for case in cases], [n for n in (200, 400, 1000, 2000) for _ in "nt"])
        self.assertEqual([case["tof"] for case in cases], 4 * [False, True])
        self.assertEqual(len(re.findall(r"^\| lines \|", shown, re.M)), 8)
        self.assertEqual(len(re.findall(r"T = [0-9.e+-]+ ms N", shown)), 2)
        section = (self.source_root / "docs/formats/json.md").read_text().split("## bench\n")[1]
        for key in [*found, *cases[0]]:
            self.assertTrue(key in ("verb", "version") or f"`{key}`" in section, key)
        for case in cases:
            self.assertEqual(case["energy_source"] is None, case["joules"] is None)

    def test_lines_and_subsets(self):
        shown, found = self.figures("--table", "public", "--lines", "400", "--subsets", "2", "--kernel", "line",
                                    "--only-tof")
        case, = found["results"]
        self.assertEqual((case["lines"], case["subsets"], case["size"]), (400, 2, [215, 215, 71]))
        self.assertIsNone(case["variant"])
        self.assertGreater(case["partition_seconds"] + case["sort_seconds"], 0)
        self.assertIn("2 iterations of 2 subsets of 400 events", shown)

    def test_voxels_of_a_line(self):
        """A tube three voxels wide cuts an ellipse of 7.1 voxels or more from a slice, a thin line
        touches four voxels of it, and what two crystals see of it is narrower than a voxel."""
        shown, found = self.figures("--table", "first", "--events", "300")
        self.assertEqual(shown.count("| LORaster, "), 6)
        self.assertIn("| OMEGA, Siddon | no | 94 | 0.426 | 1.08 | 1.52 |", shown)
        self.assertEqual([case["kernel"] for case in found["results"]],
                         [kernel for kernel in ("tube", "line", "exact") for _ in "nt"])
        tube, tube_tof, line, line_tof, exact, exact_tof = (case["visits_a_line"] for case in found["results"])
        self.assertTrue(1.6 < tube / line < 2.6, (tube, line))
        self.assertTrue(0.25 < exact / line < 1, (exact, line))
        self.assertTrue(0 < tube_tof < tube and 0 < line_tof < line and 0 < exact_tof < exact)
        for case in found["results"]:
            for work in ("forward", "back", "iteration"):
                self.assertGreater(case[work]["wall_seconds"], 0)

    def test_collisions(self):
        """Lines cross: some voxels are those of several of 32; with times of flight they are shorter, and cross
        less."""
        shown, found = self.figures("--table", "collisions", "--events", "320")
        without, with_tof = found["results"]
        self.assertTrue(0 < with_tof["collisions"] < without["collisions"] < 0.2, found["results"])
        for case in found["results"]:
            self.assertTrue(2 <= case["most_collisions"] <= 32)
            self.assertAlmostEqual(case["voxels_per_s"] * case["iteration"]["wall_seconds"],
                                   2 * case["visits_a_line"] * case["lines"], delta=1e-6 * case["lines"])
        self.assertEqual(len(re.findall(r"^Collisions \(figure 3\)", shown, re.M)), 2)

    def test_mistakes(self):
        self.refuse_each("list mode, bench")


main({"listmode": Listmode, "listmode_bench": Bench})
