#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Black-box tests of the pictures of render, and of what all pictures share: names of any kind, the same bytes in every
run, and machines without fonts."""
import json, math, os, random, re, resource, shutil
from pathlib import Path

from program import CPU, GRID, SMALL_RING, ProgramTest, main, png_size, read_png, read_rows

LONG = "a scanner whose name goes on and on, beyond what any picture has room for " * 20
NAMES = {"letters": "Łódź, κατασκευή, 東京, µPET ±0.5°", "long": LONG, "one word": "W" * 2000,
         "terminal": "\\e]0;owned\\x07\\e[31mred\\x85", "turned": "\\u202Ereversed\\u2066",
         "lines": "one\\ntwo\\r\\tthree"}


def two_modules(face, degrees):
    """Nine by nine crystals of the Penn scanner; the second module stands `degrees` further around the axis."""
    c, s = math.cos(math.radians(90 + degrees)), math.sin(math.radians(90 + degrees))
    rest = f"v: [0, 0, 1], crystals: [9, 9], pitch_mm: [4.3, 4.3], face_mm: [{face}, {face}], depth_mm: 30}}\n"
    return (f"name: opposed\nmodules:\n- {{center_mm: [0, 465, 0], u: [1, 0, 0], {rest}"
            f"- {{center_mm: [{465 * c!r}, {465 * s!r}, 0], u: [{-s!r}, {c!r}, 0], {rest}")


def read_npy(path):
    """(shape, values) of a float32 array."""
    raw = Path(path).read_bytes()
    assert raw[:8] == b"\x93NUMPY\x01\x00"
    length = int.from_bytes(raw[8:10], "little")
    header = raw[10:10 + length].decode()
    assert "'<f4'" in header, header
    shape = tuple(int(n) for n in re.search(r"\(([^)]*)\)", header).group(1).split(",") if n)
    return shape, memoryview(raw[10 + length:]).cast("f")


def count_ink(picture, top=0, bottom=None):
    """Pixels of those rows that are not white."""
    return sum(row[x:x + 3] != b"\xff\xff\xff" for row in picture[2][top:bottom] for x in range(0, len(row), 3))


class Render(ProgramTest):
    def test_pixels_sum_to_the_row(self):
        """Σ weights of all primary images = Σ of the matrix row."""
        found = self.json(f"render {self.on_ring} --rays 4 --at 1,2,-1 -o pictures")
        row = self.json(f"matrix {self.on_ring} --mode sampled --rays 4 --at 1,2,-1 -o r.tsv")
        total = 0.0
        arrays = sorted(Path("pictures").glob("module_*.npy"))
        self.assertEqual(len(arrays), len(found["modules"]))
        for path in arrays:
            shape, values = read_npy(path)
            self.assertEqual(shape, (16, 16, 5))
            weights = values[3::5]
            self.assertGreater(max(values[0::5]), -1)
            total += sum(weights)
            for pixel in range(256):
                module, r, s, weight, path_mm = values[5 * pixel:5 * pixel + 5]
                if module < 0:
                    self.assertEqual((r, s, weight), (-1, -1, 0))
                else:
                    self.assertIn(module, range(8))
                    self.assertIn(r, range(4))
                    self.assertIn(s, range(4))
                    self.assertGreater(path_mm, 20)
        self.assertLess(abs(total / row["sum"] - 1), 1e-5)

    def test_pictures(self):
        found = self.json(f"render {self.on_ring} --at 0,0,0 -o p")
        names = set(os.listdir("p"))
        said = self.good(f"render {self.on_ring} --at 0,0,0 -o p").stdout
        for name in names:
            self.assertIn(re.sub(r"module_\d+", "module_M", name), said)
        for module in found["modules"]:
            for name in (f"module_{module}.npy", f"module_{module}_colour.png", f"module_{module}_weight.png"):
                self.assertIn(name, names)
        self.assertIn("contact_sheet.png", names)
        for name in names:
            if name.endswith(".png"):
                self.assertGreater(min(png_size(f"p/{name}")), 0)

    def test_failure_leaves_nothing(self):
        """Neither a half folder nor, in one that is there, files of two runs; after kill -9 the next run is good."""
        words = f"render {self.on_ring} --at 0,0,0 -o p"
        full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))}
        self.refuse(1, "module_0_colour.png", words, **full)
        os.mkdir("p")
        self.write("p/module_0.npy", "mine\n")
        self.refuse(1, "module_0_colour.png", words, **full)
        self.assertEqual((os.listdir("p"), Path("p/module_0.npy").read_text()), (["module_0.npy"], "mine\n"))
        os.mkdir("p/.part")
        self.write("p/.part/module_99.npy", "of a killed run\n")
        self.good(words)
        self.assertFalse({".part", "module_99.npy"} & set(os.listdir("p")))
        self.assertNotEqual(Path("p/module_0.npy").read_bytes()[:4], b"mine")
        self.refuse(2, "threads", "demo --quick --threads 100000 -o d")

    def test_captions_of_narrow_pictures(self):
        """Columns of the contact sheet are as wide as their captions."""
        narrow = self.write("narrow.yaml",
                            SMALL_RING.replace("modules: 8", "modules: 32").replace("crystals: [4, 4], pitch_mm: [4, "
                                                                                    "4], face_mm: [3.8, 3.8]",
                                                                                    "crystals: [1, 16], pitch_mm: [2, "
                                                                                    "1], face_mm: [1.9, 0.9]"))
        self.assertEqual(len(self.json(f"render --scanner {narrow} {CPU} --at 0,0,0 -o p")["modules"]), 16)
        header = (self.folder / "p" / "contact_sheet.png").read_bytes()[:24]
        captions = 6 * len("module 1: crystals met" + "module 1: weight") - 2
        self.assertGreater(int.from_bytes(header[16:20], "big"), 3 * captions)

    def test_every_machine_draws(self):
        """auto takes the projector's shaders, whatever else is faster here; cpu without OpenGL."""
        found = self.json(f"render --scanner {self.scanner} --at 0,0,0 -o p")
        self.assertEqual(found["operator"]["backend"], "raster" if self.has_opengl() else "cpu")
        self.assertTrue(found["modules"])
        record = json.loads(Path("p/render.json").read_text())
        for key in ("scanner", "point_mm", "modules", "weights"):
            self.assertEqual(record[key], found[key])
        for key in ("backend", "device", "passed_over", "rays", "mu_steps"):
            self.assertEqual(record[key], found["operator"][key])

    def draw(self, folder, *more, at="1.13,2.27,-1.41", **options):
        """render's JSON, what it says on stderr, and {module: [pixels]}."""
        done = self.good(f"render --scanner {self.scanner} --at={at} --json", *more, f"-o {folder}", **options)
        pixels = {}
        for module in json.loads(done.stdout)["modules"]:
            _, values = read_npy(self.folder / folder / f"module_{module}.npy")
            pixels[module] = [tuple(values[k:k + 5]) for k in range(0, len(values), 5)]
        return json.loads(done.stdout), done.stderr, pixels

    def test_shaders_draw(self):
        """Pictures show what shaders/correspondence/raster/correspondence.frag says."""
        self.need_opengl()
        shaders = self.folder / "shaders"
        shutil.copytree(self.source_root / "shaders", shaders)
        text = (shaders / "correspondence/raster/correspondence.frag").read_text()
        line = "out_hit = uvec2(crystal, floatBitsToUint(weight));"
        self.assertIn(line, text)
        (shaders / "correspondence/raster/correspondence.frag").write_text(
            text.replace(line,  # twice the weight, which no compiler works into its products
                         "out_hit = uvec2(crystal, floatBitsToUint(weight) + (1u << 23));"))
        env = dict(os.environ, LORASTER_SHADER_DIR=str(shaders))
        _, _, plain = self.draw("a")
        _, _, twice = self.draw("b", env=env)
        _, _, other = self.draw("c", "--backend cpu", env=env)
        self.assertEqual(plain.keys(), twice.keys())
        for module, image in plain.items():
            self.assertGreater(sum(pixel[3] for pixel in image), 0)
            for one, two, three in zip(image, twice[module], other[module]):
                self.assertEqual(two[3], 2 * one[3])
                self.assertLessEqual(abs(three[3] - one[3]), 1e-5 * one[3])

    def check_stand_in(self, words, env):
        """cpu draws; one sentence says so on stderr and on every PNG: in more lines where these are narrow, with more
        letters on the sheet."""
        found, said, _ = self.draw("stand_in", env=env)
        self.assertEqual(found["operator"]["backend"], "cpu")
        self.assertEqual(len([line for line in said.splitlines() if line]), 1, said)
        for word in ["warning", "drawn by backend cpu", "raster cannot run here", *words]:
            self.assertIn(word, said)
        self.assertTrue(said.rstrip().endswith(found["operator"]["passed_over"]))
        self.draw("cpu", "--backend cpu")
        narrow = f"module_{found['modules'][0]}_colour.png"
        heights = [png_size(self.folder / folder / narrow)[1] for folder in ("stand_in", "cpu")]
        self.assertGreater(heights[0], heights[1])
        ink = [count_ink(read_png(f"{folder}/contact_sheet.png", 56), 36) for folder in ("stand_in", "cpu")]
        self.assertGreater(ink[1], 100)
        self.assertGreater(ink[0], 1.5 * ink[1])
        self.refuse(4 if "OpenGL" in words else 1, words, f"render --scanner {self.scanner} --backend raster",
                    "--at=0,0,0 -o none", env=env)

    def test_without_opengl(self):
        self.check_stand_in(["OpenGL", "install"], dict(os.environ, __EGL_VENDOR_LIBRARY_FILENAMES="/nonexistent"))

    def test_broken_shader(self):
        self.need_opengl()
        shaders = self.folder / "shaders"
        shutil.copytree(self.source_root / "shaders", shaders)
        (shaders / "correspondence/raster/correspondence.frag").write_text("#version 450 core\n#error broken\n")
        self.check_stand_in(["correspondence/raster/correspondence.frag", "broken"],
                            dict(os.environ, LORASTER_SHADER_DIR=str(shaders)))

    def test_broken_passes(self):
        """A reconstruction by raster runs the paper's passes: none of them may be broken."""
        self.need_opengl()
        shaders, data = self.folder / "shaders", self.expected_counts()
        env = dict(os.environ, LORASTER_SHADER_DIR=str(shaders))
        recon = (f"recon --scanner {self.scanner} --backend raster {GRID} --data {data} --iterations 1 --algorithm "
                 "mlem -o x.nii")
        shutil.copytree(self.source_root / "shaders", shaders)
        for name in ("correspondence.vert", "correspondence.frag", "scatter.vert", "value.frag", "cover.vert",
                     "gather.frag", "reduce.frag", "collect.vert"):
            with self.subTest(shader=name):
                whole = (shaders / "correspondence" / "raster" / name).read_text()
                (shaders / "correspondence" / "raster" / name).write_text("#version 450 core\n\n#error broken\n")
                self.refuse(1, [f"raster/{name}:3", "broken"], recon, env=env)
                (shaders / "correspondence" / "raster" / name).write_text(whole)
        self.assertIn("raster", self.good(recon, env=env).stderr)

    def test_one_module(self):
        self.assertEqual(self.json(f"render {self.on_ring} --at 3,0,0 --module 4 -o p")["modules"], [4])

    def test_refusals(self):
        self.refuse_each("render")
        for backend in ("compute", "native"):
            if backend == "native" or self.has_opengl():
                self.refuse(2, "draws no correspondence images", f"render --scanner {self.scanner}",
                            f"--backend {backend} --at 0,0,0 -o p")


class Compare(ProgramTest):
    def compare(self, rays, at, *more, scanner=None):
        where = f"--scanner {scanner} {CPU} --threads 1" if scanner else self.on_ring
        return self.json(f"render {where} --at={at} --compare {rays} -o c", *more)

    def array(self, name):
        return list(read_npy(self.folder / "c" / f"{name}.npy")[1])

    def test_figures_are_those_of_the_arrays(self):
        found = self.compare("2,5", "1,2,-1")
        exact = self.array("exact")
        shape, _ = read_npy(self.folder / "c" / "lors.npy")
        self.assertEqual((shape, found["elements"]), ((len(exact), 5), sum(value > 0 for value in exact)))
        self.assertAlmostEqual(found["sum"] / sum(exact), 1, places=6)
        self.assertEqual([s["rays"] for s in found["sampled"]], [2, 5])
        for step in found["sampled"]:
            sampled = self.array(f"sampled_R{step['rays']}")
            difference = self.array(f"difference_R{step['rays']}")
            for a, b, d in zip(sampled, exact, difference):
                self.assertLess(abs(a - b - d), 2e-7 * max(a, b))
            norm = math.hypot(*difference) / math.hypot(*exact)
            missed = [b for a, b in zip(sampled, exact) if a == 0]
            self.assertAlmostEqual(step["relative_l2"] / norm, 1, places=5)
            self.assertAlmostEqual(step["sum_error"], sum(sampled) / sum(exact) - 1, places=6)
            self.assertEqual(step["missed_elements"], len(missed))
            self.assertAlmostEqual(step["missed_weight"], sum(missed) / sum(exact), places=6)
            self.assertAlmostEqual(step["largest_error"], max(map(abs, difference)) / max(exact), places=6)
            self.assertAlmostEqual(step["law"], 0.6 / step["rays"], places=12)

    def elements(self, mode, *more):
        """{(module, p, q, module, r, s): probability} as matrix writes them."""
        self.good(f"matrix {self.on_ring} --mode {mode}", *more, "-o m.tsv")
        return read_rows("m.tsv")[0]

    def check_elements(self, found, elements, name):
        """The picture's module has the elements that matrix writes, and the crystals are right."""
        module = found["module"]
        _, lors = read_npy(self.folder / "c" / "lors.npy")
        for n, value in enumerate(self.array(name)):
            p, q, other, r, s = map(int, lors[5 * n:5 * n + 5])
            key = (module, p, q, other, r, s)
            key = key if module < other else key[3:] + key[:3]
            self.assertLessEqual(abs(value - elements.get(key, 0)), 1e-6 * value)

    def test_elements_are_those_of_the_matrix(self):
        at = "--at=1,2,-1"
        found = self.compare("3", "1,2,-1")
        exact, sampled = self.elements("exact", at), self.elements("sampled", at, "--rays 3")
        self.check_elements(found, exact, "exact")
        self.check_elements(found, sampled, "sampled_R3")
        everything = sum(exact.values())
        self.assertAlmostEqual(found["sampled"][0]["all_sum_error"], sum(sampled.values()) / everything - 1, places=6)
        # The modules share the elements out.
        parts = [self.compare("1", "1,2,-1", f"--module {m}")["sum"] for m in range(8)]
        self.assertAlmostEqual(sum(parts) / everything, 1, places=6)
        self.assertEqual(max(parts), found["sum"])

    def test_voxel(self):
        voxel = "--voxel-mm 3,3,4 --samples 2,1,2"
        found = self.compare("2", "1.5,3,-4", voxel)
        grid = f"--grid 1,1,1 --origin-mm=1.5,3,-4 {voxel}"
        self.check_elements(found, self.elements("exact", grid), "exact")
        self.check_elements(found, self.elements("sampled", f"--rays 2 {grid}"), "sampled_R2")
        self.assertEqual((found["grid"]["voxel_mm"], found["operator"]["samples"]), ([3, 3, 4], [2, 1, 2]))

    def test_misses(self):
        """Means over points between the modules at R = 4: 15 to 24 % of the elements are missed, and 1.5 to 2.7 % of
        their weight. tests/analytic/test_sampling.c has the errors of the others."""
        for face, degrees in ((4.3, 180), (4.0, 150)):
            name, rng, misses = self.write("two.yaml", two_modules(face, degrees)), random.Random(1), []
            for _ in range(24):
                angle, t = math.radians(90 + degrees), rng.uniform(0.35, 0.65)
                x = t * 465 * math.cos(angle) + rng.uniform(-4, 4)
                y = (1 - t) * 465 + t * 465 * math.sin(angle) + rng.uniform(-4, 4)
                found = self.compare("4", f"{x:.4f},{y:.4f},{rng.uniform(-8, 8):.4f}", scanner=name)
                step, = found["sampled"]
                misses.append((step["missed_elements"] / found["elements"], step["missed_weight"]))
            elements, weight = (sum(column) / 24 for column in zip(*misses))
            self.assertTrue(0.15 < elements < 0.24 and 0.015 < weight < 0.027, (elements, weight))

    def test_files(self):
        found = self.compare("1,4", "0.5,0,0")
        self.assertEqual(set(os.listdir("c")), {"compare.png", "lors.npy", "exact.npy", "sampled_R1.npy",
                                                "difference_R1.npy", "sampled_R4.npy", "difference_R4.npy"})
        self.assertGreater(min(png_size("c/compare.png")), 0)
        self.assertEqual((found["operator"]["mode"], found["output"]), ("exact", "c"))

    def test_table(self):
        for words, rays in ((["--compare 1,2,8"], [1, 2, 8]), (["--compare"], [4]), (["--compare --rays 3"], [3])):
            lines = self.good(f"render {self.on_ring} --at 0.5,0,0", *words, "-o t").stdout.splitlines()[2:-1]
            self.assertEqual([int(line.split()[0]) for line in lines], rays)

    def test_backends_agree(self):
        """compute in float and cpu in double, on the same figures, and without --backend raster's sampled elements; the
        point is off every edge that could fall either way."""
        self.need_opengl()
        found = [self.json(f"render --scanner {self.scanner} {more} --at 1.03,2.11,-1.37 --compare 4 -o c{len(more)}")
                 for more in (CPU, "--backend compute", "")]
        self.assertEqual([f["sampled"][0]["backend"] for f in found], ["cpu", "compute", "raster"])
        self.assertEqual(found[1]["operator"]["backend"], "compute")
        for other in found[1:]:
            self.assertEqual(other["module"], found[0]["module"])
            self.assertLess(abs(other["sum"] / found[0]["sum"] - 1), 1e-5)
            for key in ("relative_l2", "sum_error", "largest_error", "missed_weight"):
                self.assertLess(abs(other["sampled"][0][key] - found[0]["sampled"][0][key]), 1e-4, key)

    def test_nothing_to_see(self):
        """A module that is never the farther one of a pair with a LOR there."""
        self.ends(0, "no LOR with primary module 0", f"render {self.on_ring} --at 12,0,0 --module 0 --compare 2 -o c")
        self.assertFalse(os.path.exists("c"))

    def test_refusals(self):
        self.refuse_each("compared pictures", here=f"render {self.on_ring} --at 0,0,0 -o p")


class Pictures(ProgramTest):
    def named(self, name):
        return self.write("named.yaml", SMALL_RING.replace("name: small ring", f'name: "{name}"'))

    def check(self, scanner, **options):
        self.good(f"scanner check {scanner} --png c.png", **options)
        return read_png("c.png", 90)  # the title, and some of what is below it

    def test_names(self):
        """Every name has ink in the title, keeps to the page, and leaves what is below it alone."""
        width, height, plain = self.check(self.scanner)
        for kind, name in NAMES.items():
            found = self.check(self.named(name))
            self.assertEqual(found[:2], (width, height), kind)
            self.assertGreater(count_ink(found, 0, 34), 300, kind)
            self.assertEqual(found[2][36:], plain[36:], kind)
            self.assertEqual(sum(row[3 * (width - 20):] != b"\xff" * 60 for row in found[2][:34]), 0, kind)

    def test_panels(self):
        """Names of scanners head the slices of a reconstruction, and make the panel no wider than the slices do."""
        self.good(f"simulate {self.on_ring} --phantom spheres {GRID} --counts 3000 -o y.h5")
        sizes = {}
        for kind, name in {"short": "ring", **NAMES}.items():
            scanner = self.named(name)
            self.good(f"recon --scanner {scanner} {CPU} --threads 1 {GRID} --data y.h5 --iterations 1 -o x.nii --png "
                      "x.png")
            picture = read_png("x.png", 34)
            sizes[kind] = picture[:2]
            self.assertGreater(count_ink(picture), 150, kind)
            self.assertLess(picture[0], 2000)
        self.assertEqual(len(set(sizes.values())), 1, sizes)

    def test_same_bytes(self):
        for k in (0, 1):
            self.good(f"render {self.on_ring} --at 1,2,0 --compare 1,2 -o c{k}")
            self.good(f"render {self.on_ring} --at 1,2,0 -o r{k}")
        names = [name for name in os.listdir(self.folder / "r0") if name.endswith(".png")]
        self.assertGreater(len(names), 4)
        for name in names:
            self.assertEqual(*((self.folder / f"r{k}" / name).read_bytes() for k in (0, 1)), name)
        self.assertEqual(*((self.folder / f"c{k}" / "compare.png").read_bytes() for k in (0, 1)))


main({"render": Render, "compare": Compare, "pictures": Pictures})
