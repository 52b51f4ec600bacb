#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""Has clang read every C and C++ file of a build, warnings being errors.

usage: check_clang.py BUILD_FOLDER [JOBS]
The folder has been built, so that files which the build makes are there. Clang writes nothing:
warnings need no machine code, and tools/fuzz.sh runs what clang makes of the readers.
"""
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# CMake leaves out a standard that is the build's compiler's own default, which clang's need not be.
COMPILERS = {".c": ("clang",), ".cpp": ("clang++", "-std=gnu++17")}


def clang_command(entry):
    """The command of the build, by clang; None for files that it does not compile."""
    compiler = COMPILERS.get(os.path.splitext(entry["file"])[1])
    if compiler is None:
        return None
    words = shlex.split(entry["command"])
    first = next(k for k, word in enumerate(words) if word.startswith("-"))
    kept, skips = [], False
    for word in words[first:]:
        if not skips and word not in ("-o", "-c"):
            kept.append(word)
        skips = word == "-o"
    return (*compiler, "-fsyntax-only", "-Werror", *kept)


def read_commands(folder):
    """Each once: a file that several programs have is read once for each set of options."""
    with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as stream:
        entries = json.load(stream)
    found = {}
    for entry in entries:
        command = clang_command(entry)
        if command is not None:
            found[command] = entry["directory"]
    return found


def main(words):
    if len(words) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    commands = read_commands(words[0])

    def read(item):
        command, directory = item
        return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(int(words[1]) if len(words) == 2 else os.cpu_count()) as pool:
        done = list(pool.map(read, commands.items()))
    bad = [one for one in done if one.returncode != 0]
    for one in bad:
        print(one.stderr, file=sys.stderr)
    print(f"clang: {len(done)} files read, {len(bad)} with warnings or errors")
    return 1 if bad or not done else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
