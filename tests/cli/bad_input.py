# SPDX-License-Identifier: Apache-2.0
"""Bad input: the right exit code, one sentence that names file, place and remedy, and no half-written output."""
import math
import os
import resource
import signal
import subprocess
from pathlib import Path

from program import GRID, NUM_VOXELS, SMALL_RING, ProgramTest, write_nifti


class BadInput(ProgramTest):
    """Images, LOR data, list mode, grids."""

    def project(self, image):
        return f"project {self.on_ring} --image {image} -o y.h5"

    def test_missing_files(self):
        self.refuse(3, "gone.nii", self.project("gone.nii"))
        self.refuse(3, "gone.yaml", f"sensitivity --scanner gone.yaml {GRID} -o s.nii")
        self.refuse(3, "gone.h5", f"recon {self.on_ring} {GRID} --data gone.h5 -o s.nii")
        self.refuse(3, "gone.safir", f"recon {self.on_ring} {GRID} --events gone.safir -o s.nii")
        self.refuse(3, "gone.nii", f"sensitivity {self.on_ring} --like gone.nii -o s.nii")
        self.refuse(3, "gone.nii", f"sensitivity {self.on_ring} {GRID} --mu gone.nii -o s.nii")

    def test_folder_instead_of_file(self):
        os.mkdir("folder.nii")
        self.refuse(3, "folder.nii", self.project("folder.nii"))

    def test_empty_files(self):
        for name in ["x.nii", "x.nii.gz"]:
            self.write(name, "")
            self.refuse(3, name, self.project(name))
        self.write("y.data", "")
        self.refuse(3, "y.data", f"backproject {self.on_ring} {GRID} --data y.data -o b.nii")

    def test_truncated_image(self):
        whole = Path(self.image("whole.nii")).read_bytes()
        for length in (100, 347, 352, len(whole) - 1):
            Path("cut.nii").write_bytes(whole[:length])
            self.refuse(3, "cut.nii", self.project("cut.nii"))
        whole = Path(self.image("whole.nii.gz", [math.sin(k) for k in range(NUM_VOXELS)]))
        raw = whole.read_bytes()
        for length in (20, len(raw) // 2, len(raw) - 40):
            Path("cut.nii.gz").write_bytes(raw[:length])
            self.refuse(3, "cut.nii.gz", self.project("cut.nii.gz"))

    def test_wrong_type(self):
        self.refuse(3, "ring.yaml", self.project("ring.yaml"))
        self.image("image.nii")
        self.refuse(3, "image.nii", f"backproject {self.on_ring} {GRID} --data image.nii -o b.nii")
        self.refuse(3, "image.nii", f"sensitivity --scanner ./image.nii {GRID} -o s.nii")
        self.write("text.safir", "not list mode at all, but quite long enough for a signature\n")
        self.refuse(3, "text.safir", f"recon {self.on_ring} {GRID} --events text.safir --crystal-map ring.yaml",
                    "-o s.nii")

    def test_image_type(self):
        write_nifti("complex.nii", (6, 5, 3), (3, 3, 4), [0.0] * (2 * NUM_VOXELS), 32)
        self.refuse(3, "complex.nii", self.project("complex.nii"))

    def test_not_finite(self):
        for bad in (math.nan, math.inf):
            values = [1.0] * NUM_VOXELS
            values[17] = bad
            self.image("bad.nii", values)
            self.refuse(3, "bad.nii", self.project("bad.nii"))
            self.refuse(3, "bad.nii", f"sensitivity {self.on_ring} {GRID} --mu bad.nii -o s.nii")

    def test_negative_attenuation(self):
        self.image("bad.nii", [-1.0] * NUM_VOXELS)
        self.refuse(3, "attenuation", f"sensitivity {self.on_ring} {GRID} --mu bad.nii -o s.nii")

    def test_truncated_data(self):
        data = Path(self.expected_counts()).read_bytes()
        for length in (8, 500, len(data) // 2):
            Path("cut.h5").write_bytes(data[:length])
            self.refuse(3, "cut.h5", f"backproject {self.on_ring} {GRID} --data cut.h5 -o b.nii")

    def test_data_of_another_scanner(self):
        data = self.expected_counts()
        other = self.write("other.yaml", SMALL_RING.replace("[4, 4], pitch", "[5, 4], pitch"))
        self.refuse(3, "y.h5", f"backproject --scanner {other} {GRID} --data {data} -o b.nii")

    def test_grid_that_misses_the_scanner(self):
        self.refuse(3, "grid", f"sensitivity {self.on_ring} {GRID} --origin-mm 900,0,0 -o s.nii")

    def test_huge_grid(self):
        done = self.refuse(3, "grid", f"sensitivity {self.on_ring} --grid 100000,100000,100000 --voxel-mm 1 -o s.nii")
        self.assertIn("voxels", done.stderr)

    def test_hdf5_where_none_can_be(self):
        """The input is not overwritten, and nothing is computed in vain."""
        image = self.image("x.nii")
        before = Path(image).read_bytes()
        for name in ("x.nii", "y.nii.gz"):
            self.refuse(2, name, f"project {self.on_ring} --image {image} -o {name}")
            self.refuse(2, name, f"simulate {self.on_ring} --image {image} -o {name}")
        self.assertEqual(Path(image).read_bytes(), before)
        done = self.refuse(2, "/dev/null", f"project {self.on_ring} --image {image} -o /dev/null")
        self.assertNotIn("backend", done.stderr)

    def test_matrix_that_does_not_fit(self):
        self.refuse(1, "memory", f"sensitivity {self.on_ring} {GRID} --store yes --max-memory 1K -o s.nii")

    def test_output_that_is_the_input(self):
        """By any name; a scanner written over a file of events would be the end of these."""
        self.run_program(f"simulate {self.on_ring} {GRID} --phantom point --counts 50 -o e.petsird")
        before = Path("e.petsird").read_bytes()
        os.symlink("e.petsird", "link.petsird")
        os.mkdir("d")
        for name in ("e.petsird", "./d/../e.petsird", "link.petsird"):
            self.refuse(2, ["input", name], f"events convert e.petsird {name}")
            self.refuse(2, ["input", name], f"scanner convert ./e.petsird {name}")
        self.assertEqual(Path("e.petsird").read_bytes(), before)

    def test_what_is_no_list_mode(self):
        os.mkdir("d")
        os.mkfifo("pipe.l")
        self.write("words.txt", "hello\n")
        self.refuse(3, ["d", "folder"], "events convert d o.Cdh")
        self.refuse(3, ["words.txt", "neither SAFIR"], "events convert words.txt o.Cdh")
        self.refuse(3, "folder", "matrix verify d")
        os.mkfifo("pipe.h5") # opening it would wait for ever
        self.refuse(3, ["pipe.h5", "no regular file"], "matrix verify pipe.h5")

    def test_strange_ending(self):
        self.refuse(2, ["m.xyz", "must end in", ".tsv"], f"matrix {self.on_ring} {GRID} --rows 0:1 -o m.xyz")

    def test_truncated_list_mode(self):
        events = self.real_data("safir/coincidencesLM.clm.safir")
        raw = events.read_bytes()
        crystal_map = events.with_name("DualRingPrototype_crystal_map.txt")
        for length in (10, 32 + 8 * 100 + 3):
            Path("cut.clm.safir").write_bytes(raw[:length])
            self.refuse(3, "cut.clm.safir", "recon --scanner safir-dual-ring-prototype --backend cpu --grid 2,2,2",
                        f"--voxel-mm 5 --events cut.clm.safir --crystal-map {crystal_map} -o x.nii")
        self.refuse(3, "crystal_map", f"recon --scanner {self.scanner} --grid 2,2,2 --voxel-mm 5 --events {events}",
                    f"--crystal-map {crystal_map} -o x.nii")


class ScannerFiles(ProgramTest):
    """Scanner files: refused with file, line and column, the thing and the amount."""

    def bad(self, text, *words):
        self.write("bad.yaml", text)
        self.refuse(3, ["bad.yaml", *words], "scanner check ./bad.yaml")

    def test_texts(self):
        """An unknown key, a missing one, wrong types, no YAML, a truncated file, sizes, and faces beyond the pitch."""
        for old, new, *words in (
                ("modules: 8", "modules: 8, modulse: 8", "modulse", ":2:"), ("radius_mm: 30, ", "", "radius_mm"),
                ("radius_mm: 30", "radius_mm: wide", "radius_mm", ":2:"),
                ("crystals: [4, 4]", "crystals: 4", "crystals", ":3:"),
                ("modules: 8", "modules: 8.5", "modules", ":2:"), ("radius_mm: 30", "radius_mm: -30"),
                ("radius_mm: 30", "radius_mm: 0"), ("modules: 8", "modules: 0"),
                ("modules: 8", "modules: -8"), ("crystals: [4, 4]", "crystals: [0, 4]"),
                ("pitch_mm: [4, 4]", "pitch_mm: [4, -4]"), ("face_mm: [3.8, 3.8]", "face_mm: [0, 3.8]"),
                ("depth_mm: 10", "depth_mm: 0"), ("radius_mm: 30", "radius_mm: .nan"),
                ("radius_mm: 30", "radius_mm: .inf"), ("face_mm: [3.8, 3.8]", "face_mm: [4.8, 3.8]", "pitch")):
            with self.subTest(new):
                self.assertIn(old, SMALL_RING)
                self.bad(SMALL_RING.replace(old, new), *words)
        for text, *words in ((SMALL_RING + "colour: blue\n", "colour", ":5:"), ("- 1\n- 2\n",), ("just words\n",),
                             ("ring: {radius_mm: 30\nmodule: [", ":"), ("\x00\x01\x02",), ("",),
                             (SMALL_RING[:SMALL_RING.index("face_mm")],)):
            with self.subTest(text):
                self.bad(text, *words)

    def test_overlap(self):
        self.write("bad.yaml", SMALL_RING.replace("radius_mm: 30", "radius_mm: 15"))
        done = self.refuse(3, "overlap", "scanner check ./bad.yaml")
        self.assertRegex(done.stderr, r"modules \d+ and \d+ overlap by \d[\d.]* mm")

    def test_same_refusal_in_every_verb(self):
        self.write("bad.yaml", SMALL_RING + "colour: blue\n")
        for verb in ([f"sensitivity {GRID} -o s.nii"], ["matrix --at 0,0,0 -o m"], ["render --at 0,0,0 -o r"]):
            self.refuse(3, ["bad.yaml", "colour"], verb[0], "--scanner bad.yaml", *verb[1:])


class FullDisk(ProgramTest):
    """No room: by a limit on file size, by /dev/full, and by a small file system where the system lets us mount one."""

    LIMIT = 1024

    def limited(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.LIMIT, self.LIMIT))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def no_room(self, name, *arguments):
        self.refuse(1, name, *arguments, preexec_fn=self.limited, restore_signals=False)

    def test_image(self):
        grid = "--grid 12,12,12 --voxel-mm 1.5"
        self.no_room("s.nii", "sensitivity", f"{self.on_ring} {grid} --samples 1 --rays 1 -o s.nii")
        self.no_room("s.nii.gz", "sensitivity", f"{self.on_ring} {grid} --samples 1 --rays 1 -o s.nii.gz")

    def test_lor_data(self):
        self.no_room("y.h5", "project", f"{self.on_ring} --image {self.image()} -o y.h5")

    def test_matrix(self):
        self.no_room("m.tsv", "matrix", f"{self.on_ring} {GRID} -o m.tsv")
        self.no_room("m.h5", "matrix", f"{self.on_ring} {GRID} -o m.h5")

    def test_old_file_survives(self):
        self.write("m.tsv", "precious\n")
        self.no_room("m.tsv", "matrix", f"{self.on_ring} {GRID} -o m.tsv")
        self.assertEqual(Path("m.tsv").read_text(), "precious\n")

    def test_standard_output(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([self.program, "scanner", "show", self.scanner, "--crystals"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)

    def test_small_file_system(self):
        os.mkdir("small")
        script = 'mount -t tmpfs -o size=8k tmpfs small || exit 99; "$@"; code=$?; ls -A small >left; exit $code'
        command = f"sensitivity {self.on_ring} --grid 16,16,16 --voxel-mm 1 --samples 1 --rays 1 -o small/s.nii"
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", self.program, *command.split()],
                              capture_output=True, text=True, check=False)
        if not os.path.exists("left"):
            self.skipTest("no right to mount a file system: " + done.stderr.strip())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("small/s.nii", done.stderr)
        self.assertEqual(Path("left").read_text(), "")
