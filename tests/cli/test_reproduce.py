#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands that reproduce papers, at a size of seconds: they run through, go on where they stopped, and say what
they lack."""
import importlib.util, json, os, shutil, subprocess, sys

from program import HANG_S, ProgramTest, main, read_png, split

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
PICTURES = [f"figure{n}.png" for n in range(5, 11)] + ["caches5.png"]


class Script(ProgramTest):
    """A script of tools/reproduce, with its own options for a size that tests have time for."""
    NAME = SIZE = ""

    def script(self, *arguments, python=sys.executable):
        script = str(self.source_root / f"tools/reproduce/{self.NAME}.sh")
        options = split((f"--out out --size {self.SIZE}", *arguments))
        return subprocess.run([script, "--program", self.program, *options], env={**os.environ, "PYTHON": python},
                              text=True, capture_output=True, timeout=HANG_S)

    def goes_through(self, *arguments):
        """What it prints, with its figures where they can be drawn; shown as skipped by tools/test.sh where not."""
        if not HAS_MATPLOTLIB:
            print(f"skipped: the figures of tools/reproduce/{self.NAME}.sh: no python3-matplotlib")
        done = self.script(*arguments, *([] if HAS_MATPLOTLIB else ["--no-figures"]))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def are_there(self, names, figures):
        for name in [*names, *(figures if HAS_MATPLOTLIB else [])]:
            self.assertGreater(os.path.getsize("out/" + name), 100, name)

    def are_as_in_docs(self, alike, other):
        """What is drawn is what docs shows: pixel by pixel, but for a few that another machine's fonts or sums change;
        another picture of the same script is not."""
        if not HAS_MATPLOTLIB:
            return
        from matplotlib import __version__ as version
        drawn_by = f"Matplotlib version{version}".encode()
        if any(drawn_by not in self.in_docs(number).read_bytes() for number in alike):
            print(f"skipped: pictures beside those of docs, which another matplotlib than {version} has drawn")
            return
        for number in alike:
            self.assertLess(self.apart(number, number), 0.002, number)
        self.assertGreater(self.apart(other, alike[0]), 0.05, other)

    def in_docs(self, number):
        return self.source_root / f"docs/pictures/reproduce-{self.NAME}-{number}.png"

    def apart(self, number, of_docs):
        """The share of pixels that differ by more than a twentieth; 1 where sizes differ."""
        from matplotlib.image import imread
        drawn = imread(f"out/figure{number}.png")[..., :3]
        shown = imread(self.in_docs(of_docs))[..., :3]
        return (abs(drawn - shown).max(-1) > 0.05).mean() if drawn.shape == shown.shape else 1.0

    def fails(self, code, words, *arguments, **options):
        done = self.script(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        return done

    def names_what_is_missing(self, *cases):
        bare = self.write("bare", "#!/bin/sh\nexit 1\n")
        os.chmod(bare, 0o755)
        self.fails(2, ["python3-numpy"], python=bare)
        for arguments, words in (("--program no-such", "no program"), ("--count 5", "no option --count"), *cases):
            self.fails(2, [words], arguments)


class Direct(Script):
    NAME, SIZE = "direct", "tiny --backend cpu --fft-iterations 1"

    def test_it_runs_through_and_goes_on(self):
        said = self.goes_through()
        for what in ("contrast recovery, variant3 - invariant", "figure 6, back",
                     "contrast recovery, FFT - invariant, iteration 1", "contrast recoveries are not judged"):
            self.assertIn(what, said)
        self.are_there(["report.txt", "curves.json", "variant2.iter2.npy", "tables-variant1.png"], PICTURES)
        self.are_as_in_docs([8], 9)
        for name in ("variant3.npy", "figure6-back.npy"):
            os.remove("out/" + name)
        again = self.script("--no-figures")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        redone = [line for line in again.stdout.splitlines() if line.startswith("==") and not line.endswith("is there")]
        self.assertEqual(redone[:-1], ["== RAMLA, variant3", "== point sources, figure6-back"])
        self.assertEqual(*(text[text.index("\nquantity"):text.index("contrast recoveries")] for
                           text in (said, again.stdout)))
        self.fails(2, ["another experiment"], "--no-figures --counts 30000")

    def test_what_is_missing_is_named(self):
        self.names_what_is_missing(("--size huge", "small, paper and tiny"), ("--truth sharp", "variant3"),
                                   ("--fft-iterations 3", "from 1 to the 2 iterations"))


class Cluster(Script):
    NAME, SIZE = "cluster", "small --iterations 2"

    def test_what_is_rasterised_is_what_the_paper_says(self):
        """The script compares with the paper's formulas, and fails where they differ."""
        said = self.goes_through()
        self.assertEqual(said.count(" holds\n"), 6, said)
        self.assertNotIn("does not hold", said)
        self.are_there(["report.txt", "image.nii", "figure7.png", "voxel0-ring/contact_sheet.png"],
                       ["figure5.png", "figure8.png", "figure9.png"])
        self.are_as_in_docs([8, 9], 5)
        for picture, least in (("out/figure7.png", 0.05), (self.source_root / "docs/pictures/reproduce-cluster-7.png",
                                                           0.2)):
            self.assertGreater(self.share_of_volume(picture), least, picture)
        self.damage_is_seen()
        self.fails(2, ["another experiment"], "--no-figures --counts 5")

    def share_of_volume(self, path):
        """Pixels between the panels that are shaded: a dialog is even, and the letters on it have sharp edges."""
        _, _, rows = read_png(path)
        reds = [row[3 * 290:3 * 660:3] for row in rows[:560]]
        return sum(a > 30 and 0 < abs(a - b) < 8 for row in reds for a, b in zip(row, row[2:])) / (560 * 370)

    def damage_is_seen(self):
        """A tenth too much absorption, and one voxel's window in the place of another's."""
        import numpy
        name = "out/voxel1-sphere/module_0.npy"
        window = numpy.load(name)
        window[..., 3] *= 0.9
        numpy.save(name, window)
        shutil.rmtree("out/voxel2-pair")
        shutil.copytree("out/voxel1-pair", "out/voxel2-pair")
        self.fails(1, [f"the paper's formulas say otherwise: {what}" for what in (
            "figure 8, lines that end in another crystal", "figure 9, geometry", "figure 9, absorption")],
                   "--no-figures")

    def test_what_is_missing_is_named(self):
        self.names_what_is_missing(("--size huge", "small and paper"), ("--voxels 7", "even"))


class Listmode(Script):
    NAME, SIZE = "listmode", "tiny"

    def test_two_backends_have_one_image(self):
        """The script compares images, and fails where they differ."""
        said = self.goes_through("--backend native --times yes")
        self.assertEqual(said.count("cpu and native"), 4)
        self.assertIn("one thread over it", said)
        self.are_there(["report.txt", "timeless-2.npy", "tables.md"],
                       ["figure3.png", "figure7.png", "figure8.png", "figure9.png"])
        self.randoms_are_as_many_as_expected()
        self.damage_is_seen()

    def randoms_are_as_many_as_expected(self):
        """Those that were joined between modules in coincidence beside the sum over LORs, within five deviations."""
        import h5py
        import numpy
        with open("out/body-1.json", encoding="utf-8") as file:
            events = json.load(file)["events"]
        joined = numpy.load("out/singles.npy").sum(dtype=float) ** 2 / 2  # as many as trues, all of which are used
        with h5py.File("out/randoms.h5") as file:
            expected = file["lor/values"][()].sum(dtype=float)
        used = events["prompts"] - events["not_in_coincidence"] - joined
        self.assertLess(abs(used - expected), 5 * expected ** 0.5)

    def damage_is_seen(self):
        """Of the mouse's last image, a voxel that is half as high."""
        import numpy
        name = "out/mouse-2.iter3.npy"
        image = numpy.load(name)
        image[numpy.unravel_index(image.argmax(), image.shape)] *= 0.5
        numpy.save(name, image)
        done = self.fails(1, ["mouse: the two backends' images are farther apart than 0.1 %"],
                          "--backend native --no-figures")
        self.assertNotIn("rods: the two", done.stderr)

    def test_what_is_missing_is_named(self):
        for arguments, words in (("--size huge", "small, paper and tiny"), ("--events 5", "no option --events")):
            self.fails(2, [words], arguments)


class All(Script):
    NAME, SIZE = "all", "small"

    def test_what_is_missing_is_named(self):
        self.names_what_is_missing(("--size huge", "small and paper"))


main({"all": All, "direct": Direct, "cluster": Cluster, "listmode": Listmode})
