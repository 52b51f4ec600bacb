# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""What the process has to do with it: signals, fork, exit, and what an import costs."""

import os, signal, subprocess, sys, time
from pathlib import Path

import numpy as np
import pytest

import loraster as lr
from conftest import SLOWER

INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np, loraster as lr
op = lr.Operator(lr.Scanner("ge-explore-vista-dr"), {grid}, 0.6, backend="native", store=False)
x = np.ones(op.image_shape, np.float32)
sent = [0.0]
def interrupt():
    time.sleep(0.5)
    sent[0] = time.perf_counter()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
start = time.perf_counter()
try:
    {work}
    print("finished", time.perf_counter() - start)
except KeyboardInterrupt:
    print("interrupted", time.perf_counter() - sent[0])
small = op.subset(0, 200)
assert np.isfinite(small @ x).all()
print("usable")
"""


@pytest.mark.parametrize("work", ["op @ x", "lr.recon.mlem(op, np.ones(op.data_shape, np.float32))"])
def test_ctrl_c_ends_a_call_and_leaves_the_operator(work):
    grid = (40, 40, 16) if SLOWER == 1 else (16, 16, 8)  # a minute of one processor
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(work=work, grid=grid)], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    first, second = run.stdout.splitlines()
    what, seconds = first.split()
    assert (what, second) == ("interrupted", "usable")
    # A call should end within 0.1 s after Ctrl-C; other tests on the same processors delay it.
    assert float(seconds) < 0.1 * max(1.0, os.getloadavg()[0]) * SLOWER


def interrupted(work):
    """Seconds from the SIGINT that the first report of some work sends to its end."""
    sent = []

    def interrupt(*report):
        if not sent:
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        work(interrupt)
    return time.perf_counter() - sent[0]


def test_ctrl_c_ends_reading_and_making(scanner, native, activity, tmp_path):
    lr.write(tmp_path / "ring.yaml", scanner)
    subprocess.run(
        [lr.program(), "simulate", "--scanner", "ring.yaml", "--phantom", "spheres", "--grid", "10,8,5", "--voxel-mm",
         "4", "--samples", "1", "--counts", "1e6", "--backend", "native", "--quiet", "-o", "events.Cdh"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    path = tmp_path / "events.Cdh"
    for work in (
        lambda tell: lr.ListMode(scanner, path, progress=tell),
        lambda tell: lr.Operator(scanner, (20, 16, 10), 2.0, backend="native", store=True, progress=tell),
        lambda tell: native.to_csr(progress=tell),
        lambda tell: native.adjoint(np.ones(native.data_shape, np.float32), progress=tell),
    ):
        assert interrupted(work) < 0.2 * max(1.0, os.getloadavg()[0]) * SLOWER
    assert len(lr.ListMode(scanner, path)) > 9e5
    assert np.isfinite(native @ activity).all()


def test_ctrl_c_closes_the_bar(native, activity, monkeypatch):
    tqdm = pytest.importorskip("tqdm.auto").tqdm
    drawn = tqdm.refresh

    def work(interrupt):
        monkeypatch.setattr(tqdm, "refresh", lambda bar, **given: (drawn(bar, **given), interrupt()))
        native.forward(activity, progress=True)

    assert interrupted(work) < 0.2 * max(1.0, os.getloadavg()[0]) * SLOWER
    assert not tqdm._instances
    assert np.isfinite(native @ activity).all()


def test_a_child_computes_natively(native, activity):
    y = native @ activity
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(native @ activity, y) else 1)
    limit = time.monotonic() + 120
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < limit:
        time.sleep(0.01)
    if ended[0] == 0:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert ended[1] == 0


def test_the_interpreter_ends_with_operators_alive():
    code = ("import numpy as np, loraster as lr\n"
            "op = lr.Operator(lr.Scanner('two-opposed-modules'), (4, 4, 4), 2.0)\n"
            "part = op.subset(0, 1); y = op @ np.ones((4, 4, 4), np.float32)\n" "op.itself = op")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (run.returncode, run.stderr) == (0, "")


def test_an_import_is_quick():
    """Beside NumPy's own, at most 0.15 s; the best of five, where other tests run."""
    code = "import time, numpy; t = time.perf_counter(); import loraster; print(time.perf_counter() - t)"
    seconds = min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5))
    assert seconds <= 0.15 * SLOWER


def test_nothing_but_numpy_is_imported():
    code = "import sys, loraster; print([m for m in ('torch', 'scipy', 'cupy', 'tqdm') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_the_program_comes_along():
    run = subprocess.run([sys.executable, "-m", "loraster", "--version"], capture_output=True, text=True)
    assert run.returncode == 0 and lr.__version__ in run.stdout


def test_types_are_strict():
    """Those of the module, and those that scripts see."""
    pytest.importorskip("mypy")
    root = Path(__file__).resolve().parents[2]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "--config-file", root / "pyproject.toml",
         root / "python/loraster", root / "python/tests/example.py", *(root / "examples/python").glob("*.py")],
        capture_output=True, text=True, cwd=root / "python",
    )  # fmt: skip
    assert run.returncode == 0, run.stdout


def test_import_loads_what_is_used_alone():
    code = """
import sys
import loraster as lr
assert "numpy" not in sys.modules and "loraster.operator" not in sys.modules
for name in lr.__all__:
    assert name in dir(lr)
from loraster import *
assert Operator is lr.Operator and recon.osem is lr.recon.osem and not hasattr(lr, "nothing")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
