#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files made to do harm: small ones that take hours or all memory, ones without an end, ones whose texts rule a
terminal, ones that were cut, and ones that name what their reader may not see."""
import json, math, os, random, resource, signal, struct, subprocess, time, unittest
from pathlib import Path

from program import GRID, SMALL_RING, ProgramTest, main, preloadable, split

# Sanitizers reserve terabytes of addresses.
IS_SANITIZED = bool(os.environ.get("LORASTER_SANITIZED"))
MIB = 1 << 20
# 120 rings of 120 modules: 104 million pairs of them in 141 bytes.
MANY = ("ring: {radius_mm: 2000, modules: 120, rings: 120, ring_pitch_mm: 5}\n"
        "module: {crystals: [1,1], pitch_mm: [4,4], face_mm: [4,4], depth_mm: 10}\n")
NEEDLE = "root:x:0:0:SECRET"


def within(mebibytes):
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (mebibytes * MIB, mebibytes * MIB))}


class Bounds(ProgramTest):
    """Time and memory go with the file, not with the square of what it says."""

    def seconds_of(self, *arguments):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = self.run_program(*arguments)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before.ru_utime, done

    def assert_linear(self, make, *verb, least=1):
        """16 times as much takes some 16 times as long, or 28 where it no longer fits the processor's caches; a square
        would take 256 times."""
        small, _ = self.seconds_of(*verb, make(least))
        large, done = self.seconds_of(*verb, make(16 * least))
        self.assertLess(large, 64 * max(small, 0.05), done.stderr)

    @unittest.skipIf(IS_SANITIZED, "addresses are not to be limited")
    def test_many_modules_take_little_memory(self):
        path = self.write("many.yaml", MANY)
        shown = self.json(f"scanner show {path}", **within(400))
        self.assertEqual((shown["num_pairs"], shown["num_lors"]), (14400 * 14399 // 2, shown["num_pairs"]))
        done = self.run_program(f"scanner check {path}", **within(400))
        self.assertIn("103672800 LORs in 103672800 of 103672800 pairs", done.stderr)
        # Pairs that do not fit are refused, not swapped out.
        self.refuse(1, "memory", f"sensitivity --scanner {path} {GRID} --backend cpu -o s.nii", **within(1000))

    @unittest.skipIf(IS_SANITIZED, "addresses are not to be limited")
    def test_listed_modules_take_little_memory(self):
        lines = ["modules:"]
        for k in range(8000):
            angle = 2 * math.pi * (k % 200) / 200
            c, s = math.cos(angle), math.sin(angle)
            lines.append(f"- {{center_mm: [{300 * c:.9g},{300 * s:.9g},{k // 200 * 6}], u: [{-s:.12g},{c:.12g},0], "
                         "v: [0,0,1], crystals: [1,1], pitch_mm: [4,4], face_mm: [4,4], depth_mm: 5}")
        path = self.write("listed.yaml", "\n".join(lines) + "\n")
        self.assertEqual(self.json(f"scanner show {path}", **within(500))["num_pairs"], 8000 * 7999 // 2)

    def test_ctrl_c_is_answered(self):
        path = self.write("many.yaml", MANY + "coincidence: {field_of_view_mm: 3000}\n")
        process = self.start("scanner show", path)
        wait_until_caught(process.pid)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=240)
        self.assertEqual((process.returncode, out), (1, ""), errors)
        self.assertIn("loraster: stopped", errors)

    def test_lists_of_texts(self):
        ring = SMALL_RING.replace("name: small ring\n", "")

        def make(factor):
            lines = "".join(f'- "of page {k}"\n' for k in range(10000 * factor))
            return self.write(f"source{factor}.yaml", ring + "source:\n" + lines)
        self.assert_linear(make, "scanner", "show")

    def table(self, name, points):
        """CASToR's look-up table of crystals, looking away from the axis."""
        rows = bytearray()
        for x, y, z in points:
            r = math.hypot(x, y)
            rows += struct.pack("<6f", x, y, z, x / r, y / r, 0)
        Path(name + ".lut").write_bytes(rows)
        return self.write(name + ".hscan", castor_header(len(points)))

    def test_crystals_without_order(self):
        """Single ones far from each other, beside pairs that make up the usual distance."""
        def make(factor):
            draw = random.Random(1)  # the same ones first: both end at the same crystal
            alone = [(draw.uniform(-9e4, 9e4), draw.uniform(10, 9e4), draw.uniform(-9e4, 9e4)) for
                     _ in range(2000 * factor)]
            return self.table(f"lone{factor}", alone + [(x + 1, y, z) for x, y, z in alone])
        self.assert_linear(make, "scanner", "show", least=2)

    def test_crystals_in_a_heap(self):
        """All but a few stand within what these few say that neighbours are apart."""
        draw = random.Random(1)
        count = 10000
        points = [(draw.uniform(100, 101), draw.uniform(100, 101), draw.uniform(100, 101)) for _ in range(count)]
        for k in range(64):
            points[k * count // 64] = (1000 + 700 * k, 1000, 0)
        self.refuse(3, "too many of them lie in one place", "scanner show", self.table("heap", points))


def castor_header(count, name="s"):
    return (f"modality: PET\nscanner name: {name}\nnumber of elements: {count}\nnumber of layers: 1\n"
            "scanner radius: 100\ncrystals size trans: 1\ncrystals size axial: 1\ncrystals size depth: 1\n"
            "mean depth of interaction: 0\nmin angle difference: 0\nvoxels number transaxial: 10\n"
            "voxels number axial: 10\nfield of view transaxial: 10\nfield of view axial: 10\n")


def wait_until_caught(pid):
    """Until the process answers SIGINT itself."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        status = Path(f"/proc/{pid}/status").read_text()
        caught = [line for line in status.split("\n") if line.startswith("SigCgt:")]
        if caught and int(caught[0].split()[1], 16) & 1 << signal.SIGINT - 1:
            return
        time.sleep(0.01)
    raise TimeoutError("the program never caught SIGINT")


class Endless(ProgramTest):
    """What is no regular file is not read, and no text without a limit."""

    def test_pipes_beside_events(self):
        os.mkfifo("e.l.hdr")
        self.write("e.l", "1234")
        self.run_program(f"events show --scanner {self.scanner} e.l", timeout=240)

    def test_texts_without_end(self):
        for name, verb in (("e.txt", "--efficiencies"), ("m.map", "--crystal-map")):
            with open(name, "wb") as file:
                file.truncate(1 << 40)  # a hole
            self.write("x.safir", "SAFIR CListModeData" + 21 * "\0")
            command = "recon --events x.safir -o s.nii" if verb == "--crystal-map" else "matrix -o m.npz"
            self.refuse(3, [name, "larger than"], f"{command} {self.on_ring} {GRID} {verb} {name}", timeout=240)


class Texts(ProgramTest):
    """What a file says reaches terminals as text, and JSON and YAML as UTF-8."""
    NAME = b"a\x1b]0;title\x07\x1b[31mb\xff\xc2\x9b1mc\xed\xa0\x80\xe0\x80\x80d\xf4\x90\x80\x80e\x7f"

    def bytes_of(self, *arguments):
        done = subprocess.run([self.program, *split(arguments)], capture_output=True, check=False, cwd=self.folder,
                              timeout=280)
        return done.returncode, done.stdout, done.stderr

    def assert_clean(self, *streams):
        for stream in streams:
            text = stream.decode("utf-8")  # raises what is none
            for c in text:
                self.assertFalse((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160,
                                 f"control character {ord(c):#x} in {text!r}")

    def headers(self):
        self.good(f"scanner convert {self.scanner} ring.hscan")
        self.good(f"scanner convert {self.scanner} ring.geom")
        for name in ("ring.hscan", "ring.geom"):
            text = Path(name).read_bytes().replace(b"small ring", self.NAME)
            self.assertIn(self.NAME, text)
            Path("bad_" + name).write_bytes(text)
        os.rename("ring.lut", "bad_ring.lut")
        escaped = "".join(f"\\x{b:02x}" for b in self.NAME)
        self.write("bad_ring.yaml", SMALL_RING.replace("small ring", f'"{escaped}"') + f'source: ["{escaped}"]\n')
        return ["bad_ring.hscan", "bad_ring.geom", "bad_ring.yaml"]

    def test_names(self):
        for name in self.headers():
            for words in ([f"scanner show {name}"], [f"scanner show {name} --json"], [f"scanner check {name}"],
                          [f"scanner check {name} --json"], [f"scanner convert {name} copy.yaml"],
                          [f"scanner convert {name} copy.hscan"],
                          [f"sensitivity --scanner {name} {GRID} --backend cpu -o s.hv"]):
                code, out, errors = self.bytes_of(*words)
                self.assertEqual(code, 0, (words, errors))
                self.assert_clean(out, errors)
                if "--json" in words:
                    json.loads(out)
            for made in ("copy.yaml", "copy.hscan"):
                self.assert_clean(Path(made).read_bytes())
            self.good("scanner show copy.yaml")

    def test_names_in_errors(self):
        for name in self.headers()[:2]:
            text = Path(name).read_bytes()
            Path(name).write_bytes(text.replace(b"scanner radius", self.NAME))
            code, out, errors = self.bytes_of(f"scanner show {name}")
            self.assertIn(code, (0, 3))
            self.assert_clean(out, errors)

    def test_names_of_files(self):
        for name in (b"\x1b[31m.yaml", b"\xff\xfe.yaml"):
            with open(name, "w", encoding="ascii") as file:
                file.write(SMALL_RING)
            code, out, errors = self.bytes_of("sensitivity --scanner", name, f"{GRID} --backend cpu --json -o",
                                              name + b".nii")
            self.assertEqual(code, 0, errors)
            self.assert_clean(out, errors)
            json.loads(out)
            code, out, errors = self.bytes_of("scanner show", b"no" + name)
            self.assertEqual(code, 3)
            self.assert_clean(out, errors)


class Cuts(ProgramTest):
    """A text header that was cut says so, or says the same as before."""
    PIECES = 19

    def assert_cuts_show(self, name, *verb):
        whole = Path(name).read_bytes()
        good = self.good(*verb)
        for k in range(1, self.PIECES):
            Path(name).write_bytes(whole[:len(whole) * k // self.PIECES])
            done = self.run_program(*verb)
            says = done.returncode == 3 or "copy it again" in done.stderr
            self.assertTrue(says or done.stdout == good.stdout, f"{name}, {k} of {self.PIECES}: "
                                                                f"{done.stdout}{done.stderr}")
        Path(name).write_bytes(whole)

    def test_scanners_of_castor(self):
        self.good(f"scanner convert {self.scanner} s.geom")
        self.assert_cuts_show("s.geom", "scanner", "show", "s.geom")
        self.good(f"scanner convert {self.scanner} s.hscan")
        self.assert_cuts_show("s.hscan", "scanner", "show", "s.hscan")

    def test_projection_data(self):
        self.write("ring.yaml", SMALL_RING + "detection_depth_mm: 3\n")
        self.expected_counts("y.hs")
        self.assert_cuts_show("y.hs", f"backproject {self.on_ring} {GRID} --data y.hs -o b.nii --json")
        self.assert_cuts_show("y.hs", "scanner", "show", "y.hs")

    def test_lines_lost(self):
        self.good(f"scanner convert {self.scanner} s.geom")
        lines = Path("s.geom").read_text().splitlines(keepends=True)
        good = self.good("scanner show s.geom").stdout
        for count in range(1, len(lines)):
            self.write("cut.geom", "".join(lines[:count]))
            done = self.run_program("scanner show cut.geom")
            self.assertTrue(done.returncode == 3 or "copy it again" in done.stderr or done.stdout == good, done.stderr)


class Secrets(ProgramTest):
    """Of a file outside of the header's folder nothing is shown that stands in it."""

    def header(self, name):
        self.expected_counts("y.hs")
        text = Path("y.hs").read_text()
        text = text.replace("end scanner parameters", "Scanner geometry := Generic\nname of crystal map := " + name +
                            "\nend scanner parameters")
        os.makedirs("in", exist_ok=True)
        os.replace("y.s", "in/y.s")
        self.write("in/y.hs", text)

    def assert_hidden(self, name):
        self.header(name)
        for command in ("scanner show in/y.hs", f"backproject {self.on_ring} {GRID} --data in/y.hs -o b.nii"):
            done = self.ends(3, "outside of that file's folder", command)
            self.assertNotIn("SECRET", done.stdout + done.stderr)

    def test_outside(self):
        self.write("secret", NEEDLE + "\n")
        self.assert_hidden(str(self.folder / "secret"))
        self.assert_hidden("../secret")
        os.symlink("../secret", "in/link")
        self.assert_hidden("link")

    def test_beside(self):
        self.header("map")
        self.write("in/map", NEEDLE + "\n")
        self.refuse(3, ["in/map:1", "SECRET"], "scanner show in/y.hs")

    def test_missing(self):
        self.header("/no/such/map")
        self.refuse(3, ["/no/such/map", "No such file"], "scanner show in/y.hs")

    def test_scanner_geometry(self):
        """STIR's own key lists the words; without them it means the same."""
        for key in ("Scanner geometry", "Scanner geometry (BlocksOnCylindrical/Cylindrical/Generic)"):
            self.header("map")
            self.write("in/map", "0 0 1 2 3\n")
            text = Path("in/y.hs").read_text().replace("Scanner geometry", key)
            self.write("in/y.hs", text)
            data = f"{self.on_ring} {GRID} --data in/y.hs -o b.nii"
            self.refuse(3, ["in/map:1", "no crystal of scanner"], f"backproject {data}")
            self.write("in/y.hs", text.replace(":= Generic", ":= Spherical"))
            self.refuse(3, ["Spherical", "Cylindrical"], f"backproject {data}")


class Memory(ProgramTest):
    """Where there is no memory that is what is said, by exit code 1."""

    @unittest.skipIf(IS_SANITIZED, "addresses are not to be limited")
    def test_yaml(self):
        lines = "".join(f'- "of page {k}"\n' for k in range(150000))
        path = self.write("long.yaml", SMALL_RING + "source:\n" + lines)
        codes = set()
        least = 56  # that the program itself needs is more with other libraries
        while self.run_program("--version", **within(least)).returncode == 127 and least < 4096:
            least += 12
        for mebibytes in range(least, least + 264, 12):
            done = self.run_program(f"scanner show {path}", **within(mebibytes))
            codes.add(done.returncode)
            if done.returncode == 1:
                self.assertIn("no memory", done.stderr)
        self.assertIn(1, codes)
        self.assertLessEqual(codes, {0, 1, 127}, "127: the system cannot even start it")

    @unittest.skipIf(IS_SANITIZED, "preloaded libraries come before the sanitizer's")
    def test_a_library_that_leaves(self):
        """HDF5's exit code is none of ours, and no output is left."""
        env = dict(os.environ, LD_PRELOAD=preloadable(os.environ["LORASTER_LEAVE"], self.addCleanup))
        self.ends(1, "loraster: error: a library has ended the program",
                  f"simulate {self.on_ring} {GRID} --phantom point --counts 50 -o y.h5", env=env)
        self.assertFalse(os.path.exists("y.h5"))


main({"bounds": Bounds, "endless": Endless, "texts": Texts, "cuts": Cuts, "secrets": Secrets, "memory": Memory})
