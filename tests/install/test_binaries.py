#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads every program and library of the build tree and of an installed copy: where they look for libraries, how they
are guarded, which libraries are not for what is installed, and which names the library gives away."""
import argparse, os, shutil, subprocess, sys, tempfile
from pathlib import Path


def run(words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=Path)
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--sanitized", action="store_true", help="their own checks take over")
    parser.add_argument("--optimized", action="store_true", help="string functions are checked")
    return parser.parse_args()


def is_linked(path):
    """Whether this is a program or a shared library: ELF of type 2 or 3."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(18)
    return head[:4] == b"\x7fELF" and int.from_bytes(head[16:18], sys.byteorder) in (2, 3)


def linked_files(folder):
    """All but what CMake made to try out compilers."""
    return [Path(at) / name for at, _, names in os.walk(folder) for name in names
            if "CMakeFiles" not in at and is_linked(Path(at) / name)]


def dynamic(path):
    done = run(["readelf", "-dW", path])
    assert done.returncode == 0, done.stderr
    return done.stdout


def search_folders(path):
    """Entries of RUNPATH and RPATH, an empty one too."""
    entries = []
    for line in dynamic(path).splitlines():
        if "(RUNPATH)" in line or "(RPATH)" in line:
            entries += line[line.index("[") + 1:line.rindex("]")].split(":")
    return entries


def check_search(path):
    for entry in search_folders(path):
        assert entry.startswith(("/", "$ORIGIN")), f"{path} looks for libraries in {entry!r}"


def check_guards(path, arguments):
    facts = dynamic(path)
    assert "BIND_NOW" in facts, f"{path}: symbols are bound late"
    segments = run(["readelf", "-lW", path]).stdout
    assert "GNU_RELRO" in segments, f"{path}: tables of the linker can be written to"
    stack = [line for line in segments.splitlines() if "GNU_STACK" in line]
    assert stack and "RWE" not in stack[0], f"{path}: the stack is executable"
    assert "DYN (" in run(["readelf", "-hW", path]).stdout, f"{path} stands at a fixed address"
    if arguments.sanitized:
        return
    names = run(["readelf", "--dyn-syms", "-W", path]).stdout
    assert "__stack_chk_fail" in names, f"{path}: the stack is not guarded"
    if arguments.optimized:
        assert "printf_chk" in names, f"{path}: string functions are not checked"


def needed(path):
    """Names of the libraries that a program or library asks for by itself."""
    return [line[line.index("[") + 1:line.rindex("]")] for line in dynamic(path).splitlines() if "(NEEDED)" in line]


def check_licences(installed, built):
    """FFTW's licence is the GPL, cuFFT's NVIDIA's: `loraster bench` alone has them, where they are, and
    it stays in the build tree."""
    bench = [path for path in built if path.name == "loraster-bench"]
    assert bench and "loraster-bench" not in [path.name for path in installed], (bench, installed)
    for path in installed:
        everything = run(["ldd", path])
        assert everything.returncode == 0, everything.stderr
        named = " ".join(needed(path)) + everything.stdout
        for library in ("libfftw", "libcufft"):
            assert library not in named, f"{path} needs {library}: {named}"


def check_start_without_devices(installed):
    """The program and a shared library start where there is neither OpenGL nor CUDA nor HDF5: plugins have them.
    That of OpenGL brings no X11."""
    names = [path.name for path in installed]
    assert "lr_gl.so" in names, names
    for path in installed:
        if path.name.startswith("lr_"):
            shown = [line.split()[-1] for line in run(["nm", "-D", "--defined-only", path]).stdout.splitlines()]
            assert path.name.replace(".so", "_plugin") in shown, f"{path} shows {shown}"
    for path in installed:
        gl = ("libGL.", "libEGL", "libOpenGL", "libGLEW")
        hdf5 = ("libhdf5", "libcurl", "libcrypto")
        others = ("libcairo", "libfontconfig", "libX11", "libxcb", "libglfw", "libcuda", "libnifti")
        allowed = {"lr_gl.so": ("libEGL", "libOpenGL"), "lr_hdf5.so": hdf5, "loraster-hdf5-reader": hdf5}
        if path.name.startswith("lr_") and path.name not in allowed:
            continue
        everything = " ".join(needed(path)) + run(["ldd", path]).stdout
        for library in (*gl, *hdf5, *others):
            if library not in allowed.get(path.name, ()):
                assert library not in everything, f"{path} needs {library}: {everything}"


def check_names(folder):
    """The library, static or shared, gives away what lr/ declares and nothing else."""
    library, = (path for name in ("liblr.a", "liblr.so") for path in folder.rglob(name))
    shown = ["-D"] if library.suffix == ".so" else ["-g"]
    lines = run(["nm", *shown, "--defined-only", library]).stdout.splitlines()
    names = [line.split()[-1] for line in lines if len(line.split()) == 3]
    assert "lr_operator_create_sized" in names, f"{library}: {len(names)} names"
    others = [name for name in names if not name.startswith("lr_")]
    assert not others, f"{library}: {len(others)} other names: {others[:5]}"
    inside = [name for name in names if name in ("lr_alloc", "lr_log_write", "lr_error")]
    assert not inside, f"{library} gives away its inside: {inside}"


def check_start(program, folder):
    """A library of the folder where the program is started is not loaded."""
    for name in needed(program):
        (folder / name).write_text("no library\n")
    env = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    done = run([program, "--version"], cwd=folder, env=env)
    assert done.returncode == 0, done.stderr


def check(folder, arguments):
    prefix = folder / "usr"
    done = run([arguments.cmake, "--install", arguments.build, "--prefix", prefix])
    assert done.returncode == 0, done.stderr
    installed = linked_files(prefix)
    built = linked_files(arguments.build)
    assert len(installed) >= 2 and len(built) >= 2, (installed, built)
    for path in installed + built:
        check_search(path)
    for path in installed:
        check_guards(path, arguments)
    check_licences(installed, built)
    check_start_without_devices(installed)
    check_names(prefix)
    here = folder / "data"
    here.mkdir()
    check_start(arguments.build / "loraster", here)
    check_start(prefix / "bin" / "loraster", here)
    print(f"{len(built)} built, {len(installed)} installed: {[str(p.name) for p in installed]}")


if shutil.which("readelf") is None:
    print("skipped: no readelf (binutils)")
    sys.exit(77)
with tempfile.TemporaryDirectory(prefix="loraster-binaries-") as temporary:
    check(Path(temporary), read_arguments())
