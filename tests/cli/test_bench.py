#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench correspondence: its figures against an outsider's count, and how it ends; and the tables that
tools/bench_table.py makes of what all verbs of bench write."""
import json, math, os, re, subprocess, sys
from pathlib import Path

from program import ProgramTest, main

BENCH = "bench correspondence"
SMALL = f"{BENCH} --workload pair --grid 4,4,4 --repeat 2 --seconds 1000"
TINY = f"{BENCH} --workload pair --grid 2,2,2 --repeat 1"
NO_GL = dict(os.environ, __EGL_VENDOR_LIBRARY_FILENAMES="/nonexistent")
DIRECTIONS = ("forward", "back")

# The cluster paper's pair, in numbers of its own: 32 crystals of 2 mm, planes 200 mm from the
# middle, 128 voxels of 0.45 mm along the planes and of 1 mm across them.
CRYSTALS, PITCH, PLANE, VOXELS = 32, 2.0, 200.0, 128


def overlaps(x, y):
    """Pairs of crystals along one axis that a point at x along it and y across it joins: each
    interval of the farther plane is projected through the point onto the nearer one."""
    shrink = (PLANE - abs(y)) / (PLANE + abs(y))
    half = CRYSTALS * PITCH / 2
    count = 0
    for p in range(CRYSTALS):
        left = -half + p * PITCH
        low = max(x - shrink * (left + PITCH - x), -half)
        high = min(x - shrink * (left - x), half)
        if high > low:
            count += (math.ceil((high + half) / PITCH - 1e-9) - math.floor((low + half) / PITCH + 1e-9))
    return count


def elements(edge):
    """Mean number of elements of the edge^3 voxels in the middle; u and v are alike."""
    middle = (edge - 1) / 2
    total = 0
    for iy in range(edge):
        total += sum(overlaps(0.45 * (i - middle), iy - middle) for i in range(edge)) ** 2
    return total / edge ** 3


class Bench(ProgramTest):
    found = None

    def figures(self):
        """One run, shared by the tests that look at its figures."""
        if Bench.found is None:
            Bench.found = self.json(SMALL)
        return Bench.found

    def measured(self, mode):
        found = [r for r in self.figures()["results"] if r["mode"] == mode and r["outcome"] == "measured"]
        self.assertIn("cpu", [r["backend"] for r in found])
        return found

    def test_head(self):
        found = self.figures()
        self.assertEqual(found["verb"], "bench correspondence")
        self.assertRegex(found["commit"], r"^[\w.+/-]+$")
        self.assertRegex(found["date"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(found["command"], f"loraster {SMALL} --json")
        self.assertEqual(list(found)[:7], ["verb", "version", "commit", "date", "command", "processor",
                                           "peak_memory_bytes"])
        self.assertTrue(found["processor"])
        self.assertGreater(found["peak_memory_bytes"], 2**20)

    def test_every_backend_and_mode_is_there(self):
        self.assertEqual({(r["backend"], r["mode"]) for r in self.figures()["results"]},
                         {(b, m) for b in ("compute", "raster", "native", "cpu")
                          for m in ("sampled", "exact")})
        for result in self.figures()["results"]:
            self.assertIn(result["outcome"], ("measured", "skipped"))
            self.assertEqual("reason" in result, result["outcome"] == "skipped")

    def test_keys_are_documented(self):
        section = (self.source_root / "docs" / "formats" / "json.md").read_text()

        def check(value):
            for inner in value.values() if isinstance(value, dict) else value:
                if isinstance(inner, (dict, list)):
                    check(inner)
            for key in value if isinstance(value, dict) else []:
                self.assertIn(f"`{key}`", section)
        check(self.figures())

    def test_elements_of_the_whole(self):
        """The paper's workload has about 1,260; a sample of 240 stands within 4 standard errors
        of the count over all."""
        expected = elements(VOXELS)
        self.assertLess(abs(expected / 1260 - 1), 0.03)
        whole = self.figures()["workloads"][0]
        self.assertGreaterEqual(whole["elements_voxels"], 200)
        error = whole["elements_standard_error"]
        self.assertTrue(0 < error < 0.06 * expected, error)
        self.assertLess(abs(whole["elements_per_voxel"] - expected), 4 * error)

    def test_elements_of_the_part(self):
        """64 voxels, all counted. Slivers at the edge of rounding may go either way."""
        expected = elements(4)
        for result in self.measured("exact") + self.measured("sampled"):
            self.assertTrue(result["is_part"])
            self.assertEqual((result["num_voxels"], result["elements_voxels"]), (64, 64))
            self.assertEqual(result["elements_standard_error"], 0)
            self.assertLess(abs(result["elements_per_voxel"] / expected - 1), 1e-3)

    def test_errors(self):
        """Bounds of the sampled mode at R = 4 are those of its method, 14 to 15 % on average;
        the exact ones are float's."""
        for result in self.measured("sampled"):
            self.assertTrue(0.1 < result["matrix_error"] < 0.2, result)
            self.assertTrue(0.05 < result["elements_missed"] < 0.4, result)
        for result in self.measured("exact"):
            self.assertLess(result["matrix_error"], 1e-5)
            self.assertLess(result["elements_missed"], 0.01)
            self.assertEqual(result["is_oracle"], result["backend"] == "cpu")
            if not result["is_oracle"]:
                self.assertGreater(result["matrix_error"], 0)
        for result in self.measured("sampled") + self.measured("exact"):
            self.assertLess(result["adjoint_error"], 1e-6)
            self.assertGreaterEqual(result["error_voxels"], 12)

    def test_rates(self):
        for result in self.measured("sampled") + self.measured("exact"):
            sampled = result["mode"] == "sampled"
            self.assertEqual(result["rays_per_voxel"], 16 * CRYSTALS**2 if sampled else None)
            for name in DIRECTIONS:
                found = result[name]
                seconds = found[found["rates_from"] + "_seconds"]
                voxels = result["num_voxels"]
                self.assertGreater(seconds, 0)
                self.assertLessEqual(found["runs"], 2)
                self.assertAlmostEqual(found["wall_us_per_voxel"] * voxels, 1e6 * found["wall_seconds"], delta=1e-3)
                self.assertLess(abs(found["elements_per_second"] * seconds /
                                    (result["elements_per_voxel"] * voxels) - 1), 1e-9)
                if sampled:
                    self.assertLess(abs(found["rays_per_second"] * seconds /
                                        (result["rays_per_voxel"] * voxels) - 1), 1e-9)
                if found["device_seconds"] is not None:
                    self.assertLess(found["device_seconds"], 1.05 * found["wall_seconds"])
                for ceiling in found["ceilings"]:
                    self.assertTrue(0 < ceiling["fraction"] < 1, ceiling)

    def test_turned_modules(self):
        found = self.json(f"{BENCH} --workload pair,angled,tilted --backend cpu --mode exact --grid 2,2,2 --repeat 1")
        counts = [w["elements_per_voxel"] for w in found["workloads"]]
        self.assertEqual(len(set(counts)), 3)
        self.assertTrue(all(900 < count < 1700 for count in counts), counts)

    def test_too_slow_takes_a_part(self):
        found, = self.json(f"{BENCH} --workload vista --backend cpu --mode exact --seconds 1 --repeat 1")["results"]
        self.assertTrue(found["is_part"])
        self.assertLess(found["num_voxels"], 64**3)
        self.assertEqual(found["grid"]["voxel_mm"], [0.8, 0.8, 0.65])

    def test_table_and_file(self):
        """JSON goes to the file or, without one, to standard output, or with --json to both; what was found so
        far, to standard error."""
        done = self.good(f"{SMALL} --backend cpu -o bench.json")
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"(?m)^loraster: pair, exact on cpu: [0-9.e+]+ ms forward, [0-9.e+]+ ms back$")
        found = json.loads(Path("bench.json").read_text())
        self.assertEqual((len(found["results"]), set(found)), (2, set(self.figures())))
        done = self.good(f"{TINY} --backend cpu -o again.json --json --quiet")
        self.assertEqual((json.loads(done.stdout)["results"][0]["backend"], done.stderr), ("cpu", ""))
        done = self.good(f"{TINY} --backend cpu --mode exact")
        self.assertEqual(len(json.loads(done.stdout)["results"]), 1)

        shown = self.table("bench.json")
        self.assertIn("### pair", shown)
        lines = [line for line in shown.splitlines() if line.startswith("| cpu")]
        self.assertEqual((len(lines), {line.count("|") for line in lines}, shown.count("| oracle ")), (4, {13}, 2))
        result = found["results"][1]
        self.assertIn(f" {result['elements_per_voxel']:.1f} ", lines[2])
        ms = 1e3 * result["forward"]["wall_seconds"]
        self.assertAlmostEqual(float(lines[2].split("|")[4]) / ms, 1, delta=0.006)

    def test_usage(self):
        self.refuse_each("bench", bench=BENCH)
        nowhere = dict(os.environ, LORASTER_LIBEXEC=str(self.folder))
        self.refuse(1, f"is not in {self.folder}: build it with cmake --build", SMALL, env=nowhere)
        os.chmod(self.write("loraster-bench", "no program\n"), 0o755)
        self.refuse(1, "cannot be started", SMALL, env=nowhere)
        self.refuse(1, "no folder", f"{SMALL} -o no/bench.json")

    def test_without_a_device(self):
        """Passed over where it was not asked for; its own exit code where nothing else was."""
        found = self.json(TINY, env=NO_GL)
        self.assertIsNone(found["device"])
        outcomes = {r["backend"]: r["outcome"] for r in found["results"]}
        self.assertEqual(outcomes, {"compute": "skipped", "raster": "skipped", "native": "measured", "cpu": "measured"})
        self.assertIn("OpenGL", self.ends(4, (), f"{TINY} --backend compute", env=NO_GL).stdout)

    def test_one_failure_is_a_line(self):
        """No machine has a device 30; the rest is measured, and the exit code tells."""
        done = self.ends(1, "error: 2 of 4 combinations could not be measured",
                         f"{TINY} --backend cpu,compute --device 30 --json")
        outcomes = {r["backend"]: r["outcome"] for r in json.loads(done.stdout)["results"]}
        self.assertEqual(outcomes, {"compute": "failed", "cpu": "measured"})

    def test_updates(self):
        results = self.json(f"{TINY} --backend native,compute --mode sampled --updates 1 -o u.json")["results"]
        self.assertEqual({found["backend"] for found in results}, {"native", "compute"})
        for found in results:
            self.assertEqual(found["update"]["subsets"], 1)
            wall, device = (found["update"][f"{name}_seconds"] for name in ("wall", "device"))
            self.assertGreater(wall, device or 0)
            self.assertEqual(device is None, found["backend"] == "native")
        self.assertEqual(len([line for line in self.table("u.json").splitlines() if " update " in line]), 2)
        self.assertNotIn("update", self.measured("sampled")[0])

    def test_native(self):
        """Both modes by name, as right as cpu's; a tilted module is a line with the reason, and
        passed over where the backend is only meant by default."""
        found = self.json(f"{SMALL} --backend native,cpu")["results"]
        for mode in ("sampled", "exact"):
            native, cpu = (next(r for r in found if (r["backend"], r["mode"]) == (b, mode)) for b in ("native", "cpu"))
            self.assertEqual(native["outcome"], "measured")
            self.assertIsNone(native["forward"]["device_seconds"])
            self.assertLess(abs(native["matrix_error"] - cpu["matrix_error"]), 1e-5)
        tilted = TINY.replace("pair", "tilted")
        done = self.ends(2, (), f"{tilted} --backend native --mode exact")
        self.assertIn("share an axial direction", done.stdout)
        self.assertIn("share an axial direction", self.table(self.write("tilted.json", done.stdout)))
        outcomes = {(r["backend"], r["outcome"]) for r in self.json(tilted, env=NO_GL)["results"]}
        self.assertEqual(outcomes, {("compute", "skipped"), ("raster", "skipped"),
                                    ("native", "skipped"), ("cpu", "measured")})

    def test_interrupt(self):
        self.interrupt("back-projecting: ", f"{BENCH} --workload vista --backend cpu --size full -o bench.json")
        self.assertFalse(any(re.match("bench", name) for name in os.listdir(self.folder)))


def seconds(wall, device=None):
    return {"wall_seconds": wall, "device_seconds": device}


class Tables(ProgramTest):
    """Tables that tools/bench_table.py makes of figures that no machine here has measured."""
    HEAD = {"version": "1", "commit": "abc", "date": "now", "command": "loraster bench", "processor": "P",
            "peak_memory_bytes": 1}

    def shown(self, verb, *, results, **keys):
        return self.table(self.write("made.json", json.dumps({"verb": verb, **self.HEAD, **keys, "results": results})))

    def rows(self, text, begin):
        return [self.cells(line) for line in text.splitlines() if line.startswith(f"| {begin} |")]

    def cells(self, line):
        return [cell.strip() for cell in line.split("|")[1:-1]]

    def case(self, workload, case, variant="cuda, bands, buffers", **more):
        """A case of bench direct: 1 ms forward, 2 ms back a view by the device, of a batch half of it."""
        times = {f"{way}{kind}": {"views": views, **seconds(9e-3, 1e-3 * each / views)}
                 for way, each in (("forward", 1), ("back", 2), ("tables", 0.5))
                 for kind, views in (("", 1), ("_batch", 2))}
        return {"workload": workload, "case": case, "variant": variant, "device": "D", "offsets": 269.4, **times,
                "forward_flop_share": 0.25, "back_flop_share": None, "ramla": seconds(None), "load_seconds": None,
                "fft": [], **more}

    def test_papers_of_direct(self):
        peer = {"library": "cufft", "name": "cuFFT 1", "padded": False, "size": [144, 144, 48],
                "single": seconds(1, 5e-4), "batch": seconds(1, 4e-4), "volumes": 7, "error": 0.125}
        stages = {"views": 30, "discrepancy_seconds": 4e-3, "update_seconds": 8e-3,
                  **{way: {"to_device_seconds": 1e-3, "project_seconds": each, "to_host_seconds": 3e-3}
                     for way, each in (("forward", 2e-3), ("back", 5e-3))}}
        taken = {"registers": 40, "threads": 256, "constant_bytes": 1, "local_bytes": 2, "shared_bytes": 3, "blocks": 4,
                 "occupancy": 0.5}
        results = [self.case("clinical", "invariant 5.8 mm", ramla=seconds(0.3, 0.29), load_seconds=0.123,
                             stages=stages, fft=[peer, {**peer, "padded": True, "single": seconds(1, 1e-4)}]),
                   self.case("clinical", "variant 1"),
                   self.case("large", "900 ps", forward_attributes=taken, back_attributes=taken),
                   self.case("figure4", "300 ps, 10 mm", fft=[peer]), self.case("figure4", "600 ps, 10 mm"),
                   self.case("caches", "300 ps")]
        text = self.shown("bench direct", paper=True, results=results)
        first, second = self.rows(text, "clinical, invariant 5.8 mm; cuda, bands, buffers")
        self.assertEqual(first[1:], ["269", "forward", "1", "0.5 (2)", "0.250", "", "0.5", "0.25", "290 / 300",
                                     "15630"])
        self.assertEqual(second[1:], ["269", "back", "2", "1 (2)", *6 * [""]])
        self.assertEqual(self.rows(text, "clinical, invariant 5.8 mm")[0][1:],
                         ["cuFFT 1", "144 x 144 x 48", "0.5", "0.4 (7)", "0.12"])
        own = self.rows(text, "cuda, bands, buffers")
        self.assertEqual(own[0], ["cuda, bands, buffers", "~0.12", "0.3", "~0.18", "-", "-"])  # table III
        self.assertEqual(own[1], ["cuda, bands, buffers", "0.001", "0.002", "0.0005", "0.18"])  # paper 2
        self.assertIn("loading all views once takes 0.123 s", text)
        self.assertEqual(self.rows(text, "cuda, bands, buffers, invariant, as the paper (30 views)")[0][1:],
                         ["2.4", "4.8", "7.2", "9.6", "2.4", "12", "7.2", "19.2", "64.8"])
        self.assertEqual(self.rows(text, "cuda, bands, buffers, invariant, resident")[0][1:],
                         ["0", "1.2", "0", "0", "0", "2.4", "0", "2.4", "6"])
        self.assertEqual(self.rows(text, "paper 1, invariant")[0][-1], "312")
        self.assertEqual(self.rows(text, "cuda, bands, buffers, of 2 views")[0][1:], ["0.0005", "0.001"])
        self.assertEqual(self.rows(text, "cuda, bands, buffers, back")[0][1:], ["1", "2", "3", "256", "40", "50"])
        self.assertEqual(self.rows(text, "300 ps, 10 mm")[0], ["300 ps, 10 mm", "0.5", "1", "2", "2"])
        self.assertEqual(self.rows(text, "600 ps, 10 mm")[0][1:], ["-", "1", "2", "0"])
        text = self.shown("bench direct", paper=False, results=results[:1])
        self.assertNotIn("Table I", text)

    def line(self, table, **more):
        """A case of bench listmode, half of the paper's million lines: 1 ms forward, 2 back, 4 in all."""
        return {"table": table, "size": [75, 75, 26], "width_voxels": 3, "lines": 500000, "paper_lines": 1e6,
                "kernel": "tube", "tof": True, "backend": "cuda", "device": "D", "variant": None, "subsets": 1,
                "iterations": 0, "partition_seconds": 0.25e-3, "sort_seconds": 0.125e-3, "prepare_seconds": 0.5,
                "forward": seconds(9, 1e-3), "back": seconds(9, 2e-3), "iteration": seconds(4e-3), "visits_a_line": 200,
                "voxels_per_s": 5e10, "ceilings": [{"fraction": 0.5}, {"fraction": 0.25}, {"fraction": 1}], "joules": 2,
                "energy_source": "NVML", "block_threads": 0, "blocks": 0, "collisions": 0, "most_collisions": 0,
                "image_deviation": None, **more}

    def test_paper_of_listmode(self):
        text = self.shown("bench listmode", tof_ps=600, results=[
            self.line("lines"), self.line("fastmath", variant="sorted", iteration=seconds(5e-3)),
            self.line("fastmath", variant="fastmath", image_deviation=1e-6),
            *(self.line("blocks", block_threads=128, blocks=n, iteration=seconds(1e-3 * n)) for n in (2, 1, 4))])
        self.assertEqual(self.rows(text, "lines")[0],
                         ["lines", "75 x 75 x 26", "3", "500000", "tube, TOF", "cuda", "2", "4", "8", "61", "125", "50",
                          "50 %", "25 %", "2, NVML", "0.5", "0.25", "0.5"])
        self.assertIn("Fast math (table II), tube of 3 voxels: 1 ms of an iteration saved, 20.0 %; images 1e-06 apart "
                      "(the paper: 27 ms, 30.7 %, 1.7e-06).", text)
        self.assertIn("with TOF: the most are 500 million lines a second, with blocks of 128 threads, about 1 for each",
                      text)
        self.assertIn("tube, TOF, 1 x 128 threads", text)

    def test_ratios(self):
        made = [{"verb": "bench listmode", **self.HEAD, "results": [self.line("lines", iteration=seconds(1e-3 * n))]}
                for n in (1, 5, 2, 3)]
        before = self.write("before.json", json.dumps(made[:3]))
        after = self.write("after.json", "\n".join(map(json.dumps, made[3:])))
        text = self.table(after, "--before", before)
        row, = (line for line in text.splitlines() if " iteration wall " in line)
        self.assertEqual(self.cells(row)[2:], ["3, 1", "2", "3", "1.500"])
        self.assertIn("lines, size 75x75x26, width_voxels 3, lines 500000, tube, tof, cuda", row)
        text = self.table(before, after, "--before", before, before)
        row, = (line for line in text.splitlines() if " iteration wall " in line)
        self.assertEqual(self.cells(row)[2:], ["6, 4", "2", "2.5", "1.250"])
        self.assertEqual(len(re.findall("^LORaster 1, commit abc", self.table(before), re.M)), 3)

    def test_ranks(self):
        run = {"verb": "bench cluster", **self.HEAD, "scaling": "strong", "rank_count": 1, "results": [
            {"scheme": "exact", "seconds": 4, "project_seconds": 1, "exchange_seconds": 0, "waiting_seconds": 0,
             "compose_seconds": 0, "sent_bytes": 2048, "peak_memory_bytes": 3 * 2**30,
             "iterations": [{"number": 8, "image_error": 0.5}]}]}
        twice = {**run, "rank_count": 2, "results": [{**run["results"][0], "seconds": 2.5}]}
        text = self.table(self.write("made.json", json.dumps([run, twice])))
        begins = ["1", "exact", "8", "4.000"], ["2", "exact", "8", "2.500"]
        for row, begin, over in zip(self.rows(text, "strong"), begins, ("1.00", "1.60"), strict=True):
            self.assertEqual(row[1:], [*begin, "1.000", *3 * ["0.000"], "2.0 KiB", "3.0 GiB", "0.5000", over])

    def test_other_files(self):
        tool = [sys.executable, "-B", self.source_root / "tools/bench_table.py"]
        for name, text, sentence in (("a.json", "{", "error: "), ("no.json", None, "no.json"),
                                     ("b.json", '{"verb": "info"}', "nothing that loraster bench")):
            path = self.write(name, text) if text else self.path(name)
            done = subprocess.run([*tool, path], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(sentence, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


main({"bench": Bench, "bench_table": Tables})
