#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Outputs under hard use: several programs that write one, kills at any moment, limits on the size of files, links
where outputs go, rights of what is replaced."""
import os, random, resource, signal, subprocess, tempfile, time
from pathlib import Path

from program import CPU, GRID, ProgramTest, main

NO_CORES = (0, 0)


def limit_files(most):
    """For a child: no file beyond so many bytes, and the signal that says so as it is by default."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, NO_CORES)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    return limit


class OutputTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.on_ring = f"{self.on_ring} --samples 1"

    def names(self):
        return set(os.listdir(self.folder))

    def read(self, *names):
        return tuple((self.folder / name).read_bytes() for name in names)


class Together(OutputTest):
    """Several programs write one output at the same time: it is that of one of them, whole, and who has not written it
    says so."""
    ROUNDS, WRITERS = 12, 5

    def race(self, commands, outputs, may_refuse):
        results = set()
        for command in commands:
            self.good(*command)
            results.add(self.read(*outputs))
        self.assertEqual(len(results), len(commands), "the commands' results are alike")
        before = self.names()
        refused = 0
        for _ in range(self.ROUNDS):
            running = [self.start(*commands[k % len(commands)]) for k in range(self.WRITERS)]
            ends = [(process.communicate(timeout=120), process.returncode) for process in running]
            self.assertIn(0, [code for _, code in ends])
            for (_, said), code in ends:
                self.assertIn(code, (0, 1) if may_refuse else (0,), said)
                if code == 1:
                    refused += 1
                    self.assertIn("another program is just writing it", said)
            self.assertIn(self.read(*outputs), results, "the output is nobody's")
            self.assertEqual(self.names(), before)
        print(f"{outputs[0]}: {self.ROUNDS} rounds of {self.WRITERS}, {refused} refused")

    def matrices(self, name):
        on = f"matrix {self.on_ring} {GRID} -o {name}"
        return [[on], [f"{on} --threshold 0.01"]]

    def test_hdf5(self):
        self.race(self.matrices("m.h5"), ["m.h5"], True)

    def test_npz(self):
        self.race(self.matrices("m.npz"), ["m.npz"], True)

    def test_hdf5_of_blocks(self):
        on = (f"matrix --scanner {self.scanner} --backend native --threads 1 --samples 1 --grid 34,34,12 --voxel-mm 1 "
              "-o l.h5")
        self.ROUNDS = 4
        self.race([[on], [f"{on} --threshold 0.0001"]], ["l.h5"], True)
        self.assertGreater((self.folder / "l.h5").stat().st_size, 8 << 20)

    def test_castor(self):
        commands = []
        for k, counts in enumerate((300, 700, 1500)):
            self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts {counts} -o {k}.petsird")
            commands.append([f"events convert {k}.petsird c.Cdh --scanner {self.scanner}"])
        self.race(commands, ["c.Cdh", "c.Cdf"], False)

    def test_image_pair(self):
        commands = [[f"phantom spheres {GRID} --contrast {contrast} -o p.hv"] for contrast in ("2", "4")]
        commands.append(["phantom spheres --grid 7,5,3 --voxel-mm 3 -o p.hv"])
        self.race(commands, ["p.hv", "p.v"], False)


class Killed(OutputTest):
    """A kill leaves the old output or the new one, and no files that nobody asked for."""
    KILLS = 40

    def kill(self, names, *arguments):
        """Kills at any moment, most of them before the end; what is there afterwards."""
        self.good(*arguments)
        new = self.read(*names)
        start = time.monotonic()
        self.good(*arguments)
        took = time.monotonic() - start
        chance = random.Random(1)
        ended = 0
        for _ in range(self.KILLS):
            for name in names:
                (self.folder / name).write_text("older")
            process = self.start(*arguments)
            time.sleep(chance.uniform(0, 1.1 * took))
            process.kill()
            process.communicate(timeout=60)
            ended += process.returncode == 0
            found = [(self.folder / name).read_bytes() if (self.folder / name).exists() else None for name in names]
            if found[-1] is not None:  # without its header it is nobody's data
                self.assertIn(tuple(found), (new, (b"older",) * len(names)))
        print(f"{names[-1]}: {self.KILLS} kills, {ended} runs had ended")
        for name in names:  # without its header what is left would be somebody else's
            (self.folder / name).write_text("older")
        self.good(*arguments)
        self.assertEqual(self.read(*names), new)

    def hidden(self):
        return [name for name in self.names() if name.startswith(".loraster")]

    def test_image(self):
        self.kill(["p.v", "p.hv"], "phantom", "spheres", "--grid 160,160,80 --voxel-mm 1 -o p.hv")
        self.assertEqual(self.hidden(), [])

    def test_matrix(self):
        self.kill(["m.h5"], "matrix", f"{self.on_ring} {GRID} -o m.h5")
        self.assertEqual(self.names(), {"ring.yaml", "m.h5"})


class Limits(OutputTest):
    def test_largest_file(self):
        """ulimit -f ends no program without a sentence, whatever its output."""
        self.expected_counts("y.h5", 5000)
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 3000 -o e.petsird")
        for command, in self.cases("large outputs"):
            self.refuse(1, "ulimit -f", command, preexec_fn=limit_files(4096))

    def test_checkpoints(self):
        """Without room for one a run goes on to its image; with one of all iterations it writes that."""
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 3000 -o e.petsird")
        recon = f"recon {self.on_ring} {GRID} --events e.petsird --iterations 4"
        keeps = f"{recon} --checkpoint c.h5"
        self.good(f"{recon} -o x.nii")
        done = self.good(keeps, "-o z.nii", preexec_fn=limit_files(4096))
        warnings = [line for line in done.stderr.split("\n") if "warning: " in line]
        self.assertEqual(len(warnings), 1, done.stderr)
        self.assertIn("no checkpoint of iteration 1", warnings[0])
        self.assertFalse((self.folder / "c.h5").exists())
        self.assertEqual(*self.read("x.nii", "z.nii"))
        self.good(keeps, "-o z.nii")
        kept, = self.read("c.h5")
        os.remove("z.nii")
        self.good(keeps, "--resume -o z.nii --png z.png")
        self.assertEqual(*self.read("x.nii", "z.nii"))
        self.assertTrue((self.folder / "z.png").exists())
        self.assertEqual(self.json(keeps, "--resume -o z.nii")["iterations"], [])
        self.refuse(2, "4 iterations already", keeps.replace("--iterations 4", "--iterations 3"), "--resume -o z.nii")
        self.assertEqual(self.read("c.h5"), (kept,))

    def test_full_disk(self):
        small = Path("/dev/shm")
        if os.geteuid() != 0 or not small.is_dir():
            self.skipTest("no rights to mount a small disk")
        folder = Path(tempfile.mkdtemp(prefix="loraster-test-"))
        self.addCleanup(os.rmdir, folder)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], check=False,
                                 capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("no small disk can be mounted here")
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        older = folder / "p.nii"
        older.write_bytes(b"older")
        for name in ("p.nii", "p.hv", "m.h5", "m.npz"):
            command = ("phantom spheres --grid 40,40,40 --voxel-mm 1" if name[0] == "p" else
                       f"matrix --scanner {self.folder}/ring.yaml {CPU} --samples 1 --grid 12,12,6 --voxel-mm 1")
            self.refuse(1, "the disk is full", f"{command} -o {name}", cwd=folder)
            self.assertEqual((sorted(os.listdir(folder)), older.read_bytes()), (["p.nii"], b"older"))

    def test_devices(self):
        self.refuse(1, "the disk is full", f"matrix {self.on_ring} {GRID} -o /dev/full")
        self.refuse(2, "device or a pipe", f"matrix {self.on_ring} {GRID} --format hdf5 -o /dev/full")

    def test_rights(self):
        for name in ("p.nii", "p.hv", "p.v", "m.h5", "m.npz", "m.tsv"):
            (self.folder / name).write_text("older")
            os.chmod(self.folder / name, 0o600)
        for name in ("p.nii", "p.hv"):
            self.good(f"phantom spheres {GRID} -o {name}")
        for name in ("m.h5", "m.npz", "m.tsv"):
            self.good(f"matrix {self.on_ring} {GRID} -o {name}")
        for name in ("p.nii", "p.hv", "p.v", "m.h5", "m.npz", "m.tsv"):
            self.assertEqual((self.folder / name).stat().st_mode & 0o777, 0o600, name)

    def as_nobody(self, code, words, *arguments):
        def become_nobody():
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
        try:
            return self.ends(code, words, *arguments, preexec_fn=become_nobody)
        except PermissionError:
            self.skipTest("nobody may not start the program here")

    def test_without_rights(self):
        os.chmod(self.folder, 0o755 if os.geteuid() == 0 else 0o555)
        self.addCleanup(os.chmod, self.folder, 0o755)
        before = self.names()
        for arguments in (f"phantom spheres {GRID} -o p.nii", f"matrix {self.on_ring} {GRID} -o m.h5"):
            self.as_nobody(1, "Permission denied", arguments)
        self.as_nobody(0, (), f"matrix {self.on_ring} {GRID} -o /dev/null")
        done = self.good(f"matrix {self.on_ring} {GRID} -o /dev/stdout")
        self.assertTrue(done.stdout.startswith("row\tx_mm"))
        self.assertEqual(self.names(), before)

    def test_of_another(self):
        """A file that its folder lets one replace is read by nobody who could not read it before."""
        if os.geteuid() != 0:
            self.skipTest("needs two users")
        os.chmod(self.folder, 0o777)
        (self.folder / "p.nii").write_text("older")
        os.chmod(self.folder / "p.nii", 0o640)
        for write in (self.as_nobody, self.ends):
            write(0, (), f"phantom spheres {GRID} -o p.nii")
            facts = (self.folder / "p.nii").stat()
            self.assertEqual((facts.st_mode & 0o777, facts.st_uid), (0o600, 65534))


class Links(OutputTest):
    """What has the name of something that is left for another run is neither followed nor emptied."""

    def test_benches_and_texts(self):
        (self.folder / "b.json.part").symlink_to("precious")
        (self.folder / "precious").write_text("precious")
        self.good("bench correspondence --workload pair --backend cpu --size small --mode exact --repeat 1",
                  "--seconds 1 -o b.json")
        self.assertEqual((self.folder / "precious").read_text(), "precious")
        self.assertIn('"verb"', (self.folder / "b.json").read_text())

    def test_target(self):
        """A link stays a link, and the file comes to lie where it leads, there already or not."""
        (self.folder / "far").mkdir()
        for name in ("m.h5", "m.npz", "m.tsv"):
            (self.folder / name).symlink_to(f"far/{name}")
            for _ in range(2):
                self.good(f"matrix {self.on_ring} {GRID} -o {name}")
                self.assertTrue((self.folder / name).is_symlink())
                self.assertFalse((self.folder / "far" / name).is_symlink())
        self.assertEqual(sorted(os.listdir(self.folder / "far")), ["m.h5", "m.npz", "m.tsv"])


class Losses(OutputTest):
    """No output takes the place of what is read, or of what goes with that; names say what is written."""

    def inputs(self):
        self.expected_counts()
        on = f"{self.on_ring} --phantom spheres {GRID} --counts 300"
        for name in ("y.hs", "ev.Cdh", "ev.petsird"):
            self.good(f"simulate {on} -o {name}")
        for name in ("x.nii", "x.hv", "x.mhd", "x.hdr"):
            self.good(f"phantom spheres {GRID} -o {name}")
        self.good(f"scanner convert {self.scanner} s.hscan")
        self.good(f"matrix {self.on_ring} {GRID} --part 1/1 -o m.h5")
        direct = f"--tof-ps 600 --azimuths 3 --tilts 1 {CPU}"
        self.good("phantom spheres --grid 20,20,20 --voxel-mm 20 -o w.nii")
        self.good(f"direct project --image w.nii {direct} -o v.h5")
        for name in ("y.h5", "x.hv", "ev.petsird", "m.h5"):
            (self.folder / f"link-{name}").symlink_to(name)
            os.link(name, f"other-{name}")
        (self.folder / "far").mkdir()
        # headers that name the voxels of another, under names of their own
        for name, other in (("x.hv", "far/z.hv"), ("x.mhd", "far/z.mhd")):
            text = (self.folder / name).read_text()
            for data in ("x.v", "x.raw"):
                text = text.replace(data, f"../{data}")
            (self.folder / other).write_text(text)

    def test_inputs_stay(self):
        self.inputs()
        for name in ("x.iter4.nii", "x-2.nii", "x-2.iter2.nii"):
            (self.folder / name).write_bytes((self.folder / "x.nii").read_bytes())
        before = {name: (self.folder / name).read_bytes() for name in self.names() - {"far"}}
        recon = f"recon {self.on_ring} {GRID}"
        for command, in self.cases("inputs", recon=recon, here=self.folder.name):
            self.refuse(2, "would be lost", command)
        self.assertEqual({name: (self.folder / name).read_bytes() for name in before}, before)
        # what is not read may be replaced; iterations that this run does not have, too
        self.good(f"phantom spheres {GRID} -o x.hv")
        self.good(recon, "--data y.h5 --initial x.iter4.nii --after 4 -o x.nii --iterations 4 --save-every 2")

    def test_others_stay(self):
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 300 -o e.petsird")
        for name, command in self.cases("others"):
            (self.folder / name).write_text("years of work")
            self.refuse(2, [name, "what it belongs to"], command)
            self.assertEqual((self.folder / name).read_text(), "years of work")
            os.remove(name)
            self.good(command)
            self.good(command)  # its own

    def test_endings(self):
        self.expected_counts()
        self.image("x.nii")
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 300 -o e.petsird")
        kinds = {kind: names.split() for kind, names in self.cases("endings")}
        every = {"n.txt", "n.py", "n.", "n.h5.bak", "n.v", ".h5"}.union(names[0] for names in kinds.values())
        for of, command in self.cases("outputs"):
            for name in sorted(every.difference(*(kinds[kind] for kind in of.split()))):
                self.refuse(2, [name, "must end in"], command, name)
        for name, kind in (("n.npz", "hdf5"), ("n.h5", "tsv"), ("n.mtx", "npz"), ("n.tsv", "mtx")):
            self.refuse(2, "must end in", f"matrix {self.on_ring} {GRID} --format {kind} -o {name}")


main({"together": Together, "killed": Killed, "limits": Limits, "links": Links, "losses": Losses})
