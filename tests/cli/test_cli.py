#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Black-box tests of the program's verbs, by topic. See program.py for how a test runs it."""
import math
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from bad_input import BadInput, FullDisk, ScannerFiles
from program import CPU, GRID, NUM_VOXELS, SMALL_RING, ProgramTest, main, read_nifti

VERBS = ["info", "scanner list", "scanner show", "scanner check", "render", "matrix", "project",
         "backproject", "sensitivity", "simulate", "recon", "bench correspondence", "demo"]


class Usage(ProgramTest):
    def test_help_lists_verbs(self):
        text = self.good("--help").stdout
        for verb in VERBS:
            self.assertRegex(text, rf"(?m)^  {verb} ")

    def test_help_of_each_verb_has_example(self):
        for verb in VERBS:
            text = self.good(*verb.split(), "--help").stdout
            self.assertIn(f"usage: loraster {verb}", text)
            self.assertIn(f"example\n  loraster {verb}", text)
            self.assertIn("--json", text)

    def test_examples_parse(self):
        """No example may use an option that its verb lacks."""
        for verb in VERBS:
            text = self.good(*verb.split(), "--help").stdout
            example = text[text.index("example\n"):].split()[1:]
            for word in example:
                if word.startswith("-") and not re.match(r"-\d", word):
                    self.assertRegex(text, rf"(?m)^  {word} ")

    def test_version(self):
        self.assertRegex(self.good("--version").stdout, r"^loraster \d+\.\d+\.\d+\n$")

    def test_no_verb(self):
        self.refuse(2, "--help")

    def test_unknown_verb(self):
        self.refuse(2, "did you mean recon", "recn")
        self.refuse(2, "did you mean scanner show", "scanner", "shwo")
        self.refuse(2, "list, show, check", "scanner")
        self.refuse(2, "did you mean bench correspondence", "bench", "corespondence")

    def test_unknown_option(self):
        self.refuse(2, "did you mean --samples", "recon", "--sample", "4")
        self.refuse(2, "see loraster recon --help", "recon", "--zzzzzzzz")

    def test_value_missing(self):
        self.refuse(2, ["--rays", "needs a value"], "recon", "--rays")
        self.refuse(2, ["--data", "needs a value"], "recon", "--data", "--mu", "x.nii")

    def test_given_twice(self):
        self.refuse(2, "--rays is given twice", "recon", "--rays", "2", "--rays", "3")

    def test_stray_word(self):
        self.refuse(2, "what is \"now\" for", "recon", "now")

    def test_equals_form(self):
        one = self.json("sensitivity", *self.on_ring, *GRID, "-o", "a.nii")
        two = self.json("sensitivity", *self.on_ring, "--grid=6,5,3", "--voxel-mm=3,3,4", "-o",
                        "b.nii")
        self.assertEqual(one["sum"], two["sum"])

    def test_numbers_are_strict(self):
        for option, value in [("--rays", "4x"), ("--rays", "0"), ("--rays", "-1"),
                              ("--rays", "1.5"), ("--rays", ""), ("--threads", "two"),
                              ("--grid", "6,5"), ("--grid", "6,5,0"), ("--grid", "6,5,-3"),
                              ("--grid", "6,5,3,2"), ("--grid", "6, 5,3"), ("--grid", "6,5,2.5"),
                              ("--max-memory", "4X"), ("--max-memory", "-1G"),
                              ("--samples", "0"), ("--samples", "1,2"), ("--mode", "fast"),
                              ("--backend", "cuda"), ("--store", "maybe")]:
            arguments = ["sensitivity", "--scanner", self.scanner, "-o", "s.nii"]
            if option != "--grid":
                arguments += GRID
            self.refuse(2, option, *arguments, option, value)
        for value in ["3,3", "3,nan,3", "inf", "0", "3,-3,3", "3,3,0x"]:
            self.refuse(2, "--voxel-mm", "sensitivity", "--scanner", self.scanner, "-o", "s.nii",
                        "--grid", "6,5,3", "--voxel-mm", value)

    def test_required(self):
        self.refuse(2, "-o", "sensitivity", "--scanner", self.scanner, *GRID)
        self.refuse(2, "--scanner", "sensitivity", "-o", "s.nii", *GRID)
        self.refuse(2, "--grid", "sensitivity", *self.on_ring, "-o", "s.nii")
        self.refuse(2, "--voxel-mm", "sensitivity", *self.on_ring, "-o", "s.nii", "--grid", "2,2,2")
        self.refuse(2, "--data", "recon", *self.on_ring, *GRID, "-o", "s.nii")
        self.refuse(2, ["--data", "--events"], "recon", *self.on_ring, *GRID, "-o", "s.nii",
                    "--data", "a", "--events", "b")
        self.refuse(2, "exclude each other", "sensitivity", *self.on_ring, *GRID, "--like",
                    "x.nii", "-o", "s.nii")
        self.refuse(2, "--phantom", "simulate", *self.on_ring, *GRID, "-o", "y.h5")
        self.refuse(2, ["no phantom cube", "derenzo"], "simulate", *self.on_ring, *GRID,
                    "--phantom", "cube", "-o", "y.h5")
        self.refuse(2, "--labels", "simulate", *self.on_ring, *GRID, "--phantom", "colin27", "-o",
                    "y.h5")
        self.refuse(2, "--mu", "sensitivity", *self.on_ring, *GRID, "--mu-unit", "1/mm", "-o",
                    "s.nii")

    def test_output_is_checked_first(self):
        self.refuse(2, ".nii", "sensitivity", *self.on_ring, *GRID, "-o", "s.jpg")
        self.refuse(1, "no folder", "sensitivity", *self.on_ring, *GRID, "-o", "no/s.nii")
        os.mkdir(self.path("s.nii"))
        self.refuse(1, "folder", "sensitivity", *self.on_ring, *GRID, "-o", "s.nii")

    def test_silent_in_a_pipe(self):
        done = self.good("sensitivity", *self.on_ring, *GRID, "-o", "s.nii", "--quiet")
        self.assertEqual(done.stderr, "")
        done = self.good("sensitivity", *self.on_ring, *GRID, "-o", "s.nii")
        self.assertNotIn("\r", done.stderr)
        self.assertNotIn("%", done.stderr)


class Scanner(ProgramTest):
    def test_list(self):
        names = [s["preset"] for s in self.json("scanner", "list")["scanners"]]
        self.assertGreaterEqual(len(names), 4)
        for name in ["ge-explore-vista-dr", "safir-dual-ring-prototype"]:
            self.assertIn(name, names)
        text = self.good("scanner", "list").stdout
        self.assertEqual([line.split()[0] for line in text.splitlines()], names)

    def test_every_preset_opens(self):
        for entry in self.json("scanner", "list")["scanners"]:
            found = self.json("scanner", "show", entry["preset"])
            self.assertEqual(found["num_crystals"], entry["num_crystals"])
            self.assertTrue(found["source"], f"{entry['preset']} gives no source")

    def test_crystals(self):
        """Octagon: centres at the apothem plus half the depth, normals to the axis."""
        lines = self.good("scanner", "show", self.scanner, "--crystals").stdout.splitlines()
        self.assertEqual(lines[0], "module p q x_mm y_mm z_mm nx ny nz")
        self.assertEqual(len(lines), 1 + 8 * 16)
        for number, line in enumerate(lines[1:]):
            fields = line.split()
            module, p, q = map(int, fields[:3])
            x, y, z, nx, ny, nz = map(float, fields[3:])
            self.assertEqual((module, q, p), (number // 16, number % 16 // 4, number % 4))
            angle = module * math.pi / 4
            self.assertAlmostEqual(nx, -math.cos(angle), places=7)
            self.assertAlmostEqual(ny, -math.sin(angle), places=7)
            self.assertAlmostEqual(nz, 0, places=7)
            self.assertAlmostEqual(-(x * nx + y * ny), 35, places=6)
            self.assertAlmostEqual(x * ny - y * nx, 4 * (p - 1.5), places=6)
            self.assertAlmostEqual(z, 4 * (q - 1.5), places=6)

    def test_summary(self):
        found = self.json("scanner", "show", self.scanner)
        self.assertEqual(found["num_modules"], 8)
        self.assertEqual(found["num_crystals"], 128)
        self.assertEqual(found["num_lors"], found["num_pairs"] * 256)
        for value, wanted in zip(found["radius_mm"] + found["axial_mm"], [30, 30, -8, 8]):
            self.assertAlmostEqual(value, wanted, places=9)
        self.assertEqual(found["coincidence"]["field_of_view_mm"], 30)
        self.assertIsNone(found["coincidence"]["max_ring_difference"])
        self.assertIsNone(found["crystal_mu_per_mm"])
        text = self.good("scanner", "show", self.scanner).stdout
        for words in ["small ring", "128", "field of view 30 mm", "time of flight none"]:
            self.assertIn(words, text)

    def test_crystals_json(self):
        self.assertEqual(len(self.json("scanner", "show", self.scanner, "--crystals")["crystals"]),
                         128)

    def test_crystals_stop(self):
        """30 mm of LaBr3: 1 - exp(-0.047 * 30) = 75.6 %."""
        self.assertEqual(self.json("scanner", "show", "penn-labr3")["crystal_mu_per_mm"], 0.047)
        self.assertIn("0.047/mm at 511 keV: 75.6 %",
                      self.good("scanner", "show", "penn-labr3").stdout)

    def test_check(self):
        self.assertIn("good", self.good("scanner", "check", self.scanner).stdout)
        self.assertIs(self.json("scanner", "check", self.scanner)["good"], True)

    def test_needs_one(self):
        self.refuse(2, "NAME|FILE", "scanner", "show")
        self.refuse(2, "needs one", "scanner", "show", self.scanner, self.scanner)
        self.refuse(3, "no-such-scanner", "scanner", "show", "no-such-scanner")


class Info(ProgramTest):
    def test_json(self):
        found = self.json("info")
        backends = {b["backend"]: b for b in found["backends"]}
        self.assertTrue(backends["cpu"]["works"])
        self.assertTrue(found["auto"]["works"])
        usable = [d for d in found["devices"] if d["usable"]]
        self.assertEqual(backends["raster"]["works"], bool(usable))
        for device in found["devices"]:
            self.assertTrue(device["usable"] or device["reason"], device)
        if not usable:
            self.assertTrue(backends["raster"]["reason"])

    def test_text(self):
        text = self.good("info").stdout
        self.assertRegex(text, r"auto takes (cpu|compute) ")
        self.assertIn("cpu", text)

    def test_requirement(self):
        self.good("info", "--backend", "cpu")


def read_tsv(path):
    lines = Path(path).read_text().splitlines()
    return lines[0].split("\t"), [line.split("\t") for line in lines[1:]]


class Matrix(ProgramTest):
    def test_points(self):
        out = self.path("rows.tsv")
        found = self.json("matrix", *self.on_ring, "--at", "0.5,1,-2", "--at=-3,2,1", "-o", out)
        header, rows = read_tsv(out)
        self.assertEqual(header, "row x_mm y_mm z_mm module_i p q module_j r s probability".split())
        self.assertEqual(len(rows), found["elements"])
        self.assertEqual(found["rows"], 2)
        self.assertGreater(len(rows), 20)
        total = 0.0
        for row in rows:
            self.assertEqual(len(row), 11)
            self.assertLess(int(row[4]), int(row[7]))
            self.assertGreater(float(row[10]), 0)
            total += float(row[10])
        self.assertLess(abs(total - found["sum"]), 1e-7 * total)
        self.assertLess(found["sum"], 2.0, "a probability per row of at most 1")
        self.assertEqual([float(v) for v in rows[0][1:4]], [0.5, 1, -2])
        self.assertEqual({row[0] for row in rows}, {"0", "1"})

    def test_point_beyond_the_detectors(self):
        done = self.good("matrix", *self.on_ring, "--at", "0,0,0", "--at", "900,0,0", "-o",
                         self.path("rows.tsv"))
        self.assertIn("warning: 1 of 2 points", done.stderr)

    def test_standard_output(self):
        """Rows have standard output to themselves."""
        self.good("matrix", *self.on_ring, "--at", "0.5,1,-2", "-o", self.path("rows.tsv"))
        done = self.good("matrix", *self.on_ring, "--at", "0.5,1,-2", "-o", "/dev/stdout")
        self.assertEqual(done.stdout, Path(self.path("rows.tsv")).read_text())
        self.assertIn("1 rows", done.stderr)
        self.refuse(2, "--json", "matrix", *self.on_ring, "--at", "0,0,0", "-o", "/dev/stdout",
                    "--json")

    def test_same_bits_twice(self):
        for name in ["a.tsv", "b.tsv"]:
            self.good("matrix", *self.on_ring, "--at", "0.5,1,-2", "-o", self.path(name))
        self.assertEqual(Path(self.path("a.tsv")).read_bytes(),
                         Path(self.path("b.tsv")).read_bytes())

    def test_rows_of_a_grid_sum_to_sensitivity(self):
        found = self.json("matrix", *self.on_ring, *GRID, "-o", self.path("m.tsv"))
        _, rows = read_tsv(self.path("m.tsv"))
        sums = [0.0] * NUM_VOXELS
        for row in rows:
            sums[int(row[0])] += float(row[10])
        self.assertEqual(found["rows"], NUM_VOXELS)
        self.good("sensitivity", *self.on_ring, *GRID, "-o", self.path("s.nii"))
        values = read_nifti(self.path("s.nii"))[3]
        for voxel, value in enumerate(values):
            self.assertLess(abs(value - sums[voxel]), 1e-6 * sums[voxel] + 1e-12)

    def test_hdf5(self):
        found = self.json("matrix", *self.on_ring, *GRID, "-o", self.path("m.h5"))
        self.assertEqual(found["format"], "hdf5")
        self.assertEqual(Path(self.path("m.h5")).read_bytes()[:8], b"\x89HDF\r\n\x1a\n")
        again = self.json("matrix", *self.on_ring, *GRID, "-o", self.path("m"), "--format", "tsv")
        self.assertEqual(found["elements"], again["elements"])
        self.assertAlmostEqual(found["sum"], again["sum"], places=12)

    def test_exact(self):
        """More rays come closer to the exact sum."""
        exact = self.json("matrix", *self.on_ring, "--mode", "exact", "--at", "1,2,3", "-o",
                          self.path("e.tsv"))["sum"]
        error = [abs(self.json("matrix", *self.on_ring, "--mode", "sampled", "--rays", rays, "--at",
                               "1,2,3", "-o", self.path("r.tsv"))["sum"] / exact - 1) for rays in (1, 32)]
        self.assertLess(error[1], 0.02)
        self.assertLess(error[1], error[0])

    def test_absorption(self):
        """Every line through the centre of a 40 x 40 x 20 mm block has 40 to 58 mm in it; the
        map's edge takes up to a voxel of 2 mm."""
        size = (20, 20, 10)
        mu = self.image("mu.nii.gz", [0.096] * (20 * 20 * 10), size, (2, 2, 2))
        per_mm = self.image("per_mm.nii.gz", [0.0096] * (20 * 20 * 10), size, (2, 2, 2))
        plain, water, mm, same = [
            self.json("matrix", *self.on_ring, "--at", "0,0,0", "-o", self.path("a.tsv"),
                      *more)["sum"]
            for more in ([], ["--mu", mu], ["--mu", mu, "--mu-unit", "1/mm"], ["--mu", per_mm])]
        self.assertLess(abs(same / water - 1), 1e-5)  # the unit is told from the values
        self.assertLess(water / plain, math.exp(-0.0096 * 38))
        self.assertGreater(water / plain, math.exp(-0.0096 * 60))
        self.assertLess(mm / plain, math.exp(-0.096 * 38))
        self.assertGreater(mm / plain, math.exp(-0.096 * 60))


class Project(ProgramTest):
    def test_sum_rules(self):
        """1'A x = s'x and 1'A'y: with x = 1 both are the sum of the sensitivity."""
        image = self.image()
        forward = self.json("project", *self.on_ring, "--image", image, "-o", self.path("y.h5"))
        sens = self.json("sensitivity", *self.on_ring, *GRID, "-o", self.path("s.nii.gz"))
        self.assertLess(abs(forward["sum"] / sens["sum"] - 1), 1e-5)
        size, voxel, origin, values = read_nifti(self.path("s.nii.gz"))
        self.assertEqual(size, (6, 5, 3))
        self.assertEqual(voxel, (3, 3, 4))
        self.assertEqual(origin, (-7.5, -6, -4))
        self.assertLess(abs(sum(values) / sens["sum"] - 1), 1e-6)

    def test_adjoint(self):
        """1'A'(A x) = (A 1)'(A x) = x'(A'(A 1)): left by projecting x, right by projecting 1."""
        weights = [0.1 * (k % 7) for k in range(NUM_VOXELS)]
        self.good("project", *self.on_ring, "--image", self.image("x.nii", weights), "-o",
                  self.path("y.h5"))
        left = self.json("backproject", *self.on_ring, *GRID, "--data", self.path("y.h5"), "-o",
                         self.path("b.nii"))["sum"]
        self.good("project", *self.on_ring, "--image", self.image("one.nii"), "-o",
                  self.path("one.h5"))
        self.good("backproject", *self.on_ring, *GRID, "--data", self.path("one.h5"), "-o",
                  self.path("c.nii"))
        values = read_nifti(self.path("c.nii"))[3]
        right = sum(w * v for w, v in zip(weights, values))
        self.assertLess(abs(left / right - 1), 1e-5)

    def test_like(self):
        image = self.image()
        one = self.json("sensitivity", *self.on_ring, "--like", image, "-o", self.path("a.nii"))
        two = self.json("sensitivity", *self.on_ring, *GRID, "-o", self.path("b.nii"))
        self.assertEqual(one["sum"], two["sum"])

    def test_grid_must_agree(self):
        self.refuse(2, "grid", "project", *self.on_ring, "--image", self.image(), "--grid",
                    "6,5,4", "--voxel-mm", "3,3,4", "-o", "y.h5")

    def test_origin(self):
        shifted = self.json("sensitivity", *self.on_ring, "--grid", "6,5,3", "--voxel-mm",
                            "3,3,4", "--origin-mm", "-7.5,-6,-4", "-o", self.path("a.nii"))
        centred = self.json("sensitivity", *self.on_ring, *GRID, "-o", self.path("b.nii"))
        self.assertEqual(shifted["sum"], centred["sum"])

    def test_store_changes_nothing(self):
        sums = [self.json("sensitivity", *self.on_ring, *GRID, "--store", store, "-o",
                          self.path("s.nii"))["sum"] for store in ("yes", "no")]
        self.assertLess(abs(sums[0] / sums[1] - 1), 1e-6)

    def test_samples(self):
        found = self.json("sensitivity", *self.on_ring, *GRID, "--samples", "8", "-o",
                          self.path("s.nii"))
        split = found["operator"]["samples"]
        self.assertEqual(split[0] * split[1] * split[2], 8)
        found = self.json("sensitivity", *self.on_ring, *GRID, "--samples", "1,2,3", "-o",
                          self.path("s.nii"))
        self.assertEqual(found["operator"]["samples"], [1, 2, 3])


class Simulate(ProgramTest):
    def test_expected_counts(self):
        found = self.json("simulate", *self.on_ring, "--phantom", "spheres", *GRID, "--counts",
                          "1e5", "--expected", "-o", self.path("e.h5"), "--truth",
                          self.path("t.nii"))
        self.assertLess(abs(found["counts"] / 1e5 - 1), 1e-5)
        # The truth projects onto the expectation.
        forward = self.json("project", *self.on_ring, "--image", self.path("t.nii"), "-o",
                            self.path("p.h5"))
        self.assertLess(abs(forward["sum"] / 1e5 - 1), 1e-5)

    def test_poisson(self):
        sums = [self.json("simulate", *self.on_ring, "--phantom", "spheres", *GRID, "--counts",
                          "100000", "--seed", seed, "-o", self.path(f"{k}.h5"))["counts"]
                for k, seed in enumerate([1, 1, 2])]
        self.assertEqual(sums[0], sums[1])
        self.assertEqual(sums[0], round(sums[0]))
        for total in sums:
            self.assertLess(abs(total - 1e5), 6 * math.sqrt(1e5))

    def test_image(self):
        image = self.image()
        found = self.json("simulate", *self.on_ring, "--image", image, "--expected", "-o",
                          self.path("e.h5"))
        sens = self.json("sensitivity", *self.on_ring, *GRID, "-o", self.path("s.nii"))
        self.assertLess(abs(found["counts"] / sens["sum"] - 1), 1e-5)

    def test_labels(self):
        labels = self.image("labels.nii", [float(k % 5) for k in range(NUM_VOXELS)])
        found = self.json("simulate", *self.on_ring, "--phantom", "colin27", "--labels", labels,
                          *GRID, "--counts", 1000, "--expected", "-o", self.path("e.h5"))
        self.assertLess(abs(found["counts"] / 1000 - 1), 1e-5)

    def test_dark_image(self):
        image = self.image("dark.nii", [0.0] * NUM_VOXELS)
        self.refuse(3, "activity", "simulate", *self.on_ring, "--image", image, "-o", "e.h5")


class Recon(ProgramTest):
    def test_iterations(self):
        data = self.expected_counts()
        found = self.json("recon", *self.on_ring, *GRID, "--algorithm", "mlem", "--data", data,
                          "--iterations", 6, "--save-every", 2, "-o", self.path("x.nii.gz"))
        steps = found["iterations"]
        self.assertEqual([s["number"] for s in steps], [1, 2, 3, 4, 5, 6])
        for before, after in zip(steps, steps[1:]):
            self.assertGreater(after["log_likelihood"],
                               before["log_likelihood"] - 1e-6 * abs(before["log_likelihood"]))
        for step in steps:
            self.assertLess(abs(step["sensitive_counts"] / step["measured_counts"] - 1), 1e-5)
        self.assertFalse(found["stopped"])
        for k in (2, 4, 6):
            self.assertTrue(os.path.exists(self.path(f"x.iter{k}.nii.gz")))
        self.assertFalse(os.path.exists(self.path("x.iter5.nii.gz")))
        last, saved = [read_nifti(self.path(n))[3] for n in ("x.nii.gz", "x.iter6.nii.gz")]
        self.assertEqual(last, saved)
        self.assertLess(abs(sum(last) / found["emissions"] - 1), 1e-5)

    def test_log_has_a_line_per_iteration(self):
        done = self.good("recon", *self.on_ring, *GRID, "--data", self.expected_counts(),
                         "--iterations", 3, "-o", self.path("x.nii"))
        self.assertEqual(len(re.findall(r"iteration \d+: log-likelihood", done.stderr)), 3)
        self.assertIn("x.nii", done.stdout)

    def test_stored_or_not(self):
        data = self.expected_counts()
        found = [self.json("recon", *self.on_ring, *GRID, "--data", data, "--iterations", 3,
                           "--store", store, "-o", self.path("x.nii")) for store in ("yes", "no")]
        self.assertTrue(found[0]["operator"]["stored"])
        self.assertFalse(found[1]["operator"]["stored"])
        a, b = [f["iterations"][-1]["log_likelihood"] for f in found]
        self.assertLess(abs(a - b), 1e-6 * abs(a))

    def test_noise_free_data_converge(self):
        """From its own expectation the estimate must come closer to the truth."""
        self.good("simulate", *self.on_ring, "--phantom", "spheres", *GRID, "--counts", 1000000,
                  "--expected", "-o", self.path("e.h5"), "--truth", self.path("t.nii"))
        self.good("recon", *self.on_ring, *GRID, "--data", self.path("e.h5"), "--iterations", 60,
                  "--save-every", 20, "-o", self.path("x.nii"))
        truth = read_nifti(self.path("t.nii"))[3]
        errors = []
        for k in (20, 40, 60):
            x = read_nifti(self.path(f"x.iter{k}.nii"))[3]
            errors.append(sum((a - b) ** 2 for a, b in zip(x, truth)))
        self.assertLess(errors[1], errors[0])
        self.assertLess(errors[2], errors[1])

    def test_additive(self):
        data = self.expected_counts()
        found = self.json("recon", *self.on_ring, *GRID, "--data", data, "--additive", data,
                          "--iterations", 2, "-o", self.path("x.nii"))
        step = found["iterations"][0]
        self.assertGreater(step["estimated_counts"], step["measured_counts"])

    def test_initial(self):
        data = self.expected_counts()
        first = self.json("recon", *self.on_ring, *GRID, "--data", data, "--iterations", 4, "-o",
                          self.path("a.nii"), "--save-every", 2)
        second = self.json("recon", *self.on_ring, *GRID, "--data", data, "--iterations", 2,
                           "--initial", self.path("a.iter2.nii"), "-o", self.path("b.nii"))
        self.assertAlmostEqual(first["iterations"][3]["log_likelihood"] /
                               second["iterations"][1]["log_likelihood"], 1, places=6)

    def test_initial_on_another_grid(self):
        data = self.expected_counts()
        self.good("sensitivity", *self.on_ring, *GRID, "--origin-mm=-7,-6,-4", "-o",
                  self.path("moved.nii"))
        self.refuse(3, ["moved.nii", "grid"], "recon", *self.on_ring, *GRID, "--data", data,
                    "--initial", self.path("moved.nii"), "-o", "x.nii")

    def test_safir_events(self):
        folder = Path(os.environ.get("LORASTER_DATA", self.source_root / "../shared/data"))
        events = folder / "safir" / "coincidencesLM.clm.safir"
        if not events.exists():
            self.skipTest(f"no {events}; set LORASTER_DATA to the folder of real inputs")
        found = self.json("recon", "--scanner", "safir-dual-ring-prototype", *CPU, "--events",
                          events, "--grid", "5,5,3", "--voxel-mm", "8,8,10", "--rays", 1,
                          "--samples", 1, "--iterations", 1, "-o", self.path("x.nii"))
        self.assertEqual(found["events"]["prompts"] + found["events"]["delayeds"], 1408)
        self.assertEqual(found["events"]["unknown_crystals"], 0)


class Stop(ProgramTest):
    def test_interrupt_keeps_the_last_iteration(self):
        data = self.expected_counts()
        process = subprocess.Popen(
            [self.program, "recon", *self.on_ring, *GRID, "--data", data, "--iterations",
             "100000", "-o", self.path("x.nii")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        seen = ""
        while "iteration 2:" not in seen:
            line = process.stderr.readline()
            self.assertNotEqual(line, "", f"ended early: {seen}")
            seen += line
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, rest)
        self.assertIn("stopped", rest)
        finished = int(re.search(r"stopped after iteration (\d+)", rest).group(1))
        self.assertGreaterEqual(finished, 2)
        self.assertGreater(sum(read_nifti(self.path("x.nii"))[3]), 0)

    def test_interrupt_of_one_projection_leaves_nothing(self):
        process = subprocess.Popen(
            [self.program, "sensitivity", "--scanner", "ge-explore-vista-dr", *CPU, "--rays", "8",
             "--grid", "96,96,16", "--voxel-mm", "0.45", "-o", self.path("s.nii")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        self.assertIsNone(process.poll(), "ended before it could be interrupted")
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, rest)
        self.assertIn("stopped", rest)
        self.assertNotIn("error:", rest)
        self.assertEqual(os.listdir(self.folder), ["ring.yaml"])


class Render(ProgramTest):
    def read_npy(self, path):
        raw = Path(path).read_bytes()
        self.assertEqual(raw[:8], b"\x93NUMPY\x01\x00")
        length = int.from_bytes(raw[8:10], "little")
        header = raw[10:10 + length].decode()
        self.assertIn("'<f4'", header)
        shape = tuple(int(n) for n in re.search(r"\(([^)]*)\)", header).group(1).split(",") if n)
        values = memoryview(raw[10 + length:]).cast("f")
        return shape, values

    def test_pixels_sum_to_the_row(self):
        """Σ weights of all primary images = Σ of the matrix row."""
        found = self.json("render", *self.on_ring, "--rays", 4, "--at", "1,2,-1", "-o",
                          self.path("pictures"))
        row = self.json("matrix", *self.on_ring, "--mode", "sampled", "--rays", 4, "--at",
                        "1,2,-1", "-o", self.path("r.tsv"))
        total = 0.0
        arrays = sorted(Path(self.path("pictures")).glob("module_*.npy"))
        self.assertEqual(len(arrays), len(found["modules"]))
        for path in arrays:
            shape, values = self.read_npy(path)
            self.assertEqual(shape, (16, 16, 5))
            weights = values[3::5]
            self.assertGreater(max(values[0::5]), -1)
            total += sum(weights)
            for pixel in range(256):
                module, r, s, weight, path_mm = values[5 * pixel:5 * pixel + 5]
                if module < 0:
                    self.assertEqual((r, s, weight), (-1, -1, 0))
                else:
                    self.assertIn(module, range(8))
                    self.assertIn(r, range(4))
                    self.assertIn(s, range(4))
                    self.assertGreater(path_mm, 20)
        self.assertLess(abs(total / row["sum"] - 1), 1e-5)

    def test_pictures(self):
        found = self.json("render", *self.on_ring, "--at", "0,0,0", "-o", self.path("p"))
        names = set(os.listdir(self.path("p")))
        for module in found["modules"]:
            for name in (f"module_{module}.npy", f"module_{module}_colour.png",
                         f"module_{module}_weight.png"):
                self.assertIn(name, names)
        self.assertIn("contact_sheet.png", names)
        for name in names:
            if name.endswith(".png"):
                self.assertEqual((self.folder / "p" / name).read_bytes()[:4], b"\x89PNG")

    def test_captions_of_narrow_pictures(self):
        """Columns of the contact sheet are as wide as their captions."""
        narrow = self.write("narrow.yaml", SMALL_RING.replace("modules: 8", "modules: 32").replace(
            "crystals: [4, 4], pitch_mm: [4, 4], face_mm: [3.8, 3.8]",
            "crystals: [1, 16], pitch_mm: [2, 1], face_mm: [1.9, 0.9]"))
        found = self.json("render", "--scanner", narrow, *CPU, "--at", "0,0,0", "-o",
                          self.path("p"))
        self.assertEqual(len(found["modules"]), 16)
        header = (self.folder / "p" / "contact_sheet.png").read_bytes()[:24]
        captions = 6 * len("module 1: crystals met" + "module 1: weight") - 2
        self.assertGreater(int.from_bytes(header[16:20], "big"), 3 * captions)

    def test_one_module(self):
        found = self.json("render", *self.on_ring, "--at", "3,0,0", "--module", 4, "-o",
                          self.path("p"))
        self.assertEqual(found["modules"], [4])

    def test_refusals(self):
        self.refuse(2, "--at", "render", *self.on_ring, "-o", "p")
        self.refuse(2, "--module", "render", *self.on_ring, "--at", "0,0,0", "--module", "8",
                    "-o", "p")
        self.refuse(2, "exact", "render", *self.on_ring, "--mode", "exact", "--at", "0,0,0",
                    "-o", "p")
        self.refuse(1, "ring.yaml", "render", *self.on_ring, "--at", "0,0,0", "-o", "ring.yaml")


class NoGl(ProgramTest):
    def setUp(self):
        super().setUp()
        self.without_gl = dict(os.environ, __EGL_VENDOR_LIBRARY_FILENAMES="/nonexistent")

    def test_raster_is_refused(self):
        self.refuse(4, ["OpenGL", "install"], "sensitivity", "--scanner", self.scanner, *GRID,
                    "--backend", "raster", "-o", "s.nii", env=self.without_gl)

    def test_auto_takes_cpu_and_says_so(self):
        done = self.good("sensitivity", "--scanner", self.scanner, *GRID, "-o", "s.nii",
                         env=self.without_gl)
        self.assertIn("backend cpu", done.stderr)

    def test_info(self):
        found = self.json("info", env=self.without_gl)
        self.assertEqual(found["auto"]["backend"], "cpu")
        raster = [b for b in found["backends"] if b["backend"] == "raster"][0]
        self.assertFalse(raster["works"])
        self.assertTrue(raster["reason"])
        self.assertIn("apt-get install", self.good("info", env=self.without_gl).stdout)
        done = self.run_program("info", "--backend", "raster", env=self.without_gl)
        self.assertEqual(done.returncode, 4)


class Json(ProgramTest):
    """Every key of every --json is in docs/formats.md."""

    def keys(self, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield key
                yield from self.keys(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from self.keys(inner)

    def test_keys_are_documented(self):
        page = (self.source_root / "docs" / "formats.md").read_text()
        section = page[page.index("# JSON output of the verbs"):]
        data = self.expected_counts()
        commands = [
            ["info"], ["scanner", "list"], ["scanner", "show", self.scanner, "--crystals"],
            ["scanner", "check", self.scanner],
            ["matrix", *self.on_ring, "--at", "0,0,0", "-o", self.path("m.tsv")],
            ["project", *self.on_ring, "--image", self.image(), "-o", self.path("p.h5")],
            ["backproject", *self.on_ring, *GRID, "--data", data, "-o", self.path("b.nii")],
            ["sensitivity", *self.on_ring, *GRID, "-o", self.path("s.nii")],
            ["simulate", *self.on_ring, *GRID, "--phantom", "point", "-o", self.path("d.h5")],
            ["render", *self.on_ring, "--at", "0,0,0", "-o", self.path("r")],
            ["recon", *self.on_ring, *GRID, "--data", data, "-o", self.path("x.nii")],
        ]
        for command in commands:
            found = self.json(*command)
            self.assertEqual(found["verb"], " ".join(command[:2]) if command[0] == "scanner"
                             else command[0])
            for key in self.keys(found):
                self.assertIn(f"`{key}`", section, f"{command[0]}: key {key}")


if __name__ == "__main__":
    main({"usage": Usage, "scanner": Scanner, "info": Info, "matrix": Matrix, "project": Project,
          "simulate": Simulate, "recon": Recon, "stop": Stop, "render": Render,
          "bad_input": BadInput, "scanner_files": ScannerFiles, "full_disk": FullDisk,
          "no_gl": NoGl, "json": Json})
