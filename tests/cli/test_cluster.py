#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Work for many machines without MPI: parts of a matrix and what they are joined to, frames, replicates; the model of
many GPUs."""
import dataclasses, importlib, json, math, os, re, shutil, signal, subprocess, sys
from pathlib import Path

from program import GRID, ProgramTest, main, split

try:
    import h5py
    import numpy as np
    MISSING = None
except ImportError as error:
    MISSING = f"numpy and h5py are needed: {error}"


class Parts(ProgramTest):
    def setUp(self):
        super().setUp()
        if MISSING:
            self.skipTest(MISSING)
        self.on = f"--scanner {self.scanner} --backend native --threads 1"

    def make(self, ending, *rows, parts=3):
        self.good(f"matrix {self.on}", *rows, f"-o whole{ending}")
        for k in range(1, parts + 1):
            self.good(f"matrix {self.on}", *rows, f"--part {k}/{parts} -o {k}{ending}")
        return [f"{k}{ending}" for k in range(1, parts + 1)]

    def contents(self, name):
        found = {}
        def visit(path, item):
            if isinstance(item, h5py.Dataset):
                found[path] = (item.dtype.str, item.shape, item.chunks, item[()].tobytes())
            for key, value in item.attrs.items():
                found[path + "@" + key] = value
        with h5py.File(name) as file:
            file.visititems(visit)
        return found

    def judge_same(self, whole, joined):
        """All arrays and attributes, but for the order in which sums were added up."""
        whole, joined = self.contents(whole), self.contents(joined)
        self.assertEqual(set(whole), set(joined))
        for key, value in whole.items():
            if key in ("matrix@sum", "matrix@dropped_sum"):
                self.assertAlmostEqual(value, joined[key], delta=1e-14 * value, msg=key)
            elif isinstance(value, np.ndarray):
                self.assertEqual(value.tobytes(), joined[key].tobytes(), key)
            else:
                self.assertEqual(value, joined[key], key)

    def test_rows_of_all_kinds(self):
        for rows in ([GRID], [f"{GRID} --by lor"], [f"{GRID} --by lor --pairs 0-3,0-4,1-4,1-5,2-6"],
                     [f"{GRID} --by lor --lors 300:700,900"], [f"{GRID} --region sphere:0,0,0,7 --threshold 0.2"],
                     [f"{GRID} --rows 10:60 --pairs 0-4,1-5"], ["--at 0,0,0 --at 1,2,3 --at 3,3,3 --at 4,4,4"]):
            with self.subTest(rows=rows):
                names = self.make(".h5", *rows)
                found = self.json(f"matrix join {names[2]} {names[0]} {names[1]} -o joined.h5")
                self.judge_same("whole.h5", "joined.h5")
                self.assertEqual((found["parts"], found["rows"]), (3, self.contents("whole.h5")["matrix@shape"][0]))
                self.good(f"matrix verify {names[1]}")

    def test_npz_and_mtx(self):
        names = self.make(".npz", GRID)
        self.good("matrix join", *reversed(names), "-o joined.npz")
        self.assertEqual(Path("whole.npz").read_bytes(), Path("joined.npz").read_bytes())
        self.refuse(2, "become npz only", "matrix join", *names, "-o joined.h5")
        others = self.make(".h5", GRID)
        self.good("matrix join", *others, "-o joined.npz")
        self.assertEqual(Path("whole.npz").read_bytes(), Path("joined.npz").read_bytes())
        self.good(f"matrix {self.on} {GRID} -o whole.mtx")
        self.good("matrix join", *others, "-o joined.mtx")
        self.assertEqual(Path("whole.mtx").read_text(), Path("joined.mtx").read_text())
        self.refuse(3, "must both be HDF5 or both npz", f"matrix join {others[0]} {names[1]} {others[2]} -o mixed.npz")

    def test_resumed(self):
        on = ("--scanner ge-explore-vista-dr --grid 30,30,6 --voxel-mm 1.3,1.3,0.65 --backend native --threads 1 "
              "--samples 1")
        self.good(f"matrix {on} --part 2/3 -o whole.h5")
        self.stop_writing(signal.SIGINT, "2.h5", f"matrix {on} --part 2/3")
        self.ends(2, (), f"matrix {on} --part 1/3 -o 2.h5 --resume")
        self.good(f"matrix {on} --part 2/3 -o 2.h5 --resume")
        self.assertEqual(Path("2.h5").read_bytes(), Path("whole.h5").read_bytes())

    def test_refusals(self):
        one, two, three = self.make(".h5", GRID)
        out = "-o joined.h5"
        self.refuse(3, "part 2 of 3 is missing", f"matrix join {one} {three} {out}")
        self.refuse(3, "part 3 of 3 is missing", f"matrix join {one} {two} {out}")
        shutil.copy(two, "again.h5")
        self.refuse(3, ["both part 2 of 3", "give it once"], f"matrix join {one} {two} again.h5 {three} {out}")
        self.refuse(3, "whole.h5 is no part of a matrix", f"matrix join {one} whole.h5 {out}")
        self.refuse(2, one, f"matrix join {one} {two} {three} -o {one}")
        self.refuse(2, "needs the files", f"matrix join {out}")
        self.refuse(2, ".h5, .hdf5, .npz or .mtx", f"matrix join {one} -o joined.tsv")
        self.write("other.yaml", Path(self.scanner).read_text().replace("30, modules", "31, modules"))
        for words, on in [("grid", f"{self.on} --grid 6,5,4 --voxel-mm 3,3,4"),
                          ("mode sampled", f"{self.on} {GRID} --mode sampled"),
                          ("threshold", f"{self.on} {GRID} --threshold 0.1"),
                          ("contents of: scanner", f"--scanner other.yaml --backend native --threads 1 {GRID}")]:
            self.good(f"matrix {on} --part 2/3 -o other.h5")
            self.refuse(3, ["parts of different matrices", words], f"matrix join {one} other.h5 {three} {out}")
        self.good(f"matrix {self.on} {GRID} --part 2/4 -o other.h5")
        self.refuse(3, "one of 4", f"matrix join {one} other.h5 {three} {out}")

    def run_script(self, name, task="", **variables):
        """A script of examples/slurm as a task of three, with the program found by its name."""
        link = self.folder / "bin" / "loraster"
        link.parent.mkdir(exist_ok=True)
        if not link.exists():
            link.symlink_to(self.program)
        environment = dict(os.environ, PATH=f"{link.parent}:{os.environ['PATH']}", SLURM_ARRAY_TASK_ID=str(task),
                           SLURM_ARRAY_TASK_COUNT="3", SCANNER=self.scanner, GRID="6,5,3", VOXEL_MM="3,3,4",
                           BACKEND="native", LORASTER_LIBEXEC=str(Path(self.program).parent), **variables)
        done = subprocess.run(["bash", str(self.source_root / "examples" / "slurm" / name)], cwd=self.folder,
                              env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_slurm_scripts(self):
        self.good(f"matrix {self.on} {GRID} -o whole.h5")
        for task in (1, 2, 3, 1):  # one that was started again has nothing left to do
            self.run_script("matrix.sh", task)
        self.run_script("matrix-join.sh", OUT="joined.h5")
        self.judge_same("whole.h5", "joined.h5")
        self.good(f"simulate --scanner {self.scanner} {GRID} --phantom spheres --counts 900 -o ev.Cdh")
        for task in (1, 2, 3):
            self.run_script("frames.sh", task, EVENTS="ev.Cdh", SUBSETS="2", FRAMES="4x15")
        for k in (1, 2, 3, 4):
            self.assertTrue((self.folder / f"dynamic-{k}.nii.gz").exists())
        self.run_script("replicates.sh", 2, EVENTS="ev.Cdh", SUBSETS="2")
        self.assertTrue((self.folder / "replicate-2.nii.gz").exists())
        for script in (self.source_root / "examples" / "slurm").glob("*.sh"):
            self.assertEqual(subprocess.run(["bash", "-n", str(script)], check=False).returncode, 0)

    def test_options(self):
        self.refuse_each("parts", on=self.on)


class Replicates(ProgramTest):
    def setUp(self):
        super().setUp()
        self.on = f"--scanner {self.scanner} {GRID} --threads 1"

    def test_frames(self):
        """Parts write the frames of a whole run, bit for bit, each frame in one part."""
        self.good(f"simulate {self.on} --phantom spheres --counts 6000 -o ev.Cdh")
        recon = f"recon {self.on} --operator listmode --events ev.Cdh --iterations 2 --backend native"
        frames = f"{recon} --frames 6x5,2x15"
        whole = self.json(f"{frames} -o whole.nii")["frames"]
        seen = []
        for k in range(1, 4):
            part = self.json(f"{frames} --part {k}/3 -o part.nii")["frames"]
            self.assertLess(sum(one["prompts"] for one in part), 0.45 * 6000, "balanced")
            seen += part
        self.assertEqual([one["output"].replace("part", "whole") for one in seen], [one["output"] for one in whole])
        for one, other in zip(seen, whole):
            self.assertEqual(one["begin_s"], other["begin_s"])
            self.assertEqual(Path(one["output"]).read_bytes(), Path(other["output"]).read_bytes())
        self.refuse(2, "8 frames cannot be cut into 9 parts", f"{frames} --part 1/9 -o x.nii")
        self.refuse(2, "belong to --frames", f"{recon} --part 1/2 -o x.nii")

    def test_bootstrap(self):
        """The mean of replicates is what was measured; a seed's replicate is always the same."""
        self.good(f"simulate {self.on} --phantom spheres --counts 3000 --seed 3 -o ev.Cdh")
        self.good(f"simulate {self.on} --phantom spheres --counts 3000 --seed 3 -o y.h5")
        for source in ("--data y.h5", "--events ev.Cdh", "--events ev.Cdh --operator listmode"):
            recon = f"recon {self.on} {source} --iterations 1 --backend native"
            with self.subTest(source=source):
                plain = self.json(f"{recon} -o x.nii")
                found = [self.json(f"{recon} --bootstrap {seed} -o b.nii") for seed in range(1, 6)]
                counts = [one["iterations"][0]["measured_counts"] for one in found]
                measured = plain["iterations"][0]["measured_counts"]
                self.assertEqual(found[3]["bootstrap_seed"], 4)
                self.assertNotIn("bootstrap_seed", plain)
                self.assertGreater(len(set(counts)), 3, counts)
                self.assertLess(abs(sum(counts) / 5 - measured), 5 * (measured / 5) ** 0.5)
                for count in counts:  # the seed of the simulation is one of them
                    self.assertLess(abs(count - measured), 6 * measured ** 0.5)
                first = Path("b.nii").read_bytes()
                self.good(f"{recon} --bootstrap 5 -o again.nii")
                self.assertEqual(Path("again.nii").read_bytes(), first)


class Model(ProgramTest):
    """tools/cluster_model.py against closed forms, against itself, and its page against it."""
    def setUp(self):
        super().setUp()
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(self.source_root / "tools"))
        self.model = importlib.import_module("cluster_model")
        self.script = self.source_root / "tools" / "cluster_model.py"
        self.shipped = self.source_root / "tools" / "cluster" / "h200-listmode.json"

    def make(self, **more):
        m = self.model
        work = m.Work(10 ** 7, 1e8, 5, 30.0)
        network = m.Network(4, m.Link(3e-6, 2e11), m.Link(8e-6, 3e10))
        return m.Model(work, network, (0.02, 3.0), (0.001, 0.05), **more)

    def test_ring_step_by_step(self):
        """Every rank sends a share to its neighbour at the same time, first to add, then to hand on."""
        link = self.model.Link(3e-6, 1e9)
        for ranks in (1, 2, 3, 8, 17):
            have = [[{rank} for _ in range(ranks)] for rank in range(ranks)]  # who is in a share's sum
            seconds = 0.0
            for step in range(2 * (ranks - 1)):
                sent = [(rank - step) % ranks for rank in range(ranks)]
                moved = [set(have[rank][sent[rank]]) for rank in range(ranks)]
                for rank in range(ranks):
                    have[(rank + 1) % ranks][sent[rank]] |= moved[rank]
                seconds += link.latency_s + 6e6 / ranks / link.bytes_per_s
            self.assertTrue(all(len(share) == ranks for rank in have for share in rank))
            self.assertAlmostEqual(self.model.ring(ranks, 6e6, link), seconds, delta=1e-12)

    def test_closed_forms(self):
        m, model = self.model, self.make()
        self.assertEqual(model.parts(1)["communicate"], 0)
        self.assertAlmostEqual(model.seconds(1), 3.071, delta=1e-12)
        self.assertAlmostEqual(model.paper_seconds(1, 3), model.seconds(1))
        free = m.Link(0.0, math.inf)
        ideal = dataclasses.replace(model, network=m.Network(4, free, free))
        fixed = 0.021 / 3.071
        for ranks in (1, 2, 4, 64, 10000):
            self.assertAlmostEqual(ideal.seconds(1) / ideal.seconds(ranks), 1 / (fixed + (1 - fixed) / ranks),
                                   delta=1e-9 * ranks)
        for ranks in (2, 4, 8, 4096):
            best = m.all_reduce(ranks, 4e7, model.network)
            ways = [m.all_reduce(ranks, 4e7, model.network, way) for way in ("ring", "tree", "flat")]
            self.assertAlmostEqual(best, min(ways[:2]), delta=1e-15)
            # No way is faster than its bytes: each GPU's NVLink and share of the network.
            self.assertGreater(best, 2 * (1 - 1 / min(ranks, 4)) * 4e7 / 2e11)
            self.assertTrue(ranks > 4 or ways[2] == best)
        hiding = dataclasses.replace(model, overlap=1.0)
        self.assertEqual(hiding.parts(2)["communicate"], 0)
        self.assertLess(hiding.seconds(512), model.seconds(512))

    def test_weak_scaling_and_memory(self):
        model = self.make(idle=0.1)
        for ranks in (2, 64, 1000):
            more = model.weak(ranks)
            self.assertAlmostEqual(more.parts(ranks)["project"], model.parts(1)["project"])
            self.assertAlmostEqual(more.memory(ranks), model.memory(1))
            self.assertAlmostEqual(more.memory(ranks, "paper") - more.memory(ranks), ranks * 4e7)
            # All forward projections of one GPU, in every composition.
            self.assertGreater(model.paper_seconds(ranks, 2), 0.45 * 3.0 / 2)

    def runs(self, model, places):
        found = []
        for ranks, hosts in places:
            of_host = ranks // hosts
            there = dataclasses.replace(model, network=dataclasses.replace(model.network, gpus_per_host=of_host))
            found.append({"ranks": ranks, "hosts": hosts, "seconds": there.parts(ranks, "ring"), "bytes_moved": 0})
        work = model.work
        return {"schema": self.model.SCHEMA, "runs": found, "work": {"voxels": work.voxels, "events": work.events,
                                                                     "exchanges": work.exchanges, "slices":
                                                                     work.slices}}

    def test_calibration_comes_back(self):
        """Runs of a model, within a host and one GPU a host, give the model again."""
        model = self.make(idle=0.03)
        timings = self.runs(model, [(1, 1), (2, 1), (4, 1), (2, 2), (3, 3), (8, 8)])
        timings["network"] = {"gpus_per_host": 4}
        found = self.model.calibrate(timings)
        for a, b in zip((*found.project, *found.combine, found.idle), (*model.project, *model.combine, model.idle)):
            self.assertAlmostEqual(a, b, delta=1e-9)
        for name in ("inside", "across"):
            a, b = getattr(found.network, name), getattr(model.network, name)
            self.assertAlmostEqual(a.latency_s / b.latency_s, 1, delta=1e-6)
            self.assertAlmostEqual(a.bytes_per_s / b.bytes_per_s, 1, delta=1e-6)
        self.assertLess(self.model.find_error(found, timings), 1e-9)
        self.assertAlmostEqual(found.seconds(256), model.seconds(256), delta=1e-9)
        timings["runs"][2]["seconds"]["project"] *= 1.2
        self.assertGreater(self.model.find_error(self.model.calibrate(timings), timings), 0.02)

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, "-B", str(self.script), *split(arguments)], capture_output=True,
                              text=True, check=False)

    def test_page_and_figures(self):
        """The page has the tables that the script prints, and the file what the performance page says."""
        page = (self.source_root / "docs" / "method" / "cluster-model.md").read_text()
        done = self.run_script(self.shipped, "--ranks 1,8,64,1024,10000")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout[done.stdout.index("Strong scaling"):].splitlines()
        self.assertGreater(len(lines), 30)
        for line in lines:
            self.assertIn(line, page)
        seconds = json.loads(self.shipped.read_text())["runs"][0]["seconds"]
        row, *_ = re.findall(r"^\| tube, TOF \| cuda \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|",
                             (self.source_root / "docs" / "performance.md").read_text(), re.M)
        forward, back, iteration = map(float, row)
        self.assertAlmostEqual(1e3 * seconds["project"], forward + back, delta=1e-9, msg="put the page's new figures "
                               "into the file, and the " "script's new tables into " "docs/method/cluster-model.md")
        self.assertAlmostEqual(1e3 * seconds["combine"], iteration - forward - back, delta=1e-9)
        found = json.loads(self.run_script(self.shipped, "--ranks 1 --json").stdout)
        self.assertEqual(len(found["cases"]), 2)
        for name in found["cases"]:
            length = self.json(f"scanner show {name}")["axial_mm"]
            case, = (one for one in self.model.CASES if one.name == name)
            self.assertAlmostEqual(length[1] - length[0], case.length_mm, delta=3.5)

    def test_runs_of_bench_cluster(self):
        """Its objects say the same as a file by hand; other scalings are passed over."""
        model = dataclasses.replace(self.make(idle=0.03), work=self.model.Work(1000, 5000))
        by_hand = self.runs(model, [(1, 1), (2, 1), (4, 1)])
        found = []
        for run in by_hand["runs"]:
            seconds = run["seconds"]
            scheme = {"scheme": "exact", "seconds": 8 * sum(seconds.values()),
                      "project_seconds": 8 * seconds["project"], "exchange_seconds": 8 * seconds["communicate"],
                      "waiting_seconds": 8 * seconds["idle"], "sent_bytes": 8 * 2 * (1 - 1 / run["ranks"]) * 4000,
                      "iterations": 8 * [{}]}
            one = {"verb": "bench cluster", "scaling": "strong", "scanner": "ring", "backend": "native",
                   "device": "CPU", "grid": {"size": [10, 10, 10]}, "num_lors": 5000,
                   "rank_count": run["ranks"], "results": [{"scheme": "paper"}, scheme],
                   **({"ranks": {"on_this_machine": 4}} if run["ranks"] > 1 else {})}
            found += [one, {**one, "scaling": "weak"}]
        timings = self.model.read_bench(found)
        self.assertEqual(timings["work"]["voxels"], 1000)
        for run, other in zip(timings["runs"], by_hand["runs"]):
            self.assertEqual((run["ranks"], run["hosts"]), (other["ranks"], other["hosts"]))
            for part, seconds in other["seconds"].items():
                self.assertAlmostEqual(run["seconds"][part], seconds, delta=1e-12)
        done = self.run_script(self.write("bench.json", json.dumps(found)), "--ranks 1,16")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Strong scaling, the measured work: 0.001 million voxels, 5e+03", done.stdout)
        self.assertIn("| bytes sent, over those of a ring | 1 |", done.stdout)
        found[2]["num_lors"] = 4000
        done = self.run_script(self.write("bench.json", json.dumps(found)))
        self.assertIn("different grids", done.stderr)

    def test_refusals(self):
        good = json.loads(self.shipped.read_text())
        for words, change in (("schema", {"schema": "x"}), ("runs", {"runs": []}), ("work", {"work": {}})):
            bad = self.write("bad.json", json.dumps({**good, **change}))
            done = self.run_script(bad)
            self.assertEqual(done.returncode, 1)
            self.assertIn("error: " + bad, done.stderr)
        self.assertEqual(self.run_script(self.shipped, "--ranks 0").returncode, 1)


main({"parts": Parts, "replicates": Replicates, "model": Model})
