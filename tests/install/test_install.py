#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the build into a temporary folder, then compiles and runs a program against the copy
with nothing but what pkg-config says."""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

def run(words, **options):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\nexit code {done.returncode}\n{done.stdout}"
                 f"{done.stderr}")
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
        (folder / source.name).write_text(source.read_text())
        run([arguments.compiler, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
             *arguments.flags.split(), *words["--cflags"], source.name, "-o", source.stem,
             *words["--libs"]], cwd=folder)
    here = dict(os.environ, LD_LIBRARY_PATH=str(library))
    programs = run([tool, "--variable=libexecdir", "loraster"], env=env)
    plugins = Path(run([tool, "--variable=pluginsdir", "loraster"], env=env)).resolve()
    assert plugins == find_one(prefix, "lr_gl.so").parent.resolve(), plugins
    here = {name: value for name, value in here.items() if name != "LORASTER_PLUGINS"}
    shared = list(prefix.rglob("liblr.so")) # which finds its plugins by itself
    ways = dict(here, LORASTER_LIBEXEC=programs, **({} if shared else {"LORASTER_PLUGINS": str(plugins)}))
    print(run([folder / "outsider"], env=ways, cwd=folder))
    print(run([prefix / "bin" / "loraster", "--version"], env=here))
    # The installed program finds by itself what reads HDF5 files.
    known = ["--scanner", "two-opposed-modules", "--grid", "5,4,3", "--voxel-mm", "4,4,4"]
    for words in (["simulate", "--phantom", "point", "--counts", "50", "-o", "counts.h5"],
                  ["recon", "--data", "counts.h5", "--iterations", "1", "--backend", "cpu", "-o",
                   "x.nii"]):
        run([prefix / "bin" / "loraster", *words, *known], env=here, cwd=folder)
    check_bench(prefix / "bin" / "loraster", here, folder, arguments.build)
    # The copy is whole: it does not look for the tree that it was built from.
    text = file.read_text()
    assert arguments.build not in text, text


with tempfile.TemporaryDirectory(prefix="loraster-install-") as temporary:
    check(Path(temporary), read_arguments())
