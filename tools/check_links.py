#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks whose functions the folders of src/ call, and that no files call each other in a circle, by the
symbols of what was built: also calls through public headers are seen. Prints one line per violation; exit
code 1 when there is any.

usage: check_links.py BUILD     BUILD holds folders.txt and the objects of each folder's library, and of
                                programs, which may call any folder
"""
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

# Programs, and the viewer, may call any folder; their objects lie elsewhere.
PROGRAMS = {
    "viewer": "CMakeFiles/lr_viewer.dir/src/viewer",
    "cli": "src/cli/CMakeFiles",
    "bench": "bench/CMakeFiles/loraster-bench.dir",
}


def read_folders(build):
    """{folder: folders and functions it may call}"""
    allowed = {}
    for line in (build / "folders.txt").read_text().splitlines():
        folder, calls = line.split(":")
        allowed[folder] = set(calls.split()) | {folder}
    return allowed


def symbols(objects):
    """(object, kind, name) of all symbols that objects show or want; without weak wants, which are plugins'."""
    done = subprocess.run(["nm", "-A", "-g", "-P", *map(str, objects)], capture_output=True, text=True,
                          check=True)
    for line in done.stdout.splitlines():
        path, symbol = line.split(": ", 1)  # whose folders may have blanks in their names
        name, kind = symbol.split()[:2]
        if kind not in "vw":
            yield path, kind, name


def read_outputs(build):
    """The objects that the build makes; None where it does not say: objects of sources that are gone may
    lie there, too."""
    commands = build / "compile_commands.json"
    if not commands.is_file():
        return None
    made = (re.search(r" -o (\S+\.o)\b", entry["command"]) for entry in json.loads(commands.read_text()))
    return {str((build / match.group(1)).resolve()) for match in made if match}


def root_of(build, folder):
    return build / PROGRAMS.get(folder, f"src/CMakeFiles/lr_{folder.replace('/', '_')}.dir")


def read_objects(build, folder, outputs):
    """What a folder's files define, {name: file}, and want, {name: files}."""
    root = root_of(build, folder)
    objects = [path for path in sorted(root.rglob("*.o"))
               if not outputs or str(path.resolve()) in outputs]
    if not objects:
        sys.exit(f"{root}: no objects: build first")
    defined, wanted = {}, defaultdict(set)
    for path, kind, name in symbols(objects):
        file = re.sub(r"^\w+\.dir/", "", str(Path(path).relative_to(root)))
        file = file.removeprefix(f"{folder}/").removesuffix(".o")
        if kind == "U":
            wanted[name].add(file)
        else:
            defined[name] = file
    return defined, wanted


def find_circle(calls):
    """Files that call each other in a circle, the first one again at the end; [] where there is none."""
    done, path = set(), []

    def visit(file):
        if file in path:
            return path[path.index(file):] + [file]
        path.append(file)
        for called in sorted(calls.get(file, ())):
            circle = visit(called) if called not in done else []
            if circle:
                return circle
        done.add(path.pop())
        return []

    return next((circle for circle in map(visit, sorted(calls)) if circle), [])


def check_circles(home, wanted):
    """home: {name: (folder, file)}; wanted: {folder: {name: files}}"""
    calls = defaultdict(set)
    for folder, names in wanted.items():
        for name, files in names.items():
            for file in files:
                here = f"{folder}/{file}"
                if name in home:
                    calls[here].add("/".join(home[name]))
                    calls[here].discard(here)
    circle = find_circle(calls)
    if circle:
        yield "files call each other in a circle: " + " -> ".join(f"src/{file}" for file in circle)


def check(build):
    allowed = read_folders(build)
    home, wanted = {}, {}
    outputs = read_outputs(build)
    programs = [folder for folder, where in PROGRAMS.items() if any((build / where).rglob("*.o"))]
    for folder in [*allowed, *programs]:
        defined, wanted[folder] = read_objects(build, folder, outputs)
        for name, file in defined.items():
            home.setdefault(name, (folder, file))
    for folder in allowed:
        for name, files in sorted(wanted[folder].items()):
            there, _ = home.get(name, (None, None))
            if there is not None and not allowed[folder] & {there, name}:
                for file in sorted(files):
                    yield f"src/{folder}/{file}: calls {name} of {there}/"
    yield from check_circles(home, wanted)


def main():
    build = Path(sys.argv[1])
    violations = list(check(build))
    for violation in violations:
        print(violation)
    print(f"{len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
