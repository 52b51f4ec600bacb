# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""The viewer that Python opens: on a screen of its own, at the interpreter's end, and without a screen."""

import logging, os, shutil, signal, subprocess, sys, time

import pytest

import loraster as lr
from conftest import VOXEL_MM

HANG_S = 300


def until(is_so, what):
    limit = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < limit, what
        time.sleep(0.05)


def is_alive(pid):
    """Neither gone nor a zombie, which only waits for its parent."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def plain():
    """The environment without the address sanitizer, for programs that are not ours."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


@pytest.fixture
def screen(monkeypatch):
    for tool in ("Xvfb", "xdotool"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool}")
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "1000x700x24", "-nolisten", "tcp", "-noreset"],
        pass_fds=[write], env=plain(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(write)
    with os.fdopen(read) as pipe:
        number = pipe.readline().strip()
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", f":{number}")
    yield
    server.terminate()
    server.wait()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder of the viewer's files, gone when it has ended. A viewer that is stopped saves its session here."""
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "files"))
    monkeypatch.chdir(tmp_path)
    os.mkdir("files")
    yield tmp_path / "files"
    until(lambda: not os.listdir("files"), "the viewer's files are left behind")


def num_windows():
    return len(subprocess.run(["xdotool", "search", "--onlyvisible", "--name", "^LORaster"], env=plain(),
                              capture_output=True, text=True, timeout=HANG_S).stdout.split())  # fmt: skip


END = """
import os, sys
import loraster as lr
import conftest
operator = conftest.make_operator(conftest.make_scanner(), "native")
viewer = lr.view(conftest.make_scanner(), lr.phantom("spheres", conftest.GRID, conftest.VOXEL_MM), conftest.VOXEL_MM)
print(viewer.pid, flush=True)
{end}
"""


@pytest.mark.parametrize(
    "end, code, words",
    [
        ("", 0, ""),
        ("import subprocess; subprocess.run(['xdotool', 'search', '--sync', '--onlyvisible', '--name', '^LORaster'],"
         "stdout=subprocess.DEVNULL)", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("raise RuntimeError('ours')", 1, "RuntimeError: ours"),
        ("os._exit(4)", 4, ""),
        ("os.kill(os.getpid(), 9)", -9, ""),
        ("del viewer", 0, ""),
    ],
)  # fmt: skip
def test_the_interpreter_ends_with_a_viewer_open(screen, folder, end, code, words):
    """It ends as without one, and at once, also for who waits for its output; the window stays until it is closed."""
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    run = subprocess.run(
        [sys.executable, "-c", END.format(end=end)], capture_output=True, text=True, timeout=HANG_S,
        env=dict(os.environ, PYTHONPATH=path),
    )  # fmt: skip
    viewer = int(run.stdout)
    try:
        assert run.returncode == code, run.stderr
        assert run.stderr.endswith(words + "\n") if words else run.stderr == ""
        until(num_windows, "no window opens")
        assert is_alive(viewer)
    finally:
        os.kill(viewer, signal.SIGTERM)
    until(lambda: not is_alive(viewer), "the viewer does not end")


def test_two_at_once(screen, folder, scanner, activity):
    viewers = [lr.view(scanner, activity, VOXEL_MM), lr.view(scanner)]
    until(lambda: num_windows() == 2, "no two windows open")
    assert len(os.listdir(folder)) == 2
    viewers[0].terminate()
    viewers[0].wait(HANG_S)
    until(lambda: len(os.listdir(folder)) == 1, "the files of the first are left behind")
    assert viewers[1].poll() is None and num_windows() == 1
    viewers[1].kill()
    viewers[1].wait(HANG_S)


def test_without_a_screen_there_is_a_sentence(folder, scanner, activity, monkeypatch, caplog):
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    with pytest.raises(lr.NoDeviceError, match="there is no screen to open the viewer on: .* set DISPLAY"):
        lr.view(scanner)
    # A screen that does not answer is found by the viewer.
    monkeypatch.setenv("DISPLAY", ":4711")
    with caplog.at_level(logging.ERROR, "loraster"):
        viewer = lr.view(scanner)
        assert viewer.wait(HANG_S) > 0
        until(lambda: caplog.records, "no word of a screen that does not answer")
    assert "there is no screen to open a window on" in caplog.text


def test_images_that_cannot_be_shown_open_nothing(folder, scanner, activity, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":4711")
    with pytest.raises(TypeError, match="voxel_mm"):
        lr.view(scanner, activity)
