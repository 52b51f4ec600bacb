#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transaxial, coronal and sagittal panes: which voxel is where, by arithmetic of our own and the image's file."""
import math, random
from pathlib import Path

import numpy as np

from steps import PANES, Panes, ViewTest, main, read_nifti, read_png, value_at

class Places(ViewTest):
    SIZE, VOXEL = (20, 16, 12), (1.5, 2.0, 2.5)

    def setUp(self):
        super().setUp()
        random.seed(7)
        count = self.SIZE[0] * self.SIZE[1] * self.SIZE[2]
        self.file = read_nifti(self.image("x.nii", [random.random() for _ in range(count)], self.SIZE, self.VOXEL))
        self.ready = ["open image x.nii", "wait"]

    def panes(self, *steps):
        return Panes(self.values([*self.ready, *steps, *(f"print {name}" for name in Panes.ASKED)]), self.file)

    def voxels(self, count):
        return [[random.randrange(n) for n in self.SIZE] for _ in range(count)]


class Clicks(Places):
    def test_a_click_is_one_voxel_in_all_panes(self):
        """The cross-hair of a click in any pane is the same voxel in all three, with the value of the file."""
        panes, steps, wanted = self.panes(), [], []
        cross = [10, 8, 6]  # the image's middle
        for axis, voxel in zip("zyxzyx", self.voxels(6)):
            cross = [cross[k] if "xyz"[k] == axis else voxel[k] for k in range(3)]
            steps += ["click {} {}".format(*panes.pixel(axis, voxel)), "print cross.voxel", "print cross.value"]
            wanted += [cross, None]
            for pane in "xyz":
                steps += ["move {} {}".format(*panes.pixel(pane, cross)), "print hover.voxel", "print hover.value",
                          f"expect hover.slice {pane}", f"expect hover.pane {PANES[pane]}"]
                wanted += [cross, None]
        pairs, _ = self.view([*self.ready, *steps])
        for (_, voxel), (_, value), want in zip(pairs[::2], pairs[1::2], wanted[::2]):
            self.assertEqual((voxel, float(value)), (",".join(map(str, want)), value_at(self.file, want)))

    def test_values_all_over(self):
        """Also where a pane has all the room, is moved and enlarged."""
        for before, axes in ([], "xyz"), (["panes coronal", "scroll 3 control"], "y"):
            first = ["move 500 300"] + before
            panes, steps, wanted = self.panes(*first), [], []
            for axis in axes:
                for voxel in self.voxels(12):
                    here = [[10, 8, 6][k] if "xyz"[k] == axis else voxel[k] for k in range(3)]
                    x, y = panes.pixel(axis, here)
                    left, top, width, height = panes.boxes[axis]
                    if left <= x < left + width and top <= y < top + height:
                        steps += [f"move {x} {y}", "print hover.voxel", "print hover.value"]
                        wanted.append(here)
            pairs, _ = self.view([*self.ready, *first, *steps])
            self.assertGreater(len(wanted), 6)
            for (_, voxel), (_, value), want in zip(pairs[::2], pairs[1::2], wanted):
                self.assertEqual((voxel, float(value)), (",".join(map(str, want)), value_at(self.file, want)))

    def test_what_is_seen_is_the_file(self):
        """Each voxel's middle has the grey of its value, right and front at the left."""
        self.view([*self.ready, "colours grey 0 1", "cross 100 100 100", "frames 1", "screenshot a.png"])
        panes, (_, _, rows) = self.panes(), read_png(self.path("a.png"))
        for axis in "xyz":
            for voxel in self.voxels(40):
                at = [self.SIZE[k] - 1 if "xyz"[k] == axis else voxel[k] for k in range(3)]
                if max(at[k] + 2 - self.SIZE[k] for k in range(3) if "xyz"[k] != axis) > 0:
                    continue  # the cross-hair, which the step put into the last voxel, lies over these
                x, y = panes.pixel(axis, at)
                self.assertLess(abs(rows[y][3 * x] / 255.0 - value_at(self.file, at)), 0.006, (axis, at))

    def test_wheel_and_keys(self):
        """Scrolling in a pane goes through its slices; arrows move the cross-hair as they point."""
        panes = self.panes()
        over = {axis: "move {} {}".format(*panes.pixel(axis, (10, 8, 6))) for axis in "xyz"}
        found, _ = self.view([*self.ready, over["z"], "scroll 2", "print cross.voxel", over["x"], "scroll -3",
                              "print cross.voxel", over["y"], "key pageup", "print cross.voxel", over["z"], "key left",
                              "key down", "print cross.voxel", "scroll -40", "print cross.voxel", over["x"],
                              "key right", "print cross.voxel"])
        self.assertEqual([voxel for _, voxel in found], ["10,8,8", "7,8,8", "7,9,8", "8,8,8", "8,8,0", "8,7,0"])

    def test_one_pane_and_four(self):
        x, y = self.panes().pixel("z", (4, 4, 6))
        found, _ = self.view([*self.ready, "print panes", f"click {x} {y}", f"click {x} {y}", "print panes",
                              "print panes.scene", f"move {x} {y}", "key t", "print panes", "panes scene",
                              "print panes.transaxial", "panes four", "print panes.transaxial"])
        self.assertEqual([text for _, text in found[:4]], ["four", "transaxial", "290,0,0,0", "four"])
        self.assertEqual((found[4][1].split(",")[2:], found[5][1].split(",")[2:]), (["0", "0"], ["294", "384"]))
        self.view([*self.ready, "panes five"], code=3)

    def test_middle_button_moves_all(self):
        panes = self.panes()
        x, y = panes.pixel("z", (10, 8, 6))
        moved = self.panes(f"drag {x} {y} {x + 40} {y - 30} middle")
        for k, want in enumerate((40, -30, 0)):
            self.assertAlmostEqual(moved.middle[k] - panes.middle[k], want * panes.pixel_mm, delta=1e-5)


class Measures(Places):
    """Regions, lines, images combined: against NumPy and the pixels."""
    def setUp(self):
        super().setUp()
        self.array = np.array(self.file[3], dtype=np.float32).reshape(self.SIZE[::-1]).astype(np.float64)
        axes = [o + v * np.arange(n) for n, v, o in zip(self.SIZE, self.VOXEL, self.file[2])]
        self.z, self.y, self.x = np.meshgrid(*axes[::-1], indexing="ij")

    def compare(self, steps, inside):
        names = ["voxels", "mean", "deviation", "total", "smallest", "largest", "ml"]
        found = self.values([*self.ready, *steps, "wait", *(f"print region.{name}" for name in names)])
        values = self.array[inside]
        wanted = [values.size, values.mean(), values.std(), values.sum(), values.min(), values.max(),
                  values.size * np.prod(self.VOXEL) / 1000]
        self.assertGreater(values.size, 20)
        for name, want in zip(names, wanted):
            self.assertAlmostEqual(float(found[f"region.{name}"]), want, delta=1e-11 * abs(want), msg=name)

    def test_regions(self):
        """Mean, deviation, total and the rest are NumPy's."""
        x, y, z = self.x, self.y, self.z
        ellipsoid = ((x - 1) / 9) ** 2 + ((y + 2) / 7.5) ** 2 + ((z - 1.5) / 6.5) ** 2 <= 1
        box = (abs(x + 3) <= 5.2) & (abs(y - 4) <= 6.1) & (abs(z) <= 7)
        self.compare(["region ellipsoid 1 -2 1.5 9 7.5 6.5"], ellipsoid)
        self.compare(["region box -3 4 0 5.2 6.1 7"], box)
        self.compare(["region box -3 4 0 5.2 6.1 7 0.4"], box & (self.array >= 0.4))
        self.compare(["region threshold 0.25 0.75"], (self.array >= 0.25) & (self.array <= 0.75))
        self.compare(["region threshold -1"], self.array >= -1)
        found = self.values([*self.ready, "region box 100 0 0 1 1 1", "wait", "expect region.voxels 0",
                             "print region.mean", "region off", "wait", "print region.voxels"])
        self.assertEqual(found, {"region.mean": "nan", "region.voxels": "0"})
        for bad in ("region box 1 2 3", "region threshold", "region off 1", "region ball 0 0 0 1 1 1"):
            self.view([*self.ready, bad], code=3)

    def test_a_step_sees_what_the_one_before_has_done(self):
        pairs, _ = self.view([*self.ready, "region threshold 1e9", "print region.voxels", "region threshold -1",
                              "print region.voxels", "line -3 0 0 3 0 0", "export line l.csv"])
        self.assertEqual([text for _, text in pairs], ["0", str(self.array.size)])
        self.assertTrue((self.folder / "l.csv").exists())

    def test_a_region_is_drawn(self):
        """A drag from its middle to its rim; what is tinted are its voxels."""
        panes = self.panes("tool measure")
        middle, rim = panes.pixel("z", (10, 8, 6)), panes.pixel("z", (5, 12, 6))
        ready = ["hand ellipsoid", "colours grey 0 1", "cross 100 100 0"]
        found = self.values([*self.ready, *ready, "frames 1", "screenshot a.png", "drag {} {} {} {}".format(*middle, *rim),
                             "wait", "screenshot b.png", "print region.middle_mm", "print region.half_mm",
                             "print region.voxels"])
        at, half = (np.array(list(map(float, found[f"region.{name}"].split(",")))) for name in ("middle_mm", "half_mm"))
        np.testing.assert_allclose(half, [7.5, 8.0, 8.0], atol=2 * panes.pixel_mm)
        inside = sum(((a - m) / h) ** 2 for a, m, h in zip((self.x, self.y, self.z), at, half)) <= 1
        self.assertEqual(int(found["region.voxels"]), inside.sum())
        before, after = (read_png(self.path(name))[2] for name in ("a.png", "b.png"))
        seen = [0, 0]
        for i in range(self.SIZE[0] - 1):
            for j in range(self.SIZE[1] - 1):
                x, y = panes.pixel("z", (i, j, 6))
                is_tinted = before[y][3 * x:3 * x + 3] != after[y][3 * x:3 * x + 3]
                self.assertEqual(is_tinted, bool(inside[6, j, i]), (i, j))
                seen[is_tinted] += 1
        self.assertGreater(min(seen), 20)

    def test_a_drag_from_elsewhere_draws_nothing(self):
        """A button that was pressed in the scene and is released in a pane; the camera is free afterwards."""
        x, y = self.panes("tool measure").pixel("z", (10, 8, 6))
        pairs, _ = self.view([*self.ready, "tool measure", "hand box", f"drag 700 100 {x} {y}", "print camera.turn_deg",
                              f"move {x + 40} {y + 30}", "move 750 150", "print camera.turn_deg", "wait",
                              "print region.voxels"])
        self.assertEqual((pairs[0], pairs[2]), (pairs[1], ("region.voxels", "0")))

    def test_a_drag_stays_in_its_pane(self):
        """Across the border of two panes, a region and a line grow in the plane of the first."""
        panes = self.panes("tool measure")
        x, y = panes.pixel("z", (10, 8, 6))
        left, top, width, height = panes.boxes["z"]
        down = int(top + height + 60)
        drag = f"drag {x} {y} {x + 20} {down}"
        found = self.values([*self.ready, "tool measure", "hand box", drag, "hand line", drag, "print region.half_mm",
                             "print line.mm"])
        half = list(map(float, found["region.half_mm"].split(",")))
        want = [20 * panes.pixel_mm, (down - y) * panes.pixel_mm]
        np.testing.assert_allclose(half, [*want, max(want)], rtol=1e-6)
        self.assertAlmostEqual(float(found["line.mm"]), math.hypot(*want), delta=1e-5)

    def test_lines(self):
        """Length, and each value of the profile, which the mouse reads."""
        ends = (-9.0, -11.0, -10.0), (9.5, 12.0, 8.0)
        steps = ["tool measure", "line {} {} {} {} {} {}".format(*ends[0], *ends[1]), "wait", "print line.mm"]
        pairs, _ = self.view([*self.ready, *steps, *sum(([f"move {x} 250", "print curve"] for x in range(900, 1275)), [])])
        length = math.dist(*ends)
        self.assertAlmostEqual(float(pairs[0][1]), length, delta=1e-9)
        told = dict(tuple(map(float, text.split(","))) for _, text in pairs[1:] if text != "none")
        self.assertGreater(len(told), 20)
        for place, value in told.items():
            mm = [a + place / length * (b - a) for a, b in zip(*ends)]
            places = [(p - o) / v + 0.5 for p, o, v in zip(mm, self.file[2], self.VOXEL)]
            if min(abs(p - round(p)) for p in places) > 1e-3:
                self.assertAlmostEqual(value, value_at(self.file, [math.floor(p) for p in places]), delta=1e-6)
        panes = self.panes("tool measure")
        drag = "drag {} {} {} {}".format(*panes.pixel("x", (10, 3, 3)), *panes.pixel("x", (10, 12, 9)))
        found = self.values([*self.ready, "hand line", drag, "wait", "print line.mm"])
        self.assertAlmostEqual(float(found["line.mm"]), math.hypot(18.0, 15.0), delta=3 * panes.pixel_mm)


class Combined(Places):
    """Two images in one pane, pixel by pixel; the second has a grid of its own."""
    AT = 6

    def setUp(self):
        super().setUp()
        size = (10, 8, 6)
        self.other = read_nifti(self.image("y.nii", [random.random() for _ in range(480)], size, (3.0, 4.0, 5.0)))
        self.ready += ["open second y.nii", "wait", "colours grey 0 1", "cross 100 100 2"]

    def greys(self, *steps):
        """Pairs of values of the two images, and the pixel in the middle of each voxel."""
        self.view([*self.ready, *steps, "frames 1", "screenshot a.png"])
        panes, (_, _, rows), found = self.panes(), read_png(self.path("a.png")), []
        for i in range(self.SIZE[0] - 1):
            for j in range(self.SIZE[1] - 1):
                x, y = panes.pixel("z", (i, j, self.AT))
                found.append(((i, j), value_at(self.file, (i, j, self.AT)), value_at(self.other, (i // 2, j // 2, 3)),
                              rows[y][3 * x:3 * x + 3]))
        return found

    def test_fusion(self):
        for opacity in (0.0, 0.3, 1.0):
            for place, first, second, pixel in self.greys(f"combine fused second {opacity}"):
                want = (1 - opacity) * first + opacity * second / self.largest()
                self.assertLess(abs(pixel[0] / 255.0 - want), 0.01, (opacity, place))

    def test_another_second_image(self):
        """Its window is its own; without a first image it is shown alone."""
        self.image("more.nii", [10.0 * value for value in self.other[3]], self.other[0], self.other[1])
        for place, _, second, pixel in self.greys("combine fused second 1", "open second more.nii", "wait"):
            self.assertLess(abs(pixel[0] / 255.0 - second / self.largest()), 0.01, place)
        centre = [o + v * n for o, v, n in zip(self.other[2], self.other[1], (7, 2, 3))]
        cross = "cross {} {} {}".format(*centre)
        found = self.values(["open second y.nii", "wait", cross, "print cross.value", "print window.high"])
        self.assertEqual(float(found["cross.value"]), value_at(self.other, (7, 2, 3)))
        self.assertEqual(float(found["window.high"]), self.largest())
        panes = self.panes()
        found = self.values(["open second y.nii", "wait", *self.ready[:2], "cross 0 0 0",
                             "move {} {}".format(*panes.pixel("z", (4, 5, 6))), "print hover.value", "print hover.second"])
        self.assertEqual(float(found["hover.value"]), value_at(self.file, (4, 5, 6)))
        self.assertEqual(float(found["hover.second"]), value_at(self.other, (2, 2, 3)))

    def largest(self):
        return max(self.other[3])  # the second image's window is up to its largest voxel

    def test_checkerboard(self):
        """Each voxel is of one of the two, of both about the same number."""
        seen = [0, 0]
        for place, first, second, pixel in self.greys("combine checkerboard"):
            off = [abs(pixel[0] / 255.0 - want) < 0.006 for want in (first, second / self.largest())]
            self.assertTrue(any(off), place)
            seen = [seen[k] + (off[k] and not off[1 - k]) for k in range(2)]
        self.assertGreater(min(seen), 80)

    def test_difference_and_ratio(self):
        """Diverging colours: blue below, red above; the line at the bottom has the number."""
        for way, of in (("difference", lambda a, b: a - b), ("ratio", lambda a, b: math.log2(a / b))):
            for place, first, second, (red, _, blue) in self.greys(f"combine {way} second"):
                if abs(of(first, second)) > 0.1:
                    self.assertEqual(red > blue, of(first, second) > 0.0, (way, place))
        x, y = self.panes().pixel("z", (4, 5, self.AT))
        found = self.values([*self.ready, "combine ratio second", f"move {x} {y}", "print hover.second", "print hover.text"])
        first, second = value_at(self.file, (4, 5, self.AT)), value_at(self.other, (2, 2, 3))
        self.assertEqual(float(found["hover.second"]), second)
        self.assertIn(f"ratio {first / second:.6g}", found["hover.text"])
        self.view([*self.ready, "combine fused mu"], code=1)
        self.view([*self.ready, "combine fused second 2"], code=3)

    def test_projection(self):
        """Of each pane, the largest value along its axis, of which the mouse tells the voxel."""
        array = np.array(self.file[3]).reshape(self.SIZE[::-1])
        steps = ["combine none", "show projection on"]
        self.view([*self.ready, *steps, "cross 100 100 100", "frames 1", "screenshot a.png"])
        panes, (_, _, rows), moves, wanted = self.panes(), read_png(self.path("a.png")), [], []
        for axis in "xyz":
            for voxel in self.voxels(15):
                k = 2 - "xyz".index(axis)
                voxel = [min(n, most - 2) for n, most in zip(voxel, self.SIZE)]
                place = voxel[::-1]
                place[k] = slice(None)
                column = array[tuple(place)]
                x, y = panes.pixel(axis, voxel)
                self.assertLess(abs(rows[y][3 * x] / 255.0 - column.max()), 0.006, (axis, voxel))
                moves += [f"move {x} {y}", "print hover.value", "print hover.voxel"]
                wanted.append((column.max(), [column.argmax() if "xyz"[n] == axis else voxel[n] for n in range(3)]))
        pairs, _ = self.view([*self.ready, *steps, *moves])
        for (_, value), (_, voxel), want in zip(pairs[::2], pairs[1::2], wanted):
            self.assertEqual((float(value), voxel), (want[0], ",".join(map(str, want[1]))))
        other = np.array(self.other[3]).reshape(6, 8, 10)
        found = self.values([*self.ready, "combine difference second", "show projection on",
                             "move {} {}".format(*panes.pixel("y", (7, 8, 4))), "print hover.second", "print hover.value"])
        self.assertEqual(float(found["hover.second"]), other[2, :, 3].max())
        self.assertEqual(float(found["hover.value"]), array[4, :, 7].max())

    def test_session_keeps_both(self):
        """The second image, how it is combined, and the pane that is shown alone."""
        self.view([*self.ready, "panes coronal", "combine fused second 0.25", "save s.yaml"])
        panes = self.panes("panes coronal")
        found = self.values(["open session s.yaml", "wait", "print panes", "move {} {}".format(*panes.pixel("y", (3, 15, 4))),
                             "print hover.second", "save t.yaml"])
        self.assertEqual(found["panes"], "coronal")
        self.assertEqual(float(found["hover.second"]), value_at(self.other, (1, 7, 2)))
        for name in ("s.yaml", "t.yaml"):
            text = Path(self.path(name)).read_text()
            for line in ("panes: coronal", "combined: fused", "opacity: 0.25"):
                self.assertIn(line, text)
        (self.folder / "bad.yaml").write_text(text.replace("opacity: 0.25", "opacity: 2"))
        self.view(["open session bad.yaml"], code=3)

    def test_smooth(self):
        """Between voxels colours are interpolated; in their middles they are the file's."""
        panes = self.panes()
        self.view([*self.ready, "combine none", "show smooth on", "cross 100 100 1.25", "frames 1", "screenshot a.png"])
        _, _, rows = read_png(self.path("a.png"))
        for i, j, _ in self.voxels(40):
            i, j = min(i, self.SIZE[0] - 3), min(j, self.SIZE[1] - 3)
            one, two = panes.pixel("z", (i, j, 6)), panes.pixel("z", (i + 1, j, 6))
            values = value_at(self.file, (i, j, 6)), value_at(self.file, (i + 1, j, 6))
            middle = (one[0] + two[0]) // 2, one[1]
            self.assertLess(abs(rows[middle[1]][3 * middle[0]] / 255.0 - sum(values) / 2), 0.06, (i, j))


class Saved(Places):
    """Slices, profiles and turning scenes as files."""
    def table(self, name):
        lines = [line.split(",") for line in Path(self.path(name)).read_text().splitlines()]
        across, rows = list(map(float, lines[0][1:])), [list(map(float, line)) for line in lines[1:]]
        return lines[0][0], across, [row[0] for row in rows], np.array([row[1:] for row in rows])

    def test_tables(self):
        """The numbers of the file, as the pane has them: right and front at the left, head and front above."""
        array = np.array(self.file[3]).reshape(self.SIZE[::-1])
        slices = {"sagittal": array[:, :, 7], "coronal": array[:, 5, :], "transaxial": array[3]}
        voxel = [o + v * n for o, v, n in zip(self.file[2], self.VOXEL, (7, 5, 3))]
        self.view([*self.ready, "cross {} {} {}".format(*voxel), *(f"export {name} {name}.csv" for name in slices)])
        for name, wanted in slices.items():
            _, across, upwards, values = self.table(f"{name}.csv")
            np.testing.assert_array_equal(values.astype(np.float32), wanted[::-1, ::-1].astype(np.float32))
            self.assertGreater(across[0], across[-1])
            self.assertGreater(upwards[0], upwards[-1])
        self.assertEqual(self.table("coronal.csv")[0], "z mm \\ x mm")
        self.view([*self.ready, "show projection on", "export coronal p.csv"])
        np.testing.assert_array_equal(self.table("p.csv")[3].astype(np.float32),
                                      array.max(axis=1)[::-1, ::-1].astype(np.float32))

    def test_pictures(self):
        """Each voxel is a rectangle of its grey."""
        self.view([*self.ready, "colours grey 0 1", "cross 0 0 1.25", "export transaxial a.png"])
        width, height, rows = read_png(self.path("a.png"))
        self.assertAlmostEqual(width / height, self.SIZE[0] * self.VOXEL[0] / (self.SIZE[1] * self.VOXEL[1]), delta=0.01)
        for i in range(self.SIZE[0]):
            for j in range(self.SIZE[1]):
                x = int((self.SIZE[0] - i - 0.5) * width / self.SIZE[0])
                y = int((self.SIZE[1] - j - 0.5) * height / self.SIZE[1])
                self.assertLess(abs(rows[y][3 * x] / 255.0 - value_at(self.file, (i, j, 6))), 0.006, (i, j))

    def test_the_same_sides_in_all_pictures(self):
        """Markers at +x, +y and +z: +x and +y at the left, else above, in --png, the panes and what is exported."""
        size, voxel, places = (9, 7, 5), (2.0, 2.0, 2.4), {"x": (7, 3, 2), "y": (4, 5, 2), "z": (4, 3, 4)}
        greys, array = {"x": 4.0, "y": 3.0, "z": 2.0}, np.full(size[::-1], 0.1, np.float32)
        for axis, place in places.items():
            array[place[::-1]] = greys[axis]
        self.image("m.nii", [float(value) for value in array.ravel()], size, voxel)
        wanted = {"transaxial": {"x": (-1, 0), "y": (0, 1)}, "coronal": {"x": (-1, 0), "z": (0, 1)},
                  "sagittal": {"y": (-1, 0), "z": (0, 1)}}

        def sides(name, picture, highest):
            """Where the slice's markers are in a grey picture: (-1 left, 1 right; -1 below, 1 above)."""
            found = {}
            for axis in wanted[name]:
                at = np.argwhere(abs(picture - greys[axis] / highest) < 0.01)
                self.assertGreater(len(at), 0, (name, axis))
                down, right = (at.mean(axis=0) + 0.5) / picture.shape - 0.5
                found[axis] = tuple(int(np.sign(s)) if abs(s) > 0.1 else 0 for s in (right, -down))
            return found

        def read_grey(path):
            """Lightness 0 .. 1 of what is grey in a field of 5 x 5 pixels of one colour; else NaN."""
            width, height, rows = read_png(self.path(path))
            colours = np.frombuffer(b"".join(rows), np.uint8).reshape(height, width, 3).astype(float) / 255
            fields = np.lib.stride_tricks.sliding_window_view(np.pad(colours, ((2, 2), (2, 2), (0, 0))), (5, 5, 3))
            is_one = fields.max(axis=(2, 3, 4, 5)) == fields.min(axis=(2, 3, 4, 5))
            return np.where(is_one, colours[..., 0], np.nan)

        steps = ["open image m.nii", "wait", "colours grey 0 4", "cross 0 0 0", "frames 2", "screenshot v.png"]
        values = self.values([*steps, *(f"export {name} {name}.{kind}" for name in wanted for kind in ("png", "csv")),
                              *(f"print panes.{name}" for name in wanted)])
        window = read_grey("v.png")
        for name, want in wanted.items():
            left, top, width, height = map(int, values[f"panes.{name}"].split(","))
            self.assertEqual(sides(name, window[top:top + height, left:left + width], 4), want, "pane")
            self.assertEqual(sides(name, read_grey(f"{name}.png"), 4), want, "PNG")
            self.assertEqual(sides(name, self.table(f"{name}.csv")[3], 1), want, "CSV")

        # Counts that the image itself is expected to give leave it unchanged.
        self.good(f"project {self.on_ring} --image m.nii -o y.h5")
        self.good(f"recon {self.on_ring} --like m.nii --data y.h5 --initial m.nii --iterations 1 -o r.nii --png r.png")
        page = 1 - read_grey("r.png")
        slices = np.flatnonzero(np.diff(np.concatenate(([0], (page > 0).any(axis=0), [0]))))
        self.assertEqual(len(slices), 6, "three slices side by side")
        for name, want, first, last in zip(wanted, wanted.values(), slices[::2], slices[1::2]):
            lines = np.flatnonzero((page[:, first:last] > 0).any(axis=1))
            self.assertEqual(sides(name, page[lines[0]:lines[-1] + 1, first:last], 4), want, "--png")

    def test_profile(self):
        self.view([*self.ready, "line -12 0.5 1.25 12 0.5 1.25", "wait", "export line l.csv"])
        lines = [line.split(",") for line in Path(self.path("l.csv")).read_text().splitlines()]
        self.assertEqual((lines[0], float(lines[-1][0])), (["mm", "value"], 24.0))
        for place, value in ((float(a), float(b)) for a, b in lines[1:]):
            i = (place - 12.0 - self.file[2][0]) / self.VOXEL[0] + 0.5
            if abs(i - round(i)) > 1e-6:
                self.assertAlmostEqual(float(value), value_at(self.file, (math.floor(i), 8, 6)), delta=1e-6)

    def test_turn(self):
        """Pictures of one turn, which differ; the camera stays where it was."""
        found = self.values(["open scanner ring.yaml", *self.ready, "camera 20 30 200", "turn t 4", "wait",
                             "print camera.turn_deg", "camera 110 30 200", "turn u 1", "wait"])
        self.assertEqual(found["camera.turn_deg"], "20")
        pictures = [read_png(self.path(f"t-{k:03d}.png"))[2] for k in range(1, 5)]
        self.assertEqual(len({str(rows) for rows in pictures}), 4)
        self.assertEqual(read_png(self.path("u-001.png"))[2], pictures[1])
        self.assertFalse(Path(self.path("t-005.png")).exists())
        self.view(["open scanner ring.yaml", *self.ready, "camera 20 30 200", "panes scene", "move 500 120", "turn v 4",
                   "camera 70 10 300", "size 900 700", "wait"])
        for k, picture in enumerate(pictures, 1):
            self.assertTrue(read_png(self.path(f"v-{k:03d}.png"))[2] == picture, k)

    def test_refused(self):
        before = Path(self.path("x.nii")).read_bytes()
        for step in ("export coronal x.nii", "export coronal a.txt", "export line a.png", "export line a.csv",
                     "turn a 0", "turn a 100000", "screenshot x.nii", "save x.nii"):
            self.view([*self.ready, "frames 1", step], code=3 if "turn" in step else 2)
        self.assertEqual((Path(self.path("x.nii")).read_bytes(), list(self.folder.glob("a*"))), (before, []))
        self.view(["open scanner ring.yaml", "wait", "export coronal a.png"], code=2)
        self.view([*self.ready, "export coronal none/a.csv"], code=1)


class Handling(Places):
    """Panels that fold, undoing, Esc, L, light panels."""
    def test_fold_at_800_by_600(self):
        """One panel at a time; a press on its cross folds it, one on the strip unfolds it. All of each is usable."""
        prints = [f"print {name}" for name in ["folded.study", "folded.tools", "panes.transaxial"]]
        pairs, _ = self.view([*self.ready, *prints, "size 800 600", "frames 2", *prints, "click 12 40", "frames 2", *prints,
                              "click 278 10", "frames 2", *prints, "click 788 40", "frames 2", *prints, "size 1280 800",
                              "frames 2", *prints])
        texts = [text for _, text in pairs]
        states = [texts[k:k + 2] for k in range(0, len(texts), 3)]
        self.assertEqual(states, [["0", "0"], ["1", "0"], ["0", "1"], ["1", "1"], ["1", "0"], ["0", "0"]])
        sides = [list(map(float, texts[k].split(","))) for k in range(2, len(texts), 3)]
        for (_, _, width, height), least in zip(sides, (290, 180, 230, 370, 180, 290)):
            self.assertGreater(width, least)
            self.assertGreater(height, 280)
        found = self.values([*self.ready, "size 800 600", "frames 2", "tool measure", "region box 0 0 0 5 5 5", "wait",
                             "move 600 200", "frames 2", "click 650 62", "frames 2", "click 650 120", "frames 2",
                             "print region.voxels"])
        self.assertGreater(int(found["region.voxels"]), 0)

    def test_scripts_unfold_one_panel(self):
        """In a narrow window a script, like a click, opens one panel instead of the other; in a wide window both."""
        steps = ["show study on", "frames 1", "show tools on", "frames 1", "print folded.study", "print folded.tools",
                 "show study on", "frames 1", "print folded.study", "print folded.tools"]
        pairs, _ = self.view([*self.ready, "size 800 600", "frames 2", *steps, "size 1280 800", "frames 2", *steps])
        self.assertEqual("".join(text for _, text in pairs), "10" "01" "00" "00")

    def test_a_person_undoes(self):
        """Camera, cross-hair, window and panes go back one by one, and forth again."""
        x, y = self.panes().pixel("z", (4, 4, 6))
        prints = [f"print {name}" for name in ["camera.turn_deg", "cross.voxel", "window.high", "panes"]]
        undo, redo = ["key z control", "frames 1"], ["key y control", "frames 1"]
        pairs, _ = self.view([*self.ready, "camera 20 30 200", "colours grey 0 1", "frames 2", *prints,
                              "drag 700 100 760 100", "frames 1", *prints, f"drag {x} {y} {x + 30} {y}", "frames 1",
                              *prints, f"drag {x} {y} {x + 50} {y + 20} right", "frames 1", *prints, "key t", "frames 1",
                              *prints, *undo, *prints, *undo, *prints, *undo, *prints, *undo, *prints, *undo, *prints,
                              *redo, *redo, *prints, "key y control", "key y control", "key z control",
                              "frames 1", *prints])
        states = [tuple(text for _, text in pairs[k:k + 4]) for k in range(0, len(pairs), 4)]
        self.assertEqual(len(set(states[:5])), 5, states)
        self.assertEqual(states[5:10], [states[3], states[2], states[1], states[0], states[0]])
        self.assertEqual((states[10], states[11]), (states[2], states[3]))

    def test_undo_and_the_program(self):
        """A change that no person has made is no step, also after an undo; other files begin anew, with their windows."""
        step = ["frames 2", "print undo", "print redo"]
        pairs, _ = self.view([*self.ready, "frames 2", "key left", "frames 2", "key left", *step, "key z control", *step,
                              "slice x 0", *step, "key y control", *step])
        self.assertEqual([text for _, text in pairs], ["2", "0", "1", "1", "1", "1", "2", "0"])
        self.image("z.nii", [8.0 + 2.0 * (k % 2) for k in range(8)], (2, 2, 2), (10.0, 10.0, 10.0))
        found = self.values([*self.ready, "colours grey 0 1", "frames 2", "key left", "frames 2", "open image z.nii",
                             "wait", "frames 2", "key z control", "frames 2", "print window.high", "print undo"])
        self.assertEqual(found, {"window.high": "10", "undo": "0"})

    def test_escape_closes_dialogs(self):
        found = self.values([*self.ready, "show open on", "frames 1", "key escape", "print open.folder", "key ?",
                             "frames 1", "key escape", "print help"])
        self.assertEqual(found, {"open.folder": "none", "help": "0"})

    def test_l_takes_the_tube_away(self):
        """Its magenta is seen in the panes, and L removes it with its value."""
        self.image("x.nii", [0.5] * 8000, (20, 20, 20), (1.5, 1.5, 1.5))
        steps = ["open scanner ring.yaml", "open image x.nii", "wait", "colours grey 0 1", "lor 0 1 1 4 1 1", "wait",
                 "image image", "cross 0 0 0", "frames 1", "print panes.sagittal", "screenshot a.png", "key l",
                 "frames 1", "screenshot b.png"]
        left, top, width, height = map(lambda text: int(float(text)), self.values(steps)["panes.sagittal"].split(","))
        def magenta(name):
            _, _, rows = read_png(self.path(name))
            return sum(row[3 * x] > row[3 * x + 1] + 60 and row[3 * x + 2] > row[3 * x + 1] + 60
                       for row in rows[top:top + height] for x in range(left, left + width))
        self.assertGreater(magenta("a.png"), 50)
        self.assertEqual(magenta("b.png"), 0)

    def test_light_panels(self):
        """Panels are light and the panes are as before."""
        self.view([*self.ready, "frames 1", "screenshot a.png", "show light on", "frames 1", "screenshot b.png"])
        panes, (_, _, dark), (_, _, light) = self.panes(), *(read_png(self.path(name)) for name in ("a.png", "b.png"))
        left, top, width, height = map(int, panes.boxes["z"])
        for y in range(top, top + height):
            self.assertEqual(dark[y][3 * left:3 * (left + width)], light[y][3 * left:3 * (left + width)])
        self.assertLess(dark[700][3 * 100], 60)
        self.assertGreater(light[700][3 * 100], 200)


main({"panes": Clicks, "measures": Measures, "combined": Combined, "saved": Saved, "handling": Handling})
