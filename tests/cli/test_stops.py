# SPDX-License-Identifier: Apache-2.0
"""What verbs say before and during long work, and how soon a signal ends them."""
import os, random, re, resource, shutil, signal, subprocess, time, unittest
from pathlib import Path

from program import (CPU, GRID, HANG_S, NUM_VOXELS, ProgramTest, main, preloadable, preloading, read_nifti, ring_of,
                     split)

VISTA = "--scanner ge-explore-vista-dr"
MMR = "--scanner siemens-mmr"
FINE = "--grid 800,800,160 --voxel-mm 0.1"  # 1e8 voxels of the Vista
MIDDLE = "--grid 200,200,80 --voxel-mm 0.4"  # of the same, as raster can hold it
BODY = "--grid 344,344,127 --voxel-mm 2"  # of the mMR
# 16,000, any two of which may overlap.
MANY_MODULES = ring_of("many modules", "radius_mm: 4800, modules: 1000, rings: 16, ring_pitch_mm: 12",
                       "crystals: [4, 4], pitch_mm: [2, 2], face_mm: [1.8, 1.8], depth_mm: 10",
                       "coincidence: {field_of_view_mm: 300}")
# Processor seconds after the signal, which do not depend on what else runs: one thread works, and
# on an idle processor they are the seconds that a person waits.
# Sanitizers look at every access, and for leaks at the end.
MOST_S = 6.0 if os.environ.get("LORASTER_SANITIZED") else 2.0
# Seconds of drawing before the signal. Programs of OpenGL have been compiled by then.
DRAWING_S = {"native": 0.6, "cpu": 0.6, "compute": 1.2, "raster": 1.2}
# OpenGL's and the program's own threads.
ONE_THREAD = {"LP_NUM_THREADS": "0"}


def take_one_processor():
    """Threads that no option bounds, as those that compress a file, would count several times."""
    os.sched_setaffinity(0, {random.choice(sorted(os.sched_getaffinity(0)))})


def used_s(pid):
    """Processor seconds of a process so far; None where it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Signals(ProgramTest):
    """Every verb with long work, at real size, ends soon and leaves nothing behind but what it says."""

    def stop_after(self, work_s, number, arguments):
        """Ends the program once it has worked for that long: what it said, its exit code, and the processor seconds
        from the signal on."""
        errors = open("said.txt", "w+", encoding="utf-8", errors="replace")
        self.addCleanup(errors.close)
        process = subprocess.Popen([self.program, *split(arguments)], cwd=self.folder, stdout=errors, stderr=errors,
                                   env={**os.environ, **ONE_THREAD}, preexec_fn=take_one_processor)
        self.addCleanup(process.kill)
        while (used_s(process.pid) or 0) < work_s:
            ended = os.waitpid(process.pid, os.WNOHANG)
            self.assertEqual(ended[0], 0, f"{arguments} ended before it was stopped")
            time.sleep(0.02)
        before_s = used_s(process.pid)
        process.send_signal(number)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        return errors.read(), process.returncode, usage.ru_utime + usage.ru_stime - before_s

    def check(self, *arguments, work_s=0.6, leaves=(), number=signal.SIGINT):
        """work_s: when the long part has begun, which on the processor takes less than 0.3 s."""
        there = set(os.listdir(self.folder)) | {"said.txt"}
        with self.subTest(" ".join(split(arguments)[:6])):
            said, code, seconds = self.stop_after(work_s, number, arguments)
            self.assertEqual(code, 1, said)
            self.assertTrue(said.endswith("loraster: stopped\n"), said)
            self.assertNotIn("loraster: error:", said)
            self.assertLess(seconds, MOST_S, said)
            self.assertLessEqual(set(os.listdir(self.folder)) - there, set(leaves), said)
        for name in set(leaves) & set(os.listdir(self.folder)) - there:
            if os.path.isdir(name):
                shutil.rmtree(name)
            else:
                os.remove(name)


class RowSignals(Signals):
    def test_sensitivity(self):
        for backend in ["native", "cpu", "compute", "raster"]:
            grid = MIDDLE if backend == "raster" else FINE
            self.check(f"sensitivity {VISTA} {grid} --backend {backend} --threads 1 -o s.nii", number=signal.SIGTERM,
                       work_s=DRAWING_S[backend])
        self.check(f"sensitivity {MMR} {BODY} --backend native --threads 1 -o s.nii")

    def test_matrix(self):
        """The fast one has begun to write by then, beside what it computes."""
        for backend, work_s in [("native", 4), ("cpu", 0.6), ("compute", 1.5)]:
            self.check(f"matrix {VISTA} {FINE} --rows 0:200000 --backend {backend} --threads 1 -o m.h5", work_s=work_s,
                       leaves=["m.h5.part", "m.h5.part-rows"])
        self.check(f"matrix {VISTA} --grid 40,40,8 --voxel-mm 1 --by lor --backend native --threads 1 -o m.h5",
                   number=signal.SIGTERM, leaves=["m.h5.part", "m.h5.part-rows"])

    def test_a_matrix_file_is_verified(self):
        rows = f"{MMR} --grid 20,20,8 --voxel-mm 2 --rows 0:1000 --threshold 0.9 --backend native --threads 1"
        self.good(f"matrix {rows} -o m.h5")
        self.check(f"matrix verify m.h5 {rows} --compare 1000")

    def test_scanners_and_factors(self):
        self.image("mu.nii", values=[0.01] * NUM_VOXELS, voxel_mm=(60, 60, 60))
        ring = self.write("rings.yaml", MANY_MODULES)
        self.check(f"scanner check {ring}")
        self.check(f"factors {MMR} --mu mu.nii --mu-unit 1/mm --threads 1 -o f.h5")


class DataSignals(Signals):
    def test_simulate_and_recon(self):
        self.check(f"simulate {VISTA} {FINE} --phantom derenzo --backend native --threads 1 -o y.h5")
        self.check(f"simulate {self.on_ring} --phantom spheres --grid 6,5,3 --voxel-mm 3,3,4 --counts 2000000000",
                   "-o y.petsird")
        self.good(f"simulate {VISTA} --phantom derenzo --grid 20,20,4 --voxel-mm 2 --samples 1 --backend native",
                  "--counts 100000 -o counts.h5")
        for backend in ["native", "compute", "cpu"]:
            self.check(f"recon {VISTA} {FINE} --data counts.h5 --store no --backend {backend} --threads 1 -o x.nii",
                       number=signal.SIGTERM, work_s=DRAWING_S[backend])
        self.check(f"backproject {VISTA} {FINE} --data counts.h5 --backend compute --threads 1 -o x.nii",
                   work_s=DRAWING_S["compute"])

    def test_events(self):
        self.good(f"simulate {self.on_ring} --phantom spheres --grid 6,5,3 --voxel-mm 3,3,4 --counts 5000000",
                  "-o y.petsird")
        self.check("events convert y.petsird z.tsv", work_s=0.4)

    def test_direct(self):
        self.image("x.nii", size=(96, 96, 48), values=[1.0] * (96 * 96 * 48), voxel_mm=(4, 4, 4))
        kernel = "--tof-ps 500 --backend cpu --threads 1"
        self.check(f"direct project --image x.nii {kernel} -o h.h5")
        self.good(f"direct project --image x.nii {kernel} --azimuths 2 --tilts 1 -o y.h5")
        self.check(f"recon --operator direct --data y.h5 {kernel} --algorithm ramla --views-per-block 1",
                   "--iterations 100000 -o r.nii")
        self.check(f"direct deposit --activity x.nii {MMR} --tof-ps 500 --count 2000000000 --threads 1 -o z.h5",
                   number=signal.SIGTERM)
        self.check(f"direct factors {MMR} --like x.nii --directions 1000 --threads 1 -o n.h5")
        self.check("direct lut --tof-ps 5000 --grid 2000,2000,400 --voxel-mm 1 -o t.png")


class PictureSignals(Signals):
    def test_pictures(self):
        self.check("phantom derenzo --grid 1000,1000,800 --voxel-mm 0.1 -o p.nii.gz", work_s=2.5)
        self.check(f"render {MMR} --at 5,0,2 --rays 64 -o pictures --threads 1", leaves=["pictures"], work_s=1.2)

    def test_view(self):
        self.write("frames.txt", "frames 100000000\n")
        self.check(f"view --no-window --script frames.txt {MMR}", work_s=1.2)
        self.write("sensitivity.txt", "open scanner siemens-mmr\nwait\nsensitivity\nwait\n")
        self.check("view --no-window --script sensitivity.txt --threads 1", work_s=4)
        self.check(f"view --no-window --bench-frames 1000000 {MMR}", number=signal.SIGTERM, work_s=1.2)

    def test_benches_and_demo(self):
        self.check("bench correspondence --size full --backend native --threads 1")
        self.check("bench direct --backend cpu --threads 1")
        self.check("demo --threads 1 -o demo", leaves=["demo"], work_s=1.2)


class Forecast(ProgramTest):
    """What is said before long work, and what is refused because it does not fit."""
    ROWS = f"{VISTA} --backend native"

    def test_elements_and_bytes_of_a_matrix(self):
        for name in ["m.h5", "m.npz", "m.mtx", "m.tsv"]:
            grid = "--grid 12,12,8 --voxel-mm 2 --pairs 0-8,1-10,2-12"
            found = self.json(f"matrix {self.ROWS} {grid} --dry-run -o {name}")["forecast"]
            self.assertFalse(os.path.exists(name))
            made = self.json(f"matrix {self.ROWS} {grid} -o {name}")
            self.assertEqual(found["rows"], made["rows"])
            self.assertLess(abs(found["elements"] - made["elements"]), 0.25 * made["elements"])
            bytes_made = os.path.getsize(name) - 100000  # heads and tables of scanners
            self.assertTrue(0.5 * bytes_made < found["disk_bytes"] < 4 * max(bytes_made, 1e5), name)
            self.assertGreater(found["free_bytes"], 1e6)

    def test_rows_of_points_are_not_estimated(self):
        found = self.json(f"matrix {self.ROWS} --at 1,0,0 --at 2,0,0 --dry-run -o m.h5")["forecast"]
        self.assertEqual(found["rows"], 2)
        self.assertIsNone(found["elements"])
        self.assertFalse(os.path.exists("m.h5"))

    def test_rows_of_lors(self):
        grid = "--grid 12,12,8 --voxel-mm 2 --by lor --pairs 0-8"
        found = self.json(f"matrix {self.ROWS} {grid} --dry-run -o m.h5")["forecast"]
        made = self.json(f"matrix {self.ROWS} {grid} -o m.h5")
        self.assertEqual(found["rows"], made["rows"])
        self.assertLess(abs(found["elements"] - made["elements"]), 0.25 * made["elements"])

    def test_a_matrix_that_does_not_fit_is_refused_at_once(self):
        """About 1e13 bytes, of which no disk of a test has as many free."""
        begun = time.process_time()
        for name, words in [("m.h5", ["--rows"]), ("m.mtx", ["HDF5 (.h5)"])]:
            self.refuse(1, [name, "are free there", "what fits is about", *words], f"matrix {self.ROWS}",
                        f"--grid 800,800,320 --voxel-mm 0.1 -o {name}")
        self.refuse(2, ["4 GiB", "HDF5 (.h5)"], f"matrix {self.ROWS} --grid 800,800,320 --voxel-mm 0.1 -o m.npz")
        self.refuse(1, ["--lors FIRST:LAST"], f"matrix {self.ROWS} --grid 800,800,320 --voxel-mm 0.1 --by lor -o m.h5")
        self.assertLess(time.process_time() - begun, 30)

    @staticmethod
    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    @unittest.skipIf(os.environ.get("LORASTER_SANITIZED"), "sanitizers want terabytes of addresses")
    def test_an_image_that_does_not_fit_into_memory_is_refused(self):
        self.refuse(1, ["voxels need about", "GiB of memory on backend native", "edges"],
                    f"sensitivity {self.ROWS} --grid 1000,1000,450 --voxel-mm 0.08 -o s.nii.gz",
                    preexec_fn=self.limited)

    def test_work_is_announced(self):
        grid = "--grid 96,96,16 --voxel-mm 0.45"
        done = self.good(f"sensitivity {self.ROWS} {grid} --dry-run -o s.nii")
        self.assertRegex(done.stderr, r"this takes about .* on the disk, where .* are free, and .* of memory\n")
        self.assertEqual(os.listdir(self.folder), ["ring.yaml"])
        self.expected_counts()
        for verb, *arguments in [("simulate", "--phantom", "spheres", "-o", "z.h5"),
                                 ("recon", "--data", "y.h5", "-o", "x.nii"),
                                 ("backproject", "--data", "y.h5", "-o", "x.nii")]:
            found = self.json(verb, f"{self.on_ring} --grid 6,5,3 --voxel-mm 3,3,4", *arguments, "--dry-run")
            self.assertEqual(found["verb"], verb)
            self.assertGreater(found["forecast"]["memory_bytes"], 0)
            self.assertNotIn("seconds", found["forecast"])
        self.assertEqual(sorted(os.listdir(self.folder)), ["ring.yaml", "y.h5"])

    def test_a_log_hears_how_long_it_takes(self):
        """It has no line that is drawn again and again."""
        running = self.start(f"sensitivity {VISTA} {FINE} --backend native -o s.nii")
        said = ""
        while running.poll() is None and " left" not in said:
            said = running.stderr.readline()
        self.assertRegex(said, r"^loraster: .+: \d+ %, about .+ left\n$")
        running.send_signal(signal.SIGINT)
        running.communicate()

    def test_a_forecast_makes_no_matrix(self):
        """It counts its memory: eight bytes an element."""
        self.expected_counts()
        recon = f"recon {self.on_ring} --grid 12,12,6 --voxel-mm 2,2,2 --data y.h5 -o x.nii --dry-run"
        kept, anew = (self.json(f"{recon} --store {store}") for store in ("yes", "no"))
        matrix = self.json(f"matrix {self.on_ring} --grid 12,12,6 --voxel-mm 2,2,2 -o m.h5")
        self.assertAlmostEqual(kept["forecast"]["memory_bytes"] - anew["forecast"]["memory_bytes"], 8 *
                               matrix["elements"], delta=4 * matrix["elements"] + 5e6)


class Bar(ProgramTest):
    """One line for a whole reconstruction."""

    def test_names_iteration_and_subset(self):
        """A line is drawn five times a second: this takes a few."""
        size = "7,7,4" if os.environ.get("LORASTER_SANITIZED") else "12,12,6"
        grid = f"--grid {size} --voxel-mm 2"
        self.good(f"simulate {self.on_ring} --phantom spheres {grid} --counts 10000 -o y.h5")
        running = self.on_terminal(f"recon {self.on_ring} {grid} --data y.h5 --store no --algorithm osem --subsets 4",
                                   "--iterations 3 -o x.nii")
        self.assertEqual(running.end(), 0, running.said)
        shares = [int(share) for share in re.findall(r"recon \[[# ]{12}\] (\d+) %, (?:iter|sens)", running.said)]
        self.assertGreater(len(shares), 3, running.said)
        self.assertEqual(shares, sorted(shares), "the bar goes back")
        self.assertRegex(running.said, r"iteration [123] of 3, subset [1234] of 4")
        self.assertRegex(running.said, r"sensitivity of subset [1234] of 4")
        self.assertNotIn("projecting", running.said)


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


main({"stop": Stop, "signals_rows": RowSignals, "signals_data": DataSignals, "signals_pictures": PictureSignals,
      "forecast": Forecast, "bar": Bar})
