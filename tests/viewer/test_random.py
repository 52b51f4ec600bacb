#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The viewer withstands whatever a person does to it: random steps of a script, without a window, in a folder of
good and bad files. LORASTER_TEST_SEED is the seed, 1 if it is not there; LORASTER_TEST_STEPS the count."""
import os, random, struct
from pathlib import Path

from steps import SMALL_RING, ViewTest, main


class Random(ViewTest):
    def setUp(self):
        super().setUp()
        good = Path(self.image("x.nii")).read_bytes()
        self.image("mu.nii", [0.0096] * 1000, (10, 10, 10), (2, 2, 2))
        self.image("nan.nii", [float("nan"), float("inf"), -1e38] * 30)
        self.expected_counts("y.h5", 1000)
        self.write("overlap.yaml", SMALL_RING.replace("radius_mm: 30", "radius_mm: 10"))
        self.write("empty.yaml", "")
        self.write("lone.yaml", SMALL_RING.replace("modules: 8", "modules: 1"))
        self.write("session.yaml", self.session())
        self.write("notes.txt", "nothing that is known\n")
        for name, data in {"short.nii": good[:380], "size.nii": good[:42] + struct.pack("<3h", 30000, 30000, 30000) +
                           good[48:], "noise.h5": bytes((k * k * 37 + k) % 256 for k in range(3000)),
                           "x.npy": b"\x93NUMPY\x01\x00\x10\x00{'descr': 'zz'}\n"}.items():
            Path(self.path(name)).write_bytes(data)
        os.mkdir(self.path("folder.nii"))

    def session(self):
        self.view(["open scanner ring.yaml", "wait", "open image x.nii", "wait", "set module -1", "save saved.yaml"])
        return Path(self.path("saved.yaml")).read_text()

    def place(self, dice):
        """Often on the panels, at times beside the window."""
        width, height = self.size
        where, x, y = dice.random(), dice.randrange(width), dice.randrange(height)
        if where < 0.4:
            x = width - dice.randrange(400)
        elif where < 0.6:
            x = dice.randrange(290)
        elif where > 0.95:
            x -= int(2 * width * dice.random())
            y += int(3 * height * dice.random())
        return f"{x} {y}"

    def resize(self, dice):
        """One pixel, a few, some hundreds, or the usual size."""
        most = {0: 1, 1: 40, 2: 1400, 3: 1400}.get(dice.randrange(6))
        self.size = [1 + dice.randrange(most) for _ in range(2)] if most else [1280, 800]
        return "size {} {}".format(*self.size)

    def step(self, dice):
        keys = ["escape", "enter", "tab", "backspace", "left", "right", "up", "down", "pageup", "pagedown", "f1"]
        files = ["no such file.yaml", *sorted(os.listdir(self.folder))]
        hands = ["left", "left", "right", "middle", "shift"]
        turns = 1e6 * dice.random() if dice.randrange(20) == 0 else 20 * dice.random() - 10
        return dice.choices([lambda: "move " + self.place(dice), lambda: "click " + self.place(dice),
                             lambda: f"drag {self.place(dice)} {self.place(dice)} " + dice.choice(hands),
                             lambda: f"scroll {turns:.3f} " + dice.choice(["", "control"]),
                             lambda: "key " + (dice.choice(keys) if dice.randrange(3) else chr(dice.choice([*range(65,
                                                                                                                   91),
                                                                                                            47]))),
                             lambda: 'type "{}"'.format("".join(dice.choices("0123456789.-+e \u00e9\u03b1",
                                                                             k=1 + dice.randrange(6)))),
                             lambda: self.resize(dice), lambda: f'open file "./{dice.choice(files)}"',
                             lambda: "tool " + dice.choice(["voxel", "lor", "maps", "live", "doctor", "direct",
                                                             "measure"]),
                             lambda: "hand " + dice.choice(["cross", "box", "ellipsoid", "line"]),],
                            weights=[16, 30, 12, 8, 12, 6, 6, 7, 3, 2])[0]()

    def test_random(self):
        seed = int(os.environ.get("LORASTER_TEST_SEED", "1"))
        count = int(os.environ.get("LORASTER_TEST_STEPS", "1000"))
        print(f"seed {seed}, {count} steps")
        dice = random.Random(seed)
        self.size = [1280, 800]
        steps = [word for _ in range(count) for word in (self.step(dice), "frames 1")]
        # Files that cannot be read are part of it: the last wait forgets their errors.
        done = self.run_program(*self.arguments(["open scanner ring.yaml", "wait", *steps, "recon stop", "key escape",
                                                 "wait 600 anyway", "frames 3", "print frames"]))
        said = done.stderr
        self.assertEqual(done.returncode, 0, said)
        frames = [line for line in done.stdout.splitlines() if line.startswith("frames ")]
        self.assertEqual(len(frames), 1, said)
        self.assertGreater(int(frames[0].split()[1]), 0.9 * count)
        for sign in ("Sanitizer", "runtime error", "Assertion"):
            self.assertNotIn(sign, said)
        self.assertIn("error: ", said, "no bad file was opened")


class Threads(ViewTest):
    """All that goes on beside the window, begun, paused, stopped, replaced and left running."""
    def test_jobs(self):
        self.image("x.nii", [1.0 + k % 5 for k in range(15 * 15 * 9)], (15, 15, 9), (2, 2, 2))
        self.good("direct project --image x.nii --tof-ps 50 --azimuths 2 --tilts 1 --backend cpu -o y.h5")
        steps = ["open image x.nii", "open scanner ring.yaml", "wait", "tool live"]
        for place in ("device", "host"):
            steps += [f"recon {place}", "recon start 1 2", "wait",
                      "expect live.on_device " + str(int(place == "device")), "recon start 1 0", "frames 6",
                      "recon pause", "frames 3", "recon step", "frames 3", "recon resume", "frames 4", "recon stop",
                      "direct 30 0 50 variant1", "open histo y.h5", "sensitivity", "lor 0 1 1 4 2 2", "point 1 2 3",
                      "point 2 1 0", "open file x.nii", "wait 1200 anyway"]
        done = self.run_program(*self.arguments([*steps, "recon start 1 0", "sensitivity",
                                                 "point 0 0 1", "frames 4", "quit"]))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("Sanitizer", done.stderr)


main({"random": Random, "threads": Threads})
