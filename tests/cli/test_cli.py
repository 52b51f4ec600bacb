#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Black-box tests of what all verbs share, and of info and scanner. See program.py for how a test runs the program, and
CMakeLists.txt for the other topics."""
import json, math, os, re, shutil, subprocess
from pathlib import Path

from program import GRID, NUM_VOXELS, SMALL_RING, ProgramTest, main, png_size

VERBS = ["info", "scanner list", "scanner show", "scanner check", "scanner convert", "render",
         "matrix", "matrix join", "matrix verify", "project", "backproject", "sensitivity", "factors", "simulate",
         "sample list", "sample get", "recon", "events show", "events convert", "bench correspondence", "view", "demo"]


class Plugins(ProgramTest):
    """Without the plugins, as on a machine without OpenGL and CUDA."""

    def setUp(self):
        super().setUp()
        self.without = dict(os.environ, LORASTER_PLUGINS=str(self.folder))

    def test_info(self):
        found = self.json("info", env=self.without)
        works = {trial["backend"]: trial["works"] for trial in found["backends"]}
        self.assertEqual(works, {"raster": False, "compute": False, "cpu": True, "native": True})
        lacks_gl = rf"^no OpenGL: the plugin lr_gl\.so is not in {self.folder}: .*LORASTER_PLUGINS"
        for trial in found["backends"]:
            if not trial["works"]:
                self.assertRegex(trial["reason"], lacks_gl)
        self.assertEqual([device["usable"] for device in found["devices"]], [False])
        self.assertRegex(found["devices"][0]["reason"], lacks_gl)
        self.assertRegex(found["direct"]["cuda"]["reason"], "^no CUDA: ")
        without = "was built without the viewer" in self.run_program("view", env=self.without).stderr
        self.assertEqual(found["viewer"]["works"], not without)
        self.ends(4, (), "info --backend compute", env=self.without)

    def test_reconstruction(self):
        on = f"--scanner two-opposed-modules {GRID}"
        self.good(f"simulate {on} --phantom point --counts 500 -o counts.h5")
        for name, environment in (("with.nii", os.environ), ("without.nii", self.without)):
            self.good(f"recon {on} --data counts.h5 --backend native --iterations 2 -o {name}", env=environment)
        self.assertEqual((self.folder / "with.nii").read_bytes(), (self.folder / "without.nii").read_bytes())

    def test_what_needs_them(self):
        on = f"--scanner {self.scanner} {GRID}"
        projects = f"project {on} --image {self.image()} -o y.h5 --backend"
        for words, plugin in (("view", "lr_viewer.so"), (f"{projects} compute", "lr_gl.so"),
                              (f"{projects} native", "lr_hdf5.so"),
                              (f"matrix {on} --backend native -o y.h5", "lr_hdf5.so")):
            self.ends(4, f"the plugin {plugin} is not in {self.folder}", words, env=self.without)
            self.assertEqual(list(self.folder.glob("*y.h5*")), [])

    def test_found_by_path(self):
        """Whatever the program is called by, its plugins lie beside its file."""
        os.symlink(self.program, "called")
        path = dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}")
        done = subprocess.run(["called", "info", "--json"], env=path, cwd=self.folder, check=True, capture_output=True,
                              text=True)
        reasons = [trial["reason"] or "" for trial in json.loads(done.stdout)["backends"]]
        self.assertNotIn("plugin", " ".join(reasons))

    def change(self, name, pattern, instead):
        built = (Path(self.program).parent / name).read_bytes()
        changed, count = re.subn(pattern, instead, built)
        self.assertGreater(count, 0, name)
        self.assertEqual(len(changed), len(built))
        (self.folder / name).write_bytes(changed)

    def refused(self, *words):
        return self.ends(4, (), *words, env=self.without).stderr

    def test_a_library_is_missing(self):
        self.write("lr_gl.so", "no library\n")
        self.assertRegex(self.refused("info --backend raster"), r"no OpenGL: .*lr_gl\.so: .*: install libegl")
        self.change("lr_gl.so", rb"libEGL\.so\.1", b"libEGX.so.1")
        self.assertRegex(self.refused("info --backend raster"),
                         r"no OpenGL: libEGX\.so\.1: cannot open .*: install .*libegl1")

    def test_another_build(self):
        """Neither another version nor another build of this one is taken, by whichever way it is found."""
        both = rb"(\d+\.\d+\.\d+), build ([0-9a-f]{12})"
        for instead in (rb"9.9.9, build \2", rb"\1, build " + b"z" * 12):
            self.change("lr_gl.so", both, instead)
            said = r"no OpenGL: .*lr_gl\.so.* is that of LORaster (9\.9\.9, build|.*zzzz).*, and this is LORaster "
            self.assertRegex(self.refused("info --backend compute"), said)
        viewer = Path(self.program).parent / "lr_viewer.so"
        shutil.copy(viewer, self.folder)
        window = "view --no-window --bench-frames 1"
        self.assertRegex(self.refused(window), r"no viewer: .*another that it needs, is that of .*zzzz")
        shutil.copy(viewer.with_name("lr_gl.so"), self.folder)
        self.change("lr_viewer.so", both, rb"9.9.9, build \2")
        self.assertRegex(self.refused(window), r"no viewer: .*lr_viewer\.so.* LORaster 9\.9\.9,")

    def test_no_current_folder(self):
        self.write("lr_gl.so", "no library\n")
        for named in (".", "plugins", "../plugins"):
            told = [f"not looked for in {named}, which is no whole path", "set LORASTER_PLUGINS to the whole path"]
            self.ends(4, told, "info --backend raster", env=dict(os.environ, LORASTER_PLUGINS=named))
        for environment in (dict(os.environ, LORASTER_PLUGINS=""), os.environ):
            reasons = [trial["reason"] or "" for trial in self.json("info", env=environment)["backends"]]
            self.assertNotIn("lr_gl.so", " ".join(reasons))

    def test_another_owner(self):
        """Beside the program, a plugin of whoever else may write there is not taken."""
        if os.geteuid() != 0:
            self.skipTest("root alone gives files away")
        shutil.copy(self.program, self.folder / "loraster")
        plugin = self.folder / self.write("lr_gl.so", "no library\n")
        environment = {name: value for name, value in os.environ.items() if name != "LORASTER_PLUGINS"}
        for owner, is_taken in ((0, True), (4321, False)):
            os.chown(plugin, owner, owner)
            done = subprocess.run([self.folder / "loraster", "info", "--json"], env=environment, cwd=self.folder,
                                  capture_output=True, text=True, check=True)
            self.assertEqual(str(plugin) in done.stdout, is_taken, done.stdout)


class Usage(ProgramTest):
    def test_help_lists_verbs(self):
        text = self.good("--help").stdout
        for verb in VERBS:
            self.assertRegex(text, rf"(?m)^  {verb} ")

    def test_help_of_each_verb_has_example(self):
        for verb in VERBS:
            text = self.good(*verb.split(), "--help").stdout
            for words in (f"usage: loraster {verb}", f"example\n  loraster {verb}", "--json"):
                self.assertIn(words, text)

    def test_examples_parse(self):
        for verb in VERBS:
            text = self.good(*verb.split(), "--help").stdout
            for word in text[text.index("example\n"):].split()[1:]:
                if word.startswith("-") and not re.match(r"-\d", word):
                    self.assertRegex(text, rf"(?m)^  {word} ")

    def test_version(self):
        self.assertRegex(self.good("--version").stdout, r"^loraster \d+\.\d+\.\d+\n$")

    def test_words(self):
        self.refuse_each("words")

    def test_equals_form(self):
        one = self.json("sensitivity", self.on_ring, GRID, "-o", "a.nii")
        two = self.json("sensitivity", self.on_ring, "--grid=6,5,3", "--voxel-mm=3,3,4", "-o", "b.nii")
        self.assertEqual(one["sum"], two["sum"])

    def test_numbers_are_strict(self):
        self.refuse_each("numbers", sensitivity=f"sensitivity --scanner {self.scanner} -o s.nii")

    def test_required(self):
        self.refuse_each("required")
        os.mkdir("s.nii")
        self.refuse(1, "folder", f"sensitivity {self.on_ring} {GRID} -o s.nii")

    def test_silent_in_a_pipe(self):
        done = self.good("sensitivity", self.on_ring, GRID, "-o", "s.nii", "--quiet")
        self.assertEqual(done.stderr, "")
        done = self.good("sensitivity", self.on_ring, GRID, "-o", "s.nii")
        self.assertNotIn("\r", done.stderr)
        self.assertNotIn("%", done.stderr)


class Scanner(ProgramTest):
    def test_list(self):
        names = [s["preset"] for s in self.json("scanner list")["scanners"]]
        self.assertGreaterEqual(len(names), 13)
        for name in ["ge-explore-vista-dr", "safir-dual-ring-prototype"]:
            self.assertIn(name, names)
        lines = self.good("scanner list").stdout.splitlines()
        self.assertEqual(lines[0].split()[:3], ["preset", "crystals", "LORs"])
        self.assertEqual([line.split()[0] for line in lines[1:]], names)

    def test_list_agrees_with_show(self):
        for entry in self.json("scanner list")["scanners"]:
            shown = self.json("scanner show", entry["preset"])
            for key in ["name", "num_modules", "num_crystals", "num_lors", "tof_resolution_ps"]:
                self.assertEqual(entry[key], shown[key], f"{entry['preset']}: {key}")
            low, high = shown["axial_mm"]
            self.assertAlmostEqual(entry["axial_length_mm"], high - low, places=9)
            self.assertLessEqual(entry["radius_mm"], shown["radius_mm"][0] + 1e-9)
            self.assertEqual(entry["num_unverified"], shown["source"].count("unverified: "))
            self.assertTrue(shown["source"], f"{entry['preset']} gives no source")

    def test_crystals(self):
        """Octagon: centres at the apothem plus half the depth, normals to the axis."""
        lines = self.good(f"scanner show {self.scanner} --crystals").stdout.splitlines()
        self.assertEqual((lines[0], len(lines)), ("module p q x_mm y_mm z_mm nx ny nz", 1 + 8 * 16))
        for number, line in enumerate(lines[1:]):
            fields = line.split()
            module, p, q = map(int, fields[:3])
            x, y, z, nx, ny, nz = map(float, fields[3:])
            self.assertEqual((module, q, p), (number // 16, number % 16 // 4, number % 4))
            angle = module * math.pi / 4
            self.assertAlmostEqual(nx, -math.cos(angle), places=7)
            self.assertAlmostEqual(ny, -math.sin(angle), places=7)
            self.assertAlmostEqual(nz, 0, places=7)
            self.assertAlmostEqual(-(x * nx + y * ny), 35, places=6)
            self.assertAlmostEqual(x * ny - y * nx, 4 * (p - 1.5), places=6)
            self.assertAlmostEqual(z, 4 * (q - 1.5), places=6)

    def test_summary(self):
        found = self.json(f"scanner show {self.scanner}")
        self.assertEqual((found["num_modules"], found["num_crystals"]), (8, 128))
        self.assertEqual(found["num_lors"], found["num_pairs"] * 256)
        for value, wanted in zip(found["radius_mm"] + found["axial_mm"], [30, 30, -8, 8]):
            self.assertAlmostEqual(value, wanted, places=9)
        self.assertEqual(found["coincidence"]["field_of_view_mm"], 30)
        self.assertIsNone(found["coincidence"]["max_ring_difference"])
        self.assertIsNone(found["crystal_mu_per_mm"])
        text = self.good(f"scanner show {self.scanner}").stdout
        for words in ["small ring", "128", "field of view 30 mm", "time of flight none"]:
            self.assertIn(words, text)

    def test_crystals_json(self):
        self.assertEqual(len(self.json(f"scanner show {self.scanner} --crystals")["crystals"]), 128)

    def test_crystals_stop(self):
        """30 mm of LaBr3: 1 - exp(-0.047 * 30) = 75.6 %."""
        self.assertEqual(self.json("scanner show penn-labr3")["crystal_mu_per_mm"], 0.047)
        self.assertIn("0.047/mm at 511 keV: 75.6 %", self.good("scanner show penn-labr3").stdout)

    def test_which_photons_count(self):
        """Without --penetration a sensitivity is that of crystals that stop all; with it, less. Layers have it anyway."""
        self.write("layers.yaml", Path(self.scanner).read_text().replace(
            "depth_mm: 10", "depth_mm: 10, layers: [{depth_mm: 4}, {depth_mm: 6}]") + "crystal_material: LYSO\n")
        self.write("whole.yaml", Path(self.scanner).read_text() + "crystal_material: LYSO\n")
        for name, words, more in (("whole", "every photon that meets them, unless --penetration is given", "--penetration"),
                                  ("layers", "photons along their depth", "--layers-alone")):
            for verb in ("scanner show", "scanner check"):
                self.assertIn(words, self.good(f"{verb} ./{name}.yaml").stdout)
            plain, other = (self.json(f"sensitivity --scanner ./{name}.yaml {GRID} --backend cpu --mode sampled {how} "
                                      "-o s.nii")["sum"] for how in ("", more))
            self.assertLess(*((other, plain) if name == "whole" else (plain, other)))

    def test_check_of_what_looks_wrong(self):
        """A diameter for the radius: exit code 3, the suspicion on stderr, and as JSON."""
        ring = ("ring: {radius_mm: 174, modules: 12}\nmodule: "
                "{crystals: [39, 81], pitch_mm: [1.17, 1.17], face_mm: [1.12, 1.12], depth_mm: 13}\n")
        self.write("wrong.yaml", ring)
        self.refuse(3, ["./wrong.yaml:1:8: suspect radius: ", "looks like the diameter", "\n           ^~~~~~~~~\n",
                        "1 thing looks wrong"], "scanner check ./wrong.yaml")
        found = json.loads(self.ends(3, (), "scanner check ./wrong.yaml --json").stdout)
        self.assertIs(found["good"], False)
        self.assertEqual([(f["severity"], f["kind"]) for f in found["findings"]],
                         [("suspect", "radius"), ("note", "size")])
        self.assertEqual([(f["line"], f["column"]) for f in found["findings"]], [(1, 8), (None, None)])
        self.ends(3, (), "scanner check ./wrong.yaml --png wrong.png")
        self.assertGreater(min(png_size("wrong.png")), 100)
        self.refuse(2, ".png", "scanner check ./wrong.yaml --png wrong.jpg")
        self.write("right.yaml", ring.replace("174", "87.2"))
        self.assertIn("right.yaml: good: ", self.good("scanner check ./right.yaml").stdout)

    def test_convert(self):
        """There and back: the same crystals in the same order; and a .lut beside a .hscan."""
        crystals = self.good(f"scanner show {self.scanner} --crystals").stdout
        for name in ["a.yaml", "b.geom", "c.hscan"]:
            self.good(f"scanner convert {self.scanner} {name}")
            self.good(f"scanner convert ./{name} back.yaml")
            found = self.good("scanner show ./back.yaml --crystals").stdout
            for line, wanted in zip(found.splitlines()[1:], crystals.splitlines()[1:]):
                for a, b in zip(line.split(), wanted.split()):
                    self.assertAlmostEqual(float(a), float(b), delta=1e-5)
        self.assertEqual(os.path.getsize("c.lut"), 128 * 24)
        found = self.json(f"scanner convert {self.scanner} d.yaml")
        self.assertEqual((found["num_crystals"], found["output"]), (128, "d.yaml"))

    def test_convert_refuses(self):
        self.refuse_each("converted scanners")

    def test_check_of_a_grid(self):
        self.refuse_each("checked grids")

    def test_check(self):
        self.assertIn("good", self.good(f"scanner check {self.scanner}").stdout)
        self.assertIs(self.json(f"scanner check {self.scanner}")["good"], True)

    def test_needs_one(self):
        self.refuse_each("one scanner")


class Info(ProgramTest):
    def test_json(self):
        found = self.json("info")
        backends = {b["backend"]: b for b in found["backends"]}
        self.assertTrue(backends["cpu"]["works"])
        self.assertTrue(found["auto"]["works"])
        usable = [d for d in found["devices"] if d["usable"]]
        self.assertEqual(backends["raster"]["works"], bool(usable))
        for device in found["devices"]:
            self.assertTrue(device["usable"] or device["reason"], device)
        if not usable:
            self.assertTrue(backends["raster"]["reason"])

    def test_text(self):
        text = self.good("info").stdout
        self.assertRegex(text, r"auto takes (cpu|compute|native) ")
        self.assertIn("cpu", text)

    def test_requirement(self):
        self.good("info --backend cpu")

    def test_programs(self):
        """Programs that are started are found beside this one, or missed by name; whoever needs one is told how to get
        it."""
        data = self.expected_counts()
        found = {p["program"]: p for p in self.json("info")["programs"]}
        self.assertEqual(found["loraster-hdf5-reader"]["path"], str(Path(self.program).parent / "loraster-hdf5-reader"))
        wanted = f"recon {self.on_ring} {GRID} --data {data} -o x.nii"
        for folder, why in ((str(self.folder), f"is not in {self.folder}"),
                            (".", "is not looked for in ., which is no whole path")):
            env = dict(os.environ, LORASTER_LIBEXEC=folder)
            for program in self.json("info", env=env)["programs"]:
                self.assertEqual((program["works"], program["path"]), (False, None))
                self.assertIn(why, program["reason"])
            told = self.good("info", env=env).stdout
            self.assertIn("loraster-hdf5-reader, which reads HDF5 files, is missing: it " + why, told)
            self.assertNotIn("loraster-bench", told)  # no installation has it
            self.refuse(1, ["loraster-hdf5-reader", why, "cmake --build BUILD --target loraster-hdf5-reader",
                            "LORASTER_LIBEXEC"], wanted, env=env)


class BadInput(ProgramTest):
    """What is wrong with scanners, grids and maps by their numbers; tests/io has what is wrong with files."""

    def test_numbers(self):
        self.image("bad.nii", [-1.0] * NUM_VOXELS)
        self.refuse_each("numbers that make no sense")

    def test_overlap(self):
        self.write("bad.yaml", SMALL_RING.replace("radius_mm: 30", "radius_mm: 15"))
        done = self.refuse(3, "overlap", "scanner check ./bad.yaml")
        self.assertRegex(done.stderr, r"modules \d+ and \d+ overlap by \d[\d.]* mm")
        self.write("cm.yaml", SMALL_RING.replace("radius_mm: 30", "radius_mm: 3"))
        reason = self.refuse(3, "overlap", "scanner check ./cm.yaml").stderr.splitlines()[0]
        self.assertIn("the radius looks like cm (30 mm)", reason)

    def test_same_refusal_in_every_verb(self):
        self.write("bad.yaml", SMALL_RING + "colour: blue\n")
        for verb, more in (("sensitivity", f"{GRID} -o s.nii"), ("matrix", "--at 0,0,0 -o m"),
                           ("render", "--at 0,0,0 -o r"), ("scanner check", "")):
            scanner = "--scanner bad.yaml" if more else "./bad.yaml"
            self.refuse(3, ["bad.yaml:5:", "colour"], f"{verb} {scanner} {more}")

    def test_standard_output(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([self.program, "scanner", "show", self.scanner, "--crystals"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)


class ManyLors(ProgramTest):
    def test_a_graphics_processor_is_not_left_unsaid(self):
        """Quadra has 2.1e10 LORs, which no device numbers. Mesa gives its renderer any name, by which one in software
        is taken for a graphics processor."""
        work = "sensitivity --scanner siemens-vision-quadra --grid 2,2,2 --voxel-mm 8 --dry-run -o s.nii"
        hint = "--operator listmode --kernel exact"
        found = self.good(work, env=dict(os.environ, force_gl_renderer="llvmpipe")).stderr
        for words in ("warning", "cannot run here"):
            self.assertNotIn(words, found)
        env = dict(os.environ, force_gl_renderer="a graphics processor")
        if "a graphics processor" not in self.good("info", env=env).stdout:
            self.skipTest("this OpenGL has its own name")
        found = self.good(work, env=env).stderr
        for words in ("warning: using backend native and not the graphics processor: compute cannot run here: "
                      "21012480000 LORs are more than the 4294967294", hint):
            self.assertIn(words, found)
        self.assertNotIn(hint, self.good(f"{work} --backend native", env=env).stderr)


class NoGl(ProgramTest):
    def setUp(self):
        super().setUp()
        self.without_gl = dict(os.environ, __EGL_VENDOR_LIBRARY_FILENAMES="/nonexistent")

    def test_raster_is_refused(self):
        self.refuse(4, ["OpenGL", "install"], f"sensitivity --scanner {self.scanner} {GRID} --backend raster -o s.nii",
                    env=self.without_gl)

    def test_auto_takes_a_processor_backend_and_says_so(self):
        done = self.good(f"sensitivity --scanner {self.scanner} {GRID} -o s.nii", env=self.without_gl)
        self.assertRegex(done.stderr, "backend (cpu|native) on CPU")

    def test_info(self):
        found = self.json("info", env=self.without_gl)
        self.assertIn(found["auto"]["backend"], ("cpu", "native"))
        raster = [b for b in found["backends"] if b["backend"] == "raster"][0]
        self.assertFalse(raster["works"])
        self.assertTrue(raster["reason"])
        self.assertIn("apt-get install", self.good("info", env=self.without_gl).stdout)
        self.ends(4, (), "info --backend raster", env=self.without_gl)


class Json(ProgramTest):
    """Every key of every --json is in docs/formats/json.md."""

    def keys(self, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield key
                yield from self.keys(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from self.keys(inner)

    def test_keys_are_documented(self):
        section = (self.source_root / "docs" / "formats" / "json.md").read_text()
        self.expected_counts()
        self.image()
        for command, in self.cases("json"):
            done = self.good(command, "--json")
            self.assertNotIn("warning", done.stderr if "sample" in command else "")
            found = json.loads(done.stdout)
            verb = command.split()[:2 if command.startswith(("scanner", "matrix verify", "sample")) else 1]
            self.assertEqual(found["verb"], " ".join(verb))
            for key in self.keys(found):
                self.assertIn(f"`{key}`", section, f"{command}: key {key}")


main({"plugins": Plugins, "usage": Usage, "scanner": Scanner, "info": Info, "bad_input": BadInput, "no_gl": NoGl,
      "many_lors": ManyLors, "json": Json})
