#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The viewer in a real window, with a mouse and a keyboard: Xvfb is the screen, xdotool the hands."""
import ctypes
import os
import shutil
import subprocess
import threading
import time

from steps import SHEET, ViewTest, crystals, main

PATIENCE_S = 60.0


class Screen:
    """An X server of our own, which picks its number itself. It stays as it is when a client leaves
    and none is left for a moment: else it begins anew, and whoever comes then is turned away."""
    def __init__(self, size):
        read, write = os.pipe()
        self.server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{size[0]}x{size[1]}x24",
             "-nolisten", "tcp", "-noreset"], pass_fds=[write], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
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

    def close(self):
        self.server.terminate()
        try:
            self.server.wait(10)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()


def ask_to_close(display, window):
    """Sends WM_DELETE_WINDOW."""
    x11 = ctypes.CDLL("libX11.so.6")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XInternAtom.restype = ctypes.c_ulong
    x11.XInternAtom.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    x11.XSendEvent.argtypes = [ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int, ctypes.c_long,
                               ctypes.c_void_p]
    x11.XCloseDisplay.argtypes = [ctypes.c_void_p]
    server = x11.XOpenDisplay(display.encode())
    assert server, display
    event = ClientMessage(type=33, window=window, format=32,
                          message=x11.XInternAtom(server, b"WM_PROTOCOLS", 0))
    event.data[0] = x11.XInternAtom(server, b"WM_DELETE_WINDOW", 0)
    assert x11.XSendEvent(server, window, 0, 0, ctypes.byref(event))
    x11.XCloseDisplay(server)


class ClientMessage(ctypes.Structure):
    """XClientMessageEvent, as long as an XEvent."""
    _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("sent", ctypes.c_int),
                ("display", ctypes.c_void_p), ("window", ctypes.c_ulong),
                ("message", ctypes.c_ulong), ("format", ctypes.c_int), ("data", ctypes.c_long * 5),
                ("rest", ctypes.c_long * 14)]


class Viewer:
    """The program in a window, and the values it tells of."""
    def __init__(self, command, screen, folder):
        self.screen, self.values, self.said = screen, {}, []
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
            self.values[name] = text

    def find(self):
        """The window, by its name."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self.process.poll() is None:
            found = self.xdotool("search", "--onlyvisible", "--name", "^LORaster", check=False)
            if found:
                self.window = found.split()[0]
                return True
            time.sleep(0.1)
        return False

    def xdotool(self, *words, check=True):
        done = subprocess.run(["xdotool", *map(str, words)], env=self.screen.env, text=True,
                              capture_output=True, check=False, timeout=PATIENCE_S)
        assert not check or done.returncode == 0, (words, done.stderr)
        return done.stdout

    def move(self, x, y):
        self.xdotool("mousemove", "--window", self.window, round(x), round(y))

    def key(self, name):
        self.xdotool("windowfocus", self.window, "key", name)

    def until(self, name, good):
        """Waits until a value is as it should be; gives the value."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if name in self.values and good(self.values[name]):
                return self.values[name]
            time.sleep(0.02)
        raise AssertionError(f"{name} is {self.values.get(name)}: {self.said}")

    def end(self):
        """Its exit code, after at most PATIENCE_S."""
        code = self.process.wait(PATIENCE_S)
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

    def open(self, *asked, before=(), arguments=()):
        """The viewer with the ring, which tells of these values, once nothing is computed any more."""
        script = self.write("window.txt", "\n".join(["wait", *before, "wait", "stay " + " ".join(
            asked)]) + "\n")
        viewer = Viewer([self.program, "view", "--scanner", self.scanner, "--script", script,
                         *arguments], self.screen, self.folder)
        self.addCleanup(viewer.stop)
        self.assertTrue(viewer.find(), f"no window: {viewer.said}")
        for name in asked:
            viewer.until(name, lambda _: True)
        return viewer

    def close(self, viewer):
        """As a window manager does: WM_DELETE_WINDOW."""
        ask_to_close(self.screen.env["DISPLAY"], int(viewer.window))
        self.assertEqual(viewer.end(), 0, viewer.said)

    def test_opens_and_closes(self):
        """As a person starts it, without any script."""
        viewer = Viewer([self.program, "view", "--scanner", self.scanner], self.screen, self.folder)
        self.addCleanup(viewer.stop)
        self.assertTrue(viewer.find(), f"no window: {viewer.said}")
        time.sleep(0.5)
        self.assertIsNone(viewer.process.poll())
        self.close(viewer)
        self.assertEqual(viewer.said, [])

    def test_closes_while_it_computes(self):
        viewer = Viewer([self.program, "view", "--scanner", "siemens-mmr"], self.screen,
                        self.folder)
        self.addCleanup(viewer.stop)
        self.assertTrue(viewer.find(), f"no window: {viewer.said}")
        self.close(viewer)

    def test_keys(self):
        viewer = self.open("help", "camera.height_deg", "camera.distance_mm", "tool",
                           before=["camera 30 10 500"])
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
        """What the window shows under the mouse is what a script shows there, and the matrix has."""
        at = ["set module -1", "set rays 4", "point 1.7 0.2 -3.8"]
        asked = ["touched", "touched.point_exact", "touched.point_sampled"]
        viewer = self.open(*asked, before=at)
        point = ["--at", "1.7,0.2,-3.8"]
        rows = {"touched.point_exact": self.rows(*point, "--mode", "exact"),
                "touched.point_sampled": self.rows(*point, "--mode", "sampled", "--rays", "4")}
        left, top, right, bottom = SHEET
        compared = 0
        for k in range(64):
            x = left + round((right - left) * ((k * 0.618034) % 1.0))
            y = top + round((bottom - top) * ((k + 0.5) / 64))
            there = dict(self.view(["open scanner ring.yaml", "wait", *at, "wait", f"move {x} {y}",
                                    *(f"print {name}" for name in asked)])[0]
                         ) if k % 16 == 0 else None
            viewer.move(x, y)
            time.sleep(0.15 if there is None else 0.5)
            if there is not None:
                for name in asked:
                    viewer.until(name, lambda text, want=there[name]: text == want)
            touched = viewer.values["touched"]
            if touched != "none" and "-1" not in touched:
                compared += self.compare(viewer, rows)
        self.assertGreater(compared, 10)
        self.close(viewer)

    def compare(self, viewer, rows):
        end = time.monotonic() + PATIENCE_S
        while True:
            key = crystals(viewer.values["touched"])
            wrong = [(name, viewer.values[name], row.get(key, 0.0)) for name, row in rows.items()
                     if abs(float(viewer.values[name]) - row.get(key, 0.0)) >
                     1e-6 * row.get(key, 0.0)]
            if not wrong:
                return 1
            # the three lines of one frame may not have arrived yet
            self.assertLess(time.monotonic(), end, (key, wrong))
            time.sleep(0.05)

    def test_typing(self):
        """A click into the second field of the point, a number, Enter."""
        viewer = self.open("voxel.point_mm", "help", "camera.height_deg")
        viewer.move(1010, 62)
        time.sleep(0.3)
        viewer.xdotool("click", 1)
        time.sleep(0.3)
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
        done = self.good("view", "--scanner", self.scanner, "--bench-frames", "20",
                         env=self.screen.env)
        found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
        self.assertEqual(found["size"], "1280x800")
        self.assertAlmostEqual(float(found["frames_per_second"]) * float(found["frame_ms"]), 1000.0,
                               delta=30.0)
        print(done.stdout)


if __name__ == "__main__":
    main({"window": Window})
