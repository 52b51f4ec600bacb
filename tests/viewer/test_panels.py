#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the panels and the scene tell of what is under the mouse, by scripts, without a window: values
on slices, colour bars, curves, empty windows, the dialog that opens files, the start screen."""
import math, os, random, re
from pathlib import Path

from steps import SHEET, SMALL_RING, Eye, ViewTest, main, read_nifti, read_png, value_at

READY = ["open scanner ring.yaml", "wait", "panes scene"]
SCENE = (290, 0, 880, 770)  # left, top, right, bottom of a window of 1280 x 800


def pixel(rows, x, y):
    return rows[y][3 * x:3 * x + 3]


def part(rows, box):
    left, top, right, bottom = box
    return [row[3 * left:3 * right] for row in rows[top:bottom]]


class Slices(ViewTest):
    """Value, voxel and place under the mouse are those of the file."""
    SIZE, VOXEL = (20, 16, 12), (1.5, 2.0, 2.5)
    AT = {"x": 1.0, "y": -3.0, "z": 4.0}
    CAMERA = (-60.0, 35.0, 110.0)

    def setUp(self):
        super().setUp()
        random.seed(5)
        count = self.SIZE[0] * self.SIZE[1] * self.SIZE[2]
        self.image("x.nii", [random.random() for _ in range(count)], self.SIZE, self.VOXEL)
        self.image("mu.nii", [random.random() / 50 for _ in range(9 * 8 * 7)], (9, 8, 7), (3, 4, 4))
        self.ready = [*READY, "open image x.nii", "open mu mu.nii", "wait", "show x on", "show y on",
                      *(f"slice {axis} {at}" for axis, at in self.AT.items()), "camera {} {} {}".format(*self.CAMERA)]

    def check(self, name, before, count=60, camera=CAMERA, least=3):
        """The values at pixels all over the scene, each of the three slices more than once."""
        image, eye, hits = read_nifti(self.path(name)), Eye(*camera), dict.fromkeys("xyz", 0)
        asked = ["hover.slice", "hover.voxel", "hover.value", "hover.mm"]
        places, steps = [], [*self.ready, *before]
        for k in range(count):
            places.append((round(400 + 370 * ((k * 0.618034) % 1.0)), round(200 + 370 * k / count)))
            steps += ["move {} {}".format(*places[-1]), *(f"print {each}" for each in asked)]
        pairs, _ = self.view(steps)
        for k, place in enumerate(places):
            found, wanted = dict(pairs[4 * k:4 * k + 4]), eye.meet(*place, image, self.AT)
            if wanted is None:
                continue
            self.assertEqual(found["hover.slice"], wanted[0], place)
            self.assertEqual(found["hover.voxel"], ",".join(map(str, wanted[1])), place)
            self.assertEqual(float(found["hover.value"]), value_at(image, wanted[1]), place)
            for a, b in zip(found["hover.mm"].split(","), wanted[2]):
                self.assertAlmostEqual(float(a), b, delta=2e-3)
            hits[wanted[0]] += 1
        print(name, hits)
        self.assertGreaterEqual(min(hits.values()), least)
        self.assertGreater(sum(hits.values()), 10)

    def test_image(self):
        self.check("x.nii", ["show scanner off"])

    def test_mu_map_on_its_own_grid(self):
        self.check("mu.nii", ["show scanner off", "image mu"])

    def test_slices_in_front_of_crystals(self):
        """The far side's crystals, which the slices hide, are not what is under the mouse."""
        self.check("x.nii", ["expect hover.module -1"])
        pairs, _ = self.view([*self.ready, "camera 0 0 300", "move 584 384", "print hover.module", "print hover.slice",
                              "show x off", "show y off", "show z off", "frames 1", "print hover.module",
                              "print hover.slice"])
        texts = [text for _, text in pairs]
        self.assertEqual((texts[0], texts[1], texts[2], texts[3]), ("-1", "x", "4", "none"))

    def test_edge_on(self):
        """Slices seen along their own plane, or nearly so, give what the line of sight meets."""
        for camera in ((0.0, 0.4, 150.0), (-90.0, 89.9, 150.0), (89.7, 12.0, 90.0), (-90.2, 0.2, 120.0)):
            self.ready[-1] = "camera {} {} {}".format(*camera)
            self.check("x.nii", ["show scanner off"], camera=camera, least=0)

    def test_words(self):
        """The line at the bottom has value, voxel, place and slice; K copies it."""
        found = self.values([*self.ready, "show scanner off", "move 585 385", "print hover.text", "print hover.value",
                             "print hover.voxel", "print hover.mm", "print hover.slice", "key k", "print message"])
        planes = {"x": "sagittal", "y": "coronal", "z": "transaxial"}
        text = found["hover.text"]
        value = re.match(r"image ([\d.e-]+), voxel \(", text)
        self.assertAlmostEqual(float(value[1]), float(found["hover.value"]), places=6)
        self.assertIn("voxel (" + found["hover.voxel"].replace(",", ", ") + ")", text)
        self.assertIn(f"{planes[found['hover.slice']]} slice", text)
        for mm in found["hover.mm"].split(","):
            self.assertIn(f"{float(mm):.2f}", text)
        self.assertIn(text, found["message"])

    def test_nothing(self):
        """Beside the slices, on a panel, and without an image."""
        beside = ["show scanner off", "move 300 10", "expect hover.slice none",
                  "expect hover.text none", "move 1000 600", "expect hover.slice none"]
        self.view([*self.ready, *beside])
        found = self.values([*READY, "show scanner off", "move 585 385", "expect hover.slice none",
                             "print hover.value"])
        self.assertEqual(found["hover.value"], "nan")

    def test_tube_over_the_image(self):
        """Both values are told, and the tube's is the one that it has when shown alone."""
        steps = [*READY, "open image x.nii", "wait", "camera {} {} {}".format(*self.CAMERA),
                 "show scanner off", "lor 0 1 1 4 2 2", "wait", "image image"]
        pixels = [(x, y) for y in range(350, 420, 10) for x in range(555, 625, 10)]
        for name in ("hover.tube", "hover.value"):
            steps += sum(([f"move {x} {y}", f"print {name}"] for x, y in pixels), [])
            steps += ["image tube"]
        pairs, _ = self.view(steps)
        over, alone = ([float(text) for _, text in pairs[k:k + len(pixels)]] for k in (0, len(pixels)))
        self.assertEqual([v for v in over if not math.isnan(v)], [b for a, b in zip(over, alone) if not math.isnan(a)])
        self.assertGreater(max(v for v in over if not math.isnan(v)), 0.0)


class Bars(ViewTest):
    def test_colours_of_the_bar_are_the_slices(self):
        """Head on, a slice of a few values: the bar has each one's colour at its place."""
        values = [0.0, 0.25, 0.5, 0.75, 1.0]
        self.image("x.nii", [values[x // 4] for _ in range(10 * 20) for x in range(20)], (20, 20, 10), (1.5, 1.5, 2))
        for name in ("grey", "perceptual", "diverging"):
            self.view([*READY, "open image x.nii", "wait", "show scanner off", "show lors off",
                       "show x off", "show y off", "slice z 1", "camera -90 89.9 120",
                       f"colours {name} -0.5 1.5", "move 300 10", "frames 2", "screenshot a.png"])
            _, _, rows = read_png(self.path("a.png"))
            # The bar lies where the scene's lower left corner is, 230 wide.
            left, y, width = 304, 737, 230
            eye = Eye(-90.0, 89.9, 120.0)
            image = read_nifti(self.path("x.nii"))
            compared = set()
            for x in range(440, 730, 3):
                met = eye.meet(x, 361, image, {"z": 1.0})
                if met is None:
                    continue
                value = value_at(image, met[1])
                on_bar = pixel(rows, left + round((value + 0.5) / 2.0 * width), y)
                if max(abs(a - b) for a, b in zip(on_bar, pixel(rows, x, 361))) <= 6:
                    compared.add(value)
            # an axis and the cross at the point lie over some pixels, over none of a whole value
            self.assertEqual(compared, set(values), name)

    def test_range_in_steps(self):
        self.image("x.nii")
        for bad in ("colours grey 1", "colours grey 2 1", "colours pink"):
            self.view([*READY, "open image x.nii", "wait", bad], code=3)


class Curves(ViewTest):
    def test_profile(self):
        """Each bin's value is told at its place, and all of them are the tube."""
        lor = "lor 0 1 1 4 2 2"
        steps = ["size 700 590", *READY, "tool lor", lor, "wait", "print tube.sum"]
        for x in range(340, 696):
            steps += [f"move {x} 300", "print curve"]
        pairs, _ = self.view(steps)
        told = dict(tuple(map(float, text.split(","))) for _, text in pairs[1:] if text != "none")
        self.assertGreater(len(told), 20)
        places = sorted(told)
        step = (places[-1] - places[0]) / (len(places) - 1)
        for k, place in enumerate(places):
            self.assertAlmostEqual(place, places[0] + k * step, delta=1e-3 * step)
        self.assertAlmostEqual(places[0], -places[-1], delta=1e-3 * step)  # 0 is the middle
        self.assertLess(abs(sum(told.values()) / float(pairs[0][1]) - 1.0), 1e-5)

    def test_tube_with_a_mu_map(self):
        """The one of `matrix --lor`."""
        mu = self.image("mu.nii", [0.0096] * (10 * 10 * 8), (10, 10, 8), (3, 3, 3))
        image = self.image("x.nii")
        found = self.values([*READY, f"open image {image}", f"open mu {mu}", "wait", "lor 0 1 1 4 2 2", "wait",
                             "expect tube.error none", "print tube.sum"])
        self.good(f"matrix --scanner {self.scanner} --lor 0,1,1,4,2,2 --like {image} --mu {mu} --mode exact --mu-as lines",
                  "--backend cpu -o t.nii")
        wanted = sum(read_nifti(self.path("t.nii"))[3])
        self.assertLess(abs(float(found["tube.sum"]) / wanted - 1.0), 1e-5)

    def test_iterations(self):
        """The curve's values are the log-likelihoods of the program, and its places iterations."""
        image = self.image("x.nii")
        counts = self.expected_counts("y.hs", 2000)
        steps = [*READY, f"open image {image}", f"open data {counts}", "wait", "tool live",
                 "recon start 1 4", "wait", "frames 2"]
        for x in range(980, 1270, 4):
            steps += [f"move {x} 380", "print curve"]
        pairs, _ = self.view(steps)
        told = dict(tuple(map(float, text.split(","))) for _, text in pairs if text != "none")
        self.assertEqual(sorted(told), [1.0, 2.0, 3.0, 4.0])
        done = self.json(f"recon --scanner {self.scanner} --data {counts} --like {image} --iterations 4 -o r.nii")
        for one in done["iterations"]:
            self.assertLess(abs(told[one["number"]] / one["log_likelihood"] - 1.0), 1e-5)


class Recon(ViewTest):
    def test_words_of_scripts_are_options(self):
        """Points of a voxel, and RAMLA with its relaxation: the log-likelihood is the program's, and so is each voxel
        that the mouse finds."""
        image, counts = self.image("x.nii"), self.expected_counts("y.hs", 2000)
        moves = [step for k in range(30) for step in (f"move {480 + 200 * (k * 0.618034 % 1.0):.0f} {300 + 6 * k}",
                                                      "print hover.voxel", "print hover.value")]
        likelihoods, seen = [], set()
        for start, options, more in (
                ("1 3 1", "--samples 1", []), ("1 3 27", "--samples 27", []),
                *(("2 3", f"--algorithm ramla --subsets 2 {option}",
                   ["set algorithm ramla", f"set relaxation {relaxation}", f"set fall {fall}"])
                  for relaxation, fall, option in ((0, 0, ""), (0.7, 0, "--relaxation 0.7"),
                                                   (0.7, 0.4, "--relaxation 0.7 --fall 0.4")))):
            pairs, _ = self.view([*READY, f"open image {image}", f"open data {counts}", "wait", *more,
                                  f"recon start {start}", "wait", "print live.log_likelihood", "image live",
                                  "show scanner off", "show x on", "show y on", "camera -60 35 70", *moves])
            done = self.json(f"recon --scanner {self.scanner} --data {counts} --like {image} --iterations 3",
                             *([options] if options else []), "-o r.nii")
            likelihoods.append(float(pairs[0][1]))
            wanted, written = done["iterations"][-1]["log_likelihood"], read_nifti(self.path("r.nii"))
            self.assertLess(abs(likelihoods[-1] / wanted - 1.0), 1e-6, (options, likelihoods))
            for (_, voxel), (_, value) in zip(pairs[1::2], pairs[2::2]):
                if value != "nan":
                    place = tuple(map(int, voxel.split(",")))
                    self.assertLess(abs(float(value) - value_at(written, place)), 1e-5 * max(written[3]), place)
                    seen.add(place)
        self.assertGreater(len(seen), 10)
        self.assertEqual(len({f"{one:.5g}" for one in likelihoods}), 5, likelihoods)
        for words in ("set relaxation -1", "set fall -0.1", "set fall x", "set algorithm art", "recon start 1 3 -1"):
            self.view([*READY, words], code=3)


class Gaps(ViewTest):
    POINT = (9.0, 2.0, -1.0)

    def module_places(self):
        """Middles of the ring's detection planes: 30 mm away, half a crystal deeper or not does not
        change which of two is the farther one by a millimetre."""
        return [(30 * math.cos(k * math.pi / 4), 30 * math.sin(k * math.pi / 4)) for k in range(8)]

    def test_every_module(self):
        """A module that is the nearer end of all its LORs has no window, and it is said; the one
        that is offered has one."""
        row = self.rows("--at", ",".join(map(str, self.POINT)), "--mode", "exact")
        far = [math.dist(self.POINT[:2], place) for place in self.module_places()]
        ends = {k: [far[key[0] if key[3] == k else key[3]] for key in row if k in (key[0], key[3])] for k in range(8)}
        steps = [*READY, "point {} {} {}".format(*self.POINT), "wait"]
        for k in range(8):
            steps += [f"set module {k}", "wait", "print voxel.gap", "print voxel.better"]
        pairs, _ = self.view(steps)
        seen = [0, 0]
        for k in range(8):
            why, better = pairs[2 * k][1], int(float(pairs[2 * k + 1][1]))
            if all(far[k] > other + 5.0 for other in ends[k]):
                self.assertEqual(why, "none")
                seen[0] += 1
            elif all(far[k] < other - 5.0 for other in ends[k]):
                self.assertIn(f"module {k} has no window: it is the nearer end of all {len(ends[k])} LORs", why)
                self.view([*steps[:4], f"set module {better}", "wait", "expect voxel.gap none"])
                seen[1] += 1
        self.assertGreater(min(seen), 1, (ends, far))

    def test_offer_is_taken(self):
        """The button under the sentence turns to the module that is offered."""
        near = [*READY, "point {} {} {}".format(*self.POINT), "wait", "set module 0", "wait",
                "frames 2", "print voxel.better"]
        better = self.values(near)["voxel.better"]
        for y in range(262, 292, 4):  # two or three lines of text are above it
            found = self.values([*near[:-1], f"click 940 {y}", "wait", "print voxel.module", "print voxel.gap"])
            if found["voxel.module"] == better:
                self.assertEqual(found["voxel.gap"], "none")
                return
        self.fail("no button was met")

    def test_no_lor(self):
        """Of a ring whose modules are in coincidence with their opposites alone, at a place beside
        all of their lines."""
        self.write("narrow.yaml", SMALL_RING.replace("field_of_view_mm: 30", "min_module_difference: 4"))
        pairs, _ = self.view(["open scanner narrow.yaml", "wait 600 anyway", "point 24 10 0",
                              "wait", "print voxel.gap", "print voxel.better"])
        self.assertIn("no LOR passes through the point", pairs[0][1])
        self.assertEqual(float(pairs[1][1]), -1.0)


class Tooltips(ViewTest):
    def test_pixel_stays_free(self):
        """A crystal's pixel at R = 1 is 75 screen pixels wide: none of them is covered, in windows
        with and without room beside the picture."""
        left, top, right, bottom = SHEET
        side = (right - left) // 4
        for width, height in ((1280, 800), (700, 590), (460, 540), (420, 800)):
            shift = width - 1280
            down = int(0.38 * (height - 30)) if width < 690 else 0  # Study stands above
            steps = [f"size {width} {height}", *READY, "set rays 1", "set exact 0", "point 1.7 0.2 -3.8", "wait",
                     f"move {width - 5} {height - 40}", "frames 2", "screenshot free.png"]
            boxes = {}
            for i, j in ((0, 0), (1, 1), (2, 1), (3, 3), (1, 3)):
                box = (left + shift + i * side, down + top + j * side, left + shift + (i + 1) * side,
                       down + top + (j + 1) * side)
                if box[1] > height - 60:
                    continue
                boxes[f"{i}{j}.png"] = box
                steps += [f"move {(box[0] + box[2]) // 2} {(box[1] + box[3]) // 2}", "frames 3",
                          f"screenshot {i}{j}.png"]
            self.view(steps)
            _, _, free = read_png(self.path("free.png"))
            for name, box in boxes.items():
                _, _, rows = read_png(self.path(name))
                box = (max(box[0], 0), box[1], box[2], min(box[3], height - 35))
                self.assertEqual(part(rows, box), part(free, box), (width, height, name))
                if width == 1280:  # the tip is there
                    self.assertNotEqual(part(rows, SCENE), part(free, SCENE))
                    self.assertEqual(part(rows, SHEET), part(free, SHEET))


class Lines(ViewTest):
    def test_on_and_off(self):
        """The scene without them is darker, in both tools that draw them; sessions keep it."""
        steps = [*READY, "show scanner off", "point 1.7 0.2 -3.8", "wait", "move 300 10"]
        for name, tool in (("voxel", []), ("lor", ["lor 0 1 1 4 2 2", "tool lor", "wait",
                                                     "show x off", "show y off", "show z off"])):
            steps += [*tool, "expect lors 1", "frames 2", f"screenshot {name}1.png", "key l",
                      "expect lors 0", "frames 2", f"screenshot {name}0.png", "show lors on"]
        self.view([*steps, "show lors off", "save s.yaml"])
        for name in ("voxel", "lor"):
            lit = []
            for k in (0, 1):
                _, _, rows = read_png(self.path(f"{name}{k}.png"))
                lit.append(sum(max(pixel(rows, x, y)) > 60 for y in range(100, 640) for x in range(300, 870)))
            self.assertGreater(lit[1], lit[0] + 100, name)
        self.assertIn("lors: hidden", Path(self.path("s.yaml")).read_text().replace('"', ""))
        self.view(["open session s.yaml", "wait", "expect lors 0"])


class Opening(ViewTest):
    """The dialog, in a window of 1280 x 800: the list's first line is ".."."""
    LINE = 207, 18
    PATH, KIND, OPEN, CANCEL = (556, 476), (556, 500), (406, 524), (458, 524)

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("more"))
        self.image("more/x.nii")
        self.image("more/mu.nii", [0.0096] * 90)
        self.write(".hidden", "")
        # in the dialog: ../, more/, ring.yaml, and in more: ../, mu.nii, x.nii; steps.txt is last
        self.where = os.path.realpath(self.path("."))

    def line(self, number):
        return f"click 450 {self.LINE[0] + number * self.LINE[1]}"

    def test_folders_and_files(self):
        more = os.path.join(self.where, "more")
        found = self.values([*READY, "key o", f"expect open.folder {self.where}", self.line(1),
                             f"expect open.folder {more}", self.line(0), f"expect open.folder {self.where}",
                             self.line(1), self.line(2), "click {} {}".format(*self.OPEN), "expect open.folder none",
                             "wait", "print image.path", "key o", f"expect open.folder {more}",
                             "click {} {}".format(*self.CANCEL), "expect open.folder none"])
        self.assertEqual(found["image.path"], os.path.join(more, "x.nii"))

    def test_double_click(self):
        found = self.values(["show open on", self.line(2), self.line(2), "wait",
                             "expect open.folder none", "print scanner.name"])
        self.assertEqual(found["scanner.name"], "small ring")

    def test_kind(self):
        """A mu-map is opened as one: the list's fourth line."""
        x, y = self.KIND
        self.view([*READY, "key o", self.line(1), self.line(1), f"click {x} {y}", "frames 2",
                   f"click {x} {y + 12 + 10 + 3 * 18}", "frames 2", "click {} {}".format(*self.OPEN), "wait",
                   "image mu", "expect image.path none"])

    def test_typed_paths(self):
        typed = ["click {} {}".format(*self.PATH)]
        found = self.values([*READY, "key o", *typed, "type nothing.nii", "key enter",
                             "print open.error", f"expect open.folder {self.where}"])
        self.assertIn("there is no file", found["open.error"])
        self.assertIn("nothing.nii", found["open.error"])
        self.view(["key o", *typed, "type more", "key enter",
                   f"expect open.folder {self.where}/more", "expect open.error none"])
        self.view(["key o", *typed, "type ring.yaml", "key enter", "wait",
                   'expect scanner.name "small ring"', "expect open.folder none"])

    def test_file_that_is_nothing(self):
        """Its sentence is told, and the dialog can be opened again."""
        _, said = self.view([*READY, "key o", self.line(3), "click {} {}".format(*self.OPEN),
                             "wait 1200 anyway", "key o", f"expect open.folder {self.where}"])
        self.assertIn("steps.txt", said)


class Start(ViewTest):
    """The first line of the start screen's table, in a window of 1280 x 800."""
    LINE = 153, 18

    def test_presets(self):
        names = [one["preset"] for one in self.json("scanner", "list")["scanners"]]
        for number in (names.index("two-opposed-modules"), names.index("cluster-paper-32")):
            wanted = self.json("scanner", "show", names[number])
            found = self.values(["expect start 1", "frames 2", f"click 360 {self.LINE[0] + number * self.LINE[1]}",
                                 "wait", "expect start 0", "print scanner.name", "print scanner.modules"])
            self.assertEqual(found["scanner.name"], wanted["name"])

    def test_goes_and_comes(self):
        """Not while something is opened or open, an image alone too, also after a file that could not be."""
        self.view(["expect start 1", f"open image {self.image('x.nii')}", "wait", "expect start 0"])
        self.view(["expect start 1", "open scanner ring.yaml", "wait", "expect start 0"])
        self.view(["open scanner ./nothing.yaml", "wait 600 anyway", "expect start 1"])
        self.view(["frames 2", "expect start 0"], "--scanner", self.scanner)

    def test_small_windows(self):
        self.view(["size 700 300", "frames 3", "size 720 60", "frames 3", "size 1 1", "frames 3", "expect start 1"])


main({"slices": Slices, "bars": Bars, "curves": Curves, "recon_points": Recon, "gaps": Gaps,
      "tooltips": Tooltips, "lines": Lines, "opening": Opening, "start": Start})
