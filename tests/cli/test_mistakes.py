#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mistakes of a physicist who is new here: each is answered by one sentence with place and remedy.

The cases are in mistakes.txt. What other tests ask is not asked again: broken files are in tests/io/damaged.c, numbers
that are none in test_cli.py."""
import gzip, os, shlex, shutil, struct, subprocess, tempfile
from pathlib import Path

from program import CPU, GRID, NUM_VOXELS, SMALL_RING, ProgramTest, main, ring_of, write_nifti, write_npy

SIZE, VOXEL_MM = (6, 5, 3), (3, 3, 4)
AT = "--grid 6,5,3 --voxel-mm 3,3,4"
ON = "--scanner ring.yaml --backend cpu --threads 1"
# What stands for the names in braces in mistakes.txt.
BEGINNINGS = {
    "AT": AT,
    "ON": ON,
    "RECON": f"recon {ON} {AT} -o o.nii",
    "SENSITIVITY": f"sensitivity {ON} {AT} -o o.nii",
    "MATRIX": f"matrix {ON} -o o.tsv",
    "PROJECT": f"project {ON} -o o.h5",
    "SENSITIVITY_BY": f"sensitivity --scanner ring.yaml {AT} -o o.nii",
    "LISTMODE": f"recon --operator listmode {ON} {AT} --iterations 1 --events e.petsird -o o.nii",
    "DIRECT": "recon --operator direct --algorithm ramla --backend cpu --threads 1 -o o.nii"}

# README's scanner, whose ring is filled to 84.9 %.
README_RING = ring_of("my scanner", "radius_mm: 60, modules: 16, rings: 2, ring_pitch_mm: 22",
                      "crystals: [10, 10], pitch_mm: [2, 2], face_mm: [1.9, 1.9], depth_mm: 12",
                      "coincidence: {field_of_view_mm: 80}")


class Mistakes(ProgramTest):
    """They share one folder, which none of them changes."""

    @classmethod
    def setUpClass(cls):
        cls.shared = Path(tempfile.mkdtemp(prefix="loraster-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)

    def setUp(self):
        self.folder = self.shared
        self.scanner = "ring.yaml"
        self.on_ring = f"--scanner {self.scanner} {CPU} --threads 1"
        os.chdir(self.folder)
        if not os.path.exists(self.scanner):
            self.make_files()

    def put_image(self, name, *values, shift_mm=0.0):
        """Voxels have the values by turns."""
        write_nifti(name, SIZE, VOXEL_MM, [values[k % len(values)] for k in range(NUM_VOXELS)])
        raw = bytearray(Path(name).read_bytes())
        first_mm, = struct.unpack_from("<f", raw, 280 + 12)
        struct.pack_into("<f", raw, 280 + 12, first_mm + shift_mm)
        Path(name).write_bytes(raw)

    def put_metaimage(self, name, kind, order):
        """Floats, whose header may name another type or byte order."""
        values = [0.5 + 0.01 * k for k in range(NUM_VOXELS)]
        Path(name + ".raw").write_bytes(struct.pack(f"{order}{NUM_VOXELS}f", *values))
        self.write(name + ".mhd", "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
                   f"CompressedData = False\nOffset = -7.5 -6 -4\nElementSpacing = 3 3 4\nDimSize = 6 5 3\n"
                   f"ElementType = {kind}\nElementDataFile = {name}.raw\n")

    def make_files(self):
        for folder in ("heads", "folder"):
            os.mkdir(folder)
        for name, radius in (("double", "120"), ("half", "30"), ("cm", "6"), ("m", "0.06"), ("comma", "40,5")):
            self.write(f"{name}.yaml", README_RING.replace("radius_mm: 60", f"radius_mm: {radius}"))
        for name, text in {"ring.yaml": SMALL_RING, "heads/scanner.yaml": SMALL_RING,
                           "edges.yaml": SMALL_RING.replace("[3.8, 3.8]", "[3.4, 3.8]"),
                           "narrow.yaml": SMALL_RING.replace("view_mm: 30", "view_mm: 8"),
                           "close.yaml": README_RING.replace("ring_pitch_mm: 22", "ring_pitch_mm: 10"),
                           "empty.petsird": "", "m.npz": "", "empty.h5": "", "eff.csv": "crystal,efficiency\n0,1\n",
                           "few.txt": "1\n" * 127, "percent.txt": "100\n" * 128, "none.txt": "0\n" * 128,
                           "lors.txt": "1.0\n" * 300000, "killed.h5.part": "", "killed.h5.part-rows": "",
                           "mmr.s.hdr": "!INTERFILE:=\n%SMS-MI header name space:=sinogram subheader\n",
                           "field.yaml": README_RING.replace("view_mm: 80", "view_mm: 8"),
                           "turned.yaml": README_RING.replace("modules: 16, rings: 2", "modules: 6, rings: 16"),
                           }.items():
            self.write(name, text)
        for name, *values in (("x", 1.0), ("zero", 0.0), ("negative", -1.0, 1.0), ("faint", 1e-6), ("mm", 0.0096),
                              ("cm", 0.096), ("hu", 40.0, -1000.0), ("shifted", 1064.0, 24.0)):
            self.put_image(f"{name}.nii", *values)
        self.put_image("far.nii", 0.0096, shift_mm=900)
        self.put_image("corner.nii", 0.0096, shift_mm=25)
        self.put_image("beside.nii", 0.0096, shift_mm=9)
        write_nifti("other.nii", (4, 4, 4), (3, 3, 3), [1.0] * 64)
        write_nifti("wide.nii", (20, 20, 5), (4, 4, 4), [0.0096] * 2000)
        write_nifti("upright.nii", (3, 10, 10), (4, 4, 4), [1.0] * 300)
        self.put_metaimage("swapped", "MET_FLOAT", ">")
        self.put_metaimage("whole", "MET_INT", "<")
        Path("utf16.yaml").write_bytes(README_RING.encode("utf-16"))
        write_npy("cube.npy", (3, 5, 6), [1.0] * 90)
        write_npy("four.npy", (2, 3, 5, 6), [1.0] * 180)
        write_npy("slice.npy", (5, 6), [1.0] * 30)
        simulate = f"simulate {self.on_ring} {GRID} --phantom spheres --counts 9000"
        for name in ("y.h5", "e.petsird", "e.Cdh"):
            self.good(f"{simulate} -o {name}")
        self.write("right.yaml", README_RING)
        self.good(f"simulate --scanner right.yaml {GRID} --phantom point --counts 90 --tof-ps 300 -o tof.petsird")
        self.good("direct deposit --activity x.nii --scanner penn-labr3 --count 99 --backend cpu --azimuths 2",
                  "--tilts 1 --grid 64,64,16 --voxel-mm 8 -o d.h5")
        self.good(f"factors --scanner {self.scanner} --efficiencies percent.txt -o zero.h5")
        self.set_to_zero("zero.h5")
        self.good(f"matrix {self.on_ring} --at 0,0,0 -o m.h5")
        Path("x.nii.gz").write_bytes(gzip.compress(Path("x.nii").read_bytes()))
        Path("e.petsird.gz").write_bytes(gzip.compress(Path("e.petsird").read_bytes()))

    def set_to_zero(self, name):
        """Of a file that holds efficiencies of 100: 10000 in all LORs in coincidence."""
        raw = Path(name).read_bytes()
        value = struct.pack("<f", 10000.0)
        self.assertGreater(raw.count(value), 2000)
        Path(name).write_bytes(raw.replace(value, bytes(4)))

    def answer(self, command, code, *words):
        """One sentence with all words, and nothing that was not there before."""
        arguments = shlex.split(command.format(**BEGINNINGS))
        before = set(os.listdir(self.folder))
        done = self.run_program(*arguments, env=dict(os.environ, CUDA_VISIBLE_DEVICES=""))
        made = set(os.listdir(self.folder)) - before
        for name in made:
            path = Path(name)
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        told = [line for line in done.stderr.split("\n") if "error: " in line or "warning: " in line]
        self.assertEqual(done.returncode, int(code), f"{command}\n{done.stdout}{done.stderr}")
        self.assertTrue(any(all(word in line for word in words) for line in told), f"{command}\nno sentence has all "
                                                                                   f"of {words}:\n{done.stderr}")
        if code != "0":
            self.assertEqual(made, set(), "files were left behind")
            self.assertTrue(any(line.startswith("loraster: error: ") for line in told), told)

    def test_hounsfield_units(self):
        """Water and air by --mu-unit hu attenuate as the same map in 1/mm does; bone of 1000 HU has 0.1491/cm, by
        5.10e-5 * 2000 + 4.71e-2."""
        for first, second in [((0.0, -1000.0, 1000.0), (0.0096, 0.0, 0.01491)),
                              ((0.0, -3024.0, 47.0), (0.0096, 0.0, 0.0100512))]:
            self.put_image("ct.nii", *first)
            self.put_image("ct_mm.nii", *second)
            one = self.json("factors", "--scanner", self.scanner, "--mu", "ct.nii", "--mu-unit", "HU", "-o", "ct.h5")
            two = self.json("factors", "--scanner", self.scanner, "--mu", "ct_mm.nii", "-o", "ct.h5")
            self.assertLess(two["mean"], 0.95)
            self.assertAlmostEqual(one["mean"], two["mean"], delta=1e-7)
        for name in ("ct.nii", "ct_mm.nii", "ct.h5"):
            os.remove(name)

    def test_usual_subsets_are_as_many_as_there_can_be(self):
        """7 subsets of LORs, or 10 of views, are more than two panels of four crystals, two views or three events
        have; a number that is asked for is refused as before."""
        panel = "crystals: [2, 2], pitch_mm: [8, 8], face_mm: [7.9, 7.9], depth_mm: 15}"
        self.write("panels.yaml", "name: panels\nmodules:\n"
                   f"  - {{centre_mm: [0, 60, 0], u: [1, 0, 0], v: [0, 0, 1], {panel}\n"
                   f"  - {{centre_mm: [0, -60, 0], u: [-1, 0, 0], v: [0, 0, 1], {panel}\n")
        cube = "--grid 4,4,4 --voxel-mm 2 --scanner panels.yaml --backend native"
        for name in ("panels.h5", "panels.petsird"):
            self.good(f"simulate {cube} --phantom point --counts 3 -o {name}")
        osem = f"recon {cube} --algorithm osem -o panels.nii"
        direct = "recon --operator direct --backend cpu --tof-ps 400 --data d.h5 --algorithm ramla -o panels.nii"
        events = self.json("events show panels.petsird")["prompts"]
        listmode = f"recon {cube} --algorithm osem -o panels.nii --operator listmode --events panels.petsird"
        for command, most in [(f"{osem} --data panels.h5", 4), (listmode, min(events, 7)), (direct, 2)]:
            self.assertEqual(self.json(command)["subsets"], most)
            self.refuse(2, "subsets", f"{command} --subsets 50")
        for name in ("panels.yaml", "panels.h5", "panels.petsird", "panels.nii"):
            os.remove(name)

    def test_a_reader_that_has_enough(self):
        """A pipe that `head` closes is no error."""
        done = subprocess.run(["bash", "-c", f"'{self.program}' scanner show siemens-mmr --crystals | head -2; "
                                             "echo ${PIPESTATUS[0]}"], capture_output=True, text=True, check=True)
        self.assertIn(done.stdout.split()[-1], ("0", "141"))
        self.assertEqual(done.stderr, "")

    def test_a_box_is_no_ring(self):
        """Four panels with an end cap leave open corners, which say nothing about a radius."""
        panel = "crystals: [8, 8], pitch_mm: [3, 3], face_mm: [2.9, 2.9], depth_mm: 12}"
        sides = ((30, 0, 0, "[0, 1, 0]", "[0, 0, 1]"), (-30, 0, 0, "[0, -1, 0]", "[0, 0, 1]"),
                 (0, 30, 0, "[-1, 0, 0]", "[0, 0, 1]"), (0, -30, 0, "[1, 0, 0]", "[0, 0, 1]"),
                 (0, 0, 30, "[-1, 0, 0]", "[0, 1, 0]"))
        self.write("box.yaml", "name: box\nmodules:\n" + "".join(
            f"  - {{centre_mm: [{x}, {y}, {z}], u: {u}, v: {v}, {panel}\n" for x, y, z, u, v in sides))
        done = self.run_program("scanner", "check", "./box.yaml")
        self.assertNotIn("radius", done.stdout + done.stderr)
        os.remove("box.yaml")

    def test_subsets_of_few_angles(self):
        """Two panels have few directions: subsets differ, and fewer are advised; a ring of many crystals is even."""
        panel = "crystals: [8, 4], pitch_mm: [3, 3], face_mm: [2.9, 2.9], depth_mm: 12}"
        self.write("panels.yaml", "name: panels\nmodules:\n"
                   f"  - {{centre_mm: [0, 40, 0], u: [1, 0, 0], v: [0, 0, 1], {panel}\n"
                   f"  - {{centre_mm: [0, -40, 0], u: [-1, 0, 0], v: [0, 0, 1], {panel}\n")
        for scanner, subsets, is_advised in (("panels", 7, True), ("right", 2, False)):
            self.good(f"simulate --scanner {scanner}.yaml {AT} --phantom point --counts 900 -o few.h5")
            said = self.good(f"recon --scanner {scanner}.yaml {AT} --data few.h5 --algorithm osem --subsets {subsets}",
                             "--iterations 1 -o few.nii").stderr
            self.assertIn("in number or direction", said)
            self.assertEqual("take 2 subsets (" in said, is_advised, said)
        for name in ("panels.yaml", "few.h5", "few.nii"):
            os.remove(name)

    def test_left_out_counts_are_said(self):
        """Counts of LORs that no voxel reaches are part of no iteration."""
        said = self.good(f"recon {ON} --grid 1,1,3 --voxel-mm 3,3,4 --data y.h5 --iterations 1 -o few.nii").stderr
        self.assertRegex(said, r"iteration 1: .*measured \d+ \(and \d+ are left out\), estimated before the update")
        os.remove("few.nii")

    def test_modules_mirrored_by_twos(self):
        """Two of five sides are too many for a suspicion, and are said."""
        panel = "crystals: [8, 8], pitch_mm: [3, 3], face_mm: [2.9, 2.9], depth_mm: 12}"
        sides = ((30, 0, 0, "[0, 1, 0]", "[0, 0, 1]"), (-30, 0, 0, "[0, -1, 0]", "[0, 0, 1]"),
                 (0, 30, 0, "[1, 0, 0]", "[0, 0, 1]"), (0, -30, 0, "[-1, 0, 0]", "[0, 0, 1]"),
                 (0, 0, 30, "[-1, 0, 0]", "[0, 1, 0]"))
        self.write("box.yaml", "name: box\nmodules:\n" + "".join(
            f"  - {{centre_mm: [{x}, {y}, {z}], u: {u}, v: {v}, {panel}\n" for x, y, z, u, v in sides))
        said = self.good("scanner", "check", "./box.yaml").stdout
        self.assertIn("2 of 5 modules count their crystals the other way round than the others", said)
        os.remove("box.yaml")

    def test_interleaved_subsets_count_for_the_matrix(self):
        """Three iterations of seven subsets keep the matrix as four do; one sensitivity does not."""
        ring = f"--scanner ring.yaml {AT} --backend native --dry-run -o o.nii"
        osem = f"recon {ring} --data y.h5 --algorithm osem --iterations"
        for command, keeps in ((f"{osem} 3", True), (f"{osem} 4", True), (f"sensitivity {ring}", False)):
            self.assertEqual(self.json(command)["forecast"]["matrix_bytes"] > 0, keeps, command)

    def test_right_radius_passes(self):
        done = self.good("scanner", "check", "./right.yaml")
        self.assertNotIn("arc", done.stdout + done.stderr)


def add(name, *case):
    def test(self):
        self.answer(*case)
    test.__doc__ = name
    setattr(Mistakes, "test_" + "".join(c if c.isalnum() else "_" for c in name), test)


LINES = [line.strip() for line in Path(__file__).with_name("mistakes.txt").read_text().splitlines()
         if line and line[0] != "#"]
for case_name, typed, answered in zip(LINES[0::3], LINES[1::3], LINES[2::3], strict=True):
    add(case_name, typed, *answered.split(" | "))


assert len(LINES) >= 3 * 60
main({"mistakes": Mistakes})
