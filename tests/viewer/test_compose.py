#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Guesses that the viewer composes in one process, against those of a cluster's ranks; and voxels of
total-body scanners, of which it computes what the window shows.

usage: test_compose.py LORASTER SOURCE TOPIC
"""
import json, math, resource, sys
from pathlib import Path

from steps import SHEET, ViewTest, main, read_png

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "dist"))
from ranks import MPIRUN, mpirun

GRID = "--grid 12,11,5 --voxel-mm 2"
BARS = (888, 380, 1260, 900)  # of the panel, in a window of 1280 x 1000


def numbers(text):
    return [float(word) for word in text.split(",")]


class Compose(ViewTest):
    ROUNDS = ["compose.rounds", "compose.weights", "compose.condition", "compose.residual", "compose.residuals",
              "compose.clipped_residual", "compose.negative_voxels", "live.log_likelihood", "live.backend"]

    def counts(self):
        self.good(f"simulate --scanner {self.scanner} {GRID} --phantom spheres --counts 20000",
                  "--backend native --truth truth.nii -o d.h5")

    def ranks(self, count, *words):
        """The last composition of as many ranks, and the log-likelihood."""
        program = Path(self.program)
        if MPIRUN is None or not (program.parent / "lr_mpi.so").exists():
            self.skipTest("no MPI")
        recon = f"recon --scanner {self.scanner} {GRID} --data d.h5 --combine paper --backend native --json -o p.nii"
        done = mpirun(program, count, program, *recon.split(), *words)
        return json.loads(done.stdout)["iterations"]

    def steps(self, guesses, local, subsets, iterations):
        return ["open scanner ring.yaml", "wait", "open image truth.nii", "wait", "open data d.h5", "wait", "tool live",
                f"set guesses {guesses}", f"set local {local}", f"recon start {subsets} {iterations}", "wait"]

    def test_weights_of_ranks(self):
        """Eight ranks by mpirun and eight guesses here: the same weights, residuals and clipping."""
        self.counts()
        steps = self.ranks(8, "--iterations", "20", "--local-iterations", "10")
        found = self.values([*self.steps(8, 10, 1, 20), *(f"print {each}" for each in self.ROUNDS)])
        last = steps[-1]["composition"]
        self.assertEqual((found["live.backend"], int(found["compose.rounds"])), ("native", len(steps)))
        for a, b in zip(numbers(found["compose.weights"]), last["weights"]):
            self.assertAlmostEqual(a, b, delta=1e-6)
        self.assertEqual(len(numbers(found["compose.weights"])), 8)
        for a, b in zip(numbers(found["compose.residuals"]), last["guess_residuals"]):
            self.assertAlmostEqual(a / b, 1, delta=1e-6)
        for name in ("condition", "residual", "clipped_residual"):
            self.assertAlmostEqual(float(found[f"compose.{name}"]) / last[name], 1, delta=1e-6)
        self.assertEqual(int(found["compose.negative_voxels"]), last["negative_voxels"])
        self.assertGreater(last["negative_voxels"], 0)
        self.assertAlmostEqual(float(found["live.log_likelihood"]) / steps[-1]["log_likelihood"], 1, delta=1e-7)

    def test_what_is_seen(self):
        """Bars of the weights, a negative one in its colour; slices; a pause between compositions."""
        self.counts()
        pairs, _ = self.view(["size 1280 1000", *self.steps(8, 10, 1, 0)[:-2], "recon start 1 40",
                              "recon pause", "wait", "print compose.rounds", "recon step", "wait",
                              "print compose.rounds", "recon resume", "wait", "print compose.rounds",
                              "print compose.weights", "screenshot a.png"])
        self.assertEqual([int(text) for _, text in pairs[:3]], [1, 2, 4])
        weights = numbers(pairs[3][1])
        self.assertAlmostEqual(sum(weights), 1, delta=1e-8)
        self.assertLess(min(weights), 0)
        _, _, rows = read_png(self.path("a.png"))
        colours = {}
        left, top, right, bottom = BARS
        for row in rows[top:bottom]:
            for x in range(left, right):
                pixel = row[3 * x:3 * x + 3]
                colours[pixel] = colours.get(pixel, 0) + 1
        blue = colours.get(bytes((87, 181, 232)), 0)
        red = colours.get(bytes((237, 120, 51)), 0)
        self.assertGreater(blue, 1000)
        self.assertGreater(red, 100)

    def test_mistakes(self):
        self.counts()
        found = self.values([*self.steps(2, 1, 1, 1)[:-2], "set family direct", "recon start", "print live.error"])
        self.assertIn("family correspondence", found["live.error"])
        found = self.values([*self.steps(16, 1, 1, 1), "set family listmode", "recon start", "print live.error"])
        self.assertIn("family correspondence", found["live.error"])
        for words, steps in (("17 guesses", ["set guesses 17"]), ("0 iteration", ["set local 0"])):
            with self.subTest(words):
                done = self.run_program(*self.arguments(["open scanner ring.yaml", "wait", *steps]))
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(words, done.stderr)


class Large(ViewTest):
    """Voxels of a scanner of 560,000 crystals: some 4e7 elements, of which a window shows thousands."""

    def test_part(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        pairs, _ = self.view(["open scanner united-imaging-uexplorer", "wait 1000", "print voxel.pairs",
                              "print voxel.sum", f"move {SHEET[0] + 60} {SHEET[1] + 120}", "print touched",
                              "print touched.sampled", "print touched.exact"])
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        print(f"{seconds:.1f} s of processors")
        self.assertLess(seconds, 20)  # 90 where all LORs were computed
        found = dict(pairs)
        self.assertGreater(int(found["voxel.pairs"]), 0)
        self.assertTrue(math.isnan(float(found["voxel.sum"])))
        sampled, exact = float(found["touched.sampled"]), float(found["touched.exact"])
        self.assertGreater(exact, 0)
        self.assertGreater(sampled, 0)

    def test_part_is_of_the_whole(self):
        """The elements that are shown are those of the whole row."""
        steps = ["open scanner siemens-vision-quadra", "wait 1000", "set samples 36", "wait 1000"]
        at = [f"move {SHEET[0] + x} {SHEET[1] + y}" for x, y in ((60, 60), (80, 50), (40, 90))]
        ask = [[step, "print touched", "print touched.sampled", "print touched.exact"] for step in at]
        part, _ = self.view([*steps, "print voxel.pairs", *sum(ask, [])])
        whole, _ = self.view([*steps, "set whole 1", "wait 1000", "print voxel.pairs",
                              "print voxel.sum", *sum(ask, [])])
        self.assertGreater(int(part[0][1]), 0)
        self.assertEqual(whole[0][1], "0")
        self.assertGreater(float(whole[1][1]), 0)
        self.assertEqual(part[1:], whole[2:])


main({"compose": Compose, "total_body": Large})
