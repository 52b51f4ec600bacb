#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small runs of the verbs that read or write files, with one call on a file failing: each run ends
with the result of a run without failures, or with one sentence, exit code 1 (3 where an input could
not be read), and every output as it was or whole.

A spread of the calls fails, or all of them in turn where LORASTER_FULL is set.
usage: PROGRAM SOURCE_ROOT reading|writing|matrices|helper"""
import array, hashlib, os, random, re, shutil, subprocess, sys, tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from cases import DIRECT_GRID, GRID, KERNEL, VIEWS, Inputs  # noqa: E402
from program import ProgramTest, main, preloadable  # noqa: E402

FULL = os.environ.get("LORASTER_FULL", "") not in ("", "0")
SPREAD = 4  # calls of each run that fail where not all do
# Calls that can only be about what is read, or by which files come to be open at all.
OF_READING = ("read", "open", "close")


@dataclass
class Case:
    """One run. outputs: groups of files that belong together. given: files that are there before.
    kept: endings of what a run may leave to go on from, where it fails."""
    name: str
    arguments: list
    outputs: list = field(default_factory=list)
    given: dict = field(default_factory=dict)
    kept: tuple = ()
    system: bool = False  # calls on what the system tells about the machine fail too


class FailingFiles(ProgramTest):
    watched = "loraster"  # the program whose calls fail

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.library = preloadable(os.environ["LORASTER_FAIL_FILES"], cls.addClassCleanup)
        cls.seed = int(os.environ.get("LORASTER_SEED", "1"))
        cls.inputs = Path(tempfile.mkdtemp(prefix="loraster-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.inputs, ignore_errors=True)
        cls.ring = str(cls.inputs / "ring.yaml")
        cls.on = ["--scanner", cls.ring, "--backend", "cpu", "--samples", "1", "--threads", "1"]
        print(f"seed {cls.seed}")
        cls.make_inputs()

    def setUp(self):
        super().setUp()
        self.random = random.Random(self.seed)

    @classmethod
    def input(cls, name):
        return str(cls.inputs / name)

    @classmethod
    def make(cls, *arguments):
        subprocess.run([cls.program, *arguments], cwd=cls.inputs, check=True, capture_output=True)

    @classmethod
    def make_inputs(cls):
        Inputs(cls.inputs, cls.make)
        cls.make("simulate", *cls.on, "--phantom", "spheres", *GRID, "--counts", "5000", "-o", "y.hs")
        cls.make("scanner", "convert", cls.ring, "c.hscan")
        cls.make("scanner", "convert", cls.ring, "g.geom")
        for name in ("i.hv", "i.mha", "i.npy"):
            cls.make("phantom", "spheres", *GRID, "-o", name)
        cls.make("matrix", *cls.on, *GRID, "-o", "m.npz")

    def digest(self):
        digest = hashlib.sha256()
        for path in sorted(self.inputs.iterdir()):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()

    # --- runs ---

    def run_case(self, case, old, at):
        """(finished process, its calls, its folder) where the at-th call fails."""
        folder = self.folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, content in {**old, **case.given}.items():
            (folder / name).write_bytes(content)
        calls = self.folder / "calls"
        calls.unlink(missing_ok=True)
        sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        surroundings = dict(os.environ, LD_PRELOAD=self.library, FAIL_FILES_CALLS=str(calls),
                            FAIL_FILES_PROGRAM=self.watched, FAIL_FILES_AT=str(at), ASAN_OPTIONS=sanitizer,
                            **({"FAIL_FILES_SYSTEM": "1"} if case.system else {}))
        done = self.run_program(*case.arguments, cwd=folder, env=surroundings)
        return done, calls.read_text(errors="replace").splitlines() if calls.exists() else [], folder

    @staticmethod
    def contents(folder):
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def judge_strokes(self, found, new, say):
        """A font that could not be read, which is told: whole pictures with other letters, and all
        else as it is with that font."""
        self.assertEqual(set(found), set(new), say)
        for name, raw in found.items():
            if name.endswith(".png"):
                self.assertTrue(raw.startswith(b"\x89PNG") and b"IEND" in raw[-12:], say)
            else:
                self.assertEqual(raw, new[name], say)

    def judge(self, case, old, new, done, call):
        """How a run with a failing call ended."""
        if os.environ.get("LORASTER_TEST_VERBOSE"):
            print(f"{call.split('!')[1]} -> {done.returncode}: {done.stderr}")
        say = f"{case.name}, failing: {call}\n{done.stdout}{done.stderr}"
        found = self.contents(self.folder / "run")
        # The library that finds fonts prints sentences on its own files beside ours.
        errors = [line for line in done.stderr.splitlines() if "error:" in line and not line.startswith("Fontconfig ")]
        self.assertNotIn("Sanitizer", done.stderr, say)
        if done.returncode == 0:
            self.assertEqual(errors, [], say)
            if len(re.findall("warning: no font was found for the text", done.stderr)) == 1:
                self.judge_strokes(found, new, say)
            else:
                self.assertEqual(found, new, say)
            return
        name = call.split(" ")[1].lstrip("!")
        self.assertIn(done.returncode, (1, 3) if name in OF_READING else (1,), say)
        self.assertEqual(len(errors), 1, say)
        self.assertGreater(len(errors[0]), len("loraster: error: ") + 20, say)
        self.assertIsNone(re.search(r"Success|\(null\)", errors[0]), say)
        if name == "read":  # the file is not to blame
            self.assertIsNone(re.search("truncated|damaged|has no|holds no|not an|no memory", errors[0]), say)
        before = {**old, **case.given}
        for group in case.outputs:
            state = [found.get(member) for member in group]
            self.assertIn(state, ([before.get(member) for member in group], [new.get(member) for member in group]), say)
        known = {member for group in case.outputs for member in group}
        left = {name for name in found if name not in known}
        self.assertEqual({name for name in left if not name.endswith(case.kept)}, set(), say)
        if not case.given:
            self.assertEqual(len(left) > 0, "rows are kept in" in done.stderr, say)
        elif any(found.get(name) != new[name] for name in known):
            self.assertEqual(left, set(case.given), say)

    def numbers(self, calls, most):
        """Of all calls, or of one of each of some kinds; those of reading and writing come first."""
        if FULL or most <= SPREAD:
            return range(1, most + 1)
        kinds = {}
        process = calls[0].split(" ")[0]
        for at, kind in enumerate([line.split(" ")[1] for line in calls if line.startswith(process + " ")], 1):
            kinds.setdefault(kind, []).append(at)
        first = [kind for kind in ("write", "read") if kind in kinds]
        others = sorted(set(kinds) - set(first))
        chosen = first + self.random.sample(others, min(len(others), SPREAD - len(first)))
        return [self.random.choice(kinds[kind]) for kind in chosen]

    def fail_in(self, case):
        """Each call, or some; first where nothing is there, then where older outputs are."""
        members = [member for group in case.outputs for member in group]
        olds = [{}]
        if members and not case.given:
            olds.append({member: b"older " + member.encode() for member in members if "/" not in member})
        total = tried = failed = 0
        for old in olds:
            done, calls, folder = self.run_case(case, old, 0)
            self.assertEqual(done.returncode, 0, f"{case.name}\n{done.stdout}{done.stderr}")
            new = self.contents(folder)
            self.assertEqual(set(new), set(members), case.name)
            self.assertGreater(len(calls), 0, case.name)
            most = max(Counter(line.split(" ")[0] for line in calls).values())
            total += most
            for at in self.numbers(calls, most):
                done, trace, folder = self.run_case(case, old, at)
                failing = [line for line in trace if "!" in line]
                self.assertGreater(len(failing), 0, f"{case.name}: {at} of {most}")
                self.judge(case, old, new, done, failing[0])
                tried += 1
                failed += done.returncode != 0
        print(f"{case.name}: {tried} of {total} calls failed, {failed} runs ended by it")
        return failed

    def fail_in_all(self, cases):
        before = self.digest()
        failed = 0
        for case in cases:
            failed += self.fail_in(case)
            self.assertEqual(self.digest(), before, f"{case.name}: an input was changed")
        self.assertGreater(failed, 0)


class Reading(FailingFiles):
    """Verbs that read; what they write is small."""

    def test_scanners(self):
        self.fail_in_all(Case(f"scanner {verb} {name}", ["scanner", verb, self.input(name)])
                         for verb, name in (("show", "ring.yaml"), ("check", "c.hscan"),
                                            ("show", "g.geom"), ("show", "l.petsird")))

    def test_events(self):
        self.fail_in_all([Case("events show petsird", ["events", "show", self.input("l.petsird"), "--json"]),
                          Case("events show castor", ["events", "show", self.input("c.Cdh"), "--scanner", self.ring]),
                          Case("recon petsird", ["recon", *self.on, *GRID, "--events", self.input("l.petsird"),
                                                 "--iterations", "1", "-o", "r.nii"], [["r.nii"]]),])

    def test_images(self):
        self.fail_in_all(Case(f"project {name}", ["project", *self.on, "--image", self.input(name),
                                                  *(GRID if name.endswith("npy") else []), "-o", "p.h5"], [["p.h5"]])
                         for name in ("x.nii.gz", "i.hv", "i.mha", "i.npy"))

    def test_data(self):
        self.fail_in_all(Case(f"backproject {name}", ["backproject", *self.on, *GRID, "--data", self.input(name), "-o",
                                                      "b.nii"], [["b.nii"]]) for name in ("y.h5", "y.hs"))

    def test_verify(self):
        self.fail_in_all(Case(f"matrix verify {name}", ["matrix", "verify", self.input(name), *more]) for name,
                         more in (("m.h5", ["--threads", "1"]), ("m.npz", [*self.on, *GRID])))


class Writing(FailingFiles):
    def test_images(self):
        groups = {"p.nii": ["p.nii"], "p.nii.gz": ["p.nii.gz"], "p.hv": ["p.hv", "p.v"], "p.hdr": ["p.hdr", "p.img"],
                  "p.mhd": ["p.mhd", "p.raw"], "p.mha": ["p.mha"], "p.npy": ["p.npy"]}
        self.fail_in_all(Case(f"phantom {name}", ["phantom", "spheres", *GRID, "-o", name], [group])
                         for name, group in groups.items())

    def test_scanners(self):
        groups = {"s.yaml": ["s.yaml"], "s.geom": ["s.geom"], "s.hscan": ["s.hscan", "s.lut"],
                  "s.petsird": ["s.petsird"]}
        self.fail_in_all(Case(f"scanner convert {name}", ["scanner", "convert", self.ring, name], [group]) for name,
                         group in groups.items())

    def test_data(self):
        counts = ["simulate", *self.on, "--phantom", "spheres", *GRID, "--counts", "500", "-o"]
        groups = {"y.h5": ["y.h5"], "y.hs": ["y.hs", "y.s"], "y.petsird": ["y.petsird"], "y.Cdh": ["y.Cdh", "y.Cdf"]}
        self.fail_in_all(Case(f"simulate {name}", [*counts, name], [group]) for name, group in groups.items())

    def test_events(self):
        self.fail_in_all([
            Case("events convert", ["events", "convert", self.input("l.petsird"), "c.Cdh",
                                    "--scanner", self.ring], [["c.Cdh", "c.Cdf"]]),
            Case("events convert --histogram",
                 ["events", "convert", self.input("l.petsird"), "c.Cdh", "--histogram",
                  "--scanner", self.ring], [["c.Cdh", "c.Cdf"]]),
        ])

    def test_recon(self):
        self.fail_in_all([Case("recon", ["recon", *self.on, *GRID, "--data", self.input("y.h5"), "--iterations", "2",
                                         "--save-every", "1", "--png", "r.png", "--efficiencies", self.input("e.txt"),
                                         "--mu", self.input("mu.nii"), "-o", "r.nii"], [["r.nii"], ["r.png"],
                                                                                        ["r.iter1.nii"],
                                                                                        ["r.iter2.nii"]]),
                          Case("sensitivity", ["sensitivity", *self.on[:-2], *GRID, "-o", "s.mhd"], [["s.mhd",
                                                                                                      "s.raw"]],
                               system=True),])

    def test_pictures(self):
        self.fail_in_all([
            Case("render", ["render", *self.on, "--mode", "sampled", "--rays", "2", "--at", "1,0,0",
                            "--module", "0", "-o", "."],
                 [["module_0.npy"], ["module_0_colour.png"], ["module_0_weight.png"],
                  ["render.json"], ["contact_sheet.png"]]),
            Case("scanner check", ["scanner", "check", self.ring, "--png", "c.png"],
                 [["c.png"]]),
            Case("direct lut", ["direct", "lut", *KERNEL, *DIRECT_GRID, "-o", "t.png"],
                 [["t.png"]]),
        ])

    def test_direct(self):
        on = ["--threads", "1", "--backend", "cpu"]
        self.fail_in_all([
            Case("direct deposit", ["direct", "deposit", "--activity", self.input("a.nii"),
                                    "--scanner", self.ring, "--tof-ps", "60", *VIEWS, "--count",
                                    "500", *on, "-o", "h.h5"], [["h.h5"]]),
            Case("direct factors", ["direct", "factors", "--scanner", self.ring, *DIRECT_GRID, *VIEWS,
                                    "--directions", "2", "--threads", "1", "-o", "n.h5"], [["n.h5"]]),
            Case("direct project", ["direct", "project", "--image", self.input("a.nii"), *VIEWS,
                                    *KERNEL, "--backend", "cpu", "-o", "h.h5"], [["h.h5"]]),
            Case("recon direct", ["recon", "--operator", "direct", "--data", self.input("h.h5"), *KERNEL,
                                  "--algorithm", "ramla", "--views-per-block", "1", "--iterations", "1",
                                  "--backend", "cpu", "-o", "r.nii"], [["r.nii"]]),
        ])


class Matrices(FailingFiles):
    """Once all rows are there they stay, whatever fails while the file is made of them."""
    KEPT = (".part", ".part-rows")

    def test_formats(self):
        stir = ["m.pm", "m_template.s", "m_template.hs", "m_template.v", "m_template.hv", "m.hpm"]
        groups = {"m.h5": ["m.h5"], "m.npz": ["m.npz"], "m.mtx": ["m.mtx"], "m.tsv": ["m.tsv"], "m.hpm": stir}
        self.fail_in_all(Case(f"matrix {name}", ["matrix", *self.on, *GRID, "-o", name], [group],
                              kept=self.KEPT if name in ("m.h5", "m.npz", "m.mtx") else ())
                         for name, group in groups.items())

    def test_factors(self):
        self.fail_in_all([Case("matrix with factors", ["matrix", *self.on, *GRID, "--efficiencies", self.input("e.txt"),
                                                       "--mu", self.input("mu.nii"), "--mu-as", "factors", "--compress",
                                                       "1", "-o", "m.h5"], [["m.h5"]], kept=self.KEPT),
                          Case("matrix --lor", ["matrix", *self.on, *GRID, "--lor", "0,1,2,4,3,0", "-o", "t.nii.gz"],
                               [["t.nii.gz"]])])

    def test_resume(self):
        """What another run has left stays, unless the whole is there."""
        points = ["--at", "1,0,0", "--at", "0,2,1", "--at", "-3,1,1"]
        for name, rows in (("m.h5", GRID), ("m.npz", GRID), ("p.h5", points)):
            arguments = ["matrix", *self.on, *rows, "-o", name]
            given = self.leave(arguments, name)
            self.fail_in_all([Case(f"matrix --resume {name}", [*arguments, "--resume"], [[name]], given, self.KEPT)])

    def test_contents(self):
        """Under the same names and options, other values make another matrix."""
        local = self.folder / "local"
        local.mkdir()
        for name in ("ring.yaml", "e.txt", "mu.nii"):
            shutil.copy(self.inputs / name, local)
        ring = local / "ring.yaml"
        ring.write_text(ring.read_text() + "crystal_mu_per_mm: 0.08\n")
        arguments = ["matrix", *self.on[2:], "--scanner", str(ring), *GRID, "--penetration", "--mode", "sampled",
                     "--rays", "2", "--efficiencies", str(local / "e.txt"), "--mu", str(local / "mu.nii"), "-o", "m.h5"]
        given = self.leave(arguments, "m.h5")
        self.good(*arguments, cwd=local)
        whole = (local / "m.h5").read_bytes()
        folder = self.folder / "run"
        resumed = [*arguments, "--resume"]
        mu = array.array("f", (local / "mu.nii").read_bytes()[352:])
        changes = {
            "e.txt": ("efficiencies", lambda b: b.replace(b"0.81", b"0.82", 1)),
            "mu.nii": ("values of the attenuation map",
                       lambda b: b[:-4] + array.array("f", [mu[-1] * 1.01]).tobytes()),
            "ring.yaml": ("scanner small ring", lambda b: b.replace(b"0.08", b"0.09"))}
        for name, (words, change) in changes.items():
            good = (local / name).read_bytes()
            self.assertNotEqual(change(good), good)
            (local / name).write_bytes(change(good))
            done = self.run_program(*resumed, cwd=folder)
            self.assertEqual(done.returncode, 2, f"{name}\n{done.stderr}")
            self.assertIn(f"other contents of: {words}", done.stderr)
            (local / name).write_bytes(good)
            found = self.contents(folder)
            self.assertEqual({ending: found[ending] for ending in given}, given)
        self.good(*resumed, cwd=folder)
        self.assertEqual(((folder / "m.h5").read_bytes(), set(self.contents(folder))), (whole, {"m.h5"}))

    def leave(self, arguments, name):
        """What a run leaves that cannot rename its whole file, or write it: all rows."""
        case = Case("leave", arguments, [[name]])
        _, calls, _ = self.run_case(case, {}, 0)
        link = 1 + max(k for k, line in enumerate(calls) if line.split(" ")[1] in ("link", "rename"))
        done, _, folder = self.run_case(case, {name: b"older"}, link)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("resum", done.stderr)
        found = self.contents(folder)
        self.assertEqual(set(found), {name, f"{name}.part", f"{name}.part-rows"})
        del found[name]
        return found


class Helper(FailingFiles):
    """The program that reads HDF5 files."""
    watched = "loraster-hdf5-reader"

    def test_reader(self):
        self.fail_in_all([Case("backproject", ["backproject", *self.on, *GRID, "--data", self.input("y.h5"), "-o",
                                               "b.nii"], [["b.nii"]]), Case("matrix verify", ["matrix", "verify",
                                                                                              self.input("m.h5"),
                                                                                              "--threads", "1"]),
                          Case("recon direct", ["recon", "--operator", "direct", "--data", self.input("h.h5"), *KERNEL,
                                                "--algorithm", "ramla", "--views-per-block", "1", "--iterations", "1",
                                                "--backend", "cpu", "-o", "r.nii"], [["r.nii"]]),])


if __name__ == "__main__":
    main({"reading": Reading, "writing": Writing, "matrices": Matrices, "helper": Helper})
