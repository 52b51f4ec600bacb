#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Black-box tests of the pictures of render."""
import json
import math
import os
import random
import re
import resource
import shutil
import struct
from pathlib import Path

from pictures import count_ink, read_png
from program import CPU, GRID, SMALL_RING, ProgramTest, main, read_rows, write_nifti

# Nine by nine crystals of the Penn scanner, face to face and at 150 degrees.
OPPOSED = """\
name: opposed
modules:
  - {center_mm: [0, 465, 0], u: [1, 0, 0], v: [0, 0, 1], crystals: [9, 9], pitch_mm: [4.3, 4.3],
     face_mm: [FACE, FACE], depth_mm: 30}
  - {center_mm: [CX, CY, 0], u: [UX, UY, 0], v: [0, 0, 1], crystals: [9, 9], pitch_mm: [4.3, 4.3],
     face_mm: [FACE, FACE], depth_mm: 30}
"""


def two_modules(face, degrees):
    """The second module stands `degrees` further around the axis than the first."""
    angle = math.radians(90 + degrees)
    text = OPPOSED.replace("FACE", str(face))
    for name, value in [("CX", 465 * math.cos(angle)), ("CY", 465 * math.sin(angle)), ("UX", -math.sin(angle)),
                        ("UY", math.cos(angle))]:
        text = text.replace(name, repr(value))
    return text


def read_npy(path):
    """(shape, values) of a float32 array."""
    raw = Path(path).read_bytes()
    assert raw[:8] == b"\x93NUMPY\x01\x00"
    length = int.from_bytes(raw[8:10], "little")
    header = raw[10:10 + length].decode()
    assert "'<f4'" in header, header
    shape = tuple(int(n) for n in re.search(r"\(([^)]*)\)", header).group(1).split(",") if n)
    return shape, memoryview(raw[10 + length:]).cast("f")


def png_size(path):
    return struct.unpack(">2I", Path(path).read_bytes()[16:24])


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
        for module in found["modules"]:
            for name in (f"module_{module}.npy", f"module_{module}_colour.png", f"module_{module}_weight.png"):
                self.assertIn(name, names)
        self.assertIn("contact_sheet.png", names)
        for name in names:
            if name.endswith(".png"):
                self.assertEqual((self.folder / "p" / name).read_bytes()[:4], b"\x89PNG")

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
        found = self.json(f"render --scanner {narrow} {CPU} --at 0,0,0 -o p")
        self.assertEqual(len(found["modules"]), 16)
        header = (self.folder / "p" / "contact_sheet.png").read_bytes()[:24]
        captions = 6 * len("module 1: crystals met" + "module 1: weight") - 2
        self.assertGreater(int.from_bytes(header[16:20], "big"), 3 * captions)

    def test_every_machine_draws(self):
        """auto takes the projector's shaders, whatever else is faster here; cpu without OpenGL."""
        found = self.json(f"render --scanner {self.scanner} --at 0,0,0 -o p")
        wanted = "raster" if self.has_opengl() else "cpu"
        self.assertEqual(found["operator"]["backend"], wanted)
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

    def test_raster_is_the_matrix(self):
        """The pictures are the rows that another backend computes: which crystals, but for lines that pass an edge at
        less than 1e-4 of the pitch, and what they carry, to 1e-5."""
        self.need_opengl()
        for number, at in enumerate(("1.13,2.27,-1.41", "-7.91,3.03,5.77")):
            found, _, pixels = self.draw(f"p{number}", "--rays 5", at=at)
            self.assertEqual(found["operator"]["backend"], "raster")
            sums = {}
            for module, image in pixels.items():
                for k, (other, r, s, weight, _) in enumerate(image):
                    if weight > 0:
                        crystal = (module, k % 20 // 5, k // 20 // 5)
                        pair = tuple(sorted([crystal, (int(other), int(r), int(s))]))
                        sums[pair] = sums.get(pair, 0.0) + weight
            self.good(f"matrix {self.on_ring} --mode sampled --rays 5 --at={at} -o m.tsv")
            row = {tuple(sorted([lor[:3], lor[3:]])): value for lor, value in read_rows("m.tsv")[0].items()}
            free = self.free_of_edges([float(x) for x in at.split(",")], 5, row)
            self.assertGreater(len(free), 0.9 * len(row))
            self.assertEqual({pair for pair in sums if pair in free}, free)
            self.assertFalse(set(sums) - set(row) - self.near_edges)
            for pair in free:
                self.assertLess(abs(sums[pair] / row[pair] - 1), 1e-5, pair)

    def free_of_edges(self, at, rays, row):
        """Pairs of the row none of whose lines is near an edge, by the ring's own geometry: eight modules at 30 mm, 4 x
        4 crystals of 3.8 mm every 4 mm, hits on their front faces."""
        hit_mm, near = 30.0, set()
        places = {}
        for module in range(8):
            angle = 2 * math.pi * module / 8
            places[module] = ((math.cos(angle), math.sin(angle)), (-math.sin(angle), math.cos(angle)))
        for m in range(8):
            (nx, ny), (ux, uy) = places[m]
            for k in range((4 * rays) ** 2):
                x, y = k % (4 * rays), k // (4 * rays)
                u, v = ((c // rays - 1.5) * 4 + ((c % rays + 0.5) / rays - 0.5) * 3.8 for c in (x, y))
                ray = (hit_mm * nx + u * ux - at[0], hit_mm * ny + u * uy - at[1], v - at[2])
                for n in range(8):
                    (ox, oy), (wx, wy) = places[n]
                    slope = ox * ray[0] + oy * ray[1]
                    if n == m or slope == 0:
                        continue
                    t = (hit_mm - ox * at[0] - oy * at[1]) / slope
                    if t >= 0:
                        continue
                    across = (at[0] + t * ray[0]) * wx + (at[1] + t * ray[1]) * wy
                    cells = [across / 4 + 2, (at[2] + t * ray[2]) / 4 + 2]
                    if any(c < -1e-3 or c > 4.001 for c in cells):
                        continue
                    for c in cells:
                        place = c - math.floor(c)
                        if min(abs(place - edge) for edge in (0, 0.025, 0.975, 1)) < 1e-4:
                            r, s = (min(max(int(c), 0), 3) for c in cells)
                            for i in (-1, 0, 1):
                                for j in (-1, 0, 1):
                                    near.add(tuple(sorted([(m, x // rays, y // rays), (n, r + i, s + j)])))
        self.near_edges = near
        return set(row) - near

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
        lines = [line for line in said.splitlines() if line]
        self.assertEqual(len(lines), 1, said)
        for word in ["warning", "drawn by backend cpu", "raster cannot run here", *words]:
            self.assertIn(word, said)
        self.assertTrue(said.rstrip().endswith(found["operator"]["passed_over"]))
        self.draw("cpu", "--backend cpu")
        narrow = f"module_{found['modules'][0]}_colour.png"
        heights = [png_size(self.folder / folder / narrow)[1] for folder in ("stand_in", "cpu")]
        self.assertGreater(heights[0], heights[1])
        ink = [count_ink(read_png(self.folder / folder / "contact_sheet.png")[2], 36, 56) for
               folder in ("stand_in", "cpu")]
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

    def test_absorption(self):
        """The fragment shader's march through the mu-map, against cpu's."""
        self.need_opengl()
        write_nifti("mu.nii", (12, 12, 9), (4, 4, 4), [0.0096 if (k % 12 - 5.5) ** 2 + (k // 12 % 12 - 6.5) ** 2 < 20
                                                       else 0.002 for k in range(12 * 12 * 9)])
        mu = "--mu mu.nii --mu-steps 24"
        found, _, plain = self.draw("a")
        dense, _, raster = self.draw("b", mu)
        _, _, cpu = self.draw("c", f"{mu} --backend cpu")
        self.assertEqual(dense["operator"]["backend"], found["operator"]["backend"])
        self.assertEqual(dense["operator"]["mu_steps"], 24)
        compared = 0
        for module, image in raster.items():
            for one, two, free in zip(image, cpu[module], plain[module]):
                if one[:3] == two[:3] and two[3] > 0:
                    self.assertLess(abs(one[3] / two[3] - 1), 1e-5)
                    self.assertTrue(0.5 * free[3] < one[3] < 0.95 * free[3])
                    compared += 1
        self.assertGreater(compared, 500)

    def test_one_module(self):
        found = self.json(f"render {self.on_ring} --at 3,0,0 --module 4 -o p")
        self.assertEqual(found["modules"], [4])

    def test_refusals(self):
        self.refuse(2, "--at", f"render {self.on_ring} -o p")
        self.refuse(2, "--module", f"render {self.on_ring} --at 0,0,0 --module 8 -o p")
        self.refuse(2, "exact", f"render {self.on_ring} --mode exact --at 0,0,0 -o p")
        self.refuse(2, "--penetration", f"render {self.on_ring} --penetration --at 0,0,0 -o p")
        for backend in ("compute", "native"):
            if backend == "native" or self.has_opengl():
                self.refuse(2, "draws no correspondence images", f"render --scanner {self.scanner}",
                            f"--backend {backend} --at 0,0,0 -o p")
        self.refuse(1, "ring.yaml", f"render {self.on_ring} --at 0,0,0 -o ring.yaml")


class Compare(ProgramTest):
    """Sampled against exact."""

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

    def errors(self, scanner, degrees):
        """Means over points between the modules of L2, |error of the sum|, share and weight missed, of each R."""
        rays = (2, 4, 8, 16)
        rng = random.Random(1)
        points = []
        for _ in range(24):
            angle, t = math.radians(90 + degrees), rng.uniform(0.35, 0.65)
            x = t * 465 * math.cos(angle) + rng.uniform(-4, 4)
            y = (1 - t) * 465 + t * 465 * math.sin(angle) + rng.uniform(-4, 4)
            z = rng.uniform(-8, 8)
            found = self.compare(",".join(map(str, rays)), f"{x:.4f},{y:.4f},{z:.4f}", scanner=scanner)
            points.append([(s["relative_l2"], abs(s["sum_error"]), s["missed_elements"] / found["elements"],
                            s["missed_weight"]) for s in found["sampled"]])
        return rays, [[sum(column) / len(points) for column in zip(*steps)] for steps in zip(*points)]

    def test_law(self):
        """L2 of an element falls as 0.6 / R: at most 0.8 / R, halved (by 1.6 to 2.6) from R to 2 R. The error of the
        sum is at most 0.3 / R in the mean. At R = 4 the misses are 15 to 24 % of the elements and 1.5 to 2.7 % of their
        weight, over modules like these."""
        for face, degrees in ((4.3, 180), (4.0, 150)):
            name = self.write("two.yaml", two_modules(face, degrees))
            rays, steps = self.errors(name, degrees)
            for R, (l2, sum_error, _, _) in zip(rays, steps):
                self.assertLess(l2, 0.8 / R)
                self.assertLess(sum_error, 0.3 / R)
            self.assertTrue(0.15 < steps[1][2] < 0.24 and 0.015 < steps[1][3] < 0.027, steps[1])
            for before, after in zip(steps, steps[1:]):
                self.assertTrue(1.6 < before[0] / after[0] < 2.6, before[0] / after[0])

    def test_files(self):
        found = self.compare("1,4", "0.5,0,0")
        self.assertEqual(set(os.listdir("c")), {"compare.png", "lors.npy", "exact.npy", "sampled_R1.npy",
                                                "difference_R1.npy", "sampled_R4.npy", "difference_R4.npy"})
        self.assertEqual((self.folder / "c" / "compare.png").read_bytes()[:4], b"\x89PNG")
        self.assertEqual((found["operator"]["mode"], found["output"]), ("exact", "c"))

    def test_table(self):
        """A line for each R; the list may be left out."""
        for words, rays in ((["--compare 1,2,8"], [1, 2, 8]), (["--compare"], [4]), (["--compare --rays 3"], [3])):
            done = self.good(f"render {self.on_ring} --at 0.5,0,0", *words, "-o t")
            lines = done.stdout.splitlines()[2:]
            self.assertEqual([int(line.split()[0]) for line in lines], rays)

    def test_compute_agrees(self):
        """compute in float and cpu in double, on the same figures; the point is off every edge that could fall either
        way."""
        self.need_opengl()
        found = [self.json(f"render --scanner {self.scanner} --backend {name} --at 1.03,2.11,-1.37 --compare 4",
                           f"-o {name}") for name in ("cpu", "compute")]
        self.assertEqual((found[1]["operator"]["backend"], found[0]["module"]), ("compute", found[1]["module"]))
        self.assertLess(abs(found[1]["sum"] / found[0]["sum"] - 1), 1e-5)
        a, b = [f["sampled"][0] for f in found]
        for key in ("relative_l2", "sum_error", "largest_error", "missed_weight"):
            self.assertLess(abs(a[key] - b[key]), 1e-4, key)
        self.assertEqual([f["sampled"][0]["backend"] for f in found], ["cpu", "compute"])

    def test_sampled_by_the_shaders(self):
        """Without --backend sampled elements are raster's, and those of cpu."""
        self.need_opengl()
        found = [self.json(f"render --scanner {self.scanner} {more} --at 1.03,2.11,-1.37 --compare 4 -o c{len(more)}")
                 for more in ("", CPU)]
        self.assertEqual([f["sampled"][0]["backend"] for f in found], ["raster", "cpu"])
        a, b = [f["sampled"][0] for f in found]
        for key in ("relative_l2", "sum_error", "largest_error", "missed_weight"):
            self.assertLess(abs(a[key] - b[key]), 1e-4, key)

    def test_nothing_to_see(self):
        """A module that is never the farther one of a pair with a LOR there."""
        done = self.good(f"render {self.on_ring} --at 12,0,0 --module 0 --compare 2 -o c")
        self.assertIn("no LOR with primary module 0", done.stderr)
        self.assertFalse(os.path.exists("c"))

    def test_refusals(self):
        here = f"render {self.on_ring} --at 0,0,0 -o p"
        for text in ("0", "4,", "2,x", "-3", "1.5", ",", "1 2", "99999999999"):
            self.refuse(2, "--compare", f"{here} --compare={text}")
        self.refuse(2, "ascend", f"{here} --compare 4,2")
        self.refuse(2, "too many", f"{here} --compare", ",".join(map(str, range(1, 18))))
        self.refuse(2, "--mode", f"{here} --compare 2 --mode exact")
        self.refuse(2, "--penetration", f"{here} --compare 2 --penetration")
        self.refuse(2, ["--rays", "--compare"], f"{here} --compare 2 --rays 2")
        self.refuse(2, "--compare", f"{here} --voxel-mm 2")
        self.refuse(2, "positive", f"{here} --compare --voxel-mm 2,0,2")
        self.refuse(2, "modules 0 to 7", f"{here} --compare --module 8")
        self.refuse(2, "-o", f"render {self.on_ring} --at 0,0,0 --compare")
        self.refuse(2, "--at", f"render {self.on_ring} --compare -o p")
        self.refuse(1, "ring.yaml", f"render {self.on_ring} --at 0,0,0 --compare -o ring.yaml")


main({"render": Render, "compare": Compare})
