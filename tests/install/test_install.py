#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the build into a temporary folder, then compiles programs against the copy with nothing but
what pkg-config says, moves it elsewhere, and runs them and the installed program there."""
import argparse, json, os, re, subprocess, sys, tempfile
from pathlib import Path

def run(words, **options):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "cmake", "compiler", "pkg-config", "version"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--flags", default="")
    return parser.parse_args()


def find_one(prefix, *names):
    found = [path for name in names for path in prefix.rglob(name)]
    assert len(found) == 1, f"{names}: installed {len(found)} times: {found}"
    return found[0]


def check_documents(folder):
    """Links of the documents lead to what is installed."""
    for page in [folder / "README.md", *(folder / "docs").rglob("*.md")]:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)#:]+)[^):]*\)", text):
            assert (page.parent / target).exists(), f"{page}: {target} is not installed"


def check_bench(program, env, folder, build):
    """`loraster bench` is named and stays at home; whoever wants it is told where it comes from."""
    env = {name: value for name, value in env.items() if name != "LORASTER_LIBEXEC"}
    assert "  bench correspondence " in run([program, "--help"], env=env)
    words = [program, "bench", "correspondence", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env, cwd=folder)
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr.count("\n") == 1, done.stderr
    for part in ("loraster-bench", "is not installed", "cmake --build", "LORASTER_LIBEXEC"):
        assert part in done.stderr, done.stderr
    there = run(words, env=dict(env, LORASTER_LIBEXEC=build), cwd=folder)
    assert "usage: loraster bench correspondence" in there, there


def check_host_program(library, env, folder):
    """A program that is elsewhere and loads the library, as Python's modules do: the library finds its plugins and
    the program that reads HDF5 by its own place."""
    env = {name: value for name, value in env.items() if name != "LD_LIBRARY_PATH"}
    run([sys.executable, "-c", HOST_PROGRAM, library], env=env, cwd=folder)
    assert (folder / "host.h5").exists()


PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(outsiders LANGUAGES C CXX)
find_package(loraster 0.1 REQUIRED)
add_executable(first first.c)
add_executable(version version.cpp)
target_link_libraries(first loraster::loraster)
target_link_libraries(version loraster::loraster)
"""

HOST_PROGRAM = """
import ctypes, sys
lr = ctypes.CDLL(sys.argv[1])
for name in ("lr_scanner_read", "lr_lors_create", "lr_lor_data_create", "lr_lor_data_read"):
    getattr(lr, name).restype = ctypes.c_void_p
lr.lr_lor_data_write.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
scanner = ctypes.c_void_p(lr.lr_scanner_read(b"two-opposed-modules", None))
lors = ctypes.c_void_p(lr.lr_lors_create(scanner, None))
data = lr.lr_lor_data_create(lors, None)
assert lr.lr_lor_data_write(b"host.h5", lors, data, None) == 0
assert lr.lr_lor_data_read(b"host.h5", lors, None)
"""


def check(folder, arguments):
    prefix = folder / "usr"
    run([arguments.cmake, "--install", arguments.build, "--prefix", prefix])
    file = find_one(prefix, "loraster.pc")
    env = dict(os.environ, PKG_CONFIG_PATH=str(file.parent))
    tool = arguments.pkg_config
    run([tool, "--validate", "loraster"], env=env)
    version = run([tool, "--modversion", "loraster"], env=env)
    assert version == arguments.version, f"loraster.pc says {version}"
    library = Path(run([tool, "--variable=libdir", "loraster"], env=env)).resolve()
    assert library == find_one(prefix, "liblr.a", "liblr.so").parent.resolve(), library

    # Sources are copied out of the tree, so that no header is found beside them.
    words = {flag: run([tool, flag, "loraster"], env=env).split() for flag in ("--cflags", "--libs")}
    here = Path(__file__).resolve().parent
    for source in (here / "outsider.c", here.parents[1] / "examples" / "first.c"):
        # The example takes few voxels here; tests/cli/test_documents.py looks at its whole image.
        (folder / source.name).write_text(source.read_text().replace("(int[]){20, 20, 4}", "(int[]){20, 20, 1}"))
        run([arguments.compiler, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *arguments.flags.split(),
             *words["--cflags"], source.name, "-o", source.stem, *words["--libs"]], cwd=folder)
    # The same through CMake, in C and in C++.
    (folder / "CMakeLists.txt").write_text(PROJECT)
    (folder / "version.cpp").write_text('#include <lr/lr.h>\nint main() { return lr_version()[0] == 0; }\n')
    flags = [f"-DCMAKE_{language}_FLAGS={arguments.flags}" for language in ("C", "CXX")]
    run([arguments.cmake, "-S", folder, "-B", folder / "project", f"-DCMAKE_PREFIX_PATH={prefix}", *flags])
    run([arguments.cmake, "--build", folder / "project"])
    run([folder / "project" / "version"], env=env)
    # The copy is moved, and finds its parts where it is now.
    shared = list(prefix.rglob("liblr.so"))
    old, prefix = prefix, folder / "moved" / "prefix"
    prefix.parent.mkdir()
    old.rename(prefix)
    file, library = (prefix / path.resolve().relative_to(old.resolve()) for path in (file, library))
    env["PKG_CONFIG_PATH"] = str(file.parent)
    programs = run([tool, "--variable=libexecdir", "loraster"], env=env)
    plugins = Path(run([tool, "--variable=pluginsdir", "loraster"], env=env)).resolve()
    assert plugins == find_one(prefix, "lr_gl.so").parent.resolve(), plugins
    check_documents(prefix / "share" / "doc" / "loraster")
    for path in ("man/man1/loraster.1", "man/man1/loraster-matrix-verify.1", "bash-completion/completions/loraster",
                 "zsh/site-functions/_loraster", "fish/vendor_completions.d/loraster.fish"):
        assert (prefix / "share" / path).stat().st_size > 0, path
    here = {name: value for name, value in os.environ.items() if name not in ("LORASTER_PLUGINS", "LORASTER_LIBEXEC")}
    here["LD_LIBRARY_PATH"] = str(library)
    # A shared library finds them by itself; of a static one the program is told.
    ways = here if shared else dict(here, LORASTER_LIBEXEC=programs, LORASTER_PLUGINS=str(plugins))
    for name in ("outsider", "first"):
        print(run([folder / name], env=ways, cwd=folder))
    assert (folder / "first.nii.gz").exists()
    print(run([prefix / "bin" / "loraster", "--version"], env=here))
    # So does the program, with plugins and what reads HDF5 files.
    found = json.loads(run([prefix / "bin" / "loraster", "info", "--json"], env=here, cwd=folder))
    reader = found["programs"][0]
    assert reader["works"] and reader["path"].startswith(str(prefix.resolve())), reader
    reasons = " ".join(trial["reason"] or "" for trial in found["backends"])
    assert "lr_gl.so" not in reasons, reasons
    known = ["--scanner", "two-opposed-modules", "--grid", "5,4,3", "--voxel-mm", "4,4,4"]
    for words in (["simulate", "--phantom", "point", "--counts", "50", "-o", "counts.h5"],
                  ["recon", "--data", "counts.h5", "--iterations", "1", "--backend", "cpu", "-o",
                   "x.nii"]):
        run([prefix / "bin" / "loraster", *words, *known], env=here, cwd=folder)
    # The viewer is a plugin that reads files itself.
    if found["viewer"]["works"] and any(device["usable"] for device in found["devices"]):
        (folder / "steps.txt").write_text("wait\n")
        run([prefix / "bin" / "loraster", "view", "--scanner", "two-opposed-modules", "--data", "counts.h5",
             "--no-window", "--script", "steps.txt"], env=here, cwd=folder)
    if shared and not arguments.flags:
        check_host_program(library / "liblr.so", here, folder)
    check_bench(prefix / "bin" / "loraster", here, folder, arguments.build)
    licence = find_one(prefix, "LICENSE").read_text()
    assert "Apache License" in licence, licence[:80]
    # The copy is whole: it does not look for the tree that it was built from.
    text = file.read_text()
    assert arguments.build not in text, text


with tempfile.TemporaryDirectory(prefix="loraster-install-") as temporary:
    check(Path(temporary), read_arguments())
