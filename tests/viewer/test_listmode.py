#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""List mode in the viewer, by scripts, without a window: the elements of an event with its time of flight, live
reconstruction of events, frames."""
import math, struct
from array import array
from pathlib import Path

from steps import SMALL_RING, ViewTest, main, read_nifti
from inputs import header  # of tools/gallery, by steps

TOF_RING = SMALL_RING + "tof: {resolution_ps: 100}\n"
SIGMA_MM = 100 * 0.149896229 / (2 * math.sqrt(2 * math.log(2)))
READY = ["open scanner tof.yaml", "wait"]
GRID = "--grid 16,16,8 --voxel-mm 1.8"
# In a window of 1280 x 800: the choice of kernels and its four lines, the box and slider of time of flight.
KERNELS, LINES, BOX, SLIDER = (1150, 128), [150 + 17 * k for k in range(4)], (896, 153), (1148, 177)


class ListmodeTest(ViewTest):
    def setUp(self):
        super().setUp()
        self.write("tof.yaml", TOF_RING)

    def events(self, count=6000):
        self.good(f"simulate --scanner tof.yaml {GRID} --phantom derenzo --counts {count} --tof-ps 100 -o ev.petsird")
        return "ev.petsird"


class Events(ListmodeTest):
    LOR = "lor 0 1 1 4 2 1"

    def test_where_time_of_flight_puts_it(self):
        """From the middle towards the second crystal; the other way round with the crystals exchanged. Away from
        the grid's ends the shares of the line add up to 1, and without time of flight they are chords."""
        for kernel in ("tube", "line", "exact"):
            steps = [*READY, self.LOR, f"set kernel {kernel}", "wait", "print tube.sum"]
            for lor, tof in ((self.LOR, 0), (self.LOR, -5), (self.LOR, 6), ("lor 4 2 1 0 1 1", 6)):
                steps += [lor, f"set tof {tof}", "wait", "print tube.sum", "print tube.peak_mm"]
            pairs, _ = self.view([*steps, "set tof off", "wait", "print tube.sum", f"expect tube.kernel {kernel}",
                                  "expect tube.error none"])
            numbers = [float(text) for _, text in pairs]
            for found, wanted in zip(numbers[2:9:2], (0, -5, 6, 6)):
                self.assertAlmostEqual(found, wanted, delta=1.4 if kernel == "exact" else 1.0)
            self.assertEqual(numbers[9], numbers[0])
            if kernel != "exact":
                # The grid ends 14.7 mm to either side of the middle, along the line a little farther.
                held = math.erf(14.75 / SIGMA_MM / math.sqrt(2)) / math.erf(3 / math.sqrt(2))
                self.assertAlmostEqual(numbers[1], held, delta=0.004)
                self.assertAlmostEqual(numbers[0], 29.47, delta=0.1)

    def test_what_cannot_be(self):
        self.view([*READY, self.LOR, "set tof 3"], code=3)
        self.view(["open scanner ring.yaml", "wait", self.LOR, "set kernel line", "set tof 3"], code=3)
        self.view([*READY, "set kernel tubes"], code=3)

    def test_panel(self):
        """The kernel is chosen, time of flight switched on, its place drawn along."""
        found = self.values([*READY, "tool lor", self.LOR, "wait", "frames 3", "click {} {}".format(*KERNELS),
                             "frames 3", f"click 1080 {LINES[2]}", "frames 3", "wait", "print tube.kernel",
                             "click {} {}".format(*BOX), "frames 2", "wait",
                             "drag {} {} {} {}".format(*SLIDER, SLIDER[0] + 40, SLIDER[1]), "frames 2", "wait",
                             "print tube.tof_mm", "print tube.peak_mm", "screenshot panel.png"])
        self.assertEqual(found["tube.kernel"], "line")
        self.assertGreater(float(found["tube.tof_mm"]), 5)
        self.assertLess(float(found["tube.tof_mm"]), 14)
        self.assertAlmostEqual(float(found["tube.peak_mm"]), float(found["tube.tof_mm"]), delta=1.0)

    def test_session(self):
        self.view([*READY, self.LOR, "set kernel exact", "set tof -4.5", "wait", "set family listmode",
                   "set elements line", "set algorithm ramla", "tool lor", "save s.yaml"])
        found = self.values(["open session s.yaml", "wait", "print tube.kernel", "print tube.tof_mm",
                             "print tube.peak_mm", "print tool", "save t.yaml"])
        self.assertEqual((found["tube.kernel"], float(found["tube.tof_mm"])), ("exact", -4.5))
        self.assertAlmostEqual(float(found["tube.peak_mm"]), -4.5, delta=1.4)
        for name in ("s.yaml", "t.yaml"):
            text = Path(self.path(name)).read_text()
            self.assertIn("recon:\n  family: listmode\n  algorithm: ramla\n  elements: line\n  subsets: 4\n", text)


class Live(ListmodeTest):
    def test_it_is_the_programs(self):
        """OSEM and RAMLA, with time of flight: the log-likelihood is that of `recon`."""
        self.good(f"phantom point {GRID} -o x.nii")
        events = self.events()
        for kernel, algorithm in (("line", "osem"), ("tube", "ramla")):
            found = self.values([*READY, "open image x.nii", "wait", f"open data {events}", "wait",
                                 "set family listmode", f"set elements {kernel}", f"set algorithm {algorithm}",
                                 "recon start 3 2", "wait", "print live.iterations", "print live.log_likelihood",
                                 "image live"])
            done = self.json(f"recon --operator listmode --scanner tof.yaml --events {events} {GRID} --kernel {kernel}",
                             f"--algorithm {algorithm} --subsets 3 --iterations 2 -o r.nii")
            wanted = done["iterations"][-1]["log_likelihood"]
            self.assertEqual(found["live.iterations"], "2")
            self.assertLess(abs(float(found["live.log_likelihood"]) / wanted - 1), 1e-6)

    def test_events_are_drawn_from_an_image(self):
        """Where no list mode is open; with neither there is a sentence."""
        self.good(f"phantom point {GRID} -o x.nii")
        self.view([*READY, "open image x.nii", "wait", "set family listmode", "set elements line", "set counts 5e4",
                   "recon start 2 3", "wait", "expect live.iterations 3"])
        self.view([*READY, "set counts 0"], code=3)
        self.view([*READY, "tool live", "set family listmode", "recon start", "frames 3", "expect live.iterations 0",
                   "screenshot none.png"])


class Frames(ListmodeTest):
    def make(self):
        self.good(f"recon --operator listmode --scanner tof.yaml --events {self.events()} {GRID} --kernel line",
                  "--frames 3x20 -o f.nii")

    def test_they_come_by_their_numbers(self):
        """In the colours and slices of the last one; values are the file's."""
        self.make()
        found = self.values([*READY, "open image f-2.nii", "wait", "expect image.frames 3", "expect image.frame 2",
                             "slice z 3", "colours grey 0 0.5", "set frame 3", "wait", "expect image.frame 3",
                             "print image.path", "print slices.at_mm", "panes scene", "show scanner off", "camera -60 35 70",
                             "move 600 400", "print hover.voxel", "print hover.value"])
        self.assertTrue(found["image.path"].endswith("f-3.nii"))
        self.assertEqual(float(found["slices.at_mm"].split(",")[2]), 3.0)
        i, j, k = map(int, found["hover.voxel"].split(","))
        self.assertEqual(float(found["hover.value"]), read_nifti(self.path("f-3.nii"))[3][i + 16 * (j + 16 * k)])
        self.view([*READY, "open image f-2.nii", "wait", "set frame 4"], code=2)
        self.view([*READY, "set frame 1"], code=2)
        Path(self.path("f-2.nii")).rename(self.path("alone.nii"))
        self.view([*READY, "open image alone.nii", "wait", "expect image.frames 0"])

    def test_volumes_of_a_file(self):
        """A file of three volumes opens with the first; sessions keep the one that is open."""
        values = [[frame * 100.0 + n for n in range(6 * 5 * 4)] for frame in range(3)]
        head = bytearray(header((6, 5, 4), (3, 3, 3)))
        struct.pack_into("<2h", head, 40, 4, 6)
        struct.pack_into("<h", head, 48, 3)
        Path(self.path("v.nii")).write_bytes(bytes(head) + array("f", sum(values, [])).tobytes())
        found = self.values([*READY, "open image v.nii", "wait", "expect image.frames 3", "expect image.frame 1",
                             "set frame 2", "wait", "print image.path", "panes scene", "show scanner off", "camera -60 35 70",
                             "move 590 390", "print hover.voxel", "print hover.value", "save s.yaml"])
        self.assertTrue(found["image.path"].endswith("v.nii:2"))
        i, j, k = map(int, found["hover.voxel"].split(","))
        self.assertEqual(float(found["hover.value"]), values[1][i + 6 * (j + 5 * k)])
        self.view(["open session s.yaml", "wait", "expect image.frame 2", "drag 190 270 275 270", "wait", "frames 3",
                   "expect image.frame 3"])
        self.view([*READY, "open image v.nii:4", "wait"], code=3)
        for step in ("save v.nii", "screenshot v.nii"):
            self.view([*READY, "open image v.nii", "wait", "set frame 2", "wait", "frames 1", step], code=2)


main({"listmode_events": Events, "listmode_live": Live, "frames": Frames})
