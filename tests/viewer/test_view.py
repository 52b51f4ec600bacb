#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the viewer by scripts, without a window: what is shown equals what the library says, what
is saved comes back, and whatever is wrong is said."""
import contextlib, json, math, os, re, resource, shutil, struct, subprocess
from pathlib import Path

import h5py

from steps import (HANG_S, SHEET, SMALL_RING, ViewTest, crystals, main, preloadable, preloading, read_nifti, read_png,
                   value_at, write_nifti, write_npy)

READY = ["open scanner ring.yaml", "wait"]


def places(count):
    """Pixels all over the picture."""
    left, top, right, bottom = SHEET
    for k in range(count):
        yield (left + (right - left) * ((k * 0.618034) % 1.0), top + (bottom - top) * ((k + 0.5) / count))


class Values(ViewTest):
    """The value under the mouse is the matrix's."""
    def touch(self, before, count=100):
        asked = ["touched", "touched.exact", "touched.sampled", "touched.point_exact", "touched.point_sampled"]
        # A small window is drawn in less time. The panel is at the same distance from its right edge.
        steps = ["size 700 590", *before, "set module -1", "set rays 4", "wait"]
        for x, y in places(count):
            steps += [f"move {x - 580:.1f} {y:.1f}", *(f"print {name}" for name in asked)]
        pairs, _ = self.view(steps)
        self.assertEqual(len(pairs), count * len(asked))
        for k in range(0, len(pairs), len(asked)):
            one = dict(pairs[k:k + len(asked)])
            if one["touched"] != "none" and "-1" not in one["touched"]:
                yield one

    # Tolerances relative to an element and to the row's largest element. Double precision is limited by the printed
    # digits.
    IN_DOUBLE, IN_SINGLE = (1e-6, 0.0), (1e-5, 1e-6)

    def compare(self, one, name, row, tolerance=IN_DOUBLE):
        wanted, found = row.get(crystals(one["touched"]), 0.0), float(one[name])
        bound = tolerance[0] * wanted + tolerance[1] * max(row.values())
        self.assertLessEqual(abs(found - wanted), bound, (one, name, wanted))
        return wanted > 0.0

    def test_voxel_and_point(self):
        """The elements that the shaders draw and sample are those of the matrix; voxel.c tests the backend cpu."""
        self.image("x.nii")
        before = [*READY, "open image x.nii", "wait", "point 1.7 0.2 -3.8", "print voxel.row"]
        at = ["--at", "1.7,0.2,-3.8"]
        # 6 x 5 x 3 voxels of 3 x 3 x 4 mm about the origin
        row = 3 + 6 * (2 + 5 * 0)
        voxel = ["--like", self.path("x.nii"), "--rows", f"{row}:{row + 1}"]
        exact, sampled = ["--mode", "exact"], ["--mode", "sampled", "--rays", "4"]
        rows = {f"touched.{name}": self.rows(*of, *mode) for name, of, mode in (
            ("exact", voxel, exact), ("sampled", voxel, sampled), ("point_exact", at, exact),
            ("point_sampled", at, sampled))}
        hits = {name: set() for name in rows}
        pairs, _ = self.view([*before[:-1], "wait", before[-1], "print voxel.sum"])
        self.assertEqual((pairs[0], pairs[1][0]), (("voxel.row", str(row)), "voxel.sum"))
        whole = sum(rows["touched.exact"].values())
        self.assertAlmostEqual(float(pairs[1][1]) / whole, 1, delta=1e-5)
        for one in self.touch(before[:-1], 160):
            for name, row in rows.items():
                if self.compare(one, name, row, self.IN_SINGLE):
                    hits[name].add(crystals(one["touched"]))
        print({name: len(found) for name, found in hits.items()}, "elements compared")
        for name, found in hits.items():
            self.assertGreater(len(found), 15, name)

    def test_absorption(self):
        """With a mu-map, and without it when that is wished."""
        mu = self.image("mu.nii", [0.0096] * (20 * 20 * 10), (20, 20, 10), (2, 2, 2))
        ready = [*READY, f"open mu {mu}", "wait", "set steps 8", "point 1 2 -2"]
        at = ["--at", "1,2,-2", "--mode", "sampled", "--rays", "4"]
        dense = self.rows(*at, "--mu", mu, "--mu-as", "lines", "--mu-steps", "8")
        plain = self.rows(*at)
        self.assertLess(sum(dense.values()), 0.8 * sum(plain.values()))
        for steps, row, tolerance in (([], dense, self.IN_SINGLE), (["set backend cpu"], dense, self.IN_DOUBLE),
                                      (["set backend cpu", "set absorption 0"], plain, self.IN_DOUBLE)):
            found = [self.compare(one, "touched.point_sampled", row, tolerance)
                     for one in self.touch([*ready, *steps], 60)]
            self.assertGreater(sum(found), 8)

    def test_who_draws(self):
        """The projector's shaders unless a person wishes otherwise; results say who it was, and
        sessions keep the wish."""
        asked = ["print voxel.drawn_by", "print voxel.sampled_by", "print voxel.exact_by"]
        steps = [*READY, "wait", *asked, "screenshot a.png"]
        for name in ("cpu", "compute", "raster"):
            steps += [f"set backend {name}", "wait", *asked, f"save {name}.yaml"]
        pairs, said = self.view([*steps, "set exact 0", "wait", *asked])
        found = [tuple(text for _, text in pairs[k:k + 3]) for k in range(0, len(pairs), 3)]
        self.assertEqual((found[1], found[2]), (("cpu", "cpu", "cpu"), ("raster", "compute", "compute")))
        for k in (0, 3):
            self.assertEqual(found[k][:2], ("raster", "raster"))
            self.assertIn(found[k][2], ("native", "compute"))
        self.assertEqual(found[4], ("raster", "raster", "none"))
        self.assertNotIn("warning", said)
        for k, name in ((1, "cpu"), (2, "compute"), (3, "raster")):
            pairs, _ = self.view([f"open session {name}.yaml", "wait", *asked])
            self.assertEqual(tuple(text for _, text in pairs), found[k])
        self.view([*READY, "set backend native"], code=3)

    def test_leaning_modules_are_exact_by_cpu(self):
        """native cannot; the pictures go on, and nothing is said of it."""
        self.write("lean.yaml", """\
name: turned by 37 degrees in their planes
modules:
  - {center_mm: [0, 60, 0], u: [0.8, 0, 0.6], v: [-0.6, 0, 0.8], crystals: [4, 4],
     pitch_mm: [4, 4], face_mm: [3.8, 3.8], depth_mm: 10}
  - {center_mm: [0, -60, 0], u: [-0.8, 0, 0.6], v: [0.6, 0, 0.8], crystals: [4, 4],
     pitch_mm: [4, 4], face_mm: [3.8, 3.8], depth_mm: 10}
""")
        pairs, said = self.view(["open scanner lean.yaml", "wait 600 anyway", "point 1 2 1", "wait",
                                 "print voxel.drawn_by", "print voxel.exact_by"])
        self.assertEqual([text for _, text in pairs][:1], ["raster"])
        self.assertIn(pairs[1][1], ("cpu", "compute"))
        self.assertNotIn("raster cannot", said)

    def test_broken_shader(self):
        """cpu goes on; one sentence says so, below and in the panel."""
        shaders = self.folder / "shaders"
        shutil.copytree(self.source_root / "shaders", shaders)
        (shaders / "correspondence/raster/correspondence.frag").write_text("#version 450 core\n#error broken\n")
        steps = [*READY, "point 1 2 1", "wait", "point 2 1 1", "wait", "print voxel.drawn_by",
                 "print message", "key m", "frames 2", "screenshot a.png"]
        pairs, said = self.view(steps, env=dict(os.environ, LORASTER_SHADER_DIR=str(shaders)))
        self.assertEqual(pairs[0], ("voxel.drawn_by", "cpu"))
        lines = [line for line in said.splitlines() if line]
        self.assertEqual(len(lines), 1, said)
        for words in ("warning", "drawn by backend cpu", "raster cannot run here", "broken"):
            self.assertIn(words, lines[0])
        self.assertIn(pairs[1][1], lines[0])
        # The panel's own line, under the picture, in the colour of warnings.
        _, _, rows = read_png(self.path("a.png"))
        yellow = sum(rows[y][3 * x] > 150 and rows[y][3 * x + 1] > 130 and rows[y][3 * x + 2] < 110
                     for y in range(SHEET[3], SHEET[3] + 60) for x in range(890, 1270))
        self.assertGreater(yellow, 300)


class Places(ViewTest):
    """Clicks choose what lies there; the camera turns as it is told."""
    def test_click_on_slices(self):
        """Along z the slice across z is seen head on: its middle is the window's, and places go
        with the camera's opening of 30 degrees."""
        self.image("x.nii", [1.0] * (40 * 40 * 10), (40, 40, 10), (1, 1, 2))
        size, wanted = (1280, 800), {}
        left, width, height = 290.0, 1280 - 290 - 400.0, 800 - 30.0
        steps = [*READY, "open image x.nii", "wait", "panes scene", "show scanner off", "show x off",
                 "show y off", "slice z 3", "camera -90 89.9 120", "frames 2"]
        half = 0.2679491924311227  # tan 15 degrees
        for k, (x, y) in enumerate([(0, 0), (10.5, 3.5), (-12.5, 8.5), (4.5, -15.5)]):
            depth = 120.0 - 3.0
            at = (left + 0.5 * width + 0.5 * height * x / (depth * half),
                  0.5 * height - 0.5 * height * y / (depth * half))
            steps += [f"click {at[0]:.2f} {at[1]:.2f}", "wait", "print voxel.point_mm"]
            wanted[k] = (x, y, 3.0)
        pairs, _ = self.view(steps)
        self.assertEqual(len(pairs), len(wanted))
        for (_, text), place in zip(pairs, wanted.values()):
            found = list(map(float, text.split(",")))
            for axis in range(3):
                # a pixel is 0.08 mm, and the view is 0.1 degrees off the axis
                self.assertLess(abs(found[axis] - place[axis]), 0.35, (text, place, size))

    def test_slices_move(self):
        self.image("x.nii")
        pairs, _ = self.view([*READY, "open image x.nii", "wait", "slice z 0", "print slices.at_mm", "key pageup",
                              "print slices.at_mm", *["key pagedown"] * 5, "print slices.at_mm"])
        self.assertEqual([float(text.split(",")[2]) for _, text in pairs], [0.0, 4.0, -4.0])

    def test_camera(self):
        pairs, _ = self.view([*READY, "camera 30 10", "drag 500 300 600 300", "print camera.turn_deg",
                              "print camera.height_deg", "drag 500 300 500 377", "print camera.height_deg", "key z",
                              "print camera.height_deg", "key x", "print camera.turn_deg", "scroll 5",
                              "print camera.distance_mm", "scroll -5", "print camera.distance_mm"])
        found = [float(text) for _, text in pairs]
        self.assertAlmostEqual(found[0], 30 - 180 * 100 / 770, places=6)
        self.assertAlmostEqual(found[1], 10, places=9)
        self.assertAlmostEqual(found[2], 10 + 180 * 77 / 770, places=6)
        self.assertEqual(found[3:5], [89.9, 0.0])
        self.assertAlmostEqual(found[5] / found[6], 0.9 ** 5, places=9)

    def test_drag_on_a_panel_turns_nothing(self):
        """Also when the mouse comes and is pressed within one frame."""
        pairs, _ = self.view([*READY, "camera 30 10", "move 600 300", "drag 1100 110 1200 110",
                              "print camera.turn_deg", "print voxel.rays"])
        self.assertEqual(float(pairs[0][1]), 30.0)
        self.assertGreater(float(pairs[1][1]), 4)

    def test_module_under_the_mouse(self):
        """Seen from outside along x, the far side's faces are turned to the eye: module 4 of 8 stands
        opposite module 0."""
        found = self.values([*READY, "camera 0 0 300", "move 584 384", "print hover.module", "print hover.crystal"])
        self.assertEqual(found["hover.module"], "4")
        self.assertRegex(found["hover.crystal"], r"^(-1|[0-3]),(-1|[0-3])$")

    def test_typed_point(self):
        """A number typed into the panel, after a double click into its field, also where frames take
        longer than a hand does for it."""
        for width, height in ((1280, 800), (4000, 3000)):
            click = f"click {width - 136} 62"
            found = self.values([*READY, f"size {width} {height}", "frames 2", click, "key a", click, click, "type 3.5",
                                 "key enter", "wait", "print voxel.point_mm", "print help"])
            self.assertEqual(float(found["voxel.point_mm"].split(",")[1]), 3.5, found)
            self.assertEqual(found["help"], "0")

    def test_keys(self):
        pairs, _ = self.view(["key ?", "print help", "key f1", "print help", "print tool", "key tab", "print tool"])
        self.assertEqual([text for _, text in pairs], ["1", "0", "Voxel", "LOR"])


    def test_click_in_the_picture(self):
        """A press on a pixel goes to its LOR: the LOR tab comes to the front, and stays."""
        found = False
        for at in ((60, 120), (90, 90), (120, 120)):
            place = f"{SHEET[0] + at[0]} {SHEET[1] + at[1]}"
            pairs, _ = self.view([*READY, f"move {place}", "frames 2", "print touched", f"click {place}", "frames 3",
                                  "wait", "print tool", "frames 3", "print tool", "print touched"])
            touched, *after = (text for _, text in pairs)
            if touched == "none" or "-1" in touched:
                continue
            found = True
            self.assertEqual(after, ["LOR", "LOR", "none"])
        self.assertTrue(found)


class Files(ViewTest):
    def test_session_comes_back(self):
        image = self.image("x.nii")
        names = ["camera.at_mm", "camera.turn_deg", "camera.height_deg", "camera.distance_mm", "voxel.point_mm",
                 "voxel.row", "voxel.rays", "voxel.sum", "scanner.name", "image.path", "tool"]
        asked = [f"print {name}" for name in names]
        first = self.values([*READY, f"open image {image}", "wait", "camera 77 33 150 5 -4 3",
                             "point 2 1 -2.5", "set rays 6", "set module 5", "wait", *asked,
                             "move 600 780", "screenshot a.png", "save s.yaml"])
        again = self.values(["open session s.yaml", "wait", *asked, "move 600 780", "screenshot b.png"])
        started = self.values(["wait", *asked], "--session", "s.yaml")
        for name in names:
            for other in (again, started):
                try:
                    self.assertAlmostEqual(float(first[name]), float(other[name]), 4, name)
                except ValueError:
                    self.compare_texts(first[name], other[name])
        one, two = read_png(self.path("a.png")), read_png(self.path("b.png"))
        self.assertEqual(one[:2], two[:2])
        # all but the left panel, which tells of frames a second; eyes are kept in float
        differ = sum(abs(a - b) > 8 for x, y in zip(one[2], two[2]) for a, b in zip(x[3 * 290:], y[3 * 290:]))
        self.assertLess(differ, 0.003 * 3 * 990 * 800)

    def compare_texts(self, one, other):
        if "," in one:
            for a, b in zip(one.split(","), other.split(",")):
                self.assertAlmostEqual(float(a), float(b), 4)
        else:
            self.assertEqual(one, other)

    def test_screenshots_have_the_windows_size(self):
        steps, sizes = list(READY), [(640, 400), (1, 1), (333, 777), (3, 900), (1281, 801)]
        for k, (x, y) in enumerate(sizes):
            steps += [f"size {x} {y}", f"screenshot {k}.png"]
        self.view(steps)
        for k, size in enumerate(sizes):
            self.assertEqual(read_png(self.path(f"{k}.png"))[:2], size)

    def test_screenshot_shows_the_scene(self):
        """The scene is not empty, and hiding the crystals changes it."""
        self.view([*READY, "screenshot a.png", "show scanner off", "screenshot b.png"])
        lit = []
        for name in ("a.png", "b.png"):
            _, _, rows = read_png(self.path(name))
            lit.append(sum(max(row[3 * x:3 * x + 3]) > 60 for row in rows[40:700] for x in range(300, 870)))
        self.assertGreater(lit[0], 1.3 * lit[1])

    def test_keys_save(self):
        self.view([*READY, "key p", "key s"])
        self.assertEqual(read_png(self.path("loraster-view-1.png"))[:2], (1280, 800))
        self.assertIn("ring.yaml", Path(self.path("loraster-view-1.yaml")).read_text())

    def test_key_before_anything_is_drawn(self):
        _, said = self.view(["key p", "key p"])
        self.assertIn("png", said)

    def test_drop(self):
        image = self.image("x.nii")
        found = self.values([f"open file {self.scanner}", "wait", f"open file {image}", "wait",
                             "save s.yaml", "print scanner.name", "print image.path"])
        self.assertEqual((found["scanner.name"], found["image.path"]), ("small ring", image))
        self.assertEqual(self.values(["open file s.yaml", "wait", "print image.path"])["image.path"], image)


class Errors(ViewTest):
    def script_refused(self, code, words, steps, *more, **options):
        return self.refuse(code, words, *self.arguments(steps, *more), **options)

    def fails(self, code, words, steps, *more, **options):
        """Ends with that code and a sentence with these words; what came first was done."""
        _, said = self.view(steps, *more, code=code, **options)
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, said)
        return said

    def test_usage(self):
        self.refuse(2, "--script", "view", "--no-window")
        self.refuse(2, "--bench-frames", "view", "--bench-frames", "0", "--no-window")
        self.refuse(3, "nothing.txt", "view", "--no-window", "--script", "nothing.txt")

    def test_bench(self):
        """Frames do not keep a software renderer from what is being opened, however many programs share the
        processor, and what cannot be opened is an error."""
        cold = dict(os.environ, LORASTER_CACHE="off", MESA_SHADER_CACHE_DISABLE="true")
        command = [self.program, "view", "--no-window", "--bench-frames", "1", "--scanner", self.scanner, "--json"]
        with contextlib.ExitStack() as running:
            programs = [running.enter_context(subprocess.Popen(command, cwd=self.folder, env=cold, text=True,
                                                               stdout=subprocess.PIPE)) for _ in range(2)]
            for program in programs:
                told = json.loads(program.communicate(timeout=HANG_S)[0])
                self.assertEqual(program.returncode, 0)
                self.assertLess(told["opened_s"], 120.0)
                self.assertEqual(told["size"], [1280, 800])
        done = self.run_program(*command[1:-2], "missing.yaml", "--json")
        self.assertEqual((done.returncode, done.stdout), (3, ""))

    def test_steps(self):
        for step, *words in self.cases("viewer steps"):
            self.script_refused(3, ["steps.txt:2", *words], ["frames 1", step])

    def test_words(self):
        for step, words in self.cases("viewer words"):
            self.fails(3, [words, "steps.txt:2"], ["frames 1", step])

    def test_expectations(self):
        self.fails(1, ["expected \"x\"", "steps.txt:3"], [*READY, "expect scanner.name x"])
        self.fails(1, ["expected 9 within 0.5"], [*READY, "expect scanner.modules 9 0.5"])
        self.view([*READY, "expect scanner.modules 8", 'expect scanner.name "small ring"'])

    def test_missing_files(self):
        for kind in ("scanner", "image", "mu", "session"):
            self.fails(3, "./nothing.yaml", [f"open {kind} ./nothing.yaml", "wait"])
        self.fails(3, "nothing.h5", [*READY, "open data ./nothing.h5", "wait"])
        self.fails(3, "./nothing.yaml", ["frames 5"], "--scanner", "./nothing.yaml")
        self.refuse(3, "nothing.yaml", *self.arguments(["frames 1"]), "--session", "nothing.yaml")

    def test_not_waited_for(self):
        """A failure that no step has seen is in the exit code all the same."""
        self.fails(3, "nothing.nii", ["open image ./nothing.nii", "frames 30"])

    def test_goes_on_anyway(self):
        pairs, said = self.view(["open image ./nothing.nii", "wait 1200 anyway", *READY, "wait",
                                 "print scanner.modules"])
        self.assertEqual(pairs, [("scanner.modules", "8")])
        self.assertIn("nothing.nii", said)

    def test_folder(self):
        os.mkdir(self.path("folder.nii"))
        for step in ("open image folder.nii", "open file folder.nii"):
            self.fails(3, "folder.nii", [step, "wait"])
        os.mkdir(self.path("folder"))
        self.fails(2, "folder", ["open file folder", "wait"])
        self.fails(1, "folder.nii", [*READY, "screenshot folder.nii"])
        self.fails(1, "folder.nii", [*READY, "save folder.nii"])

    def test_unknown_kind_is_said(self):
        self.write("notes.txt", "nothing that is known\n")
        self.fails(2, ["notes.txt", "no scanner, image"], ["open file notes.txt", "wait"])

    def test_scanner_with_errors(self):
        """The doctor says why, and the program goes on with what the file says."""
        self.write("bad.yaml", SMALL_RING.replace("radius_mm: 30", "radius_mm: 10"))
        found, said = self.view([*READY, "open scanner ./bad.yaml", "wait", "move 600 300", "screenshot a.png",
                                 "print tool", "print doctor.refused", "expect scanner.modules 8",
                                 "open scanner ring.yaml", "wait", "print doctor.refused", "point 1 1 1", "wait"])
        self.assertIn("error: ", said)
        self.assertEqual([text for _, text in found], ["Doctor", "8", "0"])

    def test_no_data_without_scanner(self):
        counts = self.expected_counts()
        self.fails(2, "of a scanner", ["open data y.hs", "wait"])
        self.view([*READY, f"open data {counts}", "wait"])

    def test_settings_out_of_range(self):
        for step in ("set module 99", "set rays -3", "set rays 100000"):
            self.fails(2, "steps.txt", [*READY, step, "wait"])

    def test_no_opengl(self):
        without = dict(os.environ, __EGL_VENDOR_LIBRARY_FILENAMES="/nonexistent")
        self.refuse(4, ["OpenGL", "install"], *self.arguments(READY), env=without)

    def test_no_screen(self):
        env = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
        self.refuse(4, ["no screen", "--no-window"], "view", env=env)

    def test_device_that_is_not_there(self):
        self.refuse(4, "99", *self.arguments(READY), "--device", "99")

    def test_sizes(self):
        """Nothing is open, everything is: at any size, and changing it while something is computed."""
        image = self.image("x.nii")
        for size in ("1 1", "2 1", "1 500", "37 41", "700 20"):
            self.view([f"size {size}", "frames 3", "click 0 0", *READY, f"open image {image}", "wait", "show volume on",
                       "set module -1", "size 900 600", "frames 1", f"size {size}", "wait", "drag 0 0 5 5",
                       "picture all", "frames 2", "screenshot a.png"])

    def test_refused_scanner_is_named(self):
        """The modules under the mouse are those of the file that the scene shows."""
        self.write("overlap.yaml", """\
name: modules in each other's way
ring: {radius_mm: 52, modules: 18, rings: 2, ring_pitch_mm: 27.4}
module: {crystals: [13, 13], pitch_mm: [1.55, 1.55], face_mm: [1.45, 1.45], depth_mm: 15}
coincidence: {field_of_view_mm: 68}
""")
        steps = [*READY, "open scanner overlap.yaml", "wait 1200 anyway", "along z"]
        steps += ["camera -60 20 150"]
        for x in range(310, 870, 40):
            steps += [f"move {x} 250", "print hover.module"]
        pairs, _ = self.view([*steps, "expect scanner.modules 8"])
        found = {int(number) for _, number in pairs}
        self.assertGreater(max(found), 7, found)


class Loss(ViewTest):
    """The driver resets the context: a sentence, exit code 4, and files that are whole.
    lose_context.c stands in for the driver."""
    def setUp(self):
        super().setUp()
        self.library = preloadable(os.environ["LORASTER_LOSE_CONTEXT"], self.addCleanup)

    def environment(self, number):
        return preloading(self.library, LOSE_CONTEXT_AT=str(number), LOSE_CONTEXT_COUNT=self.path("count"))

    def test_script(self):
        steps = [*READY, "screenshot a.png", "save s.yaml", "frames 10", "screenshot b.png"]
        self.view(steps, env=self.environment(1 << 30))
        total = int(Path(self.path("count")).read_text())
        self.assertGreater(total, 10)
        whole = Path(self.path("s.yaml")).read_bytes()
        for number in (0, 2, total // 2, total - 1):
            for name in ("a.png", "b.png"):
                Path(self.path(name)).unlink(missing_ok=True)
            _, said = self.view(steps, code=4, env=self.environment(number))
            self.assertIn("was reset by its driver", said)
            self.assertEqual(Path(self.path("s.yaml")).read_bytes(), whole)
            for name in ("a.png", "b.png"):
                if os.path.exists(self.path(name)):
                    self.assertEqual(read_png(self.path(name))[:2], (1280, 800))

    def test_reconstruction(self):
        """The projector's context shares objects with the window's; the loss is seen by either."""
        image = self.image("x.nii")
        steps = [f"open image {image}", *READY, "recon device", "recon start 1 6", "wait",
                 "expect live.on_device 1", "frames 2", "screenshot a.png"]
        self.view(steps, env=self.environment(1 << 30))
        total = int(Path(self.path("count")).read_text())
        for number in (total // 4, total // 2, 3 * total // 4):
            _, said = self.view(steps, code=4, env=self.environment(number))
            self.assertIn("was reset by its driver", said)

    def test_person(self):
        """What was looked at is saved as a session."""
        self.ends(4, ["was reset by its driver", "the session is in loraster-view-1.yaml"],
                  f"view --no-window --bench-frames 40 --scanner {self.scanner}", env=self.environment(12))
        self.view(["open session loraster-view-1.yaml", "wait", "expect scanner.modules 8"])

    def test_person_who_waits(self):
        """What is still being opened is in the session, too."""
        slow = self.write("slow.yaml", "ring: {radius_mm: 2000, modules: 60, rings: 60, "
                          "ring_pitch_mm: 5}\nmodule: {crystals: [1,1], pitch_mm: [4,4], "
                          "face_mm: [4,4], depth_mm: 10}\n")
        self.ends(4, (), f"view --no-window --bench-frames 40 --scanner {slow}", env=self.environment(10))
        self.assertIn("slow.yaml", Path(self.path("loraster-view-1.yaml")).read_text())


class Sessions(ViewTest):
    def test_what_is_shown_comes_back(self):
        image, mu = self.image("x.nii"), self.image("mu.nii", [0.0096] * 90)
        self.view([*READY, f"open image {image}", f"open mu {mu}", "wait", "size 700 500",
                   "image mu", "show x off", "show volume on", "show scanner off", "slice y 3",
                   "slice z -4", "frames 2", "save s.yaml", "screenshot a.png"])
        asked = ["window.size", "slices.at_mm"]
        found = self.values(["open session s.yaml", "wait", "frames 3", "screenshot b.png",
                             *(f"print {name}" for name in asked)])
        self.assertEqual(found["window.size"], "700x500")
        self.assertEqual([float(at) for at in found["slices.at_mm"].split(",")][1:], [3.0, -4.0])
        text = Path(self.path("s.yaml")).read_text()
        for line in ("image: mu", "slices: [0, 1, 1]", "volume: shown", "crystals: hidden"):
            self.assertIn(line, text.replace('"', ""))
        self.view(["open session s.yaml", "wait", "frames 2", "save t.yaml"])
        kept = [[line for line in Path(self.path(name)).read_text().splitlines()] for name in ("s.yaml", "t.yaml")]
        at = [lines.index("shown:") for lines in kept]
        self.assertEqual(kept[0][at[0]:], kept[1][at[1]:])

    def test_window_comes_back(self):
        """The lowest and highest value of a session are still there after another image was shown."""
        image, mu = self.image("x.nii"), self.image("mu.nii", [0.0096] * 90)
        self.view([*READY, f"open image {image}", f"open mu {mu}", "wait", "colours grey 0.25 0.75", "save s.yaml"])
        found = self.values(["open session s.yaml", "wait", "image mu", "image image", "frames 1", "print window.low",
                             "print window.high"])
        self.assertEqual(found, {"window.low": "0.25", "window.high": "0.75"})

    def test_a_long_message_is_whole(self):
        """Its second line, which the bar would cut, is drawn: the bar grows upwards."""
        long = "a" * 120 + "/" + "b" * 120 + ".yaml"
        self.view([*READY, "size 1000 500", "frames 2", "screenshot a.png",
                   f"open file {long}", "wait 1200 anyway", "frames 3", "screenshot b.png"])
        heights = []
        for name in ("a.png", "b.png"):
            _, _, rows = read_png(self.path(name))
            heights.append(500 - min(y for y in range(400, 500) if max(rows[y][0:3 * 250]) > 150))
        self.assertLessEqual(heights[0], 30)
        self.assertGreater(heights[1], heights[0] + 10)


class Direct(ViewTest):
    """Tables and histo-images of the family direct: against the program's other verbs, which go by projections."""
    SIZE, EDGE, AT = (21, 19, 9), (4, 4, 4), (14, 6, 5)
    KERNEL = "--tof-ps 150 --model variant1"

    def setUp(self):
        super().setUp()
        nx, ny, nz = self.SIZE
        values = [0.0] * (nx * ny * nz)
        values[self.AT[0] + nx * (self.AT[1] + ny * self.AT[2])] = 1.0
        self.image("delta.nii", values, self.SIZE, self.EDGE)
        point = [(at - 0.5 * (n - 1)) * mm for at, n, mm in zip(self.AT, self.SIZE, self.EDGE)]
        self.ready = [*READY, "open image delta.nii", "wait", "tool direct", "point {} {} {}".format(*point)]

    def deposit(self, activity, count):
        self.good(f"direct deposit --activity {activity} --scanner {self.scanner} --tof-ps 150 --azimuths 4 --tilts 1",
                  f"--count {count} -o y.h5")

    def test_values(self):
        """A forward projection of one voxel is its kernel."""
        self.good(f"direct project --image delta.nii {self.KERNEL} --azimuths 6 --tilts 1 --backend cpu -o y.h5")
        with h5py.File("y.h5") as file:
            histo = file["histo/values"][:].reshape(6, *self.SIZE[::-1])
        offsets = [(0, 0, 0), (1, 0, 0), (-2, -1, 0), (0, 1, 1), (3, 2, 0), (1, -1, -1), (6, 6, 3)]
        for view in (0, 1, 4):
            steps = [*self.ready, f"direct {30 * view} 0 150 variant1", "wait"]
            for offset in offsets:
                steps += ["offset {} {} {}".format(*offset), "print direct.value"]
            pairs, _ = self.view(steps)
            for (_, found), (x, y, z) in zip(pairs, offsets):
                wanted = float(histo[view, self.AT[2] + z, self.AT[1] + y, self.AT[0] + x])
                self.assertLessEqual(abs(float(found) - wanted), 1e-6 * histo[view].max())
            self.assertGreater(float(pairs[0][1]), 0.0)

    def test_tables(self):
        size = ",".join(map(str, self.SIZE))
        wanted = self.json(f"direct lut {self.KERNEL} --azimuth-deg 40 --tilt-deg 5",
                           f"--grid {size} --voxel-mm 4 -o t.png")
        found = self.values([*self.ready, "direct 40 5 150 variant1", "wait",
                             *(f"print direct.{name}" for name in ("identifiers", "offsets", "kernel"))])
        self.assertEqual(int(found["direct.identifiers"]), wanted["identifiers"])
        self.assertEqual(int(found["direct.offsets"]), wanted["offsets"])
        x, y = ((at - 0.5 * (n - 1)) * 4 for at, n in zip(self.AT[:2], self.SIZE))
        angle = math.radians(40)
        away = abs(-math.sin(angle) * x + math.cos(angle) * y)
        self.assertEqual(int(found["direct.kernel"]), int(away / wanted["epsilon_mm"]))

    def test_histo_images(self):
        """Dropped as a file of any kind; each view has its own counts."""
        self.deposit("delta.nii", 500)
        with h5py.File("y.h5") as file:
            wanted = file["histo/values"][:].sum(axis=1)
        self.assertGreater(len(set(wanted)), 1)
        steps = [*READY, "open file y.h5", "wait", "expect tool DIRECT"]
        for view in range(4):
            steps += [f"histo {view}", "image histo", "print direct.counts"]
        pairs, _ = self.view(steps)
        self.assertEqual([float(found) for _, found in pairs], [float(sum) for sum in wanted])
        self.view([*READY, "open histo y.h5", "wait", "histo 4"], code=2)
        self.view([*READY, "open histo y.h5", "wait", "save y.h5"], code=2)
        self.view([*READY, "open histo delta.nii", "wait"], code=3)

    def test_reconstruction(self):
        """On the host and on the device it is the program's: the log-likelihood, and each voxel that
        the mouse finds; on the device nothing goes there in an iteration, and sums come back."""
        nx, ny, nz = self.SIZE
        self.image("spot.nii", [1.0 if 6 < k % nx < 14 and 5 < k // nx % ny < 13 else 0.1
                                for k in range(nx * ny * nz)], self.SIZE, self.EDGE)
        self.deposit("spot.nii", 4000)
        done = self.json(f"recon --operator direct --data y.h5 {self.KERNEL} --fit --algorithm osem --subsets 2",
                         "--iterations 3 --backend cpu -o r.nii")
        names = ("iterations", "log_likelihood", "on_device", "backend", "to_device", "to_host")
        ready = [*READY, "open file y.h5", "wait", "direct 0 0 150 variant1", "wait", "set family direct"]
        moves = [step for k in range(12) for step in (f"move {480 + 200 * (k * 0.618034 % 1.0):.0f} {310 + 12 * k}",
                                                      "print hover.voxel", "print hover.value")]
        for place in ("host", "device"):
            pairs, _ = self.view([*ready, f"recon {place}", "recon start 2 3", "wait",
                                  *(f"print live.{name}" for name in names), "panes scene", "image live", "show scanner off",
                                  "show x on", "show y on", "camera -60 35 150", *moves])
            found = {name.split(".")[1]: text for name, text in pairs[:len(names)]}
            self.assertEqual((found["iterations"], found["on_device"]), ("3", str(int(place == "device"))))
            wanted = done["iterations"][-1]["log_likelihood"]
            self.assertLess(abs(float(found["log_likelihood"]) / wanted - 1.0), 1e-6, found)
            if place == "device":
                self.assertIn(found["backend"], ("compute", "cuda"))
                self.assertEqual(float(found["to_device"]), 0.0)
                self.assertTrue(0.0 < float(found["to_host"]) < 4 * nx * ny * nz * 4, found)
            written, seen = read_nifti("r.nii"), set()
            for (_, voxel), (_, value) in zip(pairs[len(names)::2], pairs[len(names) + 1::2]):
                if value != "nan":
                    at = tuple(map(int, voxel.split(",")))
                    self.assertLess(abs(float(value) - value_at(written, at)), 1e-4 * max(written[3]), at)
                    seen.add(at)
            self.assertGreater(len(seen), 4)

    def test_counts_from_an_image(self):
        """Views are as many as is said; what cannot be is refused."""
        steps = [*self.ready, "direct 0 0 150 variant1", "wait", "set family direct",
                 "set algorithm ramla", "set azimuths 3", "set tilts 2", "print live.backend"]
        pairs, _ = self.view([*steps, "recon start 6 2", "wait", "print live.iterations"])
        self.assertEqual(pairs, [("live.backend", "none"), ("live.iterations", "2")])
        pairs, _ = self.view([*steps, "recon start 7 2", "wait", "print live.iterations"])
        self.assertEqual(pairs[-1], ("live.iterations", "0")) # of 6 views
        for words in ("azimuths 0", "tilts -1", "azimuths 70000", "family list"):
            self.view([*READY, f"set {words}"], code=2 if "70000" in words else 3)


class Documents(ViewTest):
    """docs/guide/viewer-scripts.md has every step, value and key, and the gallery every script."""
    def read(self, *names):
        return "".join((self.source_root / name).read_text() for name in names)

    def test_steps_and_values(self):
        text = self.read("docs/guide/viewer.md", "docs/guide/viewer-scripts.md")
        code = "".join(path.read_text() for folder in ("script", "tools")
                       for path in (self.source_root / "src/viewer" / folder).glob("*.c"))
        steps = re.findall(r'\{\s*"(\w+)",\s*"[^{}]*\.(?:act|run) =', code)
        tables = re.findall(r"struct command_(?:number|text) \w+\[\] = \{(.*?)\};", code, re.S)
        values = re.findall(r'\{"([\w.]+)",', "".join(tables))
        self.assertGreater(len(steps), 30)
        self.assertGreater(len(values), 70)
        for name in steps:
            self.assertRegex(text, rf"[`]{name}[ `]", f"step {name}")
        for name in values:
            self.assertIn(f"`{name}`", text, f"value {name}")

    def test_each_control_has_a_tooltip(self):
        """A hint follows each button, field, check and line of a list before the next one."""
        kinds = "button|strip|check|slide|slide_real|choose|radio|item|reals|integers|write|histogram"
        found = 0
        for path in [*(self.source_root / "src/viewer/tools").glob("*.c"), self.source_root / "src/viewer/view.c"]:
            last = None
            for kind, line in ((match[1], match[0]) for match in
                               re.finditer(rf"\bui_({kinds}|hint)\(.*", path.read_text())):
                self.assertFalse(last is not None and kind != "hint", f"{path.name}: no tooltip: {last}")
                last = None if kind == "hint" else line
                found += kind != "hint"
            self.assertIsNone(last, f"{path.name}: no tooltip: {last}")
        self.assertGreater(found, 80)

    def test_gallery(self):
        text = self.read("docs/guide/gallery.md")
        for script in (self.source_root / "tools/gallery").glob("view-*.txt"):
            self.assertIn(f"(../../tools/gallery/{script.name})", text)
            self.assertIn(f"(../pictures/{script.stem}.png)", text)


class Large(ViewTest):
    """Files of 4 GB without a disk that holds them: what cannot be shown is told of, and the program goes on."""
    def sparse(self, name, size):
        write_nifti(self.path(name), (1, 1, 1), (0.05, 0.05, 0.05), [0.0])
        with open(self.path(name), "r+b") as file:
            file.seek(42)
            file.write(struct.pack("<3h", *size))
            file.truncate(352 + 4 * size[0] * size[1] * size[2])
        return name

    def go_on(self, words, kibibytes, name):
        """With no more address space than that."""
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1024 * kibibytes, 1024 * kibibytes))
        pairs, said = self.view([*READY, f"open image {name}", "wait 1200 anyway", "frames 2", "screenshot a.png",
                                 "print scanner.modules", "point 1 1 1", "wait"], preexec_fn=limit)
        self.assertEqual((pairs, read_png(self.path("a.png"))[:2]), ([("scanner.modules", "8")], (1280, 800)))
        for word in words:
            self.assertIn(word, said)

    def test_more_than_memory(self):
        self.skip_under_sanitizers()
        self.go_on(["4", "memory"], 3 << 20, self.sparse("big.nii", (1024, 1024, 1024)))

    def test_more_than_a_texture(self):
        self.go_on(["20000", "larger than"], 1 << 40, self.sparse("wide.nii", (20000, 10, 3)))

    def test_npy(self):
        self.skip_under_sanitizers()
        write_npy("big.npy", (1024, 1024, 1024))
        os.truncate("big.npy", 128 + (4 << 30))
        self.go_on(["big.npy"], 3 << 20, "big.npy")

    def skip_under_sanitizers(self):
        if b"__asan_init" in Path(self.program).read_bytes():
            self.skipTest("address sanitizers need all of the address space")


main({"values": Values, "places": Places, "files": Files, "errors": Errors,
      "direct": Direct, "sessions": Sessions, "large": Large, "loss": Loss, "documents": Documents})
