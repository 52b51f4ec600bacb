#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands of the documents work: each block of commands is run by a shell, and each block of Python by Python,
in a folder with the files that it takes for granted; the listing in C is the example that is built; commands within
sentences have verbs and options that the program knows."""
import functools, itertools, os, re, shlex, shutil, statistics, struct, subprocess, sys
from array import array
from pathlib import Path

from program import HANG_S, ProgramTest, main, read_nifti, ring_of

GUIDE = "docs/guide/"
# Sizes that a test has no time for, and what stands in for them.
SMALLER = {"144,144,48": "40,40,8", "40,40,8 --voxel-mm 4": "20,20,4 --voxel-mm 8", "32,32,8": "12,12,4", "32,32,16":
           "16,16,8", "40,40,24 --voxel-mm 2": "20,20,12 --voxel-mm 4", "40,40,24 \\\n    --voxel-mm 2":
           "20,20,12 --voxel-mm 4", "--like panels/truth.nii.gz": "--grid 20,20,12 --voxel-mm 4",
           "41,41,17": "21,21,9", "16,16,16 --voxel-mm 3": "4,4,4 --voxel-mm 12",
           "12,12,12 --voxel-mm 6": "4,4,4 --voxel-mm 18",
           "1,1,2.2": "2,2,4.4", "--rays 8": "--rays 2", "1,2,4,8,16": "1,2", "(8, 32, 32)": "(4, 12, 12)",
           "--like mouse/truth.nii.gz": "--grid 16,16,4 --voxel-mm 1.8,1.8,4.8 --samples 1",
           "--iterations 20": "--iterations 8", "--iterations 12": "--iterations 1 --store no",
           "--iterations 3 -o w": "--iterations 3 --sensitivity-lines 4000000 -o w",
           "--iterations 3 \\\n    -o image": "--iterations 1 --sensitivity-lines 200000 -o image",
           "modules: 18, rings: 3": "modules: 18, rings: 2", "modules: 27, rings: 2": "modules: 27, rings: 1",
           "1 2 3 4 5 6": "1 2", "--frames 2x30": "--frames 2x0.2", "range(1, 7)": "range(1, 3)",
           "loraster sample get clinical\nloraster direct":
           "mkdir -p clinical\ncp scan.petsird mu.nii.gz clinical\nloraster direct",
           "64,64,26 --voxel-mm 4": "16,16,7 --voxel-mm 16",
           "loraster sample get mouse\n": "test -d mouse || loraster sample get mouse\n"}
# Not the program's: tools/fresh.sh and tools/deb_root.sh run the scripts and the build, tests/install the compiler.
OTHERS = re.compile(r"^(\./)?tools/|^cc |^./a.out$|^cmake |^apt-get |^pip |^xargs ")
# A window would wait for a person.
SHELL = """set -euo pipefail
loraster() {
    if [ "$1" = view ] && [[ "$*" != *--no-window* ]]; then
        command loraster "$@" --no-window --script steps.txt
    else
        command loraster "$@"
    fi
}
"""
TOF_RING = ring_of("ring with time of flight", "radius_mm: 60, modules: 16, rings: 1",
                   "crystals: [5, 5], pitch_mm: [4, 4], face_mm: [3.9, 3.9], depth_mm: 12",
                   "tof: {resolution_ps: 300}", "coincidence: {field_of_view_mm: 80}")
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # of mpirun
PYTHON_NEEDS = "import h5py, numpy, scipy.sparse"


def is_of_the_module(block):
    """The Python module has tests of its documents among its own (python/tests)."""
    return re.search(r"^(import|from) loraster|pip install", block, re.M) is not None


@functools.cache
def has_what_python_needs():
    return subprocess.run([sys.executable, "-c", PYTHON_NEEDS], capture_output=True, check=False).returncode == 0


def blocks_of(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def commands_of(block):
    """The program's share of a block, as lines of a shell."""
    return "\n".join(line for line in block.replace("\\\n", " ").splitlines() if not OTHERS.match(line))


class Pages(ProgramTest):
    def setUp(self):
        super().setUp()
        os.symlink(self.program, "loraster")
        self.environment = dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}", **AS_ROOT)
        # An installed program has none of its own.
        folders = (Path(self.program).parent, self.source_root / "build" / "release")
        bench = [str(folder) for folder in folders if (folder / "loraster-bench").exists()]
        self.with_bench = dict(os.environ, **({"LORASTER_LIBEXEC": bench[0]} if bench else {}))

    def page(self, name):
        return (self.source_root / name).read_text()

    def make_list_mode(self):
        """scan.petsird: 400 pairs of a ring with time of flight."""
        ring = self.write("tof.yaml", TOF_RING)
        data = b"".join(struct.pack("<IfII", k, 20.0 * (k % 9 - 4), 7 * k % 200, (200 + 7 * k + 13 * (k % 5)) % 400) for
                        k in range(400))
        Path("list.Cdf").write_bytes(data)
        self.write("list.Cdh", "Data filename: list.Cdf\nNumber of events: 400\nData mode: list-mode\nData type: PET\n"
                               "Scanner name: ring\nTOF information flag: 1\nTOF resolution (ps): 300\n")
        self.good(f"events convert list.Cdh scan.petsird --scanner {ring}")

    def make_safir(self):
        data = self.source_root.parent / "shared" / "data" / "safir"
        for name in ("coincidencesLM.clm.safir", "DualRingPrototype_crystal_map.txt"):
            if (data / name).exists():
                os.symlink(data / name, name)
        return (data / "coincidencesLM.clm.safir").exists()

    @staticmethod
    def smaller(block):
        for large, small in SMALLER.items():
            block = block.replace(large, small)
        return block

    def run_words(self, words, block):
        done = subprocess.run(words, cwd=self.folder, text=True, env=self.environment, capture_output=True, check=False,
                              timeout=HANG_S)
        self.assertEqual(done.returncode, 0, f"{block}\n{done.stdout}{done.stderr}")

    def run_page(self, name, has_safir=False):
        count = 0
        for language, block in re.findall(r"^```(sh|python)\n(.*?)^```", self.page(name), re.M | re.S):
            block = self.smaller(block)
            if is_of_the_module(block):
                continue
            if language == "python":
                self.run_python(block)
            elif "safir" in block and not has_safir:
                print("skipped: SAFIR's list mode, which is not there")
            elif "mpirun" in block and not shutil.which("mpirun"):
                print("skipped: there is no mpirun")
            elif commands_of(block).strip():
                self.run_words(["bash", "-c", SHELL + commands_of(block)], block)
                count += 1
        self.assertGreater(count, 0, name)

    def is_whole(self, sample):
        """A sample that a page has made."""
        files = set(os.listdir(sample))
        self.assertLessEqual({"README.txt", "mu.nii.gz", "scanner.yaml", "truth.nii.gz"}, files)
        self.assertTrue({"counts.h5", "scan.petsird"} & files, files)
        text = Path(sample, "README.txt").read_text()
        self.assertIn("relative activity per voxel", text)
        stated = re.findall(r"^(\S+) +emissions per voxel of (\S+), (\S+) in the whole image$", text, re.M)
        self.assertEqual({name for _, name, _ in stated}, {"counts.h5", "scan.petsird"} & files)
        for truth, _, emissions in stated:
            self.assertAlmostEqual(sum(read_nifti(f"{sample}/{truth}")[3]) / float(emissions), 1, delta=1e-6)
        self.good(f"scanner check {sample}/scanner.yaml")

    def run_python(self, block):
        if has_what_python_needs():
            self.run_words([sys.executable, "-c", block], block)
        else:
            print("skipped: Python without numpy, scipy and h5py")


class Tutorial(Pages):
    def test_tutorial(self):
        """From an empty folder; every sample is what the page says of it."""
        for page in ("README", "tof", "compare", "matrix", "quantify", "cluster"):
            self.run_page(f"docs/tutorial/{page}.md")
            if page == "tof":
                self.check_the_smallest_sphere()
        for name in ("check.png", "pictures/contact_sheet.png", "mouse/scan.petsird", "image.png", "replicate.png",
                     "compare.png"):
            self.assertTrue((self.folder / name).exists(), name)
        self.is_whole("clinical")
        if os.environ.get("LORASTER_FULL"):
            self.good("sample get layers")
            self.is_whole("layers")
        self.refuse(2, ["there is no sample mice", "loraster sample list"], "sample get mice")


    def check_the_smallest_sphere(self):
        """The heights and noises that the page on times of flight states, up to fewer lines of the sensitivity."""
        sizes = (26, 64, 64)
        places = [[4 * (k - (size - 1) / 2) for k in range(size)] for size in sizes]
        points = list(itertools.product(*places))
        sphere = [(x - 57.2) ** 2 + y ** 2 + z ** 2 < 25 for z, y, x in points]
        water = [x ** 2 + y ** 2 < 1e4 and abs(abs(z) - 30) < 7 for z, y, x in points]
        rows = re.findall(r"^\| (?:truth|with.*|without) \| ([\d.]+) \| ([\d.]+) \|$", self.page("docs/tutorial/tof.md"),
                          re.M)
        for name, stated in zip(("truth", "with-tof", "without-tof"), rows, strict=True):
            values = array("f", Path(f"{name}.npy").read_bytes()[-4 * len(points):])
            background = [value for value, is_in in zip(values, water) if is_in]
            mean = statistics.fmean(background)
            height = statistics.fmean(value for value, is_in in zip(values, sphere) if is_in) / mean - 1
            self.assertAlmostEqual(height, float(stated[0]), delta=0.08, msg=name)
            self.assertAlmostEqual(statistics.pstdev(background) / mean, float(stated[1]), delta=0.04, msg=name)


class Documents(Pages):
    def test_readme(self):
        self.make_list_mode()
        self.write("steps.txt", "frames 2\n")
        self.run_page("README.md")
        for name in ("pictures/contact_sheet.png", "row.tsv", "image.nii.gz", "image.png"):
            self.assertTrue((self.folder / name).exists(), name)
        self.assertLess(len(self.page("README.md").split()), 800)
        self.is_whole("panels")

    def make_files(self):
        """What pages of the guide take from each other: mine.yaml, images, counts, list mode."""
        self.write("mine.yaml", next(re.finditer(r"<<'END'\n(.*?)^END", self.page(GUIDE + "scanner.md"), re.M |
                                                 re.S)).group(1))
        self.write("steps.txt", "frames 2\nsave loraster-view-1.yaml\n")
        self.make_list_mode()
        for name in ("activity.nii.gz", "mu.nii.gz"):
            self.image(name, [0.01] * 90)
        self.good("simulate --scanner mine.yaml --phantom point --grid 12,12,4 --voxel-mm 2 --counts 1000 -o y.h5")

    def test_guide(self):
        self.make_files()
        made = {path: path.read_bytes() for path in self.folder.iterdir() if not path.is_symlink()}
        has_safir = self.make_safir()
        pages = sorted((self.source_root / GUIDE).glob("*.md"))
        self.assertGreater(len(pages), 8)
        for page in pages:
            if not all(is_of_the_module(block) for block in blocks_of(page.read_text(), "sh")):
                with self.subTest(page=page.name):
                    self.run_page(GUIDE + page.name, has_safir)
                    for path, raw in made.items():
                        path.write_bytes(raw)
        self.assertTrue(set(made) <= set(self.folder.iterdir()))

    def test_lor_data(self):
        """The listing that makes LOR data makes what the program reads."""
        self.make_files()
        os.rename("y.h5", "template.h5")
        for block in blocks_of(self.page("docs/formats/lor-data.md"), "python"):
            self.run_python(block)
        if os.path.exists("y.h5"):
            self.good("backproject --scanner mine.yaml --data y.h5 --grid 12,12,4 --voxel-mm 2 -o b.nii")

    def test_matrix_market(self):
        """The listing for Octave and MATLAB, by Octave where it is."""
        block, = blocks_of(self.page(GUIDE + "matrix.md"), "octave")
        if subprocess.run(["which", "octave"], capture_output=True, check=False).returncode != 0:
            self.skipTest("there is no octave")
        self.make_files()
        self.good("matrix --scanner mine.yaml --grid 4,4,2 --voxel-mm 2 -o matrix.mtx")
        self.run_words(["octave", "--no-gui", "--eval", block + "\nassert(nnz(A) == n(3));"], block)

    def test_example(self):
        """The listing is the example; the example's image shows the rods."""
        listing, = blocks_of(self.page("docs/api/README.md"), "c")
        source = (self.source_root / "examples" / "first.c").read_text()
        self.assertEqual(source[source.index("#include"):], listing)
        example = os.environ["LORASTER_EXAMPLE"]
        done = subprocess.run([example], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              check=False, timeout=HANG_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        numbers = re.search(r"emits (\S+) photon.*photons of (\S+) of.* has (\S+): .* within 2 % of (\S+)\.$",
                            done.stdout, re.S | re.M)
        emitted, met, image, expected = (float(number) for number in numbers.groups())
        self.assertEqual(emitted, expected)
        self.assertLess(met, 0.5 * emitted)
        self.assertAlmostEqual(image, emitted, delta=0.02 * emitted)
        self.good("phantom derenzo --grid 20,20,4 --voxel-mm 1.9 -o true.nii")
        _, _, _, found = read_nifti("first.nii.gz")
        _, _, _, true = read_nifti("true.nii")
        mean = sum(true) / len(true), sum(found) / len(found)
        both = [sum((a - mean[0]) * (b - mean[1]) for a, b in zip(one, other)) for one,
                other in ((true, true), (true, found))]
        self.assertGreater(both[1] / (both[0] * sum((b - mean[1]) ** 2 for b in found)) ** 0.5, 0.9)

    def test_commands_in_sentences(self):
        known = {}
        for page in [*sorted(Path(self.source_root).glob("docs/**/*.md")), self.source_root / "README.md"]:
            for span in re.findall(r"(?<!`)`loraster ([a-z][^`]*)`", page.read_text()):
                self.check_command(page.name, span, known)
        self.assertGreater(len(known), 10)

    def check_command(self, page, command, known):
        words = shlex.split(command)
        verb = tuple(word for word in words[:2] if re.fullmatch("[a-z]+", word))
        for length in (2, 1):
            if verb[:length] not in known:
                done = self.run_program(*verb[:length], "--help", env=self.with_bench)
                known[verb[:length]] = done.stdout if done.returncode == 0 else ""
            if known[verb[:length]]:
                break
        text = known[verb[:length]]
        families = ("scanner", "events", "direct", "bench", "sample")
        self.assertTrue(text or verb[0] in families, f"{page}: there is no verb {' '.join(verb)}")
        for option in (word for word in words if word.startswith("--")):
            self.assertIn(option, text, f"{page}: loraster {command}")


main({"documents": Documents, "tutorial": Tutorial})
