#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Work for many machines without MPI: parts of a matrix and what they are joined to."""
import shutil
import signal
import subprocess
from pathlib import Path

from program import GRID, ProgramTest, main

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
        self.on = ["--scanner", self.scanner, "--backend", "native", "--threads", "1"]

    def make(self, ending, *rows, parts=3):
        """A whole matrix, and the files of its parts."""
        self.good("matrix", *self.on, *rows, "-o", f"whole{ending}")
        for k in range(1, parts + 1):
            self.good("matrix", *self.on, *rows, "--part", f"{k}/{parts}", "-o", f"{k}{ending}")
        return [f"{k}{ending}" for k in range(1, parts + 1)]

    def contents(self, name):
        """Every dataset and attribute of an HDF5 file."""
        found = {}
        def visit(path, item):
            if isinstance(item, h5py.Dataset):
                found[path] = (item.dtype.str, item.shape, item.chunks, item[()].tobytes())
            for key, value in item.attrs.items():
                found[path + "@" + key] = value
        with h5py.File(self.path(name)) as file:
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
        for rows in ([*GRID], [*GRID, "--by", "lor"],
                     [*GRID, "--by", "lor", "--pairs", "0-3,0-4,1-4,1-5,2-6"],
                     [*GRID, "--by", "lor", "--lors", "300:700,900"],
                     [*GRID, "--region", "sphere:0,0,0,7", "--threshold", "0.2"],
                     [*GRID, "--rows", "10:60", "--pairs", "0-4,1-5"],
                     ["--at", "0,0,0", "--at", "1,2,3", "--at", "3,3,3", "--at", "4,4,4"]):
            with self.subTest(rows=rows):
                names = self.make(".h5", *rows)
                found = self.json("matrix", "join", names[2], names[0], names[1], "-o", "joined.h5")
                self.judge_same("whole.h5", "joined.h5")
                self.assertEqual(found["parts"], 3)
                self.assertEqual(found["rows"], self.contents("whole.h5")["matrix@shape"][0])
                self.good("matrix", "verify", names[1])

    def test_npz(self):
        names = self.make(".npz", *GRID)
        self.good("matrix", "join", *reversed(names), "-o", "joined.npz")
        self.assertEqual(Path(self.path("whole.npz")).read_bytes(),
                         Path(self.path("joined.npz")).read_bytes())
        self.refuse(2, "become npz only", "matrix", "join", *names, "-o", "joined.h5")
        others = self.make(".h5", *GRID)
        self.good("matrix", "join", *others, "-o", "joined.npz")
        self.assertEqual(Path(self.path("whole.npz")).read_bytes(),
                         Path(self.path("joined.npz")).read_bytes())
        self.refuse(3, "must both be HDF5 or both npz", "matrix", "join", others[0], names[1],
                    others[2], "-o", "mixed.npz")

    def test_resumed(self):
        """A part that was killed goes on, and only as the same part."""
        large = ["--grid", "24,24,12", "--voxel-mm", "0.8", "--backend", "cpu", "--part", "2/3"]
        on = ["--scanner", self.scanner, "--threads", "1", *large]
        self.good("matrix", *on, "-o", "whole.h5")
        process = subprocess.Popen([self.program, "matrix", *on, "-o", "2.h5", "--verbose"],
                                   cwd=self.folder, stderr=subprocess.DEVNULL)
        part = Path(self.path("2.h5.part"))
        while process.poll() is None and not (part.exists() and part.stat().st_size > 4096 + 1):
            pass
        process.send_signal(signal.SIGINT)
        self.assertIn(process.wait(), (0, 1))
        if not Path(self.path("2.h5.part-rows")).exists():
            self.skipTest("done before it could be stopped")
        done = self.run_program("matrix", *on[:-1], "1/3", "-o", "2.h5", "--resume")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.good("matrix", *on, "-o", "2.h5", "--resume")
        self.assertEqual(Path(self.path("2.h5")).read_bytes(),
                         Path(self.path("whole.h5")).read_bytes())

    def test_refusals(self):
        one, two, three = self.make(".h5", *GRID)
        out = ["-o", "joined.h5"]
        self.refuse(3, "part 2 of 3 is missing", "matrix", "join", one, three, *out)
        self.refuse(3, "part 3 of 3 is missing", "matrix", "join", one, two, *out)
        shutil.copy(self.path(two), self.path("again.h5"))
        self.refuse(3, ["both part 2 of 3", "give it once"], "matrix", "join", one, two, "again.h5",
                    three, *out)
        self.refuse(3, "whole.h5 is no part of a matrix", "matrix", "join", one, "whole.h5", *out)
        self.refuse(2, one, "matrix", "join", one, two, three, "-o", one)
        self.refuse(2, "needs the files", "matrix", "join", *out)
        self.refuse(2, ".h5, .npz or .mtx", "matrix", "join", one, "-o", "joined.tsv")
        other = [("grid", ["--grid", "6,5,4", "--voxel-mm", "3,3,4"], self.on),
                 ("mode sampled", GRID, [*self.on, "--mode", "sampled"]),
                 ("threshold", [*GRID, "--threshold", "0.1"], self.on),
                 ("contents of: scanner", GRID, ["--scanner", self.write("other.yaml", Path(
                     self.scanner).read_text().replace("30, modules", "31, modules")),
                     *self.on[2:]])]
        for words, grid, on in other:
            self.good("matrix", *on, *grid, "--part", "2/3", "-o", "other.h5")
            self.refuse(3, ["parts of different matrices", words], "matrix", "join", one,
                        "other.h5", three, *out)
        self.good("matrix", *self.on, *GRID, "--part", "2/4", "-o", "other.h5")
        self.refuse(3, "one of 4", "matrix", "join", one, "other.h5", three, *out)

    def test_options(self):
        for part in ("0/3", "4/3", "1", "1/", "a/b", "1/3x"):
            self.refuse(2, "--part", "matrix", *self.on, *GRID, "--part", part, "-o", "m.h5")
        self.refuse(2, "--part is for HDF5 and npz", "matrix", *self.on, *GRID, "--part", "1/2",
                    "-o", "m.tsv")
        self.refuse(2, "90 rows cannot be cut into 91 parts", "matrix", *self.on, *GRID, "--part",
                    "1/91", "-o", "m.h5")
        self.refuse(2, "2 points cannot be cut", "matrix", *self.on, "--at", "0,0,0", "--at",
                    "1,1,1", "--part", "1/3", "-o", "m.h5")


class Replicates(ProgramTest):
    """What runs know nothing of each other: frames, and bootstrap replicates."""
    def setUp(self):
        super().setUp()
        self.on = ["--scanner", self.scanner, *GRID, "--threads", "1"]

    def test_frames(self):
        """Parts write the frames of a whole run, bit for bit, each frame in one part."""
        self.good("simulate", *self.on, "--phantom", "spheres", "--counts", "6000", "-o", "ev.Cdh")
        more = ["recon", *self.on, "--operator", "listmode", "--events", "ev.Cdh", "--iterations",
                "2", "--backend", "native", "--frames", "6x5,2x15"]
        whole = self.json(*more, "-o", "whole.nii")["frames"]
        seen = []
        for k in range(1, 4):
            frames = self.json(*more, "--part", f"{k}/3", "-o", "part.nii")["frames"]
            self.assertLess(sum(one["prompts"] for one in frames), 0.45 * 6000, "balanced")
            seen += frames
        self.assertEqual([one["output"].replace("part", "whole") for one in seen],
                         [one["output"] for one in whole])
        for one, other in zip(seen, whole):
            self.assertEqual(one["begin_s"], other["begin_s"])
            self.assertEqual(Path(self.path(one["output"])).read_bytes(),
                             Path(self.path(other["output"])).read_bytes())
        self.refuse(2, "8 frames cannot be cut into 9 parts", *more, "--part", "1/9", "-o", "x.nii")
        self.refuse(2, "belong to --frames", *more[:-2], "--part", "1/2", "-o", "x.nii")

    def test_bootstrap(self):
        """The mean of replicates is what was measured; a seed's replicate is always the same."""
        self.good("simulate", *self.on, "--phantom", "spheres", "--counts", "3000", "-o", "ev.Cdh")
        self.good("simulate", *self.on, "--phantom", "spheres", "--counts", "3000", "-o", "y.h5")
        for source in (["--data", "y.h5"], ["--events", "ev.Cdh"],
                       ["--events", "ev.Cdh", "--operator", "listmode"]):
            more = ["recon", *self.on, *source, "--iterations", "1", "--backend", "native"]
            with self.subTest(source=source):
                plain = self.json(*more, "-o", "x.nii")
                found = [self.json(*more, "--bootstrap", seed, "-o", "b.nii")
                         for seed in range(1, 6)]
                counts = [one["iterations"][0]["measured_counts"] for one in found]
                measured = plain["iterations"][0]["measured_counts"]
                self.assertEqual(found[3]["bootstrap_seed"], 4)
                self.assertNotIn("bootstrap_seed", plain)
                self.assertGreater(len(set(counts)), 3, counts)
                self.assertLess(abs(sum(counts) / 5 - measured), 5 * (measured / 5) ** 0.5)
                first = Path(self.path("b.nii")).read_bytes()
                self.good(*more, "--bootstrap", 5, "-o", "again.nii")
                self.assertEqual(Path(self.path("again.nii")).read_bytes(), first)


if __name__ == "__main__":
    main({"parts": Parts, "replicates": Replicates})
