#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Black-box tests of simulated counts and of the images made from them."""
import math, os, re, shutil, signal
from pathlib import Path
from program import CPU, GRID, HANG_S, NUM_VOXELS, ProgramTest, main, preloadable, preloading, read_nifti


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


class Recon(ProgramTest):
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


class Stop(ProgramTest):
    def begin_recon(self, until="iteration 2:", **options):
        process = self.start(f"recon {self.on_ring} {GRID} --data {self.expected_counts()} --iterations 100000",
                             "-o x.nii", **options)
        seen = ""
        while until not in seen:
            line = process.stderr.readline()
            self.assertNotEqual(line, "", f"ended early: {seen}")
            seen += line
        return process

    def test_signals_keep_the_last_iteration(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                process = self.begin_recon()
                process.send_signal(number)
                _, rest = process.communicate(timeout=HANG_S)
                self.assertEqual(process.returncode, 1, rest)
                self.assertTrue(rest.endswith("loraster: stopped\n"), rest)
                self.assertGreaterEqual(int(re.search(r"stopped after iteration (\d+)", rest).group(1)), 2)
                self.assertGreater(sum(read_nifti("x.nii")[3]), 0)
                os.remove("x.nii")

    def test_nohup(self):
        """Whoever has started it may have said that a closed terminal is not meant."""
        process = self.begin_recon(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        self.assertIn("iteration", process.stderr.readline())
        process.send_signal(signal.SIGTERM)
        self.assertIn("stopped", process.communicate(timeout=HANG_S)[1])

    @staticmethod
    def catches(pid):
        """Whether SIGTERM has a handler: from the program's first moments on."""
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            caught, = re.findall(r"SigCgt:\s*(\w+)", file.read())
        return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)

    def test_first_moments(self):
        for words in [["sensitivity --scanner siemens-mmr --grid 99,99,99 --voxel-mm 2 -o s.nii"],
                      ["bench correspondence --size full --backend native"]] * 3:
            process = self.start(*words)
            while not self.catches(process.pid):
                self.assertIsNone(process.poll())
            process.send_signal(signal.SIGTERM)
            said = process.communicate(timeout=HANG_S)[1]
            self.assertEqual(process.returncode, 1, said)
            self.assertTrue(said.endswith("loraster: stopped\n"), said)
        self.assertEqual(os.listdir(self.folder), ["ring.yaml"])

    def test_last_moments(self):
        """Counts are drawn, and being written: none are left, or all, and it says which. On a slow disk, too."""
        for environment in None, preloading(preloadable(os.environ["LORASTER_SLOW_FOLDER"], self.addCleanup)):
            process = self.start("simulate --scanner ge-explore-vista-dr --phantom derenzo --grid 20,20,4",
                                 "--voxel-mm 2 --samples 1 --backend native --counts 1000000.0 -o y.h5",
                                 env=environment)
            while "counts drawn" not in process.stderr.readline():
                self.assertIsNone(process.poll())
            process.send_signal(signal.SIGTERM)
            said = process.communicate(timeout=HANG_S)[1]
            is_there = os.path.exists("y.h5")
            self.assertEqual(process.returncode, 0 if is_there else 1, said)
            self.assertIn("it is complete" if is_there else "loraster: stopped\n", said)
            Path("y.h5").unlink(missing_ok=True)

    def test_reader_has_gone(self):
        """A reader that wants no more, such as `head`, ends the program without an error, and without SIGPIPE."""
        process = self.start("scanner show siemens-mmr --crystals")
        process.stdout.readline()
        process.stdout.close()
        process.stdout = None
        said = process.communicate(timeout=HANG_S)[1]
        self.assertEqual((process.returncode, said), (0, ""))

    def test_interrupt_of_one_projection_leaves_nothing(self):
        self.interrupt("back-projecting: ", f"sensitivity --scanner ge-explore-vista-dr {CPU} --grid 96,96,16",
                       "--voxel-mm 0.45 -o s.nii")
        self.assertEqual(os.listdir(self.folder), ["ring.yaml"])


main({"simulate": Simulate, "recon": Recon, "stop": Stop})
