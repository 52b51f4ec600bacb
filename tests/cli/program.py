# SPDX-License-Identifier: Apache-2.0
"""What the tests of the program share: running it, small inputs, reading its files."""
import array, gzip, json, os, re, shlex, shutil, signal, struct, subprocess, sys, tempfile, time, unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools" / "gallery"))
from png import read as read_png  # noqa: E402,F401


def ring_of(name, ring, module, *more):
    """The YAML of a ring of equal modules."""
    return "\n".join([f"name: {name}", f"ring: {{{ring}}}", f"module: {{{module}}}", *more, ""])


SMALL_RING = ring_of("small ring", "radius_mm: 30, modules: 8, rings: 1", "crystals: [4, 4], pitch_mm: [4, 4], "
                     "face_mm: [3.8, 3.8], depth_mm: 10", "coincidence: {field_of_view_mm: 30}")
# For hangs only, of one run of the program; CTest's is a little longer (tests/CMakeLists.txt).
HANG_S = 1500
# Runs neither use nor leave a cache.
os.environ["LORASTER_CACHE"] = "off"
GRID = "--grid 6,5,3 --voxel-mm 3,3,4"
NUM_VOXELS = 6 * 5 * 3
CPU = "--backend cpu"


def read_nifti(path):
    """(size, voxel_mm, srow translations, values) of a float32 NIfTI-1 file."""
    raw = Path(path).read_bytes()
    if str(path).endswith(".gz"):
        raw = gzip.decompress(raw)
    dim = struct.unpack_from("<8h", raw, 40)
    datatype, = struct.unpack_from("<h", raw, 70)
    pixdim = struct.unpack_from("<8f", raw, 76)
    offset, = struct.unpack_from("<f", raw, 108)
    rows = struct.unpack_from("<12f", raw, 280)
    assert datatype == 16, f"datatype {datatype}, not float32"
    values = array.array("f")
    values.frombytes(raw[int(offset):int(offset) + 4 * dim[1] * dim[2] * dim[3]])
    return dim[1:4], pixdim[1:4], (rows[3], rows[7], rows[11]), values


def write_nifti(path, size, voxel_mm, values, datatype=16):
    """A float32 NIfTI-1 image centred on the origin."""
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, *size, 1, 1, 1, 1)
    struct.pack_into("<2h", header, 70, datatype, 32)
    struct.pack_into("<8f", header, 76, 1, *voxel_mm, 0, 0, 0, 0)
    struct.pack_into("<f", header, 108, 352)
    header[123] = 2  # mm
    struct.pack_into("<2h", header, 252, 0, 1)
    for axis in range(3):
        row = [0.0] * 4
        row[axis] = voxel_mm[axis]
        row[3] = -0.5 * (size[axis] - 1) * voxel_mm[axis]
        struct.pack_into("<4f", header, 280 + 16 * axis, *row)
    header[344:348] = b"n+1\0"
    data = bytes(header) + array.array("f", values).tobytes()
    Path(path).write_bytes(gzip.compress(data) if str(path).endswith(".gz") else data)


def png_size(path):
    """(width, height) of a PNG file."""
    raw = Path(path).read_bytes()
    assert raw[:8] == b"\x89PNG\r\n\x1a\n", path
    return struct.unpack(">2I", raw[16:24])


def write_npy(path, shape, values=()):
    """A float32 array; without values its head alone."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}".ljust(117) + "\n"
    Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
                           array.array("f", values).tobytes())


def read_rows(path):
    """Rows of a matrix as text: {row: {(module i, p, q, module j, r, s): probability}}."""
    rows = {}
    for line in Path(path).read_text().splitlines()[1:]:
        cells = line.split("\t")
        rows.setdefault(int(cells[0]), {})[tuple(map(int, cells[4:10]))] = float(cells[10])
    return rows


class OnTerminal:
    """A program whose stderr is a terminal: what it says there, as it says it."""
    def __init__(self, command, folder):
        self.own, other = os.openpty()
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=other)
        os.close(other)
        self.said = ""

    def read(self):
        try:
            part = os.read(self.own, 4096).decode(errors="replace")
        except OSError:  # nobody writes any more
            part = ""
        self.said += part
        return part

    def until(self, words):
        while words not in self.said:
            assert self.read(), f"ended before it said {words!r}: {self.said!r}"

    def end(self):
        while self.read():
            pass
        return self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.end()
        os.close(self.own)


# Fontconfig's own message about a file that it could not read. It quotes a buffer that nothing was
# written into: any bytes, ends of lines among them.
FONTCONFIG_ERRNO = re.compile(r"^Fontconfig error: failed reading config file: .*?\(errno \d+\)\n", re.M | re.S)


def preloadable(library, at_end):
    """A name of the library for LD_PRELOAD, which cannot hold blanks, as the build folder's path may. at_end: is given
    what removes it, and with what."""
    folder = Path(tempfile.mkdtemp(prefix="loraster-preload-"))
    at_end(shutil.rmtree, folder)
    link = folder / Path(library).name
    link.symlink_to(library)
    return str(link)


def preloading(library, **more):
    """An environment in which a library comes before those of the program, a sanitizer's among them."""
    return dict(os.environ, LD_PRELOAD=library, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") +
                ":verify_asan_link_order=0", **more)


def split(arguments):
    """The words of a command line. A string that begins with an option, and the first one, is cut at blanks; what
    stands alone is one word."""
    found = []
    for k, argument in enumerate(arguments):
        is_cut = isinstance(argument, str) and argument and (k == 0 or argument[0] == "-")
        found += argument.split() if is_cut else [argument if isinstance(argument, bytes) else str(argument)]
    return found


class ProgramTest(unittest.TestCase):
    """Each test works in a folder of its own, where the small ring is ring.yaml."""
    program = ""
    source_root = Path()

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="loraster-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        self.scanner = self.write("ring.yaml", SMALL_RING)
        self.on_ring = f"--scanner {self.scanner} {CPU} --threads 1"

    def path(self, name):
        return str(self.folder / name)

    def write(self, name, text):
        Path(name).write_text(text)
        return name

    def image(self, name="x.nii.gz", values=None, size=(6, 5, 3), voxel_mm=(3, 3, 4)):
        count = size[0] * size[1] * size[2]
        write_nifti(name, size, voxel_mm, values or [1.0] * count)
        return name

    def run_program(self, *arguments, **options):
        """The finished process. It must not have been killed by a signal."""
        options.setdefault("cwd", self.folder)
        options.setdefault("timeout", HANG_S)
        done = subprocess.run([self.program, *split(arguments)], capture_output=True, text=True, errors="replace",
                              check=False, **options)
        self.assertGreaterEqual(done.returncode, 0, f"killed by a signal: {done.stderr}")
        done.stderr = FONTCONFIG_ERRNO.sub("", done.stderr)
        self.judge_characters(done.stdout + done.stderr)
        return done

    def judge_characters(self, text):
        self.assertEqual([line for line in text.splitlines() if "\ufffd" in line], [], "not UTF-8")

    def on_terminal(self, *arguments):
        """The running program, which tells a terminal how far it is."""
        running = OnTerminal([self.program, *split(arguments)], self.folder)
        self.addCleanup(running.stop)
        return running

    def interrupt(self, words, *arguments):
        """Stops a program by SIGINT once it has told these words."""
        running = self.on_terminal(*arguments)
        running.until(words)
        running.process.send_signal(signal.SIGINT)
        self.assertEqual(running.end(), 1, running.said)
        self.assertIn("stopped", running.said)
        self.assertNotIn("error:", running.said)

    def start(self, *arguments, **options):
        process = subprocess.Popen([self.program, *split(arguments)], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(process.kill)
        return process

    def stop_writing(self, number, name, *arguments):
        """Ends a run that writes a matrix by a signal once it has written a block; what it said. One that is over
        before this process has looked is done again."""
        part = Path(name + ".part")
        for _ in range(20):
            process = self.start(*arguments, f"-o {name}")
            while process.poll() is None and not (part.exists() and part.stat().st_size > 12e6):
                time.sleep(0.002)
            process.send_signal(number)
            said = process.communicate(timeout=HANG_S)[1]
            if process.returncode != 0 or "--resume" in arguments:
                break
            os.remove(name)
        self.assertEqual(process.returncode, 1 if number == signal.SIGINT else -number, said)
        self.assertFalse(os.path.exists(name))
        return said

    def ends(self, code, words, *arguments, **options):
        """The finished process, whose exit code is this and whose stderr has all words."""
        done = self.run_program(*arguments, **options)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}{done.stderr}")
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, done.stderr)
        return done

    def good(self, *arguments, **options):
        return self.ends(0, (), *arguments, **options)

    def json(self, *arguments, **options):
        done = self.good(*arguments, "--json", **options)
        self.assertEqual(done.stdout.count("\n"), 1, done.stdout)
        return json.loads(done.stdout)

    def table(self, *arguments):
        """Tables that tools/bench_table.py makes of files that bench has written."""
        done = subprocess.run([sys.executable, "-B", self.source_root / "tools/bench_table.py", *arguments],
                              cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refuse(self, code, words, *arguments, **options):
        """The program must end with `code`, one error sentence that has all `words`, nothing on stdout, and no file
        that was not there before."""
        before = set(os.listdir(self.folder))
        done = self.ends(code, words, *arguments, **options)
        errors = [line for line in done.stderr.split("\n") if "error:" in line]
        self.assertEqual(len(errors), 1, done.stderr)
        self.assertTrue(errors[0].startswith("loraster: error: "), errors[0])
        self.assertGreater(len(errors[0]), len("loraster: error: ") + 10, errors[0])
        self.assertEqual(done.stdout, "")
        self.assertEqual(set(os.listdir(self.folder)) - before, set(), "files were left behind")
        return done

    def cases(self, section, **given):
        """Lines of a section of cases.txt, cut at " | ". Names in braces stand for what is given, or for the usual."""
        given = {"on": self.on_ring, "scanner": self.scanner, "grid": GRID,
                 "recon": f"recon {self.on_ring} {GRID} -o x.nii", **given}
        text = Path(__file__).with_name("cases.txt").read_text()
        lines = text.split(f"\n[{section}]\n")[1].split("\n\n")[0].splitlines()
        return [line.format(**given).split(" | ") for line in lines]

    def refuse_each(self, section, **given):
        """Cases that are an exit code, a command, and words."""
        for code, command, *words in self.cases(section, **given):
            with self.subTest(command):
                self.refuse(int(code), words, *shlex.split(command))

    def real_data(self, name):
        """The path of a real input; where that is absent the test is skipped."""
        path = Path(os.environ.get("LORASTER_DATA", self.source_root / "../shared/data")).resolve() / name
        if not path.exists():
            self.skipTest(f"no {path}; set LORASTER_DATA to the folder of real inputs")
        return path

    def has_opengl(self):
        return any(device["usable"] for device in self.json("info")["devices"])

    def need_opengl(self):
        if not self.has_opengl():
            self.skipTest("no OpenGL device")

    def expected_counts(self, name="y.h5", counts=100000, *more):
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts {counts} -o {name}", *more)
        return name


def main(cases):
    """usage: PROGRAM SOURCE_ROOT TOPIC, or --list"""
    if len(sys.argv) != 4 or sys.argv[3] not in cases:
        sys.exit(f"usage: {sys.argv[0]} PROGRAM SOURCE_ROOT {'|'.join(cases)}")
    ProgramTest.program = str(Path(sys.argv[1]).resolve())
    ProgramTest.source_root = Path(sys.argv[2]).resolve()
    if "LORASTER_DATA" in os.environ:
        os.environ["LORASTER_DATA"] = str(Path(os.environ["LORASTER_DATA"]).resolve())
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(cases[sys.argv[3]])
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    if result.testsRun == 0:
        sys.exit("no test ran")
    for _, reason in result.skipped:
        print("skipped:", reason)
    if result.wasSuccessful() and len(result.skipped) == result.testsRun:
        sys.exit(77)
    sys.exit(0 if result.wasSuccessful() else 1)
