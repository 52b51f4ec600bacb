#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks whose functions the folders of src/ call, by the symbols of what was built: also calls through
public headers are seen. Prints one line per violation; exit code 1 when there is any.

usage: check_links.py BUILD     BUILD holds folders.txt and the objects of each folder's library
"""
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

def read_folders(build):
    """{folder: folders and functions it may call}"""
    allowed = {}
    for line in (build / "folders.txt").read_text().splitlines():
        folder, calls = line.split(":")
        allowed[folder] = set(calls.split()) | {folder}
    return allowed


def symbols(objects):
    """(object, kind, name) of all symbols that objects show or want."""
    done = subprocess.run(["nm", "-A", "-g", "-P", *map(str, objects)], capture_output=True, text=True,
                          check=True)
    for line in done.stdout.splitlines():
        path, name, kind = line.split()[:3]
        yield path.rstrip(":"), kind, name


def read_outputs(build):
    """The objects that the build makes; None where it does not say: objects of sources that are gone may
    lie there, too."""
    commands = build / "compile_commands.json"
    if not commands.is_file():
        return None
    made = (re.search(r" -o (\S+\.o)\b", entry["command"]) for entry in json.loads(commands.read_text()))
    return {str((build / match.group(1)).resolve()) for match in made if match}


def read_objects(build, folder, outputs):
    """What a folder's objects define, and {name: an object that wants it}."""
    root = build / "src" / folder / "CMakeFiles" / f"lr_{folder}.dir"
    objects = [path for path in sorted(root.rglob("*.o"))
               if not outputs or str(path.resolve()) in outputs]
    if not objects:
        sys.exit(f"{root}: no objects: build first")
    defined, wanted = set(), defaultdict(set)
    for path, kind, name in symbols(objects):
        if kind == "U":
            wanted[name].add(str(Path(path).relative_to(root)).removesuffix(".o"))
        else:
            defined.add(name)
    return defined, wanted


def check(build):
    allowed = read_folders(build)
    home, wanted = {}, {}
    outputs = read_outputs(build)
    for folder in allowed:
        defined, wanted[folder] = read_objects(build, folder, outputs)
        home.update({name: folder for name in defined if name not in home})
    for folder, names in wanted.items():
        for name, files in sorted(names.items()):
            there = home.get(name)
            if there is not None and not allowed[folder] & {there, name}:
                for file in sorted(files):
                    yield f"src/{folder}/{file}: calls {name} of {there}/"


def main():
    build = Path(sys.argv[1])
    violations = list(check(build))
    for violation in violations:
        print(violation)
    print(f"{len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
