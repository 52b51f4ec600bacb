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
from cases import DIRECT_GRID, GRID, KERNEL, VIEWS, make_inputs  # noqa: E402
from program import ProgramTest, main, preloadable, preloading  # noqa: E402

FULL = os.environ.get("LORASTER_FULL", "") not in ("", "0")
SPREAD = 4  # calls of each run that fail where not all do
# Calls that can only be about what is read, or by which files come to be open at all.
OF_READING = ("read", "open", "close")


@dataclass
class Case:
    """One run, whose inputs are in ../in. outputs: files that belong together, groups of them apart by commas. given:
    files that are there before. kept: endings of what a run may leave to go on from, where it fails."""
    command: str
    outputs: str = ""
    given: dict = field(default_factory=dict)
    kept: tuple = ()
    system: bool = False  # calls on what the system tells about the machine fail too

    @property
    def groups(self):
        return [group.split() for group in self.outputs.split(",") if group]


def cases_of(command, files):
    """The command with each of the outputs, of which some are two files: "p.nii|p.hv p.v"."""
    return [Case(f"{command} {group.split()[0]}", group) for group in files.split("|")]


RING = "--scanner ../in/ring.yaml"
ON = "--backend cpu --samples 1 --threads 1"
ON_RING = f"{RING} {ON}"
RECON_DIRECT = ("recon --operator direct --algorithm ramla --views-per-block 1 --iterations 1 --backend cpu "
                f"--data ../in/h.h5 {KERNEL} -o r.nii")


class FailingFiles(ProgramTest):
    watched = "loraster"  # the program whose calls fail

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.library = preloadable(os.environ["LORASTER_FAIL_FILES"], cls.addClassCleanup)
        cls.seed = int(os.environ.get("LORASTER_SEED", "1"))
        cls.inputs = Path(tempfile.mkdtemp(prefix="loraster-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.inputs, ignore_errors=True)
        print(f"seed {cls.seed}")

        def make(command):
            subprocess.run([cls.program, *command.split()], cwd=cls.inputs, check=True, capture_output=True)
        make_inputs(cls.inputs, make)
        for command in (f"simulate --scanner ring.yaml {ON} --phantom spheres {GRID} --counts 5000 -o y.hs",
                        "scanner convert ring.yaml c.hscan", "scanner convert ring.yaml g.geom",
                        *(f"phantom spheres {GRID} -o i.{ending}" for ending in ("hv", "mha", "npy")),
                        f"matrix --scanner ring.yaml {ON} {GRID} -o m.npz"):
            make(command)

    def setUp(self):
        super().setUp()
        self.random = random.Random(self.seed)
        os.symlink(self.inputs, "in")

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
        done = self.run_program(case.command, cwd=folder, env=preloading(
            self.library, FAIL_FILES_CALLS=str(calls), FAIL_FILES_PROGRAM=self.watched, FAIL_FILES_AT=str(at),
            **({"FAIL_FILES_SYSTEM": "1"} if case.system else {})))
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
        say = f"{case.command}, failing: {call}\n{done.stdout}{done.stderr}"
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
        for group in case.groups:
            state = [found.get(member) for member in group]
            self.assertIn(state, ([before.get(member) for member in group], [new.get(member) for member in group]), say)
        known = {member for group in case.groups for member in group}
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
        members = [member for group in case.groups for member in group]
        olds = [{}]
        if members and not case.given:
            olds.append({member: b"older " + member.encode() for member in members if "/" not in member})
        total = tried = failed = 0
        for old in olds:
            done, calls, folder = self.run_case(case, old, 0)
            self.assertEqual(done.returncode, 0, f"{case.command}\n{done.stdout}{done.stderr}")
            new = self.contents(folder)
            self.assertEqual(set(new), set(members), case.command)
            self.assertGreater(len(calls), 0, case.command)
            most = max(Counter(line.split(" ")[0] for line in calls).values())
            total += most
            for at in self.numbers(calls, most):
                done, trace, folder = self.run_case(case, old, at)
                failing = [line for line in trace if "!" in line]
                self.assertGreater(len(failing), 0, f"{case.command}: {at} of {most}")
                self.judge(case, old, new, done, failing[0])
                tried += 1
                failed += done.returncode != 0
        print(f"{case.command}: {tried} of {total} calls failed, {failed} runs ended by it")
        return failed

    def fail_in_all(self, cases):
        before = self.digest()
        failed = 0
        for case in cases:
            failed += self.fail_in(case)
            self.assertEqual(self.digest(), before, f"{case.command}: an input was changed")
        self.assertGreater(failed, 0)


class Reading(FailingFiles):
    """Verbs that read; what they write is small."""

    def test_scanners(self):
        self.fail_in_all(Case(f"scanner {words}") for words in (
            "show ../in/ring.yaml", "check ../in/c.hscan", "show ../in/g.geom", "show ../in/l.petsird"))

    def test_events(self):
        self.fail_in_all([Case("events show ../in/l.petsird --json"), Case(f"events show ../in/c.Cdh {RING}"),
                          Case(f"recon {ON_RING} {GRID} --events ../in/l.petsird --iterations 1 -o r.nii", "r.nii")])

    def test_images(self):
        self.fail_in_all(Case(f"project {ON_RING} --image ../in/{name} -o p.h5", "p.h5")
                         for name in ("x.nii.gz", "i.hv", "i.mha", f"i.npy {GRID}"))

    def test_data(self):
        self.fail_in_all(Case(f"backproject {ON_RING} {GRID} --data ../in/{name} -o b.nii", "b.nii")
                         for name in ("y.h5", "y.hs"))

    def test_verify(self):
        self.fail_in_all(Case(f"matrix verify ../in/{words}")
                         for words in ("m.h5 --threads 1", f"m.npz {ON_RING} {GRID}"))


class Writing(FailingFiles):
    def test_images(self):
        self.fail_in_all(cases_of(f"phantom spheres {GRID} -o",
                                  "p.nii|p.nii.gz|p.hv p.v|p.hdr p.img|p.mhd p.raw|p.mha|p.npy"))

    def test_scanners(self):
        self.fail_in_all(cases_of("scanner convert ../in/ring.yaml", "s.yaml|s.geom|s.hscan s.lut|s.petsird"))

    def test_data(self):
        self.fail_in_all(cases_of(f"simulate {ON_RING} --phantom spheres {GRID} --counts 500 -o",
                                  "y.h5|y.hs y.s|y.petsird|y.Cdh y.Cdf"))

    def test_events(self):
        self.fail_in_all(Case(f"events convert ../in/l.petsird c.Cdh {RING}{more}", "c.Cdh c.Cdf")
                         for more in ("", " --histogram"))

    def test_recon(self):
        self.fail_in_all([
            Case(f"recon {ON_RING} {GRID} --data ../in/y.h5 --iterations 2 --save-every 1 --png r.png --efficiencies "
                 "../in/e.txt --mu ../in/mu.nii -o r.nii", "r.nii,r.png,r.iter1.nii,r.iter2.nii"),
            Case(f"sensitivity {RING} --backend cpu --samples 1 {GRID} -o s.mhd", "s.mhd s.raw", system=True)])

    def test_pictures(self):
        self.fail_in_all([Case(f"render {ON_RING} --mode sampled --rays 2 --at 1,0,0 --module 0 -o .",
                               "module_0.npy,module_0_colour.png,module_0_weight.png,render.json,contact_sheet.png"),
                          Case("scanner check ../in/ring.yaml --png c.png", "c.png"),
                          Case(f"direct lut {KERNEL} {DIRECT_GRID} -o t.png", "t.png")])

    def test_direct(self):
        self.fail_in_all([
            Case(f"direct deposit --activity ../in/a.nii {RING} --tof-ps 60 {VIEWS} --count 500 --threads 1 "
                 "--backend cpu -o h.h5", "h.h5"),
            Case(f"direct factors {RING} {DIRECT_GRID} {VIEWS} --directions 2 --threads 1 -o n.h5", "n.h5"),
            Case(f"direct project --image ../in/a.nii {VIEWS} {KERNEL} --backend cpu -o h.h5", "h.h5"),
            Case(RECON_DIRECT, "r.nii")])


class Matrices(FailingFiles):
    """Once all rows are there they stay, whatever fails while the file is made of them."""
    KEPT = (".part", ".part-rows")
    MATRIX = f"matrix {ON_RING} {GRID}"

    def test_formats(self):
        for case in cases_of(f"{self.MATRIX} -o", "m.h5|m.npz|m.mtx|m.tsv|m.hpm m.pm m_template.s m_template.hs "
                                                  "m_template.v m_template.hv"):
            case.kept = self.KEPT if case.outputs in ("m.h5", "m.npz", "m.mtx") else ()
            self.fail_in_all([case])

    def test_factors(self):
        factors = "--efficiencies ../in/e.txt --mu ../in/mu.nii --mu-as factors --compress 1"
        self.fail_in_all([Case(f"{self.MATRIX} {factors} -o m.h5", "m.h5", kept=self.KEPT),
                          Case(f"{self.MATRIX} --lor 0,1,2,4,3,0 -o t.nii.gz", "t.nii.gz")])

    def test_resume(self):
        """What another run has left stays, unless the whole is there."""
        points = "--at 1,0,0 --at 0,2,1 --at -3,1,1"
        for name, rows in (("m.h5", GRID), ("m.npz", GRID), ("p.h5", points)):
            command = f"matrix {ON_RING} {rows} -o {name}"
            self.fail_in_all([Case(f"{command} --resume", name, self.leave(command, name), self.KEPT)])

    def test_contents(self):
        """Under the same names and options, other values make another matrix."""
        local, folder = self.folder / "local", self.folder / "run"
        local.mkdir()
        for name in ("ring.yaml", "e.txt", "mu.nii"):
            shutil.copy(self.inputs / name, local)
        ring = local / "ring.yaml"
        ring.write_text(ring.read_text() + "crystal_mu_per_mm: 0.08\n")
        command = (f"matrix {ON} --scanner ../local/ring.yaml {GRID} --penetration --mode sampled --rays 2 "
                   "--efficiencies ../local/e.txt --mu ../local/mu.nii -o m.h5")
        given = self.leave(command, "m.h5")
        self.good(command, cwd=local)
        whole = (local / "m.h5").read_bytes()
        mu = array.array("f", (local / "mu.nii").read_bytes()[352:])
        for name, words, change in (
                ("e.txt", "efficiencies", lambda b: b.replace(b"0.81", b"0.82", 1)),
                ("mu.nii", "values of the attenuation map",
                 lambda b: b[:-4] + array.array("f", [mu[-1] * 1.01]).tobytes()),
                ("ring.yaml", "scanner small ring", lambda b: b.replace(b"0.08", b"0.09"))):
            good = (local / name).read_bytes()
            self.assertNotEqual(change(good), good)
            (local / name).write_bytes(change(good))
            self.ends(2, f"other contents of: {words}", f"{command} --resume", cwd=folder)
            (local / name).write_bytes(good)
            found = self.contents(folder)
            self.assertEqual({ending: found[ending] for ending in given}, given)
        self.good(f"{command} --resume", cwd=folder)
        self.assertEqual(((folder / "m.h5").read_bytes(), set(self.contents(folder))), (whole, {"m.h5"}))

    def leave(self, command, name):
        """What a run leaves that cannot rename its whole file, or write it: all rows."""
        case = Case(command, name)
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
        self.fail_in_all([Case(f"backproject {ON_RING} {GRID} --data ../in/y.h5 -o b.nii", "b.nii"),
                          Case("matrix verify ../in/m.h5 --threads 1"), Case(RECON_DIRECT, "r.nii")])


main({"reading": Reading, "writing": Writing, "matrices": Matrices, "helper": Helper})
