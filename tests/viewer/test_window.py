#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The viewer in a real window, with a mouse and a keyboard: Xvfb is the screen, xdotool the hands."""
import ctypes, os, random, shutil, struct, subprocess, threading, time
from pathlib import Path

import numpy as np

from steps import HANG_S, SHEET, Eye, Panes, ViewTest, main, read_nifti, value_at

RECENT = (345, 524)  # the first line of recent files on the start screen
XVFB_STOP_S = 10.0 # before it is killed


class Screen:
    """An X server of our own, which picks its number itself. It stays as it is when a client leaves
    and none is left for a moment: else it begins anew, and whoever comes then is turned away."""
    def __init__(self, size, *more):
        read, write = os.pipe()
        self.server = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", f"{size[0]}x{size[1]}x24",
                                        "-nolisten", "tcp", "-noreset", *more], pass_fds=[write],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as pipe:
            number = pipe.readline().strip()
        if not number:
            self.close()
            raise RuntimeError("Xvfb did not start")
        self.env = {name: value for name, value in os.environ.items() if name != "WAYLAND_DISPLAY"}
        # 56 bytes stay with a library of the window system that is unloaded by then, so that no
        # suppression can name it; all other tests search for leaks.
        self.env["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        self.env["DISPLAY"] = f":{number}"
        # A key whose release comes late, since xdotool had to wait for a processor, is one key.
        with Display(self.env["DISPLAY"]) as display:
            display.x11.XAutoRepeatOff(display.server)

    def close(self):
        self.server.terminate()
        try:
            self.server.wait(XVFB_STOP_S)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()


class Display:
    """What xdotool has no words for, by libX11."""
    def __init__(self, name):
        self.x11 = ctypes.CDLL("libX11.so.6")
        pointer, number = ctypes.c_void_p, ctypes.c_ulong
        for function, result, arguments in (
                ("XOpenDisplay", pointer, [ctypes.c_char_p]),
                ("XAutoRepeatOff", ctypes.c_int, [pointer]),
                ("XInternAtom", number, [pointer, ctypes.c_char_p, ctypes.c_int]),
                ("XSendEvent", ctypes.c_int, [pointer, number, ctypes.c_int, ctypes.c_long, pointer]),
                ("XGetImage", pointer, [pointer, number, *[ctypes.c_int] * 2, *[ctypes.c_uint] * 2,
                                        number, ctypes.c_int]),
                ("XGetPixel", number, [pointer, ctypes.c_int, ctypes.c_int]),
                ("XDestroyImage", ctypes.c_int, [pointer]),
                ("XCloseDisplay", ctypes.c_int, [pointer])):
            getattr(self.x11, function).restype = result
            getattr(self.x11, function).argtypes = arguments
        self.server = self.x11.XOpenDisplay(name.encode())
        assert self.server, name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.x11.XCloseDisplay(self.server)

    def shows_something(self, window):
        """Whether its upper left corner, where a panel is, is no longer black."""
        all_planes, z_pixmap, edge = 0xffffffff, 2, 16
        image = self.x11.XGetImage(self.server, window, 0, 0, edge, edge, all_planes, z_pixmap)
        pixels = [self.x11.XGetPixel(image, x, y) for x in range(edge) for y in range(edge)]
        self.x11.XDestroyImage(image)
        return any(pixel & 0xffffff for pixel in pixels)

    def pixel(self, window, x, y):
        """(red, green, blue) on the screen."""
        image = self.x11.XGetImage(self.server, window, x, y, 1, 1, 0xffffffff, 2)
        colour = self.x11.XGetPixel(image, 0, 0)
        self.x11.XDestroyImage(image)
        return tuple(colour >> shift & 255 for shift in (16, 8, 0))

    def ask_to_close(self, window):
        """Sends WM_DELETE_WINDOW."""
        event = ClientMessage(type=33, window=window, format=32,
                              message=self.x11.XInternAtom(self.server, b"WM_PROTOCOLS", 0))
        event.data[0] = self.x11.XInternAtom(self.server, b"WM_DELETE_WINDOW", 0)
        assert self.x11.XSendEvent(self.server, window, 0, 0, ctypes.byref(event))


class ClientMessage(ctypes.Structure):
    """XClientMessageEvent, as long as an XEvent."""
    _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("sent", ctypes.c_int),
                ("display", ctypes.c_void_p), ("window", ctypes.c_ulong), ("message", ctypes.c_ulong),
                ("format", ctypes.c_int), ("data", ctypes.c_long * 5), ("rest", ctypes.c_long * 14)]


class Viewer:
    """The program in a window, and the values it tells of."""
    def __init__(self, command, screen, folder):
        self.screen, self.values, self.said = screen, {}, []
        self.news = threading.Condition()  # a value has come, or none will come any more
        self.has_ended = False
        self.process = subprocess.Popen(command, env=screen.env, cwd=folder, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.threads = [threading.Thread(target=self.listen),
                        threading.Thread(target=lambda: self.said.extend(self.process.stderr))]
        for thread in self.threads:
            thread.start()
        self.window = None

    def listen(self):
        for line in self.process.stdout:
            name, _, text = line.rstrip("\n").partition(" ")
            with self.news:
                self.values[name] = text
                self.news.notify_all()
        with self.news:
            self.has_ended = True
            self.news.notify_all()

    def find(self):
        """The window, by its name, once it is seen."""
        while self.process.poll() is None:
            found = self.xdotool("search", "--onlyvisible", "--name", "^LORaster", check=False)
            if found:
                self.window = found.split()[0]
                return True
            time.sleep(0.1)
        return False

    def xdotool(self, *words, check=True):
        done = subprocess.run(["xdotool", *map(str, words)], env=self.screen.env, text=True,
                              capture_output=True, check=False, timeout=HANG_S)
        assert not check or done.returncode == 0, (words, done.stderr)
        return done.stdout

    def move(self, x, y):
        self.xdotool("mousemove", "--window", self.window, round(x), round(y))

    def key(self, name):
        self.xdotool("windowfocus", self.window, "key", name)

    def until(self, name, good):
        """Waits until a value is as it should be; gives the value."""
        def is_good():
            return name in self.values and good(self.values[name])
        with self.news:
            self.news.wait_for(lambda: self.has_ended or is_good(), HANG_S)
            if not is_good():
                raise AssertionError(f"{name} is {self.values.get(name)}: {self.said}")
            return self.values[name]

    def hover(self, x, y):
        """Moves the mouse, until values are told of two frames that knew of it. It must tell of
        "mouse" and, after all others, of "frames"."""
        self.move(x, y)
        self.until("mouse", lambda text: text == f"{round(x)},{round(y)}")
        self.redraw()

    def redraw(self):
        now = int(self.values["frames"])
        self.until("frames", lambda text: int(text) > now + 2)

    def press(self, x, y):
        """Hovers, clicks, and waits until frames have come that knew of it."""
        self.hover(x, y)
        self.xdotool("click", 1)
        self.redraw()

    def end(self):
        """Its exit code."""
        code = self.process.wait(HANG_S)
        for thread in self.threads:
            thread.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        if not self.process.stdout.closed:
            self.end()


class Window(ViewTest):
    def setUp(self):
        super().setUp()
        for tool in ("Xvfb", "xdotool"):
            if shutil.which(tool) is None:
                self.skipTest(f"no {tool}: apt-get install {tool.lower()}")
        self.screen = Screen((1400, 900))
        self.addCleanup(self.screen.close)

    def start(self, *arguments):
        """The viewer, once its window is seen."""
        viewer = Viewer([self.program, "view", *arguments], self.screen, self.folder)
        self.addCleanup(viewer.stop)
        self.assertTrue(viewer.find(), f"no window: {viewer.said}")
        return viewer

    def open(self, *asked, before=()):
        """The viewer with the ring, which tells of these values, once nothing is computed any more."""
        script = self.write("window.txt", "\n".join(["wait", *before, "wait", "stay " + " ".join(asked)]) + "\n")
        viewer = self.start("--scanner", self.scanner, "--script", script)
        for name in asked:
            viewer.until(name, lambda _: True)
        return viewer

    def close(self, viewer):
        """As a window manager does: WM_DELETE_WINDOW."""
        with Display(self.screen.env["DISPLAY"]) as display:
            display.ask_to_close(int(viewer.window))
        self.assertEqual(viewer.end(), 0, viewer.said)

    def test_opens_and_closes(self):
        """As a person starts it, without any script."""
        viewer = self.start("--scanner", self.scanner)
        with Display(self.screen.env["DISPLAY"]) as display:
            while not display.shows_something(int(viewer.window)):
                self.assertIsNone(viewer.process.poll(), viewer.said)
                time.sleep(0.1)
        self.close(viewer)
        self.assertEqual(viewer.said, [])

    def test_closes_while_it_computes(self):
        self.close(self.start("--scanner", "siemens-mmr"))

    def test_histo_images_reconstructed_live(self):
        """On the device that draws the window, without a byte to it in an iteration."""
        values = [1.0 if 6 < k % 21 < 14 and 5 < k // 21 % 19 < 13 else 0.1 for k in range(21 * 19 * 9)]
        self.image("spot.nii", values, (21, 19, 9), (4, 4, 4))
        self.good(f"direct deposit --activity spot.nii --scanner {self.scanner} --tof-ps 150 --azimuths 4 --tilts 1",
                  "--count 4000 -o y.h5")
        asked = ["live.iterations", "live.on_device", "live.backend", "live.to_device"]
        viewer = self.open(*asked, before=["open histo y.h5", "wait", "direct 0 0 150 variant1", "wait",
                                           "set family direct", "recon device", "recon start 2 3"])
        viewer.until("live.iterations", lambda text: text == "3")
        viewer.until("live.on_device", lambda text: text == "1")
        viewer.until("live.backend", lambda text: text in ("compute", "cuda"))
        viewer.until("live.to_device", lambda text: text == "0")
        self.close(viewer)

    def test_keys(self):
        viewer = self.open("help", "camera.height_deg", "camera.distance_mm", "tool", before=["camera 30 10 500"])
        viewer.key("question")
        viewer.until("help", lambda text: text == "1")
        viewer.key("F1")
        viewer.until("help", lambda text: text == "0")
        viewer.key("z")
        viewer.until("camera.height_deg", lambda text: float(text) == 89.9)
        self.assertEqual(float(viewer.values["camera.distance_mm"]), 500.0)
        viewer.key("f")
        viewer.until("camera.distance_mm", lambda text: float(text) < 400.0)
        viewer.key("Tab")
        viewer.until("tool", lambda text: text == "LOR")
        self.close(viewer)

    def test_mouse_turns_and_zooms(self):
        viewer = self.open("camera.turn_deg", "camera.height_deg", "camera.distance_mm",
                           "camera.at_mm", before=["camera 30 10 300"])
        viewer.move(500, 300)
        viewer.xdotool("mousedown", 1)
        viewer.move(550, 320)
        viewer.move(600, 377)
        viewer.xdotool("mouseup", 1)
        viewer.until("camera.turn_deg", lambda text: abs(float(text) - 30 + 180 * 100 / 770) < 1e-6)
        viewer.until("camera.height_deg", lambda text: abs(float(text) - 10 - 180 * 77 / 770) < 1e-6)
        viewer.xdotool("click", 4)
        viewer.until("camera.distance_mm", lambda text: abs(float(text) - 270.0) < 1e-6)
        viewer.xdotool("mousedown", 3)
        viewer.move(640, 377)
        viewer.xdotool("mouseup", 3)
        viewer.until("camera.at_mm", lambda text: text != "0.000000,0.000000,0.000000")
        self.close(viewer)

    def test_value_under_the_mouse(self):
        """What the window shows under the mouse is what a script shows there, which test_view.py compares with the
        matrix."""
        at = ["set module -1", "set rays 4", "point 1.7 0.2 -3.8"]
        asked = ["touched", "touched.point_exact", "touched.point_sampled"]
        viewer, places, steps = self.open(*asked, "mouse", "frames", before=at), [], []
        left, top, right, bottom = SHEET
        for k in range(32):
            places.append((left + round((right - left) * ((k * 0.618034) % 1.0)),
                           top + round((bottom - top) * ((k + 0.5) / 32))))
            steps += ["move {} {}".format(*places[-1]), *(f"print {name}" for name in asked)]
        pairs, _ = self.view(["open scanner ring.yaml", "wait", *at, "wait", *steps])
        for k, (x, y) in enumerate(places):
            viewer.hover(x, y)
            for name, want in pairs[3 * k:3 * k + 3]:
                viewer.until(name, lambda text, want=want: text == want)
        touched = [want for _, want in pairs[::3] if want != "none" and "-1" not in want]
        self.assertGreater(len(touched), 4, pairs)
        self.close(viewer)

    def test_panes(self):
        """A press in each pane puts the cross-hair on that voxel, which the other panes and the file have there too; the
        wheel, the right button and Shift do what they are known for."""
        random.seed(11)
        size, voxel_mm = (20, 16, 12), (1.5, 2.0, 1.3)
        path = self.image("x.nii", [random.random() for _ in range(20 * 16 * 12)], size, voxel_mm)
        asked = [*Panes.ASKED, "cross.voxel", "cross.value", "hover.voxel", "hover.value", "window.low", "window.high",
                 "panes", "mouse", "frames"]
        viewer = self.open(*asked, before=[f"open image {path}", "wait", "colours grey 0 1"])
        image, cross = read_nifti(path), [10, 8, 6]
        panes = Panes(viewer.values, image)
        for axis, voxel in (("z", (3, 4, 0)), ("y", (15, 0, 9)), ("x", (0, 11, 2))):
            cross = [cross[k] if "xyz"[k] == axis else voxel[k] for k in range(3)]
            viewer.hover(*panes.pixel(axis, cross))
            viewer.xdotool("click", 1)
            viewer.until("cross.voxel", lambda text: text == ",".join(map(str, cross)))
            viewer.until("cross.value", lambda text: float(text) == value_at(image, cross))
            for pane in "xyz":
                viewer.hover(*panes.pixel(pane, cross))
                viewer.until("hover.voxel", lambda text: text == ",".join(map(str, cross)))
                viewer.until("hover.value", lambda text: float(text) == value_at(image, cross))
        x, y = panes.pixel("z", (10, 8, 6))
        viewer.hover(x, y)
        viewer.xdotool("click", 4, "click", 4)
        viewer.until("cross.voxel", lambda text: text == f"{cross[0]},{cross[1]},{cross[2] + 2}")

        # 100 pixels to the right double the width, 50 upwards raise the level by a quarter of it.
        for held, button in (([], 3), (["shift"], 1)):
            low, high = float(viewer.values["window.low"]), float(viewer.values["window.high"])
            viewer.hover(x, y)
            viewer.xdotool("windowfocus", viewer.window, *(["keydown", *held] if held else []), "mousedown", button)
            viewer.move(x + 30, y - 20)
            viewer.move(x + 100, y - 50)
            level, half = 0.5 * (low + high) + 0.25 * (high - low), high - low
            viewer.until("window.low", lambda text: abs(float(text) - (level - half)) < 1e-9)
            viewer.until("window.high", lambda text: abs(float(text) - (level + half)) < 1e-9)
            viewer.xdotool("mouseup", button, *(["keyup", *held] if held else []))
        viewer.hover(x, y)
        pixel_mm = float(viewer.values["panes.pixel_mm"])
        viewer.xdotool("keydown", "ctrl", "click", 4, "keyup", "ctrl")
        viewer.until("panes.pixel_mm", lambda text: abs(float(text) * 1.1 - pixel_mm) < 1e-9)
        viewer.key("t")
        viewer.until("panes", lambda text: text == "transaxial")
        viewer.key("t")
        viewer.until("panes", lambda text: text == "four")
        self.close(viewer)

    def choose(self, viewer, x, y, number):
        """An entry of the list that opens below a field."""
        viewer.press(x, y)
        viewer.press(x, y + 24 + 17 * number)

    def test_regions_fusion_and_folding(self):
        """By the panels' own fields: an ellipsoid drawn with the mouse has NumPy's mean, two images are fused, and at 800 x
        600 one panel folds while the other unfolds."""
        random.seed(5)
        size = (20, 16, 12)
        first, second = (self.image(name, [random.random() for _ in range(20 * 16 * 12)], size, (1.5, 2.0, 1.3))
                         for name in ("x.nii", "y.nii"))
        asked = [*Panes.ASKED, "region.mean", "region.voxels", "region.middle_mm", "region.half_mm", "hover.value",
                 "hover.second", "folded.study", "folded.tools", "mouse", "frames"]
        viewer = self.open(*asked, before=[f"open image {first}", f"open second {second}", "wait", "combine none"])
        images = [read_nifti(path) for path in (first, second)]
        panes = Panes(viewer.values, images[0])
        viewer.press(1241, 38)
        self.choose(viewer, 1150, 62, 1)
        viewer.move(*panes.pixel("z", (10, 8, 6)))
        viewer.xdotool("mousedown", 1)
        viewer.move(*panes.pixel("z", (8, 9, 6)))
        viewer.move(*panes.pixel("z", (6, 11, 6)))
        viewer.xdotool("mouseup", 1)
        viewer.until("region.voxels", lambda text: int(text) > 50)
        viewer.hover(1000, 700)
        middle, half = (np.array(viewer.values[f"region.{name}"].split(","), float) for name in ("middle_mm", "half_mm"))
        values = np.array(images[0][3], float).reshape(size[::-1])
        axes = [images[0][2][k] + images[0][1][k] * np.arange(size[k]) for k in (2, 1, 0)]
        z, y, x = np.meshgrid(*axes, indexing="ij")
        inside = sum(((a - m) / h) ** 2 for a, m, h in zip((x, y, z), middle, half)) <= 1
        self.assertEqual(int(viewer.values["region.voxels"]), inside.sum())
        self.assertAlmostEqual(float(viewer.values["region.mean"]), values[inside].mean(), delta=1e-9)

        self.assertEqual(viewer.values["hover.second"], "nan")
        self.choose(viewer, 190, 512, 1)
        viewer.hover(*panes.pixel("y", (4, 8, 9)))
        viewer.until("hover.second", lambda text: float(text) == value_at(images[1], (4, 8, 9)))
        viewer.until("hover.value", lambda text: float(text) == value_at(images[0], (4, 8, 9)))

        viewer.xdotool("windowsize", viewer.window, 800, 600)
        viewer.until("folded.study", lambda text: text == "1")
        viewer.press(12, 200)
        viewer.until("folded.study", lambda text: text == "0")
        viewer.until("folded.tools", lambda text: text == "1")
        viewer.press(788, 200)
        viewer.until("folded.tools", lambda text: text == "0")
        viewer.press(788, 10)
        viewer.until("folded.tools", lambda text: text == "1")
        viewer.until("panes.transaxial", lambda text: float(text.split(",")[2]) > 370)
        self.close(viewer)

    def test_value_on_slices(self):
        """Value, voxel and place under the mouse are the image file's, by a line of sight and a
        reader of our own, and the screen is as light there; a click chooses that voxel."""
        random.seed(3)
        size, voxel_mm, at = (20, 16, 12), (1.5, 2.0, 1.3), {"x": 1.0, "y": -3.0, "z": 3.0}
        path = self.image("x.nii", [random.random() for _ in range(20 * 16 * 12)], size, voxel_mm)
        camera = (-60.0, 35.0, 110.0)
        viewer = self.open("hover.slice", "hover.voxel", "hover.value", "hover.mm", "voxel.point_mm", "mouse", "frames",
                           before=[f"open image {path}", "wait", "panes scene", "show scanner off", "show lors off",
                                   *(f"slice {axis} {mm}" for axis, mm in at.items()),
                                   "camera {} {} {}".format(*camera), "colours grey 0 1"])
        image, eye, hits, grey = read_nifti(path), Eye(*camera), dict.fromkeys("xyz", 0), []
        for k in range(40):
            x, y = round(430 + 310 * ((k * 0.618034) % 1.0)), round(260 + 250 * k / 40)
            met = eye.meet(x, y, image, at)
            if met is None:
                continue
            axis, voxel, mm = met
            viewer.hover(x, y)
            value = value_at(image, voxel)
            self.assertEqual(viewer.values["hover.slice"], axis, (x, y))
            self.assertEqual(viewer.values["hover.voxel"], ",".join(map(str, voxel)), (x, y))
            self.assertEqual(float(viewer.values["hover.value"]), value, (x, y))
            with Display(self.screen.env["DISPLAY"]) as display:
                colour = display.pixel(int(viewer.window), x, y)
            grey.append(max(abs(each - 255.0 * value) for each in colour) < 2.0)
            hits[axis] += 1
            if k % 4 == 0:
                self.click_there(viewer, mm)
        print(hits, sum(grey), "as light")
        self.assertGreater(min(hits.values()), 2)
        self.assertGreater(sum(grey), 0.8 * len(grey))  # axes and the cross lie over a few
        self.close(viewer)

    def click_there(self, viewer, mm):
        viewer.xdotool("click", 1)
        viewer.until("voxel.point_mm", lambda text: all(abs(float(a) - b) < 2e-3 for a, b in zip(text.split(","), mm)))

    def test_start_screen(self):
        """A preset is clicked on, another file is chosen in the dialog."""
        script = self.write("start.txt", "stay start scanner.name open.folder image.path mouse frames\n")
        self.image("x.nii")
        viewer = self.start("--script", script)
        viewer.until("start", lambda text: text == "1")
        listed = self.json("scanner", "list")["scanners"]
        viewer.press(360, 153 + [one["preset"] for one in listed].index("two-opposed-modules") * 18)
        viewer.until("scanner.name", lambda text: "two opposed" in text.lower())
        viewer.until("start", lambda text: text == "0")
        viewer.key("o")
        viewer.until("open.folder", lambda text: text == os.path.realpath(self.folder))
        viewer.press(450, 207 + 3 * 18)  # ../, ring.yaml, start.txt, x.nii
        viewer.press(406, 524)
        viewer.until("image.path", lambda text: text.endswith("/x.nii"))
        viewer.until("open.folder", lambda text: text == "none")
        self.close(viewer)

    def test_recent_files(self):
        """What was opened in a window is on the next one's start screen, and a click opens it again."""
        self.screen.env["LORASTER_CACHE"] = str(self.folder / "notes")
        self.image("x.nii")
        viewer = self.start("--scanner", self.scanner, "--image", self.path("x.nii"))
        notes = self.folder / "notes" / "recent.txt"
        while not (notes.exists() and "x.nii" in notes.read_text()):
            self.assertIsNone(viewer.process.poll(), viewer.said)
            time.sleep(0.1)
        self.close(viewer)
        self.assertEqual([os.path.basename(line) for line in notes.read_text().splitlines()],
                         ["x.nii", os.path.basename(self.scanner)])
        script = self.write("start.txt", "screenshot start.png\nstay start open.recent image.path mouse frames\n")
        viewer = self.start("--script", script)
        viewer.until("open.recent", lambda text: text.endswith("/x.nii"))
        viewer.press(*RECENT)
        viewer.until("image.path", lambda text: text.endswith("/x.nii"))
        self.close(viewer)

    def test_recent_frames(self):
        """Only what was opened is remembered: a file once for all of its volumes, and no frame of a slider."""
        self.screen.env["LORASTER_CACHE"] = str(self.folder / "notes")
        for name in ("f-1.nii", "f-2.nii", "v.nii"):
            self.image(name)
        file = Path(self.path("v.nii"))
        data = bytearray(file.read_bytes())
        count = len(data) - 352
        struct.pack_into("<h", data, 40, 4)
        struct.pack_into("<h", data, 48, 2)
        file.write_bytes(bytes(data) + bytes(data[-count:]))
        steps = ["open image f-1.nii", "wait", "set frame 2", "wait", "open image v.nii", "wait", "expect image.frames 2",
                 "set frame 2", "wait", "open scanner ring.yaml", "wait", "stay scanner.modules"]
        viewer = self.start("--script", self.write("start.txt", "\n".join(steps) + "\n"))
        viewer.until("scanner.modules", lambda text: int(text) > 0)
        self.close(viewer)
        notes = (self.folder / "notes" / "recent.txt").read_text().splitlines()
        self.assertEqual([os.path.basename(line) for line in notes], ["ring.yaml", "v.nii", "f-1.nii"])

    def test_look_is_kept(self):
        """Light panels are there again in the next window, until they are dark again."""
        self.screen.env["LORASTER_CACHE"] = str(self.folder / "notes")
        script = self.write("start.txt", "stay light mouse frames\n")
        for before in ("0", "1", "0"):
            viewer = self.start("--script", script)
            viewer.until("light", lambda text: text == before)
            viewer.hover(122, 142)
            viewer.xdotool("click", 1)
            viewer.until("light", lambda text: text != before)
            self.close(viewer)

    def test_no_opengl(self):
        """A screen without a driver: the sentence says what to install."""
        bare = Screen((640, 480), "-extension", "GLX")
        self.addCleanup(bare.close)
        env = dict(bare.env, __EGL_VENDOR_LIBRARY_FILENAMES="/nonexistent")
        self.refuse(4, ["OpenGL 4.5", "install a driver", "libgl1-mesa-dri", "loraster info",
                        "--no-window"], "view", "--scanner", self.scanner, env=env)

    def test_typing(self):
        """A click into the second field of the point, a number, Enter."""
        viewer = self.open("voxel.point_mm", "help", "camera.height_deg", "mouse", "frames")
        viewer.hover(1144, 62)
        viewer.xdotool("click", 1)
        viewer.key("ctrl+a")
        viewer.xdotool("windowfocus", viewer.window, "type", "--delay", "60", "4.5")
        viewer.key("Return")
        viewer.until("voxel.point_mm", lambda text: "4.5" in text.split(",")[1])
        self.close(viewer)

    def test_resizing(self):
        viewer = self.open("window.size", "frames")
        for size in ((640, 480), (1, 1), (1399, 37), (1280, 800)):
            viewer.xdotool("windowsize", viewer.window, *size)
            viewer.until("window.size", lambda text, want=f"{size[0]}x{size[1]}": text == want)
            now = int(viewer.values["frames"])
            viewer.until("frames", lambda text, now=now: int(text) > now + 3)
        self.close(viewer)

    def test_screen_goes_away(self):
        """The server dies: the program ends by itself, with a session saved before untouched."""
        viewer = self.open("frames", before=["save kept.yaml"])
        kept = (self.folder / "kept.yaml").read_bytes()
        self.screen.close()
        self.assertGreaterEqual(viewer.end(), 0, viewer.said)
        self.assertEqual((self.folder / "kept.yaml").read_bytes(), kept)

    def test_frames_a_second(self):
        done = self.good("view", "--scanner", self.scanner, "--bench-frames", "20", env=self.screen.env)
        found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
        self.assertEqual(found["size"], "1280x800")
        self.assertAlmostEqual(float(found["frames_per_second"]) * float(found["frame_ms"]), 1000.0, delta=30.0)
        print(done.stdout)


main({"window": Window})
